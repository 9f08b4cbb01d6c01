//===- MatrixBuilder.cpp - Loops over the elements of matrices ------------===//

#include "dialects/Matrix/MatrixBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weir::matrix;

Index Place::at(unsigned loop) { return {b, linalg::IndexOp::create(b, loop)}; }

static SmallVector<Value> getValues(ArrayRef<Index> indices) {
  return llvm::map_to_vector(indices, [](Index index) { return index.get(); });
}

Number Place::read(Value tensor, ArrayRef<Index> indices) {
  return Number(b, tensor::ExtractOp::create(b, tensor, getValues(indices)));
}

Index Place::readIndex(Value tensor, ArrayRef<Index> indices, int64_t size) {
  Value number = tensor::ExtractOp::create(b, tensor, getValues(indices));
  Index index(b, arith::IndexCastOp::create(b, b.getIndexType(), number));
  return index.apply<arith::MaxSIOp>(constant(0)).apply<arith::MinSIOp>(constant(size - 1));
}

SmallVector<unsigned, 4> MatrixBuilder::all(size_t count) {
  return llvm::to_vector<4>(llvm::seq<unsigned>(count));
}

SmallVector<Value> MatrixBuilder::generic(ArrayRef<int64_t> loops, ArrayRef<unsigned> reduced,
                                          ArrayRef<Value> outs, ArrayRef<Operand> operands,
                                          Body body) {
  SmallVector<AffineMap> maps;
  SmallVector<Value> ins;
  auto addMap = [&](ArrayRef<unsigned> dims) {
    auto exprs = llvm::map_to_vector(dims, [&](unsigned dim) { return b.getAffineDimExpr(dim); });
    maps.push_back(AffineMap::get(loops.size(), 0, exprs, b.getContext()));
  };
  for (const Operand &operand : operands) {
    ins.push_back(operand.tensor);
    addMap(operand.loops);
  }
  SmallVector<utils::IteratorType> kinds(loops.size(), utils::IteratorType::parallel);
  for (unsigned loop : reduced)
    kinds[loop] = utils::IteratorType::reduction;
  SmallVector<unsigned> kept;
  for (unsigned loop : all(loops.size()))
    if (!llvm::is_contained(reduced, loop))
      kept.push_back(loop);
  for (size_t i = 0; i < outs.size(); ++i)
    addMap(kept);
  return linalg::GenericOp::create(b, TypeRange(ValueRange(outs)), ins, outs, maps, kinds,
                                   [&](OpBuilder &inside, Location loc, ValueRange values) {
                                     ImplicitLocOpBuilder builder(loc, inside);
                                     Place place(builder, values);
                                     linalg::YieldOp::create(builder, body(place));
                                   })
      .getResults();
}

SmallVector<Value> MatrixBuilder::map(ArrayRef<int64_t> loops, TypeRange elements,
                                      ArrayRef<Operand> operands, Body body) {
  auto outs = llvm::map_to_vector(
      elements, [&](Type type) -> Value { return tensor::EmptyOp::create(b, loops, type); });
  return generic(loops, {}, outs, operands, body);
}

Value MatrixBuilder::map(ArrayRef<int64_t> loops, Type element, ArrayRef<Operand> operands,
                         function_ref<Number(Place &)> body) {
  return map(loops, TypeRange(element), operands,
             [&](Place &place) -> SmallVector<Value> { return {body(place).get()}; })[0];
}

SmallVector<Value> MatrixBuilder::reduce(ArrayRef<int64_t> loops, ArrayRef<unsigned> reduced,
                                         ArrayRef<TypedAttr> starts, ArrayRef<Operand> operands,
                                         Body body) {
  SmallVector<int64_t> shape;
  for (auto [loop, size] : llvm::enumerate(loops))
    if (!llvm::is_contained(reduced, loop))
      shape.push_back(size);
  auto outs = llvm::map_to_vector(starts, [&](TypedAttr start) -> Value {
    Value number = arith::ConstantOp::create(b, start);
    Value empty = tensor::EmptyOp::create(b, shape, start.getType());
    return linalg::FillOp::create(b, number, empty).getResult(0);
  });
  return generic(loops, reduced, outs, operands, body);
}

Value MatrixBuilder::sum(ArrayRef<int64_t> loops, ArrayRef<unsigned> reduced, Type element,
                         ArrayRef<Operand> operands, function_ref<Number(Place &)> body) {
  TypedAttr zero = b.getZeroAttr(element);
  return reduce(loops, reduced, zero, operands, [&](Place &place) -> SmallVector<Value> {
    return {(place.in(operands.size()) + body(place)).get()};
  })[0];
}

Value MatrixBuilder::multiply(Value x, Value y, bool transposesX, bool transposesY) {
  auto type = cast<RankedTensorType>(x.getType());
  const unsigned batch = type.getRank() - 2, row = batch, column = batch + 1, k = batch + 2;
  SmallVector<int64_t> loops(type.getShape().drop_back(2));
  loops.append({transposesX ? getColumns(x) : getRows(x), transposesY ? getRows(y) : getColumns(y),
                transposesX ? getRows(x) : getColumns(x)});
  Operand left{x, all(batch)}, right{y, all(batch)};
  left.loops.append(transposesX ? std::initializer_list<unsigned>{k, row}
                                : std::initializer_list<unsigned>{row, k});
  right.loops.append(transposesY ? std::initializer_list<unsigned>{column, k}
                                 : std::initializer_list<unsigned>{k, column});
  return sum(loops, k, type.getElementType(), {left, right},
             [](Place &place) { return place.in(0) * place.in(1); });
}

Value MatrixBuilder::transpose(Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> loops(type.getShape());
  std::swap(loops.back(), loops[loops.size() - 2]);
  Operand from{x, all(loops.size())};
  std::swap(from.loops.back(), from.loops[loops.size() - 2]);
  return map(loops, type.getElementType(), from, [](Place &place) { return place.in(0); });
}

Value MatrixBuilder::each(ArrayRef<Value> inputs,
                          function_ref<Number(Place &, Index, Index)> body) {
  auto type = cast<RankedTensorType>(inputs.front().getType());
  SmallVector<Operand> operands;
  for (Value input : inputs)
    operands.push_back({input, all(type.getRank())});
  return map(type.getShape(), type.getElementType(), operands, [&](Place &place) {
    return body(place, place.at(type.getRank() - 2), place.at(type.getRank() - 1));
  });
}

Value MatrixBuilder::identity(RankedTensorType type) {
  return map(type.getShape(), type.getElementType(), {}, [&](Place &place) {
    Number one(place.b,
               arith::ConstantOp::create(place.b, place.b.getFloatAttr(type.getElementType(), 1)));
    return (place.at(type.getRank() - 2) == place.at(type.getRank() - 1))
        .choose(one, one.constant(0));
  });
}

Value MatrixBuilder::cut(Value x, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  if (rows == getRows(x) && columns == getColumns(x))
    return x;
  ArrayRef<int64_t> shape = getShape(x);
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)), sizes,
      strides(shape.size(), b.getIndexAttr(1));
  for (int64_t size : shape)
    sizes.push_back(b.getIndexAttr(size));
  offsets[shape.size() - 2] = b.getIndexAttr(row);
  offsets.back() = b.getIndexAttr(column);
  sizes[shape.size() - 2] = b.getIndexAttr(rows);
  sizes.back() = b.getIndexAttr(columns);
  return tensor::ExtractSliceOp::create(b, x, offsets, sizes, strides);
}

SmallVector<Value> MatrixBuilder::repeat(int64_t trips, ArrayRef<Value> inits,
                                         function_ref<SmallVector<Value>(Index, ValueRange)> body) {
  Value first = arith::ConstantIndexOp::create(b, 0), step = arith::ConstantIndexOp::create(b, 1);
  Value last = arith::ConstantIndexOp::create(b, trips);
  auto loop = scf::ForOp::create(b, first, last, step, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(Index(b, loop.getInductionVar()), loop.getRegionIterArgs());
  scf::YieldOp::create(b, next);
  return loop.getResults();
}
