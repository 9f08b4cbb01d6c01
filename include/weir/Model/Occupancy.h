//===- Occupancy.h - How many workgroups a unit holds -----------*- C++ -*-===//

#ifndef WEIR_MODEL_OCCUPANCY_H
#define WEIR_MODEL_OCCUPANCY_H

#include "weir/Device/Device.h"

namespace weir::model {

/// The memory that a kernel's code takes, as ptxas states it.
struct Resources {
  int64_t registers = 0;    ///< of an invocation
  int64_t spilledBytes = 0; ///< stores and loads of spilled registers, of an invocation
  int64_t stackBytes = 0;   ///< of an invocation
  int64_t sharedBytes = 0;  ///< of a workgroup
};

/// The workgroups that are in a unit at a time.
struct Occupancy {
  int64_t workgroups = 0, subgroups = 0;
  double share = 0;  ///< of the subgroups that a unit can hold; 0 if that is not known
  std::string limit; ///< "registers", "shared memory", "subgroups" or "workgroups"
};

/// Returns the occupancy of workgroups of `invocations`. Without `registers`, these are no limit.
/// Errors: `Error` if not even one workgroup fits.
Occupancy getOccupancy(const Device &device, int64_t invocations, int64_t subgroupSize,
                       std::optional<int64_t> registers, int64_t sharedBytes);

/// Reads the resources of an entry from what `ptxas -v` prints; none if it is not there.
std::optional<Resources> parseResources(const std::string &text, const std::string &entry);

} // namespace weir::model

#endif // WEIR_MODEL_OCCUPANCY_H
