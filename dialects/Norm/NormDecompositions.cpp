//===- NormDecompositions.cpp - Layer, batch and RMS norm as linalg -------===//

#include "dialects/Norm/Decompositions.h"
#include "dialects/Norm/RowBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace weir::norm;
using weir::autodiff::Number;

/// Returns the power of two s by which elements are multiplied before they are squared, at most 1.
/// The square of an element that f32 holds need not be one: that of 1e19 is infinite, while the
/// norm is not. So s is as small as eps lets it be: a square so small that s^2 times it is
/// denormal, which some devices take for 0, changes no bit of `mean + eps`. All other bits are
/// those without s, since a product by a power of two is exact.
static double getScaleOfSquares(RowBuilder &rows, double eps) {
  const llvm::fltSemantics &semantics = cast<FloatType>(rows.getType()).getFloatSemantics();
  if (!(eps > 0))
    return 1;
  int exponent = APFloat::semanticsMinExponent(semantics) +
                 int(APFloat::semanticsPrecision(semantics)) + 1 - std::ilogb(eps);
  return std::ldexp(1, std::min(exponent / 2, 0));
}

/// Computes `rsqrt(sum / N + eps)` by row, from the sum of `scale^2` times the squares.
static Value getRstd(RowBuilder &rows, Location loc, Value sum, double eps, double scale) {
  Value count = rows.getCount(), epsilon = rows.constant(eps * scale * scale);
  Value factor = rows.constant(scale);
  return rows.rows({{sum, Extent::Rows}}, rows.getType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value mean = arith::DivFOp::create(b, loc, in[0], count);
                     Value shifted = arith::AddFOp::create(b, loc, mean, epsilon);
                     Value rstd = math::RsqrtOp::create(b, loc, shifted);
                     return arith::MulFOp::create(b, loc, rstd, factor);
                   });
}

/// Computes the sum of `(scale * (x - mean))^2` of each row of x.
static Value getSquares(RowBuilder &rows, Location loc, Input x, Input mean, double scale) {
  Value factor = rows.constant(scale);
  return rows.sum({x, mean}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value centered = arith::SubFOp::create(b, loc, in[0], in[1]);
    centered = arith::MulFOp::create(b, loc, centered, factor);
    return arith::MulFOp::create(b, loc, centered, centered);
  });
}

static Input getMean(RowBuilder &rows, Input x) {
  return rows.mean(rows.sum({x}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; }));
}

/// Computes the mean and `rsqrt(variance + eps)` of each row of x, in two passes.
static std::pair<Input, Input> getMeanAndRstd(RowBuilder &rows, Location loc, Input x, double eps) {
  Input mean = getMean(rows, x);
  double scale = getScaleOfSquares(rows, eps);
  Value squares = getSquares(rows, loc, x, mean, scale);
  return {mean, {getRstd(rows, loc, squares, eps, scale), Extent::Rows}};
}

/// Computes `sum * rstd` by row: the sum of terms each of which has the factor rstd. A sum that
/// does not wait for rstd takes no pass of its own over a row.
static Value scaleSum(RowBuilder &rows, Location loc, Value sum, Input rstd) {
  return rows.rows({{sum, Extent::Rows}, rstd}, rows.getType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     return arith::MulFOp::create(b, loc, in[0], in[1]);
                   });
}

/// Computes `(x - mean) * rstd * gamma + beta` with the weights that `op` has.
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

Value weir::norm::decomposeOp(OpBuilder &builder, LayerNormOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  int64_t axes = op.getAxes();
  RowBuilder rows(builder, loc, type, type.getRank() - axes, axes);
  Input x = {op.getX(), Extent::Full};
  auto [mean, rstd] = getMeanAndRstd(rows, loc, x, op.getEps().convertToDouble());
  return normalise(rows, op, mean, rstd, Extent::Columns);
}

SmallVector<Value> weir::norm::decomposeOp(OpBuilder &builder, BatchNormOp op) {
  Location loc = op.getLoc();
  auto rows = RowBuilder::ofChannels(builder, loc, op.getX().getType(), int64_t(op.getAxis()));
  Input x = {op.getX(), Extent::Full};
  Input mean = getMean(rows, x);
  double eps = op.getEps().convertToDouble(), scale = getScaleOfSquares(rows, eps);
  Value squares = getSquares(rows, loc, x, mean, scale);
  Input rstd = {getRstd(rows, loc, squares, eps, scale), Extent::Rows};
  Value unscaled = rows.constant(1 / (scale * scale));
  Value variance = rows.rows({rows.mean(squares)}, rows.getType(),
                             [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                               return arith::MulFOp::create(b, loc, in[0], unscaled);
                             });
  return {normalise(rows, op, mean, rstd, Extent::Rows), mean.tensor, variance};
}

Value weir::norm::decomposeOp(OpBuilder &builder, BatchNormInferenceOp op) {
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

SmallVector<Value> weir::norm::decomposeOp(OpBuilder &builder, BatchNormVjpOp op) {
  Location loc = op.getLoc();
  auto rows = RowBuilder::ofChannels(builder, loc, op.getX().getType(), int64_t(op.getAxis()));
  Input x = {op.getX(), Extent::Full}, dy = {op.getDy(), Extent::Full};
  auto [mean, rstd] = getMeanAndRstd(rows, loc, x, op.getEps().convertToDouble());

  Value dbeta = rows.sum({dy}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  Value dgamma = rows.sum({dy, x, mean}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value centered = arith::SubFOp::create(b, loc, in[1], in[2]);
    return arith::MulFOp::create(b, loc, in[0], centered);
  });
  dgamma = scaleSum(rows, loc, dgamma, rstd);
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

SmallVector<Value> weir::norm::decomposeOp(OpBuilder &builder, LayerNormVjpOp op) {
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
  SmallVector<Input> terms = {x, mean};
  terms.append(scaled);
  Value sumOfAN = rows.sum(terms, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value centered = arith::SubFOp::create(b, loc, in[0], in[1]);
    return arith::MulFOp::create(b, loc, scale(b, in[2], in.back()), centered);
  });
  Input meanOfAN = rows.mean(scaleSum(rows, loc, sumOfAN, rstd));

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
  double scale = getScaleOfSquares(rows, eps);
  Value factor = rows.constant(scale);
  Value squares = rows.sum({x}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value wide = widen(b, loc, in[0], rows.getType());
    wide = arith::MulFOp::create(b, loc, wide, factor);
    return arith::MulFOp::create(b, loc, wide, wide);
  });
  return {getRstd(rows, loc, squares, eps, scale), Extent::Rows};
}

Value weir::norm::decomposeOp(OpBuilder &builder, RmsNormOp op) {
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

SmallVector<Value> weir::norm::decomposeOp(OpBuilder &builder, RmsNormVjpOp op) {
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
  auto scale = [&](OpBuilder &b, Value dy, Value gamma) -> Value {
    Value a = widen(b, loc, dy, wide);
    return op.getGamma() ? arith::MulFOp::create(b, loc, a, widen(b, loc, gamma, wide)) : a;
  };
  SmallVector<Input> terms = {x, dy};
  if (op.getGamma())
    terms.push_back(inputs.back());
  Value sumOfAN = rows.sum(terms, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value wideX = widen(b, loc, in[0], wide);
    return arith::MulFOp::create(b, loc, scale(b, in[1], in.back()), wideX);
  });
  Input meanOfAN = rows.mean(scaleSum(rows, loc, sumOfAN, rstd));

  SmallVector<Input> all = inputs;
  all.push_back(meanOfAN);
  Value dx = rows.full(all, element, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value n = normalise(b, in);
    Value along = arith::MulFOp::create(b, loc, n, in.back());
    Value rest = arith::SubFOp::create(b, loc, scale(b, in[0], in[3]), along);
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
