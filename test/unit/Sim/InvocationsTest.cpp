//===- InvocationsTest.cpp - Invocations of one dispatch ------------------===//

#include "Expect.h"

#include <cmath>

using namespace weir;
using namespace weir::test;

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
  // The value from before.
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

/// Returns a dispatch that computes y[i] = op of x, of the lanes below `bound`.
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

TEST(Invocations, diverge_and_meet_again) {
  Sample sample = makeOne(sum("%i"));
  expectSilence(sample);
  EXPECT_EQ(getFloats(sample.run()), (std::vector<float>{1, 1, 2, 4, 7, 11, 16, 22}));
}

TEST(Invocations, loops_end) {
  Sample sample = makeOne(sum("%i"));
  sample.artifact.manifest.targets[0].maxLoopTrips = 8; // the end counts, too
  expectSilence(sample);
  sample.artifact.manifest.targets[0].maxLoopTrips = 7;
  std::vector<std::string> reports = sample.run().reports;
  ASSERT_FALSE(reports.empty());
  EXPECT_NE(reports[0].find("an invocation makes more than 7 trips of loops"), std::string::npos);
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
