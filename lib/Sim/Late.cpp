//===- Late.cpp - Copies that land later ----------------------------------===//
//
// A copy may read and write at any time between its start and the end of the wait for it. So the
// bytes that it writes hold nothing until then, and any access to them is an error, as is any
// write to those it reads. The simulator takes what they hold at the start.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace weir;
using namespace weir::sim;

void Workgroup::startCopy(const LateCopy &copy, Subgroup &subgroup, uint32_t lane) {
  const AccessSite &to = program.accesses[copy.to], &from = program.accesses[copy.from];
  Now write = makeTouch(copy.to, subgroup, lane, memoryPhase),
      read = makeTouch(copy.from, subgroup, lane, storagePhase);
  Pending each;
  each.touch = write;
  each.fromSite = copy.from;
  each.group = subgroup.lates[lane].groups;
  each.to = getOffset(to, subgroup, lane);
  each.bytes = to.bytes;
  each.read = std::min(int64_t(subgroup.at<uint32_t>(copy.bytes)[lane]), from.bytes);
  const Binding &binding = dispatch->bindings[from.binding];
  int64_t offset = getOffset(from, subgroup, lane);
  each.from = binding.offset + offset;
  if (each.to < to.objectBegin || each.to + to.bytes > to.objectEnd)
    return machine.reportOutside(*dispatch, to, write, each.to - to.objectBegin,
                                 to.objectEnd - to.objectBegin);
  if (each.to % to.bytes != 0)
    return machine.reportMisaligned(*dispatch, to, write, each.to);
  if (each.read > 0 && (offset < 0 || offset + each.read > binding.bytes)) {
    machine.reportOutside(*dispatch, from, read, offset, binding.bytes);
    each.data.fill(poison);
  } else if (each.read > 0 && each.from % from.bytes != 0) {
    machine.reportMisaligned(*dispatch, from, read, each.from);
    each.data.fill(poison);
  } else if (each.read > 0) {
    each.source = binding.store;
    std::memcpy(each.data.data(), &binding.store->values[size_t(each.from)], size_t(each.read));
    const int shift = each.source->shift;
    for (int64_t cell = each.from >> shift; cell <= (each.from + each.read - 1) >> shift; ++cell)
      if (!machine.checkRead(*dispatch, from.binding, cell, read)) {
        int64_t begin = std::max(cell << shift, each.from);
        int64_t end = std::min((cell + 1) << shift, each.from + each.read);
        std::memcpy(&each.data[size_t(begin - each.from)], &each.source->stale[size_t(begin)],
                    size_t(end - begin));
      }
  }
  const int64_t granule = program.workgroupGranule;
  for (int64_t i = each.to / granule; i <= (each.to + each.bytes - 1) / granule; ++i) {
    Cell &cell = cells[size_t(i)];
    if (landing[size_t(i)])
      machine.reportLate(*dispatch, pending[landing[size_t(i)] - 1].touch, write, i * granule);
    if (cell.write.site && doRace(program, cell.write, write))
      machine.reportInside(*dispatch, cell.write, write, i * granule);
    if (const Touch *other = findRace(program, cell.reads, write))
      machine.reportInside(*dispatch, *other, write, i * granule);
    checkReaders(i, write);
    cell = Cell();
    cell.write = write;
    landing[size_t(i)] = uint32_t(pending.size() + 1);
  }
  std::memset(&memory[size_t(each.to)], poison, size_t(each.bytes));
  subgroup.lates[lane].copies.push_back(uint32_t(pending.size()));
  pending.push_back(each);
  ++numPending;
}

/// Makes a copy's bytes appear, as if written by its lane now.
void Workgroup::land(Pending &copy, const Subgroup &subgroup, uint32_t lane) {
  copy.hasLanded = true;
  --numPending;
  const auto index = uint32_t(&copy - pending.data()) + 1;
  Now write = makeTouch(copy.touch.site, subgroup, lane, memoryPhase),
      read = makeTouch(copy.fromSite, subgroup, lane, storagePhase);
  if (copy.source) {
    const int shift = copy.source->shift;
    for (int64_t cell = copy.from >> shift; cell <= (copy.from + copy.read - 1) >> shift; ++cell)
      machine.checkRead(*dispatch, program.accesses[copy.fromSite].binding, cell, read);
  }
  const int64_t granule = program.workgroupGranule;
  for (int64_t i = copy.to / granule; i <= (copy.to + copy.bytes - 1) / granule; ++i) {
    if (landing[size_t(i)] != index)
      continue; // another copy goes there, which is reported
    landing[size_t(i)] = 0;
    cells[size_t(i)] = Cell();
    cells[size_t(i)].write = write;
    noteWrite(i, write);
    int64_t begin = std::max(i * granule, copy.to);
    int64_t end = std::min((i + 1) * granule, copy.to + copy.bytes);
    std::memcpy(&memory[size_t(begin)], &copy.data[size_t(begin - copy.to)], size_t(end - begin));
  }
}

/// Reports a write to bytes that a copy may still read.
void Workgroup::checkSources(const Store &store, int64_t at, int64_t bytes, const Touch &touch) {
  for (const Pending &copy : pending)
    if (!copy.hasLanded && copy.source == &store && at < copy.from + copy.read &&
        copy.from < at + bytes) {
      Touch read = copy.touch;
      read.site = copy.fromSite;
      machine.reportLate(*dispatch, read, touch, std::max(at, copy.from), &store);
    }
}

void Workgroup::copyLate(const LateCopy &copy, Subgroup &subgroup) {
  for (Mask rest = subgroup.mask; rest; rest &= rest - 1) {
    auto lane = uint32_t(std::countr_zero(rest));
    Subgroup::Lates &own = subgroup.lates[lane];
    switch (copy.kind) {
    case LateCopy::Kind::Copy:
      startCopy(copy, subgroup, lane);
      break;
    case LateCopy::Kind::Commit:
      ++own.groups;
      break;
    case LateCopy::Kind::Wait:
      std::erase_if(own.copies, [&](uint32_t index) {
        Pending &each = pending[index];
        if (copy.pending >= 0 && int64_t(each.group) + copy.pending >= int64_t(own.groups))
          return false;
        land(each, subgroup, lane);
        return true;
      });
      break;
    }
  }
}

static void runCopy(Subgroup &subgroup, const Step &step) {
  subgroup.workgroup->copyLate(subgroup.program.copies[size_t(step.number)], subgroup);
  --subgroup.budget;
}

StepFunction sim::getCopyStep() { return runCopy; }
