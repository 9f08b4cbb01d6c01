//===- ScheduleTest.cpp - The order of commands ---------------------------===//

#include "weir/Order/Schedule.h"
#include "ProblemBuilder.h"

#include <gtest/gtest.h>

using namespace weir;

namespace {
/// A chain x -> a -> b -> y, followed by an update of the state s that needs a alone.
struct Step : ProblemBuilder {
  Step() {
    addCommand({x}, a);
    addCommand({a}, b);
    addCommand({b}, y);
    addCommand({a, s}, t);
  }

  std::vector<int64_t> getOrder() const {
    return chooseOrder(problem, findHazards(problem.accesses), /*forMemory=*/false).order;
  }

  int64_t x = addArgument("x", false, false), s = addArgument("s", true, false);
  int64_t y = addArgument("y", false, true), t = addArgument("t", false, true);
  int64_t a = addValue(), b = addValue();
};
} // namespace

TEST(Schedule, UpdatesOfTheHostsMemoryComeAsSoonAsTheyCan) {
  Step step;
  step.problem.allocations[step.s].isInHost = true;
  EXPECT_EQ(step.getOrder(), (std::vector<int64_t>{0, 3, 1, 2}));
}

TEST(Schedule, OthersKeepTheProgramsOrder) {
  EXPECT_EQ(Step().getOrder(), (std::vector<int64_t>{0, 1, 2, 3}));
}
