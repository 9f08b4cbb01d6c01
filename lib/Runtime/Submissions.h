//===- Submissions.h - A plan's commands, cut for several queues -*- C++ -*-===//
//
// Plain data, independent of Vulkan. Each queue has a timeline, a number that only grows. A
// run's values count from 1; the value that earlier runs reached is added.
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

/// One submission to a queue. It and everything later on its queue begins when all of `waits`
/// are reached.
struct Submission {
  int64_t queue = 0;
  std::vector<TimelinePoint> waits;
  std::vector<size_t> commands; ///< indices into Plan::commands
  uint64_t signals = 0;         ///< value of the queue once this and all earlier ones end; 0: none
};

/// Returns the largest queue number of the plan plus one.
int64_t countQueues(const Plan &plan);

/// Cuts the plan's commands at signals and waits. In the order returned, a submission comes
/// after those that it waits for.
///
/// With several queues the first submission, on queue 0, has no commands: all other queues wait
/// for it, hence for everything submitted to queue 0 before. The last, on queue 0, has none
/// either and waits for all. So to other users of the queue, a run looks as if it were on queue
/// 0 alone.
///
/// If the plan uses more queues than `queues`, there is one submission for queue 0, with all
/// commands in recorded order; a wait in it must order everything.
std::vector<Submission> splitSubmissions(const Plan &plan, int64_t queues);

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_SUBMISSIONS_H
