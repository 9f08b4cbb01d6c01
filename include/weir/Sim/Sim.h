//===- Sim.h - An artifact's SPIR-V, run by the book ------------*- C++ -*-===//
//
// Interprets the words of an artifact on the host, in orders that its plan permits,
// and watches every byte. See docs/simulator.md.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_SIM_SIM_H
#define WEIR_SIM_SIM_H

#include "weir/Artifact/Artifact.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace weir {

/// In which order dispatches, workgroups and subgroups that may overlap run.
enum class SimStrategy {
  Random,      ///< by the seed, a few accesses at a time
  Recorded,    ///< as recorded, one after the other
  LatestFirst, ///< what was recorded last first, its last workgroup first
  WriterFirst, ///< what writes before what reads the same bytes
  Split        ///< half of each dispatch, access by access, then the other halves
};

/// Errors: `Error` that lists the names: random, recorded, latest-first,
/// writer-first, split.
SimStrategy parseSimStrategy(const std::string &name);

struct SimOptions {
  SimStrategy strategy = SimStrategy::Random;
  uint64_t seed = 1;
  int64_t steps = 1;
  /// Whether Fma is rounded once. Vulkan allows it to be a product and a sum, as
  /// lavapipe has it.
  bool fusesFma = false;
  /// For each result the argument that it is in the next step, or -1. May be empty.
  std::vector<int64_t> carried = {};
  /// Returns the arguments that are new in a step, counted from 0: their indices and
  /// values. None of them is carried.
  std::function<std::vector<std::pair<size_t, Tensor>>(int64_t)> getArguments = {};
  /// Called after each step with its results.
  std::function<void(int64_t, const std::vector<Tensor> &)> onEnd = {};
  /// Told now and then how much is done, from 0 to 1.
  std::function<void(double)> progress = {};
};

struct SimOutcome {
  std::vector<Tensor> results; ///< of the last step
  /// What a legal execution may go wrong in: a sentence for each pair of accesses.
  std::vector<std::string> reports;
};

/// Runs an entry `steps` times, and once more with the arguments of the last step,
/// in one arena and with the arguments that are not donated left as they are.
/// Errors: `Error` when the artifact has no plan for Vulkan, when its words or their
///         fit to the plan are wrong, or when they hold what the simulator does not
///         know.
SimOutcome simulate(const Artifact &artifact, const EntrySpec &entry,
                    const std::vector<Tensor> &arguments, const SimOptions &options);

} // namespace weir

#endif // WEIR_SIM_SIM_H
