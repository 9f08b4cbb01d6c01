//===- Math.cpp - Weir's own math functions -------------------------------===//
//
// Straight-line f32 functions of arith ops and math.fma. Three rules hold throughout:
//
// - No result hangs on math.fma rounding once, since Vulkan lets it round twice. Where a
//   step must be exact, its product is: constants and operands are cut so that it fits.
// - No result hangs on denormals being kept: where a denormal input matters it is read
//   as an integer, and a power of two that scales a result is itself normal.
// - No two operands are reordered; nothing carries fast-math flags.
//
// docs/math.md states ranges and errors.
//
//===----------------------------------------------------------------------===//

#include "weir/Kernels/Math.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

#include <bit>
#include <limits>

using namespace mlir;

//===----------------------------------------------------------------------===//
// Coefficients, as scripts/fit-math.py prints them
//===----------------------------------------------------------------------===//

// clang-format off
// On [-0.34692, 0.34692], error 0.231 * 2^-24.
static constexpr float expTail[] = {0x1.fffffep-2f, 0x1.5554b4p-3f, 0x1.5556f2p-5f, 0x1.12256p-7f, 0x1.6b9caap-10f};
// On [-0.5005, 0.5005], error 0.0525 * 2^-24.
static constexpr float exp2Tail[] = {0x1.62e43p-1f, 0x1.ebfbep-3f, 0x1.c6af7ap-5f, 0x1.3b2a28p-7f, 0x1.5f098ep-10f, 0x1.4447bcp-13f};
// On [-0.29299, 0.41431], error 0.0703 * 2^-24.
static constexpr float logTail[] = {-0x1.fffff8p-2f, 0x1.55555p-2f, -0x1.000438p-2f, 0x1.99a428p-3f, -0x1.542422p-3f, 0x1.226b38p-3f, -0x1.0f4cc8p-3f, 0x1.087d1ep-3f, -0x1.384d88p-4f};
// On [-0.29299, 0.41431], error 0.123 * 2^-24.
static constexpr float log2Tail[] = {0x1.c551dap-2f, -0x1.715476p-1f, 0x1.ec7024p-2f, -0x1.7156d2p-2f, 0x1.278b62p-2f, -0x1.eb68bap-3f, 0x1.a222f2p-3f, -0x1.81ace8p-3f, 0x1.7ea972p-3f, -0x1.dc1a76p-4f};
// On [-0.29299, 0.41431], error 0.105 * 2^-24.
static constexpr float log10Tail[] = {-0x1.0d213ap-4f, -0x1.bcb7b2p-3f, 0x1.287a5p-3f, -0x1.bcbad8p-4f, 0x1.63d44p-4f, -0x1.27c6d2p-4f, 0x1.f887a4p-5f, -0x1.d2a6ecp-5f, 0x1.c8b85ep-5f, -0x1.158056p-5f};
// On [0.001, 0.5505], error 0.019 * 2^-24.
static constexpr float tanhTail[] = {-0x1.55554ap-2f, 0x1.110cfp-3f, -0x1.b91f2ap-5f, 0x1.58ed88p-6f, -0x1.9962p-8f};
// On [0.001, 1], error 0.0239 * 2^-24.
static constexpr float erfTail[] = {0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2ce6p-4f, -0x1.b7f71ap-6f, 0x1.53f224p-8f, -0x1.a3515ep-11f, 0x1.4771fcp-14f};
// On [1, 4], error 0.000405 * 2^-24.
static constexpr float erfcLog2[] = {0x1.1d1bb6p-12f, -0x1.a13014p+0f, -0x1.d3bb4cp-1f, -0x1.4058fep-3f, 0x1.29f2a6p-5f, -0x1.8d9868p-8f, 0x1.4de87p-11f, -0x1.068f6ap-15f};
// On [0.001, 0.787], error 0.0698 * 2^-24.
static constexpr float sinTail[] = {-0x1.555544p-3f, 0x1.1106c6p-7f, -0x1.991c16p-13f};
// On [0.001, 0.787], error 0.00201 * 2^-24.
static constexpr float cosTail[] = {0x1.55554ap-5f, -0x1.6c0c26p-10f, 0x1.99e714p-16f};
// On [1, 4], error 1.18e+05 * 2^-24.
static constexpr float rsqrtGuess[] = {0x1.8e623cp+0f, -0x1.7a4c22p-1f, 0x1.8eb72ap-3f, -0x1.381fp-6f};
// On [-0.026, 0.026], error 0.00352 * 2^-24.
static constexpr float rsqrtTail[] = {0x1.fffffep-2f, 0x1.7ffffcp-2f, 0x1.403412p-2f, 0x1.183ec4p-2f};
// On [0.001, 0.1717], error 0.000417 * 2^-24.
static constexpr float atanhTail[] = {0x1.555554p-2f, 0x1.999c26p-3f, 0x1.23d3e6p-3f, 0x1.f13996p-4f};
// On [0.001, 1], error 0.281 * 2^-24.
static constexpr float atanTail[] = {-0x1.5554dcp-2f, 0x1.9978ecp-3f, -0x1.230a96p-3f, 0x1.b4dedep-4f, -0x1.35519p-4f, 0x1.61f14p-5f, -0x1.0c1c26p-6f, 0x1.7eb1a4p-9f};
static constexpr float ln2[] = {0x1.62e4p-1f, 0x1.7f7d1cp-20f};
static constexpr float log10Of2[] = {0x1.344p-2f, 0x1.3509f8p-18f};
static constexpr float halfPi[] = {0x1.92p+0f, 0x1.fcp-12f, -0x1.58p-21f, 0x1.1p-30f, 0x1.68p-39f, 0x1.84698ap-48f};
static constexpr float twoLog2E[] = {0x1.716p+1f, -0x1.7135a8p-12f};
static constexpr float log2E = 0x1.715476p+0f;
static constexpr float twoOverPi = 0x1.45f306p-1f;
static constexpr float halfPiPair[] = {0x1.921fb6p+0f, -0x1.777a5cp-25f};
// clang-format on

static constexpr float infinity = std::numeric_limits<float>::infinity();
static constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
static constexpr uint32_t signBit = 0x80000000;
static constexpr uint32_t infinityBits = 0x7f800000;
static constexpr uint32_t oneBits = 0x3f800000;
/// Where a significand's range [sqrt(1/2), sqrt(2)) begins.
static constexpr uint32_t halfRootBits = 0x3f3504f3;
/// Added to a float below 2^22 in magnitude, leaves its nearest integer in the low bits.
static constexpr float roundingShift = 0x1.8p+23f;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

namespace {
/// Where and in which shape the ops of one expansion are made.
struct Place {
  OpBuilder &builder;
  Location loc;
  /// f32 or a vector of it, and the i32 type of the same shape.
  Type floats, ints;

  Place(OpBuilder &builder, Location loc, Type floats)
      : builder(builder), loc(loc), floats(floats), ints(builder.getI32Type()) {
    if (auto vector = dyn_cast<VectorType>(floats))
      ints = vector.clone(builder.getI32Type());
  }

  Value constant(Type type, Attribute element) const {
    TypedAttr value = cast<TypedAttr>(element);
    if (auto shaped = dyn_cast<ShapedType>(type))
      value = DenseElementsAttr::get(shaped, element);
    return arith::ConstantOp::create(builder, loc, value);
  }
};

struct Float {
  const Place *at;
  Value value;
};

struct Int {
  const Place *at;
  Value value;
};

struct Bool {
  const Place *at;
  Value value;
};

using FloatPredicate = arith::CmpFPredicate;
using IntPredicate = arith::CmpIPredicate;
} // namespace

static Float literal(Float like, float value) {
  return {like.at, like.at->constant(like.at->floats, like.at->builder.getF32FloatAttr(value))};
}
static Int literal(Int like, uint32_t value) {
  return {like.at,
          like.at->constant(like.at->ints, like.at->builder.getI32IntegerAttr(int32_t(value)))};
}

template <typename Op, typename T> static T binary(T a, T b) {
  return {a.at, Op::create(a.at->builder, a.at->loc, a.value, b.value)};
}

static Float operator+(Float a, Float b) { return binary<arith::AddFOp>(a, b); }
static Float operator-(Float a, Float b) { return binary<arith::SubFOp>(a, b); }
static Float operator*(Float a, Float b) { return binary<arith::MulFOp>(a, b); }
static Float operator/(Float a, Float b) { return binary<arith::DivFOp>(a, b); }
static Float operator+(Float a, float b) { return a + literal(a, b); }
static Float operator-(Float a, float b) { return a - literal(a, b); }
static Float operator*(Float a, float b) { return a * literal(a, b); }
static Int operator+(Int a, Int b) { return binary<arith::AddIOp>(a, b); }
static Int operator-(Int a, Int b) { return binary<arith::SubIOp>(a, b); }
static Int operator&(Int a, uint32_t b) { return binary<arith::AndIOp>(a, literal(a, b)); }
static Int operator|(Int a, Int b) { return binary<arith::OrIOp>(a, b); }
static Int operator^(Int a, Int b) { return binary<arith::XOrIOp>(a, b); }
static Int operator+(Int a, uint32_t b) { return a + literal(a, b); }
static Int operator-(Int a, uint32_t b) { return a - literal(a, b); }
static Int operator-(uint32_t a, Int b) { return literal(b, a) - b; }
static Int operator<<(Int a, uint32_t b) { return binary<arith::ShLIOp>(a, literal(a, b)); }
/// Keeps the sign.
static Int operator>>(Int a, uint32_t b) { return binary<arith::ShRSIOp>(a, literal(a, b)); }
static Bool operator&(Bool a, Bool b) { return binary<arith::AndIOp>(a, b); }

static Float fma(Float a, Float b, Float c) {
  return {a.at, math::FmaOp::create(a.at->builder, a.at->loc, a.value, b.value, c.value)};
}
static Float fma(Float a, float b, Float c) { return fma(a, literal(a, b), c); }
static Float fma(Float a, Float b, float c) { return fma(a, b, literal(a, c)); }
static Float fma(Float a, float b, float c) { return fma(a, literal(a, b), literal(a, c)); }

static Int bits(Float a) {
  return {a.at, arith::BitcastOp::create(a.at->builder, a.at->loc, a.at->ints, a.value)};
}
static Float fromBits(Int a) {
  return {a.at, arith::BitcastOp::create(a.at->builder, a.at->loc, a.at->floats, a.value)};
}
static Float toFloat(Int a) {
  return {a.at, arith::SIToFPOp::create(a.at->builder, a.at->loc, a.at->floats, a.value)};
}
static Float truncate(Float a) {
  return {a.at, math::TruncOp::create(a.at->builder, a.at->loc, a.value)};
}

static Bool is(Float a, FloatPredicate predicate, Float b) {
  return {a.at, arith::CmpFOp::create(a.at->builder, a.at->loc, predicate, a.value, b.value)};
}
static Bool is(Float a, FloatPredicate predicate, float b) {
  return is(a, predicate, literal(a, b));
}
static Bool is(Int a, IntPredicate predicate, uint32_t b) {
  return {a.at,
          arith::CmpIOp::create(a.at->builder, a.at->loc, predicate, a.value, literal(a, b).value)};
}

template <typename T> static T select(Bool condition, T yes, T no) {
  return {condition.at, arith::SelectOp::create(condition.at->builder, condition.at->loc,
                                                condition.value, yes.value, no.value)};
}
static Float select(Bool condition, float yes, Float no) {
  return select(condition, literal(no, yes), no);
}
static Float select(Bool condition, Float yes, float no) {
  return select(condition, yes, literal(yes, no));
}
static Float select(Bool condition, float yes, float no) {
  Float like{condition.at, {}};
  return select(condition, literal(like, yes), literal(like, no));
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// The polynomial with `coefficients`, lowest degree first, by Horner's rule.
static Float polynomial(ArrayRef<float> coefficients, Float x) {
  Float sum = fma(x, coefficients.back(), *std::next(coefficients.rbegin()));
  for (float coefficient : llvm::reverse(coefficients.drop_back(2)))
    sum = fma(sum, x, coefficient);
  return sum;
}

/// Both keep NaN, for which the comparison is false.
static Float atMost(Float x, float bound) {
  return select(is(x, FloatPredicate::OGT, bound), bound, x);
}
static Float atLeast(Float x, float bound) {
  return select(is(x, FloatPredicate::OLT, bound), bound, x);
}

static Float magnitude(Float x) { return fromBits(bits(x) & ~signBit); }

/// `x`, which is not negative, with the sign bit of `of`.
static Float withSignOf(Float of, Float x) { return fromBits(bits(x) | (bits(of) & signBit)); }

/// 2^k, for k in [-126, 127].
static Float powerOfTwo(Int k) { return fromBits((k << 23) + oneBits); }

/// y * 2^k for y near 1: in two steps, as 2^k itself may not be normal.
static Float scale(Float y, Int k) {
  Int half = k >> 1;
  return y * powerOfTwo(half) * powerOfTwo(k - half);
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

/// x = count * ln(2) + rest, for |x| < 2^8.
static Reduced reduceByLn2(Float x) {
  Float shifted = fma(x, log2E, roundingShift);
  Float count = shifted - roundingShift;
  Float rest = fma(count, -ln2[0], x); // Exact: count has 8 bits, ln2[0] 15.
  return {bits(shifted) - std::bit_cast<uint32_t>(roundingShift), fma(count, -ln2[1], rest)};
}

/// e^r - 1, for |r| <= ln(2) / 2.
static Float smallExpm1(Float r) { return fma(polynomial(expTail, r), r * r, r); }

/// x = count + rest, for |x| < 2^22.
static Reduced reduceByOne(Float x) {
  Float shifted = x + roundingShift;
  Float rest = x - (shifted - roundingShift);
  return {bits(shifted) - std::bit_cast<uint32_t>(roundingShift), rest};
}

/// 2^r, for |r| <= 1/2.
static Float smallExp2(Float r) { return fma(polynomial(exp2Tail, r), r, 1.0f); }

/// The bits of `x` >= 0, those of x * 2^150 where x is denormal. `exponent` is added
/// where that is so.
static Int normalized(Float x, Int &exponent, uint32_t addend) {
  Int raw = bits(x);
  Bool denormal = is(raw, IntPredicate::ult, 0x00800000);
  exponent = select(denormal, exponent + addend, exponent);
  return select(denormal, bits(toFloat(raw << 1)), raw);
}

/// Cuts a positive value, given as bits. The least significand has the bits `from`.
static Parts cut(Int raw, uint32_t from) {
  Int exponent = (raw - from) >> 23;
  return {fromBits(raw - (exponent << 23)), exponent};
}

/// The significand in [sqrt(1/2), sqrt(2)), from any positive finite value.
static Parts logParts(Float x) {
  Int shift = literal(Int{x.at, {}}, 0);
  Int raw = normalized(x, shift, uint32_t(-150));
  Parts parts = cut(raw, halfRootBits);
  return {parts.significand, parts.exponent + shift};
}

/// Puts the special results of a logarithm of `x` in.
static Float finishLog(Float x, Float result) {
  Int raw = bits(x);
  result = select(is(raw, IntPredicate::eq, infinityBits), infinity, result);
  // Unsigned, what is above the infinity is NaN or negative.
  result = select(is(raw, IntPredicate::ugt, infinityBits), notANumber, result);
  return select(is(raw << 1, IntPredicate::eq, 0), -infinity, result);
}

/// ln(1 + f) + exponent * ln(2).
static Float lnOf(Float f, Float exponent) {
  Float tail = polynomial(logTail, f) * f * f;
  Float low = fma(exponent, ln2[1], tail) + f;
  return fma(exponent, ln2[0], low); // The product is exact.
}

static InverseRoot inverseRoot(Float m) {
  // Rounding the guess to 8 bits makes its square, and that times the upper 8 bits of m,
  // exact: 1 - m * guess^2 comes out with all its bits.
  Int guessBits = bits(polynomial(rsqrtGuess, m)) + 0x8000u;
  Float guess = fromBits(guessBits & 0xffff0000);
  Float square = guess * guess;
  Float high = fromBits(bits(m) & 0xffff0000);
  Float low = m - high;
  Float minusSquare = literal(m, 0.0f) - square;
  Float error = fma(low, minusSquare, fma(high, minusSquare, 1.0f));
  return {guess, polynomial(rsqrtTail, error) * error, high, low};
}

/// The significand in [1, 4) and half of the exponent of 2 that goes with it.
static Parts rootParts(Float x) {
  Int shift = literal(Int{x.at, {}}, 0);
  Int raw = normalized(x, shift, uint32_t(-75));
  Int half = (raw - oneBits) >> 24;
  return {fromBits(raw - (half << 24)), half + shift};
}

/// |x| = count * pi/2 + rest, for |x| <= 100000; else count is anything.
static Reduced reduceByHalfPi(Float x) {
  Float shifted = fma(x, twoOverPi, roundingShift);
  Float count = shifted - roundingShift;
  Float rest = x;
  // Every piece but the last has 8 bits and count has 16, so these products are exact.
  for (float piece : halfPi)
    rest = fma(count, -piece, rest);
  return {bits(shifted), rest};
}

/// sin or cos of an angle reduced to `rest`, in the quadrant `count`.
static Float sineInQuadrant(Float rest, Int count) {
  Float square = rest * rest;
  Float sine = fma(polynomial(sinTail, square) * square, rest, rest);
  Float cosine = fma(fma(polynomial(cosTail, square), square, -0.5f), square, 1.0f);
  Float value = select(is(count & 1, IntPredicate::ne, 0), cosine, sine);
  return fromBits(bits(value) ^ ((count & 2) << 30));
}

/// Beyond the range of the reduction an answer would be wrong, so there is none.
static Float inAngleRange(Float x, Float result) {
  return select(is(x, FloatPredicate::OLE, 100000.0f), result, notANumber);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static Float expandExp(Float x) {
  Reduced reduced = reduceByLn2(atMost(atLeast(x, -104.0f), 89.0f));
  return scale(smallExpm1(reduced.rest) + 1.0f, reduced.count);
}

static Float expandExp2(Float x) {
  Reduced reduced = reduceByOne(atMost(atLeast(x, -151.0f), 129.0f));
  return scale(smallExp2(reduced.rest), reduced.count);
}

static Float expandExpm1(Float x) {
  Reduced reduced = reduceByLn2(atMost(atLeast(x, -18.0f), 89.0f));
  // 2^(count - 1) is finite even where 2^count isn't.
  Float power = powerOfTwo(reduced.count - 1u);
  Float result = fma(power, smallExpm1(reduced.rest), power - 0.5f);
  // Halving and doubling would lose the bits, and the sign, of the smallest inputs.
  return select(is(magnitude(x), FloatPredicate::OLT, 0x1p-25f), x, result + result);
}

static Float expandLog(Float x) {
  Parts parts = logParts(x);
  return finishLog(x, lnOf(parts.significand - 1.0f, toFloat(parts.exponent)));
}

static Float expandLog2(Float x) {
  Parts parts = logParts(x);
  Float f = parts.significand - 1.0f;
  // log2(1 + f) = f + f * tail: the first term is exact.
  Float fraction = fma(polynomial(log2Tail, f), f, f);
  return finishLog(x, fraction + toFloat(parts.exponent));
}

static Float expandLog10(Float x) {
  Parts parts = logParts(x);
  Float f = parts.significand - 1.0f;
  Float exponent = toFloat(parts.exponent);
  // log10(1 + f) = f / 2 + f * tail: the first term is exact.
  Float low = fma(exponent, log10Of2[1], polynomial(log10Tail, f) * f);
  return finishLog(x, fma(exponent, log10Of2[0], fma(f, 0.5f, low)));
}

static Float expandLog1p(Float x) {
  Float sum = x + 1.0f;
  Parts parts = cut(bits(sum), halfRootBits);
  // 1 + x = 2^k * (1 + f) with f = x * 2^-k + (2^-k - 1): rounding of the sum does not
  // matter. Once x alone is as good, 2^-k may be too small.
  Float inverse = fromBits(oneBits - (parts.exponent << 23));
  Float f = fma(inverse, x, inverse - 1.0f);
  f = select(is(parts.exponent, IntPredicate::sgt, 64), parts.significand - 1.0f, f);
  Float result = lnOf(f, toFloat(parts.exponent));
  result = select(is(x, FloatPredicate::OEQ, infinity), x, result);
  result = select(is(x, FloatPredicate::OEQ, -1.0f), -infinity, result);
  result = select(is(x, FloatPredicate::ULT, -1.0f), notANumber, result);
  return select(is(magnitude(x), FloatPredicate::OLT, 0x1p-25f), x, result);
}

static Float expandSqrt(Float x) {
  Parts parts = rootParts(x);
  InverseRoot root = inverseRoot(parts.significand);
  Float high = root.high * root.guess, low = root.low * root.guess;
  Float value = high + fma(parts.significand * root.guess, root.correction, low);
  Float result = fromBits(bits(value) + (parts.exponent << 23));
  Int raw = bits(x);
  result = select(is(raw, IntPredicate::eq, infinityBits), x, result);
  result = select(is(raw, IntPredicate::ugt, infinityBits), notANumber, result);
  return select(is(raw << 1, IntPredicate::eq, 0), x, result);
}

static Float expandRsqrt(Float x) {
  Parts parts = rootParts(x);
  InverseRoot root = inverseRoot(parts.significand);
  Float value = fma(root.guess, root.correction, root.guess);
  Float result = fromBits(bits(value) - (parts.exponent << 23));
  Int raw = bits(x);
  result = select(is(raw, IntPredicate::eq, infinityBits), 0.0f, result);
  result = select(is(raw, IntPredicate::ugt, infinityBits), notANumber, result);
  return select(is(raw << 1, IntPredicate::eq, 0), withSignOf(x, literal(x, infinity)), result);
}

static Float expandTanh(Float x) {
  Float a = magnitude(x);
  Float square = a * a;
  Float small = fma(polynomial(tanhTail, square) * square, a, a);
  Float bounded = atMost(a, 10.0f);
  Reduced reduced = reduceByLn2(bounded + bounded);
  Float power = powerOfTwo(reduced.count);
  Float squaredExp = fma(power, smallExpm1(reduced.rest), power);
  Float large = literal(x, 1.0f) - literal(x, 2.0f) / (squaredExp + 1.0f);
  return withSignOf(x, select(is(a, FloatPredicate::OLT, 0.55f), small, large));
}

static Float expandErf(Float x) {
  Float a = magnitude(x);
  Float small = fma(polynomial(erfTail, a * a), a, a);
  // The sum above would lose a term that is denormal.
  small = select(is(a, FloatPredicate::OLT, 0x1p-60f), a * (1.0f + erfTail[0]), small);
  Reduced reduced = reduceByOne(polynomial(erfcLog2, atMost(a, 4.0f)));
  Float power = literal(x, 0.0f) - powerOfTwo(reduced.count);
  Float large = fma(power, smallExp2(reduced.rest), 1.0f);
  return withSignOf(x, select(is(a, FloatPredicate::OLT, 1.0f), small, large));
}

static Float expandSin(Float x) {
  Float a = magnitude(x);
  Reduced reduced = reduceByHalfPi(a);
  Float value = sineInQuadrant(reduced.rest, reduced.count);
  return inAngleRange(a, fromBits(bits(value) ^ (bits(x) & signBit)));
}

static Float expandCos(Float x) {
  Float a = magnitude(x);
  Reduced reduced = reduceByHalfPi(a);
  return inAngleRange(a, sineInQuadrant(reduced.rest, reduced.count + 1u));
}

static Float expandAtan(Float x) {
  Float a = magnitude(x);
  Bool inverted = is(a, FloatPredicate::OGT, 1.0f);
  Float divisor = select(inverted, atMost(a, 0x1p+100f), 1.0f);
  Float t = select(inverted, literal(x, 1.0f) / divisor, a);
  Float square = t * t;
  Float value = fma(polynomial(atanTail, square) * square, t, t);
  // pi/2 - value, with pi/2 in two pieces.
  Float other = literal(x, halfPiPair[0]) - (value - halfPiPair[1]);
  return withSignOf(x, select(inverted, other, value));
}

/// The upper 12 bits, so that the product of two such is exact.
static Float upperHalf(Float x) { return fromBits(bits(x) & 0xfffff000); }

static Float expandPow(Float x, Float y) {
  // log2|x| to about 32 bits. With m = (1 + s) / (1 - s), log2(m) = 2 log2(e) * atanh(s),
  // s = sHigh + sLow where sHigh has 12 bits.
  Float a = magnitude(x);
  Parts parts = logParts(a);
  Float m = parts.significand;
  Float f = m - 1.0f;
  Float sum = m + 1.0f;
  Float sumRest = m - (sum - 1.0f);
  Float inverse = literal(x, 1.0f) / sum;
  Float sHigh = upperHalf(f * inverse);
  Float minusS = literal(x, 0.0f) - sHigh;
  Float sumHigh = upperHalf(sum);
  Float rest = fma(minusS, sumHigh, f);
  rest = fma(minusS, sum - sumHigh, rest);
  rest = fma(minusS, sumRest, rest);
  Float sLow = rest * inverse;
  Float s = sHigh + sLow;
  Float square = s * s;
  Float tail = polynomial(atanhTail, square) * square * s + sLow;
  Float logLow = fma(tail, 2 * log2E, sHigh * twoLog2E[1]);
  Float logHigh = sHigh * twoLog2E[0];
  Float exponent = toFloat(parts.exponent);
  Float top = exponent + logHigh;
  logLow = logLow + (logHigh - (top - exponent));
  Float log = top + logLow;
  logLow = logLow - (log - top);

  // 2^(y * log).
  Float product = y * log;
  Float logUpper = upperHalf(log), yUpper = upperHalf(y);
  Float logRest = (log - logUpper) + logLow, yRest = y - yUpper;
  Reduced reduced = reduceByOne(atMost(atLeast(product, -151.0f), 129.0f));
  Float count = toFloat(reduced.count);
  Float fraction = yUpper * logUpper - count;
  fraction = fraction + fma(yRest, log, yUpper * logRest);
  Float result = scale(smallExp2(fraction), reduced.count);
  // Past these the fraction may be anything.
  result = select(is(product, FloatPredicate::OGE, 129.0f), infinity, result);
  result = select(is(product, FloatPredicate::OLE, -151.0f), 0.0f, result);

  Int aBits = bits(a), yBits = bits(y) & ~signBit;
  Bool yNegative = is(bits(y), IntPredicate::slt, 0);
  result = select(is(aBits, IntPredicate::eq, oneBits), 1.0f, result);
  result = select(is(aBits, IntPredicate::eq, 0), select(yNegative, infinity, 0.0f), result);
  result =
      select(is(aBits, IntPredicate::eq, infinityBits), select(yNegative, 0.0f, infinity), result);

  // Negative x: only an integer power has a value, and an odd one is negative.
  Bool xNegative = is(bits(x), IntPredicate::slt, 0);
  Float yHalf = y * 0.5f;
  Bool integer = is(truncate(y), FloatPredicate::OEQ, y);
  Bool odd = is(truncate(yHalf), FloatPredicate::ONE, yHalf);
  Int flip = bits(select(xNegative & integer & odd, -0.0f, 0.0f));
  result = fromBits(bits(result) ^ flip);
  Bool fractional = is(truncate(y), FloatPredicate::ONE, y);
  Bool finite = is((aBits - 1u), IntPredicate::ult, infinityBits - 1);
  result = select(xNegative & finite & fractional, notANumber, result);

  result = select(is(aBits, IntPredicate::ugt, infinityBits), notANumber, result);
  result = select(is(yBits, IntPredicate::ugt, infinityBits), notANumber, result);
  result = select(is(yBits, IntPredicate::eq, 0), 1.0f, result);
  return select(is(bits(x), IntPredicate::eq, oneBits), 1.0f, result);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

static Type elementOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getElementType();
  return type;
}

namespace {
template <typename Op, Float (*expand)(Float)> struct ExpandUnary : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!elementOf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not of f32");
    Place place(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, expand({&place, op.getOperand()}).value);
    return success();
  }
};

struct ExpandPowF : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    if (!elementOf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not of f32");
    Place place(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, expandPow({&place, op.getLhs()}, {&place, op.getRhs()}).value);
    return success();
  }
};

/// Multiplies from the lowest bit of the exponent upwards: squares of x by repeated
/// squaring, each multiplied from the right onto the product of those before.
struct ExpandFPowI : OpRewritePattern<math::FPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::FPowIOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!elementOf(type).isF32() && !elementOf(type).isF64())
      return rewriter.notifyMatchFailure(op, "not of f32 or f64");
    APInt exponent;
    if (!matchPattern(op.getRhs(), m_ConstantInt(&exponent)) || exponent.abs().ugt(uint64_t(64)))
      return rewriter.notifyMatchFailure(op, "exponent not a constant of at most 64");
    Location loc = op.getLoc();
    Place place(rewriter, loc, type);
    auto one = [&] { return place.constant(type, rewriter.getFloatAttr(elementOf(type), 1.0)); };
    Value square = op.getLhs(), product;
    for (uint64_t left = exponent.abs().getZExtValue(); left; left >>= 1) {
      if (left & 1)
        product = product ? arith::MulFOp::create(rewriter, loc, product, square) : square;
      if (left > 1)
        square = arith::MulFOp::create(rewriter, loc, square, square);
    }
    if (!product)
      product = one();
    else if (exponent.isNegative())
      product = arith::DivFOp::create(rewriter, loc, one(), product);
    rewriter.replaceOp(op, product);
    return success();
  }
};

/// The targets have a square root of f64; its inverse is made of it, the same for all.
struct ExpandRsqrtF64 : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RsqrtOp op, PatternRewriter &rewriter) const override {
    if (!elementOf(op.getType()).isF64())
      return rewriter.notifyMatchFailure(op, "not of f64");
    Place place(rewriter, op.getLoc(), op.getType());
    Value one = place.constant(op.getType(), rewriter.getF64FloatAttr(1.0));
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand());
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root);
    return success();
  }
};
} // namespace

void weir::populateMathExpansionPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandUnary<math::AtanOp, expandAtan>, ExpandUnary<math::CosOp, expandCos>,
               ExpandUnary<math::ErfOp, expandErf>, ExpandUnary<math::Exp2Op, expandExp2>,
               ExpandUnary<math::ExpM1Op, expandExpm1>, ExpandUnary<math::ExpOp, expandExp>,
               ExpandUnary<math::Log10Op, expandLog10>, ExpandUnary<math::Log1pOp, expandLog1p>,
               ExpandUnary<math::Log2Op, expandLog2>, ExpandUnary<math::LogOp, expandLog>,
               ExpandUnary<math::RsqrtOp, expandRsqrt>, ExpandUnary<math::SinOp, expandSin>,
               ExpandUnary<math::SqrtOp, expandSqrt>, ExpandUnary<math::TanhOp, expandTanh>,
               ExpandFPowI, ExpandPowF, ExpandRsqrtF64>(patterns.getContext());
}
