//===- Decompose.h - Matrix ops as loops of linalg --------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_MATRIX_DECOMPOSE_H
#define WEIR_DIALECTS_MATRIX_DECOMPOSE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace weir::matrix {

/// Builds the results of an op that is made of other ops of `matrix` (`solve`, `qr`) before it;
/// leaves it in place. Returns nothing for other ops.
llvm::SmallVector<mlir::Value> expand(mlir::OpBuilder &builder, mlir::Operation *op);

/// Builds `scf.for` loops of `linalg.generic` ops, and `norm.argsort`, that compute the results of
/// `op` before it; leaves it in place. Trips read what the one before has made at the places of
/// their counter.
/// Needs: an op of `matrix` that `expand` returns nothing for.
llvm::SmallVector<mlir::Value> decompose(mlir::OpBuilder &builder, mlir::Operation *op);

} // namespace weir::matrix

#endif // WEIR_DIALECTS_MATRIX_DECOMPOSE_H
