//===- Footprint.h - Bytes that a kernel's instructions touch ---*- C++ -*-===//
//
// Answers from address maps. `Unknown` is always right; the work is bounded.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_CODEPROOFS_FOOTPRINT_H
#define WEIR_CODEPROOFS_FOOTPRINT_H

#include "weir/CodeProofs/AddressMap.h"

namespace weir::spv {

/// Bytes [begin, end) of a root that an access stays in.
struct Reach {
  int64_t begin = 0, end = 0;
  bool isExact = false; ///< the first and the last byte are surely touched
};

/// None when it may be anywhere. Where it might leave [0, bytes) executions are looked
/// at one by one, if they are few.
std::optional<Reach> getReach(const AddressMap &map, const MemoryAccess &access,
                              int64_t bytes = maxAddress);

/// Whether no execution of the one access touches a byte that one of the other does, by
/// whichever invocations: `false` says little.
bool areApart(const AddressMap &map, const MemoryAccess &first, const MemoryAccess &second);

/// Bytes [begin, end).
struct ByteRange {
  int64_t begin = 0, end = 0;
  bool operator==(const ByteRange &) const = default;
};

/// Bytes of a binding that are written, or with `reads`, read, each in order and apart.
struct Touched {
  std::vector<ByteRange> certain;                 ///< that surely are
  std::optional<std::vector<ByteRange>> possible; ///< that may be; none: all
  std::vector<ByteRange> somewhere; ///< some byte of each surely is; which one data decides
};
Touched getTouched(const AddressMap &map, uint32_t binding, bool reads);

/// The first of the bytes [0, bytes) outside of all runs; -1 when there is none.
int64_t findHole(const std::vector<ByteRange> &runs, int64_t bytes);
/// Whether the runs, at `shift`, hold all of the range.
bool doCover(const std::vector<ByteRange> &runs, int64_t shift, ByteRange range);
/// Whether any byte at `shift` + one of the first ones is one of the others, inside of
/// [begin, end).
bool doMeet(const std::vector<ByteRange> &first, int64_t shift,
            const std::vector<ByteRange> &second, int64_t begin, int64_t end);

} // namespace weir::spv

#endif // WEIR_CODEPROOFS_FOOTPRINT_H
