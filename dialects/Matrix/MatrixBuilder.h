//===- MatrixBuilder.h - Loops over the elements of matrices ----*- C++ -*-===//

#ifndef WEIR_DIALECTS_MATRIX_MATRIXBUILDER_H
#define WEIR_DIALECTS_MATRIX_MATRIXBUILDER_H

#include "dialects/Autodiff/Number.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace weir::matrix {

using autodiff::Number;

/// A boolean of a body, whose operators build `arith` ops.
class Condition {
public:
  Condition(mlir::ImplicitLocOpBuilder &builder, mlir::Value value)
      : builder(&builder), value(value) {}

  mlir::Value choose(mlir::Value chosen, mlir::Value other) const {
    return mlir::arith::SelectOp::create(*builder, value, chosen, other);
  }
  Number choose(Number chosen, Number other) const {
    return Number(*builder, choose(chosen.get(), other.get()));
  }
  friend Condition operator&(Condition a, Condition b) {
    return {*a.builder, mlir::arith::AndIOp::create(*a.builder, a.value, b.value)};
  }
  friend Condition operator|(Condition a, Condition b) {
    return {*a.builder, mlir::arith::OrIOp::create(*a.builder, a.value, b.value)};
  }

private:
  mlir::ImplicitLocOpBuilder *builder;
  mlir::Value value;
};

/// A number of a row, a column or a trip, whose operators build `arith` ops.
class Index {
public:
  Index(mlir::ImplicitLocOpBuilder &builder, mlir::Value value) : builder(&builder), value(value) {}

  mlir::Value get() const { return value; }
  Index constant(int64_t number) const {
    return {*builder, mlir::arith::ConstantIndexOp::create(*builder, number)};
  }
  mlir::Value toInteger() const {
    return mlir::arith::IndexCastOp::create(*builder, builder->getI32Type(), value);
  }
  Condition compare(mlir::arith::CmpIPredicate predicate, Index other) const {
    return {*builder, mlir::arith::CmpIOp::create(*builder, predicate, value, other.value)};
  }
  template <typename Op> Index apply(Index other) const {
    return {*builder, Op::create(*builder, value, other.value)};
  }
  Index where(Condition condition, Index other) const {
    return {*builder, condition.choose(value, other.value)};
  }

  friend Index operator+(Index a, Index b) { return a.apply<mlir::arith::AddIOp>(b); }
  friend Index operator-(Index a, Index b) { return a.apply<mlir::arith::SubIOp>(b); }
  friend Index operator+(Index a, int64_t b) { return a + a.constant(b); }
  friend Condition operator==(Index a, Index b) {
    return a.compare(mlir::arith::CmpIPredicate::eq, b);
  }
  friend Condition operator!=(Index a, Index b) {
    return a.compare(mlir::arith::CmpIPredicate::ne, b);
  }
  friend Condition operator<(Index a, Index b) {
    return a.compare(mlir::arith::CmpIPredicate::slt, b);
  }
  friend Condition operator>(Index a, Index b) { return b < a; }
  friend Condition operator>=(Index a, Index b) {
    return a.compare(mlir::arith::CmpIPredicate::sge, b);
  }

private:
  mlir::ImplicitLocOpBuilder *builder;
  mlir::Value value;
};

inline Condition compare(mlir::ImplicitLocOpBuilder &builder, mlir::arith::CmpFPredicate predicate,
                         Number a, Number b) {
  return {builder, mlir::arith::CmpFOp::create(builder, predicate, a.get(), b.get())};
}

/// A tensor that a body reads or makes, and the loop of each of its dimensions.
struct Operand {
  mlir::Value tensor;
  llvm::SmallVector<unsigned, 4> loops;
};

/// The place in the loops that a body computes.
class Place {
public:
  Place(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange values)
      : b(builder), values(values) {}

  /// Returns the number of a loop's trip.
  Index at(unsigned loop);
  /// Returns the element of an operand, or, behind the operands, what a result was before.
  Number in(unsigned number) { return Number(b, values[number]); }
  mlir::Value getValue(unsigned number) { return values[number]; }
  /// Returns the element of any tensor at `indices`.
  Number read(mlir::Value tensor, llvm::ArrayRef<Index> indices);
  /// Returns an integer of any tensor as an index of `size` elements, in range.
  Index readIndex(mlir::Value tensor, llvm::ArrayRef<Index> indices, int64_t size);
  Index constant(int64_t number) { return {b, mlir::arith::ConstantIndexOp::create(b, number)}; }

  mlir::ImplicitLocOpBuilder &b;

private:
  mlir::ValueRange values;
};

using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(Place &)>;

/// Builds ops on tensors of matrices [.., rows, columns].
class MatrixBuilder {
public:
  MatrixBuilder(mlir::OpBuilder &outside, mlir::Location loc) : b(loc, outside) {}

  /// Computes tensors of the loops' shape.
  llvm::SmallVector<mlir::Value> map(llvm::ArrayRef<int64_t> loops, mlir::TypeRange elements,
                                     llvm::ArrayRef<Operand> operands, Body body);
  mlir::Value map(llvm::ArrayRef<int64_t> loops, mlir::Type element,
                  llvm::ArrayRef<Operand> operands, llvm::function_ref<Number(Place &)> body);
  /// Computes tensors that have all loops but those in `reduced`, each from `starts`.
  llvm::SmallVector<mlir::Value> reduce(llvm::ArrayRef<int64_t> loops,
                                        llvm::ArrayRef<unsigned> reduced,
                                        llvm::ArrayRef<mlir::TypedAttr> starts,
                                        llvm::ArrayRef<Operand> operands, Body body);
  /// Adds up the body's values.
  mlir::Value sum(llvm::ArrayRef<int64_t> loops, llvm::ArrayRef<unsigned> reduced,
                  mlir::Type element, llvm::ArrayRef<Operand> operands,
                  llvm::function_ref<Number(Place &)> body);

  /// Multiplies matrices, each of them transposed before if that is said.
  mlir::Value multiply(mlir::Value x, mlir::Value y, bool transposesX = false,
                       bool transposesY = false);
  mlir::Value transpose(mlir::Value x);
  /// Computes each element of a matrix from `inputs` of its shape, its row and its column.
  mlir::Value each(llvm::ArrayRef<mlir::Value> inputs,
                   llvm::function_ref<Number(Place &, Index row, Index column)> body);
  /// Returns 1 on the diagonals and 0 elsewhere.
  mlir::Value identity(mlir::RankedTensorType type);
  /// Returns the part of each matrix from a row and a column on, of as many as given.
  mlir::Value cut(mlir::Value x, int64_t row, int64_t rows, int64_t column, int64_t columns);

  /// Returns all loops in order, for operands that have each as a dimension.
  static llvm::SmallVector<unsigned, 4> all(size_t count);

  /// Repeats `body` on what it makes, from `inits` on.
  llvm::SmallVector<mlir::Value>
  repeat(int64_t trips, llvm::ArrayRef<mlir::Value> inits,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(Index trip, mlir::ValueRange)> body);

  mlir::ImplicitLocOpBuilder b;

private:
  llvm::SmallVector<mlir::Value> generic(llvm::ArrayRef<int64_t> loops,
                                         llvm::ArrayRef<unsigned> reduced,
                                         llvm::ArrayRef<mlir::Value> outs,
                                         llvm::ArrayRef<Operand> operands, Body body);
};

inline llvm::ArrayRef<int64_t> getShape(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getShape();
}
inline bool isEmpty(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getNumElements() == 0;
}
inline int64_t getRows(mlir::Value matrix) { return getShape(matrix).take_back(2).front(); }
inline int64_t getColumns(mlir::Value matrix) { return getShape(matrix).back(); }

} // namespace weir::matrix

#endif // WEIR_DIALECTS_MATRIX_MATRIXBUILDER_H
