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

/// The effect of a kernel on one operand.
struct OperandEffect {
  schedule::Access access = schedule::Access::update;
  bool coversAll = false; ///< whether every byte is written
  /// The slice that is written, as in `schedule.effect`; empty if it is not known.
  llvm::ArrayRef<int64_t> slice = {};
};

inline bool reads(schedule::Access access) {
  return access == schedule::Access::read || access == schedule::Access::update;
}
inline bool writes(schedule::Access access) {
  return access == schedule::Access::write || access == schedule::Access::update;
}

/// The effects of a kernel.
struct KernelEffects {
  /// One effect per argument; an argument that is no memref is untouched.
  llvm::SmallVector<OperandEffect> operands;
  /// An operation through which the kernel may touch memory that is in none of its arguments; null
  /// if there is none. Nothing can be said about the order of such a kernel.
  mlir::Operation *reachesOther = nullptr;
};

/// Effects of kernels, each computed once.
///
/// - Access: derived from the body, which becomes device code, through views, regions, blocks and
///   calls within the module.
/// - Coverage (that *every* byte is written): derived from the body if the access maps prove it.
/// Else
///   it is as weir-lower-kernels declares in `schedule.effect`, since it follows from how the
///   kernel was made; it counts only if the body writes at all.
/// - Slice: always declared.
///
/// A kernel without a body has the effects that it declares, and updates all other operands.
class Effects {
public:
  explicit Effects(mlir::Operation *) {}

  /// Returns the effects of `kernel`, which live as long as this object and the kernel do.
  const KernelEffects &get(mlir::gpu::GPUFuncOp kernel);

private:
  Launches launches;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<KernelEffects>> known;
};

} // namespace weir

#endif // WEIR_ANALYSIS_EFFECTS_H
