//===- Requirements.cpp - Limits that every kind of device has ------------===//

#include "Requirements.h"

#include "Device.h"

#include <algorithm>

namespace weir::runtime {

void Missing::refuse(const std::string &device) const {
  if (!text.empty())
    throw BadArgument("the artifact cannot run on '" + device + "': it needs " + text +
                      "; compile it for the profile that `weir devices "
                      "--emit-profile` writes here");
}

std::string compare(const std::string &what, int64_t needed, int64_t available) {
  return what + " " + std::to_string(needed) + " where the device has " + std::to_string(available);
}

void checkPlan(const Plan &plan, const Profile &device, Missing &missing) {
  for (const Kernel &kernel : plan.kernels) {
    std::string of = " of kernel '" + kernel.name + "'";
    int64_t invocations = 1;
    for (int64_t size : kernel.workgroup)
      invocations *= std::min<int64_t>(size, 1 << 20); // cannot overflow
    missing.require(invocations <= device.maxWorkgroupSize,
                    compare("workgroup size" + of, invocations, device.maxWorkgroupSize));
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

} // namespace weir::runtime
