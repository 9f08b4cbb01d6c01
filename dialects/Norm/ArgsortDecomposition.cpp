//===- ArgsortDecomposition.cpp - Sorting by merges -----------------------===//
//
// A row is cut into runs of up to 64 elements. In a run each element is compared with every other
// one, and its place is the number of those before it. Then pairs of runs are merged until one is
// left:
//
//     runs of 3      2 5 9 | 1 5 7 | 3 3 8 | 0 4 6
//     merged         1 2 5 5 7 9   | 0 3 3 4 6 8
//     merged         0 1 2 3 3 4 5 5 6 7 8 9
//
// A merge is a scan whose steps take the smaller one of the first elements that two runs have left.
// Long runs are merged in chunks. A chunk starts at an element that a binary search finds: that
// before which as many elements are merged as before the chunk (Odeh et al., "Merge Path", 2012).
// So each element is written by one step, at a place that only the step's number gives, and
// whoever wants the first few elements merges no more than those.
//
// The first k of many elements are looked for in few of them: the row is cut into blocks, of each
// of which the first element is found. The k blocks whose first elements are first, of equal ones
// the earlier blocks, have all that is wanted: before an element of another block come the first
// elements of these k. Those are sorted, in the order of the row.
//
// A handful of elements is found one after the other: the first of those that are behind the one
// before, which takes two reductions of the row and nothing in memory.
//
//===----------------------------------------------------------------------===//

#include "dialects/Norm/Decompositions.h"
#include "dialects/Norm/RowBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace weir::norm;

/// Reshapes a tensor, through one of rank 1.
static Value reshape(ImplicitLocOpBuilder builder, Value tensor, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto getAll = [](int64_t rank) {
    return SmallVector<ReassociationIndices>{llvm::to_vector(llvm::seq<int64_t>(0, rank))};
  };
  if (type.getShape() == shape)
    return tensor;
  if (type.getRank() > 1)
    tensor = tensor::CollapseShapeOp::create(builder, tensor, getAll(type.getRank()));
  if (shape.size() == 1)
    return tensor;
  return tensor::ExpandShapeOp::create(builder, type.clone(shape), tensor, getAll(shape.size()));
}

namespace {
/// Sorted runs of each row, as tensors [row, run, place].
struct Runs {
  SmallVector<Value> keys;
  Value order; ///< the elements' numbers in their row
  int64_t count = 0, length = 0;
};

class Sorter {
public:
  /// Sorts rows by `keys`, of one shape. Returns the numbers of the first `wanted` elements of
  /// each.
  static Value sort(OpBuilder &builder, Location loc, ValueRange keys, bool isDescending,
                    int64_t wanted, bool sortsBits) {
    return Sorter(builder, loc, keys, isDescending, wanted, sortsBits).run();
  }

private:
  using Body = function_ref<SmallVector<Value>(ImplicitLocOpBuilder &b, ValueRange arguments)>;

  Sorter(OpBuilder &builder, Location loc, ValueRange keys, bool isDescending, int64_t wanted,
         bool sortsBits);

  ImplicitLocOpBuilder builder;
  SmallVector<Value> keys;
  bool isDescending;
  bool sortsBits; ///< whether keys of floats are integers
  int64_t rows, size, wanted;
  int64_t chunk; ///< the number of elements that a long merge takes in one walk
  int64_t kept;  ///< the number of elements of a run that may reach the result

  Type index() { return builder.getI32Type(); }
  Value empty(ArrayRef<int64_t> shape, Type type) {
    return tensor::EmptyOp::create(builder, shape, type);
  }
  Value splat(ArrayRef<int64_t> shape, int64_t number);
  Value reshape(Value tensor, ArrayRef<int64_t> shape) { return ::reshape(builder, tensor, shape); }
  AffineMap map(unsigned loops, ArrayRef<unsigned> dims);
  SmallVector<Value> compute(ArrayRef<int64_t> ranges, unsigned reduced, ValueRange inputs,
                             ValueRange inits, SmallVector<AffineMap> maps, Body body);
  Value isBefore(ImplicitLocOpBuilder &b, ValueRange one, ValueRange other, Value ifEqual = {});
  SmallVector<Value> read(ImplicitLocOpBuilder &b, ValueRange tensors, ArrayRef<Value> at);
  Value convert(ImplicitLocOpBuilder &b, Value value);
  TypedAttr getLast(Type type);
  Type getConverted(Type type);
  Value readKey(ImplicitLocOpBuilder &b, Value flat, Value place);
  int64_t chooseBlock();
  Value getFirst(ImplicitLocOpBuilder &b, Value one, Value other);
  Value findFirsts(int64_t blocks, int64_t length);
  Value sortChosenBlocks(int64_t length);
  bool areFew();
  Value findInTurn();
  Value run();
  Value makeKey(Value source, int64_t count, int64_t length);
  Runs sortRuns(int64_t count, int64_t length);
  Value findStarts(const Runs &runs, int64_t chunks, int64_t ofChunk);
  Runs merge(const Runs &runs);
};
} // namespace

/// The body's numbers: an index of 32 bits, as kernels have.
static Value number(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, b.getI32Type(), value);
}
static Value loop(ImplicitLocOpBuilder &b, unsigned dim) {
  return arith::IndexCastOp::create(b, b.getI32Type(), linalg::IndexOp::create(b, dim));
}
static Value add(ImplicitLocOpBuilder &b, Value one, Value other) {
  return arith::AddIOp::create(b, one, other);
}
static Value scale(ImplicitLocOpBuilder &b, Value value, int64_t factor) {
  return arith::MulIOp::create(b, value, number(b, factor));
}
static Value select(ImplicitLocOpBuilder &b, Value condition, Value one, Value other) {
  return arith::SelectOp::create(b, condition, one, other);
}
static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate, Value one,
                     Value other) {
  return arith::CmpIOp::create(b, predicate, one, other);
}

Sorter::Sorter(OpBuilder &builder, Location loc, ValueRange keys, bool isDescending, int64_t wanted,
               bool sortsBits)
    : builder(loc, builder), keys(keys), isDescending(isDescending), sortsBits(sortsBits),
      wanted(wanted) {
  constexpr int64_t walks = 8192; // keep a device busy
  ArrayRef<int64_t> shape = cast<RankedTensorType>(keys.front().getType()).getShape();
  size = shape.back();
  rows = llvm::product_of(shape.drop_back());
  uint64_t each = std::max<int64_t>(rows * size / walks, 1);
  chunk = std::clamp<int64_t>(llvm::bit_floor(each), 16, 4096);
  kept = wanted <= chunk ? wanted : int64_t(llvm::alignTo(wanted, chunk));
}

Value Sorter::splat(ArrayRef<int64_t> shape, int64_t number) {
  auto type = RankedTensorType::get(shape, index());
  return arith::ConstantOp::create(
      builder, DenseElementsAttr::get(type, builder.getIntegerAttr(index(), number)));
}

AffineMap Sorter::map(unsigned loops, ArrayRef<unsigned> dims) {
  SmallVector<AffineExpr> results =
      llvm::map_to_vector(dims, [&](unsigned dim) { return builder.getAffineDimExpr(dim); });
  return AffineMap::get(loops, 0, results, builder.getContext());
}

/// Creates an op over `ranges`, the last `reduced` of which it walks in order.
SmallVector<Value> Sorter::compute(ArrayRef<int64_t> ranges, unsigned reduced, ValueRange inputs,
                                   ValueRange inits, SmallVector<AffineMap> maps, Body body) {
  SmallVector<utils::IteratorType> kinds(ranges.size() - reduced, utils::IteratorType::parallel);
  kinds.resize(ranges.size(), utils::IteratorType::reduction);
  auto generic =
      linalg::GenericOp::create(builder, TypeRange(inits), inputs, inits, maps, kinds,
                                [&](OpBuilder &inner, Location loc, ValueRange arguments) {
                                  ImplicitLocOpBuilder b(loc, inner);
                                  linalg::YieldOp::create(b, body(b, arguments));
                                });
  return llvm::to_vector_of<Value>(generic.getResults());
}

/// Whether one element is before another one by its keys; `ifEqual`, or false, if these are equal.
Value Sorter::isBefore(ImplicitLocOpBuilder &b, ValueRange one, ValueRange other, Value ifEqual) {
  auto isLess = [&](Value left, Value right) -> Value {
    if (isDescending)
      std::swap(left, right);
    if (!isa<FloatType>(left.getType()))
      return compare(b, arith::CmpIPredicate::slt, left, right);
    // Less than a NaN is what is none itself.
    Value less = arith::CmpFOp::create(b, arith::CmpFPredicate::ULT, left, right);
    Value isNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, left, left);
    return arith::AndIOp::create(b, less, isNumber);
  };
  Value before = ifEqual;
  for (auto [mine, its] : llvm::reverse(llvm::zip_equal(one, other))) {
    Value less = isLess(mine, its);
    if (before) {
      Value isMore = isLess(its, mine);
      Value isNotMore =
          arith::XOrIOp::create(b, isMore, arith::ConstantIntOp::create(b, b.getI1Type(), 1));
      less = arith::OrIOp::create(b, less, arith::AndIOp::create(b, isNotMore, before));
    }
    before = less;
  }
  return before;
}

/// Reads elements at numbers of 32 bits, which must be in range.
SmallVector<Value> Sorter::read(ImplicitLocOpBuilder &b, ValueRange tensors, ArrayRef<Value> at) {
  SmallVector<Value> indices = llvm::map_to_vector(at, [&](Value value) -> Value {
    return value.getType().isIndex()
               ? value
               : arith::IndexCastOp::create(b, b.getIndexType(), value).getResult();
  });
  return llvm::map_to_vector(tensors, [&](Value tensor) -> Value {
    return tensor::ExtractOp::create(b, tensor, indices);
  });
}

/// Returns the integer that is among those of other floats where a float is among them. Zeros have
/// one, and so have NaNs, the largest.
static Value getOrderedBits(ImplicitLocOpBuilder &b, Value value) {
  Type type = value.getType(), bits = b.getIntegerType(type.getIntOrFloatBitWidth());
  auto isEqual = [&](Value one, Value other) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, one, other);
  };
  auto constant = [&](APInt number) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(bits, number));
  };
  APInt largest = APInt::getSignedMaxValue(bits.getIntOrFloatBitWidth());
  Value zero = constant(APInt::getZero(largest.getBitWidth()));
  Value raw = arith::BitcastOp::create(b, bits, value);
  Value turned = arith::XOrIOp::create(b, raw, constant(largest));
  Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, raw, zero);
  Value ordered = arith::SelectOp::create(b, isNegative, turned, raw);
  Value isZero = isEqual(value, arith::ConstantOp::create(b, b.getFloatAttr(type, 0)));
  ordered = arith::SelectOp::create(b, isZero, zero, ordered);
  return arith::SelectOp::create(b, isEqual(value, value), ordered, constant(largest));
}

/// Converts an element of a key to a type that devices compare.
Value Sorter::convert(ImplicitLocOpBuilder &b, Value value) {
  Type type = value.getType();
  bool isNarrow = type.getIntOrFloatBitWidth() < 32;
  if (isa<FloatType>(type)) {
    if (isNarrow)
      value = arith::ExtFOp::create(b, b.getF32Type(), value);
    return sortsBits ? getOrderedBits(b, value) : value;
  }
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, index(), value);
  return isNarrow ? arith::ExtSIOp::create(b, index(), value).getResult() : value;
}

/// Returns an element of a converted key that no other one is behind.
TypedAttr Sorter::getLast(Type type) {
  if (auto real = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = real.getFloatSemantics();
    return FloatAttr::get(real, isDescending ? APFloat::getInf(semantics, /*Negative=*/true)
                                             : APFloat::getNaN(semantics));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  return IntegerAttr::get(type, isDescending ? APInt::getSignedMinValue(width)
                                             : APInt::getSignedMaxValue(width));
}

/// Returns the type of a converted key.
Type Sorter::getConverted(Type type) {
  unsigned width = std::max(32u, type.getIntOrFloatBitWidth());
  if (isa<FloatType>(type) && !sortsBits)
    return width == 32 ? builder.getF32Type() : type;
  return builder.getIntegerType(width);
}

/// Reads an element of a row of a key, [row, place]. What lies behind the end of the row comes
/// last.
Value Sorter::readKey(ImplicitLocOpBuilder &b, Value flat, Value place) {
  Value inside = arith::MinUIOp::create(b, place, number(b, size - 1));
  Value value = convert(b, read(b, flat, {linalg::IndexOp::create(b, 0), inside}).front());
  Value isIn = compare(b, arith::CmpIPredicate::ult, place, number(b, size));
  return select(b, isIn, value, arith::ConstantOp::create(b, getLast(value.getType())));
}

/// Returns a key as runs.
Value Sorter::makeKey(Value source, int64_t count, int64_t length) {
  Type from = getElementTypeOrSelf(source), to = getConverted(from);
  SmallVector<int64_t> shape = {rows, count, length};
  AffineMap all = builder.getMultiDimIdentityMap(3);
  if (count * length == size) {
    Value key = reshape(source, shape);
    if (from == to)
      return key;
    return compute(shape, 0, key, empty(shape, to), {all, all},
                   [&](ImplicitLocOpBuilder &b, ValueRange in) -> SmallVector<Value> {
                     return {convert(b, in[0])};
                   })
        .front();
  }
  Value flat = reshape(source, {rows, size});
  return compute(shape, 0, {}, empty(shape, to), {all},
                 [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
                   return {readKey(b, flat, add(b, scale(b, loop(b, 1), length), loop(b, 2)))};
                 })
      .front();
}

/// Cuts rows into runs and sorts these, by comparing all pairs of a run.
Runs Sorter::sortRuns(int64_t count, int64_t length) {
  SmallVector<Value> keys =
      llvm::map_to_vector(this->keys, [&](Value key) { return makeKey(key, count, length); });
  SmallVector<Value> pairs(keys);
  llvm::append_range(pairs, keys);
  SmallVector<AffineMap> maps(keys.size(), map(4, {0, 1, 2}));
  maps.append(keys.size(), map(4, {0, 1, 3}));
  maps.push_back(map(4, {0, 1, 2}));
  Value rank =
      compute({rows, count, length, length}, 1, pairs, splat({rows, count, length}, 0), maps,
              [&](ImplicitLocOpBuilder &b, ValueRange in) -> SmallVector<Value> {
                Value isEarlier = compare(b, arith::CmpIPredicate::ult, loop(b, 3), loop(b, 2));
                ValueRange mine = in.take_front(keys.size());
                ValueRange its = in.slice(keys.size(), keys.size());
                Value isBehind = isBefore(b, its, mine, isEarlier);
                Value one = arith::ExtUIOp::create(b, index(), isBehind);
                return {add(b, in.back(), one)};
              })
          .front();
  Runs runs;
  runs.count = count;
  runs.length = std::min(length, kept);
  SmallVector<int64_t> shape = {rows, count, runs.length};
  Value place = compute({rows, count, runs.length, length}, 1, {rank}, splat(shape, 0),
                        {map(4, {0, 1, 3}), map(4, {0, 1, 2})},
                        [&](ImplicitLocOpBuilder &b, ValueRange in) -> SmallVector<Value> {
                          Value isIt = compare(b, arith::CmpIPredicate::eq, in[0], loop(b, 2));
                          Value its = select(b, isIt, loop(b, 3), number(b, 0));
                          return {add(b, in.back(), its)};
                        })
                    .front();
  if (count == 1) {
    runs.order = place;
    return runs;
  }
  AffineMap all = builder.getMultiDimIdentityMap(3);
  SmallVector<Value> inits =
      llvm::map_to_vector(keys, [&](Value key) { return empty(shape, getElementTypeOrSelf(key)); });
  inits.push_back(empty(shape, index()));
  SmallVector<AffineMap> same(1 + inits.size(), all);
  runs.keys = compute(shape, 0, place, inits, same, [&](ImplicitLocOpBuilder &b, ValueRange in) {
    Value row = linalg::IndexOp::create(b, 0), run = linalg::IndexOp::create(b, 1);
    Value inside = arith::MinUIOp::create(b, in[0], number(b, length - 1));
    SmallVector<Value> made = read(b, keys, {row, run, inside});
    made.push_back(add(b, scale(b, loop(b, 1), length), in[0]));
    return made;
  });
  runs.order = runs.keys.pop_back_val();
  return runs;
}

/// Finds for each chunk of each merged pair how many elements of the left run come before it.
Value Sorter::findStarts(const Runs &runs, int64_t chunks, int64_t ofChunk) {
  int64_t pairs = runs.count / 2, length = runs.length;
  SmallVector<int64_t> shape = {rows, pairs, chunks};
  int64_t steps = llvm::Log2_64_Ceil(length + 1);
  AffineMap kept = map(4, {0, 1, 2});
  return compute({rows, pairs, chunks, steps}, 1, empty(steps, index()),
                 {splat(shape, 0), splat(shape, length)}, {map(4, {3}), kept, kept},
                 [&](ImplicitLocOpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   Value low = in[1], high = in[2], last = number(b, length - 1);
                   Value middle = arith::ShRUIOp::create(b, add(b, low, high), number(b, 1));
                   // Of the merged elements before the chunk, the right run has `other` + 1 if the
                   // left one has `middle`.
                   Value before = scale(b, loop(b, 2), ofChunk);
                   Value other = arith::SubIOp::create(b, add(b, before, number(b, -1)), middle);
                   Value row = linalg::IndexOp::create(b, 0), left = scale(b, loop(b, 1), 2);
                   Value right = add(b, left, number(b, 1));
                   auto clamp = [&](Value place) -> Value {
                     return arith::MinUIOp::create(b, place, last);
                   };
                   SmallVector<Value> ofLeft = read(b, runs.keys, {row, left, clamp(middle)});
                   SmallVector<Value> ofRight = read(b, runs.keys, {row, right, clamp(other)});
                   Value no = arith::ConstantIntOp::create(b, b.getI1Type(), 0);
                   Value yes = arith::ConstantIntOp::create(b, b.getI1Type(), 1);
                   Value rightIsFirst = isBefore(b, ofRight, ofLeft);
                   Value takesMore = select(b, rightIsFirst, no, yes);
                   takesMore = select(b, compare(b, arith::CmpIPredicate::sgt, other, last), yes,
                                      takesMore);
                   takesMore = select(b, compare(b, arith::CmpIPredicate::slt, other, number(b, 0)),
                                      no, takesMore);
                   Value isOpen = compare(b, arith::CmpIPredicate::slt, low, high);
                   Value raises = arith::AndIOp::create(b, isOpen, takesMore);
                   return {select(b, raises, add(b, middle, number(b, 1)), low),
                           select(b, takesMore, high, arith::MinUIOp::create(b, middle, high))};
                 })
      .front();
}

/// Merges neighbouring runs, of whose count two is a factor.
Runs Sorter::merge(const Runs &runs) {
  int64_t length = runs.length;
  Runs merged;
  merged.count = runs.count / 2;
  merged.length = std::min(2 * length, kept);
  int64_t ofChunk = std::min(merged.length, chunk);
  while (merged.length % ofChunk != 0)
    --ofChunk;
  int64_t chunks = merged.length / ofChunk;
  SmallVector<int64_t> shape = {rows, merged.count, chunks, ofChunk},
                       starts = {rows, merged.count, chunks};
  Value start = chunks == 1 ? splat(starts, 0) : findStarts(runs, chunks, ofChunk);

  SmallVector<Value> inits = llvm::map_to_vector(
      runs.keys, [&](Value key) { return empty(shape, getElementTypeOrSelf(key)); });
  inits.append({empty(shape, index()), start});
  SmallVector<AffineMap> maps(inits.size() - 1, builder.getMultiDimIdentityMap(4));
  maps.push_back(map(4, {0, 1, 2}));
  SmallVector<Value> results =
      compute(shape, 1, {}, inits, maps, [&](ImplicitLocOpBuilder &b, ValueRange in) {
        // `taken` elements of the left run are merged, the others are of the right one.
        Value taken = in.back(), last = number(b, length - 1);
        Value place = add(b, scale(b, loop(b, 2), ofChunk), loop(b, 3));
        Value other = arith::SubIOp::create(b, place, taken);
        Value row = linalg::IndexOp::create(b, 0), left = scale(b, loop(b, 1), 2);
        Value right = add(b, left, number(b, 1));
        Value inLeft = arith::MinUIOp::create(b, taken, last);
        Value inRight = arith::MinUIOp::create(b, other, last);
        SmallVector<Value> ofLeft = read(b, runs.keys, {row, left, inLeft});
        SmallVector<Value> ofRight = read(b, runs.keys, {row, right, inRight});
        Value leftIsOver = compare(b, arith::CmpIPredicate::ugt, taken, last);
        Value rightIsLeft = compare(b, arith::CmpIPredicate::ule, other, last);
        Value takesRight = arith::OrIOp::create(b, isBefore(b, ofRight, ofLeft), leftIsOver);
        takesRight = arith::AndIOp::create(b, takesRight, rightIsLeft);
        SmallVector<Value> made;
        for (auto [one, two] : llvm::zip_equal(ofLeft, ofRight))
          made.push_back(select(b, takesRight, two, one));
        Value run = select(b, takesRight, right, left);
        llvm::append_range(made,
                           read(b, runs.order, {row, run, select(b, takesRight, inRight, inLeft)}));
        made.push_back(select(b, takesRight, taken, add(b, taken, number(b, 1))));
        return made;
      });
  results.pop_back();
  for (Value &result : results)
    result = reshape(result, {rows, merged.count, merged.length});
  merged.order = results.pop_back_val();
  merged.keys = results;
  return merged;
}

/// Returns the length of the blocks in which the first elements are looked for, or 0 where sorting
/// all costs less.
int64_t Sorter::chooseBlock() {
  constexpr int64_t gain = 4, vector = 16; // blocks end where vectors do, and rows where blocks do
  if (keys.size() != 1)
    return 0;
  int64_t best = llvm::bit_ceil(uint64_t(std::sqrt(double(size) / wanted)));
  auto getCost = [&](int64_t length) {
    return int64_t(llvm::divideCeil(size, length)) + wanted * length;
  };
  int64_t chosen = best;
  for (int64_t length = vector; length <= 2 * best; length += vector)
    if (size % length == 0 && (size % chosen != 0 || getCost(length) < getCost(chosen)))
      chosen = length;
  return gain * getCost(chosen) <= size ? chosen : 0;
}

/// Returns the first one of two elements of a key.
Value Sorter::getFirst(ImplicitLocOpBuilder &b, Value one, Value other) {
  // A NaN is the largest: it is what the larger one of two is, and not what the smaller one is.
  if (isa<FloatType>(one.getType()))
    return isDescending ? arith::MaximumFOp::create(b, one, other).getResult()
                        : arith::MinNumFOp::create(b, one, other).getResult();
  return isDescending ? arith::MaxSIOp::create(b, one, other).getResult()
                      : arith::MinSIOp::create(b, one, other).getResult();
}

/// Finds the first element of each block, which is its largest or least one.
Value Sorter::findFirsts(int64_t blocks, int64_t length) {
  Value key = makeKey(keys.front(), blocks, length);
  Type type = getElementTypeOrSelf(key);
  auto init = SplatElementsAttr::get(RankedTensorType::get({rows, blocks}, type), getLast(type));
  return compute({rows, blocks, length}, 1, key,
                 arith::ConstantOp::create(builder, init).getResult(),
                 {map(3, {0, 1, 2}), map(3, {0, 1})},
                 [&](ImplicitLocOpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   return {getFirst(b, in[0], in[1])};
                 })
      .front();
}

/// Sorts the elements of those blocks of each row that have the first ones.
Value Sorter::sortChosenBlocks(int64_t length) {
  int64_t blocks = llvm::divideCeil(size, length), chosen = std::min(wanted, blocks);
  auto sort = [&](Value key, bool isDescending, int64_t wanted) {
    return Sorter::sort(builder, builder.getLoc(), key, isDescending, wanted, sortsBits);
  };
  AffineMap all = builder.getMultiDimIdentityMap(2);
  // Computes [row, place] from what other rows have.
  auto gather = [&](int64_t count, Type type,
                    function_ref<Value(ImplicitLocOpBuilder & b, Value place)> body) {
    return compute({rows, count}, 0, {}, empty({rows, count}, type), {all},
                   [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
                     return {body(b, loop(b, 1))};
                   })
        .front();
  };
  auto readRow = [&](ImplicitLocOpBuilder &b, Value tensor, Value place, int64_t count) {
    Value inside = arith::MinUIOp::create(b, place, number(b, count - 1));
    return read(b, tensor, {linalg::IndexOp::create(b, 0), inside}).front();
  };
  Value first = sort(findFirsts(blocks, length), isDescending, chosen);
  Value inRow = sort(first, /*isDescending=*/false, chosen);
  Value block = gather(chosen, index(), [&](ImplicitLocOpBuilder &b, Value place) {
    return readRow(b, first, readRow(b, inRow, place, chosen), chosen);
  });
  auto getPlace = [&](ImplicitLocOpBuilder &b, Value candidate) {
    Value each = number(b, length);
    Value start = readRow(b, block, arith::DivUIOp::create(b, candidate, each), chosen);
    return add(b, scale(b, start, length), arith::RemUIOp::create(b, candidate, each));
  };
  Value flat = reshape(keys.front(), {rows, size});
  Type type = getConverted(getElementTypeOrSelf(flat));
  Value candidates = gather(chosen * length, type, [&](ImplicitLocOpBuilder &b, Value candidate) {
    return readKey(b, flat, getPlace(b, candidate));
  });
  Value order = sort(candidates, isDescending, wanted);
  return gather(wanted, index(), [&](ImplicitLocOpBuilder &b, Value place) {
    return getPlace(b, readRow(b, order, place, wanted));
  });
}

/// Whether finding the elements in turn takes less than sorting them.
bool Sorter::areFew() {
  constexpr int64_t most = 8;
  return keys.size() == 1 && wanted <= most && 2 * wanted <= size &&
         isa<IntegerType>(getConverted(getElementTypeOrSelf(keys.front())));
}

/// Finds the first element of each row, then the first one behind it, and so on.
Value Sorter::findInTurn() {
  Value key = reshape(keys.front(), {rows, size});
  Type type = getConverted(getElementTypeOrSelf(key));
  AffineMap all = map(2, {0, 1}), row = map(2, {0});
  auto init = SplatElementsAttr::get(RankedTensorType::get({rows}, type), getLast(type));
  Value last = arith::ConstantOp::create(builder, init);
  SmallVector<Value> places;
  Value before; // the key of the element found last
  // Whether an element is behind that: it has a later key, or an equal one and a later place.
  auto isBehind = [&](ImplicitLocOpBuilder &b, Value own, Value found, Value place) -> Value {
    Value isLater = isBefore(b, found, own);
    Value isEqual = compare(b, arith::CmpIPredicate::eq, own, found);
    Value isBehindIt = compare(b, arith::CmpIPredicate::ugt, loop(b, 1), place);
    return arith::OrIOp::create(b, isLater, arith::AndIOp::create(b, isEqual, isBehindIt));
  };
  for (int64_t turn = 0; turn < wanted; ++turn) {
    SmallVector<Value> inputs = {key};
    if (turn > 0)
      inputs.append({before, places.back()});
    auto getMaps = [&](unsigned ofRows) {
      SmallVector<AffineMap> maps = {all};
      maps.append(ofRows, row);
      return maps;
    };
    Value found = compute({rows, size}, 1, inputs, last, getMaps(inputs.size()),
                          [&](ImplicitLocOpBuilder &b, ValueRange in) -> SmallVector<Value> {
                            Value own = convert(b, in[0]);
                            if (turn > 0)
                              own = select(b, isBehind(b, own, in[1], in[2]), own,
                                           arith::ConstantOp::create(b, getLast(type)));
                            return {getFirst(b, own, in.back())};
                          })
                      .front();
    inputs.push_back(found);
    Value place = compute({rows, size}, 1, inputs, splat({rows}, size - 1), getMaps(inputs.size()),
                          [&](ImplicitLocOpBuilder &b, ValueRange in) -> SmallVector<Value> {
                            Value own = convert(b, in[0]);
                            Value isIt =
                                compare(b, arith::CmpIPredicate::eq, own, in.drop_back().back());
                            if (turn > 0)
                              isIt = arith::AndIOp::create(b, isIt, isBehind(b, own, in[1], in[2]));
                            Value its = select(b, isIt, loop(b, 1), number(b, size - 1));
                            return {arith::MinSIOp::create(b, its, in.back())};
                          })
                      .front();
    places.push_back(place);
    before = found;
  }
  SmallVector<AffineMap> maps(places.size(), row);
  maps.push_back(all);
  return compute({rows, wanted}, 0, places, empty({rows, wanted}, index()), maps,
                 [&](ImplicitLocOpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   Value place = in.front();
                   for (int64_t turn = 1; turn < wanted; ++turn)
                     place = select(
                         b, compare(b, arith::CmpIPredicate::eq, loop(b, 1), number(b, turn)),
                         in[turn], place);
                   return {place};
                 })
      .front();
}

/// Returns the order as [row, place].
Value Sorter::run() {
  constexpr int64_t longest = 64, ofMany = 8; // elements of a run that is compared by pairs
  if (rows * wanted == 0)
    return empty({rows, wanted}, index());
  if (int64_t length = chooseBlock())
    return sortChosenBlocks(length);
  if (areFew())
    return findInTurn();
  int64_t levels = size <= longest ? 0 : llvm::Log2_64_Ceil(llvm::divideCeil(size, ofMany));
  int64_t count = int64_t(1) << levels;
  Runs runs = sortRuns(count, llvm::divideCeil(size, count));
  while (runs.count > 1)
    runs = merge(runs);
  Value order = runs.order;
  if (runs.length > wanted) {
    SmallVector<OpFoldResult> zeros(3, builder.getIndexAttr(0)), ones(3, builder.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(rows), builder.getIndexAttr(1),
                                       builder.getIndexAttr(wanted)};
    order = tensor::ExtractSliceOp::create(
        builder, RankedTensorType::get({rows, 1, wanted}, index()), order, zeros, sizes, ones);
  }
  return reshape(order, {rows, wanted});
}

static Value sortKeys(OpBuilder &builder, ArgsortOp op, bool sortsBits) {
  ArrayRef<int64_t> shape = op.getOrder().getType().getShape();
  Value order =
      Sorter::sort(builder, op.getLoc(), op.getKeys(), op.getDescending(), shape.back(), sortsBits);
  return reshape(ImplicitLocOpBuilder(op.getLoc(), builder), order, shape);
}

Value weir::norm::decomposeOp(OpBuilder &builder, ArgsortOp op) {
  return sortKeys(builder, op, /*sortsBits=*/false);
}

Value weir::norm::decomposeAsBits(OpBuilder &builder, ArgsortOp op) {
  return sortKeys(builder, op, /*sortsBits=*/true);
}
