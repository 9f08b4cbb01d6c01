//===- Map.cpp - Kernels that compute every point for itself --------------===//

#include "Shapes.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

/// Returns how many of `units` an invocation computes: at most `max`, and a number that leaves no
/// rest if one is near. `invocations` of them are launched at once.
static int64_t getShare(int64_t units, int64_t max, int64_t invocations = 1) {
  for (int64_t count = max; 2 * count > max; --count)
    if (units % (invocations * count) == 0)
      return count;
  return max;
}

/// Returns the max number of units of an invocation: as many as the profile likes, but not so many
/// that fewer than `tuning::workgroups::many` are left.
static int64_t getMaxShare(const Profile &profile, int64_t units) {
  return std::clamp<int64_t>(units / (profile.workgroupSize * tuning::workgroups::many), 1,
                             profile.elementsPerInvocation);
}

/// Returns the row-major digits of a unit of some neighbours in a space of any last
/// dimension.
static SmallVector<AffineExpr> getFlatPoint(PointEmitter &emitter, AffineExpr unit,
                                            ArrayRef<int64_t> sizes) {
  return emitter.delinearize(unit * emitter.lanes + emitter.vectorLane(), sizes);
}

/// Whether neighbours, over the ends of the last dimension, are read and written as whole
/// vectors: all tensors are walked as they lie in memory.
static bool isFlat(PointEmitter &emitter, ArrayRef<int64_t> sizes) {
  bool takesRest = emitter.profile.hasFreeVectors();
  if (emitter.profile.vectorWidth == 1 || (!takesRest && getProduct(sizes) % emitter.lanes != 0))
    return false;
  SmallVector<AffineExpr> point = getFlatPoint(emitter, emitter.dim(unitCoordinate), sizes);
  for (auto [result, value] : llvm::enumerate(emitter.computed)) {
    SmallVector<AffineExpr> indices = getResultIndices(emitter, value, point);
    if (!emitter.isVectorFriendly(value, indices) || !emitter.isVectorStore(result, indices))
      return false;
  }
  return true;
}

namespace {
/// The elements of a unit.
struct Unit {
  int64_t lanes = 1;
  bool isFlat = false; ///< neighbours over the ends of the last dimension
};
} // namespace

/// Chooses the unit, and sets the emitter's vectors to it.
static Unit chooseUnit(PointEmitter &emitter) {
  ArrayRef<int64_t> sizes = emitter.domain.getSizes();
  int64_t lanes = getLanes(emitter.profile, sizes);
  if (!emitter.profile.hasFreeVectors()) {
    bool flat = lanes == 1 && isFlat(emitter, sizes);
    return {flat || lanes > 1 ? emitter.lanes : lanes, flat};
  }
  int64_t flatLanes = getLanesBeforeRest(emitter.profile, getProduct(sizes));
  emitter.setLanes(flatLanes);
  if (flatLanes > 1 && isFlat(emitter, sizes))
    return {flatLanes, true};
  lanes = getLanesBeforeRest(emitter.profile, sizes.empty() ? 1 : sizes.back());
  emitter.setLanes(lanes);
  return {lanes, false};
}

/// Emits `body` for count units from `first` on; beyond `units` it does nothing.
static void emitUnitsInTurn(PointEmitter &emitter, unsigned coordinate, Value first, int64_t step,
                            int64_t count, int64_t units, bool exact, function_ref<void()> body) {
  Location loc = emitter.loc;
  emitter.loop(count, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    OpBuilder &b = emitter.builder();
    Value offset = arith::MulIOp::create(b, loc, trip, emitter.indexConstant(step));
    Value unit = arith::AddIOp::create(b, loc, first, offset);
    auto compute = [&]() -> SmallVector<Value> {
      emitter.setCoordinate(coordinate, unit);
      emitter.setCoordinate(tripCoordinate, trip);
      body();
      return {};
    };
    if (exact)
      return compute();
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, unit,
                                         emitter.indexConstant(units));
    return emitter.guard(inside, {}, compute);
  });
}

/// Emits the elements of `size` behind the last vector of `lanes`, where `isLast` says so.
static void emitRests(PointEmitter &emitter, int64_t size, int64_t lanes, Value isLast,
                      ArrayRef<unsigned> results,
                      function_ref<SmallVector<AffineExpr>(AffineExpr)> getPoint) {
  SmallVector<Rest> rests = getRests(size, lanes);
  if (rests.empty())
    return;
  auto emit = [&]() -> SmallVector<Value> {
    for (const Rest &rest : rests)
      emitRest(emitter, rest,
               [&](AffineExpr element) { emitResults(emitter, results, getPoint(element)); });
    return {};
  };
  emitter.guard(isLast, {}, emit);
  emitter.setLanes(lanes);
}

/// Emits units of the last dimension in loops of their own: a CPU does without the division that
/// tells the place of each.
static void emitRowsOfUnits(PointEmitter &emitter, int64_t lanes, ArrayRef<unsigned> results,
                            EmittedKernel &launch) {
  const Profile &profile = emitter.profile;
  ArrayRef<int64_t> sizes = emitter.domain.getSizes();
  int64_t units = sizes.back() / lanes, rows = getProduct(sizes.drop_back());
  int64_t max = getMaxShare(profile, units * rows);
  int64_t share = getShare(units, std::min(units, max));
  int64_t shares = llvm::divideCeil(units, share);
  int64_t rowShare = shares > 1 ? 1 : getShare(rows, std::clamp<int64_t>(max / units, 1, rows));
  int64_t groups = llvm::divideCeil(rows, rowShare) * shares;
  emitWorkgroups(emitter, groups, launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Location loc = emitter.loc;
    auto scale = [&](Value number, int64_t factor) -> Value {
      return arith::MulIOp::create(b, loc, number, emitter.indexConstant(factor));
    };
    Value count = emitter.indexConstant(shares);
    Value firstRow = scale(arith::DivUIOp::create(b, loc, group, count), rowShare);
    Value number = arith::RemUIOp::create(b, loc, group, count);
    Value first = scale(number, share);
    Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number,
                                         emitter.indexConstant(shares - 1));
    emitUnitsInTurn(
        emitter, tileRowCoordinate, firstRow, 1, rowShare, rows, rows % rowShare == 0, [&] {
          SmallVector<AffineExpr> row =
              emitter.delinearize(emitter.dim(tileRowCoordinate), sizes.drop_back());
          emitUnitsInTurn(emitter, unitCoordinate, first, 1, share, units, units % share == 0, [&] {
            SmallVector<AffineExpr> point(row);
            llvm::append_range(
                point, getPoint(emitter, emitter.dim(unitCoordinate), sizes.take_back(), lanes));
            emitResults(emitter, results, point);
          });
          emitRests(emitter, sizes.back(), lanes, isLast, results, [&](AffineExpr element) {
            SmallVector<AffineExpr> point(row);
            point.push_back(element);
            return point;
          });
        });
  });
}

void weir::emitMap(PointEmitter &emitter, EmittedKernel &launch) {
  if (emitTransposedMap(emitter, launch))
    return;
  const Profile &profile = emitter.profile;
  ArrayRef<int64_t> sizes = emitter.domain.getSizes();
  Unit unit = chooseUnit(emitter);
  auto results = llvm::to_vector(llvm::seq<unsigned>(emitter.kernel.getNumResults()));
  if (profile.hasFreeVectors() && !unit.isFlat && sizes.size() > 1)
    return emitRowsOfUnits(emitter, unit.lanes, results, launch);
  int64_t elements = getProduct(sizes), units = elements / unit.lanes;
  int64_t perInvocation = getShare(units, getMaxShare(profile, units), profile.workgroupSize);
  int64_t perGroup = profile.workgroupSize * perInvocation;

  int64_t groups = llvm::divideCeil(units, perGroup);
  // Over the whole grid at a time, trips mostly leave places in rows as they are: what is read
  // there is read before all trips.
  bool strides = profile.hasShortVectors() && perInvocation > 1;
  int64_t step = profile.workgroupSize * (strides ? groups : 1);
  emitWorkgroups(emitter, groups, launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Value thread = gpu::ThreadIdOp::create(b, emitter.loc, gpu::Dimension::x);
    Value first = emitter.indexConstant(strides ? profile.workgroupSize : perGroup);
    Value begin = arith::AddIOp::create(
        b, emitter.loc, arith::MulIOp::create(b, emitter.loc, group, first), thread);
    AffineExpr inTurn =
        emitter.setCoordinate(tileRowCoordinate, begin) + emitter.dim(tripCoordinate) * step;
    emitUnitsInTurn(emitter, unitCoordinate, begin, step, perInvocation, units,
                    units % perGroup == 0, [&] {
                      AffineExpr number = strides ? inTurn : emitter.dim(unitCoordinate);
                      emitResults(emitter, results,
                                  unit.isFlat ? getFlatPoint(emitter, number, sizes)
                                              : getPoint(emitter, number, sizes, unit.lanes));
                    });
    if (!profile.hasFreeVectors())
      return;
    Value isLast = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::eq,
                                         group, emitter.indexConstant(groups - 1));
    emitRests(emitter, elements, unit.lanes, isLast, results,
              [&](AffineExpr element) { return emitter.delinearize(element, sizes); });
  });
}
