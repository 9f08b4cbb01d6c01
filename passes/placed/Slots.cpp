//===- Slots.cpp - What the placed level says of slots and waves ----------===//

#include "passes/placed/Slots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "weir/Artifact/Error.h"
#include "weir/Order/Reorder.h"
#include "weir/Planner/Planner.h"

#include <numeric>

using namespace mlir;
using namespace weir;

memref::ViewOp weir::getSlot(Value operand) {
  memref::ViewOp nearest;
  while (auto view = operand.getDefiningOp<ViewLikeOpInterface>()) {
    if (auto bytes = dyn_cast<memref::ViewOp>(*view))
      nearest = bytes;
    operand = view.getViewSource();
  }
  auto arena = operand.getDefiningOp<memref::AllocOp>();
  return nearest && arena && arena->hasAttr(schedule::arenaAttrName) ? nearest : memref::ViewOp();
}

namespace {
/// Who uses a slot, by numbers of commands.
struct SlotUsers {
  memref::ViewOp slot;
  int64_t first = 0, last = 0;
};
} // namespace

/// The slots in the order of their first users.
static std::vector<SlotUsers> findSlotUsers(const CommandList &list) {
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
        users.push_back({slot, int64_t(number), int64_t(number)});
      }
      users[indices[view]].last = number;
    }
  return users;
}

/// From the last user of a slot to the first of the next one that has a byte of it.
/// Which bytes they touch there is not asked: slots live as a whole.
static std::vector<Hazard> findSlotHazards(const CommandList &list,
                                           const std::vector<SlotUsers> &users) {
  CommandAccesses accesses;
  accesses.dispatches.resize(list.dispatches.size());
  accesses.mayShare.resize(list.allocations.size());
  for (auto [index, slot] : llvm::enumerate(users)) {
    const View &view = list.views->get(memref::ViewOp(slot.slot).getResult());
    int64_t allocation = list.getNumber(view.allocation);
    if (allocation < 0 || !view.range || view.range->isEmpty())
      continue;
    for (int64_t number : {slot.first, slot.last})
      accesses.dispatches[number].push_back({int64_t(index), allocation, *view.range, false, true});
  }
  std::vector<Hazard> hazards = findHazards(accesses);
  llvm::erase_if(hazards, [](const Hazard &hazard) {
    return hazard.fromOperand == hazard.toOperand; // users of one slot
  });
  return hazards;
}

void weir::setWaves(const CommandList &list, const std::vector<Hazard> &ofAddresses,
                    function_ref<SlotUse(memref::ViewOp)> getUse) {
  std::vector<SlotUsers> users = findSlotUsers(list);
  std::vector<Hazard> ofSlots = findSlotHazards(list, users), all;
  all.reserve(ofAddresses.size() + ofSlots.size());
  std::merge(ofAddresses.begin(), ofAddresses.end(), ofSlots.begin(), ofSlots.end(),
             std::back_inserter(all), [](const Hazard &a, const Hazard &b) { return a.to < b.to; });
  std::vector<int64_t> waves = getWaves(list.dispatches.size(), all);
  for (auto [command, wave] : llvm::zip_equal(list.dispatches, waves))
    schedule::CommandOpInterface(command).setWave(wave);
  for (const SlotUsers &slot : users) { // waves never decrease
    memref::ViewOp view = slot.slot;
    SlotUse use = getUse(view);
    view->setAttr(schedule::slotAttrName,
                  schedule::SlotAttr::get(view->getContext(), use.value, use.alignment,
                                          waves[slot.first], waves[slot.last]));
  }
}

//===----------------------------------------------------------------------===//
// Another order
//===----------------------------------------------------------------------===//

namespace {
/// The arena's slots, each seen as an allocation of its own.
struct Slots {
  memref::AllocOp arena; ///< null: what lies in it stays where it is
  SmallVector<memref::ViewOp> views;
  SmallVector<int64_t> offsets;    ///< where they are now
  std::vector<Lifetime> lifetimes; ///< in no wave yet
  CommandAccesses accesses;        ///< slot i is allocation `firstNumber + i`
  int64_t firstNumber = 0;

  bool mayMove() const { return bool(arena); }
  bool shareBytes() const;
};

/// A way to order and place.
struct Candidate {
  std::vector<int64_t> order;
  MemoryPlan plan;  ///< of slots that move
  int64_t cost = 0; ///< barriers, signals and waits
};
} // namespace

bool Slots::shareBytes() const {
  SmallVector<ByteRange> ranges;
  for (auto [offset, lifetime] : llvm::zip_equal(offsets, lifetimes))
    ranges.push_back({offset, offset + lifetime.bytes});
  llvm::sort(ranges, [](ByteRange a, ByteRange b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      return true;
  return false;
}

/// Gives each slot of the arena a number of its own. Finds none to move where
/// bytes of the arena are used without a slot, or are nowhere known.
static Slots findSlots(const CommandList &list) {
  Slots slots;
  slots.accesses = list.accesses;
  slots.firstNumber = list.allocations.size();
  DenseMap<Operation *, int64_t> numbers;
  for (auto [command, dispatch] : llvm::zip_equal(list.dispatches, slots.accesses.dispatches))
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
          (slots.arena && slots.arena != arena))
        return {};
      slots.arena = arena;
      auto [number, isNew] =
          numbers.try_emplace(view, slots.firstNumber + int64_t(slots.views.size()));
      if (isNew) {
        slots.views.push_back(view);
        slots.offsets.push_back(*offset);
        slots.lifetimes.push_back({*bytes, slot.getAlignment(), 0, 0});
      }
      access.allocation = number->second;
    }
  slots.accesses.mayShare.resize(slots.firstNumber + slots.views.size());
  return slots;
}

/// Places the slots for dispatches in these waves.
static MemoryPlan placeSlots(const Slots &slots, const CommandAccesses &accesses,
                             const std::vector<int64_t> &waves) {
  std::vector<Lifetime> lifetimes = slots.lifetimes;
  std::vector<bool> isLive(lifetimes.size());
  for (auto [dispatch, wave] : llvm::zip_equal(accesses.dispatches, waves))
    for (const OperandAccess &access : dispatch) {
      if (access.allocation < slots.firstNumber)
        continue;
      int64_t slot = access.allocation - slots.firstNumber;
      if (!isLive[slot])
        lifetimes[slot].firstWave = wave;
      isLive[slot] = true;
      lifetimes[slot].lastWave = wave;
    }
  // A step of the search looks at all slots that are live with one, and it takes a step a slot at
  // least to get anywhere. Several orders are tried, so many slots get what few ones cost.
  int64_t size = 1 + int64_t(lifetimes.size()) / 32;
  int64_t effort = PlanOptions().effort / (size * size);
  return planMemory(lifetimes, /*noReuse=*/false, effort);
}

/// The same accesses, by addresses in the arena.
static CommandAccesses toAddresses(const Slots &slots, CommandAccesses accesses, int64_t arena,
                                   const std::vector<int64_t> &offsets) {
  for (DispatchAccesses &dispatch : accesses.dispatches)
    for (OperandAccess &access : dispatch) {
      if (access.allocation < slots.firstNumber)
        continue;
      int64_t slot = access.allocation - slots.firstNumber;
      int64_t shift = offsets[slot] - slots.offsets[slot];
      access.allocation = arena;
      access.range.begin += shift;
      access.range.end += shift;
      if (access.strided >= 0) {
        StridedBytes bytes = accesses.strided[access.strided];
        bytes.begin += shift;
        access.strided = accesses.strided.size();
        accesses.strided.push_back(bytes);
      }
    }
  accesses.mayShare.resize(slots.firstNumber);
  return accesses;
}

static int64_t getCost(const CommandAccesses &accesses, const CommandList &list,
                       ArrayRef<int64_t> order) {
  std::vector<int64_t> queues;
  for (int64_t number : order)
    queues.push_back(schedule::CommandOpInterface(list.dispatches[number]).getQueue());
  PlannedOrder planned = planOrder(findHazards(accesses), queues);
  return planned.barriers.size() + planned.signals.size() + planned.waits.size();
}

/// The best order for which the slots need no more than `limit` bytes, if any.
static std::optional<Candidate> findOrder(const CommandList &list, const Slots &slots,
                                          int64_t limit) {
  // Slots are never packed without a gap: less may be live than there is room for.
  constexpr int attempts = 8;
  const CommandAccesses &accesses = slots.mayMove() ? slots.accesses : list.accesses;
  std::vector<int64_t> bytes(accesses.mayShare.size());
  for (auto [slot, lifetime] : llvm::enumerate(slots.lifetimes))
    bytes[slots.firstNumber + slot] = lifetime.bytes;
  std::vector<Hazard> hazards = findHazards(accesses);
  int64_t mayBeLive = limit;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Candidate candidate;
    auto [order, waves] = orderInFewWaves(accesses, hazards, bytes, mayBeLive);
    candidate.order = std::move(order);
    CommandAccesses ordered = permute(accesses, candidate.order);
    if (slots.mayMove()) {
      candidate.plan = placeSlots(slots, ordered, waves);
      if (candidate.plan.arenaBytes > limit) {
        // With many slots an attempt is dear, and little is lost by leaving more room each time.
        int times = slots.views.size() > 256 ? attempt : 0;
        mayBeLive -= std::max<int64_t>(candidate.plan.arenaBytes - limit, 1) << times;
        continue;
      }
      int64_t arena = list.getNumber(getView(memref::AllocOp(slots.arena)).allocation);
      ordered = toAddresses(slots, std::move(ordered), arena, candidate.plan.offsets);
    }
    candidate.cost = getCost(ordered, list, candidate.order);
    return candidate;
  }
  return std::nullopt;
}

/// Moves the slots to where the plan has them.
static void moveSlots(const Slots &slots, const MemoryPlan &plan) {
  memref::AllocOp arena = slots.arena;
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
  for (auto [slot, offset] : llvm::zip_equal(slots.views, plan.offsets)) {
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

LogicalResult weir::reorderCommands(schedule::CommandsOp commands, Effects &effects, Views &views,
                                    int64_t percent, int64_t most) {
  FailureOr<CommandList> list = collectAccesses(commands, effects, views);
  if (failed(list))
    return failure();
  std::vector<int64_t> asIs(list->dispatches.size());
  std::iota(asIs.begin(), asIs.end(), 0);
  int64_t cost = getCost(list->accesses, *list, asIs);
  Slots slots = findSlots(*list);
  if (slots.mayMove() && !slots.shareBytes())
    slots = {}; // nobody's bytes forbid an order
  int64_t limit = std::numeric_limits<int64_t>::max();
  if (slots.mayMove()) {
    int64_t arenaBytes = slots.arena.getType().getNumElements();
    int64_t whole = arenaBytes / 100, rest = arenaBytes % 100;
    if (percent == 0 || whole <= (limit - arenaBytes - rest * percent / 100) / percent)
      limit = arenaBytes + whole * percent + rest * percent / 100;
    if (most > 0)
      limit = std::max(arenaBytes, std::min(limit, most));
  }
  std::optional<Candidate> best;
  try {
    best = findOrder(*list, slots, limit);
  } catch (const Error &error) {
    return commands.emitOpError() << "cannot be placed in another order: " << error.what();
  }
  if (!best || best->cost >= cost)
    return success();
  remark::passed(commands.getLoc(), remark::RemarkOpts::name("order").category("insert-barriers"))
      << remark::add("another order of dispatches needs {0} barriers, signals and waits in place "
                     "of {1}",
                     best->cost, cost);
  for (int64_t number : best->order)
    list->dispatches[number]->moveBefore(&commands.getBody().front(),
                                         commands.getBody().front().end());
  if (slots.mayMove())
    moveSlots(slots, best->plan);
  views = Views();
  FailureOr<CommandList> ordered = collectAccesses(commands, effects, views);
  if (failed(ordered))
    return failure();
  setWaves(*ordered, findHazards(ordered->accesses), [](memref::ViewOp view) {
    auto slot = view->getAttrOfType<schedule::SlotAttr>(schedule::slotAttrName);
    return slot ? SlotUse{slot.getValue().str(), slot.getAlignment()} : SlotUse();
  });
  return success();
}
