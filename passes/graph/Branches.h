//===- Branches.h - Choices between tensors ---------------------*- C++ -*-===//

#ifndef WEIR_PASSES_GRAPH_BRANCHES_H
#define WEIR_PASSES_GRAPH_BRANCHES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weir {

/// Replaces each `scf.if` of a function that has results.
///
/// A branch of pure ops without loops is computed in front of it, taken or not, and the results are
/// selected. Any other branch becomes the body of an `scf.while` that runs once if the branch is
/// taken, or else never. An `scf.if` stays if its condition may not be computed where it stands (in
/// the body of an op) or if a result has no static shape; the gate names it.
void replaceBranches(mlir::func::FuncOp function);

} // namespace weir

#endif // WEIR_PASSES_GRAPH_BRANCHES_H
