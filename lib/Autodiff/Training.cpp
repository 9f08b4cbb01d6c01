//===- Training.cpp - Entries that update parameters ----------------------===//

#include "weir/Autodiff/Training.h"

#include "Entries.h"
#include "Pieces.h"
#include "Step.h"

#include "dialects/Schedule/Schedule.h"
#include "weir/Autodiff/Sharding.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

/// Returns the numbers of the arguments to train.
static FailureOr<SmallVector<int64_t>> findParameters(func::FuncOp function) {
  SmallVector<int64_t> found;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    if (!isWeight(function, index))
      continue;
    Type type = function.getArgumentTypes()[index];
    Type element = getElementTypeOrSelf(type);
    bool fits = element.isF64() || element.isF32() || element.isF16() || element.isBF16();
    if (!isa<RankedTensorType>(type) || !fits)
      return function.emitOpError() << "parameter '" << getArgumentName(function, index) << "' is "
                                    << type << "; a step updates tensors of f64, f32, f16 or bf16";
    found.push_back(index);
  }
  if (found.empty())
    return function.emitOpError("has no argument of kind param to train; add {weir.kind = "
                                "\"param\"} to the arguments that a step updates");
  auto isWide = [&](int64_t index) {
    return getElementTypeOrSelf(function.getArgumentTypes()[index]).isF64();
  };
  for (int64_t index : found)
    if (isWide(index) != isWide(found.front()))
      return function.emitOpError()
             << "parameters '" << getArgumentName(function, found.front()) << "' and '"
             << getArgumentName(function, index) << "' are "
             << function.getArgumentTypes()[found.front()] << " and "
             << function.getArgumentTypes()[index] << "; a step updates f64 alone";
  return found;
}

/// Lets an entry carry state of the model itself from step to step as F has it.
static void donateOwnState(func::FuncOp function, func::FuncOp entry) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto kind = function.getArgAttrOfType<StringAttr>(index, schedule::kindAttrName);
    Attribute donated = function.getArgAttr(index, schedule::donateAttrName);
    if (donated && kind && kind == "state")
      entry.setArgAttr(index, schedule::donateAttrName, donated);
  }
}

/// Refuses what a step of several ranks has no form for.
static LogicalResult checkSharded(func::FuncOp function, ArrayRef<int64_t> trained,
                                  const TrainOptions &options) {
  const auto *sharded =
      llvm::find_if(trained, [&](int64_t index) { return getArgumentAxes(function, index); });
  if (sharded == trained.end())
    return success();
  if (options.inPieces)
    return function.emitOpError() << "has parameter '" << getArgumentName(function, *sharded)
                                  << "', which differs by rank; --pieces and --shards put the "
                                  << "gradients of all parameters into one buffer: leave them out";
  return success(succeeded(findGrid(function)));
}

FailureOr<SmallVector<func::FuncOp>>
weir::autodiff::addTrainEntries(func::FuncOp function, ModuleOp rule, const TrainOptions &options) {
  FailureOr<int64_t> loss = findLoss(function);
  FailureOr<SmallVector<int64_t>> trained = findParameters(function);
  if (failed(loss) || failed(trained) || failed(checkSharded(function, *trained, options)))
    return failure();
  FailureOr<UpdateRule> read = UpdateRule::read(rule);
  if (failed(read))
    return failure();
  SmallVector<func::FuncOp> entries;
  auto add = [&](StringRef suffix, function_ref<LogicalResult(Step &)> build) -> LogicalResult {
    FailureOr<func::FuncOp> entry = addEntry(function, suffix, *loss, *trained, /*one=*/true);
    if (failed(entry))
      return failure();
    entries.push_back(*entry);
    donateOwnState(function, *entry);
    Step step(*entry, function.getNumResults(), *trained, options);
    return success(succeeded(build(step)) && succeeded(checkNames(function, *entry)));
  };
  bool built = succeeded(add(".step", [&](Step &step) { return step.update(*read); }));
  if (built && options.accumulates)
    built = succeeded(add(".accumulate", [](Step &step) {
      step.accumulate();
      return success();
    }));
  if (built && options.inPieces) {
    GradientLayout layout(getUpdatedTypes(function, *trained));
    built = succeeded(add(".grad", [&](Step &step) {
      step.gather(layout);
      return success();
    }));
    built =
        built && succeeded(addUpdateEntries(function, *trained, *read, layout, options, entries));
  }
  if (built)
    return entries;
  for (func::FuncOp entry : entries)
    entry->erase();
  return failure();
}
