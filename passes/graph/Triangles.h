//===- Triangles.h - Constant masks that compare positions ------*- C++ -*-===//

#ifndef WEIR_PASSES_GRAPH_TRIANGLES_H
#define WEIR_PASSES_GRAPH_TRIANGLES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace weir {

/// A constant tensor with one value where the column is at most the row plus `offset`, and another
/// one behind that.
struct Triangle {
  int64_t offset;
  mlir::TypedAttr within, behind;
};

/// Returns `tensor` as a triangle in two of its dimensions, if it is one and all other dimensions
/// have one element.
std::optional<Triangle> findTriangle(mlir::Value tensor, unsigned rowDim, unsigned columnDim);

/// Returns the first element of a constant tensor of integers of which each is 1 more than the one
/// before it, as JAX's `iota` and PyTorch's `arange` are, or nothing if it is no such.
std::optional<int64_t> findRamp(mlir::Value tensor);

/// Computes an element of a triangle in a body.
mlir::Value emitTriangle(mlir::OpBuilder &builder, mlir::Location loc, const Triangle &triangle,
                         mlir::Value row, mlir::Value column);

} // namespace weir

#endif // WEIR_PASSES_GRAPH_TRIANGLES_H
