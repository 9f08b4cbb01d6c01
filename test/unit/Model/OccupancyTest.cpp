//===- OccupancyTest.cpp - How many workgroups a unit holds ---------------===//
//
// Expected numbers are those of NVIDIA's occupancy calculator.
//
//===----------------------------------------------------------------------===//

#include "weir/Model/Occupancy.h"
#include "weir/Artifact/Error.h"

#include "gtest/gtest.h"

using namespace weir;
using namespace weir::model;

static Occupancy get(const char *device, int64_t invocations, std::optional<int64_t> registers,
                     int64_t shared = 0) {
  return getOccupancy(getDevice(device), invocations, 32, registers, shared);
}

TEST(Occupancy, LimitedBySubgroups) {
  Occupancy full = get("a100", 256, 32);
  EXPECT_EQ(full.workgroups, 8);
  EXPECT_EQ(full.share, 1);
  EXPECT_EQ(full.limit, "subgroups");
  EXPECT_EQ(get("a6000", 256, 32).workgroups, 6);  // 48 warps
  EXPECT_EQ(get("a6000", 1024, 32).workgroups, 1); // 32 of 48
}

TEST(Occupancy, LimitedByRegisters) {
  EXPECT_EQ(get("a100", 256, 64).workgroups, 4); // 65536 / (64 * 256)
  EXPECT_EQ(get("a100", 256, 65).workgroups, 3); // 65 * 32 rounds up to 2304: 7 warps a quarter
  EXPECT_EQ(get("a100", 32, 96).workgroups, 20); // 5 in each quarter, though 21 would fit the whole
  Occupancy half = get("a100", 128, 128);
  EXPECT_EQ(half.workgroups, 4);
  EXPECT_EQ(half.share, 0.25);
  EXPECT_EQ(half.limit, "registers");
  EXPECT_EQ(get("h100", 256, 255).workgroups, 1);
  EXPECT_EQ(get("a100", 256, std::nullopt).workgroups, 8); // not known: no limit
}

TEST(Occupancy, LimitedBySharedMemory) {
  EXPECT_EQ(get("a100", 256, 32, 48 << 10).workgroups, 3);  // 49 KiB of 164
  EXPECT_EQ(get("h100", 256, 32, 48 << 10).workgroups, 4);  // of 228
  EXPECT_EQ(get("a6000", 256, 32, 48 << 10).workgroups, 2); // of 100
  EXPECT_EQ(get("a100", 256, 32, 48 << 10).limit, "shared memory");
  EXPECT_EQ(get("a100", 256, 32, 163 << 10).workgroups, 1);
}

TEST(Occupancy, LimitedByWorkgroups) {
  Occupancy small = get("a100", 32, 16);
  EXPECT_EQ(small.workgroups, 32);
  EXPECT_EQ(small.share, 0.5);
  EXPECT_EQ(small.limit, "workgroups");
}

TEST(Occupancy, NeverGrowsWithNeeds) {
  for (int64_t registers = 16, last = 64; registers <= 255; ++registers) {
    int64_t now = get("h100", 128, registers).workgroups;
    EXPECT_LE(now, last) << registers;
    last = now;
  }
  for (int64_t shared = 0, last = 64; shared <= 227 << 10; shared += 512) {
    int64_t now = get("h100", 128, 32, shared).workgroups;
    EXPECT_LE(now, last) << shared;
    last = now;
  }
}

TEST(Occupancy, RefusesWhatDoesNotFit) {
  EXPECT_THROW(get("a100", 256, 32, 164 << 10), Error);
  EXPECT_THROW(get("a100", 1024, 128), Error);
  EXPECT_NO_THROW(get("a100", 1024, 64));
}

TEST(Ptxas, ReadsResources) {
  const std::string text =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_80'\n"
      "ptxas info    : Function properties for other\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 20 registers, used 0 barriers, 376 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'main' for 'sm_80'\n"
      "ptxas info    : Function properties for main\n"
      "    64 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads\n"
      "ptxas info    : Used 128 registers, used 1 barriers, 8192 bytes smem, 376 bytes cmem[0]\n";
  std::optional<Resources> found = parseResources(text, "main");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->registers, 128);
  EXPECT_EQ(found->sharedBytes, 8192);
  EXPECT_EQ(found->spilledBytes, 64);
  EXPECT_EQ(found->stackBytes, 64);
  EXPECT_EQ(parseResources(text, "other")->registers, 20);
  EXPECT_EQ(parseResources(text, "other")->sharedBytes, 0);
  EXPECT_FALSE(parseResources(text, "mai"));
  EXPECT_FALSE(parseResources("", "main"));
}
