//===- WorkgroupBarriers.h - What both passes on gpu.barrier need -*- C++ -*-==//

#ifndef WEIR_PASSES_ORDERED_WORKGROUPBARRIERS_H
#define WEIR_PASSES_ORDERED_WORKGROUPBARRIERS_H

#include "weir/Analysis/WorkgroupRaces.h"

namespace weir {

/// Calls `visit` with the races of each kernel in `root` of which `matters` says so, in order of
/// the text, unless it can't be analysed. Goes on after a failure. `matters` is given the kernel
/// and the functions that it calls, directly or not. Errors: failure, with a diagnostic, of
/// `visit`; for a kernel whose control
///         flow isn't understood, a barrier that not all invocations come to,
///         or a `gpu.launch` whose body is no function.
mlir::LogicalResult visitKernels(
    mlir::Operation *root,
    llvm::function_ref<bool(mlir::gpu::GPUFuncOp, const llvm::DenseSet<mlir::Operation *> &callees)>
        matters,
    llvm::function_ref<mlir::LogicalResult(mlir::gpu::GPUFuncOp, WorkgroupRaces &)> visit);

} // namespace weir

#endif // WEIR_PASSES_ORDERED_WORKGROUPBARRIERS_H
