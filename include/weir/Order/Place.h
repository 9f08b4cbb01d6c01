//===- Place.h - Which bytes each value gets --------------------*- C++ -*-===//
//
// A value lives from the first wave that uses it to the last, both included: commands of one
// wave may run at the same time in any order. Values that pass their bytes on by permission make
// a chain, which is placed as one. A chain that ends in a result lies in the result, or in the
// donated argument that it begins with.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ORDER_PLACE_H
#define WEIR_ORDER_PLACE_H

#include "weir/Order/Donation.h"
#include "weir/Planner/Planner.h"

#include <vector>

namespace weir {

/// Allocation `target` may take the bytes of `source`.
struct Permission {
  int64_t target = 0, source = 0;
};

/// Returns the permissions among the pairs.
std::vector<Permission> getPermissions(const OrderProblem &problem,
                                       const std::vector<DonationPair> &pairs);

/// Values that take each other's bytes in turn; numbers of allocations.
struct Chain {
  ShortVector<int64_t, 2> values;
  int64_t argument = -1; ///< donated, the first to have the bytes; -1: none
  int64_t result = -1;   ///< the last to have them, outside the arena; -1: none
};

struct ArenaPlan {
  std::vector<Chain> chains;
  MemoryPlan plan; ///< by chain; those with a result need nothing of the arena
};

/// Returns places for the values that commands use in their waves. Each value gives its bytes
/// once and takes them once; first whatever leads from a donated argument to a result. Leaves out
/// permissions that would make the arena larger than it is without. `effort` is the planner's
/// for up to 64 chains; more chains get less.
/// Errors: those of `planMemory`.
ArenaPlan planArena(const OrderProblem &problem, const std::vector<Permission> &permissions,
                    int64_t effort);

/// A slot of an arena, and the first and last command that use it.
struct SlotUsers {
  int64_t arena = 0; ///< an allocation
  ByteRange range;   ///< in the arena
  int64_t first = 0, last = 0;
};

/// Returns the waves of commands whose values have places. No two slots that share a byte are used
/// in one wave, whichever bytes of them are touched.
std::vector<int64_t> getPlacedWaves(const CommandAccesses &addresses,
                                    const std::vector<SlotUsers> &slots);

/// Waves of commands whose values have places.
struct PlacedWaves {
  std::vector<int64_t> waves;                     ///< by command
  std::vector<std::pair<int64_t, int64_t>> lives; ///< first and last wave, by chain in the arena
};

/// Returns the waves of commands whose values lie in the plan's places.
PlacedWaves getPlacedWaves(const OrderProblem &problem, const ArenaPlan &plan);

/// Returns places where no value has a byte of another, in one wave or in several.
ArenaPlan planWithoutReuse(const OrderProblem &problem);

} // namespace weir

#endif // WEIR_ORDER_PLACE_H
