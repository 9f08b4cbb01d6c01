//===- Limit.cpp - Orders and repetitions that fit a limit ----------------===//

#include "weir/Order/Limit.h"

#include "weir/Order/Donation.h"
#include "weir/Order/Place.h"
#include "weir/Order/Recompute.h"

#include <algorithm>

using namespace weir;

int64_t weir::getArenaBytes(OrderProblem problem, const ArenaSettings &settings) {
  if (settings.queues > 1) {
    std::vector<int64_t> queues = assignQueues(problem.accesses, settings.queues);
    for (size_t number = 0; number < queues.size(); ++number)
      problem.commands[number].queue = queues[number];
  }
  return planArena(problem, getPermissions(problem, judgeDonations(problem)), settings.effort)
      .plan.arenaBytes;
}

static void setSingleWaves(OrderProblem &problem) {
  int64_t wave = 0;
  for (OrderCommand &command : problem.commands)
    command.wave = wave++;
}

static double getWork(const OrderProblem &problem) {
  double sum = 0;
  for (const OrderCommand &command : problem.commands)
    sum += command.work;
  return std::max(sum, 1.0);
}

/// Returns the largest values that are live at the peak; of equal ones the first.
static std::vector<LargeValue> getLargest(const OrderProblem &problem, const LiveProfile &profile) {
  constexpr size_t maxValues = 3;
  if (profile.peak == 0)
    return {};
  int64_t peak =
      std::find(profile.live.begin(), profile.live.end(), profile.peak) - profile.live.begin();
  std::vector<LargeValue> values;
  for (int64_t number : profile.orderByFirstUse())
    if (auto [first, last] = profile.lives[number];
        profile.inArena[number] && first <= peak && peak <= last)
      values.push_back({problem.allocations[number].value, problem.allocations[number].bytes});
  std::vector<LargeValue> largest;
  while (!values.empty() && largest.size() < maxValues) {
    auto next = std::max_element(
        values.begin(), values.end(),
        [](const LargeValue &a, const LargeValue &b) { return a.bytes < b.bytes; });
    largest.push_back(*next);
    values.erase(next);
  }
  return largest;
}

std::optional<FittedOrder> weir::fitArena(OrderProblem problem, bool mayMove,
                                          std::optional<int64_t> limit,
                                          const ArenaSettings &settings) {
  FittedOrder fitted;
  auto fits = [&](int64_t bytes) {
    if (!limit || bytes > *limit)
      return false;
    fitted.problem = std::move(problem);
    return true;
  };
  fitted.order = scheduleCommands(problem, mayMove, /*forMemory=*/true);
  fitted.ordered = fitted.apart = fitted.bytes = getArenaBytes(problem, settings);
  if (fits(fitted.bytes))
    return fitted;
  RecomputeProblem summary = summarize(problem);
  fitted.largest = getLargest(problem, getLiveProfile(summary));
  if (!mayMove)
    return limit ? std::nullopt : std::optional(std::move(fitted));
  setSingleWaves(problem);
  fitted.apart = getArenaBytes(problem, settings);
  fitted.bytes = std::min(fitted.bytes, fitted.apart);
  if (fits(fitted.apart))
    return fitted;

  double workBefore = getWork(problem);
  size_t maxSteps = 2 * problem.commands.size() + 16;
  for (size_t number = 0; number < maxSteps; ++number) {
    std::optional<Recomputation> step = chooseRecomputation(summary);
    if (!step)
      break;
    size_t before = problem.commands.size() + step->repetitions.size();
    recompute(problem, std::move(summary), *step);
    fitted.repeated += step->repetitions.size();
    fitted.dropped += before - problem.commands.size();
    setSingleWaves(problem);
    summary = summarize(problem);
    LiveProfile profile = getLiveProfile(summary);
    // No plan has less than is live.
    if (limit ? profile.peak > *limit : profile.peak >= fitted.bytes)
      continue;
    int64_t bytes = getArenaBytes(problem, settings);
    int64_t needed = std::max(bytes, profile.peak);
    if (limit ? needed > *limit : needed >= fitted.bytes)
      continue;
    fitted.work = getWork(problem) / workBefore;
    fitted.largest = getLargest(problem, profile);
    fitted.bytes = limit ? bytes : needed;
    if (fits(needed))
      return fitted;
  }
  return limit ? std::nullopt : std::optional(std::move(fitted));
}
