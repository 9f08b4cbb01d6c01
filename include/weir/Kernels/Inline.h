//===- Inline.h - Kernels' bodies in place of the kernels -------*- C++ -*-===//

#ifndef WEIR_KERNELS_INLINE_H
#define WEIR_KERNELS_INLINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weir {

/// Replaces every `schedule.kernel` of `function` by its body. Returns the tensors that
/// kernels made between them: first concatenations, the outer ones first, then other tensors
/// with bytes of their own, then the next values of arguments that are inserted into,
/// argument by argument. Results of the function are not among them.
llvm::SmallVector<mlir::Value> inlineKernels(mlir::func::FuncOp function);

} // namespace weir

#endif // WEIR_KERNELS_INLINE_H
