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
  std::string detail; ///< how many pairs were checked, or the counterexample
  /// Facts of kernels that it is about: how many are proved from their code, and how
  /// many are taken from the compiler. Both are 0 for a claim of the plan alone.
  size_t proved = 0, taken = 0;
};

/// Re-proves order, slots, ranges and alignment of every plan from the plan and
/// the manifest alone, and what it says of kernels from their code, in code that shares
/// nothing with the passes. Linear in the number of commands times operands; each
/// kernel is read once for each grid that it runs on.
std::vector<Claim> verify(const Artifact &artifact);

} // namespace weir

#endif // WEIR_VERIFY_VERIFY_H
