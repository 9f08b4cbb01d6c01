//===- Sharding.cpp - Values that differ by rank --------------------------===//

#include "weir/Autodiff/Sharding.h"

#include "Entries.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "weir/Artifact/Notes.h"

using namespace mlir;
using namespace weir;

/// Returns the axes that an attribute of `function` stands for. Without a grid there is one.
static GridAxes readAxes(func::FuncOp function, Attribute attribute) {
  GridAxes axes = 0;
  if (auto listed = dyn_cast_or_null<DenseI64ArrayAttr>(attribute)) {
    for (int64_t axis : listed.asArrayRef())
      axes |= 1U << axis;
  } else if (attribute) {
    auto grids = function->getParentOfType<ModuleOp>().getOps<shard::GridOp>();
    size_t count = grids.empty() ? 1 : (*grids.begin()).getShape().size();
    axes = (1U << count) - 1;
  }
  return axes;
}

GridAxes weir::getArgumentAxes(func::FuncOp function, unsigned index) {
  return readAxes(function, function.getArgAttr(index, shardedAttrName));
}

GridAxes weir::getResultAxes(func::FuncOp function, unsigned index) {
  return readAxes(function, function.getResultAttr(index, shardedAttrName));
}

unsigned weir::getAxis(Operation *collective) {
  auto axes = collective->getAttrOfType<DenseI16ArrayAttr>("grid_axes");
  return axes && !axes.empty() ? axes[0] : 0; // the gate refuses collectives without an axis
}

FailureOr<shard::GridOp> weir::findGrid(func::FuncOp function) {
  auto grids = function->getParentOfType<ModuleOp>().getOps<shard::GridOp>();
  if (!grids.empty())
    return *grids.begin();
  return function.emitOpError() << "has arguments with " << shardedAttrName
                                << ", but the module has no shard.grid, which says how many ranks "
                                << "there are";
}

Attribute weir::getSharding(func::FuncOp function, unsigned index) {
  Attribute sharded = function.getArgAttr(index, shardedAttrName);
  return isa_and_nonnull<StringAttr>(sharded) ? UnitAttr::get(function.getContext()) : sharded;
}

StringRef weir::getUnit(func::FuncOp function, unsigned index) {
  auto unit = function.getArgAttrOfType<StringAttr>(index, shardedAttrName);
  return unit ? unit.getValue() : "";
}

bool weir::isCollective(Operation *op) {
  return isa<shard::AllReduceOp, shard::AllGatherOp, shard::ReduceScatterOp, shard::AllSliceOp>(op);
}

bool weir::hasCollectives(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isCollective(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

VaryingValues::VaryingValues(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    values[argument] = getArgumentAxes(function, argument.getArgNumber());
  for (Operation &op : function.getBody().front()) {
    GridAxes axes = getAxesReadBy(&op);
    if (isa<shard::ReduceScatterOp, shard::AllSliceOp>(op))
      axes |= 1U << getAxis(&op);
    else if (isCollective(&op))
      axes &= ~(1U << getAxis(&op));
    for (Value result : op.getResults())
      values[result] = axes;
  }
}

GridAxes VaryingValues::getAxesReadBy(Operation *op) const {
  GridAxes axes = 0;
  op->walk([&](Operation *inner) {
    for (Value value : inner->getOperands())
      axes |= getAxes(value);
  });
  return axes;
}

LogicalResult weir::verifyCollectives(func::FuncOp function) {
  VaryingValues varying(function);
  LogicalResult result = success();
  for (Operation &op : function.getBody().front()) {
    if (!isCollective(&op))
      continue;
    bool varies = varying.getAxes(op.getOperand(0)) & (1U << getAxis(&op));
    if (isa<shard::AllSliceOp>(op) && varies)
      result = op.emitOpError("takes slices of a value that differs by rank; gather it first, or "
                              "slice it on each rank");
    else if (!isa<shard::AllSliceOp>(op) && !varies)
      result = op.emitOpError("is of a value that all ranks share, so each rank would count once "
                              "more; leave the op out, or mark the argument that differs by rank "
                              "with ")
               << shardedAttrName;
  }
  return result;
}

LogicalResult weir::verifyShardedResults(func::FuncOp function) {
  // An argument's next value has its name.
  auto findDonor = [&](StringRef name) -> std::optional<unsigned> {
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      if (function.getArgAttr(index, schedule::donateAttrName) &&
          autodiff::getArgumentName(function, index) == name)
        return index;
    return std::nullopt;
  };
  VaryingValues varying(function);
  LogicalResult result = success();
  for (OpOperand &operand : function.getBody().front().getTerminator()->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    std::string name = autodiff::getResultName(function, index);
    GridAxes axes = getResultAxes(function, index);
    std::optional<unsigned> donor = findDonor(name);
    if (name == statusName) // each rank's own
      continue;
    if (varying.getAxes(operand.get()) & ~axes)
      result = function.emitOpError()
               << "has result '" << name << "', which differs by rank: no shard.all_reduce or "
               << "shard.all_gather makes it one value; add it, or mark the result with "
               << shardedAttrName;
    else if (donor && (axes & ~getArgumentAxes(function, *donor)))
      result = function.emitOpError()
               << "has result '" << name << "' with " << shardedAttrName
               << ", but the argument that it replaces is the same on all ranks";
  }
  return result;
}
