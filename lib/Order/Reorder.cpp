//===- Reorder.cpp - An order with fewer waves ----------------------------===//

#include "weir/Order/Reorder.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace weir;

namespace {
/// The bytes that are live while waves are filled one after another.
class LiveBytes {
public:
  LiveBytes(const CommandAccesses &accesses, const std::vector<int64_t> &bytes)
      : accesses(accesses), bytes(bytes), uses(bytes.size()), live(bytes.size()) {
    for (const DispatchAccesses &dispatch : accesses.dispatches)
      for (const OperandAccess &access : dispatch)
        ++uses[access.allocation];
  }

  int64_t get() const { return sum; }

  /// Returns the bytes that `dispatch` would add to those live in this wave.
  int64_t getGrowth(int64_t dispatch) const {
    int64_t growth = 0;
    const DispatchAccesses &own = accesses.dispatches[dispatch];
    for (auto access = own.begin(); access != own.end(); ++access)
      if (!live[access->allocation] &&
          std::none_of(own.begin(), access, [&](const OperandAccess &other) {
            return other.allocation == access->allocation;
          }))
        growth += bytes[access->allocation];
    return growth;
  }

  void take(int64_t dispatch) {
    sum += getGrowth(dispatch);
    for (const OperandAccess &access : accesses.dispatches[dispatch]) {
      live[access.allocation] = true;
      if (--uses[access.allocation] == 0)
        ending.push_back(access.allocation);
    }
  }

  void endWave() {
    for (int64_t allocation : ending)
      sum -= bytes[allocation];
    ending.clear();
  }

private:
  const CommandAccesses &accesses;
  const std::vector<int64_t> &bytes;
  std::vector<int64_t> uses; ///< by allocation, those to come
  std::vector<bool> live;
  std::vector<int64_t> ending; ///< used for the last time in this wave
  int64_t sum = 0;
};
} // namespace

WaveOrder weir::orderInFewWaves(const CommandAccesses &accesses, const std::vector<Hazard> &hazards,
                                const std::vector<int64_t> &bytes, int64_t limit) {
  constexpr int64_t lookahead = 64;
  int64_t count = accesses.dispatches.size();
  std::vector<std::vector<int64_t>> after(count);
  std::vector<int64_t> waiting(count), height(count);
  // Sorted by `to`: whatever comes after `to` is known once the walk is there.
  for (auto hazard = hazards.rbegin(); hazard != hazards.rend(); ++hazard) {
    height[hazard->from] = std::max(height[hazard->from], height[hazard->to] + 1);
    after[hazard->from].push_back(hazard->to);
    ++waiting[hazard->to];
  }
  auto isBefore = [&](int64_t a, int64_t b) {
    return std::pair(-height[a], a) < std::pair(-height[b], b);
  };
  std::set<int64_t, decltype(isBefore)> ready(isBefore);
  for (int64_t dispatch = 0; dispatch < count; ++dispatch)
    if (waiting[dispatch] == 0)
      ready.insert(dispatch);

  LiveBytes live(accesses, bytes);
  WaveOrder result;
  std::vector<int64_t> &order = result.order;
  for (int64_t wave = 0; !ready.empty(); ++wave) {
    size_t waveBegin = order.size();
    auto take = [&](auto dispatch) {
      live.take(*dispatch);
      order.push_back(*dispatch);
      return ready.erase(dispatch);
    };
    int64_t misses = 0;
    auto least = ready.end();
    for (auto next = ready.begin(); next != ready.end() && misses < lookahead;) {
      int64_t growth = live.getGrowth(*next);
      if (growth <= limit - live.get()) {
        next = take(next);
        continue;
      }
      if (least == ready.end() || growth < live.getGrowth(*least))
        least = next;
      ++misses;
      ++next;
    }
    if (order.size() == waveBegin)
      take(least);
    live.endWave();
    result.waves.resize(order.size(), wave);
    for (size_t i = waveBegin, end = order.size(); i < end; ++i)
      for (int64_t dispatch : after[order[i]])
        if (--waiting[dispatch] == 0)
          ready.insert(dispatch);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// With places
//===----------------------------------------------------------------------===//

bool PlacedCommands::shareBytes() const {
  std::vector<ByteRange> ranges;
  for (const PlacedSlot &slot : slots)
    ranges.push_back({slot.offset, slot.offset + slot.bytes});
  std::sort(ranges.begin(), ranges.end(),
            [](ByteRange a, ByteRange b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      return true;
  return false;
}

PlacedCommands weir::placeCommands(const OrderProblem &problem, const ArenaPlan &plan) {
  PlacedCommands placed;
  placed.accesses = problem.accesses;
  placed.arena = problem.allocations.size();
  placed.firstSlot = placed.arena + 1;
  placed.arenaBytes = plan.plan.arenaBytes;
  std::vector<Spot> spots(problem.allocations.size());
  std::vector<int64_t> chainOf(spots.size(), -1); // of what has a slot
  for (size_t allocation = 0; allocation < spots.size(); ++allocation)
    spots[allocation].allocation = allocation;
  for (size_t number = 0; number < plan.chains.size(); ++number) {
    const auto &[values, argument, result] = plan.chains[number];
    if (result >= 0)
      spots[result].allocation = argument >= 0 ? argument : result;
    for (int64_t value : values) {
      spots[value] = result >= 0 ? spots[result] : Spot{-1, plan.plan.offsets[number]};
      chainOf[value] = result >= 0 ? -1 : number;
    }
  }
  std::vector<int64_t> slotOf(plan.chains.size(), -1);
  for (const DispatchAccesses &dispatch : problem.accesses.dispatches)
    for (const OperandAccess &access : dispatch) {
      int64_t chain = chainOf[access.allocation];
      if (chain < 0)
        continue;
      if (slotOf[chain] < 0) {
        slotOf[chain] = placed.slots.size();
        PlacedSlot slot = {0, 1, plan.plan.offsets[chain]};
        for (int64_t value : plan.chains[chain].values) {
          slot.bytes = std::max(slot.bytes, problem.allocations[value].bytes);
          slot.alignment = std::max(slot.alignment, problem.allocations[value].alignment);
        }
        placed.slots.push_back(slot);
      }
      spots[access.allocation].allocation = placed.firstSlot + slotOf[chain];
    }
  moveAccesses(placed.accesses, spots);
  placed.accesses.mayShare.resize(placed.firstSlot + placed.slots.size());
  for (const OrderCommand &command : problem.commands)
    placed.queues.push_back(command.queue);
  return placed;
}

CommandAccesses weir::getAddresses(const PlacedCommands &commands,
                                   const std::vector<int64_t> &offsets) {
  CommandAccesses accesses = commands.accesses;
  std::vector<Spot> spots(accesses.mayShare.size());
  for (int64_t allocation = 0; allocation < commands.firstSlot; ++allocation)
    spots[allocation].allocation = allocation;
  for (size_t slot = 0; slot < offsets.size(); ++slot)
    spots[commands.firstSlot + slot] = {commands.arena,
                                        offsets[slot] - commands.slots[slot].offset};
  moveAccesses(accesses, spots);
  accesses.mayShare.resize(commands.firstSlot);
  return accesses;
}

CommandAccesses weir::getAddresses(const PlacedCommands &commands) {
  std::vector<int64_t> offsets;
  for (const PlacedSlot &slot : commands.slots)
    offsets.push_back(slot.offset);
  return getAddresses(commands, offsets);
}

/// Places the slots for commands in these waves.
static MemoryPlan placeSlots(const PlacedCommands &commands, const std::vector<int64_t> &waves,
                             int64_t effort) {
  std::vector<Lifetime> lifetimes;
  for (const PlacedSlot &slot : commands.slots)
    lifetimes.push_back({slot.bytes, slot.alignment, 0, 0});
  std::vector<bool> isLive(lifetimes.size());
  for (size_t number = 0; number < waves.size(); ++number)
    for (const OperandAccess &access : commands.accesses.dispatches[number]) {
      if (access.allocation < commands.firstSlot)
        continue;
      int64_t slot = access.allocation - commands.firstSlot;
      if (!isLive[slot])
        lifetimes[slot].firstWave = waves[number];
      isLive[slot] = true;
      lifetimes[slot].lastWave = waves[number];
    }
  // A step of the search looks at all slots that are live with one, and it takes a step a slot at
  // least to get anywhere. Several orders are tried, so many slots get what few ones cost.
  int64_t size = 1 + int64_t(lifetimes.size()) / 32;
  return planMemory(lifetimes, /*noReuse=*/false, effort / (size * size));
}

static int64_t getCost(const CommandAccesses &addresses, const std::vector<int64_t> &queues) {
  PlannedOrder planned = planOrder(findHazards(addresses), queues);
  return planned.barriers.size() + planned.signals.size() + planned.waits.size();
}

int64_t weir::countBarriers(const PlacedCommands &commands) {
  return getCost(getAddresses(commands), commands.queues);
}

/// Returns the bytes that the arena may have.
static int64_t getLimit(int64_t arenaBytes, const ArenaGrowth &growth) {
  int64_t limit = std::numeric_limits<int64_t>::max();
  int64_t whole = arenaBytes / 100, rest = arenaBytes % 100 * growth.percent / 100;
  if (growth.percent == 0 || whole <= (limit - arenaBytes - rest) / growth.percent)
    limit = arenaBytes + whole * growth.percent + rest;
  return growth.maxBytes > 0 ? std::max(arenaBytes, std::min(limit, growth.maxBytes)) : limit;
}

std::optional<PlacedOrder> weir::findCheaperOrder(PlacedCommands commands,
                                                  const ArenaGrowth &growth, int64_t effort) {
  // Slots are never packed without a gap: less may be live than there is room for.
  constexpr int attempts = 8;
  int64_t costBefore = countBarriers(commands);
  bool mayMove = commands.shareBytes();
  if (!mayMove) {
    commands.accesses = getAddresses(commands);
    commands.slots.clear();
  }
  int64_t limit =
      mayMove ? getLimit(commands.arenaBytes, growth) : std::numeric_limits<int64_t>::max();
  std::vector<int64_t> bytes(commands.accesses.mayShare.size());
  for (size_t slot = 0; slot < commands.slots.size(); ++slot)
    bytes[commands.firstSlot + slot] = commands.slots[slot].bytes;
  std::vector<Hazard> hazards = findHazards(commands.accesses);
  int64_t mayBeLive = limit;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    PlacedOrder result;
    auto [order, waves] = orderInFewWaves(commands.accesses, hazards, bytes, mayBeLive);
    PlacedCommands ordered;
    ordered.accesses = permute(commands.accesses, order);
    ordered.slots = commands.slots;
    ordered.firstSlot = commands.firstSlot;
    ordered.arena = commands.arena;
    for (int64_t number : order)
      ordered.queues.push_back(commands.queues[number]);
    result.order = std::move(order);
    if (mayMove) {
      result.plan = placeSlots(ordered, waves, effort);
      if (result.plan.arenaBytes > limit) {
        // With many slots an attempt is dear, and little is lost by leaving more room each time.
        int times = commands.slots.size() > 256 ? attempt : 0;
        mayBeLive -= std::max<int64_t>(result.plan.arenaBytes - limit, 1) << times;
        continue;
      }
      ordered.accesses = getAddresses(ordered, result.plan.offsets);
    }
    result.cost = getCost(ordered.accesses, ordered.queues);
    result.costBefore = costBefore;
    if (result.cost >= costBefore)
      return std::nullopt;
    return result;
  }
  return std::nullopt;
}
