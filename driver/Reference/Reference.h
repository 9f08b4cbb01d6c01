//===- Reference.h - A graph on the host, compiled --------------*- C++ -*-===//

#ifndef WEIR_DRIVER_REFERENCE_REFERENCE_H
#define WEIR_DRIVER_REFERENCE_REFERENCE_H

#include "weir/Artifact/Artifact.h"

#include <memory>
#include <string>
#include <vector>

namespace mlir {
class ExecutionEngine;
} // namespace mlir

namespace weir {

/// `AsWritten` keeps every type; `Float64` makes every float f64, drops
/// extensions and truncations, and refuses float bitcasts.
enum class ReferencePrecision { AsWritten, Float64 };

/// Entry `entry` of graph-level MLIR text, compiled for the host once and run any
/// number of times.
class Reference {
public:
  /// Errors: `Error` on text that doesn't parse, a missing entry, or an op that
  ///         can't be differentiated or lowered.
  Reference(const std::string &graphText, const std::string &entry, ReferencePrecision precision);
  ~Reference();

  /// Returns the types of arguments and results, in the entry's order and with its names.
  /// With `Float64` all floats are F64.
  const std::vector<TensorSpec> &getArguments() const { return arguments; }
  const std::vector<TensorSpec> &getResults() const { return results; }

  /// Runs it. Where it takes F64, F32 is widened.
  /// Errors: `Error` on arguments of the wrong number, shape or dtype, and on those with which an
  ///         integer is divided without a quotient, whose result no graph defines.
  std::vector<Tensor> run(const std::vector<Tensor> &given) const;

private:
  std::string entry;
  std::vector<TensorSpec> arguments, results;
  std::unique_ptr<mlir::ExecutionEngine> code;
};

/// Returns the types of the results of entry `entry` of graph-level MLIR text, with their names.
/// Errors: `Error` on text that doesn't parse, or a missing entry.
std::vector<TensorSpec> getResultTypes(const std::string &graphText, const std::string &entry);

/// Runs entry `entry` of graph-level MLIR text on the host with `arguments` in
/// the entry's order; returns its results in order, named as the entry names
/// them. With `Float64` the float arguments may be F32 or F64 (widened), and
/// float results are F64.
/// Errors: `Error` on text that doesn't parse, a missing entry, arguments of
///         the wrong number, shape or dtype, or an op that can't be lowered.
std::vector<Tensor> runReference(const std::string &graphText, const std::string &entry,
                                 const std::vector<Tensor> &arguments,
                                 ReferencePrecision precision);

} // namespace weir

#endif // WEIR_DRIVER_REFERENCE_REFERENCE_H
