//===- PlanMemory.cpp - Pack the values of an entry into one arena --------===//
//
// A value is a memref.alloc that dispatches use. lib/Order says which bytes it gets; here
// values become views of the arena, of a result or of a donated argument.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Order/Place.h"
#include "weir/Target/Errors.h"

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
  SmallVector<Operation *, 0> views; ///< each after what it is a view of
  SmallVector<Operation *, 0> frees; ///< behind the commands; the arena outlives them
  bool isUsed = false;               ///< by a command
};

/// The values of a function as a problem of lib/Order.
struct ArenaProblem {
  SmallVector<Placed> values; ///< by the number of their allocation
  SmallVector<schedule::CommandOpInterface> commands;
  OrderProblem problem;
  std::vector<Permission> permissions;
};

struct PlanMemory : weir::impl::PlanMemoryPassBase<PlanMemory> {
  using PlanMemoryPassBase::PlanMemoryPassBase;

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    Views &views = getAnalysis<Views>();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      FailureOr<schedule::CommandsOp> commands = getCommands(function);
      if (failed(commands) || (*commands && failed(plan(function, *commands, effects, views))))
        signalPassFailure();
    }
    markAnalysesPreserved<Effects, Views, InPlaceProofs>();
  }

private:
  LogicalResult plan(func::FuncOp function, schedule::CommandsOp commands, Effects &effects,
                     Views &views);
  LogicalResult checkDonation(func::FuncOp function, const OrderProblem &problem,
                              ArrayRef<Chain> chains);
  void place(func::FuncOp function, ArenaProblem &arena, const ArenaPlan &plan,
             int64_t pinnedBytes);
};
} // namespace

/// Checks that each command has a wave and that waves do not decrease: else an interval of waves is
/// not one of the recorded order.
static LogicalResult checkWaves(schedule::CommandsOp commands) {
  int64_t wave = 0;
  for (auto command : commands.getBody().front().getOps<schedule::CommandOpInterface>()) {
    if (!command.getWave())
      return command->emitOpError("has no wave; run weir-schedule first");
    if (*command.getWave() < wave)
      return command->emitOpError()
             << "is in wave " << *command.getWave() << ", after a dispatch of wave " << wave;
    wave = *command.getWave();
  }
  return success();
}

/// Finds the views, frees and dispatches of the value.
static LogicalResult findUses(Placed &value, schedule::CommandsOp commands) {
  SmallVector<Value> names = {value.alloc};
  while (!names.empty()) {
    Value name = names.pop_back_val();
    for (Operation *user : name.getUsers()) {
      if (isa<schedule::CommandOpInterface>(user)) {
        value.isUsed = true;
        continue;
      }
      // A barrier names bytes and uses none; weir-insert-barriers makes it
      // anew.
      if (isa<schedule::BarrierOp>(user))
        return user->emitOpError("stands before the values have their places");
      if (isa<memref::DeallocOp>(user) && user->getBlock() == commands->getBlock() &&
          commands->isBeforeInBlock(user)) {
        value.frees.push_back(user);
        continue;
      }
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

/// Returns the function's values that dispatches use, and erases the others.
static FailureOr<SmallVector<Placed>> collectValues(func::FuncOp function,
                                                    schedule::CommandsOp commands) {
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
    ok &= succeeded(findUses(value, commands));
  }
  if (!ok)
    return failure();
  for (Placed &value : values) {
    for (Operation *free : value.frees)
      free->erase();
    if (value.isUsed)
      continue;
    for (Operation *view : llvm::reverse(value.views))
      view->erase();
    value.alloc.erase();
  }
  llvm::erase_if(values, [](const Placed &value) { return !value.isUsed; });
  return values;
}

/// Collects values, commands and permissions, and removes the permissions from the function.
static FailureOr<ArenaProblem> collectArena(func::FuncOp function, schedule::CommandsOp commands,
                                            Effects &effects, Views &views, InPlaceProofs &proofs) {
  FailureOr<SmallVector<Placed>> values = collectValues(function, commands);
  if (failed(values))
    return failure();
  FailureOr<CollectedOrder> collected = weir::collect(function, commands, effects, views, proofs);
  if (failed(collected))
    return failure();
  auto &[list, problem] = *collected;
  ArenaProblem result;
  for (auto [op, command] : llvm::zip_equal(list.dispatches, problem.commands)) {
    auto permissions = op->getAttrOfType<ArrayAttr>(schedule::permissionsAttrName);
    op->removeAttr(schedule::permissionsAttrName);
    if (!permissions)
      continue;
    for (auto permission : permissions.getAsRange<schedule::PermissionAttr>())
      result.permissions.push_back({command.getOperand(permission.getTarget()).allocation,
                                    command.getOperand(permission.getSource()).allocation});
  }
  result.values = std::move(*values);
  result.commands = std::move(list.dispatches);
  result.problem = std::move(problem);
  return result;
}

/// Warns of each donated argument that keeps its bytes, and says why; with `require-donation` that
/// is an error.
LogicalResult PlanMemory::checkDonation(func::FuncOp function, const OrderProblem &problem,
                                        ArrayRef<Chain> chains) {
  // A segment's arguments are ours to give.
  if (function->hasAttr(schedule::segmentAttrName))
    return success();
  bool ok = true;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!function.getArgAttr(index, schedule::donateAttrName) || noReuse || getBorrower(argument) ||
        llvm::any_of(chains, [&](const Chain &chain) {
          return chain.argument >= 0 && problem.allocations[chain.argument].number == index;
        }))
      continue;
    auto name = function.getArgAttrOfType<StringAttr>(index, schedule::nameAttrName);
    InFlightDiagnostic message =
        requireDonation ? emitError(argument.getLoc()) : emitWarning(argument.getLoc());
    if (name)
      message << "argument \"" << name.getValue() << "\"";
    else
      message << "argument " << index;
    message << " is donated, but no result takes its bytes";
    if (auto refusal =
            function.getArgAttrOfType<DictionaryAttr>(index, schedule::refusalAttrName)) {
      message << ": " << refusal.getAs<StringAttr>("reason").getValue();
      if (StringRef detail = refusal.getAs<StringAttr>("detail").getValue(); !detail.empty())
        message << ", " << detail;
      message.attachNote(refusal.getAs<LocationAttr>("witness")) << "this stands in the way";
    }
    ok &= !requireDonation;
  }
  return success(ok);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

LogicalResult PlanMemory::plan(func::FuncOp function, schedule::CommandsOp commands,
                               Effects &effects, Views &views) {
  if (failed(checkWaves(commands)))
    return failure();
  InPlaceProofs proofs(function); // never asked: permissions stand in the function
  FailureOr<ArenaProblem> arena = collectArena(function, commands, effects, views, proofs);
  if (failed(arena))
    return failure();
  auto refuse = [&] { return function.emitOpError() << "cannot be placed: "; };
  FailureOr<int64_t> pinnedBytes =
      catchErrors(refuse, [&] { return planWithoutReuse(arena->problem).plan.arenaBytes; });
  if (failed(pinnedBytes))
    return failure();
  FailureOr<ArenaPlan> plan = catchErrors(refuse, [&] {
    return noReuse ? planWithoutReuse(arena->problem)
                   : planArena(arena->problem, arena->permissions, effort);
  });
  if (failed(plan) || failed(checkDonation(function, arena->problem, plan->chains)))
    return failure();
  place(function, *arena, *plan, *pinnedBytes);
  views = Views();
  return success();
}

void PlanMemory::place(func::FuncOp function, ArenaProblem &problem, const ArenaPlan &places,
                       int64_t pinnedBytes) {
  const auto &[chains, plan] = places;
  // Bytes that were passed on inside a wave order its dispatches now.
  PlacedWaves placed = getPlacedWaves(problem.problem, places);
  for (auto [command, wave] : llvm::zip_equal(problem.commands, placed.waves))
    command.setWave(wave);
  auto getAllocation = [&](int64_t allocation) -> const OrderAllocation & {
    return problem.problem.allocations[allocation];
  };
  auto getArgument = [&](int64_t allocation) {
    return allocation < 0 ? BlockArgument()
                          : function.getArgument(getAllocation(allocation).number);
  };
  SmallVectorImpl<Placed> &values = problem.values;
  DenseMap<int64_t, Value> shifts; // the constant of each offset; they follow the arena
  OpBuilder builder(&function.getBody().front(), function.getBody().front().begin());
  memref::AllocOp arena;
  if (llvm::any_of(chains, [](const Chain &chain) { return chain.result < 0; })) {
    int64_t alignment = 1;
    for (const OrderAllocation &allocation : problem.problem.allocations)
      if (allocation.isValue)
        alignment = std::max(alignment, allocation.alignment);
    memref::AllocOp any = values.front().alloc;
    auto arenaType = MemRefType::get({plan.arenaBytes}, builder.getI8Type(),
                                     MemRefLayoutAttrInterface(), any.getType().getMemorySpace());
    arena = memref::AllocOp::create(builder, function.getLoc(), arenaType,
                                    builder.getI64IntegerAttr(alignment));
    arena->setAttr(schedule::arenaAttrName, builder.getUnitAttr());
  }
  function->setAttr(schedule::pinnedBytesAttrName, builder.getI64IntegerAttr(pinnedBytes));
  int64_t inPlace = 0;
  Operation *last = arena;
  for (auto [chain, offset, life] : llvm::zip_equal(chains, plan.offsets, placed.lives)) {
    BlockArgument result = getArgument(chain.result), argument = getArgument(chain.argument);
    Value bytes = argument ? argument : result;
    if (argument) {
      function.setArgAttr(result.getArgNumber(), schedule::donatedAttrName,
                          builder.getI64IntegerAttr(argument.getArgNumber()));
      result.replaceAllUsesWith(argument);
    }
    std::string name;
    int64_t alignment = 1;
    for (int64_t value : chain.values) {
      int64_t number = getAllocation(value).number;
      auto known = values[number].alloc->getAttrOfType<StringAttr>(schedule::nameAttrName);
      name += (name.empty() ? "" : ", ") +
              (known ? known.getValue().str() : "value" + std::to_string(number));
      alignment = std::max(alignment, getAllocation(value).alignment);
    }
    if (!bytes) {
      Placed &head = values[getAllocation(chain.values.front()).number];
      Location loc = head.alloc.getLoc();
      Value &shift = shifts[offset];
      if (!shift) {
        builder.setInsertionPointAfter(last);
        shift = arith::ConstantIndexOp::create(builder, loc, offset);
        last = shift.getDefiningOp();
      }
      builder.setInsertionPoint(head.alloc);
      auto view =
          memref::ViewOp::create(builder, loc, head.alloc.getType(), arena, shift, ValueRange());
      view->setAttr(
          schedule::slotAttrName,
          schedule::SlotAttr::get(function.getContext(), name, alignment, life.first, life.second));
      bytes = view;
    }
    // The first in a chain stands before all that use it.
    for (int64_t value : chain.values)
      values[getAllocation(value).number].alloc.replaceAllUsesWith(bytes);
    inPlace += chain.values.size() + bool(argument) + bool(result) - 1;
  }
  // Behind all views: they would be scattered over the memory that this leaves, and passes that
  // walk them would take a fifth longer.
  for (Placed &value : values)
    value.alloc.erase();
  remark::passed(function.getLoc(), remark::RemarkOpts::name("arena").category("plan-memory"))
      << remark::add("the arena has {0} bytes, at least {1} are needed, and {2} would be if every "
                     "value had bytes of its own; number of values {3}, of those in the bytes of "
                     "another {4}",
                     plan.arenaBytes, plan.boundBytes, pinnedBytes, values.size(), inPlace);
}
