//===- TestFreeAfterFirstReader.cpp - A planner that forgets readers ------===//
//
// Background case 3: places the slots of a placed module anew, each free after
// the wave of its first reader. Fails where that gives no slot the bytes of one
// that is still read: a test of it would show nothing.
//
//===----------------------------------------------------------------------===//

#include "test/lib/TestPasses.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Planner/Planner.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestFreeAfterFirstReader : PassWrapper<TestFreeAfterFirstReader, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestFreeAfterFirstReader)

  StringRef getArgument() const override { return "weir-test-free-after-first-reader"; }
  StringRef getDescription() const override {
    return "Places slots again as if each were free after its first reader.";
  }

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(place(function, effects)))
        signalPassFailure();
  }

private:
  LogicalResult place(func::FuncOp function, Effects &effects);
};
} // namespace

static schedule::SlotAttr getUse(memref::ViewOp slot) {
  return slot->getAttrOfType<schedule::SlotAttr>(schedule::slotAttrName);
}

/// Returns the slot of an operand; null for operands outside of the arena.
static memref::ViewOp findSlot(Value operand) {
  while (auto view = operand.getDefiningOp<ViewLikeOpInterface>()) {
    if (view->hasAttr(schedule::slotAttrName))
      return cast<memref::ViewOp>(view);
    operand = view.getViewSource();
  }
  return {};
}

LogicalResult TestFreeAfterFirstReader::place(func::FuncOp function, Effects &effects) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  SmallVector<memref::ViewOp> slots;
  std::vector<Lifetime> lifetimes;
  DenseMap<Operation *, size_t> numbers;
  function.walk([&](memref::ViewOp view) {
    if (!view->hasAttr(schedule::slotAttrName))
      return;
    numbers[view] = slots.size();
    slots.push_back(view);
    lifetimes.push_back({*schedule::getByteSize(view.getType()), 256, getUse(view).getFirstWave(),
                         getUse(view).getLastWave()});
  });
  const std::vector<Lifetime> whole = lifetimes;

  SymbolTableCollection symbols;
  SmallVector<bool> wasRead(slots.size());
  for (auto command : (*commands).getBody().front().getOps<schedule::CommandOpInterface>()) {
    FailureOr<ArrayRef<OperandEffect>> known = getEffects(command, symbols, effects);
    if (failed(known))
      return failure();
    for (auto [operand, effect] : llvm::zip_equal(command->getOperands(), *known)) {
      memref::ViewOp slot = reads(effect.access) ? findSlot(operand) : memref::ViewOp();
      if (!slot || std::exchange(wasRead[numbers[slot]], true))
        continue;
      lifetimes[numbers[slot]].lastWave = *command.getWave();
    }
  }

  MemoryPlan plan = planMemory(lifetimes, /*noReuse=*/false);
  bool isWrong = false;
  for (size_t i = 0; i < slots.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      isWrong |= whole[i].firstWave <= whole[j].lastWave &&
                 whole[j].firstWave <= whole[i].lastWave &&
                 plan.offsets[i] < plan.offsets[j] + whole[j].bytes &&
                 plan.offsets[j] < plan.offsets[i] + whole[i].bytes;
  if (!isWrong)
    return function.emitError("no slot gets bytes of one that is still read");

  for (auto [slot, life, offset] : llvm::zip_equal(slots, lifetimes, plan.offsets)) {
    OpBuilder builder(slot);
    slot.getByteShiftMutable().assign(
        arith::ConstantIndexOp::create(builder, slot.getLoc(), offset));
    slot->setAttr(schedule::slotAttrName,
                  schedule::SlotAttr::get(&getContext(), getUse(slot).getValue(), 256,
                                          life.firstWave, life.lastWave));
  }
  // Smaller than it was or as large; the views are of its first bytes either way.
  Value arena = slots.front().getSource();
  auto type = cast<MemRefType>(arena.getType());
  arena.setType(MemRefType::Builder(type).setShape({plan.arenaBytes}));
  return success();
}

void weir::test::registerTestFreeAfterFirstReaderPass() {
  PassRegistration<TestFreeAfterFirstReader>();
}
