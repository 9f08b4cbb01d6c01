//===- Effects.cpp - What a kernel does to its operands -------------------===//
//
// Sums up, for each argument, the memory instructions that the access maps follow to it.
//
//===----------------------------------------------------------------------===//

#include "weir/Analysis/Effects.h"

using namespace mlir;
using namespace weir;
using schedule::Access;

static KernelEffects computeFromBody(gpu::GPUFuncOp kernel, Launches &launches) {
  KernelEffects effects;
  unsigned count = kernel.getNumArguments();
  SmallVector<std::pair<bool, bool>> uses(count); // reads, writes
  AccessMaps maps(kernel, LaunchSizes::get(kernel, launches));
  for (const MemoryAccess &access : maps.getAccesses()) {
    auto argument = dyn_cast_or_null<BlockArgument>(access.root);
    if (argument && argument.getArgNumber() < count &&
        argument.getOwner() == &kernel.getBody().front()) {
      uses[argument.getArgNumber()].first |= access.reads;
      uses[argument.getArgNumber()].second |= access.writes;
    } else if (!argument && !effects.reachesOther &&
               !(access.root &&
                 (maps.isPrivate(access.root) || gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
                                                     cast<MemRefType>(access.root.getType()))))) {
      effects.reachesOther = access.calls.empty() ? access.op : access.calls.front();
    }
  }
  for (auto [index, use] : llvm::enumerate(uses)) {
    OperandEffect &effect = effects.operands.emplace_back();
    auto [read, write] = use;
    effect.access =
        read ? (write ? Access::update : Access::read) : (write ? Access::write : Access::none);
    if (!write)
      continue;
    auto declared = kernel.getArgAttrOfType<schedule::EffectAttr>(index, schedule::effectAttrName);
    auto type = cast<BaseMemRefType>(kernel.getArgument(index).getType());
    std::optional<int64_t> bytes =
        type.hasRank() ? schedule::getByteSize(cast<MemRefType>(type)) : std::nullopt;
    effect.coversAll = (declared && declared.getCoversAll()) ||
                       (bytes && maps.coversAll(kernel.getArgument(index), *bytes));
    if (declared && !read && !effect.coversAll)
      effect.slice = declared.getSlice();
  }
  return effects;
}

static KernelEffects computeFromDeclaration(gpu::GPUFuncOp kernel) {
  KernelEffects effects;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    OperandEffect &effect = effects.operands.emplace_back();
    auto declared = kernel.getArgAttrOfType<schedule::EffectAttr>(index, schedule::effectAttrName);
    if (!isa<BaseMemRefType>(type))
      effect.access = Access::none;
    else if (declared)
      effect.access = declared.getAccess();
    effect.coversAll = declared && declared.getCoversAll() && writes(effect.access);
    if (declared)
      effect.slice = declared.getSlice();
  }
  return effects;
}

const KernelEffects &Effects::get(gpu::GPUFuncOp kernel) {
  std::unique_ptr<KernelEffects> &entry = known[kernel];
  if (!entry)
    entry = std::make_unique<KernelEffects>(
        kernel.isExternal() ? computeFromDeclaration(kernel) : computeFromBody(kernel, launches));
  return *entry;
}
