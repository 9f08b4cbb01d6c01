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

/// Adds patterns that rewrite functions of `math`, and `arith.remf`, into `arith`,
/// `math.fma` and `math.trunc`, the same for every target: straight-line but for
/// `remf`, which becomes an `scf.for` of a fixed number of trips.
///
/// Shapes: f32 and f64, scalars and vectors of any shape, element by element. Functions
///         of f64 need 64-bit integers.
/// Covers: all functions of floats in `math`, except those that the targets compute exactly:
///         absf, ceil, copysign, floor, fma, roundeven, trunc, and
///         round of f32.
/// Errors: every other function, and `fpowi` by an index, stays as it is, so that a later
///         gate refuses it.
/// Fast-math flags are ignored, and none are set.
void populateMathExpansionPatterns(mlir::RewritePatternSet &patterns);

} // namespace weir

#endif // WEIR_KERNELS_MATH_H
