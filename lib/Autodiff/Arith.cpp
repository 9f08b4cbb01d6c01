//===- Arith.cpp - Derivatives of arith -----------------------------------===//
//
// Integers have none: ops on them alone need no rule, for nothing flows to them.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weir::autodiff;
using arith::CmpFPredicate;

static Number negf(Number, Number, Number g) { return -g; }

static void addf(arith::AddFOp op, Number g, Numbers &numbers) {
  numbers.add(op.getLhs(), [&] { return g; });
  numbers.add(op.getRhs(), [&] { return g; });
}

static void subf(arith::SubFOp op, Number g, Numbers &numbers) {
  numbers.add(op.getLhs(), [&] { return g; });
  numbers.add(op.getRhs(), [&] { return -g; });
}

/// Multiplies a cotangent by a factor. A zero cotangent stays 0 if the factor is a literal
/// infinity: front ends multiply all elements by infinity and choose few of them.
static Number scale(Number g, Number factor) {
  Number product = g * factor;
  APFloat constant(0.0);
  if (!matchPattern(factor.get(), m_ConstantFloat(&constant)) || constant.isFinite())
    return product;
  Number zero = g.constant(0);
  return zero.where(CmpFPredicate::OEQ, g, zero, product);
}

static void mulf(arith::MulFOp op, Number g, Numbers &numbers) {
  numbers.add(op.getLhs(), [&] { return scale(g, numbers(op.getRhs())); });
  numbers.add(op.getRhs(), [&] { return scale(g, numbers(op.getLhs())); });
}

static void divf(arith::DivFOp op, Number g, Numbers &numbers) {
  Number divisor = numbers(op.getRhs());
  numbers.add(op.getLhs(), [&] { return divideBySlope(g, divisor); });
  numbers.add(op.getRhs(), [&] {
    Number slope = -(g * numbers(op.getResult()) / divisor);
    return g.unlessNothing(CmpFPredicate::OEQ, divisor, g.constant(0), slope);
  });
}

/// Differentiates a - b * trunc(a / b), since a - remainder is an exact multiple of b.
static void remf(arith::RemFOp op, Number g, Numbers &numbers) {
  numbers.add(op.getLhs(), [&] { return g; });
  numbers.add(op.getRhs(), [&] {
    Number a = numbers(op.getLhs()), b = numbers(op.getRhs());
    return -(g * ((a - numbers(op.getResult())) / b).apply<math::RoundEvenOp>());
  });
}

/// Adds `g` to the chosen operand, half of it to each where both are equal. A NaN counts as
/// chosen, so that it is not lost.
template <typename Op, CmpFPredicate loses>
static void maximumf(Op op, Number g, Numbers &numbers) {
  Value operands[] = {op.getLhs(), op.getRhs()};
  for (unsigned i : {0, 1})
    numbers.add(operands[i], [&] {
      Number own = numbers(operands[i]), other = numbers(operands[1 - i]);
      Number half = (g * 0.5).where(CmpFPredicate::OEQ, own, other, g);
      return g.constant(0).where(loses, own, other, half);
    });
}

/// Does the same, but never chooses a NaN.
template <typename Op, CmpFPredicate winsOrOtherIsNan>
static void maxnumf(Op op, Number g, Numbers &numbers) {
  Value operands[] = {op.getLhs(), op.getRhs()};
  for (unsigned i : {0, 1})
    numbers.add(operands[i], [&] {
      Number own = numbers(operands[i]), other = numbers(operands[1 - i]), zero = g.constant(0);
      Number whole = g.where(winsOrOtherIsNan, own, other, zero);
      Number half = (g * 0.5).where(CmpFPredicate::OEQ, own, other, whole);
      return half.where(CmpFPredicate::ORD, own, own, zero);
    });
}

/// Whether the op chooses the larger or smaller element of two tensors, as torch-mlir
/// writes PyTorch's `maximum` and `minimum`. With a literal it is a ReLU or a clamp
/// instead.
static bool isExtremum(arith::SelectOp op) {
  auto order = op.getCondition().getDefiningOp<arith::CmpFOp>();
  return order &&
         llvm::is_contained({CmpFPredicate::OGT, CmpFPredicate::OLT}, order.getPredicate()) &&
         op.getTrueValue() == order.getLhs() && op.getFalseValue() == order.getRhs() &&
         isa<BlockArgument>(order.getLhs()) && isa<BlockArgument>(order.getRhs());
}

static void select(arith::SelectOp op, Number g, Numbers &numbers) {
  auto choose = [&](bool ifTrue) {
    Number zero = g.constant(0);
    auto chosen = g.build<arith::SelectOp>(op.getCondition(), (ifTrue ? g : zero).get(),
                                           (ifTrue ? zero : g).get());
    if (!isExtremum(op))
      return chosen;
    return (g * 0.5).where(CmpFPredicate::OEQ, numbers(op.getTrueValue()),
                           numbers(op.getFalseValue()), chosen);
  };
  numbers.add(op.getTrueValue(), [&] { return choose(true); });
  numbers.add(op.getFalseValue(), [&] { return choose(false); });
}

static Number extf(Number x, Number, Number g) {
  return g.build<arith::TruncFOp>(x.get().getType(), g.get());
}

static Number truncf(Number x, Number, Number g) {
  return g.build<arith::ExtFOp>(x.get().getType(), g.get());
}

void weir::autodiff::registerArithRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    using namespace arith;
    NegFOp::attachInterface<UnaryRule<NegFOp, negf>>(*context);
    ExtFOp::attachInterface<UnaryRule<ExtFOp, extf>>(*context);
    TruncFOp::attachInterface<UnaryRule<TruncFOp, truncf>>(*context);
    AddFOp::attachInterface<NumberRule<AddFOp, addf>>(*context);
    SubFOp::attachInterface<NumberRule<SubFOp, subf>>(*context);
    MulFOp::attachInterface<NumberRule<MulFOp, mulf>>(*context);
    DivFOp::attachInterface<NumberRule<DivFOp, divf>>(*context);
    RemFOp::attachInterface<NumberRule<RemFOp, remf>>(*context);
    SelectOp::attachInterface<NumberRule<SelectOp, select>>(*context);
    MaximumFOp::attachInterface<NumberRule<MaximumFOp, maximumf<MaximumFOp, CmpFPredicate::OLT>>>(
        *context);
    MinimumFOp::attachInterface<NumberRule<MinimumFOp, maximumf<MinimumFOp, CmpFPredicate::OGT>>>(
        *context);
    MaxNumFOp::attachInterface<NumberRule<MaxNumFOp, maxnumf<MaxNumFOp, CmpFPredicate::UGT>>>(
        *context);
    MinNumFOp::attachInterface<NumberRule<MinNumFOp, maxnumf<MinNumFOp, CmpFPredicate::ULT>>>(
        *context);
  });
}
