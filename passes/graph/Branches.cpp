//===- Branches.cpp - Choices between tensors -----------------------------===//
//
// A plan has no branches. Where both can be computed, both are, and their results are selected:
// that costs no wait for the device. What has a loop inside may never end if it is not taken, so it
// runs once or never, which a plan can say: as a loop.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/Branches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace weir;

/// Chooses between two scalars, or between two tensors as a whole.
static Value createSelect(OpBuilder &builder, Location loc, Value condition, Value ifTrue,
                          Value ifFalse) {
  if (ifTrue == ifFalse)
    return ifTrue;
  auto type = dyn_cast<RankedTensorType>(ifTrue.getType());
  if (!type)
    return arith::SelectOp::create(builder, loc, condition, ifTrue, ifFalse);
  Value out = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> maps(3, builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, ValueRange{ifTrue, ifFalse}, out, maps, loops,
             [&](OpBuilder &inner, Location at, ValueRange values) {
               Value chosen = arith::SelectOp::create(inner, at, condition, values[0], values[1]);
               linalg::YieldOp::create(inner, at, chosen);
             })
      .getResult(0);
}

/// Whether a branch may be computed though it is not taken.
static bool isComputedAlways(Block &branch) {
  return llvm::all_of(branch, [](Operation &op) {
    return !isa<scf::ForOp, scf::WhileOp>(op) &&
           (isa<tensor::ExtractOp, scf::YieldOp>(op) || isPure(&op));
  });
}

/// Moves the ops of a branch in front of the choice. Returns the branch's results.
static SmallVector<Value> hoist(scf::IfOp op, Block &branch) {
  for (Operation &inner : llvm::make_early_inc_range(branch.without_terminator()))
    inner.moveBefore(op);
  return llvm::to_vector(branch.getTerminator()->getOperands());
}

/// Whether a loop can carry values of this type.
static bool isCarried(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || (tensor.hasStaticShape() && tensor.getNumElements() > 0);
}

static bool isEmpty(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 0;
}

/// Makes a loop that computes a branch once if `condition` holds. Otherwise its results are
/// `values`.
static SmallVector<Value> runOnce(OpBuilder &builder, Location loc, Value condition, Block &branch,
                                  ArrayRef<Value> values) {
  SmallVector<Value> inits = {condition}, ends;
  for (auto [value, end] : llvm::zip_equal(values, branch.getTerminator()->getOperands()))
    if (isCarried(value.getType())) {
      inits.push_back(value);
      ends.push_back(end);
    }
  auto loop = scf::WhileOp::create(
      builder, loc, TypeRange(ValueRange(ArrayRef(inits).drop_front())), inits,
      [&](OpBuilder &inner, Location at, ValueRange carried) {
        scf::ConditionOp::create(inner, at, carried.front(), carried.drop_front());
      },
      [&](OpBuilder &inner, Location at, ValueRange) {
        Block *body = inner.getInsertionBlock();
        body->getOperations().splice(body->end(), branch.getOperations(), branch.begin(),
                                     branch.getTerminator()->getIterator());
        inner.setInsertionPointToEnd(body);
        ends.insert(ends.begin(), arith::ConstantIntOp::create(inner, at, 0, 1));
        scf::YieldOp::create(inner, at, ends);
      });
  SmallVector<Value> results(values);
  auto next = loop.getResults().begin();
  for (Value &result : results)
    if (isCarried(result.getType()))
      result = *next++;
  return results;
}

/// Returns what a loop carries before it has computed it.
static SmallVector<Value> createZeros(OpBuilder &builder, Location loc, TypeRange types) {
  return llvm::map_to_vector(types, [&](Type type) -> Value {
    return arith::ConstantOp::create(builder, loc, type, builder.getZeroAttr(type));
  });
}

static SmallVector<Value> replace(scf::IfOp op) {
  Block &then = *op.thenBlock(), &otherwise = *op.elseBlock();
  APInt known;
  if (matchPattern(op.getCondition(), m_ConstantInt(&known)))
    return hoist(op, known.isZero() ? otherwise : then);
  OpBuilder builder(op);
  Location loc = op.getLoc();
  const bool first = isComputedAlways(then), second = isComputedAlways(otherwise);
  if (first && second) {
    SmallVector<Value> results;
    SmallVector<Value> ifTrue = hoist(op, then), ifFalse = hoist(op, otherwise);
    for (auto [one, other] : llvm::zip_equal(ifTrue, ifFalse))
      results.push_back(createSelect(builder, loc, op.getCondition(), one, other));
    return results;
  }
  SmallVector<Value> results;
  if (!first && !second)
    results = createZeros(builder, loc, op.getResultTypes());
  else
    results = hoist(op, first ? then : otherwise);
  if (!first)
    results = runOnce(builder, loc, op.getCondition(), then, results);
  if (!second) {
    Value one = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value inverse = arith::XOrIOp::create(builder, loc, op.getCondition(), one);
    results = runOnce(builder, loc, inverse, otherwise, results);
  }
  return results;
}

void weir::replaceBranches(func::FuncOp function) {
  SmallVector<scf::IfOp> choices; // the innermost first
  function.walk([&](scf::IfOp op) {
    if (op.getNumResults())
      choices.push_back(op);
  });
  for (scf::IfOp op : choices) {
    // In the body of an op there are no loops.
    const bool isBody = !isa<func::FuncOp, scf::ForOp, scf::WhileOp, scf::IfOp>(op->getParentOp());
    const bool isFlat = isComputedAlways(*op.thenBlock()) && isComputedAlways(*op.elseBlock());
    if (!isFlat && (isBody || !llvm::all_of(op.getResultTypes(), [](Type type) {
                      return isCarried(type) || isEmpty(type);
                    })))
      continue;
    op->replaceAllUsesWith(replace(op));
    op.erase();
  }
}
