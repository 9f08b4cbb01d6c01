//===- LoopWalkTest.cpp - Trips, by the dispatches that run ---------------===//

#include "tools/weir/LoopWalk.h"

#include "weir/Artifact/Error.h"

#include "gtest/gtest.h"

using namespace weir;
using namespace weir::tool;

/// Returns a plan of dispatches and the given loops, by the commands that they have.
static Plan makePlan(size_t dispatches, const std::vector<std::pair<int64_t, int64_t>> &loops) {
  Plan plan;
  plan.entry = "f";
  plan.commands.resize(dispatches);
  for (auto [first, end] : loops) {
    plan.loops.emplace_back();
    plan.loops.back().first = first;
    plan.loops.back().end = end;
  }
  return plan;
}

/// Returns what happens where dispatches run in this order: "0+" a trip of loop 0 begins with what
/// was before the loop, "0~" with what the trip before left, "0." it ends, "0:" without a trip.
static std::string follow(const Plan &plan, const std::vector<size_t> &order) {
  std::string text;
  LoopWalk walk(plan);
  auto note = [&](size_t loop, bool isNext, const char *next, const char *init) {
    text += " " + std::to_string(loop) + (isNext ? next : init);
  };
  walk.onTrip = [&](size_t loop, int64_t CarriedValue::*from) {
    note(loop, from == &CarriedValue::next, "~", "+");
  };
  walk.onEnd = [&](size_t loop, int64_t CarriedValue::*from) {
    note(loop, from == &CarriedValue::next, ".", ":");
  };
  for (size_t dispatch : order) {
    walk.advance(dispatch);
    text += " d" + std::to_string(dispatch) + walk.describeTrips();
  }
  walk.finish();
  return text;
}

TEST(LoopWalk, one_loop) {
  Plan plan = makePlan(4, {{1, 3}});
  EXPECT_EQ(follow(plan, {0, 1, 2, 1, 2, 3}),
            " d0 0+ d1 in trip 1 d2 in trip 1 0~ d1 in trip 2 d2 in trip 2 0. d3");
  EXPECT_EQ(follow(plan, {0, 3}), " d0 0: d3");
}

TEST(LoopWalk, a_body_of_one_dispatch) {
  EXPECT_EQ(follow(makePlan(1, {{0, 1}}), {0, 0, 0}),
            " 0+ d0 in trip 1 0~ d0 in trip 2 0~ d0 in trip 3 0.");
}

TEST(LoopWalk, a_loop_in_a_loop) {
  Plan plan = makePlan(5, {{1, 4}, {2, 3}});
  EXPECT_EQ(follow(plan, {0, 1, 2, 2, 3, 1, 3, 4}),
            " d0 0+ d1 in trip 1 of loop 0 1+ d2 in trip 1 of loop 0, trip 1 of loop 1 1~ d2 in "
            "trip 1 of loop 0, trip 2 of loop 1 1. d3 in trip 1 of loop 0 0~ d1 in trip 2 of loop "
            "0 1: d3 in trip 2 of loop 0 0. d4");
}

TEST(LoopWalk, edges_at_one_place) {
  // Two loops end together, and a third one begins there.
  Plan plan = makePlan(4, {{0, 3}, {1, 3}, {3, 4}});
  EXPECT_EQ(follow(plan, {0, 1, 2, 1, 2, 0, 3}),
            " 0+ d0 in trip 1 of loop 0 1+ d1 in trip 1 of loop 0, trip 1 of loop 1 d2 in trip 1 "
            "of loop 0, trip 1 of loop 1 1~ d1 in trip 1 of loop 0, trip 2 of loop 1 d2 in trip 1 "
            "of loop 0, trip 2 of loop 1 1. 0~ d0 in trip 2 of loop 0 1: 0. 2+ d3 in trip 1 of "
            "loop 2 2.");
  EXPECT_EQ(follow(plan, {3, 3}), " 0: 2+ d3 in trip 1 of loop 2 2~ d3 in trip 2 of loop 2 2.");
  EXPECT_EQ(follow(plan, {}), " 0: 2:");
}

TEST(LoopWalk, a_dispatch_of_no_loop_runs_once) {
  Plan plan = makePlan(2, {{1, 2}});
  LoopWalk walk(plan);
  walk.advance(0);
  walk.advance(1);
  EXPECT_THROW(walk.advance(0), Error);
}
