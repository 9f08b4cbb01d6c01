//===- Planner.cpp - Solvers in turn, until the bound is met --------------===//

#include "Solvers.h"
#include "Splits.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <deque>
#include <numeric>

using namespace weir;
using namespace weir::planner;

/// Max number of pairs of items live together that are stored.
static constexpr uint64_t maxPairs = 12'000'000;
/// Max number of pairs that all orders together visit; the first order always runs.
static constexpr uint64_t maxGreedyPairs = 12'000'000;

/// Best on average first: large instances do not reach the others.
static constexpr std::pair<Order, Fit> portfolio[] = {
    {Order::Area, Fit::Best},        {Order::Contention, Fit::Best}, {Order::Size, Fit::First},
    {Order::Contention, Fit::First}, {Order::Size, Fit::Best},       {Order::Area, Fit::First},
    {Order::Lifetime, Fit::Best},    {Order::Lifetime, Fit::First}};

namespace {
/// The plan of one component, improved step by step.
class Solver {
public:
  explicit Solver(Instance given) : instance(std::move(given)), unit(getUnit(instance)) {
    bound = maxLive = getMaxLive(instance);
    for (const Item &item : instance.items)
      bound = std::max(bound, item.fixed.value_or(0) + item.height);
    bound = alignUp(bound, unit);
  }

  void solveGreedily(int64_t target);
  /// Improves the plan until the peak is at most `target`, or `steps` are used up.
  void improve(int64_t target, const PlanOptions &options, int64_t &steps);

  Instance instance;
  int64_t unit;
  int64_t maxLive = 0, bound = 0, peak = unlimitedBytes;
  Bases bases;
  std::string name;

private:
  void offer(Bases offered, const std::string &by) {
    int64_t offeredPeak = getPeak(instance, offered);
    if (offeredPeak >= peak)
      return;
    peak = offeredPeak;
    bases = std::move(offered);
    name = by;
  }
  void repairTo(int64_t target, int64_t steps);
  void searchTo(int64_t target, int64_t &steps, int64_t slice);
  int64_t getMiddle(int64_t low) const { return low + (peak - low) / 2 / unit * unit; }

  std::unique_ptr<Conflicts> conflicts; ///< null if there are too many
  std::unique_ptr<Exact> exact;         ///< null if the instance is too large
};
} // namespace

void Solver::solveGreedily(int64_t target) {
  uint64_t pairs = Conflicts::count(instance, maxPairs);
  offer(placeByWave(instance), "greedy by wave, best fit");
  if (pairs > maxPairs || peak <= target)
    return;
  conflicts = std::make_unique<Conflicts>(instance);
  bool hasHints = std::any_of(instance.items.begin(), instance.items.end(),
                              [](const Item &item) { return item.hint.has_value(); });
  uint64_t used = 0;
  if (hasHints)
    offer(placeInOrder(instance, *conflicts, sortItems(instance, Order::Size), Fit::Best, true),
          "hints");
  for (auto [order, fit] : portfolio) {
    if (peak <= target || (used > 0 && used + pairs > maxGreedyPairs))
      return;
    used += pairs;
    offer(placeInOrder(instance, *conflicts, sortItems(instance, order), fit),
          std::string("greedy by ") + getName(order) +
              (fit == Fit::Best ? ", best fit" : ", first fit"));
  }
}

void Solver::repairTo(int64_t target, int64_t steps) {
  // Try the middle between the best known peak and the highest that failed.
  int64_t low = target - unit;
  while (steps > 0 && peak > target && low + unit < peak) {
    int64_t middle = std::max(getMiddle(low), target), left = steps / 4 + 1;
    steps -= left;
    if (std::optional<Bases> found = repair(instance, *conflicts, bases, middle, left))
      offer(std::move(*found), "local search");
    else
      low = middle;
    steps += left;
  }
}

void Solver::searchTo(int64_t target, int64_t &steps, int64_t slice) {
  int64_t given = std::min(slice, steps), left = given;
  Exact::Result result = exact->search(target, left);
  steps -= given - left;
  if (result.answer == Exact::Answer::Found)
    offer(std::move(result.bases), "exact search");
  if (result.answer == Exact::Answer::None)
    bound = std::min(peak, alignUp(target + 1, unit));
}

void Solver::improve(int64_t target, const PlanOptions &options, int64_t &steps) {
  if (!conflicts || peak <= target || steps <= 0)
    return;
  if (Exact::canSearch(instance)) {
    exact = std::make_unique<Exact>(instance, *conflicts);
    searchTo(std::max(target, bound), steps, target > bound ? steps / 2 + 1 : steps / 8 + 1);
  }
  if (peak > std::max(target, bound) && steps > 0) {
    int64_t slice = exact ? steps / 8 + 1 : steps;
    if (options.seed) {
      int64_t left = slice / 2;
      steps -= left;
      offer(climb(instance, *conflicts, sortItems(instance, Order::Size), std::max(target, bound),
                  *options.seed, left),
            "hill climbing");
      steps += std::max<int64_t>(left, 0);
      slice -= slice / 2;
    }
    repairTo(std::max(target, bound), slice);
    steps -= slice;
  }
  if (!exact)
    return;
  // Bisect between the highest peak that failed (proved or not) and the best known.
  const int64_t slice = steps / 6 + 1;
  for (int64_t low = std::max(target, bound); steps > 0 && peak > std::max(target, bound);) {
    int64_t before = peak;
    if (peak - low > unit) {
      int64_t middle = std::max(getMiddle(low), low + unit);
      searchTo(middle, steps, slice);
      if (peak == before)
        low = std::max(middle, bound);
      continue;
    }
    // Spend the rest on a peak one step lower, or on the proof that there is none.
    searchTo(std::max(peak - unit, target), steps, steps);
    if (peak == before)
      return;
    low = std::max(target, bound);
  }
}

static SpacePlan planSpace(const Instance &instance, int64_t capacity, const PlanOptions &options,
                           Bases &bases) {
  SpacePlan plan;
  bases.assign(instance.items.size(), 0);
  for (size_t i = 0; i < bases.size(); ++i) {
    bases[i] = instance.items[i].fixed.value_or(0);
    plan.pinned = alignUp(plan.pinned, instance.items[i].alignment) + instance.items[i].height;
  }
  std::vector<Component> components = findComponents(instance);
  std::deque<Solver> solvers; // they must not move: conflicts refer to instances
  for (const Component &component : components) {
    const Solver &solver = solvers.emplace_back(select(instance, component));
    plan.maxLive = std::max(plan.maxLive, solver.maxLive);
    plan.bound = std::max(plan.bound, solver.bound);
  }
  // No component needs a peak below the highest lower bound, or below the capacity.
  bool minimize = options.minimize || capacity == unlimitedBytes;
  auto getTarget = [&] {
    int64_t target = minimize ? 0 : capacity;
    for (const Solver &solver : solvers)
      target = std::max(target, solver.bound);
    return target;
  };
  for (Solver &solver : solvers)
    solver.solveGreedily(getTarget());
  std::vector<size_t> order(solvers.size()); // highest peak first
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-solvers[a].peak, a) < std::pair(-solvers[b].peak, b);
  });
  int64_t steps = options.effort;
  int64_t reached = 0; // highest peak of the components improved so far
  for (size_t i : order) {
    solvers[i].improve(std::max(getTarget(), reached), options, steps);
    reached = std::max(reached, solvers[i].peak);
  }
  plan.steps = options.effort - std::max<int64_t>(steps, 0);
  for (size_t c = 0; c < components.size(); ++c) {
    if (solvers[c].peak > plan.peak) {
      plan.peak = solvers[c].peak;
      plan.solver = solvers[c].name;
    }
    plan.bound = std::max(plan.bound, solvers[c].bound);
    for (size_t k = 0; k < components[c].items.size(); ++k)
      bases[components[c].items[k]] = solvers[c].bases[k];
  }
  plan.bound = std::min(plan.bound, plan.peak);
  plan.fits = plan.peak <= capacity;
  return plan;
}

static BufferPlan plan(const PlanProblem &problem, const PlanOptions &options) {
  Model model = makeModel(problem);
  BufferPlan plan;
  std::vector<Bases> bases(model.spaces.size());
  for (size_t s = 0; s < model.spaces.size(); ++s)
    plan.spaces.push_back(
        planSpace(model.spaces[s], problem.spaces[s].capacity, options, bases[s]));
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Member &member = model.members[i];
    plan.offsets.push_back(bases[problem.buffers[i].space][member.item] + member.delta);
  }
  return plan;
}

static int64_t addPeaks(const BufferPlan &plan) {
  int64_t bytes = 0;
  for (const SpacePlan &space : plan.spaces)
    bytes += space.peak;
  return bytes;
}

BufferPlan weir::planBuffers(const PlanProblem &problem, const PlanOptions &options) {
  if (options.effort < 0 || options.bytesPerSplit < 0)
    throw Error("the effort is " + std::to_string(options.effort) + ", and " +
                std::to_string(options.bytesPerSplit) +
                " bytes are worth a split; both begin at 0");
  BufferPlan whole = plan(problem, options);
  if (options.bytesPerSplit == 0 || problem.splits.empty())
    return whole;
  std::vector<size_t> splits = chooseSplits(problem, options.bytesPerSplit);
  if (splits.empty())
    return whole;
  BufferPlan split = plan(takeSplits(problem, splits), options);
  split.splitBytes = addPeaks(whole) - addPeaks(split);
  split.splits = std::move(splits);
  // Fewer live bytes only promise a lower peak: check the plan itself.
  bool pays = split.splitBytes / options.bytesPerSplit >= int64_t(split.splits.size());
  return pays ? split : whole;
}
