//===- DistanceTest.cpp - Distances of addresses --------------------------===//
//
// The oracle evaluates both expressions at every point.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Distance.h"
#include "Expressions.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace weir;

using weir::test::evaluate;
using weir::test::makeVariables;
using weir::test::Point;

/// The digits of a tile's store: rows of 4 columns of 32 bytes, lanes of a vector.
TEST(Distance, tellsDigitsApart) {
  MLIRContext context;
  AffineExpr id = getAffineDimExpr(0, &context);
  std::vector<MapVariable> variables = makeVariables({{0, 255}});
  auto at = [&](int64_t row, int64_t lane) {
    return (id % 16) * 1024 + lane * 256 + id.floorDiv(16) * 16 + row * 4;
  };
  for (int64_t row = -3; row <= 3; ++row)
    for (int64_t lane = -3; lane <= 3; ++lane)
      EXPECT_EQ(mayDifferBy(at(0, 0), at(row, lane), -3, 3, variables), row == 0 && lane == 0);
  // Digits that overlap, and ends of ranges.
  EXPECT_TRUE(mayDifferBy(id * 4, id * 4 + 8, -3, 3, variables));
  EXPECT_TRUE(mayDifferBy(id * 4, id * 4 + 1023, -3, 3, variables));
  EXPECT_FALSE(mayDifferBy(id * 4, id * 4 + 1024, -3, 3, variables));
  EXPECT_FALSE(mayDifferBy(id * 4, id * 4 - 1024, -3, 3, variables));
  EXPECT_FALSE(mayDifferBy(id * 8, id * 8 + 4, -3, 3, variables));
  variables[0].upper.reset();
  EXPECT_TRUE(mayDifferBy(id * 4, id * 4 + 1024, -3, 3, variables));
}

/// A map that stores transposed: 8 lanes, 64 trips and 192 workgroups count elements.
TEST(Distance, tellsNumbersApart) {
  MLIRContext context;
  AffineExpr lane = getAffineDimExpr(0, &context), trip = getAffineDimExpr(1, &context),
             group = getAffineDimExpr(2, &context);
  std::vector<MapVariable> variables = makeVariables({{0, 7}, {0, 63}, {0, 191}});
  AffineExpr number = group * 512 + lane + trip * 8;
  // 2 x 12 x 64 x 64 in rows of 3072 bytes, of which the last two change places; and by
  // rests instead of differences.
  AffineExpr column = number.floorDiv(64);
  AffineExpr address = number * 3072 + column * -196607 * 4 + column.floorDiv(768) * 589056;
  AffineExpr other = number % 64 * 3072 + column % 64 * 4 + column.floorDiv(64) * 196608;
  const Interval greater = {1, std::nullopt}, less = {std::nullopt, -1}, none = {0, 0};
  std::vector<Differences> differ = {{{0, greater}, {2, none}},
                                     {{0, less}, {2, none}},
                                     {{2, greater}},
                                     {{2, less}},
                                     {{1, greater}},
                                     {{0, none}, {1, less}}};
  for (const Differences &known : differ)
    for (int64_t vector : {0, 768, 1536}) {
      EXPECT_FALSE(mayDifferBy(address, address + vector, -3, 3, variables, known));
      EXPECT_FALSE(mayDifferBy(other, other, -3, 3, variables, known));
    }
  EXPECT_TRUE(mayDifferBy(address, address, -3, 3, variables, {{2, none}}));
  // More lanes than numbers from trip to trip: two share one.
  variables[0].upper = 8;
  EXPECT_TRUE(mayDifferBy(address, address, -3, 3, variables, differ[0]));
  EXPECT_FALSE(
      mayDifferBy(address, address, -3, 3, variables, {{0, greater}, {1, none}, {2, none}}));
}

TEST(Distance, neverDeniesWhatHappens) {
  MLIRContext context;
  std::mt19937 random(1);
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  unsigned denied = 0;
  for (unsigned round = 0; round < 20000; ++round) {
    std::vector<MapVariable> variables;
    for (int64_t count = pick(1, 3); count > 0; --count) {
      int64_t lower = pick(0, 2) ? 0 : pick(-2, 2);
      llvm::append_range(variables, makeVariables({{lower, lower + pick(0, 6)}}));
    }
    auto makeExpr = [&] {
      AffineExpr sum = getAffineConstantExpr(pick(-20, 20), &context);
      for (int64_t count = pick(1, 3); count > 0; --count) {
        AffineExpr term = getAffineDimExpr(pick(0, variables.size() - 1), &context);
        // Quotients and rests of sums, and of each other.
        for (int64_t depth = pick(0, 3); depth > 0; --depth) {
          if (pick(0, 1))
            term = term * pick(1, 4) + getAffineDimExpr(pick(0, variables.size() - 1), &context) +
                   pick(-2, 4);
          int64_t by = std::array{1, 2, 3, 4, 6, 8}[pick(0, 5)];
          if (int64_t kind = pick(0, 4))
            term = kind <= 2 ? term % by : kind == 3 ? term.floorDiv(by) : term.ceilDiv(by);
        }
        sum = sum + term * pick(-40, 40);
        if (pick(0, 3) == 0) // of two numbers, the one more by what the other is divided by
          sum = sum + (term + 2 * pick(-1, 2)).floorDiv(4) * pick(-40, 40) +
                term.floorDiv(2) * pick(-40, 40);
      }
      return sum;
    };
    AffineExpr first = makeExpr();
    AffineExpr second = pick(0, 1) ? makeExpr() : first + pick(-30, 30);
    int64_t least = pick(-8, 8), most = least + pick(0, 6);
    Differences known;
    for (size_t i = 0; i < variables.size(); ++i)
      if (int64_t from = pick(-3, 3), kind = pick(0, 5); kind < 3)
        known[i] = kind == 0   ? Interval{0, 0}
                   : kind == 1 ? Interval{from, std::nullopt}
                               : Interval{std::nullopt, from};
    bool happens = false;
    std::vector<Point> points = weir::test::enumerate(variables);
    std::vector<int64_t> values[2];
    for (const Point &point : points) {
      values[0].push_back(evaluate(first, point));
      values[1].push_back(evaluate(second, point));
    }
    for (auto [i, x] : llvm::enumerate(points))
      for (auto [j, y] : llvm::enumerate(points)) {
        bool isKnown = llvm::all_of(known, [&](const auto &entry) {
          const auto &[variable, range] = entry;
          int64_t difference = y[variable] - x[variable];
          return (!range.lower || difference >= *range.lower) &&
                 (!range.upper || difference <= *range.upper);
        });
        happens |=
            isKnown && values[1][j] - values[0][i] >= least && values[1][j] - values[0][i] <= most;
      }
    bool may = mayDifferBy(first, second, least, most, variables, known);
    EXPECT_TRUE(may || !happens) << "round " << round;
    denied += !may;
    const Point &point = points[pick(0, points.size() - 1)];
    EXPECT_EQ(evaluate(getDifference(first, second), point),
              evaluate(second, point) - evaluate(first, point));
  }
  EXPECT_GT(denied, 1000u);
}

TEST(Distance, takesAnyNumbers) {
  MLIRContext context;
  constexpr int64_t huge = std::numeric_limits<int64_t>::max();
  AffineExpr id = getAffineDimExpr(0, &context);
  for (auto [lower, upper] : {std::pair(-huge - 1, huge), std::pair<int64_t, int64_t>(0, huge)})
    for (int64_t factor : {huge, -huge, int64_t(3)}) {
      std::vector<MapVariable> variables = makeVariables({{lower, upper}});
      EXPECT_TRUE(mayDifferBy(id * factor, id * factor + huge, -3, 3, variables));
      EXPECT_TRUE(mayDifferBy(id * factor, id, -huge, huge, variables));
    }
}
