//===- Distance.h - How close two addresses can come ------------*- C++ -*-===//

#ifndef WEIR_LIB_ANALYSIS_DISTANCE_H
#define WEIR_LIB_ANALYSIS_DISTANCE_H

#include "weir/Analysis/AccessMap.h"

namespace weir {

/// Returns `second - first` with their constants in one, so that what is as far apart
/// elsewhere has the same difference.
mlir::AffineExpr getDifference(mlir::AffineExpr first, mlir::AffineExpr second);

/// Whether `second - first` may lie in [least, most], each expression's variables
/// having values of their own. Expressions are taken for sums of terms that vary
/// freely in their ranges, so true says little, and false is a proof.
bool mayDifferBy(mlir::AffineExpr first, mlir::AffineExpr second, int64_t least, int64_t most,
                 llvm::ArrayRef<MapVariable> variables);

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_DISTANCE_H
