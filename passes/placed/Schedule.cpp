//===- Schedule.cpp - Order the dispatches and put them in waves ----------===//
//
// A wave is a run of dispatches with no hazard among them;
// waves never decrease in recorded order, since lifetimes in waves say nothing
// about an order in which they do. Hazards here are those between values: each
// has bytes of its own still.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Steps.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Order/Schedule.h"
#include "llvm/ADT/SetVector.h"

namespace weir {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct Schedule : weir::impl::SchedulePassBase<Schedule> {
  using SchedulePassBase::SchedulePassBase;

  void runOnOperation() override {
    if (schedule != "program" && schedule != "memory") {
      getOperation().emitError() << "schedule '" << schedule
                                 << "' is unknown; it is program or memory";
      return signalPassFailure();
    }
    dropSpares(getOperation());
    Effects &effects = getAnalysis<Effects>();
    Views &views = getAnalysis<Views>();
    getOperation().walk([&](func::FuncOp function) {
      if (failed(scheduleCommands(function, effects, views, schedule == "memory")))
        signalPassFailure();
    });
    markAnalysesPreserved<Effects, Views>();
  }
};
} // namespace

/// Writes down which value each operand is part of. Here every value has bytes of
/// its own, so that can be seen; whoever moves values around later can be held to
/// it.
static void setValues(func::FuncOp function, const CommandList &list,
                      const CommandAccesses &listAccesses) {
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

  // An argument that lends its bytes to a result from the start is inserted into: each
  // write makes its next value, the last one the result.
  DenseMap<Value, int64_t> writes;
  for (const DispatchAccesses &accesses : listAccesses.dispatches)
    for (const OperandAccess &access : accesses)
      writes[list.allocations[access.allocation].value] += access.writes;
  DenseMap<Value, SmallVector<int64_t>> later; // values, the next one last
  for (BlockArgument result : function.getArguments()) {
    auto lender =
        function.getArgAttrOfType<IntegerAttr>(result.getArgNumber(), schedule::donatedAttrName);
    if (!lender)
      continue;
    Value argument = function.getArgument(lender.getInt());
    SmallVector<int64_t> &numbersLeft = later[argument];
    for (int64_t count = 1; count < writes[argument]; ++count) {
      numbersLeft.push_back(names.size());
      names.push_back(names[numbers[argument]]);
      bytes.push_back(bytes[numbers[argument]]);
    }
    numbersLeft.push_back(numbers[result]);
    std::reverse(numbersLeft.begin(), numbersLeft.end());
  }

  SmallVector<int64_t> values, before;
  for (auto [command, accesses] : llvm::zip_equal(list.dispatches, listAccesses.dispatches)) {
    auto dispatch = dyn_cast<schedule::DispatchOp>(*command);
    if (!dispatch)
      continue;
    values.clear();
    before.assign(dispatch.getOperands().size(), -1);
    bool inserts = false;
    for (OpOperand &operand : dispatch->getOpOperands()) {
      std::pair<int64_t, int64_t> part = {-1, 0};
      if (isa<BaseMemRefType>(operand.get().getType())) {
        const View &view = list.views->get(operand.get());
        Value owner = view.allocation.value;
        auto number = numbers.find(owner);
        auto next = later.find(owner);
        if (next != later.end() && llvm::any_of(accesses, [&](const OperandAccess &access) {
              return access.writes && access.operand == operand.getOperandNumber();
            })) {
          inserts = true;
          before[operand.getOperandNumber()] = number->second;
          number->second = next->second.pop_back_val();
        }
        if (number != numbers.end() && view.range)
          part = {number->second, view.range->begin};
      }
      llvm::append_values(values, part.first, part.second);
    }
    dispatch.setValues(values);
    dispatch.setBefore(inserts ? ArrayRef<int64_t>(before) : ArrayRef<int64_t>());
  }
  function->setAttr(schedule::valueNamesAttrName, builder.getArrayAttr(names));
  function->setAttr(schedule::valueBytesAttrName, builder.getDenseI64ArrayAttr(bytes));
}

void weir::dropSpares(ModuleOp module) {
  SmallVector<schedule::DispatchOp> spares;
  module.walk([&](schedule::DispatchOp dispatch) {
    if (dispatch->hasAttr(spareAttrName))
      spares.push_back(dispatch);
  });
  if (spares.empty())
    return;
  llvm::SetVector<StringAttr> kernels;
  for (schedule::DispatchOp spare : spares) {
    kernels.insert(spare.getKernelAttr().getRootReference());
    SmallVector<Value> operands(spare.getOperands());
    spare.erase();
    for (Value operand : operands)
      if (auto alloc = operand.getDefiningOp<memref::AllocOp>(); alloc && alloc->use_empty())
        alloc.erase();
  }
  SymbolTable symbols(module);
  for (StringAttr name : kernels)
    if (Operation *kernel = symbols.lookup(name);
        kernel && SymbolTable::symbolKnownUseEmpty(name, module))
      symbols.erase(kernel);
}

LogicalResult weir::scheduleCommands(func::FuncOp function, Effects &effects, Views &views,
                                     bool forMemory) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  InPlaceProofs proofs;
  FailureOr<CollectedOrder> collected = collect(function, *commands, effects, views, proofs);
  if (failed(collected))
    return failure();
  auto &[list, problem] = *collected;
  std::vector<Hazard> hazards = findHazards(problem.accesses);
  Block &block = (*commands).getBody().front();
  auto isCommand = [](Operation &op) { return isa<schedule::CommandOpInterface>(op); };
  // What already stands between commands belongs where it is.
  if (llvm::all_of(block, isCommand)) {
    CommandOrder chosen = chooseOrder(problem, hazards, forMemory);
    if (forMemory)
      remark::passed(function.getLoc(), remark::RemarkOpts::name("order").category("schedule"))
          << remark::add("at most {0} bytes live at once in program order, {1} in an order for "
                         "memory; taken is {2}",
                         chosen.programPeak, chosen.memoryPeak,
                         chosen.memoryPeak < chosen.programPeak ? "the order for memory"
                                                                : "program order");
    if (!llvm::is_sorted(chosen.order)) {
      SmallVector<schedule::CommandOpInterface> sorted;
      for (int64_t number : chosen.order) {
        sorted.push_back(list.dispatches[number]);
        sorted.back()->moveBefore(&block, block.end());
      }
      list.dispatches = std::move(sorted);
      problem.accesses = permute(problem.accesses, chosen.order);
      hazards = findHazards(problem.accesses);
    }
  }
  std::vector<int64_t> waves = getWaves(list.dispatches.size(), hazards);
  for (auto [dispatch, wave] : llvm::zip_equal(list.dispatches, waves))
    dispatch.setWave(wave);
  if (function->hasAttr(schedule::entryAttrName))
    setValues(function, list, problem.accesses);
  return success();
}
