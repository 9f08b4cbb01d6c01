//===- WorkgroupBlock.cpp - Blocks of rows that a workgroup owns ----------===//
//
// The walk over blocks, the maxima and sums of exponentials of rows that it may keep, and kernels
// that reduce rows to these alone. The inner sums are in registers: by fma in SlabBlock.cpp, by
// instructions on matrices in MatrixBlock.cpp.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

WorkgroupBlocks::WorkgroupBlocks(PointEmitter &emitter, Point getPoint, int64_t tileRows,
                                 int64_t tileNumbers)
    : tileRows(tileRows), tileNumbers(tileNumbers), emitter(emitter),
      blocks(*emitter.domain.getBlocks()), getPoint(getPoint),
      allRows(emitter.domain.getSizes()[blocks.rowDim]),
      allNumbers(emitter.domain.getSizes()[blocks.walkedDim]), masked(findMasked(emitter.domain)) {}

SmallVector<Value>
WorkgroupBlocks::walk(ValueRange carried,
                      function_ref<SmallVector<Value>(const Block &, ValueRange)> body) {
  start();
  SmallVector<Value> values(carried);
  int64_t early = allNumbers % tileNumbers;
  auto compute = [&](Block block, ValueRange running) {
    BlockPlace place{firstRow, tileRows, block.first, block.count};
    return whereNeeded(emitter, masked, place, running, [&] {
      enter(block);
      SmallVector<Value> computed = body(block, running);
      leave();
      return computed;
    });
  };
  if (early)
    values = emitter.loop(1, values, [&](Value, ValueRange running) {
      return compute({emitter.constant(0), early}, running);
    });
  return emitter.loop(allNumbers / tileNumbers, values, [&](Value trip, ValueRange running) {
    AffineExpr first = emitter.setCoordinate(blockCoordinate, trip) * tileNumbers + early;
    return compute({first, tileNumbers}, running);
  });
}

SmallVector<AffineExpr> WorkgroupBlocks::at(const Block &block, int64_t row, int64_t unit) {
  AffineExpr ofAll = firstRow + getRow(emitter.constant(row)), inBlock = getNumber(unit);
  if (unitNumbers > 1)
    inBlock = inBlock + emitter.vectorLane();
  if (allRows % tileRows)
    ofAll = ofAll % allRows;
  // Pairs stay pairs: behind those of the first block others are there, if there are enough.
  if (block.count < tileNumbers && (unitNumbers == 1 || allNumbers < tileNumbers))
    inBlock = inBlock % block.count;
  emitter.startPoint();
  for (auto [i, inner] : llvm::enumerate(blocks.inner))
    emitter.setReduced(linalg::GenericOp(inner.op).getResult(0), getSum(i, row, unit));
  return getPoint(ofAll, block.first + inBlock);
}

void weir::emitBlockTiles(PointEmitter &emitter, int64_t threads, int64_t tiles,
                          EmittedKernel &launch, function_ref<void(AffineExpr, Value)> body) {
  emitter.setWorkgroup(threads);
  emitWorkgroups(emitter, tiles, launch, [&](Value group) {
    AffineExpr thread = emitter.setCoordinate(
        teamLaneCoordinate,
        gpu::ThreadIdOp::create(emitter.builder(), emitter.loc, gpu::Dimension::x));
    body(thread, group);
  });
}

//===----------------------------------------------------------------------===//
// Maxima and sums of exponentials
//===----------------------------------------------------------------------===//

SmallVector<Value> BlockSoftmax::start(int64_t rows) const {
  SmallVector<Value> totals;
  for (int64_t row = 0; row < rows; ++row)
    llvm::append_range(totals, startRow(emitter, reduced));
  return totals;
}

SmallVector<Value> BlockSoftmax::getElements(const WorkgroupBlocks::Block &at, int64_t row) {
  SmallVector<Value> elements;
  Location loc = emitter.loc;
  for (int64_t unit = 0; unit < block.countUnits(at); ++unit) {
    Value values = evaluateElement(emitter, reduced, block.at(at, row, unit));
    for (int64_t number = 0; number < block.unitNumbers; ++number) {
      Value element = emitter.isVector(values) ? emitter.extract(values, number) : values;
      if (at.count < block.tileNumbers) {
        OpBuilder &b = emitter.builder();
        Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                               emitter.expand(block.getNumber(unit) + number),
                                               emitter.indexConstant(at.count));
        element =
            arith::SelectOp::create(b, loc, isInside, element, makeNoElement(emitter, reduced));
      }
      elements.push_back(element);
    }
  }
  return elements;
}

void BlockSoftmax::addRow(ArrayRef<Value> elements, Value &maximum, Value &sum) {
  OpBuilder &b = emitter.builder();
  Value before = maximum;
  for (Value element : elements)
    maximum = emitter.combine(reduced.larger, maximum, element);
  sum = arith::MulFOp::create(b, emitter.loc, sum, exponentialAbove(emitter, before, maximum));
  for (Value element : elements)
    sum = arith::AddFOp::create(b, emitter.loc, sum, exponentialAbove(emitter, element, maximum));
}

/// Returns the value that one of those has that share the invocation's rows.
Value BlockSoftmax::takeFrom(Value value, int64_t sharer) {
  OpBuilder &b = emitter.builder();
  int64_t lanes = emitter.profile.subgroupSize;
  AffineExpr lane = emitter.dim(teamLaneCoordinate) % lanes;
  Value from = arith::IndexCastOp::create(
      b, emitter.loc, b.getI32Type(),
      emitter.expand(lane.floorDiv(block.sharers) * block.sharers + sharer));
  Value width = arith::ConstantIntOp::create(b, emitter.loc, lanes, 32);
  return gpu::ShuffleOp::create(b, emitter.loc, value, from, width, gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

BlockSoftmax::Row BlockSoftmax::raiseRow(const WorkgroupBlocks::Block &at, int64_t row,
                                         MutableArrayRef<Value> totals) {
  Location loc = emitter.loc;
  Value sharer = emitter.expand(block.sharer);
  Value &kept = totals[isSpread() ? 0 : 2 * row], &sum = totals[isSpread() ? 1 : 2 * row + 1];
  Value before = isSpread() ? takeFrom(kept, row) : kept, maximum = before;
  Row added;
  added.powers = getElements(at, row);
  for (Value element : added.powers)
    maximum = emitter.combine(reduced.larger, maximum, element);
  maximum = reduceSubgroup(emitter, reduced.larger, maximum, sharer, block.sharers);
  added.scale = exponentialAbove(emitter, before, maximum);
  OpBuilder &b = emitter.builder();
  Value scaled = arith::MulFOp::create(b, loc, sum, added.scale), ofBlock;
  for (Value &power : added.powers) {
    power = exponentialAbove(emitter, power, maximum);
    Value &into = isSpread() ? ofBlock : scaled;
    into = into ? Value(arith::AddFOp::create(b, loc, into, power)) : power;
  }
  if (!isSpread()) {
    kept = maximum;
    sum = scaled;
    return added;
  }
  ofBlock = reduceSubgroup(emitter, reduced.add, ofBlock, sharer, block.sharers);
  scaled = arith::AddFOp::create(b, loc, scaled, ofBlock);
  Value isOwn =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, sharer, emitter.indexConstant(row));
  kept = arith::SelectOp::create(b, loc, isOwn, maximum, kept);
  sum = arith::SelectOp::create(b, loc, isOwn, scaled, sum);
  return added;
}

SmallVector<Value> BlockSoftmax::gather(ArrayRef<Value> totals) {
  SmallVector<Value> gathered;
  for (int64_t row = 0; row < block.rows; ++row) {
    if (isSpread()) {
      gathered.append({takeFrom(totals[0], row), takeFrom(totals[1], row)});
      continue;
    }
    gathered.push_back(totals[2 * row]);
    gathered.push_back(reduceSubgroup(emitter, reduced.add, totals[2 * row + 1],
                                      emitter.expand(block.sharer), block.sharers));
  }
  return gathered;
}

void BlockSoftmax::combine(MutableArrayRef<Value> totals) {
  Value sharer = emitter.expand(block.sharer);
  for (int64_t row = 0; row < block.rows; ++row) {
    Value &maximum = totals[2 * row], &sum = totals[2 * row + 1];
    Value own = maximum;
    maximum = reduceSubgroup(emitter, reduced.larger, own, sharer, block.sharers);
    Value scaled = arith::MulFOp::create(emitter.builder(), emitter.loc, sum,
                                         exponentialAbove(emitter, own, maximum));
    sum = reduceSubgroup(emitter, reduced.add, scaled, sharer, block.sharers);
  }
}

/// Returns the maximum and the sum of a row.
static std::pair<Value, Value> chooseRow(PointEmitter &emitter, ArrayRef<Value> totals, Value row) {
  SmallVector<Value> maxima, sums;
  for (size_t i = 0; i < totals.size(); i += 2) {
    maxima.push_back(totals[i]);
    sums.push_back(totals[i + 1]);
  }
  return {chooseValue(emitter, maxima, row), chooseValue(emitter, sums, row)};
}

void BlockSoftmax::setRow(ArrayRef<Value> totals, Value row) {
  auto [maximum, sum] = chooseRow(emitter, totals, row);
  setSoftmax(emitter, maximum, sum);
}

void BlockSoftmax::store(ArrayRef<Value> totals, AffineExpr rowTile,
                         function_ref<SmallVector<AffineExpr>(AffineExpr row)> getPoint) {
  const int64_t allRows = emitter.domain.getSizes()[emitter.domain.getBlocks()->rowDim];
  emitter.loop(block.rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = rowTile * block.tileRows +
                     block.getRow(emitter.setCoordinate(invocationRowCoordinate, trip));
    auto storeRow = [&](AffineExpr inside) {
      auto [maximum, sum] = chooseRow(emitter, totals, trip);
      storeBlockRow(emitter, maximum, sum, getPoint(inside));
    };
    if (allRows % block.tileRows)
      guardInside(emitter, insideRowCoordinate, row, allRows, storeRow);
    else
      storeRow(row);
    return {};
  });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
/// A kernel that reduces rows: an invocation keeps the maximum of its own numbers of each of its
/// rows so far, and the sum of the exponentials of what they are above it. Those of a row are
/// neighbours, which combine them at the end.
class WorkgroupBlockRow {
public:
  WorkgroupBlockRow(
      PointEmitter &emitter, int64_t threads,
      function_ref<std::unique_ptr<WorkgroupBlocks>(WorkgroupBlocks::Point)> makeBlocks)
      : emitter(emitter), threads(threads), sizes(emitter.domain.getSizes()),
        allRows(sizes[emitter.domain.getBlocks()->rowDim]), restSizes(getBlockRestSizes(emitter)),
        block(makeBlocks([this](AffineExpr row, AffineExpr number) {
          return getBlockPoint(this->emitter, rest, row, number);
        })),
        softmax(emitter, *block) {}
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const int64_t threads;
  ArrayRef<int64_t> sizes;
  const int64_t allRows;
  SmallVector<int64_t> restSizes;
  SmallVector<AffineExpr> rest;
  std::unique_ptr<WorkgroupBlocks> block;
  BlockSoftmax softmax;

  SmallVector<Value> addBlock(const WorkgroupBlocks::Block &at, ValueRange carried);
  void emitTile(AffineExpr thread, Value number);
};
} // namespace

/// Adds a block to the maxima and sums of the invocation's rows.
SmallVector<Value> WorkgroupBlockRow::addBlock(const WorkgroupBlocks::Block &at,
                                               ValueRange carried) {
  block->sum(at);
  SmallVector<Value> next(carried);
  for (int64_t row = 0; row < block->rows; ++row)
    softmax.addRow(softmax.getElements(at, row), next[2 * row], next[2 * row + 1]);
  // All have read what the next block overwrites.
  gpu::BarrierOp::create(emitter.builder(), emitter.loc);
  return next;
}

void WorkgroupBlockRow::emitTile(AffineExpr thread, Value number) {
  AffineExpr at = emitter.setCoordinate(unitCoordinate, number);
  int64_t rowTiles = llvm::divideCeil(allRows, block->tileRows);
  SmallVector<AffineExpr> digits = getDigits(emitter, at, {getProduct(restSizes), rowTiles});
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  AffineExpr rowTile = name(tileRowCoordinate, digits[1]);
  rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), restSizes);
  block->begin(thread, rowTile);

  SmallVector<Value> totals =
      block->walk(softmax.start(), [&](const WorkgroupBlocks::Block &block, ValueRange running) {
        return addBlock(block, running);
      });
  softmax.combine(totals);
  guardAt(emitter, {{block->sharer, 0}}, [&] {
    softmax.store(totals, rowTile, [&](AffineExpr row) {
      return getBlockPoint(emitter, rest, row, emitter.constant(0));
    });
  });
}

void WorkgroupBlockRow::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(emitter.domain.getBlocks()->softmax->maximum);
  int64_t tiles = getProduct(restSizes) * llvm::divideCeil(allRows, block->tileRows);
  emitBlockTiles(emitter, threads, tiles, launch,
                 [&](AffineExpr thread, Value group) { emitTile(thread, group); });
}

void weir::emitWorkgroupBlockRow(
    PointEmitter &emitter, int64_t threads, EmittedKernel &launch,
    function_ref<std::unique_ptr<WorkgroupBlocks>(WorkgroupBlocks::Point)> makeBlocks) {
  WorkgroupBlockRow(emitter, threads, makeBlocks).run(launch);
}
