//===- Number.h - Derivatives written as formulas ---------------*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_NUMBER_H
#define WEIR_LIB_AUTODIFF_NUMBER_H

#include "Sweep.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace weir::autodiff {

/// A float value, a scalar or a tensor, whose operators build `arith` ops.
class Number {
public:
  Number(mlir::ImplicitLocOpBuilder &builder, mlir::Value value)
      : builder(&builder), value(value) {}

  mlir::Value get() const { return value; }

  /// The same number in every element of this one's type.
  Number constant(double number) const {
    mlir::Type type = value.getType();
    mlir::Attribute attribute = mlir::FloatAttr::get(mlir::getElementTypeOrSelf(type), number);
    if (auto shaped = mlir::dyn_cast<mlir::ShapedType>(type))
      attribute = mlir::DenseElementsAttr::get(shaped, attribute);
    return build<mlir::arith::ConstantOp>(mlir::cast<mlir::TypedAttr>(attribute));
  }

  template <typename Op, typename... Operands> Number build(Operands... operands) const {
    return Number(*builder, Op::create(*builder, operands...));
  }
  /// The op of this number and others.
  template <typename Op, typename... Others> Number apply(Others... others) const {
    return build<Op>(value, others.get()...);
  }
  /// This number where `left predicate right` holds, else `other`.
  Number where(mlir::arith::CmpFPredicate predicate, Number left, Number right,
               Number other) const {
    mlir::Value condition =
        mlir::arith::CmpFOp::create(*builder, predicate, left.value, right.value);
    return build<mlir::arith::SelectOp>(condition, value, other.value);
  }

  /// 0 where both this number is 0 and `left predicate right` holds, else `other`.
  Number unlessNothing(mlir::arith::CmpFPredicate predicate, Number left, Number right,
                       Number other) const {
    Number zero = constant(0);
    Number guarded = zero.where(mlir::arith::CmpFPredicate::OEQ, *this, zero, other);
    return guarded.where(predicate, left, right, other);
  }

  friend Number operator+(Number a, Number b) { return a.apply<mlir::arith::AddFOp>(b); }
  friend Number operator-(Number a, Number b) { return a.apply<mlir::arith::SubFOp>(b); }
  friend Number operator*(Number a, Number b) { return a.apply<mlir::arith::MulFOp>(b); }
  friend Number operator/(Number a, Number b) { return a.apply<mlir::arith::DivFOp>(b); }
  friend Number operator-(Number a) { return a.apply<mlir::arith::NegFOp>(); }
  friend Number operator+(Number a, double b) { return a + a.constant(b); }
  friend Number operator-(Number a, double b) { return a - a.constant(b); }
  friend Number operator*(Number a, double b) { return a * a.constant(b); }
  friend Number operator+(double a, Number b) { return b.constant(a) + b; }
  friend Number operator-(double a, Number b) { return b.constant(a) - b; }
  friend Number operator*(double a, Number b) { return b.constant(a) * b; }

private:
  mlir::ImplicitLocOpBuilder *builder;
  mlir::Value value;
};

/// The cotangent g times a slope, or over a divisor that may be 0. Where g is 0 nothing flows,
/// be the slope infinite: what was computed is not chosen, or what reads it has saturated, as
/// a sigmoid does behind an exponential that overflows.
inline Number scaleBySlope(Number g, Number slope) {
  Number infinity = g.constant(std::numeric_limits<double>::infinity());
  return g.unlessNothing(mlir::arith::CmpFPredicate::OEQ, slope.apply<mlir::math::AbsFOp>(),
                         infinity, g * slope);
}
inline Number divideBySlope(Number g, Number divisor) {
  return g.unlessNothing(mlir::arith::CmpFPredicate::OEQ, divisor, g.constant(0), g / divisor);
}

/// What a rule for numbers works with.
class Numbers {
public:
  Numbers(mlir::OpBuilder &builder, mlir::Operation *op, Cotangents &sums)
      : builder(op->getLoc(), builder), sums(sums) {}

  Number operator()(mlir::Value value) { return Number(builder, value); }

  /// Adds what `part` builds to the cotangent of `operand`, if that is wanted.
  template <typename Part> void add(mlir::Value operand, Part part) {
    if (sums.isWanted(operand))
      sums.add(builder, builder.getLoc(), operand, part().get());
  }

  mlir::ImplicitLocOpBuilder builder;

private:
  Cotangents &sums;
};

/// A rule for an op of one float operand and one result: `derive` takes the operand,
/// the result and its cotangent.
template <typename Op, Number (*derive)(Number x, Number y, Number g)>
struct UnaryRule : DifferentiableOpInterface::ExternalModel<UnaryRule<Op, derive>, Op> {
  llvm::LogicalResult buildVjp(mlir::Operation *op, mlir::OpBuilder &builder,
                               llvm::ArrayRef<mlir::Value> cotangents, Cotangents &sums) const {
    Numbers numbers(builder, op, sums);
    mlir::Value x = op->getOperand(0);
    numbers.add(x, [&] {
      return derive(numbers(x), numbers(op->getResult(0)), numbers(cotangents.front()));
    });
    return llvm::success();
  }
};

/// A rule for an op of any operands and one result: `derive` takes its cotangent.
template <typename Op, void (*derive)(Op op, Number g, Numbers &numbers)>
struct NumberRule : DifferentiableOpInterface::ExternalModel<NumberRule<Op, derive>, Op> {
  llvm::LogicalResult buildVjp(mlir::Operation *op, mlir::OpBuilder &builder,
                               llvm::ArrayRef<mlir::Value> cotangents, Cotangents &sums) const {
    Numbers numbers(builder, op, sums);
    derive(mlir::cast<Op>(op), numbers(cotangents.front()), numbers);
    return llvm::success();
  }
};

/// The rule of a step function: its derivative is 0 wherever it has one.
template <typename Op>
struct StepRule : DifferentiableOpInterface::ExternalModel<StepRule<Op>, Op> {
  llvm::LogicalResult buildVjp(mlir::Operation *, mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>,
                               Cotangents &) const {
    return llvm::success();
  }
};

} // namespace weir::autodiff

#endif // WEIR_LIB_AUTODIFF_NUMBER_H
