//===- IntegerRanges.h - Ranges of a kernel's integers -----------*- C++ -*-===//

#ifndef WEIR_LIB_ANALYSIS_INTEGERRANGES_H
#define WEIR_LIB_ANALYSIS_INTEGERRANGES_H

#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

#include <optional>

namespace weir {

/// The ranges that MLIR's integer range analysis infers for the values of one function's body.
/// Functions that it calls are not followed.
///
/// Errors: where the analysis itself fails no range is known, also none that it had inferred before
///         it failed, and a warning on the function says so. Fewer ranges are safe: more values
///         then vary, and more accesses may meet.
class IntegerRanges {
public:
  explicit IntegerRanges(mlir::FunctionOpInterface function);

  /// Returns the range of `value`, or nothing where none is known.
  std::optional<mlir::ConstantIntRanges> get(mlir::Value value) const;

private:
  mlir::DataFlowSolver solver;
  bool isKnown = false;
};

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_INTEGERRANGES_H
