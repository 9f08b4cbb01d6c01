//===- VerifyDispatches.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYDISPATCHESPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyDispatches : weir::impl::VerifyDispatchesPassBase<VerifyDispatches> {
  using VerifyDispatchesPassBase::VerifyDispatchesPassBase;

  void runOnOperation() override {}
};
} // namespace
