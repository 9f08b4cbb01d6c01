//===- PrepareKernels.cpp - Bring the graph into the form of kernels ------===//
//
// Data movement is folded into the maps of its readers, so that transposes and
// broadcasts cost nothing. Reductions of columns are cut in two: parts of
// consecutive rows, which may share a kernel with the other readers of those rows,
// and the op that combines the parts in order.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/kernels/MoveReshapes.h"
#include "passes/kernels/PickTerms.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "weir/Kernels/Emitter.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/ADT/SetVector.h"

namespace weir {
#define GEN_PASS_DEF_PREPAREKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

/// Marks `op` as one that must get a kernel of its own if `isAlone`.
static void setAlone(Operation *op, bool isAlone) {
  if (isAlone)
    op->setAttr(schedule::noFuseAttrName, UnitAttr::get(op->getContext()));
}

/// Whether the reader's operands still determine its loops when it reads the operands of
/// `moved` instead of its result. Otherwise upstream's fusion keeps that result, too.
static bool keepsLoops(OpOperand &read, linalg::GenericOp moved) {
  auto reader = cast<linalg::GenericOp>(read.getOwner());
  SmallVector<AffineMap> maps;
  for (OpOperand &other : reader->getOpOperands()) {
    bool isUsed = !reader.isDpsInit(&other) || !reader.getTiedOpResult(&other).use_empty();
    if (&other != &read && isUsed) // fusion drops the others
      maps.push_back(reader.getMatchingIndexingMap(&other));
  }
  AffineMap written = inversePermutation(moved.getIndexingMapsArray().back());
  for (OpOperand *input : moved.getDpsInputOperands())
    if (written)
      maps.push_back(moved.getMatchingIndexingMap(input).compose(written).compose(
          reader.getMatchingIndexingMap(&read)));
  return inversePermutation(concatAffineMaps(maps, read.get().getContext())) != AffineMap();
}

/// Whether `op` makes a tensor that is larger than each of its operands with very few
/// operations: a mask, or scales of rows and columns. Looks through at most `steps` ops.
static bool isOuterProduct(linalg::GenericOp op, unsigned steps = 4) {
  constexpr unsigned cheapOps = 8;
  return steps > 0 && getOpShape(op) == OpShape::Pointwise &&
         !op->hasAttr(schedule::noFuseAttrName) && op.getNumResults() == 1 &&
         !getSplat(op->getResult(0)) &&
         llvm::count_if(*op.getBody(),
                        [](Operation &inner) {
                          return !isa<linalg::IndexOp, affine::AffineApplyOp, linalg::YieldOp>(
                              inner);
                        }) <= cheapOps &&
         llvm::all_of(op.getDpsInits(),
                      [](Value init) { return init.getDefiningOp<tensor::EmptyOp>(); }) &&
         llvm::none_of(*op.getBody(),
                       [](Operation &inner) {
                         return isa<math::MathDialect, tensor::TensorDialect>(inner.getDialect()) ||
                                inner.getNumRegions() > 0;
                       }) &&
         llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
           auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
           return getSplat(operand->get()) ||
                  op.getMatchingIndexingMap(operand).getNumResults() < op.getNumLoops() ||
                  (producer && isOuterProduct(producer, steps - 1));
         });
}

/// Whether `op` only widens the elements of another tensor.
static bool isWidening(linalg::GenericOp op) {
  return getOpShape(op) == OpShape::Pointwise && !op->hasAttr(schedule::noFuseAttrName) &&
         op.getNumDpsInputs() == 1 && op.getNumResults() == 1 && !getSplat(op.getDpsInputs()[0]) &&
         op.getDpsInits()[0].getDefiningOp<tensor::EmptyOp>() &&
         llvm::range_size(*op.getBody()) == 2 && isa<arith::ExtFOp>(op.getBody()->front());
}

/// Fuses outer products into readers that have more loops than they have. Where elements of 16 bits
/// are loaded as fast as others, so that reading half of the bytes pays, fuses what widens them
/// into all readers.
static void inlineProducers(func::FuncOp function, const Profile &profile, IRRewriter &rewriter) {
  for (auto reader : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>())) {
    OpShape shape = getOpShape(reader);
    if ((shape != OpShape::Pointwise && shape != OpShape::Reduction) ||
        reader->hasAttr(schedule::noFuseAttrName))
      continue;
    for (bool changed = true; changed;) {
      changed = false;
      for (OpOperand *operand : reader.getDpsInputOperands()) {
        auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
        if (!producer)
          continue;
        bool isInlined = producer.getNumLoops() < reader.getNumLoops() && isOuterProduct(producer);
        if ((!isInlined && !(profile.hasShortVectors() && isWidening(producer))) ||
            !keepsLoops(*operand, producer) || !linalg::areElementwiseOpsFusable(operand))
          continue;
        // Upstream's fusion keeps a producer that has other readers, so it gets a copy.
        rewriter.setInsertionPoint(reader);
        operand->set(rewriter.clone(*producer)->getResult(0));
        FailureOr<linalg::ElementwiseOpFusionResult> fused =
            linalg::fuseElementwiseOps(rewriter, operand);
        if (failed(fused))
          continue;
        for (OpResult result : reader->getResults())
          rewriter.replaceAllUsesWith(result, fused->replacements.lookup(result));
        rewriter.eraseOp(reader);
        reader = cast<linalg::GenericOp>(fused->fusedOp);
        changed = true;
        break;
      }
    }
  }
}

/// Whether every element of the result is computed from its indices and from scalars:
/// random numbers, masks of positions, and elementwise functions of these.
static bool isMadeOfScalars(linalg::GenericOp op) {
  return op && getOpShape(op) == OpShape::Pointwise && !op->hasAttr(schedule::noFuseAttrName) &&
         op.getNumResults() == 1 && !getSplat(op->getResult(0)) &&
         cast<RankedTensorType>(op.getResultTypes().front()).getNumElements() > 1 &&
         llvm::all_of(op.getDpsInits(),
                      [](Value init) { return init.getDefiningOp<tensor::EmptyOp>(); }) &&
         llvm::none_of(*op.getBody(),
                       [](Operation &inner) {
                         return isa<tensor::TensorDialect>(inner.getDialect()) ||
                                inner.getNumRegions() > 0;
                       }) &&
         llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
           auto type = dyn_cast<RankedTensorType>(operand->get().getType());
           return !type || type.getNumElements() <= 1 || getSplat(operand->get()) ||
                  isMadeOfScalars(operand->get().getDefiningOp<linalg::GenericOp>());
         });
}

/// Gives each reader of a tensor that is made of scalars a copy of the op, to compute in
/// its own kernel: backward recomputes the mask of a dropout, and no buffer keeps it.
static void repeatMadeOfScalars(func::FuncOp function, IRRewriter &rewriter) {
  // Readers first: a copy is a reader, too.
  for (auto op : llvm::make_early_inc_range(
           llvm::reverse(function.getBody().front().getOps<linalg::GenericOp>()))) {
    if (op.use_empty() || !isMadeOfScalars(op))
      continue;
    llvm::SetVector<Operation *> readers;
    for (Operation *user : op->getUsers())
      if (isa<linalg::GenericOp>(user))
        readers.insert(user);
    for (Operation *reader : llvm::ArrayRef(readers.getArrayRef()).drop_front(!readers.empty())) {
      rewriter.setInsertionPoint(op);
      Operation *copy = rewriter.clone(*op);
      reader->replaceUsesOfWith(op->getResult(0), copy->getResult(0));
    }
  }
}

/// Makes constants of what has the same element everywhere and still has operands: repeated in each
/// kernel that reads it, it would need them there.
static void dropOperands(func::FuncOp function, IRRewriter &rewriter) {
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>())) {
    auto isSplat = [](Value result) { return getSplat(result) != nullptr; };
    if (op.getNumDpsInputs() == 0 || !llvm::all_of(op->getResults(), isSplat))
      continue;
    rewriter.setInsertionPoint(op);
    SmallVector<Value> constants;
    for (Value result : op->getResults())
      constants.push_back(arith::ConstantOp::create(
          rewriter, op.getLoc(),
          DenseElementsAttr::get(cast<ShapedType>(result.getType()), Attribute(getSplat(result)))));
    rewriter.replaceOp(op, constants);
  }
}

/// Replaces ops that leave all of their initial values as they are, as a sum of products with 0
/// does.
static void dropUnchanged(func::FuncOp function, IRRewriter &rewriter) {
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>())) {
    auto isUnchanged = [&](const auto &yielded) {
      return yielded.value() == op.getRegionOutputArgs()[yielded.index()];
    };
    if (llvm::all_of(llvm::enumerate(op.getBody()->getTerminator()->getOperands()), isUnchanged))
      rewriter.replaceOp(op, op.getDpsInits());
  }
}

/// Makes operands that nothing uses of results that nothing reads. Upstream's fusion leaves such a
/// result where it alone says how long a loop is.
static void dropResults(func::FuncOp function, IRRewriter &rewriter) {
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>())) {
    auto isDropped = [&](OpResult result) {
      return result.use_empty() && op.getRegionOutputArgs()[result.getResultNumber()].use_empty();
    };
    if (llvm::none_of(op->getResults(), isDropped) || llvm::all_of(op->getResults(), isDropped))
      continue;
    rewriter.setInsertionPoint(op);
    SmallVector<Value> inputs(op.getDpsInputs()), inits, yielded;
    SmallVector<AffineMap> maps, kept;
    SmallVector<BlockArgument> dropped;
    SmallVector<OpResult> left;
    for (OpOperand *input : op.getDpsInputOperands())
      maps.push_back(op.getMatchingIndexingMap(input));
    for (OpResult result : op->getResults()) {
      OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
      AffineMap map = op.getMatchingIndexingMap(init);
      if (isDropped(result)) {
        auto type = cast<RankedTensorType>(result.getType());
        inputs.push_back(
            tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(), type.getElementType()));
        maps.push_back(map);
        dropped.push_back(op.getRegionOutputArgs()[result.getResultNumber()]);
        continue;
      }
      left.push_back(result);
      inits.push_back(init->get());
      kept.push_back(map);
      yielded.push_back(op.getBody()->getTerminator()->getOperand(result.getResultNumber()));
    }
    llvm::append_range(maps, kept);
    auto less = linalg::GenericOp::create(rewriter, op.getLoc(), TypeRange(inits), inputs, inits,
                                          maps, op.getIteratorTypesArray());
    less->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    Block *body = op.getBody();
    for (auto [number, argument] : llvm::enumerate(dropped)) {
      body->insertArgument(op.getNumDpsInputs() + number, argument.getType(), argument.getLoc());
      body->eraseArgument(argument.getArgNumber());
    }
    rewriter.modifyOpInPlace(body->getTerminator(),
                             [&] { body->getTerminator()->setOperands(yielded); });
    less.getRegion().takeBody(op.getRegion());
    for (auto [result, same] : llvm::zip_equal(left, less->getResults()))
      rewriter.replaceAllUsesWith(result, same);
    rewriter.eraseOp(op);
  }
}

/// Gives each tensor that is made slice by slice its own first slices: two tensors that begin alike
/// have shared them since common subexpressions were merged, and neither could be written in place.
static void separateSlices(func::FuncOp function, IRRewriter &rewriter) {
  SmallVector<tensor::InsertSliceOp> insertions(function.getOps<tensor::InsertSliceOp>());
  while (!insertions.empty()) {
    tensor::InsertSliceOp insertion = insertions.pop_back_val();
    OpOperand *use = &insertion.getDestMutable();
    // The reshapes in front of the slice before belong to it.
    while (isReshape(use->get().getDefiningOp())) {
      if (!use->get().hasOneUse()) {
        rewriter.setInsertionPoint(use->getOwner());
        use->set(rewriter.clone(*use->get().getDefiningOp())->getResult(0));
      }
      use = &use->get().getDefiningOp()->getOpOperand(0);
    }
    auto before = use->get().getDefiningOp<tensor::InsertSliceOp>();
    if (!before || before->hasOneUse())
      continue;
    rewriter.setInsertionPoint(use->getOwner());
    auto own = cast<tensor::InsertSliceOp>(rewriter.clone(*before));
    use->set(own.getResult());
    insertions.push_back(own);
  }
}

/// Makes every structured op a `linalg.generic` and folds pure data movement
/// into the maps of its readers.
static LogicalResult normalize(func::FuncOp function, const Profile &profile) {
  IRRewriter rewriter(function.getContext());
  SmallVector<linalg::LinalgOp> named;
  function.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    bool isAlone = op->hasAttr(schedule::noFuseAttrName);
    FailureOr<linalg::GenericOp> generic = linalg::generalizeNamedOp(rewriter, op);
    if (failed(generic))
      return op->emitOpError("has no generic form, so no kernel computes it");
    setAlone(*generic, isAlone);
  }
  BlockMarks marks(function);
  moveReshapes(function, marks);
  inlineProducers(function, profile, rewriter);
  RewritePatternSet patterns(function.getContext());
  linalg::populateElementwiseOpsFusionPatterns(patterns, [](OpOperand *operand) {
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    return producer && llvm::hasSingleElement(*producer.getBody()) && !getSplat(operand->get()) &&
           !operand->getOwner()->hasAttr(schedule::scatterAttrName) && // fusion drops it
           keepsLoops(*operand, producer);
  });
  if (failed(applyPatternsGreedily(function, std::move(patterns))))
    return failure();
  repeatMadeOfScalars(function, rewriter);
  // Fusion left maps of loop indices in the bodies.
  function.walk([&](affine::AffineApplyOp op) {
    rewriter.setInsertionPoint(op);
    rewriter.replaceOp(op, *affine::expandAffineMap(rewriter, op.getLoc(), op.getAffineMap(),
                                                    op.getMapOperands()));
  });
  dropUnchanged(function, rewriter);
  dropResults(function, rewriter);
  pickTerms(function);
  splitReads(function);
  dropOperands(function, rewriter);
  separateSlices(function, rewriter);
  return success();
}

/// Transposes the result of each contraction whose only reader permutes it, so that the
/// reader writes neighbours where it reads neighbours.
static void turnContractions(func::FuncOp function) {
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>())) {
    if (getOpShape(op) != OpShape::Contraction || !op->hasOneUse())
      continue;
    OpOperand &use = *op->use_begin();
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    TypedAttr start = getSplat(op.getDpsInits().front());
    if (!reader || !start || getOpShape(reader) != OpShape::Pointwise || reader.isDpsInit(&use))
      continue;
    AffineMap read = reader.getMatchingIndexingMap(&use);
    AffineMap written = reader.getMatchingIndexingMap(reader.getDpsInitOperand(0));
    if (!read.isPermutation() || !written.isPermutation() || read == written)
      continue;
    auto type = cast<RankedTensorType>(op.getResultTypes().front());
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<AffineExpr> indices;
    SmallVector<int64_t> shape;
    for (AffineExpr loop : written.getResults()) {
      unsigned dim = *read.getResultPosition(loop);
      indices.push_back(maps.back().getResult(dim));
      shape.push_back(type.getDimSize(dim));
    }
    maps.back() = AffineMap::get(op.getNumLoops(), 0, indices, op.getContext());

    OpBuilder builder(op);
    auto turned = RankedTensorType::get(shape, type.getElementType());
    Value init = arith::ConstantOp::create(builder, op.getLoc(),
                                           DenseElementsAttr::get(turned, Attribute(start)));
    auto contraction = linalg::GenericOp::create(builder, op.getLoc(), turned, op.getDpsInputs(),
                                                 init, maps, op.getIteratorTypesArray());
    contraction.getRegion().takeBody(op.getRegion());
    for (StringRef name : {schedule::noFuseAttrName, schedule::inBlocksAttrName})
      if (Attribute value = op->getAttr(name))
        contraction->setAttr(name, value);
    SmallVector<AffineMap> readerMaps = reader.getIndexingMapsArray();
    readerMaps[use.getOperandNumber()] = written;
    reader.setIndexingMapsAttr(builder.getAffineMapArrayAttr(readerMaps));
    use.set(contraction.getResult(0));
    op.erase();
  }
}

/// Makes the sum over batches of a contraction, which nothing else reads, part of its sums: the
/// gradient of heads that share a key, for example.
static void sumBatches(func::FuncOp function) {
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>())) {
    if (getOpShape(op) != OpShape::Reduction || op.getNumDpsInputs() != 1 ||
        op->getNumResults() != 1 || op->hasAttr(schedule::noFuseAttrName))
      continue;
    std::optional<SmallVector<Combiner>> combiners = getCombiners(op);
    OpOperand *read = op.getDpsInputOperand(0);
    auto contraction = read->get().getDefiningOp<linalg::GenericOp>();
    if (!combiners || !isa<arith::AddFOp>(combiners->front().combine) ||
        combiners->front().reduced != op.getBody()->getArgument(0) || !contraction ||
        getOpShape(contraction) != OpShape::Contraction || !contraction->hasOneUse() ||
        contraction->hasAttr(schedule::noFuseAttrName))
      continue;
    auto start = dyn_cast_or_null<FloatAttr>(getSplat(contraction.getDpsInits().front()));
    AffineMap readMap = op.getMatchingIndexingMap(read);
    AffineMap written = contraction.getIndexingMapsArray().back();
    if (!start || !start.getValue().isZero() || !readMap.isPermutation() ||
        !written.isProjectedPermutation())
      continue;
    // Of the contraction, for a loop of the sum.
    auto getLoop = [&](unsigned loop) {
      AffineExpr index = getAffineDimExpr(loop, op.getContext());
      return written.getDimPosition(*readMap.getResultPosition(index));
    };
    SmallVector<AffineMap> maps = contraction.getIndexingMapsArray();
    SmallVector<utils::IteratorType> loops = contraction.getIteratorTypesArray();
    bool areBatches = true;
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
      if (kind != utils::IteratorType::reduction)
        continue;
      loops[getLoop(loop)] = kind;
      areBatches &=
          llvm::all_of(maps, [&](AffineMap map) { return map.isFunctionOfDim(getLoop(loop)); });
    }
    SmallVector<AffineExpr> indices;
    for (AffineExpr index : op.getIndexingMapsArray().back().getResults())
      if (auto loop = dyn_cast<AffineDimExpr>(index))
        indices.push_back(getAffineDimExpr(getLoop(loop.getPosition()), op.getContext()));
    if (!areBatches || int64_t(indices.size()) != op.getIndexingMapsArray().back().getNumResults())
      continue;
    maps.back() = AffineMap::get(contraction.getNumLoops(), 0, indices, op.getContext());
    OpBuilder builder(op);
    auto sum = linalg::GenericOp::create(
        builder, builder.getFusedLoc({contraction.getLoc(), op.getLoc()}), op.getResultTypes(),
        contraction.getDpsInputs(), op.getDpsInits(), maps, loops);
    IRMapping mapping;
    contraction.getRegion().cloneInto(&sum.getRegion(), mapping);
    if (getOpShape(sum) != OpShape::Contraction) {
      sum.erase();
      continue;
    }
    op.replaceAllUsesWith(sum.getResults());
    op.erase();
    contraction.erase();
  }
}

/// Adds the op that combines the parts of columns with `init`, the first part first.
static Value combineParts(OpBuilder &builder, Location loc, Value parts, Value init,
                          const Combiner &combiner) {
  unsigned rank = cast<RankedTensorType>(init.getType()).getRank();
  SmallVector<utils::IteratorType> loops(rank + 1, utils::IteratorType::parallel);
  loops.front() = utils::IteratorType::reduction;
  AffineMap read = builder.getMultiDimIdentityMap(rank + 1);
  auto body = [&](OpBuilder &b, Location bodyLoc, ValueRange values) {
    IRMapping mapping;
    for (Value operand : combiner.combine->getOperands())
      mapping.map(operand, values[operand == combiner.reduced ? 0 : 1]);
    linalg::YieldOp::create(b, bodyLoc, b.clone(*combiner.combine, mapping)->getResults());
  };
  return linalg::GenericOp::create(builder, loc, init.getType(), parts, init,
                                   ArrayRef<AffineMap>{read, read.dropResult(0)}, loops, body)
      .getResult(0);
}

/// Whether a value is computed from a contraction in blocks, so that its reader computes it, too.
static bool isComputedInBlocks(Value value) {
  llvm::SetVector<Value> from;
  from.insert(value);
  for (size_t next = 0; next < from.size(); ++next) {
    auto op = from[next].getDefiningOp<linalg::GenericOp>();
    if (!op)
      continue;
    if (op->hasAttr(schedule::inBlocksAttrName))
      return true;
    if (getOpShape(op) == OpShape::Pointwise)
      from.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Makes an op of its own that moves the dimension `last` of a tensor behind the others.
static Value moveLast(OpBuilder &builder, Location loc, Value tensor, int64_t last) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + last);
  shape.push_back(type.getDimSize(last));
  SmallVector<AffineExpr> read;
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
    read.push_back(builder.getAffineDimExpr(dim));
  read.insert(read.begin() + last, builder.getAffineDimExpr(type.getRank() - 1));
  Value init = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto moved = linalg::GenericOp::create(
      builder, loc, init.getType(), tensor, init,
      ArrayRef<AffineMap>{AffineMap::get(type.getRank(), 0, read, builder.getContext()),
                          builder.getMultiDimIdentityMap(type.getRank())},
      loops, [](OpBuilder &b, Location bodyLoc, ValueRange arguments) {
        linalg::YieldOp::create(b, bodyLoc, arguments.front());
      });
  setAlone(moved, true);
  return moved.getResult(0);
}

/// Transposes the factors of contractions that instructions on matrices then read as they are. A
/// tensor that several read is transposed once.
static void layOutFactors(func::FuncOp function, const Profile &profile) {
  DenseMap<std::pair<Value, int64_t>, Value> known;
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>())) {
    if (getOpShape(op) != OpShape::Contraction || op->hasAttr(schedule::inBlocksAttrName) ||
        llvm::any_of(op.getDpsInputs(), isComputedInBlocks))
      continue;
    SmallVector<unsigned> summed;
    op.getReductionDims(summed);
    for (OpOperand *factor : findFactorsToTranspose(op, profile)) {
      AffineMap map = op.getMatchingIndexingMap(factor);
      OpBuilder builder(op);
      AffineExpr product = builder.getAffineDimExpr(summed.front());
      const int64_t last = llvm::find(map.getResults(), product) - map.getResults().begin();
      Value &moved = known[{factor->get(), last}];
      if (!moved)
        moved = moveLast(builder, op.getLoc(), factor->get(), last);
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      AffineMap &changed = maps[factor->getOperandNumber()];
      changed = changed.dropResult(last);
      changed = changed.insertResult(product, changed.getNumResults());
      factor->set(moved);
      op.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
    }
  }
}

/// Cuts reductions of columns, and contractions of few and long sums, in two: into parts of
/// consecutive rows, or products, and the op that combines the parts. The size of a part and the
/// order of the parts depend on the op's shape and the profile alone.
static void cutSums(func::FuncOp function, const Profile &profile) {
  SmallVector<std::pair<linalg::GenericOp, OpShape>> sums;
  for (auto op : function.getOps<linalg::GenericOp>()) {
    OpShape shape = getOpShape(op);
    bool isSum = shape == OpShape::Reduction || shape == OpShape::Contraction;
    if (isSum && !op->hasAttr(schedule::inBlocksAttrName) &&
        llvm::none_of(op.getDpsInputs(), isComputedInBlocks))
      sums.push_back({op, shape});
  }
  for (auto [op, shape] : sums) {
    std::optional<ColumnParts> parts = shape == OpShape::Reduction
                                           ? chooseColumnParts(op, profile)
                                           : chooseContractionParts(op, profile);
    if (!parts || parts->getParts() < 2)
      continue;
    OpBuilder builder(op);
    SmallVector<Combiner> combiners = *getCombiners(op);
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<Value> inits;
    SmallVector<Type> types;
    for (auto [index, combiner] : llvm::enumerate(combiners)) {
      auto type = cast<RankedTensorType>(op.getResultTypes()[index]);
      SmallVector<int64_t> shape = {parts->getParts()};
      llvm::append_range(shape, type.getShape());
      types.push_back(RankedTensorType::get(shape, type.getElementType()));
      auto neutral =
          DenseElementsAttr::get(cast<ShapedType>(types.back()), getNeutral(combiner.combine));
      inits.push_back(arith::ConstantOp::create(builder, op.getLoc(), neutral));
      AffineMap &map = maps[op.getNumDpsInputs() + index];
      map = map.insertResult(getPartIndex(*parts, op), 0);
    }
    auto cut = linalg::GenericOp::create(builder, op.getLoc(), types, op.getDpsInputs(), inits,
                                         maps, op.getIteratorTypesArray());
    cut.getRegion().takeBody(op.getRegion());
    bool isAlone = op->hasAttr(schedule::noFuseAttrName);
    setAlone(cut, isAlone);
    for (auto [result, ofParts, init, combiner] :
         llvm::zip_equal(op->getResults(), cut->getResults(), op.getDpsInits(), combiners)) {
      if (result.use_empty())
        continue;
      Value whole = combineParts(builder, op.getLoc(), ofParts, init, combiner);
      setAlone(whole.getDefiningOp(), isAlone);
      result.replaceAllUsesWith(whole);
    }
    op.erase();
  }
}

/// Returns the number of buffers of a kernel that computes just this op.
static int64_t countBuffers(linalg::GenericOp op) {
  llvm::SmallSetVector<Value, 8> read;
  for (Value input : op.getDpsInputs())
    if (isa<RankedTensorType>(input.getType()) && !getSplat(input))
      read.insert(input);
  return int64_t(read.size()) + op->getNumResults();
}

/// Returns the ops of a body that the op must compute itself: those that the results go through,
/// and the last ones before them.
static llvm::SmallPtrSet<Operation *, 8> getLastOps(linalg::GenericOp op) {
  llvm::SmallPtrSet<Operation *, 8> last;
  auto isOfResult = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? argument.getArgNumber() >= op.getNumDpsInputs()
                    : last.contains(value.getDefiningOp());
  };
  for (Operation &inner : op.getBody()->without_terminator())
    if (llvm::any_of(inner.getOperands(), isOfResult) ||
        llvm::is_contained(inner.getUsers(), op.getBody()->getTerminator()))
      last.insert(&inner);
  return last;
}

/// Makes an op on the loops of `op`, of some ops of its body, which read the operands of `op` and
/// `tensors`, those that were computed for values of its body. Returns its results.
static ValueRange computePart(linalg::GenericOp op, ArrayRef<Operation *> part, ValueRange yielded,
                              const DenseMap<Value, Value> &tensors, TypeRange types,
                              ValueRange inits, ArrayRef<AffineMap> written,
                              ArrayRef<utils::IteratorType> loops) {
  OpBuilder builder(op);
  llvm::SmallSetVector<Value, 8> values; // of the body, that are read from tensors
  auto read = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if ((argument && argument.getArgNumber() < op.getNumDpsInputs()) || tensors.contains(value))
      values.insert(value);
  };
  for (Operation *inner : part)
    llvm::for_each(inner->getOperands(), read);
  llvm::for_each(yielded, read);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (Value value : values) {
    auto argument = dyn_cast<BlockArgument>(value);
    inputs.push_back(argument ? op.getDpsInputs()[argument.getArgNumber()] : tensors.at(value));
    maps.push_back(argument ? op.getIndexingMapsArray()[argument.getArgNumber()]
                            : builder.getMultiDimIdentityMap(op.getNumLoops()));
  }
  llvm::append_range(maps, written);
  auto body = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    IRMapping mapping;
    mapping.map(values.getArrayRef(), arguments.take_front(values.size()));
    if (int64_t(inits.size()) == op.getNumDpsInits())
      mapping.map(op.getRegionOutputArgs(), arguments.drop_front(values.size()));
    for (Operation &inner : op.getBody()->without_terminator())
      if (llvm::is_contained(part, &inner) || isa<arith::ConstantOp, linalg::IndexOp>(inner))
        b.clone(inner, mapping);
    linalg::YieldOp::create(b, loc, llvm::map_to_vector(yielded, [&](Value value) {
                              return mapping.lookupOrDefault(value);
                            }));
  };
  return linalg::GenericOp::create(builder, op.getLoc(), types, inputs, inits, maps, loops, body)
      .getResults();
}

/// Computes an op of more operands than a kernel may have by several, each of one op of its body:
/// of three operands at most. Kernels then compute as many of them together as they may.
static void splitBodies(func::FuncOp function, const Profile &profile) {
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>())) {
    OpShape shape = getOpShape(op);
    if ((shape != OpShape::Pointwise && shape != OpShape::Reduction) ||
        countBuffers(op) <= profile.storageBuffersPerStage ||
        llvm::any_of(*op.getBody(), [](Operation &inner) {
          return inner.getNumRegions() > 0 || isa<tensor::TensorDialect>(inner.getDialect()) ||
                 (inner.getNumResults() != 1 && !isa<linalg::YieldOp>(inner));
        }))
      continue;
    OpBuilder builder(op);
    llvm::SmallPtrSet<Operation *, 8> last = getLastOps(op);
    SmallVector<Operation *> kept;
    DenseMap<Value, Value> tensors;
    for (Operation &inner : op.getBody()->without_terminator()) {
      if (last.contains(&inner)) {
        kept.push_back(&inner);
      } else if (!isa<arith::ConstantOp, linalg::IndexOp>(inner)) {
        Value value = inner.getResult(0);
        auto type = RankedTensorType::get(op.getStaticLoopRanges(), value.getType());
        Value init =
            tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
        SmallVector<utils::IteratorType> loops(op.getNumLoops(), utils::IteratorType::parallel);
        AffineMap identity = builder.getMultiDimIdentityMap(op.getNumLoops());
        tensors[value] =
            computePart(op, &inner, value, tensors, type, init, identity, loops).front();
      }
    }
    ValueRange whole = computePart(
        op, kept, op.getBody()->getTerminator()->getOperands(), tensors, op.getResultTypes(),
        op.getDpsInits(), ArrayRef(op.getIndexingMapsArray()).drop_front(op.getNumDpsInputs()),
        op.getIteratorTypesArray());
    setAlone(whole.front().getDefiningOp(), op->hasAttr(schedule::noFuseAttrName));
    op->replaceAllUsesWith(whole);
    op.erase();
  }
}

namespace {
struct PrepareKernels : weir::impl::PrepareKernelsPassBase<PrepareKernels> {
  using PrepareKernelsPassBase::PrepareKernelsPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    FailureOr<Profile> profile = getProfile(function->getParentOfType<ModuleOp>());
    if (failed(profile) || failed(normalize(function, *profile)))
      return signalPassFailure();
    turnContractions(function);
    sumBatches(function);
    splitBodies(function, *profile);
    layOutFactors(function, *profile);
    cutSums(function, *profile);
  }
};
} // namespace
