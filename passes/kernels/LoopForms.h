//===- LoopForms.h - Loops between tensors in one form ----------*- C++ -*-===//
//
// In this form all carried values are tensors of at least one byte, and none is the same in all
// trips. The counter of an `scf.for` is not used: it is a carried value. The first carried value
// of an `scf.while` is its condition, and the region that decides only reads that.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_KERNELS_LOOPFORMS_H
#define WEIR_PASSES_KERNELS_LOOPFORMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weir {

/// Brings the function's loops between tensors to this form. Errors: reported, where that cannot
/// be.
mlir::LogicalResult bringToForm(mlir::func::FuncOp function);

/// Whether an op is a loop between tensors.
bool isLoop(mlir::Operation *op);

/// Returns the number of values that the loop carries, its last operands.
unsigned getNumCarried(mlir::Operation *loop);

/// Returns the ops of a trip.
mlir::Block &getBody(mlir::Operation *loop);

/// Returns the max number of trips, which is the number of an `scf.for`.
int64_t getMaxTrips(mlir::Operation *loop);

} // namespace weir

#endif // WEIR_PASSES_KERNELS_LOOPFORMS_H
