//===- Repeatable.h - Ops that several functions may repeat -----*- C++ -*-===//

#ifndef WEIR_GRAPH_REPEATABLE_H
#define WEIR_GRAPH_REPEATABLE_H

#include "mlir/IR/Operation.h"

namespace weir {

/// Whether `op` computes nothing: it is a constant, or moves elements of its operand. Readers take
/// such an op into their maps and sum by them, so a function that is cut in several repeats it.
bool computesNothing(mlir::Operation *op);

} // namespace weir

#endif // WEIR_GRAPH_REPEATABLE_H
