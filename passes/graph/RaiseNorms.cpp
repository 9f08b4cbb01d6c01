//===- RaiseNorms.cpp - Decomposed norms and losses become norm ops -------===//
//
// A candidate is raised only if its whole expression matches. The ops that it was
// computed by are then erased if nothing else uses them.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/RaiseNorms.h"
#include "mlir/Pass/Pass.h"
#include "passes/graph/KnownFunctions.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace weir {
#define GEN_PASS_DEF_RAISENORMSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;
using namespace weir::elements;

void weir::elements::eraseUnused(ArrayRef<Operation *> ops, ErasedOps &erased) {
  SmallVector<Operation *> left(ops);
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *&op : left)
      if (op && op->use_empty()) {
        erased.insert(op);
        op->erase();
        op = nullptr;
        changed = true;
      }
  }
}

/// Erases ops with no effect and no uses, such as the fills that raised ops started from.
static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

static bool raiseRoot(linalg::GenericOp root, bool mayBeFunction, ErasedOps &erased) {
  auto type = dyn_cast_or_null<RankedTensorType>(
      root->getNumResults() == 1 ? root->getResult(0).getType() : Type());
  if (!type || !type.hasStaticShape() ||
      !(type.getElementType().isF32() || type.getElementType().isF64()))
    return false;
  if (raiseLoss(root, erased))
    return true;
  if (type.getRank() == 0)
    return false;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (raiseTrailingNorm(root, axis + 1, erased) || raiseSoftmax(root, axis, erased))
      return true;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (raiseBatchNorm(root, axis, erased))
      return true;
  return raiseGroupNorm(root, erased) ||
         (mayBeFunction && raise(KnownFunction(root->getResult(0)), root, erased));
}

namespace {
struct RaiseNorms : weir::impl::RaiseNormsPassBase<RaiseNorms> {
  using RaiseNormsPassBase::RaiseNormsPassBase;

  void runOnOperation() override {
    // From the end, so that a norm is seen with its scale and shift first.
    for (Block &block : getOperation().getBody()) {
      eraseDead(block); // dead ops would use values that a raise leaves unused
      SmallVector<Operation *> roots;
      ErasedOps erased;
      for (Operation &op : block)
        if (isa<linalg::GenericOp>(op))
          roots.push_back(&op);
      llvm::DenseSet<Operation *> functions = KnownFunction::findRoots(block);
      for (Operation *root : llvm::reverse(roots))
        if (!erased.contains(root))
          raiseRoot(cast<linalg::GenericOp>(root), functions.contains(root), erased);
      raiseAttentions(block, erased);
      if (!erased.empty())
        eraseDead(block);
    }
  }
};
} // namespace
