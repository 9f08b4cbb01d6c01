//===- Place.cpp - Which bytes each value gets ----------------------------===//

#include "weir/Order/Place.h"

#include <algorithm>

using namespace weir;

namespace {
class ArenaPlanner {
public:
  ArenaPlanner(const OrderProblem &problem, const std::vector<Permission> &permissions);

  ArenaPlan planCheapest(int64_t effort) const;
  ArenaPlan planWithoutReuse() const {
    return plan(Sources(problem.allocations.size(), -1), /*noReuse=*/true, /*effort=*/0);
  }

private:
  /// By allocation, the one whose bytes it takes; -1: none.
  using Sources = std::vector<int64_t>;

  bool isSuccessor(int64_t argument, int64_t result) const;
  Sources chooseSources() const;
  void lead(int64_t argument, bool toSuccessor, Sources &sources, std::vector<bool> &given) const;
  std::vector<Chain> makeChains(const Sources &sources) const;
  ArenaPlan plan(const Sources &sources, bool noReuse, int64_t effort) const;

  const OrderProblem &problem;
  std::vector<int64_t> values;              ///< that commands use, by number
  std::vector<int64_t> arguments;           ///< that give their bytes, by number
  std::vector<Lifetime> lifetimes;          ///< by allocation
  std::vector<int64_t> givers;              ///< in the order of their first permission
  std::vector<std::vector<int64_t>> takers; ///< by giver, in recorded order
};
} // namespace

ArenaPlanner::ArenaPlanner(const OrderProblem &problem, const std::vector<Permission> &permissions)
    : problem(problem), lifetimes(problem.allocations.size()), takers(problem.allocations.size()) {
  std::vector<bool> isUsed(problem.allocations.size());
  for (const OrderCommand &command : problem.commands)
    for (const MemoryOperand &operand : command.operands) {
      const OrderAllocation &allocation = problem.allocations[operand.allocation];
      if (!allocation.isValue)
        continue;
      Lifetime &life = lifetimes[operand.allocation];
      if (!isUsed[operand.allocation]) {
        isUsed[operand.allocation] = true;
        values.push_back(operand.allocation);
        life = {allocation.bytes, allocation.alignment, command.wave, command.wave};
      }
      life.firstWave = std::min(life.firstWave, command.wave);
      life.lastWave = std::max(life.lastWave, command.wave);
    }
  for (auto [target, source] : permissions) {
    if (takers[source].empty()) {
      givers.push_back(source);
      if (problem.allocations[source].kind == OrderAllocation::Kind::Argument)
        arguments.push_back(source);
    }
    takers[source].push_back(target);
  }
  auto comesFirst = [&](int64_t a, int64_t b) {
    return problem.allocations[a].number < problem.allocations[b].number;
  };
  std::sort(values.begin(), values.end(), comesFirst);
  std::sort(arguments.begin(), arguments.end(), comesFirst);
}

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

/// Whether `result` is the next value of `argument`: a caller that invokes the entry again
/// passes it as that, by name.
bool ArenaPlanner::isSuccessor(int64_t argument, int64_t result) const {
  const std::string &name = problem.allocations[argument].name;
  return !name.empty() && name == problem.allocations[result].name;
}

/// Finds the shortest way from a donated argument to a result.
void ArenaPlanner::lead(int64_t argument, bool toSuccessor, Sources &sources,
                        std::vector<bool> &given) const {
  Sources from(sources.size(), -1);
  std::vector<int64_t> open = {argument};
  int64_t result = -1;
  for (size_t next = 0; next < open.size() && result < 0; ++next)
    for (int64_t taker : takers[open[next]]) {
      if (sources[taker] >= 0 || from[taker] >= 0)
        continue;
      from[taker] = open[next];
      if (!problem.allocations[taker].isResult) {
        open.push_back(taker);
      } else if (!toSuccessor || isSuccessor(argument, taker)) {
        result = taker;
        break;
      }
    }
  for (int64_t value = result; value >= 0 && value != argument; value = from[value]) {
    sources[value] = from[value];
    given[from[value]] = true;
  }
}

/// Chooses whose bytes each value takes: first whatever leads from a donated argument to a
/// result, in as few steps as can be, that of its own name above all; then results, then the
/// others. A value gives its bytes once and takes them once.
ArenaPlanner::Sources ArenaPlanner::chooseSources() const {
  Sources sources(problem.allocations.size(), -1);
  std::vector<bool> given(problem.allocations.size());
  for (bool toSuccessor : {true, false})
    for (int64_t argument : arguments)
      if (!given[argument])
        lead(argument, toSuccessor, sources, given);
  for (bool toResults : {true, false})
    for (int64_t source : givers)
      for (int64_t taker : takers[source])
        if (problem.allocations[taker].isResult == toResults &&
            problem.allocations[source].kind != OrderAllocation::Kind::Argument &&
            sources[taker] < 0 && !given[source]) {
          given[source] = true;
          sources[taker] = source;
        }
  return sources;
}

/// Strings the values together: first those that begin in the arena, then those that begin
/// with an argument.
std::vector<Chain> ArenaPlanner::makeChains(const Sources &sources) const {
  Sources taker(sources.size(), -1);
  for (size_t target = 0; target < sources.size(); ++target)
    if (sources[target] >= 0)
      taker[sources[target]] = target;
  std::vector<Chain> chains;
  auto follow = [&](int64_t head) {
    Chain chain;
    for (int64_t part = head; part >= 0; part = taker[part]) {
      const OrderAllocation &allocation = problem.allocations[part];
      if (allocation.isValue)
        chain.values.push_back(part);
      else if (allocation.isResult)
        chain.result = part;
      else
        chain.argument = part;
    }
    chains.push_back(std::move(chain));
  };
  for (int64_t value : values)
    if (sources[value] < 0)
      follow(value);
  for (int64_t argument : arguments)
    if (taker[argument] >= 0)
      follow(argument);
  return chains;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

ArenaPlan ArenaPlanner::plan(const Sources &sources, bool noReuse, int64_t effort) const {
  ArenaPlan result;
  result.chains = makeChains(sources);
  std::vector<Lifetime> wholes;
  for (const Chain &chain : result.chains) {
    Lifetime whole; // of what lies elsewhere: nothing
    if (chain.result < 0) {
      whole = lifetimes[chain.values.front()];
      for (int64_t value : chain.values) {
        const Lifetime &part = lifetimes[value];
        whole.bytes = std::max(whole.bytes, part.bytes);
        whole.alignment = std::max(whole.alignment, part.alignment);
        whole.firstWave = std::min(whole.firstWave, part.firstWave);
        whole.lastWave = std::max(whole.lastWave, part.lastWave);
      }
    }
    wholes.push_back(whole);
  }
  // A step looks at what is live with one value: it costs more where there are many.
  result.plan = planMemory(wholes, noReuse, effort / (1 + int64_t(wholes.size()) / 64));
  return result;
}

ArenaPlan ArenaPlanner::planCheapest(int64_t effort) const {
  constexpr size_t budget = 100'000; // values placed in all
  Sources sources = chooseSources();
  ArenaPlan best = plan(sources, /*noReuse=*/false, effort);
  if (best.plan.arenaBytes == best.plan.boundBytes)
    return best;
  // Chains live longer than each of their values, and may leave gaps.
  std::vector<int64_t> inArena; // who takes the bytes of another there
  for (const Chain &chain : best.chains)
    if (chain.result < 0)
      inArena.insert(inArena.end(), chain.values.begin() + 1, chain.values.end());
  Sources fewer = sources;
  for (int64_t taker : inArena)
    fewer[taker] = -1;
  if (ArenaPlan other = plan(fewer, /*noReuse=*/false, effort);
      other.plan.arenaBytes < best.plan.arenaBytes)
    return other;
  bool isGreedy = false;
  size_t tried = std::min(inArena.size(), budget / values.size());
  for (size_t number = 0; number < tried; ++number) {
    fewer = sources;
    fewer[inArena[number]] = -1;
    if (ArenaPlan other = plan(fewer, /*noReuse=*/false, /*effort=*/0);
        other.plan.arenaBytes < best.plan.arenaBytes) {
      sources = std::move(fewer);
      best = std::move(other);
      isGreedy = true;
    }
  }
  return isGreedy ? plan(sources, /*noReuse=*/false, effort) : best;
}

std::vector<Permission> weir::getPermissions(const OrderProblem &problem,
                                             const std::vector<DonationPair> &pairs) {
  std::vector<Permission> permissions;
  for (const DonationPair &pair : pairs) {
    const OrderCommand &command = problem.commands[pair.command];
    if (!pair.refusal)
      permissions.push_back(
          {command.getOperand(pair.target).allocation, command.getOperand(pair.source).allocation});
  }
  return permissions;
}

ArenaPlan weir::planArena(const OrderProblem &problem, const std::vector<Permission> &permissions,
                          int64_t effort) {
  return ArenaPlanner(problem, permissions).planCheapest(effort);
}

ArenaPlan weir::planWithoutReuse(const OrderProblem &problem) {
  return ArenaPlanner(problem, {}).planWithoutReuse();
}
