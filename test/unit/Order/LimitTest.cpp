//===- LimitTest.cpp - Orders and repetitions that fit a limit ------------===//

#include "weir/Order/Limit.h"

#include "ProblemBuilder.h"

#include <gtest/gtest.h>

#include <random>

using namespace weir;

namespace {
constexpr ArenaSettings oneQueue;

std::optional<FittedOrder> fitArena(const OrderProblem &problem, bool mayMove, int64_t limit) {
  return ArenaFitter(problem, mayMove, oneQueue).fit(limit);
}

FittedOrder findSmallest(const OrderProblem &problem, bool mayMove) {
  return ArenaFitter(problem, mayMove, oneQueue).findSmallest();
}

std::vector<int64_t> getIds(const OrderProblem &problem) {
  std::vector<int64_t> ids;
  for (const OrderCommand &command : problem.commands)
    ids.push_back(command.id);
  return ids;
}

/// Nothing is written over what it is made of.
struct Problem : ProblemBuilder {
  Problem() {
    problem.isProved = [](int64_t, int64_t, int64_t) { return false; };
  }
};

/// t is made first, and read again by the last command: three values are live in between.
struct Idle : Problem {
  int64_t x = addArgument("x", false, false), t = addValue(), u = addValue(), v = addValue(),
          w = addValue(), y = addArgument("y", false, true);
  Idle() {
    addCommand({x}, t);
    addCommand({t}, u);
    addCommand({u}, v);
    addCommand({v}, w);
    addCommand({w, t}, y);
  }
};

/// Each value is made of up to three earlier ones, the last is a result; some have a recipe.
struct Random : Problem {
  explicit Random(int seed) : random(seed) {
    std::vector<int64_t> made = {addArgument("x", false, false)};
    int64_t count = pick(4, 30);
    for (int64_t number = 0; number <= count; ++number) {
      std::vector<int64_t> reads;
      for (int64_t left = pick(1, 3); left > 0; --left)
        if (int64_t read = made[pick(std::max<int64_t>(0, made.size() - 10), made.size() - 1)];
            std::find(reads.begin(), reads.end(), read) == reads.end())
          reads.push_back(read);
      made.push_back(number == count ? addArgument("y", false, true) : addValue(256 * pick(1, 4)));
      addCommand(reads, made.back());
      OrderCommand &command = problem.commands.back();
      command.work = double(pick(1, 100));
      command.mayRepeat = pick(0, 3) > 0;
      if (command.mayRepeat && pick(0, 4) == 0) {
        problem.recipes.push_back({command, problem.accesses.dispatches.back()});
        problem.recipes.back().command.id += 1000;
        problem.recipes.back().command.work = 1;
      }
    }
  }

  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }

  std::mt19937 random;
};

/// Checks that each command reads and writes the values that it did, and reads none too early.
void expectSameValues(const OrderProblem &before, const OrderProblem &after) {
  std::vector<bool> isThere(after.allocations.size());
  isThere[0] = true; // the argument
  bool makesResult = false;
  for (size_t number = 0; number < after.commands.size(); ++number) {
    const OrderCommand &command = after.commands[number];
    const OrderCommand &original = before.commands[command.id % 1000];
    for (const OperandAccess &access : after.accesses.dispatches[number]) {
      int64_t allocation = access.allocation;
      EXPECT_EQ(command.getOperand(access.operand).allocation, allocation);
      EXPECT_EQ(after.allocations[allocation].value,
                original.getOperand(access.operand).allocation);
      EXPECT_EQ(isThere[allocation], access.reads);
      isThere[allocation] = true;
      makesResult |= after.allocations[allocation].isResult;
    }
  }
  EXPECT_TRUE(makesResult);
}
} // namespace

TEST(Limit, RepeatsWhatIsIdleAtThePeak) {
  std::optional<FittedOrder> fitted = fitArena(Idle().problem, true, 512);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->ordered, 768);
  EXPECT_EQ(fitted->apart, 768);
  EXPECT_EQ(fitted->bytes, 512);
  EXPECT_EQ(fitted->repeated, 1);
  EXPECT_EQ(fitted->dropped, 0);
  EXPECT_EQ(fitted->work, 6.0 / 5);
  EXPECT_EQ(getIds(fitted->problem), (std::vector<int64_t>{0, 1, 2, 3, 0, 4}));
  EXPECT_EQ(fitted->problem.allocations.back().value, Idle().t);
  EXPECT_EQ(getArenaBytes(fitted->problem, oneQueue), 512);
}

TEST(Limit, WithRoomNothingIsRepeated) {
  std::optional<FittedOrder> fitted = fitArena(Idle().problem, true, 768);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->repeated, 0);
  EXPECT_EQ(getIds(fitted->problem), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

// Beside a large value, a step saves too little for an arena to be asked for, but for the last one.
TEST(Limit, TheLastStepCounts) {
  Problem large;
  int64_t x = large.addArgument("x", false, false), kept = large.addValue(102'400);
  int64_t t = large.addValue(), u = large.addValue(), v = large.addValue(), w = large.addValue();
  int64_t y = large.addArgument("y", false, true);
  large.addCommand({x}, kept);
  large.problem.commands.back().mayRepeat = false;
  large.addCommand({x}, t);
  large.addCommand({t}, u);
  large.addCommand({u}, v);
  large.addCommand({v}, w);
  large.addCommand({w, t, kept}, y);
  EXPECT_EQ(findSmallest(large.problem, true).bytes, 102'400 + 512);
  EXPECT_TRUE(fitArena(large.problem, true, 102'400 + 512));
  EXPECT_FALSE(fitArena(large.problem, true, 102'400 + 511));
}

TEST(Limit, NamesTheSmallestArenaWhereNothingFits) {
  EXPECT_FALSE(fitArena(Idle().problem, true, 511));
  FittedOrder best = findSmallest(Idle().problem, true);
  EXPECT_EQ(best.bytes, 512);
  ASSERT_EQ(best.largest.size(), 2u);
  EXPECT_EQ(best.largest.front().value, Idle().t);
}

TEST(Limit, LeavesCommandsThatMayNotRepeatOrMove) {
  Idle idle;
  EXPECT_FALSE(fitArena(idle.problem, false, 512));
  EXPECT_EQ(findSmallest(idle.problem, false).bytes, 768);
  idle.problem.commands[0].mayRepeat = false;
  EXPECT_FALSE(fitArena(idle.problem, true, 512));
}

TEST(Limit, PrefersACheapRecipe) {
  Idle idle;
  idle.problem.commands[0].work = 100;
  idle.problem.recipes.push_back({idle.problem.commands[0], idle.problem.accesses.dispatches[0]});
  idle.problem.recipes.back().command.id = 5;
  idle.problem.recipes.back().command.work = 1;
  EXPECT_EQ(getIds(fitArena(idle.problem, true, 512)->problem),
            (std::vector<int64_t>{0, 1, 2, 3, 5, 4}));
  idle.problem.recipes.back().command.work = 200;
  EXPECT_EQ(getIds(fitArena(idle.problem, true, 512)->problem),
            (std::vector<int64_t>{0, 1, 2, 3, 0, 4}));
}

TEST(Limit, PutsCommandsInWavesOfTheirOwn) {
  Problem two; // computations that share a wave without need
  int64_t x = two.addArgument("x", false, false), a = two.addValue(), b = two.addValue(),
          y = two.addArgument("y", false, true), z = two.addArgument("z", false, true);
  two.addCommand({x}, a);
  two.addCommand({a}, y);
  two.addCommand({x}, b);
  two.addCommand({b}, z);
  std::optional<FittedOrder> fitted = fitArena(two.problem, true, 256);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->ordered, 512);
  EXPECT_EQ(fitted->apart, 256);
  EXPECT_EQ(fitted->repeated, 0);
  EXPECT_EQ(fitted->problem.commands.back().wave, 3);
}

TEST(Limit, AnswersHoldTheSameValues) {
  int64_t repeated = 0, dropped = 0;
  for (int seed = 0; seed < 200; ++seed) {
    Random random(seed);
    int64_t best = findSmallest(random.problem, true).bytes;
    std::optional<FittedOrder> fitted = fitArena(random.problem, true, best);
    ASSERT_TRUE(fitted);
    EXPECT_FALSE(fitArena(random.problem, true, best - 1));
    EXPECT_LE(getArenaBytes(fitted->problem, oneQueue), best);
    expectSameValues(random.problem, fitted->problem);
    repeated += fitted->repeated;
    dropped += fitted->dropped;
  }
  EXPECT_GT(repeated, 50);
  EXPECT_GT(dropped, 10);
}

TEST(Limit, TheKneeSavesMoreThanItCosts) {
  Idle idle;
  FittedOrder fitted = ArenaFitter(idle.problem, true, oneQueue).fitKnee();
  EXPECT_EQ(fitted.bytes, 512); // a third less, for a fifth more work
  EXPECT_EQ(getIds(fitted.problem), (std::vector<int64_t>{0, 1, 2, 3, 0, 4}));
  idle.problem.commands[0].work = 2;
  EXPECT_EQ(ArenaFitter(idle.problem, true, oneQueue).fitKnee().repeated, 0);
  idle.problem.commands[0].work = 1;
  EXPECT_EQ(ArenaFitter(idle.problem, false, oneQueue).fitKnee().repeated, 0);
}

TEST(Limit, CurvesAreBoundsAndChoices) {
  int64_t knees = 0, met = 0, count = 0;
  for (int seed = 0; seed < 100; ++seed) {
    Random random(seed);
    ArenaFitter fitter(random.problem, true, oneQueue);
    std::vector<CurvePoint> curve = fitter.getCurve(/*mayReorder=*/true);
    EXPECT_EQ(curve.front().work, 1);
    EXPECT_EQ(curve.back().bytes, fitter.findSmallest().bytes);
    for (size_t number = 0; number < curve.size(); ++number) {
      const CurvePoint &point = curve[number];
      EXPECT_LE(point.bound, point.live);
      EXPECT_LE(point.live, point.bytes);
      EXPECT_TRUE(number == 0 || point.bytes < curve[number - 1].bytes);
      std::optional<FittedOrder> fitted = fitter.fit(point.bytes);
      ASSERT_TRUE(fitted);
      EXPECT_LE(fitted->bytes, point.bytes);
      EXPECT_TRUE(!point.isKnee || fitter.fitKnee().bytes == point.bytes);
      knees += point.isKnee;
      met += point.bound == point.bytes;
      ++count;
    }
  }
  EXPECT_EQ(knees, 100);
  EXPECT_GT(met, count / 10);
}
