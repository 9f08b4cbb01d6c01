//===- FootprintTest.cpp - Bytes that accesses touch ----------------------===//
//
// Maps made by hand, and thousands made at random, compared with all their executions, visited
// one by one.
//
//===----------------------------------------------------------------------===//

#include "weir/CodeProofs/Footprint.h"

#include "Maps.h"

#include "gtest/gtest.h"

#include <set>

using namespace weir::spv;
using namespace weir::test;

namespace {
struct Coverage {
  Answer answer = Answer::Unknown;
  int64_t byte = -1; ///< first byte that is not covered
};
} // namespace

/// Whether the first bytes of binding 1 are all written.
static Coverage getCoverage(const AddressMap &map, int64_t bytes) {
  TouchedBytes touched = getTouched(map, 1, /*reads=*/false);
  if (findHole(touched.certain, bytes) < 0)
    return {Answer::Yes, -1};
  if (touched.possible)
    if (int64_t hole = findHole(*touched.possible, bytes); hole >= 0)
      return {Answer::No, hole};
  return {};
}

//===----------------------------------------------------------------------===//
// Reach and coverage
//===----------------------------------------------------------------------===//

TEST(Footprint, reach) {
  Kernel kernel(8, 8);
  MemoryAccess access = kernel.add(true, kernel.linear() * 4);
  Reach reach = *getReach(kernel.map, access);
  EXPECT_EQ(reach.begin, 0);
  EXPECT_EQ(reach.end, 256);
  EXPECT_TRUE(reach.isExact);
  access.guards = {Affine::of(49) - kernel.linear()};
  EXPECT_EQ(getReach(kernel.map, access)->end, 200);
  EXPECT_TRUE(getReach(kernel.map, access)->isExact);
  access.isCertain = false;
  EXPECT_FALSE(getReach(kernel.map, access)->isExact);
  access.address = kernel.map.atoms.makeOther({3, 12}) * 4;
  EXPECT_EQ(getReach(kernel.map, access)->begin, 12);
  EXPECT_EQ(getReach(kernel.map, access)->end, 52);
  access.address.reset();
  EXPECT_FALSE(getReach(kernel.map, access));
}

TEST(Footprint, reach_of_digits) {
  // 7 columns of 13 rows, one workgroup more than needed; transposed.
  Kernel kernel(12, 8);
  Atoms &atoms = kernel.map.atoms;
  Affine row = atoms.divide(kernel.linear(), 7), column = atoms.getRest(kernel.linear(), 7);
  MemoryAccess access =
      kernel.add(true, (column * 13 + row) * 4, {}, {Affine::of(90) - kernel.linear()});
  EXPECT_EQ(getReach(kernel.map, access)->end, 364);
  EXPECT_EQ(getCoverage(kernel.map, 364).answer, Answer::Yes);
  kernel.map.accesses[0].guards[0] = Affine::of(89) - kernel.linear();
  EXPECT_NE(getCoverage(kernel.map, 364).answer, Answer::Yes);
}

TEST(Footprint, reach_one_by_one) {
  // 160 of 192 invocations, 32 a row; rows are 96 apart.
  Kernel kernel(3, 64);
  Affine row = kernel.map.atoms.divide(kernel.linear(), 32);
  MemoryAccess access =
      kernel.add(true, (kernel.linear() + row * 64) * 4, {}, {Affine::of(159) - kernel.linear()});
  EXPECT_GT(getReach(kernel.map, access)->end, 1664);
  EXPECT_EQ(getReach(kernel.map, access, 1664)->end, 1664);
  EXPECT_EQ(getReach(kernel.map, access, 1660)->end, 1664);
  EXPECT_TRUE(getReach(kernel.map, access, 1660)->isExact);
  access.isCertain = false;
  EXPECT_FALSE(getReach(kernel.map, access, 1660)->isExact);
}

TEST(Footprint, an_execution_outside_of_many) {
  // All but the first 1000 of 64000 invocations, by a guard that merges no digits.
  Kernel kernel(1000, 64);
  Affine row = kernel.map.atoms.divide(kernel.linear(), 48);
  MemoryAccess access =
      kernel.add(true, (kernel.linear() + row * 7) * 4, {}, {row - Affine::of(30)});
  EXPECT_FALSE(getReach(kernel.map, access, 4000)->isExact);
  EXPECT_TRUE(getReach(kernel.map, access, 4000)->outside);
  EXPECT_FALSE(getReach(kernel.map, access, 1 << 20)->outside);
  access.isCertain = false;
  EXPECT_FALSE(getReach(kernel.map, access, 4000)->outside);
}

/// Guards on rows and columns bound the address, for any number of them.
TEST(Footprint, reach_of_guarded_digits) {
  // Columns 97 to 193 of 128 rows of 202, without the first 97, as 128 rows of 97.
  Kernel kernel(101, 256);
  Atoms &atoms = kernel.map.atoms;
  Affine row = atoms.divide(kernel.linear(), 202), column = atoms.getRest(kernel.linear(), 202);
  MemoryAccess &access = kernel.add(true, (row * 97 + column - Affine::of(97)) * 4, {},
                                    {column - Affine::of(97), Affine::of(193) - column});
  Reach reach = *getReach(kernel.map, access, 128 * 97 * 4);
  EXPECT_EQ(reach.begin, 0);
  EXPECT_EQ(reach.end, 128 * 97 * 4);
  access.guards[1] = Affine::of(194) - column;
  EXPECT_EQ(getReach(kernel.map, access, 128 * 97 * 4)->end, (128 * 97 + 1) * 4);
  access.guards[1] = Affine::of(96) - column;
  reach = *getReach(kernel.map, access);
  EXPECT_EQ(reach.begin, reach.end); // it never runs
}

TEST(Footprint, some_of_many_are_certain) {
  Kernel kernel(1000, 64);
  Affine clamped = kernel.map.atoms.clamp(kernel.linear() - Affine::of(60000), {0, 900});
  kernel.add(true, clamped * 4);
  TouchedBytes touched = getTouched(kernel.map, 1, /*reads=*/false);
  ASSERT_TRUE(touched.possible);
  EXPECT_EQ(touched.possible->back().end, 901 * 4);
  // The first execution's and the last one's.
  ASSERT_FALSE(touched.certain.empty());
  EXPECT_EQ(touched.certain.front().begin, 0);
  EXPECT_EQ(touched.certain.back().end, 901 * 4);
}

TEST(Footprint, somewhere_is_certain) {
  Kernel kernel(8, 8);
  Affine row = kernel.map.atoms.makeOther({2, 12});
  MemoryAccess &access = kernel.add(true, row * 4, {}, {Affine::of(49) - kernel.linear()});
  auto getSomewhere = [&] { return getTouched(kernel.map, 1, /*reads=*/false).somewhere; };
  EXPECT_EQ(getSomewhere(), (std::vector<ByteRange>{{8, 52}}));
  // Not where nobody, or data, comes to it.
  access.guards = {Affine::of(-1) - kernel.linear()};
  EXPECT_TRUE(getSomewhere().empty());
  access.guards = {row - Affine::of(3)};
  EXPECT_TRUE(getSomewhere().empty());
  access.guards.clear();
  access.isCertain = false;
  EXPECT_TRUE(getSomewhere().empty());
  access.isCertain = true;
  access.address = kernel.linear() * 4; // these bytes are known
  EXPECT_TRUE(getSomewhere().empty());

  std::vector<ByteRange> runs = {{0, 8}, {12, 20}};
  EXPECT_TRUE(doCover(runs, 0, {12, 20}));
  EXPECT_FALSE(doCover(runs, 0, {4, 16}));
  EXPECT_TRUE(doCover(runs, 4, {16, 24}));
  EXPECT_FALSE(doCover(runs, 4, {12, 20}));
}

TEST(Footprint, coverage) {
  Kernel kernel(8, 8);
  MemoryAccess &access = kernel.add(true, kernel.linear() * 4);
  EXPECT_EQ(getCoverage(kernel.map, 256).answer, Answer::Yes);
  Coverage more = getCoverage(kernel.map, 260);
  EXPECT_EQ(more.answer, Answer::No);
  EXPECT_EQ(more.byte, 256);
  EXPECT_TRUE(getTouched(kernel.map, 0, false).certain.empty());
  EXPECT_TRUE(getTouched(kernel.map, 1, true).possible->empty());
  // An access that may not run covers nothing for certain.
  access.isCertain = false;
  EXPECT_EQ(getCoverage(kernel.map, 256).answer, Answer::Unknown);
  access.isCertain = true;
  access.address = kernel.linear() * 8;
  EXPECT_EQ(getCoverage(kernel.map, 256).byte, 4);
}

TEST(Footprint, meetings) {
  using Runs = std::vector<ByteRange>;
  Runs first = {{0, 4}, {16, 20}}, second = {{8, 12}};
  EXPECT_FALSE(doMeet(first, 0, second, 0, 100));
  EXPECT_TRUE(doMeet(first, 8, second, 0, 100));
  EXPECT_TRUE(doMeet(first, -8, second, 0, 100));
  EXPECT_FALSE(doMeet(first, -8, second, 0, 8));
  EXPECT_FALSE(doMeet(first, 4, second, 0, 100));
  EXPECT_TRUE(doMeet(second, -11, first, 0, 100));
  EXPECT_FALSE(doMeet(second, -12, first, 0, 100));
}

TEST(Footprint, coverage_by_several) {
  // Tiles of 5 rows of 13: the last tile stores 3.
  Kernel kernel(3, 4);
  for (int row = 0; row < 5; ++row)
    kernel.add(true, (kernel.group * 20 + kernel.local) * 4 + Affine::of(row * 16), {},
               {Affine::of(12 - row) - kernel.group * 5});
  EXPECT_EQ(getCoverage(kernel.map, 208).answer, Answer::Yes);
  kernel.map.accesses[2].guards = {Affine::of(5) - kernel.group * 5};
  EXPECT_EQ(getCoverage(kernel.map, 208).answer, Answer::No);
}

TEST(Footprint, coverage_by_trips_and_guarded_trips) {
  // 2048 rows of 64 rounds of 192 bytes. All trips of a loop bring 64 of them, all but the last one
  // those behind, and what is before and behind the loop the rest: more runs, row by row, than are
  // kept.
  Kernel kernel(2048, 16);
  const Affine row = kernel.group * 12288 + kernel.local * 4, round = kernel.addLoop(64) * 192;
  const std::vector<Affine> isNotLast = {Affine::of(62) -
                                         kernel.map.atoms.getId(Atom::Kind::Trip, 0, 64)};
  kernel.add(true, row);
  kernel.add(true, row + round + Affine::of(64), {0});
  kernel.add(true, row + round + Affine::of(128), {0}, isNotLast);
  kernel.add(true, row + round + Affine::of(192), {0}, isNotLast);
  EXPECT_EQ(getCoverage(kernel.map, 2048 * 12288).answer, Answer::No);
  kernel.add(true, row + Affine::of(12224));
  EXPECT_EQ(getCoverage(kernel.map, 2048 * 12288).answer, Answer::Yes);
}

TEST(Footprint, tiles_of_two_widths) {
  EXPECT_EQ(getCoverage(makeTwoWidths(1600, 32).map, 400 * 416).answer, Answer::Yes);
  EXPECT_EQ(getCoverage(makeTwoWidths(2000, 32).map, 400 * 416).answer, Answer::No);
}

/// Copies a 7 x 11 image into each of 500 planes of 9 x 13, at row 1 and `column`, and writes
/// the border.
static Kernel makePadded(int64_t column) {
  Kernel kernel(4813, 8);
  Atoms &atoms = kernel.map.atoms;
  Affine number = kernel.linear();
  auto digit = [&](int64_t divisor, int64_t modulus) {
    return atoms.getRest(atoms.divide(number, divisor), modulus);
  };
  auto below = [&](int64_t count) { return std::vector<Affine>{Affine::of(count - 1) - number}; };
  kernel.add(true,
             (atoms.divide(number, 77) * 117 + digit(11, 7) * 13 + digit(1, 11) +
              Affine::of(13 + column)) *
                 4,
             {}, below(500 * 77));
  auto addBox = [&](int64_t rows, int64_t columns, int64_t begin) {
    kernel.add(true,
               (atoms.divide(number, rows * columns) * 117 + digit(columns, rows) * 13 +
                digit(1, columns) + Affine::of(begin)) *
                   4,
               {}, below(500 * rows * columns));
  };
  addBox(1, 13, 0);
  addBox(1, 13, 8 * 13);
  addBox(7, 1, 13);
  addBox(7, 1, 13 + 12);
  return kernel;
}

TEST(Footprint, around_a_slice) {
  Kernel kernel = makePadded(1);
  std::vector<MemoryAccess> &accesses = kernel.map.accesses;
  for (const MemoryAccess &one : accesses)
    for (const MemoryAccess &other : accesses)
      EXPECT_EQ(areApart(kernel.map, one, other), &one != &other);
  EXPECT_EQ(isFreeOfRaces(kernel.map, MemoryAccess::Root::Binding, 1).answer, Answer::Yes);
  EXPECT_EQ(getCoverage(kernel.map, 500 * 117 * 4).answer, Answer::Yes);
  // Without the last column, or where the image begins in the first one.
  accesses.pop_back();
  EXPECT_EQ(getCoverage(kernel.map, 500 * 117 * 4).byte, (13 + 12) * 4);
  Kernel moved = makePadded(0);
  EXPECT_FALSE(areApart(moved.map, moved.map.accesses[0], moved.map.accesses[3]));
  EXPECT_FALSE(areApart(moved.map, moved.map.accesses[3], moved.map.accesses[0]));
  EXPECT_TRUE(areApart(moved.map, moved.map.accesses[0], moved.map.accesses[4]));
}

//===----------------------------------------------------------------------===//
// At random, against all executions
//===----------------------------------------------------------------------===//

TEST(Footprint, what_is_apart_has_no_byte_in_common) {
  size_t apart = 0, proved = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Kernel kernel = Maker(seed).make();
    Brute brute(kernel.map);
    auto getBytes = [&](const MemoryAccess &access) {
      std::set<int64_t> bytes;
      for (const Event &event : brute.run(access.loops, access.guards, *access.address))
        for (int64_t byte = 0; byte < access.bytes; ++byte)
          bytes.insert(event.address + byte);
      return bytes;
    };
    const MemoryAccess &first = kernel.map.accesses.front(), &last = kernel.map.accesses.back();
    std::set<int64_t> firstBytes = getBytes(first), lastBytes = getBytes(last);
    bool areDisjoint = std::none_of(firstBytes.begin(), firstBytes.end(),
                                    [&](int64_t byte) { return lastBytes.contains(byte); });
    apart += areDisjoint;
    if (areApart(kernel.map, first, last)) {
      ASSERT_TRUE(areDisjoint) << seed;
      ++proved;
    }
  }
  EXPECT_GT(proved, apart / 2);
}

TEST(Footprint, answers_are_what_executions_do) {
  size_t known = 0, all = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Kernel kernel = Maker(seed).make();
    Brute brute(kernel.map);
    std::set<int64_t> written;
    for (const MemoryAccess &access : kernel.map.accesses) {
      int64_t begin = INT64_MAX, end = INT64_MIN;
      for (const Event &event : brute.run(access.loops, access.guards, *access.address)) {
        begin = std::min(begin, event.address);
        end = std::max(end, event.address + access.bytes);
        for (int64_t byte = 0; byte < access.bytes && access.writes; ++byte)
          written.insert(event.address + byte);
      }
      std::optional<Reach> reach = getReach(kernel.map, access);
      ASSERT_TRUE(reach) << seed;
      if (begin <= end) {
        ASSERT_LE(reach->begin, begin) << seed;
        ASSERT_GE(reach->end, end) << seed;
      }
      if (reach->isExact) {
        ASSERT_TRUE(begin > end ? reach->begin == reach->end : reach->begin == begin) << seed;
        ASSERT_TRUE(begin > end || reach->end == end) << seed;
      }
    }
    for (int64_t bytes : {8, 24, 40, 96}) {
      Coverage coverage = getCoverage(kernel.map, bytes);
      int64_t hole = 0;
      while (hole < bytes && written.contains(hole))
        ++hole;
      if (coverage.answer == Answer::Yes) {
        ASSERT_EQ(hole, bytes) << seed;
      }
      if (coverage.answer == Answer::No) {
        ASSERT_LT(hole, bytes) << seed;
        ASSERT_FALSE(written.contains(coverage.byte)) << seed;
      }
      known += coverage.answer != Answer::Unknown;
      ++all;
    }
  }
  EXPECT_GT(known, all * 8 / 10);
}
