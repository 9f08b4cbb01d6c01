//===- Schedule.h - The order and the queues of commands --------*- C++ -*-===//

#ifndef WEIR_ORDER_SCHEDULE_H
#define WEIR_ORDER_SCHEDULE_H

#include "weir/Order/Problem.h"

#include <vector>

namespace weir {

/// An order of commands.
struct CommandOrder {
  std::vector<int64_t> order; ///< the commands, as their numbers
  /// Max bytes of values that are live in one wave, in program order and in the order for
  /// memory. Not computed without `forMemory`.
  int64_t programPeak = 0, memoryPeak = 0;
};

/// Returns an order that keeps `hazards`, those of the problem: the program's, but that whoever
/// reads a donated argument comes before the last dispatch that may write over it, and what uses
/// the host's memory as soon as it can; or with `forMemory` one for which fewer bytes are live, if
/// that is measured to be less.
CommandOrder chooseOrder(const OrderProblem &problem, const std::vector<Hazard> &hazards,
                         bool forMemory);

/// Puts the commands in the chosen order, if they may move, and numbers their waves. Returns the
/// choice; the order of commands that may not move is as it was.
CommandOrder scheduleCommands(OrderProblem &problem, bool mayMove, bool forMemory);

/// Returns the queue of each command, of `count`. A command follows the one whose result it
/// reads if that is the last of its queue, so that chains stay together; else it goes to the
/// queue with the least bytes to move so far.
std::vector<int64_t> assignQueues(const CommandAccesses &accesses, int64_t count);

} // namespace weir

#endif // WEIR_ORDER_SCHEDULE_H
