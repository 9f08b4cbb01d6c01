//===- StridedBytesTest.cpp - Layouts compared by their bytes -------------===//
//
// The oracle writes down every byte of both views.
//
//===----------------------------------------------------------------------===//

#include "weir/Order/StridedBytes.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <random>
#include <set>

using namespace weir;

static constexpr int64_t most = std::numeric_limits<int64_t>::max();
static constexpr int64_t least = std::numeric_limits<int64_t>::min();

namespace {
class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(engine);
  }
  template <typename Range> auto pickFrom(const Range &range) {
    return range.begin()[pick(0, range.size() - 1)];
  }
  std::mt19937 engine;
};
} // namespace

/// Returns all bytes, sorted, some more than once.
static std::vector<int64_t> enumerate(const StridedBytes &view) {
  std::vector<int64_t> elements = {view.begin};
  for (const StridedBytes::Dim &dim : view.dims) {
    std::vector<int64_t> more;
    for (int64_t element : elements)
      for (int64_t i = 0; i < dim.size; ++i)
        more.push_back(element + i * dim.stride);
    elements = std::move(more);
  }
  std::vector<int64_t> bytes;
  for (int64_t element : elements)
    for (int64_t i = 0; i < view.elementBytes; ++i)
      bytes.push_back(element + i);
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

static bool meet(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j)
      return true;
    *i < *j ? ++i : ++j;
  }
  return false;
}

/// Makes strides at random.
static StridedBytes makeWild(Random &random) {
  StridedBytes view;
  view.elementBytes = random.pickFrom(std::initializer_list<int64_t>{1, 2, 4, 8, 16});
  view.begin = random.pick(-64, 64);
  int64_t unit = random.pick(0, 2) ? view.elementBytes : 1;
  for (int64_t rank = random.pick(0, 4); rank > 0; --rank)
    view.dims.push_back({random.pick(0, 20) ? random.pick(1, 5) : 0, unit * random.pick(-20, 40)});
  return view;
}

/// Makes a piece of a dense tensor: every k-th row, a block of columns, reversed dimensions, in
/// any order.
static StridedBytes makePiece(Random &random, int64_t elementBytes,
                              const std::vector<int64_t> &shape) {
  StridedBytes view;
  view.elementBytes = elementBytes;
  int64_t stride = elementBytes;
  for (int64_t size : shape) {
    int64_t step = random.pick(1, 3);
    int64_t first = random.pick(0, size - 1);
    int64_t count = random.pick(random.pick(0, 30) != 0, (size - first + step - 1) / step);
    view.begin += first * stride;
    if (count && random.pick(0, 3) == 0) {
      view.begin += (count - 1) * step * stride;
      step = -step;
    }
    view.dims.push_back({count, step * stride});
    stride *= size;
  }
  std::shuffle(view.dims.begin(), view.dims.end(), random.engine);
  // The same bytes as smaller elements.
  if (random.pick(0, 4) == 0) {
    view.dims.push_back({elementBytes, 1});
    view.elementBytes = 1;
  }
  return view;
}

static std::pair<StridedBytes, StridedBytes> makePair(Random &random) {
  if (random.pick(0, 2) == 0)
    return {makeWild(random), makeWild(random)};
  std::vector<int64_t> shape(random.pick(0, 4));
  for (int64_t &size : shape)
    size = random.pick(1, 9 - shape.size());
  int64_t elementBytes = random.pickFrom(std::initializer_list<int64_t>{1, 2, 4, 8, 16});
  std::pair<StridedBytes, StridedBytes> pair = {makePiece(random, elementBytes, shape),
                                                makePiece(random, elementBytes, shape)};
  if (random.pick(0, 4) == 0) // shifted by bytes, as memref.view can
    pair.second.begin += random.pick(-3, 3);
  return pair;
}

TEST(StridedBytes, RandomPairsAgreeWithTheirBytes) {
  Random random(1);
  int64_t pairs = 0, disjoint = 0, proved = 0, overlapping = 0, unknown = 0;
  while (pairs < 100000) {
    auto [a, b] = makePair(random);
    std::vector<int64_t> aBytes = enumerate(a), bBytes = enumerate(b);
    if (aBytes.empty() || bBytes.empty()) {
      ASSERT_EQ(compare(a, b), Sharing::Disjoint);
      continue;
    }
    if (aBytes.back() < bBytes.front() || bBytes.back() < aBytes.front()) {
      ASSERT_EQ(compare(a, b), Sharing::Disjoint);
      continue;
    }
    ++pairs;
    bool shared = meet(aBytes, bBytes);
    Sharing answer = compare(a, b);
    ASSERT_EQ(answer, compare(b, a));
    ASSERT_NE(answer, shared ? Sharing::Disjoint : Sharing::Overlap) << "pair " << pairs;
    disjoint += !shared;
    proved += answer == Sharing::Disjoint;
    overlapping += shared;
    unknown += answer == Sharing::Unknown;
  }
  std::cout << pairs << " pairs with meeting hulls: " << overlapping << " overlap, " << disjoint
            << " are disjoint, of which " << 100.0 * proved / disjoint << "% proved; " << unknown
            << " unknown\n";
  EXPECT_GE(disjoint, 20000);
  EXPECT_GE(overlapping, 20000);
  EXPECT_GE(proved * 100, disjoint * 95);
}

TEST(StridedBytes, CanonicalFormHasTheSameBytes) {
  Random random(2);
  for (int round = 0; round < 20000; ++round) {
    StridedBytes view = random.pick(0, 1) ? makeWild(random) : makePair(random).first;
    std::optional<StridedBytes> canonical = canonicalize(view);
    ASSERT_TRUE(canonical);
    std::vector<int64_t> before = enumerate(view), after = enumerate(*canonical);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    ASSERT_EQ(before, after);
    ByteRange hull = getHull(*canonical);
    ASSERT_EQ(hull.isEmpty(), before.empty());
    if (!before.empty()) {
      ASSERT_EQ(hull, (ByteRange{before.front(), before.back() + 1}));
      bool dense = int64_t(before.size()) == hull.end - hull.begin;
      if (canonical->dims.empty())
        ASSERT_TRUE(dense);
    }
    int64_t finer = canonical->elementBytes;
    for (const StridedBytes::Dim &dim : canonical->dims) {
      ASSERT_GT(dim.size, 1);
      ASSERT_GT(dim.stride, finer);
      finer = dim.stride;
    }
    ASSERT_EQ(canonicalize(*canonical), canonical);
  }
}

TEST(StridedBytes, TransposedTensorIsDense) {
  StridedBytes transposed = {8, 4, {{2, 4}, {5, 24}, {3, 8}}};
  EXPECT_EQ(canonicalize(transposed), (StridedBytes{8, 120, {}}));
  StridedBytes withGap = {8, 4, {{2, 4}, {5, 28}, {3, 8}}};
  EXPECT_EQ(canonicalize(withGap), (StridedBytes{8, 24, {{5, 28}}}));
}

TEST(StridedBytes, NoBytesMeetNothing) {
  StridedBytes all = {0, most, {}};
  EXPECT_EQ(compare(all, {16, 4, {{0, 4}}}), Sharing::Disjoint);
  EXPECT_EQ(compare(all, {16, 4, {{1, 4}}}), Sharing::Overlap);
  // Not even where the rest could not be counted.
  EXPECT_EQ(compare(all, {16, 4, {{most, most}, {0, 4}}}), Sharing::Disjoint);
  EXPECT_EQ(compare(all, {16, 4, {{most, most}}}), Sharing::Unknown);
}

TEST(StridedBytes, LargeSizesAreExact) {
  // Columns of a matrix of 2^30 rows of 2^30 bytes.
  int64_t n = int64_t(1) << 30;
  auto getColumn = [&](int64_t column) { return StridedBytes{column * 4, 4, {{n, n}}}; };
  EXPECT_EQ(compare(getColumn(0), getColumn(1)), Sharing::Disjoint);
  EXPECT_EQ(compare(getColumn(1), getColumn(1)), Sharing::Overlap);
  // Strides without a common divisor: the first meeting is far out.
  StridedBytes a = {0, 1, {{n, 1000003}}}, b = {500001, 1, {{n, 1000033}}};
  EXPECT_EQ(compare(a, b), Sharing::Overlap);
  StridedBytes few = {500001, 1, {{16000, 1000033}}};
  bool shared = false; // whether a multiple of 1000003 is among them
  for (int64_t i = 0; i < 16000; ++i)
    shared |= (500001 + i * 1000033) % 1000003 == 0;
  EXPECT_EQ(compare(a, few), shared ? Sharing::Overlap : Sharing::Disjoint);
  // The ends of the address space.
  StridedBytes last = {most - 1, 1, {}}, first = {least, 1, {}};
  EXPECT_EQ(compare(last, first), Sharing::Disjoint);
  EXPECT_EQ(compare(last, {most - 5, 1, {{3, 2}}}), Sharing::Overlap);
  EXPECT_EQ(compare(last, {most - 4, 1, {{2, 2}}}), Sharing::Disjoint);
  EXPECT_FALSE(canonicalize({most - 1, 2, {}}));
  EXPECT_FALSE(canonicalize({least, 1, {{2, -1}}}));
  EXPECT_FALSE(canonicalize({least, 1, {{2, least}}}));
  EXPECT_FALSE(canonicalize({0, most, {{2, least}}}));
}

TEST(StridedBytes, EndlessSearchIsUnknownInTheEnd) {
  // No two strides share a divisor and none is swallowed: whatever the answer,
  // it comes, and never a wrong one.
  Random random(3);
  int64_t unknown = 0;
  for (int round = 0; round < 200; ++round) {
    auto make = [&] {
      StridedBytes view;
      view.elementBytes = 1;
      view.begin = random.pick(0, 1 << 20);
      for (int rank = 0; rank < 4; ++rank)
        view.dims.push_back({random.pick(2, 12), random.pick(1 << 12, 1 << 20)});
      return view;
    };
    StridedBytes a = make(), b = make();
    Sharing answer = compare(a, b);
    unknown += answer == Sharing::Unknown;
    if (answer != Sharing::Unknown) {
      ASSERT_EQ(answer == Sharing::Overlap, meet(enumerate(a), enumerate(b)));
    }
  }
  EXPECT_LT(unknown, 200);
  std::cout << unknown << " of 200 unknown\n";
}
