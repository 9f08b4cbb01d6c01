//===- Trips.cpp - How many trips loops make ------------------------------===//

#include "Walk.h"
#include "weir/CodeProofs/AddressMap.h"

#include <algorithm>
#include <limits>

using namespace weir;
using namespace weir::spv;

/// Follows constants that are added to a phi of a loop's header.
std::optional<Walk::Induction> Walk::findInduction(Id id, const Block &header,
                                                   bool mayTruncate) const {
  Induction found;
  for (int steps = 0; steps < 16; ++steps) {
    auto definition = definitions.find(id);
    if (definition == definitions.end())
      return std::nullopt;
    const Instruction &instruction = *definition->second;
    std::span<const uint32_t> operands = instruction.operands;
    auto getAdded = [&](Id constant) -> std::optional<int64_t> {
      const Constant *number = module.findConstant(constant);
      if (!number || number->kind != Constant::Kind::Scalar || number->isSpecialized)
        return std::nullopt;
      uint32_t unused = 64 - std::max(getWidth(constant), 1u);
      return int64_t(number->bits << unused) >> unused;
    };
    std::optional<int64_t> added;
    switch (instruction.op) {
    case Op::Phi:
      if (&instruction < header.instructions.data() ||
          &instruction >= header.instructions.data() + header.instructions.size())
        return std::nullopt;
      found.phi = &instruction;
      return found;
    case Op::IAdd:
    case Op::ISub: {
      bool isFirst = instruction.op == Op::IAdd && module.findConstant(operands[0]);
      added = getAdded(operands[isFirst ? 0 : 1]);
      if (!added || *added == INT64_MIN ||
          __builtin_add_overflow(found.offset, instruction.op == Op::ISub ? -*added : *added,
                                 &found.offset))
        return std::nullopt;
      id = operands[isFirst ? 1 : 0];
      break;
    }
    case Op::UConvert: // truncation cuts off a multiple of 2^width
      if (!mayTruncate || getWidth(id) > getWidth(operands[0]))
        return std::nullopt;
      [[fallthrough]];
    case Op::CopyObject:
      id = operands[0];
      break;
    default:
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// Returns what a phi of a loop's header is before the loop, and what each trip adds to it.
std::optional<std::pair<Id, int64_t>> Walk::findStep(const Instruction &phi, const Block &header,
                                                     const OpenLoop &loop) const {
  // One edge is from before the loop and one from its end.
  if (phi.op != Op::Phi || phi.operands.size() != 4)
    return std::nullopt;
  size_t before = visitOf[function.getBlock(phi.operands[1])] ? 0 : 2;
  if (visitOf[function.getBlock(phi.operands[3 - before])])
    return std::nullopt;
  std::optional<Induction> next = findInduction(phi.operands[2 - before], header, false);
  if (!next || next->phi != &phi)
    return std::nullopt;
  return std::pair(phi.operands[before], next->offset);
}

/// Returns the trips while a comparison holds whose left operand, or with `isSwapped` right one,
/// grows.
std::optional<Walk::Trips> Walk::compareTrips(Op op, const Instruction &test, bool isSwapped,
                                              const Block &header, const OpenLoop &loop) {
  Id counter = test.operands[isSwapped ? 1 : 0], bound = test.operands[isSwapped ? 0 : 1];
  const uint32_t width = getWidth(counter);
  std::optional<Induction> induction = findInduction(counter, header, true);
  if (!induction || width == 0)
    return std::nullopt;
  auto start = findStep(*induction->phi, header, loop);
  if (!start || start->second == 0 || start->second == INT64_MIN)
    return std::nullopt;
  const auto [firstId, step] = *start;
  const Atoms &atoms = map.atoms;
  Trips trips;
  trips.step = std::abs(step);
  Value first = get(firstId), last = get(bound);
  if (op == Op::INotEqual) {
    // Numbers, or addresses in one variable.
    bool arePointers = first.kind == Value::Kind::Pointer && last.kind == first.kind &&
                       last.root == first.root && last.binding == first.binding &&
                       first.root != Value::Root::Unknown;
    bool areNumbers = first.kind == Value::Kind::Number && last.kind == first.kind;
    if ((!arePointers && !areNumbers) || !first.number || !last.number)
      return std::nullopt;
    Affine distance = *last.number - *first.number - Affine::of(induction->offset);
    std::optional<Affine> positive = wrap(step > 0 ? distance : distance * -1, width, 0);
    if (!positive || positive->constant % trips.step != 0 ||
        std::any_of(positive->terms.begin(), positive->terms.end(),
                    [&](auto term) { return term.second % trips.step != 0; }))
      return std::nullopt;
    trips.distance = *positive;
    return trips;
  }
  if (first.kind != Value::Kind::Number)
    return std::nullopt;
  const bool isSigned = op == Op::SLessThan || op == Op::SLessThanEqual || op == Op::SGreaterThan ||
                        op == Op::SGreaterThanEqual;
  __int128 min = isSigned ? -(__int128(1) << (width - 1)) : 0;
  std::optional<Affine> begin = wrap(*first.number + Affine::of(induction->offset), width, min);
  std::optional<Affine> end = isSigned ? getSigned(bound) : getUnsigned(bound);
  if (!begin || !end)
    return std::nullopt;
  const bool isLess = op == Op::SLessThan || op == Op::ULessThan || op == Op::SLessThanEqual ||
                      op == Op::ULessThanEqual;
  const bool isEqualToo = op == Op::SLessThanEqual || op == Op::ULessThanEqual ||
                          op == Op::SGreaterThanEqual || op == Op::UGreaterThanEqual;
  if (isLess != step > 0)
    return std::nullopt;
  if (isEqualToo)
    end = *end + Affine::of(isLess ? 1 : -1);
  // The number must reach the bound before it begins again from the other end.
  Interval range = atoms.getRange(*end);
  if (isLess ? __int128(range.max) + step > min + (__int128(1) << width)
             : __int128(range.min) + step + 1 < min)
    return std::nullopt;
  trips.distance = isLess ? *end - *begin : *begin - *end;
  return trips;
}

/// Finds how long the test of a loop, at its begin or its end, lets it go on.
std::optional<Walk::Trips> Walk::findTrips(const Block &header, const OpenLoop &loop) {
  const Block &block = loop.test ? function.blocks[*loop.test] : header;
  const Instruction &last = block.instructions.back();
  if (last.op != Op::BranchConditional)
    return std::nullopt;
  bool isNegated = block.successors[0] == loop.merge;
  auto test = definitions.find(last.operands[0]);
  while (test != definitions.end() && test->second->op == Op::LogicalNot) {
    isNegated = !isNegated;
    test = definitions.find(test->second->operands[0]);
  }
  if (test == definitions.end())
    return std::nullopt;
  // A loop of two trips may have a flag instead of a counter.
  if (const Instruction &flag = *test->second; flag.op == Op::Phi && flag.operands.size() == 4) {
    std::optional<Induction> own = findInduction(flag.result, header, false);
    size_t before = visitOf[function.getBlock(flag.operands[1])] ? 0 : 2;
    const Constant *first = module.findConstant(flag.operands[before]),
                   *next = module.findConstant(flag.operands[2 - before]);
    auto isScalar = [](const Constant *constant) {
      return constant && constant->kind == Constant::Kind::Scalar && !constant->isSpecialized;
    };
    if (!own || !isScalar(first) || !isScalar(next) || isNegated == (first->bits != 0) ||
        isNegated != (next->bits != 0))
      return std::nullopt;
    return Trips{Affine::of(1), 1};
  }
  /// A comparison, the one that holds where it does not, and the one with its operands swapped.
  static constexpr std::array<Op, 3> comparisons[] = {
      {Op::ULessThan, Op::UGreaterThanEqual, Op::UGreaterThan},
      {Op::ULessThanEqual, Op::UGreaterThan, Op::UGreaterThanEqual},
      {Op::UGreaterThan, Op::ULessThanEqual, Op::ULessThan},
      {Op::UGreaterThanEqual, Op::ULessThan, Op::ULessThanEqual},
      {Op::SLessThan, Op::SGreaterThanEqual, Op::SGreaterThan},
      {Op::SLessThanEqual, Op::SGreaterThan, Op::SGreaterThanEqual},
      {Op::SGreaterThan, Op::SLessThanEqual, Op::SLessThan},
      {Op::SGreaterThanEqual, Op::SLessThan, Op::SLessThanEqual},
      {Op::IEqual, Op::INotEqual, Op::IEqual},
      {Op::INotEqual, Op::IEqual, Op::INotEqual}};
  auto find = [](Op op) {
    return std::find_if(std::begin(comparisons), std::end(comparisons),
                        [&](const auto &each) { return each[0] == op; });
  };
  auto row = find(test->second->op);
  if (row != std::end(comparisons) && isNegated)
    row = find((*row)[1]);
  if (row == std::end(comparisons) || (*row)[0] == Op::IEqual)
    return std::nullopt;
  if (auto trips = compareTrips((*row)[0], *test->second, false, header, loop))
    return trips;
  return compareTrips((*row)[2], *test->second, true, header, loop);
}

/// Recognises a counted loop by its test. If it is one, makes the numbers that grow in each trip
/// known, and adds the loop's condition to the guards of `inside`.
void Walk::countTrips(const Block &header, OpenLoop &loop, Context &inside) {
  const bool wasCertain = inside.isCertain;
  inside.isCertain = false;
  std::optional<Trips> trips = findTrips(header, loop);
  if (!trips)
    return;
  auto [distance, step] = *trips;
  auto countSteps = [&, step = step](int64_t distance) {
    return (distance <= 0 ? 0 : (distance - 1) / step + 1) + (loop.test ? 1 : 0);
  };
  const Interval range = map.atoms.getRange(distance);
  const int64_t maxTrips = countSteps(range.max);
  // If it is tested later, the first trip runs in any case, and each other one if the test before
  // it says so.
  Affine left = distance - Affine::of(1);
  bool isStated = true;
  if (loop.test) {
    left = left + Affine::of(step);
    std::optional<Interval> range = map.atoms.getRange(left, inside.guards);
    isStated = !range || range->min >= 0;
  }
  map.loops[loop.number].maxTrips = maxTrips;
  map.loops[loop.number].minTrips = countSteps(range.min);
  inside.isCertain = wasCertain && isStated;
  if (maxTrips == 0) {
    inside.guards.push_back(Affine::of(-1));
    return;
  }
  Affine trip = map.atoms.getId(Atom::Kind::Trip, loop.number, maxTrips);
  for (const Instruction &phi : header.instructions)
    if (auto start = findStep(phi, header, loop))
      if (Value value = getUnder(start->first, inside.guards);
          value.number && value.kind != Value::Kind::BuiltIn)
        try {
          value.number = *value.number + trip * start->second;
          define(phi.result, value);
        } catch (TooLarge) {
        }
  for (const Instruction &phi : header.instructions) {
    // In two trips it has two values.
    if (maxTrips != 2 || phi.op != Op::Phi || phi.operands.size() != 4 ||
        values.contains(phi.result))
      continue;
    size_t before = visitOf[function.getBlock(phi.operands[1])] ? 0 : 2;
    Value first = get(phi.operands[before]), next = get(phi.operands[2 - before]);
    if (first.kind == Value::Kind::Number && next.kind == first.kind &&
        first.number->isConstant() && next.number->isConstant())
      define(phi.result,
             makeNumber(*first.number + trip * (next.number->constant - first.number->constant)));
  }
  if (!distance.isConstant() && isStated)
    inside.guards.push_back(left - trip * step);
  if (loop.test)
    loop.left = distance - Affine::of(1) - trip * step;
  if (loop.test && distance.isConstant())
    loop.last = maxTrips - 1; // nothing but the test ends it
}

static constexpr int64_t most = std::numeric_limits<int64_t>::max();

/// Adds or multiplies numbers that are not negative; too large ones become `most`.
static int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? most : sum;
}
static int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? most : product;
}

TripCount spv::getTrips(const AddressMap &map) {
  TripCount total;
  for (const Loop &loop : map.loops) {
    bool isKnown = loop.maxTrips >= 0, isCertain = loop.isInEachTrip && !loop.isIrregular;
    int64_t largest = add(loop.maxTrips, 1), smallest = add(loop.minTrips, 1);
    for (uint32_t number : loop.around) {
      const Loop &outer = map.loops[number];
      isKnown &= outer.maxTrips >= 0;
      isCertain &= outer.isInEachTrip && !outer.isIrregular;
      largest = multiply(largest, std::max<int64_t>(outer.maxTrips, 0));
      smallest = multiply(smallest, outer.minTrips);
    }
    total.max = isKnown && total.max >= 0 ? add(total.max, largest) : -1;
    total.min = isCertain ? add(total.min, smallest) : total.min;
  }
  return total;
}
