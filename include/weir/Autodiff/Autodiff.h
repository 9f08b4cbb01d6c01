//===- Autodiff.h - Derivatives of functions --------------------*- C++ -*-===//

#ifndef WEIR_AUTODIFF_AUTODIFF_H
#define WEIR_AUTODIFF_AUTODIFF_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weir::autodiff {

/// Registers the gradient rules of `linalg`, `tensor`, `arith` and `math` ops.
void registerGradientRules(mlir::DialectRegistry &registry);

/// Returns a new private function `name` beside `function`, forward and backward
/// in one block. It takes the arguments of `function` and a cotangent for each
/// result numbered in `seeded`; it returns the results of `function`, then the
/// gradient of each argument numbered in `wanted`. With `totals`, total cotangents are
/// marked by `autodiff.total`.
///
/// Shapes: `function` is one block on tensors of static shape. Cotangents and
///         gradients have the types of what they belong to.
/// Errors: a diagnostic at each op that the gradient flows through and that has no
///         rule for it; then nothing is added to the module.
mlir::FailureOr<mlir::func::FuncOp> buildVjp(mlir::func::FuncOp function,
                                             llvm::ArrayRef<int64_t> seeded,
                                             llvm::ArrayRef<int64_t> wanted, bool totals,
                                             llvm::StringRef name);

/// Returns the numbers of the arguments that `--grad` differentiates by: the float
/// tensors of kind `param`, or every one that is not frozen where none is.
llvm::SmallVector<int64_t> getTrained(mlir::func::FuncOp function);

/// Adds entry `F.vjp` behind `function`, F: the arguments of F, then
/// `cotangent.<result>` for each float result; the results of F, then
/// `grad.<argument>` for each float argument that is not frozen. Its body is one
/// `autodiff.vjp`.
///
/// Errors: a diagnostic where there is nothing to differentiate, or F.vjp exists.
mlir::FailureOr<mlir::func::FuncOp> addVjpEntry(mlir::func::FuncOp function);

/// Lets every float argument of `function` have a gradient, frozen ones, too.
void unfreeze(mlir::func::FuncOp function);

/// Adds entry `F.grad`: the arguments of F; the results of F, then `grad.<argument>`
/// for each of `getTrained`, of F's float result of rank 0. The other results
/// take no part.
///
/// Errors: a diagnostic unless there is exactly one such result, and as above.
mlir::FailureOr<mlir::func::FuncOp> addGradEntry(mlir::func::FuncOp function);

/// Adds function `F.split`: what `addVjpEntry` makes, its totals marked, which
/// `splitBackward` makes three entries of once it is expanded.
///
/// Errors: a diagnostic where no float argument is of kind `param`, F.split exists, or
///         there is nothing to differentiate.
mlir::FailureOr<mlir::func::FuncOp> addSplitEntries(mlir::func::FuncOp function);

/// Puts three entries in the place of `joint`, F.split, the forward and backward of F in
/// one block: F.forward, F.backward_input and F.backward_weight. docs/gradients.md says
/// what each takes and gives.
///
/// Source: "Split backward" in docs/gradients.md.
/// Errors: a diagnostic where an entry's name is taken, one would hand a value on that
///         is no tensor, or a result of F depends on a cotangent.
mlir::LogicalResult splitBackward(mlir::func::FuncOp joint);

/// Whether `value`, computed in a body, is 0 where `factor` is; infinite factors apart.
bool vanishesWith(mlir::Value value, mlir::Value factor);

} // namespace weir::autodiff

#endif // WEIR_AUTODIFF_AUTODIFF_H
