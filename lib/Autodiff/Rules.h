//===- Rules.h - Derivatives written as formulas ----------------*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_RULES_H
#define WEIR_LIB_AUTODIFF_RULES_H

#include "Sweep.h"
#include "dialects/Autodiff/Number.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace weir::autodiff {

/// Multiplies the cotangent g by a slope. A zero g gives 0 even if the slope is infinite:
/// the computed value was not chosen, or its reader has saturated, as a sigmoid does after
/// an exponential that overflows.
inline Number scaleBySlope(Number g, Number slope) {
  Number infinity = g.constant(std::numeric_limits<double>::infinity());
  return g.unlessNothing(mlir::arith::CmpFPredicate::OEQ, slope.apply<mlir::math::AbsFOp>(),
                         infinity, g * slope);
}
inline Number divideBySlope(Number g, Number divisor) {
  return g.unlessNothing(mlir::arith::CmpFPredicate::OEQ, divisor, g.constant(0), g / divisor);
}

/// The builder and cotangents that a rule for numbers works with.
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

#endif // WEIR_LIB_AUTODIFF_RULES_H
