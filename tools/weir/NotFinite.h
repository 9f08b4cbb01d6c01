//===- NotFinite.h - The first dispatch that makes a NaN --------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_NOTFINITE_H
#define WEIR_TOOLS_WEIR_NOTFINITE_H

#include "GraphValues.h"
#include "LoopWalk.h"
#include "Observation.h"

namespace weir::tool {

/// Returns what is wrong with the results of a run, such as "loss is NaN", or "". A result may
/// hold no NaN, and no infinity if it has rank 0 or is the next value of an argument: others, such
/// as masked scores, may be infinite.
std::string findNotFinite(const EntrySpec &entry, const std::vector<Tensor> &results);

/// Follows NaNs and infinities through a run of one dispatch after the other. It sees values in
/// memory: of those inside of a kernel, it knows what becomes of them.
class FlawTracker {
public:
  /// Keeps references to all arguments.
  FlawTracker(const Artifact &artifact, const EntrySpec &entry, const Observation &observation,
              const std::vector<Tensor> &inputs, const GraphValues &graph, const LoopWalk &walk);

  /// Takes the bytes of an operand after a dispatch that may have written it; `walk` is there.
  void see(size_t dispatch, size_t operand, const Bytes &data);
  /// Begins a trip of a loop, whose carried values are those of a member.
  void beginTrip(size_t loop, int64_t CarriedValue::*from);
  /// Ends a loop.
  void endLoop(size_t loop, int64_t CarriedValue::*from);

  /// Returns a sentence on the dispatch that first made what a result may not hold, or "".
  std::string explain() const;

private:
  /// The place where a NaN or an infinity came up first.
  struct Origin {
    int64_t dispatch = -1; ///< or -1: before the run
    std::string sentence;  ///< "" where there is none
    std::string maker;     ///< "dispatch 3 (kernel k, from m.mlir:4) in trip 2", "argument 'x'"
  };
  struct Flaws {
    Origin nan, infinity;
  };
  /// The first elements of some bytes that are not finite; -1: none is.
  struct Found {
    int64_t nan = -1, infinity = -1;
  };

  void addOutside(Flaws &flaws, const std::string &what, const Tensor &tensor) const;
  void find(const Bytes &data, int64_t begin, int64_t end, int64_t from, const TensorSpec &type,
            Found &found) const;
  std::vector<const Flaws *> getOperands(size_t dispatch, std::vector<std::string> &names) const;
  Flaws explainWrite(size_t dispatch, int64_t value, const Found &found) const;

  const EntrySpec &entry;
  const Plan &plan;
  const Profile &profile;
  std::vector<const Command *> dispatches;
  std::set<std::pair<size_t, size_t>> completions;
  const GraphValues &graph;
  const LoopWalk &walk;
  std::vector<Flaws> values; ///< by value
  std::vector<std::pair<ConstantSpec, Flaws>> constants;
};

/// Runs an entry, one dispatch after the other, and returns the sentence of a `FlawTracker`.
/// Errors: `Error` when the artifact holds no graph, or its graph and its plan do not compute the
///         same values.
std::string explainNotFinite(const Artifact &artifact, const std::string &path,
                             const EntrySpec &entry, const std::string &device,
                             const std::vector<Tensor> &inputs);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_NOTFINITE_H
