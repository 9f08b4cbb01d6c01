//===- Slots.h - Slots of the arena -----------------------------*- C++ -*-===//

#ifndef WEIR_PASSES_PLACED_SLOTS_H
#define WEIR_PASSES_PLACED_SLOTS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace weir {

/// Returns the `memref.view` of the arena that `operand` is, or is a view of; null if it is not in
/// the arena.
mlir::memref::ViewOp getSlot(mlir::Value operand);

} // namespace weir

#endif // WEIR_PASSES_PLACED_SLOTS_H
