//===- Steps.cpp - Arithmetic of lanes ------------------------------------===//
//
// Arithmetic as on lavapipe, with which results are compared: IEEE with rounding to nearest and
// denormals, shifts by the low bits of the count, wrapping integers. Operations that the
// specification leaves undefined have one fixed result.
//
// clang-format off: one operation a line
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include "Lanes.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace weir;
using namespace weir::sim;
using spv::Glsl;
using spv::Op;

//===----------------------------------------------------------------------===//
// Scalar operations
//===----------------------------------------------------------------------===//

namespace {
/// Operations on 32- and 64-bit integers in registers.
template <typename U> struct Int {
  using S = std::make_signed_t<U>;
  static constexpr U bits = sizeof(U) * 8;
  static U add(U a, U b) { return a + b; }
  static U sub(U a, U b) { return a - b; }
  static U mul(U a, U b) { return a * b; }
  // Division by 0 gives all ones, its remainder too.
  static U udiv(U a, U b) { return b ? a / b : ~U(0); }
  static U umod(U a, U b) { return b ? a % b : ~U(0); }
  static U sdiv(U a, U b) { return b == 0 ? ~U(0) : b == ~U(0) ? U(0) - a : U(S(a) / S(b)); }
  static U srem(U a, U b) { return b == 0 ? ~U(0) : b == ~U(0) ? 0 : U(S(a) % S(b)); }
  static U smod(U a, U b) {
    U rest = srem(a, b);
    return b != 0 && rest != 0 && (S(rest) < 0) != (S(b) < 0) ? rest + b : rest;
  }
  static U negate(U a) { return U(0) - a; }
  static U bitNot(U a) { return ~a; }
  static U bitAnd(U a, U b) { return a & b; }
  static U bitOr(U a, U b) { return a | b; }
  static U bitXor(U a, U b) { return a ^ b; }
  static U shiftLeft(U a, U b) { return a << (b & (bits - 1)); }
  static U shiftRight(U a, U b) { return a >> (b & (bits - 1)); }
  static U shiftRightSigned(U a, U b) { return U(S(a) >> (b & (bits - 1))); }
  static uint32_t eq(U a, U b) { return a == b; }
  static uint32_t ne(U a, U b) { return a != b; }
  static uint32_t ult(U a, U b) { return a < b; }
  static uint32_t ule(U a, U b) { return a <= b; }
  static uint32_t ugt(U a, U b) { return a > b; }
  static uint32_t uge(U a, U b) { return a >= b; }
  static uint32_t slt(U a, U b) { return S(a) < S(b); }
  static uint32_t sle(U a, U b) { return S(a) <= S(b); }
  static uint32_t sgt(U a, U b) { return S(a) > S(b); }
  static uint32_t sge(U a, U b) { return S(a) >= S(b); }
  static U umin(U a, U b) { return a < b ? a : b; }
  static U umax(U a, U b) { return a > b ? a : b; }
  static U smin(U a, U b) { return S(a) < S(b) ? a : b; }
  static U smax(U a, U b) { return S(a) > S(b) ? a : b; }
  static U uclamp(U a, U low, U high) { return umin(umax(a, low), high); }
  static U sclamp(U a, U low, U high) { return smin(smax(a, low), high); }
  static U sabs(U a) { return S(a) < 0 ? U(0) - a : a; }
  static U ssign(U a) { return S(a) < 0 ? ~U(0) : U(a != 0); }
  static U countBits(U a) { return U(std::popcount(a)); }
  static U findLsb(U a) { return a ? U(std::countr_zero(a)) : ~U(0); }
  static U findUMsb(U a) { return a ? bits - 1 - U(std::countl_zero(a)) : ~U(0); }
  static U findSMsb(U a) { return findUMsb(S(a) < 0 ? ~a : a); }
  static U reverse(U a) {
    U result = 0;
    for (U i = 0; i < bits; ++i)
      result |= (a >> i & 1) << (bits - 1 - i);
    return result;
  }
  static U addCarry(U a, U b) { return U(a + b) < a; }
  static U subBorrow(U a, U b) { return a < b; }
  static U umulHigh(U a, U b) { return U((unsigned __int128)a * b >> bits); }
  static U smulHigh(U a, U b) { return U((__int128)S(a) * S(b) >> bits); }
};

template <typename F> struct Float {
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F rem(F a, F b) { return std::fmod(a, b); }
  static F mod(F a, F b) {
    F rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  static F negate(F a) { return -a; }
  static F fma(F a, F b, F c) { return std::fma(a, b, c); }
  static uint32_t isNan(F a) { return a != a; }
  static uint32_t isInf(F a) { return std::isinf(a); }
  static uint32_t ordEq(F a, F b) { return a == b; }
  static uint32_t ordNe(F a, F b) { return a < b || a > b; }
  static uint32_t ordLt(F a, F b) { return a < b; }
  static uint32_t ordLe(F a, F b) { return a <= b; }
  static uint32_t ordGt(F a, F b) { return a > b; }
  static uint32_t ordGe(F a, F b) { return a >= b; }
  static uint32_t unordEq(F a, F b) { return !(a < b || a > b); }
  static uint32_t unordNe(F a, F b) { return !(a == b); }
  static uint32_t unordLt(F a, F b) { return !(a >= b); }
  static uint32_t unordLe(F a, F b) { return !(a > b); }
  static uint32_t unordGt(F a, F b) { return !(a <= b); }
  static uint32_t unordGe(F a, F b) { return !(a < b); }
  static F abs(F a) { return std::fabs(a); }
  static F sign(F a) { return a > 0 ? F(1) : a < 0 ? F(-1) : F(0); }
  static F floor(F a) { return std::floor(a); }
  static F ceil(F a) { return std::ceil(a); }
  static F trunc(F a) { return std::trunc(a); }
  static F roundEven(F a) { return std::nearbyint(a); }
  static F fract(F a) { return a - std::floor(a); }
  static F sqrt(F a) { return std::sqrt(a); }
  static F inverseSqrt(F a) { return F(1) / std::sqrt(a); }
  static F sin(F a) { return std::sin(a); }
  static F cos(F a) { return std::cos(a); }
  static F tan(F a) { return std::tan(a); }
  static F asin(F a) { return std::asin(a); }
  static F acos(F a) { return std::acos(a); }
  static F atan(F a) { return std::atan(a); }
  static F sinh(F a) { return std::sinh(a); }
  static F cosh(F a) { return std::cosh(a); }
  static F tanh(F a) { return std::tanh(a); }
  static F atan2(F a, F b) { return std::atan2(a, b); }
  static F pow(F a, F b) { return std::pow(a, b); }
  static F exp(F a) { return std::exp(a); }
  static F log(F a) { return std::log(a); }
  static F exp2(F a) { return std::exp2(a); }
  static F log2(F a) { return std::log2(a); }
  static F min(F a, F b) { return b < a ? b : a; }
  static F max(F a, F b) { return a < b ? b : a; }
  static F nmin(F a, F b) { return std::fmin(a, b); }
  static F nmax(F a, F b) { return std::fmax(a, b); }
  static F clamp(F a, F low, F high) { return min(max(a, low), high); }
  static F nclamp(F a, F low, F high) { return nmin(nmax(a, low), high); }
  static F mix(F a, F b, F t) { return a * (1 - t) + b * t; }
};
} // namespace

static uint32_t logicalAnd(uint32_t a, uint32_t b) { return a & b; }
static uint32_t logicalOr(uint32_t a, uint32_t b) { return a | b; }
static uint32_t logicalNot(uint32_t a) { return a ^ 1; }

template <typename U> static StepFunction findIntStep(Op op) {
  using I = Int<U>;
  switch (op) {
  case Op::IAdd: return apply<I::add>;
  case Op::ISub: return apply<I::sub>;
  case Op::IMul: return apply<I::mul>;
  case Op::UDiv: return apply<I::udiv>;
  case Op::UMod: return apply<I::umod>;
  case Op::SDiv: return apply<I::sdiv>;
  case Op::SRem: return apply<I::srem>;
  case Op::SMod: return apply<I::smod>;
  case Op::SNegate: return apply<I::negate>;
  case Op::Not: return apply<I::bitNot>;
  case Op::BitwiseAnd: return apply<I::bitAnd>;
  case Op::BitwiseOr: return apply<I::bitOr>;
  case Op::BitwiseXor: return apply<I::bitXor>;
  case Op::ShiftLeftLogical: return apply<I::shiftLeft>;
  case Op::ShiftRightLogical: return apply<I::shiftRight>;
  case Op::ShiftRightArithmetic: return apply<I::shiftRightSigned>;
  case Op::IEqual: return apply<I::eq>;
  case Op::INotEqual: return apply<I::ne>;
  case Op::ULessThan: return apply<I::ult>;
  case Op::ULessThanEqual: return apply<I::ule>;
  case Op::UGreaterThan: return apply<I::ugt>;
  case Op::UGreaterThanEqual: return apply<I::uge>;
  case Op::SLessThan: return apply<I::slt>;
  case Op::SLessThanEqual: return apply<I::sle>;
  case Op::SGreaterThan: return apply<I::sgt>;
  case Op::SGreaterThanEqual: return apply<I::sge>;
  case Op::BitCount: return apply<I::countBits>;
  case Op::BitReverse: return apply<I::reverse>;
  // The second member of the result.
  case Op::IAddCarry: return apply<I::addCarry>;
  case Op::ISubBorrow: return apply<I::subBorrow>;
  case Op::UMulExtended: return apply<I::umulHigh>;
  case Op::SMulExtended: return apply<I::smulHigh>;
  default: return nullptr;
  }
}

template <typename F> static StepFunction findFloatStep(Op op) {
  using T = Float<F>;
  switch (op) {
  case Op::FAdd: return apply<T::add>;
  case Op::FSub: return apply<T::sub>;
  case Op::FMul: return apply<T::mul>;
  case Op::FDiv: return apply<T::div>;
  case Op::FRem: return apply<T::rem>;
  case Op::FMod: return apply<T::mod>;
  case Op::FNegate: return apply<T::negate>;
  case Op::IsNan: return apply<T::isNan>;
  case Op::IsInf: return apply<T::isInf>;
  case Op::FOrdEqual: return apply<T::ordEq>;
  case Op::FOrdNotEqual: return apply<T::ordNe>;
  case Op::FOrdLessThan: return apply<T::ordLt>;
  case Op::FOrdLessThanEqual: return apply<T::ordLe>;
  case Op::FOrdGreaterThan: return apply<T::ordGt>;
  case Op::FOrdGreaterThanEqual: return apply<T::ordGe>;
  case Op::FUnordEqual: return apply<T::unordEq>;
  case Op::FUnordNotEqual: return apply<T::unordNe>;
  case Op::FUnordLessThan: return apply<T::unordLt>;
  case Op::FUnordLessThanEqual: return apply<T::unordLe>;
  case Op::FUnordGreaterThan: return apply<T::unordGt>;
  case Op::FUnordGreaterThanEqual: return apply<T::unordGe>;
  default: return nullptr;
  }
}

StepFunction sim::findStep(Op op, Number number) {
  switch (op) {
  case Op::LogicalAnd: return apply<logicalAnd>;
  case Op::LogicalOr: return apply<logicalOr>;
  case Op::LogicalNot: return apply<logicalNot>;
  case Op::LogicalEqual: return apply<Int<uint32_t>::eq>;
  case Op::LogicalNotEqual: return apply<Int<uint32_t>::ne>;
  default: break;
  }
  switch (number) {
  case Number::U32: return findIntStep<uint32_t>(op);
  case Number::U64: return findIntStep<uint64_t>(op);
  case Number::F32: return findFloatStep<float>(op);
  case Number::F64: return findFloatStep<double>(op);
  }
  return nullptr;
}

template <auto function> static void reduce(Subgroup &subgroup, const Step &step) {
  using T = typename Signature<function>::Result;
  auto *to = subgroup.at<T>(step.to);
  const auto *from = subgroup.at<T>(step.a);
  const auto what = Reduction(step.number);
  T total = subgroup.at<T>(step.b)[0];
  for (Mask rest = subgroup.mask; rest; rest &= rest - 1) {
    auto lane = uint32_t(std::countr_zero(rest));
    T before = total;
    total = rest == subgroup.mask ? from[lane] : function(total, from[lane]);
    to[lane] = what == Reduction::BeforeOwn ? before : total;
  }
  for (Mask rest = what == Reduction::All ? subgroup.mask : 0; rest; rest &= rest - 1)
    to[std::countr_zero(rest)] = total;
}

template <typename U> static StepFunction findIntReduction(Op op) {
  using I = Int<U>;
  switch (op) {
  case Op::GroupNonUniformIAdd: return reduce<I::add>;
  case Op::GroupNonUniformIMul: return reduce<I::mul>;
  case Op::GroupNonUniformSMin: return reduce<I::smin>;
  case Op::GroupNonUniformUMin: return reduce<I::umin>;
  case Op::GroupNonUniformSMax: return reduce<I::smax>;
  case Op::GroupNonUniformUMax: return reduce<I::umax>;
  case Op::GroupNonUniformBitwiseAnd: return reduce<I::bitAnd>;
  case Op::GroupNonUniformBitwiseOr: return reduce<I::bitOr>;
  case Op::GroupNonUniformBitwiseXor: return reduce<I::bitXor>;
  default: return nullptr;
  }
}

template <typename F> static StepFunction findFloatReduction(Op op) {
  using T = Float<F>;
  switch (op) {
  case Op::GroupNonUniformFAdd: return reduce<T::add>;
  case Op::GroupNonUniformFMul: return reduce<T::mul>;
  case Op::GroupNonUniformFMin: return reduce<T::min>;
  case Op::GroupNonUniformFMax: return reduce<T::max>;
  default: return nullptr;
  }
}

StepFunction sim::findReduction(Op op, Number number) {
  switch (number) {
  case Number::U32: return findIntReduction<uint32_t>(op);
  case Number::U64: return findIntReduction<uint64_t>(op);
  case Number::F32: return findFloatReduction<float>(op);
  case Number::F64: return findFloatReduction<double>(op);
  }
  return nullptr;
}

template <typename U> static StepFunction findIntStep(Glsl op) {
  using I = Int<U>;
  switch (op) {
  case Glsl::SAbs: return apply<I::sabs>;
  case Glsl::SSign: return apply<I::ssign>;
  case Glsl::UMin: return apply<I::umin>;
  case Glsl::UMax: return apply<I::umax>;
  case Glsl::SMin: return apply<I::smin>;
  case Glsl::SMax: return apply<I::smax>;
  case Glsl::UClamp: return apply<I::uclamp>;
  case Glsl::SClamp: return apply<I::sclamp>;
  case Glsl::FindILsb: return apply<I::findLsb>;
  case Glsl::FindUMsb: return apply<I::findUMsb>;
  case Glsl::FindSMsb: return apply<I::findSMsb>;
  default: return nullptr;
  }
}

template <typename F> static StepFunction findFloatStep(Glsl op) {
  using T = Float<F>;
  switch (op) {
  case Glsl::FAbs: return apply<T::abs>;
  case Glsl::FSign: return apply<T::sign>;
  case Glsl::Floor: return apply<T::floor>;
  case Glsl::Ceil: return apply<T::ceil>;
  case Glsl::Trunc: return apply<T::trunc>;
  case Glsl::Round: return apply<T::roundEven>;
  case Glsl::RoundEven: return apply<T::roundEven>;
  case Glsl::Fract: return apply<T::fract>;
  case Glsl::Sqrt: return apply<T::sqrt>;
  case Glsl::InverseSqrt: return apply<T::inverseSqrt>;
  case Glsl::Sin: return apply<T::sin>;
  case Glsl::Cos: return apply<T::cos>;
  case Glsl::Tan: return apply<T::tan>;
  case Glsl::Asin: return apply<T::asin>;
  case Glsl::Acos: return apply<T::acos>;
  case Glsl::Atan: return apply<T::atan>;
  case Glsl::Sinh: return apply<T::sinh>;
  case Glsl::Cosh: return apply<T::cosh>;
  case Glsl::Tanh: return apply<T::tanh>;
  case Glsl::Atan2: return apply<T::atan2>;
  case Glsl::Pow: return apply<T::pow>;
  case Glsl::Exp: return apply<T::exp>;
  case Glsl::Log: return apply<T::log>;
  case Glsl::Exp2: return apply<T::exp2>;
  case Glsl::Log2: return apply<T::log2>;
  case Glsl::FMin: return apply<T::min>;
  case Glsl::FMax: return apply<T::max>;
  case Glsl::FClamp: return apply<T::clamp>;
  case Glsl::NMin: return apply<T::nmin>;
  case Glsl::NMax: return apply<T::nmax>;
  case Glsl::NClamp: return apply<T::nclamp>;
  case Glsl::FMix: return apply<T::mix>;
  case Glsl::Fma: return apply<T::fma>;
  default: return nullptr;
  }
}

StepFunction sim::findStep(Glsl op, Number number) {
  switch (number) {
  case Number::U32: return findIntStep<uint32_t>(op);
  case Number::U64: return findIntStep<uint64_t>(op);
  case Number::F32: return findFloatStep<float>(op);
  case Number::F64: return findFloatStep<double>(op);
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

template <typename To, typename From> static To cast(From from) { return To(from); }

template <typename To> static To castSigned32(uint32_t from) { return To(int32_t(from)); }
template <typename To> static To castSigned64(uint64_t from) { return To(int64_t(from)); }

/// Truncates. Out of range, the result is the min of a signed type and the max of an unsigned
/// one, as on x86.
template <typename To, typename From> static std::make_unsigned_t<To> castFloat(From from) {
  constexpr From limit = From(2) * From(std::make_unsigned_t<To>(1) << (sizeof(To) * 8 - 2));
  if constexpr (std::is_signed_v<To>) {
    bool fits = from >= -limit && from < limit;
    return std::make_unsigned_t<To>(fits ? To(from) : std::numeric_limits<To>::min());
  } else {
    bool fits = from > -1 && from < 2 * limit;
    return fits ? To(from) : std::numeric_limits<To>::max();
  }
}

template <typename F> static F fromHalf(uint32_t bits) {
  return F(std::bit_cast<_Float16>(uint16_t(bits)));
}

template <typename F> static uint32_t toHalf(F number) {
  return std::bit_cast<uint16_t>(_Float16(number));
}

template <typename T> static T select(uint32_t condition, T a, T b) { return condition ? a : b; }

/// An offset far outside of any memory, also after additions.
static constexpr int64_t outside = int64_t(1) << 60;

static int64_t index(int64_t base, int64_t index, int64_t stride) {
  int64_t offset;
  if (__builtin_mul_overflow(index, stride, &offset) || offset < -outside || offset > outside ||
      base == outside)
    return outside;
  offset += base;
  return offset < -outside || offset > outside ? outside : offset;
}

template <typename I> static void runIndex(Subgroup &subgroup, const Step &step) {
  auto *to = subgroup.at<int64_t>(step.to);
  const auto *base = subgroup.at<int64_t>(step.a);
  const auto *position = subgroup.at<I>(step.b);
  subgroup.forEachLane([&](uint32_t lane) {
    to[lane] = index(base[lane], position[lane], step.number);
  });
}

static void runMask(Subgroup &subgroup, const Step &step) {
  auto *to = subgroup.at<uint32_t>(step.to);
  const auto *a = subgroup.at<uint32_t>(step.a);
  uint32_t mask = (uint32_t(1) << step.number) - 1;
  subgroup.forEachLane([&](uint32_t lane) { to[lane] = a[lane] & mask; });
}

static void runSignExtend(Subgroup &subgroup, const Step &step) {
  auto *to = subgroup.at<uint32_t>(step.to);
  const auto *a = subgroup.at<uint32_t>(step.a);
  auto shift = uint32_t(32 - step.number);
  subgroup.forEachLane([&](uint32_t lane) {
    to[lane] = uint32_t(int32_t(a[lane] << shift) >> shift);
  });
}

/// Extracts by a run-time index. An index out of range, which is undefined, selects the first
/// element.
template <typename T> static void runExtract(Subgroup &subgroup, const Step &step) {
  auto *to = subgroup.at<T>(step.to);
  const auto *row = subgroup.at<T>(step.a);
  const auto *position = subgroup.at<uint32_t>(step.b);
  subgroup.forEachLane([&](uint32_t lane) {
    uint32_t at = position[lane] < uint64_t(step.number) ? position[lane] : 0;
    to[lane] = row[at * subgroup.width + lane];
  });
}

template <typename T> static void runInsert(Subgroup &subgroup, const Step &step) {
  auto *row = subgroup.at<T>(step.to);
  const auto *value = subgroup.at<T>(step.c);
  const auto *position = subgroup.at<uint32_t>(step.b);
  subgroup.forEachLane([&](uint32_t lane) {
    uint32_t at = position[lane] < uint64_t(step.number) ? position[lane] : 0;
    row[at * subgroup.width + lane] = value[lane];
  });
}

StepFunction sim::getStep(Convert convert) {
  switch (convert) {
  case Convert::Copy32: return apply<cast<uint32_t, uint32_t>>;
  case Convert::Copy64: return apply<cast<uint64_t, uint64_t>>;
  case Convert::Mask: return runMask;
  case Convert::SignExtend: return runSignExtend;
  case Convert::SignedToU64: return apply<castSigned32<uint64_t>>;
  case Convert::U32ToU64: return apply<cast<uint64_t, uint32_t>>;
  case Convert::U64ToU32: return apply<cast<uint32_t, uint64_t>>;
  case Convert::HalfToF32: return apply<fromHalf<float>>;
  case Convert::HalfToF64: return apply<fromHalf<double>>;
  case Convert::F32ToHalf: return apply<toHalf<float>>;
  case Convert::F64ToHalf: return apply<toHalf<double>>;
  case Convert::F32ToF64: return apply<cast<double, float>>;
  case Convert::F64ToF32: return apply<cast<float, double>>;
  case Convert::S32ToF32: return apply<castSigned32<float>>;
  case Convert::S32ToF64: return apply<castSigned32<double>>;
  case Convert::U32ToF32: return apply<cast<float, uint32_t>>;
  case Convert::U32ToF64: return apply<cast<double, uint32_t>>;
  case Convert::S64ToF32: return apply<castSigned64<float>>;
  case Convert::S64ToF64: return apply<castSigned64<double>>;
  case Convert::U64ToF32: return apply<cast<float, uint64_t>>;
  case Convert::U64ToF64: return apply<cast<double, uint64_t>>;
  case Convert::F32ToS32: return apply<castFloat<int32_t, float>>;
  case Convert::F32ToU32: return apply<castFloat<uint32_t, float>>;
  case Convert::F32ToS64: return apply<castFloat<int64_t, float>>;
  case Convert::F32ToU64: return apply<castFloat<uint64_t, float>>;
  case Convert::F64ToS32: return apply<castFloat<int32_t, double>>;
  case Convert::F64ToU32: return apply<castFloat<uint32_t, double>>;
  case Convert::F64ToS64: return apply<castFloat<int64_t, double>>;
  case Convert::F64ToU64: return apply<castFloat<uint64_t, double>>;
  case Convert::Select32: return apply<select<uint32_t>>;
  case Convert::Select64: return apply<select<uint64_t>>;
  case Convert::Index32: return runIndex<int32_t>;
  case Convert::Index64: return runIndex<int64_t>;
  case Convert::Extract32: return runExtract<uint32_t>;
  case Convert::Extract64: return runExtract<uint64_t>;
  case Convert::Insert32: return runInsert<uint32_t>;
  case Convert::Insert64: return runInsert<uint64_t>;
  }
  return nullptr;
}
