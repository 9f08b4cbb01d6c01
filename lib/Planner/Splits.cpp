//===- Splits.cpp - More barriers for fewer bytes -------------------------===//
//
// A split lowers the peak only if all other waves that are as full are split, too. So splits
// are tried one after the other, always in the fullest wave; in the end only those that pay are
// kept.
//
//===----------------------------------------------------------------------===//

#include "Splits.h"

#include "weir/Artifact/Error.h"

#include <algorithm>

using namespace weir;
using namespace weir::planner;

/// Max number of splits tried one after the other.
static constexpr size_t maxSplits = 64;

static LiveRange &getFirst(Buffer &buffer) {
  return *std::min_element(
      buffer.live.begin(), buffer.live.end(),
      [](const LiveRange &a, const LiveRange &b) { return a.first < b.first; });
}

static LiveRange &getLast(Buffer &buffer) {
  return *std::max_element(buffer.live.begin(), buffer.live.end(),
                           [](const LiveRange &a, const LiveRange &b) { return a.last < b.last; });
}

static void check(const PlanProblem &problem, size_t index) {
  const WaveSplit &split = problem.splits[index];
  auto checkBuffer = [&](size_t buffer, bool begins) {
    if (buffer >= problem.buffers.size())
      throw Error("a split names buffer " + std::to_string(buffer) + ", there are " +
                  std::to_string(problem.buffers.size()));
    Buffer copy = problem.buffers[buffer];
    if (copy.live.empty() || (begins ? getFirst(copy).first : getLast(copy).last) != split.wave)
      throw Error("buffer " + std::to_string(buffer) + (begins ? " begins" : " ends") +
                  " in another wave than " + std::to_string(split.wave) + ", where split " +
                  std::to_string(index) + " is");
  };
  for (size_t buffer : split.early)
    checkBuffer(buffer, false);
  for (size_t buffer : split.late)
    checkBuffer(buffer, true);
}

PlanProblem planner::takeSplits(PlanProblem problem, const std::vector<size_t> &splits) {
  for (Buffer &buffer : problem.buffers)
    for (LiveRange &range : buffer.live) {
      range.first *= 2;
      range.last = 2 * range.last + 1;
    }
  for (size_t split : splits) {
    for (size_t buffer : problem.splits[split].early)
      --getLast(problem.buffers[buffer]).last;
    for (size_t buffer : problem.splits[split].late)
      ++getFirst(problem.buffers[buffer]).first;
  }
  return problem;
}

namespace {
struct Fullest {
  int64_t bytes = 0, wave = 0;
};
} // namespace

/// Returns the wave of a space with the max number of live bytes, ignoring chains.
static Fullest findFullest(const PlanProblem &problem, size_t space) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Buffer &buffer : problem.buffers)
    if (buffer.space == space)
      for (const LiveRange &range : buffer.live) {
        int64_t bytes = std::max<int64_t>(std::min(range.end, buffer.bytes) - range.begin, 0);
        changes.push_back({range.first, bytes});
        changes.push_back({range.last + 1, -bytes});
      }
  std::sort(changes.begin(), changes.end());
  Fullest fullest;
  int64_t live = 0;
  for (auto [wave, bytes] : changes)
    if ((live += bytes) > fullest.bytes)
      fullest = {live, wave};
  return fullest;
}

std::vector<size_t> planner::chooseSplits(const PlanProblem &problem, int64_t bytesPerSplit) {
  for (size_t i = 0; i < problem.splits.size(); ++i)
    check(problem, i);
  std::vector<size_t> taken, best;
  int64_t bestValue = 0; // bytes saved minus the min that the splits must save
  std::vector<char> isTaken(problem.splits.size(), 0);
  auto getBytes = [&](const PlanProblem &split) {
    int64_t bytes = 0;
    for (size_t s = 0; s < problem.spaces.size(); ++s)
      bytes += findFullest(split, s).bytes;
    return bytes;
  };
  PlanProblem current = takeSplits(problem, {});
  const int64_t before = getBytes(current);
  for (size_t space = 0; space < problem.spaces.size(); ++space)
    while (taken.size() < maxSplits) {
      int64_t wave = findFullest(current, space).wave;
      size_t next = 0;
      while (next < problem.splits.size() &&
             (isTaken[next] || problem.splits[next].wave != wave / 2))
        ++next;
      if (next == problem.splits.size())
        break;
      isTaken[next] = 1;
      taken.push_back(next);
      current = takeSplits(problem, taken);
      int64_t value = before - getBytes(current) - bytesPerSplit * int64_t(taken.size());
      if (value >= bestValue) {
        best = taken;
        bestValue = value;
      }
    }
  std::sort(best.begin(), best.end());
  return best;
}
