//===- SimTest.cpp - Reports of the simulator, and twins without ----------===//

#include "Kernels.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>
#include <set>

using namespace weir;
using namespace weir::test;

/// b1[i] = 2 b0[i].
static const KernelText doubled = {.body = load("x", "%b0", "%i") + "%y = OpFMul %float %x %f2\n" +
                                           store("y", "%b1", "%i", "%y")};

static std::vector<SimOptions> getSchedules() {
  std::vector<SimOptions> schedules;
  for (auto strategy : {SimStrategy::Recorded, SimStrategy::LatestFirst, SimStrategy::WriterFirst,
                        SimStrategy::Split})
    schedules.push_back({.strategy = strategy});
  for (uint64_t seed = 0; seed < 20; ++seed)
    schedules.push_back({.strategy = SimStrategy::Random, .seed = seed});
  return schedules;
}

/// Expects exactly one report in any schedule, with these parts.
static void expectReport(const Sample &sample, const std::vector<std::string> &parts) {
  for (const SimOptions &schedule : getSchedules()) {
    std::vector<std::string> reports = sample.run(schedule).reports;
    ASSERT_EQ(reports.size(), 1u) << testing::PrintToString(reports) << " with strategy "
                                  << int(schedule.strategy) << ", seed " << schedule.seed;
    for (const std::string &part : parts)
      EXPECT_NE(reports[0].find(part), std::string::npos) << reports[0] << "\nlacks " << part;
  }
}

static void expectSilence(const Sample &sample) {
  for (const SimOptions &schedule : getSchedules())
    EXPECT_EQ(testing::PrintToString(sample.run(schedule).reports), "{}");
}

static std::vector<float> getFloats(const SimOutcome &outcome) {
  const Bytes &data = outcome.results[0].data;
  std::vector<float> floats(data.size() / 4);
  std::memcpy(floats.data(), data.data(), data.size());
  return floats;
}

static std::string getError(const Sample &sample) {
  try {
    sample.run();
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

//===----------------------------------------------------------------------===//
// Dispatches
//===----------------------------------------------------------------------===//

TEST(Dispatches, compute) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.t}), barrier({sample.t}),
                          dispatch(0, 1, {sample.t, sample.y})};
  expectSilence(sample);
  EXPECT_EQ(getFloats(sample.run()), (std::vector<float>{0, 4, 8, 12, 16, 20, 24, 28}));
}

TEST(Dispatches, raw) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.t}),
                          dispatch(0, 1, {sample.t, sample.y})};
  // The reader may come first; then it reads what nothing wrote.
  for (const SimOptions &schedule : getSchedules()) {
    std::vector<std::string> reports = sample.run(schedule).reports;
    ASSERT_FALSE(reports.empty());
    bool hasRace = false;
    for (const std::string &report : reports)
      hasRace |= report.find("RAW: dispatch 1 (@kernel, graph.mlir:2), thread ") == 0 &&
                 report.find("reads byte ") != std::string::npos &&
                 report.find(" of the arena, which dispatch 0 (@kernel, graph.mlir:1), thread ") !=
                     std::string::npos;
    EXPECT_TRUE(hasRace) << testing::PrintToString(reports);
  }
}

/// Case 1 of the background: a reader of x, and then x written over.
static Sample makeOverwritten() {
  Sample sample;
  sample.artifact.manifest.entries[0].arguments[0].donate = true;
  sample.addKernel(doubled, "rw");
  KernelText ones{.body = store("y", "%b0", "%i", "%f1"), .operands = 1};
  sample.addKernel(ones, "w");
  sample.plan.values.push_back({"v", sample.bytes});
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}),
                          dispatch(1, 1, {sample.operand(0, 4)})};
  return sample;
}

TEST(Dispatches, war) {
  Sample sample = makeOverwritten();
  expectReport(sample, {"WAR: dispatch 1 (@kernel, graph.mlir:2), thread ", " writes byte ",
                        " of argument \"x\", which dispatch 0 (@kernel, graph.mlir:1), thread ",
                        ", reads; no barrier or wait orders the two (the first of 16)"});
  // It needs no memory scope.
  sample.plan.commands.insert(sample.plan.commands.begin() + 1, barrier({}));
  expectSilence(sample);
}

TEST(Dispatches, strategies_decide_what_a_racing_read_sees) {
  Sample sample = makeOverwritten();
  std::vector<float> right = {0, 2, 4, 6, 8, 10, 12, 14}, wrong(8, 2);
  EXPECT_EQ(getFloats(sample.run({.strategy = SimStrategy::Recorded})), right);
  EXPECT_EQ(getFloats(sample.run({.strategy = SimStrategy::LatestFirst})), wrong);
  EXPECT_EQ(getFloats(sample.run({.strategy = SimStrategy::WriterFirst})), wrong);
  std::set<std::vector<float>> seen;
  for (uint64_t seed = 0; seed < 50; ++seed)
    seen.insert(getFloats(sample.run({.strategy = SimStrategy::Random, .seed = seed})));
  EXPECT_GT(seen.size(), 10u);
}

TEST(Dispatches, waw) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}),
                          dispatch(0, 1, {sample.x, sample.y})};
  expectReport(sample,
               {"WAW: dispatch 1 ", " writes byte ", " of result \"y\", which dispatch 0 "});
  sample.plan.commands.insert(sample.plan.commands.begin() + 1, barrier({sample.y}));
  expectSilence(sample);
}

TEST(Dispatches, readers_do_not_race) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}),
                          dispatch(0, 0, {sample.x, sample.t})};
  expectSilence(sample);
}

/// The writer must come after both of two unordered readers.
TEST(Dispatches, every_unordered_reader_counts) {
  for (int64_t ordered : {0, 1}) {
    Sample sample = makeOverwritten();
    PlanOperand x = sample.x, y = sample.y, t = sample.t;
    Command first = dispatch(0, 0, {x, y}, 1, 0), second = dispatch(0, 0, {x, t}, 1, 1);
    Command writer = dispatch(1, 1, {sample.operand(0, 4)}, 1, 2);
    sample.plan.commands = {first, second, signal(0, {}, ordered), wait(0, 2), writer};
    expectReport(sample, {"WAR: dispatch 2 ", "which dispatch " + std::to_string(1 - ordered)});
    sample.plan.commands = {first,      second, signal(0, {}, 0), signal(1, {}, 1), wait(0, 2),
                            wait(1, 2), writer};
    expectSilence(sample);
  }
}

TEST(Dispatches, bytes_decide) {
  Sample sample;
  KernelText half = doubled;
  half.elements = 4;
  half.invocations = 4;
  sample.addKernel(half, "rw");
  for (KernelOperand &operand : sample.plan.kernels[0].operands)
    operand.bytes = 16;
  auto cut = [](PlanOperand operand, int64_t from) {
    operand.bytes = 16;
    operand.offset = operand.from = from;
    return operand;
  };
  PlanOperand x = sample.x, y = sample.y;
  sample.plan.commands = {dispatch(0, 0, {cut(x, 0), cut(y, 0)}),
                          dispatch(0, 0, {cut(x, 0), cut(y, 16)})};
  expectSilence(sample);
  sample.plan.commands.push_back(dispatch(0, 0, {cut(x, 0), cut(y, 12)}));
  EXPECT_EQ(sample.run({.strategy = SimStrategy::Recorded}).reports.size(), 2u); // with each
}

//===----------------------------------------------------------------------===//
// What becomes visible
//===----------------------------------------------------------------------===//

TEST(Visibility, needs_the_bytes_in_a_scope) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  PlanView half = sample.t;
  half.bytes = 16;
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.t}), barrier({half}),
                          dispatch(0, 1, {sample.t, sample.y})};
  expectReport(sample, {"RAW: dispatch 1 ", " of the arena, which dispatch 0 ",
                        "no barrier or signal between the two has the byte in its memory "
                        "(the first of 8)"});
  PlanView rest = half;
  rest.offset = 16;
  sample.plan.commands[1].memory = {half, rest};
  expectSilence(sample);
}

TEST(Visibility, of_a_write_before_a_write) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}), barrier({}),
                          dispatch(0, 1, {sample.x, sample.y})};
  expectReport(sample, {"WAW: dispatch 1 ", "no barrier or signal between the two"});
}

/// A later barrier may show what an earlier one ordered; one before the write cannot.
TEST(Visibility, comes_after_the_write) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  Command write = dispatch(0, 0, {sample.x, sample.t}), read = dispatch(0, 1, {sample.t, sample.y});
  sample.plan.commands = {write, barrier({}), barrier({sample.t}), read};
  expectSilence(sample);
  sample.plan.commands = {barrier({sample.t}), write, barrier({}), read};
  expectReport(sample, {"RAW: dispatch 1 ", "no barrier or signal between the two"});
}

TEST(Visibility, strategies_decide_what_is_seen_without_it) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}), barrier({}),
                          dispatch(0, 1, {sample.y, sample.t})};
  sample.plan.commands.push_back(barrier({sample.t, sample.y}));
  sample.plan.commands.push_back(dispatch(0, 2, {sample.t, sample.y}));
  EXPECT_EQ(getFloats(sample.run({.strategy = SimStrategy::LatestFirst}))[1], 8);
  EXPECT_TRUE(std::isnan(getFloats(sample.run({.strategy = SimStrategy::Recorded}))[1]));
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

TEST(Queues, signals_and_waits_order) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  Command write = dispatch(0, 0, {sample.x, sample.t}, 1, 0),
          read = dispatch(0, 1, {sample.t, sample.y}, 1, 1);
  sample.plan.commands = {write, signal(7, {sample.t}, 0), wait(7, 1), read};
  expectSilence(sample);
  sample.plan.commands = {write, signal(7, {}, 0), wait(7, 1), read};
  expectReport(sample, {"RAW: dispatch 1 ", "no barrier or signal between the two"});
  sample.plan.commands = {signal(7, {sample.t}, 0), write, wait(7, 1), read};
  EXPECT_FALSE(sample.run().reports.empty());
}

/// Waits are transitive: a queue is ordered after everything that the queue it waits for waited
/// for.
TEST(Queues, order_goes_on) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  Command write = dispatch(0, 0, {sample.x, sample.t}, 1, 0),
          read = dispatch(0, 1, {sample.t, sample.y}, 1, 2);
  sample.plan.commands = {write, signal(0, {sample.t}, 0), wait(0, 1), signal(1, {}, 1), wait(1, 2),
                          read};
  expectSilence(sample);
  // A wait orders what is recorded after it, not before.
  sample.plan.commands = {write, signal(0, {sample.t}, 0), read, wait(0, 2)};
  EXPECT_FALSE(sample.run().reports.empty());
}

//===----------------------------------------------------------------------===//
// Invocations of one dispatch
//===----------------------------------------------------------------------===//

static Sample makeOne(const KernelText &kernel, int64_t workgroups = 1, int64_t elements = 8,
                      const std::string &accesses = "rw") {
  Sample sample(elements);
  sample.addKernel(kernel, accesses);
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}, workgroups)};
  return sample;
}

TEST(Invocations, workgroups_race) {
  // All workgroups write the first elements.
  KernelText kernel = doubled;
  kernel.body =
      load("x", "%b0", "%i") + store("y", "%b1", "%l", "%x") + store("z", "%b1", "%i", "%x");
  kernel.elements = 16;
  expectReport(
      makeOne({.body = load("x", "%b0", "%i") + store("y", "%b1", "%i", "%x"), .elements = 16}, 1,
              16),
      {"result: in the end byte 32 of result \"y\" holds nothing instead of \"y\""});
  std::vector<std::string> reports = makeOne(kernel, 2, 16).run().reports;
  ASSERT_FALSE(reports.empty());
  EXPECT_NE(reports[0].find("WAW: in dispatch 0 (@kernel, graph.mlir:1), thread "),
            std::string::npos);
  EXPECT_NE(reports[0].find("; nothing orders workgroups of one dispatch"), std::string::npos);
  kernel.body = load("x", "%b0", "%i") + store("z", "%b1", "%i", "%x");
  expectSilence(makeOne(kernel, 2, 16));
}

static const char *const tile = "%tiles = OpTypeArray %float %n16\n"
                                "%ptile = OpTypePointer Workgroup %tiles\n"
                                "%pcell = OpTypePointer Workgroup %float\n"
                                "%tile = OpVariable %ptile Workgroup\n";
static const char *const fence = "OpControlBarrier %n2 %n2 %full\n";

/// y[i] = x[15 - i] by way of workgroup memory; `between` stands between.
static KernelText reverse(const std::string &between, const std::string &after = "",
                          uint32_t semantics = 0x148) {
  return {.body = load("x", "%b0", "%i") +
                  "%mine = OpAccessChain %pcell %tile %l\nOpStore %mine %x\n" + between +
                  "%other = OpISub %uint %n15 %l\n"
                  "%place = OpAccessChain %pcell %tile %other\n%y = OpLoad %float %place\n" +
                  after + store("y", "%b1", "%i", "%y"),
          .elements = 16,
          .invocations = 16,
          .declarations =
              tile + std::string("%full = OpConstant %uint ") + std::to_string(semantics) + "\n",
          .interface = "%tile"};
}

TEST(Invocations, workgroup_memory_needs_a_barrier) {
  Sample sample = makeOne(reverse(fence), 1, 16);
  expectSilence(sample);
  EXPECT_EQ(getFloats(sample.run())[0], 15);
  // Unless another order reads first, of nothing.
  for (const SimOptions &schedule : getSchedules()) {
    std::vector<std::string> reports = makeOne(reverse(""), 1, 16).run(schedule).reports;
    bool hasRace = false;
    for (const std::string &report : reports)
      hasRace |= report.find("RAW: in dispatch 0 ") == 0 &&
                 report.find(" of workgroup memory, which thread ") != std::string::npos &&
                 report.find("; no barrier in the kernel orders the two") != std::string::npos;
    EXPECT_TRUE(hasRace) << testing::PrintToString(reports);
  }
}

TEST(Invocations, barriers_need_semantics) {
  // Storage buffers alone: not workgroup memory.
  EXPECT_FALSE(makeOne(reverse(fence, "", 0x48), 1, 16).run().reports.empty());
  expectSilence(makeOne(reverse(fence, "", 0x108), 1, 16));
  // Execution alone.
  EXPECT_FALSE(makeOne(reverse(fence, "", 0), 1, 16).run().reports.empty());
}

TEST(Invocations, a_read_before_a_write_needs_a_barrier) {
  std::string again = "%cell = OpAccessChain %pcell %tile %l\nOpStore %cell %y\n";
  expectReport(makeOne(reverse(fence, again), 1, 16),
               {"WAR: in dispatch 0 ", " writes byte ", " of workgroup memory, which thread "});
  expectSilence(makeOne(reverse(fence, fence + again), 1, 16));
}

/// Through a storage buffer: y[i] = x[i], then y[15 - i] is read.
TEST(Invocations, storage_needs_its_semantics) {
  auto make = [](uint32_t semantics) {
    return makeOne({.body = load("x", "%b0", "%i") + store("y", "%b1", "%i", "%x") + fence +
                            "%other = OpISub %uint %n15 %l\n" + load("z", "%b1", "%other") + fence +
                            store("z", "%b1", "%i", "%z"),
                    .elements = 16,
                    .invocations = 16,
                    .declarations = "%full = OpConstant %uint " + std::to_string(semantics) + "\n"},
                   1, 16, "ru");
  };
  expectSilence(make(0x148));
  expectSilence(make(0x48));
  EXPECT_FALSE(make(0x108).run().reports.empty());
}

TEST(Invocations, divergent_barrier) {
  auto make = [](const std::string &condition) {
    KernelText kernel = reverse(condition +
                                "OpSelectionMerge %merge None\n"
                                "OpBranchConditional %c %then %merge\n"
                                "%then = OpLabel\n" +
                                fence + "OpBranch %merge\n%merge = OpLabel\n");
    // Reads its own element.
    kernel.body.replace(kernel.body.find("%n15 %l"), 7, "%l %n0");
    return makeOne(kernel, 1, 16);
  };
  // Inside of a subgroup, and between subgroups.
  for (std::string bound : {"%n3", "%n8"}) {
    std::vector<std::string> reports =
        make("%c = OpULessThan %bool %l " + bound + "\n").run().reports;
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports[0].find("divergent barrier: in dispatch 0 (@kernel, graph.mlir:1), "
                              "workgroup 0, not all of its invocations reach the same barrier"),
              0u)
        << reports[0];
  }
  expectSilence(make("%c = OpULessThan %bool %w %n8\n"));
  expectSilence(make("%c = OpUGreaterThan %bool %w %n8\n"));
}

TEST(Invocations, shuffles_among_active_lanes) {
  auto make = [](const std::string &bound) {
    return makeOne({.body = load("x", "%b0", "%i") + "%c = OpULessThan %bool %l " + bound +
                            "\nOpSelectionMerge %merge None\n"
                            "OpBranchConditional %c %then %merge\n"
                            "%then = OpLabel\n"
                            "%z = OpGroupNonUniformShuffleXor %float %n3 %x %n1\n"
                            "OpBranch %merge\n%merge = OpLabel\n"
                            "%y = OpPhi %float %x %entry %z %then\n" +
                            store("y", "%b1", "%i", "%y")});
  };
  expectSilence(make("%n4"));
  EXPECT_EQ(getFloats(make("%n4").run()), (std::vector<float>{1, 0, 3, 2, 4, 5, 6, 7}));
  expectReport(make("%n3"), {"undefined: in dispatch 0 ", "invocation 2 takes a value from one of "
                                                          "its subgroup that is not active"});
}

/// y[i] = i + 5, then `update` of the element `%p` of y.
static KernelText makeUpdate(const std::string &update, const std::string &element = "%i") {
  return {.body = "%start = OpIAdd %uint %i %n5\n" + store("z", "%b1", "%i", "%start") + fence +
                  "%p = OpAccessChain %pelement %b1 %n0 " + element + "\n" + update,
          .declarations = "%full = OpConstant %uint 328\n",
          .element = "%uint"};
}

static std::vector<uint32_t> getInts(const SimOutcome &outcome) {
  const Bytes &data = outcome.results[0].data;
  std::vector<uint32_t> ints(data.size() / 4);
  std::memcpy(ints.data(), data.data(), data.size());
  return ints;
}

TEST(Invocations, atomics_compute) {
  const std::string all = " %p %n1 %n0 ";
  auto make = [&](const std::string &update) {
    Sample sample = makeOne(makeUpdate(update), 1, 8, "ru");
    expectSilence(sample);
    return getInts(sample.run());
  };
  auto add = [&](const std::string &op, const std::string &operands) {
    return make("%old = Op" + op + " %uint" + all + operands + "\n")[4];
  };
  EXPECT_EQ(add("AtomicIAdd", "%n3"), 12u);
  EXPECT_EQ(add("AtomicISub", "%n3"), 6u);
  EXPECT_EQ(add("AtomicIIncrement", ""), 10u);
  EXPECT_EQ(add("AtomicIDecrement", ""), 8u);
  EXPECT_EQ(add("AtomicExchange", "%n3"), 3u);
  EXPECT_EQ(add("AtomicCompareExchange", "%n0 %n3 %n9"), 3u);
  EXPECT_EQ(add("AtomicCompareExchange", "%n0 %n3 %n8"), 9u);
  EXPECT_EQ(add("AtomicUMin", "%n7"), 7u);
  EXPECT_EQ(add("AtomicUMax", "%n7"), 9u);
  EXPECT_EQ(add("AtomicSMin", "%n7"), 7u);
  EXPECT_EQ(add("AtomicSMax", "%n12"), 12u);
  EXPECT_EQ(add("AtomicAnd", "%n3"), 1u);
  EXPECT_EQ(add("AtomicOr", "%n3"), 11u);
  EXPECT_EQ(add("AtomicXor", "%n3"), 10u);
  EXPECT_EQ(make("OpAtomicStore %p %n1 %n0 %n3\n")[4], 3u);
  // What was there before.
  EXPECT_EQ(make("%old = OpAtomicIAdd %uint" + all + "%n3\nOpAtomicStore" + all + "%old\n")[4], 9u);
  EXPECT_EQ(make("%old = OpAtomicLoad %uint" + all + "\n%new = OpIAdd %uint %old %n3\n" +
                 store("n", "%b1", "%i", "%new"))[4],
            12u);
}

TEST(Invocations, atomics_do_not_race) {
  const std::string add = "%old = OpAtomicIAdd %uint %p %n1 %n0 %l\n";
  Sample sample = makeOne(makeUpdate(add, "%n0"), 1, 8, "ru");
  expectSilence(sample);
  EXPECT_EQ(getInts(sample.run())[0], 33u); // 5, and 0 + 1 + ... + 7
  // But with plain ones, whichever comes first, also of one that does both.
  std::string read = "%plain = OpLoad %uint %p\n", write = "OpStore %p %l\n";
  for (const std::string &update :
       {read + "%n = OpIAdd %uint %plain %l\nOpStore %p %n\n", add + read, read + add}) {
    EXPECT_FALSE(makeOne(makeUpdate(update, "%n0"), 1, 8, "ru").run().reports.empty()) << update;
  }
  std::string first = "%c = OpIEqual %bool %l %n0\nOpSelectionMerge %merge None\n"
                      "OpBranchConditional %c %then %merge\n%then = OpLabel\n" +
                      write + "OpBranch %merge\n%merge = OpLabel\n";
  expectReport(makeOne(makeUpdate(first + add, "%n0"), 1, 8, "ru"),
               {"WAW: in dispatch 0 ", " updates byte 0 of result \"y\", which thread 0 of "
                                       "workgroup 0 writes; no barrier in the kernel"});
  expectSilence(makeOne(makeUpdate(first + fence + add, "%n0"), 1, 8, "ru"));
}

TEST(Invocations, atomics_of_workgroup_memory) {
  auto make = [](const std::string &update, const std::string &before = fence) {
    return makeOne({.body = "%cell = OpAccessChain %pcell %tile %n0\n"
                            "%c = OpIEqual %bool %l %n0\nOpSelectionMerge %merge None\n"
                            "OpBranchConditional %c %then %merge\n%then = OpLabel\n"
                            "OpStore %cell %n1\nOpBranch %merge\n%merge = OpLabel\n" +
                            before + update + fence + "%y = OpLoad %uint %cell\n" +
                            store("y", "%b1", "%i", "%y"),
                    .declarations = "%tiles = OpTypeArray %uint %n16\n"
                                    "%ptile = OpTypePointer Workgroup %tiles\n"
                                    "%pcell = OpTypePointer Workgroup %uint\n"
                                    "%tile = OpVariable %ptile Workgroup\n"
                                    "%full = OpConstant %uint 328\n",
                    .interface = "%tile",
                    .element = "%uint"});
  };
  Sample sample = make("%old = OpAtomicUMax %uint %cell %n2 %n0 %l\n");
  expectSilence(sample);
  EXPECT_EQ(getInts(sample.run())[5], 7u);
  EXPECT_FALSE(make("%old = OpAtomicUMax %uint %cell %n2 %n0 %l\n%z = OpLoad %uint %cell\n")
                   .run()
                   .reports.empty());
  EXPECT_FALSE(make("OpStore %cell %l\n").run().reports.empty());
  // With the store before, also behind the atomic one of who stored.
  expectReport(make("%old = OpAtomicUMax %uint %cell %n2 %n0 %l\n", ""),
               {"WAW: in dispatch 0 ", " updates byte 0 of workgroup memory, which thread 0 of "});
}

TEST(Invocations, atomics_have_a_scope) {
  // Of the device, or of each of two workgroups.
  for (std::string scope : {"%n1", "%n2"}) {
    Sample sample;
    sample.addKernel({.body = store("z", "%b1", "%i", "%n0"), .element = "%uint"}, "rw");
    sample.addKernel({.body = "%p = OpAccessChain %pelement %b1 %n0 %n0\n%old = OpAtomicIAdd %uint "
                              "%p " +
                              scope + " %n0 %l\n",
                      .element = "%uint"},
                     "ru");
    sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}), barrier({sample.y}),
                            dispatch(1, 1, {sample.x, sample.y}, 2)};
    if (scope == "%n2") {
      expectReport(sample, {"WAW: in dispatch 1 ", "; nothing orders workgroups"});
      continue;
    }
    expectSilence(sample);
    EXPECT_EQ(getInts(sample.run())[0], 56u);
  }
}

/// y[i] = op of x, of the lanes below `bound`.
static Sample makeReduction(const std::string &op, const std::string &how,
                            const std::string &bound = "%n8") {
  bool isFloat = op[0] == 'F';
  return makeOne(
      {.body = load("f", "%b0", "%i") + "%u = OpConvertFToU %uint %f\n%c = OpULessThan %bool %l " +
               bound +
               "\nOpSelectionMerge %merge None\nOpBranchConditional %c %then %merge\n"
               "%then = OpLabel\n%r = OpGroupNonUniform" +
               op + (isFloat ? " %float %n3 " : " %uint %n3 ") + how +
               (isFloat ? " %f\n" : " %u\n") +
               (isFloat ? "%z = OpCopyObject %float %r\n" : "%z = OpConvertUToF %float %r\n") +
               "OpBranch %merge\n%merge = OpLabel\n%y = OpPhi %float %f1 %entry %z %then\n" +
               store("y", "%b1", "%i", "%y"),
       .capabilities = "OpCapability GroupNonUniformArithmetic\n"});
}

TEST(Invocations, reductions_of_a_subgroup) {
  auto run = [](const std::string &op, const std::string &how, const std::string &bound = "%n8") {
    Sample sample = makeReduction(op, how, bound);
    expectSilence(sample);
    return getFloats(sample.run());
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(run("FAdd", "Reduce"), Floats(8, 28));
  EXPECT_EQ(run("IAdd", "Reduce"), Floats(8, 28));
  EXPECT_EQ(run("FMax", "Reduce"), Floats(8, 7));
  EXPECT_EQ(run("FMin", "Reduce"), Floats(8, 0));
  EXPECT_EQ(run("UMax", "Reduce"), Floats(8, 7));
  EXPECT_EQ(run("SMin", "Reduce"), Floats(8, 0));
  EXPECT_EQ(run("BitwiseXor", "Reduce", "%n4"), (Floats{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(run("FAdd", "Reduce", "%n4"), (Floats{6, 6, 6, 6, 1, 1, 1, 1}));
  EXPECT_EQ(run("FAdd", "InclusiveScan"), (Floats{0, 1, 3, 6, 10, 15, 21, 28}));
  EXPECT_EQ(run("IAdd", "ExclusiveScan"), (Floats{0, 0, 1, 3, 6, 10, 15, 21}));
  EXPECT_EQ(run("FMul", "ExclusiveScan"), (Floats{1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run("FMax", "ExclusiveScan")[0], -INFINITY);
  EXPECT_EQ(run("UMin", "ExclusiveScan")[0], float(UINT32_MAX));
  EXPECT_EQ(run("SMin", "ExclusiveScan")[0], float(INT32_MAX));
}

/// 1 for what is below 2, else twice it.
static const char *const twice = "%twice = OpFunction %float None %ftype\n"
                                 "%v = OpFunctionParameter %float\n%fentry = OpLabel\n"
                                 "%small = OpFOrdLessThan %bool %v %f2\n"
                                 "OpSelectionMerge %fend None\n"
                                 "OpBranchConditional %small %fthen %fend\n%fthen = OpLabel\n"
                                 "OpReturnValue %f1\n%fend = OpLabel\n"
                                 "%v2 = OpFMul %float %v %f2\nOpReturnValue %v2\nOpFunctionEnd\n";

TEST(Invocations, call_functions) {
  std::string types = "%ftype = OpTypeFunction %float %float\n";
  Sample sample = makeOne({.body = load("x", "%b0", "%i") +
                                   "%a = OpFunctionCall %float %twice %x\n"
                                   "%b = OpFunctionCall %float %twice %a\n"
                                   "%y = OpFSub %float %b %a\n" +
                                   store("y", "%b1", "%i", "%y"),
                           .declarations = types,
                           .functions = twice});
  expectSilence(sample);
  EXPECT_EQ(getFloats(sample.run()), (std::vector<float>{0, 0, 4, 6, 8, 10, 12, 14}));
  // In a loop, into a variable of the caller's.
  KernelText kernel = {.body = load("x", "%b0", "%i") +
                               "OpStore %own %x\nOpBranch %head\n%head = OpLabel\n"
                               "%k = OpPhi %uint %n0 %entry %next %body\n"
                               "%more = OpULessThan %bool %k %n2\nOpLoopMerge %done %body None\n"
                               "OpBranchConditional %more %body %done\n%body = OpLabel\n"
                               "%none = OpFunctionCall %void %change %own\n"
                               "%next = OpIAdd %uint %k %n1\nOpBranch %head\n%done = OpLabel\n"
                               "%y = OpLoad %float %own\n" +
                               store("y", "%b1", "%i", "%y"),
                       .variables = "%own = OpVariable %pown Function\n",
                       .declarations = types + "%pown = OpTypePointer Function %float\n"
                                               "%ctype = OpTypeFunction %void %pown\n",
                       .functions = "%change = OpFunction %void None %ctype\n"
                                    "%to = OpFunctionParameter %pown\n%centry = OpLabel\n"
                                    "%was = OpLoad %float %to\n"
                                    "%will = OpFunctionCall %float %twice %was\n"
                                    "OpStore %to %will\nOpReturn\nOpFunctionEnd\n" +
                                    std::string(twice)};
  sample = makeOne(kernel);
  expectSilence(sample);
  EXPECT_EQ(getFloats(sample.run()), (std::vector<float>{1, 1, 8, 12, 16, 20, 24, 28}));
}

TEST(Invocations, functions_have_barriers) {
  for (std::string body : {fence, ""}) {
    KernelText kernel = reverse("%none = OpFunctionCall %void %sync\n");
    kernel.functions = "%sync = OpFunction %void None %signature\n%sentry = OpLabel\n" + body +
                       "OpReturn\nOpFunctionEnd\n";
    EXPECT_EQ(makeOne(kernel, 1, 16).run().reports.empty(), !body.empty());
  }
}

TEST(Invocations, unreachable_is_never_reached) {
  auto make = [](const std::string &bound) {
    return makeOne({.body = load("x", "%b0", "%i") + store("y", "%b1", "%i", "%x") +
                            "%c = OpULessThan %bool %l " + bound +
                            "\nOpSelectionMerge %merge None\n"
                            "OpBranchConditional %c %merge %then\n"
                            "%then = OpLabel\nOpUnreachable\n%merge = OpLabel\n"});
  };
  expectReport(make("%n5"), {"undefined: in dispatch 0 (@kernel, graph.mlir:1), workgroup 0, "
                             "invocation 5 reaches OpUnreachable"});
  expectSilence(make("%n8"));
}

/// y[i] = sum of x[0..i], each invocation with trips of its own.
static KernelText sum(const std::string &bound) {
  return {.body = "OpBranch %head\n%head = OpLabel\n"
                  "%k = OpPhi %uint %n0 %entry %next %body\n"
                  "%s = OpPhi %float %f1 %entry %t %body\n"
                  "%more = OpULessThan %bool %k " +
                  bound +
                  "\nOpLoopMerge %done %body None\nOpBranchConditional %more %body %done\n"
                  "%body = OpLabel\n" +
                  load("x", "%b0", "%k") +
                  "%t = OpFAdd %float %s %x\n%next = OpIAdd %uint %k %n1\nOpBranch %head\n"
                  "%done = OpLabel\n" +
                  store("y", "%b1", "%i", "%s")};
}

TEST(Invocations, diverge_and_meet_again) {
  Sample sample = makeOne(sum("%i"));
  expectSilence(sample);
  EXPECT_EQ(getFloats(sample.run()), (std::vector<float>{1, 1, 2, 4, 7, 11, 16, 22}));
}

TEST(Invocations, loops_end) {
  Sample sample = makeOne(sum("%i"));
  sample.artifact.manifest.targets[0].maxLoopTrips = 7;
  expectSilence(sample);
  sample.artifact.manifest.targets[0].maxLoopTrips = 6;
  std::vector<std::string> reports = sample.run().reports;
  ASSERT_FALSE(reports.empty());
  EXPECT_NE(reports[0].find("a loop has more than 6 trips"), std::string::npos);
}

/// A phi that takes another phi's value of the trip before.
TEST(Invocations, phis_swap) {
  Sample sample = makeOne({.body = "OpBranch %head\n%head = OpLabel\n"
                                   "%k = OpPhi %uint %n0 %entry %next %body\n"
                                   "%a = OpPhi %float %f1 %entry %b %body\n"
                                   "%b = OpPhi %float %f2 %entry %a %body\n"
                                   "%more = OpULessThan %bool %k %i\n"
                                   "OpLoopMerge %done %body None\n"
                                   "OpBranchConditional %more %body %done\n"
                                   "%body = OpLabel\n%next = OpIAdd %uint %k %n1\nOpBranch %head\n"
                                   "%done = OpLabel\n" +
                                   load("x", "%b0", "%i") + store("y", "%b1", "%i", "%a")});
  expectSilence(sample);
  EXPECT_EQ(getFloats(sample.run()), (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2}));
}

TEST(Invocations, switches) {
  Sample sample =
      makeOne({.body = load("x", "%b0", "%i") +
                       "OpSelectionMerge %merge None\nOpSwitch %i %other 1 %one 2 %two 5 %one\n"
                       "%one = OpLabel\nOpBranch %merge\n%two = OpLabel\nOpBranch %merge\n"
                       "%other = OpLabel\nOpBranch %merge\n%merge = OpLabel\n"
                       "%y = OpPhi %float %f1 %one %f2 %two %x %other\n" +
                       store("y", "%b1", "%i", "%y")});
  EXPECT_EQ(getFloats(sample.run()), (std::vector<float>{0, 1, 2, 3, 4, 1, 6, 7}));
}

//===----------------------------------------------------------------------===//
// Bytes that hold nothing, or something else
//===----------------------------------------------------------------------===//

TEST(Contents, out_of_bounds) {
  auto make = [](const std::string &shift) {
    return makeOne({.body = "%at = OpIAdd %uint %i " + shift + "\n" + load("x", "%b0", "%at") +
                            store("y", "%b1", "%i", "%x")});
  };
  expectReport(make("%n2"), {"out of bounds: dispatch 0 (@kernel, graph.mlir:1), thread ",
                             "reads bytes [", ") of operand 0, which has 32 (the first of 4)"});
  expectSilence(make("%n0"));
  // A write does nothing; a negative index is none.
  expectReport(makeOne({.body = load("x", "%b0", "%i") + store("y", "%b1", "%i", "%x") +
                                "%at = OpISub %uint %i %n8\n" + store("z", "%b1", "%at", "%f1")}),
               {"writes bytes [-", ") of operand 1, which has 32"});
}

TEST(Contents, never_written) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.t, sample.y})};
  expectReport(sample, {"never written: dispatch 0 ", " of the arena as \"t\", which nothing wrote "
                                                      "in this run"});
  for (float y : getFloats(sample.run()))
    EXPECT_TRUE(std::isnan(y));
}

TEST(Contents, own_variables_never_written) {
  auto make = [](bool writes) {
    return makeOne({.body = load("x", "%b0", "%i") + (writes ? "OpStore %own %x\n" : "") +
                            "%y = OpLoad %float %own\n" + store("y", "%b1", "%i", "%y"),
                    .variables = "%own = OpVariable %pown Function\n",
                    .declarations = "%pown = OpTypePointer Function %float\n"});
  };
  expectReport(make(false), {"never written: ", "reads byte 0 of a variable of its own"});
  expectSilence(make(true));
}

/// Also in private and workgroup memory: the first and the last index, and beyond.
TEST(Contents, variables_have_bounds) {
  auto make = [](const std::string &storage, const std::string &offset) {
    bool isShared = storage == "Workgroup";
    return makeOne({.body = "%at = OpIAdd %uint %l " + offset + "\n" + load("x", "%b0", "%i") +
                            "%cell = OpAccessChain %pcell %own %at\nOpStore %cell %x\n"
                            "%again = OpAccessChain %pcell %own %at\n"
                            "%y = OpLoad %float %again\n" +
                            store("y", "%b1", "%i", "%y"),
                    .variables = isShared ? "" : "%own = OpVariable %pown Function\n",
                    .declarations = "%cells = OpTypeArray %float %n10\n%pown = OpTypePointer " +
                                    storage + " %cells\n%pcell = OpTypePointer " + storage +
                                    " %float\n" +
                                    (isShared ? "%own = OpVariable %pown Workgroup\n" : ""),
                    .interface = isShared ? "%own" : ""});
  };
  for (std::string storage : {"Function", "Workgroup"}) {
    expectSilence(make(storage, "%n0"));
    expectSilence(make(storage, "%n2"));
    for (const SimOptions &schedule : getSchedules()) {
      std::vector<std::string> reports = make(storage, "%n3").run(schedule).reports;
      ASSERT_EQ(reports.size(), 2u); // the store and the load
      EXPECT_NE(reports[0].find("bytes [40, 44) of a variable "), std::string::npos) << reports[0];
      EXPECT_NE(reports[0].find(", which has 40"), std::string::npos) << reports[0];
    }
  }
}

TEST(Contents, workgroup_memory_never_written) {
  auto make = [](const std::string &bound) {
    KernelText kernel = reverse("", "", 0x108);
    kernel.body = load("x", "%b0", "%i") + "%c = OpULessThan %bool %l " + bound +
                  "\nOpSelectionMerge %merge None\nOpBranchConditional %c %then %merge\n"
                  "%then = OpLabel\n%mine = OpAccessChain %pcell %tile %l\nOpStore %mine %x\n"
                  "OpBranch %merge\n%merge = OpLabel\n" +
                  fence + "%other = OpISub %uint %n15 %l\n" +
                  "%place = OpAccessChain %pcell %tile %other\n%y = OpLoad %float %place\n" +
                  store("y", "%b1", "%i", "%y");
    return makeOne(kernel, 1, 16);
  };
  expectReport(make("%n15"),
               {"never written: dispatch 0 ", "thread 0 of workgroup 0, reads byte 60 "
                                              "of workgroup memory, which nothing "
                                              "wrote"});
  expectSilence(make("%n16"));
}

/// Case 3 of the background: t is overwritten as u while it has a reader.
TEST(Contents, dead) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  PlanOperand x = sample.x, y = sample.y, t = sample.t, u = sample.u;
  sample.plan.commands = {dispatch(0, 0, {x, t}), barrier({t}), dispatch(0, 1, {x, u}),
                          barrier({t}), dispatch(0, 2, {t, y})};
  expectReport(sample, {"dead: dispatch 2 ",
                        " of the arena as \"t\", which holds \"u\" since "
                        "dispatch 1 (@kernel, graph.mlir:2), thread ",
                        ", wrote it (the first of 16)"});
  sample.plan.commands.back() = dispatch(0, 2, {u, y});
  expectSilence(sample);
}

/// A kernel that reads an operand again after it wrote over it, as ggml #1491.
TEST(Contents, dead_in_place) {
  auto make = [](const std::string &source) {
    Sample sample;
    sample.artifact.manifest.entries[0].arguments[0].donate = true;
    sample.addKernel({.body = load("x", "%b0", "%i") + store("y", "%b1", "%i", "%x") +
                              load("z", source, "%i") + "%s = OpFAdd %float %x %z\n" +
                              store("z", "%b2", "%i", "%s"),
                      .operands = 3},
                     "ruw");
    sample.plan.commands = {dispatch(0, 0, {sample.x, sample.operand(0, 3), sample.y})};
    return sample;
  };
  expectReport(make("%b0"), {"dead: dispatch 0 ", " of argument \"x\" as \"x\", which holds \"u\" "
                                                  "since dispatch 0 "});
  expectSilence(make("%b1"));
}

TEST(Contents, slots_that_are_over) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.plan.slots[0].lastWave = 0;
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.t}), barrier({sample.t}),
                          dispatch(0, 1, {sample.t, sample.y})};
  expectReport(sample, {"dead: dispatch 1 ", "operand 0, which is in no slot that is live in "
                                             "wave 1"});
  // Its bytes are destroyed.
  for (float y : getFloats(sample.run()))
    EXPECT_TRUE(std::isnan(y));
  sample.plan.slots[0].lastWave = 1;
  expectSilence(sample);
}

TEST(Contents, read_only) {
  Sample sample;
  sample.addKernel(doubled, "rw");
  sample.addKernel({.body = load("x", "%b0", "%i") + store("y", "%b0", "%i", "%f1"), .operands = 1},
                   "u");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}), barrier({}),
                          dispatch(1, 1, {sample.x})};
  // The second run sees what the first one left.
  for (const SimOptions &schedule : getSchedules()) {
    std::vector<std::string> reports = sample.run(schedule).reports;
    ASSERT_EQ(reports.size(), 2u);
    EXPECT_EQ(reports[0].find("read-only: dispatch 1 "), 0u);
    EXPECT_EQ(reports[1], "repeat: byte 3 of result \"y\" differs when the entry runs a second "
                          "time with the same arguments");
  }
  sample.artifact.manifest.entries[0].arguments[0].donate = true;
  expectSilence(sample);
}

TEST(Contents, effects) {
  Sample sample = makeOne(doubled, 1, 8, "rr");
  expectReport(sample, {"effect: the code of dispatch 0 (@kernel, graph.mlir:1) writes operand 1, "
                        "but the plan says that it does not"});
}

TEST(Contents, results_are_written) {
  KernelText kernel = doubled;
  kernel.invocations = 4;
  expectReport(makeOne(kernel),
               {"result: in the end byte 16 of result \"y\" holds nothing instead of \"y\""});
}

TEST(Contents, steps_carry_arguments) {
  Sample sample;
  sample.artifact.manifest.entries[0].arguments[0].donate = true;
  sample.addKernel(doubled, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y})};
  SimOptions options;
  options.steps = 3;
  options.carried = {0};
  SimOutcome outcome = sample.run(options);
  EXPECT_TRUE(outcome.reports.empty());
  EXPECT_EQ(getFloats(outcome)[1], 8);
}

TEST(Contents, progress_is_told) {
  Sample sample(8);
  KernelText kernel{.body = load("x", "%b0", "%l") + store("y", "%b1", "%l", "%x"),
                    .invocations = 8};
  sample.addKernel(kernel, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}, 200)};
  double last = 0;
  int calls = 0;
  SimOptions options;
  options.progress = [&](double part) {
    EXPECT_GE(part, last);
    EXPECT_LE(part, 1);
    last = part;
    ++calls;
  };
  sample.run(options);
  EXPECT_EQ(calls, 6);
}

TEST(Contents, source_lines) {
  KernelText kernel = doubled;
  kernel.body = "OpLine %file 7 3\n" + kernel.body;
  Sample sample;
  sample.addKernel(kernel, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}),
                          dispatch(0, 1, {sample.x, sample.y})};
  expectReport(sample, {"of workgroup 0 at source.mlir:7:3, writes byte"});
}

TEST(Contents, source_lines_of_equal_kernels) {
  KernelText kernel = doubled;
  kernel.line = "OpLine %file 1 5\n";
  kernel.body = "OpLine %file 7 3\n" + kernel.body;
  Sample sample;
  sample.addKernel(kernel, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}),
                          dispatch(0, 1, {sample.x, sample.y})};
  sample.plan.commands[0].location = "folder/source.mlir:1";
  sample.plan.commands[1].location = "folder/source.mlir:11";
  expectReport(sample, {"WAW: dispatch 1 (@kernel, folder/source.mlir:11), thread ",
                        " at source.mlir:7:3 of an equal kernel, writes byte ",
                        "which dispatch 0 (@kernel, folder/source.mlir:1), thread ",
                        " at source.mlir:7:3, writes; no barrier"});
}

TEST(Contents, line_0_is_none) {
  KernelText kernel = doubled;
  kernel.line = "OpLine %file 7 3\n";
  kernel.body = "OpLine %file 0 0\n" + kernel.body;
  Sample sample;
  sample.addKernel(kernel, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}),
                          dispatch(0, 1, {sample.x, sample.y})};
  expectReport(sample, {"of workgroup 0, writes byte"});
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

TEST(Refusals, say_what_is_not_known) {
  Sample sample = makeOne({.body = load("x", "%b0", "%i") +
                                   "%r = OpGroupNonUniformAllEqual %bool %n3 %x\n"
                                   "%y = OpSelect %float %r %f1 %f2\n" +
                                   store("y", "%b1", "%i", "%y"),
                           .capabilities = "OpCapability GroupNonUniformVote\n"});
  EXPECT_NE(getError(sample).find("code/vulkan/k0.spv: word "), std::string::npos);
  EXPECT_NE(getError(sample).find("OpGroupNonUniformAllEqual is not supported by the simulator"),
            std::string::npos);
  // Acquires and releases.
  sample = makeOne(makeUpdate("%old = OpAtomicIAdd %uint %p %n1 %n72 %l\n"), 1, 8, "ru");
  EXPECT_NE(getError(sample).find("OpAtomicIAdd orders other memory, which"), std::string::npos);
}

TEST(Refusals, functions_that_call_themselves) {
  Sample sample =
      makeOne({.body = load("x", "%b0", "%i") + "%y = OpFunctionCall %float %outer %x\n" +
                       store("y", "%b1", "%i", "%y"),
               .declarations = "%ftype = OpTypeFunction %float %float\n",
               .functions = "%outer = OpFunction %float None %ftype\n"
                            "%o = OpFunctionParameter %float\n%oentry = OpLabel\n"
                            "%r = OpFunctionCall %float %twice %o\n"
                            "OpReturnValue %r\nOpFunctionEnd\n" +
                            std::string(twice)});
  EXPECT_EQ(getError(sample), "");
  Bytes &code = sample.artifact.code.begin()->second;
  std::vector<uint32_t> words(code.size() / 4);
  std::memcpy(words.data(), code.data(), code.size());
  uint32_t outer = 0;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16)
    if ((words[at] & 0xffff) == 57) { // OpFunctionCall; the kernel's comes first
      outer = outer ? outer : words[at + 3];
      words[at + 3] = outer;
    }
  std::memcpy(code.data(), words.data(), code.size());
  EXPECT_NE(getError(sample).find("OpFunctionCall calls a function that has called it"),
            std::string::npos)
      << getError(sample);
}

TEST(Refusals, code_that_does_not_fit_the_plan) {
  Sample sample = makeOne(doubled);
  sample.plan.kernels[0].workgroup = {4, 1, 1};
  EXPECT_NE(getError(sample).find("a workgroup that differs from the plan"), std::string::npos);
  sample = makeOne(doubled);
  sample.plan.kernels[0].operands.pop_back();
  sample.plan.commands[0].operands.pop_back();
  EXPECT_NE(getError(sample).find("uses binding 1, but the plan gives kernel 'kernel' 1 operands"),
            std::string::npos);
  sample = makeOne(doubled);
  sample.plan.kernels[0].name = "other";
  EXPECT_NE(getError(sample).find("has no entry point 'other'"), std::string::npos);
}

TEST(Refusals, other_targets) {
  Sample sample = makeOne(doubled);
  sample.plan.target = "cuda";
  EXPECT_NE(getError(sample).find("compile it with --target=vulkan"), std::string::npos);
}

TEST(Refusals, strategies_by_name) {
  EXPECT_EQ(parseSimStrategy("latest-first"), SimStrategy::LatestFirst);
  try {
    parseSimStrategy("fastest");
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(),
                 "'fastest' is not a strategy of the simulator; expected one of random, "
                 "recorded, latest-first, writer-first, split");
  }
}

/// Changes any word of a kernel: the simulator ends, and accesses nothing else.
TEST(Refusals, survive_any_word) {
  KernelText kernel = reverse(fence);
  KernelText loop = sum("%i");
  loop.elements = 16;
  loop.invocations = 16;
  std::mt19937_64 random(1);
  size_t refused = 0;
  for (const KernelText &text : {kernel, loop}) {
    Sample sample = makeOne(text, 1, 16);
    sample.artifact.manifest.targets[0].maxLoopTrips = 100;
    Bytes &code = sample.artifact.code.begin()->second;
    const Bytes original = code;
    for (size_t word = 0; word < code.size() / 4; ++word)
      for (int i = 0; i < 8; ++i) {
        code = original;
        uint32_t value;
        std::memcpy(&value, &code[word * 4], 4);
        value = i == 0   ? value ^ 1u << random() % 32
                : i == 1 ? value + 1
                         : uint32_t(random() % 100);
        std::memcpy(&code[word * 4], &value, 4);
        refused += !getError(sample).empty();
      }
  }
  EXPECT_GT(refused, 1000u); // of about 5000
}
