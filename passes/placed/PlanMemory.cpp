//===- PlanMemory.cpp - Pack the values of an entry into one arena --------===//
//
// A value is a memref.alloc that dispatches use. It lives from the first wave
// that uses it to the last, both included: dispatches of one wave may run at
// the same time in any order. Values that pass their bytes on by permission make
// a chain, which is placed as one; a chain that ends in a result lies in the
// result, or in the donated argument that it begins with. Slots come from the
// planner's library; here values become views of the arena.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Steps.h"
#include "passes/placed/Slots.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "weir/Analysis/CommandList.h"
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
  Value value;                       ///< what `alloc` makes
  SmallVector<Operation *, 0> views; ///< each after what it is a view of
  SmallVector<Operation *, 0> frees; ///< behind the commands; the arena outlives them
  Lifetime lifetime;
  bool isUsed = false; ///< by a command
};

/// Values that take each other's bytes in turn, by their numbers.
struct Chain {
  SmallVector<size_t> values;
  BlockArgument argument; ///< donated, the first to have the bytes; or null
  BlockArgument result;   ///< the last to have them; or null
};

struct Placement {
  SmallVector<Chain> chains;
  MemoryPlan plan; ///< what of the arena each chain needs
};

using NewSlots = std::vector<std::pair<memref::ViewOp, SlotUse>>;

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
    markAnalysesPreserved<Effects, Views>();
  }

private:
  LogicalResult plan(func::FuncOp function, schedule::CommandsOp commands, Effects &effects,
                     Views &views);
  LogicalResult checkDonation(func::FuncOp function, ArrayRef<Chain> chains);
  NewSlots place(func::FuncOp function, MutableArrayRef<Placed> values, const Placement &placement,
                 int64_t pinnedBytes);
};
} // namespace

/// Waves must be there and must not decrease, else an interval of waves is no
/// interval of the recorded order.
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

/// Follows the value to its dispatches.
static LogicalResult findUses(Placed &value, schedule::CommandsOp commands) {
  SmallVector<Value> names = {value.alloc};
  while (!names.empty()) {
    Value name = names.pop_back_val();
    for (Operation *user : name.getUsers()) {
      if (auto command = dyn_cast<schedule::CommandOpInterface>(user)) {
        int64_t wave = *command.getWave();
        Lifetime &life = value.lifetime;
        life.firstWave = value.isUsed ? std::min(life.firstWave, wave) : wave;
        life.lastWave = value.isUsed ? std::max(life.lastWave, wave) : wave;
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

/// The function's values that dispatches use; the others are erased.
static FailureOr<SmallVector<Placed>> collect(func::FuncOp function,
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
    value.value = alloc;
    value.lifetime.bytes = *bytes;
    value.lifetime.alignment = std::max<int64_t>(256, alloc.getAlignment().value_or(1));
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

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

static bool isResult(func::FuncOp function, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && function.getArgAttr(argument.getArgNumber(), schedule::resultAttrName);
}

/// Whether `result` is the next value of `argument`: a caller that invokes the entry
/// again passes it as that, by name.
static bool isSuccessor(func::FuncOp function, BlockArgument argument, Value result) {
  auto getName = [&](BlockArgument of) {
    return function.getArgAttr(of.getArgNumber(), schedule::nameAttrName);
  };
  Attribute name = getName(argument);
  return name && name == getName(cast<BlockArgument>(result));
}

/// Which value takes whose bytes: first whatever leads from a donated argument to
/// a result, in as few steps as can be, that of its own name above all; then
/// results, then the others. A value gives its bytes once and takes them once.
static llvm::MapVector<Value, Value> chooseSources(func::FuncOp function,
                                                   schedule::CommandsOp commands) {
  llvm::MapVector<Value, SmallVector<Value>> takers; // by source, in recorded order
  for (auto dispatch : commands.getBody().front().getOps<schedule::DispatchOp>()) {
    auto permissions = dispatch->getAttrOfType<ArrayAttr>(schedule::permissionsAttrName);
    dispatch->removeAttr(schedule::permissionsAttrName);
    if (!permissions)
      continue;
    for (auto permission : permissions.getAsRange<schedule::PermissionAttr>())
      takers[getView(dispatch.getOperands()[permission.getSource()]).allocation.value].push_back(
          getView(dispatch.getOperands()[permission.getTarget()]).allocation.value);
  }
  llvm::MapVector<Value, Value> sources;
  DenseSet<Value> given;
  auto lead = [&](BlockArgument argument, bool toSuccessor) {
    DenseMap<Value, Value> from;
    SmallVector<Value> open = {argument};
    Value result;
    for (size_t next = 0; next < open.size() && !result; ++next)
      for (Value taker : takers.lookup(open[next])) {
        if (sources.contains(taker) || !from.try_emplace(taker, open[next]).second)
          continue;
        if (!isResult(function, taker)) {
          open.push_back(taker);
        } else if (!toSuccessor || isSuccessor(function, argument, taker)) {
          result = taker;
          break;
        }
      }
    for (Value value = result; value && value != argument; value = from[value]) {
      sources[value] = from[value];
      given.insert(from[value]);
    }
  };
  for (bool toSuccessor : {true, false})
    for (BlockArgument argument : function.getArguments())
      if (takers.contains(argument) && !given.contains(argument))
        lead(argument, toSuccessor);
  for (bool toResults : {true, false})
    for (auto &[source, wishes] : takers)
      for (Value taker : wishes)
        if (isResult(function, taker) == toResults && !isa<BlockArgument>(source) &&
            !sources.contains(taker) && given.insert(source).second)
          sources[taker] = source;
  return sources;
}

/// Strings the values together.
static SmallVector<Chain> makeChains(func::FuncOp function, ArrayRef<Placed> values,
                                     const llvm::MapVector<Value, Value> &sources) {
  DenseMap<Value, size_t> numbers;
  for (auto [index, value] : llvm::enumerate(values))
    numbers[value.value] = index;
  DenseMap<Value, Value> takers;
  for (auto [target, source] : sources)
    takers[source] = target;
  SmallVector<Chain> chains;
  auto follow = [&](Value head) {
    Chain chain;
    chain.argument = dyn_cast<BlockArgument>(head);
    for (Value value = head; value; value = takers.lookup(value)) {
      auto number = numbers.find(value);
      if (number != numbers.end())
        chain.values.push_back(number->second);
      else if (isResult(function, value))
        chain.result = cast<BlockArgument>(value);
    }
    chains.push_back(std::move(chain));
  };
  for (const Placed &value : values)
    if (!sources.contains(value.value))
      follow(value.value);
  for (auto [source, target] : takers)
    if (isa<BlockArgument>(source))
      follow(source);
  // The order of the map is none.
  llvm::sort(chains, [](const Chain &a, const Chain &b) {
    auto key = [](const Chain &chain) {
      return std::pair(chain.argument ? int64_t(chain.argument.getArgNumber()) : -1,
                       chain.values.empty() ? size_t(0) : chain.values.front());
    };
    return key(a) < key(b);
  });
  return chains;
}

/// What of the arena the chains need.
static MemoryPlan planChains(ArrayRef<Placed> values, ArrayRef<Chain> chains, bool noReuse,
                             int64_t effort) {
  std::vector<Lifetime> lifetimes;
  for (const Chain &chain : chains) {
    Lifetime whole; // of what lies elsewhere: nothing
    if (!chain.result) {
      whole = values[chain.values.front()].lifetime;
      for (size_t number : chain.values) {
        const Lifetime &part = values[number].lifetime;
        whole.bytes = std::max(whole.bytes, part.bytes);
        whole.alignment = std::max(whole.alignment, part.alignment);
        whole.firstWave = std::min(whole.firstWave, part.firstWave);
        whole.lastWave = std::max(whole.lastWave, part.lastWave);
      }
    }
    lifetimes.push_back(whole);
  }
  // A step looks at what is live with one value: it costs more where there are many.
  return planMemory(lifetimes, noReuse, effort / (1 + int64_t(lifetimes.size()) / 64));
}

static Placement placeChains(func::FuncOp function, ArrayRef<Placed> values,
                             const llvm::MapVector<Value, Value> &sources, bool noReuse,
                             int64_t effort) {
  Placement placement;
  placement.chains = makeChains(function, values, sources);
  placement.plan = planChains(values, placement.chains, noReuse, effort);
  return placement;
}

/// Leaves out what would make the arena larger than it is without: chains of values
/// in between live longer than each of theirs, and may leave gaps.
static Placement placeCheapest(func::FuncOp function, ArrayRef<Placed> values,
                               llvm::MapVector<Value, Value> sources, int64_t effort) {
  constexpr size_t budget = 100'000; // values placed in all
  auto place = [&](const llvm::MapVector<Value, Value> &chosen, int64_t effort) {
    return placeChains(function, values, chosen, /*noReuse=*/false, effort);
  };
  Placement best = place(sources, effort);
  if (best.plan.arenaBytes == best.plan.boundBytes)
    return best;
  llvm::SetVector<Value> inArena; // who takes the bytes of another there
  for (const Chain &chain : best.chains)
    if (!chain.result)
      for (size_t number : ArrayRef(chain.values).drop_front())
        inArena.insert(values[number].value);
  llvm::MapVector<Value, Value> fewer = sources;
  fewer.remove_if([&](const auto &pair) { return inArena.contains(pair.first); });
  if (Placement other = place(fewer, effort); other.plan.arenaBytes < best.plan.arenaBytes)
    return other;
  bool isGreedy = false;
  for (Value taker : inArena.getArrayRef().take_front(budget / values.size())) {
    fewer = sources;
    fewer.erase(taker);
    if (Placement other = place(fewer, /*effort=*/0);
        other.plan.arenaBytes < best.plan.arenaBytes) {
      sources = std::move(fewer);
      best = std::move(other);
      isGreedy = true;
    }
  }
  return isGreedy ? place(sources, effort) : best;
}

FailureOr<int64_t> weir::getArenaBytes(func::FuncOp function, int64_t effort) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return failure();
  FailureOr<SmallVector<Placed>> values = collect(function, *commands);
  if (failed(values))
    return failure();
  llvm::MapVector<Value, Value> sources = chooseSources(function, *commands);
  try {
    return placeCheapest(function, *values, std::move(sources), effort).plan.arenaBytes;
  } catch (const Error &error) {
    return function.emitOpError() << "cannot be placed: " << error.what();
  }
}

/// Says of every donated argument that keeps its bytes why it does.
LogicalResult PlanMemory::checkDonation(func::FuncOp function, ArrayRef<Chain> chains) {
  bool ok = true;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!function.getArgAttr(index, schedule::donateAttrName) || noReuse || getBorrower(argument) ||
        llvm::any_of(chains, [&](const Chain &chain) { return chain.argument == argument; }))
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
  FailureOr<SmallVector<Placed>> values = collect(function, commands);
  if (failed(values))
    return failure();
  llvm::MapVector<Value, Value> sources = chooseSources(function, commands);
  std::vector<Lifetime> single;
  for (const Placed &value : *values)
    single.push_back(value.lifetime);
  Placement placement;
  MemoryPlan pinned;
  try {
    pinned = planMemory(single, /*noReuse=*/true);
    placement = noReuse ? placeChains(function, *values, {}, /*noReuse=*/true, effort)
                        : placeCheapest(function, *values, std::move(sources), effort);
  } catch (const Error &error) {
    return function.emitOpError() << "cannot be placed: " << error.what();
  }
  if (failed(checkDonation(function, placement.chains)))
    return failure();
  NewSlots slots = place(function, *values, placement, pinned.arenaBytes);

  // Bytes that were passed on inside a wave order its dispatches now.
  views = Views();
  FailureOr<CommandList> list = collectAccesses(commands, effects, views);
  if (failed(list))
    return failure();
  std::vector<const SlotUse *> uses; // by number of the view
  for (const auto &[view, use] : slots) {
    size_t number = views.getNumber(memref::ViewOp(view));
    uses.resize(std::max(uses.size(), number + 1));
    uses[number] = &use;
  }
  setWaves(*list, findHazards(list->accesses),
           [&](memref::ViewOp view) { return *uses[views.getNumber(view)]; });
  return success();
}

NewSlots PlanMemory::place(func::FuncOp function, MutableArrayRef<Placed> values,
                           const Placement &placement, int64_t pinnedBytes) {
  const auto &[chains, plan] = placement;
  NewSlots slots;
  DenseMap<int64_t, Value> shifts; // the constant of each offset; they follow the arena
  OpBuilder builder(&function.getBody().front(), function.getBody().front().begin());
  memref::AllocOp arena;
  if (llvm::any_of(chains, [](const Chain &chain) { return !chain.result; })) {
    int64_t alignment = 1;
    for (const Placed &value : values)
      alignment = std::max(alignment, value.lifetime.alignment);
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
  for (auto [chain, offset] : llvm::zip_equal(chains, plan.offsets)) {
    BlockArgument result = chain.result;
    Value bytes = chain.argument ? chain.argument : result;
    if (chain.argument) {
      function.setArgAttr(chain.result.getArgNumber(), schedule::donatedAttrName,
                          builder.getI64IntegerAttr(chain.argument.getArgNumber()));
      result.replaceAllUsesWith(chain.argument);
    }
    std::string name;
    int64_t alignment = 1;
    for (size_t number : chain.values) {
      auto known = values[number].alloc->getAttrOfType<StringAttr>(schedule::nameAttrName);
      name += (name.empty() ? "" : ", ") +
              (known ? known.getValue().str() : "value" + std::to_string(number));
      alignment = std::max(alignment, values[number].lifetime.alignment);
    }
    if (!bytes) {
      Placed &head = values[chain.values.front()];
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
      slots.push_back({view, {std::move(name), alignment}});
      head.views.insert(head.views.begin(), view);
      bytes = view;
    }
    // The first in a chain stands before all that use it.
    for (size_t number : chain.values) {
      memref::AllocOp alloc = values[number].alloc;
      alloc.replaceAllUsesWith(bytes);
      alloc.erase();
    }
    inPlace += chain.values.size() + bool(chain.argument) + bool(chain.result) - 1;
  }
  remark::passed(function.getLoc(), remark::RemarkOpts::name("arena").category("plan-memory"))
      << remark::add("the arena has {0} bytes, at least {1} are needed, and {2} would be if every "
                     "value had bytes of its own; number of values {3}, of those in the bytes of "
                     "another {4}",
                     plan.arenaBytes, plan.boundBytes, pinnedBytes, values.size(), inPlace);
  return slots;
}
