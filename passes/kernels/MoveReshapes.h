//===- MoveReshapes.h - Move reshapes out of the way ------------*- C++ -*-===//

#ifndef WEIR_PASSES_KERNELS_MOVERESHAPES_H
#define WEIR_PASSES_KERNELS_MOVERESHAPES_H

#include "passes/kernels/BlockMarks.h"

namespace weir {

/// Gives ops on both sides of a reshape the same loops, where one kernel may then
/// compute both. Every structured op must be a `linalg.generic`.
void moveReshapes(mlir::func::FuncOp function, BlockMarks &marks);

/// Lets bodies that read a tensor at a number made of their loops, as is left where a loop was
/// split, read a reshape of it at these loops.
void splitReads(mlir::func::FuncOp function);

} // namespace weir

#endif // WEIR_PASSES_KERNELS_MOVERESHAPES_H
