//===- Observation.h - A run, one dispatch after the other ------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_OBSERVATION_H
#define WEIR_TOOLS_WEIR_OBSERVATION_H

#include "Invocation.h"
#include "LoopWalk.h"

#include <memory>
#include <set>
#include <utility>

namespace weir::tool {

/// Whether a device is the simulator: "sim", or "sim:cuda" for the code of one target.
bool isSimulator(const std::string &device);
/// Returns the target behind "sim:", or "".
std::string getSimTarget(const std::string &device);

/// An entry with its inputs on a device or the simulator, to be run one dispatch after the other.
/// The arguments of the constructor must outlive it. Errors of all calls: `Error`.
class Observation {
public:
  Observation(const Artifact &artifact, const std::string &path, const EntrySpec &entry,
              const std::string &device, const std::vector<Tensor> &inputs);

  /// Returns the plan that runs, and its profile.
  const Plan &getPlan() const { return *plan; }
  const Profile &getProfile() const { return *profile; }

  /// Runs once; after each dispatch, in each trip of a loop, passes each operand that it may have
  /// written to `observer`: the dispatch, the operand and its bytes. `walk`, of the same plan, goes
  /// along.
  void run(LoopWalk &walk, const std::function<void(size_t, size_t, const Bytes &)> &observer);

private:
  const Artifact &artifact;
  const EntrySpec &entry;
  const std::vector<Tensor> &inputs;
  std::unique_ptr<Invocation> invocation; ///< null on the simulator
  const Plan *plan;
  const Profile *profile;
};

/// Returns how many times as long as an element is what a device has of it in a value of
/// `valueBytes`: 2 or 4 where each short one lies in a word of 32 bits, else 1.
int64_t getWordScale(const TensorSpec &type, int64_t valueBytes);

/// Returns the elements that lie in the lowest bytes of words.
Bytes takeFromWords(const Bytes &words, int64_t scale);

/// Returns the dispatches and operands whose writes complete a value: its last part, also where it
/// is computed again.
std::set<std::pair<size_t, size_t>> findCompletions(const Plan &plan);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_OBSERVATION_H
