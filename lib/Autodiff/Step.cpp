//===- Step.cpp - Gradients and updates of parameters ---------------------===//
//
// A step is ordinary graph text: the gradients of one `autodiff.vjp`, and for each
// parameter the ops of the optimizer's rule. Later levels fuse these ops with the
// gradients and update in place, as they do for any other op.
//
//===----------------------------------------------------------------------===//

#include "Step.h"

#include "Entries.h"
#include "Shard.h"

#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Autodiff/Number.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "weir/Autodiff/Sharding.h"

#include <map>

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

Step::Step(func::FuncOp entry, unsigned numOwnResults, ArrayRef<int64_t> trained,
           const TrainOptions &options)
    : entry(entry), numOwnResults(numOwnResults), options(options), builder(entry.getContext()) {
  entry.getContext()->loadDialect<linalg::LinalgDialect, math::MathDialect>();
  Operation *terminator = entry.getBody().front().getTerminator();
  builder.setInsertionPoint(terminator);
  for (auto [position, index] : llvm::enumerate(trained)) {
    Parameter parameter;
    parameter.name = getArgumentName(entry, index);
    parameter.value = entry.getArgument(index);
    parameter.gradient = terminator->getOperand(numOwnResults + position);
    for (const ParameterGroup &group : options.groups)
      if (parameter.group.empty() &&
          llvm::any_of(group.patterns, [&](auto &glob) { return glob.match(parameter.name); }))
        parameter.group = group.name + ".";
    parameters.push_back(std::move(parameter));
  }
  bool isWide = getElementTypeOrSelf(parameters.front().value).isF64();
  element = isWide ? Type(builder.getF64Type()) : builder.getF32Type();
  scalar = RankedTensorType::get({}, element);
}

/// Adds an argument; `initial` is its value before the first step, or null.
Value Step::addArgument(const Twine &name, Type type, StringRef kind, Attribute initial) {
  NamedAttrList attributes;
  attributes.set(schedule::kindAttrName, builder.getStringAttr(kind));
  attributes.set(schedule::nameAttrName, builder.getStringAttr(name));
  if (initial)
    attributes.set(schedule::initialAttrName, initial);
  unsigned index = entry.getNumArguments();
  LogicalResult added = entry.insertArgument(
      index, type, attributes.getDictionary(entry.getContext()), entry.getLoc());
  assert(succeeded(added) && "functions take any argument");
  (void)added;
  return entry.getArgument(index);
}

GridAxes Step::getAxes(const Parameter &parameter) {
  return getArgumentAxes(entry, cast<BlockArgument>(parameter.value).getArgNumber());
}

/// Adds state of one parameter, which may be as large. It differs by rank as that does.
Value Step::addParameterState(const Parameter &parameter, const Twine &suffix, Type type,
                              Attribute initial) {
  Value state = addState(parameter.name + suffix, type, initial);
  unsigned index = cast<BlockArgument>(state).getArgNumber();
  if (options.offloadsState)
    entry.setArgAttr(index, schedule::memoryAttrName, builder.getStringAttr("host"));
  unsigned own = cast<BlockArgument>(parameter.value).getArgNumber();
  if (Attribute sharded = getSharding(entry, own))
    entry.setArgAttr(index, shardedAttrName, sharded);
  return state;
}

Value Step::addHyperparameter(const std::string &name) {
  auto [place, isNew] = scalars.try_emplace(name);
  if (isNew)
    place->second = addArgument(name, scalar, "input");
  return place->second;
}

RankedTensorType Step::getUpdatedType(const Parameter &parameter) const {
  return cast<RankedTensorType>(parameter.value.getType()).clone(element);
}

/// Returns the prefixes of the groups that have parameters; "" is that of the others.
SmallVector<std::string> Step::listGroups() const {
  SmallVector<std::string> groups;
  for (const Parameter &parameter : parameters)
    if (!llvm::is_contained(groups, parameter.group))
      groups.push_back(parameter.group);
  return groups;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Builds one op over the elements of `points`, which have one shape, and of the `scalars`.
/// Its results have the type of the first point, or of scalars without points.
SmallVector<Value> Step::compute(ArrayRef<Value> points, ArrayRef<Value> scalars,
                                 unsigned numResults, Formula formula) {
  Location loc = entry.getLoc();
  auto type = points.empty() ? scalar : cast<RankedTensorType>(points.front().getType());
  unsigned rank = type.getRank();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  SmallVector<AffineMap> maps(points.size(), identity);
  maps.append(scalars.size(), AffineMap::get(rank, 0, builder.getContext()));
  maps.append(numResults, identity);
  SmallVector<Value> inputs(points);
  llvm::append_range(inputs, scalars);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  auto op = linalg::GenericOp::create(
      builder, loc, SmallVector<Type>(numResults, type), inputs,
      SmallVector<Value>(numResults, empty), maps,
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &inside, Location, ValueRange arguments) {
        ImplicitLocOpBuilder body(loc, inside);
        SmallVector<Number> numbers;
        for (Value argument : arguments.take_front(inputs.size()))
          numbers.emplace_back(body, argument);
        SmallVector<Value> yielded;
        for (Number number : formula(numbers))
          yielded.push_back(number.get());
        linalg::YieldOp::create(body, yielded);
      });
  return op->getResults();
}

/// Combines all elements of tensors, from 0 on: each tensor to one number, then these in order.
Value Step::reduce(ArrayRef<Value> tensors, function_ref<Number(Number, Number)> combine) {
  Location loc = entry.getLoc();
  auto zero = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(element, 0.0));
  Value result;
  for (Value tensor : tensors) {
    unsigned rank = cast<RankedTensorType>(tensor.getType()).getRank();
    AffineMap maps[] = {builder.getMultiDimIdentityMap(rank),
                        AffineMap::get(rank, 0, builder.getContext())};
    Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(), element);
    Value init = linalg::FillOp::create(builder, loc, ValueRange(zero), ValueRange(empty)).result();
    auto op = linalg::GenericOp::create(
        builder, loc, TypeRange(scalar), tensor, init, maps,
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::reduction),
        [&](OpBuilder &inside, Location, ValueRange arguments) {
          ImplicitLocOpBuilder body(loc, inside);
          Number number = combine(Number(body, arguments[1]), Number(body, arguments[0]));
          linalg::YieldOp::create(body, number.get());
        });
    Value one = op->getResult(0);
    result = !result ? one : compute({}, {result, one}, 1, [&](ArrayRef<Number> in) {
                               return SmallVector<Number>{combine(in[0], in[1])};
                             }).front();
  }
  return result;
}

/// Converts the elements of a tensor.
Value Step::convert(Value tensor, RankedTensorType type) {
  auto from = cast<RankedTensorType>(tensor.getType());
  if (from == type)
    return tensor;
  Location loc = entry.getLoc();
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(type.getRank()));
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  bool widens = from.getElementTypeBitWidth() < type.getElementTypeBitWidth();
  auto op = linalg::GenericOp::create(
      builder, loc, TypeRange(type), tensor, empty, maps,
      SmallVector<utils::IteratorType>(type.getRank(), utils::IteratorType::parallel),
      [&](OpBuilder &body, Location, ValueRange arguments) {
        Type to = type.getElementType();
        Value value = widens ? arith::ExtFOp::create(body, loc, to, arguments[0]).getResult()
                             : arith::TruncFOp::create(body, loc, to, arguments[0]).getResult();
        linalg::YieldOp::create(body, loc, value);
      });
  return op->getResult(0);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Makes the loss's cotangent a state.
void Step::addLossScale() {
  constexpr double first = 65536;
  lossScale = addState("loss_scale", scalar, getNumber(first));
  for (VjpOp vjp : entry.getOps<VjpOp>()) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(vjp);
    OpOperand &seed = vjp.getCotangentsMutable()[0];
    seed.set(convert(lossScale, cast<RankedTensorType>(seed.get().getType())));
  }
}

/// Adds two elements.
static Number addNumbers(Number a, Number b) { return a + b; }

void Step::accumulate() {
  if (options.scalesLoss)
    addLossScale();
  for (const Parameter &parameter : parameters) {
    RankedTensorType type = getUpdatedType(parameter);
    Value before = addParameterState(parameter, ".accumulated", type);
    Value gradient = convert(parameter.gradient, type);
    addUpdate(before, compute({before, gradient}, {}, 1, [](ArrayRef<Number> in) {
                        return SmallVector<Number>{addNumbers(in[0], in[1])};
                      }).front());
  }
  replaceResults();
}

/// Makes gradients the means over the accumulated microbatches, of the loss without its scale.
void Step::averageGradients() {
  SmallVector<Value> divisors;
  if (options.accumulates || takesSums)
    divisors.push_back(scalars.lookup("microbatches"));
  if (options.scalesLoss)
    divisors.push_back(lossScale);
  Value factor;
  if (!divisors.empty())
    factor = compute({}, divisors, 1, [](ArrayRef<Number> in) {
               Number product = in.size() > 1 ? in[0] * in[1] : in[0];
               return SmallVector<Number>{product.constant(1.0) / product};
             }).front();
  for (Parameter &parameter : parameters) {
    parameter.gradient = convert(parameter.gradient, getUpdatedType(parameter));
    if (!factor)
      continue;
    SmallVector<Value> points = {parameter.gradient};
    if (parameter.accumulated)
      points.insert(points.begin(), parameter.accumulated);
    parameter.gradient = compute(points, {factor}, 1, [&](ArrayRef<Number> in) {
                           Number sum = in.size() > 2 ? addNumbers(in[0], in[1]) : in[0];
                           return SmallVector<Number>{sum * in.back()};
                         }).front();
  }
}

/// Adds the numbers that `find` gives for the gradients that all ranks share, and for each rank's
/// parts, so that each gradient counts once.
Value Step::combine(function_ref<Value(ArrayRef<Value>)> find) {
  std::map<GridAxes, SmallVector<Value>> gradients; // those that all ranks share first
  for (const Parameter &parameter : parameters)
    gradients[getAxes(parameter)].push_back(parameter.gradient);
  Value total;
  for (auto &[axes, some] : gradients) {
    Value number = find(some);
    if (axes)
      number = addAlong(builder, entry.getLoc(), number, findGrid(entry)->getSymName(), axes);
    total = !total ? number : compute({}, {total, number}, 1, [](ArrayRef<Number> in) {
                                return SmallVector<Number>{addNumbers(in[0], in[1])};
                              }).front();
  }
  return total;
}

/// Finds the largest magnitude in any gradient. Of several ranks it is enough to know whether there
/// is one that is not finite: the number of ranks with such a gradient is exact, where a sum of
/// magnitudes could overflow.
void Step::findLargest() {
  auto findOwn = [&](ArrayRef<Value> gradients) {
    return reduce(gradients, [](Number result, Number value) {
      return result.apply<arith::MaximumFOp>(value.apply<math::AbsFOp>());
    });
  };
  SmallVector<Value> gradients;
  for (const Parameter &parameter : parameters)
    gradients.push_back(parameter.gradient);
  if (llvm::all_of(parameters, [&](const Parameter &each) { return getAxes(each) == 0; })) {
    largest = findOwn(gradients);
    return;
  }
  Value count = combine([&](ArrayRef<Value> some) {
    return compute({}, {findOwn(some)}, 1,
                   [](ArrayRef<Number> in) {
                     Number infinity = in[0].constant(std::numeric_limits<double>::infinity());
                     Number zero = in[0].constant(0), one = in[0].constant(1);
                     return SmallVector<Number>{
                         zero.where(arith::CmpFPredicate::OLT, in[0], infinity, one)};
                   })
        .front();
  });
  largest =
      compute({}, {count}, 1, [](ArrayRef<Number> in) {
        Number infinity = in[0].constant(std::numeric_limits<double>::infinity());
        Number zero = in[0].constant(0);
        return SmallVector<Number>{infinity.where(arith::CmpFPredicate::OGT, in[0], zero, zero)};
      }).front();
}

/// Scales gradients whose norm, over all of them, is beyond `max_norm`. The formula is that of
/// torch.nn.utils.clip_grad_norm_.
void Step::clip() {
  Value sum = combine([&](ArrayRef<Value> gradients) {
    SmallVector<Value> squares;
    for (Value gradient : gradients)
      squares.push_back(compute({gradient}, {}, 1, [](ArrayRef<Number> in) {
                          return SmallVector<Number>{in[0] * in[0]};
                        }).front());
    return reduce(squares, addNumbers);
  });
  Value factor =
      compute({}, {sum, scalars.lookup("max_norm")}, 1, [](ArrayRef<Number> in) {
        Number factor = in[1] / (in[0].apply<math::SqrtOp>() + 1e-6);
        Number one = factor.constant(1);
        // NaN stays: a gradient that is not finite is not hidden.
        return SmallVector<Number>{one.where(arith::CmpFPredicate::OGT, factor, one, factor)};
      }).front();
  for (Parameter &parameter : parameters)
    parameter.gradient = compute({parameter.gradient}, {factor}, 1, [](ArrayRef<Number> in) {
                           return SmallVector<Number>{in[0] * in[1]};
                         }).front();
}

/// Turns the gradients round: a rule goes down what it is given.
void Step::negateGradients() {
  for (Parameter &parameter : parameters)
    parameter.gradient = compute({parameter.gradient}, {}, 1, [](ArrayRef<Number> in) {
                           return SmallVector<Number>{in[0].apply<arith::NegFOp>()};
                         }).front();
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

LogicalResult Step::chooseRules(const UpdateRule &rule) {
  for (Parameter &parameter : parameters) {
    int64_t rank = cast<RankedTensorType>(parameter.value.getType()).getRank();
    parameter.rule = rule.find(rank);
    if (!parameter.rule)
      return entry.emitOpError() << "cannot update parameter '" << parameter.name << "' of type "
                                 << parameter.value.getType()
                                 << ": the update rule has no function "
                                 << "for rank " << rank << ", nor one for elements";
    if (getAxes(parameter) && !parameter.rule->isElementwise())
      return entry.emitOpError() << "cannot update parameter '" << parameter.name
                                 << "', which differs by rank: the update rule computes with all "
                                 << "elements of a parameter, and a rank has some; take a rule for "
                                 << "elements";
  }
  for (const ParameterGroup &group : options.groups)
    if (shard.empty() && !llvm::is_contained(listGroups(), group.name + "."))
      return entry.emitOpError() << "has no parameter in group '" << group.name
                                 << "': no name fits its patterns, or all are in groups before";
  return success();
}

void Step::addHyperparameters(const UpdateRule &rule) {
  const RuleFunction *shared = rule.getShared();
  auto addAll = [&](const RuleFunction &function, const std::string &group) {
    for (const RuleArgument &argument : function.arguments)
      if (argument.kind == RuleArgument::Kind::Scalar &&
          !(shared && &function != shared && shared->gives(argument.name)))
        addHyperparameter(group + argument.name);
  };
  for (const std::string &group : listGroups()) {
    if (shared)
      addAll(*shared, group);
    for (const Parameter &parameter : parameters)
      if (parameter.group == group)
        addAll(*parameter.rule, group);
  }
  if (options.accumulates || takesSums)
    addHyperparameter("microbatches");
  if (options.clipsNorm)
    addHyperparameter("max_norm");
  if (options.averages)
    addHyperparameter("ema_decay");
}

void Step::addSharedStates(const UpdateRule &rule) {
  const RuleFunction *shared = rule.getShared();
  if (!shared)
    return;
  for (const std::string &group : listGroups())
    for (const RuleArgument &argument : shared->arguments)
      if (argument.kind == RuleArgument::Kind::State)
        sharedStates[group + argument.name] =
            addState(shard + group + argument.name, scalar, argument.initial);
}

void Step::addParameterStates(Parameter &parameter) {
  RankedTensorType type = getUpdatedType(parameter);
  Attribute same = builder.getStringAttr(parameter.name);
  parameter.master = parameter.value.getType() == type
                         ? parameter.value
                         : addParameterState(parameter, ".master", type, same);
  for (auto [index, argument] : llvm::enumerate(parameter.rule->arguments))
    if (argument.kind == RuleArgument::Kind::State)
      parameter.states.push_back(addParameterState(
          parameter, "." + argument.name, parameter.rule->getType(index, type.getShape(), element),
          argument.initial));
  if (options.accumulates && !takesSums)
    parameter.accumulated = addParameterState(parameter, ".accumulated", type);
  if (options.averages)
    parameter.average = addParameterState(parameter, ".ema", type, same);
}

/// Makes `updated` the new value of `argument`. Where a gradient is not finite, it stays.
void Step::addUpdate(Value argument, Value updated) {
  if (largest)
    updated = compute({updated, argument}, {largest}, 1, [](ArrayRef<Number> in) {
                Number infinity = in[2].constant(std::numeric_limits<double>::infinity());
                return SmallVector<Number>{
                    in[0].where(arith::CmpFPredicate::OLT, in[2], infinity, in[1])};
              }).front();
  updates.emplace_back(argument, updated);
}

LogicalResult Step::buildShared(const RuleFunction &shared, const std::string &group) {
  SmallVector<Value> arguments, states;
  for (const RuleArgument &argument : shared.arguments) {
    bool isState = argument.kind == RuleArgument::Kind::State;
    const llvm::StringMap<Value> &values = isState ? sharedStates : scalars;
    arguments.push_back(values.lookup(group + argument.name));
    if (isState)
      states.push_back(arguments.back());
  }
  FailureOr<SmallVector<Value>> results = buildRule(builder, shared, arguments, element);
  if (failed(results))
    return failure();
  for (auto [state, updated] : llvm::zip(states, *results))
    sharedUpdates.emplace_back(state, updated);
  for (unsigned index = states.size(); index < results->size(); ++index)
    scalars[(group + shared.getResultName(index)).str()] = (*results)[index];
  return success();
}

LogicalResult Step::buildUpdate(const Parameter &parameter) {
  SmallVector<Value> arguments, olds = {parameter.master};
  ArrayRef<Value> states = parameter.states;
  for (const RuleArgument &argument : parameter.rule->arguments)
    switch (argument.kind) {
    case RuleArgument::Kind::Parameter:
      arguments.push_back(parameter.master);
      break;
    case RuleArgument::Kind::Gradient:
      arguments.push_back(parameter.gradient);
      break;
    case RuleArgument::Kind::State:
      arguments.push_back(states.consume_front());
      olds.push_back(arguments.back());
      break;
    case RuleArgument::Kind::Scalar:
      arguments.push_back(scalars.lookup(parameter.group + argument.name));
    }
  FailureOr<SmallVector<Value>> results = buildRule(builder, *parameter.rule, arguments, element);
  if (failed(results))
    return failure();
  for (auto [old, updated] : llvm::zip_equal(olds, *results))
    addUpdate(old, updated);
  Value master = updates[updates.size() - olds.size()].second;
  if (parameter.master != parameter.value)
    updates.emplace_back(parameter.value,
                         convert(master, cast<RankedTensorType>(parameter.value.getType())));
  resetAccumulated(parameter);
  if (parameter.average)
    updates.emplace_back(parameter.average,
                         compute({parameter.average, master}, {scalars.lookup("ema_decay")}, 1,
                                 [](ArrayRef<Number> in) {
                                   return SmallVector<Number>{in[2] * in[0] +
                                                              (1.0 - in[2]) * in[1]};
                                 })
                             .front());
  return success();
}

/// Makes what was accumulated 0 again, if anything was.
void Step::resetAccumulated(const Parameter &parameter) {
  if (!parameter.accumulated)
    return;
  Value zero = arith::ConstantOp::create(
      builder, entry.getLoc(),
      DenseElementsAttr::get(cast<ShapedType>(parameter.accumulated.getType()), getNumber(0)));
  updates.emplace_back(parameter.accumulated, zero);
}

/// Halves the scale after a skipped step, and doubles it after 2,000 others in a row: the rule of
/// torch.amp.GradScaler.
void Step::updateLossScale() {
  constexpr double patience = 2000;
  SmallVector<Value> updated = compute(
      {}, {lossScale, goodSteps, largest}, 2, [](ArrayRef<Number> in) -> SmallVector<Number> {
        Number infinity = in[0].constant(std::numeric_limits<double>::infinity());
        Number zero = in[0].constant(0), limit = in[0].constant(patience), steps = in[1] + 1.0;
        auto ifPatient = [&](Number yes, Number no) {
          return yes.where(arith::CmpFPredicate::OGE, steps, limit, no);
        };
        auto ifFinite = [&](Number yes, Number no) {
          return yes.where(arith::CmpFPredicate::OLT, in[2], infinity, no);
        };
        return {ifFinite(ifPatient(2.0 * in[0], in[0]), 0.5 * in[0]),
                ifFinite(ifPatient(zero, steps), zero)};
      });
  updates.emplace_back(lossScale, updated[0]);
  updates.emplace_back(goodSteps, updated[1]);
}

LogicalResult Step::update(const UpdateRule &rule) {
  if (failed(chooseRules(rule)))
    return failure();
  addHyperparameters(rule);
  if (options.scalesLoss) {
    addLossScale();
    goodSteps = addState("good_steps", scalar);
  }
  addSharedStates(rule);
  for (Parameter &parameter : parameters)
    addParameterStates(parameter);
  averageGradients();
  if (options.scalesLoss)
    findLargest();
  if (options.clipsNorm)
    clip();
  if (options.maximizes)
    negateGradients();
  if (const RuleFunction *shared = rule.getShared()) {
    OpBuilder::InsertionGuard guard(builder);
    if (options.offloadsState) // or updates would wait for the end of the backward pass
      builder.setInsertionPointToStart(&entry.getBody().front());
    for (const std::string &group : listGroups())
      if (failed(buildShared(*shared, group)))
        return failure();
  }
  for (const Parameter &parameter : parameters)
    if (failed(buildUpdate(parameter)))
      return failure();
  for (auto [state, updated] : sharedUpdates)
    addUpdate(state, updated);
  if (options.scalesLoss)
    updateLossScale();
  replaceResults();
  return success();
}

LogicalResult Step::updateBySums(const UpdateRule &rule, StringRef shard) {
  takesSums = true;
  this->shard = shard.str();
  return update(rule);
}

/// Puts the updates in the place of the gradients.
void Step::replaceResults() {
  Operation *terminator = entry.getBody().front().getTerminator();
  SmallVector<Value> results(terminator->getOperands().take_front(numOwnResults));
  SmallVector<DictionaryAttr> attributes;
  for (unsigned index = 0; index < numOwnResults; ++index)
    attributes.push_back(entry.getResultAttrDict(index));
  for (auto [argument, updated] : updates) {
    unsigned index = cast<BlockArgument>(argument).getArgNumber();
    entry.setArgAttr(index, schedule::donateAttrName, builder.getUnitAttr());
    results.push_back(updated);
    NamedAttrList own;
    own.set(schedule::nameAttrName, builder.getStringAttr(getArgumentName(entry, index)));
    if (Attribute sharded = getSharding(entry, index))
      own.set(shardedAttrName, sharded);
    attributes.push_back(own.getDictionary(entry.getContext()));
  }
  terminator->setOperands(results);
  entry.setFunctionType(
      builder.getFunctionType(entry.getArgumentTypes(), ValueRange(results).getTypes()));
  entry.setAllResultAttrs(attributes);
}
