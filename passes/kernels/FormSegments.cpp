//===- FormSegments.cpp - Scatters without comparisons --------------------===//
//
// Front ends write a scatter, and gradients write that of a gather, as a reduction over all updates
// for each row that may be written: a choice of the updates that name the row. With n rows and m
// updates these are n x m comparisons. Sorted by the rows that they name, the updates of a row are
// neighbours, a segment:
//
//     rows that updates name    3 0 3 1     sorted  0 1 3 3     by update  1 3 0 2
//     updates                   a b c d     running sums in segments       b d a a+c
//     rows                      b d 0 a+c
//
// So a scan that starts anew in each segment combines its updates, in their order, and each row
// takes what the scan has at the end of the segment, which a binary search finds.
//
// A processor takes each update to its row instead (lib/Kernels/Scatter.cpp), unless most of the
// time would go into rows that no update names: the reduction is written once more, so that its
// kernel sees the names and the updates.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/graph/Elements.h"

#include "dialects/Norm/Norm.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "weir/Graph/Graph.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace weir {
#define GEN_PASS_DEF_FORMSEGMENTSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;
using namespace weir::elements;

namespace {
/// Finds out whether a reduction combines the updates of a row, and writes it by sorted updates.
class SegmentFormer {
public:
  SegmentFormer(linalg::GenericOp reduction, const Profile &profile, OpBuilder &builder)
      : reduction(reduction), profile(profile), builder(reduction.getLoc(), builder),
        type(cast<RankedTensorType>(reduction->getResultTypes().front())),
        matcher(type.getElementType()) {}

  /// Returns the tensor that replaces the reduction's, or null. Creates nothing then.
  Value run();

private:
  using Builder = ImplicitLocOpBuilder;
  using Body = function_ref<SmallVector<Value>(Builder &b, ValueRange carried)>;

  linalg::GenericOp reduction;
  const Profile &profile;
  ImplicitLocOpBuilder builder;
  RankedTensorType type;
  Matcher matcher;
  Operation *combine = nullptr;
  Value accumulator; ///< of the reduction's body
  TypedAttr neutral;
  Term start, update;
  Term named; ///< the row that an update names
  SmallVector<std::pair<Term, bool>>
      conditions;              ///< that an update is written if they have this value
  SmallVector<int64_t> walked; ///< the variables that number the updates
  int64_t place = 0;           ///< the variable of the rows
  SmallVector<unsigned> batches,
      columns; ///< dimensions of the result, by whether names depend on them
  int64_t rows = 0, updates = 0;
  int64_t chunks = 1, length = 0; ///< of the sorted updates, which the scan walks apart
  DenseMap<int64_t, Value> at;    ///< the values of variables where code is written

  /// Returns the variable of a dimension of the result, which are the matcher's first.
  static int64_t getVariable(unsigned dim) { return int64_t(dim) + 1; }

  bool match();
  bool matchChoice(Term choice);
  bool matchCondition(Term condition, bool isTrue);
  bool isPlace(Term term);
  bool collect(Term term, llvm::SmallDenseSet<int64_t> &variables);
  double countSteps() const;
  bool isWorth() const;
  bool isWorthScatter() const;
  void cut();

  SmallVector<int64_t> getSizes(ArrayRef<unsigned> dims, ArrayRef<int64_t> more = {}) const;
  Value emit(Builder &b, Term term);
  Value emitCoord(Builder &b, const Coord &coord);
  Value emitElement(Builder &b, const Term &term);
  void setDims(Builder &b, ArrayRef<unsigned> dims, unsigned firstLoop);
  void setUpdate(Builder &b, Value number);
  SmallVector<Value> getIndices(Builder &b, unsigned count, unsigned first = 0);
  Value combineValues(Builder &b, Value before, Value value);
  SmallVector<Value> compute(ArrayRef<int64_t> ranges, bool walksLast, ValueRange inits,
                             ArrayRef<AffineMap> maps, Body body, ValueRange read = {});
  Value splat(ArrayRef<int64_t> shape, TypedAttr value);
  Value emitName(Builder &b, Value isThere);
  DenseMap<int64_t, unsigned> getLoops();
  std::optional<std::pair<Value, AffineMap>> getPlaces(Term term);
  std::pair<Value, AffineMap> createScatterNames();
  std::pair<Value, AffineMap> createUpdates();
  Value createScatter();
  Value createNames();
  Value createSorted(Value names, Value order);
  Value createSums(Value sorted, Value order);
  Value createTotals(Value sorted, Value sums);
  Value createEnds(Value sorted);
  std::pair<Value, Value> createPlaces(Value sorted, Value ends);
  Value createResult(Value sums, Value totals, std::pair<Value, Value> places);
};
} // namespace

static Value index(ImplicitLocOpBuilder &b, int64_t number) {
  return arith::ConstantIndexOp::create(b, number);
}
static Value word(ImplicitLocOpBuilder &b, int64_t number) {
  return arith::ConstantIntOp::create(b, b.getI32Type(), number);
}
static Value toIndex(ImplicitLocOpBuilder &b, Value value) {
  return arith::IndexCastOp::create(b, b.getIndexType(), value);
}
static Value toWord(ImplicitLocOpBuilder &b, Value value) {
  return arith::IndexCastOp::create(b, b.getI32Type(), value);
}
static Value add(ImplicitLocOpBuilder &b, Value value, int64_t number) {
  return arith::AddIOp::create(b, value, index(b, number));
}
static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate, Value one,
                     Value other) {
  return arith::CmpIOp::create(b, predicate, one, other);
}
static Value both(ImplicitLocOpBuilder &b, Value one, Value other) {
  return arith::AndIOp::create(b, one, other);
}
static Value select(ImplicitLocOpBuilder &b, Value condition, Value one, Value other) {
  return arith::SelectOp::create(b, condition, one, other);
}
static Value extract(ImplicitLocOpBuilder &b, Value tensor, ArrayRef<Value> front,
                     ArrayRef<Value> back) {
  SmallVector<Value> indices(front);
  llvm::append_range(indices, back);
  return tensor::ExtractOp::create(b, tensor, indices);
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// Whether a term is the number of the row, as an integer that holds all such numbers.
bool SegmentFormer::isPlace(Term term) {
  while (Operation *op = matcher.unfolder.getOp(term)) {
    if (auto loop = dyn_cast<linalg::IndexOp>(op))
      return term.scope->loops[loop.getDim()].isVariable(place);
    if (!isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
      return false;
    Type to = term.value.getType();
    if (!to.isIndex() && !llvm::isIntN(to.getIntOrFloatBitWidth(), rows - 1))
      return false;
    term = matcher.unfolder.getOperand(term, 0);
  }
  // A table of the numbers.
  DenseIntElementsAttr table;
  if (!term.isElement() || !matchPattern(term.value, m_Constant(&table)) ||
      table.getNumElements() != rows ||
      llvm::none_of(*term.coords, [&](const Coord &coord) { return coord.isVariable(place); }))
    return false;
  return llvm::all_of(llvm::enumerate(table.getValues<APInt>()), [](const auto &entry) {
    return entry.value().getSExtValue() == int64_t(entry.index());
  });
}

/// Collects the variables that a term depends on. Returns false if its code cannot be written.
bool SegmentFormer::collect(Term term, llvm::SmallDenseSet<int64_t> &variables) {
  while (true) {
    if (term.isElement() ? bool(getSplat(term.value)) : matchPattern(term.value, m_Constant()))
      return true;
    if (term.isElement()) {
      llvm::SmallDenseSet<int64_t> own;
      bool isKnown = llvm::all_of(*term.coords, [&](const Coord &coord) {
        if (coord.computed.value)
          return collect(coord.computed, own);
        for (const elements::Digit &digit : coord.digits)
          own.insert(digit.variable);
        return true;
      });
      if (isKnown && !own.contains(place)) {
        variables.insert(own.begin(), own.end());
        return true;
      }
    }
    std::optional<Term> next = matcher.unfolder.step(term);
    if (!next)
      break;
    term = *next;
  }
  Operation *op = term.isElement() ? nullptr : term.value.getDefiningOp();
  if (!op)
    return false;
  if (auto loop = dyn_cast<linalg::IndexOp>(op)) {
    const Coord &coord = term.scope->loops[loop.getDim()];
    if (coord.computed.value)
      return collect(coord.computed, variables);
    for (const elements::Digit &digit : coord.digits)
      variables.insert(digit.variable);
    return true;
  }
  if (!isPure(op) || op->getNumRegions() != 0 ||
      !isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return false;
  return llvm::all_of(llvm::seq(op->getNumOperands()), [&](unsigned number) {
    return collect(matcher.unfolder.getOperand(term, number), variables);
  });
}

/// Takes what must hold for an update to be written. Finds the row that it names among that.
bool SegmentFormer::matchCondition(Term condition, bool isTrue) {
  Operation *op = matcher.unfolder.getOp(condition);
  if (isTrue && isa_and_present<arith::AndIOp>(op))
    return matchCondition(matcher.unfolder.getOperand(condition, 0), true) &&
           matchCondition(matcher.unfolder.getOperand(condition, 1), true);
  auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
  auto wanted = isTrue ? arith::CmpIPredicate::eq : arith::CmpIPredicate::ne;
  if (compare && compare.getPredicate() == wanted && !named.value)
    for (unsigned side : {0u, 1u})
      if (isPlace(matcher.unfolder.getOperand(condition, side))) {
        named = matcher.unfolder.getOperand(condition, 1 - side);
        return true;
      }
  conditions.push_back({condition, isTrue});
  return true;
}

/// Finds the updates and their conditions in the choice of a term or the neutral element.
bool SegmentFormer::matchChoice(Term choice) {
  if (!isa_and_present<arith::SelectOp>(matcher.unfolder.getOp(choice)))
    return false;
  auto isNeutral = [&](Term term) {
    if (auto real = dyn_cast<FloatAttr>(neutral))
      return matcher.floatConstant(term) == real.getValueAsDouble();
    return matcher.integerConstant(term) == cast<IntegerAttr>(neutral).getValue().getSExtValue();
  };
  bool isTrue = isNeutral(matcher.unfolder.getOperand(choice, 2));
  if (!isTrue && !isNeutral(matcher.unfolder.getOperand(choice, 1)))
    return false;
  update = matcher.unfolder.getOperand(choice, isTrue ? 1 : 2);
  return matchCondition(matcher.unfolder.getOperand(choice, 0), isTrue) && named.value;
}

bool SegmentFormer::match() {
  Term root = matcher.unfolder.makeElement(reduction->getResult(0));
  SmallVector<int64_t> variables =
      llvm::map_to_vector(*root.coords, [](const Coord &coord) { return coord.variable; });
  std::optional<Reduction> found = matcher.unfolder.getReduction(root);
  neutral = found ? getNeutral(found->combine) : TypedAttr();
  if (!neutral || !isa<IntegerAttr, FloatAttr>(neutral))
    return false;
  combine = found->combine;
  accumulator = getCombiner(reduction, 0)->accumulator;
  start = found->start;
  walked = found->variables;
  updates = 1;
  for (int64_t variable : walked)
    updates *= matcher.unfolder.getSize(variable);
  for (auto [dim, variable] : llvm::enumerate(variables)) {
    if (variable == 0)
      continue;
    place = variable;
    rows = type.getDimSize(dim);
    named = {};
    conditions.clear();
    if (matchChoice(found->body))
      break;
    place = 0;
  }
  if (place == 0)
    return false;
  llvm::SmallDenseSet<int64_t> ofNames, ofUpdates;
  if (!collect(named, ofNames) || !collect(update, ofUpdates) ||
      !llvm::all_of(conditions, [&](auto &one) { return collect(one.first, ofNames); }) ||
      ofNames.contains(place) || ofUpdates.contains(place))
    return false;
  for (auto [dim, variable] : llvm::enumerate(variables))
    if (variable != 0 && variable != place)
      (ofNames.contains(variable) ? batches : columns).push_back(dim);
  return true;
}

/// Returns the steps that segments take, of which each sorts, searches or adds an element.
double SegmentFormer::countSteps() const {
  double m = updates, n = rows, width = llvm::product_of(getSizes(columns), int64_t(1));
  double levels = llvm::Log2_64_Ceil(updates);
  return 3 * m * levels + 2 * n * levels + 2 * m * width;
}

/// Whether sorting takes much less than comparing each row with each update. Kernels compare many
/// at once, and take one dispatch for it.
bool SegmentFormer::isWorth() const {
  constexpr double atOnce = 16, fewest = 256, largest = 1 << 30;
  if (updates < fewest || updates > largest || rows >= largest)
    return false;
  return double(rows) * double(updates) > atOnce * countSteps();
}

/// Whether a processor is to take each update to its row, in their order. A name costs about two
/// steps, and a vector adds the elements of an update. But the result is stored twice, and in part
/// by one thread: long rows of which few are named have less to do in segments, and few comparisons
/// are made sooner than another kernel starts.
bool SegmentFormer::isWorthScatter() const {
  constexpr double atOnce = 16, launch = 4096, largest = 1 << 30, inVector = 4;
  double m = updates, n = rows, width = llvm::product_of(getSizes(columns), int64_t(1));
  if (!profile.hasFreeVectors() || updates < 2 || m > largest || n >= largest)
    return false;
  double more = launch + 2 * m + 2 * n * width / inVector;
  return n * m > atOnce * more && (!isWorth() || countSteps() > more + m * width / inVector);
}

/// Cuts the sorted updates into chunks, if there are few other points to keep a device busy.
void SegmentFormer::cut() {
  constexpr int64_t enough = 32768, shortest = 32;
  int64_t points = llvm::product_of(getSizes(batches), int64_t(1)) *
                   llvm::product_of(getSizes(columns), int64_t(1));
  int64_t wanted = std::clamp<int64_t>(enough / points, 1, updates / shortest);
  length = llvm::divideCeil(updates, wanted);
  chunks = llvm::divideCeil(updates, length);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

SmallVector<int64_t> SegmentFormer::getSizes(ArrayRef<unsigned> dims,
                                             ArrayRef<int64_t> more) const {
  SmallVector<int64_t> sizes =
      llvm::map_to_vector(dims, [&](unsigned dim) { return type.getDimSize(dim); });
  llvm::append_range(sizes, more);
  return sizes;
}

Value SegmentFormer::emitCoord(Builder &b, const Coord &coord) {
  if (coord.computed.value)
    return emit(b, coord.computed);
  Value number;
  for (const elements::Digit &digit : coord.digits) {
    Value part = at.lookup(digit.variable);
    if (digit.below != 1)
      part = arith::DivUIOp::create(b, part, index(b, digit.below));
    if (digit.above != 1)
      part = arith::RemUIOp::create(b, part, index(b, digit.size));
    number =
        number
            ? arith::AddIOp::create(b, arith::MulIOp::create(b, number, index(b, digit.size)), part)
            : part;
  }
  return number ? number : index(b, 0);
}

/// Reads an element at its place.
Value SegmentFormer::emitElement(Builder &b, const Term &term) {
  SmallVector<Value> indices;
  for (const Coord &coord : *term.coords)
    indices.push_back(emitCoord(b, coord));
  return tensor::ExtractOp::create(b, term.value, indices);
}

/// Writes the code of a term that `collect` accepts, where all its variables have values.
Value SegmentFormer::emit(Builder &b, Term term) {
  while (true) {
    TypedAttr constant = term.isElement() ? getSplat(term.value) : TypedAttr();
    if (constant || (!term.isElement() && matchPattern(term.value, m_Constant(&constant))))
      return arith::ConstantOp::create(b, constant);
    auto isKnown = [&](const Coord &coord) {
      llvm::SmallDenseSet<int64_t> own;
      if (coord.computed.value)
        return collect(coord.computed, own) && !own.contains(place);
      return llvm::none_of(coord.digits,
                           [&](const elements::Digit &digit) { return digit.variable == place; });
    };
    if (term.isElement() && llvm::all_of(*term.coords, isKnown))
      return emitElement(b, term);
    std::optional<Term> next = matcher.unfolder.step(term);
    if (!next)
      break;
    term = *next;
  }
  Operation *op = term.value.getDefiningOp();
  if (auto loop = dyn_cast<linalg::IndexOp>(op))
    return emitCoord(b, term.scope->loops[loop.getDim()]);
  IRMapping mapping;
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    mapping.map(operand, emit(b, matcher.unfolder.getOperand(term, number)));
  return b.clone(*op, mapping)->getResult(cast<OpResult>(term.value).getResultNumber());
}

SmallVector<Value> SegmentFormer::getIndices(Builder &b, unsigned count, unsigned first) {
  SmallVector<Value> indices;
  for (unsigned loop = first; loop < first + count; ++loop)
    indices.push_back(linalg::IndexOp::create(b, loop));
  return indices;
}

/// Gives dimensions of the result the values of loops.
void SegmentFormer::setDims(Builder &b, ArrayRef<unsigned> dims, unsigned firstLoop) {
  for (auto [number, dim] : llvm::enumerate(dims))
    at[getVariable(dim)] = linalg::IndexOp::create(b, firstLoop + number);
}

/// Gives the variables that number the updates their values for an update.
void SegmentFormer::setUpdate(Builder &b, Value number) {
  int64_t below = updates;
  for (int64_t variable : walked) {
    int64_t size = matcher.unfolder.getSize(variable);
    if (size == 1)
      continue;
    below /= size;
    Value digit = number;
    if (below != 1)
      digit = arith::DivUIOp::create(b, digit, index(b, below));
    if (below * size != updates)
      digit = arith::RemUIOp::create(b, digit, index(b, size));
    at[variable] = digit;
  }
}

Value SegmentFormer::combineValues(Builder &b, Value before, Value value) {
  IRMapping mapping;
  for (Value operand : combine->getOperands())
    mapping.map(operand, operand == accumulator ? before : value);
  return b.clone(*combine, mapping)->getResult(0);
}

/// Creates an op over `ranges`, the last of which it walks in order if `walksLast`. The body gets
/// the elements of `read`, whose maps come first, and then those that it combines.
SmallVector<Value> SegmentFormer::compute(ArrayRef<int64_t> ranges, bool walksLast,
                                          ValueRange inits, ArrayRef<AffineMap> maps, Body body,
                                          ValueRange read) {
  SmallVector<utils::IteratorType> kinds(ranges.size(), utils::IteratorType::parallel);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> all;
  if (walksLast) {
    kinds.back() = utils::IteratorType::reduction;
    // A linalg op has the size of a loop only from an operand that the loop walks.
    inputs.push_back(tensor::EmptyOp::create(builder, ranges.back(), builder.getI32Type()));
    all.push_back(AffineMap::get(ranges.size(), 0, builder.getAffineDimExpr(ranges.size() - 1)));
  }
  unsigned skipped = inputs.size();
  llvm::append_range(inputs, read);
  llvm::append_range(all, maps);
  auto generic = linalg::GenericOp::create(
      builder, TypeRange(inits), inputs, inits, all, kinds,
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        Builder b(loc, inner);
        linalg::YieldOp::create(b, body(b, arguments.drop_front(skipped)));
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

Value SegmentFormer::splat(ArrayRef<int64_t> shape, TypedAttr value) {
  auto of = RankedTensorType::get(shape, value.getType());
  return arith::ConstantOp::create(builder, DenseElementsAttr::get(of, Attribute(value)));
}

/// Writes the row that the update at the point names, or one behind the last row if it is not
/// written: if `isThere`, unless null, or one of the conditions does not hold.
Value SegmentFormer::emitName(Builder &b, Value isThere) {
  Value name = emit(b, named);
  unsigned width = name.getType().isIndex() ? 64 : name.getType().getIntOrFloatBitWidth();
  Value isWritten = isThere;
  auto require = [&](Value holds) { isWritten = isWritten ? both(b, isWritten, holds) : holds; };
  if (llvm::isUIntN(width, rows)) {
    Value end = arith::ConstantOp::create(b, b.getIntegerAttr(name.getType(), rows));
    require(compare(b, arith::CmpIPredicate::ult, name, end));
  }
  for (auto [condition, isTrue] : conditions) {
    Value holds = emit(b, condition);
    if (!isTrue)
      holds = arith::XOrIOp::create(b, holds, arith::ConstantIntOp::create(b, b.getI1Type(), 1));
    require(holds);
  }
  if (name.getType().isIndex())
    name = toWord(b, name);
  else if (width > 32)
    name = arith::TruncIOp::create(b, b.getI32Type(), name);
  else if (width < 32)
    name = arith::ExtUIOp::create(b, b.getI32Type(), name);
  return isWritten ? select(b, isWritten, name, word(b, rows)) : name;
}

/// Creates the row that each update names, or one behind the last row if it is not written.
Value SegmentFormer::createNames() {
  SmallVector<int64_t> shape = getSizes(batches, {chunks * length});
  Value empty = tensor::EmptyOp::create(builder, shape, builder.getI32Type());
  unsigned rank = shape.size();
  return compute(shape, false, empty, builder.getMultiDimIdentityMap(rank),
                 [&](Builder &b, ValueRange) -> SmallVector<Value> {
                   setDims(b, batches, 0);
                   Value number = linalg::IndexOp::create(b, rank - 1);
                   setUpdate(b, arith::MinUIOp::create(b, number, index(b, updates - 1)));
                   Value isThere = compare(b, arith::CmpIPredicate::ult, number, index(b, updates));
                   return {emitName(b, isThere)};
                 })
      .front();
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

/// Returns the loop of the scatter for each variable of several values: those of the result's
/// dimensions, then those that number the updates.
DenseMap<int64_t, unsigned> SegmentFormer::getLoops() {
  DenseMap<int64_t, unsigned> loops;
  unsigned next = type.getRank();
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    loops[getVariable(dim)] = dim;
  for (int64_t variable : walked)
    if (matcher.unfolder.getSize(variable) != 1)
      loops[variable] = next++;
  return loops;
}

/// Returns the tensor that a term is an element of, with the map from the scatter's loops to its
/// indices, or nothing if the term is computed, or the index of its element.
std::optional<std::pair<Value, AffineMap>> SegmentFormer::getPlaces(Term term) {
  auto variesWithRow = [&](const Coord &coord) {
    return llvm::any_of(coord.digits,
                        [&](const elements::Digit &digit) { return digit.variable == place; });
  };
  while (!term.isElement() || llvm::any_of(*term.coords, variesWithRow)) {
    std::optional<Term> next = matcher.unfolder.step(term);
    if (!next)
      return std::nullopt;
    term = *next;
  }
  if (getSplat(term.value))
    return std::nullopt;
  MLIRContext *context = builder.getContext();
  DenseMap<int64_t, unsigned> loops = getLoops();
  SmallVector<AffineExpr> indices;
  for (const Coord &coord : *term.coords) {
    if (coord.computed.value)
      return std::nullopt;
    AffineExpr index = getAffineConstantExpr(0, context);
    for (const elements::Digit &digit : coord.digits) {
      AffineExpr part = getAffineDimExpr(loops.lookup(digit.variable), context);
      part = part.floorDiv(digit.below);
      index = index * digit.size + (digit.above == 1 ? part : part % digit.size);
    }
    indices.push_back(index);
  }
  return std::pair(term.value, AffineMap::get(type.getRank() + walked.size(), 0, indices, context));
}

/// Returns a tensor of the rows that updates name, and the map from the scatter's loops to its
/// indices: the tensor that the reduction compares, if all its elements count and the loops of all
/// updates are its dimensions; or else one that is computed.
std::pair<Value, AffineMap> SegmentFormer::createScatterNames() {
  DenseMap<int64_t, unsigned> loops = getLoops();
  SmallVector<int64_t> several;
  llvm::copy_if(walked, std::back_inserter(several),
                [&](int64_t variable) { return loops.contains(variable); });
  const unsigned rank = type.getRank();
  if (auto found = getPlaces(named); found && conditions.empty()) {
    auto [names, places] = *found;
    Type element = cast<RankedTensorType>(names.getType()).getElementType();
    auto isLoop = llvm::IsaPred<AffineDimExpr, AffineConstantExpr>;
    bool areLoops = llvm::all_of(places.getResults(), isLoop) &&
                    llvm::all_of(several, [&, map = places](int64_t variable) {
                      return map.isFunctionOfDim(loops.lookup(variable));
                    });
    if (areLoops && (element.isInteger(32) || element.isInteger(64)))
      return *found;
  }
  SmallVector<int64_t> shape = getSizes(batches);
  SmallVector<AffineExpr> indices;
  for (unsigned dim : batches)
    indices.push_back(builder.getAffineDimExpr(dim));
  for (int64_t variable : several) {
    shape.push_back(matcher.unfolder.getSize(variable));
    indices.push_back(builder.getAffineDimExpr(loops.lookup(variable)));
  }
  Value empty = tensor::EmptyOp::create(builder, shape, builder.getI32Type());
  Value names = compute(shape, false, empty, builder.getMultiDimIdentityMap(shape.size()),
                        [&](Builder &b, ValueRange) -> SmallVector<Value> {
                          setDims(b, batches, 0);
                          for (auto [number, variable] : llvm::enumerate(several))
                            at[variable] = linalg::IndexOp::create(b, batches.size() + number);
                          return {emitName(b, Value())};
                        })
                    .front();
  return {names, AffineMap::get(rank + walked.size(), 0, indices, builder.getContext())};
}

/// Returns a tensor of the updates, and the map from the scatter's loops to its indices; null for
/// an update that is the same everywhere.
std::pair<Value, AffineMap> SegmentFormer::createUpdates() {
  if (auto found = getPlaces(update);
      found &&
      cast<RankedTensorType>(found->first.getType()).getElementType() == type.getElementType())
    return *found;
  llvm::SmallDenseSet<int64_t> variables;
  collect(update, variables);
  SmallVector<int64_t> used, shape;
  SmallVector<AffineExpr> indices;
  DenseMap<int64_t, unsigned> loops = getLoops();
  auto use = [&](int64_t variable) {
    if (!variables.contains(variable) || matcher.unfolder.getSize(variable) == 1)
      return;
    used.push_back(variable);
    shape.push_back(matcher.unfolder.getSize(variable));
    indices.push_back(builder.getAffineDimExpr(loops.lookup(variable)));
  };
  llvm::for_each(walked, use);
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    use(getVariable(dim));
  if (used.empty())
    return {};
  Value empty = tensor::EmptyOp::create(builder, shape, type.getElementType());
  Value made = compute(shape, false, empty, builder.getMultiDimIdentityMap(shape.size()),
                       [&](Builder &b, ValueRange) -> SmallVector<Value> {
                         for (auto [number, variable] : llvm::enumerate(used))
                           at[variable] = linalg::IndexOp::create(b, number);
                         return {emit(b, update)};
                       })
                   .front();
  return {made, AffineMap::get(type.getRank() + walked.size(), 0, indices, builder.getContext())};
}

/// Creates the reduction anew, of names and updates, as a kernel of its own: `getScatter`.
Value SegmentFormer::createScatter() {
  llvm::erase_if(walked, [&](int64_t variable) { return matcher.unfolder.getSize(variable) == 1; });
  const unsigned rank = type.getRank(), loops = rank + walked.size();
  auto [names, namePlaces] = createScatterNames();
  auto [updates, updatePlaces] = createUpdates();
  SmallVector<Value> inputs = {names};
  SmallVector<AffineMap> maps = {namePlaces};
  if (updates) {
    inputs.push_back(updates);
    maps.push_back(updatePlaces);
  }
  SmallVector<unsigned> dims = llvm::to_vector(llvm::seq(rank));
  maps.push_back(AffineMap::getMultiDimMapWithTargets(loops, dims, builder.getContext()));
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  kinds.append(walked.size(), utils::IteratorType::reduction);
  auto scatter = linalg::GenericOp::create(
      builder, type, inputs, reduction.getDpsInits(), maps, kinds,
      [&](OpBuilder &inner, Location loc, ValueRange given) {
        Builder b(loc, inner);
        Value number = linalg::IndexOp::create(b, place - getVariable(0));
        Value row = arith::IndexCastOp::create(b, given.front().getType(), number);
        Value isIts = compare(b, arith::CmpIPredicate::eq, given.front(), row);
        Value value = inputs.size() > 1 ? given[1] : emit(b, update);
        Value none = arith::ConstantOp::create(b, neutral);
        linalg::YieldOp::create(b, combineValues(b, given.back(), select(b, isIts, value, none)));
      });
  scatter->setAttr(schedule::noFuseAttrName, builder.getUnitAttr());
  scatter->setAttr(schedule::scatterAttrName, builder.getUnitAttr());
  return scatter->getResult(0);
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// Creates the rows' names in sorted order.
Value SegmentFormer::createSorted(Value names, Value order) {
  SmallVector<int64_t> shape = getSizes(batches, {chunks * length});
  Value empty = tensor::EmptyOp::create(builder, shape, builder.getI32Type());
  unsigned rank = shape.size();
  return compute(shape, false, empty, builder.getMultiDimIdentityMap(rank),
                 [&](Builder &b, ValueRange) -> SmallVector<Value> {
                   SmallVector<Value> batch = getIndices(b, rank - 1);
                   Value sortedTo = linalg::IndexOp::create(b, rank - 1);
                   Value number = extract(b, order, batch, sortedTo);
                   Value inside = arith::MinUIOp::create(b, number, word(b, chunks * length - 1));
                   return {extract(b, names, batch, toIndex(b, inside))};
                 })
      .front();
}

/// Creates for each sorted update what those of its segment up to it have together, in its chunk:
/// [batches, chunk, place in the chunk, columns].
Value SegmentFormer::createSums(Value sorted, Value order) {
  SmallVector<int64_t> ranges = getSizes(batches, {chunks});
  unsigned first = ranges.size(); // of the columns
  llvm::append_range(ranges, getSizes(columns));
  unsigned last = ranges.size(); // the walked loop
  SmallVector<int64_t> carried(ranges), stored = getSizes(batches, {chunks, length});
  llvm::append_range(stored, getSizes(columns));
  ranges.push_back(length);
  SmallVector<AffineExpr> places;
  for (unsigned loop = 0; loop < first; ++loop)
    places.push_back(builder.getAffineDimExpr(loop));
  places.push_back(builder.getAffineDimExpr(last));
  for (unsigned loop = first; loop < last; ++loop)
    places.push_back(builder.getAffineDimExpr(loop));
  MLIRContext *context = builder.getContext();
  AffineMap all = AffineMap::getMultiDimIdentityMap(last + 1, context);
  return compute(ranges, true,
                 {tensor::EmptyOp::create(builder, stored, type.getElementType()),
                  splat(carried, neutral)},
                 {AffineMap::get(last + 1, 0, places, context), all.dropResult(last)},
                 [&](Builder &b, ValueRange running) -> SmallVector<Value> {
                   setDims(b, batches, 0);
                   setDims(b, columns, first);
                   SmallVector<Value> batch = getIndices(b, batches.size());
                   Value inChunk = linalg::IndexOp::create(b, last);
                   Value chunk = linalg::IndexOp::create(b, batches.size());
                   Value number = arith::AddIOp::create(
                       b, arith::MulIOp::create(b, chunk, index(b, length)), inChunk);
                   Value before = arith::MaxSIOp::create(b, add(b, number, -1), index(b, 0));
                   Value continues =
                       compare(b, arith::CmpIPredicate::eq, extract(b, sorted, batch, number),
                               extract(b, sorted, batch, before));
                   continues = both(b, continues,
                                    compare(b, arith::CmpIPredicate::ne, inChunk, index(b, 0)));
                   Value its = extract(b, order, batch, number);
                   setUpdate(b, toIndex(b, arith::MinUIOp::create(b, its, word(b, updates - 1))));
                   Value none = arith::ConstantOp::create(b, neutral);
                   Value next =
                       combineValues(b, select(b, continues, running[1], none), emit(b, update));
                   return {next, next};
                 })
      .front();
}

/// Creates for each chunk what the last segment in it has up to its end, with what chunks before
/// have of that: [batches, chunk, columns].
Value SegmentFormer::createTotals(Value sorted, Value sums) {
  SmallVector<int64_t> carried = getSizes(batches), stored = getSizes(batches, {chunks});
  unsigned first = carried.size();
  llvm::append_range(carried, getSizes(columns));
  llvm::append_range(stored, getSizes(columns));
  unsigned last = carried.size();
  SmallVector<int64_t> ranges(carried);
  ranges.push_back(chunks);
  MLIRContext *context = builder.getContext();
  AffineMap all = AffineMap::getMultiDimIdentityMap(last + 1, context);
  SmallVector<AffineExpr> places(all.getResults().take_front(first));
  places.push_back(builder.getAffineDimExpr(last));
  for (unsigned loop = first; loop < last; ++loop)
    places.push_back(builder.getAffineDimExpr(loop));
  return compute(ranges, true,
                 {tensor::EmptyOp::create(builder, stored, type.getElementType()),
                  splat(carried, neutral)},
                 {AffineMap::get(last + 1, 0, places, context), all.dropResult(last)},
                 [&](Builder &b, ValueRange running) -> SmallVector<Value> {
                   SmallVector<Value> batch = getIndices(b, first),
                                      in = getIndices(b, last - first, first);
                   Value chunk = linalg::IndexOp::create(b, last);
                   Value begin = arith::MulIOp::create(b, chunk, index(b, length));
                   Value before = arith::MaxSIOp::create(b, add(b, begin, -1), index(b, 0));
                   Value name = extract(b, sorted, batch, begin);
                   Value isOne = compare(b, arith::CmpIPredicate::eq, name,
                                         extract(b, sorted, batch, add(b, begin, length - 1)));
                   Value continues = compare(b, arith::CmpIPredicate::eq, name,
                                             extract(b, sorted, batch, before));
                   continues =
                       both(b, continues, compare(b, arith::CmpIPredicate::ne, chunk, index(b, 0)));
                   SmallVector<Value> end = {chunk, index(b, length - 1)};
                   llvm::append_range(end, in);
                   Value own = extract(b, sums, batch, end);
                   Value next =
                       select(b, both(b, isOne, continues), combineValues(b, running[1], own), own);
                   return {next, next};
                 })
      .front();
}

/// Creates for each row the number of updates that name it or a row before it, by a binary search.
Value SegmentFormer::createEnds(Value sorted) {
  SmallVector<int64_t> shape = getSizes(batches, {rows}), ranges(shape);
  unsigned rank = shape.size();
  int64_t count = chunks * length;
  ranges.push_back(llvm::Log2_64_Ceil(count + 1));
  AffineMap kept =
      AffineMap::getMultiDimIdentityMap(rank + 1, builder.getContext()).dropResult(rank);
  return compute(ranges, true,
                 {splat(shape, builder.getI32IntegerAttr(0)),
                  splat(shape, builder.getI32IntegerAttr(count))},
                 {kept, kept},
                 [&](Builder &b, ValueRange running) -> SmallVector<Value> {
                   Value low = running[0], high = running[1];
                   Value middle =
                       arith::ShRUIOp::create(b, arith::AddIOp::create(b, low, high), word(b, 1));
                   Value inside = arith::MinUIOp::create(b, middle, word(b, count - 1));
                   Value name = extract(b, sorted, getIndices(b, rank - 1), toIndex(b, inside));
                   Value row = toWord(b, linalg::IndexOp::create(b, rank - 1));
                   Value isOpen = compare(b, arith::CmpIPredicate::slt, low, high);
                   Value isBehind = compare(b, arith::CmpIPredicate::sle, name, row);
                   Value above = arith::AddIOp::create(b, middle, word(b, 1));
                   return {select(b, both(b, isOpen, isBehind), above, low),
                           select(b, isBehind, high, arith::MinUIOp::create(b, middle, high))};
                 })
      .front();
}

/// Creates for each row the number of the last sorted update that names it, or -1, and the number
/// of the chunk before that update's if the segment begins there or earlier, or -1.
std::pair<Value, Value> SegmentFormer::createPlaces(Value sorted, Value ends) {
  SmallVector<int64_t> shape = getSizes(batches, {rows});
  unsigned rank = shape.size();
  Value empty = tensor::EmptyOp::create(builder, shape, builder.getI32Type());
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  SmallVector<Value> places = compute(
      shape, false, {empty, empty}, {all, all}, [&](Builder &b, ValueRange) -> SmallVector<Value> {
        SmallVector<Value> batch = getIndices(b, rank - 1);
        Value row = linalg::IndexOp::create(b, rank - 1), name = toWord(b, row);
        auto isNamed = [&](Value number) {
          return compare(b, arith::CmpIPredicate::eq, extract(b, sorted, batch, number), name);
        };
        Value end = extract(b, ends, batch, row), none = word(b, -1);
        Value number = arith::SubIOp::create(b, end, word(b, 1));
        Value inside = toIndex(b, arith::MinUIOp::create(b, number, word(b, chunks * length - 1)));
        Value isWritten =
            both(b, compare(b, arith::CmpIPredicate::ne, end, word(b, 0)), isNamed(inside));
        Value last = select(b, isWritten, number, none);
        if (chunks == 1)
          return {last, none};
        Value chunk = arith::DivUIOp::create(b, inside, index(b, length));
        Value begin = arith::MulIOp::create(b, chunk, index(b, length));
        Value previous = arith::MaxSIOp::create(b, add(b, begin, -1), index(b, 0));
        Value reaches = both(b, isNamed(begin), isNamed(previous));
        reaches = both(b, reaches, compare(b, arith::CmpIPredicate::ne, chunk, index(b, 0)));
        return {last, select(b, reaches, toWord(b, add(b, chunk, -1)), none)};
      });
  return {places[0], places[1]};
}

/// Creates the reduction's result: each row takes what its segment has. What depends on the row
/// alone is computed by `createPlaces`, so that neighbouring elements of a row are read at once.
Value SegmentFormer::createResult(Value sums, Value totals, std::pair<Value, Value> places) {
  unsigned rank = type.getRank();
  Value empty = tensor::EmptyOp::create(builder, type.getShape(), type.getElementType());
  SmallVector<int64_t> joined = getSizes(batches, {chunks * length});
  llvm::append_range(joined, getSizes(columns));
  sums = createReshapes(builder, builder.getLoc(),
                        RankedTensorType::get(joined, type.getElementType()), sums);
  SmallVector<AffineExpr> ofRow =
      llvm::map_to_vector(batches, [&](unsigned dim) { return builder.getAffineDimExpr(dim); });
  ofRow.push_back(builder.getAffineDimExpr(place - getVariable(0)));
  SmallVector<Value> read = {places.first};
  if (chunks > 1)
    read.push_back(places.second);
  SmallVector<AffineMap> maps(read.size(), AffineMap::get(rank, 0, ofRow, builder.getContext()));
  maps.push_back(builder.getMultiDimIdentityMap(rank));
  return compute(
             type.getShape(), false, empty, maps,
             [&](Builder &b, ValueRange given) -> SmallVector<Value> {
               auto getLoops = [&](ArrayRef<unsigned> dims) {
                 return llvm::map_to_vector(
                     dims, [&](unsigned dim) -> Value { return linalg::IndexOp::create(b, dim); });
               };
               SmallVector<Value> batch = getLoops(batches), in = getLoops(columns);
               auto isPlace = [&](Value at) {
                 return compare(b, arith::CmpIPredicate::sge, at, word(b, 0));
               };
               auto readAt = [&](Value tensor, Value at, int64_t size) {
                 Value inside = arith::MinUIOp::create(b, at, word(b, size - 1));
                 SmallVector<Value> indices = {toIndex(b, inside)};
                 llvm::append_range(indices, in);
                 return extract(b, tensor, batch, indices);
               };
               Value last = given[0];
               Value made = readAt(sums, last, chunks * length);
               if (chunks > 1) {
                 Value before = given[1];
                 Value whole = combineValues(b, readAt(totals, before, chunks), made);
                 made = select(b, isPlace(before), whole, made);
               }
               made = select(b, isPlace(last), made, arith::ConstantOp::create(b, neutral));
               if (getSplat(start.value) == neutral)
                 return {made};
               for (unsigned dim = 0; dim < rank; ++dim)
                 at[getVariable(dim)] = linalg::IndexOp::create(b, dim);
               return {combineValues(b, emitElement(b, start), made)};
             },
             read)
      .front();
}

Value SegmentFormer::run() {
  if (!match())
    return {};
  builder.setInsertionPoint(reduction);
  if (isWorthScatter())
    return createScatter();
  if (!isWorth())
    return {};
  cut();
  Value names = createNames();
  Value order = norm::ArgsortOp::create(builder, cast<RankedTensorType>(names.getType()),
                                        ValueRange(names), /*descending=*/false);
  Value sorted = createSorted(names, order);
  Value sums = createSums(sorted, order);
  Value totals = chunks > 1 ? createTotals(sorted, sums) : Value();
  return createResult(sums, totals, createPlaces(sorted, createEnds(sorted)));
}

namespace {
struct FormSegments : weir::impl::FormSegmentsPassBase<FormSegments> {
  using FormSegmentsPassBase::FormSegmentsPassBase;

  void runOnOperation() override {
    FailureOr<Profile> profile = getProfile(getOperation()->getParentOfType<ModuleOp>());
    if (failed(profile))
      return signalPassFailure();
    OpBuilder builder(&getContext());
    for (auto reduction : llvm::make_early_inc_range(getOperation().getOps<linalg::GenericOp>())) {
      if (reduction->getNumResults() != 1 || reduction.getNumReductionLoops() == 0 ||
          !reduction.hasPureTensorSemantics())
        continue;
      if (Value result = SegmentFormer(reduction, *profile, builder).run()) {
        reduction->getResult(0).replaceAllUsesWith(result);
        reduction.erase();
      }
    }
  }
};
} // namespace
