//===- KernelDispatches.h - What the dispatches of a kernel tell -*- C++ -*-===//

#ifndef WEIR_ANALYSIS_KERNELDISPATCHES_H
#define WEIR_ANALYSIS_KERNELDISPATCHES_H

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "weir/Analysis/AccessMap.h"
#include "weir/Analysis/Aliasing.h"
#include "weir/Analysis/WorkgroupRaces.h"

namespace weir {

/// The dispatches of a module, by kernel. A kernel that is also launched in another way, or not at
/// all, has none. The module must not change its dispatches and views while this object is in use.
class KernelDispatches {
public:
  explicit KernelDispatches(mlir::Operation *module);

  llvm::ArrayRef<schedule::DispatchOp> get(mlir::gpu::GPUFuncOp kernel) const;

  /// Returns the sizes that the kernel states, and its grid where all dispatches agree.
  LaunchSizes getSizes(mlir::gpu::GPUFuncOp kernel) const;

  /// Returns how two arguments share bytes; std::nullopt when there are no dispatches.
  std::optional<ArgumentSharing> getSharing(mlir::gpu::GPUFuncOp kernel, unsigned first,
                                            unsigned second) const;

private:
  ArgumentSharing findSharing(llvm::ArrayRef<schedule::DispatchOp> all, unsigned first,
                              unsigned second) const;

  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<schedule::DispatchOp>> dispatches;
  mutable Launches launches;
  mutable Views views;
  mutable llvm::DenseMap<std::tuple<mlir::Operation *, unsigned, unsigned>, ArgumentSharing>
      sharings; ///< by kernel and arguments
};

} // namespace weir

#endif // WEIR_ANALYSIS_KERNELDISPATCHES_H
