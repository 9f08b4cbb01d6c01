//===- Graph.h - Helpers on graphs of linalg ops ----------------*- C++ -*-===//

#ifndef WEIR_GRAPH_GRAPH_H
#define WEIR_GRAPH_GRAPH_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace weir {

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

/// Whether `op` is a reshape (`tensor.expand_shape`, `tensor.collapse_shape`), which moves no
/// bytes. False for null.
bool isReshape(mlir::Operation *op);

/// Reshapes `source` to `type`, which has as many elements, by at most one op.
///
/// Errors: null, and nothing is created, if that takes more than one `expand_shape` or
///         `collapse_shape`.
mlir::Value createReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                          mlir::Value source);

/// Reshapes `source` to `type`, which has as many elements: through a tensor of rank 1 if one op
/// does not suffice, or as a `tensor.empty` if there are no elements.
mlir::Value createReshapes(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::RankedTensorType type, mlir::Value source);

/// Returns the tensor that `tensor` is a reshape of, or `tensor` itself.
mlir::Value stripReshapes(mlir::Value tensor);

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// Returns the constant scalar that every element of `tensor` has, or null. Sees splat constants,
/// fills with them, `tensor.splat`, and generic ops that yield them.
mlir::TypedAttr getSplat(mlir::Value tensor);

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The combination of one result of a reduction: `combine(accumulator, reduced)` or
/// `combine(reduced, accumulator)`, all in the body of the op.
struct Combiner {
  mlir::Value reduced;
  mlir::Operation *combine = nullptr; ///< two operands, one result
  mlir::BlockArgument accumulator;

  /// Whether nothing else in the body uses the accumulator, and only the yield the combined value.
  bool isExclusive() const { return accumulator.hasOneUse() && combine->hasOneUse(); }
};

/// Returns the combiner of result number `result` of `op`, or nothing if the yielded value is not
/// computed by an op on the accumulator and one other value. `reduced` may itself be computed from
/// accumulators.
std::optional<Combiner> getCombiner(mlir::linalg::LinalgOp op, unsigned result);

/// Returns the combiner of every result, or nothing if some result has none that is exclusive,
/// associative and commutative, with a neutral element.
std::optional<llvm::SmallVector<Combiner>> getCombiners(mlir::linalg::GenericOp op);

/// Returns the neutral element of a combiner, or null. That of a sum is +0.
mlir::TypedAttr getNeutral(mlir::Operation *combine);

} // namespace weir

#endif // WEIR_GRAPH_GRAPH_H
