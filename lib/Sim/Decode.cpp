//===- Decode.cpp - Values, variables and blocks --------------------------===//

#include "Decoder.h"

#include <algorithm>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

/// Limits on what words can request, far beyond Weir's own kernels.
static constexpr uint32_t maxRegisterBytes = 256 << 20; ///< of one subgroup
static constexpr int64_t maxLocalBytes = 64 << 20;      ///< of private or workgroup memory
static constexpr size_t maxSteps = 1 << 24, maxDepth = 64;

/// Reports what is not supported: in PTX by its line, in SPIR-V by its word.
void Decoder::fail(const Instruction &instruction, const std::string &problem) const {
  if (!options.isPtx)
    module.fail(instruction.word, std::string(getName(instruction.op)) + " " + problem);
  const size_t name = instruction.op == Op::Named || instruction.op == Op::NamedEffect ? 0
                      : instruction.op == Op::NamedAtomic || instruction.op == Op::CopyAsync ||
                              instruction.op == Op::CopyTile
                          ? 3
                      : instruction.op == Op::GroupMatrix ? 2
                                                          : ~size_t(0);
  throw Error(where + ":" + std::to_string(instruction.source.line) + ": " +
              (name == ~size_t(0) ? "the instruction"
                                  : "'" + module.getString(instruction.operands[name]) + "'") +
              " " + problem);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void Decoder::collectScalars(Id id, int64_t offset, std::vector<Scalar> &scalars) {
  const Type &type = module.getType(id);
  if (scalars.size() > maxScalars)
    throw Error(where + ": a value has more than " + std::to_string(maxScalars) + " scalars");
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
    if (scalars.size() + type.count > maxScalars)
      throw Error(where + ": a value has more than " + std::to_string(maxScalars) + " scalars");
    for (uint32_t i = 0; i < type.count; ++i)
      collectScalars(type.element, offset + i * type.stride, scalars);
    break;
  case Type::Kind::CooperativeMatrix:
    collectElements(id, offset, scalars);
    break;
  case Type::Kind::Struct:
    for (size_t i = 0; i < type.members.size(); ++i)
      collectScalars(type.members[i], offset + type.offsets[i], scalars);
    break;
  default:
    throw Error(where + ": %" + std::to_string(id) +
                " is used as the type of a value, but is not one");
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
  // 64-bit registers stay aligned, since the width is a multiple of eight.
  if (program.registerBytes > maxRegisterBytes)
    throw Error(where + ": needs more than " + std::to_string(maxRegisterBytes) +
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
    if (module.getType(constant.type).kind == Type::Kind::CooperativeMatrix)
      bits.resize(getScalars(constant.type).size(), bits.back());
  } else {
    // Make undefined values visible: NaNs, and integers with all bits set.
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
  const std::vector<Scalar> &scalars = getScalars(type); // checks the max number of scalars
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
  const Constant *constant = module.findConstant(id);
  if (options.isPtx && instruction.op != Op::Phi)
    need(instruction, constant ? constant->kind != Constant::Kind::Undef : !unwritten.contains(id),
         "reads a register that nothing has written");
  if (constant)
    return getConstantValue(id);
  auto found = values.find(id);
  if (found == values.end())
    fail(instruction, "uses %" + std::to_string(id) + ", which is not a value defined before");
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
// Variables
//===----------------------------------------------------------------------===//

PointerTarget Decoder::makeLocal(Id pointerType, Space space, int64_t &bytes) {
  PointerTarget target;
  target.space = space;
  target.type = module.getType(pointerType).element;
  const Type &type = module.getType(target.type);
  constexpr int64_t alignment = 16;
  target.begin = target.offset = (bytes + alignment - 1) / alignment * alignment;
  target.end = bytes = target.begin + type.bytes;
  if (bytes > maxLocalBytes)
    throw Error(where + ": has more than " + std::to_string(maxLocalBytes) +
                " bytes of variables in private or workgroup memory, more than the simulator has");
  return target;
}

void Decoder::declareInput(const Variable &variable) {
  if (!variable.builtIn)
    throw Error(where + ": input %" + std::to_string(variable.id) + " is not a built-in");
  PointerTarget target;
  target.isInput = true;
  target.type = module.getType(variable.type).element;
  const std::vector<Scalar> &scalars = getScalars(target.type);
  bool isVector = false;
  switch (*variable.builtIn) {
  case BuiltIn::NumWorkgroups:
  case BuiltIn::WorkgroupSize:
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
                " is not supported by the simulator");
  }
  bool fits = scalars.size() == (isVector ? 3 : 1);
  for (const Scalar &scalar : scalars)
    fits &= scalar.kind == Type::Kind::Int && scalar.width == 32;
  if (!fits)
    throw Error(where + ": builtin " + std::to_string(uint32_t(*variable.builtIn)) +
                " has another type than its built-in requires");
  for (uint32_t i = 0; i < scalars.size(); ++i) {
    target.inputs.push_back(makeRegister(false));
    program.builtIns.push_back({*variable.builtIn, i, target.inputs.back()});
  }
  targets[variable.id] = std::move(target);
}

void Decoder::declareVariables() {
  for (const Variable &variable : module.getVariables()) {
    std::string name = "variable %" + std::to_string(variable.id);
    if (options.isPtx && variable.storage != StorageClass::Input &&
        variable.storage != StorageClass::StorageBuffer)
      requireLocal(variable);
    if (variable.initializer && variable.storage != StorageClass::Input)
      throw Error(where + ": " + name +
                  " has an initializer, which the simulator does not support");
    switch (variable.storage) {
    case StorageClass::Input:
      declareInput(variable);
      break;
    case StorageClass::Workgroup:
      targets[variable.id] = makeLocal(variable.type, Space::Workgroup, program.workgroupBytes);
      break;
    case StorageClass::Private:
      targets[variable.id] = makeLocal(variable.type, Space::Private, program.privateBytes);
      break;
    case StorageClass::StorageBuffer: {
      if ((variable.set != 0u && !options.isPtx) || !variable.binding)
        throw Error(where + ": storage buffer %" + std::to_string(variable.id) +
                    " has no binding in set 0");
      PointerTarget target;
      target.binding = *variable.binding;
      target.type = module.getType(variable.type).element;
      targets[variable.id] = target;
      break;
    }
    default:
      throw Error(where + ": " + name + " is in storage class " +
                  std::to_string(uint32_t(variable.storage)) +
                  ", which the simulator does not support");
    }
  }
}

const PointerTarget &Decoder::getTarget(const Instruction &instruction, Id pointer) {
  auto found = targets.find(pointer);
  if (found == targets.end())
    fail(instruction, "uses %" + std::to_string(pointer) +
                          " as a pointer, which is neither a variable nor an access chain");
  return found->second;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Orders blocks depth first, visiting merges before continue targets before successors, then
/// reverses: a merge block follows everything that it merges.
static std::vector<uint32_t> orderBlocks(const Function &function) {
  std::vector<uint32_t> order;
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
  return order;
}

/// Makes the copies for the phis of a block, all reads before all writes.
Edge Decoder::decodeEdge(const Block &from, uint32_t to) {
  Edge edge;
  edge.block = body->positionOf[to];
  edge.firstStep = uint32_t(program.steps.size());
  std::vector<std::pair<Register, Register>> copies[2]; // 32 and 64 bits: to, from
  for (const Instruction &phi : body->function.blocks[to].instructions) {
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
        if (source ==
            list[i].first) // it would be read after the write: copy through a new register
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
  case Op::ReturnValue:
    return decodeReturn(last, code);
  case Op::Unreachable:
    code.end = CodeBlock::End::Unreachable;
    return;
  case Op::Branch:
    code.end = CodeBlock::End::Branch;
    break;
  case Op::BranchConditional: {
    code.end = CodeBlock::End::Conditional;
    const Value &condition = use(last, 0);
    need(last, module.getType(condition.type).kind == Type::Kind::Bool,
         "branches on a value that is not a boolean");
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
    fail(last, "is not supported by the simulator");
  }
  for (uint32_t successor : block.successors)
    code.edges.push_back(decodeEdge(block, successor));
}

/// Decodes a return. A call is inlined: its returns continue with the next block of the program.
void Decoder::decodeReturn(const Instruction &instruction, CodeBlock &code) {
  need(instruction, (instruction.op == Op::ReturnValue) == (body->result != nullptr),
       "returns a value from a function without one, or none");
  if (!body->caller) {
    code.end = CodeBlock::End::Return;
    return;
  }
  Edge edge{uint32_t(program.blocks.size()), uint32_t(program.steps.size()), 0};
  if (body->result) {
    const Value &value = useAs(instruction, 0, body->result->type);
    const std::vector<Scalar> &scalars = getScalars(value.type);
    for (size_t i = 0; i < scalars.size(); ++i)
      emit(getStep(scalars[i].isWide() ? Convert::Copy64 : Convert::Copy32),
           body->result->scalars[i], value.scalars[i]);
  }
  edge.endStep = uint32_t(program.steps.size());
  code.end = CodeBlock::End::Branch;
  code.edges.push_back(edge);
}

void Decoder::decodeBlock(const Block &block) {
  program.blocks.emplace_back().firstStep = uint32_t(program.steps.size());
  for (const Instruction &instruction : block.instructions)
    if (instruction.op != Op::Phi && &instruction != &block.instructions.back())
      decodeInstruction(instruction);
  program.blocks.back().endStep = uint32_t(program.steps.size());
}

void Decoder::decodeBody(Body &called) {
  const Function &function = called.function;
  body = &called;
  called.order = orderBlocks(function);
  called.positionOf.resize(function.blocks.size());
  called.lastOf.resize(function.blocks.size());
  for (uint32_t number : called.order)
    for (const Instruction &phi : function.blocks[number].instructions)
      if (phi.op == Op::Phi)
        values[phi.result] = makeValue(phi.type);
  for (uint32_t number : called.order) {
    called.positionOf[number] = uint32_t(program.blocks.size());
    decodeBlock(function.blocks[number]);
    called.lastOf[number] = uint32_t(program.blocks.size() - 1);
  }
  for (uint32_t number : called.order)
    decodeEdges(function.blocks[number], program.blocks[called.lastOf[number]]);
  body = called.caller;
}

/// Inlines a call: the function's blocks come between those of the caller.
void Decoder::decodeCall(const Instruction &instruction) {
  Body called{module.getFunction(instruction.operands[0]), body};
  size_t depth = 0;
  for (const Body *each = body; each; each = each->caller, ++depth)
    need(instruction, &each->function != &called.function, "calls a function that has called it");
  need(instruction, depth < maxDepth, "is nested more deeply than the simulator supports");
  const std::vector<Id> &parameters = called.function.parameters;
  need(instruction, !called.function.blocks.empty(), "calls a function without a body");
  need(instruction, instruction.operands.size() == parameters.size() + 1,
       "has more or fewer arguments than the function has parameters");
  for (size_t i = 0; i < parameters.size(); ++i) {
    Id type = module.getTypeOf(parameters[i]), argument = instruction.operands[i + 1];
    need(instruction, module.getTypeOf(argument) == type, "has an argument of another type");
    if (module.getType(type).kind == Type::Kind::Pointer)
      targets[parameters[i]] = getTarget(instruction, argument);
    else
      values[parameters[i]] = useAs(instruction, i + 1, type);
  }
  Value result;
  if (module.getType(instruction.type).kind != Type::Kind::Void) {
    result = makeValue(instruction.type);
    called.result = &result;
  }
  CodeBlock &before = program.blocks.back();
  before.endStep = uint32_t(program.steps.size());
  before.end = CodeBlock::End::Branch;
  before.edges = {{uint32_t(program.blocks.size()), before.endStep, before.endStep}};
  decodeBody(called);
  program.blocks.emplace_back().firstStep = uint32_t(program.steps.size());
  if (program.steps.size() > maxSteps || program.blocks.size() > maxSteps)
    throw Error(where + ": has more than " + std::to_string(maxSteps) +
                " steps once functions stand where they are called, more than the simulator has");
  if (called.result)
    values[instruction.result] = std::move(result);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void Decoder::decodeInstruction(const Instruction &instruction) {
  checkSums(instruction);
  switch (getKind(instruction.op)) {
  case OpKind::Plain:
    break;
  case OpKind::Atomic:
    return decodeAtomic(instruction);
  case OpKind::Shuffle:
    return decodeShuffle(instruction);
  case OpKind::Reduction:
    return decodeReduction(instruction);
  }
  if (uint32_t(instruction.op) >= firstOwnOpcode)
    return decodeOwn(instruction);
  switch (instruction.op) {
  case Op::SelectionMerge:
  case Op::LoopMerge:
    return;
  case Op::Undef:
    break;
  case Op::Variable: {
    PointerTarget target = makeLocal(instruction.type, Space::Private, program.privateBytes);
    need(instruction, instruction.operands.size() == 1,
         "has an initializer, which the simulator does not support");
    targets[instruction.result] = target;
    return;
  }
  case Op::ConvertPtrToU:
    return decodeAddress(instruction);
  case Op::ConvertUToPtr:
    return decodePointer(instruction);
  case Op::AccessChain:
  case Op::InBoundsAccessChain:
    return decodeAccessChain(instruction);
  case Op::Load:
  case Op::Store:
    return decodeAccess(instruction);
  case Op::FunctionCall:
    return decodeCall(instruction);
  case Op::ControlBarrier:
    return decodeBarrier(instruction);
  case Op::MemoryBarrier:
    return; // orders nothing without a control barrier or atomics
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
  case Op::CooperativeMatrixLoadKHR:
  case Op::CooperativeMatrixStoreKHR:
    return decodeCooperativeAccess(instruction);
  case Op::CooperativeMatrixMulAddKHR:
    return decodeCooperativeProduct(instruction);
  case Op::CompositeConstruct:
    if (module.getType(instruction.type).kind == Type::Kind::CooperativeMatrix)
      return decodeCooperativeSplat(instruction);
    return decodeComposite(instruction);
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

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

Program Decoder::decode(const std::string &name) {
  const EntryPoint *entry = module.findEntryPoint(name);
  if (!entry)
    throw Error(where + ": has no entry point '" + name + "'");
  if (entry->model != ExecutionModel::GLCompute)
    throw Error(where + ": entry point '" + name + "' is not a compute shader");
  program.name = name;
  program.isWarp = options.isPtx;
  program.localSize = entry->localSize;
  program.accesses.emplace_back(); // sites count from 1
  Body main{module.getFunction(entry->function)};
  if (main.function.blocks.empty() || !main.function.parameters.empty())
    throw Error(where + ": entry point '" + name + "' has no body, or parameters");
  for (const Instruction &instruction : main.function.blocks.front().instructions)
    if (instruction.op != Op::Variable) {
      program.source = instruction.source;
      break;
    }
  declareVariables();
  if (options.isPtx) {
    findRoots(main.function);
    findUnwritten(main.function);
    findMatrices(main.function);
    findSums(main.function);
  }
  decodeBody(main);
  for (uint32_t block = 0; block < program.blocks.size(); ++block)
    for (const Edge &edge : program.blocks[block].edges)
      program.blocks[edge.block].beginsLoop |= edge.block <= block;
  return std::move(program);
}

Program sim::decode(const Module &module, const std::string &entryPoint,
                    const DecodeOptions &options, const std::string &where) {
  return Decoder(module, options, where).decode(entryPoint);
}
