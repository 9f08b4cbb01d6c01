//===- Decompose.cpp - Matrix ops as loops of linalg ----------------------===//
//
// Each trip of a loop computes whole matrices of the batch: what a step of the algorithm does not
// touch is copied, by comparing rows and columns with the trip's number. So a step is one or two
// kernels, whatever the batch.
//
//===----------------------------------------------------------------------===//

#include "dialects/Matrix/Decompose.h"
#include "dialects/Matrix/Matrix.h"
#include "dialects/Matrix/MatrixBuilder.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weir::matrix;
using arith::CmpFPredicate;

//===----------------------------------------------------------------------===//
// One dimension of batch
//===----------------------------------------------------------------------===//

/// Reshapes the dimensions before the last `kept` to one.
static Value flatten(OpBuilder &b, Location loc, Value x, unsigned kept) {
  auto type = cast<RankedTensorType>(x.getType());
  const unsigned batch = type.getRank() - kept;
  if (batch == 1)
    return x;
  SmallVector<int64_t> shape = {1};
  for (int64_t size : type.getShape().drop_back(kept))
    shape[0] *= size;
  llvm::append_range(shape, type.getShape().take_back(kept));
  auto made = RankedTensorType::get(shape, type.getElementType());
  SmallVector<ReassociationIndices> groups(1);
  if (batch == 0) {
    groups[0] = {0, 1};
    for (unsigned dim = 1; dim < kept; ++dim)
      groups.push_back({dim + 1});
    return tensor::ExpandShapeOp::create(b, loc, made, x, groups);
  }
  for (unsigned dim = 0; dim < batch; ++dim)
    groups[0].push_back(dim);
  for (unsigned dim = 0; dim < kept; ++dim)
    groups.push_back({batch + dim});
  return tensor::CollapseShapeOp::create(b, loc, made, x, groups);
}

/// Reshapes the first dimension to those of `type` before its last `kept`.
static Value unflatten(OpBuilder &b, Location loc, Value x, RankedTensorType type, unsigned kept) {
  const unsigned batch = type.getRank() - kept;
  if (x.getType() == type)
    return x;
  SmallVector<ReassociationIndices> groups(1);
  if (batch == 0) {
    groups[0] = {0, 1};
    for (unsigned dim = 1; dim < kept; ++dim)
      groups.push_back({dim + 1});
    return tensor::CollapseShapeOp::create(b, loc, type, x, groups);
  }
  for (unsigned dim = 0; dim < batch; ++dim)
    groups[0].push_back(dim);
  for (unsigned dim = 0; dim < kept; ++dim)
    groups.push_back({batch + dim});
  return tensor::ExpandShapeOp::create(b, loc, type, x, groups);
}

//===----------------------------------------------------------------------===//
// Algorithms, on tensors [batch, rows, columns]
//===----------------------------------------------------------------------===//

namespace {
/// Builds algorithms on matrices of one type of floats.
class Algorithms : public MatrixBuilder {
public:
  Algorithms(OpBuilder &builder, Operation *op)
      : MatrixBuilder(builder, op->getLoc()),
        element(cast<RankedTensorType>(op->getOperand(0).getType()).getElementType()) {}

  Value factorCholesky(Value a);
  Value solveTriangular(Value a, Value x, bool isUpper, bool isTransposed, bool hasUnitDiagonal);
  std::array<Value, 3> factorLu(Value a);
  std::array<Value, 2> reflect(Value a);
  Value multiplyReflections(Value packed, Value factors, int64_t columns);
  /// Returns the values, and the vectors if they are needed.
  std::array<Value, 2> findEigenvalues(Value a, bool isUpper, bool needsVectors);
  /// Returns U with `all` columns, the values and V of matrices that have no more columns than
  /// rows; the values alone if vectors are not needed.
  std::array<Value, 3> findSingularValues(Value a, int64_t all, bool needsVectors);
  /// Returns, for each column, 1 or -1: the sign of the first of its largest magnitudes.
  Value findSigns(Value x);
  /// Multiplies the first columns by numbers.
  Value scaleColumns(Value x, Value numbers);

private:
  Number number(Place &place, double value) {
    return Number(place.b, arith::ConstantOp::create(place.b, FloatAttr::get(element, value)));
  }
  /// Returns the cosine and the signed sine of each row's rotation with its partner's. `read` gives
  /// what belongs to the diagonal at a row, and off it at a pair.
  std::array<Value, 2> rotate(int64_t batch, int64_t size, Index round,
                              function_ref<Number(Place &, Index batch, Index row)> readDiagonal,
                              function_ref<Number(Place &, Index, Index, Index)> readPair);
  Value rotateColumns(Value x, std::array<Value, 2> rotation, Index round);
  int64_t countTrips(int64_t size);
  Index getPartner(Index row, Index round, int64_t size);
  Value order(Value values, bool descends);
  Value takeColumns(Value x, Value numbers);

  Type element;
};
} // namespace

/// Divides; 0 if the divisor is 0.
static Number divideOrNone(Number x, Number divisor) {
  Number zero = x.constant(0);
  return zero.where(CmpFPredicate::OEQ, divisor, zero, x / divisor);
}

Value Algorithms::factorCholesky(Value a) {
  ArrayRef<int64_t> shape = getShape(a);
  return repeat(shape[1], a, [&](Index k, ValueRange carried) -> SmallVector<Value> {
    Value x = carried[0];
    return {map(shape, element, Operand{x, all(3)}, [&](Place &place) {
      Index batch = place.at(0), row = place.at(1), column = place.at(2);
      Number pivot = place.read(x, {batch, k, k}), zero = pivot.constant(0);
      Number nan = pivot.constant(std::numeric_limits<double>::quiet_NaN());
      Number root = pivot.where(CmpFPredicate::OGT, pivot, zero, nan).apply<math::SqrtOp>();
      Number atRow = place.read(x, {batch, row, k}), atColumn = place.read(x, {batch, column, k});
      Number rest = place.in(0) - atRow / pivot * atColumn;
      Number own = (row == k).choose(root, place.in(0) / root);
      Number made = (column > k).choose(rest, (column == k).choose(own, place.in(0)));
      return (row < column).choose(zero, made);
    })};
  })[0];
}

Value Algorithms::solveTriangular(Value a, Value x, bool isUpper, bool isTransposed,
                                  bool hasUnitDiagonal) {
  ArrayRef<int64_t> shape = getShape(x);
  const bool goesDown = isUpper == isTransposed;
  return repeat(shape[1], x, [&](Index trip, ValueRange carried) -> SmallVector<Value> {
    Value known = carried[0];
    return {map(shape, element, Operand{known, all(3)}, [&](Place &place) {
      Index batch = place.at(0), row = place.at(1), column = place.at(2);
      Index k = goesDown ? trip : place.constant(shape[1] - 1) - trip;
      Number factor =
          isTransposed ? place.read(a, {batch, k, row}) : place.read(a, {batch, row, k});
      Number found = place.in(0);
      if (!hasUnitDiagonal) {
        Number pivot = place.read(a, {batch, k, k});
        factor = factor / pivot;
        found = found / pivot;
      }
      Number rest = place.in(0) - factor * place.read(known, {batch, k, column});
      Number made = (goesDown ? row > k : row < k).choose(rest, place.in(0));
      return (row == k).choose(found, made);
    })};
  })[0];
}

std::array<Value, 3> Algorithms::factorLu(Value a) {
  ArrayRef<int64_t> shape = getShape(a);
  const int64_t batches = shape[0], rows = shape[1], k = std::min(rows, shape[2]);
  Type i32 = b.getI32Type();
  auto count = [&](int64_t size) {
    return map({batches, size}, TypeRange(i32), {},
               [](Place &place) -> SmallVector<Value> { return {place.at(1).toInteger()}; })[0];
  };
  SmallVector<Value> inits = {a, count(k), count(rows)};
  SmallVector<Value> made = repeat(k, inits, [&](Index step, ValueRange carried) {
    Value x = carried[0];
    // The first row of the largest magnitude, from row `step` on. NaN is larger than any other. The
    // operand gives the loops their sizes.
    Value found =
        reduce({batches, rows}, 1u, {FloatAttr::get(element, -1), b.getIntegerAttr(i32, 0)},
               Operand{carried[2], all(2)}, [&](Place &place) -> SmallVector<Value> {
                 Index batch = place.at(0), row = place.at(1);
                 Number size = place.read(x, {batch, row, step}).apply<math::AbsFOp>();
                 Number largest = place.in(1);
                 Condition isLarger = (row >= step) &
                                      compare(place.b, CmpFPredicate::UGT, size, largest) &
                                      compare(place.b, CmpFPredicate::ORD, largest, largest);
                 return {isLarger.choose(size.get(), largest.get()),
                         isLarger.choose(row.toInteger(), place.getValue(2))};
               })[1];
    auto exchange = [&](Place &place, Index row, Index pivot) {
      return pivot.where(row == step, step.where(row == pivot, row));
    };
    auto getPivot = [&](Place &place) { return place.readIndex(found, place.at(0), rows); };
    Value next = map(shape, element, {}, [&](Place &place) {
      Index batch = place.at(0), row = place.at(1), column = place.at(2);
      Index pivot = getPivot(place), from = exchange(place, row, pivot);
      Number old = place.read(x, {batch, from, column});
      Number divisor = place.read(x, {batch, pivot, step});
      Number factor = divideOrNone(place.read(x, {batch, from, step}), divisor);
      Number rest = old - factor * place.read(x, {batch, pivot, column});
      Number below = (column > step).choose(rest, (column == step).choose(factor, old));
      return (row > step).choose(below, old);
    });
    Value pivots =
        map({batches, k}, TypeRange(i32), Operand{carried[1], all(2)},
            [&](Place &place) -> SmallVector<Value> {
              return {(place.at(1) == step).choose(getPivot(place).toInteger(), place.getValue(0))};
            })[0];
    Value permutation =
        map({batches, rows}, TypeRange(i32), {}, [&](Place &place) -> SmallVector<Value> {
          Index from = exchange(place, place.at(1), getPivot(place));
          return {place.read(carried[2], {place.at(0), from}).get()};
        })[0];
    return SmallVector<Value>{next, pivots, permutation};
  });
  return {made[0], made[1], made[2]};
}

std::array<Value, 2> Algorithms::reflect(Value a) {
  ArrayRef<int64_t> shape = getShape(a);
  const int64_t batches = shape[0], rows = shape[1], k = std::min(rows, shape[2]);
  Value none = map({batches, k}, element, {}, [&](Place &place) { return number(place, 0); });
  SmallVector<Value> inits = {a, none};
  SmallVector<Value> made = repeat(k, inits, [&](Index step, ValueRange carried) {
    Value x = carried[0];
    // Products of column `step`, below its diagonal, with each column.
    Value products =
        sum({batches, shape[2], rows}, 2u, element, Operand{x, {0, 2, 1}}, [&](Place &place) {
          Number own = place.read(x, {place.at(0), place.at(2), step});
          return (place.at(2) > step).choose(own * place.in(0), own.constant(0));
        });
    // The length of the column with its sign turned, and the reflection's factor.
    SmallVector<Type> two = {element, element};
    auto reflection = map({batches}, two, {}, [&](Place &place) -> SmallVector<Value> {
      Index batch = place.at(0);
      Number head = place.read(x, {batch, step, step}), tail = place.read(products, {batch, step});
      Number zero = head.constant(0), length = (head * head + tail).apply<math::SqrtOp>();
      Number turned = (-length).where(CmpFPredicate::OGE, head, zero, length);
      Condition isDone = compare(place.b, CmpFPredicate::OEQ, tail, zero);
      return {isDone.choose(head, turned).get(),
              isDone.choose(zero, (turned - head) / turned).get()};
    });
    Value turned = reflection[0], factor = reflection[1];
    Value next = map(shape, element, Operand{x, all(3)}, [&](Place &place) {
      Index batch = place.at(0), row = place.at(1), column = place.at(2);
      Number head = place.read(x, {batch, step, step}), end = place.read(turned, batch);
      Number times = place.read(factor, batch), zero = head.constant(0), one = head.constant(1);
      Number scale = zero.where(CmpFPredicate::OEQ, times, zero, one / (head - end));
      Number along = (row == step).choose(one, place.read(x, {batch, row, step}) * scale);
      Number product =
          place.read(x, {batch, step, column}) + place.read(products, {batch, column}) * scale;
      Number rest = place.in(0) - times * along * product;
      Number own = (row == step).choose(end, along);
      Number made = (column > step).choose(rest, (column == step).choose(own, place.in(0)));
      return (row >= step).choose(made, place.in(0));
    });
    Value factors = map({batches, k}, element, Operand{carried[1], all(2)}, [&](Place &place) {
      return (place.at(1) == step).choose(place.read(factor, place.at(0)), place.in(0));
    });
    return SmallVector<Value>{next, factors};
  });
  return {made[0], made[1]};
}

Value Algorithms::multiplyReflections(Value packed, Value factors, int64_t columns) {
  const int64_t batches = getShape(packed)[0], rows = getShape(packed)[1];
  const int64_t count = getShape(factors)[1];
  SmallVector<int64_t> shape = {batches, rows, columns};
  Value unit = identity(RankedTensorType::get(shape, element));
  if (count == 0)
    return unit;
  return repeat(count, unit, [&](Index trip, ValueRange carried) -> SmallVector<Value> {
    Value x = carried[0];
    auto read = [&](Place &place, Index row, Index step) {
      Number own = place.read(packed, {place.at(0), row, step});
      return (row > step).choose(own, (row == step).choose(own.constant(1), own.constant(0)));
    };
    auto getStep = [&](Place &place) { return place.constant(count - 1) - trip; };
    Value products =
        sum({batches, columns, rows}, 2u, element, Operand{x, {0, 2, 1}},
            [&](Place &place) { return read(place, place.at(2), getStep(place)) * place.in(0); });
    return {map(shape, element, {Operand{x, all(3)}, Operand{products, {0, 2}}}, [&](Place &place) {
      Index step = getStep(place);
      Number times = place.read(factors, {place.at(0), step});
      return place.in(0) - times * read(place, place.at(1), step) * place.in(1);
    })};
  })[0];
}

//===----------------------------------------------------------------------===//
// Jacobi's rotations
//===----------------------------------------------------------------------===//

/// Returns the number of rounds in which each two of `size` rows meet once.
static int64_t countRounds(int64_t size) { return size + size % 2 - 1; }

/// Returns the number of rounds of all sweeps. Measured: up to 150 rows of eigenvalues that are
/// random, graded over 14 decades, or equal in groups take 8 sweeps of f32 and 14 of f64.
int64_t Algorithms::countTrips(int64_t size) {
  int64_t sweeps = (element.isF64() ? 8 : 6) + int64_t(llvm::Log2_64_Ceil(size));
  return sweeps * countRounds(size);
}

/// Returns the row that meets `row` in a round: the two add up to the round modulo their number,
/// and the one that would meet itself meets the last row. With an odd number that row is alone.
Index Algorithms::getPartner(Index row, Index round, int64_t size) {
  Index rounds = row.constant(countRounds(size)), last = rounds;
  Index partner = round - row;
  partner = (partner + rounds).where(partner < row.constant(0), partner);
  bool isOdd = size % 2 == 1;
  if (isOdd)
    return partner;
  partner = last.where(partner == row, partner);
  Index two = row.constant(2);
  Index isHalf = round.apply<arith::RemUIOp>(two);
  Index sum = round.where(isHalf == row.constant(0), round + rounds);
  return sum.apply<arith::DivUIOp>(two).where(row == last, partner);
}

std::array<Value, 2>
Algorithms::rotate(int64_t batch, int64_t size, Index round,
                   function_ref<Number(Place &, Index, Index)> readDiagonal,
                   function_ref<Number(Place &, Index, Index, Index)> readPair) {
  SmallVector<Type> two = {element, element};
  auto made = map({batch, size}, two, {}, [&](Place &place) -> SmallVector<Value> {
    Index matrix = place.at(0), row = place.at(1), partner = getPartner(row, round, size);
    Index low = row.where(row < partner, partner), high = partner.where(row < partner, row);
    Number first = readDiagonal(place, matrix, low), second = readDiagonal(place, matrix, high);
    Number off = readPair(place, matrix, low, high);
    Number zero = off.constant(0), one = off.constant(1);
    Number ratio = (second - first) / (2 * off), size = ratio.apply<math::AbsFOp>();
    Number tangent = one / (size + (ratio * ratio + 1).apply<math::SqrtOp>());
    tangent = tangent.where(CmpFPredicate::OGE, ratio, zero, -tangent);
    // An infinite ratio has no root that is finite, and the rotation is none.
    Number cosine = one / (tangent * tangent + 1).apply<math::SqrtOp>(), sine = tangent * cosine;
    Condition isNone = compare(place.b, CmpFPredicate::OEQ, off, zero) | (row == partner);
    cosine = isNone.choose(one, cosine);
    sine = isNone.choose(zero, sine);
    // The larger one comes first: then equal and graded values take fewer sweeps.
    Condition isTurned = compare(place.b, CmpFPredicate::OGT, second.apply<math::AbsFOp>(),
                                 first.apply<math::AbsFOp>()) &
                         (row != partner);
    Number turnedCosine = isTurned.choose(sine, cosine),
           turnedSine = isTurned.choose(-cosine, sine);
    Number sign = (row < partner).choose(-turnedSine, turnedSine);
    return {turnedCosine.get(), sign.get()};
  });
  return {made[0], made[1]};
}

Value Algorithms::rotateColumns(Value x, std::array<Value, 2> rotation, Index round) {
  ArrayRef<int64_t> shape = getShape(x);
  return map(shape, element,
             {Operand{x, all(3)}, Operand{rotation[0], {0, 2}}, Operand{rotation[1], {0, 2}}},
             [&](Place &place) {
               Index partner = getPartner(place.at(2), round, shape[2]);
               Number other = place.read(x, {place.at(0), place.at(1), partner});
               return place.in(1) * place.in(0) + place.in(2) * other;
             });
}

Value Algorithms::order(Value values, bool descends) {
  auto type = RankedTensorType::get(getShape(values), b.getI32Type());
  auto sort = weir::norm::ArgsortOp::create(b, type, values);
  sort.setDescending(descends);
  return sort;
}

Value Algorithms::takeColumns(Value x, Value numbers) {
  SmallVector<int64_t> shape(getShape(x));
  int64_t size = shape.back();
  shape.back() = getShape(numbers).back();
  return map(shape, element, {}, [&](Place &place) {
    SmallVector<Index> indices;
    for (unsigned loop = 0; loop + 1 < shape.size(); ++loop)
      indices.push_back(place.at(loop));
    indices.push_back(place.readIndex(numbers, {place.at(0), place.at(shape.size() - 1)}, size));
    return place.read(x, indices);
  });
}

Value Algorithms::findSigns(Value x) {
  ArrayRef<int64_t> shape = getShape(x);
  TypedAttr zero = FloatAttr::get(element, 0);
  Value found = reduce({shape[0], shape[2], shape[1]}, 2u, {zero}, Operand{x, {0, 2, 1}},
                       [&](Place &place) -> SmallVector<Value> {
                         Number own = place.in(0), largest = place.in(1);
                         return {own.where(CmpFPredicate::OGT, own.apply<math::AbsFOp>(),
                                           largest.apply<math::AbsFOp>(), largest)
                                     .get()};
                       })[0];
  return map({shape[0], shape[2]}, element, Operand{found, all(2)}, [](Place &place) {
    Number one = place.in(0).constant(1);
    return (-one).where(CmpFPredicate::OLT, place.in(0), one.constant(0), one);
  });
}

Value Algorithms::scaleColumns(Value x, Value numbers) {
  ArrayRef<int64_t> shape = getShape(x);
  const int64_t count = getShape(numbers)[1];
  if (count == shape[2])
    return map(shape, element, {Operand{x, {0, 1, 2}}, Operand{numbers, {0, 2}}},
               [](Place &place) { return place.in(0) * place.in(1); });
  return map(shape, element, Operand{x, {0, 1, 2}}, [&](Place &place) {
    Index end = place.constant(count - 1);
    Index read = place.at(2).apply<arith::MinSIOp>(end);
    Number scaled = place.in(0) * place.read(numbers, {place.at(0), read});
    return (place.at(2) > end).choose(place.in(0), scaled);
  });
}

std::array<Value, 2> Algorithms::findEigenvalues(Value a, bool isUpper, bool needsVectors) {
  ArrayRef<int64_t> shape = getShape(a);
  const int64_t size = shape[1];
  Value symmetric =
      map(shape, element, {Operand{a, {0, 1, 2}}, Operand{a, {0, 2, 1}}}, [&](Place &place) {
        Index row = place.at(isUpper ? 2 : 1), column = place.at(isUpper ? 1 : 2);
        return (row >= column).choose(place.in(0), place.in(1));
      });
  SmallVector<Value> carried = {symmetric};
  if (needsVectors)
    carried.push_back(identity(RankedTensorType::get(shape, element)));
  if (size > 1)
    carried = repeat(countTrips(size), carried, [&](Index trip, ValueRange values) {
      Value x = values[0];
      Index round = trip.apply<arith::RemUIOp>(trip.constant(countRounds(size)));
      std::array<Value, 2> rotation = rotate(
          shape[0], size, round,
          [&](Place &place, Index batch, Index row) { return place.read(x, {batch, row, row}); },
          [&](Place &place, Index batch, Index low, Index high) {
            return place.read(x, {batch, low, high});
          });
      SmallVector<Value> next;
      next.push_back(
          map(shape, element,
              {Operand{x, all(3)}, Operand{rotation[0], {0, 1}}, Operand{rotation[1], {0, 1}},
               Operand{rotation[0], {0, 2}}, Operand{rotation[1], {0, 2}}},
              [&](Place &place) {
                Index batch = place.at(0), row = place.at(1), column = place.at(2);
                Index otherRow = getPartner(row, round, size);
                Index otherColumn = getPartner(column, round, size);
                Number here = place.in(3) * place.in(0) +
                              place.in(4) * place.read(x, {batch, row, otherColumn});
                Number there = place.in(3) * place.read(x, {batch, otherRow, column}) +
                               place.in(4) * place.read(x, {batch, otherRow, otherColumn});
                Number made = place.in(1) * here + place.in(2) * there;
                return ((otherRow == column) & (row != column)).choose(made.constant(0), made);
              }));
      if (values.size() > 1)
        next.push_back(rotateColumns(values[1], rotation, round));
      return next;
    });
  Value values = map({shape[0], size}, element, {}, [&](Place &place) {
    return place.read(carried[0], {place.at(0), place.at(1), place.at(1)});
  });
  Value numbers = order(values, false);
  values = takeColumns(values, numbers);
  if (!needsVectors)
    return {values, Value()};
  Value vectors = takeColumns(carried[1], numbers);
  return {values, scaleColumns(vectors, findSigns(vectors))};
}

// A tall A is Q R first. The rotations J make the columns of R^T J orthogonal: V times the values.
// So A = (Q J) diag(s) V^T. Columns of R^T J that are 0 have no direction: those of V are what
// reflections of the others complete.
std::array<Value, 3> Algorithms::findSingularValues(Value a, int64_t all, bool needsVectors) {
  const int64_t batches = getShape(a)[0], rows = getShape(a)[1], columns = getShape(a)[2];
  const SmallVector<int64_t> square = {batches, columns, columns};
  auto squareRows = [&](Value x) {
    return sum(square, 2u, element, Operand{x, {0, 2, 1}},
               [](Place &place) { return place.in(0) * place.in(0); });
  };
  TypedAttr nothing = FloatAttr::get(element, 0);
  Value largest = reduce({batches, rows, columns}, {1u, 2u}, {nothing}, Operand{a, {0, 1, 2}},
                         [&](Place &place) -> SmallVector<Value> {
                           Number size = place.in(0).apply<math::AbsFOp>();
                           return {size.apply<arith::MaximumFOp>(place.in(1)).get()};
                         })[0];
  // Squares of what is at most 1 do not overflow.
  Value scaled =
      map({batches, rows, columns}, element, {Operand{a, {0, 1, 2}}, Operand{largest, {0}}},
          [](Place &place) { return divideOrNone(place.in(0), place.in(1)); });
  auto [packed, factors] = reflect(scaled);
  Value upper = packed;
  Value lower = map(square, element, {}, [&](Place &place) {
    Number own = place.read(upper, {place.at(0), place.at(2), place.at(1)});
    return (place.at(1) >= place.at(2)).choose(own, own.constant(0));
  });
  SmallVector<Value> carried = {lower};
  if (needsVectors)
    carried.push_back(identity(RankedTensorType::get(square, element)));
  if (columns > 1)
    carried = repeat(countTrips(columns), carried, [&](Index trip, ValueRange values) {
      Value x = values[0];
      Index round = trip.apply<arith::RemUIOp>(trip.constant(countRounds(columns)));
      Value squares = squareRows(x);
      Value products = sum(square, 2u, element, Operand{x, {0, 2, 1}}, [&](Place &place) {
        Index partner = getPartner(place.at(1), round, columns);
        return place.in(0) * place.read(x, {place.at(0), place.at(2), partner});
      });
      std::array<Value, 2> rotation = rotate(
          batches, columns, round,
          [&](Place &place, Index batch, Index row) { return place.read(squares, {batch, row}); },
          [&](Place &place, Index batch, Index low, Index) {
            return place.read(products, {batch, low});
          });
      SmallVector<Value> next;
      for (Value value : values)
        next.push_back(rotateColumns(value, rotation, round));
      return next;
    });
  Value lengths = map({batches, columns}, element, Operand{squareRows(carried[0]), {0, 1}},
                      [](Place &place) { return place.in(0).apply<math::SqrtOp>(); });
  Value places = order(lengths, true);
  lengths = takeColumns(lengths, places);
  Value values = map({batches, columns}, element, {Operand{lengths, {0, 1}}, Operand{largest, {0}}},
                     [](Place &place) { return place.in(0) * place.in(1); });
  if (!needsVectors)
    return {Value(), values, Value()};
  Value directions =
      map(square, element,
          {Operand{takeColumns(carried[0], places), {0, 1, 2}}, Operand{lengths, {0, 2}}},
          [](Place &place) { return divideOrNone(place.in(0), place.in(1)); });
  auto [steps, times] = reflect(directions);
  Value turned = steps;
  // The reflections turn each column to plus or minus a unit vector.
  Value v =
      map(square, element, Operand{multiplyReflections(steps, times, columns), {0, 1, 2}},
          [&](Place &place) {
            Number end = place.read(turned, {place.at(0), place.at(2), place.at(2)});
            return (-place.in(0)).where(CmpFPredicate::OLT, end, end.constant(0), place.in(0));
          });
  Value reflections = multiplyReflections(packed, factors, all);
  Value u = multiply(cut(reflections, 0, rows, 0, columns), takeColumns(carried[1], places));
  if (all > columns) {
    SmallVector<Value> parts = {u, cut(reflections, 0, rows, columns, all - columns)};
    u = tensor::ConcatOp::create(b, int64_t(2), parts);
  }
  return {u, values, v};
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

SmallVector<Value> weir::matrix::expand(OpBuilder &builder, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Location loc = op->getLoc();
  if (auto solve = dyn_cast<SolveOp>(op)) {
    Value a = solve.getA(), x = solve.getB();
    RankedTensorType type = getType(a);
    SmallVector<int64_t> shape(type.getShape().drop_back());
    auto numbers = RankedTensorType::get(shape, builder.getI32Type());
    auto lu = LuOp::create(builder, loc, TypeRange{type, numbers, numbers}, a);
    MatrixBuilder make(builder, loc);
    const unsigned rank = type.getRank();
    // Row i of the result is row `permutation[i]`, or, turned, the one whose number there is i.
    auto take = [&](Value rows, Value places) {
      return make.map(getShape(rows), type.getElementType(), {}, [&](Place &place) {
        SmallVector<Index> indices;
        for (unsigned loop = 0; loop + 1 < rank; ++loop)
          indices.push_back(place.at(loop));
        indices.back() = place.readIndex(places, indices, getRows(rows));
        indices.push_back(place.at(rank - 1));
        return place.read(rows, indices);
      });
    };
    auto solveTriangle = [&](Value right, bool isUpper) {
      return TriangularSolveOp::create(builder, loc, right.getType(), lu.getLu(), right, isUpper,
                                       solve.getTransposed(), /*unit_diagonal=*/!isUpper)
          .getResult();
    };
    if (isEmpty(a) || isEmpty(x))
      return {x};
    if (!solve.getTransposed())
      return {solveTriangle(solveTriangle(take(x, lu.getPermutation()), false), true)};
    SmallVector<int64_t> loops(shape);
    loops.push_back(shape.back());
    SmallVector<unsigned, 4> from = MatrixBuilder::all(rank);
    from.erase(from.end() - 2);
    TypedAttr zero = builder.getI32IntegerAttr(0);
    Value inverse = make.reduce(
        loops, rank - 1, zero, Operand{lu.getPermutation(), from},
        [&](Place &place) -> SmallVector<Value> {
          Value row = place.at(rank - 2).toInteger();
          Condition isIt(place.b, arith::CmpIOp::create(place.b, arith::CmpIPredicate::eq,
                                                        place.getValue(0), row));
          return {isIt.choose(place.at(rank - 1).toInteger(), place.getValue(1))};
        })[0];
    return {take(solveTriangle(solveTriangle(x, true), false), inverse)};
  }
  if (auto qr = dyn_cast<QrOp>(op)) {
    RankedTensorType type = getType(qr.getA());
    SmallVector<int64_t> shape(type.getShape().drop_back());
    shape.back() = std::min(getRows(qr.getA()), getColumns(qr.getA()));
    auto factors = RankedTensorType::get(shape, type.getElementType());
    auto made = HouseholderOp::create(builder, loc, TypeRange{type, factors}, qr.getA());
    Value q = HouseholderProductOp::create(builder, loc, qr.getQ().getType(), made.getPacked(),
                                           made.getFactors());
    MatrixBuilder make(builder, loc);
    Value rows = make.cut(made.getPacked(), 0, getRows(qr.getR()), 0, getColumns(qr.getR()));
    Value r = make.each(rows, [](Place &place, Index row, Index column) {
      return (column >= row).choose(place.in(0), place.in(0).constant(0));
    });
    return {q, r};
  }
  return {};
}

/// Returns the results for a matrix without elements: their elements, if they have some, are those
/// of identities and of permutations that change nothing.
static SmallVector<Value> makeOfNothing(OpBuilder &builder, Operation *op) {
  MatrixBuilder make(builder, op->getLoc());
  return llvm::map_to_vector(op->getResults(), [&](Value result) -> Value {
    RankedTensorType type = getType(result);
    const int64_t rank = type.getRank();
    if (isEmpty(result))
      return tensor::EmptyOp::create(builder, op->getLoc(), type.getShape(), type.getElementType());
    if (type.getElementType().isInteger())
      return make.map(
          type.getShape(), TypeRange(type.getElementType()), {},
          [&](Place &place) -> SmallVector<Value> { return {place.at(rank - 1).toInteger()}; })[0];
    return make.identity(type);
  });
}

SmallVector<Value> weir::matrix::decompose(OpBuilder &builder, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Location loc = op->getLoc();
  if (isEmpty(op->getOperand(0)) || llvm::all_of(op->getResults(), isEmpty))
    return makeOfNothing(builder, op);
  Algorithms algorithms(builder, op);
  auto matrices = [&](Value value) { return flatten(builder, loc, value, 2); };
  auto vectors = [&](Value value) { return flatten(builder, loc, value, 1); };
  auto made =
      llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
          .Case([&](CholeskyOp cholesky) -> SmallVector<Value> {
            return {algorithms.factorCholesky(matrices(cholesky.getA()))};
          })
          .Case([&](TriangularSolveOp solve) -> SmallVector<Value> {
            return {algorithms.solveTriangular(matrices(solve.getA()), matrices(solve.getB()),
                                               solve.getUpper(), solve.getTransposed(),
                                               solve.getUnitDiagonal())};
          })
          .Case([&](LuOp lu) { return llvm::to_vector(algorithms.factorLu(matrices(lu.getA()))); })
          .Case([&](HouseholderOp householder) {
            return llvm::to_vector(algorithms.reflect(matrices(householder.getA())));
          })
          .Case([&](HouseholderProductOp product) -> SmallVector<Value> {
            return {algorithms.multiplyReflections(matrices(product.getPacked()),
                                                   vectors(product.getFactors()),
                                                   getColumns(product.getResult()))};
          })
          .Case([&](EighOp eigh) {
            return llvm::to_vector(algorithms.findEigenvalues(
                matrices(eigh.getA()), eigh.getUpper(), !eigh.getVectors().use_empty()));
          })
          .Case([&](SvdOp svd) -> SmallVector<Value> {
            Value a = matrices(svd.getA());
            const bool isWide = getRows(a) < getColumns(a);
            const bool needsVectors = !svd.getU().use_empty() || !svd.getVt().use_empty();
            auto [u, s, v] = algorithms.findSingularValues(
                isWide ? algorithms.transpose(a) : a,
                isWide ? getRows(svd.getVt()) : getColumns(svd.getU()), needsVectors);
            if (!needsVectors)
              return {Value(), s, Value()};
            if (isWide)
              std::swap(u, v);
            Value signs = algorithms.findSigns(algorithms.cut(v, 0, getRows(v), 0, getShape(s)[1]));
            return {algorithms.scaleColumns(u, signs), s,
                    algorithms.transpose(algorithms.scaleColumns(v, signs))};
          })
          .DefaultUnreachable("an op of matrix that is made of others");
  for (auto [value, result] : llvm::zip_equal(made, op->getResults()))
    if (value) {
      RankedTensorType type = getType(result);
      value = unflatten(builder, loc, value, type, getType(value).getRank() - 1);
    }
  return made;
}
