//===- StructuralPad.cpp - Gradients through padded tensors ---------------===//
//
// A tensor with zeros around it and between its elements can be read at points that
// have no part in an element of the gradient: they add 0. So the gradient of a
// convolution is a contraction, too.
//
//===----------------------------------------------------------------------===//

#include "Structural.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "weir/Autodiff/Autodiff.h"
#include "weir/Graph/Graph.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir::autodiff;

bool weir::autodiff::vanishesWith(Value value, Value factor) {
  if (value == factor)
    return true;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(op))
    return vanishesWith(op->getOperand(0), factor);
  return isa_and_nonnull<arith::MulFOp>(op) &&
         (vanishesWith(op->getOperand(0), factor) || vanishesWith(op->getOperand(1), factor));
}

/// Returns the source of a pad by a constant, and the low padding of each dimension, or
/// nothing if `value` is not such a pad. The source gets the gradient; padding has none.
std::optional<std::pair<Value, SmallVector<int64_t>>> Structural::stripPadding(Value value) {
  auto pad = value.getDefiningOp<tensor::PadOp>();
  if (!pad || !sums.isWanted(pad.getSource()) || !pad.getConstantPaddingValue() ||
      sums.isWanted(pad.getConstantPaddingValue()) || !pad.getSourceType().hasStaticShape())
    return std::nullopt;
  std::optional<SmallVector<int64_t>> low = getConstantIntValues(pad.getMixedLowPad());
  if (!low)
    return std::nullopt;
  // Nobody looks at the index of a dimension of size 1, so such a dimension must not grow.
  for (auto [before, size, padded] :
       llvm::zip_equal(*low, pad.getSourceType().getShape(), pad.getResultType().getShape()))
    if (before < 0 || padded < size || (padded != size && size <= 1))
      return std::nullopt;
  return std::pair(pad.getSource(), *low);
}

/// Returns the only input that is read by solved loops, if each of these is an index of it
/// and the yielded value is 0 where the input is. Such an input can be read from a tensor
/// with zeros around it and in between, so that points without a part in the element add 0.
std::optional<unsigned> Structural::findPadded(Body &body, Value yielded, ArrayRef<bool> solved) {
  llvm::SetVector<Value> used; // by the yielded value
  used.insert(yielded);
  for (size_t next = 0; next < used.size(); ++next)
    if (Operation *op = used[next].getDefiningOp(); op && op->getBlock() == &body.block)
      op->walk([&](Operation *inner) { used.insert_range(inner->getOperands()); });
  for (auto index : body.block.getOps<linalg::IndexOp>())
    if (solved[index.getDim()] && used.contains(index))
      return std::nullopt;
  std::optional<unsigned> padded;
  for (auto [number, input] : llvm::enumerate(body.inputs)) {
    BlockArgument argument = body.block.getArgument(number);
    if (!used.contains(argument))
      continue;
    bool isSolved = false;
    for (unsigned loop = 0; loop < solved.size(); ++loop) {
      if (!solved[loop] || !input.map.isFunctionOfDim(loop))
        continue;
      isSolved = true;
      for (AffineExpr index : input.map.getResults())
        if (index.isFunctionOfDim(loop) && !isa<AffineDimExpr>(index))
          return std::nullopt;
    }
    if (!isSolved)
      continue;
    if (padded || !vanishesWith(yielded, argument) || !isa<RankedTensorType>(input.value.getType()))
      return std::nullopt;
    padded = number;
  }
  return padded;
}

/// Whether the sum of products of the padded input and another one is worth a padded copy:
/// it is a contraction, since some dimension of the result belongs only to the other input,
/// or it has strides, which weir-drop-dilations removes later.
bool Structural::isWorthPadding(Body &body, Value yielded, unsigned padded,
                                const GradientTarget &target) {
  auto product = yielded.getDefiningOp<arith::MulFOp>();
  if (!product)
    return false;
  Value other =
      product.getLhs() == body.block.getArgument(padded) ? product.getRhs() : product.getLhs();
  auto argument = dyn_cast<BlockArgument>(other);
  if (!argument || argument.getOwner() != &body.block)
    return false;
  AffineMap map = body.inputs[argument.getArgNumber()].map;
  auto isOnlyOthers = [&](const DimRead &read) {
    return read.kind == DimRead::Own && op.getStaticLoopRanges()[read.loop] != 1 &&
           map.isFunctionOfDim(read.loop) && !body.inputs[padded].map.isFunctionOfDim(read.loop);
  };
  auto isStrided = [&](const DimRead &read) {
    return read.kind == DimRead::Solved && read.factor > 1;
  };
  auto isTap = [&](const DimRead &read) { // at multiples of a loop that the other has
    return read.kind != DimRead::Solved || isa<AffineConstantExpr>(read.at) ||
           llvm::any_of(map.getResults(), [&](AffineExpr index) {
             auto loop = dyn_cast<AffineDimExpr>(index);
             return loop && read.at.isFunctionOfDim(loop.getPosition());
           });
  };
  // With one tap every element is one product at most: there is nothing to walk.
  auto hasTaps = [&](const DimRead &read) {
    return read.kind == DimRead::Solved &&
           llvm::any_of(llvm::enumerate(op.getStaticLoopRanges()), [&](const auto &loop) {
             return loop.value() != 1 && read.at.isFunctionOfDim(loop.index());
           });
  };
  return llvm::any_of(target.reads, isOnlyOthers) ||
         (llvm::any_of(target.reads, isStrided) && llvm::all_of(target.reads, isTap) &&
          llvm::any_of(target.reads, hasTaps));
}

/// Lets `input` be read by the loops of `walk` instead of the solved loops: puts zeros
/// around the input and, for strides, between its elements. Returns false and changes
/// nothing if an index could leave the tensor, or if it would grow but not `mayGrow`.
bool Structural::pad(OpInput &input, const GradientTarget &target, const Walk &walk, bool mayGrow) {
  auto type = cast<RankedTensorType>(input.value.getType());
  unsigned count = op.getNumLoops();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), shape(type.getShape());
  if (llvm::is_contained(ranges, 0))
    return false;
  SmallVector<std::optional<int64_t>> first(count, 0), last;
  for (int64_t range : ranges)
    last.push_back(range - 1);
  SmallVector<int64_t> offsets(shape.size(), 0), steps(shape.size(), 1);
  unsigned newLoops = walk.ranges.size();
  SmallVector<AffineExpr> indices, dims = walk.getDims(builder);
  for (AffineExpr index : input.map.getResults())
    indices.push_back(index.replaceDims(dims));
  for (auto [dim, read] : llvm::enumerate(target.reads)) {
    if (read.kind != DimRead::Solved)
      continue;
    auto position = input.map.getResultPosition(builder.getAffineDimExpr(read.loop));
    auto getBound = [&](bool isUpper) {
      return getBoundForAffineExpr(read.at, count, 0, first, last, isUpper);
    };
    std::optional<int64_t> min = getBound(false), max = getBound(true);
    if (!position || !min || !max || *min < -(int64_t(1) << 31) || *max > int64_t(1) << 31)
      return false;
    int64_t elements = cast<RankedTensorType>(target.value.getType()).getDimSize(dim);
    AffineExpr element = builder.getAffineDimExpr(walk.loopOfDim[dim]);
    AffineExpr rest = read.at.replaceDims(dims);
    // Distance from the smallest index that occurs to the first element.
    int64_t offset = read.factor > 0 ? *max : elements - 1 - *min;
    int64_t size = elements - *min + *max, step = std::abs(read.factor);
    if (offset < 0 || offset + (shape[*position] - 1) * step >= size)
      return false;
    indices[*position] = simplifyAffineExpr(
        (read.factor > 0 ? element - rest : rest - element) + offset, newLoops, 0);
    offsets[*position] = offset;
    steps[*position] = step;
    shape[*position] = size;
  }
  if (shape != type.getShape()) {
    if (!mayGrow)
      return false;
    auto padded = RankedTensorType::get(shape, type.getElementType());
    Value zeros = createZeros(builder, op.getLoc(), padded);
    input.value = tensor::InsertSliceOp::create(
        builder, op.getLoc(), input.value, zeros, getAsIndexOpFoldResult(op.getContext(), offsets),
        getAsIndexOpFoldResult(op.getContext(), type.getShape()),
        getAsIndexOpFoldResult(op.getContext(), steps));
  }
  input.map = AffineMap::get(newLoops, 0, indices, op.getContext());
  return true;
}
