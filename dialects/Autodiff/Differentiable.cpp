//===- Differentiable.cpp - Gradient rules of ops -----------------------------------===//

#include "dialects/Autodiff/Differentiable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weir::autodiff;

#include "dialects/Autodiff/Differentiable.cpp.inc"

void Cotangents::set(Value value, Value sum) {
  assert(isWanted(value) && value.getType() == sum.getType());
  sums[value] = sum;
}

void Cotangents::add(OpBuilder &builder, Location loc, Value value, Value part) {
  if (!isWanted(value))
    return;
  Value sum = get(value);
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  if (!sum) {
    sum = part;
  } else if (!tensor) {
    sum = arith::AddFOp::create(builder, loc, sum, part);
  } else {
    AffineMap identity = builder.getMultiDimIdentityMap(tensor.getRank());
    SmallVector<utils::IteratorType> loops(tensor.getRank(), utils::IteratorType::parallel);
    sum = linalg::GenericOp::create(
              builder, loc, tensor, part, sum, ArrayRef<AffineMap>{identity, identity}, loops,
              [](OpBuilder &b, Location loc, ValueRange values) {
                Value added = arith::AddFOp::create(b, loc, values[1], values[0]);
                linalg::YieldOp::create(b, loc, added);
              })
              .getResult(0);
  }
  set(value, sum);
}

Value weir::autodiff::createZeros(OpBuilder &builder, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(tensor.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, loc, tensor.getShape(), tensor.getElementType());
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}
