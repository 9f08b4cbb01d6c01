//===- Spares.h - Cheaper kernels for values ---------------------*- C++ -*-===//
//
// weir-add-spares makes a spare: a kernel that computes a value of another one again. Nothing
// reads it. weir-limit-memory takes spares as patterns for what it repeats.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_SPARES_H
#define WEIR_PASSES_SPARES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace weir {

/// On the `schedule.kernel` of a spare: the index of the result that it computes, of the kernel
/// before it. On its dispatch: the operand of that result, of the command before it.
inline constexpr llvm::StringLiteral spareAttrName = "weir.spare";

/// Returns the kernels of the module's spare dispatches.
llvm::SetVector<mlir::StringAttr> getSpareKernels(mlir::ModuleOp module);

/// Erases those of the kernels that nothing dispatches.
void eraseUnusedKernels(mlir::ModuleOp module, const llvm::SetVector<mlir::StringAttr> &kernels);

} // namespace weir

#endif // WEIR_PASSES_SPARES_H
