//===- Math.cpp - Derivatives of math -------------------------------------===//
//
// Each from the operand x, the result y and the cotangent g; docs/gradients.md says
// what holds at kinks and edges. Forms are chosen so that nothing cancels: 1 - x^2
// as (1 - x)(1 + x).
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace weir::autodiff;
using arith::CmpFPredicate;

static Number sqrt(Number x) { return x.apply<math::SqrtOp>(); }
static Number exp(Number x) { return x.apply<math::ExpOp>(); }
static Number copySign(Number x, Number sign) { return x.apply<math::CopySignOp>(sign); }

/// Returns `value`, or 0 where x is 0.
static Number unlessZero(Number x, Number value) {
  Number zero = x.constant(0);
  return zero.where(CmpFPredicate::OEQ, x, zero, value);
}

static Number absf(Number x, Number, Number g) {
  return unlessZero(x, g * copySign(x.constant(1), x));
}
static Number acosDerivative(Number x, Number, Number g) {
  return -divideBySlope(g, sqrt((1 - x) * (1 + x)));
}
static Number acoshDerivative(Number x, Number, Number g) {
  return divideBySlope(g, sqrt((x - 1) * (x + 1)));
}
static Number asinDerivative(Number x, Number, Number g) {
  return divideBySlope(g, sqrt((1 - x) * (1 + x)));
}
static Number asinhDerivative(Number x, Number, Number g) { return g / sqrt(x * x + 1); }
static Number atanDerivative(Number x, Number, Number g) { return g / (x * x + 1); }
static Number atanhDerivative(Number x, Number, Number g) {
  return divideBySlope(g, (1 - x) * (1 + x));
}
static Number cbrtDerivative(Number, Number y, Number g) { return divideBySlope(g, 3 * (y * y)); }
static Number cosDerivative(Number x, Number, Number g) { return -(g * x.apply<math::SinOp>()); }
static Number coshDerivative(Number x, Number, Number g) {
  return scaleBySlope(g, x.apply<math::SinhOp>());
}
static Number erfDerivative(Number x, Number, Number g) {
  return g * (2 * std::numbers::inv_sqrtpi * exp(-(x * x)));
}
static Number erfcDerivative(Number x, Number y, Number g) { return -erfDerivative(x, y, g); }
static Number expDerivative(Number, Number y, Number g) { return scaleBySlope(g, y); }
static Number exp2Derivative(Number, Number y, Number g) {
  return scaleBySlope(g, std::numbers::ln2 * y);
}
static Number expm1Derivative(Number x, Number, Number g) { return scaleBySlope(g, exp(x)); }
static Number logDerivative(Number x, Number, Number g) { return divideBySlope(g, x); }
static Number log10Derivative(Number x, Number, Number g) {
  return divideBySlope(g, std::numbers::ln10 * x);
}
static Number log1pDerivative(Number x, Number, Number g) { return divideBySlope(g, 1 + x); }
static Number log2Derivative(Number x, Number, Number g) {
  return divideBySlope(g, std::numbers::ln2 * x);
}
/// Nowhere y^3, which may be infinite where the gradient is not: norms scale what they take the root
/// of, and the gradient in the end.
static Number rsqrtDerivative(Number, Number y, Number g) {
  return scaleBySlope(scaleBySlope(g, y), -0.5 * (y * y));
}
static Number sinDerivative(Number x, Number, Number g) { return g * x.apply<math::CosOp>(); }
static Number sinhDerivative(Number x, Number, Number g) {
  return scaleBySlope(g, x.apply<math::CoshOp>());
}
static Number sqrtDerivative(Number, Number y, Number g) { return divideBySlope(g, 2 * y); }
static Number tanDerivative(Number, Number y, Number g) { return g * (1 + y * y); }
static Number tanhDerivative(Number, Number y, Number g) { return g * ((1 - y) * (1 + y)); }

static void atan2(math::Atan2Op op, Number g, Numbers &numbers) {
  Number y = numbers(op.getLhs()), x = numbers(op.getRhs());
  numbers.add(op.getLhs(), [&] { return g * (x / (x * x + y * y)); });
  numbers.add(op.getRhs(), [&] { return -(g * (y / (x * x + y * y))); });
}

static void clampf(math::ClampFOp op, Number g, Numbers &numbers) {
  Number x = numbers(op.getValue()), min = numbers(op.getMin()), max = numbers(op.getMax());
  Number zero = g.constant(0);
  numbers.add(op.getValue(), [&] {
    Number notAbove = zero.where(CmpFPredicate::OGT, x, max, g);
    return zero.where(CmpFPredicate::OLT, x, min, notAbove);
  });
  numbers.add(op.getMin(), [&] {
    Number below = g.where(CmpFPredicate::OLT, x, min, zero);
    return zero.where(CmpFPredicate::OGT, min, max, below);
  });
  numbers.add(op.getMax(), [&] {
    Number above = g.where(CmpFPredicate::OGT, x, max, zero);
    return g.where(CmpFPredicate::OGT, min, max, above);
  });
}

/// Differentiates |a| with the sign of b, which is a step function of b.
static void copysign(math::CopySignOp op, Number g, Numbers &numbers) {
  numbers.add(op.getLhs(), [&] {
    Number a = numbers(op.getLhs()), b = numbers(op.getRhs()), one = a.constant(1);
    return unlessZero(a, g * copySign(one, a) * copySign(one, b));
  });
}

static void fma(math::FmaOp op, Number g, Numbers &numbers) {
  numbers.add(op.getA(), [&] { return g * numbers(op.getB()); });
  numbers.add(op.getB(), [&] { return g * numbers(op.getA()); });
  numbers.add(op.getC(), [&] { return g; });
}

/// Differentiates x^n: n x^(n-1), which for n = 0 is 0 even if x^-1 is infinite.
static void fpowi(math::FPowIOp op, Number g, Numbers &numbers) {
  ImplicitLocOpBuilder &builder = numbers.builder;
  Value exponent = op.getRhs();
  auto attribute = builder.getOneAttr(exponent.getType());
  Value one = arith::ConstantOp::create(builder, attribute);
  Value less = builder.createOrFold<arith::SubIOp>(exponent, one);
  Number factor = g.build<arith::SIToFPOp>(op.getType(), exponent);
  numbers.add(op.getLhs(), [&] {
    Number power = g.build<math::FPowIOp>(op.getLhs(), less);
    return unlessZero(factor, g * (factor * power));
  });
}

static void powf(math::PowFOp op, Number g, Numbers &numbers) {
  Number x = numbers(op.getLhs()), power = numbers(op.getRhs());
  numbers.add(op.getLhs(),
              [&] { return unlessZero(power, g * (power * x.apply<math::PowFOp>(power - 1))); });
  // 0^p is 0 for all p > 0 around, and log(0) no factor of that.
  numbers.add(op.getRhs(), [&] {
    Number plain = g * (numbers(op.getResult()) * x.apply<math::LogOp>());
    return unlessZero(x, plain).where(CmpFPredicate::OGE, power, power.constant(0), plain);
  });
}

namespace {
/// Differentiates both results, sine and cosine.
struct SincosRule : DifferentiableOpInterface::ExternalModel<SincosRule, math::SincosOp> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents,
                         Cotangents &sums) const {
    auto sincos = cast<math::SincosOp>(op);
    Numbers numbers(builder, op, sums);
    if (Value g = cotangents[0])
      numbers.add(sincos.getOperand(), [&] { return numbers(g) * numbers(sincos.getCos()); });
    if (Value g = cotangents[1])
      numbers.add(sincos.getOperand(), [&] { return -(numbers(g) * numbers(sincos.getSin())); });
    return success();
  }
};
} // namespace

void weir::autodiff::registerMathRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    using namespace math;
    AbsFOp::attachInterface<UnaryRule<AbsFOp, absf>>(*context);
    AcosOp::attachInterface<UnaryRule<AcosOp, acosDerivative>>(*context);
    AcoshOp::attachInterface<UnaryRule<AcoshOp, acoshDerivative>>(*context);
    AsinOp::attachInterface<UnaryRule<AsinOp, asinDerivative>>(*context);
    AsinhOp::attachInterface<UnaryRule<AsinhOp, asinhDerivative>>(*context);
    AtanOp::attachInterface<UnaryRule<AtanOp, atanDerivative>>(*context);
    AtanhOp::attachInterface<UnaryRule<AtanhOp, atanhDerivative>>(*context);
    CbrtOp::attachInterface<UnaryRule<CbrtOp, cbrtDerivative>>(*context);
    CosOp::attachInterface<UnaryRule<CosOp, cosDerivative>>(*context);
    CoshOp::attachInterface<UnaryRule<CoshOp, coshDerivative>>(*context);
    ErfOp::attachInterface<UnaryRule<ErfOp, erfDerivative>>(*context);
    ErfcOp::attachInterface<UnaryRule<ErfcOp, erfcDerivative>>(*context);
    ExpOp::attachInterface<UnaryRule<ExpOp, expDerivative>>(*context);
    Exp2Op::attachInterface<UnaryRule<Exp2Op, exp2Derivative>>(*context);
    ExpM1Op::attachInterface<UnaryRule<ExpM1Op, expm1Derivative>>(*context);
    LogOp::attachInterface<UnaryRule<LogOp, logDerivative>>(*context);
    Log10Op::attachInterface<UnaryRule<Log10Op, log10Derivative>>(*context);
    Log1pOp::attachInterface<UnaryRule<Log1pOp, log1pDerivative>>(*context);
    Log2Op::attachInterface<UnaryRule<Log2Op, log2Derivative>>(*context);
    RsqrtOp::attachInterface<UnaryRule<RsqrtOp, rsqrtDerivative>>(*context);
    SinOp::attachInterface<UnaryRule<SinOp, sinDerivative>>(*context);
    SinhOp::attachInterface<UnaryRule<SinhOp, sinhDerivative>>(*context);
    SqrtOp::attachInterface<UnaryRule<SqrtOp, sqrtDerivative>>(*context);
    TanOp::attachInterface<UnaryRule<TanOp, tanDerivative>>(*context);
    TanhOp::attachInterface<UnaryRule<TanhOp, tanhDerivative>>(*context);
    Atan2Op::attachInterface<NumberRule<Atan2Op, atan2>>(*context);
    ClampFOp::attachInterface<NumberRule<ClampFOp, clampf>>(*context);
    CopySignOp::attachInterface<NumberRule<CopySignOp, copysign>>(*context);
    FmaOp::attachInterface<NumberRule<FmaOp, fma>>(*context);
    FPowIOp::attachInterface<NumberRule<FPowIOp, fpowi>>(*context);
    PowFOp::attachInterface<NumberRule<PowFOp, powf>>(*context);
    SincosOp::attachInterface<SincosRule>(*context);
    CeilOp::attachInterface<StepRule<CeilOp>>(*context);
    FloorOp::attachInterface<StepRule<FloorOp>>(*context);
    RoundOp::attachInterface<StepRule<RoundOp>>(*context);
    RoundEvenOp::attachInterface<StepRule<RoundEvenOp>>(*context);
    TruncOp::attachInterface<StepRule<TruncOp>>(*context);
  });
}
