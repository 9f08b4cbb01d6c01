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
  std::string what;   ///< "order", "barriers", "slots", "ranges", "alignment"...
  bool holds = false;
  std::string detail; ///< how many pairs were checked, or the counterexample
};

/// Re-proves order, slots, ranges and alignment of every plan from the plan and
/// the manifest alone, in code that shares nothing with the passes. Linear in
/// the number of commands times operands.
std::vector<Claim> verify(const Artifact &artifact);

} // namespace weir

#endif // WEIR_VERIFY_VERIFY_H
