//===- MathFunctions.h - Weir's own math functions --------------*- C++ -*-===//
//
// Each makes the ops of one function of floats, f32 or f64; docs/math.md states errors.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_NUMERICS_MATHFUNCTIONS_H
#define WEIR_LIB_NUMERICS_MATHFUNCTIONS_H

#include "MathExpression.h"

namespace weir::expression {

Float expandAcos(Float x);
Float expandAcosh(Float x);
Float expandAsin(Float x);
Float expandAsinh(Float x);
Float expandAtan(Float x);
Float expandAtan2(Float y, Float x);
Float expandAtanh(Float x);
Float expandCbrt(Float x);
Float expandCos(Float x);
Float expandCosh(Float x);
Float expandErf(Float x);
Float expandErfc(Float x);
Float expandExp(Float x);
/// Computes e^x for x that is at most 0 or a NaN.
Float expandExpOfNotPositive(Float x);
Float expandExp2(Float x);
Float expandExpm1(Float x);
Float expandLog(Float x);
Float expandLog10(Float x);
Float expandLog1p(Float x);
Float expandLog2(Float x);
Float expandPow(Float x, Float y);
/// Computes x^n for n of the width of x, not below -2^(width-1) + 2^(width/4).
Float expandPow(Float x, Int n, Bool odd);
/// Computes C's fmod exactly, by a loop.
Float expandRemainder(Float x, Float y);
/// Rounds to the nearest integer, halves away from zero.
Float expandRound(Float x);
Float expandRsqrt(Float x);
Float expandSin(Float x);
/// Computes x times the normal distribution's share below x, in f32, where fma rounds once.
Float expandGelu(Float x);
/// Computes the derivative of that.
Float expandGeluSlope(Float x);
/// Computes the sine and the cosine.
std::pair<Float, Float> expandSinCos(Float x);
Float expandSinh(Float x);
Float expandSqrt(Float x);
Float expandTan(Float x);
Float expandTanh(Float x);

Bool isFinite(Float x);
Bool isInfinite(Float x);
Bool isNaN(Float x);
Bool isNormal(Float x);

} // namespace weir::expression

#endif // WEIR_LIB_NUMERICS_MATHFUNCTIONS_H
