//===- PlanMemory.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct PlanMemory : weir::impl::PlanMemoryPassBase<PlanMemory> {
  using PlanMemoryPassBase::PlanMemoryPassBase;

  void runOnOperation() override {}
};
} // namespace
