//===- ExplainPage.h - An explanation as a page -----------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_EXPLAINPAGE_H
#define WEIR_TOOLS_WEIR_EXPLAINPAGE_H

#include "Explanation.h"

namespace weir::tool {

/// The times of a plan's dispatches.
struct PlanTimes {
  const Plan *plan = nullptr; ///< null: no times
  std::vector<double> microseconds;
};

/// The changes in the plan of one entry on one target.
struct PlanChange {
  std::string entry, target;
  std::vector<Difference> differences;
};

/// Reads a trace that `weir run --profile` wrote. Errors: `Error` when the file is not such a
/// trace, or fits none of the plans or several.
PlanTimes readTrace(const std::string &path, const std::vector<PlanStory> &stories);

/// Writes a page of the plans, atomically. `title` names the artifact, `other` the one that it
/// is compared with, or "". Errors: `Error`.
void writePage(const std::string &path, const std::string &title,
               const std::vector<PlanStory> &stories, const std::vector<PlanChange> &changes,
               const std::string &other, const PlanTimes &times);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_EXPLAINPAGE_H
