//===- WidenArithmetic.cpp - Arithmetic of f16 and bf16 in f32 ------------===//
//
// Upstream's emulation of unsupported floats, with three holes closed: it lets
// its casts cancel each other (`contract`), it rounds the running sum of a
// reduction at every step, and it leaves casts of constants behind.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/DialectConversion.h"
#include "weir/Graph/Graph.h"

namespace weir {
#define GEN_PASS_DEF_WIDENARITHMETICPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct WidenArithmetic : weir::impl::WidenArithmeticPassBase<WidenArithmetic> {
  using WidenArithmeticPassBase::WidenArithmeticPassBase;

  void runOnOperation() override;
};
} // namespace

static bool isHalf(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isF16() || type.isBF16();
}

//===----------------------------------------------------------------------===//
// Running values
//===----------------------------------------------------------------------===//

/// Casts each element of `tensor` to `element`.
static Value castElements(OpBuilder &builder, Location loc, Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
  auto identity = AffineMap::getMultiDimIdentityMap(type.getRank(), builder.getContext());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  bool widens = isHalf(type);
  auto op = linalg::GenericOp::create(
      builder, loc, TypeRange{empty.getType()}, ValueRange{tensor}, ValueRange{empty},
      ArrayRef<AffineMap>{identity, identity}, loops,
      [&](OpBuilder &b, Location at, ValueRange elements) {
        Value value = widens ? arith::ExtFOp::create(b, at, element, elements[0]).getResult()
                             : arith::TruncFOp::create(b, at, element, elements[0]).getResult();
        linalg::YieldOp::create(b, at, value);
      });
  return op.getResult(0);
}

/// Returns `init` in f32.
static Value widenInit(OpBuilder &builder, Value init) {
  Type wide = builder.getF32Type();
  if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
    auto type = cast<RankedTensorType>(init.getType());
    Value empty = tensor::EmptyOp::create(builder, init.getLoc(), type.getShape(), wide);
    Value value = arith::ExtFOp::create(builder, init.getLoc(), wide, fill.getInputs()[0]);
    return linalg::FillOp::create(builder, init.getLoc(), value, empty).getResult(0);
  }
  return castElements(builder, init.getLoc(), init, wide);
}

/// Keeps the accumulator of a reduction in f32, and products that it adds: they are not
/// rounded, like those that an fma adds.
static void widenRunningValues(linalg::GenericOp op) {
  OpBuilder outside(op);
  Type wide = outside.getF32Type();
  auto widen = [&](OpBuilder &builder, Operation *user) {
    for (OpOperand &operand : user->getOpOperands())
      if (isHalf(operand.get().getType()))
        operand.set(arith::ExtFOp::create(builder, user->getLoc(), wide, operand.get()));
    user->getResult(0).setType(wide);
  };
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    OpOperand *init = op.getDpsInitOperand(i);
    if (!isHalf(init->get().getType()) || op.getMatchingIndexingMap(init).isPermutation())
      continue;
    std::optional<Combiner> combiner = getCombiner(op, i);
    if (!combiner || !combiner->isExclusive() ||
        !isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp>(combiner->combine))
      continue;
    auto [added, combine, running] = *combiner;
    auto product = added.getDefiningOp<arith::MulFOp>();
    running.setType(wide);
    if (product && isa<arith::AddFOp>(combine) && product->hasOneUse() &&
        product->getBlock() == op.getBody()) {
      OpBuilder builder(product);
      widen(builder, product);
    }
    OpBuilder builder(combine);
    widen(builder, combine);

    init->set(widenInit(outside, init->get()));
    Value result = op.getResult(i);
    Type narrow = getElementTypeOrSelf(result);
    result.setType(init->get().getType());
    OpBuilder after(op->getContext());
    after.setInsertionPointAfter(op);
    Value rounded = castElements(after, op.getLoc(), result, narrow);
    result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
  }
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

static LogicalResult emulate(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  Type wide = Float32Type::get(context);
  SmallVector<Type> narrow = {Float16Type::get(context), BFloat16Type::get(context)};
  SetVector<Type> supported; // the converter of `math` refers to it
  supported.insert(wide);
  supported.insert(Float64Type::get(context));
  TypeConverter arithTypes, mathTypes;
  arith::populateEmulateUnsupportedFloatsConversions(arithTypes, narrow, wide);
  math::populateExtendToSupportedTypesTypeConverter(mathTypes, supported, wide);
  // Both name what they replace; everything else stays as it is.
  for (bool isMath : {false, true}) {
    RewritePatternSet patterns(context);
    ConversionTarget target(*context);
    if (isMath) {
      math::populateExtendToSupportedTypesPatterns(patterns, mathTypes);
      math::populateExtendToSupportedTypesConversionTarget(target, mathTypes);
    } else {
      arith::populateEmulateUnsupportedFloatsPatterns(patterns, arithTypes);
      arith::populateEmulateUnsupportedFloatsLegality(target, arithTypes);
      // Widened to f32 they would vanish. As they are, the gate refuses them.
      target.addLegalOp<arith::ScalingExtFOp, arith::ScalingTruncFOp>();
    }
    if (failed(applyPartialConversion(function, target, std::move(patterns))))
      return failure();
  }
  return success();
}

/// Clears fast-math flags of casts, since a cast rounds: two in a row are not the identity.
/// Folds casts of constants.
static void makeCastsExact(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  function.walk([&](Operation *op) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      return;
    op->removeAttr("fastmath");
    FloatAttr value;
    if (!matchPattern(op->getOperand(0), m_Constant(&value)))
      return;
    SmallVector<OpFoldResult> folded;
    if (failed(op->fold({value}, folded)) || folded.size() != 1)
      return;
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, cast<TypedAttr>(cast<Attribute>(folded.front())));
  });
}

void WidenArithmetic::runOnOperation() {
  func::FuncOp function = getOperation();
  auto found = function.walk([](Operation *op) {
    return llvm::any_of(op->getResultTypes(), isHalf) ? WalkResult::interrupt()
                                                      : WalkResult::advance();
  });
  bool hasHalves = found.wasInterrupted() || llvm::any_of(function.getArgumentTypes(), isHalf);
  if (!hasHalves)
    return;
  SmallVector<linalg::LinalgOp> reductions;
  function.walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() > 0 && llvm::any_of(op->getResultTypes(), isHalf))
      reductions.push_back(op);
  });
  IRRewriter rewriter(&getContext());
  for (linalg::LinalgOp op : reductions) {
    auto generic = dyn_cast<linalg::GenericOp>(*op);
    if (!generic) {
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::GenericOp> made = linalg::generalizeNamedOp(rewriter, op);
      if (failed(made))
        continue;
      generic = *made;
    }
    widenRunningValues(generic);
  }
  if (failed(emulate(function)))
    return signalPassFailure();
  makeCastsExact(function);
}
