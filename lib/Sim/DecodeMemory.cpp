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

/// A shadow cell's number of a load or store has 16 bits.
static constexpr size_t mostSites = 65000;

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
  MemoryAccess access = makeAccess(instruction, place);
  access.isRead = !isWrite;
  access.isWrite = isWrite;
  for (size_t i = 0; i < access.scalars.size(); ++i)
    access.scalars[i].value = value.scalars[i];
  emit(getAccessStep(), 0, 0, 0, 0, access.site);
  program.accesses.push_back(std::move(access));
}

/// All but what it does there.
MemoryAccess Decoder::makeAccess(const Instruction &instruction, const Place &place) {
  if (program.accesses.size() > mostSites)
    throw Error(where + ": has more than " + std::to_string(mostSites) +
                " loads and stores, more than the simulator has numbers for");
  MemoryAccess access;
  access.space = place.space;
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
    access.scalars.push_back({scalars[i].offset, bytes, 0});
    access.bytes = std::max(access.bytes, scalars[i].offset + bytes);
  }
  int64_t common = std::gcd(std::gcd(place.stride, place.offset), access.bytes);
  access.granule = std::min<int64_t>(16, common & -common);
  if (access.space == Space::Workgroup)
    program.workgroupGranule = std::min(program.workgroupGranule, access.granule);
  return access;
}

void Decoder::decodeAtomic(const Instruction &instruction) {
  const Place &place = getPlace(instruction, instruction.operands[0]);
  const Type &type = module.getType(place.type);
  need(instruction,
       !place.isInput && place.space != Space::Private && type.kind == Type::Kind::Int &&
           type.width >= 32,
       "is of something other than an integer of 32 or 64 bits in a buffer or workgroup memory");
  auto scope = Scope(useConstant(instruction, 1));
  uint32_t semantics = useConstant(instruction, 2);
  const bool compares = instruction.op == Op::AtomicCompareExchange;
  if (compares)
    semantics |= useConstant(instruction, 3);
  need(instruction, !(semantics & (Acquire | Release | AcquireRelease | SequentiallyConsistent)),
       "orders other memory, which the simulator does not know");
  bool isOfDevice = scope == Scope::Device || scope == Scope::QueueFamily;
  need(instruction, isOfDevice || scope == Scope::Workgroup,
       "of another scope than the workgroup, queue family or device is not known to the simulator");
  MemoryAccess access = makeAccess(instruction, place);
  access.atomic = instruction.op;
  access.isOfDevice = isOfDevice;
  access.isRead = instruction.op != Op::AtomicStore;
  access.isWrite = instruction.op != Op::AtomicLoad;
  const size_t first = compares ? 4 : 3;
  if (instruction.operands.size() > first)
    access.operand = useAs(instruction, first, place.type).scalars[0];
  if (compares)
    access.comparator = useAs(instruction, first + 1, place.type).scalars[0];
  Value result = makeValue(place.type);
  access.scalars[0].value = result.scalars[0];
  if (access.isRead) {
    need(instruction, instruction.type == place.type, "has a result of another type");
    values[instruction.result] = std::move(result);
  }
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

/// What a reduction of no values gives.
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
       "of another scope than the subgroup is not known to the simulator");
  uint32_t reduction = instruction.operands[1];
  need(instruction, reduction <= uint32_t(Reduction::BeforeOwn),
       "of clusters is not known to the simulator");
  const Value &value = useAs(instruction, 2, instruction.type);
  const std::vector<Scalar> scalars = getScalars(instruction.type);
  std::vector<Register> made;
  for (size_t i = 0; i < scalars.size(); ++i) {
    bool isWide = scalars[i].isWide(), isFloat = scalars[i].kind == Type::Kind::Float;
    StepFunction run = nullptr;
    if (!scalars[i].isNarrow() && scalars[i].kind != Type::Kind::Bool)
      run = findReduction(instruction.op, isFloat ? (isWide ? Number::F64 : Number::F32)
                                                  : (isWide ? Number::U64 : Number::U32));
    need(instruction, run, "has operands for which the simulator does not know it");
    Register identity = makeRegister(isWide);
    preset(identity, scalars[i], getIdentity(instruction.op, isWide));
    made.push_back(makeRegister(isWide));
    emit(run, made.back(), value.scalars[i], identity, 0, reduction);
  }
  define(instruction, std::move(made));
}
