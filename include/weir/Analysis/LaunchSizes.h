//===- LaunchSizes.h - How large the launches of a kernel are ----*- C++ -*-===//

#ifndef WEIR_ANALYSIS_LAUNCHSIZES_H
#define WEIR_ANALYSIS_LAUNCHSIZES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <optional>

namespace weir {

/// Every `gpu.launch_func`, by kernel. A module is walked once, when the first of its kernels is
/// asked for. It may not change its launches after that.
class Launches {
public:
  /// Returns the launches of the kernel in its module.
  llvm::ArrayRef<mlir::gpu::LaunchFuncOp> get(mlir::gpu::GPUFuncOp kernel);

private:
  llvm::DenseSet<mlir::Operation *> modules; ///< walked
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Operation *>,
                 llvm::SmallVector<mlir::gpu::LaunchFuncOp>>
      launches; ///< by module and kernel
};

/// The sizes of a launch in workgroups, invocations and invocations per subgroup. Sizes that are
/// not known, or differ between launches, are missing.
struct LaunchSizes {
  std::array<std::optional<int64_t>, 3> grid, workgroup;
  std::optional<int64_t> subgroup;

  /// Returns the sizes that `known_block_size`, `known_grid_size`, the subgroup size of the
  /// module's `weir.profile` and all `gpu.launch_func` of the kernel in its module state. Without
  /// a launch, axes y and z that the kernel never asks about are assumed to have size 1.
  static LaunchSizes get(mlir::FunctionOpInterface kernel, Launches &launches);
  static LaunchSizes get(mlir::FunctionOpInterface kernel) {
    Launches launches;
    return get(kernel, launches);
  }

  /// Returns the number of subgroups of a workgroup, including a last one that is not full.
  std::optional<int64_t> countSubgroups() const;
};

} // namespace weir

#endif // WEIR_ANALYSIS_LAUNCHSIZES_H
