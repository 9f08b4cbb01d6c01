//===- Portfolio.cpp - Greedy placement in several orders -----------------===//

#include "Solvers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace weir;
using namespace weir::planner;

int64_t planner::getPeak(const Instance &instance, const Bases &bases) {
  int64_t peak = 0;
  for (size_t i = 0; i < instance.items.size(); ++i)
    peak = std::max(peak, bases[i] + instance.items[i].height);
  return peak;
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

std::vector<int64_t> planner::getContentions(const Instance &instance) {
  std::vector<int64_t> waves;
  for (const Part &part : instance.parts) {
    waves.push_back(part.first);
    waves.push_back(part.last + 1);
  }
  std::sort(waves.begin(), waves.end());
  waves.erase(std::unique(waves.begin(), waves.end()), waves.end());
  auto find = [&](int64_t wave) {
    return size_t(std::lower_bound(waves.begin(), waves.end(), wave) - waves.begin());
  };
  size_t leaves = 1;
  while (leaves < waves.size())
    leaves *= 2;
  std::vector<int64_t> most(2 * leaves, 0); // a tree of maxima of the live bytes
  for (const Part &part : instance.parts) {
    most[leaves + find(part.first)] += part.end - part.begin;
    most[leaves + find(part.last + 1)] -= part.end - part.begin;
  }
  std::partial_sum(most.begin() + leaves, most.end(), most.begin() + leaves);
  for (size_t node = leaves; --node > 0;)
    most[node] = std::max(most[2 * node], most[2 * node + 1]);
  std::vector<int64_t> result(instance.items.size(), 0);
  for (size_t i = 0; i < result.size(); ++i)
    for (const Part &part : instance.getParts(i))
      for (size_t l = leaves + find(part.first), r = leaves + find(part.last + 1); l < r;
           l /= 2, r /= 2) {
        if (l & 1)
          result[i] = std::max(result[i], most[l++]);
        if (r & 1)
          result[i] = std::max(result[i], most[--r]);
      }
  return result;
}

const char *planner::getName(Order order) {
  switch (order) {
  case Order::Size:
    return "size";
  case Order::Area:
    return "area";
  case Order::Lifetime:
    return "lifetime";
  case Order::Contention:
    return "contention";
  }
  __builtin_unreachable();
}

std::vector<uint32_t> planner::sortItems(const Instance &instance, Order order) {
  size_t count = instance.items.size();
  // Doubles: areas exceed 64 bits. Ties are broken by number.
  std::vector<std::pair<double, double>> keys(count);
  std::vector<int64_t> contentions;
  if (order == Order::Contention)
    contentions = getContentions(instance);
  for (size_t i = 0; i < count; ++i) {
    double area = 0, waves = 0;
    for (const Part &part : instance.getParts(i)) {
      double length = double(part.last) - double(part.first) + 1;
      waves += length;
      area += length * double(part.end - part.begin);
    }
    double height = double(instance.items[i].height);
    switch (order) {
    case Order::Size:
      keys[i] = {height, -double(instance.items[i].first)};
      break;
    case Order::Area:
      keys[i] = {area, height};
      break;
    case Order::Lifetime:
      keys[i] = {waves, height};
      break;
    case Order::Contention:
      keys[i] = {double(contentions[i]), area};
      break;
    }
  }
  std::vector<uint32_t> result(count);
  std::iota(result.begin(), result.end(), 0);
  std::sort(result.begin(), result.end(),
            [&](uint32_t a, uint32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
  return result;
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

Bases planner::placeInOrder(const Instance &instance, const Conflicts &conflicts,
                            const std::vector<uint32_t> &order, Fit fit, bool useHints) {
  Bases bases(instance.items.size(), -1);
  for (size_t i = 0; i < bases.size(); ++i)
    if (instance.items[i].fixed)
      bases[i] = *instance.items[i].fixed;
  std::vector<std::pair<int64_t, int64_t>> blocked; // open intervals of bases
  for (uint32_t i : order) {
    const Item &item = instance.items[i];
    if (item.fixed)
      continue;
    blocked.clear();
    std::span<const uint32_t> others = conflicts.of(i);
    for (size_t k = 0; k < others.size(); ++k)
      if (int64_t base = bases[others[k]]; base >= 0)
        blocked.push_back({base - conflicts.above(i, k), base + conflicts.below(i, k)});
    if (useHints && item.hint && *item.hint >= 0 && *item.hint % item.alignment == 0 &&
        std::none_of(blocked.begin(), blocked.end(), [&](auto range) {
          return range.first < *item.hint && *item.hint < range.second;
        })) {
      bases[i] = *item.hint;
      continue;
    }
    std::sort(blocked.begin(), blocked.end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });
    int64_t best = -1, bestSize = 0, free = 0;
    for (auto [begin, end] : blocked) {
      int64_t start = alignUp(free, item.alignment);
      if (start <= begin && (best < 0 || begin - start < bestSize)) {
        best = start;
        bestSize = begin - start;
        if (fit == Fit::First)
          break;
      }
      free = std::max(free, end);
    }
    bases[i] = best >= 0 ? best : alignUp(free, item.alignment);
  }
  return bases;
}

namespace {
/// Free ranges of bytes, by address and by size.
class Holes {
public:
  void add(int64_t begin, int64_t end) {
    if (begin >= end)
      return;
    auto next = byBegin.lower_bound(begin);
    if (next != byBegin.end() && next->first == end) {
      end = next->second;
      next = erase(next);
    }
    if (next != byBegin.begin())
      if (auto before = std::prev(next); before->second == begin) {
        begin = before->first;
        erase(before);
      }
    byBegin[begin] = end;
    bySize.insert({end - begin, begin});
  }

  /// Takes bytes from the smallest hole that is large enough.
  std::optional<int64_t> take(int64_t bytes, int64_t alignment) {
    // Skip a few holes that are too small once aligned; then require one that is large enough
    // for any begin.
    auto hole = bySize.lower_bound({bytes, 0});
    for (int tries = 0; hole != bySize.end(); ++tries) {
      int64_t start = alignUp(hole->second, alignment);
      if (start + bytes <= hole->second + hole->first) {
        auto found = byBegin.find(hole->second);
        auto [begin, end] = *found;
        erase(found);
        add(begin, start);
        add(start + bytes, end);
        return start;
      }
      if (tries == 8)
        hole = bySize.lower_bound({std::max(hole->first + 1, bytes + alignment - 1), 0});
      else
        ++hole;
    }
    return std::nullopt;
  }

private:
  std::map<int64_t, int64_t>::iterator erase(std::map<int64_t, int64_t>::iterator hole) {
    bySize.erase({hole->second - hole->first, hole->first});
    return byBegin.erase(hole);
  }

  std::map<int64_t, int64_t> byBegin;
  std::set<std::pair<int64_t, int64_t>> bySize;
};
} // namespace

Bases planner::placeByWave(const Instance &instance) {
  // Bytes of fixed items are never free.
  std::vector<std::pair<int64_t, int64_t>> fixed;
  int64_t end = 0; // end of the last hole
  for (const Item &item : instance.items) {
    if (item.fixed)
      fixed.push_back({*item.fixed, *item.fixed + item.height});
    else
      end += item.height + item.alignment;
  }
  std::sort(fixed.begin(), fixed.end());
  Holes holes;
  int64_t free = 0;
  for (auto [begin, last] : fixed) {
    holes.add(free, begin);
    free = std::max(free, last);
  }
  holes.add(free, free + end);

  std::vector<uint32_t> begins, ends;
  for (size_t i = 0; i < instance.items.size(); ++i)
    if (!instance.items[i].fixed)
      begins.push_back(uint32_t(i));
  ends = begins;
  std::sort(begins.begin(), begins.end(), [&](uint32_t a, uint32_t b) {
    const Item &itemA = instance.items[a], &itemB = instance.items[b];
    return std::tuple(itemA.first, -itemA.height, a) < std::tuple(itemB.first, -itemB.height, b);
  });
  std::sort(ends.begin(), ends.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(instance.items[a].last, a) < std::pair(instance.items[b].last, b);
  });
  Bases bases(instance.items.size());
  for (size_t i = 0; i < bases.size(); ++i)
    bases[i] = instance.items[i].fixed.value_or(0);
  auto over = ends.begin();
  for (uint32_t i : begins) {
    const Item &item = instance.items[i];
    for (; instance.items[*over].last < item.first; ++over)
      holes.add(bases[*over], bases[*over] + instance.items[*over].height);
    bases[i] = *holes.take(item.height, item.alignment);
  }
  return bases;
}
