//===- Aliasing.h - Which bytes of which allocation a memref names -*- C++ -*-//

#ifndef WEIR_ANALYSIS_ALIASING_H
#define WEIR_ANALYSIS_ALIASING_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "weir/Order/StridedBytes.h"

#include <deque>

namespace weir {

/// Returns the smallest range that holds every element of `view`.
///
/// Shapes: any rank; a dimension of size 0 gives an empty range, rank 0 gives
///         one element.
/// Units:  `view` counts its offset and strides in elements, the result in
///         bytes.
/// Errors: failure, with no diagnostic, when the shape, a stride or the offset
///         is dynamic, the element has no size in bytes, or the range begins
///         before 0 or ends beyond 2^63 - 1. The caller then assumes the whole
///         allocation.
/// Source: "Strided Layout" of `memref`, mlir/IR/BuiltinTypes.td.
mlir::FailureOr<ByteRange> getByteRange(mlir::MemRefType view);

/// Where a memref's bytes come from.
struct AllocationRef {
  enum class Kind {
    Local,    ///< allocated by the function, or workgroup or private memory that
              ///< its kernel declares
    Global,   ///< memref.global, whoever asks for it
    Entry,    ///< argument of a function with `weir.entry`: shares with no other
    Argument, ///< argument of another function: may share bytes with others
    Unknown,  ///< not understood: may be anything
  } kind = Kind::Unknown;
  mlir::Value value;       ///< the allocation, the argument or the unknown value
  mlir::StringAttr symbol; ///< of a global, else null
  /// An `llvm.noalias` argument: what is written through it or its views is
  /// touched through no other argument and no global.
  bool noAlias = false;

  bool operator==(const AllocationRef &other) const {
    return symbol ? symbol == other.symbol : !other.symbol && value == other.value;
  }
};

/// Bytes of one allocation.
struct View {
  AllocationRef allocation;
  /// Holds every byte of the view; std::nullopt when it could be anywhere in
  /// the allocation.
  std::optional<ByteRange> range;
  /// Every byte of `range` belongs to the view (it is not only a hull).
  bool exact = false;
  /// Which bytes of `range` belong to the view, in canonical form; std::nullopt
  /// when that is not known.
  std::optional<StridedBytes> bytes;
};

/// Follows `memref` through views, subviews and casts to its allocation.
View getView(mlir::Value memref);

/// What `getView` said, remembered: an analysis of a module, good as long as its
/// views and allocations stay. References stay good as long as this does.
class Views {
public:
  Views() = default;
  explicit Views(mlir::Operation *) {}

  const View &get(mlir::Value memref);

  /// A number of this value alone, from 0 on.
  size_t getNumber(mlir::Value memref);

private:
  /// Values of a long list lie at even distances, which the usual hash of a pointer
  /// keeps: most lookups would probe. Those of a page are neighbours here, too, for
  /// a list's operands are mostly near each other.
  struct ValueInfo : llvm::DenseMapInfo<mlir::Value> {
    static unsigned getHashValue(mlir::Value value) {
      uintptr_t place = uintptr_t(value.getAsOpaquePointer());
      uintptr_t page = place >> 12, inPage = place % 4096;
      return unsigned((page * 0x9e3779b97f4a7c15) >> 32) + unsigned(inPage / 32);
    }
  };
  llvm::DenseMap<mlir::Value, size_t, ValueInfo> numbers;
  std::deque<View> views;
};

/// Whether two allocations share bytes. `Overlap` says that they are the same.
/// Different `#gpu.address_space`s never share.
Sharing compare(const AllocationRef &first, const AllocationRef &second);

/// Whether two views share bytes. A view of no bytes is disjoint from all.
/// Both belong to one function.
Sharing compare(const View &first, const View &second);

/// Whether it is proved that every byte of `part` belongs to `whole`.
bool covers(const View &whole, const View &part);

} // namespace weir

#endif // WEIR_ANALYSIS_ALIASING_H
