//===- PTXEmit.cpp - Converts kernels and runs LLVM's backend -------------===//
//
// Upstream's patterns, but not those that call libdevice: what is left of `math`
// becomes LLVM's intrinsics. The backend runs on options of its own, so that it
// contracts nothing; LLVM's passes reorder no floats without being asked.
//
//===----------------------------------------------------------------------===//

#include "Backend.h"
#include "PTXGroups.h"

#include "weir/Target/Ptx.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;
using namespace weir;

static constexpr StringLiteral triple = "nvptx64-nvidia-cuda";

/// Returns the first PTX version, times ten, that has the GPU. LLVM ends the process on
/// an older one.
static int64_t getOldestPtx(int64_t sm) {
  static constexpr std::pair<int64_t, int64_t> oldest[] = {
      {80, 70}, {86, 71}, {87, 74}, {89, 78}, {90, 78}, {100, 86}, {103, 88}, {120, 87}, {121, 88}};
  for (auto [known, version] : oldest)
    if (known == sm)
      return version;
  return std::numeric_limits<int64_t>::max();
}

FailureOr<PtxEmitter> PtxEmitter::create(Location loc, const Profile &profile) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  llvm::Triple parsed(triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(parsed, error);
  if (!backend)
    return emitError(loc) << "this LLVM emits no PTX: " << error;
  std::string chip = profile.getChip();
  unsigned major = 0, minor = 0;
  StringRef version = profile.api;
  bool isVersion = version.consume_front("ptx") && !version.consumeInteger(10, major) &&
                   version.consume_front(".") && !version.consumeInteger(10, minor) &&
                   version.empty();
  std::string feature = "ptx" + std::to_string(major * 10 + minor);
  std::unique_ptr<llvm::MCSubtargetInfo> known(backend->createMCSubtargetInfo(parsed, "", ""));
  if (!isVersion || !llvm::any_of(known->getAllProcessorFeatures(),
                                  [&](const auto &known) { return feature == known.Key; }))
    return emitError(loc) << "target " << profile.name << " has the API " << profile.api
                          << ", which is not a version of PTX that LLVM emits";
  if (major * 10 + minor < getOldestPtx(profile.sm))
    return emitError(loc) << "target " << profile.name << " is of " << chip
                          << ", for which there is no PTX of version " << profile.api;

  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(
      backend->createTargetMachine(parsed, chip, "+" + feature, options, std::nullopt, std::nullopt,
                                   llvm::CodeGenOptLevel::Aggressive));
  Attribute target =
      NVVM::NVVMTargetAttr::get(loc.getContext(), /*optLevel=*/3, triple, chip, "+" + feature);
  return PtxEmitter(target, std::move(machine));
}

namespace {
/// Lowers mma of bf16, which upstream does not: a pair of elements is a word.
class LowerMmaOfBf16 : public ConvertOpToLLVMPattern<nvgpu::MmaSyncOp> {
public:
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(nvgpu::MmaSyncOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

LogicalResult LowerMmaOfBf16::matchAndRewrite(nvgpu::MmaSyncOp op, OpAdaptor adaptor,
                                              ConversionPatternRewriter &rewriter) const {
  Type word = rewriter.getI32Type();
  if (!getElementTypeOrSelf(op.getMatrixA().getType()).isBF16())
    return failure();
  Location loc = op.getLoc();
  auto getPairs = [&](Value matrix) {
    auto type = cast<LLVM::LLVMArrayType>(matrix.getType());
    return llvm::map_to_vector(llvm::seq<int64_t>(type.getNumElements()), [&](int64_t i) -> Value {
      return LLVM::ExtractValueOp::create(rewriter, loc, matrix, i);
    });
  };
  auto getWords = [&](Value matrix) {
    return llvm::map_to_vector(getPairs(matrix), [&](Value pair) -> Value {
      return LLVM::BitcastOp::create(rewriter, loc, word, pair);
    });
  };
  SmallVector<Value> sums;
  for (Value pair : getPairs(adaptor.getMatrixC()))
    for (int64_t i : {0, 1})
      sums.push_back(LLVM::ExtractElementOp::create(
          rewriter, loc, pair, LLVM::ConstantOp::create(rewriter, loc, word, i)));
  Type sum = rewriter.getF32Type();
  auto added = NVVM::MmaOp::create(
      rewriter, loc,
      LLVM::LLVMStructType::getLiteral(op.getContext(), SmallVector<Type>(sums.size(), sum)),
      getWords(adaptor.getMatrixA()), getWords(adaptor.getMatrixB()), sums, op.getMmaShapeAsArray(),
      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
      std::array{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  auto type = cast<LLVM::LLVMArrayType>(getTypeConverter()->convertType(op.getType()));
  Value result = LLVM::PoisonOp::create(rewriter, loc, type);
  for (int64_t i = 0; i < int64_t(type.getNumElements()); ++i) {
    Value pair = LLVM::PoisonOp::create(rewriter, loc, type.getElementType());
    for (int64_t j : {0, 1})
      pair = LLVM::InsertElementOp::create(
          rewriter, loc, pair, LLVM::ExtractValueOp::create(rewriter, loc, added, 2 * i + j),
          LLVM::ConstantOp::create(rewriter, loc, word, j));
    result = LLVM::InsertValueOp::create(rewriter, loc, result, pair, i);
  }
  rewriter.replaceOp(op, result);
  return success();
}

LogicalResult PtxEmitter::convert(gpu::GPUModuleOp module) const {
  MLIRContext *context = module.getContext();
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(32); // as in SPIR-V; the gate bounds what is indexed
  options.useBarePtrCallConv = true;
  options.dataLayout = machine->createDataLayout();
  LLVMTypeConverter types(context, options);
  configureGpuToNVVMTypeConverter(types);
  types.addConversion([&](nvgpu::DeviceAsyncTokenType) { return IntegerType::get(context, 32); });

  RewritePatternSet patterns(context);
  populateGpuToNVVMConversionPatterns(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  index::populateIndexToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns, /*approximateLog1p=*/false);
  populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
  populateNVGPUToNVVMConversionPatterns(types, patterns);
  patterns.add<LowerMmaOfBf16>(types, PatternBenefit(2));
  populateGroupPatterns(types, patterns);
  populateVectorToLLVMConversionPatterns(types, patterns);
  ub::populateUBToLLVMConversionPatterns(types, patterns);
  LLVMConversionTarget legality(*context);
  legality.addLegalDialect<NVVM::NVVMDialect>();
  legality.addLegalOp<gpu::GPUModuleOp>();
  return applyFullConversion(module, legality, std::move(patterns));
}

/// Declares the workgroup memory that a launch gives the kernel as one that the code does not
/// define, aligned for swizzles of 8 x 128 bytes. Upstream leaves it internal.
static void declareLaunchMemory(gpu::GPUModuleOp module) {
  constexpr uint64_t alignment = 1024;
  for (auto variable : module.getOps<LLVM::GlobalOp>()) {
    auto type = dyn_cast<LLVM::LLVMArrayType>(variable.getType());
    if (!type || type.getNumElements() != 0)
      continue;
    variable.setLinkage(LLVM::Linkage::External);
    variable.setAlignment(alignment);
  }
}

/// Declares that tensor maps, the only parameters that point anywhere, are passed as they are and
/// stay.
static void declareTensorMaps(gpu::GPUModuleOp module) {
  constexpr int64_t bytes = 128, alignment = 64;
  Builder b(module.getContext());
  Type map = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    for (unsigned i = 0; !function.isExternal() && i < function.getNumArguments(); ++i) {
      auto type = dyn_cast<LLVM::LLVMPointerType>(function.getArgument(i).getType());
      if (!type || type.getAddressSpace() != 0)
        continue;
      function.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(map));
      function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(alignment));
      function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr());
    }
}

/// Declares that a workgroup has exactly the invocations that the kernel was made for.
static void requireWorkgroup(gpu::GPUModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (Attribute size = function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName()))
      function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), size);
}

FailureOr<std::string> PtxEmitter::emit(gpu::GPUModuleOp module, RunPipeline runPipeline) const {
  OpPassManager toBranches(gpu::GPUModuleOp::getOperationName());
  toBranches.addPass(createSCFToControlFlowPass());
  if (failed(runPipeline(toBranches, module)) || failed(convert(module)))
    return failure();
  OpPassManager cleanUp(gpu::GPUModuleOp::getOperationName());
  cleanUp.addPass(createReconcileUnrealizedCastsPass());
  cleanUp.addPass(createCanonicalizerPass());
  cleanUp.addPass(createCSEPass());
  if (failed(runPipeline(cleanUp, module)))
    return failure();
  requireWorkgroup(module);
  declareLaunchMemory(module);
  declareTensorMaps(module);
  FailureOr<BackendCode> code = translateForBackend(module, *machine);
  if (failed(code))
    return failure();
  std::string text =
      runBackend(std::move(*code), *machine, llvm::CodeGenFileType::AssemblyFile, BackendOptions());
  return text.empty() ? FailureOr<std::string>() : std::move(text);
}
