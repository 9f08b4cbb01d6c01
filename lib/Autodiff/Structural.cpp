//===- Structural.cpp - The one rule of linalg ----------------------------===//
//
// The cotangent of an operand is the op over the same iteration space whose output
// map is the operand's map: loops absent from it are summed. Its body is the op's
// own body, cloned, and the backward walk through that. So no intermediate value is
// saved, and no operand is transposed.
//
//===----------------------------------------------------------------------===//

#include "Number.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir::autodiff;
using linalg::LinalgOp;

namespace {
/// What a result is of the values at its loops.
enum class Kind {
  Point, ///< one value for each element
  Sum,   ///< accumulator + f
  Most,  ///< the largest or smallest of accumulator and f
};

/// A result that a cotangent flows back from.
struct Seed {
  Kind kind;
  Value yielded; ///< in the op's body: the value, or with `Most` only f
  Value cotangent;
  Value result; ///< of the op
  AffineMap map;
  Value ties = nullptr; ///< with `Most`: how often the result is reached
};

/// A value that the op reads, once or more by the same map.
struct Target {
  Value value;
  AffineMap map;
  SmallVector<Value> inBody;
};

/// A tensor or scalar that a new op reads.
struct Input {
  Value value;
  AffineMap map;
};

/// Builds the rule of one op.
class Structural {
public:
  Structural(LinalgOp op, OpBuilder &builder, ArrayRef<Value> cotangents, Cotangents &sums)
      : op(op), builder(builder), cotangents(cotangents), sums(sums), body(*op.getBlock()) {}

  LogicalResult run();

private:
  LinalgOp op;
  OpBuilder &builder;
  ArrayRef<Value> cotangents;
  Cotangents &sums;
  Block &body;

  SmallVector<Value> findAccumulators(Value value);
  LogicalResult addSeed(unsigned result);
  LogicalResult addTargets();
  void buildTies(Seed &seed);
  LogicalResult buildTarget(const Target &target);

  SmallVector<Seed> seeds;
  SmallVector<Target> targets;

  bool isReduced(AffineMap map, unsigned loop) {
    return !map.isFunctionOfDim(loop) && op.getStaticLoopRanges()[loop] != 1;
  }
  bool isReduced(AffineMap map) {
    return llvm::any_of(llvm::seq(op.getNumLoops()),
                        [&](unsigned loop) { return isReduced(map, loop); });
  }
  bool isProjection(AffineMap map, Type type);
  InFlightDiagnostic fail() { return op->emitOpError() << "has no gradient rule: "; }

  /// A block that becomes the body of a new op over the loops of `op`.
  struct Body {
    Block block;
    SmallVector<Input> inputs; ///< one per argument
    IRMapping fromOp;          ///< from the body of `op`
    SmallVector<Operation *> ops;

    OpBuilder getBuilder(MLIRContext *context) {
      OpBuilder inside(context); // a block of no region can't say its context
      inside.setInsertionPointToEnd(&block);
      return inside;
    }
  };
  void cloneBody(Body &to);
  Value addArgument(Body &to, Value value, AffineMap map);
  Value finish(Body &from, Value yielded, AffineMap map, Type type, Value sum);
};
} // namespace

/// Whether each dimension of a tensor of `type` is walked by a loop of its own, or
/// has size 1.
bool Structural::isProjection(AffineMap map, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return false;
  return llvm::all_of(llvm::enumerate(map.getResults()), [&](auto entry) {
    return isa<AffineDimExpr>(entry.value()) || tensor.getDimSize(entry.index()) == 1;
  });
}

/// Whether `value` is `accumulator` plus or minus something else.
static bool isSum(Value value, Value accumulator) {
  Value sum = accumulator;
  do {
    if (!sum.hasOneUse())
      return false;
    OpOperand &use = *sum.use_begin();
    Operation *op = use.getOwner();
    bool adds = isa<arith::AddFOp>(op) || (isa<arith::SubFOp>(op) && use.getOperandNumber() == 0) ||
                (isa<math::FmaOp>(op) && use.getOperandNumber() == 2);
    if (!adds)
      return false;
    sum = op->getResult(0);
  } while (sum != value);
  return true;
}

/// Returns the accumulators among what `value`, in the body, is computed from that
/// hold something else at each trip of a loop.
SmallVector<Value> Structural::findAccumulators(Value value) {
  SetVector<Value> seen;
  seen.insert(value);
  SmallVector<Value> found;
  for (unsigned i = 0; i < seen.size(); ++i) {
    if (Operation *producer = seen[i].getDefiningOp()) {
      if (producer->getBlock() == &body)
        seen.insert_range(producer->getOperands());
      continue;
    }
    auto argument = mlir::cast<BlockArgument>(seen[i]);
    if (argument.getOwner() != &body)
      continue;
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    if (op.isDpsInit(&operand) && isReduced(op.getMatchingIndexingMap(&operand)))
      found.push_back(argument);
  }
  return found;
}

LogicalResult Structural::addSeed(unsigned number) {
  OpOperand *init = op.getDpsInitOperand(number);
  Value result = op->getResult(number);
  Seed seed = {Kind::Point, op.getMatchingYieldValue(init)->get(), cotangents[number], result,
               op.getMatchingIndexingMap(init)};
  if (!isProjection(seed.map, result.getType()))
    return fail() << "the map of result " << number << ", " << AffineMapAttr::get(seed.map)
                  << ", is no projected permutation";
  SmallVector<Value> own; // accumulators that it may be computed from
  if (isReduced(seed.map)) {
    Value accumulator;
    if (init->getOperandNumber() < body.getNumArguments())
      accumulator = body.getArgument(init->getOperandNumber());
    Operation *combine = seed.yielded.getDefiningOp();
    bool combines = combine && llvm::is_contained(combine->getOperands(), accumulator);
    if (accumulator && isSum(seed.yielded, accumulator)) {
      seed.kind = Kind::Sum;
      own.push_back(accumulator);
    } else if (combines &&
               isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(
                   combine)) {
      seed.kind = Kind::Most;
      seed.yielded = combine->getOperand(combine->getOperand(0) == accumulator ? 1 : 0);
    } else {
      InFlightDiagnostic error = fail() << "the gradient flows from result " << number
                                        << ", whose elements are ";
      if (combines)
        error << "combined by '" << combine->getName() << "'";
      else
        error << "not the accumulator plus a value";
      return error << "; sums, maxima and minima have a rule";
    }
  }
  if (findAccumulators(seed.yielded) != own)
    return fail() << "the gradient flows from result " << number
                  << ", which is computed from an accumulator on its way";
  seeds.push_back(seed);
  return success();
}

LogicalResult Structural::addTargets() {
  auto addTarget = [&](Value value, AffineMap map, Value inBody) {
    for (Target &target : targets)
      if (target.value == value && target.map == map) {
        target.inBody.push_back(inBody);
        return;
      }
    targets.push_back({value, map, {inBody}});
  };
  LogicalResult result = success();
  for (OpOperand &operand : op->getOpOperands()) {
    if (!sums.isWanted(operand.get()) || operand.getOperandNumber() >= body.getNumArguments())
      continue;
    BlockArgument inBody = body.getArgument(operand.getOperandNumber());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (inBody.use_empty() || (op.isDpsInit(&operand) && isReduced(map)))
      continue;
    if (!isProjection(map, operand.get().getType()))
      result = fail() << "the gradient flows through operand " << operand.getOperandNumber()
                      << ", whose map " << AffineMapAttr::get(map)
                      << " is no projected permutation";
    else if (Type element = getElementTypeOrSelf(operand.get());
             isReduced(map) && element.getIntOrFloatBitWidth() < 32)
      result = fail() << "the gradient by operand " << operand.getOperandNumber()
                      << " would be summed in " << element << "; sums are in f32 or wider";
    addTarget(operand.get(), map, inBody);
  }
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(body.getParent()[0], captured);
  for (Value value : captured) {
    if (!sums.isWanted(value))
      continue;
    if (isa<FloatType>(value.getType()))
      addTarget(value, AffineMap::get(op.getNumLoops(), 0, op.getContext()), value);
    else
      result = fail() << "the gradient flows through a tensor that its body reads at computed "
                         "places";
  }
  return result;
}

Value Structural::addArgument(Body &to, Value value, AffineMap map) {
  to.inputs.push_back({value, map});
  return to.block.addArgument(getElementTypeOrSelf(value), op.getLoc());
}

void Structural::cloneBody(Body &to) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value argument = addArgument(to, operand.get(), op.getMatchingIndexingMap(&operand));
    if (operand.getOperandNumber() < body.getNumArguments())
      to.fromOp.map(body.getArgument(operand.getOperandNumber()), argument);
  }
  OpBuilder inside = to.getBuilder(op.getContext());
  for (Operation &inner : body.without_terminator())
    to.ops.push_back(inside.clone(inner, to.fromOp));
}

/// Makes `from` an op that gives a tensor of `type` by `map`, `yielded` added to
/// `sum`, which is null when there is nothing to add to.
Value Structural::finish(Body &from, Value yielded, AffineMap map, Type type, Value sum) {
  Location loc = op.getLoc();
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<utils::IteratorType> loops;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    loops.push_back(isReduced(map, loop) ? utils::IteratorType::reduction
                                         : utils::IteratorType::parallel);
  bool reduces = llvm::is_contained(loops, utils::IteratorType::reduction);

  Value accumulator = from.block.addArgument(tensor.getElementType(), loc);
  OpBuilder inside = from.getBuilder(op.getContext());
  if (sum || reduces)
    yielded = arith::AddFOp::create(inside, loc, accumulator, yielded);
  linalg::YieldOp::create(inside, loc, yielded);
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(from.block)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
    else if (inner.hasTrait<OpTrait::ConstantLike>())
      inner.moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());

  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  BitVector unused(from.block.getNumArguments());
  llvm::SmallBitVector walked(op.getNumLoops());
  auto walk = [&](AffineMap by) {
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (by.isFunctionOfDim(loop) && by.isProjectedPermutation(true))
        walked.set(loop);
  };
  for (auto [index, input] : llvm::enumerate(from.inputs)) {
    if (from.block.getArgument(index).use_empty()) {
      unused.set(index);
      continue;
    }
    inputs.push_back(input.value);
    maps.push_back(input.map);
    walk(input.map);
  }
  walk(map);
  from.block.eraseArguments(unused);
  // An op knows the size of a loop from what it reads or writes by it alone.
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!walked.test(loop)) {
      inputs.push_back(tensor::EmptyOp::create(builder, loc,
                                               ArrayRef<int64_t>(op.getStaticLoopRanges()[loop]),
                                               tensor.getElementType()));
      maps.push_back(AffineMap::get(op.getNumLoops(), 0, builder.getAffineDimExpr(loop)));
      from.block.insertArgument(unsigned(inputs.size() - 1), tensor.getElementType(), loc);
    }
  maps.push_back(map);
  if (!sum && reduces)
    sum = createZeros(builder, loc, tensor);
  if (!sum)
    sum = tensor::EmptyOp::create(builder, loc, tensor.getShape(), tensor.getElementType());

  auto generic = linalg::GenericOp::create(builder, loc, tensor, inputs, sum, maps, loops);
  Block *block = builder.createBlock(&generic.getRegion());
  builder.setInsertionPointAfter(generic);
  for (BlockArgument argument : from.block.getArguments())
    argument.replaceAllUsesWith(block->addArgument(argument.getType(), loc));
  block->getOperations().splice(block->end(), from.block.getOperations());
  return generic.getResult(0);
}

/// Counts, for each element of a maximum, the values that are it.
void Structural::buildTies(Seed &seed) {
  Body counting;
  cloneBody(counting);
  Value result = addArgument(counting, seed.result, seed.map);
  ImplicitLocOpBuilder inside(op.getLoc(), counting.getBuilder(op.getContext()));
  Number value(inside, counting.fromOp.lookupOrDefault(seed.yielded));
  Number one = value.constant(1).where(arith::CmpFPredicate::OEQ, value, Number(inside, result),
                                       value.constant(0));
  seed.ties = finish(counting, one.get(), seed.map, seed.result.getType(), /*sum=*/nullptr);
}

LogicalResult Structural::buildTarget(const Target &target) {
  Body backward;
  cloneBody(backward);
  SmallVector<Value> roots;
  for (Value value : target.inBody)
    roots.push_back(backward.fromOp.lookupOrDefault(value));
  FailureOr<DenseSet<Value>> active = findActive(backward.ops, roots);
  if (failed(active))
    return failure();

  Cotangents inBody(std::move(*active));
  ImplicitLocOpBuilder inside(op.getLoc(), backward.getBuilder(op.getContext()));
  for (const Seed &seed : seeds) {
    Value yielded = backward.fromOp.lookupOrDefault(seed.yielded);
    if (!inBody.isWanted(yielded))
      continue;
    Number g(inside, addArgument(backward, seed.cotangent, seed.map));
    if (seed.kind == Kind::Most) {
      Number value(inside, yielded), result(inside, addArgument(backward, seed.result, seed.map));
      Number ties(inside, addArgument(backward, seed.ties, seed.map));
      // The division comes last: in a row that holds a NaN it is 0 / 0, and not lost.
      g = g.where(arith::CmpFPredicate::OEQ, value, result, g.constant(0)) / ties;
    }
    inBody.add(inside, op.getLoc(), yielded, g.get());
  }
  if (failed(sweep(inside, backward.ops, inBody)))
    return failure();
  Value part;
  for (Value root : roots)
    if (Value cotangent = inBody.get(root)) {
      part = part ? Value(arith::AddFOp::create(inside, part, cotangent)) : cotangent;
    }
  if (!part)
    return success();

  // A scalar's cotangent is summed in a tensor of rank 0.
  Type type = target.value.getType();
  bool isTensor = isa<RankedTensorType>(type);
  Value sum = sums.get(target.value);
  Value made = finish(backward, part, target.map, isTensor ? type : RankedTensorType::get({}, type),
                      isTensor ? sum : Value());
  if (isTensor)
    sums.set(target.value, made);
  else
    sums.add(builder, op.getLoc(), target.value,
             tensor::ExtractOp::create(builder, op.getLoc(), made));
  return success();
}

LogicalResult Structural::run() {
  LogicalResult result = success();
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    if (cotangents[number] && failed(addSeed(number)))
      result = failure();
  if (failed(addTargets()) || failed(result))
    return failure();
  for (Seed &seed : seeds)
    if (seed.kind == Kind::Most)
      buildTies(seed);
  // What a sum starts from is a summand of its own, whatever the loops.
  for (Seed &seed : seeds) {
    OpOperand *init = op.getDpsInitOperand(cast<OpResult>(seed.result).getResultNumber());
    if (seed.kind == Kind::Sum)
      sums.add(builder, op.getLoc(), init->get(), seed.cotangent);
    else if (seed.kind == Kind::Most && sums.isWanted(init->get()))
      result = fail() << "the gradient flows through operand " << init->getOperandNumber()
                      << ", from which a maximum or minimum starts";
  }
  for (const Target &target : targets)
    if (failed(buildTarget(target)))
      result = failure();
  return result;
}

namespace {
template <typename Op>
struct StructuralRule : DifferentiableOpInterface::ExternalModel<StructuralRule<Op>, Op> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents,
                         Cotangents &sums) const {
    return Structural(cast<LinalgOp>(op), builder, cotangents, sums).run();
  }
};

struct SoftmaxRule : DifferentiableOpInterface::ExternalModel<SoftmaxRule, linalg::SoftmaxOp> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents,
                         Cotangents &sums) const {
    auto softmax = cast<linalg::SoftmaxOp>(op);
    if (!sums.isWanted(softmax.getInput()))
      return success();
    Value dx = weir::norm::SoftmaxVjpOp::create(builder, op->getLoc(), op->getResult(0).getType(),
                                                cotangents.front(), op->getResult(0),
                                                softmax.getDimension());
    sums.add(builder, op->getLoc(), softmax.getInput(), dx);
    return success();
  }
};

template <typename... Ops> void attachStructural(MLIRContext *context) {
  (Ops::template attachInterface<StructuralRule<Ops>>(*context), ...);
}
} // namespace

void weir::autodiff::registerLinalgRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    using namespace linalg;
    SoftmaxOp::attachInterface<SoftmaxRule>(*context);
    attachStructural<
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
        >(context);
    context->loadDialect<weir::norm::NormDialect>();
  });
}
