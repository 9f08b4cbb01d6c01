//===- SubmissionsTest.cpp - Cutting a command list for several queues ----===//

#include "lib/Runtime/Submissions.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>
#include <tuple>

using namespace weir;
using namespace weir::runtime;

using Kind = Command::Kind;

static Command make(Kind kind, int64_t queue, int64_t signal = 0) {
  Command command;
  command.kind = kind;
  command.queue = queue;
  command.signal = signal;
  return command;
}

TEST(Submissions, OneQueueIsOneSubmission) {
  Plan plan;
  plan.commands = {make(Kind::Dispatch, 0), make(Kind::Barrier, 0), make(Kind::Dispatch, 0)};
  std::vector<Submission> all = splitSubmissions(plan, 4);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].commands, (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(all[0].waits.empty());
  EXPECT_EQ(all[0].signals, 0u);
}

TEST(Submissions, TooFewQueuesAreOne) {
  Plan plan;
  plan.commands = {make(Kind::Dispatch, 1), make(Kind::Signal, 1, 7), make(Kind::Wait, 0, 7),
                   make(Kind::Dispatch, 0)};
  std::vector<Submission> all = splitSubmissions(plan, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].queue, 0);
  EXPECT_EQ(all[0].commands, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(Submissions, CutsAtSignalsAndWaits) {
  Plan plan;
  plan.commands = {make(Kind::Dispatch, 1), make(Kind::Signal, 1, 7), make(Kind::Dispatch, 1),
                   make(Kind::Dispatch, 0), make(Kind::Wait, 0, 7),   make(Kind::Dispatch, 0)};
  std::vector<Submission> all = splitSubmissions(plan, 2);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].queue, 0); // what queue 1 waits for
  EXPECT_EQ(all[0].signals, 1u);
  EXPECT_TRUE(all[0].commands.empty());
  EXPECT_EQ(all[1].queue, 1);
  EXPECT_EQ(all[1].waits, (std::vector<TimelinePoint>{{0, 1}}));
  EXPECT_EQ(all[1].commands, (std::vector<size_t>{0}));
  EXPECT_EQ(all[1].signals, 1u);
  EXPECT_EQ(all[2].commands, (std::vector<size_t>{3}));
  EXPECT_EQ(all[3].queue, 1);
  EXPECT_TRUE(all[3].waits.empty()); // its queue has waited already
  EXPECT_EQ(all[3].signals, 2u);
  EXPECT_EQ(all[4].waits, (std::vector<TimelinePoint>{{1, 1}}));
  EXPECT_EQ(all[4].commands, (std::vector<size_t>{5}));
  EXPECT_EQ(all[5].queue, 0); // what waits for all
  EXPECT_EQ(all[5].waits, (std::vector<TimelinePoint>{{1, 2}}));
}

/// Closes `before` transitively.
static void close(std::vector<std::vector<bool>> &before) {
  size_t n = before.size();
  for (size_t middle = 0; middle < n; ++middle)
    for (size_t i = 0; i < n; ++i)
      if (before[i][middle])
        for (size_t j = 0; j < n; ++j)
          if (before[middle][j])
            before[i][j] = true;
}

/// Checks that submissions order exactly what the plan orders.
TEST(Submissions, RandomPlansKeepTheirOrder) {
  std::mt19937 random(1);
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int round = 0; round < 300; ++round) {
    Plan plan;
    std::vector<Command> signals;
    for (int64_t i = pick(1, 25); i > 0; --i) {
      int64_t queue = pick(0, 3), kind = pick(0, 9);
      if (kind <= 1) {
        signals.push_back(make(Kind::Signal, queue, int64_t(signals.size())));
        plan.commands.push_back(signals.back());
      } else if (kind <= 4 && !signals.empty()) {
        const Command &signal = signals[pick(0, signals.size() - 1)];
        if (signal.queue != queue)
          plan.commands.push_back(make(Kind::Wait, queue, signal.signal));
      } else {
        plan.commands.push_back(make(kind == 5 ? Kind::Barrier : Kind::Dispatch, queue));
      }
    }
    plan.commands.push_back(make(Kind::Dispatch, 3));
    size_t n = plan.commands.size();

    std::vector<std::vector<bool>> wanted(n, std::vector<bool>(n));
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i + 1; j < n; ++j) {
        const Command &from = plan.commands[i], &to = plan.commands[j];
        bool orders = from.kind == Kind::Barrier || from.kind == Kind::Wait ||
                      to.kind == Kind::Barrier || to.kind == Kind::Signal;
        wanted[i][j] =
            (from.queue == to.queue && orders) ||
            (from.kind == Kind::Signal && to.kind == Kind::Wait && from.signal == to.signal);
      }
    close(wanted);

    // The same of what is submitted: a begin and an end for each submission.
    std::vector<Submission> all = splitSubmissions(plan, 4);
    size_t m = all.size();
    std::vector<std::vector<bool>> got(n + 2 * m, std::vector<bool>(n + 2 * m));
    std::vector<size_t> where(n, m), position(n);
    for (size_t s = 0; s < m; ++s)
      for (size_t i = 0; i < all[s].commands.size(); ++i) {
        where[all[s].commands[i]] = s;
        position[all[s].commands[i]] = i;
      }
    auto begin = [&](size_t s) { return n + 2 * s; };
    auto end = [&](size_t s) { return n + 2 * s + 1; };
    for (size_t s = 0; s < m; ++s) {
      for (size_t t = 0; t <= s; ++t) {
        if (all[t].queue == all[s].queue) { // signals cover all before, waits all behind
          got[begin(t)][end(s)] = true;
          if (t < s)
            got[begin(t)][begin(s)] = true;
        }
        for (const TimelinePoint &wait : all[s].waits)
          if (t < s && all[t].queue == wait.queue && all[t].signals == wait.value)
            got[end(t)][begin(s)] = true;
      }
      for (const TimelinePoint &wait : all[s].waits) // what it waits for was submitted
        EXPECT_TRUE(std::any_of(all.begin(), all.begin() + s, [&](const Submission &other) {
          return other.queue == wait.queue && other.signals == wait.value;
        }));
    }
    for (size_t i = 0; i < n; ++i) {
      if (where[i] == m)
        continue;
      for (size_t s = 0; s < m; ++s)
        if (all[s].queue == plan.commands[i].queue) {
          if (s <= where[i])
            got[begin(s)][i] = true;
          if (s >= where[i] && all[s].signals)
            got[i][end(s)] = true;
        }
      for (size_t j = 0; j < n; ++j)
        if (where[j] != m && plan.commands[i].queue == plan.commands[j].queue &&
            std::tie(where[i], position[i]) < std::tie(where[j], position[j]) &&
            (plan.commands[i].kind == Kind::Barrier || plan.commands[j].kind == Kind::Barrier))
          got[i][j] = true;
    }
    close(got);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (plan.commands[i].kind == Kind::Dispatch && plan.commands[j].kind == Kind::Dispatch) {
          EXPECT_EQ(got[i][j], wanted[i][j]) << round << ": " << i << " before " << j;
        }
    // The last comes after all, so that runs follow each other.
    EXPECT_EQ(all.back().queue, 0);
    for (size_t i = 0; i < n; ++i)
      if (plan.commands[i].kind == Kind::Dispatch && plan.commands[i].queue != 0) {
        EXPECT_TRUE(got[begin(0)][i] && got[i][begin(m - 1)]) << i;
      }
  }
}
