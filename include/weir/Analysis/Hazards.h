//===- Hazards.h - Which dispatches must not overlap ------------*- C++ -*-===//
//
// The functions on plain data know nothing of IR; `collectAccesses` makes their
// input from a command list.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ANALYSIS_HAZARDS_H
#define WEIR_ANALYSIS_HAZARDS_H

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "weir/Analysis/Aliasing.h"
#include "weir/Analysis/Effects.h"
#include "weir/Artifact/Hazard.h"

#include <vector>

namespace weir {

/// What a dispatch does to bytes of one allocation through one operand.
struct OperandAccess {
  int64_t operand = 0;
  int64_t allocation = 0; ///< a number that stands for the allocation
  ByteRange range;        ///< never empty; [0, 2^63 - 1) when it is not known
  bool reads = false;
  bool writes = false;
  /// Which bytes of `range`, an index into CommandAccesses::strided; -1: all.
  int64_t strided = -1;
};

using DispatchAccesses = llvm::SmallVector<OperandAccess, 2>;

/// The same kind, as the dialect and as the plan spell it.
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

/// A command list as the functions below see it.
struct CommandAccesses {
  std::vector<DispatchAccesses> dispatches;
  /// For each allocation the others that may share bytes with it.
  std::vector<std::vector<int64_t>> mayShare;
  /// In canonical form, each once.
  std::vector<StridedBytes> strided;

  /// Whether two accesses may share bytes.
  bool mayOverlap(const OperandAccess &first, const OperandAccess &second) const;
};

/// The same with dispatch `order[i]` in place i.
CommandAccesses permute(const CommandAccesses &accesses, llvm::ArrayRef<int64_t> order);

/// Returns the direct hazards, sorted by `to`, then kind, `from` and operands.
///
/// Direct: no third dispatch writes the bytes between the two. Every other
/// hazard follows from a chain of direct ones, so what orders these orders all.
/// Where views are strided some that are not direct are among them.
/// Bytes that a dispatch shares among its own operands are the kernel's
/// business.
/// Cost: linear in operands while ranges of an allocation nest or repeat; a
/// read of a range that others cut in n pieces costs n, and so does an access
/// among n different strided views.
std::vector<Hazard> findHazards(const CommandAccesses &accesses);

/// Returns the wave of each dispatch: the one before's, or the next where the
/// dispatch has a hazard with that wave. Waves never decrease in recorded
/// order: only then does "live in waves 2 to 3" say when in that order.
std::vector<int64_t> getWaves(int64_t dispatches, const std::vector<Hazard> &hazards);

struct PlannedBarrier {
  int64_t before = 0; ///< the dispatch that it is recorded just before, on its queue
  /// What it serves; the first forced it.
  std::vector<Hazard> hazards;
};

struct PlannedSignal {
  int64_t after = 0;           ///< the dispatch that it is recorded just after, on its queue
  std::vector<Hazard> hazards; ///< what it serves
};

struct PlannedWait {
  int64_t before = 0; ///< the dispatch that it is recorded just before, on its queue
  int64_t signal = 0; ///< index into PlannedOrder::signals
};

/// Each list in recorded order; waits stand before the barrier of their place.
struct PlannedOrder {
  std::vector<PlannedBarrier> barriers;
  std::vector<PlannedSignal> signals;
  std::vector<PlannedWait> waits;
};

/// Returns what orders all `hazards` (sorted as above), where dispatch i is for
/// queue `queues[i]`.
///
/// Hazards between queues: a dispatch waits for the first signal behind the
/// last dispatch that it must come after; one is made where there is none.
/// Hazards inside one: the fewest barriers that separate those that no wait
/// orders. The pairs that forced a queue's barriers are disjoint, hence fewer
/// cannot do. Each barrier or signal serves the hazards for which it is the
/// first one behind `from` on its queue, so a write becomes visible once.
/// Cost: linear in hazards times queues.
PlannedOrder planOrder(const std::vector<Hazard> &hazards, const std::vector<int64_t> &queues);

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

  /// The number that stands for `allocation`; -1 when no dispatch touches it.
  int64_t getNumber(const AllocationRef &allocation) const;
  /// The access through an operand; null when the kernel leaves it alone or it
  /// has no bytes.
  const OperandAccess *find(int64_t dispatch, int64_t operand) const;

  llvm::DenseMap<const void *, int64_t> numbers; ///< by symbol or value
  Views *views = nullptr;                        ///< of operands
};

/// What a dispatch, copy or fill does to each of its operands; nothing to
/// scalars. The result lives as long as `effects` and the kernel do.
/// Errors: failure, with a diagnostic, when a dispatch's kernel is not a
///         `gpu.func`, or touches memory that is not among its operands.
mlir::FailureOr<llvm::ArrayRef<OperandEffect>> getEffects(schedule::CommandOpInterface command,
                                                          mlir::SymbolTableCollection &symbols,
                                                          Effects &effects);

/// The list refers to `views`. Errors: those of `getEffects`.
mlir::FailureOr<CommandList> collectAccesses(schedule::CommandsOp commands, Effects &effects,
                                             Views &views);

} // namespace weir

#endif // WEIR_ANALYSIS_HAZARDS_H
