//===- Tensor.cpp - Derivatives of moved elements -------------------------===//
//
// Each rule moves the cotangent's elements back to where the op took them from.
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace weir::autodiff;

namespace {
/// The rule of an op of one result: `derive` takes its cotangent.
template <typename Op, LogicalResult (*derive)(Op op, OpBuilder &b, Value g, Cotangents &sums)>
struct TensorRule : DifferentiableOpInterface::ExternalModel<TensorRule<Op, derive>, Op> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents,
                         Cotangents &sums) const {
    return derive(cast<Op>(op), builder, cotangents.front(), sums);
  }
};
} // namespace

static LogicalResult cast(tensor::CastOp op, OpBuilder &b, Value g, Cotangents &sums) {
  sums.add(b, op.getLoc(), op.getSource(),
           tensor::CastOp::create(b, op.getLoc(), op.getSource().getType(), g));
  return success();
}

static LogicalResult collapse(tensor::CollapseShapeOp op, OpBuilder &b, Value g, Cotangents &sums) {
  sums.add(b, op.getLoc(), op.getSrc(),
           tensor::ExpandShapeOp::create(b, op.getLoc(), op.getSrcType(), g,
                                         op.getReassociationIndices()));
  return success();
}

static LogicalResult expand(tensor::ExpandShapeOp op, OpBuilder &b, Value g, Cotangents &sums) {
  sums.add(b, op.getLoc(), op.getSrc(),
           tensor::CollapseShapeOp::create(b, op.getLoc(), op.getSrcType(), g,
                                           op.getReassociationIndices()));
  return success();
}

/// Creates a slice. Upstream's verifier refuses empty slices that begin at the end of the
/// source.
static Value createSlice(OpBuilder &b, Location loc, RankedTensorType type, Value source,
                         ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> strides) {
  if (type.getNumElements() == 0)
    return tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  return tensor::ExtractSliceOp::create(b, loc, type, source, offsets,
                                        getAsIndexOpFoldResult(b.getContext(), type.getShape()),
                                        strides);
}

static LogicalResult concat(tensor::ConcatOp op, OpBuilder &b, Value g, Cotangents &sums) {
  int64_t dim = int64_t(op.getDim()), begin = 0;
  for (Value input : op.getInputs()) {
    auto type = mlir::cast<RankedTensorType>(input.getType());
    SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
    offsets[dim] = b.getIndexAttr(begin);
    begin += type.getDimSize(dim);
    if (sums.isWanted(input))
      sums.add(b, op.getLoc(), input, createSlice(b, op.getLoc(), type, g, offsets, strides));
  }
  return success();
}

/// Differentiates the read of one element: adds the cotangent to that element alone.
static LogicalResult extract(tensor::ExtractOp op, OpBuilder &b, Value g, Cotangents &sums) {
  Location loc = op.getLoc();
  Value sum = sums.get(op.getTensor());
  if (!sum) {
    sum = createZeros(b, loc, op.getTensor().getType());
  } else {
    Value before = tensor::ExtractOp::create(b, loc, sum, op.getIndices());
    g = arith::AddFOp::create(b, loc, before, g);
  }
  sums.set(op.getTensor(), tensor::InsertOp::create(b, loc, g, sum, op.getIndices()));
  return success();
}

/// Whether two slices of one tensor have no element in common: their indices in some
/// dimension are disjoint.
static bool areDisjoint(OffsetSizeAndStrideOpInterface first,
                        OffsetSizeAndStrideOpInterface second) {
  auto getIndices = [](OffsetSizeAndStrideOpInterface op, unsigned dim) {
    return std::array<int64_t, 3>{op.getStaticOffsets()[dim], op.getStaticSizes()[dim],
                                  op.getStaticStrides()[dim]};
  };
  for (unsigned dim = 0; dim < first.getStaticOffsets().size(); ++dim) {
    auto [begin, count, stride] = getIndices(first, dim);
    auto [otherBegin, otherCount, otherStride] = getIndices(second, dim);
    if (llvm::any_of(ArrayRef{begin, count, stride, otherBegin, otherCount, otherStride},
                     ShapedType::isDynamic))
      continue;
    int64_t common = std::max<int64_t>(std::gcd(stride, otherStride), 1);
    if (begin + (count - 1) * stride < otherBegin ||
        otherBegin + (otherCount - 1) * otherStride < begin || (begin - otherBegin) % common != 0)
      return true;
  }
  return false;
}

/// Whether the elements of `sum` in `slice` are still the zeros that it began with.
static bool isZeroAt(Value sum, tensor::ExtractSliceOp slice) {
  while (auto inserted = sum.getDefiningOp<tensor::InsertSliceOp>()) {
    if (!areDisjoint(inserted, slice))
      return false;
    sum = inserted.getDest();
  }
  auto fill = sum.getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
}

/// Differentiates a slice. Disjoint slices, such as heads or gates, are put into one
/// tensor; overlapping ones are added.
static LogicalResult extractSlice(tensor::ExtractSliceOp op, OpBuilder &b, Value g,
                                  Cotangents &sums) {
  Location loc = op.getLoc();
  Value source = op.getSource(), sum = sums.get(source);
  auto insert = [&](Value part, Value tensor) {
    return tensor::InsertSliceOp::create(b, loc, part, tensor, op.getMixedOffsets(),
                                         op.getMixedSizes(), op.getMixedStrides());
  };
  if (sum && isZeroAt(sum, op)) {
    sums.set(source, insert(g, sum));
  } else if (isa_and_present<BlockArgument>(sum)) {
    // A loop carries the sum: only the slice of this trip changes.
    Value before = tensor::ExtractSliceOp::create(b, loc, op.getType(), sum, op.getMixedOffsets(),
                                                  op.getMixedSizes(), op.getMixedStrides());
    Cotangents slice(DenseSet<Value>{op.getResult()});
    slice.set(op.getResult(), before);
    slice.add(b, loc, op.getResult(), g);
    sums.set(source, insert(slice.get(op.getResult()), sum));
  } else {
    sums.add(b, loc, source, insert(g, createZeros(b, loc, source.getType())));
  }
  return success();
}

static LogicalResult insert(tensor::InsertOp op, OpBuilder &b, Value g, Cotangents &sums) {
  Location loc = op.getLoc();
  if (sums.isWanted(op.getScalar()))
    sums.add(b, loc, op.getScalar(), tensor::ExtractOp::create(b, loc, g, op.getIndices()));
  if (sums.isWanted(op.getDest())) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(op.getScalar().getType()));
    sums.add(b, loc, op.getDest(), tensor::InsertOp::create(b, loc, zero, g, op.getIndices()));
  }
  return success();
}

static LogicalResult insertSlice(tensor::InsertSliceOp op, OpBuilder &b, Value g,
                                 Cotangents &sums) {
  Location loc = op.getLoc();
  auto offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(), strides = op.getMixedStrides();
  if (sums.isWanted(op.getSource()))
    sums.add(
        b, loc, op.getSource(),
        tensor::ExtractSliceOp::create(b, loc, op.getSourceType(), g, offsets, sizes, strides));
  if (sums.isWanted(op.getDest())) {
    Value zeros = createZeros(b, loc, op.getSourceType());
    sums.add(b, loc, op.getDest(),
             tensor::InsertSliceOp::create(b, loc, zeros, g, offsets, sizes, strides));
  }
  return success();
}

static LogicalResult fromElements(tensor::FromElementsOp op, OpBuilder &b, Value g,
                                  Cotangents &sums) {
  ArrayRef<int64_t> shape = op.getType().getShape();
  for (auto [number, element] : llvm::enumerate(op.getElements())) {
    if (!sums.isWanted(element))
      continue;
    SmallVector<Value> indices;
    int64_t rest = int64_t(number);
    for (int64_t size : llvm::reverse(shape)) {
      indices.push_back(arith::ConstantIndexOp::create(b, op.getLoc(), rest % size));
      rest /= size;
    }
    std::reverse(indices.begin(), indices.end());
    sums.add(b, op.getLoc(), element, tensor::ExtractOp::create(b, op.getLoc(), g, indices));
  }
  return success();
}

static LogicalResult pad(tensor::PadOp op, OpBuilder &b, Value g, Cotangents &sums) {
  Value padding = op.getConstantPaddingValue();
  if (!padding || sums.isWanted(padding))
    return op.emitOpError("has no gradient rule: the padding is no constant, and the gradient "
                          "may flow to it");
  RankedTensorType type = op.getSourceType();
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  sums.add(b, op.getLoc(), op.getSource(),
           createSlice(b, op.getLoc(), type, g, op.getMixedLowPad(), strides));
  return success();
}

/// Differentiates a splat: the cotangent of the scalar is the sum of the elements' ones.
static LogicalResult splat(tensor::SplatOp op, OpBuilder &b, Value g, Cotangents &sums) {
  Location loc = op.getLoc();
  unsigned rank = op.getType().getRank();
  Value zero = createZeros(b, loc, RankedTensorType::get({}, op.getInput().getType()));
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(rank),
                                 AffineMap::get(rank, 0, b.getContext())};
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::reduction);
  Value sum = linalg::GenericOp::create(b, loc, zero.getType(), g, zero, maps, loops,
                                        [](OpBuilder &inside, Location loc, ValueRange values) {
                                          Value added = arith::AddFOp::create(inside, loc,
                                                                              values[1], values[0]);
                                          linalg::YieldOp::create(inside, loc, added);
                                        })
                  .getResult(0);
  sums.add(b, loc, op.getInput(), tensor::ExtractOp::create(b, loc, sum));
  return success();
}

void weir::autodiff::registerTensorRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    using namespace tensor;
    CastOp::attachInterface<TensorRule<CastOp, ::cast>>(*context);
    CollapseShapeOp::attachInterface<TensorRule<CollapseShapeOp, collapse>>(*context);
    ConcatOp::attachInterface<TensorRule<ConcatOp, concat>>(*context);
    ExpandShapeOp::attachInterface<TensorRule<ExpandShapeOp, expand>>(*context);
    ExtractOp::attachInterface<TensorRule<ExtractOp, extract>>(*context);
    ExtractSliceOp::attachInterface<TensorRule<ExtractSliceOp, extractSlice>>(*context);
    FromElementsOp::attachInterface<TensorRule<FromElementsOp, fromElements>>(*context);
    InsertOp::attachInterface<TensorRule<InsertOp, insert>>(*context);
    InsertSliceOp::attachInterface<TensorRule<InsertSliceOp, insertSlice>>(*context);
    PadOp::attachInterface<TensorRule<PadOp, pad>>(*context);
    SplatOp::attachInterface<TensorRule<SplatOp, splat>>(*context);
  });
}
