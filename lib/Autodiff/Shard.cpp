//===- Shard.cpp - Derivatives of collectives -----------------------------===//
//
// Cotangents are those of one loss that all ranks share. Of a value that all ranks share there is
// one cotangent, which all have; of a value that differs by rank each has its own. So where a
// shared value is read by an op of one rank, what flows back is a rank's part of a sum over the
// ranks (`SharedReads`), and behind an all-reduce the cotangent is there already.
//
//===----------------------------------------------------------------------===//

#include "Shard.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "weir/Autodiff/Sharding.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

namespace {
/// The rule of a collective: `derive` takes the cotangent of its result.
template <typename Op, Value (*derive)(Op op, OpBuilder &b, Value g)>
struct CollectiveRule : DifferentiableOpInterface::ExternalModel<CollectiveRule<Op, derive>, Op> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents,
                         Cotangents &sums) const {
    if (sums.isWanted(op->getOperand(0)))
      sums.add(builder, op->getLoc(), op->getOperand(0),
               derive(cast<Op>(op), builder, cotangents.front()));
    return success();
  }
};
} // namespace

/// y = the sum of all x: each x adds to y as it is.
static Value reduce(shard::AllReduceOp, OpBuilder &, Value g) { return g; }

/// The cotangent of a whole is sliced as the whole was gathered. Where it is a sum over the ranks
/// that nothing else needs, each rank asks for its slice of the sum alone.
static Value gather(shard::AllGatherOp op, OpBuilder &b, Value g) {
  IntegerAttr axis = op.getGatherAxisAttr();
  auto copy = g.getDefiningOp<tensor::CastOp>(); // of a shared read, which is removed at the end
  auto sum = copy ? copy.getSource().getDefiningOp<shard::AllReduceOp>() : nullptr;
  bool isAlong = sum && getAxis(sum) == getAxis(op);
  if (isAlong && sum->hasOneUse() && copy->use_empty())
    return shard::ReduceScatterOp::create(b, op.getLoc(), op.getInput().getType(),
                                          sum.getGridAttr(), sum.getGridAxesAttr(), sum.getInput(),
                                          sum.getReductionAttr(), axis);
  return shard::AllSliceOp::create(b, op.getLoc(), op.getInput().getType(), op.getGridAttr(),
                                   op.getGridAxesAttr(), g, axis);
}

static Value scatter(shard::ReduceScatterOp op, OpBuilder &b, Value g) {
  return shard::AllGatherOp::create(b, op.getLoc(), op.getInput().getType(), op.getGridAttr(),
                                    op.getGridAxesAttr(), g, op.getScatterAxisAttr());
}

static Value slice(shard::AllSliceOp op, OpBuilder &b, Value g) {
  return shard::AllGatherOp::create(b, op.getLoc(), op.getInput().getType(), op.getGridAttr(),
                                    op.getGridAxesAttr(), g, op.getSliceAxisAttr());
}

void weir::autodiff::registerShardRules(DialectRegistry &registry) {
  registry.insert<shard::ShardDialect>();
  registry.addExtension(+[](MLIRContext *context, shard::ShardDialect *) {
    using namespace shard;
    AllReduceOp::attachInterface<CollectiveRule<AllReduceOp, reduce>>(*context);
    AllGatherOp::attachInterface<CollectiveRule<AllGatherOp, gather>>(*context);
    ReduceScatterOp::attachInterface<CollectiveRule<ReduceScatterOp, scatter>>(*context);
    AllSliceOp::attachInterface<CollectiveRule<AllSliceOp, ::slice>>(*context);
  });
}

Value weir::autodiff::addAlong(OpBuilder &builder, Location loc, Value part, StringRef grid,
                               GridAxes axes) {
  for (unsigned axis = 0; axes >> axis; ++axis)
    if (axes >> axis & 1)
      part = shard::AllReduceOp::create(builder, loc, part, grid, shard::GridAxis(axis),
                                        shard::ReductionKind::Sum);
  return part;
}

SharedReads::SharedReads(func::FuncOp function, StringRef grid) : function(function), grid(grid) {}

/// Returns the ops that compute from gathered values alone, and the axes along which all ops that
/// read their results also read values that differ. Each rank along these may have them for itself,
/// so that the sum of backward is that of the gathered value: with the gather's own rule each rank
/// then gets its part of it alone.
static DenseMap<Operation *, GridAxes> findOwn(Block &block, const VaryingValues &varying,
                                               const DenseSet<Value> &active) {
  DenseSet<Value> gathered;
  SmallVector<Operation *> candidates;
  for (Operation &op : block.without_terminator()) {
    bool isGather = isa<shard::AllGatherOp>(op);
    if (!isGather && (isCollective(&op) || varying.getAxesReadBy(&op)))
      continue;
    SmallVector<Value> reads;
    op.walk([&](Operation *inner) {
      llvm::copy_if(inner->getOperands(), std::back_inserter(reads),
                    [&](Value value) { return active.contains(value); });
    });
    if (!isGather && (reads.empty() || !llvm::all_of(reads, [&](Value value) {
                        return gathered.contains(value) || value.getParentBlock() != &block;
                      })))
      continue;
    gathered.insert(op.result_begin(), op.result_end());
    if (!isGather)
      candidates.push_back(&op);
  }
  DenseMap<Operation *, GridAxes> own;
  for (Operation *op : llvm::reverse(candidates)) {
    GridAxes axes = op->use_empty() ? 0 : ~GridAxes(0);
    for (Operation *user : op->getUsers()) {
      Operation *reader = block.findAncestorOpInBlock(*user);
      bool isOp = reader != block.getTerminator() && !isCollective(reader);
      axes &= isOp ? varying.getAxesReadBy(reader) | own.lookup(reader) : 0;
    }
    if (axes)
      own[op] = axes;
  }
  return own;
}

LogicalResult SharedReads::mark(DenseSet<Value> &active) {
  VaryingValues varying(function);
  Block &block = function.getBody().front();
  DenseMap<Operation *, GridAxes> ownAxes = findOwn(block, varying, active);
  DenseMap<std::pair<Value, GridAxes>, Value> handed;
  OpBuilder builder(function.getContext());
  LogicalResult result = success();
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    GridAxes axes = varying.getAxesReadBy(&op) | ownAxes.lookup(&op);
    if (isCollective(&op) || !axes)
      continue;
    op.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands()) {
        Value value = operand.get();
        GridAxes missing = axes & ~(varying.getAxes(value) | ownAxes.lookup(value.getDefiningOp()));
        if (value.getParentBlock() != &block || !active.contains(value) || !missing)
          continue;
        if (!isa<RankedTensorType>(value.getType())) {
          result = op.emitOpError("reads a number that all ranks share beside values that differ "
                                  "by rank, and the gradient flows to it; give it as a tensor of "
                                  "rank 0");
          continue;
        }
        Value &own = handed[{value, missing}];
        if (!own) {
          builder.setInsertionPointAfterValue(value);
          own = tensor::CastOp::create(builder, value.getLoc(), value.getType(), value);
          active.insert(own);
          marks[own] = missing;
        }
        operand.set(own);
      }
    });
  }
  return result;
}

Value SharedReads::addParts(OpBuilder &builder, Value result, Value total) const {
  return addAlong(builder, result.getLoc(), total, grid, marks.lookup(result));
}

void SharedReads::unmark() {
  for (auto cast : llvm::make_early_inc_range(function.getBody().front().getOps<tensor::CastOp>()))
    if (cast.getSource().getType() == cast.getType()) {
      cast.replaceAllUsesWith(cast.getSource());
      cast.erase();
    }
}
