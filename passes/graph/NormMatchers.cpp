//===- NormMatchers.cpp - Layer, RMS, batch and group norm ----------------===//

#include "passes/graph/RaiseNorms.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "weir/Graph/Graph.h"

using namespace mlir;
using namespace weir;
using namespace weir::elements;

namespace {
/// Matches a norm: each row of `columns` elements is normalised for itself. Unless a
/// derived class says otherwise, the elements of a row are consecutive.
class NormMatcher : public Matcher {
protected:
  explicit NormMatcher(Value root)
      : Matcher(getElementTypeOrSelf(root)), root(cast<TypedValue<RankedTensorType>>(root)) {}

  TypedValue<RankedTensorType> root;
  int64_t rows = 1, columns = 1;
  SmallVector<int64_t> point;
  Digits digits; ///< of the root's elements, at the point
  Value x;

  /// Returns the root's element at new variables, which become `point`.
  Term makePoint();
  /// Returns the tensor of the root's type that `term` reads at `point`, or null.
  Value matchInput(Term term);
  /// Returns the sum that `term` divides by the number of a row's elements.
  std::optional<Reduction> matchMeanOf(Term term);
  /// Whether `term` is x in the row of `point`, at the columns that `row` reduces.
  virtual bool isColumn(Term term, const Reduction &row);
  virtual bool matchMean(Term term);
  virtual bool matchVariance(Term term);

  struct Moment {
    Term moment;
    double eps;
  };
  /// Returns the ways to read `term`, if there is one, as `moment + eps`.
  SmallVector<Moment, 2> getMoments(std::optional<Term> term);
  /// Returns x if `term` is 1 / sqrt(x).
  std::optional<Term> matchReciprocalRoot(Term term);

private:
  bool matchCentered(Term term, const Reduction &row);
};

/// Matches a norm whose weights have a shape that is known before its rows are.
class WeightedNorm : public NormMatcher {
protected:
  using NormMatcher::NormMatcher;

  Value gamma, beta;
  double eps = 0;

  /// Returns the tensor of weights that `term` reads at the place of `point`, or null.
  virtual Value matchWeight(Term term) = 0;
  /// Whether `rest` matches one operand of `Op` and the other one is a weight. Whether
  /// `rest` matches all of `term`, otherwise: then `weight` is null.
  template <typename Op>
  bool matchWeighted(Term term, Value &weight, function_ref<bool(Term)> rest) {
    if (auto terms = binary<Op>(term))
      for (auto [other, candidate] : {*terms, std::pair(terms->second, terms->first)})
        if ((weight = matchWeight(candidate)) && rest(other))
          return true;
    weight = {};
    return rest(term);
  }

  /// `scaled * rsqrt(moment + eps)`.
  struct Split : Moment {
    Term scaled;
  };
  /// Whether `accepts` takes one of the ways to read `term` as a split. A weight of the
  /// root becomes gamma if there is none yet.
  bool matchSplit(Term term, function_ref<bool(const Split &)> accepts);
  /// Whether the root is `(x - mean) * rsqrt(variance + eps) * gamma + beta`. Either weight
  /// may be absent.
  bool matchAffine();

private:
  bool matchScaled(Term term);
  bool matchNormalised(Term term);
};

/// Matches a norm over the last `axes` dimensions.
class TrailingNorm : public WeightedNorm {
public:
  TrailingNorm(Value root, int64_t axes) : WeightedNorm(root), axes(axes) {
    ArrayRef<int64_t> shape = this->root.getType().getShape();
    rows = computeProduct(shape.drop_back(axes));
    columns = computeProduct(shape.take_back(axes));
  }

protected:
  int64_t axes;

  Value matchWeight(Term term) override;
};

/// `(x - mean) * rsqrt(variance + eps) * gamma + beta`.
class LayerNorm : public TrailingNorm {
public:
  using TrailingNorm::TrailingNorm;

  bool match() { return matchAffine(); }
  Value build(OpBuilder &builder) {
    return norm::LayerNormOp::create(builder, root.getLoc(), root.getType(), x, gamma, beta,
                                     builder.getI64IntegerAttr(axes), builder.getF64FloatAttr(eps));
  }
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

/// Matches a norm whose rows are the places along one dimension, `axis`.
class ChannelNorm : public WeightedNorm {
public:
  ChannelNorm(Value root, int64_t axis);

protected:
  int64_t axis;

  Value matchWeight(Term term) override;
  bool isColumn(Term term, const Reduction &row) override;
};

/// `(x - mean) * rsqrt(variance + eps) * gamma + beta`. The op also replaces tensors that
/// hold these means and variances.
class BatchNorm : public ChannelNorm {
public:
  using ChannelNorm::ChannelNorm;

  bool match();
  Value build(OpBuilder &builder);

private:
  SmallVector<Value> means, variances; ///< with other uses
  Operation *last = nullptr;           ///< last op that the norm reads, null: arguments alone

  /// Finds means and variances among the tensors that the root is computed from. Whether
  /// the norm op leaves nothing to compute again.
  bool findStatistics();
};

/// `(x - mean) * rsqrt(variance + eps) * gamma + beta`, where the mean and the variance are
/// arguments or constants.
class BatchNormInference : public ChannelNorm {
public:
  using ChannelNorm::ChannelNorm;

  bool match() { return matchAffine(); }
  Value build(OpBuilder &builder) {
    return norm::BatchNormInferenceOp::create(builder, root.getLoc(), root.getType(), x, mean,
                                              variance, gamma, beta, uint64_t(axis), APFloat(eps));
  }

private:
  Value mean, variance;

  /// Returns the tensor of weights that `term` reads, if it is an argument or a constant.
  Value matchGiven(Term term);
  bool matchMean(Term term) override { return (mean = matchGiven(term)) != nullptr; }
  bool matchVariance(Term term) override { return (variance = matchGiven(term)) != nullptr; }
};

/// `x * scale + shift`, where the scale is `rsqrt(variance + eps) * gamma` and the shift
/// `-mean * scale + beta`, as in torch's decomposition of group norm. A dimension may
/// belong to several rows.
class GroupNorm : public NormMatcher {
public:
  explicit GroupNorm(Value root) : NormMatcher(root) {}

  bool match();
  Value build(OpBuilder &builder);

private:
  /// A tensor that the root broadcasts.
  struct Factor {
    Value tensor;  ///< null: none
    AffineMap map; ///< from the root's dimensions to the tensor's

    bool operator==(const Factor &) const = default;
  };
  struct Scale {
    Factor gamma;
    double eps;

    bool operator==(const Scale &) const = default;
  };
  Scale scale;
  Factor shift;

  /// Returns the tensor that `term` reads at places of `point` alone.
  Factor findFactor(Term term);
  std::optional<Scale> matchScale(Term term);
  bool matchShift(Term term);
  /// Whether `term` is the negated product of the mean and the scale.
  bool matchNegated(Term term);
  bool matchProduct(Term lhs, Term rhs);
  /// Sets `rows` and `columns` from the sum in `mean`.
  bool findRows(Term mean);
};
} // namespace

Term NormMatcher::makePoint() {
  Term element = unfolder.makeElement(root);
  for (const Coord &coord : *element.coords)
    point.push_back(coord.variable);
  digits = *flatten(*element.coords);
  return element;
}

Value NormMatcher::matchInput(Term term) {
  return findTensor(term, root.getType(),
                    [&](ArrayRef<Coord> coords) { return isAt(coords, point); });
}

Value TrailingNorm::matchWeight(Term term) {
  auto wanted = RankedTensorType::get(root.getType().getShape().take_back(axes), type);
  return findTensor(term, wanted, [&](ArrayRef<Coord> coords) {
    return isAt(coords, ArrayRef(point).take_back(axes));
  });
}

/// Whether `places` are the variables that `row` reduces, each once.
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

bool NormMatcher::isColumn(Term term, const Reduction &row) {
  const Coords *place = getPlace(term, x);
  std::optional<Digits> read = place ? flatten(*place) : std::nullopt;
  std::optional<Digits> front = Digits(digits).takeFront(rows);
  return read && front && read->takeFront(rows) == front && isAllOf(*read, row);
}

std::optional<Reduction> NormMatcher::matchMeanOf(Term term) {
  auto quotient = binary<arith::DivFOp>(skipConversions(term));
  if (!quotient || !isFloat(quotient->second, double(columns)))
    return std::nullopt;
  return sum(skipConversions(quotient->first));
}

SmallVector<NormMatcher::Moment, 2> NormMatcher::getMoments(std::optional<Term> term) {
  SmallVector<Moment, 2> found;
  if (auto terms = term ? binary<arith::AddFOp>(skipConversions(*term)) : std::nullopt)
    for (auto [moment, shift] : {*terms, std::pair(terms->second, terms->first)})
      if (std::optional<double> eps = floatConstant(shift);
          eps && std::isfinite(*eps) && !std::signbit(*eps))
        found.push_back({moment, *eps});
  return found;
}

std::optional<Term> NormMatcher::matchReciprocalRoot(Term term) {
  term = skipConversions(term);
  if (std::optional<Term> argument = unary<math::RsqrtOp>(term))
    return argument;
  auto quotient = binary<arith::DivFOp>(term);
  return quotient && isFloat(quotient->first, 1.0)
             ? unary<math::SqrtOp>(skipConversions(quotient->second))
             : std::nullopt;
}

bool WeightedNorm::matchSplit(Term term, function_ref<bool(const Split &)> accepts) {
  auto matchRoot = [&](Term scaled, std::optional<Term> argument, Value weight = {}) {
    for (const Moment &moment : getMoments(argument))
      if (accepts({moment, scaled})) {
        if (weight)
          gamma = weight;
        return true;
      }
    return false;
  };
  // Division by a square root rounds differently, but gives 0, inf or NaN for the same
  // arguments.
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

bool NormMatcher::matchMean(Term term) {
  std::optional<Reduction> row = matchMeanOf(term);
  return row && isColumn(row->body, *row);
}

bool NormMatcher::matchCentered(Term term, const Reduction &row) {
  auto difference = binary<arith::SubFOp>(skipConversions(term));
  return difference && isColumn(difference->first, row) && matchMean(difference->second);
}

bool NormMatcher::matchVariance(Term term) {
  std::optional<Reduction> row = matchMeanOf(term);
  auto factors = row ? square(skipConversions(row->body)) : std::nullopt;
  return factors && matchCentered(factors->first, *row) && matchCentered(factors->second, *row);
}

bool WeightedNorm::matchNormalised(Term term) {
  return matchSplit(term, [&](const Split &way) {
    auto difference = binary<arith::SubFOp>(way.scaled);
    eps = way.eps;
    return difference && (x = matchInput(difference->first)) && matchMean(difference->second) &&
           matchVariance(way.moment);
  });
}

bool WeightedNorm::matchScaled(Term term) {
  return matchWeighted<arith::MulFOp>(term, gamma,
                                      [&](Term scaled) { return matchNormalised(scaled); });
}

bool WeightedNorm::matchAffine() {
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
  int64_t left = rows, dim = 0; // in the end: rows that one place of `dim` is cut into
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

ChannelNorm::ChannelNorm(Value root, int64_t axis) : WeightedNorm(root), axis(axis) {
  rows = this->root.getType().getDimSize(axis);
  columns = 1;
  for (auto [dim, size] : llvm::enumerate(this->root.getType().getShape()))
    columns *= int64_t(dim) == axis ? 1 : size;
}

Value ChannelNorm::matchWeight(Term term) {
  auto wanted = RankedTensorType::get(rows, type);
  return findTensor(term, wanted,
                    [&](ArrayRef<Coord> coords) { return isAt(coords, point[axis]); });
}

bool ChannelNorm::isColumn(Term term, const Reduction &row) {
  const Coords *place = getPlace(term, x);
  if (!place || !(*place)[axis].isVariable(point[axis]))
    return false;
  Coords others = *place;
  others.erase(others.begin() + axis);
  std::optional<Digits> read = flatten(others);
  return read && isAllOf(*read, row);
}

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

bool BatchNorm::match() { return columns > 1 && matchAffine() && findStatistics(); }

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

bool weir::elements::raiseTrailingNorm(Operation *root, int64_t axes, ErasedOps &erased) {
  Value result = root->getResult(0);
  return raise(LayerNorm(result, axes), root, erased) || raise(RmsNorm(result, axes), root, erased);
}

bool weir::elements::raiseBatchNorm(Operation *root, int64_t axis, ErasedOps &erased) {
  Value result = root->getResult(0);
  return raise(BatchNorm(result, axis), root, erased) ||
         raise(BatchNormInference(result, axis), root, erased);
}

bool weir::elements::raiseGroupNorm(Operation *root, ErasedOps &erased) {
  return raise(GroupNorm(root->getResult(0)), root, erased);
}
