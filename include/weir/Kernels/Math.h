//===- Math.h - Weir's own math functions -----------------------*- C++ -*-===//
//
// docs/math.md states the range and the error of each function.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_KERNELS_MATH_H
#define WEIR_KERNELS_MATH_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace weir {

/// Adds patterns that rewrite f32 functions of `math` into straight-line `arith`
/// and `math.fma` (`powf` needs `math.trunc` too), the same for every target.
///
/// Shapes: scalars, and vectors of any shape, element by element.
/// Covers: exp, exp2, expm1, log, log2, log10, log1p, sqrt, rsqrt, tanh, erf, sin,
///         cos, atan, powf; fpowi of f32 and f64 with a constant exponent of at most
///         64 in magnitude; rsqrt of f64, as 1 / sqrt.
/// Errors: whatever else there is stays as it is, so that a later gate refuses it.
/// Fast-math flags are ignored, and none are set.
void populateMathExpansionPatterns(mlir::RewritePatternSet &patterns);

} // namespace weir

#endif // WEIR_KERNELS_MATH_H
