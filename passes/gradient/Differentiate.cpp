//===- Differentiate.cpp - Put gradients in the place of autodiff ops -----===//

#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "weir/Autodiff/Autodiff.h"

namespace weir {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct Differentiate : weir::impl::DifferentiatePassBase<Differentiate> {
  using DifferentiatePassBase::DifferentiatePassBase;

  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (failed(expandAll(function)))
        signalPassFailure();
    // Private functions that were only differentiated are not needed any more.
    for (func::FuncOp function : differentiated)
      if (function.isPrivate() && SymbolTable::symbolKnownUseEmpty(function, getOperation()))
        function.erase();
    getOperation().walk([](autodiff::StopGradientOp op) {
      op.replaceAllUsesWith(op.getInput());
      op.erase();
    });
  }

private:
  llvm::SetVector<func::FuncOp> open; // being expanded, one by the other
  llvm::SmallSetVector<func::FuncOp, 4> differentiated;

  LogicalResult expandAll(func::FuncOp function);
  LogicalResult expand(autodiff::VjpOp op);
};
} // namespace

LogicalResult Differentiate::expandAll(func::FuncOp function) {
  SmallVector<autodiff::VjpOp> ops;
  function.walk([&](autodiff::VjpOp op) { ops.push_back(op); });
  LogicalResult result = success();
  open.insert(function);
  for (autodiff::VjpOp op : ops)
    if (failed(expand(op)))
      result = failure();
  open.remove(function);
  return result;
}

/// Replaces `op` by the callee's forward and backward.
LogicalResult Differentiate::expand(autodiff::VjpOp op) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  if (open.contains(callee))
    return op.emitOpError() << "is part of " << op.getCalleeAttr() << ", which it differentiates";
  if (failed(expandAll(callee)))
    return failure();
  FailureOr<func::FuncOp> vjp =
      autodiff::buildVjp(callee, op.getSeeded(), op.getWanted(), op.getTotals(), "weir_vjp");
  if (failed(vjp))
    return failure();
  Block &body = vjp->getBody().front();
  Operation *terminator = body.getTerminator();
  SmallVector<Value> operands(op.getArguments());
  llvm::append_range(operands, op.getCotangents());
  IRRewriter rewriter(op);
  SmallVector<Value> results(terminator->getOperands());
  rewriter.eraseOp(terminator);
  for (Value &result : results)
    if (auto argument = dyn_cast<BlockArgument>(result))
      result = operands[argument.getArgNumber()];
  rewriter.inlineBlockBefore(&body, op, operands);
  rewriter.replaceOp(op, results);
  vjp->erase();
  differentiated.insert(callee);
  return success();
}
