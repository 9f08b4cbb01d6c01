//===- PtxSteps.cpp - Arithmetic of PTX -----------------------------------===//
//
// Arithmetic as the PTX ISA defines it where SPIR-V has none, or another: shifts clamp, the NaN
// that an operation makes has one form, conversions saturate. Instructions that are approximate,
// flush denormals or round otherwise than to nearest are missing.
//
//===----------------------------------------------------------------------===//

#include "PtxSteps.h"

#include "Lanes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

using namespace weir;
using namespace weir::sim;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace {
template <typename U> struct PtxInt {
  using S = std::make_signed_t<U>;
  static constexpr uint32_t bits = sizeof(U) * 8;
  /// Shifts that may exceed the width; of 16 bits in 32, `width` is 16.
  template <uint32_t width> static U shiftLeft(U a, uint32_t b) {
    return b >= width ? 0 : U(a << b) & (~U(0) >> (bits - width));
  }
  template <uint32_t width> static U shiftRight(U a, uint32_t b) { return b >= width ? 0 : a >> b; }
  template <uint32_t width> static U shiftRightSigned(U a, uint32_t b) {
    S value = S(U(a << (bits - width))) >> (bits - width);
    return U(value >> std::min(b, width - 1));
  }
  static U abs(U a) { return S(a) < 0 ? U(0) - a : a; }
  static U isZero(U a) { return a == 0; }
  static uint32_t countBits(U a) { return uint32_t(std::popcount(a)); }
  static uint32_t countZeros(U a) { return uint32_t(std::countl_zero(a)); }
  static U reverse(U a) {
    U result = 0;
    for (uint32_t i = 0; i < bits; ++i)
      result |= (a >> i & 1) << (bits - 1 - i);
    return result;
  }
  static uint32_t findHighest(U a) { return a ? bits - 1 - uint32_t(std::countl_zero(a)) : ~0u; }
  static uint32_t findHighestSigned(U a) { return findHighest(S(a) < 0 ? ~a : a); }
  static uint32_t findShift(U a) { return a ? uint32_t(std::countl_zero(a)) : ~0u; }
  static uint32_t findShiftSigned(U a) { return findShift(S(a) < 0 ? ~a : a); }
  static U ones(uint32_t count) { return count >= bits ? ~U(0) : (U(1) << count) - 1; }
  static U extract(U a, uint32_t first, uint32_t count) {
    first &= 0xff;
    return first >= bits ? 0 : a >> first & ones(count & 0xff);
  }
  static U extractSigned(U a, uint32_t first, uint32_t count) {
    first &= 0xff, count &= 0xff;
    if (count == 0)
      return 0;
    U sign = a >> std::min(first + count - 1, bits - 1) & 1;
    uint32_t there = first >= bits ? 0 : std::min(count, bits - first);
    return (extract(a, first, count) & ones(there)) | (sign ? ~ones(there) : 0);
  }
  /// Inserts by a place that has the first bit in its low byte and the count in the next.
  static U insert(U a, U into, uint32_t place) {
    uint32_t first = place & 0xff, count = place >> 8 & 0xff;
    if (first >= bits)
      return into;
    U where = ones(count) << first;
    return (into & ~where) | (a << first & where);
  }
  static U sumOfDistance(U a, U b, U c) { return c + (a < b ? b - a : a - b); }
  static U sumOfDistanceSigned(U a, U b, U c) { return c + (S(a) < S(b) ? b - a : a - b); }
  static U mulHigh(U a, U b) { return U((unsigned __int128)a * b >> bits); }
  static U mulHighSigned(U a, U b) { return U((__int128)S(a) * S(b) >> bits); }
  static U madHigh(U a, U b, U c) { return mulHigh(a, b) + c; }
  static U madHighSigned(U a, U b, U c) { return mulHighSigned(a, b) + c; }
  static U chooseByInt(U a, U b, uint32_t c) { return int32_t(c) >= 0 ? a : b; }
  static U chooseByFloat(U a, U b, float c) { return c >= 0 ? a : b; }
};
} // namespace

static uint32_t abs16(uint32_t a) {
  return uint32_t(int16_t(a) < 0 ? uint16_t(-int16_t(a)) : uint16_t(a));
}
static uint32_t packPlace(uint32_t first, uint32_t count) {
  return (first & 0xff) | (count & 0xff) << 8;
}
static uint32_t addSaturated(uint32_t a, uint32_t b) {
  return uint32_t(std::clamp<int64_t>(int64_t(int32_t(a)) + int32_t(b), INT32_MIN, INT32_MAX));
}
static uint32_t subSaturated(uint32_t a, uint32_t b) {
  return uint32_t(std::clamp<int64_t>(int64_t(int32_t(a)) - int32_t(b), INT32_MIN, INT32_MAX));
}
template <bool isLeft, bool clamps>
static uint32_t funnel(uint32_t low, uint32_t high, uint32_t by) {
  uint64_t both = uint64_t(high) << 32 | low;
  by = clamps ? std::min(by, 32u) : by & 31;
  return isLeft ? uint32_t(both << by >> 32) : uint32_t(both >> by);
}
static uint32_t permute(uint32_t low, uint32_t high, uint32_t how) {
  uint64_t both = uint64_t(high) << 32 | low;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t each = how >> (4 * i);
    auto byte = uint8_t(both >> (8 * (each & 7)));
    if (each & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t(byte) << (8 * i);
  }
  return result;
}
static uint32_t toSigned24(uint32_t a) { return uint32_t(int32_t(a << 8) >> 8); }
template <bool isSigned> static uint32_t mul24High(uint32_t a, uint32_t b) {
  int64_t product = isSigned ? int64_t(int32_t(toSigned24(a))) * int32_t(toSigned24(b))
                             : int64_t(a & 0xffffff) * (b & 0xffffff);
  return uint32_t(product >> 16);
}
template <bool isSigned> static uint32_t mad24High(uint32_t a, uint32_t b, uint32_t c) {
  return mul24High<isSigned>(a, b) + c;
}
template <bool aIsSigned, bool bIsSigned> static uint32_t dot4(uint32_t a, uint32_t b, uint32_t c) {
  for (uint32_t i = 0; i < 32; i += 8) {
    int32_t x = aIsSigned ? int8_t(a >> i) : int32_t(a >> i & 0xff);
    int32_t y = bIsSigned ? int8_t(b >> i) : int32_t(b >> i & 0xff);
    c += uint32_t(x * y);
  }
  return c;
}
template <bool isSigned, bool clamps> static uint32_t extend(uint32_t a, uint32_t count) {
  count = clamps ? std::min(count, 32u) : count & 31;
  if (count == 0 || count == 32)
    return count ? a : 0;
  return isSigned ? uint32_t(int32_t(a << (32 - count)) >> (32 - count)) : a & ((1u << count) - 1);
}
template <bool clamps> static uint32_t makeMask(uint32_t first, uint32_t count) {
  first = clamps ? std::min(first, 32u) : first & 31;
  count = clamps ? std::min(count, 32u) : count & 31;
  return uint32_t(((uint64_t(1) << count) - 1) << first);
}

static void runTable(Subgroup &subgroup, const Step &step) {
  auto *to = subgroup.at<uint32_t>(step.to);
  const auto *a = subgroup.at<uint32_t>(step.a), *b = subgroup.at<uint32_t>(step.b),
             *c = subgroup.at<uint32_t>(step.c);
  subgroup.forEachLane([&](uint32_t lane) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 8; ++i)
      if (step.number >> i & 1)
        result |= (i & 4 ? a[lane] : ~a[lane]) & (i & 2 ? b[lane] : ~b[lane]) &
                  (i & 1 ? c[lane] : ~c[lane]);
    to[lane] = result;
  });
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// Returns a number, or the NaN that PTX's operations make.
template <typename F> static F canon(F a) {
  if constexpr (sizeof(F) == 4)
    return a == a ? a : std::bit_cast<float>(0x7fffffffu);
  else
    return a == a ? a : std::bit_cast<double>(0x7fffffffffffffffull);
}

/// Returns the sum rounded to odd, so that rounding it again to fewer bits rounds once.
static double addToOdd(double a, double b) {
  double sum = a + b, back = sum - a, rest = (a - (sum - back)) + (b - back);
  if (rest == 0 || !std::isfinite(sum) || std::bit_cast<uint64_t>(sum) & 1)
    return sum;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(sum) +
                               ((rest > 0) == (sum > 0) ? uint64_t(1) : ~uint64_t(0)));
}

static float toOddFloat(double number) {
  auto rounded = float(number);
  auto bits = std::bit_cast<uint32_t>(rounded);
  if (double(rounded) == number || number != number || bits & 1)
    return rounded;
  return std::bit_cast<float>(std::fabs(double(rounded)) > std::fabs(number) ? bits - 1 : bits | 1);
}

namespace {
struct Half {
  static double load(uint32_t bits) { return double(std::bit_cast<_Float16>(uint16_t(bits))); }
  static uint32_t store(double number) {
    return number != number ? 0x7fff : std::bit_cast<uint16_t>(_Float16(number));
  }
};

struct BHalf {
  static double load(uint32_t bits) { return double(std::bit_cast<float>(bits << 16)); }
  static uint32_t store(double number) {
    auto bits = std::bit_cast<uint32_t>(toOddFloat(number));
    return number != number ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
};

/// Operations on floats in registers.
template <typename F> struct PtxFloat {
  static F add(F a, F b) { return canon(a + b); }
  static F sub(F a, F b) { return canon(a - b); }
  static F mul(F a, F b) { return canon(a * b); }
  static F div(F a, F b) { return canon(a / b); }
  static F fma(F a, F b, F c) { return canon(std::fma(a, b, c)); }
  static F rcp(F a) { return canon(F(1) / a); }
  static F sqrt(F a) { return canon(std::sqrt(a)); }
  static F negate(F a) { return -a; }
  static F abs(F a) { return std::fabs(a); }
  // -0 is less than 0.
  static F min(F a, F b) {
    F less = a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
    return canon(a != a ? b : b != b ? a : less);
  }
  static F max(F a, F b) {
    F more = a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
    return canon(a != a ? b : b != b ? a : more);
  }
  static F minNan(F a, F b) { return a != a || b != b ? canon(F(NAN)) : min(a, b); }
  static F maxNan(F a, F b) { return a != a || b != b ? canon(F(NAN)) : max(a, b); }
  static F withSign(F sign, F a) { return std::copysign(a, sign); }
  static F roundEven(F a) { return canon(std::nearbyint(a)); }
  static F trunc(F a) { return canon(std::trunc(a)); }
  static F floor(F a) { return canon(std::floor(a)); }
  static F ceil(F a) { return canon(std::ceil(a)); }
  static uint32_t eq(F a, F b) { return a == b; }
  static uint32_t ne(F a, F b) { return a < b || a > b; }
  static uint32_t lt(F a, F b) { return a < b; }
  static uint32_t le(F a, F b) { return a <= b; }
  static uint32_t gt(F a, F b) { return a > b; }
  static uint32_t ge(F a, F b) { return a >= b; }
  static uint32_t equ(F a, F b) { return !(a < b || a > b); }
  static uint32_t neu(F a, F b) { return !(a == b); }
  static uint32_t ltu(F a, F b) { return !(a >= b); }
  static uint32_t leu(F a, F b) { return !(a > b); }
  static uint32_t gtu(F a, F b) { return !(a <= b); }
  static uint32_t geu(F a, F b) { return !(a < b); }
  static uint32_t num(F a, F b) { return a == a && b == b; }
  static uint32_t nan(F a, F b) { return a != a || b != b; }
  static uint32_t isFinite(F a) { return std::isfinite(a); }
  static uint32_t isInfinite(F a) { return std::isinf(a); }
  static uint32_t isNumber(F a) { return a == a; }
  static uint32_t isNan(F a) { return a != a; }
  static uint32_t isNormal(F a) { return std::isnormal(a); }
  static uint32_t isSubnormal(F a) { return std::fpclassify(a) == FP_SUBNORMAL; }
};

/// Operations on one or two floats of 16 bits in a register.
template <typename T, uint32_t count> struct Short {
  template <typename Operation> static uint32_t each(Operation operation) {
    uint32_t result = 0;
    for (uint32_t at = 0; at < 16 * count; at += 16)
      result |= (operation(at) & 0xffff) << at;
    return result;
  }
  template <double (*operation)(double, double)> static uint32_t apply(uint32_t a, uint32_t b) {
    return each([&](uint32_t at) {
      return T::store(operation(T::load(a >> at & 0xffff), T::load(b >> at & 0xffff)));
    });
  }
  static constexpr auto add = apply<PtxFloat<double>::add>;
  static constexpr auto sub = apply<PtxFloat<double>::sub>;
  static constexpr auto mul = apply<PtxFloat<double>::mul>;
  static constexpr auto min = apply<PtxFloat<double>::min>;
  static constexpr auto max = apply<PtxFloat<double>::max>;
  static constexpr auto minNan = apply<PtxFloat<double>::minNan>;
  static constexpr auto maxNan = apply<PtxFloat<double>::maxNan>;
  static uint32_t fma(uint32_t a, uint32_t b, uint32_t c) {
    return each([&](uint32_t at) {
      double product = T::load(a >> at & 0xffff) * T::load(b >> at & 0xffff);
      return T::store(addToOdd(product, T::load(c >> at & 0xffff)));
    });
  }
  static uint32_t negate(uint32_t a) { return a ^ (count == 2 ? 0x80008000u : 0x8000u); }
  static uint32_t abs(uint32_t a) { return a & (count == 2 ? 0x7fff7fffu : 0x7fffu); }
  template <uint32_t (*operation)(double, double)> static uint32_t compare(uint32_t a, uint32_t b) {
    return operation(T::load(a), T::load(b));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static double fromFloat(float a) { return canon(double(a)); }
static float toFloat(double a) { return canon(float(a)); }
template <typename T> static double fromShort(uint32_t a) { return canon(T::load(a)); }
template <typename T> static float floatFromShort(uint32_t a) { return canon(float(T::load(a))); }
template <typename T> static uint32_t toShort(double a) { return T::store(a); }
template <typename T> static uint32_t shortFromFloat(float a) { return T::store(double(a)); }
template <typename T> static uint32_t toShorts(float high, float low) {
  return T::store(double(high)) << 16 | T::store(double(low));
}
/// Rounds to 10 bits of fraction, halves away from zero.
static uint32_t toTf32(float a) {
  auto bits = std::bit_cast<uint32_t>(a);
  if (a != a)
    return 0x7fffffff;
  return std::isinf(a) ? bits : (bits + 0x1000) & ~0x1fffu;
}
static float fromS32(uint32_t a) { return float(int32_t(a)); }
static float fromU32(uint32_t a) { return float(a); }
static float fromS64(uint64_t a) { return float(int64_t(a)); }
static float fromU64(uint64_t a) { return float(a); }
static double doubleFromS64(uint64_t a) { return double(int64_t(a)); }
static double doubleFromU64(uint64_t a) { return double(a); }

namespace {
/// An integer type, in the immediate of a step: its bits, and from bit 8 on, whether it is signed
/// and the rounding.
enum class Rounding { Even, Zero, Down, Up };

int64_t packConversion(uint32_t bits, bool isSigned, Rounding rounding) {
  return int64_t(bits) | int64_t(isSigned) << 8 | int64_t(rounding) << 9;
}
} // namespace

/// Rounds an f64 to an integer, saturated; a NaN gives 0.
static void runToInteger(Subgroup &subgroup, const Step &step) {
  auto *to = subgroup.at<uint64_t>(step.to);
  const auto *from = subgroup.at<double>(step.a);
  const auto bits = uint32_t(step.number & 0xff);
  const bool isSigned = step.number >> 8 & 1;
  const auto rounding = Rounding(step.number >> 9);
  subgroup.forEachLane([&](uint32_t lane) {
    double a = from[lane];
    a = rounding == Rounding::Even   ? std::nearbyint(a)
        : rounding == Rounding::Zero ? std::trunc(a)
        : rounding == Rounding::Down ? std::floor(a)
                                     : std::ceil(a);
    const double limit = std::ldexp(1.0, int(bits - isSigned));
    const uint64_t max = ~uint64_t(0) >> (64 - bits + isSigned);
    if (a != a)
      to[lane] = 0;
    else if (a >= limit)
      to[lane] = max;
    else if (isSigned)
      to[lane] = a < -limit ? ~max : uint64_t(int64_t(a));
    else
      to[lane] = a < 0 ? 0 : uint64_t(a);
  });
}

/// Saturates an integer of 64 bits to a shorter type. From bit 16 of the immediate on: whether
/// the operand is signed.
static void runSaturate(Subgroup &subgroup, const Step &step) {
  auto *to = subgroup.at<uint64_t>(step.to);
  const auto *from = subgroup.at<uint64_t>(step.a);
  const auto bits = uint32_t(step.number & 0xff);
  const bool isSigned = step.number >> 8 & 1, fromSigned = step.number >> 16 & 1;
  const uint64_t max = ~uint64_t(0) >> (64 - bits + isSigned);
  subgroup.forEachLane([&](uint32_t lane) {
    uint64_t a = from[lane];
    if (fromSigned && int64_t(a) < 0)
      to[lane] = !isSigned ? 0 : int64_t(a) < int64_t(~max) ? ~max : a;
    else
      to[lane] = std::min(a, max);
  });
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

template <auto function> static NamedStep make() {
  using S = Signature<function>;
  NamedStep step;
  step.run = apply<function>;
  step.resultBits = sizeof(typename S::Result) * 8;
  if constexpr (S::arity > 0)
    step.bits.push_back(sizeof(typename S::template Argument<0>) * 8);
  if constexpr (S::arity > 1)
    step.bits.push_back(sizeof(typename S::template Argument<1>) * 8);
  if constexpr (S::arity > 2)
    step.bits.push_back(sizeof(typename S::template Argument<2>) * 8);
  return step;
}

namespace {
/// The parts of a name, "fma", "rn", "f32".
class Name {
public:
  explicit Name(std::string_view text) {
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = std::min(text.find('.', begin), text.size());
      parts.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    head = parts.front();
    type = parts.size() > 1 ? parts.back() : "";
  }
  /// Takes a part out of the middle; returns whether it is there.
  bool take(std::string_view part) {
    for (size_t i = 1; i + 1 < parts.size(); ++i)
      if (parts[i] == part) {
        parts.erase(parts.begin() + int64_t(i));
        return true;
      }
    return false;
  }
  bool isPlain() const { return parts.size() == 2; } ///< head and type are left

  std::vector<std::string_view> parts;
  std::string_view head, type;
};
} // namespace

template <typename F> static NamedStep findFloat(Name &name, std::string_view head) {
  using T = PtxFloat<F>;
  bool isRounded = name.take("rn"), isNan = name.take("NaN");
  if (head == "testp") {
    std::string_view what = name.parts.size() == 3 ? name.parts[1] : "";
    return what == "finite"       ? make<T::isFinite>()
           : what == "infinite"   ? make<T::isInfinite>()
           : what == "number"     ? make<T::isNumber>()
           : what == "notanumber" ? make<T::isNan>()
           : what == "normal"     ? make<T::isNormal>()
           : what == "subnormal"  ? make<T::isSubnormal>()
                                  : NamedStep();
  }
  if (!name.isPlain() || (isNan && head != "min" && head != "max"))
    return {};
  if (head == "add" || head == "sub" || head == "mul")
    return head == "add" ? make<T::add>() : head == "sub" ? make<T::sub>() : make<T::mul>();
  if (isRounded)
    return head == "fma" || head == "mad" ? make<T::fma>()
           : head == "div"                ? make<T::div>()
           : head == "rcp"                ? make<T::rcp>()
           : head == "sqrt"               ? make<T::sqrt>()
                                          : NamedStep();
  return head == "neg"        ? make<T::negate>()
         : head == "abs"      ? make<T::abs>()
         : head == "min"      ? (isNan ? make<T::minNan>() : make<T::min>())
         : head == "max"      ? (isNan ? make<T::maxNan>() : make<T::max>())
         : head == "copysign" ? make<T::withSign>()
                              : NamedStep();
}

template <typename T> static NamedStep findShort(Name &name) {
  bool isRounded = name.take("rn"), isNan = name.take("NaN");
  if (!name.isPlain() || (isNan && name.head != "min" && name.head != "max"))
    return {};
  return name.head == "add"                ? make<T::add>()
         : name.head == "sub"              ? make<T::sub>()
         : name.head == "mul"              ? make<T::mul>()
         : name.head == "fma" && isRounded ? make<T::fma>()
         : isRounded                       ? NamedStep()
         : name.head == "neg"              ? make<T::negate>()
         : name.head == "abs"              ? make<T::abs>()
         : name.head == "min"              ? (isNan ? make<T::minNan>() : make<T::min>())
         : name.head == "max"              ? (isNan ? make<T::maxNan>() : make<T::max>())
                                           : NamedStep();
}

/// Finds a comparison. `Get` gives the step of a comparison of doubles or of floats.
template <typename Get> static NamedStep findComparison(std::string_view how, Get get) {
  using T = PtxFloat<double>;
  using S = PtxFloat<float>;
#define WEIR_COMPARE(name)                                                                         \
  if (how == #name)                                                                                \
    return get.template operator()<T::name, S::name>();
  WEIR_COMPARE(eq)
  WEIR_COMPARE(ne)
  WEIR_COMPARE(lt)
  WEIR_COMPARE(le)
  WEIR_COMPARE(gt)
  WEIR_COMPARE(ge)
  WEIR_COMPARE(equ)
  WEIR_COMPARE(neu)
  WEIR_COMPARE(ltu)
  WEIR_COMPARE(leu)
  WEIR_COMPARE(gtu)
  WEIR_COMPARE(geu)
  WEIR_COMPARE(num)
  WEIR_COMPARE(nan)
#undef WEIR_COMPARE
  return {};
}

static NamedStep findSetp(Name &name) {
  if (name.parts.size() != 3)
    return {};
  std::string_view how = name.parts[1];
  if (name.type == "f64")
    return findComparison(how, []<auto wide, auto single>() { return make<wide>(); });
  if (name.type == "f32")
    return findComparison(how, []<auto wide, auto single>() { return make<single>(); });
  if (name.type == "f16")
    return findComparison(
        how, []<auto wide, auto single>() { return make<Short<Half, 1>::compare<wide>>(); });
  if (name.type == "bf16")
    return findComparison(
        how, []<auto wide, auto single>() { return make<Short<BHalf, 1>::compare<wide>>(); });
  return {};
}

/// Returns the bits of an integer type "s32", 0 if it is none.
static uint32_t getIntegerBits(std::string_view type) {
  if (type.size() < 2 || (type[0] != 's' && type[0] != 'u' && type[0] != 'b'))
    return 0;
  for (auto [text, bits] : {std::pair("8", 8u), {"16", 16u}, {"32", 32u}, {"64", 64u}})
    if (type.substr(1) == text)
      return bits;
  return 0;
}

/// Finds a conversion. The operand of one to an integer, and of one of a wide integer, has 64 bits;
/// the decoder makes it so.
static NamedStep findConversion(Name &name) {
  if (name.parts.size() < 3)
    return {};
  std::string_view to = name.parts[name.parts.size() - 2], from = name.type;
  std::string_view how = name.parts.size() == 4 ? name.parts[1] : "";
  if (name.parts.size() > 4)
    return {};
  const uint32_t toBits = getIntegerBits(to), fromBits = getIntegerBits(from);
  const bool toSigned = to[0] == 's', fromSigned = from[0] == 's', isNearest = how == "rn";
  if (toBits && fromBits) {
    if (how != "sat")
      return {};
    NamedStep step{runSaturate, 64, {64}, toSigned};
    step.number = packConversion(toBits, toSigned, Rounding::Even) | int64_t(fromSigned) << 16;
    return step;
  }
  if (toBits) {
    std::optional<Rounding> rounding;
    for (auto [text, each] : {std::pair("rni", Rounding::Even),
                              {"rzi", Rounding::Zero},
                              {"rmi", Rounding::Down},
                              {"rpi", Rounding::Up}})
      if (how == text)
        rounding = each;
    if (!rounding)
      return {};
    return {runToInteger, 64, {64}, toSigned, packConversion(toBits, toSigned, *rounding)};
  }
  if (fromBits) {
    if (!isNearest || (fromBits == 64 && to != "f32" && to != "f64"))
      return {};
    if (to == "f32" && fromBits == 32)
      return fromSigned ? make<fromS32>() : make<fromU32>();
    return to == "f32"    ? (fromSigned ? make<fromS64>() : make<fromU64>())
           : to == "f64"  ? (fromSigned ? make<doubleFromS64>() : make<doubleFromU64>())
           : to == "f16"  ? make<toShort<Half>>()
           : to == "bf16" ? make<toShort<BHalf>>()
                          : NamedStep();
  }
  if (to == from && (to == "f32" || to == "f64")) {
    const bool isWide = to == "f64";
    return how == "rni"
               ? (isWide ? make<PtxFloat<double>::roundEven>() : make<PtxFloat<float>::roundEven>())
           : how == "rzi"
               ? (isWide ? make<PtxFloat<double>::trunc>() : make<PtxFloat<float>::trunc>())
           : how == "rmi"
               ? (isWide ? make<PtxFloat<double>::floor>() : make<PtxFloat<float>::floor>())
           : how == "rpi"
               ? (isWide ? make<PtxFloat<double>::ceil>() : make<PtxFloat<float>::ceil>())
               : NamedStep();
  }
  if (how.empty())
    return to == "f64" && from == "f32"    ? make<fromFloat>()
           : to == "f64" && from == "f16"  ? make<fromShort<Half>>()
           : to == "f64" && from == "bf16" ? make<fromShort<BHalf>>()
           : to == "f32" && from == "f16"  ? make<floatFromShort<Half>>()
           : to == "f32" && from == "bf16" ? make<floatFromShort<BHalf>>()
                                           : NamedStep();
  if (to == "tf32" && from == "f32" && how == "rna")
    return make<toTf32>();
  if (!isNearest)
    return {};
  if (from == "f64")
    return to == "f32"    ? make<toFloat>()
           : to == "f16"  ? make<toShort<Half>>()
           : to == "bf16" ? make<toShort<BHalf>>()
                          : NamedStep();
  if (from != "f32")
    return {};
  return to == "f16"      ? make<shortFromFloat<Half>>()
         : to == "bf16"   ? make<shortFromFloat<BHalf>>()
         : to == "f16x2"  ? make<toShorts<Half>>()
         : to == "bf16x2" ? make<toShorts<BHalf>>()
                          : NamedStep();
}

template <typename U> static NamedStep findInteger(Name &name, bool isSigned) {
  using I = PtxInt<U>;
  const bool isHigh = name.take("hi"), isShiftAmount = name.take("shiftamt");
  std::string_view head = name.head;
  if (!name.isPlain())
    return {};
  if (isHigh)
    return head == "mul"   ? (isSigned ? make<I::mulHighSigned>() : make<I::mulHigh>())
           : head == "mad" ? (isSigned ? make<I::madHighSigned>() : make<I::madHigh>())
                           : NamedStep();
  if (isShiftAmount)
    return head != "bfind" ? NamedStep()
           : isSigned      ? make<I::findShiftSigned>()
                           : make<I::findShift>();
  return head == "shl"               ? make<I::template shiftLeft<I::bits>>()
         : head == "shr"             ? (isSigned ? make<I::template shiftRightSigned<I::bits>>()
                                                 : make<I::template shiftRight<I::bits>>())
         : head == "abs" && isSigned ? make<I::abs>()
         : head == "cnot"            ? make<I::isZero>()
         : head == "popc"            ? make<I::countBits>()
         : head == "clz"             ? make<I::countZeros>()
         : head == "brev"            ? make<I::reverse>()
         : head == "bfind" ? (isSigned ? make<I::findHighestSigned>() : make<I::findHighest>())
         : head == "bfe"   ? (isSigned ? make<I::extractSigned>() : make<I::extract>())
         : head == "bfi"   ? make<I::insert>()
         : head == "sad"   ? (isSigned ? make<I::sumOfDistanceSigned>() : make<I::sumOfDistance>())
                           : NamedStep();
}

/// Finds instructions that have their own ways to write a name.
static NamedStep findSpecial(Name &name, const std::string &text) {
  using I = PtxInt<uint32_t>;
  using L = PtxInt<uint64_t>;
  struct Known {
    std::string_view name;
    NamedStep step;
  };
  static const Known known[] = {{"shl.b16", make<I::shiftLeft<16>>()},
                                {"shr.u16", make<I::shiftRight<16>>()},
                                {"shr.b16", make<I::shiftRight<16>>()},
                                {"shr.s16", make<I::shiftRightSigned<16>>()},
                                {"abs.s16", make<abs16>()},
                                {"bfi.place", make<packPlace>()},
                                {"add.sat.s32", make<addSaturated>()},
                                {"sub.sat.s32", make<subSaturated>()},
                                {"prmt.b32", make<permute>()},
                                {"shf.l.clamp.b32", make<funnel<true, true>>()},
                                {"shf.l.wrap.b32", make<funnel<true, false>>()},
                                {"shf.r.clamp.b32", make<funnel<false, true>>()},
                                {"shf.r.wrap.b32", make<funnel<false, false>>()},
                                {"lop3.b32", {runTable, 32, {32, 32, 32}, false, 0, 1}},
                                {"mul24.hi.u32", make<mul24High<false>>()},
                                {"mul24.hi.s32", make<mul24High<true>>()},
                                {"mad24.hi.u32", make<mad24High<false>>()},
                                {"mad24.hi.s32", make<mad24High<true>>()},
                                {"dp4a.u32.u32", make<dot4<false, false>>()},
                                {"dp4a.s32.u32", make<dot4<true, false>>()},
                                {"dp4a.u32.s32", make<dot4<false, true>>()},
                                {"dp4a.s32.s32", make<dot4<true, true>>()},
                                {"szext.clamp.u32", make<extend<false, true>>()},
                                {"szext.wrap.u32", make<extend<false, false>>()},
                                {"szext.clamp.s32", make<extend<true, true>>()},
                                {"szext.wrap.s32", make<extend<true, false>>()},
                                {"bmsk.clamp.b32", make<makeMask<true>>()},
                                {"bmsk.wrap.b32", make<makeMask<false>>()}};
  for (const Known &each : known)
    if (each.name == text)
      return each.step;
  if (name.head == "slct" && name.parts.size() == 3) {
    std::string_view type = name.parts[1];
    const bool isWide = type.ends_with("64"), byFloat = name.type == "f32";
    if (!isWide && !type.ends_with("32"))
      return {};
    if (byFloat)
      return isWide ? make<L::chooseByFloat>() : make<I::chooseByFloat>();
    return isWide ? make<L::chooseByInt>() : make<I::chooseByInt>();
  }
  return {};
}

NamedStep sim::findNamedStep(const std::string &text) {
  Name name(text);
  if (NamedStep special = findSpecial(name, text); special.run)
    return special;
  if (name.head == "cvt")
    return findConversion(name);
  if (name.head == "setp")
    return findSetp(name);
  if (name.type == "f32")
    return findFloat<float>(name, name.head);
  if (name.type == "f64")
    return findFloat<double>(name, name.head);
  if (name.type == "f16")
    return findShort<Short<Half, 1>>(name);
  if (name.type == "f16x2")
    return findShort<Short<Half, 2>>(name);
  if (name.type == "bf16")
    return findShort<Short<BHalf, 1>>(name);
  if (name.type == "bf16x2")
    return findShort<Short<BHalf, 2>>(name);
  const uint32_t bits = getIntegerBits(name.type);
  const bool isSigned = !name.type.empty() && name.type[0] == 's';
  if (bits == 32)
    return findInteger<uint32_t>(name, isSigned);
  return bits == 64 ? findInteger<uint64_t>(name, isSigned) : NamedStep();
}
