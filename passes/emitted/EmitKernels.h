//===- EmitKernels.h - Steps of emitting that all targets share -*- C++ -*-===//

#ifndef WEIR_PASSES_EMITTED_EMITKERNELS_H
#define WEIR_PASSES_EMITTED_EMITKERNELS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "weir/Analysis/Effects.h"
#include "weir/Analysis/InPlaceProofs.h"

namespace weir {

/// Emits one kernel, alone in a `gpu.module` that may be changed and consumed.
/// `original` is the kernel as it was, to which the emitter may add how it is launched. Returns the
/// code with its target.
using EmitKernel = llvm::function_ref<mlir::FailureOr<mlir::gpu::ObjectAttr>(
    mlir::gpu::GPUModuleOp module, mlir::gpu::GPUFuncOp copy, mlir::gpu::GPUFuncOp original)>;

/// Turns every kernel of `module` into a `gpu.binary` of its name, which states
/// workgroup, operands and in-place pairs, and renames dispatches. All kernels
/// are checked by `check` before the first is emitted, so that one run reports
/// all of them. `language` is the name of the code, for errors.
mlir::LogicalResult emitKernels(mlir::ModuleOp module, Effects &effects, InPlaceProofs &proofs,
                                llvm::StringRef language,
                                llvm::function_ref<mlir::LogicalResult(mlir::gpu::GPUFuncOp)> check,
                                EmitKernel emit);

} // namespace weir

#endif // WEIR_PASSES_EMITTED_EMITKERNELS_H
