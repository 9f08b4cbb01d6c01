//===- RowBuilder.h - Ops over the rows of a tensor -------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_NORM_ROWBUILDER_H
#define WEIR_DIALECTS_NORM_ROWBUILDER_H

#include "dialects/Autodiff/Number.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallBitVector.h"

namespace weir::norm {

/// The dimensions of x that an operand has: all, those that stay, those that are reduced,
/// or none.
enum class Extent { Full, Rows, Columns, None };

/// An operand of an op over x.
struct Input {
  mlir::Value tensor;
  Extent extent;
};

/// Builds scalar computation on the inputs' elements.
using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>)>;

/// Builds ops over a tensor x, some dimensions of which are reduced.
class RowBuilder {
public:
  RowBuilder(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType x,
             int64_t firstReduced, int64_t numReduced);

  /// Returns a builder that reduces all dimensions but `axis`.
  static RowBuilder ofChannels(mlir::OpBuilder &builder, mlir::Location loc,
                               mlir::RankedTensorType x, int64_t axis);

  /// Returns the type of statistics.
  mlir::Type getType() const { return type; }

  /// Returns the number of elements of a row, as a constant.
  mlir::Value getCount();
  mlir::Value constant(double value);

  /// Computes each element of x from the body.
  mlir::Value full(llvm::ArrayRef<Input> inputs, mlir::Type element, Body body) {
    return map(inputs, Extent::Full, element, body);
  }

  /// Computes each row from the body.
  mlir::Value rows(llvm::ArrayRef<Input> inputs, mlir::Type element, Body body) {
    return map(inputs, Extent::Rows, element, body);
  }

  /// Adds up the body's values in each row.
  mlir::Value sum(llvm::ArrayRef<Input> inputs, Body body);
  /// Takes the largest of `start` and the body's values in each row; of two zeros, either.
  mlir::Value max(llvm::ArrayRef<Input> inputs, Body body,
                  double start = -std::numeric_limits<double>::infinity());

  /// Adds up the body's values over the rows. Rounds the sums to x's type.
  mlir::Value sumOfRows(llvm::ArrayRef<Input> inputs, Body body);

  /// Divides the rows' sums by the number of elements of a row.
  Input mean(mlir::Value sums);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  llvm::ArrayRef<int64_t> shape;
  llvm::SmallBitVector reduced;
  mlir::Type element, type;

  bool isIn(int64_t dim, Extent extent) const {
    if (extent == Extent::Full || extent == Extent::None)
      return extent == Extent::Full;
    return reduced.test(dim) == (extent == Extent::Columns);
  }
  llvm::SmallVector<int64_t> getShape(Extent extent) const;
  mlir::AffineMap getMap(Extent operand, Extent loops) const;
  mlir::Value map(llvm::ArrayRef<Input> inputs, Extent loops, mlir::Type element, Body body);
  template <typename Combine>
  mlir::Value reduce(llvm::ArrayRef<Input> inputs, Extent out, double start, Body body,
                     mlir::arith::FastMathFlags flags = mlir::arith::FastMathFlags::none);
  mlir::Value generic(
      llvm::ArrayRef<Input> inputs, Extent loops, mlir::Value out, Extent outExtent,
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>, mlir::Value)>
          body);
};

/// Converts a float to `type`, which is as wide or wider.
mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type type);
/// Rounds a float to `type`, which is as narrow or narrower.
mlir::Value narrow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type type);
llvm::SmallVector<autodiff::Number> getNumbers(mlir::ImplicitLocOpBuilder &builder,
                                               llvm::ArrayRef<mlir::Value> values);

} // namespace weir::norm

#endif // WEIR_DIALECTS_NORM_ROWBUILDER_H
