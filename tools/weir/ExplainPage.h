//===- ExplainPage.h - An explanation as a page -----------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_EXPLAINPAGE_H
#define WEIR_TOOLS_WEIR_EXPLAINPAGE_H

#include "Explanation.h"

namespace weir::tool {

/// How long each dispatch of a plan took.
struct PlanTimes {
  const Plan *plan = nullptr; ///< none: no times
  std::vector<double> microseconds;
};

/// What changed in the plan of one entry on one target.
struct PlanChange {
  std::string entry, target;
  std::vector<Difference> differences;
};

/// Reads what `weir run --profile` wrote of one of the plans.
/// Errors: `Error` when the file is no such trace, or one of none of the plans or of several.
PlanTimes readTrace(const std::string &path, const std::vector<PlanStory> &stories);

/// Writes a page of the plans, at once. `title` names the artifact, `other` what it is
/// compared with, "" for nothing. Errors: `Error`.
void writePage(const std::string &path, const std::string &title,
               const std::vector<PlanStory> &stories, const std::vector<PlanChange> &changes,
               const std::string &other, const PlanTimes &times);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_EXPLAINPAGE_H
