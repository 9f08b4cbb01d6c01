//===- KernelLegalize.h - What both targets rewrite -------------*- C++ -*-===//

#ifndef WEIR_LIB_TARGET_KERNELLEGALIZE_H
#define WEIR_LIB_TARGET_KERNELLEGALIZE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace weir {

/// Rewrites what no target takes as it is: fast-math and wrap flags go, rounded
/// divisions become plain ones, and nothing but `gpu.kernel` stays on the
/// function or its arguments that the target's function would inherit.
void legalizeForAll(mlir::gpu::GPUFuncOp kernel);

/// f16 or bf16.
bool isHalf(mlir::Type type);

/// Makes values and buffers of f16 and bf16 such of i16. Their casts become integer
/// arithmetic that rounds to the nearest, ties to even, and keeps subnormal numbers; what
/// else the kernel may do with them is to move them.
void storeHalvesAsIntegers(mlir::gpu::GPUFuncOp kernel);

} // namespace weir

#endif // WEIR_LIB_TARGET_KERNELLEGALIZE_H
