//===- SelectedRows.cpp - Sums of the rows that a condition selects -------===//
//
// The gradient of a gather adds to each row of a table the cotangents of those who read it: a
// reduction of select(reader's index == row, cotangent, 0). The condition is the same for all
// elements of the row. So an invocation owns a row of results, asks the condition once for each
// term, and walks the row for those that it selects.
//
// The bits are those of a row kernel, which adds the terms in the same order, and a neutral element
// for each term that is not selected.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weir;

namespace {
class SelectedRows {
public:
  explicit SelectedRows(PointEmitter &emitter) : emitter(emitter), domain(emitter.domain) {}

  bool find();
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const KernelDomain &domain;
  linalg::GenericOp reduction;
  Combiner combiner;
  arith::SelectOp term;
  int64_t lanes = 1, units = 0; ///< of a row of results
  SmallVector<Rest> rests;      ///< elements behind the last unit

  /// Memory of the sums of a row: of its units, and of each rest.
  struct Sums {
    Value ofUnits;
    SmallVector<Value> ofRests;
  };

  void forEachUnit(const Sums &sums,
                   function_ref<void(AffineExpr inRow, Value memory, Value at)> body);
  SmallVector<AffineExpr> getRowPoint(AffineExpr inRow);
  void addTerm(const Sums &sums);
  void storeRow(const Sums &sums);
};
} // namespace

/// Finds the one reduction of the kernel and the condition of its terms. Returns whether the kernel
/// is of this kind.
bool SelectedRows::find() {
  ArrayRef<int64_t> rows = domain.getRowSizes();
  if (!emitter.profile.hasFreeVectors() || !domain.isAcross() || !domain.getColumnOps().empty() ||
      rows.size() < 2)
    return false;
  for (Operation &op : emitter.kernel.getBody().front().without_terminator())
    if (getOpShape(&op) == OpShape::Reduction) {
      if (reduction)
        return false;
      reduction = cast<linalg::GenericOp>(op);
    }
  if (!reduction || reduction->getNumResults() != 1)
    return false;
  if (llvm::any_of(emitter.computed, [&](Value value) {
        return value.getDefiningOp() != reduction && domain.hasColumns(value.getDefiningOp());
      }))
    return false;
  term = getSelection(reduction);
  if (!term)
    return false;
  combiner = getCombiners(reduction)->front();
  lanes = getLanesBeforeRest(emitter.profile, rows.back());
  units = rows.back() / lanes;
  rests = getRests(rows.back(), lanes);
  Type element = emitter.getElementType(reduction.getResult(0));
  return isKeepable(element) &&
         rows.back() * (element.getIntOrFloatBitWidth() / 8) <= emitter.profile.privateRowBytes;
}

/// Calls `body` for all elements of a row, with the last index of the domain's rows and the place
/// of the sums.
void SelectedRows::forEachUnit(const Sums &sums,
                               function_ref<void(AffineExpr inRow, Value memory, Value at)> body) {
  auto getIndex = [&](AffineExpr first) {
    return emitter.lanes > 1 ? first + emitter.vectorLane() : first;
  };
  emitter.setLanes(lanes);
  emitter.loop(units, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
    AffineExpr unit = emitter.setCoordinate(tileColumnCoordinate, turn);
    body(getIndex(unit * lanes), sums.ofUnits, turn);
    return {};
  });
  for (auto [rest, memory] : llvm::zip_equal(rests, sums.ofRests)) {
    emitter.setLanes(rest.lanes);
    emitter.loop(1, {}, [&](Value first, ValueRange) -> SmallVector<Value> {
      body(getIndex(emitter.constant(rest.begin)), memory, first);
      return {};
    });
  }
  emitter.setLanes(lanes);
}

/// Returns the point of the domain's rows with this last index, in the row that `unitCoordinate`
/// numbers.
SmallVector<AffineExpr> SelectedRows::getRowPoint(AffineExpr inRow) {
  SmallVector<AffineExpr> point =
      emitter.delinearize(emitter.dim(unitCoordinate), domain.getRowSizes().drop_back());
  point.push_back(inRow);
  return point;
}

/// Adds the term that `tripCoordinate` numbers to the row, if it is selected.
void SelectedRows::addTerm(const Sums &sums) {
  SmallVector<AffineExpr> columns =
      emitter.delinearize(emitter.dim(tripCoordinate), domain.getColumnSizes());
  auto evaluate = [&](Value value, AffineExpr inRow) {
    SmallVector<AffineExpr> point = getRowPoint(inRow);
    llvm::append_range(point, columns);
    return emitter.evaluateInBody(reduction, value, emitter.getLoops(reduction, point));
  };
  auto place = emitter.codeFor(reduction);
  Value selected = evaluate(term.getCondition(), emitter.constant(0));
  emitter.guard(selected, {}, [&]() -> SmallVector<Value> {
    forEachUnit(sums, [&](AffineExpr inRow, Value memory, Value at) {
      Value value = evaluate(term.getTrueValue(), inRow);
      Value sum = memref::LoadOp::create(emitter.builder(), emitter.loc, memory, at);
      sum = emitter.combine(combiner.combine, sum, value);
      memref::StoreOp::create(emitter.builder(), emitter.loc, sum, memory, at);
    });
    return {};
  });
}

/// Stores the results of a row whose terms have all been added.
void SelectedRows::storeRow(const Sums &sums) {
  auto results = llvm::to_vector(llvm::seq<unsigned>(0, emitter.computed.size()));
  forEachUnit(sums, [&](AffineExpr inRow, Value memory, Value at) {
    emitter.startPoint();
    auto place = emitter.codeFor(reduction);
    Value total = memref::LoadOp::create(emitter.builder(), emitter.loc, memory, at);
    SmallVector<AffineExpr> point = getRowPoint(inRow);
    point.resize(domain.getSizes().size(), emitter.constant(0));
    OpOperand &init = reduction.getDpsInitsMutable()[0];
    if (getSplat(init.get()) != getNeutral(combiner.combine)) {
      SmallVector<AffineExpr> loops = emitter.getLoops(reduction, point);
      Value start = emitter.evaluate(init.get(),
                                     emitter.apply(reduction.getMatchingIndexingMap(&init), loops));
      total = emitter.combine(combiner.combine, start, total);
    }
    emitter.setReduced(reduction.getResult(0), total);
    emitResults(emitter, results, point);
  });
}

void SelectedRows::run(EmittedKernel &launch) {
  int64_t rows = getProduct(domain.getRowSizes().drop_back());
  emitUnits(emitter, rows, launch, [&](Value row) {
    Type element = emitter.getElementType(reduction.getResult(0));
    Sums sums = {allocatePrivate(emitter, element, lanes, units), {}};
    for (const Rest &rest : rests)
      sums.ofRests.push_back(allocatePrivate(emitter, element, rest.lanes, 1));
    emitter.setCoordinate(unitCoordinate, row);
    forEachUnit(sums, [&](AffineExpr, Value memory, Value at) {
      OpBuilder &b = emitter.builder();
      Value start = arith::ConstantOp::create(b, emitter.loc, getNeutral(combiner.combine));
      if (emitter.lanes > 1)
        start = emitter.broadcast(start);
      memref::StoreOp::create(b, emitter.loc, start, memory, at);
    });
    emitter.loop(getProduct(domain.getColumnSizes()), {},
                 [&](Value number, ValueRange) -> SmallVector<Value> {
                   emitter.setCoordinate(tripCoordinate, number);
                   addTerm(sums);
                   return {};
                 });
    storeRow(sums);
  });
}

bool weir::emitSelectedRows(PointEmitter &emitter, EmittedKernel &launch) {
  SelectedRows rows(emitter);
  if (!rows.find())
    return false;
  rows.run(launch);
  return true;
}
