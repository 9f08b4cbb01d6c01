//===- Triangles.cpp - Constant masks that compare positions --------------===//
//
// PyTorch stores a causal mask as a constant of zeros and ones. As a comparison it takes no bytes,
// and kernels see what it hides.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/Triangles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

#include <vector>

using namespace mlir;
using namespace weir;

/// Returns the bits of each element of a constant, row by row; nothing for types of other sizes
/// than 1 and whole bytes.
static std::optional<std::vector<uint64_t>> getBits(ElementsAttr constant) {
  Type type = constant.getElementType();
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() > 64)
    return std::nullopt;
  std::vector<uint64_t> bits;
  if (auto dense = dyn_cast<DenseElementsAttr>(constant)) {
    if (isa<FloatType>(type))
      for (const APFloat &value : dense.getValues<APFloat>())
        bits.push_back(value.bitcastToAPInt().getZExtValue());
    else
      for (const APInt &value : dense.getValues<APInt>())
        bits.push_back(value.getZExtValue());
    return bits;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(constant);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  if (!blob)
    return std::nullopt;
  auto take = [&](auto zero) {
    for (auto value : blob->getDataAs<decltype(zero)>())
      bits.push_back(value);
  };
  switch (type.getIntOrFloatBitWidth()) {
  case 8:
    take(uint8_t());
    break;
  case 16:
    take(uint16_t());
    break;
  case 32:
    take(uint32_t());
    break;
  case 64:
    take(uint64_t());
    break;
  default:
    return std::nullopt;
  }
  return bits;
}

static TypedAttr makeElement(Type type, uint64_t bits) {
  APInt value(type.getIntOrFloatBitWidth(), bits);
  if (auto real = dyn_cast<FloatType>(type))
    return FloatAttr::get(type, APFloat(real.getFloatSemantics(), value));
  return IntegerAttr::get(type, value);
}

std::optional<Triangle> weir::findTriangle(Value tensor, unsigned rowDim, unsigned columnDim) {
  constexpr int64_t maxElements = 1 << 26;
  ElementsAttr constant;
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !type.hasStaticShape() || !matchPattern(tensor, m_Constant(&constant)))
    return std::nullopt;
  int64_t rows = type.getDimSize(rowDim), columns = type.getDimSize(columnDim);
  if (rows * columns != type.getNumElements() || type.getNumElements() > maxElements ||
      rows * columns < 2)
    return std::nullopt;
  std::optional<std::vector<uint64_t>> bits = getBits(constant);
  if (!bits || int64_t(bits->size()) != rows * columns)
    return std::nullopt;
  auto get = [&](int64_t row, int64_t column) {
    return (*bits)[rowDim < columnDim ? row * columns + column : column * rows + row];
  };
  // The corners on either side of the diagonal.
  uint64_t within = get(rows - 1, 0), behind = get(0, columns - 1);
  if (within == behind)
    return std::nullopt;
  int64_t offset = 0;
  if (get(0, 0) == within)
    while (get(0, offset + 1) == within) // ends at the last column
      ++offset;
  else
    do
      --offset;
    while (get(-offset, 0) != within); // ends in the last row
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (get(row, column) != (column <= row + offset ? within : behind))
        return std::nullopt;
  return Triangle{offset, makeElement(type.getElementType(), within),
                  makeElement(type.getElementType(), behind)};
}

std::optional<int64_t> weir::findRamp(Value tensor) {
  ElementsAttr constant;
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !type.getElementType().isSignlessInteger() || !type.hasStaticShape() ||
      !matchPattern(tensor, m_Constant(&constant)))
    return std::nullopt;
  std::optional<std::vector<uint64_t>> bits = getBits(constant);
  unsigned width = type.getElementType().getIntOrFloatBitWidth();
  if (!bits || bits->empty() || int64_t(bits->size()) != type.getNumElements())
    return std::nullopt;
  auto get = [&](size_t index) { return APInt(width, (*bits)[index]).getSExtValue(); };
  for (size_t index = 1; index < bits->size(); ++index)
    if (get(index) != get(0) + int64_t(index))
      return std::nullopt;
  return get(0);
}

Value weir::emitTriangle(OpBuilder &builder, Location loc, const Triangle &triangle, Value row,
                         Value column) {
  Value offset = arith::ConstantIndexOp::create(builder, loc, triangle.offset);
  Value last = arith::AddIOp::create(builder, loc, row, offset);
  Value isWithin = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, column, last);
  Value within = arith::ConstantOp::create(builder, loc, triangle.within),
        behind = arith::ConstantOp::create(builder, loc, triangle.behind);
  return arith::SelectOp::create(builder, loc, isWithin, within, behind);
}
