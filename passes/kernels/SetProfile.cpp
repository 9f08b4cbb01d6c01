//===- SetProfile.cpp - Set the target profile of the module --------------===//

#include "passes/Passes.h"

#include "weir/Artifact/Error.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_SETPROFILEPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct SetProfile : weir::impl::SetProfilePassBase<SetProfile> {
  using SetProfilePassBase::SetProfilePassBase;

  void runOnOperation() override {
    try {
      weir::setProfile(getOperation(), weir::loadProfile(profile));
    } catch (const weir::Error &error) {
      getOperation().emitError() << error.what();
      signalPassFailure();
    }
  }
};
} // namespace
