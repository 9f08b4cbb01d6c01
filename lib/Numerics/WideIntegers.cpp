//===- WideIntegers.cpp - Integers in words of 32 bits --------------------===//
//
// Only operations on words that every device has. Upstream's wide-integer emulation makes a vector
// of two of each integer, and one of two dimensions of a vector, which SPIR-V does not have; it has
// no division, no conversion from floats and one to floats that rounds twice.
//
//===----------------------------------------------------------------------===//

#include "WideIntegers.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace weir;

WordBuilder::WordBuilder(OpBuilder &builder, Location loc, Type shape)
    : b(loc, builder), shape(shape) {}

Type WordBuilder::as(Type element) const {
  auto vector = dyn_cast<VectorType>(shape);
  return vector ? Type(vector.clone(element)) : element;
}

Value WordBuilder::number(uint32_t value) {
  TypedAttr element = b.getI32IntegerAttr(int32_t(value));
  if (auto vector = dyn_cast<VectorType>(shape))
    element = DenseElementsAttr::get(vector.clone(b.getI32Type()), Attribute(element));
  return arith::ConstantOp::create(b, element);
}

Value WordBuilder::floatOfBits(Value bits) {
  return arith::BitcastOp::create(b, as(b.getF32Type()), bits);
}

Halves WordBuilder::add(Halves x, Halves y) {
  Value low = add(x.low, y.low);
  Value carry = fromBool(compare(Predicate::ult, low, x.low));
  return {low, add(add(x.high, y.high), carry)};
}

Halves WordBuilder::sub(Halves x, Halves y) {
  Value borrow = fromBool(compare(Predicate::ult, x.low, y.low));
  return {sub(x.low, y.low), sub(sub(x.high, y.high), borrow)};
}

Halves WordBuilder::mul(Halves x, Halves y) {
  // The product of both low words from digits of 16 bits.
  Value x0 = mask(x.low, 0xffff), x1 = right(x.low, 16);
  Value y0 = mask(y.low, 0xffff), y1 = right(y.low, 16);
  Value low = mul(x0, y0), first = mul(x1, y0), second = mul(x0, y1);
  Value middle = add(first, right(low, 16)); // at most 2^32 - 2^16
  Value rest = add(second, mask(middle, 0xffff));
  Value high = add(add(mul(x1, y1), right(middle, 16)), right(rest, 16));
  high = add(high, add(mul(x.low, y.high), mul(x.high, y.low)));
  return {mul(x.low, y.low), high};
}

std::pair<Halves, Halves> WordBuilder::mulExtended(Halves x, Halves y, bool isSigned) {
  Value none = number(0);
  auto extend = [&](Value word) -> Halves { return {word, none}; };
  auto product = [&](Value a, Value b) { return mul(extend(a), extend(b)); };
  Halves first = product(x.low, y.low), second = product(x.low, y.high);
  Halves third = product(x.high, y.low), last = product(x.high, y.high);
  Halves middle = add(add(extend(first.high), extend(second.low)), extend(third.low));
  Halves high = add(add(last, extend(second.high)), add(extend(third.high), extend(middle.high)));
  if (isSigned) { // a negative factor counts 2^64 too much
    high = sub(high, choose(isNegative(x), y, pair(0)));
    high = sub(high, choose(isNegative(y), x, pair(0)));
  }
  return {{first.low, middle.low}, high};
}

Value WordBuilder::compare(Predicate predicate, Halves x, Halves y) {
  Value isEqual = compare(Predicate::eq, x.high, y.high);
  switch (predicate) {
  case Predicate::eq:
    return make<arith::AndIOp>(isEqual, compare(Predicate::eq, x.low, y.low));
  case Predicate::ne:
    return make<arith::OrIOp>(compare(Predicate::ne, x.high, y.high),
                              compare(Predicate::ne, x.low, y.low));
  default:
    break;
  }
  auto getUnsigned = [&] {
    switch (predicate) {
    case Predicate::slt:
    case Predicate::ult:
      return Predicate::ult;
    case Predicate::sle:
    case Predicate::ule:
      return Predicate::ule;
    case Predicate::sgt:
    case Predicate::ugt:
      return Predicate::ugt;
    default:
      return Predicate::uge;
    }
  };
  // Unequal high words decide; `<=` and `<` are then one.
  return choose(isEqual, compare(getUnsigned(), x.low, y.low), compare(predicate, x.high, y.high));
}

Halves WordBuilder::left(Halves x, Value by) {
  Value few = mask(by, 31), isMany = compare(Predicate::uge, by, number(32));
  // Two shifts, since none by 32 is defined.
  Value carried = right(right(x.low, 1), sub(number(31), few));
  Value low = left(x.low, few), high = either(left(x.high, few), carried);
  return {choose(isMany, number(0), low), choose(isMany, low, high)};
}

Halves WordBuilder::right(Halves x, Value by, bool isSigned) {
  Value few = mask(by, 31), isMany = compare(Predicate::uge, by, number(32));
  Value carried = left(left(x.high, 1), sub(number(31), few));
  Value low = either(right(x.low, few), carried);
  Value high = isSigned ? make<arith::ShRSIOp>(x.high, few) : right(x.high, few);
  Value filled = isSigned ? sign(x.high) : number(0);
  return {choose(isMany, high, low), choose(isMany, filled, high)};
}

std::pair<Halves, Halves> WordBuilder::divideUnsigned(Halves x, Halves y) {
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  Value bits = arith::ConstantIndexOp::create(b, 64), none = number(0);
  auto loop = scf::ForOp::create(b, zero, bits, one, ValueRange{x.low, x.high, none, none});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange carried = loop.getRegionIterArgs();
  Halves quotient = {carried[0], carried[1]}, rest = {carried[2], carried[3]};
  Value next = right(quotient.high, 31), isLong = isNegative(rest);
  auto twice = [&](Halves of, Value bit) -> Halves {
    return {either(left(of.low, 1), bit), either(left(of.high, 1), right(of.low, 31))};
  };
  rest = twice(rest, next);
  Value fits = make<arith::OrIOp>(isLong, compare(Predicate::uge, rest, y));
  rest = choose(fits, sub(rest, y), rest);
  quotient = twice(quotient, fromBool(fits));
  scf::YieldOp::create(b, ValueRange{quotient.low, quotient.high, rest.low, rest.high});
  ValueRange results = loop.getResults();
  return {{results[0], results[1]}, {results[2], results[3]}};
}

std::pair<Halves, Halves> WordBuilder::divide(Halves x, Halves y, bool isSigned) {
  if (!isSigned)
    return divideUnsigned(x, y);
  auto [quotient, rest] = divideUnsigned(absolute(x), absolute(y));
  Value differ = make<arith::XOrIOp>(isNegative(x), isNegative(y));
  return {choose(differ, negate(quotient), quotient), choose(isNegative(x), negate(rest), rest)};
}

Value WordBuilder::countLeadingZeros(Halves x) {
  auto count = [&](Value word) -> Value { return math::CountLeadingZerosOp::create(b, word); };
  return choose(isZero(x.high), add(number(32), count(x.low)), count(x.high));
}

Value WordBuilder::toFloat(Halves x, bool isSigned) {
  Halves size = isSigned ? absolute(x) : x;
  // The highest 32 bits, of which the last says whether any behind them are set: they round as the
  // number does, since a float has 24.
  Value isSmall = isZero(size.high);
  Value by = choose(isSmall, number(0), math::CountLeadingZerosOp::create(b, size.high));
  Halves shifted = left(size, by);
  Value rest = fromBool(compare(Predicate::ne, shifted.low, number(0)));
  Value top = choose(isSmall, size.low, either(shifted.high, rest));
  Value exponent = choose(isSmall, number(127), sub(number(127 + 32), by));
  // Without the sign bit, since SwiftShader rounds an unsigned word twice that has it.
  Value hasSign = compare(Predicate::slt, top, number(0));
  top = choose(hasSign, either(right(top, 1), mask(top, 1)), top);
  exponent = add(exponent, fromBool(hasSign));
  Value result = arith::SIToFPOp::create(b, as(b.getF32Type()), top);
  result = arith::MulFOp::create(b, result, floatOfBits(left(exponent, 23)));
  if (!isSigned)
    return result;
  Value negative = arith::NegFOp::create(b, result);
  return arith::SelectOp::create(b, isNegative(x), negative, result);
}

Halves WordBuilder::fromFloat(Value value) {
  Value bits = arith::BitcastOp::create(b, getWordType(), value);
  Value exponent = mask(right(bits, 23), 255); // of the value as a multiple of 2^-150
  Value fraction = either(mask(bits, 0x7fffff), number(0x800000));
  Value isLarge = compare(Predicate::uge, exponent, number(150));
  Value up = choose(isLarge, sub(exponent, number(150)), number(0));
  Value down = choose(isLarge, number(0), sub(number(150), exponent));
  down = arith::MinUIOp::create(b, down, number(31)); // all 24 bits are gone then
  Halves size = left({right(fraction, down), number(0)}, mask(up, 63));
  return choose(compare(Predicate::slt, bits, number(0)), negate(size), size);
}
