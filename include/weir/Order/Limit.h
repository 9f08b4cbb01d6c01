//===- Limit.h - Orders and repetitions that fit a limit --------*- C++ -*-===//

#ifndef WEIR_ORDER_LIMIT_H
#define WEIR_ORDER_LIMIT_H

#include "weir/Order/Recompute.h"
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
  std::optional<int64_t> apart;    ///< and with one command a wave, if that was asked for
  int64_t bytes = 0;               ///< in the end
  int64_t repeated = 0;            ///< number of commands that were added
  int64_t dropped = 0;             ///< number of commands that nobody reads any more
  double work = 1;                 ///< relative to that without repetitions
  std::vector<LargeValue> largest; ///< up to three where most bytes are live
};

/// A choice between the bytes of the arena and work.
struct CurvePoint {
  int64_t bytes = 0;    ///< of the arena
  int64_t live = 0;     ///< at the most: no arena of these commands in this order is smaller
  int64_t bound = 0;    ///< that of `MemoryBound`: no order with as much work needs fewer bytes
  double work = 1;      ///< relative to that without repetitions
  int64_t commands = 0; ///< with those that are repeated
  int64_t barriers = 0; ///< with signals and waits
  bool isKnee = false;  ///< whether `fitKnee` takes it
};

/// Orders and repetitions of a problem's commands, from the least work to the smallest arena: the
/// order for which less is live, then a wave for each command, then values recomputed behind the
/// peak, step by step. The steps don't depend on what is asked, so what fits a limit fits every
/// larger one. Commands that may not move keep their order and are not repeated.
/// Errors of all: those of `planMemory`.
class ArenaFitter {
public:
  ArenaFitter(OrderProblem problem, bool mayMove, const ArenaSettings &settings);

  /// Returns the first commands whose arena has at most `limit` bytes; nothing if none fit.
  std::optional<FittedOrder> fit(int64_t limit);

  /// Returns what the smallest arena that is found needs. Leaves its `problem` empty.
  FittedOrder findSmallest();

  /// Returns the commands for which the share of the arena that is saved exceeds the share of work
  /// that is added by the most, as far as live bytes tell; the order alone if none saves more than
  /// it adds, or its arena is no smaller.
  FittedOrder fitKnee();

  /// Returns points from the order alone to the smallest arena: each has a smaller arena than the
  /// one before it. Barriers are counted after `findCheaperOrder`, without growth, if `mayReorder`.
  std::vector<CurvePoint> getCurve(bool mayReorder);

private:
  /// The bytes and the work after a number of steps.
  struct Point {
    int64_t peak = 0; ///< bytes that are live
    double work = 0;
    int64_t repeated = 0, dropped = 0;
    bool isPlaced = false; ///< whether its arena is ever asked for
    /// Of the arena, if it was asked for.
    std::optional<int64_t> bytes = std::nullopt;
  };

  void seek(size_t count);
  bool extend();
  bool isPlaced(size_t count);
  double getRelativeWork(size_t count) const;
  OrderProblem makeProblem(size_t count);
  int64_t getBytes(size_t count);
  std::optional<size_t> findKnee();
  std::optional<size_t> findLeast();
  std::vector<size_t> choosePoints();
  FittedOrder describe();
  FittedOrder describe(size_t count);

  ArenaSettings settings;
  bool mayMove;
  OrderProblem problem; ///< as it is ordered
  CommandOrder order;
  int64_t ordered = 0;              ///< bytes of the arena
  RecomputeProblem summary;         ///< of `problem`
  RecomputeProblem start;           ///< without commands that nobody reads
  std::vector<Recomputation> steps; ///< those that are known
  std::vector<Point> points;        ///< behind 0, 1, 2... steps; the first with a command a wave
  bool isComplete = false;          ///< whether there are no more steps
  size_t taken = 0;                 ///< steps from `start` to `current`
  RecomputeProblem current;
  LiveProfile profile; ///< of `current`
};

} // namespace weir

#endif // WEIR_ORDER_LIMIT_H
