//===- Decompositions.h - One norm op as linalg -----------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_NORM_DECOMPOSITIONS_H
#define WEIR_DIALECTS_NORM_DECOMPOSITIONS_H

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace weir::norm {

// Each builds the results of its op where the builder stands. Every op of the dialect has one:
// `decompose` does not compile without.

mlir::Value decomposeOp(mlir::OpBuilder &builder, LayerNormOp op);
llvm::SmallVector<mlir::Value> decomposeOp(mlir::OpBuilder &builder, BatchNormOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, BatchNormInferenceOp op);
llvm::SmallVector<mlir::Value> decomposeOp(mlir::OpBuilder &builder, BatchNormVjpOp op);
llvm::SmallVector<mlir::Value> decomposeOp(mlir::OpBuilder &builder, LayerNormVjpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, RmsNormOp op);
llvm::SmallVector<mlir::Value> decomposeOp(mlir::OpBuilder &builder, RmsNormVjpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, mlir::linalg::SoftmaxOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, SoftmaxVjpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, LogSoftmaxOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, LogSoftmaxVjpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, LogsumexpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, LogsumexpVjpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, SoftmaxCrossEntropyOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, SoftmaxCrossEntropyVjpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, GeluOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, GeluVjpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, SiluOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, SiluVjpOp op);
llvm::SmallVector<mlir::Value> decomposeOp(mlir::OpBuilder &builder, AttentionOp op);
llvm::SmallVector<mlir::Value> decomposeOp(mlir::OpBuilder &builder, AttentionVjpOp op);
mlir::Value decomposeOp(mlir::OpBuilder &builder, ArgsortOp op);

// The same for kernels that keep no scores: see `decomposeAll`.

llvm::SmallVector<mlir::Value> decomposeInBlocks(mlir::OpBuilder &builder, AttentionOp op,
                                                 int64_t number);
llvm::SmallVector<mlir::Value> decomposeInBlocks(mlir::OpBuilder &builder, AttentionVjpOp op,
                                                 int64_t number);

/// The same, with floats as integers: see `DecomposeOptions`.
mlir::Value decomposeAsBits(mlir::OpBuilder &builder, ArgsortOp op);

} // namespace weir::norm

#endif // WEIR_DIALECTS_NORM_DECOMPOSITIONS_H
