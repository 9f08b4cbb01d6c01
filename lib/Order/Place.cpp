//===- Place.cpp - Which bytes each value gets ----------------------------===//

#include "weir/Order/Place.h"

#include <algorithm>
#include <limits>

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
  ArenaPlan plan(const Sources &sources, bool noReuse, int64_t effort,
                 int64_t below = std::numeric_limits<int64_t>::max()) const;

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
  chains.reserve(values.size() + arguments.size());
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

/// Returns a plan; without effort it may be a part of one that is not smaller than `below`.
ArenaPlan ArenaPlanner::plan(const Sources &sources, bool noReuse, int64_t effort,
                             int64_t below) const {
  ArenaPlan result;
  result.chains = makeChains(sources);
  std::vector<Lifetime> wholes;
  wholes.reserve(result.chains.size());
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
  result.plan = planMemory(wholes, noReuse, effort / (1 + int64_t(wholes.size()) / 64), below);
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
    if (ArenaPlan other = plan(fewer, /*noReuse=*/false, /*effort=*/0, best.plan.arenaBytes);
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

//===----------------------------------------------------------------------===//
// Waves
//===----------------------------------------------------------------------===//

std::vector<int64_t> weir::getPlacedWaves(const CommandAccesses &addresses,
                                          const std::vector<SlotUsers> &slots) {
  CommandAccesses ofSlots;
  ofSlots.dispatches.resize(addresses.dispatches.size());
  ofSlots.mayShare.resize(addresses.mayShare.size());
  for (size_t slot = 0; slot < slots.size(); ++slot)
    if (!slots[slot].range.isEmpty())
      for (int64_t number : {slots[slot].first, slots[slot].last})
        ofSlots.dispatches[number].push_back(
            {int64_t(slot), slots[slot].arena, slots[slot].range, false, true});
  std::vector<Hazard> hazards = findHazards(addresses), betweenSlots = findHazards(ofSlots), all;
  std::erase_if(betweenSlots, [](const Hazard &hazard) {
    return hazard.fromOperand == hazard.toOperand; // users of one slot
  });
  all.reserve(hazards.size() + betweenSlots.size());
  std::merge(hazards.begin(), hazards.end(), betweenSlots.begin(), betweenSlots.end(),
             std::back_inserter(all), [](const Hazard &a, const Hazard &b) { return a.to < b.to; });
  return getWaves(addresses.dispatches.size(), all);
}

/// Returns the accesses with each value in its place, and the arena as the last allocation.
static CommandAccesses getAddresses(const OrderProblem &problem, const ArenaPlan &plan) {
  int64_t arena = problem.allocations.size();
  std::vector<Spot> spots(arena);
  for (int64_t allocation = 0; allocation < arena; ++allocation)
    spots[allocation].allocation = allocation;
  CommandAccesses addresses = problem.accesses;
  addresses.mayShare.emplace_back();
  for (size_t number = 0; number < plan.chains.size(); ++number) {
    const auto &[values, argument, result] = plan.chains[number];
    int64_t bytes = argument >= 0 ? argument : result;
    Spot spot = result >= 0 ? Spot{bytes, 0} : Spot{arena, plan.plan.offsets[number]};
    for (int64_t value : values)
      spots[value] = spot;
    if (result >= 0)
      spots[result] = spot;
    else if (addresses.mayShare[arena].empty()) // the same for all values: unknown memory
      for (int64_t other : problem.accesses.mayShare[values.front()]) {
        addresses.mayShare[arena].push_back(other);
        addresses.mayShare[other].push_back(arena);
      }
  }
  moveAccesses(addresses, spots);
  return addresses;
}

PlacedWaves weir::getPlacedWaves(const OrderProblem &problem, const ArenaPlan &plan) {
  std::vector<int64_t> slotOf(problem.allocations.size(), -1); // by allocation
  std::vector<SlotUsers> slots;                                // by chain
  slots.reserve(plan.chains.size());
  for (size_t number = 0; number < plan.chains.size(); ++number) {
    const Chain &chain = plan.chains[number];
    SlotUsers &slot = slots.emplace_back(SlotUsers{int64_t(slotOf.size()), {}, -1, -1});
    if (chain.result >= 0)
      continue;
    for (int64_t value : chain.values)
      slotOf[value] = number;
    slot.range.begin = plan.plan.offsets[number];
    slot.range.end = slot.range.begin + problem.allocations[chain.values.front()].bytes;
  }
  for (size_t number = 0; number < problem.commands.size(); ++number)
    for (const MemoryOperand &operand : problem.commands[number].operands)
      if (int64_t slot = slotOf[operand.allocation]; slot >= 0) {
        slots[slot].first = slots[slot].first < 0 ? number : slots[slot].first;
        slots[slot].last = number;
      }
  PlacedWaves result;
  result.lives.reserve(slots.size());
  result.waves = getPlacedWaves(::getAddresses(problem, plan), slots);
  for (const SlotUsers &slot : slots) // waves never decrease
    result.lives.emplace_back(slot.first < 0 ? 0 : result.waves[slot.first],
                              slot.first < 0 ? 0 : result.waves[slot.last]);
  return result;
}
