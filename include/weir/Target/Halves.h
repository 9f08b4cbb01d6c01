//===- Halves.h - f16 and bf16 as integers of 16 bits -----------*- C++ -*-===//

#ifndef WEIR_TARGET_HALVES_H
#define WEIR_TARGET_HALVES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace weir {

/// Whether the op does more with f16 and bf16 than to move and cast values.
bool computesInHalves(mlir::Operation *op);

/// Turns values and buffers of f16 and bf16 into i16. Casts become integer arithmetic that
/// rounds to the nearest, ties to even, and keeps subnormal numbers; besides casts the kernel
/// may only move such values.
void storeHalvesAsIntegers(mlir::gpu::GPUFuncOp kernel);

} // namespace weir

#endif // WEIR_TARGET_HALVES_H
