//===- Placement.h - Sections of the ops between collectives ----*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_PLACEMENT_H
#define WEIR_LIB_AUTODIFF_PLACEMENT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace weir {

/// The sections in which the ops of a function with collectives are computed, numbered from 0;
/// between two of them ranks exchange values.
struct Placement {
  size_t numSections = 0;
  /// Of each other op its section; of a collective the one that gives its operand.
  llvm::DenseMap<mlir::Operation *, size_t> owner;
  /// Ops that each section has whose ops read them.
  llvm::DenseSet<mlir::Operation *> repeated;
  /// Gathers of arguments that belong to a unit. Each section gathers those anew that it reads and
  /// the section before does not.
  llvm::DenseSet<mlir::Operation *> fetches;
  /// The first section that can read a value.
  llvm::DenseMap<mlir::Value, size_t> ready;
};

/// Returns the values of `block` that `op` reads, in its regions, too.
llvm::SmallVector<mlir::Value> listReads(mlir::Block &block, mlir::Operation *op);

/// Places the ops of `function`, one block without dead ops.
///
/// Errors: a diagnostic at an op that would hand on a number.
llvm::FailureOr<Placement> placeInSections(mlir::func::FuncOp function);

} // namespace weir

#endif // WEIR_LIB_AUTODIFF_PLACEMENT_H
