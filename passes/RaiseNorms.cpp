//===- RaiseNorms.cpp - Decomposed norms and losses become norm ops -------===//
//
// What one element of a tensor is, is an expression: linalg bodies, maps and
// reshapes only say which elements it is made of. The patterns are about that
// expression, unfolded on demand, not about the ops that a front end prints.
//
// A candidate is raised only if its whole expression matches; what it was made
// of is then erased if nothing else uses it.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace weir {
#define GEN_PASS_DEF_RAISENORMSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

namespace {
struct Scope;
struct Coords;

/// A scalar: an element of a tensor (`coords` are set), or a value of a linalg
/// body at the point of `scope`, or a value outside of any body (neither is).
struct Term {
  Value value;
  std::shared_ptr<const Scope> scope;
  std::shared_ptr<const Coords> coords;

  bool isElement() const { return coords != nullptr; }
};

/// A place along a dimension: a free or bound variable, or the value of a term.
/// Dimensions of size 1 have only one place, variable 0.
struct Coord {
  int64_t variable = 0;
  Term computed;

  bool isVariable(int64_t other) const { return !computed.value && variable == other; }
};

struct Coords : SmallVector<Coord> {
  using SmallVector::SmallVector;
};

/// The point of a body's iteration space.
struct Scope {
  linalg::GenericOp op;
  Coords loops;
};

/// A reduction of `body` over `variables`, of as many trips as `trips` says.
struct Reduction {
  Operation *combine = nullptr;
  Term body, start;
  SmallVector<int64_t> variables;
};

/// Unfolds terms, and remembers the ops it looked into.
class Unfolder {
public:
  /// Variables are numbers from 1; a size is known for each.
  int64_t makeVariable(int64_t size) {
    sizes.push_back(size);
    return size == 1 ? 0 : int64_t(sizes.size());
  }
  int64_t getSize(int64_t variable) const { return variable == 0 ? 1 : sizes[variable - 1]; }

  /// An element of `tensor` at new variables.
  Term makeElement(Value tensor);
  Term element(Value tensor, Coords coords);

  /// Steps from an element through reshapes, and from a body's argument or a
  /// copy to where it comes from, as long as no scalar op stands between.
  /// `stop`, if given, is not stepped through.
  Term resolve(Term term, Value stop = {});

  /// One such step.
  std::optional<Term> step(const Term &term);

  /// The scalar op that computes the term, or null.
  Operation *getOp(Term &term);
  Term getOperand(const Term &term, unsigned index) {
    return {term.value.getDefiningOp()->getOperand(index), term.scope, nullptr};
  }

  /// The reduction that computes an element, if one does.
  std::optional<Reduction> getReduction(Term term);

  ArrayRef<Operation *> getVisited() const { return visited.getArrayRef(); }

private:
  SmallVector<int64_t> sizes;
  llvm::SetVector<Operation *> visited;

  std::optional<Term> stepIntoBody(const Term &term, linalg::GenericOp op);
  std::optional<Term> stepThroughReshape(const Term &term);
  std::optional<Coords> getLoops(linalg::GenericOp op, AffineMap map, ArrayRef<Coord> coords);
};
} // namespace

Term Unfolder::element(Value tensor, Coords coords) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  for (auto [coord, size] : llvm::zip_equal(coords, shape))
    if (size == 1)
      coord = Coord();
  return {tensor, nullptr, std::make_shared<const Coords>(std::move(coords))};
}

Term Unfolder::makeElement(Value tensor) {
  Coords coords;
  for (int64_t size : cast<RankedTensorType>(tensor.getType()).getShape())
    coords.push_back({makeVariable(size), {}});
  return element(tensor, std::move(coords));
}

/// The loops of `op` that reach the element at `coords` through `map`; loops
/// that the map does not mention stay at variable 0.
std::optional<Coords> Unfolder::getLoops(linalg::GenericOp op, AffineMap map,
                                         ArrayRef<Coord> coords) {
  Coords loops(map.getNumDims());
  llvm::SmallBitVector seen(map.getNumDims());
  for (auto [expr, coord] : llvm::zip_equal(map.getResults(), coords)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (seen.test(dim.getPosition()))
        return std::nullopt;
      seen.set(dim.getPosition());
      loops[dim.getPosition()] = coord;
    } else if (!isa<AffineConstantExpr>(expr) || !coord.isVariable(0)) {
      return std::nullopt;
    }
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (unsigned loop = 0; loop < loops.size(); ++loop)
    if (!seen.test(loop) && ranges[loop] != 1 &&
        op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel)
      return std::nullopt;
  return loops;
}

std::optional<Term> Unfolder::stepIntoBody(const Term &term, linalg::GenericOp op) {
  if (op.getNumReductionLoops() != 0)
    return std::nullopt;
  unsigned result = cast<OpResult>(term.value).getResultNumber();
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  std::optional<Coords> loops = getLoops(op, map, *term.coords);
  if (!loops)
    return std::nullopt;
  visited.insert(op);
  auto scope = std::make_shared<const Scope>(Scope{op, std::move(*loops)});
  return Term{op.getBody()->getTerminator()->getOperand(result), scope, nullptr};
}

/// Reshapes that only add or drop dimensions of size 1.
std::optional<Term> Unfolder::stepThroughReshape(const Term &term) {
  Operation *op = term.value.getDefiningOp();
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (!from.hasStaticShape() || !to.hasStaticShape())
    return std::nullopt;
  Coords kept, coords;
  SmallVector<int64_t> keptSizes;
  for (auto [coord, size] : llvm::zip_equal(*term.coords, to.getShape()))
    if (size != 1) {
      kept.push_back(coord);
      keptSizes.push_back(size);
    }
  unsigned next = 0;
  for (int64_t size : from.getShape()) {
    if (size == 1) {
      coords.emplace_back();
      continue;
    }
    if (next == kept.size() || keptSizes[next] != size)
      return std::nullopt;
    coords.push_back(kept[next++]);
  }
  if (next != kept.size())
    return std::nullopt;
  visited.insert(op);
  return element(op->getOperand(0), std::move(coords));
}

std::optional<Term> Unfolder::step(const Term &term) {
  if (term.isElement()) {
    Operation *op = term.value.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return stepIntoBody(term, generic);
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return stepThroughReshape(term);
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      visited.insert(op);
      return Term{fill.getInputs().front(), nullptr, nullptr};
    }
    if (auto splat = dyn_cast<tensor::SplatOp>(op))
      return Term{splat.getInput(), nullptr, nullptr};
    return std::nullopt;
  }
  if (!term.scope)
    return std::nullopt;
  if (auto argument = dyn_cast<BlockArgument>(term.value)) {
    linalg::GenericOp op = term.scope->op;
    if (argument.getOwner() != op.getBody())
      return std::nullopt;
    OpOperand *operand = op.getMatchingOpOperand(argument);
    if (!isa<ShapedType>(operand->get().getType()))
      return Term{operand->get(), nullptr, nullptr};
    if (!isa<RankedTensorType>(operand->get().getType()))
      return std::nullopt;
    Coords coords;
    for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      auto constant = dyn_cast<AffineConstantExpr>(expr);
      if (!dim && !(constant && constant.getValue() == 0))
        return std::nullopt;
      bool isOnly = cast<RankedTensorType>(operand->get().getType()).getDimSize(coords.size()) == 1;
      if (!dim && !isOnly)
        return std::nullopt;
      coords.push_back(dim ? term.scope->loops[dim.getPosition()] : Coord());
    }
    return element(operand->get(), std::move(coords));
  }
  // A gather is an element at computed coordinates.
  if (auto extract = term.value.getDefiningOp<tensor::ExtractOp>()) {
    Coords coords;
    for (Value index : extract.getIndices()) {
      Term where = {index, term.scope, nullptr};
      if (auto loop = index.getDefiningOp<linalg::IndexOp>())
        coords.push_back(term.scope->loops[loop.getDim()]);
      else
        coords.push_back({-1, where});
    }
    if (!isa<RankedTensorType>(extract.getTensor().getType()))
      return std::nullopt;
    return element(extract.getTensor(), std::move(coords));
  }
  return std::nullopt;
}

Term Unfolder::resolve(Term term, Value stop) {
  while (!(term.isElement() && term.value == stop)) {
    std::optional<Term> next = step(term);
    if (!next)
      break;
    term = *next;
  }
  return term;
}

Operation *Unfolder::getOp(Term &term) {
  term = resolve(term);
  return term.isElement() ? nullptr : term.value.getDefiningOp();
}

std::optional<Reduction> Unfolder::getReduction(Term term) {
  term = resolve(term);
  auto op = term.isElement() ? term.value.getDefiningOp<linalg::GenericOp>() : nullptr;
  if (!op || op.getNumReductionLoops() == 0)
    return std::nullopt;
  unsigned number = cast<OpResult>(term.value).getResultNumber();
  OpOperand *init = op.getDpsInitOperand(number);
  std::optional<Coords> loops = getLoops(op, op.getMatchingIndexingMap(init), *term.coords);
  if (!loops)
    return std::nullopt;

  Operation *combine = op.getBody()->getTerminator()->getOperand(number).getDefiningOp();
  BlockArgument accumulator = op.getMatchingBlockArgument(init);
  if (!combine || combine->getNumOperands() != 2)
    return std::nullopt;
  unsigned side = combine->getOperand(0) == accumulator ? 1 : 0;
  Value reduced = combine->getOperand(side);
  if (combine->getOperand(1 - side) != accumulator)
    return std::nullopt;
  // What is reduced must not depend on what has been reduced so far.
  SmallVector<Value> worklist = {reduced};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == op.getBody() &&
        argument.getArgNumber() >= op.getNumDpsInputs())
      return std::nullopt;
    if (Operation *inner = value.getDefiningOp(); inner && inner->getBlock() == op.getBody())
      worklist.append(inner->operand_begin(), inner->operand_end());
  }

  Reduction reduction;
  reduction.combine = combine;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction) {
      (*loops)[loop] = {makeVariable(ranges[loop]), {}};
      reduction.variables.push_back((*loops)[loop].variable);
    }
  visited.insert(op);
  reduction.start = element(init->get(), *term.coords);
  auto scope = std::make_shared<const Scope>(Scope{op, std::move(*loops)});
  reduction.body = {reduced, scope, nullptr};
  return reduction;
}

//===----------------------------------------------------------------------===//
// Patterns of scalars
//===----------------------------------------------------------------------===//

namespace {
/// Matches expressions; after a failure, what it collected means nothing.
class Matcher {
public:
  /// `type` is the float type of the result: conversions to narrower ones are
  /// part of what is computed, others only say how precisely.
  explicit Matcher(Type type) : type(type) {}

  Unfolder unfolder;

  template <typename Op> std::optional<Term> unary(Term term) {
    if (!isa_and_present<Op>(unfolder.getOp(term)))
      return std::nullopt;
    return unfolder.getOperand(term, 0);
  }
  template <typename Op> std::optional<std::pair<Term, Term>> binary(Term term) {
    if (!isa_and_present<Op>(unfolder.getOp(term)))
      return std::nullopt;
    return std::pair(unfolder.getOperand(term, 0), unfolder.getOperand(term, 1));
  }

  /// A float constant, in f64, seen through conversions between float types.
  std::optional<double> floatConstant(Term term);
  std::optional<int64_t> integerConstant(Term term);
  bool isFloat(Term term, double expected) { return floatConstant(term) == expected; }
  bool isInteger(Term term, int64_t expected) { return integerConstant(term) == expected; }

  /// Drops conversions between float types that are wide enough.
  Term skipConversions(Term term, Value stop = {});

  /// The place where `term`, or what it widens, is read from `tensor`; null if it is not.
  const Coords *getPlace(Term &term, Value tensor);

  /// The tensor of `wanted` type that `term` is read from at a place that
  /// `accepts`; of several copies the first made.
  Value findTensor(Term term, RankedTensorType wanted,
                   llvm::function_ref<bool(ArrayRef<Coord>)> accepts);

  /// The body and the variables of a sum that starts at 0.
  std::optional<Reduction> sum(Term term);
  /// The same of a maximum that starts at -inf and propagates NaN.
  std::optional<Reduction> maximum(Term term);

protected:
  Type type;
};
} // namespace

static bool isAt(ArrayRef<Coord> coords, ArrayRef<int64_t> variables) {
  return llvm::all_of(llvm::zip_equal(coords, variables),
                      [](auto pair) { return std::get<0>(pair).isVariable(std::get<1>(pair)); });
}

std::optional<double> Matcher::floatConstant(Term term) {
  term = skipConversions(term);
  FloatAttr scalar;
  DenseFPElementsAttr dense;
  APFloat value(0.0);
  if (matchPattern(term.value, m_Constant(&scalar)))
    value = scalar.getValue();
  else if (matchPattern(term.value, m_Constant(&dense)) && dense.isSplat())
    value = dense.getSplatValue<APFloat>();
  else
    return std::nullopt;
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

std::optional<int64_t> Matcher::integerConstant(Term term) {
  term = unfolder.resolve(term);
  IntegerAttr scalar;
  DenseIntElementsAttr dense;
  if (matchPattern(term.value, m_Constant(&scalar)))
    return scalar.getValue().getSExtValue();
  if (matchPattern(term.value, m_Constant(&dense)) && dense.isSplat())
    return dense.getSplatValue<APInt>().getSExtValue();
  return std::nullopt;
}

Term Matcher::skipConversions(Term term, Value stop) {
  term = unfolder.resolve(term, stop);
  while (!term.isElement() &&
         isa_and_present<arith::ExtFOp, arith::TruncFOp>(term.value.getDefiningOp()) &&
         term.value.getType().getIntOrFloatBitWidth() >= type.getIntOrFloatBitWidth())
    term = unfolder.resolve(unfolder.getOperand(term, 0), stop);
  return term;
}

const Coords *Matcher::getPlace(Term &term, Value tensor) {
  term = skipConversions(term, tensor);
  return term.isElement() && term.value == tensor ? term.coords.get() : nullptr;
}

Value Matcher::findTensor(Term term, RankedTensorType wanted,
                          llvm::function_ref<bool(ArrayRef<Coord>)> accepts) {
  Value found;
  for (std::optional<Term> at = term; at; at = unfolder.step(*at))
    if (at->isElement() && at->value.getType() == wanted && accepts(*at->coords))
      found = at->value;
  return found;
}

std::optional<Reduction> Matcher::sum(Term term) {
  std::optional<Reduction> reduction = unfolder.getReduction(term);
  if (!reduction)
    return std::nullopt;
  bool isSum = (isa<arith::AddFOp>(reduction->combine) && isFloat(reduction->start, 0.0)) ||
               (isa<arith::AddIOp>(reduction->combine) && isInteger(reduction->start, 0));
  return isSum ? reduction : std::nullopt;
}

std::optional<Reduction> Matcher::maximum(Term term) {
  std::optional<Reduction> reduction = unfolder.getReduction(term);
  if (!reduction || !isa<arith::MaximumFOp>(reduction->combine) ||
      !isFloat(reduction->start, -std::numeric_limits<double>::infinity()))
    return std::nullopt;
  return reduction;
}

//===----------------------------------------------------------------------===//
// LayerNorm
//===----------------------------------------------------------------------===//

namespace {
/// `(x - mean) * rsqrt(variance + eps) * gamma + beta` over the last `axes`
/// dimensions.
class LayerNorm : public Matcher {
public:
  LayerNorm(Value root, int64_t axes)
      : Matcher(getElementTypeOrSelf(root)), root(cast<TypedValue<RankedTensorType>>(root)),
        axes(axes) {
    for (int64_t size : this->root.getType().getShape().take_back(axes))
      count *= double(size);
  }

  bool match();
  Value build(OpBuilder &builder) {
    return norm::LayerNormOp::create(builder, root.getLoc(), root.getType(), x, gamma, beta,
                                     builder.getI64IntegerAttr(axes), builder.getF64FloatAttr(eps));
  }

private:
  TypedValue<RankedTensorType> root;
  int64_t axes;
  double count = 1; // of elements a row
  SmallVector<int64_t> point;
  Value x, gamma, beta;
  double eps = 0;

  Value matchWeight(Term term);
  bool matchScaled(Term term);
  bool matchNormalised(Term term);
  bool matchRstd(Term term);
  bool matchVariance(Term term);
  bool matchCentered(Term term, const Reduction &row);
  bool matchMean(Term term);
  /// The sum that `term` divides by the number of a row's elements.
  std::optional<Reduction> matchMeanOf(Term term);
  /// Whether `term` is x at the row of `point` and the columns that `row` reduces.
  bool isColumn(Term term, const Reduction &row);
};
} // namespace

Value LayerNorm::matchWeight(Term term) {
  auto wanted = RankedTensorType::get(root.getType().getShape().take_back(axes), type);
  return findTensor(term, wanted, [&](ArrayRef<Coord> coords) {
    return isAt(coords, ArrayRef(point).take_back(axes));
  });
}

bool LayerNorm::isColumn(Term term, const Reduction &row) {
  const Coords *place = getPlace(term, x);
  if (!place || !isAt(ArrayRef<Coord>(*place).drop_back(axes), ArrayRef(point).drop_back(axes)))
    return false;
  SmallVector<int64_t> read, reduced;
  for (const Coord &coord : ArrayRef<Coord>(*place).take_back(axes)) {
    if (coord.computed.value)
      return false;
    if (coord.variable != 0)
      read.push_back(coord.variable);
  }
  for (int64_t variable : row.variables)
    if (variable != 0)
      reduced.push_back(variable);
  llvm::sort(read);
  llvm::sort(reduced);
  return read == reduced;
}

std::optional<Reduction> LayerNorm::matchMeanOf(Term term) {
  auto quotient = binary<arith::DivFOp>(skipConversions(term));
  if (!quotient || !isFloat(quotient->second, count))
    return std::nullopt;
  return sum(skipConversions(quotient->first));
}

bool LayerNorm::matchMean(Term term) {
  std::optional<Reduction> row = matchMeanOf(term);
  return row && isColumn(row->body, *row);
}

bool LayerNorm::matchCentered(Term term, const Reduction &row) {
  auto difference = binary<arith::SubFOp>(skipConversions(term));
  return difference && isColumn(difference->first, row) && matchMean(difference->second);
}

bool LayerNorm::matchVariance(Term term) {
  std::optional<Reduction> row = matchMeanOf(term);
  if (!row)
    return false;
  Term square = skipConversions(row->body);
  if (auto factors = binary<arith::MulFOp>(square))
    return matchCentered(factors->first, *row) && matchCentered(factors->second, *row);
  if (auto power = binary<math::FPowIOp>(square))
    return isInteger(power->second, 2) && matchCentered(power->first, *row);
  if (auto power = binary<math::PowFOp>(square))
    return isFloat(power->second, 2.0) && matchCentered(power->first, *row);
  return false;
}

bool LayerNorm::matchRstd(Term term) {
  auto argument = unary<math::RsqrtOp>(skipConversions(term));
  if (!argument)
    return false;
  auto terms = binary<arith::AddFOp>(skipConversions(*argument));
  if (!terms)
    return false;
  for (auto [variance, shift] : {*terms, std::pair(terms->second, terms->first)}) {
    std::optional<double> value = floatConstant(shift);
    if (!value || !std::isfinite(*value) || std::signbit(*value) || !matchVariance(variance))
      continue;
    eps = *value;
    return true;
  }
  return false;
}

bool LayerNorm::matchNormalised(Term term) {
  auto factors = binary<arith::MulFOp>(term);
  if (!factors)
    return false;
  for (auto [centered, rstd] : {*factors, std::pair(factors->second, factors->first)}) {
    auto difference = binary<arith::SubFOp>(centered);
    if (!difference)
      continue;
    x = findTensor(difference->first, root.getType(),
                   [&](ArrayRef<Coord> coords) { return isAt(coords, point); });
    if (x && matchMean(difference->second) && matchRstd(rstd))
      return true;
  }
  return false;
}

bool LayerNorm::matchScaled(Term term) {
  if (auto factors = binary<arith::MulFOp>(term))
    for (auto [scaled, weight] : {*factors, std::pair(factors->second, factors->first)})
      if ((gamma = matchWeight(weight)) && matchNormalised(scaled))
        return true;
  gamma = {};
  return matchNormalised(term);
}

bool LayerNorm::match() {
  Term element = unfolder.makeElement(root);
  for (const Coord &coord : *element.coords)
    point.push_back(coord.variable);
  if (auto terms = binary<arith::AddFOp>(element))
    for (auto [scaled, weight] : {*terms, std::pair(terms->second, terms->first)})
      if ((beta = matchWeight(weight)) && matchScaled(scaled))
        return true;
  beta = {};
  return matchScaled(element);
}

//===----------------------------------------------------------------------===//
// Log-softmax and cross-entropy
//===----------------------------------------------------------------------===//

namespace {
/// `(x - max) - log(sum(exp(x - max)))` along one axis.
class LogSoftmaxMatcher : public Matcher {
public:
  using Matcher::Matcher;

  /// Finds x of type `wanted`, of which `term` is the log-softmax in the row at
  /// `rows` (one variable a dimension; the axis' is ignored); `place` is where x
  /// is read along the axis.
  bool matchLogSoftmax(Term term, RankedTensorType wanted, ArrayRef<int64_t> rows, int64_t axis);

  Value x;
  Coord place;

private:
  SmallVector<int64_t> point;
  int64_t axis = 0;

  bool isInRow(ArrayRef<Coord> coords) const;
  bool isColumn(Term term, const Reduction &row);
  bool matchMax(Term term);
  bool matchSumOfExp(Term term);
};

class LogSoftmax : public LogSoftmaxMatcher {
public:
  LogSoftmax(Value root, int64_t axis)
      : LogSoftmaxMatcher(getElementTypeOrSelf(root)),
        root(cast<TypedValue<RankedTensorType>>(root)), axis(axis) {}

  bool match() {
    Term element = unfolder.makeElement(root);
    SmallVector<int64_t> point;
    for (const Coord &coord : *element.coords)
      point.push_back(coord.variable);
    return matchLogSoftmax(element, root.getType(), point, axis) && place.isVariable(point[axis]);
  }
  Value build(OpBuilder &builder) {
    return norm::LogSoftmaxOp::create(builder, root.getLoc(), root.getType(), x,
                                      builder.getI64IntegerAttr(axis));
  }

private:
  TypedValue<RankedTensorType> root;
  int64_t axis;
};

/// The mean over the targets that are not ignored of minus the log-softmax at
/// the target.
class CrossEntropy : public LogSoftmaxMatcher {
public:
  explicit CrossEntropy(Value root) : LogSoftmaxMatcher(getElementTypeOrSelf(root)), root(root) {}

  bool match();
  Value build(OpBuilder &builder) {
    return norm::SoftmaxCrossEntropyOp::create(builder, root.getLoc(), root.getType(), x, targets,
                                               norm::Reduction::mean, uint64_t(ignoreIndex),
                                               APFloat(0.0));
  }

private:
  Value root, targets;
  int64_t ignoreIndex = 0;

  /// Whether `term` says that the target at `rows` is not ignored.
  bool matchKept(Term term, ArrayRef<int64_t> rows);
  bool matchTotal(const Reduction &total);
  bool matchCount(Term term);
  bool matchClass(Term term, ArrayRef<int64_t> rows);
};
} // namespace

bool LogSoftmaxMatcher::isInRow(ArrayRef<Coord> coords) const {
  for (auto [dim, coord] : llvm::enumerate(coords))
    if (int64_t(dim) != axis && !coord.isVariable(point[dim]))
      return false;
  return true;
}

bool LogSoftmaxMatcher::isColumn(Term term, const Reduction &row) {
  const Coords *read = getPlace(term, x);
  return read && isInRow(*read) && row.variables.size() == 1 &&
         (*read)[axis].isVariable(row.variables.front());
}

bool LogSoftmaxMatcher::matchMax(Term term) {
  std::optional<Reduction> row = maximum(skipConversions(term));
  return row && isColumn(row->body, *row);
}

bool LogSoftmaxMatcher::matchSumOfExp(Term term) {
  std::optional<Reduction> row = sum(skipConversions(term));
  if (!row)
    return false;
  auto exponent = unary<math::ExpOp>(skipConversions(row->body));
  if (!exponent)
    return false;
  auto difference = binary<arith::SubFOp>(skipConversions(*exponent));
  return difference && isColumn(difference->first, *row) && matchMax(difference->second);
}

bool LogSoftmaxMatcher::matchLogSoftmax(Term term, RankedTensorType wanted, ArrayRef<int64_t> rows,
                                        int64_t axis) {
  point.assign(rows.begin(), rows.end());
  this->axis = axis;
  auto terms = binary<arith::SubFOp>(term);
  auto shifted = terms ? binary<arith::SubFOp>(terms->first) : std::nullopt;
  auto logarithm = terms ? unary<math::LogOp>(terms->second) : std::nullopt;
  if (!shifted || !logarithm)
    return false;
  x = findTensor(shifted->first, wanted, [&](ArrayRef<Coord> coords) {
    bool accepted = isInRow(coords);
    if (accepted)
      place = coords[axis];
    return accepted;
  });
  return x && matchMax(shifted->second) && matchSumOfExp(*logarithm);
}

bool CrossEntropy::matchKept(Term term, ArrayRef<int64_t> rows) {
  auto comparison = dyn_cast_or_null<arith::CmpIOp>(unfolder.getOp(term));
  if (!comparison || comparison.getPredicate() != arith::CmpIPredicate::ne)
    return false;
  Term target = unfolder.getOperand(term, 0);
  std::optional<int64_t> ignored = integerConstant(unfolder.getOperand(term, 1));
  const Coords *read = getPlace(target, targets);
  return ignored == ignoreIndex && read && isAt(*read, rows);
}

bool CrossEntropy::matchClass(Term term, ArrayRef<int64_t> rows) {
  auto number = unary<arith::IndexCastOp>(term);
  if (!number || !isa_and_present<arith::SelectOp>(unfolder.getOp(*number)))
    return false;
  Term target = unfolder.getOperand(*number, 1);
  const Coords *read = getPlace(target, targets);
  return matchKept(unfolder.getOperand(*number, 0), rows) && read && isAt(*read, rows) &&
         isInteger(unfolder.getOperand(*number, 2), 0);
}

bool CrossEntropy::matchTotal(const Reduction &total) {
  Term loss = total.body;
  if (!isa_and_present<arith::SelectOp>(unfolder.getOp(loss)) ||
      !isFloat(unfolder.getOperand(loss, 2), 0.0))
    return false;

  // The comparison names the targets and the ignored index.
  Term kept = unfolder.getOperand(loss, 0);
  if (!isa_and_present<arith::CmpIOp>(unfolder.getOp(kept)))
    return false;
  Term target = unfolder.resolve(unfolder.getOperand(kept, 0));
  std::optional<int64_t> ignored = integerConstant(unfolder.getOperand(kept, 1));
  if (!target.isElement() || !ignored)
    return false;
  targets = target.value;
  ignoreIndex = *ignored;
  auto integers = cast<RankedTensorType>(targets.getType());
  if (!integers.hasStaticShape() || (!integers.getElementType().isSignlessInteger(64) &&
                                     !integers.getElementType().isSignlessInteger(32)))
    return false;
  if (integers.getRank() != int64_t(total.variables.size()) || !matchKept(kept, total.variables))
    return false;

  auto probability = unary<arith::NegFOp>(unfolder.getOperand(loss, 1));
  if (!probability)
    return false;
  SmallVector<int64_t> rows = total.variables;
  rows.push_back(0);
  // The number of classes is in no op of the loss but the logits' type.
  for (std::optional<Term> at = probability; at; at = unfolder.step(*at)) {
    if (!at->isElement())
      continue;
    auto logits = cast<RankedTensorType>(at->value.getType());
    if (logits.getRank() != integers.getRank() + 1 || !logits.hasStaticShape() ||
        logits.getShape().drop_back() != integers.getShape() || logits.getElementType() != type)
      continue;
    // With one class, every target that counts is that one.
    if (matchLogSoftmax(*at, logits, rows, integers.getRank()) &&
        (logits.getShape().back() == 1 ||
         (place.computed.value && matchClass(place.computed, total.variables))))
      return true;
  }
  return false;
}

bool CrossEntropy::matchCount(Term term) {
  auto integer = unary<arith::SIToFPOp>(term);
  std::optional<Reduction> count = integer ? sum(*integer) : std::nullopt;
  if (!count ||
      count->variables.size() != size_t(cast<RankedTensorType>(targets.getType()).getRank()))
    return false;
  auto kept = unary<arith::ExtUIOp>(count->body);
  return kept && matchKept(*kept, count->variables);
}

bool CrossEntropy::match() {
  auto quotient = binary<arith::DivFOp>(unfolder.makeElement(root));
  std::optional<Reduction> total = quotient ? sum(quotient->first) : std::nullopt;
  return total && matchTotal(*total) && matchCount(quotient->second);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Erases the ops among `ops` that nothing uses any more, users first. Their
/// assertions go with them: the norm ops define what they rejected.
static void eraseUnused(ArrayRef<Operation *> ops, llvm::DenseSet<Operation *> &gone) {
  SmallVector<Operation *> left(ops);
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *&op : left)
      if (op && op->use_empty()) {
        gone.insert(op);
        op->erase();
        op = nullptr;
        changed = true;
      }
  }
}

/// Erases what computes nothing that is used, such as the fills that raised ops started from.
static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

template <typename Pattern>
static bool raise(Pattern pattern, Operation *root, llvm::DenseSet<Operation *> &gone) {
  if (!pattern.match())
    return false;
  OpBuilder builder(root);
  root->getResult(0).replaceAllUsesWith(pattern.build(builder));
  eraseUnused(pattern.unfolder.getVisited(), gone);
  return true;
}

static bool raise(linalg::GenericOp root, llvm::DenseSet<Operation *> &gone) {
  auto type = dyn_cast_or_null<RankedTensorType>(
      root->getNumResults() == 1 ? root->getResult(0).getType() : Type());
  if (!type || !type.hasStaticShape() ||
      !(type.getElementType().isF32() || type.getElementType().isF64()))
    return false;
  Value result = root->getResult(0);
  if (type.getRank() == 0)
    return raise(CrossEntropy(result), root, gone);
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (raise(LayerNorm(result, axis + 1), root, gone) ||
        raise(LogSoftmax(result, axis), root, gone))
      return true;
  return false;
}

namespace {
struct RaiseNorms : weir::impl::RaiseNormsPassBase<RaiseNorms> {
  using RaiseNormsPassBase::RaiseNormsPassBase;

  void runOnOperation() override {
    // From the end, so that a norm is seen with its scale and shift first.
    for (Block &block : getOperation().getBody()) {
      SmallVector<Operation *> roots;
      llvm::DenseSet<Operation *> gone;
      for (Operation &op : block)
        if (isa<linalg::GenericOp>(op))
          roots.push_back(&op);
      for (Operation *root : llvm::reverse(roots))
        if (!gone.contains(root))
          raise(cast<linalg::GenericOp>(root), gone);
      if (!gone.empty())
        eraseDead(block);
    }
  }
};
} // namespace
