//===- VerifyGraph.cpp - The gate of the graph level ----------------------===//

#include "passes/Gates.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYGRAPHPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct VerifyGraph : weir::impl::VerifyGraphPassBase<VerifyGraph> {
  using VerifyGraphPassBase::VerifyGraphPassBase;

  void runOnOperation() override {
    if (failed(weir::verifyGraph(getOperation(), "graph")))
      signalPassFailure();
  }
};
} // namespace
