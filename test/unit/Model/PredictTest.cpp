//===- PredictTest.cpp - Times of kernels made by hand --------------------===//

#include "weir/Artifact/Error.h"
#include "weir/Model/Model.h"
#include "weir/PtxReader/PtxReader.h"

#include "gtest/gtest.h"

using namespace weir;
using namespace weir::model;

/// Returns an entry @main of two parameters, whose addresses are in %a and %b. %t is the id of the
/// invocation, %g that of the workgroup, %i that in the grid.
static std::string getText(const std::string &body, int workgroup = 256) {
  return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry main(.param .u64 a, .param .u64 b)
.reqntid )" +
         std::to_string(workgroup) + R"(, 1, 1
{
  .reg .pred %p<9>;
  .reg .f32 %f<40>;
  .reg .b32 %t, %g, %i, %r<40>;
  .reg .b64 %a, %b, %d<40>;
  .shared .align 16 .b8 tile[8192];
  ld.param.b64 %a, [a];
  ld.param.b64 %b, [b];
  mov.u32 %t, %tid.x;
  mov.u32 %g, %ctaid.x;
  mad.lo.s32 %i, %g, )" +
         std::to_string(workgroup) + ", %t;\n" + body + "\n  ret;\n}\n";
}

static Prediction get(const std::string &body, int64_t grid = 1024, const char *device = "a100",
                      std::vector<int64_t> bytes = {1 << 20, 1 << 20}, int workgroup = 256) {
  std::string text = getText(body, workgroup);
  auto module = ptx::readEntry(text, "main", {uint32_t(workgroup), 1, 1}, "test.ptx");
  Launch launch;
  launch.grid = {grid, 1, 1};
  launch.operandBytes = std::move(bytes);
  launch.resources = Resources{32, 0, 0, 0};
  return predict(*module, "main", launch, getDevice(device), "test.ptx");
}

/// A load by which an invocation reads `bytes` bytes at `stride` times its id.
static std::string getLoad(int stride, int bytes) {
  std::string load = bytes == 16  ? "ld.global.v4.f32 {%f1, %f2, %f3, %f4}"
                     : bytes == 8 ? "ld.global.v2.f32 {%f1, %f2}"
                                  : "ld.global.f32 %f1";
  return "  mul.wide.u32 %d1, %i, " + std::to_string(stride) + ";\n  add.s64 %d2, %a, %d1;\n  " +
         load + ", [%d2];\n";
}

static const char *store = "  mul.wide.u32 %d3, %i, 4;\n  add.s64 %d4, %b, %d3;\n"
                           "  st.global.f32 [%d4], %f1;\n";

/// Returns the only access of a kind.
static const model::Access &find(const Prediction &prediction, const std::string &kind,
                                 const std::string &memory = "operand 0") {
  const model::Access *found = nullptr;
  for (const model::Access &access : prediction.accesses)
    if (access.kind == kind && access.memory == memory) {
      EXPECT_EQ(found, nullptr) << "more than one";
      found = &access;
    }
  if (!found)
    throw Error("no " + kind + " of " + memory);
  return *found;
}

TEST(Accesses, OfNeighboursUseWholeSectors) {
  Prediction prediction = get(getLoad(4, 4) + store);
  const model::Access &load = find(prediction, "load");
  EXPECT_EQ(load.width, 4);
  EXPECT_EQ(load.requests, 1024 * 8);
  EXPECT_EQ(load.wantedBytes, 1024 * 256 * 4);
  EXPECT_EQ(load.movedBytes, load.requests * 128); // four sectors each
  EXPECT_EQ(load.getUse(), 1);
  EXPECT_EQ(load.missedBytes, load.movedBytes);
  EXPECT_EQ(find(prediction, "store", "operand 1").getUse(), 1);
  EXPECT_EQ(prediction.dramBytes, 2 << 20);
}

TEST(Accesses, OfStridesWasteThem) {
  EXPECT_EQ(find(get(getLoad(8, 4)), "load").getUse(), 0.5);
  EXPECT_EQ(find(get(getLoad(16, 4)), "load").getUse(), 0.25);
  EXPECT_EQ(find(get(getLoad(16, 16)), "load").getUse(), 1);
  EXPECT_EQ(find(get(getLoad(16, 16)), "load").width, 16);
  Prediction column = get(getLoad(4096, 4));
  EXPECT_EQ(find(column, "load").movedBytes, find(column, "load").requests * 32 * 32);
  EXPECT_EQ(find(column, "load").getUse(), 0.125);
}

/// A load of the workgroup's memory by an invocation at `stride` times its id.
static std::string getSharedLoad(int stride, int bytes) {
  std::string load = bytes == 16 ? "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}" : "ld.shared.f32 %f1";
  return "  and.b32 %r1, %t, 31;\n  mov.u32 %r2, tile;\n  mad.lo.s32 %r3, %r1, " +
         std::to_string(stride) + ", %r2;\n  " + load + ", [%r3];\n" + store;
}

TEST(Accesses, ConflictsInWorkgroupMemory) {
  auto getWays = [](int stride, int bytes) {
    Prediction prediction = get(getSharedLoad(stride, bytes));
    const model::Access &load = find(prediction, "load", "workgroup");
    EXPECT_EQ(load.turns / load.idealTurns, load.worstWays);
    return load.worstWays;
  };
  EXPECT_EQ(getWays(4, 4), 1);
  EXPECT_EQ(getWays(8, 4), 2);
  EXPECT_EQ(getWays(128, 4), 32);
  EXPECT_EQ(getWays(132, 4), 1); // padded
  EXPECT_EQ(getWays(16, 16), 1);
  EXPECT_EQ(getWays(32, 16), 2);
}

/// Loads of neighbouring words at one base are one access of 16 bytes, as ptxas makes them.
TEST(Accesses, NeighbouringLoadsOfWorkgroupMemoryAreOne) {
  auto getLoads = [](const std::string &between, int begin) {
    std::string text = "  mov.u32 %r2, tile;\n  shl.b32 %r3, %t, 4;\n  add.s32 %r4, %r2, %r3;\n";
    for (int i = 0; i < 4; ++i)
      text += "  ld.shared.f32 %f" + std::to_string(i + 1) + ", [%r4+" +
              std::to_string(begin + 4 * i) + "];\n" + (i == 1 ? between : "");
    double requests = 0;
    for (const model::Access &access : get(text + store).accesses)
      if (access.memory == "workgroup" && access.kind == "load")
        requests += access.requests;
    return requests / 1024 / 8;
  };
  EXPECT_EQ(getLoads("", 0), 1);
  EXPECT_EQ(getLoads("", 8), 2); // two of 8 bytes
  EXPECT_EQ(getLoads("", 4), 3); // only the middle is aligned
  EXPECT_EQ(getLoads("  st.shared.f32 [%r4], %f1;\n", 0), 2);
}

TEST(Accesses, L1HoldsWhatAWorkgroupReadsAgain) {
  std::string twice = getLoad(4, 4);
  twice += "  ld.global.f32 %f5, [%d2];\n";
  Prediction prediction = get(twice + store);
  double moved = 0, missed = 0;
  for (const model::Access &access : prediction.accesses)
    if (access.kind == "load") {
      moved += access.movedBytes;
      missed += access.missedBytes;
    }
  EXPECT_EQ(moved, 2 * missed);
}

static std::string getLoop(int trips, const std::string &body) {
  return "  mov.u32 %r9, 0;\n  mov.f32 %f9, 0f00000000;\nLOOP:\n" + body +
         "  add.s32 %r9, %r9, 1;\n  setp.ne.s32 %p1, %r9, " + std::to_string(trips) +
         ";\n  @%p1 bra LOOP;\n";
}

TEST(Accesses, AllTripsOfLoopsCount) {
  Prediction prediction = get(getLoop(100, getLoad(4, 4)) + store);
  EXPECT_EQ(find(prediction, "load").requests, 1024 * 8 * 100);
}

TEST(Accesses, LanesThatBranchAwayDoNotCount) {
  Prediction prediction =
      get("  and.b32 %r1, %t, 31;\n  setp.gt.u32 %p1, %r1, 7;\n  @%p1 bra OVER;\n" + getLoad(4, 4) +
          store + "OVER:\n");
  EXPECT_EQ(find(prediction, "load").wantedBytes, 1024 * 64 * 4);
  EXPECT_EQ(find(prediction, "load").movedBytes, 1024 * 8 * 32);
}

TEST(Accesses, TheLastWorkgroupMayBeSmaller) {
  Prediction prediction = get(
      "  setp.ge.u32 %p1, %i, 1000;\n  @%p1 bra OVER;\n" + getLoad(4, 4) + store + "OVER:\n", 4);
  EXPECT_EQ(find(prediction, "load").wantedBytes, 4000);
}

/// Instructions that the reader of PTX only names are computed where addresses need them.
TEST(Accesses, AddressesOfNamedInstructions) {
  auto getUse = [](const std::string &index) {
    Prediction prediction = get("  mov.u32 %r8, 2;\n  cvt.u64.u32 %d9, %i;\n" + index +
                                "  mul.wide.u32 %d1, %r1, 4;\n  add.s64 %d2, %a, %d1;\n"
                                "  ld.global.f32 %f1, [%d2];\n");
    EXPECT_TRUE(prediction.assumptions.empty()) << index;
    return find(prediction, "load").getUse();
  };
  // The index is that of the invocation, or twice as much.
  EXPECT_EQ(getUse("  bfi.b32 %r1, %i, 0, 0, 32;\n"), 1);
  EXPECT_EQ(getUse("  bfi.b32 %r1, %i, 0, 1, 31;\n"), 0.5);
  EXPECT_EQ(getUse("  shl.b32 %r2, %i, %r8;\n  shr.u32 %r1, %r2, %r8;\n"), 1);
  EXPECT_EQ(getUse("  shl.b32 %r2, %i, %r8;\n  shr.u32 %r1, %r2, 1;\n"), 0.5);
  EXPECT_EQ(getUse("  lop3.b32 %r1, %i, %r8, %r8, 240;\n"), 1); // the first
  EXPECT_EQ(getUse("  lop3.b32 %r2, %i, %i, %i, 15;\n  not.b32 %r3, %r2;\n"
                   "  shl.b32 %r1, %r3, 1;\n"),
            0.5); // not the first
  EXPECT_EQ(getUse("  shl.b64 %d8, %d9, 32;\n  mov.u64 %d7, 4294967296;\n"
                   "  mul.hi.u64 %d6, %d8, %d7;\n  cvt.u32.u64 %r1, %d6;\n"),
            1);
  EXPECT_EQ(getUse("  shl.b64 %d8, %d9, 32;\n  mov.u64 %d7, 8589934592;\n"
                   "  mul.hi.s64 %d6, %d8, %d7;\n  cvt.u32.u64 %r1, %d6;\n"),
            0.5);
  EXPECT_EQ(getUse("  shl.b32 %r2, %i, 4;\n  bfe.s32 %r1, %r2, 4, 24;\n"), 1);
}

/// Rows that loaded numbers choose are read whole; where they are is not known.
TEST(Accesses, OfLoadedRowsAreNamed) {
  const std::string row = "  shr.u32 %r1, %i, 5;\n  mul.wide.u32 %d1, %r1, 4;\n"
                          "  add.s64 %d2, %b, %d1;\n  ld.global.b32 %r2, [%d2];\n"
                          "  and.b32 %r3, %t, 31;\n  shl.b32 %r4, %r2, 5;\n"
                          "  add.s32 %r5, %r4, %r3;\n  mul.wide.s32 %d3, %r5, 4;\n"
                          "  add.s64 %d4, %a, %d3;\n  ld.global.f32 %f1, [%d4];\n";
  Prediction prediction = get(row);
  EXPECT_EQ(find(prediction, "load").getUse(), 1);
  ASSERT_EQ(prediction.assumptions.size(), 1u);
  EXPECT_NE(prediction.assumptions[0].find("address depends on"), std::string::npos);
  EXPECT_TRUE(get(getLoad(4, 4)).assumptions.empty());
  // An address for each lane is a sector for each lane.
  Prediction scattered = get("  mul.wide.u32 %d1, %i, 4;\n  add.s64 %d2, %b, %d1;\n"
                             "  ld.global.b32 %r2, [%d2];\n  mul.wide.s32 %d3, %r2, 4;\n"
                             "  add.s64 %d4, %a, %d3;\n  ld.global.f32 %f1, [%d4];\n");
  EXPECT_EQ(find(scattered, "load").getUse(), 0.125);
}

TEST(Accesses, LoopsOverLoadedNumbersRunOnce) {
  Prediction prediction =
      get("  ld.global.b32 %r8, [%b];\n  mov.u32 %r9, 0;\nLOOP:\n" + getLoad(4, 4) +
          "  add.s32 %r9, %r9, 1;\n  setp.lt.s32 %p1, %r9, %r8;\n  @%p1 bra LOOP;\n");
  EXPECT_EQ(find(prediction, "load").requests, 2 * 1024 * 8); // in the trip, and once more
  ASSERT_FALSE(prediction.assumptions.empty());
  EXPECT_NE(prediction.assumptions[0].find("trips"), std::string::npos);
}

TEST(Times, ACopyIsBoundByMemory) {
  const int64_t bytes = int64_t(1) << 30;
  Prediction prediction = get(getLoad(4, 4) + store, bytes / 1024, "h100", {bytes, bytes});
  EXPECT_EQ(prediction.terms.front().name, "memory");
  EXPECT_EQ(prediction.boundBy, "memory");
  EXPECT_NEAR(2.0 * double(bytes) / prediction.seconds * 1e-9, 3024, 10);
  EXPECT_GT(prediction.bytesInFlight, prediction.bytesNeeded);
}

/// Returns fmas of eight independent sums.
static std::string getFmas(int trips) {
  std::string body;
  for (int i = 0; i < 64; ++i) {
    std::string sum = "%f" + std::to_string(10 + i % 8);
    body += "  fma.rn.f32 " + sum + ", " + sum + ", " + sum + ", " + sum + ";\n";
  }
  return getLoop(trips, body) + "  mov.f32 %f1, %f10;\n" + store;
}

TEST(Times, FmasAreBoundByTheirLanes) {
  Prediction prediction = get(getFmas(1000), 108 * 8);
  EXPECT_EQ(prediction.boundBy, "fma");
  EXPECT_EQ(prediction.terms.front().name, "fma");
  EXPECT_EQ(prediction.flops, 108.0 * 8 * 256 * 64000 * 2);
  EXPECT_NEAR(prediction.flops / prediction.seconds * 1e-12, 19.5, 3.5);
  EXPECT_NEAR(prediction.flops / prediction.bound * 1e-12, 19.5, 0.1);
}

TEST(Times, OneWorkgroupIsBoundByLatency) {
  Prediction prediction = get(getFmas(1000), 1, "a100", {1024, 1024}, 32);
  EXPECT_EQ(prediction.terms.front().name, "latency");
  EXPECT_GT(prediction.seconds, 20 * prediction.bound);
}

TEST(Times, GrowWithWork) {
  double last = 0;
  for (int64_t grid : {1, 100, 108, 864, 865, 5000, 100000}) {
    double now = get(getFmas(10), grid, "a100", {1 << 30, 1 << 30}).seconds;
    EXPECT_GE(now, last) << grid;
    last = now;
  }
  last = 0;
  for (int trips : {1, 2, 10, 100, 1000}) {
    double now = get(getFmas(trips)).seconds;
    EXPECT_GT(now, last) << trips;
    last = now;
  }
  last = 0;
  for (int stride : {4, 8, 16, 32, 64, 128}) {
    double now = get(getLoad(stride, 4) + store, 1 << 18, "a100", {1 << 30, 1 << 30}).seconds;
    EXPECT_GE(now, last) << stride;
    last = now;
  }
  last = 0;
  for (int stride : {4, 8, 16, 32, 64, 128}) {
    double now = get(getLoop(100, getSharedLoad(stride, 4)), 1 << 14).seconds;
    EXPECT_GE(now, last) << stride;
    last = now;
  }
}

TEST(Times, AreNeverBelowTheBound) {
  for (const char *device : {"a100", "h100", "h200", "l4", "rtx4090", "a6000"})
    for (int64_t grid : {1, 1000, 1 << 18})
      for (const std::string &body : {getFmas(20), getLoad(4, 4) + store, getLoad(64, 4) + store}) {
        Prediction prediction = get(body, grid, device, {1 << 28, 1 << 28});
        EXPECT_GE(prediction.seconds, prediction.bound) << device << " " << grid;
      }
}

TEST(Times, TheTailIsEmptyPlaces) {
  EXPECT_EQ(get(getFmas(1), 108 * 8).fills, 1);
  EXPECT_EQ(get(getFmas(1), 108 * 8).tail, 0);
  Prediction more = get(getFmas(1), 108 * 8 + 1);
  EXPECT_NEAR(more.tail, 0.5, 0.01);
}

TEST(Times, MatrixInstructionsCount) {
  Prediction prediction = get(
      "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, "
      "%r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};\n" +
          std::string(store),
      108);
  EXPECT_EQ(prediction.matrixFlops, 108.0 * 8 * 2 * 16 * 8 * 16);
  EXPECT_GT(prediction.matrixClocks, 0);
  EXPECT_EQ(get(getFmas(1)).matrixClocks, 0);
}

/// Matrix instructions wait for the sums that they add to, not for those of others.
TEST(Times, MatricesOverlap) {
  auto getChain = [](const std::string &sums) {
    std::string mma = "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {" + sums +
                      "}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {" + sums + "};\n",
                body =
                    "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, "
                    "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};\n";
    return get(body + mma + mma + mma + store, 108).chainClocks;
  };
  EXPECT_GT(getChain("%f1, %f2, %f3, %f4"), getChain("%f5, %f6, %f7, %f8") + 20);
}

/// A copy to workgroup memory costs no register, and is waited for where the code says so.
TEST(Times, AsynchronousCopiesOverlap) {
  auto getCopies = [](int allowed) {
    std::string body = "  mov.u32 %r2, tile;\n  shl.b32 %r3, %t, 4;\n  add.s32 %r4, %r2, %r3;\n"
                       "  mul.wide.u32 %d1, %t, 16;\n  add.s64 %d2, %a, %d1;\n";
    body += getLoop(50, "  cp.async.cg.shared.global [%r4], [%d2], 16;\n"
                        "  cp.async.commit_group;\n  cp.async.wait_group " +
                            std::to_string(allowed) + ";\n  add.s64 %d2, %d2, 4096;\n");
    return get(body, 108).chainClocks;
  };
  EXPECT_GT(getCopies(0), 50 * 400);
  EXPECT_LT(getCopies(3), getCopies(0) / 2);
}

/// Past L1 a copy's bytes move once, into workgroup memory; else they are read from L1, too.
TEST(Times, CopiesPastL1MoveOnce) {
  auto getL1 = [](const std::string &kind) {
    std::string body = "  mov.u32 %r2, tile;\n  shl.b32 %r3, %t, 4;\n  add.s32 %r4, %r2, %r3;\n"
                       "  mul.wide.u32 %d1, %t, 16;\n  add.s64 %d2, %a, %d1;\n";
    body += getLoop(50, "  cp.async." + kind +
                            ".shared.global [%r4], [%d2], 16;\n  cp.async.commit_group;\n"
                            "  cp.async.wait_group 0;\n  add.s64 %d2, %d2, 4096;\n");
    for (const Term &term : get(body, 108).terms)
      if (std::string(term.name) == "L1")
        return term.seconds;
    return 0.0;
  };
  EXPECT_GT(getL1("cg"), 0);
  EXPECT_GT(getL1("ca"), 1.3 * getL1("cg"));
}

TEST(Times, UnknownFiguresAreNamed) {
  EXPECT_TRUE(get(getFmas(1)).unknown.empty());
  Prediction prediction = get(getFmas(1), 1, "l4");
  ASSERT_EQ(prediction.unknown.size(), 1u);
  EXPECT_EQ(prediction.unknown[0], "bytes a clock of L2");
}

TEST(Refusals, NameTheReason) {
  auto getError = [](const std::string &text, const std::string &entry, int64_t grid) {
    auto module = ptx::readEntry(text, "main", {256, 1, 1}, "test.ptx");
    Launch launch;
    launch.grid = {grid, 1, 1};
    try {
      predict(*module, entry, launch, getDevice("a100"), "test.ptx");
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(getError(getText(getLoad(4, 4)), "main", 1), "");
  EXPECT_EQ(getError(getText(getLoad(4, 4)), "other", 1), "test.ptx: has no entry point \"other\"");
  EXPECT_EQ(getError(getText(getLoad(4, 4)), "main", int64_t(1) << 50),
            "test.ptx: a grid has 1 to 2^40 workgroups");
  EXPECT_EQ(getError(getText(getLoad(4, 4)), "main", 0),
            "test.ptx: a grid has 1 to 2^40 workgroups");
  auto getWide = [](const std::string &rows) {
    std::string text = getText(getLoad(4, 4), 1024);
    return text.replace(text.find("1024, 1, 1"), 10, "1024, " + rows + ", 1");
  };
  EXPECT_EQ(getError(getWide("1024"), "main", 1),
            "test.ptx: workgroups of 1 to 4096 invocations are modelled");
  EXPECT_NE(getError(getWide("4"), "main", 1).find("does not fit NVIDIA A100"), std::string::npos);
  EXPECT_EQ(getError(getText(getLoop(100000000, getLoad(4, 4))), "main", 1),
            "test.ptx: runs for so long that the model gives up; use smaller sizes");
}

/// Arrays of an invocation's own are in L1 while they fit, and spill to L2.
TEST(Accesses, OfOwnMemory) {
  auto getMissed = [](int trips) {
    std::string body = "  mov.u64 %d5, array;\n  mov.u32 %r7, 0;\n  mov.f32 %f1, 0f00000000;\n" +
                       getLoop(trips, "  mul.wide.u32 %d6, %r9, 4;\n  add.s64 %d7, %d5, %d6;\n"
                                      "  st.local.f32 [%d7], %f1;\n");
    body += "  mov.u32 %r9, 0;\nAGAIN:\n  mul.wide.u32 %d6, %r9, 4;\n  add.s64 %d7, %d5, %d6;\n"
            "  ld.local.f32 %f1, [%d7];\n  add.s32 %r9, %r9, 1;\n  setp.ne.s32 %p1, %r9, " +
            std::to_string(trips) + ";\n  @%p1 bra AGAIN;\n" + store;
    body = "  .local .align 4 .b8 array[4096];\n" + body;
    Prediction prediction = get(body);
    const model::Access &load = find(prediction, "load", "own");
    EXPECT_EQ(load.requests, 1024.0 * 8 * trips);
    return load.missedBytes;
  };
  EXPECT_EQ(getMissed(8), 0);
  EXPECT_GT(getMissed(1024), 0);
}

/// A workgroup that reads more than its part of L2 reads it from memory again.
TEST(Times, L2HoldsWhatItCan) {
  auto getBytes = [](int trips) {
    // Each workgroup has rows of its own, and walks them twice.
    std::string walk = "  mul.wide.u32 %d6, %g, " + std::to_string(trips * 1024) +
                       ";\n  mul.wide.u32 %d7, %t, 4;\n  add.s64 %d6, %d6, %d7;\n"
                       "  add.s64 %d8, %a, %d6;\n";
    std::string again = getLoop(trips, "  ld.global.f32 %f1, [%d8];\n  add.s64 %d8, %d8, 1024;\n");
    std::string second = again;
    for (size_t at; (at = second.find("LOOP")) != std::string::npos;)
      second.replace(at, 4, "NEXT");
    Prediction prediction =
        get(walk + again + walk + second, 4096, "a100", {int64_t(4096) * trips * 1024, 1 << 20});
    return prediction.dramBytes / prediction.bytesOnce;
  };
  EXPECT_EQ(getBytes(4), 1);            // 16 MiB fit L2
  EXPECT_EQ(getBytes(16), 1);           // 16 KiB of each of 864 workgroups do
  EXPECT_NEAR(getBytes(1024), 2, 0.01); // 1 MiB of each does not
}

/// Lanes that leave a loop early wait for the others behind it.
TEST(Accesses, LanesMeetBehindLoops) {
  for (bool isSwapped : {false, true}) {
    const std::string leave =
        isSwapped ? "  @%p1 bra BODY;\n  bra OUT;\nBODY:\n" : "  @!%p1 bra OUT;\n";
    Prediction prediction =
        get("  mov.u32 %r9, 0;\n  and.b32 %r1, %t, 31;\nHEAD:\n  setp.lt.u32 %p1, %r9, %r1;\n" +
            leave + "  add.s32 %r9, %r9, 1;\n  bra HEAD;\nOUT:\n" + getLoad(4, 4));
    EXPECT_EQ(find(prediction, "load").requests, 1024 * 8) << isSwapped;
  }
}

/// Loads move up in their block, but not over barriers.
TEST(Times, BarriersKeepLoadsApart) {
  auto getChain = [](const std::string &between) {
    return get("  mul.wide.u32 %d1, %i, 4;\n  add.s64 %d2, %a, %d1;\n  ld.global.f32 %f1, [%d2];\n"
               "  add.rn.f32 %f2, %f1, %f1;\n" +
                   between + "  ld.global.f32 %f3, [%d2+65536];\n  add.rn.f32 %f4, %f3, %f3;\n",
               108)
        .chainClocks;
  };
  EXPECT_LT(getChain(""), 600);
  EXPECT_GT(getChain("  bar.sync 0;\n"), 900);
}

/// Returns which part of the second longest term is added to the longest one.
static double getRest(const std::string &body) {
  Prediction prediction = get(body, 108, "a100", {1 << 30, 1 << 20});
  double other = 0;
  for (const Term &term : prediction.terms)
    if (term.name != prediction.terms.front().name)
      other = std::max(other, term.seconds);
  return (prediction.seconds - prediction.terms.front().seconds) / other;
}

/// A kernel that loads once overlaps nothing; a loop overlaps all trips but one.
TEST(Times, RoundsOverlap) {
  const std::string use = getLoad(16, 16) + "  add.rn.f32 %f5, %f1, %f1;\n";
  EXPECT_NEAR(getRest(use), 1, 1e-6);
  EXPECT_NEAR(getRest(getLoop(10, use)), 0.1, 1e-6);
}

/// Loads behind a barrier are not on their way before it, but copies across it are.
TEST(Times, RoundsOfCopiesOverlap) {
  const std::string begin =
                        "  mov.u32 %r2, tile;\n  shl.b32 %r3, %t, 4;\n  add.s32 %r4, %r2, %r3;\n"
                        "  mul.wide.u32 %d1, %i, 16;\n  add.s64 %d2, %a, %d1;\n",
                    wait = "  cp.async.wait_group 0;\n", barrier = "  bar.sync 0;\n";
  std::string copy, work;
  for (int i = 0; i < 4; ++i)
    copy += "  cp.async.cg.shared.global [%r4], [%d2+" + std::to_string(i * 442368) + "], 16;\n";
  copy += "  cp.async.commit_group;\n  add.s64 %d2, %d2, 1769472;\n";
  for (int i = 0; i < 300; ++i)
    work += "  add.rn.f32 %f9, %f9, %f9;\n";
  EXPECT_NEAR(getRest(begin + copy + getLoop(10, wait + barrier + copy + work + barrier)), 0.1,
              1e-6);
  // Only a part of the latency is over, or none.
  EXPECT_GT(getRest(begin + copy + getLoop(9, wait + barrier + copy + barrier)), 0.5);
  EXPECT_NEAR(getRest(begin + getLoop(9, copy + wait + barrier + work + barrier)), 1, 1e-6);
  // No barrier ends the copy's round.
  EXPECT_NEAR(getRest(begin + copy + getLoop(9, wait + barrier + copy + work)), 1, 1e-6);
}
