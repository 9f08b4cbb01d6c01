//===- Sweep.cpp - One backward walk --------------------------------------===//

#include "Sweep.h"

#include "dialects/Autodiff/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace weir::autodiff;

/// Returns the first value that `op` reads, in its regions too, for which `holds` is true,
/// or null.
static Value findRead(Operation *op, function_ref<bool(Value)> holds) {
  Value found;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (holds(operand)) {
        found = operand;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return found;
}

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

FailureOr<DenseSet<Value>> weir::autodiff::findActive(ArrayRef<Operation *> ops,
                                                      ArrayRef<Value> roots) {
  DenseSet<Value> active(roots.begin(), roots.end());
  bool allSeen = true;
  for (Operation *op : ops) {
    if (isa<StopGradientOp>(op) ||
        !findRead(op, [&](Value value) { return active.contains(value); }))
      continue;
    if (!isMemoryEffectFree(op)) {
      op->emitOpError("has no gradient rule: it may touch memory, by which the gradient would be "
                      "lost");
      allSeen = false;
      continue;
    }
    for (Value result : op->getResults())
      if (isFloat(result))
        active.insert(result);
    op->walk([&](arith::BitcastOp cast) {
      if (!isFloat(cast.getIn()) || isFloat(cast.getOut()))
        return;
      cast.emitOpError("has no gradient rule: it makes integers of the bits of a float that the "
                       "gradient may flow to");
      allSeen = false;
    });
  }
  if (!allSeen)
    return failure();
  return active;
}

LogicalResult weir::autodiff::sweep(OpBuilder &builder, ArrayRef<Operation *> ops, Cotangents &sums,
                                    MarkTotal mark) {
  LogicalResult result = success();
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<Value> cotangents;
    for (Value value : op->getResults())
      cotangents.push_back(sums.get(value));
    if (llvm::none_of(cotangents, [](Value cotangent) { return cotangent != nullptr; }))
      continue;
    Value wanted = findRead(op, [&](Value value) { return sums.isWanted(value); });
    if (!wanted)
      continue;
    if (mark)
      for (auto [value, cotangent] : llvm::zip_equal(op->getResults(), cotangents))
        if (cotangent)
          cotangent = mark(value, cotangent);
    if (auto rule = dyn_cast<DifferentiableOpInterface>(op)) {
      if (failed(rule.buildVjp(builder, cotangents, sums)))
        result = failure();
      continue;
    }
    InFlightDiagnostic error = op->emitOpError("has no gradient rule, and the gradient flows ");
    result = failure();
    auto operand = llvm::find(op->getOperands(), wanted);
    if (operand == op->operand_end())
      error << "into its body";
    else
      error << "through its operand " << operand.getIndex();
  }
  return result;
}
