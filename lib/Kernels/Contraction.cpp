//===- Contraction.cpp - Kernels that sum products ------------------------===//
//
// An invocation owns a tile: some rows times one column, or four neighbouring
// ones, of the result. It walks the summed dimensions once, in order, so that
// the bits don't depend on the tile. What the sums feed (bias, activation) is
// computed from them in registers.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

namespace {
class ContractionEmitter {
public:
  ContractionEmitter(PointEmitter &emitter)
      : emitter(emitter), profile(emitter.profile), op(emitter.domain.getContraction()) {}
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const Profile &profile;
  linalg::GenericOp op;

  // The domain's dimensions of the tile, and the factors that vary with them.
  int64_t columnDim = -1, rowDim = -1;
  OpOperand *rowFactor = nullptr, *columnFactor = nullptr;
  int64_t tileRows = 1;
  bool vectorColumns = false, vectorProducts = false;

  void chooseTile();
  bool variesWith(OpOperand *operand, int64_t dim);
  SmallVector<AffineExpr> getFactorIndices(OpOperand *operand, ArrayRef<AffineExpr> point);
  SmallVector<Value> loadRowFactors(ArrayRef<AffineExpr> point, unsigned products);
  SmallVector<Value> loadColumnFactors(ArrayRef<AffineExpr> point, unsigned products);
  SmallVector<AffineExpr> getTilePoint(int64_t row, ArrayRef<AffineExpr> rest);
};
} // namespace

bool ContractionEmitter::variesWith(OpOperand *operand, int64_t dim) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  for (auto [loop, ofDomain] : llvm::enumerate(emitter.domain.getDims(op)))
    if (ofDomain == dim && map.isFunctionOfDim(loop))
      return true;
  return false;
}

/// The columns are the result's last dimension that only one factor has; the
/// rows the last one that only the other has.
void ContractionEmitter::chooseTile() {
  OpOperand *lhs = op.getDpsInputOperand(0), *rhs = op.getDpsInputOperand(1);
  SmallVector<int64_t> order; // of the result, outermost first
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (AffineExpr result : written.getResults())
    if (auto loop = dyn_cast<AffineDimExpr>(result))
      if (int64_t dim = emitter.domain.getDims(op)[loop.getPosition()]; dim >= 0)
        order.push_back(dim);
  for (int64_t dim : llvm::reverse(order)) {
    bool left = variesWith(lhs, dim), right = variesWith(rhs, dim);
    if (left == right)
      continue;
    if (!columnFactor) {
      columnDim = dim;
      columnFactor = left ? lhs : rhs;
      rowFactor = left ? rhs : lhs;
    } else if (rowDim < 0 && variesWith(rowFactor, dim)) {
      rowDim = dim;
    }
  }
  ArrayRef<int64_t> sizes = emitter.domain.getSizes();
  tileRows = std::clamp<int64_t>(sizes[rowDim], 1, profile.contractionRows);
  vectorColumns = profile.vectorWidth == 4 && sizes[columnDim] % 4 == 0;
  ArrayRef<int64_t> products = emitter.domain.getColumnSizes();
  vectorProducts = isVectorDomain(profile, products);
}

SmallVector<AffineExpr> ContractionEmitter::getFactorIndices(OpOperand *operand,
                                                             ArrayRef<AffineExpr> point) {
  return emitter.apply(op.getMatchingIndexingMap(operand), emitter.getLoops(op, point));
}

/// The row factor at `point` for each of `products` neighbouring products, as
/// scalars. The point's last product coordinate counts groups of `products`.
SmallVector<Value> ContractionEmitter::loadRowFactors(ArrayRef<AffineExpr> point,
                                                      unsigned products) {
  SmallVector<AffineExpr> at(point);
  if (products == 1)
    return {emitter.evaluate(rowFactor->get(), getFactorIndices(rowFactor, at))};
  AffineExpr first = at.back();
  at.back() = first + emitter.vectorLane();
  SmallVector<AffineExpr> wide = getFactorIndices(rowFactor, at);
  SmallVector<Value> factors;
  if (emitter.isVectorFriendly(rowFactor->get(), wide)) {
    Value vector = emitter.broadcast(emitter.evaluate(rowFactor->get(), wide));
    for (unsigned i = 0; i < products; ++i)
      factors.push_back(emitter.extract(vector, i));
    return factors;
  }
  for (unsigned i = 0; i < products; ++i) {
    at.back() = first + i;
    factors.push_back(emitter.evaluate(rowFactor->get(), getFactorIndices(rowFactor, at)));
  }
  return factors;
}

/// The column factor at `point` for each of `products` neighbouring products:
/// scalars, or vectors over the tile's columns.
SmallVector<Value> ContractionEmitter::loadColumnFactors(ArrayRef<AffineExpr> point,
                                                         unsigned products) {
  SmallVector<AffineExpr> at(point);
  AffineExpr firstProduct = at.back(), firstColumn = at[columnDim];
  if (!vectorColumns) {
    // The same as a row factor, of the column's only element.
    std::swap(rowFactor, columnFactor);
    SmallVector<Value> factors = loadRowFactors(point, products);
    std::swap(rowFactor, columnFactor);
    return factors;
  }
  auto overColumns = [&](unsigned product) {
    at.back() = firstProduct + product; // the column itself where there is but one product
    at[columnDim] = firstColumn + emitter.vectorLane();
    return getFactorIndices(columnFactor, at);
  };
  SmallVector<Value> factors;
  if (products > 1 && !emitter.isVectorFriendly(columnFactor->get(), overColumns(0))) {
    at[columnDim] = firstColumn;
    at.back() = firstProduct + emitter.vectorLane();
    if (emitter.isVectorFriendly(columnFactor->get(), getFactorIndices(columnFactor, at))) {
      // Stored with neighbouring products side by side: load those, transpose.
      SmallVector<Value> columns;
      for (unsigned column = 0; column < 4; ++column) {
        at[columnDim] = firstColumn + column;
        columns.push_back(emitter.broadcast(
            emitter.evaluate(columnFactor->get(), getFactorIndices(columnFactor, at))));
      }
      for (unsigned product = 0; product < products; ++product) {
        SmallVector<Value> lanes;
        for (Value column : columns)
          lanes.push_back(emitter.extract(column, product));
        factors.push_back(vector::FromElementsOp::create(emitter.builder(), emitter.loc,
                                                         columns.front().getType(), lanes));
      }
      return factors;
    }
  }
  for (unsigned product = 0; product < products; ++product)
    factors.push_back(
        emitter.broadcast(emitter.evaluate(columnFactor->get(), overColumns(product))));
  return factors;
}

void ContractionEmitter::run(EmittedKernel &launch) {
  chooseTile();
  ArrayRef<int64_t> sizes = emitter.domain.getSizes();
  unsigned numRows = emitter.domain.getNumRows();
  int64_t columnUnits = sizes[columnDim] / (vectorColumns ? 4 : 1);
  int64_t rowTiles = llvm::divideCeil(sizes[rowDim], tileRows);
  SmallVector<int64_t> restSizes; // the result's other dimensions
  for (unsigned dim = 0; dim < numRows; ++dim)
    if (dim != columnDim && dim != rowDim)
      restSizes.push_back(sizes[dim]);
  int64_t tiles = getProduct(restSizes) * rowTiles * columnUnits;
  int64_t summed = getProduct(emitter.domain.getColumnSizes());
  Type element = emitter.getElementType(op->getResult(0));
  Value sum = op->getResult(0);

  emitWorkgroups(emitter, llvm::divideCeil(tiles, profile.workgroupSize), launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Location loc = emitter.loc;
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value first =
        arith::MulIOp::create(b, loc, group, emitter.indexConstant(profile.workgroupSize));
    Value tile = arith::AddIOp::create(b, loc, first, thread);
    auto body = [&]() -> SmallVector<Value> {
      AffineExpr number = emitter.setCoordinate(unitCoordinate, tile);
      SmallVector<AffineExpr> digits =
          emitter.delinearize(number, {getProduct(restSizes), rowTiles, columnUnits});
      // Named once, so that the loops below see plain coordinates.
      auto name = [&](unsigned coordinate, AffineExpr value) {
        return emitter.setCoordinate(coordinate, emitter.expand(value));
      };
      AffineExpr column = name(tileColumnCoordinate, digits[2]) * (vectorColumns ? 4 : 1);
      AffineExpr rowTile = name(tileRowCoordinate, digits[1]);
      AffineExpr restNumber = name(tileRestCoordinate, digits[0]);
      SmallVector<AffineExpr> rest = emitter.delinearize(restNumber, restSizes);

      bool partial = sizes[rowDim] % tileRows != 0;
      SmallVector<AffineExpr> rowOf;
      for (int64_t i = 0; i < tileRows; ++i) {
        AffineExpr row = rowTile * tileRows + i;
        if (partial && i > 0) {
          // The last tile repeats its last row instead of reading past the end.
          Value clamped = arith::MinUIOp::create(emitter.builder(), loc, emitter.expand(row),
                                                 emitter.indexConstant(sizes[rowDim] - 1));
          row = emitter.setCoordinate(productCoordinate + i, clamped);
        }
        rowOf.push_back(row);
      }
      auto pointOf = [&](int64_t i, AffineExpr columnIndex, ArrayRef<AffineExpr> products) {
        SmallVector<AffineExpr> point;
        unsigned nextRest = 0;
        for (unsigned dim = 0; dim < numRows; ++dim)
          point.push_back(dim == columnDim ? columnIndex
                          : dim == rowDim  ? rowOf[i]
                                           : rest[nextRest++]);
        llvm::append_range(point, products);
        return point;
      };

      unsigned products = vectorProducts ? 4 : 1;
      Value zero =
          arith::ConstantOp::create(emitter.builder(), loc, emitter.builder().getZeroAttr(element));
      if (vectorColumns)
        zero = emitter.broadcast(zero);
      SmallVector<Value> sums = emitter.loop(
          summed / products, SmallVector<Value>(tileRows, zero),
          [&](Value trip, ValueRange running) {
            AffineExpr unit = emitter.setCoordinate(productCoordinate, trip);
            SmallVector<int64_t> productSizes(emitter.domain.getColumnSizes());
            if (!productSizes.empty())
              productSizes.back() /= products;
            SmallVector<AffineExpr> at = emitter.delinearize(unit, productSizes);
            if (!at.empty())
              at.back() = at.back() * products;
            SmallVector<Value> next(running);
            SmallVector<Value> columnFactors = loadColumnFactors(pointOf(0, column, at), products);
            for (int64_t i = 0; i < tileRows; ++i) {
              SmallVector<Value> rowFactors = loadRowFactors(pointOf(i, column, at), products);
              for (unsigned product = 0; product < products; ++product) {
                Value factor = rowFactors[product];
                if (vectorColumns)
                  factor = emitter.broadcast(factor);
                next[i] = math::FmaOp::create(emitter.builder(), loc, factor,
                                              columnFactors[product], next[i]);
              }
            }
            return next;
          });

      SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(),
                                         emitter.constant(0));
      AffineExpr resultColumn = vectorColumns ? column + emitter.vectorLane() : column;
      for (int64_t i = 0; i < tileRows; ++i) {
        auto finish = [&]() -> SmallVector<Value> {
          emitter.reducedDepth = emitter.depth();
          SmallVector<AffineExpr> point = pointOf(i, resultColumn, noProducts);
          Value total = sums[i];
          OpOperand &init = op.getDpsInitsMutable()[0];
          auto splat = dyn_cast_or_null<FloatAttr>(getSplat(init.get()));
          if (!splat || !splat.getValue().isZero())
            total = emitter.combine((*getCombiners(op)).front().combine,
                                    emitter.evaluate(init.get(), getFactorIndices(&init, point)),
                                    total);
          emitter.reduced[sum] = total;
          emitResults(emitter, llvm::to_vector(llvm::seq<unsigned>(emitter.kernel.getNumResults())),
                      point);
          return {};
        };
        emitter.reduced.clear();
        if (!partial || i == 0) {
          emitter.loop(1, {}, [&](Value, ValueRange) { return finish(); });
          continue;
        }
        Value row = emitter.expand(rowTile * tileRows + i);
        Value inside = arith::CmpIOp::create(emitter.builder(), loc, arith::CmpIPredicate::ult, row,
                                             emitter.indexConstant(sizes[rowDim]));
        emitter.guard(inside, {}, [&] {
          // Inside the result the row is its own number, which shows in the stores
          // that no two invocations write the same; outside nothing may be read.
          rowOf[i] = emitter.setCoordinate(productCoordinate + i, row);
          return finish();
        });
      }
      return {};
    };
    if (tiles % profile.workgroupSize == 0) {
      body();
      return;
    }
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, tile,
                                         emitter.indexConstant(tiles));
    emitter.guard(inside, {}, body);
  });
}

void weir::emitContraction(PointEmitter &emitter, EmittedKernel &launch) {
  ContractionEmitter(emitter).run(launch);
}
