//===- Points.h - Executions of an instruction, one by one ------*- C++ -*-===//

#ifndef WEIR_LIB_CODEPROOFS_POINTS_H
#define WEIR_LIB_CODEPROOFS_POINTS_H

#include "weir/CodeProofs/AddressMap.h"

#include <functional>
#include <optional>
#include <utility>

namespace weir::spv {

/// One execution: values of atoms, by number.
using Point = std::vector<int64_t>;

/// Returns the index of an execution's invocation in its workgroup. Needs: local ids alone identify
/// invocations.
int64_t getInvocation(const AddressMap &map, const Point &point);

/// Max number of executions of an access visited one by one if digits give no answer.
inline constexpr int64_t maxPoints = 1 << 14;

/// Visits executions of an access: all if there are at most `max`, else a sample: half of the
/// values of each id or counter are its first ones, the others are spread evenly up to its
/// last. Skips executions that a guard excludes.
class Points {
public:
  /// With `ofAddress`, ids and counters that are not in the address or guards stay 0.
  Points(const AddressMap &map, const MemoryAccess &access, int64_t max, bool ofAddress = false);

  /// Whether the access has an address without unknown numbers.
  bool canVisit() const { return isKnown; }
  bool areAll() const { return isKnown && isWhole; }
  /// Calls `visit` for each execution until it returns false.
  void forEach(const std::function<bool(const Point &, int64_t address)> &visit) const;

private:
  void collect(const Affine &sum);
  /// Returns the value of `numbers[i]` that is visited after `before` others.
  int64_t getValue(size_t i, int64_t before) const;

  const AddressMap &map;
  const MemoryAccess &access;
  std::vector<uint32_t> numbers; ///< atoms that are ids and counters
  std::vector<int64_t> counts;   ///< number of values of each that are visited
  bool isKnown = false, isWhole = true;
};

/// Returns the first byte and the end of what an access touches for any values of its ids and
/// counters, whether they come together or not; none if it has too many.
std::optional<std::pair<int64_t, int64_t>> getExtent(const AddressMap &map,
                                                     const MemoryAccess &access);

} // namespace weir::spv

#endif // WEIR_LIB_CODEPROOFS_POINTS_H
