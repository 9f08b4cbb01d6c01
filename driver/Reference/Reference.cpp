//===- Reference.cpp - A graph on the host, compiled ----------------------===//
//
// Upstream's own way from tensors to machine code: bufferize, loops, LLVM, JIT.
// It shares the parser and the decompositions of norms with the compiler, and
// nothing that forms, places or orders kernels.
//
//===----------------------------------------------------------------------===//

#include "driver/Reference/Reference.h"

#include "Widen.h"
#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/Registration.h"
#include "weir/Artifact/Floats.h"
#include "weir/Graph/Graph.h"
#include "llvm/Support/TargetSelect.h"

#include <bit>
#include <cmath>
#include <memory>

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// Functions that compiled code calls
//===----------------------------------------------------------------------===//

namespace {
/// Serves compiled code in a run: it allocates memory, which lives until the run is over, and asks
/// whether a division has a quotient.
class HostRun {
public:
  HostRun() { current = this; }
  ~HostRun() { current = nullptr; }
  static void *allocate(uint64_t bytes) {
    current->blocks.push_back(std::make_unique<char[]>(std::max<uint64_t>(bytes, 1)));
    return current->blocks.back().get();
  }
  static void release(void *) {}

  /// Returns `y`, or 1 where `x` divided by it has no quotient. `least` is the least number of the
  /// type that is divided.
  static int64_t getDivisor(int64_t x, int64_t y, int64_t least) {
    bool hasNone = y == 0 || (x == least && y == -1);
    current->lacksQuotient |= hasNone;
    return hasNone ? 1 : y;
  }

  bool lacksQuotient = false;

private:
  static thread_local HostRun *current;
  std::vector<std::unique_ptr<char[]>> blocks;
};
thread_local HostRun *HostRun::current = nullptr;
} // namespace

static constexpr StringLiteral divisorName = "weir_get_divisor";

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static DType getDType(Type type) {
  StringRef name = schedule::getDType(type);
  if (!name.empty() && !type.isUnsignedInteger())
    return name.str();
  std::string text;
  llvm::raw_string_ostream(text) << type;
  throw Error("the reference has no tensors of element type " + text);
}

static std::string describe(const TensorSpec &spec) {
  std::string text = spec.dtype + "[";
  for (size_t i = 0; i < spec.shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(spec.shape[i]);
  return text + "]";
}

static TensorSpec getSpec(Type type, StringRef name) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    throw Error("'" + name.str() + "' is no tensor of static shape");
  TensorSpec spec;
  spec.name = name.str();
  spec.dtype = getDType(tensor.getElementType());
  spec.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  return spec;
}

static std::string getName(DictionaryAttr attributes, StringRef prefix, unsigned index) {
  if (attributes)
    if (auto name = attributes.getAs<StringAttr>(schedule::nameAttrName))
      return name.str();
  return (prefix + Twine(index)).str();
}

/// Returns the argument's bytes as the compiled code wants them.
static Bytes convertArgument(const Tensor &given, const TensorSpec &wanted) {
  if (given.spec.shape != wanted.shape ||
      (given.spec.dtype != wanted.dtype && !(wanted.dtype == "F64" && isFloat(given.spec.dtype))))
    throw Error("argument '" + wanted.name + "' is " + describe(given.spec) + ", the entry takes " +
                describe(wanted));
  if (given.spec.dtype == wanted.dtype)
    return given.data;
  return convertFloats(given, wanted.dtype).data;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static void registerReference(DialectRegistry &registry) {
  registerEverything(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// Slices get all of the dimensions of what they are slices of: upstream crashes on buffers
/// of slices that drop some and have strides in others (SubViewOp::getDroppedDims).
static void keepDimensions(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  function.walk([&](Operation *op) {
    rewriter.setInsertionPoint(op);
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op); slice && slice.getDroppedDims().any()) {
      Value whole = tensor::ExtractSliceOp::create(rewriter, op->getLoc(), slice.getSource(),
                                                   slice.getMixedOffsets(), slice.getMixedSizes(),
                                                   slice.getMixedStrides());
      rewriter.replaceOp(op, createReshapes(rewriter, op->getLoc(), slice.getType(), whole));
    }
    if (auto slice = dyn_cast<tensor::InsertSliceOp>(op); slice && slice.getDroppedDims().any()) {
      auto whole = RankedTensorType::get(slice.getStaticSizes(), slice.getType().getElementType());
      slice.getSourceMutable().assign(
          createReshapes(rewriter, op->getLoc(), whole, slice.getSource()));
    }
  });
}

/// Gives every use of an empty tensor a tensor of its own. Those of one empty tensor would alias
/// each other, and bufferization compares each write of such a set with each read: of a chain of n
/// operations, in time n^3.
static void separateEmpties(func::FuncOp function) {
  SmallVector<tensor::EmptyOp> empties;
  function.walk([&](tensor::EmptyOp empty) { empties.push_back(empty); });
  for (tensor::EmptyOp empty : empties)
    for (OpOperand &use : llvm::make_early_inc_range(empty->getUses())) {
      OpBuilder builder(use.getOwner());
      use.set(builder.clone(*empty)->getResult(0));
    }
}

/// Replaces constants without elements by empty tensors: upstream divides by the size of a
/// resource.
static void dropEmptyConstants(func::FuncOp function) {
  function.walk([](arith::ConstantOp constant) {
    auto type = dyn_cast<RankedTensorType>(constant.getType());
    if (!type || type.getNumElements() > 0)
      return;
    OpBuilder builder(constant);
    constant.replaceAllUsesWith(tensor::EmptyOp::create(builder, constant.getLoc(), type.getShape(),
                                                        type.getElementType())
                                    .getResult());
    constant.erase();
  });
}

/// Turns tensors into buffers, and functions' results into arguments.
static void addBufferPasses(PassManager &manager) {
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.allowReturnAllocsFromLoops = true;
  bufferize.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
  manager.addPass(bufferization::createOneShotBufferizePass(bufferize));
  bufferization::BufferResultsToOutParamsPassOptions outParams;
  outParams.modifyPublicFunctions = true;
  manager.addPass(bufferization::createBufferResultsToOutParamsPass(outParams));
}

/// Whether `x` is infinite, or, if `isNormal`, neither that nor 0, NaN or denormal.
static Value classify(OpBuilder &builder, Location loc, Value x, bool isNormal) {
  auto type = cast<FloatType>(x.getType());
  Value size = math::AbsFOp::create(builder, loc, x);
  auto compare = [&](arith::CmpFPredicate predicate, const APFloat &limit) -> Value {
    Value bound = arith::ConstantOp::create(builder, loc, FloatAttr::get(type, limit));
    return arith::CmpFOp::create(builder, loc, predicate, size, bound);
  };
  const llvm::fltSemantics &format = type.getFloatSemantics();
  APFloat infinity = APFloat::getInf(format), smallest = APFloat::getSmallestNormalized(format);
  if (!isNormal)
    return compare(arith::CmpFPredicate::OEQ, infinity);
  return arith::AndIOp::create(builder, loc, compare(arith::CmpFPredicate::OGE, smallest),
                               compare(arith::CmpFPredicate::OLT, infinity));
}

/// Rounds an f64 to an f32 so that rounding that to bf16 is as if there were no f32 between:
/// what is not exact becomes odd, which no value half way between two of bf16 is.
static Value roundToOdd(OpBuilder &builder, Location loc, Value x) {
  Type f32 = builder.getF32Type(), f64 = x.getType(), i32 = builder.getI32Type();
  Value nearest = arith::TruncFOp::create(builder, loc, f32, x);
  Value back = arith::ExtFOp::create(builder, loc, f64, nearest);
  Value bits = arith::BitcastOp::create(builder, loc, i32, nearest);
  Value one = arith::ConstantIntOp::create(builder, loc, i32, 1);
  Value zero = arith::ConstantIntOp::create(builder, loc, i32, 0);
  Value minusOne = arith::ConstantIntOp::create(builder, loc, i32, -1);
  // The neighbour of an even one towards x is odd.
  Value isBeyond = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT,
                                         math::AbsFOp::create(builder, loc, x),
                                         math::AbsFOp::create(builder, loc, back));
  Value step = arith::SelectOp::create(builder, loc, isBeyond, one, minusOne);
  Value isEven = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       arith::AndIOp::create(builder, loc, bits, one), zero);
  Value isRounded = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ONE, x, back);
  Value moves = arith::AndIOp::create(builder, loc, isRounded, isEven);
  Value odd = arith::AddIOp::create(builder, loc, bits,
                                    arith::SelectOp::create(builder, loc, moves, step, zero));
  return arith::BitcastOp::create(builder, loc, f32, odd);
}

/// Rounds to bf16, to the nearest, ties to even. LLVM's optimizer calls it for its own
/// casts, by the name that compiler-rt has for it.
static __bf16 roundToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bits = std::isnan(value) ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
  return std::bit_cast<__bf16>(uint16_t(bits >> 16));
}

/// Makes each division of integers ask for its divisor: one without a quotient would end the
/// process on x86.
static void guardDivisions(ModuleOp module) {
  Type i64 = IntegerType::get(module.getContext(), 64);
  func::FuncOp getDivisor;
  module.walk([&](Operation *op) {
    bool isSigned =
        isa<arith::DivSIOp, arith::RemSIOp, arith::CeilDivSIOp, arith::FloorDivSIOp>(op);
    if (!isSigned && !isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op))
      return;
    APInt constant;
    if (matchPattern(op->getOperand(1), m_ConstantInt(&constant)) && !constant.isZero() &&
        !constant.isAllOnes())
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Type type = op->getOperand(1).getType();
    unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    auto widen = [&](Value value) -> Value {
      if (type.isIndex())
        return arith::IndexCastOp::create(b, i64, value);
      if (bits == 64)
        return value;
      return isSigned ? arith::ExtSIOp::create(b, i64, value).getResult()
                      : arith::ExtUIOp::create(b, i64, value).getResult();
    };
    // All unsigned divisions but those by 0 have a quotient.
    int64_t least = isSigned ? APInt::getSignedMinValue(bits).getSExtValue() : 1;
    Value x =
        isSigned ? widen(op->getOperand(0)) : arith::ConstantIntOp::create(b, i64, 0).getResult();
    Value limit = arith::ConstantIntOp::create(b, i64, least);
    if (!getDivisor) {
      OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
      getDivisor = func::FuncOp::create(top, module.getLoc(), divisorName,
                                        b.getFunctionType({i64, i64, i64}, {i64}));
      getDivisor.setPrivate();
    }
    Value divisor =
        func::CallOp::create(b, getDivisor, ValueRange{x, widen(op->getOperand(1)), limit})
            .getResult(0);
    if (type.isIndex())
      divisor = arith::IndexCastOp::create(b, type, divisor);
    else if (bits < 64)
      divisor = arith::TruncIOp::create(b, type, divisor);
    op->setOperand(1, divisor);
  });
}

/// Gives a power the exponent that the host takes, an i32. Exponents beyond it keep whether they
/// are odd; the powers of all but 1 and -1 have long been 0 or infinite.
static void narrowExponent(math::FPowIOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value n = op.getRhs();
  auto type = cast<IntegerType>(n.getType());
  Type narrow = builder.getI32Type();
  if (type.getWidth() < 32) {
    op.getRhsMutable().assign(arith::ExtSIOp::create(builder, loc, narrow, n));
    return;
  }
  if (type.getWidth() == 32)
    return;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, type, value);
  };
  constexpr int64_t limit = std::numeric_limits<int32_t>::max() - 1; // even
  Value odd = arith::AndIOp::create(builder, loc, n, constant(1));
  n = arith::MaxSIOp::create(builder, loc, n, constant(-limit));
  n = arith::MinSIOp::create(builder, loc, n, constant(limit));
  n = arith::OrIOp::create(builder, loc, n, odd);
  op.getRhsMutable().assign(arith::TruncIOp::create(builder, loc, narrow, n));
}

/// Expands what upstream lowers to calls of a library, which are copies of slices and
/// casts of bf16, or not at all: two classes of floats, powers by other integers than
/// i32, and `math.clampf`, whose own expansion takes the limits for each other.
static void expandForHost(ModuleOp module) {
  module.walk([](arith::TruncFOp op) {
    OpBuilder builder(op);
    if (op.getIn().getType().isF64() && op.getType().isBF16())
      op.getInMutable().assign(roundToOdd(builder, op.getLoc(), op.getIn()));
  });
  RewritePatternSet casts(module.getContext());
  arith::populateExpandBFloat16Patterns(casts);
  walkAndApplyPatterns(module, std::move(casts));
  module.walk([](math::ClampFOp op) {
    OpBuilder builder(op);
    Value atLeast = arith::MaximumFOp::create(builder, op.getLoc(), op.getValue(), op.getMin());
    op.replaceAllUsesWith(
        arith::MinimumFOp::create(builder, op.getLoc(), atLeast, op.getMax()).getResult());
    op.erase();
  });
  module.walk([](Operation *op) {
    if (!isa<math::IsInfOp, math::IsNormalOp>(op))
      return;
    OpBuilder builder(op);
    op->getResult(0).replaceAllUsesWith(
        classify(builder, op->getLoc(), op->getOperand(0), isa<math::IsNormalOp>(op)));
    op->erase();
  });
  module.walk(narrowExponent);
  SmallVector<memref::CopyOp> copies;
  module.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    OpBuilder builder(copy);
    linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(), copy.getTarget());
    copy.erase();
  }
}

static void addHostPasses(PassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

/// Puts gradients in the place of `autodiff` ops; they are taken of the norms that
/// the graph level raises, as the compiler does. Other graphs stay as they came.
static LogicalResult expandGradients(ModuleOp module) {
  WalkResult found = module.walk([](autodiff::VjpOp) { return WalkResult::interrupt(); });
  if (!found.wasInterrupted())
    return success();
  PassManager manager(module.getContext());
  addGradientPasses(manager);
  return manager.run(module);
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

static constexpr StringLiteral hostName = "weir_reference_entry";

Reference::Reference(const std::string &graphText, const std::string &entry,
                     ReferencePrecision precision)
    : entry(entry) {
  DialectRegistry registry;
  registerReference(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  context.printStackTraceOnDiagnostic(false);
  std::string problems;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      problems += (problems.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });

  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(graphText, &context, "graph");
  if (!module)
    throw Error("the graph does not parse: " + problems);
  if (auto function = module->lookupSymbol<func::FuncOp>(entry))
    function.setPublic(); // an entry for the reference
  if (failed(expandGradients(*module)))
    throw Error("the graph has no gradients: " + problems);
  func::FuncOp function;
  for (auto candidate : llvm::make_early_inc_range(module->getOps<func::FuncOp>())) {
    if (candidate.getName() == entry)
      function = candidate;
    else
      candidate.erase();
  }
  if (!function || function.isExternal())
    throw Error("the graph has no entry '" + entry + "'");

  PassManager decompose(&context);
  decompose.addPass(createDifferentiatePass()); // stops of gradients go
  decompose.addNestedPass<func::FuncOp>(createExpandRandomPass());
  decompose.addPass(createUnrollLoopsPass());
  decompose.addNestedPass<func::FuncOp>(createNormalizeGraphPass());
  decompose.addNestedPass<func::FuncOp>(createDecomposeMatricesPass());
  decompose.addNestedPass<func::FuncOp>(createDecomposeNormsPass());
  if (precision == ReferencePrecision::AsWritten)
    decompose.addNestedPass<func::FuncOp>(createWidenArithmeticPass());
  if (failed(decompose.run(*module)))
    throw Error("entry '" + entry + "' has no reference: " + problems);
  if (precision == ReferencePrecision::Float64 && failed(widenToFloat64(function)))
    throw Error("entry '" + entry + "' has no f64 reference: " + problems);

  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    arguments.push_back(
        getSpec(function.getArgumentTypes()[i], getName(function.getArgAttrDict(i), "arg", i)));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    results.push_back(
        getSpec(function.getResultTypes()[i], getName(function.getResultAttrDict(i), "result", i)));

  keepDimensions(function);
  dropEmptyConstants(function);
  separateEmpties(function);
  // Names and kinds mean nothing to the host; its wrapper takes plain pointers.
  function.setName(hostName);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.setArgAttrs(i, ArrayRef<NamedAttribute>());
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    function.setResultAttrs(i, ArrayRef<NamedAttribute>());
  function->setAttr("llvm.emit_c_interface", UnitAttr::get(&context));
  PassManager toBuffers(&context), lower(&context);
  addBufferPasses(toBuffers);
  addHostPasses(lower);
  if (failed(toBuffers.run(*module)))
    throw Error("entry '" + entry + "' has no reference: " + problems);
  expandForHost(*module);
  guardDivisions(*module);
  if (failed(lower.run(*module)))
    throw Error("entry '" + entry + "' has no reference: " + problems);

  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  ExecutionEngineOptions options;
  auto optimize = makeOptimizingTransformer(/*optLevel=*/2, /*sizeLevel=*/0, nullptr);
  options.transformer = optimize;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Default;
  // For perf it would write a folder .debug of the user's, for each run.
  options.enablePerfNotificationListener = false;
  llvm::Expected<std::unique_ptr<ExecutionEngine>> engine =
      ExecutionEngine::create(*module, options);
  if (!engine)
    throw Error("the host's compiler failed: " + llvm::toString(engine.takeError()));
  (*engine)->registerSymbols([](llvm::orc::MangleAndInterner intern) {
    llvm::orc::SymbolMap symbols;
    symbols[intern("malloc")] = {llvm::orc::ExecutorAddr::fromPtr(&HostRun::allocate),
                                 llvm::JITSymbolFlags::Exported};
    symbols[intern("free")] = {llvm::orc::ExecutorAddr::fromPtr(&HostRun::release),
                               llvm::JITSymbolFlags::Exported};
    symbols[intern("__truncsfbf2")] = {llvm::orc::ExecutorAddr::fromPtr(&roundToBf16),
                                       llvm::JITSymbolFlags::Exported |
                                           llvm::JITSymbolFlags::Callable};
    symbols[intern(divisorName)] = {llvm::orc::ExecutorAddr::fromPtr(&HostRun::getDivisor),
                                    llvm::JITSymbolFlags::Exported |
                                        llvm::JITSymbolFlags::Callable};
    return symbols;
  });
  code = std::move(*engine);
}

std::vector<TensorSpec> weir::getResultTypes(const std::string &graphText,
                                             const std::string &entry) {
  DialectRegistry registry;
  registerReference(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(graphText, &context, "graph");
  auto function = module ? module->lookupSymbol<func::FuncOp>(entry) : func::FuncOp();
  if (!function)
    throw Error("the graph has no entry '" + entry + "'");
  std::vector<TensorSpec> types;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    types.push_back(
        getSpec(function.getResultTypes()[i], getName(function.getResultAttrDict(i), "result", i)));
  return types;
}

Reference::~Reference() = default;

std::vector<Tensor> Reference::run(const std::vector<Tensor> &given) const {
  if (given.size() != arguments.size())
    throw Error("entry '" + entry + "' takes " + std::to_string(arguments.size()) +
                " arguments, given are " + std::to_string(given.size()));
  std::vector<Bytes> data;
  for (size_t i = 0; i < given.size(); ++i)
    data.push_back(convertArgument(given[i], arguments[i]));
  std::vector<Tensor> made;
  for (const TensorSpec &spec : results)
    made.push_back({spec, Bytes(getByteSize(spec))});

  // A memref descriptor: base, aligned pointer, offset, sizes, strides.
  std::vector<std::vector<int64_t>> descriptors;
  auto describeBuffer = [&](unsigned char *bytes, const std::vector<int64_t> &shape) {
    std::vector<int64_t> descriptor = {reinterpret_cast<int64_t>(bytes),
                                       reinterpret_cast<int64_t>(bytes), 0};
    descriptor.insert(descriptor.end(), shape.begin(), shape.end());
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      strides[i - 1] = strides[i] * shape[i];
    descriptor.insert(descriptor.end(), strides.begin(), strides.end());
    descriptors.push_back(std::move(descriptor));
  };
  for (size_t i = 0; i < data.size(); ++i)
    describeBuffer(data[i].data(), arguments[i].shape);
  for (Tensor &result : made)
    describeBuffer(result.data.data(), result.spec.shape);
  std::vector<void *> pointers(descriptors.size());
  SmallVector<void *> packed;
  for (size_t i = 0; i < descriptors.size(); ++i) {
    pointers[i] = descriptors[i].data();
    packed.push_back(&pointers[i]);
  }
  HostRun run;
  if (llvm::Error error = code->invokePacked(("_mlir_ciface_" + hostName).str(), packed))
    throw Error("the reference failed: " + llvm::toString(std::move(error)));
  if (run.lacksQuotient)
    throw Error("entry '" + entry +
                "' divides an integer by 0, or the least one by -1, which has no quotient; run it "
                "with other arguments");
  return made;
}

std::vector<Tensor> weir::runReference(const std::string &graphText, const std::string &entry,
                                       const std::vector<Tensor> &arguments,
                                       ReferencePrecision precision) {
  return Reference(graphText, entry, precision).run(arguments);
}
