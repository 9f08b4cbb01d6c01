//===- Norm.h - The norm dialect --------------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_NORM_NORM_H
#define WEIR_DIALECTS_NORM_NORM_H

#include "dialects/Autodiff/Differentiable.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Norm/NormDialect.h.inc"
#include "dialects/Norm/NormEnums.h.inc"
#define GET_OP_CLASSES
#include "dialects/Norm/NormOps.h.inc"

namespace weir::norm {

/// Returns the type of the scores of an attention with queries `q` and keys `k`: a row for each
/// query, of f64 if those are, else of f32.
mlir::RankedTensorType getScoresType(mlir::Value q, mlir::Value k);

/// A bias as low takes the place of a score: any of f32 is lost in it.
constexpr double lowestScore = -1e30;

} // namespace weir::norm

#endif // WEIR_DIALECTS_NORM_NORM_H
