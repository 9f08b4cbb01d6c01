//===- SetProfile.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_SETPROFILEPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct SetProfile : weir::impl::SetProfilePassBase<SetProfile> {
  using SetProfilePassBase::SetProfilePassBase;

  void runOnOperation() override {}
};
} // namespace
