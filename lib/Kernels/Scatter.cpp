//===- Scatter.cpp - Each update once, to the row that it names -----------===//
//
// A scatter is a reduction of select(name == row, update, neutral) over all updates, for each row.
// One processor need not compare: an invocation owns elements at the same places of all rows, and
// takes the updates in their order, each to the row that it names. So an element has one writer,
// which combines in the order of the reduction, and an element that no update names keeps its
// bytes.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"
#include "Tuning.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

namespace {
class ScatterEmitter {
public:
  explicit ScatterEmitter(PointEmitter &emitter) : emitter(emitter), domain(emitter.domain) {}

  bool find();
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const KernelDomain &domain;
  linalg::GenericOp reduction;
  Scatter scatter;
  Operation *combine = nullptr;
  // Dimensions of the domain's rows, outermost first.
  SmallVector<unsigned> outer; ///< an invocation owns one place in them
  SmallVector<unsigned> inner; ///< updates at each place in them name a row of their own
  unsigned rowDim = 0;         ///< that names number
  bool hasColumns = false;     ///< whether updates at all places in the last dimension name one row
  int64_t columns = 1;         ///< the size of that dimension
  int64_t lanes = 1;           ///< of a vector of columns
  int64_t blocks = 1;          ///< invocations that share the columns
  int64_t parts = 1;           ///< invocations that share the inner places
  SmallVector<Rest> rests;     ///< columns behind the last vector

  void layOut();
  SmallVector<AffineExpr> getPoint(AffineExpr outerPlace, AffineExpr innerPlace, AffineExpr row,
                                   AffineExpr column) const;
  SmallVector<int64_t> getSizes(ArrayRef<unsigned> dims) const {
    return llvm::map_to_vector(dims, [&](unsigned dim) { return domain.getRowSizes()[dim]; });
  }
  Value evaluate(Value value, ArrayRef<AffineExpr> point, AffineExpr update);
  void combineAt(ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to, AffineExpr update);
  void takeUpdate(AffineExpr outerPlace, AffineExpr innerPlace, Value block, AffineExpr update);
};
} // namespace

/// Finds the scatter. Returns whether the kernel is one.
bool ScatterEmitter::find() {
  reduction = emitter.computed.front().getDefiningOp<linalg::GenericOp>();
  std::optional<Scatter> found = reduction ? getScatter(reduction) : std::nullopt;
  if (!found)
    return false;
  scatter = *found;
  combine = getCombiners(reduction)->front().combine;
  rowDim = domain.getDims(reduction)[scatter.rowLoop];
  layOut();
  return true;
}

LogicalResult weir::checkScatter(schedule::KernelOp kernel, linalg::GenericOp op,
                                 const Profile &profile) {
  auto init = dyn_cast<BlockArgument>(op.getDpsInits().front());
  std::optional<Scatter> scatter = getScatter(op);
  if (scatter && getOpShape(op) == OpShape::Reduction &&
      op.getStaticLoopRanges()[scatter->rowLoop] > 1 && init && init.hasOneUse() &&
      op->hasOneUse() && kernel.getNumResults() == 1 && profile.hasFreeVectors())
    return success();
  return op.emitError() << "is marked " << schedule::scatterAttrName
                        << ", and is no reduction of the updates that name a row of an operand, "
                           "alone in a kernel for a processor; remove the mark";
}

/// Chooses who owns which elements of a row.
void ScatterEmitter::layOut() {
  AffineMap names = getAccessMap(reduction, &reduction->getOpOperand(scatter.name.getArgNumber()));
  llvm::SmallDenseSet<int64_t> named; // dimensions that names vary with
  for (auto [loop, dim] : llvm::enumerate(domain.getDims(reduction)))
    if (names.isFunctionOfDim(loop))
      named.insert(dim);
  unsigned last = domain.getNumRows() - 1;
  hasColumns = rowDim != last && !named.contains(last);
  for (unsigned dim = 0; dim < domain.getNumRows(); ++dim)
    if (dim != rowDim && !(hasColumns && dim == last))
      (dim < rowDim ? outer : inner).push_back(dim);
  constexpr int64_t maxParts = tuning::scatters::maxParts;
  int64_t places = getProduct(getSizes(inner));
  for (parts = std::clamp<int64_t>(places / tuning::scatters::minElements, 1, maxParts);
       places % parts != 0;)
    --parts;
  if (!hasColumns)
    return;
  columns = domain.getRowSizes().back();
  lanes = getLanesBeforeRest(emitter.profile, columns);
  rests = getRests(columns, lanes);
  int64_t units = columns / lanes;
  for (blocks = std::clamp<int64_t>(units / tuning::scatters::minVectors, 1, maxParts);
       units % blocks != 0;)
    --blocks;
}

/// Returns a point of the domain's rows.
SmallVector<AffineExpr> ScatterEmitter::getPoint(AffineExpr outerPlace, AffineExpr innerPlace,
                                                 AffineExpr row, AffineExpr column) const {
  SmallVector<AffineExpr> point(domain.getNumRows(), column);
  point[rowDim] = row;
  auto put = [&](ArrayRef<unsigned> dims, AffineExpr place) {
    for (auto [dim, index] : llvm::zip_equal(dims, emitter.delinearize(place, getSizes(dims))))
      point[dim] = index;
  };
  put(outer, outerPlace);
  put(inner, innerPlace);
  return point;
}

/// Returns a value of the body for an update.
Value ScatterEmitter::evaluate(Value value, ArrayRef<AffineExpr> point, AffineExpr update) {
  SmallVector<AffineExpr> whole(point);
  llvm::append_range(whole, emitter.delinearize(update, domain.getColumnSizes()));
  return emitter.evaluateInBody(reduction, value, emitter.getLoops(reduction, whole));
}

/// Combines the elements of an update, at `from`, with those of the row that it names, at `to`.
void ScatterEmitter::combineAt(ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to,
                               AffineExpr update) {
  SmallVector<AffineExpr> whole(to);
  whole.resize(domain.getSizes().size(), emitter.constant(0));
  SmallVector<AffineExpr> at =
      emitter.apply(reduction.getIndexingMapsArray().back(), emitter.getLoops(reduction, whole));
  Value value = evaluate(scatter.update, from, update);
  Value before = emitter.loadStored(0, at);
  emitter.match(before, value);
  emitter.store(0, emitter.combine(combine, before, value), at);
}

/// Takes an update to the row that it names, if there is such a row.
void ScatterEmitter::takeUpdate(AffineExpr outerPlace, AffineExpr innerPlace, Value block,
                                AffineExpr update) {
  AffineExpr zero = emitter.constant(0);
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Value name = evaluate(scatter.name, getPoint(outerPlace, innerPlace, zero, zero), update);
  Value rows = arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(name.getType(), domain.getRowSizes()[rowDim]));
  Value isRow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, name, rows);
  emitter.guard(isRow, {}, [&]() -> SmallVector<Value> {
    OpBuilder &inside = emitter.builder();
    Value number = arith::IndexCastOp::create(inside, loc, inside.getIndexType(), name);
    AffineExpr row = emitter.setCoordinate(tileRowCoordinate, number);
    auto combineColumn = [&](AffineExpr column) {
      combineAt(getPoint(outerPlace, innerPlace, zero, column),
                getPoint(outerPlace, innerPlace, row, column), update);
    };
    if (!hasColumns) {
      combineColumn(zero);
      return {};
    }
    int64_t ofBlock = columns / lanes / blocks;
    AffineExpr first = emitter.setCoordinate(packedCoordinate, block) * ofBlock;
    emitter.loop(ofBlock, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
      AffineExpr vector = first + emitter.setCoordinate(tileColumnCoordinate, turn);
      combineColumn(lanes > 1 ? vector * lanes + emitter.vectorLane() : vector);
      return {};
    });
    if (rests.empty())
      return {};
    Value last = emitter.indexConstant(blocks - 1);
    Value isLast =
        arith::CmpIOp::create(emitter.builder(), loc, arith::CmpIPredicate::eq, block, last);
    emitter.guard(isLast, {}, [&]() -> SmallVector<Value> {
      for (const Rest &rest : rests)
        emitRest(emitter, rest, combineColumn);
      return {};
    });
    emitter.setLanes(lanes);
    return {};
  });
}

void ScatterEmitter::run(EmittedKernel &launch) {
  auto location = emitter.codeFor(reduction);
  emitter.setLanes(lanes);
  int64_t places = getProduct(getSizes(outer)), turns = getProduct(getSizes(inner)) / parts;
  emitUnits(emitter, places * parts * blocks, launch, [&](Value unit) {
    OpBuilder &b = emitter.builder();
    auto divide = [&](Value number, int64_t by) {
      Value count = emitter.indexConstant(by);
      Value whole = arith::DivUIOp::create(b, emitter.loc, number, count);
      Value rest = arith::RemUIOp::create(b, emitter.loc, number, count);
      return std::pair(whole, rest);
    };
    auto [rest, block] = divide(unit, blocks);
    auto [place, part] = divide(rest, parts);
    AffineExpr outerPlace = emitter.setCoordinate(unitCoordinate, place);
    AffineExpr first = emitter.setCoordinate(partCoordinate, part) * turns;
    emitter.loop(getProduct(domain.getColumnSizes()), {},
                 [&](Value number, ValueRange) -> SmallVector<Value> {
                   AffineExpr update = emitter.setCoordinate(tripCoordinate, number);
                   emitter.loop(turns, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
                     AffineExpr at = first + emitter.setCoordinate(teamLaneCoordinate, turn);
                     takeUpdate(outerPlace, at, block, update);
                     return {};
                   });
                   return {};
                 });
  });
}

bool weir::emitScatter(PointEmitter &emitter, EmittedKernel &launch) {
  ScatterEmitter scatter(emitter);
  if (!scatter.find())
    return false;
  scatter.run(launch);
  return true;
}
