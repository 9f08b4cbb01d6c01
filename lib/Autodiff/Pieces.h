//===- Pieces.h - A training step in pieces ---------------------*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_PIECES_H
#define WEIR_LIB_AUTODIFF_PIECES_H

#include "Step.h"

namespace weir::autodiff {

/// Returns the types that the gradients of parameters have in an update.
llvm::SmallVector<mlir::RankedTensorType> getUpdatedTypes(mlir::func::FuncOp function,
                                                          llvm::ArrayRef<int64_t> trained);

/// Adds `F.update`, which takes the parameters numbered in `trained`, their gradients as a buffer
/// of `layout`, and what `rule` needs; and with several shards `F.update.I` for each, of the
/// parameters in a range of the buffer. Appends them to `entries`.
/// Errors: a diagnostic if there are more shards than parameters, or as for `F.step`.
mlir::LogicalResult addUpdateEntries(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> trained,
                                     const UpdateRule &rule, const GradientLayout &layout,
                                     const TrainOptions &options,
                                     llvm::SmallVectorImpl<mlir::func::FuncOp> &entries);

} // namespace weir::autodiff

#endif // WEIR_LIB_AUTODIFF_PIECES_H
