//===- LoopWalk.h - A run's trips, by its dispatches -------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_LOOPWALK_H
#define WEIR_TOOLS_WEIR_LOOPWALK_H

#include "weir/Artifact/Plan.h"

#include <functional>
#include <string>
#include <vector>

namespace weir::tool {

/// Follows a run through the loops of a plan: which trips begin and end is known from the order in
/// which dispatches run.
class LoopWalk {
public:
  explicit LoopWalk(const Plan &plan);

  /// Goes on to a dispatch of the plan. Errors: `Error` if the plan does not run it next.
  void advance(size_t dispatch);
  /// Goes on to the end of the plan.
  void finish();

  /// Returns the trips that are under way, of outer loops first, counted from 1.
  std::vector<int64_t> getTrips() const;
  /// Returns "" outside of loops, " in trip 3", or " in trip 2 of loop 0, trip 3 of loop 1".
  std::string describeTrips() const;

  /// Called when a trip of a loop begins: its carried values are then those of the member, `init`
  /// or `next`. May be empty, as may be the other one.
  std::function<void(size_t, int64_t CarriedValue::*)> onTrip;
  /// Called when a loop has ended, also without a trip.
  std::function<void(size_t, int64_t CarriedValue::*)> onEnd;

private:
  void beginTrip(size_t loop, int64_t CarriedValue::*from);
  void end(size_t loop, int64_t CarriedValue::*from);
  void pass(int64_t target, int64_t goesOn);

  const Plan &plan;
  std::vector<int64_t> places; ///< of dispatches among the commands
  std::vector<int64_t> trips;  ///< by loop; 0: it does not run
  int64_t place = 0;           ///< the edges before this command are passed, those at it are not
};

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_LOOPWALK_H
