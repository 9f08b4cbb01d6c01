//===- VulkanDevice.h - A Vulkan device, its memory, its queues -*- C++ -*-===//
//
// Uses queues of one family. Host access to memory waits for the runs that use it. Every
// submission to queue 0 is ordered after earlier ones, and the other queues wait for it (see
// VulkanRecording.h).
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_VULKANDEVICE_H
#define WEIR_LIB_RUNTIME_VULKANDEVICE_H

#include "Device.h"
#include "Submissions.h"
#include "VulkanApi.h"
#include "VulkanCooperative.h"

#include "weir/weir.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace weir::runtime {

/// The properties of a physical device.
struct DeviceFacts {
  std::string name;
  uint32_t apiVersion = 0;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  VkDriverId driver = VkDriverId(0);
  VkPhysicalDeviceLimits limits = {};
  int64_t maxAllocation = 0; ///< bytes
  uint32_t subgroupSize = 1; ///< default of a pipeline
  /// Sizes that a compute pipeline may require; equal to subgroupSize if the device has no
  /// control.
  uint32_t minSubgroupSize = 1, maxSubgroupSize = 1;
  bool subgroupSizeControl = false, fullSubgroups = false;
  bool subgroupExtendedTypes = false;
  /// Whether NaNs, infinities and signs of zeros are preserved, for 32- and 64-bit floats.
  bool preservesSpecialValues32 = false, preservesSpecialValues64 = false;
  bool float64 = false, int64 = false, int8 = false, storage8 = false, int16 = false,
       storage16 = false;
  bool float16 = false, vulkanMemoryModel = false;
  std::vector<CooperativeProperties> cooperative; ///< matrices that it multiplies
};

/// Returns the properties of `device`. Needs: Vulkan 1.3.
DeviceFacts getFacts(const InstanceFunctions &vk, VkPhysicalDevice device);

/// Returns the target profile that fits the device: its limits, and habits by its type.
Profile makeProfile(const DeviceFacts &facts);

/// A buffer with memory of its own.
struct VulkanMemory : Memory {
  Owned<VkDeviceMemory> memory;
  Owned<VkBuffer> buffer; // destroyed before its memory
  void *mapped = nullptr; ///< null if the host cannot see it
};

/// Returns the memory of a storage of a VulkanDevice. Needs: the storage has bytes.
inline const VulkanMemory &getMemory(const Storage &storage) {
  return static_cast<const VulkanMemory &>(*storage.memory);
}

/// A submission and its command buffer; null: no commands.
struct RecordedSubmission {
  Submission submission;
  VkCommandBuffer commands = VK_NULL_HANDLE;
};

class VulkanDevice : public Device {
public:
  /// Returns the number of devices with Vulkan 1.3 and a compute queue, which weir_device_open
  /// counts. Errors: `Error` when there is none, saying why.
  static size_t count();

  /// Opens a device. Errors: `BadArgument` when `index` is out of range, else as `count`.
  static std::shared_ptr<Device> open(size_t index);

  /// Uses a device of the caller. Errors: `BadArgument` when a handle is null or the device is
  /// too old.
  static std::shared_ptr<Device> adopt(const weir_vulkan_handles &handles);

  ~VulkanDevice() override;

  const std::string &getName() const override { return facts.name; }
  bool isGpu() const override { return facts.type != VK_PHYSICAL_DEVICE_TYPE_CPU; }
  Profile getProfile() const override { return makeProfile(facts); }
  bool hasTimestamps() const override { return timestampBits != 0; }
  Storage allocate(int64_t bytes, Placement placement) override;
  void write(Storage &storage, int64_t offset, const void *data, int64_t bytes) override;
  void read(const Storage &storage, int64_t offset, void *data, int64_t bytes) override;
  void *getHostAddress(const Storage &storage) const override;
  void wait() override;
  void waitFor(uint64_t submission) override;
  void waitNoThrow() noexcept override;
  std::unique_ptr<Program> load(const Artifact &artifact) override;

  const DeviceFacts &getFacts() const { return facts; }

  /// Returns the number of queues.
  int64_t countQueues() const { return int64_t(queues.size()); }

  /// Submits a run `times` times. Waits only if many are in flight. Needs: a run of one submission,
  /// or one time. Errors: `Error`.
  void submit(const std::vector<RecordedSubmission> &run, size_t times = 1);

  /// Names the pipeline for the reports of layers, if that is possible.
  void name(VkPipeline pipeline, const std::string &text);

  DeviceFunctions vk;
  VkDevice handle = VK_NULL_HANDLE;
  uint32_t queueFamily = 0;
  uint32_t timestampBits = 0; ///< valid bits of a timestamp; 0 for no support

private:
  /// Staging memory for copies between the host and memory that it cannot see.
  struct Staging {
    Storage storage;
    VkCommandBuffer commands = VK_NULL_HANDLE;
  };

  VulkanDevice() = default;
  void createLogicalDevice();
  void createTimelines();
  void finishSetup();
  Storage allocateTyped(int64_t bytes, Placement placement);
  Staging &takeStaging();
  void copy(Staging &through, VkBuffer from, int64_t fromOffset, VkBuffer to, int64_t toOffset,
            int64_t bytes);
  Owned<VkFence> takeFence();

  DeviceFacts facts;
  PFN_vkSetDebugUtilsObjectNameEXT setObjectName = nullptr;
  InstanceFunctions instanceVk;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  struct Queue {
    VkQueue handle = VK_NULL_HANDLE;
    Owned<VkSemaphore> timeline; ///< null if there is one queue
    uint64_t value = 0;          ///< value that it has after all submissions so far
  };
  std::vector<Queue> queues; ///< at least one
  VkPhysicalDeviceMemoryProperties memoryTypes = {};
  bool adopted = false;

  /// A run in flight, and the fence signaled at its end.
  struct Pending {
    uint64_t submission;
    Owned<VkFence> fence;
  };
  std::deque<Pending> pending; ///< the oldest first
  std::vector<Owned<VkFence>> idleFences;
  bool isSubmitting = false; ///< stays true if a run was submitted only in part
  uint64_t ended = 0;        ///< index of the last submission known to have ended
  void forgetEnded(uint64_t submission);

  std::array<Staging, 4> staging; ///< created on first use, used in turn
  size_t nextStaging = 0;
  Owned<VkCommandPool> copyPool;
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_VULKANDEVICE_H
