//===- AttentionBuilders.cpp - The ops in place of an attention -----------===//
//
// Digits of places are split, put in order and joined. Digits that a factor lacks are repeated,
// those that a result lacks are added up.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/Attention.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "weir/Graph/Graph.h"

using namespace mlir;
using namespace weir;
using namespace weir::elements;

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

SmallVector<int64_t> AttentionMatcher::getSizes(ArrayRef<int64_t> wanted) const {
  return llvm::map_to_vector(wanted, [&](int64_t variable) { return unfolder.getSize(variable); });
}

SmallVector<int64_t> AttentionMatcher::getVariables(bool ofKeys, const Coord &element) const {
  SmallVector<int64_t> wanted(ArrayRef(variables).drop_back(2));
  wanted.append({ofKeys ? getKey() : getRow(), element.variable});
  return wanted;
}

namespace {
/// A part of a variable: a digit of a tensor's places, or of none.
struct Piece {
  int64_t size;
  int64_t digit = -1;
};
} // namespace

/// Returns the digits of `coords`, by dimension.
static SmallVector<Digit> listDigits(ArrayRef<Coord> coords) {
  SmallVector<Digit> digits;
  for (const Coord &coord : coords)
    llvm::append_range(digits, coord.digits);
  return digits;
}

/// Cuts `variables` into the digits of a tensor's places and the gaps between them. Returns nothing
/// if a digit is there twice, overlaps, or belongs to none of them.
static std::optional<SmallVector<Piece>>
cutVariables(ArrayRef<int64_t> variables, ArrayRef<int64_t> sizes, ArrayRef<Digit> digits) {
  SmallVector<Piece> pieces;
  int64_t taken = 0;
  for (auto [variable, size] : llvm::zip_equal(variables, sizes)) {
    SmallVector<int64_t> own;
    for (int64_t index = 0; index < int64_t(digits.size()); ++index)
      if (variable != 0 && digits[index].variable == variable)
        own.push_back(index);
    llvm::sort(own, [&](int64_t a, int64_t b) { return digits[a].below > digits[b].below; });
    int64_t below = size;
    for (int64_t index : own) {
      int64_t above = digits[index].below * digits[index].size;
      if (above > below || below % above != 0)
        return std::nullopt;
      if (above < below)
        pieces.push_back({below / above});
      pieces.push_back({digits[index].size, index});
      below = digits[index].below;
    }
    if (below > 1)
      pieces.push_back({below});
    taken += own.size();
  }
  if (taken != int64_t(digits.size()))
    return std::nullopt;
  return pieces;
}

static RankedTensorType getTypeLike(Value value, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getElementTypeOrSelf(value));
}

/// Repeats `source`, whose dimensions are those pieces that have a digit, along the others.
static Value repeat(OpBuilder &builder, Value source, ArrayRef<Piece> pieces) {
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> dims;
  for (auto [index, piece] : llvm::enumerate(pieces)) {
    shape.push_back(piece.size);
    if (piece.digit >= 0)
      dims.push_back(builder.getAffineDimExpr(index));
  }
  if (dims.size() == pieces.size())
    return source;
  Location loc = source.getLoc();
  Value empty = tensor::EmptyOp::create(builder, loc, shape, getElementTypeOrSelf(source));
  SmallVector<utils::IteratorType> loops(shape.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, empty.getType(), source, empty,
             ArrayRef({AffineMap::get(shape.size(), 0, dims, builder.getContext()),
                       builder.getMultiDimIdentityMap(shape.size())}),
             loops,
             [](OpBuilder &b, Location at, ValueRange arguments) {
               linalg::YieldOp::create(b, at, arguments.front());
             })
      .getResult(0);
}

static Value convert(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (value.getType().getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::TruncFOp::create(b, loc, type, value);
}

static Value convertElements(OpBuilder &builder, Value source, Type element) {
  auto type = cast<RankedTensorType>(source.getType());
  if (type.getElementType() == element)
    return source;
  Location loc = source.getLoc();
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, empty.getType(), source, empty,
                                   ArrayRef({identity, identity}), loops,
                                   [&](OpBuilder &b, Location at, ValueRange in) {
                                     linalg::YieldOp::create(b, at, convert(b, at, in[0], element));
                                   })
      .getResult(0);
}

/// Adds up the last dimensions of `source`, all but `kept`, in f32 or wider.
static Value addUp(OpBuilder &builder, Value source, int64_t kept) {
  auto type = cast<RankedTensorType>(source.getType());
  int64_t rank = type.getRank();
  if (kept == rank)
    return source;
  Location loc = source.getLoc();
  Type element = type.getElementType();
  Type wide = element.getIntOrFloatBitWidth() < 32 ? builder.getF32Type() : element;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(wide, 0.0));
  ArrayRef<int64_t> shape = type.getShape().take_front(kept);
  Value empty = tensor::EmptyOp::create(builder, loc, shape, wide);
  Value zeros = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  SmallVector<utils::IteratorType> loops(kept, utils::IteratorType::parallel);
  loops.append(rank - kept, utils::IteratorType::reduction);
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  Value sums = linalg::GenericOp::create(builder, loc, zeros.getType(), source, zeros,
                                         ArrayRef({all, all.getMajorSubMap(kept)}), loops,
                                         [&](OpBuilder &b, Location at, ValueRange in) {
                                           Value sum = arith::AddFOp::create(
                                               b, at, in[1], convert(b, at, in[0], wide));
                                           linalg::YieldOp::create(b, at, sum);
                                         })
                   .getResult(0);
  return convertElements(builder, sums, element);
}

/// Returns a factor as the op takes it: batches, rows of the queries, keys or values, elements.
Value AttentionMatcher::arrange(OpBuilder &builder, const Operand &operand, bool ofKeys,
                                const Coord &element) {
  SmallVector<int64_t> wanted = getVariables(ofKeys, element), sizes = getSizes(wanted);
  SmallVector<Digit> digits = listDigits(operand.coords);
  std::optional<SmallVector<Piece>> pieces = cutVariables(wanted, sizes, digits);
  assert(pieces && "factors are checked");
  SmallVector<int64_t> shape, order, all;
  for (const Digit &digit : digits)
    shape.push_back(digit.size);
  for (const Piece &piece : *pieces) {
    all.push_back(piece.size);
    if (piece.digit >= 0)
      order.push_back(piece.digit);
  }
  auto rank = int64_t(order.size());
  bool isWhole = order.size() == pieces->size();
  if (isWhole && llvm::equal(order, llvm::seq<int64_t>(0, rank)))
    return reshape(builder, operand.tensor, sizes);
  Value value = reshape(builder, operand.tensor, shape);
  value = transpose(builder, value, order);
  return reshape(builder, repeat(builder, value, *pieces), sizes);
}

/// Replaces the result of `root` by `made`: batches, rows of the queries or keys, elements.
void AttentionMatcher::replace(OpBuilder &builder, AttentionRoot &root, Value made) {
  Operation *last = root.rounding ? root.rounding : root.contraction.op;
  builder.setInsertionPoint(last);
  const Coord &element = root.isGradient ? width : valueWidth;
  bool ofKeys = !root.overKeys;
  SmallVector<int64_t> wanted = root.isOfBias ? variables : getVariables(ofKeys, element);
  SmallVector<int64_t> sizes = getSizes(wanted);
  if (root.isOfBias)
    llvm::copy(cast<RankedTensorType>(made.getType()).getShape(), sizes.begin());
  SmallVector<Digit> digits = listDigits(root.coords);
  std::optional<SmallVector<Piece>> pieces = cutVariables(wanted, sizes, digits);
  assert(pieces && "results are checked");
  SmallVector<int64_t> shape, order(digits.size());
  for (auto [index, piece] : llvm::enumerate(*pieces)) {
    shape.push_back(piece.size);
    if (piece.digit >= 0)
      order[piece.digit] = index;
    else
      order.push_back(index);
  }
  Value value = transpose(builder, reshape(builder, made, shape), order);
  value = addUp(builder, value, digits.size());
  auto type = cast<RankedTensorType>(last->getResult(0).getType());
  value = reshape(builder, value, type.getShape());
  if (root.isRounded)
    value = convertElements(builder, value, type.getElementType());
  last->getResult(0).replaceAllUsesWith(value);
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
  int64_t rank = variables.size();
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
  Location loc = this->scores.tensor.getLoc();
  SmallVector<unsigned> leafNodes;
  SmallVector<Value> leaves;
  SmallVector<unsigned> worklist;
  for (const BiasStep &step : steps)
    worklist.push_back(step.node);
  while (!worklist.empty()) {
    unsigned number = worklist.pop_back_val();
    const BiasNode &node = nodes[number];
    llvm::append_range(worklist, node.operands);
    if (node.tensor && !llvm::is_contained(leafNodes, number))
      leafNodes.push_back(number);
  }
  SmallVector<int64_t> loops, sizes, shape(scores.getRank(), 1);
  for (unsigned dim : getBiasDims().set_bits()) {
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

/// Returns the dimensions of the scores in which what is added to them differs.
llvm::SmallBitVector AttentionMatcher::getBiasDims() const {
  const int64_t rank = variables.size();
  llvm::SmallBitVector used(rank);
  SmallVector<unsigned> worklist;
  for (const BiasStep &step : steps)
    worklist.push_back(step.node);
  while (!worklist.empty()) {
    const BiasNode &node = nodes[worklist.pop_back_val()];
    llvm::append_range(worklist, node.operands);
    if (node.place >= 0)
      used.set(node.place);
    if (node.triangle)
      used.set(rank - 2, rank);
    for (int64_t dim : node.dims)
      if (node.tensor && dim >= 0)
        used.set(dim);
  }
  return used;
}

bool AttentionMatcher::coversScores() const {
  return llvm::any_of(
      steps, [](const BiasStep &step) { return step.number && *step.number != -HUGE_VAL; });
}

/// Returns the first of the roots in their block, or of those that are gradients.
Operation *AttentionMatcher::findFirst(bool isGradient) {
  Operation *first = nullptr;
  for (AttentionRoot &root : roots) {
    Operation *op = root.contraction.op;
    if (isGradient && root.overKeys && !root.isGradient)
      continue;
    if (!first || op->isBeforeInBlock(first))
      first = op;
  }
  return first;
}

/// Whether the operands of both ops are there where these are to be built.
bool AttentionMatcher::isInOrder() {
  auto isBefore = [](Value value, Operation *place) {
    Operation *op = value.getDefiningOp();
    return !op || op->isBeforeInBlock(place);
  };
  Operation *first = findFirst(/*isGradient=*/false), *gradient = findFirst(/*isGradient=*/true);
  if (!isBefore(q->tensor, first) || !isBefore(k->tensor, first) || !isBefore(v->tensor, first))
    return false;
  for (const BiasNode &node : nodes)
    if (node.tensor && !isBefore(node.tensor, first))
      return false;
  return !gradient || (dresult && isBefore(dresult->tensor, gradient));
}

void AttentionMatcher::raise(ErasedOps &erased) {
  OpBuilder builder(findFirst(/*isGradient=*/false));
  Location loc = roots.front().contraction.op->getLoc();
  Value query = arrange(builder, *q, /*ofKeys=*/false, width),
        keys = arrange(builder, *k, /*ofKeys=*/true, width),
        values = arrange(builder, *v, /*ofKeys=*/true, valueWidth);
  RankedTensorType scoresType = norm::getScoresType(query, keys);
  auto rows = RankedTensorType::get(scoresType.getShape().drop_back(), scoresType.getElementType());
  SmallVector<int64_t> shape(rows.getShape());
  shape.push_back(cast<RankedTensorType>(values.getType()).getShape().back());
  Value bias = steps.empty() ? Value() : buildBias(builder, scoresType);
  FloatAttr scaleAttr = builder.getF64FloatAttr(scale),
            capAttr = cap ? builder.getF64FloatAttr(*cap) : FloatAttr();
  UnitAttr covers = coversScores() ? builder.getUnitAttr() : UnitAttr();
  auto attention =
      norm::AttentionOp::create(builder, loc, TypeRange{getTypeLike(values, shape), rows, rows},
                                query, keys, values, bias, scaleAttr, capAttr, covers);
  norm::AttentionVjpOp vjp;
  if (Operation *first = findFirst(/*isGradient=*/true)) {
    builder.setInsertionPoint(first);
    if (first->isBeforeInBlock(attention))
      builder.setInsertionPointAfter(attention);
    Value change = arrange(builder, *dresult, /*ofKeys=*/false, valueWidth);
    SmallVector<Type> types = {query.getType(), keys.getType(), values.getType()};
    if (bias)
      types.push_back(bias.getType());
    vjp = norm::AttentionVjpOp::create(builder, first->getLoc(), types, change, query, keys, values,
                                       bias, attention.getResult(), attention.getMax(),
                                       attention.getShare(), scaleAttr, capAttr, covers);
  }
  SmallVector<Operation *> ops(unfolder.getVisited());
  ops.append(softmaxes.begin(), softmaxes.end());
  ops.push_back(products.tensor.getDefiningOp());
  if (changes)
    ops.push_back(changes);
  for (AttentionRoot &root : roots) {
    Value made = root.isOfBias      ? vjp.getDbias()
                 : !root.isGradient ? (root.overKeys ? attention.getResult() : vjp.getDv())
                                    : (root.overKeys ? vjp.getDq() : vjp.getDk());
    replace(builder, root, made);
    ops.push_back(root.contraction.op);
    if (root.rounding)
      ops.push_back(root.rounding);
  }
  llvm::sort(ops);
  ops.erase(llvm::unique(ops), ops.end());
  eraseUnused(ops, erased);
}
