//===- StepsTest.cpp - Results of single instructions ---------------------===//

#include "Kernels.h"

#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace weir;
using namespace weir::test;

/// Runs y = op(x, z) with z the element after x, as 64-bit words; `wide` says that
/// the operation is on 64 bits, else it is on the low 32.
static std::vector<uint64_t> compute(const std::string &operation,
                                     const std::vector<uint64_t> &inputs, bool isWide = false,
                                     bool fusesFma = false) {
  std::string word = isWide ? "%long" : "%uint";
  auto count = int(inputs.size());
  std::string narrow = isWide ? ""
                              : "%a = OpUConvert %uint %wa\n%b = OpUConvert %uint %wb\n"
                                "%c = OpUConvert %uint %wc\n";
  std::string names[3] = {isWide ? "a" : "wa", isWide ? "b" : "wb", isWide ? "c" : "wc"};
  KernelText kernel;
  kernel.elements = count;
  kernel.invocations = uint32_t(count);
  kernel.element = "%long";
  kernel.stride = 8;
  kernel.capabilities = "OpCapability Int64\nOpCapability Float64\nOpCapability Int8\n"
                        "OpCapability Int16\nOpCapability Float16\n";
  kernel.declarations = "%long = OpTypeInt 64 0\n%byte = OpTypeInt 8 0\n%short = OpTypeInt 16 0\n"
                        "%half = OpTypeFloat 16\n%double = OpTypeFloat 64\n"
                        "%v2 = OpTypeVector %float 2\n%carry = OpTypeStruct %uint %uint\n"
                        "%v2uint = OpTypeVector %uint 2\n%v4uint = OpTypeVector %uint 4\n";
  kernel.body = "%j = OpIAdd %uint %i %n1\n%jm = OpUMod %uint %j %n" + std::to_string(count) +
                "\n%k = OpIAdd %uint %i %n2\n%km = OpUMod %uint %k %n" + std::to_string(count) +
                "\n" + load(names[0], "%b0", "%i", "%long") +
                load(names[1], "%b0", "%jm", "%long") + load(names[2], "%b0", "%km", "%long") +
                narrow + operation + (isWide ? "" : "%wr = OpUConvert %long %r\n") +
                store("r", "%b1", "%i", isWide ? "%r" : "%wr");
  Sample sample(count, "I64");
  sample.addKernel(kernel, "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y})};
  Bytes data(inputs.size() * 8);
  std::memcpy(data.data(), inputs.data(), data.size());
  SimOutcome outcome = sample.run(data, {.fusesFma = fusesFma});
  EXPECT_EQ(testing::PrintToString(outcome.reports), "{}");
  std::vector<uint64_t> results(inputs.size());
  std::memcpy(results.data(), outcome.results[0].data.data(), data.size());
  return results;
}

static const std::vector<uint64_t> ints = {0, 1, 5, 7, 0x7fffffff, 0x80000000, 0xffffffff, 31};

template <typename F> static void expectInts(const std::string &op, F function) {
  std::vector<uint64_t> results = compute(op, ints);
  for (size_t i = 0; i < ints.size(); ++i)
    EXPECT_EQ(results[i], function(uint32_t(ints[i]), uint32_t(ints[(i + 1) % ints.size()])))
        << op << " of " << ints[i];
}

TEST(Steps, integers) {
  using U = uint32_t;
  using S = int32_t;
  expectInts("%r = OpIAdd %uint %a %b\n", [](U a, U b) { return U(a + b); });
  expectInts("%r = OpISub %uint %a %b\n", [](U a, U b) { return U(a - b); });
  expectInts("%r = OpIMul %uint %a %b\n", [](U a, U b) { return U(a * b); });
  expectInts("%r = OpUDiv %uint %a %b\n", [](U a, U b) { return b ? a / b : ~U(0); });
  expectInts("%r = OpUMod %uint %a %b\n", [](U a, U b) { return b ? a % b : ~U(0); });
  expectInts("%r = OpSDiv %uint %a %b\n",
             [](U a, U b) { return b ? U(int64_t(S(a)) / S(b)) : ~U(0); });
  expectInts("%r = OpSRem %uint %a %b\n",
             [](U a, U b) { return b ? U(int64_t(S(a)) % S(b)) : ~U(0); });
  expectInts("%r = OpShiftLeftLogical %uint %a %b\n", [](U a, U b) { return a << (b & 31); });
  expectInts("%r = OpShiftRightLogical %uint %a %b\n", [](U a, U b) { return a >> (b & 31); });
  expectInts("%r = OpShiftRightArithmetic %uint %a %b\n",
             [](U a, U b) { return U(S(a) >> (b & 31)); });
  expectInts("%r = OpBitwiseXor %uint %a %b\n", [](U a, U b) { return a ^ b; });
  expectInts("%r = OpNot %uint %a\n", [](U a, U) { return ~a; });
  expectInts("%r = OpSNegate %uint %a\n", [](U a, U) { return U(0) - a; });
  expectInts("%r = OpBitCount %uint %a\n", [](U a, U) { return U(std::popcount(a)); });
  expectInts("%t = OpSLessThan %bool %a %b\n%r = OpSelect %uint %t %n3 %n4\n",
             [](U a, U b) { return S(a) < S(b) ? 3u : 4u; });
  expectInts("%t = OpULessThan %bool %a %b\n%r = OpSelect %uint %t %a %b\n",
             [](U a, U b) { return std::min(a, b); });
  expectInts("%r = OpExtInst %uint %glsl SMax %a %b\n",
             [](U a, U b) { return U(std::max(S(a), S(b))); });
  expectInts("%r = OpExtInst %uint %glsl FindUMsb %a\n",
             [](U a, U) { return a ? U(31 - std::countl_zero(a)) : ~U(0); });
  expectInts("%s = OpUMulExtended %carry %a %b\n%r = OpCompositeExtract %uint %s 1\n",
             [](U a, U b) { return U(uint64_t(a) * b >> 32); });
  expectInts("%s = OpIAddCarry %carry %a %b\n%r = OpCompositeExtract %uint %s 1\n",
             [](U a, U b) { return U((uint64_t(a) + b) >> 32); });
}

TEST(Steps, short_integers) {
  using U = uint32_t;
  std::string narrow = "%sa = OpUConvert %byte %a\n%sb = OpUConvert %byte %b\n";
  expectInts(narrow + "%s = OpIAdd %byte %sa %sb\n%r = OpUConvert %uint %s\n",
             [](U a, U b) { return U(uint8_t(a + b)); });
  expectInts(narrow + "%s = OpIMul %byte %sa %sb\n%r = OpSConvert %uint %s\n",
             [](U a, U b) { return U(int8_t(a * b)); });
  expectInts(narrow + "%t = OpSLessThan %bool %sa %sb\n%r = OpSelect %uint %t %n3 %n4\n",
             [](U a, U b) { return int8_t(a) < int8_t(b) ? 3u : 4u; });
  expectInts(narrow + "%s = OpShiftRightArithmetic %byte %sa %n1\n%r = OpUConvert %uint %s\n",
             [](U a, U) { return U(uint8_t(int8_t(a) >> 1)); });
}

TEST(Steps, wide_integers) {
  std::vector<uint64_t> inputs = {1, 0x8000000000000000, 0xffffffffffffffff, 3};
  auto expect = [&](const std::string &op, auto function) {
    std::vector<uint64_t> results = compute(op, inputs, true);
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_EQ(results[i], function(inputs[i], inputs[(i + 1) % inputs.size()])) << op;
  };
  using U = uint64_t;
  expect("%r = OpIAdd %long %a %b\n", [](U a, U b) { return a + b; });
  expect("%r = OpIMul %long %a %b\n", [](U a, U b) { return a * b; });
  expect("%r = OpSDiv %long %a %b\n",
         [](U a, U b) { return b == ~U(0) ? U(0) - a : U(int64_t(a) / int64_t(b)); });
  expect("%t = OpSLessThan %bool %a %b\n%r = OpSelect %long %t %a %b\n",
         [](U a, U b) { return U(std::min(int64_t(a), int64_t(b))); });
  expect("%s = OpShiftLeftLogical %long %a %n33\n%r = OpCopyObject %long %s\n",
         [](U a, U) { return a << 33; });
  expect("%s = OpUConvert %uint %a\n%r = OpSConvert %long %s\n",
         [](U a, U) { return U(int64_t(int32_t(a))); });
  // The first of two shorter scalars is the low half.
  expect("%both = OpBitcast %v2 %a\n%low = OpCompositeExtract %float %both 0\n"
         "%high = OpCompositeExtract %float %both 1\n"
         "%swapped = OpCompositeConstruct %v2 %high %low\n%r = OpBitcast %long %swapped\n",
         [](U a, U) { return a >> 32 | a << 32; });
}

static std::vector<uint64_t> getBits(const std::vector<float> &floats) {
  std::vector<uint64_t> bits;
  for (float number : floats)
    bits.push_back(std::bit_cast<uint32_t>(number));
  return bits;
}

static const std::vector<float> floats = {0.1f,
                                          0.3f,
                                          -0.03f,
                                          -2.5f,
                                          3,
                                          1e-40f,
                                          std::numeric_limits<float>::infinity(),
                                          -0.0f,
                                          1e30f,
                                          std::numeric_limits<float>::quiet_NaN()};

template <typename F>
static void expectFloats(const std::string &op, F function, bool fusesFma = false) {
  std::string bits = "%fa = OpBitcast %float %a\n%fb = OpBitcast %float %b\n"
                     "%fc = OpBitcast %float %c\n";
  std::vector<uint64_t> results =
      compute(bits + op + "%r = OpBitcast %uint %fr\n", getBits(floats), false, fusesFma);
  for (size_t i = 0; i < floats.size(); ++i) {
    float expected =
        function(floats[i], floats[(i + 1) % floats.size()], floats[(i + 2) % floats.size()]);
    auto result = std::bit_cast<float>(uint32_t(results[i]));
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(result)) << op << " of " << floats[i];
    else
      EXPECT_EQ(results[i], std::bit_cast<uint32_t>(expected)) << op << " of " << floats[i];
  }
}

TEST(Steps, floats) {
  using F = float;
  expectFloats("%fr = OpFAdd %float %fa %fb\n", [](F a, F b, F) { return a + b; });
  expectFloats("%fr = OpFSub %float %fa %fb\n", [](F a, F b, F) { return a - b; });
  expectFloats("%fr = OpFMul %float %fa %fb\n", [](F a, F b, F) { return a * b; });
  expectFloats("%fr = OpFDiv %float %fa %fb\n", [](F a, F b, F) { return a / b; });
  expectFloats("%fr = OpFNegate %float %fa\n", [](F a, F, F) { return -a; });
  for (bool fuses : {false, true})
    expectFloats(
        "%fr = OpExtInst %float %glsl Fma %fa %fb %fc\n",
        [&](F a, F b, F c) {
          volatile F product = a * b;
          return fuses ? std::fma(a, b, c) : product + c;
        },
        fuses);
  // Not contracted: two roundings.
  expectFloats("%m = OpFMul %float %fa %fb\n%fr = OpFAdd %float %m %fc\n", [](F a, F b, F c) {
    volatile F product = a * b;
    return product + c;
  });
  expectFloats("%fr = OpExtInst %float %glsl Sqrt %fa\n", [](F a, F, F) { return std::sqrt(a); });
  expectFloats("%fr = OpExtInst %float %glsl FAbs %fa\n", [](F a, F, F) { return std::fabs(a); });
  expectFloats("%fr = OpExtInst %float %glsl RoundEven %fa\n",
               [](F a, F, F) { return std::nearbyint(a); });
  auto choose = [](const std::string &op) {
    return "%t = " + op + " %bool %fa %fb\n%fr = OpSelect %float %t %f1 %f2\n";
  };
  expectFloats(choose("OpFOrdLessThan"), [](F a, F b, F) { return a < b ? 1.f : 2.f; });
  expectFloats(choose("OpFUnordLessThan"), [](F a, F b, F) { return !(a >= b) ? 1.f : 2.f; });
  expectFloats(choose("OpFOrdNotEqual"), [](F a, F b, F) { return a < b || a > b ? 1.f : 2.f; });
  expectFloats(choose("OpFUnordEqual"), [](F a, F b, F) { return !(a < b || a > b) ? 1.f : 2.f; });
  expectFloats("%t = OpIsNan %bool %fa\n%fr = OpSelect %float %t %f1 %f2\n",
               [](F a, F, F) { return std::isnan(a) ? 1.f : 2.f; });
}

TEST(Steps, conversions) {
  using F = float;
  expectFloats("%d = OpFConvert %double %fa\n%e = OpFConvert %double %fb\n"
               "%p = OpFMul %double %d %e\n%fr = OpFConvert %float %p\n",
               [](F a, F b, F) { return F(double(a) * double(b)); });
  expectFloats("%h = OpFConvert %half %fa\n%fr = OpFConvert %float %h\n",
               [](F a, F, F) { return F(_Float16(a)); });
  expectFloats("%h = OpFConvert %half %fa\n%g = OpFConvert %half %fb\n"
               "%s = OpFAdd %half %h %g\n%fr = OpFConvert %float %s\n",
               [](F a, F b, F) { return F(_Float16(_Float16(a) + _Float16(b))); });
  expectFloats("%n = OpConvertFToS %uint %fa\n%fr = OpConvertSToF %float %n\n", [](F a, F, F) {
    return std::fabs(a) < 2147483648.f ? F(int32_t(a)) : -2147483648.f;
  });
  expectInts("%f = OpConvertSToF %float %a\n%r = OpBitcast %uint %f\n",
             [](uint32_t a, uint32_t) { return std::bit_cast<uint32_t>(F(int32_t(a))); });
  expectInts("%f = OpConvertUToF %float %a\n%r = OpBitcast %uint %f\n",
             [](uint32_t a, uint32_t) { return std::bit_cast<uint32_t>(F(a)); });
}

TEST(Steps, composites) {
  using F = float;
  using U = uint32_t;
  std::string vector = "%v = OpCompositeConstruct %v2 %fa %fb\n";
  expectFloats(vector + "%ww = OpVectorTimesScalar %v2 %v %fc\n"
                        "%fr = OpCompositeExtract %float %ww 1\n",
               [](F, F b, F c) { return b * c; });
  expectFloats(vector +
                   "%ww = OpVectorShuffle %v2 %v %v 3 0\n%fr = OpCompositeExtract %float %ww 0\n",
               [](F, F b, F) { return b; });
  expectFloats(vector + "%ww = OpCompositeInsert %v2 %fc %v 0\n%xx = OpFAdd %v2 %ww %v\n"
                        "%fr = OpCompositeExtract %float %xx 0\n",
               [](F a, F, F c) { return c + a; });
  expectInts("%v = OpCompositeConstruct %v4uint %n7 %n8 %n9 %n6\n%m = OpBitwiseAnd %uint %a %n3\n"
             "%r = OpVectorExtractDynamic %uint %v %m\n",
             [](U a, U) { return std::vector<U>{7, 8, 9, 6}[a & 3]; });
  expectInts("%v = OpCompositeConstruct %v2uint %n7 %n8\n%m = OpBitwiseAnd %uint %a %n1\n"
             "%xx = OpVectorInsertDynamic %v2uint %v %b %m\n%r = OpCompositeExtract %uint %xx 0\n",
             [](U a, U b) { return a & 1 ? 7 : b; });
}

/// Private memory that is indexed at run time, of each invocation its own.
TEST(Steps, private_memory) {
  Sample sample;
  sample.addKernel({.body = load("x", "%b0", "%i") +
                            "%back = OpISub %uint %n7 %i\n%at = OpAccessChain %pcell %own %back\n"
                            "OpStore %at %x\n%again = OpAccessChain %pcell %own %back\n"
                            "%y = OpLoad %float %again\n" +
                            store("y", "%b1", "%i", "%y"),
                    .variables = "%own = OpVariable %pown Function\n",
                    .declarations =
                        "%cells = OpTypeArray %float %n8\n%pown = OpTypePointer Function %cells\n"
                        "%pcell = OpTypePointer Function %float\n"},
                   "rw");
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y})};
  SimOutcome outcome = sample.run();
  EXPECT_TRUE(outcome.reports.empty());
  EXPECT_EQ(outcome.results[0].data, sample.getInput());
}
