//===- KernelLegalize.h - What both targets rewrite -------------*- C++ -*-===//

#ifndef WEIR_LIB_TARGET_KERNELLEGALIZE_H
#define WEIR_LIB_TARGET_KERNELLEGALIZE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace weir {

/// Rewrites what no target takes as it is: fast-math and wrap flags go, rounded
/// divisions become plain ones, and nothing but `gpu.kernel` stays on the
/// function or its arguments that the target's function would inherit.
void legalizeForAll(mlir::gpu::GPUFuncOp kernel);

/// Whether a type is f16 or bf16.
bool isHalf(mlir::Type type);

} // namespace weir

#endif // WEIR_LIB_TARGET_KERNELLEGALIZE_H
