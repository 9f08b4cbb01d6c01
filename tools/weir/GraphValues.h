//===- GraphValues.h - The values of a plan, by its graph --------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_GRAPHVALUES_H
#define WEIR_TOOLS_WEIR_GRAPHVALUES_H

#include "weir/Artifact/Artifact.h"

#include <map>
#include <string>
#include <vector>

namespace weir::tool {

/// A function of an entry's graph: all of the entry or, where it has loops, what runs between two
/// edges of these.
struct Segment {
  std::string text, function;
  std::vector<int64_t> arguments; ///< values of the plan; of a whole entry none
  /// The function's results, then the other values that its kernels make, by their numbers in the
  /// plan, or -1 for one without bytes.
  std::vector<int64_t> made;
  std::vector<TensorSpec> types; ///< of `made`
  int64_t first = 0;             ///< its commands begin here
};

/// Values of a plan, by the graph that the plan was compiled from.
class GraphValues {
public:
  /// Forms the kernels of an entry again. Errors: `Error` when the artifact holds no graph, or its
  /// graph and its plan do not compute the same values; `Problems` of the graph.
  GraphValues(const Artifact &artifact, const std::string &path, const EntrySpec &entry,
              const Plan &plan, const Profile &profile);

  /// Returns what a value is as a tensor, or null if the graph does not say.
  const TensorSpec *getType(int64_t value) const {
    auto found = types.find(value);
    return found == types.end() ? nullptr : &found->second;
  }

  std::vector<Segment> segments;
  std::map<int64_t, std::pair<size_t, size_t>> makers; ///< by value: segment and index in `made`
  std::map<int64_t, int64_t> copies; ///< what a trip copies at its end: the copy, its source
  int64_t numBetween =
      0; ///< the first values are those that functions take; 0: there is one function

private:
  class Reader;
  std::map<int64_t, TensorSpec> types; ///< by value
};

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_GRAPHVALUES_H
