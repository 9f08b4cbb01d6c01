//===- Sequences.h - Loops that compute element by element ------*- C++ -*-===//

#ifndef WEIR_PASSES_KERNELS_SEQUENCES_H
#define WEIR_PASSES_KERNELS_SEQUENCES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weir {

/// Whether `weir-form-sequences` writes the loop as one op over its trips. Where it is
/// differentiated, also what its gradient becomes.
bool isSequence(mlir::scf::ForOp loop, bool isDifferentiated);

} // namespace weir

#endif // WEIR_PASSES_KERNELS_SEQUENCES_H
