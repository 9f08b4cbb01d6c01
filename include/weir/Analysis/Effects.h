//===- Effects.h - What a kernel does to its operands -----------*- C++ -*-===//

#ifndef WEIR_ANALYSIS_EFFECTS_H
#define WEIR_ANALYSIS_EFFECTS_H

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "weir/Analysis/AccessMap.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>

namespace weir {

/// What a kernel does to one operand.
struct OperandEffect {
  schedule::Access access = schedule::Access::update;
  bool coversAll = false; ///< every byte is written
  /// Just these are, as `schedule.effect` says of them; empty: that is not known.
  llvm::ArrayRef<int64_t> slice = {};
};

inline bool reads(schedule::Access access) {
  return access == schedule::Access::read || access == schedule::Access::update;
}
inline bool writes(schedule::Access access) {
  return access == schedule::Access::write || access == schedule::Access::update;
}

struct KernelEffects {
  /// One per argument; an argument that is no memref is untouched.
  llvm::SmallVector<OperandEffect> operands;
  /// An operation through which the kernel may touch memory that none of its
  /// arguments names; null when there is none. Nothing can be said about the
  /// order of such a kernel.
  mlir::Operation *reachesOther = nullptr;
};

/// Effects of kernels, each computed once.
///
/// The access is derived from the body, which is what becomes device code:
/// through views, regions, blocks and calls within the module. So is coverage
/// (that *every* byte is written), where the access maps prove it; else it is
/// what weir-lower-kernels declares in `schedule.effect`, since it follows from
/// how the kernel was made, and counts only where the body writes at all; a slice
/// is always declared. A
/// kernel without a body does what it declares, and updates what it declares
/// nothing of.
class Effects {
public:
  explicit Effects(mlir::Operation *) {}

  /// The result lives as long as this object and the kernel do.
  const KernelEffects &get(mlir::gpu::GPUFuncOp kernel);

private:
  Launches launches;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<KernelEffects>> known;
};

} // namespace weir

#endif // WEIR_ANALYSIS_EFFECTS_H
