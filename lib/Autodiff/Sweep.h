//===- Sweep.h - One backward walk ------------------------------*- C++ -*-===//
//
// The same walk serves functions, whose values are tensors, and the bodies of
// linalg ops, whose values are scalars.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_AUTODIFF_SWEEP_H
#define WEIR_LIB_AUTODIFF_SWEEP_H

#include "dialects/Autodiff/Differentiable.h"

namespace weir::autodiff {

/// Returns `roots` and the float results of `ops`, which are in program order, that
/// depend on them. A dependence through integers alone does not count: its derivative
/// is 0.
/// Errors: a diagnostic where such a value's bits become integers, or may go to
///         memory.
llvm::FailureOr<llvm::DenseSet<mlir::Value>> findActive(llvm::ArrayRef<mlir::Operation *> ops,
                                                        llvm::ArrayRef<mlir::Value> roots);

/// Turns the total cotangent of a result into the one that the rule of its op gets.
using MarkTotal = llvm::function_ref<mlir::Value(mlir::Value result, mlir::Value total)>;

/// Walks `ops` backward and carries the sums for results on to operands, building
/// at `builder`. `sums` holds those that the walk starts from. `mark`, if given, is called
/// for each total after its last summand and before its first use.
/// Errors: a diagnostic at each op without a rule that the gradient flows through.
llvm::LogicalResult sweep(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Operation *> ops,
                          Cotangents &sums, MarkTotal mark = nullptr);

void registerArithRules(mlir::DialectRegistry &registry);
void registerLinalgRules(mlir::DialectRegistry &registry);
void registerLoopRules(mlir::DialectRegistry &registry);
void registerMathRules(mlir::DialectRegistry &registry);
void registerTensorRules(mlir::DialectRegistry &registry);

} // namespace weir::autodiff

#endif // WEIR_LIB_AUTODIFF_SWEEP_H
