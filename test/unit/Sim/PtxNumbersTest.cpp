//===- PtxNumbersTest.cpp - Arithmetic of PTX, by its ISA -----------------===//
//
// Each instruction runs on pairs of numbers at the edges of what it is defined for. Expectations
// are written from the PTX ISA's text, bit by bit where that is how it says it.
//
//===----------------------------------------------------------------------===//

#include "Ptx.h"

#include <bit>
#include <cmath>
#include <functional>

using namespace weir;
using namespace weir::test;

/// Runs a body on 32 pairs at a time: %r0 and %r1 are a pair, %d0 and %d1 the same as one number
/// of 64 bits (%r0 the low half) and its halves swapped; the result is in %r2, or in %d2 where
/// `isWide`.
static std::vector<uint64_t> compute(const std::string &body, std::vector<uint64_t> pairs,
                                     bool isWide = false) {
  std::vector<uint64_t> results;
  const size_t count = pairs.size();
  pairs.resize((count + 31) / 32 * 32);
  const std::string text = getPtx("ld.global.b32 %r0, [%pa];\nld.global.b32 %r1, [%pa+128];\n"
                                  "mov.b64 %d0, {%r0, %r1};\nmov.b64 %d1, {%r1, %r0};\n" +
                                      body + (isWide ? "" : "\ncvt.u64.u32 %d2, %r2;") +
                                      "\nmov.b64 {%r3, %r4}, %d2;\nst.global.b32 [%pb], %r3;\n"
                                      "st.global.b32 [%pb+128], %r4;",
                                  32);
  for (size_t first = 0; first < pairs.size(); first += 32) {
    Sample sample = makeText(text, 32);
    Sample two(64);
    sample.bytes = two.bytes;
    sample.artifact.manifest.entries = two.artifact.manifest.entries;
    sample.plan.allocations = two.plan.allocations;
    sample.plan.values = two.plan.values;
    sample.plan.arenaBytes = sample.plan.pinnedBytes = two.bytes;
    sample.plan.slots = two.plan.slots;
    sample.plan.commands[0].operands = {two.x, two.y};
    for (KernelOperand &operand : sample.plan.kernels[0].operands)
      operand.bytes = two.bytes;
    Bytes data(256);
    for (size_t i = 0; i < 32; ++i) {
      auto low = uint32_t(pairs[first + i]), high = uint32_t(pairs[first + i] >> 32);
      std::memcpy(&data[4 * i], &low, 4);
      std::memcpy(&data[128 + 4 * i], &high, 4);
    }
    SimOutcome outcome = sample.run(data, {});
    EXPECT_EQ(testing::PrintToString(outcome.reports), "{}") << body;
    for (size_t i = 0; i < 32 && first + i < count; ++i) {
      uint32_t low, high;
      std::memcpy(&low, &outcome.results[0].data[4 * i], 4);
      std::memcpy(&high, &outcome.results[0].data[128 + 4 * i], 4);
      results.push_back(uint64_t(high) << 32 | low);
    }
  }
  return results;
}

static std::vector<uint64_t> pairUp(const std::vector<uint32_t> &first,
                                    const std::vector<uint32_t> &second) {
  std::vector<uint64_t> pairs;
  for (uint32_t a : first)
    for (uint32_t b : second)
      pairs.push_back(uint64_t(b) << 32 | a);
  return pairs;
}

static const std::vector<uint32_t> integers = {0,          1,          2,          31,
                                               0x7fff,     0x8000,     0xffff,     0x12345678,
                                               0x7fffffff, 0x80000000, 0xdeadbeef, 0xffffffff};
static const std::vector<uint32_t> amounts = {0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 65, 0xffffffff};

/// Expects an instruction on %r0 and %r1 to make `expected` in %r2, or with `isWide`, on the number
/// of 64 bits in %d2.
static void expectAll(const std::string &body, const std::vector<uint64_t> &pairs,
                      const std::function<uint64_t(uint32_t, uint32_t)> &expected,
                      bool isWide = false) {
  std::vector<uint64_t> results = compute(body, pairs, isWide);
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto a = uint32_t(pairs[i]), b = uint32_t(pairs[i] >> 32);
    EXPECT_EQ(results[i], expected(a, b))
        << body << std::hex << " of " << a << " and " << b << ": " << results[i];
  }
}

static void expectIntegers(const std::string &body,
                           const std::function<uint32_t(uint32_t, uint32_t)> &expected,
                           const std::vector<uint32_t> &second = integers) {
  expectAll(body, pairUp(integers, second), expected);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

TEST(PtxNumbers, shifts_clamp) {
  auto left = [](uint32_t a, uint32_t b) { return b > 31 ? 0 : a << b; };
  auto right = [](uint32_t a, uint32_t b) { return b > 31 ? 0 : a >> b; };
  auto rightSigned = [](uint32_t a, uint32_t b) {
    return uint32_t(int64_t(int32_t(a)) >> (b > 31 ? 31 : b));
  };
  expectIntegers("shl.b32 %r2, %r0, %r1;", left, amounts);
  expectIntegers("shr.u32 %r2, %r0, %r1;", right, amounts);
  expectIntegers("shr.s32 %r2, %r0, %r1;", rightSigned, amounts);
  for (uint32_t by : amounts) {
    const std::string amount = std::to_string(by) + ";";
    expectIntegers("shl.b32 %r2, %r0, " + amount,
                   [&](uint32_t a, uint32_t) { return left(a, by); });
    expectIntegers("shr.s32 %r2, %r0, " + amount,
                   [&](uint32_t a, uint32_t) { return rightSigned(a, by); });
  }
  // Of 64 and of 16 bits.
  expectAll(
      "cvt.u64.u32 %d3, %r0; shl.b64 %d4, %d3, 20; shl.b64 %d2, %d4, %r1;",
      pairUp(integers, amounts),
      [](uint32_t a, uint32_t b) { return b > 63 ? 0 : (uint64_t(a) << 20) << b; }, true);
  expectIntegers(
      "cvt.u16.u32 %h1, %r0; shl.b16 %h2, %h1, %r1; cvt.u32.u16 %r2, %h2;",
      [](uint32_t a, uint32_t b) { return b > 15 ? 0 : a << b & 0xffff; }, amounts);
  expectIntegers(
      "cvt.u16.u32 %h1, %r0; shr.s16 %h2, %h1, %r1; cvt.u32.u16 %r2, %h2;",
      [](uint32_t a, uint32_t b) { return uint32_t(int16_t(a) >> (b > 15 ? 15 : b)) & 0xffff; },
      amounts);
}

TEST(PtxNumbers, fields_of_bits) {
  // As the ISA's pseudocode, bit by bit.
  auto extract = [](uint32_t a, uint32_t pos, uint32_t len, bool isSigned) {
    pos &= 0xff, len &= 0xff;
    uint32_t sign = !isSigned || len == 0 ? 0 : a >> std::min(pos + len - 1, 31u) & 1, result = 0;
    for (uint32_t i = 0; i < 32; ++i)
      result |= (i < len && pos + i < 32 ? a >> (pos + i) & 1 : sign) << i;
    return result;
  };
  for (uint32_t len : {0u, 1u, 5u, 8u, 31u, 32u, 40u, 255u}) {
    const std::string count = std::to_string(len) + ";";
    expectIntegers(
        "bfe.u32 %r2, %r0, %r1, " + count,
        [&](uint32_t a, uint32_t b) { return extract(a, b, len, false); }, amounts);
    expectIntegers(
        "bfe.s32 %r2, %r0, %r1, " + count,
        [&](uint32_t a, uint32_t b) { return extract(a, b, len, true); }, amounts);
    for (uint32_t pos : {0u, 3u, 31u, 32u}) {
      const std::string place = std::to_string(pos) + ", " + count;
      expectIntegers("bfe.u32 %r2, %r0, " + place,
                     [&](uint32_t a, uint32_t) { return extract(a, pos, len, false); });
      expectIntegers("bfe.s32 %r2, %r0, " + place,
                     [&](uint32_t a, uint32_t) { return extract(a, pos, len, true); });
      auto insert = [&](uint32_t a, uint32_t b) {
        for (uint32_t i = 0; i < len && pos + i < 32; ++i)
          b = (b & ~(1u << (pos + i))) | (a >> i & 1) << (pos + i);
        return b;
      };
      expectIntegers("bfi.b32 %r2, %r0, %r1, " + place, insert);
      expectIntegers(
          "mov.b32 %r5, " + std::to_string(pos) + ";bfi.b32 %r2, %r0, %r1, %r5, " + count, insert);
    }
  }
  expectIntegers(
      "szext.clamp.s32 %r2, %r0, %r1;",
      [](uint32_t a, uint32_t n) {
        return n == 0 ? 0 : n >= 32 ? a : uint32_t(int32_t(a << (32 - n)) >> (32 - n));
      },
      amounts);
  expectIntegers(
      "bmsk.clamp.b32 %r2, %r1, 4;",
      [](uint32_t, uint32_t first) {
        uint32_t mask = 0;
        for (uint32_t i = 0; i < 4; ++i)
          mask |= uint64_t(first) + i < 32 ? 1u << (first + i) : 0;
        return mask;
      },
      amounts);
}

TEST(PtxNumbers, bytes_and_funnels) {
  // A constant in a register, too, for which the instruction keeps its name.
  auto expectBoth = [](const std::string &text, uint32_t last, auto expected) {
    expectIntegers(text + std::to_string(last) + ";", expected);
    expectIntegers("mov.b32 %r5, " + std::to_string(last) + ";" + text + "%r5;", expected);
  };
  for (uint32_t how :
       {0x3210u, 0x7531u, 0x0123u, 0x5410u, 0x7632u, 0x6543u, 0x4440u, 0x89abu, 0xcf47u})
    expectBoth("prmt.b32 %r2, %r0, %r1, ", how, [&](uint32_t a, uint32_t b) {
      uint32_t result = 0;
      for (uint32_t i = 0; i < 4; ++i) {
        uint32_t each = how >> 4 * i & 15;
        uint32_t byte = (each & 4 ? b : a) >> 8 * (each & 3) & 0xff;
        result |= (each & 8 ? (byte >> 7) * 0xff : byte) << 8 * i;
      }
      return result;
    });
  for (uint32_t by : {0u, 1u, 31u, 32u, 33u, 40u}) {
    for (bool clamps : {false, true}) {
      uint32_t k = clamps ? std::min(by, 32u) : by & 31;
      const std::string mode = clamps ? ".clamp.b32" : ".wrap.b32";
      auto at = [](uint32_t a, uint32_t b, uint32_t bit) {
        return bit < 32 ? a >> bit & 1 : b >> (bit - 32) & 1;
      };
      expectBoth("shf.r" + mode + " %r2, %r0, %r1, ", by, [&](uint32_t a, uint32_t b) {
        uint32_t result = 0;
        for (uint32_t i = 0; i < 32; ++i)
          result |= at(a, b, i + k) << i;
        return result;
      });
      expectBoth("shf.l" + mode + " %r2, %r0, %r1, ", by, [&](uint32_t a, uint32_t b) {
        uint32_t result = 0;
        for (uint32_t i = 0; i < 32; ++i)
          result |= at(a, b, i + 32 - k) << i;
        return result;
      });
    }
  }
  for (uint32_t table = 0; table < 256; ++table)
    expectIntegers(
        "lop3.b32 %r2, %r0, %r1, 0xff00ff, " + std::to_string(table) + ";",
        [&](uint32_t a, uint32_t b) {
          uint32_t result = 0;
          for (uint32_t i = 0; i < 32; ++i)
            result |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (0xff00ffu >> i & 1)) & 1)
                      << i;
          return result;
        });
}

TEST(PtxNumbers, counts) {
  expectIntegers("popc.b32 %r2, %r0;", [](uint32_t a, uint32_t) { return std::popcount(a); });
  expectIntegers("clz.b32 %r2, %r0;", [](uint32_t a, uint32_t) { return std::countl_zero(a); });
  expectIntegers("bfind.u32 %r2, %r0;",
                 [](uint32_t a, uint32_t) { return a ? 31 - uint32_t(std::countl_zero(a)) : ~0u; });
  expectIntegers("bfind.s32 %r2, %r0;", [](uint32_t a, uint32_t) {
    a = int32_t(a) < 0 ? ~a : a;
    return a ? 31 - uint32_t(std::countl_zero(a)) : ~0u;
  });
  expectIntegers("brev.b32 %r2, %r0;", [](uint32_t a, uint32_t) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; ++i)
      result |= (a >> i & 1) << (31 - i);
    return result;
  });
  expectAll("clz.b64 %r2, %d0;", pairUp(integers, integers), [](uint32_t a, uint32_t b) {
    return uint64_t(std::countl_zero(uint64_t(b) << 32 | a));
  });
}

TEST(PtxNumbers, products) {
  auto s = [](uint32_t a) { return int64_t(int32_t(a)); };
  expectIntegers("mul.hi.s32 %r2, %r0, %r1;",
                 [&](uint32_t a, uint32_t b) { return uint32_t(s(a) * s(b) >> 32); });
  expectIntegers("mul.hi.u32 %r2, %r0, %r1;",
                 [](uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); });
  expectIntegers("mul24.hi.s32 %r2, %r0, %r1;", [](uint32_t a, uint32_t b) {
    return uint32_t(int64_t(int32_t(a << 8) >> 8) * (int32_t(b << 8) >> 8) >> 16);
  });
  expectIntegers("mul24.lo.s32 %r2, %r0, %r1;", [](uint32_t a, uint32_t b) {
    return uint32_t(int64_t(int32_t(a << 8) >> 8) * (int32_t(b << 8) >> 8));
  });
  expectIntegers("mad24.lo.u32 %r2, %r0, %r1, 5;", [](uint32_t a, uint32_t b) {
    return uint32_t(uint64_t(a & 0xffffff) * (b & 0xffffff)) + 5;
  });
  expectIntegers("sad.s32 %r2, %r0, %r1, 3;",
                 [&](uint32_t a, uint32_t b) { return uint32_t(3 + std::abs(s(a) - s(b))); });
  expectIntegers("dp4a.s32.u32 %r2, %r0, %r1, 9;", [](uint32_t a, uint32_t b) {
    int32_t sum = 9;
    for (uint32_t i = 0; i < 32; i += 8)
      sum += int32_t(int8_t(a >> i)) * int32_t(b >> i & 0xff);
    return uint32_t(sum);
  });
  expectIntegers("add.sat.s32 %r2, %r0, %r1;", [&](uint32_t a, uint32_t b) {
    return uint32_t(std::clamp<int64_t>(s(a) + s(b), INT32_MIN, INT32_MAX));
  });
  expectAll(
      "mul.hi.u64 %d2, %d0, %d1;", pairUp(integers, integers),
      [](uint32_t a, uint32_t b) {
        unsigned __int128 one = uint64_t(b) << 32 | a, two = uint64_t(a) << 32 | b;
        return uint64_t(one * two >> 64);
      },
      true);
  expectIntegers("abs.s32 %r2, %r0;",
                 [&](uint32_t a, uint32_t) { return uint32_t(std::abs(s(a))); });
}

TEST(PtxNumbers, choices) {
  expectIntegers("slct.b32.s32 %r2, %r0, 7, %r1;",
                 [](uint32_t a, uint32_t b) { return int32_t(b) >= 0 ? a : 7; });
  expectIntegers("cnot.b32 %r2, %r0;", [](uint32_t a, uint32_t) { return uint32_t(a == 0); });
  expectIntegers("setp.lo.u32 %p1|%p2, %r0, %r1; selp.b32 %r2, 1, 0, %p1;\n"
                 "@%p2 add.s32 %r2, %r2, 2;",
                 [](uint32_t a, uint32_t b) { return a < b ? 1u : 2u; });
  expectIntegers("setp.ne.b32 %p9, %r0, %r0; setp.lt.and.s32 %p1, %r0, %r1, %p9;\n"
                 "selp.b32 %r2, 1, 0, %p1;",
                 [](uint32_t, uint32_t) { return 0u; });
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static float f(uint32_t bits) { return std::bit_cast<float>(bits); }
static uint32_t b(float number) {
  return number == number ? std::bit_cast<uint32_t>(number) : 0x7fffffffu;
}

/// Zeros, denormals, halves, large numbers, infinities, NaNs.
static const std::vector<uint32_t> floats = {
    0,          0x80000000, 1,          0x807fffff, 0x00800000, 0x3f800000, 0xbf800001,
    0x3f000000, 0x40200000, 0xc0600000, 0x4b000001, 0x4effffff, 0x4f000000, 0xcf000001,
    0x4f7fffff, 0x5f000000, 0x7f7fffff, 0xff800000, 0x7f800000, 0x7fc00000, 0xffa00001};

static void expectFloats(const std::string &body,
                         const std::function<uint32_t(float, float)> &expected) {
  expectAll(body, pairUp(floats, floats),
            [&](uint32_t x, uint32_t y) { return uint64_t(expected(f(x), f(y))); });
}

TEST(PtxNumbers, arithmetic_rounds_once) {
  expectFloats("add.rn.f32 %r2, %r0, %r1;", [](float x, float y) { return b(x + y); });
  expectFloats("sub.f32 %r2, %r0, %r1;", [](float x, float y) { return b(x - y); });
  expectFloats("mul.rn.f32 %r2, %r0, %r1;", [](float x, float y) { return b(x * y); });
  expectFloats("div.rn.f32 %r2, %r0, %r1;", [](float x, float y) { return b(x / y); });
  expectFloats("fma.rn.f32 %r2, %r0, %r1, 0f3F800001;",
               [](float x, float y) { return b(std::fma(x, y, f(0x3f800001))); });
  expectFloats("rcp.rn.f32 %r2, %r0;", [](float x, float) { return b(1 / x); });
  expectFloats("sqrt.rn.f32 %r2, %r0;", [](float x, float) { return b(std::sqrt(x)); });
  expectAll("neg.f32 %r2, %r0;", pairUp(floats, {0}),
            [](uint32_t x, uint32_t) { return uint64_t(x ^ 0x80000000); });
  expectAll("abs.f32 %r2, %r0;", pairUp(floats, {0}),
            [](uint32_t x, uint32_t) { return uint64_t(x & 0x7fffffff); });
  expectAll("copysign.f32 %r2, %r0, %r1;", pairUp(floats, floats),
            [](uint32_t x, uint32_t y) { return uint64_t((x & 0x80000000) | (y & 0x7fffffff)); });
}

TEST(PtxNumbers, min_and_max) {
  auto less = [](float x, float y) { return x == y ? std::signbit(x) : x < y; };
  expectFloats("min.f32 %r2, %r0, %r1;", [&](float x, float y) {
    return x != x ? b(y) : y != y ? b(x) : b(less(x, y) ? x : y);
  });
  expectFloats("max.f32 %r2, %r0, %r1;", [&](float x, float y) {
    return x != x ? b(y) : y != y ? b(x) : b(less(x, y) ? y : x);
  });
  expectFloats("max.NaN.f32 %r2, %r0, %r1;", [&](float x, float y) {
    return x != x || y != y ? 0x7fffffff : b(less(x, y) ? y : x);
  });
}

TEST(PtxNumbers, comparisons) {
  using Test = bool (*)(float, float);
  const std::pair<const char *, Test> ordered[] = {{"eq", [](float x, float y) { return x == y; }},
                                                   {"ne", [](float x, float y) { return x != y; }},
                                                   {"lt", [](float x, float y) { return x < y; }},
                                                   {"le", [](float x, float y) { return x <= y; }},
                                                   {"gt", [](float x, float y) { return x > y; }},
                                                   {"ge", [](float x, float y) { return x >= y; }}};
  for (auto [name, test] : ordered) {
    auto compare = [](const std::string &how) {
      return "setp." + how + ".f32 %p1, %r0, %r1; selp.b32 %r2, 1, 0, %p1;";
    };
    expectFloats(compare(name), [test = test](float x, float y) {
      return uint32_t(x == x && y == y && test(x, y));
    });
    expectFloats(compare(name + std::string("u")), [test = test](float x, float y) {
      return uint32_t(x != x || y != y || test(x, y));
    });
  }
  expectFloats("testp.subnormal.f32 %p1, %r0; selp.b32 %r2, 1, 0, %p1;",
               [](float x, float) { return uint32_t(std::fpclassify(x) == FP_SUBNORMAL); });
}

TEST(PtxNumbers, conversions_to_integers_saturate) {
  auto round = [](const std::string &how, double x) {
    return how == "rni"   ? std::nearbyint(x)
           : how == "rzi" ? std::trunc(x)
           : how == "rmi" ? std::floor(x)
                          : std::ceil(x);
  };
  for (const std::string how : {"rni", "rzi", "rmi", "rpi"}) {
    expectFloats("cvt." + how + ".s32.f32 %r2, %r0;", [&](float x, float) {
      double r = round(how, x);
      return x != x ? 0u : uint32_t(int32_t(std::clamp(r, -0x1p31, 0x1p31 - 1)));
    });
    expectFloats("cvt." + how + ".u32.f32 %r2, %r0;", [&](float x, float) {
      double r = round(how, x);
      return x != x ? 0u : uint32_t(std::clamp(r, 0.0, 0x1p32 - 1));
    });
    expectFloats("cvt." + how + ".f32.f32 %r2, %r0;",
                 [&](float x, float) { return b(float(round(how, x))); });
  }
  expectFloats("cvt.rzi.s16.f32 %h1, %r0; cvt.s32.s16 %r2, %h1;", [](float x, float) {
    return x != x ? 0u : uint32_t(int32_t(std::clamp(std::trunc(x), -32768.0f, 32767.0f)));
  });
  expectAll(
      "cvt.rzi.s64.f32 %d2, %r0;", pairUp(floats, {0}),
      [](uint32_t x, uint32_t) {
        float a = f(x);
        return a != a          ? 0
               : a >= 0x1p63f  ? uint64_t(INT64_MAX)
               : a <= -0x1p63f ? uint64_t(INT64_MIN)
                               : uint64_t(int64_t(a));
      },
      true);
  expectIntegers("cvt.sat.u8.s32 %r2, %r0;",
                 [](uint32_t a, uint32_t) { return uint32_t(std::clamp(int32_t(a), 0, 255)); });
  expectIntegers("cvt.sat.s16.u32 %r2, %r0;",
                 [](uint32_t a, uint32_t) { return std::min(a, 32767u); });
}

TEST(PtxNumbers, conversions_from_integers) {
  expectIntegers("cvt.rn.f32.s32 %r2, %r0;",
                 [](uint32_t a, uint32_t) { return b(float(int32_t(a))); });
  expectIntegers("cvt.rn.f32.u32 %r2, %r0;", [](uint32_t a, uint32_t) { return b(float(a)); });
  expectIntegers("cvt.u16.u32 %h1, %r0; cvt.rn.f32.s16 %r2, %h1;",
                 [](uint32_t a, uint32_t) { return b(float(int16_t(a))); });
  expectAll("cvt.rn.f32.s64 %r2, %d0;", pairUp(integers, integers), [](uint32_t a, uint32_t high) {
    return uint64_t(b(float(int64_t(uint64_t(high) << 32 | a))));
  });
  // Signs of integers are extended by their own type.
  expectIntegers("cvt.s32.s8 %r2, %r0;",
                 [](uint32_t a, uint32_t) { return uint32_t(int32_t(int8_t(a))); });
  expectIntegers("cvt.u32.u8 %r2, %r0;", [](uint32_t a, uint32_t) { return a & 0xff; });
}

TEST(PtxNumbers, short_floats) {
  auto half = [](float x) { return x == x ? std::bit_cast<uint16_t>(_Float16(x)) : 0x7fff; };
  expectFloats("cvt.rn.f16.f32 %h1, %r0; cvt.u32.u16 %r2, %h1;",
               [&](float x, float) { return uint32_t(half(x)); });
  expectFloats("cvt.rn.f16x2.f32 %r2, %r0, %r1;",
               [&](float x, float y) { return uint32_t(half(x)) << 16 | half(y); });
  auto brain = [](float x) {
    auto bits = std::bit_cast<uint32_t>(x);
    uint32_t rest = bits & 0xffff, high = bits >> 16;
    return x != x ? 0x7fffu : high + (rest > 0x8000 || (rest == 0x8000 && high & 1));
  };
  expectFloats("cvt.rn.bf16.f32 %h1, %r0; cvt.u32.u16 %r2, %h1;",
               [&](float x, float) { return brain(x); });
  expectFloats("cvt.rn.bf16.f32 %h1, %r0; cvt.f32.bf16 %r2, %h1;",
               [&](float x, float) { return b(f(brain(x) << 16)); });
  // A product of two that is halfway between two numbers, and a term that decides.
  expectAll("mov.b32 {%h1, %h2}, %r0; mov.b32 {%h3, %h4}, %r1; fma.rn.bf16 %h5, %h1, %h2, %h3;\n"
            "cvt.u32.u16 %r2, %h5;",
            {uint64_t(0x0001) << 32 | 0x3f813fc0, uint64_t(0x8001) << 32 | 0x3f813fc0,
             uint64_t(0x0000) << 32 | 0x3f813fc0},
            [](uint32_t, uint32_t term) {
              // 1.0078125 * 1.5 = 1.51171875, halfway from 0x3fc1 to 0x3fc2.
              return uint64_t(term == 0x8001 ? 0x3fc1 : 0x3fc2);
            });
  expectFloats("cvt.rna.tf32.f32 %r2, %r0;", [](float x, float) {
    auto bits = std::bit_cast<uint32_t>(x);
    return x != x ? 0x7fffffffu : std::isinf(x) ? bits : (bits + 0x1000) & 0xffffe000;
  });
}
