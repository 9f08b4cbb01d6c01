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
  std::vector<int64_t> values;
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

/// Returns places where no value has a byte of another, in one wave or in several.
ArenaPlan planWithoutReuse(const OrderProblem &problem);

} // namespace weir

#endif // WEIR_ORDER_PLACE_H
