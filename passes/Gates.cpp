//===- Gates.cpp - Checks that several gates share ------------------------===//

#include "passes/Gates.h"
#include "passes/placed/Slots.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "weir/Analysis/LoopTrips.h"
#include "weir/Artifact/StoredBytes.h"
#include "weir/Target/ProfileAttr.h"

#include <limits>
#include <map>
#include <queue>

using namespace mlir;
using namespace weir;

LogicalResult weir::verifyNoBarriers(ModuleOp module) {
  LogicalResult result = success();
  module.walk([&](Operation *op) {
    if (isa<schedule::BarrierOp, schedule::SignalOp, schedule::WaitOp>(op))
      result = op->emitOpError("belongs to the ordered level");
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// Reports problems, and counts the module as refused once there is one.
class Gate {
public:
  InFlightDiagnostic fail(Operation *op) {
    result = failure();
    return op->emitOpError();
  }
  LogicalResult result = success();
};

class CommandsGate : public Gate {
public:
  CommandsGate(const Profile &profile, Effects &effects) : profile(profile), effects(effects) {}

  void verifyModule(ModuleOp module);

private:
  void verifyNoTensors(Operation *op);
  void verifyKernel(gpu::GPUFuncOp kernel);
  void verifyEffects(gpu::GPUFuncOp kernel);
  void verifyWorkgroup(gpu::GPUFuncOp kernel);
  void verifyLoops(gpu::GPUFuncOp kernel);
  void verifyFunction(func::FuncOp function);
  void verifyArgument(func::FuncOp function, unsigned index);
  void verifyDispatch(schedule::DispatchOp dispatch);

  const Profile &profile;
  Effects &effects;
};
} // namespace

static bool isTensor(Type type) { return isa<TensorType>(type); }

void CommandsGate::verifyNoTensors(Operation *op) {
  if (isa<schedule::KernelOp, schedule::YieldOp>(op)) {
    fail(op) << "belongs to the kernels level";
    return;
  }
  bool tensors =
      llvm::any_of(op->getResultTypes(), isTensor) || llvm::any_of(op->getOperandTypes(), isTensor);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      tensors |= llvm::any_of(block.getArgumentTypes(), isTensor);
  if (tensors)
    fail(op) << "has a tensor; the dispatches level allows none";
}

/// Whether `declared` allows everything that `derived` does.
static bool allows(schedule::Access declared, schedule::Access derived) {
  return (!reads(derived) || reads(declared)) && (!writes(derived) || writes(declared));
}

void CommandsGate::verifyEffects(gpu::GPUFuncOp kernel) {
  const KernelEffects &derived = effects.get(kernel);
  if (derived.reachesOther) {
    InFlightDiagnostic error = fail(kernel) << "may touch memory that is not among its arguments";
    error.attachNote(derived.reachesOther->getLoc()) << "through this operation";
  }
  for (auto [index, effect] : llvm::enumerate(derived.operands)) {
    auto declared = kernel.getArgAttrOfType<schedule::EffectAttr>(index, schedule::effectAttrName);
    if (!declared)
      fail(kernel) << "argument " << index << " has no " << schedule::effectAttrName;
    else if (!allows(declared.getAccess(), effect.access))
      fail(kernel) << "argument " << index << " is declared '"
                   << stringifyAccess(declared.getAccess()) << "', the body does '"
                   << stringifyAccess(effect.access) << "'";
    else if (declared.getCoversAll() && !writes(effect.access))
      fail(kernel) << "argument " << index << " is declared to be covered, the body writes nothing";
  }
}

void CommandsGate::verifyWorkgroup(gpu::GPUFuncOp kernel) {
  std::optional<ArrayRef<int32_t>> sizes = kernel.getKnownBlockSize();
  if (!sizes || sizes->size() != 3) {
    fail(kernel) << "has no known_block_size of three sizes";
    return;
  }
  int64_t invocations = 1;
  for (int32_t size : *sizes)
    if (size < 1 || llvm::MulOverflow(invocations, int64_t(size), invocations))
      invocations = std::numeric_limits<int64_t>::max();
  if (invocations > profile.maxWorkgroupSize)
    fail(kernel) << "has workgroups of [" << *sizes << "] invocations, profile '" << profile.name
                 << "' allows " << profile.maxWorkgroupSize << " in total";

  int64_t bytes = 0;
  for (BlockArgument memory : kernel.getWorkgroupAttributions()) {
    std::optional<int64_t> size = schedule::getByteSize(cast<MemRefType>(memory.getType()));
    if (!size || llvm::AddOverflow(bytes, *size, bytes))
      bytes = std::numeric_limits<int64_t>::max();
  }
  if (bytes > profile.workgroupMemory)
    fail(kernel)
        << "@" << kernel.getName() << " takes " << bytes << " bytes of workgroup memory, profile '"
        << profile.name << "' allows " << profile.workgroupMemory
        << "; compile for a profile with a larger workgroup_memory, if the device has it, or "
           "with a smaller workgroup_size, contraction_slab or matrix_slab";
}

/// Reports a kernel whose invocations make more trips of loops than the profile's device makes. It
/// would leave out the rest, stores included.
void CommandsGate::verifyLoops(gpu::GPUFuncOp kernel) {
  LoopTrips trips(kernel);
  for (LoopLikeOpInterface loop : trips.getLoops())
    if (!trips.getTrips(loop))
      fail(loop) << "has no known bound";
  if (std::optional<int64_t> total = trips.getTotal(); total && *total > profile.maxLoopTrips)
    fail(kernel)
        << "makes up to " << *total
        << " trips of loops for an invocation, the end of each counted as one, and profile '"
        << profile.name << "' ends all loops after " << profile.maxLoopTrips
        << "; compile for a processor (--target=cpu) or another device, or with smaller "
           "sizes";
}

void CommandsGate::verifyKernel(gpu::GPUFuncOp kernel) {
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || memref.getRank() != 1 || !schedule::getByteSize(memref)) {
      fail(kernel) << "argument " << index << " is " << type
                   << ", not a memref of one static dimension";
      continue;
    }
    Type element = getElementTypeOrSelf(memref.getElementType());
    bool lacks =
        (element.isF64() && !profile.float64) || (element.isInteger(64) && !profile.int64) ||
        (element.isInteger(8) && !profile.storage8) ||
        (element.isIntOrFloat() && element.getIntOrFloatBitWidth() == 16 && !profile.storage16);
    if (lacks)
      fail(kernel) << "argument " << index << " holds " << element << ", profile '" << profile.name
                   << "' lacks that type";
  }
  if (int64_t(kernel.getNumArguments()) > profile.storageBuffersPerStage)
    fail(kernel) << "has " << kernel.getNumArguments() << " arguments, profile '" << profile.name
                 << "' allows " << profile.storageBuffersPerStage;
  verifyEffects(kernel);
  verifyWorkgroup(kernel);
  verifyLoops(kernel);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void CommandsGate::verifyArgument(func::FuncOp function, unsigned index) {
  auto memref = dyn_cast<MemRefType>(function.getArgument(index).getType());
  std::optional<int64_t> bytes = memref ? schedule::getByteSize(memref) : std::nullopt;
  if (!bytes) {
    fail(function) << "argument " << index << " is " << function.getArgument(index).getType()
                   << ", not a memref of static shape";
    return;
  }
  auto shape = function.getArgAttrOfType<TypeAttr>(index, schedule::shapeAttrName);
  if (!shape)
    return;
  auto tensor = dyn_cast<RankedTensorType>(shape.getValue());
  std::optional<int64_t> needed = tensor ? schedule::getByteSize(tensor) : std::nullopt;
  if (needed)
    needed = getStoredBytes(*needed, *schedule::getElementBytes(tensor.getElementType()), profile);
  if (needed != bytes)
    fail(function) << "argument " << index << " of " << *bytes << " bytes stands for "
                   << shape.getValue();
}

void CommandsGate::verifyFunction(func::FuncOp function) {
  if (function.isExternal() || !function.getBody().hasOneBlock()) {
    fail(function) << "has no body of one block";
    return;
  }
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    verifyArgument(function, index);
  if (function.getNumResults())
    fail(function) << "returns " << function.getNumResults()
                   << " values; from the dispatches level on results are arguments with "
                   << schedule::resultAttrName;
  for (Operation &op : function.getBody().front())
    if (!isa<memref::AllocOp, memref::GetGlobalOp, ViewLikeOpInterface, arith::ConstantOp,
             schedule::CommandsOp, func::ReturnOp>(op))
      fail(&op) << "does not belong beside a command list";
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands))
    result = failure();
  else if (!*commands)
    fail(function) << "has no command list";
}

void CommandsGate::verifyDispatch(schedule::DispatchOp dispatch) {
  for (auto [axis, size, most] : llvm::enumerate(dispatch.getGrid(), profile.maxGrid))
    if (size > most)
      fail(dispatch) << "has " << size << " workgroups on axis " << axis << ", profile '"
                     << profile.name << "' allows " << most;
  for (auto [index, operand] : llvm::enumerate(dispatch.getOperands())) {
    auto memref = dyn_cast<MemRefType>(operand.getType());
    FailureOr<ByteRange> range = memref ? getByteRange(memref) : FailureOr<ByteRange>(failure());
    if (failed(range)) {
      fail(dispatch) << "operand " << index << " of type " << operand.getType()
                     << " has no number of bytes";
      continue;
    }
    int64_t bytes = range->end - range->begin;
    if (bytes == 0)
      fail(dispatch) << "operand " << index << " has no bytes";
    if (bytes > profile.bytesPerBinding)
      fail(dispatch) << "operand " << index << " has " << bytes << " bytes, profile '"
                     << profile.name << "' allows " << profile.bytesPerBinding << " a binding";
  }
}

void CommandsGate::verifyModule(ModuleOp module) {
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    verifyNoTensors(op);
    if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op))
      verifyKernel(kernel);
    else if (auto dispatch = dyn_cast<schedule::DispatchOp>(op))
      verifyDispatch(dispatch);
    else if (isa<schedule::CommandOpInterface>(op))
      fail(op) << "cannot be part of an artifact yet, whose commands are dispatches";
    // A kernel to be is one problem, not one for each operation in it.
    return isa<schedule::KernelOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  for (Operation &op : *module.getBody()) {
    if (auto function = dyn_cast<func::FuncOp>(op))
      verifyFunction(function);
    else if (!isa<gpu::GPUModuleOp, memref::GlobalOp>(op))
      fail(&op) << "does not belong beside kernels, constants and functions";
  }
}

LogicalResult weir::verifyCommands(ModuleOp module, Effects &effects) {
  FailureOr<Profile> profile = getProfile(module);
  if (failed(profile))
    return failure();
  CommandsGate gate(*profile, effects);
  gate.verifyModule(module);
  return gate.result;
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

namespace {
/// A view of the arena, its bytes, and the waves in which no other may use them.
struct SlotView {
  memref::ViewOp view;
  ByteRange range;
  int64_t firstWave = 0, lastWave = 0;
};

class PlacementGate : public Gate {
public:
  PlacementGate(const Profile &profile, Effects &effects, Views &views,
                DenseMap<Operation *, ListHazards> &found)
      : profile(profile), effects(effects), views(views), found(found) {}

  void verifyFunction(func::FuncOp function);

private:
  /// The requirements of a kernel on an operand; sizes are absent where unknown.
  struct Argument {
    std::optional<int64_t> bytes, element;
    bool isWritten = false;
  };

  ArrayRef<Argument> getArguments(schedule::DispatchOp dispatch);
  void verifyDonations(func::FuncOp function);
  void verifyAllocations(func::FuncOp function);
  void verifySlot(memref::ViewOp view);
  void verifySharing();
  void verifyOperand(schedule::DispatchOp dispatch, OpOperand &operand);
  void verifyWaves(schedule::CommandsOp commands);

  const Profile &profile;
  Effects &effects;
  Views &views;
  DenseMap<Operation *, ListHazards> &found;
  SymbolTableCollection symbols;
  DenseMap<Attribute, SmallVector<Argument>> kernels;
  llvm::MapVector<Operation *, SlotView> slots;
};
} // namespace

void PlacementGate::verifyAllocations(func::FuncOp function) {
  memref::AllocOp arena;
  function.walk([&](memref::AllocOp alloc) {
    if (!alloc->hasAttr(schedule::arenaAttrName))
      fail(alloc) << "is not the arena: from the placed level on values are "
                     "views of it";
    else if (arena)
      fail(alloc) << "is a second arena";
    else if (!schedule::getByteSize(alloc.getType()) || alloc.getType().getRank() != 1 ||
             !alloc.getType().getElementType().isInteger(8))
      fail(alloc) << "expected an arena of type memref<Nxi8>, got " << alloc.getType();
    else
      arena = alloc;
  });
  // A view of a slot is a part of its value.
  function.walk([&](memref::ViewOp view) {
    if (arena && views.get(view).allocation.value == arena.getResult() &&
        !getSlot(view.getSource()))
      verifySlot(view);
  });
}

void PlacementGate::verifySlot(memref::ViewOp view) {
  const View &bytes = views.get(view);
  if (!bytes.range) {
    fail(view) << "has no known place in the arena";
    return;
  }
  if (bytes.range->begin % 256)
    fail(view) << "begins at byte " << bytes.range->begin
               << " of the arena, expected a multiple of 256";
  auto slot = view->getAttrOfType<schedule::SlotAttr>(schedule::slotAttrName);
  if (!slot) {
    fail(view) << "has no " << schedule::slotAttrName << ", a #schedule.slot";
    return;
  }
  slots[view] = {view, *bytes.range, slot.getFirstWave(), slot.getLastWave()};
}

/// Walks the waves and keeps the slots that are live, by their first bytes.
void PlacementGate::verifySharing() {
  SmallVector<SlotView *> byWave;
  for (auto &slot : slots)
    if (!slot.second.range.isEmpty())
      byWave.push_back(&slot.second);
  // Ties in the order of the slots, which lie side by side in memory.
  llvm::sort(byWave, [](SlotView *a, SlotView *b) {
    return std::tie(a->firstWave, a) < std::tie(b->firstWave, b);
  });
  auto refuse = [&](SlotView *first, SlotView *second) {
    if (std::tie(second->range.begin, second) < std::tie(first->range.begin, first))
      std::swap(first, second);
    InFlightDiagnostic error = fail(second->view)
                               << "has bytes [" << second->range.begin << ", " << second->range.end
                               << ") in waves " << second->firstWave << " to " << second->lastWave;
    error.attachNote(first->view.getLoc())
        << "where this one has bytes [" << first->range.begin << ", " << first->range.end
        << ") in waves " << first->firstWave << " to " << first->lastWave;
  };
  std::multimap<int64_t, SlotView *> live;
  using Live = decltype(live)::iterator;
  auto endsLater = [](Live a, Live b) { return a->second->lastWave > b->second->lastWave; };
  std::priority_queue<Live, std::vector<Live>, decltype(endsLater)> ends(endsLater);
  for (SlotView *slot : byWave) {
    for (; !ends.empty() && ends.top()->second->lastWave < slot->firstWave; ends.pop())
      live.erase(ends.top());
    // Those before were checked against each other: the nearest ends last.
    auto next = live.lower_bound(slot->range.begin);
    if (next != live.begin() && std::prev(next)->second->range.end > slot->range.begin)
      refuse(std::prev(next)->second, slot);
    for (; next != live.end() && next->first < slot->range.end; ++next)
      refuse(next->second, slot);
    ends.push(live.emplace(slot->range.begin, slot));
  }
}

/// Whether the entry may write the bytes. Other functions may write all but constants.
static bool mayWrite(const AllocationRef &allocation) {
  if (allocation.kind == AllocationRef::Kind::Global)
    return false;
  if (allocation.kind != AllocationRef::Kind::Entry)
    return true;
  auto argument = cast<BlockArgument>(allocation.value);
  auto function = cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function.getArgAttr(argument.getArgNumber(), schedule::resultAttrName) ||
         function.getArgAttr(argument.getArgNumber(), schedule::donateAttrName);
}

ArrayRef<PlacementGate::Argument> PlacementGate::getArguments(schedule::DispatchOp dispatch) {
  SmallVector<Argument> &arguments = kernels[dispatch.getKernel()];
  if (arguments.empty()) {
    auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(dispatch, dispatch.getKernel());
    for (auto [type, effect] :
         llvm::zip_equal(kernel.getArgumentTypes(), effects.get(kernel).operands)) {
      Argument &argument = arguments.emplace_back();
      argument.isWritten = writes(effect.access);
      if (auto memory = dyn_cast<MemRefType>(type)) {
        argument.bytes = schedule::getByteSize(memory);
        argument.element = schedule::getElementBytes(memory.getElementType());
      }
    }
  }
  return arguments;
}

void PlacementGate::verifyOperand(schedule::DispatchOp dispatch, OpOperand &operand) {
  unsigned index = operand.getOperandNumber();
  const View &view = views.get(operand.get());
  auto complain = [&]() -> InFlightDiagnostic {
    InFlightDiagnostic error = fail(dispatch);
    error << "operand " << index << " ";
    return error;
  };
  if (view.allocation.kind == AllocationRef::Kind::Unknown || !view.range) {
    complain() << "has no known place in an allocation";
    return;
  }
  auto type = dyn_cast<MemRefType>(view.allocation.value.getType());
  std::optional<int64_t> bytes = type ? schedule::getByteSize(type) : std::nullopt;
  if (!bytes || view.range->end > *bytes) {
    complain() << "has bytes [" << view.range->begin << ", " << view.range->end
               << "), beyond its allocation of " << bytes.value_or(0);
    return;
  }
  if (!view.exact)
    complain() << "does not lie side by side";
  if (view.range->begin % profile.offsetAlignment)
    complain() << "begins at byte " << view.range->begin << ", profile '" << profile.name
               << "' binds multiples of " << profile.offsetAlignment;
  const Argument &argument = getArguments(dispatch)[index];
  int64_t have = view.range->end - view.range->begin;
  if (argument.bytes && *argument.bytes != have)
    complain() << "has " << have << " bytes, the kernel's argument " << *argument.bytes;
  if (int64_t element = argument.element.value_or(0); element && view.range->begin % element)
    complain() << "begins at byte " << view.range->begin << ", the kernel's argument needs "
               << element;
  if (argument.isWritten && !mayWrite(view.allocation))
    complain() << "is written, but is neither a result, a donated argument nor the arena's";
  for (Operation *op = operand.get().getDefiningOp(); op;) {
    if (auto slot = slots.find(op); slot != slots.end() && dispatch.getWave()) {
      int64_t wave = *dispatch.getWave();
      if (wave < slot->second.firstWave || wave > slot->second.lastWave)
        complain() << "is used in wave " << wave << ", its slot is its own in waves "
                   << slot->second.firstWave << " to " << slot->second.lastWave;
      const ByteRange &own = slot->second.range;
      if (view.range->begin < own.begin || view.range->end > own.end)
        complain() << "has bytes [" << view.range->begin << ", " << view.range->end
                   << "), its slot [" << own.begin << ", " << own.end << ")";
    }
    auto source = dyn_cast<ViewLikeOpInterface>(op);
    op = source ? source.getViewSource().getDefiningOp() : nullptr;
  }
}

void PlacementGate::verifyWaves(schedule::CommandsOp commands) {
  int64_t wave = 0;
  bool waves = true;
  for (auto dispatch : commands.getBody().front().getOps<schedule::CommandOpInterface>()) {
    if (!dispatch.getWave() || *dispatch.getWave() < wave) {
      waves = false;
      if (dispatch.getWave())
        fail(dispatch) << "is in wave " << *dispatch.getWave() << ", after a dispatch of wave "
                       << wave;
      else
        fail(dispatch) << "has no wave";
      continue;
    }
    wave = *dispatch.getWave();
  }
  if (!waves)
    return;
  FailureOr<CommandList> list = collectAccesses(commands, effects, views);
  if (failed(list)) {
    result = failure();
    return;
  }
  ListHazards &own = found[commands->getParentOp()];
  own = {std::move(*list), {}};
  own.hazards = findHazards(own.list.accesses);
  for (const Hazard &hazard : own.hazards) {
    schedule::CommandOpInterface from = own.list.dispatches[hazard.from],
                                 to = own.list.dispatches[hazard.to];
    if (from.getWave() != to.getWave())
      continue;
    InFlightDiagnostic error = fail(to) << "operand " << hazard.toOperand << " has a "
                                        << stringifyHazardKind(toAttribute(hazard.kind))
                                        << " hazard with a dispatch of its wave " << *to.getWave();
    error.attachNote(from->getLoc()) << "with operand " << hazard.fromOperand << " of this one";
  }
}

/// Checks results that lie in donated arguments: one for each argument, of equal type.
void PlacementGate::verifyDonations(func::FuncOp function) {
  SmallVector<bool> taken(function.getNumArguments());
  for (BlockArgument result : function.getArguments()) {
    Attribute attribute = function.getArgAttr(result.getArgNumber(), schedule::donatedAttrName);
    if (!attribute)
      continue;
    auto index = dyn_cast<IntegerAttr>(attribute);
    int64_t lender = index && index.getType().isInteger(64) ? index.getInt() : -1;
    bool isResult = bool(function.getArgAttr(result.getArgNumber(), schedule::resultAttrName));
    if (!isResult || lender < 0 || lender >= function.getNumArguments() ||
        !function.getArgAttr(lender, schedule::donateAttrName)) {
      fail(function) << "argument " << result.getArgNumber() << " has " << schedule::donatedAttrName
                     << " = " << attribute << ", expected the index of a donated argument";
      continue;
    }
    if (function.getArgument(lender).getType() != result.getType())
      fail(function) << "result " << result.getArgNumber() << " of type " << result.getType()
                     << " lies in argument " << lender << " of type "
                     << function.getArgument(lender).getType();
    if (taken[lender])
      fail(function) << "argument " << lender << " is donated to two results";
    taken[lender] = true;
    for (Operation *user : result.getUsers())
      fail(user) << "uses result " << result.getArgNumber() << ", which lies in argument "
                 << lender;
  }
}

void PlacementGate::verifyFunction(func::FuncOp function) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands)) {
    result = failure();
    return;
  }
  slots.clear();
  verifyDonations(function);
  verifyAllocations(function);
  verifySharing();
  if (!*commands)
    return;
  for (auto dispatch : commands->getBody().front().getOps<schedule::DispatchOp>())
    for (OpOperand &operand : dispatch->getOpOperands())
      verifyOperand(dispatch, operand);
  verifyWaves(*commands);
}

LogicalResult weir::verifyPlacement(ModuleOp module, Effects &effects, Views &views,
                                    DenseMap<Operation *, ListHazards> &found) {
  FailureOr<Profile> profile = getProfile(module);
  if (failed(profile))
    return failure();
  PlacementGate gate(*profile, effects, views, found);
  for (auto function : module.getOps<func::FuncOp>())
    gate.verifyFunction(function);
  return gate.result;
}
