//===- RaiseNorms.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_RAISENORMSPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct RaiseNorms : weir::impl::RaiseNormsPassBase<RaiseNorms> {
  using RaiseNormsPassBase::RaiseNormsPassBase;

  void runOnOperation() override {}
};
} // namespace
