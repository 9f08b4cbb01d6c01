//===- Validate.cpp - Checks plans, with no code of the solvers -----------===//

#include "weir/Artifact/Error.h"
#include "weir/Planner/Planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace weir;

namespace {
/// A buffer that takes or gives up bytes [begin, end) at the start of `wave`.
struct Change {
  int64_t wave;
  bool takes;
  size_t buffer;
  int64_t begin, end;
};

class Validator {
public:
  Validator(const PlanProblem &problem, const BufferPlan &plan) : problem(problem), plan(plan) {}
  void run();

private:
  [[noreturn]] void fail(const std::string &complaint) const {
    throw Error("the plan is wrong: " + complaint);
  }
  std::string name(size_t buffer) const {
    const std::string &given = problem.buffers[buffer].name;
    return "buffer " + (given.empty() ? std::to_string(buffer) : "\"" + given + "\"");
  }
  void checkOffsets() const;
  void checkSpaces() const;
  void checkChains();
  void checkGroups() const;
  void checkSharing(size_t space) const;
  std::vector<Change> getChanges(size_t space) const;

  const PlanProblem &problem;
  const BufferPlan &plan;
  std::vector<size_t> chains; ///< by buffer: the first buffer of its chain
};
} // namespace

void Validator::checkOffsets() const {
  if (plan.offsets.size() != problem.buffers.size())
    fail(std::to_string(plan.offsets.size()) + " offsets for " +
         std::to_string(problem.buffers.size()) + " buffers");
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    int64_t offset = plan.offsets[i];
    if (offset < 0)
      fail(name(i) + " begins at " + std::to_string(offset));
    if (offset % buffer.alignment != 0)
      fail(name(i) + " begins at " + std::to_string(offset) + ", its alignment is " +
           std::to_string(buffer.alignment));
    if (buffer.fixed && offset != *buffer.fixed)
      fail(name(i) + " begins at " + std::to_string(offset) + " and is fixed at " +
           std::to_string(*buffer.fixed));
  }
}

void Validator::checkSpaces() const {
  if (plan.spaces.size() != problem.spaces.size())
    fail("it has " + std::to_string(plan.spaces.size()) + " spaces, the problem " +
         std::to_string(problem.spaces.size()));
  std::vector<int64_t> ends(problem.spaces.size(), 0);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    int64_t used = 0;
    for (const LiveRange &range : buffer.live)
      used = std::max(used, std::min(range.end, buffer.bytes));
    if (used > 0)
      ends[buffer.space] = std::max(ends[buffer.space], plan.offsets[i] + used);
  }
  for (size_t s = 0; s < ends.size(); ++s) {
    const SpacePlan &space = plan.spaces[s];
    std::string what = "space " + std::to_string(s);
    if (space.peak < ends[s])
      fail(what + " ends at " + std::to_string(space.peak) + ", its buffers at " +
           std::to_string(ends[s]));
    if (space.bound > space.peak)
      fail(what + " has peak " + std::to_string(space.peak) + ", below its bound " +
           std::to_string(space.bound));
    if (space.fits != (space.peak <= problem.spaces[s].capacity))
      fail(what + " has peak " + std::to_string(space.peak) + " and capacity " +
           std::to_string(problem.spaces[s].capacity) + ", and is said " +
           (space.fits ? "to fit" : "not to fit"));
  }
}

void Validator::checkChains() {
  chains.resize(problem.buffers.size());
  std::iota(chains.begin(), chains.end(), size_t(0));
  auto find = [&](size_t buffer) {
    while (chains[buffer] != buffer)
      buffer = chains[buffer] = chains[chains[buffer]];
    return buffer;
  };
  for (const std::vector<size_t> &chain : problem.chains)
    for (size_t buffer : chain) {
      if (plan.offsets[buffer] != plan.offsets[chain.front()])
        fail(name(chain.front()) + " begins at " + std::to_string(plan.offsets[chain.front()]) +
             ", " + name(buffer) + " of its chain at " + std::to_string(plan.offsets[buffer]));
      chains[find(buffer)] = find(chain.front());
    }
  for (size_t i = 0; i < chains.size(); ++i)
    chains[i] = find(i);
}

void Validator::checkGroups() const {
  for (const PackedGroup &group : problem.groups)
    for (size_t k = 1; k < group.buffers.size(); ++k) {
      size_t before = group.buffers[k - 1], buffer = group.buffers[k];
      int64_t apart = plan.offsets[buffer] - plan.offsets[before];
      int64_t minDistance = problem.buffers[before].bytes;
      int64_t step = std::lcm(group.alignment, problem.buffers[buffer].alignment);
      if (plan.offsets[buffer] % group.alignment != 0 || apart < minDistance ||
          apart >= minDistance + step)
        fail(name(buffer) + " begins at " + std::to_string(plan.offsets[buffer]) +
             " and does not follow " + name(before) + " of its group, which ends at " +
             std::to_string(plan.offsets[before] + minDistance));
    }
}

std::vector<Change> Validator::getChanges(size_t space) const {
  std::vector<char> isSplit(problem.buffers.size() * 2, 0); // early, late
  for (size_t split : plan.splits) {
    if (split >= problem.splits.size())
      fail("it takes split " + std::to_string(split) + ", there are " +
           std::to_string(problem.splits.size()));
    for (size_t buffer : problem.splits[split].early)
      isSplit[2 * buffer] = 1;
    for (size_t buffer : problem.splits[split].late)
      isSplit[2 * buffer + 1] = 1;
  }
  // Two half waves per wave: buffers moved by a split begin or end in the middle.
  std::vector<Change> changes;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    if (buffer.space != space)
      continue;
    int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
    for (const LiveRange &range : buffer.live) {
      first = std::min(first, range.first);
      last = std::max(last, range.last);
    }
    for (const LiveRange &range : buffer.live) {
      int64_t begin = plan.offsets[i] + range.begin;
      int64_t end = plan.offsets[i] + std::min(range.end, buffer.bytes);
      if (begin >= end)
        continue;
      bool late = isSplit[2 * i + 1] && range.first == first;
      bool early = isSplit[2 * i] && range.last == last;
      changes.push_back({2 * range.first + late, true, i, begin, end});
      changes.push_back({2 * range.last + 2 - early, false, i, begin, end});
    }
  }
  return changes;
}

void Validator::checkSharing(size_t space) const {
  std::vector<Change> changes = getChanges(space);
  std::sort(changes.begin(), changes.end(), [](const Change &a, const Change &b) {
    return std::pair(a.wave, a.takes) < std::pair(b.wave, b.takes); // giving up comes first
  });
  // The bytes taken. Bytes of a chain may be taken several times, so they are counted by chain,
  // and their union excludes others.
  using Range = std::pair<int64_t, int64_t>;
  std::map<int64_t, std::pair<int64_t, size_t>> taken; // begin -> (end, chain)
  std::map<size_t, std::multiset<Range>> ofChain;      // for chains of several buffers
  std::vector<size_t> sizes(problem.buffers.size(), 0);
  for (size_t chain : chains)
    ++sizes[chain];
  auto take = [&](int64_t begin, int64_t end, size_t chain, size_t buffer) {
    auto next = taken.lower_bound(begin);
    if (next != taken.begin() && std::prev(next)->second.first > begin)
      --next;
    if (next != taken.end() && next->first < end)
      fail(name(buffer) + ", bytes " + std::to_string(begin) + " to " + std::to_string(end) +
           ", and " + name(next->second.second) + " share bytes while both are live");
    taken[begin] = {end, chain};
  };
  // Visits the union of a chain's bytes, to take it or give it up.
  auto forUnion = [&](size_t chain, auto visit) {
    int64_t begin = 0, end = -1;
    for (const Range &range : ofChain[chain]) {
      if (range.first > end) {
        if (end >= 0)
          visit(begin, end);
        begin = range.first;
      }
      end = std::max(end, range.second);
    }
    if (end >= 0)
      visit(begin, end);
  };
  for (const Change &change : changes) {
    size_t chain = chains[change.buffer];
    Range range(change.begin, change.end);
    if (sizes[chain] == 1) {
      if (change.takes)
        take(range.first, range.second, chain, change.buffer);
      else
        taken.erase(range.first);
      continue;
    }
    forUnion(chain, [&](int64_t begin, int64_t) { taken.erase(begin); });
    if (change.takes)
      ofChain[chain].insert(range);
    else
      ofChain[chain].erase(ofChain[chain].find(range));
    forUnion(chain, [&](int64_t begin, int64_t end) { take(begin, end, chain, change.buffer); });
  }
}

void Validator::run() {
  checkOffsets();
  checkSpaces();
  checkChains();
  checkGroups();
  for (size_t s = 0; s < problem.spaces.size(); ++s)
    checkSharing(s);
}

void weir::validatePlan(const PlanProblem &problem, const BufferPlan &plan) {
  Validator(problem, plan).run();
}
