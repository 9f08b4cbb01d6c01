//===- UpdateRule.cpp - Optimizers as graph text --------------------------===//
//
// A rule's function is written for one element, or for tensors of one rank and any size. It is
// built for a parameter by giving its types the parameter's shape: ops that ask for sizes fold.
//
//===----------------------------------------------------------------------===//

#include "UpdateRule.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

//===----------------------------------------------------------------------===//
// The text
//===----------------------------------------------------------------------===//

bool RuleFunction::isShared() const {
  return llvm::none_of(arguments, [](const RuleArgument &argument) {
    return argument.kind == RuleArgument::Kind::Parameter;
  });
}

static Type getParameterType(const RuleFunction &function) {
  for (auto [index, argument] : llvm::enumerate(function.arguments))
    if (argument.kind == RuleArgument::Kind::Parameter)
      return function.op.getArgumentTypes()[index];
  return {};
}

bool RuleFunction::isElementwise() const { return isShared() || getParameterType(*this).isF32(); }

StringRef RuleFunction::getResultName(unsigned result) const {
  auto name = op.getResultAttrOfType<StringAttr>(result, schedule::nameAttrName);
  return name ? name.getValue() : "";
}

bool RuleFunction::gives(StringRef name) const {
  return llvm::any_of(llvm::seq(op.getNumResults()),
                      [&](unsigned result) { return getResultName(result) == name; });
}

RankedTensorType RuleFunction::getType(unsigned argument, ArrayRef<int64_t> shape,
                                       Type element) const {
  SmallVector<int64_t> sizes;
  const RuleArgument &of = arguments[argument];
  if (of.kind == RuleArgument::Kind::State && !isElementwise())
    for (int64_t dim : of.dims)
      sizes.push_back(shape[dim]);
  else if (of.kind != RuleArgument::Kind::Scalar)
    llvm::append_range(sizes, shape);
  return RankedTensorType::get(sizes, element);
}

/// Whether `type` is a tensor of f32 of any size in all its dimensions.
static bool isOpenTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isF32() && !tensor.getEncoding() &&
         llvm::all_of(tensor.getShape(), ShapedType::isDynamic);
}

/// Reads the kind of an argument. Errors: a diagnostic.
static FailureOr<RuleArgument::Kind> readKind(func::FuncOp function, unsigned index) {
  Attribute kind = function.getArgAttr(index, schedule::kindAttrName);
  if (!kind)
    return RuleArgument::Kind::Scalar;
  auto text = dyn_cast<StringAttr>(kind);
  if (text && text == "param")
    return RuleArgument::Kind::Parameter;
  if (text && text == "gradient")
    return RuleArgument::Kind::Gradient;
  if (text && text == "state")
    return RuleArgument::Kind::State;
  return function.emitOpError() << "is an update rule whose argument " << index << " is of kind "
                                << kind << "; kinds are param, gradient and state, and a "
                                << "hyperparameter has none";
}

/// Reads the dimensions that a state has. Errors: a diagnostic.
static LogicalResult readDims(func::FuncOp function, unsigned index, Type parameter,
                              RuleArgument &argument) {
  auto tensor = dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
  auto of = dyn_cast_or_null<RankedTensorType>(parameter);
  int64_t rank = tensor ? tensor.getRank() : 0, most = of ? of.getRank() : 0;
  Attribute dims = function.getArgAttr(index, schedule::dimsAttrName);
  if (!dims) {
    for (int64_t dim = 0; dim < rank; ++dim)
      argument.dims.push_back(dim);
    if (rank == most)
      return success();
  }
  auto numbers = dyn_cast_or_null<DenseI64ArrayAttr>(dims);
  bool fits = numbers && numbers.size() == rank;
  for (int64_t last = -1; int64_t dim : fits ? numbers.asArrayRef() : ArrayRef<int64_t>()) {
    fits &= dim > last && dim < most;
    last = dim;
  }
  if (!fits)
    return function.emitOpError() << "is an update rule whose state '" << argument.name
                                  << "' of rank " << rank << " needs " << schedule::dimsAttrName
                                  << " = array<i64: ...>: as many rising numbers of "
                                  << "dimensions of the parameter, which has rank " << most;
  argument.dims.assign(numbers.asArrayRef().begin(), numbers.asArrayRef().end());
  return success();
}

static FailureOr<RuleFunction> readFunction(func::FuncOp op) {
  auto refuse = [&] { return op.emitOpError("is an update rule that "); };
  if (op.isExternal() || !op.getBody().hasOneBlock())
    return refuse() << "has no body of one block";
  RuleFunction function{op, {}};
  std::optional<unsigned> parameter, gradient;
  for (unsigned index = 0; index < op.getNumArguments(); ++index) {
    FailureOr<RuleArgument::Kind> kind = readKind(op, index);
    if (failed(kind))
      return failure();
    bool isParameter = *kind == RuleArgument::Kind::Parameter;
    if (isParameter || *kind == RuleArgument::Kind::Gradient) {
      std::optional<unsigned> &first = isParameter ? parameter : gradient;
      if (first)
        return refuse() << "has two arguments of kind " << (isParameter ? "param" : "gradient")
                        << ", " << *first << " and " << index
                        << "; a rule sees one parameter and its own gradient";
      first = index;
    }
    auto name = op.getArgAttrOfType<StringAttr>(index, schedule::nameAttrName);
    bool isNamed = *kind == RuleArgument::Kind::State || *kind == RuleArgument::Kind::Scalar;
    if (isNamed && (!name || name.empty()))
      return refuse() << "has no name for argument " << index << "; states and hyperparameters "
                      << "have " << schedule::nameAttrName << " = \"...\"";
    function.arguments.push_back({*kind, name ? name.str() : "", {}, {}});
  }
  Type type = getParameterType(function);
  if (parameter.has_value() != gradient.has_value())
    return refuse() << (parameter ? "has a parameter and no gradient"
                                  : "has a gradient and no parameter");
  if (type && (!(type.isF32() || isOpenTensor(type)) || op.getArgumentTypes()[*gradient] != type))
    return refuse() << "has a parameter of type " << type << " and a gradient of type "
                    << op.getArgumentTypes()[*gradient]
                    << "; both are f32, or one tensor of f32 with '?' as every size";
  // The new parameter, then the new states, then what is shared by name.
  SmallVector<Type> wanted;
  if (type)
    wanted.push_back(type);
  for (auto [index, argument] : llvm::enumerate(function.arguments)) {
    Type own = op.getArgumentTypes()[index];
    bool isState = argument.kind == RuleArgument::Kind::State;
    bool isScalar = argument.kind == RuleArgument::Kind::Scalar || function.isElementwise();
    if (isScalar ? !own.isF32() : !isOpenTensor(own))
      return refuse() << "has argument " << index << " of type " << own << "; it is "
                      << (isScalar ? "f32" : "a tensor of f32 with '?' as every size");
    if (!isState)
      continue;
    if (failed(readDims(op, index, type, argument)))
      return failure();
    argument.initial = op.getArgAttr(index, schedule::initialAttrName);
    wanted.push_back(own);
  }
  unsigned known = wanted.size();
  for (unsigned index = known; !type && index < op.getNumResults(); ++index) {
    auto name = op.getResultAttrOfType<StringAttr>(index, schedule::nameAttrName);
    if (!name || name.empty())
      return refuse() << "has no name for result " << index << ", which updates would read";
    wanted.push_back(Float32Type::get(op.getContext()));
  }
  if (TypeRange(wanted) != op.getResultTypes())
    return refuse() << "returns (" << op.getResultTypes() << ") where it should return ("
                    << TypeRange(wanted) << "): " << (type ? "the new parameter, " : "")
                    << "each new state" << (type ? "" : ", and what updates read by name");
  return function;
}

/// Checks that a function has ops that a rule may have. Errors: a diagnostic.
static LogicalResult checkBody(const RuleFunction &function) {
  Operation *found = nullptr;
  function.op.getBody().walk([&](Operation *op) {
    bool isElement =
        op->getNumRegions() == 0 &&
        isa<arith::ArithDialect, math::MathDialect, func::FuncDialect>(op->getDialect());
    bool isTensor = isa<linalg::LinalgDialect, tensor::TensorDialect>(op->getDialect());
    bool fits = isElement || (!function.isElementwise() && isTensor);
    if (!fits || isa<func::CallOp, func::CallIndirectOp, func::ConstantOp>(op) ||
        !isMemoryEffectFree(op))
      found = found ? found : op;
  });
  if (!found)
    return success();
  return found->emitOpError()
         << "has no place in an update rule "
         << (function.isElementwise()
                 ? "of elements, which has ops of arith and math"
                 : "of tensors, which has ops of arith, math, tensor and linalg");
}

FailureOr<UpdateRule> UpdateRule::read(ModuleOp module) {
  UpdateRule rule;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      return op.emitOpError("has no place in an update rule, which is functions");
    FailureOr<RuleFunction> read = readFunction(function);
    if (failed(read) || failed(checkBody(*read)))
      return failure();
    for (const RuleFunction &other : rule.functions)
      if (getParameterType(other) == getParameterType(*read))
        return function.emitOpError()
               << "is an update rule for what @" << other.op.getName() << " is for already";
    rule.functions.push_back(std::move(*read));
  }
  if (llvm::all_of(rule.functions, [](const RuleFunction &f) { return f.isShared(); }))
    return module.emitError("is no update rule: no function has an argument of kind param");
  return rule;
}

const RuleFunction *UpdateRule::getShared() const {
  const auto *found = llvm::find_if(functions, [](const RuleFunction &f) { return f.isShared(); });
  return found == functions.end() ? nullptr : found;
}

const RuleFunction *UpdateRule::find(int64_t rank) const {
  const RuleFunction *any = nullptr;
  for (const RuleFunction &function : functions) {
    Type type = getParameterType(function);
    auto tensor = dyn_cast_or_null<RankedTensorType>(type);
    if (tensor && tensor.getRank() == rank)
      return &function;
    if (type && !tensor)
      any = &function;
  }
  return any;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Gives f32, in types and constants below `op`, the type `element`.
static void replaceElements(Operation *op, Type element) {
  if (element.isF32())
    return;
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](Float32Type) { return element; });
  replacer.addReplacement([&](FloatAttr number) -> std::optional<Attribute> {
    if (!number.getType().isF32())
      return std::nullopt;
    return FloatAttr::get(element, number.getValueAsDouble());
  });
  replacer.addReplacement([&](DenseFPElementsAttr numbers) -> std::optional<Attribute> {
    if (!numbers.getElementType().isF32())
      return std::nullopt;
    return numbers.mapValues(element, [&](const APFloat &number) {
      APFloat wide = number;
      bool loses;
      wide.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &loses);
      return wide.bitcastToAPInt();
    });
  });
  replacer.recursivelyReplaceElementsIn(op, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

/// Builds one op over all elements: of the parameter's shape, or of one element.
static SmallVector<Value> buildElementwise(OpBuilder &builder, const RuleFunction &function,
                                           ArrayRef<Value> arguments, Type element) {
  Location loc = function.op.getLoc();
  RankedTensorType type = RankedTensorType::get({}, element);
  for (auto [argument, value] : llvm::zip_equal(function.arguments, arguments))
    if (argument.kind == RuleArgument::Kind::Parameter)
      type = cast<RankedTensorType>(value.getType());
  int64_t rank = type.getRank();
  unsigned numResults = function.op.getNumResults();
  SmallVector<AffineMap> maps;
  for (Value value : arguments)
    maps.push_back(cast<RankedTensorType>(value.getType()).getRank() == rank
                       ? builder.getMultiDimIdentityMap(rank)
                       : AffineMap::get(rank, 0, builder.getContext()));
  maps.append(numResults, builder.getMultiDimIdentityMap(rank));
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
  auto op = linalg::GenericOp::create(
      builder, loc, SmallVector<Type>(numResults, type), arguments,
      SmallVector<Value>(numResults, empty), maps,
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &inside, Location, ValueRange elements) {
        IRMapping mapping;
        Block &body = function.op.getBody().front();
        mapping.map(body.getArguments(), elements.take_front(arguments.size()));
        for (Operation &part : body.without_terminator()) {
          Operation *copy = inside.clone(part, mapping);
          replaceElements(copy, element);
        }
        SmallVector<Value> yielded;
        for (Value value : body.getTerminator()->getOperands())
          yielded.push_back(mapping.lookup(value));
        linalg::YieldOp::create(inside, loc, yielded);
      });
  return op->getResults();
}

/// Gives the function the types of `arguments`, and all its values sizes.
/// Errors: a diagnostic where one keeps none.
static LogicalResult specialize(func::FuncOp function, ArrayRef<Type> arguments,
                                ArrayRef<Type> results) {
  Block &body = function.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (auto [argument, type] : llvm::zip_equal(body.getArguments(), arguments)) {
    Type open = argument.getType();
    if (open == type)
      continue;
    argument.setType(type);
    Value inner =
        isa<RankedTensorType>(open)
            ? tensor::CastOp::create(builder, function.getLoc(), open, argument).getResult()
            : tensor::ExtractOp::create(builder, function.getLoc(), argument, ValueRange())
                  .getResult();
    argument.replaceAllUsesExcept(inner, inner.getDefiningOp());
  }
  Operation *terminator = body.getTerminator();
  builder.setInsertionPoint(terminator);
  for (auto [operand, type] : llvm::zip_equal(terminator->getOpOperands(), results))
    if (operand.get().getType() != type)
      operand.set(tensor::CastOp::create(builder, function.getLoc(), type, operand.get()));
  function.setFunctionType(builder.getFunctionType(arguments, results));

  RewritePatternSet patterns(function.getContext());
  for (StringRef name : {"arith", "tensor", "linalg"})
    function.getContext()->getLoadedDialect(name)->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : function.getContext()->getRegisteredOperations())
    if (isa<arith::ArithDialect, tensor::TensorDialect, linalg::LinalgDialect>(op.getDialect()))
      op.getCanonicalizationPatterns(patterns, function.getContext());
  (void)applyPatternsGreedily(function, std::move(patterns));
  Operation *open = nullptr;
  function.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !tensor.hasStaticShape())
        open = open ? open : op;
  });
  if (open)
    return open->emitOpError() << "has a size that does not follow from the parameter's, "
                               << arguments.front() << "; take sizes from it by tensor.dim";
  return success();
}

FailureOr<SmallVector<Value>> weir::autodiff::buildRule(OpBuilder &builder,
                                                        const RuleFunction &function,
                                                        ArrayRef<Value> arguments, Type element) {
  if (function.isElementwise())
    return buildElementwise(builder, function, arguments, element);
  OwningOpRef<func::FuncOp> copy(function.op.clone());
  replaceElements(*copy, element);
  SmallVector<Type> types(ValueRange(arguments).getTypes()), results;
  for (auto [index, argument] : llvm::enumerate(function.arguments))
    if (argument.kind == RuleArgument::Kind::Parameter)
      results.insert(results.begin(), types[index]);
    else if (argument.kind == RuleArgument::Kind::State)
      results.push_back(types[index]);
  if (failed(specialize(*copy, types, results)))
    return failure();
  IRMapping mapping;
  Block &body = copy->getBody().front();
  mapping.map(body.getArguments(), arguments);
  for (Operation &part : body.without_terminator())
    builder.clone(part, mapping);
  SmallVector<Value> updated;
  for (Value value : body.getTerminator()->getOperands())
    updated.push_back(mapping.lookup(value));
  return updated;
}
