//===- Judge.h - Judges a plan by enumeration -------------------*- C++ -*-===//
//
// Decides whether a plan and its code may compute anything else than their dispatches do
// one by one, and whether the plan states anything false. It takes the bytes that the code
// touches from `Trace.h`, and replays them byte run by byte run, pair by pair.
//
// It reads files and code, and writes out loops, with lib/Artifact, lib/SpirvReader and
// lib/PtxReader, as lib/Verify and lib/Sim do, and shares none of their rules: what is ordered,
// visible or live is decided here again.
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

/// The verdict that a checker should reach on a mutant.
enum class Class {
  Behavior,  ///< legal executions may compute other results
  Metadata,  ///< they may not, but the plan makes a false statement
  Equivalent ///< neither
};

/// Returns "behavior", "metadata" or "equivalent".
const char *getName(Class what);

struct Verdict {
  Class what = Class::Equivalent;
  std::string proof; ///< the witness, or a summary of the search without one
};

/// Half-open intervals, sorted and not adjacent.
using Intervals = std::vector<std::pair<int64_t, int64_t>>;

/// The effect of the code on one operand, in bytes from its first one.
struct Effect {
  Intervals reads, writes;
};

class Judge {
public:
  /// Counts both addresses of a load where data decide which one it has, or none.
  explicit Judge(bool countsChosen = true) : countsChosen(countsChosen) {}

  /// Whether the code for a target can be enumerated.
  static bool canRead(const std::string &target) {
    return getBaseTarget(target) == "vulkan" || getBaseTarget(target) == "cuda";
  }

  /// Returns the class of `plan` and its proof.
  /// Errors: `Error` when the plan's code cannot be enumerated.
  Verdict judge(const Artifact &artifact, const Plan &plan);

  /// Whether data decide addresses in the code so far.
  bool hasChosen() const { return sawChosen; }

  /// Returns the effect on each operand of a dispatch. Errors: as `judge`.
  const std::vector<Effect> &getEffects(const Artifact &artifact, const Plan &plan,
                                        const Command &dispatch);

  /// Returns the loads and stores of a dispatch's code. Errors: as `judge`.
  const Trace &getTrace(const Artifact &artifact, const Plan &plan, const Command &dispatch);

private:
  struct Known {
    Trace trace;
    std::vector<Effect> effects;
    /// The error inside the dispatch, or "", by the relative positions of its operands.
    std::map<std::vector<int64_t>, std::string> problems;
  };
  using Key = std::tuple<Bytes, std::string, std::array<int64_t, 3>, int64_t, size_t>;
  friend class Replay;

  Known &know(const Artifact &artifact, const Plan &plan, const Command &dispatch);
  const std::string &findProblemInside(const Artifact &artifact, const Plan &plan,
                                       const Command &dispatch);

  const bool countsChosen;
  bool sawChosen = false;
  std::map<Key, std::unique_ptr<Known>> known; ///< by code, entry point, grid, subgroup, bindings
};

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_JUDGE_H
