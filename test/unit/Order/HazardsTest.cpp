//===- HazardsTest.cpp - Hazards, waves and barriers against an oracle ----===//
//
// Random command lists. The oracle compares every pair of dispatches, independently of the
// analysis's segments.
//
//===----------------------------------------------------------------------===//

#include "weir/Order/Hazards.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <random>

using namespace weir;

static bool mayShare(const CommandAccesses &list, int64_t a, int64_t b) {
  return a == b || std::count(list.mayShare[a].begin(), list.mayShare[a].end(), b);
}

/// Max byte of accesses in these lists, except accesses to everything.
static constexpr int64_t lastByte = 63;

static bool touches(const CommandAccesses &list, const OperandAccess &access, int64_t byte) {
  if (access.strided < 0)
    return access.range.begin <= byte && byte < access.range.end;
  const StridedBytes &bytes = list.strided[access.strided];
  for (int64_t i = 0; i < bytes.dims[0].size; ++i) {
    int64_t element = bytes.begin + i * bytes.dims[0].stride;
    if (element <= byte && byte < element + bytes.elementBytes)
      return true;
  }
  return false;
}

static bool overlap(const CommandAccesses &list, const OperandAccess &a, const OperandAccess &b) {
  for (int64_t byte = 0; byte <= lastByte; ++byte)
    if (touches(list, a, byte) && touches(list, b, byte))
      return true;
  return false;
}

static bool conflict(const CommandAccesses &list, int64_t i, int64_t j) {
  for (const OperandAccess &a : list.dispatches[i])
    for (const OperandAccess &b : list.dispatches[j])
      if ((a.writes || b.writes) && mayShare(list, a.allocation, b.allocation) &&
          (a.allocation != b.allocation || overlap(list, a, b)))
        return true;
  return false;
}

/// Returns the min number of points that stab all intervals (i, j] of conflicting pairs: greedy
/// by right end, over all pairs.
static int64_t countByOracle(const CommandAccesses &list) {
  int64_t count = 0, last = 0;
  for (int64_t j = 0; j < int64_t(list.dispatches.size()); ++j)
    for (int64_t i = last; i < j; ++i)
      if (conflict(list, i, j)) {
        ++count;
        last = j;
        break;
      }
  return count;
}

static CommandAccesses makeRandom(std::mt19937 &random) {
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  CommandAccesses list;
  int64_t allocations = pick(1, 5);
  list.mayShare.resize(allocations);
  for (int64_t a = 0; a < allocations; ++a)
    for (int64_t b = 0; b < a; ++b)
      if (pick(0, 7) == 0) {
        list.mayShare[a].push_back(b);
        list.mayShare[b].push_back(a);
      }
  for (int64_t size = 2; size <= 4; ++size)
    for (int64_t begin = 0; begin < 4; ++begin)
      for (int64_t bytes = 1; bytes <= 2; ++bytes)
        list.strided.push_back({begin, bytes, {{size, 4 + size % 3}}});
  list.dispatches.resize(pick(0, 24));
  for (DispatchAccesses &dispatch : list.dispatches) {
    int64_t operands = pick(0, 4);
    for (int64_t operand = 0; operand < operands; ++operand) {
      OperandAccess access;
      access.operand = operand;
      access.allocation = pick(0, allocations - 1);
      access.range.begin = pick(0, 20);
      access.range.end = access.range.begin + pick(1, 8);
      if (pick(0, 9) == 0)
        access.range = {0, std::numeric_limits<int64_t>::max()};
      if (pick(0, 2) == 0) {
        access.strided = pick(0, list.strided.size() - 1);
        access.range = getHull(list.strided[access.strided]);
      }
      access.writes = pick(0, 2) == 0;
      access.reads = !access.writes || pick(0, 3) == 0;
      dispatch.push_back(access);
    }
  }
  return list;
}

class RandomLists : public testing::TestWithParam<int> {};

TEST_P(RandomLists, EveryConflictIsSeparatedByTheFewestBarriers) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 100; ++round) {
    CommandAccesses list = makeRandom(random);
    int64_t n = list.dispatches.size();
    std::vector<Hazard> hazards = findHazards(list);
    EXPECT_EQ(hazards, findHazards(list));
    std::vector<PlannedBarrier> barriers = planOrder(hazards, std::vector<int64_t>(n)).barriers;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j)
        if (conflict(list, i, j)) {
          EXPECT_TRUE(std::any_of(barriers.begin(), barriers.end(),
                                  [&](const PlannedBarrier &barrier) {
                                    return i < barrier.before && barrier.before <= j;
                                  }))
              << i << " and " << j;
        }
    EXPECT_EQ(int64_t(barriers.size()), countByOracle(list));

    int64_t served = 0, last = 0;
    for (const PlannedBarrier &barrier : barriers) {
      ASSERT_FALSE(barrier.hazards.empty());
      served += barrier.hazards.size();
      for (const Hazard &hazard : barrier.hazards) {
        EXPECT_LT(hazard.from, barrier.before);
        EXPECT_GE(hazard.to, barrier.before);
      }
      // The forcing pairs are disjoint, which proves that the number is minimal.
      EXPECT_GE(barrier.hazards.front().from, last);
      EXPECT_EQ(barrier.hazards.front().to, barrier.before);
      last = barrier.before;
    }
    EXPECT_EQ(served, int64_t(hazards.size()));
  }
}

TEST_P(RandomLists, HazardsAreRealAndOfTheirKind) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 100; ++round) {
    CommandAccesses list = makeRandom(random);
    for (const Hazard &hazard : findHazards(list)) {
      ASSERT_LT(hazard.from, hazard.to);
      const OperandAccess &from = list.dispatches[hazard.from][hazard.fromOperand];
      const OperandAccess &to = list.dispatches[hazard.to][hazard.toOperand];
      EXPECT_TRUE(mayShare(list, from.allocation, to.allocation));
      if (from.allocation == to.allocation)
        EXPECT_TRUE(overlap(list, from, to));
      EXPECT_TRUE(hazard.kind == HazardKind::WAR ? from.reads : from.writes);
      EXPECT_TRUE(hazard.kind == HazardKind::RAW ? to.reads : to.writes);
    }
  }
}

TEST_P(RandomLists, WavesRiseWithOrderAndHoldNoConflict) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 100; ++round) {
    CommandAccesses list = makeRandom(random);
    int64_t n = list.dispatches.size();
    std::vector<int64_t> waves = getWaves(n, findHazards(list));
    ASSERT_EQ(int64_t(waves.size()), n);
    EXPECT_TRUE(std::is_sorted(waves.begin(), waves.end()));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j)
        EXPECT_FALSE(waves[i] == waves[j] && conflict(list, i, j)) << i << " and " << j;
    // The number of waves is minimal for the conflicts.
    if (n)
      EXPECT_EQ(waves.back(), countByOracle(list));
  }
}

/// Checks that barriers make visible the writes of their RAW and WAW hazards: each read needs
/// the last writer's bytes to be visible.
TEST_P(RandomLists, MemoryScopeReachesEveryReader) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 100; ++round) {
    CommandAccesses list = makeRandom(random);
    std::vector<PlannedBarrier> barriers =
        planOrder(findHazards(list), std::vector<int64_t>(list.dispatches.size())).barriers;
    for (size_t to = 0; to < list.dispatches.size(); ++to)
      for (const OperandAccess &read : list.dispatches[to]) {
        if (!read.reads || read.range.end > lastByte)
          continue;
        for (int64_t byte = read.range.begin; byte < read.range.end; ++byte) {
          if (!touches(list, read, byte))
            continue;
          int64_t writer = -1;
          for (size_t from = 0; from < to; ++from)
            for (const OperandAccess &write : list.dispatches[from])
              if (write.writes && write.allocation == read.allocation && touches(list, write, byte))
                writer = from;
          if (writer < 0)
            continue;
          bool visible = false;
          for (const PlannedBarrier &barrier : barriers) {
            if (barrier.before <= writer || barrier.before > int64_t(to))
              continue;
            for (const Hazard &hazard : barrier.hazards) {
              if (hazard.kind == HazardKind::WAR)
                continue;
              const OperandAccess &source = list.dispatches[hazard.from][hazard.fromOperand];
              visible |= hazard.from == writer && source.allocation == read.allocation &&
                         touches(list, source, byte);
            }
          }
          // A write that may touch the bytes through another allocation came
          // between; then its own hazards carry the order and the bytes.
          bool hidden = false;
          for (int64_t between = writer + 1; between < int64_t(to); ++between)
            for (const OperandAccess &write : list.dispatches[between])
              hidden |= write.writes && write.allocation != read.allocation &&
                        mayShare(list, write.allocation, read.allocation);
          for (const OperandAccess &write : list.dispatches[writer])
            hidden |= write.writes && write.allocation != read.allocation &&
                      mayShare(list, write.allocation, read.allocation);
          EXPECT_TRUE(visible || hidden) << writer << " to " << to << ", byte " << byte;
        }
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLists, testing::Range(0, 20));

TEST(Hazards, LongListsCostLinearTime) {
  // Quadratic behaviour would take minutes, and time out.
  CommandAccesses list;
  list.mayShare.resize(3);
  for (int64_t i = 0; i < 200000; ++i)
    list.dispatches.push_back(
        {{0, i % 3, {0, 1024}, true, false}, {1, (i + 1) % 3, {0, 1024}, false, true}});
  std::vector<Hazard> hazards = findHazards(list);
  EXPECT_LE(hazards.size(), 4u * list.dispatches.size());
  EXPECT_EQ(planOrder(hazards, std::vector<int64_t>(list.dispatches.size())).barriers.size(),
            list.dispatches.size() - 1);
}

TEST(Hazards, InterleavedViewsCostLinearTime) {
  // Tiles of a matrix, each written over and over, read whole now and then.
  constexpr int64_t tiles = 16, rows = 1024;
  CommandAccesses list;
  list.mayShare.resize(1);
  for (int64_t tile = 0; tile < tiles; ++tile)
    list.strided.push_back({tile * 64, 64, {{rows, tiles * 64}}});
  for (int64_t i = 0; i < 100000; ++i) {
    if (i % 100 == 0)
      list.dispatches.push_back({{0, 0, {0, rows * tiles * 64}, true, false}});
    else
      list.dispatches.push_back({{0, 0, getHull(list.strided[i % tiles]), false, true, i % tiles}});
  }
  std::vector<Hazard> hazards = findHazards(list);
  EXPECT_LE(hazards.size(), 4u * list.dispatches.size());
  // Only a tile's next write and the whole matrix wait.
  EXPECT_LE(planOrder(hazards, std::vector<int64_t>(list.dispatches.size())).barriers.size(),
            100000u / 100 * (2 + 100 / tiles));
}
