//===- Number.h - Formulas that build arith ops -----------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_AUTODIFF_NUMBER_H
#define WEIR_DIALECTS_AUTODIFF_NUMBER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace weir::autodiff {

/// A float value, a scalar or a tensor, whose operators build `arith` ops.
class Number {
public:
  Number(mlir::ImplicitLocOpBuilder &builder, mlir::Value value)
      : builder(&builder), value(value) {}

  mlir::Value get() const { return value; }

  /// Returns `number` as a constant of this one's type, in every element.
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
  /// Creates `Op` on this number and others.
  template <typename Op, typename... Others> Number apply(Others... others) const {
    return build<Op>(value, others.get()...);
  }
  /// Returns this number where `left predicate right` holds, else `other`.
  Number where(mlir::arith::CmpFPredicate predicate, Number left, Number right,
               Number other) const {
    mlir::Value condition =
        mlir::arith::CmpFOp::create(*builder, predicate, left.value, right.value);
    return build<mlir::arith::SelectOp>(condition, value, other.value);
  }

  /// Returns 0 where both this number is 0 and `left predicate right` holds, else `other`.
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

} // namespace weir::autodiff

#endif // WEIR_DIALECTS_AUTODIFF_NUMBER_H
