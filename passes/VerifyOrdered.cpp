//===- VerifyOrdered.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYORDEREDPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyOrdered : weir::impl::VerifyOrderedPassBase<VerifyOrdered> {
  using VerifyOrderedPassBase::VerifyOrderedPassBase;

  void runOnOperation() override {}
};
} // namespace
