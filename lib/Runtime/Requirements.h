//===- Requirements.h - Requirements of an artifact -------------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_REQUIREMENTS_H
#define WEIR_LIB_RUNTIME_REQUIREMENTS_H

#include "weir/Artifact/Artifact.h"

#include <cstdint>
#include <functional>
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
  /// Returns what is missing, with "; " between.
  const std::string &getText() const { return text; }

private:
  std::set<std::string> seen;
  std::string text;
};

/// Returns the best profile that a device runs, of an artifact's profiles for one kind of device,
/// "cpu". `check` adds what the device lacks for a profile.
/// Errors: `BadArgument` naming the device and what it lacks, or the targets that the artifact has
/// instead.
const Profile &chooseTarget(const Artifact &artifact, const std::string &base,
                            const std::string &device,
                            const std::function<void(const Profile &, Missing &)> &check);

/// Returns "WHAT NEEDED where the device has AVAILABLE".
std::string compare(const std::string &what, int64_t needed, int64_t available);

/// Checks workgroups, operands, grids and views of a target's plans against the limits of `device`.
void checkPlans(const Artifact &artifact, const std::string &target, const Profile &device,
                Missing &missing);

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_REQUIREMENTS_H
