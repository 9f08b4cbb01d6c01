//===- BuffersTest.cpp - Plans against brute force, and what is refused ---===//

#include "weir/Artifact/Error.h"
#include "weir/Planner/Planner.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace weir;

static Buffer makeBuffer(int64_t bytes, int64_t first, int64_t last, int64_t alignment = 1) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.alignment = alignment;
  buffer.live = {{first, last}};
  return buffer;
}

static bool areLiveTogether(const Buffer &a, const Buffer &b) {
  for (const LiveRange &x : a.live)
    for (const LiveRange &y : b.live)
      if (x.first <= y.last && y.first <= x.last)
        return true;
  return false;
}

/// Returns the min peak: in some order of buffers each lies on those before it. -1 if fixed
/// buffers allow no order.
static int64_t getMinPeak(const std::vector<Buffer> &buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  int64_t least = -1;
  do {
    std::vector<int64_t> offsets(buffers.size(), -1);
    int64_t peak = 0;
    for (size_t i : order) {
      int64_t offset = 0;
      for (size_t j = 0; j < buffers.size(); ++j)
        if (offsets[j] >= 0 && areLiveTogether(buffers[i], buffers[j]))
          offset = std::max(offset, offsets[j] + buffers[j].bytes);
      int64_t alignment = buffers[i].alignment;
      offset = (offset + alignment - 1) / alignment * alignment;
      if (buffers[i].fixed && offset > *buffers[i].fixed) {
        peak = -1;
        break;
      }
      offsets[i] = buffers[i].fixed.value_or(offset);
      peak = std::max(peak, offsets[i] + buffers[i].bytes);
    }
    if (peak >= 0 && (least < 0 || peak < least))
      least = peak;
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

namespace {
struct Random {
  explicit Random(int seed) : engine(unsigned(seed)) {}
  int64_t operator()(int64_t from, int64_t to) {
    return from + int64_t(engine() % uint64_t(to - from + 1));
  }
  std::mt19937_64 engine;
};

class SmallProblems : public testing::TestWithParam<int> {};
} // namespace

TEST_P(SmallProblems, AreSolvedAndProved) {
  Random pick(GetParam());
  PlanProblem problem;
  bool aligned = pick(0, 1), gaps = pick(0, 2) == 0, fixed = pick(0, 2) == 0;
  for (int64_t i = 0, count = pick(1, 7); i < count; ++i) {
    int64_t first = pick(0, 8);
    Buffer buffer =
        makeBuffer(pick(1, 9), first, first + pick(0, 5), aligned ? int64_t(1) << pick(0, 3) : 1);
    if (gaps && pick(0, 1)) {
      int64_t last = buffer.live[0].last;
      buffer.live.push_back({last + pick(2, 3), last + pick(3, 5)});
    }
    // Fixed buffers that are never live together cannot collide.
    bool free = std::none_of(problem.buffers.begin(), problem.buffers.end(), [&](const Buffer &b) {
      return b.fixed && areLiveTogether(b, buffer);
    });
    if (fixed && free && pick(0, 2) == 0)
      buffer.fixed = pick(0, 5) * buffer.alignment;
    problem.buffers.push_back(buffer);
  }
  int64_t least = getMinPeak(problem.buffers);
  ASSERT_GE(least, 0);
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.spaces[0].peak, least);
  EXPECT_EQ(plan.spaces[0].bound, least);
  EXPECT_LE(plan.spaces[0].maxLive, least);

  // A plan that is known to exist is found; where there is known to be none, that is proved.
  PlanOptions options;
  options.minimize = false;
  problem.spaces[0].capacity = least;
  plan = planBuffers(problem, options);
  validatePlan(problem, plan);
  EXPECT_TRUE(plan.spaces[0].fits);
  bool fixedEndsLast =
      std::any_of(problem.buffers.begin(), problem.buffers.end(),
                  [&](const Buffer &b) { return b.fixed && *b.fixed + b.bytes == least; });
  problem.spaces[0].capacity = least - 1;
  if (fixedEndsLast) {
    EXPECT_THROW(planBuffers(problem, options), Error);
    return;
  }
  plan = planBuffers(problem, options);
  validatePlan(problem, plan);
  EXPECT_FALSE(plan.spaces[0].fits);
  EXPECT_GT(plan.spaces[0].bound, least - 1);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SmallProblems, testing::Range(0, 400));

namespace {
class MixedProblems : public testing::TestWithParam<int> {};
} // namespace

/// Plans with chains, groups, spaces, gaps, fixed buffers and hints are valid.
TEST_P(MixedProblems, AreValidAndTheSameTwice) {
  Random pick(GetParam());
  PlanProblem problem;
  problem.spaces.resize(2);
  int64_t count = pick(0, 60);
  for (int64_t i = 0; i < count; ++i) {
    int64_t first = pick(0, 30);
    Buffer buffer = makeBuffer(pick(0, 2000), first, first + pick(0, 9), int64_t(64) << pick(0, 2));
    buffer.space = i % 2;
    if (pick(0, 3) == 0)
      buffer.live.push_back({buffer.live[0].last + pick(1, 4), buffer.live[0].last + pick(4, 8), 0,
                             buffer.bytes / pick(1, 3)});
    if (pick(0, 9) == 0)
      buffer.hint = pick(0, 10) * 64;
    problem.buffers.push_back(buffer);
  }
  if (count > 20) {
    problem.buffers[0].fixed = 1024;
    problem.chains = {{2, 4, 6}, {3, 5}};
    problem.groups = {{{8, 10, 12}}, {{7, 9, 11}, 512}};
  }
  PlanOptions options;
  options.effort = 2'000;
  if (pick(0, 1))
    options.seed = 7;
  BufferPlan plan = planBuffers(problem, options);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.offsets, planBuffers(problem, options).offsets);
  for (const SpacePlan &space : plan.spaces)
    EXPECT_GE(space.bound, space.maxLive);

  options.effort = 0;
  BufferPlan greedy = planBuffers(problem, options);
  validatePlan(problem, greedy);
  for (size_t s = 0; s < plan.spaces.size(); ++s)
    EXPECT_LE(plan.spaces[s].peak, greedy.spaces[s].peak);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MixedProblems, testing::Range(0, 100));

TEST(Buffers, GapsAreUsedByOthers) {
  PlanProblem problem;
  problem.buffers = {makeBuffer(100, 0, 1), makeBuffer(80, 2, 3)};
  problem.buffers[0].live.push_back({4, 5});
  EXPECT_EQ(planBuffers(problem).spaces[0].peak, 100);
  // Where 60 bytes stay in use the 80 need others.
  problem.buffers[0].live.push_back({2, 3, 0, 60});
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.spaces[0].peak, 140);
}

TEST(Buffers, AChainHasOneOffsetAndTheBytesOfItsLargest) {
  PlanProblem problem;
  problem.buffers = {makeBuffer(100, 0, 2), makeBuffer(60, 2, 4), makeBuffer(50, 4, 4)};
  EXPECT_EQ(planBuffers(problem).spaces[0].peak, 160);
  problem.chains = {{0, 1}};
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.spaces[0].peak, 110); // 60 and 50 in wave 4
  EXPECT_TRUE(plan.spaces[0].isOptimal());
}

TEST(Buffers, AGroupIsContiguous) {
  PlanProblem problem;
  problem.buffers = {makeBuffer(100, 0, 9), makeBuffer(300, 0, 9), makeBuffer(10, 0, 9),
                     makeBuffer(200, 3, 4)};
  problem.groups = {{{0, 1, 2}}};
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.offsets[1], plan.offsets[0] + 256);
  EXPECT_EQ(plan.offsets[2], plan.offsets[0] + 256 + 512);
  EXPECT_EQ(plan.offsets[0] % 256, 0);
}

TEST(Buffers, FixedBuffersOfAChainFixTheOthers) {
  PlanProblem problem;
  problem.buffers = {makeBuffer(100, 0, 2), makeBuffer(100, 3, 5), makeBuffer(100, 3, 5)};
  problem.buffers[0].fixed = 300;
  problem.chains = {{0, 1}};
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{300, 300, 0}));
  problem.buffers[2].fixed = 399; // meets the second, which the first fixes
  EXPECT_THROW(planBuffers(problem), Error);
  problem.buffers[2].fixed = 400;
  validatePlan(problem, planBuffers(problem));
  problem.buffers[1].fixed = 100;
  EXPECT_THROW(planBuffers(problem), Error);
}

TEST(Buffers, SpacesAreApart) {
  PlanProblem problem;
  problem.spaces = {{"slow", 1000}, {"fast", 150}};
  problem.buffers = {makeBuffer(100, 0, 9), makeBuffer(100, 0, 9), makeBuffer(100, 0, 9)};
  problem.buffers[2].space = 1;
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.spaces[0].peak, 200);
  EXPECT_EQ(plan.spaces[1].peak, 100);
  problem.buffers[1].space = 1;
  plan = planBuffers(problem);
  EXPECT_TRUE(plan.spaces[0].fits);
  EXPECT_FALSE(plan.spaces[1].fits);
  EXPECT_EQ(plan.spaces[1].bound, 200);
}

TEST(Buffers, AHintIsTakenWhereItCostsNothing) {
  PlanProblem problem;
  problem.buffers = {makeBuffer(100, 0, 1), makeBuffer(50, 1, 3), makeBuffer(40, 3, 4)};
  problem.buffers[2].hint = 100;
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.spaces[0].peak, 150);
}

TEST(Buffers, ASplitIsTakenWhenItPays) {
  PlanProblem problem;
  problem.buffers = {makeBuffer(100, 0, 1), makeBuffer(90, 1, 2), makeBuffer(10, 0, 2)};
  problem.splits = {{1, {0}, {1}}};
  PlanOptions options;
  EXPECT_EQ(planBuffers(problem, options).spaces[0].peak, 200);
  options.bytesPerSplit = 90;
  BufferPlan plan = planBuffers(problem, options);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.spaces[0].peak, 110);
  EXPECT_EQ(plan.splits, std::vector<size_t>{0});
  EXPECT_EQ(plan.splitBytes, 90);
  plan.splits.clear(); // without it the two share bytes
  EXPECT_THROW(validatePlan(problem, plan), Error);
  options.bytesPerSplit = 91;
  EXPECT_TRUE(planBuffers(problem, options).splits.empty());
  problem.splits[0].wave = 2;
  EXPECT_THROW(planBuffers(problem, options), Error);
}

TEST(Buffers, MoreEffortIsNotWorse) {
  Random pick(3);
  PlanProblem problem;
  for (int i = 0; i < 400; ++i) {
    int64_t first = pick(0, 200);
    problem.buffers.push_back(makeBuffer(pick(1, 1000), first, first + pick(0, 40)));
  }
  int64_t before = unlimitedBytes;
  for (int64_t effort : {0, 1'000, 30'000}) {
    PlanOptions options;
    options.effort = effort;
    BufferPlan plan = planBuffers(problem, options);
    validatePlan(problem, plan);
    EXPECT_LE(plan.spaces[0].peak, before);
    EXPECT_LE(plan.spaces[0].steps, effort);
    before = plan.spaces[0].peak;
  }
}

//===----------------------------------------------------------------------===//
// The validator
//===----------------------------------------------------------------------===//

TEST(Validator, FindsEveryKindOfMistake) {
  PlanProblem problem;
  problem.spaces[0].capacity = 10'000;
  problem.buffers = {makeBuffer(256, 0, 2, 256), makeBuffer(256, 2, 4), makeBuffer(256, 3, 4),
                     makeBuffer(100, 0, 1),      makeBuffer(100, 1, 2), makeBuffer(100, 0, 9),
                     makeBuffer(100, 0, 9)};
  problem.buffers[3].fixed = 2048;
  problem.chains = {{3, 4}};
  problem.groups = {{{5, 6}}};
  const BufferPlan good = planBuffers(problem);
  validatePlan(problem, good);
  auto isRefused = [&](auto change) {
    BufferPlan plan = good;
    change(plan);
    try {
      validatePlan(problem, plan);
    } catch (const Error &) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.offsets.pop_back(); }));
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.offsets[0] = -256; }));
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.offsets[0] += 1; }));                 // alignment
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.offsets[1] = p.offsets[0] + 255; })); // overlap
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.offsets[1] = p.offsets[2]; }));
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.offsets[3] = p.offsets[4] = 4096; })); // fixed
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.offsets[4] += 1; }));                  // chain
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.offsets[6] += 256; }));                // group
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.spaces[0].peak -= 1; }));
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.spaces[0].bound = p.spaces[0].peak + 1; }));
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.spaces[0].fits = false; }));
  EXPECT_TRUE(isRefused([](BufferPlan &p) { p.spaces.clear(); }));
  EXPECT_FALSE(isRefused([](BufferPlan &p) {})) << "nothing was changed";
}

//===----------------------------------------------------------------------===//
// Bad input
//===----------------------------------------------------------------------===//

TEST(BadProblems, AreRefused) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  auto isRefused = [](auto change) {
    PlanProblem problem;
    problem.buffers = {makeBuffer(100, 0, 5), makeBuffer(100, 3, 8)};
    change(problem);
    try {
      BufferPlan plan = planBuffers(problem);
      validatePlan(problem, plan);
    } catch (const Error &) {
      return true;
    }
    return false;
  };
  using P = PlanProblem;
  EXPECT_FALSE(isRefused([](P &p) {}));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].bytes = -1; }));
  EXPECT_FALSE(isRefused([](P &p) { p.buffers[0].bytes = 0; }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].bytes = most; }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].bytes = p.buffers[1].bytes = most / 2; }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].alignment = 0; }));
  EXPECT_FALSE(isRefused([](P &p) { p.buffers[0].alignment = 24; }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].live.clear(); }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].live[0].last = -1; }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].live.push_back({5, 6}); }));
  EXPECT_FALSE(isRefused([](P &p) { p.buffers[0].live.push_back({6, 6}); }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].live[0] = {-most, most}; }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].live[0].begin = -1; }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].space = 1; }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].fixed = -1; }));
  EXPECT_TRUE(isRefused([most](P &p) { p.buffers[0].fixed = most; }));
  EXPECT_TRUE(isRefused([](P &p) {
    p.buffers[0].fixed = 3;
    p.buffers[0].alignment = 2;
  }));
  EXPECT_TRUE(isRefused([](P &p) { p.buffers[0].fixed = p.buffers[1].fixed = 50; }));
  EXPECT_FALSE(isRefused([](P &p) {
    p.buffers[0].fixed = 50;
    p.buffers[1].fixed = 150;
  }));
  EXPECT_TRUE(isRefused([](P &p) {
    p.spaces[0].capacity = 149;
    p.buffers[0].fixed = 50;
  }));
  EXPECT_TRUE(isRefused([](P &p) { p.spaces[0].capacity = -1; }));
  EXPECT_TRUE(isRefused([](P &p) { p.chains = {{0, 2}}; }));
  EXPECT_TRUE(isRefused([](P &p) { p.groups = {{{0, 1}, 0}}; }));
  EXPECT_TRUE(isRefused([](P &p) { p.groups = {{{0, 2}}}; }));
  EXPECT_TRUE(isRefused([](P &p) { // the first has no bytes: all begin where it does
    p.buffers.push_back(makeBuffer(0, 0, 5));
    p.groups = {{{2, 0}}};
    p.chains = {{2, 1}};
  }));
  EXPECT_TRUE(isRefused([](P &p) { // two distances
    p.chains = {{0, 1}};
    p.groups = {{{0, 1}}};
  }));
  EXPECT_TRUE(isRefused([](P &p) {
    p.spaces.resize(2);
    p.buffers[1].space = 1;
    p.chains = {{0, 1}};
  }));
}

TEST(BadProblems, AChainOfTooManyIsRefused) {
  PlanProblem problem;
  problem.chains.resize(1);
  for (size_t i = 0; i < 5000; ++i) {
    problem.buffers.push_back(makeBuffer(8, 0, int64_t(i)));
    problem.chains[0].push_back(i);
  }
  EXPECT_THROW(planBuffers(problem), Error);
  problem.chains[0].resize(1000);
  problem.buffers.resize(1000);
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.spaces[0].peak, 8);
}

TEST(BadProblems, NegativeEffortIsRefused) {
  PlanOptions options;
  options.effort = -1;
  EXPECT_THROW(planBuffers({}, options), Error);
}

//===----------------------------------------------------------------------===//
// CSV and SVG
//===----------------------------------------------------------------------===//

TEST(PlanCsv, IsReadAndWritten) {
  std::string csv = "id,lower,upper,size\na,0,2,6\nb,2,6,6\nc,0,6,2\nd,6,9,5\ne,1,7,4\n";
  PlanProblem problem = parsePlanCsv(csv, "a.csv");
  ASSERT_EQ(problem.buffers.size(), 5u);
  EXPECT_EQ(problem.buffers[3].name, "d");
  EXPECT_EQ(problem.buffers[3].live[0].first, 6);
  EXPECT_EQ(problem.buffers[3].live[0].last, 8);
  BufferPlan plan = planBuffers(problem);
  EXPECT_EQ(plan.spaces[0].peak, 12);
  std::string out = printPlanCsv(csv, plan);
  EXPECT_TRUE(out.starts_with("id,lower,upper,size,offset\na,0,2,6,")) << out;
  // The offsets are read as fixed ones, which leave one plan.
  PlanProblem again = parsePlanCsv(out, "b.csv");
  EXPECT_EQ(planBuffers(again).offsets, plan.offsets);
  EXPECT_EQ(printPlanCsv(out, plan), out);
}

TEST(PlanCsv, HasColumnsByName) {
  PlanProblem problem =
      parsePlanCsv("size,start,end,buffer_id,alignment,hint,gaps,space,chain,group\r\n"
                   "10,2,5,x,4,8,3-3 4-4@2:6,s,c,\r\n"
                   "20,2,5,y,1,-1,,t,,g\n",
                   "a.csv");
  const Buffer &x = problem.buffers[0], &y = problem.buffers[1];
  EXPECT_EQ(x.alignment, 4);
  EXPECT_EQ(x.hint, 8);
  EXPECT_FALSE(y.hint);
  ASSERT_EQ(x.live.size(), 3u);
  EXPECT_EQ(x.live[0].last, 2);
  EXPECT_EQ(x.live[1].first, 4);
  EXPECT_EQ(x.live[1].begin, 2);
  EXPECT_EQ(x.live[1].end, 6);
  EXPECT_EQ(x.live[2].first, 5);
  EXPECT_EQ(x.live[2].last, 5);
  EXPECT_EQ(y.space, 1u);
  EXPECT_EQ(problem.spaces[1].name, "t");
  EXPECT_EQ(problem.chains.size(), 1u);
  EXPECT_EQ(problem.groups.size(), 1u);
}

TEST(PlanCsv, BadLinesAreNamed) {
  auto getError = [](const std::string &csv) -> std::string {
    try {
      parsePlanCsv(csv, "a.csv");
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  const std::string head = "id,lower,upper,size\n";
  EXPECT_EQ(getError(head + "a,0,1,4\n"), "");
  EXPECT_NE(getError(""), "");
  EXPECT_NE(getError("id,lower,upper\n"), "");
  EXPECT_NE(getError("id,lower,upper,size,colour\n"), "");
  EXPECT_NE(getError("id,lower,start,upper,size\n"), "");
  for (const char *line :
       {"a,0,1", "a,0,1,4,5", "a,0,1,-4", "a,0,1,4x", "a,0,1,", "a,,1,4", "a,1,1,4", "a,2,1,4",
        "a,0,1,99999999999999999999", "a,0,9223372036854775807,4"}) {
    std::string error = getError(head + "b,0,1,4\n" + line + "\n");
    EXPECT_TRUE(error.starts_with("a.csv:3: ")) << line << ": " << error;
  }
  EXPECT_NE(getError(head + "a,0,1,4\na,1,2,4\n"), "");
  const std::string gaps = "id,lower,upper,size,gaps\n";
  EXPECT_EQ(getError(gaps + "a,0,9,4,2-3 5-6@0:2\n"), "");
  EXPECT_EQ(getError(gaps + "a,-9,9,4,-3--2\n"), "");
  for (const char *gap : {"2", "2-", "2-2", "3-2", "8-10", "-1-3", "2-4 3-5", "0-9", "2-3@1",
                          "2-3@1:5", "2-3@3:2", "2-3@-1:2", "2-x"})
    EXPECT_NE(getError(gaps + "a,0,9,4," + gap + "\n"), "") << gap;
}

TEST(PlanSvg, DrawsEachLiveRange) {
  PlanProblem problem = parsePlanCsv("id,lower,upper,size,gaps\n<&>,0,9,4,3-5\nb,0,9,0,\n", "a");
  std::string svg = drawPlan(problem, planBuffers(problem));
  size_t count = 0;
  for (size_t at = 0; (at = svg.find("<title>", at)) != std::string::npos; ++at)
    ++count;
  EXPECT_EQ(count, 2u);
  EXPECT_NE(svg.find("&lt;&amp;&gt;: 4 bytes at 0, waves 0 to 2"), std::string::npos) << svg;
}
