//===- VulkanRecording.cpp - Records a plan into command buffers ----------===//

#include "VulkanRecording.h"

#include <algorithm>

namespace weir::runtime {

// Max number of views listed in a barrier; above it, all memory is made visible. Drivers ignore
// the ranges, and a long list costs more than it can save.
static constexpr size_t maxBarrierViews = 8;

static constexpr VkAccessFlags2 shaderReadWrite =
    VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;

VulkanRecording::VulkanRecording(VulkanDevice &device, const Plan &plan,
                                 const std::vector<KernelCode> &kernels,
                                 const std::vector<const Storage *> &allocations,
                                 const std::vector<StorageCopy> &copies, RecordingKind kind)
    : device(device), kind(kind) {
  const DeviceFunctions &vk = device.vk;
  allocateSets(plan, kernels);
  if (kind == RecordingKind::Profiled)
    for (const Command &command : plan.commands)
      queries += command.kind == Command::Kind::Dispatch ? 2 : 0;

  if (device.timestampBits != 0) {
    VkQueryPoolCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = queries;
    VkQueryPool pool = VK_NULL_HANDLE;
    check(vk.CreateQueryPool(device.handle, &info, nullptr, &pool), "vkCreateQueryPool");
    timestamps = Owned<VkQueryPool>(device.handle, pool, vk.DestroyQueryPool);
  }

  VkCommandPoolCreateInfo poolInfo = {};
  poolInfo.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  poolInfo.queueFamilyIndex = device.queueFamily;
  VkCommandPool pool = VK_NULL_HANDLE;
  check(vk.CreateCommandPool(device.handle, &poolInfo, nullptr, &pool), "vkCreateCommandPool");
  commandPool = Owned<VkCommandPool>(device.handle, pool, vk.DestroyCommandPool);
  std::vector<Submission> submissions =
      splitSubmissions(plan, kind == RecordingKind::Profiled ? 1 : device.countQueues());
  std::vector<VkCommandBuffer> buffers(submissions.size());
  VkCommandBufferAllocateInfo allocate = {};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = pool;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = uint32_t(buffers.size());
  check(vk.AllocateCommandBuffers(device.handle, &allocate, buffers.data()),
        "vkAllocateCommandBuffers");
  for (size_t i = 0; i < submissions.size(); ++i)
    run.push_back({std::move(submissions[i]), buffers[i]});
  record(plan, kernels, allocations, copies);
}

void VulkanRecording::allocateSets(const Plan &plan, const std::vector<KernelCode> &kernels) {
  const DeviceFunctions &vk = device.vk;
  std::vector<VkDescriptorSetLayout> layouts;
  uint32_t descriptors = 0;
  for (const Command &command : plan.commands)
    if (command.kind == Command::Kind::Dispatch && !command.operands.empty()) {
      layouts.push_back(kernels[size_t(command.kernel)].setLayout);
      descriptors += uint32_t(command.operands.size());
    }
  std::vector<VkDescriptorSet> allocated(layouts.size());
  if (!layouts.empty()) {
    VkDescriptorPoolSize size = {};
    size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    size.descriptorCount = descriptors;
    VkDescriptorPoolCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = uint32_t(layouts.size());
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    check(vk.CreateDescriptorPool(device.handle, &info, nullptr, &pool), "vkCreateDescriptorPool");
    setPool = Owned<VkDescriptorPool>(device.handle, pool, vk.DestroyDescriptorPool);
    VkDescriptorSetAllocateInfo allocate = {};
    allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    allocate.descriptorPool = pool;
    allocate.descriptorSetCount = uint32_t(layouts.size());
    allocate.pSetLayouts = layouts.data();
    check(vk.AllocateDescriptorSets(device.handle, &allocate, allocated.data()),
          "vkAllocateDescriptorSets");
  }
  size_t next = 0;
  for (const Command &command : plan.commands) {
    bool binds = command.kind == Command::Kind::Dispatch && !command.operands.empty();
    sets.push_back(binds ? allocated[next++] : VK_NULL_HANDLE);
  }
}

void VulkanRecording::bindOperands(VkDescriptorSet set, const Command &dispatch,
                                   const std::vector<const Storage *> &allocations) const {
  std::vector<VkDescriptorBufferInfo> ranges;
  for (const PlanView &view : dispatch.operands)
    ranges.push_back({getMemory(*allocations[size_t(view.allocation)]).buffer.get(),
                      VkDeviceSize(view.offset), VkDeviceSize(view.bytes)});
  VkWriteDescriptorSet write = {};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  // Adjacent bindings of one type may be written at once.
  write.descriptorCount = uint32_t(ranges.size());
  write.pBufferInfo = ranges.data();
  device.vk.UpdateDescriptorSets(device.handle, 1, &write, 0, nullptr);
}

static VkMemoryBarrier2 makeBarrier(VkPipelineStageFlags2 fromStages, VkAccessFlags2 from,
                                    VkPipelineStageFlags2 toStages, VkAccessFlags2 to) {
  VkMemoryBarrier2 barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
  barrier.srcStageMask = fromStages;
  barrier.srcAccessMask = from;
  barrier.dstStageMask = toStages;
  barrier.dstAccessMask = to;
  return barrier;
}

static void recordBarriers(const DeviceFunctions &vk, VkCommandBuffer commands,
                           const VkMemoryBarrier2 &global,
                           const std::vector<VkBufferMemoryBarrier2> &buffers = {}) {
  VkDependencyInfo dependency = {};
  dependency.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
  dependency.memoryBarrierCount = 1;
  dependency.pMemoryBarriers = &global;
  dependency.bufferMemoryBarrierCount = uint32_t(buffers.size());
  dependency.pBufferMemoryBarriers = buffers.data();
  vk.CmdPipelineBarrier2(commands, &dependency);
}

void VulkanRecording::recordBarrier(VkCommandBuffer commands, const Command &barrier,
                                    const std::vector<const Storage *> &allocations) const {
  const VkPipelineStageFlags2 compute = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
  if (barrier.memory.size() > maxBarrierViews) {
    recordBarriers(
        device.vk, commands,
        makeBarrier(compute, VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT, compute, shaderReadWrite));
    return;
  }
  std::vector<VkBufferMemoryBarrier2> buffers;
  for (const PlanView &view : barrier.memory) {
    VkBufferMemoryBarrier2 memory = {};
    memory.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2;
    memory.srcStageMask = memory.dstStageMask = compute;
    memory.srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
    memory.dstAccessMask = shaderReadWrite;
    memory.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    memory.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    memory.buffer = getMemory(*allocations[size_t(view.allocation)]).buffer.get();
    memory.offset = VkDeviceSize(view.offset);
    memory.size = VkDeviceSize(view.bytes);
    buffers.push_back(memory);
  }
  // The global part orders only execution, which is all that WAR needs.
  recordBarriers(device.vk, commands,
                 makeBarrier(compute, VK_ACCESS_2_NONE, compute, VK_ACCESS_2_NONE), buffers);
}

void VulkanRecording::writeTimestamp(VkCommandBuffer commands, uint32_t query) const {
  if (timestamps.get() != VK_NULL_HANDLE)
    device.vk.CmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, timestamps.get(),
                                 query);
}

void VulkanRecording::recordCopies(VkCommandBuffer commands,
                                   const std::vector<StorageCopy> &copies) const {
  for (const StorageCopy &copy : copies) {
    VkBufferCopy region = {};
    region.size = VkDeviceSize(copy.from->bytes);
    device.vk.CmdCopyBuffer(commands, getMemory(*copy.from).buffer.get(),
                            getMemory(*copy.to).buffer.get(), 1, &region);
  }
  if (!copies.empty())
    recordBarriers(device.vk, commands,
                   makeBarrier(VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                               VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, shaderReadWrite));
}

void VulkanRecording::record(const Plan &plan, const std::vector<KernelCode> &kernels,
                             const std::vector<const Storage *> &allocations,
                             const std::vector<StorageCopy> &copies) {
  const DeviceFunctions &vk = device.vk;
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  for (const RecordedSubmission &submission : run) {
    check(vk.BeginCommandBuffer(submission.commands, &begin), "vkBeginCommandBuffer");
    if (&submission == &run.front())
      recordBegin(submission.commands, copies);
    recordSubmission(plan, kernels, allocations, submission);
    if (&submission == &run.back())
      recordEnd(submission.commands);
    check(vk.EndCommandBuffer(submission.commands), "vkEndCommandBuffer");
  }
}

/// The stages and writes of commands that access buffers.
static constexpr VkPipelineStageFlags2 stages =
    VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_COPY_BIT;
static constexpr VkAccessFlags2 writes =
    VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;

void VulkanRecording::recordBegin(VkCommandBuffer commands,
                                  const std::vector<StorageCopy> &copies) const {
  recordBarriers(device.vk, commands,
                 makeBarrier(stages, writes, stages,
                             shaderReadWrite | VK_ACCESS_2_TRANSFER_READ_BIT |
                                 VK_ACCESS_2_TRANSFER_WRITE_BIT));
  if (timestamps.get() != VK_NULL_HANDLE)
    device.vk.CmdResetQueryPool(commands, timestamps.get(), 0, queries);
  writeTimestamp(commands, 0);
  recordCopies(commands, copies);
}

void VulkanRecording::recordEnd(VkCommandBuffer commands) const {
  writeTimestamp(commands, 1);
  recordBarriers(device.vk, commands,
                 makeBarrier(stages, writes,
                             VK_PIPELINE_STAGE_2_HOST_BIT | VK_PIPELINE_STAGE_2_COPY_BIT,
                             VK_ACCESS_2_HOST_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT |
                                 VK_ACCESS_2_TRANSFER_WRITE_BIT));
}

void VulkanRecording::recordSubmission(const Plan &plan, const std::vector<KernelCode> &kernels,
                                       const std::vector<const Storage *> &allocations,
                                       const RecordedSubmission &submission) const {
  const DeviceFunctions &vk = device.vk;
  VkCommandBuffer commands = submission.commands;
  VkPipeline bound = VK_NULL_HANDLE;
  uint32_t query = 2;
  for (size_t number : submission.submission.commands) {
    const Command &command = plan.commands[number];
    if (command.kind == Command::Kind::Barrier)
      recordBarrier(commands, command, allocations);
    // All queues of the plan run on this one: everything that the signal covers is recorded
    // before.
    if (command.kind == Command::Kind::Wait)
      recordBarriers(vk, commands,
                     makeBarrier(VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                                 VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                                 VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, shaderReadWrite));
    if (command.kind != Command::Kind::Dispatch)
      continue;
    const KernelCode &kernel = kernels[size_t(command.kernel)];
    VkDescriptorSet set = sets[number];
    if (set != VK_NULL_HANDLE) {
      bindOperands(set, command, allocations);
      vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, 1, &set,
                               0, nullptr);
    }
    if (kernel.pipeline != bound)
      vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
    bound = kernel.pipeline;
    if (kind == RecordingKind::Profiled) {
      recordBarriers(vk, commands, makeBarrier(stages, writes, stages, shaderReadWrite));
      writeTimestamp(commands, query++);
    }
    vk.CmdDispatch(commands, uint32_t(command.grid[0]), uint32_t(command.grid[1]),
                   uint32_t(command.grid[2]));
    if (kind == RecordingKind::Profiled)
      writeTimestamp(commands, query++);
  }
}

void VulkanRecording::submitTimes(int64_t times) {
  // One call for many runs; drivers keep all of a call until it has ended.
  constexpr int64_t mostAtOnce = 64;
  const bool isOne = run.size() == 1;
  for (; isOne && times > 0; times -= mostAtOnce)
    device.submit(run, size_t(std::min(times, mostAtOnce)));
  if (!isOne)
    Recording::submitTimes(times);
}

std::vector<double> VulkanRecording::readTimestamps() const {
  std::vector<uint64_t> ticks(queries);
  check(device.vk.GetQueryPoolResults(device.handle, timestamps.get(), 0, queries,
                                      queries * sizeof(uint64_t), ticks.data(), sizeof(uint64_t),
                                      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
        "vkGetQueryPoolResults");
  uint64_t mask =
      device.timestampBits >= 64 ? ~uint64_t(0) : (uint64_t(1) << device.timestampBits) - 1;
  std::vector<double> nanoseconds; // since the first one; the counter may wrap
  for (uint64_t tick : ticks)
    nanoseconds.push_back(double((tick - ticks[0]) & mask) *
                          double(device.getFacts().limits.timestampPeriod));
  return nanoseconds;
}

double VulkanRecording::readNanoseconds() const {
  return timestamps.get() == VK_NULL_HANDLE ? -1 : readTimestamps()[1];
}

std::vector<weir_dispatch_time> VulkanRecording::readDispatchTimes() const {
  std::vector<double> nanoseconds = readTimestamps();
  std::vector<weir_dispatch_time> times;
  for (size_t query = 2; query < nanoseconds.size(); query += 2)
    times.push_back({nanoseconds[query], nanoseconds[query + 1], 1});
  return times;
}

} // namespace weir::runtime
