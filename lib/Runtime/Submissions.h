//===- Submissions.h - A plan's commands, cut for several queues -*- C++ -*-===//
//
// Plain data, no Vulkan. Each queue has a timeline, a number that only grows;
// a run's values count from 1, what earlier runs left is added to them.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_SUBMISSIONS_H
#define WEIR_LIB_RUNTIME_SUBMISSIONS_H

#include "weir/Artifact/Plan.h"

#include <cstdint>
#include <vector>

namespace weir::runtime {

/// A value of a queue's timeline.
struct TimelinePoint {
  int64_t queue = 0;
  uint64_t value = 0;
  bool operator==(const TimelinePoint &) const = default;
};

/// What is submitted to a queue in one go. It begins when all of `waits` are
/// reached, and so does what comes later on its queue.
struct Submission {
  int64_t queue = 0;
  std::vector<TimelinePoint> waits;
  std::vector<size_t> commands; ///< indices into Plan::commands
  uint64_t signals = 0;         ///< its queue's value once this and all before it end; 0: none
};

/// The number of queues that the plan uses, the largest number and one.
int64_t countQueues(const Plan &plan);

/// Cuts the plan's commands at signals and waits. In the order returned, what a
/// submission waits for comes before it.
///
/// With several queues the first submission, on queue 0, has no commands: those
/// of all other queues wait for it, hence for everything that queue 0 was given
/// before. The last, on queue 0, has none either and waits for all. So a run is
/// for others what it would be on queue 0 alone.
///
/// With `queues` below what the plan uses there is one submission for queue 0,
/// of all commands in recorded order; a wait in it must order everything.
std::vector<Submission> splitSubmissions(const Plan &plan, int64_t queues);

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_SUBMISSIONS_H
