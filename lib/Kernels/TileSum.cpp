//===- TileSum.cpp - Sums of one contraction's products -------------------===//
//
// The way of a product to its sum depends on how the column factor lies in memory:
// - Direct: neighbouring columns are neighbours there. A vector of columns times a row's number.
// - Packed: they are not. The workgroup copies its columns for all products, with neighbours side
//   by side, and uses the copy for many tiles of rows.
// - Dot: both factors have neighbouring products side by side, and there are few rows. Vectors are
//   of products; each sum is a vector until the end.
//
// A vector may be of columns in several dimensions, such as the pixels of small images or all that
// a filter's weights are numbered by: their copy is made in as long runs as lie in memory. A copy
// that is too large is made in parts, and the sums of all its tiles wait in memory for the next
// part.
//
//===----------------------------------------------------------------------===//

#include "TileSum.h"
#include "TileBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

TileSum::TileSum(const Tile &tile, TilePlace &place)
    : tile(tile), emitter(tile.emitter), place(place), at(place.at),
      firstOfChunk(emitter.constant(0)), inChunk(tile.chunk), firstInTile(emitter.constant(0)) {}

void TileSum::allocate(int64_t tiles) {
  auto add = [&](int64_t elements) {
    return allocatePrivate(emitter, tile.getSumType(), 1, elements);
  };
  if (tile.way == Way::Packed)
    packMemory = add(tile.getPackedProducts() * tile.columns);
  sumMemory = add(tiles * tile.rows * tile.columns);
}

void TileSum::clear(int64_t tiles) {
  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(getVectorType(tile.lanes)));
  int64_t vectors = tiles * tile.rows * (tile.columns / tile.lanes);
  emitter.loop(vectors, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr number = emitter.setCoordinate(tileRowCoordinate, trip) * tile.lanes;
    vector::StoreOp::create(emitter.builder(), emitter.loc, zero, sumMemory,
                            emitter.expand(number));
    return {};
  });
}

void TileSum::scaleRow(AffineExpr row, Value scale) {
  emitter.setLanes(tile.lanes);
  VectorType type = getVectorType(tile.lanes);
  emitter.loop(tile.columns / tile.lanes, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr column = emitter.setCoordinate(tileColumnCoordinate, trip) * tile.lanes;
    Value address = emitter.expand(place.firstSum + row * tile.columns + column);
    OpBuilder &b = emitter.builder();
    Value sum = vector::LoadOp::create(b, emitter.loc, type, sumMemory, address);
    sum = arith::MulFOp::create(b, emitter.loc, sum,
                                vector::BroadcastOp::create(b, emitter.loc, type, scale));
    vector::StoreOp::create(b, emitter.loc, sum, sumMemory, address);
    return {};
  });
}

Value TileSum::load(AffineExpr number, int64_t lanes) {
  Value address = emitter.expand(place.firstSum + number);
  OpBuilder &b = emitter.builder();
  if (lanes > 1)
    return vector::LoadOp::create(b, emitter.loc, getVectorType(lanes), sumMemory, address);
  return memref::LoadOp::create(b, emitter.loc, sumMemory, address);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

void weir::setPlace(const Tile &tile, TilePlace &place, ArrayRef<int64_t> dims, AffineExpr number) {
  tile.setDigits(place.at, dims, number);
  for (int64_t dim : dims)
    place.at[dim] =
        tile.emitter.setCoordinate(productCoordinate + dim, tile.emitter.expand(place.at[dim]));
}

/// Loads a factor at the place, at a number of these dimensions.
Value TileSum::loadFactor(OpOperand *factor, ArrayRef<int64_t> dims, AffineExpr number) {
  SmallVector<AffineExpr> point(at);
  tile.setDigits(point, dims, number);
  return evaluateFactor(emitter, factor, tile.getIndices(factor, point));
}

/// Returns the number of the product at the place in the copy, in the order of the sum.
AffineExpr TileSum::getProductNumber() {
  AffineExpr number = emitter.constant(0);
  for (int64_t depth = tile.chunkDepth; depth < int64_t(tile.summedDims.size()); ++depth) {
    AffineExpr digit = at[tile.summedDims[depth]];
    number = number * getSize(depth) + (depth == tile.chunkDepth ? digit - firstOfChunk : digit);
  }
  return number;
}

/// Emits `body` for all products of the copy, in order; `step` of the innermost dimension at once.
SmallVector<Value> TileSum::walkProducts(int64_t depth, int64_t step, ValueRange carried,
                                         const Body &body) {
  int64_t depths = tile.summedDims.size();
  if (depth == depths)
    return body(carried);
  int64_t dim = tile.summedDims[depth];
  int64_t size = depth + 1 == depths ? step : 1, count = getSize(depth) / size;
  int64_t unroll = unrolls && count % tile.unrolled[depth] == 0 ? tile.unrolled[depth] : 1;
  AffineExpr first = depth == tile.chunkDepth ? firstOfChunk : emitter.constant(0);
  PointEmitter::SumBlocks blocks;
  Operation *add = (*getCombiners(tile.op)).front().combine;
  if (!carried.empty() && depth == tile.blockDepth) {
    Value zero = arith::ConstantOp::create(
        emitter.builder(), emitter.loc, emitter.builder().getZeroAttr(carried.front().getType()));
    // Blocks of blocks would depend on the chunks.
    blocks = {tile.block / (size * unroll), SmallVector<Value>(carried.size(), zero), add,
              /*isNested=*/false};
  }
  return emitter.loopInBlocks(count / unroll, carried, blocks, [&](Value trip, ValueRange running) {
    AffineExpr number = unroll == count ? emitter.constant(0)
                                        : emitter.setCoordinate(productCoordinate + dim, trip);
    SmallVector<Value> values(running);
    for (int64_t i = 0; i < unroll; ++i) {
      at[dim] = first + (number * unroll + i) * size;
      values = walkProducts(depth + 1, step, values, body);
    }
    return values;
  });
}

void TileSum::walkChunks(function_ref<void()> body) {
  int64_t depth = tile.chunkDepth, all = tile.getSummed()[depth];
  ArrayRef<int64_t> outer = ArrayRef(tile.summedDims).take_front(depth);
  emitter.loop(tile.count(outer), {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    if (depth > 0)
      setPlace(tile, place, outer, emitter.setCoordinate(tileRowCoordinate, trip));
    emitter.loop(all / tile.chunk, {}, [&](Value number, ValueRange) -> SmallVector<Value> {
      firstOfChunk = emitter.setCoordinate(partCoordinate, number) * tile.chunk;
      body();
      return {};
    });
    if (all % tile.chunk) {
      firstOfChunk = emitter.constant(all - all % tile.chunk);
      inChunk = all % tile.chunk;
      body();
      inChunk = tile.chunk;
    }
    return {};
  });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

SmallVector<Value> weir::transposeVectors(PointEmitter &emitter, SmallVector<Value> vectors) {
  OpBuilder &b = emitter.builder();
  int64_t lanes = vectors.size();
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool isHigh = lane & distance;
      low.push_back(isHigh ? lanes + lane - distance : lane);
      high.push_back(isHigh ? lanes + lane : lane + distance);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & distance)
        continue;
      Value first = vectors[i], second = vectors[i + distance];
      vectors[i] = vector::ShuffleOp::create(b, emitter.loc, first, second, low);
      vectors[i + distance] = vector::ShuffleOp::create(b, emitter.loc, first, second, high);
    }
  }
  return vectors;
}

/// Copies columns that are not neighbours in memory, in runs of those that are.
void TileSum::packRuns() {
  int64_t run = tile.getRun(tile.columnFactor, tile.columnDims, tile.lanes);
  int64_t unit = std::min(run, tile.columnUnit);
  emitter.setLanes(run);
  AffineExpr first = place.firstColumn.floorDiv(unit), lane = emitter.vectorLane();
  emitter.loop(tile.columns / run, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr inTile = emitter.setCoordinate(tileColumnCoordinate, trip);
    AffineExpr number = emitter.setCoordinate(productCoordinate + tile.columnDims.back(),
                                              emitter.expand(first + inTile * (run / unit))) *
                        unit;
    auto body = [&](ValueRange) -> SmallVector<Value> {
      OpBuilder &b = emitter.builder();
      Value value =
          loadFactor(tile.columnFactor, tile.columnDims, run > 1 ? number + lane : number);
      Value address = emitter.expand(getProductNumber() * tile.columns + inTile * run);
      if (run > 1)
        vector::StoreOp::create(b, emitter.loc, emitter.broadcast(value), packMemory, address);
      else
        memref::StoreOp::create(b, emitter.loc, value, packMemory, address);
      return {};
    };
    return walkProducts(tile.chunkDepth, 1, {}, body);
  });
  emitter.setLanes(tile.lanes);
}

void TileSum::pack() {
  if (tile.way != Way::Packed)
    return;
  if (tile.columnDims.size() > 1)
    return packRuns();
  int64_t depths = tile.summedDims.size(), lanes = tile.lanes;
  int64_t innermost = depths == 0 ? -1 : tile.summedDims.back();
  AffineExpr lane = emitter.vectorLane();
  bool transposes = depths > 0 && getSize(depths - 1) % lanes == 0 &&
                    tile.isVector(tile.columnFactor, innermost, lanes);
  emitter.setLanes(lanes);
  auto store = [&](Value vector, AffineExpr product, AffineExpr column) {
    AffineExpr address = product * tile.columns + column;
    vector::StoreOp::create(emitter.builder(), emitter.loc, emitter.broadcast(vector), packMemory,
                            emitter.expand(address));
  };
  auto loadColumn = [&](AffineExpr column) {
    return loadFactor(tile.columnFactor, tile.columnDims, place.firstColumn + column);
  };
  if (!transposes) {
    walkProducts(tile.chunkDepth, 1, {}, [&](ValueRange) -> SmallVector<Value> {
      AffineExpr number = getProductNumber();
      for (int64_t column = 0; column < tile.columns; column += lanes)
        store(loadColumn(lane + column), number, emitter.constant(column));
      return {};
    });
    return;
  }
  // A loop around one block: shuffles take most of the time to compile.
  unrolls = false;
  walkProducts(tile.chunkDepth, lanes, {}, [&](ValueRange) -> SmallVector<Value> {
    AffineExpr number = getProductNumber();
    auto body = [&](Value trip, ValueRange) -> SmallVector<Value> {
      AffineExpr column = emitter.setCoordinate(packedCoordinate, trip) * lanes;
      SmallVector<Value> vectors;
      AffineExpr product = at[innermost];
      at[innermost] = product + lane;
      for (int64_t i = 0; i < lanes; ++i)
        vectors.push_back(loadColumn(column + i));
      at[innermost] = product;
      for (auto [i, vector] : llvm::enumerate(transposeVectors(emitter, std::move(vectors))))
        store(vector, number + i, column);
      return {};
    };
    return emitter.loop(tile.columns / lanes, {}, body);
  });
  unrolls = true;
}

/// Adds the products at the place to the sums of the tile, by row and vector.
SmallVector<Value> TileSum::addProducts(ValueRange sums) {
  OpBuilder &b = emitter.builder();
  AffineExpr lane = emitter.vectorLane();
  SmallVector<Value> next(sums), factors;
  int64_t vectors = tile.getVectors();
  AffineExpr product;
  if (tile.way == Way::Dot) {
    AffineExpr &innermost = at[tile.summedDims.back()];
    product = innermost;
    innermost = product + lane;
  }
  for (int64_t i = 0; i < vectors; ++i) {
    if (tile.way == Way::Packed) {
      Value address =
          emitter.expand(getProductNumber() * tile.columns + firstInTile + i * tile.lanes);
      factors.push_back(vector::LoadOp::create(emitter.builder(), emitter.loc,
                                               getVectorType(tile.lanes), packMemory, address));
      continue;
    }
    AffineExpr column =
        firstInTile + (tile.way == Way::Dot ? emitter.constant(i) : lane + i * tile.lanes);
    factors.push_back(loadFactor(tile.columnFactor, tile.columnDims, place.firstColumn + column));
  }
  for (int64_t row = 0; row < tile.rows; ++row) {
    Value factor = emitter.broadcast(
        loadRowFactor ? loadRowFactor(row)
                      : loadFactor(tile.rowFactor, tile.rowDims, place.firstRow + row));
    for (auto [i, column] : llvm::enumerate(factors)) {
      Value &sum = next[row * vectors + i];
      sum = math::FmaOp::create(b, emitter.loc, factor, emitter.broadcast(column), sum);
    }
  }
  if (tile.way == Way::Dot)
    at[tile.summedDims.back()] = product;
  return next;
}

/// Computes the sums of some columns of the tile: of all, or as many as registers have room for.
void TileSum::sumColumns() {
  OpBuilder &b = emitter.builder();
  bool isDot = tile.way == Way::Dot;
  int64_t vectors = tile.getVectors(), elements = isDot ? 1 : tile.lanes;
  auto getPlace = [&](int64_t i) {
    int64_t inRow = i % vectors * elements;
    return emitter.expand(place.firstSum + i / vectors * tile.columns + firstInTile + inRow);
  };
  SmallVector<Value> sums;
  for (int64_t i = 0; i < tile.rows * vectors; ++i)
    if (tile.isChunked)
      sums.push_back(
          vector::LoadOp::create(b, emitter.loc, getVectorType(elements), sumMemory, getPlace(i)));
  if (!tile.isChunked)
    sums.assign(tile.rows * vectors, arith::ConstantOp::create(
                                         b, emitter.loc, b.getZeroAttr(getVectorType(tile.lanes))));
  sums = walkProducts(tile.chunkDepth, isDot ? tile.lanes : 1, sums,
                      [&](ValueRange running) { return addProducts(running); });
  Operation *add = (*getCombiners(tile.op)).front().combine;
  for (auto [i, sum] : llvm::enumerate(sums)) {
    if (isDot)
      memref::StoreOp::create(emitter.builder(), emitter.loc, emitter.combineLanes(add, sum),
                              sumMemory, getPlace(i));
    else
      vector::StoreOp::create(emitter.builder(), emitter.loc, sum, sumMemory, getPlace(i));
  }
}

void TileSum::sumTile() {
  emitter.setLanes(tile.lanes);
  int64_t columns = tile.getSummedColumns();
  emitter.loop(tile.columns / columns, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    firstInTile = columns == tile.columns ? emitter.constant(0)
                                          : emitter.setCoordinate(packedCoordinate, trip) * columns;
    sumColumns();
    return {};
  });
}
