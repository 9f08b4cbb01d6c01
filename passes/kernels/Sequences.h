//===- Sequences.h - Loops that compute element by element ------*- C++ -*-===//

#ifndef WEIR_PASSES_KERNELS_SEQUENCES_H
#define WEIR_PASSES_KERNELS_SEQUENCES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weir {

/// Writes a loop that `weir-form-sequences` takes so that it carries neither counters nor what is
/// the same in all trips, of which gradients would keep a copy for each trip. Returns whether it is
/// such a loop; where it is differentiated, also whether that pass takes its gradient.
bool simplifySequence(mlir::scf::ForOp loop, bool isDifferentiated);

} // namespace weir

#endif // WEIR_PASSES_KERNELS_SEQUENCES_H
