//===- SlabContraction.cpp - Sums of products whose factors a workgroup shares ===//
//
// A workgroup owns a tile of the result, an invocation some rows and columns of it. The summed
// dimensions are walked in slabs of a few products. All invocations bring a slab of both factors
// to workgroup memory, a share each, and then each adds the slab's products to its sums. What the
// next slab needs is loaded before the products of this one are added, so that it is there when
// its turn comes:
//
//   load 0
//   for each slab:   store, barrier, load the next, add products, barrier
//
// A slab that is not whole comes first. So products are added in order, one by one, each by an
// fma, and the bits are those of any other tile.
//
// In workgroup memory a product's rows, or columns, are neighbours. The vectors of an invocation
// are as far apart as those of all invocations reach, so that a subgroup reads neighbouring ones.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

/// Products whose code stands one behind the other: a loop around each costs instructions.
static constexpr int64_t unrolledProducts = 8;
/// Sums that an invocation has registers for.
static constexpr int64_t maxSums = 256;
/// Elements that an invocation brings at once, and neighbours that it owns.
static constexpr int64_t vectorElements = 4;
/// Elements behind each product's in workgroup memory. They spread the products over its banks
/// and keep vectors aligned.
static constexpr int64_t padding = vectorElements;

namespace {
enum SlabCoordinates : unsigned {
  slabCoordinate = productCoordinate,
  productInSlabCoordinate,
  rowThreadCoordinate,
  columnThreadCoordinate,
  resultRowCoordinate,
  insideRowCoordinate,
  insideUnitCoordinate,
};
} // namespace

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// Returns the vectors of a slab that each invocation brings; nothing if they don't divide it.
static std::optional<int64_t> countShares(int64_t elements, int64_t slab, int64_t threads) {
  int64_t vectors = elements * slab / vectorElements;
  return vectors % threads == 0 ? std::optional(vectors / threads) : std::nullopt;
}

std::optional<SlabTile> weir::chooseSlabTile(const KernelDomain &domain, const Profile &profile) {
  // More workgroups than that keep a device busy; fewer than the least leave most of it idle.
  constexpr int64_t manyWorkgroups = 64, fewWorkgroups = 16;
  if (profile.contractionSlab == 0 || profile.hasFreeVectors() || profile.vectorWidth == 1 ||
      domain.getContractions().size() != 1 || domain.getBlocks())
    return std::nullopt;
  linalg::GenericOp op = domain.getContractions().front();
  ArrayRef<int64_t> sizes = domain.getSizes();
  SlabTile tile{ContractionSides(domain, op, profile)};
  int64_t threads = profile.workgroupSize;
  for (tile.columnThreads = 1; tile.columnThreads * tile.columnThreads < threads;)
    tile.columnThreads *= 2;
  tile.rowThreads = threads / tile.columnThreads;
  if (tile.rowThreads * tile.columnThreads != threads)
    return std::nullopt;
  int64_t elementBytes =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementTypeBitWidth() / 8;
  int64_t batches = getProduct(tile.sides.restSizes);
  int64_t allRows = sizes[tile.sides.rowDim], allColumns = sizes[tile.sides.columnDim];
  std::optional<SlabTile> best;
  const bool isPart = getColumnParts(op).has_value();
  bool hasMany = false;
  // From the largest down, until there are many workgroups.
  for (auto [rows, columns] :
       {std::pair(2, 4), std::pair(2, 2), std::pair(1, 2), std::pair(1, 1)}) {
    tile.rows = profile.slabTile / 2 * rows;
    tile.columns = profile.slabTile / 2 * columns;
    if (tile.rows % vectorElements || tile.columns % vectorElements ||
        tile.rows * tile.columns > maxSums)
      continue;
    int64_t height = tile.getTileRows(), width = tile.getTileColumns();
    tile.slab = std::max({profile.contractionSlab, vectorElements * threads / height,
                          vectorElements * threads / width});
    std::optional<int64_t> rowShares = countShares(height, tile.slab, threads),
                           columnShares = countShares(width, tile.slab, threads);
    int64_t bytes = tile.slab * (height + width + 2 * padding) * elementBytes;
    if (!rowShares || !columnShares || bytes > profile.workgroupMemory ||
        getProduct(domain.getColumnSizes()) < 2 * tile.slab)
      continue;
    int64_t tiles =
        batches * llvm::divideCeil(allRows, height) * llvm::divideCeil(allColumns, width);
    // Half of a tile behind the end is too much.
    if (tiles < fewWorkgroups || 2 * batches * allRows * allColumns < tiles * height * width)
      continue;
    // Elements behind the end of a part's tiles are not proved to stay inside: a smaller tile is
    // taken if it has nothing there.
    bool isWhole = !isPart || (allRows % height == 0 && allColumns % width == 0);
    if (!hasMany || isWhole)
      best = tile;
    hasMany |= tiles >= manyWorkgroups;
    if (hasMany && isWhole)
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// The emitter
//===----------------------------------------------------------------------===//

namespace {
class SlabContraction {
public:
  SlabContraction(PointEmitter &emitter, const SlabTile &tile)
      : emitter(emitter), tile(tile), sides(tile.sides),
        op(emitter.domain.getContractions().front()), sizes(emitter.domain.getSizes()),
        products(getProduct(emitter.domain.getColumnSizes())),
        type(emitter.getElementType(op->getResult(0))) {
    ofRows.factor = sides.rowFactor;
    ofRows.isOfRows = true;
    ofRows.elements = tile.getTileRows();
    ofRows.all = sizes[sides.rowDim];
    ofColumns.factor = sides.columnFactor;
    ofColumns.elements = tile.getTileColumns();
    ofColumns.all = sizes[sides.columnDim];
  }
  void run(EmittedKernel &launch);

private:
  /// A factor's part of a tile.
  struct Side {
    OpOperand *factor = nullptr;
    bool isOfRows = false;
    int64_t elements = 0;  ///< rows or columns of the tile
    int64_t all = 0;       ///< rows or columns of the result
    AffineExpr tileNumber; ///< of the tile among those along the side
    Value memory;          ///< of the workgroup
    /// The direction of a vector that is loaded at once.
    enum class Along { Products, Elements, None } along = Along::None;
    bool walksProducts = false; ///< whether neighbours in memory are products, not elements
    /// Of each share: the number of its first element in the tile, the same among all, and its
    /// first product in the slab. In vectors where it is loaded so.
    struct Share {
      AffineExpr element, ofAll, product;
    };
    SmallVector<Share> shares; ///< a vector each, or an element each
    int64_t getStride() const { return elements + padding; }
  };

  PointEmitter &emitter;
  const SlabTile &tile;
  const ContractionSides &sides;
  linalg::GenericOp op;
  ArrayRef<int64_t> sizes;
  int64_t products;
  Type type;
  Side ofRows, ofColumns;
  SmallVector<AffineExpr> rest;
  AffineExpr thread, rowThread, columnThread;

  int64_t getUnitColumns() const {
    return sizes[sides.columnDim] % vectorElements == 0 ? vectorElements : 1;
  }
  SmallVector<AffineExpr> getProducts(AffineExpr number, int64_t vector) const;
  SmallVector<AffineExpr> getIndices(const Side &side, AffineExpr element,
                                     ArrayRef<AffineExpr> products) const;
  void allocate(Side &side);
  void chooseShares(Side &side);
  SmallVector<Value> load(const Side &side, AffineExpr firstProduct, int64_t count);
  void store(const Side &side, ArrayRef<Value> loaded);
  AffineExpr getRowInTile(AffineExpr row) const;
  AffineExpr getColumnInTile(int64_t column) const;
  SmallVector<Value> addProducts(int64_t count, ValueRange sums);
  SmallVector<Value> sumProducts();
  Value getSum(ArrayRef<Value> sums, Value row, int64_t unit);
  void storeUnit(int64_t unit, AffineExpr unitOfResult, ArrayRef<Value> sums);
  void emitTile(Value number);
  void barrier() { gpu::BarrierOp::create(emitter.builder(), emitter.loc); }
};
} // namespace

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Returns the summed coordinates of a product, or of a vector of them.
SmallVector<AffineExpr> SlabContraction::getProducts(AffineExpr number, int64_t vector) const {
  SmallVector<int64_t> counts(emitter.domain.getColumnSizes());
  if (vector == 1)
    return emitter.delinearize(number, counts);
  counts.back() /= vector;
  SmallVector<AffineExpr> at = emitter.delinearize(number, counts);
  at.back() = at.back() * vector + emitter.vectorLane();
  return at;
}

SmallVector<AffineExpr> SlabContraction::getIndices(const Side &side, AffineExpr element,
                                                    ArrayRef<AffineExpr> products) const {
  AffineExpr none = emitter.constant(0);
  SmallVector<AffineExpr> point = sides.getPoint(side.isOfRows ? element : none,
                                                 side.isOfRows ? none : element, rest, products);
  return emitter.apply(getAccessMap(op, side.factor), emitter.getLoops(op, point));
}

void SlabContraction::allocate(Side &side) {
  auto shared =
      MemRefType::get({tile.slab * side.getStride()}, type, MemRefLayoutAttrInterface{},
                      gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup));
  side.memory = emitter.getFunction().addWorkgroupAttribution(shared, emitter.loc);
}

/// Chooses what the invocation brings of a factor, in vectors if they lie in memory as such.
void SlabContraction::chooseShares(Side &side) {
  using Along = Side::Along;
  int64_t threads = emitter.profile.workgroupSize;
  AffineExpr first = side.tileNumber * side.elements, lane = emitter.vectorLane();
  auto isWhole = [&](AffineExpr element, ArrayRef<AffineExpr> products) {
    return emitter.isVectorFriendly(side.factor->get(), getIndices(side, element, products));
  };
  AffineExpr any = emitter.dim(slabCoordinate);
  ArrayRef<int64_t> counts = emitter.domain.getColumnSizes();
  if (counts.back() % vectorElements == 0 && isWhole(first, getProducts(any, vectorElements)))
    side.along = Along::Products;
  else if (side.all % vectorElements == 0 && isWhole(first + lane, getProducts(any, 1)))
    side.along = Along::Elements;
  else
    side.along = Along::None;
  // The last index of a tensor is that of neighbours.
  auto loops = emitter.domain.getDims(op);
  AffineMap map = getAccessMap(op, side.factor);
  side.walksProducts = false;
  for (auto [loop, dim] : llvm::enumerate(loops))
    side.walksProducts |= dim >= int64_t(emitter.domain.getNumRows()) && map.getNumResults() > 0 &&
                          map.getResults().back().isFunctionOfDim(loop);

  int64_t vector = side.along == Along::None ? 1 : vectorElements;
  int64_t inElements = side.along == Along::Elements ? vector : 1;
  int64_t inProducts = side.along == Along::Products ? vector : 1;
  int64_t count = side.elements * tile.slab / vector / threads;
  bool isPartial = side.all % side.elements != 0;
  side.shares.clear();
  for (int64_t i = 0; i < count; ++i) {
    AffineExpr number = thread + i * threads;
    bool productsFirst =
        side.along == Along::Products || (side.along == Along::None && side.walksProducts);
    int64_t inner = productsFirst ? tile.slab / inProducts : side.elements / inElements;
    Side::Share share;
    share.element = productsFirst ? number.floorDiv(inner) : number % inner;
    share.product = productsFirst ? number % inner : number.floorDiv(inner);
    share.ofAll = side.tileNumber * (side.elements / inElements) + share.element;
    if (isPartial) // an element that is there, in place of one that is not
      share.ofAll = share.ofAll % (side.all / inElements);
    side.shares.push_back(share);
  }
}

/// Loads the invocation's shares of a slab of `count` products.
SmallVector<Value> SlabContraction::load(const Side &side, AffineExpr firstProduct, int64_t count) {
  using Along = Side::Along;
  AffineExpr lane = emitter.vectorLane();
  SmallVector<Value> loaded;
  for (const Side::Share &share : side.shares) {
    int64_t vector = side.along == Along::Products ? vectorElements : 1;
    AffineExpr product = share.product;
    if (count < tile.slab)
      product = product % (count / vector); // a product that is there, in place of one that is not
    SmallVector<AffineExpr> at = getProducts(firstProduct.floorDiv(vector) + product, vector);
    AffineExpr element =
        side.along == Along::Elements ? share.ofAll * vectorElements + lane : share.ofAll;
    Value value = evaluateFactor(emitter, side.factor, getIndices(side, element, at));
    if (side.along == Along::None) {
      loaded.push_back(value);
      continue;
    }
    value = emitter.broadcast(value);
    for (int64_t i = 0; i < vectorElements; ++i)
      loaded.push_back(emitter.extract(value, i));
  }
  return loaded;
}

/// Stores what was loaded in workgroup memory.
void SlabContraction::store(const Side &side, ArrayRef<Value> loaded) {
  using Along = Side::Along;
  OpBuilder &b = emitter.builder();
  auto put = [&](Value value, AffineExpr product, AffineExpr element) {
    memref::StoreOp::create(b, emitter.loc, value, side.memory,
                            emitter.expand(product * side.getStride() + element));
  };
  for (auto [i, share] : llvm::enumerate(side.shares)) {
    if (side.along == Along::None) {
      put(loaded[i], share.product, share.element);
      continue;
    }
    for (int64_t lane = 0; lane < vectorElements; ++lane) {
      Value value = loaded[i * vectorElements + lane];
      if (side.along == Along::Products)
        put(value, share.product * vectorElements + lane, share.element);
      else
        put(value, share.product, share.element * vectorElements + lane);
    }
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

AffineExpr SlabContraction::getRowInTile(AffineExpr row) const {
  if (tile.rows == vectorElements)
    return rowThread * vectorElements + row;
  return (row.floorDiv(vectorElements) * tile.rowThreads + rowThread) * vectorElements +
         row % vectorElements;
}

AffineExpr SlabContraction::getColumnInTile(int64_t column) const {
  int64_t unit = getUnitColumns();
  return (columnThread + column / unit * tile.columnThreads) * unit + column % unit;
}

/// Adds the products of the slab that is in workgroup memory.
SmallVector<Value> SlabContraction::addProducts(int64_t count, ValueRange sums) {
  OpBuilder *b = nullptr;
  auto read = [&](const Side &side, AffineExpr product, AffineExpr element) -> Value {
    Value address = emitter.expand(product * side.getStride() + element);
    return memref::LoadOp::create(*b, emitter.loc, side.memory, address);
  };
  int64_t together = count % unrolledProducts == 0 ? unrolledProducts : 1;
  return emitter.loop(count / together, sums, [&](Value trip, ValueRange running) {
    b = &emitter.builder();
    AffineExpr first = emitter.setCoordinate(productInSlabCoordinate, trip) * together;
    SmallVector<Value> next(running);
    for (int64_t i = 0; i < together; ++i) {
      SmallVector<Value> rows, columns;
      for (int64_t row = 0; row < tile.rows; ++row)
        rows.push_back(read(ofRows, first + i, getRowInTile(emitter.constant(row))));
      for (int64_t column = 0; column < tile.columns; ++column)
        columns.push_back(read(ofColumns, first + i, getColumnInTile(column)));
      for (int64_t row = 0; row < tile.rows; ++row)
        for (int64_t column = 0; column < tile.columns; ++column) {
          Value &sum = next[row * tile.columns + column];
          sum = math::FmaOp::create(*b, emitter.loc, rows[row], columns[column], sum);
        }
    }
    return next;
  });
}

/// Computes the invocation's sums, row by row.
SmallVector<Value> SlabContraction::sumProducts() {
  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(type));
  SmallVector<Value> sums(tile.rows * tile.columns, zero);
  int64_t slabs = products / tile.slab, early = products % tile.slab;
  auto loadBoth = [&](AffineExpr firstProduct, int64_t count) {
    SmallVector<Value> loaded = load(ofRows, firstProduct, count);
    llvm::append_range(loaded, load(ofColumns, firstProduct, count));
    return loaded;
  };
  auto storeBoth = [&](ArrayRef<Value> loaded) {
    int64_t numRows =
        ofRows.shares.size() * (ofRows.along == Side::Along::None ? 1 : vectorElements);
    store(ofRows, loaded.take_front(numRows));
    store(ofColumns, loaded.drop_front(numRows));
    barrier();
  };
  if (early)
    sums = emitter.loop(1, sums, [&](Value, ValueRange running) {
      storeBoth(loadBoth(emitter.constant(0), early));
      SmallVector<Value> added = addProducts(early, running);
      barrier();
      return added;
    });
  SmallVector<Value> carried(sums);
  llvm::append_range(carried, loadBoth(emitter.constant(early), tile.slab));
  int64_t numSums = sums.size();
  carried = emitter.loop(slabs - 1, carried, [&](Value trip, ValueRange running) {
    SmallVector<Value> loaded(running.drop_front(numSums));
    storeBoth(loaded);
    AffineExpr next = emitter.setCoordinate(slabCoordinate, trip) * tile.slab;
    SmallVector<Value> ahead = loadBoth(next + (early + tile.slab), tile.slab);
    SmallVector<Value> added = addProducts(tile.slab, running.take_front(numSums));
    barrier();
    llvm::append_range(added, ahead);
    return added;
  });
  storeBoth(ArrayRef(carried).drop_front(numSums));
  return addProducts(tile.slab, ArrayRef(carried).take_front(numSums));
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns the sums of a unit of columns in a row of the invocation. Registers have no index, so
/// they are selected among all.
Value SlabContraction::getSum(ArrayRef<Value> sums, Value row, int64_t unit) {
  OpBuilder &b = emitter.builder();
  int64_t unitColumns = getUnitColumns();
  SmallVector<Value> elements;
  for (int64_t i = 0; i < unitColumns; ++i) {
    int64_t column = unit * unitColumns + i;
    Value sum = sums[column];
    for (int64_t other = 1; other < tile.rows; ++other) {
      Value isOther = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::eq, row,
                                            emitter.indexConstant(other));
      sum = arith::SelectOp::create(b, emitter.loc, isOther, sums[other * tile.columns + column],
                                    sum);
    }
    elements.push_back(sum);
  }
  if (unitColumns == 1)
    return elements.front();
  return vector::FromElementsOp::create(b, emitter.loc, VectorType::get({unitColumns}, type),
                                        elements);
}

/// Stores what comes of the sums in a unit of columns, in a loop over the rows, so that there is
/// one copy of the code for all of them.
void SlabContraction::storeUnit(int64_t unit, AffineExpr unitOfResult, ArrayRef<Value> sums) {
  int64_t unitColumns = getUnitColumns();
  SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(), emitter.constant(0));
  emitter.loop(tile.rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = ofRows.tileNumber * ofRows.elements +
                     getRowInTile(emitter.setCoordinate(resultRowCoordinate, trip));
    auto storeRow = [&](AffineExpr inside) {
      emitter.startPoint();
      AffineExpr column = unitOfResult * unitColumns;
      if (unitColumns > 1)
        column = column + emitter.vectorLane();
      storeSums(emitter, getSum(sums, trip, unit),
                sides.getPoint(inside, column, rest, noProducts));
    };
    if (ofRows.all % ofRows.elements)
      guardInside(emitter, insideRowCoordinate, row, ofRows.all, storeRow);
    else
      storeRow(row);
    return {};
  });
}

void SlabContraction::emitTile(Value number) {
  AffineExpr at = emitter.setCoordinate(unitCoordinate, number);
  int64_t rowTiles = llvm::divideCeil(ofRows.all, ofRows.elements),
          columnTiles = llvm::divideCeil(ofColumns.all, ofColumns.elements);
  // Neighbouring workgroups have the same columns.
  SmallVector<AffineExpr> digits =
      getDigits(emitter, at, {getProduct(sides.restSizes), columnTiles, rowTiles});
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  ofRows.tileNumber = name(tileRowCoordinate, digits[2]);
  ofColumns.tileNumber = name(tileColumnCoordinate, digits[1]);
  rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), sides.restSizes);
  rowThread = name(rowThreadCoordinate, thread.floorDiv(tile.columnThreads));
  columnThread = name(columnThreadCoordinate, thread % tile.columnThreads);
  chooseShares(ofRows);
  chooseShares(ofColumns);

  SmallVector<Value> sums = sumProducts();
  int64_t unitColumns = getUnitColumns(), units = tile.columns / unitColumns;
  for (int64_t unit = 0; unit < units; ++unit) {
    AffineExpr own = (ofColumns.tileNumber * units + unit) * tile.columnThreads + columnThread;
    if (ofColumns.all % ofColumns.elements)
      guardInside(emitter, insideUnitCoordinate, own, ofColumns.all / unitColumns,
                  [&](AffineExpr inside) { storeUnit(unit, inside, sums); });
    else
      storeUnit(unit, own, sums);
  }
}

void SlabContraction::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(op);
  int64_t tiles = getProduct(sides.restSizes) * llvm::divideCeil(ofRows.all, ofRows.elements) *
                  llvm::divideCeil(ofColumns.all, ofColumns.elements);
  allocate(ofRows);
  allocate(ofColumns);
  emitWorkgroups(emitter, tiles, launch, [&](Value group) {
    thread = emitter.setCoordinate(
        teamLaneCoordinate,
        gpu::ThreadIdOp::create(emitter.builder(), emitter.loc, gpu::Dimension::x));
    emitTile(group);
  });
}

void weir::emitSlabContraction(PointEmitter &emitter, const SlabTile &tile, EmittedKernel &launch) {
  SlabContraction(emitter, tile).run(launch);
}
