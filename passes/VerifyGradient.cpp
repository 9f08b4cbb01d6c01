//===- VerifyGradient.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYGRADIENTPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyGradient : weir::impl::VerifyGradientPassBase<VerifyGradient> {
  using VerifyGradientPassBase::VerifyGradientPassBase;

  void runOnOperation() override {}
};
} // namespace
