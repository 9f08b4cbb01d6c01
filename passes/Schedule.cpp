//===- Schedule.cpp - Put the dispatches in waves -------------------------===//
//
// The order is the program's. A wave is a run of dispatches with no hazard
// among them; waves never decrease in recorded order, since lifetimes in waves
// say nothing about an order in which they do. Hazards here are those between
// values: each has bytes of its own still.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "weir/Analysis/Hazards.h"

namespace weir {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct Schedule : weir::impl::SchedulePassBase<Schedule> {
  using SchedulePassBase::SchedulePassBase;

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    getOperation().walk([&](func::FuncOp function) {
      if (failed(setWaves(function, effects)))
        signalPassFailure();
    });
    markAnalysesPreserved<Effects>();
  }

private:
  LogicalResult setWaves(func::FuncOp function, Effects &effects);
};
} // namespace

LogicalResult Schedule::setWaves(func::FuncOp function, Effects &effects) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  FailureOr<CommandList> list = collectAccesses(*commands, effects);
  if (failed(list))
    return failure();
  std::vector<int64_t> waves = getWaves(list->dispatches.size(), findHazards(list->accesses));
  for (auto [dispatch, wave] : llvm::zip_equal(list->dispatches, waves))
    dispatch.setWave(wave);
  return success();
}
