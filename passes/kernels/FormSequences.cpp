//===- FormSequences.cpp - Loops whose trips compute element by element ---===//
//
// A recurrence such as h = a[t] * h + b[t] is a loop whose body needs, for an element of what it
// carries, only that element. Then all trips of an element are one walk: an op that reduces over
// the trips, keeps what is carried in registers, and stores what a trip inserts into a row of a
// tensor at that step.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/kernels/SequenceFormer.h"
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
