//===- PtxReaderTest.cpp - PTX text to modules and addresses --------------===//

#include "weir/PtxReader/PtxReader.h"

#include "weir/Artifact/Error.h"
#include "weir/CodeProofs/Footprint.h"
#include "weir/CodeProofs/Races.h"

#include "gtest/gtest.h"

#include <chrono>
#include <functional>
#include <random>

using namespace weir;

/// Returns an entry @main of two parameters, whose addresses are in %a and %b, and the id of the
/// invocation in %t.
static std::string getText(const std::string &body) {
  return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry main(.param .u64 a, .param .u64 b)
.reqntid 64, 1, 1
{
  .reg .pred %p<9>;
  .reg .b16 %h<40>;
  .reg .b32 %t, %g, %r<40>;
  .reg .b64 %a, %b, %d<40>;
  .shared .align 16 .b8 tile[256];
  ld.param.b64 %a, [a];
  ld.param.b64 %b, [b];
  mov.u32 %t, %tid.x;
  mov.u32 %g, %ctaid.x;
)" + body +
         "\n  ret;\n}\n";
}

static spv::AddressMap readMap(const std::string &text, int64_t groups = 4) {
  std::optional<spv::Module> module = ptx::readEntry(text, "main", {64, 1, 1}, "k.ptx");
  if (!module)
    throw Error("no entry");
  return spv::readAddressMap(*module, *module->findEntryPoint("main"), {{groups, 1, 1}, 32});
}

/// Returns the bytes of the first parameter that a body writes: "0-256", or more; "?" for any.
static std::string getWritten(const std::string &body) {
  spv::AddressMap map = readMap(getText(body));
  if (!map.problem.empty())
    return map.problem;
  spv::TouchedBytes touched = spv::getTouched(map, 0, false);
  std::string text;
  for (spv::ByteRange run : touched.certain)
    text += std::to_string(run.begin) + "-" + std::to_string(run.end) + " ";
  if (touched.possible == touched.certain)
    return text;
  return text + "?";
}

/// Returns why a text is refused, or "".
static std::string getRefusal(const std::string &text) {
  try {
    ptx::readEntry(text, "main", {64, 1, 1}, "k.ptx");
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(PtxReader, addresses) {
  const std::string store = "st.global.b32 [%d2], %t;\n";
  EXPECT_EQ(getWritten("mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1;\n" + store), "0-256 ");
  EXPECT_EQ(getWritten("shl.b32 %r1, %t, 2; cvt.u64.u32 %d1, %r1; add.s64 %d2, %d1, %a;\n" + store),
            "0-256 ");
  EXPECT_EQ(getWritten("shl.b32 %r1, %g, 6; or.b32 %r2, %r1, %t; mul.wide.u32 %d1, %r2, 4;\n"
                       "add.s64 %d2, %a, %d1;\n" +
                       store),
            "0-1024 ");
  EXPECT_EQ(getWritten("mad.lo.s32 %r1, %g, 64, %t; mul.wide.s32 %d1, %r1, 4;\n"
                       "add.s64 %d3, %a, %d1; add.s64 %d2, %d3, 64;\n"
                       "st.global.b32 [%d2+-64], %t;\n"),
            "0-1024 ");
  EXPECT_EQ(getWritten("cvta.to.global.u64 %d5, %a; mov.u32 %r1, %laneid; bfe.u32 %r2, %t, 5, 1;\n"
                       "mad.lo.s32 %r3, %r2, 32, %r1; mul.wide.u32 %d1, %r3, 4;\n"
                       "add.s64 %d2, %d5, %d1;\n" +
                       store),
            "0-256 ");
  EXPECT_EQ(getWritten("mul.wide.u32 %d1, %t, 16; add.s64 %d2, %a, %d1;\n"
                       "st.global.v4.b32 [%d2], {%t, %t, %t, %g};\n"),
            "0-1024 ");
  EXPECT_EQ(getWritten("st.global.b8 [%a+3], %t;\n"), "3-4 ");
  // A loaded number says nothing of the place.
  EXPECT_EQ(getWritten("ld.global.b32 %r1, [%b]; mul.wide.u32 %d1, %r1, 4;\n"
                       "add.s64 %d2, %a, %d1;\n" +
                       store),
            "?");
}

TEST(PtxReader, predicates) {
  const std::string address = "mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1;\n";
  EXPECT_EQ(getWritten(address + "setp.lt.u32 %p1, %t, 10; @%p1 st.global.b32 [%d2], %t;\n"),
            "0-40 ");
  EXPECT_EQ(getWritten(address + "setp.lt.u32 %p1, %t, 10; @!%p1 st.global.b32 [%d2], %t;\n"),
            "40-256 ");
  EXPECT_EQ(getWritten(address + "setp.gt.u32 %p1, %t, 9; @%p1 bra end;\n"
                                 "st.global.b32 [%d2], %t;\nend:\n"),
            "0-40 ");
  EXPECT_EQ(getWritten(address + "setp.gt.u32 %p1, %t, 9; @%p1 ret; st.global.b32 [%d2], %t;\n"),
            "0-40 ");
  // The register keeps what it had where the predicate does not hold.
  EXPECT_EQ(getWritten("mov.b64 %d1, 0; setp.gt.u32 %p1, %t, 9; @%p1 mov.b64 %d1, 8;\n"
                       "add.s64 %d2, %a, %d1; st.global.b32 [%d2], %t;\n"),
            "0-4 8-12 ");
  EXPECT_EQ(getWritten(address + "setp.lt.u32 %p1, %t, 10; setp.gt.and.u32 %p2, %t, 4, %p1;\n"
                                 "@%p2 st.global.b32 [%d2], %t;\n"),
            "20-40 ");
}

/// Combinations of two conditions, and numbers beyond their width.
TEST(PtxReader, conditions) {
  const std::string address = "mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1;\n",
                    two = "setp.lt.u32 %p1, %t, 10; setp.gt.u32 %p2, %t, 4;\n",
                    store = "@%p3 st.global.b32 [%d2], %t;\n";
  EXPECT_EQ(getWritten(address + two + "and.pred %p3, %p1, %p2;\n" + store), "20-40 ");
  EXPECT_EQ(getWritten(address + two + "and.pred %p4, %p1, %p2; not.pred %p3, %p4;\n" + store),
            "0-20 40-256 ");
  EXPECT_EQ(getWritten(address + two + "not.pred %p1, %p1; not.pred %p2, %p2;\n" +
                       "or.pred %p3, %p1, %p2;\n" + store),
            "0-20 40-256 ");
  EXPECT_EQ(getWritten(address + two + "xor.pred %p3, %p1, %p2;\n" + store), "0-20 40-256 ");
  EXPECT_EQ(getWritten(address + "setp.ne.u32 %p3, %t, 7;\n" + store), "0-28 32-256 ");
  // t - 5 < 3 wraps for t < 5, and 43691 (t + 1) mod 65536 < 21846 is a division by 3.
  EXPECT_EQ(getWritten(address + "add.s32 %r1, %t, -5; setp.lt.u32 %p3, %r1, 3;\n" + store),
            "20-32 ");
  EXPECT_EQ(getWritten("cvt.u16.u32 %h1, %t; mad.lo.s16 %h2, %h1, -21845, -21845;\n"
                       "setp.lt.u16 %p3, %h2, 21845; mul.wide.u32 %d1, %t, 4;\n"
                       "add.s64 %d2, %a, %d1; @%p3 st.global.b32 [%d2], %t;\n")
                .substr(0, 12),
            "8-12 20-24 3");
  // A selection is one of both, by the same condition as the guard.
  EXPECT_EQ(getWritten("setp.gt.u32 %p1, %t, 2; selp.b32 %r1, 8, 0, %p1; or.b32 %r2, %r1, 6;\n"
                       "setp.lt.u32 %p3, %r2, 12; add.s32 %r3, %r1, %t;\n"
                       "mul.wide.u32 %d1, %r3, 4; add.s64 %d2, %a, %d1;\n" +
                       store),
            "0-12 ");
  // A clamped number limits the numbers that it is made of.
  EXPECT_EQ(getWritten(address + "min.u32 %r1, %t, 31; setp.gt.u32 %p3, %r1, 4;\n" + store),
            "20-256 ");
}

TEST(PtxReader, bits_turned_round) {
  EXPECT_EQ(getWritten("xor.b32 %r1, %t, 7; setp.lt.u32 %p1, %t, 24; mul.wide.u32 %d1, %r1, 4;\n"
                       "add.s64 %d2, %a, %d1; @%p1 st.global.b32 [%d2], %t;\n"),
            "0-96 ");
}

/// Bits that are moved to constant places are followed.
TEST(PtxReader, bits_that_are_moved) {
  auto write = [](const std::string &body) {
    return getWritten("shl.b32 %r9, %g, 6;\n" + body +
                      "cvt.u64.u32 %d1, %r1; add.s64 %d2, %a, %d1; st.global.b8 [%d2], %t;\n");
  };
  EXPECT_EQ(write("bfi.b32 %r1, %g, %t, 6, 2;"), "0-256 ");
  EXPECT_EQ(write("bfi.b32 %r1, %g, %t, 6, 1;"), "0-128 "); // of 4 workgroups, pairs meet
  EXPECT_EQ(write("bfi.b32 %r1, %g, %t, %r8, 2;"), "?");
  EXPECT_EQ(write("lop3.b32 %r1, %r9, %t, 0, 0xfe;"), "0-256 ");
  EXPECT_EQ(write("lop3.b32 %r1, %r9, %t, 63, 0xf8;"), "0-256 "); // a | b & c
  EXPECT_EQ(write("lop3.b32 %r1, %r9, %t, 31, 0xf8;"), "0-32 64-96 128-160 192-224 ");
  EXPECT_EQ(write("lop3.b32 %r1, %r9, %t, 63, 0xe8;"), "?"); // the majority
  EXPECT_EQ(write("shf.l.wrap.b32 %r2, 0, %g, 6; add.s32 %r1, %r2, %t;"), "0-256 ");
  EXPECT_EQ(write("shf.r.clamp.b32 %r1, %r9, %t, 32;"), "0-64 ");
  EXPECT_EQ(write("prmt.b32 %r1, %t, 0, 0x4440; shr.u32 %r1, %r1, 2;"), "0-16 ");
  EXPECT_EQ(write("prmt.b32 %r2, %t, %g, 0x1054; prmt.b32 %r3, %r2, 0, 0x4442;\n"
                  "or.b32 %r1, %r9, %r3;"),
            "0-256 ");
  EXPECT_EQ(write("prmt.b32 %r1, %t, 0, 0x8880;"), "?");
  EXPECT_EQ(write("mad24.lo.u32 %r1, %g, 64, %t;"), "0-256 ");
  EXPECT_EQ(write("shl.b32 %r2, %g, 32; add.s32 %r1, %r2, %t;"), "0-64 ");
}

/// Compilers divide by the high half of a product with 2^(64 + n) / divisor, rounded up.
TEST(PtxReader, quotients_by_products) {
  auto divide = [](const std::string &factor, const std::string &shift) {
    return getWritten("cvt.u64.u32 %d1, %t; mul.hi.u64 %d2, %d1, " + factor +
                      ";\nshr.u64 %d3, %d2, " + shift +
                      "; add.s64 %d4, %a, %d3; st.global.b8 [%d4], %t;\n");
  };
  EXPECT_EQ(divide("0xe38e38e38e38e38f", "3"), "0-8 ");   // 9
  EXPECT_EQ(divide("-2049638230412172401", "7"), "0-1 "); // 144
  EXPECT_EQ(divide("0x4000000000000000", "0"), "0-16 ");  // 4
  EXPECT_EQ(divide("0xe38e38e38e38e38e", "3"), "?");      // 0 for 9
  EXPECT_EQ(divide("0x2492492492492493", "0"), "?");      // 7, but not for all numbers
  EXPECT_EQ(getWritten("cvt.u64.u32 %d1, %t; mul.hi.s64 %d2, %d1, 0x4000000000000000;\n"
                       "add.s64 %d4, %a, %d2; st.global.b8 [%d4], %t;\n"),
            "?");
}

/// In 512 x + y <= 900, y is free up to x = 0 and limited for x = 1.
TEST(PtxReader, ends_of_many) {
  const std::string body = "shl.b32 %r1, %g, 9; or.b32 %r2, %r1, %t; setp.lt.u32 %p1, %r2, LAST;\n"
                           "mul.wide.u32 %d1, %r2, 4; add.s64 %d2, %a, %d1;\n"
                           "@%p1 st.global.b32 [%d2], %t;\n"
                           "or.b32 %r3, %r2, 64; setp.lt.u32 %p2, %r3, LAST;\n"
                           "@%p2 st.global.b32 [%d2+256], %t;\n";
  auto getEnds = [&](const std::string &last) {
    std::string text = body;
    for (size_t at; (at = text.find("LAST")) != text.npos;)
      text.replace(at, 4, last);
    spv::AddressMap map = readMap(getText(text), 2000);
    spv::TouchedBytes touched = spv::getTouched(map, 0, false);
    EXPECT_EQ(touched.certain, touched.possible);
    return std::pair(touched.certain.size(), touched.certain.back());
  };
  EXPECT_EQ(getEnds("921620"), std::pair(size_t(1801), spv::ByteRange{3686400, 3686480}));
  EXPECT_EQ(getEnds("921700"), std::pair(size_t(1801), spv::ByteRange{3686400, 3686800}));
}

/// Nothing is certain that a loaded number decides.
TEST(PtxReader, predicates_of_data) {
  EXPECT_EQ(getWritten("mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1; add.s64 %d3, %b, %d1;\n"
                       "ld.global.b32 %r1, [%d3]; setp.lt.u32 %p1, %r1, 10;\n"
                       "@%p1 st.global.b32 [%d2], %t;\n"),
            "?");
}

/// Data may decide where an access is, but not whether.
TEST(PtxReader, places_that_data_choose) {
  spv::AddressMap map = readMap(
      getText("ld.global.b32 %r1, [%b]; setp.ne.b32 %p1, %r1, 7; selp.b32 %r2, %r1, 0, %p1;\n"
              "min.u32 %r3, %r2, 9; mul.wide.u32 %d1, %r3, 4; add.s64 %d2, %a, %d1;\n"
              "st.global.b32 [%d2], %t;\n"));
  spv::TouchedBytes touched = spv::getTouched(map, 0, false);
  EXPECT_EQ(touched.somewhere, std::vector<spv::ByteRange>({{0, 40}}));
}

/// Where data decide whether an access runs, it does for some.
TEST(PtxReader, accesses_that_data_choose) {
  const std::string load = "ld.global.b8 %h1, [%b]; and.b16 %h2, %h1, 255;\n",
                    store = "@%p1 st.global.b32 [%a+8], %t;\n";
  auto getSomewhere = [&](const std::string &body) {
    return spv::getTouched(readMap(getText(body)), 0, false).somewhere;
  };
  const std::vector<spv::ByteRange> stored = {{8, 12}};
  EXPECT_EQ(getSomewhere(load + "setp.eq.b16 %p1, %h2, 7;\n" + store), stored);
  EXPECT_EQ(getSomewhere(load + "setp.gt.u16 %p1, %h2, 7;\n" + store), stored);
  // No byte is 300, and no number is both 7 and 8.
  EXPECT_TRUE(getSomewhere(load + "setp.eq.b16 %p1, %h2, 300;\n" + store).empty());
  EXPECT_TRUE(
      getSomewhere(load + "setp.eq.b16 %p1, %h2, 7; setp.eq.and.b16 %p1, %h2, 8, %p1;\n" + store)
          .empty());
  // Whether a sum of unknown numbers is 7 is not known.
  EXPECT_TRUE(getSomewhere(load + "popc.b32 %r1, %t; setp.eq.b32 %p1, %r1, 77;\n" + store).empty());
}

TEST(PtxReader, loops) {
  // A counter that is not the address, an address that grows, and a test of the low half.
  EXPECT_EQ(getWritten("mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1; mov.b64 %d3, 0;\n"
                       "again: add.s64 %d4, %d2, %d3; st.global.b32 [%d4], %t;\n"
                       "add.s64 %d3, %d3, 256; cvt.u32.u64 %r1, %d3; setp.ne.b32 %p1, %r1, 1024;\n"
                       "@%p1 bra again;\n"),
            "0-1024 ");
  // Down to zero, in a loop of loops, whose inner end leads back to the outer begin.
  EXPECT_EQ(getWritten("mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1; mov.b32 %r1, 4;\n"
                       "outer: mov.b32 %r2, 0; mov.b64 %d3, %d2;\n"
                       "inner: st.global.b32 [%d3], %t; add.s64 %d3, %d3, 256;\n"
                       "add.s32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 2; @%p1 bra inner;\n"
                       "add.s64 %d2, %d2, 512; add.s32 %r1, %r1, -1; setp.gt.s32 %p2, %r1, 0;\n"
                       "@%p2 bra outer;\n"),
            "0-2048 ");
  // Tested at its begin.
  EXPECT_EQ(getWritten("mov.b32 %r1, %t; add.s64 %d2, %a, 0;\n"
                       "again: setp.ge.u32 %p1, %r1, 128; @%p1 bra end;\n"
                       "mul.wide.u32 %d1, %r1, 4; add.s64 %d3, %a, %d1; st.global.b32 [%d3], %t;\n"
                       "add.s32 %r1, %r1, 64; bra.uni again;\nend:\n"),
            "0-512 ");
  // To an address.
  EXPECT_EQ(getWritten("mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1; add.s64 %d3, %d2, 512;\n"
                       "again: st.global.b32 [%d2], %t; add.s64 %d2, %d2, 256;\n"
                       "setp.ne.b64 %p1, %d2, %d3; @%p1 bra again;\n"),
            "0-512 ");
}

/// Runs a loop's counter for all kinds of tests: what is known of its trips is so.
TEST(PtxReader, trips_are_what_runs) {
  std::mt19937 random(1);
  const char *const comparisons[] = {"ne", "lt", "le", "gt", "ge"};
  size_t known = 0;
  for (int i = 0; i < 3000; ++i) {
    const bool isSigned = random() % 2, isAtEnd = random() % 2, isSwapped = random() % 4 == 0;
    auto pick = [&] { return uint16_t(random() % 3 ? random() % 48 : 0u - random() % 48); };
    const uint16_t first = pick(), bound = pick(), step = uint16_t(random() % 9 - 4);
    const std::string comparison = comparisons[random() % 5];
    auto stays = [&](uint16_t counter) {
      int32_t a = isSigned ? int16_t(counter) : counter, b = isSigned ? int16_t(bound) : bound;
      if (isSwapped)
        std::swap(a, b);
      return comparison == "ne"   ? a != b
             : comparison == "lt" ? a < b
             : comparison == "le" ? a <= b
             : comparison == "gt" ? a > b
                                  : a >= b;
    };
    int64_t trips = 0;
    uint16_t counter = first;
    for (; trips <= 70000; ++trips) {
      if (!isAtEnd && !stays(counter))
        break;
      counter += step;
      if (isAtEnd && !stays(counter)) {
        ++trips;
        break;
      }
    }
    std::string n = std::to_string(bound);
    std::string test = "setp." + comparison + (isSigned ? ".s16" : ".u16") + " %p1, " +
                       (isSwapped ? n + ", %h1" : "%h1, " + n) + ";\n";
    std::string grow = "add.s16 %h1, %h1, " + std::to_string(int16_t(step)) + ";\n";
    std::string body = "mov.b16 %h1, " + std::to_string(first) + ";\nagain:\n";
    body += isAtEnd ? grow + test + "@%p1 bra again;\n"
                    : test + "@!%p1 bra end;\n" + grow + "bra again;\nend:\n";
    spv::AddressMap map = readMap(getText(body));
    ASSERT_EQ(map.problem, "");
    ASSERT_EQ(map.loops.size(), 1u);
    if (map.loops[0].maxTrips < 0)
      continue;
    ++known;
    ASSERT_EQ(map.loops[0].maxTrips, trips) << body;
  }
  EXPECT_GT(known, 500u);
}

namespace {
/// Random integer instructions on registers of 16, 32 or 64 bits, made to be like those by which
/// compilers compute addresses, and what they give.
class Program {
public:
  explicit Program(std::mt19937 &random) : random(random) {
    width = std::array{16, 32, 32, 64}[random() % 4];
    name = width == 16 ? "%h" : width == 32 ? "%r" : "%d";
    if (width == 16)
      add("cvt.u16.u32 %h0, %t;\n", [](const Values &, uint64_t id) { return id; });
    else if (width == 32)
      add("mov.b32 %r0, %t;\n", [](const Values &, uint64_t id) { return id; });
    else
      add("cvt.u64.u32 %d0, %t;\n", [](const Values &, uint64_t id) { return id; });
  }

  void grow() {
    size_t a = pick(), b = pick();
    std::string suffix = std::to_string(width), to = " " + name + std::to_string(steps.size()),
                x = ", " + name + std::to_string(a), y = ", " + name + std::to_string(b);
    auto number = [&](uint64_t value) { return ", " + std::to_string(value) + ";\n"; };
    const uint64_t small = random() % 24 + 1, shift = random() % std::min(width, 12);
    const uint64_t mask = random() % 4 ? random() % 256 : ~uint64_t(0) << random() % 5 & 0xfff;
    switch (random() % 14) {
    case 0:
      return add("add.s" + suffix + to + x + y + ";\n",
                 [=](const Values &v, uint64_t) { return v[a] + v[b]; });
    case 1:
      return add("sub.s" + suffix + to + x + y + ";\n",
                 [=](const Values &v, uint64_t) { return v[a] - v[b]; });
    case 2:
      return add("mul.lo.s" + suffix + to + x + number(small),
                 [=](const Values &v, uint64_t) { return v[a] * small; });
    case 3: // a quotient by a product
      return add("mul.lo.s" + suffix + to + x + number((1 << shift) / small + 1),
                 [=](const Values &v, uint64_t) { return v[a] * ((1 << shift) / small + 1); });
    case 4:
      return add("shr.u" + suffix + to + x + number(shift),
                 [=](const Values &v, uint64_t) { return v[a] >> shift; });
    case 5:
      return add("and.b" + suffix + to + x + number(mask),
                 [=](const Values &v, uint64_t) { return v[a] & mask; });
    case 6:
      return add("or.b" + suffix + to + x + y + ";\n",
                 [=](const Values &v, uint64_t) { return v[a] | v[b]; });
    case 7:
      return add("or.b" + suffix + to + x + number(mask),
                 [=](const Values &v, uint64_t) { return v[a] | mask; });
    case 8:
      return add("xor.b" + suffix + to + x + number(mask),
                 [=](const Values &v, uint64_t) { return v[a] ^ mask; });
    case 9: // x modulo a number, if it is less than twice that
      add("sub.s" + suffix + to + x + number(small),
          [=](const Values &v, uint64_t) { return v[a] - small; });
      return add("min.u" + suffix + " " + name + std::to_string(steps.size()) + x + ", " + name +
                     std::to_string(steps.size() - 1) + ";\n",
                 [=, last = steps.size() - 1](const Values &v, uint64_t) {
                   return std::min(v[a], v[last]);
                 });
    case 10:
      return add("setp.lt.u" + suffix + " %p1" + x + number(small) + "selp.b" + suffix + to +
                     ", 64, 8, %p1;\n",
                 [=](const Values &v, uint64_t) { return v[a] < small ? 64 : 8; });
    case 11:
      return add("min.u" + suffix + to + x + number(small),
                 [=](const Values &v, uint64_t) { return std::min(v[a], small); });
    case 12: { // a quotient, or nearly, by a product that does not fit
      if (width != 64)
        break;
      using Wide = unsigned __int128;
      const int down = int(shift % 5);
      const uint64_t factor =
          uint64_t((Wide(1) << (63 + down)) / (small + (1 << down))) + random() % 3;
      add("mul.hi.u64" + to + x + number(factor),
          [=](const Values &v, uint64_t) { return uint64_t(Wide(v[a]) * factor >> 64); });
      return add(
          "shr.u64 %d" + std::to_string(steps.size()) + ", %d" + std::to_string(steps.size() - 1) +
              number(down),
          [down, last = steps.size() - 1](const Values &v, uint64_t) { return v[last] >> down; });
    }
    }
    const bool isQuotient = random() % 2;
    return add((isQuotient ? "div.u" : "rem.u") + suffix + to + x + number(small),
               [=](const Values &v, uint64_t) { return isQuotient ? v[a] / small : v[a] % small; });
  }

  /// Returns the last value for an invocation.
  uint64_t run(uint64_t id) const {
    Values values;
    for (const Step &step : steps)
      values.push_back(step(values, id) & (~uint64_t(0) >> (64 - width)));
    return values.back();
  }

  std::string getText() const {
    std::string last = name + std::to_string(steps.size() - 1);
    return text +
           (width == 64 ? "mov.b64 %d38, " : "cvt.u64.u" + std::to_string(width) + " %d38, ") +
           last + ";\nadd.s64 %d39, %a, %d38;\nst.global.b8 [%d39], %t;\n";
  }

private:
  using Values = std::vector<uint64_t>;
  using Step = std::function<uint64_t(const Values &, uint64_t id)>;

  size_t pick() { return random() % 3 ? steps.size() - 1 : random() % steps.size(); }
  void add(const std::string &line, Step step) {
    text += line;
    steps.push_back(std::move(step));
  }

  std::mt19937 &random;
  int width;
  std::string name, text;
  std::vector<Step> steps;
};
} // namespace

/// Addresses that are known are the addresses of each invocation.
TEST(PtxReader, numbers_are_what_runs) {
  std::mt19937 random(1);
  size_t known = 0;
  for (int i = 0; i < 20000; ++i) {
    Program program(random);
    for (int steps = int(random() % 8); steps >= 0; --steps)
      program.grow();
    spv::AddressMap map = readMap(getText(program.getText()), 1);
    ASSERT_EQ(map.problem, "");
    // A selection gives two accesses, one of which runs.
    if (std::any_of(map.accesses.begin(), map.accesses.end(), [](const auto &access) {
          return access.root != spv::MemoryAccess::Root::Binding || !access.address ||
                 !access.isCertain;
        }))
      continue;
    bool isKnown = true;
    std::function<std::optional<int64_t>(const spv::Affine &, int64_t)> evaluate =
        [&](const spv::Affine &sum, int64_t id) -> std::optional<int64_t> {
      int64_t result = sum.constant;
      for (auto [number, factor] : sum.terms) {
        const spv::Atom &atom = map.atoms[number];
        bool isFirst = true;
        for (const spv::Affine &condition : atom.conditions) {
          std::optional<int64_t> left = evaluate(condition, id);
          if (!left)
            return std::nullopt;
          isFirst &= *left >= 0;
        }
        std::optional<int64_t> value = atom.kind == spv::Atom::Kind::Local ? std::optional(id)
                                       : !isFirst ? evaluate(atom.otherwise, id)
                                       : atom.kind == spv::Atom::Kind::Other
                                           ? std::nullopt
                                           : evaluate(atom.of, id);
        if (!value)
          return std::nullopt;
        if (atom.kind == spv::Atom::Kind::Digit) {
          EXPECT_GE(*value, 0);
          value = *value / atom.divisor;
          value = atom.modulus ? *value % atom.modulus : *value;
        } else if (atom.kind == spv::Atom::Kind::Clamped) {
          value = std::clamp(*value, atom.range.min, atom.range.max);
        }
        EXPECT_TRUE(atom.range.min <= *value && *value <= atom.range.max);
        result += factor * *value;
      }
      return result;
    };
    for (int64_t id = 0; isKnown && id < 64; ++id) {
      size_t runs = 0;
      for (const spv::MemoryAccess &access : map.accesses) {
        bool holds =
            std::all_of(access.guards.begin(), access.guards.end(),
                        [&](const auto &guard) { return evaluate(guard, id).value() >= 0; });
        std::optional<int64_t> address = evaluate(*access.address, id);
        isKnown &= address.has_value();
        runs += holds;
        if (holds && address)
          ASSERT_EQ(uint64_t(*address), program.run(uint64_t(id))) << id << "\n"
                                                                   << program.getText();
      }
      ASSERT_EQ(runs, 1u) << id << "\n" << program.getText();
    }
    known += isKnown;
  }
  EXPECT_GT(known, 8000u);
}

/// A number that comes from two arms is one or the other, by the branch's condition.
TEST(PtxReader, numbers_of_two_arms) {
  auto store = [](const std::string &second) {
    return "setp.gt.u32 %p1, %t, 15; @%p1 bra other;\n"
           "shl.b32 %r1, %t, 2; bra.uni join;\n"
           "other: mul.lo.s32 %r1, %t, 8; add.s32 %r1, %r1, " +
           second +
           ";\n"
           "join: cvt.u64.u32 %d1, %r1; add.s64 %d2, %a, %d1; st.global.b32 [%d2], %t;\n";
  };
  std::string expected = "0-64 ";
  for (int i = 16; i < 64; ++i)
    expected += std::to_string(8 * i) + "-" + std::to_string(8 * i + 4) + " ";
  EXPECT_EQ(getWritten(store("0")), expected);
  // No invocation stores twice at one place; with the arms a word apart, the last of the first arm
  // and the first of the second one do.
  auto areApart = [&](const std::string &second) {
    return isFreeOfRaces(readMap(getText(store(second)), 1), spv::MemoryAccess::Root::Binding, 0)
        .answer;
  };
  EXPECT_EQ(areApart("0"), spv::Answer::Yes);
  EXPECT_EQ(areApart("-68"), spv::Answer::No);
}

/// Of two conditions that must both fail, each is a guard, whatever joins them.
TEST(PtxReader, conditions_that_are_joined) {
  const std::string address = "mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1;\n";
  EXPECT_EQ(getWritten(address + "setp.gt.u32 %p1, %t, 31; setp.lt.u32 %p2, %t, 8;\n"
                                 "or.pred %p3, %p1, %p2; @!%p3 st.global.b32 [%d2], %t;\n"),
            "32-128 ");
  EXPECT_EQ(getWritten(address + "setp.gt.u32 %p1, %g, 1; setp.gt.u32 %p2, %t, 31;\n"
                                 "or.pred %p3, %p1, %p2; @%p3 bra out;\n"
                                 "st.global.b32 [%d2], %t; out:\n"),
            "0-128 ");
}

/// Divisions by 11 of a number of 8 bits, in halves.
TEST(PtxReader, quotients_in_halves) {
  const std::string divide = "cvt.u16.u32 %h1, %g; mul.lo.s16 %h2, %h1, 117; shr.u16 %h3, %h2, 8;\n"
                             "sub.s16 %h4, %h1, %h3; and.b16 %h5, %h4, 254; shr.u16 %h6, %h5, 1;\n"
                             "add.s16 %h7, %h6, %h3; shr.u16 %h8, %h7, 3; cvt.u32.u16 %r1, %h8;\n"
                             "mad.lo.s32 %r2, %r1, 64, %t; mul.wide.u32 %d1, %r2, 4;\n"
                             "add.s64 %d2, %a, %d1; st.global.b32 [%d2], %t;\n";
  spv::TouchedBytes touched = spv::getTouched(readMap(getText(divide), 132), 0, false);
  EXPECT_EQ(touched.certain, std::vector<spv::ByteRange>({{0, 12 * 256}}));
  EXPECT_EQ(touched.possible, touched.certain);
}

/// Arms that share code are followed as if each had its own.
TEST(PtxReader, shared_arms) {
  const std::string text = "mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1;\n"
                           "setp.lt.u32 %p1, %t, 8; @%p1 bra one;\n"
                           "setp.gt.u32 %p2, %t, 55; @%p2 bra one;\n"
                           "setp.eq.u32 %p3, %t, 20; @%p3 bra two;\n"
                           "bra done;\n"
                           "one: st.global.b32 [%d2], %t; bra done;\n"
                           "two: st.global.b32 [%d2+4], %t; bra one;\n"
                           "done:\n";
  EXPECT_EQ(getWritten(text), "0-32 80-88 224-256 ");
  // All invocations meet at a barrier, so it stays one.
  EXPECT_EQ(getWritten("setp.lt.u32 %p1, %t, 8; @%p1 bra one; setp.gt.u32 %p2, %t, 55;\n"
                       "@%p2 bra one; bra done; one: bar.sync 0; done:\n"),
            "its control flow is not structured");
}

/// A loop that ends in several places leads on to each.
TEST(PtxReader, loops_with_several_ends) {
  const std::string text =
      "mov.b32 %r1, 0;\n"
      "again: ld.global.b32 %r2, [%b]; setp.eq.b32 %p1, %r2, 7; @%p1 bra out;\n"
      "setp.eq.b32 %p2, %r2, 8; @%p2 ret;\n"
      "add.s32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 8; @%p3 bra again;\n"
      "st.global.b32 [%a], %t; ret;\n"
      "out: st.global.b32 [%a+8], %t;\n";
  spv::AddressMap map = readMap(getText(text));
  ASSERT_EQ(map.problem, "");
  spv::TouchedBytes touched = spv::getTouched(map, 0, false);
  EXPECT_TRUE(touched.certain.empty());
  EXPECT_EQ(touched.possible, (std::vector<spv::ByteRange>{{0, 4}, {8, 12}}));
  // Two loops that both end in the outer one and behind it.
  const std::string nested = "mov.b32 %r1, 0;\n"
                             "outer: mov.b32 %r3, 0;\n"
                             "inner: ld.global.b32 %r2, [%b]; setp.eq.b32 %p1, %r2, 7;\n"
                             "@%p1 bra next; setp.eq.b32 %p2, %r2, 8; @%p2 bra out;\n"
                             "add.s32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 8; @%p3 bra inner;\n"
                             "st.global.b32 [%a], %t;\n"
                             "next: add.s32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 4; @%p4 bra outer;\n"
                             "out: st.global.b32 [%a+8], %t;\n";
  touched = spv::getTouched(readMap(getText(nested)), 0, false);
  EXPECT_EQ(touched.possible, (std::vector<spv::ByteRange>{{0, 4}, {8, 12}}));
}

TEST(PtxReader, state_spaces) {
  const std::string address =
      "mov.b64 %d1, tile; mul.wide.u32 %d2, %t, 4; add.s64 %d3, %d1, %d2;\n";
  auto getRoot = [](const std::string &body) { return readMap(getText(body)).accesses.at(0).root; };
  using Root = spv::MemoryAccess::Root;
  EXPECT_EQ(getRoot(address + "st.shared.b32 [%d3], %t;\n"), Root::Shared);
  EXPECT_EQ(getRoot("st.shared.b32 [tile+4], %t;\n"), Root::Shared);
  EXPECT_EQ(getRoot("cvta.shared.u64 %d1, tile; st.b32 [%d1], %t;\n"), Root::Shared);
  EXPECT_EQ(getRoot("st.b32 [%a], %t;\n"), Root::Binding);
  // An address of another state space, of none, and of a register that is never written.
  EXPECT_EQ(getRoot(address + "st.global.b32 [%d3], %t;\n"), Root::Unknown);
  EXPECT_EQ(getRoot("st.shared.b32 [%a], %t;\n"), Root::Unknown);
  EXPECT_EQ(getRoot("st.global.b32 [4096], %t;\n"), Root::Unknown);
  EXPECT_EQ(getRoot("st.global.b32 [%d9], %t;\n"), Root::Unknown);
  EXPECT_EQ(getRoot("add.s64 %d1, %a, %b; st.global.b32 [%d1], %t;\n"), Root::Unknown);
}

/// A part of a parameter is an unknown number, also where it may be an address.
TEST(PtxReader, parts_of_parameters) {
  std::string text = getText("ld.param.v2.b32 {%r1, %r2}, [b+8]; ld.param.b64 %d1, [b];\n"
                             "st.global.b32 [%d1], %r1; st.global.b32 [%a+4], %r2;\n");
  text.replace(text.find(".param .u64 b"), 13, ".param .align 8 .b8 b[16]");
  text.replace(text.find("ld.param.b64 %b, [b];"), 21, "");
  spv::AddressMap map = readMap(text);
  ASSERT_EQ(map.accesses.size(), 2u);
  EXPECT_EQ(map.accesses[0].root, spv::MemoryAccess::Root::Unknown);
  EXPECT_EQ(map.accesses[1].root, spv::MemoryAccess::Root::Binding);
}

TEST(PtxReader, variables_that_are_left) {
  auto getAnswer = [](const std::string &offset) {
    spv::AddressMap map = readMap(getText(".shared .align 4 .b8 more[64]; st.shared.b32 [tile+" +
                                          offset + "], %t; ld.shared.b32 %r1, [more];\n"));
    const spv::MemoryAccess &load = map.accesses.at(1);
    return spv::isFreeOfRaces(map, load.root, load.binding).answer;
  };
  EXPECT_EQ(getAnswer("252"), spv::Answer::Yes);
  EXPECT_EQ(getAnswer("256"), spv::Answer::Unknown);
  EXPECT_EQ(getAnswer("-4"), spv::Answer::Unknown);
}

// The launch states the size of a variable; of two, nobody knows which is where.
TEST(PtxReader, variables_of_a_launch) {
  auto getAnswer = [](const std::string &offset, int64_t bytes, const std::string &more = "") {
    std::string text = getText("st.shared.b32 [tile+4], %t; bar.sync 0; ld.shared.b32 %r1, [all+" +
                               offset + "]; ld.shared.b32 %r2, [tile+4];\n");
    text.insert(text.find(".visible"), ".extern .shared .align 16 .b8 all[];\n" + more);
    auto module = ptx::readEntry(text, "main", {64, 1, 1}, "k.ptx", bytes);
    spv::AddressMap map =
        spv::readAddressMap(*module, *module->findEntryPoint("main"), {{4, 1, 1}, 32});
    const spv::MemoryAccess &load = map.accesses.at(1);
    return std::pair(load.address.has_value(), load.binding != 0);
  };
  EXPECT_EQ(getAnswer("60", 64), std::pair(true, true));
  EXPECT_EQ(getAnswer("64", 64), std::pair(false, false));
  EXPECT_EQ(getAnswer("64", 128), std::pair(true, true));
}

TEST(PtxReader, what_others_emit) {
  for (const char *body :
       {"shfl.sync.bfly.b32 %r1|%p1, %t, 16, 31, -1; vote.sync.ballot.b32 %r2, %p1, -1;",
        "lop3.b32 %r1, %t, %g, %t, 0x96; prmt.b32 %r2, %t, %g, 0x5410U; shf.l.wrap.b32 %r3, %t, "
        "%g, 3;",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r4}, "
        "{%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r11, %r12, %r13, %r14};",
        "mov.b32 %r1, tile; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r2, %r3}, [%r1];",
        "{ .reg .b16 low, high; mov.b32 {low, high}, %t; mov.b32 %r1, {high, low}; }",
        "cp.async.cg.shared.global [tile], [%a], 16; cp.async.commit_group; cp.async.wait_group 0;",
        "atom.global.add.f32 %r1, [%a], %t; red.shared.max.u32 [tile], %t; membar.gl;",
        "ld.global.L1::evict_last.v2.b32 {%r1, _}, [%a+8]; fence.acq_rel.gpu; barrier.sync 0;",
        "setp.lt.f32 %p1|%p2, %t, 0f3F800000; selp.b32 %r1, 1.5, 0, %p1; @%p2 trap;",
        "activemask.b32 %r1; cvt.rn.f16.f32 %h1, %r1; cvt.s32.s16 %r2, %h1; nanosleep.u32 20;"})
    EXPECT_EQ(getRefusal(getText(body)), "") << body;
}

TEST(PtxReader, copies_land_where_they_are_waited_for) {
  auto getAnswer = [](const std::string &order) {
    const std::string copy = "shl.b32 %r1, %t, 2; mov.b32 %r2, tile; add.s32 %r3, %r1, %r2;\n"
                             "cp.async.ca.shared.global [%r3], [%a], 4;\n";
    spv::AddressMap map = readMap(getText(copy + order + "ld.shared.b32 %r4, [tile];\n"));
    EXPECT_EQ(map.accesses.size(), 3u);
    return spv::isFreeOfRaces(map, spv::MemoryAccess::Root::Shared, map.accesses.at(1).binding)
        .answer;
  };
  EXPECT_EQ(getAnswer("cp.async.wait_all; bar.sync 0;"), spv::Answer::Yes);
  EXPECT_EQ(getAnswer("cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"),
            spv::Answer::Yes);
  EXPECT_EQ(getAnswer("cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;"),
            spv::Answer::No);
  EXPECT_EQ(getAnswer("bar.sync 0; cp.async.wait_all;"), spv::Answer::No);
  EXPECT_EQ(getAnswer("cp.async.wait_all;"), spv::Answer::No);
}

/// An mbarrier is workgroup memory that is accessed; what it orders is not followed.
TEST(PtxReader, mbarriers_order_nothing) {
  const std::string begin = ".shared .align 8 .b64 object; setp.eq.u32 %p1, %t, 0;\n"
                            "@%p1 mbarrier.init.shared.b64 [object], 64;\n",
                    wait = "mbarrier.arrive.shared::cta.b64 %d1, [object];\nagain:\n"
                           "mbarrier.test_wait.shared.b64 %p2, [object], %d1; @!%p2 bra again;\n",
                    write = "@%p1 st.shared.b32 [tile], %t;\n",
                    read = "ld.shared.b32 %r1, [tile];\n";
  auto getAnswers = [&](const std::string &body) {
    spv::AddressMap map = readMap(getText(begin + body));
    EXPECT_EQ(map.problem, "");
    std::map<uint32_t, spv::Answer> answers;
    for (const spv::MemoryAccess &access : map.accesses)
      answers[access.binding] = spv::isFreeOfRaces(map, access.root, access.binding).answer;
    std::vector<spv::Answer> result;
    for (auto [variable, answer] : answers)
      result.push_back(answer);
    return result; // of what is accessed first, and of the other
  };
  using enum spv::Answer;
  EXPECT_EQ(getAnswers("bar.sync 0;\n" + wait), std::vector({Yes}));
  EXPECT_EQ(getAnswers(wait), std::vector({Unknown})); // others may arrive before
  EXPECT_EQ(getAnswers("bar.sync 0;\n" + write + wait + read), (std::vector{Yes, Unknown}));
  EXPECT_EQ(getAnswers("bar.sync 0;\n" + write + wait + "bar.sync 0;\n" + read),
            (std::vector{Yes, Yes}));
}

TEST(PtxReader, refusals) {
  auto expect = [](const std::string &body, const std::string &why) {
    std::string refusal = getRefusal(getText(body));
    EXPECT_NE(refusal.find(why), std::string::npos) << refusal;
    EXPECT_EQ(refusal.substr(0, 9), "k.ptx:17:") << refusal;
  };
  expect("frobnicate.b32 %r1, %t;", "instruction 'frobnicate.b32' is not known to the reader");
  expect("wgmma.mma_async.sync.aligned.m64n8k16.f16 {%r1}, %d1, %d2;", "is not known");
  expect(".param .b32 sent; call helper, (sent);",
         "calls a function, which the reader does not follow");
  expect("call (%r1), helper, (%t);", "calls a function, which the reader does not follow");
  expect("cp.async.mbarrier.arrive.shared.b64 [tile];", "is not known to the reader");
  expect("mbarrier.arrive.expect_tx.shared.b64 %d1, [tile], 16;", "is not known to the reader");
  expect("list: .branchtargets list; brx.idx %t, list;", "jumps by a table");
  expect("bra nowhere;", "branches to 'nowhere', which is not there");
  expect("st.global.b32 [%a, %t;", "expected ']'");
  expect("add.s32 %r1, %t;", "has 2 operands, expected more");
  expect("add.s32 %q1, %t, %t;", "is no register");
  expect("mov.u32 %r1, %tid.w;", "special register '%tid.w' is not known");
  expect("bar.sync 0, 32;", "is a barrier for a part of the workgroup");
  expect("add.cc.s32 %r1, %t, %t;", "is not known");
  expect("setp.lt.f16x2 %p1|%p2, %r1, %r2;", "compares two pairs of numbers");
  expect("@%t bra end; end:", "predicate");
  EXPECT_EQ(getRefusal(getText("again: bra again;")).substr(0, 6), "k.ptx:");
  // A jump into a loop, a loop with two ends.
  EXPECT_NE(
      getRefusal(getText("setp.eq.u32 %p1, %t, 0; @%p1 bra inside;\nagain: add.s32 %r1, %r1, 1;\n"
                         "inside: setp.ne.u32 %p2, %r1, 8; @%p2 bra again;\n"))
          .find("jumped into"),
      std::string::npos);
  std::string future = getText("");
  future.replace(future.find("8.0"), 3, "23.0");
  EXPECT_NE(getRefusal(future).find("PTX version 23"), std::string::npos);
  EXPECT_FALSE(ptx::readEntry(getText(""), "other", {64, 1, 1}, "k.ptx"));
}

/// Code that is as long as it is senseless is read or refused in little time.
TEST(PtxReader, large_texts) {
  std::string labels, jumps, predicates, registers, blocks, nested;
  for (int i = 0; labels.size() < 10'000'000; ++i)
    labels += "L" + std::to_string(i) + ":\n";
  for (int i = 0; jumps.size() < 10'000'000; ++i)
    jumps += "M" + std::to_string(i) + ": @%p1 bra M" + std::to_string(i * 7 % 1000) + ";\n";
  for (int i = 0; predicates.size() < 3'000'000; ++i)
    predicates += "@%p" + std::to_string(i % 2) + " add.s32 %r1, %r1, 1;\n";
  for (int i = 0; registers.size() < 3'000'000; ++i)
    registers += ".reg .b32 x" + std::to_string(i) + ";\n";
  for (int i = 0; i < 200'000; ++i)
    blocks += "{";
  for (int i = 0; i < 4000; ++i)
    nested = "A" + std::to_string(i) + ":\n" + (i % 100 ? "" : "\n") + nested + "@%p1 bra A" +
             std::to_string(i) + ";\n";
  for (const std::string *body : {&labels, &jumps, &predicates, &registers, &blocks, &nested}) {
    std::string text = getText(*body);
    auto begin = std::chrono::steady_clock::now();
    getRefusal(text);
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(time.count(), 10) << body->substr(0, 40); // a second, without sanitizers
  }
}

/// Changes any byte at random, or moves a part of the text: there is a module or an error.
TEST(PtxReader, survives_any_byte) {
  const std::string whole = getText(
      "mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a, %d1; mov.b32 %r1, 0;\n"
      "again: ld.global.v2.b32 {%r2, %r3}, [%d2]; bar.sync 0; @%p1 st.shared.b32 [tile+8], %r3;\n"
      "add.s32 %r1, %r1, 1; setp.lt.or.u32 %p1|%p2, %r1, 8, !%p3; @%p1 bra again;\n"
      "{ .reg .f32 %f<3>; fma.rn.f32 %f1, %f2, 0f3F800000, %f1; mov.b64 {%r4, _}, %d1; }\n"
      "atom.global.cas.b32 %r5, [%a+4], %r1, %r2; // done\n");
  std::mt19937 random(1);
  size_t read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (int edits = int(random() % 3); edits >= 0; --edits) {
      size_t at = random() % text.size(), length = random() % 12;
      switch (random() % 3) {
      case 0:
        text[at] = " ,;:.%@{}[]0123456789abrt\n"[random() % 26];
        break;
      case 1:
        text.erase(at, length);
        break;
      default:
        text.insert(random() % text.size(), text.substr(at, length));
      }
    }
    try {
      spv::AddressMap map = readMap(text);
      for (const spv::MemoryAccess &access : map.accesses)
        spv::getReach(map, access);
      spv::getTouched(map, 0, false);
      spv::mayOverwrite(map, 1, 0);
      ++read;
    } catch (const Error &) {
    }
  }
  EXPECT_GT(read, 500u);
}
