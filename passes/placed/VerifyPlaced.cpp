//===- VerifyPlaced.cpp - The gate of the placed level --------------------===//

#include "passes/Gates.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYPLACEDPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyPlaced : weir::impl::VerifyPlacedPassBase<VerifyPlaced> {
  using VerifyPlacedPassBase::VerifyPlacedPassBase;

  void runOnOperation() override {
    weir::Effects &effects = getAnalysis<weir::Effects>();
    weir::Views &views = getAnalysis<weir::Views>();
    llvm::DenseMap<mlir::Operation *, weir::ListHazards> found;
    if (failed(weir::verifyCommands(getOperation(), effects)) ||
        failed(weir::verifyPlacement(getOperation(), effects, views, found)))
      signalPassFailure();
    if (failed(weir::verifyNoBarriers(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
