//===- Flow.h - Blocks, loops and selections of an entry --------*- C++ -*-===//

#ifndef WEIR_LIB_PTXREADER_FLOW_H
#define WEIR_LIB_PTXREADER_FLOW_H

#include "Text.h"

namespace weir::ptx {

inline constexpr uint32_t none = ~0u;

/// Statements that run one after the other, without those that branch.
struct Block {
  uint32_t begin = 0, end = 0; ///< statements
  uint32_t line = 0;
  /// None: the entry ends. One: jumps there. Two: the first if `condition` holds.
  std::vector<uint32_t> successors;
  uint32_t condition = none; ///< a register
  bool isConditionNegated = false;
  std::vector<uint32_t> predecessors;
  uint32_t merge = none;          ///< where the arms of its selection, or its loop, meet
  uint32_t continueTarget = none; ///< of a loop's header: the block that leads back to it
  /// Predicates that are set at the end: to which of several places a loop ends.
  std::vector<std::pair<uint32_t, bool>> sets;
};

/// Blocks with merges, as SPIR-V has them. Block 0 has no predecessors.
struct Flow {
  std::vector<Block> blocks;
  std::vector<uint32_t> order; ///< the blocks that can be reached, each behind its dominator
};

/// Returns the blocks of an entry. A loop that ends in several places gets one end, which
/// predicates lead on from; these are added to the entry's registers. Errors: `Error` when control
/// is not followed: a label that is not there, a jump into a loop, a loop without an end.
Flow makeFlow(Entry &entry, const std::string &where);

/// Whether an instruction only branches or ends the entry.
bool isBranch(const Statement &statement);
/// Whether an instruction touches memory or synchronizes.
bool touchesMemory(const Statement &statement);
/// Returns the registers that an instruction reads, or with `writes`, writes.
std::vector<uint32_t> getRegisters(const Statement &statement, bool writes);

} // namespace weir::ptx

#endif // WEIR_LIB_PTXREADER_FLOW_H
