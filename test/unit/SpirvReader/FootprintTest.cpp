//===- FootprintTest.cpp - Bytes that accesses touch ----------------------===//
//
// Maps made by hand, and thousands made at random, of which all executions are looked
// at one by one.
//
//===----------------------------------------------------------------------===//

#include "weir/SpirvReader/Footprint.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <functional>
#include <random>
#include <set>

using namespace weir::spv;

namespace {

/// A map of a kernel that reads binding 0 and writes binding 1, in workgroups of `size`.
struct Kernel {
  AddressMap map;
  Affine group, local;

  Kernel(int64_t groups, int64_t size) {
    map.launch.grid[0] = groups;
    map.localSize[0] = size;
    group = map.atoms.getId(Atom::Kind::Workgroup, 0, groups);
    local = map.atoms.getId(Atom::Kind::Local, 0, size);
    for (auto [number, factor] : group.terms)
      map.groupIds.push_back(number);
    for (auto [number, factor] : local.terms)
      map.localIds.push_back(number);
    map.hasLocalIds = true;
  }
  /// Returns the counter.
  Affine addLoop(int64_t trips) {
    map.loops.push_back({trips, false});
    return map.atoms.getId(Atom::Kind::Trip, uint32_t(map.loops.size() - 1), trips);
  }
  MemoryAccess &add(bool writes, const Affine &address, std::vector<uint32_t> loops = {},
                    std::vector<Affine> guards = {}) {
    MemoryAccess &access = map.accesses.emplace_back();
    access.root = MemoryAccess::Root::Binding;
    access.binding = writes;
    access.reads = !writes;
    access.writes = writes;
    access.address = address;
    access.bytes = 4;
    access.guards = std::move(guards);
    access.isCertain = true;
    access.loops = std::move(loops);
    access.position = position++;
    return access;
  }
  void addBarrier(std::vector<uint32_t> loops = {}) {
    map.barriers.push_back({{}, true, std::move(loops), position++});
  }
  Affine linear() const { return group * map.localSize[0] + local; }
  Answer mayOverwrite() const { return weir::spv::mayOverwrite(map, 0, 1).answer; }

  uint32_t position = 0;
};

} // namespace

namespace {
struct Coverage {
  Answer answer = Answer::Unknown;
  int64_t byte = -1; ///< that is not covered
};
} // namespace

/// Whether the first bytes of binding 1 are all written.
static Coverage getCoverage(const AddressMap &map, int64_t bytes) {
  Touched touched = getTouched(map, 1, /*reads=*/false);
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

TEST(Footprint, coverage) {
  Kernel kernel(8, 8);
  MemoryAccess &access = kernel.add(true, kernel.linear() * 4);
  EXPECT_EQ(getCoverage(kernel.map, 256).answer, Answer::Yes);
  Coverage more = getCoverage(kernel.map, 260);
  EXPECT_EQ(more.answer, Answer::No);
  EXPECT_EQ(more.byte, 256);
  EXPECT_TRUE(getTouched(kernel.map, 0, false).certain.empty());
  EXPECT_TRUE(getTouched(kernel.map, 1, true).possible->empty());
  // What may not run covers nothing, and yet it may.
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

//===----------------------------------------------------------------------===//
// Writing over what is read
//===----------------------------------------------------------------------===//

TEST(Footprint, same_element) {
  Kernel kernel(1000, 256);
  kernel.add(false, kernel.linear() * 4);
  kernel.add(true, kernel.linear() * 4);
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Yes);
  std::swap(kernel.map.accesses[0].position, kernel.map.accesses[1].position);
  EXPECT_EQ(kernel.mayOverwrite(), Answer::No);
}

TEST(Footprint, neighbour) {
  Kernel kernel(1000, 256);
  kernel.add(false, kernel.linear() * 4 + Affine::of(4));
  kernel.add(true, kernel.linear() * 4);
  Overwrite result = mayOverwrite(kernel.map, 0, 1);
  EXPECT_EQ(result.answer, Answer::No);
  EXPECT_EQ(result.byte, 4);
  EXPECT_EQ(result.read, &kernel.map.accesses[0]);
  // It may never run.
  kernel.map.accesses[0].isCertain = false;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Unknown);
}

TEST(Footprint, transposed) {
  Kernel kernel(1024, 64); // 256 x 256
  Atoms &atoms = kernel.map.atoms;
  Affine row = atoms.divide(kernel.linear(), 256), column = atoms.getRest(kernel.linear(), 256);
  kernel.add(false, (column * 256 + row) * 4);
  kernel.add(true, (row * 256 + column) * 4);
  EXPECT_EQ(kernel.mayOverwrite(), Answer::No);
  kernel.map.accesses[1].address = (column * 256 + row) * 4;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Yes);
}

TEST(Footprint, own_row) {
  // Each invocation reads all of its workgroup's row.
  for (bool hasBarrier : {false, true}) {
    Kernel kernel(512, 64);
    Affine trip = kernel.addLoop(64);
    kernel.add(false, (kernel.group * 64 + trip) * 4, {0});
    if (hasBarrier)
      kernel.addBarrier();
    kernel.add(true, kernel.linear() * 4);
    EXPECT_EQ(kernel.mayOverwrite(), hasBarrier ? Answer::Yes : Answer::No);
  }
}

TEST(Footprint, barrier_in_one_arm) {
  Kernel kernel(4, 64);
  Affine trip = kernel.addLoop(64);
  kernel.add(false, (kernel.group * 64 + trip) * 4, {0});
  kernel.addBarrier();
  kernel.add(true, kernel.linear() * 4);
  kernel.map.barriers[0].guards = {Affine::of(1) - kernel.group};
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Unknown);
  kernel.map.accesses[1].guards = kernel.map.barriers[0].guards;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Yes);
}

TEST(Footprint, rows_of_others) {
  // A barrier does not reach the next workgroup.
  Kernel kernel(512, 64);
  kernel.add(false, kernel.linear() * 4 + Affine::of(256));
  kernel.addBarrier();
  kernel.add(true, kernel.linear() * 4);
  EXPECT_EQ(kernel.mayOverwrite(), Answer::No);
}

TEST(Footprint, reads_in_a_later_trip) {
  // Rows in turn, read again in each: of its own row, and of the first.
  for (bool isOwn : {true, false}) {
    Kernel kernel(16, 8);
    Affine row = kernel.addLoop(4);
    Affine base = kernel.linear() * 4;
    kernel.add(false, (base + (isOwn ? row : Affine())) * 4, {0});
    kernel.add(true, (base + row) * 4, {0});
    EXPECT_EQ(kernel.mayOverwrite(), isOwn ? Answer::Yes : Answer::No);
  }
}

TEST(Footprint, two_passes) {
  // Both passes walk the row with counters of their own; the second writes.
  Kernel kernel(16, 8);
  Affine first = kernel.addLoop(128), second = kernel.addLoop(128);
  kernel.add(false, (kernel.group * 1024 + first * 8 + kernel.local) * 4, {0});
  kernel.add(false, (kernel.group * 1024 + second * 8 + kernel.local) * 4, {1});
  kernel.add(true, (kernel.group * 1024 + second * 8 + kernel.local) * 4, {1});
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Yes);
  // The first pass comes after the second.
  kernel.map.accesses[0].position = 9;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::No);
}

TEST(Footprint, what_may_be_anywhere) {
  Kernel kernel(8, 8);
  kernel.add(false, kernel.linear() * 4);
  kernel.add(true, kernel.linear() * 4);
  kernel.add(false, kernel.map.atoms.makeOther({0, 63}) * 4).position = 0;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Unknown);
  kernel.map.accesses.back().root = MemoryAccess::Root::Unknown;
  kernel.map.accesses.back().reads = false;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Unknown);
}

//===----------------------------------------------------------------------===//
// At random, against all executions
//===----------------------------------------------------------------------===//

namespace {

struct Event {
  std::vector<int64_t> values; ///< of atoms
  int64_t address;
};

/// Runs what the map says, one by one.
class Brute {
public:
  explicit Brute(const AddressMap &map) : map(map) {}

  int64_t evaluate(const Affine &sum, const std::vector<int64_t> &values) const {
    int64_t result = sum.constant;
    for (auto [number, factor] : sum.terms) {
      const Atom &atom = map.atoms[number];
      int64_t value = values[number];
      if (atom.kind == Atom::Kind::Digit) {
        value = evaluate(atom.of, values) / atom.divisor;
        if (atom.modulus)
          value %= atom.modulus;
      }
      result += factor * value;
    }
    return result;
  }

  /// All executions of what has these guards and loops.
  std::vector<Event> run(const std::vector<uint32_t> &loops, const std::vector<Affine> &guards,
                         const Affine &address) const {
    std::vector<Event> events;
    std::vector<int64_t> values(map.atoms.size());
    std::function<void(uint32_t)> choose = [&](uint32_t number) {
      if (number == map.atoms.size()) {
        if (std::all_of(guards.begin(), guards.end(),
                        [&](const Affine &guard) { return evaluate(guard, values) >= 0; }))
          events.push_back({values, evaluate(address, values)});
        return;
      }
      const Atom &atom = map.atoms[number];
      bool isChosen = atom.kind == Atom::Kind::Workgroup || atom.kind == Atom::Kind::Local ||
                      (atom.kind == Atom::Kind::Trip &&
                       std::find(loops.begin(), loops.end(), atom.number) != loops.end());
      for (int64_t value = 0; value <= (isChosen ? atom.range.max : 0); ++value) {
        values[number] = value;
        choose(number + 1);
      }
    };
    choose(0);
    return events;
  }

  /// When it happens in its invocation: trips and places in turn.
  std::vector<int64_t> getTime(const std::vector<uint32_t> &loops, uint32_t position,
                               const std::vector<int64_t> &values) const {
    // A loop's place is that of the first thing in it, before all that comes in it.
    std::vector<int64_t> time;
    for (uint32_t loop : loops) {
      uint32_t first = ~0u;
      auto look = [&](const std::vector<uint32_t> &around, uint32_t place) {
        if (std::find(around.begin(), around.end(), loop) != around.end())
          first = std::min(first, place);
      };
      for (const MemoryAccess &access : map.accesses)
        look(access.loops, access.position);
      for (const BarrierPlace &barrier : map.barriers)
        look(barrier.loops, barrier.position);
      time.push_back(2 * first);
      int64_t trip = 0;
      for (uint32_t number = 0; number < map.atoms.size(); ++number)
        if (map.atoms[number].kind == Atom::Kind::Trip && map.atoms[number].number == loop)
          trip = values[number];
      time.push_back(trip);
    }
    time.push_back(2 * position + 1);
    return time;
  }

  /// Barriers that an invocation has passed at a time.
  int64_t countBarriers(const std::vector<int64_t> &time, const std::vector<int64_t> &who) const {
    int64_t count = 0;
    for (const BarrierPlace &barrier : map.barriers)
      for (const Event &event : run(barrier.loops, barrier.guards, Affine()))
        count += isSame(event.values, who, map.groupIds) &&
                 isSame(event.values, who, map.localIds) &&
                 getTime(barrier.loops, barrier.position, event.values) < time;
    return count;
  }

  static bool isSame(const std::vector<int64_t> &a, const std::vector<int64_t> &b,
                     const std::vector<uint32_t> &ids) {
    return std::all_of(ids.begin(), ids.end(), [&](uint32_t id) { return a[id] == b[id]; });
  }

  bool mayOverwrite() const {
    for (const MemoryAccess &read : map.accesses)
      for (const MemoryAccess &write : map.accesses) {
        if (!read.reads || !write.writes)
          continue;
        std::vector<Event> reads = run(read.loops, read.guards, *read.address);
        std::vector<Event> writes = run(write.loops, write.guards, *write.address);
        for (const Event &first : reads)
          for (const Event &second : writes) {
            if (first.address >= second.address + write.bytes ||
                second.address >= first.address + read.bytes)
              continue;
            auto readTime = getTime(read.loops, read.position, first.values);
            auto writeTime = getTime(write.loops, write.position, second.values);
            bool isOrdered = false;
            if (isSame(first.values, second.values, map.groupIds)) {
              if (isSame(first.values, second.values, map.localIds))
                isOrdered = readTime < writeTime;
              else
                isOrdered =
                    countBarriers(readTime, first.values) < countBarriers(writeTime, second.values);
            }
            if (!isOrdered)
              return false;
          }
      }
    return true;
  }

  const AddressMap &map;
};

/// A kernel in the shape of real ones: a number of ids and counters, its digits, guards.
class Maker {
public:
  explicit Maker(unsigned seed) : random(seed), kernel(pick({1, 2, 3, 5}), pick({1, 2, 4, 6})) {}

  Kernel make() {
    for (int i = choose(3); i--;)
      trips.push_back(kernel.addLoop(pick({1, 2, 3})));
    // Everything in the first loop, or the first one around what comes second.
    bool isAround = choose(2) && !trips.empty();
    size_t reads = 1 + choose(2), writes = 1 + choose(2);
    std::vector<std::vector<uint32_t>> nests = {{}};
    if (!trips.empty())
      nests = isAround ? std::vector<std::vector<uint32_t>>{{0}, {0}} : nests;
    if (!isAround && !trips.empty())
      nests.push_back({0});
    if (trips.size() > 1) {
      std::vector<uint32_t> inner =
          isAround ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{1};
      nests.push_back(inner);
    }
    std::vector<Affine> maps = {makeAddress(nests.back()), makeAddress(nests.front())};
    size_t nest = 0;
    for (size_t i = 0; i < reads + writes; ++i) {
      const std::vector<uint32_t> &before = nests[nest];
      nest = std::min(nest + choose(2), nests.size() - 1);
      auto ends =
          std::mismatch(before.begin(), before.end(), nests[nest].begin(), nests[nest].end());
      if (choose(3) == 0)
        kernel.addBarrier({before.begin(), ends.first});
      Affine address = choose(2) ? makeAddress(nests[nest]) : fit(maps[choose(2)], nests[nest]);
      std::vector<Affine> guards;
      if (choose(3) == 0)
        guards.push_back(Affine::of(int64_t(choose(20))) - makeNumber(nests[nest]));
      kernel.add(i >= reads, address, nests[nest], guards);
    }
    return std::move(kernel);
  }

private:
  size_t choose(size_t count) { return random() % count; }
  int64_t pick(std::vector<int64_t> from) { return from[choose(from.size())]; }

  /// Ids and counters one after another, as a number.
  Affine makeNumber(const std::vector<uint32_t> &nest) {
    Affine number = kernel.local;
    int64_t size = kernel.map.localSize[0];
    for (uint32_t loop : nest)
      if (choose(2)) {
        number = number + trips[loop] * size;
        size *= kernel.map.loops[loop].most;
      }
    number = number + kernel.group * size;
    return choose(6) ? number : number * pick({2, 3}) + Affine::of(pick({0, 1}));
  }

  Affine makeAddress(const std::vector<uint32_t> &nest) {
    Affine number = makeNumber(nest);
    Atoms &atoms = kernel.map.atoms;
    if (choose(2)) {
      int64_t columns = pick({2, 3, 4, 5, 6});
      Affine row = atoms.divide(number, columns), column = atoms.getRest(number, columns);
      number = choose(2) ? row * columns + column : column * pick({3, 4, 8}) + row;
      if (choose(3) == 0)
        number = atoms.getRest(row, 2) + column * 2 + atoms.divide(row, 2) * (2 * columns);
    }
    for (uint32_t loop : nest)
      if (choose(2))
        number = number + trips[loop] * pick({1, 2, 7, 12});
    return number * 4;
  }

  /// Without the counters of other loops.
  Affine fit(Affine address, const std::vector<uint32_t> &nest) {
    for (auto [number, factor] : address.terms)
      if (!isInside(number, nest))
        return kernel.linear() * 4;
    return address;
  }
  bool isInside(uint32_t number, const std::vector<uint32_t> &nest) {
    const Atom &atom = kernel.map.atoms[number];
    if (atom.kind == Atom::Kind::Digit)
      return std::all_of(atom.of.terms.begin(), atom.of.terms.end(),
                         [&](auto term) { return isInside(term.first, nest); });
    return atom.kind != Atom::Kind::Trip ||
           std::find(nest.begin(), nest.end(), atom.number) != nest.end();
  }

  std::mt19937_64 random;
  Kernel kernel;
  std::vector<Affine> trips;
};

} // namespace

TEST(Footprint, answers_are_what_executions_do) {
  size_t known = 0, all = 0, yes = 0;
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
    Answer answer = kernel.mayOverwrite();
    if (answer != Answer::Unknown) {
      ASSERT_EQ(answer == Answer::Yes, brute.mayOverwrite()) << seed;
    }
    yes += answer == Answer::Yes;
    known += answer != Answer::Unknown;
    ++all;
  }
  EXPECT_GT(known, all * 8 / 10);
  EXPECT_GT(yes, 300u);
}
