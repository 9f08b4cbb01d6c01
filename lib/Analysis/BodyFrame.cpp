//===- BodyFrame.cpp - Function bodies as calls and trips reach them ------===//

#include "BodyFrame.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace weir;

const BodyFrame &BodyFrame::getHome(Value value) const {
  Operation *parent = value.getParentRegion()->getParentOp();
  const BodyFrame *home = this;
  while (home->outer && !home->loop->isAncestor(parent))
    home = home->outer;
  return *home;
}

bool BodyFrame::isArgument(BlockArgument argument) const {
  Block *block = argument.getOwner();
  return block->isEntryBlock() && block->getParentOp() == function;
}

Value BodyFrame::getPassed(unsigned index) const {
  CallOpInterface from = call; // whose methods are not const
  return from.getArgOperands()[index];
}

std::optional<SmallVector<Value>> weir::getChoices(Value value, const BodyFrame &frame) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Block *block = argument.getOwner();
    Operation *parent = block->getParentOp();
    if (frame.isArgument(argument))
      return std::nullopt;
    if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      unsigned index = argument.getArgNumber();
      if (block == loop.getBeforeBody())
        return SmallVector<Value>{loop.getInits()[index], loop.getYieldOp().getOperand(index)};
      return SmallVector<Value>{loop.getConditionOp().getArgs()[index]};
    }
    if (auto loop = dyn_cast<LoopLikeOpInterface>(parent)) {
      OpOperand *init = loop.getTiedLoopInit(argument);
      OpOperand *yielded = loop.getTiedLoopYieldedValue(argument);
      if (!init || !yielded)
        return std::nullopt;
      return SmallVector<Value>{init->get(), yielded->get()};
    }
    if (block->isEntryBlock())
      return std::nullopt;
    SmallVector<Value> passed;
    for (auto edge = block->pred_begin(); edge != block->pred_end(); ++edge) {
      auto branch = dyn_cast<BranchOpInterface>((*edge)->getTerminator());
      passed.push_back(
          branch ? branch.getSuccessorOperands(edge.getSuccessorIndex())[argument.getArgNumber()]
                 : Value());
    }
    return passed;
  }
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isa<arith::SelectOp>(op))
    return SmallVector<Value>{op->getOperand(1), op->getOperand(2)};
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return SmallVector<Value>{branch.thenYield().getOperand(index),
                              branch.elseYield().getOperand(index)};
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return SmallVector<Value>{loop.getConditionOp().getArgs()[index]};
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op);
      loop && index < loop.getInits().size() && index < loop.getYieldedValues().size())
    return SmallVector<Value>{loop.getInits()[index], loop.getYieldedValues()[index]};
  return std::nullopt;
}

std::optional<std::pair<Value, Value>>
weir::getCarried(BlockArgument argument, const BodyFrame &frame, DominanceInfo &dominance) {
  Block *block = argument.getOwner();
  if (!frame.headers.contains(block))
    return std::nullopt;
  Value init, next;
  for (auto edge = block->pred_begin(); edge != block->pred_end(); ++edge) {
    auto branch = dyn_cast<BranchOpInterface>((*edge)->getTerminator());
    if (!branch)
      return std::nullopt;
    Value passed = branch.getSuccessorOperands(edge.getSuccessorIndex())[argument.getArgNumber()];
    Value &value = dominance.dominates(block, *edge) ? next : init;
    if (!passed || (value && value != passed))
      return std::nullopt;
    value = passed;
  }
  return init && next ? std::optional(std::pair(init, next)) : std::nullopt;
}
