//===- CheckValues.h - The first dispatch that departs ----------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_CHECKVALUES_H
#define WEIR_TOOLS_WEIR_CHECKVALUES_H

#include "weir/Artifact/Artifact.h"

namespace weir::tool {

class Progress;

/// Runs an entry on a device, one dispatch after the other, compares what each writes
/// with the graph's reference, prints a table and the first dispatch that departs from
/// it, and returns the exit status.
///
/// A float departs where it is farther from the f64 reference than `tolerance` times
/// the value's largest magnitude there, and than eight times what the host's own run in
/// the graph's types is off by: where terms cancel, any order of summation is.
/// Errors: `Error` where the artifact holds no graph, or its graph and its plan do not
///         make the same values.
int checkValues(const Artifact &artifact, const std::string &path, const EntrySpec &entry,
                const std::string &device, const std::vector<Tensor> &inputs, double tolerance,
                bool json, Progress &progress);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_CHECKVALUES_H
