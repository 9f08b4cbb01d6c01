//===- Aliasing.cpp - Which bytes of which allocation a memref names ------===//
//
// Three rungs of the alias ladder: the allocation, the byte interval and the strided lattice. A
// view's type counts from the base pointer of the memref it was cut from, so that pointer is
// carried along; only `memref.view` moves it.
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

namespace {
/// A layout in elements; numbers that are not known are ShapedType::kDynamic.
struct Layout {
  int64_t offset = ShapedType::kDynamic;
  SmallVector<int64_t> sizes, strides;
};
} // namespace

/// Takes the numbers that `layout` leaves open from `source`, which has the same rank.
static void complete(Layout &layout, const Layout &source) {
  auto set = [](int64_t &value, int64_t known) {
    if (ShapedType::isDynamic(value))
      value = known;
  };
  set(layout.offset, source.offset);
  for (auto [size, known] : llvm::zip_equal(layout.sizes, source.sizes))
    set(size, known);
  for (auto [stride, known] : llvm::zip_equal(layout.strides, source.strides))
    set(stride, known);
}

static int64_t getKnown(OpFoldResult value) {
  return getConstantIntValue(value).value_or(ShapedType::kDynamic);
}

/// Returns a * b + c; dynamic when one of them is, or there is no such int64_t.
static int64_t multiplyAdd(int64_t a, int64_t b, int64_t c) {
  int64_t sum;
  if (ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || ShapedType::isDynamic(c) ||
      llvm::MulOverflow(a, b, sum) || llvm::AddOverflow(sum, c, sum))
    return ShapedType::kDynamic;
  return sum;
}

/// Sets the strides of a row-major view from its sizes.
static void setRowMajor(Layout &layout) {
  layout.strides.resize(layout.sizes.size());
  int64_t stride = 1;
  for (size_t i = layout.sizes.size(); i-- > 0;) {
    layout.strides[i] = stride;
    stride = multiplyAdd(layout.sizes[i], stride, 0);
  }
}

static std::optional<Layout> getLayout(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return std::nullopt;
  Layout layout;
  layout.sizes = llvm::to_vector(memref.getShape());
  // Most types are plain, and MLIR would build an affine map to say so.
  if (memref.getLayout().isIdentity()) {
    layout.offset = 0;
    setRowMajor(layout);
  } else if (failed(memref.getStridesAndOffset(layout.strides, layout.offset))) {
    return std::nullopt;
  }
  return layout;
}

/// Returns the layout of a subview before it loses dimensions of size 1. Its constant operands may
/// say more than its type.
static Layout getWholeLayout(memref::SubViewOp op, const Layout &source) {
  Layout layout;
  layout.offset = source.offset;
  for (auto [offset, size, step, stride] : llvm::zip_equal(op.getMixedOffsets(), op.getMixedSizes(),
                                                           op.getMixedStrides(), source.strides)) {
    layout.offset = multiplyAdd(getKnown(offset), stride, layout.offset);
    layout.sizes.push_back(getKnown(size));
    layout.strides.push_back(multiplyAdd(getKnown(step), stride, 0));
  }
  return layout;
}

/// Returns a layout without the dimensions that a subview loses, or nothing if its types don't tell
/// which these are.
static std::optional<Layout> dropDims(memref::SubViewOp op, Layout layout) {
  size_t rank = op.getType().getRank();
  if (layout.sizes.size() == rank)
    return layout;
  ArrayRef<int64_t> sizes = op.getStaticSizes();
  if (layout.sizes.size() - rank != size_t(llvm::count(sizes, 1)))
    return std::nullopt;
  Layout result;
  result.offset = layout.offset;
  for (auto [size, known, stride] : llvm::zip_equal(sizes, layout.sizes, layout.strides))
    if (size != 1) {
      result.sizes.push_back(known);
      result.strides.push_back(stride);
    }
  return result;
}

/// Returns the layout of a view's result, which its source's layout helps to
/// know.
static std::optional<Layout> getLayout(Operation *op, const std::optional<Layout> &source) {
  std::optional<Layout> layout = getLayout(op->getResult(0).getType());
  if (!layout)
    return std::nullopt;
  if (isa<memref::CastOp, memref::MemorySpaceCastOp, memref::AssumeAlignmentOp>(op)) {
    if (source && source->sizes.size() == layout->sizes.size())
      complete(*layout, *source);
  } else if (auto transpose = dyn_cast<memref::TransposeOp>(op)) {
    if (source)
      complete(*layout,
               {source->offset,
                applyPermutationMap<int64_t>(transpose.getPermutation(), source->sizes),
                applyPermutationMap<int64_t>(transpose.getPermutation(), source->strides)});
  } else if (auto part = dyn_cast<memref::SubViewOp>(op)) {
    std::optional<Layout> known =
        source ? dropDims(part, getWholeLayout(part, *source)) : std::nullopt;
    if (known)
      complete(*layout, *known);
  } else if (auto cast = dyn_cast<memref::ReinterpretCastOp>(op)) {
    complete(*layout, {getKnown(cast.getConstifiedMixedOffset()),
                       llvm::map_to_vector(cast.getConstifiedMixedSizes(), getKnown),
                       llvm::map_to_vector(cast.getConstifiedMixedStrides(), getKnown)});
  } else if (auto view = dyn_cast<memref::ViewOp>(op)) {
    auto given = view.getSizes().begin();
    for (int64_t &size : layout->sizes)
      if (ShapedType::isDynamic(size))
        size = getKnown(*given++);
    setRowMajor(*layout); // always
  }
  return layout;
}

/// Returns the bytes of a view whose layout counts from byte `base`, in
/// canonical form.
static std::optional<StridedBytes> getBytes(const Layout &layout, Type elementType, int64_t base) {
  std::optional<int64_t> element = schedule::getElementBytes(elementType);
  if (!element)
    return std::nullopt;
  StridedBytes bytes;
  bytes.elementBytes = *element;
  bytes.begin = multiplyAdd(layout.offset, *element, base);
  if (ShapedType::isDynamic(bytes.begin))
    return std::nullopt;
  for (auto [size, stride] : llvm::zip_equal(layout.sizes, layout.strides)) {
    if (size < 0) // dynamic, or a constant that is no size
      return std::nullopt;
    // A stride does not matter in a dimension of size 1.
    StridedBytes::Dim dim = {size, size > 1 ? multiplyAdd(stride, *element, 0) : 0};
    if (ShapedType::isDynamic(dim.stride))
      return std::nullopt;
    bytes.dims.push_back(dim);
  }
  std::optional<StridedBytes> canonical = canonicalize(bytes);
  if (canonical && canonical->begin < 0)
    return std::nullopt;
  return canonical;
}

FailureOr<ByteRange> weir::getByteRange(MemRefType view) {
  if (std::optional<int64_t> plain = schedule::getByteSize(view))
    return ByteRange{0, *plain};
  std::optional<Layout> layout = getLayout(view);
  std::optional<StridedBytes> bytes =
      layout ? getBytes(*layout, view.getElementType(), 0) : std::nullopt;
  if (!bytes)
    return failure();
  return getHull(*bytes);
}

static AllocationRef getAllocation(Value root) {
  AllocationRef allocation;
  allocation.value = root;
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    auto function = dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp());
    if (!function || !argument.getOwner()->isEntryBlock())
      return allocation;
    if (argument.getArgNumber() >= function.getNumArguments()) {
      allocation.kind = AllocationRef::Kind::Local;
      return allocation;
    }
    allocation.kind = function->hasAttr(schedule::entryAttrName) ? AllocationRef::Kind::Entry
                                                                 : AllocationRef::Kind::Argument;
    allocation.noAlias = bool(function.getArgAttr(argument.getArgNumber(), "llvm.noalias"));
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

/// Sets the bytes of a view whose layout counts from byte `base`.
static void setBytes(View &view, const std::optional<Layout> &layout, Type type, int64_t base) {
  view.bytes = layout ? getBytes(*layout, getElementTypeOrSelf(type), base) : std::nullopt;
  view.range = view.bytes ? std::optional(getHull(*view.bytes)) : std::nullopt;
  view.exact = view.bytes && view.bytes->dims.empty();
}

/// Sets the bytes of a view from byte `base` on if its elements lie one behind the other, as those
/// of nearly all do. Returns whether they do.
static bool setPlainBytes(View &view, Type type, int64_t base) {
  auto memref = dyn_cast<MemRefType>(type);
  std::optional<int64_t> bytes = memref ? schedule::getByteSize(memref) : std::nullopt;
  int64_t end;
  if (!bytes || *bytes == 0 || base < 0 || llvm::AddOverflow(base, *bytes, end))
    return false;
  view.bytes = StridedBytes{base, *bytes, {}};
  view.range = ByteRange{base, end};
  view.exact = true;
  return true;
}

/// Returns the memref that a view was made from; null for what is no view.
static Value getSource(Value memref) {
  if (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    return view.getViewSource();
  if (auto transpose = memref.getDefiningOp<memref::TransposeOp>())
    return transpose.getIn();
  return {};
}

View weir::getView(Value memref) {
  SmallVector<Operation *> chain;
  while (Value source = getSource(memref)) {
    chain.push_back(memref.getDefiningOp());
    memref = source;
  }
  View view;
  view.allocation = getAllocation(memref);
  auto setSomewhere = [&](std::optional<ByteRange> within) {
    view.range = within;
    view.exact = false;
    view.bytes = std::nullopt;
  };
  if (chain.empty() && setPlainBytes(view, memref.getType(), 0))
    return view;
  APInt only;
  if (auto part = chain.size() == 1 ? dyn_cast<memref::ViewOp>(chain.front()) : memref::ViewOp();
      part && matchPattern(part.getByteShift(), m_ConstantInt(&only)) &&
      setPlainBytes(view, part.getType(), only.getSExtValue()))
    return view;
  std::optional<int64_t> base = 0;
  std::optional<Layout> layout = getLayout(memref.getType());
  if (chain.empty() || !isa<memref::ViewOp>(chain.back())) // which has bytes of its own
    setBytes(view, layout, memref.getType(), *base);
  for (Operation *op : llvm::reverse(chain)) {
    std::optional<Layout> source = layout;
    layout = getLayout(op, source);
    Type type = op->getResult(0).getType();
    if (isa<memref::CastOp, memref::MemorySpaceCastOp, memref::AssumeAlignmentOp,
            memref::ExpandShapeOp, memref::CollapseShapeOp, memref::ReshapeOp, memref::TransposeOp>(
            op))
      continue; // the same bytes
    if (auto subview = dyn_cast<memref::SubViewOp>(op)) {
      View part = view;
      if (base)
        setBytes(part, source ? getWholeLayout(subview, *source) : layout, type, *base);
      if (base && part.range)
        view = part;
      else
        setSomewhere(view.range);
    } else if (isa<memref::ReinterpretCastOp, memref::ExtractStridedMetadataOp>(op)) {
      if (base)
        setBytes(view, layout, type, *base);
      else
        setSomewhere(std::nullopt);
    } else {
      APInt shift;
      auto byteView = dyn_cast<memref::ViewOp>(op);
      if (!byteView || !base || !matchPattern(byteView.getByteShift(), m_ConstantInt(&shift)) ||
          shift.isNegative() || llvm::AddOverflow(*base, shift.getSExtValue(), *base))
        base = std::nullopt;
      setSomewhere(std::nullopt);
      if (base)
        setBytes(view, layout, type, *base);
    }
  }
  return view;
}

size_t Views::getNumber(Value memref) {
  auto [number, isNew] = numbers.try_emplace(memref, views.size());
  if (isNew)
    views.push_back(getView(memref));
  return number->second;
}

const View &Views::get(Value memref) { return views[getNumber(memref)]; }

/// Returns the address space of an allocation; std::nullopt when its type does
/// not tell.
static std::optional<gpu::AddressSpace> getAddressSpace(const AllocationRef &allocation) {
  auto type = dyn_cast_or_null<BaseMemRefType>(allocation.value.getType());
  auto space = type ? dyn_cast_or_null<gpu::AddressSpaceAttr>(type.getMemorySpace()) : nullptr;
  return space ? std::optional(space.getValue()) : std::nullopt;
}

Sharing weir::compare(const AllocationRef &first, const AllocationRef &second) {
  using Kind = AllocationRef::Kind;
  if (first == second)
    return Sharing::Overlap;
  std::optional<gpu::AddressSpace> space = getAddressSpace(first), other = getAddressSpace(second);
  if (space && other && *space != *other)
    return Sharing::Disjoint;
  auto isEither = [&](Kind kind) { return first.kind == kind || second.kind == kind; };
  if (isEither(Kind::Unknown))
    return Sharing::Unknown;
  // No argument can be memory that the function allocated.
  if (!isEither(Kind::Argument) || isEither(Kind::Local) || first.noAlias || second.noAlias)
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
  // A view that is somewhere in a range is assumed to fill it.
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
