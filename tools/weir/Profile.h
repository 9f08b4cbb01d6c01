//===- Profile.h - Times of dispatches, told ---------------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_PROFILE_H
#define WEIR_TOOLS_WEIR_PROFILE_H

#include "Invocation.h"

namespace weir::tool {

/// Returns the dispatches of a plan, in recorded order.
std::vector<const Command *> getDispatches(const Plan &plan);

/// Returns the bytes of all operands that the kernel reads plus those of all that it writes; an
/// updated operand counts twice.
int64_t getBytesMoved(const Plan &plan, const Command &dispatch);

/// Writes a file of trace events for Chrome's viewer and Perfetto (Trace Event Format, complete
/// events, microseconds). Errors: `Error`.
void writeTrace(const std::string &path, const Plan &plan, const std::string &device,
                const std::vector<weir_dispatch_time> &times);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_PROFILE_H
