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
// The last tile begins earlier, so that it is as large as the others, and stores only what the
// tile before it does not.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

/// Fewer workgroups than this leave a device idle.
static constexpr int64_t fewWorkgroups = 16;
/// Rows that make a copy of the columns worth its time.
static constexpr int64_t manyRows = 48;
/// Most products whose code is written one behind the other.
static constexpr int64_t maxUnrolled = 9;

namespace {
class TileContraction {
public:
  TileContraction(PointEmitter &emitter)
      : emitter(emitter), profile(emitter.profile), op(emitter.domain.getContraction()),
        sizes(emitter.domain.getSizes()), numResultDims(emitter.domain.getNumRows()) {}
  void run(EmittedKernel &launch);

private:
  enum class Way { Direct, Packed, Dot };

  PointEmitter &emitter;
  const Profile &profile;
  linalg::GenericOp op;
  ArrayRef<int64_t> sizes;
  int64_t numResultDims; ///< the summed dimensions follow them

  // The tile.
  Way way = Way::Direct;
  int64_t columnDim = -1, rowDim = -1;
  OpOperand *rowFactor = nullptr, *columnFactor = nullptr;
  int64_t lanes = 1;   ///< of a vector, of columns or products
  int64_t rows = 1;    ///< of a tile
  int64_t columns = 1; ///< of a tile
  int64_t rowTiles = 1, columnTiles = 1;
  int64_t packedTiles = 1;           ///< that use one copy of the columns
  SmallVector<int64_t> batchDims;    ///< result dimensions that the column factor varies with
  SmallVector<int64_t> otherRowDims; ///< and those that it does not vary with
  SmallVector<int64_t> unrolled;     ///< by summed dimension
  Value sumMemory, packMemory;

  /// The place, by dimension of the domain: the tile's first row and column, and the product.
  SmallVector<AffineExpr> at;
  AffineExpr rowTile, columnTile;

  int64_t getVectors() const { return way == Way::Dot ? columns : columns / lanes; }
  int64_t getProducts() const { return getProduct(sizes.drop_front(numResultDims)); }
  bool hasPartialRows() const { return sizes[rowDim] % rows != 0; }
  bool hasPartialColumns() const { return sizes[columnDim] % columns != 0; }

  int64_t count(ArrayRef<int64_t> dims) const;
  int64_t getMaxLanes(int64_t dim);
  bool isVector(OpOperand *factor, int64_t dim, int64_t vector);
  void chooseColumns();
  void chooseRows();
  void chooseTile();
  void chooseUnrolling();

  SmallVector<AffineExpr> getIndices(OpOperand *operand, ArrayRef<AffineExpr> point) {
    return emitter.apply(getAccessMap(op, operand), emitter.getLoops(op, point));
  }
  Value load(OpOperand *factor, int64_t dim, AffineExpr offset);
  AffineExpr getProductNumber();
  Type getSumType() { return emitter.getElementType(op->getResult(0)); }
  Value allocate(int64_t elements);
  void setPlace(ArrayRef<int64_t> dims, AffineExpr number);

  using Body = std::function<SmallVector<Value>(ValueRange)>;
  SmallVector<Value> walkProducts(size_t depth, int64_t step, ValueRange carried, const Body &body);
  void pack();
  SmallVector<Value> transpose(SmallVector<Value> vectors);
  SmallVector<Value> addProducts(ValueRange sums);
  void sumTile();
  void storeTile();
  void storeElements(AffineExpr row, AffineExpr column, bool isVector);
  void emitTile();
  void guardInside(Value number, Value begin, int64_t end, function_ref<void()> body);
};
} // namespace

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// Returns the number of elements in dimensions of the domain.
int64_t TileContraction::count(ArrayRef<int64_t> dims) const {
  return getProduct(llvm::map_to_vector(dims, [&](int64_t dim) { return sizes[dim]; }));
}

/// Returns the longest vector along a dimension.
int64_t TileContraction::getMaxLanes(int64_t dim) {
  int64_t width = profile.vectorWidth;
  if (getSumType().getIntOrFloatBitWidth() == 64)
    width = std::max<int64_t>(width / 2, 1);
  return std::min<int64_t>(width, llvm::bit_floor<uint64_t>(std::max<int64_t>(sizes[dim], 1)));
}

/// Whether `factor` is loaded in vectors along a dimension.
bool TileContraction::isVector(OpOperand *factor, int64_t dim, int64_t vector) {
  emitter.setLanes(vector);
  SmallVector<AffineExpr> point(at);
  point[dim] = point[dim] + emitter.vectorLane();
  return vector > 1 && emitter.isVectorFriendly(factor->get(), getIndices(factor, point));
}

/// Chooses the dimension of the columns: the innermost one of the result along which a factor lies
/// in whole vectors; else the one whose copy serves most rows.
void TileContraction::chooseColumns() {
  OpOperand *factors[] = {op.getDpsInputOperand(0), op.getDpsInputOperand(1)};
  int64_t best = -1;
  for (int64_t dim : llvm::reverse(getResultDims(emitter))) {
    bool isLeft = variesWith(emitter, factors[0], dim);
    if (isLeft == variesWith(emitter, factors[1], dim))
      continue;
    OpOperand *factor = factors[isLeft ? 0 : 1];
    int64_t vector = getMaxLanes(dim), reuse = 1;
    bool isDirect = isVector(factor, dim, vector);
    for (int64_t other = 0; other < numResultDims; ++other)
      if (!variesWith(emitter, factor, other))
        reuse *= sizes[other];
    int64_t score = vector * (isDirect ? 1000 : std::min(reuse, 4 * manyRows));
    if (score <= best)
      continue;
    best = score;
    columnDim = dim;
    columnFactor = factor;
    rowFactor = factors[isLeft ? 1 : 0];
    lanes = vector;
    way = isDirect ? Way::Direct : Way::Packed;
  }
}

/// Chooses the dimension of the rows: the innermost one with enough of them, or else the longest.
void TileContraction::chooseRows() {
  int64_t allRows = 1;
  for (int64_t dim = numResultDims; dim-- > 0;) {
    if (dim == columnDim)
      continue;
    if (variesWith(emitter, columnFactor, dim)) {
      batchDims.insert(batchDims.begin(), dim);
      continue;
    }
    allRows *= sizes[dim];
    otherRowDims.insert(otherRowDims.begin(), dim);
    if (variesWith(emitter, rowFactor, dim) &&
        (rowDim < 0 || (sizes[rowDim] < profile.contractionRows && sizes[dim] > sizes[rowDim])))
      rowDim = dim;
  }
  llvm::erase(otherRowDims, rowDim);
  // Vectors of products need no copy.
  int64_t innermost = sizes.size() - 1, products = getProducts();
  if (way != Way::Packed || products == 0)
    return;
  int64_t vector = getMaxLanes(innermost);
  bool isDot = vector > 1 && sizes[innermost] % vector == 0 &&
               isVector(columnFactor, innermost, vector) && isVector(rowFactor, innermost, vector);
  int64_t bytes = getSumType().getIntOrFloatBitWidth() / 8;
  bool fits = products * lanes * bytes <= profile.workgroupMemory;
  if (isDot && (allRows < manyRows || !fits)) {
    way = Way::Dot;
    lanes = vector;
  }
}

void TileContraction::chooseTile() {
  int64_t allRows = sizes[rowDim], allColumns = sizes[columnDim];
  rows = llvm::divideCeil(allRows, llvm::divideCeil(allRows, profile.contractionRows));
  rowTiles = llvm::divideCeil(allRows, rows);
  int64_t vectors = std::min(profile.contractionRows * profile.contractionColumns / rows,
                             4 * profile.contractionColumns);
  int64_t unit = way == Way::Dot ? 1 : lanes;
  vectors = std::clamp<int64_t>(vectors, 1, allColumns / unit);
  int64_t bytes = getSumType().getIntOrFloatBitWidth() / 8;
  if (way == Way::Packed)
    while (vectors > 1 && getProducts() * vectors * lanes * bytes > profile.workgroupMemory)
      --vectors;
  columns = vectors * unit;
  columnTiles = llvm::divideCeil(allColumns, columns);
  if (way != Way::Packed)
    return;
  int64_t tiles = count(otherRowDims) * rowTiles;
  int64_t enough = llvm::divideCeil(manyRows, rows);
  packedTiles = count(batchDims) * columnTiles * tiles / fewWorkgroups;
  packedTiles = std::min(std::max(packedTiles, enough), tiles);
}

/// Chooses how many products of each summed dimension stand one behind the other: all of short
/// inner dimensions, or some of the innermost one.
void TileContraction::chooseUnrolling() {
  ArrayRef<int64_t> summed = sizes.drop_front(numResultDims);
  unrolled.assign(summed.size(), 1);
  int64_t product = 1;
  for (size_t depth = summed.size(); depth-- > 0;) {
    int64_t size = summed[depth];
    if (way == Way::Dot && depth + 1 == summed.size())
      size /= lanes;
    if (size * product <= maxUnrolled) {
      product *= unrolled[depth] = std::max<int64_t>(size, 1);
      continue;
    }
    if (product == 1)
      unrolled[depth] = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
    break;
  }
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Loads a factor at the place, moved along a dimension.
Value TileContraction::load(OpOperand *factor, int64_t dim, AffineExpr offset) {
  SmallVector<AffineExpr> point(at);
  point[dim] = point[dim] + offset;
  return emitter.evaluate(factor->get(), getIndices(factor, point));
}

/// Returns the number of the product at the place, in the order of the sum.
AffineExpr TileContraction::getProductNumber() {
  AffineExpr number = emitter.constant(0);
  for (int64_t dim = numResultDims; dim < int64_t(sizes.size()); ++dim)
    number = number * sizes[dim] + at[dim];
  return number;
}

Value TileContraction::allocate(int64_t elements) {
  auto space = gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Private);
  auto type = MemRefType::get({elements}, getSumType(), MemRefLayoutAttrInterface{}, space);
  return memref::AllocaOp::create(emitter.builder(), emitter.loc, type);
}

/// Sets the place in dimensions that are walked one element at a time.
void TileContraction::setPlace(ArrayRef<int64_t> dims, AffineExpr number) {
  SmallVector<int64_t> counts = llvm::map_to_vector(dims, [&](int64_t dim) { return sizes[dim]; });
  for (auto [dim, digit] : llvm::zip_equal(dims, emitter.delinearize(number, counts)))
    at[dim] = emitter.setCoordinate(productCoordinate + dim, emitter.expand(digit));
}

/// Emits `body` for all products, in order; `step` of the innermost dimension at once.
SmallVector<Value> TileContraction::walkProducts(size_t depth, int64_t step, ValueRange carried,
                                                 const Body &body) {
  size_t dim = numResultDims + depth;
  if (dim == sizes.size())
    return body(carried);
  bool isInnermost = dim + 1 == sizes.size();
  int64_t size = isInnermost ? step : 1, count = sizes[dim] / size;
  int64_t unroll = count % unrolled[depth] == 0 ? unrolled[depth] : 1;
  return emitter.loop(count / unroll, carried, [&](Value trip, ValueRange running) {
    AffineExpr number = unroll == count ? emitter.constant(0)
                                        : emitter.setCoordinate(productCoordinate + dim, trip);
    SmallVector<Value> values(running);
    for (int64_t i = 0; i < unroll; ++i) {
      at[dim] = (number * unroll + i) * size;
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

/// Copies the columns at the place for all products.
void TileContraction::pack() {
  int64_t innermost = sizes.size() - 1;
  AffineExpr lane = emitter.vectorLane();
  bool transposes = innermost >= numResultDims && sizes[innermost] % lanes == 0 &&
                    isVector(columnFactor, innermost, lanes);
  emitter.setLanes(lanes);
  auto store = [&](Value vector, AffineExpr product, int64_t column) {
    AffineExpr place = product * columns + column;
    vector::StoreOp::create(emitter.builder(), emitter.loc, emitter.broadcast(vector), packMemory,
                            emitter.expand(place));
  };
  walkProducts(0, transposes ? lanes : 1, {}, [&](ValueRange) -> SmallVector<Value> {
    AffineExpr number = getProductNumber();
    for (int64_t column = 0; column < columns; column += lanes) {
      if (!transposes) {
        store(load(columnFactor, columnDim, lane + column), number, column);
        continue;
      }
      SmallVector<Value> vectors;
      AffineExpr product = at[innermost];
      at[innermost] = product + lane;
      for (int64_t i = 0; i < lanes; ++i)
        vectors.push_back(load(columnFactor, columnDim, emitter.constant(column + i)));
      at[innermost] = product;
      for (auto [i, vector] : llvm::enumerate(transpose(std::move(vectors))))
        store(vector, number + i, column);
    }
    return {};
  });
}

/// Adds the products at the place to the sums of the tile, by row and vector.
SmallVector<Value> TileContraction::addProducts(ValueRange sums) {
  OpBuilder &b = emitter.builder();
  AffineExpr lane = emitter.vectorLane();
  SmallVector<Value> next(sums), factors;
  int64_t innermost = sizes.size() - 1;
  AffineExpr product = at.back();
  if (way == Way::Dot)
    at[innermost] = product + lane;
  for (int64_t i = 0; i < getVectors(); ++i) {
    if (way == Way::Packed) {
      Value place = emitter.expand(getProductNumber() * columns + i * lanes);
      factors.push_back(vector::LoadOp::create(emitter.builder(), emitter.loc,
                                               VectorType::get({lanes}, getSumType()), packMemory,
                                               place));
      continue;
    }
    factors.push_back(
        load(columnFactor, columnDim, way == Way::Dot ? emitter.constant(i) : lane + i * lanes));
  }
  for (int64_t row = 0; row < rows; ++row) {
    Value factor = emitter.broadcast(load(rowFactor, rowDim, emitter.constant(row)));
    for (auto [i, column] : llvm::enumerate(factors)) {
      Value &sum = next[row * getVectors() + i];
      sum = math::FmaOp::create(b, emitter.loc, factor, emitter.broadcast(column), sum);
    }
  }
  at[innermost] = product;
  return next;
}

/// Computes the sums of the tile at the place, and leaves them in memory.
void TileContraction::sumTile() {
  emitter.setLanes(lanes);
  auto type = VectorType::get({lanes}, getSumType());
  Value zero = arith::ConstantOp::create(emitter.builder(), emitter.loc,
                                         emitter.builder().getZeroAttr(type));
  SmallVector<Value> sums(rows * getVectors(), zero);
  sums = walkProducts(0, way == Way::Dot ? lanes : 1, sums,
                      [&](ValueRange running) { return addProducts(running); });
  OpBuilder &b = emitter.builder();
  Operation *add = (*getCombiners(op)).front().combine;
  for (auto [i, sum] : llvm::enumerate(sums)) {
    if (way == Way::Dot)
      memref::StoreOp::create(b, emitter.loc, emitter.combineLanes(add, sum), sumMemory,
                              emitter.indexConstant(i));
    else
      vector::StoreOp::create(b, emitter.loc, sum, sumMemory, emitter.indexConstant(i * lanes));
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Emits `body` where begin <= number < end; it may be that no `begin` is given.
void TileContraction::guardInside(Value number, Value begin, int64_t end,
                                  function_ref<void()> body) {
  OpBuilder &b = emitter.builder();
  auto compare = [&](arith::CmpIPredicate predicate, Value other) -> Value {
    return arith::CmpIOp::create(b, emitter.loc, predicate, number, other);
  };
  Value inside = compare(arith::CmpIPredicate::ult, emitter.indexConstant(end));
  if (begin)
    inside =
        arith::AndIOp::create(b, emitter.loc, inside, compare(arith::CmpIPredicate::uge, begin));
  emitter.guard(inside, {}, [&]() -> SmallVector<Value> {
    body();
    return {};
  });
}

/// Computes and stores what comes of the sums at `row` and `column` of the tile.
void TileContraction::storeElements(AffineExpr row, AffineExpr column, bool isVector) {
  emitter.startPoint();
  Value place = emitter.expand(row * columns + column);
  OpBuilder &b = emitter.builder();
  Value total;
  if (isVector)
    total = vector::LoadOp::create(b, emitter.loc, VectorType::get({lanes}, getSumType()),
                                   sumMemory, place);
  else
    total = memref::LoadOp::create(b, emitter.loc, sumMemory, place);
  SmallVector<AffineExpr> point(at);
  for (int64_t dim = numResultDims; dim < int64_t(sizes.size()); ++dim)
    point[dim] = emitter.constant(0);
  point[rowDim] = at[rowDim] + row;
  point[columnDim] = at[columnDim] + column;
  if (isVector)
    point[columnDim] = point[columnDim] + emitter.vectorLane();
  storeSums(emitter, total, point);
}

/// Stores the rows and columns of the tile that no tile before it stores.
void TileContraction::storeTile() {
  auto storeColumns = [&](AffineExpr row) {
    auto walk = [&](int64_t count, int64_t size, bool isVector, bool isGuarded) {
      emitter.loop(count, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
        AffineExpr column = emitter.setCoordinate(tileColumnCoordinate, trip) * size;
        if (!isGuarded) {
          storeElements(row, column, isVector);
          return {};
        }
        Value number = emitter.expand(at[columnDim] + column);
        Value begin = emitter.expand(columnTile * columns);
        guardInside(number, begin, sizes[columnDim], [&] {
          // Known only here, so that nothing that depends on it is read elsewhere.
          storeElements(row, emitter.setCoordinate(tileColumnCoordinate, trip) * size, isVector);
        });
        return {};
      });
    };
    bool isVector = way != Way::Dot && lanes > 1;
    int64_t size = isVector ? lanes : 1;
    if (!hasPartialColumns())
      return walk(columns / size, size, isVector, /*isGuarded=*/false);
    Value number = emitter.expand(columnTile), last = emitter.indexConstant(columnTiles - 1);
    auto emitIf = [&](arith::CmpIPredicate predicate, function_ref<void()> body) {
      Value is = arith::CmpIOp::create(emitter.builder(), emitter.loc, predicate, number, last);
      emitter.guard(is, {}, [&]() -> SmallVector<Value> {
        body();
        return {};
      });
    };
    emitIf(arith::CmpIPredicate::ne,
           [&] { walk(columns / size, size, isVector, /*isGuarded=*/false); });
    emitIf(arith::CmpIPredicate::eq, [&] { walk(columns, 1, false, /*isGuarded=*/true); });
  };
  emitter.loop(rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = emitter.setCoordinate(tileRowCoordinate, trip);
    if (!hasPartialRows()) {
      storeColumns(row);
      return {};
    }
    Value begin = emitter.expand(rowTile * rows);
    guardInside(emitter.expand(at[rowDim] + row), begin, sizes[rowDim],
                [&] { storeColumns(emitter.setCoordinate(tileRowCoordinate, trip)); });
    return {};
  });
}

void TileContraction::emitTile() {
  sumTile();
  storeTile();
}

void TileContraction::run(EmittedKernel &launch) {
  auto located = emitter.codeFor(op);
  if (sizes.size() > 16) {
    emitter.fail(op) << "has " << sizes.size() << " dimensions; a contraction has at most 16";
    return;
  }
  for (int64_t dim = 0; dim < int64_t(sizes.size()); ++dim)
    at.push_back(emitter.dim(productCoordinate + dim));
  chooseColumns();
  chooseRows();
  chooseTile();
  chooseUnrolling();
  emitter.setLanes(lanes);

  int64_t batches = count(batchDims), tiles = count(otherRowDims) * rowTiles;
  int64_t shares = llvm::divideCeil(tiles, packedTiles);
  emitWorkgroups(emitter, batches * columnTiles * shares, launch, [&](Value group) {
    if (way == Way::Packed)
      packMemory = allocate(getProducts() * columns);
    sumMemory = allocate(rows * columns);
    auto name = [&](unsigned coordinate, AffineExpr value) {
      return emitter.setCoordinate(coordinate, emitter.expand(value));
    };
    // Neighbouring workgroups have the same columns.
    AffineExpr number = emitter.setCoordinate(unitCoordinate, group);
    SmallVector<AffineExpr> digits = emitter.delinearize(number, {batches, columnTiles, shares});
    setPlace(batchDims, digits[0]);
    columnTile = name(teamLaneCoordinate, digits[1]);
    auto getFirst = [&](AffineExpr tile, int64_t size, int64_t dim) {
      if (sizes[dim] % size == 0)
        return tile * size;
      Value first =
          arith::MinUIOp::create(emitter.builder(), emitter.loc, emitter.expand(tile * size),
                                 emitter.indexConstant(sizes[dim] - size));
      return emitter.setCoordinate(productCoordinate + dim, first);
    };
    at[columnDim] = getFirst(columnTile, columns, columnDim);
    Value share = emitter.expand(digits[2]);
    if (way == Way::Packed)
      pack();
    emitter.loop(packedTiles, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
      OpBuilder &b = emitter.builder();
      Value first =
          arith::MulIOp::create(b, emitter.loc, share, emitter.indexConstant(packedTiles));
      Value tile = arith::AddIOp::create(b, emitter.loc, first, turn);
      auto body = [&]() -> SmallVector<Value> {
        AffineExpr digit = emitter.setCoordinate(tileRestCoordinate, tile);
        SmallVector<AffineExpr> parts = emitter.delinearize(digit, {count(otherRowDims), rowTiles});
        setPlace(otherRowDims, parts[0]);
        rowTile = name(tripCoordinate, parts[1]);
        at[rowDim] = getFirst(rowTile, rows, rowDim);
        emitTile();
        return {};
      };
      if (tiles % packedTiles == 0)
        return body();
      Value inside =
          arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult, tile,
                                emitter.indexConstant(tiles));
      return emitter.guard(inside, {}, body);
    });
  });
}

void weir::emitTileContraction(PointEmitter &emitter, EmittedKernel &launch) {
  TileContraction(emitter).run(launch);
}
