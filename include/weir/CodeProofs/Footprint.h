//===- Footprint.h - Bytes that a kernel's instructions touch ---*- C++ -*-===//
//
// Computes the bytes that accesses touch, from address maps. `Unknown` is always a sound
// answer; the cost is bounded.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_CODEPROOFS_FOOTPRINT_H
#define WEIR_CODEPROOFS_FOOTPRINT_H

#include "weir/CodeProofs/AddressMap.h"

namespace weir::spv {

/// Bytes [begin, end) of a root that contain all executions of an access.
struct Reach {
  int64_t begin = 0, end = 0;
  bool isExact = false; ///< whether the first and the last byte are surely touched
  /// If it is not exact, the address of an execution that surely leaves [0, bytes), if one is
  /// found.
  std::optional<int64_t> outside = {};
};

/// Returns the bytes that an access may touch; none if it may touch any. If these exceed [0,
/// bytes), visits the executions one by one, if they are few.
std::optional<Reach> getReach(const AddressMap &map, const MemoryAccess &access,
                              int64_t bytes = maxAddress);

/// Whether no two executions of the two accesses, by any invocations, touch a common byte.
/// `false` means that they may.
bool areApart(const AddressMap &map, const MemoryAccess &first, const MemoryAccess &second);

/// A range of bytes [begin, end).
struct ByteRange {
  int64_t begin = 0, end = 0;
  bool operator==(const ByteRange &) const = default;
};

/// Bytes of a binding that are read or written. Ranges are sorted and disjoint.
struct TouchedBytes {
  std::vector<ByteRange> certain;                 ///< surely touched
  std::optional<std::vector<ByteRange>> possible; ///< may be touched; none: all bytes may be
  /// Ranges with some byte each that is touched: data decides which, or whether one is. Values in
  /// memory exist for which one is.
  std::vector<ByteRange> somewhere;
};
/// Returns the bytes of a binding that are written, or with `reads`, read.
TouchedBytes getTouched(const AddressMap &map, uint32_t binding, bool reads);

/// Returns the first of the bytes [0, bytes) that is in none of the runs, or -1.
int64_t findHole(const std::vector<ByteRange> &runs, int64_t bytes);
/// Whether the runs, moved by `shift`, cover the range.
bool doCover(const std::vector<ByteRange> &runs, int64_t shift, ByteRange range);
/// Whether `first` moved by `shift`, and `second`, have a common byte in [begin, end).
bool doMeet(const std::vector<ByteRange> &first, int64_t shift,
            const std::vector<ByteRange> &second, int64_t begin, int64_t end);

} // namespace weir::spv

#endif // WEIR_CODEPROOFS_FOOTPRINT_H
