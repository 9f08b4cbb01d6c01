//===- InsertBarriers.cpp - Order dispatches that meet a hazard -----------===//
//
// Asks for the hazards on addresses, after placement: reuse of a slot makes
// hazards that no value knows of. A barrier stands just before the dispatch
// that needs it. Barriers found in the input are made anew.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Remarks.h"
#include "weir/Analysis/Hazards.h"

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
    getOperation().walk([&](func::FuncOp function) {
      if (failed(order(function, effects)))
        signalPassFailure();
    });
    markAnalysesPreserved<Effects>();
  }

private:
  LogicalResult order(func::FuncOp function, Effects &effects);
};
} // namespace

/// The views whose writes the barrier makes visible, each once.
static SmallVector<Value> getMemory(const PlannedBarrier &barrier, const CommandList &list) {
  SmallVector<Value> memory;
  SmallVector<View> seen;
  for (const Hazard &hazard : barrier.hazards) {
    if (hazard.kind == HazardKind::WAR)
      continue; // nothing was written that anyone reads
    Value written = list.dispatches[hazard.from]->getOperand(hazard.fromOperand);
    View view = getView(written);
    auto isSame = [&](const View &other) {
      return view.allocation == other.allocation && view.bytes && view.bytes == other.bytes;
    };
    if (llvm::is_contained(memory, written) || llvm::any_of(seen, isSame))
      continue;
    memory.push_back(written);
    seen.push_back(view);
  }
  return memory;
}

LogicalResult InsertBarriers::order(func::FuncOp function, Effects &effects) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  FailureOr<CommandList> list = collectAccesses(*commands, effects);
  if (failed(list))
    return failure();
  for (auto barrier :
       llvm::make_early_inc_range(commands->getBody().front().getOps<schedule::BarrierOp>()))
    barrier.erase();

  std::vector<PlannedBarrier> barriers = placeBarriers(findHazards(list->accesses));
  for (const PlannedBarrier &barrier : barriers) {
    Operation *before = list->dispatches[barrier.before];
    OpBuilder builder(before);
    SmallVector<Attribute> hazards;
    for (const Hazard &hazard : barrier.hazards)
      hazards.push_back(schedule::HazardAttr::get(&getContext(), toAttribute(hazard.kind),
                                                  hazard.from, hazard.fromOperand, hazard.to,
                                                  hazard.toOperand));
    schedule::BarrierOp::create(builder, before->getLoc(), getMemory(barrier, *list),
                                builder.getArrayAttr(hazards));
  }
  remark::passed(function.getLoc(),
                 remark::RemarkOpts::name("barriers").category("insert-barriers"))
      << remark::metric("dispatches", list->dispatches.size())
      << remark::metric("barriers", barriers.size());
  return success();
}
