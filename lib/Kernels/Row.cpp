//===- Row.cpp - Kernels that reduce rows ---------------------------------===//
//
// A team of invocations (one, a subgroup, or a workgroup) owns a row and walks
// it once per pass: a pass for each reduction that needs the result of another,
// and one for the results. The invocation's own memory keeps elements that several
// passes read, and elements that are the same for all rows.
//
// If columns are reduced, too, a team owns the consecutive rows of one part, and
// keeps that part of its columns until the last row is done.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weir;

namespace {
class RowEmitter {
public:
  RowEmitter(PointEmitter &emitter)
      : emitter(emitter), profile(emitter.profile), layout(emitter.domain, profile),
        team(emitter, layout) {}
  void run(EmittedKernel &launch);

private:
  /// The row after that of `unitCoordinate`, or the last one. Rows have no tiles.
  static constexpr unsigned nextRowCoordinate = tileRowCoordinate;
  /// The first pass waits for the row itself. If there is a third, it is the one that writes.
  static constexpr unsigned prefetchingPass = 1;

  PointEmitter &emitter;
  const Profile &profile;

  RowLayout layout;
  std::optional<RowCopies> copies; ///< known in the second emission
  Value isNextThere;               ///< whether the team has a row behind the one that is emitted
  RowTeam team;

  // Passes over the row.
  DenseMap<Operation *, unsigned> passOf; // reductions and stored ops
  unsigned passes = 0;
  llvm::SmallSetVector<unsigned, 4> reducingPasses;

  void assignPasses();
  void makeCaches();
  void keepComputed();
  void fillColumnCaches();
  void emitTeam(Value group, Value team);
  void emitRowRests(Value group, int64_t first);
  void emitRowBody();
  void emitPass(unsigned pass);
  SmallVector<AffineExpr> getRowPoint();
  void forEachUnit(SmallVector<Value> &carried,
                   function_ref<SmallVector<Value>(ArrayRef<AffineExpr>, ValueRange)> body,
                   SmallVectorImpl<Value> *ofRests = nullptr);
  void walkRests(ArrayRef<Value> starts,
                 function_ref<SmallVector<Value>(ArrayRef<AffineExpr>, ValueRange)> body,
                 SmallVectorImpl<Value> *ofRests);
  void walkInTurn(SmallVector<Value> &carried, PointEmitter::LoopBody walk);
  SmallVector<Value> addUp(int64_t trips, int64_t terms, ArrayRef<Value> neutral,
                           PointEmitter::LoopBody body);
  int64_t getRowBytes(unsigned buffer) const {
    int64_t width = emitter.getBufferType(buffer).getElementTypeBitWidth();
    return layout.units * layout.columnLanes * width / 8;
  }
  void choosePrefetched();
  void prefetchNextRow();
  void copyRow();
  void fetchRow(Value next, Value isThere);
  bool copiesRows() const { return copies && !copies->getLoads().empty(); }
  void storeRowResults();
  void startColumns();
  void addToColumns(linalg::GenericOp op, ArrayRef<AffineExpr> point);
  void storeColumns();

  struct Private {
    std::pair<unsigned, AffineExpr> key;
    bool ofColumns = false;
  };
  SmallVector<Private> privates;
  SmallVector<std::pair<Value, AffineMap>> keptValues;
  /// The part of a reduced column that the invocation has so far.
  struct KeptColumn {
    Value result;
    Combiner combiner;
    Value memory;
    SmallVector<Value> ofRests; ///< memory of the columns behind the last unit
  };
  SmallVector<KeptColumn> keptColumns;
  SmallVector<std::pair<unsigned, AffineExpr>> prefetched; ///< loads of the next row
  std::optional<size_t> currentRest; ///< of `layout.rests`, which code is emitted for
  AffineExpr rowOfRest; ///< index of the last dimension of rows, behind its units; null before
  SmallVector<Operation *> combinersOfPass;

  /// Returns the memory of a kept column for the columns that code is emitted for.
  Value getMemory(const KeptColumn &kept) const {
    return currentRest ? kept.ofRests[*currentRest] : kept.memory;
  }
};
} // namespace

/// Puts every reduction in the first pass in which what it needs is known, and
/// every result in the first pass that can store it.
void RowEmitter::assignPasses() {
  DenseMap<Operation *, unsigned> needs; // passes that must be over
  unsigned reductionPasses = 0;
  Block &body = emitter.kernel.getBody().front();
  for (Operation &op : body.without_terminator()) {
    unsigned need = 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        need = std::max(need, needs.lookup(producer));
    if (getOpShape(&op) == OpShape::Reduction) {
      passOf[&op] = need;
      reducingPasses.insert(need);
      reductionPasses = std::max(reductionPasses, ++need);
    }
    needs[&op] = need;
  }
  passes = reductionPasses;
  for (Value value : emitter.computed) {
    Operation *op = value.getDefiningOp();
    OpShape shape = getOpShape(op);
    if (shape == OpShape::Reduction ||
        (shape == OpShape::Pointwise && !emitter.domain.hasColumns(op)))
      continue;
    passOf[op] = needs.lookup(op);
    passes = std::max(passes, needs.lookup(op) + 1);
  }
}

SmallVector<AffineExpr> RowEmitter::getRowPoint() {
  ArrayRef<int64_t> sizes = emitter.domain.getRowSizes();
  if (!rowOfRest)
    return getPoint(emitter, emitter.dim(unitCoordinate), sizes, layout.rowLanes);
  SmallVector<AffineExpr> point =
      emitter.delinearize(emitter.dim(unitCoordinate), sizes.drop_back());
  point.push_back(rowOfRest);
  return point;
}

/// Calls `body` at every unit of the row that this invocation walks. What is carried from trip to
/// trip gets `layout.sums` values in turn, those of one sum behind those of another; the values of
/// the rests are added to `ofRests`.
void RowEmitter::forEachUnit(
    SmallVector<Value> &carried,
    function_ref<SmallVector<Value>(ArrayRef<AffineExpr>, ValueRange)> body,
    SmallVectorImpl<Value> *ofRests) {
  SmallVector<Value> starts(carried);
  auto at = [&](ValueRange values) {
    AffineExpr unit = emitter.dim(tripCoordinate) * layout.teamSize;
    if (layout.teamSize > 1)
      unit = unit + emitter.dim(teamLaneCoordinate);
    SmallVector<AffineExpr> point = getRowPoint();
    llvm::append_range(
        point, getPoint(emitter, unit, emitter.domain.getColumnSizes(), layout.columnLanes));
    return body(point, values);
  };
  auto walk = [&](Value trip, ValueRange values) {
    emitter.setCoordinate(tripCoordinate, trip);
    emitter.cache.setTrip(trip);
    emitter.computedCache.setTrip(trip);
    return at(values);
  };
  if (profile.unrollPrivate && (!privates.empty() || !keptColumns.empty() || copiesRows())) {
    // Memory that only constants index can become registers.
    for (int64_t trip = 0; trip < layout.fullTrips; ++trip)
      carried = emitter.loop(1, carried, [&](Value, ValueRange values) {
        return walk(emitter.indexConstant(trip), values);
      });
  } else if (carried.empty() || layout.tripsAtOnce == 1) {
    carried = addUp(layout.fullTrips, 1, carried, walk);
  } else {
    walkInTurn(carried, walk);
  }
  walkRests(starts, body, ofRests);
  if (layout.restUnits == 0)
    return;
  Value inside = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult,
                                       team.getLane(), emitter.indexConstant(layout.restUnits));
  carried = emitter.guard(inside, carried,
                          [&] { return walk(emitter.indexConstant(layout.fullTrips), carried); });
}

/// Calls `body` at the columns behind the last whole vector, each time with the values `starts`.
void RowEmitter::walkRests(ArrayRef<Value> starts,
                           function_ref<SmallVector<Value>(ArrayRef<AffineExpr>, ValueRange)> body,
                           SmallVectorImpl<Value> *ofRests) {
  int64_t lanes = emitter.lanes;
  for (auto [number, rest] : llvm::enumerate(layout.rests)) {
    emitter.setLanes(rest.lanes);
    currentRest = number;
    SmallVector<Value> before;
    for (Value start : starts) // all of its lanes are equal
      before.push_back(emitter.isVector(start) ? emitter.extract(start, 0) : start);
    SmallVector<Value> values = emitter.loop(1, before, [&](Value first, ValueRange running) {
      emitter.cache.setTrip(first);
      emitter.computedCache.setTrip(first);
      AffineExpr column = emitter.constant(rest.begin);
      if (rest.lanes > 1)
        column = column + emitter.vectorLane();
      SmallVector<AffineExpr> point = getRowPoint();
      point.push_back(column);
      SmallVector<Value> next = body(point, running);
      for (auto [value, combiner] : llvm::zip_equal(next, combinersOfPass))
        if (rest.lanes > 1)
          value = emitter.combineLanes(combiner, emitter.broadcast(value));
      return next;
    });
    if (ofRests)
      llvm::append_range(*ofRests, values);
  }
  currentRest = std::nullopt;
  emitter.setLanes(lanes);
}

/// Emits a loop that adds `terms` terms to each value at a trip: in blocks, if the sums are long.
SmallVector<Value> RowEmitter::addUp(int64_t trips, int64_t terms, ArrayRef<Value> neutral,
                                     PointEmitter::LoopBody body) {
  PointEmitter::SumBlocks blocks{0, SmallVector<Value>(neutral), combinersOfPass};
  if (emitter.isLongSum(combinersOfPass, trips * terms, tuning::sums::maxTerms,
                        trips * layout.rowsPerTeam))
    blocks.trips = tuning::sums::blockTerms / terms;
  return emitter.loopInBlocks(trips, neutral, blocks, std::move(body));
}

/// Emits the full trips, `layout.tripsAtOnce` in each turn of the loop.
void RowEmitter::walkInTurn(SmallVector<Value> &carried, PointEmitter::LoopBody walk) {
  size_t values = carried.size();
  SmallVector<Value> sums;
  for (int64_t sum = 0; sum < layout.sums; ++sum)
    llvm::append_range(sums, carried);
  auto addTrip = [&](int64_t sum, function_ref<Value()> getTrip, SmallVector<Value> &all) {
    MutableArrayRef<Value> own = MutableArrayRef(all).slice(sum * values, values);
    SmallVector<Value> next =
        emitter.loop(1, own, [&](Value, ValueRange running) { return walk(getTrip(), running); });
    llvm::copy(next, own.begin());
  };
  int64_t atOnce = layout.tripsAtOnce, turns = layout.fullTrips / atOnce;
  sums = addUp(turns, atOnce / layout.sums, sums, [&](Value turn, ValueRange running) {
    SmallVector<Value> next(running);
    for (int64_t number = 0; number < atOnce; ++number)
      addTrip(
          number % layout.sums,
          [&]() -> Value {
            OpBuilder &b = emitter.builder();
            Value first =
                arith::MulIOp::create(b, emitter.loc, turn, emitter.indexConstant(atOnce));
            return arith::AddIOp::create(b, emitter.loc, first, emitter.indexConstant(number));
          },
          next);
    return next;
  });
  for (int64_t trip = turns * atOnce; trip < layout.fullTrips; ++trip)
    addTrip(trip % layout.sums, [&] { return emitter.indexConstant(trip); }, sums);
  carried = std::move(sums);
}

/// Chooses what the invocation keeps of what it computes in several passes.
void RowEmitter::keepComputed() {
  int64_t budget = profile.privateRowBytes;
  for (auto &[key, computed] : emitter.getKnown()->values) {
    auto [tensor, indices] = key;
    Type element = emitter.getElementType(tensor);
    if (computed.passes.size() < 2 || !indices.isFunctionOfDim(tripCoordinate) ||
        !isKeepable(element))
      continue;
    int64_t bytes = layout.getTrips() * computed.lanes * (element.getIntOrFloatBitWidth() / 8);
    if (bytes > budget)
      continue;
    budget -= bytes;
    emitter.computedCache.add(key,
                              allocatePrivate(emitter, element, computed.lanes, layout.getTrips()));
    keptValues.push_back(key);
  }
}

/// Chooses what the invocation keeps of its operands: first what several passes read, then what
/// several rows read, as far as its memory goes.
void RowEmitter::makeCaches() {
  if (!emitter.getKnown())
    return;
  // A CPU's cache has the elements of a row that were read.
  if (profile.hasFreeVectors())
    return keepComputed();
  int64_t budget = profile.privateRowBytes;
  int64_t trips = layout.getTrips();
  if (trips == 0)
    return;
  for (const RowCopies::Load &load : copies->getLoads()) {
    std::pair<unsigned, AffineExpr> key(load.buffer, load.address);
    privates.push_back({key, /*ofColumns=*/false});
    if (copies->staysShared() && !llvm::is_contained(load.inRegisters, true)) {
      emitter.cache.add(key, nullptr);
      continue;
    }
    emitter.cache.add(key, allocatePrivate(emitter, load.element, layout.columnLanes, trips));
    const int64_t kept = copies->staysShared() ? llvm::count(load.inRegisters, true) : trips;
    budget -= kept * layout.columnLanes * (load.element.getIntOrFloatBitWidth() / 8);
  }
  for (bool ofColumns : {false, true})
    for (auto &[key, passesOfLoad] : emitter.getKnown()->loads) {
      AffineExpr address = key.second;
      // A load that does not depend on the trip stands before the loop.
      bool walks = address.isFunctionOfDim(tripCoordinate) ||
                   (trips == 1 && address.isFunctionOfDim(teamLaneCoordinate));
      bool perRow = address.isFunctionOfDim(unitCoordinate);
      bool saves = ofColumns ? layout.rowsPerTeam > 1 : passesOfLoad.size() > 1;
      if (!walks || perRow == ofColumns || !saves || emitter.cache.find(key))
        continue;
      Type element = getElementTypeOrSelf(emitter.getBufferType(key.first).getElementType());
      if (!isKeepable(element))
        continue;
      bool wide = address.isFunctionOfDim(PointEmitter::laneOfVector);
      int64_t bytes = trips * (wide ? emitter.lanes : 1) * (element.getIntOrFloatBitWidth() / 8);
      if (bytes > budget)
        continue;
      budget -= bytes;
      emitter.cache.add(key, allocatePrivate(emitter, element, wide ? emitter.lanes : 1, trips));
      privates.push_back({key, ofColumns});
    }
}

/// Loads what all rows read alike, once.
void RowEmitter::fillColumnCaches() {
  SmallVector<Value> none;
  if (llvm::none_of(privates, [](const Private &p) { return p.ofColumns; }))
    return;
  // The row's own coordinate isn't known yet, and isn't part of these addresses.
  forEachUnit(none, [&](ArrayRef<AffineExpr>, ValueRange) -> SmallVector<Value> {
    for (const Private &kept : privates)
      if (kept.ofColumns)
        emitter.fillCache(kept.key.first, kept.key.second);
    return {};
  });
  for (const Private &kept : privates)
    if (kept.ofColumns)
      emitter.cache.setFilled(kept.key, true);
}

/// Makes room for the columns' parts and sets them to nothing combined.
void RowEmitter::startColumns() {
  for (linalg::GenericOp op : emitter.domain.getColumnOps())
    for (auto [combiner, result] : llvm::zip_equal(*getCombiners(op), op->getResults()))
      if (llvm::is_contained(emitter.computed, result) && layout.getTrips() > 0) {
        Type element = emitter.getElementType(result);
        KeptColumn &kept = keptColumns.emplace_back(
            KeptColumn{result,
                       combiner,
                       allocatePrivate(emitter, element, layout.columnLanes, layout.getTrips()),
                       {}});
        for (const Rest &rest : layout.rests)
          kept.ofRests.push_back(allocatePrivate(emitter, element, rest.lanes, 1));
      }
  SmallVector<Value> none;
  forEachUnit(none, [&](ArrayRef<AffineExpr>, ValueRange) -> SmallVector<Value> {
    OpBuilder &b = emitter.builder();
    for (const KeptColumn &kept : keptColumns) {
      auto place = emitter.codeFor(kept.result.getDefiningOp());
      Value start = arith::ConstantOp::create(b, emitter.loc, getNeutral(kept.combiner.combine));
      if ((currentRest ? layout.rests[*currentRest].lanes : layout.columnLanes) > 1)
        start = emitter.broadcast(start);
      memref::StoreOp::create(b, emitter.loc, start, getMemory(kept), emitter.cache.getTrip());
    }
    return {};
  });
}

/// Combines what `op` takes of the row at `point` with what earlier rows gave.
void RowEmitter::addToColumns(linalg::GenericOp op, ArrayRef<AffineExpr> point) {
  auto place = emitter.codeFor(op);
  SmallVector<Combiner> combiners = *getCombiners(op);
  SmallVector<Value> values = emitter.evaluateReduced(op, combiners, emitter.getLoops(op, point));
  for (const KeptColumn &kept : keptColumns) {
    if (kept.result.getDefiningOp() != op)
      continue;
    OpBuilder &b = emitter.builder();
    Value before = memref::LoadOp::create(b, emitter.loc, getMemory(kept), emitter.cache.getTrip());
    Value value = values[cast<OpResult>(kept.result).getResultNumber()];
    memref::StoreOp::create(b, emitter.loc, emitter.combine(kept.combiner.combine, before, value),
                            getMemory(kept), emitter.cache.getTrip());
  }
}

/// Stores the columns' parts, once the team has walked the last of its rows.
void RowEmitter::storeColumns() {
  SmallVector<Value> none;
  forEachUnit(none, [&](ArrayRef<AffineExpr> point, ValueRange) -> SmallVector<Value> {
    for (auto [index, value] : llvm::enumerate(emitter.computed))
      for (const KeptColumn &kept : keptColumns) {
        if (kept.result != value)
          continue;
        auto place = emitter.codeFor(value.getDefiningOp());
        Value part = memref::LoadOp::create(emitter.builder(), emitter.loc, getMemory(kept),
                                            emitter.cache.getTrip());
        emitter.store(index, part, getPartIndices(emitter, value, point));
      }
    return {};
  });
}

/// Chooses the loads that are made ahead for the next row. Otherwise memory would rest while the
/// later passes find the row in a cache. A core does so by itself only for what it reads without a
/// break.
void RowEmitter::choosePrefetched() {
  if (!emitter.getKnown() || !profile.hasFreeVectors() || profile.streamedBytes == 0 ||
      emitter.domain.isAcross() || passes <= prefetchingPass)
    return;
  // Where terms are windows, loads are of loops within a trip, whose counters the place does not
  // know where the next row's loads are made.
  auto isOfTrip = [](AffineExpr address) {
    bool all =
        !address.isFunctionOfDim(tripCoordinate) || !address.isFunctionOfDim(tileRestCoordinate);
    address.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part))
        all &=
            llvm::is_contained(ArrayRef<unsigned>{unitCoordinate, tripCoordinate,
                                                  tileRestCoordinate, PointEmitter::laneOfVector},
                               dim.getPosition());
    });
    return all;
  };
  if (!llvm::all_of(emitter.getKnown()->loads,
                    [&](const auto &load) { return isOfTrip(load.first.second); }))
    return;
  for (auto &[key, passesOfLoad] : emitter.getKnown()->loads) {
    auto [buffer, address] = key;
    MemRefType type = emitter.getBufferType(buffer);
    int64_t bytes = type.getNumElements() * (type.getElementTypeBitWidth() / 8);
    // A longer one would push out what the later passes read.
    if (getRowBytes(buffer) > profile.privateRowBytes)
      continue;
    if (passesOfLoad.contains(0) && address.isFunctionOfDim(unitCoordinate) &&
        address.isFunctionOfDim(tripCoordinate) && bytes >= profile.streamedBytes)
      prefetched.push_back(key);
  }
}

/// Emits the prefetches for the next row at the trip that code is emitted for.
void RowEmitter::prefetchNextRow() {
  for (auto [buffer, address] : prefetched) {
    bool isShort = getRowBytes(buffer) <= tuning::rows::maxPrefetchedToL1;
    emitter.prefetch(buffer,
                     address.replace(emitter.dim(unitCoordinate), emitter.dim(nextRowCoordinate)),
                     isShort ? 1 : 2);
  }
}

/// Begins to copy the row of `nextRowCoordinate`.
void RowEmitter::copyRow() {
  SmallVector<Value> none;
  forEachUnit(none, [&](ArrayRef<AffineExpr>, ValueRange) -> SmallVector<Value> {
    copies->copy(nextRowCoordinate);
    return {};
  });
}

/// Loads a row that was copied, and begins to copy the next one, if there is one: now, or where the
/// row is read for the last time.
void RowEmitter::fetchRow(Value next, Value isThere) {
  copies->wait();
  if (copies->staysShared()) {
    emitter.setCoordinate(nextRowCoordinate, next);
    isNextThere = isThere;
    return;
  }
  SmallVector<Value> none;
  forEachUnit(none, [&](ArrayRef<AffineExpr>, ValueRange) -> SmallVector<Value> {
    copies->fetch();
    return {};
  });
  emitter.setCoordinate(nextRowCoordinate, next);
  emitter.guard(isThere, {}, [&]() -> SmallVector<Value> {
    copyRow();
    return {};
  });
  copies->closeGroup();
}

void RowEmitter::emitPass(unsigned pass) {
  emitter.setPass(pass);
  Block &body = emitter.kernel.getBody().front();
  SmallVector<linalg::GenericOp> reductions;
  SmallVector<SmallVector<Combiner>> combiners;
  SmallVector<linalg::GenericOp> columns;
  SmallVector<unsigned> stored;
  SmallVector<Value> carried;
  for (Operation &op : body.without_terminator()) {
    OpShape shape = getOpShape(&op);
    if ((shape != OpShape::Reduction && shape != OpShape::Column) || passOf.lookup(&op) != pass)
      continue;
    auto generic = cast<linalg::GenericOp>(op);
    if (shape == OpShape::Column) {
      columns.push_back(generic);
      continue;
    }
    reductions.push_back(generic);
    combiners.push_back(*getCombiners(generic));
    for (const Combiner &combiner : combiners.back()) {
      Value start =
          arith::ConstantOp::create(emitter.builder(), emitter.loc, getNeutral(combiner.combine));
      int64_t rowLanes = rowOfRest ? emitter.lanes : layout.rowLanes;
      bool wide = layout.columnLanes > 1 || rowLanes > 1;
      carried.push_back(wide ? emitter.broadcast(start) : start);
    }
  }
  for (auto [result, value] : llvm::enumerate(emitter.computed)) {
    Operation *op = value.getDefiningOp();
    if (getOpShape(op) == OpShape::Pointwise && emitter.domain.hasColumns(op) &&
        passOf.lookup(op) == pass)
      stored.push_back(result);
  }

  combinersOfPass.clear();
  for (const SmallVector<Combiner> &list : combiners)
    for (const Combiner &combiner : list)
      combinersOfPass.push_back(combiner.combine);
  SmallVector<Value> ofRests; // those of one rest behind those of another
  auto walk = [&](ArrayRef<AffineExpr> point, ValueRange running) {
    SmallVector<Value> next;
    for (auto [op, list] : llvm::zip_equal(reductions, combiners)) {
      SmallVector<AffineExpr> loops = emitter.getLoops(op, point);
      SmallVector<Value> values = emitter.evaluateReduced(op, list, loops);
      for (auto [combiner, value] : llvm::zip_equal(list, values)) {
        Value sum = running[next.size()];
        next.push_back(emitter.combine(combiner.combine, sum, value));
      }
    }
    for (linalg::GenericOp op : columns)
      addToColumns(op, point);
    emitResults(emitter, stored, point);
    if (pass == prefetchingPass && !currentRest)
      prefetchNextRow();
    if (copiesRows() && copies->staysShared() && copies->isLast(pass))
      emitter.guard(isNextThere, {}, [&]() -> SmallVector<Value> {
        copies->copy(nextRowCoordinate, pass);
        return {};
      });
    return next;
  };
  forEachUnit(carried, walk, &ofRests);
  for (Private &kept : privates)
    if (!kept.ofColumns && emitter.getKnown()->loads.find(kept.key)->second.contains(pass))
      emitter.cache.setFilled(kept.key, true);
  for (const auto &key : keptValues)
    if (emitter.getKnown()->values.find(key)->second.passes.contains(pass))
      emitter.computedCache.setFilled(key, true);

  // Halves of the sums are combined until there is one.
  while (carried.size() > combinersOfPass.size()) {
    size_t half = carried.size() / 2;
    for (size_t i = 0; i < half; ++i)
      carried[i] = emitter.combine(combinersOfPass[i % combinersOfPass.size()], carried[i],
                                   carried[half + i]);
    carried.resize(half);
  }

  team.reduce(combinersOfPass, carried, reducingPasses.size() + (copiesRows() ? 1 : 0));
  for (size_t rest = 0; rest < layout.rests.size(); ++rest)
    for (auto [number, combiner] : llvm::enumerate(combinersOfPass)) {
      auto place = emitter.codeFor(combiner->getParentOp());
      carried[number] = emitter.combine(combiner, carried[number],
                                        ofRests[rest * combinersOfPass.size() + number]);
    }
  // The accumulators' initial values come in once, at the end.
  ArrayRef<Value> left = carried;
  for (auto [op, list] : llvm::zip_equal(reductions, combiners)) {
    auto place = emitter.codeFor(op);
    SmallVector<Value> totals(left.take_front(list.size()));
    left = left.drop_front(list.size());
    SmallVector<AffineExpr> point = getRowPoint();
    point.resize(emitter.domain.getSizes().size(), emitter.constant(0));
    SmallVector<AffineExpr> loops = emitter.getLoops(op, point);
    for (auto [index, total] : llvm::enumerate(totals)) {
      OpOperand &init = op.getDpsInitsMutable()[index];
      if (getSplat(init.get()) != getNeutral(list[index].combine)) {
        Value start =
            emitter.evaluate(init.get(), emitter.apply(op.getMatchingIndexingMap(&init), loops));
        total = emitter.combine(list[index].combine, start, total);
      }
      emitter.setReduced(op->getResult(index), total);
    }
  }
  combinersOfPass.clear();
}

void RowEmitter::storeRowResults() {
  SmallVector<unsigned> stored;
  for (auto [result, value] : llvm::enumerate(emitter.computed)) {
    Operation *op = value.getDefiningOp();
    OpShape shape = getOpShape(op);
    if (shape == OpShape::Reduction ||
        (shape == OpShape::Pointwise && !emitter.domain.hasColumns(op)))
      stored.push_back(result);
  }
  if (stored.empty())
    return;
  auto store = [&]() -> SmallVector<Value> {
    SmallVector<AffineExpr> point = getRowPoint();
    point.resize(emitter.domain.getSizes().size(), emitter.constant(0));
    emitResults(emitter, stored, point);
    return {};
  };
  if (layout.teamSize == 1) {
    store();
    return;
  }
  Value isFirst = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::eq,
                                        team.getLane(), emitter.indexConstant(0));
  emitter.guard(isFirst, {}, store);
}

void RowEmitter::emitRowBody() {
  emitter.startPoint();
  for (Private &kept : privates)
    if (!kept.ofColumns)
      emitter.cache.setFilled(kept.key, false);
  if (copies)
    for (const RowCopies::Load &load : copies->getLoads())
      emitter.cache.setFilled({load.buffer, load.address}, true);
  for (const auto &key : keptValues)
    emitter.computedCache.setFilled(key, false);
  for (unsigned pass = 0; pass < passes; ++pass)
    emitPass(pass);
  storeRowResults();
}

/// Emits the rows of one team: those of its part, or some with other teams' rows
/// between them.
void RowEmitter::emitTeam(Value group, Value team) {
  Location loc = emitter.loc;
  bool inParts = !emitter.domain.getColumnOps().empty();
  auto affine = [&](Value number, int64_t factor, Value offset) -> Value {
    OpBuilder &b = emitter.builder();
    Value scaled = arith::MulIOp::create(b, loc, number, emitter.indexConstant(factor));
    return arith::AddIOp::create(b, loc, scaled, offset);
  };
  auto guard = [&](Value number, int64_t count, function_ref<void()> body) {
    Value inside = arith::CmpIOp::create(emitter.builder(), loc, arith::CmpIPredicate::ult, number,
                                         emitter.indexConstant(count));
    emitter.guard(inside, {}, [&]() -> SmallVector<Value> {
      body();
      return {};
    });
  };
  // Rows of a part are neighbours; others are as far apart as there are workgroups.
  const int64_t groups = llvm::divideCeil(layout.rows, layout.rowsPerTeam);
  auto copyFirst = [&](Value row) {
    copies->allocate();
    emitter.loop(1, {}, [&](Value, ValueRange) -> SmallVector<Value> {
      emitter.setCoordinate(nextRowCoordinate, row);
      copyRow();
      return {};
    });
    copies->closeGroup();
  };
  auto fetchNext = [&](Value turn, Value row) {
    OpBuilder &b = emitter.builder();
    auto add = [&](Value number, int64_t distance) -> Value {
      return arith::AddIOp::create(b, loc, number, emitter.indexConstant(distance));
    };
    Value next = add(row, inParts ? 1 : groups);
    Value isThere =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, inParts ? add(turn, 1) : next,
                              emitter.indexConstant(inParts ? layout.rowsPerTeam : layout.rows));
    fetchRow(next, isThere);
  };
  auto emitRows = [&](int64_t rowsAtOnce, function_ref<Value(Value turn)> getRow) {
    emitter.loop(layout.rowsPerTeam, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
      Value row = getRow(turn);
      auto body = [&] {
        emitter.setCoordinate(unitCoordinate, row);
        if (copiesRows())
          fetchNext(turn, row);
        if (!prefetched.empty()) {
          OpBuilder &b = emitter.builder();
          Value next = arith::AddIOp::create(b, emitter.loc, row, emitter.indexConstant(1));
          next =
              arith::MinUIOp::create(b, emitter.loc, next, emitter.indexConstant(layout.rows - 1));
          emitter.setCoordinate(nextRowCoordinate, next);
        }
        emitRowBody();
        if (copiesRows() && copies->staysShared())
          copies->closeGroup();
      };
      if (layout.rows % rowsAtOnce == 0)
        body();
      else
        guard(row, layout.rows, body);
      return {};
    });
  };
  if (copiesRows() && !inParts) {
    copyFirst(group);
    return emitRows(groups * layout.rowsPerTeam,
                    [&](Value turn) { return affine(turn, groups, group); });
  }
  if (!inParts) {
    emitRows(layout.teams * layout.rowsPerTeam, [&](Value turn) {
      return affine(affine(group, layout.rowsPerTeam, turn), layout.teams, team);
    });
    return;
  }
  Value part = affine(group, layout.teams, team);
  auto emitPart = [&] {
    emitter.setCoordinate(partCoordinate, part);
    startColumns();
    if (copiesRows())
      copyFirst(affine(part, layout.rowsPerTeam, emitter.indexConstant(0)));
    emitRows(layout.rowsPerTeam,
             [&](Value turn) { return affine(part, layout.rowsPerTeam, turn); });
    storeColumns();
  };
  if (emitter.domain.getParts() % layout.teams == 0)
    emitPart();
  else
    guard(part, emitter.domain.getParts(), emitPart);
}

/// Emits the rows behind the last unit of each last dimension, in workgroups from `first` on.
void RowEmitter::emitRowRests(Value group, int64_t first) {
  Location loc = emitter.loc;
  for (auto [number, rest] : llvm::enumerate(layout.rowRests)) {
    int64_t begin = first + int64_t(number) * layout.outerRows;
    auto compare = [&](arith::CmpIPredicate predicate, int64_t bound) -> Value {
      return arith::CmpIOp::create(emitter.builder(), loc, predicate, group,
                                   emitter.indexConstant(bound));
    };
    // Two conditions, since the distance from `begin` wraps around below it.
    emitter.guard(compare(arith::CmpIPredicate::uge, begin), {}, [&]() -> SmallVector<Value> {
      Value isBefore = compare(arith::CmpIPredicate::ult, begin + layout.outerRows);
      return emitter.guard(isBefore, {}, [&]() -> SmallVector<Value> {
        Value outer =
            arith::SubIOp::create(emitter.builder(), loc, group, emitter.indexConstant(begin));
        emitter.setCoordinate(unitCoordinate, outer);
        emitRest(emitter, rest, [&](AffineExpr row) {
          rowOfRest = row;
          emitRowBody();
        });
        return {};
      });
    });
  }
  rowOfRest = {};
  emitter.setLanes(layout.rowLanes);
}

void RowEmitter::run(EmittedKernel &launch) {
  emitter.setLanes(std::max(layout.rowLanes, layout.columnLanes));
  assignPasses();
  if (const Survey *known = emitter.getKnown()) {
    copies.emplace(emitter, *known, layout);
    if (!copies->getLoads().empty())
      layout.rowsPerTeam = copies->getRowsPerTeam();
  }
  int64_t teams = emitter.domain.getColumnOps().empty()
                      ? llvm::divideCeil(layout.rows, layout.rowsPerTeam)
                      : emitter.domain.getParts();
  int64_t groups = llvm::divideCeil(teams, layout.teams);
  if (layout.workgroup != profile.workgroupSize)
    emitter.setWorkgroup(layout.workgroup);
  int64_t ofRests = int64_t(layout.rowRests.size()) * layout.outerRows;
  emitWorkgroups(emitter, groups + ofRests, launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Location loc = emitter.loc;
    Value number = team.number();
    makeCaches();
    choosePrefetched();
    fillColumnCaches();
    if (ofRests == 0)
      return emitTeam(group, number);
    Value isUnit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, group,
                                         emitter.indexConstant(groups));
    emitter.guard(isUnit, {}, [&]() -> SmallVector<Value> {
      emitTeam(group, number);
      return {};
    });
    emitRowRests(group, groups);
  });
  if (!emitter.getKnown()) {
    const RowCopies chosen(emitter, emitter.getSurvey(), layout);
    for (const RowCopies::Load &load : chosen.getLoads())
      emitter.keepElements(load.buffer);
  }
}

void weir::emitRow(PointEmitter &emitter, EmittedKernel &launch) {
  if (!emitScatter(emitter, launch) && !emitSelectedRows(emitter, launch))
    RowEmitter(emitter).run(launch);
}
