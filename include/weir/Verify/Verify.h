//===- Verify.h - Re-proves an artifact's plan ------------------*- C++ -*-===//

#ifndef WEIR_VERIFY_VERIFY_H
#define WEIR_VERIFY_VERIFY_H

#include "weir/Artifact/Artifact.h"

#include <string>
#include <vector>

namespace weir {

/// One claim of a plan and whether it holds.
struct Claim {
  std::string entry, target;
  std::string what; ///< "order", "barriers", "slots", "ranges", "alignment"...
  bool holds = false;
  std::string detail; ///< summary of the proof, or the counterexample
  /// Number of facts about kernels that are proved from their code, and that are taken from the
  /// compiler. Both are 0 for a claim about the plan alone.
  size_t proved = 0, taken = 0;
};

/// Proves order, slots, ranges and alignment of every plan again, from the plan and the
/// manifest alone, and the stated effects of kernels from their code. Shares lib/Artifact with the
/// compiler, and SPIRV-Tools, which lib/Device calls. Cost: linear in the number of operands of
/// all commands; each kernel is read once per grid.
std::vector<Claim> verify(const Artifact &artifact);

} // namespace weir

#endif // WEIR_VERIFY_VERIFY_H
