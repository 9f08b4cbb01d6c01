//===- VerifyGraph.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYGRAPHPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyGraph : weir::impl::VerifyGraphPassBase<VerifyGraph> {
  using VerifyGraphPassBase::VerifyGraphPassBase;

  void runOnOperation() override {}
};
} // namespace
