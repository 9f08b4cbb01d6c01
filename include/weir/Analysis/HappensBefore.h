//===- HappensBefore.h - Which commands end before which --------*- C++ -*-===//
//
// Plain data: knows nothing of IR but `getQueueCommands`.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ANALYSIS_HAPPENSBEFORE_H
#define WEIR_ANALYSIS_HAPPENSBEFORE_H

#include "dialects/Schedule/Schedule.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <vector>

namespace weir {

/// One command of a list for several queues, in recorded order.
struct QueueCommand {
  enum class Kind { Dispatch, Barrier, Signal, Wait } kind = Kind::Dispatch;
  int64_t queue = 0;
  int64_t point = 0; ///< of a signal, and of the wait for it
};

/// Vector clocks, kept only where they change: at barriers and waits.
///
/// - A barrier orders what was recorded before it on its queue before what
///   comes after it there.
/// - A signal covers what was recorded before it on its queue, and whatever
///   that queue had waited for. A wait orders all of it before what comes after
///   the wait on its own queue.
///
/// Needs: queues of small numbers (there is an entry for each up to the
/// largest), signals of unique points, each recorded before its waits.
/// Cost: linear in commands times queues.
class HappensBefore {
public:
  explicit HappensBefore(const std::vector<QueueCommand> &commands);

  /// Whether command `from` of the list has ended when `to` begins. A signal or
  /// barrier ends when it is passed.
  bool operator()(int64_t from, int64_t to) const {
    const Place &place = places[from];
    return clocks[places[to].clock + place.queue] > place.number;
  }

  /// Whether a barrier or signal between the two, after `from` and before `to`,
  /// is one that `shows` says makes the bytes in question visible.
  bool makesVisible(int64_t from, int64_t to, llvm::function_ref<bool(int64_t)> shows) const;

private:
  struct Place {
    int64_t queue = 0;
    int64_t number = 0; ///< among its queue's commands
    size_t clock = 0;   ///< what happened before, an index into `clocks`
  };

  std::vector<Place> places;
  std::vector<int64_t> clocks; ///< as many entries for each as there are queues
  std::vector<std::vector<int64_t>> barriersAndSignals; ///< by queue
};

/// The commands of a list, and of each dispatch, copy or fill its index there.
struct QueueCommands {
  std::vector<QueueCommand> commands;
  std::vector<int64_t> dispatches;
  std::vector<mlir::Operation *> ops;
};
QueueCommands getQueueCommands(schedule::CommandsOp list);

} // namespace weir

#endif // WEIR_ANALYSIS_HAPPENSBEFORE_H
