//===- Tiles.cpp - Copies of boxes, and mbarriers -------------------------===//
//
// A copy of a box (TMA) lands when somebody has waited for the phase of its mbarrier, and not
// before: until then the bytes that it writes hold nothing. A phase ends when its one arrival has
// taken place and as many bytes as were expected are copied. Whoever waits meanwhile lets others go
// on. What is outside of the tensor is 0. Lines of 128 bytes have their runs of 16 bytes exchanged.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Machine.h"

#include <algorithm>
#include <cstring>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

static constexpr int64_t lineBytes = 128, runBytes = 16, linesOfBlock = 8, blockBytes = 1024,
                         mbarrierBytes = 8;

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

uint16_t Decoder::addTileSite(const Instruction &instruction, size_t operand, bool reads) {
  const PointerTarget &target = getTarget(instruction, instruction.operands[operand]);
  need(instruction, !otherTargets.contains(instruction.operands[operand]),
       "has an address in one of several variables, which the simulator does not support");
  AccessSite access = makeAccess(instruction, target);
  access.isRead = reads;
  access.isWrite = !reads;
  access.isLate = instruction.op == Op::CopyTile && operand != 1;
  const uint16_t site = access.site;
  program.accesses.push_back(std::move(access));
  return site;
}

void Decoder::decodeTile(const Instruction &instruction) {
  using Kind = TileStep::Kind;
  TileStep tile;
  tile.source = instruction.source;
  const bool isCopy = instruction.op == Op::CopyTile;
  tile.mbarrier = addTileSite(instruction, isCopy ? 1 : 0, instruction.op != Op::MBarrierInit);
  if (isCopy) {
    tile.name = module.getString(instruction.operands[3]);
    tile.to = addTileSite(instruction, 0, false);
    tile.from = addTileSite(instruction, 2, true);
    tile.number = int64_t(useConstant(instruction, 4));
    const size_t rank = (instruction.operands.size() - 5) / 3;
    for (size_t i = 0; i < rank; ++i) {
      tile.shape.push_back(int64_t(useConstant(instruction, 5 + 2 * i)));
      tile.box.push_back(int64_t(useConstant(instruction, 6 + 2 * i)));
      tile.coordinates.push_back(resize(useNumber(instruction, 5 + 2 * rank + i), 32));
    }
  } else if (instruction.op == Op::MBarrierInit) {
    tile.kind = Kind::Init;
    tile.name = "mbarrier.init";
  } else {
    tile.kind = instruction.op == Op::MBarrierWait ? Kind::Wait : Kind::Expect;
    tile.name = tile.kind == Kind::Wait ? "mbarrier.try_wait.parity" : "mbarrier.arrive.expect_tx";
    tile.number = int64_t(useConstant(instruction, 1));
  }
  emit(getTileStep(), 0, 0, 0, 0, int64_t(program.tiles.size()));
  program.tiles.push_back(std::move(tile));
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

/// Notes that a lane uses an mbarrier, and reports others than such uses of its bytes.
void Workgroup::touchMBarrier(const TileStep &tile, const Subgroup &subgroup, uint32_t lane) {
  const AccessSite &access = program.accesses[tile.mbarrier];
  const int64_t at = getOffset(access, subgroup, lane), granule = program.workgroupGranule;
  Now touch = makeTouch(tile.mbarrier, subgroup, lane, memoryPhase);
  if (at < access.objectBegin || at + mbarrierBytes > access.objectEnd)
    return machine.reportOutside(*dispatch, access, touch, at - access.objectBegin,
                                 access.objectEnd - access.objectBegin);
  if (at % mbarrierBytes != 0)
    return machine.reportMisaligned(*dispatch, access, touch, at);
  for (int64_t i = at / granule; i <= (at + mbarrierBytes - 1) / granule; ++i) {
    Cell &cell = cells[size_t(i)];
    const bool isWritten = cell.write.site;
    if (landing[size_t(i)])
      machine.reportLate(*dispatch, pending[landing[size_t(i)] - 1].touch, touch, i * granule);
    if (isWritten && doRace(program, cell.write, touch))
      machine.reportInside(*dispatch, cell.write, touch, i * granule);
    if (tile.kind != TileStep::Kind::Init) {
      if (!isWritten || !mbarriers.contains(at))
        machine.reportUnwritten(*dispatch, access, touch, i * granule);
      else if (tile.kind == TileStep::Kind::Copy &&
               writtenAt[size_t(i)] >= fences[cell.write.invocation])
        machine.reportCode(ReportKind::Race, *dispatch, number, tile.source,
                           "'" + tile.name +
                               "' uses an mbarrier that was made without a "
                               "fence.proxy.async behind it");
      cell.addRead(touch);
      continue;
    }
    if (const Touch *read = findRace(program, cell.reads, touch))
      machine.reportInside(*dispatch, *read, touch, i * granule);
    checkReaders(i, touch);
    cell = Cell();
    cell.write = touch;
    noteWrite(i, touch);
  }
  if (tile.kind == TileStep::Kind::Init)
    mbarriers[at] = MBarrier();
}

/// Lets those who wait for a phase look again.
void Workgroup::wake() {
  for (const auto &subgroup : subgroups)
    if (subgroup->state == Subgroup::State::AtPhase)
      subgroup->state = Subgroup::State::Ready;
}

/// Ends the phase that goes on, if it can. Returns whether it has ended.
bool Workgroup::endPhase(const TileStep &tile, MBarrier &mbarrier) {
  if (!mbarrier.hasArrived || mbarrier.left > 0)
    return false;
  if (mbarrier.left < 0)
    machine.reportCode(ReportKind::Race, *dispatch, number, tile.source,
                       "'" + tile.name + "' waits for a phase that expects " +
                           std::to_string(-mbarrier.left) +
                           " bytes less than are copied, so that it may end before they are there");
  for (uint32_t index : mbarrier.copies)
    landTile(pending[index]);
  const bool parity = mbarrier.parity;
  mbarrier = MBarrier();
  mbarrier.parity = !parity;
  return true;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Rounds elements of f32 to tf32: to the nearest, of two equally near to the even one.
static void roundToTf32(std::vector<unsigned char> &bytes) {
  constexpr uint32_t cut = 13, infinity = 0x7f800000;
  for (size_t at = 0; at < bytes.size(); at += 4) {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[at], 4);
    if ((bits & infinity) == infinity) // infinite or NaN
      continue;
    bits += (uint32_t(1) << (cut - 1)) - 1 + (bits >> cut & 1);
    bits &= ~((uint32_t(1) << cut) - 1);
    std::memcpy(&bytes[at], &bits, 4);
  }
}

/// Returns the elements of a box, row by row, as they are copied.
std::vector<unsigned char> Workgroup::readBox(const TileStep &tile, const Subgroup &subgroup,
                                              uint32_t lane) {
  const AccessSite &from = program.accesses[tile.from];
  const Binding &binding = dispatch->bindings[from.binding];
  const Now touch = makeTouch(tile.from, subgroup, lane, storagePhase);
  const int64_t base = getOffset(from, subgroup, lane), element = tile.number,
                line = tile.box[0] * element;
  const size_t rank = tile.shape.size();
  std::vector<int64_t> begin;
  int64_t lines = 1;
  for (size_t i = 0; i < rank; ++i) {
    begin.push_back(int32_t(subgroup.at<uint32_t>(tile.coordinates[i])[lane]));
    lines *= i ? tile.box[i] : 1;
  }
  std::vector<unsigned char> bytes(size_t(lines * line));
  for (int64_t number = 0; number < lines; ++number) {
    int64_t stride = tile.shape[0] * element, offset = 0, rest = number;
    bool isInside = true;
    for (size_t i = 1; i < rank; ++i) {
      const int64_t at = begin[i] + rest % tile.box[i];
      rest /= tile.box[i];
      isInside &= at >= 0 && at < tile.shape[i];
      offset += at * stride;
      stride *= tile.shape[i];
    }
    const int64_t first = std::max<int64_t>(begin[0], 0),
                  last = std::min(begin[0] + tile.box[0], tile.shape[0]);
    if (!isInside || first >= last)
      continue;
    const int64_t at = base + offset + first * element, count = (last - first) * element;
    if (at < 0 || at + count > binding.bytes) {
      machine.reportOutside(*dispatch, from, touch, at, binding.bytes);
      continue;
    }
    Store &store = *binding.store;
    const int64_t place = binding.offset + at;
    unsigned char *to = &bytes[size_t(number * line + (first - begin[0]) * element)];
    std::memcpy(to, &store.values[size_t(place)], size_t(count));
    for (int64_t cell = place >> store.shift; cell <= (place + count - 1) >> store.shift; ++cell) {
      if (machine.checkRead(*dispatch, from.binding, cell, touch))
        continue;
      const int64_t stale = std::max(cell << store.shift, place),
                    end = std::min((cell + 1) << store.shift, place + count);
      std::memcpy(to + (stale - place), &store.stale[size_t(stale)], size_t(end - stale));
    }
  }
  if (element == 4)
    roundToTf32(bytes);
  return bytes;
}

void Workgroup::startTile(const TileStep &tile, Subgroup &subgroup, uint32_t lane) {
  const AccessSite &to = program.accesses[tile.to];
  const Now write = makeTouch(tile.to, subgroup, lane, memoryPhase);
  Pending each;
  each.touch = write;
  each.fromSite = tile.from;
  each.to = getOffset(to, subgroup, lane);
  each.box = readBox(tile, subgroup, lane);
  each.bytes = int64_t(each.box.size());
  if (each.to < to.objectBegin || each.to + each.bytes > to.objectEnd)
    return machine.reportOutside(*dispatch, to, write, each.to - to.objectBegin,
                                 to.objectEnd - to.objectBegin);
  if (each.to % blockBytes != 0)
    return machine.reportMisaligned(*dispatch, to, write, each.to);
  auto found = mbarriers.find(getOffset(program.accesses[tile.mbarrier], subgroup, lane));
  if (found == mbarriers.end())
    return; // reported
  const int64_t granule = program.workgroupGranule;
  for (int64_t i = each.to / granule; i <= (each.to + each.bytes - 1) / granule; ++i) {
    Cell &cell = cells[size_t(i)];
    if (landing[size_t(i)])
      machine.reportLate(*dispatch, pending[landing[size_t(i)] - 1].touch, write, i * granule);
    if (cell.write.site && doRace(program, cell.write, write))
      machine.reportInside(*dispatch, cell.write, write, i * granule);
    else if (cell.write.site && writtenAt[size_t(i)] >= fences[cell.write.invocation])
      machine.reportCode(ReportKind::Race, *dispatch, number, tile.source,
                         "'" + tile.name + "' writes where an invocation wrote without a " +
                             "fence.proxy.async behind it");
    if (const Touch *other = findRace(program, cell.reads, write))
      machine.reportInside(*dispatch, *other, write, i * granule);
    checkReaders(i, write);
    cell = Cell();
    cell.write = write;
    landing[size_t(i)] = uint32_t(pending.size() + 1);
  }
  std::memset(&memory[size_t(each.to)], poison, size_t(each.bytes));
  found->second.copies.push_back(uint32_t(pending.size()));
  found->second.left -= each.bytes;
  pending.push_back(std::move(each));
  ++numPending;
}

/// Makes a box appear, as if written now, by the proxy that products read by.
void Workgroup::landTile(Pending &copy) {
  copy.hasLanded = true;
  --numPending;
  const auto index = uint32_t(&copy - pending.data()) + 1;
  const int64_t granule = program.workgroupGranule;
  for (int64_t i = copy.to / granule; i <= (copy.to + copy.bytes - 1) / granule; ++i) {
    if (landing[size_t(i)] != index)
      continue; // another copy goes there, which is reported
    landing[size_t(i)] = 0;
    cells[size_t(i)] = Cell();
    cells[size_t(i)].write = copy.touch;
    cells[size_t(i)].write.phase = memoryPhase;
    writtenAt[size_t(i)] = 0;
  }
  for (int64_t at = 0; at < copy.bytes; at += runBytes) {
    const int64_t line = (copy.to + at) / lineBytes,
                  to = (copy.to + at) ^ (line % linesOfBlock * runBytes);
    std::memcpy(&memory[size_t(to)], &copy.box[size_t(at)], size_t(runBytes));
  }
  copy.box = {};
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

bool Workgroup::runTile(const TileStep &tile, Subgroup &subgroup) {
  using Kind = TileStep::Kind;
  bool isOver = true;
  subgroup.forEachLane([&](uint32_t lane) {
    if (!isOver)
      return;
    touchMBarrier(tile, subgroup, lane);
    auto found = mbarriers.find(getOffset(program.accesses[tile.mbarrier], subgroup, lane));
    if (found == mbarriers.end())
      return; // reported
    MBarrier &mbarrier = found->second;
    switch (tile.kind) {
    case Kind::Init:
      break;
    case Kind::Expect:
      if (mbarrier.hasArrived && !endPhase(tile, mbarrier))
        machine.reportCode(ReportKind::Race, *dispatch, number, tile.source,
                           "'" + tile.name + "' arrives at an mbarrier twice in a phase");
      mbarrier.hasArrived = true;
      mbarrier.left += tile.number;
      wake();
      break;
    case Kind::Copy:
      startTile(tile, subgroup, lane);
      wake();
      break;
    case Kind::Wait:
      if (mbarrier.parity == (tile.number != 0))
        isOver = endPhase(tile, mbarrier);
      break;
    }
  });
  return isOver;
}

static void runTile(Subgroup &subgroup, const Step &step) {
  const TileStep &tile = subgroup.program.tiles[size_t(step.number)];
  const bool isWait = tile.kind == TileStep::Kind::Wait;
  if (isWait && !subgroup.gather(noRegister, nullptr))
    return;
  if (!subgroup.workgroup->runTile(tile, subgroup))
    return subgroup.waitForPhase();
  if (isWait)
    subgroup.halve();
  else
    --subgroup.budget;
}

StepFunction sim::getTileStep() { return ::runTile; }
