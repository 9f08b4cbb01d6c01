//===- TileContraction.cpp - Sums of products in one invocation's registers ===//
//
// For devices of one invocation with vectors that are loaded from anywhere. An invocation keeps a
// tile of sums in registers: some rows of the result, times some vectors of columns. It walks the
// summed dimensions once, in order, so that the bits do not depend on the tile. A kernel's
// contractions are summed one after the other (TileSum.cpp), and what comes of all their sums is
// computed at the end.
//
// The last tile begins earlier, so that it is as large as the others, and stores only what the
// tile before it does not.
//
//===----------------------------------------------------------------------===//

#include "TileBlock.h"
#include "TileSum.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

namespace {
class TileContraction {
public:
  TileContraction(PointEmitter &emitter)
      : emitter(emitter), tiles(Tile::choose(emitter)), tile(getStored(tiles)) {
    place.at = tile.getCoordinates();
    place.firstSum = emitter.constant(0);
    for (const Tile &tile : tiles)
      sums.emplace_back(tile, place);
    if (emitter.domain.getBlocks()) {
      block.emplace(emitter, tile.rows);
      masked = findMasked(emitter.domain);
      if (emitter.domain.getBlocks()->isOneWalk())
        softmax.emplace(emitter, *block);
    }
  }
  void run(EmittedKernel &launch);

private:
  using Way = Tile::Way;

  PointEmitter &emitter;
  const std::vector<Tile> tiles; ///< by contraction
  const Tile &tile;              ///< one of them: all have the same rows and columns
  TilePlace place;
  SmallVector<AffineExpr> &at = place.at;
  std::vector<TileSum> sums; ///< by contraction
  std::optional<TileBlock> block;
  std::optional<TileSoftmax> softmax; ///< of rows, where one walk makes it, too
  AffineExpr turn;                    ///< of the tile among those of the workgroup
  MaskedSides masked;                 ///< of the block
  Value factors;                      ///< memory of the block's row factors, by row

  /// Returns a tile of vectors of columns, if there is one.
  static const Tile &getStored(ArrayRef<Tile> tiles) {
    auto found = llvm::find_if(tiles, [](const Tile &tile) { return tile.way != Way::Dot; });
    return found == tiles.end() ? tiles.front() : *found;
  }
  void storeTile();
  void storeRow(AffineExpr row);
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
  AffineExpr getFirst(AffineExpr number, int64_t size, int64_t all, int64_t unit,
                      unsigned coordinate);
  void walkTiles(AffineExpr share, function_ref<void()> body);
  /// Whether the sums of all tiles that use a copy wait in memory.
  bool isChunked() const {
    return llvm::any_of(tiles, [](const Tile &tile) { return tile.isChunked; });
  }
  void allocateBlock();
  void computeFactors();
  void emitShare(AffineExpr share);
};
} // namespace

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
    if (depth == 0)
      number = number + side.first.floorDiv(unit);
    tile.setDigits(at, loops[depth].dims,
                   isInnermost && lanes > 1 ? number + emitter.vectorLane() : number);
    auto goOn = [&] {
      if (isInnermost)
        body(inTile * lanes + side.inTile);
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
  if (softmax) {
    auto [maximum, sum] = softmax->load(turn * tile.rows + row);
    setSoftmax(emitter, maximum, sum);
  }
  SmallVector<Value> totals;
  for (TileSum &sum : sums)
    totals.push_back(sum.load(row * tile.columns + column, lanes));
  SmallVector<AffineExpr> point(at);
  for (int64_t dim = tile.numResultDims; dim < int64_t(tile.sizes.size()); ++dim)
    point[dim] = emitter.constant(0);
  storeSums(emitter, totals, point);
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
    return walk(tile.columns, lanes, place.firstColumn, 0);
  auto emitIf = [&](arith::CmpIPredicate predicate, function_ref<void()> body) {
    Value is = arith::CmpIOp::create(emitter.builder(), emitter.loc, predicate,
                                     emitter.expand(place.columnTile), emitter.indexConstant(last));
    emitter.guard(is, {}, [&]() -> SmallVector<Value> {
      body();
      return {};
    });
  };
  emitIf(arith::CmpIPredicate::ult,
         [&] { walk(tile.columns, lanes, place.columnTile * tile.columns, 0); });
  int64_t begin = last * tile.columns, rest = tile.count(tile.columnDims) - begin;
  emitIf(arith::CmpIPredicate::eq, [&] {
    walk(rest, rest % lanes == 0 ? lanes : 1, emitter.constant(begin), tile.columns - rest);
  });
}

/// Stores what comes of a row's maximum and sum alone: once for all of its columns.
void TileContraction::storeRow(AffineExpr row) {
  guardAt(emitter, {{place.columnTile, 0}}, [&] {
    emitter.setLanes(1);
    auto [maximum, sum] = softmax->load(turn * tile.rows + row);
    SmallVector<AffineExpr> point(at);
    point[emitter.domain.getBlocks()->columnDim] = emitter.constant(0);
    point[emitter.domain.getBlocks()->walkedDim] = emitter.constant(0);
    storeBlockRow(emitter, maximum, sum, point);
    emitter.setLanes(tile.lanes);
  });
}

/// Stores the rows and columns of the tile that no tile before it stores.
void TileContraction::storeTile() {
  TileSide side = {tile.rowDims, tile.rows, tileRowCoordinate, place.firstRow, emitter.constant(0)};
  if (tile.hasPartialRows()) {
    side.first = place.rowTile * tile.rows;
    side.inTile = side.first - place.firstRow;
    side.mayEndEarly = true;
  }
  walkTile(side, 1, [&](AffineExpr row) {
    if (softmax && storesBlockRows(emitter))
      storeRow(row);
    storeColumns(row);
  });
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

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
  emitter.loop(tile.packedTiles, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    OpBuilder &b = emitter.builder();
    Value first = arith::MulIOp::create(b, emitter.loc, emitter.expand(share),
                                        emitter.indexConstant(tile.packedTiles));
    Value number = arith::AddIOp::create(b, emitter.loc, first, trip);
    auto emitTile = [&]() -> SmallVector<Value> {
      AffineExpr digit = emitter.setCoordinate(tileRestCoordinate, number);
      SmallVector<AffineExpr> parts =
          getDigits(emitter, digit, {tile.count(tile.otherRowDims), tile.rowTiles});
      setPlace(tile, place, tile.otherRowDims, parts[0]);
      place.rowTile = emitter.setCoordinate(tripCoordinate, emitter.expand(parts[1]));
      place.firstRow = getFirst(place.rowTile, tile.rows, tile.count(tile.rowDims), tile.rowUnit,
                                productCoordinate + tile.rowDims.front());
      turn = digit - share * tile.packedTiles;
      if (isChunked())
        place.firstSum = turn * (tile.rows * tile.columns);
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

void TileContraction::allocateBlock() {
  block->allocate();
  int64_t columns = block->getColumns();
  factors = allocatePrivate(emitter, tile.getSumType(), 1, tile.rows * columns);
  if (softmax)
    softmax->allocate(tile.packedTiles * tile.rows);
  sums.front().setRowFactor([this, columns](int64_t row) -> Value {
    AffineExpr number = block->getPlace(at[emitter.domain.getBlocks()->walkedDim]);
    return memref::LoadOp::create(emitter.builder(), emitter.loc, factors,
                                  emitter.expand(number + row * columns));
  });
}

/// Computes the tile's row factors of a block from the sums of the inner contractions.
void TileContraction::computeFactors() {
  block->sum(at, place.firstRow);
  int64_t lanes = block->getLanes();
  OpOperand *factor = tile.rowFactor;
  emitter.loop(tile.rows, {}, [&](Value rowTrip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = emitter.setCoordinate(tileRowCoordinate, rowTrip);
    if (softmax) {
      Value scale = softmax->addRow(at, place.firstRow, row, turn * tile.rows + row, factors,
                                    row * block->getColumns(), /*keepsPowers=*/true);
      sums.front().scaleRow(row, scale);
      return {};
    }
    return emitter.loop(block->getVectors(), {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
      AffineExpr vector = emitter.setCoordinate(tileColumnCoordinate, trip);
      block->atVector(at, place.firstRow, row, vector, [&](ArrayRef<AffineExpr> point) {
        Value value =
            emitter.broadcast(evaluateFactor(emitter, factor, tile.getIndices(factor, point)));
        vector::StoreOp::create(emitter.builder(), emitter.loc, value, factors,
                                emitter.expand(row * block->getColumns() + vector * lanes));
      });
      return {};
    });
  });
}

/// Emits the tiles of rows that share a copy of the columns, if there is one.
void TileContraction::emitShare(AffineExpr share) {
  if (!isChunked()) {
    for (TileSum &sum : sums)
      sum.pack();
    walkTiles(share, [&] {
      for (TileSum &sum : sums)
        sum.sumTile();
      storeTile();
    });
    return;
  }
  for (auto [tile, sum] : llvm::zip_equal(tiles, sums)) {
    auto add = [&, &sum = sum] {
      if (block)
        block->pack(at, sum.getFirstOfChunk(), sum.getInChunk());
      sum.pack();
      walkTiles(share, [&] {
        if (!block)
          return sum.sumTile();
        BlockPlace at{place.firstRow, tile.rows, sum.getFirstOfChunk(), sum.getInChunk()};
        whereNeeded(emitter, masked, at, {}, [&]() -> SmallVector<Value> {
          computeFactors();
          sum.sumTile();
          return {};
        });
      });
    };
    if (!tile.isChunked) {
      add();
      continue;
    }
    sum.clear(tile.packedTiles);
    if (softmax)
      softmax->clear();
    sum.walkChunks(add);
  }
  walkTiles(share, [&] { storeTile(); });
}

void TileContraction::run(EmittedKernel &launch) {
  auto located = emitter.codeFor(tile.op);
  emitter.setLanes(tile.lanes);
  int64_t batches = tile.count(tile.batchDims);
  int64_t rowsOfTiles = tile.count(tile.otherRowDims) * tile.rowTiles;
  int64_t shares = llvm::divideCeil(rowsOfTiles, tile.packedTiles);
  emitWorkgroups(emitter, batches * tile.columnTiles * shares, launch, [&](Value group) {
    for (TileSum &sum : sums)
      sum.allocate(isChunked() ? tile.packedTiles : 1);
    if (block)
      allocateBlock();
    // Neighbouring workgroups have the same columns.
    AffineExpr number = emitter.setCoordinate(unitCoordinate, group);
    SmallVector<AffineExpr> digits =
        getDigits(emitter, number, {batches, tile.columnTiles, shares});
    setPlace(tile, place, tile.batchDims, digits[0]);
    place.columnTile = emitter.setCoordinate(teamLaneCoordinate, emitter.expand(digits[1]));
    place.firstColumn = getFirst(place.columnTile, tile.columns, tile.count(tile.columnDims),
                                 tile.columnUnit, PointEmitter::firstColumnCoordinate);
    emitShare(digits[2]);
  });
}

void weir::emitTileContraction(PointEmitter &emitter, EmittedKernel &launch) {
  if (size_t dims = emitter.domain.getSizes().size(); dims > KernelDomain::maxContractionDims) {
    emitter.fail(emitter.domain.getContractions().front())
        << "has " << dims << " dimensions; a contraction has at most "
        << KernelDomain::maxContractionDims;
    return;
  }
  TileContraction(emitter).run(launch);
}
