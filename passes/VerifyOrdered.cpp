//===- VerifyOrdered.cpp - The gate of the ordered level ------------------===//
//
// Between two barriers no bytes may be written by one dispatch and touched by
// another: that is checked by sweeping over the bytes, not by asking for the
// hazards that barriers were made from.
//
//===----------------------------------------------------------------------===//

#include "passes/Gates.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYORDEREDPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct Touch {
  int64_t dispatch = 0;
  OperandAccess access;
};

/// A barrier and where it stands.
struct Placed {
  schedule::BarrierOp op;
  int64_t before = 0; ///< dispatches recorded before it
  SmallVector<std::pair<Value, View>> memory;
};

struct VerifyOrdered : weir::impl::VerifyOrderedPassBase<VerifyOrdered> {
  using VerifyOrderedPassBase::VerifyOrderedPassBase;

  void runOnOperation() override;

private:
  InFlightDiagnostic fail(Operation *op) {
    signalPassFailure();
    return op->emitOpError();
  }
  void verifyFunction(func::FuncOp function, Effects &effects);
  void verifySegment(const CommandList &list, int64_t begin, int64_t end);
  void verifyBytes(const CommandList &list, SmallVectorImpl<Touch> &touches);
  void failUnordered(const CommandList &list, const Touch &first, const Touch &second);
  void verifyBarrier(const CommandList &list, const Placed &barrier, int64_t last);
  void verifyVisible(const CommandList &list, ArrayRef<Placed> barriers);
};
} // namespace

/// Whether all command lists are of functions that others made. They promise
/// nothing of what an artifact needs, and are only checked for their order.
static bool isForeign(ModuleOp module) {
  bool lists = false, entries = module->hasAttr(schedule::profileAttrName);
  module.walk([&](Operation *op) {
    lists |= isa<schedule::CommandsOp>(op);
    entries |= op->hasAttr(schedule::entryAttrName);
  });
  return lists && !entries;
}

void VerifyOrdered::runOnOperation() {
  Effects &effects = getAnalysis<Effects>();
  markAllAnalysesPreserved();
  if (!isForeign(getOperation()) && (failed(verifyCommands(getOperation(), effects)) ||
                                     failed(verifyPlacement(getOperation(), effects))))
    return signalPassFailure();
  getOperation().walk([&](func::FuncOp function) { verifyFunction(function, effects); });
}

void VerifyOrdered::failUnordered(const CommandList &list, const Touch &first,
                                  const Touch &second) {
  const Touch &early = first.dispatch < second.dispatch ? first : second;
  const Touch &late = first.dispatch < second.dispatch ? second : first;
  InFlightDiagnostic error =
      fail(list.dispatches[late.dispatch])
      << "operand " << late.access.operand << " " << (late.access.writes ? "writes" : "reads")
      << " bytes that an earlier dispatch " << (early.access.writes ? "writes" : "reads")
      << ", and no barrier separates them";
  error.attachNote(list.dispatches[early.dispatch]->getLoc())
      << "this one, through operand " << early.access.operand;
}

/// All touches are of one allocation. Each is compared with those that begin
/// before it and have not ended; two reads are never compared, so a list
/// without conflicts costs no more than sorting it, unless strided views lie in
/// each other's gaps.
void VerifyOrdered::verifyBytes(const CommandList &list, SmallVectorImpl<Touch> &touches) {
  llvm::sort(touches, [](const Touch &a, const Touch &b) {
    return std::tie(a.access.range.begin, a.dispatch, a.access.operand) <
           std::tie(b.access.range.begin, b.dispatch, b.access.operand);
  });
  SmallVector<const Touch *> readers, writers;
  for (const Touch &touch : touches) {
    auto compareWith = [&](SmallVectorImpl<const Touch *> &open) {
      llvm::erase_if(open, [&](const Touch *other) {
        return other->access.range.end <= touch.access.range.begin;
      });
      for (const Touch *other : open)
        if (other->dispatch != touch.dispatch &&
            list.accesses.mayOverlap(other->access, touch.access))
          return failUnordered(list, *other, touch);
    };
    compareWith(writers);
    if (touch.access.writes)
      compareWith(readers);
    (touch.access.writes ? writers : readers).push_back(&touch);
  }
}

void VerifyOrdered::verifySegment(const CommandList &list, int64_t begin, int64_t end) {
  llvm::MapVector<int64_t, SmallVector<Touch>> byAllocation;
  for (int64_t dispatch = begin; dispatch < end; ++dispatch)
    for (const OperandAccess &access : list.accesses.dispatches[dispatch])
      byAllocation[access.allocation].push_back({dispatch, access});
  for (auto &[allocation, touches] : byAllocation)
    verifyBytes(list, touches);
  // Allocations that may be the same bytes: nothing is known of where.
  for (auto &[allocation, touches] : byAllocation)
    for (int64_t other : list.accesses.mayShare[allocation]) {
      auto found = byAllocation.find(other);
      if (other < allocation || found == byAllocation.end())
        continue;
      for (const Touch &first : touches)
        for (const Touch &second : found->second)
          if (first.dispatch != second.dispatch && (first.access.writes || second.access.writes))
            return failUnordered(list, first, second);
    }
}

/// Whether the barrier makes the bytes of a dispatch's operand visible.
static bool shows(const Placed &barrier, const CommandList &list, int64_t dispatch,
                  int64_t operand) {
  Operation *command = schedule::CommandOpInterface(list.dispatches[dispatch]);
  Value memref = command->getOperand(operand);
  const View &view = list.views.find(memref)->second;
  return llvm::any_of(barrier.memory, [&](const std::pair<Value, View> &shown) {
    return shown.first == memref || shown.first == view.allocation.value ||
           covers(shown.second, view);
  });
}

/// What a barrier says of itself: its hazards are real, they span it, and the
/// one that forced it lies after barrier `last`.
void VerifyOrdered::verifyBarrier(const CommandList &list, const Placed &barrier, int64_t last) {
  schedule::BarrierOp op = barrier.op;
  for (auto hazard : op.getHazards().getAsRange<schedule::HazardAttr>()) {
    const OperandAccess *from = list.find(hazard.getFrom(), hazard.getFromOperand());
    const OperandAccess *to = list.find(hazard.getTo(), hazard.getToOperand());
    bool earlier =
        hazard.getKind() == schedule::HazardKind::war ? from && from->reads : from && from->writes;
    bool later = hazard.getKind() == schedule::HazardKind::raw ? to && to->reads : to && to->writes;
    if (!earlier || !later || !list.accesses.mayOverlap(*from, *to))
      fail(op) << "lists " << hazard << ", which is no hazard";
    else if (hazard.getKind() != schedule::HazardKind::war &&
             !shows(barrier, list, hazard.getFrom(), hazard.getFromOperand()))
      fail(op) << "lists " << hazard << ", but does not make its bytes visible";
  }
  auto forcing = cast<schedule::HazardAttr>(op.getHazards()[0]);
  if (forcing.getTo() != barrier.before || forcing.getFrom() < last)
    fail(op) << "is not needed by the hazard it names first, " << forcing;
}

/// Every write is made visible to whoever touches the bytes next.
void VerifyOrdered::verifyVisible(const CommandList &list, ArrayRef<Placed> barriers) {
  for (const Hazard &hazard : findHazards(list.accesses)) {
    if (hazard.kind == HazardKind::WAR)
      continue;
    auto barrier = llvm::upper_bound(barriers, hazard.from, [](int64_t at, const Placed &barrier) {
      return at < barrier.before;
    });
    bool visible = false;
    for (; !visible && barrier != barriers.end() && barrier->before <= hazard.to; ++barrier)
      visible = shows(*barrier, list, hazard.from, hazard.fromOperand);
    if (!visible)
      fail(list.dispatches[hazard.to])
          << "operand " << hazard.toOperand << " needs what dispatch " << hazard.from
          << " wrote through operand " << hazard.fromOperand << ", and no barrier makes it visible";
  }
}

void VerifyOrdered::verifyFunction(func::FuncOp function, Effects &effects) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return;
  FailureOr<CommandList> list = collectAccesses(*commands, effects);
  if (failed(list))
    return signalPassFailure();
  SmallVector<Placed> barriers;
  int64_t before = 0;
  for (Operation &op : commands->getBody().front()) {
    before += isa<schedule::CommandOpInterface>(op);
    auto barrier = dyn_cast<schedule::BarrierOp>(op);
    if (!barrier)
      continue;
    Placed &placed = barriers.emplace_back();
    placed.op = barrier;
    placed.before = before;
    for (Value memory : barrier.getMemory())
      placed.memory.push_back({memory, getView(memory)});
  }
  int64_t last = 0;
  for (const Placed &barrier : barriers) {
    verifySegment(*list, last, barrier.before);
    verifyBarrier(*list, barrier, last);
    last = barrier.before;
  }
  verifySegment(*list, last, before);
  verifyVisible(*list, barriers);
}
