//===- CPUEmit.cpp - Converts kernels and runs LLVM's backend -------------===//
//
// The backend runs on options of its own, so that it contracts nothing; LLVM's passes reorder no
// floats without being asked, and are told that there is no C library to call.
//
//===----------------------------------------------------------------------===//

#include "Backend.h"

#include "weir/Target/Cpu.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"

#include <mutex>

using namespace mlir;
using namespace weir;

/// The passes of LLVM's O2 that kernels need, in a third of its time: loops have their vectors and
/// tiles already, and addresses their form.
/// The ranges of values that ipsccp and correlated-propagation find make divisions of indices
/// short.
static constexpr const char *passes =
    "ipsccp,"
    "function(sroa,early-cse,simplifycfg,loop-mssa(loop-rotate,licm),correlated-propagation,"
    "instcombine<no-verify-fixpoint;max-iterations=1>,early-cse<memssa>,"
    "loop-mssa(licm),simplifycfg)";

//===----------------------------------------------------------------------===//
// LLVM's backend
//===----------------------------------------------------------------------===//

namespace {
/// Leaves out loop strength reduction in the backend as long as this lives. It takes a fifth of
/// the backend's time, with what it asks of scalar evolution, and makes no kernel faster on x86,
/// where an instruction takes what an address is: a base, a scaled index and a constant.
/// A pipeline for code generation has no option for it, only LLVM's command line has, which all
/// pipelines of the process share.
class NoStrengthReduction {
public:
  NoStrengthReduction() : option(find()), before(option && option->getValue()) { set(true); }
  ~NoStrengthReduction() { set(before); }
  NoStrengthReduction(const NoStrengthReduction &) = delete;

private:
  static llvm::cl::opt<bool> *find() {
    return static_cast<llvm::cl::opt<bool> *>(
        llvm::cl::getRegisteredOptions().lookup("disable-lsr"));
  }
  void set(bool value) {
    if (option)
      option->setValue(value);
  }

  llvm::cl::opt<bool> *option;
  bool before;
};
} // namespace

namespace weir {
/// Threads that turn LLVM's IR into objects. The object of a kernel depends on nothing but its
/// code, so the number of threads changes no byte.
class CpuBackend {
public:
  CpuBackend(const llvm::Target *target, const Profile &profile, unsigned threads)
      : target(target), isa(profile.isa), threads(llvm::hardware_concurrency(threads)) {
    if (isa != "aarch64")
      noReduction.emplace();
  }

  std::unique_ptr<llvm::TargetMachine> makeMachine() const;
  std::shared_future<std::string> start(BackendCode code);

private:
  std::string emit(BackendCode code);

  const llvm::Target *target;
  std::string isa;
  std::optional<NoStrengthReduction> noReduction;
  std::mutex lock;
  std::vector<std::unique_ptr<llvm::TargetMachine>> idle; ///< no two threads share one
  llvm::DefaultThreadPool threads;                        ///< use all of the above
};
} // namespace weir

static llvm::Triple getTriple(StringRef isa) {
  return llvm::Triple(isa == "aarch64" ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu");
}

std::unique_ptr<llvm::TargetMachine> CpuBackend::makeMachine() const {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(getTriple(isa), isa == "aarch64" ? "generic" : isa,
                                  isa == "x86-64-v4" ? "-prefer-256-bit" : "", options,
                                  llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

/// Starts to emit an object, which is empty where LLVM has no code.
std::shared_future<std::string> CpuBackend::start(BackendCode code) {
  // The pool copies what it runs.
  auto shared = std::make_shared<BackendCode>(std::move(code));
  return threads.async([this, shared] { return emit(std::move(*shared)); });
}

std::string CpuBackend::emit(BackendCode code) {
  std::unique_ptr<llvm::TargetMachine> machine;
  if (std::lock_guard guard(lock); !idle.empty()) {
    machine = std::move(idle.back());
    idle.pop_back();
  }
  if (!machine)
    machine = makeMachine();
  BackendOptions options;
  options.passes = passes;
  options.hasLibrary = false;
  std::string object =
      runBackend(std::move(code), *machine, llvm::CodeGenFileType::ObjectFile, options);
  std::lock_guard guard(lock);
  idle.push_back(std::move(machine));
  return object;
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

FailureOr<CpuEmitter> CpuEmitter::create(Location loc, const Profile &profile, unsigned threads) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(getTriple(profile.isa), error);
  if (!target)
    return emitError(loc) << "this LLVM emits no code for " << profile.isa << ": " << error;
  return CpuEmitter(loc.getContext(), std::make_unique<CpuBackend>(target, profile, threads));
}

static FrozenRewritePatternSet makePatterns(MLIRContext *context, LLVMTypeConverter &types) {
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  index::populateIndexToLLVMConversionPatterns(types, patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns, /*approximateLog1p=*/false);
  populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
  populateVectorToLLVMConversionPatterns(types, patterns);
  ub::populateUBToLLVMConversionPatterns(types, patterns);
  return patterns;
}

CpuEmitter::CpuEmitter(CpuEmitter &&) = default;
CpuEmitter::~CpuEmitter() = default;

CpuEmitter::CpuEmitter(MLIRContext *context, std::unique_ptr<CpuBackend> given)
    : backend(std::move(given)), machine(backend->makeMachine()),
      toBranches(ModuleOp::getOperationName()), cleanUp(ModuleOp::getOperationName()) {
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  options.dataLayout = machine->createDataLayout();
  types = std::make_unique<LLVMTypeConverter>(context, options);
  populateGpuMemorySpaceAttributeConversions(*types, [](gpu::AddressSpace) { return 0; });
  patterns = makePatterns(context, *types);
  toBranches.addPass(createCanonicalizerPass());
  toBranches.addPass(createCSEPass());
  toBranches.addPass(createSCFToControlFlowPass());
  cleanUp.addPass(createReconcileUnrealizedCastsPass());
}

/// Makes of the function what the runtime calls, which takes the operands' addresses from an array.
static void makeEntry(ModuleOp module, StringRef name) {
  auto body = *module.getOps<LLVM::LLVMFuncOp>().begin();
  ImplicitLocOpBuilder b(body.getLoc(), body);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type number = b.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          {pointer, pointer, number, number});
  auto entry = LLVM::LLVMFuncOp::create(b, name, type);
  entry.getBody().takeBody(body.getBody());
  body.erase();

  Block &block = entry.getBody().front();
  b.setInsertionPointToStart(&block);
  unsigned given = block.getNumArguments(), operands = given - 4;
  for (Type type : entry.getArgumentTypes())
    block.addArgument(type, b.getLoc());
  auto load = [&](Value array, unsigned index, Type element) -> Value {
    Value address =
        LLVM::GEPOp::create(b, pointer, element, array, ArrayRef<LLVM::GEPArg>{int32_t(index)});
    return LLVM::LoadOp::create(b, element, address);
  };
  auto replace = [&](unsigned argument, Value value) {
    block.getArgument(argument).replaceAllUsesWith(value);
  };
  for (unsigned i = 0; i < operands; ++i)
    replace(i, load(block.getArgument(given), i, pointer));
  replace(operands, block.getArgument(given + 2));
  replace(operands + 1, block.getArgument(given + 3));
  replace(operands + 2, load(block.getArgument(given + 1), 0, number));
  replace(operands + 3, load(block.getArgument(given + 1), 1, number));
  block.eraseArguments(0, given);
}

FailureOr<std::shared_future<std::string>> CpuEmitter::emit(ModuleOp module, StringRef name,
                                                            RunPipeline runPipeline) {
  LLVMConversionTarget legality(*module.getContext());
  legality.addLegalOp<ModuleOp>();
  if (failed(runPipeline(toBranches, module)) ||
      failed(applyFullConversion(module, legality, patterns)) ||
      failed(runPipeline(cleanUp, module)))
    return failure();
  makeEntry(module, name);

  FailureOr<BackendCode> code = translateForBackend(module, *machine);
  if (failed(code))
    return failure();
  code->module->setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function &function : *code->module) {
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  return backend->start(std::move(*code));
}
