//===- Reorder.h - An order with fewer waves --------------------*- C++ -*-===//

#ifndef WEIR_ORDER_REORDER_H
#define WEIR_ORDER_REORDER_H

#include "weir/Order/Place.h"

#include <optional>
#include <vector>

namespace weir {

/// Dispatches in recorded order, and the wave of each.
struct WaveOrder {
  std::vector<int64_t> order; ///< the dispatches, as their numbers
  std::vector<int64_t> waves; ///< of `order[i]`; never decreases
};

/// Returns an order that keeps `hazards` (those of `accesses`, sorted as
/// `findHazards` sorts) and needs few waves.
///
/// `bytes[a]` are those that allocation `a` takes from the first wave that uses it
/// to the last; 0 of what lies elsewhere. A wave takes what is ready, the longest
/// chain of hazards behind it first, as long as no more than `limit` bytes are
/// live; what a wave needs at the least it gets all the same. With a limit that
/// never binds the waves are as many as dispatches in the longest chain of
/// hazards, and no order has fewer.
/// Cost: linear in hazards and accesses, times a logarithm; where the limit binds
/// a wave looks at no more than 64 dispatches that do not fit.
WaveOrder orderInFewWaves(const CommandAccesses &accesses, const std::vector<Hazard> &hazards,
                          const std::vector<int64_t> &bytes, int64_t limit);

/// Bytes of an arena that hold one value after another.
struct PlacedSlot {
  int64_t bytes = 0;
  int64_t alignment = 1;
  int64_t offset = 0; ///< in the arena
};

/// Commands whose values have places in an arena.
struct PlacedCommands {
  /// Slot i is allocation `firstSlot + i`, with ranges counted from the arena's begin. A list
  /// without slots has none of these, and what lies in an arena cannot move.
  CommandAccesses accesses;
  std::vector<int64_t> queues; ///< by command
  std::vector<PlacedSlot> slots;
  int64_t firstSlot = 0;
  int64_t arena = -1; ///< the arena's own number, an allocation before `firstSlot`
  int64_t arenaBytes = 0;

  /// Whether two slots have a byte in common.
  bool shareBytes() const;
};

/// Returns the problem's commands with values in the plan's places. Slots are numbered in the order
/// in which commands use them.
PlacedCommands placeCommands(const OrderProblem &problem, const ArenaPlan &plan);

/// Returns the number of barriers, signals and waits that commands need as they stand.
int64_t countBarriers(const PlacedCommands &commands);

/// Returns the accesses with slot i at `offsets[i]`, as accesses of the arena.
CommandAccesses getAddresses(const PlacedCommands &commands, const std::vector<int64_t> &offsets);

/// Returns the same with each slot where it is now.
CommandAccesses getAddresses(const PlacedCommands &commands);

/// The growth that an arena may have for a better order: `percent` percent, and not beyond
/// `maxBytes` unless it has more already (0: no such limit).
struct ArenaGrowth {
  int64_t percent = 0;
  int64_t maxBytes = 0;
};

/// An order of commands, and the places of slots for it.
struct PlacedOrder {
  std::vector<int64_t> order; ///< the commands, as their numbers
  MemoryPlan plan;            ///< of the slots; empty where nothing moves
  int64_t cost = 0;           ///< number of barriers, signals and waits
  int64_t costBefore = 0;     ///< of the commands as they stand
};

/// Returns an order of fewer barriers, signals and waits for which the slots fit in the
/// arena that may have grown; nothing if none is found. Slots move only where some share
/// bytes: else their bytes forbid no order. `effort` is that of the planner for up to 32 slots;
/// more slots get less.
/// Errors: those of `planMemory`.
std::optional<PlacedOrder> findCheaperOrder(PlacedCommands commands, const ArenaGrowth &growth,
                                            int64_t effort);

} // namespace weir

#endif // WEIR_ORDER_REORDER_H
