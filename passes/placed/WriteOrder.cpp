//===- WriteOrder.cpp - A list of commands as lib/Order made it -----------===//

#include "passes/placed/WriteOrder.h"

#include "passes/Spares.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace weir;

/// The operations of a problem's commands, in its order.
using CommandOps = SmallVector<schedule::CommandOpInterface>;

/// Writes the number of its value to each operand. Here every value has bytes of its own still, so
/// the numbers are known; passes that move values around later can be held to them.
static void setValues(func::FuncOp function, const CommandList &list, const OrderProblem &problem,
                      const CommandOps &ops) {
  Builder builder(function.getContext());
  StringAttr none = builder.getStringAttr("");
  SmallVector<Attribute> names;
  SmallVector<int64_t> bytes;
  DenseMap<Value, int64_t> numbers;
  auto add = [&](Value value, StringAttr name) {
    auto type = dyn_cast<MemRefType>(value.getType());
    numbers[value] = names.size();
    names.push_back(name ? name : none);
    bytes.push_back(type ? schedule::getByteSize(type).value_or(0) : 0);
  };
  for (BlockArgument argument : function.getArguments())
    add(argument,
        function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), schedule::nameAttrName));
  for (auto alloc : function.getOps<memref::AllocOp>())
    add(alloc, alloc->getAttrOfType<StringAttr>(schedule::nameAttrName));
  // A copy of an allocation holds the same value.
  auto getOwner = [&](int64_t allocation) {
    return list.allocations[problem.allocations[allocation].value].value;
  };

  // An argument that lends its bytes to a result from the start is inserted into: each
  // write makes its next value, the last one the result.
  bool anyLends = llvm::any_of(function.getArguments(), [&](BlockArgument argument) {
    return function.getArgAttr(argument.getArgNumber(), schedule::donatedAttrName) != nullptr;
  });
  DenseMap<Value, int64_t> writes;
  llvm::MapVector<Value, int64_t> updates;
  for (const DispatchAccesses &accesses : problem.accesses.dispatches)
    for (const OperandAccess &access : accesses) {
      if (anyLends)
        writes[getOwner(access.allocation)] += access.writes;
      if (access.reads && access.writes)
        ++updates[getOwner(access.allocation)];
    }
  DenseMap<Value, SmallVector<int64_t>> later; // values, the next one last
  auto addValue = [&](Value like) {
    names.push_back(names[numbers[like]]);
    bytes.push_back(bytes[numbers[like]]);
    return int64_t(names.size()) - 1;
  };
  for (BlockArgument result : function.getArguments()) {
    auto lender =
        function.getArgAttrOfType<IntegerAttr>(result.getArgNumber(), schedule::donatedAttrName);
    if (!lender)
      continue;
    Value argument = function.getArgument(lender.getInt());
    SmallVector<int64_t> &numbersLeft = later[argument];
    for (int64_t count = 1; count < writes[argument]; ++count)
      numbersLeft.push_back(addValue(argument));
    numbersLeft.push_back(numbers[result]);
    std::reverse(numbersLeft.begin(), numbersLeft.end());
  }
  // Bytes that are made here and then updated hold another value after each update, the last one
  // their own.
  DenseSet<Value> updated;
  DenseMap<Value, int64_t> first;
  for (auto [owner, count] : updates) {
    auto argument = dyn_cast<BlockArgument>(owner);
    if (!numbers.contains(owner) || later.contains(owner) ||
        (argument && !function.getArgAttr(argument.getArgNumber(), schedule::resultAttrName)))
      continue;
    updated.insert(owner);
    first[owner] = addValue(owner);
    SmallVector<int64_t> &numbersLeft = later[owner];
    numbersLeft.push_back(numbers[owner]);
    for (int64_t more = 1; more < count; ++more)
      numbersLeft.push_back(addValue(owner));
  }

  SmallVector<int64_t> numberOf; // by allocation; -1: none
  for (const AllocationRef &allocation : list.allocations) {
    auto found = numbers.find(allocation.value), before = first.find(allocation.value);
    numberOf.push_back(before != first.end()    ? before->second
                       : found == numbers.end() ? -1
                                                : found->second);
  }
  SmallVector<int64_t> values, before;
  for (auto [op, command, accesses] :
       llvm::zip_equal(ops, problem.commands, problem.accesses.dispatches)) {
    auto dispatch = dyn_cast<schedule::DispatchOp>(*op);
    if (!dispatch)
      continue;
    values.clear();
    for (size_t operand = 0; operand < dispatch.getOperands().size(); ++operand)
      llvm::append_values(values, -1, 0);
    before.assign(dispatch.getOperands().size(), -1);
    bool inserts = false;
    for (const MemoryOperand &operand : command.operands) {
      int64_t &number = numberOf[problem.allocations[operand.allocation].value];
      auto next = later.empty() ? later.end() : later.find(getOwner(operand.allocation));
      bool byUpdates = next != later.end() && updated.contains(next->first);
      if (next != later.end() && llvm::any_of(accesses, [&](const OperandAccess &access) {
            return access.writes && (access.reads || !byUpdates) &&
                   access.operand == operand.operand;
          })) {
        inserts = true;
        before[operand.operand] = number;
        number = next->second.pop_back_val();
      }
      if (number >= 0 && operand.begin >= 0) {
        values[2 * operand.operand] = number;
        values[2 * operand.operand + 1] = operand.begin;
      }
    }
    dispatch.setValues(values);
    dispatch.setBefore(inserts ? ArrayRef<int64_t>(before) : ArrayRef<int64_t>());
  }
  function->setAttr(schedule::valueNamesAttrName, builder.getArrayAttr(names));
  function->setAttr(schedule::valueBytesAttrName, builder.getDenseI64ArrayAttr(bytes));
}

std::string weir::getValueName(func::FuncOp function, Value allocation) {
  Operation *op = allocation.getDefiningOp();
  if (!op)
    return "a result";
  if (auto name = op->getAttrOfType<StringAttr>(schedule::nameAttrName))
    return name.str();
  int64_t number = 0;
  for (auto other : function.getOps<memref::AllocOp>()) {
    if (other == op)
      break;
    ++number;
  }
  return "value" + std::to_string(number);
}

/// Creates the allocations that the problem adds, and makes them operands of its commands.
static void setOperands(func::FuncOp function, const CommandList &list, const OrderProblem &problem,
                        const CommandOps &ops) {
  SmallVector<Value> allocations; // by number; null: not used
  for (const AllocationRef &allocation : list.allocations)
    allocations.push_back(allocation.value);
  allocations.resize(problem.allocations.size());
  SmallVector<OpOperand *> makers(allocations.size()); // the first to name an added allocation
  for (auto [op, command] : llvm::zip_equal(ops, problem.commands))
    for (const MemoryOperand &operand : command.operands)
      if (operand.allocation >= int64_t(list.allocations.size()) && !makers[operand.allocation])
        makers[operand.allocation] = &op->getOpOperand(operand.operand);
  OpBuilder builder(*getCommands(function));
  for (size_t number = list.allocations.size(); number < allocations.size(); ++number) {
    if (!makers[number])
      continue;
    Value old = list.allocations[problem.allocations[number].value].value;
    auto alloc = old.getDefiningOp<memref::AllocOp>();
    auto added = memref::AllocOp::create(builder, makers[number]->getOwner()->getLoc(),
                                         cast<MemRefType>(makers[number]->get().getType()),
                                         alloc ? alloc.getAlignmentAttr() : IntegerAttr());
    added->setAttr(schedule::nameAttrName,
                   builder.getStringAttr(getValueName(function, old) + " again"));
    allocations[number] = added;
  }
  for (auto [op, command] : llvm::zip_equal(ops, problem.commands))
    for (const MemoryOperand &operand : command.operands) {
      const View &before = list.views->get(op->getOperand(operand.operand));
      if (list.getNumber(before.allocation) != operand.allocation)
        op->setOperand(operand.operand, allocations[operand.allocation]);
    }
}

void weir::writeOrder(func::FuncOp function, const CommandList &list, const OrderProblem &problem) {
  CommandOps ops;
  llvm::BitVector isTaken(list.dispatches.size());
  bool isInOrder = true;
  int64_t last = -1; // id
  for (const OrderCommand &command : problem.commands) {
    schedule::CommandOpInterface op = list.dispatches[command.id];
    isInOrder &= command.id > last;
    last = command.id;
    ops.push_back(isTaken[command.id] ? cast<schedule::CommandOpInterface>(op->clone()) : op);
    isTaken.set(command.id);
    ops.back().setWave(command.wave);
    if (!problem.recipes.empty())
      ops.back()->removeAttr(spareAttrName);
  }
  if (function->hasAttr(schedule::entryAttrName))
    setValues(function, list, problem, ops);
  if (list.allocations.size() < problem.allocations.size())
    setOperands(function, list, problem, ops);
  if (!isInOrder) {
    Block *block = list.dispatches.front()->getBlock();
    for (Operation *op : ops) {
      op->remove();
      block->push_back(op);
    }
  }
  for (auto [number, op] : llvm::enumerate(list.dispatches))
    if (!isTaken[number])
      op->erase();
}

void weir::remarkOrder(func::FuncOp function, const CommandOrder &chosen) {
  remark::passed(function.getLoc(), remark::RemarkOpts::name("order").category("schedule"))
      << remark::add("at most {0} bytes live at once in program order, {1} in an order for memory; "
                     "taken is {2}",
                     chosen.programPeak, chosen.memoryPeak,
                     chosen.memoryPeak < chosen.programPeak ? "the order for memory"
                                                            : "program order");
}
