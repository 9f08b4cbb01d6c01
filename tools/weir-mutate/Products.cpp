//===- Products.cpp - Products of matrices by four warps ------------------===//
//
// A product reads its factors until its warps have waited for it. Its lanes read them together, so
// two lanes of each warp stand for all: what another invocation writes meanwhile races with one of
// them. The places of a factor's elements are those of the PTX ISA, "Asynchronous Warpgroup Level
// Matrix Instructions".
//
//===----------------------------------------------------------------------===//

#include "Tracer.h"

#include <algorithm>
#include <charconv>

using namespace weir;
using namespace weir::mutate;
using namespace weir::spv;

static constexpr uint32_t allLanes = ~0u;

/// Finds the results of products, what is taken out of them, and phis of these.
void Tracer::findSums() {
  for (size_t before = 1; before != sums.size();) {
    before = sums.size();
    for (const Block &block : module.getFunction(entry->function).blocks)
      for (const Instruction &instruction : block.instructions) {
        const bool isPhi = instruction.op == Op::Phi;
        bool isSum = instruction.op == Op::GroupMatrix;
        if (isPhi || instruction.op == Op::CompositeExtract)
          for (size_t i = 0; i < (isPhi ? instruction.operands.size() : 1); i += 2)
            isSum |= sums.contains(instruction.operands[i]);
        if (isSum)
          sums.insert(instruction.result);
      }
  }
}

/// Checks that an instruction does not use sums that are still being made.
void Tracer::checkSums(const Instruction &instruction) {
  switch (instruction.op) {
  case Op::GroupMatrix:
  case Op::CompositeExtract:
  case Op::Phi:
    return;
  default:
    // An ExtInst begins with two numbers that are no values.
    for (size_t i = instruction.op == Op::ExtInst ? 2 : 0; i < instruction.operands.size(); ++i)
      if (sums.contains(instruction.operands[i]))
        report(describe(instruction) + " uses a sum of a product that its invocation has not "
                                       "waited for");
  }
}

/// Returns where 16 bytes of a factor are. Of `isTransposed`, neighbours are elements of one term:
/// rows of the first factor or columns of the second. Otherwise they are terms of one element.
static int64_t getRun(int64_t begin, int64_t leading, int64_t stride, bool isTransposed,
                      int64_t element, int64_t term, int64_t bytes) {
  const int64_t at = isTransposed
                         ? begin + element / 64 * leading + term / 8 * stride +
                               term % 8 * lineBytes + element % 64 * 2
                         : begin + element / 8 * stride + element % 8 * lineBytes + term * bytes;
  return at ^ (at / lineBytes % 8 * runBytes);
}

void Tracer::beginProduct(const Instruction &instruction) {
  auto get = [&](size_t i) {
    auto number = use(instruction.operands[i]).get(0);
    if (!number)
      refuse(instruction, "has operands that are not constants");
    return int64_t(*number);
  };
  const std::string &name = module.getString(instruction.operands[2]);
  const int64_t bytes = name.find(".tf32.") != name.npos ? 4 : 2;
  const std::string rows = "m64n";
  int64_t columns = 0;
  std::from_chars(name.data() + name.find(rows) + rows.size(), name.data() + name.size(), columns);
  if (!hasFence)
    report(describe(instruction) + " has no wgmma.fence behind the last wait");
  Flight flight;
  int64_t place = 0;
  for (size_t side : {0, 1}) {
    const Pointer pointer = pointers[instruction.operands[side]];
    if (pointer.kind != Pointer::Kind::Workgroup || others.contains(instruction.operands[side]))
      refuse(instruction, "has a factor that weir-mutate cannot follow");
    place = place * (int64_t(1) << 24) + pointer.offset;
    if (invocation % subgroupSize > 1)
      continue;
    const bool isTransposed = get(7 + side) != 0;
    // Each warp of four has 16 of the 64 rows.
    const int64_t first = side == 0 ? invocation / subgroupSize % 4 * 16 : 0;
    const int64_t last = side == 0 ? first + 16 : columns;
    for (int64_t element = first; element < last; element += isTransposed ? 8 : 1)
      for (int64_t term = 0; term < 32 / bytes; term += isTransposed ? 1 : runBytes / bytes) {
        Pointer run = pointer;
        run.offset = getRun(pointer.offset, get(3 + 2 * side), get(4 + 2 * side), isTransposed,
                            element, term, bytes);
        note(instruction, run, runBytes, /*isWrite=*/false);
        flight.accesses.push_back(accesses.back());
      }
  }
  meetings[invocation % subgroupSize].push_back({instruction.word, allLanes, place});
  products.push_back(std::move(flight));
  values[instruction.result] = Value();
}

/// Follows what orders products. Returns whether the instruction does so.
bool Tracer::orderProducts(const Instruction &instruction) {
  const std::string &name = module.getString(instruction.operands[0]);
  if (name.starts_with("fence.proxy.async")) {
    for (size_t write : unshown)
      accesses[write].shown = memoryPhase;
    unshown.clear();
    return true;
  }
  if (name == "wgmma.fence.sync.aligned") {
    hasFence = true;
  } else if (name == "wgmma.commit_group.sync.aligned") {
    for (Flight &product : products)
      ++product.groups;
  } else if (name == "wgmma.wait_group.sync.aligned") {
    auto left = use(instruction.operands[1]).get(0);
    if (!left)
      refuse(instruction, "has operands that are not constants");
    std::erase_if(products, [&](const Flight &product) { return product.groups > *left; });
    hasFence = false;
  } else {
    return false;
  }
  meetings[invocation % subgroupSize].push_back({instruction.word, allLanes});
  return true;
}
