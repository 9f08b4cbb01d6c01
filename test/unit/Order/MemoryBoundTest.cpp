//===- MemoryBoundTest.cpp - Bytes that no order can go below -------------===//

#include "weir/Order/MemoryBound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <random>

using namespace weir;

namespace {
/// A few commands of one or two values each; the last makes a result of the others. Some values
/// have a recipe.
struct SmallProblem {
  explicit SmallProblem(int seed) : random(seed) {
    problem.allocations.push_back({.isGiven = true});
    int64_t count = pick(2, 6);
    for (int64_t number = 0; number < count; ++number) {
      Computation command = {.work = double(pick(1, 9)), .mayRepeat = pick(0, 4) > 0};
      for (int64_t left = pick(1, 3); left > 0; --left)
        if (int64_t read = pick(0, problem.allocations.size() - 1);
            std::find(command.reads.begin(), command.reads.end(), read) == command.reads.end())
          command.reads.push_back(read);
      bool isLast = number + 1 == count;
      for (int64_t left = isLast ? 1 : pick(1, 2); left > 0; --left) {
        int64_t write = problem.allocations.size();
        command.writes.push_back(write);
        problem.allocations.push_back({.bytes = isLast ? 0 : 100 * pick(1, 4),
                                       .value = write,
                                       .isResult = isLast,
                                       .mayCopy = !isLast});
      }
      if (!isLast && pick(0, 2) == 0) {
        Computation recipe = command; // of the same, or of what the command writes beside it
        recipe.writes.resize(1);
        recipe.work = double(pick(1, 9));
        recipe.mayRepeat = true;
        if (command.writes.size() > 1 && pick(0, 1))
          recipe.reads.push_back(command.writes.back());
        problem.recipes.push_back(recipe);
      }
      problem.commands.push_back(command);
    }
  }

  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }

  std::mt19937 random;
  RecomputeProblem problem;
};

int64_t getBytes(const RecomputeProblem &problem, uint64_t live) {
  int64_t bytes = 0;
  for (size_t number = 0; number < problem.allocations.size(); ++number)
    bytes += live >> number & 1 ? problem.allocations[number].bytes : 0;
  return bytes;
}

/// Returns the least work of all orders, with repetitions and recipes, that make the result and run
/// what may not repeat, with no more than `limit` bytes live; negative if there is none. Tries all.
double findLeastWork(const RecomputeProblem &problem, int64_t limit) {
  using State = std::pair<uint64_t, uint64_t>; // live values, commands that ran
  uint64_t needed = 0;                         // commands
  for (size_t number = 0; number < problem.commands.size(); ++number)
    if (const Computation &command = problem.commands[number];
        !command.mayRepeat || problem.allocations[command.writes.front()].isResult)
      needed |= uint64_t(1) << number;
  std::map<State, double> best;
  std::priority_queue<std::pair<double, State>, std::vector<std::pair<double, State>>,
                      std::greater<>>
      open;
  auto reach = [&](State state, double work) {
    auto [known, isNew] = best.try_emplace(state, work);
    if (!isNew && known->second <= work)
      return;
    known->second = work;
    open.push({work, state});
  };
  reach({1, 0}, 0);
  while (!open.empty()) {
    auto [work, state] = open.top();
    open.pop();
    auto [live, ran] = state;
    if (work > best[state])
      continue;
    if ((ran & needed) == needed)
      return work;
    for (size_t number = 1; number < problem.allocations.size(); ++number)
      if (live >> number & 1)
        reach({live & ~(uint64_t(1) << number), ran}, work);
    auto run = [&](const Computation &command, uint64_t bit) {
      uint64_t after = live;
      for (int64_t write : command.writes)
        after |= uint64_t(1) << write;
      bool mayRun = (bit && !(ran & bit)) || command.mayRepeat;
      for (int64_t read : command.reads)
        mayRun &= live >> read & 1;
      if (mayRun && getBytes(problem, after) <= limit)
        reach({after, ran | bit}, work + command.work);
    };
    for (size_t number = 0; number < problem.commands.size(); ++number)
      run(problem.commands[number], uint64_t(1) << number);
    for (const Computation &recipe : problem.recipes)
      run(recipe, 0);
  }
  return -1;
}
} // namespace

TEST(MemoryBound, NoOrderOfAllHasFewerBytes) {
  int64_t met = 0, tried = 0, withWork = 0, withLess = 0;
  for (int seed = 0; seed < 300; ++seed) {
    RecomputeProblem problem = SmallProblem(seed).problem;
    dropUnread(problem);
    double work = 0;
    for (const Computation &command : problem.commands)
      work += command.work;
    MemoryBound bound(problem, std::vector<bool>(problem.allocations.size()));
    for (int64_t limit = getBytes(problem, -1); limit >= 0; limit -= 100) {
      double least = findLeastWork(problem, limit);
      if (least < 0)
        break;
      ASSERT_LE(bound.get(least - work), limit) << "seed " << seed;
      met += bound.get(least - work) == limit;
      withWork += least > work && bound.get(least - work) < bound.get(0);
      withLess += least < work;
      ++tried;
    }
  }
  EXPECT_GT(met, tried / 10);
  EXPECT_GT(withWork, 5);
  EXPECT_GT(withLess, 5);
}

// t is needed by the first and the last of four commands in a chain.
TEST(MemoryBound, WorkBuysBytes) {
  RecomputeProblem problem;
  for (int64_t number = 0; number < 6; ++number)
    problem.allocations.push_back({.bytes = number == 0 || number == 5 ? 0 : 100,
                                   .value = number,
                                   .isGiven = number == 0,
                                   .isResult = number == 5,
                                   .mayCopy = number > 0 && number < 5});
  for (int64_t number = 1; number < 6; ++number)
    problem.commands.push_back(
        {.reads = {number - 1}, .writes = {number}, .work = 10, .mayRepeat = true});
  problem.commands.back().reads.push_back(1);
  std::vector<bool> none(6);
  EXPECT_EQ(MemoryBound(problem, none).get(0), 300);
  EXPECT_EQ(MemoryBound(problem, none).get(5), 250);
  EXPECT_EQ(MemoryBound(problem, none).get(10), 200);
  EXPECT_EQ(MemoryBound(problem, none).get(1000), 200);
  problem.commands.front().mayRepeat = false;
  EXPECT_EQ(MemoryBound(problem, none).get(1000), 300);
}

// The first command makes two values, which the last one needs again: one more run makes both.
TEST(MemoryBound, OneRunMakesAllItsValues) {
  RecomputeProblem problem;
  for (int64_t number = 0; number < 6; ++number)
    problem.allocations.push_back(
        {.bytes = number < 5 ? 100 : 0, .value = number, .isResult = number == 5, .mayCopy = true});
  problem.commands = {{.writes = {0, 1}, .work = 10, .mayRepeat = true},
                      {.reads = {0, 1}, .writes = {2}, .work = 10, .mayRepeat = true},
                      {.reads = {2}, .writes = {3}, .work = 10, .mayRepeat = true},
                      {.reads = {3}, .writes = {4}, .work = 10, .mayRepeat = true},
                      {.reads = {4, 0, 1}, .writes = {5}, .work = 10}};
  MemoryBound bound(problem, std::vector<bool>(6));
  EXPECT_EQ(bound.get(0), 400);
  EXPECT_EQ(bound.get(5), 300);
  EXPECT_EQ(bound.get(10), 300); // the last command reads three
}

// A value that may lie in the bytes of a result needs none of the arena, unless a donated argument
// is there.
TEST(MemoryBound, ResultsHoldValues) {
  RecomputeProblem problem;
  problem.allocations = {{.isGiven = true},
                         {.bytes = 100, .value = 1, .mayCopy = true},
                         {.bytes = 100, .value = 2, .isResult = true}};
  problem.commands = {{.reads = {0}, .writes = {1}, .work = 1, .mayRepeat = true},
                      {.reads = {1}, .writes = {2}, .inPlace = {{1, 2}}, .work = 1}};
  EXPECT_EQ(MemoryBound(problem, {false, false, false}).get(0), 0);
  EXPECT_EQ(MemoryBound(problem, {false, false, true}).get(0), 100);
}

TEST(MemoryBound, ValuesMayLieOverOperands) {
  RecomputeProblem problem;
  problem.allocations = {{.isGiven = true},
                         {.bytes = 100, .value = 1, .mayCopy = true},
                         {.bytes = 100, .value = 2, .mayCopy = true},
                         {.bytes = 100, .value = 3, .isResult = true}};
  problem.commands = {{.reads = {0}, .writes = {1}, .work = 1, .mayRepeat = true},
                      {.reads = {1}, .writes = {2}, .work = 1, .mayRepeat = true},
                      {.reads = {2}, .writes = {3}, .work = 1}};
  std::vector<bool> none(4);
  EXPECT_EQ(MemoryBound(problem, none).get(0), 200);
  problem.commands[1].inPlace = {{1, 2}};
  EXPECT_EQ(MemoryBound(problem, none).get(0), 100);
}
