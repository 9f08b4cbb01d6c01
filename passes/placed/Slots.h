//===- Slots.h - What the placed level says of slots and waves --*- C++ -*-===//

#ifndef WEIR_PASSES_SLOTS_H
#define WEIR_PASSES_SLOTS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Analysis/CommandList.h"

namespace weir {

/// The `memref.view` of the arena of which `operand` is a view, or is; null for what
/// is not in the arena.
mlir::memref::ViewOp getSlot(mlir::Value operand);

/// What a slot is for: the values that use it, by name, and its alignment.
struct SlotUse {
  std::string value;
  int64_t alignment = 1;
};

/// Writes each command's wave, from the hazards `ofAddresses`, and to each slot what
/// it is for with the first and last wave that use it; no two slots that share a
/// byte are used in one wave. `list` is of the commands as they stand.
void setWaves(const CommandList &list, const std::vector<Hazard> &ofAddresses,
              llvm::function_ref<SlotUse(mlir::memref::ViewOp)> getUse);

} // namespace weir

#endif // WEIR_PASSES_SLOTS_H
