//===- MathTrigonometry.cpp - Functions of angles, and their inverses -----===//
//
// The rules of MathFunctions.cpp hold here, too.
//
//===----------------------------------------------------------------------===//

#include "MathPieces.h"

using namespace weir::expression;
using llvm::ArrayRef;

//===----------------------------------------------------------------------===//
// Reduction
//===----------------------------------------------------------------------===//

namespace {
/// An angle less `quadrant` times pi/2, counted from 0 to 3 and on.
struct Angle {
  Int quadrant;
  Pair rest;
};
} // namespace

/// Returns the exponent of x = 2^exponent * significand, for normal x.
static Int exponentOf(Float x) {
  return (bits(x) >> formatOf(x).fraction) - uint64_t(formatOf(x).bias());
}

/// Computes the upper word of the product of two unsigned words.
static Int upperProduct(Int a, Int b) {
  int half = formatOf(a).width / 2;
  uint64_t mask = (uint64_t(1) << half) - 1;
  Int aHigh = shiftDown(a, half), aLow = a & mask;
  Int bHigh = shiftDown(b, half), bLow = b & mask;
  Int middle = aHigh * bLow + shiftDown(aLow * bLow, half);
  Int other = aLow * bHigh + (middle & mask);
  return aHigh * bHigh + shiftDown(middle, half) + shiftDown(other, half);
}

/// Subtracts a multiple of pi/2 from finite x >= 0. The rest is at most pi/4 in magnitude.
static Angle reduceByHalfPi(Float x) {
  // x * 2/pi mod 4, in words: the integer significand of x times as many bits of 2/pi as
  // count, from where the product is below 4. The table has these for x in [1, 2) first;
  // where x is below 1, the significand is halved instead.
  const Format &format = formatOf(x);
  Int exponent = exponentOf(x);
  Bool belowOne = is(exponent, IntPredicate::slt, 0);
  Int significand = (bits(x) & format.fractionMask()) | (format.fractionMask() + 1);
  significand = select(belowOne, significand, significand << 1);
  Int position = select(belowOne, integer(x, 0), exponent & uint64_t(format.bias()));
  Int index = shiftDown(position, format.isWide() ? 6 : 5);
  Int shift = position & uint64_t(format.width - 1);

  ArrayRef<uint64_t> table =
      format.isWide() ? ArrayRef<uint64_t>(twoOverPiWords64) : ArrayRef<uint64_t>(twoOverPiWords32);
  llvm::SmallVector<Int> words;
  for (uint64_t word : table)
    words.push_back(integer(x, word));
  for (uint64_t step = format.isWide() ? 8 : 2; step; step >>= 1) {
    Bool skips = is(index & step, IntPredicate::ne, 0);
    for (uint64_t i = 0; i < step + 3; ++i)
      words[i] = select(skips, words[i + step], words[i]);
  }
  Int otherShift = shift ^ uint64_t(format.width - 1); // with one more it is the word's width
  for (int i = 0; i < 3; ++i)
    words[i] = (words[i] << shift) | shiftDown(shiftDown(words[i + 1], 1), otherShift);

  Int second = significand * words[1];
  Int low = second + upperProduct(significand, words[2]);
  Int carry = select(is(low, IntPredicate::ult, second), integer(x, 1), integer(x, 0));
  Int high = significand * words[0] + upperProduct(significand, words[1]) + carry;

  // The upper two bits are the quadrant, rounded; the others a signed fraction of it.
  int top = format.width - 2;
  Int quadrant = shiftDown(high + (uint64_t(1) << (top - 1)), top);
  high = (high << 2) | shiftDown(low, top);
  low = low << 2;
  int half = format.width / 2;
  uint64_t mask = (uint64_t(1) << half) - 1;
  auto piece = [&](Int digits, int count) {
    return toFloat(digits) * std::ldexp(1.0, -half * count);
  };
  Pair sum = exactSum(piece(high >> half, 1), piece(high & mask, 2));
  Pair more = exactSum(sum.high, piece(shiftDown(low, half), 3));
  Float fraction = more.high;
  Float fractionLow = (sum.low + more.low) + piece(low & mask, 4);

  Float upper = upperHalf(fraction);
  Float lower = (fraction - upper) + fractionLow;
  ArrayRef<double> pieces = pick(x, halfPi);
  double all = pick(x, halfPiPair)[0];
  Pair rest = exactSum(upper * pieces[0], fma(lower, all, upper * pieces[1]));
  Bool small = is(x, FloatPredicate::OLE, pick(x, 0x1.921fb4p-1, 0x1.921fb54442d18p-1));
  Float zero = literal(x, 0.0);
  return {select(small, integer(x, 0), quadrant),
          {select(small, x, rest.high), select(small, zero, rest.low)}};
}

static Float smallSin(Pair x) {
  Float square = x.high * x.high;
  Float tail = polynomial(sinTail, square) * square;
  return x.high + fma(tail, x.high, x.low * fma(square, -0.5, 1.0));
}

static Float smallCos(Pair x) {
  Float square = x.high * x.high;
  Pair sum = exactSum(literal(square, 1.0), square * -0.5);
  Float tail = polynomial(cosTail, square) * square * square;
  return sum.high + (sum.low + (tail - x.high * x.low));
}

static Float changeSign(Float x, Int ifOdd) {
  return fromBits(bits(x) ^ (ifOdd << (formatOf(x).width - 1)));
}

/// Returns the sine of an angle from the sine and cosine of the reduced angle and its
/// quadrant.
static Float sineInQuadrant(Float sine, Float cosine, Int quadrant) {
  Float value = select(is(quadrant & 1, IntPredicate::ne, 0), cosine, sine);
  return changeSign(value, shiftDown(quadrant, 1));
}

static Float unlessInfinite(Float x, Float result) {
  return select(isFinite(x), result, notANumber);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::pair<Float, Float> weir::expression::expandSinCos(Float x) {
  Float a = magnitude(x);
  Angle angle = reduceByHalfPi(a);
  Float sine = smallSin(angle.rest), cosine = smallCos(angle.rest);
  Float sin = sineInQuadrant(sine, cosine, angle.quadrant);
  Float cos = sineInQuadrant(sine, cosine, angle.quadrant + 1);
  Int sign = shiftDown(bits(x), formatOf(x).width - 1);
  return {unlessInfinite(a, changeSign(sin, sign)), unlessInfinite(a, cos)};
}

Float weir::expression::expandSin(Float x) { return expandSinCos(x).first; }
Float weir::expression::expandCos(Float x) { return expandSinCos(x).second; }

Float weir::expression::expandTan(Float x) {
  Float a = magnitude(x);
  Angle angle = reduceByHalfPi(a);
  Float sine = smallSin(angle.rest), cosine = smallCos(angle.rest);
  Bool odd = is(angle.quadrant & 1, IntPredicate::ne, 0);
  Float above = select(odd, cosine, sine), below = select(odd, 0.0 - sine, cosine);
  Int sign = shiftDown(bits(x), formatOf(x).width - 1);
  return unlessInfinite(a, changeSign(above / below, sign));
}

/// Computes count * pi/2 - x.
static Float halfPiLess(Float x, double count) {
  ArrayRef<double> pair = pick(x, halfPiPair);
  return count * pair[0] - (x - count * pair[1]);
}

/// Computes atan for 0 <= t <= 1.
static Float smallAtan(Float t) {
  Float square = t * t;
  return fma(polynomial(atanTail, square) * square, t, t);
}

Float weir::expression::expandAtan(Float x) {
  Float a = magnitude(x);
  Bool inverted = is(a, FloatPredicate::OGT, 1.0);
  Float divisor = select(inverted, atMost(a, 0x1p+100), 1.0);
  Float value = smallAtan(select(inverted, 1.0 / divisor, a));
  return withSignOf(x, select(inverted, halfPiLess(value, 1), value));
}

Float weir::expression::expandAtan2(Float y, Float x) {
  Float a = magnitude(y), b = magnitude(x);
  Bool steep = is(a, FloatPredicate::OGT, b);
  Float less = select(steep, b, a), more = select(steep, a, b);
  // Quotients keep their error only where the divisor is neither huge nor tiny.
  Float factor = select(is(more, FloatPredicate::OGT, 0x1p+100), 0x1p-64, 1.0);
  factor = select(is(more, FloatPredicate::OLT, 0x1p-60), 0x1p+64, factor);
  Bool zero = is(more, FloatPredicate::OEQ, 0.0);
  Bool diagonal = is(less, FloatPredicate::OEQ, infinity);
  Float t = (less * factor) / select(zero, 1.0, more * factor);
  t = select(is(more, FloatPredicate::OEQ, infinity), 0.0, t);
  t = select(diagonal, 1.0, t);
  Float value = smallAtan(t);
  value = select(steep, halfPiLess(value, 1), value);
  value = select(isNegative(x), halfPiLess(value, 2), value);
  return select(isNaN(x) | isNaN(y), notANumber, withSignOf(y, value));
}

/// Computes asin(a) for 0 <= a <= 1/2, or asin(sqrt((1 - a) / 2)) for larger a.
static Float halfAsin(Float a, Bool large) {
  Float square = select(large, (1.0 - a) * 0.5, a * a);
  Float s = select(large, expandSqrt(square), a);
  return fma(polynomial(asinTail, square) * square, s, s);
}

Float weir::expression::expandAsin(Float x) {
  Float a = magnitude(x);
  Bool large = is(a, FloatPredicate::OGT, 0.5);
  Float value = halfAsin(a, large);
  return withSignOf(x, select(large, halfPiLess(value + value, 1), value));
}

Float weir::expression::expandAcos(Float x) {
  Float a = magnitude(x);
  Bool large = is(a, FloatPredicate::OGT, 0.5);
  Float value = halfAsin(a, large), twice = value + value;
  twice = select(isNegative(x), halfPiLess(twice, 2), twice);
  return select(large, twice, halfPiLess(withSignOf(x, value), 1));
}
