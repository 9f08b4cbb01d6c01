//===- VulkanRequirements.h - An artifact's needs on Vulkan -----*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_VULKANREQUIREMENTS_H
#define WEIR_LIB_RUNTIME_VULKANREQUIREMENTS_H

#include "Requirements.h"
#include "VulkanDevice.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::runtime {

/// Checks the code, the plans, and limits of the profile that neither shows (loop trips, workgroup
/// memory, and if code can tell it the subgroup size) against the device.
/// Errors: `BadArgument` naming an entry whose plan Vulkan cannot express.
void checkRequirements(const Artifact &artifact, const Profile &profile, const DeviceFacts &facts,
                       Missing &missing);

/// Whether the code has an operation of subgroups, so that it is for one size of them. Errors:
/// those of `getWords`.
bool usesSubgroups(const Bytes &code, const std::string &path);

/// Returns SPIR-V bytes as words. Errors: `BadArgument` naming `path` when they are not SPIR-V
/// in this machine's byte order.
std::vector<uint32_t> getWords(const Bytes &code, const std::string &path);

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_VULKANREQUIREMENTS_H
