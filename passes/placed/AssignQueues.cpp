//===- AssignQueues.cpp - Spread the dispatches over queues ---------------===//
//
// Order between queues is weir-insert-barriers' business, once addresses are known.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Artifact/Plan.h"
#include "weir/Order/Schedule.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_ASSIGNQUEUESPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

/// Assigns one of `count` queues to each command of the function.
static LogicalResult assignQueues(func::FuncOp function, Effects &effects, Views &views,
                                  int64_t count) {
  if (count == 1)
    return success();
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  FailureOr<CommandList> list = collectAccesses(*commands, effects, views);
  if (failed(list))
    return failure();
  std::vector<int64_t> queues = weir::assignQueues(list->accesses, count);
  for (auto [command, queue] : llvm::zip_equal(list->dispatches, queues))
    command.setQueue(queue);
  return success();
}

namespace {
struct AssignQueues : weir::impl::AssignQueuesPassBase<AssignQueues> {
  using AssignQueuesPassBase::AssignQueuesPassBase;

  void runOnOperation() override {
    int64_t count = queues;
    if (count == 0) {
      FailureOr<Profile> profile = getProfile(getOperation());
      if (failed(profile))
        return signalPassFailure();
      count = profile->queues;
    }
    if (count < 1 || count > maxQueues) {
      getOperation().emitError() << count << " queues; there may be 1 to " << maxQueues;
      return signalPassFailure();
    }
    Effects &effects = getAnalysis<Effects>();
    Views &views = getAnalysis<Views>();
    markAllAnalysesPreserved();
    getOperation().walk([&](func::FuncOp function) {
      // Segments share one queue, so that barriers order one with the next.
      if (function->hasAttr(schedule::segmentAttrName))
        return;
      if (failed(assignQueues(function, effects, views, count)))
        signalPassFailure();
    });
  }
};
} // namespace
