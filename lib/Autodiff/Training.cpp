//===- Training.cpp - Entries that update parameters ----------------------===//
//
// A step is ordinary graph text: the gradients of one `autodiff.vjp`, and for each
// parameter one pointwise op that updates it and its optimizer state. Later levels fuse
// these ops with the gradients and update in place, as they do for any other op.
//
//===----------------------------------------------------------------------===//

#include "Entries.h"
#include "Rules.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

namespace {
/// Builds the new value of an element from the elements that an op reads.
using Formula = function_ref<SmallVector<Number>(ArrayRef<Number>)>;

/// A parameter, by its name.
struct Parameter {
  std::string name;
  Value value, gradient;
};

/// Adds the updates to an entry that gives gradients.
class Step {
public:
  Step(func::FuncOp entry, unsigned numOwnResults, ArrayRef<int64_t> trained);

  void build(Optimizer optimizer);

private:
  func::FuncOp entry;
  unsigned numOwnResults;
  OpBuilder builder;
  RankedTensorType scalar; ///< the type of hyperparameters
  SmallVector<Parameter> parameters;
  SmallVector<Value> updates;              ///< new results
  SmallVector<DictionaryAttr> updateAttrs; ///< of each

  Value addArgument(const Twine &name, Type type, StringRef kind);
  Value addHyperparameter(StringRef name) { return addArgument(name, scalar, "input"); }
  Value addState(const Twine &name, Type type) { return addArgument(name, type, "state"); }
  void addUpdate(Value argument, Value updated);
  SmallVector<Value> compute(ArrayRef<Value> points, ArrayRef<Value> scalars, unsigned numResults,
                             Formula formula);
  void update(ArrayRef<Value> arguments, Value gradient, ArrayRef<Value> scalars, Formula formula);
  void buildSgd();
  void buildMomentum();
  void buildAdamW();
};
} // namespace

Step::Step(func::FuncOp entry, unsigned numOwnResults, ArrayRef<int64_t> trained)
    : entry(entry), numOwnResults(numOwnResults), builder(entry.getContext()) {
  entry.getContext()->loadDialect<linalg::LinalgDialect, math::MathDialect>();
  Operation *terminator = entry.getBody().front().getTerminator();
  builder.setInsertionPoint(terminator);
  for (auto [position, index] : llvm::enumerate(trained))
    parameters.push_back({getArgumentName(entry, index), entry.getArgument(index),
                          terminator->getOperand(numOwnResults + position)});
  scalar = RankedTensorType::get({}, getElementTypeOrSelf(parameters.front().value));
}

Value Step::addArgument(const Twine &name, Type type, StringRef kind) {
  NamedAttribute attributes[] = {
      builder.getNamedAttr(schedule::kindAttrName, builder.getStringAttr(kind)),
      builder.getNamedAttr(schedule::nameAttrName, builder.getStringAttr(name))};
  unsigned index = entry.getNumArguments();
  LogicalResult added =
      entry.insertArgument(index, type, builder.getDictionaryAttr(attributes), entry.getLoc());
  assert(succeeded(added) && "functions take any argument");
  (void)added;
  return entry.getArgument(index);
}

/// Makes `updated` a result with the name and the bytes of `argument`.
void Step::addUpdate(Value argument, Value updated) {
  unsigned index = cast<BlockArgument>(argument).getArgNumber();
  entry.setArgAttr(index, schedule::donateAttrName, builder.getUnitAttr());
  updates.push_back(updated);
  updateAttrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
      schedule::nameAttrName, builder.getStringAttr(getArgumentName(entry, index)))));
}

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

/// Updates `arguments`, a parameter and its state, by a formula of these, the gradient and
/// the scalars.
void Step::update(ArrayRef<Value> arguments, Value gradient, ArrayRef<Value> scalars,
                  Formula formula) {
  SmallVector<Value> points(arguments);
  points.push_back(gradient);
  for (auto [argument, updated] :
       llvm::zip_equal(arguments, compute(points, scalars, arguments.size(), formula)))
    addUpdate(argument, updated);
}

void Step::buildSgd() {
  Value rate = addHyperparameter("learning_rate"), decay = addHyperparameter("weight_decay");
  for (const Parameter &parameter : parameters)
    update({parameter.value}, parameter.gradient, {rate, decay},
           [](ArrayRef<Number> in) -> SmallVector<Number> {
             Number p = in[0], g = in[1], rate = in[2], decay = in[3];
             return {p - rate * (g + decay * p)};
           });
}

void Step::buildMomentum() {
  Value rate = addHyperparameter("learning_rate"), momentum = addHyperparameter("momentum"),
        decay = addHyperparameter("weight_decay");
  for (const Parameter &parameter : parameters) {
    Value velocity = addState(parameter.name + ".momentum", parameter.value.getType());
    update({parameter.value, velocity}, parameter.gradient, {rate, momentum, decay},
           [](ArrayRef<Number> in) -> SmallVector<Number> {
             Number p = in[0], v = in[1], g = in[2], rate = in[3], momentum = in[4], decay = in[5];
             Number velocity = momentum * v + (g + decay * p);
             return {p - rate * velocity, velocity};
           });
  }
}

void Step::buildAdamW() {
  Value rate = addHyperparameter("learning_rate"), decay = addHyperparameter("weight_decay"),
        beta1 = addHyperparameter("beta1"), beta2 = addHyperparameter("beta2"),
        epsilon = addHyperparameter("epsilon"), step = addState("step", scalar);
  // Computed once: the same for all elements.
  SmallVector<Value> shared = compute(
      {}, {step, rate, decay, beta1, beta2}, 4, [](ArrayRef<Number> in) -> SmallVector<Number> {
        Number step = in[0] + 1.0, rate = in[1], decay = in[2];
        // 1 - beta^step; as a difference it would lose most digits for a beta near 1.
        auto getWeight = [&](Number beta) {
          return -(step * beta.apply<math::LogOp>()).apply<math::ExpM1Op>();
        };
        return {step, 1.0 - rate * decay, rate / getWeight(in[3]),
                getWeight(in[4]).apply<math::SqrtOp>()};
      });
  for (const Parameter &parameter : parameters) {
    Type type = parameter.value.getType();
    Value first = addState(parameter.name + ".first_moment", type);
    Value second = addState(parameter.name + ".second_moment", type);
    update({parameter.value, first, second}, parameter.gradient,
           {shared[1], shared[2], shared[3], beta1, beta2, epsilon},
           [](ArrayRef<Number> in) -> SmallVector<Number> {
             Number p = in[0], g = in[3], kept = in[4], rate = in[5], root = in[6], beta1 = in[7],
                    beta2 = in[8], epsilon = in[9];
             Number first = beta1 * in[1] + (1.0 - beta1) * g;
             Number second = beta2 * in[2] + (1.0 - beta2) * (g * g);
             Number scale = second.apply<math::SqrtOp>() / root + epsilon;
             return {kept * p - rate * (first / scale), first, second};
           });
  }
  addUpdate(step, shared[0]);
}

void Step::build(Optimizer optimizer) {
  switch (optimizer) {
  case Optimizer::Sgd:
    buildSgd();
    break;
  case Optimizer::Momentum:
    buildMomentum();
    break;
  case Optimizer::AdamW:
    buildAdamW();
    break;
  }
  Operation *terminator = entry.getBody().front().getTerminator();
  SmallVector<Value> results(terminator->getOperands().take_front(numOwnResults));
  SmallVector<DictionaryAttr> attributes;
  for (unsigned index = 0; index < numOwnResults; ++index)
    attributes.push_back(entry.getResultAttrDict(index));
  llvm::append_range(results, updates);
  llvm::append_range(attributes, updateAttrs);
  terminator->setOperands(results);
  entry.setFunctionType(
      builder.getFunctionType(entry.getArgumentTypes(), ValueRange(results).getTypes()));
  entry.setAllResultAttrs(attributes);
}

std::optional<Optimizer> weir::autodiff::parseOptimizer(StringRef name) {
  return llvm::StringSwitch<std::optional<Optimizer>>(name)
      .Case("sgd", Optimizer::Sgd)
      .Case("momentum", Optimizer::Momentum)
      .Case("adamw", Optimizer::AdamW)
      .Default(std::nullopt);
}

/// Returns the numbers of the arguments to train.
static FailureOr<SmallVector<int64_t>> findParameters(func::FuncOp function) {
  SmallVector<int64_t> found;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    if (!isWeight(function, index))
      continue;
    Type type = function.getArgumentTypes()[index];
    Type element = getElementTypeOrSelf(type);
    if (!isa<RankedTensorType>(type) || !(element.isF32() || element.isF64()))
      return function.emitOpError() << "parameter '" << getArgumentName(function, index) << "' is "
                                    << type << "; a step updates tensors of f32 or f64";
    found.push_back(index);
  }
  if (found.empty())
    return function.emitOpError("has no argument of kind param to train; add {weir.kind = "
                                "\"param\"} to the arguments that a step updates");
  for (int64_t index : found) {
    Type first = function.getArgumentTypes()[found.front()],
         other = function.getArgumentTypes()[index];
    if (getElementTypeOrSelf(first) != getElementTypeOrSelf(other))
      return function.emitOpError()
             << "parameters '" << getArgumentName(function, found.front()) << "' and '"
             << getArgumentName(function, index) << "' are " << first << " and " << other
             << "; a step updates those of one element type";
  }
  return found;
}

FailureOr<func::FuncOp> weir::autodiff::addTrainEntry(func::FuncOp function, Optimizer optimizer) {
  FailureOr<int64_t> loss = findLoss(function);
  FailureOr<SmallVector<int64_t>> trained = findParameters(function);
  if (failed(loss) || failed(trained))
    return failure();
  FailureOr<func::FuncOp> entry = addEntry(function, ".step", *loss, *trained, /*one=*/true);
  if (failed(entry))
    return failure();
  // State of the model itself is carried from step to step as F has it.
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto kind = function.getArgAttrOfType<StringAttr>(index, schedule::kindAttrName);
    Attribute donated = function.getArgAttr(index, schedule::donateAttrName);
    if (donated && kind && kind == "state")
      entry->setArgAttr(index, schedule::donateAttrName, donated);
  }
  Step(*entry, function.getNumResults(), *trained).build(optimizer);
  if (succeeded(checkNames(function, *entry)))
    return entry;
  entry->erase();
  return failure();
}
