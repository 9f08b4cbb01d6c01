//===- Allocation.h - malloc's settings for tools ---------------*- C++ -*-===//

#ifndef WEIR_TOOLS_ALLOCATION_H
#define WEIR_TOOLS_ALLOCATION_H

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace weir {

/// Makes malloc keep freed memory and grow in large steps: passes allocate and free tables of
/// megabytes in turn, and each page new from the system costs a fault.
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
