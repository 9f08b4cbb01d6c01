//===- Planner.h - Packs values into one arena ------------------*- C++ -*-===//

#ifndef WEIR_PLANNER_PLANNER_H
#define WEIR_PLANNER_PLANNER_H

#include <cstdint>
#include <vector>

namespace weir {

/// A value that needs bytes of the arena in the closed interval of waves
/// [firstWave, lastWave].
struct Lifetime {
  int64_t bytes = 0;
  int64_t alignment = 256; ///< of its first byte, in bytes
  int64_t firstWave = 0, lastWave = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets; ///< one per value, in their order
  int64_t arenaBytes = 0;       ///< a multiple of every alignment used
  int64_t boundBytes = 0;       ///< no arena for these lifetimes has fewer
  int64_t pinnedBytes = 0;      ///< the arena if every value had bytes of its own
};

/// Packs `values` so that no two that are live in a common wave share a byte.
/// Greedy: larger values first, each into the smallest gap that holds it. With
/// `noReuse` every value gets bytes of its own. The same input gives the same
/// plan. Cost: for each value, the values live with it, times a logarithm.
///
/// Errors: `Error` on a negative size, an alignment that is no power of two,
///         an interval that ends before it begins, or sizes whose sum exceeds
///         2^63 - 1 bytes.
MemoryPlan planMemory(const std::vector<Lifetime> &values, bool noReuse);

} // namespace weir

#endif // WEIR_PLANNER_PLANNER_H
