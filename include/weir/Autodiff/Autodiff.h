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
/// gradient of each argument numbered in `wanted`.
///
/// Shapes: `function` is one block on tensors of static shape. Cotangents and
///         gradients have the types of what they belong to.
/// Errors: a diagnostic at each op that the gradient flows through and that has no
///         rule for it; then nothing is added to the module.
mlir::FailureOr<mlir::func::FuncOp> buildVjp(mlir::func::FuncOp function,
                                             llvm::ArrayRef<int64_t> seeded,
                                             llvm::ArrayRef<int64_t> wanted,
                                             llvm::StringRef name);

} // namespace weir::autodiff

#endif // WEIR_AUTODIFF_AUTODIFF_H
