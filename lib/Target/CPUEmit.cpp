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
#include "llvm/Support/TargetSelect.h"

using namespace mlir;
using namespace weir;

/// The passes of LLVM's O2 that kernels need, in half of its time: loops have their vectors and
/// tiles already.
/// The ranges of values that ipsccp and correlated-propagation find make divisions of indices
/// short.
static constexpr const char *passes =
    "always-inline,globaldce,ipsccp,"
    "function(sroa,early-cse<memssa>,simplifycfg,loop-mssa(loop-rotate,licm),"
    "correlated-propagation,instcombine<no-verify-fixpoint>,loop(indvars),gvn,loop-mssa(licm),"
    "simplifycfg)";

FailureOr<CpuEmitter> CpuEmitter::create(Location loc, const Profile &profile) {
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
  bool isArm = profile.isa == "aarch64";
  llvm::Triple triple(isArm ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return emitError(loc) << "this LLVM emits no code for " << profile.isa << ": " << error;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return CpuEmitter(loc.getContext(),
                    std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
                        triple, isArm ? "generic" : profile.isa,
                        profile.isa == "x86-64-v4" ? "-prefer-256-bit" : "", options,
                        llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default)));
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

CpuEmitter::CpuEmitter(MLIRContext *context, std::unique_ptr<llvm::TargetMachine> given)
    : machine(std::move(given)), toBranches(ModuleOp::getOperationName()),
      cleanUp(ModuleOp::getOperationName()) {
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

/// Adds the function that the runtime calls, which takes the operands' addresses from an array.
static void addEntry(ModuleOp module, StringRef name) {
  auto body = *module.getOps<LLVM::LLVMFuncOp>().begin();
  body.setLinkage(LLVM::Linkage::Internal);
  body.setAlwaysInline(true);
  ImplicitLocOpBuilder b(body.getLoc(), body);
  b.setInsertionPointAfter(body);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          {pointer, pointer, b.getI64Type(), b.getI64Type()});
  auto entry = LLVM::LLVMFuncOp::create(b, name, type);
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  auto load = [&](Value array, int64_t number, Type element) -> Value {
    Value address =
        LLVM::GEPOp::create(b, pointer, element, array, ArrayRef<LLVM::GEPArg>{int32_t(number)});
    return LLVM::LoadOp::create(b, element, address);
  };
  SmallVector<Value> arguments;
  size_t operands = body.getNumArguments() - 4;
  for (size_t i = 0; i < operands; ++i)
    arguments.push_back(load(block->getArgument(0), i, pointer));
  arguments.push_back(block->getArgument(2));
  arguments.push_back(block->getArgument(3));
  arguments.push_back(load(block->getArgument(1), 0, b.getI64Type()));
  arguments.push_back(load(block->getArgument(1), 1, b.getI64Type()));
  LLVM::CallOp::create(b, body, arguments);
  LLVM::ReturnOp::create(b, ValueRange());
}

FailureOr<std::string> CpuEmitter::emit(ModuleOp module, StringRef name, RunPipeline runPipeline) {
  LLVMConversionTarget legality(*module.getContext());
  legality.addLegalOp<ModuleOp>();
  if (failed(runPipeline(toBranches, module)) ||
      failed(applyFullConversion(module, legality, patterns)) ||
      failed(runPipeline(cleanUp, module)))
    return failure();
  addEntry(module, name);

  BackendOptions options;
  options.passes = passes;
  options.hasLibrary = false;
  return runBackend(module, *machine, llvm::CodeGenFileType::ObjectFile, options,
                    [](llvm::Module &code) {
                      code.setPICLevel(llvm::PICLevel::BigPIC);
                      for (llvm::Function &function : code) {
                        function.addFnAttr("no-builtins");
                        function.addFnAttr(llvm::Attribute::NoUnwind);
                      }
                    });
}
