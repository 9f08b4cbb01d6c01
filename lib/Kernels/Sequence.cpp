//===- Sequence.cpp - Kernels of reductions by any body -------------------===//
//
// A body that does not combine its accumulator with a value, such as one that finds
// the index of a maximum, fixes the order of its steps: an invocation owns a point of
// the results and walks the reduced loops in order.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

void weir::emitSequence(PointEmitter &emitter, EmittedKernel &launch) {
  const KernelDomain &domain = emitter.domain;
  int64_t units = getProduct(domain.getRowSizes());
  Block &block = emitter.kernel.getBody().front();
  linalg::GenericOp op;
  for (auto generic : block.getOps<linalg::GenericOp>())
    if (getOpShape(generic) == OpShape::Sequence)
      op = generic;

  auto getLoops = [&](AffineExpr unit, ArrayRef<AffineExpr> columns) {
    SmallVector<AffineExpr> point = emitter.delinearize(unit, domain.getRowSizes());
    llvm::append_range(point, columns);
    return emitter.getLoops(op, point);
  };
  auto emitUnit = [&](Value number) {
    AffineExpr unit = emitter.setCoordinate(unitCoordinate, number);
    SmallVector<AffineExpr> first(domain.getColumnSizes().size(), emitter.constant(0));
    SmallVector<AffineExpr> start = getLoops(unit, first);
    auto place = emitter.codeFor(op);
    SmallVector<Value> accumulators;
    for (OpOperand &init : op.getDpsInitsMutable())
      accumulators.push_back(
          emitter.evaluate(init.get(), emitter.apply(op.getMatchingIndexingMap(&init), start)));
    SmallVector<Value> results = emitter.loop(
        getProduct(domain.getColumnSizes()), accumulators, [&](Value trip, ValueRange carried) {
          AffineExpr step = emitter.setCoordinate(tripCoordinate, trip);
          SmallVector<AffineExpr> loops =
              getLoops(unit, emitter.delinearize(step, domain.getColumnSizes()));
          return emitter.evaluateStep(op, loops, SmallVector<Value>(carried));
        });
    for (auto [index, value] : llvm::enumerate(emitter.computed)) {
      auto result = cast<OpResult>(value);
      AffineMap written = op.getIndexingMapMatchingResult(result);
      emitter.store(index, results[result.getResultNumber()], emitter.apply(written, start));
    }
  };
  emitUnits(emitter, units, launch, emitUnit);
}
