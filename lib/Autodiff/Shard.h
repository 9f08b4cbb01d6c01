//===- Shard.h - Derivatives between ranks ----------------------*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_SHARD_H
#define WEIR_LIB_AUTODIFF_SHARD_H

#include "Sweep.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "weir/Autodiff/Sharding.h"

namespace weir::autodiff {

/// Registers the dialect of collectives, and their rules.
void registerShardRules(mlir::DialectRegistry &registry);

/// Returns the sum of `part` over the ranks along each of some axes, in their order.
mlir::Value addAlong(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value part,
                     llvm::StringRef grid, GridAxes axes);

/// The places where values that all ranks share are read beside values that differ by rank.
class SharedReads {
public:
  /// `grid`: the name of that of all collectives.
  SharedReads(mlir::func::FuncOp function, llvm::StringRef grid);

  /// Hands each active value to all such ops of the function, one block, by one op that copies it
  /// for those with the same axes, whose result becomes active. Errors: a diagnostic at each such
  /// op that reads a number in place of a tensor.
  llvm::LogicalResult mark(llvm::DenseSet<mlir::Value> &active);

  /// Returns the sum over the ranks of `total` if that is the cotangent of such a copy.
  mlir::Value addParts(mlir::OpBuilder &builder, mlir::Value result, mlir::Value total) const;

  /// Removes the copies, of values and of cotangents.
  void unmark();

private:
  mlir::func::FuncOp function;
  std::string grid;
  llvm::DenseMap<mlir::Value, GridAxes> marks; ///< copies, and the axes of their readers
};

} // namespace weir::autodiff

#endif // WEIR_LIB_AUTODIFF_SHARD_H
