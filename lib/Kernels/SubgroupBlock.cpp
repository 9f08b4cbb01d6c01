//===- SubgroupBlock.cpp - Sums of inner contractions in a subgroup -------===//

#include "Blocks.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace weir;

namespace {
/// Behind the coordinates of a contraction.
enum BlockCoordinates : unsigned {
  innerChunkCoordinate = PointEmitter::firstColumnCoordinate - 2,
  innerStepCoordinate,
  innerLaneCoordinate,
};
} // namespace

int64_t weir::chooseBlockRows(int64_t rows) {
  constexpr int64_t max = tuning::blocks::maxRows;
  for (int64_t count = max; count >= tuning::blocks::minRows; --count)
    if (rows % count == 0)
      return count;
  return llvm::divideCeil(rows, llvm::divideCeil(rows, max));
}

SmallVector<int64_t> weir::getInnerSizes(linalg::GenericOp op) {
  SmallVector<int64_t> summed;
  for (auto [size, kind] : llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && size != 1)
      summed.push_back(size);
  return summed;
}

SmallVector<AffineExpr> weir::getInnerIndices(PointEmitter &emitter, const Blocks::Inner &inner,
                                              OpOperand *factor, ArrayRef<AffineExpr> point,
                                              ArrayRef<AffineExpr> products) {
  linalg::GenericOp op = inner.op;
  SmallVector<AffineExpr> loops;
  size_t next = 0;
  for (auto [dim, size, kind] :
       llvm::zip_equal(inner.dims, op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    bool isSummed = kind == utils::IteratorType::reduction && size != 1;
    loops.push_back(isSummed ? products[next++] : dim >= 0 ? point[dim] : emitter.constant(0));
  }
  return emitter.apply(getAccessMap(op, factor), loops);
}

SmallVector<Value> SubgroupBlock::sum(const Blocks::Inner &inner,
                                      ArrayRef<SmallVector<AffineExpr>> points) {
  linalg::GenericOp op = inner.op;
  auto place = emitter.codeFor(op);
  Location loc = emitter.loc;
  int64_t lanes = emitter.profile.subgroupSize;
  SmallVector<int64_t> sizes = getInnerSizes(op);
  // A step is one product, or two neighbouring ones that are loaded at once.
  int64_t stepProducts =
      emitter.profile.vectorWidth > 1 && !sizes.empty() && sizes.back() % 2 == 0 ? 2 : 1;
  if (stepProducts == 2)
    sizes.back() /= 2;
  int64_t steps = getProduct(sizes);

  auto getIndices = [&](OpOperand *factor, ArrayRef<AffineExpr> point, AffineExpr step,
                        AffineExpr product) {
    SmallVector<AffineExpr> at = emitter.delinearize(step, sizes);
    if (!at.empty())
      at.back() = at.back() * stepProducts + product;
    return getInnerIndices(emitter, inner, factor, point, at);
  };
  // The products of a step, in order.
  auto load = [&](OpOperand *factor, ArrayRef<AffineExpr> point, AffineExpr step) {
    SmallVector<Value> factors;
    SmallVector<AffineExpr> both = getIndices(factor, point, step, emitter.vectorLane());
    if (stepProducts == 2 && emitter.isVectorFriendly(factor->get(), both)) {
      Value pair = emitter.broadcast(evaluateFactor(emitter, factor, both));
      return SmallVector<Value>{emitter.extract(pair, 0), emitter.extract(pair, 1)};
    }
    for (int64_t product = 0; product < stepProducts; ++product)
      factors.push_back(evaluateFactor(emitter, factor,
                                       getIndices(factor, point, step, emitter.constant(product))));
    return factors;
  };

  auto addChunk = [&](AffineExpr firstStep, int64_t chunkSteps, ValueRange sums) {
    AffineExpr own = firstStep + emitter.dim(teamLaneCoordinate);
    if (chunkSteps < lanes) {
      Value last = arith::MinUIOp::create(emitter.builder(), loc, emitter.expand(own),
                                          emitter.indexConstant(steps - 1));
      own = emitter.setCoordinate(innerLaneCoordinate, last);
    }
    SmallVector<SmallVector<Value>> rowFactors;
    for (ArrayRef<AffineExpr> point : points)
      rowFactors.push_back(load(inner.rowFactor, point, own));
    return emitter.loop(chunkSteps, sums, [&](Value trip, ValueRange running) {
      AffineExpr step = firstStep + emitter.setCoordinate(innerStepCoordinate, trip);
      SmallVector<Value> walked = load(inner.walkedFactor, points.front(), step);
      OpBuilder &b = emitter.builder();
      Value from = arith::IndexCastOp::create(b, loc, b.getI32Type(), trip);
      Value width = arith::ConstantIntOp::create(b, loc, lanes, 32);
      SmallVector<Value> next(running);
      for (int64_t product = 0; product < stepProducts; ++product)
        for (auto [row, total] : llvm::enumerate(next)) {
          Value factor = rowFactors[row][product];
          if (lanes > 1)
            factor = gpu::ShuffleOp::create(b, loc, factor, from, width, gpu::ShuffleMode::IDX)
                         .getShuffleResult();
          total = math::FmaOp::create(b, loc, factor, walked[product], total);
        }
      return next;
    });
  };

  OpBuilder &b = emitter.builder();
  Type type = emitter.getElementType(op->getResult(0));
  SmallVector<Value> sums(points.size(), arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
  int64_t chunks = steps / lanes;
  if (chunks <= tuning::blocks::maxUnrolledChunks)
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      sums = addChunk(emitter.constant(chunk * lanes), lanes, sums);
  else
    sums = emitter.loop(chunks, sums, [&](Value chunk, ValueRange running) {
      return addChunk(emitter.setCoordinate(innerChunkCoordinate, chunk) * lanes, lanes, running);
    });
  if (int64_t rest = steps % lanes)
    sums = emitter.loop(1, sums, [&](Value, ValueRange running) {
      return addChunk(emitter.constant(chunks * lanes), rest, running);
    });
  return sums;
}

void SubgroupBlock::atPoints(ArrayRef<SmallVector<AffineExpr>> points,
                             function_ref<void(size_t)> body) {
  const Blocks &blocks = *emitter.domain.getBlocks();
  std::vector<SmallVector<Value>> sums;
  for (const Blocks::Inner &inner : blocks.inner)
    sums.push_back(sum(inner, points));
  for (size_t row = 0; row < points.size(); ++row) {
    emitter.startPoint();
    for (auto [inner, ofRows] : llvm::zip_equal(blocks.inner, sums))
      emitter.setReduced(linalg::GenericOp(inner.op).getResult(0), ofRows[row]);
    body(row);
  }
}
