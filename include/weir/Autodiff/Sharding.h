//===- Sharding.h - Values that differ by rank ------------------*- C++ -*-===//
//
// Several ranks run one graph. An argument with `weir.sharded` has another value on each; all
// others, and what is computed from these alone, are the same bits everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_AUTODIFF_SHARDING_H
#define WEIR_AUTODIFF_SHARDING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace weir {

/// Of an argument or a result: each rank has a value of its own. Without a value; or, of an
/// argument, the name of a unit: arguments that are gathered together, just before ops that read
/// them, and again where ops of another unit come between.
inline constexpr llvm::StringLiteral shardedAttrName = "weir.sharded";

/// Whether an argument, or a result, of `function` has the attribute.
bool isShardedArgument(mlir::func::FuncOp function, unsigned index);
bool isShardedResult(mlir::func::FuncOp function, unsigned index);

/// Returns the unit of an argument of `function`, "" if it is in none.
llvm::StringRef getUnit(mlir::func::FuncOp function, unsigned index);

/// Whether `op` is a collective that graphs have: `shard.all_reduce`, `all_gather`,
/// `reduce_scatter` or `all_slice`.
bool isCollective(mlir::Operation *op);

/// Whether `function` has a collective.
bool hasCollectives(mlir::func::FuncOp function);

/// The values of a function, one block, that may differ by rank.
class VaryingValues {
public:
  explicit VaryingValues(mlir::func::FuncOp function);

  bool contains(mlir::Value value) const { return values.contains(value); }
  /// Whether `op` reads such a value, in its regions, too.
  bool areReadBy(mlir::Operation *op) const;

private:
  llvm::DenseSet<mlir::Value> values;
};

/// Checks the operands of collectives: of values that all ranks share, a sum would count them once
/// for each rank; and slices are those of one value. Errors: a diagnostic at each op.
llvm::LogicalResult verifyCollectives(mlir::func::FuncOp function);

/// Checks that results without `weir.sharded` are the same on all ranks, and that what takes the
/// place of an argument is sharded as that is. Errors: a diagnostic for each result.
llvm::LogicalResult verifyShardedResults(mlir::func::FuncOp function);

/// Puts sections in the place of each function F with collectives: F.section.0, F.section.1 and so
/// on, functions between which ranks exchange values. Then no collective, grid or `weir.sharded` is
/// left. docs/distributed.md says what sections take and give.
///
/// Errors: those of `verifyShardedResults`, of all functions; a diagnostic where a section's name
/// is
///         taken, or would hand a value on that is no tensor.
llvm::LogicalResult cutCollectives(mlir::ModuleOp module);

} // namespace weir

#endif // WEIR_AUTODIFF_SHARDING_H
