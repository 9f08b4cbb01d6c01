//===- VerifyGradient.cpp - The gate of the gradient level ----------------===//

#include "passes/Gates.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYGRADIENTPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyGradient : weir::impl::VerifyGradientPassBase<VerifyGradient> {
  using VerifyGradientPassBase::VerifyGradientPassBase;

  void runOnOperation() override {
    if (failed(weir::verifyGraph(getOperation(), "gradient")))
      signalPassFailure();
  }
};
} // namespace
