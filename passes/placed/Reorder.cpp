//===- Reorder.cpp - Order placed commands for few barriers ---------------===//
//
// weir-schedule orders by hazards between values, for little memory. Values have
// places now, so the barriers that an order needs can be counted. The arena's slots
// are seen as allocations of their own, which another order may place elsewhere.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/placed/Slots.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Order/Place.h"
#include "weir/Order/Reorder.h"
#include "weir/Target/Errors.h"

namespace weir {
#define GEN_PASS_DEF_REORDERPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct Reorder : weir::impl::ReorderPassBase<Reorder> {
  using ReorderPassBase::ReorderPassBase;

  void runOnOperation() override {
    FailureOr<std::optional<int64_t>> percent = parseReorder(reorder);
    if (failed(percent)) {
      getOperation().emitError() << "reorder '" << reorder
                                 << "' is unknown; it is off, safe, or by how much the arena may "
                                    "grow, such as 10%";
      return signalPassFailure();
    }
    Effects &effects = getAnalysis<Effects>();
    Views &views = getAnalysis<Views>();
    markAnalysesPreserved<Effects, Views, InPlaceProofs>();
    if (!*percent)
      return;
    ArenaGrowth growth = {**percent, limit};
    getOperation().walk([&](func::FuncOp function) {
      if (failed(order(function, effects, views, growth)))
        signalPassFailure();
    });
  }

private:
  LogicalResult order(func::FuncOp function, Effects &effects, Views &views,
                      const ArenaGrowth &growth);
};

/// The commands of a list, with the slots of its arena.
struct Collected {
  PlacedCommands commands;
  memref::AllocOp arena; ///< null: what lies in an arena stays where it is
  SmallVector<memref::ViewOp> slots;
};
} // namespace

FailureOr<std::optional<int64_t>> weir::parseReorder(StringRef text) {
  constexpr int64_t maxPercent = 1'000'000;
  if (text == "off")
    return std::optional<int64_t>();
  if (text == "safe")
    return std::optional<int64_t>(0);
  int64_t percent = 0;
  if (!text.consume_back("%") || text.empty() || !llvm::all_of(text, llvm::isDigit) ||
      text.getAsInteger(10, percent) || percent > maxPercent)
    return failure();
  return std::optional(percent);
}

/// Gives each slot of the arena a number of its own. Finds none to move where bytes of the
/// arena are used without a slot, or their place is not known.
static Collected collectSlots(const CommandList &list) {
  Collected result;
  PlacedCommands &commands = result.commands;
  commands.accesses = list.accesses;
  commands.firstSlot = list.allocations.size();
  for (schedule::CommandOpInterface command : list.dispatches)
    commands.queues.push_back(command.getQueue());
  Collected withoutSlots = result;
  DenseMap<Operation *, int64_t> numbers;
  for (auto [command, dispatch] : llvm::zip_equal(list.dispatches, commands.accesses.dispatches))
    for (OperandAccess &access : dispatch) {
      Value owner = list.allocations[access.allocation].value;
      auto arena = owner ? owner.getDefiningOp<memref::AllocOp>() : memref::AllocOp();
      if (!arena || !arena->hasAttr(schedule::arenaAttrName))
        continue;
      memref::ViewOp view = getSlot(command->getOperand(access.operand));
      std::optional<int64_t> offset =
          view ? getConstantIntValue(view.getByteShift()) : std::nullopt;
      std::optional<int64_t> bytes = view ? schedule::getByteSize(view.getType()) : std::nullopt;
      auto slot = view ? view->getAttrOfType<schedule::SlotAttr>(schedule::slotAttrName)
                       : schedule::SlotAttr();
      if (!offset || !bytes || !slot || view.getSource() != arena.getResult() ||
          !list.accesses.mayShare[access.allocation].empty() ||
          (result.arena && result.arena != arena))
        return withoutSlots;
      result.arena = arena;
      commands.arena = access.allocation;
      auto [number, isNew] =
          numbers.try_emplace(view, commands.firstSlot + int64_t(result.slots.size()));
      if (isNew) {
        result.slots.push_back(view);
        commands.slots.push_back({*bytes, slot.getAlignment(), *offset});
      }
      access.allocation = number->second;
    }
  commands.accesses.mayShare.resize(commands.firstSlot + commands.slots.size());
  commands.arenaBytes = result.arena ? result.arena.getType().getNumElements() : 0;
  return result;
}

/// Moves the slots to where the plan has them.
static void moveSlots(memref::AllocOp arena, ArrayRef<memref::ViewOp> slots,
                      const MemoryPlan &plan) {
  OpBuilder builder(arena);
  auto type = MemRefType::get({plan.arenaBytes}, builder.getI8Type(), MemRefLayoutAttrInterface(),
                              arena.getType().getMemorySpace());
  auto moved = memref::AllocOp::create(builder, arena.getLoc(), type, arena.getAlignmentAttr());
  moved->setDiscardableAttrs(arena->getDiscardableAttrDictionary());
  arena.replaceAllUsesWith(moved.getResult());
  arena.erase();
  builder.setInsertionPointAfter(moved);
  DenseMap<int64_t, Value> shifts;     // the constant of each offset
  llvm::SetVector<Operation *> before; // of the offsets till now
  for (auto [slot, offset] : llvm::zip_equal(slots, plan.offsets)) {
    memref::ViewOp view = slot;
    Value &shift = shifts[offset];
    if (!shift)
      shift = arith::ConstantIndexOp::create(builder, view.getLoc(), offset);
    if (Operation *old = view.getByteShift().getDefiningOp())
      before.insert(old);
    view.getByteShiftMutable().assign(shift);
  }
  for (Operation *old : before)
    if (isOpTriviallyDead(old))
      old->erase();
}

/// Writes each command's wave, and to each slot the first and last wave that use it. `list` is of
/// the commands as they stand.
static void setWaves(const CommandList &list) {
  std::vector<memref::ViewOp> slots;
  std::vector<SlotUsers> users;
  std::vector<int64_t> indices; // by the number of the slot's view, -1: not met yet
  for (auto [number, command] : llvm::enumerate(list.dispatches))
    for (Value operand : command->getOperands()) {
      memref::ViewOp slot = getSlot(operand);
      if (!slot)
        continue;
      size_t view = list.views->getNumber(slot);
      if (view >= indices.size())
        indices.resize(2 * view + 1, -1);
      if (indices[view] < 0) {
        indices[view] = users.size();
        slots.push_back(slot);
        const View &bytes = list.views->get(slot.getResult());
        int64_t arena = list.getNumber(bytes.allocation);
        users.push_back({arena, arena < 0 ? ByteRange() : bytes.range.value_or(ByteRange()),
                         int64_t(number), int64_t(number)});
      }
      users[indices[view]].last = number;
    }
  std::vector<int64_t> waves = getPlacedWaves(list.accesses, users);
  for (auto [command, wave] : llvm::zip_equal(list.dispatches, waves))
    schedule::CommandOpInterface(command).setWave(wave);
  for (auto [slot, user] : llvm::zip_equal(slots, users)) { // waves never decrease
    auto old = slot->getAttrOfType<schedule::SlotAttr>(schedule::slotAttrName);
    slot->setAttr(schedule::slotAttrName,
                  schedule::SlotAttr::get(slot->getContext(), old ? old.getValue() : "",
                                          old ? old.getAlignment() : 1, waves[user.first],
                                          waves[user.last]));
  }
}

LogicalResult Reorder::order(func::FuncOp function, Effects &effects, Views &views,
                             const ArenaGrowth &growth) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  // Other operations between commands belong where they are.
  if (!holdsOnlyCommands(*commands))
    return success();
  FailureOr<CommandList> list = collectAccesses(*commands, effects, views);
  if (failed(list))
    return failure();
  Collected collected = collectSlots(*list);
  FailureOr<std::optional<PlacedOrder>> found =
      catchErrors([&] { return commands->emitOpError() << "cannot be placed in another order: "; },
                  [&] { return findCheaperOrder(std::move(collected.commands), growth, effort); });
  if (failed(found))
    return failure();
  const std::optional<PlacedOrder> &best = *found;
  if (!best)
    return success();
  remark::passed(commands->getLoc(), remark::RemarkOpts::name("order").category("reorder"))
      << remark::add("another order of dispatches needs {0} barriers, signals and waits in place "
                     "of {1}",
                     best->cost, best->costBefore);
  Block &block = commands->getBody().front();
  for (int64_t number : best->order)
    list->dispatches[number]->moveBefore(&block, block.end());
  if (!best->plan.offsets.empty())
    moveSlots(collected.arena, collected.slots, best->plan);
  views = Views();
  FailureOr<CommandList> ordered = collectAccesses(*commands, effects, views);
  if (failed(ordered))
    return failure();
  setWaves(*ordered);
  return success();
}
