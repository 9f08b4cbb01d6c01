//===- AddressLoops.cpp - Values that change from trip to trip ------------===//

#include "AddressValues.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weir;

AffineExpr AddressValues::computeArgument(BlockArgument argument, const BodyFrame &frame) {
  if (frame.isArgument(argument))
    return frame.caller ? evaluate(frame.getPassed(argument.getArgNumber()), *frame.caller)
                        : AffineExpr();
  // It is a variable for now, so that values computed from it around the loop end the recursion.
  // Its range is inferred only if it stays one, which is rare, since that costs more than all else.
  AffineExpr self = exprs[{&frame, argument}] = addUnbounded(argument, frame);
  AffineExpr expr = computeInLoop(argument, self, frame);
  MapVariable &variable = getVariable(self);
  if (expr == self && (!variable.lower || !variable.upper)) {
    Interval range = inferRange(argument);
    variable.lower = variable.lower ? variable.lower : range.lower;
    variable.upper = variable.upper ? variable.upper : range.upper;
  }
  return expr;
}

/// Returns what a block's argument is in each trip of the loop that carries it, or `self`, of which
/// it may then know more, where that is not affine.
AffineExpr AddressValues::computeInLoop(BlockArgument argument, AffineExpr self,
                                        const BodyFrame &frame) {
  Block *block = argument.getOwner();
  Operation *parent = block->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    AffineExpr trip = dim(getTrip(loop, frame));
    if (argument == loop.getInductionVar())
      return computeInductionVariable(argument, self, trip, frame);
    unsigned index = argument.getArgNumber() - loop.getNumInductionVars();
    return carry(self, argument, loop.getInitArgs()[index], loop.getYieldedValues()[index], trip,
                 frame);
  }
  if (auto loop = dyn_cast<affine::AffineForOp>(parent)) {
    AffineExpr trip = dim(getTrip(loop, frame));
    if (argument == loop.getInductionVar())
      return computeInductionVariable(argument, self, trip, frame);
    unsigned index = argument.getArgNumber() - 1;
    return carry(self, argument, loop.getInits()[index], loop.getYieldedValues()[index], trip,
                 frame);
  }
  if (auto loop = dyn_cast<scf::ParallelOp>(parent)) {
    // One trip variable for all dimensions would say nothing, but each dimension has a range.
    unsigned index = argument.getArgNumber();
    AffineExpr first = evaluate(loop.getLowerBound()[index], frame);
    AffineExpr last = evaluate(loop.getUpperBound()[index], frame);
    MapVariable &variable = getVariable(self);
    variable.lower = getRange(first).lower;
    variable.upper = addBounds(getRange(last).upper, -1);
    return self;
  }
  if (auto carried = getCarried(argument, frame, dominance))
    return carry(self, argument, carried->first, carried->second, dim(frame.headers.lookup(block)),
                 frame);
  return self;
}

/// Returns the induction variable of an `scf.for` or `affine.for`, or `self`.
AffineExpr AddressValues::computeInductionVariable(BlockArgument argument, AffineExpr self,
                                                   AffineExpr trip, const BodyFrame &frame) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<affine::AffineForOp>(parent)) {
    AffineMap lower = loop.getLowerBoundMap();
    if (lower.getNumResults() == 1)
      if (AffineExpr first = replaceDims(lower, loop.getLowerBoundOperands(), 0, frame))
        return first + trip * loop.getStepAsInt();
    return self;
  }
  auto loop = cast<scf::ForOp>(parent);
  auto step = dyn_cast<AffineConstantExpr>(evaluate(loop.getStep(), frame));
  AffineExpr first = evaluate(loop.getLowerBound(), frame);
  if (step)
    return first + trip * step.getValue();
  MapVariable &variable = getVariable(self);
  variable.lower = getRange(first).lower;
  variable.nonNegative.push_back(self - first);
  return self;
}

/// Returns `argument`, which is `init` on the first trip of a loop and `next` on each other, or
/// `self`, with a range where that is known.
AffineExpr AddressValues::carry(AffineExpr self, BlockArgument argument, Value init, Value next,
                                AffineExpr trip, const BodyFrame &frame) {
  AffineExpr first = evaluate(init, frame);
  if (AffineExpr expr = computeCarried(argument, first, next, trip))
    return expr;
  // A value that is halved from trip to trip, or the like, stays between 0 and its start.
  Interval range = getRange(first);
  Operation *op = next.getDefiningOp();
  if (range.lower && *range.lower >= 0 && op && op->getNumOperands() == 2 &&
      op->getOperand(0) == argument &&
      isa<arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp, arith::RemUIOp, arith::MinUIOp,
          arith::AndIOp, index::ShrUOp, index::ShrSOp, index::DivUOp, index::RemUOp, index::MinUOp,
          index::AndOp>(op)) {
    MapVariable &variable = getVariable(self);
    variable.lower = std::max<int64_t>(variable.lower.value_or(0), 0);
    if (range.upper)
      variable.upper = std::min(variable.upper.value_or(*range.upper), *range.upper);
  }
  return self;
}

/// Returns the value that a loop carries as `argument`: `init` on the first trip, then `next`.
/// Errors: null where that is not affine in `trip`.
AffineExpr AddressValues::computeCarried(BlockArgument argument, AffineExpr init, Value next,
                                         AffineExpr trip) {
  if (next == argument)
    return init;
  Operation *op = next.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return {};
  APInt literal;
  auto isConstant = [&](unsigned index) {
    return matchPattern(op->getOperand(index), m_ConstantInt(&literal)) &&
           literal.getSignificantBits() <= 64;
  };
  Type type = argument.getType();
  // A loop of unknown length is assumed not to overflow a counter of 32 bits or more.
  auto count = [&](int64_t step) {
    AffineExpr expr = init + trip * step;
    Interval range = getRange(expr);
    bool isLong = !type.isIndex() && type.getIntOrFloatBitWidth() >= 32;
    bool isKnown = range.lower && range.upper;
    return (isLong && !isKnown) || fits(expr, type) ? expr : AffineExpr();
  };
  auto start = dyn_cast<AffineConstantExpr>(init);
  if (isa<arith::AddIOp>(op) && ((op->getOperand(0) == argument && isConstant(1)) ||
                                 (op->getOperand(1) == argument && isConstant(0))))
    return count(literal.getSExtValue());
  if (isa<arith::SubIOp>(op) && op->getOperand(0) == argument && isConstant(1))
    return count(-literal.getSExtValue());
  if (!start)
    return {};
  // Two values in turn.
  auto alternate = [&](int64_t other) {
    return fits(constant(other), type) ? init + trip % 2 * (other - start.getValue())
                                       : AffineExpr();
  };
  if (isa<arith::SubIOp>(op) && isConstant(0) && op->getOperand(1) == argument)
    return alternate(literal.getSExtValue() - start.getValue());
  if (isa<arith::XOrIOp>(op) && op->getOperand(0) == argument && isConstant(1))
    return alternate(start.getValue() ^ literal.getSExtValue());
  // One of n values in turn.
  if (isa<arith::RemUIOp, arith::RemSIOp>(op) && isConstant(1)) {
    int64_t modulus = literal.getSExtValue();
    auto sum = op->getOperand(0).getDefiningOp<arith::AddIOp>();
    if (!sum || sum.getLhs() != argument || !matchPattern(sum.getRhs(), m_ConstantInt(&literal)) ||
        modulus <= 0 || start.getValue() < 0 || start.getValue() >= modulus ||
        literal.isNegative() || !fits(constant(modulus - 1) + literal.getSExtValue(), type))
      return {};
    return (init + trip * literal.getSExtValue()) % modulus;
  }
  return {};
}

/// Whether a value, read as signed, is at least 0 on every trip of every loop: it is so at first,
/// and each operation around the loop keeps it so.
bool AddressValues::isNeverNegative(Value value, const BodyFrame &frame) {
  SmallVector<Value> open = {value};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value part = open.pop_back_val();
    if (!seen.insert(part).second)
      continue;
    if (isNonNegative(evaluate(part, frame)))
      continue;
    if (std::optional<int64_t> lower = inferRange(part).lower; lower && *lower >= 0)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(part)) {
      // An induction variable has no choices: only values that a loop carries do.
      std::optional<SmallVector<Value>> passed = getChoices(argument, frame);
      if (!passed || llvm::is_contained(*passed, Value()))
        return false;
      llvm::append_range(open, *passed);
      continue;
    }
    Operation *op = part.getDefiningOp();
    APInt literal;
    auto isAtLeast = [&](int64_t min) {
      return matchPattern(op->getOperand(1), m_ConstantInt(&literal)) && literal.sge(min);
    };
    if (isa<arith::ShRUIOp>(op) ? isAtLeast(1) : isa<arith::DivUIOp>(op) && isAtLeast(2))
      continue;
    bool keeps = isa<arith::SelectOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::MinSIOp,
                     arith::MaxSIOp, arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp, arith::DivSIOp,
                     arith::RemUIOp, arith::RemSIOp>(op) ||
                 (isa<arith::AddIOp, arith::MulIOp, arith::ShLIOp>(op) && part.getType().isIndex());
    if (!keeps)
      return false;
    llvm::append_range(open, isa<arith::SelectOp>(op) ? op->getOperands().drop_front()
                                                      : op->getOperands());
  }
  return true;
}
