//===- VulkanDevice.h - A Vulkan device, its memory, its queues -*- C++ -*-===//
//
// Queues of one family. Host access to memory waits for the runs that use it;
// everything on queue 0 orders itself after what came before, and the others
// follow it (see Recording.h).
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_RUNTIME_VULKANDEVICE_H
#define WEIR_RUNTIME_VULKANDEVICE_H

#include "Device.h"
#include "Submissions.h"
#include "VulkanApi.h"

#include "weir/weir.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace weir::runtime {

/// What a physical device says of itself.
struct DeviceFacts {
  std::string name;
  uint32_t apiVersion = 0;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  VkDriverId driver = VkDriverId(0);
  VkPhysicalDeviceLimits limits = {};
  int64_t maxAllocation = 0; ///< bytes
  uint32_t subgroupSize = 1; ///< that a pipeline gets without asking
  /// Sizes that a compute pipeline may require; equal to subgroupSize when the
  /// device cannot control it.
  uint32_t minSubgroupSize = 1, maxSubgroupSize = 1;
  bool subgroupSizeControl = false, fullSubgroups = false;
  bool subgroupExtendedTypes = false;
  /// Of NaNs, infinities and signs of zeros, in floats of 32 and 64 bits.
  bool preservesSpecialValues32 = false, preservesSpecialValues64 = false;
  bool float64 = false, int64 = false, int8 = false, storage8 = false, int16 = false,
       storage16 = false;
};

/// Facts of `device`. Needs Vulkan 1.3.
DeviceFacts getFacts(const InstanceFunctions &vk, VkPhysicalDevice device);

/// The target profile that fits the device: its limits, and habits by its type.
Profile makeProfile(const DeviceFacts &facts);

/// A buffer with memory of its own.
struct VulkanMemory : Memory {
  Owned<VkDeviceMemory> memory;
  Owned<VkBuffer> buffer; // destroyed before its memory
  void *mapped = nullptr; ///< null when the host cannot see it
};

/// The memory of a storage with bytes, of a VulkanDevice.
inline const VulkanMemory &getMemory(const Storage &storage) {
  return static_cast<const VulkanMemory &>(*storage.memory);
}

/// A submission and what was recorded for it; null: nothing.
struct RecordedSubmission {
  Submission submission;
  VkCommandBuffer commands = VK_NULL_HANDLE;
};

class VulkanDevice : public Device {
public:
  /// Devices with Vulkan 1.3 and a compute queue, in the order of
  /// weir_device_open. Errors: `Error` when there is none, saying why.
  static size_t count();

  /// Errors: `BadArgument` when `index` is out of range, else as `count`.
  static std::shared_ptr<Device> open(size_t index);

  /// Errors: `BadArgument` when a handle is null or the device is too old.
  static std::shared_ptr<Device> adopt(const weir_vulkan_handles &handles);

  ~VulkanDevice() override;

  const std::string &getName() const override { return facts.name; }
  Profile getProfile() const override { return makeProfile(facts); }
  bool hasTimestamps() const override { return timestampBits != 0; }
  Storage allocate(int64_t bytes, bool hostAccess) override;
  void write(Storage &storage, int64_t offset, const void *data, int64_t bytes) override;
  void read(const Storage &storage, int64_t offset, void *data, int64_t bytes) override;
  void *getHostAddress(const Storage &storage) const override;
  void wait() override;
  void waitFor(uint64_t submission) override;
  void waitNoThrow() noexcept override;
  std::unique_ptr<Program> load(const Artifact &artifact) override;

  const DeviceFacts &getFacts() const { return facts; }

  /// How many queues there are.
  int64_t countQueues() const { return int64_t(queues.size()); }

  /// Submits one run. Waits only where many runs are under way. Errors: `Error`.
  void submit(const std::vector<RecordedSubmission> &run);

  /// Gives the pipeline a name in the reports of layers, where that can be.
  void name(VkPipeline pipeline, const std::string &text);

  DeviceFunctions vk;
  VkDevice handle = VK_NULL_HANDLE;
  uint32_t queueFamily = 0;
  uint32_t timestampBits = 0; ///< valid bits of a timestamp; 0 for no support

private:
  /// What a copy between the host and memory that it does not see goes through.
  struct Staging {
    Storage storage;
    VkCommandBuffer commands = VK_NULL_HANDLE;
  };

  VulkanDevice() = default;
  void createLogicalDevice();
  void createTimelines();
  void finishSetup();
  uint32_t chooseMemoryType(uint32_t allowed, bool hostAccess) const;
  Storage allocateTyped(int64_t bytes, bool hostAccess);
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
    Owned<VkSemaphore> timeline; ///< none where there is one queue
    uint64_t value = 0;          ///< that all submissions so far bring it to
  };
  std::vector<Queue> queues; ///< at least one
  VkPhysicalDeviceMemoryProperties memoryTypes = {};
  bool adopted = false;

  /// A run under way, and what is signaled when it has ended.
  struct Pending {
    uint64_t submission;
    Owned<VkFence> fence;
  };
  std::deque<Pending> pending; ///< the oldest first
  std::vector<Owned<VkFence>> idleFences;
  bool isSubmitting = false; ///< also after a run of which only a part could be submitted
  uint64_t ended = 0;        ///< number of the last submission that is known to have ended
  void forgetEnded(uint64_t submission);

  std::array<Staging, 4> staging; ///< made at the first use, used in turn
  size_t nextStaging = 0;
  Owned<VkCommandPool> copyPool;
};

} // namespace weir::runtime

#endif // WEIR_RUNTIME_VULKANDEVICE_H
