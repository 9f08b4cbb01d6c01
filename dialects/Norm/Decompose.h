//===- Decompose.h - Norm ops as linalg -------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_NORM_DECOMPOSE_H
#define WEIR_DIALECTS_NORM_DECOMPOSE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace weir::norm {

/// Builds `linalg.generic` ops on tensors that compute the results of `op`, before it, at its
/// location; leaves `op` in place. All maps are projections; what has the shape of `x` is read by
/// identity, statistics have the dimensions that are not reduced and no others.
/// Needs: `op` is any op of `norm`, or `linalg.softmax` on tensors.
llvm::SmallVector<mlir::Value> decompose(mlir::OpBuilder &builder, mlir::Operation *op);

/// Properties of the device that decompositions are for. The reference has none.
struct DecomposeOptions {
  /// Attention over so many keys or more is decomposed for kernels that compute scores a block at a
  /// time, and keep none: each sum that needs scores has products of its own, which
  /// `schedule::inBlocksAttrName` marks. With 0 no attention is: then all sums read one tensor of
  /// scores.
  int64_t keysInBlocks = 0;
  /// Whether floats are sorted as integers of the same order, which takes fewer instructions. The
  /// bits of a float mean nothing to a reference that widens floats.
  bool sortsBits = false;
};

/// Replaces every such op under `root` by its decomposition.
void decomposeAll(mlir::Operation *root, const DecomposeOptions &options = {});

} // namespace weir::norm

#endif // WEIR_DIALECTS_NORM_DECOMPOSE_H
