//===- Link.h - One plan of the plans of segments ---------------*- C++ -*-===//
//
// A segment is a function without loops: what runs before a loop, its body, or what runs behind
// it. Its plan knows nothing of the others; here they get common memory, barriers and loops.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ORDER_LINK_H
#define WEIR_ORDER_LINK_H

#include "weir/Artifact/Plan.h"

#include <vector>

namespace weir {

/// A value that a loop carries; numbers of values between segments.
struct LinkedCarry {
  int64_t init = 0;   ///< before the first trip, of which this is the only use
  int64_t inside = 0; ///< in a trip
  int64_t next = 0;   ///< at the end of a trip
  int64_t after = 0;  ///< behind the loop
  size_t copy = 0;    ///< the segment that copies it
};

/// A segment, or a loop of steps.
struct LinkedStep {
  size_t segment = 0;
  std::vector<int64_t> arguments, results; ///< of the segment: numbers of values
  bool isLoop = false;
  int64_t trips = 0;
  int64_t flag = -1; ///< index of the carried value that decides whether a trip follows, or -1
  std::vector<LinkedCarry> carried;
  std::vector<LinkedStep> steps;
};

struct LinkedProgram {
  EntrySpec entry;
  std::vector<int64_t> argumentBytes; ///< on the device
  std::vector<Plan> segments;
  std::vector<LinkedStep> steps;
  size_t values = 0; ///< between segments; the first ones are the entry's arguments
  std::vector<int64_t> results;
};

/// Returns the plan of the entry.
///
/// Values that a segment updates in place share bytes, and so do the values of a loop before it, in
/// a trip and behind it. If a trip's value is not made there, it is copied to them at the end of
/// the trip. A value is live from its first use to its last; if it enters or leaves a loop,
/// throughout that loop.
///
/// Barriers are the fewest between loops' edges, and one at each edge: before a loop, and at the
/// end of its body, for the hazards that cross it. The latter are also those between a trip and the
/// next one.
Plan linkPlans(const LinkedProgram &program);

} // namespace weir

#endif // WEIR_ORDER_LINK_H
