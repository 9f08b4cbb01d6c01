//===- Row.cpp - Kernels that reduce rows ---------------------------------===//
//
// A team of invocations (one, a subgroup, or a workgroup) owns a row and walks
// it once per pass: a pass for each reduction that needs the result of another,
// and one for what is stored. What several passes read is kept in the
// invocation's own memory, as is what all rows read alike.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weir;

namespace {
class RowEmitter {
public:
  RowEmitter(PointEmitter &emitter) : emitter(emitter), profile(emitter.profile) {}
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const Profile &profile;

  // How rows are given to invocations.
  int64_t rows = 0, units = 0; // a unit is an element of the row, or four
  bool vector = false;
  int64_t teamSize = 1, teams = 1, rowsPerTeam = 1;
  int64_t fullTrips = 0, restUnits = 0;
  Value teamLane, subgroup, subgroupLane;

  // Passes over the row.
  DenseMap<Operation *, unsigned> passOf; // reductions and stored ops
  unsigned passes = 0;

  void chooseMapping();
  void assignPasses();
  void makeCaches();
  void fillColumnCaches();
  void emitRowBody();
  void emitPass(unsigned pass);
  SmallVector<AffineExpr> getRowPoint();
  void forEachUnit(SmallVector<Value> &carried,
                   function_ref<SmallVector<Value>(ArrayRef<AffineExpr>, ValueRange)> body);
  Value reduceTeam(Operation *combiner, Value partial);
  void storeRowResults();

  struct Private {
    std::pair<unsigned, AffineExpr> key;
    bool ofColumns = false;
  };
  SmallVector<Private> privates;
};
} // namespace

void RowEmitter::chooseMapping() {
  ArrayRef<int64_t> columns = emitter.domain.getColumnSizes();
  rows = getProduct(emitter.domain.getRowSizes());
  vector = isVectorDomain(profile, columns);
  int64_t length = getProduct(columns);
  units = length / (vector ? 4 : 1);

  // A row shorter than a subgroup's vectors would leave invocations idle.
  RowMapping mapping = profile.rowMapping;
  if (length < 4 * profile.subgroupSize)
    mapping = RowMapping::Lane;
  int64_t workgroup = profile.workgroupSize;
  teamSize = mapping == RowMapping::Lane       ? 1
             : mapping == RowMapping::Subgroup ? profile.subgroupSize
                                               : workgroup;
  teams = workgroup / teamSize;
  fullTrips = units / teamSize;
  restUnits = units % teamSize;
  // Rows in turn share what is loaded for the columns; keep enough workgroups.
  rowsPerTeam = std::clamp<int64_t>(rows / (teams * 256), 1, 8);
}

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
      reductionPasses = std::max(reductionPasses, ++need);
    }
    needs[&op] = need;
  }
  passes = reductionPasses;
  for (Value value : body.getTerminator()->getOperands()) {
    Operation *op = value.getDefiningOp();
    if (getOpShape(op) == OpShape::Reduction || !emitter.domain.hasColumns(op))
      continue;
    passOf[op] = needs.lookup(op);
    passes = std::max(passes, needs.lookup(op) + 1);
  }
}

SmallVector<AffineExpr> RowEmitter::getRowPoint() {
  return emitter.delinearize(emitter.dim(unitCoordinate), emitter.domain.getRowSizes());
}

/// Calls `body` at every unit of the row that this invocation walks.
void RowEmitter::forEachUnit(
    SmallVector<Value> &carried,
    function_ref<SmallVector<Value>(ArrayRef<AffineExpr>, ValueRange)> body) {
  auto at = [&](ValueRange values) {
    AffineExpr unit = emitter.dim(tripCoordinate) * teamSize;
    if (teamSize > 1)
      unit = unit + emitter.dim(teamLaneCoordinate);
    SmallVector<AffineExpr> point = getRowPoint();
    llvm::append_range(point, getPoint(emitter, unit, emitter.domain.getColumnSizes(), vector));
    return body(point, values);
  };
  carried = emitter.loop(fullTrips, carried, [&](Value trip, ValueRange values) {
    emitter.setCoordinate(tripCoordinate, trip);
    emitter.trip = trip;
    return at(values);
  });
  if (restUnits == 0)
    return;
  Value inside = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult,
                                       teamLane, emitter.indexConstant(restUnits));
  carried = emitter.guard(inside, carried, [&] {
    Value trip = emitter.indexConstant(fullTrips);
    emitter.setCoordinate(tripCoordinate, trip);
    emitter.trip = trip;
    return at(carried);
  });
}

/// Combines the partial results of a row's invocations; all get the result.
Value RowEmitter::reduceTeam(Operation *combiner, Value partial) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  if (emitter.isVector(partial)) {
    Value low = emitter.combine(combiner, emitter.extract(partial, 0), emitter.extract(partial, 1));
    Value high =
        emitter.combine(combiner, emitter.extract(partial, 2), emitter.extract(partial, 3));
    partial = emitter.combine(combiner, low, high);
  }
  if (teamSize == 1)
    return partial;

  Type type = partial.getType();
  auto widen = [&](Value value) { // shuffles and memory take no single bits
    return type.isInteger(1) ? arith::ExtUIOp::create(b, loc, b.getI32Type(), value) : value;
  };
  auto narrow = [&](Value value) {
    return type.isInteger(1) ? arith::TruncIOp::create(b, loc, type, value) : value;
  };
  for (int64_t distance = 1; distance < profile.subgroupSize; distance *= 2) {
    auto other = gpu::ShuffleOp::create(b, loc, widen(partial), distance, profile.subgroupSize,
                                        gpu::ShuffleMode::XOR);
    // The lower lane's value first, so that every lane adds in the same order.
    Value bit = arith::ConstantIndexOp::create(b, loc, distance);
    Value isHigh = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                         arith::AndIOp::create(b, loc, subgroupLane, bit),
                                         emitter.indexConstant(0));
    Value received = narrow(other.getShuffleResult());
    Value low = arith::SelectOp::create(b, loc, isHigh, received, partial);
    Value high = arith::SelectOp::create(b, loc, isHigh, partial, received);
    partial = emitter.combine(combiner, low, high);
  }
  if (teamSize == profile.subgroupSize)
    return partial;

  int64_t subgroups = teamSize / profile.subgroupSize;
  Type stored = type.isInteger(1) ? b.getI32Type() : type;
  auto shared =
      MemRefType::get({subgroups}, stored, MemRefLayoutAttrInterface{},
                      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup));
  Value memory;
  for (BlockArgument argument : emitter.function.getWorkgroupAttributions())
    if (argument.getType() == shared)
      memory = argument;
  if (!memory)
    memory = emitter.function.addWorkgroupAttribution(shared, loc);
  // Someone may still read what the reduction before left here.
  gpu::BarrierOp::create(b, loc);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, subgroupLane,
                                        emitter.indexConstant(0));
  emitter.guard(isFirst, {}, [&]() -> SmallVector<Value> {
    memref::StoreOp::create(emitter.builder(), loc, widen(partial), memory, subgroup);
    return {};
  });
  OpBuilder &after = emitter.builder();
  gpu::BarrierOp::create(after, loc);
  Value total = narrow(memref::LoadOp::create(after, loc, memory, emitter.indexConstant(0)));
  for (int64_t i = 1; i < subgroups; ++i)
    total = emitter.combine(
        combiner, total,
        narrow(memref::LoadOp::create(after, loc, memory, emitter.indexConstant(i))));
  return total;
}

/// Chooses what the invocation keeps: first what several passes read, then what
/// several rows read, as far as its memory goes.
void RowEmitter::makeCaches() {
  if (!emitter.known)
    return;
  int64_t budget = profile.privateRowBytes;
  int64_t trips = fullTrips + (restUnits ? 1 : 0);
  for (bool ofColumns : {false, true})
    for (auto &[key, passesOfLoad] : emitter.known->loads) {
      AffineExpr address = key.second;
      bool walks =
          address.isFunctionOfDim(tripCoordinate) || address.isFunctionOfDim(teamLaneCoordinate);
      bool perRow = address.isFunctionOfDim(unitCoordinate);
      bool saves = ofColumns ? rowsPerTeam > 1 : passesOfLoad.size() > 1;
      if (!walks || perRow == ofColumns || !saves)
        continue;
      Type element = getElementTypeOrSelf(emitter.getBufferType(key.first).getElementType());
      if (element.isInteger(8))
        continue;
      bool wide = address.isFunctionOfDim(PointEmitter::laneOfVector);
      int64_t bytes = trips * (wide ? 4 : 1) * (element.getIntOrFloatBitWidth() / 8);
      if (bytes == 0 || bytes > budget)
        continue;
      budget -= bytes;
      Type kept = wide ? Type(VectorType::get({4}, element)) : element;
      auto space = gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Private);
      auto type = MemRefType::get({trips}, kept, MemRefLayoutAttrInterface{}, space);
      emitter.caches[key].memory = memref::AllocaOp::create(emitter.builder(), emitter.loc, type);
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
      emitter.caches[kept.key].filled = true;
}

void RowEmitter::emitPass(unsigned pass) {
  emitter.pass = pass;
  Block &body = emitter.kernel.getBody().front();
  SmallVector<linalg::GenericOp> reductions;
  SmallVector<SmallVector<Combiner>> combiners;
  SmallVector<unsigned> stored;
  SmallVector<Value> carried;
  for (Operation &op : body.without_terminator()) {
    if (getOpShape(&op) != OpShape::Reduction || passOf.lookup(&op) != pass)
      continue;
    auto generic = cast<linalg::GenericOp>(op);
    reductions.push_back(generic);
    combiners.push_back(*getCombiners(generic));
    for (const Combiner &combiner : combiners.back()) {
      Value start =
          arith::ConstantOp::create(emitter.builder(), emitter.loc, getNeutral(combiner.combine));
      carried.push_back(vector ? emitter.broadcast(start) : start);
    }
  }
  for (auto [result, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    Operation *op = value.getDefiningOp();
    if (getOpShape(op) == OpShape::Pointwise && emitter.domain.hasColumns(op) &&
        passOf.lookup(op) == pass)
      stored.push_back(result);
  }

  forEachUnit(carried, [&](ArrayRef<AffineExpr> point, ValueRange running) {
    SmallVector<Value> next;
    for (auto [op, list] : llvm::zip_equal(reductions, combiners)) {
      SmallVector<AffineExpr> loops = emitter.getLoops(op, point);
      SmallVector<Value> values = emitter.evaluateReduced(op, list, loops);
      for (auto [combiner, value] : llvm::zip_equal(list, values)) {
        Value sum = running[next.size()];
        next.push_back(emitter.combine(combiner.combine, sum, value));
      }
    }
    for (unsigned result : stored)
      emitResult(emitter, result, point);
    return next;
  });
  for (Private &kept : privates)
    if (!kept.ofColumns && emitter.known->loads.find(kept.key)->second.contains(pass))
      emitter.caches[kept.key].filled = true;

  // The accumulators' initial values come in once, at the end.
  unsigned next = 0;
  for (auto [op, list] : llvm::zip_equal(reductions, combiners)) {
    SmallVector<Value> totals;
    for (const Combiner &combiner : list)
      totals.push_back(reduceTeam(combiner.combine, carried[next++]));
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
      emitter.reduced[op->getResult(index)] = total;
    }
  }
}

void RowEmitter::storeRowResults() {
  SmallVector<unsigned> stored;
  for (auto [result, value] :
       llvm::enumerate(emitter.kernel.getBody().front().getTerminator()->getOperands())) {
    Operation *op = value.getDefiningOp();
    if (getOpShape(op) == OpShape::Reduction || !emitter.domain.hasColumns(op))
      stored.push_back(result);
  }
  if (stored.empty())
    return;
  auto store = [&]() -> SmallVector<Value> {
    SmallVector<AffineExpr> point = getRowPoint();
    point.resize(emitter.domain.getSizes().size(), emitter.constant(0));
    for (unsigned result : stored)
      emitResult(emitter, result, point);
    return {};
  };
  if (teamSize == 1) {
    store();
    return;
  }
  Value isFirst = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::eq,
                                        teamLane, emitter.indexConstant(0));
  emitter.guard(isFirst, {}, store);
}

void RowEmitter::emitRowBody() {
  emitter.reduced.clear();
  emitter.reducedDepth = emitter.depth();
  for (Private &kept : privates)
    if (!kept.ofColumns)
      emitter.caches[kept.key].filled = false;
  for (unsigned pass = 0; pass < passes; ++pass)
    emitPass(pass);
  storeRowResults();
}

void RowEmitter::run(EmittedKernel &launch) {
  chooseMapping();
  assignPasses();
  int64_t rowsPerGroup = teams * rowsPerTeam;
  emitWorkgroups(emitter, llvm::divideCeil(rows, rowsPerGroup), launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Location loc = emitter.loc;
    Value team = emitter.indexConstant(0);
    if (teamSize == 1) {
      team = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
      teamLane = emitter.indexConstant(0);
    } else {
      subgroupLane = gpu::LaneIdOp::create(b, loc, nullptr);
      subgroup = gpu::SubgroupIdOp::create(b, loc, nullptr);
      teamLane = subgroupLane;
      if (teamSize > profile.subgroupSize)
        teamLane = arith::AddIOp::create(
            b, loc,
            arith::MulIOp::create(b, loc, subgroup, emitter.indexConstant(profile.subgroupSize)),
            subgroupLane);
      else if (teams > 1)
        team = subgroup;
    }
    emitter.setCoordinate(teamLaneCoordinate, teamLane);
    makeCaches();
    fillColumnCaches();
    emitter.loop(rowsPerTeam, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
      OpBuilder &b = emitter.builder();
      auto affine = [&](Value number, int64_t factor, Value offset) -> Value {
        Value scaled = arith::MulIOp::create(b, loc, number, emitter.indexConstant(factor));
        return arith::AddIOp::create(b, loc, scaled, offset);
      };
      Value row = affine(affine(group, rowsPerTeam, turn), teams, team);
      auto body = [&]() -> SmallVector<Value> {
        emitter.setCoordinate(unitCoordinate, row);
        emitRowBody();
        return {};
      };
      if (rows % rowsPerGroup == 0)
        return body();
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, row,
                                           emitter.indexConstant(rows));
      return emitter.guard(inside, {}, body);
    });
  });
}

void weir::emitRow(PointEmitter &emitter, EmittedKernel &launch) {
  RowEmitter(emitter).run(launch);
}
