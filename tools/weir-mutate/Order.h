//===- Order.h - Which commands end before which begin ----------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_ORDER_H
#define WEIR_TOOLS_WEIR_MUTATE_ORDER_H

#include "weir/Artifact/Plan.h"

#include <cstddef>
#include <vector>

namespace weir::mutate {

/// The relation of docs/certificate.md, section Time, pair by pair.
class Order {
public:
  /// Without `barriers`: what signals and waits order by themselves.
  explicit Order(const Plan &plan, bool barriers = true);

  /// Whether one command ends before another begins; numbers among all commands.
  bool isOrdered(size_t from, size_t to) const { return past[to][from]; }

private:
  std::vector<std::vector<bool>> past; ///< by command: which have ended
};

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_ORDER_H
