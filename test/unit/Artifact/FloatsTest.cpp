//===- FloatsTest.cpp - Elements of 16 bits -------------------------------===//

#include "weir/Artifact/Floats.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace weir;

static Tensor makeTensor(const DType &dtype, const std::vector<uint16_t> &bits) {
  Tensor tensor{{"x", dtype, {int64_t(bits.size())}, "", false}, Bytes(bits.size() * 2)};
  std::memcpy(tensor.data.data(), bits.data(), tensor.data.size());
  return tensor;
}

static uint16_t round(const DType &dtype, double value) {
  Tensor tensor = makeTensor(dtype, {0});
  setFloat(tensor, 0, value);
  uint16_t bits;
  std::memcpy(&bits, tensor.data.data(), 2);
  return bits;
}

static double read(const DType &dtype, uint16_t bits) {
  return getFloat(makeTensor(dtype, {bits}), 0);
}

TEST(Floats, values) {
  EXPECT_EQ(read("F16", 0x3c00), 1);
  EXPECT_EQ(read("F16", 0xc000), -2);
  EXPECT_EQ(read("F16", 0x7bff), 65504);
  EXPECT_EQ(read("F16", 0x0001), 0x1p-24);
  EXPECT_EQ(read("F16", 0x7c00), INFINITY);
  EXPECT_TRUE(std::isnan(read("F16", 0x7e01)));
  EXPECT_EQ(read("BF16", 0x3f80), 1);
  EXPECT_EQ(read("BF16", 0xff80), -INFINITY);
  EXPECT_EQ(read("BF16", 0x0001), 0x1p-133);
  EXPECT_EQ(read("BF16", 0x7f7f), 0x1.fep127);
}

TEST(Floats, all_come_back) {
  for (const char *dtype : {"F16", "BF16"})
    for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
      double value = read(dtype, uint16_t(bits));
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(read(dtype, round(dtype, value)))) << bits;
      else
        ASSERT_EQ(round(dtype, value), bits) << dtype;
    }
}

/// Rounds to the nearest neighbour, in the middle to the even one.
TEST(Floats, rounds_to_the_nearest) {
  for (const char *dtype : {"F16", "BF16"}) {
    uint32_t infinity = *dtype == 'F' ? 0x7c00 : 0x7f80;
    for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
      double low = read(dtype, uint16_t(bits)), high = read(dtype, uint16_t(bits + 1));
      double middle = (low + high) / 2;
      ASSERT_EQ(round(dtype, middle), bits + bits % 2) << dtype << " " << bits;
      ASSERT_EQ(round(dtype, std::nextafter(middle, low)), bits) << dtype << " " << bits;
      ASSERT_EQ(round(dtype, std::nextafter(middle, high)), bits + 1) << dtype << " " << bits;
      ASSERT_EQ(round(dtype, -middle), (bits + bits % 2) | 0x8000) << dtype << " " << bits;
    }
  }
  EXPECT_EQ(round("F16", 65519.99), 0x7bff);
  EXPECT_EQ(round("F16", 65520), 0x7c00);
  EXPECT_EQ(round("F16", 1e300), 0x7c00);
  EXPECT_EQ(round("BF16", 0x1.fefp127), 0x7f7f);
  EXPECT_EQ(round("BF16", 0x1.ffp127), 0x7f80);
  EXPECT_EQ(round("F16", -0.0), 0x8000);
}

TEST(Floats, conversion) {
  Tensor half = makeTensor("F16", {0x3c00, 0xc000, 0x7c00});
  Tensor wide = convertFloats(half, "F64");
  EXPECT_EQ(wide.spec.dtype, "F64");
  ASSERT_EQ(wide.data.size(), 24u);
  EXPECT_EQ(getFloat(wide, 1), -2);
  EXPECT_EQ(convertFloats(wide, "F16").data, half.data);
  EXPECT_FALSE(isFloat("I16"));
  EXPECT_TRUE(isFloat("BF16"));
}
