//===- Vjp.cpp - Gradient rules of the matrix dialect ---------------------===//
//
// Each is a formula in products, masks and ops of the dialect. In comments dA is what flows back to
// A, and what flows back to a result is named likewise.
//
// Sources: M. Giles, "An extended collection of matrix derivative results for forward and reverse
// mode algorithmic differentiation", 2008; I. Murray, "Differentiation of the Cholesky
// decomposition", 2016; for rectangular Q R and L U the parts of A are differentiated one by one.
//
//===----------------------------------------------------------------------===//

#include "dialects/Matrix/Matrix.h"
#include "dialects/Matrix/MatrixBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weir::matrix;
using arith::CmpFPredicate;
using weir::autodiff::Cotangents;
using weir::autodiff::createZeros;

namespace {
/// The elements that a mask keeps, by `row - column`: above 0, at least 0 or at most 0.
enum class Part { Below, FromDiagonalDown, FromDiagonalUp };

/// Builds formulas.
class Formulas : public MatrixBuilder {
public:
  using MatrixBuilder::MatrixBuilder;

  Value add(Value x, Value y) {
    return each({x, y}, [](Place &place, Index, Index) { return place.in(0) + place.in(1); });
  }
  Value subtract(Value x, Value y) {
    return each({x, y}, [](Place &place, Index, Index) { return place.in(0) - place.in(1); });
  }
  Value negate(Value x) {
    return each(x, [](Place &place, Index, Index) { return -place.in(0); });
  }
  Value keep(Value x, Part part) {
    return each(x, [&](Place &place, Index row, Index column) {
      Condition kept = part == Part::Below              ? row > column
                       : part == Part::FromDiagonalDown ? row >= column
                                                        : column >= row;
      return kept.choose(place.in(0), place.in(0).constant(0));
    });
  }
  Value solve(Value a, Value x, bool isUpper, bool isTransposed, bool hasUnitDiagonal = false) {
    return TriangularSolveOp::create(b, x.getType(), a, x, isUpper, isTransposed, hasUnitDiagonal);
  }
  /// Returns X A^-1, or X A^-T.
  Value solveRight(Value a, Value x, bool isUpper, bool isTransposed,
                   bool hasUnitDiagonal = false) {
    return transpose(solve(a, transpose(x), isUpper, !isTransposed, hasUnitDiagonal));
  }
  /// Adds matrices below or behind each other.
  Value join(Value x, Value y, unsigned dim) {
    return tensor::ConcatOp::create(b, dim, ValueRange{x, y});
  }
  Value zeros(Value like) { return createZeros(b, b.getLoc(), like.getType()); }

  /// Multiplies each column by a number of `values`, or divides it.
  Value scaleColumns(Value x, Value values, llvm::function_ref<Number(Number, Number)> scale) {
    auto type = cast<RankedTensorType>(x.getType());
    const unsigned rank = type.getRank();
    Operand numbers{values, all(rank - 2)};
    numbers.loops.push_back(rank - 1);
    return map(type.getShape(), type.getElementType(), {Operand{x, all(rank)}, numbers},
               [&](Place &place) { return scale(place.in(0), place.in(1)); });
  }

  /// Computes squares from elements of `inputs` and of their transposes, behind them, and the
  /// values of row and column.
  Value pairs(ArrayRef<Value> inputs, Value values,
              llvm::function_ref<Number(Place &, Number row, Number column, Number largest)> body);
  /// Returns 1 / `difference`, or 0 if it counts as none beside the largest magnitude of `size`
  /// values.
  static Number invert(Number difference, Number largest, int64_t size) {
    double epsilon = difference.get().getType().isF64() ? 0x1p-52 : 0x1p-23;
    Number zero = difference.constant(0);
    Number inverse = difference.constant(1) / difference;
    return zero.where(CmpFPredicate::OLE, difference.apply<math::AbsFOp>(),
                      double(size) * epsilon * largest, inverse);
  }
};
} // namespace

Value Formulas::pairs(ArrayRef<Value> inputs, Value values,
                      llvm::function_ref<Number(Place &, Number, Number, Number)> body) {
  SmallVector<int64_t> shape(getShape(values));
  const int64_t size = shape.back();
  shape.push_back(size);
  const unsigned rank = shape.size();
  SmallVector<Operand> operands;
  for (bool isTransposed : {false, true})
    for (Value input : inputs) {
      operands.push_back({input, all(rank)});
      if (isTransposed)
        std::swap(operands.back().loops[rank - 1], operands.back().loops[rank - 2]);
    }
  Operand row{values, all(rank - 1)}, column = row;
  column.loops.back() = rank - 1;
  operands.append({row, column});
  Type element = cast<RankedTensorType>(values.getType()).getElementType();
  return map(shape, element, operands, [&](Place &place) {
    SmallVector<Index> first, last;
    for (unsigned loop = 0; loop + 2 < rank; ++loop)
      first.push_back(place.at(loop));
    last = first;
    first.push_back(place.constant(0));
    last.push_back(place.constant(size - 1));
    Number largest = place.read(values, first).apply<math::AbsFOp>();
    largest = largest.apply<arith::MaximumFOp>(place.read(values, last).apply<math::AbsFOp>());
    const unsigned count = 2 * inputs.size();
    return body(place, place.in(count), place.in(count + 1), largest);
  });
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

// dA is symmetric: (X + X^T) / 2 with X = L^-T P L^-1, P the lower triangle of L^T dL with half of
// its diagonal.
LogicalResult CholeskyOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                   Cotangents &sums) {
  if (isEmpty(getA()))
    return success();
  Formulas f(builder, getLoc());
  Value l = getResult();
  Value half =
      f.each(f.multiply(l, cotangents[0], true), [](Place &place, Index row, Index column) {
        Number own = place.in(0);
        return (row > column).choose(own, (row == column).choose(0.5 * own, own.constant(0)));
      });
  Value x = f.solveRight(l, f.solve(l, half, false, true), false, false);
  Value sum = f.add(x, f.transpose(x));
  sums.add(builder, getLoc(), getA(),
           f.each(sum, [](Place &place, Index, Index) { return 0.5 * place.in(0); }));
  return success();
}

/// Adds what flows back through A X = B, or A^T X = B: dB = A^-T dX and dA = -dB X^T, of which
/// `keep` keeps what is read of A.
template <typename Solve, typename Keep>
static void addOfSolve(Formulas &f, Value a, Value b, Value x, Value dx, bool isTransposed,
                       Cotangents &sums, Solve solve, Keep keep) {
  if (isEmpty(a) || isEmpty(b))
    return;
  Value db = solve(dx);
  sums.add(f.b, f.b.getLoc(), b, db);
  if (sums.isWanted(a))
    sums.add(f.b, f.b.getLoc(), a,
             keep(f.negate(isTransposed ? f.multiply(x, db, false, true)
                                        : f.multiply(db, x, false, true))));
}

LogicalResult TriangularSolveOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                          Cotangents &sums) {
  Formulas f(builder, getLoc());
  addOfSolve(
      f, getA(), getB(), getResult(), cotangents[0], getTransposed(), sums,
      [&](Value dx) {
        return f.solve(getA(), dx, getUpper(), !getTransposed(), getUnitDiagonal());
      },
      [&](Value da) {
        return f.each(da, [&](Place &place, Index row, Index column) {
          Index low = getUpper() ? row : column, high = getUpper() ? column : row;
          Condition isRead = getUnitDiagonal() ? high > low : high >= low;
          return isRead.choose(place.in(0), place.in(0).constant(0));
        });
      });
  return success();
}

LogicalResult SolveOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents, Cotangents &sums) {
  Formulas f(builder, getLoc());
  addOfSolve(
      f, getA(), getB(), getResult(), cotangents[0], getTransposed(), sums,
      [&](Value dx) -> Value {
        return SolveOp::create(builder, getLoc(), dx.getType(), getA(), dx, !getTransposed());
      },
      [](Value da) { return da; });
  return success();
}

// For a square A = P L U: P^T dA = L^-T (low(L^T dL) + up(dU U^T)) U^-T. What lies below the square
// of a tall A gives rows of L, and what lies beside that of a wide one columns of U.
LogicalResult LuOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents, Cotangents &sums) {
  if (isEmpty(getA()) || !cotangents[0])
    return success();
  Formulas f(builder, getLoc());
  const int64_t rows = getRows(getA()), columns = getColumns(getA()), k = std::min(rows, columns);
  Value lu = getLu(), g = cotangents[0];
  Value square = f.cut(lu, 0, k, 0, k), dSquare = f.cut(g, 0, k, 0, k), dRest;
  Value dl = f.keep(dSquare, Part::Below), du = f.keep(dSquare, Part::FromDiagonalUp);
  // A singular matrix has a 0 on the diagonal: with 1 in its place a determinant has the gradient 0
  // there, as in PyTorch.
  Value divisor = f.each(square, [](Place &place, Index row, Index column) {
    Number zero = place.in(0).constant(0);
    Number found = zero.constant(1).where(CmpFPredicate::OEQ, place.in(0), zero, place.in(0));
    return (row == column).choose(found, place.in(0));
  });
  if (rows > columns) {
    Value below = f.cut(lu, k, rows - k, 0, k);
    dRest = f.solveRight(divisor, f.cut(g, k, rows - k, 0, k), true, true);
    du = f.subtract(du, f.multiply(below, dRest, true));
  } else if (columns > rows) {
    Value beside = f.cut(lu, 0, k, k, columns - k);
    dRest = f.solve(square, f.cut(g, 0, k, k, columns - k), false, true, true);
    dl = f.subtract(dl, f.multiply(dRest, beside, false, true));
  }
  Value lower = f.each(square, [](Place &place, Index row, Index column) {
    Number one = place.in(0).constant(1), zero = one.constant(0);
    return (row > column).choose(place.in(0), (row == column).choose(one, zero));
  });
  Value fromL = f.multiply(lower, f.keep(dl, Part::Below), true);
  Value fromU = f.multiply(du, f.keep(square, Part::FromDiagonalUp), false, true);
  Value both = f.each({fromL, fromU}, [](Place &place, Index row, Index column) {
    return (row > column).choose(place.in(0), place.in(1));
  });
  Value da = f.solveRight(divisor, f.solve(square, both, false, true, true), true, true);
  const unsigned rank = getShape(getA()).size();
  if (dRest)
    da = f.join(da, dRest, rows > columns ? rank - 2 : rank - 1);
  // Row `permutation[i]` of A became row i: each is found by its number.
  SmallVector<int64_t> loops(getShape(getA()).drop_back());
  loops.push_back(rows);
  SmallVector<unsigned, 4> from = MatrixBuilder::all(rank);
  from.erase(from.end() - 2);
  TypedAttr zero = builder.getI32IntegerAttr(0);
  Value places = f.reduce(
      loops, rank - 1, zero, Operand{getPermutation(), from},
      [&](Place &place) -> SmallVector<Value> {
        Value isIt = arith::CmpIOp::create(place.b, arith::CmpIPredicate::eq, place.getValue(0),
                                           place.at(rank - 2).toInteger());
        return {Condition(place.b, isIt).choose(place.at(rank - 1).toInteger(), place.getValue(1))};
      })[0];
  sums.add(builder, getLoc(), getA(), f.each(da, [&](Place &place, Index row, Index column) {
    SmallVector<Index> indices;
    for (unsigned loop = 0; loop + 1 < rank; ++loop)
      indices.push_back(place.at(loop));
    indices.back() = place.readIndex(places, indices, rows);
    indices.push_back(column);
    return place.read(da, indices);
  }));
  return success();
}

// For a tall A: dA = (dQ + Q S) R^-T, S the symmetric matrix whose upper triangle is that of
// dR R^T - Q^T dQ. A wide A is Q [R1 R2]: Q and R1 are those of its first columns, R2 is Q^T A2.
LogicalResult QrOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents, Cotangents &sums) {
  if (isEmpty(getA()))
    return success();
  const int64_t rows = getRows(getA()), columns = getColumns(getA()), k = std::min(rows, columns);
  if (getColumns(getQ()) > k)
    return emitOpError() << "has no gradient rule where q has more columns than a; ask for "
                         << "the first " << k << " alone";
  Formulas f(builder, getLoc());
  Value q = getQ(), dq = cotangents[0], dr = cotangents[1], dRest;
  Value r = f.cut(getR(), 0, k, 0, k);
  if (columns > rows && dr) {
    Value beside = f.cut(dr, 0, k, k, columns - k);
    Value more = f.multiply(f.cut(getA(), 0, k, k, columns - k), beside, false, true);
    dq = dq ? f.add(dq, more) : more;
    dRest = f.multiply(q, beside);
  } else if (columns > rows) {
    dRest = f.zeros(f.cut(getA(), 0, k, k, columns - k));
  }
  Value square = dr ? f.multiply(f.cut(dr, 0, k, 0, k), r, false, true) : Value();
  if (dq) {
    Value product = f.multiply(q, dq, true);
    square = square ? f.subtract(square, product) : f.negate(product);
  }
  const unsigned rank = getShape(getA()).size();
  Operand turned{square, MatrixBuilder::all(rank)};
  std::swap(turned.loops[rank - 1], turned.loops[rank - 2]);
  Value symmetric =
      f.map(getShape(square), cast<RankedTensorType>(q.getType()).getElementType(),
            {Operand{square, MatrixBuilder::all(rank)}, turned}, [&](Place &place) {
              return (place.at(rank - 1) >= place.at(rank - 2)).choose(place.in(0), place.in(1));
            });
  Value inner = f.multiply(q, symmetric);
  Value da = f.solveRight(r, dq ? f.add(dq, inner) : inner, true, true);
  sums.add(builder, getLoc(), getA(), dRest ? f.join(da, dRest, rank - 1) : da);
  return success();
}

// dA = V (diag(dw) + (K - K^T) o F / 2) V^T with K = V^T dV and F = 1 / (w_j - w_i), 0 on the
// diagonal. It is symmetric, whatever K is: half of it belongs to the triangle that is not read.
LogicalResult EighOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents, Cotangents &sums) {
  if (isEmpty(getA()))
    return success();
  Formulas f(builder, getLoc());
  Value v = getVectors(), dw = cotangents[0], dv = cotangents[1], inner;
  const int64_t size = getRows(v);
  if (dv)
    inner = f.pairs(f.multiply(v, dv, true), getValues(),
                    [&](Place &place, Number row, Number column, Number largest) {
                      return 0.5 * (place.in(0) - place.in(1)) *
                             Formulas::invert(column - row, largest, size);
                    });
  Value left = dw ? f.scaleColumns(v, dw, [](Number x, Number by) { return x * by; }) : Value();
  if (inner) {
    Value more = f.multiply(v, inner);
    left = left ? f.add(left, more) : more;
  }
  sums.add(builder, getLoc(), getA(), f.multiply(left, v, false, true));
  return success();
}

/// Returns x / (x + y), 0 if both are.
static Number getShare(Number x, Number y) {
  Number sum = x + y, zero = x.constant(0);
  return zero.where(CmpFPredicate::OEQ, sum, zero, x / sum);
}

// dA = U (diag(ds) + (K - K^T) o F diag(s) + diag(s) (L - L^T) o F) V^T with K = U^T dU, L = V^T dV
// and F = 1 / (s_j^2 - s_i^2), and (dU - U K) diag(1/s) V^T of a tall A, or U diag(1/s) (dV - V
// L)^T of a wide one.
LogicalResult SvdOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents, Cotangents &sums) {
  if (isEmpty(getA()))
    return success();
  const int64_t rows = getRows(getA()), columns = getColumns(getA()), k = std::min(rows, columns);
  if (getColumns(getU()) > k || getRows(getVt()) > k) {
    if (cotangents[0] || cotangents[2])
      return emitOpError() << "has no gradient rule where u or vt completes a basis; ask for the "
                           << "first " << k << " vectors alone";
  }
  Formulas f(builder, getLoc());
  auto multiplyBy = [](Number x, Number by) { return x * by; };
  const unsigned rank = getShape(getA()).size();
  Value u = f.cut(getU(), 0, rows, 0, k), vt = f.cut(getVt(), 0, k, 0, columns), s = getS();
  Value du = cotangents[0], ds = cotangents[1], dvt = cotangents[2], inner;
  auto addInner = [&](Value more) { inner = inner ? f.add(inner, more) : more; };
  Value left, right;
  if (du) {
    left = f.multiply(u, du, true);
    addInner(f.pairs(left, s, [&](Place &place, Number row, Number column, Number largest) {
      Number inverse = Formulas::invert(column - row, largest, k);
      return (place.in(0) - place.in(1)) * inverse * getShare(column, row);
    }));
  }
  if (dvt) {
    right = f.multiply(dvt, vt, false, true); // L^T
    addInner(f.pairs(right, s, [&](Place &place, Number row, Number column, Number largest) {
      Number inverse = Formulas::invert(column - row, largest, k);
      return (place.in(1) - place.in(0)) * inverse * getShare(row, column);
    }));
  }
  Value da;
  auto addTo = [&](Value more) { da = da ? f.add(da, more) : more; };
  if (ds)
    addTo(f.multiply(f.scaleColumns(u, ds, multiplyBy), vt));
  if (inner)
    addTo(f.multiply(f.multiply(u, inner), vt));
  auto divide = [&](Value x) {
    auto type = cast<RankedTensorType>(x.getType());
    Operand numbers{s, MatrixBuilder::all(rank - 2)};
    numbers.loops.push_back(rank - 1);
    return f.map(type.getShape(), type.getElementType(),
                 {Operand{x, MatrixBuilder::all(rank)}, numbers}, [&](Place &place) {
                   SmallVector<Index> first;
                   for (unsigned loop = 0; loop + 2 < rank; ++loop)
                     first.push_back(place.at(loop));
                   first.push_back(place.constant(0));
                   return place.in(0) * Formulas::invert(place.in(1), place.read(s, first), k);
                 });
  };
  if (du && rows > k)
    addTo(f.multiply(divide(f.subtract(du, f.multiply(u, left))), vt));
  if (dvt && columns > k)
    addTo(f.multiply(divide(u), f.subtract(dvt, f.multiply(right, vt))));
  sums.add(builder, getLoc(), getA(), da);
  return success();
}
