//===- AgainstGraph.h - Code compared with the graph that it is of -*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_AGAINSTGRAPH_H
#define WEIR_TOOLS_WEIR_AGAINSTGRAPH_H

#include "weir/Artifact/Artifact.h"

#include <functional>
#include <optional>

namespace weir::tool {

/// Says whether the code of an entry for a target computes the entry's graph.
struct GraphAnswer {
  std::string entry, target;
  std::optional<bool> agrees; ///< nothing if the code could not be run, or a result compared
  std::string detail;         ///< the largest error, the counterexample, or why there is no answer
};

/// Runs the code of each entry and target on made-up arguments, and compares the results with
/// those of the artifact's own graph. Code for Vulkan and CUDA runs in the simulator, whose reports
/// count as disagreement; code for processors runs on this one, if it can.
///
/// Each argument has values of its own, so that two that are exchanged give other results: first
/// floats around 0, then, as roots and logarithms have no values there, their magnitudes. If a result
/// has no finite number yet, such as the root of 1 - beta^t in a step of AdamW, floats between 0 and
/// 1 follow. Integers are 0 or 1, which are indices of nearly everything. The answer is
/// no if a result deviates in each run that gives it a finite number; in a single run, rounding may
/// turn a comparison around. The answer is missing if some result has a finite number in no run.
/// Errors: `Error` when the artifact holds no graph.
std::vector<GraphAnswer> compareWithGraph(const Artifact &artifact, const std::string &path,
                                          uint64_t seed,
                                          const std::function<void(const std::string &)> &onStep);

/// Whether a graph is so small that comparing costs no more than fractions of a second.
bool isSmall(const Artifact &artifact);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_AGAINSTGRAPH_H
