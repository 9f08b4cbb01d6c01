//===- Module.cpp - Words to instructions ---------------------------------===//
//
// One pass over the words, in the order that the specification prescribes: types and constants
// refer only to earlier ones, so nothing here recurses.
//
//===----------------------------------------------------------------------===//

#include "weir/SpirvReader/Module.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace weir;
using namespace weir::spv;

/// The specification's universal limit on ids.
static constexpr uint32_t maxIds = 0x3fffff;
static constexpr uint32_t maxDepth = 255;
/// Max bytes of a type: above any binding, and small enough that sums do not overflow.
static constexpr int64_t maxTypeBytes = int64_t(1) << 48;

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

void Module::fail(uint32_t word, const std::string &problem) const {
  throw Error(where + ": word " + std::to_string(word) + ": " + problem);
}

void Module::refuse(uint32_t word, const std::string &problem) const {
  throw Unsupported(where + ": word " + std::to_string(word) + ": " + problem);
}

static std::string printId(Id id) { return "%" + std::to_string(id); }

const Type &Module::getType(Id id) const {
  if (id >= kindOf.size() || kindOf[id] != Kind::Type)
    throw Error(where + ": " + printId(id) + " is used as a type, but is not one");
  return types[placeOf[id]];
}

const Constant *Module::findConstant(Id id) const {
  return id < kindOf.size() && kindOf[id] == Kind::Constant ? &constants[placeOf[id]] : nullptr;
}

const Constant &Module::getConstant(Id id) const {
  if (const Constant *constant = findConstant(id))
    return *constant;
  throw Error(where + ": " + printId(id) + " is used as a constant, but is not one");
}

const Variable *Module::findVariable(Id id) const {
  return id < kindOf.size() && kindOf[id] == Kind::Variable ? &variables[placeOf[id]] : nullptr;
}

static const std::string &findText(const std::map<Id, std::string> &texts, Id id) {
  static const std::string none;
  auto found = texts.find(id);
  return found == texts.end() ? none : found->second;
}

const std::string &Module::getString(Id id) const { return findText(strings, id); }

const std::string &Module::getInstructionSet(Id id) const { return findText(instructionSets, id); }

Id Module::getTypeOf(Id id) const {
  if (id < kindOf.size()) {
    if (kindOf[id] == Kind::Constant)
      return constants[placeOf[id]].type;
    if (kindOf[id] == Kind::Variable)
      return variables[placeOf[id]].type;
    if (kindOf[id] == Kind::Value)
      return placeOf[id];
  }
  throw Error(where + ": " + printId(id) + " is used as a value, but is not one");
}

bool Module::isDecorated(Id id, Decoration decoration) const {
  return decorations.contains({id, decoration});
}

const Function &Module::getFunction(Id id) const {
  if (id >= kindOf.size() || kindOf[id] != Kind::Function)
    throw Error(where + ": " + printId(id) + " is used as a function, but is not one");
  return functions[placeOf[id]];
}

const EntryPoint *Module::findEntryPoint(const std::string &name) const {
  auto found = std::find_if(entryPoints.begin(), entryPoints.end(),
                            [&](const EntryPoint &entry) { return entry.name == name; });
  return found == entryPoints.end() ? nullptr : &*found;
}

uint32_t Function::getBlock(Id label) const {
  auto found = blockOfLabel.find(label);
  if (found == blockOfLabel.end())
    throw Error("function " + printId(id) + " has no block " + printId(label));
  return found->second;
}

//===----------------------------------------------------------------------===//
// The reader
//===----------------------------------------------------------------------===//

namespace weir::spv {
class Reader {
public:
  Reader(Module &module, Opcodes opcodes) : module(module), opcodes(opcodes) {}

  void readHeader(std::span<const unsigned char> bytes);
  void readInstructions();

private:
  using Kind = Module::Kind;

  void read(const Instruction &instruction);
  void readType(const Instruction &instruction);
  void readConstant(const Instruction &instruction);
  void readVariable(const Instruction &instruction);
  void readDecoration(const Instruction &instruction);
  void readEntryPoint(const Instruction &instruction);
  void readExecutionMode(const Instruction &instruction);
  void readInFunction(const Instruction &instruction);
  void beginFunction(const Instruction &instruction);
  void endFunction();
  void endBlock(Block &block, const Instruction &last);
  void finish();

  void define(const Instruction &instruction, Kind kind, uint32_t place);
  /// Reads a text from the operands from `from` on. Returns it and its number of words.
  std::pair<std::string, uint32_t> readText(const Instruction &instruction, uint32_t from) const;
  std::optional<uint32_t> findDecoration(Id id, Decoration decoration) const;
  void layOut(Type &type, Id id, const Instruction &instruction) const;
  [[noreturn]] void fail(const Instruction &instruction, const std::string &problem) const;

  Module &module;
  const Opcodes opcodes;
  Function *function = nullptr;
  Block *block = nullptr;
  SourceLine source;
  /// Execution modes by entry point; they come after all entry points.
  std::map<Id, std::array<uint32_t, 3>> localSizes;
  std::map<Id, std::array<Id, 3>> localSizeIds;
};
} // namespace weir::spv

void Reader::fail(const Instruction &instruction, const std::string &problem) const {
  module.fail(instruction.word, std::string(getName(instruction.op)) + " " + problem);
}

void Reader::readHeader(std::span<const unsigned char> bytes) {
  if (bytes.size() % 4 != 0 || bytes.size() < 20)
    throw Error(module.where + ": is not a SPIR-V module: " + std::to_string(bytes.size()) +
                " bytes, expected a multiple of 4 and at least 20");
  std::vector<uint32_t> &words = module.words;
  words.resize(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  constexpr uint32_t magic = 0x07230203;
  if (words[0] == __builtin_bswap32(magic))
    for (uint32_t &word : words)
      word = __builtin_bswap32(word);
  if (words[0] != magic)
    module.fail(0, "is not a SPIR-V module: the first word is not 0x07230203");
  if (words[1] >> 16 != 1 || words[1] & 0xff || ((words[1] >> 8) & 0xff) > 6)
    module.fail(1, "the version is not in 1.0 to 1.6");
  if (words[3] == 0 || words[3] > maxIds)
    module.fail(3, "the bound of ids is not in [1, " + std::to_string(maxIds) + "]");
  module.kindOf.resize(words[3]);
  module.placeOf.resize(words[3]);
}

void Reader::readInstructions() {
  std::span<const uint32_t> words = module.words;
  for (uint32_t at = 5; at < words.size();) {
    uint32_t count = words[at] >> 16, opcode = words[at] & 0xffff;
    const OpInfo *info = findOpInfo(opcode);
    bool isOwn = opcode >= firstOwnOpcode || Op(opcode) == Op::ConvertPtrToU ||
                 Op(opcode) == Op::ConvertUToPtr; // addresses that are numbers
    if (!info || (isOwn && opcodes == Opcodes::Standard))
      module.refuse(at, "opcode " + std::to_string(opcode) + " is not supported by Weir's reader");
    uint32_t ids = uint32_t(info->hasType) + uint32_t(info->hasResult);
    if (count < 1 + ids + info->words || count > words.size() - at)
      module.fail(at, std::string(info->name) + " has " + std::to_string(count) + " words, " +
                          (count > words.size() - at ? "more than the module" : "too few"));
    Instruction instruction;
    instruction.op = Op(opcode);
    instruction.word = at;
    instruction.source = source;
    uint32_t next = at + 1;
    if (info->hasType)
      instruction.type = words[next++];
    if (info->hasResult)
      instruction.result = words[next++];
    instruction.operands = words.subspan(next, at + count - next);
    if (info->hasType)
      module.getType(instruction.type);
    read(instruction);
    at += count;
  }
  if (function)
    throw Error(module.where + ": the last function has no OpFunctionEnd");
  finish();
}

void Reader::define(const Instruction &instruction, Kind kind, uint32_t place) {
  Id id = instruction.result;
  if (id == 0 || id >= module.kindOf.size())
    fail(instruction, "defines id " + std::to_string(id) + ", which is not below the bound");
  if (module.kindOf[id] != Kind::None)
    fail(instruction, "defines " + printId(id) + " a second time");
  module.kindOf[id] = kind;
  module.placeOf[id] = place;
}

std::pair<std::string, uint32_t> Reader::readText(const Instruction &instruction,
                                                  uint32_t from) const {
  std::string text;
  for (uint32_t i = from; i < instruction.operands.size(); ++i)
    for (uint32_t byte = 0; byte < 4; ++byte) {
      char c = char(instruction.operands[i] >> (8 * byte));
      if (!c)
        return {text, i - from + 1};
      text += c;
    }
  fail(instruction, "has a string without an end");
}

std::optional<uint32_t> Reader::findDecoration(Id id, Decoration decoration) const {
  auto found = module.decorations.find({id, decoration});
  return found == module.decorations.end() ? std::nullopt : std::optional(found->second);
}

void Reader::read(const Instruction &instruction) {
  switch (instruction.op) {
  case Op::Line:
    source = {instruction.operands[0], instruction.operands[1], instruction.operands[2]};
    if (source.line == 0)
      source = {};
    return;
  case Op::NoLine:
    source = {};
    return;
  case Op::Nop:
    return;
  default:
    break;
  }
  if (function)
    return readInFunction(instruction);
  switch (instruction.op) {
  case Op::Source:
  case Op::SourceContinued:
  case Op::SourceExtension:
  case Op::Name:
  case Op::MemberName:
  case Op::ModuleProcessed:
  case Op::Extension:
    return;
  case Op::MemoryModel:
    if (instruction.operands[0] != 0) // Logical
      module.refuse(instruction.word, "OpMemoryModel has an addressing model other than Logical");
    module.isVulkan = MemoryModel(instruction.operands[1]) == MemoryModel::Vulkan;
    return;
  case Op::Capability:
    module.capabilities.insert(instruction.operands[0]);
    return;
  case Op::String:
    define(instruction, Kind::Other, 0);
    module.strings[instruction.result] = readText(instruction, 0).first;
    return;
  case Op::ExtInstImport:
    define(instruction, Kind::Other, 0);
    module.instructionSets[instruction.result] = readText(instruction, 0).first;
    return;
  case Op::EntryPoint:
    return readEntryPoint(instruction);
  case Op::ExecutionMode:
  case Op::ExecutionModeId:
    return readExecutionMode(instruction);
  case Op::Decorate:
  case Op::MemberDecorate:
    return readDecoration(instruction);
  case Op::TypeVoid:
  case Op::TypeBool:
  case Op::TypeInt:
  case Op::TypeFloat:
  case Op::TypeVector:
  case Op::TypeArray:
  case Op::TypeRuntimeArray:
  case Op::TypeStruct:
  case Op::TypePointer:
  case Op::TypeFunction:
  case Op::TypeCooperativeMatrixKHR:
    return readType(instruction);
  case Op::Undef:
  case Op::ConstantTrue:
  case Op::ConstantFalse:
  case Op::Constant:
  case Op::ConstantComposite:
  case Op::ConstantNull:
  case Op::SpecConstantTrue:
  case Op::SpecConstantFalse:
  case Op::SpecConstant:
  case Op::SpecConstantComposite:
    return readConstant(instruction);
  case Op::Variable:
    return readVariable(instruction);
  case Op::Function:
    return beginFunction(instruction);
  default:
    fail(instruction, "is outside of a function");
  }
}

void Reader::readEntryPoint(const Instruction &instruction) {
  EntryPoint entry;
  entry.model = ExecutionModel(instruction.operands[0]);
  entry.function = instruction.operands[1];
  entry.name = readText(instruction, 2).first;
  if (module.findEntryPoint(entry.name))
    fail(instruction, "names a second entry point '" + entry.name + "'");
  module.entryPoints.push_back(std::move(entry));
}

void Reader::readExecutionMode(const Instruction &instruction) {
  auto mode = ExecutionMode(instruction.operands[1]);
  bool isSize = mode == ExecutionMode::LocalSize || mode == ExecutionMode::LocalSizeId;
  if (!isSize)
    return;
  if (instruction.operands.size() != 5)
    fail(instruction, "needs three sizes");
  std::array<uint32_t, 3> sizes = {instruction.operands[2], instruction.operands[3],
                                   instruction.operands[4]};
  (mode == ExecutionMode::LocalSize ? localSizes : localSizeIds)[instruction.operands[0]] = sizes;
}

void Reader::readDecoration(const Instruction &instruction) {
  std::span<const uint32_t> operands = instruction.operands;
  if (instruction.op == Op::MemberDecorate) {
    if (Decoration(operands[2]) == Decoration::Offset) {
      if (operands.size() < 4)
        fail(instruction, "lacks the offset");
      module.memberOffsets[{operands[0], operands[1]}] = operands[3];
    }
    return;
  }
  auto decoration = Decoration(operands[1]);
  bool hasWord = decoration == Decoration::SpecId || decoration == Decoration::ArrayStride ||
                 decoration == Decoration::BuiltIn || decoration == Decoration::Binding ||
                 decoration == Decoration::DescriptorSet;
  if (hasWord && operands.size() < 3)
    fail(instruction, "lacks its value");
  module.decorations[{operands[0], decoration}] = operands.size() < 3 ? 0 : operands[2];
}

/// Computes bytes, alignment, stride and offsets.
void Reader::layOut(Type &type, Id id, const Instruction &instruction) const {
  auto checkSize = [&](bool fits) {
    if (!fits)
      fail(instruction, "makes a type of more than 2^48 bytes");
  };
  auto roundUp = [](int64_t bytes, int64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  switch (type.kind) {
  case Type::Kind::Bool:
    type.bytes = type.alignment = 4;
    break;
  case Type::Kind::Int:
  case Type::Kind::Float:
    type.bytes = type.alignment = type.width / 8;
    break;
  case Type::Kind::Vector:
  case Type::Kind::Array:
  case Type::Kind::RuntimeArray: {
    const Type &element = module.getType(type.element);
    type.alignment = element.alignment;
    type.stride = roundUp(element.bytes, element.alignment);
    if (type.kind != Type::Kind::Vector)
      if (auto stride = findDecoration(id, Decoration::ArrayStride))
        type.stride = *stride;
    checkSize(type.count == 0 || type.stride <= maxTypeBytes / type.count);
    type.bytes = type.stride * type.count;
    break;
  }
  case Type::Kind::Struct:
    for (size_t i = 0; i < type.members.size(); ++i) {
      const Type &member = module.getType(type.members[i]);
      auto offset = module.memberOffsets.find({id, uint32_t(i)});
      int64_t begin = offset != module.memberOffsets.end() ? int64_t(offset->second)
                                                           : roundUp(type.bytes, member.alignment);
      type.offsets.push_back(begin);
      type.bytes = std::max(type.bytes, begin + member.bytes);
      checkSize(type.bytes <= maxTypeBytes);
      type.alignment = std::max(type.alignment, member.alignment);
    }
    break;
  case Type::Kind::CooperativeMatrix: // as if an invocation had all of it
    type.alignment = module.getType(type.element).alignment;
    type.bytes = module.getType(type.element).bytes * type.rows * type.columns;
    break;
  case Type::Kind::Void:
  case Type::Kind::Pointer:
  case Type::Kind::Function:
    break;
  }
}

void Reader::readType(const Instruction &instruction) {
  std::span<const uint32_t> operands = instruction.operands;
  Type type;
  auto getData = [&](Id id) -> const Type & {
    const Type &data = module.getType(id);
    if (data.kind == Type::Kind::Void || data.kind == Type::Kind::Function ||
        data.kind == Type::Kind::Pointer)
      fail(instruction, "is made of " + printId(id) + ", which is not a data type");
    type.depth = std::max(type.depth, data.depth + 1);
    if (type.depth > maxDepth)
      fail(instruction, "is nested more than " + std::to_string(maxDepth) + " deep");
    return data;
  };
  switch (instruction.op) {
  case Op::TypeBool:
    type.kind = Type::Kind::Bool;
    break;
  case Op::TypeInt:
  case Op::TypeFloat:
    type.kind = instruction.op == Op::TypeInt ? Type::Kind::Int : Type::Kind::Float;
    type.width = operands[0];
    if (type.width != 16 && type.width != 32 && type.width != 64 &&
        (type.width != 8 || type.kind == Type::Kind::Float))
      fail(instruction, "has " + std::to_string(type.width) + " bits, expected 8, 16, 32 or 64");
    if (type.kind == Type::Kind::Float && operands.size() > 1)
      fail(instruction, "has an encoding that is not IEEE's");
    break;
  case Op::TypeVector: {
    type.kind = Type::Kind::Vector;
    type.element = operands[0];
    type.count = operands[1];
    Type::Kind element = getData(type.element).kind;
    if (element != Type::Kind::Bool && element != Type::Kind::Int && element != Type::Kind::Float)
      fail(instruction, "has elements that are not scalars");
    // The sums of a product of matrices in PTX are one vector.
    if (uint32_t most = opcodes == Opcodes::Own ? 128 : 16; type.count < 2 || type.count > most)
      fail(instruction,
           "has " + std::to_string(type.count) + " elements, not 2 to " + std::to_string(most));
    break;
  }
  case Op::TypeArray: {
    type.kind = Type::Kind::Array;
    type.element = operands[0];
    const Constant &length = module.getConstant(operands[1]);
    if (length.kind != Constant::Kind::Scalar ||
        module.getType(length.type).kind != Type::Kind::Int || length.bits == 0 ||
        length.bits > UINT32_MAX)
      fail(instruction, "has a length that is not an integer from 1 to 2^32 - 1");
    type.count = uint32_t(length.bits);
    if (getData(type.element).kind == Type::Kind::RuntimeArray)
      fail(instruction, "is made of runtime arrays");
    break;
  }
  case Op::TypeRuntimeArray:
    type.kind = Type::Kind::RuntimeArray;
    type.element = operands[0];
    if (getData(type.element).kind == Type::Kind::RuntimeArray)
      fail(instruction, "is made of runtime arrays");
    break;
  case Op::TypeStruct:
    type.kind = Type::Kind::Struct;
    type.members.assign(operands.begin(), operands.end());
    for (Id member : type.members)
      getData(member);
    break;
  case Op::TypePointer:
    type.kind = Type::Kind::Pointer;
    type.storage = StorageClass(operands[0]);
    type.element = operands[1];
    getData(type.element);
    break;
  case Op::TypeCooperativeMatrixKHR: {
    constexpr uint64_t maxSide = 256;
    type.kind = Type::Kind::CooperativeMatrix;
    type.element = operands[0];
    Type::Kind element = getData(type.element).kind;
    if (element != Type::Kind::Int && element != Type::Kind::Float)
      fail(instruction, "has elements that are not numbers");
    std::array<uint64_t, 4> numbers; // scope, rows, columns, use
    for (size_t i = 0; i < numbers.size(); ++i) {
      const Constant &number = module.getConstant(operands[i + 1]);
      if (number.kind != Constant::Kind::Scalar || number.isSpecialized)
        module.refuse(instruction.word,
                      "OpTypeCooperativeMatrixKHR has a shape that is no plain constant");
      numbers[i] = number.bits;
    }
    if (Scope(numbers[0]) != Scope::Subgroup)
      module.refuse(instruction.word,
                    "OpTypeCooperativeMatrixKHR has another scope than the subgroup");
    if (numbers[1] < 1 || numbers[1] > maxSide || numbers[2] < 1 || numbers[2] > maxSide)
      fail(instruction, "has a side that is not of 1 to " + std::to_string(maxSide) + " elements");
    if (numbers[3] > uint64_t(CooperativeUse::Accumulator))
      fail(instruction, "has a use that is not A, B or the accumulator");
    type.rows = uint32_t(numbers[1]);
    type.columns = uint32_t(numbers[2]);
    type.use = CooperativeUse(numbers[3]);
    break;
  }
  case Op::TypeFunction:
    type.kind = Type::Kind::Function;
    for (Id id : operands)
      module.getType(id);
    break;
  default:
    break;
  }
  layOut(type, instruction.result, instruction);
  define(instruction, Kind::Type, uint32_t(module.types.size()));
  module.types.push_back(std::move(type));
}

void Reader::readConstant(const Instruction &instruction) {
  const Type &type = module.getType(instruction.type);
  Constant constant;
  constant.type = instruction.type;
  auto need = [&](bool holds) {
    if (!holds)
      fail(instruction, "does not fit its type");
  };
  switch (instruction.op) {
  case Op::SpecConstantTrue:
  case Op::SpecConstantFalse:
  case Op::SpecConstant:
  case Op::SpecConstantComposite:
    constant.isSpecialized = true;
    break;
  default:
    break;
  }
  switch (instruction.op) {
  case Op::ConstantTrue:
  case Op::SpecConstantTrue:
  case Op::ConstantFalse:
  case Op::SpecConstantFalse:
    need(type.kind == Type::Kind::Bool);
    constant.bits = instruction.op == Op::ConstantTrue || instruction.op == Op::SpecConstantTrue;
    break;
  case Op::Constant:
  case Op::SpecConstant:
    need(type.kind == Type::Kind::Int || type.kind == Type::Kind::Float);
    need(instruction.operands.size() == (type.width == 64 ? 2 : 1));
    constant.bits = instruction.operands[0];
    if (type.width == 64)
      constant.bits |= uint64_t(instruction.operands[1]) << 32;
    else if (type.width < 32) // its word is sign-extended
      constant.bits &= (uint64_t(1) << type.width) - 1;
    break;
  case Op::ConstantComposite:
  case Op::SpecConstantComposite: {
    constant.kind = Constant::Kind::Composite;
    constant.parts.assign(instruction.operands.begin(), instruction.operands.end());
    if (type.kind == Type::Kind::CooperativeMatrix) { // all elements are equal
      need(constant.parts.size() == 1 &&
           module.getConstant(constant.parts[0]).type == type.element);
      break;
    }
    bool isStruct = type.kind == Type::Kind::Struct;
    need(isStruct || type.kind == Type::Kind::Vector || type.kind == Type::Kind::Array);
    need(constant.parts.size() == (isStruct ? type.members.size() : type.count));
    for (size_t i = 0; i < constant.parts.size(); ++i)
      need(module.getConstant(constant.parts[i]).type ==
           (isStruct ? type.members[i] : type.element));
    break;
  }
  default: // OpConstantNull, OpUndef
    need(type.kind != Type::Kind::Void && type.kind != Type::Kind::Function &&
         type.kind != Type::Kind::RuntimeArray && type.kind != Type::Kind::Pointer);
    constant.kind = instruction.op == Op::Undef ? Constant::Kind::Undef : Constant::Kind::Null;
    break;
  }
  define(instruction, Kind::Constant, uint32_t(module.constants.size()));
  module.constants.push_back(std::move(constant));
}

void Reader::readVariable(const Instruction &instruction) {
  Variable variable;
  variable.id = instruction.result;
  variable.type = instruction.type;
  variable.storage = StorageClass(instruction.operands[0]);
  const Type &type = module.getType(variable.type);
  if (type.kind != Type::Kind::Pointer || type.storage != variable.storage)
    fail(instruction, "has a type that is not a pointer to its storage class");
  if (instruction.operands.size() > 1) {
    variable.initializer = instruction.operands[1];
    if (module.getConstant(variable.initializer).type != type.element)
      fail(instruction, "has an initializer of another type");
  }
  variable.set = findDecoration(variable.id, Decoration::DescriptorSet);
  variable.binding = findDecoration(variable.id, Decoration::Binding);
  if (auto builtIn = findDecoration(variable.id, Decoration::BuiltIn))
    variable.builtIn = BuiltIn(*builtIn);
  define(instruction, Kind::Variable, uint32_t(module.variables.size()));
  module.variables.push_back(variable);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void Reader::beginFunction(const Instruction &instruction) {
  if (module.getType(instruction.operands[1]).kind != Type::Kind::Function)
    fail(instruction, "has a type that is not a function type");
  define(instruction, Kind::Function, uint32_t(module.functions.size()));
  function = &module.functions.emplace_back();
  function->id = instruction.result;
  function->type = instruction.operands[1];
}

static bool isTerminator(Op op) {
  switch (op) {
  case Op::Branch:
  case Op::BranchConditional:
  case Op::Switch:
  case Op::Kill:
  case Op::Return:
  case Op::ReturnValue:
  case Op::Unreachable:
    return true;
  default:
    return false;
  }
}

void Reader::readInFunction(const Instruction &instruction) {
  const OpInfo &info = *findOpInfo(uint32_t(instruction.op));
  switch (instruction.op) {
  case Op::FunctionParameter:
    if (!function->blocks.empty())
      fail(instruction, "is after the first block");
    define(instruction, Kind::Value, instruction.type);
    function->parameters.push_back(instruction.result);
    return;
  case Op::FunctionEnd:
    return endFunction();
  case Op::Label:
    if (block)
      fail(instruction, "is inside a block");
    define(instruction, Kind::Block, uint32_t(function->blocks.size()));
    function->blockOfLabel[instruction.result] = uint32_t(function->blocks.size());
    block = &function->blocks.emplace_back();
    block->label = instruction.result;
    return;
  default:
    break;
  }
  if (!block)
    fail(instruction, "is outside of a block");
  // Refuse instructions without a result that do not store, synchronize or end the block.
  if (!info.hasType && instruction.op != Op::Store && instruction.op != Op::AtomicStore &&
      instruction.op != Op::ControlBarrier && instruction.op != Op::MemoryBarrier &&
      instruction.op != Op::SelectionMerge && instruction.op != Op::LoopMerge &&
      instruction.op != Op::NamedEffect && instruction.op != Op::CopyAsync &&
      instruction.op != Op::CopyTile && instruction.op != Op::MBarrierInit &&
      instruction.op != Op::MBarrierExpect && instruction.op != Op::MBarrierWait &&
      instruction.op != Op::CooperativeMatrixStoreKHR && !isTerminator(instruction.op))
    fail(instruction, "is not allowed inside a function");
  std::vector<Instruction> &before = block->instructions;
  if (instruction.op == Op::Phi) {
    if (!before.empty() && before.back().op != Op::Phi)
      fail(instruction, "is after other instructions of its block");
    if (instruction.operands.size() % 2 != 0)
      fail(instruction, "has half a pair of value and block");
  }
  if (instruction.op == Op::Variable) {
    const Type &type = module.getType(instruction.type);
    if (StorageClass(instruction.operands[0]) != StorageClass::Function ||
        type.kind != Type::Kind::Pointer || type.storage != StorageClass::Function)
      fail(instruction, "has a type that is not a pointer to storage class Function");
    if (function->blocks.size() != 1)
      fail(instruction, "is outside of the first block");
  }
  // Proofs follow a pointer back to its variable, which must not lead in circles.
  if (instruction.op == Op::AccessChain || instruction.op == Op::InBoundsAccessChain ||
      instruction.op == Op::CopyObject)
    if (Id from = instruction.operands[0];
        from >= module.kindOf.size() || module.kindOf[from] == Kind::None)
      fail(instruction, "uses " + printId(from) + ", which is not defined before it");
  bool isMerge = instruction.op == Op::SelectionMerge || instruction.op == Op::LoopMerge;
  if (block->merge && !isTerminator(instruction.op))
    fail(instruction, "is after the merge instruction of its block");
  if (info.hasResult)
    define(instruction, Kind::Value, instruction.type);
  if (isMerge) {
    block->merge = instruction.operands[0];
    if (block->merge == 0)
      fail(instruction, "names no block");
    if (instruction.op == Op::LoopMerge)
      block->continueTarget = instruction.operands[1];
  }
  before.push_back(instruction);
  if (isTerminator(instruction.op)) {
    block = nullptr;
    source = {};
  }
}

/// Looks up the labels that a block names.
void Reader::endBlock(Block &block, const Instruction &last) {
  auto add = [&](Id label) {
    auto found = function->blockOfLabel.find(label);
    if (found == function->blockOfLabel.end())
      fail(last, "names " + printId(label) + ", which is not a block of its function");
    return found->second;
  };
  auto follow = [&](Id label) { block.successors.push_back(add(label)); };
  std::span<const uint32_t> operands = last.operands;
  switch (last.op) {
  case Op::Branch:
    follow(operands[0]);
    break;
  case Op::BranchConditional:
    follow(operands[1]);
    follow(operands[2]);
    break;
  case Op::Switch: {
    const Type &type = module.getType(module.getTypeOf(operands[0]));
    if (type.kind != Type::Kind::Int)
      fail(last, "selects by something that is not an integer");
    size_t literal = type.width == 64 ? 2 : 1;
    if ((operands.size() - 2) % (literal + 1) != 0)
      fail(last, "has half a pair of value and block");
    follow(operands[1]);
    for (size_t i = 2; i < operands.size(); i += literal + 1)
      follow(operands[i + literal]);
    break;
  }
  default:
    break;
  }
  if (block.merge)
    add(block.merge);
  if (block.continueTarget)
    add(block.continueTarget);
  for (const Instruction &phi : block.instructions) {
    if (phi.op != Op::Phi)
      break;
    for (size_t i = 1; i < phi.operands.size(); i += 2)
      if (!function->blockOfLabel.contains(phi.operands[i]))
        fail(phi, "names " + printId(phi.operands[i]) + ", which is not a block of its function");
  }
}

void Reader::endFunction() {
  if (block)
    throw Error(module.where + ": the last block of function " + printId(function->id) +
                " does not end");
  for (Block &each : function->blocks)
    endBlock(each, each.instructions.back());
  function = nullptr;
}

void Reader::finish() {
  for (EntryPoint &entry : module.entryPoints) {
    module.getFunction(entry.function);
    if (auto sizes = localSizes.find(entry.function); sizes != localSizes.end())
      entry.localSize = sizes->second;
    if (auto ids = localSizeIds.find(entry.function); ids != localSizeIds.end())
      for (size_t axis = 0; axis < 3; ++axis) {
        const Constant &size = module.getConstant(ids->second[axis]);
        if (size.kind != Constant::Kind::Scalar || size.bits > UINT32_MAX)
          throw Error(module.where + ": a local size is not a constant integer");
        entry.localSize[axis] = uint32_t(size.bits);
      }
    if (std::ranges::count(entry.localSize, 0u))
      throw Error(module.where + ": a local size is 0, and a workgroup needs an invocation");
    // Invocations are counted in 64 bits.
    uint64_t invocations = 1;
    for (uint32_t size : entry.localSize)
      if (__builtin_mul_overflow(invocations, uint64_t(size), &invocations) ||
          invocations > UINT32_MAX)
        throw Error(module.where + ": a workgroup has more than 2^32 - 1 invocations");
  }
}

Module::Module(std::span<const unsigned char> bytes, const std::string &where, Opcodes opcodes)
    : where(where) {
  Reader reader(*this, opcodes);
  reader.readHeader(bytes);
  reader.readInstructions();
}
