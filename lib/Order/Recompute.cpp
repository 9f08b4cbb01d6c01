//===- Recompute.cpp - Values to compute again for a lower peak -----------===//

#include "weir/Order/Recompute.h"

#include "weir/Order/Donation.h"

#include <algorithm>
#include <numeric>

using namespace weir;

static bool contains(const std::vector<int64_t> &list, int64_t allocation) {
  return std::find(list.begin(), list.end(), allocation) != list.end();
}

//===----------------------------------------------------------------------===//
// The summary
//===----------------------------------------------------------------------===//

static Computation summarize(const OrderProblem &problem, const OrderCommand &command,
                             const DispatchAccesses &accesses) {
  Computation computation;
  computation.work = command.work;
  computation.mayRepeat = command.mayRepeat;
  std::vector<const OperandAccess *> reads, writes;
  for (auto access = accesses.begin(); access != accesses.end(); ++access) {
    auto first = std::find_if(accesses.begin(), access, [&](const OperandAccess &other) {
      return other.allocation == access->allocation;
    });
    if (first != access && (!access->writes || first->writes))
      continue;
    if (access->reads) {
      computation.reads.push_back(access->allocation);
      reads.push_back(&*access);
    }
    if (access->writes) {
      computation.writes.push_back(access->allocation);
      writes.push_back(&*access);
    }
  }
  if (!command.isDispatch)
    return computation;
  for (const OperandAccess *write : writes)
    for (const OperandAccess *read : reads)
      if (write != read && !findMisfit(problem, command, write->operand, read->operand) &&
          isProvedInPlace(problem, command, write->operand, read->operand))
        computation.inPlace.push_back({read->allocation, write->allocation});
  return computation;
}

RecomputeProblem weir::summarize(const OrderProblem &problem) {
  RecomputeProblem summary;
  for (size_t number = 0; number < problem.commands.size(); ++number)
    summary.commands.push_back(
        ::summarize(problem, problem.commands[number], problem.accesses.dispatches[number]));
  for (const CommandWithAccesses &recipe : problem.recipes)
    summary.recipes.push_back(::summarize(problem, recipe.command, recipe.accesses));
  for (const OrderAllocation &allocation : problem.allocations) {
    bool isGiven = !allocation.isValue && !allocation.isResult;
    summary.allocations.push_back({isGiven ? 0 : allocation.bytes, allocation.value, isGiven,
                                   allocation.isResult, allocation.isDonated, allocation.mayCopy});
  }
  return summary;
}

//===----------------------------------------------------------------------===//
// Live bytes
//===----------------------------------------------------------------------===//

/// Returns who takes whose bytes, by allocation, -1: nobody's; first those that lead to a result.
/// A value gives its bytes once and takes them once.
static std::vector<int64_t> chooseTakers(const RecomputeProblem &problem,
                                         const std::vector<std::pair<int64_t, int64_t>> &lives) {
  std::vector<int64_t> taker(problem.allocations.size(), -1);
  std::vector<bool> takes(problem.allocations.size());
  for (bool toResults : {true, false})
    for (int64_t number = 0; number < int64_t(problem.commands.size()); ++number)
      for (auto [source, target] : problem.commands[number].inPlace)
        if (problem.allocations[target].isResult == toResults && lives[source].second == number &&
            lives[target].first == number && taker[source] < 0 && !takes[target]) {
          taker[source] = target;
          takes[target] = true;
        }
  // An argument gives its bytes to results alone, by way of others or not.
  for (size_t number = 0; number < taker.size(); ++number) {
    const Buffered &buffer = problem.allocations[number];
    int64_t last = number;
    while (buffer.isDonated && taker[last] >= 0)
      last = taker[last];
    if (!problem.allocations[last].isResult && buffer.isDonated)
      taker[number] = -1;
  }
  return taker;
}

LiveProfile weir::getLiveProfile(const RecomputeProblem &problem) {
  LiveProfile profile;
  size_t allocations = problem.allocations.size(), commands = problem.commands.size();
  profile.lives.assign(allocations, {-1, -1});
  for (size_t number = 0; number < commands; ++number)
    for (const auto *list : {&problem.commands[number].reads, &problem.commands[number].writes})
      for (int64_t allocation : *list) {
        auto &[first, last] = profile.lives[allocation];
        first = first < 0 ? number : first;
        last = number;
      }
  std::vector<int64_t> taker = chooseTakers(problem, profile.lives);
  std::vector<bool> isTaken(allocations);
  for (int64_t target : taker)
    if (target >= 0)
      isTaken[target] = true;
  profile.inArena.assign(allocations, false);
  std::vector<int64_t> change(commands + 1);
  for (size_t head = 0; head < allocations; ++head) {
    if (isTaken[head] || profile.lives[head].first < 0)
      continue;
    bool elsewhere = problem.allocations[head].isDonated;
    int64_t bytes = 0, last = head;
    for (int64_t part = head; part >= 0; part = taker[part]) {
      bytes = std::max(bytes, problem.allocations[part].bytes);
      last = part;
    }
    if (elsewhere || problem.allocations[last].isResult)
      continue;
    for (int64_t part = head; part >= 0; part = taker[part])
      profile.inArena[part] = problem.allocations[part].bytes > 0;
    change[profile.lives[head].first] += bytes;
    change[profile.lives[last].second + 1] -= bytes;
  }
  int64_t live = 0;
  for (size_t number = 0; number < commands; ++number) {
    live += change[number];
    profile.live.push_back(live);
    if (live > profile.peak) {
      profile.peak = live;
      profile.atPeak = 0;
    }
    profile.atPeak += live == profile.peak;
  }
  return profile;
}

std::vector<int64_t> LiveProfile::orderByFirstUse() const {
  std::vector<int64_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::pair(lives[a].first, a) < std::pair(lives[b].first, b);
  });
  return order;
}

//===----------------------------------------------------------------------===//
// Carrying out
//===----------------------------------------------------------------------===//

std::vector<int64_t> weir::recompute(RecomputeProblem &problem, const Recomputation &step) {
  std::vector<Computation> commands;
  std::vector<int64_t> moved(problem.commands.size(), -1);
  auto repeat = [&](const Repetition &repetition) {
    const Computation &own =
        (repetition.isRecipe ? problem.recipes : problem.commands)[repetition.number];
    Computation again = own;
    again.reads = repetition.reads;
    again.writes = repetition.writes;
    auto rename = [](int64_t &allocation, const auto &from, const auto &to) {
      allocation = to[std::find(from.begin(), from.end(), allocation) - from.begin()];
    };
    for (auto &[source, target] : again.inPlace) {
      rename(source, own.reads, again.reads);
      rename(target, own.writes, again.writes);
    }
    for (size_t i = 0; i < own.writes.size(); ++i) {
      const Buffered buffer = problem.allocations[own.writes[i]];
      int64_t to = again.writes[i];
      if (to >= int64_t(problem.allocations.size()))
        problem.allocations.resize(to + 1);
      problem.allocations[to] = {buffer.bytes, buffer.value, false, false, false, true};
    }
    return again;
  };
  std::vector<Computation> repetitions;
  for (const Repetition &repetition : step.repetitions)
    repetitions.push_back(repeat(repetition));
  for (int64_t number = 0; number < int64_t(moved.size()); ++number) {
    if (number == step.before)
      commands.insert(commands.end(), repetitions.begin(), repetitions.end());
    moved[number] = commands.size();
    commands.push_back(std::move(problem.commands[number]));
    if (number < step.before)
      continue;
    Computation &later = commands.back();
    for (auto [from, to] : step.replaced) {
      std::replace(later.reads.begin(), later.reads.end(), from, to);
      for (auto &[source, target] : later.inPlace)
        source = source == from ? to : source;
    }
  }
  // Backwards, so that what only they read goes with them.
  std::vector<int64_t> readers(problem.allocations.size());
  for (const Computation &command : commands)
    for (int64_t allocation : command.reads)
      ++readers[allocation];
  std::vector<int64_t> kept(commands.size());
  for (int64_t number = commands.size() - 1; number >= 0; --number) {
    Computation &command = commands[number];
    bool isDead =
        command.mayRepeat &&
        std::all_of(command.writes.begin(), command.writes.end(), [&](int64_t allocation) {
          return problem.allocations[allocation].mayCopy && readers[allocation] == 0;
        });
    kept[number] = isDead ? -1 : 0;
    if (isDead)
      for (int64_t allocation : command.reads)
        --readers[allocation];
  }
  problem.commands.clear();
  for (size_t number = 0; number < commands.size(); ++number)
    if (kept[number] >= 0) {
      kept[number] = problem.commands.size();
      problem.commands.push_back(std::move(commands[number]));
    }
  for (int64_t &number : moved)
    number = kept[number];
  return moved;
}

/// Puts other allocations in the place of those that the command names.
template <typename GetNew> static void rename(CommandWithAccesses &command, GetNew getNew) {
  for (MemoryOperand &operand : command.command.operands)
    operand.allocation = getNew(operand.allocation);
  for (OperandAccess &access : command.accesses)
    access.allocation = getNew(access.allocation);
}

/// Adds an allocation of the function that holds the same value as `allocation`.
static void addCopy(OrderProblem &problem, int64_t allocation) {
  int64_t copy = problem.allocations.size();
  const OrderAllocation &old = problem.allocations[allocation];
  OrderAllocation added;
  added.kind = OrderAllocation::Kind::Local;
  added.isValue = added.mayCopy = true;
  for (const OrderAllocation &other : problem.allocations)
    if (other.isValue)
      added.number = std::max(added.number, other.number + 1);
  added.value = old.value;
  added.bytes = old.bytes;
  added.alignment = old.alignment;
  added.type = old.type;
  added.space = old.space;
  problem.allocations.push_back(std::move(added));
  std::vector<int64_t> mayShare = problem.accesses.mayShare[allocation];
  for (int64_t other : mayShare)
    problem.accesses.mayShare[other].push_back(copy);
  problem.accesses.mayShare.push_back(std::move(mayShare));
}

void weir::recompute(OrderProblem &problem, RecomputeProblem summary, const Recomputation &step) {
  auto getCommand = [&](int64_t number) {
    return CommandWithAccesses{problem.commands[number], problem.accesses.dispatches[number]};
  };
  std::vector<CommandWithAccesses> repeated, commands;
  for (const Repetition &repetition : step.repetitions) {
    int64_t number = repetition.number;
    const Computation &own =
        repetition.isRecipe ? summary.recipes[number] : summary.commands[number];
    for (int64_t write : own.writes)
      addCopy(problem, write);
    repeated.push_back(repetition.isRecipe ? problem.recipes[number] : getCommand(number));
    rename(repeated.back(), [&](int64_t allocation) {
      auto write = std::find(own.writes.begin(), own.writes.end(), allocation);
      if (write != own.writes.end())
        return repetition.writes[write - own.writes.begin()];
      auto read = std::find(own.reads.begin(), own.reads.end(), allocation);
      return read == own.reads.end() ? allocation : repetition.reads[read - own.reads.begin()];
    });
  }
  std::vector<int64_t> moved = recompute(summary, step);
  for (int64_t number = 0; number < int64_t(moved.size()); ++number) {
    if (number == step.before)
      std::move(repeated.begin(), repeated.end(), std::back_inserter(commands));
    if (moved[number] < 0)
      continue;
    commands.push_back(getCommand(number));
    if (number >= step.before)
      rename(commands.back(), [&](int64_t allocation) {
        for (auto [from, to] : step.replaced)
          allocation = allocation == from ? to : allocation;
        return allocation;
      });
  }
  problem.commands.clear();
  problem.accesses.dispatches.clear();
  for (CommandWithAccesses &command : commands) {
    problem.commands.push_back(std::move(command.command));
    problem.accesses.dispatches.push_back(std::move(command.accesses));
  }
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

namespace {
class Chooser {
public:
  Chooser(const RecomputeProblem &problem)
      : problem(problem), profile(getLiveProfile(problem)), byFirstUse(profile.orderByFirstUse()) {
    size_t allocations = problem.allocations.size();
    writer.assign(allocations, none);
    for (size_t number = 0; number < problem.commands.size(); ++number)
      for (int64_t allocation : problem.commands[number].writes)
        writer[allocation] = writer[allocation] == none ? int64_t(number) : several;
    int64_t values = 0;
    for (const Buffered &buffer : problem.allocations)
      values = std::max(values, buffer.value + 1);
    holders.resize(values);
    recipes.resize(values);
    for (int64_t number : byFirstUse)
      holders[problem.allocations[number].value].push_back(number);
    for (size_t number = 0; number < problem.recipes.size(); ++number)
      recipes[problem.allocations[problem.recipes[number].writes.front()].value].push_back(number);
  }

  std::optional<Recomputation> choose();

private:
  static constexpr int64_t none = -1, several = -2;
  static constexpr size_t maxRepetitions = 16; ///< in one step

  /// A step that is being made.
  struct Draft {
    Recomputation step;
    int64_t end = 0;                               ///< the number of the next new allocation
    std::vector<std::pair<int64_t, int64_t>> made; ///< (value, new allocation)
  };

  int64_t getNextUse(int64_t allocation, int64_t after) const;
  bool isIdle(int64_t allocation, int64_t command) const;
  bool addRepetition(Draft &draft, bool isRecipe, int64_t number, bool deep) const;
  std::optional<int64_t> findSource(Draft &draft, int64_t allocation, bool deep) const;
  std::optional<Recomputation> draft(int64_t allocation, int64_t before, bool isRecipe,
                                     int64_t number, bool deep) const;
  double getBound(const Recomputation &step) const;
  double getScore(const Recomputation &step) const;

  const RecomputeProblem &problem;
  LiveProfile profile;
  std::vector<int64_t> byFirstUse;           ///< allocations; no choice depends on their numbers
  int64_t peak = 0;                          ///< the first command at it
  std::vector<int64_t> writer;               ///< by allocation
  std::vector<std::vector<int64_t>> holders; ///< allocations by value
  std::vector<std::vector<int64_t>> recipes; ///< by value
};
} // namespace

/// Returns the first command behind `after` that uses the allocation; the end: none.
int64_t Chooser::getNextUse(int64_t allocation, int64_t after) const {
  int64_t last = profile.lives[allocation].second;
  for (int64_t number = after + 1; number <= last; ++number)
    if (contains(problem.commands[number].reads, allocation) ||
        contains(problem.commands[number].writes, allocation))
      return number;
  return problem.commands.size();
}

/// Whether the allocation is live at a command that does not use it.
bool Chooser::isIdle(int64_t allocation, int64_t command) const {
  auto [first, last] = profile.lives[allocation];
  return first >= 0 && first < command && command < last &&
         getNextUse(allocation, command - 1) > command;
}

/// Returns what to read in the place of `allocation` where the draft stands, if there is any.
std::optional<int64_t> Chooser::findSource(Draft &draft, int64_t allocation, bool deep) const {
  int64_t value = problem.allocations[allocation].value;
  for (auto [made, number] : draft.made)
    if (made == value)
      return number;
  // Of those that hold it by then, the one that is alive for the longest.
  int64_t before = draft.step.before, source = -1;
  for (int64_t holder : holders[value]) {
    bool isThere = problem.allocations[holder].isGiven
                       ? writer[holder] == none
                       : writer[holder] >= 0 && writer[holder] < before;
    auto [first, last] = profile.lives[holder];
    if (isThere && (source < 0 || last > profile.lives[source].second))
      source = holder;
  }
  if (source < 0)
    return std::nullopt;
  int64_t last = profile.lives[source].second;
  if (problem.allocations[source].isDonated && last < before)
    return std::nullopt;
  if (!deep || last >= peak || !profile.inArena[source])
    return source; // is kept
  bool isMade = false;
  for (int64_t recipe : recipes[value])
    if ((isMade = addRepetition(draft, /*isRecipe=*/true, recipe, deep)))
      break;
  if (!isMade && !addRepetition(draft, /*isRecipe=*/false, writer[source], deep))
    return std::nullopt;
  for (auto [made, number] : draft.made)
    if (made == value)
      return number;
  return std::nullopt;
}

bool Chooser::addRepetition(Draft &draft, bool isRecipe, int64_t number, bool deep) const {
  if (number < 0 || draft.step.repetitions.size() >= maxRepetitions)
    return false;
  const Computation &own = (isRecipe ? problem.recipes : problem.commands)[number];
  if (!own.mayRepeat)
    return false;
  Repetition repetition = {isRecipe, number, {}, {}};
  for (int64_t read : own.reads) {
    std::optional<int64_t> source = findSource(draft, read, deep);
    if (!source)
      return false;
    repetition.reads.push_back(*source);
  }
  if (draft.step.repetitions.size() >= maxRepetitions)
    return false;
  for (int64_t write : own.writes) {
    draft.made.push_back({problem.allocations[write].value, draft.end});
    repetition.writes.push_back(draft.end++);
  }
  draft.step.repetitions.push_back(std::move(repetition));
  return true;
}

std::optional<Recomputation> Chooser::draft(int64_t allocation, int64_t before, bool isRecipe,
                                            int64_t number, bool deep) const {
  Draft draft;
  draft.step.before = before;
  draft.end = problem.allocations.size();
  if (!addRepetition(draft, isRecipe, number, deep))
    return std::nullopt;
  // Others that were made along need not be kept either.
  for (auto [value, made] : draft.made)
    for (int64_t holder : holders[value])
      if (problem.allocations[holder].mayCopy && writer[holder] >= 0 && writer[holder] < peak &&
          profile.lives[holder].second >= before && getNextUse(holder, peak - 1) >= before)
        draft.step.replaced.push_back({holder, made});
  return std::move(draft.step);
}

/// Returns a bound on what a step saves at the peak for its work. It may save more if it drops the
/// commands that made the same values.
double Chooser::getBound(const Recomputation &step) const {
  double saved = 0, work = 0;
  for (auto [from, to] : step.replaced)
    saved += profile.inArena[from] ? double(problem.allocations[from].bytes) : 0;
  for (const Repetition &repetition : step.repetitions)
    work += (repetition.isRecipe ? problem.recipes : problem.commands)[repetition.number].work;
  return saved / std::max(work, 1.0);
}

/// Returns the bytes that the step saves at the peak for its work; negative if it is no help.
double Chooser::getScore(const Recomputation &step) const {
  RecomputeProblem after = problem;
  std::vector<int64_t> moved = recompute(after, step);
  LiveProfile then = getLiveProfile(after);
  if (std::pair(then.peak, then.atPeak) >= std::pair(profile.peak, profile.atPeak) ||
      moved[peak] < 0)
    return -1;
  double saved = double(profile.live[peak] - then.live[moved[peak]]), work = 0;
  for (const Computation &command : after.commands)
    work += command.work;
  for (const Computation &command : problem.commands)
    work -= command.work;
  return saved / std::max(work, 1.0);
}

std::optional<Recomputation> Chooser::choose() {
  if (profile.peak == 0)
    return std::nullopt;
  peak = std::find(profile.live.begin(), profile.live.end(), profile.peak) - profile.live.begin();
  std::vector<std::pair<double, Recomputation>> steps;
  for (int64_t allocation : byFirstUse) {
    const Buffered &buffer = problem.allocations[allocation];
    if (!buffer.mayCopy || !profile.inArena[allocation] || writer[allocation] < 0 ||
        writer[allocation] >= peak || !isIdle(allocation, peak))
      continue;
    int64_t before = getNextUse(allocation, peak);
    auto consider = [&](bool isRecipe, int64_t way) {
      for (bool deep : {false, true}) {
        std::optional<Recomputation> step = draft(allocation, before, isRecipe, way, deep);
        if (step && !(deep && step->repetitions.size() == 1)) // deep is the same
          steps.emplace_back(getBound(*step), std::move(*step));
      }
    };
    for (int64_t recipe : recipes[buffer.value])
      consider(true, recipe);
    consider(false, writer[allocation]);
  }
  // The most promising ones, and more only where none of these helps.
  constexpr size_t atOnce = 64;
  std::vector<size_t> byBound(steps.size());
  std::iota(byBound.begin(), byBound.end(), 0);
  std::sort(byBound.begin(), byBound.end(), [&](size_t a, size_t b) {
    return std::pair(-steps[a].first, a) < std::pair(-steps[b].first, b);
  });
  std::optional<Recomputation> best;
  double most = 0;
  for (size_t number = 0; number < steps.size(); ++number) {
    if (number % atOnce == 0 && best)
      break;
    const Recomputation &step = steps[byBound[number]].second;
    if (double score = getScore(step); score > most) {
      most = score;
      best = step;
    }
  }
  return best;
}

std::optional<Recomputation> weir::chooseRecomputation(const RecomputeProblem &problem) {
  return Chooser(problem).choose();
}
