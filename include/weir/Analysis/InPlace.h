//===- InPlace.h - Whether a kernel may write over its operand --*- C++ -*-===//

#ifndef WEIR_ANALYSIS_INPLACE_H
#define WEIR_ANALYSIS_INPLACE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "weir/Analysis/AccessMap.h"

namespace weir {

/// A proof that writes of one argument spoil no read of another when both are given the same bytes.
struct InPlaceProof {
  bool holds = false;
  /// If the proof fails: a read and a write that may meet without the read being first. Null if an
  /// argument isn't of the required kind.
  const MemoryAccess *read = nullptr, *write = nullptr;
};

/// Proves, from access maps alone, that `target` may begin at byte `shift` of
/// `source`: wherever a read of the source and a write of the target meet, the
/// read comes first. For two invocations that takes a barrier in between, which
/// only those of one workgroup have; for one invocation, the order of the text
/// and of the loops' trips.
///
/// The source must be read only, and the target must not be updated by atomics. If the kernel reads
/// the target, it reads bytes that it wrote itself, also in place.
InPlaceProof proveInPlace(const AccessMaps &maps, mlir::gpu::GPUFuncOp kernel, unsigned source,
                          unsigned target, int64_t shift = 0);

} // namespace weir

#endif // WEIR_ANALYSIS_INPLACE_H
