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
  int64_t units = 0; ///< vectors, or elements, of a row of results

  void forEachUnit(function_ref<void(Value turn)> body);
  SmallVector<AffineExpr> getRowPoint(AffineExpr inRow);
  void addTerm(Value memory);
  void storeRow(Value memory);
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
  emitter.setLanes(getLanes(emitter.profile, rows));
  units = rows.back() / emitter.lanes;
  Type element = emitter.getElementType(reduction.getResult(0));
  return element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 16 &&
         rows.back() * (element.getIntOrFloatBitWidth() / 8) <= emitter.profile.privateRowBytes;
}

void SelectedRows::forEachUnit(function_ref<void(Value turn)> body) {
  emitter.loop(units, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
    emitter.setCoordinate(tileColumnCoordinate, turn);
    body(turn);
    return {};
  });
}

/// Returns the point of the domain's rows that `unitCoordinate` and `inRow` number.
SmallVector<AffineExpr> SelectedRows::getRowPoint(AffineExpr inRow) {
  SmallVector<AffineExpr> point =
      emitter.delinearize(emitter.dim(unitCoordinate), domain.getRowSizes().drop_back());
  llvm::append_range(point,
                     getPoint(emitter, inRow, domain.getRowSizes().take_back(), emitter.lanes));
  return point;
}

/// Adds the term that `tripCoordinate` numbers to the row, if it is selected.
void SelectedRows::addTerm(Value memory) {
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
    forEachUnit([&](Value turn) {
      Value value = evaluate(term.getTrueValue(), emitter.dim(tileColumnCoordinate));
      Value sum = memref::LoadOp::create(emitter.builder(), emitter.loc, memory, turn);
      sum = emitter.combine(combiner.combine, sum, value);
      memref::StoreOp::create(emitter.builder(), emitter.loc, sum, memory, turn);
    });
    return {};
  });
}

/// Stores the results of a row whose terms have all been added.
void SelectedRows::storeRow(Value memory) {
  auto results = llvm::to_vector(llvm::seq<unsigned>(0, emitter.computed.size()));
  forEachUnit([&](Value turn) {
    emitter.startPoint();
    auto place = emitter.codeFor(reduction);
    Value total = memref::LoadOp::create(emitter.builder(), emitter.loc, memory, turn);
    SmallVector<AffineExpr> point = getRowPoint(emitter.dim(tileColumnCoordinate));
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
  Type element = emitter.getElementType(reduction.getResult(0));
  Type kept = emitter.lanes > 1 ? Type(VectorType::get({emitter.lanes}, element)) : element;
  auto space = gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Private);
  int64_t rows = getProduct(domain.getRowSizes().drop_back());
  emitUnits(emitter, rows, launch, [&](Value row) {
    OpBuilder &b = emitter.builder();
    Value memory = memref::AllocaOp::create(
        b, emitter.loc, MemRefType::get({units}, kept, MemRefLayoutAttrInterface{}, space));
    Value start = arith::ConstantOp::create(b, emitter.loc, getNeutral(combiner.combine));
    if (emitter.lanes > 1)
      start = emitter.broadcast(start);
    emitter.setCoordinate(unitCoordinate, row);
    forEachUnit([&](Value turn) {
      memref::StoreOp::create(emitter.builder(), emitter.loc, start, memory, turn);
    });
    emitter.loop(getProduct(domain.getColumnSizes()), {},
                 [&](Value number, ValueRange) -> SmallVector<Value> {
                   emitter.setCoordinate(tripCoordinate, number);
                   addTerm(memory);
                   return {};
                 });
    storeRow(memory);
  });
}

bool weir::emitSelectedRows(PointEmitter &emitter, EmittedKernel &launch) {
  SelectedRows rows(emitter);
  if (!rows.find())
    return false;
  rows.run(launch);
  return true;
}
