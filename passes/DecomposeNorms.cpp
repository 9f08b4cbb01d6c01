//===- DecomposeNorms.cpp - Norm ops become linalg ------------------------===//

#include "dialects/Norm/Decompose.h"
#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_DECOMPOSENORMSPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct DecomposeNorms : weir::impl::DecomposeNormsPassBase<DecomposeNorms> {
  using DecomposeNormsPassBase::DecomposeNormsPassBase;

  void runOnOperation() override { weir::norm::decomposeAll(getOperation()); }
};
} // namespace
