//===- PlaceTest.cpp - Orders, queues, permissions and places -------------===//
//
// Problems of a few commands, written by hand.
//
//===----------------------------------------------------------------------===//

#include "weir/Order/Place.h"
#include "weir/Order/Donation.h"
#include "weir/Order/Schedule.h"

#include "ProblemBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace weir;

namespace {
using Kind = OrderAllocation::Kind;

/// x -> a -> b -> y, all of one size.
struct Line : ProblemBuilder {
  int64_t x = addArgument("x", true, false), a = addValue(), b = addValue(),
          y = addArgument("x", false, true);
  Line() {
    addCommand({x}, a);
    addCommand({a}, b);
    addCommand({b}, y);
  }
};

std::optional<Refusal> judgeFirst(const OrderProblem &problem) {
  return judgeDonations(problem).front().refusal;
}
} // namespace

TEST(Donation, SaysWhy) {
  EXPECT_EQ(judgeFirst(Line().problem), std::nullopt);
  auto refuse = [](auto edit) {
    Line line;
    edit(line);
    return judgeFirst(line.problem);
  };
  EXPECT_EQ(refuse([](Line &l) { l.problem.allocations[l.a].space = 1; }), Refusal::MemorySpace);
  EXPECT_EQ(refuse([](Line &l) { l.problem.allocations[l.a].bytes = 512; }), Refusal::Size);
  EXPECT_EQ(refuse([](Line &l) { l.problem.allocations[l.a].type = 1; }), Refusal::Layout);
  EXPECT_EQ(refuse([](Line &l) { l.problem.allocations[l.a].alignment = 512; }),
            Refusal::Alignment);
  EXPECT_EQ(refuse([](Line &l) { l.problem.allocations[l.x].isDonated = false; }),
            Refusal::NotOwned);
  EXPECT_EQ(refuse([](Line &l) { l.problem.allocations[l.x].kind = Kind::Global; }),
            Refusal::NotOwned);
  EXPECT_EQ(refuse([](Line &l) { l.problem.allocations[l.x].isLent = true; }),
            Refusal::EscapesTwice);
  EXPECT_EQ(refuse([](Line &l) { l.problem.allocations[l.x].mayBeShared = true; }),
            Refusal::ArgumentAlias);
  EXPECT_EQ(refuse([](Line &l) { l.problem.commands[0].operands[0].isWhole = false; }),
            Refusal::ViewOfArgument);
  EXPECT_EQ(refuse([](Line &l) { l.problem.commands[0].operands[1].isWhole = false; }),
            Refusal::Layout);
  EXPECT_EQ(refuse([](Line &l) { l.addCommand({l.x}, l.b); }), Refusal::LiveReader);
  EXPECT_EQ(
      refuse([](Line &l) { l.problem.isProved = [](int64_t, int64_t, int64_t) { return false; }; }),
      Refusal::AccessMapUnproven);
}

TEST(Donation, NamesTheCommandThatStillReads) {
  Line line;
  line.addCommand({line.x}, line.b);
  DonationPair pair = judgeDonations(line.problem).front();
  EXPECT_EQ(pair.refusal, Refusal::LiveReader);
  EXPECT_EQ(pair.witness, 3);
  line.problem.commands.pop_back();
  line.problem.accesses.dispatches.pop_back();
  line.problem.commands[1].queue = 1;
  std::vector<DonationPair> pairs = judgeDonations(line.problem);
  EXPECT_EQ(pairs[1].refusal, Refusal::UnorderedReader); // a was written on queue 0
  EXPECT_EQ(pairs[1].witness, 0);
}

TEST(Place, LeadsADonatedArgumentToTheResult) {
  Line line;
  ArenaPlan plan =
      planArena(line.problem, getPermissions(line.problem, judgeDonations(line.problem)), 0);
  ASSERT_EQ(plan.chains.size(), 1u);
  EXPECT_EQ(plan.chains[0].argument, line.x);
  EXPECT_TRUE(std::ranges::equal(plan.chains[0].values, std::vector<int64_t>{line.a, line.b}));
  EXPECT_EQ(plan.chains[0].result, line.y);
  EXPECT_EQ(plan.plan.arenaBytes, 0);
}

TEST(Place, WithoutPermissionsEachValueHasASlot) {
  Line line;
  ArenaPlan plan = planArena(line.problem, {}, 0);
  EXPECT_EQ(plan.chains.size(), 2u);
  EXPECT_EQ(plan.plan.arenaBytes, 512); // a and b are live in wave 1
  line.addCommand({}, line.addValue());
  EXPECT_EQ(planArena(line.problem, {}, 0).plan.arenaBytes, 512);
  EXPECT_EQ(planWithoutReuse(line.problem).plan.arenaBytes, 768);
}

// Two commands of one wave write values that nobody reads.
TEST(Place, SlotsThatShareBytesAreInDifferentWaves) {
  ProblemBuilder builder;
  int64_t x = builder.addArgument("x", false, false), a = builder.addValue(),
          b = builder.addValue(512);
  builder.addCommand({x}, a);
  builder.addCommand({x}, b);
  auto getWavesAt = [&](int64_t offset) {
    ArenaPlan plan;
    plan.chains = {{{a}, -1, -1}, {{b}, -1, -1}};
    plan.plan.offsets = {0, offset};
    return getPlacedWaves(builder.problem, plan);
  };
  using Lives = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(getWavesAt(256).waves, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(getWavesAt(256).lives, (Lives{{0, 0}, {0, 0}}));
  EXPECT_EQ(getWavesAt(128).waves, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(getWavesAt(128).lives, (Lives{{0, 0}, {1, 1}}));
  builder.problem.accesses.dispatches[1].back().range = {256, 512}; // still a slot as a whole
  EXPECT_EQ(getWavesAt(0).waves, (std::vector<int64_t>{0, 1}));
}

// A value in the bytes of a donated argument is ordered with it.
TEST(Place, WavesAreOfTheBytesThatAChainHas) {
  Line line;
  int64_t c = line.addValue();
  line.addCommand({line.x}, c);
  ArenaPlan plan = planWithoutReuse(line.problem);
  EXPECT_EQ(getPlacedWaves(line.problem, plan).waves, (std::vector<int64_t>{0, 1, 2, 2}));
  plan.chains = {{{line.a, line.b}, line.x, line.y}, {{c}, -1, -1}};
  plan.plan.offsets = {0, 0};
  EXPECT_EQ(getPlacedWaves(line.problem, plan).waves, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(Queues, ChainsStayTogether) {
  ProblemBuilder builder;
  int64_t x = builder.addArgument("x", false, false), a = builder.addValue(),
          b = builder.addValue(), c = builder.addValue(), d = builder.addValue();
  builder.addCommand({x}, a);
  builder.addCommand({x}, b);
  builder.addCommand({a}, c);
  builder.addCommand({b}, d);
  EXPECT_EQ(assignQueues(builder.problem.accesses, 2), (std::vector<int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(assignQueues(builder.problem.accesses, 1), (std::vector<int64_t>{0, 0, 0, 0}));
}

TEST(Schedule, ReadersOfADonatedArgumentComeFirst) {
  ProblemBuilder builder;
  int64_t x = builder.addArgument("x", true, false), y = builder.addArgument("x", false, true),
          a = builder.addValue();
  builder.addCommand({x}, y);
  builder.addCommand({x}, a);
  std::vector<Hazard> hazards = findHazards(builder.problem.accesses);
  // Both may write over x; the last that may is a's.
  EXPECT_EQ(chooseOrder(builder.problem, hazards, false).order, (std::vector<int64_t>{0, 1}));
  builder.problem.allocations[a].type = 1;
  EXPECT_EQ(chooseOrder(builder.problem, hazards, false).order, (std::vector<int64_t>{1, 0}));
}

TEST(Schedule, TakesTheOrderForMemoryOnlyIfLessIsLive) {
  // Two large values and a small result of each: one after the other.
  ProblemBuilder builder;
  int64_t x = builder.addArgument("x", false, false), a = builder.addValue(1024),
          b = builder.addValue(1024), c = builder.addValue(), d = builder.addValue();
  builder.addCommand({x}, a);
  builder.addCommand({x}, b);
  builder.addCommand({a}, c);
  builder.addCommand({b}, d);
  builder.addCommand({c}, d);
  std::vector<Hazard> hazards = findHazards(builder.problem.accesses);
  CommandOrder chosen = chooseOrder(builder.problem, hazards, true);
  EXPECT_EQ(chosen.order, (std::vector<int64_t>{0, 2, 1, 3, 4}));
  EXPECT_LT(chosen.memoryPeak, chosen.programPeak);
  EXPECT_EQ(chooseOrder(builder.problem, hazards, false).order,
            (std::vector<int64_t>{0, 1, 2, 3, 4}));
}
