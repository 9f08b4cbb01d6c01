//===- VulkanApi.cpp - Opens the loader, fills the tables -----------------===//

#include "VulkanApi.h"

#include "weir/Artifact/Error.h"

#include <dlfcn.h>

namespace weir::runtime {

PFN_vkGetInstanceProcAddr getLoader() {
  // Never closed: drivers keep threads and thread-local state in it.
  void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error("no Vulkan device found: the Vulkan loader libvulkan.so.1 "
                "cannot be opened; install it (Debian: libvulkan1) and a "
                "driver (a CPU driver is in mesa-vulkan-drivers)");
  void *symbol = dlsym(library, "vkGetInstanceProcAddr");
  if (!symbol)
    throw Error("no Vulkan device found: libvulkan.so.1 has no "
                "vkGetInstanceProcAddr, so it is not a Vulkan loader");
  return reinterpret_cast<PFN_vkGetInstanceProcAddr>(symbol);
}

static void requireFunction(const void *function, const char *name) {
  if (!function)
    throw Error(std::string("the Vulkan driver lacks vk") + name +
                ", which is part of Vulkan 1.3; update the driver");
}

InstanceFunctions loadInstanceFunctions(PFN_vkGetInstanceProcAddr get, VkInstance instance) {
  InstanceFunctions vk;
#define WEIR_LOAD(name)                                                                            \
  vk.name = reinterpret_cast<PFN_vk##name>(get(instance, "vk" #name));                             \
  requireFunction(reinterpret_cast<const void *>(vk.name), #name);
  WEIR_VULKAN_INSTANCE_FUNCTIONS(WEIR_LOAD)
#undef WEIR_LOAD
  vk.getCooperativeMatrices = get(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  return vk;
}

DeviceFunctions loadDeviceFunctions(PFN_vkGetDeviceProcAddr get, VkDevice device) {
  DeviceFunctions vk;
#define WEIR_LOAD(name)                                                                            \
  vk.name = reinterpret_cast<PFN_vk##name>(get(device, "vk" #name));                               \
  requireFunction(reinterpret_cast<const void *>(vk.name), #name);
  WEIR_VULKAN_DEVICE_FUNCTIONS(WEIR_LOAD)
#undef WEIR_LOAD
  return vk;
}

std::string getResultName(VkResult result) {
  switch (result) {
#define WEIR_RESULT(name)                                                                          \
  case name:                                                                                       \
    return #name;
    WEIR_RESULT(VK_SUCCESS)
    WEIR_RESULT(VK_NOT_READY)
    WEIR_RESULT(VK_TIMEOUT)
    WEIR_RESULT(VK_INCOMPLETE)
    WEIR_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY)
    WEIR_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    WEIR_RESULT(VK_ERROR_INITIALIZATION_FAILED)
    WEIR_RESULT(VK_ERROR_DEVICE_LOST)
    WEIR_RESULT(VK_ERROR_MEMORY_MAP_FAILED)
    WEIR_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    WEIR_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT)
    WEIR_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    WEIR_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER)
    WEIR_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    WEIR_RESULT(VK_ERROR_FRAGMENTED_POOL)
    WEIR_RESULT(VK_ERROR_UNKNOWN)
    WEIR_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY)
    WEIR_RESULT(VK_ERROR_FRAGMENTATION)
    WEIR_RESULT(VK_ERROR_INVALID_SHADER_NV)
#undef WEIR_RESULT
  default:
    return "VkResult " + std::to_string(int(result));
  }
}

void check(VkResult result, const std::string &call) {
  if (result != VK_SUCCESS)
    throw Error(call + " failed: " + getResultName(result));
}

} // namespace weir::runtime
