//===- AddressValues.cpp - Variables, ids, sizes and conditions -----------===//

#include "AddressValues.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "weir/Analysis/Uniformity.h"

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

unsigned AddressValues::addVariable(MapVariable variable) {
  variables.push_back(std::move(variable));
  return variables.size() - 1;
}

MapVariable &AddressValues::getVariable(AffineExpr dim) {
  return variables[cast<AffineDimExpr>(dim).getPosition()];
}

AffineExpr AddressValues::addOpaque(Value value, const BodyFrame &frame, Interval range) {
  if (!range.lower || !range.upper) {
    Interval inferred = inferRange(value);
    range.lower = range.lower ? range.lower : inferred.lower;
    range.upper = range.upper ? range.upper : inferred.upper;
  }
  return addUnbounded(value, frame, range);
}

/// Adds a variable for `value` with this range only, since inferring one costs more than all else.
AffineExpr AddressValues::addUnbounded(Value value, const BodyFrame &frame, Interval range) {
  MapVariable variable;
  variable.value = value;
  Agreement agreement = getAgreement(value, frame, dominance);
  variable.scope = agreement.scope;
  variable.varies = agreement.varies;
  variable.lower = range.lower;
  variable.upper = range.upper;
  return dim(addVariable(std::move(variable)));
}

/// Returns the range that is inferred for a value of the kernel's own body.
Interval AddressValues::inferRange(Value value) {
  if (!value.getType().isIntOrIndex())
    return {};
  if (!ranges)
    ranges.emplace(kernel);
  std::optional<ConstantIntRanges> range = ranges->get(value);
  if (!range)
    return {};
  Interval interval;
  if (!range->smin().isMinSignedValue() || range->smin().getBitWidth() == 1)
    interval.lower = range->smin().getSExtValue();
  if (!range->smax().isMaxSignedValue() || range->smax().getBitWidth() == 1)
    interval.upper = range->smax().getSExtValue();
  return interval;
}

AffineExpr AddressValues::getId(Kind kind, unsigned axis, std::optional<int64_t> size) {
  auto [it, isNew] = ids.try_emplace({kind, axis});
  if (isNew) {
    MapVariable variable;
    variable.kind = kind;
    variable.axis = axis;
    variable.lower = 0;
    if (size)
      variable.upper = *size - 1;
    it->second = addVariable(std::move(variable));
  }
  return dim(it->second);
}

unsigned AddressValues::getTrip(Operation *loop, const BodyFrame &frame) {
  if (frame.outer) // one variable for the loop, whatever trip it is met in
    return getTrip(loop, *frame.outer);
  auto [it, isNew] = trips.try_emplace({&frame, loop});
  if (isNew) {
    MapVariable variable;
    variable.kind = Kind::Trip;
    variable.loop = loop;
    variable.lower = 0;
    it->second = addVariable(std::move(variable));
  }
  return it->second;
}

DenseMap<Operation *, unsigned> AddressValues::getTrips(const BodyFrame &frame) const {
  DenseMap<Operation *, unsigned> result;
  for (auto [key, variable] : trips)
    if (key.first == &frame)
      result[key.second] = variable;
  return result;
}

bool AddressValues::isNonNegative(AffineExpr expr) const {
  std::optional<int64_t> lower = getRange(expr).lower;
  return lower && *lower >= 0;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

AffineExpr AddressValues::evaluate(Value value, const BodyFrame &inner) {
  const BodyFrame &frame = inner.getHome(value);
  if (auto it = exprs.find({&frame, value}); it != exprs.end())
    return it->second;
  // A value that is computed from itself around a loop is opaque inside it.
  AffineExpr expr = compute(value, frame);
  if (!expr)
    expr = addOpaque(value, frame);
  return exprs[{&frame, value}] = expr;
}

AffineExpr AddressValues::evaluate(OpFoldResult value, const BodyFrame &frame) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return constant(cast<IntegerAttr>(attribute).getInt());
  return evaluate(cast<Value>(value), frame);
}

AffineExpr AddressValues::replaceDims(AffineMap map, ValueRange operands, unsigned result,
                                      const BodyFrame &frame) {
  SmallVector<AffineExpr> dims, symbols;
  for (auto [index, operand] : llvm::enumerate(operands))
    (index < map.getNumDims() ? dims : symbols).push_back(evaluate(operand, frame));
  AffineExpr expr = map.getResult(result).replaceDimsAndSymbols(dims, symbols);
  return expr.isPureAffine() ? expr : AffineExpr();
}

AffineExpr AddressValues::compute(Value value, const BodyFrame &frame) {
  if (!value.getType().isIntOrIndex())
    return {};
  APInt literal;
  if (matchPattern(value, m_ConstantInt(&literal)))
    return literal.getSignificantBits() <= 64 ? constant(literal.getSExtValue()) : AffineExpr();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return computeArgument(argument, frame);
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  if (AffineExpr id = computeId(op))
    return id;
  if (AffineExpr size = computeSize(op, frame))
    return size;
  if (AffineExpr shape = computeShape(result, frame))
    return shape;
  if (AffineExpr affine = computeAffine(result, frame))
    return affine;
  return computeArith(op, frame);
}

AffineExpr AddressValues::computeId(Operation *op) {
  auto bound = [&](std::optional<int64_t> known, std::optional<APInt> stated) {
    std::optional<int64_t> size = known;
    if (stated && stated->getActiveBits() < 63 &&
        (!size || int64_t(stated->getZExtValue()) < *size))
      size = stated->getZExtValue();
    return size;
  };
  if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
    unsigned axis = unsigned(id.getDimension());
    return getId(Kind::Workgroup, axis, bound(sizes.grid[axis], id.getUpperBound()));
  }
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op)) {
    unsigned axis = unsigned(id.getDimension());
    return getId(Kind::Invocation, axis, bound(sizes.workgroup[axis], id.getUpperBound()));
  }
  if (auto id = dyn_cast<gpu::LaneIdOp>(op))
    return getId(Kind::Lane, 0, bound(sizes.subgroup, id.getUpperBound()));
  if (auto id = dyn_cast<gpu::SubgroupIdOp>(op))
    return getId(Kind::Subgroup, 0, bound(sizes.countSubgroups(), id.getUpperBound()));
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op)) {
    unsigned axis = unsigned(id.getDimension());
    if (!sizes.workgroup[axis])
      return getId(Kind::Global, axis, bound(std::nullopt, id.getUpperBound()));
    AffineExpr workgroup = getId(Kind::Workgroup, axis, sizes.grid[axis]);
    return workgroup * *sizes.workgroup[axis] +
           getId(Kind::Invocation, axis, sizes.workgroup[axis]);
  }
  return {};
}

/// Returns the value of an op that asks for a size of the launch.
AffineExpr AddressValues::computeSize(Operation *op, const BodyFrame &frame) {
  auto size = [&](std::optional<int64_t> known) {
    return known ? constant(*known) : addOpaque(op->getResult(0), frame, {1, std::nullopt});
  };
  if (auto dim = dyn_cast<gpu::BlockDimOp>(op))
    return size(sizes.workgroup[unsigned(dim.getDimension())]);
  if (auto dim = dyn_cast<gpu::GridDimOp>(op))
    return size(sizes.grid[unsigned(dim.getDimension())]);
  if (isa<gpu::SubgroupSizeOp>(op))
    return size(sizes.subgroup);
  if (isa<gpu::NumSubgroupsOp>(op))
    return size(sizes.countSubgroups());
  return {};
}

/// Returns the value of an op that asks for the shape or layout of a memref.
AffineExpr AddressValues::computeShape(OpResult value, const BodyFrame &frame) {
  Operation *op = value.getOwner();
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    auto type = dyn_cast<MemRefType>(dim.getSource().getType());
    if (index && type && *index >= 0 && *index < type.getRank() && !type.isDynamicDim(*index))
      return constant(type.getDimSize(*index));
    return addOpaque(value, frame, {0, std::nullopt});
  }
  auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op);
  if (!metadata)
    return {};
  auto [strides, offset] = metadata.getSource().getType().getStridesAndOffset();
  ArrayRef<int64_t> shape = metadata.getSource().getType().getShape();
  unsigned rank = shape.size(), result = value.getResultNumber();
  int64_t known = result == 1         ? offset
                  : result < 2 + rank ? shape[result - 2]
                                      : strides[result - 2 - rank];
  return ShapedType::isDynamic(known) ? AffineExpr() : constant(known);
}

AffineExpr AddressValues::computeAffine(OpResult value, const BodyFrame &frame) {
  Operation *op = value.getOwner();
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return replaceDims(apply.getAffineMap(), apply.getMapOperands(), 0, frame);
  if (auto delinearize = dyn_cast<affine::AffineDelinearizeIndexOp>(op)) {
    unsigned result = value.getResultNumber();
    SmallVector<int64_t> basis;
    for (OpFoldResult size : delinearize.getEffectiveBasis()) {
      std::optional<int64_t> known = getConstantIntValue(size);
      if (!known || *known <= 0)
        return {};
      basis.push_back(*known);
    }
    AffineExpr rest = evaluate(delinearize.getLinearIndex(), frame);
    // Without an outer bound the first result is the rest.
    bool outer = basis.size() == delinearize.getNumResults();
    for (unsigned i = delinearize.getNumResults(); --i > result;)
      rest = rest.floorDiv(basis[outer ? i : i - 1]);
    return result == 0 ? rest : rest % basis[outer ? result : result - 1];
  }
  if (auto linearize = dyn_cast<affine::AffineLinearizeIndexOp>(op)) {
    SmallVector<OpFoldResult> basis = linearize.getMixedBasis();
    unsigned count = linearize.getMultiIndex().size();
    bool outer = basis.size() == count;
    AffineExpr sum = constant(0);
    for (auto [index, part] : llvm::enumerate(linearize.getMultiIndex())) {
      if (index > 0) {
        std::optional<int64_t> known = getConstantIntValue(basis[outer ? index : index - 1]);
        if (!known)
          return {};
        sum = sum * *known;
      }
      sum = sum + evaluate(part, frame);
    }
    return sum;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// Adds that `left` and `right` compare as `predicate` says.
void AddressValues::addComparison(arith::CmpIPredicate predicate, AffineExpr left, AffineExpr right,
                                  Conditions &at) {
  using Predicate = arith::CmpIPredicate;
  switch (predicate) {
  case Predicate::eq:
    at.zero.push_back(left - right);
    return;
  case Predicate::ne: {
    // Less or greater: a condition if one of them is impossible.
    Interval difference = getRange(left - right);
    if (difference.lower && *difference.lower >= 0)
      at.nonNegative.push_back(left - right - 1);
    else if (difference.upper && *difference.upper <= 0)
      at.nonNegative.push_back(right - left - 1);
    else
      at.certain = false;
    return;
  }
  case Predicate::slt:
  case Predicate::ult:
    at.nonNegative.push_back(right - left - 1);
    return;
  case Predicate::sle:
  case Predicate::ule:
    at.nonNegative.push_back(right - left);
    return;
  case Predicate::sgt:
  case Predicate::ugt:
    at.nonNegative.push_back(left - right - 1);
    return;
  case Predicate::sge:
  case Predicate::uge:
    at.nonNegative.push_back(left - right);
    return;
  }
}

void AddressValues::addCondition(Value condition, bool holds, Conditions &at,
                                 const BodyFrame &frame) {
  APInt literal;
  if (matchPattern(condition, m_ConstantInt(&literal))) {
    if (literal.isZero() == holds) // never executed
      at.zero.push_back(constant(1));
    return;
  }
  Operation *op = condition.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
      compare && compare.getLhs().getType().isIntOrIndex()) {
    using Predicate = arith::CmpIPredicate;
    Predicate predicate =
        holds ? compare.getPredicate() : arith::invertPredicate(compare.getPredicate());
    bool isSigned = predicate != Predicate::ult && predicate != Predicate::ule &&
                    predicate != Predicate::ugt && predicate != Predicate::uge;
    if (!isSigned &&
        (!isNeverNegative(compare.getLhs(), frame) || !isNeverNegative(compare.getRhs(), frame)))
      at.certain = false;
    else
      addComparison(predicate, evaluate(compare.getLhs(), frame), evaluate(compare.getRhs(), frame),
                    at);
    return;
  }
  if (isa_and_nonnull<arith::XOrIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&literal)))
    return addCondition(op->getOperand(0), literal.isZero() == holds, at, frame);
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op) && isa<arith::AndIOp>(op) == holds) {
    addCondition(op->getOperand(0), holds, at, frame);
    addCondition(op->getOperand(1), holds, at, frame);
    return;
  }
  // At least one of two conditions holds, which is no condition on either.
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) {
    at.certain = false;
    return;
  }
  if (AffineExpr bit = getBit(condition, frame))
    at.zero.push_back(bit - (holds ? 1 : 0));
  else
    at.certain = false;
}

std::optional<bool> AddressValues::decide(Value condition, const BodyFrame &frame) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isIntOrIndex())
    return std::nullopt;
  auto left = dyn_cast<AffineConstantExpr>(evaluate(compare.getLhs(), frame));
  auto right = dyn_cast<AffineConstantExpr>(evaluate(compare.getRhs(), frame));
  if (!left || !right)
    return std::nullopt;
  return arith::applyCmpPredicate(compare.getPredicate(), APInt(64, left.getValue(), true),
                                  APInt(64, right.getValue(), true));
}
