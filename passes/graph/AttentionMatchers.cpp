//===- AttentionMatchers.cpp - Attention around a softmax -----------------===//
//
// The root is the contraction of probabilities and values. From one of its factors the expression
// of an element leads to a softmax, from there through masks, a cap and a scale to the contraction
// of queries and keys. Batches may be reshaped on the way; the op has those of the softmax.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/RaiseNorms.h"
#include "passes/graph/Triangles.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "weir/Graph/Graph.h"

using namespace mlir;
using namespace weir;
using namespace weir::elements;

namespace {
/// A sum of products over one loop. The result has `batches`, in its order, and one loop of each
/// factor.
struct Contraction {
  linalg::LinalgOp op;
  SmallVector<unsigned> batches;
  unsigned own[2]; ///< the loops that only that factor has
  unsigned summed;

  AffineMap getMap(unsigned factor) {
    return op.getMatchingIndexingMap(op.getDpsInputOperand(factor));
  }
  AffineMap getResultMap() { return op.getMatchingIndexingMap(op.getDpsInitOperand(0)); }
  Value getFactor(unsigned factor) { return op.getDpsInputOperand(factor)->get(); }
};
} // namespace

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

static std::optional<Contraction> getContraction(Operation *defining) {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(defining);
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1 || op->getNumResults() != 1 || op.getNumReductionLoops() != 1 ||
      op.hasDynamicShape() ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }) ||
      !addsProducts(op))
    return std::nullopt;
  auto start = dyn_cast_or_null<FloatAttr>(getSplat(op.getDpsInitOperand(0)->get()));
  if (!start || !start.getValue().isZero())
    return std::nullopt;
  Contraction contraction{op, {}, {0, 0}, 0};
  unsigned found[2] = {0, 0};
  AffineMap left = contraction.getMap(0), right = contraction.getMap(1);
  for (AffineExpr expr : contraction.getResultMap().getResults()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    bool isInLeft = left.isFunctionOfDim(loop), isInRight = right.isFunctionOfDim(loop);
    if (isInLeft && isInRight) {
      contraction.batches.push_back(loop);
    } else if (isInLeft || isInRight) {
      contraction.own[isInRight] = loop;
      ++found[isInRight];
    } else {
      return std::nullopt;
    }
  }
  unsigned summed = 0;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      summed = loop;
  contraction.summed = summed;
  if (found[0] != 1 || found[1] != 1 || !left.isFunctionOfDim(summed) ||
      !right.isFunctionOfDim(summed))
    return std::nullopt;
  return contraction;
}

namespace {
/// Additions to the scores, as steps from the inside: a summand, or a number in place of them
/// where a condition is `where`.
struct BiasStep {
  unsigned node;
  std::optional<double> number;
  bool where = true;
};

/// A computation of one element of a bias: an op on other nodes, a constant, the place along a
/// dimension, or an element of a tensor.
struct BiasNode {
  Operation *op = nullptr;
  TypedAttr constant;
  int64_t place = -1;
  Value tensor;
  SmallVector<int64_t> dims;        ///< of the tensor: that of the scores, -1 for one of size 1
  std::optional<Triangle> triangle; ///< in place of the tensor, of queries and keys
  SmallVector<unsigned, 3> operands;
};

/// Matches an attention whose probabilities are factor `factor` of `root`.
class AttentionMatcher : public Matcher {
public:
  AttentionMatcher(const Contraction &root, unsigned factor)
      : Matcher(getElementTypeOrSelf(root.op->getResult(0))), root(root), factor(factor) {}

  bool match();
  void raise(ErasedOps &erased);

private:
  Contraction root, products;
  unsigned factor, query = 0; ///< the factors that are the probabilities, and the queries
  linalg::SoftmaxOp softmax;
  Operation *rounding = nullptr;  ///< of the root's result
  SmallVector<int64_t> dims;      ///< of the softmax: batches, rows, keys
  SmallVector<int64_t> variables; ///< of these dimensions
  double scale = 1;
  std::optional<double> cap;
  SmallVector<BiasStep> steps;
  SmallVector<BiasNode> nodes;

  Term skipRounding(Term term);
  bool matchProbabilities();
  bool matchGuard(Term condition, ArrayRef<Coord> row, int64_t rowsDim);
  bool matchScores(Term term);
  bool matchCapped(Term term);
  bool matchScaled(Term term, double factor);
  bool matchProducts(Term term);
  bool matchTypes();
  bool gains();
  bool isShared();

  std::optional<int64_t> getDim(const Coord &coord) const;
  void foldTriangle(BiasNode &node);
  std::optional<unsigned> addNode(Term term);
  std::optional<BiasNode> makeNode(Term term);

  SmallVector<int64_t> getBatches();
  Value arrange(OpBuilder &builder, Contraction &contraction, unsigned factor);
  Value buildBias(OpBuilder &builder, RankedTensorType scores);
  Value emit(OpBuilder &b, Location loc, unsigned node, ArrayRef<int64_t> loops, ValueRange leaves,
             ArrayRef<unsigned> leafNodes);
  Value emitSteps(OpBuilder &b, Location loc, Type type, ArrayRef<int64_t> loops, ValueRange leaves,
                  ArrayRef<unsigned> leafNodes);
};
} // namespace

/// Drops conversions between float types: the op rounds once.
Term AttentionMatcher::skipRounding(Term term) {
  term = unfolder.resolve(term);
  while (!term.isElement() &&
         isa_and_present<arith::ExtFOp, arith::TruncFOp>(term.value.getDefiningOp()))
    term = unfolder.resolve(unfolder.getOperand(term, 0));
  return term;
}

static SmallVector<Coord> takeCoords(ArrayRef<Coord> coords, ArrayRef<unsigned> which) {
  return llvm::map_to_vector(which, [&](unsigned index) { return coords[index]; });
}

static bool isSame(const Coord &a, const Coord &b) {
  return !a.computed.value && !b.computed.value && a.digits == b.digits;
}

/// Whether the places in two lists of dimensions are the same number.
static bool areSame(ArrayRef<Coord> a, ArrayRef<Coord> b) {
  std::optional<Digits> left = flatten(a), right = flatten(b);
  return left && right && *left == *right;
}

/// Whether the row of scores at `row` is all -inf by `condition`, as torch's safe softmax asks. The
/// op gives 0 there, too.
bool AttentionMatcher::matchGuard(Term condition, ArrayRef<Coord> row, int64_t axis) {
  std::optional<Reduction> all = unfolder.getReduction(condition);
  if (!all || !isa<arith::AndIOp>(all->combine) || !isInteger(all->start, -1) ||
      all->variables.size() != 1)
    return false;
  auto comparison = dyn_cast_or_null<arith::CmpFOp>(unfolder.getOp(all->body));
  if (!comparison || comparison.getPredicate() != arith::CmpFPredicate::OEQ ||
      !isFloat(unfolder.getOperand(all->body, 1), -HUGE_VAL))
    return false;
  Term score = unfolder.getOperand(all->body, 0);
  const Coords *place = getPlace(score, softmax.getInput());
  if (!place || !(*place)[axis].isVariable(all->variables.front()))
    return false;
  for (int64_t dim = 0; dim < int64_t(row.size()); ++dim)
    if (dim != axis && !isSame((*place)[dim], row[dim]))
      return false;
  return true;
}

bool AttentionMatcher::matchProbabilities() {
  Coords loops;
  for (int64_t size : root.op.getStaticLoopRanges())
    loops.push_back(unfolder.makeCoord(size));
  Coords at;
  for (AffineExpr expr : root.getMap(factor).getResults())
    at.push_back(loops[cast<AffineDimExpr>(expr).getPosition()]);
  Term term = skipRounding(unfolder.element(root.getFactor(factor), std::move(at)));
  std::optional<Term> guard;
  if (isa_and_present<arith::SelectOp>(unfolder.getOp(term)) &&
      isFloat(unfolder.getOperand(term, 1), 0.0)) {
    guard = unfolder.getOperand(term, 0);
    term = skipRounding(unfolder.getOperand(term, 2));
  }
  softmax = term.isElement() ? term.value.getDefiningOp<linalg::SoftmaxOp>() : nullptr;
  if (!softmax || !softmax.hasPureTensorSemantics())
    return false;
  ArrayRef<Coord> coords = *term.coords;
  int64_t axis = int64_t(softmax.getDimension()), keys = loops[root.summed].variable,
          queries = loops[root.own[factor]].variable, rowsDim = -1;
  if (keys == 0 || queries == 0 || !coords[axis].isVariable(keys))
    return false;
  SmallVector<Coord> batches;
  for (int64_t dim = 0; dim < int64_t(coords.size()); ++dim) {
    if (dim == axis)
      continue;
    if (coords[dim].isVariable(queries)) {
      rowsDim = dim;
    } else {
      dims.push_back(dim);
      batches.push_back(coords[dim]);
    }
  }
  if (rowsDim < 0 || !areSame(batches, takeCoords(loops, root.batches)) ||
      (guard && !matchGuard(*guard, coords, axis)))
    return false;
  dims.append({rowsDim, axis});
  return true;
}

bool AttentionMatcher::matchProducts(Term term) {
  std::optional<Contraction> found =
      term.isElement() ? getContraction(term.value.getDefiningOp()) : std::nullopt;
  if (!found)
    return false;
  products = *found;
  Coords loops(products.op.getNumLoops());
  for (auto [expr, coord] : llvm::zip_equal(products.getResultMap().getResults(), *term.coords))
    loops[cast<AffineDimExpr>(expr).getPosition()] = coord;
  int64_t rows = variables[variables.size() - 2], keys = variables.back();
  query = loops[products.own[1]].isVariable(rows);
  SmallVector<Coord> batches;
  for (int64_t dim = 0; dim + 2 < int64_t(dims.size()); ++dim) {
    Digits digits;
    int64_t size = unfolder.getSize(variables[dim]);
    digits.add({variables[dim], 1, size, 1});
    batches.push_back(Coord(std::move(digits)));
  }
  return loops[products.own[query]].isVariable(rows) &&
         loops[products.own[!query]].isVariable(keys) &&
         areSame(takeCoords(loops, products.batches), batches);
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
  // Any score of f32 is lost in a number as low, so adding it is the same as putting it in place.
  constexpr double lowest = -1e30;
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
    if (!number || *number > lowest || !matchScores(unfolder.getOperand(term, 3 - masked)))
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
  int64_t rank = dims.size();
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
  constexpr unsigned maxNodes = 64;
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

/// Whether the op has a form of these types. If values are narrower than their sums, what rounds
/// these must be all that reads them.
bool AttentionMatcher::matchTypes() {
  Type element = getElementTypeOrSelf(root.getFactor(!factor));
  Type result = getElementTypeOrSelf(root.op->getResult(0));
  for (unsigned part : {0, 1})
    if (getElementTypeOrSelf(products.getFactor(part)) != element)
      return false;
  if (!element.isF16() && !element.isBF16() && !element.isF32() && !element.isF64())
    return false;
  if (result == element)
    return true;
  if (!root.op->hasOneUse() || !result.isF32())
    return false;
  auto reader = dyn_cast<linalg::GenericOp>(*root.op->user_begin());
  if (!reader || reader.getNumReductionLoops() || reader->getNumResults() != 1 ||
      reader.getNumDpsInputs() != 1 ||
      !llvm::all_of(reader.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return false;
  auto rounded = reader.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
  if (!rounded || rounded.getType() != element ||
      rounded.getIn() != reader.getBody()->getArgument(0))
    return false;
  rounding = reader;
  return true;
}

/// Whether a tensor of scores is at least as large as those that are read and written in its place.
/// Smaller attention is in few kernels as it is.
bool AttentionMatcher::gains() {
  SmallVector<int64_t> sizes = products.op.getStaticLoopRanges(),
                       rootSizes = root.op.getStaticLoopRanges();
  int64_t queries = sizes[products.own[query]], keys = sizes[products.own[!query]],
          width = sizes[products.summed], values = rootSizes[root.own[!factor]];
  return queries * keys >= (queries + keys) * (width + values);
}

/// Whether others use something that is made of the scores on the way to the root.
bool AttentionMatcher::isShared() {
  SmallVector<Operation *> worklist = {products.op};
  llvm::DenseSet<Operation *> seen;
  ArrayRef<Operation *> visited = unfolder.getVisited();
  llvm::DenseSet<Operation *> own(visited.begin(), visited.end());
  own.insert(softmax);
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers()) {
      if (user == root.op)
        continue;
      if (!own.contains(user))
        return true;
      if (seen.insert(user).second)
        worklist.push_back(user);
    }
  }
  return false;
}

bool AttentionMatcher::match() {
  if (!matchProbabilities())
    return false;
  Term score = unfolder.makeElement(softmax.getInput());
  for (int64_t dim : dims)
    variables.push_back((*score.coords)[dim].variable);
  return matchScores(score) && matchTypes() && gains() && !isShared();
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// Reshapes `source` to `shape`, or returns what it is a reshape of.
static Value reshape(OpBuilder &builder, Value source, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(source));
  if (source.getType() == type)
    return source;
  Value base = stripReshapes(source);
  return base.getType() == type ? base : createReshapes(builder, source.getLoc(), type, source);
}

/// Moves dimension `order[i]` of `source` to place i, or returns what it is a transpose of.
static Value transpose(OpBuilder &builder, Value source, ArrayRef<int64_t> order) {
  SmallVector<int64_t> places(order);
  if (auto other = source.getDefiningOp<linalg::TransposeOp>()) {
    for (int64_t &place : places)
      place = other.getPermutation()[place];
    source = other.getInput();
  }
  if (llvm::equal(places, llvm::seq<int64_t>(0, int64_t(places.size()))))
    return source;
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<int64_t> shape;
  for (int64_t place : places)
    shape.push_back(type.getDimSize(place));
  Value empty = tensor::EmptyOp::create(builder, source.getLoc(), shape, type.getElementType());
  return linalg::TransposeOp::create(builder, source.getLoc(), source, empty, places)->getResult(0);
}

/// Returns the sizes of the batches.
SmallVector<int64_t> AttentionMatcher::getBatches() {
  SmallVector<int64_t> sizes;
  for (int64_t dim : ArrayRef(dims).drop_back(2))
    sizes.push_back(softmax.getInputOperandType().getDimSize(dim));
  return sizes;
}

/// Returns a factor as the op takes it: batches, rows of the queries, keys or values, elements.
Value AttentionMatcher::arrange(OpBuilder &builder, Contraction &contraction, unsigned factor) {
  // A key's and a query's elements are summed, the rows of the values.
  bool isValue = contraction.op == root.op;
  unsigned row = isValue ? contraction.summed : contraction.own[factor];
  unsigned column = isValue ? contraction.own[factor] : contraction.summed;
  SmallVector<unsigned> wanted(contraction.batches);
  wanted.append({row, column});
  AffineMap map = contraction.getMap(factor);
  SmallVector<int64_t> order;
  for (unsigned loop : wanted)
    order.push_back(*map.getResultPosition(builder.getAffineDimExpr(loop)));
  Value tensor = contraction.getFactor(factor);
  SmallVector<int64_t> shape = getBatches();
  int64_t batches = contraction.batches.size(), rank = shape.size() + 2;
  auto sizesOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  if (llvm::equal(ArrayRef(order).take_front(batches), llvm::seq<int64_t>(0, batches))) {
    llvm::append_range(shape, sizesOf(tensor).take_back(2));
    SmallVector<int64_t> places = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (order[batches] > order[batches + 1])
      std::swap(places[rank - 2], places[rank - 1]);
    return transpose(builder, reshape(builder, tensor, shape), places);
  }
  tensor = transpose(builder, tensor, order);
  llvm::append_range(shape, sizesOf(tensor).take_back(2));
  return reshape(builder, tensor, shape);
}

/// Builds the value of `node` in a body with loops over dimensions `loops` of the scores.
Value AttentionMatcher::emit(OpBuilder &b, Location loc, unsigned number, ArrayRef<int64_t> loops,
                             ValueRange leaves, ArrayRef<unsigned> leafNodes) {
  const BiasNode &node = nodes[number];
  if (node.tensor)
    return leaves[llvm::find(leafNodes, number) - leafNodes.begin()];
  auto getIndex = [&](int64_t dim) -> Value {
    return linalg::IndexOp::create(b, loc, llvm::find(loops, dim) - loops.begin());
  };
  int64_t rank = dims.size();
  if (node.triangle)
    return emitTriangle(b, loc, *node.triangle, getIndex(rank - 2), getIndex(rank - 1));
  if (node.constant)
    return arith::ConstantOp::create(b, loc, node.constant);
  if (!node.op)
    return getIndex(node.place);
  IRMapping mapping;
  for (auto [operand, from] : llvm::zip_equal(node.op->getOperands(), node.operands)) {
    Value value = emit(b, loc, from, loops, leaves, leafNodes);
    mapping.map(operand, value);
  }
  return b.clone(*node.op, mapping)->getResult(0);
}

static Value convert(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (value.getType().getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::TruncFOp::create(b, loc, type, value);
}

Value AttentionMatcher::emitSteps(OpBuilder &b, Location loc, Type type, ArrayRef<int64_t> loops,
                                  ValueRange leaves, ArrayRef<unsigned> leafNodes) {
  Value bias;
  for (const BiasStep &step : steps) {
    Value value = emit(b, loc, step.node, loops, leaves, leafNodes);
    if (!step.number) {
      value = convert(b, loc, value, type);
      bias = bias ? arith::AddFOp::create(b, loc, bias, value).getResult() : value;
      continue;
    }
    Value number = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, *step.number));
    if (!bias)
      bias = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 0.0));
    bias = step.where ? arith::SelectOp::create(b, loc, value, number, bias)
                      : arith::SelectOp::create(b, loc, value, bias, number);
  }
  return bias;
}

/// Builds a tensor of the dimensions in which what is added to the scores differs.
Value AttentionMatcher::buildBias(OpBuilder &builder, RankedTensorType scores) {
  Location loc = softmax.getLoc();
  SmallVector<unsigned> leafNodes;
  SmallVector<Value> leaves;
  llvm::SmallBitVector used(scores.getRank());
  SmallVector<unsigned> worklist;
  for (const BiasStep &step : steps)
    worklist.push_back(step.node);
  while (!worklist.empty()) {
    unsigned number = worklist.pop_back_val();
    const BiasNode &node = nodes[number];
    llvm::append_range(worklist, node.operands);
    if (node.place >= 0)
      used.set(node.place);
    if (node.triangle)
      used.set(scores.getRank() - 2, scores.getRank());
    if (!node.tensor || llvm::is_contained(leafNodes, number))
      continue;
    leafNodes.push_back(number);
    for (int64_t dim : node.dims)
      if (dim >= 0)
        used.set(dim);
  }
  SmallVector<int64_t> loops, sizes, shape(scores.getRank(), 1);
  for (unsigned dim : used.set_bits()) {
    loops.push_back(dim);
    sizes.push_back(scores.getDimSize(dim));
    shape[dim] = sizes.back();
  }
  SmallVector<AffineMap> maps;
  for (unsigned number : leafNodes) {
    const BiasNode &node = nodes[number];
    SmallVector<int64_t> leafShape;
    SmallVector<AffineExpr> places;
    for (int64_t dim : node.dims)
      if (dim >= 0) {
        leafShape.push_back(scores.getDimSize(dim));
        places.push_back(builder.getAffineDimExpr(llvm::find(loops, dim) - loops.begin()));
      }
    leaves.push_back(reshape(builder, node.tensor, leafShape));
    maps.push_back(AffineMap::get(loops.size(), 0, places, builder.getContext()));
  }
  Type element = scores.getElementType();
  // A tensor that is added as it is needs no op.
  if (steps.size() == 1 && !steps[0].number && nodes[steps[0].node].tensor &&
      maps[0].isIdentity() && getElementTypeOrSelf(leaves[0]) == element)
    return reshape(builder, leaves[0], shape);
  maps.push_back(builder.getMultiDimIdentityMap(loops.size()));
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, element);
  SmallVector<utils::IteratorType> iterators(loops.size(), utils::IteratorType::parallel);
  Value bias =
      linalg::GenericOp::create(
          builder, loc, empty.getType(), leaves, empty, maps, iterators,
          [&](OpBuilder &b, Location, ValueRange arguments) {
            linalg::YieldOp::create(
                b, loc, emitSteps(b, loc, element, loops, arguments.drop_back(), leafNodes));
          })
          .getResult(0);
  return reshape(builder, bias, shape);
}

void AttentionMatcher::raise(ErasedOps &erased) {
  Operation *last = rounding ? rounding : root.op;
  OpBuilder builder(last);
  Location loc = root.op->getLoc();
  Value q = arrange(builder, products, query), k = arrange(builder, products, !query),
        v = arrange(builder, root, !factor);
  RankedTensorType scores = norm::getScoresType(q, k);
  auto rows = RankedTensorType::get(scores.getShape().drop_back(), scores.getElementType());
  SmallVector<int64_t> shape(rows.getShape());
  int64_t width = cast<RankedTensorType>(v.getType()).getShape().back();
  shape.push_back(width);
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(v));
  Value bias = steps.empty() ? Value() : buildBias(builder, scores);
  auto attention = norm::AttentionOp::create(builder, loc, TypeRange{type, rows, rows}, q, k, v,
                                             bias, builder.getF64FloatAttr(scale),
                                             cap ? builder.getF64FloatAttr(*cap) : FloatAttr());

  SmallVector<int64_t> sizes = root.op.getStaticLoopRanges(), flat, order;
  SmallVector<unsigned> given(root.batches);
  given.append({root.own[factor], root.own[!factor]});
  for (unsigned loop : given)
    flat.push_back(sizes[loop]);
  for (AffineExpr expr : root.getResultMap().getResults())
    order.push_back(llvm::find(given, cast<AffineDimExpr>(expr).getPosition()) - given.begin());
  Value result = transpose(builder, reshape(builder, attention.getResult(), flat), order);
  last->getResult(0).replaceAllUsesWith(result);
  SmallVector<Operation *> ops(unfolder.getVisited());
  ops.append({root.op, softmax, products.op});
  if (rounding)
    ops.push_back(rounding);
  llvm::sort(ops);
  ops.erase(llvm::unique(ops), ops.end());
  eraseUnused(ops, erased);
}

bool weir::elements::raiseAttention(Operation *root, ErasedOps &erased) {
  std::optional<Contraction> contraction = getContraction(root);
  for (unsigned factor : {0, 1}) {
    if (!contraction)
      return false;
    AttentionMatcher matcher(*contraction, factor);
    if (!matcher.match())
      continue;
    matcher.raise(erased);
    return true;
  }
  return false;
}
