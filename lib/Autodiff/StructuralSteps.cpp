//===- StructuralSteps.cpp - Gradients of reductions without a rule -------===//
//
// A reduction without a rule is repeated step by step if there are few steps: each step
// computes every point for itself, which has a rule.
//
//===----------------------------------------------------------------------===//

#include "Structural.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir::autodiff;

/// Whether the op is a reduction of at most `maxSteps` steps: all results have the same
/// map, of loops that are not reduced.
bool Structural::takesFewSteps() {
  if (body.getNumArguments() != op->getNumOperands() ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
    return false;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  int64_t steps = 1;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!map.isFunctionOfDim(loop))
      steps = std::min(steps * op.getStaticLoopRanges()[loop], maxSteps + 1);
  return steps > 0 && steps <= maxSteps &&
         llvm::all_of(llvm::seq(op.getNumDpsInits()), [&](unsigned number) {
           OpOperand *init = op.getDpsInitOperand(number);
           return op.getMatchingIndexingMap(init) == map &&
                  isProjection(map, init->get().getType());
         });
}

/// Returns the part of a tensor that `map` reads: a slice if loops walk a part or one index
/// of some dimension. `map` then becomes the map of the slice.
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

/// Creates one step of the reduction, in the order of the loops, on `accumulators`.
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
  maps.append(2 * accumulators.size(), fix(written)); // as inputs and as results
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

/// Repeats all steps, then builds their gradients from last to first.
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
  llvm::SetVector<Value> outside; // values that the gradient flows back to
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
