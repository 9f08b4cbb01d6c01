//===- VulkanCooperative.cpp - Which cooperative matrices a device has ----===//

#include "VulkanCooperative.h"

#include <algorithm>
#include <cstring>

namespace weir::runtime {

std::vector<CooperativeProperties> getCooperative(const InstanceFunctions &vk,
                                                  VkPhysicalDevice device) {
  uint32_t count = 0;
  check(vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr),
        "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> extensions(count);
  check(vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data()),
        "vkEnumerateDeviceExtensionProperties");
  bool isThere = std::any_of(extensions.begin(), extensions.end(), [](const auto &extension) {
    return std::strcmp(extension.extensionName, cooperativeExtension) == 0;
  });
  if (!isThere || !vk.getCooperativeMatrices)
    return {};
  CooperativeFeatures cooperative;
  VkPhysicalDeviceFeatures2 features = {};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &cooperative;
  vk.GetPhysicalDeviceFeatures2(device, &features);
  if (!cooperative.cooperativeMatrix)
    return {};
  using Get = VkResult(VKAPI_PTR *)(VkPhysicalDevice, uint32_t *, CooperativeProperties *);
  auto get = reinterpret_cast<Get>(vk.getCooperativeMatrices);
  const char *call = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
  count = 0;
  check(get(device, &count, nullptr), call);
  std::vector<CooperativeProperties> offered(count);
  check(get(device, &count, offered.data()), call);
  offered.resize(count);
  return offered;
}

bool doesOffer(const std::vector<CooperativeProperties> &offered, const CooperativeShape &shape) {
  return std::any_of(offered.begin(), offered.end(), [&](const CooperativeProperties &each) {
    return each.rows == shape.rows && each.columns == shape.columns &&
           each.products == shape.products && each.aType == float16Component &&
           each.bType == float16Component && each.cType == float32Component &&
           each.resultType == float32Component && each.scope == subgroupScope;
  });
}

static std::string printComponent(uint32_t type) {
  // By number, from VkComponentTypeKHR.
  static const char *const names[] = {"f16", "f32", "f64", "i8",  "i16", "i32",
                                      "i64", "u8",  "u16", "u32", "u64"};
  return type < std::size(names) ? names[type] : "type " + std::to_string(type);
}

std::string printCooperative(const std::vector<CooperativeProperties> &offered) {
  static const char *const scopes[] = {"", "devices", "workgroups", "subgroups"};
  std::string text;
  for (const CooperativeProperties &each : offered) {
    text += text.empty() ? "" : ", ";
    text += std::to_string(each.rows) + "x" + std::to_string(each.columns) + "x" +
            std::to_string(each.products) + " " + printComponent(each.aType) + " " +
            printComponent(each.resultType) + " of " +
            (each.scope < std::size(scopes) ? scopes[each.scope] : "others");
  }
  return text.empty() ? "none" : text;
}

} // namespace weir::runtime
