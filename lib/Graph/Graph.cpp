//===- Graph.cpp - Helpers on graphs of linalg ops ------------------------===//

#include "weir/Graph/Graph.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weir;

bool weir::isReshape(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

Value weir::createReshape(OpBuilder &builder, Location loc, RankedTensorType type, Value source) {
  auto from = cast<RankedTensorType>(source.getType());
  if (from == type)
    return source;
  auto groups = getReassociationIndicesForReshape(from, type);
  if (!groups)
    return {};
  if (from.getRank() > type.getRank())
    return tensor::CollapseShapeOp::create(builder, loc, type, source, *groups);
  return tensor::ExpandShapeOp::create(builder, loc, type, source, *groups);
}

Value weir::createReshapes(OpBuilder &builder, Location loc, RankedTensorType type, Value source) {
  if (Value reshaped = createReshape(builder, loc, type, source))
    return reshaped;
  if (type.getNumElements() == 0)
    return tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  auto flat = RankedTensorType::get({type.getNumElements()}, type.getElementType());
  return createReshape(builder, loc, type, createReshape(builder, loc, flat, source));
}

Value weir::stripReshapes(Value tensor) {
  while (isReshape(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  return tensor;
}

TypedAttr weir::getSplat(Value tensor) {
  SplatElementsAttr splat;
  if (matchPattern(tensor, m_Constant(&splat)))
    return cast<TypedAttr>(splat.getSplatValue<Attribute>());
  Value scalar;
  if (auto op = tensor.getDefiningOp<tensor::SplatOp>())
    scalar = op.getInput();
  if (auto op = tensor.getDefiningOp<linalg::FillOp>())
    scalar = op.getInputs().front();
  if (auto op = tensor.getDefiningOp<linalg::GenericOp>()) {
    Value yielded =
        op.getBody()->getTerminator()->getOperand(cast<OpResult>(tensor).getResultNumber());
    auto argument = dyn_cast<BlockArgument>(yielded);
    if (argument && argument.getOwner() == op.getBody())
      yielded = op->getOperand(argument.getArgNumber());
    if (!isa<RankedTensorType>(yielded.getType()))
      scalar = yielded;
  }
  Attribute value;
  if (scalar && matchPattern(scalar, m_Constant(&value)))
    return dyn_cast<TypedAttr>(value);
  return nullptr;
}

std::optional<Combiner> weir::getCombiner(linalg::LinalgOp op, unsigned result) {
  OpOperand *init = op.getDpsInitOperand(result);
  if (init->getOperandNumber() >= op.getBlock()->getNumArguments())
    return std::nullopt; // the bodies of some named ops don't see the accumulator
  Operation *combine = op.getMatchingYieldValue(init)->get().getDefiningOp();
  BlockArgument accumulator = op.getMatchingBlockArgument(init);
  if (!combine || combine->getBlock() != op.getBlock() || combine->getNumOperands() != 2 ||
      combine->getNumResults() != 1)
    return std::nullopt;
  bool isLeft = combine->getOperand(0) == accumulator;
  if (!isLeft && combine->getOperand(1) != accumulator)
    return std::nullopt;
  return Combiner{combine->getOperand(isLeft ? 1 : 0), combine, accumulator};
}

std::optional<SmallVector<Combiner>> weir::getCombiners(linalg::GenericOp op) {
  SmallVector<Combiner> combiners;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    std::optional<Combiner> found = getCombiner(op, i);
    if (!found || !found->isExclusive() ||
        !isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::AddIOp, arith::MulIOp, arith::MaxSIOp, arith::MinSIOp,
             arith::MaxUIOp, arith::MinUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
            found->combine) ||
        !getNeutral(found->combine))
      return std::nullopt;
    combiners.push_back(*found);
  }
  return combiners;
}

TypedAttr weir::getNeutral(Operation *combine) {
  if (isa<arith::AddFOp>(combine)) // upstream's is -0, which an empty sum would show
    return cast<TypedAttr>(Builder(combine).getZeroAttr(combine->getResult(0).getType()));
  return arith::getNeutralElement(combine).value_or(nullptr);
}
