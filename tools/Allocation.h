//===- Allocation.h - How a tool asks the system for memory -----*- C++ -*-===//

#ifndef WEIR_TOOLS_ALLOCATION_H
#define WEIR_TOOLS_ALLOCATION_H

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace weir {

/// Keeps what is freed, and asks for much at once: passes make and drop tables of
/// megabytes in turn, and each page that the system gives anew is a fault.
inline void keepFreedMemory() {
#if defined(__GLIBC__)
  constexpr int mebibyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * mebibyte);
  mallopt(M_TRIM_THRESHOLD, 512 * mebibyte);
  mallopt(M_TOP_PAD, 16 * mebibyte);
#endif
}

} // namespace weir

#endif // WEIR_TOOLS_ALLOCATION_H
