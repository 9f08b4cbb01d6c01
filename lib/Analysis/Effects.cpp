//===- Effects.cpp - What a kernel does to its operands -------------------===//
//
// Follows an argument through its views to every operation that uses it. The
// memory effects that those operations declare are summed up; whatever declares
// none, passes the memref on or hides it is taken to read and write.
//
//===----------------------------------------------------------------------===//

#include "weir/Analysis/Effects.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace weir;
using schedule::Access;

namespace {
struct Uses {
  bool read = false;
  bool write = false;

  void setUnknown() { read = write = true; }
  Access get() const {
    if (read)
      return write ? Access::update : Access::read;
    return write ? Access::write : Access::none;
  }
};
} // namespace

/// Adds what `user` does to `value`; appends the views of it that it makes.
static void addUse(Operation *user, Value value, Uses &uses, SmallVectorImpl<Value> &views) {
  if (isa<memref::DimOp, memref::RankOp>(user))
    return;
  if (auto view = dyn_cast<ViewLikeOpInterface>(user)) {
    // A view that also takes the memref as something else hides it.
    if (view.getViewSource() == value && llvm::count(user->getOperands(), value) == 1) {
      for (Value result : user->getResults())
        if (isa<BaseMemRefType>(result.getType()))
          views.push_back(result);
      return;
    }
    return uses.setUnknown();
  }
  auto interface = dyn_cast<MemoryEffectOpInterface>(user);
  if (!interface)
    return uses.setUnknown();
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffectsOnValue(value, effects);
  if (effects.empty())
    return uses.setUnknown();
  for (const MemoryEffects::EffectInstance &effect : effects) {
    if (isa<MemoryEffects::Read>(effect.getEffect()))
      uses.read = true;
    else if (isa<MemoryEffects::Write>(effect.getEffect()))
      uses.write = true;
    else
      uses.setUnknown();
  }
}

Access weir::getAccess(Value memref) {
  Uses uses;
  SmallVector<Value> views = {memref};
  while (!views.empty()) {
    Value value = views.pop_back_val();
    for (Operation *user : value.getUsers())
      addUse(user, value, uses, views);
  }
  return uses.get();
}

/// Returns an operation that brings in memory other than the arguments', the
/// invocation's own or the workgroup's; null when there is none.
static Operation *findOtherMemory(gpu::GPUFuncOp kernel) {
  Operation *found = nullptr;
  kernel.getBody().walk([&](Operation *op) {
    auto bringsMemory = [&](Type type) {
      if (auto memref = dyn_cast<MemRefType>(type))
        return !gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(memref);
      StringRef dialect = type.getDialect().getNamespace();
      return isa<BaseMemRefType>(type) || dialect == "llvm" || dialect == "spirv";
    };
    bool known = isa<ViewLikeOpInterface, memref::AllocaOp, memref::AllocOp>(op);
    if (!isa<CallOpInterface>(op) && (known || !llvm::any_of(op->getResultTypes(), bringsMemory)))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

static KernelEffects compute(gpu::GPUFuncOp kernel) {
  KernelEffects effects;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    OperandEffect &effect = effects.operands.emplace_back();
    auto declared = kernel.getArgAttrOfType<schedule::EffectAttr>(index, schedule::effectAttrName);
    if (!isa<BaseMemRefType>(type))
      effect.access = Access::none;
    else if (!kernel.isExternal())
      effect.access = getAccess(kernel.getArgument(index));
    else if (declared)
      effect.access = declared.getAccess();
    effect.coversAll = declared && declared.getCoversAll() && writes(effect.access);
  }
  if (!kernel.isExternal())
    effects.reachesOther = findOtherMemory(kernel);
  return effects;
}

const KernelEffects &Effects::get(gpu::GPUFuncOp kernel) {
  std::unique_ptr<KernelEffects> &entry = known[kernel];
  if (!entry)
    entry = std::make_unique<KernelEffects>(compute(kernel));
  return *entry;
}
