//===- Interval.h - What range an affine expression has ---------*- C++ -*-===//

#ifndef WEIR_LIB_ANALYSIS_INTERVAL_H
#define WEIR_LIB_ANALYSIS_INTERVAL_H

#include "IntegerSystem.h"
#include "weir/Analysis/AccessMap.h"

namespace weir {

/// Returns the sum or product of bounds; nothing if an operand is missing, or on overflow.
std::optional<int64_t> addBounds(std::optional<int64_t> a, std::optional<int64_t> b);
std::optional<int64_t> scaleBound(std::optional<int64_t> bound, int64_t factor);

/// Returns the values that are in both; if there are none, the lower bound is above the upper one.
Interval intersect(Interval a, Interval b);

/// Returns the range of `expr`, judged by the range of each variable alone.
Interval getInterval(mlir::AffineExpr expr, llvm::ArrayRef<MapVariable> variables);

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_INTERVAL_H
