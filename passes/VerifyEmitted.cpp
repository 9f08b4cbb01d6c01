//===- VerifyEmitted.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYEMITTEDPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyEmitted : weir::impl::VerifyEmittedPassBase<VerifyEmitted> {
  using VerifyEmittedPassBase::VerifyEmittedPassBase;

  void runOnOperation() override {}
};
} // namespace
