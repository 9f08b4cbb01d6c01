//===- Bits.cpp - Instructions of PTX on bits -----------------------------===//
//
// Instructions that move bits become shifts and masks where their places are constants. Others keep
// their names.
//
//===----------------------------------------------------------------------===//

#include "Translator.h"

#include <algorithm>

using namespace weir;
using namespace weir::ptx;

static uint64_t getOnes(uint64_t count) { return count == 0 ? 0 : ~uint64_t(0) >> (64 - count); }

std::optional<uint64_t> Translator::getNumber(size_t i) const {
  const Operand &operand = getOperand(i);
  return operand.kind == Operand::Kind::Integer ? std::optional(operand.bits) : std::nullopt;
}

/// Shifts by less than the width.
Id Translator::shift(Op op, uint32_t width, Id value, uint64_t by) {
  return by ? makeInteger(op, width, {value, words.getConstant(32, by)}) : value;
}

Id Translator::mask(uint32_t width, Id value, uint64_t bits) {
  return bits == getOnes(width)
             ? value
             : makeInteger(Op::BitwiseAnd, width, {value, words.getConstant(width, bits)});
}

/// Translates shl and shr by constants. Other amounts may exceed the width, which PTX defines and
/// SPIR-V does not.
void Translator::translateShift() {
  NumberType type = getType();
  std::optional<uint64_t> by = getNumber(2);
  if (!by || !type.isInteger())
    return translateNamed();
  *by &= getOnes(32);
  const bool isLeft = statement->name.front() == "shl";
  Id value = use(getOperand(1), type.width);
  if (type.isSigned() && !isLeft)
    value =
        shift(Op::ShiftRightArithmetic, type.width, value, std::min<uint64_t>(*by, type.width - 1));
  else if (*by >= type.width)
    value = words.getConstant(type.width, 0);
  else
    value = shift(isLeft ? Op::ShiftLeftLogical : Op::ShiftRightLogical, type.width, value, *by);
  set(getOperand(0), value, type.width);
}

/// Translates bfe of constant bits, of signed numbers only one.
void Translator::translateExtract() {
  NumberType type = getType();
  std::optional<uint64_t> first = getNumber(2), count = getNumber(3);
  if (!first || !count || (type.isSigned() && *count != 1) || *first >= type.width || *count < 1 ||
      *count > type.width - *first)
    return translateNamed();
  Id value = use(getOperand(1), type.width);
  value = shift(Op::ShiftRightLogical, type.width, value, *first);
  if (*count < type.width - *first)
    value = mask(type.width, value, getOnes(*count));
  if (type.isSigned())
    value = makeInteger(Op::ISub, type.width, {words.getConstant(type.width, 0), value});
  set(getOperand(0), value, type.width);
}

/// Translates bfi to constant bits.
void Translator::translateInsert() {
  const uint32_t width = getType().width;
  std::optional<uint64_t> first = getNumber(3), count = getNumber(4);
  if (!first || !count || *first >= width || *count < 1 || *count > width - *first)
    return translateNamed();
  Id part = mask(width, use(getOperand(1), width), getOnes(*count));
  part = shift(Op::ShiftLeftLogical, width, part, *first);
  if (*count < width) {
    Id others =
        mask(width, use(getOperand(2), width), getOnes(width) & ~(getOnes(*count) << *first));
    part = makeInteger(Op::BitwiseOr, width, {others, part});
  }
  set(getOperand(0), part, width);
}

/// Translates shf by a constant: it shifts 64 bits, and gives the upper or the lower half.
void Translator::translateFunnel() {
  std::optional<uint64_t> number = getNumber(3);
  const bool isLeft = hasName("l"), isWrapped = hasName("wrap");
  if (!number || getType().width != 32 || isLeft == hasName("r") || isWrapped == hasName("clamp"))
    return translateNamed();
  const uint64_t by = isWrapped ? *number & 31 : std::min<uint64_t>(*number & getOnes(32), 32);
  const uint64_t low = isLeft ? 32 - by : by; // of the 64 bits, where the result begins
  Id a = use(getOperand(1), 32), b = use(getOperand(2), 32);
  Id result = low == 0 ? a : b;
  if (low % 32)
    result = makeInteger(
        Op::BitwiseOr, 32,
        {shift(Op::ShiftRightLogical, 32, a, low), shift(Op::ShiftLeftLogical, 32, b, 32 - low)});
  set(getOperand(0), result, 32);
}

/// Translates prmt by a constant, without copies of signs: runs of bytes side by side move
/// together.
void Translator::translatePermute() {
  std::optional<uint64_t> choice = getNumber(3);
  if (!choice || statement->name.size() != 2 || (*choice & 0x8888))
    return translateNamed();
  auto getSource = [&](uint32_t i) { return uint32_t(*choice >> 4 * i & 7); };
  Id result = 0;
  for (uint32_t first = 0, end = 1; first < 4; first = end++) {
    const uint32_t from = getSource(first);
    while (end < 4 && getSource(end) == from + (end - first) && getSource(end) % 4)
      ++end;
    const Operand &source = getOperand(from < 4 ? 1 : 2);
    if (source.kind == Operand::Kind::Integer && !source.bits)
      continue;
    Id part = shift(Op::ShiftRightLogical, 32, use(source, 32), 8 * (from % 4));
    if (from % 4 + end - first < 4)
      part = mask(32, part, getOnes(8 * (end - first)));
    part = shift(Op::ShiftLeftLogical, 32, part, 8 * first);
    result = result ? makeInteger(Op::BitwiseOr, 32, {result, part}) : part;
  }
  set(getOperand(0), result ? result : words.getConstant(32, 0), 32);
}

/// Translates lop3 by the table of an operation on two operands, or of another one on its result
/// and the third.
void Translator::translateTable() {
  std::optional<uint64_t> table = getNumber(4);
  if (!table || statement->name.size() != 2)
    return translateNamed();
  static constexpr Op ops[] = {Op::BitwiseAnd, Op::BitwiseOr, Op::BitwiseXor};
  static constexpr uint32_t tables[] = {0xf0, 0xcc, 0xaa};
  auto apply = [](Op op, uint32_t a, uint32_t b) {
    return op == Op::BitwiseAnd ? a & b : op == Op::BitwiseOr ? a | b : a ^ b;
  };
  for (uint32_t third = 3; third-- > 0;)
    for (Op op : ops) {
      const uint32_t first = third == 0, second = third == 2 ? 1 : 2;
      const uint32_t both = apply(op, tables[first], tables[second]);
      auto make = [&] {
        Id a = use(getOperand(1 + first), 32), b = use(getOperand(1 + second), 32);
        return makeInteger(op, 32, {a, b});
      };
      if (both == *table)
        return set(getOperand(0), make(), 32);
      for (Op next : ops)
        if (apply(next, both, tables[third]) == *table) {
          Id result = make();
          return set(getOperand(0), makeInteger(next, 32, {result, use(getOperand(1 + third), 32)}),
                     32);
        }
    }
  translateNamed();
}

/// Translates mul24.lo and mad24.lo.
void Translator::translateShortProduct() {
  const bool isSigned = getType().isSigned();
  if (!hasName("lo"))
    return translateNamed();
  auto get = [&](size_t i) {
    Id value = use(getOperand(i), 32);
    return isSigned
               ? shift(Op::ShiftRightArithmetic, 32, shift(Op::ShiftLeftLogical, 32, value, 8), 8)
               : mask(32, value, getOnes(24));
  };
  Id a = get(1), b = get(2);
  Id result = makeInteger(Op::IMul, 32, {a, b});
  if (statement->name.front() == "mad24")
    result = makeInteger(Op::IAdd, 32, {result, use(getOperand(3), 32)});
  set(getOperand(0), result, 32);
}
