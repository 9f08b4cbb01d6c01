//===- MemoryTest.cpp - One request of a subgroup -------------------------===//

#include "weir/Model/Memory.h"

#include "gtest/gtest.h"

#include <functional>

using namespace weir;
using namespace weir::model;

/// Returns the addresses of 32 lanes.
static std::vector<int64_t> makeAddresses(const std::function<int64_t(int64_t)> &get) {
  std::vector<int64_t> addresses;
  for (int64_t lane = 0; lane < 32; ++lane)
    addresses.push_back(get(lane));
  return addresses;
}

static size_t countSectors(int64_t stride, int64_t bytes, int64_t begin = 0) {
  return getSectors(makeAddresses([&](int64_t lane) { return begin + lane * stride; }), bytes)
      .size();
}

static int64_t countStrideTurns(int64_t stride, int64_t bytes) {
  return countTurns(makeAddresses([&](int64_t lane) { return lane * stride; }), bytes);
}

TEST(Sectors, NeighboursShareThem) {
  EXPECT_EQ(countSectors(4, 4), 4u);    // 128 bytes
  EXPECT_EQ(countSectors(16, 16), 16u); // 512 bytes
  EXPECT_EQ(countSectors(2, 2), 2u);    // bf16
  EXPECT_EQ(countSectors(0, 4), 1u);    // one address
  EXPECT_EQ(countSectors(4, 4, 512), 4u);
}

TEST(Sectors, StridesAndOffsetsWasteThem) {
  EXPECT_EQ(countSectors(8, 4), 8u);     // every other element: half of each sector
  EXPECT_EQ(countSectors(4, 4, 4), 5u);  // begins within one
  EXPECT_EQ(countSectors(4096, 4), 32u); // a column
  EXPECT_EQ(countSectors(4096, 16), 32u);
  EXPECT_EQ(countSectors(4096, 32, 16), 64u); // each lane crosses a border
}

TEST(Sectors, OrderDoesNotMatter) {
  EXPECT_EQ(getSectors(makeAddresses([](int64_t lane) { return (31 - lane) * 4; }), 4),
            (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(getSectors({}, 4).empty());
}

TEST(Banks, ConflictsByStride) {
  EXPECT_EQ(countStrideTurns(4, 4), 1);
  EXPECT_EQ(countStrideTurns(8, 4), 2);
  EXPECT_EQ(countStrideTurns(16, 4), 4);
  EXPECT_EQ(countStrideTurns(128, 4), 32); // a column of 32 words
  EXPECT_EQ(countStrideTurns(132, 4), 1);  // the same, padded by a word
  EXPECT_EQ(countStrideTurns(12, 4), 1);   // odd numbers of words
}

TEST(Banks, OneWordServesAllLanes) {
  EXPECT_EQ(countStrideTurns(0, 4), 1);
  EXPECT_EQ(countTurns(makeAddresses([](int64_t lane) { return lane % 2 * 4; }), 4), 1);
  EXPECT_EQ(countTurns(makeAddresses([](int64_t lane) { return lane * 2; }), 2), 1);
  // Two words of one bank are two turns.
  EXPECT_EQ(countTurns(makeAddresses([](int64_t lane) { return lane % 2 * 128; }), 4), 2);
}

TEST(Banks, WideAccessesAreServedInParts) {
  EXPECT_EQ(countStrideTurns(8, 8), 2);   // by halves
  EXPECT_EQ(countStrideTurns(16, 16), 4); // by quarters
  EXPECT_EQ(countIdealTurns(32, 4), 1);
  EXPECT_EQ(countIdealTurns(32, 8), 2);
  EXPECT_EQ(countIdealTurns(32, 16), 4);
  EXPECT_EQ(countIdealTurns(8, 16), 1);
  EXPECT_EQ(countStrideTurns(32, 16), 8);   // lanes of a quarter meet in pairs
  EXPECT_EQ(countStrideTurns(128, 16), 32); // all of a quarter meet
  EXPECT_EQ(countStrideTurns(144, 16), 4);  // the same, padded by 16 bytes
}
