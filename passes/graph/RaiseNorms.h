//===- RaiseNorms.h - The matchers of weir-raise-norms ----------*- C++ -*-===//

#ifndef WEIR_PASSES_GRAPH_RAISENORMS_H
#define WEIR_PASSES_GRAPH_RAISENORMS_H

#include "passes/graph/Elements.h"

namespace weir::elements {

/// Ops that were erased because nothing uses them after a raise.
using ErasedOps = llvm::DenseSet<mlir::Operation *>;

/// Erases the ops among `ops` that nothing uses any more, users first, and adds them to
/// `erased`. Their assertions go with them: the norm ops define the rejected cases.
void eraseUnused(llvm::ArrayRef<mlir::Operation *> ops, ErasedOps &erased);

/// Replaces the result of `root` by the op that `pattern` builds, if it matches.
template <typename Pattern> bool raise(Pattern pattern, mlir::Operation *root, ErasedOps &erased) {
  if (!pattern.match())
    return false;
  mlir::OpBuilder builder(root);
  root->getResult(0).replaceAllUsesWith(pattern.build(builder));
  eraseUnused(pattern.unfolder.getVisited(), erased);
  return true;
}

// Each function below replaces `root`, whose one result is a tensor of f32 or f64 of static
// shape, and returns true, if the whole expression of the result matches.

/// Raises LayerNorm or RMSNorm over the last `axes` dimensions.
bool raiseTrailingNorm(mlir::Operation *root, int64_t axes, ErasedOps &erased);
/// Raises BatchNorm with one mean and variance, computed or given, for each place of
/// `axis`.
bool raiseBatchNorm(mlir::Operation *root, int64_t axis, ErasedOps &erased);
bool raiseGroupNorm(mlir::Operation *root, ErasedOps &erased);
/// Raises softmax or log-softmax along `axis`.
bool raiseSoftmax(mlir::Operation *root, int64_t axis, ErasedOps &erased);
/// Raises cross-entropy or logsumexp.
bool raiseLoss(mlir::Operation *root, ErasedOps &erased);

/// Raises contractions of values and the softmax of scores, large enough for a gain, with their
/// gradients, unless others use the scores or what is made of them.
void raiseAttentions(mlir::Block &block, ErasedOps &erased);

} // namespace weir::elements

#endif // WEIR_PASSES_GRAPH_RAISENORMS_H
