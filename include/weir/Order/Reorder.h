//===- Reorder.h - An order with fewer waves --------------------*- C++ -*-===//

#ifndef WEIR_ORDER_REORDER_H
#define WEIR_ORDER_REORDER_H

#include "weir/Order/Hazards.h"

#include <vector>

namespace weir {

/// Dispatches in recorded order, and the wave of each.
struct WaveOrder {
  std::vector<int64_t> order; ///< the dispatches, as their numbers
  std::vector<int64_t> waves; ///< of `order[i]`; never decreases
};

/// Returns an order that keeps `hazards` (those of `accesses`, sorted as
/// `findHazards` sorts) and needs few waves.
///
/// `bytes[a]` are those that allocation `a` takes from the first wave that uses it
/// to the last; 0 of what lies elsewhere. A wave takes what is ready, the longest
/// chain of hazards behind it first, as long as no more than `limit` bytes are
/// live; what a wave needs at the least it gets all the same. With a limit that
/// never binds the waves are as many as dispatches in the longest chain of
/// hazards, and no order has fewer.
/// Cost: linear in hazards and accesses, times a logarithm; where the limit binds
/// a wave looks at no more than 64 dispatches that do not fit.
WaveOrder orderInFewWaves(const CommandAccesses &accesses, const std::vector<Hazard> &hazards,
                          const std::vector<int64_t> &bytes, int64_t limit);

} // namespace weir

#endif // WEIR_ORDER_REORDER_H
