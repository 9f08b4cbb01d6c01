//===- DistanceTest.cpp - How close two addresses can come ----------------===//
//
// The oracle evaluates both expressions at every point.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Distance.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace weir;

static std::vector<MapVariable> makeVariables(ArrayRef<std::pair<int64_t, int64_t>> ranges) {
  std::vector<MapVariable> variables(ranges.size());
  for (auto [variable, range] : llvm::zip_equal(variables, ranges)) {
    variable.lower = range.first;
    variable.upper = range.second;
  }
  return variables;
}

static int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> point) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return point[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t left = evaluate(binary.getLHS(), point), right = evaluate(binary.getRHS(), point);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return left + right;
  case AffineExprKind::Mul:
    return left * right;
  case AffineExprKind::Mod:
    return ((left % right) + right) % right;
  default:
    return llvm::divideFloorSigned(left, right);
  }
}

/// All values of `expr`.
static std::vector<int64_t> enumerate(AffineExpr expr, ArrayRef<MapVariable> variables) {
  std::vector<int64_t> values;
  SmallVector<int64_t> point;
  for (const MapVariable &variable : variables)
    point.push_back(*variable.lower);
  while (true) {
    values.push_back(evaluate(expr, point));
    size_t at = 0;
    while (at < point.size() && point[at] == *variables[at].upper) {
      point[at] = *variables[at].lower;
      ++at;
    }
    if (at == point.size())
      return values;
    ++point[at];
  }
}

/// Digits of a tile's store: rows of 4 columns of 32 bytes, lanes of a vector.
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

TEST(Distance, neverDeniesWhatHappens) {
  MLIRContext context;
  std::mt19937 random(1);
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  unsigned denied = 0;
  for (unsigned round = 0; round < 2000; ++round) {
    std::vector<MapVariable> variables;
    for (int64_t count = pick(1, 3); count > 0; --count) {
      int64_t lower = pick(-2, 2);
      llvm::append_range(variables, makeVariables({{lower, lower + pick(0, 6)}}));
    }
    auto makeExpr = [&] {
      AffineExpr sum = getAffineConstantExpr(pick(-20, 20), &context);
      for (int64_t count = pick(1, 3); count > 0; --count) {
        AffineExpr term = getAffineDimExpr(pick(0, variables.size() - 1), &context);
        if (int64_t kind = pick(0, 2))
          term = kind == 1 ? term % pick(1, 4) : term.floorDiv(pick(1, 4));
        sum = sum + term * pick(-40, 40);
      }
      return sum;
    };
    AffineExpr first = makeExpr();
    AffineExpr second = pick(0, 1) ? makeExpr() : first + pick(-30, 30);
    int64_t least = pick(-8, 8), most = least + pick(0, 6);
    bool happens = false;
    std::vector<int64_t> others = enumerate(second, variables);
    for (int64_t from : enumerate(first, variables))
      for (int64_t to : others)
        happens |= to - from >= least && to - from <= most;
    bool may = mayDifferBy(first, second, least, most, variables);
    EXPECT_TRUE(may || !happens) << "round " << round;
    denied += !may;
    std::vector<int64_t> point;
    for (const MapVariable &variable : variables)
      point.push_back(*variable.upper);
    EXPECT_EQ(evaluate(getDifference(first, second), point),
              evaluate(second, point) - evaluate(first, point));
  }
  EXPECT_GT(denied, 200u);
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
