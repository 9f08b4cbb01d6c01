//===- PlanMemory.cpp - Pack the values of an entry into one arena --------===//
//
// A value is a memref.alloc that dispatches use. It lives from the first wave
// that uses it to the last, both included: dispatches of one wave may run at
// the same time in any order. Slots come from the planner's library; here
// values become views of the arena.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "weir/Analysis/Hazards.h"
#include "weir/Artifact/Error.h"
#include "weir/Planner/Planner.h"

namespace weir {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
/// A value and the operations that name it or parts of it.
struct Placed {
  memref::AllocOp alloc;
  SmallVector<Operation *> views; ///< each after what it is a view of
  bool used = false;              ///< by a dispatch
  Lifetime lifetime;
};

struct PlanMemory : weir::impl::PlanMemoryPassBase<PlanMemory> {
  using PlanMemoryPassBase::PlanMemoryPassBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      FailureOr<schedule::CommandsOp> commands = getCommands(function);
      if (failed(commands) || (*commands && failed(plan(function, *commands))))
        signalPassFailure();
    }
  }

private:
  LogicalResult plan(func::FuncOp function, schedule::CommandsOp commands);
  LogicalResult place(func::FuncOp function, ArrayRef<Placed> values);
};
} // namespace

/// Waves must be there and must not decrease, else an interval of waves is no
/// interval of the recorded order.
static LogicalResult checkWaves(schedule::CommandsOp commands) {
  int64_t wave = 0;
  for (auto command : commands.getBody().front().getOps<schedule::CommandOpInterface>()) {
    if (!command.getWave())
      return command->emitOpError("has no wave; run weir-schedule first");
    if (int64_t(*command.getWave()) < wave)
      return command->emitOpError()
             << "is in wave " << *command.getWave() << ", after a dispatch of wave " << wave;
    wave = *command.getWave();
  }
  return success();
}

/// Follows the value to its dispatches.
static LogicalResult findUses(Placed &value) {
  SmallVector<Value> names = {value.alloc};
  while (!names.empty()) {
    Value name = names.pop_back_val();
    for (Operation *user : name.getUsers()) {
      if (auto command = dyn_cast<schedule::CommandOpInterface>(user)) {
        int64_t wave = *command.getWave();
        Lifetime &life = value.lifetime;
        life.firstWave = value.used ? std::min(life.firstWave, wave) : wave;
        life.lastWave = value.used ? std::max(life.lastWave, wave) : wave;
        value.used = true;
        continue;
      }
      // A barrier names bytes and uses none; weir-insert-barriers makes it
      // anew.
      if (isa<schedule::BarrierOp>(user))
        return user->emitOpError("stands before the values have their places");
      if (!isa<ViewLikeOpInterface>(user))
        return value.alloc.emitOpError("is used by more than dispatches and cannot be placed")
                   .attachNote(user->getLoc())
               << "it is used here";
      value.views.push_back(user);
      llvm::append_range(names, user->getResults());
    }
  }
  return success();
}

LogicalResult PlanMemory::plan(func::FuncOp function, schedule::CommandsOp commands) {
  if (failed(checkWaves(commands)))
    return failure();
  SmallVector<Placed> values;
  bool ok = true;
  Attribute space;
  for (auto alloc : function.getOps<memref::AllocOp>()) {
    if (alloc->hasAttr(schedule::arenaAttrName))
      return alloc.emitOpError("is an arena already: the values were placed before");
    std::optional<int64_t> bytes = schedule::getByteSize(alloc.getType());
    if (!bytes) {
      alloc.emitOpError() << "of type " << alloc.getType()
                          << " cannot be placed: its shape must be static and its layout plain";
      ok = false;
      continue;
    }
    if (!values.empty() && alloc.getType().getMemorySpace() != space) {
      alloc.emitOpError("is in another memory space than the other values, an arena has one");
      ok = false;
    }
    space = alloc.getType().getMemorySpace();
    Placed &value = values.emplace_back();
    value.alloc = alloc;
    value.lifetime.bytes = *bytes;
    value.lifetime.alignment = std::max<int64_t>(256, alloc.getAlignment().value_or(1));
    ok &= succeeded(findUses(value));
  }
  if (!ok)
    return failure();
  for (Placed &value : values) {
    if (value.used)
      continue;
    for (Operation *view : llvm::reverse(value.views))
      view->erase();
    value.alloc.erase();
  }
  llvm::erase_if(values, [](const Placed &value) { return !value.used; });
  return values.empty() ? success() : place(function, values);
}

LogicalResult PlanMemory::place(func::FuncOp function, ArrayRef<Placed> values) {
  std::vector<Lifetime> lifetimes;
  for (const Placed &value : values)
    lifetimes.push_back(value.lifetime);
  MemoryPlan plan;
  try {
    plan = planMemory(lifetimes, noReuse);
  } catch (const Error &error) {
    return function.emitOpError() << "cannot be placed: " << error.what();
  }

  OpBuilder builder(&function.getBody().front(), function.getBody().front().begin());
  int64_t alignment = 1;
  for (const Lifetime &lifetime : lifetimes)
    alignment = std::max(alignment, lifetime.alignment);
  memref::AllocOp first = values.front().alloc;
  auto arenaType = MemRefType::get({plan.arenaBytes}, builder.getI8Type(),
                                   MemRefLayoutAttrInterface(), first.getType().getMemorySpace());
  auto arena = memref::AllocOp::create(builder, function.getLoc(), arenaType,
                                       builder.getI64IntegerAttr(alignment));
  arena->setAttr(schedule::arenaAttrName, builder.getUnitAttr());
  arena->setAttr(schedule::pinnedBytesAttrName, builder.getI64IntegerAttr(plan.pinnedBytes));
  for (auto [index, value, offset] : llvm::enumerate(values, plan.offsets)) {
    memref::AllocOp alloc = value.alloc;
    builder.setInsertionPoint(alloc);
    Value shift = arith::ConstantIndexOp::create(builder, alloc.getLoc(), offset);
    auto view = memref::ViewOp::create(builder, alloc.getLoc(), alloc.getType(), arena, shift,
                                       ValueRange());
    auto name = alloc->getAttrOfType<StringAttr>(schedule::nameAttrName);
    NamedAttribute slot[] = {
        builder.getNamedAttr("value", name ? name : builder.getStringAttr("value" + Twine(index))),
        builder.getNamedAttr("alignment", builder.getI64IntegerAttr(value.lifetime.alignment)),
        builder.getNamedAttr("first_wave", builder.getI64IntegerAttr(value.lifetime.firstWave)),
        builder.getNamedAttr("last_wave", builder.getI64IntegerAttr(value.lifetime.lastWave))};
    view->setAttr(schedule::slotAttrName, builder.getDictionaryAttr(slot));
    alloc.replaceAllUsesWith(view.getResult());
    alloc.erase();
  }
  remark::passed(function.getLoc(), remark::RemarkOpts::name("arena").category("plan-memory"))
      << remark::metric("values", values.size()) << remark::metric("bytes", plan.arenaBytes)
      << remark::metric("pinned", plan.pinnedBytes);
  return success();
}
