//===- Gates.h - What several gates check -----------------------*- C++ -*-===//
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

/// At `graph` and `gradient`, of which `level` is the name: functions of one
/// block on ranked tensors of static shape, of supported ops and types.
mlir::LogicalResult verifyGraph(mlir::ModuleOp module, llvm::StringRef level);

/// From `dispatches` on: functions on flat buffers around one command list,
/// kernels with their effects declared, all within the profile's limits.
mlir::LogicalResult verifyCommands(mlir::ModuleOp module, Effects &effects);

/// A command list's accesses and their hazards.
struct ListHazards {
  CommandList list;
  std::vector<Hazard> hazards;
};

/// From `placed` on: operands are bytes of allocations, waves rise in recorded
/// order without hazards inside, slots live together share no bytes. Where it holds
/// `found` has what was found on the way, by function.
mlir::LogicalResult verifyPlacement(mlir::ModuleOp module, Effects &effects, Views &views,
                                    llvm::DenseMap<mlir::Operation *, ListHazards> &found);

/// Rejects barriers, signals and waits, which levels before `ordered` do not have.
mlir::LogicalResult verifyNoBarriers(mlir::ModuleOp module);

} // namespace weir

#endif // WEIR_PASSES_GATES_H
