//===- Values.cpp - Integers that a kernel computes -----------------------===//

#include "Tracer.h"

#include <algorithm>

using namespace weir;
using namespace weir::mutate;
using namespace weir::spv;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Tracer::Tracer(const Module &module, const std::string &entryPoint,
               const std::array<int64_t, 3> &grid, uint32_t subgroupSize, uint32_t bindings,
               const std::string &where, bool countsChosen)
    : module(module), where(where), countsChosen(countsChosen),
      entry(module.findEntryPoint(entryPoint)),
      grid{uint32_t(grid[0]), uint32_t(grid[1]), uint32_t(grid[2])}, subgroupSize(subgroupSize),
      values(module.getBound()), pointers(module.getBound()), isConstant(module.getBound()) {
  if (!entry)
    throw Error(where + ": has no entry point \"" + entryPoint + "\"");
  for (uint32_t axis : entry->localSize)
    size *= axis;
  isText = where.ends_with(".ptx"); // its words have lines
  for (const Block &block : module.getFunction(entry->function).blocks)
    for (const Instruction &instruction : block.instructions)
      hasWarpBarriers |= instruction.op == Op::NamedEffect &&
                         module.getString(instruction.operands[0]).starts_with("bar.warp.sync");
  findSums();
  result.bindings = bindings;
  uint32_t variables = bindings;
  result.alignments.assign(bindings, 1);
  for (const Variable &variable : module.getVariables()) {
    Pointer &pointer = pointers[variable.id];
    switch (variable.storage) {
    case StorageClass::Input:
      pointer = {Pointer::Kind::Input, variable.id};
      break;
    case StorageClass::StorageBuffer:
      if (variable.set.value_or(isText ? 0 : 1) != 0 ||
          variable.binding.value_or(bindings) >= bindings)
        throw Error(where + ": has a buffer that is not an operand in the plan");
      pointer = {Pointer::Kind::Buffer, *variable.binding};
      break;
    case StorageClass::Workgroup:
      pointer = {Pointer::Kind::Workgroup, variables++};
      sizes.push_back(module.getType(module.getType(variable.type).element).bytes);
      break;
    case StorageClass::Private:
      pointer = {Pointer::Kind::Own, variable.id};
      break;
    default:
      throw Error(where + ": has a variable of another kind than buffers, workgroup memory and "
                          "an invocation's own");
    }
  }
}

std::string Tracer::describe(const Instruction &instruction) const {
  bool isNamed = instruction.op == Op::Named || instruction.op == Op::NamedEffect;
  std::string name = isNamed ? module.getString(instruction.operands[0]) : getName(instruction.op);
  return name + (isText ? " in line " + std::to_string(instruction.source.line)
                        : " at word " + std::to_string(instruction.word));
}

uint32_t Tracer::getWidth(Id id) const {
  const Type &type = module.getType(id);
  if (type.kind == Type::Kind::Vector)
    return getWidth(type.element);
  return type.kind == Type::Kind::Bool ? 1 : type.kind == Type::Kind::Int ? type.width : 0;
}

const Value &Tracer::use(Id id) {
  if (id >= values.size())
    throw Error(where + ": uses id " + std::to_string(id) + ", which is beyond its bound");
  Value &value = values[id];
  if (isConstant[id])
    return value;
  const Constant *constant = module.findConstant(id);
  if (!constant)
    return value;
  isConstant[id] = true;
  if (getWidth(constant->type) == 0 || constant->isSpecialized)
    return value; // not integers: unknown
  if (constant->kind == Constant::Kind::Composite) {
    for (size_t i = 0; i < std::min<size_t>(4, constant->parts.size()); ++i)
      value.set(i, use(constant->parts[i]).get(0));
  } else if (constant->kind != Constant::Kind::Undef) {
    for (size_t i = 0; i < 4; ++i)
      value.set(i, constant->bits); // a null has zeros
  }
  return value;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void Tracer::readBuiltIn(const Variable &variable, Value &value) const {
  const std::array<uint32_t, 3> &local = entry->localSize;
  std::array<uint32_t, 3> id = {invocation % local[0], invocation / local[0] % local[1],
                                invocation / local[0] / local[1]};
  std::array<uint32_t, 3> group = {workgroup % grid[0], workgroup / grid[0] % grid[1],
                                   workgroup / grid[0] / grid[1]};
  switch (variable.builtIn.value_or(BuiltIn(0))) {
  case BuiltIn::NumWorkgroups:
    for (size_t i = 0; i < 3; ++i)
      value.set(i, grid[i]);
    return;
  case BuiltIn::WorkgroupId:
    for (size_t i = 0; i < 3; ++i)
      value.set(i, group[i]);
    return;
  case BuiltIn::LocalInvocationId:
    for (size_t i = 0; i < 3; ++i)
      value.set(i, id[i]);
    return;
  case BuiltIn::GlobalInvocationId:
    for (size_t i = 0; i < 3; ++i)
      value.set(i, uint32_t(group[i] * local[i] + id[i]));
    return;
  case BuiltIn::LocalInvocationIndex:
    return value.set(0, invocation);
  case BuiltIn::SubgroupSize:
    return value.set(0, subgroupSize);
  case BuiltIn::NumSubgroups:
    return value.set(0, (size + subgroupSize - 1) / subgroupSize);
  case BuiltIn::SubgroupId:
    return value.set(0, invocation / subgroupSize);
  case BuiltIn::SubgroupLocalInvocationId:
    return value.set(0, invocation % subgroupSize);
  default:
    return;
  }
}

/// Returns the result of an instruction of PTX that has no opcode; none for floats.
std::optional<uint64_t> Tracer::computeNamed(const Instruction &instruction, uint32_t width) {
  const std::string &name = module.getString(instruction.operands[0]);
  if (instruction.operands.size() != 3)
    return std::nullopt;
  auto first = use(instruction.operands[1]).get(0), second = use(instruction.operands[2]).get(0);
  if (!first || !second)
    return std::nullopt;
  int64_t a = extend(*first, width);
  if (name == "mul.hi.u64")
    return uint64_t((unsigned __int128)(*first) * *second >> 64);
  if (name == "mul.hi.s64")
    return uint64_t(__int128(a) * int64_t(*second) >> 64);
  // PTX clamps what it shifts by.
  uint64_t by = std::min<uint64_t>(*second, width);
  if (name.starts_with("shl."))
    return by == width ? 0 : cut(*first << by, width);
  if (name.starts_with("shr.s"))
    return cut(uint64_t(a >> std::min<uint64_t>(by, width - 1)), width);
  if (name.starts_with("shr."))
    return by == width ? 0 : *first >> by;
  return std::nullopt;
}

/// Whether all operands are numbers of which each may be one of two.
static bool mayChoose(Op op) {
  switch (op) {
  case Op::IAdd:
  case Op::ISub:
  case Op::IMul:
  case Op::UConvert:
  case Op::SConvert:
  case Op::ShiftLeftLogical:
  case Op::BitwiseAnd:
  case Op::BitwiseOr:
    return true;
  default:
    return false;
  }
}

/// Computes a result, in both ways if a selection that data decide leads to it.
void Tracer::compute(const Instruction &instruction) {
  Value &result = values[instruction.result];
  uint32_t choice = 0;
  bool isOne = true; // whether only one selection does
  if (mayChoose(instruction.op))
    for (Id operand : instruction.operands) {
      uint32_t each = use(operand).choice;
      isOne &= !each || !choice || each == choice;
      choice = each ? each : choice;
    }
  if (!choice || !isOne)
    return void(result = evaluate(instruction));
  std::map<Id, Value> before;
  for (Id operand : instruction.operands)
    before[operand] = values[operand];
  std::array<Value, 2> ways;
  for (bool isOther : {false, true}) {
    for (const auto &[operand, value] : before)
      values[operand] = value.choose(isOther);
    ways[isOther] = evaluate(instruction);
  }
  for (const auto &[operand, value] : before)
    values[operand] = value;
  result = ways[0];
  if (auto other = ways[1].get(0); other && result.get(0)) {
    result.choice = choice;
    result.other = *other;
  } else {
    result = Value();
  }
}

Value Tracer::evaluate(const Instruction &instruction) {
  uint32_t width = getWidth(instruction.type);
  Value value;
  auto at = [&](size_t i) -> const Value & { return use(instruction.operands[i]); };
  auto widthAt = [&](size_t i) { return getWidth(module.getTypeOf(instruction.operands[i])); };
  if (!width) // floats
    return value;
  switch (instruction.op) {
  case Op::Named:
    value.set(0, computeNamed(instruction, width));
    break;
  case Op::ConvertPtrToU:
    value.set(0, cut(getAddress(instruction.operands[0]), width));
    break;
  case Op::CompositeExtract:
    if (instruction.operands.size() == 2 && instruction.operands[1] < 4)
      value.set(0, at(0).get(instruction.operands[1]));
    break;
  case Op::CompositeConstruct:
    for (size_t i = 0; i < std::min<size_t>(4, instruction.operands.size()); ++i)
      if (module.getType(module.getTypeOf(instruction.operands[i])).kind != Type::Kind::Vector)
        value.set(i, at(i).get(0));
      else
        return Value();
    break;
  case Op::CopyObject:
    value = at(0);
    break;
  case Op::UConvert:
  case Op::SConvert:
  case Op::Bitcast:
    for (size_t i = 0; i < 4; ++i)
      if (auto number = at(0).get(i); number && widthAt(0)) {
        bool isSigned = instruction.op == Op::SConvert;
        if (instruction.op != Op::Bitcast || widthAt(0) == width)
          value.set(i, cut(isSigned ? uint64_t(extend(*number, widthAt(0))) : *number, width));
      }
    break;
  case Op::SNegate:
  case Op::Not:
  case Op::LogicalNot:
    for (size_t i = 0; i < 4; ++i)
      if (auto number = at(0).get(i))
        value.set(i, cut(instruction.op == Op::SNegate ? -*number : ~*number, width));
    break;
  case Op::Select: {
    bool isVector =
        module.getType(module.getTypeOf(instruction.operands[0])).kind == Type::Kind::Vector;
    for (size_t i = 0; i < 4; ++i) {
      auto condition = at(0).get(isVector ? i : 0);
      auto a = at(1).get(i), b = at(2).get(i);
      value.set(i, condition ? (*condition ? a : b) : a == b ? a : std::nullopt);
    }
    if (auto a = at(1).get(0), b = at(2).get(0); isText && a && b && a != b && !at(0).get(0)) {
      value.set(0, a);
      value.choice = ++choices;
      value.other = *b;
    }
    break;
  }
  case Op::ExtInst:
    if (instruction.operands.size() > 2 &&
        module.getInstructionSet(instruction.operands[0]) == "GLSL.std.450")
      for (size_t i = 0; i < 4; ++i) {
        auto a = at(2).get(i), b = instruction.operands.size() > 3 ? at(3).get(i) : a;
        auto number =
            a && b ? computeGlsl(Glsl(instruction.operands[1]), *a, *b, width) : std::nullopt;
        value.set(i, number ? std::optional(cut(*number, width)) : std::nullopt);
      }
    break;
  default:
    if (instruction.operands.size() == 2 && widthAt(0))
      for (size_t i = 0; i < 4; ++i) {
        auto a = at(0).get(i), b = at(1).get(i);
        auto number = a && b ? computeBinary(instruction.op, *a, *b, widthAt(0)) : std::nullopt;
        value.set(i, number ? std::optional(cut(*number, width)) : std::nullopt);
      }
    break;
  }
  return value;
}
