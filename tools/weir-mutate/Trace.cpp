//===- Trace.cpp - Which bytes each invocation touches --------------------===//

#include "Trace.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

using namespace weir;
using namespace weir::mutate;
using namespace weir::spv;

/// Max number of instructions of one kernel: beyond, enumeration takes too long.
static constexpr uint64_t maxInstructions = uint64_t(1) << 31;
static constexpr size_t maxTouches = size_t(1) << 24;

namespace {

/// Up to four integers of at most 64 bits, zero-extended. Unknown ones are floats or depend on
/// loaded values.
struct Value {
  std::array<uint64_t, 4> bits = {};
  uint8_t known = 0; ///< one bit per integer

  std::optional<uint64_t> get(size_t i) const {
    return known >> i & 1 ? std::optional(bits[i]) : std::nullopt;
  }
  void set(size_t i, std::optional<uint64_t> number) {
    bits[i] = number.value_or(0);
    known = uint8_t((known & ~(1u << i)) | unsigned(number.has_value()) << i);
  }
};

struct Pointer {
  enum class Kind { None, Input, Buffer, Workgroup, Own } kind = Kind::None;
  uint32_t object = 0; ///< Buffer, Workgroup: as in `Touch`; else an id
  int64_t offset = 0;
  bool isWhole = true; ///< Own: whether it points to the whole variable
};

struct Access {
  uint32_t object;
  int64_t begin, end;
  bool isWrite;
  uint32_t phase, invocation, number;
};

class Tracer {
public:
  Tracer(const Module &module, const std::string &entryPoint, const std::array<int64_t, 3> &grid,
         uint32_t subgroupSize, uint32_t bindings, const std::string &where);
  Trace run();

private:
  void runInvocation(uint32_t workgroup, uint32_t invocation);
  void step(const Instruction &instruction);
  void compute(const Instruction &instruction);
  void makePointer(const Instruction &instruction);
  void access(const Instruction &instruction);
  void meet(const Instruction &instruction);
  void readBuiltIn(const Variable &variable, Value &value) const;
  void note(uint32_t workgroup);

  const Value &use(Id id);
  uint32_t getWidth(Id type) const;
  [[noreturn]] void refuse(const Instruction &instruction, const std::string &problem) const {
    throw Error(where + ": " + getName(instruction.op) + " at word " +
                std::to_string(instruction.word) + " " + problem);
  }

  const Module &module;
  std::string where;
  const EntryPoint *entry = nullptr;
  std::array<uint32_t, 3> grid;
  uint32_t subgroupSize, size = 1;

  // Values of the current invocation, by id.
  std::vector<Value> values;
  std::vector<Pointer> pointers;
  std::vector<bool> isConstant;
  std::map<Id, Value> own; ///< contents of its variables that are not arrays
  uint32_t workgroup = 0, invocation = 0, storagePhase = 0, memoryPhase = 0, number = 0;
  uint64_t instructions = 0;

  std::vector<Access> accesses; ///< accesses of the current workgroup
  struct Range {
    Touch touch;
    int64_t end;
  };
  std::vector<Range> ranges; ///< ranges so far; `touch.granule` is in bytes
  Trace result;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static int64_t extend(uint64_t bits, uint32_t width) {
  return int64_t(bits << (64 - width)) >> (64 - width);
}

static uint64_t cut(uint64_t bits, uint32_t width) {
  return width >= 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}

Tracer::Tracer(const Module &module, const std::string &entryPoint,
               const std::array<int64_t, 3> &grid, uint32_t subgroupSize, uint32_t bindings,
               const std::string &where)
    : module(module), where(where), entry(module.findEntryPoint(entryPoint)),
      grid{uint32_t(grid[0]), uint32_t(grid[1]), uint32_t(grid[2])}, subgroupSize(subgroupSize),
      values(module.getBound()), pointers(module.getBound()), isConstant(module.getBound()) {
  if (!entry)
    throw Error(where + ": has no entry point \"" + entryPoint + "\"");
  for (uint32_t axis : entry->localSize)
    size *= axis;
  result.bindings = bindings;
  uint32_t variables = bindings;
  for (const Variable &variable : module.getVariables()) {
    Pointer &pointer = pointers[variable.id];
    switch (variable.storage) {
    case StorageClass::Input:
      pointer = {Pointer::Kind::Input, variable.id};
      break;
    case StorageClass::StorageBuffer:
      if (variable.set.value_or(1) != 0 || variable.binding.value_or(bindings) >= bindings)
        throw Error(where + ": has a buffer that is not an operand in the plan");
      pointer = {Pointer::Kind::Buffer, *variable.binding};
      break;
    case StorageClass::Workgroup:
      pointer = {Pointer::Kind::Workgroup, variables++};
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

/// Returns the result of an operation on `width`-bit integers; none if it is undefined or not
/// modelled.
static std::optional<uint64_t> computeBinary(Op op, uint64_t a, uint64_t b, uint32_t width) {
  int64_t sa = extend(a, width), sb = extend(b, width);
  bool canDivide = b != 0 && !(sb == -1 && sa == extend(uint64_t(1) << (width - 1), width));
  switch (op) {
  case Op::IAdd:
    return a + b;
  case Op::ISub:
    return a - b;
  case Op::IMul:
    return a * b;
  case Op::UDiv:
    return canDivide ? std::optional(a / b) : std::nullopt;
  case Op::UMod:
    return canDivide ? std::optional(a % b) : std::nullopt;
  case Op::SDiv:
    return canDivide ? std::optional(uint64_t(sa / sb)) : std::nullopt;
  case Op::SRem:
    return canDivide ? std::optional(uint64_t(sa % sb)) : std::nullopt;
  case Op::SMod:
    return canDivide
               ? std::optional(uint64_t(sa % sb && (sa < 0) != (sb < 0) ? sa % sb + sb : sa % sb))
               : std::nullopt;
  case Op::ShiftLeftLogical:
    return b < width ? std::optional(a << b) : std::nullopt;
  case Op::ShiftRightLogical:
    return b < width ? std::optional(a >> b) : std::nullopt;
  case Op::ShiftRightArithmetic:
    return b < width ? std::optional(uint64_t(sa >> b)) : std::nullopt;
  case Op::BitwiseAnd:
  case Op::LogicalAnd:
    return a & b;
  case Op::BitwiseOr:
  case Op::LogicalOr:
    return a | b;
  case Op::BitwiseXor:
    return a ^ b;
  case Op::IEqual:
  case Op::LogicalEqual:
    return a == b;
  case Op::INotEqual:
  case Op::LogicalNotEqual:
    return a != b;
  case Op::UGreaterThan:
    return a > b;
  case Op::SGreaterThan:
    return sa > sb;
  case Op::UGreaterThanEqual:
    return a >= b;
  case Op::SGreaterThanEqual:
    return sa >= sb;
  case Op::ULessThan:
    return a < b;
  case Op::SLessThan:
    return sa < sb;
  case Op::ULessThanEqual:
    return a <= b;
  case Op::SLessThanEqual:
    return sa <= sb;
  default:
    return std::nullopt;
  }
}

static std::optional<uint64_t> computeGlsl(Glsl function, uint64_t a, uint64_t b, uint32_t width) {
  int64_t sa = extend(a, width), sb = extend(b, width);
  switch (function) {
  case Glsl::SAbs:
    return uint64_t(sa < 0 ? -sa : sa);
  case Glsl::UMin:
    return std::min(a, b);
  case Glsl::UMax:
    return std::max(a, b);
  case Glsl::SMin:
    return uint64_t(std::min(sa, sb));
  case Glsl::SMax:
    return uint64_t(std::max(sa, sb));
  default:
    return std::nullopt;
  }
}

void Tracer::compute(const Instruction &instruction) {
  uint32_t width = getWidth(instruction.type);
  Value value;
  auto at = [&](size_t i) -> const Value & { return use(instruction.operands[i]); };
  auto widthAt = [&](size_t i) { return getWidth(module.getTypeOf(instruction.operands[i])); };
  if (!width) { // floats
    values[instruction.result] = value;
    return;
  }
  switch (instruction.op) {
  case Op::CompositeExtract:
    if (instruction.operands.size() == 2 && instruction.operands[1] < 4)
      value.set(0, at(0).get(instruction.operands[1]));
    break;
  case Op::CompositeConstruct:
    for (size_t i = 0; i < std::min<size_t>(4, instruction.operands.size()); ++i)
      if (module.getType(module.getTypeOf(instruction.operands[i])).kind != Type::Kind::Vector)
        value.set(i, at(i).get(0));
      else
        return void(values[instruction.result] = Value());
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
  values[instruction.result] = value;
}

void Tracer::makePointer(const Instruction &instruction) {
  use(instruction.operands[0]); // there is such an id
  Pointer pointer = pointers[instruction.operands[0]];
  Id pointee = module.getType(module.getTypeOf(instruction.operands[0])).element;
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    const Type &whole = module.getType(pointee);
    auto index = use(instruction.operands[i]).get(0);
    if (!index && pointer.kind != Pointer::Kind::Own)
      refuse(instruction, "has an index that depends on what is loaded, which weir-mutate cannot "
                          "follow");
    uint32_t width = getWidth(module.getTypeOf(instruction.operands[i]));
    if (!width)
      refuse(instruction, "has an index that is not an integer");
    int64_t number = extend(index.value_or(0), width);
    if (whole.kind == Type::Kind::Struct) {
      if (number < 0 || size_t(number) >= whole.members.size())
        refuse(instruction, "names a member that does not exist");
      pointer.offset += whole.offsets[size_t(number)];
      pointee = whole.members[size_t(number)];
    } else {
      int64_t bytes = 0;
      if (__builtin_mul_overflow(number, whole.stride, &bytes) ||
          __builtin_add_overflow(pointer.offset, bytes, &pointer.offset))
        refuse(instruction, "has an index that is out of all bounds");
      pointee = whole.element;
    }
    pointer.isWhole = false;
  }
  pointers[instruction.result] = pointer;
}

void Tracer::access(const Instruction &instruction) {
  bool isWrite = instruction.op == Op::Store;
  use(instruction.operands[0]); // there is such an id
  const Pointer &pointer = pointers[instruction.operands[0]];
  Id type = isWrite ? module.getTypeOf(instruction.operands[1]) : instruction.type;
  Value read;
  switch (pointer.kind) {
  case Pointer::Kind::None:
    refuse(instruction, "goes where no variable is");
  case Pointer::Kind::Input: {
    Value all;
    readBuiltIn(*module.findVariable(pointer.object), all);
    if (pointer.isWhole)
      read = all;
    else
      read.set(0, all.get(size_t(pointer.offset) / 4));
    break;
  }
  case Pointer::Kind::Own: // arrays are not tracked: loads from them are unknown
    if (isWrite)
      own[pointer.object] = pointer.isWhole ? use(instruction.operands[1]) : Value();
    else if (pointer.isWhole)
      read = own[pointer.object];
    break;
  case Pointer::Kind::Buffer:
  case Pointer::Kind::Workgroup:
    accesses.push_back({pointer.object, pointer.offset, pointer.offset + module.getType(type).bytes,
                        isWrite, pointer.kind == Pointer::Kind::Buffer ? storagePhase : memoryPhase,
                        invocation, number++});
    ++result.accesses;
    break;
  }
  if (!isWrite)
    values[instruction.result] = read;
}

void Tracer::meet(const Instruction &instruction) {
  auto get = [&](size_t i) {
    auto number = use(instruction.operands[i]).get(0);
    if (!number)
      refuse(instruction, "has operands that are not constants");
    return *number;
  };
  uint64_t semantics = get(2);
  if (get(0) != uint64_t(Scope::Workgroup))
    refuse(instruction, "is not a barrier of a workgroup");
  bool orders = get(1) <= uint64_t(Scope::Workgroup) &&
                (semantics & (AcquireRelease | SequentiallyConsistent));
  storagePhase += orders && semantics & UniformMemory;
  memoryPhase += orders && semantics & WorkgroupMemory;
}

void Tracer::step(const Instruction &instruction) {
  switch (instruction.op) {
  case Op::Nop:
  case Op::Line:
  case Op::NoLine:
  case Op::LoopMerge:
  case Op::SelectionMerge:
    return;
  case Op::Variable:
    pointers[instruction.result] = {Pointer::Kind::Own, instruction.result};
    own[instruction.result] = Value();
    return;
  case Op::AccessChain:
  case Op::InBoundsAccessChain:
    return makePointer(instruction);
  case Op::Load:
  case Op::Store:
    return access(instruction);
  case Op::ControlBarrier:
    return meet(instruction);
  default:
    break;
  }
  if (!instruction.result || instruction.op == Op::FunctionCall ||
      getKind(instruction.op) == OpKind::Atomic)
    refuse(instruction, "is not supported by weir-mutate");
  compute(instruction);
}

//===----------------------------------------------------------------------===//
// Invocations
//===----------------------------------------------------------------------===//

void Tracer::runInvocation(uint32_t inWorkgroup, uint32_t index) {
  workgroup = inWorkgroup;
  invocation = index;
  storagePhase = memoryPhase = number = 0;
  own.clear();
  const Function &function = module.getFunction(entry->function);
  if (function.blocks.empty())
    throw Error(where + ": has an entry point without a body");
  uint32_t block = 0;
  Id before = 0;
  std::vector<std::pair<Id, Value>> phis;
  while (true) {
    const Block &here = function.blocks[block];
    phis.clear();
    for (const Instruction &instruction : here.instructions) {
      if (instruction.op == Op::Phi) { // phis read all values before any is written
        for (size_t i = 0; i + 1 < instruction.operands.size(); i += 2)
          if (instruction.operands[i + 1] == before)
            phis.emplace_back(instruction.result, use(instruction.operands[i]));
        continue;
      }
      for (auto &[id, value] : phis)
        values[id] = value;
      phis.clear();
      if (&instruction != &here.instructions.back())
        step(instruction);
    }
    instructions += here.instructions.size();
    if (instructions > maxInstructions)
      throw Error(where + ": runs for so long that weir-mutate gives up; use smaller sizes");
    const Instruction &last = here.instructions.back();
    before = here.label;
    switch (last.op) {
    case Op::Return:
      return;
    case Op::Branch:
      block = here.successors[0];
      break;
    case Op::BranchConditional: {
      auto condition = use(last.operands[0]).get(0);
      if (!condition)
        refuse(last, "depends on what is loaded, which weir-mutate cannot follow");
      block = function.getBlock(last.operands[*condition ? 1 : 2]);
      break;
    }
    default:
      refuse(last, "is not supported by weir-mutate");
    }
  }
}

/// Adds the accesses of a workgroup to the ranges, merging adjacent ones.
void Tracer::note(uint32_t workgroup) {
  auto key = [](const Access &access) {
    return std::tie(access.object, access.phase, access.begin, access.end);
  };
  std::sort(accesses.begin(), accesses.end(),
            [&](const Access &a, const Access &b) { return key(a) < key(b); });
  for (const Access *access = accesses.data(); access != accesses.data() + accesses.size();) {
    Touch touch;
    touch.object = access->object;
    touch.granule = access->begin;
    touch.workgroup = workgroup;
    touch.phase = access->phase;
    touch.invocation = access->invocation;
    touch.firstWrite = UINT32_MAX;
    const Access *first = access;
    for (; access != accesses.data() + accesses.size() && key(*access) == key(*first); ++access) {
      (access->isWrite ? touch.writes : touch.reads) = true;
      if (access->isWrite)
        touch.firstWrite = std::min(touch.firstWrite, access->number);
      else
        touch.lastRead = std::max(touch.lastRead, access->number);
      if (access->invocation != touch.invocation) {
        touch.isMany = true;
        touch.other = access->invocation;
      }
    }
    ranges.push_back({touch, first->end});
    int64_t border = result.granule | first->begin | first->end;
    result.granule = border & -border;
  }
  accesses.clear();
  if (ranges.size() > maxTouches)
    throw Error(where + ": touches memory so often that weir-mutate gives up; use smaller sizes");
}

static auto getPlace(const Touch &touch) {
  return std::tie(touch.object, touch.granule, touch.workgroup, touch.phase);
}

Trace Tracer::run() {
  uint64_t workgroups = uint64_t(grid[0]) * grid[1] * grid[2];
  for (uint64_t group = 0; group < workgroups; ++group) {
    for (uint32_t index = 0; index < size; ++index)
      runInvocation(uint32_t(group), index);
    note(uint32_t(group));
  }
  std::vector<Touch> &touches = result.touches;
  for (const Range &range : ranges)
    for (int64_t at = range.touch.granule; at < range.end; at += result.granule) {
      touches.push_back(range.touch);
      touches.back().granule = at / result.granule;
    }
  std::sort(touches.begin(), touches.end(),
            [](const Touch &a, const Touch &b) { return getPlace(a) < getPlace(b); });
  size_t last = 0;
  for (size_t i = 1; i < touches.size(); ++i) {
    Touch &to = touches[last];
    const Touch &from = touches[i];
    if (getPlace(to) != getPlace(from)) {
      touches[++last] = from;
      continue;
    }
    if (!to.isMany && (from.isMany || from.invocation != to.invocation)) {
      to.isMany = true;
      to.other = from.invocation != to.invocation ? from.invocation : from.other;
    }
    to.reads |= from.reads;
    to.writes |= from.writes;
    to.lastRead = std::max(to.lastRead, from.lastRead);
    to.firstWrite = std::min(to.firstWrite, from.firstWrite);
  }
  touches.resize(touches.empty() ? 0 : last + 1);
  return std::move(result);
}

Trace mutate::trace(const Module &module, const std::string &entryPoint,
                    const std::array<int64_t, 3> &grid, uint32_t subgroupSize, uint32_t bindings,
                    const std::string &where) {
  return Tracer(module, entryPoint, grid, subgroupSize, bindings, where).run();
}
