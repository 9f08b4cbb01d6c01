//===- Splits.h - More barriers for fewer bytes -----------------*- C++ -*-===//

#ifndef WEIR_LIB_PLANNER_SPLITS_H
#define WEIR_LIB_PLANNER_SPLITS_H

#include "weir/Planner/Planner.h"

namespace weir::planner {

/// Chooses splits of the fullest waves while each lowers the live bytes by `bytesPerSplit`.
/// Errors: `Error` when a buffer does not end or begin in the wave of its split.
std::vector<size_t> chooseSplits(const PlanProblem &problem, int64_t bytesPerSplit);

/// Returns the problem in half waves, two per wave, with the splits taken.
PlanProblem takeSplits(PlanProblem problem, const std::vector<size_t> &splits);

} // namespace weir::planner

#endif // WEIR_LIB_PLANNER_SPLITS_H
