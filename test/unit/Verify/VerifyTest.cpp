//===- VerifyTest.cpp - Plans that hold, and edits that break them --------===//

#include "weir/Verify/Verify.h"

#include "test/unit/Artifact/Sample.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <functional>
#include <random>

using namespace weir;
using namespace weir::test;

static const Claim &findClaim(const std::vector<Claim> &claims, const std::string &what) {
  for (const Claim &claim : claims)
    if (claim.what == what)
      return claim;
  throw std::logic_error("no claim " + what);
}

static bool allHold(const std::vector<Claim> &claims) {
  return std::all_of(claims.begin(), claims.end(), [](const Claim &claim) { return claim.holds; });
}

TEST(Verify, sample_holds) {
  std::vector<Claim> claims = verify(makeSample());
  ASSERT_EQ(claims.size(), 19u);
  for (const Claim &claim : claims)
    EXPECT_TRUE(claim.holds) << claim.what << ": " << claim.detail;
  EXPECT_NE(findClaim(claims, "barriers").detail.find("3 barriers"), std::string::npos);
  EXPECT_NE(findClaim(claims, "barriers").detail.find("proved minimal"), std::string::npos);
  EXPECT_EQ(findClaim(claims, "order").entry, "main");
  EXPECT_EQ(findClaim(claims, "order").target, "vulkan");
}

//===----------------------------------------------------------------------===//
// One edit each
//===----------------------------------------------------------------------===//

namespace {
struct Edit {
  const char *name;
  const char *claim;  ///< the claim that must fail
  const char *detail; ///< part of its counterexample
  std::function<void(Artifact &, Plan &)> apply;
};
} // namespace

/// Commands of the sample: dispatches are 0, 1, 3, 5, 7, barriers 2, 4, 6.
static const Edit edits[] = {
    {"no_barrier_before_the_sum", "order",
     "dispatch 2 (@add, sample.mlir:2:1) reads bytes [0, 256) of the arena that dispatch 0 "
     "(@scale, sample.mlir:1:1) writes, with no barrier between",
     [](Artifact &, Plan &plan) { plan.commands.erase(plan.commands.begin() + 2); }},
    {"no_barrier_for_the_war", "order", "that dispatch 2 (@add, sample.mlir:2:1) reads",
     [](Artifact &, Plan &plan) { plan.commands.erase(plan.commands.begin() + 4); }},
    {"no_last_barrier", "order", "and no barrier between makes them visible",
     [](Artifact &, Plan &plan) { plan.commands.erase(plan.commands.begin() + 6); }},
    {"memory_scope_lacks_a_view", "order", "no barrier between makes them visible",
     [](Artifact &, Plan &plan) { plan.commands[2].memory.pop_back(); }},
    {"memory_scope_lacks_one_byte", "order", "bytes [511, 512) of the arena",
     [](Artifact &, Plan &plan) { --plan.commands[2].memory[1].bytes; }},
    {"ordered_dispatches_swapped", "contents", "as \"t1\", which nothing wrote before",
     [](Artifact &, Plan &plan) { std::swap(plan.commands[1], plan.commands[3]); }},
    {"reader_after_the_writer_of_its_bytes", "contents",
     "operand 0 of dispatch 3 (@add, sample.mlir:2:1) reads bytes [0, 256) of the arena as \"t0\", "
     "which holds \"t3\" since dispatch 2 (@scale, sample.mlir:3:1) wrote it",
     [](Artifact &, Plan &plan) { std::swap(plan.commands[3], plan.commands[5]); }},
    {"hazard_of_the_wrong_kind", "barriers", "is not what the first operand's effect says",
     [](Artifact &, Plan &plan) { plan.commands[4].hazards[0].kind = HazardKind::RAW; }},
    {"hazard_of_disjoint_operands", "barriers", "share no bytes",
     [](Artifact &, Plan &plan) { plan.commands[4].hazards[0].fromOperand = 1; }},
    {"hazard_of_no_dispatch", "barriers", "touches nothing",
     [](Artifact &, Plan &plan) { plan.commands[4].hazards[0].to = 99; }},
    {"hazard_on_one_side", "barriers", "does not cross the barrier",
     [](Artifact &, Plan &plan) { plan.commands[4].hazards[0] = {HazardKind::RAW, 0, 2, 2, 0}; }},
    {"barrier_without_hazards", "barriers", "states no hazard",
     [](Artifact &, Plan &plan) { plan.commands[4].hazards.clear(); }},
    {"barrier_twice", "barriers", "not proved minimal",
     [](Artifact &, Plan &plan) {
       plan.commands.insert(plan.commands.begin() + 2, plan.commands[2]);
     }},
    {"forcing_pair_that_another_barrier_serves", "barriers", "not proved minimal",
     [](Artifact &, Plan &plan) {
       std::swap(plan.commands[6].hazards[0], plan.commands[6].hazards[1]);
       plan.commands[4].hazards[0] = {HazardKind::WAW, 0, 2, 3, 2};
     }},
    {"conflicting_dispatches_in_one_wave", "waves", "both of wave 0",
     [](Artifact &, Plan &plan) { plan.commands[3].wave = 0; }},
    {"slot_moved_without_its_views", "slots", "is in no slot",
     [](Artifact &, Plan &plan) { plan.slots[3].offset = 256; }},
    {"slot_moved_onto_a_live_one", "slots", "share bytes and are both live in wave 0",
     [](Artifact &, Plan &plan) {
       plan.slots[1].offset = 0;
       plan.commands[1].operands[2].offset = 0;
       plan.commands[3].operands[1].offset = 0;
     }},
    {"slots_in_one_closed_wave", "slots", "\"t0\" and \"t3\" share bytes",
     [](Artifact &, Plan &plan) { plan.slots[0].lastWave = 2; }},
    {"slot_that_ends_early", "slots", "live in wave 1",
     [](Artifact &, Plan &plan) { plan.slots[0].lastWave = 0; }},
    {"slot_that_ends_before_it_begins", "slots", "in waves 0 to -1",
     [](Artifact &, Plan &plan) { plan.slots[0].lastWave = -1; }},
    {"slot_beyond_the_arena", "slots", "the arena has 768 bytes",
     [](Artifact &, Plan &plan) { plan.slots[2].offset = 768; }},
    {"slot_too_short", "slots", "is in no slot",
     [](Artifact &, Plan &plan) { plan.slots[2].bytes = 255; }},
    {"read_before_any_write", "contents", "reads bytes [0, 256) of the arena",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[2] = {{2, 0, 256}, 2}; }},
    {"write_that_does_not_cover", "contents", "holds no whole value since dispatch 0",
     [](Artifact &, Plan &plan) { plan.kernels[0].operands[2].coversAll = false; }},
    {"update_reads_the_value_before", "contents", "as \"t1\", which nothing wrote before",
     [](Artifact &, Plan &plan) {
       plan.kernels[0].operands[2] = {Access::Update, false, 256, 16, std::nullopt};
       plan.commands[0].operands[2].before = 4;
     }},
    {"covering_update_of_a_value_before", "ranges", "is inserted into, but not written in part",
     [](Artifact &, Plan &plan) {
       plan.kernels[0].operands[2].access = Access::Update;
       plan.commands[0].operands[2].before = 4;
     }},
    {"slice_that_leaves_bytes", "contents", "which nothing wrote before",
     [](Artifact &, Plan &plan) {
       plan.kernels[0].operands[2].coversAll = false;
       plan.kernels[0].operands[2].slice = {{64, 192, 256, 1}};
     }},
    {"slice_beyond_the_operand", "ranges",
     "has the slice [begin, bytes, stride, count] = [64, 64, 128, 3]",
     [](Artifact &, Plan &plan) {
       plan.kernels[0].operands[2].coversAll = false;
       plan.kernels[0].operands[2].slice = {{64, 64, 128, 3}};
     }},
    {"write_declared_none", "contents", "which nothing wrote before",
     [](Artifact &, Plan &plan) { plan.kernels[0].operands[2].access = Access::None; }},
    {"sum_of_nothing", "barriers", "touches nothing",
     [](Artifact &, Plan &plan) { plan.kernels[1].operands[0].access = Access::None; }},
    {"second_operand_of_the_sum_unread", "barriers", "touches nothing",
     [](Artifact &, Plan &plan) { plan.kernels[1].operands[1].access = Access::None; }},
    {"result_never_written", "contents", "result \"y\" is to be in bytes [0, 256) of result \"y\"",
     [](Artifact &, Plan &plan) { plan.commands.pop_back(); }},
    {"result_of_another_value", "contents",
     "which holds \"y\" since dispatch 4 (@add, sample.mlir:4:1) wrote it",
     [](Artifact &, Plan &plan) { plan.resultValues[0] = 5; }},
    {"read_as_another_value", "contents", "as \"t3\", which holds \"t0\" since dispatch 0",
     [](Artifact &, Plan &plan) { plan.commands[3].operands[0].value = 6; }},
    {"written_as_another_value", "contents", "as \"t0\", which holds \"t2\" since dispatch 0",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[2].value = 5; }},
    {"argument_read_as_another", "contents", "as \"w\", which holds \"x\" from the start",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[0].value = 1; }},
    {"other_bytes_of_the_value", "contents", "which holds other bytes of \"t0\" since dispatch 0",
     [](Artifact &, Plan &plan) {
       plan.values[3].bytes = 512;
       plan.commands[3].operands[0].from = 256;
     }},
    {"operand_of_no_value", "contents",
     "operand 0 of dispatch 0 (@scale, sample.mlir:1:1) names no value",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[0].value = -1; }},
    {"constant_of_a_value", "contents", "is a value in the constants",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[1].value = 0; }},
    {"result_in_an_argument_that_is_not_donated", "read-only",
     "result \"y\" lives in argument \"x\", which is not donated",
     [](Artifact &, Plan &plan) {
       plan.allocations[0].result = 0;
       plan.allocations[2] = {AllocationKind::Constants, 0, 268};
       plan.allocations[3] = {AllocationKind::Arena, 0, 768};
       plan.allocations.pop_back();
       plan.commands.clear();
     }},
    {"result_in_an_argument_and_its_own", "ranges", "as an earlier one does",
     [](Artifact &, Plan &plan) { plan.allocations[0].result = 0; }},
    {"no_such_result_in_an_argument", "ranges", "allocation 0 holds result 1 of 1",
     [](Artifact &, Plan &plan) { plan.allocations[0].result = 1; }},
    {"result_in_the_arena", "ranges", "but is not an argument",
     [](Artifact &, Plan &plan) { plan.allocations[4].result = 0; }},
    {"result_in_an_argument_of_other_size", "ranges", "holds result \"z\", which has 4",
     [](Artifact &artifact, Plan &plan) {
       artifact.manifest.entries[0].results.push_back({"z", "F32", {1}, "", false});
       plan.allocations[0].result = 1;
     }},
    {"argument_without_a_value", "ranges", "1 value for 2 arguments",
     [](Artifact &, Plan &plan) { plan.argumentValues.pop_back(); }},
    {"two_arguments_of_one_value", "ranges", "\"w\" has the same value as an earlier argument",
     [](Artifact &, Plan &plan) { plan.argumentValues[1] = 0; }},
    {"result_of_no_such_value", "ranges", "result \"y\" is value 7 of 7",
     [](Artifact &, Plan &plan) { plan.resultValues[0] = 7; }},
    {"result_of_a_value_of_other_size", "ranges", "\"y\" has 256 bytes, its value 260",
     [](Artifact &, Plan &plan) { plan.values[2].bytes = 260; }},
    {"operand_of_no_such_value", "ranges", "is value -2 of 7",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[0].value = -2; }},
    {"operand_beyond_its_value", "ranges", "256 bytes from byte 1 of a value that has 256",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[0].from = 1; }},
    {"operand_far_beyond_its_value", "ranges", "from byte 9223372036854775807",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[0].from = INT64_MAX; }},
    {"result_without_allocation", "contents", "result \"z\" has no allocation",
     [](Artifact &artifact, Plan &) {
       artifact.manifest.entries[0].results.push_back({"z", "F32", {1}, "", false});
       artifact.plans[0].values.push_back({"z", 4});
       artifact.plans[0].resultValues.push_back(7);
     }},
    {"argument_written", "read-only", "writes bytes [0, 256) of argument \"x\"",
     [](Artifact &, Plan &plan) { plan.commands[7].operands[2] = {{0, 0, 256}, 2}; }},
    {"constant_written", "read-only", "of the constants, which it does not own",
     [](Artifact &, Plan &plan) { plan.kernels[0].operands[1].access = Access::Update; }},
    {"operands_overlap_in_part", "in place", "and the ranges differ",
     [](Artifact &, Plan &plan) { plan.commands[7].operands[2] = {{4, 384, 256}, 2}; }},
    {"overwritten_without_proof", "in place",
     "operands 0 and 2 of dispatch 4 (@add, sample.mlir:4:1) share bytes [512, 768) of the arena, "
     "and its kernel states no proof that operand 2 may be written over operand 0",
     [](Artifact &, Plan &plan) {
       plan.kernels[1].inPlace = {{1, 2}};
       plan.commands[7].operands[2] = {{4, 512, 256}, 2};
     }},
    {"updated_operand_read_too", "in place", "one updates them",
     [](Artifact &, Plan &plan) {
       plan.kernels[1].operands[2].access = Access::Update;
       plan.commands[7].operands[2] = plan.commands[7].operands[0];
     }},
    {"one_range_written_twice", "in place", "both write them",
     [](Artifact &, Plan &plan) {
       plan.kernels[1].operands[0].access = Access::Write;
       plan.commands[7].operands[2] = plan.commands[7].operands[0];
     }},
    {"part_of_no_result", "ranges", "part \"a\", 16 bytes from 0, leaves result 1",
     [](Artifact &, Plan &plan) { plan.parts = {{"a", 1, 0, 16, 3}}; }},
    {"part_beyond_its_result", "ranges", "part \"a\", 16 bytes from 248, leaves result 0",
     [](Artifact &, Plan &plan) { plan.parts = {{"a", 0, 248, 16, 3}}; }},
    {"part_stated_to_be_final_too_early", "parts",
     "part \"a\" is stated to be final after wave 2, but dispatch 4 (@add, sample.mlir:4:1) of "
     "wave 3 is the last that writes it",
     [](Artifact &, Plan &plan) { plan.parts = {{"a", 0, 16, 16, 2}}; }},
    {"part_stated_to_be_final_too_late", "parts", "final after wave 4, but dispatch 4",
     [](Artifact &, Plan &plan) { plan.parts = {{"a", 0, 16, 16, 4}}; }},
    {"parts_that_overlap", "parts", "parts \"b\" and \"a\" share byte 8 of result 0",
     [](Artifact &, Plan &plan) { plan.parts = {{"a", 0, 8, 16, 3}, {"b", 0, 0, 9, 3}}; }},
    {"view_off_its_alignment", "alignment", "expected a multiple of 16",
     [](Artifact &, Plan &plan) { plan.commands[1].operands[1].offset = 8; }},
    {"slot_off_its_alignment", "alignment", "expected a multiple of 512",
     [](Artifact &, Plan &plan) { plan.slots[1].alignment = 512; }},
    {"kernel_needs_more_than_bases_have", "alignment", "allocations have 256",
     [](Artifact &, Plan &plan) { plan.kernels[1].operands[0].alignment = 512; }},
    {"grid_too_large", "limits", "65536 workgroups on axis 1",
     [](Artifact &, Plan &plan) { plan.commands[0].grid[1] = 65536; }},
    {"empty_grid", "limits", "0 workgroups",
     [](Artifact &, Plan &plan) { plan.commands[0].grid[2] = 0; }},
    {"workgroup_too_large", "limits", "1024 invocations",
     [](Artifact &, Plan &plan) { plan.kernels[0].workgroup = {32, 32, 2}; }},
    {"too_many_operands", "limits", "binds 3 buffers",
     [](Artifact &artifact, Plan &) { artifact.manifest.targets[0].storageBuffersPerStage = 2; }},
    {"launch_memory_too_large", "limits", "32769 bytes of workgroup memory, the target has 32768",
     [](Artifact &, Plan &plan) { plan.kernels[0].workgroupMemory = 32769; }},
    {"binding_too_large", "ranges", "binds at most 128",
     [](Artifact &artifact, Plan &) { artifact.manifest.targets[0].bytesPerBinding = 128; }},
    {"view_beyond_its_allocation", "ranges", "which has 768",
     [](Artifact &, Plan &plan) { plan.commands[3].operands[2].offset = 513; }},
    {"view_at_a_negative_offset", "ranges", "at -256",
     [](Artifact &, Plan &plan) { plan.commands[3].operands[2].offset = -256; }},
    {"view_whose_end_overflows", "ranges", "at 9223372036854775807",
     [](Artifact &, Plan &plan) { plan.commands[3].operands[2].offset = INT64_MAX; }},
    {"view_of_other_size_than_the_binding", "ranges", "the kernel binds 256",
     [](Artifact &, Plan &plan) { plan.commands[3].operands[2].bytes = 128; }},
    {"view_of_no_allocation", "ranges", "allocation 5 of 5",
     [](Artifact &, Plan &plan) { plan.commands[3].operands[2].allocation = 5; }},
    {"memory_scope_out_of_range", "ranges", "the memory of command 2",
     [](Artifact &, Plan &plan) { plan.commands[2].memory[0].bytes = 769; }},
    {"no_such_kernel", "ranges", "launches kernel -1",
     [](Artifact &, Plan &plan) { plan.commands[3].kernel = -1; }},
    {"operand_missing", "ranges", "has 2 operands",
     [](Artifact &, Plan &plan) { plan.commands[3].operands.pop_back(); }},
    {"allocation_of_another_size", "ranges", "its tensor has 256",
     [](Artifact &, Plan &plan) { plan.allocations[0].bytes = 260; }},
    {"allocation_of_no_tensor", "ranges", "tensor 2 of 2",
     [](Artifact &, Plan &plan) { plan.allocations[0].index = 2; }},
    {"one_argument_in_two_allocations", "ranges", "same tensor as an earlier one",
     [](Artifact &, Plan &plan) { plan.allocations[1].index = 0; }},
    {"no_such_entry", "ranges", "the manifest does not have this",
     [](Artifact &, Plan &plan) { plan.entry = "other"; }},
};

class VerifyEdit : public testing::TestWithParam<Edit> {};

TEST_P(VerifyEdit, fails) {
  Artifact sample = makeSample();
  GetParam().apply(sample, sample.plans[0]);
  const std::vector<Claim> claims = verify(sample);
  const Claim &claim = findClaim(claims, GetParam().claim);
  EXPECT_FALSE(claim.holds) << claim.detail;
  EXPECT_NE(claim.detail.find(GetParam().detail), std::string::npos) << claim.detail;
}

INSTANTIATE_TEST_SUITE_P(Edits, VerifyEdit, testing::ValuesIn(edits),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(Verify, every_barrier_slot_scope_and_effect_counts) {
  const Artifact sample = makeSample();
  const Plan &whole = sample.plans[0];
  auto expectFailure = [&](const std::string &what, const std::function<void(Plan &)> &apply) {
    Artifact edited = sample;
    apply(edited.plans[0]);
    EXPECT_FALSE(allHold(verify(edited))) << what;
  };
  for (size_t i = 0; i < whole.commands.size(); ++i)
    if (whole.commands[i].kind == Command::Kind::Barrier) {
      expectFailure("no command " + std::to_string(i),
                    [&](Plan &plan) { plan.commands.erase(plan.commands.begin() + i); });
      for (size_t view = 0; view < whole.commands[i].memory.size(); ++view)
        expectFailure("less memory in command " + std::to_string(i),
                      [&](Plan &plan) { plan.commands[i].memory[view].bytes -= 16; });
    }
  for (size_t i = 0; i < whole.slots.size(); ++i)
    for (int64_t shift : {-256, -16, 16, 256})
      expectFailure("slot " + std::to_string(i) + " moved by " + std::to_string(shift),
                    [&](Plan &plan) { plan.slots[i].offset += shift; });
  // That `scale` reads x and the constant orders nothing: only its code tells.
  for (auto [kernel, operand] : {std::pair(0, 2), {1, 0}, {1, 1}, {1, 2}})
    expectFailure("no effect on operand " + std::to_string(operand), [&](Plan &plan) {
      plan.kernels[kernel].operands[operand].access = Access::None;
    });
}

//===----------------------------------------------------------------------===//
// Several queues
//===----------------------------------------------------------------------===//

/// Returns the sample with dispatch 1 on queue 1: signal at 2, wait at 3, barrier at 4.
static Artifact makeQueues() {
  Artifact sample = makeSample();
  Plan &plan = sample.plans[0];
  plan.commands[1].queue = 1;
  PlanView t1 = plan.commands[1].operands[2];
  plan.commands[2].hazards.pop_back();
  plan.commands[2].memory.pop_back();
  Command signal, wait;
  signal.kind = Command::Kind::Signal;
  signal.queue = 1;
  signal.signal = 7;
  signal.memory = {t1};
  wait.kind = Command::Kind::Wait;
  wait.signal = 7;
  plan.commands.insert(plan.commands.begin() + 2, {signal, wait});
  return sample;
}

TEST(VerifyQueues, sample_holds) {
  std::vector<Claim> claims = verify(makeQueues());
  for (const Claim &claim : claims)
    EXPECT_TRUE(claim.holds) << claim.what << ": " << claim.detail;
  EXPECT_NE(findClaim(claims, "order").detail.find("1 wait, each for a signal recorded before it"),
            std::string::npos);
}

class VerifyQueueEdit : public testing::TestWithParam<Edit> {};

static const Edit queueEdits[] = {
    {"no_wait", "order", "with no wait between",
     [](Artifact &, Plan &plan) { plan.commands.erase(plan.commands.begin() + 3); }},
    {"wait_elsewhere", "order", "with no wait between",
     [](Artifact &, Plan &plan) { plan.commands[3].queue = 2; }},
    {"signal_before_the_writer", "order", "with no wait between",
     [](Artifact &, Plan &plan) { std::swap(plan.commands[1], plan.commands[2]); }},
    {"signal_without_memory", "order", "and no wait between makes them visible",
     [](Artifact &, Plan &plan) { plan.commands[2].memory.clear(); }},
    {"barrier_elsewhere", "order", "with no barrier between",
     [](Artifact &, Plan &plan) { plan.commands[4].queue = 1; }},
    {"reader_elsewhere", "order", "with no wait between",
     [](Artifact &, Plan &plan) { plan.commands[5].queue = 2; }},
    {"barrier_for_another_queue", "barriers", "is not inside the barrier's queue",
     [](Artifact &, Plan &plan) { plan.commands[4].hazards = {{HazardKind::RAW, 1, 2, 2, 1}}; }},
    {"barrier_that_waits_replace", "barriers", "is ordered by waits",
     [](Artifact &, Plan &plan) {
       // Queue 1 waits for dispatch 0 before its own, for which queue 0 waits.
       Command signal = plan.commands[2], wait = plan.commands[3];
       signal.queue = 0;
       signal.signal = wait.signal = 8;
       wait.queue = 1;
       plan.commands.insert(plan.commands.begin() + 1, {signal, wait});
     }},
    {"deadlock", "ranges", "it may wait forever",
     [](Artifact &, Plan &plan) { std::swap(plan.commands[2], plan.commands[3]); }},
    {"own_queue", "ranges", "of its own queue",
     [](Artifact &, Plan &plan) { plan.commands[3].queue = 1; }},
    {"second_signal", "ranges", "repeats signal 7",
     [](Artifact &, Plan &plan) {
       plan.commands.insert(plan.commands.begin() + 3, plan.commands[2]);
     }},
    {"queue_out_of_range", "ranges", "is for queue 64 of 64",
     [](Artifact &, Plan &plan) { plan.commands[1].queue = 64; }},
    {"negative_queue", "ranges", "is for queue -1 of 64",
     [](Artifact &, Plan &plan) { plan.commands[1].queue = -1; }},
};

TEST_P(VerifyQueueEdit, fails) {
  Artifact sample = makeQueues();
  GetParam().apply(sample, sample.plans[0]);
  const std::vector<Claim> claims = verify(sample);
  const Claim &claim = findClaim(claims, GetParam().claim);
  EXPECT_FALSE(claim.holds) << claim.detail;
  EXPECT_NE(claim.detail.find(GetParam().detail), std::string::npos) << claim.detail;
}

INSTANTIATE_TEST_SUITE_P(Edits, VerifyQueueEdit, testing::ValuesIn(queueEdits),
                         [](const auto &info) { return std::string(info.param.name); });

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

TEST(VerifyLoops, samples_hold) {
  for (const Artifact &sample : {makeLoopSample(), makeFlagSample()}) {
    std::vector<Claim> claims = verify(sample);
    for (const Claim &claim : claims)
      EXPECT_TRUE(claim.holds) << claim.what << ": " << claim.detail;
    EXPECT_NE(findClaim(claims, "order").detail.find("1 loop, of each trip and the next one, too"),
              std::string::npos);
  }
}

/// The number of trips is no part of what is proved: any that a file may have is right.
TEST(VerifyLoops, any_number_of_trips_holds) {
  for (int64_t trips : {1, 2, 1000000}) {
    Artifact sample = makeLoopSample();
    sample.plans[0].loops[0].trips = trips;
    EXPECT_TRUE(allHold(verify(sample))) << trips;
  }
}

class VerifyLoopEdit : public testing::TestWithParam<Edit> {};

/// Commands of the sample: dispatches are 0, 2, 4, 6, barriers 1, 3, 5; the loop is [2, 6). What a
/// file may not state of loops at all is RefusalTest's.
static const Edit loopEdits[] = {
    {"carried_in_the_wrong_slot", "contents", "before the loop",
     [](Artifact &, Plan &plan) { plan.loops[0].carried[0].view.offset = 256; }},
    {"begins_as_another_value", "contents", "before the loop",
     [](Artifact &, Plan &plan) { plan.loops[0].carried[0].init = 5; }},
    {"ends_as_another_value", "contents", "at the end of a trip",
     [](Artifact &, Plan &plan) { plan.loops[0].carried[0].next = 5; }},
    {"nothing_is_carried", "contents", "as \"h\"",
     [](Artifact &, Plan &plan) { plan.loops[0].carried.clear(); }},
    {"value_of_the_first_trip_in_all", "contents", "as \"t0\"",
     [](Artifact &, Plan &plan) { plan.commands[2].operands[0].value = 3; }},
    {"value_of_a_trip_behind_the_loop", "contents", "as \"n\"",
     [](Artifact &, Plan &plan) { plan.commands[6].operands[0].value = 6; }},
    {"made_inside_and_outside", "contents", "is made both inside and outside of a loop, or by two",
     [](Artifact &, Plan &plan) { plan.commands[0].operands[2].value = 6; }},
    {"trip_that_makes_it_elsewhere", "contents", "at the end of a trip",
     [](Artifact &, Plan &plan) { plan.commands[4].operands[2].offset = 256; }},
    {"no_barrier_to_the_next_trip", "order", "with no barrier between",
     [](Artifact &, Plan &plan) {
       plan.commands.erase(plan.commands.begin() + 5);
       plan.loops[0].end = 5;
     }},
    {"barrier_behind_the_loop_alone", "order", "with no barrier between",
     [](Artifact &, Plan &plan) { plan.loops[0].end = 5; }},
    {"next_trip_not_shown", "order", "no barrier between makes them visible",
     [](Artifact &, Plan &plan) { plan.commands[5].memory.clear(); }},
    {"no_barrier_before_the_loop", "order", "with no barrier between",
     [](Artifact &, Plan &plan) {
       plan.commands.erase(plan.commands.begin() + 1);
       --plan.loops[0].first;
       --plan.loops[0].end;
     }},
    {"no_barrier_in_a_trip", "order", "with no barrier between",
     [](Artifact &, Plan &plan) {
       plan.commands.erase(plan.commands.begin() + 3);
       --plan.loops[0].end;
     }},
    {"hazard_between_trips_of_the_wrong_kind", "barriers",
     "is not what the first operand's effect says",
     [](Artifact &, Plan &plan) { plan.commands[5].hazards[0].kind = HazardKind::WAR; }},
    {"hazard_between_trips_inside_of_one", "barriers", "does not cross the barrier",
     [](Artifact &, Plan &plan) { plan.commands[3].hazards[0] = {HazardKind::RAW, 2, 2, 1, 0}; }},
    {"slot_that_ends_in_the_loop", "slots", "live in wave",
     [](Artifact &, Plan &plan) { plan.slots[0].lastWave = 1; }},
    {"two_slots_for_a_carried_value", "slots",
     "slot \"t0\" is live in waves 0 to 1, inside and outside of loop 0, waves 1 to 2, but not in "
     "all",
     [](Artifact &, Plan &plan) {
       plan.slots[0].lastWave = 1;
       plan.slots.push_back({"e", 0, 256, 256, 2, 3});
     }},
    {"slots_at_the_edges_alone", "slots",
     "bytes [0, 256) of the arena, which loop 0, waves 1 to 2, carries, are in no slot",
     [](Artifact &, Plan &plan) {
       plan.slots[0].lastWave = 0;
       for (int64_t wave : {1, 2, 3})
         plan.slots.push_back({"h", 0, 256, 256, wave, wave});
     }},
    {"wave_of_the_loop_behind_it", "waves",
     "dispatch 3 (@add, sample.mlir:4:1) of wave 2 is outside of loop 0, which has waves 1 to 2",
     [](Artifact &, Plan &plan) { plan.commands[6].wave = 2; }},
    {"loop_of_no_commands", "ranges", "loop 0 makes 3 trips of commands [6, 6) of 7",
     [](Artifact &, Plan &plan) { plan.loops[0].first = 6; }},
    {"loop_from_before_the_plan", "ranges", "loop 0 makes 3 trips of commands [-1, 6) of 7",
     [](Artifact &, Plan &plan) { plan.loops[0].first = -1; }},
    {"loop_to_behind_the_plan", "ranges", "loop 0 makes 3 trips of commands [2, 8) of 7",
     [](Artifact &, Plan &plan) { plan.loops[0].end = 8; }},
    {"loop_without_trips", "ranges", "loop 0 makes 0 trips of commands [2, 6) of 7",
     [](Artifact &, Plan &plan) { plan.loops[0].trips = 0; }},
    {"loops_that_cross", "ranges", "loop 1 is neither inside of loop 0 nor behind it",
     [](Artifact &, Plan &plan) { plan.loops.push_back({4, 7, 2}); }},
    {"loop_twice", "ranges", "loop 1 is neither inside of loop 0 nor behind it",
     [](Artifact &, Plan &plan) { plan.loops.push_back({2, 6, 2}); }},
    {"inner_loop_first", "ranges", "loop 1 is neither inside of loop 0 nor behind it",
     [](Artifact &, Plan &plan) { plan.loops.insert(plan.loops.begin(), {2, 4, 2}); }},
    {"carried_in_no_allocation", "ranges", "a carried value of loop 0 is in allocation 9 of 5",
     [](Artifact &, Plan &plan) { plan.loops[0].carried[0].view.allocation = 9; }},
    {"carried_beyond_the_arena", "ranges", "a carried value of loop 0 has 256 bytes at 512",
     [](Artifact &, Plan &plan) { plan.loops[0].carried[0].view.offset = 512; }},
    {"carries_no_value", "ranges", "a carried value of loop 0 of 256 bytes is value 8, which has",
     [](Artifact &, Plan &plan) { plan.loops[0].carried[0].after = 8; }},
    {"carries_before_all_values", "ranges", "of loop 0 of 256 bytes is value -1, which has",
     [](Artifact &, Plan &plan) { plan.loops[0].carried[0].init = -1; }},
    {"flag_in_no_allocation", "ranges", "the flag of loop 0 is in allocation 9 of 5",
     [](Artifact &, Plan &plan) { plan.loops[0].flag = PlanView{9, 0, 1}; }},
    {"flag_that_is_not_carried", "ranges", "is not the first byte of a carried value",
     [](Artifact &, Plan &plan) { plan.loops[0].flag = PlanView{4, 256, 1}; }},
    {"flag_of_two_bytes", "ranges", "is not the first byte of a carried value",
     [](Artifact &, Plan &plan) { plan.loops[0].flag = PlanView{4, 0, 2}; }},
    {"loops_of_two_queues", "ranges", "command 3 is of another queue, in a plan with loops",
     [](Artifact &, Plan &plan) { plan.commands[3].queue = 1; }},
    {"loops_with_parts", "ranges", "a plan with loops has parts of results",
     [](Artifact &, Plan &plan) { plan.parts.push_back({"p", 0, 0, 4, 3}); }},
    {"slot_over_the_carried_one", "slots", "share bytes",
     [](Artifact &, Plan &plan) {
       plan.slots[1].offset = 0;
       plan.commands[2].operands[2].offset = plan.commands[4].operands[0].offset = 0;
     }},
};

TEST_P(VerifyLoopEdit, fails) {
  Artifact sample = makeLoopSample();
  GetParam().apply(sample, sample.plans[0]);
  const std::vector<Claim> claims = verify(sample);
  const Claim &claim = findClaim(claims, GetParam().claim);
  EXPECT_FALSE(claim.holds) << claim.detail;
  EXPECT_NE(claim.detail.find(GetParam().detail), std::string::npos) << claim.detail;
}

INSTANTIATE_TEST_SUITE_P(Edits, VerifyLoopEdit, testing::ValuesIn(loopEdits),
                         [](const auto &info) { return std::string(info.param.name); });

//===----------------------------------------------------------------------===//
// Twins: edits that break nothing
//===----------------------------------------------------------------------===//

TEST(Verify, equal_ranges_read_and_written_are_in_place) {
  Artifact sample = makeSample();
  Plan &plan = sample.plans[0];
  // t3 = t2 + t3 over t2's bytes would clobber nothing; y then is a copy of it.
  plan.kernels.push_back({"copy",
                          "code/vulkan/add.spv",
                          {8, 1, 1},
                          {plan.kernels[1].operands[0], plan.kernels[1].operands[2]}});
  PlanOperand y = plan.commands[7].operands[2], t4 = plan.commands[7].operands[0];
  plan.kernels[1].inPlace = {{0, 2}};
  t4.value = int64_t(plan.values.size());
  plan.values.push_back({"t4", 256});
  plan.commands[7].operands[2] = t4;
  plan.commands.push_back(barrier({{HazardKind::RAW, 4, 2, 5, 0}}, {t4}));
  plan.commands.push_back(dispatch(2, 4, {t4, y}));
  plan.slots[2].lastWave = 4;
  std::vector<Claim> claims = verify(sample);
  EXPECT_TRUE(allHold(claims));
  EXPECT_EQ(findClaim(claims, "in place").detail,
            "1 operand written over in place, each as its kernel permits");
  // The operand is gone then, whoever would still read it.
  sample.plans[0].commands.back().operands[0].value = 5;
  claims = verify(sample);
  EXPECT_NE(
      findClaim(claims, "contents")
          .detail.find("as \"t2\", which holds \"t4\" since dispatch 4 (@add, sample.mlir:4:1)"),
      std::string::npos)
      << findClaim(claims, "contents").detail;
}

TEST(Verify, a_value_may_lie_in_parts_and_be_written_in_parts) {
  Artifact sample = makeSample();
  Plan &plan = sample.plans[0];
  // t0 and t1 are the halves of one value that the first two dispatches write.
  plan.values[3] = {"t", 512};
  plan.slots[0].bytes = 512;
  plan.slots.erase(plan.slots.begin() + 1);
  for (PlanOperand *operand : {&plan.commands[1].operands[2], &plan.commands[3].operands[1]}) {
    operand->value = 3;
    operand->from = 256;
  }
  std::vector<Claim> claims = verify(sample);
  for (const Claim &claim : claims)
    EXPECT_TRUE(claim.holds) << claim.what << ": " << claim.detail;
  std::swap(plan.commands[3].operands[0].from, plan.commands[3].operands[1].from);
  EXPECT_FALSE(findClaim(verify(sample), "contents").holds);
}

TEST(Verify, partial_writes_keep_the_value_they_write) {
  for (int64_t value : {5, 6}) {
    Artifact sample = makeSample();
    Plan &plan = sample.plans[0];
    // Another kernel writes some bytes of t2 (5), or some of t3 (6) over it.
    plan.kernels.push_back(
        {"some", "code/vulkan/add.spv", {8, 1, 1}, {{Access::Write, false, 256, 16}}});
    plan.commands.insert(plan.commands.begin() + 7, dispatch(2, 3, {{{4, 512, 256}, value}}));
    const Claim &claim = findClaim(verify(sample), "contents");
    EXPECT_EQ(claim.holds, value == 5) << claim.detail;
  }
}

TEST(Verify, a_result_may_live_in_a_donated_argument) {
  Artifact sample = makeDonatingSample();
  std::vector<Claim> claims = verify(sample);
  for (const Claim &claim : claims)
    EXPECT_TRUE(claim.holds) << claim.what << ": " << claim.detail;
  EXPECT_NE(findClaim(claims, "read-only").detail.find("1 result in a donated argument"),
            std::string::npos);
  PlanOperand &y = sample.plans[0].commands.back().operands[1];
  y.value = 0; // then x is still there at the end, not y
  EXPECT_NE(findClaim(verify(sample), "contents")
                .detail.find("result \"y\" is to be in bytes [0, 256) of argument \"x\" at the "
                             "end, which holds \"x\""),
            std::string::npos);
  y.value = 2;
  sample.manifest.entries[0].arguments[0].donate = false;
  EXPECT_FALSE(findClaim(verify(sample), "read-only").holds);
}

TEST(Verify, a_plan_without_values_fails) {
  Artifact sample = makeSample();
  Plan &plan = sample.plans[0];
  plan.values.clear();
  plan.argumentValues.clear();
  plan.resultValues.clear();
  for (Command &command : plan.commands)
    for (PlanOperand &operand : command.operands)
      operand.value = -1;
  Claim ranges = findClaim(verify(sample), "ranges");
  EXPECT_FALSE(ranges.holds);
  EXPECT_NE(ranges.detail.find("0 values for 2 arguments"), std::string::npos) << ranges.detail;
}

TEST(Verify, donated_argument_may_be_written) {
  Artifact sample = makeSample();
  sample.manifest.entries[0].arguments[0].donate = true;
  sample.plans[0].commands[7].operands[2] = {{0, 0, 256}, 2};
  EXPECT_TRUE(findClaim(verify(sample), "read-only").holds);
}

TEST(Verify, empty_views_conflict_with_nothing) {
  Artifact sample = makeSample();
  Plan &plan = sample.plans[0];
  plan.kernels.push_back(
      {"none", "code/vulkan/add.spv", {8, 1, 1}, {{Access::Write, true, 0, 16}}});
  plan.commands.insert(plan.commands.begin(),
                       {dispatch(2, 0, {{{0, 16, 0}}}), dispatch(2, 0, {{{4, 7, 0}}})});
  for (Command &command : plan.commands)
    for (Hazard &hazard : command.hazards) {
      hazard.from += 2;
      hazard.to += 2;
    }
  EXPECT_TRUE(allHold(verify(sample)));
}

TEST(Verify, more_launches_than_are_read) {
  Artifact artifact = makeSample();
  Plan &plan = artifact.plans[0];
  Command dispatch = plan.commands.front();
  for (int64_t size = 2; size < 4200; ++size) {
    dispatch.grid = {size, 1, 1};
    plan.commands.push_back(dispatch);
  }
  // Beyond the limit every fact is taken, as that of code that cannot be read.
  EXPECT_NE(findClaim(verify(artifact), "effects").detail.find("16800 taken from compiler"),
            std::string::npos);
}

TEST(Verify, a_plan_of_nothing_holds) {
  Artifact sample = makeSample();
  sample.manifest.entries[0].results = {{"y", "F32", {0, 5}, "", false}};
  Plan empty;
  empty.entry = "main";
  empty.target = "vulkan";
  empty.values = sample.plans[0].values;
  empty.argumentValues = sample.plans[0].argumentValues;
  empty.resultValues = {-1};
  sample.plans = {empty};
  EXPECT_TRUE(allHold(verify(sample)));
}

//===----------------------------------------------------------------------===//
// Random plans against a byte by byte oracle
//===----------------------------------------------------------------------===//

static constexpr int64_t arenaBytes = 24;

static bool reads(Access access) { return access == Access::Read || access == Access::Update; }
static bool writes(Access access) { return access == Access::Write || access == Access::Update; }
static bool holdsByte(const PlanView &view, int64_t byte) {
  return view.allocation == 0 && view.offset <= byte && byte < view.offset + view.bytes;
}

namespace {
/// A list of dispatches on a tiny arena, and the expected answers.
class RandomPlan {
public:
  explicit RandomPlan(unsigned seed) : random(seed) {
    artifact = makeSample();
    artifact.manifest.entries[0].arguments.clear();
    artifact.manifest.entries[0].results.clear();
    plan().values = {{"v0", arenaBytes}, {"v1", arenaBytes}};
    plan().argumentValues.clear();
    plan().resultValues.clear();
    plan().slots.clear();
    plan().kernels.clear();
    plan().commands.clear();
    plan().arenaBytes = arenaBytes;
    plan().allocations = {{AllocationKind::Arena, 0, arenaBytes}};
    int dispatches = pick(2, 9);
    for (int i = 0; i < dispatches; ++i)
      addDispatch(i);
    for (int i = pick(0, 4); i > 0; --i) {
      int64_t offset = pick(0, arenaBytes - 1), wave = pick(0, 4);
      plan().slots.push_back({"s" + std::to_string(i), offset, pick(0, int(arenaBytes - offset)), 1,
                              wave, wave + pick(0, 2)});
    }
  }

  Plan &plan() { return artifact.plans[0]; }
  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

  /// Adds a barrier for all memory before each dispatch.
  void addAllBarriers() {
    std::vector<Command> commands;
    for (const Command &command : plan().commands) {
      commands.push_back(barrier({}, {{0, 0, arenaBytes}}));
      commands.push_back(command);
    }
    plan().commands = commands;
  }
  /// Drops some barriers and the memory of others.
  void weaken() {
    std::vector<Command> commands;
    for (Command command : plan().commands) {
      int fate = command.kind == Command::Kind::Barrier ? pick(0, 3) : 3;
      if (fate == 0)
        continue;
      if (fate <= 2) {
        command.memory.clear();
        for (int i = pick(0, 2); i > 0; --i) {
          int64_t offset = pick(0, arenaBytes);
          command.memory.push_back({0, offset, pick(0, int(arenaBytes - offset))});
        }
      }
      commands.push_back(command);
    }
    plan().commands = commands;
  }

  bool holds(const std::string &what) {
    std::vector<Claim> claims = verify(artifact);
    EXPECT_TRUE(findClaim(claims, "ranges").holds) << findClaim(claims, "ranges").detail;
    return findClaim(claims, what).holds;
  }

  /// Whether `ask(from, to, byte)` holds for all conflicts of two dispatches, given the indices
  /// of their commands in order.
  bool forEachConflict(const std::function<bool(size_t, size_t, int64_t, bool, bool)> &ask) {
    const std::vector<Command> &commands = plan().commands;
    for (size_t to = 0; to < commands.size(); ++to)
      for (size_t from = 0; from < to; ++from)
        for (int64_t byte = 0; byte < arenaBytes; ++byte) {
          auto [fromReads, fromWrites] = touch(commands[from], byte);
          auto [toReads, toWrites] = touch(commands[to], byte);
          if ((fromWrites && (toReads || toWrites)) || (fromReads && toWrites))
            if (!ask(from, to, byte, fromWrites, toWrites))
              return false;
        }
    return true;
  }
  bool isOrdered() {
    return forEachConflict([&](size_t from, size_t to, int64_t byte, bool fromWrites, bool) {
      for (size_t i = from + 1; i < to; ++i) {
        const Command &command = plan().commands[i];
        if (command.kind != Command::Kind::Barrier)
          continue;
        if (!fromWrites)
          return true;
        for (const PlanView &view : command.memory)
          if (holdsByte(view, byte))
            return true;
      }
      return false;
    });
  }
  bool areWavesFree() {
    return forEachConflict([&](size_t from, size_t to, int64_t, bool, bool) {
      return plan().commands[from].wave != plan().commands[to].wave;
    });
  }
  bool areSlotsRight() {
    const std::vector<Slot> &slots = plan().slots;
    for (size_t a = 0; a < slots.size(); ++a)
      for (size_t b = 0; b < a; ++b)
        for (int64_t byte = 0; byte < arenaBytes; ++byte)
          if (isIn(slots[a], byte) && isIn(slots[b], byte) &&
              std::max(slots[a].firstWave, slots[b].firstWave) <=
                  std::min(slots[a].lastWave, slots[b].lastWave))
            return false;
    for (const Command &command : plan().commands)
      for (size_t i = 0; i < command.operands.size(); ++i) {
        const PlanView &view = command.operands[i];
        bool found =
            view.bytes == 0 || plan().kernels[command.kernel].operands[i].access == Access::None;
        for (const Slot &slot : slots)
          found |= slot.firstWave <= command.wave && command.wave <= slot.lastWave &&
                   slot.offset <= view.offset &&
                   view.offset + view.bytes <= slot.offset + slot.bytes;
        if (!found)
          return false;
      }
    return true;
  }
  bool areContentsRight() {
    // By byte: the (value, byte) that it holds; {-1, 0} at the start.
    std::vector<std::pair<int64_t, int64_t>> held(arenaBytes, {-1, 0});
    for (const Command &command : plan().commands) {
      auto forEachByte = [&](auto visit) {
        for (size_t i = 0; i < command.operands.size(); ++i)
          for (int64_t byte = 0; byte < command.operands[i].bytes; ++byte) {
            const PlanOperand &operand = command.operands[i];
            visit(plan().kernels[command.kernel].operands[i], held[operand.offset + byte],
                  std::pair(operand.value, operand.from + byte));
          }
      };
      bool right = true;
      forEachByte([&](const KernelOperand &effect, auto &here, auto meant) {
        right &= !reads(effect.access) || here == meant;
      });
      if (!right)
        return false;
      forEachByte([&](const KernelOperand &effect, auto &here, auto meant) {
        if (writes(effect.access) && !effect.coversAll && here != meant)
          here = {-1, 0};
      });
      forEachByte([&](const KernelOperand &effect, auto &here, auto meant) {
        if (writes(effect.access) && effect.coversAll)
          here = meant;
      });
    }
    return true;
  }
  bool isInPlaceRight() {
    for (const Command &command : plan().commands)
      for (size_t a = 0; a < command.operands.size(); ++a)
        for (size_t b = 0; b < a; ++b)
          if (!mayShare(command, a, b))
            return false;
    return true;
  }

private:
  static bool isIn(const Slot &slot, int64_t byte) {
    return slot.offset <= byte && byte < slot.offset + slot.bytes;
  }
  bool mayShare(const Command &command, size_t a, size_t b) {
    const PlanOperand &x = command.operands[a], &y = command.operands[b];
    Access first = plan().kernels[command.kernel].operands[a].access;
    Access second = plan().kernels[command.kernel].operands[b].access;
    bool overlap = false;
    for (int64_t byte = 0; byte < arenaBytes; ++byte)
      overlap |= holdsByte(x, byte) && holdsByte(y, byte);
    if (!overlap || first == Access::None || second == Access::None ||
        (!writes(first) && !writes(second)))
      return true;
    if (static_cast<const PlanView &>(x) != y)
      return false;
    const auto &pairs = plan().kernels[command.kernel].inPlace;
    auto isProved = [&](size_t source, size_t target) {
      return std::count(pairs.begin(), pairs.end(), std::pair(int64_t(source), int64_t(target))) >
             0;
    };
    return (first == Access::Read && second == Access::Write && isProved(a, b)) ||
           (first == Access::Write && second == Access::Read && isProved(b, a));
  }
  std::pair<bool, bool> touch(const Command &command, int64_t byte) {
    bool read = false, written = false;
    for (size_t i = 0; i < command.operands.size(); ++i)
      if (holdsByte(command.operands[i], byte)) {
        Access access = plan().kernels[command.kernel].operands[i].access;
        read |= reads(access);
        written |= writes(access);
      }
    return {read, written};
  }
  void addDispatch(int number) {
    Kernel kernel{"k" + std::to_string(number), "code/vulkan/add.spv", {8, 1, 1}, {}};
    std::vector<PlanOperand> views;
    for (int i = pick(0, 3); i > 0; --i) {
      int64_t offset = pick(0, 5) * 4;
      PlanOperand view{{0, offset, pick(0, std::min<int>(8, arenaBytes - offset))}};
      if (!views.empty() && pick(0, 4) == 0)
        view = views.back();
      view.value = pick(0, 3) == 0;
      view.from = pick(0, 7) == 0 ? pick(0, int(arenaBytes - view.bytes)) : view.offset;
      views.push_back(view);
      kernel.operands.push_back({Access(pick(0, 3)), pick(0, 1) == 1, view.bytes, 1});
    }
    for (int64_t target = 0; target < int64_t(views.size()); ++target)
      for (int64_t source = 0; source < int64_t(views.size()); ++source)
        if (source != target && pick(0, 2) != 0)
          kernel.inPlace.push_back({source, target});
    plan().kernels.push_back(kernel);
    plan().commands.push_back(dispatch(number, pick(0, 4), views));
  }

  std::mt19937 random;
  Artifact artifact;
};
} // namespace

TEST(VerifyRandom, order_agrees_with_the_oracle) {
  int held = 0, failed = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomPlan random(seed);
    random.addAllBarriers();
    ASSERT_TRUE(random.holds("order")) << "seed " << seed;
    random.weaken();
    bool expected = random.isOrdered();
    ASSERT_EQ(random.holds("order"), expected) << "seed " << seed;
    ++(expected ? held : failed);
  }
  EXPECT_GT(held, 100);
  EXPECT_GT(failed, 100);
}

TEST(VerifyRandom, removing_a_needed_barrier_fails) {
  int needed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomPlan random(seed);
    random.addAllBarriers();
    const std::vector<Command> all = random.plan().commands;
    for (size_t i = 0; i < all.size(); i += 2) {
      random.plan().commands = all;
      random.plan().commands.erase(random.plan().commands.begin() + i);
      bool expected = random.isOrdered();
      ASSERT_EQ(random.holds("order"), expected) << "seed " << seed << " barrier " << i / 2;
      needed += !expected;
    }
  }
  EXPECT_GT(needed, 100);
}

TEST(VerifyRandom, waves_slots_contents_and_in_place_agree_with_the_oracle) {
  int held[4] = {}, failed[4] = {};
  auto expect = [&](RandomPlan &random, int which, const char *what, bool expected, unsigned seed) {
    ASSERT_EQ(random.holds(what), expected) << what << ", seed " << seed;
    ++(expected ? held : failed)[which];
  };
  for (unsigned seed = 0; seed < 4000; ++seed) {
    RandomPlan random(seed);
    expect(random, 0, "waves", random.areWavesFree(), seed);
    expect(random, 1, "slots", random.areSlotsRight(), seed);
    expect(random, 2, "in place", random.isInPlaceRight(), seed);
    expect(random, 3, "contents", random.areContentsRight(), seed);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_GT(held[i], 50) << i;
    EXPECT_GT(failed[i], 50) << i;
  }
}
