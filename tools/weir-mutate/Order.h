//===- Order.h - Which commands end before which begin ----------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_ORDER_H
#define WEIR_TOOLS_WEIR_MUTATE_ORDER_H

#include "weir/Artifact/Plan.h"

#include <cstddef>
#include <vector>

namespace weir::mutate {

/// The order relation of docs/certificate.md, section Time, for each pair of commands.
class Order {
public:
  /// Computes the relation. Without `barriers`, only signals and waits order commands.
  explicit Order(const Plan &plan, bool barriers = true);

  /// Whether command `from` ends before command `to` begins; indices into all commands.
  bool isOrdered(size_t from, size_t to) const { return past[to][from]; }

private:
  std::vector<std::vector<bool>> past; ///< by command: the commands that have ended
};

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_ORDER_H
