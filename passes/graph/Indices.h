//===- Indices.h - Whether an index stays in its tensor ---------*- C++ -*-===//

#ifndef WEIR_PASSES_INDICES_H
#define WEIR_PASSES_INDICES_H

#include "mlir/IR/Value.h"

namespace weir {

/// Whether an index of the graph level is in [0, size) by what it is made of: a constant,
/// or the place in a loop that is no longer. False where it is not known.
bool isIndexInRange(mlir::Value index, int64_t size);

} // namespace weir

#endif // WEIR_PASSES_INDICES_H
