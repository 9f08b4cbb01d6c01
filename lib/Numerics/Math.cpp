//===- Math.cpp - Replace math ops by Weir's own functions ----------------===//
//
// MathFunctions.h has the functions. This file rewrites the ops.
//
//===----------------------------------------------------------------------===//

#include "weir/Numerics/Math.h"

#include "MathFunctions.h"
#include "dialects/Schedule/Promises.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace weir::expression;

/// Whether there are functions for `type`: f32, f64 or a vector of them.
static bool isCovered(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    type = vector.getElementType();
  return type.isF32() || type.isF64();
}

namespace {
/// Rewrites an op whose first operand is covered.
template <typename Op> struct Expansion : OpRewritePattern<Op> {
  Expansion(MLIRContext *context, bool fuses) : OpRewritePattern<Op>(context), fuses(fuses) {}

  /// Returns the op's results, or nothing if the op stays.
  virtual SmallVector<Value> expand(Op op, const Place &at) const = 0;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    Type type = op->getOperand(0).getType();
    if (!isCovered(type))
      return rewriter.notifyMatchFailure(op, "neither of f32 nor of f64");
    SmallVector<Value> results = expand(op, Place(rewriter, op.getLoc(), type, fuses));
    if (results.empty())
      return rewriter.notifyMatchFailure(op, "has no expansion");
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  bool fuses;
};

template <typename Op, Float (*function)(Float)> struct ExpandUnary : Expansion<Op> {
  using Expansion<Op>::Expansion;
  SmallVector<Value> expand(Op op, const Place &at) const override {
    return {function({&at, op.getOperand()}).value};
  }
};

template <typename Op, Float (*function)(Float, Float)> struct ExpandBinary : Expansion<Op> {
  using Expansion<Op>::Expansion;
  SmallVector<Value> expand(Op op, const Place &at) const override {
    return {function({&at, op.getLhs()}, {&at, op.getRhs()}).value};
  }
};

template <typename Op, Bool (*function)(Float)> struct ExpandClass : Expansion<Op> {
  using Expansion<Op>::Expansion;
  SmallVector<Value> expand(Op op, const Place &at) const override {
    return {function({&at, op.getOperand()}).value};
  }
};

struct ExpandExp : Expansion<math::ExpOp> {
  using Expansion::Expansion;
  SmallVector<Value> expand(math::ExpOp op, const Place &at) const override {
    Float x{&at, op.getOperand()};
    return {op->hasAttr(weir::schedule::notPositiveAttrName) ? expandExpOfNotPositive(x).value
                                                             : expandExp(x).value};
  }
};

struct ExpandSinCos : Expansion<math::SincosOp> {
  using Expansion::Expansion;
  SmallVector<Value> expand(math::SincosOp op, const Place &at) const override {
    auto [sin, cos] = expandSinCos({&at, op.getOperand()});
    return {sin.value, cos.value};
  }
};

/// The targets round f32 themselves, but SPIR-V not f64.
struct ExpandRoundOfF64 : Expansion<math::RoundOp> {
  using Expansion::Expansion;
  SmallVector<Value> expand(math::RoundOp op, const Place &at) const override {
    if (!at.format.isWide())
      return {};
    return {expandRound({&at, op.getOperand()}).value};
  }
};

struct ExpandClamp : Expansion<math::ClampFOp> {
  using Expansion::Expansion;
  SmallVector<Value> expand(math::ClampFOp op, const Place &at) const override {
    Value bounded =
        arith::MaximumFOp::create(at.builder, at.loc, op.getValue(), op.getMin()).getResult();
    return {arith::MinimumFOp::create(at.builder, at.loc, bounded, op.getMax()).getResult()};
  }
};

struct ExpandFPowI : Expansion<math::FPowIOp> {
  using Expansion::Expansion;
  SmallVector<Value> expand(math::FPowIOp op, const Place &at) const override;
};
} // namespace

/// Multiplies from the lowest bit of the exponent upwards: squares of x by repeated
/// squaring, each multiplied from the right onto the product of those before.
static Float multiplied(Float x, const APInt &exponent) {
  Float one = literal(x, 1.0), square = x, product = one;
  bool empty = true;
  for (uint64_t left = exponent.abs().getZExtValue(); left; left >>= 1) {
    if (left & 1) {
      product = empty ? square : product * square;
      empty = false;
    }
    if (left > 1)
      square = square * square;
  }
  return exponent.isNegative() ? one / product : product;
}

SmallVector<Value> ExpandFPowI::expand(math::FPowIOp op, const Place &at) const {
  Float x{&at, op.getLhs()};
  Value n = op.getRhs();
  APInt exponent;
  if (matchPattern(n, m_ConstantInt(&exponent)) && exponent.abs().ule(uint64_t(64)))
    return {multiplied(x, exponent).value};
  auto element = dyn_cast<IntegerType>(getElementTypeOrSelf(n));
  if (!element || element.getWidth() > 64)
    return {};

  OpBuilder &builder = at.builder;
  auto constant = [&](const APInt &value) {
    return at.constant(n.getType(), builder.getIntegerAttr(element, value));
  };
  int width = at.format.width, given = int(element.getWidth());
  Value last = arith::AndIOp::create(builder, at.loc, n, constant(APInt(given, 1)));
  Value odd = arith::CmpIOp::create(builder, at.loc, arith::CmpIPredicate::ne, last,
                                    constant(APInt(given, 0)));
  if (given >= width) {
    // The powers of all but 1 and -1 have long been zero or infinite.
    APInt limit = APInt::getOneBitSet(given, width - 1) - APInt::getOneBitSet(given, width / 4);
    n = arith::MinSIOp::create(builder, at.loc, n, constant(limit));
    n = arith::MaxSIOp::create(builder, at.loc, n, constant(-limit));
  }
  if (given > width)
    n = arith::TruncIOp::create(builder, at.loc, at.ints, n);
  else if (given < width)
    n = arith::ExtSIOp::create(builder, at.loc, at.ints, n);
  return {expandPow(x, Int{&at, n}, Bool{&at, odd}).value};
}

void weir::populateMathExpansionPatterns(RewritePatternSet &patterns, bool fuses) {
  using namespace math;
  patterns.add<ExpandUnary<AcosOp, expandAcos>, ExpandUnary<AcoshOp, expandAcosh>,
               ExpandUnary<AsinOp, expandAsin>, ExpandUnary<AsinhOp, expandAsinh>,
               ExpandUnary<AtanOp, expandAtan>, ExpandUnary<AtanhOp, expandAtanh>,
               ExpandUnary<CbrtOp, expandCbrt>, ExpandUnary<CosOp, expandCos>,
               ExpandUnary<CoshOp, expandCosh>, ExpandUnary<ErfOp, expandErf>,
               ExpandUnary<ErfcOp, expandErfc>, ExpandUnary<Exp2Op, expandExp2>,
               ExpandUnary<ExpM1Op, expandExpm1>, ExpandExp, ExpandUnary<Log10Op, expandLog10>,
               ExpandUnary<Log1pOp, expandLog1p>, ExpandUnary<Log2Op, expandLog2>,
               ExpandUnary<LogOp, expandLog>, ExpandUnary<RsqrtOp, expandRsqrt>,
               ExpandUnary<SinOp, expandSin>, ExpandUnary<SinhOp, expandSinh>,
               ExpandUnary<SqrtOp, expandSqrt>, ExpandUnary<TanOp, expandTan>,
               ExpandUnary<TanhOp, expandTanh>, ExpandBinary<Atan2Op, expandAtan2>,
               ExpandBinary<PowFOp, expandPow>, ExpandBinary<arith::RemFOp, expandRemainder>,
               ExpandClass<IsFiniteOp, isFinite>, ExpandClass<IsInfOp, isInfinite>,
               ExpandClass<IsNaNOp, isNaN>, ExpandClass<IsNormalOp, isNormal>, ExpandSinCos,
               ExpandRoundOfF64, ExpandClamp, ExpandFPowI>(patterns.getContext(), fuses);
}
