//===- VulkanProfiles.h - Profiles of families of Vulkan GPUs ---*- C++ -*-===//

#ifndef WEIR_LIB_ARTIFACT_VULKANPROFILES_H
#define WEIR_LIB_ARTIFACT_VULKANPROFILES_H

#include "weir/Artifact/Profile.h"

#include <vector>

namespace weir {

/// Returns the built-in profiles of GPUs for target vulkan: nvidia, rdna2, rdna3, gcn, xe, gen9,
/// adreno6, adreno7, valhall, apple, v3d, powervr, minimum and vulkan13.
std::vector<Profile> makeVulkanProfiles();

} // namespace weir

#endif // WEIR_LIB_ARTIFACT_VULKANPROFILES_H
