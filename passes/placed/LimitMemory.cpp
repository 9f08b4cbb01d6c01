//===- LimitMemory.cpp - Order and compute again until the arena fits -----===//
//
// lib/Order tries orders and repetitions on plain data, with the decisions that the passes behind
// this one make. Here a function becomes such a problem, and the answer becomes its list.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Spares.h"
#include "passes/placed/Curve.h"
#include "passes/placed/WriteOrder.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Target/Errors.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/Support/Format.h"

namespace weir {
#define GEN_PASS_DEF_LIMITMEMORYPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct LimitMemory : weir::impl::LimitMemoryPassBase<LimitMemory> {
  using LimitMemoryPassBase::LimitMemoryPassBase;

  void runOnOperation() override;

private:
  LogicalResult fit(func::FuncOp function, Effects &effects, InPlaceProofs &proofs, int64_t queues);
};
} // namespace

//===----------------------------------------------------------------------===//
// Collecting
//===----------------------------------------------------------------------===//

/// Estimates the operations on floats, loads and stores of one workgroup, each counted by the
/// elements that it has.
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

/// Estimates the work of each dispatch.
static void setWork(const CommandList &list, OrderProblem &problem) {
  SymbolTableCollection symbols;
  DenseMap<Operation *, double> ofWorkgroup; // by kernel
  for (OrderCommand &command : problem.commands) {
    auto dispatch = dyn_cast<schedule::DispatchOp>(*list.dispatches[command.id]);
    auto kernel =
        dispatch
            ? symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(dispatch, dispatch.getKernelAttr())
            : gpu::GPUFuncOp();
    if (!kernel)
      continue;
    auto [known, isNew] = ofWorkgroup.try_emplace(kernel);
    if (isNew) {
      known->second = countOperations(kernel.getBody());
      if (auto sizes = kernel.getKnownBlockSize())
        for (int32_t size : *sizes)
          known->second *= size;
    }
    command.work = known->second;
    for (int64_t size : dispatch.getGrid())
      command.work *= double(size);
  }
}

/// Whether a command writes the same bits if it runs again.
static bool mayRepeat(const OrderCommand &command, const DispatchAccesses &accesses,
                      ArrayRef<OperandEffect> effects) {
  for (auto access = accesses.begin(); access != accesses.end(); ++access) {
    auto first = std::find_if(accesses.begin(), access, [&](const OperandAccess &other) {
      return other.allocation == access->allocation;
    });
    if (access->writes &&
        (first != access || access->reads || !effects[access->operand].coversAll ||
         !command.getOperand(access->operand).isWhole))
      return false;
    if (first != access && first->writes)
      return false;
  }
  return command.isDispatch;
}

/// Says which commands of an entry may run again, and which values may have a second copy.
static LogicalResult setRepetitions(func::FuncOp function, const CommandList &list,
                                    OrderProblem &problem, Effects &effects) {
  SymbolTableCollection symbols;
  bool isEntry = function->hasAttr(schedule::entryAttrName);
  for (auto [op, command, accesses] :
       llvm::zip_equal(list.dispatches, problem.commands, problem.accesses.dispatches)) {
    FailureOr<ArrayRef<OperandEffect>> effect = getEffects(op, symbols, effects);
    if (failed(effect))
      return failure();
    command.mayRepeat = isEntry && mayRepeat(command, accesses, *effect);
  }
  for (auto [ref, allocation] : llvm::zip_equal(list.allocations, problem.allocations))
    allocation.mayCopy = allocation.isValue &&
                         llvm::all_of(ref.value.getUsers(), llvm::IsaPred<schedule::DispatchOp>);
  return success();
}

/// Takes the spares out of the list: each is a recipe for an operand of the command before it.
/// Its own allocation goes.
static LogicalResult takeSpares(const CommandList &list, OrderProblem &problem) {
  std::vector<OrderCommand> commands;
  std::vector<DispatchAccesses> dispatches;
  for (auto [op, command, accesses] :
       llvm::zip_equal(list.dispatches, problem.commands, problem.accesses.dispatches)) {
    if (!op->hasAttr(spareAttrName)) {
      commands.push_back(std::move(command));
      dispatches.push_back(std::move(accesses));
      continue;
    }
    auto isWrite = [](const OperandAccess &access) { return access.writes; };
    if (!command.mayRepeat || llvm::count_if(accesses, isWrite) != 1)
      return op->emitOpError("is a spare, but does not write one value and no more");
    auto number = op->getAttrOfType<IntegerAttr>(spareAttrName);
    const MemoryOperand *made =
        number && !commands.empty() ? commands.back().findOperand(number.getInt()) : nullptr;
    if (!made)
      return op->emitOpError("is a spare for no operand of a command before it");
    OperandAccess &write = *llvm::find_if(accesses, isWrite);
    write.allocation = made->allocation;
    for (MemoryOperand &operand : command.operands)
      if (operand.operand == write.operand)
        operand.allocation = made->allocation;
    OpOperand &written = op->getOpOperand(write.operand);
    auto alloc = written.get().getDefiningOp<memref::AllocOp>();
    written.set(list.dispatches[commands.back().id]->getOperand(made->operand));
    if (alloc && alloc->use_empty())
      alloc.erase();
    problem.recipes.push_back({std::move(command), std::move(accesses)});
  }
  problem.commands = std::move(commands);
  problem.accesses.dispatches = std::move(dispatches);
  return success();
}

//===----------------------------------------------------------------------===//
// Reporting
//===----------------------------------------------------------------------===//

/// Returns the sentence on an entry that fits.
static std::string describe(const FittedOrder &fitted, int64_t asWritten) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "arena as written " << asWritten << ", reordered " << fitted.ordered;
  if (fitted.apart && *fitted.apart != fitted.ordered)
    stream << ", with one dispatch a wave " << *fitted.apart;
  if (fitted.repeated > 0) {
    int64_t again = fitted.repeated - fitted.dropped;
    stream << ", with ";
    if (again > 0)
      stream << again << (again == 1 ? " dispatch" : " dispatches") << " repeated";
    if (fitted.dropped > 0)
      stream << (again > 0 ? " and " : "") << fitted.dropped << " moved";
    stream << llvm::format(" (%.1f%% more work) ", 100 * (fitted.work - 1)) << fitted.bytes;
  }
  stream << " bytes";
  return text;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult LimitMemory::fit(func::FuncOp function, Effects &effects, InPlaceProofs &proofs,
                               int64_t queues) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  Views views;
  FailureOr<CollectedOrder> collected = collect(function, *commands, effects, views, proofs);
  if (failed(collected))
    return failure();
  auto &[list, problem] = *collected;
  setWork(list, problem);
  if (failed(setRepetitions(function, list, problem, effects)) || failed(takeSpares(list, problem)))
    return failure();
  bool mayMove = holdsOnlyCommands(*commands);
  ArenaSettings settings = {queues, effort};
  auto refuse = [&] { return function.emitOpError() << "cannot be placed: "; };
  FailureOr<int64_t> asWritten = catchErrors(refuse, [&, &problem = problem] {
    OrderProblem written = problem;
    scheduleCommands(written, mayMove, /*forMemory=*/false);
    return getArenaBytes(std::move(written), settings);
  });
  if (failed(asWritten))
    return failure();
  FailureOr<ArenaFitter> fitter = catchErrors(
      refuse, [&, &problem = problem] { return ArenaFitter(problem, mayMove, settings); });
  if (failed(fitter))
    return failure();
  FailureOr<std::optional<FittedOrder>> fitted = catchErrors(refuse, [&] {
    if (curve && function->hasAttr(schedule::entryAttrName))
      setCurve(function, fitter->getCurve(reorder));
    return knee ? fitter->fitKnee() : fitter->fit(limit > 0 ? int64_t(limit) : INT64_MAX);
  });
  if (failed(fitted))
    return failure();
  if (*fitted) {
    if (mayMove)
      remarkOrder(function, (*fitted)->order);
    writeOrder(function, list, (*fitted)->problem);
    if (*asWritten > 0 && (limit > 0 || knee))
      emitRemark(function.getLoc())
          << (knee ? "checkpoint auto" : "memory limit " + std::to_string(limit)) << ", entry '"
          << function.getName() << "': " << describe(**fitted, *asWritten);
    return success();
  }
  FailureOr<FittedOrder> best = catchErrors(refuse, [&] { return fitter->findSmallest(); });
  if (failed(best))
    return failure();
  InFlightDiagnostic error =
      emitError(function.getLoc())
      << "entry '" << function.getName() << "' does not fit in " << int64_t(limit)
      << " bytes: its arena has " << *asWritten << " as written, " << best->ordered
      << " in the best order, and the smallest limit that fits is " << best->bytes;
  for (const LargeValue &large : best->largest) {
    Value value = list.allocations[large.value].value;
    error.attachNote(value.getLoc()) << "then '" << getValueName(function, value) << "' has "
                                     << large.bytes << " bytes where most are live";
  }
  return failure();
}

void LimitMemory::runOnOperation() {
  if (limit < 1 && !knee && !curve) {
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
  InPlaceProofs &proofs = getAnalysis<InPlaceProofs>();
  llvm::SetVector<StringAttr> spareKernels = getSpareKernels(getOperation());
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (failed(fit(function, effects, proofs, queues)))
      signalPassFailure();
  eraseUnusedKernels(getOperation(), spareKernels);
  // No kernel is made behind this that could lie where an erased one did.
  markAnalysesPreserved<Effects, InPlaceProofs>();
}
