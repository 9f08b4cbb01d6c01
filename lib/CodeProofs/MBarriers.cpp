//===- MBarriers.cpp - Phases of mbarriers --------------------------------===//
//
// A copy of a box lands in a phase of an mbarrier, which ends when as many bytes have landed as
// were expected. A wait names the phase by its parity alone. So each mbarrier must be used in
// turns:
//
//   the first invocation:   expect the bytes of the phase, copy as many
//   all:                    wait for the phase, by its parity
//   all:                    a barrier of the workgroup
//
// Then no invocation is more than a phase behind, and the parity says which phase it is. The states
// of all mbarriers are followed along the ways of the first invocation, which knows where it goes
// at a branch on its number. Others come by the same waits and barriers.
//
//===----------------------------------------------------------------------===//

#include "Walk.h"

#include <algorithm>
#include <set>

using namespace weir;
using namespace weir::spv;

/// Bytes of the block of lines after which a swizzle repeats, and alignment of a run.
static constexpr int64_t blockBytes = 1024, runBytes = 16;

//===----------------------------------------------------------------------===//
// Sites
//===----------------------------------------------------------------------===//

/// Whether a guard holds for the first invocation alone.
bool Walk::isOfFirst(const Affine &guard) const {
  std::set<uint32_t> axes;
  for (auto [number, factor] : guard.terms) {
    const Atom &atom = map.atoms[number];
    if (atom.kind != Atom::Kind::Local || guard.constant + factor >= 0)
      return false;
    axes.insert(atom.number);
  }
  for (uint32_t axis = 0; axis < 3; ++axis)
    if (map.localSize[axis] > 1 && !axes.contains(axis))
      return false;
  return guard.constant >= 0;
}

/// Notes where the first invocation goes at a branch on the number of the invocation.
void Walk::findFirstWay(const Block &block, const Value &condition) {
  if (condition.kind != Value::Kind::Condition || block.successors.size() != 2)
    return;
  bool holds = true;
  for (const Affine &constraint : condition.constraints) {
    for (auto [number, factor] : constraint.terms)
      if (map.atoms[number].kind != Atom::Kind::Local)
        return;
    holds &= constraint.constant >= 0;
  }
  firstWays[&block] = holds ? 0 : 1;
}

void Walk::recordMBarrier(const Instruction &instruction, const Context &context, int64_t number) {
  const bool isTile = instruction.op == Op::CopyTile, isInit = instruction.op == Op::MBarrierInit;
  const size_t first = map.accesses.size();
  map.hasTiles = true;
  record(instruction, instruction.operands[isTile ? 1 : 0], !isInit, true, context);
  MBarrierSite site;
  site.number = number;
  site.source = instruction.source;
  site.loops = context.loops;
  site.isFirst = std::any_of(context.guards.begin(), context.guards.end(),
                             [&](const Affine &guard) { return isOfFirst(guard); });
  site.isTogether = context.isCertain && !isInHeader && !hasReturned &&
                    std::none_of(context.guards.begin(), context.guards.end(),
                                 [&](const Affine &guard) { return !isSameForAll(guard); });
  for (size_t i = first; i < map.accesses.size(); ++i) {
    MemoryAccess &access = map.accesses[i];
    access.isAtomic = !isInit;
    if (map.accesses.size() == first + 1 && access.root == MemoryAccess::Root::Shared &&
        access.address && access.address->isConstant()) {
      site.address = access.address->constant;
      site.variable = access.binding;
    }
  }
  mbarriers[instruction.word] = std::move(site);
}

/// Records a copy of a box: what it may read is all of the tensor.
void Walk::recordTile(const Instruction &instruction, const Context &context) {
  std::span<const uint32_t> operands = instruction.operands;
  const size_t rank = (operands.size() - 5) / 3;
  auto getNumber = [&](size_t i) {
    std::optional<int64_t> number = getConstant(operands[i]);
    if (!number || *number < 1)
      throw Lost{"it copies boxes of a tensor whose sizes are unknown"};
    return *number;
  };
  int64_t tensor = getNumber(4), box = tensor;
  for (size_t i = 0; i < rank; ++i)
    if (__builtin_mul_overflow(tensor, getNumber(5 + 2 * i), &tensor) ||
        __builtin_mul_overflow(box, getNumber(6 + 2 * i), &box) || tensor > maxAddress ||
        box > maxAddress)
      throw Lost{"it copies boxes of a tensor that is too large"};
  auto recordPart = [&](Id pointer, bool reads, int64_t bytes) {
    const size_t first = map.accesses.size();
    record(instruction, pointer, reads, !reads, context);
    for (size_t i = first; i < map.accesses.size(); ++i) {
      MemoryAccess &access = map.accesses[i];
      access.isLate = true;
      access.bytes = bytes;
      access.alignment = runBytes;
      access.isCertain &= !reads;
      if (reads || !access.address)
        continue;
      access.isAsync = true;
      if (!access.address->isConstant() || access.address->constant % blockBytes != 0)
        throw Lost{"it copies a box to a place that may be inside of a block of lines"};
      if (!staysInVariable(access)) {
        access.address.reset();
        leavesVariables = true;
      }
    }
  };
  recordPart(operands[2], true, tensor);
  recordPart(operands[0], false, box);
  recordMBarrier(instruction, context, box);
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

namespace {
/// The state of an mbarrier, as the first invocation finds it at a place.
struct Phase {
  enum class State {
    New,     ///< it is none yet
    Made,    ///< by the first invocation
    Fenced,  ///< copies will see that
    Idle,    ///< a phase may begin
    Open,    ///< copies belong to the phase
    Ended,   ///< all have waited for the phase before
    Confused ///< it differs by the way here
  } state = State::New;
  bool parity = false; ///< of the phase
  int64_t left = 0;    ///< Open: bytes that are expected and not copied yet

  bool operator==(const Phase &) const = default;
};

using Phases = std::map<std::pair<Id, int64_t>, Phase>;
} // namespace

/// Follows an mbarrier past an instruction. Returns what is wrong with that; null if nothing is.
static const char *pass(Op op, const MBarrierSite &site, Phase &phase) {
  using State = Phase::State;
  const Phase before = phase;
  if (before.state == State::Confused)
    return "uses an mbarrier whose phase differs by the way there";
  if (op != Op::MBarrierWait && !site.isFirst)
    return "uses an mbarrier, and others than the first invocation may run it";
  switch (op) {
  case Op::MBarrierInit:
    phase = {State::Made};
    return before.state == State::New ? nullptr : "makes an mbarrier that is one already";
  case Op::MBarrierExpect:
    phase = {State::Open, before.parity, site.number};
    return before.state == State::Idle
               ? nullptr
               : "begins a phase of an mbarrier without a wait for the one before and a barrier";
  case Op::CopyTile:
    phase.left -= site.number;
    return before.state == State::Open && phase.left >= 0
               ? nullptr
               : "copies more bytes than its mbarrier expects";
  default:
    break;
  }
  phase = {State::Ended, !before.parity};
  if (!site.isTogether)
    return "waits for an mbarrier, and not all invocations may run it";
  if (before.state != State::Open)
    return "waits for a phase of an mbarrier that has not begun";
  if (before.left != 0)
    return "waits for an mbarrier that expects more bytes than are copied";
  return site.number == int64_t(before.parity) ? nullptr : "waits for another phase of an mbarrier";
}

/// Checks that mbarriers are used in turns.
void Walk::followMBarriers() {
  using State = Phase::State;
  if (!map.hasTiles)
    return;
  Phases none;
  for (const auto &[word, site] : mbarriers) {
    if (!site.address)
      throw Lost{"it uses an mbarrier at an address that is unknown"};
    none[*site.getKey()];
  }
  auto note = [&](uint32_t word, const SourceLine &source, bool isCertain, const char *what) {
    map.registerHazards.push_back({word, source, isCertain, what});
  };
  auto passAll = [&](const Instruction &instruction, Phases &phases, bool isNoted) {
    if (auto site = mbarriers.find(instruction.word); site != mbarriers.end()) {
      Phase &phase = phases.at(*site->second.getKey());
      const bool isConfused = phase.state == State::Confused;
      const char *problem = pass(instruction.op, site->second, phase);
      if (isNoted && problem)
        note(instruction.word, instruction.source, !isConfused, problem);
      return;
    }
    const bool isFence = instruction.op == Op::NamedEffect &&
                         isFenceForProducts(module.getString(instruction.operands[0]));
    bool isBarrier = false;
    for (const BarrierSite &barrier : map.barriers)
      isBarrier |= barrier.word == instruction.word && instruction.op == Op::ControlBarrier &&
                   barrier.isUniform && barrier.ordersShared;
    for (auto &[key, phase] : phases) {
      if (isFence && phase.state == State::Made)
        phase.state = State::Fenced;
      if (isBarrier && (phase.state == State::Fenced || phase.state == State::Ended))
        phase.state = State::Idle;
      if (isNoted && instruction.op == Op::Return && phase.state == State::Open)
        note(instruction.word, instruction.source, true,
             "ends the kernel before a phase of an mbarrier has been waited for");
    }
  };
  std::vector<std::optional<Phases>> atBegin(function.blocks.size());
  atBegin[0] = none;
  std::vector<uint32_t> open = {0};
  while (!open.empty()) {
    const uint32_t number = open.back();
    open.pop_back();
    const Block &block = function.blocks[number];
    Phases here = *atBegin[number];
    for (const Instruction &instruction : block.instructions)
      passAll(instruction, here, false);
    auto way = firstWays.find(&block);
    for (size_t i = 0; i < block.successors.size(); ++i) {
      if (way != firstWays.end() && way->second != i)
        continue;
      std::optional<Phases> &to = atBegin[block.successors[i]];
      Phases met = to ? *to : here;
      for (auto &[key, phase] : met)
        if (phase != here.at(key))
          phase = {State::Confused};
      if (to == met)
        continue;
      to = std::move(met);
      open.push_back(block.successors[i]);
    }
  }
  for (size_t number = 0; number < function.blocks.size(); ++number)
    if (atBegin[number])
      for (const Instruction &instruction : function.blocks[number].instructions)
        passAll(instruction, *atBegin[number], true);
}
