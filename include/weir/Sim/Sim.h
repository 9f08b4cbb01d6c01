//===- Sim.h - An artifact's GPU code, run by the book ----------*- C++ -*-===//
//
// Interprets an artifact's SPIR-V or PTX on the host, in orders that its plan permits, and checks
// every access. See docs/simulator.md.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_SIM_SIM_H
#define WEIR_SIM_SIM_H

#include "weir/Artifact/Artifact.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir {

/// The order in which dispatches, workgroups and subgroups run if they may overlap.
enum class SimStrategy {
  Random,      ///< random by the seed, a few accesses at a time
  Recorded,    ///< in recorded order, one after the other
  LatestFirst, ///< the last recorded dispatch first, its last workgroup first
  WriterFirst, ///< writers before readers of the same bytes
  Split        ///< half of each dispatch, access by access, then the other halves
};

/// Parses a strategy's name: random, recorded, latest-first, writer-first, split. Errors:
/// `Error` that lists them.
SimStrategy parseSimStrategy(const std::string &name);

struct SimOptions {
  std::string target = {}; ///< vulkan, cuda or a full target; empty: the first that there is
  SimStrategy strategy = SimStrategy::Random;
  uint64_t seed = 1;
  int64_t steps = 1;
  /// Whether Fma of SPIR-V is rounded once. Vulkan also allows a rounded product and a sum, as
  /// lavapipe does.
  bool fusesFma = false;
  /// For each result, index of the argument that it becomes in the next step, or -1. May be
  /// empty.
  std::vector<int64_t> carried = {};
  /// Returns the new arguments of a step (counted from 0) as (index, value). None of them is
  /// carried.
  std::function<std::vector<std::pair<size_t, Tensor>>(int64_t)> getArguments = {};
  /// Called after each step with its results.
  std::function<void(int64_t, const std::vector<Tensor> &)> onEnd = {};
  /// Called in the first step behind each dispatch, in each trip of a loop, with each operand that
  /// it may have written: the dispatch, the operand and its bytes.
  std::function<void(size_t, size_t, const Bytes &)> onWrite = {};
  /// Called now and then with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
};

/// The subject of a report of the simulator.
struct SimFinding {
  enum class Kind { Race, Divergent, OutOfBounds, Unwritten, Other } kind = Kind::Other;
  /// Races and bounds: the operand; none: workgroup memory.
  std::optional<uint32_t> operand;
  bool isPrivate = false; ///< whether it is about a variable of an invocation
  std::string sentence;
};

struct SimOutcome {
  std::vector<Tensor> results; ///< of the last step
  /// Errors that a legal execution may have: one sentence per pair of accesses.
  std::vector<std::string> reports;
  std::vector<SimFinding> findings; ///< the same reports, told apart
};

/// Returns the profile whose code the simulator runs: that of `target`, or if that is empty, the
/// first for vulkan, else the first for cuda. Errors: `Error` when there is none.
const Profile &chooseSimProfile(const Artifact &artifact, const std::string &target);

/// Runs an entry `steps` times, and once more with the arguments of the last step, in one arena
/// that keeps its contents and without resetting arguments that are not donated. Errors:
/// `Error` when the artifact has no plan for the target, or its code is invalid, does not fit the
/// plan, or uses something that the simulator does not support.
SimOutcome simulate(const Artifact &artifact, const EntrySpec &entry,
                    const std::vector<Tensor> &arguments, const SimOptions &options);

} // namespace weir

#endif // WEIR_SIM_SIM_H
