//===- RowBuilder.cpp - Ops over the rows of a tensor ---------------------===//

#include "dialects/Norm/RowBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weir::norm;
using weir::autodiff::Number;

RowBuilder::RowBuilder(OpBuilder &builder, Location loc, RankedTensorType x, int64_t firstReduced,
                       int64_t numReduced)
    : builder(builder), loc(loc), shape(x.getShape()), reduced(x.getRank()) {
  reduced.set(firstReduced, firstReduced + numReduced);
  element = x.getElementType();
  type = element.isF64() ? element : Type(builder.getF32Type());
}

RowBuilder RowBuilder::ofChannels(OpBuilder &builder, Location loc, RankedTensorType x,
                                  int64_t axis) {
  RowBuilder rows(builder, loc, x, 0, x.getRank());
  rows.reduced.reset(axis);
  return rows;
}

SmallVector<int64_t> RowBuilder::getShape(Extent extent) const {
  SmallVector<int64_t> sizes;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (isIn(dim, extent))
      sizes.push_back(size);
  return sizes;
}

/// Returns the map of an operand in a loop nest over `loops`.
AffineMap RowBuilder::getMap(Extent operand, Extent loops) const {
  SmallVector<AffineExpr> results;
  unsigned loop = 0;
  for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim) {
    if (!isIn(dim, loops))
      continue;
    if (isIn(dim, operand))
      results.push_back(builder.getAffineDimExpr(loop));
    ++loop;
  }
  return AffineMap::get(loop, 0, results, builder.getContext());
}

Value RowBuilder::map(ArrayRef<Input> inputs, Extent loops, Type element, Body body) {
  Value empty = tensor::EmptyOp::create(builder, loc, getShape(loops), element);
  return generic(inputs, loops, empty, loops,
                 [&](OpBuilder &b, ArrayRef<Value> values, Value) { return body(b, values); });
}

template <typename Combine>
Value RowBuilder::reduce(ArrayRef<Input> inputs, Extent out, double start, Body body,
                         arith::FastMathFlags flags) {
  Value empty = tensor::EmptyOp::create(builder, loc, getShape(out), type);
  Value fill = linalg::FillOp::create(builder, loc, constant(start), empty).getResult(0);
  return generic(inputs, Extent::Full, fill, out,
                 [&](OpBuilder &b, ArrayRef<Value> values, Value acc) -> Value {
                   return Combine::create(b, loc, acc, body(b, values), flags);
                 });
}

Value RowBuilder::generic(ArrayRef<Input> inputs, Extent loops, Value out, Extent outExtent,
                          llvm::function_ref<Value(OpBuilder &, ArrayRef<Value>, Value)> body) {
  SmallVector<Value> tensors;
  SmallVector<AffineMap> maps;
  for (Input input : inputs) {
    tensors.push_back(input.tensor);
    maps.push_back(getMap(input.extent, loops));
  }
  maps.push_back(getMap(outExtent, loops));
  SmallVector<utils::IteratorType> iterators;
  for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
    if (isIn(dim, loops))
      iterators.push_back(isIn(dim, outExtent) ? utils::IteratorType::parallel
                                               : utils::IteratorType::reduction);
  return linalg::GenericOp::create(builder, loc, out.getType(), tensors, out, maps, iterators,
                                   [&](OpBuilder &b, Location, ValueRange arguments) {
                                     SmallVector<Value> values(arguments.drop_back());
                                     linalg::YieldOp::create(b, loc,
                                                             body(b, values, arguments.back()));
                                   })
      .getResult(0);
}

Value RowBuilder::getCount() {
  double elements = 1;
  for (unsigned dim : reduced.set_bits())
    elements *= double(shape[dim]);
  return constant(elements);
}

Value RowBuilder::constant(double value) {
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
}

Value RowBuilder::sum(ArrayRef<Input> inputs, Body body) {
  return reduce<arith::AddFOp>(inputs, Extent::Rows, 0.0, body);
}

Value RowBuilder::max(ArrayRef<Input> inputs, Body body, double start) {
  return reduce<arith::MaximumFOp>(inputs, Extent::Rows, start, body, arith::FastMathFlags::nsz);
}

Value weir::norm::widen(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return arith::ExtFOp::create(b, loc, type, value);
}

Value weir::norm::narrow(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return arith::TruncFOp::create(b, loc, type, value);
}

Input RowBuilder::mean(Value sums) {
  Value count = getCount();
  Value means = rows({{sums, Extent::Rows}}, type, [&](OpBuilder &b, ArrayRef<Value> in) -> Value {
    return arith::DivFOp::create(b, loc, in[0], count);
  });
  return {means, Extent::Rows};
}

Value RowBuilder::sumOfRows(ArrayRef<Input> inputs, Body body) {
  Value sums = reduce<arith::AddFOp>(inputs, Extent::Columns, 0.0, body);
  if (type == element)
    return sums;
  return map({{sums, Extent::Columns}}, Extent::Columns, element,
             [&](OpBuilder &b, ArrayRef<Value> in) { return narrow(b, loc, in[0], element); });
}

SmallVector<Number> weir::norm::getNumbers(ImplicitLocOpBuilder &builder, ArrayRef<Value> values) {
  return llvm::map_to_vector(values, [&](Value value) { return Number(builder, value); });
}
