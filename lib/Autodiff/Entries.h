//===- Entries.h - Entries made of one derivative ---------------*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_ENTRIES_H
#define WEIR_LIB_AUTODIFF_ENTRIES_H

#include "weir/Autodiff/Autodiff.h"

namespace weir::autodiff {

/// Adds the function F.`suffix` behind `function`, F, that is one `autodiff.vjp`: the
/// results of F, then `grad.<argument>` for each argument numbered in `wanted`. The
/// cotangents of the results numbered in `seeded` are arguments behind those of F;
/// where `one` is set, there are none but 1 for the only seeded result.
///
/// Errors: a diagnostic where nothing is wanted, F has no body of one block, or the
///         new function's name is taken.
mlir::FailureOr<mlir::func::FuncOp> addEntry(mlir::func::FuncOp function, llvm::StringRef suffix,
                                             llvm::ArrayRef<int64_t> seeded,
                                             llvm::ArrayRef<int64_t> wanted, bool one);

/// Returns the number of the float result of rank 0.
/// Errors: a diagnostic unless there is exactly one.
mlir::FailureOr<int64_t> findLoss(mlir::func::FuncOp function);

/// Whether values of `type` have gradients.
bool isFloatTensor(mlir::Type type);

/// Whether argument `index` is a weight: of kind `param`.
bool isWeight(mlir::func::FuncOp function, int64_t index);

/// Whether `F.vjp` gives a gradient by argument `index`: it is of floats, and not frozen.
bool hasGradient(mlir::func::FuncOp function, int64_t index);

/// Returns the name of an argument or a result in messages.
std::string getArgumentName(mlir::func::FuncOp function, int64_t index);
std::string getResultName(mlir::func::FuncOp function, int64_t index);

/// Checks that no two arguments, and no two results, of `entry` go by one name.
/// Errors: a diagnostic at `function`, which `entry` is made of.
mlir::LogicalResult checkNames(mlir::func::FuncOp function, mlir::func::FuncOp entry);

} // namespace weir::autodiff

#endif // WEIR_LIB_AUTODIFF_ENTRIES_H
