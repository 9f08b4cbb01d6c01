//===- Greedy.cpp - Best fit by decreasing size ---------------------------===//

#include "weir/Planner/Planner.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

using namespace weir;

/// Rounds up. Errors: `Error` on overflow.
static int64_t align(int64_t bytes, int64_t alignment) {
  int64_t rest = bytes % alignment;
  int64_t result = bytes;
  if (rest && __builtin_add_overflow(bytes, alignment - rest, &result))
    throw Error("the values of the arena need more than 2^63 - 1 bytes; make "
                "them smaller");
  return result;
}

static int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    throw Error("the values of the arena need more than 2^63 - 1 bytes; make "
                "them smaller");
  return sum;
}

static void check(const std::vector<Lifetime> &values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Lifetime &value = values[i];
    std::string name = "value " + std::to_string(i) + " of the arena ";
    if (value.bytes < 0)
      throw Error(name + "has " + std::to_string(value.bytes) + " bytes; sizes begin at 0");
    if (value.alignment < 1 || (value.alignment & (value.alignment - 1)))
      throw Error(name + "has alignment " + std::to_string(value.alignment) +
                  ", expected a power of two");
    if (value.lastWave < value.firstWave)
      throw Error(name + "lives in waves " + std::to_string(value.firstWave) + " to " +
                  std::to_string(value.lastWave) + ", which end before they begin");
  }
}

namespace {
/// The values placed so far, searchable by wave.
class LiveValues {
public:
  explicit LiveValues(const std::vector<Lifetime> &values) : values(values), order(values.size()) {
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::tie(values[a].firstWave, a) < std::tie(values[b].firstWave, b);
    });
    position.resize(values.size());
    for (size_t i = 0; i < order.size(); ++i)
      position[order[i]] = i;
    while (leaves < order.size())
      leaves *= 2;
    lastWave.assign(2 * leaves, none);
  }

  void add(size_t value) {
    size_t node = leaves + position[value];
    lastWave[node] = values[value].lastWave;
    while (node /= 2)
      lastWave[node] = std::max(lastWave[2 * node], lastWave[2 * node + 1]);
  }

  /// Calls `visit` with the values that are live in a common wave with `value`.
  template <typename Visit> void find(const Lifetime &value, Visit visit) const {
    find(value, 1, 0, leaves, visit);
  }

private:
  static constexpr int64_t none = std::numeric_limits<int64_t>::min();

  template <typename Visit>
  void find(const Lifetime &value, size_t node, size_t begin, size_t size, Visit &visit) const {
    if (lastWave[node] == none || lastWave[node] < value.firstWave || begin >= order.size() ||
        values[order[begin]].firstWave > value.lastWave)
      return;
    if (size == 1) {
      visit(order[begin]);
      return;
    }
    find(value, 2 * node, begin, size / 2, visit);
    find(value, 2 * node + 1, begin + size / 2, size / 2, visit);
  }

  const std::vector<Lifetime> &values;
  std::vector<size_t> order;    ///< by first wave
  std::vector<size_t> position; ///< by value: index in `order`
  size_t leaves = 1;
  std::vector<int64_t> lastWave; ///< a tree over `order`: the latest below a node
};
} // namespace

namespace {
/// The values placed so far, in the order of their offsets.
class PlacedValues {
public:
  void add(const Lifetime &value, int64_t offset) {
    Placed placed = {offset, offset + value.bytes, value.firstWave, value.lastWave};
    list.insert(std::upper_bound(list.begin(), list.end(), placed), placed);
  }

  /// Calls `visit` with the offset and end of each that is live in a common wave with `value`.
  template <typename Visit> void find(const Lifetime &value, Visit visit) const {
    for (const Placed &other : list)
      if (other.firstWave <= value.lastWave && value.firstWave <= other.lastWave)
        visit(other.offset, other.end);
  }

private:
  struct Placed {
    int64_t offset, end, firstWave, lastWave;

    bool operator<(const Placed &other) const { return offset < other.offset; }
  };
  std::vector<Placed> list;
};
} // namespace

/// Returns the start of the smallest gap between `conflicting` (offset and end of each, in this
/// order) that holds `value`, or else the first byte after them.
static int64_t findOffset(const Lifetime &value,
                          const std::vector<std::pair<int64_t, int64_t>> &conflicting) {
  int64_t best = -1, bestSize = 0;
  int64_t free = 0; // all conflicting values seen so far end before this byte
  for (auto [offset, end] : conflicting) {
    int64_t start = align(free, value.alignment);
    int64_t size = offset - start;
    if (size >= value.bytes && (best < 0 || size < bestSize)) {
      best = start;
      bestSize = size;
    }
    free = std::max(free, end);
  }
  return best >= 0 ? best : align(free, value.alignment);
}

/// Returns the max number of bytes live in one wave. Every offset is a multiple of the smallest
/// alignment, so sizes are rounded up to it.
static int64_t getMaxLive(const std::vector<Lifetime> &values) {
  int64_t unit = std::numeric_limits<int64_t>::max();
  for (const Lifetime &value : values)
    unit = std::min(unit, value.alignment);
  // Values sorted by first wave, and by last wave.
  std::vector<const Lifetime *> begins, ends;
  for (const Lifetime &value : values)
    begins.push_back(&value);
  ends = begins;
  std::sort(begins.begin(), begins.end(),
            [](const Lifetime *a, const Lifetime *b) { return a->firstWave < b->firstWave; });
  std::sort(ends.begin(), ends.end(),
            [](const Lifetime *a, const Lifetime *b) { return a->lastWave < b->lastWave; });
  int64_t live = 0, maxLive = 0;
  auto end = ends.begin();
  for (const Lifetime *value : begins) {
    for (; (*end)->lastWave < value->firstWave; ++end)
      live -= align((*end)->bytes, unit);
    maxLive = std::max(maxLive, live += align(value->bytes, unit));
  }
  return maxLive;
}

/// Replaces a plan by a smaller one if the solvers find one.
static void improve(MemoryPlan &plan, const std::vector<Lifetime> &values, int64_t largest,
                    int64_t effort) {
  PlanProblem problem;
  for (const Lifetime &value : values) {
    Buffer &buffer = problem.buffers.emplace_back();
    buffer.bytes = value.bytes;
    buffer.alignment = value.alignment;
    buffer.live = {{value.firstWave, value.lastWave}};
  }
  PlanOptions options;
  options.effort = effort;
  BufferPlan found = planBuffers(problem, options);
  plan.boundBytes = std::max(plan.boundBytes, align(found.spaces.front().bound, largest));
  int64_t bytes = align(found.spaces.front().peak, largest);
  if (bytes >= plan.arenaBytes)
    return;
  plan.arenaBytes = bytes;
  plan.offsets = std::move(found.offsets);
}

MemoryPlan weir::planMemory(const std::vector<Lifetime> &values, bool noReuse, int64_t effort,
                            int64_t below) {
  check(values);
  MemoryPlan plan;
  plan.offsets.resize(values.size());
  int64_t largest = 1;
  for (size_t i = 0; i < values.size(); ++i) {
    const Lifetime &value = values[i];
    int64_t start = align(plan.pinnedBytes, value.alignment);
    if (noReuse)
      plan.offsets[i] = start;
    plan.pinnedBytes = add(start, value.bytes);
    largest = std::max(largest, value.alignment);
  }
  plan.pinnedBytes = align(plan.pinnedBytes, largest);
  plan.boundBytes = align(getMaxLive(values), largest);
  if (noReuse) {
    plan.arenaBytes = plan.pinnedBytes;
    return plan;
  }

  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_tuple(-values[a].bytes, values[a].firstWave, a) <
           std::make_tuple(-values[b].bytes, values[b].firstWave, b);
  });
  // A walk over all is faster than a tree and a sort, unless there are very many.
  constexpr size_t maxWalked = 8192;
  std::optional<LiveValues> tree;
  if (values.size() > maxWalked)
    tree.emplace(values);
  PlacedValues placed;
  std::vector<std::pair<int64_t, int64_t>> conflicting;
  bool mayStop = effort == 0 && plan.pinnedBytes >= below;
  for (size_t i : order) {
    conflicting.clear();
    if (tree) {
      tree->find(values[i], [&](size_t other) {
        conflicting.emplace_back(plan.offsets[other], plan.offsets[other] + values[other].bytes);
      });
      std::sort(conflicting.begin(), conflicting.end());
    } else {
      placed.find(values[i],
                  [&](int64_t offset, int64_t end) { conflicting.emplace_back(offset, end); });
    }
    plan.offsets[i] = findOffset(values[i], conflicting);
    plan.arenaBytes = std::max(plan.arenaBytes, add(plan.offsets[i], values[i].bytes));
    if (mayStop && plan.arenaBytes >= below)
      return plan;
    if (tree)
      tree->add(i);
    else
      placed.add(values[i], plan.offsets[i]);
  }
  plan.arenaBytes = align(plan.arenaBytes, largest);
  if (effort > 0 && plan.arenaBytes > plan.boundBytes)
    improve(plan, values, largest, effort);
  // Greedy packing can waste more than reuse gains; then do not reuse.
  if (plan.arenaBytes > plan.pinnedBytes)
    return planMemory(values, /*noReuse=*/true);
  return plan;
}
