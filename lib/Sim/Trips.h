//===- Trips.h - How often the loops of a plan run --------------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_TRIPS_H
#define WEIR_LIB_SIM_TRIPS_H

#include "weir/Artifact/Artifact.h"
#include "weir/Artifact/Loops.h"

namespace weir::sim {

/// How often the loops of a plan run.
struct Trips {
  std::vector<int64_t> trips;    ///< by loop
  std::vector<size_t> unwritten; ///< loops that end since nothing has written their flag
};

/// Returns the trips of each loop for these arguments. Where data decide their number, the plan is
/// run with more and more trips until one of them clears the flag. Errors: `Error` where trips of a
/// loop inside of another one are decided by data, or all trips have too many dispatches.
Trips findTrips(const Artifact &artifact, const EntrySpec &entry, const Plan &plan,
                const Profile &profile, const std::vector<Tensor> &arguments);

} // namespace weir::sim

#endif // WEIR_LIB_SIM_TRIPS_H
