//===- Column.cpp - Kernels that reduce columns in parts ------------------===//
//
// An invocation owns one part of a column, or of some neighbouring ones, and
// walks the rows of the part once, in order: the order in which a row kernel's
// team walks them, so that the bits are the same.
//
// On a CPU it owns a part of many columns, and walks each row of them before the next, as they lie
// in memory; the sums are in its own memory.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weir;

namespace {
/// Columns by rows, in the order of memory.
class ColumnBlocks {
public:
  explicit ColumnBlocks(PointEmitter &emitter);

  /// Whether the sums can lie in memory.
  bool fits() const { return blockUnits > 0; }
  void run(EmittedKernel &launch);

private:
  struct Sum {
    Value result; ///< of the reduction
    Combiner combiner;
    Value memory;
    SmallVector<Value> ofRests; ///< memory of the columns behind the last unit
  };

  PointEmitter &emitter;
  const KernelDomain &domain;
  int64_t lanes, units, rows, blockUnits = 0;
  int64_t turn = 1;        ///< rows that a sum takes at a time
  SmallVector<Rest> rests; ///< columns behind the last unit
  SmallVector<Sum> sums;
  SmallVector<unsigned> parts, points; ///< numbers of results

  /// The block that code is emitted for: its first unit, and whether it is the last.
  struct Block {
    Value first, isLast;
  };

  Value getMemory(const Sum &sum) const {
    return currentRest ? sum.ofRests[*currentRest] : sum.memory;
  }
  void forEachUnit(const Block &block, function_ref<void(Value turn)> body);
  SmallVector<AffineExpr> getPoint(SmallVector<AffineExpr> rowPoint);
  void addRows(const Block &block, ArrayRef<Value> numbers);

  std::optional<size_t> currentRest; ///< of `rests`, which code is emitted for
};
} // namespace

/// Combines what the columns take at a point with the sums so far, in the order of the ops and
/// their results, and stores the results of these numbers there.
static SmallVector<Value> addPoint(PointEmitter &emitter, ArrayRef<unsigned> results,
                                   ArrayRef<AffineExpr> point, ValueRange before) {
  SmallVector<Value> next;
  for (linalg::GenericOp op : emitter.domain.getColumnOps()) {
    SmallVector<Combiner> combiners = *getCombiners(op);
    SmallVector<Value> values = emitter.evaluateReduced(op, combiners, emitter.getLoops(op, point));
    for (auto [combiner, value] : llvm::zip_equal(combiners, values))
      next.push_back(emitter.combine(combiner.combine, before[next.size()], value));
  }
  emitResults(emitter, results, point);
  return next;
}

ColumnBlocks::ColumnBlocks(PointEmitter &emitter)
    : emitter(emitter), domain(emitter.domain), rows(getProduct(domain.getRowSizes())) {
  ArrayRef<int64_t> columns = domain.getColumnSizes();
  lanes = columns.size() == 1 ? getLanesBeforeRest(emitter.profile, columns.front())
                              : getLanes(emitter.profile, columns);
  units = getProduct(columns) / lanes;
  if (columns.size() == 1)
    rests = getRests(columns.front(), lanes);
  for (auto [index, value] : llvm::enumerate(emitter.computed))
    (getOpShape(value.getDefiningOp()) == OpShape::Column ? parts : points).push_back(index);
  int64_t bytes = 0;
  for (linalg::GenericOp op : domain.getColumnOps())
    for (auto [combiner, result] : llvm::zip_equal(*getCombiners(op), op->getResults())) {
      Type element = emitter.getElementType(result);
      if (!isKeepable(element))
        return;
      bytes += lanes * (element.getIntOrFloatBitWidth() / 8);
      sums.push_back({result, combiner, {}, {}});
    }
  int64_t chunk = domain.getChunk();
  // Threads share out the workgroups.
  int64_t enough = std::max<int64_t>(units * domain.getParts() / tuning::workgroups::few,
                                     tuning::columns::minBlockUnits);
  blockUnits = std::clamp<int64_t>(std::min(tuning::columns::maxBlockBytes / bytes, enough), 1,
                                   std::max<int64_t>(units, 1));
  for (int64_t count = blockUnits; 2 * count > blockUnits; --count)
    if (units % count == 0) {
      blockUnits = count;
      break;
    }
  // A sum that takes several rows at a time is loaded and stored once for them.
  constexpr int64_t rowsInTurn = tuning::columns::rowsInTurn;
  if (!domain.hasFunctions() && chunk % rowsInTurn == 0 && rows % rowsInTurn == 0)
    turn = rowsInTurn;
}

/// Calls `body` for the units of a block, and for the columns behind the last unit.
void ColumnBlocks::forEachUnit(const Block &block, function_ref<void(Value turn)> body) {
  emitter.loop(blockUnits, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
    OpBuilder &b = emitter.builder();
    Value unit = arith::AddIOp::create(b, emitter.loc, block.first, turn);
    auto run = [&]() -> SmallVector<Value> {
      emitter.setCoordinate(tileColumnCoordinate, unit);
      body(turn);
      return {};
    };
    if (units % blockUnits == 0)
      return run();
    Value inside = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult, unit,
                                         emitter.indexConstant(units));
    return emitter.guard(inside, {}, run);
  });
  if (rests.empty())
    return;
  emitter.guard(block.isLast, {}, [&]() -> SmallVector<Value> {
    for (auto [number, rest] : llvm::enumerate(rests)) {
      currentRest = number;
      emitter.setLanes(rest.lanes);
      emitter.loop(1, {}, [&](Value first, ValueRange) -> SmallVector<Value> {
        body(first);
        return {};
      });
    }
    return {};
  });
  currentRest = std::nullopt;
  emitter.setLanes(lanes);
}

SmallVector<AffineExpr> ColumnBlocks::getPoint(SmallVector<AffineExpr> rowPoint) {
  if (!currentRest) {
    llvm::append_range(rowPoint, weir::getPoint(emitter, emitter.dim(tileColumnCoordinate),
                                                domain.getColumnSizes(), lanes));
    return rowPoint;
  }
  AffineExpr column = emitter.constant(rests[*currentRest].begin);
  rowPoint.push_back(emitter.lanes > 1 ? column + emitter.vectorLane() : column);
  return rowPoint;
}

/// Adds what the columns take of these rows, one after the other.
void ColumnBlocks::addRows(const Block &block, ArrayRef<Value> numbers) {
  forEachUnit(block, [&](Value unit) {
    auto load = [&](const Sum &sum) -> Value {
      return memref::LoadOp::create(emitter.builder(), emitter.loc, getMemory(sum), unit);
    };
    SmallVector<Value> running = llvm::map_to_vector(sums, load);
    for (Value number : numbers)
      running = emitter.loop(1, running, [&](Value, ValueRange before) {
        AffineExpr row = emitter.setCoordinate(tripCoordinate, number);
        SmallVector<AffineExpr> point = getPoint(emitter.delinearize(row, domain.getRowSizes()));
        return addPoint(emitter, points, point, before);
      });
    for (auto [sum, value] : llvm::zip_equal(sums, running))
      memref::StoreOp::create(emitter.builder(), emitter.loc, value, getMemory(sum), unit);
  });
}

void ColumnBlocks::run(EmittedKernel &launch) {
  emitter.setLanes(lanes);
  int64_t blocks = llvm::divideCeil(units, blockUnits), chunk = domain.getChunk();
  emitWorkgroups(emitter, domain.getParts() * blocks, launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Location loc = emitter.loc;
    for (Sum &sum : sums) {
      Type element = emitter.getElementType(sum.result);
      sum.memory = allocatePrivate(emitter, element, lanes, blockUnits);
      for (const Rest &rest : rests)
        sum.ofRests.push_back(allocatePrivate(emitter, element, rest.lanes, 1));
    }
    emitter.setCoordinate(unitCoordinate, group);
    SmallVector<AffineExpr> digits =
        emitter.delinearize(emitter.dim(unitCoordinate), {domain.getParts(), blocks});
    Value part = emitter.expand(digits[0]);
    emitter.setCoordinate(partCoordinate, part);
    Value number = emitter.expand(digits[1]);
    Block block = {arith::MulIOp::create(b, loc, number, emitter.indexConstant(blockUnits)),
                   arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number,
                                         emitter.indexConstant(blocks - 1))};
    forEachUnit(block, [&](Value turn) {
      for (const Sum &sum : sums) {
        Value neutral =
            arith::ConstantOp::create(emitter.builder(), loc, getNeutral(sum.combiner.combine));
        memref::StoreOp::create(emitter.builder(), loc,
                                emitter.lanes > 1 ? emitter.broadcast(neutral) : neutral,
                                getMemory(sum), turn);
      }
    });
    emitter.loop(chunk / turn, {}, [&](Value number, ValueRange) -> SmallVector<Value> {
      OpBuilder &b = emitter.builder();
      Value begin = arith::MulIOp::create(b, loc, part, emitter.indexConstant(chunk));
      Value turns = arith::MulIOp::create(b, loc, number, emitter.indexConstant(turn));
      SmallVector<Value> numbers = {arith::AddIOp::create(b, loc, begin, turns)};
      for (int64_t next = 1; next < turn; ++next)
        numbers.push_back(
            arith::AddIOp::create(b, loc, numbers.front(), emitter.indexConstant(next)));
      auto body = [&]() -> SmallVector<Value> {
        addRows(block, numbers);
        return {};
      };
      if (rows % chunk == 0)
        return body();
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, numbers.front(),
                                           emitter.indexConstant(rows));
      return emitter.guard(inside, {}, body);
    });
    forEachUnit(block, [&](Value turn) {
      SmallVector<AffineExpr> point =
          getPoint(SmallVector<AffineExpr>(domain.getNumRows(), emitter.constant(0)));
      for (unsigned result : parts)
        for (const Sum &sum : sums)
          if (sum.result == emitter.computed[result])
            emitter.store(result,
                          memref::LoadOp::create(emitter.builder(), loc, getMemory(sum), turn),
                          getPartIndices(emitter, sum.result, point));
    });
  });
}

void weir::emitColumn(PointEmitter &emitter, EmittedKernel &launch) {
  if (emitter.profile.hasFreeVectors())
    if (ColumnBlocks blocks(emitter); blocks.fits())
      return blocks.run(launch);
  const Profile &profile = emitter.profile;
  const KernelDomain &domain = emitter.domain;
  ArrayRef<int64_t> columnSizes = domain.getColumnSizes();
  int64_t lanes = profile.hasFreeVectors() ? getLanes(profile, columnSizes, getMaxVectors(domain))
                                           : getColumnLanes(domain, profile);
  emitter.setLanes(lanes);
  int64_t columns = getProduct(columnSizes) / lanes;
  int64_t rows = getProduct(domain.getRowSizes()), chunk = domain.getChunk();
  int64_t units = domain.getParts() * columns;
  Location loc = emitter.loc;

  SmallVector<unsigned> parts, points; // numbers of results
  for (auto [index, value] : llvm::enumerate(emitter.computed))
    (getOpShape(value.getDefiningOp()) == OpShape::Column ? parts : points).push_back(index);

  auto emitUnit = [&](Value unit) {
    emitter.setCoordinate(unitCoordinate, unit);
    SmallVector<AffineExpr> digits =
        emitter.delinearize(emitter.dim(unitCoordinate), {domain.getParts(), columns});
    Value part = emitter.expand(digits[0]);
    emitter.setCoordinate(partCoordinate, part);
    emitter.setCoordinate(tileColumnCoordinate, emitter.expand(digits[1]));
    auto getColumnPoint = [&](SmallVector<AffineExpr> rowPoint) {
      llvm::append_range(rowPoint,
                         getPoint(emitter, emitter.dim(tileColumnCoordinate), columnSizes, lanes));
      return rowPoint;
    };

    SmallVector<Value> start;
    for (linalg::GenericOp op : domain.getColumnOps()) {
      SmallVector<Combiner> combiners = *getCombiners(op);
      for (const Combiner &combiner : combiners) {
        Value neutral =
            arith::ConstantOp::create(emitter.builder(), loc, getNeutral(combiner.combine));
        start.push_back(lanes > 1 ? emitter.broadcast(neutral) : neutral);
      }
    }
    SmallVector<Value> totals = emitter.loop(chunk, start, [&](Value turn, ValueRange running) {
      OpBuilder &b = emitter.builder();
      Value first = arith::MulIOp::create(b, loc, part, emitter.indexConstant(chunk));
      Value row = arith::AddIOp::create(b, loc, first, turn);
      auto body = [&] {
        AffineExpr number = emitter.setCoordinate(tripCoordinate, row);
        SmallVector<AffineExpr> point =
            getColumnPoint(emitter.delinearize(number, domain.getRowSizes()));
        return addPoint(emitter, points, point, running);
      };
      if (rows % chunk == 0)
        return body();
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, row,
                                           emitter.indexConstant(rows));
      return emitter.guard(inside, running, body);
    });

    SmallVector<AffineExpr> point =
        getColumnPoint(SmallVector<AffineExpr>(domain.getNumRows(), emitter.constant(0)));
    SmallVector<Value> combined; // one for each result of each op
    for (linalg::GenericOp op : domain.getColumnOps())
      llvm::append_range(combined, op->getResults());
    for (unsigned result : parts) {
      Value value = emitter.computed[result];
      auto position = llvm::find(combined, value) - combined.begin();
      emitter.store(result, totals[position], getPartIndices(emitter, value, point));
    }
  };
  emitUnits(emitter, units, launch, emitUnit);
}
