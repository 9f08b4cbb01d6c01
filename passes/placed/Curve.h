//===- Curve.h - The range of choices between bytes and work ----*- C++ -*-===//

#ifndef WEIR_PASSES_PLACED_CURVE_H
#define WEIR_PASSES_PLACED_CURVE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "weir/Order/Limit.h"

namespace weir {

/// Gives the function the attribute `weir.curve`: a dictionary for each point.
void setCurve(mlir::func::FuncOp function, const std::vector<CurvePoint> &curve);

/// Removes the attribute. Returns what it says; nothing if there is none.
std::vector<CurvePoint> takeCurve(mlir::func::FuncOp function);

} // namespace weir

#endif // WEIR_PASSES_PLACED_CURVE_H
