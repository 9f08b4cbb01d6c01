//===- CommandList.cpp - A command list as lib/Order sees it --------------===//

#include "weir/Analysis/CommandList.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>
#include <map>

using namespace mlir;
using namespace weir;

FailureOr<schedule::CommandsOp> weir::getCommands(func::FuncOp function) {
  schedule::CommandsOp found;
  WalkResult result = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto commands = dyn_cast<schedule::CommandsOp>(op);
    if (!commands)
      return WalkResult::advance();
    if (commands->getBlock() != &function.getBody().front()) {
      commands.emitOpError("is not in the first block of its function");
      return WalkResult::interrupt();
    }
    if (found) {
      commands.emitOpError("is the second command list of its function, which "
                           "may have one")
              .attachNote(found.getLoc())
          << "the first is here";
      return WalkResult::interrupt();
    }
    found = commands;
    return WalkResult::skip(); // commands hold none
  });
  if (result.wasInterrupted())
    return failure();
  return found;
}

static const void *getKey(const AllocationRef &allocation) {
  return allocation.symbol ? allocation.symbol.getAsOpaquePointer()
                           : allocation.value.getAsOpaquePointer();
}

int64_t CommandList::getNumber(const AllocationRef &allocation) const {
  auto it = numbers.find(getKey(allocation));
  return it == numbers.end() ? -1 : it->second;
}

const OperandAccess *CommandList::find(int64_t dispatch, int64_t operand) const {
  if (dispatch < 0 || dispatch >= int64_t(accesses.dispatches.size()))
    return nullptr;
  for (const OperandAccess &access : accesses.dispatches[dispatch])
    if (access.operand == operand)
      return &access;
  return nullptr;
}

/// Gives allocations numbers in order of appearance.
static int64_t addAllocation(CommandList &list, const AllocationRef &allocation) {
  auto [it, isNew] = list.numbers.try_emplace(getKey(allocation), list.allocations.size());
  if (isNew)
    list.allocations.push_back(allocation);
  return it->second;
}

/// Gives bytes that are not side by side a number; -1 for others.
static int64_t addStrided(CommandList &list, std::map<StridedBytes, int64_t> &numbers,
                          const View &view) {
  if (!view.bytes || view.exact)
    return -1;
  auto [it, isNew] = numbers.try_emplace(*view.bytes, list.accesses.strided.size());
  if (isNew)
    list.accesses.strided.push_back(*view.bytes);
  return it->second;
}

static void setMayShare(CommandList &list) {
  using Kind = AllocationRef::Kind;
  list.accesses.mayShare.resize(list.allocations.size());
  for (auto [vague, allocation] : llvm::enumerate(list.allocations)) {
    if (allocation.kind != Kind::Argument && allocation.kind != Kind::Unknown)
      continue; // shares with none but these
    for (auto [other, second] : llvm::enumerate(list.allocations)) {
      if (vague == other || compare(allocation, second) == Sharing::Disjoint)
        continue;
      list.accesses.mayShare[vague].push_back(other);
      if (second.kind != Kind::Argument && second.kind != Kind::Unknown)
        list.accesses.mayShare[other].push_back(vague);
    }
  }
}

FailureOr<ArrayRef<OperandEffect>> weir::getEffects(schedule::CommandOpInterface command,
                                                    SymbolTableCollection &symbols,
                                                    Effects &effects) {
  using schedule::Access;
  static const OperandEffect copy[] = {{Access::read, false}, {Access::write, true}};
  static const OperandEffect fill[] = {{Access::none, false}, {Access::write, true}};
  if (isa<schedule::CopyOp>(command))
    return ArrayRef(copy);
  if (isa<schedule::FillOp>(command))
    return ArrayRef(fill);
  auto dispatch = cast<schedule::DispatchOp>(*command);
  auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(dispatch, dispatch.getKernel());
  if (!kernel)
    return dispatch.emitOpError() << "names " << dispatch.getKernel()
                                  << ", which is no gpu.func; its effects are not known";
  const KernelEffects &effect = effects.get(kernel);
  if (!effect.reachesOther)
    return ArrayRef(effect.operands);
  InFlightDiagnostic error = dispatch.emitOpError()
                             << "may touch memory that is not among its operands; nothing can be "
                                "ordered against it";
  error.attachNote(effect.reachesOther->getLoc()) << "through this operation";
  return failure();
}

/// Returns an allocation without the facts about arguments, and the numbers of values.
static OrderAllocation makeAllocation(const AllocationRef &allocation) {
  using Kind = OrderAllocation::Kind;
  OrderAllocation result;
  switch (allocation.kind) {
  case AllocationRef::Kind::Local:
    result.kind = Kind::Local;
    break;
  case AllocationRef::Kind::Global:
    result.kind = Kind::Global;
    break;
  case AllocationRef::Kind::Entry:
  case AllocationRef::Kind::Argument:
    result.kind = Kind::Argument;
    break;
  case AllocationRef::Kind::Unknown:
    break;
  }
  auto type = dyn_cast_or_null<MemRefType>(allocation.value ? allocation.value.getType() : Type());
  if (!type)
    return result;
  auto toNumber = [](const void *unique) { return int64_t(reinterpret_cast<intptr_t>(unique)); };
  result.type = toNumber(type.getAsOpaquePointer());
  result.space = toNumber(type.getMemorySpace().getAsOpaquePointer());
  result.bytes = schedule::getByteSize(type).value_or(0);
  if (auto alloc = allocation.value.getDefiningOp<memref::AllocOp>()) {
    result.isValue = true;
    result.alignment = std::max<int64_t>(256, alloc.getAlignment().value_or(1));
  }
  return result;
}

/// Adds a memref of allocation `number` among the operands of the problem's last command.
static void addOperand(OrderProblem &problem, int64_t operand, const View &view, int64_t number) {
  if (number == int64_t(problem.allocations.size())) {
    problem.allocations.push_back(makeAllocation(view.allocation));
    problem.allocations.back().value = number;
  }
  const OrderAllocation &allocation = problem.allocations[number];
  bool isWhole = allocation.type >= 0 && view.exact && view.range == ByteRange{0, allocation.bytes};
  problem.commands.back().operands.push_back(
      {operand, number, view.range ? view.range->begin : -1, isWhole});
}

/// Collects the accesses; with a problem, its commands and allocations, too.
static LogicalResult collectInto(CommandList &list, OrderProblem *problem,
                                 schedule::CommandsOp commands, Effects &effects, Views &views) {
  list.views = &views;
  std::map<StridedBytes, int64_t> strided;
  SymbolTableCollection symbols;
  DenseMap<Attribute, ArrayRef<OperandEffect>> known; // by kernel
  SmallVector<int64_t> numberOfView;                  // of the allocation; -1: not known yet
  bool ok = true;
  size_t count =
      llvm::range_size(commands.getBody().front().getOps<schedule::CommandOpInterface>());
  list.dispatches.reserve(count);
  list.accesses.dispatches.reserve(count);
  if (problem) {
    problem->commands.reserve(count);
    problem->allocations.reserve(count); // most commands make a value
  }
  for (auto command : commands.getBody().front().getOps<schedule::CommandOpInterface>()) {
    list.dispatches.push_back(command);
    DispatchAccesses &accesses = list.accesses.dispatches.emplace_back();
    auto dispatch = dyn_cast<schedule::DispatchOp>(*command);
    FailureOr<ArrayRef<OperandEffect>> effect =
        dispatch ? known.lookup(dispatch.getKernel()) : ArrayRef<OperandEffect>();
    if (effect->empty()) {
      effect = getEffects(command, symbols, effects);
      if (failed(effect)) {
        ok = false;
        continue;
      }
      if (dispatch)
        known[dispatch.getKernel()] = *effect;
    }
    accesses.reserve(command->getNumOperands());
    if (problem) {
      OrderCommand &added = problem->commands.emplace_back();
      added.id = problem->commands.size() - 1;
      added.queue = command.getQueue();
      added.wave = command.getWave().value_or(0);
      added.isDispatch = bool(dispatch);
      added.operands.reserve(command->getNumOperands());
    }
    for (auto [index, operand] : llvm::enumerate(command->getOperands())) {
      schedule::Access access = (*effect)[index].access;
      bool isMemory = problem && isa<BaseMemRefType>(operand.getType());
      if (access == schedule::Access::none && !isMemory)
        continue;
      size_t viewNumber = views.getNumber(operand);
      const View &view = views.get(viewNumber);
      ByteRange range = view.range.value_or(ByteRange{0, std::numeric_limits<int64_t>::max()});
      bool isAccess = access != schedule::Access::none && !range.isEmpty();
      if (!isMemory && !isAccess)
        continue;
      if (numberOfView.size() <= viewNumber)
        numberOfView.resize(viewNumber + 1, -1);
      int64_t &number = numberOfView[viewNumber];
      if (number < 0)
        number = addAllocation(list, view.allocation);
      if (isMemory)
        addOperand(*problem, index, view, number);
      if (isAccess)
        accesses.push_back({int64_t(index), number, range, reads(access), writes(access),
                            addStrided(list, strided, view)});
    }
  }
  if (!ok)
    return failure();
  setMayShare(list);
  return success();
}

FailureOr<CommandList> weir::collectAccesses(schedule::CommandsOp commands, Effects &effects,
                                             Views &views) {
  CommandList list;
  if (failed(collectInto(list, nullptr, commands, effects, views)))
    return failure();
  return list;
}

BlockArgument weir::getBorrower(BlockArgument argument) {
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function)
    return {};
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (auto lender = function.getArgAttrOfType<IntegerAttr>(index, schedule::donatedAttrName);
        lender && lender.getInt() == argument.getArgNumber())
      return function.getArgument(index);
  return {};
}

FailureOr<CollectedOrder> weir::collect(func::FuncOp function, schedule::CommandsOp commands,
                                        Effects &effects, Views &views, InPlaceProofs &proofs) {
  CollectedOrder result;
  OrderProblem &problem = result.problem;
  if (failed(collectInto(result.list, &problem, commands, effects, views)))
    return failure();
  problem.accesses = std::move(result.list.accesses);
  DenseSet<int64_t> lenders;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (auto lender = function.getArgAttrOfType<IntegerAttr>(index, schedule::donatedAttrName))
      lenders.insert(lender.getInt());
  DenseMap<Value, int64_t> numbers; // of the function's values
  for (auto alloc : function.getOps<memref::AllocOp>())
    numbers.try_emplace(alloc, numbers.size());
  for (auto [ref, allocation] : llvm::zip_equal(result.list.allocations, problem.allocations)) {
    if (auto number = numbers.find(ref.value); number != numbers.end())
      allocation.number = number->second;
    auto argument = dyn_cast_or_null<BlockArgument>(ref.value);
    if (!argument || argument.getOwner()->getParentOp() != function)
      continue;
    unsigned index = argument.getArgNumber();
    allocation.number = index;
    allocation.isResult = bool(function.getArgAttr(index, schedule::resultAttrName));
    allocation.isDonated = bool(function.getArgAttr(index, schedule::donateAttrName));
    auto memory = function.getArgAttrOfType<StringAttr>(index, schedule::memoryAttrName);
    allocation.isInHost = memory && memory == "host";
    allocation.isLent = lenders.contains(index);
    allocation.mayBeShared = ref.kind == AllocationRef::Kind::Argument && !ref.noAlias;
    if (auto name = function.getArgAttrOfType<StringAttr>(index, schedule::nameAttrName))
      allocation.name = name.str();
  }
  // A caller reads what the function returns, however long the bytes are unused before.
  for (auto end : function.getOps<func::ReturnOp>())
    for (Value returned : end.getOperands()) {
      if (!isa<BaseMemRefType>(returned.getType()))
        continue;
      const AllocationRef &origin = views.get(returned).allocation;
      for (auto [ref, allocation] : llvm::zip_equal(result.list.allocations, problem.allocations))
        allocation.isReturned |= compare(origin, ref) != Sharing::Disjoint;
    }
  auto ops = std::make_shared<std::vector<Operation *>>(result.list.dispatches.begin(),
                                                        result.list.dispatches.end());
  problem.isProved = [ops, &proofs](int64_t id, int64_t read, int64_t written) {
    return proofs.get(cast<schedule::DispatchOp>((*ops)[id]), read, written).holds;
  };
  return result;
}

bool weir::holdsOnlyCommands(schedule::CommandsOp commands) {
  return llvm::all_of(commands.getBody().front(),
                      [](Operation &op) { return isa<schedule::CommandOpInterface>(op); });
}

QueueCommands weir::getQueueCommands(schedule::CommandsOp list) {
  using Kind = QueueCommand::Kind;
  QueueCommands result;
  for (Operation &op : list.getBody().front()) {
    llvm::TypeSwitch<Operation &>(op)
        .Case([&](schedule::CommandOpInterface command) {
          result.dispatches.push_back(result.commands.size());
          result.commands.push_back({Kind::Dispatch, command.getQueue(), 0});
        })
        .Case([&](schedule::BarrierOp barrier) {
          result.commands.push_back({Kind::Barrier, barrier.getQueue(), 0});
        })
        .Case([&](schedule::SignalOp signal) {
          result.commands.push_back({Kind::Signal, signal.getQueue(), int64_t(signal.getId())});
        })
        .Case([&](schedule::WaitOp wait) {
          result.commands.push_back({Kind::Wait, wait.getQueue(), int64_t(wait.getSignal())});
        });
    result.ops.push_back(&op);
  }
  return result;
}
