//===- NormalizeGraph.cpp - One form for each computation -----------------===//
//
// Runs on the output of front ends, before anything is differentiated. Later passes meet
// static types, reads within their tensors, no branches, and few kinds of ops.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/Branches.h"
#include "passes/graph/Indices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "weir/Graph/Graph.h"

namespace weir {
#define GEN_PASS_DEF_NORMALIZEGRAPHPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct NormalizeGraph : weir::impl::NormalizeGraphPassBase<NormalizeGraph> {
  using NormalizeGraphPassBase::NormalizeGraphPassBase;

  void runOnOperation() override;
};
} // namespace

static bool isStatic(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape();
}

bool weir::isIndexInRange(Value index, int64_t size) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return constant.sge(0) && constant.slt(size);
  auto loop = index.getDefiningOp<linalg::IndexOp>();
  if (!loop)
    return false;
  auto op = cast<linalg::LinalgOp>(loop->getParentOp());
  int64_t range = op.getStaticLoopRanges()[loop.getDim()];
  return range >= 0 && range <= size;
}

/// Clamps `value`, of an integer type or index, to [0, size).
static Value clamp(OpBuilder &builder, Location loc, Value value, int64_t size) {
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(value.getType(), number));
  };
  value = arith::MaxSIOp::create(builder, loc, value, constant(0));
  return arith::MinSIOp::create(builder, loc, value, constant(size - 1));
}

/// Clamps an index to its range. A wide integer is clamped before it becomes an index,
/// which may have fewer bits.
static Value clampIndex(OpBuilder &builder, Location loc, Value index, int64_t size) {
  auto cast = index.getDefiningOp<arith::IndexCastOp>();
  if (!cast || cast.getIn().getType().getIntOrFloatBitWidth() < 32)
    return clamp(builder, loc, index, size);
  Value value = clamp(builder, loc, cast.getIn(), size);
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
}

static void makeSafe(tensor::ExtractOp op) {
  auto type = op.getTensor().getType();
  if (!type.hasStaticShape() || llvm::is_contained(type.getShape(), 0))
    return; // never runs, or has no element that could be read
  OpBuilder builder(op);
  for (auto [dim, operand] : llvm::enumerate(op.getIndicesMutable()))
    if (int64_t size = type.getDimSize(dim); !isIndexInRange(operand.get(), size))
      operand.set(clampIndex(builder, op.getLoc(), operand.get(), size));
}

/// Clamps the computed offsets of a slice, so that it lies within the tensor.
template <typename Op> static void clampOffsets(Op op, RankedTensorType whole) {
  if (!whole.hasStaticShape())
    return;
  OpBuilder builder(op);
  for (unsigned dim = 0; dim < whole.getRank(); ++dim) {
    int64_t size = op.getStaticSizes()[dim], stride = op.getStaticStrides()[dim];
    if (!op.isDynamicOffset(dim) || ShapedType::isDynamic(size) || ShapedType::isDynamic(stride))
      continue;
    OpOperand &offset = op.getOffsetsMutable()[op.getIndexOfDynamicOffset(dim) -
                                               op.getOffsetSizeAndStrideStartOperandIndex()];
    int64_t places = whole.getDimSize(dim) - std::max<int64_t>(size - 1, 0) * stride;
    if (!isIndexInRange(offset.get(), places))
      offset.set(clampIndex(builder, op.getLoc(), offset.get(), places));
  }
}

/// Replaces negative padding by a slice before the padding.
static void cutBeforePadding(tensor::PadOp op) {
  std::optional<SmallVector<int64_t>> low = getConstantIntValues(op.getMixedLowPad()),
                                      high = getConstantIntValues(op.getMixedHighPad());
  auto isCut = [](int64_t number) { return number < 0; };
  if (!low || !high || !isStatic(op.getSourceType()) || !isStatic(op.getType()) ||
      (llvm::none_of(*low, isCut) && llvm::none_of(*high, isCut)))
    return;
  OpBuilder builder(op);
  RankedTensorType source = op.getSourceType();
  SmallVector<OpFoldResult> offsets, sizes, strides(source.getRank(), builder.getIndexAttr(1));
  SmallVector<int64_t> shape;
  for (auto [size, before, after] : llvm::zip_equal(source.getShape(), *low, *high)) {
    // A cut at one end may reach into the padding at the other.
    int64_t begin = std::clamp<int64_t>(-before, 0, size);
    int64_t end = std::max(begin, size + std::min<int64_t>(after, 0));
    shape.push_back(end - begin);
    offsets.push_back(builder.getIndexAttr(begin));
    sizes.push_back(builder.getIndexAttr(end - begin));
    if (-before > size || -after > size) // beyond both: the gate refuses it
      return;
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
  }
  Value cut = tensor::ExtractSliceOp::create(builder, op.getLoc(),
                                             RankedTensorType::get(shape, source.getElementType()),
                                             op.getSource(), offsets, sizes, strides);
  op.getSourceMutable().assign(cut);
  op.setStaticLow(*low);
  op.setStaticHigh(*high);
  op.getLowMutable().clear();
  op.getHighMutable().clear();
}

/// Infers the type of an op's result from the types that its operands have now.
static Type inferType(OpResult result) {
  Operation *op = result.getOwner();
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return tensor::ConcatOp::inferResultType(concat.getDim(), concat->getOperandTypes());
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::inferCollapsedType(collapse.getSrcType(),
                                                       collapse.getReassociationMaps());
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
    return destination.getTiedOpOperand(result)->get().getType();
  return result.getType();
}

/// Drops empty operands of a concatenation. Upstream lowers them to slices that its
/// verifier refuses.
static void dropEmpty(tensor::ConcatOp op) {
  if (isStatic(op.getType()) && op.getResultType().getNumElements() == 0) {
    IRRewriter rewriter(op);
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, op.getResultType().getShape(),
                                                 op.getResultType().getElementType());
    return;
  }
  SmallVector<Value> inputs(op.getInputs());
  llvm::erase_if(inputs, [](Value input) {
    auto type = cast<RankedTensorType>(input.getType());
    return type.hasStaticShape() && type.getNumElements() == 0;
  });
  if (inputs.empty() || inputs.size() == op.getInputs().size())
    return;
  op.getInputsMutable().assign(inputs);
  if (inputs.size() == 1 && inputs.front().getType() == op.getType()) {
    op.getResult().replaceAllUsesWith(inputs.front());
    op.erase();
  }
}

/// Replaces the padding of an empty tensor by a tensor generated from the pad's body.
static void generatePad(tensor::PadOp op) {
  if (!isStatic(op.getSourceType()) || op.getSourceType().getNumElements() != 0 ||
      !isStatic(op.getType()))
    return;
  IRRewriter rewriter(op);
  auto made = tensor::GenerateOp::create(rewriter, op.getLoc(), op.getType(), ValueRange());
  made.getBody().takeBody(op.getRegion());
  rewriter.replaceOp(op, made);
}

/// Replaces ops that fold, each according to its operands before any replacement, and
/// returns the others.
static SmallVector<Operation *> foldAll(ArrayRef<Operation *> ops) {
  SmallVector<Operation *> others;
  SmallVector<std::pair<Operation *, SmallVector<Value>>> folds;
  for (Operation *op : ops) {
    OpBuilder builder(op);
    SmallVector<Value> values;
    while (succeeded(builder.tryFold(op, values)) && values.empty())
      ; // changed in place; it may fold once more
    if (values.empty())
      others.push_back(op);
    else
      folds.emplace_back(op, values);
  }
  DenseMap<Value, Value> replaced;
  for (auto &[op, values] : folds)
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values)) {
      Value last = replaced.contains(value) ? replaced.lookup(value) : value;
      replaced[result] = last;
      result.replaceAllUsesWith(last);
    }
  for (auto &[op, values] : llvm::reverse(folds))
    op->erase();
  return others;
}

/// Rewrites elementwise ops on tensors, such as `arith.addf`, as `linalg.generic`.
/// Upstream's conversion would take quadratic time in chains of ops that fold.
static LogicalResult generalizeElementwise(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumOperands() > 0 &&
        llvm::all_of(op->getOperandTypes(), isStatic))
      ops.push_back(op);
  });
  RewritePatternSet patterns(function.getContext());
  linalg::populateElementwiseToLinalgConversionPatterns(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  PatternApplicator applicator(frozen);
  applicator.applyDefaultCostModel();
  PatternRewriter rewriter(function.getContext());
  for (Operation *op : foldAll(ops)) {
    rewriter.setInsertionPoint(op);
    if (failed(applicator.matchAndRewrite(op, rewriter)))
      return op->emitOpError("has no form as a linalg.generic");
  }
  return success();
}

/// Replaces a size or rank that a tensor's type states by a constant.
static void foldSize(Operation *op) {
  OpBuilder builder(op);
  SmallVector<Value> known;
  if (isa<tensor::DimOp, tensor::RankOp>(op) && succeeded(builder.tryFold(op, known))) {
    op->getResult(0).replaceAllUsesWith(known.front());
    op->erase();
  }
}

/// Replaces a reshape to a shape of constants: the result's type has it.
static void simplify(tensor::ReshapeOp op) {
  auto from = dyn_cast<RankedTensorType>(op.getSource().getType());
  auto to = dyn_cast<RankedTensorType>(op.getType());
  if (!isStatic(from) || !isStatic(to))
    return;
  OpBuilder builder(op);
  op.getResult().replaceAllUsesWith(weir::createReshapes(builder, op.getLoc(), to, op.getSource()));
  op.erase();
}

void NormalizeGraph::runOnOperation() {
  if (getOperation().isExternal())
    return;
  SmallVector<Operation *> erased;
  // In bodies of loops, too.
  getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<func::FuncOp>(op) || op->getParentOfType<linalg::LinalgOp>())
      return;
    if (auto cast = dyn_cast<tensor::CastOp>(op);
        cast && isStatic(cast.getSource().getType()) &&
        (!isStatic(cast.getType()) || cast.getType() == cast.getSource().getType())) {
      cast.getResult().replaceAllUsesWith(cast.getSource());
      erased.push_back(cast);
      return;
    }
    for (OpResult result : op->getResults())
      if (isa<RankedTensorType>(result.getType()) && !isStatic(result.getType()))
        if (Type type = inferType(result); isStatic(type))
          result.setType(type);
  });
  getOperation().walk(foldSize);
  getOperation().walk(simplify);
  getOperation().walk([](cf::AssertOp op) { op.erase(); }); // an effect, for what follows
  getOperation().walk([](tensor::PadOp op) { generatePad(op); });
  IRRewriter rewriter(&getContext());
  getOperation().walk([&](tensor::GenerateOp op) {
    rewriter.setInsertionPoint(op);
    if (isStatic(op.getType()))
      (void)linalg::rewriteInDestinationPassingStyle(rewriter, op); // it has one block
  });
  replaceBranches(getOperation());
  getOperation().walk(makeSafe);
  getOperation().walk([](tensor::ExtractSliceOp op) { clampOffsets(op, op.getSourceType()); });
  getOperation().walk([](tensor::InsertSliceOp op) { clampOffsets(op, op.getType()); });
  getOperation().walk(cutBeforePadding);
  getOperation().walk(dropEmpty);
  for (Operation *op : llvm::reverse(erased))
    op->erase();
  if (failed(generalizeElementwise(getOperation())))
    signalPassFailure();
}
