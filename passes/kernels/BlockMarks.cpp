//===- BlockMarks.cpp - Marks that survive rewriting ----------------------===//

#include "passes/kernels/BlockMarks.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "weir/Kernels/Domain.h"

using namespace mlir;
using namespace weir;

BlockMarks::BlockMarks(func::FuncOp function) : function(function) {
  function.walk([&](linalg::GenericOp op) {
    Attribute number = op->getAttr(schedule::inBlocksAttrName);
    if (!number)
      return;
    Builder builder(op);
    Location own = builder.getFusedLoc(
        op->getLoc(), builder.getArrayAttr({builder.getStringAttr(schedule::inBlocksAttrName),
                                            number, builder.getI64IntegerAttr(marks.size())}));
    marks.try_emplace(Attribute(LocationAttr(own)), Mark{number, op->getLoc()});
    op->setLoc(own);
  });
}

const BlockMarks::Mark *BlockMarks::find(Operation *op) const {
  auto found = marks.find(Attribute(LocationAttr(op->getLoc())));
  return found == marks.end() ? nullptr : &found->second;
}

void BlockMarks::restore() {
  if (marks.empty())
    return;
  function.walk([&](linalg::GenericOp op) {
    if (const Mark *mark = find(op); mark && getOpShape(op) == OpShape::Contraction)
      op->setAttr(schedule::inBlocksAttrName, mark->number);
  });
}

BlockMarks::~BlockMarks() {
  if (marks.empty())
    return;
  restore();
  function.walk([&](Operation *op) {
    if (const Mark *mark = find(op))
      op->setLoc(mark->location);
  });
}
