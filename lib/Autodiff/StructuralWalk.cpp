//===- StructuralWalk.cpp - Walk the elements of what an op reads ---------===//
//
// An op that reads a tensor at `d0 * 2 + d1` walks the tensor's elements x in place of
// d0: `d0 * 2 + d1 = x` is solved for d0. Where x is no such index, as in a gather, the
// computed index is compared with x. Points without a part in x add 0.
//
//===----------------------------------------------------------------------===//

#include "Structural.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weir::autodiff;
using linalg::LinalgOp;

/// Returns `index` as factor * loop + rest for a loop that is not `taken`, or nothing if
/// there is none. Prefers loops of the results, then longer ones.
std::optional<DimRead> Structural::solve(AffineExpr index, ArrayRef<bool> taken) {
  unsigned count = op.getNumLoops();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto isParallel = [&](unsigned loop) {
    return llvm::any_of(seeds, [&](const Seed &seed) { return seed.map.isFunctionOfDim(loop); });
  };
  std::optional<DimRead> best;
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
    best = DimRead{DimRead::Solved, loop, factor.getValue(), put(0)};
  }
  return best;
}

SmallVector<DimRead> Structural::findReads(RankedTensorType type, ArrayRef<AffineExpr> indices,
                                           ValueRange computed) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<DimRead> reads(indices.size());
  // A loop either walks one dimension or is solved for once.
  SmallVector<bool> taken(op.getNumLoops(), false);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    auto loop = dyn_cast_if_present<AffineDimExpr>(index);
    if (type.getDimSize(dim) == 1 || !loop || taken[loop.getPosition()] ||
        ranges[loop.getPosition()] != type.getDimSize(dim))
      continue;
    reads[dim] = {DimRead::Own, loop.getPosition()};
    taken[loop.getPosition()] = true;
  }
  for (auto [dim, index] : llvm::enumerate(indices)) {
    if (type.getDimSize(dim) == 1 || reads[dim].kind == DimRead::Own)
      continue;
    std::optional<DimRead> solved = index ? solve(index, taken) : std::nullopt;
    if (!solved) {
      reads[dim] = {DimRead::Matched, 0, 1, index, index ? Value() : computed[dim]};
      continue;
    }
    reads[dim] = *solved;
    // The rest must stay known, so its loops are not solved for.
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (index.isFunctionOfDim(loop))
        taken[loop] = true;
  }
  return reads;
}

SmallVector<AffineExpr> Structural::Walk::getDims(Builder &builder) const {
  return llvm::map_to_vector(loopOf, [&](unsigned loop) {
    return loop == gone ? builder.getAffineConstantExpr(0) : builder.getAffineDimExpr(loop);
  });
}

Structural::Walk Structural::layOut(const GradientTarget &target) {
  auto type = cast<RankedTensorType>(target.value.getType());
  unsigned count = op.getNumLoops();
  Walk walk;
  walk.loopOf.assign(count, Walk::gone);
  walk.loopOfDim.assign(type.getRank(), Walk::gone);
  walk.solved.assign(count, false);
  for (auto [dim, read] : llvm::enumerate(target.reads)) {
    if (read.kind == DimRead::Unit) {
      walk.written.push_back(builder.getAffineConstantExpr(0));
      continue;
    }
    unsigned next = walk.ranges.size();
    walk.written.push_back(builder.getAffineDimExpr(next));
    (read.kind == DimRead::Own ? walk.loopOf[read.loop] : walk.loopOfDim[dim]) = next;
    walk.ranges.push_back(type.getDimSize(dim));
    if (read.kind == DimRead::Solved)
      walk.solved[read.loop] = true;
  }
  for (auto [loop, range] : llvm::enumerate(op.getStaticLoopRanges()))
    if (walk.loopOf[loop] == Walk::gone && !walk.solved[loop]) {
      walk.loopOf[loop] = walk.ranges.size();
      walk.ranges.push_back(range);
    }
  return walk;
}

/// Code in the body of an op that walks the elements of a target. Computes the op's loops
/// from the new ones, and whether a point has a part in the element.
class Structural::WalkCode {
public:
  WalkCode(LinalgOp op, const Walk &walk, Block &body)
      : b(op.getContext()), loc(op.getLoc()), walk(walk), ranges(op.getStaticLoopRanges()) {
    b.setInsertionPointToStart(&body); // a block outside of a region has no context
    for (unsigned loop = 0; loop < ranges.size(); ++loop)
      at.push_back(walk.solved[loop] // no solved loop is in the rest of another one
                       ? constant(0)
                       : linalg::IndexOp::create(b, loc, walk.loopOf[loop]).getResult());
  }

  OpBuilder b;
  SmallVector<Value> at; ///< the op's loops
  Value takesPart;       ///< null: every point does

  Value expand(AffineExpr expression) {
    return affine::expandAffineExpr(b, loc, expression, at, {});
  }
  Value getElement(unsigned dim) { return linalg::IndexOp::create(b, loc, walk.loopOfDim[dim]); }
  void require(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    Value condition = arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
    takesPart = takesPart ? arith::AndIOp::create(b, loc, takesPart, condition) : condition;
  }
  /// Solves `factor * loop + rest = element` for the loop, clamped to its range.
  void solve(unsigned dim, const DimRead &read) {
    Value element = getElement(dim), rest = expand(read.at);
    if (read.factor < 0)
      std::swap(element, rest);
    Value distance = arith::SubIOp::create(b, loc, element, rest);
    require(arith::CmpIPredicate::sge, distance, constant(0));
    distance = arith::MaxSIOp::create(b, loc, distance, constant(0));
    if (int64_t step = std::abs(read.factor); step != 1) {
      Value odd = arith::RemUIOp::create(b, loc, distance, constant(step));
      require(arith::CmpIPredicate::eq, odd, constant(0));
      distance = arith::DivUIOp::create(b, loc, distance, constant(step));
    }
    int64_t range = ranges[read.loop];
    require(arith::CmpIPredicate::ult, distance, constant(range));
    at[read.loop] = arith::MinUIOp::create(b, loc, distance, constant(range - 1));
  }
  /// Lets the body read the element of `input` at its map's indices, with solved loops,
  /// in place of `argument`. Returns the element.
  Value extract(const OpInput &input, BlockArgument argument) {
    SmallVector<Value> indices = llvm::map_to_vector(
        input.map.getResults(), [&](AffineExpr index) { return expand(index); });
    Value element = tensor::ExtractOp::create(b, loc, input.value, indices);
    argument.replaceAllUsesWith(element);
    return element;
  }

private:
  Location loc;
  const Walk &walk;
  SmallVector<int64_t> ranges;

  Value constant(int64_t number) { return arith::ConstantIndexOp::create(b, loc, number); }
};

/// Lets `from` walk the elements of `target` in place of the solved loops. `yielded` becomes
/// 0 at points that have no part in the element. Returns the map of the result, and sets
/// `ranges` to those of the new loops.
AffineMap Structural::walkElements(Body &from, Value &yielded, const GradientTarget &target,
                                   SmallVectorImpl<int64_t> &ranges) {
  SmallVector<linalg::IndexOp> indexOps(from.block.getOps<linalg::IndexOp>());
  Walk walk = layOut(target);
  WalkCode code(op, walk, from.block);
  std::optional<unsigned> padded = findPadded(from, yielded, walk.solved);
  if (padded &&
      !pad(from.inputs[*padded], target, walk, isWorthPadding(from, yielded, *padded, target)))
    padded.reset();
  for (auto [dim, read] : llvm::enumerate(target.reads))
    if (read.kind == DimRead::Solved && !padded)
      code.solve(dim, read);

  for (auto [index, input] : llvm::enumerate(from.inputs)) {
    if (padded == index)
      continue;
    bool isSolved = llvm::any_of(llvm::seq(op.getNumLoops()), [&, &map = input.map](unsigned loop) {
      return walk.solved[loop] && map.isFunctionOfDim(loop);
    });
    BlockArgument argument = from.block.getArgument(index);
    if (isSolved && (!argument.use_empty() || argument == yielded)) {
      Value element = code.extract(input, argument);
      if (argument == yielded)
        yielded = element;
    }
    input.map = input.map.replaceDimsAndSymbols(walk.getDims(builder), {}, walk.ranges.size(), 0);
  }
  for (linalg::IndexOp index : indexOps) {
    index.getResult().replaceAllUsesWith(code.at[index.getDim()]);
    index.erase();
  }

  code.b.setInsertionPointToEnd(&from.block);
  for (auto [dim, read] : llvm::enumerate(target.reads)) {
    if (read.kind != DimRead::Matched)
      continue;
    Value where = read.at ? code.expand(read.at) : from.fromOp.lookupOrDefault(read.index);
    code.require(arith::CmpIPredicate::eq, where, code.getElement(dim));
  }
  if (code.takesPart) {
    Value zero =
        arith::ConstantOp::create(code.b, op.getLoc(), code.b.getZeroAttr(yielded.getType()));
    yielded = arith::SelectOp::create(code.b, op.getLoc(), code.takesPart, yielded, zero);
  }
  ranges.assign(walk.ranges.begin(), walk.ranges.end());
  return AffineMap::get(walk.ranges.size(), 0, walk.written, op.getContext());
}
