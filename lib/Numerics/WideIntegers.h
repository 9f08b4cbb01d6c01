//===- WideIntegers.h - Integers in words of 32 bits ------------*- C++ -*-===//
//
// An integer of 64 bits as its two halves. Both are i32, or vectors of it.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_NUMERICS_WIDEINTEGERS_H
#define WEIR_LIB_NUMERICS_WIDEINTEGERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace weir {

/// The halves of an integer of 64 bits.
struct Halves {
  mlir::Value low, high;
};

/// Makes operations on words, i32 or vectors of it, and on pairs of them.
class WordBuilder {
public:
  /// `shape` is a scalar, or a vector of as many elements as all words have.
  WordBuilder(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type shape);

  using Predicate = mlir::arith::CmpIPredicate;

  mlir::Type as(mlir::Type element) const;
  mlir::Type getWordType() { return as(b.getI32Type()); }
  mlir::Value number(uint32_t value);
  mlir::Value floatOfBits(mlir::Value bits);
  template <typename Op> mlir::Value make(mlir::Value x, mlir::Value y) {
    return b.createOrFold<Op>(x, y);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) { return make<mlir::arith::AddIOp>(x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return make<mlir::arith::SubIOp>(x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return make<mlir::arith::MulIOp>(x, y); }
  mlir::Value both(mlir::Value x, mlir::Value y) { return make<mlir::arith::AndIOp>(x, y); }
  mlir::Value either(mlir::Value x, mlir::Value y) { return make<mlir::arith::OrIOp>(x, y); }
  mlir::Value left(mlir::Value x, mlir::Value by) { return make<mlir::arith::ShLIOp>(x, by); }
  mlir::Value right(mlir::Value x, mlir::Value by) { return make<mlir::arith::ShRUIOp>(x, by); }
  mlir::Value mask(mlir::Value x, uint32_t ones) { return both(x, number(ones)); }
  mlir::Value left(mlir::Value x, uint32_t by) { return left(x, number(by)); }
  mlir::Value right(mlir::Value x, uint32_t by) { return right(x, number(by)); }
  /// Repeats the sign in all bits.
  mlir::Value sign(mlir::Value x) { return make<mlir::arith::ShRSIOp>(x, number(31)); }
  mlir::Value compare(Predicate predicate, mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::CmpIOp>(predicate, x, y);
  }
  mlir::Value isZero(mlir::Value x) { return compare(Predicate::eq, x, number(0)); }
  mlir::Value choose(mlir::Value condition, mlir::Value yes, mlir::Value no) {
    return b.createOrFold<mlir::arith::SelectOp>(condition, yes, no);
  }
  mlir::Value fromBool(mlir::Value bit) {
    return b.createOrFold<mlir::arith::ExtUIOp>(getWordType(), bit);
  }

  Halves pair(uint64_t value) { return {number(uint32_t(value)), number(uint32_t(value >> 32))}; }
  Halves add(Halves x, Halves y);
  Halves sub(Halves x, Halves y);
  Halves mul(Halves x, Halves y);
  /// Returns the lower and the upper 64 bits of a product.
  std::pair<Halves, Halves> mulExtended(Halves x, Halves y, bool isSigned);
  Halves negate(Halves x) { return sub(pair(0), x); }
  template <typename Op> Halves each(Halves x, Halves y) {
    return {make<Op>(x.low, y.low), make<Op>(x.high, y.high)};
  }
  Halves choose(mlir::Value condition, Halves yes, Halves no) {
    return {choose(condition, yes.low, no.low), choose(condition, yes.high, no.high)};
  }
  mlir::Value compare(Predicate predicate, Halves x, Halves y);
  mlir::Value isNegative(Halves x) { return compare(Predicate::slt, x.high, number(0)); }
  /// Shifts by less than 64 bits.
  Halves left(Halves x, mlir::Value by);
  Halves right(Halves x, mlir::Value by, bool isSigned);
  /// Returns quotient and rest, rounded toward zero. The rest has the dividend's sign.
  std::pair<Halves, Halves> divide(Halves x, Halves y, bool isSigned);
  Halves absolute(Halves x) { return choose(isNegative(x), negate(x), x); }
  mlir::Value countLeadingZeros(Halves x);
  /// Rounds to the nearest f32, ties to even.
  mlir::Value toFloat(Halves x, bool isSigned);
  /// Rounds an f32 toward zero. The result is arbitrary where 64 bits don't hold it.
  Halves fromFloat(mlir::Value number);

  mlir::ImplicitLocOpBuilder b;

private:
  std::pair<Halves, Halves> divideUnsigned(Halves x, Halves y);

  mlir::Type shape;
};

} // namespace weir

#endif // WEIR_LIB_NUMERICS_WIDEINTEGERS_H
