//===- InsertBarriers.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_INSERTBARRIERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct InsertBarriers : weir::impl::InsertBarriersPassBase<InsertBarriers> {
  using InsertBarriersPassBase::InsertBarriersPassBase;

  void runOnOperation() override {}
};
} // namespace
