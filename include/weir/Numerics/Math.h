//===- Math.h - Weir's own math functions -----------------------*- C++ -*-===//
//
// docs/math.md states the range and the error of each function.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_NUMERICS_MATH_H
#define WEIR_NUMERICS_MATH_H

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
/// With `fuses`, as for a target whose math.fma rounds once, the same bits of exp of f32 are
/// computed by fewer operations.
void populateMathExpansionPatterns(mlir::RewritePatternSet &patterns, bool fuses = false);

/// Adds patterns that rewrite GELU of f32 and its derivative, spelled by erfc and exp as
/// `norm.gelu` decomposes, into half of the operations. For targets whose math.fma rounds once; to
/// be applied before the functions in it are expanded.
void populateGeluPatterns(mlir::RewritePatternSet &patterns);

} // namespace weir

#endif // WEIR_NUMERICS_MATH_H
