//===- Recompute.cpp - Values to compute again for a lower peak -----------===//

#include "weir/Order/Recompute.h"

#include "weir/Order/Donation.h"

#include <algorithm>
#include <numeric>

using namespace weir;

//===----------------------------------------------------------------------===//
// The summary
//===----------------------------------------------------------------------===//

static Computation summarize(const OrderProblem &problem, const OrderCommand &command,
                             const DispatchAccesses &accesses, int64_t origin) {
  Computation computation;
  computation.origin = origin;
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
  int64_t origin = 0;
  for (size_t number = 0; number < problem.commands.size(); ++number)
    summary.commands.push_back(::summarize(problem, problem.commands[number],
                                           problem.accesses.dispatches[number], origin++));
  for (const CommandWithAccesses &recipe : problem.recipes)
    summary.recipes.push_back(::summarize(problem, recipe.command, recipe.accesses, origin++));
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

/// Lets values take each other's bytes, in turns. A value gives its bytes once and takes them once.
static void chooseTakers(const RecomputeProblem &problem, std::vector<BufferLife> &lives) {
  std::vector<bool> takes(lives.size());
  for (int64_t number = 0; number < int64_t(problem.commands.size()); ++number)
    for (int turn : {0, 1, 2})
      for (auto [source, target] : problem.commands[number].inPlace)
        if (getTurn(problem.allocations[source], problem.allocations[target]) == turn &&
            lives[source].last == number && lives[target].first == number &&
            lives[source].taker < 0 && !takes[target]) {
          lives[source].taker = target;
          takes[target] = true;
        }
}

LiveProfile weir::getLiveProfile(const RecomputeProblem &problem) {
  LiveProfile profile;
  profile.lives.resize(problem.allocations.size());
  for (size_t number = 0; number < problem.commands.size(); ++number)
    for (const auto *list : {&problem.commands[number].reads, &problem.commands[number].writes})
      for (int64_t allocation : *list) {
        BufferLife &life = profile.lives[allocation];
        life.first = life.first < 0 ? number : life.first;
        life.last = number;
      }
  chooseTakers(problem, profile.lives);
  std::vector<int64_t> change(problem.commands.size() + 1);
  for (size_t number = 0; number < profile.lives.size(); ++number) {
    BufferLife &life = profile.lives[number];
    int64_t last = number, bytes = problem.allocations[number].bytes;
    while (profile.lives[last].taker >= 0)
      last = profile.lives[last].taker;
    life.inArena = life.first >= 0 && bytes > 0 && !problem.allocations[last].isResult;
    if (!life.inArena)
      continue;
    change[life.first] += bytes;
    change[life.taker < 0 ? life.last + 1 : life.last] -= bytes;
  }
  int64_t live = 0;
  for (size_t number = 0; number < problem.commands.size(); ++number) {
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

int64_t weir::dropUnread(RecomputeProblem &problem) {
  std::vector<int64_t> readers(problem.allocations.size()), writers(problem.allocations.size());
  for (const Computation &command : problem.commands) {
    for (int64_t allocation : command.reads)
      ++readers[allocation];
    for (int64_t allocation : command.writes)
      ++writers[allocation];
  }
  // Backwards, so that what only they read goes with them.
  std::vector<bool> isUnread(problem.commands.size());
  for (size_t number = problem.commands.size(); number-- > 0;) {
    const Computation &command = problem.commands[number];
    isUnread[number] =
        command.mayRepeat &&
        std::all_of(command.writes.begin(), command.writes.end(), [&](int64_t allocation) {
          return problem.allocations[allocation].mayCopy && readers[allocation] == 0 &&
                 writers[allocation] == 1;
        });
    if (isUnread[number])
      for (int64_t allocation : command.reads)
        --readers[allocation];
  }
  size_t kept = 0;
  for (size_t number = 0; number < problem.commands.size(); ++number)
    if (!isUnread[number] && kept++ != number)
      problem.commands[kept - 1] = std::move(problem.commands[number]);
  int64_t dropped = problem.commands.size() - kept;
  problem.commands.resize(kept);
  return dropped;
}

int64_t weir::recompute(RecomputeProblem &problem, const Recomputation &step) {
  std::vector<Computation> repetitions;
  for (const Repetition &repetition : step.repetitions) {
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
    for (int64_t write : own.writes)
      problem.allocations.push_back(getCopy(problem.allocations[write]));
    repetitions.push_back(std::move(again));
  }
  for (size_t number = step.before; number < problem.commands.size(); ++number) {
    Computation &later = problem.commands[number];
    for (auto [from, to] : step.replaced) {
      std::replace(later.reads.begin(), later.reads.end(), from, to);
      for (auto &[source, target] : later.inPlace)
        source = source == from ? to : source;
    }
  }
  problem.commands.insert(problem.commands.begin() + step.before,
                          std::make_move_iterator(repetitions.begin()),
                          std::make_move_iterator(repetitions.end()));
  return dropUnread(problem);
}

/// Puts other allocations in the place of those that the command names.
template <typename GetNew> static void rename(CommandWithAccesses &command, GetNew getNew) {
  for (MemoryOperand &operand : command.command.operands)
    operand.allocation = getNew(operand.allocation);
  for (OperandAccess &access : command.accesses)
    access.allocation = getNew(access.allocation);
}

/// Adds an allocation of the function that holds the same value as `allocation`.
static void addCopy(OrderProblem &problem, int64_t allocation, int64_t number) {
  int64_t copy = problem.allocations.size();
  const OrderAllocation &old = problem.allocations[allocation];
  OrderAllocation added;
  added.kind = OrderAllocation::Kind::Local;
  added.isValue = added.mayCopy = true;
  added.number = number;
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

OrderProblem weir::carryOut(const OrderProblem &problem, const RecomputeProblem &before,
                            const RecomputeProblem &after) {
  OrderProblem result;
  result.allocations = problem.allocations;
  result.accesses.mayShare = problem.accesses.mayShare;
  result.accesses.strided = problem.accesses.strided;
  result.recipes = problem.recipes;
  result.isProved = problem.isProved;
  int64_t number = 0; // of the next value
  for (const OrderAllocation &allocation : problem.allocations)
    if (allocation.isValue)
      number = std::max(number, allocation.number + 1);
  for (size_t copy = problem.allocations.size(); copy < after.allocations.size(); ++copy)
    addCopy(result, after.allocations[copy].value, number++);
  for (const Computation &computation : after.commands) {
    int64_t recipe = computation.origin - int64_t(before.commands.size());
    const Computation &own =
        recipe < 0 ? before.commands[computation.origin] : before.recipes[recipe];
    CommandWithAccesses command =
        recipe < 0 ? CommandWithAccesses{problem.commands[computation.origin],
                                         problem.accesses.dispatches[computation.origin]}
                   : problem.recipes[recipe];
    rename(command, [&](int64_t allocation) {
      auto write = std::find(own.writes.begin(), own.writes.end(), allocation);
      if (write != own.writes.end())
        return computation.writes[write - own.writes.begin()];
      auto read = std::find(own.reads.begin(), own.reads.end(), allocation);
      return read == own.reads.end() ? allocation : computation.reads[read - own.reads.begin()];
    });
    result.commands.push_back(std::move(command.command));
    result.accesses.dispatches.push_back(std::move(command.accesses));
  }
  return result;
}
