//===- Planner.h - Packs buffers into memory --------------------*- C++ -*-===//
//
// The whole interface of libweir_planner, which does not need MLIR. The same input gives the
// same plan on every machine: effort is counted in steps of the solvers, not in time.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PLANNER_PLANNER_H
#define WEIR_PLANNER_PLANNER_H

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

//===----------------------------------------------------------------------===//
// Planning one arena
//===----------------------------------------------------------------------===//

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
  int64_t boundBytes = 0;       ///< lower bound of any arena for these lifetimes
  int64_t pinnedBytes = 0;      ///< size of the arena if no two values shared bytes
};

/// Packs `values` so that no two that are live in a common wave share a byte. Greedy: places
/// larger values first, each into the smallest gap that holds it. If the result is above the
/// lower bound, continues with `planBuffers` and `effort`. With `noReuse` no two values share
/// bytes. Without effort it may stop where the arena has `below` bytes: what is left is not placed
/// then. The same input gives the same plan. Cost of the greedy part: for each value, the number of
/// values live with it, times a logarithm.
///
/// Errors: `Error` on a negative size, an alignment that is not a power of two, an interval
///         that ends before it begins, or sizes whose sum exceeds 2^63 - 1 bytes.
MemoryPlan planMemory(const std::vector<Lifetime> &values, bool noReuse, int64_t effort = 0,
                      int64_t below = std::numeric_limits<int64_t>::max());

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

/// The capacity of an unlimited space, and the end of a live range of all bytes.
inline constexpr int64_t unlimitedBytes = std::numeric_limits<int64_t>::max();

/// The closed interval of waves [first, last] in which bytes [begin, end) of a buffer are live.
/// Bytes are counted from the buffer's first; an end behind the buffer means its end.
struct LiveRange {
  int64_t first = 0, last = 0;
  int64_t begin = 0, end = unlimitedBytes;
};

struct Buffer {
  std::string name; ///< for messages
  int64_t bytes = 0;
  int64_t alignment = 1; ///< of its offset; any positive number
  /// Several if it is recomputed, or has gaps in which others may use its bytes. No two of them
  /// contain the same byte in the same wave.
  std::vector<LiveRange> live;
  size_t space = 0;
  std::optional<int64_t> fixed; ///< the only offset it can have
  std::optional<int64_t> hint;  ///< an offset to try
};

struct MemorySpace {
  std::string name;
  int64_t capacity = unlimitedBytes;
};

/// Buffers that are adjacent, each at the next multiple of `alignment` and of its own
/// alignment.
struct PackedGroup {
  std::vector<size_t> buffers;
  int64_t alignment = 256;
};

/// An optional extra barrier that cuts `wave` in two: buffers `early` end before it, buffers
/// `late` begin after it.
struct WaveSplit {
  int64_t wave = 0;
  std::vector<size_t> early; ///< their last wave is `wave`
  std::vector<size_t> late;  ///< their first wave is `wave`
};

struct PlanProblem {
  std::vector<Buffer> buffers;
  std::vector<MemorySpace> spaces = {{}};
  /// Buffers with a common offset that may be live together there, such as values updated in
  /// place.
  std::vector<std::vector<size_t>> chains;
  std::vector<PackedGroup> groups;
  std::vector<WaveSplit> splits;
};

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

struct PlanOptions {
  /// Max number of steps of local search and nodes of exact search, for each space. With 0 only
  /// the greedy solvers run.
  int64_t effort = 200'000;
  /// Whether the search continues once the plan fits. A space without capacity is always
  /// minimized.
  bool minimize = true;
  /// The seed of an additional hill climbing over orders; none: no hill climbing.
  std::optional<uint64_t> seed;
  /// Min number of bytes that each split of a wave must save; 0: no splits.
  int64_t bytesPerSplit = 0;
};

struct SpacePlan {
  int64_t peak = 0;    ///< the end of the last byte used
  int64_t bound = 0;   ///< lower bound of any plan's peak
  int64_t maxLive = 0; ///< bytes live in the fullest wave
  int64_t pinned = 0;  ///< peak if no two buffers shared a byte
  bool fits = true;    ///< whether the peak is within the capacity
  std::string solver;  ///< solver that found the plan of the largest component
  int64_t steps = 0;   ///< number of steps of the effort used
  int64_t getGap() const { return peak - bound; }
  bool isOptimal() const { return peak == bound; }
};

struct BufferPlan {
  std::vector<int64_t> offsets; ///< one per buffer, in their order
  std::vector<SpacePlan> spaces;
  std::vector<size_t> splits; ///< indices of the splits taken; each costs a barrier
  int64_t splitBytes = 0;     ///< bytes that they save in the peaks of all spaces
};

/// Packs the buffers so that no two hold the same byte in the same wave. If the best plan found
/// exceeds a space's capacity, `fits` is false and the offsets are still those of that plan. If
/// `bound` exceeds the capacity, no plan fits.
///
/// Cost: n log n, plus linear in the pairs of buffers live together (up to about ten million)
/// and in the effort.
/// Errors: `Error` on negative sizes, empty or overlapping live ranges, alignments below 1,
///       sums of bytes above 2^62, missing buffers and spaces, chains and groups that
///       contradict each other, and fixed offsets that are not aligned, exceed the capacity or
///       collide.
BufferPlan planBuffers(const PlanProblem &problem, const PlanOptions &options = {});

/// Checks a plan, without code of the solvers. Errors: `Error` on the first violation.
void validatePlan(const PlanProblem &problem, const BufferPlan &plan);

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Reads MiniMalloc's CSV: columns id, lower, upper (exclusive; or start and
/// end, inclusive), size, and optionally alignment, hint (-1: none), gaps
/// ("a-b" or, with bytes that stay in use, "a-b@lo:hi") and offset (fixed; empty:
/// none). Beyond that, by name: space, chain, group (empty: none).
/// Errors: `Error` naming `where` and the line.
PlanProblem parsePlanCsv(std::string_view text, const std::string &where);

/// Prints the rows of `csv`, which parsePlanCsv read, with the plan's offsets.
std::string printPlanCsv(std::string_view csv, const BufferPlan &plan);

/// Draws the bytes of one space over waves; returns an SVG.
std::string drawPlan(const PlanProblem &problem, const BufferPlan &plan, size_t space = 0);

} // namespace weir

#endif // WEIR_PLANNER_PLANNER_H
