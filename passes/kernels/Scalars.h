//===- Scalars.h - Scalars move to their users ------------------*- C++ -*-===//

#ifndef WEIR_PASSES_KERNELS_SCALARS_H
#define WEIR_PASSES_KERNELS_SCALARS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace weir {

/// Whether `value` is a scalar that an op other than a constant computes.
bool isComputedScalar(mlir::Value value);

/// Returns a copy of `scalar`, computed where the builder stands. `known` maps scalars to
/// copies that are there already; new copies are added.
mlir::Value repeatScalar(mlir::OpBuilder &builder, mlir::Value scalar, mlir::IRMapping &known);

/// Moves copies of the function's scalars that the body of `op` uses into the body.
void repeatScalars(mlir::linalg::GenericOp op);

} // namespace weir

#endif // WEIR_PASSES_KERNELS_SCALARS_H
