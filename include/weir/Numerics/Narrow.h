//===- Narrow.h - Kernels of f64 in pairs of f32 ----------------*- C++ -*-===//

#ifndef WEIR_NUMERICS_NARROW_H
#define WEIR_NUMERICS_NARROW_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace weir {

/// Returns what becomes of a buffer or memory of f64: one as large, in which an
/// element's pair stands together, the nearest f32 first.
///
/// Shapes: one dimension, of elements or vectors of two or four. Any other type is
///         returned as it is.
mlir::MemRefType getNarrowType(mlir::MemRefType type);

/// Returns the elements of a buffer of `values`, of f64, in the order of
/// `getNarrowType`.
///
/// Errors: failure, with no diagnostic, where a number is out of the range of normal
///         f32, or values are of a resource that is not there.
mlir::FailureOr<mlir::ElementsAttr> getNarrowValues(mlir::ElementsAttr values);

/// Makes every value of f64 in `kernel`, whose memory has narrow types already, a pair
/// of f32. docs/math.md states the errors.
///
/// Errors: failure, with a diagnostic for each op that has no form in pairs, before
///         anything is changed.
mlir::LogicalResult narrowKernel(mlir::gpu::GPUFuncOp kernel);

} // namespace weir

#endif // WEIR_NUMERICS_NARROW_H
