//===- Splits.h - More barriers for fewer bytes -----------------*- C++ -*-===//

#ifndef WEIR_LIB_PLANNER_SPLITS_H
#define WEIR_LIB_PLANNER_SPLITS_H

#include "weir/Planner/Planner.h"

namespace weir::planner {

/// Chooses splits of the fullest waves while that lowers the bytes live there by
/// `bytesPerSplit` each.
/// Errors: `Error` when a buffer does not end or begin in the wave of its split.
std::vector<size_t> chooseSplits(const PlanProblem &problem, int64_t bytesPerSplit);

/// The problem in half waves, two a wave, with the splits taken.
PlanProblem takeSplits(PlanProblem problem, const std::vector<size_t> &splits);

} // namespace weir::planner

#endif // WEIR_LIB_PLANNER_SPLITS_H
