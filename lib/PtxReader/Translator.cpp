//===- Translator.cpp - Blocks and values ---------------------------------===//

#include "Translator.h"

#include "weir/Artifact/Error.h"
#include "weir/PtxReader/PtxReader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

using namespace weir;
using namespace weir::ptx;
using spv::BuiltIn;
using spv::StorageClass;

void Translator::fail(const std::string &problem) const { ptx::fail(where, line, problem); }

void Translator::refuse() const {
  fail("instruction '" + statement->getName() + "' is not known to the reader");
}

const Operand &Translator::getOperand(size_t i) const {
  if (i >= statement->operands.size())
    fail("'" + statement->getName() + "' has " + std::to_string(statement->operands.size()) +
         " operands, expected more");
  return statement->operands[i];
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void Translator::put(Op op, std::initializer_list<uint32_t> operands) {
  Words::put(*body, op, operands);
}

Id Translator::make(Op op, Id type, std::vector<uint32_t> operands) {
  Id result = words.makeId();
  operands.insert(operands.begin(), {type, result});
  Words::put(*body, op, operands);
  return result;
}

Id Translator::makeNamed(Id type, std::string_view name, const std::vector<Id> &operands) {
  std::vector<uint32_t> all = {words.getString(name)};
  all.insert(all.end(), operands.begin(), operands.end());
  return make(Op::Named, type, std::move(all));
}

Id Translator::resize(Id value, uint32_t from, uint32_t to, bool isSigned) {
  if (from == to)
    return value;
  return makeInteger(isSigned && from < to ? Op::SConvert : Op::UConvert, to, {value});
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Id Translator::getOrigin(Registers::Origin origin, uint32_t number) {
  using Kind = Registers::Origin::Kind;
  if (origin.kind == Kind::Undefined)
    return words.getUndefined(words.getInteger(entry.widths[number]));
  if (origin.kind == Kind::Block)
    return ends.at({origin.block, origin.number});
  auto [phi, isNew] = phis.try_emplace({origin.block, origin.number}, 0);
  if (isNew) {
    phi->second = words.makeId();
    usedPhis.push_back(phi->first);
  }
  return phi->second;
}

Id Translator::getRegister(uint32_t number) {
  need(entry.widths[number] <= 64, "uses a register of more than 64 bits");
  Id &value = current[number];
  if (!value)
    value = getOrigin(registers.atBegin(block, number), number);
  return value;
}

/// Returns a special register, and its bits.
Id Translator::useSpecial(const Operand &operand, uint32_t &width) {
  std::string_view name = operand.name;
  width = 32;
  Id number = words.getInteger(32);
  auto getAxis = [&](std::string_view prefix, BuiltIn builtIn) -> Id {
    if (name.size() != prefix.size() + 2 || !name.starts_with(prefix) ||
        name[prefix.size()] != '.' || name.back() < 'x' || name.back() > 'z')
      return 0;
    Id whole = make(Op::Load, words.getVector(number, 3), {words.getBuiltIn(builtIn, true)});
    return make(Op::CompositeExtract, number, {whole, uint32_t(name.back() - 'x')});
  };
  for (auto [prefix, builtIn] : {std::pair("%tid", BuiltIn::LocalInvocationId),
                                 {"%ctaid", BuiltIn::WorkgroupId},
                                 {"%ntid", BuiltIn::WorkgroupSize},
                                 {"%nctaid", BuiltIn::NumWorkgroups}})
    if (Id value = getAxis(prefix, builtIn))
      return value;
  // A warp is 32 invocations with consecutive indices.
  if (name == "%laneid") {
    Id index = make(Op::Load, number, {words.getBuiltIn(BuiltIn::LocalInvocationIndex, false)});
    return makeInteger(Op::BitwiseAnd, 32, {index, words.getConstant(32, 31)});
  }
  if (name == "%warpsize" || name == "%WARP_SZ")
    return words.getConstant(32, 32);
  static constexpr std::string_view others[] = {
      "%warpid",      "%nwarpid",           "%smid",           "%nsmid",       "%clock",
      "%clock_hi",    "%lanemask_eq",       "%lanemask_le",    "%lanemask_lt", "%lanemask_ge",
      "%lanemask_gt", "%dynamic_smem_size", "%total_smem_size"};
  static constexpr std::string_view wide[] = {"%clock64", "%globaltimer", "%gridid"};
  if (std::find(std::begin(wide), std::end(wide), name) != std::end(wide))
    width = 64;
  else if (std::find(std::begin(others), std::end(others), name) == std::end(others))
    fail("special register '" + std::string(name) + "' is not known to the reader");
  return makeNamed(words.getInteger(width), name, {});
}

/// Returns the address of a variable.
Id Translator::useSymbol(uint32_t number, uint32_t width) {
  const Symbol &symbol = entry.symbols[number];
  if (std::optional<size_t> map = getTensorMap(symbol)) {
    constexpr uint64_t noAddress = uint64_t(0x7e45) << 48; // a number that no code has
    Id address = words.getConstant(64, noAddress + *map);
    mapOf[address] = *map;
    return address;
  }
  need(symbol.space != Symbol::Space::Param, "uses the address of a parameter");
  need(width >= 32, "uses an address of less than 32 bits");
  if (!variables[number]) {
    StorageClass storage = symbol.space == Symbol::Space::Shared  ? StorageClass::Workgroup
                           : symbol.space == Symbol::Space::Local ? StorageClass::Private
                           : symbol.space == Symbol::Space::Const ? StorageClass::UniformConstant
                                                                  : StorageClass::CrossWorkgroup;
    variables[number] = words.makeVariable(storage, symbol.bytes);
  }
  return makeInteger(Op::ConvertPtrToU, width, {variables[number]});
}

/// Returns an operand as an integer of so many bits.
Id Translator::use(const Operand &operand, uint32_t width, bool isSigned) {
  switch (operand.kind) {
  case Operand::Kind::Register:
    if (operand.width == 1)
      fail("uses a predicate as a number");
    need(!operand.isNegated, "negates a number");
    return resize(getRegister(operand.number), operand.width, width, isSigned);
  case Operand::Kind::Integer:
    return words.getConstant(width, operand.bits);
  case Operand::Kind::Float:
    if (operand.width == 64 && width == 32)
      return words.getConstant(32,
                               std::bit_cast<uint32_t>(float(std::bit_cast<double>(operand.bits))));
    need(operand.width == width, "has a float of another type");
    return words.getConstant(width, operand.bits);
  case Operand::Kind::Special: {
    if (operand.name == "%pt" || operand.name == "%envreg0")
      break;
    uint32_t from = 0;
    Id value = useSpecial(operand, from);
    return resize(value, from, width, false);
  }
  case Operand::Kind::Symbol:
    return useSymbol(operand.number, width);
  case Operand::Kind::Vector: {
    // Parts side by side, the lowest first.
    size_t count = operand.parts.size();
    need(count >= 1 && count <= 8 && width % count == 0 && width / count >= 8,
         "has a vector of another size");
    uint32_t part = width / uint32_t(count);
    Id whole = resize(use(operand.parts[0], part), part, width, false);
    for (uint32_t i = 1; i < count; ++i) {
      Id high = resize(use(operand.parts[i], part), part, width, false);
      high = makeInteger(Op::ShiftLeftLogical, width, {high, words.getConstant(32, i * part)});
      whole = makeInteger(Op::BitwiseOr, width, {whole, high});
    }
    return whole;
  }
  default:
    break;
  }
  fail("has an operand that is no number" +
       (operand.name.empty() ? std::string() : ": " + std::string(operand.name)));
}

Id Translator::usePredicate(const Operand &operand) {
  if (operand.kind == Operand::Kind::Integer)
    return words.getConstant(1, operand.bits != 0);
  need(operand.kind == Operand::Kind::Register && operand.width == 1,
       "has an operand that is no predicate");
  Id value = getRegister(operand.number);
  return operand.isNegated ? makeInteger(Op::LogicalNot, 1, {value}) : value;
}

/// Collects an operand's numbers: of a vector, each; of an address, its base.
void Translator::useAll(const Operand &operand, uint32_t width, std::vector<Id> &values) {
  if (operand.kind == Operand::Kind::Vector) {
    for (const Operand &part : operand.parts)
      useAll(part, width, values);
  } else if (operand.kind == Operand::Kind::Register) {
    values.push_back(operand.width == 1 ? usePredicate(operand) : getRegister(operand.number));
  } else {
    values.push_back(use(operand, operand.kind == Operand::Kind::Float ? operand.width : width));
  }
}

/// Sets a register, or the registers of a vector, to a value of so many bits; 1: a predicate.
void Translator::set(const Operand &to, Id value, uint32_t width, bool isSigned) {
  if (to.kind == Operand::Kind::Sink)
    return;
  if (to.kind == Operand::Kind::Vector) {
    size_t count = to.parts.size();
    need(count >= 1 && width % count == 0 && width / count >= 8, "has a vector of another size");
    uint32_t part = width / uint32_t(count);
    for (uint32_t i = 0; i < count; ++i) {
      Id high = value;
      if (i > 0)
        high = makeInteger(Op::ShiftRightLogical, width, {value, words.getConstant(32, i * part)});
      set(to.parts[i], resize(high, width, part, false), part);
    }
    return;
  }
  need(to.kind == Operand::Kind::Register, "writes to something that is no register");
  need((to.width == 1) == (width == 1), "writes a number and a predicate to each other");
  need(to.width <= 64, "writes a register of more than 64 bits");
  current[to.number] = width == 1 ? value : resize(value, width, to.width, isSigned);
}

/// Returns a pointer of a storage class to a type.
Id Translator::getAddress(const Operand &operand, StorageClass storage, Id type) {
  need(operand.kind == Operand::Kind::Address && operand.parts.size() == 1, "has no address");
  const Operand &base = operand.parts[0];
  uint32_t width = base.kind == Operand::Kind::Register && base.width == 32 ? 32 : 64;
  Id address = use(base, width);
  if (operand.bits)
    address = makeInteger(Op::IAdd, width, {address, words.getConstant(width, operand.bits)});
  return make(Op::ConvertUToPtr, words.getPointer(storage, type), {address});
}

/// Returns the storage class that stands for the state space of an access.
StorageClass Translator::getSpace() const {
  for (std::string_view part : statement->name) {
    if (part == "global")
      return StorageClass::CrossWorkgroup;
    if (part == "shared" || part == "shared::cta")
      return StorageClass::Workgroup;
    if (part == "local")
      return StorageClass::Private;
    if (part == "const")
      return StorageClass::UniformConstant;
    if (part.starts_with("shared::") || part == "param" || part.starts_with("param::"))
      refuse();
  }
  return StorageClass::Generic;
}

/// Returns the scope of an atomic access.
uint32_t Translator::getScope() const {
  if (hasName("cta"))
    return uint32_t(spv::Scope::Workgroup);
  return uint32_t(hasName("cluster") ? spv::Scope::Invocation : spv::Scope::Device);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Appends a phi to the head of its block.
void Translator::putPhi(uint32_t block, uint32_t number) {
  if (entry.widths[number] > 64)
    fail("uses a register of more than 64 bits");
  std::vector<uint32_t> operands = {words.getInteger(entry.widths[number]),
                                    phis.at({block, number})};
  for (uint32_t from : flow.blocks[block].predecessors) {
    operands.push_back(getOrigin(registers.atEnd(from, number), number));
    operands.push_back(labels[from]);
  }
  need(operands.size() < 65535, "has a label that too many branches lead to");
  Words::put(heads[block], Op::Phi, operands);
}

void Translator::translateBlock(uint32_t number) {
  const Block &here = flow.blocks[number];
  block = number;
  body = &bodies[number];
  line = here.line;
  std::fill(current.begin(), current.end(), 0);
  Id file = words.getString(where);
  auto putLine = [&, last = 0u](uint32_t next) mutable {
    line = next;
    if (std::exchange(last, next) != next)
      put(Op::Line, {file, next, 0});
  };
  for (uint32_t i = here.begin; i < here.end; ++i) {
    statement = &entry.statements[i];
    putLine(statement->line);
    const std::optional<Described> made = describe();
    translate();
    if (made)
      described[current[getOperand(0).number]] = *made;
    for (uint32_t target : getRegisters(*statement, true))
      if (!current[target])
        fail("'" + statement->getName() + "' does not write its register");
  }
  for (uint32_t i = here.begin; i < here.end; ++i)
    for (uint32_t target : getRegisters(entry.statements[i], true))
      ends[{number, target}] = current[target];
  for (auto [target, value] : here.sets)
    ends[{number, target}] = words.getConstant(1, value);
  putLine(here.line);
  if (here.continueTarget != none)
    put(Op::LoopMerge, {labels[here.merge], labels[here.continueTarget], 0});
  else if (here.merge != none)
    put(Op::SelectionMerge, {labels[here.merge], 0});
  if (here.successors.empty()) {
    put(Op::Return, {});
  } else if (here.successors.size() == 1) {
    put(Op::Branch, {labels[here.successors[0]]});
  } else {
    std::array<uint32_t, 2> to = {labels[here.successors[0]], labels[here.successors[1]]};
    Id condition = getRegister(here.condition);
    if (here.isConditionNegated)
      std::swap(to[0], to[1]);
    // A merge instruction comes just before the branch.
    put(Op::BranchConditional, {condition, to[0], to[1]});
  }
}

std::vector<uint32_t> Translator::run(const std::string &name) {
  labels.resize(flow.blocks.size());
  bodies.resize(flow.blocks.size());
  heads.resize(flow.blocks.size());
  variables.resize(entry.symbols.size());
  current.resize(entry.widths.size());
  for (uint32_t i : flow.order)
    labels[i] = words.makeId();
  bindings.resize(entry.symbols.size());
  for (size_t i = 0; i < entry.symbols.size(); ++i)
    if (entry.symbols[i].space == Symbol::Space::Param && !getTensorMap(entry.symbols[i]))
      bindings[i] = words.makeBinding(entry.symbols[i].parameter);
  for (uint32_t each : flow.order)
    translateBlock(each);
  for (size_t i = 0; i < usedPhis.size(); ++i) // a phi may use others
    putPhi(usedPhis[i].first, usedPhis[i].second);
  std::vector<uint32_t> function;
  for (uint32_t each : flow.order) {
    const uint32_t label[] = {labels[each]};
    Words::put(function, Op::Label, label);
    function.insert(function.end(), heads[each].begin(), heads[each].end());
    function.insert(function.end(), bodies[each].begin(), bodies[each].end());
  }
  return words.finish(name, workgroup, function);
}

std::optional<spv::Module> ptx::readEntry(std::string_view text, const std::string &name,
                                          const std::array<uint32_t, 3> &workgroup,
                                          const std::string &where, int64_t launchMemory,
                                          const std::vector<TensorMap> &tensorMaps) {
  std::optional<Entry> found = parseEntry(text, name, where);
  if (!found)
    return std::nullopt;
  Entry &entry = *found;
  std::vector<Symbol *> unsized;
  for (Symbol &symbol : entry.symbols)
    if (symbol.space == Symbol::Space::Shared && symbol.bytes == 0)
      unsized.push_back(&symbol);
  if (unsized.size() == 1) // several begin at one place
    unsized.front()->bytes = launchMemory;
  if (!tensorMaps.empty())
    joinWaits(entry);
  Flow flow = makeFlow(entry, where);
  std::vector<uint32_t> words =
      Translator(entry, flow, entry.workgroup[0] ? entry.workgroup : workgroup, tensorMaps, where)
          .run(name);
  std::vector<unsigned char> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return spv::Module(bytes, where, spv::Opcodes::Own);
}
