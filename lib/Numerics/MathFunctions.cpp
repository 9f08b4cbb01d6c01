//===- MathFunctions.cpp - Weir's own math functions ----------------------===//
//
// Straight-line functions of arith ops and math.fma. Three rules hold throughout:
//
// - No result hangs on math.fma rounding once, since Vulkan lets it round twice. Where a
//   step must be exact, its product is: constants and operands are cut so that it fits.
// - No result hangs on denormals being kept: where a denormal input matters it is read
//   as an integer, and a power of two that scales a result is itself normal.
// - No two operands are reordered; nothing carries fast-math flags.
//
// MathTrigonometry.cpp has the functions of angles. docs/math.md states ranges and errors.
//
//===----------------------------------------------------------------------===//

#include "MathPieces.h"

#include "dialects/Schedule/Schedule.h"

using namespace weir::expression;
using llvm::ArrayRef;

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// Computes 2^k, if that is normal.
static Float powerOfTwo(Int k) {
  return fromBits((k << formatOf(k).fraction) + formatOf(k).oneBits());
}

/// Computes y * 2^k for y near 1, in two steps, since 2^k itself may not be normal.
/// The first product is exact; a target with an instruction for both finds them by the attribute.
static Float scale(Float y, Int k) {
  Int half = k >> 1;
  Float scaled = y * powerOfTwo(half) * powerOfTwo(k - half);
  if (Operation *product = scaled.value.getDefiningOp())
    product->setAttr(weir::schedule::scalesAttrName, y.at->builder.getUnitAttr());
  return scaled;
}

/// Computes x * 2^k for a normal x and result.
static Float addToExponent(Float x, Int k) {
  return fromBits(bits(x) + (k << formatOf(k).fraction));
}

namespace {
/// A value as its nearest multiple of a constant, `count` times it, and the rest.
struct Reduced {
  Int count;
  Float rest;
};

/// A positive value as 2^exponent * significand.
struct Parts {
  Float significand;
  Int exponent;
};

/// 1 / sqrt(m) as guess * (1 + correction), and m as high + low. Products of high or
/// low with guess are exact.
struct InverseRoot {
  Float guess, correction, high, low;
};
} // namespace

/// Returns a number of which the sum with x has no fraction bits: subtracted again, it
/// leaves the nearest integer.
static double roundingShift(Float x) { return pick(x, 0x1.8p+23, 0x1.8p+52); }
static Int roundedCount(Float shifted) {
  uint64_t shift = formatOf(shifted).isWide() ? 0x4338000000000000 : 0x4b400000;
  return bits(shifted) - shift;
}

/// Splits x = count * ln(2) + rest, for |x| < 2^8, in f64 2^10.
static Reduced reduceByLn2(Float x) {
  Float shifted = fma(x, log2E[0] + log2E[1], literal(x, roundingShift(x)));
  Float count = shifted - roundingShift(x);
  ArrayRef<double> pieces = pick(x, ln2);
  Float rest = fma(count, -pieces[0], x); // Exact: count has 8 or 11 bits, ln2[0] 15 or 40.
  return {roundedCount(shifted), fma(count, -pieces[1], rest)};
}

/// Computes e^r - 1 for |r| <= ln(2) / 2.
static Float smallExpm1(Float r) { return fma(polynomial(expTail, r), r * r, r); }

/// Splits x = count + rest for |x| < 2^22.
static Reduced reduceByOne(Float x) {
  Float shifted = x + roundingShift(x);
  Float rest = x - (shifted - roundingShift(x));
  return {roundedCount(shifted), rest};
}

/// Computes 2^r for |r| <= 1/2.
static Float smallExp2(Float r) { return fma(polynomial(exp2Tail, r), r, 1.0); }

/// Returns the bits of `x` >= 0. For denormal x returns those of x * 2^150, in f64 x *
/// 2^1074, and subtracts that exponent, divided by `divisor`, from `exponent`.
static Int normalized(Float x, Int &exponent, int divisor) {
  const Format &format = formatOf(x);
  Int raw = bits(x);
  Bool denormal = is(raw, IntPredicate::ult, format.fractionMask() + 1);
  exponent =
      select(denormal, exponent - uint64_t((format.isWide() ? 1074 : 150) / divisor), exponent);
  return select(denormal, bits(toFloat(format.isWide() ? raw : raw << 1)), raw);
}

/// Cuts a positive value, given as bits. The least significand has the bits `from`.
static Parts cut(Int raw, uint64_t from) {
  int fraction = formatOf(raw).fraction;
  Int exponent = (raw - from) >> fraction;
  return {fromBits(raw - (exponent << fraction)), exponent};
}

/// Returns the bits of sqrt(1/2), the lower end of a significand's range [sqrt(1/2),
/// sqrt(2)).
static uint64_t halfRootBits(const Format &format) {
  return format.isWide() ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
}

/// Splits any positive finite value into an exponent and a significand in [sqrt(1/2),
/// sqrt(2)).
static Parts logParts(Float x) {
  Int shift = integer(x, 0);
  Int raw = normalized(x, shift, 1);
  Parts parts = cut(raw, halfRootBits(formatOf(x)));
  return {parts.significand, parts.exponent + shift};
}

/// Puts the special results of a logarithm of `x` in.
static Float finishLog(Float x, Float result) {
  uint64_t infinityBits = formatOf(x).infinityBits();
  Int raw = bits(x);
  result = select(is(raw, IntPredicate::eq, infinityBits), infinity, result);
  // Unsigned, what is above the infinity is NaN or negative.
  result = select(is(raw, IntPredicate::ugt, infinityBits), notANumber, result);
  return select(is(raw << 1, IntPredicate::eq, 0), -infinity, result);
}

/// Computes the rest of ln(1 + f) = f - square + rest in f64, where square = f^2 / 2, by
/// ln(1 + f) = 2 atanh(s).
static Float logRest(Float f, Float square) {
  Float s = f / (f + 2.0);
  Float z = s * s;
  Float tail = fma(polynomial(atanhTail, z), z, 1.0 / 3) * z; // atanh(s) / s - 1
  return s * (square + (tail + tail));
}

/// Computes ln(1 + f) + exponent * ln(2).
static Float lnOf(Float f, Float exponent) {
  ArrayRef<double> pieces = pick(f, ln2);
  if (formatOf(f).isWide()) {
    Float square = f * 0.5 * f;
    Float low = square - fma(exponent, pieces[1], logRest(f, square));
    return exponent * pieces[0] - (low - f); // The product is exact.
  }
  Float tail = polynomial(logTail, f) * f * f;
  Float low = fma(exponent, pieces[1], tail) + f;
  return fma(exponent, pieces[0], low); // The product is exact.
}

/// Computes ln(1 + f) * unit + exponent * step in f64, where unit[0] has 26 bits and
/// step[0] so few that the product is exact.
static Float logOf(Float f, Float exponent, ArrayRef<double> unit, ArrayRef<double> step) {
  Float square = f * 0.5 * f;
  Float high = upperHalf(f - square);
  Float low = ((f - high) - square) + logRest(f, square);
  Float smaller = (low + high) * unit[1] + low * unit[0] + exponent * step[1];
  Pair sum = exactSum(exponent * step[0], high * unit[0]);
  return sum.high + (sum.low + smaller);
}

static InverseRoot inverseRoot(Float m) {
  // Rounding the guess to 8 bits, in f64 16, makes its square, and that times the upper
  // bits of m, exact: 1 - m * guess^2 comes out with all its bits.
  bool wide = formatOf(m).isWide();
  Float guess = polynomial(rsqrtGuess, m);
  if (wide)
    guess = guess * (1.5 - m * 0.5 * guess * guess);
  int dropped = wide ? 37 : 16;
  Int guessBits = bits(guess) + (uint64_t(1) << (dropped - 1));
  guess = fromBits(guessBits & ~uint64_t(0) << dropped);
  Float square = guess * guess;
  Float high = fromBits(bits(m) & ~uint64_t(0) << (wide ? 32 : 16));
  Float low = m - high;
  Float minusSquare = 0.0 - square;
  Float error = fma(low, minusSquare, fma(high, minusSquare, 1.0));
  return {guess, polynomial(rsqrtTail, error) * error, high, low};
}

/// Splits x into a significand in [1, 4) and half of the remaining exponent of 2.
static Parts rootParts(Float x) {
  const Format &format = formatOf(x);
  Int shift = integer(x, 0);
  Int raw = normalized(x, shift, 2);
  Int half = (raw - format.oneBits()) >> (format.fraction + 1);
  return {fromBits(raw - (half << (format.fraction + 1))), half + shift};
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

Bool weir::expression::isFinite(Float x) {
  return is(bits(magnitude(x)), IntPredicate::ult, formatOf(x).infinityBits());
}
Bool weir::expression::isInfinite(Float x) {
  return is(bits(magnitude(x)), IntPredicate::eq, formatOf(x).infinityBits());
}
Bool weir::expression::isNaN(Float x) {
  return is(bits(magnitude(x)), IntPredicate::ugt, formatOf(x).infinityBits());
}
Bool weir::expression::isNormal(Float x) {
  uint64_t first = formatOf(x).fractionMask() + 1;
  return is(bits(magnitude(x)) - first, IntPredicate::ult, formatOf(x).infinityBits() - first);
}

//===----------------------------------------------------------------------===//
// Exponentials and logarithms
//===----------------------------------------------------------------------===//

/// Computes x - count * ln(2), as above.
static Float restByLn2(Float x, Float count) {
  return fma(count, -ln232[1], fma(count, -ln232[0], x));
}

/// Computes e^x of f32 for bounded x as (1 + expm1(rest)) * 2^count, where fma rounds once: the two
/// powers of two are cut out of the bits of a sum. The bits are those of `scale`.
static Float fusedExp(Float x) {
  constexpr double biases = 2 * 127; // of both powers; even, so that halves round as they did
  double shift = roundingShift(x) + biases;
  Float shifted = fma(x, log2E[0] + log2E[1], literal(x, shift));
  Float power = smallExpm1(restByLn2(x, shifted - shift));
  Int raw = bits(shifted), half = (raw << 22) & formatOf(x).infinityBits();
  Float first = fromBits(half);
  return fma(first, power, first) * fromBits((raw << 23) - half);
}

Float weir::expression::expandExp(Float x) {
  if (x.at->fuses && !formatOf(x).isWide())
    return fusedExp(atMost(atLeast(x, -104.0), 89.0));
  Reduced reduced = reduceByLn2(atMost(atLeast(x, pick(x, -104.0, -746.0)), pick(x, 89.0, 710.0)));
  return scale(smallExpm1(reduced.rest) + 1.0, reduced.count);
}

Float weir::expression::expandExpOfNotPositive(Float x) {
  if (!x.at->fuses || formatOf(x).isWide())
    return expandExp(x);
  // One product by a power that is normal for all counts, and one that may round to a denormal.
  constexpr int more = 25;
  double shift = roundingShift(x) + 127 + more;
  Float bounded = atLeast(x, -104.0);
  Float shifted = fma(bounded, log2E[0] + log2E[1], literal(x, shift));
  Float power = smallExpm1(restByLn2(bounded, shifted - shift));
  Float scale = fromBits(bits(shifted) << 23);
  return fma(scale, power, scale) * std::ldexp(1.0, -more);
}

/// Returns the largest x for which 2^x is zero.
static double minPower(Float x) { return pick(x, -151.0, -1076.0); }
static double maxPower(Float x) { return pick(x, 129.0, 1025.0); }

Float weir::expression::expandExp2(Float x) {
  Reduced reduced = reduceByOne(atMost(atLeast(x, minPower(x)), maxPower(x)));
  return scale(smallExp2(reduced.rest), reduced.count);
}

Float weir::expression::expandExpm1(Float x) {
  Reduced reduced = reduceByLn2(atMost(atLeast(x, pick(x, -18.0, -38.0)), pick(x, 89.0, 710.0)));
  // 2^(count - 1) is finite even where 2^count isn't.
  Float power = powerOfTwo(reduced.count - 1);
  Float result = fma(power, smallExpm1(reduced.rest), power - 0.5);
  // Halving and doubling would lose the bits, and the sign, of the smallest inputs.
  return select(is(magnitude(x), FloatPredicate::OLT, pick(x, 0x1p-25, 0x1p-54)), x,
                result + result);
}

Float weir::expression::expandLog(Float x) {
  Parts parts = logParts(x);
  return finishLog(x, lnOf(parts.significand - 1.0, toFloat(parts.exponent)));
}

Float weir::expression::expandLog2(Float x) {
  Parts parts = logParts(x);
  Float f = parts.significand - 1.0;
  Float exponent = toFloat(parts.exponent);
  if (formatOf(x).isWide())
    return finishLog(x, logOf(f, exponent, log2E, {1.0, 0.0}));
  // log2(1 + f) = f + f * tail: the first term is exact.
  Float fraction = fma(polynomial(log2Tail, f), f, f);
  return finishLog(x, fraction + exponent);
}

Float weir::expression::expandLog10(Float x) {
  Parts parts = logParts(x);
  Float f = parts.significand - 1.0;
  Float exponent = toFloat(parts.exponent);
  ArrayRef<double> pieces = pick(x, log10Of2);
  if (formatOf(x).isWide())
    return finishLog(x, logOf(f, exponent, log10E, pieces));
  // log10(1 + f) = f / 2 + f * tail: the first term is exact.
  Float low = fma(exponent, pieces[1], polynomial(log10Tail, f) * f);
  return finishLog(x, fma(exponent, pieces[0], fma(f, 0.5, low)));
}

Float weir::expression::expandLog1p(Float x) {
  const Format &format = formatOf(x);
  Float sum = x + 1.0;
  Parts parts = cut(bits(sum), halfRootBits(format));
  // 1 + x = 2^k * (1 + f) with f = x * 2^-k + (2^-k - 1): rounding of the sum does not
  // matter. Once x alone is as good, 2^-k may be too small.
  Float inverse = fromBits(format.oneBits() - (parts.exponent << format.fraction));
  Float f = fma(inverse, x, inverse - 1.0);
  f = select(is(parts.exponent, IntPredicate::sgt, 64), parts.significand - 1.0, f);
  Float result = lnOf(f, toFloat(parts.exponent));
  result = select(is(x, FloatPredicate::OEQ, infinity), x, result);
  result = select(is(x, FloatPredicate::OEQ, -1.0), -infinity, result);
  result = select(is(x, FloatPredicate::ULT, -1.0), notANumber, result);
  return select(is(magnitude(x), FloatPredicate::OLT, pick(x, 0x1p-25, 0x1p-54)), x, result);
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

Float weir::expression::expandSqrt(Float x) {
  Parts parts = rootParts(x);
  InverseRoot root = inverseRoot(parts.significand);
  Float high = root.high * root.guess, low = root.low * root.guess;
  Float value = high + fma(parts.significand * root.guess, root.correction, low);
  Float result = addToExponent(value, parts.exponent);
  Int raw = bits(x);
  uint64_t infinityBits = formatOf(x).infinityBits();
  result = select(is(raw, IntPredicate::eq, infinityBits), x, result);
  result = select(is(raw, IntPredicate::ugt, infinityBits), notANumber, result);
  return select(is(raw << 1, IntPredicate::eq, 0), x, result);
}

Float weir::expression::expandRsqrt(Float x) {
  Parts parts = rootParts(x);
  InverseRoot root = inverseRoot(parts.significand);
  Float value = fma(root.guess, root.correction, root.guess);
  Float result = addToExponent(value, 0 - parts.exponent);
  Int raw = bits(x);
  uint64_t infinityBits = formatOf(x).infinityBits();
  result = select(is(raw, IntPredicate::eq, infinityBits), 0.0, result);
  result = select(is(raw, IntPredicate::ugt, infinityBits), notANumber, result);
  return select(is(raw << 1, IntPredicate::eq, 0), withSignOf(x, literal(x, infinity)), result);
}

Float weir::expression::expandCbrt(Float x) {
  const Format &format = formatOf(x);
  Float a = magnitude(x);
  Int shift = integer(x, 0);
  Int raw = normalized(a, shift, 3);
  // The significand in [1, 8); a third of the exponent, made positive, by a product.
  int min = (format.bias() + 2) / 3;
  Int biased = shiftDown(raw, format.fraction) + uint64_t(3 * min - format.bias());
  Int third = shiftDown(biased * 43691, 17) - uint64_t(min);
  Float m = fromBits(raw - ((third + (third << 1)) << format.fraction));
  // Rounding the guess to 8 bits, in f64 17, makes its cube exact.
  Float guess = polynomial(cbrtGuess, m);
  if (format.isWide())
    guess = guess - (guess - m / (guess * guess)) * (1.0 / 3);
  int dropped = format.isWide() ? 36 : 16;
  Int guessBits = bits(guess) + (uint64_t(1) << (dropped - 1));
  guess = fromBits(guessBits & ~uint64_t(0) << dropped);
  Float cube = guess * guess * guess;
  Float error = (m - cube) / cube;
  Float value = fma(guess * error, polynomial(cbrtTail, error), guess);
  Float result = withSignOf(x, addToExponent(value, third + shift));
  Bool plain = is(bits(a) - 1, IntPredicate::ult, format.infinityBits() - 1);
  return select(plain, result, x);
}

//===----------------------------------------------------------------------===//
// Error functions
//===----------------------------------------------------------------------===//

/// Computes erf for |x| <= 1.
static Float smallErf(Float x) {
  Float result = fma(polynomial(erfTail, x * x), x, x);
  // The sum above would lose a term that is denormal.
  double slope = 1.0 + pick(x, erfTail)[0];
  return select(is(magnitude(x), FloatPredicate::OLT, 0x1p-60), x * slope, result);
}

/// Computes erfc for x >= 0.49.
static Float largeErfc(Float x) {
  Float a = atMost(x, pick(x, 10.2, 28.0));
  // One division is for both the polynomial's variable, (a - c) / (a + c), and the factor.
  double c = pick(a, 0.5, 2.0);
  Float share = 1.0 / (a + c);
  Float factor = polynomial(erfcTail, fma(share, -2.0 * c, 1.0)) * share;
  // exp(-a^2), with a^2 in two pieces.
  Float high = upperHalf(a);
  Float square = high * high, low = (a - high) * (a + high);
  Reduced reduced = reduceByLn2(0.0 - square);
  Float power = smallExpm1(reduced.rest - low);
  return scale(fma(factor, power, factor), reduced.count);
}

Float weir::expression::expandErf(Float x) {
  Float a = magnitude(x);
  Float small = smallErf(a);
  Float large = small;
  if (formatOf(x).isWide()) {
    large = 1.0 - largeErfc(a);
  } else {
    Reduced reduced = reduceByOne(polynomial(erfcLog2, atMost(a, 4.0)));
    Float power = 0.0 - powerOfTwo(reduced.count);
    large = fma(power, smallExp2(reduced.rest), 1.0);
  }
  return withSignOf(x, select(is(a, FloatPredicate::OLT, 1.0), small, large));
}

Float weir::expression::expandErfc(Float x) {
  Float a = magnitude(x);
  Float large = largeErfc(a);
  large = select(isNegative(x), 2.0 - large, large);
  return select(is(a, FloatPredicate::OLT, 0.5), 1.0 - smallErf(x), large);
}

//===----------------------------------------------------------------------===//
// Hyperbolic functions
//===----------------------------------------------------------------------===//

Float weir::expression::expandTanh(Float x) {
  Float a = magnitude(x);
  Float square = a * a;
  Float small = fma(polynomial(tanhTail, square) * square, a, a);
  Float bounded = atMost(a, pick(x, 10.0, 20.0));
  Reduced reduced = reduceByLn2(bounded + bounded);
  Float power = powerOfTwo(reduced.count);
  Float squaredExp = fma(power, smallExpm1(reduced.rest), power);
  Float large = 1.0 - 2.0 / (squaredExp + 1.0);
  return withSignOf(x, select(is(a, FloatPredicate::OLT, 0.55), small, large));
}

/// Computes e^a / 4 and e^-a / 4 for a >= 0.
static std::pair<Float, Float> quarterExps(Float a) {
  Reduced reduced = reduceByLn2(atMost(a, pick(a, 89.5, 710.6)));
  Float power = powerOfTwo(reduced.count - 2);
  Float quarter = fma(power, smallExpm1(reduced.rest), power);
  return {quarter, 0x1p-4 / atMost(quarter, 0x1p+100)};
}

Float weir::expression::expandSinh(Float x) {
  Float a = magnitude(x);
  Float square = a * a;
  Float small = fma(polynomial(sinhTail, square) * square, a, a);
  auto [growing, falling] = quarterExps(a);
  Float large = (growing - falling) * 2.0;
  return withSignOf(x, select(is(a, FloatPredicate::OLT, 1.0), small, large));
}

Float weir::expression::expandCosh(Float x) {
  auto [growing, falling] = quarterExps(magnitude(x));
  return (growing + falling) * 2.0;
}

/// Computes ln(1 + x), or ln(2x) if `doubles`, for x >= 0, which must then be large.
static Float log1pOrDouble(Float x, Bool doubles) {
  ArrayRef<double> pieces = pick(x, ln2);
  return expandLog1p(x) + select(doubles, pieces[0] + pieces[1], 0.0);
}

/// Returns the smallest x for which x + 1 rounds to x, and the root of x^2 + 1, too.
static double rootLimit(Float x) { return pick(x, 0x1p+28, 0x1p+60); }

Float weir::expression::expandAsinh(Float x) {
  Float a = magnitude(x);
  Bool large = is(a, FloatPredicate::OGT, rootLimit(x));
  Float bounded = atMost(a, rootLimit(x));
  Float square = bounded * bounded;
  Float sum = bounded + square / (expandSqrt(square + 1.0) + 1.0);
  return withSignOf(x, log1pOrDouble(select(large, a, sum), large));
}

Float weir::expression::expandAcosh(Float x) {
  Bool large = is(x, FloatPredicate::OGT, rootLimit(x));
  Float t = atMost(x, rootLimit(x)) - 1.0;
  Float sum = t + expandSqrt(t * (t + 2.0));
  Float result = log1pOrDouble(select(large, x, sum), large);
  return select(is(x, FloatPredicate::ULT, 1.0), notANumber, result);
}

Float weir::expression::expandAtanh(Float x) {
  Float a = magnitude(x);
  Bool inside = is(a, FloatPredicate::OLT, 1.0);
  Float result = expandLog1p((a + a) / select(inside, 1.0 - a, 1.0)) * 0.5;
  Float outside = select(is(a, FloatPredicate::OEQ, 1.0), infinity, notANumber);
  return withSignOf(x, select(inside, result, outside));
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

/// Computes log2(a) to about 1.3 times the bits of its type, for a > 0.
static Pair log2Of(Float a) {
  // With m = (1 + s) / (1 - s), log2(m) = 2 log2(e) * atanh(s), s = sHigh + sLow where
  // sHigh has half the bits. The terms s and s^3 / 3 are taken in two pieces each.
  Parts parts = logParts(a);
  Float m = parts.significand;
  Float f = m - 1.0;
  Float sum = m + 1.0;
  Float sumRest = m - (sum - 1.0);
  Float inverse = 1.0 / sum;
  Float sHigh = upperHalf(f * inverse);
  Float minusS = 0.0 - sHigh;
  Float sumHigh = upperHalf(sum);
  Float rest = fma(minusS, sumHigh, f);
  rest = fma(minusS, sum - sumHigh, rest);
  rest = fma(minusS, sumRest, rest);
  Float sLow = rest * inverse;
  Float s = sHigh + sLow;
  Float square = s * s;
  Float tail = polynomial(atanhTail, square) * square * square * s;
  Float squareHigh = sHigh * sHigh, squareUpper = upperHalf(squareHigh);
  Float product = squareUpper * sHigh, cube = upperHalf(product);
  Float cubeRest = fma(squareHigh - squareUpper, sHigh, sHigh * s * 3.0 * sLow) + (product - cube);

  ArrayRef<double> two = pick(a, twoLog2E), third = pick(a, twoThirdsLog2E);
  Float low = fma(tail + sLow, two[0] + two[1], sHigh * two[1]);
  low = low + fma(cubeRest, third[0] + third[1], cube * third[1]);
  Pair fraction = exactSum(sHigh * two[0], cube * third[0]);
  Pair whole = exactSum(toFloat(parts.exponent), fraction.high);
  return exactSum(whole.high, whole.low + (fraction.low + low));
}

/// Computes a^y for a >= 0. y is yHigh + yRest, where yHigh has half the bits.
static Float power(Float a, Float y, Float yHigh, Float yRest) {
  const Format &format = formatOf(a);
  Pair log = log2Of(a);
  Float product = y * log.high;
  Float logHigh = upperHalf(log.high), logRest = (log.high - logHigh) + log.low;
  double min = minPower(a), max = maxPower(a);
  Reduced reduced = reduceByOne(atMost(atLeast(product, min), max));
  Float fraction = yHigh * logHigh - toFloat(reduced.count);
  fraction = fraction + fma(yRest, log.high, yHigh * logRest);
  Float result = scale(smallExp2(fraction), reduced.count);
  // Past these the fraction may be anything.
  result = select(is(product, FloatPredicate::OGE, max), infinity, result);
  result = select(is(product, FloatPredicate::OLE, min), 0.0, result);

  Int raw = bits(a);
  Bool yNegative = isNegative(y);
  result = select(is(raw, IntPredicate::eq, format.oneBits()), 1.0, result);
  result = select(is(raw, IntPredicate::eq, 0), select(yNegative, infinity, 0.0), result);
  return select(is(raw, IntPredicate::eq, format.infinityBits()), select(yNegative, 0.0, infinity),
                result);
}

Float weir::expression::expandPow(Float x, Float y) {
  Float a = magnitude(x);
  Float yHigh = upperHalf(y);
  Float result = power(a, y, yHigh, y - yHigh);

  // Negative x: only an integer power has a value, and an odd one is negative.
  Float yHalf = y * 0.5;
  Bool integral = is(truncate(y), FloatPredicate::OEQ, y);
  Bool odd = is(truncate(yHalf), FloatPredicate::ONE, yHalf);
  Int flip = bits(select(isNegative(x) & integral & odd, -0.0, 0.0));
  result = fromBits(bits(result) ^ flip);
  Bool fractional = is(truncate(y), FloatPredicate::ONE, y);
  Bool finite = is(bits(a) - 1, IntPredicate::ult, formatOf(x).infinityBits() - 1);
  result = select(isNegative(x) & finite & fractional, notANumber, result);

  result = select(isNaN(x) | isNaN(y), notANumber, result);
  result = select(is(bits(y) << 1, IntPredicate::eq, 0), 1.0, result);
  return select(is(bits(x), IntPredicate::eq, formatOf(x).oneBits()), 1.0, result);
}

Float weir::expression::expandPow(Float x, Int n, Bool odd) {
  Float y = toFloat(n), yHigh = upperHalf(y);
  Float result = power(magnitude(x), y, yHigh, toFloat(n - toInt(yHigh)));
  result = select(odd, withSignOf(x, result), result);
  result = select(isNaN(x), notANumber, result);
  return select(is(n, IntPredicate::eq, 0), 1.0, result);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Float weir::expression::expandRound(Float x) {
  Float whole = truncate(x);
  Float rest = magnitude(x - whole);
  Float step = select(is(rest, FloatPredicate::OGE, 0.5), 1.0, literal(x, 0.0));
  return withSignOf(x, magnitude(whole) + step);
}

Float weir::expression::expandRemainder(Float x, Float y) {
  // On integers: |x| = m * 2^k and |y| = n * 2^l, and the loop takes m * 2^(k - l) mod n, a
  // few bits of the power at a time, as many as a word has left above the significand.
  const Format &format = formatOf(x);
  int spare = format.width - format.fraction - 1;
  int trips = (2 * format.bias() + spare - 1) / spare;
  Int xBits = bits(magnitude(x)), yBits = bits(magnitude(y));
  auto exponent = [&](Int raw) { return larger(shiftDown(raw, format.fraction), 1); };
  auto significand = [&](Int raw) {
    uint64_t first = format.fractionMask() + 1;
    Bool denormal = is(raw, IntPredicate::ult, first);
    return select(denormal, raw, (raw & format.fractionMask()) | first);
  };
  Int divisor = larger(significand(yBits), 1);
  Int xExponent = exponent(xBits), yExponent = exponent(yBits);
  auto [rest, left] =
      repeat(trips, remainder(significand(xBits), divisor), larger(xExponent - yExponent, 0),
             [&](Int rest, Int left) -> std::pair<Int, Int> {
               Int now = smaller(left, spare);
               return {remainder(rest << now, divisor), left - now};
             });
  Int unit = yExponent - uint64_t(format.bias() + format.fraction);
  Float result = withSignOf(x, scale(toFloat(rest), unit));
  result = select(is(xBits, IntPredicate::ult, yBits), x, result);
  Bool none = is(xBits, IntPredicate::uge, format.infinityBits()) |
              is(yBits, IntPredicate::ugt, format.infinityBits()) | is(yBits, IntPredicate::eq, 0);
  return select(none, notANumber, result);
}
