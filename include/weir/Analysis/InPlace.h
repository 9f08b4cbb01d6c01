//===- InPlace.h - Whether a kernel may write over its operand --*- C++ -*-===//

#ifndef WEIR_ANALYSIS_INPLACE_H
#define WEIR_ANALYSIS_INPLACE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "weir/Analysis/AccessMap.h"

namespace weir {

/// Whether writes of one argument spoil what is read of another when both are
/// given the same bytes.
struct InPlaceProof {
  bool holds = false;
  /// A read and a write of which it isn't proved that the read comes first,
  /// where they may meet; null when an argument isn't of the wanted kind.
  const MemoryAccess *read = nullptr, *write = nullptr;
};

/// Proves, from access maps alone, that `target` may begin at byte `shift` of
/// `source`: wherever a read of the source and a write of the target meet, the
/// read comes first. For two invocations that takes a barrier in between, which
/// only those of one workgroup have; for one invocation, the order of the text
/// and of the loops' trips.
///
/// The source must be read only, the target not updated by atomics. What the
/// kernel reads of the target, it wrote itself; that stays so.
InPlaceProof proveInPlace(const AccessMaps &maps, mlir::gpu::GPUFuncOp kernel, unsigned source,
                          unsigned target, int64_t shift = 0);

/// The pairs of arguments (source, target) of equal size for which that holds,
/// by source, then target. The source is one that is read, the target one that is
/// not.
llvm::SmallVector<std::pair<unsigned, unsigned>> getInPlacePairs(mlir::gpu::GPUFuncOp kernel,
                                                                 Launches &launches);

} // namespace weir

#endif // WEIR_ANALYSIS_INPLACE_H
