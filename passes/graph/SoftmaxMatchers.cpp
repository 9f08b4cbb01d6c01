//===- SoftmaxMatchers.cpp - Softmax, logsumexp and cross-entropy ---------===//

#include "passes/graph/RaiseNorms.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "weir/Graph/Graph.h"

using namespace mlir;
using namespace weir;
using namespace weir::elements;

namespace {
/// The softmax along one axis, and its logarithm.
class SoftmaxMatcher : public Matcher {
public:
  using Matcher::Matcher;

  /// Whether `term` is `exp(x - max) / sum(exp(x - max))`, the softmax of a tensor x of
  /// type `wanted` along `axis`, in the row at `rows`: one variable per dimension, that of
  /// the axis ignored. Sets `x`, and `place` to the place along the axis.
  bool matchSoftmax(Term term, RankedTensorType wanted, ArrayRef<int64_t> rows, int64_t axis);

  /// Matches the log-softmax, `(x - max) - log(sum(exp(x - max)))`, in the same way.
  bool matchLogSoftmax(Term term, RankedTensorType wanted, ArrayRef<int64_t> rows, int64_t axis);

  Value x;
  Coord place;

protected:
  SmallVector<int64_t> point;
  int64_t axis = 0;

  bool isInRow(ArrayRef<Coord> coords) const;
  bool isColumn(Term term, const Reduction &row);
  /// Whether `term` is `x - max`. Sets `x`.
  bool matchShifted(Term term, RankedTensorType wanted);
  bool matchMax(Term term);
  /// Whether `term` is the sum of `exp(x - shift)` and `matchShift` takes the shift.
  bool matchSumOfExp(Term term, llvm::function_ref<bool(Term)> matchShift);
  bool matchSumOfExp(Term term) {
    return matchSumOfExp(term, [&](Term shift) { return matchMax(shift); });
  }
};

/// Matches a root that is a softmax or log-softmax along `axis`.
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

  /// Sets `x`, `axis` and `point` from the summands of `sum`.
  bool findInput(Term sum, ArrayRef<int64_t> rows);
  bool matchShift(Term term);
  RankedTensorType getRowsType() const;
};

/// Minus the log-softmax at the target, 0 for ignored targets: by row, summed, or as the
/// mean over the targets that are not ignored. Label smoothing adds a part for all classes.
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

  /// A summand of the reduction: `value` for the row at `point`. Its target is ignored where
  /// `condition` differs from `isKept`.
  struct Row {
    Term value, condition;
    bool isKept = true;
    SmallVector<int64_t> point;
    std::optional<Term> count; ///< divisor of a mean
  };
  std::optional<Row> matchReduction(Term term);
  bool findTargets(Term condition, const Row &row);
  /// Returns true if `term` is the condition that the target at `point` is not ignored,
  /// false if it is the opposite, nothing otherwise.
  std::optional<bool> matchKept(Term term, ArrayRef<int64_t> point);
  bool matchGuard(const Row &row);
  bool matchClass(Term term, ArrayRef<int64_t> point);
  /// Whether `term` is the loss of the target.
  bool matchPicked(Term term);
  /// Whether `term` is the loss of all classes. Must follow `matchPicked`.
  bool matchUniform(Term term);
  /// Splits a product into a term and a constant factor.
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
  // Either choice is right for a NaN: the sum is NaN, too.
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

/// Sets the targets and the ignored index from the comparison in a row's condition.
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

/// Whether the row is kept, and counted by a mean, where its target is not ignored.
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
  // Only the type of the logits has the number of classes.
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

/// Whether some smoothing gives these weights, rounded to the result's type.
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

bool weir::elements::raiseSoftmax(Operation *root, int64_t axis, ErasedOps &erased) {
  Value result = root->getResult(0);
  return raise(Softmax(result, axis), root, erased) ||
         raise(LogSoftmax(result, axis), root, erased);
}

bool weir::elements::raiseLoss(Operation *root, ErasedOps &erased) {
  Value result = root->getResult(0);
  bool isScalar = cast<RankedTensorType>(result.getType()).getRank() == 0;
  auto raiseCrossEntropy = [&](norm::Reduction reduction) {
    return raise(CrossEntropy(result, reduction), root, erased);
  };
  bool isRaised =
      isScalar ? raiseCrossEntropy(norm::Reduction::mean) || raiseCrossEntropy(norm::Reduction::sum)
               : raiseCrossEntropy(norm::Reduction::none);
  return isRaised || raise(Logsumexp(result), root, erased);
}
