//===- SimTest.cpp - Reports of the simulator, and twins without ----------===//

#include "Expect.h"

#include <cmath>
#include <random>
#include <set>

using namespace weir;
using namespace weir::test;

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

/// Returns case 1 of the background: a reader of x, and then x written over.
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
// Visible bytes
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
// Refusals
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

TEST(Refusals, grids_that_would_take_days) {
  Sample sample = makeOne(doubled);
  for (std::array<int64_t, 3> grid : {std::array<int64_t, 3>{int64_t(1) << 31, 1, 1},
                                      {(int64_t(1) << 24) + 1, 1, 1},
                                      {1 << 10, 1 << 10, 1 << 10},
                                      {UINT32_MAX, UINT32_MAX, UINT32_MAX}}) {
    sample.plan.commands[0].grid = grid;
    EXPECT_NE(getError(sample).find("has more than 16777216 workgroups"), std::string::npos);
  }
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
