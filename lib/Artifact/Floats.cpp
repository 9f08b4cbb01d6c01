//===- Floats.cpp - Elements of all float types as f64 --------------------===//

#include "weir/Artifact/Floats.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace weir;

namespace {
/// A binary format of IEEE 754-2019, section 3.4; `minExponent` is that of normal numbers.
struct Format {
  int fractionBits, minExponent;

  int getMaxExponent() const { return 1 - minExponent; }
  /// Returns the exponent bits of infinities and NaNs, all set.
  uint32_t getSpecial() const {
    return uint32_t(getMaxExponent() - minExponent + 2) << fractionBits;
  }
};
} // namespace

static Format getFormat(const DType &dtype) {
  return dtype == "F16" ? Format{10, -14} : Format{7, -126};
}

static double decode(const Format &format, uint16_t bits) {
  uint32_t size = bits & 0x7fff, fraction = size & ((1u << format.fractionBits) - 1);
  double value;
  if (size >= format.getSpecial())
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (int exponent = int(size >> format.fractionBits))
    value = std::ldexp(1 + std::ldexp(fraction, -format.fractionBits),
                       exponent - 1 + format.minExponent);
  else
    value = std::ldexp(fraction, format.minExponent - format.fractionBits);
  return bits & 0x8000 ? -value : value;
}

static uint16_t encode(const Format &format, double value) {
  uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return uint16_t(sign | format.getSpecial() | 1u << (format.fractionBits - 1));
  double size = std::abs(value);
  int exponent = size > 0 && std::isfinite(size) ? std::ilogb(size) : format.minExponent;
  exponent = std::max(exponent, format.minExponent);
  // In units of the last place. A carry into the exponent gives the correct next binade.
  double units = std::nearbyint(std::ldexp(size, format.fractionBits - exponent));
  if (!(std::ldexp(units, exponent - format.fractionBits) <
        std::ldexp(1.0, format.getMaxExponent() + 1)))
    return uint16_t(sign | format.getSpecial());
  return uint16_t(sign | (uint32_t(exponent - format.minExponent) << format.fractionBits) +
                             uint32_t(units));
}

bool weir::isFloat(const DType &dtype) {
  return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

int weir::getDigits(const DType &dtype) {
  return dtype == "F64" ? 15 : dtype == "F32" ? 7 : dtype == "F16" ? 5 : 4;
}

template <typename Number> static Number load(const Tensor &tensor, size_t index) {
  Number number;
  std::memcpy(&number, tensor.data.data() + index * sizeof(Number), sizeof(Number));
  return number;
}

template <typename Number> static void store(Tensor &tensor, size_t index, Number number) {
  std::memcpy(tensor.data.data() + index * sizeof(Number), &number, sizeof(Number));
}

double weir::getFloat(const Tensor &tensor, size_t index) {
  const DType &dtype = tensor.spec.dtype;
  if (dtype == "F64")
    return load<double>(tensor, index);
  if (dtype == "F32")
    return load<float>(tensor, index);
  return decode(getFormat(dtype), load<uint16_t>(tensor, index));
}

void weir::setFloat(Tensor &tensor, size_t index, double value) {
  const DType &dtype = tensor.spec.dtype;
  if (dtype == "F64")
    store<double>(tensor, index, value);
  else if (dtype == "F32")
    store<float>(tensor, index, float(value));
  else
    store<uint16_t>(tensor, index, encode(getFormat(dtype), value));
}

Tensor weir::convertFloats(const Tensor &tensor, const DType &dtype) {
  Tensor converted{tensor.spec, {}};
  converted.spec.dtype = dtype;
  converted.data.resize(size_t(getByteSize(converted.spec)));
  size_t count = tensor.data.size() / size_t(getDTypeBytes(tensor.spec.dtype));
  for (size_t i = 0; i < count; ++i)
    setFloat(converted, i, getFloat(tensor, i));
  return converted;
}
