//===- LowerKernels.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct LowerKernels : weir::impl::LowerKernelsPassBase<LowerKernels> {
  using LowerKernelsPassBase::LowerKernelsPassBase;

  void runOnOperation() override {}
};
} // namespace
