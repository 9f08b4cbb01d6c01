//===- Distance.h - How close two addresses can come ------------*- C++ -*-===//

#ifndef WEIR_LIB_ANALYSIS_DISTANCE_H
#define WEIR_LIB_ANALYSIS_DISTANCE_H

#include "Interval.h"

#include <map>

namespace weir {

/// Returns `second - first` with their constants in one, so that what is as far apart
/// elsewhere has the same difference.
mlir::AffineExpr getDifference(mlir::AffineExpr first, mlir::AffineExpr second);

/// What is known of two executions: by variable, the range of its value in the second
/// less its value in the first.
using Differences = std::map<unsigned, Interval>;

/// Whether `second - first` may lie in [least, most], the first evaluated in one
/// execution, the second in the other. Of the variables their ranges and differences
/// count, and quotients and rests by constants are told apart as digits of one number;
/// true says little, and false is a proof.
bool mayDifferBy(mlir::AffineExpr first, mlir::AffineExpr second, int64_t least, int64_t most,
                 llvm::ArrayRef<MapVariable> variables, const Differences &known = {});

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_DISTANCE_H
