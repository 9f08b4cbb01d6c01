//===- Workgroup.cpp - Memory and barriers of a workgroup -----------------===//

#include "Machine.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace weir;
using namespace weir::sim;

Workgroup::Workgroup(Machine &machine, const Program &program)
    : machine(machine), program(program) {
  uint32_t size = program.localSize[0] * program.localSize[1] * program.localSize[2];
  for (uint32_t first = 0; first < size; first += program.subgroupSize)
    subgroups.push_back(std::make_unique<Subgroup>(program));
  memory.resize(size_t(program.workgroupBytes));
  cells.resize(
      size_t((program.workgroupBytes + program.workgroupGranule - 1) / program.workgroupGranule));
}

void Workgroup::start(DispatchRun &of, uint64_t index) {
  dispatch = &of;
  number = uint32_t(index);
  const std::array<int64_t, 3> &grid = of.command->grid;
  place = {uint32_t(index % uint64_t(grid[0])),
           uint32_t(index / uint64_t(grid[0]) % uint64_t(grid[1])),
           uint32_t(index / uint64_t(grid[0]) / uint64_t(grid[1]))};
  over = false;
  turn = storagePhase = memoryPhase = 0;
  pending.clear();
  numPending = 0;
  if (!program.copies.empty() || !program.tiles.empty())
    landing.assign(cells.size(), 0);
  mbarriers.clear();
  if (!program.products.empty() || !program.tiles.empty()) {
    reading.assign(cells.size(), 0);
    writtenAt.assign(cells.size(), 0);
    readers.assign(cells.size(), Touch());
    fences.assign(program.localSize[0] * program.localSize[1] * program.localSize[2], 1);
  }
  std::fill(memory.begin(), memory.end(), poison);
  std::fill(cells.begin(), cells.end(), Cell());
  uint32_t size = program.localSize[0] * program.localSize[1] * program.localSize[2];
  for (uint32_t i = 0; i < subgroups.size(); ++i) {
    uint32_t first = i * program.subgroupSize;
    subgroups[i]->start(*this, i, first, std::min(program.subgroupSize, size - first));
  }
}

//===----------------------------------------------------------------------===//
// Turns and barriers
//===----------------------------------------------------------------------===//

void Workgroup::advance(uint64_t accesses) {
  size_t count = subgroups.size(), first = 0;
  bool backwards = false;
  switch (machine.strategy) {
  case SimStrategy::Random:
    first = machine.random() % count;
    break;
  case SimStrategy::Split:
    first = ++turn % count;
    break;
  case SimStrategy::LatestFirst:
  case SimStrategy::WriterFirst:
    backwards = true;
    break;
  case SimStrategy::Recorded:
    break;
  }
  for (size_t i = 0; i < count; ++i) {
    size_t next = (first + i) % count;
    Subgroup &subgroup = *subgroups[backwards ? count - 1 - next : next];
    if (subgroup.state != Subgroup::State::Ready)
      continue;
    subgroup.run(accesses);
    if (subgroup.state != Subgroup::State::Ready)
      meet();
    return;
  }
}

/// Ends the workgroup, passes the barrier at which all subgroups wait, or reports that it is
/// divergent. Does nothing as long as a subgroup can continue.
void Workgroup::meet() {
  if (over)
    return;
  const Subgroup *atBarrier = nullptr;
  for (const auto &subgroup : subgroups) {
    if (subgroup->state == Subgroup::State::Ready)
      return;
    if (subgroup->state == Subgroup::State::AtPhase)
      continue;
    if (subgroup->state == Subgroup::State::AtBarrier)
      atBarrier = subgroup.get();
  }
  for (const auto &subgroup : subgroups)
    if (subgroup->state == Subgroup::State::AtPhase)
      return reportPhase(*subgroup);
  if (!atBarrier) {
    over = true;
    return;
  }
  const Barrier &barrier = program.barriers[atBarrier->barrier];
  for (const auto &subgroup : subgroups)
    if (subgroup->state == Subgroup::State::Done || subgroup->barrier != atBarrier->barrier)
      return reportDivergence(barrier);
  storagePhase += barrier.ordersStorage;
  memoryPhase += barrier.ordersWorkgroup;
  if (program.syncsWarps) { // barriers of PTX order all memory
    uint32_t last = 0;
    for (const auto &subgroup : subgroups)
      last = std::max(last, subgroup->getLastTime());
    storagePhase = memoryPhase = last + 1;
  }
  for (const auto &subgroup : subgroups)
    subgroup->passBarrier(storagePhase);
}

/// Ends the workgroup after an error: further steps would be meaningless.
void Workgroup::abandon() {
  over = true;
  for (const auto &subgroup : subgroups)
    subgroup->stop(Subgroup::State::Done);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Now Workgroup::makeTouch(uint16_t site, const Subgroup &subgroup, uint32_t lane,
                         uint32_t phase) const {
  Now now = {{number, phase, uint16_t(subgroup.firstInvocation + lane), site}, phase};
  if (program.syncsWarps) {
    now.phase = subgroup.getTime(lane);
    now.lanes = subgroup.getEnded(lane);
  }
  return now;
}

int64_t sim::getOffset(const AccessSite &access, const Subgroup &subgroup, uint32_t lane) {
  return access.offset +
         (access.dynamic == noRegister ? 0 : subgroup.at<int64_t>(access.dynamic)[lane]);
}

/// Loads registers from bytes. Short scalars leave the upper bits of a register 0.
static void copyIn(const AccessSite &access, const Subgroup &subgroup, uint32_t lane,
                   const unsigned char *bytes) {
  for (const AccessSite::Scalar &scalar : access.scalars) {
    const unsigned char *from = bytes + scalar.offset;
    if (scalar.bytes == 8) {
      std::memcpy(&subgroup.at<uint64_t>(scalar.value)[lane], from, 8);
    } else if (scalar.bytes == 4) {
      std::memcpy(&subgroup.at<uint32_t>(scalar.value)[lane], from, 4);
    } else {
      uint32_t value = 0;
      std::memcpy(&value, from, scalar.bytes);
      subgroup.at<uint32_t>(scalar.value)[lane] = value;
    }
  }
}

static void copyOut(const AccessSite &access, const Subgroup &subgroup, uint32_t lane,
                    unsigned char *bytes) {
  for (const AccessSite::Scalar &scalar : access.scalars) {
    unsigned char *to = bytes + scalar.offset;
    if (scalar.bytes == 8)
      std::memcpy(to, &subgroup.at<uint64_t>(scalar.value)[lane], 8);
    else
      std::memcpy(to, &subgroup.at<uint32_t>(scalar.value)[lane], scalar.bytes);
  }
}

/// Applies one lane's atomic operation to an integer in memory.
template <typename U>
static void applyAtomic(const AccessSite &access, const Subgroup &subgroup, uint32_t lane,
                        unsigned char *bytes) {
  using S = std::make_signed_t<U>;
  U old, by = subgroup.at<U>(access.operand)[lane];
  std::memcpy(&old, bytes, sizeof(U));
  U value = old;
  switch (access.atomic) {
  case spv::Op::AtomicStore:
  case spv::Op::AtomicExchange:
    value = by;
    break;
  case spv::Op::AtomicCompareExchange:
    value = old == subgroup.at<U>(access.comparator)[lane] ? by : old;
    break;
  case spv::Op::AtomicIIncrement:
    value = old + 1;
    break;
  case spv::Op::AtomicIDecrement:
    value = old - 1;
    break;
  case spv::Op::AtomicIAdd:
    value = old + by;
    break;
  case spv::Op::AtomicISub:
    value = old - by;
    break;
  case spv::Op::AtomicSMin:
    value = U(std::min(S(old), S(by)));
    break;
  case spv::Op::AtomicUMin:
    value = std::min(old, by);
    break;
  case spv::Op::AtomicSMax:
    value = U(std::max(S(old), S(by)));
    break;
  case spv::Op::AtomicUMax:
    value = std::max(old, by);
    break;
  case spv::Op::AtomicAnd:
    value = old & by;
    break;
  case spv::Op::AtomicOr:
    value = old | by;
    break;
  case spv::Op::AtomicXor:
    value = old ^ by;
    break;
  default: // OpAtomicLoad
    break;
  }
  std::memcpy(bytes, &value, sizeof(U));
  subgroup.at<U>(access.scalars[0].value)[lane] = old;
}

static void applyAtomic(const AccessSite &access, const Subgroup &subgroup, uint32_t lane,
                        unsigned char *bytes) {
  if (access.bytes == 8)
    applyAtomic<uint64_t>(access, subgroup, lane, bytes);
  else
    applyAtomic<uint32_t>(access, subgroup, lane, bytes);
}

/// Fills the result of a load with poison.
static void poisonScalars(const AccessSite &access, const Subgroup &subgroup, uint32_t lane) {
  for (const AccessSite::Scalar &scalar : access.scalars)
    if (scalar.bytes == 8)
      subgroup.at<uint64_t>(scalar.value)[lane] = ~uint64_t(0);
    else
      subgroup.at<uint32_t>(scalar.value)[lane] = uint32_t((uint64_t(1) << 8 * scalar.bytes) - 1);
}

bool Workgroup::isNear(const AccessSite &access, const Subgroup &subgroup, uint32_t lane) const {
  int64_t at = getOffset(access, subgroup, lane);
  if (access.space == Space::Storage)
    return at >= -(int64_t(1) << 43) && at < int64_t(1) << 43;
  return at >= access.objectBegin && at < access.objectEnd;
}

void Workgroup::accessStorage(const AccessSite &access, Subgroup &subgroup) {
  const Binding &binding = dispatch->bindings[access.binding];
  Store &store = *binding.store;
  for (Mask rest = subgroup.mask; rest; rest &= rest - 1) {
    auto lane = uint32_t(std::countr_zero(rest));
    int64_t offset = getOffset(access, subgroup, lane);
    Now touch = makeTouch(access.site, subgroup, lane, storagePhase);
    if (offset < 0 || offset + access.bytes > binding.bytes) {
      machine.reportOutside(*dispatch, access, touch, offset, binding.bytes);
      if (access.isRead)
        poisonScalars(access, subgroup, lane);
      continue;
    }
    int64_t at = binding.offset + offset;
    if (access.isAddressed && (at & (access.bytes - 1)) != 0) {
      machine.reportMisaligned(*dispatch, access, touch, at);
      if (access.isRead)
        poisonScalars(access, subgroup, lane);
      continue;
    }
    if (access.isWrite && numPending > 0)
      checkSources(store, at, access.bytes, touch);
    int64_t first = at >> store.shift, last = (at + access.bytes - 1) >> store.shift;
    unsigned char *bytes = &store.values[size_t(at)];
    if (access.isAtomic()) {
      for (int64_t cell = first; cell <= last; ++cell) {
        if (access.isRead)
          machine.checkRead(*dispatch, access.binding, cell, touch);
        if (access.isWrite)
          machine.checkWrite(*dispatch, access.binding, cell, touch);
      }
      applyAtomic(access, subgroup, lane, bytes);
      continue;
    }
    if (access.isWrite) {
      for (int64_t cell = first; cell <= last; ++cell)
        machine.checkWrite(*dispatch, access.binding, cell, touch);
      copyOut(access, subgroup, lane, bytes);
      continue;
    }
    for (int64_t cell = first; cell <= last; ++cell) {
      if (machine.checkRead(*dispatch, access.binding, cell, touch))
        continue;
      if (bytes != seen.data()) {
        seen.assign(bytes, bytes + access.bytes);
        bytes = seen.data();
      }
      int64_t begin = std::max(cell << store.shift, at);
      int64_t end = std::min((cell + 1) << store.shift, at + access.bytes);
      std::memcpy(bytes + (begin - at), &store.stale[size_t(begin)], size_t(end - begin));
    }
    copyIn(access, subgroup, lane, bytes);
  }
}

void Workgroup::accessMemory(const AccessSite &access, Subgroup &subgroup) {
  for (Mask rest = subgroup.mask; rest; rest &= rest - 1) {
    auto lane = uint32_t(std::countr_zero(rest));
    int64_t at = getOffset(access, subgroup, lane);
    Now touch = makeTouch(access.site, subgroup, lane, memoryPhase);
    if (at < access.objectBegin || at + access.bytes > access.objectEnd) {
      machine.reportOutside(*dispatch, access, touch, at - access.objectBegin,
                            access.objectEnd - access.objectBegin);
      if (access.isRead)
        poisonScalars(access, subgroup, lane);
      continue;
    }
    if (access.isAddressed && (at & (access.bytes - 1)) != 0) {
      machine.reportMisaligned(*dispatch, access, touch, at);
      if (access.isRead)
        poisonScalars(access, subgroup, lane);
      continue;
    }
    int64_t granule = program.workgroupGranule;
    for (int64_t i = at / granule; i <= (at + access.bytes - 1) / granule; ++i) {
      Cell &cell = cells[size_t(i)];
      if (numPending > 0 && landing[size_t(i)])
        machine.reportLate(*dispatch, pending[landing[size_t(i)] - 1].touch, touch, i * granule);
      bool isWritten = cell.write.site;
      if (isWritten && doRace(program, cell.write, touch))
        machine.reportInside(*dispatch, cell.write, touch, i * granule);
      if (const Touch *read = findRace(program, cell.reads, touch))
        machine.reportInside(*dispatch, *read, touch, i * granule);
      if (access.isWrite) {
        checkReaders(i, touch);
        noteWrite(i, touch);
      }
      if (access.isRead && !isWritten)
        machine.reportUnwritten(*dispatch, access, touch, i * granule);
      if (access.isWrite && !access.isAtomic()) {
        cell = Cell();
        cell.write = touch;
        continue;
      }
      cell.addRead(touch);
      // Keep a plain write, as for storage buffers.
      if (access.isWrite && (!isWritten || program.accesses[cell.write.site].isAtomic()))
        cell.write = touch;
    }
    if (access.isAtomic())
      applyAtomic(access, subgroup, lane, &memory[size_t(at)]);
    else if (access.isWrite)
      copyOut(access, subgroup, lane, &memory[size_t(at)]);
    else
      copyIn(access, subgroup, lane, &memory[size_t(at)]);
  }
}

void Workgroup::accessPrivate(const AccessSite &access, Subgroup &subgroup) {
  for (Mask rest = subgroup.mask; rest; rest &= rest - 1) {
    auto lane = uint32_t(std::countr_zero(rest));
    int64_t at = getOffset(access, subgroup, lane);
    Now touch = makeTouch(access.site, subgroup, lane, 0);
    if (at < access.objectBegin || at + access.bytes > access.objectEnd) {
      machine.reportOutside(*dispatch, access, touch, at - access.objectBegin,
                            access.objectEnd - access.objectBegin);
      if (access.isRead)
        poisonScalars(access, subgroup, lane);
      continue;
    }
    auto own = size_t(lane * program.privateBytes + at);
    unsigned char *written = &subgroup.privateWritten[own];
    if (access.isWrite) {
      std::memset(written, 1, size_t(access.bytes));
      copyOut(access, subgroup, lane, &subgroup.privateBytes[own]);
      continue;
    }
    if (std::memchr(written, 0, size_t(access.bytes)))
      machine.reportUnwritten(*dispatch, access, touch, at - access.objectBegin);
    copyIn(access, subgroup, lane, &subgroup.privateBytes[own]);
  }
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

void Workgroup::reportDivergence(const Barrier &barrier) {
  machine.reportCode(ReportKind::Divergent, *dispatch, number, barrier.source,
                     "not all of its invocations reach the same barrier");
  abandon();
}

void Workgroup::reportInactive(const spv::SourceLine &source, const Subgroup &subgroup,
                               uint32_t lane) {
  machine.reportCode(ReportKind::Undefined, *dispatch, number, source,
                     "invocation " + std::to_string(subgroup.firstInvocation + lane) +
                         " takes a value from one of its subgroup that is not active or not there");
}

void Workgroup::reportStranger(const Meeting &meeting, const Subgroup &subgroup, uint32_t lane) {
  machine.reportCode(ReportKind::Undefined, *dispatch, number, meeting.source,
                     "thread " + std::to_string(subgroup.firstInvocation + lane) + " executes " +
                         meeting.name + " and its lane is not in its own mask");
  abandon();
}

void Workgroup::reportHang(const std::string &name, const spv::SourceLine &source,
                           const Subgroup &subgroup, uint32_t lane, uint32_t missing) {
  machine.reportCode(ReportKind::Hang, *dispatch, number, source,
                     "thread " + std::to_string(subgroup.firstInvocation + lane) + " waits at " +
                         name + " for thread " +
                         std::to_string(subgroup.firstInvocation + missing) +
                         ", which its mask names and which waits elsewhere");
  abandon();
}

/// Reports that nobody ends the phase of an mbarrier that a subgroup waits for.
void Workgroup::reportPhase(const Subgroup &subgroup) {
  machine.reportCode(ReportKind::Hang, *dispatch, number, {},
                     "thread " + std::to_string(subgroup.firstInvocation) +
                         " waits for a phase of an mbarrier that does not end: its bytes are not "
                         "expected, or not all of them are copied");
  abandon();
}

void Workgroup::reportEndless() {
  machine.reportCode(ReportKind::Endless, *dispatch, number, {},
                     "an invocation makes more than " + std::to_string(machine.getMaxTrips()) +
                         " trips of loops, the most that the profile has");
  abandon();
}

void Workgroup::reportUnreachable(const Subgroup &subgroup) {
  machine.reportCode(
      ReportKind::Undefined, *dispatch, number, {},
      "invocation " +
          std::to_string(subgroup.firstInvocation + uint32_t(std::countr_zero(subgroup.mask))) +
          " reaches OpUnreachable");
}
