//===- MathExpression.h - Arithmetic that is written down as ops -*- C++ -*-===//
//
// Values whose operators make `arith` ops, so that a function of floats reads as one. A
// function written with them serves f32 and f64, and vectors of both.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_NUMERICS_MATHEXPRESSION_H
#define WEIR_LIB_NUMERICS_MATHEXPRESSION_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <bit>
#include <limits>

namespace weir::expression {
using namespace mlir;

/// The layout of a float, and what follows from it. `width` is that of the integers that
/// go with it, too.
struct Format {
  int width;    ///< in bits
  int fraction; ///< stored bits of the significand

  bool isWide() const { return width == 64; }
  int bias() const { return (1 << (width - fraction - 2)) - 1; }
  uint64_t signBit() const { return uint64_t(1) << (width - 1); }
  uint64_t fractionMask() const { return (uint64_t(1) << fraction) - 1; }
  uint64_t oneBits() const { return uint64_t(bias()) << fraction; }
  uint64_t infinityBits() const { return uint64_t(2 * bias() + 1) << fraction; }
};

/// The builder, location and vector shape of the ops of one expansion.
struct Place {
  OpBuilder &builder;
  Location loc;
  /// f32, f64 or a vector of them, and the integers of the same width and shape.
  Type floats, ints;
  Format format;
  bool fuses; ///< whether math.fma rounds once

  Place(OpBuilder &builder, Location loc, Type floats, bool fuses = false)
      : builder(builder), loc(loc), floats(floats),
        format(getElementTypeOrSelf(floats).isF64() ? Format{64, 52} : Format{32, 23}),
        fuses(fuses) {
    ints = builder.getIntegerType(format.width);
    if (auto vector = dyn_cast<VectorType>(floats))
      ints = vector.clone(ints);
  }

  Value constant(Type type, Attribute element) const {
    TypedAttr value = cast<TypedAttr>(element);
    if (auto shaped = dyn_cast<ShapedType>(type))
      value = DenseElementsAttr::get(shaped, element);
    return arith::ConstantOp::create(builder, loc, value);
  }
};

struct Float {
  const Place *at;
  Value value;
};

struct Int {
  const Place *at;
  Value value;
};

struct Bool {
  const Place *at;
  Value value;
};

using FloatPredicate = arith::CmpFPredicate;
using IntPredicate = arith::CmpIPredicate;

template <typename T> const Format &formatOf(T x) { return x.at->format; }

/// Returns `value`, rounded to the type of `like`, as a constant.
inline Float literal(Float like, double value) {
  Type type = getElementTypeOrSelf(like.at->floats);
  return {like.at, like.at->constant(like.at->floats, like.at->builder.getFloatAttr(type, value))};
}
/// Returns the low bits of `value` as a constant.
template <typename T> Int integer(T like, uint64_t value) {
  const Place &at = *like.at;
  APInt bits(at.format.width, value, /*isSigned=*/false, /*implicitTrunc=*/true);
  Type type = getElementTypeOrSelf(at.ints);
  return {like.at, at.constant(at.ints, at.builder.getIntegerAttr(type, bits))};
}

template <typename Op, typename T> T unary(T a) {
  return {a.at, Op::create(a.at->builder, a.at->loc, a.value)};
}
template <typename Op, typename T> T binary(T a, T b) {
  return {a.at, Op::create(a.at->builder, a.at->loc, a.value, b.value)};
}

inline Float operator+(Float a, Float b) { return binary<arith::AddFOp>(a, b); }
inline Float operator-(Float a, Float b) { return binary<arith::SubFOp>(a, b); }
inline Float operator*(Float a, Float b) { return binary<arith::MulFOp>(a, b); }
inline Float operator/(Float a, Float b) { return binary<arith::DivFOp>(a, b); }
inline Float operator+(Float a, double b) { return a + literal(a, b); }
inline Float operator-(Float a, double b) { return a - literal(a, b); }
inline Float operator*(Float a, double b) { return a * literal(a, b); }
inline Float operator-(double a, Float b) { return literal(b, a) - b; }
inline Float operator/(double a, Float b) { return literal(b, a) / b; }
inline Int operator+(Int a, Int b) { return binary<arith::AddIOp>(a, b); }
inline Int operator-(Int a, Int b) { return binary<arith::SubIOp>(a, b); }
inline Int operator*(Int a, Int b) { return binary<arith::MulIOp>(a, b); }
inline Int operator&(Int a, Int b) { return binary<arith::AndIOp>(a, b); }
inline Int operator|(Int a, Int b) { return binary<arith::OrIOp>(a, b); }
inline Int operator^(Int a, Int b) { return binary<arith::XOrIOp>(a, b); }
inline Int operator+(Int a, uint64_t b) { return a + integer(a, b); }
inline Int operator-(Int a, uint64_t b) { return a - integer(a, b); }
inline Int operator-(uint64_t a, Int b) { return integer(b, a) - b; }
inline Int operator*(Int a, uint64_t b) { return a * integer(a, b); }
inline Int operator&(Int a, uint64_t b) { return a & integer(a, b); }
inline Int operator|(Int a, uint64_t b) { return a | integer(a, b); }
inline Int operator^(Int a, uint64_t b) { return a ^ integer(a, b); }
inline Int operator<<(Int a, uint64_t b) { return binary<arith::ShLIOp>(a, integer(a, b)); }
inline Int operator<<(Int a, Int b) { return binary<arith::ShLIOp>(a, b); }
/// Keeps the sign.
inline Int operator>>(Int a, uint64_t b) { return binary<arith::ShRSIOp>(a, integer(a, b)); }
/// Shifts in zeros.
inline Int shiftDown(Int a, Int b) { return binary<arith::ShRUIOp>(a, b); }
inline Int shiftDown(Int a, uint64_t b) { return shiftDown(a, integer(a, b)); }
/// Computes the remainder of unsigned numbers.
inline Int remainder(Int a, Int b) { return binary<arith::RemUIOp>(a, b); }
inline Int smaller(Int a, uint64_t b) { return binary<arith::MinSIOp>(a, integer(a, b)); }
inline Int larger(Int a, uint64_t b) { return binary<arith::MaxSIOp>(a, integer(a, b)); }
inline Bool operator&(Bool a, Bool b) { return binary<arith::AndIOp>(a, b); }
inline Bool operator|(Bool a, Bool b) { return binary<arith::OrIOp>(a, b); }

inline Float fma(Float a, Float b, Float c) {
  return {a.at, math::FmaOp::create(a.at->builder, a.at->loc, a.value, b.value, c.value)};
}
inline Float fma(Float a, double b, Float c) { return fma(a, literal(a, b), c); }
inline Float fma(Float a, Float b, double c) { return fma(a, b, literal(a, c)); }
inline Float fma(Float a, double b, double c) { return fma(a, literal(a, b), literal(a, c)); }
inline Float truncate(Float a) { return unary<math::TruncOp>(a); }

inline Int bits(Float a) {
  return {a.at, arith::BitcastOp::create(a.at->builder, a.at->loc, a.at->ints, a.value)};
}
inline Float fromBits(Int a) {
  return {a.at, arith::BitcastOp::create(a.at->builder, a.at->loc, a.at->floats, a.value)};
}
inline Float toFloat(Int a) {
  return {a.at, arith::SIToFPOp::create(a.at->builder, a.at->loc, a.at->floats, a.value)};
}
inline Int toInt(Float a) {
  return {a.at, arith::FPToSIOp::create(a.at->builder, a.at->loc, a.at->ints, a.value)};
}

inline Bool is(Float a, FloatPredicate predicate, Float b) {
  return {a.at, arith::CmpFOp::create(a.at->builder, a.at->loc, predicate, a.value, b.value)};
}
inline Bool is(Float a, FloatPredicate predicate, double b) {
  return is(a, predicate, literal(a, b));
}
inline Bool is(Int a, IntPredicate predicate, Int b) {
  return {a.at, arith::CmpIOp::create(a.at->builder, a.at->loc, predicate, a.value, b.value)};
}
inline Bool is(Int a, IntPredicate predicate, uint64_t b) {
  return is(a, predicate, integer(a, b));
}

template <typename T> T select(Bool condition, T yes, T no) {
  return {condition.at, arith::SelectOp::create(condition.at->builder, condition.at->loc,
                                                condition.value, yes.value, no.value)};
}
inline Float select(Bool condition, double yes, Float no) {
  return select(condition, literal(no, yes), no);
}
inline Float select(Bool condition, Float yes, double no) {
  return select(condition, yes, literal(yes, no));
}
inline Float select(Bool condition, double yes, double no) {
  Float like{condition.at, {}};
  return select(condition, literal(like, yes), literal(like, no));
}

/// Applies `step` to both values, `trips` times.
template <typename Step> std::pair<Int, Int> repeat(int trips, Int first, Int second, Step &&step) {
  const Place *at = first.at;
  OpBuilder &builder = at->builder;
  auto index = [&](int value) {
    return arith::ConstantIndexOp::create(builder, at->loc, value).getResult();
  };
  Value from = index(0), to = index(trips), by = index(1);
  auto loop =
      scf::ForOp::create(builder, at->loc, from, to, by, ValueRange{first.value, second.value});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  auto [one, two] = step(Int{at, loop.getRegionIterArg(0)}, Int{at, loop.getRegionIterArg(1)});
  scf::YieldOp::create(builder, at->loc, ValueRange{one.value, two.value});
  return {Int{at, loop.getResult(0)}, Int{at, loop.getResult(1)}};
}

} // namespace weir::expression

#endif // WEIR_LIB_NUMERICS_MATHEXPRESSION_H
