//===- SequenceNumbers.cpp - What the trip and the point decide -----------===//
//
// A walk over the trips of a loop reads elements at places that its counter decides. Follows these,
// and the elements of slices and reshapes, as expressions of the point and the trip.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/SequenceFormer.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "weir/Graph/Graph.h"

using namespace mlir;
using namespace weir;

Value SequenceFormer::getOnlyElement(Value tensor) {
  auto made = tensor.getDefiningOp<tensor::FromElementsOp>();
  return made && made.getElements().size() == 1 ? made.getElements().front() : Value();
}

//===----------------------------------------------------------------------===//
// Numbers that the trip and the point decide
//===----------------------------------------------------------------------===//

std::optional<SequenceFormer::Bounds> SequenceFormer::getBounds(AffineExpr expr) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return Bounds{number.getValue(), number.getValue()};
  if (auto own = dyn_cast<AffineDimExpr>(expr)) {
    unsigned position = own.getPosition();
    return Bounds{0, (position == shape.size() ? trips : shape[position]) - 1};
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<Bounds> left = getBounds(binary.getLHS()), right = getBounds(binary.getRHS());
  constexpr int64_t most = int64_t(1) << 31; // products stay in 64 bits
  auto isSmall = [](Bounds bounds) { return bounds.low >= -most && bounds.high <= most; };
  if (!left || !right || !isSmall(*left) || !isSmall(*right))
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return Bounds{left->low + right->low, left->high + right->high};
  int64_t factor = right->low;
  if (factor != right->high)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Mul)
    return Bounds{std::min(left->low * factor, left->high * factor),
                  std::max(left->low * factor, left->high * factor)};
  if (factor <= 0 || left->low < 0)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Mod)
    return left->high < factor ? *left : Bounds{0, factor - 1};
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return Bounds{left->low / factor, left->high / factor};
  return std::nullopt;
}

/// Whether a number of this type never wraps around.
bool SequenceFormer::fits(AffineExpr expr, Type type) {
  std::optional<Bounds> bounds = getBounds(expr);
  if (!bounds || type.isInteger(1))
    return false;
  if (type.isIndex() || type.getIntOrFloatBitWidth() >= 64)
    return true;
  int64_t end = int64_t(1) << (type.getIntOrFloatBitWidth() - 1);
  return bounds->low >= -end && bounds->high < end;
}

/// Returns whether a comparison holds at all points, or nothing if that depends on the point.
std::optional<bool> SequenceFormer::isTrue(Value condition, Frame *frame) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  AffineExpr left = getNumber(compare.getLhs(), frame), right = getNumber(compare.getRhs(), frame);
  std::optional<Bounds> one = left && right ? getBounds(left) : std::nullopt;
  std::optional<Bounds> two = one ? getBounds(right) : std::nullopt;
  if (!two)
    return std::nullopt;
  auto isBefore = [](Bounds a, Bounds b, bool orEqual) -> std::optional<bool> {
    if (orEqual ? a.high <= b.low : a.high < b.low)
      return true;
    if (orEqual ? a.low > b.high : a.low >= b.high)
      return false;
    return std::nullopt;
  };
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return isBefore(*one, *two, false);
  case arith::CmpIPredicate::sle:
    return isBefore(*one, *two, true);
  case arith::CmpIPredicate::sgt:
    return isBefore(*two, *one, false);
  case arith::CmpIPredicate::sge:
    return isBefore(*two, *one, true);
  default:
    return std::nullopt;
  }
}

/// Returns an integer as an expression of the point and the trip, or null.
AffineExpr SequenceFormer::getNumber(Value scalar, Frame *frame) {
  Type type = scalar.getType();
  if (!type.isIntOrIndex())
    return {};
  APInt literal;
  if (matchPattern(scalar, m_ConstantInt(&literal)))
    return literal.getBitWidth() > 1 && literal.isSignedIntN(32) ? constant(literal.getSExtValue())
                                                                 : AffineExpr();
  if (scalar == loop.getInductionVar())
    return constant(*getConstantIntValue(loop.getLowerBound())) +
           trip() * *getConstantIntValue(loop.getStep());
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (Argument *own = getArgument(scalar))
      return own->role == Role::Counter ? own->counter : AffineExpr();
    if (!frame || argument.getOwner() != frame->op.getBlock())
      return {};
    auto source = getSource(frame->op.getMatchingOpOperand(argument), frame);
    if (!source)
      return {};
    return isa<ShapedType>(source->first.getType())
               ? getElementNumber(source->first, source->second)
               : getNumber(source->first, nullptr);
  }
  Operation *op = scalar.getDefiningOp();
  auto operand = [&](unsigned number) { return getNumber(op->getOperand(number), frame); };
  auto ifFits = [&](AffineExpr expr) { return expr && fits(expr, type) ? expr : AffineExpr(); };
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return frame ? frame->loops[index.getDim()] : AffineExpr();
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    Exprs coords;
    for (Value place : extract.getIndices()) {
      coords.push_back(getNumber(place, frame));
      if (!coords.back())
        return {};
    }
    return getElementNumber(extract.getTensor(), coords);
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return ifFits(operand(0));
  if (auto chosen = dyn_cast<arith::SelectOp>(op)) {
    std::optional<bool> known = isTrue(chosen.getCondition(), frame);
    return known ? operand(*known ? 1 : 2) : AffineExpr();
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MaxSIOp, arith::MinSIOp>(op))
    return {};
  AffineExpr left = operand(0), right = left ? operand(1) : AffineExpr();
  if (!right)
    return {};
  if (isa<arith::AddIOp>(op))
    return ifFits(left + right);
  if (isa<arith::SubIOp>(op))
    return ifFits(left - right);
  if (isa<arith::MulIOp>(op))
    return isa<AffineConstantExpr>(left) || isa<AffineConstantExpr>(right) ? ifFits(left * right)
                                                                           : AffineExpr();
  std::optional<Bounds> one = getBounds(left), two = getBounds(right);
  if (!one || !two)
    return {};
  if (one->high <= two->low)
    return isa<arith::MaxSIOp>(op) ? right : left;
  if (two->high <= one->low)
    return isa<arith::MaxSIOp>(op) ? left : right;
  return {};
}

AffineExpr SequenceFormer::getElementNumber(Value tensor, ArrayRef<AffineExpr> coords) {
  if (Argument *own = getArgument(tensor))
    return own->role == Role::Counter ? own->counter : AffineExpr();
  if (auto splat = dyn_cast_or_null<IntegerAttr>(getSplat(tensor)))
    return splat.getType().isInteger(1) || !splat.getValue().isSignedIntN(32)
               ? AffineExpr()
               : constant(splat.getValue().getSExtValue());
  if (auto maker = tensor.getDefiningOp<linalg::LinalgOp>()) {
    if (!loop->isAncestor(maker))
      return {};
    unsigned result = cast<OpResult>(tensor).getResultNumber();
    Frame *frame = getFrame(maker, result, coords);
    return frame ? getNumber(maker.getBlock()->getTerminator()->getOperand(result), frame)
                 : AffineExpr();
  }
  if (Value only = getOnlyElement(tensor))
    return getNumber(only, nullptr);
  if (auto source = step(tensor, coords))
    return getElementNumber(source->first, source->second);
  return {};
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Returns the point at which `op` computes an element of a result, or null.
SequenceFormer::Frame *SequenceFormer::getFrame(linalg::LinalgOp op, unsigned result,
                                                ArrayRef<AffineExpr> coords) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  if (op.getNumReductionLoops() != 0 || !map.isProjectedPermutation(/*allowZeroInResults=*/true) ||
      op->hasAttr(schedule::noFuseAttrName))
    return nullptr;
  auto frame = std::make_unique<Frame>(Frame{op, Exprs(op.getNumLoops())});
  for (auto [expr, coord] : llvm::zip_equal(map.getResults(), coords))
    if (auto own = dyn_cast<AffineDimExpr>(expr))
      frame->loops[own.getPosition()] = coord;
  for (auto [own, size] : llvm::zip_equal(frame->loops, op.getStaticLoopRanges())) {
    if (!own && size != 1)
      return nullptr;
    if (!own)
      own = constant(0);
  }
  // Values are remembered by their frame.
  for (auto &known : frames)
    if (known->op == op && known->loops == frame->loops)
      return known.get();
  return frames.emplace_back(std::move(frame)).get();
}

/// Returns what a body's argument is an element of, and where; or a scalar and nowhere.
std::optional<std::pair<Value, SequenceFormer::Exprs>> SequenceFormer::getSource(OpOperand *operand,
                                                                                 Frame *frame) {
  Value value = operand->get();
  if (!isa<ShapedType>(value.getType()))
    return std::pair(value, Exprs());
  Exprs coords;
  for (AffineExpr expr : frame->op.getMatchingIndexingMap(operand).getResults())
    coords.push_back(expr.replaceDims(frame->loops));
  return std::pair(value, coords);
}

/// Steps from an element of a slice or a reshape to that of its source.
std::optional<std::pair<Value, SequenceFormer::Exprs>>
SequenceFormer::step(Value tensor, ArrayRef<AffineExpr> coords) {
  Operation *op = tensor.getDefiningOp();
  if (!op || !loop->isAncestor(op))
    return std::nullopt;
  auto sizes = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    Exprs places;
    unsigned own = 0;
    for (auto [number, offset] : llvm::enumerate(slice.getMixedOffsets())) {
      std::optional<int64_t> stride = getConstantIntValue(slice.getMixedStrides()[number]);
      std::optional<int64_t> known = getConstantIntValue(offset);
      AffineExpr first = known ? constant(*known) : getNumber(cast<Value>(offset), nullptr);
      if (!stride || !first)
        return std::nullopt;
      places.push_back(dropped.test(number) ? first : first + coords[own++] * *stride);
    }
    return std::pair(slice.getSource(), places);
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    ArrayRef<int64_t> from = sizes(collapse.getSrc());
    Exprs places(from.size(), constant(0));
    for (auto [coord, group] : llvm::zip_equal(coords, collapse.getReassociationIndices())) {
      AffineExpr rest = coord;
      // A size of 1 takes nothing of the number; the first other dimension takes all that is left.
      SmallVector<int64_t> wide;
      llvm::copy_if(group, std::back_inserter(wide), [&](int64_t own) { return from[own] != 1; });
      for (size_t number = wide.size(); number-- > 0;) {
        places[wide[number]] = number == 0 ? rest : rest % from[wide[number]];
        rest = rest.floorDiv(from[wide[number]]);
      }
    }
    return std::pair(collapse.getSrc(), places);
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    ArrayRef<int64_t> to = sizes(tensor);
    Exprs places;
    for (const ReassociationIndices &group : expand.getReassociationIndices()) {
      AffineExpr whole = constant(0);
      for (int64_t own : group)
        whole = whole * to[own] + (to[own] == 1 ? constant(0) : coords[own]);
      places.push_back(whole);
    }
    return std::pair(expand.getSrc(), places);
  }
  return std::nullopt;
}
