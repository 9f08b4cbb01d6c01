//===- VulkanApi.h - The part of Vulkan that the runtime calls --*- C++ -*-===//
//
// The loader is opened at run time, so nothing links libvulkan. The tables name
// functions without their "vk": `vk.CreateBuffer(...)`.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_VULKANAPI_H
#define WEIR_LIB_RUNTIME_VULKANAPI_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <string>
#include <utility>

namespace weir::runtime {

#define WEIR_VULKAN_INSTANCE_FUNCTIONS(X)                                                          \
  X(DestroyInstance)                                                                               \
  X(EnumeratePhysicalDevices)                                                                      \
  X(GetPhysicalDeviceProperties2)                                                                  \
  X(GetPhysicalDeviceFeatures2)                                                                    \
  X(GetPhysicalDeviceQueueFamilyProperties)                                                        \
  X(GetPhysicalDeviceMemoryProperties)                                                             \
  X(EnumerateDeviceExtensionProperties)                                                            \
  X(CreateDevice)                                                                                  \
  X(GetDeviceProcAddr)

#define WEIR_VULKAN_DEVICE_FUNCTIONS(X)                                                            \
  X(DestroyDevice)                                                                                 \
  X(GetDeviceQueue)                                                                                \
  X(CreateBuffer)                                                                                  \
  X(DestroyBuffer)                                                                                 \
  X(GetBufferMemoryRequirements)                                                                   \
  X(AllocateMemory)                                                                                \
  X(FreeMemory)                                                                                    \
  X(BindBufferMemory)                                                                              \
  X(MapMemory)                                                                                     \
  X(CreateCommandPool)                                                                             \
  X(DestroyCommandPool)                                                                            \
  X(AllocateCommandBuffers)                                                                        \
  X(BeginCommandBuffer)                                                                            \
  X(EndCommandBuffer)                                                                              \
  X(CreateDescriptorSetLayout)                                                                     \
  X(DestroyDescriptorSetLayout)                                                                    \
  X(CreatePipelineLayout)                                                                          \
  X(DestroyPipelineLayout)                                                                         \
  X(CreateShaderModule)                                                                            \
  X(DestroyShaderModule)                                                                           \
  X(CreateComputePipelines)                                                                        \
  X(DestroyPipeline)                                                                               \
  X(CreateDescriptorPool)                                                                          \
  X(DestroyDescriptorPool)                                                                         \
  X(AllocateDescriptorSets)                                                                        \
  X(UpdateDescriptorSets)                                                                          \
  X(CreateFence)                                                                                   \
  X(DestroyFence)                                                                                  \
  X(ResetFences)                                                                                   \
  X(WaitForFences)                                                                                 \
  X(CreateSemaphore)                                                                               \
  X(DestroySemaphore)                                                                              \
  X(CreateQueryPool)                                                                               \
  X(DestroyQueryPool)                                                                              \
  X(GetQueryPoolResults)                                                                           \
  X(CmdResetQueryPool)                                                                             \
  X(CmdWriteTimestamp2)                                                                            \
  X(CmdBindPipeline)                                                                               \
  X(CmdBindDescriptorSets)                                                                         \
  X(CmdDispatch)                                                                                   \
  X(CmdPipelineBarrier2)                                                                           \
  X(CmdCopyBuffer)                                                                                 \
  X(QueueSubmit)                                                                                   \
  X(QueueWaitIdle)

#define WEIR_DECLARE(name) PFN_vk##name name = nullptr;

struct InstanceFunctions {
  WEIR_VULKAN_INSTANCE_FUNCTIONS(WEIR_DECLARE)
  PFN_vkVoidFunction getCooperativeMatrices = nullptr; ///< of an extension; null without it
};

struct DeviceFunctions {
  WEIR_VULKAN_DEVICE_FUNCTIONS(WEIR_DECLARE)
};

#undef WEIR_DECLARE

/// Returns the loader's entry point. Errors: `Error` when this machine has no loader.
PFN_vkGetInstanceProcAddr getLoader();

/// Returns a table of functions. Errors: `Error` naming a missing function: all are part of Vulkan
/// 1.3.
InstanceFunctions loadInstanceFunctions(PFN_vkGetInstanceProcAddr get, VkInstance instance);
DeviceFunctions loadDeviceFunctions(PFN_vkGetDeviceProcAddr get, VkDevice device);

/// The features of Vulkan 1.0 to 1.3 in one chain; all are off at first.
struct FeatureChain {
  VkPhysicalDeviceFeatures2 first = {}; ///< with the features of 1.0
  VkPhysicalDeviceVulkan11Features v11 = {};
  VkPhysicalDeviceVulkan12Features v12 = {};
  VkPhysicalDeviceVulkan13Features v13 = {};

  FeatureChain() {
    first.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    first.pNext = &v11;
    v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    v11.pNext = &v12;
    v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    v12.pNext = &v13;
    v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  }
  FeatureChain(const FeatureChain &) = delete;
  FeatureChain &operator=(const FeatureChain &) = delete;
};

/// Returns "VK_ERROR_DEVICE_LOST", or "VkResult -7" for results without a name here.
std::string getResultName(VkResult result);

/// Checks a result. Errors: `Error` "<call> failed: <result>" unless `result` is success.
void check(VkResult result, const std::string &call);

/// A Vulkan object that is destroyed with its owner. The device must be alive.
template <typename Handle> class Owned {
public:
  using Destroy = void(VKAPI_PTR *)(VkDevice, Handle, const VkAllocationCallbacks *);

  Owned() = default;
  Owned(VkDevice device, Handle handle, Destroy destroy)
      : device(device), handle(handle), destroy(destroy) {}
  Owned(Owned &&other) noexcept { *this = std::move(other); }
  Owned &operator=(Owned &&other) noexcept {
    std::swap(device, other.device);
    std::swap(handle, other.handle);
    std::swap(destroy, other.destroy);
    return *this;
  }
  ~Owned() {
    if (handle != VK_NULL_HANDLE)
      destroy(device, handle, nullptr);
  }

  Handle get() const { return handle; }

private:
  VkDevice device = VK_NULL_HANDLE;
  Handle handle = VK_NULL_HANDLE;
  Destroy destroy = nullptr;
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_VULKANAPI_H
