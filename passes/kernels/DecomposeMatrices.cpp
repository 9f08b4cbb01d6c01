//===- DecomposeMatrices.cpp - Matrix ops become loops --------------------===//

#include "dialects/Matrix/Decompose.h"
#include "dialects/Matrix/Matrix.h"
#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/CSE.h"

namespace weir {
#define GEN_PASS_DEF_DECOMPOSEMATRICESPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;

namespace {
struct DecomposeMatrices : weir::impl::DecomposeMatricesPassBase<DecomposeMatrices> {
  using DecomposeMatricesPassBase::DecomposeMatricesPassBase;

  void runOnOperation() override;
};
} // namespace

static SmallVector<Operation *> listMatrixOps(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa_and_present<weir::matrix::MatrixDialect>(op->getDialect()))
      ops.push_back(op);
  });
  return ops;
}

/// Replaces results, as far as they are used, and erases their op.
static void replace(Operation *op, ArrayRef<Value> values) {
  for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
    if (value)
      result.replaceAllUsesWith(value);
  op->erase();
}

void DecomposeMatrices::runOnOperation() {
  func::FuncOp function = getOperation();
  SmallVector<Operation *> ops = listMatrixOps(function);
  if (ops.empty())
    return;
  OpBuilder builder(&getContext());
  bool isExpanded = false;
  for (Operation *op : ops)
    if (SmallVector<Value> values = weir::matrix::expand(builder, op); !values.empty()) {
      replace(op, values);
      isExpanded = true;
    }
  // Two equations with one matrix factor it once.
  if (isExpanded) {
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(function);
    eliminateCommonSubExpressions(rewriter, dominance, function);
  }
  // Backwards: erasing an unused op may leave the ops before it unused.
  ops = listMatrixOps(function);
  for (Operation *op : llvm::reverse(ops)) {
    if (isOpTriviallyDead(op))
      op->erase();
    else
      replace(op, weir::matrix::decompose(builder, op));
  }
}
