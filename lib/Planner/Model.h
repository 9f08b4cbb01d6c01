//===- Model.h - Problems as the solvers see them ---------------*- C++ -*-===//
//
// Buffers at fixed distances (chains, groups) move as one item: rectangles of waves and bytes,
// relative to the item's base. Each space is split into components that share no wave and are
// independent.
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
  /// Returns the max number of bytes that an item holds in one wave.
  int64_t getBytes(size_t item) const;
};

/// The item that a buffer belongs to.
struct Member {
  size_t item = 0;   ///< index into the instance of its space
  int64_t delta = 0; ///< from the item's base
};

struct Model {
  std::vector<Instance> spaces;
  std::vector<Member> members; ///< by buffer
};

/// Builds the model of a problem. Errors: as planBuffers.
Model makeModel(const PlanProblem &problem);

/// Items that share no wave with the others, sorted by first wave, for locality.
struct Component {
  std::vector<uint32_t> items;
};
std::vector<Component> findComponents(const Instance &instance);
Instance select(const Instance &instance, const Component &component);

/// Returns a number that divides all offsets and the peak of some best plan.
int64_t getUnit(const Instance &instance);

/// Returns the max number of bytes live in one wave, rounded up to the alignment of bases.
int64_t getMaxLive(const Instance &instance);

/// Rounds up to a multiple.
inline int64_t alignUp(int64_t bytes, int64_t alignment) {
  int64_t rest = bytes % alignment;
  return rest ? bytes + (alignment - rest) : bytes;
}

/// Pairs of items that share waves, with the min distances of their bases: the item with the
/// higher base lies above the other by at least one of these.
class Conflicts {
public:
  /// Returns the number of pairs of parts live together, or `max` if there are more.
  static uint64_t count(const Instance &instance, uint64_t max);
  explicit Conflicts(const Instance &instance);

  std::span<const uint32_t> of(size_t item) const {
    return std::span(others).subspan(begins[item], begins[item + 1] - begins[item]);
  }
  /// Returns the min of (base of the k-th conflict - base of `item`) if the conflict lies
  /// above.
  int64_t above(size_t item, size_t k) const {
    return distances.empty() ? instance.items[item].height : distances[begins[item] + k].first;
  }
  /// Returns the min of (base of `item` - base of its k-th conflict) if `item` lies above.
  int64_t below(size_t item, size_t k) const {
    return distances.empty() ? instance.items[others[begins[item] + k]].height
                             : distances[begins[item] + k].second;
  }
  /// Whether of any two conflicting items one lies wholly above the other.
  bool isFlat() const { return flat; }

private:
  const Instance &instance;
  std::vector<size_t> begins;
  std::vector<uint32_t> others;
  std::vector<std::pair<int64_t, int64_t>> distances; ///< empty: the items' heights
  bool flat = true;
};

} // namespace weir::planner

#endif // WEIR_LIB_PLANNER_MODEL_H
