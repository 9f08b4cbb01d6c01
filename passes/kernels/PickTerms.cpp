//===- PickTerms.cpp - Sums of which one term is not zero -----------------===//
//
// A sum over the elements of a row that keeps the one whose number equals another number is that
// element. Front ends and the loss of norm.softmax_cross_entropy write it so, since a sum stays in
// the kernel of its row. Reading the element takes one load a row, where the sum takes four
// instructions an element.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/PickTerms.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "weir/Kernels/Emitter.h"
#include "llvm/ADT/SetVector.h"

#include <functional>

using namespace mlir;
using namespace weir;

namespace {
/// A sum with one term: its loop over `dim` has the term where the loop's index is `number`.
struct Pick {
  unsigned dim = 0;
  Value number;
  Value term;
};
} // namespace

/// Whether a value of a body is the same for all indices of a loop.
static bool isSameAlong(linalg::GenericOp op, Value value, unsigned dim) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() != op.getBody() ||
           (argument.getArgNumber() < op.getNumDpsInputs() &&
            !op.getIndexingMapsArray()[argument.getArgNumber()].isFunctionOfDim(dim));
  Operation *maker = value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(maker))
    return index.getDim() != dim;
  return maker->getBlock() != op.getBody() ||
         (maker->getNumRegions() == 0 && isMemoryEffectFree(maker) &&
          llvm::all_of(maker->getOperands(),
                       [&](Value operand) { return isSameAlong(op, operand, dim); }));
}

/// Whether a value is the index of a loop, as an integer that holds all of them.
static bool isIndexOf(Value value, unsigned dim) {
  constexpr unsigned minBits = 32;
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>()) {
    if (!value.getType().isIndex() && value.getType().getIntOrFloatBitWidth() < minBits)
      return false;
    value = cast.getIn();
  }
  auto index = value.getDefiningOp<linalg::IndexOp>();
  return index && index.getDim() == dim;
}

/// Whether the elements of a tensor are in memory when a kernel of its readers runs: those of an
/// argument, or of a contraction with what follows it.
static bool liesInMemory(Value value) {
  auto maker = value.getDefiningOp<linalg::GenericOp>();
  if (!maker)
    return isa<BlockArgument>(value);
  if (getOpShape(maker) == OpShape::Contraction)
    return true;
  return getOpShape(maker) == OpShape::Pointwise &&
         llvm::any_of(maker.getInputs(), [&](Value input) {
           auto product = input.getDefiningOp<linalg::GenericOp>();
           return product && product->hasOneUse() && getOpShape(product) == OpShape::Contraction &&
                  cast<RankedTensorType>(input.getType()).getNumElements() ==
                      cast<RankedTensorType>(value.getType()).getNumElements();
         });
}

/// Returns how `op` picks a term, if it does, and if each operand that varies along the picked
/// loop is in memory.
static std::optional<Pick> findPick(linalg::GenericOp op) {
  // The invocations of a subgroup compare a shorter row in a step or two, without another wait.
  constexpr int64_t minSize = 33, maxSize = std::numeric_limits<int32_t>::max();
  if (op.getNumReductionLoops() != 1 || op.getNumDpsInits() != 1 ||
      op->hasAttr(schedule::noFuseAttrName))
    return std::nullopt;
  Pick pick;
  while (op.getIteratorTypesArray()[pick.dim] != utils::IteratorType::reduction)
    ++pick.dim;
  auto zero = dyn_cast_if_present<FloatAttr>(Attribute(getSplat(op.getDpsInits()[0])));
  BlockArgument sum = op.getRegionOutputArgs().front();
  auto add = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!zero || !zero.getValue().isPosZero() || !sum.hasOneUse() || !add ||
      op.getStaticLoopRanges()[pick.dim] < minSize || op.getStaticLoopRanges()[pick.dim] > maxSize)
    return std::nullopt;
  Value term = add.getLhs() == sum ? add.getRhs() : add.getRhs() == sum ? add.getLhs() : Value();
  auto choice = term ? term.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  if (!choice || !matchPattern(choice.getFalseValue(), m_AnyZeroFloat()))
    return std::nullopt;
  pick.term = choice.getTrueValue();
  auto compare = choice.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (auto [index, number] : {std::pair(compare.getLhs(), compare.getRhs()),
                               std::pair(compare.getRhs(), compare.getLhs())})
    if (isIndexOf(index, pick.dim) && isSameAlong(op, number, pick.dim))
      pick.number = number;
  if (!pick.number)
    return std::nullopt;
  for (Operation &inner : op.getBody()->without_terminator())
    if (inner.getNumRegions() || !isMemoryEffectFree(&inner))
      return std::nullopt;
  for (OpOperand *input : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(input).isFunctionOfDim(pick.dim) && !liesInMemory(input->get()))
      return std::nullopt;
  return pick;
}

/// Replaces a sum by the term that it picks, and by 0 where there is none.
static void readTerm(linalg::GenericOp op, const Pick &pick) {
  OpBuilder builder(op);
  MLIRContext *context = op.getContext();
  const int64_t size = op.getStaticLoopRanges()[pick.dim];
  // The loops that are left.
  SmallVector<AffineExpr> left;
  for (unsigned dim = 0, next = 0; dim < op.getNumLoops(); ++dim)
    left.push_back(dim == pick.dim ? getAffineConstantExpr(0, context)
                                   : getAffineDimExpr(next++, context));
  auto drop = [&](AffineMap map) {
    return map.replaceDimsAndSymbols(left, {}, op.getNumLoops() - 1, 0);
  };
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands())
    if (AffineMap map = op.getMatchingIndexingMap(input); !map.isFunctionOfDim(pick.dim)) {
      inputs.push_back(input->get());
      maps.push_back(drop(map));
    }
  maps.push_back(drop(op.getIndexingMapsArray().back()));
  SmallVector<utils::IteratorType> loops(op.getNumLoops() - 1, utils::IteratorType::parallel);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value empty =
      tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
  auto body = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    IRMapping known;
    SmallVector<Value> at(op.getNumLoops());
    for (unsigned dim = 0, next = 0; dim < op.getNumLoops(); ++dim)
      if (dim != pick.dim)
        at[dim] = linalg::IndexOp::create(b, loc, next++);
    unsigned next = 0;
    SmallVector<OpOperand *> varying;
    for (OpOperand *input : op.getDpsInputOperands())
      if (op.getMatchingIndexingMap(input).isFunctionOfDim(pick.dim))
        varying.push_back(input);
      else
        known.map(op.getMatchingBlockArgument(input), arguments[next++]);
    auto cloneFor = [&](Value value) {
      SetVector<Operation *> needed;
      std::function<void(Value)> add = [&](Value each) {
        Operation *maker = each.getDefiningOp();
        if (!maker || maker->getBlock() != op.getBody() || known.contains(each))
          return;
        if (auto index = dyn_cast<linalg::IndexOp>(maker)) {
          known.map(each, at[index.getDim()]);
          return;
        }
        llvm::for_each(maker->getOperands(), add);
        needed.insert(maker);
      };
      add(value);
      for (Operation *maker : needed)
        b.clone(*maker, known);
      return known.lookupOrDefault(value);
    };
    Value number = cloneFor(pick.number);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIntegerAttr(number.getType(), value));
    };
    Value isAbove = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, number, constant(0));
    Value isBelow =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, constant(size));
    Value isThere = arith::AndIOp::create(b, loc, isAbove, isBelow);
    // A wide integer is clamped before it becomes an index, which may have fewer bits.
    Value inside = arith::MaxSIOp::create(b, loc, number, constant(0));
    inside = arith::MinSIOp::create(b, loc, inside, constant(size - 1));
    at[pick.dim] = inside.getType().isIndex()
                       ? inside
                       : arith::IndexCastOp::create(b, loc, b.getIndexType(), inside).getResult();
    for (OpOperand *input : varying) {
      auto place = affine::expandAffineMap(b, loc, op.getMatchingIndexingMap(input), at);
      known.map(op.getMatchingBlockArgument(input),
                tensor::ExtractOp::create(b, loc, input->get(), *place).getResult());
    }
    Value term = cloneFor(pick.term);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(term.getType()));
    Value picked = arith::SelectOp::create(b, loc, isThere, term, zero);
    linalg::YieldOp::create(b, loc, Value(arith::AddFOp::create(b, loc, zero, picked)));
  };
  Value read =
      linalg::GenericOp::create(builder, op.getLoc(), type, inputs, empty, maps, loops, body)
          .getResult(0);
  op->getResult(0).replaceAllUsesWith(read);
  op.erase();
}

void weir::pickTerms(func::FuncOp function) {
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::GenericOp>()))
    if (std::optional<Pick> pick = findPick(op))
      readTerm(op, *pick);
}
