//===- Greedy.cpp - Best fit by decreasing size ---------------------------===//

#include "weir/Planner/Planner.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <numeric>
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
                  ", which is no power of two");
    if (value.lastWave < value.firstWave)
      throw Error(name + "lives in waves " + std::to_string(value.firstWave) + " to " +
                  std::to_string(value.lastWave) + ", which end before they begin");
  }
}

/// Returns the start of the smallest gap between `placed` (values in order of
/// their offsets) that holds `value`, or else the first byte after those that
/// are live with it.
static int64_t findOffset(const Lifetime &value, const std::vector<Lifetime> &values,
                          const std::vector<int64_t> &offsets, const std::vector<size_t> &placed) {
  int64_t best = -1, bestSize = 0;
  int64_t free = 0; // all bytes of a conflicting value before here are passed
  for (size_t other : placed) {
    const Lifetime &neighbor = values[other];
    if (neighbor.firstWave > value.lastWave || neighbor.lastWave < value.firstWave)
      continue;
    int64_t start = align(free, value.alignment);
    int64_t size = offsets[other] - start;
    if (size >= value.bytes && (best < 0 || size < bestSize)) {
      best = start;
      bestSize = size;
    }
    free = std::max(free, offsets[other] + neighbor.bytes);
  }
  return best >= 0 ? best : align(free, value.alignment);
}

MemoryPlan weir::planMemory(const std::vector<Lifetime> &values, bool noReuse) {
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
  std::vector<size_t> placed; // by offset, then number
  for (size_t i : order) {
    plan.offsets[i] = findOffset(values[i], values, plan.offsets, placed);
    plan.arenaBytes = std::max(plan.arenaBytes, add(plan.offsets[i], values[i].bytes));
    auto comesBefore = [&](size_t a, size_t b) {
      return std::tie(plan.offsets[a], a) < std::tie(plan.offsets[b], b);
    };
    placed.insert(std::lower_bound(placed.begin(), placed.end(), i, comesBefore), i);
  }
  plan.arenaBytes = align(plan.arenaBytes, largest);
  // Greedy packing can waste more than reuse gains; then don't reuse.
  if (plan.arenaBytes > plan.pinnedBytes)
    return planMemory(values, /*noReuse=*/true);
  return plan;
}
