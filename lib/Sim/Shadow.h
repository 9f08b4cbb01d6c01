//===- Shadow.h - Who touched which bytes last ------------------*- C++ -*-===//
//
// A cell stands for the bytes of one granule: the largest power of two that divides
// every access to the memory, so that a cell's bytes are always touched together
// and nothing is lost against a shadow for each byte.
//
// Two accesses are ordered when they are of one invocation, or of one workgroup with
// a barrier between, which is what phases count; across dispatches, when the plan
// orders those. A cell keeps enough readers that a write which races with any
// reader races with one that is kept. Atomic operations are among them: a plain access
// that races with any of a dispatch's races with one that is kept.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SIM_SHADOW_H
#define WEIR_LIB_SIM_SHADOW_H

#include <cstdint>

namespace weir::sim {

/// One access inside a dispatch.
struct Touch {
  uint32_t workgroup = 0;  ///< counted along x first
  uint32_t phase = 0;      ///< barriers that the workgroup had passed
  uint16_t invocation = 0; ///< of the workgroup
  uint16_t site = 0;       ///< the load or store; 0: there was no access
};

inline bool areConcurrent(const Touch &a, const Touch &b) {
  return a.workgroup != b.workgroup || (a.invocation != b.invocation && a.phase == b.phase);
}

/// Dispatches are numbered from 1 over all invocations; 0 is none.
struct Cell {
  /// The latest; the reader's reads came after the write, or it is the writer.
  uint32_t writer = 0, reader = 0;
  Touch write;
  Touch reads[2];      ///< of `reader`
  uint32_t others = 0; ///< a list of more dispatches that read, unordered with `reader`

  /// Keeps a read of the latest reading dispatch.
  void addRead(const Touch &touch) {
    if (reads[0].site == 0) {
      reads[0] = touch;
    } else if (reads[1].site && reads[0].workgroup != reads[1].workgroup) {
      // Whoever writes is of another workgroup than one of the two.
    } else if (touch.workgroup != reads[0].workgroup) {
      reads[1] = touch;
    } else {
      if (areConcurrent(reads[0], touch))
        reads[1] = reads[0];
      reads[0] = touch;
    }
  }
};

} // namespace weir::sim

#endif // WEIR_LIB_SIM_SHADOW_H
