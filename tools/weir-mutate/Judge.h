//===- Judge.h - What is wrong with a plan, found by enumeration -*- C++ -*-===//
//
// Says whether a plan and its code may compute anything else than their dispatches do
// one by one, and whether the plan says anything that is not so. Shares no code with
// lib/Verify and lib/Sim: it takes the bytes that the code touches from `Trace.h`, and
// replays them byte run by byte run, pair by pair.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_JUDGE_H
#define WEIR_TOOLS_WEIR_MUTATE_JUDGE_H

#include "Trace.h"
#include "weir/Artifact/Artifact.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace weir::mutate {

/// What a mutant is to whoever checks it.
enum class Class {
  Behavior,  ///< legal executions may compute something else
  Metadata,  ///< they may not, but the plan says what is not so
  Equivalent ///< neither
};

/// "behavior", "metadata", "equivalent".
const char *getName(Class what);

struct Verdict {
  Class what = Class::Equivalent;
  std::string proof; ///< the witness, or what was enumerated without one
};

/// Half-open, sorted, none touching the next.
using Intervals = std::vector<std::pair<int64_t, int64_t>>;

/// What the code does to the bytes of one operand, counted from its first one.
struct Effect {
  Intervals reads, writes;
};

class Judge {
public:
  /// Errors: `Error` when the plan's code cannot be enumerated.
  Verdict judge(const Artifact &artifact, const Plan &plan);

  /// Of each operand of a dispatch. Errors: as above.
  const std::vector<Effect> &getEffects(const Artifact &artifact, const Plan &plan,
                                        const Command &dispatch);

  /// Loads and stores of a dispatch's code. Errors: as above.
  const Trace &getTrace(const Artifact &artifact, const Plan &plan, const Command &dispatch);

private:
  struct Known {
    Trace trace;
    std::vector<Effect> effects;
    /// What goes wrong inside, "" for nothing, by how the operands share bytes.
    std::map<std::vector<int64_t>, std::string> problems;
  };
  using Key = std::tuple<Bytes, std::string, std::array<int64_t, 3>, int64_t, size_t>;
  friend class Replay;

  Known &know(const Artifact &artifact, const Plan &plan, const Command &dispatch);
  const std::string &findProblemInside(const Artifact &artifact, const Plan &plan,
                                       const Command &dispatch);

  std::map<Key, std::unique_ptr<Known>> known; ///< by code, entry point, grid, subgroup, bindings
};

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_JUDGE_H
