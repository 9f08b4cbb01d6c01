//===- LoopTrips.h - How many trips the loops of a kernel make ---*- C++ -*-===//

#ifndef WEIR_ANALYSIS_LOOPTRIPS_H
#define WEIR_ANALYSIS_LOOPTRIPS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace weir {

/// The trips that one invocation makes. Mesa's driver for CPUs counts those of all loops
/// together, and each end of a loop as one more, since it passes the end of the body with no
/// invocation left (`lp_exec_endloop` in gallivm). Numbers too large for int64_t stay at its max.
class LoopTrips {
public:
  explicit LoopTrips(mlir::gpu::GPUFuncOp kernel);

  /// Returns the max trips of the loop each time it begins; std::nullopt where it has no known
  /// bound, as every `scf.while`.
  std::optional<int64_t> getTrips(mlir::LoopLikeOpInterface loop) const;

  /// Returns the max trips and ends of the loop in an invocation, those of loops in it left out.
  std::optional<int64_t> getShare(mlir::LoopLikeOpInterface loop) const;

  /// Returns the max trips and ends of all loops of an invocation; std::nullopt where one has no
  /// known bound.
  std::optional<int64_t> getTotal() const;

  /// Returns all loops of the kernel, outer ones first.
  llvm::SmallVector<mlir::LoopLikeOpInterface> getLoops() const;

private:
  llvm::MapVector<mlir::Operation *, std::optional<int64_t>> trips; ///< by loop
};

} // namespace weir

#endif // WEIR_ANALYSIS_LOOPTRIPS_H
