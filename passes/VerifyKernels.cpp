//===- VerifyKernels.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyKernels : weir::impl::VerifyKernelsPassBase<VerifyKernels> {
  using VerifyKernelsPassBase::VerifyKernelsPassBase;

  void runOnOperation() override {}
};
} // namespace
