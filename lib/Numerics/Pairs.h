//===- Pairs.h - A number as the sum of two floats --------------*- C++ -*-===//
//
// Twice the bits of a float, in its range: after Dekker, "A floating-point technique
// for extending the available precision" (1971), and Knuth's exact sum.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_NUMERICS_PAIRS_H
#define WEIR_LIB_NUMERICS_PAIRS_H

#include "MathExpression.h"

namespace weir::expression {

/// The sum of both is the value; |low| is at most half a unit in high's last place, and
/// finite. Where high is infinite or NaN it is the value.
struct Pair {
  Float high, low;
};

/// Computes a + b exactly, for |a| >= |b| or a = 0.
inline Pair exactSum(Float a, Float b) {
  Float sum = a + b;
  return {sum, b - (sum - a)};
}

/// Returns the upper half of the significand: the product of two such halves is exact.
inline Float upperHalf(Float x) {
  return fromBits(bits(x) & (formatOf(x).isWide() ? ~uint64_t(0x7ffffff) : ~uint64_t(0xfff)));
}

/// Computes with the relative errors below, as long as operands and results stay in the range of
/// normal numbers. p is the number of bits of a float's significand.
Pair operator+(Pair a, Pair b); ///< 2^(3 - 2p) of the larger result's magnitude
Pair operator*(Pair a, Pair b); ///< 2^(3 - 2p)
Pair operator/(Pair a, Pair b); ///< 2^(5 - 2p), where division errs by 2.5 ulp
Pair squareRoot(Pair x);        ///< as the quotient
Pair raised(Pair x, const APInt &exponent);
Pair operator-(Pair x);
inline Pair operator-(Pair a, Pair b) { return a + -b; }
Pair absolute(Pair x);
/// Rounds to the nearest integer that is not above, not below, or not farther from zero.
Pair roundedDown(Pair x);
Pair roundedUp(Pair x);
Pair roundedToZero(Pair x);
/// Returns the larger or the smaller of two. `Op` is one of arith's four ops for that.
template <typename Op> Pair extremum(Pair a, Pair b);
Bool is(Pair a, FloatPredicate predicate, Pair b);

/// Converts an integer of at most 64 bits, or a vector of them, of the floats' shape.
Pair toPair(const Place &at, Value integer, bool isSigned);
/// Rounds toward zero, to integers of at most 64 bits that hold the result.
Value toInteger(Pair x, Type type);
/// Returns the float whose rounding to fewer bits, at least two, equals that of the pair.
Float roundedToOdd(Pair x);

} // namespace weir::expression

#endif // WEIR_LIB_NUMERICS_PAIRS_H
