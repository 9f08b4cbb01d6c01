//===- KernelDispatches.cpp - What the dispatches of a kernel tell --------===//

#include "weir/Analysis/KernelDispatches.h"

#include "weir/Analysis/Aliasing.h"

using namespace mlir;
using namespace weir;

KernelDispatches::KernelDispatches(Operation *module) {
  SymbolTableCollection tables;
  DenseSet<Operation *> launched;
  module->walk([&](Operation *op) {
    if (auto dispatch = dyn_cast<schedule::DispatchOp>(op)) {
      if (Operation *kernel = tables.lookupNearestSymbolFrom(dispatch, dispatch.getKernelAttr()))
        dispatches[kernel].push_back(dispatch);
    } else if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
      if (Operation *kernel = tables.lookupNearestSymbolFrom(launch, launch.getKernelAttr()))
        launched.insert(kernel);
    }
  });
  for (Operation *kernel : launched)
    dispatches.erase(kernel);
}

ArrayRef<schedule::DispatchOp> KernelDispatches::get(gpu::GPUFuncOp kernel) const {
  auto it = dispatches.find(kernel);
  return it == dispatches.end() ? ArrayRef<schedule::DispatchOp>() : ArrayRef(it->second);
}

LaunchSizes KernelDispatches::getSizes(gpu::GPUFuncOp kernel) const {
  LaunchSizes sizes = LaunchSizes::get(kernel, launches);
  ArrayRef<schedule::DispatchOp> all = get(kernel);
  for (unsigned axis = 0; axis < 3 && !all.empty(); ++axis) {
    auto getSize = [&](schedule::DispatchOp op) { return op.getGrid()[axis]; };
    if (llvm::all_equal(llvm::map_range(all, getSize)))
      sizes.grid[axis] = getSize(all.front());
  }
  return sizes;
}

/// Whether the bytes of an operand are those of a flat view.
static bool isFlat(Value operand) {
  auto type = dyn_cast<MemRefType>(operand.getType());
  return type && type.areTrailingDimsContiguous(type.getRank());
}

ArgumentSharing KernelDispatches::findSharing(ArrayRef<schedule::DispatchOp> all, unsigned first,
                                              unsigned second) const {
  ArgumentSharing sharing;
  for (schedule::DispatchOp dispatch : all) {
    Value from = dispatch.getOperands()[first], to = dispatch.getOperands()[second];
    if (!isFlat(from) || !isFlat(to))
      return ArgumentSharing();
    const View &a = views.get(from), &b = views.get(to);
    if (compare(a, b) == Sharing::Disjoint)
      continue;
    if (compare(a.allocation, b.allocation) != Sharing::Overlap || !a.range || !b.range)
      return ArgumentSharing();
    int64_t shift = b.range->begin - a.range->begin;
    if (!llvm::is_contained(sharing.shifts, shift))
      sharing.shifts.push_back(shift);
  }
  sharing.unknown = false;
  return sharing;
}

std::optional<ArgumentSharing> KernelDispatches::getSharing(gpu::GPUFuncOp kernel, unsigned first,
                                                            unsigned second) const {
  ArrayRef<schedule::DispatchOp> all = get(kernel);
  if (all.empty())
    return std::nullopt;
  auto [it, isNew] = sharings.try_emplace({kernel, first, second});
  if (isNew)
    it->second = findSharing(all, first, second);
  return it->second;
}
