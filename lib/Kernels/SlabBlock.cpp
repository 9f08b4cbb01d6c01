//===- SlabBlock.cpp - Kernels in blocks whose factors a workgroup shares -===//
//
// A workgroup owns some rows of the result and all, or many, of its columns. It walks the other
// dimension of the blocks, some numbers of it at a time:
//
//   for each block:   add up the inner products of its rows and numbers, slab by slab
//                     compute the contraction's factor from these sums, in workgroup memory
//                     add the products of this factor and the other one, slab by slab
//
// An invocation has the same rows in both sums. A block that is not whole comes first. So products
// are added in order, one by one, each by an fma, and the sums have the bits of any contraction.
// If the factor is the exponentials that the rows' reductions sum, the walk keeps the maximum of
// each row, and a larger one scales the row's sums before a block is added.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "Slabs.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

namespace {
enum SlabBlockCoordinates : unsigned {
  // Of the summed dimensions but the walked one.
  outerProductCoordinate = workgroupBlockCoordinates,
  slabOfBlockCoordinate,
  productOfSlabCoordinate,
  rowOfThreadsCoordinate,
  rowOfThreadsInBlockCoordinate,
  neededBlockCoordinate,
  columnOfThreadsCoordinate,
  insideResultUnitCoordinate,
};

/// Blocks whose inner sums are fma of factors in workgroup memory. An invocation has sums of single
/// numbers.
class SlabBlock : public WorkgroupBlocks {
public:
  SlabBlock(PointEmitter &emitter, const SlabBlockTile &tile, Point getPoint);

  void begin(AffineExpr thread, AffineExpr rowTile) override;
  void sum(const Block &block) override;
  int64_t countUnits(const Block &) const override { return tile.numbers; }
  AffineExpr getRow(AffineExpr row) const override { return scores.getRow(row); }
  AffineExpr getNumber(int64_t unit) const override { return scores.getColumn(unit); }

  SlabSums scores; ///< the layout of a block's sums
  /// Workgroup memory for a value of each of a block's rows and numbers, or null. There the sums of
  /// the first of several inner contractions wait for the others, each for its own invocation.
  Value memory;
  /// Returns the place in it.
  AffineExpr getPlace(int64_t row, int64_t number) const {
    return scores.getColumn(number) * (tile.getTileRows() + slabPadding) +
           scores.getRow(emitter.constant(row));
  }

private:
  const SlabBlockTile &tile;
  struct Sides {
    SlabSide ofRows, ofNumbers;
  };
  std::vector<Sides> sides;             ///< of each inner contraction
  std::vector<SmallVector<Value>> sums; ///< of each inner contraction

  AffineExpr rowThread;       ///< where no block is computed
  SmallVector<Value> waiting; ///< of some rows, for `at`
  bool waits(size_t inner) const { return memory && inner == 0 && blocks.inner.size() > 1; }

  Value getSum(size_t inner, int64_t row, int64_t unit) override;
  void enter(Block &block) override;
  void leave() override;
  SlabSide makeSide(const Blocks::Inner &inner, bool isOfRows);
};
} // namespace

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// Whether sums in f32 are those of all of the kernel's contractions: others need more registers.
static bool sumsF32(const Blocks &blocks) {
  auto isF32 = [](Operation *op) { return getElementTypeOrSelf(op->getResult(0)).isF32(); };
  return (!blocks.factor || isF32(blocks.factor->getOwner())) &&
         llvm::all_of(blocks.inner, [&](const Blocks::Inner &inner) { return isF32(inner.op); });
}

std::optional<SlabBlockTile> weir::chooseSlabBlockTile(const KernelDomain &domain,
                                                       const Profile &profile) {
  constexpr int64_t elementBytes = 4;
  const Blocks *blocks = domain.getBlocks();
  SlabBlockTile tile;
  if (!blocks || profile.contractionSlab == 0 || profile.hasFreeVectors() ||
      profile.vectorWidth == 1 || profile.subgroupSize % tile.columnThreads != 0 ||
      tile.getThreads() > profile.maxWorkgroupSize || !sumsF32(*blocks))
    return std::nullopt;
  ArrayRef<int64_t> sizes = domain.getSizes();
  int64_t allRows = sizes[blocks->rowDim], allNumbers = sizes[blocks->walkedDim];
  int64_t columnTiles = 1, allColumns = 1, width = 0;
  if (blocks->factor) {
    auto op = cast<linalg::GenericOp>(blocks->factor->getOwner());
    allColumns = sizes[ContractionSides(domain, op, profile).columnDim];
    width = tile.columnThreads * tile.columns;
    columnTiles = llvm::divideCeil(allColumns, width);
  }
  // Half of a tile behind the end is too much.
  if (2 * allColumns < columnTiles * width || 2 * allNumbers < tile.getNumbers())
    return std::nullopt;
  std::optional<SlabBlockTile> best;
  for (int64_t rows : {2 * slabVector, slabVector}) {
    tile.rows = rows;
    int64_t height = tile.getTileRows();
    int64_t tiles = getProduct(domain.getRowSizes()) / allRows / allColumns * columnTiles *
                    llvm::divideCeil(allRows, height);
    int64_t elements =
        getSlabElements(height, tile.slab) + getSlabElements(tile.getNumbers(), tile.slab);
    if (blocks->factor)
      elements += getSlabElements(width, tile.slab) + getSlabElements(height, tile.getNumbers());
    bool isShared = llvm::all_of(ArrayRef({height, tile.getNumbers(), width}), [&](int64_t side) {
      return canShareSlab(side, tile.slab, tile.getThreads());
    });
    if (!isShared || tiles < tuning::workgroups::few || 2 * allRows < height ||
        elements * elementBytes > profile.getDeclaredMemory())
      continue;
    best = tile;
    if (tiles >= tuning::workgroups::many)
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Inner sums
//===----------------------------------------------------------------------===//

SlabBlock::SlabBlock(PointEmitter &emitter, const SlabBlockTile &tile, Point getPoint)
    : WorkgroupBlocks(emitter, getPoint, tile.getTileRows(), tile.getNumbers()),
      scores{emitter, tile.rowThreads, tile.columnThreads, tile.rows, tile.numbers, slabVector, {},
             {}},
      tile(tile) {
  rows = tile.rows;
  sharers = tile.columnThreads;
  // One after the other, the inner contractions use the same memory.
  Type type = emitter.getElementType(linalg::GenericOp(blocks.inner.front().op).getResult(0));
  Value ofRows = allocateShared(emitter, type, getSlabElements(tile.getTileRows(), tile.slab)),
        ofNumbers = allocateShared(emitter, type, getSlabElements(tile.getNumbers(), tile.slab));
  for (const Blocks::Inner &inner : blocks.inner) {
    sides.push_back({makeSide(inner, /*isOfRows=*/true), makeSide(inner, /*isOfRows=*/false)});
    sides.back().ofRows.stages = {ofRows};
    sides.back().ofNumbers.stages = {ofNumbers};
  }
}

SlabSide SlabBlock::makeSide(const Blocks::Inner &inner, bool isOfRows) {
  OpOperand *factor = isOfRows ? inner.rowFactor : inner.walkedFactor;
  auto getIndices = [this, &inner, isOfRows, factor](AffineExpr element,
                                                     ArrayRef<AffineExpr> products) {
    AffineExpr none = emitter.constant(0);
    SmallVector<AffineExpr> point = getPoint(isOfRows ? element : none, isOfRows ? none : element);
    return getInnerIndices(emitter, inner, factor, point, products);
  };
  SlabSide side(emitter, factor, getInnerSizes(inner.op), getIndices);
  side.elements = isOfRows ? tile.getTileRows() : tile.getNumbers();
  side.all = isOfRows ? allRows : allNumbers;
  side.slab = tile.slab;
  side.threads = tile.getThreads();
  return side;
}

void SlabBlock::begin(AffineExpr thread, AffineExpr rowTile) {
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  scores.rowThread = name(rowOfThreadsCoordinate, thread.floorDiv(tile.columnThreads));
  scores.columnThread = sharer = name(columnOfThreadsCoordinate, thread % tile.columnThreads);
  firstRow = rowTile * tile.getTileRows();
  int64_t early = allNumbers % tile.getNumbers();
  for (Sides &side : sides) {
    side.ofRows.first = firstRow;
    side.ofNumbers.first = emitter.dim(blockCoordinate) * tile.getNumbers() + early;
    for (SlabSide *one : {&side.ofRows, &side.ofNumbers})
      one->chooseShares(thread, emitter.dim(slabOfBlockCoordinate));
  }
}

void SlabBlock::enter(Block &block) {
  rowThread = scores.rowThread;
  if (blocks.inner.size() == 1 && !blocks.isOneWalk())
    return;
  // Two inner sums, or rows' maxima beside sums, leave no registers: what depends on a row alone,
  // or a number, is loaded again for each block, behind these sums and not before the branch around
  // them.
  scores.rowThread =
      emitter.setCoordinate(rowOfThreadsInBlockCoordinate, emitter.expand(rowThread));
  if (!masked.empty() && block.count == tileNumbers)
    block.first =
        emitter.setCoordinate(neededBlockCoordinate, emitter.expand(emitter.dim(blockCoordinate))) *
            tileNumbers +
        allNumbers % tileNumbers;
}

void SlabBlock::leave() { scores.rowThread = rowThread; }

void SlabBlock::sum(const Block &block) {
  OpBuilder &b = emitter.builder();
  sums.clear();
  for (auto [i, inner] : llvm::enumerate(blocks.inner)) {
    auto place = emitter.codeFor(inner.op);
    if (i > 0) // all have read what is overwritten
      gpu::BarrierOp::create(b, emitter.loc);
    Sides &side = sides[i];
    side.ofNumbers.first = block.first;
    side.ofNumbers.present = block.count;
    Type type = emitter.getElementType(linalg::GenericOp(inner.op).getResult(0));
    Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(type));
    SmallVector<Value> start(tile.rows * tile.numbers, zero);
    sums.push_back(scores.addSlabs(&side.ofRows, side.ofRows.stages.front(), side.ofNumbers,
                                   emitter.constant(0), getProduct(getInnerSizes(inner.op)),
                                   slabOfBlockCoordinate, productOfSlabCoordinate, start));
    if (!waits(i))
      continue;
    for (int64_t number = 0; number < tile.numbers; ++number)
      for (int64_t row = 0; row < tile.rows; row += slabVector) {
        SmallVector<Value> values;
        for (int64_t i = 0; i < slabVector; ++i)
          values.push_back(sums.front()[(row + i) * tile.numbers + number]);
        storeShared(emitter, memory, getPlace(row, number), values);
      }
  }
}

Value SlabBlock::getSum(size_t inner, int64_t row, int64_t unit) {
  if (!waits(inner))
    return sums[inner][row * tile.numbers + unit];
  if (row % slabVector == 0)
    waiting = loadShared(emitter, memory, getPlace(row, unit));
  return waiting[row % slabVector];
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

namespace {
class SlabBlockContraction {
public:
  SlabBlockContraction(PointEmitter &emitter, const SlabBlockTile &tile)
      : emitter(emitter), tile(tile), blocks(*emitter.domain.getBlocks()),
        op(cast<linalg::GenericOp>(blocks.factor->getOwner())),
        sides(emitter.domain, op, emitter.profile), sizes(emitter.domain.getSizes()),
        block(emitter, tile,
              [this](AffineExpr row, AffineExpr number) {
                return getPoint(row, this->emitter.constant(0), number);
              }),
        ofColumns(makeColumns()), sums{emitter,
                                       tile.rowThreads,
                                       tile.columnThreads,
                                       tile.rows,
                                       tile.columns,
                                       sizes[sides.columnDim] % slabVector ? 1 : slabVector,
                                       {},
                                       {}} {
    Type type = emitter.getElementType(op->getResult(0));
    ofColumns.stages = {
        allocateShared(emitter, type, getSlabElements(ofColumns.elements, tile.slab))};
    block.memory =
        allocateShared(emitter, type, getSlabElements(tile.getTileRows(), tile.getNumbers()));
    if (blocks.isOneWalk())
      softmax.emplace(emitter, block);
  }
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const SlabBlockTile &tile;
  const Blocks &blocks;
  linalg::GenericOp op;
  ContractionSides sides;
  ArrayRef<int64_t> sizes;
  SlabBlock block;
  SlabSide ofColumns;
  SlabSums sums;
  SmallVector<AffineExpr> rest, outer;
  std::optional<BlockSoftmax> softmax; ///< of one walk

  SmallVector<AffineExpr> getPoint(AffineExpr row, AffineExpr column, AffineExpr number) const {
    SmallVector<AffineExpr> products(outer);
    products.push_back(number);
    return sides.getPoint(row, column, rest, products);
  }
  SlabSide makeColumns();
  int64_t countSums() const { return tile.rows * tile.columns; }
  void raiseRows(const SlabBlock::Block &at, MutableArrayRef<Value> running);
  void computeFactors(const SlabBlock::Block &at);
  SmallVector<Value> addBlock(const SlabBlock::Block &at, ValueRange running);
  void emitTile(AffineExpr thread, Value number);
};
} // namespace

SlabSide SlabBlockContraction::makeColumns() {
  auto getIndices = [this](AffineExpr element, ArrayRef<AffineExpr> products) {
    SmallVector<AffineExpr> point = getPoint(emitter.constant(0), element, products.front());
    return emitter.apply(getAccessMap(op, sides.columnFactor), emitter.getLoops(op, point));
  };
  SlabSide side(emitter, sides.columnFactor, sizes[blocks.walkedDim], getIndices);
  side.elements = tile.columnThreads * tile.columns;
  side.all = sizes[sides.columnDim];
  side.slab = tile.slab;
  side.threads = tile.getThreads();
  return side;
}

/// Computes the contraction's factor at the block's rows and numbers in workgroup memory.
void SlabBlockContraction::computeFactors(const SlabBlock::Block &at) {
  for (int64_t number = 0; number < tile.numbers; ++number) {
    SmallVector<Value> values;
    for (int64_t row = 0; row < tile.rows; ++row) {
      SmallVector<AffineExpr> point = block.at(at, row, number);
      values.push_back(evaluateFactor(
          emitter, blocks.factor,
          emitter.apply(getAccessMap(op, blocks.factor), emitter.getLoops(op, point))));
      if (values.size() < size_t(slabVector))
        continue;
      storeShared(emitter, block.memory, block.getPlace(row + 1 - slabVector, number), values);
      values.clear();
    }
  }
}

/// Adds the block to the rows' maxima and sums, which are behind the sums of products, and scales
/// these. The exponentials are the contraction's factor, in workgroup memory: a few rows at a time,
/// so that their registers are free again.
void SlabBlockContraction::raiseRows(const SlabBlock::Block &at, MutableArrayRef<Value> running) {
  for (int64_t first = 0; first < tile.rows; first += slabVector) {
    std::vector<SmallVector<Value>> powers;
    for (int64_t row = first; row < first + slabVector; ++row) {
      BlockSoftmax::Row added = softmax->raiseRow(at, row, running.drop_front(countSums()));
      for (Value &sum : running.slice(row * tile.columns, tile.columns))
        sum = arith::MulFOp::create(emitter.builder(), emitter.loc, sum, added.scale);
      powers.push_back(std::move(added.powers));
    }
    for (int64_t number = 0; number < tile.numbers; ++number)
      storeShared(emitter, block.memory, block.getPlace(first, number),
                  llvm::map_to_vector(powers, [&](ArrayRef<Value> row) { return row[number]; }));
  }
}

/// Adds the products of a block.
SmallVector<Value> SlabBlockContraction::addBlock(const SlabBlock::Block &at, ValueRange running) {
  block.sum(at);
  SmallVector<Value> next(running);
  if (softmax)
    raiseRows(at, next);
  else
    computeFactors(at);
  SmallVector<Value> added = sums.addSlabs(/*ofRows=*/nullptr, block.memory, ofColumns, at.first,
                                           at.count, slabOfBlockCoordinate, productOfSlabCoordinate,
                                           ArrayRef(next).take_front(countSums()));
  llvm::append_range(added, ArrayRef(next).drop_front(countSums()));
  return added;
}

void SlabBlockContraction::emitTile(AffineExpr thread, Value number) {
  AffineExpr at = emitter.setCoordinate(unitCoordinate, number);
  int64_t rowTiles = llvm::divideCeil(sizes[sides.rowDim], tile.getTileRows()),
          columnTiles = llvm::divideCeil(ofColumns.all, ofColumns.elements);
  // Neighbouring workgroups walk the same blocks.
  SmallVector<AffineExpr> digits =
      getDigits(emitter, at, {getProduct(sides.restSizes), columnTiles, rowTiles});
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  AffineExpr rowTile = name(tileRowCoordinate, digits[2]),
             columnTile = name(tileColumnCoordinate, digits[1]);
  rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), sides.restSizes);
  ArrayRef<int64_t> outerSizes = emitter.domain.getColumnSizes().drop_back();
  outer = emitter.delinearize(emitter.dim(outerProductCoordinate), outerSizes);
  block.begin(thread, rowTile);
  sums.rowThread = block.scores.rowThread;
  sums.columnThread = block.scores.columnThread;
  ofColumns.first = columnTile * ofColumns.elements;
  ofColumns.chooseShares(thread, emitter.dim(slabOfBlockCoordinate));

  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc,
                                         b.getZeroAttr(emitter.getElementType(op->getResult(0))));
  SmallVector<Value> totals(countSums(), zero);
  if (softmax)
    llvm::append_range(totals, softmax->startShared());
  totals = emitter.loop(getProduct(outerSizes), totals, [&](Value trip, ValueRange carried) {
    outer = emitter.delinearize(emitter.setCoordinate(outerProductCoordinate, trip), outerSizes);
    return block.walk(carried, [&](const SlabBlock::Block &at, ValueRange running) {
      return addBlock(at, running);
    });
  });
  ArrayRef<Value> ofProducts = ArrayRef(totals).take_front(countSums());
  SlabSums::Coordinates coordinates = {invocationRowCoordinate, insideRowCoordinate,
                                       insideResultUnitCoordinate};
  if (!softmax)
    return sums.store(sides, rowTile, columnTile, rest, ofProducts, coordinates);
  SmallVector<Value> ofRows = softmax->gather(ArrayRef(totals).drop_front(countSums()));
  sums.store(sides, rowTile, columnTile, rest, ofProducts, coordinates,
             [&](Value row) { softmax->setRow(ofRows, row); });
  if (storesBlockRows(emitter))
    guardAt(emitter, {{block.sharer, 0}, {columnTile, columnTiles - 1}}, [&] {
      softmax->store(ofRows, rowTile, [&](AffineExpr row) {
        return getPoint(row, emitter.constant(0), emitter.constant(0));
      });
    });
}

void SlabBlockContraction::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(op);
  int64_t tiles = getProduct(sides.restSizes) *
                  llvm::divideCeil(sizes[sides.rowDim], tile.getTileRows()) *
                  llvm::divideCeil(ofColumns.all, ofColumns.elements);
  emitBlockTiles(emitter, tile.getThreads(), tiles, launch,
                 [&](AffineExpr thread, Value group) { emitTile(thread, group); });
}

void weir::emitSlabBlockContraction(PointEmitter &emitter, const SlabBlockTile &tile,
                                    EmittedKernel &launch) {
  SlabBlockContraction(emitter, tile).run(launch);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void weir::emitSlabBlockRow(PointEmitter &emitter, const SlabBlockTile &tile,
                            EmittedKernel &launch) {
  emitWorkgroupBlockRow(emitter, tile.getThreads(), launch, [&](WorkgroupBlocks::Point getPoint) {
    return std::make_unique<SlabBlock>(emitter, tile, getPoint);
  });
}
