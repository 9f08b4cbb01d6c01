//===- Bits.cpp - Evaluates instructions on bits --------------------------===//

#include "Walk.h"

#include <algorithm>

using namespace weir;
using namespace weir::spv;

/// Returns (low, high) if `mask` is ones in bits [low, high).
static std::optional<std::pair<uint32_t, uint32_t>> findRun(uint64_t mask) {
  if (mask == 0)
    return std::nullopt;
  uint32_t low = uint32_t(__builtin_ctzll(mask));
  uint64_t run = mask >> low;
  if (run & (run + 1))
    return std::nullopt;
  return std::pair(low, low + uint32_t(__builtin_popcountll(run)));
}

/// Returns the bits of a number that are in a mask. Of an OR, those of its operands if they have
/// no common ones.
std::optional<Affine> Walk::getMasked(Id id, uint64_t mask, uint32_t width, size_t depth) {
  Atoms &atoms = map.atoms;
  mask &= width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
  auto definition = definitions.find(id);
  if (vague.contains(id) && definition->second->op == Op::BitwiseOr && depth < 4) {
    std::optional<Affine> a = getMasked(definition->second->operands[0], mask, width, depth + 1),
                          b = getMasked(definition->second->operands[1], mask, width, depth + 1);
    if (!a || !b || (atoms.getBits(*a, getRange(*a)) & atoms.getBits(*b, getRange(*b))))
      return std::nullopt;
    return *a + *b;
  }
  std::optional<Affine> number = getUnsigned(id);
  if (!number)
    return std::nullopt;
  const int64_t max = getRange(*number).max;
  Affine sum;
  for (int runs = 0; mask; ++runs) {
    int low = __builtin_ctzll(mask), high = low;
    while (high < 64 && mask >> high & 1)
      ++high;
    mask = high == 64 ? 0 : mask >> high << high;
    if (low >= 62 || max >> low == 0)
      break;
    if (runs >= 8)
      return std::nullopt;
    Affine part = atoms.divide(*number, int64_t(1) << low);
    if (high < 62)
      part = atoms.getRest(part, int64_t(1) << (high - low));
    sum = sum + part * (int64_t(1) << low);
  }
  return sum;
}

/// Returns a number with the bits of a mask turned round: a run of bits that is d becomes all of
/// its ones less d. Needs: number >= 0.
Affine Walk::flip(const Affine &number, uint64_t mask) {
  Affine sum = number;
  while (mask) {
    int low = __builtin_ctzll(mask), high = low;
    while (mask >> high & 1)
      ++high;
    mask = mask >> high << high;
    if (high > 61)
      throw TooLarge();
    int64_t all = (int64_t(1) << (high - low)) - 1;
    Affine run = map.atoms.getRest(map.atoms.divide(number, int64_t(1) << low), all + 1);
    sum = sum + (Affine::of(all) - run * 2) * (int64_t(1) << low);
  }
  return sum;
}

/// Returns the quotient of which `id` shifted right is another form: compilers divide by the high
/// half of a product. floor(x * factor / 2^(64 + shift)) is floor(x / d) for all x below 2^64 if
/// 0 <= factor * d - 2^(64 + shift) <= 2^shift.
std::optional<Affine> Walk::getQuotient(Id id, uint32_t shift) {
  using Wide = unsigned __int128;
  auto definition = definitions.find(id);
  if (definition == definitions.end() || definition->second->op != Op::Named || shift > 62 ||
      getWidth(id) != 64)
    return std::nullopt;
  std::span<const uint32_t> operands = definition->second->operands;
  if (operands.size() != 3 || module.getString(operands[0]) != "mul.hi.u64")
    return std::nullopt;
  Id number = operands[1], other = operands[2];
  if (module.findConstant(number))
    std::swap(number, other);
  const Constant *factor = module.findConstant(other);
  if (!factor || factor->kind != Constant::Kind::Scalar || factor->isSpecialized ||
      getWidth(number) != 64 || factor->bits >> shift < 4)
    return std::nullopt;
  const Wide power = Wide(1) << (64 + shift);
  const Wide divisor = (power + factor->bits - 1) / factor->bits; // less than 2^62
  std::optional<Affine> dividend = getUnsigned(number);
  if (!dividend || getRange(*dividend).min < 0 || divisor * factor->bits - power > Wide(1) << shift)
    return std::nullopt;
  return map.atoms.divide(*dividend, int64_t(divisor));
}

Value Walk::evaluateBits(const Instruction &instruction) {
  Id left = instruction.operands[0], right = instruction.operands[1];
  std::optional<Affine> a = getUnsigned(left), b = getUnsigned(right);
  uint32_t width = getWidth(instruction.result);
  Atoms &atoms = map.atoms;
  auto areApart = [&] {
    return a && b && !(atoms.getBits(*a, getRange(*a)) & atoms.getBits(*b, getRange(*b)));
  };
  switch (instruction.op) {
  case Op::ShiftLeftLogical:
    if (Value value = get(left); value.kind == Value::Kind::Number && b && b->isConstant() &&
                                 b->constant < std::min(width, 62u))
      return makeNumber(*value.number * (int64_t(1) << b->constant));
    break;
  case Op::ShiftRightArithmetic:
    if (!a || getRange(*a).max >> (width - 1))
      break;
    [[fallthrough]];
  case Op::ShiftRightLogical:
    if (a && b && b->isConstant() && b->constant < std::min(width, 62u))
      return makeNumber(atoms.divide(*a, int64_t(1) << b->constant));
    if (b && b->isConstant() && instruction.op == Op::ShiftRightLogical)
      if (std::optional<Affine> quotient = getQuotient(left, uint32_t(b->constant)))
        return makeNumber(*quotient);
    break;
  case Op::BitwiseAnd:
    if (a && a->isConstant()) {
      std::swap(a, b);
      std::swap(left, right);
    }
    // A mask of all bits or none.
    if (Value mask = get(left); mask.kind == Value::Kind::Number && b && b->isConstant())
      if (Interval range = getRange(*mask.number); range.min >= -1 && range.max <= 0)
        return makeNumber(*mask.number * -b->constant);
    if (b && b->isConstant()) {
      auto run = findRun(uint64_t(b->constant));
      if (b->constant == 0)
        return makeNumber({});
      if (a && run && run->first == 0 && run->second <= 62 && getRange(*a).max >> run->second == 0)
        return makeNumber(*a);
      if (a && run && run->second <= 62)
        return makeNumber(atoms.getRest(atoms.divide(*a, int64_t(1) << run->first),
                                        int64_t(1) << (run->second - run->first)) *
                          (int64_t(1) << run->first));
      if (a)
        if (std::optional<Affine> part = getMasked(left, uint64_t(b->constant), width, 0))
          return makeNumber(*part);
      return makeOther({0, b->constant});
    }
    break;
  case Op::BitwiseOr:
    if (a && a->isConstant()) {
      std::swap(a, b);
      std::swap(left, right);
    }
    if (b && b->isConstant() && !areApart())
      if (std::optional<Affine> others = getMasked(left, ~uint64_t(b->constant), width, 0))
        return makeNumber(atoms.joinRests(*others + *b));
    [[fallthrough]];
  case Op::BitwiseXor:
    if (a && a->isConstant())
      std::swap(a, b);
    if (instruction.op == Op::BitwiseXor && a && b && b->isConstant() &&
        !(atoms.getBits(*a, getRange(*a)) & ~uint64_t(b->constant)))
      return makeNumber(*b - *a); // it turns all of the number's bits round
    if (instruction.op == Op::BitwiseXor && a && b && b->isConstant() && b->constant >= 0) {
      // To turn the highest bit of a rest round is to add it, and to take the rest again.
      if (a->terms.size() == 1 && a->constant == 0) {
        auto [number, factor] = a->terms[0];
        const Atom atom = atoms[number];
        if (atom.kind == Atom::Kind::Digit && atom.modulus >= 2 && factor > 0 &&
            !(atom.modulus & (atom.modulus - 1)) && !(factor & (factor - 1)) &&
            b->constant % factor == 0 && b->constant / factor == atom.modulus / 2)
          return makeNumber(
              atoms.getRest(atoms.divide(atom.of, atom.divisor) + Affine::of(atom.modulus / 2),
                            atom.modulus) *
              factor);
      }
      return makeNumber(flip(*a, uint64_t(b->constant)));
    }
    // No common bits: OR and XOR are the sum.
    if (areApart())
      return makeNumber(atoms.joinRests(*a + *b));
    break;
  default:
    break;
  }
  return makeOther(instruction.type);
}
