//===- Differentiable.h - Gradient rules of ops -----------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_AUTODIFF_DIFFERENTIABLE_H
#define WEIR_DIALECTS_AUTODIFF_DIFFERENTIABLE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace weir::autodiff {

/// The running sums of one backward sweep: for each value that has one the sum of
/// what has flowed back to it so far.
class Cotangents {
public:
  explicit Cotangents(llvm::DenseSet<mlir::Value> wanted) : wanted(std::move(wanted)) {}

  /// Whether what flows back to `value` counts.
  bool isWanted(mlir::Value value) const { return wanted.contains(value); }

  /// Returns the sum for `value`, of its type; null when nothing has flowed back yet.
  mlir::Value get(mlir::Value value) const { return sums.lookup(value); }

  /// Replaces the sum: `sum` has what `get` gave, and more.
  void set(mlir::Value value, mlir::Value sum);

  /// Adds `part`, of the type of `value`: a tensor or a scalar. Does nothing
  /// when `value` is not wanted.
  void add(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Value part);

private:
  llvm::DenseSet<mlir::Value> wanted;
  llvm::DenseMap<mlir::Value, mlir::Value> sums;
};

/// Returns `type`, a float tensor, filled with zeros.
mlir::Value createZeros(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type);

} // namespace weir::autodiff

#include "dialects/Autodiff/Differentiable.h.inc"

#endif // WEIR_DIALECTS_AUTODIFF_DIFFERENTIABLE_H
