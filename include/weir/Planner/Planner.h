//===- Planner.h - Packs buffers into memory --------------------*- C++ -*-===//
//
// The whole interface of libweir_planner. Nothing in it needs MLIR. The same
// input gives the same plan on every machine: effort is counted in steps of the
// solvers, never in time.
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
// One arena, at once
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
  int64_t boundBytes = 0;       ///< no arena for these lifetimes has fewer
  int64_t pinnedBytes = 0;      ///< the arena if every value had bytes of its own
};

/// Packs `values` so that no two that are live in a common wave share a byte.
/// Greedy: larger values first, each into the smallest gap that holds it. With
/// `noReuse` every value gets bytes of its own. The same input gives the same
/// plan. Cost: for each value, the values live with it, times a logarithm.
/// Where that is more than the bound, `planBuffers` goes on with `effort`.
///
/// Errors: `Error` on a negative size, an alignment that is no power of two,
///         an interval that ends before it begins, or sizes whose sum exceeds
///         2^63 - 1 bytes.
MemoryPlan planMemory(const std::vector<Lifetime> &values, bool noReuse, int64_t effort = 0);

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

/// No capacity, and the end of whatever there is.
inline constexpr int64_t unlimitedBytes = std::numeric_limits<int64_t>::max();

/// The closed interval of waves [first, last] in which bytes [begin, end) of a
/// buffer hold something, counted from the buffer's first; an end behind the
/// buffer means its end.
struct LiveRange {
  int64_t first = 0, last = 0;
  int64_t begin = 0, end = unlimitedBytes;
};

struct Buffer {
  std::string name; ///< for messages
  int64_t bytes = 0;
  int64_t alignment = 1; ///< of its offset, any positive number
  /// Several when it is recomputed, or has gaps in which others may use its
  /// bytes. Not two of them hold the same byte in the same wave.
  std::vector<LiveRange> live;
  size_t space = 0;
  std::optional<int64_t> fixed; ///< the only offset it can have
  std::optional<int64_t> hint;  ///< an offset to try
};

struct MemorySpace {
  std::string name;
  int64_t capacity = unlimitedBytes;
};

/// Buffers that follow each other without others between them, each at the
/// next multiple of `alignment` and of its own.
struct PackedGroup {
  std::vector<size_t> buffers;
  int64_t alignment = 256;
};

/// With one barrier more in `wave`, buffers `early` are over before it and
/// buffers `late` begin behind it.
struct WaveSplit {
  int64_t wave = 0;
  std::vector<size_t> early; ///< their last wave is `wave`
  std::vector<size_t> late;  ///< their first wave is `wave`
};

struct PlanProblem {
  std::vector<Buffer> buffers;
  std::vector<MemorySpace> spaces = {{}};
  /// Buffers that have one offset and may be live together there: what passes
  /// its bytes on in place.
  std::vector<std::vector<size_t>> chains;
  std::vector<PackedGroup> groups;
  std::vector<WaveSplit> splits;
};

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

struct PlanOptions {
  /// Steps of local search and nodes of the exact search, for each space. 0
  /// leaves the greedy solvers.
  int64_t effort = 200'000;
  /// Goes on when the plan fits; else the search ends there. A space without
  /// capacity is always minimized.
  bool minimize = true;
  /// Adds hill climbing over orders, from this seed.
  std::optional<uint64_t> seed;
  /// Splits of waves are taken when they save this many bytes each; 0 takes none.
  int64_t bytesPerSplit = 0;
};

struct SpacePlan {
  int64_t peak = 0;    ///< the end of the last byte used
  int64_t bound = 0;   ///< no plan has a lower peak
  int64_t maxLive = 0; ///< bytes live in the fullest wave
  int64_t pinned = 0;  ///< the peak if no two buffers shared a byte
  bool fits = true;    ///< in the capacity
  std::string solver;  ///< whose plan this is, where it is the largest
  int64_t steps = 0;   ///< of the effort that were used
  int64_t getGap() const { return peak - bound; }
  bool isOptimal() const { return peak == bound; }
};

struct BufferPlan {
  std::vector<int64_t> offsets; ///< one per buffer, in their order
  std::vector<SpacePlan> spaces;
  std::vector<size_t> splits; ///< those of the problem that were taken: a barrier each
  int64_t splitBytes = 0;     ///< what they saved, of the peaks of all spaces
};

/// Packs the buffers: in no wave do two of them hold the same byte. A space too
/// small for the best plan found has `fits` false; its offsets are those of that
/// plan. Where `bound` exceeds the capacity there is none that fits.
///
/// Cost: n log n, and for up to some ten millions of pairs of buffers that are
///       live together, what the pairs and the effort cost.
/// Errors: `Error` on negative sizes, empty or overlapping live ranges,
///       alignments below 1, sums of bytes above 2^62, buffers and spaces that
///       are not there, chains and groups that contradict each other, and fixed
///       offsets that are not aligned, exceed the capacity or collide.
BufferPlan planBuffers(const PlanProblem &problem, const PlanOptions &options = {});

/// Checks a plan, with no code of the solvers.
/// Errors: `Error` on the first thing that is wrong.
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

/// Draws the bytes of one space over waves, an SVG.
std::string drawPlan(const PlanProblem &problem, const BufferPlan &plan, size_t space = 0);

} // namespace weir

#endif // WEIR_PLANNER_PLANNER_H
