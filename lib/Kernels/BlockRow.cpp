//===- BlockRow.cpp - Rows of sums that are computed in blocks ------------===//
//
// Kernels that reduce rows whose elements are computed from the sums of contractions, such as the
// logarithms of the sums of an attention's exponentials. A subgroup owns some rows and walks them
// once: each invocation keeps the maximum of its own elements of each row so far, and the sum of
// the exponentials of what they are above it, which a larger maximum scales. At the end the
// subgroup combines these.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace weir;

namespace {
enum BlockRowCoordinates : unsigned {
  blockChunkCoordinate = productCoordinate,
  ownCoordinate, ///< the number of the walked dimension that the invocation computes
  firstBlockRowCoordinate,
  blockRowCoordinate,
};

class BlockRowEmitter {
public:
  BlockRowEmitter(PointEmitter &emitter)
      : emitter(emitter), blocks(*emitter.domain.getBlocks()), sizes(emitter.domain.getSizes()),
        lanes(emitter.profile.subgroupSize) {
    reduced = *blocks.softmax;
    masked = findMasked(emitter.domain);
    int64_t rows = sizes[blocks.rowDim];
    tileRows = chooseBlockRows(rows);
    rowTiles = llvm::divideCeil(rows, tileRows);
    restSizes = getBlockRestSizes(emitter);
  }
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const Blocks &blocks;
  ArrayRef<int64_t> sizes;
  const int64_t lanes;
  SoftmaxSums reduced;
  MaskedSides masked;
  int64_t tileRows = 1, rowTiles = 1;
  SmallVector<int64_t> restSizes;

  // The place of the tile.
  SmallVector<AffineExpr> rest;
  AffineExpr rowTile, firstRow;

  bool hasPartialRows() const { return sizes[blocks.rowDim] % tileRows != 0; }
  SmallVector<AffineExpr> getPoint(AffineExpr row, AffineExpr walked) const {
    return getBlockPoint(emitter, rest, row, walked);
  }
  void addElement(Value element, Value &maximum, Value &sum);
  SmallVector<Value> walkChunk(AffineExpr first, int64_t count, ValueRange carried);
  SmallVector<Value> walkRows();
  void store(ArrayRef<Value> totals);
  void emitTile(Value tile);
};
} // namespace

SmallVector<int64_t> weir::getBlockRestSizes(const PointEmitter &emitter) {
  SmallVector<int64_t> sizes;
  for (int64_t dim = 0; dim < int64_t(emitter.domain.getNumRows()); ++dim)
    if (dim != emitter.domain.getBlocks()->rowDim)
      sizes.push_back(emitter.domain.getSizes()[dim]);
  return sizes;
}

SmallVector<AffineExpr> weir::getBlockPoint(const PointEmitter &emitter, ArrayRef<AffineExpr> rest,
                                            AffineExpr row, AffineExpr walked) {
  SmallVector<AffineExpr> point;
  unsigned nextRest = 0;
  for (int64_t dim = 0; dim < int64_t(emitter.domain.getNumRows()); ++dim)
    point.push_back(dim == emitter.domain.getBlocks()->rowDim ? row : rest[nextRest++]);
  point.push_back(walked);
  return point;
}

Value weir::chooseValue(PointEmitter &emitter, ArrayRef<Value> values, Value number) {
  Value chosen = values.front();
  for (size_t i = 1; i < values.size(); ++i) {
    OpBuilder &b = emitter.builder();
    Value is = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::eq, number,
                                     emitter.indexConstant(i));
    chosen = arith::SelectOp::create(b, emitter.loc, is, values[i], chosen);
  }
  return chosen;
}

Value weir::evaluateElement(PointEmitter &emitter, const SoftmaxSums &reduced,
                            ArrayRef<AffineExpr> point) {
  return emitter.evaluate(reduced.element->get(),
                          emitter.apply(getAccessMap(reduced.maximum, reduced.element),
                                        emitter.getLoops(reduced.maximum, point)));
}

Value weir::exponentialAbove(PointEmitter &emitter, Value value, Value maximum) {
  emitter.match(value, maximum);
  OpBuilder &b = emitter.builder();
  return math::ExpOp::create(b, emitter.loc, arith::SubFOp::create(b, emitter.loc, value, maximum));
}

Value weir::makeNoElement(PointEmitter &emitter, const SoftmaxSums &reduced) {
  FloatAttr start = reduced.start;
  APFloat lowest = APFloat::getInf(start.getValue().getSemantics(), /*Negative=*/true);
  return arith::ConstantOp::create(emitter.builder(), emitter.loc,
                                   FloatAttr::get(start.getType(), lowest));
}

SmallVector<Value> weir::startRow(PointEmitter &emitter, const SoftmaxSums &reduced) {
  OpBuilder &b = emitter.builder();
  FloatAttr start = reduced.start;
  Value maximum = arith::ConstantOp::create(b, emitter.loc, start);
  Value sum = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(start.getType()));
  return {maximum, sum};
}

void weir::guardAt(PointEmitter &emitter, ArrayRef<std::pair<AffineExpr, int64_t>> numbers,
                   function_ref<void()> body) {
  Value isAt;
  for (auto [number, value] : numbers) {
    OpBuilder &b = emitter.builder();
    Value is = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::eq,
                                     emitter.expand(number), emitter.indexConstant(value));
    isAt = isAt ? arith::AndIOp::create(b, emitter.loc, isAt, is) : is;
  }
  emitter.guard(isAt, {}, [&]() -> SmallVector<Value> {
    body();
    return {};
  });
}

/// Adds an element to a maximum and to a sum of exponentials, of which the one that the larger of
/// the two has is 1.
void BlockRowEmitter::addElement(Value element, Value &maximum, Value &sum) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Value above = arith::SubFOp::create(b, loc, element, maximum);
  Value distance = arith::NegFOp::create(b, loc, math::AbsFOp::create(b, loc, above));
  Value smaller = math::ExpOp::create(b, loc, distance);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element.getType()));
  Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(element.getType(), 1.0));
  Value isAbove = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, above, zero);
  Value scaled = math::FmaOp::create(b, loc, sum, smaller, one);
  Value added = arith::AddFOp::create(b, loc, sum, smaller);
  sum = arith::SelectOp::create(b, loc, isAbove, scaled, added);
  maximum = emitter.combine(reduced.larger, maximum, element);
}

/// Adds the elements of `count` numbers of the walked dimension, one for each invocation.
SmallVector<Value> BlockRowEmitter::walkChunk(AffineExpr first, int64_t count, ValueRange carried) {
  Location loc = emitter.loc;
  AffineExpr own = first + emitter.dim(teamLaneCoordinate);
  Value isInside;
  if (count < lanes) {
    OpBuilder &b = emitter.builder();
    isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                     emitter.expand(emitter.dim(teamLaneCoordinate)),
                                     emitter.indexConstant(count));
    Value last = arith::MinUIOp::create(b, loc, emitter.expand(own),
                                        emitter.indexConstant(sizes[blocks.walkedDim] - 1));
    own = emitter.setCoordinate(ownCoordinate, last);
  }
  std::vector<SmallVector<AffineExpr>> points;
  for (int64_t row = 0; row < tileRows; ++row)
    points.push_back(getPoint(firstRow + row, own));
  SmallVector<Value> next(carried);
  SubgroupBlock(emitter).atPoints(points, [&](size_t row) {
    Value &maximum = next[2 * row], &sum = next[2 * row + 1];
    Value before[] = {maximum, sum};
    addElement(evaluateElement(emitter, reduced, points[row]), maximum, sum);
    if (isInside) {
      OpBuilder &b = emitter.builder();
      maximum = arith::SelectOp::create(b, loc, isInside, maximum, before[0]);
      sum = arith::SelectOp::create(b, loc, isInside, sum, before[1]);
    }
  });
  return next;
}

/// Returns the maximum and the sum of each row of the tile.
SmallVector<Value> BlockRowEmitter::walkRows() {
  Location loc = emitter.loc;
  SmallVector<Value> carried;
  for (int64_t row = 0; row < tileRows; ++row)
    llvm::append_range(carried, startRow(emitter, reduced));
  int64_t walked = sizes[blocks.walkedDim], chunks = walked / lanes;
  auto walk = [&](AffineExpr first, int64_t count, ValueRange running) {
    return whereNeeded(emitter, masked, {firstRow, tileRows, first, count}, running,
                       [&] { return walkChunk(first, count, running); });
  };
  carried = emitter.loop(chunks, carried, [&](Value chunk, ValueRange running) {
    return walk(emitter.setCoordinate(blockChunkCoordinate, chunk) * lanes, lanes, running);
  });
  if (int64_t count = walked % lanes)
    carried = emitter.loop(1, carried, [&](Value, ValueRange running) {
      return walk(emitter.constant(chunks * lanes), count, running);
    });
  Value lane = emitter.expand(emitter.dim(teamLaneCoordinate));
  for (int64_t row = 0; row < tileRows; ++row) {
    Value &maximum = carried[2 * row], &sum = carried[2 * row + 1];
    Value own = maximum;
    maximum = reduceSubgroup(emitter, reduced.larger, own, lane);
    OpBuilder &after = emitter.builder();
    Value scale = exponentialAbove(emitter, own, maximum);
    sum = reduceSubgroup(emitter, reduced.add, arith::MulFOp::create(after, loc, sum, scale), lane);
  }
  return carried;
}

/// Stores what comes of the rows that no tile before this one stores.
void BlockRowEmitter::store(ArrayRef<Value> totals) {
  SmallVector<Value> maxima, sums;
  for (int64_t row = 0; row < tileRows; ++row) {
    maxima.push_back(totals[2 * row]);
    sums.push_back(totals[2 * row + 1]);
  }
  auto storeRow = [&](AffineExpr row, Value number) {
    storeBlockRow(emitter, chooseValue(emitter, maxima, number), chooseValue(emitter, sums, number),
                  getPoint(row, emitter.constant(0)));
  };
  emitter.loop(tileRows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = rowTile * tileRows + emitter.setCoordinate(blockRowCoordinate, trip);
    if (hasPartialRows())
      guardInside(emitter, blockRowCoordinate, row, sizes[blocks.rowDim], [&](AffineExpr inside) {
        Value number = emitter.expand(inside - firstRow);
        storeRow(inside, number);
      });
    else
      storeRow(row, trip);
    return {};
  });
}

void BlockRowEmitter::emitTile(Value tile) {
  AffineExpr number = emitter.setCoordinate(unitCoordinate, tile);
  SmallVector<AffineExpr> digits = getDigits(emitter, number, {getProduct(restSizes), rowTiles});
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  rowTile = name(tileRowCoordinate, digits[1]);
  rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), restSizes);
  // The last tile begins earlier, so that it has as many rows as the others.
  firstRow = rowTile * tileRows;
  if (hasPartialRows()) {
    Value first = arith::MinUIOp::create(emitter.builder(), emitter.loc, emitter.expand(firstRow),
                                         emitter.indexConstant(sizes[blocks.rowDim] - tileRows));
    firstRow = emitter.setCoordinate(firstBlockRowCoordinate, first);
  }
  SmallVector<Value> totals = walkRows();
  guardAt(emitter, {{emitter.dim(teamLaneCoordinate), 0}}, [&] { store(totals); });
}

void BlockRowEmitter::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(reduced.maximum);
  emitSubgroups(emitter, getProduct(restSizes) * rowTiles, launch,
                [&](Value tile) { emitTile(tile); });
}

void weir::emitBlockRow(PointEmitter &emitter, EmittedKernel &launch) {
  if (std::optional<MatrixBlockTile> tile = chooseMatrixBlockTile(emitter.domain, emitter.profile))
    return emitMatrixBlockRow(emitter, *tile, launch);
  if (std::optional<SlabBlockTile> tile = chooseSlabBlockTile(emitter.domain, emitter.profile))
    return emitSlabBlockRow(emitter, *tile, launch);
  BlockRowEmitter(emitter).run(launch);
}
