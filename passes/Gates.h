//===- Gates.h - Checks that several gates share ----------------*- C++ -*-===//
//
// A compilation may start at any level, so a gate checks what the levels before
// it promised, too. Each function reports all problems it finds.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_GATES_H
#define WEIR_PASSES_GATES_H

#include "mlir/Pass/Pass.h"
#include "weir/Analysis/CommandList.h"

namespace weir {

/// Checks a module of the `graph` or `gradient` level, as `level` says: functions of
/// one block on ranked tensors of static shape, with supported ops and types.
mlir::LogicalResult verifyGraph(mlir::ModuleOp module, llvm::StringRef level);

/// Checks what every level from `dispatches` on has: functions on flat buffers around one
/// command list, kernels with declared effects, all within the profile's limits.
mlir::LogicalResult verifyCommands(mlir::ModuleOp module, Effects &effects);

/// A command list's accesses and their hazards.
struct ListHazards {
  CommandList list;
  std::vector<Hazard> hazards;
};

/// Checks what every level from `placed` on has: operands are bytes of allocations, waves
/// rise in recorded order without hazards inside, slots live together share no bytes.
/// Returns the lists and hazards of each function in `found`.
mlir::LogicalResult verifyPlacement(mlir::ModuleOp module, Effects &effects, Views &views,
                                    llvm::DenseMap<mlir::Operation *, ListHazards> &found);

/// Rejects barriers, signals and waits, which levels before `ordered` do not have.
mlir::LogicalResult verifyNoBarriers(mlir::ModuleOp module);

} // namespace weir

#endif // WEIR_PASSES_GATES_H
