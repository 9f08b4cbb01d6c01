//===- Sharding.h - Values that differ by rank ------------------*- C++ -*-===//
//
// Several ranks run one graph. They are the places of a grid of one or two axes. An argument with
// `weir.sharded` has another value at each place along all axes, or along those that it lists; all
// others, and what is computed from these alone, are the same bits everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_AUTODIFF_SHARDING_H
#define WEIR_AUTODIFF_SHARDING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/DenseMap.h"

namespace weir {

/// Of an argument or a result: each rank has a value of its own. Unit; or an array of the axes of
/// the grid along which values differ, as array<i64: 0>; or, of an argument where the grid has one
/// axis, the name of a unit: arguments that are gathered together, just before ops that read them,
/// and again where ops of another unit come between.
inline constexpr llvm::StringLiteral shardedAttrName = "weir.sharded";

/// Axes of a grid, a bit for each.
using GridAxes = unsigned;

/// Returns the axes along which an argument, or a result, of `function` differs by its attribute.
GridAxes getArgumentAxes(mlir::func::FuncOp function, unsigned index);
GridAxes getResultAxes(mlir::func::FuncOp function, unsigned index);

/// Returns the axis along which a collective is.
unsigned getAxis(mlir::Operation *collective);

/// Returns the grid of the module of `function`, which has an argument with `weir.sharded`.
/// Errors: a diagnostic if there is none.
mlir::FailureOr<mlir::shard::GridOp> findGrid(mlir::func::FuncOp function);

/// Returns `weir.sharded` of a value that differs as an argument of `function` does, and is in no
/// unit; null if the argument is the same on all ranks.
mlir::Attribute getSharding(mlir::func::FuncOp function, unsigned index);

/// Returns the unit of an argument of `function`, "" if it is in none.
llvm::StringRef getUnit(mlir::func::FuncOp function, unsigned index);

/// Whether `op` is a collective that graphs have: `shard.all_reduce`, `all_gather`,
/// `reduce_scatter` or `all_slice`.
bool isCollective(mlir::Operation *op);

/// Whether `function` has a collective.
bool hasCollectives(mlir::func::FuncOp function);

/// The values of a function, one block, that may differ by rank, and the axes along which they do.
class VaryingValues {
public:
  explicit VaryingValues(mlir::func::FuncOp function);

  GridAxes getAxes(mlir::Value value) const { return values.lookup(value); }
  /// Returns the axes of all values that `op` reads, in its regions, too.
  GridAxes getAxesReadBy(mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::Value, GridAxes> values;
};

/// Checks the operands of collectives: of values that all ranks along the axis share, a sum would
/// count them once for each; and slices are those of one value. Errors: a diagnostic at each op.
llvm::LogicalResult verifyCollectives(mlir::func::FuncOp function);

/// Checks that results are the same along the axes that `weir.sharded` does not have, and that what
/// takes the place of an argument is sharded as that is. Errors: a diagnostic for each result.
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
