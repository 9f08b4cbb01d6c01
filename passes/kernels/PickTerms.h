//===- PickTerms.h - Sums of which one term is not zero ---------*- C++ -*-===//

#ifndef WEIR_PASSES_KERNELS_PICKTERMS_H
#define WEIR_PASSES_KERNELS_PICKTERMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weir {

/// Replaces each sum of a row that keeps the element of one number, and adds zeros for the others,
/// by that element, with the same bits. The row must be in memory anyway.
void pickTerms(mlir::func::FuncOp function);

} // namespace weir

#endif // WEIR_PASSES_KERNELS_PICKTERMS_H
