//===- Tiles.cpp - Copies of boxes, and mbarriers -------------------------===//
//
// A copy of a box touches its bytes from where it begins until its invocation has waited for the
// phase of its mbarrier. What others read behind a barrier that comes before that wait is a race.
// Each invocation counts the phases that it has waited for: a wait by another parity than that of
// the next phase is none.
//
//===----------------------------------------------------------------------===//

#include "Tracer.h"

#include <algorithm>

using namespace weir;
using namespace weir::mutate;
using namespace weir::spv;

static constexpr int64_t mbarrierBytes = 8;

/// Returns the number that an operand is.
int64_t Tracer::getNumber(const Instruction &instruction, size_t operand) {
  auto number = use(instruction.operands[operand]).get(0);
  if (!number)
    refuse(instruction, "has operands that depend on what is loaded, which weir-mutate cannot "
                        "follow");
  return int64_t(*number);
}

/// Returns where an operand points to, which must be a variable of a kind.
Pointer Tracer::getTarget(const Instruction &instruction, size_t operand, Pointer::Kind kind) {
  use(instruction.operands[operand]); // there is such an id
  const Pointer &pointer = pointers[instruction.operands[operand]];
  if (others.contains(instruction.operands[operand]) || pointer.kind != kind)
    refuse(instruction, "has an address that weir-mutate cannot follow");
  return pointer;
}

/// Begins to copy a box: what is inside of the tensor is read, all of the box is written.
void Tracer::beginTile(const Instruction &instruction) {
  const size_t rank = (instruction.operands.size() - 5) / 3;
  const int64_t element = getNumber(instruction, 4);
  std::vector<int64_t> shape, box, begin;
  int64_t lines = 1;
  for (size_t i = 0; i < rank; ++i) {
    shape.push_back(getNumber(instruction, 5 + 2 * i));
    box.push_back(getNumber(instruction, 6 + 2 * i));
    begin.push_back(int32_t(getNumber(instruction, 5 + 2 * rank + i)));
    lines *= i ? box[i] : 1;
  }
  Pointer to = getTarget(instruction, 0, Pointer::Kind::Workgroup),
          from = getTarget(instruction, 2, Pointer::Kind::Buffer);
  const int64_t base = from.offset, place = to.offset;
  Flight flight;
  flight.mbarrier = useMBarrier(instruction, 1);
  auto touch = [&](const Pointer &pointer, int64_t bytes, bool isWrite) {
    note(instruction, pointer, bytes, isWrite);
    flight.accesses.push_back(accesses.back());
    if (isWrite) {
      flight.noted.push_back(unshown.back()); // products see it when it has been waited for
      unshown.pop_back();
    }
  };
  for (int64_t number = 0; number < lines; ++number) {
    int64_t stride = shape[0] * element, offset = 0, rest = number;
    bool isInside = true;
    for (size_t i = 1; i < rank; ++i) {
      const int64_t at = begin[i] + rest % box[i];
      rest /= box[i];
      isInside &= at >= 0 && at < shape[i];
      offset += at * stride;
      stride *= shape[i];
    }
    to.offset = place + number * lineBytes;
    touch(to, lineBytes, /*isWrite=*/true);
    const int64_t first = std::max<int64_t>(begin[0], 0) * element,
                  end = std::min(begin[0] + box[0], shape[0]) * element;
    for (int64_t at = first; isInside && at < end; at += runBytes) {
      from.offset = base + offset + at;
      touch(from, std::min(runBytes, end - at), /*isWrite=*/false);
    }
  }
  phases[*flight.mbarrier].left -= lines * lineBytes;
  tiles.push_back(std::move(flight));
}

/// Notes that the invocation reads an mbarrier, and returns its place.
std::pair<uint32_t, int64_t> Tracer::useMBarrier(const Instruction &instruction, size_t operand) {
  const Pointer pointer = getTarget(instruction, operand, Pointer::Kind::Workgroup);
  std::pair<uint32_t, int64_t> place = {pointer.object, pointer.offset};
  note(instruction, pointer, mbarrierBytes, /*isWrite=*/instruction.op == Op::MBarrierInit);
  if (instruction.op == Op::MBarrierInit)
    owners[place] = invocation;
  else if (!owners.contains(place))
    report(describe(instruction) + " uses an mbarrier that nobody has made");
  else if (instruction.op != Op::MBarrierWait && owners[place] != invocation)
    report(describe(instruction) + " is run by invocation " + std::to_string(invocation) +
           ", and the mbarrier is one that invocation " + std::to_string(owners[place]) +
           " alone arrives at");
  return place;
}

void Tracer::orderTiles(const Instruction &instruction) {
  const std::pair<uint32_t, int64_t> place = useMBarrier(instruction, 0);
  Phase &phase = phases[place];
  switch (instruction.op) {
  case Op::MBarrierInit:
    phase = {};
    return;
  case Op::MBarrierExpect:
    if (phase.isOpen)
      report(describe(instruction) + " arrives twice in a phase");
    phase.isOpen = true;
    phase.left += getNumber(instruction, 1);
    return;
  default:
    break;
  }
  barriers.push_back(instruction.word);
  if ((phase.waits % 2 != 0) != (getNumber(instruction, 1) != 0))
    return; // for the phase before, which has ended
  ++phase.waits;
  if (owners[place] != invocation)
    return;
  if (!phase.isOpen || phase.left > 0)
    report(describe(instruction) + " waits for bytes that nobody copies");
  if (phase.left < 0)
    report(describe(instruction) + " may end before all bytes are there, since fewer are expected");
  phase.isOpen = false;
  phase.left = 0;
  std::erase_if(tiles, [&](const Flight &flight) {
    if (flight.mbarrier != place)
      return false;
    for (size_t write : flight.noted)
      accesses[write].shown = memoryPhase;
    return true;
  });
}
