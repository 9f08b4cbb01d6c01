//===- Expressions.h - Expressions evaluated at points -----------*- C++ -*-===//

#ifndef WEIR_TEST_UNIT_ANALYSIS_EXPRESSIONS_H
#define WEIR_TEST_UNIT_ANALYSIS_EXPRESSIONS_H

#include "weir/Analysis/AccessMap.h"
#include "llvm/Support/MathExtras.h"

#include <vector>

namespace weir::test {

/// A value of each variable.
using Point = llvm::SmallVector<int64_t>;

inline std::vector<MapVariable> makeVariables(llvm::ArrayRef<std::pair<int64_t, int64_t>> ranges) {
  std::vector<MapVariable> variables(ranges.size());
  for (auto [variable, range] : llvm::zip_equal(variables, ranges)) {
    variable.lower = range.first;
    variable.upper = range.second;
  }
  return variables;
}

inline int64_t evaluate(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> point) {
  if (auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(expr))
    return point[dim.getPosition()];
  auto binary = mlir::cast<mlir::AffineBinaryOpExpr>(expr);
  int64_t left = evaluate(binary.getLHS(), point), right = evaluate(binary.getRHS(), point);
  switch (expr.getKind()) {
  case mlir::AffineExprKind::Add:
    return left + right;
  case mlir::AffineExprKind::Mul:
    return left * right;
  case mlir::AffineExprKind::Mod:
    return ((left % right) + right) % right;
  case mlir::AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(left, right);
  default:
    return llvm::divideFloorSigned(left, right);
  }
}

/// Returns every point of the variables' ranges.
inline std::vector<Point> enumerate(llvm::ArrayRef<MapVariable> variables) {
  std::vector<Point> points;
  Point point;
  for (const MapVariable &variable : variables)
    point.push_back(*variable.lower);
  while (true) {
    points.push_back(point);
    size_t at = 0;
    while (at < point.size() && point[at] == *variables[at].upper) {
      point[at] = *variables[at].lower;
      ++at;
    }
    if (at == point.size())
      return points;
    ++point[at];
  }
}

} // namespace weir::test

#endif // WEIR_TEST_UNIT_ANALYSIS_EXPRESSIONS_H
