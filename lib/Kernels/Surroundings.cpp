//===- Surroundings.cpp - Elements around a slice of a splat --------------===//
//
// A kernel that pads its result writes the padding, too. The elements around a slice are
// boxes, a few for each dimension: those before the slice, behind it and, if it has
// strides, in between. All invocations of the kernel share each box. Boxes and slice are
// disjoint in one dimension of the tensor, so that analyses can tell them apart.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace weir;

namespace {
/// `count` indices of a dimension, `stride` apart.
struct Indices {
  int64_t begin, stride, count;
};
using Box = SmallVector<Indices>; ///< by dimension
} // namespace

/// Returns the indices of a dimension outside of the slice.
static SmallVector<Indices> getOutside(const Indices &slice, int64_t size) {
  int64_t last = slice.begin + (slice.count - 1) * slice.stride;
  SmallVector<Indices> outside = {{0, 1, slice.begin}};
  for (int64_t rest = 1; rest < slice.stride; ++rest)
    outside.push_back({slice.begin + rest, slice.stride, slice.count - 1});
  outside.push_back({last + 1, 1, size - last - 1});
  llvm::erase_if(outside, [](const Indices &indices) { return indices.count == 0; });
  return outside;
}

/// Boxes that are all of the tensor but the slice. In the dimensions before the one that
/// is outside they are as the slice.
static SmallVector<Box> getBoxes(tensor::InsertSliceOp op) {
  Box slice, whole;
  SmallVector<int64_t> offsets = *getConstantIntValues(op.getMixedOffsets());
  for (auto [offset, stride, count, size] : llvm::zip_equal(
           offsets, op.getStaticStrides(), op.getStaticSizes(), op.getType().getShape())) {
    slice.push_back({offset, count == 1 ? 1 : stride, count});
    whole.push_back({0, 1, size});
  }
  SmallVector<Box> boxes;
  for (size_t dim = 0; dim < slice.size(); ++dim)
    for (const Indices &outside : getOutside(slice[dim], whole[dim].count)) {
      Box box(ArrayRef(slice).take_front(dim));
      box.push_back(outside);
      llvm::append_range(box, ArrayRef(whole).drop_front(dim + 1));
      boxes.push_back(std::move(box));
    }
  return boxes;
}

/// Converts a box to elements of the tensor's memory, with as few strides as possible.
static Box flatten(const Box &box, ArrayRef<int64_t> shape) {
  Box flat = {{0, 1, 1}};
  int64_t elements = 1;
  for (size_t dim = shape.size(); dim-- > 0; elements *= shape[dim]) {
    flat.front().begin += box[dim].begin * elements;
    int64_t stride = box[dim].stride * elements;
    if (box[dim].count == 1)
      continue;
    Indices &last = flat.back();
    if (last.count == 1)
      last = {last.begin, stride, box[dim].count};
    else if (last.stride * last.count == stride)
      last.count *= box[dim].count;
    else
      flat.push_back({0, stride, box[dim].count});
  }
  std::reverse(flat.begin(), flat.end());
  return flat;
}

/// Writes `padding` to a box of a result: an element for each invocation, and again
/// until there are none left.
static void fill(PointEmitter &emitter, unsigned result, TypedAttr padding, const Box &box,
                 Value invocation, int64_t invocations) {
  SmallVector<int64_t> counts;
  int64_t begin = 0;
  for (const Indices &indices : box) {
    counts.push_back(indices.count);
    begin += indices.begin;
  }
  int64_t count = getProduct(counts);
  emitter.loop(
      llvm::divideCeil(count, invocations), {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
        OpBuilder &b = emitter.builder();
        Location loc = emitter.loc;
        Value first = arith::MulIOp::create(b, loc, trip, emitter.indexConstant(invocations));
        Value unit = arith::AddIOp::create(b, loc, first, invocation);
        auto store = [&]() -> SmallVector<Value> {
          AffineExpr number = emitter.setCoordinate(unitCoordinate, unit);
          AffineExpr address = emitter.constant(begin);
          for (auto [indices, digit] : llvm::zip_equal(box, emitter.delinearize(number, counts)))
            address = address + digit * indices.stride;
          Value value = arith::ConstantOp::create(emitter.builder(), loc, padding);
          emitter.storeAt(result, value, address);
          return {};
        };
        if (count % invocations == 0)
          return store();
        Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, unit,
                                             emitter.indexConstant(count));
        return emitter.guard(inside, {}, store);
      });
}

void weir::emitSurroundings(PointEmitter &emitter, const EmittedKernel &launch) {
  Operation *terminator = emitter.kernel.getBody().front().getTerminator();
  Value invocation;
  int64_t size = emitter.getFunction().getKnownBlockSize()->front();
  int64_t invocations = getProduct(launch.grid) * size;
  for (auto [result, value] : llvm::enumerate(terminator->getOperands())) {
    auto insertion = value.getDefiningOp<tensor::InsertSliceOp>();
    TypedAttr padding = insertion ? getSplat(insertion.getDest()) : TypedAttr();
    if (!padding)
      continue;
    auto place = emitter.codeFor(insertion);
    if (!invocation) {
      OpBuilder &b = emitter.builder();
      Value thread = gpu::ThreadIdOp::create(b, emitter.loc, gpu::Dimension::x);
      Value first = arith::MulIOp::create(b, emitter.loc, getWorkgroup(emitter, launch.grid),
                                          emitter.indexConstant(size));
      invocation = arith::AddIOp::create(b, emitter.loc, first, thread);
    }
    for (const Box &box : getBoxes(insertion))
      fill(emitter, result, padding, flatten(box, insertion.getType().getShape()), invocation,
           invocations);
  }
}
