//===- Schedule.cpp - Order the dispatches and put them in waves ----------===//
//
// The order is the program's, but that whoever reads a donated argument comes
// before who may write over it; or one that needs less memory, where that is
// measured to be less. A wave is a run of dispatches with no hazard among them;
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
#include "weir/Analysis/Donation.h"
#include "llvm/ADT/SetVector.h"

#include <set>

namespace weir {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
/// What must come before what, by numbers of commands.
struct Dependences {
  std::vector<SmallVector<int64_t, 4>> after; ///< of each, those that need it

  void add(int64_t from, int64_t to) { after[from].push_back(to); }
};

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

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Lets all readers of a donated argument come before the last dispatch that may
/// write a result over it, unless they need what that one makes.
static void addDonations(func::FuncOp function, const CommandList &list, Dependences &dependences) {
  int64_t count = list.dispatches.size();
  Donation donation(*list.views);
  auto mayTake = [&](int64_t number, const OperandAccess &write, const OperandAccess &read) {
    auto dispatch = dyn_cast<schedule::DispatchOp>(*list.dispatches[number]);
    return dispatch && !donation.checkFit(dispatch, write.operand, read.operand).refusal &&
           !donation.prove(dispatch, write.operand, read.operand).refusal;
  };
  std::vector<bool> begun(list.allocations.size()); // whose bytes were written
  std::vector<int64_t> writer(list.allocations.size(), -1);
  auto isDonated = [&](int64_t allocation) {
    auto argument = dyn_cast_or_null<BlockArgument>(list.allocations[allocation].value);
    return argument && argument.getOwner()->getParentOp() == function &&
           function.getArgAttr(argument.getArgNumber(), schedule::donateAttrName);
  };
  for (int64_t number = 0; number < count; ++number) {
    const DispatchAccesses &accesses = list.accesses.dispatches[number];
    for (const OperandAccess &read : accesses)
      if (read.reads && !read.writes && isDonated(read.allocation) &&
          llvm::any_of(accesses, [&](const OperandAccess &write) {
            return write.writes && !write.reads && !begun[write.allocation] &&
                   mayTake(number, write, read);
          }))
        writer[read.allocation] = number; // the last that could
    for (const OperandAccess &access : accesses)
      begun[access.allocation] = begun[access.allocation] || access.writes;
  }
  for (auto [allocation, last] : llvm::enumerate(writer)) {
    if (last < 0)
      continue;
    std::vector<bool> needs(count);
    needs[last] = true;
    SmallVector<int64_t> open = {last};
    while (!open.empty())
      for (int64_t next : dependences.after[open.pop_back_val()])
        if (!needs[next]) {
          needs[next] = true;
          open.push_back(next);
        }
    for (int64_t number = 0; number < count; ++number)
      for (const OperandAccess &access : list.accesses.dispatches[number])
        if (access.allocation == int64_t(allocation) && !needs[number])
          dependences.add(number, last);
  }
}

/// An order that keeps all dependences: of what is ready, the first in the
/// program, or what adds least to the bytes in use, of the first few.
static std::vector<int64_t> sort(const Dependences &dependences,
                                 function_ref<int64_t(int64_t)> getGrowth,
                                 function_ref<void(int64_t)> take) {
  constexpr size_t lookahead = 64;
  std::vector<int64_t> waiting(dependences.after.size()), order;
  for (const auto &after : dependences.after)
    for (int64_t next : after)
      ++waiting[next];
  std::set<int64_t> ready;
  for (auto [number, count] : llvm::enumerate(waiting))
    if (count == 0)
      ready.insert(number);
  while (!ready.empty()) {
    auto best = ready.begin();
    if (getGrowth) {
      int64_t least = getGrowth(*best);
      auto candidate = std::next(best);
      for (size_t seen = 1; candidate != ready.end() && seen < lookahead; ++candidate, ++seen)
        if (int64_t growth = getGrowth(*candidate); growth < least) {
          least = growth;
          best = candidate;
        }
    }
    int64_t number = *best;
    ready.erase(best);
    order.push_back(number);
    if (take)
      take(number);
    for (int64_t next : dependences.after[number])
      if (--waiting[next] == 0)
        ready.insert(next);
  }
  return order;
}

/// Bytes of values in between by allocation; 0 of all else.
static std::vector<int64_t> getSizes(const CommandList &list) {
  std::vector<int64_t> sizes;
  for (const AllocationRef &allocation : list.allocations) {
    auto alloc =
        allocation.value ? allocation.value.getDefiningOp<memref::AllocOp>() : memref::AllocOp();
    sizes.push_back(alloc ? schedule::getByteSize(alloc.getType()).value_or(0) : 0);
  }
  return sizes;
}

/// The most bytes of values in between that are live in one wave.
static int64_t getPeak(const CommandAccesses &accesses, const std::vector<Hazard> &hazards,
                       ArrayRef<int64_t> sizes) {
  std::vector<int64_t> waves = getWaves(accesses.dispatches.size(), hazards);
  int64_t last = waves.empty() ? 0 : waves.back();
  std::vector<std::pair<int64_t, int64_t>> lives(sizes.size(), {-1, -1});
  for (auto [dispatch, wave] : llvm::zip_equal(accesses.dispatches, waves))
    for (const OperandAccess &access : dispatch) {
      auto &[first, end] = lives[access.allocation];
      first = first < 0 ? wave : first;
      end = wave;
    }
  std::vector<int64_t> change(last + 2);
  for (auto [life, size] : llvm::zip_equal(lives, sizes))
    if (life.first >= 0) {
      change[life.first] += size;
      change[life.second + 1] -= size;
    }
  int64_t live = 0, peak = 0;
  for (int64_t bytes : change)
    peak = std::max(peak, live += bytes);
  return peak;
}

static std::vector<int64_t> chooseOrder(func::FuncOp function, const CommandList &list,
                                        const std::vector<Hazard> &hazards, bool forMemory) {
  Dependences dependences;
  dependences.after.resize(list.dispatches.size());
  for (size_t i = 0; i < hazards.size(); ++i)
    if (i == 0 || hazards[i].from != hazards[i - 1].from || hazards[i].to != hazards[i - 1].to)
      dependences.add(hazards[i].from, hazards[i].to);
  addDonations(function, list, dependences);
  std::vector<int64_t> program = sort(dependences, nullptr, nullptr);
  if (!forMemory)
    return program;

  std::vector<int64_t> sizes = getSizes(list);
  std::vector<int64_t> uses(sizes.size());
  std::vector<bool> live(sizes.size());
  auto forEach = [&](int64_t number, function_ref<void(int64_t)> visit) {
    SmallVector<int64_t> seen;
    for (const OperandAccess &access : list.accesses.dispatches[number])
      if (!llvm::is_contained(seen, access.allocation)) {
        seen.push_back(access.allocation);
        visit(access.allocation);
      }
  };
  for (size_t number = 0; number < list.dispatches.size(); ++number)
    forEach(number, [&](int64_t allocation) { ++uses[allocation]; });
  auto getGrowth = [&](int64_t number) {
    int64_t growth = 0;
    forEach(number, [&](int64_t allocation) {
      growth += live[allocation] ? 0 : sizes[allocation];
      growth -= uses[allocation] == 1 ? sizes[allocation] : 0;
    });
    return growth;
  };
  auto take = [&](int64_t number) {
    forEach(number, [&](int64_t allocation) {
      live[allocation] = true;
      --uses[allocation];
    });
  };
  std::vector<int64_t> memory = sort(dependences, getGrowth, take);
  auto getPeakOf = [&](const std::vector<int64_t> &order) {
    if (llvm::is_sorted(order))
      return getPeak(list.accesses, hazards, sizes);
    CommandAccesses accesses = permute(list.accesses, order);
    return getPeak(accesses, findHazards(accesses), sizes);
  };
  int64_t asIs = getPeakOf(program);
  int64_t less = memory == program ? asIs : getPeakOf(memory);
  remark::passed(function.getLoc(), remark::RemarkOpts::name("order").category("schedule"))
      << remark::add("at most {0} bytes live at once in program order, {1} in an order for memory; "
                     "taken is {2}",
                     asIs, less, less < asIs ? "the order for memory" : "program order");
  return less < asIs ? memory : program;
}

//===----------------------------------------------------------------------===//
// Waves and values
//===----------------------------------------------------------------------===//

/// Writes down which value each operand is part of. Here every value has bytes of
/// its own, so that can be seen; whoever moves values around later can be held to
/// it.
static void setValues(func::FuncOp function, const CommandList &list, Views &views) {
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
  for (const DispatchAccesses &accesses : list.accesses.dispatches)
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
  for (auto [command, accesses] : llvm::zip_equal(list.dispatches, list.accesses.dispatches)) {
    auto dispatch = dyn_cast<schedule::DispatchOp>(*command);
    if (!dispatch)
      continue;
    values.clear();
    before.assign(dispatch.getOperands().size(), -1);
    bool inserts = false;
    for (OpOperand &operand : dispatch->getOpOperands()) {
      std::pair<int64_t, int64_t> part = {-1, 0};
      if (isa<BaseMemRefType>(operand.get().getType())) {
        const View &view = views.get(operand.get());
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
  FailureOr<CommandList> list = collectAccesses(*commands, effects, views);
  if (failed(list))
    return failure();
  std::vector<Hazard> hazards = findHazards(list->accesses);
  Block &block = (*commands).getBody().front();
  auto isCommand = [](Operation &op) { return isa<schedule::CommandOpInterface>(op); };
  // What already stands between commands belongs where it is.
  if (llvm::all_of(block, isCommand)) {
    std::vector<int64_t> order = chooseOrder(function, *list, hazards, forMemory);
    if (!llvm::is_sorted(order)) {
      SmallVector<schedule::CommandOpInterface> sorted;
      for (int64_t number : order) {
        sorted.push_back(list->dispatches[number]);
        sorted.back()->moveBefore(&block, block.end());
      }
      list->dispatches = std::move(sorted);
      list->accesses = permute(list->accesses, order);
      hazards = findHazards(list->accesses);
    }
  }
  std::vector<int64_t> waves = getWaves(list->dispatches.size(), hazards);
  for (auto [dispatch, wave] : llvm::zip_equal(list->dispatches, waves))
    dispatch.setWave(wave);
  if (function->hasAttr(schedule::entryAttrName))
    setValues(function, *list, views);
  return success();
}
