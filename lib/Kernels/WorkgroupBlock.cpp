//===- WorkgroupBlock.cpp - Blocks of rows that a workgroup owns ----------===//
//
// The walk over blocks, and kernels that reduce rows to their maxima and sums of exponentials. They
// take the inner sums from registers: by fma in SlabBlock.cpp, by instructions on matrices in
// MatrixBlock.cpp.
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
      allNumbers(emitter.domain.getSizes()[blocks.walkedDim]), masked(findMasked(emitter)) {}

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
  emitter.getFunction().setKnownBlockSizeAttr(
      emitter.builder().getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  emitWorkgroups(emitter, tiles, launch, [&](Value group) {
    AffineExpr thread = emitter.setCoordinate(
        teamLaneCoordinate,
        gpu::ThreadIdOp::create(emitter.builder(), emitter.loc, gpu::Dimension::x));
    body(thread, group);
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
        allRows(sizes[emitter.domain.getBlocks()->rowDim]), reduced(getSoftmaxSums(emitter)),
        restSizes(getBlockRestSizes(emitter)),
        block(makeBlocks([this](AffineExpr row, AffineExpr number) {
          return getBlockPoint(this->emitter, rest, row, number);
        })) {}
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const int64_t threads;
  ArrayRef<int64_t> sizes;
  const int64_t allRows;
  SoftmaxSums reduced;
  SmallVector<int64_t> restSizes;
  SmallVector<AffineExpr> rest;
  std::unique_ptr<WorkgroupBlocks> block;

  Value exponential(Value value, Value maximum);
  void addElements(ArrayRef<Value> elements, Value &maximum, Value &sum);
  Value getElement(const WorkgroupBlocks::Block &at, Value values, int64_t unit, int64_t number);
  SmallVector<Value> addBlock(const WorkgroupBlocks::Block &at, ValueRange carried);
  void combine(SmallVectorImpl<Value> &totals);
  void store(AffineExpr rowTile, ArrayRef<Value> totals);
  void emitTile(AffineExpr thread, Value number);
};
} // namespace

Value WorkgroupBlockRow::exponential(Value value, Value maximum) {
  OpBuilder &b = emitter.builder();
  return math::ExpOp::create(b, emitter.loc, arith::SubFOp::create(b, emitter.loc, value, maximum));
}

/// Adds elements of a row to its maximum and sum, which the new maximum scales.
void WorkgroupBlockRow::addElements(ArrayRef<Value> elements, Value &maximum, Value &sum) {
  OpBuilder &b = emitter.builder();
  Value before = maximum;
  for (Value element : elements)
    maximum = emitter.combine(reduced.larger, maximum, element);
  sum = arith::MulFOp::create(b, emitter.loc, sum, exponential(before, maximum));
  for (Value element : elements)
    sum = arith::AddFOp::create(b, emitter.loc, sum, exponential(element, maximum));
}

/// Returns the element of one of a unit's numbers, or -inf where there is none.
Value WorkgroupBlockRow::getElement(const WorkgroupBlocks::Block &at, Value values, int64_t unit,
                                    int64_t number) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Value element = emitter.isVector(values) ? emitter.extract(values, number) : values;
  if (at.count == block->tileNumbers)
    return element;
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         emitter.expand(block->getNumber(unit) + number),
                                         emitter.indexConstant(at.count));
  Value none = arith::ConstantOp::create(
      b, loc,
      FloatAttr::get(element.getType(), APFloat::getInf(reduced.start.getValue().getSemantics(),
                                                        /*Negative=*/true)));
  return arith::SelectOp::create(b, loc, isInside, element, none);
}

/// Adds a block to the maxima and sums of the invocation's rows.
SmallVector<Value> WorkgroupBlockRow::addBlock(const WorkgroupBlocks::Block &at,
                                               ValueRange carried) {
  block->sum(at);
  SmallVector<Value> next(carried);
  for (int64_t row = 0; row < block->rows; ++row) {
    SmallVector<Value> elements;
    for (int64_t unit = 0; unit < block->countUnits(at); ++unit) {
      SmallVector<AffineExpr> point = block->at(at, row, unit);
      Value values = emitter.evaluate(reduced.element->get(),
                                      emitter.apply(getAccessMap(reduced.maximum, reduced.element),
                                                    emitter.getLoops(reduced.maximum, point)));
      for (int64_t number = 0; number < block->unitNumbers; ++number)
        elements.push_back(getElement(at, values, unit, number));
    }
    addElements(elements, next[2 * row], next[2 * row + 1]);
  }
  // All have read what the next block overwrites.
  gpu::BarrierOp::create(emitter.builder(), emitter.loc);
  return next;
}

/// Combines the maxima and sums of the invocations that share rows.
void WorkgroupBlockRow::combine(SmallVectorImpl<Value> &totals) {
  Value lane = emitter.expand(block->sharer);
  for (int64_t row = 0; row < block->rows; ++row) {
    Value &maximum = totals[2 * row], &sum = totals[2 * row + 1];
    Value own = maximum;
    maximum = reduceSubgroup(emitter, reduced.larger, own, lane, block->sharers);
    Value scaled =
        arith::MulFOp::create(emitter.builder(), emitter.loc, sum, exponential(own, maximum));
    sum = reduceSubgroup(emitter, reduced.add, scaled, lane, block->sharers);
  }
}

void WorkgroupBlockRow::store(AffineExpr rowTile, ArrayRef<Value> totals) {
  SmallVector<Value> maxima, sums;
  for (int64_t row = 0; row < block->rows; ++row) {
    maxima.push_back(totals[2 * row]);
    sums.push_back(totals[2 * row + 1]);
  }
  emitter.loop(block->rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = rowTile * block->tileRows +
                     block->getRow(emitter.setCoordinate(invocationRowCoordinate, trip));
    auto storeRow = [&](AffineExpr inside) {
      emitter.startPoint();
      emitter.setReduced(reduced.maximum.getResult(0), chooseValue(emitter, maxima, trip));
      emitter.setReduced(reduced.sum.getResult(0), chooseValue(emitter, sums, trip));
      emitResults(emitter, llvm::to_vector(llvm::seq<unsigned>(emitter.kernel.getNumResults())),
                  getBlockPoint(emitter, rest, inside, emitter.constant(0)));
    };
    if (allRows % block->tileRows)
      guardInside(emitter, insideRowCoordinate, row, allRows, storeRow);
    else
      storeRow(row);
    return {};
  });
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

  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(reduced.start.getType()));
  Value start = arith::ConstantOp::create(b, emitter.loc, reduced.start);
  SmallVector<Value> totals;
  for (int64_t row = 0; row < block->rows; ++row)
    totals.append({start, zero});
  totals = block->walk(totals, [&](const WorkgroupBlocks::Block &block, ValueRange running) {
    return addBlock(block, running);
  });
  combine(totals);
  Value isFirst = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::eq,
                                        emitter.expand(block->sharer), emitter.indexConstant(0));
  emitter.guard(isFirst, {}, [&]() -> SmallVector<Value> {
    store(rowTile, totals);
    return {};
  });
}

void WorkgroupBlockRow::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(reduced.maximum);
  int64_t tiles = getProduct(restSizes) * llvm::divideCeil(allRows, block->tileRows);
  emitBlockTiles(emitter, threads, tiles, launch,
                 [&](AffineExpr thread, Value group) { emitTile(thread, group); });
}

void weir::emitWorkgroupBlockRow(
    PointEmitter &emitter, int64_t threads, EmittedKernel &launch,
    function_ref<std::unique_ptr<WorkgroupBlocks>(WorkgroupBlocks::Point)> makeBlocks) {
  WorkgroupBlockRow(emitter, threads, makeBlocks).run(launch);
}
