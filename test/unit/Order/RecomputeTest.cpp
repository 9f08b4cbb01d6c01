//===- RecomputeTest.cpp - Choice of values to recompute ------------------===//

#include "weir/Order/Recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace weir;

namespace {
/// Makes a problem of values of 100 to 400 bytes, each computed by one command from one to
/// three earlier ones; the last is a result. Some have another way to compute them.
struct RandomProblem {
  explicit RandomProblem(int seed) : random(seed) {
    int64_t count = pick(2, 40);
    problem.allocations.push_back({});
    problem.allocations.back().isGiven = true;
    for (int64_t number = 1; number <= count; ++number) {
      Computation command;
      for (int64_t reads = pick(1, 3); reads > 0; --reads)
        if (int64_t read = pick(std::max<int64_t>(0, number - 10), number - 1);
            std::find(command.reads.begin(), command.reads.end(), read) == command.reads.end())
          command.reads.push_back(read);
      command.writes.push_back(number);
      command.work = double(pick(1, 100));
      command.mayRepeat = pick(0, 3) > 0;
      Buffered buffer;
      buffer.bytes = 100 * pick(1, 4);
      if (const Buffered &read = problem.allocations[command.reads.front()];
          pick(0, 1) && read.bytes == buffer.bytes)
        command.inPlace.push_back({command.reads.front(), number});
      problem.commands.push_back(command);
      buffer.value = number;
      buffer.isResult = number == count;
      buffer.mayCopy = !buffer.isResult;
      problem.allocations.push_back(buffer);
      if (pick(0, 4) == 0) {
        command.mayRepeat = true;
        command.inPlace.clear();
        command.work = 1;
        problem.recipes.push_back(command);
      }
    }
  }

  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }

  std::mt19937 random;
  RecomputeProblem problem;
};

double getWork(const RecomputeProblem &problem) {
  double work = 0;
  for (const Computation &command : problem.commands)
    work += command.work;
  return work;
}

/// Returns the step that is chosen; nothing if there is none.
std::optional<Recomputation> choose(const RecomputeProblem &problem) {
  return chooseRecomputation(problem, getLiveProfile(problem));
}

/// Checks that every command reads its values, and that these exist.
void expectSameValues(const RecomputeProblem &before, const RecomputeProblem &after) {
  std::map<int64_t, std::vector<std::vector<int64_t>>> ways; // to make a value: of which
  auto getValues = [](const RecomputeProblem &of, const Computation &command) {
    std::vector<int64_t> values;
    for (int64_t read : command.reads)
      values.push_back(of.allocations[read].value);
    return values;
  };
  for (const auto *list : {&before.commands, &before.recipes})
    for (const Computation &command : *list)
      ways[before.allocations[command.writes.front()].value].push_back(getValues(before, command));
  std::vector<bool> isThere(after.allocations.size());
  for (size_t number = 0; number < isThere.size(); ++number)
    isThere[number] = after.allocations[number].isGiven;
  bool makesResult = false;
  for (const Computation &command : after.commands) {
    for (int64_t read : command.reads)
      EXPECT_TRUE(isThere[read]) << "reads " << read << " before it is made";
    int64_t made = command.writes.front();
    EXPECT_FALSE(isThere[made]) << "makes " << made << " twice";
    isThere[made] = true;
    const auto &known = ways[after.allocations[made].value];
    EXPECT_NE(std::find(known.begin(), known.end(), getValues(after, command)), known.end());
    makesResult |= after.allocations[made].isResult;
  }
  EXPECT_TRUE(makesResult);
}
} // namespace

TEST(Recompute, EachStepLowersThePeakAndKeepsTheValues) {
  int64_t steps = 0, lowered = 0;
  for (int seed = 0; seed < 300; ++seed) {
    RandomProblem random(seed);
    RecomputeProblem problem = random.problem;
    dropUnread(problem);
    LiveProfile profile = getLiveProfile(problem);
    int64_t first = profile.peak;
    while (std::optional<Recomputation> step = chooseRecomputation(problem, profile)) {
      StepEffect effect = getEffect(problem, profile, *step);
      double work = getWork(problem);
      recompute(problem, *step);
      LiveProfile next = getLiveProfile(problem);
      ASSERT_LT(std::pair(next.peak, next.atPeak), std::pair(profile.peak, profile.atPeak));
      EXPECT_EQ(std::pair(effect.peak, effect.atPeak), std::pair(next.peak, next.atPeak));
      EXPECT_EQ(effect.work, getWork(problem) - work);
      profile = next;
      ++steps;
    }
    expectSameValues(random.problem, problem);
    lowered += profile.peak < first;
  }
  EXPECT_GT(steps, 300);
  EXPECT_GT(lowered, 60);
}

TEST(Recompute, WhatMayNotBeRepeatedIsNot) {
  for (int seed = 0; seed < 100; ++seed) {
    RecomputeProblem problem = RandomProblem(seed).problem;
    problem.recipes.clear();
    for (Computation &command : problem.commands)
      command.mayRepeat = false;
    EXPECT_FALSE(choose(problem));
  }
}

// A donated argument is read by the first command and nobody after the second.
TEST(Recompute, DonatedArgumentsAreNotReadLater) {
  auto make = [](bool donated) {
    RecomputeProblem problem;
    for (int64_t number = 0; number < 6; ++number)
      problem.allocations.push_back({number == 0 ? 0 : 100, number, number == 0, number == 5,
                                     donated && number == 0, number > 0 && number < 5});
    for (int64_t number = 1; number < 6; ++number)
      problem.commands.push_back({{number - 1}, {number}, {}, 1, true});
    problem.commands.back().reads.push_back(1);
    return problem;
  };
  EXPECT_TRUE(choose(make(false)));
  EXPECT_FALSE(choose(make(true)));
}

TEST(Recompute, CommandsWithoutReadersGo) {
  // 1 is read at the end alone: to make it there is to move it.
  RecomputeProblem problem;
  for (int64_t number = 0; number < 5; ++number)
    problem.allocations.push_back(
        {number == 0 ? 0 : 100, number, number == 0, number == 4, false, number > 0 && number < 4});
  problem.commands = {{{0}, {1}, {}, 1, true},
                      {{0}, {2}, {}, 1, true},
                      {{2}, {3}, {}, 1, true},
                      {{1, 3}, {4}, {}, 1, true}};
  std::optional<Recomputation> step = choose(problem);
  ASSERT_TRUE(step);
  EXPECT_EQ(recompute(problem, *step), 1);
  ASSERT_EQ(problem.commands.size(), 4u);
  EXPECT_EQ(problem.commands[2].reads, (std::vector<int64_t>{0}));
  EXPECT_EQ(problem.commands[3].reads, (std::vector<int64_t>{5, 3}));
}

// The last command may write the result over a value or over a donated argument, which has that
// turn first, as in a plan: the value needs bytes of the arena.
TEST(Recompute, DonatedArgumentsComeFirst) {
  RecomputeProblem problem;
  problem.allocations = {{.isGiven = true, .isDonated = true},
                         {.bytes = 100, .value = 1, .mayCopy = true},
                         {.bytes = 100, .value = 2, .isResult = true}};
  problem.commands = {{.reads = {0}, .writes = {1}},
                      {.reads = {1, 0}, .writes = {2}, .inPlace = {{1, 2}, {0, 2}}}};
  LiveProfile profile = getLiveProfile(problem);
  EXPECT_EQ(profile.lives[0].taker, 2);
  EXPECT_EQ(profile.peak, 100);
  problem.commands[1].inPlace.pop_back();
  profile = getLiveProfile(problem);
  EXPECT_EQ(profile.lives[1].taker, 2);
  EXPECT_EQ(profile.peak, 0);
}
