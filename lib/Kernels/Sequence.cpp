//===- Sequence.cpp - Kernels of reductions by any body -------------------===//
//
// A body that does not combine its accumulator with a value, such as one that finds
// the index of a maximum, fixes the order of its steps: an invocation owns a point of
// the results and walks the reduced loops in order. So does a scan, which stores a result
// at each step.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

namespace {
class Sequence {
public:
  explicit Sequence(PointEmitter &emitter) : emitter(emitter), domain(emitter.domain) {
    for (auto generic : emitter.kernel.getBody().front().getOps<linalg::GenericOp>())
      if (getOpShape(generic) == OpShape::Sequence)
        op = generic;
    for (unsigned number = 0; number < op->getNumResults(); ++number)
      if (!isStepResult(op, number))
        carried.push_back(number);
  }

  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const KernelDomain &domain;
  linalg::GenericOp op;
  SmallVector<unsigned> carried; ///< the results that a step takes over from the one before

  SmallVector<AffineExpr> getLoops(ArrayRef<AffineExpr> row, ArrayRef<AffineExpr> columns);
  void store(ArrayRef<Value> values, ArrayRef<AffineExpr> loops, bool ofSteps);
  void load(ArrayRef<AffineExpr> loops);
  int64_t chooseSteps(int64_t steps);
  void walk(ArrayRef<SmallVector<AffineExpr>> points, int64_t lanes);
  bool isAcross();
  int64_t chooseLanes();
  int64_t choosePoints(int64_t count, int64_t all, int64_t fewestUnits) const;
};
} // namespace

SmallVector<AffineExpr> Sequence::getLoops(ArrayRef<AffineExpr> row, ArrayRef<AffineExpr> columns) {
  SmallVector<AffineExpr> point(row);
  llvm::append_range(point, columns);
  return emitter.getLoops(op, point);
}

/// Stores the results of a step, or those that are left after the last one.
void Sequence::store(ArrayRef<Value> values, ArrayRef<AffineExpr> loops, bool ofSteps) {
  for (auto [index, value] : llvm::enumerate(emitter.computed)) {
    auto result = cast<OpResult>(value);
    if (isStepResult(op, result.getResultNumber()) == ofSteps)
      emitter.store(index, values[result.getResultNumber()],
                    emitter.apply(op.getIndexingMapMatchingResult(result), loops));
  }
}

/// Loads what a step reads, but for what its body computes the place of.
void Sequence::load(ArrayRef<AffineExpr> loops) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (isa<RankedTensorType>(input->get().getType()) &&
        !op.getMatchingBlockArgument(input).use_empty())
      emitter.evaluate(input->get(), emitter.apply(getAccessMap(op, input), loops));
}

/// Returns how many steps' operands are loaded at a time. A GPU's invocations of one point each are
/// too few to wait for memory one step after the other.
int64_t Sequence::chooseSteps(int64_t steps) {
  if (emitter.profile.hasFreeVectors() || emitter.profile.units == 0 || op.getNumDpsInputs() == 0)
    return 1;
  int64_t atOnce = std::clamp<int64_t>(tuning::sequences::maxLoads / op.getNumDpsInputs(), 1,
                                       tuning::sequences::maxSteps);
  return steps < tuning::sequences::minTurns * atOnce ? 1 : atOnce;
}

/// Takes all steps of a point, or of `lanes` neighbours. Those of several points take turns.
void Sequence::walk(ArrayRef<SmallVector<AffineExpr>> points, int64_t lanes) {
  ArrayRef<int64_t> columns = domain.getColumnSizes();
  SmallVector<AffineExpr> zeros(columns.size(), emitter.constant(0));
  auto place = emitter.codeFor(op);
  auto spread = [&](Value value) { return lanes > 1 ? emitter.broadcast(value) : value; };
  SmallVector<Value> values(op->getNumResults()), before;
  for (ArrayRef<AffineExpr> row : points)
    for (unsigned number : carried) {
      OpOperand *init = op.getDpsInitOperand(number);
      before.push_back(spread(emitter.evaluate(
          init->get(), emitter.apply(op.getMatchingIndexingMap(init), getLoops(row, zeros)))));
    }
  auto take = [&](ValueRange running, unsigned point) {
    for (auto [number, value] :
         llvm::zip_equal(carried, running.slice(point * carried.size(), carried.size())))
      values[number] = value;
  };
  // Takes `atOnce` steps a trip, from `first` on.
  auto takeSteps = [&](int64_t first, int64_t trips, int64_t atOnce, ValueRange start) {
    return emitter.loop(trips, start, [&](Value trip, ValueRange running) {
      AffineExpr step = emitter.setCoordinate(tripCoordinate, trip) * atOnce + first;
      if (atOnce > 1)
        for (ArrayRef<AffineExpr> row : points)
          for (int64_t number = 0; number < atOnce; ++number)
            load(getLoops(row, emitter.delinearize(step + number, columns)));
      SmallVector<Value> next(running);
      for (int64_t number = 0; number < atOnce; ++number) {
        SmallVector<AffineExpr> at = emitter.delinearize(step + number, columns);
        SmallVector<Value> from = std::move(next);
        next.clear();
        for (auto [point, row] : llvm::enumerate(points)) {
          SmallVector<AffineExpr> loops = getLoops(row, at);
          take(from, point);
          SmallVector<Value> made = emitter.evaluateStep(op, loops, values);
          store(made, loops, /*ofSteps=*/true);
          for (unsigned own : carried)
            next.push_back(spread(made[own]));
        }
      }
      return next;
    });
  };
  int64_t steps = getProduct(columns), atOnce = chooseSteps(steps), trips = steps / atOnce;
  SmallVector<Value> last = takeSteps(0, trips, atOnce, before);
  last = takeSteps(trips * atOnce, steps - trips * atOnce, 1, last);
  for (auto [point, row] : llvm::enumerate(points)) {
    take(last, point);
    store(values, getLoops(row, zeros), /*ofSteps=*/false);
  }
}

/// Whether neighbours in what the steps store, or else in what they read, are points, not steps.
bool Sequence::isAcross() {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto isOfStep = [&](AffineMap map) {
    return llvm::any_of(llvm::enumerate(op.getIteratorTypesArray()), [&](const auto &loop) {
      return loop.value() == utils::IteratorType::reduction && sizes[loop.index()] != 1 &&
             map.isFunctionOfDim(loop.index());
    });
  };
  SmallVector<AffineMap> maps;
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(op.getMatchingIndexingMap(&init));
  for (OpOperand *input : op.getDpsInputOperands())
    if (!op.getMatchingBlockArgument(input).use_empty())
      maps.push_back(op.getMatchingIndexingMap(input));
  for (AffineMap map : maps) {
    if (!isOfStep(map))
      continue;
    for (AffineExpr index : llvm::reverse(map.getResults()))
      for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
        if (sizes[loop] != 1 && index.isFunctionOfDim(loop))
          return kind == utils::IteratorType::parallel;
  }
  return true;
}

/// Returns how many neighbouring points take their steps together, and sets the emitter to them.
int64_t Sequence::chooseLanes() {
  ArrayRef<int64_t> rows = domain.getRowSizes();
  if (!emitter.profile.hasFreeVectors() || rows.empty() || !isAcross())
    return 1;
  int64_t lanes = getLanesBeforeRest(emitter.profile, rows.back());
  emitter.setLanes(lanes);
  SmallVector<AffineExpr> row = getPoint(emitter, emitter.dim(unitCoordinate), rows, lanes);
  SmallVector<AffineExpr> loops =
      getLoops(row, emitter.delinearize(emitter.dim(tripCoordinate), domain.getColumnSizes()));
  bool isFriendly = llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
    return !isa<RankedTensorType>(operand->get().getType()) ||
           emitter.isVectorFriendly(operand->get(),
                                    emitter.apply(getAccessMap(op, operand), loops));
  });
  for (auto [index, value] : llvm::enumerate(emitter.computed))
    isFriendly &= emitter.isVectorStore(
        index, emitter.apply(op.getIndexingMapMatchingResult(cast<OpResult>(value)), loops));
  if (!isFriendly)
    emitter.setLanes(lanes = 1);
  return lanes;
}

/// Returns how many of `count` neighbours an invocation walks in turns, points or vectors of them,
/// of `all` that there are. A step waits for the one before it; on a processor steps of other
/// points fill that time.
int64_t Sequence::choosePoints(int64_t count, int64_t all, int64_t fewestUnits) const {
  if (!emitter.profile.hasFreeVectors())
    return 1;
  for (int64_t atOnce = tuning::sequences::maxPoints; atOnce > 1; atOnce /= 2)
    if (count % atOnce == 0 && all / atOnce >= fewestUnits)
      return atOnce;
  return 1;
}

void Sequence::run(EmittedKernel &launch) {
  ArrayRef<int64_t> rows = domain.getRowSizes();
  int64_t lanes = chooseLanes();
  if (lanes == 1) {
    int64_t count = getProduct(rows),
            atOnce = choosePoints(count, count, tuning::sequences::minPointUnits);
    emitUnits(emitter, count / atOnce, launch, [&](Value number) {
      AffineExpr first = emitter.setCoordinate(unitCoordinate, number) * atOnce;
      SmallVector<SmallVector<AffineExpr>> points;
      for (int64_t i = 0; i < atOnce; ++i)
        points.push_back(emitter.delinearize(first + i, rows));
      walk(points, 1);
    });
    return;
  }
  int64_t units = rows.back() / lanes, all = getProduct(rows.drop_back()) * units;
  int64_t atOnce = choosePoints(units, all, tuning::sequences::minVectorUnits);
  emitUnits(emitter, all / atOnce, launch, [&](Value number) {
    AffineExpr first = emitter.setCoordinate(unitCoordinate, number) * atOnce;
    SmallVector<SmallVector<AffineExpr>> vectors;
    for (int64_t i = 0; i < atOnce; ++i)
      vectors.push_back(getPoint(emitter, first + i, rows, lanes));
    walk(vectors, lanes);
    SmallVector<AffineExpr> &row = vectors.back();
    SmallVector<Rest> rests = getRests(rows.back(), lanes);
    if (rests.empty())
      return;
    OpBuilder &b = emitter.builder();
    int64_t ofRow = units / atOnce;
    Value last = emitter.indexConstant(ofRow - 1);
    Value inRow = arith::RemUIOp::create(b, emitter.loc, number, emitter.indexConstant(ofRow));
    Value isLast = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::eq, inRow, last);
    emitter.guard(isLast, {}, [&]() -> SmallVector<Value> {
      for (const Rest &rest : rests)
        emitRest(emitter, rest, [&](AffineExpr element) {
          SmallVector<AffineExpr> point(row);
          point.back() = element;
          walk({point}, rest.lanes);
        });
      return {};
    });
    emitter.setLanes(lanes);
  });
}

void weir::emitSequence(PointEmitter &emitter, EmittedKernel &launch) {
  Sequence(emitter).run(launch);
}
