//===- Groups.cpp - Products of matrices by four warps --------------------===//
//
// A product reads its factors until the invocations of its four warps have waited for it, and they
// read them together: each counts as one that may read all. What is read for certain is a line of
// the columns' factor. Its sums are in registers, which nobody may use before, and which must not
// have changed since the last wgmma.fence.
//
//===----------------------------------------------------------------------===//

#include "Walk.h"

#include <algorithm>
#include <charconv>
#include <utility>

using namespace weir;
using namespace weir::spv;

/// Bytes of a line, and of the block of lines after which a swizzle repeats.
static constexpr int64_t lineBytes = 128, blockBytes = 1024;
/// Rows of a product, products that it adds up, and elements of a line.
static constexpr int64_t groupRows = 64, groupProducts = 16, lineElements = 64;

GroupMatrix::GroupMatrix(const Module &module, const Instruction &instruction) {
  const std::string &name = module.getString(instruction.operands[2]);
  auto getNumber = [&](size_t i) {
    const Constant *constant = module.findConstant(instruction.operands[i]);
    if (!constant)
      throw Lost{"a product of matrices has factors that lie in an unknown way"};
    return int64_t(constant->bits);
  };
  const std::string rows = "m64n";
  std::from_chars(name.data() + name.find(rows) + rows.size(), name.data() + name.size(),
                  sides[1].elements);
  sides[0].elements = groupRows;
  for (size_t i : {0, 1}) {
    sides[i].leading = getNumber(3 + 2 * i);
    sides[i].stride = getNumber(4 + 2 * i);
    sides[i].isTransposed = getNumber(7 + i) != 0;
  }
}

/// Returns the bytes from the first line to the end of the last one.
int64_t GroupMatrix::getReach(size_t side) const {
  const Side &of = sides[side];
  if (!of.isTransposed)
    return (of.elements / 8 - 1) * of.stride + blockBytes;
  return (of.elements / lineElements - 1) * of.leading + (groupProducts / 8 - 1) * of.stride +
         blockBytes;
}

void Walk::recordGroup(const Instruction &instruction, const Context &context) {
  const GroupMatrix group(module, instruction);
  map.hasProducts = true;
  for (size_t side : {0, 1}) {
    const size_t first = map.accesses.size();
    record(instruction, instruction.operands[side], true, false, context);
    for (size_t i = first, end = map.accesses.size(); i < end; ++i) {
      MemoryAccess &access = map.accesses[i];
      access.isLate = access.isAsync = true;
      const bool isCertain = std::exchange(access.isCertain, false);
      if (!access.address)
        continue;
      int64_t common = blockBytes;
      for (auto [number, factor] : access.address->terms)
        while (factor % common)
          common /= 2;
      if (common < lineBytes)
        throw Lost{"a product of matrices begins inside of a line"};
      const int64_t constant = access.address->constant,
                    inLine = (constant % lineBytes + lineBytes) % lineBytes;
      MemoryAccess sure = access;
      access.address = *access.address - Affine::of(inLine);
      access.bytes = group.getReach(side);
      access.alignment = 16;
      if (access.root == MemoryAccess::Root::Shared && !staysInVariable(access)) {
        access.address.reset();
        leavesVariables = true;
        continue;
      }
      // The first line of a block is not rotated.
      if (side == 0 || common < blockBytes || constant % blockBytes != inLine)
        continue;
      sure.isCertain = isCertain;
      sure.bytes = group.sides[side].isTransposed ? lineBytes : groupProducts * 2;
      map.accesses.push_back(std::move(sure));
    }
  }
}

std::set<Id> weir::spv::findSums(const Function &function) {
  std::set<Id> sums;
  for (bool changes = true; changes;) {
    changes = false;
    for (const Block &block : function.blocks)
      for (const Instruction &instruction : block.instructions) {
        auto has = [&](Id id) { return sums.contains(id); };
        bool isSum = instruction.op == Op::GroupMatrix ||
                     (instruction.op == Op::CompositeExtract && has(instruction.operands[0]));
        if (instruction.op == Op::Phi)
          for (size_t i = 0; i < instruction.operands.size(); i += 2)
            isSum |= has(instruction.operands[i]);
        if (isSum)
          changes |= sums.insert(instruction.result).second;
      }
  }
  return sums;
}

bool weir::spv::usesSums(const Instruction &instruction, const std::set<Id> &sums) {
  if (instruction.op == Op::GroupMatrix || instruction.op == Op::CompositeExtract ||
      instruction.op == Op::Phi)
    return false;
  for (size_t i = 0; i < instruction.operands.size(); ++i)
    if ((instruction.op != Op::ExtInst || i > 1) && sums.contains(instruction.operands[i]))
      return true;
  return false;
}
