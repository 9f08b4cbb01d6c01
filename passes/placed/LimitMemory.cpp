//===- LimitMemory.cpp - Order and compute again until the arena fits -----===//
//
// Tries out, on copies of the function, what the passes behind this one would make
// of it, and goes on where the arena is too large: an order for which less is live,
// then one dispatch a wave, then values that are made again behind the peak in
// place of being kept over it. What is tried in which order does not depend on
// the limit: so whatever fits one limit fits every larger one.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Steps.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Order/Donation.h"
#include "weir/Order/Recompute.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/Support/Format.h"

namespace weir {
#define GEN_PASS_DEF_LIMITMEMORYPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
/// A dispatch that nobody reads the result of: another way to make a value.
struct Spare {
  schedule::DispatchOp op; ///< in no block
  Computation computation; ///< by numbers of its operands
};

/// A value that is live where most is.
struct LargeValue {
  std::string name;
  Location loc;
  int64_t bytes = 0;
};

/// What was made of a function.
struct Outcome {
  int64_t ordered = 0, apart = 0;
  int64_t bytes = 0;               ///< of the arena, in the end or at best
  int64_t moved = 0, repeated = 0; ///< dispatches
  double work = 1;                 ///< of that as it was
  std::vector<LargeValue> largest; ///< of what is live at the peak then
};

/// One way through the steps.
class Attempt {
public:
  Attempt(func::FuncOp original, Effects &effects, InPlaceProofs &proofs, int64_t queues,
          int64_t effort)
      : effects(effects), proofs(proofs), queues(queues), effort(effort) {
    OpBuilder builder(original->getContext());
    builder.setInsertionPointAfter(original);
    function = cast<func::FuncOp>(builder.clone(*original));
  }
  ~Attempt() {
    for (Spare &spare : spares)
      spare.op->erase(); // in the list still where it was refused
    if (function)
      function.erase();
  }

  FailureOr<int64_t> getAsWritten();
  /// Goes on until the arena has at most `limit` bytes; without one, as far as that
  /// gets anywhere. Failure, with no diagnostic, where that isn't enough.
  FailureOr<Outcome> run(std::optional<int64_t> limit);
  /// Hands over the function.
  func::FuncOp take() { return std::exchange(function, {}); }

private:
  struct State {
    CommandList list;
    RecomputeProblem problem;
    SmallVector<Value> allocations; ///< by number
  };

  LogicalResult takeSpares();
  FailureOr<int64_t> getArena();
  void setSingleWaves();
  FailureOr<State> getState();
  Computation getComputation(schedule::CommandOpInterface op, const OrderProblem &problem,
                             const OrderCommand &command, const DispatchAccesses &accesses,
                             ArrayRef<OperandEffect> operandEffects);
  double getWork(schedule::DispatchOp dispatch);
  void repeat(State &state, const Recomputation &step, Outcome &outcome);
  std::vector<LargeValue> getLargest(const State &state, const LiveProfile &profile);
  std::string getName(Value alloc);
  schedule::CommandsOp getList() { return *getCommands(function); }

  func::FuncOp function;
  Effects &effects;
  InPlaceProofs &proofs;
  Views views;
  int64_t queues, effort;
  SymbolTableCollection symbols;
  std::vector<Spare> spares;
  DenseMap<Value, Value> origins; ///< of an allocation that holds what another does: that one
  /// Of which value what names it is which part, as dispatches have it.
  DenseMap<Value, std::pair<int64_t, int64_t>> parts;
  DenseMap<Operation *, double> work; ///< of one workgroup, by kernel
};

struct LimitMemory : weir::impl::LimitMemoryPassBase<LimitMemory> {
  using LimitMemoryPassBase::LimitMemoryPassBase;

  void runOnOperation() override;

private:
  LogicalResult fit(func::FuncOp function, Effects &effects, InPlaceProofs &proofs, int64_t queues);
};
} // namespace

//===----------------------------------------------------------------------===//
// Trying out
//===----------------------------------------------------------------------===//

/// What the passes behind this one would make.
FailureOr<int64_t> Attempt::getArena() {
  OpBuilder builder(function->getContext());
  builder.setInsertionPointAfter(function);
  auto copy = cast<func::FuncOp>(builder.clone(*function));
  views = Views();
  FailureOr<int64_t> bytes = failure();
  if (succeeded(assignQueues(copy, effects, views, queues)) &&
      succeeded(donateBuffers(copy, effects, views, proofs, /*report=*/false)))
    bytes = getArenaBytes(copy, effects, views, proofs, effort);
  copy.erase();
  views = Views();
  return bytes;
}

FailureOr<int64_t> Attempt::getAsWritten() {
  if (failed(takeSpares()) ||
      failed(scheduleCommands(function, effects, views, /*forMemory=*/false)))
    return failure();
  return getArena();
}

void Attempt::setSingleWaves() {
  int64_t wave = 0;
  for (auto command : getList().getBody().front().getOps<schedule::CommandOpInterface>())
    command.setWave(wave++);
}

FailureOr<Outcome> Attempt::run(std::optional<int64_t> limit) {
  if (failed(takeSpares()) ||
      failed(scheduleCommands(function, effects, views, /*forMemory=*/true)))
    return failure();
  Outcome outcome;
  FailureOr<int64_t> bytes = getArena();
  if (failed(bytes))
    return failure();
  outcome.ordered = outcome.apart = outcome.bytes = *bytes;
  if (limit && *bytes <= *limit)
    return outcome;
  FailureOr<State> state = getState();
  if (failed(state))
    return failure();
  outcome.largest = getLargest(*state, getLiveProfile(state->problem));
  // What stands between commands belongs where it is.
  if (!llvm::all_of(getList().getBody().front(),
                    [](Operation &op) { return isa<schedule::CommandOpInterface>(op); })) {
    if (limit)
      return failure();
    return outcome;
  }
  setSingleWaves();
  bytes = getArena();
  if (failed(bytes))
    return failure();
  outcome.apart = *bytes;
  outcome.bytes = std::min(outcome.bytes, *bytes);
  if (limit && *bytes <= *limit)
    return outcome;

  auto getAllWork = [](const RecomputeProblem &problem) {
    double sum = 0;
    for (const Computation &command : problem.commands)
      sum += command.work;
    return std::max(sum, 1.0);
  };
  double workBefore = getAllWork(state->problem);
  size_t mostSteps = 2 * state->problem.commands.size() + 16;
  for (size_t number = 0; number < mostSteps; ++number) {
    std::optional<Recomputation> step = chooseRecomputation(state->problem);
    if (!step)
      break;
    repeat(*state, *step, outcome);
    setSingleWaves();
    state = getState();
    if (failed(state))
      return failure();
    LiveProfile profile = getLiveProfile(state->problem);
    // No plan has less than is live.
    if (limit ? profile.peak > *limit : profile.peak >= outcome.bytes)
      continue;
    bytes = getArena();
    if (failed(bytes))
      return failure();
    int64_t needed = std::max(*bytes, profile.peak);
    if (limit ? needed > *limit : needed >= outcome.bytes)
      continue;
    outcome.bytes = *bytes;
    outcome.work = getAllWork(state->problem) / workBefore;
    outcome.largest = getLargest(*state, profile);
    if (limit)
      return outcome;
    outcome.bytes = needed;
  }
  if (limit)
    return failure();
  return outcome;
}

//===----------------------------------------------------------------------===//
// Reading the list
//===----------------------------------------------------------------------===//

/// An estimate: operations on floats, loads and stores of one workgroup, each of as
/// many elements as it has.
static double countOperations(Region &region) {
  auto countElements = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return double(vector ? vector.getNumElements() : 1);
  };
  double sum = 0;
  for (Operation &op : region.getOps()) {
    double times = 1;
    if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
      if (std::optional<APInt> trips = loop.getStaticTripCount())
        times = double(trips->getZExtValue());
    for (Region &inner : op.getRegions())
      sum += times * countOperations(inner);
    if (auto load = dyn_cast<memref::LoadOp>(op))
      sum += countElements(load.getType());
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      sum += countElements(store.getValueToStore().getType());
    else if (op.getNumResults() == 1 && op.getNumRegions() == 0 &&
             isa<FloatType>(getElementTypeOrSelf(op.getResult(0))) &&
             isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) &&
             !op.hasTrait<OpTrait::ConstantLike>())
      sum += countElements(op.getResult(0).getType());
  }
  return sum;
}

double Attempt::getWork(schedule::DispatchOp dispatch) {
  auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(dispatch, dispatch.getKernelAttr());
  if (!kernel)
    return 0;
  auto [known, isNew] = work.try_emplace(kernel);
  if (isNew) {
    known->second = countOperations(kernel.getBody());
    if (auto sizes = kernel.getKnownBlockSize())
      for (int32_t size : *sizes)
        known->second *= size;
  }
  double all = known->second;
  for (int64_t size : dispatch.getGrid())
    all *= double(size);
  return all;
}

/// By numbers of operands.
Computation Attempt::getComputation(schedule::CommandOpInterface op, const OrderProblem &problem,
                                    const OrderCommand &command, const DispatchAccesses &accesses,
                                    ArrayRef<OperandEffect> operandEffects) {
  Computation computation;
  auto dispatch = dyn_cast<schedule::DispatchOp>(*op);
  auto isWhole = [&](const OperandAccess &access) {
    return llvm::find_if(
               command.operands,
               [&](const MemoryOperand &operand) { return operand.operand == access.operand; })
        ->isWhole;
  };
  computation.mayRepeat = bool(dispatch) && function->hasAttr(schedule::entryAttrName);
  llvm::SmallDenseMap<int64_t, const OperandAccess *, 8> seen; // by allocation
  for (const OperandAccess &access : accesses) {
    auto [other, isNew] = seen.try_emplace(access.allocation, &access);
    bool updates = access.reads && access.writes;
    if (access.writes)
      computation.mayRepeat &=
          isNew && !updates && operandEffects[access.operand].coversAll && isWhole(access);
    else if (!isNew)
      computation.mayRepeat &= !other->second->writes;
    if (!isNew && (!access.writes || other->second->writes))
      continue;
    if (access.reads)
      computation.reads.push_back(access.operand);
    if (access.writes)
      computation.writes.push_back(access.operand);
  }
  if (!dispatch)
    return computation;
  for (int64_t target : computation.writes)
    for (int64_t source : computation.reads)
      if (target != source && !findMisfit(problem, command, target, source) &&
          isProvedInPlace(problem, command, target, source))
        computation.inPlace.push_back({source, target});
  computation.work = getWork(dispatch);
  return computation;
}

/// Spares leave the list: what they read stays as it is for them.
LogicalResult Attempt::takeSpares() {
  views = Views();
  schedule::CommandsOp commands = getList();
  FailureOr<CollectedOrder> collected = collect(function, commands, effects, views, proofs);
  if (failed(collected))
    return failure();
  const OrderProblem &problem = collected->problem;
  for (auto [command, known, accesses] :
       llvm::zip_equal(collected->list.dispatches, problem.commands, problem.accesses.dispatches)) {
    if (!command->hasAttr(spareAttrName))
      continue;
    FailureOr<ArrayRef<OperandEffect>> operandEffects = getEffects(command, symbols, effects);
    if (failed(operandEffects))
      return failure();
    Spare spare;
    spare.op = cast<schedule::DispatchOp>(*command);
    spare.computation = getComputation(command, problem, known, accesses, *operandEffects);
    if (spare.computation.writes.size() != 1 || !spare.computation.mayRepeat)
      return command->emitOpError("is a spare, but does not write one value and no more");
    spares.push_back(std::move(spare));
  }
  // Each writes what an operand of the command before it is.
  for (Spare &spare : spares) {
    Operation *maker = spare.op->getPrevNode();
    while (maker && maker->hasAttr(spareAttrName))
      maker = maker->getPrevNode();
    int64_t operand = spare.op->getAttrOfType<IntegerAttr>(spareAttrName).getInt();
    if (!maker || operand < 0 || operand >= int64_t(maker->getNumOperands()))
      return spare.op.emitOpError("is a spare for no operand of a command before it");
    OpOperand &made = spare.op->getOpOperand(spare.computation.writes.front());
    auto alloc = made.get().getDefiningOp<memref::AllocOp>();
    made.set(maker->getOperand(operand));
    if (alloc && alloc->use_empty())
      alloc.erase();
  }
  for (Spare &spare : spares)
    spare.op->remove();
  views = Views();
  return success();
}

FailureOr<Attempt::State> Attempt::getState() {
  views = Views();
  FailureOr<CollectedOrder> collected = collect(function, getList(), effects, views, proofs);
  if (failed(collected))
    return failure();
  CommandList *list = &collected->list;
  State state;
  RecomputeProblem &problem = state.problem;
  DenseMap<Value, int64_t> numbers;
  auto add = [&](Value value) {
    auto [number, isNew] = numbers.try_emplace(value, problem.allocations.size());
    if (!isNew)
      return number->second;
    state.allocations.push_back(value);
    Buffered &buffer = problem.allocations.emplace_back();
    auto argument = dyn_cast<BlockArgument>(value);
    auto has = [&](StringRef name) {
      return argument && argument.getOwner()->getParentOp() == function &&
             function.getArgAttr(argument.getArgNumber(), name);
    };
    auto alloc = value.getDefiningOp<memref::AllocOp>();
    buffer.isResult = has(schedule::resultAttrName);
    buffer.isDonated = has(schedule::donateAttrName);
    buffer.isGiven = !alloc && !buffer.isResult;
    auto type = dyn_cast<MemRefType>(value.getType());
    if (!buffer.isGiven && type)
      buffer.bytes = schedule::getByteSize(type).value_or(0);
    buffer.mayCopy = alloc && llvm::all_of(value.getUsers(), [](Operation *user) {
                       return isa<schedule::DispatchOp>(user);
                     });
    return int64_t(problem.allocations.size() - 1);
  };
  // A constant has no number of its own in the list but its symbol.
  DenseMap<int64_t, int64_t> byList;
  auto addOperand = [&](Value operand) {
    const AllocationRef &allocation = views.get(operand).allocation;
    int64_t inList = list->getNumber(allocation);
    if (inList < 0)
      return add(allocation.value ? allocation.value : operand);
    auto [number, isNew] = byList.try_emplace(inList);
    if (isNew)
      number->second = add(allocation.value ? allocation.value : operand);
    return number->second;
  };
  auto toAllocations = [&](Operation *op, Computation computation) {
    auto rename = [&](int64_t &operand) { operand = addOperand(op->getOperand(operand)); };
    for (auto *numbers : {&computation.reads, &computation.writes})
      llvm::for_each(*numbers, rename);
    for (auto &[source, target] : computation.inPlace) {
      rename(source);
      rename(target);
    }
    return computation;
  };
  for (auto [command, known, accesses] : llvm::zip_equal(
           list->dispatches, collected->problem.commands, collected->problem.accesses.dispatches)) {
    FailureOr<ArrayRef<OperandEffect>> operandEffects = getEffects(command, symbols, effects);
    if (failed(operandEffects))
      return failure();
    problem.commands.push_back(toAllocations(
        command, getComputation(command, collected->problem, known, accesses, *operandEffects)));
  }
  for (const Spare &spare : spares)
    problem.recipes.push_back(toAllocations(spare.op, spare.computation));
  DenseMap<Value, int64_t> values;
  for (auto [buffer, allocation] : llvm::zip_equal(problem.allocations, state.allocations)) {
    auto origin = origins.find(allocation);
    Value holds = origin == origins.end() ? allocation : origin->second;
    buffer.value = values.try_emplace(holds, values.size()).first->second;
  }
  state.list = std::move(*list);
  return state;
}

//===----------------------------------------------------------------------===//
// Computing again
//===----------------------------------------------------------------------===//

/// As weir-plan-memory calls it.
std::string Attempt::getName(Value alloc) {
  if (auto origin = origins.find(alloc); origin != origins.end())
    alloc = origin->second;
  Operation *op = alloc.getDefiningOp();
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

/// Into the IR. What is made again is the same value, of the same number.
void Attempt::repeat(State &state, const Recomputation &step, Outcome &outcome) {
  RecomputeProblem &problem = state.problem;
  OpBuilder builder(getList());
  for (auto command : state.list.dispatches)
    if (auto dispatch = dyn_cast<schedule::DispatchOp>(*command); dispatch)
      for (auto [index, operand] : llvm::enumerate(dispatch.getOperands()))
        if (2 * index + 1 < dispatch.getValues().size())
          parts[operand] = {dispatch.getValues()[2 * index], dispatch.getValues()[2 * index + 1]};
  auto getNumber = [&](Value operand) {
    const View &view = views.get(operand);
    Value owner = view.allocation.value ? view.allocation.value : operand;
    return int64_t(llvm::find(state.allocations, owner) - state.allocations.begin());
  };
  Operation *before = state.list.dispatches[step.before];
  for (const Repetition &repetition : step.repetitions) {
    schedule::DispatchOp pattern =
        repetition.isRecipe ? spares[repetition.number].op
                            : cast<schedule::DispatchOp>(*state.list.dispatches[repetition.number]);
    const Computation &own =
        (repetition.isRecipe ? problem.recipes : problem.commands)[repetition.number];
    auto again = cast<schedule::DispatchOp>(pattern->clone());
    again->removeAttr(spareAttrName);
    SmallVector<int64_t> values;
    for (OpOperand &operand : again->getOpOperands()) {
      Value old = operand.get();
      auto origin = origins.find(old);
      auto part = parts.find(origin == origins.end() ? old : origin->second);
      if (part == parts.end())
        part = parts.find(old);
      if (part != parts.end())
        llvm::append_values(values, part->second.first, part->second.second);
      int64_t number = getNumber(old);
      if (auto write = llvm::find(own.writes, number); write != own.writes.end()) {
        int64_t made = repetition.writes[write - own.writes.begin()];
        auto alloc = old.getDefiningOp<memref::AllocOp>();
        builder.setInsertionPoint(getList());
        auto type = cast<MemRefType>(old.getType());
        auto fresh = memref::AllocOp::create(builder, pattern.getLoc(), type,
                                             alloc ? alloc.getAlignmentAttr() : IntegerAttr());
        fresh->setAttr(schedule::nameAttrName, builder.getStringAttr(getName(old) + " again"));
        origins[fresh] = origin == origins.end() ? old : origin->second;
        state.allocations.resize(std::max<size_t>(state.allocations.size(), made + 1));
        state.allocations[made] = fresh;
        operand.set(fresh);
      } else if (auto read = llvm::find(own.reads, number); read != own.reads.end()) {
        int64_t source = repetition.reads[read - own.reads.begin()];
        if (source != number)
          operand.set(state.allocations[source]);
      }
    }
    if (repetition.isRecipe && values.size() == 2 * again.getOperands().size())
      again.setValues(values);
    builder.setInsertionPoint(before);
    builder.insert(again);
  }
  for (auto command : ArrayRef(state.list.dispatches).drop_front(step.before))
    for (auto [from, to] : step.replaced)
      command->replaceUsesOfWith(state.allocations[from], state.allocations[to]);
  std::vector<int64_t> moved = recompute(problem, step);
  for (auto [command, number] : llvm::zip_equal(state.list.dispatches, moved))
    if (number < 0) {
      command->erase();
      ++outcome.moved;
    }
  outcome.repeated += step.repetitions.size();
}

/// Of what is live at the peak, the largest.
std::vector<LargeValue> Attempt::getLargest(const State &state, const LiveProfile &profile) {
  constexpr size_t most = 3;
  if (profile.peak == 0)
    return {};
  int64_t peak = llvm::find(profile.live, profile.peak) - profile.live.begin();
  std::vector<LargeValue> values;
  for (auto [number, life] : llvm::enumerate(profile.lives))
    if (profile.inArena[number] && life.first <= peak && peak <= life.second)
      values.push_back({getName(state.allocations[number]), state.allocations[number].getLoc(),
                        state.problem.allocations[number].bytes});
  std::vector<LargeValue> largest; // the first of those with equally many
  while (!values.empty() && largest.size() < most) {
    auto next = llvm::max_element(
        values, [](const LargeValue &a, const LargeValue &b) { return a.bytes < b.bytes; });
    largest.push_back(*next);
    values.erase(next);
  }
  return largest;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult LimitMemory::fit(func::FuncOp function, Effects &effects, InPlaceProofs &proofs,
                               int64_t queues) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  FailureOr<int64_t> asWritten = Attempt(function, effects, proofs, queues, effort).getAsWritten();
  if (failed(asWritten))
    return failure();
  Attempt attempt(function, effects, proofs, queues, effort);
  FailureOr<Outcome> outcome = attempt.run(int64_t(limit));
  if (failed(outcome)) {
    FailureOr<Outcome> best = Attempt(function, effects, proofs, queues, effort).run(std::nullopt);
    if (failed(best))
      return failure();
    InFlightDiagnostic error =
        emitError(function.getLoc())
        << "entry '" << function.getName() << "' does not fit in " << int64_t(limit)
        << " bytes: its arena has " << *asWritten << " as written, " << best->ordered
        << " in the best order, and the smallest limit that fits is " << best->bytes;
    for (const LargeValue &value : best->largest)
      error.attachNote(value.loc) << "then '" << value.name << "' has " << value.bytes
                                  << " bytes where most are live";
    return failure();
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "memory limit " << int64_t(limit) << ", entry '" << function.getName()
         << "': arena as written " << *asWritten << ", reordered " << outcome->ordered;
  if (outcome->apart != outcome->ordered)
    stream << ", with one dispatch a wave " << outcome->apart;
  if (outcome->repeated > 0) {
    int64_t again = outcome->repeated - outcome->moved;
    stream << ", with ";
    if (again > 0)
      stream << again << (again == 1 ? " dispatch" : " dispatches") << " repeated";
    if (outcome->moved > 0)
      stream << (again > 0 ? " and " : "") << outcome->moved << " moved";
    stream << llvm::format(" (%.1f%% more work) ", 100 * (outcome->work - 1)) << outcome->bytes;
  }
  stream << " bytes";
  func::FuncOp fitted = attempt.take();
  function.erase();
  if (*asWritten > 0)
    emitRemark(fitted.getLoc()) << text;
  return success();
}

void LimitMemory::runOnOperation() {
  if (limit < 1) {
    getOperation().emitError() << "limit " << int64_t(limit) << " is no number of bytes, 1 or more";
    return signalPassFailure();
  }
  int64_t queues = 1;
  if (getOperation()->hasAttr(schedule::profileAttrName)) {
    FailureOr<Profile> profile = getProfile(getOperation());
    if (failed(profile))
      return signalPassFailure();
    queues = profile->queues;
  }
  Effects &effects = getAnalysis<Effects>();
  InPlaceProofs proofs;
  llvm::SetVector<StringAttr> spareKernels;
  getOperation().walk([&](schedule::DispatchOp dispatch) {
    if (dispatch->hasAttr(spareAttrName))
      spareKernels.insert(dispatch.getKernelAttr().getRootReference());
  });
  for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
    if (failed(fit(function, effects, proofs, queues)))
      signalPassFailure();
  SymbolTable symbols(getOperation());
  for (StringAttr name : spareKernels)
    if (Operation *kernel = symbols.lookup(name);
        kernel && SymbolTable::symbolKnownUseEmpty(name, getOperation()))
      symbols.erase(kernel);
}
