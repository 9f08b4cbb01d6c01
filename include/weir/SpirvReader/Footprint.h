//===- Footprint.h - Bytes that a kernel's instructions touch ---*- C++ -*-===//
//
// Answers from address maps. `Unknown` is always right; the work is bounded.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_SPIRVREADER_FOOTPRINT_H
#define WEIR_SPIRVREADER_FOOTPRINT_H

#include "weir/SpirvReader/AddressMap.h"

#include <string>

namespace weir::spv {

enum class Answer { No, Yes, Unknown };

/// Bytes [begin, end) of a root that an access stays in.
struct Reach {
  int64_t begin = 0, end = 0;
  bool isExact = false; ///< the first and the last byte are surely touched
};

/// None when it may be anywhere.
std::optional<Reach> getReach(const AddressMap &map, const MemoryAccess &access);

/// Whether each of the binding's first `bytes` bytes is surely written, or with
/// `reads`, read. `No` comes with the first byte that no access touches.
struct Coverage {
  Answer answer = Answer::Unknown;
  int64_t byte = -1;
};
Coverage getCoverage(const AddressMap &map, uint32_t binding, int64_t bytes, bool reads);

/// Whether `target` may be written over the bytes of `source`: no invocation reads a
/// byte of `source` after one has written that byte of `target`, unless the same
/// instruction order or a barrier puts the read first. `why` names two accesses where
/// they may not.
struct Overwrite {
  Answer answer = Answer::Unknown;
  const MemoryAccess *read = nullptr, *write = nullptr; ///< where it isn't `Yes`, if there are two
  int64_t byte = -1;                                    ///< that both touch, when it is `No`
};
Overwrite mayOverwrite(const AddressMap &map, uint32_t source, uint32_t target);

} // namespace weir::spv

#endif // WEIR_SPIRVREADER_FOOTPRINT_H
