//===- VulkanCooperative.h - VK_KHR_cooperative_matrix ----------*- C++ -*-===//
//
// Declares what the extension adds to Vulkan, as its specification has it: headers of Vulkan before
// 1.3.255 lack it.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_VULKANCOOPERATIVE_H
#define WEIR_LIB_RUNTIME_VULKANCOOPERATIVE_H

#include "VulkanApi.h"
#include "weir/Artifact/Profile.h"

#include <string>
#include <vector>

namespace weir::runtime {

inline constexpr const char *cooperativeExtension = "VK_KHR_cooperative_matrix";

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct CooperativeFeatures {
  VkStructureType sType = VkStructureType(1000506000);
  void *pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

/// VkCooperativeMatrixPropertiesKHR: a shape with types that a device multiplies.
struct CooperativeProperties {
  VkStructureType sType = VkStructureType(1000506001);
  void *pNext = nullptr;
  uint32_t rows = 0, columns = 0, products = 0;
  uint32_t aType = 0, bType = 0, cType = 0, resultType = 0;
  VkBool32 saturates = VK_FALSE;
  uint32_t scope = 0;
};
inline constexpr uint32_t float16Component = 0, float32Component = 1, subgroupScope = 3;

/// Returns what the device offers: nothing without the extension or its feature.
std::vector<CooperativeProperties> getCooperative(const InstanceFunctions &vk,
                                                  VkPhysicalDevice device);

/// Whether the list has the shape for subgroups, with factors in f16 and sums in f32.
bool doesOffer(const std::vector<CooperativeProperties> &offered, const CooperativeShape &shape);

/// Returns "16x16x16 f16 f32 of subgroups, 8x8x16 ...", or "none".
std::string printCooperative(const std::vector<CooperativeProperties> &offered);

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_VULKANCOOPERATIVE_H
