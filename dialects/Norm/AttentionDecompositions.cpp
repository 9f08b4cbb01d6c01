//===- AttentionDecompositions.cpp - Attention as linalg ------------------===//
//
// Loops are the batches, then the rows and columns of what an op computes, then what it sums.
// With one tensor of scores, forward and backward write the same ops for it, which CSE merges.
// In blocks, each sum has scores of its own, which nothing else reads:
//
//   products {weir.in_blocks = 0} -> scores -> max, share
//   products {weir.in_blocks = 1} -> scores -> powers -> sums -> result
//   products {weir.in_blocks = 2} -> scores -> probabilities -> dscores -> dq
//   products {weir.in_blocks = 3} -> scores -> probabilities -> dv
//   products {weir.in_blocks = 4} -> scores -> probabilities -> dscores -> dk
//
// The sums of forward are multiplied by the row's share when they are there, so that a walk over
// the keys needs no maximum of all of them: a larger one scales the sums. The products of dresult
// and v, which dscores needs, have the number of their chain. Numbers but 0 differ between ops, so
// that CSE merges the statistics of equal scores, but no chain that two sums would read. The
// gradient of a bias is as large as the scores, or a sum of what is: it is not made in blocks.
//
//===----------------------------------------------------------------------===//

#include "dialects/Norm/Decompositions.h"
#include "dialects/Norm/RowBuilder.h"
#include "dialects/Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weir::norm;
using weir::autodiff::Number;

namespace {
/// The number of a chain of ops in blocks, or nothing where its values are tensors.
using Chain = std::optional<int64_t>;

/// A factor of a contraction: a tensor, and the loops of its last two dimensions, counted behind
/// the batches. Rows and columns of the sums are 0 and 1, what is summed is 2.
struct Factor {
  Value tensor;
  unsigned row, column;
};

/// The statistics of each row of scores.
struct Statistics {
  Input max, share;
};

/// Values as large as the scores. `products` are those of queries and keys.
struct Scores {
  Value products, scores;
};

/// Builds the parts of an attention and of its VJP.
class Attention {
public:
  template <typename Op>
  Attention(OpBuilder &builder, Op op)
      : builder(builder), loc(op.getLoc()), q(op.getQ()), k(op.getK()), bias(op.getBias()),
        scale(op.getScale().convertToDouble()), biasCovers(op.getBiasCovers()),
        type(getScoresType(q, k)), rows(builder, loc, type, type.getRank() - 1, 1) {
    if (std::optional<APFloat> cap = op.getSoftcap())
      softcap = cap->convertToDouble();
  }

  /// Adds up the products of two factors with the batches of the scores.
  Value contract(Factor left, Factor right, Chain chain = {});
  /// Adds up the products of two tensors over their last dimension.
  Value sumProducts(Value left, Value right);
  /// Rounds the elements of `sums` to the type of those of `like`.
  Value round(Value sums, Value like);
  /// Adds up the values that the exponentials of the scores weigh, in blocks, and multiplies the
  /// sums by the rows' shares.
  Value weigh(Value scores, const Statistics &statistics, Value v);

  Scores getScores(Chain chain);
  Statistics getStatistics(Value scores, Chain chain);
  /// Computes `exp(scores - max) * share`.
  Value getProbabilities(Value scores, const Statistics &statistics, Chain chain);
  /// Computes the gradient of the scores; `dp` is that of the probabilities.
  Value getDscores(Value probabilities, Value dp, Value delta);
  /// Computes the gradient of the products from that of the scores.
  Value getDproducts(const Scores &scores, Value dscores);
  /// Adds up the gradient of the scores over the dimensions in which the bias is repeated.
  Value getDbias(Value dscores);

private:
  OpBuilder &builder;
  Location loc;
  Value q, k, bias;
  double scale;
  bool biasCovers;
  std::optional<double> softcap;
  RankedTensorType type; ///< of the scores
  RowBuilder rows;       ///< of the scores

  Value getPowers(Value scores, Input max);
  Value generic(ArrayRef<Value> inputs, Value out, ArrayRef<AffineMap> maps,
                ArrayRef<utils::IteratorType> iterators,
                llvm::function_ref<Number(ArrayRef<Number>)> compute);
  Value makeZeros(ArrayRef<int64_t> shape);
  /// Returns the dimensions in which the bias is not repeated.
  SmallVector<int64_t> getBiasDims() const;
  SmallVector<ReassociationIndices> getBiasGroups() const;
};
} // namespace

/// Builds an op on inputs and an output, of which `compute` gets the elements, widened to the
/// output's type.
Value Attention::generic(ArrayRef<Value> inputs, Value out, ArrayRef<AffineMap> maps,
                         ArrayRef<utils::IteratorType> iterators,
                         llvm::function_ref<Number(ArrayRef<Number>)> compute) {
  return linalg::GenericOp::create(builder, loc, out.getType(), inputs, out, maps, iterators,
                                   [&](OpBuilder &b, Location, ValueRange arguments) {
                                     ImplicitLocOpBuilder body(loc, b);
                                     SmallVector<Number> numbers;
                                     for (Value argument : arguments)
                                       numbers.emplace_back(
                                           body, widen(b, loc, argument, rows.getType()));
                                     linalg::YieldOp::create(b, loc, compute(numbers).get());
                                   })
      .getResult(0);
}

Value Attention::makeZeros(ArrayRef<int64_t> shape) {
  Value empty = tensor::EmptyOp::create(builder, loc, shape, rows.getType());
  return linalg::FillOp::create(builder, loc, rows.constant(0.0), empty).getResult(0);
}

Value Attention::contract(Factor left, Factor right, Chain chain) {
  unsigned batches = type.getRank() - 2;
  SmallVector<int64_t> sizes(type.getShape());
  sizes.resize(batches + 3);
  MLIRContext *context = builder.getContext();
  auto getMap = [&](unsigned row, unsigned column) {
    SmallVector<AffineExpr> dims;
    for (unsigned dim = 0; dim < batches; ++dim)
      dims.push_back(builder.getAffineDimExpr(dim));
    dims.push_back(builder.getAffineDimExpr(batches + row));
    dims.push_back(builder.getAffineDimExpr(batches + column));
    return AffineMap::get(batches + 3, 0, dims, context);
  };
  for (const Factor &factor : {left, right}) {
    auto factorType = cast<RankedTensorType>(factor.tensor.getType());
    sizes[batches + factor.row] = factorType.getDimSize(batches);
    sizes[batches + factor.column] = factorType.getDimSize(batches + 1);
  }
  SmallVector<utils::IteratorType> iterators(batches + 2, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  Value sums =
      generic({left.tensor, right.tensor}, makeZeros(ArrayRef(sizes).drop_back()),
              {getMap(left.row, left.column), getMap(right.row, right.column), getMap(0, 1)},
              iterators, [](ArrayRef<Number> in) { return in[2] + in[0] * in[1]; });
  if (chain)
    sums.getDefiningOp()->setAttr(weir::schedule::inBlocksAttrName,
                                  builder.getI64IntegerAttr(*chain));
  return sums;
}

Value Attention::sumProducts(Value left, Value right) {
  auto type = cast<RankedTensorType>(left.getType());
  RowBuilder rows(builder, loc, type, type.getRank() - 1, 1);
  return rows.sum({{left, Extent::Full}, {right, Extent::Full}},
                  [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                    return arith::MulFOp::create(b, loc, widen(b, loc, in[0], rows.getType()),
                                                 widen(b, loc, in[1], rows.getType()));
                  });
}

Value Attention::round(Value sums, Value like) {
  auto from = cast<RankedTensorType>(sums.getType());
  Type element = getElementTypeOrSelf(like);
  if (from.getElementType() == element)
    return sums;
  RowBuilder elements(builder, loc, from, /*firstReduced=*/0, /*numReduced=*/0);
  return elements.full({{sums, Extent::Full}}, element, [&](OpBuilder &b, ArrayRef<Value> in) {
    return narrow(b, loc, in[0], element);
  });
}

Value Attention::weigh(Value scores, const Statistics &statistics, Value v) {
  Value sums = contract({getPowers(scores, statistics.max), 0, 2}, {v, 2, 1});
  auto type = cast<RankedTensorType>(sums.getType());
  Type element = getElementTypeOrSelf(v);
  RowBuilder results(builder, loc, type, type.getRank() - 1, 1);
  return results.full({{sums, Extent::Full}, statistics.share}, element,
                      [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                        Value product = arith::MulFOp::create(b, loc, in[0], in[1]);
                        return element == product.getType() ? product
                                                            : narrow(b, loc, product, element);
                      });
}

SmallVector<int64_t> Attention::getBiasDims() const {
  SmallVector<int64_t> dims;
  for (auto [dim, size] : llvm::enumerate(cast<RankedTensorType>(bias.getType()).getShape()))
    if (size != 1)
      dims.push_back(int64_t(dim));
  return dims;
}

/// Returns the groups of dimensions that keep only those in which the bias is not repeated.
SmallVector<ReassociationIndices> Attention::getBiasGroups() const {
  SmallVector<int64_t> kept = getBiasDims();
  SmallVector<ReassociationIndices> groups(kept.size());
  if (groups.empty())
    return groups;
  unsigned group = 0;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (group + 1 < kept.size() && dim >= kept[group + 1])
      ++group;
    groups[group].push_back(dim);
  }
  return groups;
}

Scores Attention::getScores(Chain chain) {
  Value products = contract({q, 0, 2}, {k, 1, 2}, chain);
  if (scale == 1 && !softcap && !bias)
    return {products, products};
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<Value> inputs = {products};
  SmallVector<AffineMap> maps = {identity};
  if (bias) {
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> dims;
    for (int64_t dim : getBiasDims()) {
      shape.push_back(type.getDimSize(dim));
      dims.push_back(builder.getAffineDimExpr(dim));
    }
    Value repeated = bias;
    if (int64_t(shape.size()) != type.getRank())
      repeated = builder.createOrFold<tensor::CollapseShapeOp>(
          loc, RankedTensorType::get(shape, type.getElementType()), bias, getBiasGroups());
    inputs.push_back(repeated);
    maps.push_back(AffineMap::get(type.getRank(), 0, dims, builder.getContext()));
  }
  maps.push_back(identity);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  Value scores = generic(inputs, empty, maps, loops, [&](ArrayRef<Number> in) {
    Number x = scale == 1 ? in[0] : in[0] * scale;
    if (softcap)
      x = (x / x.constant(*softcap)).apply<math::TanhOp>() * *softcap;
    return bias ? x + in[1] : x;
  });
  return {products, scores};
}

Value Attention::getPowers(Value scores, Input max) {
  return rows.full({{scores, Extent::Full}, max}, type.getElementType(),
                   [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
                     return math::ExpOp::create(b, loc, shifted);
                   });
}

Statistics Attention::getStatistics(Value scores, Chain chain) {
  auto take = [](OpBuilder &, ArrayRef<Value> in) { return in[0]; };
  // From the lowest finite number on, a row of -inf has powers of 0, and not of NaN.
  const llvm::fltSemantics &semantics = cast<FloatType>(rows.getType()).getFloatSemantics();
  double lowest = APFloat::getLargest(semantics, /*Negative=*/true).convertToDouble();
  Input max = {rows.max({{scores, Extent::Full}}, take, lowest), Extent::Rows};
  Value sum;
  if (chain)
    sum = rows.sum({{scores, Extent::Full}, max}, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
      Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
      return math::ExpOp::create(b, loc, shifted);
    });
  else // a tensor, so that a kernel can keep them
    sum = rows.sum({{getPowers(scores, max), Extent::Full}}, take);
  Value share = rows.rows(
      {{sum, Extent::Rows}}, rows.getType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
        ImplicitLocOpBuilder body(loc, b);
        Number sum(body, in[0]), zero = sum.constant(0);
        return zero.where(arith::CmpFPredicate::OEQ, sum, zero, sum.constant(1) / sum).get();
      });
  return {max, {share, Extent::Rows}};
}

Value Attention::getProbabilities(Value scores, const Statistics &statistics, Chain chain) {
  if (!chain)
    return rows.full({{getPowers(scores, statistics.max), Extent::Full}, statistics.share},
                     type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                       return arith::MulFOp::create(b, loc, in[0], in[1]);
                     });
  return rows.full({{scores, Extent::Full}, statistics.max, statistics.share},
                   type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value shifted = arith::SubFOp::create(b, loc, in[0], in[1]);
                     Value power = math::ExpOp::create(b, loc, shifted);
                     return arith::MulFOp::create(b, loc, power, in[2]);
                   });
}

Value Attention::getDscores(Value probabilities, Value dp, Value delta) {
  return rows.full({{probabilities, Extent::Full}, {dp, Extent::Full}, {delta, Extent::Rows}},
                   type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
                     Value difference = arith::SubFOp::create(b, loc, in[1], in[2]);
                     return arith::MulFOp::create(b, loc, in[0], difference);
                   });
}

Value Attention::getDproducts(const Scores &scores, Value dscores) {
  bool covers = biasCovers && bias;
  if (scale == 1 && !softcap && !covers)
    return dscores;
  SmallVector<Input> inputs = {{dscores, Extent::Full}};
  if (softcap)
    inputs.push_back({scores.products, Extent::Full});
  if (covers)
    inputs.push_back({scores.scores, Extent::Full});
  return rows.full(inputs, type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) {
    ImplicitLocOpBuilder body(loc, b);
    SmallVector<Number> numbers = getNumbers(body, in);
    Number ds = scale == 1 ? numbers[0] : numbers[0] * scale;
    if (softcap) {
      Number x = scale == 1 ? numbers[1] : numbers[1] * scale;
      Number t = (x / x.constant(*softcap)).apply<math::TanhOp>();
      ds = ds * ((1 - t) * (1 + t));
    }
    if (covers)
      ds = ds.constant(0).where(arith::CmpFPredicate::OLE, numbers.back(), ds.constant(lowestScore),
                                ds);
    return ds.get();
  });
}

Value Attention::getDbias(Value dscores) {
  SmallVector<int64_t> kept = getBiasDims();
  auto biasType = cast<RankedTensorType>(bias.getType());
  if (int64_t(kept.size()) == type.getRank())
    return dscores;
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> dims;
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::reduction);
  for (int64_t dim : kept) {
    shape.push_back(type.getDimSize(dim));
    dims.push_back(builder.getAffineDimExpr(dim));
    loops[dim] = utils::IteratorType::parallel;
  }
  Value sums = generic({dscores}, makeZeros(shape),
                       {builder.getMultiDimIdentityMap(type.getRank()),
                        AffineMap::get(type.getRank(), 0, dims, builder.getContext())},
                       loops, [](ArrayRef<Number> in) { return in[1] + in[0]; });
  return tensor::ExpandShapeOp::create(builder, loc, biasType, sums, getBiasGroups());
}

namespace {
/// The values of one chain of a VJP.
struct Gradients {
  Value probabilities, dscores, dproducts;
};
} // namespace

/// Returns the number of a chain of op number `op` in blocks.
static int64_t getChain(int64_t chain, int64_t op) {
  constexpr int64_t chainsOfOp = 4;
  return chain + op * chainsOfOp;
}

/// Builds the gradients, in blocks if the op has a number.
static SmallVector<Value> buildVjp(OpBuilder &builder, AttentionVjpOp op,
                                   std::optional<int64_t> number) {
  Attention attention(builder, op);
  Value q = op.getQ(), k = op.getK(), v = op.getV(), dresult = op.getDresult();
  Statistics statistics = {{op.getMax(), Extent::Rows}, {op.getShare(), Extent::Rows}};
  Value deltaOfResult = attention.sumProducts(dresult, op.getResult()); // dead unless in blocks
  auto build = [&](Chain chain) {
    Scores scores = attention.getScores(chain);
    Value probabilities = attention.getProbabilities(scores.scores, statistics, chain);
    Value dp = attention.contract({dresult, 0, 2}, {v, 1, 2}, chain);
    // Two sums that are the same. One needs no probabilities, the other need not wait for the
    // result and reads what the kernel behind it reads.
    Value delta = chain ? deltaOfResult : attention.sumProducts(probabilities, dp);
    Value dscores = attention.getDscores(probabilities, dp, delta);
    return Gradients{probabilities, dscores, attention.getDproducts(scores, dscores)};
  };
  Gradients tensors = build({}); // dead in blocks, unless there is a bias
  auto get = [&](int64_t chain) { return number ? build(getChain(chain, *number)) : tensors; };
  SmallVector<Value> gradients = {
      attention.round(attention.contract({get(2).dproducts, 0, 2}, {k, 2, 1}), q),
      attention.round(attention.contract({get(4).dproducts, 2, 0}, {q, 2, 1}), k),
      attention.round(attention.contract({get(3).probabilities, 2, 0}, {dresult, 2, 1}), v)};
  if (op.getBias())
    gradients.push_back(attention.getDbias(tensors.dscores));
  return gradients;
}

SmallVector<Value> weir::norm::decomposeOp(OpBuilder &builder, AttentionOp op) {
  Attention attention(builder, op);
  Value scores = attention.getScores({}).scores;
  Statistics statistics = attention.getStatistics(scores, {});
  Value probabilities = attention.getProbabilities(scores, statistics, {});
  Value result = attention.contract({probabilities, 0, 2}, {op.getV(), 2, 1});
  return {attention.round(result, op.getV()), statistics.max.tensor, statistics.share.tensor};
}

SmallVector<Value> weir::norm::decomposeInBlocks(OpBuilder &builder, AttentionOp op,
                                                 int64_t number) {
  Attention attention(builder, op);
  Chain ofStatistics = 0, ofResult = getChain(1, number);
  Statistics statistics =
      attention.getStatistics(attention.getScores(ofStatistics).scores, ofStatistics);
  Value result = attention.weigh(attention.getScores(ofResult).scores, statistics, op.getV());
  return {result, statistics.max.tensor, statistics.share.tensor};
}

SmallVector<Value> weir::norm::decomposeOp(OpBuilder &builder, AttentionVjpOp op) {
  return buildVjp(builder, op, /*number=*/{});
}

SmallVector<Value> weir::norm::decomposeInBlocks(OpBuilder &builder, AttentionVjpOp op,
                                                 int64_t number) {
  return buildVjp(builder, op, number);
}
