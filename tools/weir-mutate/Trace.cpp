//===- Trace.cpp - Which bytes each invocation touches --------------------===//

#include "Tracer.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace weir;
using namespace weir::mutate;
using namespace weir::spv;

/// Max number of instructions of one kernel: beyond, enumeration takes too long.
static constexpr uint64_t maxInstructions = uint64_t(1) << 31;
static constexpr size_t maxTouches = size_t(1) << 24;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Each variable begins in the middle of a range of addresses of its own.
static constexpr unsigned bindingBits = 40, variableBits = 24;

/// Returns the address of a variable. Those of bindings are above 2^32.
uint64_t Tracer::getAddress(Id variable) {
  const Pointer &pointer = pointers[variable];
  if (pointer.kind == Pointer::Kind::Buffer)
    return (uint64_t(pointer.object) + 1) << bindingBits | uint64_t(1) << (bindingBits - 1);
  auto place = std::find(numbered.begin(), numbered.end(), variable);
  if (place == numbered.end())
    place = numbered.insert(place, variable);
  uint64_t number = uint64_t(place - numbered.begin()) + 1;
  if (number >> (32 - variableBits))
    throw Error(where + ": has too many variables for weir-mutate");
  return number << variableBits | uint64_t(1) << (variableBits - 1);
}

/// Returns a pointer to the variable that an address lies in, if any.
Pointer Tracer::findVariable(uint64_t address) const {
  unsigned bits = address >> 32 ? bindingBits : variableBits;
  uint64_t number = address >> bits;
  Pointer pointer;
  if (number == 0 || number > (bits == bindingBits ? result.bindings : numbered.size()))
    return pointer;
  if (bits == bindingBits)
    pointer = {Pointer::Kind::Buffer, uint32_t(number - 1)};
  else
    pointer = pointers[numbered[number - 1]];
  pointer.offset = int64_t(cut(address, bits)) - (int64_t(1) << (bits - 1));
  pointer.isWhole = false;
  return pointer;
}

/// Makes an address a pointer, or two if a selection that data decide leads to it.
void Tracer::makeAddress(const Instruction &instruction) {
  const Value &value = use(instruction.operands[0]);
  auto address = value.choose(false).get(0);
  if (!address)
    refuse(instruction, "has an address that depends on what is loaded, which weir-mutate cannot "
                        "follow");
  pointers[instruction.result] = findVariable(*address);
  others.erase(instruction.result);
  if (value.choice)
    others[instruction.result] = findVariable(value.other);
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

/// Records a load or store of a buffer or of workgroup memory.
void Tracer::note(const Instruction &instruction, const Pointer &pointer, int64_t bytes,
                  bool isWrite) {
  const bool isBuffer = pointer.kind == Pointer::Kind::Buffer;
  bool isEarly = instruction.op == Op::Load && instruction.operands.size() > 1 &&
                 instruction.operands[1] & MemoryOperand::ReadOnly;
  for (const std::vector<Flight> *of : {&flights, &products, &tiles})
    for (const Flight &flight : *of)
      for (const ByteAccess &other : flight.accesses)
        if ((isWrite || other.isWrite) && other.object == pointer.object &&
            other.begin < pointer.offset + bytes && pointer.offset < other.end)
          report(describe(instruction) + " touches bytes of a " +
                 (of == &products ? "product" : "copy") +
                 " that its invocation has not waited for");
  if (isWrite && !isBuffer)
    unshown.push_back(accesses.size());
  accesses.push_back({pointer.object, pointer.offset, pointer.offset + bytes, isWrite, isEarly,
                      isBuffer ? storagePhase : memoryPhase,
                      hasWarpBarriers ? invocation / subgroupSize : 0, warpPhase, invocation,
                      number++,
                      instruction.op == Op::GroupMatrix ||
                          (instruction.op == Op::CopyTile && !isBuffer && !isWrite),
                      isWrite ? UINT32_MAX : 0});
  ++result.accesses;
  if (!isText)
    return;
  if (pointer.offset % bytes)
    report(describe(instruction) + " goes to byte " + std::to_string(pointer.offset) +
           ", which is no multiple of its " + std::to_string(bytes) + " bytes");
  if (isBuffer) {
    result.alignments[pointer.object] = std::max(result.alignments[pointer.object], bytes);
  } else if (int64_t size = sizes[pointer.object - result.bindings];
             size && (pointer.offset < 0 || pointer.offset + bytes > size)) {
    report(describe(instruction) + " goes to byte " + std::to_string(pointer.offset) + " of " +
           std::to_string(size) + " of workgroup memory");
  }
}

void Tracer::access(const Instruction &instruction) {
  bool isWrite = instruction.op == Op::Store;
  use(instruction.operands[0]); // there is such an id
  if (auto other = others.find(instruction.operands[0]); other != others.end()) {
    if (isWrite)
      refuse(instruction, "stores where data decide, which weir-mutate cannot follow");
    result.hasChosen = true;
    if (!countsChosen)
      return void(values[instruction.result] = Value());
    access(instruction, other->second);
  }
  access(instruction, pointers[instruction.operands[0]]);
}

void Tracer::access(const Instruction &instruction, const Pointer &pointer) {
  bool isWrite = instruction.op == Op::Store;
  Id type = isWrite ? module.getTypeOf(instruction.operands[1]) : instruction.type;
  Value read;
  switch (pointer.kind) {
  case Pointer::Kind::None:
    report(describe(instruction) + " goes where no variable is");
    break;
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
    note(instruction, pointer, module.getType(type).bytes, isWrite);
    break;
  }
  if (!isWrite)
    values[instruction.result] = read;
}

/// Begins a copy, which touches its bytes until its invocation has waited for its group.
void Tracer::beginCopy(const Instruction &instruction) {
  const int64_t bytes =
      module.getType(module.getType(module.getTypeOf(instruction.operands[0])).element).bytes;
  if (use(instruction.operands[2]).get(0) != uint64_t(bytes))
    refuse(instruction, "does not read as many bytes as it writes, which weir-mutate does not "
                        "follow");
  Flight flight;
  for (bool isWrite : {true, false}) {
    Id to = instruction.operands[isWrite ? 0 : 1];
    use(to); // there is such an id
    const Pointer &pointer = pointers[to];
    if (others.contains(to) ||
        (pointer.kind != Pointer::Kind::Buffer && pointer.kind != Pointer::Kind::Workgroup))
      refuse(instruction, "has an address that weir-mutate cannot follow");
    note(instruction, pointer, bytes, isWrite);
    flight.accesses.push_back(accesses.back());
    if (isWrite && pointer.kind == Pointer::Kind::Workgroup) {
      flight.noted.push_back(unshown.back()); // what it writes is there when it has been waited for
      unshown.pop_back();
    }
  }
  flights.push_back(std::move(flight));
}

/// Closes a group of copies, or waits for some. Returns whether the instruction does so.
bool Tracer::orderCopies(const Instruction &instruction) {
  const std::string &name = module.getString(instruction.operands[0]);
  if (name == "cp.async.commit_group") {
    for (Flight &flight : flights)
      ++flight.groups;
  } else if (name == "cp.async.wait_all") {
    for (const Flight &flight : flights)
      unshown.insert(unshown.end(), flight.noted.begin(), flight.noted.end());
    flights.clear();
  } else if (name == "cp.async.wait_group") {
    auto left = use(instruction.operands[1]).get(0);
    if (!left)
      refuse(instruction, "has operands that are not constants");
    std::erase_if(flights, [&](const Flight &flight) {
      if (flight.groups > *left)
        unshown.insert(unshown.end(), flight.noted.begin(), flight.noted.end());
      return flight.groups > *left;
    });
  } else {
    return false;
  }
  return true;
}

void Tracer::meet(const Instruction &instruction) {
  auto get = [&](size_t i) {
    auto number = use(instruction.operands[i]).get(0);
    if (!number)
      refuse(instruction, "has operands that are not constants");
    return *number;
  };
  barriers.push_back(instruction.word);
  uint64_t semantics = get(2);
  if (get(0) != uint64_t(Scope::Workgroup))
    refuse(instruction, "is not a barrier of a workgroup");
  bool orders = get(1) <= uint64_t(Scope::Workgroup) &&
                (semantics & (AcquireRelease | SequentiallyConsistent));
  storagePhase += orders && semantics & UniformMemory;
  memoryPhase += orders && semantics & WorkgroupMemory;
  for (std::vector<Flight> *of : {&flights, &products, &tiles})
    for (Flight &flight : *of)
      for (ByteAccess touch : flight.accesses) {
        touch.phase = touch.object < result.bindings ? storagePhase : memoryPhase;
        if (touch.isWrite && touch.object >= result.bindings)
          flight.noted.push_back(accesses.size());
        accesses.push_back(touch);
      }
}

/// Notes a meeting of the lanes that a mask names. Returns whether the instruction is one.
bool Tracer::meetInWarp(const Instruction &instruction) {
  const std::string &name = module.getString(instruction.operands[0]);
  const bool isBarrier = name.starts_with("bar.warp.sync");
  bool isMeeting = isBarrier || name.starts_with("shfl.sync") || name.starts_with("vote.sync") ||
                   name.starts_with("match.") || name.starts_with("redux.sync");
  if (!isMeeting)
    return false;
  auto mask = use(instruction.operands.back()).get(0);
  if (!mask)
    refuse(instruction, "has a mask that weir-mutate cannot follow");
  uint32_t lane = invocation % subgroupSize;
  if (!(*mask >> lane & 1))
    report("lane " + std::to_string(lane) + " runs " + describe(instruction) +
           ", whose mask does not name it");
  meetings[lane].push_back({instruction.word, uint32_t(*mask)});
  warpPhase += isBarrier;
  return true;
}

/// Checks that the lanes of a warp met with those that the masks name, and only with those.
void Tracer::compareMeetings() {
  const uint32_t lanes = uint32_t(meetings.size());
  const uint32_t all = uint32_t((uint64_t(1) << lanes) - 1);
  bool isUniform = std::all_of(meetings.begin(), meetings.end(),
                               [&](const auto &each) { return each == meetings[0]; });
  bool areWhole = true;
  std::set<uint32_t> masks;
  for (const std::vector<Meeting> &each : meetings)
    for (const Meeting &meeting : each) {
      areWhole &= (meeting.mask & all) == all;
      if (!isUniform)
        masks.insert(meeting.mask & all);
    }
  if (!areWhole && hasWarpBarriers && result.problem.empty())
    throw Error(where + ": has barriers for a part of a warp, which weir-mutate does not follow");
  for (uint32_t mask : masks) {
    std::optional<std::vector<std::pair<uint32_t, int64_t>>> expected;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      std::vector<std::pair<uint32_t, int64_t>> words;
      for (const Meeting &meeting : meetings[lane])
        if ((meeting.mask & all) == mask)
          words.emplace_back(meeting.word, meeting.place);
      if (!(mask >> lane & 1))
        continue;
      if (expected && *expected != words)
        report("lane " + std::to_string(lane) +
               " does not run the same instructions with masks that name it as others do");
      expected = std::move(words);
    }
  }
}

void Tracer::step(const Instruction &instruction) {
  if (!products.empty())
    checkSums(instruction);
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
  case Op::CopyAsync:
    return beginCopy(instruction);
  case Op::CopyTile:
    return beginTile(instruction);
  case Op::MBarrierInit:
  case Op::MBarrierExpect:
  case Op::MBarrierWait:
    return orderTiles(instruction);
  case Op::GroupMatrix:
    return beginProduct(instruction);
  case Op::ConvertUToPtr:
    return makeAddress(instruction);
  case Op::CooperativeMatrixLoadKHR:
  case Op::CooperativeMatrixStoreKHR:
    refuse(instruction, "is not supported by weir-mutate");
    return;
  case Op::NamedEffect:
    if (!meetInWarp(instruction) && !orderCopies(instruction) && !orderProducts(instruction))
      refuse(instruction, "is not supported by weir-mutate");
    return;
  case Op::Named:
    meetInWarp(instruction);
    break;
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
  storagePhase = memoryPhase = number = warpPhase = 0;
  barriers.clear();
  flights.clear();
  products.clear();
  tiles.clear();
  phases.clear();
  unshown.clear();
  hasFence = false;
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
      if (!tiles.empty())
        report("invocation " + std::to_string(index) +
               " ends before it has waited for a copy of a "
               "box");
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
void Tracer::noteAll(uint32_t workgroup) {
  auto key = [](const ByteAccess &access) {
    return std::tie(access.object, access.phase, access.warp, access.warpPhase, access.begin,
                    access.end);
  };
  std::sort(accesses.begin(), accesses.end(),
            [&](const ByteAccess &a, const ByteAccess &b) { return key(a) < key(b); });
  for (const ByteAccess *access = accesses.data(); access != accesses.data() + accesses.size();) {
    Touch touch;
    touch.object = access->object;
    touch.granule = access->begin;
    touch.workgroup = workgroup;
    touch.phase = access->phase;
    touch.warp = access->warp;
    touch.warpPhase = access->warpPhase;
    touch.invocation = access->invocation;
    touch.firstWrite = UINT32_MAX;
    const ByteAccess *first = access;
    for (; access != accesses.data() + accesses.size() && key(*access) == key(*first); ++access) {
      (access->isWrite ? touch.writes : touch.reads) = true;
      touch.readsEarly |= access->isEarly;
      touch.readsByProduct |= access->isOfProduct;
      touch.shown = std::max(touch.shown, access->shown);
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
  return std::tie(touch.object, touch.granule, touch.workgroup, touch.phase, touch.warp,
                  touch.warpPhase);
}

Trace Tracer::run() {
  uint64_t workgroups = uint64_t(grid[0]) * grid[1] * grid[2];
  for (uint64_t group = 0; group < workgroups; ++group) {
    owners.clear();
    for (uint32_t index = 0; index < size; ++index) {
      if (index % subgroupSize == 0)
        meetings.assign(std::min(subgroupSize, size - index), {});
      runInvocation(uint32_t(group), index);
      if (index == 0)
        firstBarriers = barriers;
      else if (barriers != firstBarriers)
        report("invocations 0 and " + std::to_string(index) + " of workgroup " +
               std::to_string(group) + " do not reach the same barriers");
      if (index % subgroupSize == meetings.size() - 1)
        compareMeetings();
    }
    noteAll(uint32_t(group));
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
    to.readsEarly |= from.readsEarly;
    to.readsByProduct |= from.readsByProduct;
    to.shown = std::max(to.shown, from.shown);
    to.writes |= from.writes;
    to.lastRead = std::max(to.lastRead, from.lastRead);
    to.firstWrite = std::min(to.firstWrite, from.firstWrite);
  }
  touches.resize(touches.empty() ? 0 : last + 1);
  return std::move(result);
}

Trace mutate::trace(const Module &module, const std::string &entryPoint,
                    const std::array<int64_t, 3> &grid, uint32_t subgroupSize, uint32_t bindings,
                    const std::string &where, bool countsChosen) {
  return Tracer(module, entryPoint, grid, subgroupSize, bindings, where, countsChosen).run();
}
