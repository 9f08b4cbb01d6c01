//===- Programs.h - Plans of entries that consist of segments ---*- C++ -*-===//

#ifndef WEIR_PASSES_EMITTED_PROGRAMS_H
#define WEIR_PASSES_EMITTED_PROGRAMS_H

#include "mlir/IR/BuiltinOps.h"
#include "weir/Artifact/Plan.h"

namespace weir {

/// Returns the plan of an entry of `weir.programs`, whose segments are at the `emitted` level.
/// Errors: reported, where a segment has no plan.
mlir::FailureOr<Plan> getProgramPlan(mlir::ModuleOp module, mlir::NamedAttribute program,
                                     const Manifest &manifest);

} // namespace weir

#endif // WEIR_PASSES_EMITTED_PROGRAMS_H
