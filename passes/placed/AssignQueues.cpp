//===- AssignQueues.cpp - Spread the dispatches over queues ---------------===//
//
// In recorded order. A dispatch follows the one whose result it reads if that
// is the last of its queue, so that chains stay together; else it goes to the
// queue with the least bytes to move so far. Order between queues is
// weir-insert-barriers' business, once addresses are known.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Steps.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Artifact/Plan.h"
#include "weir/Target/ProfileAttr.h"

#include <algorithm>
#include <limits>

namespace weir {
#define GEN_PASS_DEF_ASSIGNQUEUESPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

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
      if (failed(assignQueues(function, effects, views, count)))
        signalPassFailure();
    });
  }
};
} // namespace

/// What a dispatch moves; operands of unknown size count as nothing.
static double getBytes(const DispatchAccesses &accesses) {
  double bytes = 0;
  for (const OperandAccess &access : accesses)
    if (access.range.end != std::numeric_limits<int64_t>::max())
      bytes += double(access.range.end - access.range.begin);
  return bytes;
}

LogicalResult weir::assignQueues(func::FuncOp function, Effects &effects, Views &views,
                                 int64_t count) {
  if (count == 1)
    return success();
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  FailureOr<CommandList> list = collectAccesses(*commands, effects, views);
  if (failed(list))
    return failure();
  std::vector<Hazard> hazards = findHazards(list->accesses);
  std::vector<double> load(count);
  std::vector<int64_t> last(count, -1), chosen;
  auto hazard = hazards.begin();
  for (int64_t to = 0; to < int64_t(list->dispatches.size()); ++to) {
    int64_t queue = -1;
    for (; hazard != hazards.end() && hazard->to == to; ++hazard)
      if (int64_t producer = chosen[hazard->from];
          queue < 0 && hazard->kind == HazardKind::RAW && last[producer] == hazard->from)
        queue = producer;
    if (queue < 0)
      queue = std::min_element(load.begin(), load.end()) - load.begin();
    list->dispatches[to].setQueue(queue);
    chosen.push_back(queue);
    last[queue] = to;
    load[queue] += getBytes(list->accesses.dispatches[to]);
  }
  return success();
}
