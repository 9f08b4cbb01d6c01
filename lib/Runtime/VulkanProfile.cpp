//===- VulkanProfile.cpp - The target profile that fits a device ----------===//

#include "VulkanDevice.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace weir::runtime {

DeviceFacts getFacts(const InstanceFunctions &vk, VkPhysicalDevice device) {
  VkPhysicalDeviceVulkan13Properties props13 = {};
  props13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  VkPhysicalDeviceVulkan12Properties props12 = {};
  props12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  props12.pNext = &props13;
  VkPhysicalDeviceVulkan11Properties props11 = {};
  props11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  props11.pNext = &props12;
  VkPhysicalDeviceProperties2 props = {};
  props.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  props.pNext = &props11;
  vk.GetPhysicalDeviceProperties2(device, &props);

  FeatureChain features;
  vk.GetPhysicalDeviceFeatures2(device, &features.first);

  DeviceFacts facts;
  facts.name = props.properties.deviceName;
  facts.apiVersion = props.properties.apiVersion;
  facts.type = props.properties.deviceType;
  facts.driver = props12.driverID;
  facts.limits = props.properties.limits;
  facts.maxAllocation = int64_t(
      std::min<VkDeviceSize>(props11.maxMemoryAllocationSize, std::numeric_limits<int64_t>::max()));
  facts.subgroupSize = std::max(props11.subgroupSize, 1u);
  facts.subgroupSizeControl = features.v13.subgroupSizeControl &&
                              (props13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
  facts.fullSubgroups = features.v13.computeFullSubgroups;
  facts.subgroupExtendedTypes = features.v12.shaderSubgroupExtendedTypes;
  facts.minSubgroupSize = facts.maxSubgroupSize = facts.subgroupSize;
  if (facts.subgroupSizeControl) {
    facts.minSubgroupSize = props13.minSubgroupSize;
    facts.maxSubgroupSize = props13.maxSubgroupSize;
  }
  facts.preservesSpecialValues32 = props12.shaderSignedZeroInfNanPreserveFloat32;
  facts.preservesSpecialValues64 = props12.shaderSignedZeroInfNanPreserveFloat64;
  facts.float64 = features.first.features.shaderFloat64;
  facts.int64 = features.first.features.shaderInt64;
  facts.int8 = features.v12.shaderInt8;
  facts.storage8 = features.v12.storageBuffer8BitAccess;
  facts.int16 = features.first.features.shaderInt16;
  facts.storage16 = features.v11.storageBuffer16BitAccess;
  facts.float16 = features.v12.shaderFloat16;
  facts.vulkanMemoryModel = features.v12.vulkanMemoryModel;
  facts.cooperative = getCooperative(vk, device);
  return facts;
}

/// Makes a profile's name: "NVIDIA H200 (rev 1)" -> "nvidia-h200-rev-1".
static std::string makeProfileName(const std::string &deviceName) {
  std::string name;
  for (unsigned char c : deviceName) {
    if (std::isalnum(c))
      name += char(std::tolower(c));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-')
    name.pop_back();
  return name.empty() ? "vulkan" : name;
}

Profile makeProfile(const DeviceFacts &facts) {
  const VkPhysicalDeviceLimits &limits = facts.limits;
  bool lavapipe = facts.driver == VK_DRIVER_ID_MESA_LLVMPIPE;

  Profile profile;
  profile.name = lavapipe ? "lavapipe" : makeProfileName(facts.name);
  profile.target = "vulkan";
  profile.api = "vulkan1.3";
  profile.subgroupSize = facts.subgroupSize;
  profile.maxWorkgroupSize =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  profile.workgroupMemory = limits.maxComputeSharedMemorySize;
  for (int axis = 0; axis < 3; ++axis)
    profile.maxGrid[axis] = limits.maxComputeWorkGroupCount[axis];
  profile.storageBuffersPerStage =
      std::min({limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers,
                limits.maxPerStageResources});
  profile.bytesPerBinding = limits.maxStorageBufferRange;
  profile.offsetAlignment = std::max<int64_t>(int64_t(limits.minStorageBufferOffsetAlignment), 1);
  // lavapipe ends any loop after this number of trips; other drivers do not.
  profile.maxLoopTrips = lavapipe ? 65535 : noLoopLimit;
  profile.float64 = facts.float64;
  profile.int64 = facts.int64;
  profile.storage8 = facts.storage8 && facts.int8;
  profile.storage16 = facts.storage16 && facts.int16;

  // The largest shape makes most of each element that it loads.
  if (facts.float16 && facts.vulkanMemoryModel)
    for (CooperativeShape shape : {CooperativeShape{16, 16, 16}, {8, 16, 16}, {8, 8, 16}})
      if (!profile.cooperative.rows && profile.storage16 && doesOffer(facts.cooperative, shape))
        profile.cooperative = shape;

  profile.words64 = false;
  if (facts.type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    // One subgroup per workgroup: its lanes are a SIMD vector, and rows fit on the stack.
    profile.rowMapping = RowMapping::Subgroup;
    profile.workgroupSize = profile.subgroupSize;
    // A load costs time per element and lane, so load wider elements.
    profile.words64 = profile.int64;
    return profile;
  }
  // A lane has little private memory, but many lanes work on a row.
  profile.rowMapping = RowMapping::Workgroup;
  int64_t subgroups =
      std::max<int64_t>(std::min<int64_t>(256, profile.maxWorkgroupSize) / profile.subgroupSize, 1);
  profile.workgroupSize = subgroups * profile.subgroupSize;
  profile.privateRowBytes = 128;
  profile.elementsPerInvocation = 4;
  profile.contractionRows = 8;
  profile.columnParts = 512;
  profile.unrollPrivate = true;
  return profile;
}

} // namespace weir::runtime
