//===- Device.h - The layer's state of a device -----------------*- C++ -*-===//
//
// A hook has the name of its Vulkan function without "vk". It calls the next function in the
// chain, and stores the state that later dispatches and submissions need. One mutex guards the
// device's state; it is never held while the next function runs.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_AUDIT_LAYER_DEVICE_H
#define WEIR_TOOLS_AUDIT_LAYER_DEVICE_H

#include "weir/Audit/Audit.h"
#include "weir/Audit/Effects.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan_core.h>

#include <mutex>
#include <type_traits>
#include <unordered_map>

namespace weir::audit {

/// Hooks with one name, and hooks that older devices also have under an extension's name.
#define WEIR_AUDIT_CORE_HOOKS(X)                                                                   \
  X(DestroyDevice)                                                                                 \
  X(AllocateMemory)                                                                                \
  X(FreeMemory)                                                                                    \
  X(CreateBuffer)                                                                                  \
  X(DestroyBuffer)                                                                                 \
  X(BindBufferMemory)                                                                              \
  X(CreateShaderModule)                                                                            \
  X(DestroyShaderModule)                                                                           \
  X(CreateDescriptorSetLayout)                                                                     \
  X(DestroyDescriptorSetLayout)                                                                    \
  X(CreatePipelineLayout)                                                                          \
  X(DestroyPipelineLayout)                                                                         \
  X(CreateComputePipelines)                                                                        \
  X(DestroyPipeline)                                                                               \
  X(DestroyDescriptorPool)                                                                         \
  X(ResetDescriptorPool)                                                                           \
  X(AllocateDescriptorSets)                                                                        \
  X(FreeDescriptorSets)                                                                            \
  X(UpdateDescriptorSets)                                                                          \
  X(DestroyCommandPool)                                                                            \
  X(ResetCommandPool)                                                                              \
  X(AllocateCommandBuffers)                                                                        \
  X(FreeCommandBuffers)                                                                            \
  X(BeginCommandBuffer)                                                                            \
  X(ResetCommandBuffer)                                                                            \
  X(CmdBindPipeline)                                                                               \
  X(CmdBindDescriptorSets)                                                                         \
  X(CmdDispatch)                                                                                   \
  X(CmdDispatchIndirect)                                                                           \
  X(CmdCopyBuffer)                                                                                 \
  X(CmdFillBuffer)                                                                                 \
  X(CmdUpdateBuffer)                                                                               \
  X(CmdCopyQueryPoolResults)                                                                       \
  X(CmdPipelineBarrier)                                                                            \
  X(CmdSetEvent)                                                                                   \
  X(CmdResetEvent)                                                                                 \
  X(CmdWaitEvents)                                                                                 \
  X(CmdExecuteCommands)                                                                            \
  X(QueueSubmit)                                                                                   \
  X(QueueBindSparse)                                                                               \
  X(QueueWaitIdle)                                                                                 \
  X(DeviceWaitIdle)                                                                                \
  X(DestroyFence)                                                                                  \
  X(ResetFences)                                                                                   \
  X(WaitForFences)                                                                                 \
  X(GetFenceStatus)                                                                                \
  X(CreateSemaphore)                                                                               \
  X(DestroySemaphore)                                                                              \
  X(DestroyEvent)                                                                                  \
  X(SetEvent)                                                                                      \
  X(ResetEvent)                                                                                    \
  X(CmdPushDescriptorSetKHR)                                                                       \
  X(CmdPushDescriptorSetWithTemplateKHR)                                                           \
  X(CmdBindDescriptorBuffersEXT)                                                                   \
  X(SetDebugUtilsObjectNameEXT)

#define WEIR_AUDIT_PROMOTED_HOOKS(X)                                                               \
  X(BindBufferMemory2)                                                                             \
  X(CreateDescriptorUpdateTemplate)                                                                \
  X(DestroyDescriptorUpdateTemplate)                                                               \
  X(UpdateDescriptorSetWithTemplate)                                                               \
  X(CmdDispatchBase)                                                                               \
  X(CmdCopyBuffer2)                                                                                \
  X(CmdPipelineBarrier2)                                                                           \
  X(CmdSetEvent2)                                                                                  \
  X(CmdResetEvent2)                                                                                \
  X(CmdWaitEvents2)                                                                                \
  X(QueueSubmit2)                                                                                  \
  X(WaitSemaphores)                                                                                \
  X(SignalSemaphore)                                                                               \
  X(GetSemaphoreCounterValue)

#define WEIR_AUDIT_HOOKS(X)                                                                        \
  WEIR_AUDIT_CORE_HOOKS(X)                                                                         \
  WEIR_AUDIT_PROMOTED_HOOKS(X)

#define WEIR_AUDIT_DECLARE(name) std::remove_pointer_t<PFN_vk##name> name;
namespace hooks {
WEIR_AUDIT_HOOKS(WEIR_AUDIT_DECLARE)
}
#undef WEIR_AUDIT_DECLARE

/// The next functions in the chain; null if the device has none.
struct Next {
#define WEIR_AUDIT_DECLARE(name) PFN_vk##name name = nullptr;
  WEIR_AUDIT_HOOKS(WEIR_AUDIT_DECLARE)
#undef WEIR_AUDIT_DECLARE
  PFN_vkGetDeviceProcAddr GetDeviceProcAddr = nullptr;
};

struct SetLayout {
  struct Binding {
    VkDescriptorType type = VK_DESCRIPTOR_TYPE_SAMPLER;
    uint32_t count = 0;
    bool mayChange = false; ///< whether it may be updated after it is bound
  };
  std::map<uint32_t, Binding> bindings;
};

struct Descriptor {
  std::shared_ptr<const Buffer> buffer; ///< null: none, or not a buffer
  int64_t offset = 0, bytes = 0;        ///< -1 bytes: -1: up to the buffer's end
};

/// The index of a descriptor in a set: binding and array element.
using DescriptorPlace = std::pair<uint32_t, uint32_t>;

struct Set {
  std::shared_ptr<const SetLayout> layout;
  std::map<DescriptorPlace, Descriptor> descriptors;
};

/// A descriptor set bound in a command buffer.
struct BoundSet {
  std::shared_ptr<const Set> set;
  std::map<DescriptorPlace, int64_t> offsets; ///< offsets of dynamic descriptors
};

using PipelineLayout = std::vector<std::shared_ptr<const SetLayout>>;

struct Pipeline {
  std::string name;
  std::shared_ptr<const std::vector<uint32_t>> words;
  std::string entry;
  std::vector<Specialization> constants;
  Subgroups subgroups;
  size_t sets = 0; ///< number of sets in its layout
  /// Read at its first dispatch, since few pipelines are ever dispatched.
  std::unique_ptr<Kernel> kernel;

  Kernel &getKernel();
};

struct CommandBuffer {
  std::string name;
  VkCommandPool pool = VK_NULL_HANDLE;
  std::shared_ptr<Recording> recording;
  /// Earlier contents, the latest last. One that is recorded again is the same recording.
  std::vector<std::shared_ptr<Recording>> past;
  size_t commands = 0; ///< number recorded so far, without those that only set state
  std::shared_ptr<Pipeline> pipeline;
  std::map<uint32_t, BoundSet> sets;
};

class Device {
public:
  VkDevice handle = VK_NULL_HANDLE;
  Next next;
  std::string name;
  Subgroups subgroups; ///< defaults for pipelines

  std::mutex mutex; ///< guards everything below
  Checker checker;
  std::map<std::string, int64_t> unseen;           ///< number of uses by name
  std::map<size_t, PFN_vkVoidFunction> nextUnseen; ///< next functions of hooks that only count

  std::unordered_map<VkDeviceMemory, uint64_t> memory; ///< ids of the allocations
  std::unordered_map<VkBuffer, std::shared_ptr<Buffer>> buffers;
  std::unordered_map<VkShaderModule, std::shared_ptr<const std::vector<uint32_t>>> modules;
  std::unordered_map<VkDescriptorSetLayout, std::shared_ptr<const SetLayout>> setLayouts;
  std::unordered_map<VkPipelineLayout, PipelineLayout> layouts;
  std::unordered_map<VkPipeline, std::shared_ptr<Pipeline>> pipelines;
  std::unordered_map<VkDescriptorSet, std::shared_ptr<Set>> sets;
  std::unordered_map<VkDescriptorSet, VkDescriptorPool> pools;
  std::unordered_map<VkDescriptorUpdateTemplate, std::vector<VkDescriptorUpdateTemplateEntry>>
      templates;
  std::unordered_map<VkCommandBuffer, CommandBuffer> commandBuffers;
  std::unordered_map<VkQueue, uint32_t> queues;
  std::unordered_map<VkSemaphore, bool> areTimelines;
  uint64_t allocations = 0, bufferCount = 0, commandBufferCount = 0;

  /// Locks the mutex and removes an object that is about to be destroyed from its map.
  template <typename Objects>
  void drop(Objects &objects, const typename Objects::key_type &object) {
    std::lock_guard lock(mutex);
    objects.erase(object);
  }

  // Need: the mutex is locked.
  std::shared_ptr<const Buffer> getBuffer(VkBuffer buffer) const;
  void see(const std::string &what) { ++unseen[what]; }
  uint32_t getQueue(VkQueue queue) {
    return queues.try_emplace(queue, queues.size()).first->second;
  }
  void restart(CommandBuffer &commands);
  void forget(CommandBuffer &commands);
  /// Returns what a command buffer holds; an earlier recording if that is equal.
  const std::shared_ptr<Recording> &getRecording(CommandBuffer &commands);
  /// Counts a command that is not tracked, by its name.
  void addUnseen(VkCommandBuffer commands, const char *name);
  void write(Set &set, const VkWriteDescriptorSet &write) const;
  void write(Set &set, const std::vector<VkDescriptorUpdateTemplateEntry> &entries,
             const void *data) const;

  void report();
};

/// Returns the dispatch key of a device, a queue or a command buffer: all handles of one device
/// begin with the same word.
template <typename Handle> void *getKey(Handle handle) {
  return *reinterpret_cast<void **>(handle);
}
Device &findDevice(void *key);
template <typename Handle> Device &getDevice(Handle handle) { return findDevice(getKey(handle)); }

/// Returns the first structure of a type in a chain, or null.
template <typename Info> const Info *findInfo(const void *chain, VkStructureType type) {
  for (auto *info = static_cast<const VkBaseInStructure *>(chain); info; info = info->pNext)
    if (info->sType == type)
      return reinterpret_cast<const Info *>(info);
  return nullptr;
}

template <typename Handle> uint64_t getNumber(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

/// Whether descriptors of `type` are buffers that shaders access as bytes.
bool isBuffer(VkDescriptorType type);

/// Returns a hook that only counts a command that is not tracked; null if there is none of that
/// name, or the device lacks the command.
PFN_vkVoidFunction getUnseenHook(Device &device, const char *name);

} // namespace weir::audit

#endif // WEIR_TOOLS_AUDIT_LAYER_DEVICE_H
