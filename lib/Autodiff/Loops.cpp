//===- Loops.cpp - Derivatives of loops of known length -------------------===//
//
// The forward loop keeps what each trip begins with, one row of a tensor for each. A second loop
// walks the trips backward: it computes a trip again from its row, and then its cotangents from
// those of the trip behind it.
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir::autodiff;

namespace {
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
  SmallVector<Value> rows;      ///< by carried value; null: not read
  SmallVector<unsigned> active; ///< carried values through which gradients flow
  SmallVector<Value> weights;   ///< what the body reads from outside and is wanted
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
  SmallVector<Operation *> ops;
  for (Operation &op : loop.getBody()->without_terminator())
    ops.push_back(builder.clone(op, mapping));
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
    inner.add(builder, loc, mapping.lookupOrDefault(loop.getYieldedValues()[index]), cotangent);
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

LogicalResult LoopDerivative::build(OpBuilder &builder, ArrayRef<Value> cotangents) {
  for (Type type : loop.getResultTypes())
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
  SmallVector<Value> inits;
  for (auto [index, result, cotangent] : llvm::enumerate(loop.getResults(), cotangents)) {
    if (!sums.isWanted(result))
      continue;
    active.push_back(index);
    inits.push_back(cotangent ? cotangent : createZeros(builder, loc, result.getType()));
  }
  for (Value weight : weights) {
    Value sum = sums.get(weight);
    inits.push_back(sum ? sum : createZeros(builder, loc, weight.getType()));
  }
  keepRows();
  auto backward = scf::ForOp::create(builder, loc, getIndex(builder, 0), getIndex(builder, trips),
                                     getIndex(builder, 1), inits);
  // Rules look at the function around them, so the loop is there already.
  OpBuilder inner = OpBuilder::atBlockEnd(backward.getBody());
  Value last = getIndex(inner, trips - 1);
  Value trip = arith::SubIOp::create(inner, loc, last, backward.getInductionVar());
  FailureOr<SmallVector<Value>> next = buildTrip(inner, trip, backward.getRegionIterArgs());
  scf::YieldOp::create(inner, loc,
                       succeeded(next) ? ValueRange(*next) : backward.getRegionIterArgs());
  if (failed(next))
    return failure();
  // The loop's sums of weights have what there was before: what initial values get comes on top.
  for (auto [number, weight] : llvm::enumerate(weights))
    sums.set(weight, backward.getResult(active.size() + number));
  for (auto [number, index] : llvm::enumerate(active))
    sums.add(builder, loc, loop.getInitArgs()[index], backward.getResult(number));
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
} // namespace

void weir::autodiff::registerLoopRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    scf::ForOp::attachInterface<ForRule>(*context);
  });
}
