//===- Trips.h - How often the loops of a plan run --------------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_TRIPS_H
#define WEIR_LIB_SIM_TRIPS_H

#include "weir/Artifact/Artifact.h"
#include "weir/Artifact/Loops.h"

namespace weir::sim {

/// Returns the number of trips of each loop for these arguments. Where data decide it, the plan is
/// run with more and more trips until one of them clears the flag. Errors: `Error` where trips of a
/// loop inside of another one are decided by data, or all trips have too many dispatches.
std::vector<int64_t> findTrips(const Artifact &artifact, const EntrySpec &entry, const Plan &plan,
                               const Profile &profile, const std::vector<Tensor> &arguments);

} // namespace weir::sim

#endif // WEIR_LIB_SIM_TRIPS_H
