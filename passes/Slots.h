//===- Slots.h - What the placed level says of slots and waves --*- C++ -*-===//

#ifndef WEIR_PASSES_SLOTS_H
#define WEIR_PASSES_SLOTS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Analysis/Hazards.h"

namespace weir {

/// The view that carries `weir.slot` of which `operand` is a view, or null.
mlir::memref::ViewOp getSlot(mlir::Value operand);

/// Writes each command's wave, from the hazards on addresses, and into each slot
/// the first and last wave that use it; no two slots that share a byte are used in
/// one wave. `list` is of the commands as they stand.
void setWaves(const CommandList &list, std::vector<Hazard> hazards);

/// Puts the commands into an order that needs fewer barriers, signals and waits
/// where one is found for which the arena need not grow by more than `percent`
/// percent. Slots are placed anew for it where some share bytes; waves are written
/// anew; `views` is empty then. The command list must hold nothing but commands.
/// Errors: those of `collectAccesses`.
mlir::LogicalResult reorderCommands(schedule::CommandsOp commands, Effects &effects, Views &views,
                                    int64_t percent);

} // namespace weir

#endif // WEIR_PASSES_SLOTS_H
