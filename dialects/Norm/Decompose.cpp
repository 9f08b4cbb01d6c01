//===- Decompose.cpp - Norm ops as linalg ---------------------------------===//
//
// Kernels are formed by iteration structure, so every op here loops over all
// dimensions of x (full) or over those that stay (rows), and nothing else.
//
//===----------------------------------------------------------------------===//

#include "dialects/Norm/Decompose.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weir::norm;

namespace {
/// Where an operand lies in the iteration space of x.
enum class Extent { Full, Rows, Columns };

struct Input {
  Value tensor;
  Extent extent;
};

/// Builds scalar computation from the inputs' elements.
using Body = llvm::function_ref<Value(OpBuilder &, ArrayRef<Value>)>;

/// Builds ops over a tensor of which some dimensions are reduced.
class RowBuilder {
public:
  RowBuilder(OpBuilder &builder, Location loc, RankedTensorType x, int64_t firstReduced,
             int64_t numReduced)
      : builder(builder), loc(loc), shape(x.getShape()), first(firstReduced), count(numReduced) {
    Type element = x.getElementType();
    type = element.isF64() ? element : Type(builder.getF32Type());
  }

  /// The type that statistics have.
  Type getType() const { return type; }

  /// The number of elements of a row.
  Value getCount() {
    double elements = 1;
    for (int64_t size : shape.slice(first, count))
      elements *= double(size);
    return constant(elements);
  }

  Value constant(double value) {
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
  }

  /// Element-wise over all of x.
  Value full(ArrayRef<Input> inputs, Type element, Body body) {
    return map(inputs, Extent::Full, element, body);
  }

  /// Element-wise over the rows.
  Value rows(ArrayRef<Input> inputs, Type element, Body body) {
    return map(inputs, Extent::Rows, element, body);
  }

  /// Adds up, or takes the largest of, the body's values in each row.
  Value sum(ArrayRef<Input> inputs, Body body) { return reduce<arith::AddFOp>(inputs, 0.0, body); }
  Value max(ArrayRef<Input> inputs, Body body) {
    return reduce<arith::MaximumFOp>(inputs, -std::numeric_limits<double>::infinity(), body);
  }

private:
  OpBuilder &builder;
  Location loc;
  ArrayRef<int64_t> shape;
  int64_t first, count;
  Type type;

  bool isReduced(int64_t dim) const { return dim >= first && dim < first + count; }
  bool isIn(int64_t dim, Extent extent) const {
    return extent == Extent::Full || isReduced(dim) == (extent == Extent::Columns);
  }
  SmallVector<int64_t> getShape(Extent extent) const {
    SmallVector<int64_t> sizes;
    for (auto [dim, size] : llvm::enumerate(shape))
      if (isIn(dim, extent))
        sizes.push_back(size);
    return sizes;
  }
  /// The map of an operand in a loop nest over `loops`.
  AffineMap getMap(Extent operand, Extent loops) const {
    SmallVector<AffineExpr> results;
    unsigned loop = 0;
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim) {
      if (!isIn(dim, loops))
        continue;
      if (isIn(dim, operand))
        results.push_back(builder.getAffineDimExpr(loop));
      ++loop;
    }
    return AffineMap::get(loop, 0, results, builder.getContext());
  }
  Value map(ArrayRef<Input> inputs, Extent loops, Type element, Body body) {
    Value empty = tensor::EmptyOp::create(builder, loc, getShape(loops), element);
    return generic(inputs, loops, empty, loops,
                   [&](OpBuilder &b, ArrayRef<Value> values, Value) { return body(b, values); });
  }
  template <typename Combine> Value reduce(ArrayRef<Input> inputs, double start, Body body) {
    Value empty = tensor::EmptyOp::create(builder, loc, getShape(Extent::Rows), type);
    Value fill = linalg::FillOp::create(builder, loc, constant(start), empty).getResult(0);
    return generic(inputs, Extent::Full, fill, Extent::Rows,
                   [&](OpBuilder &b, ArrayRef<Value> values, Value acc) -> Value {
                     return Combine::create(b, loc, acc, body(b, values));
                   });
  }
  Value generic(ArrayRef<Input> inputs, Extent loops, Value out, Extent outExtent,
                llvm::function_ref<Value(OpBuilder &, ArrayRef<Value>, Value)> body) {
    SmallVector<Value> tensors;
    SmallVector<AffineMap> maps;
    for (Input input : inputs) {
      tensors.push_back(input.tensor);
      maps.push_back(getMap(input.extent, loops));
    }
    maps.push_back(getMap(outExtent, loops));
    SmallVector<utils::IteratorType> iterators;
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
      if (isIn(dim, loops))
        iterators.push_back(isIn(dim, outExtent) ? utils::IteratorType::parallel
                                                 : utils::IteratorType::reduction);
    return linalg::GenericOp::create(builder, loc, out.getType(), tensors, out, maps, iterators,
                                     [&](OpBuilder &b, Location, ValueRange arguments) {
                                       SmallVector<Value> values(arguments.drop_back());
                                       linalg::YieldOp::create(b, loc,
                                                               body(b, values, arguments.back()));
                                     })
        .getResult(0);
  }
};
} // namespace

static Value widen(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return arith::ExtFOp::create(b, loc, type, value);
}

static Value narrow(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return arith::TruncFOp::create(b, loc, type, value);
}

/// `rsqrt(sum / N + eps)` by row.
static Value getRstd(RowBuilder &rows, Location loc, Value sum, double eps) {
  Value count = rows.getCount(), epsilon = rows.constant(eps);
  return rows.rows({{sum, Extent::Rows}}, rows.getType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value mean = arith::DivFOp::create(b, loc, in[0], count);
                     Value shifted = arith::AddFOp::create(b, loc, mean, epsilon);
                     return math::RsqrtOp::create(b, loc, shifted);
                   });
}

static Value decomposeLayerNorm(OpBuilder &builder, LayerNormOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  int64_t axes = op.getAxes();
  RowBuilder rows(builder, loc, type, type.getRank() - axes, axes);
  Input x = {op.getX(), Extent::Full};
  Value sum = rows.sum({x}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  Value count = rows.getCount();
  Input mean = {rows.rows({{sum, Extent::Rows}}, rows.getType(),
                          [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                            return arith::DivFOp::create(b, loc, in[0], count);
                          }),
                Extent::Rows};
  Value squares = rows.sum({x, mean}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value centered = arith::SubFOp::create(b, loc, in[0], in[1]);
    return arith::MulFOp::create(b, loc, centered, centered);
  });
  Value rstd = getRstd(rows, loc, squares, op.getEps().convertToDouble());

  SmallVector<Input> inputs = {x, mean, {rstd, Extent::Rows}};
  for (Value weight : {op.getGamma(), op.getBeta()})
    if (weight)
      inputs.push_back({weight, Extent::Columns});
  return rows.full(inputs, type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value y = arith::SubFOp::create(b, loc, in[0], in[1]);
    y = arith::MulFOp::create(b, loc, y, in[2]);
    if (op.getGamma())
      y = arith::MulFOp::create(b, loc, y, in[3]);
    if (op.getBeta())
      y = arith::AddFOp::create(b, loc, y, in.back());
    return y;
  });
}

static Value decomposeRmsNorm(OpBuilder &builder, RmsNormOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  Type element = type.getElementType();
  int64_t axes = op.getAxes();
  RowBuilder rows(builder, loc, type, type.getRank() - axes, axes);
  Input x = {op.getX(), Extent::Full};
  Value squares = rows.sum({x}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value wide = widen(b, loc, in[0], rows.getType());
    return arith::MulFOp::create(b, loc, wide, wide);
  });
  Value rstd = getRstd(rows, loc, squares, op.getEps().convertToDouble());

  SmallVector<Input> inputs = {x, {rstd, Extent::Rows}};
  if (op.getGamma())
    inputs.push_back({op.getGamma(), Extent::Columns});
  return rows.full(inputs, element, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value y = arith::MulFOp::create(b, loc, widen(b, loc, in[0], rows.getType()), in[1]);
    if (op.getCastBeforeScale())
      y = narrow(b, loc, y, element);
    if (op.getGamma())
      y = arith::MulFOp::create(b, loc, y, widen(b, loc, in[2], y.getType()));
    return narrow(b, loc, y, element);
  });
}

/// The largest element of each row, and the sum of `exp(x - largest)`.
static std::pair<Value, Value> getMaxAndSumOfExp(RowBuilder &rows, Location loc, Value x) {
  Value max = rows.max({{x, Extent::Full}}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  Value sum = rows.sum({{x, Extent::Full}, {max, Extent::Rows}},
                       [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                         Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
                         return math::ExpOp::create(b, loc, shifted);
                       });
  return {max, sum};
}

static Value decomposeLogSoftmax(OpBuilder &builder, LogSoftmaxOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  auto [max, sum] = getMaxAndSumOfExp(rows, loc, op.getX());
  Value logSum = rows.rows({{sum, Extent::Rows}}, rows.getType(),
                           [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                             return math::LogOp::create(b, loc, in[0]);
                           });
  return rows.full({{op.getX(), Extent::Full}, {max, Extent::Rows}, {logSum, Extent::Rows}},
                   type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
                     return arith::SubFOp::create(b, loc, shifted, in[2]);
                   });
}

/// The losses of all rows, 0 where the target is ignored, NaN where it is no class.
static Value getLosses(OpBuilder &builder, SoftmaxCrossEntropyOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLogits().getType());
  auto integer = cast<RankedTensorType>(op.getTargets().getType()).getElementType();
  int64_t classDim = type.getRank() - 1;
  RowBuilder rows(builder, loc, type, classDim, 1);
  auto [max, sum] = getMaxAndSumOfExp(rows, loc, op.getLogits());
  Input targets = {op.getTargets(), Extent::Rows};
  Value zero = rows.constant(0.0);
  // A sum over the classes keeps the pick inside the row kernel; all terms but one are 0.
  Value picked = rows.sum(
      {{op.getLogits(), Extent::Full}, targets}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
        Value index = linalg::IndexOp::create(b, loc, classDim);
        Value number = arith::IndexCastOp::create(b, loc, integer, index);
        Value isTarget = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, in[1]);
        return arith::SelectOp::create(b, loc, isTarget, in[0], zero);
      });

  Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
  auto makeInteger = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(integer, value));
  };
  Value ignored = makeInteger(op.getIgnoreIndex());
  Value first = makeInteger(0), end = makeInteger(type.getDimSize(classDim));
  return rows.rows(
      {{max, Extent::Rows}, {sum, Extent::Rows}, {picked, Extent::Rows}, targets},
      type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
        Value logSum = math::LogOp::create(b, loc, in[1]);
        // max is taken from the target's logit, not added to the logarithm, which it would drown.
        Value shifted = arith::SubFOp::create(b, loc, in[2], in[0]);
        Value loss = arith::SubFOp::create(b, loc, logSum, shifted);
        Value notBelow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, in[3], first);
        Value notAbove = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, in[3], end);
        Value valid = arith::AndIOp::create(b, loc, notBelow, notAbove);
        loss = arith::SelectOp::create(b, loc, valid, loss, nan);
        Value skip = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, in[3], ignored);
        return arith::SelectOp::create(b, loc, skip, zero, loss);
      });
}

static Value decomposeCrossEntropy(OpBuilder &builder, SoftmaxCrossEntropyOp op) {
  Value losses = getLosses(builder, op);
  if (op.getReduction() == Reduction::none)
    return losses;

  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(losses.getType());
  Type element = type.getElementType();
  RowBuilder all(builder, loc, type, 0, type.getRank());
  if (op.getReduction() == Reduction::sum)
    return all.sum({{losses, Extent::Full}}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });

  // The sum and the number of targets that count, in one pass; integers count exactly.
  auto integer = cast<RankedTensorType>(op.getTargets().getType()).getElementType();
  unsigned countWidth = llvm::isInt<32>(type.getNumElements()) ? 32 : 64;
  Type countType = builder.getIntegerType(countWidth);
  auto makeConstant = [&](TypedAttr value) -> Value {
    return arith::ConstantOp::create(builder, loc, value);
  };
  auto makeFilled = [&](TypedAttr value) -> Value {
    Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(), value.getType());
    return linalg::FillOp::create(builder, loc, makeConstant(value), empty).getResult(0);
  };
  Value sumStart = makeFilled(builder.getFloatAttr(element, 0.0));
  Value countStart = makeFilled(builder.getIntegerAttr(countType, 0));
  Value ignored = makeConstant(builder.getIntegerAttr(integer, int64_t(op.getIgnoreIndex())));
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap toScalar = AffineMap::get(type.getRank(), 0, builder.getContext());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::reduction);
  auto totals = linalg::GenericOp::create(
      builder, loc, TypeRange{sumStart.getType(), countStart.getType()},
      ValueRange{losses, op.getTargets()}, ValueRange{sumStart, countStart},
      ArrayRef<AffineMap>{identity, identity, toScalar, toScalar}, iterators,
      [&](OpBuilder &b, Location, ValueRange in) {
        Value kept = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, in[1], ignored);
        Value counts = arith::ExtUIOp::create(b, loc, countType, kept);
        Value sum = arith::AddFOp::create(b, loc, in[2], in[0]);
        Value count = arith::AddIOp::create(b, loc, in[3], counts);
        linalg::YieldOp::create(b, loc, ValueRange{sum, count});
      });
  return all.rows({{totals.getResult(0), Extent::Rows}, {totals.getResult(1), Extent::Rows}},
                  element, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                    Value count = arith::SIToFPOp::create(b, loc, element, in[1]);
                    return arith::DivFOp::create(b, loc, in[0], count);
                  });
}

Value weir::norm::decompose(OpBuilder &builder, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](LayerNormOp op) { return decomposeLayerNorm(builder, op); })
      .Case([&](RmsNormOp op) { return decomposeRmsNorm(builder, op); })
      .Case([&](LogSoftmaxOp op) { return decomposeLogSoftmax(builder, op); })
      .Case([&](SoftmaxCrossEntropyOp op) { return decomposeCrossEntropy(builder, op); })
      .Default(Value());
}

void weir::norm::decomposeAll(Operation *root) {
  OpBuilder builder(root->getContext());
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (isa<NormDialect>(op->getDialect()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    op->replaceAllUsesWith(ValueRange(decompose(builder, op)));
    op->erase();
  }
}
