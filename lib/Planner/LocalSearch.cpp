//===- LocalSearch.cpp - Repairs plans and climbs orders ------------------===//

#include "Solvers.h"

#include <algorithm>
#include <queue>
#include <random>

using namespace weir;
using namespace weir::planner;

namespace {
class Repair {
public:
  Repair(const Instance &instance, const Conflicts &conflicts, const Bases &bases, int64_t target)
      : instance(instance), conflicts(conflicts), target(target), bases(bases),
        weights(bases.size(), 1) {}

  bool run(int64_t &steps);
  const Bases &getBases() const { return bases; }

private:
  static constexpr int64_t out = -1;
  int64_t choose(uint32_t i);

  struct Waiting {
    int64_t weight; ///< number of times it was taken out; larger ones first
    int64_t height;
    uint32_t item;
    bool operator<(const Waiting &other) const {
      return std::tuple(weight, height, other.item) < std::tuple(other.weight, other.height, item);
    }
  };
  void wait(uint32_t i) {
    bases[i] = out;
    waiting.push({weights[i], instance.items[i].height, i});
  }

  const Instance &instance;
  const Conflicts &conflicts;
  const int64_t target;
  Bases bases;
  std::vector<int64_t> weights; ///< by item: number of times it was taken out
  std::priority_queue<Waiting> waiting;
  struct Edge {
    int64_t base;
    double cost; ///< change of the cost from this base on
  };
  std::vector<Edge> edges;
  std::vector<int64_t> candidates;
};
} // namespace

/// Returns the base where the items to take out cost least, or `out`.
int64_t Repair::choose(uint32_t i) {
  const Item &item = instance.items[i];
  edges.clear();
  candidates.clear();
  int64_t maxBase = target - item.height;
  if (maxBase < 0)
    return out;
  auto addCandidate = [&](int64_t base) {
    if (base >= 0 && base <= maxBase)
      candidates.push_back(base);
  };
  addCandidate(0);
  addCandidate(maxBase / item.alignment * item.alignment);
  std::span<const uint32_t> others = conflicts.of(i);
  for (size_t k = 0; k < others.size(); ++k) {
    uint32_t other = others[k];
    if (bases[other] == out)
      continue;
    int64_t begin = bases[other] - conflicts.above(i, k);
    int64_t end = bases[other] + conflicts.below(i, k);
    double cost = instance.items[other].fixed
                      ? 1e100
                      : double(weights[other]) * double(instance.items[other].height);
    edges.push_back({begin + 1, cost});
    edges.push_back({end, -cost});
    addCandidate(alignUp(end, item.alignment));
    if (begin >= 0)
      addCandidate(begin / item.alignment * item.alignment);
  }
  std::sort(candidates.begin(), candidates.end());
  std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) {
    return std::pair(a.base, a.cost) < std::pair(b.base, b.cost);
  });
  int64_t best = out;
  double bestCost = 1e90, cost = 0;
  auto edge = edges.begin();
  for (int64_t base : candidates) {
    for (; edge != edges.end() && edge->base <= base; ++edge)
      cost += edge->cost;
    if (cost < bestCost) {
      best = base;
      bestCost = cost;
    }
  }
  return best;
}

bool Repair::run(int64_t &steps) {
  for (size_t i = 0; i < bases.size(); ++i)
    if (bases[i] + instance.items[i].height > target) {
      if (instance.items[i].fixed)
        return false;
      wait(uint32_t(i));
    }
  while (!waiting.empty()) {
    if (steps <= 0)
      return false;
    --steps;
    uint32_t i = waiting.top().item;
    waiting.pop();
    int64_t base = choose(i);
    if (base == out)
      return false;
    bases[i] = base;
    std::span<const uint32_t> others = conflicts.of(i);
    for (size_t k = 0; k < others.size(); ++k) {
      uint32_t other = others[k];
      if (bases[other] == out || base <= bases[other] - conflicts.above(i, k) ||
          base >= bases[other] + conflicts.below(i, k))
        continue;
      ++weights[other];
      wait(other);
    }
  }
  return true;
}

std::optional<Bases> planner::repair(const Instance &instance, const Conflicts &conflicts,
                                     const Bases &bases, int64_t target, int64_t &steps) {
  Repair repair(instance, conflicts, bases, target);
  if (!repair.run(steps))
    return std::nullopt;
  return repair.getBases();
}

Bases planner::climb(const Instance &instance, const Conflicts &conflicts,
                     std::vector<uint32_t> order, int64_t target, uint64_t seed, int64_t &steps) {
  std::mt19937_64 random(seed);
  Bases best = placeInOrder(instance, conflicts, order, Fit::First);
  int64_t bestPeak = getPeak(instance, best);
  // A step places one item.
  while (bestPeak > target && steps > 0) {
    steps -= int64_t(order.size());
    // Swap an item at the peak, or one beside it, with another one in the order.
    std::vector<size_t> high;
    for (size_t k = 0; k < order.size(); ++k)
      if (best[order[k]] + instance.items[order[k]].height == bestPeak)
        high.push_back(k);
    size_t from = high[random() % high.size()];
    if (std::span<const uint32_t> others = conflicts.of(order[from]);
        !others.empty() && random() % 2) {
      uint32_t other = others[random() % others.size()];
      from = size_t(std::find(order.begin(), order.end(), other) - order.begin());
    }
    std::vector<uint32_t> changed = order;
    std::swap(changed[from], changed[random() % order.size()]);
    Bases bases = placeInOrder(instance, conflicts, changed, Fit::First);
    if (int64_t peak = getPeak(instance, bases); peak <= bestPeak) {
      best = std::move(bases);
      bestPeak = peak;
      order = std::move(changed);
    }
  }
  return best;
}
