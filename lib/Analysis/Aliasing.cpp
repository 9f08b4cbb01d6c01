//===- Aliasing.cpp - Which bytes of which allocation a memref names ------===//
//
// Two rungs of the alias ladder: the allocation and the byte interval. A view's
// type counts from the base pointer of the memref it was cut from, so that is
// what is carried along; only `memref.view` moves it.
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

FailureOr<ByteRange> weir::getByteRange(MemRefType view) {
  std::optional<int64_t> element = getElementBytes(view);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!element || !view.hasStaticShape() || failed(view.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset) || offset < 0)
    return failure();
  int64_t last = offset; // the last element, then the byte after it
  bool empty = false;
  for (auto [size, stride] : llvm::zip_equal(view.getShape(), strides)) {
    empty |= size == 0;
    // A stride does not matter where there is nothing to step to.
    if (size <= 1)
      continue;
    int64_t span;
    if (ShapedType::isDynamic(stride) || stride < 0 || llvm::MulOverflow(size - 1, stride, span) ||
        llvm::AddOverflow(last, span, last))
      return failure();
  }
  ByteRange range;
  if (llvm::MulOverflow(offset, *element, range.begin))
    return failure();
  if (empty) {
    range.end = range.begin;
    return range;
  }
  if (llvm::AddOverflow(last, int64_t(1), last) || llvm::MulOverflow(last, *element, range.end))
    return failure();
  return range;
}

/// Whether the elements lie side by side, in whatever order of the dimensions.
static bool isDense(MemRefType type) {
  auto [strides, offset] = type.getStridesAndOffset();
  SmallVector<std::pair<int64_t, int64_t>> steps; // stride, size
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
    if (size != 1)
      steps.push_back({stride, size});
  llvm::sort(steps);
  int64_t next = 1;
  return llvm::all_of(steps, [&](std::pair<int64_t, int64_t> step) {
    return step.first == next && !llvm::MulOverflow(next, step.second, next);
  });
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

/// Sets the range of a view whose type counts from byte `base`.
static void setRange(View &view, MemRefType type, int64_t base) {
  view.range = std::nullopt;
  view.exact = false;
  FailureOr<ByteRange> range = type ? getByteRange(type) : FailureOr<ByteRange>(failure());
  if (failed(range) || llvm::AddOverflow(range->begin, base, range->begin) ||
      llvm::AddOverflow(range->end, base, range->end))
    return;
  view.range = *range;
  view.exact = isDense(type);
}

View weir::getView(Value memref) {
  SmallVector<ViewLikeOpInterface> chain;
  while (auto op = memref.getDefiningOp<ViewLikeOpInterface>()) {
    chain.push_back(op);
    memref = op.getViewSource();
  }
  View view;
  view.allocation = getAllocation(memref);
  std::optional<int64_t> base = 0;
  setRange(view, dyn_cast<MemRefType>(memref.getType()), *base);
  for (ViewLikeOpInterface op : llvm::reverse(chain)) {
    if (isa<memref::CastOp, memref::MemorySpaceCastOp, memref::AssumeAlignmentOp,
            memref::ExpandShapeOp, memref::CollapseShapeOp, memref::TransposeOp>(op))
      continue; // the same bytes
    auto type = dyn_cast<MemRefType>(op->getResult(0).getType());
    if (isa<memref::SubViewOp>(op)) {
      View part = view;
      if (base)
        setRange(part, type, *base);
      if (base && part.range)
        view = part;
      else
        view.exact = false; // somewhere within the source
    } else if (isa<memref::ReinterpretCastOp>(op)) {
      if (base)
        setRange(view, type, *base);
      else
        view.range = std::nullopt;
    } else {
      APInt shift;
      auto byteView = dyn_cast<memref::ViewOp>(op.getOperation());
      if (!byteView || !base || !matchPattern(byteView.getByteShift(), m_ConstantInt(&shift)) ||
          shift.isNegative() || llvm::AddOverflow(*base, shift.getSExtValue(), *base))
        base = std::nullopt;
      view.range = std::nullopt;
      if (base)
        setRange(view, type, *base);
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
  if (!first.range->overlaps(*second.range))
    return Sharing::Disjoint;
  return first.exact && second.exact ? Sharing::Overlap : Sharing::Unknown;
}
