//===- Matrix.cpp - The matrix dialect ------------------------------------===//

#include "dialects/Matrix/Matrix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace weir::matrix;

#include "dialects/Matrix/MatrixDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Matrix/MatrixOps.cpp.inc"

void MatrixDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Matrix/MatrixOps.cpp.inc"
      >();
}

/// Checks that `a` is a tensor of matrices, of squares if `isSquare`.
static LogicalResult verifyMatrices(Operation *op, Value a, bool isSquare) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(a.getType()).getShape();
  if (shape.size() < 2)
    return op->emitOpError() << "has an operand of " << a.getType()
                             << "; expected dimensions of rows and columns";
  if (isSquare && shape.back() != shape[shape.size() - 2]) // C1
    return op->emitOpError() << "is of squares, got " << shape[shape.size() - 2] << " rows and "
                             << shape.back() << " columns";
  return success();
}

/// Checks that `value` has the batch of `a`, then `sizes`.
static LogicalResult verifyType(Operation *op, StringRef name, Value value, Value a,
                                ArrayRef<int64_t> sizes, Type element = {}) {
  auto type = cast<RankedTensorType>(a.getType());
  SmallVector<int64_t> shape(type.getShape().drop_back(2));
  llvm::append_range(shape, sizes);
  auto expected = RankedTensorType::get(shape, element ? element : type.getElementType());
  if (value.getType() != expected)
    return op->emitOpError() << name << " is " << value.getType() << ", expected " << expected;
  return success();
}

static std::pair<int64_t, int64_t> getSizes(Value a) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(a.getType()).getShape();
  return {shape[shape.size() - 2], shape.back()};
}

static int64_t getLast(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return shape.empty() ? 0 : shape.back();
}

LogicalResult CholeskyOp::verify() { return verifyMatrices(*this, getA(), true); }

template <typename Op> static LogicalResult verifySolve(Op op) {
  if (failed(verifyMatrices(op, op.getA(), true)) || failed(verifyMatrices(op, op.getB(), false)))
    return failure();
  return verifyType(op, "b", op.getB(), op.getA(),
                    {getSizes(op.getA()).first, getSizes(op.getB()).second}); // C2
}

LogicalResult TriangularSolveOp::verify() { return verifySolve(*this); }

LogicalResult SolveOp::verify() { return verifySolve(*this); }

LogicalResult LuOp::verify() {
  if (failed(verifyMatrices(*this, getA(), false)))
    return failure();
  auto [rows, columns] = getSizes(getA());
  Type i32 = IntegerType::get(getContext(), 32);
  if (failed(verifyType(*this, "pivots", getPivots(), getA(), std::min(rows, columns), i32)))
    return failure(); // C1
  return verifyType(*this, "permutation", getPermutation(), getA(), rows, i32);
}

LogicalResult HouseholderOp::verify() {
  if (failed(verifyMatrices(*this, getA(), false)))
    return failure();
  auto [rows, columns] = getSizes(getA());
  return verifyType(*this, "factors", getFactors(), getA(), std::min(rows, columns)); // C1
}

LogicalResult HouseholderProductOp::verify() {
  if (failed(verifyMatrices(*this, getPacked(), false)) ||
      failed(verifyMatrices(*this, getResult(), false)))
    return failure();
  auto [rows, columns] = getSizes(getPacked());
  int64_t count = getLast(getFactors()), made = getSizes(getResult()).second;
  if (count > std::min(rows, columns)) // C1
    return emitOpError() << "has " << count << " reflections of " << rows << " rows and " << columns
                         << " columns";
  if (made > rows) // C2
    return emitOpError() << "has " << made << " columns of a product with " << rows;
  if (failed(verifyType(*this, "factors", getFactors(), getPacked(), count)))
    return failure();
  return verifyType(*this, "result", getResult(), getPacked(), {rows, made});
}

/// Whether a basis of `k` of `all` vectors is as it is, or completed.
static bool isBasis(int64_t size, int64_t k, int64_t all) { return size == k || size == all; }

LogicalResult QrOp::verify() {
  for (Value each : {getA(), getQ(), getR()})
    if (failed(verifyMatrices(*this, each, false)))
      return failure();
  auto [rows, columns] = getSizes(getA());
  int64_t k = std::min(rows, columns), count = getSizes(getQ()).second;
  if (!isBasis(count, k, rows)) // C2
    return emitOpError() << "q has " << count << " columns, expected " << k << " or " << rows;
  if (failed(verifyType(*this, "q", getQ(), getA(), {rows, count}))) // C1
    return failure();
  return verifyType(*this, "r", getR(), getA(), {count, columns});
}

LogicalResult EighOp::verify() {
  if (failed(verifyMatrices(*this, getA(), true)))
    return failure();
  return verifyType(*this, "values", getValues(), getA(), getSizes(getA()).first); // C2
}

LogicalResult SvdOp::verify() {
  for (Value each : {getA(), getU(), getVt()})
    if (failed(verifyMatrices(*this, each, false)))
      return failure();
  auto [rows, columns] = getSizes(getA());
  int64_t k = std::min(rows, columns);
  int64_t left = getSizes(getU()).second, right = getSizes(getVt()).first;
  if (!isBasis(left, k, rows)) // C2
    return emitOpError() << "u has " << left << " columns, expected " << k << " or " << rows;
  if (!isBasis(right, k, columns))
    return emitOpError() << "vt has " << right << " rows, expected " << k << " or " << columns;
  if (failed(verifyType(*this, "u", getU(), getA(), {rows, left})) || // C1
      failed(verifyType(*this, "s", getS(), getA(), k)))
    return failure();
  return verifyType(*this, "vt", getVt(), getA(), {right, columns});
}
