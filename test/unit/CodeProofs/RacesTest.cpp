//===- RacesTest.cpp - Races between invocations --------------------------===//
//
// Maps made by hand, and thousands made at random, compared with all pairs of executions,
// visited one by one.
//
//===----------------------------------------------------------------------===//

#include "weir/CodeProofs/Races.h"

#include "Maps.h"

#include "gtest/gtest.h"

using namespace weir::spv;
using namespace weir::test;

//===----------------------------------------------------------------------===//
// Writing over what is read
//===----------------------------------------------------------------------===//

TEST(Overwrite, same_element) {
  Kernel kernel(1000, 256);
  kernel.add(false, kernel.linear() * 4);
  kernel.add(true, kernel.linear() * 4);
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Yes);
  std::swap(kernel.map.accesses[0].position, kernel.map.accesses[1].position);
  EXPECT_EQ(kernel.mayOverwrite(), Answer::No);
}

TEST(Overwrite, neighbour) {
  Kernel kernel(1000, 256);
  kernel.add(false, kernel.linear() * 4 + Affine::of(4));
  kernel.add(true, kernel.linear() * 4);
  PairAnswer result = mayOverwrite(kernel.map, 0, 1);
  EXPECT_EQ(result.answer, Answer::No);
  EXPECT_EQ(result.byte, 4);
  EXPECT_EQ(result.first, &kernel.map.accesses[0]);
  // It may never run.
  kernel.map.accesses[0].isCertain = false;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Unknown);
}

TEST(Overwrite, transposed) {
  Kernel kernel(1024, 64); // 256 x 256
  Atoms &atoms = kernel.map.atoms;
  Affine row = atoms.divide(kernel.linear(), 256), column = atoms.getRest(kernel.linear(), 256);
  kernel.add(false, (column * 256 + row) * 4);
  kernel.add(true, (row * 256 + column) * 4);
  EXPECT_EQ(kernel.mayOverwrite(), Answer::No);
  kernel.map.accesses[1].address = (column * 256 + row) * 4;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Yes);
}

TEST(Overwrite, own_row) {
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

TEST(Overwrite, barrier_in_one_arm) {
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

TEST(Overwrite, rows_of_others) {
  // A barrier does not reach the next workgroup.
  Kernel kernel(512, 64);
  kernel.add(false, kernel.linear() * 4 + Affine::of(256));
  kernel.addBarrier();
  kernel.add(true, kernel.linear() * 4);
  EXPECT_EQ(kernel.mayOverwrite(), Answer::No);
}

TEST(Overwrite, reads_in_a_later_trip) {
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

TEST(Overwrite, reads_in_an_earlier_trip) {
  // Rows in turn, each read while the one before is written; more than are compared one by one.
  for (bool isNext : {true, false})
    for (bool isLate : {false, true})
      for (bool hasBarrier : {false, true}) {
        Kernel kernel(100, 256);
        Affine turn = kernel.addLoop(8), row = turn * 100 + kernel.group;
        if (hasBarrier)
          kernel.addBarrier({0});
        Affine next = row + Affine::of(100);
        kernel
            .add(false, ((isNext ? next : row) * 256 + kernel.local) * 4, {0},
                 {Affine::of(6) - turn})
            .isLate = isLate;
        kernel.add(true, ((isNext ? row : next) * 256 + kernel.local) * 4, {0},
                   {Affine::of(6) - turn});
        // A copy has read what its invocation has waited for before the barrier.
        const bool isFirst = isNext && (!isLate || hasBarrier);
        EXPECT_EQ(kernel.mayOverwrite() == Answer::Yes, isFirst) << isNext << isLate << hasBarrier;
      }
}

TEST(Overwrite, digits_of_one_access) {
  // The first row is read before the loop over all rows, more than are compared one by one.
  for (bool isFirst : {true, false}) {
    Kernel kernel(100, 256);
    Affine turn = kernel.addLoop(8);
    kernel.add(false, (kernel.linear() + Affine::of(isFirst ? 0 : 256 * 100)) * 4);
    kernel.add(true, ((turn * 100 + kernel.group) * 256 + kernel.local) * 4, {0});
    EXPECT_EQ(kernel.mayOverwrite(), Answer::Yes);
    std::swap(kernel.map.accesses[0].position, kernel.map.accesses[1].position);
    EXPECT_NE(kernel.mayOverwrite(), Answer::Yes);
  }
}

TEST(Overwrite, guards_bound_multiples) {
  // Of rows of 4,096 bytes a condition on bytes lets a workgroup read those of its own alone.
  for (int64_t bytes : {7 * 4096 - 1, 7 * 4096}) {
    Kernel kernel(100, 256);
    Affine turn = kernel.addLoop(8);
    Affine place = (kernel.group * 8 + turn) * 4096;
    kernel.add(false, place + Affine::of(4096) + kernel.local * 4, {0},
               {Affine::of(bytes) - turn * 4096});
    kernel.add(true, place + kernel.local * 4, {0});
    EXPECT_EQ(kernel.mayOverwrite() == Answer::Yes, bytes < 7 * 4096);
  }
}

TEST(Overwrite, two_passes) {
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

TEST(Overwrite, what_may_be_anywhere) {
  Kernel kernel(8, 8);
  kernel.add(false, kernel.linear() * 4);
  kernel.add(true, kernel.linear() * 4);
  kernel.add(false, kernel.map.atoms.makeOther({0, 63}) * 4).position = 0;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Unknown);
  kernel.map.accesses.back().root = MemoryAccess::Root::Unknown;
  kernel.map.accesses.back().reads = false;
  EXPECT_EQ(kernel.mayOverwrite(), Answer::Unknown);
}

TEST(Overwrite, barrier_of_other_memory) {
  for (bool orders : {true, false}) {
    Kernel kernel(512, 64);
    Affine trip = kernel.addLoop(64);
    kernel.add(false, (kernel.group * 64 + trip) * 4, {0});
    kernel.addBarrier().ordersBindings = orders;
    kernel.add(true, kernel.linear() * 4);
    EXPECT_EQ(kernel.mayOverwrite(), orders ? Answer::Yes : Answer::No);
  }
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

static constexpr auto binding = MemoryAccess::Root::Binding, shared = MemoryAccess::Root::Shared;

TEST(Races, own_bytes) {
  Kernel kernel(1000, 256);
  kernel.add(false, kernel.linear() * 4);
  kernel.add(true, kernel.linear() * 4);
  kernel.join(binding);
  EXPECT_EQ(kernel.isFreeOfRaces().answer, Answer::Yes);
  // All workgroups on the same; workgroup memory is each one's own.
  kernel.map.accesses[0].address = kernel.map.accesses[1].address = kernel.local * 4;
  PairAnswer result = kernel.isFreeOfRaces();
  EXPECT_EQ(result.answer, Answer::No);
  EXPECT_EQ(result.byte, 0);
  kernel.join(shared);
  EXPECT_EQ(kernel.isFreeOfRaces().answer, Answer::Yes);
}

TEST(Races, an_instruction_with_itself) {
  Kernel kernel(4, 8);
  kernel.add(true, kernel.map.atoms.divide(kernel.local, 2) * 4);
  kernel.join(shared);
  PairAnswer result = kernel.isFreeOfRaces();
  EXPECT_EQ(result.answer, Answer::No);
  EXPECT_EQ(result.first, result.second);
  kernel.map.accesses[0].isAtomic = true;
  EXPECT_EQ(kernel.isFreeOfRaces().answer, Answer::Yes);
  // One that is atomic races with one that isn't.
  kernel.add(false, Affine());
  kernel.join(shared);
  EXPECT_EQ(kernel.isFreeOfRaces().answer, Answer::No);
}

TEST(Races, first_of_a_subgroup) {
  // One invocation stores, all load behind a barrier, and then it stores again.
  for (int barriers : {0, 1, 2, 3}) {
    Kernel kernel(4, 64);
    auto store = [&] { kernel.add(true, Affine(), {}, {Affine() - kernel.local}); };
    store();
    if (barriers & 1)
      kernel.addBarrier();
    kernel.add(false, Affine());
    if (barriers & 2)
      kernel.addBarrier();
    store();
    kernel.join(shared);
    EXPECT_EQ(kernel.isFreeOfRaces().answer, barriers == 3 ? Answer::Yes : Answer::No) << barriers;
    for (BarrierSite &barrier : kernel.map.barriers)
      barrier.ordersShared = false;
    EXPECT_EQ(kernel.isFreeOfRaces().answer, Answer::No) << barriers;
  }
}

TEST(Races, around_the_back_edge) {
  // In each trip all store their own element and load their neighbour's.
  for (int barriers : {0, 1, 2, 3})
    for (int64_t trips : {1, 2, 1000}) {
      Kernel kernel(4, 64);
      kernel.addLoop(trips);
      kernel.add(true, kernel.local * 4, {0});
      if (barriers & 1)
        kernel.addBarrier({0});
      kernel.add(false, kernel.map.atoms.getRest(kernel.local + Affine::of(1), 64) * 4, {0});
      if (barriers & 2)
        kernel.addBarrier({0});
      kernel.join(shared);
      bool isFree = barriers == 3 || (barriers == 1 && trips == 1);
      EXPECT_EQ(kernel.isFreeOfRaces().answer, isFree ? Answer::Yes : Answer::No)
          << barriers << " in " << trips;
    }
}

TEST(Races, own_copies) {
  // Each invocation loads what it has copied in the trip before, then copies to the same bytes.
  for (bool hasBarrier : {true, false})
    for (bool isOwn : {true, false}) {
      Kernel kernel(1, 1024);
      Affine trip = kernel.addLoop(100);
      if (hasBarrier)
        kernel.addBarrier({0});
      kernel.add(false, (isOwn ? kernel.local : Affine::of(1023) - kernel.local) * 4, {0});
      kernel.add(true, kernel.local * 4, {0}).isLate = true;
      kernel.join(shared);
      EXPECT_EQ(kernel.isFreeOfRaces().answer == Answer::Yes, hasBarrier && isOwn)
          << hasBarrier << isOwn;
    }
}

TEST(Races, two_halves_in_turn) {
  // One barrier a trip is enough where trips use the two halves of a buffer in turn.
  for (bool inTurn : {true, false}) {
    Kernel kernel(1, 8);
    Affine trip = kernel.addLoop(6);
    Affine half = inTurn ? kernel.map.atoms.getRest(trip, 2) * 8 : Affine();
    Affine next = kernel.map.atoms.getRest(kernel.local + Affine::of(1), 8);
    kernel.add(true, (half + kernel.local) * 4, {0});
    kernel.addBarrier({0});
    kernel.add(false, (half + next) * 4, {0});
    kernel.join(shared);
    EXPECT_EQ(kernel.isFreeOfRaces().answer, inTurn ? Answer::Yes : Answer::No);
  }
}

TEST(Races, guards_bound_a_tile) {
  // Tiles of 8 columns, 5 columns in the last one; rows of 21.
  for (int64_t columns : {21, 22}) {
    Kernel kernel(30000, 8);
    Atoms &atoms = kernel.map.atoms;
    Affine row = atoms.divide(kernel.group, 3);
    Affine column = atoms.getRest(kernel.group, 3) * 8 + kernel.local;
    kernel.add(true, (row * 21 + column) * 4, {}, {Affine::of(columns - 1) - column});
    kernel.join(binding);
    EXPECT_EQ(kernel.isFreeOfRaces().answer, columns == 21 ? Answer::Yes : Answer::No);
  }
}

TEST(Races, tiles_of_two_widths) {
  auto answer = [](int64_t narrowFrom, int64_t begin, MemoryAccess::Root root) {
    Kernel kernel = makeTwoWidths(narrowFrom, begin);
    kernel.join(root);
    return kernel.isFreeOfRaces().answer;
  };
  EXPECT_EQ(answer(1600, 32, binding), Answer::Yes);
  EXPECT_NE(answer(1600, 31, binding), Answer::Yes); // a column of the last wide tile
  EXPECT_NE(answer(1599, 32, binding), Answer::Yes);
}

TEST(Races, workgroups_with_other_code) {
  // Two arms use workgroup memory each in its way. Which one it is, a workgroup has in common.
  for (int64_t from : {5, 4}) {
    Kernel kernel(1 << 20, 64);
    kernel.add(true, kernel.local * 4, {}, {Affine::of(4) - kernel.group});
    kernel.add(true, Affine::of(252) - kernel.local * 4, {}, {kernel.group - Affine::of(from)});
    kernel.join(shared);
    EXPECT_EQ(kernel.isFreeOfRaces().answer == Answer::Yes, from == 5);
  }
}

TEST(Races, what_may_be_anywhere) {
  Kernel kernel(1, 8);
  kernel.add(true, kernel.local * 4);
  kernel.addBarrier();
  kernel.add(false, kernel.map.atoms.makeOther({0, 7}) * 4);
  kernel.join(shared);
  EXPECT_EQ(kernel.isFreeOfRaces().answer, Answer::Yes);
  kernel.map.barriers.clear();
  EXPECT_EQ(kernel.isFreeOfRaces().answer, Answer::Unknown);
  kernel.map.accesses[1].root = MemoryAccess::Root::Unknown;
  EXPECT_EQ(kernel.isFreeOfRaces().answer, Answer::Unknown);
}

TEST(Races, barriers_for_some_order_nothing) {
  for (bool isUniform : {true, false}) {
    Kernel kernel(4, 8);
    std::vector<Affine> guards = {Affine::of(3) - (isUniform ? kernel.group : kernel.local)};
    kernel.add(true, kernel.local * 4, {}, guards);
    BarrierSite &barrier = kernel.addBarrier();
    barrier.guards = guards;
    barrier.isUniform = isUniform;
    kernel.add(false, kernel.map.atoms.getRest(kernel.local + Affine::of(1), 8) * 4, {}, guards);
    kernel.join(shared);
    EXPECT_EQ(kernel.isFreeOfRaces().answer, isUniform ? Answer::Yes : Answer::Unknown);
  }
}

TEST(Races, barriers_that_some_do_not_come_to) {
  Kernel kernel(4, 8);
  kernel.addLoop(3);
  BarrierSite &barrier = kernel.addBarrier({0});
  EXPECT_EQ(isUniform(kernel.map, barrier), Answer::Yes);
  barrier.isUniform = false;
  barrier.guards = {Affine::of(3) - kernel.local};
  EXPECT_EQ(isUniform(kernel.map, barrier), Answer::No);
  barrier.guards = {Affine::of(7) - kernel.local};
  EXPECT_EQ(isUniform(kernel.map, barrier), Answer::Yes);
  barrier.guards = {Affine() - kernel.group, Affine::of(-1) + kernel.map.atoms.makeOther({0, 5})};
  EXPECT_EQ(isUniform(kernel.map, barrier), Answer::Unknown);
  barrier.isCertain = false;
  barrier.guards = {Affine::of(3) - kernel.local};
  EXPECT_EQ(isUniform(kernel.map, barrier), Answer::Unknown);
}

TEST(Races, lanes_that_masks_name) {
  Kernel kernel(4, 40); // a warp and a quarter
  kernel.map.launch.subgroupSize = 32;
  kernel.addLoop(3);
  LaneSite site;
  site.isCertain = true;
  site.loops = {0};
  EXPECT_EQ(doLanesMeet(kernel.map, site), Answer::Unknown);
  site.mask = ~0u;
  EXPECT_EQ(doLanesMeet(kernel.map, site), Answer::Yes);
  site.mask = ~(1u << 9);
  EXPECT_EQ(doLanesMeet(kernel.map, site), Answer::No);
  site.guards = {Affine::of(-1) - kernel.group};
  EXPECT_EQ(doLanesMeet(kernel.map, site), Answer::Yes); // it never runs
  // Some lanes of each warp.
  Affine lane = kernel.map.atoms.getRest(kernel.local, 32);
  site.guards = {Affine::of(7) - lane};
  for (auto [mask, answer] : {std::pair(0xffu, Answer::Yes),
                              {0x1ffu, Answer::No},
                              {0x7fu, Answer::No},
                              {~0u, Answer::No}}) {
    site.mask = mask;
    EXPECT_EQ(doLanesMeet(kernel.map, site), answer) << mask;
  }
  // All lanes of a warp of many, and all but one.
  Kernel many(5000, 256);
  Affine warp = many.map.atoms.divide(many.linear(), 32);
  LaneSite all;
  all.guards = {Affine::of(39990) - warp};
  all.isCertain = true;
  all.mask = ~0u;
  many.map.launch.subgroupSize = 32;
  EXPECT_EQ(doLanesMeet(many.map, all), Answer::Yes);
  all.mask = ~0u >> 1;
  EXPECT_EQ(doLanesMeet(many.map, all), Answer::No);
  all.mask = ~0u;
  all.guards = {many.map.atoms.divide(many.linear() + Affine::of(1), 32) - Affine::of(1)};
  EXPECT_EQ(doLanesMeet(many.map, all), Answer::Unknown);
  for (const Affine &guard : {Affine::of(1 << 16) - many.linear(), many.linear() - Affine::of(63),
                              many.linear() * 2 - Affine::of(64)}) {
    all.guards = {guard};
    EXPECT_EQ(doLanesMeet(many.map, all), Answer::Unknown);
  }
  for (const Affine &guard :
       {Affine::of((1 << 16) - 1) - many.linear(), many.linear() - Affine::of(64)}) {
    all.guards = {guard};
    EXPECT_EQ(doLanesMeet(many.map, all), Answer::Yes);
  }
  all.guards = {many.map.atoms.divide(many.linear(), 48) - Affine::of(1)};
  EXPECT_EQ(doLanesMeet(many.map, all), Answer::Unknown);
  // All lanes of the second warp, which has eight.
  site.guards = {kernel.local - Affine::of(32)};
  EXPECT_EQ(doLanesMeet(kernel.map, site), Answer::Yes);
  site.guards = {kernel.local - Affine::of(33)};
  EXPECT_EQ(doLanesMeet(kernel.map, site), Answer::No);
  site.isCertain = false;
  EXPECT_EQ(doLanesMeet(kernel.map, site), Answer::Unknown);
}

TEST(Races, barriers_of_subgroups_order_no_others) {
  for (int64_t subgroup : {8, 4}) {
    Kernel kernel(4, 8);
    kernel.map.launch.subgroupSize = subgroup;
    kernel.map.hasSubgroupOrder = true;
    kernel.add(true, kernel.local * 4);
    kernel.add(false, Affine::of(4));
    kernel.join(shared);
    EXPECT_EQ(kernel.isFreeOfRaces().answer, subgroup == 8 ? Answer::Unknown : Answer::No);
  }
}

//===----------------------------------------------------------------------===//
// At random, against all executions
//===----------------------------------------------------------------------===//

TEST(Races, answers_are_what_executions_do) {
  size_t known = 0, all = 0, mayOverwrite = 0, areFree = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Kernel kernel = Maker(seed).make();
    Answer answer = kernel.mayOverwrite();
    if (answer != Answer::Unknown) {
      ASSERT_EQ(answer == Answer::Yes, Brute(kernel.map).mayOverwrite()) << seed;
    }
    mayOverwrite += answer == Answer::Yes;
    known += answer != Answer::Unknown;
    for (MemoryAccess::Root root : {binding, shared}) {
      kernel.join(root);
      answer = kernel.isFreeOfRaces().answer;
      if (answer != Answer::Unknown) {
        ASSERT_EQ(answer == Answer::Yes, Brute(kernel.map).isFreeOfRaces()) << seed;
      }
      areFree += answer == Answer::Yes;
      known += answer != Answer::Unknown;
    }
    all += 3;
  }
  EXPECT_GT(known, all * 8 / 10);
  EXPECT_GT(mayOverwrite, 300u);
  EXPECT_GT(areFree, 1000u);
}

//===----------------------------------------------------------------------===//
// Matrices that subgroups load and store
//===----------------------------------------------------------------------===//

namespace {
/// A workgroup of four subgroups of 32 whose invocations are known by subgroup and lane. Each
/// subgroup stores 1024 bytes of workgroup memory together.
struct Matrices {
  AddressMap map;
  Affine subgroup, lane;

  Matrices() {
    map.launch.subgroupSize = 32;
    map.localSize[0] = 128;
    subgroup = map.atoms.getId(Atom::Kind::Subgroup, 0, 4);
    lane = map.atoms.getId(Atom::Kind::Lane, 0, 32);
    map.laneIds = {subgroup.terms[0].first, lane.terms[0].first};
    map.hasLaneIds = true;
    add(true, subgroup * 1024, 1024).isCooperative = true;
  }
  MemoryAccess &add(bool writes, const Affine &address, int64_t bytes) {
    MemoryAccess &access = map.accesses.emplace_back();
    access.root = MemoryAccess::Root::Shared;
    access.reads = !writes;
    access.writes = writes;
    access.address = address;
    access.bytes = bytes;
    access.isCertain = true;
    access.position = uint32_t(map.accesses.size() + map.barriers.size());
    return access;
  }
  Answer isFree() const { return isFreeOfRaces(map, MemoryAccess::Root::Shared, 0).answer; }
};
} // namespace

TEST(CooperativeRaces, subgroups_store_apart) {
  Matrices matrices;
  EXPECT_EQ(matrices.isFree(), Answer::Yes);
  matrices.map.accesses[0].bytes = 1025; // a byte of the next
  EXPECT_EQ(matrices.isFree(), Answer::No);
  matrices.map.accesses[0].bytes = 1024;
  matrices.map.accesses[0].isCooperative = false; // all lanes would write all of it
  EXPECT_EQ(matrices.isFree(), Answer::No);
}

TEST(CooperativeRaces, nobody_knows_who_stores_an_element) {
  // Even if each invocation loads what it would have in the order of lanes.
  Matrices matrices;
  matrices.add(false, matrices.subgroup * 1024 + matrices.lane * 32, 32);
  EXPECT_EQ(matrices.isFree(), Answer::No);
  Matrices ordered;
  ordered.map.barriers.push_back({});
  ordered.map.barriers[0].isCertain = ordered.map.barriers[0].isUniform =
      ordered.map.barriers[0].ordersShared = true;
  ordered.map.barriers[0].position = 2;
  ordered.add(false, ordered.subgroup * 1024 + ordered.lane * 32, 32);
  EXPECT_EQ(ordered.isFree(), Answer::Yes);
  ordered.map.accesses[1].isPrivate = true; // barriers show it to nobody
  EXPECT_EQ(ordered.isFree(), Answer::Unknown);
  ordered.map.accesses[1].isPrivate = false;
  ordered.map.barriers[0].ordersShared = false;
  EXPECT_EQ(ordered.isFree(), Answer::No);
}

TEST(CooperativeRaces, another_matrix_is_no_order) {
  // One instruction that stores what another of the same subgroup loads.
  Matrices matrices;
  matrices.add(false, matrices.subgroup * 1024, 1024).isCooperative = true;
  EXPECT_EQ(matrices.isFree(), Answer::No);
}

TEST(CooperativeRaces, trips_of_a_loop_are_executions) {
  Matrices matrices;
  matrices.map.loops.push_back({4, false});
  matrices.map.atoms.getId(Atom::Kind::Trip, 0, 4);
  matrices.map.accesses[0].loops = {0};
  EXPECT_NE(matrices.isFree(), Answer::Yes);
  matrices.map.barriers.push_back({});
  BarrierSite &barrier = matrices.map.barriers[0];
  barrier.isCertain = barrier.isUniform = barrier.ordersShared = true;
  barrier.loops = {0};
  barrier.position = 2;
  EXPECT_EQ(matrices.isFree(), Answer::Yes);
}

TEST(CooperativeRaces, subgroups_that_are_not_told_apart) {
  Matrices matrices;
  matrices.map.laneIds.clear();
  matrices.map.hasLaneIds = false;
  matrices.map.accesses[0].address = Affine();
  EXPECT_NE(matrices.isFree(), Answer::Yes);
  matrices.map.localSize[0] = 32; // only one
  EXPECT_EQ(matrices.isFree(), Answer::Yes);
}
