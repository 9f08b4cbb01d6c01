//===- WordValues.h - Kernels' integers in words of 32 bits -----*- C++ -*-===//

#ifndef WEIR_LIB_NUMERICS_WORDVALUES_H
#define WEIR_LIB_NUMERICS_WORDVALUES_H

#include "weir/Numerics/Words.h"

namespace weir {

/// Rewrites the integers of a kernel that the target lacks, outside of memory. Of
/// `unrealized_conversion_cast` between an integer of 64 bits and its words, the lower one first,
/// none stays.
///
/// Errors: failure, with a diagnostic for each op that has no form in words, before anything is
///         changed.
mlir::LogicalResult computeInWords(mlir::gpu::GPUFuncOp kernel, const LackingIntegers &lacking);

} // namespace weir

#endif // WEIR_LIB_NUMERICS_WORDVALUES_H
