//===- Model.cpp - Checks a problem and makes its items -------------------===//

#include "Model.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace weir;
using namespace weir::planner;

/// Upper bound of bytes, so that sums do not overflow.
static constexpr int64_t maxBytes = int64_t(1) << 62;
static constexpr int64_t maxWave = int64_t(1) << 60;
/// Max number of live ranges of all members of a chain or group.
static constexpr size_t maxRangesOfItem = 4096;

static std::string nameOf(const PlanProblem &problem, size_t buffer) {
  const std::string &name = problem.buffers[buffer].name;
  return "buffer " + (name.empty() ? std::to_string(buffer) : "\"" + name + "\"");
}

static int64_t addBytes(int64_t a, int64_t b, const std::string &what) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum) || sum > maxBytes)
    throw Error(what + " need more than 2^62 bytes; make them smaller");
  return sum;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static std::string print(const LiveRange &range) {
  return "waves " + std::to_string(range.first) + " to " + std::to_string(range.last);
}

static void checkBuffer(const PlanProblem &problem, size_t index) {
  const Buffer &buffer = problem.buffers[index];
  auto fail = [&](const std::string &complaint) {
    throw Error(nameOf(problem, index) + " " + complaint);
  };
  if (buffer.bytes < 0)
    fail("has " + std::to_string(buffer.bytes) + " bytes; sizes begin at 0");
  if (buffer.bytes > maxBytes)
    fail("has more than 2^62 bytes; make it smaller");
  if (buffer.alignment < 1 || buffer.alignment > maxBytes)
    fail("has alignment " + std::to_string(buffer.alignment) + "; alignments are 1 to 2^62");
  if (buffer.space >= problem.spaces.size())
    fail("is in space " + std::to_string(buffer.space) + ", there are " +
         std::to_string(problem.spaces.size()));
  if (buffer.live.empty())
    fail("lives in no wave; leave it out or give it one");
  for (const LiveRange &range : buffer.live) {
    if (range.last < range.first)
      fail("lives in " + print(range) + ", which end before they begin");
    if (range.first < -maxWave || range.last > maxWave)
      fail("lives in " + print(range) + "; waves are -2^60 to 2^60");
    if (range.begin < 0 || range.end < range.begin)
      fail("uses bytes " + std::to_string(range.begin) + " to " + std::to_string(range.end) +
           " in " + print(range) + ", expected 0 <= begin <= end");
  }
  if (buffer.live.size() > 1) {
    std::vector<LiveRange> sorted = buffer.live;
    std::sort(sorted.begin(), sorted.end(),
              [](const LiveRange &a, const LiveRange &b) { return a.first < b.first; });
    for (size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i].first <= sorted[i - 1].last)
        fail("lives in " + print(sorted[i - 1]) + " and in " + print(sorted[i]) +
             ", which overlap; make them one");
  }
  if (!buffer.fixed)
    return;
  if (*buffer.fixed < 0 || *buffer.fixed > maxBytes)
    fail("is fixed at " + std::to_string(*buffer.fixed) + "; offsets are 0 to 2^62");
  if (*buffer.fixed % buffer.alignment)
    fail("is fixed at " + std::to_string(*buffer.fixed) +
         ", expected a multiple of its alignment " + std::to_string(buffer.alignment));
  int64_t capacity = problem.spaces[buffer.space].capacity;
  if (*buffer.fixed + buffer.bytes > capacity)
    fail("is fixed at " + std::to_string(*buffer.fixed) + " and ends at " +
         std::to_string(*buffer.fixed + buffer.bytes) + ", behind the capacity of " +
         std::to_string(capacity) + " bytes");
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

namespace {
/// Sets of buffers at fixed distances (union-find).
class Rigid {
public:
  explicit Rigid(const PlanProblem &problem)
      : problem(problem), parents(problem.buffers.size()), deltas(problem.buffers.size(), 0) {
    std::iota(parents.begin(), parents.end(), size_t(0));
  }

  /// States that `b` begins `delta` bytes behind `a`.
  void tie(size_t a, size_t b, int64_t delta) {
    size_t rootA = find(a), rootB = find(b);
    int64_t between = deltas[a] + delta - deltas[b];
    if (rootA == rootB) {
      if (between != 0)
        throw Error(nameOf(problem, a) + " and " + nameOf(problem, b) +
                    " have two distances, by their chains and groups; drop one of these");
      return;
    }
    if (problem.buffers[a].space != problem.buffers[b].space)
      throw Error(nameOf(problem, a) + " and " + nameOf(problem, b) +
                  " are of one chain or group and in two spaces");
    parents[rootB] = rootA;
    deltas[rootB] = between;
  }

  size_t find(size_t buffer) {
    size_t root = buffer;
    int64_t delta = 0;
    for (; parents[root] != root; root = parents[root])
      delta += deltas[root];
    while (parents[buffer] != root && buffer != root) {
      size_t next = parents[buffer];
      int64_t rest = delta - deltas[buffer];
      deltas[buffer] = delta;
      parents[buffer] = root;
      buffer = next;
      delta = rest;
    }
    return root;
  }

  /// Returns the distance from the root. Needs: `find` was called.
  int64_t getDelta(size_t buffer) const { return deltas[buffer]; }

private:
  const PlanProblem &problem;
  std::vector<size_t> parents;
  std::vector<int64_t> deltas; ///< distance from the parent
};
} // namespace

/// Cuts overlapping parts into disjoint ones.
static std::vector<Part> makeDisjoint(const std::vector<Part> &parts) {
  std::vector<int64_t> cuts; // waves in which a part begins or ends
  for (const Part &part : parts) {
    cuts.push_back(part.first);
    cuts.push_back(part.last + 1);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Part> result;
  std::vector<size_t> open; // indices into `result`: parts that reach the previous cut
  for (size_t c = 0; c + 1 < cuts.size(); ++c) {
    std::vector<std::pair<int64_t, int64_t>> bytes;
    for (const Part &part : parts)
      if (part.first <= cuts[c] && cuts[c] <= part.last)
        bytes.push_back({part.begin, part.end});
    std::sort(bytes.begin(), bytes.end());
    std::vector<std::pair<int64_t, int64_t>> merged;
    for (auto [begin, end] : bytes) {
      if (!merged.empty() && begin <= merged.back().second)
        merged.back().second = std::max(merged.back().second, end);
      else
        merged.push_back({begin, end});
    }
    std::vector<size_t> reached;
    for (auto [begin, end] : merged) {
      auto same = std::find_if(open.begin(), open.end(), [&](size_t part) {
        return result[part].begin == begin && result[part].end == end;
      });
      if (same == open.end()) {
        reached.push_back(result.size());
        result.push_back({cuts[c], cuts[c + 1] - 1, begin, end});
      } else {
        reached.push_back(*same);
        result[*same].last = cuts[c + 1] - 1;
      }
    }
    open = std::move(reached);
  }
  return result;
}

static void checkIndices(const PlanProblem &problem, const std::vector<size_t> &buffers,
                         const char *what) {
  for (size_t buffer : buffers)
    if (buffer >= problem.buffers.size())
      throw Error(std::string(what) + " names buffer " + std::to_string(buffer) + ", there are " +
                  std::to_string(problem.buffers.size()));
}

static Rigid tieBuffers(const PlanProblem &problem) {
  Rigid rigid(problem);
  for (const std::vector<size_t> &chain : problem.chains) {
    checkIndices(problem, chain, "a chain");
    for (size_t i = 1; i < chain.size(); ++i)
      rigid.tie(chain[0], chain[i], 0);
  }
  for (const PackedGroup &group : problem.groups) {
    checkIndices(problem, group.buffers, "a group");
    if (group.alignment < 1 || group.alignment > maxBytes)
      throw Error("a group has alignment " + std::to_string(group.alignment) +
                  "; alignments are 1 to 2^62");
    int64_t delta = 0;
    for (size_t i = 1; i < group.buffers.size(); ++i) {
      const Buffer &before = problem.buffers[group.buffers[i - 1]];
      delta = addBytes(delta, before.bytes, "the buffers of a group");
      for (int64_t alignment : {group.alignment, problem.buffers[group.buffers[i]].alignment})
        delta =
            addBytes(delta, (alignment - delta % alignment) % alignment, "the buffers of a group");
      if (delta % group.alignment)
        throw Error(nameOf(problem, group.buffers[i]) + " has alignment " +
                    std::to_string(problem.buffers[group.buffers[i]].alignment) +
                    ", expected a multiple or a divisor of its group's " +
                    std::to_string(group.alignment));
      rigid.tie(group.buffers[0], group.buffers[i], delta);
    }
  }
  return rigid;
}

/// Adds `members`, whose deltas begin at 0, as an item of `instance`.
static void addItem(const PlanProblem &problem, std::span<const size_t> buffers,
                    std::vector<Member> &members, const std::vector<int64_t> &groupAlignments,
                    Rigid &chains, Instance &instance) {
  Item item;
  item.firstPart = instance.parts.size();
  std::vector<Part> parts;
  std::vector<size_t> owners; // by part: its buffer
  for (size_t buffer : buffers) {
    const Buffer &from = problem.buffers[buffer];
    int64_t delta = members[buffer].delta;
    for (int64_t alignment : {from.alignment, groupAlignments[buffer]}) {
      if (delta % alignment)
        throw Error(nameOf(problem, buffer) + " lies " + std::to_string(delta) +
                    " bytes behind another of its chain or group, which its alignment of " +
                    std::to_string(alignment) + " forbids");
      int64_t factor = alignment / std::gcd(item.alignment, alignment);
      if (__builtin_mul_overflow(item.alignment, factor, &item.alignment) ||
          item.alignment > maxBytes)
        throw Error(nameOf(problem, buffer) +
                    " and others of its chain or group have no common alignment below 2^62");
    }
    auto agree = [&](std::optional<int64_t> &known, std::optional<int64_t> offset) {
      if (!offset)
        return true;
      int64_t base = *offset - delta;
      if (known)
        return *known == base;
      known = base;
      return true;
    };
    if (!agree(item.fixed, from.fixed))
      throw Error(nameOf(problem, buffer) + " is fixed at " + std::to_string(*from.fixed) +
                  ", others of its chain or group elsewhere");
    agree(item.hint, from.hint);
    for (const LiveRange &range : from.live) {
      int64_t end = std::min(range.end, from.bytes);
      if (range.begin >= end)
        continue;
      parts.push_back({range.first, range.last, delta + range.begin, delta + end});
      owners.push_back(buffer);
    }
  }
  if (item.fixed && (*item.fixed < 0 || *item.fixed % item.alignment))
    throw Error(nameOf(problem, buffers.front()) + " would begin at " +
                std::to_string(*item.fixed) +
                ", by a fixed buffer of its chain or group, which is out of range");
  if (parts.size() > maxRangesOfItem)
    throw Error(nameOf(problem, buffers.front()) + " has, with its chain or group, " +
                std::to_string(parts.size()) + " live ranges; the max is " +
                std::to_string(maxRangesOfItem));
  for (size_t a = 0; a < parts.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      if (parts[a].begin < parts[b].end && parts[b].begin < parts[a].end &&
          parts[a].first <= parts[b].last && parts[b].first <= parts[a].last &&
          chains.find(owners[a]) != chains.find(owners[b]))
        throw Error(nameOf(problem, owners[b]) + " and " + nameOf(problem, owners[a]) +
                    " have the same bytes by their chains and groups, and are live together");
  if (buffers.size() > 1)
    parts = makeDisjoint(parts);
  for (const Part &part : parts) {
    bool isFirst = item.height == 0;
    item.first = isFirst ? part.first : std::min(item.first, part.first);
    item.last = isFirst ? part.last : std::max(item.last, part.last);
    item.height = std::max(item.height, part.end);
  }
  item.partCount = parts.size();
  instance.parts.insert(instance.parts.end(), parts.begin(), parts.end());
  instance.items.push_back(item);
}

/// Checks that fixed items do not collide. `firsts` has a buffer of each item, for errors.
static void checkFixed(const PlanProblem &problem, const Instance &instance,
                       const std::vector<size_t> &firsts) {
  struct Event {
    int64_t wave;
    bool begins;
    size_t item;
    int64_t begin, end;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < instance.items.size(); ++i)
    if (const Item &item = instance.items[i]; item.fixed)
      for (const Part &part : instance.getParts(i)) {
        int64_t begin = *item.fixed + part.begin, end = *item.fixed + part.end;
        events.push_back({part.first, true, i, begin, end});
        events.push_back({part.last, false, i, begin, end});
      }
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return std::tuple(a.wave, !a.begins, a.begin, a.item) <
           std::tuple(b.wave, !b.begins, b.begin, b.item);
  });
  std::map<int64_t, std::pair<int64_t, size_t>> live; // begin -> (end, item)
  for (const Event &event : events) {
    if (!event.begins) {
      live.erase(event.begin);
      continue;
    }
    auto other = live.lower_bound(event.begin);
    if (other != live.begin() && std::prev(other)->second.first > event.begin)
      --other;
    if (other != live.end() && other->first < event.end)
      throw Error(nameOf(problem, firsts[other->second.second]) + " and " +
                  nameOf(problem, firsts[event.item]) + " are fixed to the same bytes in wave " +
                  std::to_string(event.wave));
    live[event.begin] = {event.end, event.item};
  }
}

Model planner::makeModel(const PlanProblem &problem) {
  for (size_t i = 0; i < problem.spaces.size(); ++i)
    if (problem.spaces[i].capacity < 0)
      throw Error("space " + std::to_string(i) + " has a capacity of " +
                  std::to_string(problem.spaces[i].capacity) + " bytes; capacities begin at 0");
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    checkBuffer(problem, i);
  Rigid rigid = tieBuffers(problem), chains(problem);
  for (const std::vector<size_t> &chain : problem.chains)
    for (size_t buffer : chain)
      chains.tie(chain.front(), buffer, 0);
  std::vector<int64_t> groupAlignments(problem.buffers.size(), 1);
  for (const PackedGroup &group : problem.groups)
    for (size_t buffer : group.buffers)
      groupAlignments[buffer] = std::max(groupAlignments[buffer], group.alignment);

  // Items in the order of their first buffers; the buffers of an item are adjacent.
  const size_t count = problem.buffers.size();
  std::vector<size_t> numbers(count, SIZE_MAX), itemOf(count), begins(1, 0), inItems(count);
  for (size_t i = 0; i < count; ++i) {
    size_t &number = numbers[rigid.find(i)];
    if (number == SIZE_MAX) {
      number = begins.size() - 1;
      begins.push_back(0);
    }
    itemOf[i] = number;
    ++begins[number + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<size_t> next(begins.begin(), begins.end() - 1);
  for (size_t i = 0; i < count; ++i)
    inItems[next[itemOf[i]]++] = i;
  Model model;
  model.spaces.resize(problem.spaces.size());
  model.members.resize(problem.buffers.size());
  std::vector<int64_t> totals(problem.spaces.size(), 0);
  std::vector<std::vector<size_t>> firsts(
      problem.spaces.size()); // by space: the first buffer of each item
  for (size_t number = 0; number + 1 < begins.size(); ++number) {
    std::span<const size_t> buffers =
        std::span(inItems).subspan(begins[number], begins[number + 1] - begins[number]);
    size_t space = problem.buffers[buffers.front()].space;
    Instance &instance = model.spaces[space];
    firsts[space].push_back(buffers.front());
    int64_t minDelta = 0;
    for (size_t buffer : buffers)
      minDelta = std::min(minDelta, rigid.getDelta(buffer));
    for (size_t buffer : buffers)
      model.members[buffer] = {instance.items.size(), rigid.getDelta(buffer) - minDelta};
    addItem(problem, buffers, model.members, groupAlignments, chains, instance);
    const Item &item = instance.items.back();
    const std::string what = "the buffers of space " + std::to_string(space);
    totals[space] = addBytes(totals[space], item.height, what);
    totals[space] = addBytes(totals[space], item.alignment, what);
    if (item.fixed)
      addBytes(*item.fixed, totals[space], what);
  }
  for (size_t s = 0; s < model.spaces.size(); ++s)
    checkFixed(problem, model.spaces[s], firsts[s]);
  return model;
}

//===----------------------------------------------------------------------===//
// Components
//===----------------------------------------------------------------------===//

std::vector<Component> planner::findComponents(const Instance &instance) {
  std::vector<uint32_t> order;
  for (size_t i = 0; i < instance.items.size(); ++i)
    if (instance.items[i].partCount)
      order.push_back(uint32_t(i));
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(instance.items[a].first, a) < std::pair(instance.items[b].first, b);
  });
  std::vector<Component> components;
  int64_t last = 0;
  for (uint32_t i : order) {
    if (components.empty() || instance.items[i].first > last)
      components.emplace_back();
    last = components.back().items.empty() ? instance.items[i].last
                                           : std::max(last, instance.items[i].last);
    components.back().items.push_back(i);
  }
  return components;
}

Instance planner::select(const Instance &instance, const Component &component) {
  Instance result;
  result.items.reserve(component.items.size());
  for (uint32_t i : component.items) {
    result.items.push_back(instance.items[i]);
    result.items.back().firstPart = result.parts.size();
    std::span<const Part> parts = instance.getParts(i);
    result.parts.insert(result.parts.end(), parts.begin(), parts.end());
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Conflicts
//===----------------------------------------------------------------------===//

uint64_t Conflicts::count(const Instance &instance, uint64_t max) {
  std::vector<int64_t> firsts, lasts;
  for (const Part &part : instance.parts) {
    firsts.push_back(part.first);
    lasts.push_back(part.last);
  }
  std::sort(firsts.begin(), firsts.end());
  std::sort(lasts.begin(), lasts.end());
  // Count each part with those that began before it and have not ended.
  uint64_t pairs = 0;
  size_t ended = 0;
  for (size_t i = 0; i < firsts.size() && pairs <= max; ++i) {
    while (lasts[ended] < firsts[i])
      ++ended;
    pairs += i - ended;
  }
  return pairs;
}

/// Calls `visit` for each pair of parts that are live together.
template <typename Visit> static void forEachPair(const Instance &instance, Visit visit) {
  struct Open {
    uint32_t item;
    const Part *part;
  };
  std::vector<Open> order, open;
  for (size_t i = 0; i < instance.items.size(); ++i)
    for (const Part &part : instance.getParts(i))
      order.push_back({uint32_t(i), &part});
  std::sort(order.begin(), order.end(), [](const Open &a, const Open &b) {
    return std::pair(a.part->first, a.part) < std::pair(b.part->first, b.part);
  });
  for (const Open &next : order) {
    std::erase_if(open, [&](const Open &other) { return other.part->last < next.part->first; });
    for (const Open &other : open)
      if (other.item != next.item)
        visit(other.item, *other.part, next.item, *next.part);
    open.push_back(next);
  }
}

Conflicts::Conflicts(const Instance &instance) : instance(instance) {
  size_t count = instance.items.size();
  begins.assign(count + 1, 0);
  bool plain = std::all_of(instance.items.begin(), instance.items.end(),
                           [](const Item &item) { return item.partCount == 1; }) &&
               std::all_of(instance.parts.begin(), instance.parts.end(),
                           [](const Part &part) { return part.begin == 0; });
  if (plain) {
    forEachPair(instance, [&](uint32_t a, const Part &, uint32_t b, const Part &) {
      ++begins[a + 1];
      ++begins[b + 1];
    });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    others.resize(begins.back());
    std::vector<size_t> next(begins.begin(), begins.end() - 1);
    forEachPair(instance, [&](uint32_t a, const Part &, uint32_t b, const Part &) {
      others[next[a]++] = b;
      others[next[b]++] = a;
    });
    return;
  }
  // Each pair in both directions, with the min distance if b lies above a.
  struct Pair {
    uint32_t a, b;
    int64_t above, below;
  };
  std::vector<Pair> pairs;
  forEachPair(instance, [&](uint32_t a, const Part &partA, uint32_t b, const Part &partB) {
    pairs.push_back({a, b, partA.end - partB.begin, partB.end - partA.begin});
    pairs.push_back({b, a, partB.end - partA.begin, partA.end - partB.begin});
  });
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair &a, const Pair &b) { return std::pair(a.a, a.b) < std::pair(b.a, b.b); });
  for (const Pair &pair : pairs) {
    bool known = !others.empty() && begins[pair.a + 1] && others.back() == pair.b;
    if (known) {
      distances.back().first = std::max(distances.back().first, pair.above);
      distances.back().second = std::max(distances.back().second, pair.below);
      continue;
    }
    ++begins[pair.a + 1];
    others.push_back(pair.b);
    distances.push_back({pair.above, pair.below});
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  // Items whose parts all begin at the item's base cannot interlock.
  flat = std::all_of(instance.parts.begin(), instance.parts.end(),
                     [](const Part &part) { return part.begin == 0; });
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

int64_t planner::getUnit(const Instance &instance) {
  int64_t unit = 0;
  for (const Item &item : instance.items) {
    if (item.alignment > 1)
      unit = std::gcd(unit, item.alignment);
    if (item.fixed)
      unit = std::gcd(unit, *item.fixed);
  }
  for (const Part &part : instance.parts) {
    unit = std::gcd(unit, part.begin);
    unit = std::gcd(unit, part.end);
  }
  return std::max<int64_t>(unit, 1);
}

int64_t planner::getMaxLive(const Instance &instance) {
  // A byte range that begins at its item's base ends at the next base at the latest. So all but
  // the topmost take whole multiples of the alignment.
  int64_t unit = 0;
  for (const Item &item : instance.items)
    unit = std::gcd(unit, item.alignment);
  bool flat = std::all_of(instance.parts.begin(), instance.parts.end(),
                          [](const Part &part) { return part.begin == 0; });
  struct Event {
    int64_t wave;
    bool begins;
    int64_t bytes, padding;
  };
  std::vector<Event> events;
  for (const Part &part : instance.parts) {
    int64_t bytes = part.end - part.begin;
    int64_t padding = flat && unit > 1 ? alignUp(bytes, unit) - bytes : 0;
    events.push_back({part.first, true, bytes, padding});
    events.push_back({part.last, false, bytes, padding});
  }
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return std::pair(a.wave, !a.begins) < std::pair(b.wave, !b.begins);
  });
  std::map<int64_t, size_t> paddings;
  int64_t live = 0, maxLive = 0;
  for (const Event &event : events) {
    if (event.begins) {
      live += event.bytes + event.padding;
      if (unit > 1)
        ++paddings[event.padding];
      maxLive = std::max(maxLive, live - (unit > 1 ? paddings.rbegin()->first : 0));
    } else {
      live -= event.bytes + event.padding;
      if (unit > 1 && --paddings[event.padding] == 0)
        paddings.erase(event.padding);
    }
  }
  return maxLive;
}
