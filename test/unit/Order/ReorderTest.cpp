//===- ReorderTest.cpp - Orders with fewer waves --------------------------===//

#include "weir/Order/Reorder.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

using namespace weir;

namespace {
int64_t countWaves(const WaveOrder &order) {
  return order.waves.empty() ? 0 : order.waves.back() + 1;
}

/// A random list of values of 100 to 400 bytes, each written by one dispatch that reads a few
/// earlier ones.
struct RandomGraph {
  explicit RandomGraph(int seed) : random(seed) {
    int64_t count = pick(0, 60);
    for (int64_t dispatch = 0; dispatch < count; ++dispatch) {
      DispatchAccesses own;
      for (int64_t reads = pick(0, std::min<int64_t>(3, dispatch)); reads > 0; --reads)
        own.push_back({int64_t(own.size()), pick(0, dispatch - 1), {0, 100}, true, false});
      own.push_back({int64_t(own.size()), dispatch, {0, 100}, false, true});
      accesses.dispatches.push_back(own);
      accesses.mayShare.emplace_back();
      bytes.push_back(100 * pick(1, 4));
    }
    hazards = findHazards(accesses);
  }

  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }

  /// Returns the number of dispatches in the longest chain of hazards.
  int64_t getDepth() const {
    std::vector<int64_t> depth(accesses.dispatches.size(), 1);
    int64_t most = 0;
    for (const Hazard &hazard : hazards)
      depth[hazard.to] = std::max(depth[hazard.to], depth[hazard.from] + 1);
    for (int64_t d : depth)
      most = std::max(most, d);
    return most;
  }

  /// Returns the max number of bytes live in one wave.
  int64_t getPeak(const WaveOrder &order) const {
    std::vector<int64_t> first(bytes.size(), -1), last(bytes.size(), -1);
    for (size_t i = 0; i < order.order.size(); ++i)
      for (const OperandAccess &access : accesses.dispatches[order.order[i]]) {
        if (first[access.allocation] < 0)
          first[access.allocation] = order.waves[i];
        last[access.allocation] = order.waves[i];
      }
    int64_t most = 0;
    for (int64_t wave = 0; wave < countWaves(order); ++wave) {
      int64_t live = 0;
      for (size_t value = 0; value < bytes.size(); ++value)
        live += first[value] <= wave && wave <= last[value] ? bytes[value] : 0;
      most = std::max(most, live);
    }
    return most;
  }

  std::mt19937 random;
  CommandAccesses accesses;
  std::vector<Hazard> hazards;
  std::vector<int64_t> bytes;
};

void expectKept(const RandomGraph &graph, const WaveOrder &order) {
  ASSERT_EQ(order.order.size(), graph.accesses.dispatches.size());
  ASSERT_EQ(order.waves.size(), order.order.size());
  EXPECT_TRUE(std::is_sorted(order.waves.begin(), order.waves.end()));
  std::vector<int64_t> waves(order.order.size(), -1);
  for (size_t i = 0; i < waves.size(); ++i)
    waves[order.order[i]] = order.waves[i];
  EXPECT_EQ(std::count(waves.begin(), waves.end(), -1), 0) << "a dispatch got lost";
  for (const Hazard &hazard : graph.hazards)
    EXPECT_LT(waves[hazard.from], waves[hazard.to]);
}

class RandomOrders : public testing::TestWithParam<int> {};

TEST_P(RandomOrders, WithoutALimitAsManyWavesAsTheLongestChain) {
  RandomGraph graph(GetParam());
  WaveOrder order = orderInFewWaves(graph.accesses, graph.hazards, graph.bytes,
                                    std::numeric_limits<int64_t>::max());
  expectKept(graph, order);
  EXPECT_EQ(countWaves(order), graph.getDepth());
}

TEST_P(RandomOrders, WithoutRoomTheOrderStillHolds) {
  RandomGraph graph(GetParam());
  WaveOrder order = orderInFewWaves(graph.accesses, graph.hazards, graph.bytes, 0);
  expectKept(graph, order);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomOrders, testing::Range(0, 200));

TEST(Reorder, FewerWavesForMoreBytes) {
  // Four chains of two: 100 bytes each, all at once or two at a time.
  RandomGraph graph(0);
  graph.accesses = {};
  graph.bytes.clear();
  for (int64_t chain = 0; chain < 4; ++chain) {
    graph.accesses.dispatches.push_back({{0, chain, {0, 100}, false, true}});
    graph.accesses.dispatches.push_back({{0, chain, {0, 100}, true, false}});
    graph.accesses.mayShare.emplace_back();
    graph.bytes.push_back(100);
  }
  graph.hazards = findHazards(graph.accesses);
  auto getOrder = [&](int64_t limit) {
    return orderInFewWaves(graph.accesses, graph.hazards, graph.bytes, limit);
  };
  EXPECT_EQ(countWaves(getOrder(400)), 2);
  EXPECT_EQ(graph.getPeak(getOrder(400)), 400);
  EXPECT_LE(graph.getPeak(getOrder(200)), 200);
  EXPECT_EQ(countWaves(getOrder(200)), 4);
  EXPECT_EQ(graph.getPeak(getOrder(100)), 100);
  EXPECT_EQ(countWaves(getOrder(100)), 8);
}

/// The values of a random graph, packed for its waves in recorded order.
PlacedCommands place(const RandomGraph &graph) {
  PlacedCommands commands;
  commands.accesses = graph.accesses;
  commands.queues.assign(graph.accesses.dispatches.size(), 0);
  std::vector<int64_t> waves = getWaves(graph.accesses.dispatches.size(), graph.hazards);
  std::vector<Lifetime> lifetimes;
  for (int64_t bytes : graph.bytes)
    lifetimes.push_back({bytes, 1, -1, -1});
  for (size_t number = 0; number < waves.size(); ++number)
    for (const OperandAccess &access : graph.accesses.dispatches[number]) {
      Lifetime &life = lifetimes[access.allocation];
      life.firstWave = life.firstWave < 0 ? waves[number] : life.firstWave;
      life.lastWave = waves[number];
    }
  MemoryPlan plan = planMemory(lifetimes, /*noReuse=*/false);
  commands.arena = 0;
  commands.firstSlot = 1;
  commands.arenaBytes = plan.arenaBytes;
  commands.accesses.mayShare.emplace_back();
  for (DispatchAccesses &dispatch : commands.accesses.dispatches)
    for (OperandAccess &access : dispatch) {
      access.range.begin += plan.offsets[access.allocation];
      access.range.end += plan.offsets[access.allocation];
      access.allocation += commands.firstSlot;
    }
  for (size_t slot = 0; slot < lifetimes.size(); ++slot)
    commands.slots.push_back({lifetimes[slot].bytes, 1, plan.offsets[slot]});
  return commands;
}

TEST(CheaperOrder, KeepsTheLimitAndNeedsFewerBarriers) {
  int found = 0, byEffort = 0;
  for (int seed = 0; seed < 100; ++seed) {
    PlacedCommands commands = place(RandomGraph(seed));
    std::optional<PlacedOrder> greedy = findCheaperOrder(commands, {}, /*effort=*/0);
    std::optional<PlacedOrder> searched = findCheaperOrder(commands, {}, /*effort=*/20'000);
    for (const std::optional<PlacedOrder> &order : {greedy, searched}) {
      if (!order)
        continue;
      EXPECT_LT(order->cost, order->costBefore) << "seed " << seed;
      EXPECT_LE(order->plan.arenaBytes, commands.arenaBytes) << "seed " << seed;
    }
    found += greedy.has_value();
    byEffort += searched && (!greedy || searched->cost < greedy->cost);
  }
  EXPECT_GT(found, 0);
  EXPECT_GT(byEffort, 0);
}

TEST(CheaperOrder, LimitsHowFarTheArenaGrows) {
  // Two chains through the same 256 bytes, one after the other.
  PlacedCommands commands;
  commands.accesses.mayShare.resize(3);
  commands.arena = 0;
  commands.firstSlot = 1;
  commands.arenaBytes = 256;
  commands.slots = {{256, 256, 0}, {256, 256, 0}};
  for (int64_t slot : {1, 2}) {
    commands.accesses.dispatches.push_back({{0, slot, {0, 256}, false, true}});
    commands.accesses.dispatches.push_back({{0, slot, {0, 256}, true, false}});
  }
  commands.queues.assign(4, 0);
  EXPECT_FALSE(findCheaperOrder(commands, {0, 0}, 0));
  EXPECT_FALSE(findCheaperOrder(commands, {99, 0}, 0));
  EXPECT_FALSE(findCheaperOrder(commands, {100, 511}, 0));
  std::optional<PlacedOrder> order = findCheaperOrder(commands, {100, 512}, 0);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->costBefore, 3);
  EXPECT_EQ(order->cost, 1);
  EXPECT_EQ(order->plan.arenaBytes, 512);
}
} // namespace
