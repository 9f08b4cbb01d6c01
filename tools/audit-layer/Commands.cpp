//===- Commands.cpp - Records commands of command buffers -----------------===//

#include "Device.h"

#include <algorithm>

namespace weir::audit {

//===----------------------------------------------------------------------===//
// Command buffers
//===----------------------------------------------------------------------===//

/// Max number of earlier contents of a command buffer that are kept.
static constexpr size_t maxPast = 8;

/// Clears a command buffer for a new recording.
void Device::restart(CommandBuffer &commands) {
  if (commands.recording && !commands.recording->commands.empty())
    commands.past.push_back(commands.recording);
  if (commands.past.size() > maxPast) {
    checker.forget(*commands.past.front());
    commands.past.erase(commands.past.begin());
  }
  commands.recording = std::make_shared<Recording>();
  commands.commands = 0;
  commands.pipeline.reset();
  commands.sets.clear();
}

/// Forgets all that a command buffer has held.
void Device::forget(CommandBuffer &commands) {
  restart(commands);
  for (const auto &recording : commands.past)
    checker.forget(*recording);
  commands.past.clear();
}

const std::shared_ptr<Recording> &Device::getRecording(CommandBuffer &commands) {
  for (auto known = commands.past.rbegin(); known != commands.past.rend(); ++known)
    if (**known == *commands.recording) {
      commands.recording = *known;
      commands.past.erase(std::next(known).base());
      break;
    }
  return commands.recording;
}

void Device::addUnseen(VkCommandBuffer handle, const char *what) {
  CommandBuffer &commands = commandBuffers[handle];
  ++commands.commands;
  commands.recording->hasUnseen = true;
  see(what);
}

static void forgetPool(VkDevice handle, VkCommandPool pool, bool isFreed) {
  Device &device = getDevice(handle);
  std::lock_guard lock(device.mutex);
  for (auto entry = device.commandBuffers.begin(); entry != device.commandBuffers.end();) {
    auto next = std::next(entry);
    if (entry->second.pool == pool && isFreed) {
      device.forget(entry->second);
      device.commandBuffers.erase(entry);
    } else if (entry->second.pool == pool) {
      device.restart(entry->second);
    }
    entry = next;
  }
}

void hooks::DestroyCommandPool(VkDevice handle, VkCommandPool pool,
                               const VkAllocationCallbacks *allocator) {
  forgetPool(handle, pool, /*isFreed=*/true);
  getDevice(handle).next.DestroyCommandPool(handle, pool, allocator);
}

VkResult hooks::ResetCommandPool(VkDevice handle, VkCommandPool pool,
                                 VkCommandPoolResetFlags flags) {
  forgetPool(handle, pool, /*isFreed=*/false);
  return getDevice(handle).next.ResetCommandPool(handle, pool, flags);
}

VkResult hooks::AllocateCommandBuffers(VkDevice handle, const VkCommandBufferAllocateInfo *info,
                                       VkCommandBuffer *buffers) {
  Device &device = getDevice(handle);
  VkResult result = device.next.AllocateCommandBuffers(handle, info, buffers);
  if (result != VK_SUCCESS)
    return result;
  std::lock_guard lock(device.mutex);
  for (uint32_t i = 0; i < info->commandBufferCount; ++i) {
    CommandBuffer &commands = device.commandBuffers[buffers[i]];
    commands.name = "command buffer " + std::to_string(++device.commandBufferCount);
    commands.pool = info->commandPool;
    commands.recording = std::make_shared<Recording>();
  }
  return result;
}

void hooks::FreeCommandBuffers(VkDevice handle, VkCommandPool pool, uint32_t count,
                               const VkCommandBuffer *buffers) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    for (uint32_t i = 0; i < count; ++i)
      if (auto found = device.commandBuffers.find(buffers[i]);
          found != device.commandBuffers.end()) {
        device.forget(found->second);
        device.commandBuffers.erase(found);
      }
  }
  device.next.FreeCommandBuffers(handle, pool, count, buffers);
}

static Device &restart(VkCommandBuffer handle) {
  Device &device = getDevice(handle);
  std::lock_guard lock(device.mutex);
  device.restart(device.commandBuffers[handle]);
  return device;
}

VkResult hooks::BeginCommandBuffer(VkCommandBuffer handle, const VkCommandBufferBeginInfo *info) {
  return restart(handle).next.BeginCommandBuffer(handle, info);
}

VkResult hooks::ResetCommandBuffer(VkCommandBuffer handle, VkCommandBufferResetFlags flags) {
  return restart(handle).next.ResetCommandBuffer(handle, flags);
}

/// Notes that a part of a command's effects is not tracked.
static void leaveOut(Device &device, Command &command, const std::string &what) {
  device.see(what);
  command.isJudged = false;
}

static void add(CommandBuffer &commands, const std::string &what, Command command) {
  // A barrier next to an untracked command may be needed for it.
  if (command.kind == Command::Kind::Touches && !command.isJudged)
    commands.recording->hasUnseen = true;
  command.name =
      "command " + std::to_string(commands.commands++) + " (" + what + ") of " + commands.name;
  commands.recording->commands.push_back(std::make_shared<const Command>(std::move(command)));
}

/// Adds an access to bytes [begin, end) of a buffer, clamped to its size.
static void addTouch(Device &device, Command &command, const std::shared_ptr<const Buffer> &buffer,
                     int64_t begin, int64_t end, Stages stage, Accesses access, bool writes,
                     bool isCertain) {
  if (!buffer || !buffer->memory)
    return leaveOut(device, command, "a buffer without memory of its own");
  begin = std::max<int64_t>(begin, 0);
  end = std::min(end, buffer->bytes);
  if (begin < end)
    command.touches.push_back({buffer, begin, end, stage, access, writes, isCertain});
}

//===----------------------------------------------------------------------===//
// Dispatches
//===----------------------------------------------------------------------===//

void hooks::CmdBindPipeline(VkCommandBuffer handle, VkPipelineBindPoint point,
                            VkPipeline pipeline) {
  Device &device = getDevice(handle);
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE) {
    std::lock_guard lock(device.mutex);
    auto found = device.pipelines.find(pipeline);
    device.commandBuffers[handle].pipeline =
        found == device.pipelines.end() ? nullptr : found->second;
  }
  device.next.CmdBindPipeline(handle, point, pipeline);
}

static bool isDynamic(VkDescriptorType type) {
  return type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC ||
         type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
}

static bool isUniform(VkDescriptorType type) {
  return type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER ||
         type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
}

bool isBuffer(VkDescriptorType type) {
  return isUniform(type) || type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER ||
         type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;
}

void hooks::CmdBindDescriptorSets(VkCommandBuffer handle, VkPipelineBindPoint point,
                                  VkPipelineLayout layout, uint32_t first, uint32_t count,
                                  const VkDescriptorSet *sets, uint32_t offsetCount,
                                  const uint32_t *offsets) {
  Device &device = getDevice(handle);
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE) {
    std::lock_guard lock(device.mutex);
    CommandBuffer &commands = device.commandBuffers[handle];
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; ++i) {
      BoundSet bound;
      if (auto found = device.sets.find(sets[i]); found != device.sets.end())
        bound.set = found->second;
      if (bound.set && bound.set->layout)
        for (const auto &[number, binding] : bound.set->layout->bindings)
          for (uint32_t element = 0; isDynamic(binding.type) && element < binding.count; ++element)
            if (next < offsetCount)
              bound.offsets[{number, element}] = offsets[next++];
      commands.sets[first + i] = std::move(bound);
    }
  }
  device.next.CmdBindDescriptorSets(handle, point, layout, first, count, sets, offsetCount,
                                    offsets);
}

/// Returns a new set for a command buffer, with the descriptors pushed before.
static Set &push(Device &device, VkCommandBuffer handle, VkPipelineLayout layout, uint32_t number) {
  BoundSet &bound = device.commandBuffers[handle].sets[number];
  auto set = bound.set ? std::make_shared<Set>(*bound.set) : std::make_shared<Set>();
  const PipelineLayout &sets = device.layouts[layout];
  auto setLayout = number < sets.size() ? sets[number] : nullptr;
  if (set->layout != setLayout)
    *set = {setLayout, {}};
  bound = {set, {}};
  return *set;
}

void hooks::CmdPushDescriptorSetKHR(VkCommandBuffer handle, VkPipelineBindPoint point,
                                    VkPipelineLayout layout, uint32_t number, uint32_t count,
                                    const VkWriteDescriptorSet *writes) {
  Device &device = getDevice(handle);
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE) {
    std::lock_guard lock(device.mutex);
    Set &set = push(device, handle, layout, number);
    for (uint32_t i = 0; i < count; ++i)
      device.write(set, writes[i]);
  }
  device.next.CmdPushDescriptorSetKHR(handle, point, layout, number, count, writes);
}

void hooks::CmdPushDescriptorSetWithTemplateKHR(VkCommandBuffer handle,
                                                VkDescriptorUpdateTemplate made,
                                                VkPipelineLayout layout, uint32_t number,
                                                const void *data) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    if (auto found = device.templates.find(made); found != device.templates.end())
      device.write(push(device, handle, layout, number), found->second, data);
  }
  device.next.CmdPushDescriptorSetWithTemplateKHR(handle, made, layout, number, data);
}

void hooks::CmdBindDescriptorBuffersEXT(VkCommandBuffer handle, uint32_t count,
                                        const VkDescriptorBufferBindingInfoEXT *infos) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    device.commandBuffers[handle].sets.clear();
    device.see("descriptors in buffers (vkCmdBindDescriptorBuffersEXT)");
  }
  device.next.CmdBindDescriptorBuffersEXT(handle, count, infos);
}

/// Returns the bytes of `second` that are not in `first`. Needs: both are sorted and disjoint.
static std::vector<spv::ByteRange> subtract(const std::vector<spv::ByteRange> &first,
                                            const std::vector<spv::ByteRange> &second) {
  std::vector<spv::ByteRange> rest;
  auto hole = first.begin();
  for (spv::ByteRange range : second) {
    while (hole != first.end() && hole->end <= range.begin)
      ++hole;
    for (auto next = hole; next != first.end() && next->begin < range.end; ++next) {
      if (range.begin < next->begin)
        rest.push_back({range.begin, next->begin});
      range.begin = std::max(range.begin, next->end);
    }
    if (range.begin < range.end)
      rest.push_back(range);
  }
  return rest;
}

/// Returns how many bytes of a descriptor a shader can reach.
static int64_t getBytes(const Descriptor &descriptor, int64_t dynamicOffset) {
  return descriptor.bytes < 0 ? descriptor.buffer->bytes - descriptor.offset - dynamicOffset
                              : descriptor.bytes;
}

static void addDescriptor(Device &device, Command &command, const Descriptor &descriptor,
                          VkDescriptorType type, int64_t dynamicOffset,
                          const SlotEffects &effects) {
  if (!descriptor.buffer)
    return; // a null descriptor accesses nothing
  int64_t base = descriptor.offset + dynamicOffset;
  int64_t bytes = getBytes(descriptor, dynamicOffset);
  auto addSide = [&](const spv::TouchedBytes &side, Accesses access, bool writes) {
    auto addRanges = [&](const std::vector<spv::ByteRange> &ranges, bool isCertain) {
      for (const spv::ByteRange &range : ranges)
        addTouch(device, command, descriptor.buffer, base + std::max<int64_t>(range.begin, 0),
                 base + std::min(range.end, bytes), stageCompute, access, writes, isCertain);
    };
    addRanges(side.certain, true);
    addRanges(
        subtract(side.certain, side.possible.value_or(std::vector<spv::ByteRange>{{0, bytes}})),
        false);
  };
  addSide(effects.read, isUniform(type) ? accessUniformRead : accessStorageRead, false);
  if (!isUniform(type))
    addSide(effects.written, accessStorageWrite, true);
}

static void addSlot(Device &device, Command &command, const BoundSet &bound, uint32_t number,
                    const SlotEffects &effects) {
  auto binding = bound.set->layout->bindings.find(number);
  if (binding == bound.set->layout->bindings.end())
    return leaveOut(device, command, "a descriptor that its set's layout does not have");
  if (!isBuffer(binding->second.type))
    return leaveOut(device, command, "a descriptor that is not a buffer");
  if (binding->second.mayChange)
    return leaveOut(device, command, "a descriptor that may be updated after it is bound");
  for (uint32_t element = 0; element < binding->second.count; ++element) {
    DescriptorPlace place(number, element);
    auto descriptor = bound.set->descriptors.find(place);
    auto offset = bound.offsets.find(place);
    if (descriptor != bound.set->descriptors.end())
      addDescriptor(device, command, descriptor->second, binding->second.type,
                    offset == bound.offsets.end() ? 0 : offset->second, effects);
  }
}

/// Returns the sizes of the descriptors that are bound, as far as the code asks for them.
static std::map<DescriptorSlot, int64_t> getSizes(const CommandBuffer &commands,
                                                  const Kernel &kernel) {
  std::map<DescriptorSlot, int64_t> sizes;
  for (const DescriptorSlot &slot : kernel.getSized()) {
    auto bound = commands.sets.find(slot.set);
    if (bound == commands.sets.end() || !bound->second.set || !bound->second.set->layout)
      continue;
    const auto &bindings = bound->second.set->layout->bindings;
    const DescriptorPlace place(slot.binding, 0);
    auto binding = bindings.find(slot.binding);
    auto descriptor = bound->second.set->descriptors.find(place);
    if (binding == bindings.end() || binding->second.mayChange ||
        descriptor == bound->second.set->descriptors.end() || !descriptor->second.buffer)
      continue;
    auto offset = bound->second.offsets.find(place);
    sizes[slot] =
        getBytes(descriptor->second, offset == bound->second.offsets.end() ? 0 : offset->second);
  }
  return sizes;
}

/// Adds a dispatch; `grid` is null if it is unknown.
static void addDispatch(Device &device, VkCommandBuffer handle, Command command,
                        const std::array<int64_t, 3> *grid) {
  CommandBuffer &commands = device.commandBuffers[handle];
  command.isDispatch = true;
  if (!commands.pipeline) {
    device.addUnseen(handle, "a dispatch whose pipeline is not known");
    return;
  }
  const std::string name = "dispatch of \"" + commands.pipeline->name + "\"";
  Kernel &kernel = commands.pipeline->getKernel();
  const KernelEffects &effects =
      grid ? kernel.getEffects(*grid, getSizes(commands, kernel)) : kernel.getEffects();
  if (!effects.problem.empty())
    device.see("where in its descriptors a " + name + " reads and writes: " + effects.problem);
  if (kernel.usesAddresses())
    leaveOut(device, command, "memory that a " + name + " reaches by addresses");
  auto findSet = [&](uint32_t number) -> const BoundSet * {
    auto bound = commands.sets.find(number);
    if (bound != commands.sets.end() && bound->second.set && bound->second.set->layout)
      return &bound->second;
    leaveOut(device, command, "a set of descriptors that is not known");
    return nullptr;
  };
  if (effects.areSlotsKnown)
    for (const auto &[slot, touched] : effects.slots) {
      if (const BoundSet *bound = findSet(slot.set))
        addSlot(device, command, *bound, slot.binding, touched);
    }
  else
    for (uint32_t number = 0; number < commands.pipeline->sets; ++number)
      if (const BoundSet *bound = findSet(number))
        for (const auto &[binding, unused] : bound->set->layout->bindings)
          addSlot(device, command, *bound, binding, {});
  add(commands, name, std::move(command));
}

void hooks::CmdDispatch(VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    std::array<int64_t, 3> grid = {x, y, z};
    if (x && y && z)
      addDispatch(device, handle, {}, &grid);
  }
  device.next.CmdDispatch(handle, x, y, z);
}

void hooks::CmdDispatchBase(VkCommandBuffer handle, uint32_t baseX, uint32_t baseY, uint32_t baseZ,
                            uint32_t x, uint32_t y, uint32_t z) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    std::array<int64_t, 3> grid = {x, y, z};
    if (x && y && z)
      addDispatch(device, handle, {}, baseX || baseY || baseZ ? nullptr : &grid);
  }
  device.next.CmdDispatchBase(handle, baseX, baseY, baseZ, x, y, z);
}

void hooks::CmdDispatchIndirect(VkCommandBuffer handle, VkBuffer buffer, VkDeviceSize offset) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    Command command;
    addTouch(device, command, device.getBuffer(buffer), int64_t(offset),
             int64_t(offset + sizeof(VkDispatchIndirectCommand)), stageIndirect, accessIndirectRead,
             false, true);
    addDispatch(device, handle, std::move(command), nullptr);
  }
  device.next.CmdDispatchIndirect(handle, buffer, offset);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

template <typename Region>
static void addCopies(Device &device, VkCommandBuffer handle, VkBuffer from, VkBuffer to,
                      uint32_t count, const Region *regions) {
  std::lock_guard lock(device.mutex);
  Command command;
  auto addRange = [&](VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size, bool writes) {
    addTouch(device, command, device.getBuffer(buffer), int64_t(offset), int64_t(offset + size),
             stageCopy, writes ? accessTransferWrite : accessTransferRead, writes, true);
  };
  for (uint32_t i = 0; i < count; ++i) {
    addRange(from, regions[i].srcOffset, regions[i].size, false);
    addRange(to, regions[i].dstOffset, regions[i].size, true);
  }
  add(device.commandBuffers[handle], "copy", std::move(command));
}

void hooks::CmdCopyBuffer(VkCommandBuffer handle, VkBuffer from, VkBuffer to, uint32_t count,
                          const VkBufferCopy *regions) {
  Device &device = getDevice(handle);
  addCopies(device, handle, from, to, count, regions);
  device.next.CmdCopyBuffer(handle, from, to, count, regions);
}

void hooks::CmdCopyBuffer2(VkCommandBuffer handle, const VkCopyBufferInfo2 *info) {
  Device &device = getDevice(handle);
  addCopies(device, handle, info->srcBuffer, info->dstBuffer, info->regionCount, info->pRegions);
  device.next.CmdCopyBuffer2(handle, info);
}

static void addWrite(Device &device, VkCommandBuffer handle, const char *what, VkBuffer buffer,
                     VkDeviceSize offset, VkDeviceSize size, Stages stage, bool isCertain) {
  std::lock_guard lock(device.mutex);
  Command command;
  std::shared_ptr<const Buffer> written = device.getBuffer(buffer);
  int64_t end = size == VK_WHOLE_SIZE ? ByteMap<int>::end : int64_t(offset + size);
  addTouch(device, command, written, int64_t(offset), end, stage, accessTransferWrite, true,
           isCertain);
  add(device.commandBuffers[handle], what, std::move(command));
}

void hooks::CmdFillBuffer(VkCommandBuffer handle, VkBuffer buffer, VkDeviceSize offset,
                          VkDeviceSize size, uint32_t data) {
  Device &device = getDevice(handle);
  addWrite(device, handle, "fill", buffer, offset, size, stageClear, true);
  device.next.CmdFillBuffer(handle, buffer, offset, size, data);
}

void hooks::CmdUpdateBuffer(VkCommandBuffer handle, VkBuffer buffer, VkDeviceSize offset,
                            VkDeviceSize size, const void *data) {
  Device &device = getDevice(handle);
  addWrite(device, handle, "update", buffer, offset, size, stageClear, true);
  device.next.CmdUpdateBuffer(handle, buffer, offset, size, data);
}

void hooks::CmdCopyQueryPoolResults(VkCommandBuffer handle, VkQueryPool pool, uint32_t first,
                                    uint32_t count, VkBuffer buffer, VkDeviceSize offset,
                                    VkDeviceSize stride, VkQueryResultFlags flags) {
  Device &device = getDevice(handle);
  // The number of bytes written depends on the kind of queries.
  addWrite(device, handle, "copy of queries", buffer, offset, VK_WHOLE_SIZE, stageCopy, false);
  device.next.CmdCopyQueryPoolResults(handle, pool, first, count, buffer, offset, stride, flags);
}

//===----------------------------------------------------------------------===//
// Barriers and events
//===----------------------------------------------------------------------===//

/// Adds a dependency; `Info` is a buffer barrier of either version of the API.
template <typename Info>
static void addBuffer(Device &device, Command &command, const Info &info, Dependency dependency) {
  dependency.buffer = device.getBuffer(info.buffer);
  dependency.fromAccess = expandAccesses(info.srcAccessMask);
  dependency.toAccess = expandAccesses(info.dstAccessMask);
  dependency.begin = int64_t(info.offset);
  if (dependency.buffer)
    dependency.end = info.size == VK_WHOLE_SIZE
                         ? dependency.buffer->bytes
                         : std::min(int64_t(info.offset + info.size), dependency.buffer->bytes);
  dependency.hasMemory = dependency.buffer && dependency.buffer->memory;
  if (info.srcQueueFamilyIndex != info.dstQueueFamilyIndex) {
    command.isJudged = false;
    device.see("that a buffer changes its queue family");
  }
  command.dependencies.push_back(std::move(dependency));
}

static Dependency makeScopes(Command &command, VkPipelineStageFlags2 from,
                             VkPipelineStageFlags2 to) {
  // The host's accesses are not tracked.
  if ((from | to) & VK_PIPELINE_STAGE_2_HOST_BIT)
    command.isJudged = false;
  Dependency dependency;
  dependency.from = expandStages(from, /*isFirst=*/true);
  dependency.to = expandStages(to, /*isFirst=*/false);
  return dependency;
}

static void addDependencies(Device &device, Command &command, VkPipelineStageFlags from,
                            VkPipelineStageFlags to, uint32_t memoryCount,
                            const VkMemoryBarrier *memory, uint32_t bufferCount,
                            const VkBufferMemoryBarrier *buffers, uint32_t imageCount) {
  Dependency scopes = makeScopes(command, from, to);
  Dependency execution = scopes;
  execution.hasMemory = false;
  command.dependencies.push_back(execution);
  for (uint32_t i = 0; i < memoryCount; ++i) {
    scopes.fromAccess = expandAccesses(memory[i].srcAccessMask);
    scopes.toAccess = expandAccesses(memory[i].dstAccessMask);
    command.dependencies.push_back(scopes);
  }
  for (uint32_t i = 0; i < bufferCount; ++i)
    addBuffer(device, command, buffers[i], scopes);
  if (imageCount)
    command.isJudged = false;
}

static void addDependencies(Device &device, Command &command, const VkDependencyInfo &info) {
  for (uint32_t i = 0; i < info.memoryBarrierCount; ++i) {
    const VkMemoryBarrier2 &memory = info.pMemoryBarriers[i];
    Dependency dependency = makeScopes(command, memory.srcStageMask, memory.dstStageMask);
    dependency.fromAccess = expandAccesses(memory.srcAccessMask);
    dependency.toAccess = expandAccesses(memory.dstAccessMask);
    command.dependencies.push_back(dependency);
  }
  for (uint32_t i = 0; i < info.bufferMemoryBarrierCount; ++i) {
    const VkBufferMemoryBarrier2 &buffer = info.pBufferMemoryBarriers[i];
    addBuffer(device, command, buffer,
              makeScopes(command, buffer.srcStageMask, buffer.dstStageMask));
  }
  for (uint32_t i = 0; i < info.imageMemoryBarrierCount; ++i) {
    const VkImageMemoryBarrier2 &image = info.pImageMemoryBarriers[i];
    command.isJudged = false;
    Dependency execution = makeScopes(command, image.srcStageMask, image.dstStageMask);
    execution.hasMemory = false;
    command.dependencies.push_back(execution);
  }
}

/// Records a barrier, or an operation on an event.
template <typename Fill>
static Device &addOrder(VkCommandBuffer handle, Command::Kind kind, const char *what, Fill fill) {
  Device &device = getDevice(handle);
  std::lock_guard lock(device.mutex);
  Command command;
  command.kind = kind;
  fill(device, command);
  add(device.commandBuffers[handle], what, std::move(command));
  return device;
}

void hooks::CmdPipelineBarrier(VkCommandBuffer handle, VkPipelineStageFlags from,
                               VkPipelineStageFlags to, VkDependencyFlags flags,
                               uint32_t memoryCount, const VkMemoryBarrier *memory,
                               uint32_t bufferCount, const VkBufferMemoryBarrier *buffers,
                               uint32_t imageCount, const VkImageMemoryBarrier *images) {
  Device &device =
      addOrder(handle, Command::Kind::Barrier, "barrier", [&](Device &device, Command &command) {
        addDependencies(device, command, from, to, memoryCount, memory, bufferCount, buffers,
                        imageCount);
      });
  device.next.CmdPipelineBarrier(handle, from, to, flags, memoryCount, memory, bufferCount, buffers,
                                 imageCount, images);
}

void hooks::CmdPipelineBarrier2(VkCommandBuffer handle, const VkDependencyInfo *info) {
  Device &device =
      addOrder(handle, Command::Kind::Barrier, "barrier",
               [&](Device &device, Command &command) { addDependencies(device, command, *info); });
  device.next.CmdPipelineBarrier2(handle, info);
}

void hooks::CmdSetEvent(VkCommandBuffer handle, VkEvent event, VkPipelineStageFlags stages) {
  Device &device =
      addOrder(handle, Command::Kind::SetEvent, "set event", [&](Device &, Command &command) {
        command.events = {getNumber(event)};
        command.eventStages = expandStages(stages, /*isFirst=*/true);
      });
  device.next.CmdSetEvent(handle, event, stages);
}

void hooks::CmdSetEvent2(VkCommandBuffer handle, VkEvent event, const VkDependencyInfo *info) {
  // The wait for the event repeats its stages.
  Device &device =
      addOrder(handle, Command::Kind::SetEvent, "set event", [&](Device &, Command &command) {
        command.events = {getNumber(event)};
        command.eventStages = allStages;
      });
  device.next.CmdSetEvent2(handle, event, info);
}

static Device &addReset(VkCommandBuffer handle, VkEvent event) {
  return addOrder(handle, Command::Kind::ResetEvent, "reset event",
                  [&](Device &, Command &command) { command.events = {getNumber(event)}; });
}

void hooks::CmdResetEvent(VkCommandBuffer handle, VkEvent event, VkPipelineStageFlags stages) {
  addReset(handle, event).next.CmdResetEvent(handle, event, stages);
}

void hooks::CmdResetEvent2(VkCommandBuffer handle, VkEvent event, VkPipelineStageFlags2 stages) {
  addReset(handle, event).next.CmdResetEvent2(handle, event, stages);
}

void hooks::CmdWaitEvents(VkCommandBuffer handle, uint32_t count, const VkEvent *events,
                          VkPipelineStageFlags from, VkPipelineStageFlags to, uint32_t memoryCount,
                          const VkMemoryBarrier *memory, uint32_t bufferCount,
                          const VkBufferMemoryBarrier *buffers, uint32_t imageCount,
                          const VkImageMemoryBarrier *images) {
  Device &device = addOrder(handle, Command::Kind::WaitEvents, "wait for events",
                            [&](Device &device, Command &command) {
                              for (uint32_t i = 0; i < count; ++i)
                                command.events.push_back(getNumber(events[i]));
                              addDependencies(device, command, from, to, memoryCount, memory,
                                              bufferCount, buffers, imageCount);
                            });
  device.next.CmdWaitEvents(handle, count, events, from, to, memoryCount, memory, bufferCount,
                            buffers, imageCount, images);
}

void hooks::CmdWaitEvents2(VkCommandBuffer handle, uint32_t count, const VkEvent *events,
                           const VkDependencyInfo *infos) {
  // Each event has dependencies of its own.
  for (uint32_t i = 0; i < count; ++i)
    addOrder(handle, Command::Kind::WaitEvents, "wait for an event",
             [&](Device &device, Command &command) {
               command.events = {getNumber(events[i])};
               addDependencies(device, command, infos[i]);
             });
  getDevice(handle).next.CmdWaitEvents2(handle, count, events, infos);
}

//===----------------------------------------------------------------------===//
// Secondary command buffers
//===----------------------------------------------------------------------===//

void hooks::CmdExecuteCommands(VkCommandBuffer handle, uint32_t count,
                               const VkCommandBuffer *secondaries) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    CommandBuffer &commands = device.commandBuffers[handle];
    for (uint32_t i = 0; i < count; ++i) {
      const Recording &executed = *device.getRecording(device.commandBuffers[secondaries[i]]);
      auto &all = commands.recording->commands;
      all.insert(all.end(), executed.commands.begin(), executed.commands.end());
      commands.recording->hasUnseen |= executed.hasUnseen;
    }
    // Bindings are undefined after secondary command buffers.
    commands.pipeline.reset();
    commands.sets.clear();
    ++commands.commands;
  }
  device.next.CmdExecuteCommands(handle, count, secondaries);
}

} // namespace weir::audit
