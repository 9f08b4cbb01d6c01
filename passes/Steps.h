//===- Steps.h - What passes do to one function -----------------*- C++ -*-===//
//
// For a pass that tries out what others would make of it.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_STEPS_H
#define WEIR_PASSES_STEPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "weir/Analysis/CommandList.h"

namespace weir {

/// On a `schedule.kernel`: it makes again what is that result of the kernel before it.
/// On a dispatch: that operand of the command before it.
inline constexpr llvm::StringLiteral spareAttrName = "weir.spare";

/// Erases the dispatches that make values again which others make, and the kernels
/// that nobody else uses.
void dropSpares(mlir::ModuleOp module);

/// weir-schedule: in the program's order, or one for which fewer bytes are live.
mlir::LogicalResult scheduleCommands(mlir::func::FuncOp function, Effects &effects, Views &views,
                                     bool forMemory);

/// weir-assign-queues, to `count` of them.
mlir::LogicalResult assignQueues(mlir::func::FuncOp function, Effects &effects, Views &views,
                                 int64_t count);

/// weir-donate-buffers, with a remark for each pair if `report`.
mlir::LogicalResult donateBuffers(mlir::func::FuncOp function, Effects &effects, Views &views,
                                  InPlaceProofs &proofs, bool report);

/// The arena that weir-plan-memory would make. Permissions and values that no command
/// uses are gone from the function behind that.
mlir::FailureOr<int64_t> getArenaBytes(mlir::func::FuncOp function, Effects &effects, Views &views,
                                       InPlaceProofs &proofs, int64_t effort);

} // namespace weir

#endif // WEIR_PASSES_STEPS_H
