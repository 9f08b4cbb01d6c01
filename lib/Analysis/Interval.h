//===- Interval.h - What range an affine expression has ---------*- C++ -*-===//

#ifndef WEIR_LIB_ANALYSIS_INTERVAL_H
#define WEIR_LIB_ANALYSIS_INTERVAL_H

#include "IntegerSystem.h"
#include "weir/Analysis/AccessMap.h"

namespace weir {

/// Sums and products that are not known where an operand isn't, or on overflow.
std::optional<int64_t> addBounds(std::optional<int64_t> a, std::optional<int64_t> b);
std::optional<int64_t> scaleBound(std::optional<int64_t> bound, int64_t factor);

/// Returns what is in both; its lower bound is above its upper one where nothing is.
Interval intersect(Interval a, Interval b);

/// The range of `expr` by the ranges of its variables, each for itself.
Interval getInterval(mlir::AffineExpr expr, llvm::ArrayRef<MapVariable> variables);

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_INTERVAL_H
