//===- Profile.h - Times of dispatches, told ---------------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_PROFILE_H
#define WEIR_TOOLS_WEIR_PROFILE_H

#include "Invocation.h"

namespace weir::tool {

/// The dispatches of a plan, in recorded order.
std::vector<const Command *> getDispatches(const Plan &plan);

/// Bytes of all operands that the kernel reads and of all that it writes; of one
/// that it updates, twice.
int64_t getBytesMoved(const Plan &plan, const Command &dispatch);

/// Writes a file of trace events, as Chrome's viewer and Perfetto open it (Trace
/// Event Format, complete events, microseconds). Errors: `Error`.
void writeTrace(const std::string &path, const Plan &plan, const std::string &device,
                const std::vector<weir_dispatch_time> &times);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_PROFILE_H
