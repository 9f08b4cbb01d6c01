//===- MoveReshapes.cpp - Move reshapes out of the way --------------------===//
//
// A reshape costs nothing between kernels, but no kernel can have one inside: it keeps
// the ops on its two sides apart. The op on one side gets the loops of the other one, and
// the reshape moves on, towards an argument, a result, or a contraction, whose loops stay
// as they are for the sake of its tiles.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MoveReshapes.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "weir/Kernels/Domain.h"

using namespace mlir;
using namespace weir;

namespace {
/// The ops that a contraction's kernel may compute behind the contraction.
class Epilogues {
public:
  bool contains(Operation *op) const { return places.lookup(op).isBehind; }
  /// Whether only reshapes keep the op from being one. Its operands must have been added.
  bool isKeptAway(Operation *op) const {
    return !find(op, /*throughReshapes=*/false).isBehind &&
           find(op, /*throughReshapes=*/true).isBehind;
  }
  void add(Operation *op, bool throughReshapes = false) { places[op] = find(op, throughReshapes); }

private:
  /// The number of kernels that must end before the op's kernel begins, and whether that is
  /// a contraction's.
  struct Place {
    unsigned level = 0;
    bool isBehind = false;
  };
  DenseMap<Operation *, Place> places;

  Place find(Operation *op, bool throughReshapes) const {
    Place place;
    for (Value operand : op->getOperands()) {
      Value source = throughReshapes ? stripReshapes(operand) : operand;
      Place other = places.lookup(source.getDefiningOp());
      if (other.level > place.level)
        place = other;
      else if (other.level == place.level)
        place.isBehind |= other.isBehind;
    }
    OpShape shape = getOpShape(op);
    if (isReshape(op))
      return {place.level, false};
    if (shape == OpShape::Free)
      return {};
    if (shape != OpShape::Pointwise)
      return {place.level + 1, shape == OpShape::Contraction};
    return place;
  }
};
} // namespace

/// Whether each index is a loop, or 0 where there is one.
static bool hasPlainIndices(linalg::GenericOp op) {
  return llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
    return llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
  });
}

static bool mayChangeLoops(linalg::GenericOp op) {
  OpShape shape = getOpShape(op);
  return (shape == OpShape::Pointwise || shape == OpShape::Reduction) && hasPlainIndices(op) &&
         !op->hasAttr(schedule::noFuseAttrName);
}

/// Whether the op may share a kernel with the op on the other side of the reshape.
static bool computes(Operation *op) {
  return isa_and_present<linalg::GenericOp>(op) && getOpShape(op) != OpShape::Free &&
         !op->hasAttr(schedule::noFuseAttrName);
}

/// Replaces the reshape of a splat or an empty tensor by one of the new shape.
template <typename Op> static LogicalResult foldSplat(Op reshape, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(reshape.getResult().getType());
  TypedAttr element = getSplat(reshape.getSrc());
  if (element)
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        reshape, DenseElementsAttr::get(type, Attribute(element)));
  else if (reshape.getSrc().template getDefiningOp<tensor::EmptyOp>())
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(reshape, type.getShape(), type.getElementType());
  else
    return failure();
  return success();
}

/// Folds two reshapes into one if it has groups. Upstream's patterns want a dimension of
/// size 1 in the same group, too.
template <typename Op> static LogicalResult foldReshapes(Op reshape, PatternRewriter &rewriter) {
  Operation *before = reshape.getSrc().getDefiningOp();
  if (!isReshape(before))
    return failure();
  auto type = cast<RankedTensorType>(reshape.getResult().getType());
  Value made = createReshape(rewriter, reshape.getLoc(), type, before->getOperand(0));
  if (!made)
    return failure();
  rewriter.replaceOp(reshape, made);
  return success();
}

/// Adds patterns that fold reshapes of reshapes and of splats.
static void addFolds(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  tensor::populateReassociativeReshapeFoldingPatterns(patterns);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
  patterns.add(foldSplat<tensor::ExpandShapeOp>);
  patterns.add(foldSplat<tensor::CollapseShapeOp>);
  patterns.add(foldReshapes<tensor::ExpandShapeOp>);
  patterns.add(foldReshapes<tensor::CollapseShapeOp>);
}

/// Whether the loop is a batch: it has an index in both factors and the result.
static bool isBatch(linalg::GenericOp op, unsigned loop) {
  return llvm::all_of(op.getIndexingMapsArray(),
                      [&](AffineMap map) { return map.isFunctionOfDim(loop); });
}

/// Whether every dimension that `reshape` merges or splits, of the operand that the
/// contraction reads or writes by `map`, is a batch of several parts larger than 1.
static bool splitsBatches(Operation *reshape, linalg::GenericOp op, AffineMap map) {
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(reshape);
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(collapse ? collapse.getSrc().getType()
                                                            : reshape->getResult(0).getType())
                                .getShape();
  bool splits = false;
  for (auto [dim, group] :
       llvm::enumerate(collapse ? collapse.getReassociationIndices()
                                : cast<tensor::ExpandShapeOp>(reshape).getReassociationIndices())) {
    if (group.size() == 1)
      continue;
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
    if (!loop || !isBatch(op, loop.getPosition()) ||
        llvm::count_if(group, [&](int64_t part) { return sizes[part] > 1; }) < 2)
      return false;
    splits = true;
  }
  return splits;
}

/// Whether a reshape does more than to add or drop dimensions of size 1.
static bool changesLoops(Operation *reshape) {
  SmallVector<int64_t> shapes[2];
  for (auto [shape, value] :
       llvm::zip(shapes, ValueRange{reshape->getOperand(0), reshape->getResult(0)}))
    llvm::copy_if(cast<RankedTensorType>(value.getType()).getShape(), std::back_inserter(shape),
                  [](int64_t size) { return size != 1; });
  return shapes[0] != shapes[1];
}

/// Gives contractions the batches of their operands and readers: samples and heads, say,
/// which a transpose has in another order. The tiles of the contraction stay the same.
static void splitBatches(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, [](OpOperand *read) {
    Operation *reader = read->getOwner(), *producer = read->get().getDefiningOp();
    bool isResult = isReshape(reader);
    auto op = dyn_cast_or_null<linalg::GenericOp>(isResult ? producer : reader);
    if (!op || op->hasAttr(schedule::noFuseAttrName))
      return false;
    if (getOpShape(op) != OpShape::Contraction) // a transpose lets reshapes through
      return mayChangeLoops(op) && llvm::hasSingleElement(*op.getBody()) &&
             changesLoops(isResult ? reader : producer);
    AffineMap map = isResult ? op.getIndexingMapsArray().back() : op.getMatchingIndexingMap(read);
    return splitsBatches(isResult ? reader : producer, op, map) &&
           (isResult ? llvm::any_of(reader->getUsers(), computes)
                     : computes(producer->getOperand(0).getDefiningOp()));
  });
  addFolds(patterns);
  (void)applyPatternsGreedily(function, std::move(patterns));
}

/// Returns the tensor that the op copies element by element, or null.
static Value getCopied(linalg::GenericOp op) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  auto yielded = dyn_cast<BlockArgument>(yield.getOperand(0));
  if (op.getNumResults() != 1 || !yielded || yielded.getOwner() != op.getBody())
    return {};
  OpOperand *read = op.getMatchingOpOperand(yielded);
  AffineMap map = op.getMatchingIndexingMap(read);
  bool isSame = map.isPermutation() && map == op.getIndexingMapsArray().back();
  return isSame && read->get().getType() == op.getResultTypes().front() ? read->get() : Value();
}

/// Returns the loops that may go if they make one trip: a reduction keeps one reduced loop,
/// and a contraction keeps rows, columns and products.
static SmallVector<unsigned> getSpareLoops(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<unsigned> reduced, spare;
  op.getReductionDims(reduced);
  bool isContraction = getOpShape(op) == OpShape::Contraction;
  bool reduces = llvm::any_of(reduced, [&](unsigned loop) { return sizes[loop] != 1; });
  for (unsigned loop = 0; loop < sizes.size(); ++loop) {
    if (isContraction ? isBatch(op, loop) : reduces || !llvm::is_contained(reduced, loop))
      spare.push_back(loop);
  }
  return spare;
}

static bool keepsUnits(linalg::GenericOp op) {
  SmallVector<unsigned> spare = getSpareLoops(op);
  return llvm::any_of(llvm::enumerate(op.getStaticLoopRanges()), [&](auto loop) {
    return loop.value() == 1 && !llvm::is_contained(spare, loop.index());
  });
}

/// Drops such loops of one trip from the op, and dimensions of size 1 from its operands.
static linalg::GenericOp dropUnits(linalg::GenericOp op, IRRewriter &rewriter) {
  linalg::ControlDropUnitDims options;
  options.controlFn = [&](Operation *) { return getSpareLoops(op); };
  rewriter.setInsertionPoint(op);
  FailureOr<linalg::DropUnitDimsResult> result = linalg::dropUnitDims(rewriter, op, options);
  if (failed(result))
    return op;
  rewriter.replaceOp(op, result->replacements);
  return cast<linalg::GenericOp>(result->resultOp);
}

/// Returns the ops that a chain of direct edges joins to one that must keep dimensions of
/// size 1. Without their own such dimensions, a reshape would stand between them.
static DenseSet<Operation *> findKeepers(Block &block) {
  DenseSet<Operation *> keepers;
  SmallVector<Operation *> open;
  auto add = [&](Operation *op) {
    if (computes(op) && getOpShape(op) != OpShape::Contraction && keepers.insert(op).second)
      open.push_back(op);
  };
  for (auto op : block.getOps<linalg::GenericOp>())
    if (!mayChangeLoops(op) || keepsUnits(op))
      add(op);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    for (Value operand : op->getOperands())
      add(operand.getDefiningOp());
    llvm::for_each(op->getUsers(), add);
  }
  return keepers;
}

/// Whether other ops read the tensor, in this shape or another one.
static bool isSharedWith(Value tensor, linalg::GenericOp op) {
  SmallVector<Value> shapes = {stripReshapes(tensor)};
  while (!shapes.empty())
    for (Operation *user : shapes.pop_back_val().getUsers()) {
      if (isReshape(user))
        shapes.push_back(user->getResult(0));
      else if (user != op && computes(user))
        return true;
    }
  return false;
}

/// Gives an op the loops of an operand behind an `expand_shape`, if all of its operands
/// allow that. Returns the new op or null.
static linalg::GenericOp collapse(linalg::GenericOp op, const Epilogues &epilogues,
                                  IRRewriter &rewriter) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!llvm::all_of(maps, [](AffineMap map) { return map.isProjectedPermutation(); }))
    return {};
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto expanded = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
    if (!expanded || !epilogues.contains(expanded.getSrc().getDefiningOp()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(operand);
    SmallVector<ReassociationIndices> merged;
    for (const ReassociationIndices &group : expanded.getReassociationIndices())
      if (group.size() > 1)
        llvm::transform(group, std::back_inserter(merged.emplace_back()),
                        [&](int64_t dim) { return map.getDimPosition(dim); });
    if (!linalg::areDimSequencesPreserved(maps, merged))
      continue;
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::CollapseResult> result =
        linalg::collapseOpIterationDims(op, merged, rewriter);
    if (failed(result))
      continue;
    rewriter.replaceOp(op, result->results);
    return cast<linalg::GenericOp>(result->collapsedOp);
  }
  return {};
}

namespace {
/// Digits of a number, the outermost first, and their sizes. That of the first is not known.
struct SplitNumber {
  SmallVector<Value> digits;
  SmallVector<int64_t> sizes;
};
} // namespace

/// Adds what `number` is a sum of, with factors, to `terms`.
static void addTerms(Value number, int64_t factor, SmallVector<std::pair<int64_t, Value>> &terms) {
  APInt literal;
  if (auto sum = number.getDefiningOp<arith::AddIOp>()) {
    addTerms(sum.getLhs(), factor, terms);
    addTerms(sum.getRhs(), factor, terms);
  } else if (auto product = number.getDefiningOp<arith::MulIOp>();
             product && matchPattern(product.getRhs(), m_ConstantInt(&literal)) && literal.sgt(0) &&
             literal.getActiveBits() < 32) {
    addTerms(product.getLhs(), factor * literal.getSExtValue(), terms);
  } else {
    terms.emplace_back(factor, number);
  }
}

/// Takes a number apart that was put together from the loops that one loop was split into.
static SplitNumber splitNumber(Value number, linalg::GenericOp op) {
  SmallVector<std::pair<int64_t, Value>> terms;
  addTerms(number, 1, terms);
  llvm::sort(terms, [](auto &a, auto &b) { return a.first > b.first; });
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SplitNumber split{{terms.front().second}, {ShapedType::kDynamic}};
  for (size_t i = 1; i < terms.size(); ++i) {
    auto loop = terms[i].second.getDefiningOp<linalg::IndexOp>();
    if (!loop || loop->getParentOp() != op ||
        terms[i - 1].first != terms[i].first * ranges[loop.getDim()])
      return {{number}, {ShapedType::kDynamic}};
    split.digits.push_back(loop);
    split.sizes.push_back(ranges[loop.getDim()]);
  }
  if (terms.back().first != 1)
    return {{number}, {ShapedType::kDynamic}};
  return split;
}

/// Lets a body read at its loops a tensor whose dimensions are split like them, where it reads at a
/// number that they are digits of.
static void splitRead(tensor::ExtractOp read) {
  auto op = dyn_cast<linalg::GenericOp>(read->getParentOp());
  auto type = cast<RankedTensorType>(read.getTensor().getType());
  if (!op)
    return;
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> shape;
  SmallVector<Value> indices;
  for (auto [size, index] : llvm::zip_equal(type.getShape(), read.getIndices())) {
    SplitNumber split = splitNumber(index, op);
    int64_t inside = 1;
    for (int64_t digit : ArrayRef(split.sizes).drop_front())
      inside *= digit;
    if (inside == 0 || size % inside != 0)
      return;
    split.sizes.front() = size / inside;
    groups.push_back(
        llvm::to_vector<2>(llvm::seq<int64_t>(shape.size(), shape.size() + split.sizes.size())));
    llvm::append_range(shape, split.sizes);
    llvm::append_range(indices, split.digits);
  }
  if (shape.size() == size_t(type.getRank()))
    return;
  OpBuilder builder(op);
  Value split = tensor::ExpandShapeOp::create(builder, read.getLoc(), type.clone(shape),
                                              read.getTensor(), groups);
  read.getTensorMutable().assign(split);
  read.getIndicesMutable().assign(indices);
}

void weir::moveReshapes(func::FuncOp function, BlockMarks &marks) {
  splitBatches(function);
  MLIRContext *context = function.getContext();
  IRRewriter rewriter(context);
  Epilogues epilogues;
  DenseSet<Operation *> keepers = findKeepers(function.getBody().front());
  for (Operation &next : llvm::make_early_inc_range(function.getBody().front())) {
    Operation *op = &next;
    epilogues.add(op);
    auto generic = dyn_cast<linalg::GenericOp>(op);
    bool isContraction =
        getOpShape(op) == OpShape::Contraction && !op->hasAttr(schedule::noFuseAttrName);
    if (!generic || !(mayChangeLoops(generic) || isContraction))
      continue;
    if (Value copied = getCopied(generic)) {
      rewriter.replaceOp(op, copied);
      continue;
    }
    if (epilogues.contains(op) && !isContraction)
      continue;
    linalg::GenericOp changed;
    bool isEpilogue = false;
    if (!isContraction && epilogues.isKeptAway(op))
      isEpilogue = bool(changed = collapse(generic, epilogues, rewriter));
    if (!isEpilogue)
      changed = keepers.contains(op) ? generic : dropUnits(generic, rewriter);
    for (Value operand : changed->getOperands())
      if (isReshape(operand.getDefiningOp()))
        epilogues.add(operand.getDefiningOp());
    epilogues.add(changed, isEpilogue);
    for (Operation *reshape : changed->getUsers())
      epilogues.add(reshape);
  }
  RewritePatternSet patterns(context);
  linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, [&](OpOperand *read) {
    // From an op into a reshape, or from a reshape into an op.
    Operation *reader = read->getOwner(), *producer = read->get().getDefiningOp();
    bool isResult = isReshape(reader);
    auto op = dyn_cast_or_null<linalg::GenericOp>(isResult ? producer : reader);
    if (!op || !mayChangeLoops(op) || epilogues.contains(op))
      return false;
    if (!changesLoops(isResult ? reader : producer)) {
      // A contraction may compute what it reads, unless that is of a row's kernel.
      return isResult &&
             llvm::any_of(
                 reader->getUsers(),
                 [](Operation *user) { return getOpShape(user) == OpShape::Contraction; }) &&
             llvm::none_of(op->getOperands(), [](Value operand) {
               return operand.getDefiningOp() &&
                      getOpShape(operand.getDefiningOp()) == OpShape::Reduction;
             });
    }
    return isResult
               ? llvm::any_of(reader->getUsers(), computes)
               : computes(producer->getOperand(0).getDefiningOp()) || isSharedWith(read->get(), op);
  });
  tensor::populateBubbleUpExpandShapePatterns(patterns);
  addFolds(patterns);
  // If that does not converge, the rewrites done so far are still right.
  (void)applyPatternsGreedily(function, std::move(patterns));
  marks.restore();
  // An op that read one tensor twice reads two reshapes of it now.
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
}

void weir::splitReads(func::FuncOp function) {
  function.walk([](tensor::ExtractOp read) { splitRead(read); });
  RewritePatternSet folds(function.getContext());
  addFolds(folds);
  (void)applyPatternsGreedily(function, std::move(folds));
}
