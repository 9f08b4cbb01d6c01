//===- Indices.h - Whether an index stays in its tensor ---------*- C++ -*-===//

#ifndef WEIR_PASSES_GRAPH_INDICES_H
#define WEIR_PASSES_GRAPH_INDICES_H

#include "mlir/IR/Value.h"

namespace weir {

/// Whether an index of the graph level is in [0, size) for sure: it is a constant in the
/// range, or the number of a loop of at most `size` trips.
bool isIndexInRange(mlir::Value index, int64_t size);

} // namespace weir

#endif // WEIR_PASSES_GRAPH_INDICES_H
