//===- Column.cpp - Kernels that reduce columns in parts ------------------===//
//
// An invocation owns one part of a column, or of some neighbouring ones, and
// walks the rows of the part once, in order: the order in which a row kernel's
// team walks them, so that the bits are the same.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

void weir::emitColumn(PointEmitter &emitter, EmittedKernel &launch) {
  const Profile &profile = emitter.profile;
  const KernelDomain &domain = emitter.domain;
  ArrayRef<int64_t> columnSizes = domain.getColumnSizes();
  int64_t lanes = getLanes(profile, columnSizes, getMaxVectors(domain));
  emitter.setLanes(lanes);
  int64_t columns = getProduct(columnSizes) / lanes;
  int64_t rows = getProduct(domain.getRowSizes()), chunk = domain.getChunk();
  int64_t units = domain.getParts() * columns;
  Location loc = emitter.loc;

  SmallVector<unsigned> parts, points; // numbers of results
  for (auto [index, value] : llvm::enumerate(emitter.computed))
    (getOpShape(value.getDefiningOp()) == OpShape::Column ? parts : points).push_back(index);

  SmallVector<SmallVector<Combiner>> combiners;
  for (linalg::GenericOp op : domain.getColumnOps())
    combiners.push_back(*getCombiners(op));

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
    for (const SmallVector<Combiner> &list : combiners)
      for (const Combiner &combiner : list) {
        Value neutral =
            arith::ConstantOp::create(emitter.builder(), loc, getNeutral(combiner.combine));
        start.push_back(lanes > 1 ? emitter.broadcast(neutral) : neutral);
      }
    SmallVector<Value> totals = emitter.loop(chunk, start, [&](Value turn, ValueRange running) {
      OpBuilder &b = emitter.builder();
      Value first = arith::MulIOp::create(b, loc, part, emitter.indexConstant(chunk));
      Value row = arith::AddIOp::create(b, loc, first, turn);
      auto body = [&] {
        AffineExpr number = emitter.setCoordinate(tripCoordinate, row);
        SmallVector<AffineExpr> point =
            getColumnPoint(emitter.delinearize(number, domain.getRowSizes()));
        SmallVector<Value> next;
        for (auto [op, list] : llvm::zip_equal(domain.getColumnOps(), combiners)) {
          SmallVector<Value> values =
              emitter.evaluateReduced(op, list, emitter.getLoops(op, point));
          for (auto [combiner, value] : llvm::zip_equal(list, values))
            next.push_back(emitter.combine(combiner.combine, running[next.size()], value));
        }
        emitResults(emitter, points, point);
        return next;
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
