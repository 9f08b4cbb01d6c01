//===- AttentionScores.cpp - From scores to queries, keys and masks -------===//
//
// From a tensor of scores, the expression of an element leads through masks, a cap and a scale to
// the contraction of queries and keys.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/Attention.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "weir/Graph/Graph.h"

using namespace mlir;
using namespace weir;
using namespace weir::elements;

static Value skipExtensions(Value value) {
  while (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  return value;
}

/// Whether the body adds the product of its two inputs, widened or not, to the accumulator.
static bool addsProducts(linalg::LinalgOp op) {
  std::optional<Combiner> combiner = getCombiner(op, 0);
  if (!combiner || !combiner->isExclusive() || !isa<arith::AddFOp>(combiner->combine))
    return false;
  auto product = combiner->reduced.getDefiningOp<arith::MulFOp>();
  if (!product)
    return false;
  auto left = dyn_cast<BlockArgument>(skipExtensions(product.getLhs()));
  auto right = dyn_cast<BlockArgument>(skipExtensions(product.getRhs()));
  return left && right && left.getOwner() == op.getBlock() && right.getOwner() == op.getBlock() &&
         left.getArgNumber() + right.getArgNumber() == 1;
}

/// Returns the op if it reduces as many inputs from 0 on.
static linalg::LinalgOp getReduction(Operation *defining, int64_t inputs) {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(defining);
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInputs() != inputs ||
      op.getNumDpsInits() != 1 || op->getNumResults() != 1 || op.getNumReductionLoops() == 0 ||
      op.hasDynamicShape() || !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
        return map.isProjectedPermutation();
      }))
    return {};
  auto start = dyn_cast_or_null<FloatAttr>(getSplat(op.getDpsInitOperand(0)->get()));
  return start && start.getValue().isZero() ? op : linalg::LinalgOp();
}

std::optional<Contraction> weir::elements::getContraction(Operation *defining) {
  linalg::LinalgOp op = getReduction(defining, /*inputs=*/2);
  return op && addsProducts(op) ? std::optional(Contraction{op}) : std::nullopt;
}

std::optional<Contraction> weir::elements::getSum(Operation *defining) {
  linalg::LinalgOp op = getReduction(defining, /*inputs=*/1);
  std::optional<Combiner> combiner = op ? getCombiner(op, 0) : std::nullopt;
  if (!combiner || !combiner->isExclusive() || !isa<arith::AddFOp>(combiner->combine) ||
      combiner->reduced != op.getBlock()->getArgument(0))
    return std::nullopt;
  return Contraction{op};
}

std::optional<Operand> weir::elements::findSource(Unfolder &unfolder, Term term, bool casts) {
  std::optional<Operand> source;
  for (std::optional<Term> at = term; at;) {
    term = *at;
    if (term.isElement() && llvm::none_of(*term.coords, [](const Coord &coord) {
          return coord.computed.value != nullptr;
        }))
      source = Operand{term.value, *term.coords};
    at = unfolder.step(term);
    if (!at && casts && !term.isElement() &&
        isa_and_present<arith::ExtFOp, arith::TruncFOp>(term.value.getDefiningOp()))
      at = unfolder.getOperand(term, 0);
  }
  return source;
}

bool Operand::operator==(const Operand &other) const {
  return tensor == other.tensor &&
         llvm::equal(coords, other.coords,
                     [](const Coord &a, const Coord &b) { return a.digits == b.digits; });
}

std::optional<double> AttentionMatcher::floatConstant(Term term) {
  if (std::optional<double> number = Matcher::floatConstant(term))
    return number;
  term = unfolder.resolve(term);
  Operation *op = term.isElement() ? nullptr : term.value.getDefiningOp();
  if (!isa_and_present<arith::ExtFOp, arith::TruncFOp>(op))
    return std::nullopt;
  std::optional<double> number = floatConstant(unfolder.getOperand(term, 0));
  if (!number)
    return std::nullopt;
  APFloat value(*number);
  bool losesInfo;
  value.convert(cast<FloatType>(term.value.getType()).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

/// Drops conversions between float types: the op rounds once.
Term AttentionMatcher::skipRounding(Term term) {
  term = unfolder.resolve(term);
  while (!term.isElement() &&
         isa_and_present<arith::ExtFOp, arith::TruncFOp>(term.value.getDefiningOp()))
    term = unfolder.resolve(unfolder.getOperand(term, 0));
  return term;
}

/// Returns the places that an operand is read at, those of summed loops as they are given.
static Coords getCoords(Contraction &contraction, AffineMap map, ArrayRef<Coord> loops) {
  Coords coords;
  for (AffineExpr expr : map.getResults())
    coords.push_back(loops[cast<AffineDimExpr>(expr).getPosition()]);
  return coords;
}

static bool hasDigitOf(ArrayRef<Coord> coords, int64_t variable) {
  return llvm::any_of(coords, [&](const Coord &coord) {
    return llvm::any_of(coord.digits,
                        [&](const Digit &digit) { return digit.variable == variable; });
  });
}

/// Sets the order of the variables: batches, row, key. The row is the longest of what only queries
/// have; the others are heads that share keys.
bool AttentionMatcher::orderVariables(ArrayRef<Coord> queryLoops) {
  Coords all = *unfolder.makeElement(scores.tensor).coords;
  int64_t key = dimVariables[scores.axis], row = 0;
  for (const Coord &coord : queryLoops)
    for (const Digit &digit : coord.digits)
      if (digit.variable != key &&
          (row == 0 || unfolder.getSize(digit.variable) > unfolder.getSize(row)))
        row = digit.variable;
  if (row == 0 || key == 0)
    return false;
  variables.clear();
  for (int64_t variable : dimVariables)
    if (variable == 0 || (variable != row && variable != key))
      variables.push_back(variable);
  variables.append({row, key});
  return true;
}

bool AttentionMatcher::matchProducts(Term term) {
  std::optional<Contraction> found =
      term.isElement() ? getContraction(term.value.getDefiningOp()) : std::nullopt;
  if (!found)
    return false;
  products = {term.value, *term.coords};
  Coords loops(found->op.getNumLoops());
  for (auto [expr, coord] : llvm::zip_equal(found->getResultMap().getResults(), *term.coords)) {
    if (coord.computed.value)
      return false;
    loops[cast<AffineDimExpr>(expr).getPosition()] = coord;
  }
  bool hasWidth = false;
  for (auto [loop, kind] : llvm::enumerate(found->op.getIteratorTypesArray())) {
    int64_t size = found->op.getStaticLoopRanges()[loop];
    if (kind != utils::IteratorType::reduction || size == 1)
      continue;
    if (hasWidth)
      return false;
    hasWidth = true;
    loops[loop] = width = unfolder.makeCoord(size);
  }
  Coords places[2] = {getCoords(*found, found->getMap(0), loops),
                      getCoords(*found, found->getMap(1), loops)};
  int64_t key = dimVariables[scores.axis];
  unsigned query = hasDigitOf(places[0], key);
  SmallVector<Coord> own;
  for (unsigned loop = 0; loop < loops.size(); ++loop)
    if (found->getMap(query).isFunctionOfDim(loop) && !found->getMap(!query).isFunctionOfDim(loop))
      own.push_back(loops[loop]);
  if (!orderVariables(own))
    return false;
  return takeFactor(q, found->getFactor(query), places[query], /*isOfKeys=*/false, width) &&
         takeFactor(k, found->getFactor(!query), places[!query], /*isOfKeys=*/true, width);
}

bool AttentionMatcher::takeFactor(std::optional<Operand> &known, Value tensor, Coords coords,
                                  bool isOfKeys, const Coord &element) {
  std::optional<Operand> source = findSource(unfolder, unfolder.element(tensor, std::move(coords)));
  SmallVector<int64_t> wanted = getVariables(isOfKeys, element);
  if (!source || !llvm::all_of(source->coords, [&](const Coord &coord) {
        return llvm::all_of(coord.digits, [&](const Digit &digit) {
          return llvm::is_contained(wanted, digit.variable);
        });
      }))
    return false;
  if (known)
    return *known == *source;
  known = std::move(*source);
  return true;
}

/// Matches products with constant factors, `factor` among them.
bool AttentionMatcher::matchScaled(Term term, double factor) {
  term = skipRounding(term);
  if (auto factors = binary<arith::MulFOp>(term)) {
    for (auto [rest, other] : {*factors, std::pair(factors->second, factors->first)})
      if (std::optional<double> number = floatConstant(other))
        return matchScaled(rest, factor * *number);
    return false;
  }
  if (auto quotient = binary<arith::DivFOp>(term)) {
    std::optional<double> number = floatConstant(quotient->second);
    return number && *number != 0 && matchScaled(quotient->first, factor / *number);
  }
  scale = factor;
  q.reset();
  k.reset();
  return matchProducts(term);
}

bool AttentionMatcher::matchCapped(Term term) {
  cap.reset();
  term = skipRounding(term);
  if (auto factors = binary<arith::MulFOp>(term))
    for (auto [rest, other] : {*factors, std::pair(factors->second, factors->first)}) {
      std::optional<double> number = floatConstant(other);
      auto argument =
          number && *number > 0 ? unary<math::TanhOp>(skipRounding(rest)) : std::nullopt;
      if (!argument)
        continue;
      cap = number;
      return matchScaled(*argument, *number);
    }
  return matchScaled(term, 1);
}

bool AttentionMatcher::matchScores(Term term) {
  term = skipRounding(term);
  if (auto summands = binary<arith::AddFOp>(term)) {
    for (auto [rest, summand] : {*summands, std::pair(summands->second, summands->first)}) {
      steps.clear();
      if (!matchScores(rest))
        continue;
      std::optional<unsigned> node = addNode(summand);
      if (node)
        steps.push_back({*node, std::nullopt});
      return node.has_value();
    }
    return false;
  }
  if (!isa_and_present<arith::SelectOp>(unfolder.getOp(term)))
    return matchCapped(term);
  for (unsigned masked : {1, 2}) {
    steps.clear();
    std::optional<double> number = floatConstant(unfolder.getOperand(term, masked));
    if (!number || *number > norm::lowestScore ||
        !matchScores(unfolder.getOperand(term, 3 - masked)))
      continue;
    std::optional<unsigned> node = addNode(unfolder.getOperand(term, 0));
    if (node)
      steps.push_back({*node, number, masked == 1});
    return node.has_value();
  }
  return false;
}

std::optional<int64_t> AttentionMatcher::getDim(const Coord &coord) const {
  if (coord.isVariable(0))
    return -1;
  for (auto [dim, variable] : llvm::enumerate(variables))
    if (coord.isVariable(variable))
      return int64_t(dim);
  return std::nullopt;
}

/// Replaces a constant tensor by a comparison, if that gives its elements.
void AttentionMatcher::foldTriangle(BiasNode &node) {
  int64_t rank = variables.size();
  const auto *row = llvm::find(node.dims, rank - 2), *column = llvm::find(node.dims, rank - 1);
  if (row == node.dims.end() || column == node.dims.end())
    return;
  node.triangle = findTriangle(node.tensor, row - node.dims.begin(), column - node.dims.begin());
  if (node.triangle)
    node.tensor = {};
}

/// Returns the computation of `term`, from tensors as small as there are.
std::optional<BiasNode> AttentionMatcher::makeNode(Term term) {
  std::optional<BiasNode> leaf;
  for (std::optional<Term> at = term; at; at = unfolder.step(*at)) {
    term = *at;
    if (!term.isElement())
      continue;
    BiasNode node;
    node.tensor = term.value;
    bool isPlain = true;
    for (const Coord &coord : *term.coords) {
      std::optional<int64_t> dim = getDim(coord);
      isPlain &= dim && (*dim < 0 || !llvm::is_contained(node.dims, *dim));
      node.dims.push_back(dim.value_or(-1));
    }
    if (isPlain)
      leaf = node;
  }
  if (leaf)
    foldTriangle(*leaf);
  BiasNode node;
  if (term.isElement()) {
    if ((node.constant = getSplat(term.value)))
      return node;
    return leaf;
  }
  if (matchPattern(term.value, m_Constant(&node.constant)))
    return node;
  Operation *op = term.value.getDefiningOp();
  if (auto index = dyn_cast_or_null<linalg::IndexOp>(op)) {
    std::optional<int64_t> dim = getDim(term.scope->loops[index.getDim()]);
    if (!dim)
      return leaf;
    node.place = *dim;
    if (*dim < 0)
      node.constant = IntegerAttr::get(IndexType::get(op->getContext()), 0);
    return node;
  }
  constexpr unsigned maxNodes = 512; // masks and the conditions of all gradients
  if (!op || !term.scope || op->getNumRegions() || op->getNumResults() != 1 || !isPure(op) ||
      nodes.size() > maxNodes)
    return leaf;
  node.op = op;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
    std::optional<unsigned> added = addNode(unfolder.getOperand(term, operand));
    if (!added)
      return leaf;
    node.operands.push_back(*added);
  }
  return node;
}

std::optional<unsigned> AttentionMatcher::addNode(Term term) {
  std::optional<BiasNode> node = makeNode(term);
  if (!node)
    return std::nullopt;
  nodes.push_back(std::move(*node));
  return nodes.size() - 1;
}
