//===- AttentionMatchers.cpp - Attention and its gradients ----------------===//
//
// The roots are contractions of which a factor is made of exponentials of scores: the result and
// the gradient of the values with the probabilities, the gradients of queries and keys with the
// gradient of the scores. That factor, expanded to a sum of products, has one form, however a
// front end writes it. All that is made of one tensor of scores is raised together, or not at all.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/Attention.h"

#include "dialects/Autodiff/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "weir/Graph/Graph.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace weir;
using namespace weir::elements;

//===----------------------------------------------------------------------===//
// The scores of a factor
//===----------------------------------------------------------------------===//

/// Returns the only variable of more than one value, or 0.
static int64_t getVariable(const Reduction &reduction) {
  int64_t found = 0;
  for (int64_t variable : reduction.variables) {
    if (variable != 0 && found != 0)
      return 0;
    found = variable != 0 ? variable : found;
  }
  return found;
}

/// Returns what a gradient is stopped at, or the term itself.
static Term skipStop(Unfolder &unfolder, Term term) {
  term = unfolder.resolve(term);
  while (term.isElement()) {
    auto stop = term.value.getDefiningOp<autodiff::StopGradientOp>();
    if (!stop)
      break;
    term = unfolder.resolve(unfolder.element(stop->getOperand(0), *term.coords));
  }
  return term;
}

static std::optional<Reduction> findMaximum(Matcher &matcher, Term term) {
  term = skipStop(matcher.unfolder, term);
  return matcher.maximum(matcher.skipConversions(term));
}

static std::optional<int64_t> findAxis(ArrayRef<Coord> coords, int64_t variable) {
  for (auto [dim, coord] : llvm::enumerate(coords))
    if (variable != 0 && coord.isVariable(variable))
      return int64_t(dim);
  return std::nullopt;
}

std::optional<std::pair<ScoresTensor, Coords>>
AttentionMatcher::findScores(Matcher &matcher, Term term, unsigned depth) {
  constexpr unsigned maxDepth = 10;
  Unfolder &unfolder = matcher.unfolder;
  term = unfolder.resolve(term);
  Operation *op = term.value.getDefiningOp();
  if (!op || depth > maxDepth)
    return std::nullopt;
  if (term.isElement()) {
    auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
    if (!softmax || !softmax.hasPureTensorSemantics())
      return std::nullopt;
    int64_t key = (*term.coords)[softmax.getDimension()].variable;
    std::optional<Operand> source =
        findSource(unfolder, unfolder.element(softmax.getInput(), *term.coords), /*casts=*/true);
    std::optional<int64_t> axis = source ? findAxis(source->coords, key) : std::nullopt;
    if (!axis)
      return std::nullopt;
    return std::pair(ScoresTensor{source->tensor, *axis}, source->coords);
  }
  if (isa<math::ExpOp>(op)) {
    auto shifted = matcher.binary<arith::SubFOp>(unfolder.getOperand(term, 0));
    std::optional<Operand> source =
        shifted ? findSource(unfolder, shifted->first, /*casts=*/true) : std::nullopt;
    std::optional<Reduction> row = source ? findMaximum(matcher, shifted->second) : std::nullopt;
    std::optional<Operand> other =
        row ? findSource(unfolder, row->body, /*casts=*/true) : std::nullopt;
    if (!other || other->tensor != source->tensor)
      return std::nullopt;
    std::optional<int64_t> axis = findAxis(other->coords, getVariable(*row));
    if (!axis)
      return std::nullopt;
    return std::pair(ScoresTensor{source->tensor, *axis}, source->coords);
  }
  if (!term.scope || op->getNumRegions() || !isa<FloatType>(term.value.getType()))
    return std::nullopt;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    if (isa<FloatType>(op->getOperand(operand).getType()))
      if (auto found = findScores(matcher, unfolder.getOperand(term, operand), depth + 1))
        return found;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sums of products
//===----------------------------------------------------------------------===//

static void add(Polynomial &sum, Summand summand) {
  auto *same = llvm::find_if(sum, [&](const Summand &other) { return other.hasPowersOf(summand); });
  if (same == sum.end())
    sum.push_back(summand);
  else
    same->factor += summand.factor;
}

static Summand multiply(Summand a, const Summand &b, int power = 1) {
  a.factor = power > 0 ? a.factor * b.factor : a.factor / b.factor;
  a.exponentials += power * b.exponentials;
  a.sums += power * b.sums;
  a.changes += power * b.changes;
  a.totals += power * b.totals;
  a.tanhs += power * b.tanhs;
  return a;
}

static Polynomial multiply(const Polynomial &a, const Polynomial &b) {
  Polynomial product;
  for (const Summand &left : a)
    for (const Summand &right : b)
      add(product, multiply(left, right));
  return product;
}

/// Whether both have the same summands, with factors that differ by roundings only.
static bool isClose(const Polynomial &a, const Polynomial &b) {
  double largest = 0;
  for (const Summand &summand : b)
    largest = std::max(largest, std::abs(summand.factor));
  Polynomial difference = a;
  for (Summand summand : b) {
    summand.factor = -summand.factor;
    add(difference, summand);
  }
  constexpr double rounding = 1e-6;
  return llvm::all_of(difference, [&](const Summand &summand) {
    return std::abs(summand.factor) <= rounding * largest;
  });
}

bool AttentionMatcher::isAtScore(Term term, int64_t key) {
  std::optional<Operand> source = findSource(unfolder, term, /*casts=*/true);
  if (!source || source->tensor != scores.tensor)
    return false;
  for (auto [dim, coord] : llvm::enumerate(source->coords))
    if (!coord.isVariable(int64_t(dim) == scores.axis ? key : dimVariables[dim]))
      return false;
  return true;
}

/// Whether `term` is the score of a key less the largest one of the row.
bool AttentionMatcher::isExponent(Term term, int64_t key) {
  auto shifted = binary<arith::SubFOp>(skipRounding(term));
  if (!shifted || !isAtScore(shifted->first, key))
    return false;
  std::optional<Reduction> row = findMaximum(*this, shifted->second);
  return row && getVariable(*row) != 0 && isAtScore(row->body, getVariable(*row));
}

/// Whether `term` is what the cap's tanh is taken of.
bool AttentionMatcher::isCapped(Term term, int64_t key) {
  double factor = 1;
  while (cap && key == getKey()) {
    term = skipRounding(term);
    if (term.isElement())
      return Operand{term.value, *term.coords} == products &&
             std::abs(factor * *cap - scale) <= 1e-6 * std::abs(scale);
    if (auto factors = binary<arith::MulFOp>(term)) {
      std::optional<double> left = floatConstant(factors->first),
                            right = floatConstant(factors->second);
      if (!left && !right)
        return false;
      factor *= left ? *left : *right;
      term = left ? factors->second : factors->first;
    } else if (auto quotient = binary<arith::DivFOp>(term)) {
      std::optional<double> divisor = floatConstant(quotient->second);
      if (!divisor || *divisor == 0)
        return false;
      factor /= *divisor;
      term = quotient->first;
    } else {
      return false;
    }
  }
  return false;
}

/// Whether the row of scores is all -inf by `condition`, as torch's safe softmax asks, or the
/// largest of what is added to it is, as ONNX's function does. The op gives 0 there, too.
bool AttentionMatcher::matchGuard(Term condition) {
  if (std::optional<Reduction> all = unfolder.getReduction(condition)) {
    auto comparison = dyn_cast_or_null<arith::CmpFOp>(unfolder.getOp(all->body));
    return isa<arith::AndIOp>(all->combine) && isInteger(all->start, -1) &&
           getVariable(*all) != 0 && comparison &&
           comparison.getPredicate() == arith::CmpFPredicate::OEQ &&
           isFloat(unfolder.getOperand(all->body, 1), -HUGE_VAL) &&
           isAtScore(unfolder.getOperand(all->body, 0), getVariable(*all));
  }
  auto comparison = dyn_cast_or_null<arith::CmpFOp>(unfolder.getOp(condition));
  if (!comparison || comparison.getPredicate() != arith::CmpFPredicate::OEQ ||
      !isFloat(unfolder.getOperand(condition, 1), -HUGE_VAL))
    return false;
  std::optional<Reduction> row = findMaximum(*this, unfolder.getOperand(condition, 0));
  if (!row || getVariable(*row) == 0)
    return false;
  int64_t key = std::exchange(variables.back(), getVariable(*row));
  std::optional<unsigned> node = addNode(row->body);
  variables.back() = key;
  return node && llvm::any_of(steps, [&](const BiasStep &step) {
           return !step.number && isSameNode(step.node, *node);
         });
}

/// Expands a choice between a term and 0: torch's guard, or a gradient where a mask hides scores.
std::optional<Polynomial> AttentionMatcher::expandChoice(Term term, int64_t key) {
  for (unsigned zero : {1, 2}) {
    if (!isFloat(unfolder.getOperand(term, zero), 0.0))
      continue;
    Term condition = unfolder.getOperand(term, 0), other = unfolder.getOperand(term, 3 - zero);
    if (zero == 1 && matchGuard(condition))
      return expand(other, key);
    std::optional<unsigned> node = key == getKey() ? addNode(condition) : std::nullopt;
    if (!node)
      return std::nullopt;
    zeros.push_back({*node, 0.0, zero == 1});
    return expand(other, key);
  }
  return std::nullopt;
}

bool AttentionMatcher::takeValueWidth(int64_t size) {
  if (!hasValueWidth)
    valueWidth = unfolder.makeCoord(size);
  hasValueWidth = true;
  return unfolder.getSize(valueWidth.variable) == size;
}

/// Whether `term` is the product of the result's gradient and a value.
bool AttentionMatcher::matchChanges(const Term &term, int64_t key) {
  std::optional<Contraction> found = getContraction(term.value.getDefiningOp());
  if (!found || (changes && changes != found->op))
    return false;
  Coords loops(found->op.getNumLoops());
  for (auto [expr, coord] : llvm::zip_equal(found->getResultMap().getResults(), *term.coords)) {
    if (coord.computed.value)
      return false;
    loops[cast<AffineDimExpr>(expr).getPosition()] = coord;
  }
  int64_t size = 1;
  SmallVector<unsigned> summed;
  for (auto [loop, kind] : llvm::enumerate(found->op.getIteratorTypesArray())) {
    int64_t range = found->op.getStaticLoopRanges()[loop];
    if (kind != utils::IteratorType::reduction || range == 1)
      continue;
    if (size != 1)
      return false;
    size = range;
    summed.push_back(loop);
  }
  if (!takeValueWidth(size))
    return false;
  for (unsigned loop : summed)
    loops[loop] = valueWidth;
  changes = found->op;
  // In a sum over the keys, a variable of its own stands for them.
  auto place = [&](unsigned factor) {
    Coords coords;
    for (AffineExpr expr : found->getMap(factor).getResults()) {
      Coord coord = loops[cast<AffineDimExpr>(expr).getPosition()];
      for (Digit &digit : coord.digits)
        if (digit.variable == key)
          digit.variable = getKey();
      coords.push_back(Coord(coord.digits));
    }
    return coords;
  };
  auto hasKey = [&](ArrayRef<Coord> coords) {
    return llvm::any_of(coords, [&](const Coord &coord) {
      return llvm::any_of(coord.digits,
                          [&](const Digit &digit) { return digit.variable == getKey(); });
    });
  };
  Coords places[2] = {place(0), place(1)};
  unsigned ofKeys = hasKey(places[1]);
  return takeFactor(dresult, found->getFactor(!ofKeys), places[!ofKeys], /*isOfKeys=*/false,
                    valueWidth) &&
         takeFactor(v, found->getFactor(ofKeys), places[ofKeys], /*isOfKeys=*/true, valueWidth);
}

/// Expands a sum over the keys of a row: of exponentials, or of their products with changes.
std::optional<Polynomial> AttentionMatcher::expandSum(const Term &term, int64_t key) {
  std::optional<Reduction> reduction = sum(term);
  if (reduction && llvm::all_of(reduction->variables, [](int64_t one) { return one == 0; }))
    return expand(reduction->body, key); // a sum of one summand
  int64_t variable = reduction ? getVariable(*reduction) : 0;
  if (variable == 0 || unfolder.getSize(variable) != unfolder.getSize(getKey()))
    return std::nullopt;
  std::optional<Polynomial> body = expand(reduction->body, variable);
  if (!body)
    return std::nullopt;
  Polynomial sum;
  for (Summand summand : *body) {
    if (summand.exponentials != 1 || summand.changes < 0 || summand.changes > 1 || summand.tanhs)
      return std::nullopt;
    ++(summand.changes ? summand.totals : summand.sums);
    summand.exponentials = summand.changes = 0;
    add(sum, summand);
  }
  return sum;
}

std::optional<Polynomial> AttentionMatcher::expandElement(const Term &term, int64_t key) {
  Operation *op = term.value.getDefiningOp();
  if (auto softmax = dyn_cast_or_null<linalg::SoftmaxOp>(op)) {
    if (!(*term.coords)[softmax.getDimension()].isVariable(key) ||
        !isAtScore(unfolder.element(softmax.getInput(), *term.coords), key))
      return std::nullopt;
    softmaxes.push_back(softmax);
    return Polynomial{{.exponentials = 1, .sums = -1}};
  }
  if (matchChanges(term, key))
    return Polynomial{{.changes = 1}};
  return expandSum(term, key);
}

std::optional<Polynomial> AttentionMatcher::expand(Term term, int64_t key) {
  if (std::optional<double> number = floatConstant(term))
    return Polynomial{{.factor = *number}};
  term = skipRounding(term);
  if (term.isElement())
    return expandElement(term, key);
  Operation *op = term.value.getDefiningOp();
  if (isa_and_present<math::ExpOp>(op) && isExponent(unfolder.getOperand(term, 0), key))
    return Polynomial{{.exponentials = 1}};
  if (isa_and_present<math::TanhOp>(op) && isCapped(unfolder.getOperand(term, 0), key))
    return Polynomial{{.tanhs = 1}};
  if (isa_and_present<arith::SelectOp>(op))
    return expandChoice(term, key);
  if (!isa_and_present<arith::NegFOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(
          op))
    return std::nullopt;
  std::optional<Polynomial> left = expand(unfolder.getOperand(term, 0), key);
  const Polynomial minus = {{.factor = -1}};
  if (!left || isa<arith::NegFOp>(op))
    return left ? std::optional(multiply(*left, minus)) : std::nullopt;
  std::optional<Polynomial> right = expand(unfolder.getOperand(term, 1), key);
  if (!right)
    return std::nullopt;
  if (isa<arith::MulFOp>(op))
    return multiply(*left, *right);
  if (isa<arith::DivFOp>(op)) {
    if (right->size() != 1 || right->front().factor == 0)
      return std::nullopt;
    for (Summand &summand : *left)
      summand = multiply(summand, right->front(), -1);
    return left;
  }
  for (const Summand &summand : isa<arith::SubFOp>(op) ? multiply(*right, minus) : *right)
    add(*left, summand);
  return left;
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

/// Returns the places of the contraction's loops, those of loops that `factor` lacks left out.
std::optional<Coords> AttentionMatcher::bindLoops(Contraction contraction, unsigned factor) {
  Coords own;
  SmallVector<int64_t> ranges = contraction.op.getStaticLoopRanges();
  for (int64_t size : ranges)
    own.push_back(unfolder.makeCoord(size));
  Coords at;
  for (AffineExpr expr : contraction.getMap(factor).getResults())
    at.push_back(own[cast<AffineDimExpr>(expr).getPosition()]);
  auto found = findScores(*this, unfolder.element(contraction.getFactor(factor), std::move(at)));
  if (!found || found->first != scores)
    return std::nullopt;
  struct Part {
    int64_t below;
    Digit digit;
    int64_t size;
  };
  SmallVector<SmallVector<Part>> parts(own.size());
  for (auto [dim, coord] : llvm::enumerate(found->second)) {
    int64_t size = unfolder.getSize(dimVariables[dim]), below = size;
    for (const Digit &digit : coord.digits) {
      auto *loop =
          llvm::find_if(own, [&](const Coord &other) { return other.isVariable(digit.variable); });
      if (loop == own.end())
        return std::nullopt;
      below /= digit.size;
      parts[loop - own.begin()].push_back(
          {digit.below,
           {dimVariables[dim], below, digit.size, size / (below * digit.size)},
           digit.size});
    }
    if (below != 1)
      return std::nullopt;
  }
  Coords loops(own.size());
  for (auto [loop, list] : llvm::enumerate(parts)) {
    llvm::sort(list, [](const Part &a, const Part &b) { return a.below > b.below; });
    Digits digits;
    int64_t below = ranges[loop];
    for (const Part &part : list) {
      if (part.below * part.size != below)
        return std::nullopt;
      below = part.below;
      digits.add(part.digit);
    }
    if (!list.empty() && below != 1)
      return std::nullopt;
    if (list.empty() && ranges[loop] != 1 && contraction.getMap(factor).isFunctionOfDim(loop))
      return std::nullopt;
    loops[loop] = Coord(std::move(digits));
  }
  return loops;
}

/// Whether the factor is the probability, or the gradient of the product of a query and a key.
bool AttentionMatcher::matchKind(AttentionRoot &root, const Polynomial &polynomial) {
  const Summand probability = {.exponentials = 1, .sums = -1};
  if (isClose(polynomial, {probability}))
    return true;
  Polynomial gradient = {
      {.factor = scale, .exponentials = 1, .sums = -1, .changes = 1},
      {.factor = -scale, .exponentials = 1, .sums = -2, .totals = 1},
  };
  if (cap)
    gradient = multiply(gradient, {{.factor = 1}, {.factor = -1, .tanhs = 2}});
  root.isGradient = true;
  return isClose(polynomial, gradient);
}

bool AttentionMatcher::isSameNode(unsigned a, unsigned b) const {
  const BiasNode &left = nodes[a], &right = nodes[b];
  if (left.op && right.op &&
      (left.op->getName() != right.op->getName() ||
       left.op->getAttrDictionary() != right.op->getAttrDictionary() ||
       left.op->getResultTypes() != right.op->getResultTypes()))
    return false;
  auto isSame = [](const std::optional<Triangle> &x, const std::optional<Triangle> &y) {
    return x.has_value() == y.has_value() &&
           (!x || (x->offset == y->offset && x->within == y->within && x->behind == y->behind));
  };
  return !left.op == !right.op && left.constant == right.constant && left.place == right.place &&
         left.tensor == right.tensor && left.dims == right.dims &&
         isSame(left.triangle, right.triangle) &&
         llvm::equal(left.operands, right.operands,
                     [&](unsigned x, unsigned y) { return isSameNode(x, y); });
}

/// Whether the gradient is 0 where a mask takes the place of scores, and only there. Where that is
/// -inf, the probability is 0 anyway.
bool AttentionMatcher::matchZeros() {
  auto isOf = [&](const BiasStep &zero, const BiasStep &step) {
    return step.number && step.where == zero.where && isSameNode(step.node, zero.node);
  };
  for (const BiasStep &step : steps)
    if (step.number && *step.number != -HUGE_VAL &&
        llvm::none_of(zeros, [&](const BiasStep &zero) { return isOf(zero, step); }))
      return false;
  return llvm::all_of(zeros, [&](const BiasStep &zero) {
    return llvm::any_of(steps, [&](const BiasStep &step) { return isOf(zero, step); });
  });
}

/// Whether `generic` computes each element from that of its only input at the same loops.
static bool isElementwise(linalg::GenericOp generic) {
  return generic.getNumReductionLoops() == 0 && generic->getNumResults() == 1 &&
         generic.getNumDpsInputs() == 1;
}

/// Returns what `generic` rounds its input to, or null.
static Type getRounded(linalg::GenericOp generic) {
  auto rounded = generic.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
  return rounded && rounded.getIn() == generic.getBody()->getArgument(0) ? rounded.getType()
                                                                         : Type();
}

/// Whether all that reads `value`, through copies and reshapes, rounds it to `element`.
static bool isRoundedTo(Value value, Type element) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, linalg::TransposeOp>(user))
      return isRoundedTo(user->getResult(0), element);
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (!generic || !isElementwise(generic))
      return false;
    bool isCopy =
        generic.getBody()->getTerminator()->getOperand(0) == generic.getBody()->getArgument(0);
    return isCopy ? isRoundedTo(generic.getResult(0), element) : getRounded(generic) == element;
  });
}

/// Takes what rounds the result, if that is wider than the factors.
bool AttentionMatcher::matchRounding(AttentionRoot &root) {
  Operation *op = root.contraction.op;
  Type element = getElementTypeOrSelf(q->tensor), result = getElementTypeOrSelf(op->getResult(0));
  if (result == element)
    return true;
  if (!result.isF32())
    return false;
  auto reader =
      op->hasOneUse() ? dyn_cast<linalg::GenericOp>(*op->user_begin()) : linalg::GenericOp();
  if (reader && isElementwise(reader) && getRounded(reader) == element &&
      llvm::all_of(reader.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    root.rounding = reader;
  else
    root.isRounded = isRoundedTo(op->getResult(0), element);
  return root.rounding || root.isRounded;
}

/// Expands the factor that is made of the scores, at these places of the contraction's loops.
std::optional<Polynomial> AttentionMatcher::expandFactor(AttentionRoot &root,
                                                         ArrayRef<Coord> loops) {
  Contraction &contraction = root.contraction;
  Coords at;
  for (AffineExpr expr : contraction.getMap(root.factor).getResults())
    at.push_back(loops[cast<AffineDimExpr>(expr).getPosition()]);
  zeros.clear();
  return expand(unfolder.element(contraction.getFactor(root.factor), std::move(at)), getKey());
}

/// Whether a sum of the gradient of scores is that of the bias, or a sum of it: the op's bias has
/// all dimensions that the sum keeps. Where a mask takes the place of scores, it must be by -inf.
bool AttentionMatcher::matchBias(AttentionRoot &root) {
  const bool hasSummand =
      llvm::any_of(steps, [](const BiasStep &step) { return !step.number.has_value(); });
  std::optional<Coords> loops = bindLoops(root.contraction, root.factor);
  const Type element = getElementTypeOrSelf(root.contraction.op->getResult(0)),
             factor = getElementTypeOrSelf(q->tensor);
  if (!loops || !hasSummand || coversScores() ||
      (factor.isF64() ? !element.isF64() : !element.isF32())) // the type of scores
    return false;
  std::optional<Polynomial> polynomial = expandFactor(root, *loops);
  if (!polynomial ||
      !isClose(*polynomial, {{.factor = 1, .exponentials = 1, .sums = -1, .changes = 1},
                             {.factor = -1, .exponentials = 1, .sums = -2, .totals = 1}}) ||
      !matchZeros())
    return false;
  const llvm::SmallBitVector dims = getBiasDims();
  for (AffineExpr expr : root.contraction.getResultMap().getResults()) {
    const Coord &coord = (*loops)[cast<AffineDimExpr>(expr).getPosition()];
    for (const Digit &digit : coord.digits)
      for (auto [dim, variable] : llvm::enumerate(variables))
        if (variable != 0 && digit.variable == variable && !dims.test(dim))
          return false;
    root.coords.push_back(coord);
  }
  return root.isGradient = root.isOfBias = true;
}

bool AttentionMatcher::matchRoot(AttentionRoot &root) {
  Contraction &contraction = root.contraction;
  std::optional<Coords> loops = bindLoops(contraction, root.factor);
  if (!loops)
    return false;
  auto place = [&](AffineMap map) {
    Coords coords;
    for (AffineExpr expr : map.getResults())
      coords.push_back((*loops)[cast<AffineDimExpr>(expr).getPosition()]);
    return coords;
  };
  std::optional<Polynomial> polynomial = expandFactor(root, *loops);
  if (!polynomial || !matchKind(root, *polynomial) ||
      (root.isGradient ? !matchZeros() : !zeros.empty()))
    return false;
  // The loop over the other factor's elements, and what is summed of keys and rows.
  SmallVector<int64_t> ranges = contraction.op.getStaticLoopRanges();
  AffineMap map = contraction.getMap(root.factor), result = contraction.getResultMap();
  std::optional<unsigned> element;
  int64_t keys = 1, rows = 1;
  for (unsigned loop = 0; loop < ranges.size(); ++loop) {
    bool isSummed = !result.isFunctionOfDim(loop);
    for (const Digit &digit : (*loops)[loop].digits) {
      keys *= isSummed && digit.variable == getKey() ? digit.size : 1;
      rows *= isSummed && digit.variable == getRow() ? digit.size : 1;
    }
    if (map.isFunctionOfDim(loop) || ranges[loop] == 1)
      continue;
    if (element || isSummed)
      return false;
    element = loop;
  }
  root.overKeys = rows == 1;
  if (root.overKeys ? keys != unfolder.getSize(getKey())
                    : keys != 1 || rows != unfolder.getSize(getRow()))
    return false;
  int64_t size = element ? ranges[*element] : 1;
  if (root.isGradient ? unfolder.getSize(width.variable) != size : !takeValueWidth(size))
    return false;
  const Coord &width = root.isGradient ? this->width : valueWidth;
  if (element)
    (*loops)[*element] = width;
  root.coords = place(result);
  std::optional<Operand> &known =
      root.isGradient ? (root.overKeys ? k : q) : (root.overKeys ? v : dresult);
  return takeFactor(known, contraction.getFactor(!root.factor),
                    place(contraction.getMap(!root.factor)), /*isOfKeys=*/root.overKeys, width) &&
         matchRounding(root);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

bool AttentionMatcher::matchTypes() {
  Type element = getElementTypeOrSelf(q->tensor);
  for (const std::optional<Operand> &operand : {k, v, dresult})
    if (operand && getElementTypeOrSelf(operand->tensor) != element)
      return false;
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64();
}

/// Whether a tensor of scores is at least as large as those that are read and written in its place.
/// Smaller attention is in few kernels as it is.
bool AttentionMatcher::gains() {
  int64_t queries = unfolder.getSize(getRow()), keys = unfolder.getSize(getKey()),
          elements = unfolder.getSize(width.variable) + unfolder.getSize(valueWidth.variable);
  return queries * keys >= (queries + keys) * elements;
}

/// Whether others use something that is made of the scores on the way to the roots.
bool AttentionMatcher::isShared() {
  SmallVector<Operation *> worklist = {products.tensor.getDefiningOp()};
  if (changes)
    worklist.push_back(changes);
  llvm::DenseSet<Operation *> seen, ends;
  for (AttentionRoot &root : roots)
    ends.insert(root.contraction.op);
  ArrayRef<Operation *> visited = unfolder.getVisited();
  llvm::DenseSet<Operation *> own(visited.begin(), visited.end());
  own.insert(softmaxes.begin(), softmaxes.end());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers()) {
      if (ends.contains(user))
        continue;
      if (!own.contains(user) && !isa<autodiff::StopGradientOp>(user))
        return true;
      if (seen.insert(user).second)
        worklist.push_back(user);
    }
  }
  return false;
}

bool AttentionMatcher::match(ArrayRef<AttentionRoot> candidates, ArrayRef<AttentionRoot> sums) {
  Term score = unfolder.makeElement(scores.tensor);
  for (const Coord &coord : *score.coords)
    dimVariables.push_back(coord.variable);
  if (!matchScores(score))
    return false;
  roots.assign(candidates.begin(), candidates.end());
  if (!llvm::all_of(roots, [&](AttentionRoot &root) { return matchRoot(root); }))
    return false;
  for (AttentionRoot root : sums)
    if (matchBias(root))
      roots.push_back(root);
  return v && matchTypes() && gains() && !isShared() && isInOrder();
}

void weir::elements::raiseAttentions(Block &block, ErasedOps &erased) {
  llvm::MapVector<std::pair<Value, int64_t>, SmallVector<AttentionRoot>> groups, sums;
  for (Operation &op : llvm::reverse(block)) {
    std::optional<Contraction> contraction = getContraction(&op);
    const bool isSum = !contraction;
    if (isSum)
      contraction = getSum(&op);
    if (!contraction)
      continue;
    for (unsigned factor = 0; factor < (isSum ? 1 : 2); ++factor) {
      Matcher matcher(getElementTypeOrSelf(op.getResult(0)));
      Value tensor = contraction->getFactor(factor);
      auto found = AttentionMatcher::findScores(matcher, matcher.unfolder.makeElement(tensor));
      if (!found)
        continue;
      AttentionRoot root;
      root.contraction = *contraction;
      root.factor = factor;
      (isSum ? sums : groups)[{found->first.tensor, found->first.axis}].push_back(root);
      break;
    }
  }
  for (auto &[scores, candidates] : groups) {
    if (llvm::any_of(candidates, [&](const AttentionRoot &root) {
          return erased.contains(root.contraction.op);
        }))
      continue;
    Type type = getElementTypeOrSelf(candidates.front().contraction.op->getResult(0));
    AttentionMatcher matcher(type, {scores.first, scores.second});
    if (matcher.match(candidates, sums.lookup(scores)))
      matcher.raise(erased);
  }
}
