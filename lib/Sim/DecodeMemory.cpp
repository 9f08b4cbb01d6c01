//===- DecodeMemory.cpp - Memory, barriers and shuffles -------------------===//

#include "Decoder.h"
#include "Subgroup.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

/// A shadow cell stores the number of a load or store in 16 bits.
static constexpr size_t maxSites = 65000;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Decoder::decodeAccessChain(const Instruction &instruction) {
  PointerTarget target = getTarget(instruction, instruction.operands[0]);
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    const Type &whole = module.getType(target.type);
    const Constant *constant = module.findConstant(instruction.operands[i]);
    const Value &index = use(instruction, i);
    const Type &indexType = module.getType(index.type);
    need(instruction, indexType.kind == Type::Kind::Int, "has an index that is not an integer");
    int64_t number = 0;
    if (constant) {
      need(instruction, constant->kind != Constant::Kind::Composite, "has a composite index");
      uint32_t unused = 64 - indexType.width; // indices are signed
      number = int64_t(constant->bits << unused) >> unused;
    }
    if (whole.kind == Type::Kind::Struct) {
      need(instruction, constant && number >= 0 && size_t(number) < whole.members.size(),
           "names a member that does not exist");
      need(instruction, !target.isInput, "leads into a structured input");
      target.offset += whole.offsets[size_t(number)];
      target.type = whole.members[size_t(number)];
      continue;
    }
    need(instruction,
         whole.kind == Type::Kind::Array || whole.kind == Type::Kind::RuntimeArray ||
             whole.kind == Type::Kind::Vector,
         "leads into a scalar");
    target.type = whole.element;
    if (target.isInput) {
      need(instruction, constant && number >= 0 && size_t(number) < target.inputs.size(),
           "has an index into an input that is not constant or out of range");
      target.inputs = {target.inputs[size_t(number)]};
      continue;
    }
    if (constant) {
      // Clamp: an index beyond 2^40 is far outside of any binding.
      constexpr int64_t maxIndex = int64_t(1) << 40;
      int64_t offset;
      if (__builtin_mul_overflow(std::clamp(number, -maxIndex, maxIndex), whole.stride, &offset) ||
          __builtin_add_overflow(target.offset, offset, &target.offset) ||
          target.offset > int64_t(1) << 60 || target.offset < -(int64_t(1) << 60))
        target.offset = int64_t(1) << 60;
      continue;
    }
    target.stride = std::gcd(target.stride, whole.stride);
    Register position = index.scalars[0];
    if (indexType.width < 32)
      position = convert(Convert::SignExtend, false, position, indexType.width);
    if (target.dynamic == noRegister) {
      target.dynamic = makeRegister(true);
      preset(target.dynamic, {Type::Kind::Int, 64, 0}, 0);
    }
    Register to = makeRegister(true);
    emit(getStep(indexType.width == 64 ? Convert::Index64 : Convert::Index32), to, target.dynamic,
         position, 0, whole.stride);
    target.dynamic = to;
  }
  const Type &pointer = module.getType(instruction.type);
  need(instruction, pointer.kind == Type::Kind::Pointer && pointer.element == target.type,
       "has a result of another type than its target");
  targets[instruction.result] = std::move(target);
}

void Decoder::decodeAccess(const Instruction &instruction) {
  bool isWrite = instruction.op == Op::Store;
  const PointerTarget &target = getTarget(instruction, instruction.operands[0]);
  Value value;
  if (isWrite) {
    value = useAs(instruction, 1, target.type);
  } else {
    need(instruction, instruction.type == target.type, "has a result of another type");
    if (target.isInput) {
      define(instruction, target.inputs);
      return;
    }
    value = makeValue(target.type);
    values[instruction.result] = value;
  }
  need(instruction, !target.isInput, "writes an input");
  checkVisible(instruction, target, isWrite ? 2 : 1);
  AccessSite access = makeAccess(instruction, target);
  access.isRead = !isWrite;
  access.isWrite = isWrite;
  for (size_t i = 0; i < access.scalars.size(); ++i)
    access.scalars[i].value = value.scalars[i];
  if (!isWrite && instruction.operands.size() > 1 &&
      instruction.operands[1] & MemoryOperand::ReadOnly)
    access.isReadOnly = program.hasReadOnly = true;
  if (auto rows = matrixRows.find(instruction.result); !isWrite && rows != matrixRows.end())
    access.lanes = rows->second;
  emit(getAccessStep(), 0, 0, 0, 0,
       addAccess(instruction, std::move(access), instruction.operands[0]));
}

uint16_t Decoder::addAccess(const Instruction &instruction, AccessSite access, Id pointer) {
  const uint16_t site = access.site;
  program.accesses.push_back(std::move(access));
  auto others = otherTargets.find(pointer);
  if (others == otherTargets.end())
    return site;
  for (const PointerTarget &target : others->second) {
    AccessSite other = makeAccess(instruction, target);
    const AccessSite &first = program.accesses[site];
    other.isRead = first.isRead;
    other.isWrite = first.isWrite;
    other.isReadOnly = first.isReadOnly;
    other.lanes = first.lanes;
    other.atomic = first.atomic;
    other.isOfDevice = first.isOfDevice;
    other.operand = first.operand;
    other.comparator = first.comparator;
    other.scalars = first.scalars;
    program.accesses.push_back(std::move(other));
  }
  program.accesses[site].alternatives = uint32_t(others->second.size()) + 1;
  return site;
}

/// Returns the access at `target`, without its kind (read, write, atomic).
AccessSite Decoder::makeAccess(const Instruction &instruction, const PointerTarget &target) {
  if (program.accesses.size() > maxSites)
    throw Error(where + ": has more than " + std::to_string(maxSites) +
                " loads and stores, more than the simulator has numbers for");
  AccessSite access;
  access.space = target.space;
  access.binding = target.binding;
  access.offset = target.offset;
  access.objectBegin = target.begin;
  access.objectEnd = target.end;
  access.dynamic = target.dynamic;
  access.isAddressed = target.isAddressed;
  access.source = instruction.source;
  access.site = uint16_t(program.accesses.size());
  const std::vector<Scalar> &scalars = getScalars(target.type);
  need(instruction, !scalars.empty(), "accesses no bytes");
  for (size_t i = 0; i < scalars.size(); ++i) {
    uint32_t bytes = scalars[i].width / 8;
    access.scalars.push_back({scalars[i].offset, bytes, 0});
    access.bytes = std::max(access.bytes, scalars[i].offset + bytes);
  }
  int64_t common = std::gcd(std::gcd(target.stride, target.offset), access.bytes);
  access.granule = std::min<int64_t>(16, common & -common);
  if (access.space == Space::Workgroup)
    program.workgroupGranule = std::min(program.workgroupGranule, access.granule);
  return access;
}

void Decoder::decodeAtomic(const Instruction &instruction) {
  Op op = instruction.op;
  size_t first = op == Op::AtomicCompareExchange ? 4 : op == Op::NamedAtomic ? 4 : 3;
  if (op == Op::NamedAtomic)
    op = getAtomic(instruction);
  const PointerTarget &target = getTarget(instruction, instruction.operands[0]);
  const Type &type = module.getType(target.type);
  need(instruction,
       !target.isInput && target.space != Space::Private && type.kind == Type::Kind::Int &&
           type.width >= 32,
       "is of something other than an integer of 32 or 64 bits in a buffer or workgroup memory");
  auto scope = Scope(useConstant(instruction, 1));
  uint32_t semantics = useConstant(instruction, 2);
  const bool compares = op == Op::AtomicCompareExchange;
  if (instruction.op == Op::AtomicCompareExchange)
    semantics |= useConstant(instruction, 3);
  need(instruction, !(semantics & (Acquire | Release | AcquireRelease | SequentiallyConsistent)),
       "orders other memory, which the simulator does not support");
  bool isOfDevice = scope == Scope::Device || scope == Scope::QueueFamily;
  need(instruction, isOfDevice || scope == Scope::Workgroup,
       "of another scope than the workgroup, queue family or device is not supported by the "
       "simulator");
  AccessSite access = makeAccess(instruction, target);
  access.atomic = op;
  access.isOfDevice = isOfDevice;
  access.isRead = op != Op::AtomicStore;
  access.isWrite = op != Op::AtomicLoad;
  if (instruction.op == Op::NamedAtomic && compares) { // PTX has what it compares with first
    access.comparator = useAs(instruction, first, target.type).scalars[0];
    access.operand = useAs(instruction, first + 1, target.type).scalars[0];
  } else {
    if (instruction.operands.size() > first)
      access.operand = useAs(instruction, first, target.type).scalars[0];
    if (compares)
      access.comparator = useAs(instruction, first + 1, target.type).scalars[0];
  }
  Value result = makeValue(target.type);
  access.scalars[0].value = result.scalars[0];
  if (access.isRead) {
    need(instruction, instruction.type == target.type, "has a result of another type");
    values[instruction.result] = std::move(result);
  }
  emit(getAccessStep(), 0, 0, 0, 0,
       addAccess(instruction, std::move(access), instruction.operands[0]));
}

//===----------------------------------------------------------------------===//
// Among invocations
//===----------------------------------------------------------------------===//

void Decoder::decodeBarrier(const Instruction &instruction) {
  need(instruction, Scope(useConstant(instruction, 0)) == Scope::Workgroup,
       "of another scope than the workgroup is not supported by the simulator");
  auto memory = Scope(useConstant(instruction, 1));
  uint32_t semantics = useConstant(instruction, 2);
  bool orders =
      (memory == Scope::Workgroup || memory == Scope::Device || memory == Scope::QueueFamily) &&
      (semantics & (AcquireRelease | SequentiallyConsistent) ||
       (semantics & Acquire && semantics & Release));
  constexpr uint32_t both = MakeAvailable | MakeVisible;
  orders &= !module.hasVulkanMemoryModel() || (semantics & both) == both;
  Barrier barrier;
  barrier.ordersStorage = orders && semantics & UniformMemory;
  barrier.ordersWorkgroup = orders && semantics & WorkgroupMemory;
  barrier.source = instruction.source;
  emit(getBarrierStep(), 0, 0, 0, 0, int64_t(program.barriers.size()));
  program.barriers.push_back(barrier);
}

void Decoder::decodeShuffle(const Instruction &instruction) {
  need(instruction, Scope(useConstant(instruction, 0)) == Scope::Subgroup,
       "of another scope than the subgroup is not supported by the simulator");
  const Value &value = useAs(instruction, 1, instruction.type);
  bool isFirst = instruction.op == Op::GroupNonUniformBroadcastFirst;
  Register lane = 0;
  if (!isFirst) {
    const Value &index = use(instruction, 2);
    const Type &type = module.getType(index.type);
    need(instruction, type.kind == Type::Kind::Int && type.width == 32,
         "has a lane that is not a 32-bit integer");
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

/// Returns the result of a reduction of no values.
static uint64_t getIdentity(Op op, bool isWide) {
  auto getBits = [&](double number) {
    return isWide ? std::bit_cast<uint64_t>(number) : std::bit_cast<uint32_t>(float(number));
  };
  switch (op) {
  case Op::GroupNonUniformIMul:
    return 1;
  case Op::GroupNonUniformFMul:
    return getBits(1);
  case Op::GroupNonUniformSMin:
    return ~uint64_t(0) >> (isWide ? 1 : 33);
  case Op::GroupNonUniformSMax:
    return uint64_t(1) << (isWide ? 63 : 31);
  case Op::GroupNonUniformUMin:
  case Op::GroupNonUniformBitwiseAnd:
    return ~uint64_t(0);
  case Op::GroupNonUniformFMin:
    return getBits(std::numeric_limits<double>::infinity());
  case Op::GroupNonUniformFMax:
    return getBits(-std::numeric_limits<double>::infinity());
  default:
    return 0;
  }
}

void Decoder::decodeReduction(const Instruction &instruction) {
  need(instruction, Scope(useConstant(instruction, 0)) == Scope::Subgroup,
       "of another scope than the subgroup is not supported by the simulator");
  uint32_t reduction = instruction.operands[1];
  need(instruction, reduction <= uint32_t(Reduction::BeforeOwn),
       "of clusters is not supported by the simulator");
  const Value &value = useAs(instruction, 2, instruction.type);
  const std::vector<Scalar> scalars = getScalars(instruction.type);
  std::vector<Register> made;
  for (size_t i = 0; i < scalars.size(); ++i) {
    bool isWide = scalars[i].isWide(), isFloat = scalars[i].kind == Type::Kind::Float;
    StepFunction run = nullptr;
    if (!scalars[i].isNarrow() && scalars[i].kind != Type::Kind::Bool)
      run = findReduction(instruction.op, isFloat ? (isWide ? Number::F64 : Number::F32)
                                                  : (isWide ? Number::U64 : Number::U32));
    need(instruction, run, "has operands that the simulator does not support for it");
    Register identity = makeRegister(isWide);
    preset(identity, scalars[i], getIdentity(instruction.op, isWide));
    made.push_back(makeRegister(isWide));
    emit(run, made.back(), value.scalars[i], identity, 0, reduction);
  }
  define(instruction, std::move(made));
}
