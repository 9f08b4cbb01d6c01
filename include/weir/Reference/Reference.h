//===- Reference.h - A graph on the host, compiled --------------*- C++ -*-===//

#ifndef WEIR_REFERENCE_REFERENCE_H
#define WEIR_REFERENCE_REFERENCE_H

#include "weir/Artifact/Artifact.h"

#include <string>
#include <vector>

namespace weir {

/// `AsWritten` keeps every type; `Float64` makes every float f64, drops
/// extensions and truncations, and refuses float bitcasts.
enum class Precision { AsWritten, Float64 };

/// Runs entry `entry` of graph-level MLIR text on the host with `arguments` in
/// the entry's order; returns its results in order, named as the entry names
/// them. With `Float64` the float arguments may be F32 or F64 (widened), and
/// float results are F64.
/// Errors: `Error` on text that doesn't parse, a missing entry, arguments of
///         the wrong number, shape or dtype, or an op that can't be lowered.
std::vector<Tensor> runReference(const std::string &graphText, const std::string &entry,
                                 const std::vector<Tensor> &arguments, Precision precision);

} // namespace weir

#endif // WEIR_REFERENCE_REFERENCE_H
