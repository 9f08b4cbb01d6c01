//===- DropDilations.cpp - Convolutions of tensors with zeros in between --===//
//
// A transposed convolution is written as the convolution of a tensor that has zeros
// between its elements, and so is the gradient of a convolution with strides:
//
//     y[h] += d[h - k] * w[k]     d[s * o] = x[o], 0 elsewhere
//
// Only one tap in s meets an element: for h = s * q + r these taps are k = s * m + r.
// So the same sum runs over m and does not need d:
//
//     t[q, r] += x[q - m] * w[s * m + r]
//
// t has the elements of y in the same order. It is a contraction, so that one kernel makes
// all of it. Tensors that q - m or s * m + r would leave get zeros around them.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "weir/Autodiff/Autodiff.h"
#include "weir/Graph/Graph.h"

#include <numeric>

namespace weir {
#define GEN_PASS_DEF_DROPDILATIONSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;
using linalg::LinalgOp;

namespace {
struct DropDilations : weir::impl::DropDilationsPassBase<DropDilations> {
  using DropDilationsPassBase::DropDilationsPassBase;

  void runOnOperation() override;
};

/// A tensor of zeros with another one in it: element o of `source`, reshaped to `type`, is
/// element `offset + stride * o` in each dimension.
struct Dilated {
  Value source;
  RankedTensorType type;
  SmallVector<int64_t> offsets, strides;
};

/// One dimension of the result, where tap k of element o adds to
///
///     h = stride * o + dilation * k + start
///
/// The new op walks h + lead = stride * q + first + step * r, for the residues r
/// that taps reach, and taps = residues * m + r - before, at distance `spacing`.
struct Walk {
  unsigned dim;                ///< of the dilated tensor
  unsigned loop;               ///< of `h`
  std::optional<unsigned> tap; ///< the loop of `k`
  bool isReversed = false;     ///< whether the op counts the taps from the end
  int64_t size, elements, taps = 1;
  int64_t stride, dilation = 1, start;

  int64_t lead = 0, quotients = 1;
  int64_t residues = 1, first = 0, step = 1;
  int64_t steps = 1;   ///< of m
  int64_t spacing = 1; ///< of taps among the steps and residues, or of steps
  int64_t before = 0;  ///< places before the first tap
  int64_t shift = 0;   ///< the element that step 0 meets is q - shift

  /// Whether taps have different residues. Otherwise each m is one tap.
  bool splits() const { return stride != step; }
  /// Returns the number of places of taps: all residues of all steps.
  int64_t getPlaces() const { return splits() ? residues * steps : taps; }
  int64_t getReach() const { return (steps - 1) * (splits() ? 1 : spacing); }

  void choose();
  AffineExpr quotient, residue, m; ///< loops of the new op; null where there is none
};

/// Rewrites one op that reads a dilated tensor.
class Rewrite {
public:
  Rewrite(LinalgOp op, OpOperand *read, Dilated dilated)
      : op(op), read(read), dilated(std::move(dilated)), ranges(op.getStaticLoopRanges()),
        builder(op), loc(op.getLoc()) {}

  /// Whether the op has the form above.
  bool match();
  /// Builds the op that replaces this one, and returns its result.
  Value build();

private:
  LinalgOp op;
  OpOperand *read;
  Dilated dilated;
  SmallVector<int64_t> ranges;
  OpBuilder builder;
  Location loc;
  SmallVector<Walk> walks;
  SmallVector<AffineExpr> loops; ///< of the new op, for each of the old; null for those in `walks`
  unsigned newLoops = 0;
  SmallVector<utils::IteratorType> kinds;

  std::optional<Walk> findWalk(unsigned dim, AffineExpr index);
  bool hasFactorOf(unsigned tap);
  Walk *getWalkOf(AffineExpr result);
  Walk *getWalkOfTap(AffineExpr index);
  void createLoops();
  AffineExpr add(utils::IteratorType kind);
  Value spread(Value source, ArrayRef<int64_t> shape, ArrayRef<int64_t> offsets,
               ArrayRef<int64_t> strides);
  Value reverse(Value tensor, ArrayRef<bool> dims);
  std::pair<Value, AffineMap> readSource();
  std::pair<Value, AffineMap> readFactor(OpOperand &operand);
  AffineMap getMap(ArrayRef<AffineExpr> results) {
    return AffineMap::get(newLoops, 0, results, op.getContext());
  }
};
} // namespace

static RankedTensorType getShaped(Value tensor, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getElementTypeOrSelf(tensor));
}

static bool isZero(Value tensor) {
  auto splat = dyn_cast_if_present<FloatAttr>(getSplat(tensor));
  return splat && splat.getValue().isZero();
}

/// Follows `value` to a tensor that was inserted into zeros.
static std::optional<Dilated> findDilated(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (!op || !type || !type.hasStaticShape())
    return std::nullopt;
  if (auto insertion = dyn_cast<tensor::InsertSliceOp>(op)) {
    auto offsets = getConstantIntValues(insertion.getMixedOffsets());
    auto strides = getConstantIntValues(insertion.getMixedStrides());
    if (!offsets || !strides || !isZero(insertion.getDest()) ||
        insertion.getSourceType().getRank() != type.getRank())
      return std::nullopt;
    return Dilated{insertion.getSource(), insertion.getSourceType(), *offsets, *strides};
  }
  if (!isa<tensor::PadOp, tensor::ExtractSliceOp>(op) && !isReshape(op))
    return std::nullopt;
  std::optional<Dilated> dilated = findDilated(op->getOperand(0));
  if (!dilated)
    return std::nullopt;
  auto move = [&](std::optional<SmallVector<int64_t>> by, int64_t sign) {
    if (!by || by->size() != dilated->offsets.size())
      return false;
    for (auto [offset, moved] : llvm::zip_equal(dilated->offsets, *by))
      offset += sign * moved;
    return true;
  };
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    Value padding = pad.getConstantPaddingValue();
    if (!padding || !matchPattern(padding, m_AnyZeroFloat()) ||
        !move(getConstantIntValues(pad.getMixedLowPad()), 1))
      return std::nullopt;
    return dilated;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (!slice.hasUnitStride() || slice.getType().getRank() != slice.getSourceType().getRank() ||
        !move(getConstantIntValues(slice.getMixedOffsets()), -1))
      return std::nullopt;
    return dilated;
  }
  // Reshapes of dimensions that the source fills are its own.
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  bool expands = isa<tensor::ExpandShapeOp>(op);
  SmallVector<ReassociationIndices> groups =
      expands ? cast<tensor::ExpandShapeOp>(op).getReassociationIndices()
              : cast<tensor::CollapseShapeOp>(op).getReassociationIndices();
  Dilated reshaped = {dilated->source, {}, {}, {}};
  SmallVector<int64_t> shape;
  for (auto [number, group] : llvm::enumerate(groups)) {
    ReassociationIndices before = expands ? ReassociationIndices{int64_t(number)} : group;
    ReassociationIndices after = expands ? group : ReassociationIndices{int64_t(number)};
    if (group.size() == 1) {
      shape.push_back(dilated->type.getDimSize(before.front()));
      reshaped.offsets.push_back(dilated->offsets[before.front()]);
      reshaped.strides.push_back(dilated->strides[before.front()]);
      continue;
    }
    for (int64_t dim : before)
      if (dilated->offsets[dim] != 0 || dilated->type.getDimSize(dim) != from.getDimSize(dim))
        return std::nullopt;
    for (int64_t dim : after) {
      shape.push_back(type.getDimSize(dim));
      reshaped.offsets.push_back(0);
      reshaped.strides.push_back(1);
    }
  }
  reshaped.type = RankedTensorType::get(shape, from.getElementType());
  return reshaped;
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

/// Chooses the rewrite with the min number of products, then one without slices.
void Walk::choose() {
  std::optional<std::tuple<int64_t, bool, int64_t>> min;
  step = std::gcd(stride, dilation);
  spacing = dilation / step;
  int64_t count = stride / step; // residues that there are
  int64_t extent = splits() ? spacing * (taps - 1) + 1 : 1;
  Walk best = *this;
  for (lead = 0; lead < stride; ++lead) {
    int64_t rest = llvm::mod(start + lead, stride);
    shift = (start + lead - rest) / stride;
    quotients = llvm::divideCeil(size + lead, stride);
    first = rest % step;
    before = rest / step;
    residues = count;
    if (!splits()) {
      steps = taps;
    } else if (before + extent <= count) { // each of some residues has one tap
      first = rest;
      before = 0;
      residues = extent;
      steps = 1;
    } else {
      steps = llvm::divideCeil(before + extent, count);
    }
    std::tuple<int64_t, bool, int64_t> cost = {quotients * residues * steps,
                                               lead != 0 || quotients * stride != size, lead};
    if (!min || cost < *min) {
      min = cost;
      best = *this;
    }
  }
  *this = best;
}

/// Returns the walk of a dimension that is read at `index`: a loop of the result, plus or
/// minus multiples of a loop that is summed.
std::optional<Walk> Rewrite::findWalk(unsigned dim, AffineExpr index) {
  SmallVector<int64_t> factors; // of each loop, then what is added
  if (failed(getFlattenedAffineExpr(index, op.getNumLoops(), 0, &factors)) ||
      factors.size() != op.getNumLoops() + 1)
    return std::nullopt;
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  std::optional<unsigned> loop, tap;
  for (unsigned number = 0; number < op.getNumLoops(); ++number) {
    if (factors[number] == 0 || ranges[number] == 1)
      continue;
    std::optional<unsigned> &found = written.isFunctionOfDim(number) ? loop : tap;
    if (found)
      return std::nullopt;
    found = number;
  }
  if (!loop || factors[*loop] != 1 || !written.getResultPosition(builder.getAffineDimExpr(*loop)))
    return std::nullopt;
  // Nobody else has the loop, and nobody else of this tensor the tap.
  for (OpOperand &operand : op->getOpOperands())
    for (auto [number, other] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
      if (&operand == read && number == dim)
        continue;
      if (other.isFunctionOfDim(*loop) && !op.isDpsInit(&operand))
        return std::nullopt;
      if (tap && other.isFunctionOfDim(*tap) && (&operand == read || !isa<AffineDimExpr>(other)))
        return std::nullopt;
    }
  Walk walk;
  walk.dim = dim;
  walk.loop = *loop;
  walk.size = ranges[*loop];
  walk.elements = dilated.type.getDimSize(dim);
  walk.stride = dilated.strides[dim];
  walk.start = dilated.offsets[dim] - factors.back();
  if (tap) {
    if (!hasFactorOf(*tap))
      return std::nullopt;
    walk.tap = tap;
    walk.taps = ranges[*tap];
    walk.isReversed = factors[*tap] > 0;
    walk.dilation = std::abs(factors[*tap]);
    if (walk.isReversed)
      walk.start -= walk.dilation * (walk.taps - 1);
  }
  walk.choose();
  return walk;
}

/// Returns the summand, in the body, of an op that sums, or null for other ops.
static Value getSummand(LinalgOp op) {
  Value accumulator = op.getBlock()->getArguments().back();
  auto sum = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum || !accumulator.hasOneUse() || *accumulator.user_begin() != sum)
    return {};
  return sum.getLhs() == accumulator ? sum.getRhs() : sum.getLhs();
}

/// Whether the summand is 0 where an operand that has the tap is 0.
bool Rewrite::hasFactorOf(unsigned tap) {
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
    return operand != read && op.getMatchingIndexingMap(operand).isFunctionOfDim(tap) &&
           autodiff::vanishesWith(getSummand(op), op.getMatchingBlockArgument(operand));
  });
}

bool Rewrite::match() {
  if (op->getNumResults() != 1 || !op.hasPureTensorSemantics() || op.hasIndexSemantics() ||
      llvm::any_of(ranges, [](int64_t range) { return range <= 0; }) ||
      op.getBlock()->getNumArguments() != op->getNumOperands() ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
    return false;
  Value summand = getSummand(op);
  if (!summand ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0))
           .isProjectedPermutation(/*allowZeroInResults=*/true) ||
      !autodiff::vanishesWith(summand, op.getMatchingBlockArgument(read)))
    return false;
  AffineMap map = op.getMatchingIndexingMap(read);
  for (unsigned dim = 0; dim < map.getNumResults(); ++dim) {
    if (dilated.strides[dim] == 1 || dilated.type.getDimSize(dim) == 1)
      continue;
    std::optional<Walk> walk = findWalk(dim, map.getResult(dim));
    if (!walk)
      return false;
    walks.push_back(*walk);
  }
  return !walks.empty();
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

AffineExpr Rewrite::add(utils::IteratorType kind) {
  kinds.push_back(kind);
  return builder.getAffineDimExpr(newLoops++);
}

/// Replaces each loop by the loops that walk it.
void Rewrite::createLoops() {
  auto isFree = [&](unsigned loop) {
    for (Walk &walk : walks) {
      if (loop == walk.loop) {
        walk.quotient = add(utils::IteratorType::parallel);
        walk.residue = walk.residues > 1 ? add(utils::IteratorType::parallel)
                                         : builder.getAffineConstantExpr(0);
        return false;
      }
      if (walk.tap == loop) {
        walk.m = walk.steps > 1 ? add(utils::IteratorType::reduction) : AffineExpr();
        return false;
      }
    }
    return true;
  };
  SmallVector<utils::IteratorType> before = op.getIteratorTypesArray();
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    loops.push_back(isFree(loop) ? add(before[loop]) : builder.getAffineConstantExpr(0));
  for (Walk &walk : walks)
    if (!walk.m)
      walk.m = builder.getAffineConstantExpr(0);
}

/// Returns a tensor of zeros with `source` in it, or `source` if that fills the tensor.
Value Rewrite::spread(Value source, ArrayRef<int64_t> shape, ArrayRef<int64_t> offsets,
                      ArrayRef<int64_t> strides) {
  auto type = cast<RankedTensorType>(source.getType());
  if (type.getShape() == shape)
    return source;
  auto whole = getShaped(source, shape);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  Value zeros = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  return tensor::InsertSliceOp::create(
      builder, loc, whole, source, zeros, ValueRange(), ValueRange(), ValueRange(),
      builder.getDenseI64ArrayAttr(offsets), builder.getDenseI64ArrayAttr(type.getShape()),
      builder.getDenseI64ArrayAttr(strides));
}

/// Returns `tensor` with some dimensions reversed. A reversal of a reversal is dropped.
Value Rewrite::reverse(Value tensor, ArrayRef<bool> dims) {
  if (!llvm::is_contained(dims, true))
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<AffineExpr> indices;
  for (auto [dim, isReversed] : llvm::enumerate(dims)) {
    AffineExpr loop = builder.getAffineDimExpr(dim);
    indices.push_back(isReversed ? type.getDimSize(dim) - 1 - loop : loop);
  }
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap map = AffineMap::get(type.getRank(), 0, indices, op.getContext());
  if (auto moved = tensor.getDefiningOp<linalg::GenericOp>();
      moved && llvm::hasSingleElement(*moved.getBody()) && moved.getNumDpsInputs() == 1 &&
      moved.getNumResults() == 1 && moved.getIndexingMapsArray().back() == identity &&
      moved.getBody()->getTerminator()->getOperand(0) == moved.getBody()->getArgument(0) &&
      isa<RankedTensorType>(moved.getInputs().front().getType())) {
    tensor = moved.getInputs().front();
    map = simplifyAffineMap(moved.getIndexingMapsArray().front().compose(map));
    if (map == identity && tensor.getType() == type)
      return tensor;
  }
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  AffineMap maps[] = {map, identity};
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, type, tensor, empty, maps, parallel,
                                   [](OpBuilder &b, Location loc, ValueRange values) {
                                     linalg::YieldOp::create(b, loc, values.front());
                                   })
      .getResult(0);
}

/// Returns the dilated tensor's source and its map in the new op: with zeros around it, where
/// q - m leaves it and where zeros were before.
std::pair<Value, AffineMap> Rewrite::readSource() {
  Value source = createReshapes(builder, loc, dilated.type, dilated.source);
  auto whole = cast<RankedTensorType>(read->get().getType());
  SmallVector<int64_t> shape, offsets;
  SmallVector<AffineExpr> indices;
  AffineMap map = op.getMatchingIndexingMap(read);
  for (unsigned dim = 0; dim < map.getNumResults(); ++dim) {
    int64_t elements = dilated.type.getDimSize(dim), begin = -dilated.offsets[dim];
    int64_t end = whole.getDimSize(dim) - dilated.offsets[dim];
    AffineExpr index = map.getResult(dim).replaceDims(loops) + begin;
    if (const Walk *walk = llvm::find_if(walks, [&](const Walk &w) { return w.dim == dim; });
        walk != walks.end()) {
      begin = -walk->shift - walk->getReach();
      end = walk->quotients - walk->shift;
      index = walk->quotient - walk->m * (walk->splits() ? 1 : walk->spacing) - walk->shift;
    }
    int64_t before = std::max<int64_t>(-begin, 0);
    shape.push_back(before + std::max(end, elements));
    offsets.push_back(before);
    index = index + before;
    // A plain loop would have to have all elements: getAccessMap.
    bool isPrefix = isa<AffineDimExpr>(index) && shape.back() > whole.getDimSize(dim);
    indices.push_back(isPrefix ? index % shape.back() : index);
  }
  SmallVector<int64_t> strides(shape.size(), 1);
  return {spread(source, shape, offsets, strides), getMap(indices)};
}

/// Returns another operand with its taps ordered by their residues, and zeros where a
/// residue has none.
std::pair<Value, AffineMap> Rewrite::readFactor(OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto type = cast<RankedTensorType>(operand.get().getType());
  SmallVector<bool> reversed;
  SmallVector<int64_t> shape, offsets, strides, split;
  SmallVector<AffineExpr> indices;
  for (auto [size, index] : llvm::zip_equal(type.getShape(), map.getResults())) {
    const Walk *walk = getWalkOfTap(index);
    reversed.push_back(walk && walk->isReversed);
    offsets.push_back(walk ? walk->before : 0);
    strides.push_back(walk && walk->splits() ? walk->spacing : 1);
    shape.push_back(walk ? walk->getPlaces() : size);
    if (walk && walk->splits() && walk->steps > 1) {
      llvm::append_values(split, walk->steps, walk->residues);
      llvm::append_values(indices, walk->m, walk->residue);
    } else {
      split.push_back(shape.back());
      indices.push_back(!walk            ? index.replaceDims(loops)
                        : walk->splits() ? walk->residue
                                         : walk->m);
    }
  }
  Value places = spread(reverse(operand.get(), reversed), shape, offsets, strides);
  return {createReshapes(builder, loc, getShaped(places, split), places), getMap(indices)};
}

Walk *Rewrite::getWalkOfTap(AffineExpr index) {
  auto loop = dyn_cast<AffineDimExpr>(index);
  Walk *found =
      llvm::find_if(walks, [&](const Walk &w) { return loop && w.tap == loop.getPosition(); });
  return found == walks.end() ? nullptr : found;
}

Walk *Rewrite::getWalkOf(AffineExpr result) {
  auto loop = dyn_cast<AffineDimExpr>(result);
  Walk *found =
      llvm::find_if(walks, [&](const Walk &w) { return loop && w.loop == loop.getPosition(); });
  return found == walks.end() ? nullptr : found;
}

Value Rewrite::build() {
  createLoops();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto [value, map] = operand == read ? readSource() : readFactor(*operand);
    inputs.push_back(value);
    maps.push_back(map);
  }

  // The result by quotients and residues: those that taps reach, then all.
  Value init = op.getDpsInits().front();
  auto type = cast<RankedTensorType>(init.getType());
  SmallVector<int64_t> computed, reached, all, offsets, strides, joined, leads;
  SmallVector<AffineExpr> written;
  for (auto [size, index] : llvm::zip_equal(
           type.getShape(), op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getResults())) {
    const Walk *walk = getWalkOf(index);
    int64_t quotients = walk ? walk->quotients : size;
    written.push_back(walk ? walk->quotient : index.replaceDims(loops));
    offsets.push_back(0);
    strides.push_back(1);
    for (SmallVector<int64_t> *shape : {&computed, &reached, &all})
      shape->push_back(quotients);
    joined.push_back(walk ? quotients * walk->stride : size);
    leads.push_back(walk ? walk->lead : 0);
    if (!walk)
      continue;
    if (walk->residues > 1) {
      written.push_back(walk->residue);
      computed.push_back(walk->residues);
    }
    reached.push_back(walk->residues);
    all.push_back(walk->stride);
    offsets.push_back(walk->first);
    strides.push_back(walk->step);
  }
  maps.push_back(getMap(written));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, loc, computed, type.getElementType());
  Value zeros = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  auto sum = linalg::GenericOp::create(builder, loc, TypeRange(zeros.getType()), inputs, zeros,
                                       maps, kinds);
  builder.cloneRegionBefore(op->getRegion(0), sum.getRegion(), sum.getRegion().begin());

  Value made = createReshapes(builder, loc, getShaped(init, reached), sum.getResult(0));
  made = spread(made, all, offsets, strides);
  made = createReshapes(builder, loc, getShaped(init, joined), made);
  if (made.getType() != type)
    made = tensor::ExtractSliceOp::create(
        builder, loc, made, getAsIndexOpFoldResult(op.getContext(), leads),
        getAsIndexOpFoldResult(op.getContext(), type.getShape()),
        SmallVector<OpFoldResult>(leads.size(), builder.getIndexAttr(1)));
  if (isZero(init))
    return made;
  empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  return linalg::AddOp::create(builder, loc, ValueRange{init, made}, empty).getResult(0);
}

/// Erases the ops among `ops` without uses, and the ops that only they read.
static void eraseUnused(SmallVector<Operation *> ops) {
  SmallPtrSet<Operation *, 8> erased;
  while (!ops.empty()) {
    Operation *op = ops.pop_back_val();
    if (!op || erased.contains(op) || !isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      ops.push_back(operand.getDefiningOp());
    erased.insert(op);
    op->erase();
  }
}

void DropDilations::runOnOperation() {
  if (getOperation().isExternal())
    return;
  IRRewriter rewriter(&getContext());
  for (auto op : llvm::make_early_inc_range(getOperation().getBody().front().getOps<LinalgOp>()))
    for (OpOperand *read : op.getDpsInputOperands()) {
      std::optional<Dilated> dilated = findDilated(read->get());
      if (!dilated || llvm::all_of(dilated->strides, [](int64_t stride) { return stride == 1; }))
        continue;
      Rewrite rewrite(op, read, *dilated);
      if (!rewrite.match())
        continue;
      rewriter.replaceAllUsesWith(op->getResult(0), rewrite.build());
      eraseUnused({op});
      break;
    }
}
