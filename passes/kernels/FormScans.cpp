//===- FormScans.cpp - Running sums in one walk ---------------------------===//
//
// Front ends write a running sum of n elements as n sums, each of the elements up to a place: a
// choice by comparing two places, and a reduction. Its gradient has the same form, from the other
// end. Such a reduction takes n x n steps. A scan takes n: one walk in the order of the elements,
// which stores what it has so far at each of them.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/graph/Elements.h"
#include "passes/graph/Triangles.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "weir/Graph/Graph.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_FORMSCANSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;
using namespace weir::elements;

namespace {
/// A variable plus a constant.
struct Place {
  int64_t variable = 0, offset = 0;
};

/// The elements that belong to a running sum at a place.
struct Order {
  int64_t element, place; ///< variables
  bool isReversed;        ///< the elements from the place on, not those up to it
  bool isExclusive;       ///< without the one at the place
};

/// Finds out whether a reduction is a running one, and writes it as a scan.
class ScanFormer {
public:
  /// Creates a former for a device of so many units, 0 if it is busy with few invocations.
  ScanFormer(linalg::GenericOp reduction, int64_t units, OpBuilder &builder)
      : reduction(reduction), units(units), loc(reduction.getLoc()),
        matcher(getElementTypeOrSelf(reduction->getResult(0))),
        shape(cast<RankedTensorType>(reduction->getResultTypes().front()).getShape()),
        builder(builder), inside(builder.getContext()) {
    inside.setInsertionPointToEnd(&body);
    terms.body = &body;
  }

  /// Returns the tensor that replaces the reduction's, or null. Creates nothing then.
  Value run();

private:
  /// The terms that are combined, over the dimensions of the result: `walked` counts from the first
  /// element that is combined.
  struct Terms {
    SmallVector<Value> tensors;
    SmallVector<AffineMap> maps;
    Block *body = nullptr; ///< has an argument for each tensor
    Value value;           ///< in the body
  };
  /// An op that combines terms.
  struct Walk {
    const Terms &terms;
    AffineMap place; ///< from its loops to those of the terms
    ArrayRef<int64_t> ranges;
    unsigned reduced;         ///< the loop that it walks
    SmallVector<Value> inits; ///< of what its steps store, if anything, and of what they carry
    SmallVector<AffineMap> maps;
    bool isExclusive;
  };

  linalg::GenericOp reduction;
  int64_t units;
  Location loc;
  Matcher matcher;
  ArrayRef<int64_t> shape;
  OpBuilder &builder;
  Order order;
  Operation *combine = nullptr;
  Value accumulator; ///< of the reduction's body
  TypedAttr start;
  SmallVector<int64_t> variables; ///< of the result's dimensions
  unsigned walked = 0;            ///< the result's dimension along which the sum runs
  int64_t size = 0;               ///< of that dimension

  Block body;
  Terms terms;
  OpBuilder inside; ///< of the body
  DenseMap<std::pair<Value, AffineMap>, Value> arguments;

  std::optional<Place> getPlace(Term term);
  std::optional<Order> getOrder(Term condition, bool negated);
  std::optional<Order> getTriangle(Term element, function_ref<bool(int64_t)> isChosen);
  std::optional<Term> findTerm(const Reduction &found);
  bool isNeutral(Term term, Operation *combine);
  std::optional<AffineMap> getMap(ArrayRef<Coord> coords);
  AffineExpr getLoop(unsigned dim);
  Value emit(Term term);
  Value addInput(Value tensor, AffineMap map);
  Value createStart(ArrayRef<int64_t> shape);
  Value createEmpty(ArrayRef<int64_t> shape);
  Value createWalk(const Walk &walk);
  Value createWhole();
  Value createInParts(int64_t length);
  std::optional<int64_t> choosePart();
};
} // namespace

/// Returns an index, seen through conversions of integers, as a loop plus a constant.
std::optional<Place> ScanFormer::getPlace(Term term) {
  Place place;
  while (Operation *op = matcher.unfolder.getOp(term)) {
    if (auto loop = dyn_cast<linalg::IndexOp>(op)) {
      const Coord &coord = term.scope->loops[loop.getDim()];
      if (coord.computed.value || coord.variable <= 0)
        return std::nullopt;
      place.variable = coord.variable;
      return place;
    }
    if (isa<arith::AddIOp, arith::SubIOp>(op)) {
      int64_t sign = isa<arith::AddIOp>(op) ? 1 : -1;
      std::optional<int64_t> constant =
          matcher.integerConstant(matcher.unfolder.getOperand(term, 1));
      if (!constant || std::abs(*constant) > 1)
        return std::nullopt;
      place.offset += sign * *constant;
    } else if (!isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op)) {
      return std::nullopt;
    }
    term = matcher.unfolder.getOperand(term, 0);
  }
  return std::nullopt;
}

/// Returns the order that `element <= place + offset` selects by, or `element >= place + offset` if
/// `isReversed`.
static std::optional<Order> makeOrder(int64_t element, int64_t place, int64_t offset,
                                      bool isReversed) {
  if (offset != 0 && offset != (isReversed ? 1 : -1))
    return std::nullopt;
  return Order{element, place, isReversed, offset != 0};
}

/// Returns the order of the elements for which a constant mask has an integer that is chosen.
std::optional<Order> ScanFormer::getTriangle(Term element, function_ref<bool(int64_t)> isChosen) {
  element = matcher.unfolder.resolve(element);
  if (!element.isElement())
    return std::nullopt;
  SmallVector<std::pair<int64_t, unsigned>> dims; // by variable
  for (auto [dim, coord] : llvm::enumerate(*element.coords)) {
    if (coord.computed.value || coord.variable < 0)
      return std::nullopt;
    if (coord.variable > 0)
      dims.push_back({coord.variable, dim});
  }
  if (dims.size() != 2)
    return std::nullopt;
  if (dims[1].first != order.element)
    std::swap(dims[0], dims[1]);
  auto [row, column] = std::pair(dims[0], dims[1]);
  if (column.first != order.element)
    return std::nullopt;
  std::optional<Triangle> triangle = findTriangle(element.value, row.second, column.second);
  auto within = triangle ? dyn_cast<IntegerAttr>(triangle->within) : IntegerAttr();
  if (!within)
    return std::nullopt;
  bool takesWithin = isChosen(within.getValue().getSExtValue());
  if (takesWithin == isChosen(cast<IntegerAttr>(triangle->behind).getValue().getSExtValue()))
    return std::nullopt;
  // Within: element <= place + offset; behind: element >= place + offset + 1.
  return takesWithin
             ? makeOrder(column.first, row.first, triangle->offset, /*isReversed=*/false)
             : makeOrder(column.first, row.first, triangle->offset + 1, /*isReversed=*/true);
}

/// Returns the comparison of exchanged operands.
static arith::CmpIPredicate swapped(arith::CmpIPredicate predicate) {
  using Predicate = arith::CmpIPredicate;
  switch (predicate) {
  case Predicate::slt:
    return Predicate::sgt;
  case Predicate::sle:
    return Predicate::sge;
  case Predicate::sgt:
    return Predicate::slt;
  case Predicate::sge:
    return Predicate::sle;
  default:
    return predicate;
  }
}

/// Returns the order of the elements for which `condition` is true, or false if `negated`.
/// `order.element` must be known.
std::optional<Order> ScanFormer::getOrder(Term condition, bool negated) {
  Operation *op = matcher.unfolder.getOp(condition);
  if (!op)
    return getTriangle(condition, [&](int64_t mask) { return (mask != 0) != negated; });
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return std::nullopt;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  if (predicate == Predicate::eq || predicate == Predicate::ne) {
    std::optional<int64_t> number =
        matcher.integerConstant(matcher.unfolder.getOperand(condition, 1));
    bool equal = (predicate == Predicate::eq) != negated;
    return number ? getTriangle(matcher.unfolder.getOperand(condition, 0),
                                [&](int64_t mask) { return (mask == *number) == equal; })
                  : std::nullopt;
  }
  std::optional<Place> left = getPlace(matcher.unfolder.getOperand(condition, 0));
  std::optional<Place> right = getPlace(matcher.unfolder.getOperand(condition, 1));
  if (!left || !right)
    return std::nullopt;
  if (negated)
    predicate = arith::invertPredicate(predicate);
  if (left->variable != order.element) {
    std::swap(left, right);
    predicate = swapped(predicate);
  }
  if (left->variable != order.element || right->variable == order.element)
    return std::nullopt;
  int64_t offset = right->offset - left->offset;
  switch (predicate) {
  case Predicate::sle:
    return makeOrder(left->variable, right->variable, offset, /*isReversed=*/false);
  case Predicate::slt:
    return makeOrder(left->variable, right->variable, offset - 1, /*isReversed=*/false);
  case Predicate::sge:
    return makeOrder(left->variable, right->variable, offset, /*isReversed=*/true);
  case Predicate::sgt:
    return makeOrder(left->variable, right->variable, offset + 1, /*isReversed=*/true);
  default:
    return std::nullopt;
  }
}

bool ScanFormer::isNeutral(Term term, Operation *combine) {
  TypedAttr neutral = getNeutral(combine);
  if (auto real = dyn_cast_or_null<FloatAttr>(neutral))
    return matcher.floatConstant(term) == real.getValueAsDouble();
  auto integer = dyn_cast_or_null<IntegerAttr>(neutral);
  return integer && matcher.integerConstant(term) == integer.getValue().getSExtValue();
}

/// Returns what the elements of the running sum are, and sets `order`.
std::optional<Term> ScanFormer::findTerm(const Reduction &found) {
  Term choice = found.body;
  if (!isa_and_present<arith::SelectOp>(matcher.unfolder.getOp(choice)))
    return std::nullopt;
  bool negated = isNeutral(matcher.unfolder.getOperand(choice, 1), found.combine);
  if (!negated && !isNeutral(matcher.unfolder.getOperand(choice, 2), found.combine))
    return std::nullopt;
  order.element = found.variables.front();
  std::optional<Order> selected = getOrder(matcher.unfolder.getOperand(choice, 0), negated);
  if (!selected)
    return std::nullopt;
  order = *selected;
  return matcher.unfolder.getOperand(choice, negated ? 2 : 1);
}

/// Returns the index of the scan's loop for a dimension of the result.
AffineExpr ScanFormer::getLoop(unsigned dim) {
  AffineExpr loop = builder.getAffineDimExpr(dim);
  return dim == walked && order.isReversed ? size - 1 - loop : loop;
}

/// Returns the map of a tensor that is read at these places, none of which is that of the running
/// sum.
std::optional<AffineMap> ScanFormer::getMap(ArrayRef<Coord> coords) {
  SmallVector<AffineExpr> indices;
  for (const Coord &coord : coords) {
    if (coord.computed.value || coord.variable < 0 || coord.variable == order.place)
      return std::nullopt;
    if (coord.variable == 0) {
      indices.push_back(builder.getAffineConstantExpr(0));
      continue;
    }
    auto *found = llvm::find(variables, coord.variable);
    if (coord.variable != order.element && found == variables.end())
      return std::nullopt;
    indices.push_back(
        getLoop(coord.variable == order.element ? walked : found - variables.begin()));
  }
  return AffineMap::get(variables.size(), 0, indices, builder.getContext());
}

Value ScanFormer::addInput(Value tensor, AffineMap map) {
  Value &argument = arguments[{tensor, map}];
  if (!argument) {
    argument = body.addArgument(getElementTypeOrSelf(tensor), loc);
    terms.tensors.push_back(tensor);
    terms.maps.push_back(map);
  }
  return argument;
}

/// Creates a term in the scan's body, or returns null. Reads the tensors that are nearest to the
/// reduction and lack the dimension of places; what makes one of them for the scan alone is
/// computed in it.
Value ScanFormer::emit(Term term) {
  while (true) {
    TypedAttr constant = term.isElement() ? getSplat(term.value) : TypedAttr();
    if (constant || (!term.isElement() && matchPattern(term.value, m_Constant(&constant))))
      return arith::ConstantOp::create(inside, loc, constant);
    if (term.isElement())
      if (std::optional<AffineMap> map = getMap(*term.coords)) {
        std::optional<Term> maker =
            term.value.hasOneUse() ? matcher.unfolder.step(term) : std::nullopt;
        Value computed = maker ? emit(*maker) : Value();
        return computed ? computed : addInput(term.value, *map);
      }
    std::optional<Term> next = matcher.unfolder.step(term);
    if (!next)
      break;
    term = *next;
  }
  Operation *op = term.isElement() ? nullptr : term.value.getDefiningOp();
  if (!op || !isPure(op) || op->getNumRegions() != 0 ||
      !isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return {};
  IRMapping mapping;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Value emitted = emit(matcher.unfolder.getOperand(term, index));
    if (!emitted)
      return {};
    mapping.map(operand, emitted);
  }
  return inside.clone(*op, mapping)->getResult(cast<OpResult>(term.value).getResultNumber());
}

/// Creates a tensor of which each element is what a sum starts with.
Value ScanFormer::createStart(ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, start.getType());
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, Attribute(start)));
}

Value ScanFormer::createEmpty(ArrayRef<int64_t> shape) {
  return tensor::EmptyOp::create(builder, loc, shape, start.getType());
}

/// Creates an op that combines terms along its loop `walk.reduced`. Returns its first result.
Value ScanFormer::createWalk(const Walk &walk) {
  unsigned loops = walk.ranges.size();
  SmallVector<Value> operands(walk.terms.tensors);
  SmallVector<AffineMap> maps =
      llvm::map_to_vector(walk.terms.maps, [&](AffineMap map) { return map.compose(walk.place); });
  // A linalg op has the size of a loop only from an operand that the loop walks.
  for (unsigned loop = 0; loop < loops; ++loop) {
    AffineExpr dim = builder.getAffineDimExpr(loop);
    auto walks = [&](AffineMap map) { return llvm::is_contained(map.getResults(), dim); };
    if (llvm::any_of(maps, walks) || llvm::any_of(walk.maps, walks))
      continue;
    operands.push_back(createEmpty(walk.ranges[loop]));
    maps.push_back(AffineMap::get(loops, 0, dim));
  }
  llvm::append_range(maps, walk.maps);
  SmallVector<utils::IteratorType> kinds(loops, utils::IteratorType::parallel);
  kinds[walk.reduced] = utils::IteratorType::reduction;
  auto op = linalg::GenericOp::create(
      builder, loc, TypeRange(ValueRange(walk.inits)), operands, walk.inits, maps, kinds,
      [&](OpBuilder &b, Location, ValueRange arguments) {
        IRMapping mapping;
        Block &body = *walk.terms.body;
        mapping.map(body.getArguments(), arguments.take_front(body.getNumArguments()));
        for (Operation &inner : body)
          b.clone(inner, mapping);
        Value before = arguments.back();
        IRMapping operandsOf;
        for (Value operand : combine->getOperands())
          operandsOf.map(operand,
                         operand == accumulator ? before : mapping.lookup(walk.terms.value));
        Value after = b.clone(*combine, operandsOf)->getResult(0);
        SmallVector<Value> yielded(walk.inits.size(), after);
        if (walk.isExclusive)
          yielded.front() = before;
        linalg::YieldOp::create(b, loc, yielded);
      });
  return op->getResult(0);
}

/// Creates the scan as one walk along the whole dimension.
Value ScanFormer::createWhole() {
  unsigned rank = shape.size();
  SmallVector<AffineExpr> stored;
  for (unsigned dim = 0; dim < rank; ++dim)
    stored.push_back(getLoop(dim));
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  SmallVector<int64_t> kept(shape);
  kept.erase(kept.begin() + walked);
  return createWalk(
      {terms,
       all,
       shape,
       walked,
       {createEmpty(shape), createStart(kept)},
       {AffineMap::get(rank, 0, stored, builder.getContext()), all.dropResult(walked)},
       order.isExclusive});
}

/// Creates the scan in parts of `length` elements: their sums, a scan of those, and a scan of each
/// part that starts from what the parts before it have.
Value ScanFormer::createInParts(int64_t length) {
  MLIRContext *context = builder.getContext();
  unsigned rank = shape.size();
  const int64_t parts = size / length;
  SmallVector<int64_t> partShape(shape), kept(shape);
  partShape[walked] = parts;
  kept.erase(kept.begin() + walked);
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  AffineMap ofPart = AffineMap::getMultiDimIdentityMap(rank + 1, context).dropResult(rank);
  AffineExpr part = builder.getAffineDimExpr(walked), inPart = builder.getAffineDimExpr(rank);
  SmallVector<AffineExpr> places(ofPart.getResults()), stored(ofPart.getResults());
  places[walked] = part * length + inPart;
  AffineMap place = AffineMap::get(rank + 1, 0, places, context);
  SmallVector<int64_t> ranges(partShape), split(partShape);
  ranges.push_back(length);

  Value totals = createWalk(
      {terms, place, ranges, rank, {createStart(partShape)}, {ofPart}, /*isExclusive=*/false});
  Block body;
  Terms ofTotals = {{totals}, {all}, &body, body.addArgument(start.getType(), loc)};
  Value before = createWalk({ofTotals,
                             all,
                             partShape,
                             walked,
                             {createEmpty(partShape), createStart(kept)},
                             {all, all.dropResult(walked)},
                             /*isExclusive=*/true});
  split.insert(split.begin() + walked + 1, length);
  stored[walked] = order.isReversed ? parts - 1 - part : part;
  stored.insert(stored.begin() + walked + 1, order.isReversed ? length - 1 - inPart : inPart);
  Value scanned = createWalk({terms,
                              place,
                              ranges,
                              rank,
                              {createEmpty(split), before},
                              {AffineMap::get(rank + 1, 0, stored, context), ofPart},
                              order.isExclusive});
  return createReshape(builder, loc, RankedTensorType::get(shape, start.getType()), scanned);
}

/// Returns the length of the parts that keep a device of `units` busy, or nothing if the rows do,
/// no such parts are equal, or they would be too short or too few.
std::optional<int64_t> ScanFormer::choosePart() {
  constexpr int64_t ofUnit = 2048; // invocations that a unit runs at a time
  constexpr int64_t shortest = 8, fewestParts = 8;
  int64_t elements = 1;
  for (int64_t each : shape)
    elements *= each;
  int64_t wanted = std::max(units == 0 ? size : elements / (units * ofUnit), shortest);
  for (int64_t length = wanted; length * fewestParts <= size; ++length)
    if (size % length == 0)
      return length;
  return std::nullopt;
}

Value ScanFormer::run() {
  // Fewer elements are reduced in the kernel of what reads or makes them.
  constexpr int64_t fewest = 9;
  Term root = matcher.unfolder.makeElement(reduction->getResult(0));
  for (const Coord &coord : *root.coords)
    variables.push_back(coord.variable);
  std::optional<Reduction> found = matcher.unfolder.getReduction(root);
  if (!found || found->variables.size() != 1 || !getNeutral(found->combine))
    return {};
  combine = found->combine;
  accumulator = getCombiner(reduction, 0)->accumulator;
  std::optional<Term> term = findTerm(*found);
  if (!term)
    return {};
  auto *place = llvm::find(variables, order.place);
  if (place == variables.end())
    return {};
  walked = place - variables.begin();
  size = shape[walked];
  start = getSplat(found->start.value);
  if (size < fewest || size != matcher.unfolder.getSize(order.element) || !start)
    return {};
  builder.setInsertionPoint(reduction);
  terms.value = emit(*term);
  if (!terms.value)
    return {};
  std::optional<int64_t> part = choosePart();
  return part ? createInParts(*part) : createWhole();
}

namespace {
struct FormScans : weir::impl::FormScansPassBase<FormScans> {
  using FormScansPassBase::FormScansPassBase;

  void runOnOperation() override {
    OpBuilder builder(&getContext());
    int64_t units = 0;
    // Without a profile, a device that is busy with few invocations.
    auto module = getOperation()->getParentOfType<ModuleOp>();
    if (module && module->hasAttr(schedule::profileAttrName)) {
      FailureOr<Profile> profile = getProfile(module);
      if (failed(profile))
        return signalPassFailure();
      units = profile->units;
    }
    for (auto reduction : llvm::make_early_inc_range(getOperation().getOps<linalg::GenericOp>())) {
      if (reduction->getNumResults() != 1 || reduction.getNumReductionLoops() != 1 ||
          !reduction.hasPureTensorSemantics())
        continue;
      if (Value scanned = ScanFormer(reduction, units, builder).run()) {
        reduction->getResult(0).replaceAllUsesWith(scanned);
        reduction.erase();
      }
    }
  }
};
} // namespace
