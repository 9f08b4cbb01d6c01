//===- RaiseNorms.cpp - Decomposed norms and losses become norm ops -------===//
//
// A candidate is raised only if its whole expression matches; what it was made
// of is then erased if nothing else uses it.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/KnownFunctions.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "weir/Graph/Graph.h"
#include "llvm/ADT/SetVector.h"

namespace weir {
#define GEN_PASS_DEF_RAISENORMSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;
using namespace weir::elements;

//===----------------------------------------------------------------------===//
// LayerNorm and RMSNorm
//===----------------------------------------------------------------------===//

namespace {
/// What norms over the last `axes` dimensions have in common.
class TrailingNorm : public Matcher {
public:
  TrailingNorm(Value root, int64_t axes)
      : Matcher(getElementTypeOrSelf(root)), root(cast<TypedValue<RankedTensorType>>(root)),
        axes(axes) {
    ArrayRef<int64_t> shape = this->root.getType().getShape();
    rows = computeProduct(shape.drop_back(axes));
    columns = computeProduct(shape.take_back(axes));
  }

protected:
  TypedValue<RankedTensorType> root;
  int64_t axes;
  int64_t rows, columns;
  SmallVector<int64_t> point;
  Digits digits; ///< of the root's elements, at the point
  Value x, gamma;
  double eps = 0;

  /// The root's element, whose place is `point` from then on.
  Term makePoint();
  Value matchInput(Term term);
  virtual Value matchWeight(Term term);
  /// Whether `rest` matches what `Op` combines with a weight, on either side, or all of
  /// `term`: then `weight` is null.
  template <typename Op>
  bool matchWeighted(Term term, Value &weight, function_ref<bool(Term)> rest) {
    if (auto terms = binary<Op>(term))
      for (auto [other, candidate] : {*terms, std::pair(terms->second, terms->first)})
        if ((weight = matchWeight(candidate)) && rest(other))
          return true;
    weight = {};
    return rest(term);
  }
  /// The sum that `term` divides by the number of a row's elements.
  std::optional<Reduction> matchMeanOf(Term term);
  /// Whether `term` is x at the row of `point` and the columns that `row`
  /// reduces.
  virtual bool isColumn(Term term, const Reduction &row);

  struct Moment {
    Term moment;
    double eps;
  };
  /// The ways to read `term`, unless it is none, as `moment + eps`.
  SmallVector<Moment, 2> getMoments(std::optional<Term> term);
  /// What `term` is one by the root of.
  std::optional<Term> matchReciprocalRoot(Term term);

  /// `scaled * rsqrt(moment + eps)`.
  struct Split : Moment {
    Term scaled;
  };
  /// Whether a way to read `term` as that, however it is spelled, is accepted. A weight of
  /// the root becomes gamma, if there is none yet.
  bool matchSplit(Term term, function_ref<bool(const Split &)> accepts);
};

/// `(x - mean) * rsqrt(variance + eps) * gamma + beta`.
class LayerNorm : public TrailingNorm {
public:
  using TrailingNorm::TrailingNorm;

  bool match();
  Value build(OpBuilder &builder) {
    return norm::LayerNormOp::create(builder, root.getLoc(), root.getType(), x, gamma, beta,
                                     builder.getI64IntegerAttr(axes), builder.getF64FloatAttr(eps));
  }

protected:
  Value beta;

  virtual bool matchVariance(Term term);
  virtual bool matchMean(Term term);

private:
  bool matchScaled(Term term);
  bool matchNormalised(Term term);
  bool matchCentered(Term term, const Reduction &row);
};

/// `x * scale + shift`, where the scale is `rsqrt(variance + eps) * gamma` and the shift
/// `-mean * scale + beta`, as torch's decomposition of group norm has it. The elements of a
/// row follow on each other; a dimension may belong to several rows.
class GroupNorm : public LayerNorm {
public:
  explicit GroupNorm(Value root) : LayerNorm(root, /*axes=*/0) {}

  bool match();
  Value build(OpBuilder &builder);

private:
  /// A tensor of which one element stands for all of the root's that have its place.
  struct Factor {
    Value tensor;  ///< null: there is none
    AffineMap map; ///< from the root's dimensions

    bool operator==(const Factor &) const = default;
  };
  struct Scale {
    Factor gamma;
    double eps;

    bool operator==(const Scale &) const = default;
  };
  Scale scale;
  Factor shift;

  Factor findFactor(Term term);
  std::optional<Scale> matchScale(Term term);
  bool matchShift(Term term);
  bool matchNegated(Term term);
  bool matchProduct(Term lhs, Term rhs);
  bool findRows(Term mean);
};

/// The same with the mean, the variance and the weights of a place along one dimension,
/// `axis`. Tensors that hold these means and variances are replaced by the op's.
class BatchNorm : public LayerNorm {
public:
  BatchNorm(Value root, int64_t axis);

  bool match();
  Value build(OpBuilder &builder);

protected:
  int64_t axis;

  Value matchWeight(Term term) override;
  bool isColumn(Term term, const Reduction &row) override;

private:
  SmallVector<Value> means, variances; // used by others
  Operation *last = nullptr;           ///< of what the op reads; null: arguments alone

  bool findStatistics();
};

/// The same by a mean and a variance that are arguments or constants.
class BatchNormInference : public BatchNorm {
public:
  using BatchNorm::BatchNorm;

  bool match() { return LayerNorm::match(); }
  Value build(OpBuilder &builder) {
    return norm::BatchNormInferenceOp::create(builder, root.getLoc(), root.getType(), x, mean,
                                              variance, gamma, beta, uint64_t(axis), APFloat(eps));
  }

private:
  Value mean, variance;

  /// A weight that is no result.
  Value matchGiven(Term term);
  bool matchMean(Term term) override { return (mean = matchGiven(term)) != nullptr; }
  bool matchVariance(Term term) override { return (variance = matchGiven(term)) != nullptr; }
};

/// `x * rsqrt(mean(x^2) + eps) * gamma`.
class RmsNorm : public TrailingNorm {
public:
  using TrailingNorm::TrailingNorm;

  bool match();
  Value build(OpBuilder &builder) {
    return norm::RmsNormOp::create(builder, root.getLoc(), root.getType(), x, gamma,
                                   builder.getI64IntegerAttr(axes), builder.getF64FloatAttr(eps),
                                   UnitAttr());
  }

private:
  bool matchNormalised(Term term);
  bool matchMeanSquare(Term term);
};
} // namespace

Term TrailingNorm::makePoint() {
  Term element = unfolder.makeElement(root);
  for (const Coord &coord : *element.coords)
    point.push_back(coord.variable);
  digits = *flatten(*element.coords);
  return element;
}

Value TrailingNorm::matchInput(Term term) {
  return findTensor(term, root.getType(),
                    [&](ArrayRef<Coord> coords) { return isAt(coords, point); });
}

Value TrailingNorm::matchWeight(Term term) {
  auto wanted = RankedTensorType::get(root.getType().getShape().take_back(axes), type);
  return findTensor(term, wanted, [&](ArrayRef<Coord> coords) {
    return isAt(coords, ArrayRef(point).take_back(axes));
  });
}

/// Whether these places are all that `row` reduces, each once.
static bool isAllOf(const Digits &places, const Reduction &row) {
  SmallVector<int64_t> reduced, left;
  for (const Digit &digit : places)
    left.push_back(digit.below == 1 && digit.above == 1 ? digit.variable : -1);
  llvm::copy_if(row.variables, std::back_inserter(reduced),
                [](int64_t variable) { return variable != 0; });
  llvm::sort(left);
  llvm::sort(reduced);
  return left == reduced;
}

bool TrailingNorm::isColumn(Term term, const Reduction &row) {
  const Coords *place = getPlace(term, x);
  std::optional<Digits> read = place ? flatten(*place) : std::nullopt;
  std::optional<Digits> front = Digits(digits).takeFront(rows);
  return read && front && read->takeFront(rows) == front && isAllOf(*read, row);
}

std::optional<Reduction> TrailingNorm::matchMeanOf(Term term) {
  auto quotient = binary<arith::DivFOp>(skipConversions(term));
  if (!quotient || !isFloat(quotient->second, double(columns)))
    return std::nullopt;
  return sum(skipConversions(quotient->first));
}

SmallVector<TrailingNorm::Moment, 2> TrailingNorm::getMoments(std::optional<Term> term) {
  SmallVector<Moment, 2> found;
  if (auto terms = term ? binary<arith::AddFOp>(skipConversions(*term)) : std::nullopt)
    for (auto [moment, shift] : {*terms, std::pair(terms->second, terms->first)})
      if (std::optional<double> eps = floatConstant(shift);
          eps && std::isfinite(*eps) && !std::signbit(*eps))
        found.push_back({moment, *eps});
  return found;
}

std::optional<Term> TrailingNorm::matchReciprocalRoot(Term term) {
  term = skipConversions(term);
  if (std::optional<Term> argument = unary<math::RsqrtOp>(term))
    return argument;
  auto quotient = binary<arith::DivFOp>(term);
  return quotient && isFloat(quotient->first, 1.0)
             ? unary<math::SqrtOp>(skipConversions(quotient->second))
             : std::nullopt;
}

bool TrailingNorm::matchSplit(Term term, function_ref<bool(const Split &)> accepts) {
  auto matchRoot = [&](Term scaled, std::optional<Term> argument, Value weight = {}) {
    for (const Moment &moment : getMoments(argument))
      if (accepts({moment, scaled})) {
        if (weight)
          gamma = weight;
        return true;
      }
    return false;
  };
  // A square root that divides rounds otherwise, but where one way gives 0, inf
  // or NaN, so does the other.
  if (auto quotient = binary<arith::DivFOp>(term))
    return matchRoot(quotient->first, unary<math::SqrtOp>(skipConversions(quotient->second)));
  auto factors = binary<arith::MulFOp>(term);
  if (!factors)
    return false;
  for (auto [scaled, scale] : {*factors, std::pair(factors->second, factors->first)}) {
    if (matchRoot(scaled, matchReciprocalRoot(scale)))
      return true;
    auto parts = gamma ? std::nullopt : binary<arith::MulFOp>(skipConversions(scale));
    if (!parts)
      continue;
    for (auto [rstd, candidate] : {*parts, std::pair(parts->second, parts->first)})
      if (Value weight = matchWeight(candidate))
        if (matchRoot(scaled, matchReciprocalRoot(rstd), weight))
          return true;
  }
  return false;
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
  auto factors = row ? square(skipConversions(row->body)) : std::nullopt;
  return factors && matchCentered(factors->first, *row) && matchCentered(factors->second, *row);
}

bool LayerNorm::matchNormalised(Term term) {
  return matchSplit(term, [&](const Split &way) {
    auto difference = binary<arith::SubFOp>(way.scaled);
    eps = way.eps;
    return difference && (x = matchInput(difference->first)) && matchMean(difference->second) &&
           matchVariance(way.moment);
  });
}

bool LayerNorm::matchScaled(Term term) {
  return matchWeighted<arith::MulFOp>(term, gamma,
                                      [&](Term scaled) { return matchNormalised(scaled); });
}

bool LayerNorm::match() {
  return matchWeighted<arith::AddFOp>(makePoint(), beta,
                                      [&](Term scaled) { return matchScaled(scaled); });
}

GroupNorm::Factor GroupNorm::findFactor(Term term) {
  Factor found;
  for (std::optional<Term> at = term; at; at = unfolder.step(*at)) {
    if (!at->isElement() || getElementTypeOrSelf(at->value) != type)
      continue;
    SmallVector<AffineExpr> places;
    for (const Coord &coord : *at->coords) {
      auto *dim = llvm::find_if(point, [&](int64_t own) { return coord.isVariable(own); });
      if (coord.isVariable(0))
        places.push_back(getAffineConstantExpr(0, type.getContext()));
      else if (dim != point.end())
        places.push_back(getAffineDimExpr(dim - point.begin(), type.getContext()));
    }
    if (places.size() == at->coords->size())
      found = {at->value, AffineMap::get(point.size(), 0, places, type.getContext())};
  }
  return found;
}

bool GroupNorm::findRows(Term mean) {
  auto quotient = binary<arith::DivFOp>(skipConversions(mean));
  std::optional<Reduction> row = quotient ? sum(skipConversions(quotient->first)) : std::nullopt;
  if (!row)
    return false;
  columns = 1;
  for (int64_t variable : row->variables)
    columns *= unfolder.getSize(variable);
  if (columns <= 1 || root.getType().getNumElements() % columns != 0)
    return false;
  rows = root.getType().getNumElements() / columns;
  return true;
}

std::optional<GroupNorm::Scale> GroupNorm::matchScale(Term term) {
  auto matchRstd = [&](Term rstd, Factor gamma) -> std::optional<Scale> {
    for (auto [moment, eps] : getMoments(matchReciprocalRoot(rstd)))
      if (matchVariance(moment))
        return Scale{gamma, eps};
    return std::nullopt;
  };
  if (auto factors = binary<arith::MulFOp>(skipConversions(term)))
    for (auto [rstd, weight] : {*factors, std::pair(factors->second, factors->first)})
      if (Factor gamma = findFactor(weight); gamma.tensor)
        if (std::optional<Scale> found = matchRstd(rstd, gamma))
          return found;
  return matchRstd(term, {});
}

bool GroupNorm::matchProduct(Term lhs, Term rhs) {
  for (auto [mean, other] : {std::pair(lhs, rhs), std::pair(rhs, lhs)})
    if (findRows(mean) && matchMean(mean))
      if (std::optional<Scale> found = matchScale(other)) {
        scale = *found;
        return true;
      }
  return false;
}

/// Of a product that is negated, or that has one factor which is.
bool GroupNorm::matchNegated(Term term) {
  std::optional<Term> negated = unary<arith::NegFOp>(term);
  if (auto factors = binary<arith::MulFOp>(negated ? *negated : term)) {
    if (negated)
      return matchProduct(factors->first, factors->second);
    for (auto [one, other] : {*factors, std::pair(factors->second, factors->first)})
      if (std::optional<Term> inner = unary<arith::NegFOp>(one))
        if (matchProduct(*inner, other))
          return true;
  }
  return false;
}

bool GroupNorm::matchShift(Term term) {
  if (auto terms = binary<arith::AddFOp>(term))
    for (auto [negated, other] : {*terms, std::pair(terms->second, terms->first)})
      if ((shift = findFactor(other)).tensor && matchNegated(negated))
        return true;
  if (auto terms = binary<arith::SubFOp>(term)) {
    auto factors = binary<arith::MulFOp>(terms->second);
    return (shift = findFactor(terms->first)).tensor && factors &&
           matchProduct(factors->first, factors->second);
  }
  shift = {};
  return matchNegated(term);
}

bool GroupNorm::match() {
  auto terms = binary<arith::AddFOp>(makePoint());
  if (!terms)
    return false;
  for (auto [scaled, shift] : {*terms, std::pair(terms->second, terms->first)})
    if (auto factors = binary<arith::MulFOp>(scaled))
      for (auto [input, factor] : {*factors, std::pair(factors->second, factors->first)})
        if ((x = matchInput(input)) && matchShift(shift) && matchScale(factor) == scale)
          return true;
  return false;
}

Value GroupNorm::build(OpBuilder &builder) {
  Location loc = root.getLoc();
  RankedTensorType type = root.getType();
  int64_t left = rows, dim = 0; // rows that are parts of what is at `dim`, at last
  while (left != 1 && left % type.getDimSize(dim) == 0)
    left /= type.getDimSize(dim++);
  SmallVector<int64_t> shape(type.getShape());
  if (left != 1) {
    shape[dim] /= left;
    shape.insert(shape.begin() + dim, left);
  }
  RankedTensorType grouped = type.clone(shape);
  Value groups = createReshape(builder, loc, grouped, x);
  Value normal = norm::LayerNormOp::create(builder, loc, grouped, groups, Value(), Value(),
                                           builder.getI64IntegerAttr(type.getRank() - dim),
                                           builder.getF64FloatAttr(scale.eps));
  Value result = createReshape(builder, loc, type, normal);
  auto apply = [&](Factor factor, auto combine) {
    if (!factor.tensor)
      return;
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
    auto op = linalg::GenericOp::create(
        builder, loc, TypeRange(type), ValueRange{result, factor.tensor}, empty,
        {all, factor.map, all}, loops, [&](OpBuilder &body, Location loc, ValueRange elements) {
          linalg::YieldOp::create(body, loc, combine(body, loc, elements));
        });
    result = op.getResult(0);
  };
  apply(scale.gamma, [](OpBuilder &body, Location loc, ValueRange elements) -> Value {
    return arith::MulFOp::create(body, loc, elements[0], elements[1]);
  });
  apply(shift, [](OpBuilder &body, Location loc, ValueRange elements) -> Value {
    return arith::AddFOp::create(body, loc, elements[0], elements[1]);
  });
  return result;
}

BatchNorm::BatchNorm(Value root, int64_t axis) : LayerNorm(root, /*axes=*/0), axis(axis) {
  rows = this->root.getType().getDimSize(axis);
  columns = 1;
  for (auto [dim, size] : llvm::enumerate(this->root.getType().getShape()))
    columns *= int64_t(dim) == axis ? 1 : size;
}

Value BatchNorm::matchWeight(Term term) {
  auto wanted = RankedTensorType::get(rows, type);
  return findTensor(term, wanted,
                    [&](ArrayRef<Coord> coords) { return isAt(coords, point[axis]); });
}

bool BatchNorm::isColumn(Term term, const Reduction &row) {
  const Coords *place = getPlace(term, x);
  if (!place || !(*place)[axis].isVariable(point[axis]))
    return false;
  Coords others = *place;
  others.erase(others.begin() + axis);
  std::optional<Digits> read = flatten(others);
  return read && isAllOf(*read, row);
}

/// Which of the tensors that the root is made of are means or variances that others use, too.
bool BatchNorm::findStatistics() {
  for (Value value : {x, gamma, beta})
    if (Operation *op = value ? value.getDefiningOp() : nullptr;
        op && (!last || last->isBeforeInBlock(op)))
      last = op;
  SmallVector<Value> others;
  SmallVector<Operation *> visited(unfolder.getVisited());
  for (Operation *op : visited) {
    if (op->getBlock() != root.getDefiningOp()->getBlock() || op->getNumResults() != 1)
      continue;
    Value value = op->getResult(0);
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (!tensor || !tensor.hasStaticShape() || tensor.getElementType() != type ||
        tensor.getNumElements() != rows || (last && op->isBeforeInBlock(last)))
      continue;
    Term element = unfolder.makeElement(value);
    point[axis] = 0;
    for (const Coord &coord : *element.coords)
      if (!coord.isVariable(0))
        point[axis] = coord.variable;
    SmallVector<Value> *which = matchMean(element)       ? &means
                                : matchVariance(element) ? &variances
                                                         : nullptr;
    if (which) {
      which->push_back(value);
      others.push_back(value);
    }
  }
  return !isShared(x, root, others);
}

bool BatchNorm::match() { return columns > 1 && LayerNorm::match() && findStatistics(); }

Value BatchNorm::build(OpBuilder &builder) {
  OpBuilder::InsertionGuard guard(builder);
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(root.getDefiningOp()->getBlock());
  Location loc = root.getLoc();
  Type channels = RankedTensorType::get(rows, type);
  auto op =
      norm::BatchNormOp::create(builder, loc, {root.getType(), channels, channels}, x, gamma, beta,
                                builder.getI64IntegerAttr(axis), builder.getF64FloatAttr(eps));
  for (auto [found, result] :
       {std::pair(ArrayRef(means), op.getMean()), std::pair(ArrayRef(variances), op.getVariance())})
    for (Value value : found)
      value.replaceAllUsesWith(
          createReshape(builder, loc, cast<RankedTensorType>(value.getType()), result));
  return op.getResult();
}

Value BatchNormInference::matchGiven(Term term) {
  Value found = matchWeight(term);
  if (!found || (found.getDefiningOp() && !matchPattern(found, m_Constant())))
    return {};
  return found;
}

bool RmsNorm::matchMeanSquare(Term term) {
  std::optional<Reduction> row = matchMeanOf(term);
  auto factors = row ? square(skipConversions(row->body)) : std::nullopt;
  return factors && isColumn(factors->first, *row) && isColumn(factors->second, *row);
}

bool RmsNorm::matchNormalised(Term term) {
  return matchSplit(term, [&](const Split &way) {
    eps = way.eps;
    return (x = matchInput(way.scaled)) && matchMeanSquare(way.moment);
  });
}

bool RmsNorm::match() {
  return matchWeighted<arith::MulFOp>(makePoint(), gamma,
                                      [&](Term scaled) { return matchNormalised(scaled); }) &&
         !isShared(x, root);
}

//===----------------------------------------------------------------------===//
// Softmax, its logarithm, logsumexp and cross-entropy
//===----------------------------------------------------------------------===//

namespace {
/// The softmax along one axis, and its logarithm.
class SoftmaxMatcher : public Matcher {
public:
  using Matcher::Matcher;

  /// Finds x of type `wanted`, of which `term`, `exp(x - max) / sum(exp(x -
  /// max))`, is the softmax in the row at `rows`; the rest is as for the
  /// logarithm.
  bool matchSoftmax(Term term, RankedTensorType wanted, ArrayRef<int64_t> rows, int64_t axis);

  /// The same of `(x - max) - log(sum(exp(x - max)))`. Finds x of type
  /// `wanted`, of which `term` is the log-softmax in the row at `rows` (one
  /// variable a dimension; the axis' is ignored); `place` is where x is read
  /// along the axis.
  bool matchLogSoftmax(Term term, RankedTensorType wanted, ArrayRef<int64_t> rows, int64_t axis);

  Value x;
  Coord place;

protected:
  SmallVector<int64_t> point;
  int64_t axis = 0;

  bool isInRow(ArrayRef<Coord> coords) const;
  bool isColumn(Term term, const Reduction &row);
  /// Finds x of `x - max`.
  bool matchShifted(Term term, RankedTensorType wanted);
  bool matchMax(Term term);
  /// Whether `term` is the sum of `exp(x - shift)`, for a shift that is
  /// accepted.
  bool matchSumOfExp(Term term, llvm::function_ref<bool(Term)> matchShift);
  bool matchSumOfExp(Term term) {
    return matchSumOfExp(term, [&](Term shift) { return matchMax(shift); });
  }
};

/// A root of which the softmax or its logarithm is along `axis`.
class SoftmaxRoot : public SoftmaxMatcher {
public:
  SoftmaxRoot(Value root, int64_t axis)
      : SoftmaxMatcher(getElementTypeOrSelf(root)), root(cast<TypedValue<RankedTensorType>>(root)),
        axis(axis) {}

protected:
  TypedValue<RankedTensorType> root;
  int64_t axis;

  using Match = bool (SoftmaxMatcher::*)(Term, RankedTensorType, ArrayRef<int64_t>, int64_t);
  bool matchRoot(Match match) {
    Term element = unfolder.makeElement(root);
    SmallVector<int64_t> point;
    for (const Coord &coord : *element.coords)
      point.push_back(coord.variable);
    return (this->*match)(element, root.getType(), point, axis) && place.isVariable(point[axis]);
  }
};

struct Softmax : SoftmaxRoot {
  using SoftmaxRoot::SoftmaxRoot;
  bool match() { return matchRoot(&Softmax::matchSoftmax) && !isShared(x, root); }
  Value build(OpBuilder &builder) {
    Value empty = tensor::EmptyOp::create(builder, root.getLoc(), root.getType().getShape(), type);
    return linalg::SoftmaxOp::create(builder, root.getLoc(), root.getType(), x, empty,
                                     builder.getI64IntegerAttr(axis))
        .getResult()[0];
  }
};

struct LogSoftmax : SoftmaxRoot {
  using SoftmaxRoot::SoftmaxRoot;
  bool match() { return matchRoot(&LogSoftmax::matchLogSoftmax); }
  Value build(OpBuilder &builder) {
    return norm::LogSoftmaxOp::create(builder, root.getLoc(), root.getType(), x,
                                      builder.getI64IntegerAttr(axis));
  }
};

/// `log(sum(exp(x - shift))) + shift` along one axis, where the shift is the
/// maximum, or 0 where that is infinite.
class Logsumexp : public SoftmaxMatcher {
public:
  explicit Logsumexp(Value root)
      : SoftmaxMatcher(getElementTypeOrSelf(root)), root(cast<TypedValue<RankedTensorType>>(root)) {
  }

  bool match();
  Value build(OpBuilder &builder);

private:
  TypedValue<RankedTensorType> root;

  /// Finds x, its axis and the point from what `sum` adds up.
  bool findInput(Term sum, ArrayRef<int64_t> rows);
  bool matchShift(Term term);
  RankedTensorType getRowsType() const;
};

/// Minus the log-softmax at the target, 0 where that is ignored: by row, their
/// sum, or their mean over the targets that are not ignored. With label
/// smoothing a part of it is of all classes.
class CrossEntropy : public SoftmaxMatcher {
public:
  CrossEntropy(Value root, norm::Reduction reduction)
      : SoftmaxMatcher(getElementTypeOrSelf(root)), root(cast<TypedValue<RankedTensorType>>(root)),
        reduction(reduction) {}

  bool match();
  Value build(OpBuilder &builder) {
    return norm::SoftmaxCrossEntropyOp::create(builder, root.getLoc(), root.getType(), x, targets,
                                               reduction, uint64_t(ignoreIndex),
                                               APFloat(smoothing));
  }

private:
  TypedValue<RankedTensorType> root;
  norm::Reduction reduction;
  SmallVector<int64_t> losses; // the root's point
  Value targets;
  int64_t ignoreIndex = 0;
  double smoothing = 0;

  /// What is reduced: a value of the row at `point`, unless `condition`, which
  /// then is not `isKept`, says that its target is ignored.
  struct Row {
    Term value, condition;
    bool isKept = true;
    SmallVector<int64_t> point;
    std::optional<Term> count; // that a mean divides by
  };
  std::optional<Row> matchReduction(Term term);
  bool findTargets(Term condition, const Row &row);
  /// Whether `term` says that the target at `point` is not ignored, or that it
  /// is.
  std::optional<bool> matchKept(Term term, ArrayRef<int64_t> point);
  bool matchGuard(const Row &row);
  bool matchClass(Term term, ArrayRef<int64_t> point);
  /// Whether `term` is the loss by the target, or by all classes.
  bool matchPicked(Term term);
  bool matchUniform(Term term);
  /// A term and its constant factor.
  std::optional<std::pair<Term, double>> matchWeighted(Term term);
  bool matchSmoothing(double picked, double uniform);
};
} // namespace

bool SoftmaxMatcher::isInRow(ArrayRef<Coord> coords) const {
  for (auto [dim, coord] : llvm::enumerate(coords))
    if (int64_t(dim) != axis && !coord.isVariable(point[dim]))
      return false;
  return true;
}

bool SoftmaxMatcher::isColumn(Term term, const Reduction &row) {
  const Coords *read = getPlace(term, x);
  return read && isInRow(*read) && row.variables.size() == 1 &&
         (*read)[axis].isVariable(row.variables.front());
}

bool SoftmaxMatcher::matchMax(Term term) {
  std::optional<Reduction> row = maximum(skipConversions(term));
  return row && isColumn(row->body, *row);
}

bool SoftmaxMatcher::matchSumOfExp(Term term, llvm::function_ref<bool(Term)> matchShift) {
  std::optional<Reduction> row = sum(skipConversions(term));
  if (!row)
    return false;
  auto exponent = unary<math::ExpOp>(skipConversions(row->body));
  if (!exponent)
    return false;
  auto difference = binary<arith::SubFOp>(skipConversions(*exponent));
  return difference && isColumn(difference->first, *row) && matchShift(difference->second);
}

bool SoftmaxMatcher::matchShifted(Term term, RankedTensorType wanted) {
  auto shifted = binary<arith::SubFOp>(term);
  if (!shifted)
    return false;
  x = findTensor(shifted->first, wanted, [&](ArrayRef<Coord> coords) {
    bool accepted = isInRow(coords);
    if (accepted)
      place = coords[axis];
    return accepted;
  });
  return x && matchMax(shifted->second);
}

bool SoftmaxMatcher::matchSoftmax(Term term, RankedTensorType wanted, ArrayRef<int64_t> rows,
                                  int64_t axis) {
  point.assign(rows.begin(), rows.end());
  this->axis = axis;
  auto quotient = binary<arith::DivFOp>(term);
  auto exponent = quotient ? unary<math::ExpOp>(quotient->first) : std::nullopt;
  return exponent && matchShifted(*exponent, wanted) && matchSumOfExp(quotient->second);
}

bool SoftmaxMatcher::matchLogSoftmax(Term term, RankedTensorType wanted, ArrayRef<int64_t> rows,
                                     int64_t axis) {
  point.assign(rows.begin(), rows.end());
  this->axis = axis;
  auto terms = binary<arith::SubFOp>(term);
  auto logarithm = terms ? unary<math::LogOp>(terms->second) : std::nullopt;
  return logarithm && matchShifted(terms->first, wanted) && matchSumOfExp(*logarithm);
}

bool Logsumexp::findInput(Term sum, ArrayRef<int64_t> rows) {
  std::optional<Reduction> row = Matcher::sum(sum);
  auto exponent = row ? unary<math::ExpOp>(skipConversions(row->body)) : std::nullopt;
  auto difference = exponent ? binary<arith::SubFOp>(skipConversions(*exponent)) : std::nullopt;
  if (!difference || row->variables.size() != 1 || row->variables.front() == 0)
    return false;
  for (std::optional<Term> at = difference->first; at; at = unfolder.step(*at)) {
    auto tensor = at->isElement() ? cast<RankedTensorType>(at->value.getType()) : nullptr;
    if (!tensor || !tensor.hasStaticShape() || tensor.getElementType() != type ||
        llvm::any_of(*at->coords, [](const Coord &coord) { return coord.computed.value; }))
      continue;
    SmallVector<int64_t> variables, others;
    int64_t dim = -1;
    for (auto [index, coord] : llvm::enumerate(*at->coords)) {
      variables.push_back(coord.variable);
      if (coord.isVariable(row->variables.front()))
        dim = index;
      else if (!coord.isVariable(0))
        others.push_back(coord.variable);
    }
    if (dim < 0 || ArrayRef(others) != rows)
      continue;
    x = at->value;
    axis = dim;
    point = variables;
  }
  return bool(x);
}

bool Logsumexp::matchShift(Term term) {
  term = skipConversions(term);
  if (!isa_and_present<arith::SelectOp>(unfolder.getOp(term)))
    return false;
  Term condition = unfolder.getOperand(term, 0);
  auto comparison = dyn_cast_or_null<arith::CmpFOp>(unfolder.getOp(condition));
  if (!comparison || !isFloat(unfolder.getOperand(condition, 1), HUGE_VAL))
    return false;
  auto compared = unary<math::AbsFOp>(skipConversions(unfolder.getOperand(condition, 0)));
  if (!compared || !matchMax(*compared))
    return false;
  // Which way a NaN goes makes no difference: the sum is NaN then.
  using enum arith::CmpFPredicate;
  arith::CmpFPredicate predicate = comparison.getPredicate();
  bool isInfinite = predicate == OEQ || predicate == UEQ;
  if (!isInfinite && predicate != ONE && predicate != UNE && predicate != OLT && predicate != ULT)
    return false;
  return isFloat(unfolder.getOperand(term, isInfinite ? 1 : 2), 0.0) &&
         matchMax(unfolder.getOperand(term, isInfinite ? 2 : 1));
}

RankedTensorType Logsumexp::getRowsType() const {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + axis);
  return type.clone(shape);
}

bool Logsumexp::match() {
  Term element = unfolder.makeElement(root);
  SmallVector<int64_t> rows;
  for (const Coord &coord : *element.coords)
    if (!coord.isVariable(0))
      rows.push_back(coord.variable);
  auto terms = binary<arith::AddFOp>(element);
  if (!terms)
    return false;
  for (auto [logarithm, shift] : {*terms, std::pair(terms->second, terms->first)}) {
    auto argument = unary<math::LogOp>(skipConversions(logarithm));
    if (!argument)
      continue;
    Term sum = skipConversions(*argument);
    if (auto positive = unary<math::AbsFOp>(sum)) // as JAX has it: no sum here is negative
      sum = skipConversions(*positive);
    x = {};
    auto isShift = [&](Term term) { return matchShift(term); };
    if (!findInput(sum, rows) || !matchSumOfExp(sum, isShift) || !matchShift(shift))
      continue;
    return !isShared(x, root) && (getRowsType() == root.getType() ||
                                  getReassociationIndicesForReshape(getRowsType(), root.getType()));
  }
  return false;
}

Value Logsumexp::build(OpBuilder &builder) {
  RankedTensorType type = getRowsType();
  Value rows = norm::LogsumexpOp::create(builder, root.getLoc(), type, x, uint64_t(axis));
  return createReshape(builder, root.getLoc(), root.getType(), rows);
}

std::optional<CrossEntropy::Row> CrossEntropy::matchReduction(Term term) {
  Row row;
  row.point = losses;
  if (reduction == norm::Reduction::mean) {
    auto quotient = binary<arith::DivFOp>(term);
    if (!quotient)
      return std::nullopt;
    term = quotient->first;
    row.count = quotient->second;
  }
  if (reduction != norm::Reduction::none) {
    std::optional<Reduction> total = sum(term);
    if (!total)
      return std::nullopt;
    term = total->body;
    row.point = total->variables;
  }
  if (!isa_and_present<arith::SelectOp>(unfolder.getOp(term)))
    return std::nullopt;
  row.isKept = isFloat(unfolder.getOperand(term, 2), 0.0);
  if (!row.isKept && !isFloat(unfolder.getOperand(term, 1), 0.0))
    return std::nullopt;
  row.condition = unfolder.getOperand(term, 0);
  row.value = unfolder.getOperand(term, row.isKept ? 1 : 2);
  return row;
}

/// The comparison of a row's condition names the targets and the ignored index.
bool CrossEntropy::findTargets(Term condition, const Row &row) {
  if (!isa_and_present<arith::CmpIOp>(unfolder.getOp(condition)))
    return false;
  Term target = unfolder.resolve(unfolder.getOperand(condition, 0));
  std::optional<int64_t> ignored = integerConstant(unfolder.getOperand(condition, 1));
  if (!target.isElement() || !ignored)
    return false;
  targets = target.value;
  ignoreIndex = *ignored;
  auto integers = cast<RankedTensorType>(targets.getType());
  return integers.hasStaticShape() && integers.getRank() == int64_t(row.point.size()) &&
         (integers.getElementType().isSignlessInteger(64) ||
          integers.getElementType().isSignlessInteger(32)) &&
         (reduction != norm::Reduction::none || integers.getShape() == root.getType().getShape());
}

std::optional<bool> CrossEntropy::matchKept(Term term, ArrayRef<int64_t> point) {
  if (auto flipped = binary<arith::XOrIOp>(term)) {
    std::optional<bool> kept = matchKept(flipped->first, point);
    if (!kept || !isInteger(flipped->second, -1)) // true, of one bit
      return std::nullopt;
    return !*kept;
  }
  auto comparison = dyn_cast_or_null<arith::CmpIOp>(unfolder.getOp(term));
  if (!comparison || (comparison.getPredicate() != arith::CmpIPredicate::ne &&
                      comparison.getPredicate() != arith::CmpIPredicate::eq))
    return std::nullopt;
  Term target = unfolder.getOperand(term, 0);
  std::optional<int64_t> ignored = integerConstant(unfolder.getOperand(term, 1));
  const Coords *read = getPlace(target, targets);
  if (ignored != ignoreIndex || !read || !isAt(*read, point))
    return std::nullopt;
  return comparison.getPredicate() == arith::CmpIPredicate::ne;
}

/// Whether what is chosen, and what a mean counts, are the targets that are not
/// ignored.
bool CrossEntropy::matchGuard(const Row &row) {
  if (matchKept(row.condition, row.point) != row.isKept)
    return false;
  if (!row.count)
    return true;
  auto integer = unary<arith::SIToFPOp>(*row.count);
  std::optional<Reduction> count = integer ? sum(*integer) : std::nullopt;
  if (!count || count->variables.size() != row.point.size())
    return false;
  auto kept = unary<arith::ExtUIOp>(count->body);
  return kept && matchKept(*kept, count->variables) == true;
}

bool CrossEntropy::matchClass(Term term, ArrayRef<int64_t> point) {
  auto number = unary<arith::IndexCastOp>(term);
  if (!number || !isa_and_present<arith::SelectOp>(unfolder.getOp(*number)))
    return false;
  Term target = unfolder.getOperand(*number, 1);
  const Coords *read = getPlace(target, targets);
  return matchKept(unfolder.getOperand(*number, 0), point) == true && read && isAt(*read, point) &&
         isInteger(unfolder.getOperand(*number, 2), 0);
}

bool CrossEntropy::matchPicked(Term term) {
  std::optional<Row> row = matchReduction(term);
  if (!row || !findTargets(row->condition, *row) || !matchGuard(*row))
    return false;
  auto probability = unary<arith::NegFOp>(row->value);
  if (!probability)
    return false;
  auto integers = cast<RankedTensorType>(targets.getType());
  SmallVector<int64_t> point = row->point;
  point.push_back(0);
  // The number of classes is in no op of the loss but the logits' type.
  for (std::optional<Term> at = probability; at; at = unfolder.step(*at)) {
    if (!at->isElement())
      continue;
    auto logits = cast<RankedTensorType>(at->value.getType());
    if (logits.getRank() != integers.getRank() + 1 || !logits.hasStaticShape() ||
        logits.getShape().drop_back() != integers.getShape() || logits.getElementType() != type)
      continue;
    // With one class, every target that counts is that one.
    if (matchLogSoftmax(*at, logits, point, integers.getRank()) &&
        (logits.getShape().back() == 1 ||
         (place.computed.value && matchClass(place.computed, row->point))))
      return true;
  }
  return false;
}

/// Must follow `matchPicked`.
bool CrossEntropy::matchUniform(Term term) {
  std::optional<Row> row = matchReduction(term);
  if (!row || !matchGuard(*row))
    return false;
  auto negated = unary<arith::NegFOp>(row->value);
  std::optional<Reduction> classes = negated ? sum(*negated) : std::nullopt;
  if (!classes || classes->variables.size() != 1)
    return false;
  Value logits = x;
  auto type = cast<RankedTensorType>(logits.getType());
  SmallVector<int64_t> point = row->point;
  point.push_back(0);
  return matchLogSoftmax(classes->body, type, point, type.getRank() - 1) && x == logits &&
         place.isVariable(classes->variables.front());
}

std::optional<std::pair<Term, double>> CrossEntropy::matchWeighted(Term term) {
  auto factors = binary<arith::MulFOp>(term);
  if (!factors)
    return std::nullopt;
  for (auto [part, factor] : {*factors, std::pair(factors->second, factors->first)})
    if (std::optional<double> weight = floatConstant(factor))
      return std::pair(part, *weight);
  return std::nullopt;
}

/// Whether some smoothing gives these weights, as the result's type holds them.
bool CrossEntropy::matchSmoothing(double picked, double uniform) {
  auto round = [&](double value) {
    APFloat rounded(value);
    bool losesInfo;
    rounded.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
    return rounded;
  };
  double classes = double(cast<RankedTensorType>(x.getType()).getShape().back());
  for (double candidate : {uniform * classes, 1 - picked}) {
    smoothing = candidate;
    if (smoothing > 0 && smoothing <= 1 && 1 - smoothing < 1 &&
        round(1 - smoothing) == round(picked) && round(smoothing / classes) == round(uniform))
      return true;
  }
  return false;
}

bool CrossEntropy::match() {
  Term element = unfolder.makeElement(root);
  for (const Coord &coord : *element.coords)
    losses.push_back(coord.variable);
  auto terms = binary<arith::AddFOp>(element);
  if (!terms)
    return matchPicked(element);
  auto first = matchWeighted(terms->first), second = matchWeighted(terms->second);
  if (!first || !second)
    return false;
  for (auto [picked, uniform] : {std::pair(*first, *second), std::pair(*second, *first)})
    if (matchPicked(picked.first) && matchUniform(uniform.first) &&
        matchSmoothing(picked.second, uniform.second))
      return true;
  return false;
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

/// Erases what computes nothing that is used, such as the fills that raised ops
/// started from.
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

static bool raise(linalg::GenericOp root, bool mayBeFunction, llvm::DenseSet<Operation *> &gone) {
  auto type = dyn_cast_or_null<RankedTensorType>(
      root->getNumResults() == 1 ? root->getResult(0).getType() : Type());
  if (!type || !type.hasStaticShape() ||
      !(type.getElementType().isF32() || type.getElementType().isF64()))
    return false;
  Value result = root->getResult(0);
  if (type.getRank() == 0)
    return raise(CrossEntropy(result, norm::Reduction::mean), root, gone) ||
           raise(CrossEntropy(result, norm::Reduction::sum), root, gone) ||
           raise(Logsumexp(result), root, gone);
  if (raise(CrossEntropy(result, norm::Reduction::none), root, gone) ||
      raise(Logsumexp(result), root, gone))
    return true;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (raise(LayerNorm(result, axis + 1), root, gone) ||
        raise(RmsNorm(result, axis + 1), root, gone) || raise(Softmax(result, axis), root, gone) ||
        raise(LogSoftmax(result, axis), root, gone))
      return true;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (raise(BatchNorm(result, axis), root, gone) ||
        raise(BatchNormInference(result, axis), root, gone))
      return true;
  return raise(GroupNorm(result), root, gone) ||
         (mayBeFunction && raise(KnownFunction(result), root, gone));
}

namespace {
struct RaiseNorms : weir::impl::RaiseNormsPassBase<RaiseNorms> {
  using RaiseNormsPassBase::RaiseNormsPassBase;

  void runOnOperation() override {
    // From the end, so that a norm is seen with its scale and shift first.
    for (Block &block : getOperation().getBody()) {
      eraseDead(block); // what is dead would use what a norm leaves behind
      SmallVector<Operation *> roots;
      llvm::DenseSet<Operation *> gone;
      for (Operation &op : block)
        if (isa<linalg::GenericOp>(op))
          roots.push_back(&op);
      llvm::DenseSet<Operation *> functions = KnownFunction::findRoots(block);
      for (Operation *root : llvm::reverse(roots))
        if (!gone.contains(root))
          raise(cast<linalg::GenericOp>(root), functions.contains(root), gone);
      if (!gone.empty())
        eraseDead(block);
    }
  }
};
} // namespace
