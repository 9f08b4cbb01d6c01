//===- BlockDomain.cpp - Domains of kernels that compute in blocks --------===//
//
// Contractions that are computed in blocks are tied to the dimensions of what reads them: another
// contraction, the reductions of a row, or both in one walk.
//
//===----------------------------------------------------------------------===//

#include "weir/Kernels/Domain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace weir;

/// Returns the loops of a pointwise op at which it makes the element of its result at `indices`.
static SmallVector<AffineExpr> getLoopsOfResult(OpResult result, ArrayRef<AffineExpr> indices) {
  auto op = cast<linalg::GenericOp>(result.getOwner());
  SmallVector<AffineExpr> loops(op.getNumLoops(), getAffineConstantExpr(0, op.getContext()));
  for (auto [written, index] :
       llvm::zip_equal(op.getIndexingMapMatchingResult(result).getResults(), indices))
    if (auto loop = dyn_cast<AffineDimExpr>(written))
      loops[loop.getPosition()] = index;
  return loops;
}

/// Returns the indices at which an op reads or writes an operand at these values of its loops.
static SmallVector<AffineExpr> getIndicesAt(OpOperand *operand, ArrayRef<AffineExpr> loops) {
  SmallVector<AffineExpr> indices;
  for (AffineExpr index :
       getAccessMap(cast<linalg::GenericOp>(operand->getOwner()), operand).getResults())
    indices.push_back(index.replaceDims(loops));
  return indices;
}

/// Calls `found` for each inner contraction that `tensor` is computed from, with the indices at
/// which it is read where `tensor` is read at `at`. Returns false if one is read in a way that has
/// no such indices.
static bool findInner(Value tensor, ArrayRef<AffineExpr> at, const Blocks &blocks,
                      function_ref<bool(const Blocks::Inner &, ArrayRef<AffineExpr>)> found) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op)
    return true;
  auto inner = llvm::find_if(blocks.inner, [&](const auto &entry) { return entry.op == op; });
  if (inner != blocks.inner.end())
    return found(*inner, at);
  if (getOpShape(op) != OpShape::Pointwise)
    return true;
  SmallVector<AffineExpr> loops = getLoopsOfResult(cast<OpResult>(tensor), at);
  return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
    return findInner(operand->get(), getIndicesAt(operand, loops), blocks, found);
  });
}

SmallVector<AffineExpr> KernelDomain::getLoopDims(linalg::GenericOp op) const {
  SmallVector<AffineExpr> loops;
  for (int64_t dim : getDims(op))
    loops.push_back(dim < 0 ? getAffineConstantExpr(0, op.getContext())
                            : getAffineDimExpr(dim, op.getContext()));
  return loops;
}

/// Ties the reductions of rows that a walk makes beside the contraction's sums: they reduce what it
/// sums, and have the rows at which its factors read them.
void KernelDomain::layOutReductions(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (getOpShape(op) == OpShape::Reduction)
      for (auto [dim, iterator] :
           llvm::zip_equal(dims[op], cast<linalg::GenericOp>(op).getIteratorTypesArray()))
        if (dim == unknownDim && iterator == utils::IteratorType::reduction)
          dim = sizes.size() - 1;
  linalg::GenericOp outer = contractions.front();
  SmallVector<AffineExpr> outerLoops = getLoopDims(outer);
  for (OpOperand *factor : outer.getDpsInputOperands()) {
    auto reader = factor->get().getDefiningOp<linalg::GenericOp>();
    if (!reader || getOpShape(reader) != OpShape::Pointwise)
      continue;
    SmallVector<AffineExpr> loops =
        getLoopsOfResult(cast<OpResult>(factor->get()), getIndicesAt(factor, outerLoops));
    for (OpOperand *operand : reader.getDpsInputOperands()) {
      auto reduction = operand->get().getDefiningOp<linalg::GenericOp>();
      if (!reduction || getOpShape(reduction) != OpShape::Reduction)
        continue;
      auto found = dims.find(reduction);
      if (found == dims.end())
        continue;
      for (auto [written, read] : llvm::zip_equal(
               reduction.getIndexingMapMatchingResult(cast<OpResult>(operand->get())).getResults(),
               getIndicesAt(operand, loops))) {
        auto loop = dyn_cast<AffineDimExpr>(written), dim = dyn_cast<AffineDimExpr>(read);
        if (loop && dim && found->second[loop.getPosition()] == unknownDim)
          found->second[loop.getPosition()] = dim.getPosition();
      }
    }
  }
}

/// Whether all reductions lack the same dimension of the contraction's result, and it alone. Sets
/// it.
bool KernelDomain::hasRowsOfReductions(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    if (getOpShape(op) != OpShape::Reduction)
      continue;
    int64_t lacked = -1;
    for (int64_t dim = 0; dim < int64_t(numRows); ++dim) {
      if (llvm::is_contained(getDims(op), dim))
        continue;
      if (lacked >= 0)
        return false;
      lacked = dim;
    }
    if (lacked < 0 || (blocks->columnDim >= 0 && blocks->columnDim != lacked))
      return false;
    blocks->columnDim = lacked;
  }
  return true;
}

/// Whether the contraction's factor is the exponentials that the rows' reductions sum, at the same
/// points.
bool KernelDomain::readsExponentials() const {
  const SoftmaxSums &sums = *blocks->softmax;
  auto op = blocks->factor->get().getDefiningOp<linalg::GenericOp>();
  if (!op || getOpShape(op) != OpShape::Pointwise || op.getNumDpsInputs() != 2 ||
      op->getNumResults() != 1)
    return false;
  auto power = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<math::ExpOp>();
  auto above = power ? power.getOperand().getDefiningOp<arith::SubFOp>() : nullptr;
  OpOperand *element = nullptr, *maximum = nullptr;
  for (OpOperand *operand : op.getDpsInputOperands())
    (operand->get() == sums.maximum->getResult(0) ? maximum : element) = operand;
  if (!above || !element || !maximum || element->get() != sums.element->get() ||
      above.getLhs() != op.getMatchingBlockArgument(element) ||
      above.getRhs() != op.getMatchingBlockArgument(maximum))
    return false;
  auto outer = cast<linalg::GenericOp>(blocks->factor->getOwner());
  if (getElementTypeOrSelf(outer->getResult(0)) != getElementTypeOrSelf(blocks->factor->get()))
    return false;
  SmallVector<AffineExpr> loops = getLoopsOfResult(
      cast<OpResult>(blocks->factor->get()), getIndicesAt(blocks->factor, getLoopDims(outer)));
  linalg::GenericOp reduction = sums.maximum;
  SmallVector<AffineExpr> ofRow = getLoopDims(reduction);
  return getIndicesAt(element, loops) == getIndicesAt(sums.element, ofRow) &&
         getIndicesAt(maximum, loops) == getIndicesAt(&reduction.getDpsInitsMutable()[0], ofRow);
}

/// Ties the inner contractions to the dimensions of the domain, which all others are tied to.
StringRef KernelDomain::layOutBlocks(ArrayRef<Operation *> ops) {
  if (contractions.size() > 1)
    return "a kernel in blocks has one contraction beside those that it computes in blocks";
  MLIRContext *context = ops.front()->getContext();
  StringRef unknown = "what is computed in blocks is read at places that are no points of rows";
  auto record = [&](const Blocks::Inner &read, ArrayRef<AffineExpr> at) {
    auto &inner = const_cast<Blocks::Inner &>(read);
    SmallVector<int64_t> ranges = inner.op.getStaticLoopRanges();
    SmallVector<int64_t> loops(ranges.size(), -1);
    for (auto [index, place] :
         llvm::zip_equal(inner.op.getIndexingMapsArray().back().getResults(), at)) {
      auto loop = dyn_cast<AffineDimExpr>(index);
      if (!loop || ranges[loop.getPosition()] == 1)
        continue;
      auto dim = dyn_cast<AffineDimExpr>(place);
      if (!dim || sizes[dim.getPosition()] != ranges[loop.getPosition()] ||
          llvm::is_contained(loops, int64_t(dim.getPosition())))
        return false;
      loops[loop.getPosition()] = dim.getPosition();
    }
    bool isSame = inner.dims.empty() || inner.dims == loops;
    inner.dims = loops;
    return isSame;
  };
  for (Operation *op : ops) {
    OpShape kind = getOpShape(op);
    if (!dims.contains(op) || (kind != OpShape::Contraction && kind != OpShape::Reduction)) {
      if (dims.contains(op) && llvm::any_of(blocks->inner, [&](const Blocks::Inner &inner) {
            return llvm::is_contained(inner.op->getUsers(), op);
          }))
        return unknown;
      continue;
    }
    auto reader = cast<linalg::GenericOp>(op);
    SmallVector<AffineExpr> loops = getLoopDims(reader);
    for (OpOperand *operand : reader.getDpsInputOperands()) {
      bool isFound = false;
      if (!findInner(operand->get(), getIndicesAt(operand, loops), *blocks,
                     [&](const Blocks::Inner &inner, ArrayRef<AffineExpr> place) {
                       isFound = true;
                       return record(inner, place);
                     }))
        return unknown;
      if (!isFound || kind == OpShape::Reduction)
        continue;
      if (blocks->factor)
        return "both factors of a contraction are computed in blocks";
      blocks->factor = operand;
    }
  }
  SmallVector<linalg::GenericOp> reductions;
  for (Operation *op : ops)
    if (getOpShape(op) == OpShape::Reduction)
      reductions.push_back(cast<linalg::GenericOp>(op));
  if (!reductions.empty() || !blocks->factor)
    blocks->softmax = matchSoftmaxSums(reductions);
  if (!blocks->softmax && (!reductions.empty() || !blocks->factor))
    return "rows in blocks are reduced to their maximum and the sum of exponentials alone";
  if (blocks->isOneWalk() &&
      (getColumnSizes().size() != 1 || blocks->columnDim < 0 || !readsExponentials()))
    return "a walk sums the products of the exponentials alone, not of what is made of them";
  for (Blocks::Inner &inner : blocks->inner) {
    auto start = dyn_cast_or_null<FloatAttr>(getSplat(inner.op.getDpsInits().front()));
    if (inner.dims.empty() || !start || !start.getValue().isZero())
      return unknown;
    for (OpOperand *factor : inner.op.getDpsInputOperands())
      if (!findInner(
              factor->get(),
              SmallVector<AffineExpr>(cast<RankedTensorType>(factor->get().getType()).getRank(),
                                      getAffineConstantExpr(0, context)),
              *blocks, [](const auto &...) { return false; }))
        return "what is computed in blocks is computed from other blocks";
  }
  return chooseBlockDims() ? StringRef()
                           : StringRef("no dimension is that of a block's rows for all factors");
}

/// Chooses the dimensions of a block, and with them the factors of the inner contractions.
bool KernelDomain::chooseBlockDims() {
  if (sizes.size() == numRows)
    return false;
  blocks->walkedDim = sizes.size() - 1;
  auto walks = [&](const Blocks::Inner &inner, OpOperand *factor, int64_t dim) {
    for (auto [loop, ofDomain] : llvm::enumerate(inner.dims))
      if (ofDomain == dim && getAccessMap(inner.op, factor).isFunctionOfDim(loop))
        return true;
    return false;
  };
  for (int64_t dim = numRows; dim-- > 0;) {
    if (blocks->factor) {
      auto op = cast<linalg::GenericOp>(blocks->factor->getOwner());
      bool isShared = false; // with the other factor: a batch
      for (auto [loop, ofDomain] : llvm::enumerate(getDims(op)))
        for (OpOperand *factor : op.getDpsInputOperands())
          isShared |= ofDomain == dim && factor != blocks->factor &&
                      getAccessMap(op, factor).isFunctionOfDim(loop);
      if (isShared)
        continue;
    }
    bool fits = llvm::all_of(blocks->inner, [&](Blocks::Inner &inner) {
      for (OpOperand *factor : inner.op.getDpsInputOperands()) {
        bool rows = walks(inner, factor, dim), walked = walks(inner, factor, blocks->walkedDim);
        if (rows == walked)
          return false;
        (rows ? inner.rowFactor : inner.walkedFactor) = factor;
      }
      return inner.rowFactor && inner.walkedFactor;
    });
    if (!fits)
      continue;
    blocks->rowDim = dim;
    return true;
  }
  return false;
}
