//===- Structural.cpp - The one rule of linalg ----------------------------===//
//
// The cotangent of an operand is the op over the same iteration space whose output
// map is the operand's map: loops absent from it are summed. Its body is the op's
// own body, cloned, and the backward walk through that. So no intermediate value is
// saved, and no operand is transposed.
//
// An operand that is read at other indices than plain loops is walked element by element
// (StructuralWalk.cpp), so that one writer sums each element, in order. A contraction or an
// op with strides reads a padded cotangent instead (StructuralPad.cpp). A reduction without
// a rule is unrolled (StructuralSteps.cpp).
//
//===----------------------------------------------------------------------===//

#include "Structural.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "weir/Graph/Graph.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;
using namespace weir::autodiff;
using linalg::LinalgOp;

/// Whether each dimension of a tensor of `type` has a loop of its own or size 1.
bool Structural::isProjection(AffineMap map, Type type) {
  llvm::SmallDenseSet<AffineExpr> seen;
  return llvm::all_of(llvm::enumerate(map.getResults()), [&](auto entry) {
    auto [dim, index] = entry;
    if (isa<AffineDimExpr>(index))
      return seen.insert(index).second;
    return index == builder.getAffineConstantExpr(0) &&
           cast<RankedTensorType>(type).getDimSize(dim) == 1;
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

/// Returns the accumulators that `value`, in the body, is computed from and that change at
/// each trip of a loop.
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

/// Returns the narrow float that is compared with the accumulator, if `combined` is a
/// maximum or minimum of narrow floats computed in a wider type, or null. The wider type
/// does not change the result.
static Value getWidened(Value combined, Value accumulator) {
  auto narrowed = combined.getDefiningOp<arith::TruncFOp>();
  Operation *combine = narrowed ? narrowed.getIn().getDefiningOp() : nullptr;
  if (!isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(
          combine))
    return {};
  Value other;
  bool ofAccumulator = false;
  for (Value operand : combine->getOperands()) {
    auto wide = operand.getDefiningOp<arith::ExtFOp>();
    if (!wide || wide.getIn().getType() != combined.getType())
      return {};
    if (wide.getIn() == accumulator)
      ofAccumulator = true;
    else
      other = wide.getIn();
  }
  return ofAccumulator ? other : Value();
}

LogicalResult Structural::addSeed(unsigned number) {
  OpOperand *init = op.getDpsInitOperand(number);
  Value result = op->getResult(number);
  Seed seed = {SeedKind::Point, op.getMatchingYieldValue(init)->get(), cotangents[number], result,
               op.getMatchingIndexingMap(init)};
  if (!isProjection(seed.map, result.getType()))
    return fail() << "the map of result " << number << ", " << AffineMapAttr::get(seed.map)
                  << ", is no projected permutation";
  SmallVector<Value> own; // accumulators that the result may depend on
  if (isReduced(seed.map)) {
    Value accumulator;
    if (init->getOperandNumber() < body.getNumArguments())
      accumulator = body.getArgument(init->getOperandNumber());
    std::optional<Combiner> combiner = getCombiner(op, number);
    if (accumulator && isSum(seed.yielded, accumulator)) {
      seed.kind = SeedKind::Sum;
      own.push_back(accumulator);
    } else if (combiner &&
               isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(
                   combiner->combine)) {
      seed.kind = choosesOne() ? SeedKind::First : SeedKind::Extremum;
      seed.yielded = combiner->reduced;
    } else if (Value narrow = accumulator ? getWidened(seed.yielded, accumulator) : Value()) {
      seed.kind = choosesOne() ? SeedKind::First : SeedKind::Extremum;
      seed.yielded = narrow;
    } else if (combiner && isa<arith::MulFOp>(combiner->combine)) {
      seed.kind = SeedKind::Product;
      seed.yielded = combiner->reduced;
    } else if (takesFewSteps()) {
      isStepped = true;
      return success();
    } else {
      InFlightDiagnostic error = fail() << "the gradient flows from result " << number
                                        << ", whose elements are ";
      if (combiner)
        error << "combined by '" << combiner->combine->getName() << "'";
      else
        error << "not the accumulator plus a value";
      return error << "; sums, products, maxima and minima have a rule, and what takes at most "
                   << maxSteps << " steps";
    }
  }
  if (findAccumulators(seed.yielded) != own) {
    if (!takesFewSteps())
      return fail() << "the gradient flows from result " << number
                    << ", which is computed from an accumulator on its way";
    isStepped = true;
  }
  seeds.push_back(seed);
  return success();
}

void Structural::addTarget(Value value, AffineMap map, Value inBody) {
  for (GradientTarget &target : targets)
    if (target.value == value && target.map == map) {
      target.inBody.push_back(inBody);
      return;
    }
  targets.push_back({value, map, {inBody}});
}

/// Adds the reads of a value from outside in the body.
LogicalResult Structural::addCaptured(Value value) {
  AffineMap scalar = AffineMap::get(op.getNumLoops(), 0, op.getContext());
  if (isa<FloatType>(value.getType())) {
    addTarget(value, scalar, value);
    return success();
  }
  LogicalResult result = success();
  for (Operation *user : value.getUsers()) {
    if (!body.getParentOp()->isProperAncestor(user))
      continue;
    auto read = dyn_cast<tensor::ExtractOp>(user);
    if (!read || read->getBlock() != &body) {
      result = fail() << "the gradient flows through a tensor that '" << user->getName()
                      << "' in its body reads";
      continue;
    }
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() == 0) {
      addTarget(value, scalar, read.getResult());
      continue;
    }
    SmallVector<AffineExpr> indices;
    for (Value index : read.getIndices()) {
      APInt literal;
      if (auto loop = index.getDefiningOp<linalg::IndexOp>())
        indices.push_back(builder.getAffineDimExpr(loop.getDim()));
      else if (matchPattern(index, m_ConstantInt(&literal)))
        indices.push_back(builder.getAffineConstantExpr(literal.getSExtValue()));
      else
        indices.push_back(nullptr);
    }
    targets.push_back(
        {value, AffineMap(), {read.getResult()}, findReads(type, indices, read.getIndices())});
  }
  return result;
}

LogicalResult Structural::addTargets() {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!sums.isWanted(operand.get()) || operand.getOperandNumber() >= body.getNumArguments())
      continue;
    BlockArgument inBody = body.getArgument(operand.getOperandNumber());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (inBody.use_empty() || (op.isDpsInit(&operand) && isReduced(map)))
      continue;
    if (isProjection(map, operand.get().getType())) {
      addTarget(operand.get(), map, inBody);
      continue;
    }
    Value target = operand.get();
    SmallVector<AffineExpr> indices(map.getResults());
    if (auto padded = stripPadding(target)) {
      target = padded->first;
      for (auto [index, low] : llvm::zip_equal(indices, padded->second))
        index = index - low;
    }
    auto type = cast<RankedTensorType>(target.getType());
    targets.push_back({target, AffineMap(), {inBody}, findReads(type, indices, {})});
  }
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(body.getParent()[0], captured);
  LogicalResult result = success();
  for (Value value : captured)
    if (sums.isWanted(value) && failed(addCaptured(value)))
      result = failure();
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

/// Makes `from` an op over loops of `ranges` whose result of `type`, written by `map`, is
/// `yielded` added to `sum`, or combined with it by `combine`. `sum` may be null. Sums of
/// f16 and bf16 have a form that weir-widen-arithmetic keeps in f32.
Value Structural::finish(Body &from, Value yielded, AffineMap map, ArrayRef<int64_t> ranges,
                         Type type, Value sum, Combine combine) {
  Location loc = op.getLoc();
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<utils::IteratorType> loops;
  for (auto [loop, range] : llvm::enumerate(ranges))
    loops.push_back(!map.isFunctionOfDim(loop) && range != 1 ? utils::IteratorType::reduction
                                                             : utils::IteratorType::parallel);
  bool reduces = llvm::is_contained(loops, utils::IteratorType::reduction);

  Value accumulator = from.block.addArgument(tensor.getElementType(), loc);
  OpBuilder inside = from.getBuilder(op.getContext());
  if (sum || reduces)
    yielded = combine ? combine(inside, accumulator, yielded)
                      : arith::AddFOp::create(inside, loc, accumulator, yielded);
  linalg::YieldOp::create(inside, loc, yielded);
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(from.block)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
    else if (inner.hasTrait<OpTrait::ConstantLike>())
      inner.moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());

  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  BitVector unused(from.block.getNumArguments());
  llvm::SmallBitVector walked(ranges.size());
  auto walk = [&](AffineMap by) {
    for (unsigned loop = 0; loop < ranges.size(); ++loop)
      if (llvm::is_contained(by.getResults(), builder.getAffineDimExpr(loop)))
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
  // A linalg op has the size of a loop only from operands that the loop walks.
  for (unsigned loop = 0; loop < ranges.size(); ++loop)
    if (!walked.test(loop)) {
      inputs.push_back(tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(ranges[loop]),
                                               tensor.getElementType()));
      maps.push_back(AffineMap::get(ranges.size(), 0, builder.getAffineDimExpr(loop)));
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

/// Whether a maximum gives its gradient to one element even if several are as large, as
/// PyTorch does for maxima with indices and for pooling, which is over windows.
bool Structural::choosesOne() {
  auto readsWindows = [](AffineMap map) {
    return llvm::any_of(map.getResults(), llvm::IsaPred<AffineBinaryOpExpr>);
  };
  return op->getNumResults() > 1 || llvm::any_of(op.getIndexingMapsArray(), readsWindows);
}

/// Returns the number, as i32, of a point among those that one element of the result is
/// reduced from, in the order of the loops.
Value Structural::getPointNumber(ImplicitLocOpBuilder &inside, const Seed &seed) {
  Value place = arith::ConstantIndexOp::create(inside, 0);
  for (auto [loop, range] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (!isReduced(seed.map, loop))
      continue;
    Value size = arith::ConstantIndexOp::create(inside, range);
    place = arith::MulIOp::create(inside, place, size);
    place = arith::AddIOp::create(inside, place, linalg::IndexOp::create(inside, loop));
  }
  return arith::IndexCastOp::create(inside, inside.getI32Type(), place);
}

/// Builds the number of zero factors and the product of the other ones: the product without
/// one factor is the product divided by the factor, unless that is 0.
void Structural::buildFactors(Seed &seed) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto build = [&](bool counts) {
    Body body;
    cloneBody(body);
    ImplicitLocOpBuilder inside(op.getLoc(), body.getBuilder(op.getContext()));
    Number value(inside, body.fromOp.lookupOrDefault(seed.yielded));
    Number zero = value.constant(0), one = value.constant(1);
    Number part = counts ? one.where(arith::CmpFPredicate::OEQ, value, zero, zero)
                         : one.where(arith::CmpFPredicate::OEQ, value, zero, value);
    Value start;
    if (!counts) {
      unsigned number = cast<OpResult>(seed.result).getResultNumber();
      start = op.getDpsInitOperand(number)->get();
    }
    auto multiply = [&](OpBuilder &b, Value accumulator, Value factor) -> Value {
      return arith::MulFOp::create(b, op.getLoc(), accumulator, factor);
    };
    return finish(body, part.get(), seed.map, ranges, seed.result.getType(), start,
                  counts ? Combine() : Combine(multiply));
  };
  seed.ties = build(/*counts=*/true);
  seed.nonZero = build(/*counts=*/false);
}

/// Counts the values that are the extremum, for each element of the result, or finds the
/// number of the first one.
void Structural::buildTies(Seed &seed) {
  Body counting;
  cloneBody(counting);
  Value result = addArgument(counting, seed.result, seed.map);
  ImplicitLocOpBuilder inside(op.getLoc(), counting.getBuilder(op.getContext()));
  Value value = counting.fromOp.lookupOrDefault(seed.yielded);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (seed.kind == SeedKind::Extremum) {
    Number number(inside, value);
    Number one = number.constant(1).where(arith::CmpFPredicate::OEQ, number, Number(inside, result),
                                          number.constant(0));
    seed.ties = finish(counting, one.get(), seed.map, ranges, seed.result.getType(),
                       /*sum=*/nullptr);
    return;
  }
  // A NaN among the values is the extremum.
  Value isNaN = arith::CmpFOp::create(inside, arith::CmpFPredicate::UNO, value, value);
  Value isIt = arith::CmpFOp::create(inside, arith::CmpFPredicate::OEQ, value, result);
  isIt = arith::OrIOp::create(inside, isIt, isNaN);
  constexpr int32_t none = std::numeric_limits<int32_t>::max();
  Value other = arith::ConstantIntOp::create(inside, inside.getI32Type(), none);
  Value place = arith::SelectOp::create(inside, isIt, getPointNumber(inside, seed), other);
  auto type = RankedTensorType::get(cast<RankedTensorType>(seed.result.getType()).getShape(),
                                    builder.getI32Type());
  Value start = arith::ConstantOp::create(builder, op.getLoc(), DenseElementsAttr::get(type, none));
  seed.ties = finish(counting, place, seed.map, ranges, type, start,
                     [&](OpBuilder &b, Value accumulator, Value value) -> Value {
                       return arith::MinSIOp::create(b, op.getLoc(), accumulator, value);
                     });
}

/// Adds the cotangents of the results to those in the body `backward`.
void Structural::addSeedsTo(Body &backward, ImplicitLocOpBuilder &inside, Cotangents &inBody) {
  for (const Seed &seed : seeds) {
    Value yielded = backward.fromOp.lookupOrDefault(seed.yielded);
    if (!inBody.isWanted(yielded))
      continue;
    Number g(inside, addArgument(backward, seed.cotangent, seed.map));
    if (seed.kind == SeedKind::Extremum) {
      Number value(inside, yielded), result(inside, addArgument(backward, seed.result, seed.map));
      Number ties(inside, addArgument(backward, seed.ties, seed.map));
      // Division comes last: a row that holds a NaN has 0 / 0 here, and the NaN is kept.
      g = g.where(arith::CmpFPredicate::OEQ, value, result, g.constant(0)) / ties;
    } else if (seed.kind == SeedKind::Product) {
      Number value(inside, yielded), zeros(inside, addArgument(backward, seed.ties, seed.map));
      Number others(inside, addArgument(backward, seed.nonZero, seed.map));
      Number zero = g.constant(0), one = g.constant(1);
      // With one zero, its gradient is the product of the other factors. With two or more,
      // every product without one factor is 0.
      Number atZero = others.where(arith::CmpFPredicate::OEQ, zeros, one, zero);
      Number elsewhere = (others / value).where(arith::CmpFPredicate::OEQ, zeros, zero, zero);
      g = g * atZero.where(arith::CmpFPredicate::OEQ, value, zero, elsewhere);
    } else if (seed.kind == SeedKind::First) {
      Value first = addArgument(backward, seed.ties, seed.map);
      Value isIt = arith::CmpIOp::create(inside, arith::CmpIPredicate::eq, first,
                                         getPointNumber(inside, seed));
      g = g.build<arith::SelectOp>(isIt, g.get(), g.constant(0).get());
    }
    inBody.add(inside, op.getLoc(), yielded, g.get());
  }
}

LogicalResult Structural::buildTarget(const GradientTarget &target) {
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
  addSeedsTo(backward, inside, inBody);
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
  AffineMap map = target.map;
  SmallVector<int64_t> ranges;
  if (target.reads.empty())
    ranges = op.getStaticLoopRanges();
  else
    map = walkElements(backward, part, target, ranges);
  Value made = finish(backward, part, map, ranges,
                      isTensor ? type : RankedTensorType::get({}, type), isTensor ? sum : Value());
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
  if (succeeded(result) && isStepped)
    return buildSteps();
  if (failed(addTargets()) || failed(result))
    return failure();
  for (Seed &seed : seeds)
    if (seed.kind == SeedKind::Extremum || seed.kind == SeedKind::First)
      buildTies(seed);
    else if (seed.kind == SeedKind::Product)
      buildFactors(seed);
  // The start of a sum is one summand.
  for (Seed &seed : seeds) {
    OpOperand *init = op.getDpsInitOperand(cast<OpResult>(seed.result).getResultNumber());
    if (seed.kind == SeedKind::Sum)
      sums.add(builder, op.getLoc(), init->get(), seed.cotangent);
    else if (seed.kind != SeedKind::Point && sums.isWanted(init->get()))
      result = fail() << "the gradient flows through operand " << init->getOperandNumber()
                      << ", from which a product, maximum or minimum starts";
  }
  for (const GradientTarget &target : targets)
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
