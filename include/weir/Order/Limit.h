//===- Limit.h - Orders and repetitions that fit a limit --------*- C++ -*-===//

#ifndef WEIR_ORDER_LIMIT_H
#define WEIR_ORDER_LIMIT_H

#include "weir/Order/Schedule.h"

#include <optional>
#include <vector>

namespace weir {

/// Decisions that are made on commands behind their order.
struct ArenaSettings {
  int64_t queues = 1;
  int64_t effort = 0; ///< as for `planArena`
};

/// Returns the size of the arena that commands in their waves get.
/// Errors: those of `planMemory`.
int64_t getArenaBytes(OrderProblem problem, const ArenaSettings &settings);

/// A value that is live where most bytes are.
struct LargeValue {
  int64_t value = 0; ///< an allocation
  int64_t bytes = 0;
};

/// Commands in waves, some of them repeated, and what it took to get there.
struct FittedOrder {
  OrderProblem problem;
  CommandOrder order;              ///< of the commands before any was repeated
  int64_t ordered = 0;             ///< bytes of the arena in that order
  int64_t apart = 0;               ///< and with one command a wave
  int64_t bytes = 0;               ///< in the end
  int64_t repeated = 0;            ///< number of commands that were added
  int64_t dropped = 0;             ///< number of commands that nobody reads any more
  double work = 1;                 ///< relative to that without repetitions
  std::vector<LargeValue> largest; ///< up to three where most bytes are live
};

/// Returns commands whose arena has at most `limit` bytes: in an order for which less is live,
/// then with a wave for each command, then with values recomputed behind the peak. Tries these
/// in the same order for every limit: what fits a limit fits every larger one. Without a limit,
/// returns the smallest arena that it finds, and leaves `problem` empty. Nothing if no
/// order fits. Commands that may not move keep their order and are not repeated.
/// Errors: those of `planMemory`.
std::optional<FittedOrder> fitArena(OrderProblem problem, bool mayMove,
                                    std::optional<int64_t> limit, const ArenaSettings &settings);

} // namespace weir

#endif // WEIR_ORDER_LIMIT_H
