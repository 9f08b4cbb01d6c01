//===- VerifyDispatches.cpp - The gate of the dispatches level ------------===//

#include "passes/Gates.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYDISPATCHESPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyDispatches : weir::impl::VerifyDispatchesPassBase<VerifyDispatches> {
  using VerifyDispatchesPassBase::VerifyDispatchesPassBase;

  void runOnOperation() override {
    bool ok = succeeded(weir::verifyCommands(getOperation(), getAnalysis<weir::Effects>()));
    if (failed(weir::verifyNoBarriers(getOperation())) || !ok)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
