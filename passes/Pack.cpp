//===- Pack.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_PACKPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct Pack : weir::impl::PackPassBase<Pack> {
  using PackPassBase::PackPassBase;

  void runOnOperation() override {}
};
} // namespace
