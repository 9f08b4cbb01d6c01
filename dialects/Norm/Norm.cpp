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

using NamedValues = ArrayRef<std::pair<StringRef, Value>>;

/// C2 and C3 of the ops that normalise; `shape` is what weights have.
template <typename Op>
static LogicalResult verifyWeights(Op op, ArrayRef<int64_t> shape, NamedValues weights) {
  auto expected =
      RankedTensorType::get(shape, cast<RankedTensorType>(op.getX().getType()).getElementType());
  for (auto [name, weight] : weights)
    if (weight && weight.getType() != expected) // C2
      return op.emitOpError() << name << " is " << weight.getType() << ", expected " << expected;
  APFloat eps = op.getEps();
  if (!eps.isFinite() || eps.isNegative()) // C3
    return op.emitOpError() << "eps is " << op.getEpsAttr() << ", not a finite value from 0 on";
  return success();
}

/// Checks C1 to C3 of the ops that normalise the last dimensions.
template <typename Op> static LogicalResult verifyTrailing(Op op, NamedValues weights) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  int64_t axes = int64_t(op.getAxes());
  if (axes < 1 || axes > x.getRank()) // C1
    return op.emitOpError() << "normalises " << axes << " dimensions, x has " << x.getRank();
  return verifyWeights(op, x.getShape().take_back(axes), weights);
}

LogicalResult LayerNormOp::verify() {
  return verifyTrailing(*this, {{"gamma", getGamma()}, {"beta", getBeta()}});
}

LogicalResult RmsNormOp::verify() { return verifyTrailing(*this, {{"gamma", getGamma()}}); }

LogicalResult LayerNormVjpOp::verify() {
  return verifyTrailing(*this, {{"gamma", getGamma()}, {"dgamma", getDgamma()}});
}

LogicalResult RmsNormVjpOp::verify() {
  return verifyTrailing(*this, {{"gamma", getGamma()}, {"dgamma", getDgamma()}});
}

/// Checks C1 of the ops along one dimension.
template <typename Op> static LogicalResult verifyAxis(Op op, StringRef name, Value operand) {
  int64_t axis = int64_t(op.getAxis()), rank = cast<RankedTensorType>(operand.getType()).getRank();
  if (axis < 0 || axis >= rank) // C1
    return op.emitOpError() << "axis " << axis << " is not among the " << rank << " of " << name;
  return success();
}

/// Checks C1 to C3 of the ops that normalise channels.
template <typename Op> static LogicalResult verifyChannels(Op op, NamedValues weights) {
  if (failed(verifyAxis(op, "x", op.getX()))) // C1
    return failure();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getX().getType()).getShape();
  return verifyWeights(op, shape[int64_t(op.getAxis())], weights);
}

LogicalResult BatchNormOp::verify() {
  return verifyChannels(*this, {{"gamma", getGamma()}, {"beta", getBeta()}, {"mean", getMean()}});
}

LogicalResult BatchNormVjpOp::verify() {
  return verifyChannels(*this, {{"gamma", getGamma()},
                                {"dmean", getDmean()},
                                {"dvariance", getDvariance()},
                                {"dgamma", getDgamma()}});
}

LogicalResult BatchNormInferenceOp::verify() {
  return verifyChannels(*this, {{"mean", getMean()}, {"gamma", getGamma()}, {"beta", getBeta()}});
}

LogicalResult LogSoftmaxOp::verify() { return verifyAxis(*this, "x", getX()); }

LogicalResult LogSoftmaxVjpOp::verify() { return verifyAxis(*this, "y", getY()); }

LogicalResult SoftmaxVjpOp::verify() { return verifyAxis(*this, "y", getY()); }

/// Checks C1 and C2 of logsumexp and its VJP. `rows` is the operand with a value for each
/// row.
template <typename Op> static LogicalResult verifyRows(Op op, StringRef name, Value rows) {
  if (failed(verifyAxis(op, "x", op.getX()))) // C1
    return failure();
  auto x = cast<RankedTensorType>(op.getX().getType());
  SmallVector<int64_t> shape(x.getShape());
  shape.erase(shape.begin() + int64_t(op.getAxis()));
  auto expected = RankedTensorType::get(shape, x.getElementType());
  if (rows.getType() != expected) // C2
    return op.emitOpError() << name << " is " << rows.getType() << ", expected " << expected;
  return success();
}

LogicalResult LogsumexpOp::verify() { return verifyRows(*this, "the result", getResult()); }

LogicalResult LogsumexpVjpOp::verify() { return verifyRows(*this, "dy", getDy()); }

RankedTensorType weir::norm::getScoresType(Value q, Value k) {
  auto queries = cast<RankedTensorType>(q.getType());
  SmallVector<int64_t> shape(queries.getShape());
  shape.back() = cast<RankedTensorType>(k.getType()).getDimSize(queries.getRank() - 2);
  Type element = queries.getElementType();
  return RankedTensorType::get(shape,
                               element.isF64() ? element : Float32Type::get(element.getContext()));
}

/// Checks C1 of attention and its VJP.
template <typename Op> static LogicalResult verifyFactors(Op op) {
  auto q = cast<RankedTensorType>(op.getQ().getType());
  auto k = cast<RankedTensorType>(op.getK().getType());
  auto v = cast<RankedTensorType>(op.getV().getType());
  if (q.getRank() < 2)
    return op.emitOpError() << "q has " << q.getRank() << " dimensions, expected at least 2";
  for (auto [name, type] : {std::pair("k", k), std::pair("v", v)}) {
    if (type.getElementType() != q.getElementType())
      return op.emitOpError() << name << " is of " << type.getElementType() << ", q of "
                              << q.getElementType();
    if (type.getRank() != q.getRank() || type.getShape().drop_back(2) != q.getShape().drop_back(2))
      return op.emitOpError() << name << " is " << type << ", expected the batch dimensions of q, "
                              << q;
  }
  if (k.getShape().back() != q.getShape().back())
    return op.emitOpError() << "k has keys of " << k.getShape().back() << " elements, q queries of "
                            << q.getShape().back();
  int64_t keys = k.getRank() - 2;
  if (v.getDimSize(keys) != k.getDimSize(keys))
    return op.emitOpError() << "v has " << v.getDimSize(keys) << " values, k " << k.getDimSize(keys)
                            << " keys";
  return success();
}

/// Checks C1 to C4 of attention and its VJP.
template <typename Op> static LogicalResult verifyAttention(Op op) {
  if (failed(verifyFactors(op)))
    return failure();
  RankedTensorType scores = getScoresType(op.getQ(), op.getK());
  if (op.getBias()) { // C2
    auto bias = cast<RankedTensorType>(op.getBias().getType());
    bool fits =
        bias.getRank() == scores.getRank() && bias.getElementType() == scores.getElementType();
    for (int64_t dim = 0; fits && dim < bias.getRank(); ++dim)
      fits = bias.getDimSize(dim) == 1 || bias.getDimSize(dim) == scores.getDimSize(dim);
    if (!fits)
      return op.emitOpError() << "bias is " << bias << ", which the scores, " << scores
                              << ", cannot repeat";
  }
  SmallVector<int64_t> shape(scores.getShape().drop_back());
  auto rows = RankedTensorType::get(shape, scores.getElementType());
  auto v = cast<RankedTensorType>(op.getV().getType());
  shape.push_back(v.getShape().back());
  auto expected = RankedTensorType::get(shape, v.getElementType());
  if (op.getResult().getType() != expected) // C3
    return op.emitOpError() << "result is " << op.getResult().getType() << ", expected "
                            << expected;
  if (op.getMax().getType() != rows)
    return op.emitOpError() << "max and share are " << op.getMax().getType() << ", expected "
                            << rows;
  if (!op.getScale().isFinite()) // C4
    return op.emitOpError() << "scale is " << op.getScaleAttr() << ", not finite";
  std::optional<APFloat> cap = op.getSoftcap();
  if (cap && (!cap->isFinite() || cap->isNegative() || cap->isZero()))
    return op.emitOpError() << "softcap is " << op.getSoftcapAttr()
                            << ", not a finite number above 0";
  return success();
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

LogicalResult AttentionVjpOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  Type bias = getBias() ? getBias().getType() : Type(),
       dbias = getDbias() ? getDbias().getType() : Type();
  if (bool(bias) != bool(dbias)) // C5
    return emitOpError() << (bias ? "has a bias, but no dbias" : "has a dbias, but no bias");
  if (bias != dbias)
    return emitOpError() << "dbias is " << dbias << ", expected " << bias;
  return success();
}

/// Checks C1 of GELU and its VJP.
template <typename Op> static LogicalResult verifyTanh(Op op) {
  std::optional<APFloat> factor = op.getTanhFactor();
  if (factor && !factor->isFinite()) // C1
    return op.emitOpError() << "tanh_factor is " << op.getTanhFactorAttr() << ", not finite";
  return success();
}

LogicalResult GeluOp::verify() { return verifyTanh(*this); }

LogicalResult GeluVjpOp::verify() { return verifyTanh(*this); }

/// Checks C1 to C4 of cross-entropy and its VJP. `loss` is the value of the loss's type.
template <typename Op> static LogicalResult verifyLoss(Op op, StringRef what, Value loss) {
  auto logits = cast<RankedTensorType>(op.getLogits().getType());
  auto targets = cast<RankedTensorType>(op.getTargets().getType());
  if (logits.getRank() != targets.getRank() + 1 ||
      logits.getShape().drop_back() != targets.getShape()) // C1
    return op.emitOpError() << "logits of shape [" << logits.getShape()
                            << "] need targets of that shape without its last dimension, got ["
                            << targets.getShape() << "]";
  ArrayRef<int64_t> shape;
  if (op.getReduction() == Reduction::none)
    shape = targets.getShape();
  auto expected = RankedTensorType::get(shape, logits.getElementType());
  if (loss.getType() != expected) // C2
    return op.emitOpError() << "reduction '" << stringifyReduction(op.getReduction()) << "' "
                            << what << " " << expected << ", not " << loss.getType();
  unsigned width = targets.getElementType().getIntOrFloatBitWidth();
  for (int64_t number : {int64_t(op.getIgnoreIndex()), logits.getShape().back()}) // C3
    if (!llvm::isIntN(width, number))
      return op.emitOpError() << "targets of " << targets.getElementType() << " cannot hold "
                              << number;
  double smoothing = op.getLabelSmoothing().convertToDouble();
  if (!(smoothing >= 0 && smoothing <= 1)) // C4
    return op.emitOpError() << "label smoothing is " << op.getLabelSmoothingAttr()
                            << ", not in [0, 1]";
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::verify() { return verifyLoss(*this, "gives", getResult()); }

LogicalResult SoftmaxCrossEntropyVjpOp::verify() { return verifyLoss(*this, "takes", getDloss()); }

LogicalResult ArgsortOp::verify() {
  constexpr int64_t largest = int64_t(1) << 30;
  if (getKeys().empty()) // C1
    return emitOpError("has no key");
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getKeys().front().getType()).getShape();
  for (Value key : getKeys())
    if (cast<RankedTensorType>(key.getType()).getShape() != shape)
      return emitOpError() << "has keys of shapes [" << shape << "] and ["
                           << cast<RankedTensorType>(key.getType()).getShape() << "]";
  if (shape.empty() || shape.back() < 1 || shape.back() > largest)
    return emitOpError() << "sorts keys of shape [" << shape
                         << "], whose last dimension is not in [1, " << largest << "]";
  ArrayRef<int64_t> order = getOrder().getType().getShape();
  if (order.size() != shape.size() || order.drop_back() != shape.drop_back() || order.back() < 1 ||
      order.back() > shape.back()) // C2
    return emitOpError() << "gives [" << order << "] of keys [" << shape
                         << "]; expected that shape, or a shorter last dimension from 1 on";
  return success();
}
