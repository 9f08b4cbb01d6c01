//===- MemoryBound.h - Bytes that no order can go below ---------*- C++ -*-===//

#ifndef WEIR_ORDER_MEMORYBOUND_H
#define WEIR_ORDER_MEMORYBOUND_H

#include "weir/Order/Recompute.h"

#include <vector>

namespace weir {

/// Bytes that are live in every order of a problem's commands and recipes, each carried out as
/// often as one likes, by the work that is added. docs/planner.md has the proof.
///
/// When a command runs for the first time, those that it needs have run. A value that one of them
/// made, and that a command needs which in turn needs this one, is live then, or made again later.
class MemoryBound {
public:
  /// `takesArgument`: by allocation, whether a result takes the bytes of a donated argument, so
  /// that no value lies there. Each command is read or may not repeat.
  /// Cost: commands times allocations, by 64 at once, and the values that are live at commands.
  MemoryBound(const RecomputeProblem &problem, const std::vector<bool> &takesArgument);

  /// Returns the bytes that are live at some command in every order with no more than this work
  /// beyond that of each command once.
  int64_t get(double moreWork) const;

private:
  /// Values that need not be kept over a command if work is added, the cheapest first: bytes and
  /// work of all up to here.
  struct Sum {
    double work = 0;
    int64_t bytes = 0;
  };
  struct Need {
    int64_t bytes = 0;     ///< with all values kept
    std::vector<Sum> sums; ///< begins with zeros
  };
  std::vector<Need> needs; ///< of commands
  double spareWork = 0;    ///< of commands that recipes may stand in for
};

} // namespace weir

#endif // WEIR_ORDER_MEMORYBOUND_H
