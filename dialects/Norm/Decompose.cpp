//===- Decompose.cpp - Norm ops as linalg ---------------------------------===//
//
// Kernels are formed by iteration structure, so every op here loops over all
// dimensions of x (full), over those that stay (rows) or over those that are
// normalised (columns), and nothing else. Bodies compute again what is cheap, so
// nothing of the size of x lies between two of them.
//
//===----------------------------------------------------------------------===//

#include "dialects/Norm/Decompose.h"

#include "dialects/Autodiff/Number.h"
#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numbers>

using namespace mlir;
using namespace weir::norm;
using weir::autodiff::Number;

namespace {
/// Where an operand lies in the iteration space of x.
enum class Extent { Full, Rows, Columns, None };

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
      : builder(builder), loc(loc), shape(x.getShape()), reduced(x.getRank()) {
    reduced.set(firstReduced, firstReduced + numReduced);
    element = x.getElementType();
    type = element.isF64() ? element : Type(builder.getF32Type());
  }

  /// All dimensions but one are reduced.
  static RowBuilder ofChannels(OpBuilder &builder, Location loc, RankedTensorType x, int64_t axis) {
    RowBuilder rows(builder, loc, x, 0, x.getRank());
    rows.reduced.reset(axis);
    return rows;
  }

  /// The type that statistics have.
  Type getType() const { return type; }

  /// The number of elements of a row.
  Value getCount() {
    double elements = 1;
    for (unsigned dim : reduced.set_bits())
      elements *= double(shape[dim]);
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
  Value sum(ArrayRef<Input> inputs, Body body) {
    return reduce<arith::AddFOp>(inputs, Extent::Rows, 0.0, body);
  }
  Value max(ArrayRef<Input> inputs, Body body) {
    return reduce<arith::MaximumFOp>(inputs, Extent::Rows, -std::numeric_limits<double>::infinity(),
                                     body);
  }

  /// Adds up the body's values over the rows; rounds the sums to x's type.
  Value sumOfRows(ArrayRef<Input> inputs, Body body);

  /// The rows' sums, divided by the number of elements of a row.
  Input mean(Value sums);

private:
  OpBuilder &builder;
  Location loc;
  ArrayRef<int64_t> shape;
  llvm::SmallBitVector reduced;
  Type element, type;

  bool isIn(int64_t dim, Extent extent) const {
    if (extent == Extent::Full || extent == Extent::None)
      return extent == Extent::Full;
    return reduced.test(dim) == (extent == Extent::Columns);
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
  template <typename Combine>
  Value reduce(ArrayRef<Input> inputs, Extent out, double start, Body body) {
    Value empty = tensor::EmptyOp::create(builder, loc, getShape(out), type);
    Value fill = linalg::FillOp::create(builder, loc, constant(start), empty).getResult(0);
    return generic(inputs, Extent::Full, fill, out,
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

Input RowBuilder::mean(Value sums) {
  Value count = getCount();
  Value means = rows({{sums, Extent::Rows}}, type, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    return arith::DivFOp::create(b, loc, in[0], count);
  });
  return {means, Extent::Rows};
}

Value RowBuilder::sumOfRows(ArrayRef<Input> inputs, Body body) {
  Value sums = reduce<arith::AddFOp>(inputs, Extent::Columns, 0.0, body);
  if (type == element)
    return sums;
  return map({{sums, Extent::Columns}}, Extent::Columns, element,
             [&](OpBuilder &b, ArrayRef<Value> in) { return narrow(b, loc, in[0], element); });
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

/// The sum of `(x - mean)^2` of each row of x.
static Value getSquares(RowBuilder &rows, Location loc, Input x, Input mean) {
  return rows.sum({x, mean}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value centered = arith::SubFOp::create(b, loc, in[0], in[1]);
    return arith::MulFOp::create(b, loc, centered, centered);
  });
}

static Input getMean(RowBuilder &rows, Input x) {
  return rows.mean(rows.sum({x}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; }));
}

/// The mean and `rsqrt(variance + eps)` of each row of x, in two passes.
static std::pair<Input, Input> getMeanAndRstd(RowBuilder &rows, Location loc, Input x, double eps) {
  Input mean = getMean(rows, x);
  return {mean, {getRstd(rows, loc, getSquares(rows, loc, x, mean), eps), Extent::Rows}};
}

/// `(x - mean) * rstd * gamma + beta`, of the weights that `op` has.
template <typename Op>
static Value normalise(RowBuilder &rows, Op op, Input mean, Input rstd, Extent weights) {
  Location loc = op.getLoc();
  SmallVector<Input> inputs = {{op.getX(), Extent::Full}, mean, rstd};
  for (Value weight : {op.getGamma(), op.getBeta()})
    if (weight)
      inputs.push_back({weight, weights});
  Type element = getElementTypeOrSelf(op.getX());
  return rows.full(inputs, element, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value y = arith::SubFOp::create(b, loc, in[0], in[1]);
    y = arith::MulFOp::create(b, loc, y, in[2]);
    if (op.getGamma())
      y = arith::MulFOp::create(b, loc, y, in[3]);
    if (op.getBeta())
      y = arith::AddFOp::create(b, loc, y, in.back());
    return y;
  });
}

static Value decomposeLayerNorm(OpBuilder &builder, LayerNormOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  int64_t axes = op.getAxes();
  RowBuilder rows(builder, loc, type, type.getRank() - axes, axes);
  Input x = {op.getX(), Extent::Full};
  auto [mean, rstd] = getMeanAndRstd(rows, loc, x, op.getEps().convertToDouble());
  return normalise(rows, op, mean, rstd, Extent::Columns);
}

static SmallVector<Value> decomposeBatchNorm(OpBuilder &builder, BatchNormOp op) {
  Location loc = op.getLoc();
  auto rows = RowBuilder::ofChannels(builder, loc, op.getX().getType(), int64_t(op.getAxis()));
  Input x = {op.getX(), Extent::Full};
  Input mean = getMean(rows, x);
  Value squares = getSquares(rows, loc, x, mean);
  Input rstd = {getRstd(rows, loc, squares, op.getEps().convertToDouble()), Extent::Rows};
  return {normalise(rows, op, mean, rstd, Extent::Rows), mean.tensor, rows.mean(squares).tensor};
}

static Value decomposeBatchNormInference(OpBuilder &builder, BatchNormInferenceOp op) {
  Location loc = op.getLoc();
  auto rows = RowBuilder::ofChannels(builder, loc, op.getX().getType(), int64_t(op.getAxis()));
  Value epsilon = rows.constant(op.getEps().convertToDouble());
  Value rstd = rows.rows({{op.getVariance(), Extent::Rows}}, rows.getType(),
                         [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                           Value shifted = arith::AddFOp::create(b, loc, in[0], epsilon);
                           return math::RsqrtOp::create(b, loc, shifted);
                         });
  return normalise(rows, op, {op.getMean(), Extent::Rows}, {rstd, Extent::Rows}, Extent::Rows);
}

static SmallVector<Number> getNumbers(ImplicitLocOpBuilder &builder, ArrayRef<Value> values) {
  return llvm::map_to_vector(values, [&](Value value) { return Number(builder, value); });
}

static SmallVector<Value> decomposeBatchNormVjp(OpBuilder &builder, BatchNormVjpOp op) {
  Location loc = op.getLoc();
  auto rows = RowBuilder::ofChannels(builder, loc, op.getX().getType(), int64_t(op.getAxis()));
  Input x = {op.getX(), Extent::Full}, dy = {op.getDy(), Extent::Full};
  auto [mean, rstd] = getMeanAndRstd(rows, loc, x, op.getEps().convertToDouble());

  Value dbeta = rows.sum({dy}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  Value dgamma = rows.sum({dy, x, mean, rstd}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value centered = arith::SubFOp::create(b, loc, in[1], in[2]);
    return arith::MulFOp::create(b, loc, in[0], arith::MulFOp::create(b, loc, centered, in[3]));
  });
  SmallVector<Input> inputs = {dy, x, mean, rstd, rows.mean(dbeta), rows.mean(dgamma)};
  for (Value channel : {op.getGamma(), op.getDmean(), op.getDvariance()})
    if (channel)
      inputs.push_back({channel, Extent::Rows});
  Value count = rows.getCount();
  Type element = getElementTypeOrSelf(op.getX());
  Value dx = rows.full(inputs, element, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    ImplicitLocOpBuilder body(loc, b);
    SmallVector<Number> numbers = getNumbers(body, in);
    auto given = ArrayRef(numbers).drop_front(6);
    auto next = [&] {
      Number number = given.front();
      given = given.drop_front();
      return number;
    };
    Number dy = numbers[0], rstd = numbers[3], centered = numbers[1] - numbers[2];
    Number dx = (dy - numbers[4] - centered * rstd * numbers[5]) * rstd;
    if (op.getGamma())
      dx = dx * next();
    Number share(body, count);
    if (op.getDmean())
      dx = dx + next() / share;
    if (op.getDvariance())
      dx = dx + next() * (2 * centered) / share;
    return dx.get();
  });
  return {dx, dgamma, dbeta};
}

static SmallVector<Value> decomposeLayerNormVjp(OpBuilder &builder, LayerNormVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  int64_t axes = op.getAxes();
  RowBuilder rows(builder, loc, type, type.getRank() - axes, axes);
  Input x = {op.getX(), Extent::Full}, dy = {op.getDy(), Extent::Full};
  auto [mean, rstd] = getMeanAndRstd(rows, loc, x, op.getEps().convertToDouble());

  // All bodies below start with dy, x, mean, rstd and then gamma, if there is one.
  SmallVector<Input> inputs = {dy, x, mean, rstd};
  if (op.getGamma())
    inputs.push_back({op.getGamma(), Extent::Columns});
  auto normalise = [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value centered = arith::SubFOp::create(b, loc, in[1], in[2]);
    return arith::MulFOp::create(b, loc, centered, in[3]);
  };
  auto scale = [&](OpBuilder &b, Value dy, Value gamma) -> Value {
    return op.getGamma() ? arith::MulFOp::create(b, loc, dy, gamma) : dy;
  };
  SmallVector<Input> scaled = {dy};
  if (op.getGamma())
    scaled.push_back(inputs.back());
  Input meanOfA = rows.mean(rows.sum(
      scaled, [&](OpBuilder &b, ArrayRef<Value> in) { return scale(b, in[0], in.back()); }));
  Input meanOfAN = rows.mean(rows.sum(inputs, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value n = normalise(b, in);
    return arith::MulFOp::create(b, loc, scale(b, in[0], in.back()), n);
  }));

  SmallVector<Input> all = inputs;
  all.append({meanOfA, meanOfAN});
  Value dx = rows.full(all, type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value n = normalise(b, in);
    Value a = scale(b, in[0], in[4]);
    Value centered = arith::SubFOp::create(b, loc, a, in[in.size() - 2]);
    Value along = arith::MulFOp::create(b, loc, n, in.back());
    Value rest = arith::SubFOp::create(b, loc, centered, along);
    return arith::MulFOp::create(b, loc, rest, in[3]);
  });
  Value dgamma =
      rows.sumOfRows({dy, x, mean, rstd}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
        return arith::MulFOp::create(b, loc, in[0], normalise(b, in));
      });
  Value dbeta = rows.sumOfRows({dy}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  return {dx, dgamma, dbeta};
}

/// `rsqrt(mean(x^2) + eps)` of each row.
static Input getInverseRms(RowBuilder &rows, Location loc, Input x, double eps) {
  Value squares = rows.sum({x}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value wide = widen(b, loc, in[0], rows.getType());
    return arith::MulFOp::create(b, loc, wide, wide);
  });
  return {getRstd(rows, loc, squares, eps), Extent::Rows};
}

static Value decomposeRmsNorm(OpBuilder &builder, RmsNormOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  Type element = type.getElementType();
  int64_t axes = op.getAxes();
  RowBuilder rows(builder, loc, type, type.getRank() - axes, axes);
  Input x = {op.getX(), Extent::Full};
  Input rstd = getInverseRms(rows, loc, x, op.getEps().convertToDouble());

  SmallVector<Input> inputs = {x, rstd};
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

static SmallVector<Value> decomposeRmsNormVjp(OpBuilder &builder, RmsNormVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  Type element = type.getElementType();
  int64_t axes = op.getAxes();
  RowBuilder rows(builder, loc, type, type.getRank() - axes, axes);
  Type wide = rows.getType();
  Input x = {op.getX(), Extent::Full}, dy = {op.getDy(), Extent::Full};
  Input rstd = getInverseRms(rows, loc, x, op.getEps().convertToDouble());

  // All bodies below start with dy, x, rstd and then gamma, if there is one.
  SmallVector<Input> inputs = {dy, x, rstd};
  if (op.getGamma())
    inputs.push_back({op.getGamma(), Extent::Columns});
  auto normalise = [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    return arith::MulFOp::create(b, loc, widen(b, loc, in[1], wide), in[2]);
  };
  auto scale = [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value a = widen(b, loc, in[0], wide);
    if (!op.getGamma())
      return a;
    return arith::MulFOp::create(b, loc, a, widen(b, loc, in[3], wide));
  };
  Input meanOfAN = rows.mean(rows.sum(inputs, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value n = normalise(b, in);
    return arith::MulFOp::create(b, loc, scale(b, in), n);
  }));

  SmallVector<Input> all = inputs;
  all.push_back(meanOfAN);
  Value dx = rows.full(all, element, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value n = normalise(b, in);
    Value along = arith::MulFOp::create(b, loc, n, in.back());
    Value rest = arith::SubFOp::create(b, loc, scale(b, in), along);
    return narrow(b, loc, arith::MulFOp::create(b, loc, rest, in[2]), element);
  });
  Value dgamma = rows.sumOfRows({dy, x, rstd}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value n = normalise(b, in);
    if (op.getCastBeforeScale())
      n = widen(b, loc, narrow(b, loc, n, element), wide);
    return arith::MulFOp::create(b, loc, widen(b, loc, in[0], wide), n);
  });
  return {dx, dgamma};
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

static Value decomposeSoftmax(OpBuilder &builder, linalg::SoftmaxOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  RowBuilder rows(builder, loc, type, int64_t(op.getDimension()), 1);
  auto [max, sum] = getMaxAndSumOfExp(rows, loc, op.getInput());
  return rows.full({{op.getInput(), Extent::Full}, {max, Extent::Rows}, {sum, Extent::Rows}},
                   type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
                     Value power = math::ExpOp::create(b, loc, shifted);
                     return arith::DivFOp::create(b, loc, power, in[2]);
                   });
}

static Value decomposeSoftmaxVjp(OpBuilder &builder, SoftmaxVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getY().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  Input dy = {op.getDy(), Extent::Full}, y = {op.getY(), Extent::Full};
  Value sum = rows.sum({dy, y}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    return arith::MulFOp::create(b, loc, in[0], in[1]);
  });
  return rows.full({dy, y, {sum, Extent::Rows}}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value rest = arith::SubFOp::create(b, loc, in[0], in[2]);
                     return arith::MulFOp::create(b, loc, in[1], rest);
                   });
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

static Value decomposeLogSoftmaxVjp(OpBuilder &builder, LogSoftmaxVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getY().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  Input dy = {op.getDy(), Extent::Full}, y = {op.getY(), Extent::Full};
  Value sum = rows.sum({dy}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  return rows.full({dy, y, {sum, Extent::Rows}}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value softmax = math::ExpOp::create(b, loc, in[1]);
                     Value share = arith::MulFOp::create(b, loc, softmax, in[2]);
                     return arith::SubFOp::create(b, loc, in[0], share);
                   });
}

namespace {
/// What logsumexp and its VJP have in common, by row.
struct ShiftedSum {
  Input shift, sum;
};
} // namespace

/// The largest element of each row where it is finite, else 0, and the sum of
/// `exp(x - shift)`.
static ShiftedSum getShiftedSum(RowBuilder &rows, Location loc, Input x) {
  Value max = rows.max({x}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  Value zero = rows.constant(0.0);
  Value infinity = rows.constant(std::numeric_limits<double>::infinity());
  Value shift = rows.rows(
      {{max, Extent::Rows}}, rows.getType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
        Value size = math::AbsFOp::create(b, loc, in[0]);
        Value isInfinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, size, infinity);
        return arith::SelectOp::create(b, loc, isInfinite, zero, in[0]);
      });
  Value sum = rows.sum({x, {shift, Extent::Rows}}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
    return math::ExpOp::create(b, loc, shifted);
  });
  return {{shift, Extent::Rows}, {sum, Extent::Rows}};
}

static Value decomposeLogsumexp(OpBuilder &builder, LogsumexpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  auto [shift, sum] = getShiftedSum(rows, loc, {op.getX(), Extent::Full});
  return rows.rows({sum, shift}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value logSum = math::LogOp::create(b, loc, in[0]);
                     return arith::AddFOp::create(b, loc, logSum, in[1]);
                   });
}

static Value decomposeLogsumexpVjp(OpBuilder &builder, LogsumexpVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  Input x = {op.getX(), Extent::Full};
  auto [shift, sum] = getShiftedSum(rows, loc, x);
  return rows.full({{op.getDy(), Extent::Rows}, x, shift, sum}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value shifted = arith::SubFOp::create(b, loc, in[1], in[2]);
                     Value power = math::ExpOp::create(b, loc, shifted);
                     Value softmax = arith::DivFOp::create(b, loc, power, in[3]);
                     return arith::MulFOp::create(b, loc, in[0], softmax);
                   });
}

namespace {
/// The integers of a cross-entropy, as scalars for bodies.
class Targets {
public:
  template <typename Op>
  Targets(OpBuilder &builder, Op op)
      : loc(op.getLoc()), values(op.getTargets()),
        integer(cast<RankedTensorType>(values.getType()).getElementType()) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(integer, value));
    };
    auto logits = cast<RankedTensorType>(op.getLogits().getType());
    classDim = logits.getRank() - 1;
    ignored = constant(int64_t(op.getIgnoreIndex()));
    first = constant(0);
    end = constant(logits.getDimSize(classDim));
  }

  Input get() const { return {values, Extent::Rows}; }

  /// Whether the class at a body's point is `target`.
  Value isAt(OpBuilder &b, Value target) const {
    Value index = linalg::IndexOp::create(b, loc, classDim);
    Value number = arith::IndexCastOp::create(b, loc, integer, index);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, target);
  }

  /// `value` where `target` is a class, `zero` where it is ignored, else `nan`.
  Value guard(OpBuilder &b, Value target, Value value, Value zero, Value nan) const {
    Value notBelow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, target, first);
    Value notAbove = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, target, end);
    Value valid = arith::AndIOp::create(b, loc, notBelow, notAbove);
    Value loud = arith::SelectOp::create(b, loc, valid, value, nan);
    Value skip = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, target, ignored);
    return arith::SelectOp::create(b, loc, skip, zero, loud);
  }

  /// How many targets are not ignored, as a tensor of rank 0; integers count exactly.
  Value count(OpBuilder &builder) const;

private:
  Location loc;
  Value values;
  Type integer;
  int64_t classDim;
  Value ignored, first, end;
};
} // namespace

Value Targets::count(OpBuilder &builder) const {
  auto type = cast<RankedTensorType>(values.getType());
  Type counter = builder.getIntegerType(llvm::isInt<32>(type.getNumElements()) ? 32 : 64);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(counter, 0));
  Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(), counter);
  Value start = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap toScalar = AffineMap::get(type.getRank(), 0, builder.getContext());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::reduction);
  return linalg::GenericOp::create(
             builder, loc, start.getType(), values, start, ArrayRef<AffineMap>{identity, toScalar},
             iterators,
             [&](OpBuilder &b, Location, ValueRange in) {
               Value kept = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, in[0], ignored);
               Value one = arith::ExtUIOp::create(b, loc, counter, kept);
               linalg::YieldOp::create(b, loc, Value(arith::AddIOp::create(b, loc, in[1], one)));
             })
      .getResult(0);
}

/// A tensor of rank 0 divided by the number of targets that count.
static Value divideByCount(OpBuilder &builder, Location loc, Value scalar, const Targets &targets) {
  auto type = cast<RankedTensorType>(scalar.getType());
  RowBuilder scalars(builder, loc, type, 0, 0);
  return scalars.full({{scalar, Extent::Full}, {targets.count(builder), Extent::Full}},
                      type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                        Value count = arith::SIToFPOp::create(b, loc, type.getElementType(), in[1]);
                        return arith::DivFOp::create(b, loc, in[0], count);
                      });
}

namespace {
/// What the logits of a row weigh, if labels are smoothed.
struct Smoothing {
  template <typename Op> explicit Smoothing(Op op) {
    auto logits = cast<RankedTensorType>(op.getLogits().getType());
    double smoothing = op.getLabelSmoothing().convertToDouble();
    ofTarget = 1 - smoothing;
    ofEach = smoothing / double(logits.getShape().back());
  }
  explicit operator bool() const { return ofTarget != 1; }

  double ofTarget, ofEach;
};
} // namespace

/// The losses of all rows, 0 where the target is ignored, NaN where it is no class.
static Value getLosses(OpBuilder &builder, SoftmaxCrossEntropyOp op, const Targets &targets) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLogits().getType());
  RowBuilder rows(builder, loc, type, type.getRank() - 1, 1);
  auto [max, sum] = getMaxAndSumOfExp(rows, loc, op.getLogits());
  Value zero = rows.constant(0.0);
  Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
  // A sum over the classes keeps the pick inside the row kernel; all terms but one are 0.
  Value picked =
      rows.sum({{op.getLogits(), Extent::Full}, targets.get()},
               [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                 return arith::SelectOp::create(b, loc, targets.isAt(b, in[1]), in[0], zero);
               });
  SmallVector<Input> inputs = {
      {max, Extent::Rows}, {sum, Extent::Rows}, {picked, Extent::Rows}, targets.get()};
  Smoothing smoothing(op);
  Value share, rest;
  if (smoothing) {
    share = rows.constant(smoothing.ofEach);
    rest = rows.constant(smoothing.ofTarget);
    Value all = rows.sum({{op.getLogits(), Extent::Full}, {max, Extent::Rows}},
                         [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                           return arith::SubFOp::create(b, loc, in[0], in[1]);
                         });
    inputs.push_back({all, Extent::Rows});
  }
  return rows.rows(inputs, type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value logSum = math::LogOp::create(b, loc, in[1]);
    // max is taken from the target's logit, not added to the logarithm, which it would drown.
    Value shifted = arith::SubFOp::create(b, loc, in[2], in[0]);
    if (smoothing)
      shifted = arith::MulFOp::create(b, loc, rest, shifted);
    Value loss = arith::SubFOp::create(b, loc, logSum, shifted);
    if (smoothing)
      loss = arith::SubFOp::create(b, loc, loss, arith::MulFOp::create(b, loc, share, in[4]));
    return targets.guard(b, in[3], loss, zero, nan);
  });
}

static Value decomposeCrossEntropy(OpBuilder &builder, SoftmaxCrossEntropyOp op) {
  Targets targets(builder, op);
  Value losses = getLosses(builder, op, targets);
  if (op.getReduction() == Reduction::none)
    return losses;

  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(losses.getType());
  RowBuilder all(builder, loc, type, 0, type.getRank());
  Value sum =
      all.sum({{losses, Extent::Full}}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  return op.getReduction() == Reduction::sum ? sum : divideByCount(builder, loc, sum, targets);
}

static Value decomposeCrossEntropyVjp(OpBuilder &builder, SoftmaxCrossEntropyVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLogits().getType());
  RowBuilder rows(builder, loc, type, type.getRank() - 1, 1);
  Targets targets(builder, op);
  auto [max, sum] = getMaxAndSumOfExp(rows, loc, op.getLogits());
  Input dloss = {op.getDloss(), Extent::None};
  if (op.getReduction() == Reduction::none)
    dloss.extent = Extent::Rows;
  if (op.getReduction() == Reduction::mean)
    dloss.tensor = divideByCount(builder, loc, op.getDloss(), targets);

  Smoothing smoothing(op);
  Value zero = rows.constant(0.0), one = rows.constant(1.0), share, rest;
  if (smoothing) {
    share = rows.constant(smoothing.ofEach);
    rest = rows.constant(smoothing.ofTarget);
  }
  Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
  return rows.full({{op.getLogits(), Extent::Full},
                    {max, Extent::Rows},
                    {sum, Extent::Rows},
                    targets.get(),
                    dloss},
                   type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
                     Value power = math::ExpOp::create(b, loc, shifted);
                     Value softmax = arith::DivFOp::create(b, loc, power, in[2]);
                     if (smoothing)
                       softmax = arith::SubFOp::create(b, loc, softmax, share);
                     Value oneHot = arith::SelectOp::create(b, loc, targets.isAt(b, in[3]),
                                                            smoothing ? rest : one, zero);
                     Value difference = arith::SubFOp::create(b, loc, softmax, oneHot);
                     Value dlogit = arith::MulFOp::create(b, loc, difference, in[4]);
                     return targets.guard(b, in[3], dlogit, zero, nan);
                   });
}

/// Computes each element from those of `inputs`, which all have one type.
static Value mapElements(OpBuilder &builder, Location loc, ArrayRef<Value> inputs,
                         llvm::function_ref<Number(ArrayRef<Number>)> compute) {
  auto type = cast<RankedTensorType>(inputs.front().getType());
  RowBuilder elements(builder, loc, type, /*firstReduced=*/0, /*numReduced=*/0);
  SmallVector<Input> full;
  for (Value input : inputs)
    full.push_back({input, Extent::Full});
  return elements.full(full, type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) {
    ImplicitLocOpBuilder body(loc, b);
    return compute(getNumbers(body, in)).get();
  });
}

/// `erfc(-x / sqrt(2)) / 2`, the share of the normal distribution below x.
static Number getShareBelow(Number x) {
  return 0.5 * (x * (-1 / std::numbers::sqrt2)).apply<math::ErfcOp>();
}

/// `tanh(factor * (x + 0.044715 * x^3))`
static Number getGeluTanh(Number x, double factor) {
  return (factor * (x * (1 + 0.044715 * (x * x)))).apply<math::TanhOp>();
}

static Value decomposeGelu(OpBuilder &builder, GeluOp op) {
  return mapElements(builder, op.getLoc(), {op.getX()}, [&](ArrayRef<Number> in) {
    Number x = in[0];
    std::optional<APFloat> factor = op.getTanhFactor();
    return factor ? 0.5 * x * (1 + getGeluTanh(x, factor->convertToDouble()))
                  : x * getShareBelow(x);
  });
}

static Value decomposeGeluVjp(OpBuilder &builder, GeluVjpOp op) {
  return mapElements(builder, op.getLoc(), {op.getDy(), op.getX()}, [&](ArrayRef<Number> in) {
    Number dy = in[0], x = in[1];
    if (std::optional<APFloat> attribute = op.getTanhFactor()) {
      double factor = attribute->convertToDouble();
      Number t = getGeluTanh(x, factor);
      Number inner = factor * (1 + 3 * 0.044715 * (x * x));
      return dy * (0.5 * (1 + t) * (1 + x * (1 - t) * inner));
    }
    Number density =
        (std::numbers::inv_sqrtpi / std::numbers::sqrt2) * (-0.5 * (x * x)).apply<math::ExpOp>();
    return dy * (getShareBelow(x) + x * density);
  });
}

static Value decomposeSilu(OpBuilder &builder, SiluOp op) {
  return mapElements(builder, op.getLoc(), {op.getX()}, [](ArrayRef<Number> in) {
    Number x = in[0];
    return x / (1 + (-x).apply<math::ExpOp>());
  });
}

static Value decomposeSiluVjp(OpBuilder &builder, SiluVjpOp op) {
  return mapElements(builder, op.getLoc(), {op.getDy(), op.getX()}, [](ArrayRef<Number> in) {
    Number dy = in[0], x = in[1], zero = x.constant(0);
    Number power = (-x.apply<math::AbsFOp>()).apply<math::ExpOp>();
    Number larger = x.constant(1) / (1 + power), smaller = larger * power;
    Number share = smaller.where(arith::CmpFPredicate::OLT, x, zero, larger);
    Number rest = larger.where(arith::CmpFPredicate::OLT, x, zero, smaller);
    return dy * (share * (1 + x * rest));
  });
}

SmallVector<Value> weir::norm::decompose(OpBuilder &builder, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  using Values = SmallVector<Value>;
  return llvm::TypeSwitch<Operation *, Values>(op)
      .Case([&](LayerNormOp op) { return Values{decomposeLayerNorm(builder, op)}; })
      .Case([&](LayerNormVjpOp op) { return decomposeLayerNormVjp(builder, op); })
      .Case([&](BatchNormOp op) { return decomposeBatchNorm(builder, op); })
      .Case([&](BatchNormVjpOp op) { return decomposeBatchNormVjp(builder, op); })
      .Case(
          [&](BatchNormInferenceOp op) { return Values{decomposeBatchNormInference(builder, op)}; })
      .Case([&](RmsNormOp op) { return Values{decomposeRmsNorm(builder, op)}; })
      .Case([&](RmsNormVjpOp op) { return decomposeRmsNormVjp(builder, op); })
      .Case([&](linalg::SoftmaxOp op) { return Values{decomposeSoftmax(builder, op)}; })
      .Case([&](SoftmaxVjpOp op) { return Values{decomposeSoftmaxVjp(builder, op)}; })
      .Case([&](LogSoftmaxOp op) { return Values{decomposeLogSoftmax(builder, op)}; })
      .Case([&](LogSoftmaxVjpOp op) { return Values{decomposeLogSoftmaxVjp(builder, op)}; })
      .Case([&](LogsumexpOp op) { return Values{decomposeLogsumexp(builder, op)}; })
      .Case([&](LogsumexpVjpOp op) { return Values{decomposeLogsumexpVjp(builder, op)}; })
      .Case([&](SoftmaxCrossEntropyOp op) { return Values{decomposeCrossEntropy(builder, op)}; })
      .Case([&](SoftmaxCrossEntropyVjpOp op) {
        return Values{decomposeCrossEntropyVjp(builder, op)};
      })
      .Case([&](GeluOp op) { return Values{decomposeGelu(builder, op)}; })
      .Case([&](GeluVjpOp op) { return Values{decomposeGeluVjp(builder, op)}; })
      .Case([&](SiluOp op) { return Values{decomposeSilu(builder, op)}; })
      .Case([&](SiluVjpOp op) { return Values{decomposeSiluVjp(builder, op)}; })
      .Default(Values());
}

void weir::norm::decomposeAll(Operation *root) {
  OpBuilder builder(root->getContext());
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
    if (isa_and_present<NormDialect>(op->getDialect()) ||
        (softmax && softmax.hasPureTensorSemantics()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    Operation *before = op->getPrevNode();
    op->replaceAllUsesWith(decompose(builder, op));
    // A gradient that nothing uses goes, with all that only it read.
    for (Operation *last = op; last != before;) {
      Operation *previous = last->getPrevNode();
      if (isOpTriviallyDead(last))
        last->erase();
      last = previous;
    }
  }
}
