//===- MeetingTest.cpp - Whether two executions can touch one byte --------===//
//
// Tables of small cases for the parts of AccessMaps::compare, and an oracle that tries every pair
// of points.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Meeting.h"
#include "Expressions.h"
#include "weir/Analysis/KnownAnswers.h"

#include "gtest/gtest.h"

#include <random>
#include <set>

using namespace mlir;
using namespace weir;
using weir::test::evaluate;
using weir::test::makeVariables;
using weir::test::Point;

using Answer = Meeting::Answer;
using Invocations = Instances::Invocations;
using Kind = MapVariable::Kind;
using Trip = Instances::Trip;

namespace weir {
static bool operator==(const Interval &a, const Interval &b) {
  return a.lower == b.lower && a.upper == b.upper;
}
} // namespace weir

static const Interval same = {0, 0}, less = {std::nullopt, -1}, greater = {1, std::nullopt};

static MapVariable makeVariable(Kind kind, unsigned axis = 0, int64_t upper = 7) {
  MapVariable variable;
  variable.kind = kind;
  variable.axis = axis;
  variable.lower = 0;
  variable.upper = upper;
  return variable;
}

//===----------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------===//

TEST(Differences, SayWhatInvocationsShare) {
  std::vector<MapVariable> variables = {
      makeVariable(Kind::Workgroup), makeVariable(Kind::Invocation), makeVariable(Kind::Lane),
      makeVariable(Kind::Element),   makeVariable(Kind::Opaque),     makeVariable(Kind::Opaque),
      makeVariable(Kind::Opaque)};
  variables[4].scope = Scope::Invocation;
  variables[5].scope = Scope::Workgroup;
  variables[6].scope = Scope::Grid;
  MemoryAccess access;
  auto get = [&](Invocations invocations) {
    std::set<unsigned> shared;
    for (const auto &[variable, range] :
         getDifferences(access, access, {invocations, {}}, variables, nullptr)) {
      EXPECT_EQ(range, same);
      shared.insert(variable);
    }
    return shared;
  };
  EXPECT_EQ(get(Invocations::Same), (std::set<unsigned>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(get(Invocations::SameWorkgroup), (std::set<unsigned>{0, 5, 6}));
  EXPECT_EQ(get(Invocations::DifferentWorkgroup), (std::set<unsigned>{6}));
}

TEST(Differences, SayHowTripsFollow) {
  std::vector<MapVariable> variables = {makeVariable(Kind::Trip), makeVariable(Kind::Trip),
                                        makeVariable(Kind::Trip), makeVariable(Kind::Opaque)};
  variables[3].scope = Scope::Grid;
  variables[3].varies = true;
  MemoryAccess first, second;
  first.loops = {0, 1};
  second.loops = {0, 1, 2}; // only the first two are around both
  auto get = [&](SmallVector<Trip, 4> trips) {
    return getDifferences(first, second, {Invocations::Same, std::move(trips)}, variables, nullptr);
  };
  const Interval next = {1, 1};
  EXPECT_EQ(get({Trip::Same, Trip::Same, Trip::Same}),
            (Differences{{0, same}, {1, same}, {3, same}}));
  // A value that varies from trip to trip is the same in one trip alone.
  EXPECT_EQ(get({Trip::Same, Trip::Next}), (Differences{{0, same}, {1, next}}));
  EXPECT_EQ(get({Trip::Later}), (Differences{{0, greater}}));
  EXPECT_EQ(get({}), Differences());
}

TEST(Differences, TrustUniformValuesInOneTrip) {
  std::vector<MapVariable> variables = {makeVariable(Kind::Opaque), makeVariable(Kind::Trip)};
  MemoryAccess access;
  access.loops = {1};
  auto isUniform = [](Value) { return true; };
  auto has = [&](Invocations invocations, Trip trip) {
    return getDifferences(access, access, {invocations, {trip}}, variables, isUniform).count(0);
  };
  EXPECT_TRUE(has(Invocations::SameWorkgroup, Trip::Same));
  EXPECT_FALSE(has(Invocations::SameWorkgroup, Trip::Next));
  EXPECT_FALSE(has(Invocations::DifferentWorkgroup, Trip::Same));
}

//===----------------------------------------------------------------------===//
// Telling ids
//===----------------------------------------------------------------------===//

TEST(TellingIds, AreThoseOfTheirLevel) {
  std::vector<MapVariable> variables = {
      makeVariable(Kind::Workgroup, 0),  makeVariable(Kind::Workgroup, 1),
      makeVariable(Kind::Invocation, 0), makeVariable(Kind::Lane),
      makeVariable(Kind::Subgroup),      makeVariable(Kind::Global, 0)};
  LaunchSizes sizes;
  sizes.grid = {8, 8, 1};
  sizes.workgroup = {64, 1, 1};
  sizes.subgroup = 8;
  struct Expected {
    std::vector<unsigned> ids;
    bool orElsewhere;
  };
  auto check = [&](ArrayRef<unsigned> used, Invocations invocations, Expected expected, int line) {
    llvm::SmallBitVector bits(variables.size());
    for (unsigned index : used)
      bits.set(index);
    TellingIds telling = getTellingIds(bits, variables, sizes, invocations);
    EXPECT_EQ(std::vector<unsigned>(telling.ids.begin(), telling.ids.end()), expected.ids)
        << "line " << line;
    EXPECT_EQ(telling.orElsewhere, expected.orElsewhere) << "line " << line;
  };
  check({0, 1, 2}, Invocations::SameWorkgroup, {{2}, false}, __LINE__);
  check({0, 1, 2}, Invocations::DifferentWorkgroup, {{0, 1}, false}, __LINE__);
  check({0}, Invocations::DifferentWorkgroup, {{0}, true}, __LINE__); // axis y may differ
  check({0}, Invocations::SameWorkgroup, {{}, true}, __LINE__);
  check({3, 4}, Invocations::SameWorkgroup, {{3, 4}, false}, __LINE__);
  check({3}, Invocations::SameWorkgroup, {{3}, true}, __LINE__); // 8 subgroups
  check({4}, Invocations::SameWorkgroup, {{4}, true}, __LINE__);
  check({2, 3}, Invocations::SameWorkgroup, {{}, true}, __LINE__); // two systems of ids
  check({5}, Invocations::DifferentWorkgroup, {{5}, true}, __LINE__);
  check({5}, Invocations::SameWorkgroup, {{5}, false}, __LINE__);
  check({0, 1, 2, 3}, Invocations::Same, {{}, false}, __LINE__);
  sizes.workgroup[1].reset();
  check({2}, Invocations::SameWorkgroup, {{2}, true}, __LINE__);
}

/// Each pair of different ids is in one case, and equal ids in none.
TEST(TellingIds, MakeCasesThatPartition) {
  std::vector<MapVariable> variables = makeVariables({{0, 2}, {0, 3}});
  for (bool orElsewhere : {false, true}) {
    std::vector<Differences> cases = getCases({}, {{0, 1}, orElsewhere});
    for (const Point &x : weir::test::enumerate(variables))
      for (const Point &y : weir::test::enumerate(variables)) {
        auto holds = [&](const Differences &each) {
          return llvm::all_of(each, [&](const auto &entry) {
            int64_t distance = y[entry.first] - x[entry.first];
            const Interval &range = entry.second;
            return (!range.lower || distance >= *range.lower) &&
                   (!range.upper || distance <= *range.upper);
          });
        };
        EXPECT_EQ(llvm::count_if(cases, holds), x != y || orElsewhere);
      }
  }
}

//===----------------------------------------------------------------------===//
// The question
//===----------------------------------------------------------------------===//

namespace {
/// The answers of one context.
class Meetings : public testing::Test {
protected:
  Meetings() {
    DialectRegistry registry;
    registerKnownAnswers(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<gpu::GPUDialect>();
    answers = KnownAnswers::get(&context);
  }

  AffineExpr dim(unsigned index) { return getAffineDimExpr(index, &context); }
  static MemoryAccess at(AffineExpr begin, int64_t bytes = 4) {
    MemoryAccess access;
    access.begin = begin;
    access.bytes = bytes;
    return access;
  }
  int64_t getCount(Decision decision) { return answers->getCounts().decided[size_t(decision)]; }

  MLIRContext context;
  const KnownAnswers *answers = nullptr;
};
} // namespace

/// Each question is decided by the cheapest step that can.
TEST_F(Meetings, AskWhatIsCheapFirst) {
  std::vector<MapVariable> variables = makeVariables({{0, 63}, {0, 63}});
  auto ask = [&](AffineExpr first, AffineExpr second, const Differences &differences = {}) {
    return mayMeet(at(first), at(second), {}, differences, variables, answers).answer;
  };
  EXPECT_EQ(ask(dim(0) * 4, dim(0) * 4 + 4, {{0, same}}), Answer::None);
  EXPECT_EQ(getCount(Decision::Identity), 1);
  EXPECT_EQ(ask(dim(0) * 4, dim(1) * 4 + 256), Answer::None);
  EXPECT_EQ(getCount(Decision::Intervals), 1);
  EXPECT_EQ(ask(dim(0) * 8, dim(1) * 8 + 4), Answer::None);
  EXPECT_EQ(getCount(Decision::Digits), 1);
  EXPECT_EQ(ask(dim(0) * 8, dim(1) * 12), Answer::Found);
  EXPECT_EQ(getCount(Decision::Search), 1);
  // Equal but for names.
  EXPECT_EQ(ask(dim(1) * 8, dim(0) * 12), Answer::Found);
  EXPECT_EQ(getCount(Decision::Repeated), 1);
  EXPECT_EQ(getCount(Decision::GivenUp), 0);
}

/// A column of 28 pixels that 16 * (id mod 2) + lane counts, as a condition says.
TEST_F(Meetings, TakeLimitedSumsForDigits) {
  std::vector<MapVariable> variables = makeVariables({{0, 3583}, {0, 7}, {0, 31}, {0, 31}});
  AffineExpr id = dim(0), lane = dim(1);
  auto make = [&](AffineExpr trip, int64_t offset) {
    AffineExpr column = (id % 2) * 16 + offset + lane;
    MemoryAccess access = at((id.floorDiv(2) * 896 + trip * 28 + column) * 8, 8);
    access.nonNegative = {-column + 27};
    return access;
  };
  MemoryAccess a = make(dim(2), 0), b = make(dim(3), 8);
  for (const Differences &differences :
       {Differences{{0, greater}}, Differences{{0, less}}, Differences{{0, same}, {1, greater}},
        Differences{{0, same}, {1, less}}, Differences{{0, same}, {1, same}}}) {
    EXPECT_EQ(mayMeet(a, b, {}, differences, variables, answers).answer, Answer::None);
    bool isOne = differences.size() == 2 && differences.at(1).lower == 0;
    EXPECT_EQ(mayMeet(a, a, {}, differences, variables, answers).answer,
              isOne ? Answer::Found : Answer::None);
  }
  // Without the condition the columns of one row reach into the next.
  a.nonNegative.clear();
  b.nonNegative.clear();
  EXPECT_EQ(mayMeet(a, b, {}, {{0, greater}}, variables, answers).answer, Answer::Found);
}

/// Elements 4 n and 4 n + 2 of rows of 56 that lie 58 apart: simplification has written the same
/// quotients in two ways.
TEST_F(Meetings, TakeQuotientsOfMultiplesForDigits) {
  std::vector<MapVariable> variables = makeVariables({{0, 1567}, {0, 7}});
  AffineExpr n = dim(0) * 8 + dim(1), row = n.floorDiv(14), other = (n * 2 + 1).floorDiv(28);
  MemoryAccess a = at((n * 4 + row * 2 + row.floorDiv(56) * 116) * 4);
  MemoryAccess b = at((n * 4 + other * 2 + other.floorDiv(56) * 116 + 2) * 4);
  for (const Interval &difference : {less, same, greater}) {
    EXPECT_EQ(mayMeet(a, b, {}, {{1, difference}}, variables, answers).answer, Answer::None);
    EXPECT_EQ(mayMeet(b, a, {}, {{1, difference}}, variables, answers).answer, Answer::None);
  }
  // With one element to a quotient's multiple it is there that they meet.
  MemoryAccess c = at((n * 2 + row * 2 + row.floorDiv(56) * 116) * 4);
  EXPECT_EQ(mayMeet(a, c, {}, {}, variables, answers).answer, Answer::Found);
}

/// Nested quotients of sums, and factors that have nothing in common: no answer, but soon.
TEST_F(Meetings, GiveUpOnHardQuestions) {
  std::vector<MapVariable> variables(6);
  for (MapVariable &variable : variables) {
    variable.lower = 0;
    variable.upper = 1000003;
  }
  auto mix = [&](int64_t seed) {
    AffineExpr sum = dim(0) * (seed + 7919);
    for (unsigned i = 1; i < 6; ++i)
      sum = (sum + dim(i) * (seed * i + 104729)).floorDiv(seed + i + 2) * (seed + 3) +
            dim(i) % (17 * i + seed);
    return sum;
  };
  Meeting meeting =
      mayMeet(at(mix(1) * 4), at(mix(2) * 4 + 2), {}, {{0, greater}}, variables, answers);
  EXPECT_EQ(meeting.answer, Answer::Unknown);
  EXPECT_EQ(getCount(Decision::GivenUp), 1);
  EXPECT_LT(answers->getCounts().steps, 10000);
}

/// An address that is no affine expression is left out, and then nothing found is a proof.
TEST_F(Meetings, LeaveOutWhatIsNotAffine) {
  std::vector<MapVariable> variables = makeVariables({{0, 7}, {1, 7}});
  Meeting meeting =
      mayMeet(at(dim(0).floorDiv(dim(1)) * 4), at(dim(0) * 4), {}, {}, variables, answers);
  EXPECT_EQ(meeting.answer, Answer::Found);
  EXPECT_FALSE(meeting.isExact);
}

TEST_F(Meetings, AgreeWithEnumeration) {
  std::mt19937 random(1);
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  int64_t counts[3] = {};
  for (unsigned round = 0; round < 12000; ++round) {
    std::vector<MapVariable> variables;
    for (int64_t count = pick(1, 3); count > 0; --count) {
      int64_t lower = pick(0, 3) ? 0 : pick(-2, 2);
      llvm::append_range(variables, makeVariables({{lower, lower + pick(0, 7)}}));
    }
    auto pickDim = [&] { return dim(pick(0, variables.size() - 1)); };
    auto makeExpr = [&] {
      AffineExpr sum = getAffineConstantExpr(pick(-10, 10), &context);
      for (int64_t count = pick(1, 3); count > 0; --count) {
        AffineExpr term = pickDim();
        for (int64_t depth = pick(0, 2); depth > 0; --depth) {
          if (pick(0, 1))
            term = term * pick(1, 4) + pickDim() + pick(-2, 4);
          int64_t by = std::array{1, 2, 3, 4, 6, 8}[pick(0, 5)];
          if (int64_t kind = pick(0, 4))
            term = kind <= 2 ? term % by : kind == 3 ? term.floorDiv(by) : term.ceilDiv(by);
        }
        sum = sum + term * pick(-24, 24);
      }
      return sum;
    };
    auto makeAccess = [&](AffineExpr begin) {
      MemoryAccess access = at(begin, pick(1, 8));
      while (pick(0, 1)) // limits of sums, some of which the address has
        access.nonNegative.push_back(
            pick(0, 2) ? -(pickDim() * pick(1, 4) + pickDim()) + pick(-4, 12) : makeExpr());
      if (pick(0, 5) == 0)
        access.zero.push_back(makeExpr());
      return access;
    };
    MemoryAccess first = makeAccess(makeExpr());
    MemoryAccess second = makeAccess(pick(0, 1) ? makeExpr() : first.begin + pick(-30, 30));
    if (pick(0, 2)) {
      second.nonNegative = first.nonNegative;
      for (AffineExpr &condition : second.nonNegative)
        condition = condition + pick(-2, 2);
    }
    if (pick(0, 4) == 0)
      variables[0].nonNegative.push_back(makeExpr());
    std::optional<int64_t> shift;
    if (pick(0, 1))
      shift = pick(-16, 16);
    Differences differences;
    for (size_t i = 0; i < variables.size(); ++i)
      if (int64_t kind = pick(0, 5); kind < 4)
        differences[i] = kind == 0 ? same : kind == 1 ? greater : kind == 2 ? less : Interval{1, 1};
    // A limit of a variable counts wherever the variable is part of an access.
    llvm::SmallBitVector used[2] = {findVariables(first, variables),
                                    findVariables(second, variables)};
    auto getPoints = [&](const MemoryAccess &access, bool isUsed) {
      std::vector<Point> points;
      for (const Point &point : weir::test::enumerate(variables)) {
        auto isPositive = [&](AffineExpr expr) { return evaluate(expr, point) >= 0; };
        auto isZero = [&](AffineExpr expr) { return evaluate(expr, point) == 0; };
        if (llvm::all_of(access.nonNegative, isPositive) && llvm::all_of(access.zero, isZero) &&
            (!isUsed || llvm::all_of(variables[0].nonNegative, isPositive)))
          points.push_back(point);
      }
      return points;
    };
    bool isLimited =
        used[0].test(0) || used[1].test(0) || (differences.count(0) && !(differences[0] == same));
    bool isPaired = differences.count(0);
    std::vector<Point> xs = getPoints(first, isPaired ? isLimited : used[0].test(0));
    std::vector<Point> ys = getPoints(second, isPaired ? isLimited : used[1].test(0));
    bool meets = false;
    for (const Point &x : xs)
      for (const Point &y : ys) {
        int64_t distance = evaluate(second.begin, y) + shift.value_or(0) - evaluate(first.begin, x);
        meets |= distance > -second.bytes && distance < first.bytes &&
                 llvm::all_of(
                     differences,
                     [&](const auto &entry) {
                       int64_t apart = y[entry.first] - x[entry.first];
                       return (!entry.second.lower || apart >= *entry.second.lower) &&
                              (!entry.second.upper || apart <= *entry.second.upper);
                     });
      }
    Meeting meeting = mayMeet(first, second, shift, differences, variables, answers);
    EXPECT_TRUE(meeting.isExact);
    ++counts[size_t(meeting.answer)];
    if (meeting.answer != Answer::Unknown)
      EXPECT_EQ(meeting.answer, meets ? Answer::Found : Answer::None) << "round " << round;
  }
  EXPECT_GT(counts[size_t(Answer::None)], 500);
  EXPECT_GT(counts[size_t(Answer::Found)], 500);
  EXPECT_LT(counts[size_t(Answer::Unknown)], 120);
}
