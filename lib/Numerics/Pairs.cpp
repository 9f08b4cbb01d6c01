//===- Pairs.cpp - A number as the sum of two floats ----------------------===//
//
// Each operation makes its result as one float does, too, and keeps that where the
// sums beside it meet an infinity.
//
//===----------------------------------------------------------------------===//

#include "Pairs.h"

#include "MathFunctions.h"

using namespace weir;
using namespace weir::expression;

/// Computes a + b exactly, for any two floats.
static Pair anySum(Float a, Float b) {
  Float sum = a + b;
  Float back = sum - a;
  return {sum, (a - (sum - back)) + (b - back)};
}

/// Computes a * b exactly. Without fma, which Vulkan may round twice.
static Pair anyProduct(Float a, Float b) {
  Float product = a * b;
  Float aHigh = upperHalf(a), bHigh = upperHalf(b);
  Float aLow = a - aHigh, bLow = b - bHigh;
  Float rest = aHigh * bHigh - product;
  return {product, ((rest + aHigh * bLow) + aLow * bHigh) + aLow * bLow};
}

/// Returns high + low for |high| >= |low|, or `plain` if that is not a number.
static Pair finish(Float plain, Float high, Float low) {
  Pair sum = exactSum(high, low);
  Bool isNumber = isFinite(sum.high);
  return {select(isNumber, sum.high, plain), select(isNumber, sum.low, 0.0)};
}

Pair expression::operator+(Pair a, Pair b) {
  Pair high = anySum(a.high, b.high), low = anySum(a.low, b.low);
  Pair sum = exactSum(high.high, high.low + low.high);
  return finish(high.high, sum.high, sum.low + low.low);
}

Pair expression::operator*(Pair a, Pair b) {
  Pair product = anyProduct(a.high, b.high);
  Float rest = product.low + (a.high * b.low + a.low * b.high);
  return finish(product.high, product.high, rest);
}

Pair expression::operator/(Pair a, Pair b) {
  Float quotient = a.high / b.high;
  Pair product = anyProduct(quotient, b.high);
  Float rest = ((a.high - product.high) - product.low) + (a.low - quotient * b.low);
  return finish(quotient, quotient, rest / b.high);
}

Pair expression::squareRoot(Pair x) {
  Float root = unary<math::SqrtOp>(x.high);
  Pair square = anyProduct(root, root);
  Float rest = ((x.high - square.high) - square.low) + x.low;
  return finish(root, root, rest / (root + root));
}

Pair expression::raised(Pair x, const APInt &exponent) {
  Pair one = {literal(x.high, 1.0), literal(x.high, 0.0)}, square = x, product = one;
  for (uint64_t left = exponent.abs().getZExtValue(); left; left >>= 1) {
    if (left & 1)
      product = product * square;
    if (left > 1)
      square = square * square;
  }
  return exponent.isNegative() ? one / product : product;
}

Pair expression::operator-(Pair x) {
  return {unary<arith::NegFOp>(x.high), unary<arith::NegFOp>(x.low)};
}

Pair expression::absolute(Pair x) {
  Float low = select(is(x.high, FloatPredicate::OLT, 0.0), unary<arith::NegFOp>(x.low), x.low);
  return {unary<math::AbsFOp>(x.high), low};
}

/// Rounds by `Op`, a function of `math` for one float. The low part counts if the high part
/// is an integer.
template <typename Op> static Pair rounded(Pair x) {
  Float high = unary<Op>(x.high);
  Float low = select(is(high, FloatPredicate::OEQ, x.high), unary<Op>(x.low), 0.0);
  return finish(high, high, low);
}

Pair expression::roundedDown(Pair x) { return rounded<math::FloorOp>(x); }
Pair expression::roundedUp(Pair x) { return rounded<math::CeilOp>(x); }
Pair expression::roundedToZero(Pair x) {
  Bool isNegative = is(x.high, FloatPredicate::OLT, 0.0);
  Pair down = roundedDown(x), up = roundedUp(x);
  return {select(isNegative, up.high, down.high), select(isNegative, up.low, down.low)};
}

template <typename Op> Pair expression::extremum(Pair a, Pair b) {
  Float high = binary<Op>(a.high, b.high);
  Float low = select(is(high, FloatPredicate::OEQ, a.high), a.low, b.low);
  return {high, select(is(a.high, FloatPredicate::OEQ, b.high), binary<Op>(a.low, b.low), low)};
}
template Pair expression::extremum<arith::MaximumFOp>(Pair, Pair);
template Pair expression::extremum<arith::MinimumFOp>(Pair, Pair);
template Pair expression::extremum<arith::MaxNumFOp>(Pair, Pair);
template Pair expression::extremum<arith::MinNumFOp>(Pair, Pair);

Bool expression::is(Pair a, FloatPredicate predicate, Pair b) {
  Bool isTie = is(a.high, FloatPredicate::OEQ, b.high);
  return is(select(isTie, a.low, a.high), predicate, select(isTie, b.low, b.high));
}

Pair expression::toPair(const Place &at, Value integer, bool isSigned) {
  // Pieces of at most 24 bits, each exact as a float.
  constexpr unsigned piece = 20;
  OpBuilder &b = at.builder;
  Type type = integer.getType(), element = getElementTypeOrSelf(type);
  unsigned width = element.getIntOrFloatBitWidth();
  auto number = [&](uint64_t value) {
    return at.constant(type, b.getIntegerAttr(element, APInt(width, value)));
  };
  auto convert = [&](Value part, bool hasSign) -> Float {
    if (hasSign)
      return {&at, arith::SIToFPOp::create(b, at.loc, at.floats, part)};
    return {&at, arith::UIToFPOp::create(b, at.loc, at.floats, part)};
  };
  auto take = [&](unsigned from) -> Float {
    Value part = integer;
    bool isTop = from + piece + 4 >= width;
    bool hasSign = isTop && isSigned;
    if (from > 0 && hasSign)
      part = arith::ShRSIOp::create(b, at.loc, part, number(from));
    else if (from > 0)
      part = arith::ShRUIOp::create(b, at.loc, part, number(from));
    if (!isTop)
      part = arith::AndIOp::create(b, at.loc, part, number((1u << piece) - 1));
    return convert(part, hasSign) * double(uint64_t(1) << from);
  };
  Float none = literal({&at, {}}, 0.0);
  if (width <= piece + 4)
    return {convert(integer, isSigned), none};
  if (width <= 2 * piece + 4)
    return exactSum(take(piece), take(0));
  return exactSum(take(2 * piece), take(piece)) + Pair{take(0), none};
}

Value expression::toInteger(Pair x, Type type) {
  const Place &at = *x.high.at;
  OpBuilder &b = at.builder;
  Type element = getElementTypeOrSelf(type);
  unsigned width = std::max(element.getIntOrFloatBitWidth(), 32u);
  Type word = b.getIntegerType(width), words = word;
  if (auto vector = dyn_cast<VectorType>(type))
    words = vector.clone(word);
  auto convert = [&](Float part) -> Value {
    return arith::FPToSIOp::create(b, at.loc, words, part.value);
  };
  // Thousands first: the nearest float may be one more than the type holds.
  Float upper = truncate(x.high * 0x1p-16);
  Float lower = x.high - upper * 0x1p+16;
  Float whole = truncate(lower);
  Float rest = (lower - whole) + x.low;
  Float step = select(is(x.high, FloatPredicate::OLT, 0.0), unary<math::CeilOp>(rest),
                      unary<math::FloorOp>(rest));
  Value shift = at.constant(words, b.getIntegerAttr(word, 16));
  Value sum = arith::ShLIOp::create(b, at.loc, convert(upper), shift);
  sum = arith::AddIOp::create(b, at.loc, sum, convert(whole));
  sum = arith::AddIOp::create(b, at.loc, sum, convert(step));
  if (words != type)
    sum = arith::TruncIOp::create(b, at.loc, type, sum);
  return sum;
}

Float expression::roundedToOdd(Pair x) {
  Float none = literal(x.high, 0.0);
  Bool isExact = is(x.low, FloatPredicate::OEQ, none);
  Bool isAway = is(bits(x.high) ^ bits(x.low), IntPredicate::slt, 0);
  Int towardZero = select(isAway, bits(x.high) - 1, bits(x.high));
  return select(isExact, x.high, fromBits(towardZero | 1));
}
