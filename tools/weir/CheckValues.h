//===- CheckValues.h - The first dispatch that departs ----------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_CHECKVALUES_H
#define WEIR_TOOLS_WEIR_CHECKVALUES_H

#include "weir/Artifact/Artifact.h"

namespace weir::tool {

class Progress;

/// Runs an entry on a device, one dispatch after the other, compares the values that each
/// writes with the graph's reference, prints a table and the first dispatch that deviates, and
/// returns the exit status.
///
/// `compareWithReference` says what deviates. Where a result holds a NaN, which the reference may
/// have as well, it also prints which dispatch made the first. Errors: `Error`
/// when the artifact holds no graph, or its graph and its plan do not compute the same values.
int checkValues(const Artifact &artifact, const std::string &path, const EntrySpec &entry,
                const std::string &device, const std::vector<Tensor> &inputs, double tolerance,
                bool json, Progress &progress);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_CHECKVALUES_H
