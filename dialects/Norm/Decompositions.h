//===- Decompositions.h - One norm op as linalg -----------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_NORM_DECOMPOSITIONS_H
#define WEIR_DIALECTS_NORM_DECOMPOSITIONS_H

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace weir::norm {

// Each function builds the results of its op where the builder stands.

mlir::Value decomposeLayerNorm(mlir::OpBuilder &builder, LayerNormOp op);
llvm::SmallVector<mlir::Value> decomposeBatchNorm(mlir::OpBuilder &builder, BatchNormOp op);
mlir::Value decomposeBatchNormInference(mlir::OpBuilder &builder, BatchNormInferenceOp op);
llvm::SmallVector<mlir::Value> decomposeBatchNormVjp(mlir::OpBuilder &builder, BatchNormVjpOp op);
llvm::SmallVector<mlir::Value> decomposeLayerNormVjp(mlir::OpBuilder &builder, LayerNormVjpOp op);
mlir::Value decomposeRmsNorm(mlir::OpBuilder &builder, RmsNormOp op);
llvm::SmallVector<mlir::Value> decomposeRmsNormVjp(mlir::OpBuilder &builder, RmsNormVjpOp op);
mlir::Value decomposeSoftmax(mlir::OpBuilder &builder, mlir::linalg::SoftmaxOp op);
mlir::Value decomposeSoftmaxVjp(mlir::OpBuilder &builder, SoftmaxVjpOp op);
mlir::Value decomposeLogSoftmax(mlir::OpBuilder &builder, LogSoftmaxOp op);
mlir::Value decomposeLogSoftmaxVjp(mlir::OpBuilder &builder, LogSoftmaxVjpOp op);
mlir::Value decomposeLogsumexp(mlir::OpBuilder &builder, LogsumexpOp op);
mlir::Value decomposeLogsumexpVjp(mlir::OpBuilder &builder, LogsumexpVjpOp op);
mlir::Value decomposeCrossEntropy(mlir::OpBuilder &builder, SoftmaxCrossEntropyOp op);
mlir::Value decomposeCrossEntropyVjp(mlir::OpBuilder &builder, SoftmaxCrossEntropyVjpOp op);

} // namespace weir::norm

#endif // WEIR_DIALECTS_NORM_DECOMPOSITIONS_H
