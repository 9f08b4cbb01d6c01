//===- PtxGroupTest.cpp - Products of matrices by four warps --------------===//

#include "Ptx.h"

#include <bit>

using namespace weir;
using namespace weir::test;

// Other names are those of the library and of tests.
namespace groups {

// 64 rows of 128 bytes, and 8 columns.
static constexpr int64_t rowBytes = 8192, wordsOfFactors = (8192 + 1024) / 4;

static const std::string fence = "fence.proxy.async.shared::cta;\n", barrier = "bar.sync 0;\n",
                         begin = "wgmma.fence.sync.aligned;\n",
                         commit = "wgmma.commit_group.sync.aligned;\n",
                         wait = "wgmma.wait_group.sync.aligned 0;\n";

/// Fills both factors: word w has the numbers w mod 5 and w mod 3.
static std::string getFill(const std::string &type) {
  std::string text;
  for (int64_t i = 0; i < wordsOfFactors / 128; ++i)
    text += "add.s32 %r10, %t, " + std::to_string(128 * i) +
            ";\nrem.u32 %r11, %r10, 5;\nrem.u32 %r12, %r10, 3;\ncvt.rn.f32.u32 %r11, %r11;\n"
            "cvt.rn.f32.u32 %r12, %r12;\ncvt.rn." +
            type + "x2.f32 %r13, %r12, %r11;\nst.shared.b32 [%ps+" + std::to_string(512 * i) +
            "], %r13;\n";
  return text;
}

static std::string getProduct(const std::string &type, int columns = 8, bool transposesRows = false,
                              const std::string &from = "tile", int first = 0) {
  const std::string strides =
      std::to_string(uint64_t(1) << 62 | uint64_t(64) << 32 | uint64_t(1) << 16);
  std::string sums;
  for (int i = 0; i < columns / 2; ++i)
    sums += (i ? ", %r" : "%r") + std::to_string(20 + i);
  return "{\n.reg .pred p;\n.reg .b32 a, b;\n.reg .b64 da, db;\nsetp.ne.b32 p, 1, 0;\n"
         "mov.u32 a, " +
         from + ";\nadd.s32 b, a, " + std::to_string(rowBytes) + ";\nadd.s32 a, a, " +
         std::to_string(first) + ";\nshr.u32 a, a, 4;\ncvt.u64.u32 da, a;\nor.b64 da, da, " +
         strides + ";\nshr.u32 b, b, 4;\ncvt.u64.u32 db, b;\nor.b64 db, db, " + strides +
         ";\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k16.f32." + type +
         "." + type + " {" + sums + "}, da, db, p, 1, 1, " + (transposesRows ? "1" : "0") +
         ", 0;\n}\n";
}

static const std::string zeros =
    "mov.b32 %r20, 0;\nmov.b32 %r21, 0;\nmov.b32 %r22, 0;\nmov.b32 %r23, 0;\n";

static Sample makeGroup(const std::string &body, uint32_t threads = 128) {
  std::string text = getPtx(body, threads);
  const std::string tile = ".align 16 .b8 tile[4096]";
  text.replace(text.find(tile), tile.size(), ".align 1024 .b8 tile[9216]");
  return makeText(text, threads);
}

/// Returns the number at a byte of the factors, whose runs of 16 bytes are exchanged.
static int getNumber(int64_t byte) {
  byte ^= (byte >> 7 & 7) << 4;
  return int(byte % 4 ? byte / 4 % 3 : byte / 4 % 5);
}

TEST(Groups, products) {
  for (const char *type : {"f16", "bf16"})
    for (bool transposesRows : {false, true})
      for (uint32_t i = 0; i < 4; ++i) {
        // Twice, from the second 16 products on: the second one adds to the sums of the first.
        const std::string one =
            getProduct(type, 8, transposesRows, "tile", transposesRows ? 2048 : 32);
        Sample sample =
            makeGroup(getFill(type) + fence + barrier + zeros + begin + one + one + commit + wait +
                      "st.global.b32 [%pb], %r" + std::to_string(20 + i) + ";\n");
        for (SimStrategy strategy :
             {SimStrategy::Recorded, SimStrategy::Split, SimStrategy::Random}) {
          std::vector<uint32_t> words = getWords(sample, {.strategy = strategy});
          for (int thread = 0; thread < 128; ++thread) {
            const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + int(i) / 2 * 8,
                      column = lane % 4 * 2 + int(i) % 2;
            int sum = 0;
            for (int k = 0; k < 16; ++k) {
              const int64_t a = transposesRows ? 2048 + k / 8 * 1024 + k % 8 * 128 + row * 2
                                               : row / 8 * 1024 + row % 8 * 128 + 32 + k * 2;
              sum += 2 * getNumber(a) * getNumber(rowBytes + column * 128 + k * 2);
            }
            EXPECT_EQ(std::bit_cast<float>(words[size_t(thread)]), float(sum))
                << type << " " << transposesRows << " " << row << " " << column;
          }
        }
      }
}

TEST(Groups, are_ordered) {
  const std::string fill = getFill("bf16"), product = getProduct("bf16"),
                    use = "st.global.b32 [%pb], %r20;\n", overwrite = "st.shared.b32 [%ps], %t;\n";
  expectSilence(makeGroup(fill + fence + barrier + zeros + begin + product + commit + wait + use +
                          barrier + overwrite));
  // Stores are seen behind a fence, and a barrier behind that.
  expectSome(makeGroup(fill + barrier + zeros + begin + product + commit + wait + use),
             {"without a fence.proxy.async behind it"});
  expectSome(makeGroup(fill + barrier + fence + zeros + begin + product + commit + wait + use +
                       barrier + fill + barrier + zeros + begin + product + commit + wait),
             {"without a fence.proxy.async behind it"});
  expectSome(makeGroup(fill + fence + zeros + begin + product + commit + wait + use), {"RAW: "});
  // The factors stay until the wait, on which a barrier follows.
  expectSome(makeGroup(fill + fence + barrier + zeros + begin + product + commit + barrier +
                       overwrite + wait + use),
             {"late: "});
  expectSome(
      makeGroup(fill + fence + barrier + zeros + begin + product + commit + wait + use + overwrite),
      {"WAR: "});
  // A wait that leaves one group on its way is none.
  const std::string weak = "wgmma.wait_group.sync.aligned 1;\n";
  expectSome(makeGroup(fill + fence + barrier + zeros + begin + product + commit + weak + use),
             {"that no wgmma.wait_group has waited for"});
  expectSilence(
      makeGroup(fill + fence + barrier + zeros + begin + product + commit + commit + weak + use));
  expectSome(makeGroup(fill + fence + barrier + zeros + product + commit + wait + use),
             {"has no wgmma.fence before it"});
}

TEST(Groups, refusals) {
  auto getProblem = [](std::string product, const std::string &from, const std::string &to) {
    if (!from.empty())
      product.replace(product.find(from), from.size(), to);
    return getError(makeGroup(begin + product + commit + wait + "st.global.b32 [%pb], %t;\n"));
  };
  auto expect = [&](const std::string &from, const std::string &to, const std::string &problem) {
    std::string error = getProblem(getProduct("bf16"), from, to);
    EXPECT_NE(error.find(problem), error.npos) << error;
  };
  expect("4611686293305360384", "274877972480", "has a descriptor without a swizzle of 128 bytes");
  expect("shr.u32 a, a, 4;", "", "has a descriptor that is not made of an address and constants");
  expect("p, 1, 1, 0", "p, -1, 1, 0", "negates a factor");
  expect("{%r20, ", "{", "has more or fewer sums");
  expect("bf16.bf16", "e4m3.e4m3", "'wgmma.mma_async");
  EXPECT_NE(getError(makePtx(begin + getProduct("bf16"), 128)).find("not aligned to 1024 bytes"),
            std::string::npos);
}

} // namespace groups
