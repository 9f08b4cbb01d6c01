//===- TileContraction.cpp - Sums of products in one invocation's registers ===//
//
// For devices of one invocation with vectors that are loaded from anywhere. An invocation keeps a
// tile of sums in registers: some rows of the result, times some vectors of columns. It walks the
// summed dimensions once, in order, so that the bits do not depend on the tile.
//
// How a product gets to its sum depends on how the column factor lies in memory:
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
// The last tile begins earlier, so that it is as large as the others, and stores only what the
// tile before it does not.
//
//===----------------------------------------------------------------------===//

#include "Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

/// Of the tile's first column, behind those of the domain's dimensions.
static constexpr unsigned maxDims = 15;
static constexpr unsigned firstColumnCoordinate = productCoordinate + maxDims;

namespace {
class TileContraction {
public:
  TileContraction(PointEmitter &emitter)
      : emitter(emitter), tile(emitter), at(tile.getCoordinates()),
        firstOfChunk(emitter.constant(0)), firstSum(emitter.constant(0)), inChunk(tile.chunk) {}
  void run(EmittedKernel &launch);

private:
  using Way = Tile::Way;

  PointEmitter &emitter;
  const Tile tile;
  Value sumMemory, packMemory;

  /// The place, by dimension of the domain: the batch, other rows, and the product.
  SmallVector<AffineExpr> at;
  AffineExpr rowTile, columnTile, firstRow, firstColumn;
  AffineExpr firstOfChunk; ///< element of the dimension that is cut
  AffineExpr firstSum;     ///< of the tile, in the memory of sums
  int64_t inChunk;         ///< elements of that dimension
  bool unrolls = true;     ///< whether products stand one behind the other

  /// Returns the number of elements of a summed dimension that are walked at once.
  int64_t getSize(int64_t dim) const {
    return dim == tile.numResultDims + tile.chunkDepth ? inChunk : tile.sizes[dim];
  }
  VectorType getVectorType(int64_t elements) const {
    return VectorType::get({elements}, tile.getSumType());
  }
  Value load(OpOperand *factor, ArrayRef<int64_t> dims, AffineExpr number);
  AffineExpr getProductNumber();
  Value allocate(int64_t elements);
  void setPlace(ArrayRef<int64_t> dims, AffineExpr number);

  using Body = std::function<SmallVector<Value>(ValueRange)>;
  SmallVector<Value> walkProducts(int64_t depth, int64_t step, ValueRange carried,
                                  const Body &body);
  void pack();
  void packRuns();
  SmallVector<Value> transpose(SmallVector<Value> vectors);
  SmallVector<Value> addProducts(ValueRange sums);
  void sumTile();
  void storeTile();
  void storeColumns(AffineExpr row);
  int64_t getStoreLanes();
  void storeElements(AffineExpr row, AffineExpr column, int64_t lanes);
  /// Rows or columns of a tile.
  struct TileSide {
    ArrayRef<int64_t> dims;
    int64_t elements;
    unsigned coordinate;      ///< for a loop over them
    AffineExpr first, inTile; ///< number of the first one: of all, and in the tile
    bool mayEndEarly = false; ///< whether some are behind the last of all
  };
  void walkTile(const TileSide &side, int64_t lanes, function_ref<void(AffineExpr)> body);
  void guardBelow(Value number, int64_t end, function_ref<void()> body);
  SmallVector<AffineExpr> getDigits(AffineExpr number, ArrayRef<int64_t> counts);
  AffineExpr getFirst(AffineExpr number, int64_t size, int64_t all, int64_t unit,
                      unsigned coordinate);
  void walkTiles(AffineExpr share, function_ref<void()> body);
  void walkChunks(function_ref<void()> body);
  void emitShare(AffineExpr share);
};
} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Loads a factor at the place, at a number of these dimensions.
Value TileContraction::load(OpOperand *factor, ArrayRef<int64_t> dims, AffineExpr number) {
  SmallVector<AffineExpr> point(at);
  tile.setDigits(point, dims, number);
  return emitter.evaluate(factor->get(), tile.getIndices(factor, point));
}

/// Returns the number of the product at the place in the copy, in the order of the sum.
AffineExpr TileContraction::getProductNumber() {
  AffineExpr number = emitter.constant(0);
  for (int64_t dim = tile.numResultDims + tile.chunkDepth; dim < int64_t(tile.sizes.size()); ++dim)
    number = number * getSize(dim) +
             (dim == tile.numResultDims + tile.chunkDepth ? at[dim] - firstOfChunk : at[dim]);
  return number;
}

Value TileContraction::allocate(int64_t elements) {
  return allocatePrivate(emitter, tile.getSumType(), 1, elements);
}

/// Sets the place in dimensions that are walked one element at a time.
void TileContraction::setPlace(ArrayRef<int64_t> dims, AffineExpr number) {
  tile.setDigits(at, dims, number);
  for (int64_t dim : dims)
    at[dim] = emitter.setCoordinate(productCoordinate + dim, emitter.expand(at[dim]));
}

/// Emits `body` for all products of the copy, in order; `step` of the innermost dimension at once.
SmallVector<Value> TileContraction::walkProducts(int64_t depth, int64_t step, ValueRange carried,
                                                 const Body &body) {
  int64_t dim = tile.numResultDims + depth, dims = tile.sizes.size();
  if (dim == dims)
    return body(carried);
  int64_t size = dim + 1 == dims ? step : 1, count = getSize(dim) / size;
  int64_t unroll = unrolls && count % tile.unrolled[depth] == 0 ? tile.unrolled[depth] : 1;
  AffineExpr first = depth == tile.chunkDepth ? firstOfChunk : emitter.constant(0);
  return emitter.loop(count / unroll, carried, [&](Value trip, ValueRange running) {
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

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Transposes as many vectors as they have lanes.
SmallVector<Value> TileContraction::transpose(SmallVector<Value> vectors) {
  OpBuilder &b = emitter.builder();
  int64_t lanes = tile.lanes;
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
void TileContraction::packRuns() {
  int64_t run = tile.getRun(tile.columnFactor, tile.columnDims, tile.lanes);
  int64_t unit = std::min(run, tile.columnUnit);
  emitter.setLanes(run);
  AffineExpr first = firstColumn.floorDiv(unit), lane = emitter.vectorLane();
  emitter.loop(tile.columns / run, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr inTile = emitter.setCoordinate(tileColumnCoordinate, trip);
    AffineExpr number = emitter.setCoordinate(productCoordinate + tile.columnDims.back(),
                                              emitter.expand(first + inTile * (run / unit))) *
                        unit;
    auto body = [&](ValueRange) -> SmallVector<Value> {
      OpBuilder &b = emitter.builder();
      Value value = load(tile.columnFactor, tile.columnDims, run > 1 ? number + lane : number);
      Value place = emitter.expand(getProductNumber() * tile.columns + inTile * run);
      if (run > 1)
        vector::StoreOp::create(b, emitter.loc, emitter.broadcast(value), packMemory, place);
      else
        memref::StoreOp::create(b, emitter.loc, value, packMemory, place);
      return {};
    };
    return walkProducts(tile.chunkDepth, 1, {}, body);
  });
  emitter.setLanes(tile.lanes);
}

/// Copies the tile's columns for all products of the chunk.
void TileContraction::pack() {
  if (tile.columnDims.size() > 1)
    return packRuns();
  int64_t innermost = tile.sizes.size() - 1, lanes = tile.lanes;
  AffineExpr lane = emitter.vectorLane();
  bool transposes = innermost >= tile.numResultDims && getSize(innermost) % lanes == 0 &&
                    tile.isVector(tile.columnFactor, innermost, lanes);
  emitter.setLanes(lanes);
  auto store = [&](Value vector, AffineExpr product, AffineExpr column) {
    AffineExpr place = product * tile.columns + column;
    vector::StoreOp::create(emitter.builder(), emitter.loc, emitter.broadcast(vector), packMemory,
                            emitter.expand(place));
  };
  auto loadColumn = [&](AffineExpr column) {
    return load(tile.columnFactor, tile.columnDims, firstColumn + column);
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
      for (auto [i, vector] : llvm::enumerate(transpose(std::move(vectors))))
        store(vector, number + i, column);
      return {};
    };
    return emitter.loop(tile.columns / lanes, {}, body);
  });
  unrolls = true;
}

/// Adds the products at the place to the sums of the tile, by row and vector.
SmallVector<Value> TileContraction::addProducts(ValueRange sums) {
  OpBuilder &b = emitter.builder();
  AffineExpr lane = emitter.vectorLane();
  SmallVector<Value> next(sums), factors;
  int64_t vectors = tile.getVectors();
  AffineExpr product = at.back();
  if (tile.way == Way::Dot)
    at.back() = product + lane;
  for (int64_t i = 0; i < vectors; ++i) {
    if (tile.way == Way::Packed) {
      Value place = emitter.expand(getProductNumber() * tile.columns + i * tile.lanes);
      factors.push_back(vector::LoadOp::create(emitter.builder(), emitter.loc,
                                               getVectorType(tile.lanes), packMemory, place));
      continue;
    }
    AffineExpr column = tile.way == Way::Dot ? emitter.constant(i) : lane + i * tile.lanes;
    factors.push_back(load(tile.columnFactor, tile.columnDims, firstColumn + column));
  }
  for (int64_t row = 0; row < tile.rows; ++row) {
    Value factor = emitter.broadcast(load(tile.rowFactor, tile.rowDims, firstRow + row));
    for (auto [i, column] : llvm::enumerate(factors)) {
      Value &sum = next[row * vectors + i];
      sum = math::FmaOp::create(b, emitter.loc, factor, emitter.broadcast(column), sum);
    }
  }
  at.back() = product;
  return next;
}

/// Computes the sums of the tile at the place, or adds those of the chunk, and leaves them in
/// memory.
void TileContraction::sumTile() {
  emitter.setLanes(tile.lanes);
  int64_t count = tile.rows * tile.getVectors(), elements = tile.way == Way::Dot ? 1 : tile.lanes;
  auto getPlace = [&](int64_t i) { return emitter.expand(firstSum + i * elements); };
  SmallVector<Value> sums;
  for (int64_t i = 0; i < count; ++i)
    if (tile.isChunked)
      sums.push_back(vector::LoadOp::create(emitter.builder(), emitter.loc, getVectorType(elements),
                                            sumMemory, getPlace(i)));
  if (!tile.isChunked)
    sums.assign(
        count, arith::ConstantOp::create(emitter.builder(), emitter.loc,
                                         emitter.builder().getZeroAttr(getVectorType(tile.lanes))));
  sums = walkProducts(tile.chunkDepth, tile.way == Way::Dot ? tile.lanes : 1, sums,
                      [&](ValueRange running) { return addProducts(running); });
  OpBuilder &b = emitter.builder();
  Operation *add = (*getCombiners(tile.op)).front().combine;
  for (auto [i, sum] : llvm::enumerate(sums)) {
    if (tile.way == Way::Dot)
      memref::StoreOp::create(b, emitter.loc, emitter.combineLanes(add, sum), sumMemory,
                              getPlace(i));
    else
      vector::StoreOp::create(b, emitter.loc, sum, sumMemory, getPlace(i));
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Emits `body` where number < end.
void TileContraction::guardBelow(Value number, int64_t end, function_ref<void()> body) {
  Value inside = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult,
                                       number, emitter.indexConstant(end));
  emitter.guard(inside, {}, [&]() -> SmallVector<Value> {
    body();
    return {};
  });
}

/// Returns the number of neighbouring columns that are stored at once.
int64_t TileContraction::getStoreLanes() {
  if (tile.way == Way::Dot || tile.columnDims.size() == 1)
    return tile.way == Way::Dot ? 1 : tile.lanes;
  AffineExpr number = emitter.dim(tileColumnCoordinate);
  int64_t lanes = tile.lanes;
  auto isWhole = [&] {
    emitter.setLanes(lanes);
    SmallVector<AffineExpr> point(at);
    tile.setDigits(point, tile.columnDims,
                   number * std::min(lanes, tile.columnUnit) + emitter.vectorLane());
    for (auto [i, value] : llvm::enumerate(emitter.computed))
      if (!emitter.isVectorStore(i, getResultIndices(emitter, value, point)))
        return false;
    return true;
  };
  while (lanes > 1 && !isWhole())
    lanes /= 2;
  return lanes;
}

/// Emits `body` for rows or columns of the tile, `lanes` of them at once. It gets their number in
/// the tile, and the place is theirs.
void TileContraction::walkTile(const TileSide &side, int64_t lanes,
                               function_ref<void(AffineExpr)> body) {
  SmallVector<Tile::Loop> loops = tile.getLoops(side.dims, side.elements, lanes);
  SmallVector<Value> trips;
  auto name = [&](size_t depth) {
    unsigned inner = productCoordinate + loops[depth].dims.back();
    return emitter.setCoordinate(depth == 0 ? side.coordinate : inner, trips[depth]);
  };
  int64_t inside = side.elements; // of a trip
  AffineExpr inTile = emitter.constant(0);
  PointEmitter::LoopBody walk = [&](Value trip, ValueRange) {
    size_t depth = trips.size();
    bool isInnermost = depth + 1 == loops.size();
    auto saved = std::make_tuple(SmallVector<AffineExpr>(at), inTile, inside);
    trips.push_back(trip);
    AffineExpr number = name(depth);
    inside /= loops[depth].count;
    int64_t unit = isInnermost ? 1 : inside; // whoever is inside a trip is a whole dimension
    inTile = inTile * loops[depth].count + number;
    number = number * (isInnermost ? lanes : 1);
    if (depth == 0) {
      inTile = inTile + side.inTile.floorDiv(isInnermost ? lanes : inside);
      number = number + side.first.floorDiv(unit);
    }
    tile.setDigits(at, loops[depth].dims,
                   isInnermost && lanes > 1 ? number + emitter.vectorLane() : number);
    auto goOn = [&] {
      if (isInnermost)
        body(inTile * lanes);
      else
        emitter.loop(loops[depth + 1].count, {}, walk);
    };
    if (depth == 0 && side.mayEndEarly) {
      guardBelow(emitter.expand(number), tile.count(side.dims) / unit, [&] {
        name(0); // known only here, so that nothing it decides is read elsewhere
        goOn();
      });
    } else {
      goOn();
    }
    trips.pop_back();
    std::tie(at, inTile, inside) = saved;
    return SmallVector<Value>();
  };
  emitter.loop(loops.front().count, {}, walk);
}

/// Computes and stores what comes of the sums at the place, whose numbers in the tile these are.
void TileContraction::storeElements(AffineExpr row, AffineExpr column, int64_t lanes) {
  emitter.startPoint();
  Value place = emitter.expand(firstSum + row * tile.columns + column);
  OpBuilder &b = emitter.builder();
  Value total;
  if (lanes > 1)
    total = vector::LoadOp::create(b, emitter.loc, getVectorType(lanes), sumMemory, place);
  else
    total = memref::LoadOp::create(b, emitter.loc, sumMemory, place);
  SmallVector<AffineExpr> point(at);
  for (int64_t dim = tile.numResultDims; dim < int64_t(tile.sizes.size()); ++dim)
    point[dim] = emitter.constant(0);
  storeSums(emitter, total, point);
}

// The last tile begins earlier than it would in turn. What it stores is counted from where it would
// begin: so a place is a sum of multiples of the numbers of the tile and of the trip, from which it
// follows that no other invocation has it, and a result may take an operand's bytes.

/// Stores the columns of a row of the tile that no tile before it stores.
void TileContraction::storeColumns(AffineExpr row) {
  auto walk = [&](int64_t elements, int64_t lanes, AffineExpr first, int64_t inTile) {
    emitter.setLanes(lanes);
    TileSide side = {tile.columnDims, elements, tileColumnCoordinate, first,
                     emitter.constant(inTile)};
    walkTile(side, lanes, [&](AffineExpr column) { storeElements(row, column, lanes); });
    emitter.setLanes(tile.lanes);
  };
  int64_t lanes = getStoreLanes(), last = tile.columnTiles - 1;
  emitter.setLanes(tile.lanes);
  if (!tile.hasPartialColumns())
    return walk(tile.columns, lanes, firstColumn, 0);
  auto emitIf = [&](arith::CmpIPredicate predicate, function_ref<void()> body) {
    Value is = arith::CmpIOp::create(emitter.builder(), emitter.loc, predicate,
                                     emitter.expand(columnTile), emitter.indexConstant(last));
    emitter.guard(is, {}, [&]() -> SmallVector<Value> {
      body();
      return {};
    });
  };
  emitIf(arith::CmpIPredicate::ult,
         [&] { walk(tile.columns, lanes, columnTile * tile.columns, 0); });
  int64_t begin = last * tile.columns, rest = tile.count(tile.columnDims) - begin;
  emitIf(arith::CmpIPredicate::eq, [&] {
    walk(rest, rest % lanes == 0 ? lanes : 1, emitter.constant(begin), tile.columns - rest);
  });
}

/// Stores the rows and columns of the tile that no tile before it stores.
void TileContraction::storeTile() {
  TileSide side = {tile.rowDims, tile.rows, tileRowCoordinate, firstRow, emitter.constant(0)};
  if (tile.hasPartialRows()) {
    side.first = rowTile * tile.rows;
    side.inTile = side.first - firstRow;
    side.mayEndEarly = true;
  }
  walkTile(side, 1, [&](AffineExpr row) { storeColumns(row); });
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

/// Returns the row-major digits of a number. A count of one is no digit: fewer of them give simpler
/// access maps.
SmallVector<AffineExpr> TileContraction::getDigits(AffineExpr number, ArrayRef<int64_t> counts) {
  SmallVector<int64_t> kept;
  llvm::copy_if(counts, std::back_inserter(kept), [](int64_t count) { return count != 1; });
  SmallVector<AffineExpr> digits = emitter.delinearize(number, kept);
  for (auto [i, count] : llvm::enumerate(counts))
    if (count == 1)
      digits.insert(digits.begin() + i, emitter.constant(0));
  return digits;
}

/// Returns the number of a tile's first row or column: that of its turn, or of the last tile.
AffineExpr TileContraction::getFirst(AffineExpr number, int64_t size, int64_t all, int64_t unit,
                                     unsigned coordinate) {
  if (all % size == 0)
    return number * size;
  Value first =
      arith::MinUIOp::create(emitter.builder(), emitter.loc, emitter.expand(number * (size / unit)),
                             emitter.indexConstant((all - size) / unit));
  return emitter.setCoordinate(coordinate, first) * unit;
}

/// Emits `body` for each tile of rows that the workgroup's copy serves.
void TileContraction::walkTiles(AffineExpr share, function_ref<void()> body) {
  int64_t tiles = tile.count(tile.otherRowDims) * tile.rowTiles;
  emitter.loop(tile.packedTiles, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
    OpBuilder &b = emitter.builder();
    Value first = arith::MulIOp::create(b, emitter.loc, emitter.expand(share),
                                        emitter.indexConstant(tile.packedTiles));
    Value number = arith::AddIOp::create(b, emitter.loc, first, turn);
    auto emitTile = [&]() -> SmallVector<Value> {
      AffineExpr digit = emitter.setCoordinate(tileRestCoordinate, number);
      SmallVector<AffineExpr> parts =
          getDigits(digit, {tile.count(tile.otherRowDims), tile.rowTiles});
      setPlace(tile.otherRowDims, parts[0]);
      rowTile = emitter.setCoordinate(tripCoordinate, emitter.expand(parts[1]));
      firstRow = getFirst(rowTile, tile.rows, tile.count(tile.rowDims), tile.rowUnit,
                          productCoordinate + tile.rowDims.front());
      if (tile.isChunked)
        firstSum = (digit - share * tile.packedTiles) * (tile.rows * tile.columns);
      body();
      return {};
    };
    if (tiles % tile.packedTiles == 0)
      return emitTile();
    Value inside = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult, number,
                                         emitter.indexConstant(tiles));
    return emitter.guard(inside, {}, emitTile);
  });
}

/// Emits `body` for each part of the copy, in the order of the sum.
void TileContraction::walkChunks(function_ref<void()> body) {
  int64_t depth = tile.chunkDepth, all = tile.getSummed()[depth];
  SmallVector<int64_t> outer =
      llvm::to_vector(llvm::seq(tile.numResultDims, tile.numResultDims + depth));
  emitter.loop(tile.count(outer), {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    if (depth > 0)
      setPlace(outer, emitter.setCoordinate(tileRowCoordinate, trip));
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

/// Emits the tiles of rows that share a copy of the columns, if there is one.
void TileContraction::emitShare(AffineExpr share) {
  if (!tile.isChunked) {
    if (tile.way == Way::Packed)
      pack();
    walkTiles(share, [&] {
      sumTile();
      storeTile();
    });
    return;
  }
  Value zero = arith::ConstantOp::create(emitter.builder(), emitter.loc,
                                         emitter.builder().getZeroAttr(getVectorType(tile.lanes)));
  int64_t vectors = tile.packedTiles * tile.rows * tile.getVectors();
  emitter.loop(vectors, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr place = emitter.setCoordinate(tileRowCoordinate, trip) * tile.lanes;
    vector::StoreOp::create(emitter.builder(), emitter.loc, zero, sumMemory, emitter.expand(place));
    return {};
  });
  walkChunks([&] {
    pack();
    walkTiles(share, [&] { sumTile(); });
  });
  walkTiles(share, [&] { storeTile(); });
}

void TileContraction::run(EmittedKernel &launch) {
  auto located = emitter.codeFor(tile.op);
  emitter.setLanes(tile.lanes);
  int64_t batches = tile.count(tile.batchDims);
  int64_t tiles = tile.count(tile.otherRowDims) * tile.rowTiles;
  int64_t shares = llvm::divideCeil(tiles, tile.packedTiles);
  emitWorkgroups(emitter, batches * tile.columnTiles * shares, launch, [&](Value group) {
    if (tile.way == Way::Packed)
      packMemory = allocate(tile.getPackedProducts() * tile.columns);
    sumMemory = allocate((tile.isChunked ? tile.packedTiles : 1) * tile.rows * tile.columns);
    // Neighbouring workgroups have the same columns.
    AffineExpr number = emitter.setCoordinate(unitCoordinate, group);
    SmallVector<AffineExpr> digits = getDigits(number, {batches, tile.columnTiles, shares});
    setPlace(tile.batchDims, digits[0]);
    columnTile = emitter.setCoordinate(teamLaneCoordinate, emitter.expand(digits[1]));
    firstColumn = getFirst(columnTile, tile.columns, tile.count(tile.columnDims), tile.columnUnit,
                           firstColumnCoordinate);
    emitShare(digits[2]);
  });
}

void weir::emitTileContraction(PointEmitter &emitter, EmittedKernel &launch) {
  if (size_t dims = emitter.domain.getSizes().size(); dims > maxDims) {
    emitter.fail(emitter.domain.getContraction())
        << "has " << dims << " dimensions; a contraction has at most " << maxDims;
    return;
  }
  TileContraction(emitter).run(launch);
}
