//===- Decompose.h - Norm ops as linalg -------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_NORM_DECOMPOSE_H
#define WEIR_DIALECTS_NORM_DECOMPOSE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace weir::norm {

/// Builds `linalg.generic` ops on tensors that compute the result of the `norm`
/// op `op`, before it, at its location; leaves `op` in place. Reads of the
/// op's first operand use identity maps, statistics have the dimensions that
/// are not reduced and no others.
///
/// Errors: null when `op` is no op of this dialect.
mlir::Value decompose(mlir::OpBuilder &builder, mlir::Operation *op);

/// Replaces every `norm` op under `root` by its decomposition.
void decomposeAll(mlir::Operation *root);

} // namespace weir::norm

#endif // WEIR_DIALECTS_NORM_DECOMPOSE_H
