//===- EmitSpirv.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_EMITSPIRVPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct EmitSpirv : weir::impl::EmitSpirvPassBase<EmitSpirv> {
  using EmitSpirvPassBase::EmitSpirvPassBase;

  void runOnOperation() override {}
};
} // namespace
