//===- HappensBeforeTest.cpp - Vector clocks against a closure ------------===//
//
// Random command lists for up to four queues. The oracle draws the edges that
// barriers, signals and waits stand for and closes them transitively.
//
//===----------------------------------------------------------------------===//

#include "weir/Order/HappensBefore.h"
#include "weir/Order/Hazards.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace weir;

using Kind = QueueCommand::Kind;
using Matrix = std::vector<std::vector<bool>>;

static int64_t pick(std::mt19937 &random, int64_t from, int64_t to) {
  return std::uniform_int_distribution<int64_t>(from, to)(random);
}

static std::vector<QueueCommand> makeRandom(std::mt19937 &random) {
  std::vector<QueueCommand> commands, signals;
  int64_t queues = pick(random, 1, 4), count = pick(random, 1, 30);
  for (int64_t i = 0; i < count; ++i) {
    QueueCommand command = {Kind::Dispatch, pick(random, 0, queues - 1), 0};
    int64_t kind = pick(random, 0, 9);
    if (kind == 0) {
      command.kind = Kind::Barrier;
    } else if (kind <= 2) {
      command.kind = Kind::Signal;
      command.point = signals.size();
      signals.push_back(command);
    } else if (kind <= 5 && !signals.empty()) {
      command.kind = Kind::Wait;
      command.point = pick(random, 0, signals.size() - 1);
      if (signals[command.point].queue == command.queue)
        continue;
    }
    commands.push_back(command);
  }
  return commands;
}

/// By command: the commands that have ended when it begins.
static Matrix close(const std::vector<QueueCommand> &commands) {
  size_t n = commands.size();
  Matrix before(n, std::vector<bool>(n));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      const QueueCommand &from = commands[i], &to = commands[j];
      bool sameQueue = from.queue == to.queue;
      if (sameQueue && (from.kind == Kind::Barrier || from.kind == Kind::Wait ||
                        to.kind == Kind::Barrier || to.kind == Kind::Signal))
        before[i][j] = true;
      if (from.kind == Kind::Signal && to.kind == Kind::Wait && from.point == to.point)
        before[i][j] = true;
    }
  // A wait itself holds up what comes later; nothing earlier holds up a wait
  // but its signal.
  for (size_t middle = 0; middle < n; ++middle)
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (before[i][middle] && before[middle][j])
          before[i][j] = true;
  return before;
}

class RandomQueues : public testing::TestWithParam<int> {};

TEST_P(RandomQueues, ClocksAgreeWithTheClosure) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 200; ++round) {
    std::vector<QueueCommand> commands = makeRandom(random);
    HappensBefore happensBefore(commands);
    Matrix before = close(commands);
    for (size_t i = 0; i < commands.size(); ++i)
      for (size_t j = 0; j < commands.size(); ++j)
        if (commands[i].kind == Kind::Dispatch && commands[j].kind == Kind::Dispatch)
          EXPECT_EQ(happensBefore(i, j), before[i][j]) << i << " before " << j;
  }
}

TEST_P(RandomQueues, VisibleIsWhatABarrierOrSignalBetweenShows) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 200; ++round) {
    std::vector<QueueCommand> commands = makeRandom(random);
    HappensBefore happensBefore(commands);
    Matrix before = close(commands);
    std::vector<bool> shows(commands.size());
    for (size_t i = 0; i < commands.size(); ++i)
      shows[i] = pick(random, 0, 1);
    for (size_t i = 0; i < commands.size(); ++i)
      for (size_t j = i + 1; j < commands.size(); ++j) {
        if (commands[i].kind != Kind::Dispatch || commands[j].kind != Kind::Dispatch)
          continue;
        bool expected = false;
        for (size_t x = i + 1; x < j; ++x)
          if (commands[x].kind == Kind::Barrier || commands[x].kind == Kind::Signal)
            expected |= shows[x] && before[i][x] && before[x][j];
        EXPECT_EQ(happensBefore.makesVisible(i, j, [&](int64_t x) { return shows[x]; }), expected)
            << i << " to " << j;
      }
  }
}

/// Checks that the planned barriers order every hazard, and that all are needed.
TEST_P(RandomQueues, PlannedOrderCoversRandomHazards) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 200; ++round) {
    int64_t count = pick(random, 1, 30), queueCount = pick(random, 1, 4);
    std::vector<int64_t> queues;
    std::vector<Hazard> hazards;
    for (int64_t to = 0; to < count; ++to) {
      queues.push_back(pick(random, 0, queueCount - 1));
      for (int64_t from = 0; from < to; ++from)
        if (pick(random, 0, 5) == 0)
          hazards.push_back({HazardKind::RAW, from, 0, to, 0});
    }
    PlannedOrder order = planOrder(hazards, queues);
    auto build = [&](int64_t withoutBarrier, std::vector<int64_t> &at) {
      std::vector<QueueCommand> commands;
      for (int64_t dispatch = 0; dispatch < count; ++dispatch) {
        for (const PlannedWait &wait : order.waits)
          if (wait.before == dispatch)
            commands.push_back({Kind::Wait, queues[dispatch], wait.signal});
        for (int64_t index = 0; index < int64_t(order.barriers.size()); ++index)
          if (order.barriers[index].before == dispatch && index != withoutBarrier)
            commands.push_back({Kind::Barrier, queues[dispatch], 0});
        at.push_back(commands.size());
        commands.push_back({Kind::Dispatch, queues[dispatch], 0});
        for (int64_t index = 0; index < int64_t(order.signals.size()); ++index)
          if (order.signals[index].after == dispatch)
            commands.push_back({Kind::Signal, queues[dispatch], index});
      }
      return commands;
    };
    auto isOrdered = [&](int64_t withoutBarrier) {
      std::vector<int64_t> at;
      HappensBefore happensBefore(build(withoutBarrier, at));
      return std::all_of(hazards.begin(), hazards.end(), [&](const Hazard &hazard) {
        return happensBefore(at[hazard.from], at[hazard.to]);
      });
    };
    EXPECT_TRUE(isOrdered(-1));
    for (size_t i = 0; i < order.barriers.size(); ++i)
      EXPECT_FALSE(isOrdered(i)) << "barrier " << i;
    size_t served = 0;
    for (const PlannedBarrier &barrier : order.barriers)
      served += barrier.hazards.size();
    for (const PlannedSignal &signal : order.signals)
      served += signal.hazards.size();
    EXPECT_EQ(served, hazards.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomQueues, testing::Range(0, 5));
