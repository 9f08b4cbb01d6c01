//===- MathPieces.h - Pieces of Weir's math functions -----------*- C++ -*-===//

#ifndef WEIR_LIB_NUMERICS_MATHPIECES_H
#define WEIR_LIB_NUMERICS_MATHPIECES_H

#include "MathFunctions.h"
#include "MathTables.h"
#include "Pairs.h"

namespace weir::expression {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

/// Returns the number for the type of `like`.
inline double pick(Float like, double narrow, double wide) {
  return formatOf(like).isWide() ? wide : narrow;
}
inline ArrayRef<double> pick(Float like, const Table &table) {
  return formatOf(like).isWide() ? table.f64 : table.f32;
}

/// Computes the polynomial with `coefficients`, lowest degree first, by Horner's rule.
inline Float polynomial(ArrayRef<double> coefficients, Float x) {
  Float sum = fma(x, coefficients.back(), coefficients[coefficients.size() - 2]);
  for (double coefficient : llvm::reverse(coefficients.drop_back(2)))
    sum = fma(sum, x, coefficient);
  return sum;
}
inline Float polynomial(const Table &table, Float x) { return polynomial(pick(x, table), x); }

/// Limits `x` from above. Keeps NaN, for which the comparison is false.
inline Float atMost(Float x, double bound) {
  return select(is(x, FloatPredicate::OGT, bound), bound, x);
}
inline Float atLeast(Float x, double bound) {
  return select(is(x, FloatPredicate::OLT, bound), bound, x);
}

inline Float magnitude(Float x) { return fromBits(bits(x) & ~formatOf(x).signBit()); }

/// Returns `x`, which is not negative, with the sign bit of `of`.
inline Float withSignOf(Float of, Float x) {
  return fromBits(bits(x) | (bits(of) & formatOf(of).signBit()));
}

inline Bool isNegative(Float x) { return is(bits(x), IntPredicate::slt, 0); }

} // namespace weir::expression

#endif // WEIR_LIB_NUMERICS_MATHPIECES_H
