//===- Scalars.cpp - Scalars move to their users --------------------------===//

#include "passes/kernels/Scalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

Value weir::repeatScalar(OpBuilder &builder, Value scalar, IRMapping &known) {
  if (Value found = known.lookupOrNull(scalar))
    return found;
  Operation *op = scalar.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>())
    return scalar;
  for (Value operand : op->getOperands())
    if (!isa<RankedTensorType>(operand.getType()))
      known.map(operand, repeatScalar(builder, operand, known));
  builder.clone(*op, known);
  return known.lookup(scalar);
}

bool weir::isComputedScalar(Value value) {
  Operation *op = value.getDefiningOp();
  return !isa<RankedTensorType>(value.getType()) && op && !op->hasTrait<OpTrait::ConstantLike>();
}

void weir::repeatScalars(linalg::GenericOp op) {
  Block *body = op.getBody();
  OpBuilder builder = OpBuilder::atBlockBegin(body);
  IRMapping known;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    Value scalar = operand->get();
    if (!isComputedScalar(scalar))
      continue;
    BlockArgument argument = body->getArgument(operand->getOperandNumber());
    if (!argument.use_empty())
      argument.replaceAllUsesWith(repeatScalar(builder, scalar, known));
    OpBuilder before(op);
    operand->set(
        arith::ConstantOp::create(before, op.getLoc(), before.getZeroAttr(scalar.getType())));
  }
  for (Operation &inner : llvm::make_early_inc_range(*body))
    for (OpOperand &operand : inner.getOpOperands())
      if (isComputedScalar(operand.get()) &&
          operand.get().getDefiningOp()->getBlock() == op->getBlock())
        operand.set(repeatScalar(builder, operand.get(), known));
}
