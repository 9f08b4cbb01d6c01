//===- AddressArithmetic.cpp - Values of single operations ----------------===//

#include "AddressValues.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weir;

/// Whether `expr` never wraps in `type`. Integers of fixed width may wrap unless their range fits.
bool AddressValues::fits(AffineExpr expr, Type type) const {
  if (type.isIndex())
    return true;
  Interval range = getRange(expr);
  unsigned width = type.getIntOrFloatBitWidth();
  return width <= 64 && range.lower && range.upper &&
         (width == 64 || (llvm::isIntN(width, *range.lower) && llvm::isIntN(width, *range.upper)));
}

/// Returns `expr` if it never wraps in `type`; null if it may, or is null.
AffineExpr AddressValues::fit(AffineExpr expr, Type type) const {
  return expr && fits(expr, type) ? expr : AffineExpr();
}

/// Returns the value if it is a known number.
std::optional<int64_t> AddressValues::getLiteral(Value value, const BodyFrame &frame) {
  auto expr = dyn_cast<AffineConstantExpr>(evaluate(value, frame));
  return expr ? std::optional(expr.getValue()) : std::nullopt;
}

AffineExpr AddressValues::computeArith(Operation *op, const BodyFrame &frame) {
  auto operand = [&](unsigned index) { return evaluate(op->getOperand(index), frame); };
  if (isa<arith::IndexCastOp, arith::ExtSIOp, index::CastSOp>(op))
    return fit(operand(0), op->getResult(0).getType());
  if (isa<arith::IndexCastUIOp, arith::ExtUIOp, arith::TruncIOp, index::CastUOp>(op))
    return isNonNegative(operand(0)) ? fit(operand(0), op->getResult(0).getType()) : AffineExpr();
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp, index::AddOp, index::SubOp,
          index::MulOp, index::ShlOp>(op))
    return computeSum(op, frame);
  if (isa<arith::AndIOp, index::AndOp>(op))
    return computeAnd(op, frame);
  if (isa<arith::OrIOp, arith::XOrIOp>(op))
    return computeOr(op, frame);
  if (isa<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp, index::MinSOp,
          index::MinUOp, index::MaxSOp, index::MaxUOp>(op))
    return computeMinMax(op, frame);
  if (isa<affine::AffineMinOp>(op))
    return computeAffineMin(op, frame);
  if (isa<arith::SelectOp>(op))
    return computeSelect(op, frame);
  return computeQuotient(op, frame);
}

/// Returns the value of a sum, a difference, a product or a shift to the left.
AffineExpr AddressValues::computeSum(Operation *op, const BodyFrame &frame) {
  Type type = op->getResult(0).getType();
  auto operand = [&](unsigned index) { return evaluate(op->getOperand(index), frame); };
  if (isa<arith::AddIOp, index::AddOp>(op)) {
    if (AffineExpr global = matchGlobalId(op))
      return global;
    return fit(operand(0) + operand(1), type);
  }
  if (isa<arith::SubIOp, index::SubOp>(op))
    return fit(operand(0) - operand(1), type);
  if (isa<arith::MulIOp, index::MulOp>(op)) {
    if (std::optional<int64_t> factor = getLiteral(op->getOperand(1), frame))
      return fit(operand(0) * *factor, type);
    if (std::optional<int64_t> factor = getLiteral(op->getOperand(0), frame))
      return fit(operand(1) * *factor, type);
    return {};
  }
  std::optional<int64_t> bits = getLiteral(op->getOperand(1), frame);
  return bits && *bits >= 0 && *bits < 62 ? fit(operand(0) * (int64_t(1) << *bits), type)
                                          : AffineExpr();
}

/// Returns the value of a quotient, a remainder or a shift to the right.
AffineExpr AddressValues::computeQuotient(Operation *op, const BodyFrame &frame) {
  bool isShift = isa<arith::ShRUIOp, arith::ShRSIOp, index::ShrUOp, index::ShrSOp>(op);
  bool isQuotient = isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp, index::DivUOp,
                        index::DivSOp, index::FloorDivSOp>(op);
  bool isCeiling =
      isa<arith::CeilDivUIOp, arith::CeilDivSIOp, index::CeilDivUOp, index::CeilDivSOp>(op);
  bool isRemainder = isa<arith::RemUIOp, arith::RemSIOp, index::RemUOp, index::RemSOp>(op);
  if (!isShift && !isQuotient && !isCeiling && !isRemainder)
    return {};
  std::optional<int64_t> divisor = getLiteral(op->getOperand(1), frame);
  if (isShift && divisor)
    divisor = *divisor >= 0 && *divisor < 62 ? std::optional(int64_t(1) << *divisor) : std::nullopt;
  if (!divisor || *divisor <= 0)
    return {};
  AffineExpr dividend = evaluate(op->getOperand(0), frame);
  bool rounds = isa<arith::ShRSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, index::ShrSOp,
                    index::FloorDivSOp, index::CeilDivSOp>(op);
  if (!rounds && !isNonNegative(dividend))
    return {};
  if (isRemainder)
    return dividend % *divisor;
  return isCeiling ? dividend.ceilDiv(*divisor) : dividend.floorDiv(*divisor);
}

AffineExpr AddressValues::computeAnd(Operation *op, const BodyFrame &frame) {
  Value value = op->getResult(0);
  std::optional<int64_t> mask = getLiteral(op->getOperand(1), frame);
  AffineExpr other = evaluate(op->getOperand(0), frame);
  if (!mask) {
    mask = getLiteral(op->getOperand(0), frame);
    other = evaluate(op->getOperand(1), frame);
  }
  if (!mask)
    return {};
  if (*mask >= 0 && llvm::isMask_64(*mask))
    return other % (*mask + 1);
  if (*mask < 0 && llvm::isPowerOf2_64(-uint64_t(*mask)))
    return fit(other - other % -*mask, value.getType());
  return *mask >= 0 ? addOpaque(value, frame, {0, *mask}) : AffineExpr();
}

AffineExpr AddressValues::computeOr(Operation *op, const BodyFrame &frame) {
  auto operand = [&](unsigned index) { return evaluate(op->getOperand(index), frame); };
  // It is a sum if no bit can be set in both.
  for (bool swapped : {false, true}) {
    AffineExpr high = operand(swapped), low = operand(!swapped);
    Interval range = getRange(low);
    int64_t step = high.getLargestKnownDivisor();
    if (range.lower && *range.lower >= 0 && range.upper && step > 0 &&
        llvm::isPowerOf2_64(step & -step) && *range.upper < (step & -step))
      return fit(high + low, op->getResult(0).getType());
  }
  for (bool swapped : {false, true})
    if (std::optional<int64_t> mask = getLiteral(op->getOperand(!swapped), frame);
        mask && isa<arith::XOrIOp>(op))
      return flipBits(operand(swapped), *mask);
  return {};
}

/// Returns the smaller bound; nothing where one is not known.
static std::optional<int64_t> getMin(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
}

/// Returns the larger bound; nothing where one is not known.
static std::optional<int64_t> getMax(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
}

/// Adds a variable for `value` that is at least each of `below` and at most each of `above`.
AffineExpr AddressValues::addBetween(Value value, ArrayRef<AffineExpr> below,
                                     ArrayRef<AffineExpr> above, Interval range,
                                     const BodyFrame &frame) {
  AffineExpr expr = addOpaque(value, frame, range);
  auto &known = getVariable(expr).nonNegative;
  for (AffineExpr bound : below)
    known.push_back(expr - bound);
  for (AffineExpr bound : above)
    known.push_back(bound - expr);
  return expr;
}

AffineExpr AddressValues::computeMinMax(Operation *op, const BodyFrame &frame) {
  Value value = op->getResult(0);
  AffineExpr a = evaluate(op->getOperand(0), frame), b = evaluate(op->getOperand(1), frame);
  bool isUnsigned = isa<arith::MinUIOp, arith::MaxUIOp, index::MinUOp, index::MaxUOp>(op);
  if (isUnsigned && !(isNonNegative(a) && isNonNegative(b)))
    return {};
  Interval x = getRange(a), y = getRange(b);
  if (isa<arith::MinSIOp, arith::MinUIOp, index::MinSOp, index::MinUOp>(op)) {
    std::optional<int64_t> upper = x.upper && y.upper ? getMin(x.upper, y.upper)
                                   : x.upper          ? x.upper
                                                      : y.upper;
    return addBetween(value, {}, {a, b}, {getMin(x.lower, y.lower), upper}, frame);
  }
  std::optional<int64_t> lower = x.lower && y.lower ? getMax(x.lower, y.lower)
                                 : x.lower          ? x.lower
                                                    : y.lower;
  return addBetween(value, {a, b}, {}, {lower, getMax(x.upper, y.upper)}, frame);
}

AffineExpr AddressValues::computeAffineMin(Operation *op, const BodyFrame &frame) {
  auto minimum = cast<affine::AffineMinOp>(op);
  SmallVector<AffineExpr> bounds;
  Interval range;
  for (unsigned i = 0; i < minimum.getAffineMap().getNumResults(); ++i) {
    AffineExpr bound = replaceDims(minimum.getAffineMap(), minimum.getOperands(), i, frame);
    if (!bound)
      return {};
    Interval one = getRange(bound);
    range.lower = i ? getMin(range.lower, one.lower) : one.lower;
    if (one.upper)
      range.upper = range.upper ? std::min(*range.upper, *one.upper) : *one.upper;
    bounds.push_back(bound);
  }
  return addBetween(op->getResult(0), {}, bounds, range, frame);
}

AffineExpr AddressValues::computeSelect(Operation *op, const BodyFrame &frame) {
  AffineExpr a = evaluate(op->getOperand(1), frame), b = evaluate(op->getOperand(2), frame);
  if (a == b)
    return a;
  if (auto distance = dyn_cast<AffineConstantExpr>(a - b))
    if (AffineExpr bit = getBit(op->getOperand(0), frame))
      return b + bit * distance.getValue();
  Interval x = getRange(a), y = getRange(b);
  return addOpaque(op->getResult(0), frame, {getMin(x.lower, y.lower), getMax(x.upper, y.upper)});
}

/// Returns the global id if `sum` is `block_id * block_dim + thread_id` and the size of a
/// workgroup, which the product needs to be affine, is not known.
AffineExpr AddressValues::matchGlobalId(Operation *sum) {
  for (bool swapped : {false, true}) {
    auto product = sum->getOperand(swapped).getDefiningOp();
    auto thread = sum->getOperand(!swapped).getDefiningOp<gpu::ThreadIdOp>();
    if (!isa_and_nonnull<arith::MulIOp, index::MulOp>(product) || !thread)
      continue;
    unsigned axis = unsigned(thread.getDimension());
    if (sizes.workgroup[axis])
      return {};
    auto isId = [&](Value value) {
      auto id = value.getDefiningOp<gpu::BlockIdOp>();
      return id && id.getDimension() == thread.getDimension();
    };
    auto isSize = [&](Value value) {
      auto size = value.getDefiningOp<gpu::BlockDimOp>();
      return size && size.getDimension() == thread.getDimension();
    };
    if ((isId(product->getOperand(0)) && isSize(product->getOperand(1))) ||
        (isId(product->getOperand(1)) && isSize(product->getOperand(0))))
      return getId(Kind::Global, axis, std::nullopt);
  }
  return {};
}

/// Returns `expr ^ mask`, or null: each run of ones in the mask flips a field of `expr`.
AffineExpr AddressValues::flipBits(AffineExpr expr, int64_t mask) {
  if (mask == -1)
    return constant(-1) - expr;
  if (mask < 0 || !isNonNegative(expr))
    return {};
  for (AffineExpr field = expr; mask;) {
    unsigned low = llvm::countr_zero(uint64_t(mask));
    unsigned size = llvm::countr_one(uint64_t(mask) >> low);
    int64_t unit = int64_t(1) << low, count = int64_t(1) << size;
    mask -= unit * (count - 1);
    expr = expr + unit * (constant(count - 1) - field.floorDiv(unit) % count * 2);
  }
  return expr;
}

/// Returns a condition as 0 or 1, or null where that is not affine.
AffineExpr AddressValues::getBit(Value condition, const BodyFrame &frame) {
  auto within = [&](AffineExpr expr, int64_t lower, int64_t upper) {
    Interval range = getRange(expr);
    return range.lower && range.upper && *range.lower >= lower && *range.upper <= upper;
  };
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isIntOrIndex()) {
    AffineExpr expr = evaluate(condition, frame);
    return within(expr, -1, 0) ? -expr : AffineExpr();
  }
  bool isEqual = compare.getPredicate() == arith::CmpIPredicate::eq;
  if (!isEqual && compare.getPredicate() != arith::CmpIPredicate::ne)
    return {};
  AffineExpr difference = evaluate(compare.getLhs(), frame) - evaluate(compare.getRhs(), frame);
  if (within(difference, -1, 0))
    difference = -difference;
  else if (!within(difference, 0, 1))
    return {};
  return isEqual ? constant(1) - difference : difference;
}
