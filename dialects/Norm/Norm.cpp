//===- Norm.cpp - The norm dialect ----------------------------------------===//

#include "dialects/Norm/Norm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace weir::norm;

#include "dialects/Norm/NormDialect.cpp.inc"
#include "dialects/Norm/NormEnums.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Norm/NormOps.cpp.inc"

void NormDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Norm/NormOps.cpp.inc"
      >();
}

/// C1 to C3 of the ops that normalise the last dimensions.
template <typename Op>
static LogicalResult verifyTrailing(Op op, ArrayRef<std::pair<StringRef, Value>> weights) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  int64_t axes = int64_t(op.getAxes());
  if (axes < 1 || axes > x.getRank()) // C1
    return op.emitOpError() << "normalises " << axes << " dimensions, x has " << x.getRank();
  auto expected = RankedTensorType::get(x.getShape().take_back(axes), x.getElementType());
  for (auto [name, weight] : weights)
    if (weight && weight.getType() != expected) // C2
      return op.emitOpError() << name << " is " << weight.getType() << ", expected " << expected;
  APFloat eps = op.getEps();
  if (!eps.isFinite() || eps.isNegative()) // C3
    return op.emitOpError() << "eps is " << op.getEpsAttr() << ", not a finite value from 0 on";
  return success();
}

LogicalResult LayerNormOp::verify() {
  return verifyTrailing(*this, {{"gamma", getGamma()}, {"beta", getBeta()}});
}

LogicalResult RmsNormOp::verify() { return verifyTrailing(*this, {{"gamma", getGamma()}}); }

LogicalResult LogSoftmaxOp::verify() {
  int64_t axis = int64_t(getAxis()), rank = cast<RankedTensorType>(getX().getType()).getRank();
  if (axis < 0 || axis >= rank) // C1
    return emitOpError() << "axis " << axis << " is not among the " << rank << " of x";
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::verify() {
  auto logits = cast<RankedTensorType>(getLogits().getType());
  auto targets = cast<RankedTensorType>(getTargets().getType());
  if (logits.getRank() != targets.getRank() + 1 ||
      logits.getShape().drop_back() != targets.getShape()) // C1
    return emitOpError() << "logits of shape [" << logits.getShape() << "] need targets of that "
                         << "shape without its last dimension, got [" << targets.getShape() << "]";
  ArrayRef<int64_t> shape;
  if (getReduction() == Reduction::none)
    shape = targets.getShape();
  auto expected = RankedTensorType::get(shape, logits.getElementType());
  if (getResult().getType() != expected) // C2
    return emitOpError() << "reduction '" << stringifyReduction(getReduction()) << "' gives "
                         << expected << ", not " << getResult().getType();
  unsigned width = targets.getElementType().getIntOrFloatBitWidth();
  for (int64_t number : {int64_t(getIgnoreIndex()), logits.getShape().back()}) // C3
    if (!llvm::isIntN(width, number))
      return emitOpError() << "targets of " << targets.getElementType() << " cannot hold "
                           << number;
  return success();
}
