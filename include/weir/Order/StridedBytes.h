//===- StridedBytes.h - Bytes that strides step over, compared --*- C++ -*-===//

#ifndef WEIR_ORDER_STRIDEDBYTES_H
#define WEIR_ORDER_STRIDEDBYTES_H

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace weir {

/// Bytes [begin, end) of an allocation, counted from its aligned base.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool isEmpty() const { return begin == end; }
  bool overlaps(const ByteRange &other) const { return begin < other.end && other.begin < end; }
  bool operator==(const ByteRange &) const = default;
};

/// Three answers: proved disjoint, proved to share a byte, unknown.
enum class Sharing { Disjoint, Overlap, Unknown };

/// The bytes of all elements: element (i0, i1...) begins at byte
/// `begin + i0 * dims[0].stride + ...`, with 0 <= i < size.
struct StridedBytes {
  struct Dim {
    int64_t size = 0;
    int64_t stride = 0; ///< bytes; 0 and negative ones are fine
    auto operator<=>(const Dim &) const = default;
  };

  int64_t begin = 0;
  int64_t elementBytes = 0;
  std::vector<Dim> dims; ///< none: one element, as of most views

  bool operator==(const StridedBytes &) const = default;
  bool operator<(const StridedBytes &other) const;
};

/// Returns the same bytes with strides that are positive and rise, none of
/// which only continues another or the element: bytes that lie side by side
/// have no dims. No bytes at all are no dims and no element bytes, at the same
/// `begin`.
///
/// Errors: std::nullopt when a byte lies beyond 2^63 - 1 or before -2^63, all
///         of it spans more than 2^63 - 1 bytes or a dimension more than 2^62.
std::optional<StridedBytes> canonicalize(const StridedBytes &bytes);

/// Returns the smallest range that holds all bytes. `canonical` comes from
/// `canonicalize`.
ByteRange getHull(const StridedBytes &canonical);

/// Whether the two share a byte. No bytes are disjoint from all.
///
/// Exact: both answers are proofs. Unknown when an argument has no canonical
/// form, or a search of thousands of steps did not end; up to two strides that
/// nothing simplifies away are decided without search.
Sharing compare(const StridedBytes &first, const StridedBytes &second);

} // namespace weir

#endif // WEIR_ORDER_STRIDEDBYTES_H
