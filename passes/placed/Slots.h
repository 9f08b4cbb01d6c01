//===- Slots.h - Slots of the arena, and waves ------------------*- C++ -*-===//

#ifndef WEIR_PASSES_SLOTS_H
#define WEIR_PASSES_SLOTS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Analysis/CommandList.h"

namespace weir {

/// Returns the `memref.view` of the arena that `operand` is, or is a view of; null if it is not in
/// the arena.
mlir::memref::ViewOp getSlot(mlir::Value operand);

/// The use of a slot: the names of the values in it, and its alignment.
struct SlotUse {
  std::string value;
  int64_t alignment = 1;
};

/// Writes each command's wave, from the hazards `ofAddresses`, and to each slot its use with the
/// first and last wave that use it. No two slots that share a byte are used in one wave. `list` is
/// of the commands as they stand.
void setWaves(const CommandList &list, const std::vector<Hazard> &ofAddresses,
              llvm::function_ref<SlotUse(mlir::memref::ViewOp)> getUse);

} // namespace weir

#endif // WEIR_PASSES_SLOTS_H
