//===- SetProfile.cpp - Set the target profile of the module --------------===//

#include "passes/Passes.h"

#include "weir/Target/Errors.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_SETPROFILEPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct SetProfile : weir::impl::SetProfilePassBase<SetProfile> {
  using SetProfilePassBase::SetProfilePassBase;

  void runOnOperation() override {
    mlir::FailureOr<weir::Profile> loaded = weir::catchErrors(
        [&] { return getOperation().emitError(); }, [&] { return weir::loadProfile(profile); });
    if (failed(loaded))
      return signalPassFailure();
    if (!precision.empty())
      loaded->precision = precision == "tf32" ? weir::Precision::Tf32 : weir::Precision::F32;
    weir::setProfile(getOperation(), *loaded);
  }
};
} // namespace
