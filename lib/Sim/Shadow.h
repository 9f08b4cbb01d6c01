//===- Shadow.h - The latest accesses to each byte --------------*- C++ -*-===//
//
// A cell stands for one granule of bytes: the largest power of two that divides every access to
// the memory. A cell's bytes are always touched together, so the shadow is as exact as one per
// byte.
//
// Two accesses of one dispatch are ordered if they are by one invocation, or by one workgroup
// with a barrier between (barriers passed are counted as phases), or by lanes of one warp with a
// barrier of that warp between; accesses of two dispatches, if the plan orders the dispatches. A
// cell keeps enough reads that a write which races with any read races with one that is kept.
// Atomic operations count as reads here: a plain access that races with any atomic of a dispatch
// races with one that is kept.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SIM_SHADOW_H
#define WEIR_LIB_SIM_SHADOW_H

#include <cstdint>

namespace weir::sim {

/// Number of lanes of a warp, whose invocations are consecutive.
inline constexpr uint32_t warpLanes = 32;

/// One access inside a dispatch.
struct Touch {
  uint32_t workgroup = 0;  ///< counted along x first
  uint32_t phase = 0;      ///< number of barriers that the invocation had passed
  uint16_t invocation = 0; ///< of the workgroup
  uint16_t site = 0;       ///< number of the load or store; 0: no access
};

/// An access that takes place now, and what is known to have ended before it.
struct Now : Touch {
  /// Accesses of the workgroup in phases before this one have ended; `phase`, but for barriers of
  /// a warp.
  uint32_t begin = 0;
  /// The same for each lane of the own warp; null: `begin`.
  const uint32_t *lanes = nullptr;
};

inline bool areConcurrent(const Touch &a, const Now &b) {
  if (a.workgroup != b.workgroup)
    return true;
  if (a.invocation == b.invocation)
    return false;
  bool isOwn = b.lanes && a.invocation / warpLanes == b.invocation / warpLanes;
  return a.phase >= (isOwn ? b.lanes[a.invocation % warpLanes] : b.begin);
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
  void addRead(const Now &touch) {
    if (reads[0].site == 0) {
      reads[0] = touch;
    } else if (reads[1].site && reads[0].workgroup != reads[1].workgroup) {
      // Two workgroups suffice: any writer differs from one of them.
    } else if (touch.workgroup != reads[0].workgroup) {
      reads[1] = touch;
    } else if (!areConcurrent(reads[0], touch)) {
      reads[0] = touch;
    } else if (reads[1].site == 0 || !areConcurrent(reads[1], touch)) {
      reads[1] = touch;
    } else { // of two warps, if there are several: any writer differs from one of them
      if (getWarp(touch) == getWarp(reads[0]))
        reads[0] = reads[1];
      reads[1] = touch;
    }
  }

  static uint32_t getWarp(const Touch &touch) { return touch.invocation / warpLanes; }
};

} // namespace weir::sim

#endif // WEIR_LIB_SIM_SHADOW_H
