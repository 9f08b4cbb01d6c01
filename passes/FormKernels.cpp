//===- FormKernels.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_FORMKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct FormKernels : weir::impl::FormKernelsPassBase<FormKernels> {
  using FormKernelsPassBase::FormKernelsPassBase;

  void runOnOperation() override {}
};
} // namespace
