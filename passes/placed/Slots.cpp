//===- Slots.cpp - Slots of the arena -------------------------------------===//

#include "passes/placed/Slots.h"

#include "dialects/Schedule/Schedule.h"
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
