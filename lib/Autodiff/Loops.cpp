//===- Loops.cpp - Derivatives of loops of known length -------------------===//
//
// The forward loop keeps what each trip begins with, one row of a tensor for each. A second loop
// walks the trips backward: it computes a trip again from its row, and then its cotangents from
// those of the trip behind it.
//
// A loop that runs once or never, as a choice does that has a loop inside, begins with what it is
// given. Its derivative runs as often.
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir::autodiff;

namespace {
/// The values of a loop through which gradients flow.
struct Flow {
  SmallVector<unsigned> active; ///< numbers of values that the loop carries
  SmallVector<Value> weights;   ///< what the body reads from outside and is wanted
  SmallVector<Value> inits; ///< the cotangents of the active ones, then the weights' sums so far

  /// Errors: a diagnostic where a gradient flows through a scalar.
  LogicalResult find(OpBuilder &builder, LoopLikeOpInterface loop, ArrayRef<Value> cotangents,
                     Cotangents &sums);

  /// Adds what the backward loop made of `inits`. `begins`: what the loop's values are before it.
  void finish(OpBuilder &builder, Location loc, ValueRange begins, ValueRange ends,
              Cotangents &sums) const;
};

/// Builds the derivative of one loop.
class LoopDerivative {
public:
  LoopDerivative(scf::ForOp loop, int64_t trips, Cotangents &sums)
      : loop(loop), loc(loop.getLoc()), trips(trips), sums(sums) {}

  LogicalResult build(OpBuilder &builder, ArrayRef<Value> cotangents);

private:
  Value getIndex(OpBuilder &builder, int64_t number) {
    return arith::ConstantIndexOp::create(builder, loc, number);
  }
  Value getCounter(OpBuilder &builder, Value trip);
  SmallVector<OpFoldResult> getOffsets(RankedTensorType row, Value trip);
  void keepRows();
  FailureOr<SmallVector<Value>> buildTrip(OpBuilder &builder, Value trip, ValueRange carried);

  scf::ForOp loop;
  Location loc;
  int64_t trips;
  Cotangents &sums;
  SmallVector<Value> rows; ///< by carried value; null: not read
  Flow flow;
};
} // namespace

/// Returns the value of the loop's own counter in a trip, counted from 0.
Value LoopDerivative::getCounter(OpBuilder &builder, Value trip) {
  Type type = loop.getInductionVar().getType();
  if (!type.isIndex())
    trip = arith::IndexCastOp::create(builder, loc, type, trip);
  Value distance = arith::MulIOp::create(builder, loc, trip, loop.getStep());
  return arith::AddIOp::create(builder, loc, loop.getLowerBound(), distance);
}

SmallVector<OpFoldResult> LoopDerivative::getOffsets(RankedTensorType row, Value trip) {
  SmallVector<OpFoldResult> offsets(row.getRank() + 1,
                                    IntegerAttr::get(IndexType::get(row.getContext()), 0));
  offsets.front() = trip;
  return offsets;
}

static SmallVector<OpFoldResult> getRowSizes(OpBuilder &builder, RankedTensorType row) {
  SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(1)};
  for (int64_t size : row.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  return sizes;
}

static SmallVector<OpFoldResult> getOnes(OpBuilder &builder, size_t count) {
  return SmallVector<OpFoldResult>(count, builder.getIndexAttr(1));
}

/// Whether the derivative of a trip reads a value that it begins with: not if the trip only inserts
/// into it what the next one begins with.
static bool isRead(BlockArgument argument) {
  return !llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto insert = dyn_cast<tensor::InsertSliceOp>(use.getOwner());
    return insert && use.getOperandNumber() == insert.getDestMutable().getOperandNumber() &&
           llvm::all_of(insert->getUsers(), llvm::IsaPred<scf::YieldOp>);
  });
}

/// Writes a loop in place of this one that keeps what its trips begin with.
void LoopDerivative::keepRows() {
  OpBuilder builder(loop);
  SmallVector<Value> inits(loop.getInitArgs());
  SmallVector<unsigned> kept;
  for (auto [index, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (!isRead(argument))
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    SmallVector<int64_t> shape = {trips};
    llvm::append_range(shape, type.getShape());
    kept.push_back(index);
    inits.push_back(tensor::EmptyOp::create(builder, loc, shape, type.getElementType()));
  }
  const unsigned count = loop.getNumResults();
  auto longer = scf::ForOp::create(
      builder, loc, getIndex(builder, 0), getIndex(builder, trips), getIndex(builder, 1), inits,
      [&](OpBuilder &inner, Location, Value trip, ValueRange values) {
        IRMapping mapping;
        mapping.map(loop.getInductionVar(), getCounter(inner, trip));
        mapping.map(loop.getRegionIterArgs(), values.take_front(count));
        for (Operation &op : loop.getBody()->without_terminator())
          inner.clone(op, mapping);
        SmallVector<Value> next;
        for (Value value : loop.getYieldedValues())
          next.push_back(mapping.lookupOrDefault(value));
        for (auto [index, all] : llvm::zip_equal(kept, values.drop_front(count))) {
          auto type = cast<RankedTensorType>(values[index].getType());
          next.push_back(tensor::InsertSliceOp::create(
              inner, loc, values[index], all, getOffsets(type, trip), getRowSizes(inner, type),
              getOnes(inner, type.getRank() + 1)));
        }
        scf::YieldOp::create(inner, loc, next);
      });
  loop->replaceAllUsesWith(longer.getResults().take_front(count));
  rows.assign(count, Value());
  for (auto [number, index] : llvm::enumerate(kept))
    rows[index] = longer.getResult(count + number);
}

/// Computes a trip again and builds the cotangents at its beginning from those at its end.
/// `mapping`: what the block's arguments are, `begins` of them those that the loop carries. `ends`:
/// what they are at the end of a trip. `carried`: as `Flow::inits`, and so are the results.
static FailureOr<SmallVector<Value>> differentiateTrip(OpBuilder &builder, Block &trip,
                                                       IRMapping &mapping, ArrayRef<Value> begins,
                                                       ValueRange ends, const Flow &flow,
                                                       ValueRange carried) {
  Location loc = trip.getParentOp()->getLoc();
  SmallVector<Operation *> ops;
  for (Operation &op : trip.without_terminator())
    ops.push_back(builder.clone(op, mapping));
  const auto &[active, weights, inits] = flow;
  SmallVector<Value> roots(weights);
  for (unsigned index : active)
    roots.push_back(begins[index]);
  FailureOr<DenseSet<Value>> reached = findActive(ops, roots);
  if (failed(reached))
    return failure();
  Cotangents inner(std::move(*reached));
  for (auto [weight, sum] : llvm::zip_equal(weights, carried.drop_front(active.size())))
    inner.set(weight, sum);
  for (auto [index, cotangent] : llvm::zip_equal(active, carried.take_front(active.size())))
    inner.add(builder, loc, mapping.lookupOrDefault(ends[index]), cotangent);
  if (failed(sweep(builder, ops, inner)))
    return failure();
  SmallVector<Value> next;
  for (unsigned index : active) {
    Value sum = inner.get(begins[index]);
    next.push_back(sum ? sum : createZeros(builder, loc, begins[index].getType()));
  }
  for (Value weight : weights)
    next.push_back(inner.get(weight));
  return next;
}

/// Builds the cotangents at the beginning of a trip from those at its end. `carried`: of the active
/// values, then of the weights so far.
FailureOr<SmallVector<Value>> LoopDerivative::buildTrip(OpBuilder &builder, Value trip,
                                                        ValueRange carried) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), getCounter(builder, trip));
  SmallVector<Value> begins;
  for (auto [argument, row, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), rows, loop.getInitArgs())) {
    auto type = cast<RankedTensorType>(argument.getType());
    begins.push_back(
        row ? tensor::ExtractSliceOp::create(builder, loc, type, row, getOffsets(type, trip),
                                             getRowSizes(builder, type),
                                             getOnes(builder, type.getRank() + 1))
                  .getResult()
            : tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType())
                  .getResult());
    mapping.map(argument, begins.back());
  }
  return differentiateTrip(builder, *loop.getBody(), mapping, begins, loop.getYieldedValues(), flow,
                           carried);
}

LogicalResult Flow::find(OpBuilder &builder, LoopLikeOpInterface loop, ArrayRef<Value> cotangents,
                         Cotangents &sums) {
  for (Type type : loop->getResultTypes())
    if (!isa<RankedTensorType>(type))
      return loop.emitOpError() << "has no gradient rule: it carries " << type
                                << "; carry a tensor of rank 0";
  llvm::SetVector<Value> reads;
  getUsedValuesDefinedAbove(loop->getRegions(), reads);
  for (Value read : reads) {
    if (!sums.isWanted(read))
      continue;
    if (!isa<RankedTensorType>(read.getType()))
      return loop.emitOpError() << "has no gradient rule: its body reads a scalar from outside, "
                                   "to which the gradient flows; read a tensor of rank 0";
    weights.push_back(read);
  }
  for (auto [index, result, cotangent] : llvm::enumerate(loop->getResults(), cotangents)) {
    if (!sums.isWanted(result))
      continue;
    active.push_back(index);
    inits.push_back(cotangent ? cotangent : createZeros(builder, loop.getLoc(), result.getType()));
  }
  for (Value weight : weights) {
    Value sum = sums.get(weight);
    inits.push_back(sum ? sum : createZeros(builder, loop.getLoc(), weight.getType()));
  }
  return success();
}

// The sums of weights have what there was before: what initial values get comes on top.
void Flow::finish(OpBuilder &builder, Location loc, ValueRange begins, ValueRange ends,
                  Cotangents &sums) const {
  for (auto [number, weight] : llvm::enumerate(weights))
    sums.set(weight, ends[active.size() + number]);
  for (auto [number, index] : llvm::enumerate(active))
    sums.add(builder, loc, begins[index], ends[number]);
}

LogicalResult LoopDerivative::build(OpBuilder &builder, ArrayRef<Value> cotangents) {
  if (failed(flow.find(builder, loop, cotangents, sums)))
    return failure();
  keepRows();
  auto backward = scf::ForOp::create(builder, loc, getIndex(builder, 0), getIndex(builder, trips),
                                     getIndex(builder, 1), flow.inits);
  // Rules look at the function around them, so the loop is there already.
  OpBuilder inner = OpBuilder::atBlockEnd(backward.getBody());
  Value last = getIndex(inner, trips - 1);
  Value trip = arith::SubIOp::create(inner, loc, last, backward.getInductionVar());
  FailureOr<SmallVector<Value>> next = buildTrip(inner, trip, backward.getRegionIterArgs());
  scf::YieldOp::create(inner, loc,
                       succeeded(next) ? ValueRange(*next) : backward.getRegionIterArgs());
  if (failed(next))
    return failure();
  flow.finish(builder, loc, loop.getInitArgs(), backward.getResults(), sums);
  return success();
}

/// Whether a loop carries its condition first, hands all others on as they are, and does not go on
/// after its first trip.
static bool runsOnceAtMost(scf::WhileOp loop) {
  Block &asked = *loop.getBeforeBody();
  ValueRange passed = asked.getTerminator()->getOperands();
  return llvm::hasSingleElement(asked) && llvm::equal(passed, asked.getArguments()) &&
         matchPattern(loop.getYieldOp().getOperand(0), m_Zero());
}

/// Builds the derivative of a loop that runs once or never. So does the derivative: if it does not
/// run, each cotangent goes to the value that the loop was given.
static LogicalResult buildOnce(OpBuilder &builder, scf::WhileOp loop, ArrayRef<Value> cotangents,
                               Cotangents &sums) {
  Flow flow;
  if (failed(flow.find(builder, loop, cotangents, sums)))
    return failure();
  SmallVector<Value> inits(loop.getInits());
  llvm::append_range(inits, flow.inits);
  auto backward = scf::WhileOp::create(
      builder, loop.getLoc(), TypeRange(ValueRange(ArrayRef(inits).drop_front())), inits,
      [](OpBuilder &inner, Location at, ValueRange values) {
        scf::ConditionOp::create(inner, at, values.front(), values.drop_front());
      },
      nullptr);
  // Rules look at the function around them, so the loop is there already.
  OpBuilder inner = OpBuilder::atBlockEnd(backward.getAfterBody());
  ValueRange values = backward.getAfterArguments();
  SmallVector<Value> begins(values.take_front(loop.getNumResults()));
  IRMapping mapping;
  mapping.map(loop.getAfterArguments(), begins);
  FailureOr<SmallVector<Value>> next = differentiateTrip(
      inner, *loop.getAfterBody(), mapping, begins, loop.getYieldOp().getOperands().drop_front(),
      flow, values.drop_front(begins.size()));
  SmallVector<Value> yielded = {arith::ConstantIntOp::create(inner, loop.getLoc(), 0, 1)};
  llvm::append_range(yielded, begins);
  llvm::append_range(yielded,
                     succeeded(next) ? ValueRange(*next) : values.drop_front(begins.size()));
  scf::YieldOp::create(inner, loop.getLoc(), yielded);
  if (failed(next))
    return failure();
  flow.finish(builder, loop.getLoc(), loop.getInits().drop_front(),
              backward.getResults().drop_front(begins.size()), sums);
  return success();
}

namespace {
struct ForRule : DifferentiableOpInterface::ExternalModel<ForRule, scf::ForOp> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents,
                         Cotangents &sums) const {
    auto loop = cast<scf::ForOp>(op);
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (!trips || !trips->isSignedIntN(32))
      return loop.emitOpError("has no gradient rule: its number of trips is no constant, and "
                              "gradients are of loops of known length");
    return LoopDerivative(loop, trips->getSExtValue(), sums).build(builder, cotangents);
  }
};

struct WhileRule : DifferentiableOpInterface::ExternalModel<WhileRule, scf::WhileOp> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents,
                         Cotangents &sums) const {
    auto loop = cast<scf::WhileOp>(op);
    if (!runsOnceAtMost(loop))
      return loop.emitOpError(
          "has no gradient rule: data decide its number of trips, and gradients "
          "are of loops of known length");
    return buildOnce(builder, loop, cotangents, sums);
  }
};
} // namespace

void weir::autodiff::registerLoopRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    scf::WhileOp::attachInterface<WhileRule>(*context);
    scf::ForOp::attachInterface<ForRule>(*context);
  });
}
