//===- PlannerTest.cpp - Plans of random and of hostile values ------------===//

#include "weir/Planner/Planner.h"

#include "weir/Artifact/Error.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <random>

using namespace weir;

static void checkPlan(const std::vector<Lifetime> &values, const MemoryPlan &plan) {
  ASSERT_EQ(plan.offsets.size(), values.size());
  EXPECT_LE(plan.arenaBytes, plan.pinnedBytes);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_EQ(plan.offsets[i] % values[i].alignment, 0);
    EXPECT_LE(plan.offsets[i] + values[i].bytes, plan.arenaBytes);
    for (size_t j = 0; j < i; ++j) {
      bool together =
          values[i].firstWave <= values[j].lastWave && values[j].firstWave <= values[i].lastWave;
      bool share = plan.offsets[i] < plan.offsets[j] + values[j].bytes &&
                   plan.offsets[j] < plan.offsets[i] + values[i].bytes;
      EXPECT_FALSE(together && share && values[i].bytes && values[j].bytes) << i << ", " << j;
    }
  }
}

/// Returns the max number of bytes live in one wave, a lower bound of all plans.
static int64_t getMaxLive(const std::vector<Lifetime> &values) {
  int64_t most = 0;
  for (const Lifetime &at : values) {
    int64_t live = 0;
    for (const Lifetime &value : values)
      if (value.firstWave <= at.firstWave && at.firstWave <= value.lastWave)
        live += value.bytes;
    most = std::max(most, live);
  }
  return most;
}

class RandomValues : public testing::TestWithParam<int> {};

TEST_P(RandomValues, NoTwoLiveValuesShareBytes) {
  std::mt19937 random(GetParam());
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  std::vector<Lifetime> values(pick(0, 120));
  for (Lifetime &value : values) {
    value.bytes = pick(0, 9) ? pick(0, 5000) : pick(0, 2) * 256;
    value.alignment = pick(0, 9) ? 256 : 1024;
    value.firstWave = pick(0, 40);
    value.lastWave = value.firstWave + pick(0, 12);
  }
  MemoryPlan plan = planMemory(values, false);
  checkPlan(values, plan);
  EXPECT_GE(plan.boundBytes, getMaxLive(values));
  EXPECT_GE(plan.arenaBytes, plan.boundBytes);
  EXPECT_EQ(plan.offsets, planMemory(values, false).offsets);

  // Stops only where there is no smaller plan.
  for (int64_t below : {plan.arenaBytes, plan.arenaBytes + 1})
    EXPECT_EQ(planMemory(values, false, 0, below).arenaBytes < below, plan.arenaBytes < below);
  EXPECT_EQ(planMemory(values, false, 0, plan.arenaBytes + 1).offsets, plan.offsets);
  MemoryPlan smaller = planMemory(values, false, /*effort=*/5000);
  checkPlan(values, smaller);
  EXPECT_LE(smaller.arenaBytes, plan.arenaBytes);
  EXPECT_GE(smaller.boundBytes, plan.boundBytes);
  EXPECT_GE(smaller.arenaBytes, smaller.boundBytes);
  EXPECT_EQ(smaller.offsets, planMemory(values, false, 5000).offsets);

  MemoryPlan pinned = planMemory(values, true);
  EXPECT_EQ(pinned.arenaBytes, plan.pinnedBytes);
  std::vector<Lifetime> always = values;
  for (Lifetime &value : always)
    value.firstWave = 0, value.lastWave = 100;
  checkPlan(always, pinned);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomValues, testing::Range(0, 200));

TEST(Planner, ReusesBytesOfADeadValue) {
  MemoryPlan plan = planMemory({{1000, 256, 0, 1}, {900, 256, 2, 3}}, false);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(plan.arenaBytes, 1024);
  EXPECT_EQ(plan.pinnedBytes, 2048);
}

TEST(Planner, TheBoundIsReachedWhereNothingIsWasted) {
  MemoryPlan plan = planMemory({{1000, 256, 0, 1}, {900, 256, 1, 3}, {300, 256, 2, 3}}, false);
  EXPECT_EQ(plan.boundBytes, 2048);
  EXPECT_EQ(plan.arenaBytes, 2048);
}

TEST(Planner, IntervalsAreClosed) {
  MemoryPlan plan = planMemory({{1000, 256, 0, 1}, {900, 256, 1, 3}}, false);
  EXPECT_EQ(plan.arenaBytes, 2048);
}

TEST(Planner, TakesTheSmallestGapThatFits) {
  // In waves 5 to 9 the second value leaves a gap of 1024 bytes, the fourth one
  // of 512.
  std::vector<Lifetime> values = {{4096, 256, 0, 9}, {1024, 256, 0, 4}, {768, 256, 0, 9},
                                  {512, 256, 0, 4},  {320, 256, 0, 9},  {300, 256, 5, 9}};
  MemoryPlan plan = planMemory(values, false);
  checkPlan(values, plan);
  EXPECT_EQ(plan.offsets[5], plan.offsets[3]);
}

TEST(Planner, EffortFindsWhatGreedyPackingMisses) {
  std::vector<Lifetime> values = {
      {512, 256, 3, 5}, {768, 256, 2, 2}, {768, 256, 2, 4}, {512, 256, 3, 3}};
  EXPECT_EQ(planMemory(values, false).arenaBytes, 2048);
  MemoryPlan plan = planMemory(values, false, /*effort=*/1000);
  checkPlan(values, plan);
  EXPECT_EQ(plan.arenaBytes, 1792);
  EXPECT_EQ(plan.boundBytes, 1792);
}

TEST(Planner, RefusesWhatMakesNoSense) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(planMemory({{-1, 256, 0, 0}}, false), Error);
  EXPECT_THROW(planMemory({{1, 0, 0, 0}}, false), Error);
  EXPECT_THROW(planMemory({{1, 24, 0, 0}}, false), Error);
  EXPECT_THROW(planMemory({{1, 256, 1, 0}}, false), Error);
  EXPECT_THROW(planMemory({{most, 256, 0, 0}}, false), Error);
  EXPECT_THROW(planMemory({{most - 300, 256, 0, 0}, {most - 300, 256, 1, 1}}, false), Error);
  EXPECT_EQ(planMemory({}, false).arenaBytes, 0);
}

// Thousands of values are found in another way than few. Copies of all values in later waves don't
// change where the first ones lie.
TEST(PlanMemory, ManyValuesLieAsFewDo) {
  std::mt19937 random(1);
  std::vector<Lifetime> few, many;
  for (int number = 0; number < 5000; ++number) {
    int64_t bytes = 1 + int64_t(random() % 100'000), first = int64_t(random() % 2000);
    few.push_back({bytes, 256, first, first + int64_t(random() % 20)});
  }
  many = few;
  for (Lifetime value : few) {
    value.firstWave += 5000;
    value.lastWave += 5000;
    many.push_back(value);
  }
  MemoryPlan plan = planMemory(few, false), twice = planMemory(many, false);
  EXPECT_EQ(plan.arenaBytes, twice.arenaBytes);
  EXPECT_TRUE(std::equal(plan.offsets.begin(), plan.offsets.end(), twice.offsets.begin()));
  EXPECT_TRUE(std::equal(plan.offsets.begin(), plan.offsets.end(), twice.offsets.begin() + 5000));
}
