//===- Decode.cpp - Instructions to steps ---------------------------------===//
//
// Every operand's type is checked here, so that steps need not: whatever passes
// executes without looking outside of registers.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"
#include "Subgroup.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

/// Beyond these a kernel is none of ours; they bound what words can ask for.
static constexpr size_t mostScalars = 4096;              ///< of one value
static constexpr uint32_t mostRegisterBytes = 256 << 20; ///< of one subgroup
static constexpr int64_t mostLocalBytes = 64 << 20;      ///< of private or workgroup memory
static constexpr size_t mostSites = 65000;

namespace {
/// A scalar inside a type, and where it lies in memory.
struct Scalar {
  Type::Kind kind = Type::Kind::Int; ///< Bool, Int, Float
  uint32_t width = 32;               ///< 32 for Bool
  int64_t offset = 0;

  bool isWide() const { return width == 64; }
  bool isNarrow() const { return width < 32; }
};

struct Value {
  Id type = 0;
  std::vector<Register> scalars;
};

/// What an access chain leads to.
struct Place {
  Space space = Space::Storage;
  bool isInput = false;
  std::vector<Register> inputs; ///< isInput: the scalars
  uint32_t binding = 0;
  int64_t begin = 0, end = 0; ///< of the variable in its space; not for Storage
  Id type = 0;
  int64_t offset = 0;
  Register dynamic = noRegister;
  int64_t stride = 0; ///< greatest common divisor of the dynamic strides
};

class Decoder {
public:
  Decoder(const Module &module, const DecodeOptions &options, const std::string &where)
      : module(module), options(options), where(where) {
    program.subgroupSize = options.subgroupSize;
    program.width = (options.subgroupSize + 7) / 8 * 8;
  }
  Program decode(const std::string &entryPoint);

private:
  [[noreturn]] void fail(const Instruction &instruction, const std::string &problem) const {
    module.fail(instruction.word, std::string(getName(instruction.op)) + " " + problem);
  }
  void need(const Instruction &instruction, bool holds, const char *problem) const {
    if (!holds)
      fail(instruction, problem);
  }

  const std::vector<Scalar> &getScalars(Id type);
  void collectScalars(Id type, int64_t offset, std::vector<Scalar> &scalars);
  Register makeRegister(bool isWide);
  Value makeValue(Id type);
  void preset(Register to, const Scalar &scalar, uint64_t bits);
  const Value &getConstantValue(Id id);
  void fillConstant(Id id, std::vector<uint64_t> &bits);
  const Value &use(const Instruction &instruction, size_t operand);
  const Value &useAs(const Instruction &instruction, size_t operand, Id type);
  uint32_t useConstant(const Instruction &instruction, size_t operand);
  const Value &define(const Instruction &instruction, std::vector<Register> scalars);

  Step &emit(StepFunction run, Register to, Register a, Register b = 0, Register c = 0,
             int64_t number = 0);
  Register convert(Convert convert, bool isWide, Register a, int64_t number = 0);
  Register widen(const Scalar &scalar, Register value, bool isSigned, bool toDouble);
  Register narrow(const Scalar &scalar, Register value, bool isDouble);
  template <typename Opcode>
  Register compute(const Instruction &instruction, Opcode op, const Scalar &result,
                   const Scalar &operand, std::span<const Register> operands, bool isSigned);

  void declareVariables();
  void declareInput(const Variable &variable);
  Place placeLocal(Id pointerType, Space space, int64_t &bytes);
  void orderBlocks(const Function &function);
  void decodeBlock(const Block &block);
  void decodeEdges(const Block &block, CodeBlock &code);
  Edge decodeEdge(const Block &from, uint32_t to);
  void decodeInstruction(const Instruction &instruction);
  void decodeArithmetic(const Instruction &instruction);
  void decodeExtended(const Instruction &instruction);
  void decodeWithCarry(const Instruction &instruction);
  void decodeConversion(const Instruction &instruction);
  void decodeBitcast(const Instruction &instruction);
  void decodeSelect(const Instruction &instruction);
  void decodeComposite(const Instruction &instruction);
  void decodeDynamic(const Instruction &instruction);
  void decodeAccessChain(const Instruction &instruction);
  void decodeAccess(const Instruction &instruction);
  void decodeBarrier(const Instruction &instruction);
  void decodeShuffle(const Instruction &instruction);
  /// The scalars of a member, as literals name it.
  std::pair<size_t, Id> findMember(const Instruction &instruction, Id type, size_t firstLiteral);
  const Place &getPlace(const Instruction &instruction, Id pointer);

  const Module &module;
  DecodeOptions options;
  std::string where;
  Program program;
  std::unordered_map<Id, std::vector<Scalar>> scalarsOf;
  std::unordered_map<Id, Value> values;
  std::unordered_map<Id, Place> places;
  const Function *function = nullptr;
  std::vector<uint32_t> order;      ///< blocks as the program has them
  std::vector<uint32_t> positionOf; ///< by number of block; ~0 when never reached
};
} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void Decoder::collectScalars(Id id, int64_t offset, std::vector<Scalar> &scalars) {
  const Type &type = module.getType(id);
  if (scalars.size() > mostScalars)
    throw Error(where + ": a value has more than " + std::to_string(mostScalars) + " scalars");
  switch (type.kind) {
  case Type::Kind::Bool:
    scalars.push_back({type.kind, 32, offset});
    break;
  case Type::Kind::Int:
  case Type::Kind::Float:
    scalars.push_back({type.kind, type.width, offset});
    break;
  case Type::Kind::Vector:
  case Type::Kind::Array:
    if (scalars.size() + type.count > mostScalars)
      throw Error(where + ": a value has more than " + std::to_string(mostScalars) + " scalars");
    for (uint32_t i = 0; i < type.count; ++i)
      collectScalars(type.element, offset + i * type.stride, scalars);
    break;
  case Type::Kind::Struct:
    for (size_t i = 0; i < type.members.size(); ++i)
      collectScalars(type.members[i], offset + type.offsets[i], scalars);
    break;
  default:
    throw Error(where + ": %" + std::to_string(id) +
                " is used as the type of a value, but is none");
  }
}

const std::vector<Scalar> &Decoder::getScalars(Id type) {
  auto [found, isNew] = scalarsOf.try_emplace(type);
  if (isNew)
    collectScalars(type, 0, found->second);
  return found->second;
}

Register Decoder::makeRegister(bool isWide) {
  Register made = program.registerBytes;
  program.registerBytes += program.width * (isWide ? 8 : 4);
  // 64-bit registers stay aligned: the width is a multiple of eight.
  if (program.registerBytes > mostRegisterBytes)
    throw Error(where + ": needs more than " + std::to_string(mostRegisterBytes) +
                " bytes of registers, more than the simulator has");
  return made;
}

Value Decoder::makeValue(Id type) {
  Value value{type, {}};
  for (const Scalar &scalar : getScalars(type))
    value.scalars.push_back(makeRegister(scalar.isWide()));
  return value;
}

void Decoder::preset(Register to, const Scalar &scalar, uint64_t bits) {
  program.constants.push_back({to, scalar.isWide(), bits});
}

void Decoder::fillConstant(Id id, std::vector<uint64_t> &bits) {
  const Constant &constant = module.getConstant(id);
  if (constant.kind == Constant::Kind::Scalar) {
    bits.push_back(constant.bits);
  } else if (constant.kind == Constant::Kind::Composite) {
    for (Id part : constant.parts)
      fillConstant(part, bits);
  } else {
    // What is undefined shows: NaNs, and integers of ones.
    for (const Scalar &scalar : getScalars(constant.type)) {
      uint64_t ones = scalar.isWide() ? ~uint64_t(0) : (uint64_t(1) << scalar.width) - 1;
      bool isUndef = constant.kind == Constant::Kind::Undef && scalar.kind != Type::Kind::Bool;
      bits.push_back(isUndef ? ones : 0);
    }
  }
}

const Value &Decoder::getConstantValue(Id id) {
  if (auto found = values.find(id); found != values.end())
    return found->second;
  Id type = module.getConstant(id).type;
  const std::vector<Scalar> &scalars = getScalars(type); // bounds what is filled
  std::vector<uint64_t> bits;
  fillConstant(id, bits);
  Value value = makeValue(type);
  for (size_t i = 0; i < scalars.size(); ++i)
    preset(value.scalars[i], scalars[i], bits[i]);
  return values.emplace(id, std::move(value)).first->second;
}

const Value &Decoder::use(const Instruction &instruction, size_t operand) {
  need(instruction, operand < instruction.operands.size(), "has too few operands");
  Id id = instruction.operands[operand];
  if (module.findConstant(id))
    return getConstantValue(id);
  auto found = values.find(id);
  if (found == values.end())
    fail(instruction, "uses %" + std::to_string(id) + ", which is no value that is made before");
  return found->second;
}

const Value &Decoder::useAs(const Instruction &instruction, size_t operand, Id type) {
  const Value &value = use(instruction, operand);
  need(instruction, value.type == type, "has an operand of another type");
  return value;
}

uint32_t Decoder::useConstant(const Instruction &instruction, size_t operand) {
  need(instruction, operand < instruction.operands.size(), "has too few operands");
  const Constant *constant = module.findConstant(instruction.operands[operand]);
  need(instruction, constant && constant->kind == Constant::Kind::Scalar,
       "needs a constant for a scope or semantics");
  return uint32_t(constant->bits);
}

const Value &Decoder::define(const Instruction &instruction, std::vector<Register> scalars) {
  need(instruction, scalars.size() == getScalars(instruction.type).size(),
       "makes more or fewer scalars than its type has");
  return values[instruction.result] = {instruction.type, std::move(scalars)};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Step &Decoder::emit(StepFunction run, Register to, Register a, Register b, Register c,
                    int64_t number) {
  return program.steps.emplace_back(Step{run, to, a, b, c, number});
}

Register Decoder::convert(Convert kind, bool isWide, Register a, int64_t number) {
  Register to = makeRegister(isWide);
  emit(getStep(kind), to, a, 0, 0, number);
  return to;
}

/// A value of fewer than 32 bits as arithmetic takes it.
Register Decoder::widen(const Scalar &scalar, Register value, bool isSigned, bool toDouble) {
  if (!scalar.isNarrow() || scalar.kind == Type::Kind::Bool)
    return value;
  if (scalar.kind == Type::Kind::Float)
    return convert(toDouble ? Convert::HalfToF64 : Convert::HalfToF32, toDouble, value);
  return isSigned ? convert(Convert::SignExtend, false, value, scalar.width) : value;
}

/// The way back.
Register Decoder::narrow(const Scalar &scalar, Register value, bool isDouble) {
  if (!scalar.isNarrow() || scalar.kind == Type::Kind::Bool)
    return value;
  if (scalar.kind == Type::Kind::Float)
    return convert(isDouble ? Convert::F64ToHalf : Convert::F32ToHalf, false, value);
  return convert(Convert::Mask, false, value, scalar.width);
}

static Number getNumber(const Scalar &scalar, bool halfAsDouble) {
  if (scalar.kind == Type::Kind::Float)
    return scalar.isWide() || (scalar.isNarrow() && halfAsDouble) ? Number::F64 : Number::F32;
  return scalar.isWide() ? Number::U64 : Number::U32;
}

/// One scalar of an operation whose operands are all of one type.
template <typename Opcode>
Register Decoder::compute(const Instruction &instruction, Opcode op, const Scalar &result,
                          const Scalar &operand, std::span<const Register> operands,
                          bool isSigned) {
  // A product of halves and a half fit a double, so an fma of them is rounded once.
  bool asDouble = false;
  if constexpr (std::is_same_v<Opcode, Glsl>)
    asDouble = op == Glsl::Fma && operand.isNarrow();
  StepFunction run = findStep(op, getNumber(operand, asDouble));
  need(instruction, run, "has operands for which the simulator does not know it");
  Register wide[3] = {0, 0, 0};
  for (size_t i = 0; i < operands.size(); ++i)
    wide[i] = widen(operand, operands[i], isSigned, asDouble);
  bool isFloat = result.kind == Type::Kind::Float;
  Register to = makeRegister(result.isWide() || (isFloat && result.isNarrow() && asDouble));
  emit(run, to, wide[0], wide[1], wide[2]);
  return narrow(result, to, asDouble);
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

Place Decoder::placeLocal(Id pointerType, Space space, int64_t &bytes) {
  Place place;
  place.space = space;
  place.type = module.getType(pointerType).element;
  const Type &type = module.getType(place.type);
  constexpr int64_t alignment = 16;
  place.begin = place.offset = (bytes + alignment - 1) / alignment * alignment;
  place.end = bytes = place.begin + type.bytes;
  if (bytes > mostLocalBytes)
    throw Error(where + ": has more than " + std::to_string(mostLocalBytes) +
                " bytes of variables in private or workgroup memory, more than the simulator has");
  return place;
}

void Decoder::declareInput(const Variable &variable) {
  if (!variable.builtIn)
    throw Error(where + ": input %" + std::to_string(variable.id) + " is no builtin");
  Place place;
  place.isInput = true;
  place.type = module.getType(variable.type).element;
  const std::vector<Scalar> &scalars = getScalars(place.type);
  bool isVector = false;
  switch (*variable.builtIn) {
  case BuiltIn::NumWorkgroups:
  case BuiltIn::WorkgroupId:
  case BuiltIn::LocalInvocationId:
  case BuiltIn::GlobalInvocationId:
    isVector = true;
    break;
  case BuiltIn::LocalInvocationIndex:
  case BuiltIn::SubgroupSize:
  case BuiltIn::NumSubgroups:
  case BuiltIn::SubgroupId:
  case BuiltIn::SubgroupLocalInvocationId:
    break;
  default:
    throw Error(where + ": builtin " + std::to_string(uint32_t(*variable.builtIn)) +
                " is not known to the simulator");
  }
  bool fits = scalars.size() == (isVector ? 3 : 1);
  for (const Scalar &scalar : scalars)
    fits &= scalar.kind == Type::Kind::Int && scalar.width == 32;
  if (!fits)
    throw Error(where + ": builtin " + std::to_string(uint32_t(*variable.builtIn)) +
                " has not the type that it should have");
  for (uint32_t i = 0; i < scalars.size(); ++i) {
    place.inputs.push_back(makeRegister(false));
    program.builtIns.push_back({*variable.builtIn, i, place.inputs.back()});
  }
  places[variable.id] = std::move(place);
}

void Decoder::declareVariables() {
  for (const Variable &variable : module.getVariables()) {
    std::string name = "variable %" + std::to_string(variable.id);
    if (variable.initializer && variable.storage != StorageClass::Input)
      throw Error(where + ": " + name + " has an initializer, which the simulator does not know");
    switch (variable.storage) {
    case StorageClass::Input:
      declareInput(variable);
      break;
    case StorageClass::Workgroup:
      places[variable.id] = placeLocal(variable.type, Space::Workgroup, program.workgroupBytes);
      break;
    case StorageClass::Private:
      places[variable.id] = placeLocal(variable.type, Space::Private, program.privateBytes);
      break;
    case StorageClass::StorageBuffer: {
      if (variable.set != 0u || !variable.binding)
        throw Error(where + ": storage buffer %" + std::to_string(variable.id) +
                    " has no binding in set 0");
      Place place;
      place.binding = *variable.binding;
      place.type = module.getType(variable.type).element;
      places[variable.id] = place;
      break;
    }
    default:
      throw Error(where + ": " + name + " is in storage class " +
                  std::to_string(uint32_t(variable.storage)) +
                  ", which the simulator does not know");
    }
  }
}

const Place &Decoder::getPlace(const Instruction &instruction, Id pointer) {
  auto found = places.find(pointer);
  if (found == places.end())
    fail(instruction, "uses %" + std::to_string(pointer) +
                          " as a pointer, which is neither a variable nor an access chain");
  return found->second;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Depth first, merges before continue targets before successors, then reversed: so
/// a merge comes behind all that it merges.
void Decoder::orderBlocks(const Function &function) {
  size_t count = function.blocks.size();
  std::vector<bool> isReached(count, false);
  std::vector<uint32_t> work = {0};
  isReached[0] = true;
  while (!work.empty()) {
    uint32_t block = work.back();
    work.pop_back();
    for (uint32_t next : function.blocks[block].successors)
      if (!isReached[next]) {
        isReached[next] = true;
        work.push_back(next);
      }
  }
  struct Visit {
    uint32_t block;
    std::vector<uint32_t> children;
    size_t next;
  };
  std::vector<Visit> stack;
  std::vector<bool> isVisited(count, false);
  auto visit = [&](uint32_t number) {
    if (!isReached[number] || isVisited[number])
      return;
    isVisited[number] = true;
    const Block &block = function.blocks[number];
    std::vector<uint32_t> children;
    if (block.merge)
      children.push_back(function.getBlock(block.merge));
    if (block.continueTarget)
      children.push_back(function.getBlock(block.continueTarget));
    children.insert(children.end(), block.successors.rbegin(), block.successors.rend());
    stack.push_back({number, std::move(children), 0});
  };
  visit(0);
  while (!stack.empty()) {
    Visit &top = stack.back();
    if (top.next == top.children.size()) {
      order.push_back(top.block);
      stack.pop_back();
      continue;
    }
    visit(top.children[top.next++]);
  }
  std::reverse(order.begin(), order.end());
  positionOf.assign(count, ~uint32_t(0));
  for (uint32_t i = 0; i < order.size(); ++i)
    positionOf[order[i]] = i;
}

/// Copies for the phis of a block, all reads before all writes.
Edge Decoder::decodeEdge(const Block &from, uint32_t to) {
  Edge edge;
  edge.block = positionOf[to];
  edge.firstStep = uint32_t(program.steps.size());
  std::vector<std::pair<Register, Register>> copies[2]; // 32 and 64 bits: to, from
  for (const Instruction &phi : function->blocks[to].instructions) {
    if (phi.op != Op::Phi)
      break;
    size_t pair = 0;
    while (pair < phi.operands.size() && phi.operands[pair + 1] != from.label)
      pair += 2;
    need(phi, pair < phi.operands.size(), "has no value for one of its predecessors");
    const Value &incoming = useAs(phi, pair, phi.type);
    const Value &result = values.at(phi.result);
    const std::vector<Scalar> &scalars = getScalars(phi.type);
    for (size_t i = 0; i < scalars.size(); ++i)
      if (result.scalars[i] != incoming.scalars[i])
        copies[scalars[i].isWide()].emplace_back(result.scalars[i], incoming.scalars[i]);
  }
  for (bool isWide : {false, true}) {
    auto &list = copies[isWide];
    for (size_t i = 0; i < list.size(); ++i)
      for (auto &[target, source] : list)
        if (source == list[i].first) // read after it would be written
          source = convert(isWide ? Convert::Copy64 : Convert::Copy32, isWide, source);
  }
  for (bool isWide : {false, true})
    for (auto [target, source] : copies[isWide])
      emit(getStep(isWide ? Convert::Copy64 : Convert::Copy32), target, source);
  edge.endStep = uint32_t(program.steps.size());
  return edge;
}

void Decoder::decodeEdges(const Block &block, CodeBlock &code) {
  const Instruction &last = block.instructions.back();
  switch (last.op) {
  case Op::Return:
    code.end = CodeBlock::End::Return;
    return;
  case Op::Unreachable:
    code.end = CodeBlock::End::Unreachable;
    return;
  case Op::Branch:
    code.end = CodeBlock::End::Branch;
    break;
  case Op::BranchConditional: {
    code.end = CodeBlock::End::Conditional;
    const Value &condition = use(last, 0);
    need(last, module.getType(condition.type).kind == Type::Kind::Bool, "branches by no boolean");
    code.selector = condition.scalars[0];
    break;
  }
  case Op::Switch: {
    code.end = CodeBlock::End::Switch;
    const Value &selector = use(last, 0);
    const Type &type = module.getType(selector.type);
    need(last, type.kind == Type::Kind::Int && type.width >= 32,
         "selects by something other than 32 or 64 bits");
    code.selector = selector.scalars[0];
    code.isWide = type.width == 64;
    for (size_t i = 2; i < last.operands.size(); i += code.isWide ? 3 : 2)
      code.literals.push_back(last.operands[i] |
                              (code.isWide ? uint64_t(last.operands[i + 1]) << 32 : 0));
    break;
  }
  default:
    fail(last, "is not known to the simulator");
  }
  for (uint32_t successor : block.successors)
    code.edges.push_back(decodeEdge(block, successor));
}

void Decoder::decodeBlock(const Block &block) {
  CodeBlock &code = program.blocks.emplace_back();
  code.firstStep = uint32_t(program.steps.size());
  for (const Instruction &instruction : block.instructions)
    if (instruction.op != Op::Phi && &instruction != &block.instructions.back())
      decodeInstruction(instruction);
  program.blocks.back().endStep = uint32_t(program.steps.size());
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Whether an operation looks at the sign of integers.
static bool isSigned(Op op) {
  switch (op) {
  case Op::SDiv:
  case Op::SRem:
  case Op::SMod:
  case Op::ShiftRightArithmetic:
  case Op::SLessThan:
  case Op::SLessThanEqual:
  case Op::SGreaterThan:
  case Op::SGreaterThanEqual:
    return true;
  default:
    return false;
  }
}

static bool isSigned(Glsl op) {
  switch (op) {
  case Glsl::SAbs:
  case Glsl::SSign:
  case Glsl::SMin:
  case Glsl::SMax:
  case Glsl::SClamp:
  case Glsl::FindSMsb:
    return true;
  default:
    return false;
  }
}

void Decoder::decodeInstruction(const Instruction &instruction) {
  switch (instruction.op) {
  case Op::SelectionMerge:
  case Op::LoopMerge:
    return;
  case Op::Undef:
    break;
  case Op::Variable: {
    Place place = placeLocal(instruction.type, Space::Private, program.privateBytes);
    need(instruction, instruction.operands.size() == 1,
         "has an initializer, which the simulator does not know");
    places[instruction.result] = place;
    return;
  }
  case Op::AccessChain:
  case Op::InBoundsAccessChain:
    return decodeAccessChain(instruction);
  case Op::Load:
  case Op::Store:
    return decodeAccess(instruction);
  case Op::ControlBarrier:
    return decodeBarrier(instruction);
  case Op::MemoryBarrier:
    return; // orders nothing without a control barrier or atomics
  case Op::GroupNonUniformBroadcast:
  case Op::GroupNonUniformBroadcastFirst:
  case Op::GroupNonUniformShuffle:
  case Op::GroupNonUniformShuffleXor:
  case Op::GroupNonUniformShuffleUp:
  case Op::GroupNonUniformShuffleDown:
    return decodeShuffle(instruction);
  case Op::ExtInst:
    return decodeExtended(instruction);
  case Op::IAddCarry:
  case Op::ISubBorrow:
  case Op::UMulExtended:
  case Op::SMulExtended:
    return decodeWithCarry(instruction);
  case Op::ConvertFToU:
  case Op::ConvertFToS:
  case Op::ConvertSToF:
  case Op::ConvertUToF:
  case Op::UConvert:
  case Op::SConvert:
  case Op::FConvert:
    return decodeConversion(instruction);
  case Op::Bitcast:
    return decodeBitcast(instruction);
  case Op::Select:
    return decodeSelect(instruction);
  case Op::CopyObject:
    define(instruction, useAs(instruction, 0, instruction.type).scalars);
    return;
  case Op::CompositeConstruct:
  case Op::CompositeExtract:
  case Op::CompositeInsert:
  case Op::VectorShuffle:
    return decodeComposite(instruction);
  case Op::VectorExtractDynamic:
  case Op::VectorInsertDynamic:
    return decodeDynamic(instruction);
  default:
    return decodeArithmetic(instruction);
  }
  // OpUndef
  Value value = makeValue(instruction.type);
  const std::vector<Scalar> &scalars = getScalars(instruction.type);
  for (size_t i = 0; i < scalars.size(); ++i)
    preset(value.scalars[i], scalars[i],
           scalars[i].kind == Type::Kind::Bool ? 0
           : scalars[i].isWide()               ? ~uint64_t(0)
                                               : (uint64_t(1) << scalars[i].width) - 1);
  values[instruction.result] = std::move(value);
}

static bool isSame(const Scalar &a, const Scalar &b) {
  return a.kind == b.kind && a.width == b.width;
}

static bool isKnown(Op op) {
  for (Number number : {Number::U32, Number::U64, Number::F32, Number::F64})
    if (findStep(op, number))
      return true;
  return false;
}

static bool isComparison(Op op) {
  return (op >= Op::IEqual && op <= Op::FUnordGreaterThanEqual) || op == Op::IsNan ||
         op == Op::IsInf;
}

static bool isLogical(Op op) { return op >= Op::LogicalEqual && op <= Op::LogicalNot; }

static bool isShift(Op op) { return op >= Op::ShiftRightLogical && op <= Op::ShiftLeftLogical; }

/// Operations that work scalar by scalar on operands of one type.
void Decoder::decodeArithmetic(const Instruction &instruction) {
  bool isProduct = instruction.op == Op::VectorTimesScalar;
  Op op = isProduct ? Op::FMul : instruction.op;
  size_t count = instruction.operands.size();
  need(instruction, isKnown(op) && count == findOpInfo(uint32_t(op))->words,
       "is not known to the simulator");
  const std::vector<Scalar> results = getScalars(instruction.type);
  std::vector<Register> made;
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<Register> scalars;
    Scalar first;
    for (size_t k = 0; k < count; ++k) {
      const Value &operand = use(instruction, k);
      const std::vector<Scalar> &types = getScalars(operand.type);
      bool isFactor = isProduct && k == 1;
      need(instruction, types.size() == (isFactor ? 1 : results.size()),
           "has operands and results of different sizes");
      const Scalar &type = types[isFactor ? 0 : i];
      Register scalar = operand.scalars[isFactor ? 0 : i];
      if (k == 0) {
        first = type;
      } else if (isShift(op)) {
        need(instruction, type.kind == Type::Kind::Int, "shifts by no integer");
        if (type.isWide() != first.isWide())
          scalar = convert(first.isWide() ? Convert::U32ToU64 : Convert::U64ToU32, first.isWide(),
                           scalar);
      } else {
        need(instruction, isSame(type, first), "has operands of different types");
      }
      scalars.push_back(scalar);
    }
    bool makesBool = results[i].kind == Type::Kind::Bool;
    bool takesBool = first.kind == Type::Kind::Bool;
    need(instruction,
         takesBool == isLogical(op) && makesBool == (takesBool || isComparison(op)) &&
             (makesBool || isSame(first, results[i])),
         "has operands or a result of a type that it does not take");
    need(instruction, op != Op::BitReverse || !first.isNarrow(),
         "of fewer than 32 bits is not known to the simulator");
    made.push_back(compute(instruction, op, results[i], first, scalars, isSigned(op)));
  }
  define(instruction, std::move(made));
}

void Decoder::decodeExtended(const Instruction &instruction) {
  const std::string &set = module.getInstructionSet(instruction.operands[0]);
  need(instruction, set == "GLSL.std.450", "is of a set that the simulator does not know");
  auto op = Glsl(instruction.operands[1]);
  size_t count = instruction.operands.size() - 2;
  const std::vector<Scalar> results = getScalars(instruction.type);
  static const std::map<Glsl, size_t> counts = {
      {Glsl::Atan2, 2},  {Glsl::Pow, 2},    {Glsl::FMin, 2},   {Glsl::FMax, 2},
      {Glsl::NMin, 2},   {Glsl::NMax, 2},   {Glsl::UMin, 2},   {Glsl::UMax, 2},
      {Glsl::SMin, 2},   {Glsl::SMax, 2},   {Glsl::FClamp, 3}, {Glsl::NClamp, 3},
      {Glsl::UClamp, 3}, {Glsl::SClamp, 3}, {Glsl::FMix, 3},   {Glsl::Fma, 3}};
  auto expected = counts.find(op);
  std::vector<Register> made;
  for (size_t i = 0; i < results.size(); ++i) {
    const Scalar &type = results[i];
    if (type.kind == Type::Kind::Bool || !findStep(op, getNumber(type, false)) ||
        count != (expected == counts.end() ? 1 : expected->second))
      fail(instruction, "of GLSL.std.450's instruction " + std::to_string(uint32_t(op)) +
                            " is not known to the simulator for such operands");
    std::vector<Register> scalars;
    for (size_t k = 0; k < count; ++k) {
      const Value &operand = use(instruction, k + 2);
      const std::vector<Scalar> &types = getScalars(operand.type);
      need(instruction, types.size() == results.size() && isSame(types[i], type),
           "has operands of another type than its result");
      scalars.push_back(operand.scalars[i]);
    }
    if (op == Glsl::Fma && !options.fusesFma) {
      Register factors[] = {scalars[0], scalars[1]};
      Register terms[] = {compute(instruction, Op::FMul, type, type, factors, false), scalars[2]};
      made.push_back(compute(instruction, Op::FAdd, type, type, terms, false));
      continue;
    }
    made.push_back(compute(instruction, op, type, type, scalars, isSigned(op)));
  }
  define(instruction, std::move(made));
}

/// Results are structures of the low part and the carry or the high part.
void Decoder::decodeWithCarry(const Instruction &instruction) {
  Op low = instruction.op == Op::IAddCarry    ? Op::IAdd
           : instruction.op == Op::ISubBorrow ? Op::ISub
                                              : Op::IMul;
  const std::vector<Scalar> results = getScalars(instruction.type);
  const Value &a = use(instruction, 0), &b = use(instruction, 1);
  const std::vector<Scalar> types = getScalars(a.type);
  need(instruction, a.type == b.type && results.size() == 2 * types.size(),
       "has operands that do not fit its result");
  std::vector<Register> made;
  for (Op op : {low, instruction.op})
    for (size_t i = 0; i < types.size(); ++i) {
      need(instruction,
           types[i].kind == Type::Kind::Int && !types[i].isNarrow() &&
               isSame(types[i], results[made.size()]),
           "is known to the simulator for integers of 32 and 64 bits only");
      Register operands[] = {a.scalars[i], b.scalars[i]};
      made.push_back(compute(instruction, op, types[i], types[i], operands, false));
    }
  define(instruction, std::move(made));
}

void Decoder::decodeConversion(const Instruction &instruction) {
  Op op = instruction.op;
  const Value &from = use(instruction, 0);
  const std::vector<Scalar> sources = getScalars(from.type), results = getScalars(instruction.type);
  need(instruction, sources.size() == results.size(), "has an operand of another size");
  bool fromFloat = op == Op::ConvertFToU || op == Op::ConvertFToS || op == Op::FConvert;
  bool toFloat = op == Op::ConvertSToF || op == Op::ConvertUToF || op == Op::FConvert;
  bool isSigned = op == Op::ConvertFToS || op == Op::ConvertSToF || op == Op::SConvert;
  std::vector<Register> made;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Scalar &source = sources[i], &result = results[i];
    need(instruction,
         source.kind == (fromFloat ? Type::Kind::Float : Type::Kind::Int) &&
             result.kind == (toFloat ? Type::Kind::Float : Type::Kind::Int),
         "has an operand or result of a type that it does not take");
    // A half goes by way of 32 bits, which changes no float. An integer on the way
    // to a half goes by way of a double, lest it be rounded twice.
    bool halfOfInt = toFloat && !fromFloat && result.isNarrow();
    Register value = widen(source, from.scalars[i], isSigned, false);
    bool fromWide = source.isWide(), toWide = result.isWide() || halfOfInt;
    std::optional<Convert> step;
    if (fromFloat && toFloat) {
      if (fromWide && result.isNarrow()) {
        made.push_back(convert(Convert::F64ToHalf, false, value));
        continue;
      }
      if (fromWide != toWide)
        step = fromWide ? Convert::F64ToF32 : Convert::F32ToF64;
    } else if (fromFloat) {
      static constexpr Convert steps[2][2][2] = {
          {{Convert::F32ToU32, Convert::F32ToU64}, {Convert::F64ToU32, Convert::F64ToU64}},
          {{Convert::F32ToS32, Convert::F32ToS64}, {Convert::F64ToS32, Convert::F64ToS64}}};
      step = steps[isSigned][fromWide][toWide];
    } else if (toFloat) {
      static constexpr Convert steps[2][2][2] = {
          {{Convert::U32ToF32, Convert::U32ToF64}, {Convert::U64ToF32, Convert::U64ToF64}},
          {{Convert::S32ToF32, Convert::S32ToF64}, {Convert::S64ToF32, Convert::S64ToF64}}};
      step = steps[isSigned][fromWide][toWide];
    } else if (fromWide != toWide) {
      step = fromWide ? Convert::U64ToU32 : isSigned ? Convert::SignedToU64 : Convert::U32ToU64;
    }
    if (step)
      value = convert(*step, toWide, value);
    made.push_back(narrow(result, value, halfOfInt));
  }
  define(instruction, std::move(made));
}

/// Registers hold bits, so nothing happens to them.
void Decoder::decodeBitcast(const Instruction &instruction) {
  const Value &from = use(instruction, 0);
  const std::vector<Scalar> sources = getScalars(from.type), results = getScalars(instruction.type);
  bool fits = sources.size() == results.size();
  for (size_t i = 0; fits && i < sources.size(); ++i)
    fits = sources[i].width == results[i].width && sources[i].kind != Type::Kind::Bool &&
           results[i].kind != Type::Kind::Bool;
  need(instruction, fits, "between scalars of different sizes is not known to the simulator");
  define(instruction, from.scalars);
}

void Decoder::decodeSelect(const Instruction &instruction) {
  const Value &condition = use(instruction, 0);
  const Value &a = useAs(instruction, 1, instruction.type);
  const Value &b = useAs(instruction, 2, instruction.type);
  const std::vector<Scalar> results = getScalars(instruction.type);
  const std::vector<Scalar> &conditions = getScalars(condition.type);
  need(instruction,
       !conditions.empty() && conditions[0].kind == Type::Kind::Bool &&
           (conditions.size() == 1 || conditions.size() == results.size()),
       "has a condition that does not fit its result");
  std::vector<Register> made;
  for (size_t i = 0; i < results.size(); ++i) {
    bool isWide = results[i].isWide();
    made.push_back(makeRegister(isWide));
    emit(getStep(isWide ? Convert::Select64 : Convert::Select32), made.back(),
         condition.scalars[conditions.size() == 1 ? 0 : i], a.scalars[i], b.scalars[i]);
  }
  define(instruction, std::move(made));
}

std::pair<size_t, Id> Decoder::findMember(const Instruction &instruction, Id type,
                                          size_t firstLiteral) {
  size_t first = 0;
  for (size_t i = firstLiteral; i < instruction.operands.size(); ++i) {
    const Type &whole = module.getType(type);
    uint32_t index = instruction.operands[i];
    bool isStruct = whole.kind == Type::Kind::Struct;
    need(instruction,
         isStruct ? index < whole.members.size()
                  : (whole.kind == Type::Kind::Vector || whole.kind == Type::Kind::Array) &&
                        index < whole.count,
         "names a member that there is not");
    if (!isStruct) {
      first += index * getScalars(whole.element).size();
      type = whole.element;
      continue;
    }
    for (uint32_t member = 0; member < index; ++member)
      first += getScalars(whole.members[member]).size();
    type = whole.members[index];
  }
  return {first, type};
}

void Decoder::decodeComposite(const Instruction &instruction) {
  std::vector<Register> made;
  switch (instruction.op) {
  case Op::CompositeConstruct: {
    std::vector<Scalar> types;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      const Value &part = use(instruction, i);
      made.insert(made.end(), part.scalars.begin(), part.scalars.end());
      const std::vector<Scalar> &scalars = getScalars(part.type);
      types.insert(types.end(), scalars.begin(), scalars.end());
      need(instruction, made.size() <= mostScalars, "makes more scalars than its type has");
    }
    const std::vector<Scalar> &results = getScalars(instruction.type);
    need(instruction,
         std::equal(types.begin(), types.end(), results.begin(), results.end(), isSame),
         "has parts of other types than its result");
    break;
  }
  case Op::CompositeExtract: {
    const Value &whole = use(instruction, 0);
    auto [first, type] = findMember(instruction, whole.type, 1);
    need(instruction, type == instruction.type, "has a result of another type than the member");
    made.assign(whole.scalars.begin() + first,
                whole.scalars.begin() + first + getScalars(type).size());
    break;
  }
  case Op::CompositeInsert: {
    const Value &part = use(instruction, 0);
    made = useAs(instruction, 1, instruction.type).scalars;
    auto [first, type] = findMember(instruction, instruction.type, 2);
    need(instruction, type == part.type, "inserts another type than the member's");
    std::copy(part.scalars.begin(), part.scalars.end(), made.begin() + first);
    break;
  }
  default: { // OpVectorShuffle
    const Value &a = use(instruction, 0), &b = use(instruction, 1);
    const Type &result = module.getType(instruction.type);
    std::vector<Register> both = a.scalars;
    both.insert(both.end(), b.scalars.begin(), b.scalars.end());
    need(instruction,
         result.kind == Type::Kind::Vector && module.getType(a.type).kind == Type::Kind::Vector &&
             module.getType(b.type).kind == Type::Kind::Vector &&
             module.getType(a.type).element == result.element &&
             module.getType(b.type).element == result.element,
         "is not of vectors of one type");
    for (size_t i = 2; i < instruction.operands.size(); ++i) {
      uint32_t literal = instruction.operands[i];
      need(instruction, literal < both.size() || literal == ~uint32_t(0),
           "names an element that there is not");
      made.push_back(both[literal == ~uint32_t(0) ? 0 : literal]);
    }
    break;
  }
  }
  define(instruction, std::move(made));
}

/// Elements of vectors by a number that is known at run time.
void Decoder::decodeDynamic(const Instruction &instruction) {
  bool inserts = instruction.op == Op::VectorInsertDynamic;
  const Value whole = use(instruction, 0);
  const Type &vector = module.getType(whole.type);
  const Value &index = use(instruction, inserts ? 2 : 1);
  const Type &indexType = module.getType(index.type);
  need(instruction, vector.kind == Type::Kind::Vector && indexType.kind == Type::Kind::Int,
       "is not of a vector and an integer");
  need(instruction, instruction.type == (inserts ? whole.type : vector.element),
       "has a result of another type");
  bool isWide = getScalars(vector.element)[0].isWide();
  Register position = index.scalars[0];
  if (indexType.width == 64)
    position = convert(Convert::U64ToU32, false, position);
  // Registers that are made in a row lie in a row.
  Value row = makeValue(whole.type);
  for (size_t i = 0; i < row.scalars.size(); ++i)
    emit(getStep(isWide ? Convert::Copy64 : Convert::Copy32), row.scalars[i], whole.scalars[i]);
  if (inserts) {
    const Value &element = useAs(instruction, 1, vector.element);
    emit(getStep(isWide ? Convert::Insert64 : Convert::Insert32), row.scalars[0], 0, position,
         element.scalars[0], vector.count);
    define(instruction, row.scalars);
    return;
  }
  Register to = makeRegister(isWide);
  emit(getStep(isWide ? Convert::Extract64 : Convert::Extract32), to, row.scalars[0], position, 0,
       vector.count);
  define(instruction, {to});
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Decoder::decodeAccessChain(const Instruction &instruction) {
  Place place = getPlace(instruction, instruction.operands[0]);
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    const Type &whole = module.getType(place.type);
    const Constant *constant = module.findConstant(instruction.operands[i]);
    const Value &index = use(instruction, i);
    const Type &indexType = module.getType(index.type);
    need(instruction, indexType.kind == Type::Kind::Int, "has an index that is no integer");
    int64_t number = 0;
    if (constant) {
      need(instruction, constant->kind != Constant::Kind::Composite, "has a composite index");
      uint32_t unused = 64 - indexType.width; // indices have a sign
      number = int64_t(constant->bits << unused) >> unused;
    }
    if (whole.kind == Type::Kind::Struct) {
      need(instruction, constant && number >= 0 && size_t(number) < whole.members.size(),
           "names a member that there is not");
      need(instruction, !place.isInput, "leads into a structured input");
      place.offset += whole.offsets[size_t(number)];
      place.type = whole.members[size_t(number)];
      continue;
    }
    need(instruction,
         whole.kind == Type::Kind::Array || whole.kind == Type::Kind::RuntimeArray ||
             whole.kind == Type::Kind::Vector,
         "leads into a scalar");
    place.type = whole.element;
    if (place.isInput) {
      need(instruction, constant && number >= 0 && size_t(number) < place.inputs.size(),
           "leads to an element of an input that is not constant or there is not");
      place.inputs = {place.inputs[size_t(number)]};
      continue;
    }
    if (constant) {
      // An index beyond 2^40 stays far outside of any binding.
      constexpr int64_t most = int64_t(1) << 40;
      int64_t offset;
      if (__builtin_mul_overflow(std::clamp(number, -most, most), whole.stride, &offset) ||
          __builtin_add_overflow(place.offset, offset, &place.offset) ||
          place.offset > int64_t(1) << 60 || place.offset < -(int64_t(1) << 60))
        place.offset = int64_t(1) << 60;
      continue;
    }
    place.stride = std::gcd(place.stride, whole.stride);
    Register position = index.scalars[0];
    if (indexType.width < 32)
      position = convert(Convert::SignExtend, false, position, indexType.width);
    if (place.dynamic == noRegister) {
      place.dynamic = makeRegister(true);
      preset(place.dynamic, {Type::Kind::Int, 64, 0}, 0);
    }
    Register to = makeRegister(true);
    emit(getStep(indexType.width == 64 ? Convert::Index64 : Convert::Index32), to, place.dynamic,
         position, 0, whole.stride);
    place.dynamic = to;
  }
  const Type &pointer = module.getType(instruction.type);
  need(instruction, pointer.kind == Type::Kind::Pointer && pointer.element == place.type,
       "has a result of another type than what it leads to");
  places[instruction.result] = std::move(place);
}

void Decoder::decodeAccess(const Instruction &instruction) {
  bool isWrite = instruction.op == Op::Store;
  const Place &place = getPlace(instruction, instruction.operands[0]);
  Value value;
  if (isWrite) {
    value = useAs(instruction, 1, place.type);
  } else {
    need(instruction, instruction.type == place.type, "has a result of another type");
    if (place.isInput) {
      define(instruction, place.inputs);
      return;
    }
    value = makeValue(place.type);
    values[instruction.result] = value;
  }
  need(instruction, !place.isInput, "writes an input");
  if (program.accesses.size() > mostSites)
    throw Error(where + ": has more than " + std::to_string(mostSites) +
                " loads and stores, more than the simulator has numbers for");
  MemoryAccess access;
  access.space = place.space;
  access.isWrite = isWrite;
  access.binding = place.binding;
  access.offset = place.offset;
  access.objectBegin = place.begin;
  access.objectEnd = place.end;
  access.dynamic = place.dynamic;
  access.source = instruction.source;
  access.site = uint16_t(program.accesses.size());
  const std::vector<Scalar> &scalars = getScalars(place.type);
  need(instruction, !scalars.empty(), "is of no bytes");
  for (size_t i = 0; i < scalars.size(); ++i) {
    uint32_t bytes = scalars[i].width / 8;
    access.scalars.push_back({scalars[i].offset, bytes, value.scalars[i]});
    access.bytes = std::max(access.bytes, scalars[i].offset + bytes);
  }
  int64_t common = std::gcd(std::gcd(place.stride, place.offset), access.bytes);
  access.granule = std::min<int64_t>(16, common & -common);
  if (access.space == Space::Workgroup)
    program.workgroupGranule = std::min(program.workgroupGranule, access.granule);
  emit(getAccessStep(), 0, 0, 0, 0, access.site);
  program.accesses.push_back(std::move(access));
}

//===----------------------------------------------------------------------===//
// Among invocations
//===----------------------------------------------------------------------===//

void Decoder::decodeBarrier(const Instruction &instruction) {
  need(instruction, Scope(useConstant(instruction, 0)) == Scope::Workgroup,
       "of another scope than the workgroup is not known to the simulator");
  auto memory = Scope(useConstant(instruction, 1));
  uint32_t semantics = useConstant(instruction, 2);
  bool orders =
      (memory == Scope::Workgroup || memory == Scope::Device || memory == Scope::QueueFamily) &&
      (semantics & (AcquireRelease | SequentiallyConsistent) ||
       (semantics & Acquire && semantics & Release));
  Barrier barrier;
  barrier.ordersStorage = orders && semantics & UniformMemory;
  barrier.ordersWorkgroup = orders && semantics & WorkgroupMemory;
  barrier.source = instruction.source;
  emit(getBarrierStep(), 0, 0, 0, 0, int64_t(program.barriers.size()));
  program.barriers.push_back(barrier);
}

void Decoder::decodeShuffle(const Instruction &instruction) {
  need(instruction, Scope(useConstant(instruction, 0)) == Scope::Subgroup,
       "of another scope than the subgroup is not known to the simulator");
  const Value &value = useAs(instruction, 1, instruction.type);
  bool isFirst = instruction.op == Op::GroupNonUniformBroadcastFirst;
  Register lane = 0;
  if (!isFirst) {
    const Value &index = use(instruction, 2);
    const Type &type = module.getType(index.type);
    need(instruction, type.kind == Type::Kind::Int && type.width == 32,
         "has a lane that is no integer of 32 bits");
    lane = index.scalars[0];
  }
  const std::vector<Scalar> results = getScalars(instruction.type);
  std::vector<Register> made;
  for (size_t i = 0; i < results.size(); ++i) {
    made.push_back(makeRegister(results[i].isWide()));
    emit(getShuffleStep(), made.back(), value.scalars[i], lane, results[i].isWide(),
         int64_t(program.shuffles.size()));
  }
  program.shuffles.push_back({instruction.op, instruction.source});
  define(instruction, std::move(made));
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

Program Decoder::decode(const std::string &name) {
  const EntryPoint *entry = module.findEntryPoint(name);
  if (!entry)
    throw Error(where + ": has no entry point '" + name + "'");
  if (entry->model != ExecutionModel::GLCompute)
    throw Error(where + ": entry point '" + name + "' is no compute shader");
  program.name = name;
  program.localSize = entry->localSize;
  program.accesses.emplace_back(); // sites count from 1
  function = &module.getFunction(entry->function);
  if (function->blocks.empty() || !function->parameters.empty())
    throw Error(where + ": entry point '" + name + "' has no body, or parameters");
  declareVariables();
  orderBlocks(*function);
  for (uint32_t number : order)
    for (const Instruction &phi : function->blocks[number].instructions)
      if (phi.op == Op::Phi)
        values[phi.result] = makeValue(phi.type);
  for (uint32_t number : order)
    decodeBlock(function->blocks[number]);
  for (size_t i = 0; i < order.size(); ++i)
    decodeEdges(function->blocks[order[i]], program.blocks[i]);
  return std::move(program);
}

Program sim::decode(const Module &module, const std::string &entryPoint,
                    const DecodeOptions &options, const std::string &where) {
  return Decoder(module, options, where).decode(entryPoint);
}
