//===- Loops.h - The loops of a plan ----------------------------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_LOOPS_H
#define WEIR_ARTIFACT_LOOPS_H

#include "weir/Artifact/Plan.h"

#include <vector>

namespace weir {

/// Bytes that hold a value at an edge of a loop.
struct HeldValue {
  size_t command = 0; ///< the edge is before this one
  PlanView view;
  int64_t value = 0;
  bool isFlag = false; ///< whether the first byte decides if a trip follows
};

/// A plan without loops that runs as another one does for given numbers of trips.
struct UnrolledPlan {
  Plan plan;
  std::vector<HeldValue> held;    ///< what is carried, before each trip and behind the last
  std::vector<size_t> commands;   ///< of each command, the index in the plan that was unrolled
  std::vector<size_t> dispatches; ///< of each dispatch, its number there
};

/// Returns the plan with `trips[i]` trips of loop i written out one after the other, each time it
/// runs. Each trip has values, waves and slots of its own. Barriers have no hazards: these name
/// dispatches of the plan that was unrolled.
UnrolledPlan unrollLoops(const Plan &plan, const std::vector<int64_t> &trips);

/// Returns the index of the innermost loop around each command, or -1.
std::vector<int64_t> findLoops(const Plan &plan);

/// Returns how often each command runs if loops whose trips data decide make one.
std::vector<int64_t> countRuns(const Plan &plan);

} // namespace weir

#endif // WEIR_ARTIFACT_LOOPS_H
