//===- Requirements.cpp - Limits that every kind of device has ------------===//

#include "Requirements.h"

#include "Device.h"

#include <algorithm>

namespace weir::runtime {

const Profile &chooseTarget(const Artifact &artifact, const std::string &base,
                            const std::string &device,
                            const std::function<void(const Profile &, Missing &)> &check) {
  std::string refused = "the artifact cannot run on '" + device + "': ";
  std::vector<const Profile *> profiles = artifact.findProfiles(base);
  if (profiles.empty()) {
    std::string known;
    for (const Profile &profile : artifact.manifest.targets)
      known += (known.empty() ? "" : ", ") + profile.target;
    throw BadArgument(refused + "it has no code for " + base + ", but for " +
                      (known.empty() ? "no target" : known) + "; compile it with --target=" + base);
  }
  // Of one rank, the first of the manifest.
  std::sort(profiles.begin(), profiles.end(), [](const Profile *a, const Profile *b) {
    return std::pair(-getRank(*a), a) < std::pair(-getRank(*b), b);
  });
  std::string reasons;
  for (const Profile *profile : profiles) {
    Missing missing;
    check(*profile, missing);
    if (missing.getText().empty())
      return *profile;
    reasons += (reasons.empty() ? "" : "; ") +
               (profiles.size() == 1 ? "it" : "its code for " + profile->target) + " needs " +
               missing.getText();
  }
  throw BadArgument(refused + reasons +
                    "; compile it for the profile that `weir devices --emit-profile` writes here");
}

std::string compare(const std::string &what, int64_t needed, int64_t available) {
  return what + " " + std::to_string(needed) + " where the device has " + std::to_string(available);
}

static void checkPlan(const Plan &plan, const Profile &device, Missing &missing) {
  for (const Kernel &kernel : plan.kernels) {
    std::string of = " of kernel '" + kernel.name + "'";
    int64_t invocations = 1;
    for (int64_t size : kernel.workgroup)
      invocations *= std::min<int64_t>(size, 1 << 20); // cannot overflow
    missing.require(invocations <= device.maxWorkgroupSize,
                    compare("workgroup size" + of, invocations, device.maxWorkgroupSize));
    missing.require(
        kernel.workgroupMemory <= device.workgroupMemory,
        compare("bytes of workgroup memory" + of, kernel.workgroupMemory, device.workgroupMemory));
    int64_t operands = int64_t(kernel.operands.size());
    missing.require(operands <= device.storageBuffersPerStage,
                    compare("storage buffers" + of, operands, device.storageBuffersPerStage));
  }
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    std::string of = " of kernel '" + plan.kernels[size_t(command.kernel)].name + "'";
    for (int axis = 0; axis < 3; ++axis)
      missing.require(command.grid[axis] <= device.maxGrid[axis],
                      compare("grid size" + of, command.grid[axis], device.maxGrid[axis]));
    for (const PlanView &view : command.operands) {
      missing.require(view.bytes <= device.bytesPerBinding,
                      compare("bytes per binding" + of, view.bytes, device.bytesPerBinding));
      missing.require(view.offset % device.offsetAlignment == 0,
                      "byte offset " + std::to_string(view.offset) + of +
                          " where the device needs multiples of " +
                          std::to_string(device.offsetAlignment));
    }
  }
}

void checkPlans(const Artifact &artifact, const std::string &target, const Profile &device,
                Missing &missing) {
  for (const Plan &plan : artifact.plans)
    if (plan.target == target)
      checkPlan(plan, device, missing);
}

} // namespace weir::runtime
