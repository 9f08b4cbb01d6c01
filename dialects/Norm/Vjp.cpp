//===- Vjp.cpp - Gradient rules of the norm dialect -----------------------===//
//
// Each is one op that yields all gradients together.
//
//===----------------------------------------------------------------------===//

#include "dialects/Norm/Norm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir::norm;
using weir::autodiff::Cotangents;

/// Returns the type of gamma and beta, present or not.
static Type getColumnsType(Value x, uint64_t axes) {
  auto type = cast<RankedTensorType>(x.getType());
  return RankedTensorType::get(type.getShape().take_back(axes), type.getElementType());
}

LogicalResult LayerNormOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                    Cotangents &sums) {
  Type columns = getColumnsType(getX(), getAxes());
  auto vjp =
      LayerNormVjpOp::create(builder, getLoc(), TypeRange{getX().getType(), columns, columns},
                             cotangents.front(), getX(), getGamma(), getAxesAttr(), getEpsAttr());
  sums.add(builder, getLoc(), getX(), vjp.getDx());
  if (getGamma())
    sums.add(builder, getLoc(), getGamma(), vjp.getDgamma());
  if (getBeta())
    sums.add(builder, getLoc(), getBeta(), vjp.getDbeta());
  return success();
}

LogicalResult RmsNormOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                  Cotangents &sums) {
  auto vjp = RmsNormVjpOp::create(builder, getLoc(),
                                  TypeRange{getX().getType(), getColumnsType(getX(), getAxes())},
                                  cotangents.front(), getX(), getGamma(), getAxesAttr(),
                                  getEpsAttr(), getCastBeforeScaleAttr());
  sums.add(builder, getLoc(), getX(), vjp.getDx());
  if (getGamma())
    sums.add(builder, getLoc(), getGamma(), vjp.getDgamma());
  return success();
}

LogicalResult BatchNormOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                    Cotangents &sums) {
  Value dy = cotangents[0];
  if (!dy)
    dy = arith::ConstantOp::create(builder, getLoc(), builder.getZeroAttr(getX().getType()));
  Type channels = getMean().getType();
  auto vjp =
      BatchNormVjpOp::create(builder, getLoc(), {getX().getType(), channels, channels}, dy, getX(),
                             getGamma(), cotangents[1], cotangents[2], getAxisAttr(), getEpsAttr());
  sums.add(builder, getLoc(), getX(), vjp.getDx());
  if (getGamma())
    sums.add(builder, getLoc(), getGamma(), vjp.getDgamma());
  if (getBeta())
    sums.add(builder, getLoc(), getBeta(), vjp.getDbeta());
  return success();
}

LogicalResult LogSoftmaxOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                     Cotangents &sums) {
  if (sums.isWanted(getX()))
    sums.add(builder, getLoc(), getX(),
             LogSoftmaxVjpOp::create(builder, getLoc(), getX().getType(), cotangents.front(),
                                     getResult(), getAxisAttr()));
  return success();
}

LogicalResult LogsumexpOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                    Cotangents &sums) {
  if (sums.isWanted(getX()))
    sums.add(builder, getLoc(), getX(),
             LogsumexpVjpOp::create(builder, getLoc(), getX().getType(), cotangents.front(), getX(),
                                    getAxisAttr()));
  return success();
}

LogicalResult AttentionOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                    Cotangents &sums) {
  assert(!cotangents[1] && !cotangents[2] &&
         "attention with statistics that others read is decomposed first");
  SmallVector<Type> types = {getQ().getType(), getK().getType(), getV().getType()};
  if (getBias())
    types.push_back(getBias().getType());
  auto vjp = AttentionVjpOp::create(builder, getLoc(), types, cotangents.front(), getQ(), getK(),
                                    getV(), getBias(), getResult(), getMax(), getShare(),
                                    getScaleAttr(), getSoftcapAttr(), getBiasCoversAttr());
  for (auto [operand, gradient] : llvm::zip_equal(getOperands(), vjp.getResults()))
    sums.add(builder, getLoc(), operand, gradient);
  return success();
}

LogicalResult GeluOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents, Cotangents &sums) {
  if (sums.isWanted(getX()))
    sums.add(builder, getLoc(), getX(),
             GeluVjpOp::create(builder, getLoc(), getX().getType(), cotangents.front(), getX(),
                               getTanhFactorAttr()));
  return success();
}

LogicalResult SiluOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents, Cotangents &sums) {
  if (sums.isWanted(getX()))
    sums.add(builder, getLoc(), getX(),
             SiluVjpOp::create(builder, getLoc(), getX().getType(), cotangents.front(), getX()));
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                              Cotangents &sums) {
  if (sums.isWanted(getLogits()))
    sums.add(builder, getLoc(), getLogits(),
             SoftmaxCrossEntropyVjpOp::create(
                 builder, getLoc(), getLogits().getType(), cotangents.front(), getLogits(),
                 getTargets(), getReductionAttr(), getIgnoreIndexAttr(), getLabelSmoothingAttr()));
  return success();
}
