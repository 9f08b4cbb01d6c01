//===- Structural.cpp - The one rule of linalg ----------------------------===//
//
// The cotangent of an operand is the op over the same iteration space whose output
// map is the operand's map: loops absent from it are summed. Its body is the op's
// own body, cloned, and the backward walk through that. So no intermediate value is
// saved, and no operand is transposed.
//
// Where an operand is read elsewhere than at loops of its own, the op walks the
// operand's elements in place of some of its loops: `d0 * 2 + d1 = x` is solved for
// d0, as a convolution's gradient wants it; what is read at a computed place, as a
// gather reads, is compared with x. Points that have no part in x add 0. So each
// element is summed by one writer, in order. Of a contraction, or with strides, the
// cotangent gets zeros there, so that the gradient is a sum of products, too. What reads a
// padded tensor gives the gradient of what was padded.
//
// A reduction that no rule is for is made again step by step, if these are few, and each
// step has the rule above.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "weir/Autodiff/Autodiff.h"
#include "weir/Graph/Graph.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;
using namespace weir::autodiff;
using linalg::LinalgOp;

/// Steps of a reduction that are made again, one by one, for their gradients.
static constexpr int64_t mostSteps = 128;

namespace {
/// What a result is of the values at its loops.
enum class Kind {
  Point,   ///< one value for each element
  Sum,     ///< accumulator + f
  Most,    ///< the largest or smallest of accumulator and f, ties shared
  First,   ///< the same, ties given to the first in the order of the loops
  Product, ///< accumulator * f
};

/// A result that a cotangent flows back from.
struct Seed {
  Kind kind;
  Value yielded; ///< in the op's body: the value, or but with `Point` and `Sum` only f
  Value cotangent;
  Value result; ///< of the op
  AffineMap map;
  /// With `Most`, how often the result is reached; with `First`, where first; with
  /// `Product`, how many factors are 0.
  Value ties = nullptr;
  Value nonZero = nullptr; ///< with `Product`, that of the other factors
};

/// Where along one dimension an element is read, by the op's loops.
struct Place {
  enum Kind {
    Unit,   ///< the one place that there is
    Own,    ///< at a loop that walks all of the dimension
    Solved, ///< at factor * loop + rest
    Matched ///< anywhere
  } kind = Unit;
  unsigned loop = 0;
  int64_t factor = 1;
  AffineExpr at = nullptr; ///< `Solved`: the rest; `Matched`: the place, or null
  Value index = nullptr;   ///< `Matched`: the place, in the op's body, where `at` is null
};

/// A value that the op reads, once or more by the same map.
struct Target {
  Value value;
  AffineMap map; ///< null with `places`
  SmallVector<Value> inBody;
  SmallVector<Place> places = {}; ///< of each dimension, where they aren't plain loops
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
  bool takesFewSteps();
  Value takeSlice(Value value, AffineMap &map, ArrayRef<int64_t> ranges);
  linalg::GenericOp createStep(int64_t step, ValueRange accumulators);
  LogicalResult buildSteps();
  bool choosesOne();
  Value getPlace(ImplicitLocOpBuilder &inside, const Seed &seed);
  LogicalResult addSeed(unsigned result);
  std::optional<std::pair<Value, SmallVector<int64_t>>> stripPadding(Value value);
  LogicalResult addTargets();
  void buildTies(Seed &seed);
  void buildFactors(Seed &seed);
  LogicalResult buildTarget(const Target &target);
  SmallVector<Place> findPlaces(RankedTensorType type, ArrayRef<AffineExpr> indices,
                                ValueRange computed);
  std::optional<Place> solve(AffineExpr index, ArrayRef<bool> taken);

  SmallVector<Seed> seeds;
  SmallVector<Target> targets;
  bool isStepped = false; ///< some result has no rule but that of each step

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
  AffineMap walkElements(Body &body, Value &yielded, const Target &target,
                         SmallVectorImpl<int64_t> &ranges);
  std::optional<unsigned> findPadded(Body &body, Value yielded, ArrayRef<bool> solved);
  bool isWorthPadding(Body &body, Value yielded, unsigned padded, const Target &target);
  bool pad(Input &input, const Target &target, ArrayRef<unsigned> loopOf,
           ArrayRef<unsigned> loopOfDim, unsigned newLoops, bool mayGrow);
  using Combine = function_ref<Value(OpBuilder &, Value accumulator, Value value)>;
  Value finish(Body &from, Value yielded, AffineMap map, ArrayRef<int64_t> ranges, Type type,
               Value sum, Combine combine = nullptr);
};
} // namespace

/// Whether each dimension of a tensor of `type` is walked by a loop of its own, or
/// has size 1.
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

/// Of a maximum or minimum of narrow floats that is written in a wider type, which changes
/// nothing: the narrow one that is compared with the accumulator; null for others.
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
    std::optional<Combiner> combiner = getCombiner(op, number);
    if (accumulator && isSum(seed.yielded, accumulator)) {
      seed.kind = Kind::Sum;
      own.push_back(accumulator);
    } else if (combiner &&
               isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(
                   combiner->combine)) {
      seed.kind = choosesOne() ? Kind::First : Kind::Most;
      seed.yielded = combiner->reduced;
    } else if (Value narrow = accumulator ? getWidened(seed.yielded, accumulator) : Value()) {
      seed.kind = choosesOne() ? Kind::First : Kind::Most;
      seed.yielded = narrow;
    } else if (combiner && isa<arith::MulFOp>(combiner->combine)) {
      seed.kind = Kind::Product;
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
                   << mostSteps << " steps";
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

/// Returns the source of a pad by a constant, and the low padding of each dimension: the
/// gradient is that of the source, and padding has none. Nothing where `value` is no such pad.
std::optional<std::pair<Value, SmallVector<int64_t>>> Structural::stripPadding(Value value) {
  auto pad = value.getDefiningOp<tensor::PadOp>();
  if (!pad || !sums.isWanted(pad.getSource()) || !pad.getConstantPaddingValue() ||
      sums.isWanted(pad.getConstantPaddingValue()) || !pad.getSourceType().hasStaticShape())
    return std::nullopt;
  std::optional<SmallVector<int64_t>> low = getConstantIntValues(pad.getMixedLowPad());
  if (!low)
    return std::nullopt;
  // An index of a dimension of size 1 is not looked at.
  for (auto [before, size, padded] :
       llvm::zip_equal(*low, pad.getSourceType().getShape(), pad.getResultType().getShape()))
    if (before < 0 || padded < size || (padded != size && size <= 1))
      return std::nullopt;
  return std::pair(pad.getSource(), *low);
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
    targets.push_back({target,
                       AffineMap(),
                       {inBody},
                       findPlaces(cast<RankedTensorType>(target.getType()), indices, {})});
  }
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(body.getParent()[0], captured);
  for (Value value : captured) {
    if (!sums.isWanted(value))
      continue;
    if (isa<FloatType>(value.getType())) {
      addTarget(value, AffineMap::get(op.getNumLoops(), 0, op.getContext()), value);
      continue;
    }
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
        addTarget(value, AffineMap::get(op.getNumLoops(), 0, op.getContext()), read.getResult());
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
          {value, AffineMap(), {read.getResult()}, findPlaces(type, indices, read.getIndices())});
    }
  }
  return result;
}

/// `index` as factor * loop + rest, for a loop that is not `taken`, if there is one: of
/// those that walk the results, the longest; else the longest.
std::optional<Place> Structural::solve(AffineExpr index, ArrayRef<bool> taken) {
  unsigned count = op.getNumLoops();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto isParallel = [&](unsigned loop) {
    return llvm::any_of(seeds, [&](const Seed &seed) { return seed.map.isFunctionOfDim(loop); });
  };
  std::optional<Place> best;
  for (unsigned loop = 0; loop < count; ++loop) {
    if (taken[loop] || !index.isFunctionOfDim(loop))
      continue;
    AffineExpr dim = builder.getAffineDimExpr(loop);
    auto put = [&](int64_t value) {
      return simplifyAffineExpr(index.replace(dim, builder.getAffineConstantExpr(value)), count, 0);
    };
    auto factor = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(put(1) - put(0), count, 0));
    if (!factor || factor.getValue() == 0 ||
        simplifyAffineExpr(index - (dim * factor.getValue() + put(0)), count, 0) !=
            builder.getAffineConstantExpr(0))
      continue;
    if (best && std::pair(isParallel(loop), ranges[loop]) <=
                    std::pair(isParallel(best->loop), ranges[best->loop]))
      continue;
    best = Place{Place::Solved, loop, factor.getValue(), put(0)};
  }
  return best;
}

SmallVector<Place> Structural::findPlaces(RankedTensorType type, ArrayRef<AffineExpr> indices,
                                          ValueRange computed) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<Place> places(indices.size());
  // A loop has one meaning: it walks a dimension, or is solved for.
  SmallVector<bool> taken(op.getNumLoops(), false);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    auto loop = dyn_cast_if_present<AffineDimExpr>(index);
    if (type.getDimSize(dim) == 1 || !loop || taken[loop.getPosition()] ||
        ranges[loop.getPosition()] != type.getDimSize(dim))
      continue;
    places[dim] = {Place::Own, loop.getPosition()};
    taken[loop.getPosition()] = true;
  }
  for (auto [dim, index] : llvm::enumerate(indices)) {
    if (type.getDimSize(dim) == 1 || places[dim].kind == Place::Own)
      continue;
    std::optional<Place> solved = index ? solve(index, taken) : std::nullopt;
    if (!solved) {
      places[dim] = {Place::Matched, 0, 1, index, index ? Value() : computed[dim]};
      continue;
    }
    places[dim] = *solved;
    // What it is solved by must stay known.
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (index.isFunctionOfDim(loop))
        taken[loop] = true;
  }
  return places;
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

bool weir::autodiff::vanishesWith(Value value, Value factor) {
  if (value == factor)
    return true;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(op))
    return vanishesWith(op->getOperand(0), factor);
  return isa_and_nonnull<arith::MulFOp>(op) &&
         (vanishesWith(op->getOperand(0), factor) || vanishesWith(op->getOperand(1), factor));
}

/// The only input that is read by loops that are solved for, if each of these is an index
/// of it, and what is yielded is 0 where it is: then it can be read in a tensor with
/// zeros around it and in between, at points that have no part in the element, too.
std::optional<unsigned> Structural::findPadded(Body &body, Value yielded, ArrayRef<bool> solved) {
  llvm::SetVector<Value> used; // for what is yielded
  used.insert(yielded);
  for (size_t next = 0; next < used.size(); ++next)
    if (Operation *op = used[next].getDefiningOp(); op && op->getBlock() == &body.block)
      op->walk([&](Operation *inner) { used.insert_range(inner->getOperands()); });
  for (auto index : body.block.getOps<linalg::IndexOp>())
    if (solved[index.getDim()] && used.contains(index))
      return std::nullopt;
  std::optional<unsigned> padded;
  for (auto [number, input] : llvm::enumerate(body.inputs)) {
    BlockArgument argument = body.block.getArgument(number);
    if (!used.contains(argument))
      continue;
    bool isSolved = false;
    for (unsigned loop = 0; loop < solved.size(); ++loop) {
      if (!solved[loop] || !input.map.isFunctionOfDim(loop))
        continue;
      isSolved = true;
      for (AffineExpr index : input.map.getResults())
        if (index.isFunctionOfDim(loop) && !isa<AffineDimExpr>(index))
          return std::nullopt;
    }
    if (!isSolved)
      continue;
    if (padded || !vanishesWith(yielded, argument) || !isa<RankedTensorType>(input.value.getType()))
      return std::nullopt;
    padded = number;
  }
  return padded;
}

/// Whether the products of the padded input and another, summed, are worth a tensor of its
/// own: they are a contraction, as some dimension of the result is only the other's, or
/// have strides, of which nothing is left once weir-drop-dilations has run.
bool Structural::isWorthPadding(Body &body, Value yielded, unsigned padded, const Target &target) {
  auto product = yielded.getDefiningOp<arith::MulFOp>();
  if (!product)
    return false;
  Value other =
      product.getLhs() == body.block.getArgument(padded) ? product.getRhs() : product.getLhs();
  auto argument = dyn_cast<BlockArgument>(other);
  if (!argument || argument.getOwner() != &body.block)
    return false;
  AffineMap map = body.inputs[argument.getArgNumber()].map;
  auto isOnlyOthers = [&](const Place &place) {
    return place.kind == Place::Own && op.getStaticLoopRanges()[place.loop] != 1 &&
           map.isFunctionOfDim(place.loop) && !body.inputs[padded].map.isFunctionOfDim(place.loop);
  };
  auto isStrided = [&](const Place &place) {
    return place.kind == Place::Solved && place.factor > 1;
  };
  auto isTap = [&](const Place &place) { // at multiples of a loop that the other has
    return place.kind != Place::Solved || isa<AffineConstantExpr>(place.at) ||
           llvm::any_of(map.getResults(), [&](AffineExpr index) {
             auto loop = dyn_cast<AffineDimExpr>(index);
             return loop && place.at.isFunctionOfDim(loop.getPosition());
           });
  };
  // With one tap every element is one product at most: there is nothing to walk.
  auto hasTaps = [&](const Place &place) {
    return place.kind == Place::Solved &&
           llvm::any_of(llvm::enumerate(op.getStaticLoopRanges()), [&](const auto &loop) {
             return loop.value() != 1 && place.at.isFunctionOfDim(loop.index());
           });
  };
  return llvm::any_of(target.places, isOnlyOthers) ||
         (llvm::any_of(target.places, isStrided) && llvm::all_of(target.places, isTap) &&
          llvm::any_of(target.places, hasTaps));
}

/// Puts zeros around what `input` reads by loops that the places of `target` are solved
/// for, and in between, if it may grow, so that it reads by the element's loops and
/// others: at distance `step` from each other lie the elements, and no index is negative.
/// Returns false, and changes nothing, where that is not so.
bool Structural::pad(Input &input, const Target &target, ArrayRef<unsigned> loopOf,
                     ArrayRef<unsigned> loopOfDim, unsigned newLoops, bool mayGrow) {
  auto type = cast<RankedTensorType>(input.value.getType());
  unsigned count = op.getNumLoops();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), shape(type.getShape());
  if (llvm::is_contained(ranges, 0))
    return false;
  SmallVector<std::optional<int64_t>> first(count, 0), last;
  for (int64_t range : ranges)
    last.push_back(range - 1);
  SmallVector<int64_t> offsets(shape.size(), 0), steps(shape.size(), 1);
  SmallVector<AffineExpr> indices, dims;
  for (unsigned loop : loopOf)
    dims.push_back(loop == ~0u ? builder.getAffineConstantExpr(0) : builder.getAffineDimExpr(loop));
  for (AffineExpr index : input.map.getResults())
    indices.push_back(index.replaceDims(dims));
  for (auto [dim, place] : llvm::enumerate(target.places)) {
    if (place.kind != Place::Solved)
      continue;
    auto position = input.map.getResultPosition(builder.getAffineDimExpr(place.loop));
    auto getBound = [&](bool isUpper) {
      return getBoundForAffineExpr(place.at, count, 0, first, last, isUpper);
    };
    std::optional<int64_t> least = getBound(false), most = getBound(true);
    if (!position || !least || !most || *least < -(int64_t(1) << 31) || *most > int64_t(1) << 31)
      return false;
    int64_t elements = cast<RankedTensorType>(target.value.getType()).getDimSize(dim);
    AffineExpr element = builder.getAffineDimExpr(loopOfDim[dim]);
    AffineExpr rest = place.at.replaceDims(dims);
    // The element's distance from the first one that there may be.
    int64_t offset = place.factor > 0 ? *most : elements - 1 - *least;
    int64_t size = elements - *least + *most, step = std::abs(place.factor);
    if (offset < 0 || offset + (shape[*position] - 1) * step >= size)
      return false;
    indices[*position] = simplifyAffineExpr(
        (place.factor > 0 ? element - rest : rest - element) + offset, newLoops, 0);
    offsets[*position] = offset;
    steps[*position] = step;
    shape[*position] = size;
  }
  if (shape != type.getShape()) {
    if (!mayGrow)
      return false;
    auto padded = RankedTensorType::get(shape, type.getElementType());
    Value zeros = createZeros(builder, op.getLoc(), padded);
    input.value = tensor::InsertSliceOp::create(
        builder, op.getLoc(), input.value, zeros, getAsIndexOpFoldResult(op.getContext(), offsets),
        getAsIndexOpFoldResult(op.getContext(), type.getShape()),
        getAsIndexOpFoldResult(op.getContext(), steps));
  }
  input.map = AffineMap::get(newLoops, 0, indices, op.getContext());
  return true;
}

/// Lets `from` walk the elements of `target` in place of the loops that its places are
/// solved for; `yielded` becomes 0 at points that have no part in the element. Returns
/// the map of the result, and the ranges of the loops there are then.
AffineMap Structural::walkElements(Body &from, Value &yielded, const Target &target,
                                   SmallVectorImpl<int64_t> &ranges) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(target.value.getType());
  unsigned count = op.getNumLoops();
  SmallVector<int64_t> before = op.getStaticLoopRanges();
  SmallVector<Operation *> indexOps;
  for (auto index : from.block.getOps<linalg::IndexOp>())
    indexOps.push_back(index);

  // The element's loops come first, then what is left of the op's.
  constexpr unsigned gone = ~0u;
  SmallVector<unsigned> loopOf(count, gone), loopOfDim(type.getRank(), gone);
  SmallVector<AffineExpr> written;
  SmallVector<bool> solved(count, false);
  for (auto [dim, place] : llvm::enumerate(target.places)) {
    if (place.kind == Place::Unit) {
      written.push_back(builder.getAffineConstantExpr(0));
      continue;
    }
    written.push_back(builder.getAffineDimExpr(ranges.size()));
    (place.kind == Place::Own ? loopOf[place.loop] : loopOfDim[dim]) = ranges.size();
    ranges.push_back(type.getDimSize(dim));
    if (place.kind == Place::Solved)
      solved[place.loop] = true;
  }
  for (unsigned loop = 0; loop < count; ++loop)
    if (loopOf[loop] == gone && !solved[loop]) {
      loopOf[loop] = ranges.size();
      ranges.push_back(before[loop]);
    }

  OpBuilder b(op.getContext());
  b.setInsertionPointToStart(&from.block);
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(b, loc, number);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  };
  Value takesPart;
  auto require = [&](Value condition) {
    takesPart = takesPart ? arith::AndIOp::create(b, loc, takesPart, condition) : condition;
  };
  SmallVector<Value> at(count); // the loops of `op`
  for (unsigned loop = 0; loop < count; ++loop)
    at[loop] = solved[loop] ? constant(0) // none of these is in what they are solved by
                            : linalg::IndexOp::create(b, loc, loopOf[loop]).getResult();
  auto expand = [&](AffineExpr expression) {
    return affine::expandAffineExpr(b, loc, expression, at, {});
  };
  std::optional<unsigned> padded = findPadded(from, yielded, solved);
  if (padded && !pad(from.inputs[*padded], target, loopOf, loopOfDim, ranges.size(),
                     isWorthPadding(from, yielded, *padded, target)))
    padded.reset();
  for (auto [dim, place] : llvm::enumerate(target.places)) {
    if (place.kind != Place::Solved || padded)
      continue;
    Value element = linalg::IndexOp::create(b, loc, loopOfDim[dim]), rest = expand(place.at);
    if (place.factor < 0)
      std::swap(element, rest);
    Value distance = arith::SubIOp::create(b, loc, element, rest);
    require(compare(arith::CmpIPredicate::sge, distance, constant(0)));
    distance = arith::MaxSIOp::create(b, loc, distance, constant(0));
    if (int64_t step = std::abs(place.factor); step != 1) {
      Value odd = arith::RemUIOp::create(b, loc, distance, constant(step));
      require(compare(arith::CmpIPredicate::eq, odd, constant(0)));
      distance = arith::DivUIOp::create(b, loc, distance, constant(step));
    }
    require(compare(arith::CmpIPredicate::ult, distance, constant(before[place.loop])));
    at[place.loop] = arith::MinUIOp::create(b, loc, distance, constant(before[place.loop] - 1));
  }
  for (auto [index, input] : llvm::enumerate(from.inputs)) {
    if (padded == index)
      continue;
    bool isSolved = false;
    for (unsigned loop = 0; loop < count; ++loop)
      isSolved |= solved[loop] && input.map.isFunctionOfDim(loop);
    BlockArgument argument = from.block.getArgument(index);
    if (isSolved && (!argument.use_empty() || argument == yielded)) {
      SmallVector<Value> indices = llvm::map_to_vector(input.map.getResults(), expand);
      Value element = tensor::ExtractOp::create(b, loc, input.value, indices);
      argument.replaceAllUsesWith(element);
      if (argument == yielded)
        yielded = element;
    }
    SmallVector<AffineExpr> dims;
    for (unsigned loop : loopOf)
      dims.push_back(loop == gone ? builder.getAffineConstantExpr(0)
                                  : builder.getAffineDimExpr(loop));
    input.map = input.map.replaceDimsAndSymbols(dims, {}, ranges.size(), 0);
  }
  for (Operation *index : indexOps) {
    index->getResult(0).replaceAllUsesWith(at[cast<linalg::IndexOp>(index).getDim()]);
    index->erase();
  }

  b.setInsertionPointToEnd(&from.block);
  for (auto [dim, place] : llvm::enumerate(target.places)) {
    if (place.kind != Place::Matched)
      continue;
    Value where = place.at ? expand(place.at) : from.fromOp.lookupOrDefault(place.index);
    Value element = linalg::IndexOp::create(b, loc, loopOfDim[dim]);
    require(compare(arith::CmpIPredicate::eq, where, element));
  }
  if (takesPart) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(yielded.getType()));
    yielded = arith::SelectOp::create(b, loc, takesPart, yielded, zero);
  }
  return AffineMap::get(ranges.size(), 0, written, op.getContext());
}

/// Makes `from` an op over loops of `ranges` that gives a tensor of `type` by `map`,
/// `yielded` added to `sum`, which is null when there is nothing to add to, or combined
/// with it in another way. Sums of f16 and bf16 are in a form that
/// weir-widen-arithmetic keeps in f32.
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
  // An op knows the size of a loop from what it reads or writes by it alone.
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

/// Whether a maximum is of one element also where several are as large: PyTorch's are,
/// where they come with a place or are of a window.
bool Structural::choosesOne() {
  return op->getNumResults() > 1 || op->getName().getStringRef().starts_with("linalg.pooling");
}

/// The number of a point among those that one element of the result is reduced from, in
/// the order of the loops, as i32.
Value Structural::getPlace(ImplicitLocOpBuilder &inside, const Seed &seed) {
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

/// A product without one of its factors is the product over the factor, unless that is 0.
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

/// Counts, for each element of a maximum, the values that are it, or finds the first.
void Structural::buildTies(Seed &seed) {
  Body counting;
  cloneBody(counting);
  Value result = addArgument(counting, seed.result, seed.map);
  ImplicitLocOpBuilder inside(op.getLoc(), counting.getBuilder(op.getContext()));
  Value value = counting.fromOp.lookupOrDefault(seed.yielded);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (seed.kind == Kind::Most) {
    Number number(inside, value);
    Number one = number.constant(1).where(arith::CmpFPredicate::OEQ, number, Number(inside, result),
                                          number.constant(0));
    seed.ties = finish(counting, one.get(), seed.map, ranges, seed.result.getType(),
                       /*sum=*/nullptr);
    return;
  }
  // A NaN is the maximum of what it is among.
  Value isNaN = arith::CmpFOp::create(inside, arith::CmpFPredicate::UNO, value, value);
  Value isIt = arith::CmpFOp::create(inside, arith::CmpFPredicate::OEQ, value, result);
  isIt = arith::OrIOp::create(inside, isIt, isNaN);
  constexpr int32_t none = std::numeric_limits<int32_t>::max();
  Value other = arith::ConstantIntOp::create(inside, inside.getI32Type(), none);
  Value place = arith::SelectOp::create(inside, isIt, getPlace(inside, seed), other);
  auto type = RankedTensorType::get(cast<RankedTensorType>(seed.result.getType()).getShape(),
                                    builder.getI32Type());
  Value start = arith::ConstantOp::create(builder, op.getLoc(), DenseElementsAttr::get(type, none));
  seed.ties = finish(counting, place, seed.map, ranges, type, start,
                     [&](OpBuilder &b, Value accumulator, Value value) -> Value {
                       return arith::MinSIOp::create(b, op.getLoc(), accumulator, value);
                     });
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
    } else if (seed.kind == Kind::Product) {
      Number value(inside, yielded), zeros(inside, addArgument(backward, seed.ties, seed.map));
      Number others(inside, addArgument(backward, seed.nonZero, seed.map));
      Number zero = g.constant(0), one = g.constant(1);
      // Of one 0 the others are all factors; of two each product holds a 0.
      Number atZero = others.where(arith::CmpFPredicate::OEQ, zeros, one, zero);
      Number elsewhere = (others / value).where(arith::CmpFPredicate::OEQ, zeros, zero, zero);
      g = g * atZero.where(arith::CmpFPredicate::OEQ, value, zero, elsewhere);
    } else if (seed.kind == Kind::First) {
      Value first = addArgument(backward, seed.ties, seed.map);
      Value isIt =
          arith::CmpIOp::create(inside, arith::CmpIPredicate::eq, first, getPlace(inside, seed));
      g = g.build<arith::SelectOp>(isIt, g.get(), g.constant(0).get());
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
  AffineMap map = target.map;
  SmallVector<int64_t> ranges;
  if (target.places.empty())
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

/// Whether the op is a reduction in few steps, each of which has a rule of its own: all
/// results are walked alike, by loops that are not reduced.
bool Structural::takesFewSteps() {
  if (body.getNumArguments() != op->getNumOperands() ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
    return false;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  int64_t steps = 1;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!map.isFunctionOfDim(loop))
      steps = std::min(steps * op.getStaticLoopRanges()[loop], mostSteps + 1);
  return steps > 0 && steps <= mostSteps &&
         llvm::all_of(llvm::seq(op.getNumDpsInits()), [&](unsigned number) {
           OpOperand *init = op.getDpsInitOperand(number);
           return op.getMatchingIndexingMap(init) == map &&
                  isProjection(map, init->get().getType());
         });
}

/// What of a tensor is read by `map`: a slice of it where loops walk a part, or one index,
/// of a dimension; `map` is that of the slice then.
Value Structural::takeSlice(Value value, AffineMap &map, ArrayRef<int64_t> ranges) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> offsets(type.getRank(), 0), sizes(type.getShape());
  SmallVector<AffineExpr> indices(map.getResults());
  for (auto [dim, index] : llvm::enumerate(indices)) {
    AffineExpr loop = index;
    int64_t offset = 0;
    if (auto fixed = dyn_cast<AffineConstantExpr>(index)) {
      offsets[dim] = fixed.getValue();
      sizes[dim] = 1;
      index = builder.getAffineConstantExpr(0);
      continue;
    }
    if (auto sum = dyn_cast<AffineBinaryOpExpr>(index);
        sum && sum.getKind() == AffineExprKind::Add && isa<AffineConstantExpr>(sum.getRHS())) {
      loop = sum.getLHS();
      offset = cast<AffineConstantExpr>(sum.getRHS()).getValue();
    }
    if (auto walked = dyn_cast<AffineDimExpr>(loop)) {
      offsets[dim] = offset;
      sizes[dim] = ranges[walked.getPosition()];
      index = loop;
    }
  }
  if (type.getShape() == ArrayRef(sizes))
    return value;
  map = AffineMap::get(map.getNumDims(), 0, indices, op.getContext());
  return tensor::ExtractSliceOp::create(
      builder, op.getLoc(), value, getAsIndexOpFoldResult(op.getContext(), offsets),
      getAsIndexOpFoldResult(op.getContext(), sizes),
      SmallVector<OpFoldResult>(offsets.size(), builder.getIndexAttr(1)));
}

/// One step of the reduction, in the order of the loops: what it makes of accumulators.
linalg::GenericOp Structural::createStep(int64_t step, ValueRange accumulators) {
  Location loc = op.getLoc();
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<AffineExpr> loops(op.getNumLoops());
  unsigned outer = 0;
  for (unsigned loop = op.getNumLoops(); loop-- > 0;) {
    if (written.isFunctionOfDim(loop))
      continue;
    loops[loop] = builder.getAffineConstantExpr(step % ranges[loop]);
    step /= ranges[loop];
  }
  SmallVector<int64_t> outerRanges;
  for (auto [loop, range] : llvm::zip_equal(loops, ranges))
    if (!loop) {
      loop = builder.getAffineDimExpr(outer++);
      outerRanges.push_back(range);
    }
  auto fix = [&](AffineMap map) { return map.replaceDimsAndSymbols(loops, {}, outer, 0); };

  SmallVector<Value> inputs, empty;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = fix(op.getMatchingIndexingMap(input));
    inputs.push_back(takeSlice(input->get(), map, outerRanges));
    maps.push_back(map);
  }
  llvm::append_range(inputs, accumulators);
  maps.append(2 * accumulators.size(), fix(written)); // as inputs, and as results
  for (Value accumulator : accumulators) {
    auto type = cast<RankedTensorType>(accumulator.getType());
    empty.push_back(tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType()));
  }
  SmallVector<utils::IteratorType> kinds(outer, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      builder, loc, TypeRange(ValueRange(empty)), inputs, empty, maps, kinds,
      [&](OpBuilder &b, Location, ValueRange arguments) {
        IRMapping mapping;
        mapping.map(body.getArguments(), arguments.take_front(body.getNumArguments()));
        for (Operation &inner : body) {
          auto index = dyn_cast<linalg::IndexOp>(inner);
          if (!index) {
            b.clone(inner, mapping);
            continue;
          }
          AffineExpr loop = loops[index.getDim()];
          auto fixed = dyn_cast<AffineConstantExpr>(loop);
          mapping.map(index.getResult(),
                      fixed
                          ? arith::ConstantIndexOp::create(b, loc, fixed.getValue()).getResult()
                          : linalg::IndexOp::create(b, loc, cast<AffineDimExpr>(loop).getPosition())
                                .getResult());
        }
      });
}

/// Makes all steps again, then goes back through them.
LogicalResult Structural::buildSteps() {
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  int64_t count = 1;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!written.isFunctionOfDim(loop))
      count *= op.getStaticLoopRanges()[loop];
  SmallVector<linalg::GenericOp> steps;
  SmallVector<Value> accumulators(op.getDpsInits());
  for (int64_t step = 0; step < count; ++step) {
    steps.push_back(createStep(step, accumulators));
    accumulators.assign(steps.back()->result_begin(), steps.back()->result_end());
  }
  llvm::SetVector<Value> outside; // that the gradient flows back to
  getUsedValuesDefinedAbove(op->getRegions(), outside);
  outside.insert_range(op->getOperands());
  outside.remove_if([&](Value value) { return !sums.isWanted(value); });
  SmallVector<Value> after(cotangents);
  for (int64_t step = count; step-- > 0;) {
    OperandRange before = steps[step].getInputs().take_back(op->getNumResults());
    DenseSet<Value> wanted(outside.begin(), outside.end());
    for (Value accumulator : before)
      if (step > 0 && isa<FloatType>(getElementTypeOrSelf(accumulator)))
        wanted.insert(accumulator);
    SmallVector<tensor::ExtractSliceOp> slices;
    for (auto [input, whole] : llvm::zip(steps[step].getInputs(), op.getDpsInputs()))
      if (auto slice = input.getDefiningOp<tensor::ExtractSliceOp>();
          slice && input != whole && sums.isWanted(whole) && wanted.insert(slice).second)
        slices.push_back(slice);
    Cotangents ofStep(std::move(wanted));
    if (failed(Structural(steps[step], builder, after, ofStep).run()))
      return failure();
    for (tensor::ExtractSliceOp slice : slices)
      if (Value part = ofStep.get(slice))
        if (failed(cast<DifferentiableOpInterface>(slice.getOperation())
                       .buildVjp(builder, part, sums)))
          return failure();
    for (Value value : outside)
      if (Value part = ofStep.get(value))
        sums.add(builder, op.getLoc(), value, part);
    after = llvm::map_to_vector(before, [&](Value value) { return ofStep.get(value); });
    if (llvm::none_of(after, [](Value cotangent) { return cotangent != nullptr; }))
      break;
  }
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
    if (seed.kind == Kind::Most || seed.kind == Kind::First)
      buildTies(seed);
    else if (seed.kind == Kind::Product)
      buildFactors(seed);
  // What a sum starts from is a summand of its own, whatever the loops.
  for (Seed &seed : seeds) {
    OpOperand *init = op.getDpsInitOperand(cast<OpResult>(seed.result).getResultNumber());
    if (seed.kind == Kind::Sum)
      sums.add(builder, op.getLoc(), init->get(), seed.cotangent);
    else if (seed.kind != Kind::Point && sums.isWanted(init->get()))
      result = fail() << "the gradient flows through operand " << init->getOperandNumber()
                      << ", from which a product, maximum or minimum starts";
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
