//===- PtxGroupTest.cpp - What is proved of products by four warps --------===//

#include "weir/Artifact/Error.h"
#include "weir/CodeProofs/AddressMap.h"
#include "weir/CodeProofs/Races.h"
#include "weir/PtxReader/PtxReader.h"

#include <gtest/gtest.h>

using namespace weir;

static const std::string fence = "fence.proxy.async.shared::cta;\n", barrier = "bar.sync 0;\n",
                         begin = "wgmma.fence.sync.aligned;\n",
                         commit = "wgmma.commit_group.sync.aligned;\n",
                         use = "st.global.b32 [%a], %r20;\n";

static std::string wait(int groups) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(groups) + ";\n";
}

/// Stores a stage of both factors: 64 rows and 8 columns of 128 bytes.
static std::string fill(int stage) {
  std::string text;
  for (int i = 0; i < 18; ++i)
    text += "st.shared.b32 [%s+" + std::to_string(9216 * stage + 512 * i) + "], %t;\n";
  return text;
}

static std::string copy(int stage) {
  std::string text;
  for (int i = 0; i < 18; ++i)
    text +=
        "cp.async.ca.shared.global [%s+" + std::to_string(9216 * stage + 512 * i) + "], [%a], 4;\n";
  return text + "cp.async.commit_group;\n";
}

static std::string multiply(int stage) {
  const std::string strides =
      std::to_string(uint64_t(1) << 62 | uint64_t(64) << 32 | uint64_t(1) << 16);
  return "{\n.reg .pred p;\n.reg .b32 x, y;\n.reg .b64 dx, dy;\nsetp.ne.b32 p, 1, 0;\n"
         "add.s32 x, %r1, " +
         std::to_string(9216 * stage + 32) +
         ";\nshr.u32 x, x, 4;\ncvt.u64.u32 dx, x;\nor.b64 dx, dx, " + strides +
         ";\nadd.s32 y, %r1, " + std::to_string(9216 * stage + 8192) +
         ";\nshr.u32 y, y, 4;\ncvt.u64.u32 dy, y;\nor.b64 dy, dy, " + strides +
         ";\nwgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r20, %r21, %r22, %r23}, dx, dy, "
         "p, 1, 1, 0, 0;\n}\n";
}

static spv::AddressMap readMap(const std::string &body) {
  const std::string text = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry main(.param .u64 a)
.reqntid 128, 1, 1
{
  .reg .pred %p<9>;
  .reg .b32 %t, %r<40>;
  .reg .b64 %a, %s, %d<40>;
  .shared .align 1024 .b8 tile[18432];
  ld.param.b64 %a, [a];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %d1, %t, 4;
  mov.b64 %s, tile;
  add.s64 %s, %s, %d1;
  add.s64 %a, %a, %d1;
  mov.u32 %r1, tile;
  mov.b32 %r20, 0;
  mov.b32 %r21, 0;
  mov.b32 %r22, 0;
  mov.b32 %r23, 0;
)" + body + "\n  ret;\n}\n";
  std::optional<spv::Module> module = ptx::readEntry(text, "main", {128, 1, 1}, "k.ptx");
  return spv::readAddressMap(*module, *module->findEntryPoint("main"), {{1, 1, 1}, 32});
}

/// Returns whether workgroup memory is free of races.
static spv::Answer getAnswer(const std::string &body) {
  spv::AddressMap map = readMap(body);
  EXPECT_EQ(map.problem, "");
  for (const spv::MemoryAccess &access : map.accesses)
    if (access.root == spv::MemoryAccess::Root::Shared)
      return spv::isFreeOfRaces(map, access.root, access.binding).answer;
  return spv::Answer::Unknown;
}

using spv::Answer;

TEST(PtxGroups, see_what_is_fenced) {
  const std::string product = begin + multiply(0) + commit + wait(0) + use;
  EXPECT_EQ(getAnswer(fill(0) + fence + barrier + product), Answer::Yes);
  EXPECT_EQ(getAnswer(fill(0) + barrier + product), Answer::No);
  EXPECT_EQ(getAnswer(fill(0) + barrier + fence + product), Answer::No);
  EXPECT_EQ(getAnswer(fill(0) + fence + product), Answer::No);
  // A fence that some invocations pass by is none for the others.
  EXPECT_EQ(getAnswer(fill(0) + "setp.lt.u32 %p1, %t, 64;\n@%p1 bra behind;\n" + fence +
                      "behind:\n" + barrier + product),
            Answer::Unknown);
  // Copies end before the fence.
  const std::string landed = "cp.async.wait_group 0;\n";
  EXPECT_EQ(getAnswer(copy(0) + landed + fence + barrier + product), Answer::Yes);
  EXPECT_EQ(getAnswer(copy(0) + fence + landed + barrier + product), Answer::No);
  EXPECT_EQ(getAnswer(copy(0) + landed + barrier + product), Answer::No);
  EXPECT_EQ(getAnswer(copy(0) + fence + barrier + product), Answer::No);
}

TEST(PtxGroups, read_until_the_wait) {
  const std::string head = fill(0) + fence + barrier + begin + multiply(0) + commit;
  EXPECT_EQ(getAnswer(head + wait(0) + barrier + fill(0)), Answer::Yes);
  EXPECT_EQ(getAnswer(head + barrier + fill(0)), Answer::No);
  EXPECT_EQ(getAnswer(head + wait(1) + barrier + fill(0)), Answer::No);
  EXPECT_EQ(getAnswer(head + wait(0) + fill(0)), Answer::No);
  EXPECT_EQ(getAnswer(head + barrier + wait(0) + fill(0)), Answer::No);
  // The other stage is apart, and with a further group one may be left on its way.
  EXPECT_EQ(getAnswer(head + barrier + fill(1)), Answer::Yes);
  EXPECT_EQ(getAnswer(head + fill(1) + fence + barrier + begin + multiply(1) + commit + wait(1) +
                      barrier + fill(0)),
            Answer::Yes);
  EXPECT_EQ(getAnswer(head + fill(1) + fence + barrier + begin + multiply(1) + commit + wait(1) +
                      barrier + fill(1)),
            Answer::No);
}

TEST(PtxGroups, have_sums_that_wait) {
  auto getHazards = [](const std::string &body) {
    std::vector<bool> certain;
    for (const spv::RegisterHazard &hazard : readMap(body).registerHazards)
      certain.push_back(hazard.isCertain);
    return certain;
  };
  const std::string head = fill(0) + fence + barrier;
  using Hazards = std::vector<bool>;
  EXPECT_EQ(getHazards(head + begin + multiply(0) + multiply(0) + commit + wait(0) + use),
            Hazards());
  EXPECT_EQ(getHazards(head + begin + multiply(0) + commit + use), Hazards({true}));
  EXPECT_EQ(getHazards(head + begin + multiply(0) + commit + wait(1) + use), Hazards({true}));
  EXPECT_EQ(getHazards(head + begin + multiply(0) + commit + "mov.b32 %r5, %r20;\n" + wait(0) +
                       "st.global.b32 [%a], %r5;\n"),
            Hazards());
  EXPECT_EQ(getHazards(head + multiply(0) + commit + wait(0) + use), Hazards({true}));
  EXPECT_EQ(getHazards(head + begin + multiply(0) + commit + wait(0) + multiply(0) + commit +
                       wait(0) + use),
            Hazards({true}));
  EXPECT_EQ(getHazards(head + "setp.lt.u32 %p1, %t, 64;\n" + begin + multiply(0) + commit +
                       "@%p1 bra behind;\n" + wait(0) + "behind:\n" + use),
            Hazards({false}));
}
