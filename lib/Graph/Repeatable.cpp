//===- Repeatable.cpp - Ops that several functions may repeat -------------===//

#include "weir/Graph/Repeatable.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "weir/Graph/Graph.h"

using namespace mlir;

bool weir::computesNothing(Operation *op) {
  if (isa<linalg::FillOp, tensor::SplatOp>(op))
    return matchPattern(op->getOperand(0), m_Constant());
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return llvm::hasSingleElement(*structured.getBlock());
  return op->hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(op) || isReshape(op);
}
