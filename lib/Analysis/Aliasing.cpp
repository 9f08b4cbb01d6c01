//===- Aliasing.cpp - Which bytes of which allocation a memref names ------===//
//
// Three rungs of the alias ladder: the allocation, the byte interval and the
// strided lattice. A view's type counts from the base pointer of the memref it
// was cut from, so that is what is carried along; only `memref.view` moves it.
//
//===----------------------------------------------------------------------===//

#include "weir/Analysis/Aliasing.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weir;

static std::optional<int64_t> getElementBytes(MemRefType type) {
  return schedule::getByteSize(MemRefType::get({1}, type.getElementType()));
}

/// Returns the bytes of a view whose type counts from byte `base`, in canonical
/// form.
static std::optional<StridedBytes> getBytes(MemRefType view, int64_t base) {
  std::optional<int64_t> element = getElementBytes(view);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!element || !view.hasStaticShape() || failed(view.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset))
    return std::nullopt;
  StridedBytes bytes;
  bytes.elementBytes = *element;
  if (llvm::MulOverflow(offset, *element, bytes.begin) ||
      llvm::AddOverflow(bytes.begin, base, bytes.begin))
    return std::nullopt;
  for (auto [size, stride] : llvm::zip_equal(view.getShape(), strides)) {
    // A stride does not matter where there is nothing to step to.
    StridedBytes::Dim dim = {size, 0};
    if (size > 1 &&
        (ShapedType::isDynamic(stride) || llvm::MulOverflow(stride, *element, dim.stride)))
      return std::nullopt;
    bytes.dims.push_back(dim);
  }
  std::optional<StridedBytes> canonical = canonicalize(bytes);
  if (canonical && canonical->begin < 0)
    return std::nullopt;
  return canonical;
}

FailureOr<ByteRange> weir::getByteRange(MemRefType view) {
  std::optional<StridedBytes> bytes = getBytes(view, 0);
  if (!bytes)
    return failure();
  return getHull(*bytes);
}

static AllocationRef getAllocation(Value root) {
  AllocationRef allocation;
  allocation.value = root;
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    auto function = dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp());
    if (function && argument.getOwner()->isEntryBlock())
      allocation.kind = function->hasAttr(schedule::entryAttrName) ? AllocationRef::Kind::Entry
                                                                   : AllocationRef::Kind::Argument;
    return allocation;
  }
  Operation *op = root.getDefiningOp();
  if (isa<memref::AllocOp, memref::AllocaOp, gpu::AllocOp>(op)) {
    allocation.kind = AllocationRef::Kind::Local;
  } else if (auto global = dyn_cast<memref::GetGlobalOp>(op)) {
    allocation.kind = AllocationRef::Kind::Global;
    allocation.symbol = global.getNameAttr().getAttr();
  }
  return allocation;
}

/// Sets the bytes of a view whose type counts from byte `base`.
static void setBytes(View &view, MemRefType type, int64_t base) {
  view.bytes = type ? getBytes(type, base) : std::nullopt;
  view.range = view.bytes ? std::optional(getHull(*view.bytes)) : std::nullopt;
  view.exact = view.bytes && view.bytes->dims.empty();
}

View weir::getView(Value memref) {
  SmallVector<ViewLikeOpInterface> chain;
  while (auto op = memref.getDefiningOp<ViewLikeOpInterface>()) {
    chain.push_back(op);
    memref = op.getViewSource();
  }
  View view;
  view.allocation = getAllocation(memref);
  auto setSomewhere = [&](std::optional<ByteRange> within) {
    view.range = within;
    view.exact = false;
    view.bytes = std::nullopt;
  };
  std::optional<int64_t> base = 0;
  setBytes(view, dyn_cast<MemRefType>(memref.getType()), *base);
  for (ViewLikeOpInterface op : llvm::reverse(chain)) {
    if (isa<memref::CastOp, memref::MemorySpaceCastOp, memref::AssumeAlignmentOp,
            memref::ExpandShapeOp, memref::CollapseShapeOp, memref::TransposeOp>(op))
      continue; // the same bytes
    auto type = dyn_cast<MemRefType>(op->getResult(0).getType());
    if (isa<memref::SubViewOp>(op)) {
      View part = view;
      if (base)
        setBytes(part, type, *base);
      if (base && part.range)
        view = part;
      else
        setSomewhere(view.range);
    } else if (isa<memref::ReinterpretCastOp>(op)) {
      if (base)
        setBytes(view, type, *base);
      else
        setSomewhere(std::nullopt);
    } else {
      APInt shift;
      auto byteView = dyn_cast<memref::ViewOp>(op.getOperation());
      if (!byteView || !base || !matchPattern(byteView.getByteShift(), m_ConstantInt(&shift)) ||
          shift.isNegative() || llvm::AddOverflow(*base, shift.getSExtValue(), *base))
        base = std::nullopt;
      setSomewhere(std::nullopt);
      if (base)
        setBytes(view, type, *base);
    }
  }
  return view;
}

Sharing weir::compare(const AllocationRef &first, const AllocationRef &second) {
  using Kind = AllocationRef::Kind;
  if (first == second)
    return Sharing::Overlap;
  auto isEither = [&](Kind kind) { return first.kind == kind || second.kind == kind; };
  if (isEither(Kind::Unknown))
    return Sharing::Unknown;
  // What the function allocated, no argument can name.
  if (!isEither(Kind::Argument) || isEither(Kind::Local))
    return Sharing::Disjoint;
  return Sharing::Unknown;
}

Sharing weir::compare(const View &first, const View &second) {
  if ((first.range && first.range->isEmpty()) || (second.range && second.range->isEmpty()))
    return Sharing::Disjoint;
  Sharing allocations = compare(first.allocation, second.allocation);
  if (allocations != Sharing::Overlap)
    return allocations;
  if (!first.range || !second.range)
    return Sharing::Unknown;
  // A view that is somewhere in a range is taken to fill it.
  auto getMost = [](const View &view) {
    return view.bytes.value_or(
        StridedBytes{view.range->begin, view.range->end - view.range->begin, {}});
  };
  Sharing most = compare(getMost(first), getMost(second));
  return most == Sharing::Disjoint || (first.bytes && second.bytes) ? most : Sharing::Unknown;
}

bool weir::covers(const View &whole, const View &part) {
  if (!(whole.allocation == part.allocation) || !part.range)
    return false;
  if (whole.exact)
    return whole.range->begin <= part.range->begin && part.range->end <= whole.range->end;
  return whole.bytes && whole.bytes == part.bytes;
}
