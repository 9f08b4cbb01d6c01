//===- ProfileAttr.h - The profile as an attribute of the module -*- C++ -*-==//

#ifndef WEIR_TARGET_PROFILEATTR_H
#define WEIR_TARGET_PROFILEATTR_H

#include "mlir/IR/BuiltinOps.h"
#include "weir/Artifact/Profile.h"

namespace weir {

/// Sets `weir.profile` of the module, a dictionary with the keys of a profile file.
void setProfile(mlir::ModuleOp module, const Profile &profile);

/// Returns the module's profile, or failure with a diagnostic when it has none
/// or a malformed one.
mlir::FailureOr<Profile> getProfile(mlir::ModuleOp module);

} // namespace weir

#endif // WEIR_TARGET_PROFILEATTR_H
