//===- Shadow.h - The latest accesses to each byte --------------*- C++ -*-===//
//
// A cell stands for one granule of bytes: the largest power of two that divides every access to
// the memory. A cell's bytes are always touched together, so the shadow is as exact as one per
// byte.
//
// Two accesses of one dispatch are ordered if they are by one invocation, or by one workgroup
// with a barrier between (barriers passed are counted as phases); accesses of two dispatches,
// if the plan orders the dispatches. A cell keeps enough reads that a write which races with
// any read races with one that is kept. Atomic operations count as reads here: a plain access
// that races with any atomic of a dispatch races with one that is kept.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SIM_SHADOW_H
#define WEIR_LIB_SIM_SHADOW_H

#include <cstdint>

namespace weir::sim {

/// One access inside a dispatch.
struct Touch {
  uint32_t workgroup = 0;  ///< counted along x first
  uint32_t phase = 0;      ///< number of barriers that the workgroup had passed
  uint16_t invocation = 0; ///< of the workgroup
  uint16_t site = 0;       ///< number of the load or store; 0: no access
};

inline bool areConcurrent(const Touch &a, const Touch &b) {
  return a.workgroup != b.workgroup || (a.invocation != b.invocation && a.phase == b.phase);
}

/// The latest accesses to a cell. Dispatches are numbered from 1 over all runs; 0 is none.
struct Cell {
  /// The latest writing and reading dispatches. The reads came after the write, or the reader
  /// is the writer.
  uint32_t writer = 0, reader = 0;
  Touch write;
  Touch reads[2];      ///< of `reader`
  uint32_t others = 0; ///< list of other dispatches that read and are not ordered with `reader`

  /// Keeps a read of the latest reading dispatch.
  void addRead(const Touch &touch) {
    if (reads[0].site == 0) {
      reads[0] = touch;
    } else if (reads[1].site && reads[0].workgroup != reads[1].workgroup) {
      // Two workgroups suffice: any writer differs from one of them.
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
