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

/// The origin of a memref's bytes.
struct AllocationRef {
  enum class Kind {
    Local,    ///< allocated by the function, or declared by its kernel as workgroup or private
              ///< memory
    Global,   ///< a memref.global
    Entry,    ///< argument of a function with `weir.entry`: shares with no other
    Argument, ///< argument of another function: may share bytes with others
    Unknown,  ///< not understood: may be anything
  } kind = Kind::Unknown;
  mlir::Value value;       ///< the allocation, the argument or the unknown value
  mlir::StringAttr symbol; ///< of a global, else null
  /// Whether it is an `llvm.noalias` argument: bytes written through it or its views are touched
  /// through no other argument and no global.
  bool noAlias = false;

  bool operator==(const AllocationRef &other) const {
    return symbol ? symbol == other.symbol : !other.symbol && value == other.value;
  }
};

/// Bytes of one allocation.
struct View {
  AllocationRef allocation;
  /// A range that holds every byte of the view; std::nullopt if that could be anywhere in the
  /// allocation.
  std::optional<ByteRange> range;
  /// Whether every byte of `range` belongs to the view, so that it is not only a hull.
  bool exact = false;
  /// The bytes of `range` that belong to the view, in canonical form; std::nullopt if that is not
  /// known.
  std::optional<StridedBytes> bytes;
};

/// Returns the bytes of `memref`, followed through views, subviews and casts to its allocation.
View getView(mlir::Value memref);

/// Remembers the answers of `getView`. An analysis of a module, valid as long as its views and
/// allocations stay. The references that it returns are valid as long as it lives.
class Views {
public:
  Views() = default;
  explicit Views(mlir::Operation *) {}

  const View &get(mlir::Value memref);

  /// Returns a number that no other value has, counted from 0.
  size_t getNumber(mlir::Value memref);
  /// Returns the view of the value with this number.
  const View &get(size_t number) const { return views[number]; }

private:
  /// A hash for values of a long list. These lie at even distances in memory, which the usual hash
  /// of a pointer keeps, so that most lookups would probe. Values of one page stay neighbours,
  /// since a list's operands are mostly near each other.
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

/// Returns whether two allocations share bytes; `Overlap` if they are the same. Different
/// `#gpu.address_space`s never share bytes.
Sharing compare(const AllocationRef &first, const AllocationRef &second);

/// Returns whether two views of one function share bytes. A view of no bytes is disjoint from all.
Sharing compare(const View &first, const View &second);

/// Whether it is proved that every byte of `part` belongs to `whole`.
bool covers(const View &whole, const View &part);

} // namespace weir

#endif // WEIR_ANALYSIS_ALIASING_H
