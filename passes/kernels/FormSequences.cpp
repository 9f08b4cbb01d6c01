//===- FormSequences.cpp - Loops whose trips compute element by element ---===//
//
// A recurrence such as h = a[t] * h + b[t] is a loop whose body needs, for an element of what it
// carries, only that element. Then all trips of an element are one walk: an op that reduces over
// the trips, keeps what is carried in registers, and stores what a trip inserts into a row of a
// tensor at that step.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/kernels/Sequences.h"

#include "dialects/Norm/Decompose.h"
#include "dialects/Norm/Norm.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "weir/Graph/Graph.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_FORMSEQUENCESPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
using Exprs = SmallVector<AffineExpr>;

/// The point of a body's iteration space, in the dimensions of the walk.
struct Frame {
  linalg::LinalgOp op;
  Exprs loops;
};

/// The smallest and the largest value of a number.
struct Bounds {
  int64_t low, high;
};

/// Writes a loop as one op over the points of what it carries, and over its trips: dimensions
/// d0, d1... and, last, the trip.
class SequenceFormer {
public:
  /// Creates a former for kernels that bind so many tensors at most.
  SequenceFormer(scf::ForOp loop, int64_t maxTensors, OpBuilder &builder)
      : loop(loop), maxTensors(maxTensors), builder(loop.getLoc(), builder),
        inside(loop.getLoc(), loop.getContext()) {
    inside.setInsertionPointToEnd(&body);
  }

  /// Whether the loop can be written so. Creates nothing but the body, which is nowhere yet.
  bool match();
  /// Whether each operand has an element for each point, so that gradients add up element by
  /// element, too.
  bool readsWholePoints();
  /// Creates the op, once the loop has matched. Returns the values that replace the loop's results.
  SmallVector<Value> build();
  /// Creates a loop that carries neither counters nor what is the same in all trips, once the loop
  /// has matched. Returns the values that replace the loop's results.
  SmallVector<Value> simplify();

private:
  /// The roles of what a loop carries.
  enum class Role {
    Fixed,   ///< the same in all trips
    Counter, ///< a number that grows by the same in each trip
    Carried, ///< computed from what the trip before had at the same point
    Stacked, ///< each trip inserts a row of its own
  };
  struct Argument {
    Role role;
    AffineExpr counter;
    AffineMap map; ///< of a stacked tensor
    BlockArgument running;
  };

  scf::ForOp loop;
  int64_t maxTensors;
  ImplicitLocOpBuilder builder, inside;
  Block body; ///< of the new op
  int64_t trips = 0;
  SmallVector<int64_t> shape; ///< of the points
  SmallVector<Argument> arguments;
  SmallVector<std::pair<Value, AffineMap>> inputs;
  SmallVector<AffineMap> outMaps;
  SmallVector<unsigned> numbers; ///< of the results that the new op computes
  DenseMap<std::pair<Value, Frame *>, Value> emitted;
  SmallVector<std::unique_ptr<Frame>> frames;
  DenseMap<std::pair<Value, AffineMap>, Value> elements;

  AffineExpr dim(unsigned number) { return inside.getAffineDimExpr(number); }
  AffineExpr constant(int64_t value) { return inside.getAffineConstantExpr(value); }
  AffineExpr trip() { return dim(shape.size()); }
  Exprs getPoint() {
    return llvm::map_to_vector(llvm::seq<unsigned>(0, shape.size()),
                               [&](unsigned number) { return dim(number); });
  }
  AffineMap getMap(ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(shape.size() + 1, 0, exprs, inside.getContext());
  }
  Argument *getArgument(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
      return nullptr;
    return &arguments[argument.getArgNumber() - 1];
  }

  bool findRoles();
  bool findCounter(unsigned number);
  bool findStack(unsigned number);
  std::optional<Bounds> getBounds(AffineExpr expr);
  bool fits(AffineExpr expr, Type type);
  Frame *getFrame(linalg::LinalgOp op, unsigned result, ArrayRef<AffineExpr> coords);
  std::optional<std::pair<Value, Exprs>> step(Value tensor, ArrayRef<AffineExpr> coords);
  std::optional<std::pair<Value, Exprs>> getSource(OpOperand *operand, Frame *frame);

  AffineExpr getNumber(Value scalar, Frame *frame);
  AffineExpr getElementNumber(Value tensor, ArrayRef<AffineExpr> coords);
  std::optional<bool> isTrue(Value condition, Frame *frame);

  Value emit(Value scalar, Frame *frame);
  Value emitNew(Value scalar, Frame *frame);
  Value emitNumber(AffineExpr expr, Type type);
  Value emitElement(Value tensor, ArrayRef<AffineExpr> coords);
  Value emitNewElement(Value tensor, ArrayRef<AffineExpr> coords);
  Value emitInput(Value tensor, ArrayRef<AffineExpr> coords);
  int64_t countTensors();
  Value createEnd(unsigned number);
};
} // namespace

/// Returns the scalar that a tensor of one element is made of, or null.
static Value getOnlyElement(Value tensor) {
  auto made = tensor.getDefiningOp<tensor::FromElementsOp>();
  return made && made.getElements().size() == 1 ? made.getElements().front() : Value();
}

//===----------------------------------------------------------------------===//
// Numbers that the trip and the point decide
//===----------------------------------------------------------------------===//

std::optional<Bounds> SequenceFormer::getBounds(AffineExpr expr) {
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
Frame *SequenceFormer::getFrame(linalg::LinalgOp op, unsigned result, ArrayRef<AffineExpr> coords) {
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
std::optional<std::pair<Value, Exprs>> SequenceFormer::getSource(OpOperand *operand, Frame *frame) {
  Value value = operand->get();
  if (!isa<ShapedType>(value.getType()))
    return std::pair(value, Exprs());
  Exprs coords;
  for (AffineExpr expr : frame->op.getMatchingIndexingMap(operand).getResults())
    coords.push_back(expr.replaceDims(frame->loops));
  return std::pair(value, coords);
}

/// Steps from an element of a slice or a reshape to that of its source.
std::optional<std::pair<Value, Exprs>> SequenceFormer::step(Value tensor,
                                                            ArrayRef<AffineExpr> coords) {
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

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Finds out whether a number grows by the same in each trip, from a known one.
bool SequenceFormer::findCounter(unsigned number) {
  Value init = loop.getInitArgs()[number], next = loop.getYieldedValues()[number];
  auto getLiteral = [&](Value value) -> std::optional<int64_t> {
    AffineExpr expr =
        isa<ShapedType>(value.getType()) ? getElementNumber(value, {}) : getNumber(value, nullptr);
    auto literal = expr ? dyn_cast<AffineConstantExpr>(expr) : AffineConstantExpr();
    return literal ? std::optional(literal.getValue()) : std::nullopt;
  };
  auto type = dyn_cast<RankedTensorType>(init.getType());
  if (!(type ? type.getRank() == 0 && type.getElementType().isIntOrIndex()
             : init.getType().isIntOrIndex()))
    return false;
  std::optional<int64_t> first = getLiteral(init);
  if (!first)
    return false;
  // As it is in the first trip and in the second one, it shows what it grows by.
  Argument &own = arguments[number];
  own = {Role::Counter, constant(*first), {}, {}};
  std::optional<int64_t> second = getLiteral(next);
  if (!second)
    return false;
  own.counter = constant(*first) + trip() * (*second - *first);
  AffineExpr grown =
      isa<ShapedType>(next.getType()) ? getElementNumber(next, {}) : getNumber(next, nullptr);
  return grown && grown == own.counter + (*second - *first);
}

/// Finds out whether each trip inserts one row of a tensor, from the first on or from the last.
bool SequenceFormer::findStack(unsigned number) {
  Value argument = loop.getRegionIterArgs()[number];
  auto insert = loop.getYieldedValues()[number].getDefiningOp<tensor::InsertSliceOp>();
  if (!insert || insert.getDest() != argument || !insert->hasOneUse())
    return false;
  ArrayRef<int64_t> sizes = insert.getDestType().getShape();
  Exprs places;
  bool hasTrip = false;
  unsigned own = 0;
  for (auto [place, size] : llvm::enumerate(sizes)) {
    std::optional<int64_t> offset = getConstantIntValue(insert.getMixedOffsets()[place]);
    std::optional<int64_t> taken = getConstantIntValue(insert.getMixedSizes()[place]);
    if (!taken || getConstantIntValue(insert.getMixedStrides()[place]) != 1)
      return false;
    if (offset == 0 && taken == size) {
      while (own < shape.size() && shape[own] == 1 && size != 1)
        ++own;
      if (size != 1 && (own == shape.size() || shape[own] != size))
        return false;
      places.push_back(size == 1 ? constant(0) : dim(own++));
      continue;
    }
    AffineExpr row = offset ? constant(*offset)
                            : getNumber(cast<Value>(insert.getMixedOffsets()[place]), nullptr);
    bool isInOrder = row == trip() || row == constant(trips - 1) - trip();
    if (hasTrip || taken != 1 || size != trips || !row || !isInOrder)
      return false;
    hasTrip = true;
    places.push_back(row);
  }
  bool hasAll = llvm::all_of(ArrayRef(shape).drop_front(std::min<size_t>(own, shape.size())),
                             [](int64_t size) { return size == 1; });
  arguments[number] = {Role::Stacked, {}, getMap(places), {}};
  return hasTrip && hasAll;
}

/// Finds the role of all that the loop carries.
bool SequenceFormer::findRoles() {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  std::optional<APInt> count = loop.getStaticTripCount();
  if (!lower || !step || !count || count->ult(2) || count->ugt(uint64_t(1) << 30))
    return false;
  trips = count->getSExtValue();
  unsigned number = loop.getNumRegionIterArgs();
  arguments.assign(number, {Role::Carried, {}, {}, {}});
  auto isFixed = [&](unsigned each) {
    return loop.getYieldedValues()[each] == loop.getRegionIterArgs()[each];
  };
  SmallVector<unsigned> others;
  for (unsigned each = 0; each < number; ++each) {
    if (isFixed(each))
      arguments[each].role = Role::Fixed;
    else
      others.push_back(each);
  }
  // The points are those of the first tensor that is neither a counter nor a stack. Counters have
  // no point, so they are found before.
  auto isInsertion = [&](unsigned each) {
    auto insert = loop.getYieldedValues()[each].getDefiningOp<tensor::InsertSliceOp>();
    return insert && insert.getDest() == loop.getRegionIterArgs()[each];
  };
  auto getType = [&](unsigned each) {
    return dyn_cast<RankedTensorType>(loop.getInitArgs()[each].getType());
  };
  auto *first = llvm::find_if(others, [&](unsigned each) {
    RankedTensorType type = getType(each);
    return type && !isInsertion(each) &&
           (type.getRank() > 0 || !type.getElementType().isIntOrIndex());
  });
  if (first == others.end())
    return false;
  llvm::append_range(shape, getType(*first).getShape());
  SmallVector<unsigned> rest;
  for (unsigned each : others)
    if (!findCounter(each)) {
      arguments[each] = {Role::Carried, {}, {}, {}};
      rest.push_back(each);
    }
  return llvm::all_of(rest, [&](unsigned each) {
    if (isInsertion(each))
      return findStack(each);
    return getType(each) && getType(each).getShape() == ArrayRef(shape);
  });
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Writes a number of the point and the trip.
Value SequenceFormer::emitNumber(AffineExpr expr, Type type) {
  std::function<Value(AffineExpr)> build = [&](AffineExpr part) -> Value {
    if (auto literal = dyn_cast<AffineConstantExpr>(part))
      return arith::ConstantIndexOp::create(inside, literal.getValue());
    if (auto own = dyn_cast<AffineDimExpr>(part))
      return linalg::IndexOp::create(inside, own.getPosition());
    auto binary = cast<AffineBinaryOpExpr>(part);
    Value left = build(binary.getLHS()), right = build(binary.getRHS());
    switch (part.getKind()) {
    case AffineExprKind::Add:
      return arith::AddIOp::create(inside, left, right);
    case AffineExprKind::Mul:
      return arith::MulIOp::create(inside, left, right);
    case AffineExprKind::Mod: // of what is not negative, or it would have no bounds
      return arith::RemUIOp::create(inside, left, right);
    default:
      return arith::DivUIOp::create(inside, left, right);
    }
  };
  Value number = build(expr);
  return type.isIndex() ? number : arith::IndexCastOp::create(inside, type, number).getResult();
}

/// Writes a scalar of a body, or of the loop itself. Returns null if that is not possible.
Value SequenceFormer::emit(Value scalar, Frame *frame) {
  if (Value known = emitted.lookup({scalar, frame}))
    return known;
  Value made = emitNew(scalar, frame);
  if (made)
    emitted[{scalar, frame}] = made;
  return made;
}

Value SequenceFormer::emitNew(Value scalar, Frame *frame) {
  if (AffineExpr number = getNumber(scalar, frame); number && getBounds(number))
    return emitNumber(number, scalar.getType());
  if (matchPattern(scalar, m_Constant()))
    return inside.clone(*scalar.getDefiningOp())->getResult(0);
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (!frame || argument.getOwner() != frame->op.getBlock())
      return {};
    auto source = getSource(frame->op.getMatchingOpOperand(argument), frame);
    if (!source)
      return {};
    return isa<ShapedType>(source->first.getType()) ? emitElement(source->first, source->second)
                                                    : emit(source->first, nullptr);
  }
  Operation *op = scalar.getDefiningOp();
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    Exprs coords;
    for (Value place : extract.getIndices())
      coords.push_back(getNumber(place, frame));
    if (llvm::all_of(coords, [](AffineExpr expr) { return bool(expr); }))
      return emitElement(extract.getTensor(), coords);
    // A gather from what no trip changes.
    Value tensor = extract.getTensor();
    if (Argument *own = getArgument(tensor); own && own->role == Role::Fixed)
      tensor = loop.getTiedLoopInit(cast<BlockArgument>(tensor))->get();
    if (!loop.isDefinedOutsideOfLoop(tensor))
      return {};
    SmallVector<Value> places;
    for (Value place : extract.getIndices()) {
      places.push_back(emit(place, frame));
      if (!places.back())
        return {};
    }
    return tensor::ExtractOp::create(inside, tensor, places);
  }
  if (!isPure(op) || op->getNumRegions() != 0 || op->getNumResults() != 1 ||
      !isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return {};
  IRMapping values;
  for (Value operand : op->getOperands()) {
    Value own = emit(operand, frame);
    if (!own)
      return {};
    values.map(operand, own);
  }
  return inside.clone(*op, values)->getResult(0);
}

/// Writes an element of a tensor. Returns null if that is not possible.
Value SequenceFormer::emitElement(Value tensor, ArrayRef<AffineExpr> coords) {
  auto key = std::pair(tensor, getMap(coords));
  if (Value known = elements.lookup(key))
    return known;
  Value made = emitNewElement(tensor, coords);
  if (made)
    elements[key] = made;
  return made;
}

Value SequenceFormer::emitNewElement(Value tensor, ArrayRef<AffineExpr> coords) {
  Type type = getElementTypeOrSelf(tensor);
  if (AffineExpr number = getElementNumber(tensor, coords); number && getBounds(number))
    return emitNumber(number, type);
  if (Argument *own = getArgument(tensor)) {
    auto argument = cast<BlockArgument>(tensor);
    Value init = loop.getTiedLoopInit(argument)->get();
    if (own->role == Role::Fixed)
      return emitInput(init, coords);
    // A row is what it was before the loop until its own trip.
    if (own->role == Role::Stacked)
      return getMap(coords) == own->map ? emitElement(init, coords) : Value();
    if (own->role != Role::Carried || coords != ArrayRef(getPoint()))
      return {};
    return own->running;
  }
  if (TypedAttr splat = getSplat(tensor))
    return arith::ConstantOp::create(inside, splat);
  if (loop.isDefinedOutsideOfLoop(tensor))
    return emitInput(tensor, coords);
  if (auto maker = tensor.getDefiningOp<linalg::LinalgOp>()) {
    unsigned result = cast<OpResult>(tensor).getResultNumber();
    Frame *frame = getFrame(maker, result, coords);
    return frame ? emit(maker.getBlock()->getTerminator()->getOperand(result), frame) : Value();
  }
  if (Value only = getOnlyElement(tensor))
    return emit(only, nullptr);
  if (auto source = step(tensor, coords))
    return emitElement(source->first, source->second);
  return {};
}

/// Reads an element of a tensor that no trip changes.
Value SequenceFormer::emitInput(Value tensor, ArrayRef<AffineExpr> coords) {
  for (auto [coord, size] :
       llvm::zip_equal(coords, cast<RankedTensorType>(tensor.getType()).getShape())) {
    std::optional<Bounds> bounds = getBounds(coord);
    if (!bounds || bounds->low < 0 || bounds->high >= size)
      return {};
  }
  inputs.push_back({tensor, getMap(coords)});
  return body.insertArgument(inputs.size() - 1, getElementTypeOrSelf(tensor), loop.getLoc());
}

/// Counts the tensors that a kernel of the new op binds.
int64_t SequenceFormer::countTensors() {
  llvm::SmallDenseSet<Value> bound;
  for (auto &input : inputs)
    bound.insert(input.first);
  for (auto extract : body.getOps<tensor::ExtractOp>())
    bound.insert(extract.getTensor());
  for (unsigned number : numbers)
    if (arguments[number].role == Role::Carried)
      bound.insert(loop.getInitArgs()[number]);
  return bound.size() + numbers.size();
}

bool SequenceFormer::readsWholePoints() {
  return llvm::all_of(inputs, [&](const auto &input) {
    return !isa<FloatType>(getElementTypeOrSelf(input.first)) ||
           llvm::all_of(llvm::enumerate(shape), [&](const auto &size) {
             return size.value() == 1 || input.second.isFunctionOfDim(size.index());
           });
  });
}

bool SequenceFormer::match() {
  bool hasChecks = loop.walk([](Operation *op) {
                         bool isKept = isa<cf::AssertOp, scf::WhileOp>(op) ||
                                       op->hasAttr(schedule::noFuseAttrName);
                         return isKept ? WalkResult::interrupt() : WalkResult::advance();
                       })
                       .wasInterrupted();
  if (hasChecks || !findRoles())
    return false;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    if (argument.role != Role::Carried && argument.role != Role::Stacked)
      continue;
    Type type = getElementTypeOrSelf(loop.getInitArgs()[number]);
    argument.running = body.addArgument(type, loop.getLoc());
    numbers.push_back(number);
    outMaps.push_back(argument.role == Role::Stacked ? argument.map : getMap(getPoint()));
  }
  SmallVector<Value> yielded;
  for (unsigned number : numbers) {
    Value next = loop.getYieldedValues()[number];
    Exprs coords = getPoint();
    if (arguments[number].role == Role::Stacked) {
      auto insert = next.getDefiningOp<tensor::InsertSliceOp>();
      next = insert.getSource();
      llvm::SmallBitVector dropped = insert.getDroppedDims();
      coords.clear();
      for (auto [place, expr] : llvm::enumerate(arguments[number].map.getResults()))
        if (!dropped.test(place))
          coords.push_back(expr.isFunctionOfDim(shape.size()) ? constant(0) : expr);
    }
    yielded.push_back(emitElement(next, coords));
    if (!yielded.back())
      return false;
  }
  linalg::YieldOp::create(inside, yielded);
  return countTensors() <= maxTensors;
}

/// Creates the number that a counter has behind the loop.
Value SequenceFormer::createEnd(unsigned number) {
  Exprs last(shape.size(), constant(0));
  last.push_back(constant(trips));
  int64_t end = cast<AffineConstantExpr>(arguments[number].counter.replaceDims(last)).getValue();
  Type type = loop.getResult(number).getType();
  TypedAttr literal = builder.getIntegerAttr(getElementTypeOrSelf(type), end);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    literal = DenseElementsAttr::get(tensor, literal);
  return arith::ConstantOp::create(builder, literal);
}

SmallVector<Value> SequenceFormer::simplify() {
  SmallVector<Value> results(arguments.size()), inits, inBody(arguments.size());
  SmallVector<unsigned> kept;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    Value init = loop.getInitArgs()[number];
    if (argument.role == Role::Fixed) {
      results[number] = inBody[number] = init;
    } else if (argument.role == Role::Counter) {
      results[number] = createEnd(number);
    } else {
      inits.push_back(init);
      kept.push_back(number);
    }
  }
  Value zero = arith::ConstantIndexOp::create(builder, 0),
        one = arith::ConstantIndexOp::create(builder, 1);
  Value end = arith::ConstantIndexOp::create(builder, trips);
  auto made = scf::ForOp::create(builder, zero, end, one, inits);
  if (inits.empty())
    made.getBody()->getTerminator()->erase();
  ImplicitLocOpBuilder b(loop.getLoc(), OpBuilder::atBlockEnd(made.getBody()));
  // Numbers of the trip, of the type that they had.
  auto count = [&](int64_t first, int64_t step, Type type) -> Value {
    Value grown =
        arith::MulIOp::create(b, made.getInductionVar(), arith::ConstantIndexOp::create(b, step));
    Value number = arith::AddIOp::create(b, grown, arith::ConstantIndexOp::create(b, first));
    Type element = getElementTypeOrSelf(type);
    if (!element.isIndex())
      number = arith::IndexCastOp::create(b, element, number);
    return isa<RankedTensorType>(type) ? tensor::FromElementsOp::create(b, type, number).getResult()
                                       : number;
  };
  auto getAt = [&](AffineExpr expr, int64_t trip) {
    Exprs at(shape.size(), constant(0));
    at.push_back(constant(trip));
    return cast<AffineConstantExpr>(expr.replaceDims(at)).getValue();
  };
  for (auto [number, argument] : llvm::enumerate(arguments))
    if (argument.role == Role::Counter) {
      int64_t first = getAt(argument.counter, 0);
      inBody[number] =
          count(first, getAt(argument.counter, 1) - first, loop.getResult(number).getType());
    }
  for (auto [number, own] : llvm::zip_equal(kept, made.getRegionIterArgs()))
    inBody[number] = own;
  IRMapping values;
  values.map(loop.getInductionVar(),
             count(*getConstantIntValue(loop.getLowerBound()), *getConstantIntValue(loop.getStep()),
                   loop.getInductionVar().getType()));
  values.map(loop.getRegionIterArgs(), inBody);
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, values);
  SmallVector<Value> yielded = llvm::map_to_vector(kept, [&](unsigned number) {
    return values.lookupOrDefault(loop.getYieldedValues()[number]);
  });
  scf::YieldOp::create(b, yielded);
  for (auto [number, result] : llvm::zip_equal(kept, made.getResults()))
    results[number] = result;
  return results;
}

SmallVector<Value> SequenceFormer::build() {
  // Backward, no map has the trip itself: an operand that nothing reads gives their number.
  auto hasTrip = [&](AffineMap map) { return llvm::is_contained(map.getResults(), trip()); };
  if (llvm::none_of(outMaps, hasTrip) &&
      llvm::none_of(inputs, [&](auto &input) { return hasTrip(input.second); })) {
    inputs.push_back(
        {tensor::EmptyOp::create(builder, trips, builder.getI32Type()), getMap(trip())});
    body.insertArgument(inputs.size() - 1, builder.getI32Type(), loop.getLoc());
  }
  SmallVector<Value> values, outs;
  SmallVector<AffineMap> maps;
  for (auto &[tensor, map] : inputs) {
    values.push_back(tensor);
    maps.push_back(map);
  }
  for (unsigned number : numbers) {
    Value init = loop.getInitArgs()[number];
    auto type = cast<RankedTensorType>(init.getType());
    outs.push_back(arguments[number].role == Role::Carried
                       ? init
                       : tensor::EmptyOp::create(builder, type.getShape(), type.getElementType()));
  }
  llvm::append_range(maps, outMaps);
  SmallVector<utils::IteratorType> kinds(shape.size(), utils::IteratorType::parallel);
  kinds.push_back(utils::IteratorType::reduction);
  auto generic =
      linalg::GenericOp::create(builder, TypeRange(ValueRange(outs)), values, outs, maps, kinds);
  Block *own = builder.createBlock(&generic.getRegion());
  own->addArguments(body.getArgumentTypes(),
                    SmallVector<Location>(body.getNumArguments(), loop.getLoc()));
  for (auto [mine, its] : llvm::zip_equal(body.getArguments(), own->getArguments()))
    mine.replaceAllUsesWith(its);
  own->getOperations().splice(own->end(), body.getOperations());
  builder.setInsertionPointAfter(generic);

  SmallVector<Value> results(arguments.size());
  for (auto [number, result] : llvm::zip_equal(numbers, generic.getResults()))
    results[number] = result;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    if (argument.role == Role::Fixed)
      results[number] = loop.getInitArgs()[number];
    if (argument.role != Role::Counter)
      continue;
    results[number] = createEnd(number);
  }
  return results;
}

bool weir::simplifySequence(scf::ForOp loop, bool isDifferentiated) {
  OpBuilder builder(loop);
  SequenceFormer former(loop, std::numeric_limits<int64_t>::max(), builder);
  if (!former.match() || (isDifferentiated && !former.readsWholePoints()))
    return false;
  loop.replaceAllUsesWith(former.simplify());
  loop.erase();
  return true;
}

/// Writes the activations of a loop, which compute element by element, as such.
static void expandActivations(scf::ForOp loop) {
  SmallVector<Operation *> activations;
  loop.walk([&](Operation *op) {
    if (isa<norm::GeluOp, norm::GeluVjpOp, norm::SiluOp, norm::SiluVjpOp>(op))
      activations.push_back(op);
  });
  OpBuilder builder(loop.getContext());
  for (Operation *op : activations) {
    op->replaceAllUsesWith(norm::decompose(builder, op));
    op->erase();
  }
}

namespace {
struct FormSequences : weir::impl::FormSequencesPassBase<FormSequences> {
  using FormSequencesPassBase::FormSequencesPassBase;

  void runOnOperation() override {
    OpBuilder builder(&getContext());
    int64_t maxTensors = std::numeric_limits<int64_t>::max();
    auto module = getOperation()->getParentOfType<ModuleOp>();
    if (module && module->hasAttr(schedule::profileAttrName)) {
      FailureOr<Profile> profile = getProfile(module);
      if (failed(profile))
        return signalPassFailure();
      maxTensors = profile->storageBuffersPerStage;
    }
    SmallVector<scf::ForOp> loops; // the innermost first
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    llvm::for_each(loops, expandActivations);
    bool hasFormed = false;
    for (scf::ForOp loop : loops) {
      builder.setInsertionPoint(loop);
      SequenceFormer former(loop, maxTensors, builder);
      if (!former.match())
        continue;
      loop.replaceAllUsesWith(former.build());
      loop.erase();
      hasFormed = true;
    }
    IRRewriter rewriter(&getContext());
    if (hasFormed) // what only the loops read
      (void)runRegionDCE(rewriter, getOperation()->getRegions());
  }
};
} // namespace
