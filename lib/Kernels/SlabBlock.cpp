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
//
// A kernel that reduces rows to their maxima and sums of exponentials takes the inner sums from
// registers.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "Slabs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace weir;

namespace {
enum SlabBlockCoordinates : unsigned {
  blockCoordinate = productCoordinate,
  outerProductCoordinate, ///< of the summed dimensions but the walked one
  slabOfBlockCoordinate,
  productOfSlabCoordinate,
  rowOfThreadsCoordinate,
  rowOfThreadsInBlockCoordinate,
  neededBlockCoordinate,
  columnOfThreadsCoordinate,
  rowOfResultCoordinate,
  insideResultRowCoordinate,
  insideResultUnitCoordinate,
};

/// Walks the blocks of a workgroup's rows, and computes the inner sums.
class SlabBlock {
public:
  /// Returns the point of the domain at a row and a number of the walked dimension.
  using Point = std::function<SmallVector<AffineExpr>(AffineExpr row, AffineExpr number)>;

  SlabBlock(PointEmitter &emitter, const SlabBlockTile &tile, Point getPoint);

  /// Names the invocation's place, once the rows' tile is known.
  void begin(AffineExpr thread, AffineExpr rowTile);
  /// The numbers of a block, of which `count` are there.
  struct Block {
    AffineExpr first;
    int64_t count;
  };
  /// Calls `body` for each block in order.
  SmallVector<Value> walk(ValueRange carried,
                          function_ref<SmallVector<Value>(const Block &, ValueRange running)> body);
  /// Adds up the inner products of a block.
  void sum(const Block &block);
  /// Lets code that is emitted next read what is computed from the sums of one of the invocation's
  /// rows and numbers, of each number in the order of rows. Returns the point: of a row and number
  /// that are there.
  SmallVector<AffineExpr> at(const Block &block, int64_t row, int64_t number);

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
  PointEmitter &emitter;
  const Blocks &blocks;
  const SlabBlockTile &tile;
  Point getPoint;
  int64_t allRows, allNumbers;
  MaskedSides masked;
  AffineExpr firstRow;
  struct Sides {
    SlabSide ofRows, ofNumbers;
  };
  std::vector<Sides> sides;             ///< of each inner contraction
  std::vector<SmallVector<Value>> sums; ///< of each inner contraction

  SmallVector<Value> waiting; ///< of some rows, for `at`
  bool waits(size_t inner) const { return memory && inner == 0 && blocks.inner.size() > 1; }

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
  // More workgroups than that keep a device busy; fewer than the least leave most of it idle.
  constexpr int64_t manyWorkgroups = 64, fewWorkgroups = 16, elementBytes = 4;
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
    if (!isShared || tiles < fewWorkgroups || 2 * allRows < height ||
        elements * elementBytes > profile.getDeclaredMemory())
      continue;
    best = tile;
    if (tiles >= manyWorkgroups)
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Inner sums
//===----------------------------------------------------------------------===//

SlabBlock::SlabBlock(PointEmitter &emitter, const SlabBlockTile &tile, Point getPoint)
    : scores{emitter, tile.rowThreads, tile.columnThreads, tile.rows, tile.numbers, slabVector, {},
             {}},
      emitter(emitter), blocks(*emitter.domain.getBlocks()), tile(tile), getPoint(getPoint),
      allRows(emitter.domain.getSizes()[blocks.rowDim]),
      allNumbers(emitter.domain.getSizes()[blocks.walkedDim]), masked(findMasked(emitter)) {
  // One after the other, the inner contractions use the same memory.
  Type type = emitter.getElementType(linalg::GenericOp(blocks.inner.front().op).getResult(0));
  Value ofRows = allocateShared(emitter, type, getSlabElements(tile.getTileRows(), tile.slab)),
        ofNumbers = allocateShared(emitter, type, getSlabElements(tile.getNumbers(), tile.slab));
  for (const Blocks::Inner &inner : blocks.inner) {
    sides.push_back({makeSide(inner, /*isOfRows=*/true), makeSide(inner, /*isOfRows=*/false)});
    sides.back().ofRows.memory = ofRows;
    sides.back().ofNumbers.memory = ofNumbers;
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
  scores.columnThread = name(columnOfThreadsCoordinate, thread % tile.columnThreads);
  firstRow = rowTile * tile.getTileRows();
  int64_t early = allNumbers % tile.getNumbers();
  for (Sides &side : sides) {
    side.ofRows.first = firstRow;
    side.ofNumbers.first = emitter.dim(blockCoordinate) * tile.getNumbers() + early;
    for (SlabSide *one : {&side.ofRows, &side.ofNumbers})
      one->chooseShares(thread, emitter.dim(slabOfBlockCoordinate));
  }
}

SmallVector<Value>
SlabBlock::walk(ValueRange carried,
                function_ref<SmallVector<Value>(const Block &, ValueRange)> body) {
  SmallVector<Value> values(carried);
  int64_t numbers = tile.getNumbers(), early = allNumbers % numbers;
  AffineExpr rowThread = scores.rowThread;
  auto compute = [&](Block block, ValueRange running) {
    BlockPlace place{firstRow, tile.getTileRows(), block.first, block.count};
    SmallVector<Value> computed = whereNeeded(emitter, masked, place, running, [&] {
      // Two inner sums leave no registers: what depends on a row alone, or a number, is loaded
      // again for each block, behind these sums and not before the branch around them.
      bool fills = blocks.inner.size() > 1;
      if (fills)
        scores.rowThread =
            emitter.setCoordinate(rowOfThreadsInBlockCoordinate, emitter.expand(rowThread));
      if (fills && !masked.empty() && block.count == numbers)
        block.first = emitter.setCoordinate(neededBlockCoordinate,
                                            emitter.expand(emitter.dim(blockCoordinate))) *
                          numbers +
                      early;
      return body(block, running);
    });
    scores.rowThread = rowThread;
    return computed;
  };
  if (early)
    values = emitter.loop(1, values, [&](Value, ValueRange running) {
      return compute({emitter.constant(0), early}, running);
    });
  return emitter.loop(allNumbers / numbers, values, [&](Value trip, ValueRange running) {
    AffineExpr first = emitter.setCoordinate(blockCoordinate, trip) * numbers + early;
    return compute({first, numbers}, running);
  });
}

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
    sums.push_back(scores.addSlabs(&side.ofRows, side.ofRows.memory, side.ofNumbers,
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

SmallVector<AffineExpr> SlabBlock::at(const Block &block, int64_t row, int64_t number) {
  AffineExpr ofAll = firstRow + scores.getRow(emitter.constant(row)),
             inBlock = scores.getColumn(number);
  if (allRows % tile.getTileRows())
    ofAll = ofAll % allRows;
  if (block.count < tile.getNumbers())
    inBlock = inBlock % block.count;
  emitter.startPoint();
  for (auto [i, inner] : llvm::enumerate(blocks.inner)) {
    Value own = sums[i][row * tile.numbers + number];
    if (waits(i)) {
      if (row % slabVector == 0)
        waiting = loadShared(emitter, memory, getPlace(row, number));
      own = waiting[row % slabVector];
    }
    emitter.setReduced(linalg::GenericOp(inner.op).getResult(0), own);
  }
  return getPoint(ofAll, block.first + inBlock);
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
    ofColumns.memory =
        allocateShared(emitter, type, getSlabElements(ofColumns.elements, tile.slab));
    block.memory =
        allocateShared(emitter, type, getSlabElements(tile.getTileRows(), tile.getNumbers()));
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

  SmallVector<AffineExpr> getPoint(AffineExpr row, AffineExpr column, AffineExpr number) const {
    SmallVector<AffineExpr> products(outer);
    products.push_back(number);
    return sides.getPoint(row, column, rest, products);
  }
  SlabSide makeColumns();
  void computeFactors(const SlabBlock::Block &at);
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
  SmallVector<Value> totals(tile.rows * tile.columns, zero);
  totals = emitter.loop(getProduct(outerSizes), totals, [&](Value trip, ValueRange carried) {
    outer = emitter.delinearize(emitter.setCoordinate(outerProductCoordinate, trip), outerSizes);
    return block.walk(carried, [&](const SlabBlock::Block &at, ValueRange running) {
      block.sum(at);
      computeFactors(at);
      return sums.addSlabs(/*ofRows=*/nullptr, block.memory, ofColumns, at.first, at.count,
                           slabOfBlockCoordinate, productOfSlabCoordinate, running);
    });
  });
  sums.store(sides, rowTile, columnTile, rest, totals,
             {rowOfResultCoordinate, insideResultRowCoordinate, insideResultUnitCoordinate});
}

/// Emits `body` for workgroups of the tile's size.
static void emitTiles(PointEmitter &emitter, const SlabBlockTile &tile, int64_t tiles,
                      EmittedKernel &launch, function_ref<void(AffineExpr, Value)> body) {
  emitter.getFunction().setKnownBlockSizeAttr(
      emitter.builder().getDenseI32ArrayAttr({int32_t(tile.getThreads()), 1, 1}));
  emitWorkgroups(emitter, tiles, launch, [&](Value group) {
    AffineExpr thread = emitter.setCoordinate(
        teamLaneCoordinate,
        gpu::ThreadIdOp::create(emitter.builder(), emitter.loc, gpu::Dimension::x));
    body(thread, group);
  });
}

void SlabBlockContraction::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(op);
  int64_t tiles = getProduct(sides.restSizes) *
                  llvm::divideCeil(sizes[sides.rowDim], tile.getTileRows()) *
                  llvm::divideCeil(ofColumns.all, ofColumns.elements);
  emitTiles(emitter, tile, tiles, launch,
            [&](AffineExpr thread, Value group) { emitTile(thread, group); });
}

void weir::emitSlabBlockContraction(PointEmitter &emitter, const SlabBlockTile &tile,
                                    EmittedKernel &launch) {
  SlabBlockContraction(emitter, tile).run(launch);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
/// A kernel that reduces rows: an invocation keeps the maximum of its own numbers of each of its
/// rows so far, and the sum of the exponentials of what they are above it. Those of a row are
/// neighbours, which combine them at the end.
class SlabBlockRow {
public:
  SlabBlockRow(PointEmitter &emitter, const SlabBlockTile &tile)
      : emitter(emitter), tile(tile), blocks(*emitter.domain.getBlocks()),
        sizes(emitter.domain.getSizes()), reduced(getSoftmaxSums(emitter)),
        block(emitter, tile,
              [this](AffineExpr row, AffineExpr number) { return getPoint(row, number); }),
        restSizes(getBlockRestSizes(emitter)) {}
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const SlabBlockTile &tile;
  const Blocks &blocks;
  ArrayRef<int64_t> sizes;
  SoftmaxSums reduced;
  SlabBlock block;
  SmallVector<int64_t> restSizes;
  SmallVector<AffineExpr> rest;

  SmallVector<AffineExpr> getPoint(AffineExpr row, AffineExpr number) const {
    return getBlockPoint(emitter, rest, row, number);
  }
  Value exponential(Value value, Value maximum);
  void addElements(ArrayRef<Value> elements, Value &maximum, Value &sum);
  SmallVector<Value> addBlock(const SlabBlock::Block &at, ValueRange carried);
  void combine(SmallVectorImpl<Value> &totals);
  void store(AffineExpr rowTile, ArrayRef<Value> totals);
  void emitTile(AffineExpr thread, Value number);
};
} // namespace

Value SlabBlockRow::exponential(Value value, Value maximum) {
  OpBuilder &b = emitter.builder();
  return math::ExpOp::create(b, emitter.loc, arith::SubFOp::create(b, emitter.loc, value, maximum));
}

/// Adds elements of a row to its maximum and sum, which the new maximum scales.
void SlabBlockRow::addElements(ArrayRef<Value> elements, Value &maximum, Value &sum) {
  OpBuilder &b = emitter.builder();
  Value before = maximum;
  for (Value element : elements)
    maximum = emitter.combine(reduced.larger, maximum, element);
  sum = arith::MulFOp::create(b, emitter.loc, sum, exponential(before, maximum));
  for (Value element : elements)
    sum = arith::AddFOp::create(b, emitter.loc, sum, exponential(element, maximum));
}

/// Adds a block to the maxima and sums of the invocation's rows.
SmallVector<Value> SlabBlockRow::addBlock(const SlabBlock::Block &at, ValueRange carried) {
  Location loc = emitter.loc;
  block.sum(at);
  SmallVector<Value> next(carried);
  for (int64_t row = 0; row < tile.rows; ++row) {
    SmallVector<Value> elements;
    for (int64_t number = 0; number < tile.numbers; ++number) {
      SmallVector<AffineExpr> point = block.at(at, row, number);
      Value element = emitter.evaluate(reduced.element->get(),
                                       emitter.apply(getAccessMap(reduced.maximum, reduced.element),
                                                     emitter.getLoops(reduced.maximum, point)));
      if (at.count < tile.getNumbers()) {
        OpBuilder &b = emitter.builder();
        Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                               emitter.expand(block.scores.getColumn(number)),
                                               emitter.indexConstant(at.count));
        Value none = arith::ConstantOp::create(
            b, loc,
            FloatAttr::get(element.getType(),
                           APFloat::getInf(reduced.start.getValue().getSemantics(),
                                           /*Negative=*/true)));
        element = arith::SelectOp::create(b, loc, isInside, element, none);
      }
      elements.push_back(element);
    }
    addElements(elements, next[2 * row], next[2 * row + 1]);
  }
  // All have read what the next block overwrites.
  gpu::BarrierOp::create(emitter.builder(), loc);
  return next;
}

/// Combines the maxima and sums of the invocations that share rows.
void SlabBlockRow::combine(SmallVectorImpl<Value> &totals) {
  Value lane = emitter.expand(block.scores.columnThread);
  for (int64_t row = 0; row < tile.rows; ++row) {
    Value &maximum = totals[2 * row], &sum = totals[2 * row + 1];
    Value own = maximum;
    maximum = reduceSubgroup(emitter, reduced.larger, own, lane, tile.columnThreads);
    Value scaled =
        arith::MulFOp::create(emitter.builder(), emitter.loc, sum, exponential(own, maximum));
    sum = reduceSubgroup(emitter, reduced.add, scaled, lane, tile.columnThreads);
  }
}

void SlabBlockRow::store(AffineExpr rowTile, ArrayRef<Value> totals) {
  SmallVector<Value> maxima, sums;
  for (int64_t row = 0; row < tile.rows; ++row) {
    maxima.push_back(totals[2 * row]);
    sums.push_back(totals[2 * row + 1]);
  }
  emitter.loop(tile.rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = rowTile * tile.getTileRows() +
                     block.scores.getRow(emitter.setCoordinate(rowOfResultCoordinate, trip));
    auto storeRow = [&](AffineExpr inside) {
      emitter.startPoint();
      emitter.setReduced(reduced.maximum.getResult(0), chooseValue(emitter, maxima, trip));
      emitter.setReduced(reduced.sum.getResult(0), chooseValue(emitter, sums, trip));
      emitResults(emitter, llvm::to_vector(llvm::seq<unsigned>(emitter.kernel.getNumResults())),
                  getPoint(inside, emitter.constant(0)));
    };
    if (sizes[blocks.rowDim] % tile.getTileRows())
      guardInside(emitter, insideResultRowCoordinate, row, sizes[blocks.rowDim], storeRow);
    else
      storeRow(row);
    return {};
  });
}

void SlabBlockRow::emitTile(AffineExpr thread, Value number) {
  AffineExpr at = emitter.setCoordinate(unitCoordinate, number);
  int64_t rowTiles = llvm::divideCeil(sizes[blocks.rowDim], tile.getTileRows());
  SmallVector<AffineExpr> digits = getDigits(emitter, at, {getProduct(restSizes), rowTiles});
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  AffineExpr rowTile = name(tileRowCoordinate, digits[1]);
  rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), restSizes);
  block.begin(thread, rowTile);

  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(reduced.start.getType()));
  Value start = arith::ConstantOp::create(b, emitter.loc, reduced.start);
  SmallVector<Value> totals;
  for (int64_t row = 0; row < tile.rows; ++row)
    totals.append({start, zero});
  totals = block.walk(totals, [&](const SlabBlock::Block &block, ValueRange running) {
    return addBlock(block, running);
  });
  combine(totals);
  Value isFirst =
      arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::eq,
                            emitter.expand(block.scores.columnThread), emitter.indexConstant(0));
  emitter.guard(isFirst, {}, [&]() -> SmallVector<Value> {
    store(rowTile, totals);
    return {};
  });
}

void SlabBlockRow::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(reduced.maximum);
  int64_t tiles =
      getProduct(restSizes) * llvm::divideCeil(sizes[blocks.rowDim], tile.getTileRows());
  emitTiles(emitter, tile, tiles, launch,
            [&](AffineExpr thread, Value group) { emitTile(thread, group); });
}

void weir::emitSlabBlockRow(PointEmitter &emitter, const SlabBlockTile &tile,
                            EmittedKernel &launch) {
  SlabBlockRow(emitter, tile).run(launch);
}
