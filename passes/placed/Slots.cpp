//===- Slots.cpp - Slots of the arena, and waves --------------------------===//

#include "passes/placed/Slots.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

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
/// The commands that use a slot, by number.
struct SlotUsers {
  memref::ViewOp slot;
  int64_t first = 0, last = 0;
};
} // namespace

/// Returns the slots in the order of their first users.
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

/// Returns hazards from the last user of a slot to the first of the next one that has a byte of it.
/// Slots live as a whole, so it does not matter which bytes they touch there.
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
