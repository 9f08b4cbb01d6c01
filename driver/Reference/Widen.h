//===- Widen.h - Every float becomes f64 ------------------------*- C++ -*-===//

#ifndef WEIR_DRIVER_REFERENCE_WIDEN_H
#define WEIR_DRIVER_REFERENCE_WIDEN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weir {

/// Makes every float of `function` f64, tensors and constants included;
/// extensions and truncations vanish.
/// Errors: failure with a diagnostic at a bitcast between floats and integers,
///         whose bits have no f64 counterpart.
mlir::LogicalResult widenToFloat64(mlir::func::FuncOp function);

} // namespace weir

#endif // WEIR_DRIVER_REFERENCE_WIDEN_H
