//===- Requirements.h - Requirements of an artifact -------------*- C++ -*-===//

#ifndef WEIR_RUNTIME_REQUIREMENTS_H
#define WEIR_RUNTIME_REQUIREMENTS_H

#include "weir/Artifact/Plan.h"

#include <cstdint>
#include <set>
#include <string>

namespace weir::runtime {

/// The list of missing features, each once, in the order of discovery.
class Missing {
public:
  void require(bool met, const std::string &what) {
    if (!met && seen.insert(what).second)
      text += (text.empty() ? "" : "; ") + what;
  }
  /// Throws if anything is missing. Errors: `BadArgument` listing what is missing on `device`.
  void refuse(const std::string &device) const;

private:
  std::set<std::string> seen;
  std::string text;
};

/// Returns "WHAT NEEDED where the device has AVAILABLE".
std::string compare(const std::string &what, int64_t needed, int64_t available);

/// Checks workgroups, operands, grids and views against the limits of `device`.
void checkPlan(const Plan &plan, const Profile &device, Missing &missing);

} // namespace weir::runtime

#endif // WEIR_RUNTIME_REQUIREMENTS_H
