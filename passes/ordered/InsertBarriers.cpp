//===- InsertBarriers.cpp - Order dispatches that meet a hazard -----------===//
//
// Asks for the hazards on addresses, after placement: reuse of a slot makes
// hazards that no value knows of. A barrier stands just before the dispatch
// that needs it, and so does a wait for another queue; a signal just behind the
// dispatch that is waited for. Those found in the input are made anew.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "weir/Analysis/CommandList.h"

#include <set>

namespace weir {
#define GEN_PASS_DEF_INSERTBARRIERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct InsertBarriers : weir::impl::InsertBarriersPassBase<InsertBarriers> {
  using InsertBarriersPassBase::InsertBarriersPassBase;

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    Views &views = getAnalysis<Views>();
    getOperation().walk([&](func::FuncOp function) {
      if (failed(order(function, effects, views)))
        signalPassFailure();
    });
    markAnalysesPreserved<Effects, Views, InPlaceProofs>();
  }

private:
  LogicalResult order(func::FuncOp function, Effects &effects, Views &views);
};
} // namespace

/// Returns the views whose writes must become visible to those who read or write them next, each
/// once.
static SmallVector<Value> getMemory(ArrayRef<Hazard> hazards, const CommandList &list) {
  SmallVector<Value> memory;
  llvm::DenseSet<Value> seen;
  std::set<std::pair<int64_t, StridedBytes>> bytesSeen;
  for (const Hazard &hazard : hazards) {
    if (hazard.kind == HazardKind::WAR)
      continue; // nothing was written that anyone reads
    schedule::CommandOpInterface from = list.dispatches[hazard.from];
    Value written = from->getOperand(hazard.fromOperand);
    if (!memory.empty() && memory.back() == written)
      continue;
    if (!seen.insert(written).second)
      continue;
    const View &view = list.views->get(written);
    if (view.bytes && !bytesSeen.insert({list.getNumber(view.allocation), *view.bytes}).second)
      continue;
    memory.push_back(written);
  }
  return memory;
}

LogicalResult InsertBarriers::order(func::FuncOp function, Effects &effects, Views &views) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  Block &block = commands->getBody().front();
  for (Operation &op : llvm::make_early_inc_range(block))
    if (isa<schedule::BarrierOp, schedule::SignalOp, schedule::WaitOp>(op))
      op.erase();
  FailureOr<CommandList> list = collectAccesses(*commands, effects, views);
  if (failed(list))
    return failure();

  std::vector<int64_t> queues;
  for (schedule::CommandOpInterface dispatch : list->dispatches)
    queues.push_back(dispatch.getQueue());
  PlannedOrder order = planOrder(findHazards(list->accesses), queues);
  for (auto [id, signal] : llvm::enumerate(order.signals)) {
    Operation *after = list->dispatches[signal.after];
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(after);
    schedule::SignalOp::create(builder, after->getLoc(), id, getMemory(signal.hazards, *list),
                               queues[signal.after]);
  }
  for (const PlannedWait &wait : order.waits) {
    Operation *before = list->dispatches[wait.before];
    OpBuilder builder(before);
    schedule::WaitOp::create(builder, before->getLoc(), wait.signal, queues[wait.before]);
  }
  for (const PlannedBarrier &barrier : order.barriers) {
    Operation *before = list->dispatches[barrier.before];
    OpBuilder builder(before);
    SmallVector<int64_t> numbers;
    for (const Hazard &hazard : barrier.hazards)
      schedule::HazardFields{toAttribute(hazard.kind), hazard.from, hazard.fromOperand, hazard.to,
                             hazard.toOperand}
          .append(numbers);
    schedule::BarrierOp::create(builder, before->getLoc(), getMemory(barrier.hazards, *list),
                                numbers, queues[barrier.before]);
  }
  remark::passed(function.getLoc(),
                 remark::RemarkOpts::name("barriers").category("insert-barriers"))
      << remark::add("number of dispatches {0}, of barriers {1}, of signals {2}, of waits {3}",
                     list->dispatches.size(), order.barriers.size(), order.signals.size(),
                     order.waits.size());
  return success();
}
