//===- Objects.cpp - Memory, pipelines, descriptors -----------------------===//

#include "Device.h"

#include <algorithm>
#include <cstring>

namespace weir::audit {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

VkResult hooks::AllocateMemory(VkDevice handle, const VkMemoryAllocateInfo *info,
                               const VkAllocationCallbacks *allocator, VkDeviceMemory *memory) {
  Device &device = getDevice(handle);
  VkResult result = device.next.AllocateMemory(handle, info, allocator, memory);
  if (result != VK_SUCCESS)
    return result;
  std::lock_guard lock(device.mutex);
  device.memory[*memory] = ++device.allocations;
  return result;
}

void hooks::FreeMemory(VkDevice handle, VkDeviceMemory memory,
                       const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    if (auto found = device.memory.find(memory); found != device.memory.end()) {
      device.checker.freeMemory(found->second);
      device.memory.erase(found);
    }
  }
  device.next.FreeMemory(handle, memory, allocator);
}

VkResult hooks::CreateBuffer(VkDevice handle, const VkBufferCreateInfo *info,
                             const VkAllocationCallbacks *allocator, VkBuffer *buffer) {
  Device &device = getDevice(handle);
  VkResult result = device.next.CreateBuffer(handle, info, allocator, buffer);
  if (result != VK_SUCCESS)
    return result;
  std::lock_guard lock(device.mutex);
  auto made = std::make_shared<Buffer>();
  made->bytes = int64_t(info->size);
  made->name = "buffer " + std::to_string(++device.bufferCount);
  device.buffers[*buffer] = std::move(made);
  return result;
}

void hooks::DestroyBuffer(VkDevice handle, VkBuffer buffer,
                          const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  device.drop(device.buffers, buffer);
  device.next.DestroyBuffer(handle, buffer, allocator);
}

static void bind(Device &device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset) {
  std::lock_guard lock(device.mutex);
  auto found = device.buffers.find(buffer);
  if (found == device.buffers.end())
    return;
  found->second->memory = device.memory[memory];
  found->second->offset = int64_t(offset);
}

VkResult hooks::BindBufferMemory(VkDevice handle, VkBuffer buffer, VkDeviceMemory memory,
                                 VkDeviceSize offset) {
  Device &device = getDevice(handle);
  VkResult result = device.next.BindBufferMemory(handle, buffer, memory, offset);
  if (result == VK_SUCCESS)
    bind(device, buffer, memory, offset);
  return result;
}

VkResult hooks::BindBufferMemory2(VkDevice handle, uint32_t count,
                                  const VkBindBufferMemoryInfo *infos) {
  Device &device = getDevice(handle);
  VkResult result = device.next.BindBufferMemory2(handle, count, infos);
  if (result == VK_SUCCESS)
    for (uint32_t i = 0; i < count; ++i)
      bind(device, infos[i].buffer, infos[i].memory, infos[i].memoryOffset);
  return result;
}

std::shared_ptr<const Buffer> Device::getBuffer(VkBuffer buffer) const {
  auto found = buffers.find(buffer);
  return found == buffers.end() ? nullptr : found->second;
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

static std::shared_ptr<const std::vector<uint32_t>>
copyWords(const VkShaderModuleCreateInfo &info) {
  return std::make_shared<std::vector<uint32_t>>(info.pCode, info.pCode + info.codeSize / 4);
}

VkResult hooks::CreateShaderModule(VkDevice handle, const VkShaderModuleCreateInfo *info,
                                   const VkAllocationCallbacks *allocator, VkShaderModule *module) {
  Device &device = getDevice(handle);
  VkResult result = device.next.CreateShaderModule(handle, info, allocator, module);
  if (result != VK_SUCCESS)
    return result;
  std::lock_guard lock(device.mutex);
  device.modules[*module] = copyWords(*info);
  return result;
}

void hooks::DestroyShaderModule(VkDevice handle, VkShaderModule module,
                                const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  device.drop(device.modules, module);
  device.next.DestroyShaderModule(handle, module, allocator);
}

VkResult hooks::CreateDescriptorSetLayout(VkDevice handle,
                                          const VkDescriptorSetLayoutCreateInfo *info,
                                          const VkAllocationCallbacks *allocator,
                                          VkDescriptorSetLayout *layout) {
  Device &device = getDevice(handle);
  VkResult result = device.next.CreateDescriptorSetLayout(handle, info, allocator, layout);
  if (result != VK_SUCCESS)
    return result;
  auto *flags = findInfo<VkDescriptorSetLayoutBindingFlagsCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO);
  auto made = std::make_shared<SetLayout>();
  for (uint32_t i = 0; i < info->bindingCount; ++i) {
    const VkDescriptorSetLayoutBinding &binding = info->pBindings[i];
    bool mayChange = flags && i < flags->bindingCount &&
                     flags->pBindingFlags[i] & VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT;
    made->bindings[binding.binding] = {binding.descriptorType, binding.descriptorCount, mayChange};
  }
  std::lock_guard lock(device.mutex);
  device.setLayouts[*layout] = std::move(made);
  return result;
}

void hooks::DestroyDescriptorSetLayout(VkDevice handle, VkDescriptorSetLayout layout,
                                       const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  device.drop(device.setLayouts, layout);
  device.next.DestroyDescriptorSetLayout(handle, layout, allocator);
}

VkResult hooks::CreatePipelineLayout(VkDevice handle, const VkPipelineLayoutCreateInfo *info,
                                     const VkAllocationCallbacks *allocator,
                                     VkPipelineLayout *layout) {
  Device &device = getDevice(handle);
  VkResult result = device.next.CreatePipelineLayout(handle, info, allocator, layout);
  if (result != VK_SUCCESS)
    return result;
  std::lock_guard lock(device.mutex);
  PipelineLayout made;
  for (uint32_t i = 0; i < info->setLayoutCount; ++i) {
    auto set = device.setLayouts.find(info->pSetLayouts[i]);
    made.push_back(set == device.setLayouts.end() ? nullptr : set->second);
  }
  device.layouts[*layout] = std::move(made);
  return result;
}

void hooks::DestroyPipelineLayout(VkDevice handle, VkPipelineLayout layout,
                                  const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  device.drop(device.layouts, layout);
  device.next.DestroyPipelineLayout(handle, layout, allocator);
}

static std::shared_ptr<Pipeline> makePipeline(const Device &device,
                                              const VkComputePipelineCreateInfo &info) {
  const VkPipelineShaderStageCreateInfo &stage = info.stage;
  auto pipeline = std::make_shared<Pipeline>();
  pipeline->name = pipeline->entry = stage.pName;
  auto module = device.modules.find(stage.module);
  auto *inlined =
      findInfo<VkShaderModuleCreateInfo>(stage.pNext, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  if (module != device.modules.end())
    pipeline->words = module->second;
  else if (inlined)
    pipeline->words = copyWords(*inlined);
  else // only the driver has the code, by an identifier
    pipeline->words = std::make_shared<std::vector<uint32_t>>();
  if (const VkSpecializationInfo *constants = stage.pSpecializationInfo)
    for (uint32_t i = 0; i < constants->mapEntryCount; ++i) {
      const VkSpecializationMapEntry &entry = constants->pMapEntries[i];
      Specialization constant{entry.constantID, 0};
      std::memcpy(&constant.bits, static_cast<const char *>(constants->pData) + entry.offset,
                  std::min<size_t>(entry.size, sizeof(constant.bits)));
      pipeline->constants.push_back(constant);
    }
  pipeline->subgroups = device.subgroups;
  auto *required = findInfo<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
      stage.pNext, VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
  // From SPIR-V 1.6 on, subgroup sizes may vary without the flag.
  bool mayVary = stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT ||
                 (pipeline->words->size() > 1 && (*pipeline->words)[1] >= 0x10600);
  if (required) {
    pipeline->subgroups.size = required->requiredSubgroupSize;
    pipeline->subgroups.isFixed = true;
  } else if (!mayVary) {
    pipeline->subgroups.isFixed = true;
  }
  pipeline->subgroups.areFull =
      stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  auto layout = device.layouts.find(info.layout);
  pipeline->sets = layout == device.layouts.end() ? 0 : layout->second.size();
  return pipeline;
}

Kernel &Pipeline::getKernel() {
  if (!kernel)
    kernel = std::make_unique<Kernel>(*words, entry, constants, subgroups);
  return *kernel;
}

VkResult hooks::CreateComputePipelines(VkDevice handle, VkPipelineCache cache, uint32_t count,
                                       const VkComputePipelineCreateInfo *infos,
                                       const VkAllocationCallbacks *allocator,
                                       VkPipeline *pipelines) {
  Device &device = getDevice(handle);
  VkResult result =
      device.next.CreateComputePipelines(handle, cache, count, infos, allocator, pipelines);
  std::lock_guard lock(device.mutex);
  // Some pipelines may be created even if others fail.
  for (uint32_t i = 0; i < count; ++i)
    if (result >= 0 && pipelines[i] != VK_NULL_HANDLE)
      device.pipelines[pipelines[i]] = makePipeline(device, infos[i]);
  return result;
}

void hooks::DestroyPipeline(VkDevice handle, VkPipeline pipeline,
                            const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  device.drop(device.pipelines, pipeline);
  device.next.DestroyPipeline(handle, pipeline, allocator);
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

static void freeSets(Device &device, VkDescriptorPool pool) {
  std::lock_guard lock(device.mutex);
  std::erase_if(device.pools, [&](const auto &entry) {
    if (entry.second != pool)
      return false;
    device.sets.erase(entry.first);
    return true;
  });
}

void hooks::DestroyDescriptorPool(VkDevice handle, VkDescriptorPool pool,
                                  const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  freeSets(device, pool);
  device.next.DestroyDescriptorPool(handle, pool, allocator);
}

VkResult hooks::ResetDescriptorPool(VkDevice handle, VkDescriptorPool pool,
                                    VkDescriptorPoolResetFlags flags) {
  Device &device = getDevice(handle);
  freeSets(device, pool);
  return device.next.ResetDescriptorPool(handle, pool, flags);
}

VkResult hooks::AllocateDescriptorSets(VkDevice handle, const VkDescriptorSetAllocateInfo *info,
                                       VkDescriptorSet *sets) {
  Device &device = getDevice(handle);
  VkResult result = device.next.AllocateDescriptorSets(handle, info, sets);
  if (result != VK_SUCCESS)
    return result;
  std::lock_guard lock(device.mutex);
  for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
    auto set = std::make_shared<Set>();
    set->layout = device.setLayouts[info->pSetLayouts[i]];
    device.sets[sets[i]] = std::move(set);
    device.pools[sets[i]] = info->descriptorPool;
  }
  return result;
}

VkResult hooks::FreeDescriptorSets(VkDevice handle, VkDescriptorPool pool, uint32_t count,
                                   const VkDescriptorSet *sets) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    for (uint32_t i = 0; i < count; ++i) {
      device.sets.erase(sets[i]);
      device.pools.erase(sets[i]);
    }
  }
  return device.next.FreeDescriptorSets(handle, pool, count, sets);
}

/// Visits descriptors from one on; those beyond a binding's end continue in the next binding.
template <typename Visit>
static void forEachPlace(const Set &set, uint32_t binding, uint32_t element, uint32_t count,
                         Visit visit) {
  if (!set.layout)
    return;
  const auto &bindings = set.layout->bindings;
  auto here = bindings.lower_bound(binding);
  for (uint32_t i = 0; i < count; ++i, ++element) {
    while (here != bindings.end() && element >= here->second.count) {
      element = 0;
      ++here;
    }
    if (here == bindings.end())
      return;
    visit(DescriptorPlace(here->first, element), i);
  }
}

static Descriptor makeDescriptor(const Device &device, const VkDescriptorBufferInfo &info) {
  return {device.getBuffer(info.buffer), int64_t(info.offset),
          info.range == VK_WHOLE_SIZE ? -1 : int64_t(info.range)};
}

void Device::write(Set &set, const VkWriteDescriptorSet &write) const {
  if (isBuffer(write.descriptorType))
    forEachPlace(set, write.dstBinding, write.dstArrayElement, write.descriptorCount,
                 [&](DescriptorPlace place, uint32_t i) {
                   set.descriptors[place] = makeDescriptor(*this, write.pBufferInfo[i]);
                 });
}

void Device::write(Set &set, const std::vector<VkDescriptorUpdateTemplateEntry> &entries,
                   const void *data) const {
  for (const VkDescriptorUpdateTemplateEntry &entry : entries)
    if (isBuffer(entry.descriptorType))
      forEachPlace(set, entry.dstBinding, entry.dstArrayElement, entry.descriptorCount,
                   [&](DescriptorPlace place, uint32_t i) {
                     VkDescriptorBufferInfo info;
                     std::memcpy(&info,
                                 static_cast<const char *>(data) + entry.offset + i * entry.stride,
                                 sizeof(info));
                     set.descriptors[place] = makeDescriptor(*this, info);
                   });
}

void hooks::UpdateDescriptorSets(VkDevice handle, uint32_t writeCount,
                                 const VkWriteDescriptorSet *writes, uint32_t copyCount,
                                 const VkCopyDescriptorSet *copies) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    for (uint32_t i = 0; i < writeCount; ++i)
      if (auto set = device.sets.find(writes[i].dstSet); set != device.sets.end())
        device.write(*set->second, writes[i]);
    for (uint32_t i = 0; i < copyCount; ++i) {
      const VkCopyDescriptorSet &copy = copies[i];
      auto from = device.sets.find(copy.srcSet), to = device.sets.find(copy.dstSet);
      if (from == device.sets.end() || to == device.sets.end())
        continue;
      std::vector<Descriptor> copied;
      forEachPlace(*from->second, copy.srcBinding, copy.srcArrayElement, copy.descriptorCount,
                   [&](DescriptorPlace place, uint32_t) {
                     copied.push_back(from->second->descriptors[place]);
                   });
      forEachPlace(
          *to->second, copy.dstBinding, copy.dstArrayElement, uint32_t(copied.size()),
          [&](DescriptorPlace place, uint32_t j) { to->second->descriptors[place] = copied[j]; });
    }
  }
  device.next.UpdateDescriptorSets(handle, writeCount, writes, copyCount, copies);
}

VkResult hooks::CreateDescriptorUpdateTemplate(VkDevice handle,
                                               const VkDescriptorUpdateTemplateCreateInfo *info,
                                               const VkAllocationCallbacks *allocator,
                                               VkDescriptorUpdateTemplate *made) {
  Device &device = getDevice(handle);
  VkResult result = device.next.CreateDescriptorUpdateTemplate(handle, info, allocator, made);
  if (result != VK_SUCCESS)
    return result;
  // Descriptors pushed for graphics are not tracked.
  if (info->templateType == VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS_KHR &&
      info->pipelineBindPoint != VK_PIPELINE_BIND_POINT_COMPUTE)
    return result;
  std::lock_guard lock(device.mutex);
  device.templates[*made].assign(info->pDescriptorUpdateEntries,
                                 info->pDescriptorUpdateEntries + info->descriptorUpdateEntryCount);
  return result;
}

void hooks::DestroyDescriptorUpdateTemplate(VkDevice handle, VkDescriptorUpdateTemplate made,
                                            const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  device.drop(device.templates, made);
  device.next.DestroyDescriptorUpdateTemplate(handle, made, allocator);
}

void hooks::UpdateDescriptorSetWithTemplate(VkDevice handle, VkDescriptorSet set,
                                            VkDescriptorUpdateTemplate made, const void *data) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    if (auto found = device.sets.find(set); found != device.sets.end())
      device.write(*found->second, device.templates[made], data);
  }
  device.next.UpdateDescriptorSetWithTemplate(handle, set, made, data);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

VkResult hooks::SetDebugUtilsObjectNameEXT(VkDevice handle,
                                           const VkDebugUtilsObjectNameInfoEXT *info) {
  Device &device = getDevice(handle);
  if (info->pObjectName) {
    std::lock_guard lock(device.mutex);
    std::string name = info->pObjectName;
    uint64_t number = info->objectHandle;
    if (info->objectType == VK_OBJECT_TYPE_PIPELINE) {
      auto found = device.pipelines.find(reinterpret_cast<VkPipeline>(number));
      if (found != device.pipelines.end())
        found->second->name = name;
    } else if (info->objectType == VK_OBJECT_TYPE_BUFFER) {
      auto found = device.buffers.find(reinterpret_cast<VkBuffer>(number));
      if (found != device.buffers.end())
        found->second->name = "buffer \"" + name + "\"";
    } else if (info->objectType == VK_OBJECT_TYPE_COMMAND_BUFFER) {
      auto found = device.commandBuffers.find(reinterpret_cast<VkCommandBuffer>(number));
      if (found != device.commandBuffers.end())
        found->second.name = "command buffer \"" + name + "\"";
    }
  }
  return device.next.SetDebugUtilsObjectNameEXT(handle, info);
}

} // namespace weir::audit
