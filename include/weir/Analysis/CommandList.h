//===- CommandList.h - A command list as lib/Order sees it ------*- C++ -*-===//
//
// Makes the input of lib/Order from a function, and back.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ANALYSIS_COMMANDLIST_H
#define WEIR_ANALYSIS_COMMANDLIST_H

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "weir/Analysis/Aliasing.h"
#include "weir/Analysis/Effects.h"
#include "weir/Analysis/InPlaceProofs.h"
#include "weir/Order/HappensBefore.h"
#include "weir/Order/Hazards.h"
#include "weir/Order/Problem.h"

#include <vector>

namespace weir {

/// Returns the same kind as the dialect spells it.
inline schedule::HazardKind toAttribute(HazardKind kind) {
  switch (kind) {
  case HazardKind::RAW:
    return schedule::HazardKind::raw;
  case HazardKind::WAR:
    return schedule::HazardKind::war;
  case HazardKind::WAW:
    return schedule::HazardKind::waw;
  }
  llvm_unreachable("no such kind");
}

/// Returns the function's command list; null when it has none.
/// Errors: failure, with a diagnostic, when there are several, or one is not in
///         the function's first block.
mlir::FailureOr<schedule::CommandsOp> getCommands(mlir::func::FuncOp function);

/// The function's accesses, and the operations that they were made from.
struct CommandList {
  /// Dispatches, copies and fills: where hazards, waves and barriers are
  /// concerned, a copy is a dispatch.
  llvm::SmallVector<schedule::CommandOpInterface> dispatches;
  llvm::SmallVector<AllocationRef> allocations;
  CommandAccesses accesses;

  /// Returns the number that stands for `allocation`; -1 when no dispatch touches it.
  int64_t getNumber(const AllocationRef &allocation) const;
  /// Returns the access through an operand; null when the kernel leaves it alone or it
  /// has no bytes.
  const OperandAccess *find(int64_t dispatch, int64_t operand) const;

  llvm::DenseMap<const void *, int64_t> numbers; ///< by symbol or value
  Views *views = nullptr;                        ///< of operands
};

/// Returns the effect of a dispatch, copy or fill on each of its operands; none on
/// scalars. The result lives as long as `effects` and the kernel do.
/// Errors: failure, with a diagnostic, when a dispatch's kernel is not a
///         `gpu.func`, or touches memory that is not among its operands.
mlir::FailureOr<llvm::ArrayRef<OperandEffect>> getEffects(schedule::CommandOpInterface command,
                                                          mlir::SymbolTableCollection &symbols,
                                                          Effects &effects);

/// Returns the list's accesses. The result refers to `views`. Errors: those of `getEffects`.
mlir::FailureOr<CommandList> collectAccesses(schedule::CommandsOp commands, Effects &effects,
                                             Views &views);

/// A function's command list as a problem of lib/Order, with the operations that an answer is
/// written to.
struct CollectedOrder {
  CommandList list;     ///< its accesses are in `problem`
  OrderProblem problem; ///< allocations are numbered as in `list`
};

/// Returns the command list with all allocations that its memrefs name, accessed or not. The
/// result refers to `views` and `proofs`. Commands have no work yet, no
/// recipes, and may not be repeated; nothing may be copied.
/// Errors: those of `getEffects`.
mlir::FailureOr<CollectedOrder> collect(mlir::func::FuncOp function, schedule::CommandsOp commands,
                                        Effects &effects, Views &views, InPlaceProofs &proofs);

/// Returns the result that lies in the bytes of `argument` from the start, since a kernel
/// inserts into it; null where there is none.
mlir::BlockArgument getBorrower(mlir::BlockArgument argument);

/// Whether nothing but dispatches, copies and fills stands in the list, so that they may move.
bool holdsOnlyCommands(schedule::CommandsOp commands);

/// The commands of a list, and of each dispatch, copy or fill its index there.
struct QueueCommands {
  std::vector<QueueCommand> commands;
  std::vector<int64_t> dispatches;
  std::vector<mlir::Operation *> ops;
};

/// Returns what stands in the list, in order.
QueueCommands getQueueCommands(schedule::CommandsOp list);

} // namespace weir

#endif // WEIR_ANALYSIS_COMMANDLIST_H
