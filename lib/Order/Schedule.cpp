//===- Schedule.cpp - The order and the queues of commands ----------------===//

#include "weir/Order/Schedule.h"

#include "weir/Order/Donation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

using namespace weir;

namespace {
/// Pairs of commands of which one must come before the other, by numbers.
struct Dependences {
  std::vector<std::vector<int64_t>> after; ///< of each, those that need it

  void add(int64_t from, int64_t to) { after[from].push_back(to); }
};
} // namespace

/// Lets all readers of a donated argument come before the last dispatch that may
/// write a result over it, unless they need what that one makes.
static void addDonations(const OrderProblem &problem, Dependences &dependences) {
  int64_t count = problem.commands.size();
  size_t allocations = problem.accesses.mayShare.size();
  auto mayTake = [&](int64_t number, const OperandAccess &write, const OperandAccess &read) {
    const OrderCommand &command = problem.commands[number];
    return command.isDispatch && !findMisfit(problem, command, write.operand, read.operand) &&
           isProvedInPlace(problem, command, write.operand, read.operand);
  };
  std::vector<bool> begun(allocations); // whose bytes were written
  std::vector<int64_t> writer(allocations, -1);
  for (int64_t number = 0; number < count; ++number) {
    const DispatchAccesses &accesses = problem.accesses.dispatches[number];
    for (const OperandAccess &read : accesses)
      if (read.reads && !read.writes && problem.allocations[read.allocation].isDonated &&
          std::any_of(accesses.begin(), accesses.end(), [&](const OperandAccess &write) {
            return write.writes && !write.reads && !begun[write.allocation] &&
                   mayTake(number, write, read);
          }))
        writer[read.allocation] = number; // the last that could
    for (const OperandAccess &access : accesses)
      begun[access.allocation] = begun[access.allocation] || access.writes;
  }
  for (size_t allocation = 0; allocation < allocations; ++allocation) {
    int64_t last = writer[allocation];
    if (last < 0)
      continue;
    std::vector<bool> needs(count);
    needs[last] = true;
    std::vector<int64_t> open = {last};
    while (!open.empty()) {
      int64_t from = open.back();
      open.pop_back();
      for (int64_t next : dependences.after[from])
        if (!needs[next]) {
          needs[next] = true;
          open.push_back(next);
        }
    }
    for (int64_t number = 0; number < count; ++number)
      for (const OperandAccess &access : problem.accesses.dispatches[number])
        if (access.allocation == int64_t(allocation) && !needs[number])
          dependences.add(number, last);
  }
}

/// Returns an order that keeps all dependences: of the first `lookahead` commands that are
/// ready, the one for which `getGrowth` is least, and the first in the program among equals.
/// Calls `take` with each.
template <typename Growth, typename Take>
static std::vector<int64_t> sort(const Dependences &dependences, size_t lookahead, Growth getGrowth,
                                 Take take) {
  std::vector<int64_t> waiting(dependences.after.size()), order;
  for (const auto &after : dependences.after)
    for (int64_t next : after)
      ++waiting[next];
  std::set<int64_t> ready;
  for (size_t number = 0; number < waiting.size(); ++number)
    if (waiting[number] == 0)
      ready.insert(ready.end(), number);
  while (!ready.empty()) {
    auto best = ready.begin();
    int64_t least = getGrowth(*best);
    auto candidate = std::next(best);
    for (size_t seen = 1; candidate != ready.end() && seen < lookahead; ++candidate, ++seen)
      if (int64_t growth = getGrowth(*candidate); growth < least) {
        least = growth;
        best = candidate;
      }
    int64_t number = *best;
    ready.erase(best);
    order.push_back(number);
    take(number);
    for (int64_t next : dependences.after[number])
      if (--waiting[next] == 0)
        ready.insert(next);
  }
  return order;
}

/// Returns the max bytes of values that are live in one wave.
static int64_t getPeak(const CommandAccesses &accesses, const std::vector<Hazard> &hazards,
                       const std::vector<int64_t> &sizes) {
  std::vector<int64_t> waves = getWaves(accesses.dispatches.size(), hazards);
  int64_t last = waves.empty() ? 0 : waves.back();
  std::vector<std::pair<int64_t, int64_t>> lives(sizes.size(), {-1, -1});
  for (size_t number = 0; number < waves.size(); ++number)
    for (const OperandAccess &access : accesses.dispatches[number]) {
      auto &[first, end] = lives[access.allocation];
      first = first < 0 ? waves[number] : first;
      end = waves[number];
    }
  std::vector<int64_t> change(last + 2);
  for (size_t allocation = 0; allocation < sizes.size(); ++allocation)
    if (auto [first, end] = lives[allocation]; first >= 0) {
      change[first] += sizes[allocation];
      change[end + 1] -= sizes[allocation];
    }
  int64_t live = 0, peak = 0;
  for (int64_t bytes : change)
    peak = std::max(peak, live += bytes);
  return peak;
}

CommandOrder weir::chooseOrder(const OrderProblem &problem, const std::vector<Hazard> &hazards,
                               bool forMemory) {
  const CommandAccesses &accesses = problem.accesses;
  Dependences dependences;
  dependences.after.resize(problem.commands.size());
  for (size_t i = 0; i < hazards.size(); ++i)
    if (i == 0 || hazards[i].from != hazards[i - 1].from || hazards[i].to != hazards[i - 1].to)
      dependences.add(hazards[i].from, hazards[i].to);
  addDonations(problem, dependences);
  CommandOrder result;
  // Commands that use the host's memory come as soon as they can, so that others compute
  // meanwhile.
  std::vector<int64_t> priorities(problem.commands.size());
  for (size_t number = 0; number < priorities.size(); ++number)
    for (const OperandAccess &access : accesses.dispatches[number])
      if (problem.allocations[access.allocation].isInHost)
        priorities[number] = -1;
  bool usesHost = std::find(priorities.begin(), priorities.end(), -1) != priorities.end();
  result.order = sort(
      dependences, usesHost ? priorities.size() : 1,
      [&](int64_t number) { return priorities[number]; }, [](int64_t) {});
  if (!forMemory)
    return result;

  std::vector<int64_t> sizes;
  for (size_t allocation = 0; allocation < accesses.mayShare.size(); ++allocation)
    sizes.push_back(problem.allocations[allocation].isValue ? problem.allocations[allocation].bytes
                                                            : 0);
  std::vector<int64_t> uses(sizes.size());
  std::vector<bool> live(sizes.size());
  auto forEach = [&](int64_t number, auto visit) { // each allocation once
    const DispatchAccesses &own = accesses.dispatches[number];
    for (auto access = own.begin(); access != own.end(); ++access)
      if (std::none_of(own.begin(), access, [&](const OperandAccess &other) {
            return other.allocation == access->allocation;
          }))
        visit(access->allocation);
  };
  for (size_t number = 0; number < problem.commands.size(); ++number)
    forEach(number, [&](int64_t allocation) { ++uses[allocation]; });
  auto getGrowth = [&](int64_t number) {
    int64_t growth = 0;
    forEach(number, [&](int64_t allocation) {
      growth += live[allocation] ? 0 : sizes[allocation];
      growth -= uses[allocation] == 1 ? sizes[allocation] : 0;
    });
    return growth;
  };
  auto take = [&](int64_t number) {
    forEach(number, [&](int64_t allocation) {
      live[allocation] = true;
      --uses[allocation];
    });
  };
  std::vector<int64_t> memory = sort(dependences, 64, getGrowth, take);
  auto getPeakOf = [&](const std::vector<int64_t> &order) {
    if (std::is_sorted(order.begin(), order.end()))
      return getPeak(accesses, hazards, sizes);
    CommandAccesses ordered = permute(accesses, order);
    return getPeak(ordered, findHazards(ordered), sizes);
  };
  result.programPeak = getPeakOf(result.order);
  result.memoryPeak = memory == result.order ? result.programPeak : getPeakOf(memory);
  if (result.memoryPeak < result.programPeak)
    result.order = std::move(memory);
  return result;
}

CommandOrder weir::scheduleCommands(OrderProblem &problem, bool mayMove, bool forMemory) {
  std::vector<Hazard> hazards = findHazards(problem.accesses);
  CommandOrder chosen;
  if (mayMove) {
    chosen = chooseOrder(problem, hazards, forMemory);
  } else {
    chosen.order.resize(problem.commands.size());
    std::iota(chosen.order.begin(), chosen.order.end(), 0);
  }
  if (!std::is_sorted(chosen.order.begin(), chosen.order.end())) {
    problem = permute(std::move(problem), chosen.order);
    hazards = findHazards(problem.accesses);
  }
  std::vector<int64_t> waves = getWaves(problem.commands.size(), hazards);
  for (size_t number = 0; number < waves.size(); ++number)
    problem.commands[number].wave = waves[number];
  return chosen;
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

/// Returns what a command moves; operands of unknown size count as nothing.
static double getMovedBytes(const DispatchAccesses &accesses) {
  double bytes = 0;
  for (const OperandAccess &access : accesses)
    if (access.range.end != std::numeric_limits<int64_t>::max())
      bytes += double(access.range.end - access.range.begin);
  return bytes;
}

std::vector<int64_t> weir::assignQueues(const CommandAccesses &accesses, int64_t count) {
  std::vector<int64_t> chosen;
  if (count == 1) {
    chosen.resize(accesses.dispatches.size());
    return chosen;
  }
  std::vector<Hazard> hazards = findHazards(accesses);
  std::vector<double> load(count);
  std::vector<int64_t> last(count, -1);
  auto hazard = hazards.begin();
  for (int64_t to = 0; to < int64_t(accesses.dispatches.size()); ++to) {
    int64_t queue = -1;
    for (; hazard != hazards.end() && hazard->to == to; ++hazard)
      if (int64_t producer = chosen[hazard->from];
          queue < 0 && hazard->kind == HazardKind::RAW && last[producer] == hazard->from)
        queue = producer;
    if (queue < 0)
      queue = std::min_element(load.begin(), load.end()) - load.begin();
    chosen.push_back(queue);
    last[queue] = to;
    load[queue] += getMovedBytes(accesses.dispatches[to]);
  }
  return chosen;
}
