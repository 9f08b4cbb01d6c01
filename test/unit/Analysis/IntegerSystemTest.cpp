//===- IntegerSystemTest.cpp - Whether constraints have an integer point --===//
//
// The oracle tries every point.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/IntegerSystem.h"

#include "gtest/gtest.h"

#include <functional>
#include <limits>
#include <random>

using namespace weir;

using Answer = IntegerSystem::Answer;
using Terms = llvm::SmallVector<LinearSum::Term, 4>;

static Answer solve(const IntegerSystem &system, int64_t steps = 4000) {
  return system.findPoint(steps);
}

TEST(LinearSum, Adds) {
  LinearSum sum{{{1, 4}, {3, -2}}, 5};
  EXPECT_TRUE(sum.add({{{0, 1}, {3, 1}}, 7}, 2));
  EXPECT_EQ(sum.terms, (Terms{{0, 2}, {1, 4}}));
  EXPECT_EQ(sum.constant, 19);
  EXPECT_FALSE(sum.add({{}, std::numeric_limits<int64_t>::max()}, 2));
  EXPECT_FALSE(sum.add({{{1, std::numeric_limits<int64_t>::max()}}, 0}, 2));
}

/// 256 * group + 4 * lane, which needs no search.
TEST(IntegerSystem, DecidesDigitsAtOnce) {
  auto ask = [](int64_t least, int64_t most, int64_t leastLane) {
    IntegerSystem system;
    unsigned group = system.addVariable({{}, {}}), lane = system.addVariable({leastLane, 63});
    system.require({{{group, 256}, {lane, 4}}, 0}, {least, most});
    int64_t steps = 1;
    return system.findPoint(steps);
  };
  EXPECT_EQ(ask(1, 3, 0), Answer::None);     // no multiple of 4
  EXPECT_EQ(ask(-3, 3, 1), Answer::None);    // lane is not 0
  EXPECT_EQ(ask(253, 255, 0), Answer::None); // beyond the last lane
  EXPECT_EQ(ask(252, 255, 63), Answer::Found);
}

/// Two rows that narrow each other by one at a time, without an end.
TEST(IntegerSystem, MergesEqualRows) {
  IntegerSystem system;
  unsigned x = system.addVariable({0, {}}), y = system.addVariable({0, {}});
  system.require({{{x, 1}, {y, -1}}, 0}, {1, {}});
  system.require({{{x, -4}, {y, 4}}, 0}, {-3, {}});
  EXPECT_EQ(solve(system), Answer::None);
}

/// A tree's load of [t + d] and its store to [t + x]: no range has an end, and t + x < d.
TEST(IntegerSystem, CombinesEqualities) {
  IntegerSystem system;
  unsigned t = system.addVariable({0, {}}), d = system.addVariable({0, {}}),
           x = system.addVariable({1, {}});
  system.require({{{d, -1}, {x, 1}}, 0}, {0, 0});
  system.require({{{t, -1}, {d, 1}, {x, -1}}, -1}, {0, {}});
  EXPECT_EQ(solve(system), Answer::None);
}

TEST(IntegerSystem, GivesUpInTime) {
  // Sums of large numbers that have nothing in common: no solution is easy to find.
  IntegerSystem system;
  LinearSum sum;
  for (int64_t factor : {1000003, 1000033, 1000037, 1000039, 1000081})
    EXPECT_TRUE(sum.add(LinearSum::ofVariable(system.addVariable({0, 1000})), factor));
  system.require(sum, {777777777, 777777777});
  int64_t steps = 100;
  EXPECT_EQ(system.findPoint(steps), Answer::Unknown);
  EXPECT_GT(steps, -100);
}

TEST(IntegerSystem, RefusesLargeNumbers) {
  constexpr int64_t huge = std::numeric_limits<int64_t>::max();
  IntegerSystem system;
  unsigned x = system.addVariable({-huge, huge});
  system.require({{{x, huge}}, huge}, {-huge, 0});
  EXPECT_EQ(solve(system), Answer::Unknown);
}

TEST(IntegerSystem, KeysAreEqualForEqualSystems) {
  auto make = [](int64_t factor, int64_t upper) {
    IntegerSystem system;
    unsigned x = system.addVariable({0, upper}), y = system.addVariable({0, 7});
    system.require({{{x, factor}, {y, 1}}, 2}, {0, {}});
    return system.getKey();
  };
  EXPECT_EQ(make(8, 3), make(8, 3));
  EXPECT_NE(make(8, 3), make(4, 3));
  EXPECT_NE(make(8, 3), make(8, 4));
}

TEST(IntegerSystem, AgreesWithEnumeration) {
  std::mt19937 random(1);
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  int64_t counts[3] = {};
  for (unsigned round = 0; round < 20000; ++round) {
    IntegerSystem system;
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (int64_t count = pick(1, 4); count > 0; --count) {
      int64_t lower = pick(-3, 3);
      ranges.push_back({lower, lower + pick(0, 6)});
      system.addVariable({ranges.back().first, ranges.back().second});
    }
    std::vector<std::pair<LinearSum, Interval>> rows;
    for (int64_t count = pick(1, 4); count > 0; --count) {
      LinearSum sum{{}, pick(-10, 10)};
      for (unsigned variable = 0; variable < ranges.size(); ++variable)
        if (int64_t factor = pick(-12, 12); factor && pick(0, 3))
          sum.terms.push_back({variable, factor});
      Interval range{pick(-20, 20), {}};
      if (pick(0, 1))
        range.upper = *range.lower + pick(0, 4);
      system.require(sum, range);
      rows.push_back({sum, range});
    }
    std::vector<int64_t> point;
    std::function<bool()> exists = [&] {
      if (point.size() < ranges.size()) {
        auto [lower, upper] = ranges[point.size()];
        for (int64_t value = lower; value <= upper; ++value) {
          point.push_back(value);
          bool found = exists();
          point.pop_back();
          if (found)
            return true;
        }
        return false;
      }
      for (const auto &[sum, range] : rows) {
        int64_t value = sum.constant;
        for (LinearSum::Term term : sum.terms)
          value += term.factor * point[term.variable];
        if (value < *range.lower || (range.upper && value > *range.upper))
          return false;
      }
      return true;
    };
    Answer answer = solve(system);
    ++counts[size_t(answer)];
    EXPECT_EQ(answer, exists() ? Answer::Found : Answer::None) << "round " << round;
  }
  EXPECT_GT(counts[size_t(Answer::None)], 1000);
  EXPECT_GT(counts[size_t(Answer::Found)], 1000);
}
