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
