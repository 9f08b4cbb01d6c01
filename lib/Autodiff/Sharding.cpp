//===- Sharding.cpp - Values that differ by rank --------------------------===//

#include "weir/Autodiff/Sharding.h"

#include "Entries.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "weir/Artifact/Notes.h"

using namespace mlir;
using namespace weir;

bool weir::isShardedArgument(func::FuncOp function, unsigned index) {
  return bool(function.getArgAttr(index, shardedAttrName));
}

bool weir::isShardedResult(func::FuncOp function, unsigned index) {
  return bool(function.getResultAttr(index, shardedAttrName));
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
    if (isShardedArgument(function, argument.getArgNumber()))
      values.insert(argument);
  for (Operation &op : function.getBody().front()) {
    bool varies = isa<shard::ReduceScatterOp, shard::AllSliceOp>(op) ||
                  (!isCollective(&op) && areReadBy(&op));
    if (varies)
      values.insert(op.result_begin(), op.result_end());
  }
}

bool VaryingValues::areReadBy(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(), [&](Value value) { return contains(value); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult weir::verifyCollectives(func::FuncOp function) {
  VaryingValues varying(function);
  LogicalResult result = success();
  for (Operation &op : function.getBody().front()) {
    if (!isCollective(&op))
      continue;
    bool varies = varying.contains(op.getOperand(0));
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
    bool isSharded = isShardedResult(function, index);
    std::optional<unsigned> donor = findDonor(name);
    if (name == statusName) // each rank's own
      continue;
    if (varying.contains(operand.get()) && !isSharded)
      result = function.emitOpError()
               << "has result '" << name << "', which differs by rank: no shard.all_reduce or "
               << "shard.all_gather makes it one value; add it, or mark the result with "
               << shardedAttrName;
    else if (donor && isSharded && !isShardedArgument(function, *donor))
      result = function.emitOpError()
               << "has result '" << name << "' with " << shardedAttrName
               << ", but the argument that it replaces is the same on all ranks";
  }
  return result;
}
