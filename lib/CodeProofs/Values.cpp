//===- Values.cpp - Evaluates ids as affine sums --------------------------===//

#include "Walk.h"
#include "weir/CodeProofs/Footprint.h"

#include <algorithm>
#include <limits>

using namespace weir;
using namespace weir::spv;

/// Max number of sums whose digits are looked at together.
static constexpr size_t maxLooks = 256;

static bool isInteger(const Type &type) { return type.kind == Type::Kind::Int; }

Value Walk::makeNumber(const Affine &number) {
  Value value;
  value.kind = Value::Kind::Number;
  value.number = number;
  return value;
}

Value Walk::makeOther(Interval range) { return makeNumber(map.atoms.makeOther(range)); }

Value Walk::makeOther(Id type) {
  isVague = true;
  const Type &made = getLaneType(type);
  if (!isInteger(made) || made.width > 32)
    return {};
  return makeOther({0, (int64_t(1) << made.width) - 1});
}

const Type &Walk::getLaneType(Id id) const {
  const Type &type = module.getType(id);
  return lane && type.kind == Type::Kind::Vector ? module.getType(type.element) : type;
}

uint32_t Walk::getWidth(Id id) const {
  const Type &type = getLaneType(module.getTypeOf(id));
  return isInteger(type) ? type.width : 0;
}

/// Returns `number` reduced modulo 2^width to [min, min + 2^width); none if its range crosses
/// the end of that.
std::optional<Affine> Walk::wrap(const Affine &number, uint32_t width, __int128 min) {
  __int128 period = __int128(1) << width;
  Interval range = getRange(number);
  __int128 turns = (__int128(range.min) - min) / period;
  turns -= (__int128(range.min) - min) % period < 0 ? 1 : 0;
  if (__int128(range.max) - turns * period >= min + period)
    return std::nullopt;
  if (turns == 0)
    return number;
  if (width == 64)
    return std::nullopt; // 2^64 does not fit
  return number - Affine::of(int64_t(turns * period));
}

/// Whether a sum has numbers that may differ in each execution.
bool Walk::hasOthers(const Affine &sum) const {
  return std::any_of(sum.terms.begin(), sum.terms.end(), [&](auto term) {
    const Atom &atom = map.atoms[term.first];
    bool found = atom.kind == Atom::Kind::Other;
    Atoms::forEachInside(atom, [&](const Affine &inner) { found = found || hasOthers(inner); });
    return found;
  });
}

/// Returns the range of a sum; while numbers are refined, under the guards.
Interval Walk::getRange(const Affine &sum) {
  std::optional<Interval> range;
  if (refining)
    range = map.atoms.getRange(sum, *refining);
  if (!range)
    range = map.atoms.getRange(sum);
  // Digits show what they have in common only when all are looked at.
  bool hasDigits = std::any_of(sum.terms.begin(), sum.terms.end(), [&](auto term) {
    return map.atoms[term.first].kind == Atom::Kind::Digit;
  });
  if (range->min >= 0 || !hasDigits || ++looks > maxLooks)
    return *range;
  if (std::optional<Interval> found = map.atoms.findRange(sum))
    range = {std::max(range->min, found->min), std::min(range->max, found->max)};
  if (range->min >= 0)
    return *range;
  MemoryAccess access;
  access.address = sum;
  access.bytes = 1;
  if (refining)
    access.guards = *refining;
  std::optional<Reach> reach = getReach(map, access);
  if (reach && reach->begin < reach->end)
    range = {std::max(range->min, reach->begin), std::min(range->max, reach->end - 1)};
  return *range;
}

/// Evaluates a number again that was not followed where it was computed, since it is used under
/// guards that hold here. The caller restores the values.
void Walk::refine(Id id, std::vector<std::pair<Id, Value>> &before, size_t depth) {
  auto definition = definitions.find(id);
  if (!vague.contains(id) || depth > 16 || before.size() > 64 || !values.contains(id))
    return;
  for (Id part : listParts(id))
    refine(part, before, depth + 1);
  before.emplace_back(id, values[id]);
  auto choice = choices.find(id);
  try {
    values[id] = choice != choices.end()
                     ? get(choice->second ? findSelection(id)->first : findSelection(id)->second)
                     : evaluate(*definition->second);
  } catch (TooLarge) {
  }
}

std::optional<Walk::Selection> Walk::findSelection(Id id) const {
  if (auto join = joins.find(id); join != joins.end())
    return join->second;
  auto definition = definitions.find(id);
  if (definition == definitions.end() || definition->second->op != Op::Select)
    return std::nullopt;
  const std::span<const uint32_t> operands = definition->second->operands;
  return Selection{operands[0], operands[1], operands[2]};
}

/// Returns what a vague number is computed from. A phi is vague only if it is a selection.
std::vector<Id> Walk::listParts(Id id) const {
  if (std::optional<Selection> selection = findSelection(id))
    return {selection->condition, selection->first, selection->second};
  const std::span<const uint32_t> operands = definitions.at(id)->operands;
  return {operands.begin(), operands.end()};
}

/// Collects the selections that a number is made by.
void Walk::findChoices(Id id, std::vector<Id> &found, size_t depth) const {
  if (!vague.contains(id) || depth > 16)
    return;
  if (findSelection(id) && std::find(found.begin(), found.end(), id) == found.end())
    found.push_back(id);
  for (Id part : listParts(id))
    if (found.size() <= maxChoices)
      findChoices(part, found, depth + 1);
}

/// Returns the value of `id`, under guards that hold where it is used.
Value Walk::getUnder(Id id, const std::vector<Affine> &guards) {
  if (!vague.contains(id) || (guards.empty() && choices.empty()))
    return get(id);
  std::vector<std::pair<Id, Value>> before;
  refining = &guards;
  refine(id, before, 0);
  refining = nullptr;
  Value value = get(id);
  for (; !before.empty(); before.pop_back())
    values[before.back().first] = std::move(before.back().second);
  return value;
}

Value Walk::get(Id id) {
  if (const Constant *constant = module.findConstant(id)) {
    if (lane && constant->kind == Constant::Kind::Composite && *lane < constant->parts.size())
      return get(constant->parts[*lane]);
    const Type &type = module.getType(constant->type);
    if (constant->isSpecialized)
      return {};
    if (type.kind == Type::Kind::Bool && constant->kind != Constant::Kind::Undef) {
      Value value;
      value.kind = Value::Kind::Condition;
      if (!constant->bits)
        value.constraints.push_back(Affine::of(-1));
      return value;
    }
    if (!isInteger(type) || constant->kind == Constant::Kind::Undef ||
        constant->kind == Constant::Kind::Composite)
      return {};
    uint32_t unused = 64 - type.width;
    return makeNumber(Affine::of(int64_t(constant->bits << unused) >> unused));
  }
  if (const Variable *variable = module.findVariable(id))
    return getVariable(*variable);
  auto found = values.find(id);
  if (found == values.end() || found->second.kind == Value::Kind::Unknown) {
    auto origin = origins.find(id);
    if (origin == origins.end() || !origin->second)
      return {};
    Value value = get(origin->second); // somewhere in that variable
    value.number.reset();
    return value;
  }
  if (lane && found->second.kind == Value::Kind::BuiltIn)
    return getBuiltIn(found->second.builtIn, *lane);
  if (lane && found->second.kind == Value::Kind::Vector)
    return *lane < found->second.lanes.size() ? found->second.lanes[*lane] : Value();
  return found->second;
}

std::optional<Affine> Walk::getUnsigned(Id id) {
  uint32_t width = getWidth(id);
  Value value = get(id);
  if (width == 0 || value.kind != Value::Kind::Number)
    return std::nullopt;
  return wrap(*value.number, width, 0);
}

std::optional<Affine> Walk::getSigned(Id id) {
  uint32_t width = getWidth(id);
  Value value = get(id);
  if (width == 0 || value.kind != Value::Kind::Number)
    return std::nullopt;
  return wrap(*value.number, width, -(__int128(1) << (width - 1)));
}

/// Returns the value of an integer; if its range crosses the end of its type, the rest modulo
/// 2^width.
std::optional<Affine> Walk::cut(Id id, bool isSigned) {
  const uint32_t width = getWidth(id);
  Value value = get(id);
  std::optional<Affine> number = isSigned ? getSigned(id) : getUnsigned(id);
  if (number || width == 0 || width > 32 || value.kind != Value::Kind::Number ||
      hasOthers(*value.number))
    return number;
  isVague = true; // guards may say that it is in range
  const int64_t period = int64_t(1) << width, min = isSigned ? -(period / 2) : 0;
  Affine shifted = *value.number - Affine::of(min);
  Interval range = map.atoms.getRange(shifted);
  if (range.min < 0)
    shifted = shifted + Affine::of((-range.min - 1) / period + 1) * period;
  return map.atoms.getRest(shifted, period) + Affine::of(min);
}

/// Returns the value of a constant integer that fits into 63 bits unsigned.
std::optional<int64_t> Walk::getConstant(Id id) {
  std::optional<Affine> number = getUnsigned(id);
  if (!number || !number->isConstant())
    return std::nullopt;
  return number->constant;
}

Value Walk::getVariable(const Variable &variable) {
  Value value;
  value.kind = Value::Kind::Pointer;
  value.number = Affine();
  value.pointee = module.getType(variable.type).element;
  switch (variable.storage) {
  case StorageClass::StorageBuffer:
  case StorageClass::Uniform:
    if (variable.binding && variable.set.value_or(0) == 0) {
      value.root = Value::Root::Binding;
      value.binding = *variable.binding;
    }
    break;
  case StorageClass::Workgroup:
    value.root = Value::Root::Shared;
    value.binding = variable.id;
    break;
  case StorageClass::Input:
    value.root = Value::Root::BuiltIn;
    if (variable.builtIn)
      value.builtIn = *variable.builtIn;
    break;
  case StorageClass::Private:
  case StorageClass::Function:
  case StorageClass::PushConstant:
  case StorageClass::UniformConstant:
    value.root = Value::Root::Private;
    break;
  default:
    break;
  }
  return value;
}

/// Returns a component of a built-in vector, or a built-in number.
Value Walk::getBuiltIn(BuiltIn builtIn, uint32_t axis) {
  if (axis > 2)
    return {};
  const std::array<uint32_t, 3> &size = entry.localSize;
  int64_t invocations = int64_t(size[0]) * size[1] * size[2];
  auto id = [&](Atom::Kind kind, uint32_t number, int64_t count) {
    return map.atoms.getId(kind, number, count);
  };
  auto local = [&](uint32_t i) { return id(Atom::Kind::Local, i, size[i]); };
  int64_t subgroups = (invocations + launch.subgroupSize - 1) / launch.subgroupSize;
  switch (builtIn) {
  case BuiltIn::WorkgroupId:
    return makeNumber(id(Atom::Kind::Workgroup, axis, launch.grid[axis]));
  case BuiltIn::LocalInvocationId:
    return makeNumber(local(axis));
  case BuiltIn::GlobalInvocationId:
    return makeNumber(id(Atom::Kind::Workgroup, axis, launch.grid[axis]) * size[axis] +
                      local(axis));
  case BuiltIn::LocalInvocationIndex:
    return makeNumber(local(0) + local(1) * size[0] + local(2) * (int64_t(size[0]) * size[1]));
  case BuiltIn::NumWorkgroups:
    return makeNumber(Affine::of(launch.grid[axis]));
  case BuiltIn::WorkgroupSize:
    return makeNumber(Affine::of(size[axis]));
  case BuiltIn::SubgroupSize:
    return makeNumber(Affine::of(launch.subgroupSize));
  case BuiltIn::NumSubgroups:
    return makeNumber(Affine::of(subgroups));
  case BuiltIn::SubgroupId:
    return makeNumber(id(Atom::Kind::Subgroup, 0, subgroups));
  case BuiltIn::SubgroupLocalInvocationId:
    return makeNumber(id(Atom::Kind::Lane, 0, launch.subgroupSize));
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

Value Walk::evaluateBinary(const Instruction &instruction) {
  Id left = instruction.operands[0], right = instruction.operands[1];
  Value a = get(left), b = get(right);
  bool areNumbers = a.kind == Value::Kind::Number && b.kind == Value::Kind::Number;
  if (origins.contains(instruction.result))
    return addAddresses(instruction, a, b);
  switch (instruction.op) {
  case Op::IAdd:
    return areNumbers ? makeNumber(map.atoms.joinRests(*a.number + *b.number))
                      : makeOther(instruction.type);
  case Op::ISub:
    return areNumbers ? makeNumber(map.atoms.joinRests(*a.number - *b.number))
                      : makeOther(instruction.type);
  case Op::IMul:
    if (areNumbers && b.number->isConstant())
      return makeNumber(*a.number * b.number->constant);
    if (areNumbers && a.number->isConstant())
      return makeNumber(*b.number * a.number->constant);
    return makeOther(instruction.type);
  default:
    break;
  }
  // Division and remainder; signed and unsigned agree for operands that are not negative.
  bool isSigned =
      instruction.op == Op::SDiv || instruction.op == Op::SRem || instruction.op == Op::SMod;
  std::optional<Affine> dividend = isSigned ? getSigned(left) : getUnsigned(left);
  std::optional<int64_t> divisor = getConstant(right);
  uint32_t width = getWidth(left);
  if (!divisor || *divisor < 1 || (isSigned && *divisor >> (width - 1)))
    return makeOther(instruction.type);
  bool isRest = instruction.op != Op::UDiv && instruction.op != Op::SDiv;
  if (!dividend || getRange(*dividend).min < 0)
    return isRest && !isSigned && width <= 32 ? makeOther({0, *divisor - 1})
                                              : makeOther(instruction.type);
  return makeNumber(isRest ? map.atoms.getRest(*dividend, *divisor)
                           : map.atoms.divide(*dividend, *divisor));
}

Value Walk::evaluateComparison(const Instruction &instruction) {
  Id left = instruction.operands[0], right = instruction.operands[1];
  Value condition;
  auto holdsIf = [&](const Affine &constraint) {
    condition.kind = Value::Kind::Condition;
    condition.constraints.push_back(constraint);
  };
  if (getWidth(left) == 0 || getWidth(left) != getWidth(right))
    return {};
  bool isSigned = instruction.op == Op::SLessThan || instruction.op == Op::SLessThanEqual ||
                  instruction.op == Op::SGreaterThan || instruction.op == Op::SGreaterThanEqual;
  std::optional<Affine> a = cut(left, isSigned), b = cut(right, isSigned);
  if (!a || !b)
    return {};
  switch (instruction.op) {
  case Op::UGreaterThan:
  case Op::SGreaterThan:
    std::swap(a, b);
    [[fallthrough]];
  case Op::ULessThan:
  case Op::SLessThan:
    holdsIf(*b - *a - Affine::of(1));
    break;
  case Op::UGreaterThanEqual:
  case Op::SGreaterThanEqual:
    std::swap(a, b);
    [[fallthrough]];
  case Op::ULessThanEqual:
  case Op::SLessThanEqual:
    holdsIf(*b - *a);
    break;
  case Op::IEqual:
    holdsIf(*a - *b);
    holdsIf(*b - *a);
    break;
  case Op::INotEqual: {
    // If one order of the two is impossible, a != b is an inequality.
    Interval range = map.atoms.getRange(*a - *b);
    if (range.min >= 0)
      holdsIf(*a - *b - Affine::of(1));
    else if (range.max <= 0)
      holdsIf(*b - *a - Affine::of(1));
    else if (!hasOthers(*a) && !hasOthers(*b))
      holdsIf(map.atoms.choose({*a - *b, *b - *a}, Affine::of(-1), Affine()));
    break;
  }
  default:
    break;
  }
  return condition;
}

/// Returns 1 if a condition holds, else 0; none if it is not followed.
std::optional<Affine> Walk::getTruth(const Value &condition) {
  if (condition.kind != Value::Kind::Condition)
    return std::nullopt;
  if (condition.constraints.empty())
    return Affine::of(1);
  return map.atoms.choose(condition.constraints, Affine::of(1), Affine());
}

Value Walk::makeCondition(std::vector<Affine> constraints) {
  Value condition;
  condition.kind = Value::Kind::Condition;
  condition.constraints = std::move(constraints);
  return condition;
}

/// Evaluates an operation on conditions.
Value Walk::evaluateLogic(const Instruction &instruction) {
  Value a = get(instruction.operands[0]);
  if (instruction.op == Op::LogicalNot) {
    if (a.kind == Value::Kind::Condition && a.constraints.size() == 1)
      return makeCondition({negate(a.constraints[0])});
    std::optional<Affine> truth = getTruth(a);
    return truth ? makeCondition({*truth * -1}) : Value();
  }
  Value b = get(instruction.operands[1]);
  if (instruction.op == Op::LogicalAnd) {
    if (a.kind != Value::Kind::Condition || b.kind != Value::Kind::Condition)
      return {};
    a.constraints.insert(a.constraints.end(), b.constraints.begin(), b.constraints.end());
    if (a.constraints.size() > 32)
      throw TooLarge();
    return a;
  }
  std::optional<Affine> first = getTruth(a), second = getTruth(b);
  if (!first || !second)
    return {};
  switch (instruction.op) {
  case Op::LogicalOr:
    return makeCondition({*first + *second - Affine::of(1)});
  case Op::LogicalEqual:
    return makeCondition({*first - *second, *second - *first});
  default: {
    Affine excess = *first + *second - Affine::of(1);
    return makeCondition({excess, excess * -1});
  }
  }
}

Value Walk::evaluateSelect(const Selection &selection, Id type) {
  Value condition = get(selection.condition), a = get(selection.first), b = get(selection.second);
  Value other = makeOther(type); // guards, or the choice of each, may say more
  if (a.kind != Value::Kind::Number || b.kind != a.kind)
    return other;
  if (condition.kind == Value::Kind::Condition)
    return makeNumber(map.atoms.choose(condition.constraints, *a.number, *b.number));
  bool areConstant = a.number->isConstant() && b.number->isConstant();
  return areConstant ? makeNumber(*b.number +
                                  map.atoms.makeOther({0, 1}) * (*a.number - *b.number).constant)
                     : other;
}

Value Walk::evaluateGlsl(const Instruction &instruction) {
  Glsl operation = Glsl(instruction.operands[1]);
  bool isMin = operation == Glsl::UMin || operation == Glsl::SMin;
  bool isMax = operation == Glsl::UMax || operation == Glsl::SMax;
  bool isSigned = operation == Glsl::SMin || operation == Glsl::SMax;
  if (module.getInstructionSet(instruction.operands[0]) != "GLSL.std.450" || (!isMin && !isMax) ||
      instruction.operands.size() < 4)
    return makeOther(instruction.type);
  Id left = instruction.operands[2], right = instruction.operands[3];
  std::optional<Affine> a = isSigned ? getSigned(left) : getUnsigned(left),
                        b = isSigned ? getSigned(right) : getUnsigned(right);
  uint32_t width = getWidth(instruction.result);
  if (width == 0)
    return {};
  // The lesser of x and x - c is x modulo c if x is less than 2c: below c, the difference wraps.
  if (operation == Glsl::UMin && width <= 32)
    for (auto [x, y] : {std::pair(left, right), {right, left}}) {
      Value whole = get(x), less = get(y);
      if (whole.kind != Value::Kind::Number || less.kind != Value::Kind::Number)
        continue;
      Affine c = *whole.number - *less.number;
      std::optional<Affine> number = getUnsigned(x);
      if (!c.isConstant() || c.constant < 1 || c.constant >> (width - 1) || !number)
        continue;
      if (getRange(*number).max / 2 < c.constant)
        return makeNumber(map.atoms.getRest(*number, c.constant));
      isVague = true; // guards may say so
    }
  Interval all{0, std::numeric_limits<int64_t>::max()};
  // Unsigned numbers beyond 63 bits do not fit, but a min of two is at most the smaller one.
  if (width == 64 && !isSigned && !(isMin ? a || b : a && b))
    return {};
  if (width < 64)
    all.max = (int64_t(1) << width) - 1;
  if (isSigned)
    all = {std::numeric_limits<int64_t>::min() >> (64 - width),
           std::numeric_limits<int64_t>::max() >> (64 - width)};
  Interval x = a ? getRange(*a) : all, y = b ? getRange(*b) : all;
  if (a && (isMin ? x.max <= y.min : x.min >= y.max))
    return makeNumber(*a);
  if (b && (isMin ? y.max <= x.min : y.min >= x.max))
    return makeNumber(*b);
  if (a && y.min == y.max)
    return makeNumber(map.atoms.clamp(*a, isMin ? Interval{x.min, y.min} : Interval{y.min, x.max}));
  if (b && x.min == x.max)
    return makeNumber(map.atoms.clamp(*b, isMin ? Interval{y.min, x.min} : Interval{x.min, y.max}));
  if (isMin)
    return makeOther({std::min(x.min, y.min), std::min(x.max, y.max)});
  return makeOther({std::max(x.min, y.min), std::max(x.max, y.max)});
}

/// Adds a number to an address, or subtracts it.
Value Walk::addAddresses(const Instruction &instruction, const Value &a, const Value &b) {
  bool isAdd = instruction.op == Op::IAdd;
  bool isFirst = a.kind == Value::Kind::Pointer;
  const Value &address = isFirst ? a : b, &number = isFirst ? b : a;
  if ((!isAdd && (instruction.op != Op::ISub || !isFirst)) ||
      address.kind != Value::Kind::Pointer || origins.contains(instruction.operands[isFirst]))
    return makeOther(instruction.type);
  Value sum = address;
  sum.number.reset();
  if (address.number && number.kind == Value::Kind::Number)
    sum.number = map.atoms.joinRests(isAdd ? *address.number + *number.number
                                           : *address.number - *number.number);
  return sum;
}

/// Makes a pointer of a number. It reaches what is in the state space that it names.
Value Walk::evaluateAddress(const Instruction &instruction) {
  Value value = get(instruction.operands[0]);
  const Type &type = module.getType(instruction.type);
  if (value.kind != Value::Kind::Pointer)
    value = Value();
  value.kind = Value::Kind::Pointer;
  value.pointee = type.element;
  bool isMeant = true;
  switch (type.storage) {
  case StorageClass::Private:
  case StorageClass::UniformConstant:
    value.root = Value::Root::Private;
    break;
  case StorageClass::CrossWorkgroup:
    isMeant = value.root == Value::Root::Binding;
    break;
  case StorageClass::Workgroup:
    isMeant = value.root == Value::Root::Shared;
    break;
  default:
    isMeant = value.root != Value::Root::Private; // it may leave the variable
    break;
  }
  if (!isMeant) {
    value.root = Value::Root::Unknown;
    value.number.reset();
  }
  return value;
}

Value Walk::evaluateChain(const Instruction &instruction) {
  Value value = get(instruction.operands[0]);
  if (value.kind != Value::Kind::Pointer)
    return {};
  value.pointee = module.getType(instruction.type).element;
  if (value.root == Value::Root::BuiltIn) {
    std::optional<int64_t> axis;
    if (instruction.operands.size() == 2)
      axis = getConstant(instruction.operands[1]);
    // Built-ins are whole vectors or their components.
    value.number = axis && *axis < 3 ? std::optional(Affine::of(*axis)) : std::nullopt;
    return value;
  }
  Id at = module.getType(module.getTypeOf(instruction.operands[0])).element;
  std::optional<Affine> address = value.number;
  value.number.reset();
  try {
    address = follow(instruction, at, address);
  } catch (TooLarge) {
    address.reset();
  }
  if (at == value.pointee)
    value.number = address;
  return value;
}

/// Follows the indices of an access chain from type `at`: returns the address, updates `at`.
std::optional<Affine> Walk::follow(const Instruction &chain, Id &at,
                                   std::optional<Affine> address) {
  for (Id index : chain.operands.subspan(1)) {
    const Type &type = module.getType(at);
    std::optional<Affine> number = getSigned(index);
    if (type.kind == Type::Kind::Struct) {
      if (!number || !number->isConstant() || number->constant < 0 ||
          size_t(number->constant) >= type.members.size())
        return std::nullopt;
      if (address)
        address = *address + Affine::of(type.offsets[number->constant]);
      at = type.members[number->constant];
      continue;
    }
    if (type.kind != Type::Kind::Array && type.kind != Type::Kind::RuntimeArray &&
        type.kind != Type::Kind::Vector)
      return std::nullopt;
    if (address && number)
      address = *address + *number * type.stride;
    else
      address.reset();
    at = type.element;
  }
  return address;
}

Value Walk::evaluateLoad(const Instruction &instruction) {
  Value pointer = get(instruction.operands[0]);
  if (pointer.kind == Value::Kind::Pointer && pointer.root == Value::Root::BuiltIn) {
    const Type &type = module.getType(instruction.type);
    const Type &pointee =
        module.getType(module.getType(module.getTypeOf(instruction.operands[0])).element);
    if (type.kind == Type::Kind::Vector && pointee.kind == Type::Kind::Vector) {
      Value value;
      value.kind = Value::Kind::BuiltIn;
      value.builtIn = pointer.builtIn;
      return value;
    }
    if (isInteger(type) && pointer.number)
      return getBuiltIn(pointer.builtIn, uint32_t(pointer.number->constant));
  }
  Value value = makeOther(instruction.type);
  if (value.number)
    for (auto [number, factor] : value.number->terms)
      map.atoms.setLoaded(number);
  return value;
}

Value Walk::evaluate(const Instruction &instruction) {
  const Type &type = module.getType(instruction.type);
  if (type.kind != Type::Kind::Vector || instruction.op == Op::Load)
    return evaluateLane(instruction);
  const Type &element = module.getType(type.element);
  if (!isInteger(element) && element.kind != Type::Kind::Bool)
    return {};
  Value vector;
  vector.kind = Value::Kind::Vector;
  if (instruction.op == Op::CompositeConstruct) {
    // Lanes that are vectors are not followed.
    for (Id part : instruction.operands)
      vector.lanes.push_back(get(part));
    return vector.lanes.size() == size_t(type.count) ? vector : Value();
  }
  for (lane = 0; *lane < uint32_t(type.count); ++*lane)
    try {
      vector.lanes.push_back(evaluateLane(instruction));
    } catch (TooLarge) {
      vector.lanes.emplace_back();
    }
  lane.reset();
  return vector;
}

namespace {
/// Classes of integer instructions that are evaluated alike.
enum class Form { Other, Arithmetic, Bits, Comparison };
} // namespace

static Form getForm(Op op) {
  switch (op) {
  case Op::IAdd:
  case Op::ISub:
  case Op::IMul:
  case Op::UDiv:
  case Op::SDiv:
  case Op::UMod:
  case Op::SRem:
  case Op::SMod:
    return Form::Arithmetic;
  case Op::ShiftLeftLogical:
  case Op::ShiftRightLogical:
  case Op::ShiftRightArithmetic:
  case Op::BitwiseAnd:
  case Op::BitwiseOr:
  case Op::BitwiseXor:
    return Form::Bits;
  case Op::ULessThan:
  case Op::ULessThanEqual:
  case Op::UGreaterThan:
  case Op::UGreaterThanEqual:
  case Op::SLessThan:
  case Op::SLessThanEqual:
  case Op::SGreaterThan:
  case Op::SGreaterThanEqual:
  case Op::IEqual:
  case Op::INotEqual:
    return Form::Comparison;
  default:
    return Form::Other;
  }
}

/// Whether an instruction gives the same value in all executions: it uses only constants, and
/// loads from a uniform address of an operand that this kernel does not write.
bool Walk::isUniform(const Instruction &instruction) {
  std::span<const uint32_t> operands = instruction.operands;
  switch (instruction.op) {
  case Op::ArrayLength: // of a descriptor, which stays as it is
    return true;
  case Op::Load: {
    Value from = get(operands[0]);
    if (writesAnywhere || from.kind != Value::Kind::Pointer || from.root != Value::Root::Binding ||
        !from.number)
      return false;
    for (Id variable : written)
      if (Value to = get(variable); to.kind != Value::Kind::Pointer ||
                                    to.root == Value::Root::Unknown ||
                                    (to.root == Value::Root::Binding && to.binding == from.binding))
        return false;
    return std::all_of(from.number->terms.begin(), from.number->terms.end(),
                       [&](auto term) { return map.atoms.isUniform(term.first); });
  }
  case Op::ExtInst:
    operands = operands.subspan(2);
    break;
  case Op::CompositeExtract:
    operands = operands.first(1);
    break;
  case Op::UConvert:
  case Op::SConvert:
  case Op::Bitcast:
  case Op::CopyObject:
  case Op::Select:
    break;
  default:
    if (getForm(instruction.op) == Form::Other)
      return false;
  }
  return std::all_of(operands.begin(), operands.end(), [&](Id operand) {
    return uniform.contains(operand) || module.findConstant(operand);
  });
}

Value Walk::evaluateLane(const Instruction &instruction) {
  const std::span<const uint32_t> &operands = instruction.operands;
  switch (getForm(instruction.op)) {
  case Form::Arithmetic:
    return evaluateBinary(instruction);
  case Form::Bits:
    return evaluateBits(instruction);
  case Form::Comparison:
    return evaluateComparison(instruction);
  case Form::Other:
    break;
  }
  switch (instruction.op) {
  case Op::Undef:
    return {}; // undefined: a new value at each use
  case Op::Phi: {
    // All ways lead to one number. What comes from a loop's end is not known yet.
    Value first = operands.empty() ? Value() : get(operands[0]);
    bool areSame =
        first.number && (first.kind == Value::Kind::Number || first.kind == Value::Kind::Pointer);
    for (size_t i = 2; areSame && i < operands.size(); i += 2) {
      Value other = get(operands[i]);
      areSame = other.kind == first.kind && other.number == first.number &&
                other.root == first.root && other.binding == first.binding;
    }
    if (areSame && !hasOthers(*first.number))
      return first;
    const std::optional<Selection> selection = findSelection(instruction.result);
    return selection ? evaluateSelect(*selection, instruction.type) : makeOther(instruction.type);
  }
  case Op::Load:
    return evaluateLoad(instruction);
  case Op::AccessChain:
  case Op::InBoundsAccessChain:
    return evaluateChain(instruction);
  case Op::CompositeExtract:
    if (Value whole = get(operands[0]); operands.size() == 2) {
      if (whole.kind == Value::Kind::BuiltIn)
        return getBuiltIn(whole.builtIn, operands[1]);
      if (whole.kind == Value::Kind::Vector && operands[1] < whole.lanes.size())
        return whole.lanes[operands[1]];
    }
    if (const Constant *constant = module.findConstant(operands[0]);
        constant && constant->kind == Constant::Kind::Composite && operands.size() == 2 &&
        operands[1] < constant->parts.size())
      return get(constant->parts[operands[1]]);
    return makeOther(instruction.type);
  case Op::CopyObject:
  case Op::ConvertPtrToU:
    return get(operands[0]);
  case Op::ConvertUToPtr:
    return evaluateAddress(instruction);
  case Op::UConvert:
  case Op::SConvert: {
    // Only extension changes the number: truncation cuts off a multiple of 2^width.
    uint32_t from = getWidth(operands[0]), to = getWidth(instruction.result);
    if (from == 0 || to == 0)
      return {};
    std::optional<Affine> number;
    if (from <= to)
      number = cut(operands[0], instruction.op == Op::SConvert);
    else if (Value value = get(operands[0]); value.kind == Value::Kind::Number)
      number = value.number;
    return number ? makeNumber(*number) : makeOther(instruction.type);
  }
  case Op::Bitcast:
    if (uint32_t width = getWidth(operands[0]); width && width == getWidth(instruction.result))
      if (Value value = get(operands[0]); value.kind == Value::Kind::Number)
        return value;
    return makeOther(instruction.type);
  case Op::Select:
    return evaluateSelect(*findSelection(instruction.result), instruction.type);
  case Op::LogicalAnd:
  case Op::LogicalOr:
  case Op::LogicalEqual:
  case Op::LogicalNotEqual:
  case Op::LogicalNot:
    return evaluateLogic(instruction);
  case Op::ExtInst:
    return evaluateGlsl(instruction);
  case Op::Named:
    if (std::optional<Affine> quotient = getQuotient(instruction.result, 0))
      return makeNumber(*quotient);
    return makeOther(instruction.type);
  default:
    return makeOther(instruction.type);
  }
}
