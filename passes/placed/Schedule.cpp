//===- Schedule.cpp - Order the dispatches and put them in waves ----------===//
//
// A wave is a run of dispatches with no hazard among them. Waves never decrease in recorded
// order: only then does a lifetime in waves say when in that order. Hazards here are those
// between values: each has bytes of its own still.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Spares.h"
#include "passes/placed/WriteOrder.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Order/Schedule.h"

namespace weir {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct Schedule : weir::impl::SchedulePassBase<Schedule> {
  using SchedulePassBase::SchedulePassBase;

  void runOnOperation() override;

private:
  LogicalResult order(func::FuncOp function, Effects &effects, Views &views, InPlaceProofs &proofs);
};
} // namespace

/// Erases the dispatches of spares, with their values and kernels.
static void dropSpares(ModuleOp module) {
  llvm::SetVector<StringAttr> kernels = getSpareKernels(module);
  if (kernels.empty())
    return;
  SmallVector<schedule::DispatchOp> spares;
  module.walk([&](schedule::DispatchOp dispatch) {
    if (dispatch->hasAttr(spareAttrName))
      spares.push_back(dispatch);
  });
  for (schedule::DispatchOp spare : spares) {
    SmallVector<Value> operands(spare.getOperands());
    spare.erase();
    for (Value operand : operands)
      if (auto alloc = operand.getDefiningOp<memref::AllocOp>(); alloc && alloc->use_empty())
        alloc.erase();
  }
  eraseUnusedKernels(module, kernels);
}

LogicalResult Schedule::order(func::FuncOp function, Effects &effects, Views &views,
                              InPlaceProofs &proofs) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  FailureOr<CollectedOrder> collected = collect(function, *commands, effects, views, proofs);
  if (failed(collected))
    return failure();
  auto &[list, problem] = *collected;
  bool forMemory = schedule == "memory";
  // Other operations between commands belong where they are.
  bool mayMove = holdsOnlyCommands(*commands);
  CommandOrder chosen = scheduleCommands(problem, mayMove, forMemory);
  if (mayMove && forMemory)
    remarkOrder(function, chosen);
  writeOrder(function, list, problem);
  return success();
}

void Schedule::runOnOperation() {
  if (schedule != "program" && schedule != "memory") {
    getOperation().emitError() << "schedule '" << schedule
                               << "' is unknown; it is program or memory";
    return signalPassFailure();
  }
  dropSpares(getOperation());
  Effects &effects = getAnalysis<Effects>();
  Views &views = getAnalysis<Views>();
  InPlaceProofs &proofs = getAnalysis<InPlaceProofs>();
  getOperation().walk([&](func::FuncOp function) {
    if (failed(order(function, effects, views, proofs)))
      signalPassFailure();
  });
  markAnalysesPreserved<Effects, Views, InPlaceProofs>();
}
