//===- Model.h - Problems as the solvers see them ---------------*- C++ -*-===//
//
// Buffers whose distance is fixed (chains, groups) move as one item: rectangles
// of waves and bytes, relative to the item's base. Each space is cut into
// components that share no wave, which are independent.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_PLANNER_MODEL_H
#define WEIR_LIB_PLANNER_MODEL_H

#include "weir/Planner/Planner.h"

#include <span>

namespace weir::planner {

/// Bytes [begin, end) above the item's base in waves [first, last].
struct Part {
  int64_t first = 0, last = 0;
  int64_t begin = 0, end = 0;
};

struct Item {
  size_t firstPart = 0, partCount = 0;
  int64_t alignment = 1;
  int64_t height = 0; ///< the largest end of its parts
  int64_t first = 0, last = 0;
  std::optional<int64_t> fixed, hint;
};

/// Items of one space. No byte of an item is in two of its parts in one wave.
struct Instance {
  std::vector<Item> items;
  std::vector<Part> parts;

  std::span<const Part> getParts(size_t item) const {
    return std::span(parts).subspan(items[item].firstPart, items[item].partCount);
  }
  /// The bytes that an item takes where it takes most.
  int64_t getBytes(size_t item) const;
};

/// Where a buffer went.
struct Member {
  size_t item = 0;   ///< of the instance of its space
  int64_t delta = 0; ///< from the item's base
};

struct Model {
  std::vector<Instance> spaces;
  std::vector<Member> members; ///< by buffer
};

/// Errors: as planBuffers.
Model makeModel(const PlanProblem &problem);

/// Items that share no wave with the others, by their first waves, so that those
/// that are live together are near each other in memory, too.
struct Component {
  std::vector<uint32_t> items;
};
std::vector<Component> findComponents(const Instance &instance);
Instance select(const Instance &instance, const Component &component);

/// Every offset of some best plan is a multiple of this, and so is its peak.
int64_t getUnit(const Instance &instance);

/// The most bytes live in one wave, in whole multiples of what bases align to.
int64_t getMaxLive(const Instance &instance);

/// Rounds up to a multiple.
inline int64_t alignUp(int64_t bytes, int64_t alignment) {
  int64_t rest = bytes % alignment;
  return rest ? bytes + (alignment - rest) : bytes;
}

/// Pairs of items that share waves. Of two the one with the higher base lies
/// above the other by at least a distance.
class Conflicts {
public:
  /// Pairs of parts live together, no more than `most`.
  static uint64_t count(const Instance &instance, uint64_t most);
  explicit Conflicts(const Instance &instance);

  std::span<const uint32_t> of(size_t item) const {
    return std::span(others).subspan(begins[item], begins[item + 1] - begins[item]);
  }
  /// Base of the k-th conflict of `item`, when that lies above `item`, minus
  /// that of `item`.
  int64_t above(size_t item, size_t k) const {
    return distances.empty() ? instance.items[item].height : distances[begins[item] + k].first;
  }
  /// Base of `item`, when it lies above its k-th conflict, minus that one's.
  int64_t below(size_t item, size_t k) const {
    return distances.empty() ? instance.items[others[begins[item] + k]].height
                             : distances[begins[item] + k].second;
  }
  /// Whether of any two of them one lies wholly above the other.
  bool isFlat() const { return flat; }

private:
  const Instance &instance;
  std::vector<size_t> begins;
  std::vector<uint32_t> others;
  std::vector<std::pair<int64_t, int64_t>> distances; ///< empty: the heights
  bool flat = true;
};

} // namespace weir::planner

#endif // WEIR_LIB_PLANNER_MODEL_H
