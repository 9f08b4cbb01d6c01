//===- Cover.h - The cheapest places that meet every set --------*- C++ -*-===//

#ifndef WEIR_ORDER_COVER_H
#define WEIR_ORDER_COVER_H

#include <cstdint>
#include <vector>

namespace weir {

struct Cover {
  std::vector<unsigned> chosen; ///< ascending
  bool cheapest = true;         ///< proved so
};

/// Chooses places so that every set has one, at the least sum of costs.
///
/// Sets hold numbers of places, ascending, none empty; costs are positive.
/// The search visits at most `effort` nodes, then takes the best it has seen,
/// from which no place can be dropped. The same input gives the same answer.
Cover findCover(const std::vector<std::vector<unsigned>> &sets, const std::vector<int64_t> &costs,
                unsigned effort = 20000);

} // namespace weir

#endif // WEIR_ORDER_COVER_H
