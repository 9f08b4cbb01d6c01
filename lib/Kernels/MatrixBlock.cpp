//===- MatrixBlock.cpp - Kernels in blocks by instructions on matrices ----===//
//
// A workgroup owns some rows of the result, each of its subgroups the 16 rows of an instruction. It
// walks the other dimension of the blocks, some numbers of it at a time:
//
//   for each block:   bring the factors of its numbers to workgroup memory
//                     add up the inner products, in registers
//                     compute the contraction's factor from these sums, where they are
//                     add the products of this factor and the other one
//
// An invocation has the sums of an instruction at two rows and pairs of numbers. The instruction
// takes its first factor in the same order, so what is computed from sums is a factor as it is.
// That is an f32. It becomes two numbers of bf16, which are it up to 2^-17 of it: the graph states
// no rounding. The other factor is a number of bf16, or two of them for an f16, which are it; the
// product of the two small ones is left out.
// A factor that both contractions read at the block's numbers is in workgroup memory once.
// If the factor is the exponentials that the rows' reductions sum, the walk keeps the maximum of
// each row: four neighbours, which have a row's sums, exchange it after each block, and a larger
// one scales the sums of products in registers.
//
//===----------------------------------------------------------------------===//

#include "MatrixContraction.h"
#include "MatrixLines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

namespace {
/// Rows and columns of one instruction, lines of a matrix that ldmatrix takes, and lanes along the
/// columns of sums.
constexpr int64_t mmaRows = MatrixBlockTile::rows, mmaColumns = 8, matrixLines = 8, columnLanes = 4;

enum MatrixBlockCoordinates : unsigned {
  // Of the summed dimensions but the walked one.
  outerProductCoordinate = workgroupBlockCoordinates,
  laneCoordinate, ///< of the subgroup
  subgroupCoordinate,
};

/// Sums of a subgroup, by blocks of 16 x 8: each a vector of 2 x 2.
using Sums = SmallVector<Value>;

/// Blocks whose inner sums instructions on matrices add. An invocation has sums of pairs of
/// numbers.
class MatrixBlock : public WorkgroupBlocks {
public:
  MatrixBlock(PointEmitter &emitter, const MatrixBlockTile &tile, Point getPoint);

  void begin(AffineExpr thread, AffineExpr rowTile) override;
  void sum(const Block &block) override;
  int64_t countUnits(const Block &block) const override {
    return llvm::divideCeil(block.count, tile.getProducts()) * tile.getProducts() / mmaColumns;
  }
  AffineExpr getRow(AffineExpr row) const override {
    return subgroup * mmaRows + lane.floorDiv(columnLanes) + row * (mmaRows / 2);
  }
  AffineExpr getNumber(int64_t unit) const override {
    return lane % columnLanes * 2 + unit * mmaColumns;
  }

  /// The other factor of the contraction, if there is one: brought with each block.
  MatrixLines *ofColumns = nullptr;
  /// Returns the lines of the numbers that have what `lines` has, or null.
  const MatrixLines *findSame(const MatrixLines &lines) const;

  AffineExpr lane, subgroup;

private:
  const MatrixBlockTile &tile;
  struct Sides {
    MatrixLines ofRows, ofNumbers;
  };
  std::vector<Sides> sides; ///< of each inner contraction
  std::vector<Sums> sums;   ///< of each inner contraction

  MatrixLines makeLines(const Blocks::Inner &inner, bool isOfRows);
  Value getSum(size_t inner, int64_t row, int64_t unit) override;
  void start() override;
  void bring(ArrayRef<MatrixLines *> lines, int64_t count);
  Sums sumProducts(const Sides &inner, int64_t count);
};
} // namespace

static void barrier(PointEmitter &emitter) {
  gpu::BarrierOp::create(emitter.builder(), emitter.loc);
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// Returns the type of a fragment of as many registers, which have 32 bits each.
static VectorType getFragmentType(Type type, int64_t registers) {
  return VectorType::get({registers, 32 / type.getIntOrFloatBitWidth()}, type);
}

/// Returns a fragment of these registers.
static Value makeFragment(PointEmitter &emitter, ArrayRef<Value> registers) {
  OpBuilder &b = emitter.builder();
  Type type = getElementTypeOrSelf(registers.front().getType());
  VectorType fragment = getFragmentType(type, registers.size());
  Value made = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(fragment));
  for (auto [i, each] : llvm::enumerate(registers))
    if (isa<VectorType>(each.getType()))
      made = vector::InsertOp::create(b, emitter.loc, each, made, int64_t(i));
    else
      made = vector::InsertOp::create(b, emitter.loc, each, made, ArrayRef<int64_t>{int64_t(i), 0});
  return made;
}

/// Takes four matrices of eight lines from workgroup memory. `line` and `element` are those of the
/// first one; the second one is `second` behind it, the next two `upper` behind these.
static Value takeFragment(PointEmitter &emitter, const MatrixLines &lines, Value memory,
                          AffineExpr lane, AffineExpr line, AffineExpr element,
                          bool isSecondInLines, int64_t inLine, bool isTransposed) {
  AffineExpr upper = lane.floorDiv(2 * matrixLines), second = lane.floorDiv(matrixLines) % 2;
  AffineExpr ofLines = isSecondInLines ? second : upper,
             ofElements = isSecondInLines ? upper : second;
  AffineExpr place = lines.getPlace(line + ofLines * matrixLines + lane % matrixLines,
                                    element + ofElements * inLine);
  Type type = cast<MemRefType>(memory.getType()).getElementType();
  return nvgpu::LdMatrixOp::create(emitter.builder(), emitter.loc, getFragmentType(type, 4), memory,
                                   emitter.expand(place), isTransposed,
                                   /*numTiles=*/4);
}

/// Returns one of the two fragments of two registers that are in one of four.
static Value takeHalf(PointEmitter &emitter, Value both, int64_t half) {
  OpBuilder &b = emitter.builder();
  SmallVector<Value> registers;
  for (int64_t i : {0, 1})
    registers.push_back(vector::ExtractOp::create(b, emitter.loc, both, 2 * half + i));
  return makeFragment(emitter, registers);
}

static Value addProducts(PointEmitter &emitter, Value rows, Value columns, Value sum,
                         int64_t products) {
  Type type = getElementTypeOrSelf(rows.getType());
  return nvgpu::MmaSyncOp::create(emitter.builder(), emitter.loc, rows, columns, sum,
                                  ArrayRef<int64_t>{mmaRows, mmaColumns, products},
                                  /*tf32Enabled=*/type.isF32());
}

static Value makeZeroSums(PointEmitter &emitter) {
  OpBuilder &b = emitter.builder();
  return arith::ConstantOp::create(b, emitter.loc,
                                   b.getZeroAttr(VectorType::get({2, 2}, b.getF32Type())));
}

//===----------------------------------------------------------------------===//
// Inner sums
//===----------------------------------------------------------------------===//

MatrixBlock::MatrixBlock(PointEmitter &emitter, const MatrixBlockTile &tile, Point getPoint)
    : WorkgroupBlocks(emitter, getPoint, tile.getTileRows(), tile.numbers), tile(tile) {
  rows = 2;
  unitNumbers = 2;
  sharers = columnLanes;
  for (const Blocks::Inner &inner : blocks.inner) {
    sides.push_back({makeLines(inner, /*isOfRows=*/true), makeLines(inner, /*isOfRows=*/false)});
    sides.back().ofRows.allocate();
    sides.back().ofNumbers.allocate();
  }
}

MatrixLines MatrixBlock::makeLines(const Blocks::Inner &inner, bool isOfRows) {
  OpOperand *factor = isOfRows ? inner.rowFactor : inner.walkedFactor;
  auto getIndices = [this, &inner, isOfRows, factor](AffineExpr line,
                                                     ArrayRef<AffineExpr> products) {
    AffineExpr none = emitter.constant(0);
    SmallVector<AffineExpr> point = getPoint(isOfRows ? line : none, isOfRows ? none : line);
    return getInnerIndices(emitter, inner, factor, point, products);
  };
  MatrixLines lines(emitter, tile, factor, getInnerSizes(inner.op), getIndices);
  lines.lines = isOfRows ? tileRows : tileNumbers;
  lines.all = isOfRows ? allRows : allNumbers;
  lines.wraps = isOfRows ? allRows % tileRows != 0 : allNumbers < tileNumbers;
  lines.width = lines.allWidth = getProduct(getInnerSizes(inner.op));
  return lines;
}

void MatrixBlock::begin(AffineExpr thread, AffineExpr rowTile) {
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  const int64_t subgroupSize = emitter.profile.subgroupSize;
  lane = name(laneCoordinate, thread % subgroupSize);
  subgroup = name(subgroupCoordinate, thread.floorDiv(subgroupSize));
  sharer = lane % columnLanes;
  firstRow = rowTile * tileRows;
  for (Sides &side : sides) {
    side.ofRows.first = firstRow;
    side.ofNumbers.first = emitter.dim(blockCoordinate) * tileNumbers + allNumbers % tileNumbers;
    for (MatrixLines *lines : {&side.ofRows, &side.ofNumbers})
      lines->chooseShares(thread, emitter.dim(blockCoordinate));
  }
}

/// Brings lines, of which `count` are there.
void MatrixBlock::bring(ArrayRef<MatrixLines *> lines, int64_t count) {
  OpBuilder &b = emitter.builder();
  SmallVector<Value> copies;
  for (MatrixLines *each : lines)
    if (count == each->lines)
      each->copy(copies);
  Value group;
  if (!copies.empty())
    group = nvgpu::DeviceAsyncCreateGroupOp::create(
        b, emitter.loc, nvgpu::DeviceAsyncTokenType::get(emitter.context), copies);
  for (MatrixLines *each : lines)
    each->store(count);
  if (group)
    nvgpu::DeviceAsyncWaitOp::create(b, emitter.loc, group, b.getI32IntegerAttr(0));
  barrier(emitter);
}

void MatrixBlock::start() {
  SmallVector<MatrixLines *> lines;
  for (Sides &side : sides)
    lines.push_back(&side.ofRows);
  bring(lines, tileRows);
}

const MatrixLines *MatrixBlock::findSame(const MatrixLines &lines) const {
  AffineExpr line = emitter.dim(blockCoordinate), element = emitter.dim(laneCoordinate);
  for (const Sides &side : sides)
    if (lines.isSame(side.ofNumbers, line, element))
      return &side.ofNumbers;
  return nullptr;
}

/// Adds up the products of a block of which `count` numbers are there.
Sums MatrixBlock::sumProducts(const Sides &inner, int64_t count) {
  constexpr int64_t together = 2 * mmaColumns; // of one ldmatrix
  const int64_t pairs = llvm::divideCeil(count, together), products = tile.getProducts();
  const int64_t run = tile.getRunElements();
  Sums sums(2 * pairs, makeZeroSums(emitter));
  for (int64_t product = 0; product < inner.ofRows.width; product += products) {
    AffineExpr element = emitter.constant(product);
    Value ofRows =
        takeFragment(emitter, inner.ofRows, inner.ofRows.memory, lane, subgroup * mmaRows, element,
                     /*isSecondInLines=*/true, run, /*isTransposed=*/false);
    for (int64_t pair = 0; pair < pairs; ++pair) {
      Value both = takeFragment(emitter, inner.ofNumbers, inner.ofNumbers.memory, lane,
                                emitter.constant(pair * together), element,
                                /*isSecondInLines=*/false, run, /*isTransposed=*/false);
      for (int64_t half : {0, 1}) {
        Value &sum = sums[2 * pair + half];
        sum = addProducts(emitter, ofRows, takeHalf(emitter, both, half), sum, products);
      }
    }
  }
  return sums;
}

void MatrixBlock::sum(const Block &block) {
  SmallVector<MatrixLines *> lines;
  for (Sides &side : sides)
    lines.push_back(&side.ofNumbers);
  if (ofColumns)
    lines.push_back(ofColumns);
  for (MatrixLines *each : lines)
    each->first = block.first;
  bring(lines, block.count);
  sums.clear();
  for (auto [side, inner] : llvm::zip_equal(sides, blocks.inner)) {
    auto place = emitter.codeFor(inner.op);
    sums.push_back(sumProducts(side, block.count));
  }
}

Value MatrixBlock::getSum(size_t inner, int64_t row, int64_t unit) {
  return vector::ExtractOp::create(emitter.builder(), emitter.loc, sums[inner][unit], row);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

namespace {
class MatrixBlockContraction {
public:
  MatrixBlockContraction(PointEmitter &emitter, const MatrixBlockTile &tile)
      : emitter(emitter), tile(tile), blocks(*emitter.domain.getBlocks()),
        op(cast<linalg::GenericOp>(blocks.factor->getOwner())),
        sides(emitter.domain, op, emitter.profile), sizes(emitter.domain.getSizes()),
        block(emitter, tile,
              [this](AffineExpr row, AffineExpr number) {
                return getPoint(row, this->emitter.constant(0), number);
              }),
        ofColumns(makeColumns()) {
    if (blocks.isOneWalk())
      softmax.emplace(emitter, block);
  }
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const MatrixBlockTile &tile;
  const Blocks &blocks;
  linalg::GenericOp op;
  ContractionSides sides;
  ArrayRef<int64_t> sizes;
  MatrixBlock block;
  MatrixLines ofColumns;
  SmallVector<AffineExpr> rest, outer;
  std::optional<BlockSoftmax> softmax;        ///< of one walk
  std::vector<BlockSoftmax::Row> softmaxRows; ///< of the block

  SmallVector<AffineExpr> getPoint(AffineExpr row, AffineExpr column, AffineExpr number) const {
    SmallVector<AffineExpr> products(outer);
    products.push_back(number);
    return sides.getPoint(row, column, rest, products);
  }
  MatrixLines makeColumns();
  int64_t countSums() const { return tile.columns / mmaColumns; }
  void raiseRows(const MatrixBlock::Block &at, MutableArrayRef<Value> running);
  Value evaluatePair(const MatrixBlock::Block &at, int64_t row, int64_t unit);
  SmallVector<Value> getFactor(const MatrixBlock::Block &at, int64_t row, int64_t unit);
  SmallVector<Value> getRowFragments(const MatrixBlock::Block &at, int64_t step);
  SmallVector<SmallVector<Value>> getColumnFragments(int64_t number, int64_t column);
  bool isSplit() const { return !tile.type.isF32() && !isFactorRounded(); }
  /// Whether the graph rounds what is computed from the sums to the type of the other factor.
  bool isFactorRounded() const { return emitter.getElementType(blocks.factor->get()) == tile.type; }
  SmallVector<Value> addBlock(const MatrixBlock::Block &at, ValueRange running);
  void store(AffineExpr rowTile, AffineExpr columnTile, ArrayRef<Value> totals);
  void emitTile(AffineExpr thread, Value number);
};
} // namespace

MatrixLines MatrixBlockContraction::makeColumns() {
  auto getIndices = [this](AffineExpr number, ArrayRef<AffineExpr> element) {
    SmallVector<AffineExpr> point = getPoint(emitter.constant(0), element.front(), number);
    return emitter.apply(getAccessMap(op, sides.columnFactor), emitter.getLoops(op, point));
  };
  MatrixLines lines(emitter, tile, sides.columnFactor, sizes[sides.columnDim], getIndices);
  lines.lines = tile.numbers;
  lines.all = sizes[blocks.walkedDim];
  lines.wraps = lines.all < lines.lines;
  lines.width = tile.columns;
  lines.allWidth = sizes[sides.columnDim];
  lines.isSplit = isSplit() && tile.type.isF16();
  return lines;
}

/// Returns the contraction's factor at a row and a unit of numbers. It is 0 where there is no
/// number.
Value MatrixBlockContraction::evaluatePair(const MatrixBlock::Block &at, int64_t row,
                                           int64_t unit) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  if (softmax) {
    auto powers =
        ArrayRef(softmaxRows[row].powers).slice(unit * block.unitNumbers, block.unitNumbers);
    return vector::FromElementsOp::create(
        b, loc, VectorType::get({block.unitNumbers}, powers.front().getType()), powers);
  }
  SmallVector<AffineExpr> point = block.at(at, row, unit);
  SmallVector<AffineExpr> indices =
      emitter.apply(getAccessMap(op, blocks.factor), emitter.getLoops(op, point));
  Value pair =
      emitter.broadcast(isFactorRounded() ? emitter.evaluate(blocks.factor->get(), indices)
                                          : evaluateFactor(emitter, blocks.factor, indices));
  if (at.count == tile.numbers)
    return pair;
  auto type = cast<VectorType>(pair.getType());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  SmallVector<Value> elements;
  for (int64_t i = 0; i < block.unitNumbers; ++i) {
    Value isThere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                          emitter.expand(block.getNumber(unit) + i),
                                          emitter.indexConstant(at.count));
    elements.push_back(arith::SelectOp::create(b, loc, isThere, emitter.extract(pair, i), zero));
  }
  return vector::FromElementsOp::create(b, loc, type, elements);
}

/// Returns the factor at a row and a unit as one value, or as two that are to be added up.
SmallVector<Value> MatrixBlockContraction::getFactor(const MatrixBlock::Block &at, int64_t row,
                                                     int64_t unit) {
  Value pair = evaluatePair(at, row, unit);
  if (isSplit()) {
    auto [first, second] = splitFloat(emitter, pair);
    return {first, second};
  }
  return {roundToTf32(emitter, pair)};
}

/// Returns the fragments of the contraction's factor for the numbers of one instruction.
SmallVector<Value> MatrixBlockContraction::getRowFragments(const MatrixBlock::Block &at,
                                                           int64_t step) {
  std::vector<SmallVector<Value>> registers(isSplit() ? 2 : 1);
  const int64_t units = tile.getProducts() / mmaColumns;
  for (int64_t unit = 0; unit < units; ++unit) {
    SmallVector<SmallVector<Value>> ofRows;
    for (int64_t row : {0, 1})
      ofRows.push_back(getFactor(at, row, step * units + unit));
    // Of tf32 a register has one number. The instruction's products are in another order than the
    // numbers, which the other factor follows.
    for (int64_t element = 0; element < (tile.type.isF32() ? block.unitNumbers : 1); ++element)
      for (ArrayRef<Value> parts : ofRows)
        for (auto [part, value] : llvm::enumerate(parts))
          registers[part].push_back(tile.type.isF32() ? emitter.extract(value, element) : value);
  }
  return llvm::map_to_vector(registers,
                             [&](ArrayRef<Value> each) { return makeFragment(emitter, each); });
}

/// Returns the fragments of two blocks of columns, for the numbers of one instruction.
SmallVector<SmallVector<Value>> MatrixBlockContraction::getColumnFragments(int64_t number,
                                                                           int64_t column) {
  SmallVector<SmallVector<Value>> fragments;
  if (tile.type.isF32()) {
    OpBuilder &b = emitter.builder();
    for (int64_t half : {0, 1}) {
      SmallVector<Value> registers;
      for (int64_t i : {0, 1}) {
        AffineExpr place =
            ofColumns.getPlace(block.getNumber(0) + (number + i),
                               block.lane.floorDiv(columnLanes) + (column + half * mmaColumns));
        registers.push_back(
            memref::LoadOp::create(b, emitter.loc, ofColumns.memory, emitter.expand(place)));
      }
      fragments.push_back({makeFragment(emitter, registers)});
    }
    return fragments;
  }
  fragments.resize(2);
  for (Value memory : {ofColumns.memory, ofColumns.left}) {
    if (!memory)
      continue;
    Value both = takeFragment(emitter, ofColumns, memory, block.lane, emitter.constant(number),
                              emitter.constant(column), /*isSecondInLines=*/true, mmaColumns,
                              /*isTransposed=*/true);
    for (int64_t half : {0, 1})
      fragments[half].push_back(takeHalf(emitter, both, half));
  }
  return fragments;
}

/// Adds the block to the rows' maxima and sums, which are behind the sums of products, and scales
/// these.
void MatrixBlockContraction::raiseRows(const MatrixBlock::Block &at,
                                       MutableArrayRef<Value> running) {
  softmaxRows.clear();
  for (int64_t row = 0; row < block.rows; ++row)
    softmaxRows.push_back(softmax->raiseRow(at, row, running.drop_front(countSums())));
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  for (Value &total : running.take_front(countSums()))
    for (auto [row, added] : llvm::enumerate(softmaxRows)) {
      Value sums = vector::ExtractOp::create(b, loc, total, int64_t(row));
      Value scale = vector::BroadcastOp::create(b, loc, sums.getType(), added.scale);
      total = vector::InsertOp::create(b, loc, arith::MulFOp::create(b, loc, sums, scale), total,
                                       int64_t(row));
    }
}

/// Adds the products of a block.
SmallVector<Value> MatrixBlockContraction::addBlock(const MatrixBlock::Block &at,
                                                    ValueRange running) {
  block.sum(at);
  SmallVector<Value> next(running);
  if (softmax)
    raiseRows(at, next);
  const int64_t products = tile.getProducts();
  for (int64_t number = 0; number < at.count; number += products) {
    SmallVector<Value> rows = getRowFragments(at, number / products);
    for (int64_t column = 0; column < tile.columns; column += 2 * mmaColumns)
      for (auto [half, parts] : llvm::enumerate(getColumnFragments(number, column))) {
        Value &sum = next[column / mmaColumns + half];
        // The smallest products first, but none of two parts that others leave.
        for (int64_t both : {1, 0})
          for (auto [i, row] : llvm::enumerate(rows))
            for (auto [j, part] : llvm::enumerate(parts))
              if (int64_t(i + j) == both)
                sum = addProducts(emitter, row, part, sum, products);
      }
  }
  barrier(emitter); // all have read what the next block overwrites
  return next;
}

void MatrixBlockContraction::store(AffineExpr rowTile, AffineExpr columnTile,
                                   ArrayRef<Value> totals) {
  SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(), emitter.constant(0));
  const int64_t allRows = sizes[sides.rowDim];
  for (int64_t half : {0, 1}) {
    auto storeRow = [&, half = half](AffineExpr row) {
      for (auto [number, total] : llvm::enumerate(totals.take_front(countSums()))) {
        AffineExpr pair = columnTile * (tile.columns / 2) + int64_t(number) * columnLanes +
                          block.lane % columnLanes;
        emitter.startPoint();
        if (softmax)
          softmax->setRow(totals.drop_front(countSums()), emitter.indexConstant(half));
        Value sums = vector::ExtractOp::create(emitter.builder(), emitter.loc, total, half);
        storeSums(emitter, sums,
                  sides.getPoint(row, pair * 2 + emitter.vectorLane(), rest, noProducts));
      }
    };
    AffineExpr row = rowTile * tile.getTileRows() + block.getRow(emitter.constant(half));
    if (allRows % tile.getTileRows())
      guardInside(emitter, insideRowCoordinate, row, allRows, storeRow);
    else
      storeRow(row);
  }
}

void MatrixBlockContraction::emitTile(AffineExpr thread, Value number) {
  AffineExpr at = emitter.setCoordinate(unitCoordinate, number);
  int64_t rowTiles = llvm::divideCeil(sizes[sides.rowDim], tile.getTileRows()),
          columnTiles = sizes[sides.columnDim] / tile.columns;
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
  ofColumns.firstElement = columnTiles > 1 ? columnTile * tile.columns : AffineExpr();
  ofColumns.first = emitter.dim(blockCoordinate);
  ofColumns.chooseShares(thread, emitter.dim(blockCoordinate));
  if (const MatrixLines *same = block.findSame(ofColumns)) {
    ofColumns.memory = same->memory;
    block.ofColumns = nullptr;
  } else {
    ofColumns.allocate();
    block.ofColumns = &ofColumns;
  }

  SmallVector<Value> totals(countSums(), makeZeroSums(emitter));
  if (softmax)
    llvm::append_range(totals, softmax->startShared());
  totals = emitter.loop(getProduct(outerSizes), totals, [&](Value trip, ValueRange carried) {
    outer = emitter.delinearize(emitter.setCoordinate(outerProductCoordinate, trip), outerSizes);
    return block.walk(carried, [&](const MatrixBlock::Block &at, ValueRange running) {
      return addBlock(at, running);
    });
  });
  if (softmax) {
    SmallVector<Value> ofRows = softmax->gather(ArrayRef(totals).drop_front(countSums()));
    totals.truncate(countSums());
    totals.append(ofRows);
  }
  store(rowTile, columnTile, totals);
  if (!softmax || !storesBlockRows(emitter))
    return;
  guardAt(emitter, {{block.sharer, 0}, {columnTile, columnTiles - 1}}, [&] {
    softmax->store(ArrayRef(totals).drop_front(countSums()), rowTile, [&](AffineExpr row) {
      return getPoint(row, emitter.constant(0), emitter.constant(0));
    });
  });
}

void MatrixBlockContraction::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(op);
  int64_t tiles = getProduct(sides.restSizes) *
                  llvm::divideCeil(sizes[sides.rowDim], tile.getTileRows()) *
                  (sizes[sides.columnDim] / tile.columns);
  emitBlockTiles(emitter, tile.getThreads(), tiles, launch,
                 [&](AffineExpr thread, Value group) { emitTile(thread, group); });
}

void weir::emitMatrixBlockContraction(PointEmitter &emitter, const MatrixBlockTile &tile,
                                      EmittedKernel &launch) {
  MatrixBlockContraction(emitter, tile).run(launch);
}

void weir::emitMatrixBlockRow(PointEmitter &emitter, const MatrixBlockTile &tile,
                              EmittedKernel &launch) {
  emitWorkgroupBlockRow(emitter, tile.getThreads(), launch, [&](WorkgroupBlocks::Point getPoint) {
    return std::make_unique<MatrixBlock>(emitter, tile, getPoint);
  });
}
