//===- MathGelu.cpp - GELU where fma rounds once --------------------------===//
//
// GELU and its derivative as `norm.gelu` decomposes, by erfc and exp, are sequences of 69 and 96
// instructions. Where math.fma rounds once, 35 and 37 do: with a = -|x| and
// t(a) = exp(-a^2 / 2) * p(a) / q(a), the normal distribution's share below a,
//
//   gelu(x) = max(x, 0) + a * t(a)      gelu'(x) = t(a) + a * density(a), or 1 minus that.
//
// The square of a goes into the exponent with all its bits, so this is also nearer than the
// formula, in which -x / sqrt(2) is rounded first.
//
//===----------------------------------------------------------------------===//

#include "MathPieces.h"

#include "weir/Numerics/Math.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

#include <numbers>

using namespace mlir;
using namespace weir::expression;

/// The exponent that the numerator lacks, so that 2^count times 2^lacking is normal.
static constexpr int lacking = 28;

namespace {
/// The share of the normal distribution below a as quotient * power * scale.
struct Tail {
  Float a;        ///< -|x|, at least -14.6: below, all is zero
  Float quotient; ///< times 2^-lacking
  Float power;    ///< e to the rest
  Float scale;    ///< times 2^lacking
};
} // namespace

/// Computes p / q for q < 0 without an instruction for it: those that round have branches.
static Float getQuotient(Float p, Float q) {
  // The difference of bits is 1 / q to a sixteenth, a polynomial of their product makes it exact
  // to 16 bits, a step of Newton's to all.
  Float near = fromBits(0x7ee00000 - bits(q));
  Float product = q * near;
  ArrayRef<double> c = inverseGuess;
  Float inverse = near * fma(fma(product, -c[2], -c[1]), product, literal(q, -c[0])); // of -q
  Float quotient = p * inverse;
  return fma(quotient, fma(q, inverse, 1.0), quotient);
}

static Tail getTail(Float x) {
  Float a = atLeast(fromBits(bits(x) | formatOf(x).signBit()), -14.6);
  SmallVector<double> numerator;
  for (double coefficient : tailNumerator)
    numerator.push_back(-std::ldexp(coefficient, -lacking));
  Float p = polynomial(numerator, a);
  ArrayRef<double> coefficients = ArrayRef(tailDenominator).drop_back(); // of a monic one
  Float q = a + coefficients.back();
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    q = fma(q, a, coefficient);

  double shift = 0x1.8p+23 + 127 + lacking;
  Float shifted = fma(a * (-0.5 * std::numbers::log2e), a, literal(x, shift));
  Float count = shifted - shift;
  // Twice the rest, of the other sign: the first product is exact, and the first sum, too.
  Float rest = fma(a, a, count * (2 * ln232[0]));
  rest = fma(count, 2 * ln232[1], rest);
  return {a, getQuotient(p, q), polynomial(ArrayRef(expOfHalf), rest),
          fromBits(bits(shifted) << 23)};
}

Float weir::expression::expandGelu(Float x) {
  Tail tail = getTail(x);
  Float share = tail.quotient * tail.power * tail.scale;
  // A zero has the sign of x.
  return fma(tail.a, share, binary<arith::MaximumFOp>(x, literal(x, -0.0)));
}

Float weir::expression::expandGeluSlope(Float x) {
  Tail tail = getTail(x);
  double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  Float factor = fma(tail.a, std::ldexp(density, -lacking), tail.quotient);
  Float below = factor * tail.power * tail.scale;
  return select(isNegative(x), below, 1.0 - below);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Whether all elements of `value` are the f32 nearest to `number`.
static bool isNumber(Value value, double number) {
  TypedAttr constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return false;
  if (auto elements = dyn_cast<DenseFPElementsAttr>(constant))
    return elements.isSplat() &&
           elements.getSplatValue<APFloat>().convertToDouble() == float(number);
  auto scalar = dyn_cast<FloatAttr>(constant);
  return scalar && scalar.getValue().convertToDouble() == float(number);
}

/// Returns the other operand of a product by a number or by a value; null if it is none.
static Value getFactor(Value product, llvm::function_ref<bool(Value)> isOther) {
  auto op = product.getDefiningOp<arith::MulFOp>();
  if (!op)
    return {};
  if (isOther(op.getLhs()))
    return op.getRhs();
  return isOther(op.getRhs()) ? op.getLhs() : Value();
}
static Value getFactor(Value product, double number) {
  return getFactor(product, [&](Value value) { return isNumber(value, number); });
}
static Value getFactor(Value product, Value other) {
  return getFactor(product, [&](Value value) { return value == other; });
}

/// Returns the operand of a function; null if `value` is of another op.
template <typename Op> static Value getOperand(Value value) {
  auto op = value ? value.getDefiningOp<Op>() : Op();
  return op ? op.getOperand() : Value();
}

/// Returns x for `erfc(-x / sqrt(2)) / 2`; null if `value` is another.
static Value getOfShareBelow(Value value) {
  Value scaled = getOperand<math::ErfcOp>(getFactor(value, 0.5));
  return scaled ? getFactor(scaled, -1 / std::numbers::sqrt2) : Value();
}

/// Whether `value` is x * density(x), by exp.
static bool isMoment(Value value, Value x) {
  Value density = getFactor(value, x);
  Value power =
      density ? getFactor(density, std::numbers::inv_sqrtpi / std::numbers::sqrt2) : Value();
  Value exponent = getOperand<math::ExpOp>(power);
  Value square = exponent ? getFactor(exponent, -0.5) : Value();
  return square && getFactor(square, x) == x;
}

namespace {
/// Rewrites an op of f32 as a function of the x that `getArgument` finds.
template <typename Op, Value (*getArgument)(Op), Float (*function)(Float)>
struct Fuse : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Value x = getElementTypeOrSelf(op.getType()).isF32() ? getArgument(op) : Value();
    if (!x)
      return failure();
    Place at(rewriter, op.getLoc(), op.getType(), /*fuses=*/true);
    rewriter.replaceOp(op, function({&at, x}).value);
    return success();
  }
};
} // namespace

static Value getOfGelu(arith::MulFOp op) {
  for (auto [x, share] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
    if (getOfShareBelow(share) == x)
      return x;
  return {};
}

static Value getOfSlope(arith::AddFOp op) {
  for (auto [share, moment] :
       {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
    if (Value x = getOfShareBelow(share); x && isMoment(moment, x))
      return x;
  return {};
}

void weir::populateGeluPatterns(RewritePatternSet &patterns) {
  patterns.add<Fuse<arith::MulFOp, getOfGelu, expandGelu>,
               Fuse<arith::AddFOp, getOfSlope, expandGeluSlope>>(patterns.getContext());
}
