//===- Distance.h - How close two addresses can come ------------*- C++ -*-===//

#ifndef WEIR_LIB_ANALYSIS_DISTANCE_H
#define WEIR_LIB_ANALYSIS_DISTANCE_H

#include "Interval.h"

#include <map>

namespace weir {

/// Returns `second - first` with one constant, so that equal distances are equal expressions.
mlir::AffineExpr getDifference(mlir::AffineExpr first, mlir::AffineExpr second);

/// Known differences between two executions: by variable, the range of its value in the second
/// minus its value in the first.
using Differences = std::map<unsigned, Interval>;

/// Whether `second - first` may lie in [min, max], the first evaluated in one execution, the second
/// in the other. Uses the ranges and differences of variables, and knows quotients and rests of one
/// number as its digits. False is a proof, true is none.
bool mayDifferBy(mlir::AffineExpr first, mlir::AffineExpr second, int64_t min, int64_t max,
                 llvm::ArrayRef<MapVariable> variables, const Differences &known = {});

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_DISTANCE_H
