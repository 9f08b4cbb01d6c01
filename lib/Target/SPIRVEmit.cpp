//===- SPIRVEmit.cpp - Converts kernels and serializes them ---------------===//
//
// Upstream's patterns, all in one conversion, then the passes that give the
// module its interface. Afterwards floats are marked exact, loops stay rolled
// and barriers order storage buffers, none of which upstream can be asked for.
//
//===----------------------------------------------------------------------===//

#include "weir/Target/Spirv.h"

#include "mlir/Conversion/ArithToSPIRV/ArithToSPIRV.h"
#include "mlir/Conversion/FuncToSPIRV/FuncToSPIRV.h"
#include "mlir/Conversion/GPUToSPIRV/GPUToSPIRV.h"
#include "mlir/Conversion/IndexToSPIRV/IndexToSPIRV.h"
#include "mlir/Conversion/MathToSPIRV/MathToSPIRV.h"
#include "mlir/Conversion/MemRefToSPIRV/MemRefToSPIRV.h"
#include "mlir/Conversion/UBToSPIRV/UBToSPIRV.h"
#include "mlir/Conversion/VectorToSPIRV/VectorToSPIRV.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/SPIRV/Transforms/Passes.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace weir;

/// The version of SPIR-V that every module declares. From 1.4 on a scalar condition selects vectors
/// and the entry point lists all it uses; 1.5 holds the extensions for storage buffers and for
/// 8-bit and 16-bit storage.
static constexpr spirv::Version version = spirv::Version::V_1_5;
/// That of modules with cooperative matrices.
static constexpr spirv::Version cooperativeVersion = spirv::Version::V_1_6;

static spirv::TargetEnvAttr getTargetOf(MLIRContext *context, const Profile &profile) {
  SmallVector<spirv::Capability> capabilities = {spirv::Capability::Shader,
                                                 spirv::Capability::GroupNonUniform,
                                                 spirv::Capability::GroupNonUniformShuffle};
  if (profile.int64)
    capabilities.push_back(spirv::Capability::Int64);
  if (profile.float64)
    capabilities.push_back(spirv::Capability::Float64);
  if (profile.storage8)
    capabilities.append({spirv::Capability::Int8, spirv::Capability::StorageBuffer8BitAccess});
  if (profile.storage16)
    capabilities.append({spirv::Capability::Int16, spirv::Capability::StorageBuffer16BitAccess});
  SmallVector<spirv::Extension> extensions = {
      spirv::Extension::SPV_KHR_storage_buffer_storage_class,
      spirv::Extension::SPV_KHR_8bit_storage, spirv::Extension::SPV_KHR_16bit_storage};
  const bool isCooperative = profile.cooperative.rows != 0;
  if (isCooperative) {
    capabilities.append({spirv::Capability::Float16, spirv::Capability::CooperativeMatrixKHR,
                         spirv::Capability::VulkanMemoryModel});
    extensions.push_back(spirv::Extension::SPV_KHR_cooperative_matrix);
  }
  auto triple = spirv::VerCapExtAttr::get(isCooperative ? cooperativeVersion : version,
                                          capabilities, extensions, context);
  Builder builder(context);
  int size = int(profile.maxWorkgroupSize);
  auto limits = spirv::ResourceLimitsAttr::get(
      context, int(profile.workgroupMemory), size, builder.getI32ArrayAttr({size, size, size}),
      int(profile.subgroupSize), std::nullopt, std::nullopt, builder.getArrayAttr({}),
      builder.getArrayAttr({}));
  return spirv::TargetEnvAttr::get(triple, limits, spirv::ClientAPI::Vulkan);
}

SpirvEmitter::SpirvEmitter(MLIRContext *context, const Profile &profile)
    : target(getTargetOf(context, profile)), legality(SPIRVConversionTarget::get(target)),
      types(target), pipeline(spirv::ModuleOp::getOperationName()) {
  RewritePatternSet set(context);
  populateMMAToSPIRVCoopMatrixTypeConversion(types);
  populateGPUToSPIRVPatterns(types, set);
  populateGpuWMMAToSPIRVCoopMatrixKHRConversionPatterns(types, set);
  populateSCFToSPIRVPatterns(types, scfContext, set);
  arith::populateArithToSPIRVPatterns(types, set);
  populateMathToSPIRVPatterns(types, set);
  populateMemRefToSPIRVPatterns(types, set);
  populateFuncToSPIRVPatterns(types, set);
  populateVectorToSPIRVPatterns(types, set);
  index::populateIndexToSPIRVPatterns(types, set);
  ub::populateUBToSPIRVConversionPatterns(types, set);
  patterns = FrozenRewritePatternSet(std::move(set));

  pipeline.addPass(spirv::createSPIRVLowerABIAttributesPass());
  pipeline.addPass(createCanonicalizerPass());
  pipeline.addPass(createCSEPass());
  pipeline.addPass(spirv::createSPIRVUpdateVCEPass());
}

/// Returns the constant that every element of `value` is, if it is one.
static std::optional<APFloat> getFloat(Value value) {
  auto constant = value.getDefiningOp<spirv::ConstantOp>();
  Attribute attribute = constant ? constant.getValue() : Attribute();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(attribute))
    attribute = splat.getSplatValue<Attribute>();
  auto number = dyn_cast_or_null<FloatAttr>(attribute);
  return number ? std::optional(number.getValue()) : std::nullopt;
}

/// Returns a constant whose elements are all `element`.
static Value createConstant(OpBuilder &builder, Location loc, Type type, TypedAttr element) {
  Attribute value = element;
  if (auto vector = dyn_cast<VectorType>(type))
    value = DenseElementsAttr::get(vector, value);
  return spirv::ConstantOp::create(builder, loc, type, value);
}

/// Rewrites arithmetic with a constant 0, which Mesa's llvmpipe gets wrong: it takes x * 0 for 0,
/// 0 / x for 0, x + 0 for x, 0 - x for -x, and x / 0 for nothing at all, though told to preserve
/// infinities, NaN and the sign of zero. The new operations have the same bits, except in a NaN:
///   x * 0 = -x * -0   0 / x = -0 / -x   x / 0 = x * inf
///   x + 0 = x - -0 = (x == 0 ? 0 : x)   0 - x = (x == 0 ? 0 : -x)
/// Its fma is a product and a sum, and so are those with a literal 0, whose sum rounds nothing:
/// only the sign differs from a true fma's where a product underflows to nothing and 0 is added.
static void avoidLiteralZeros(spirv::ModuleOp module) {
  module.walk([](spirv::GLFmaOp op) {
    bool hasZero = llvm::any_of(op->getOperands(), [](Value operand) {
      std::optional<APFloat> number = getFloat(operand);
      return number && number->isPosZero();
    });
    if (!hasZero)
      return;
    OpBuilder builder(op);
    Value product = spirv::FMulOp::create(builder, op.getLoc(), op.getX(), op.getY());
    op.replaceAllUsesWith(
        spirv::FAddOp::create(builder, op.getLoc(), product, op.getZ()).getResult());
    op.erase();
  });
  module.walk([&](Operation *op) {
    if (!isa<spirv::FMulOp, spirv::FDivOp, spirv::FAddOp, spirv::FSubOp>(op))
      return;
    bool commutes = isa<spirv::FMulOp, spirv::FAddOp>(op);
    auto isZero = [](Value value, bool isNegative) {
      std::optional<APFloat> number = getFloat(value);
      return number && number->isZero() && number->isNegative() == isNegative;
    };
    Value lhs = op->getOperand(0), rhs = op->getOperand(1);
    if (commutes && isZero(lhs, false))
      std::swap(lhs, rhs);
    bool ofLeft = !commutes && isZero(lhs, false);
    bool ofRight = isZero(rhs, /*isNegative=*/isa<spirv::FSubOp>(op));
    if (!ofLeft && !ofRight)
      return;
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Type type = op->getResult(0).getType();
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    const llvm::fltSemantics &semantics = element.getFloatSemantics();
    auto getConstant = [&](APFloat number) {
      return createConstant(builder, loc, type, builder.getFloatAttr(element, number));
    };
    auto getZero = [&](bool isNegative) {
      return getConstant(APFloat::getZero(semantics, isNegative));
    };
    auto negate = [&](Value value) { return spirv::FNegateOp::create(builder, loc, value); };
    Value made;
    if (isa<spirv::FMulOp>(op)) {
      made = spirv::FMulOp::create(builder, loc, negate(lhs), getZero(true));
    } else if (isa<spirv::FDivOp>(op)) {
      made = ofRight
                 ? spirv::FMulOp::create(builder, loc, lhs, getConstant(APFloat::getInf(semantics)))
                       .getResult()
                 : spirv::FDivOp::create(builder, loc, getZero(true), negate(rhs));
    } else {
      Value other = ofLeft ? rhs : lhs, zero = getZero(false);
      Value isZero = spirv::FOrdEqualOp::create(builder, loc, other, zero);
      made = spirv::SelectOp::create(builder, loc, isZero, zero, ofLeft ? negate(other) : other);
    }
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
  });
}

/// Rewrites signed comparisons of 64-bit numbers as unsigned ones of numbers whose sign is flipped.
/// Mesa's llvmpipe compares such numbers, made of 32 bits, with a constant by halves, and wrongly:
/// it takes 0 < 1 for false.
static void avoidSignedComparisons(spirv::ModuleOp module) {
  module.walk([&](Operation *op) {
    if (!isa<spirv::SLessThanOp, spirv::SLessThanEqualOp, spirv::SGreaterThanOp,
             spirv::SGreaterThanEqualOp>(op))
      return;
    Type type = op->getOperand(0).getType();
    Type element = getElementTypeOrSelf(type);
    if (element.getIntOrFloatBitWidth() != 64)
      return;
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Value mask =
        createConstant(builder, loc, type, builder.getIntegerAttr(element, APInt::getSignMask(64)));
    auto flip = [&](unsigned operand) -> Value {
      return spirv::BitwiseXorOp::create(builder, loc, op->getOperand(operand), mask);
    };
    Value lhs = flip(0), rhs = flip(1), made;
    if (isa<spirv::SLessThanOp>(op))
      made = spirv::ULessThanOp::create(builder, loc, lhs, rhs);
    else if (isa<spirv::SLessThanEqualOp>(op))
      made = spirv::ULessThanEqualOp::create(builder, loc, lhs, rhs);
    else if (isa<spirv::SGreaterThanOp>(op))
      made = spirv::UGreaterThanOp::create(builder, loc, lhs, rhs);
    else
      made = spirv::UGreaterThanEqualOp::create(builder, loc, lhs, rhs);
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
  });
}

/// Marks arithmetic so that a driver neither contracts nor reassociates it. An fma stays one
/// operation only when it is marked, too.
static void markExact(spirv::ModuleOp module) {
  auto mark = UnitAttr::get(module.getContext());
  module.walk([&](Operation *op) {
    if (isa<spirv::FAddOp, spirv::FSubOp, spirv::FMulOp, spirv::FDivOp, spirv::FRemOp,
            spirv::FModOp, spirv::FNegateOp, spirv::VectorTimesScalarOp, spirv::DotOp,
            spirv::GLFmaOp>(op))
      op->setAttr("no_contraction", mark);
  });
}

/// Forbids unrolling: a driver that unrolls a loop over a private row compiles for seconds.
static void keepLoopsRolled(spirv::ModuleOp module) {
  module.walk([](spirv::LoopOp loop) { loop.setLoopControl(spirv::LoopControl::DontUnroll); });
}

/// Lets barriers order all memory of the workgroup, storage buffers included, as a `gpu.barrier`
/// does.
static void widenBarriers(spirv::ModuleOp module) {
  module.walk([](spirv::ControlBarrierOp barrier) {
    barrier.setMemorySemantics(spirv::MemorySemantics::AcquireRelease |
                               spirv::MemorySemantics::UniformMemory |
                               spirv::MemorySemantics::WorkgroupMemory);
  });
}

/// Makes accesses and barriers of a module with cooperative matrices those of the Vulkan memory
/// model, which they need: in it other invocations see only what is marked for them.
static void useVulkanMemoryModel(spirv::ModuleOp module) {
  module.setMemoryModel(spirv::MemoryModel::Vulkan);
  auto isSeen = [](Value pointer) {
    spirv::StorageClass storage = cast<spirv::PointerType>(pointer.getType()).getStorageClass();
    return storage == spirv::StorageClass::StorageBuffer ||
           storage == spirv::StorageClass::Workgroup;
  };
  module.walk([&](Operation *op) {
    if (auto load = dyn_cast<spirv::LoadOp>(op); load && isSeen(load.getPtr()))
      load.setMemoryAccess(load.getMemoryAccess().value_or(spirv::MemoryAccess::None) |
                           spirv::MemoryAccess::NonPrivatePointer);
    else if (auto store = dyn_cast<spirv::StoreOp>(op); store && isSeen(store.getPtr()))
      store.setMemoryAccess(store.getMemoryAccess().value_or(spirv::MemoryAccess::None) |
                            spirv::MemoryAccess::NonPrivatePointer);
    else if (auto load = dyn_cast<spirv::KHRCooperativeMatrixLoadOp>(op))
      load.setMemoryOperand(spirv::MemoryAccess::NonPrivatePointer);
    else if (auto store = dyn_cast<spirv::KHRCooperativeMatrixStoreOp>(op))
      store.setMemoryOperand(spirv::MemoryAccess::NonPrivatePointer);
    else if (auto barrier = dyn_cast<spirv::ControlBarrierOp>(op))
      barrier.setMemorySemantics(barrier.getMemorySemantics() |
                                 spirv::MemorySemantics::MakeAvailable |
                                 spirv::MemorySemantics::MakeVisible);
  });
}

/// Whether an op needs a line of its own: barriers, shuffles and accesses to memory other than
/// inputs are where executions go wrong.
static bool needsLine(Operation *op) {
  if (isa<spirv::ControlBarrierOp, spirv::GroupNonUniformShuffleOp,
          spirv::GroupNonUniformShuffleXorOp, spirv::GroupNonUniformShuffleUpOp,
          spirv::GroupNonUniformShuffleDownOp>(op))
    return true;
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<spirv::PointerType>))
    return false;
  return llvm::any_of(op->getOperandTypes(), [](Type type) {
    auto pointer = dyn_cast<spirv::PointerType>(type);
    return pointer && pointer.getStorageClass() != spirv::StorageClass::Input;
  });
}

/// Returns the first op of a function's body that is an instruction there; upstream writes no
/// line for the function.
static Operation *getFirstInstruction(spirv::FuncOp function) {
  for (Operation &op : function.getBody().front())
    if (!isa<spirv::AddressOfOp, spirv::ConstantOp, spirv::ReferenceOfOp, spirv::UndefOp,
             spirv::VariableOp>(op))
      return &op;
  llvm_unreachable("a block has a terminator");
}

/// Leaves the kernel's line to the first instruction, and lines to what needs one that is
/// not that of what stands before it: a line holds to the end of its block, and takes four
/// words. Upstream names one file, the module's; what is of no file or another has line 0 if
/// one holds. Returns whether there are any.
static bool keepLines(spirv::ModuleOp module) {
  StringAttr file;
  Builder builder(module.getContext());
  Location kernel = module.getLoc();
  Operation *first = nullptr;
  DenseMap<Block *, FileLineColLoc> lines; // that hold, of those not left behind
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool isNew = false, isFirst = op == first;
    FileLineColLoc place;
    if (isFirst || needsLine(op)) {
      Location from = isFirst && !needsLine(op) ? kernel : op->getLoc();
      place = from->findInstanceOf<FileLineColLoc>();
      if (place && !file)
        file = place.getFilename();
      if (place && place.getFilename() != file)
        place = {};
      FileLineColLoc &holding = lines[op->getBlock()];
      isNew = std::exchange(holding, place) != place;
    }
    if (auto function = dyn_cast<spirv::FuncOp>(op)) {
      first = getFirstInstruction(function);
      kernel = function.getLoc();
    }
    if (op->getNumRegions() != 0)
      lines.erase(op->getBlock()); // what follows is another block in SPIR-V
    op->setLoc(!isNew  ? builder.getUnknownLoc()
               : place ? Location(place)
                       : FileLineColLoc::get(builder.getStringAttr(""), 0, 0));
  });
  if (file)
    module->setLoc(FileLineColLoc::get(module.getContext(), llvm::sys::path::filename(file), 1, 1));
  return file != nullptr;
}

/// Asks drivers to preserve NaN, infinities and the sign of zero. A driver may else assume that
/// there are none: lavapipe then gives 0 for 0 / 0.
static void preserveSpecialValues(spirv::ModuleOp module,
                                  SmallVectorImpl<spirv::Capability> &capabilities) {
  SmallVector<int32_t> widths = {32};
  if (llvm::is_contained(capabilities, spirv::Capability::Float64))
    widths.push_back(64);
  capabilities.push_back(spirv::Capability::SignedZeroInfNanPreserve);
  for (auto entry : llvm::make_early_inc_range(module.getOps<spirv::EntryPointOp>())) {
    OpBuilder builder(entry->getContext());
    builder.setInsertionPointAfter(entry);
    for (int32_t width : widths)
      spirv::ExecutionModeOp::create(builder, entry.getLoc(), entry.getFn(),
                                     spirv::ExecutionMode::SignedZeroInfNanPreserve,
                                     builder.getI32ArrayAttr(width));
  }
}

/// Declares one version for all kernels, and the capabilities that upstream
/// forgets.
static void setTriple(spirv::ModuleOp module) {
  spirv::VerCapExtAttr deduced = *module.getVceTriple();
  SmallVector<spirv::Capability> capabilities(deduced.getCapabilities());
  preserveSpecialValues(module, capabilities);
  module.walk([&](spirv::GlobalVariableOp variable) {
    auto builtin = variable->getAttrOfType<StringAttr>(
        spirv::SPIRVDialect::getAttributeName(spirv::Decoration::BuiltIn));
    if (!builtin || !builtin.getValue().contains("Subgroup"))
      return;
    if (!llvm::is_contained(capabilities, spirv::Capability::GroupNonUniform))
      capabilities.push_back(spirv::Capability::GroupNonUniform);
  });
  // The version holds every other extension that the target offers.
  SmallVector<spirv::Extension> extensions;
  const bool isCooperative =
      llvm::is_contained(capabilities, spirv::Capability::CooperativeMatrixKHR);
  if (isCooperative) {
    capabilities.push_back(spirv::Capability::VulkanMemoryModel);
    extensions.push_back(spirv::Extension::SPV_KHR_cooperative_matrix);
    useVulkanMemoryModel(module);
  }
  llvm::sort(capabilities);
  module.setVceTripleAttr(spirv::VerCapExtAttr::get(isCooperative ? cooperativeVersion : version,
                                                    capabilities, extensions, module.getContext()));
}

/// Upstream writes lines only where this extension is, for what it does not write yet; a
/// driver that lacks it would refuse the words.
static constexpr spirv::Extension lineExtension = spirv::Extension::SPV_KHR_non_semantic_info;

static void allowLines(spirv::ModuleOp module) {
  spirv::VerCapExtAttr triple = *module.getVceTriple();
  SmallVector<spirv::Extension> extensions(triple.getExtensions());
  extensions.push_back(lineExtension);
  module.setVceTripleAttr(spirv::VerCapExtAttr::get(triple.getVersion(),
                                                    llvm::to_vector(triple.getCapabilities()),
                                                    extensions, module.getContext()));
}

static void dropLineExtension(SmallVectorImpl<uint32_t> &words) {
  constexpr size_t headerWords = 5;
  for (size_t at = headerWords; at < words.size(); at += words[at] >> 16)
    if (spirv::Opcode(words[at] & 0xffff) == spirv::Opcode::OpExtension &&
        reinterpret_cast<const char *>(&words[at + 1]) ==
            spirv::stringifyExtension(lineExtension)) {
      words.erase(words.begin() + at, words.begin() + at + (words[at] >> 16));
      return;
    }
}

FailureOr<SmallVector<uint32_t>> SpirvEmitter::emit(gpu::GPUModuleOp module,
                                                    RunPipeline runPipeline) {
  Block *block = module->getBlock();
  module->setAttr(spirv::getTargetEnvAttrName(), target);
  if (failed(applyFullConversion(module, *legality, patterns)))
    return failure();
  auto result = cast<spirv::ModuleOp>(block->front());
  result->setAttr(spirv::getTargetEnvAttrName(), target);
  if (failed(runPipeline(pipeline, result)))
    return failure();
  avoidLiteralZeros(result);
  avoidSignedComparisons(result);
  markExact(result);
  keepLoopsRolled(result);
  widenBarriers(result);
  setTriple(result);
  SmallVector<uint32_t> words;
  spirv::SerializationOptions options;
  options.emitSymbolName = false;
  options.emitDebugInfo = keepLines(result);
  if (options.emitDebugInfo)
    allowLines(result);
  if (failed(spirv::serialize(result, words, options)))
    return failure();
  if (options.emitDebugInfo)
    dropLineExtension(words);
  return words;
}
