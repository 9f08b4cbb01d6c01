//===- Points.h - Executions of an instruction, one by one ------*- C++ -*-===//

#ifndef WEIR_LIB_SPIRVREADER_POINTS_H
#define WEIR_LIB_SPIRVREADER_POINTS_H

#include "weir/CodeProofs/AddressMap.h"

#include <functional>

namespace weir::spv {

/// One execution: values of atoms, by number.
using Point = std::vector<int64_t>;

/// Executions of an access that are visited one by one where digits do not tell.
inline constexpr int64_t maxPoints = 1 << 14;

/// Visits executions of an access: all, if they are no more than `most`, else some of
/// them: half of an id's or counter's values are its first ones, next to each other, the
/// others lie evenly up to its last. Leaves executions out that a guard excludes.
class Points {
public:
  Points(const AddressMap &map, const MemoryAccess &access, int64_t most);

  /// Whether the access has an address and no number in it is open.
  bool canVisit() const { return isKnown; }
  bool areAll() const { return isKnown && isWhole; }
  /// `visit` returns whether to go on.
  void forEach(const std::function<bool(const Point &, int64_t address)> &visit) const;

private:
  void collect(const Affine &sum);
  /// The value of `numbers[i]` that is visited after `before` others.
  int64_t getValue(size_t i, int64_t before) const;

  const AddressMap &map;
  const MemoryAccess &access;
  std::vector<uint32_t> numbers; ///< atoms that are ids and counters
  std::vector<int64_t> counts;   ///< values of each that are visited
  bool isKnown = false, isWhole = true;
};

} // namespace weir::spv

#endif // WEIR_LIB_SPIRVREADER_POINTS_H
