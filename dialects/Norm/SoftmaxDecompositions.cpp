//===- SoftmaxDecompositions.cpp - Softmax and cross-entropy as linalg ----===//

#include "dialects/Norm/Decompositions.h"
#include "dialects/Norm/RowBuilder.h"
#include "dialects/Schedule/Promises.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weir::norm;

/// Computes `exp(x - largest)`, where x is at most the largest.
static Value getPower(OpBuilder &b, Location loc, Value x, Value largest) {
  auto power = math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, x, largest));
  power->setAttr(weir::schedule::notPositiveAttrName, b.getUnitAttr());
  return power;
}

/// Computes the largest element of each row and the sum of `exp(x - largest)`.
static std::pair<Value, Value> getMaxAndSumOfExp(RowBuilder &rows, Location loc, Value x) {
  Value max = rows.max({{x, Extent::Full}}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  Value sum =
      rows.sum({{x, Extent::Full}, {max, Extent::Rows}},
               [&](OpBuilder &b, ArrayRef<Value> in) { return getPower(b, loc, in[0], in[1]); });
  return {max, sum};
}

/// Computes the reciprocal of each row's sum. A division a row and a product an element cost less
/// than a division an element, and are off by one rounding more.
static Value getReciprocal(RowBuilder &rows, Location loc, Value sum) {
  Value one = rows.constant(1.0);
  return rows.rows({{sum, Extent::Rows}}, rows.getType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     return arith::DivFOp::create(b, loc, one, in[0]);
                   });
}

namespace {
/// A softmax as products of powers and their row's share.
struct Shares {
  Input power; ///< `exp(x - largest)`
  Input share; ///< the reciprocal of the row's sum of them
};
} // namespace

/// Computes the factors of each softmax. Powers are a tensor, so that a kernel can keep them.
static Shares getShares(RowBuilder &rows, Location loc, Value x) {
  Value max = rows.max({{x, Extent::Full}}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  Value power =
      rows.full({{x, Extent::Full}, {max, Extent::Rows}}, rows.getType(),
                [&](OpBuilder &b, ArrayRef<Value> in) { return getPower(b, loc, in[0], in[1]); });
  Value sum =
      rows.sum({{power, Extent::Full}}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  return {{power, Extent::Full}, {getReciprocal(rows, loc, sum), Extent::Rows}};
}

Value weir::norm::decomposeOp(OpBuilder &builder, linalg::SoftmaxOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  RowBuilder rows(builder, loc, type, int64_t(op.getDimension()), 1);
  auto [power, share] = getShares(rows, loc, op.getInput());
  return rows.full({power, share}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     return arith::MulFOp::create(b, loc, in[0], in[1]);
                   });
}

Value weir::norm::decomposeOp(OpBuilder &builder, SoftmaxVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getY().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  Input dy = {op.getDy(), Extent::Full}, y = {op.getY(), Extent::Full};
  Value sum = rows.sum({dy, y}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    return arith::MulFOp::create(b, loc, in[0], in[1]);
  });
  return rows.full({dy, y, {sum, Extent::Rows}}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value rest = arith::SubFOp::create(b, loc, in[0], in[2]);
                     return arith::MulFOp::create(b, loc, in[1], rest);
                   });
}

Value weir::norm::decomposeOp(OpBuilder &builder, LogSoftmaxOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  auto [max, sum] = getMaxAndSumOfExp(rows, loc, op.getX());
  Value logSum = rows.rows({{sum, Extent::Rows}}, rows.getType(),
                           [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                             return math::LogOp::create(b, loc, in[0]);
                           });
  return rows.full({{op.getX(), Extent::Full}, {max, Extent::Rows}, {logSum, Extent::Rows}},
                   type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
                     return arith::SubFOp::create(b, loc, shifted, in[2]);
                   });
}

Value weir::norm::decomposeOp(OpBuilder &builder, LogSoftmaxVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getY().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  Input dy = {op.getDy(), Extent::Full}, y = {op.getY(), Extent::Full};
  Value sum = rows.sum({dy}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  return rows.full({dy, y, {sum, Extent::Rows}}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value softmax = math::ExpOp::create(b, loc, in[1]);
                     Value share = arith::MulFOp::create(b, loc, softmax, in[2]);
                     return arith::SubFOp::create(b, loc, in[0], share);
                   });
}

namespace {
/// The values by row that logsumexp and its VJP share.
struct ShiftedSum {
  Input shift, sum;
};
} // namespace

/// Computes the shift of each row, its largest element or 0 if that is not finite, and the
/// sum of `exp(x - shift)`.
static ShiftedSum getShiftedSum(RowBuilder &rows, Location loc, Input x) {
  Value max = rows.max({x}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  Value zero = rows.constant(0.0);
  Value infinity = rows.constant(std::numeric_limits<double>::infinity());
  Value shift = rows.rows(
      {{max, Extent::Rows}}, rows.getType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
        Value size = math::AbsFOp::create(b, loc, in[0]);
        Value isInfinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, size, infinity);
        return arith::SelectOp::create(b, loc, isInfinite, zero, in[0]);
      });
  Value sum = rows.sum({x, {shift, Extent::Rows}}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
    return math::ExpOp::create(b, loc, shifted);
  });
  return {{shift, Extent::Rows}, {sum, Extent::Rows}};
}

Value weir::norm::decomposeOp(OpBuilder &builder, LogsumexpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  auto [shift, sum] = getShiftedSum(rows, loc, {op.getX(), Extent::Full});
  return rows.rows({sum, shift}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value logSum = math::LogOp::create(b, loc, in[0]);
                     return arith::AddFOp::create(b, loc, logSum, in[1]);
                   });
}

Value weir::norm::decomposeOp(OpBuilder &builder, LogsumexpVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getX().getType());
  RowBuilder rows(builder, loc, type, op.getAxis(), 1);
  Input x = {op.getX(), Extent::Full};
  auto [shift, sum] = getShiftedSum(rows, loc, x);
  Input share = {getReciprocal(rows, loc, sum.tensor), Extent::Rows};
  return rows.full({{op.getDy(), Extent::Rows}, x, shift, share}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value shifted = arith::SubFOp::create(b, loc, in[1], in[2]);
                     Value power = math::ExpOp::create(b, loc, shifted);
                     Value softmax = arith::MulFOp::create(b, loc, power, in[3]);
                     return arith::MulFOp::create(b, loc, in[0], softmax);
                   });
}

namespace {
/// The integers of a cross-entropy, as scalars for bodies.
class Targets {
public:
  template <typename Op>
  Targets(OpBuilder &builder, Op op)
      : loc(op.getLoc()), values(op.getTargets()),
        integer(cast<RankedTensorType>(values.getType()).getElementType()) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(integer, value));
    };
    auto logits = cast<RankedTensorType>(op.getLogits().getType());
    classDim = logits.getRank() - 1;
    ignored = constant(int64_t(op.getIgnoreIndex()));
    first = constant(0);
    end = constant(logits.getDimSize(classDim));
  }

  Input get() const { return {values, Extent::Rows}; }

  /// Whether the class at a body's point is `target`.
  Value isAt(OpBuilder &b, Value target) const {
    Value index = linalg::IndexOp::create(b, loc, classDim);
    Value number = arith::IndexCastOp::create(b, loc, integer, index);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, target);
  }

  /// `value` where `target` is a class, `zero` where it is ignored, else `nan`.
  Value guard(OpBuilder &b, Value target, Value value, Value zero, Value nan) const {
    Value notBelow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, target, first);
    Value notAbove = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, target, end);
    Value valid = arith::AndIOp::create(b, loc, notBelow, notAbove);
    Value loud = arith::SelectOp::create(b, loc, valid, value, nan);
    Value skip = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, target, ignored);
    return arith::SelectOp::create(b, loc, skip, zero, loud);
  }

  /// Counts the targets that are not ignored, as a tensor of rank 0. Integers count
  /// exactly.
  Value count(OpBuilder &builder) const;

private:
  Location loc;
  Value values;
  Type integer;
  int64_t classDim;
  Value ignored, first, end;
};
} // namespace

Value Targets::count(OpBuilder &builder) const {
  auto type = cast<RankedTensorType>(values.getType());
  Type counter = builder.getIntegerType(llvm::isInt<32>(type.getNumElements()) ? 32 : 64);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(counter, 0));
  Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(), counter);
  Value start = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap toScalar = AffineMap::get(type.getRank(), 0, builder.getContext());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::reduction);
  return linalg::GenericOp::create(
             builder, loc, start.getType(), values, start, ArrayRef<AffineMap>{identity, toScalar},
             iterators,
             [&](OpBuilder &b, Location, ValueRange in) {
               Value kept = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, in[0], ignored);
               Value one = arith::ExtUIOp::create(b, loc, counter, kept);
               linalg::YieldOp::create(b, loc, Value(arith::AddIOp::create(b, loc, in[1], one)));
             })
      .getResult(0);
}

/// Divides a tensor of rank 0 by the number of targets that are not ignored.
static Value divideByCount(OpBuilder &builder, Location loc, Value scalar, const Targets &targets) {
  auto type = cast<RankedTensorType>(scalar.getType());
  RowBuilder scalars(builder, loc, type, 0, 0);
  return scalars.full({{scalar, Extent::Full}, {targets.count(builder), Extent::Full}},
                      type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                        Value count = arith::SIToFPOp::create(b, loc, type.getElementType(), in[1]);
                        return arith::DivFOp::create(b, loc, in[0], count);
                      });
}

namespace {
/// The weights of the logits of a row with smoothed labels.
struct Smoothing {
  template <typename Op> explicit Smoothing(Op op) {
    auto logits = cast<RankedTensorType>(op.getLogits().getType());
    double smoothing = op.getLabelSmoothing().convertToDouble();
    ofTarget = 1 - smoothing;
    ofEach = smoothing / double(logits.getShape().back());
  }
  explicit operator bool() const { return ofTarget != 1; }

  double ofTarget, ofEach;
};
} // namespace

/// Computes the losses of all rows: 0 for ignored targets, NaN for targets that are no
/// class.
static Value getLosses(OpBuilder &builder, SoftmaxCrossEntropyOp op, const Targets &targets) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLogits().getType());
  RowBuilder rows(builder, loc, type, type.getRank() - 1, 1);
  auto [max, sum] = getMaxAndSumOfExp(rows, loc, op.getLogits());
  Value zero = rows.constant(0.0);
  Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
  // A sum over the classes keeps the pick inside the row kernel; all terms but one are 0.
  Value picked =
      rows.sum({{op.getLogits(), Extent::Full}, targets.get()},
               [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                 return arith::SelectOp::create(b, loc, targets.isAt(b, in[1]), in[0], zero);
               });
  SmallVector<Input> inputs = {
      {max, Extent::Rows}, {sum, Extent::Rows}, {picked, Extent::Rows}, targets.get()};
  Smoothing smoothing(op);
  Value share, rest;
  if (smoothing) {
    share = rows.constant(smoothing.ofEach);
    rest = rows.constant(smoothing.ofTarget);
    Value all = rows.sum({{op.getLogits(), Extent::Full}, {max, Extent::Rows}},
                         [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                           return arith::SubFOp::create(b, loc, in[0], in[1]);
                         });
    inputs.push_back({all, Extent::Rows});
  }
  return rows.rows(inputs, type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    Value logSum = math::LogOp::create(b, loc, in[1]);
    // max is taken from the target's logit, not added to the logarithm, which it would drown.
    Value shifted = arith::SubFOp::create(b, loc, in[2], in[0]);
    if (smoothing)
      shifted = arith::MulFOp::create(b, loc, rest, shifted);
    Value loss = arith::SubFOp::create(b, loc, logSum, shifted);
    if (smoothing)
      loss = arith::SubFOp::create(b, loc, loss, arith::MulFOp::create(b, loc, share, in[4]));
    return targets.guard(b, in[3], loss, zero, nan);
  });
}

Value weir::norm::decomposeOp(OpBuilder &builder, SoftmaxCrossEntropyOp op) {
  Targets targets(builder, op);
  Value losses = getLosses(builder, op, targets);
  if (op.getReduction() == Reduction::none)
    return losses;

  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(losses.getType());
  RowBuilder all(builder, loc, type, 0, type.getRank());
  Value sum =
      all.sum({{losses, Extent::Full}}, [](OpBuilder &, ArrayRef<Value> in) { return in[0]; });
  return op.getReduction() == Reduction::sum ? sum : divideByCount(builder, loc, sum, targets);
}

Value weir::norm::decomposeOp(OpBuilder &builder, SoftmaxCrossEntropyVjpOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLogits().getType());
  RowBuilder rows(builder, loc, type, type.getRank() - 1, 1);
  Targets targets(builder, op);
  auto [power, share] = getShares(rows, loc, op.getLogits());
  Input dloss = {op.getDloss(), Extent::None};
  if (op.getReduction() == Reduction::none)
    dloss.extent = Extent::Rows;
  if (op.getReduction() == Reduction::mean)
    dloss.tensor = divideByCount(builder, loc, op.getDloss(), targets);

  Smoothing smoothing(op);
  Value zero = rows.constant(0.0), one = rows.constant(1.0), ofEach, rest;
  if (smoothing) {
    ofEach = rows.constant(smoothing.ofEach);
    rest = rows.constant(smoothing.ofTarget);
  }
  Value nan = rows.constant(std::numeric_limits<double>::quiet_NaN());
  return rows.full({power, share, targets.get(), dloss}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value softmax = arith::MulFOp::create(b, loc, in[0], in[1]);
                     if (smoothing)
                       softmax = arith::SubFOp::create(b, loc, softmax, ofEach);
                     Value oneHot = arith::SelectOp::create(b, loc, targets.isAt(b, in[2]),
                                                            smoothing ? rest : one, zero);
                     Value difference = arith::SubFOp::create(b, loc, softmax, oneHot);
                     Value dlogit = arith::MulFOp::create(b, loc, difference, in[3]);
                     return targets.guard(b, in[2], dlogit, zero, nan);
                   });
}
