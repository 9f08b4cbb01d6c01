//===- VerifyPlaced.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYPLACEDPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyPlaced : weir::impl::VerifyPlacedPassBase<VerifyPlaced> {
  using VerifyPlacedPassBase::VerifyPlacedPassBase;

  void runOnOperation() override {}
};
} // namespace
