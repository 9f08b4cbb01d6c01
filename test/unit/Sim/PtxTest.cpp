//===- PtxTest.cpp - Threads of PTX: order, warps, copies -----------------===//

#include "Ptx.h"

#include <ctime>

using namespace weir;
using namespace weir::test;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static const std::string storeX = "ld.global.b32 %r0, [%pa];\nst.shared.b32 [%ps], %r0;\n";
/// Loads what the neighbor of the same warp has in the tile, and stores it.
static const std::string loadOther = "xor.b32 %r1, %t, 1;\nmul.wide.u32 %d1, %r1, 4;\n"
                                     "mov.b64 %d2, tile;\nadd.s64 %d3, %d2, %d1;\n"
                                     "ld.shared.b32 %r2, [%d3];\nst.global.b32 [%pb], %r2;\n";
/// The same of the next warp.
static const std::string loadNext = "xor.b32 %r1, %t, 32;\nmul.wide.u32 %d1, %r1, 4;\n"
                                    "mov.b64 %d2, tile;\nadd.s64 %d3, %d2, %d1;\n"
                                    "ld.shared.b32 %r2, [%d3];\nst.global.b32 [%pb], %r2;\n";

TEST(Ptx, computes) {
  Sample sample = makePtx("ld.global.f32 %r0, [%pa];\nfma.rn.f32 %r1, %r0, 0f40000000, "
                          "0f3F800000;\nst.global.f32 [%pb], %r1;",
                          64, 3);
  expectSilence(sample);
  std::vector<float> floats = getFloats(sample.run());
  for (size_t i = 0; i < floats.size(); ++i)
    EXPECT_EQ(floats[i], float(2 * i + 1));
}

TEST(Ptx, lanes_are_not_in_lockstep) {
  expectSome(makePtx(storeX + loadOther),
             {"RAW: in dispatch 0 (@kernel, graph.mlir:1), thread ", " at code/cuda/kernel.ptx:",
              " of workgroup memory, which thread ", "; no barrier in the kernel orders the two"});
  expectSilence(makePtx(storeX + "bar.warp.sync 0xffffffff;\n" + loadOther));
  expectSilence(makePtx(storeX + "bar.sync 0;\n" + loadOther));
  // Shuffles order nothing.
  expectSome(makePtx(storeX + "shfl.sync.idx.b32 %r5, %r0, 0, 31, -1;\n" + loadOther), {"RAW: "});
  // Nor do fences.
  expectSome(makePtx(storeX + "membar.cta;\nfence.acq_rel.gpu;\n" + loadOther), {"RAW: "});
}

TEST(Ptx, a_barrier_of_a_warp_orders_that_warp) {
  const std::string between = "bar.warp.sync -1;\n";
  expectSilence(makePtx(storeX + between + loadOther, 64));
  expectSome(makePtx(storeX + between + loadNext, 64), {"RAW: "});
  expectSilence(makePtx(storeX + "bar.sync 0;\n" + loadNext, 64));
  expectSilence(makePtx(storeX + "barrier.sync 0;\n" + loadNext, 64));
}

/// The lanes of each half are ordered among themselves.
TEST(Ptx, a_barrier_of_a_part_of_a_warp) {
  const std::string halves = "and.b32 %r20, %t, 16;\nmov.b32 %r21, 0xffff;\n"
                             "shl.b32 %r22, %r21, %r20;\nbar.warp.sync %r22;\n";
  expectSilence(makePtx(storeX + halves + loadOther));
  std::string far = loadOther;
  far.replace(far.find("%t, 1;"), 6, "%t, 16;");
  expectSome(makePtx(storeX + halves + far), {"RAW: "});
}

/// A read by another warp counts although lanes of the own one read after it.
TEST(Ptx, reads_of_two_warps_are_kept) {
  const std::string body = "st.global.b32 [%pb], %t;\nsetp.eq.u32 %p1, %t, 0;\n"
                           "@%p1 st.shared.b32 [tile], %t;\nbar.sync 0;\n"
                           "ld.shared.b32 %r1, [tile];\nBARRIER\n"
                           "setp.eq.u32 %p2, %t, 5;\n@%p2 st.shared.b32 [tile], %t;\n";
  auto with = [&](const std::string &barrier) {
    std::string text = body;
    return text.replace(text.find("BARRIER"), 7, barrier);
  };
  expectSome(makePtx(with("bar.warp.sync -1;"), 64), {"WAR: "});
  expectSilence(makePtx(with("bar.warp.sync -1;"), 32));
  expectSilence(makePtx(with("bar.sync 0;"), 64));
}

TEST(Ptx, bounds) {
  expectReport(makePtx("st.global.b32 [%pb], %t;\nld.global.b32 %r1, [%pa+128];"),
               {"out of bounds: dispatch 0 (@kernel, graph.mlir:1), thread ",
                " at code/cuda/kernel.ptx:", ", reads bytes [", ") of operand 0, which has 128"});
  expectReport(makePtx("st.global.b32 [%pb], %t;\nst.shared.b32 [%ps+4000], %t;"),
               {"out of bounds: ", " of a variable in workgroup memory, which has 4096"});
  expectSilence(makePtx("st.global.b32 [%pb], %t;\nst.shared.b32 [%ps+3968], %t;"));
}

TEST(Ptx, alignment) {
  expectReport(makePtx("st.global.b32 [%pb], %t;\nadd.s64 %d1, %a, 4;\n"
                       "ld.global.v2.b32 {%r1, %r2}, [%d1];"),
               {"misaligned: dispatch 0 ", ", reads 8 bytes at byte 4, which is not a multiple"});
  expectSilence(makePtx("st.global.b32 [%pb], %t;\nadd.s64 %d1, %a, 8;\n"
                        "ld.global.v2.b32 {%r1, %r2}, [%d1];"));
}

TEST(Ptx, never_written) {
  expectReport(makePtx("ld.shared.b32 %r1, [%ps];\nst.global.b32 [%pb], %r1;"),
               {"never written: ", " of workgroup memory, which nothing wrote"});
}

/// An address in one of two operands, chosen as the code runs.
TEST(Ptx, chosen_operands) {
  Sample sample = makePtx("st.global.b32 [%pb], %t;\nsetp.lt.u32 %p1, %t, 16;\n"
                          "selp.b64 %d1, %pa, %pb, %p1;\nld.global.b32 %r1, [%d1];\n"
                          "st.global.b32 [%pb], %r1;",
                          32, 1, "ru");
  std::vector<uint32_t> words = getWords(sample);
  EXPECT_EQ(words[3], std::bit_cast<uint32_t>(3.0f));
  EXPECT_EQ(words[20], 20u);
}

TEST(Ptx, loads_that_see_no_writes) {
  const std::string body = "ld.global.nc.b32 %r1, [%pb];\nst.global.b32 [%pb], %r1;";
  Sample sample = makePtx(body, 32, 1, "ru");
  sample.plan.commands[0].operands[1].before = 3;
  std::vector<std::string> reports = sample.run().reports;
  ASSERT_FALSE(reports.empty());
  EXPECT_NE(testing::PrintToString(reports).find(
                "nc: in dispatch 0 (@kernel, graph.mlir:1), thread 0 of workgroup 0 at "
                "code/cuda/kernel.ptx:"),
            std::string::npos)
      << testing::PrintToString(reports);
  expectSilence(makePtx("ld.global.nc.b32 %r1, [%pa];\nst.global.b32 [%pb], %r1;"));
}

TEST(Ptx, atomics) {
  const std::string count = "setp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.b32 [tile], 7;\nbar.sync 0;\n"
                            "atom.shared.add.u32 %r1, [tile], 1;\nbar.sync 0;\n"
                            "ld.shared.b32 %r2, [tile];\nst.global.b32 [%pb], %r2;";
  EXPECT_EQ(getWords(makePtx(count, 64)), std::vector<uint32_t>(64, 71));
  expectSome(makePtx("setp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.b32 [tile], 7;\n"
                     "atom.shared.add.u32 %r1, [tile], 1;\nst.global.b32 [%pb], %t;"),
             {"WAW: ", " updates byte 0 of workgroup memory"});
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

TEST(Warps, shuffles) {
  auto shuffle = [](const std::string &how, const std::string &operands) {
    return getWords(makePtx("shfl.sync." + how + ".b32 %r1|%p1, %t, " + operands +
                            ", -1;\nselp.b32 %r2, 100, 0, %p1;\nadd.s32 %r3, %r1, %r2;\n"
                            "st.global.b32 [%pb], %r3;"));
  };
  std::vector<uint32_t> up = shuffle("up", "3, 0"), down = shuffle("down", "3, 31"),
                        across = shuffle("bfly", "5, 31"), first = shuffle("idx", "9, 31"),
                        parts = shuffle("idx", "1, 0x1807");
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(up[i], i < 3 ? i : i - 3 + 100);
    EXPECT_EQ(down[i], i > 28 ? i : i + 3 + 100);
    EXPECT_EQ(across[i], (i ^ 5) + 100);
    EXPECT_EQ(first[i], 109u);
    EXPECT_EQ(parts[i], i / 8 * 8 + 1 + 100); // segments of 8 lanes
  }
}

TEST(Warps, masks_of_shuffles) {
  const std::string half = "setp.lt.u32 %p1, %t, 16;\nst.global.b32 [%pb], %t;\n";
  // In a branch of 16 lanes.
  auto inBranch = [&](const std::string &mask, const std::string &from) {
    return makePtx(half + "@!%p1 bra end;\nshfl.sync.idx.b32 %r1, %t, " + from + ", 31, " + mask +
                   ";\nst.global.b32 [%pb], %r1;\nend:\n");
  };
  expectSilence(inBranch("0xffff", "3"));
  // The others end: their values are not there, but nobody waits for them.
  expectSilence(inBranch("-1", "3"));
  expectReport(inBranch("0xffff", "20"), {"undefined: in dispatch 0 ", "takes a value from one"});
  expectSome(inBranch("0xff", "3"),
             {"undefined: in dispatch 0 (@kernel, graph.mlir:1), workgroup 0 at "
              "code/cuda/kernel.ptx:",
              " executes shfl.sync.idx.b32 and its lane is not in its own mask"});
}

/// Lanes 16 to 31 wait at a barrier for those that wait for them.
TEST(Warps, lanes_that_do_not_arrive) {
  const std::string body = "setp.lt.u32 %p1, %t, 16;\nst.global.b32 [%pb], %t;\n@!%p1 bra end;\n"
                           "shfl.sync.idx.b32 %r1, %t, 3, 31, MASK;\nend:\nbar.sync 0;\n";
  auto with = [&](const std::string &mask) {
    std::string text = body;
    return makePtx(text.replace(text.find("MASK"), 4, mask));
  };
  expectSilence(with("0xffff"));
  for (const SimOptions &schedule : getSchedules()) {
    std::string reports = testing::PrintToString(with("-1").run(schedule).reports);
    EXPECT_TRUE(reports.find("hang: in dispatch 0 ") != std::string::npos ||
                reports.find("divergent barrier: ") != std::string::npos)
        << reports;
  }
}

TEST(Warps, votes_and_matches) {
  const std::string start = "setp.lt.u32 %p1, %t, 5;\n";
  auto get = [&](const std::string &body) {
    return getWords(makePtx(start + body + "\nst.global.b32 [%pb], %r1;"));
  };
  EXPECT_EQ(get("vote.sync.ballot.b32 %r1, %p1, -1;")[9], 31u);
  EXPECT_EQ(get("vote.sync.any.pred %p2, %p1, -1;\nselp.b32 %r1, 1, 0, %p2;")[9], 1u);
  EXPECT_EQ(get("vote.sync.all.pred %p2, %p1, -1;\nselp.b32 %r1, 1, 0, %p2;")[9], 0u);
  EXPECT_EQ(get("and.b32 %r2, %t, 3;\nmatch.any.sync.b32 %r1, %r2, -1;")[6], 0x44444444u);
  EXPECT_EQ(get("redux.sync.add.u32 %r1, %t, -1;")[6], 496u);
  EXPECT_EQ(get("redux.sync.max.s32 %r1, %t, -1;")[6], 31u);
  EXPECT_EQ(get("mov.u32 %r1, %lanemask_lt;")[4], 15u);
}

TEST(Warps, divergent_barriers) {
  const std::string body = "setp.lt.u32 %p1, %t, BOUND;\nst.global.b32 [%pb], %t;\n"
                           "@%p1 bra end;\nbar.sync 0;\nend:\n";
  auto with = [&](const std::string &bound) {
    std::string text = body;
    return makePtx(text.replace(text.find("BOUND"), 5, bound), 64);
  };
  for (const char *bound : {"7", "32"})
    expectSome(with(bound), {"divergent barrier: in dispatch 0 ", " at code/cuda/kernel.ptx:",
                             "not all of its invocations reach the same barrier"});
  expectSilence(with("0"));
}

/// Both sides of a branch have a barrier; each invocation reaches one, but not the same.
TEST(Warps, barriers_of_two_branches) {
  const std::string body = "setp.lt.u32 %p1, %t, 32;\nst.global.b32 [%pb], %t;\n@%p1 bra other;\n"
                           "bar.sync 0;\nbra end;\nother:\nbar.sync 0;\nend:\n";
  expectSome(makePtx(body, 64), {"divergent barrier: "});
}

/// Lanes with loops of their own meet again behind them.
TEST(Warps, loops) {
  Sample sample = makePtx("mov.b32 %r1, 0;\nmov.b32 %r2, 0;\nloop:\nadd.s32 %r1, %r1, %r2;\n"
                          "add.s32 %r2, %r2, 1;\nsetp.le.u32 %p1, %r2, %t;\n@%p1 bra loop;\n"
                          "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;\nst.global.b32 [%pb], %r3;");
  for (const SimOptions &schedule : getSchedules()) {
    std::vector<uint32_t> words = getWords(sample, schedule);
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(words[i], (i ^ 1) * ((i ^ 1) + 1) / 2);
  }
}

/// One lane waits in a loop for another of its warp, which goes on although it would come last.
TEST(Warps, lanes_wait_for_each_other_in_loops) {
  for (const char *last : {"0", "31"}) {
    Sample sample = makePtx("setp.eq.u32 %p1, %t, 7;\n@%p1 st.shared.b32 [tile], 0;\nbar.sync 0;\n"
                            "setp.ne.u32 %p2, %t, " +
                            std::string(last) +
                            ";\n@%p2 bra wait;\nst.relaxed.cta.shared.b32 [tile], 5;\nwait:\n"
                            "ld.relaxed.cta.shared.b32 %r1, [tile];\nsetp.eq.b32 %p3, %r1, 0;\n"
                            "@%p3 bra wait;\nst.global.b32 [%pb], %r1;");
    for (const SimOptions &schedule : getSchedules())
      EXPECT_EQ(getWords(sample, schedule), std::vector<uint32_t>(32, 5));
  }
}

//===----------------------------------------------------------------------===//
// Copies that land later
//===----------------------------------------------------------------------===//

static const std::string copyX = "cp.async.ca.shared.global [%ps], [%pa], 4;\n";

TEST(Copies, land_after_the_wait) {
  const std::string wait = "cp.async.wait_all;\n",
                    own = "ld.shared.b32 %r2, [%ps];\nst.global.b32 [%pb], %r2;\n";
  for (const SimOptions &schedule : getSchedules())
    EXPECT_EQ(getWords(makePtx(copyX + wait + own), schedule)[9], std::bit_cast<uint32_t>(9.0f));
  // Not even the thread that copies sees the bytes before.
  expectReport(makePtx(copyX + own + wait),
               {"late: in dispatch 0 (@kernel, graph.mlir:1), thread ", " reads byte ",
                " of workgroup memory, to which thread ",
                " copies asynchronously; it has not waited for the copy"});
  // A barrier is no wait, and a wait no barrier.
  expectSome(makePtx(copyX + "bar.sync 0;\n" + loadOther + wait), {"late: "});
  expectSome(makePtx(copyX + wait + loadOther), {"RAW: "});
  // Nor does a barrier before the wait help.
  expectSome(makePtx(copyX + "bar.sync 0;\n" + wait + loadOther), {"RAW: "});
  expectSilence(makePtx(copyX + wait + "bar.sync 0;\n" + loadOther));
}

TEST(Copies, groups) {
  const std::string second = "cp.async.ca.shared.global [%ps+1024], [%pa], 4;\n",
                    commit = "cp.async.commit_group;\n",
                    own = "ld.shared.b32 %r2, [%ps];\nst.global.b32 [%pb], %r2;\n";
  expectSilence(makePtx(copyX + commit + second + commit + "cp.async.wait_group 1;\n" + own));
  expectReport(makePtx(copyX + commit + second + commit + "cp.async.wait_group 2;\n" + own),
               {"late: "});
  // A copy that is in no group yet is waited for by wait_all alone.
  expectReport(makePtx(copyX + "cp.async.wait_group 0;\n" + own), {"late: "});
  expectSilence(makePtx(copyX + "cp.async.wait_all;\n" + own));
}

TEST(Copies, sources_stay) {
  const std::string start = "st.global.b32 [%pb], %t;\n",
                    copy = "cp.async.ca.shared.global [%ps], [%pb], 4;\n",
                    write = "st.global.b32 [%pb], 5;\n", wait = "cp.async.wait_all;\n";
  expectReport(makePtx(start + copy + write + wait, 32, 1, "ru"),
               {"late: in dispatch 0 ", " writes byte ", " of result \"y\", from which thread "});
  expectSilence(makePtx(start + copy + wait + write, 32, 1, "ru"));
}

/// A copy may read up to the end of the wait, and so behind a barrier that comes before it.
TEST(Copies, sources_stay_for_other_threads) {
  const std::string copy = "st.global.b32 [%pb], %t;\ncp.async.ca.shared.global [%ps], [%pb], 4;\n"
                           "bar.sync 0;\ncp.async.wait_all;\n",
                    write =
                        "xor.b32 %r1, %t, 1;\nmul.wide.u32 %d1, %r1, 4;\nadd.s64 %d2, %b, %d1;\n"
                        "st.global.b32 [%d2], 5;\n";
  for (const SimOptions &schedule : getSchedules())
    EXPECT_FALSE(makePtx(copy + write, 32, 1, "ru").run(schedule).reports.empty());
  expectSilence(makePtx(copy + "bar.sync 0;\n" + write, 32, 1, "ru"));
}

TEST(Copies, places_are_written) {
  // A store to where a copy lands, before or after it.
  expectReport(makePtx(copyX + "st.shared.b32 [%ps], 1;\ncp.async.wait_all;\n"
                               "st.global.b32 [%pb], %t;"),
               {"late: "});
  expectSilence(makePtx("st.shared.b32 [%ps], 1;\n" + copyX +
                        "cp.async.wait_all;\nst.global.b32 [%pb], %t;"));
  // Fewer bytes than are written: the others are 0.
  EXPECT_EQ(getWords(makePtx("mov.b32 %r1, 2;\ncp.async.ca.shared.global [%ps], [%pa], 4, %r1;\n"
                             "cp.async.wait_all;\nld.shared.b32 %r2, [%ps];\n"
                             "st.global.b32 [%pb], %r2;"))[3],
            std::bit_cast<uint32_t>(3.0f) & 0xffff);
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

static std::string getProblem(const std::string &body) { return getError(makePtx(body)); }

TEST(PtxRefusals, name_the_line) {
  for (const char *body : {"ex2.approx.f32 %r1, %r0;", "frobnicate.b32 %r1, %r0;",
                           "mbarrier.init.shared.b64 [tile], 1;", "add.rz.f32 %r1, %r0, %r0;",
                           "add.ftz.f32 %r1, %r0, %r0;", "setp.lt.ftz.f32 %p1, %r0, %r0;",
                           "mov.u32 %r1, %smid;", "atom.global.add.f32 %r1, [%pb], %r0;"}) {
    std::string error =
        getProblem(std::string(loadX) + "\n\n" + body + "\nst.global.b32 [%pb], %r0;");
    EXPECT_EQ(error.find("code/cuda/kernel.ptx:26: "), 0u) << body << ": " << error;
  }
  EXPECT_NE(
      getProblem("st.global.b32 [%pb], %r70;").find("reads a register that nothing has written"),
      std::string::npos);
  // On several paths.
  const std::string paths = "setp.lt.u32 %p1, %t, 9;\n@%p1 bra end;\nWRITE\nend:\n"
                            "st.global.b32 [%pb], %r70;";
  auto with = [&](const std::string &write) {
    std::string text = paths;
    return getProblem(text.replace(text.find("WRITE"), 5, write));
  };
  EXPECT_NE(with("st.shared.b32 [%ps], %t;").find("reads a register that nothing has written"),
            std::string::npos);
  EXPECT_EQ(with("mov.b32 %r70, 5;"), "");
  EXPECT_NE(getProblem("mov.b64 %d1, 4096;\nld.global.b32 %r1, [%d1];\nst.global.b32 [%pb], %r1;")
                .find("has an address that is made of no parameter or variable"),
            std::string::npos);
  EXPECT_NE(getProblem("nosuch").find("code/cuda/kernel.ptx:"), std::string::npos);
}

TEST(PtxRefusals, do_not_take_long) {
  const std::clock_t begin = std::clock(); // not disturbed by what else runs
  std::string labels;
  for (int i = 0; labels.size() < 10'000'000; ++i)
    labels += "L" + std::to_string(i) + ":\n";
  getProblem(labels + "st.global.b32 [%pb], %r70;");
  std::string future = getPtx("st.global.b32 [%pb], %t;", 32);
  future.replace(future.find("8.0"), 3, "99.0");
  EXPECT_NE(getError(makeText(future, 32)).find("is of PTX version 99"), std::string::npos);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 5.0); // seconds; under one by itself
}
