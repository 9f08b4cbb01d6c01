//===- Cover.cpp - The cheapest places that meet every set ----------------===//
//
// Branch and bound: some place of the smallest set that is not yet met must be
// chosen, and sets that share no place each cost at least their cheapest one.
//
//===----------------------------------------------------------------------===//

#include "weir/Order/Cover.h"

#include <algorithm>

using namespace weir;

using Set = std::vector<unsigned>;

static bool isIn(const Set &set, unsigned place) {
  return std::find(set.begin(), set.end(), place) != set.end();
}

namespace {
class CoverSearch {
public:
  CoverSearch(std::vector<Set> sets, const std::vector<int64_t> &costs, unsigned effort)
      : sets(std::move(sets)), costs(costs), chosen(costs.size()), excluded(costs.size()),
        effort(effort) {}

  Cover run() {
    best = chooseGreedily();
    bestCost = getCost(best);
    visit(0);
    return {best, effort > 0};
  }

private:
  std::vector<Set> sets;
  const std::vector<int64_t> &costs;
  std::vector<bool> chosen, excluded;
  Set best;
  int64_t bestCost = 0;
  unsigned effort;

  int64_t getCost(const Set &places) {
    int64_t sum = 0;
    for (unsigned place : places)
      sum += costs[place];
    return sum;
  }
  bool isMet(const Set &set) {
    return std::any_of(set.begin(), set.end(), [&](unsigned place) { return chosen[place]; });
  }

  Set chooseGreedily();
  void visit(int64_t cost);
};
} // namespace

/// Returns places, chosen one after another: each meets the most sets for its cost. Then drops
/// those that are not needed any more, the dearest first.
Set CoverSearch::chooseGreedily() {
  std::vector<const Set *> left;
  for (const Set &set : sets)
    left.push_back(&set);
  Set result;
  while (!left.empty()) {
    std::vector<int64_t> count(costs.size());
    for (const Set *set : left)
      for (unsigned place : *set)
        ++count[place];
    unsigned pick = left.front()->front();
    for (unsigned place = 0; place < costs.size(); ++place)
      if (double(count[place]) / double(costs[place]) > double(count[pick]) / double(costs[pick]))
        pick = place;
    result.push_back(pick);
    std::erase_if(left, [&](const Set *set) { return isIn(*set, pick); });
  }
  Set byCost = result;
  std::sort(byCost.begin(), byCost.end(), [&](unsigned a, unsigned b) {
    return std::make_pair(-costs[a], a) < std::make_pair(-costs[b], b);
  });
  for (unsigned place : byCost) {
    Set without = result;
    std::erase(without, place);
    if (std::all_of(sets.begin(), sets.end(), [&](const Set &set) {
          return std::any_of(set.begin(), set.end(),
                             [&](unsigned other) { return isIn(without, other); });
        }))
      result = without;
  }
  std::sort(result.begin(), result.end());
  return result;
}

void CoverSearch::visit(int64_t cost) {
  if (effort == 0)
    return;
  --effort;
  int64_t bound = cost;
  const Set *smallest = nullptr;
  size_t smallestSize = 0;
  std::vector<bool> counted(costs.size());
  for (const Set &set : sets) {
    if (isMet(set))
      continue;
    int64_t cheapest = 0;
    size_t size = 0;
    bool apart = true;
    for (unsigned place : set) {
      if (excluded[place])
        continue;
      ++size;
      cheapest = cheapest ? std::min(cheapest, costs[place]) : costs[place];
      apart &= !counted[place];
    }
    if (size == 0)
      return;
    if (!smallest || size < smallestSize) {
      smallest = &set;
      smallestSize = size;
    }
    if (!apart)
      continue;
    bound += cheapest;
    for (unsigned place : set)
      counted[place] = true;
  }
  if (bound >= bestCost)
    return;
  if (!smallest) {
    best.clear();
    for (unsigned place = 0; place < costs.size(); ++place)
      if (chosen[place])
        best.push_back(place);
    bestCost = cost;
    return;
  }
  Set order;
  for (unsigned place : *smallest)
    if (!excluded[place])
      order.push_back(place);
  std::sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
    return std::make_pair(costs[a], a) < std::make_pair(costs[b], b);
  });
  // Each next branch does without the places of those before.
  for (unsigned place : order) {
    chosen[place] = true;
    visit(cost + costs[place]);
    chosen[place] = false;
    excluded[place] = true;
  }
  for (unsigned place : order)
    excluded[place] = false;
}

Cover weir::findCover(const std::vector<Set> &sets, const std::vector<int64_t> &costs,
                      unsigned effort) {
  // A set that holds another is met with it.
  std::vector<Set> sorted = sets;
  std::sort(sorted.begin(), sorted.end(), [](const Set &a, const Set &b) {
    return a.size() != b.size()
               ? a.size() < b.size()
               : std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  });
  std::vector<Set> minimal;
  for (const Set &set : sorted)
    if (std::none_of(minimal.begin(), minimal.end(), [&](const Set &part) {
          return std::includes(set.begin(), set.end(), part.begin(), part.end());
        }))
      minimal.push_back(set);
  return CoverSearch(std::move(minimal), costs, effort).run();
}
