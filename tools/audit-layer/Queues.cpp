//===- Queues.cpp - Submissions and waits of the host ---------------------===//

#include "Device.h"

namespace weir::audit {

//===----------------------------------------------------------------------===//
// Submissions
//===----------------------------------------------------------------------===//

static SemaphorePoint makePoint(Device &device, VkSemaphore semaphore, uint64_t value,
                                VkPipelineStageFlags2 stages, bool isSignal) {
  bool isTimeline = device.areTimelines[semaphore];
  return {getNumber(semaphore), isTimeline, isTimeline ? value : 0,
          expandStages(stages, /*isFirst=*/isSignal)};
}

static void addCommands(Device &device, Batch &batch, VkCommandBuffer commands) {
  if (commands)
    batch.recordings.push_back(device.getRecording(device.commandBuffers[commands]));
}

static void submit(Device &device, VkQueue queue, std::vector<Batch> batches, VkFence fence) {
  if (fence) {
    if (batches.empty())
      batches.emplace_back();
    batches.back().fence = getNumber(fence);
  }
  for (const Batch &batch : batches)
    device.checker.submit(device.getQueue(queue), batch);
}

// Submissions are tracked before the driver gets them: afterwards another thread may learn that
// they ended.
VkResult hooks::QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                            VkFence fence) {
  Device &device = getDevice(queue);
  {
    std::lock_guard lock(device.mutex);
    std::vector<Batch> batches;
    for (const VkSubmitInfo *info = infos; info != infos + count; ++info) {
      auto *values = findInfo<VkTimelineSemaphoreSubmitInfo>(
          info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
      Batch &batch = batches.emplace_back();
      for (uint32_t i = 0; i < info->waitSemaphoreCount; ++i)
        batch.waits.push_back(makePoint(
            device, info->pWaitSemaphores[i],
            values && i < values->waitSemaphoreValueCount ? values->pWaitSemaphoreValues[i] : 0,
            info->pWaitDstStageMask[i], /*isSignal=*/false));
      for (uint32_t i = 0; i < info->commandBufferCount; ++i)
        addCommands(device, batch, info->pCommandBuffers[i]);
      for (uint32_t i = 0; i < info->signalSemaphoreCount; ++i)
        batch.signals.push_back(makePoint(
            device, info->pSignalSemaphores[i],
            values && i < values->signalSemaphoreValueCount ? values->pSignalSemaphoreValues[i] : 0,
            VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, /*isSignal=*/true));
    }
    submit(device, queue, std::move(batches), fence);
  }
  return device.next.QueueSubmit(queue, count, infos, fence);
}

VkResult hooks::QueueSubmit2(VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos,
                             VkFence fence) {
  Device &device = getDevice(queue);
  {
    std::lock_guard lock(device.mutex);
    std::vector<Batch> batches;
    for (const VkSubmitInfo2 *info = infos; info != infos + count; ++info) {
      Batch &batch = batches.emplace_back();
      auto make = [&](const VkSemaphoreSubmitInfo &point, bool isSignal) {
        return makePoint(device, point.semaphore, point.value, point.stageMask, isSignal);
      };
      for (uint32_t i = 0; i < info->waitSemaphoreInfoCount; ++i)
        batch.waits.push_back(make(info->pWaitSemaphoreInfos[i], /*isSignal=*/false));
      for (uint32_t i = 0; i < info->commandBufferInfoCount; ++i)
        addCommands(device, batch, info->pCommandBufferInfos[i].commandBuffer);
      for (uint32_t i = 0; i < info->signalSemaphoreInfoCount; ++i)
        batch.signals.push_back(make(info->pSignalSemaphoreInfos[i], /*isSignal=*/true));
    }
    submit(device, queue, std::move(batches), fence);
  }
  return device.next.QueueSubmit2(queue, count, infos, fence);
}

VkResult hooks::QueueBindSparse(VkQueue queue, uint32_t count, const VkBindSparseInfo *infos,
                                VkFence fence) {
  Device &device = getDevice(queue);
  {
    std::lock_guard lock(device.mutex);
    device.see("memory that is bound in parts (vkQueueBindSparse)");
  }
  return device.next.QueueBindSparse(queue, count, infos, fence);
}

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

VkResult hooks::QueueWaitIdle(VkQueue queue) {
  Device &device = getDevice(queue);
  VkResult result = device.next.QueueWaitIdle(queue);
  if (result == VK_SUCCESS) {
    std::lock_guard lock(device.mutex);
    device.checker.finishQueue(device.getQueue(queue));
  }
  return result;
}

VkResult hooks::DeviceWaitIdle(VkDevice handle) {
  Device &device = getDevice(handle);
  VkResult result = device.next.DeviceWaitIdle(handle);
  if (result == VK_SUCCESS) {
    std::lock_guard lock(device.mutex);
    device.checker.finishAll();
  }
  return result;
}

void hooks::DestroyFence(VkDevice handle, VkFence fence, const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    device.checker.resetFence(getNumber(fence));
  }
  device.next.DestroyFence(handle, fence, allocator);
}

VkResult hooks::ResetFences(VkDevice handle, uint32_t count, const VkFence *fences) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    for (uint32_t i = 0; i < count; ++i)
      device.checker.resetFence(getNumber(fences[i]));
  }
  return device.next.ResetFences(handle, count, fences);
}

static void finishFence(Device &device, VkFence fence) {
  std::lock_guard lock(device.mutex);
  device.checker.finishFence(getNumber(fence));
}

VkResult hooks::WaitForFences(VkDevice handle, uint32_t count, const VkFence *fences, VkBool32 all,
                              uint64_t timeout) {
  Device &device = getDevice(handle);
  VkResult result = device.next.WaitForFences(handle, count, fences, all, timeout);
  for (uint32_t i = 0; i < count; ++i)
    if (result == VK_SUCCESS &&
        (all || count == 1 || device.next.GetFenceStatus(handle, fences[i]) == VK_SUCCESS))
      finishFence(device, fences[i]);
  return result;
}

VkResult hooks::GetFenceStatus(VkDevice handle, VkFence fence) {
  Device &device = getDevice(handle);
  VkResult result = device.next.GetFenceStatus(handle, fence);
  if (result == VK_SUCCESS)
    finishFence(device, fence);
  return result;
}

VkResult hooks::CreateSemaphore(VkDevice handle, const VkSemaphoreCreateInfo *info,
                                const VkAllocationCallbacks *allocator, VkSemaphore *semaphore) {
  Device &device = getDevice(handle);
  VkResult result = device.next.CreateSemaphore(handle, info, allocator, semaphore);
  if (result != VK_SUCCESS)
    return result;
  auto *type = findInfo<VkSemaphoreTypeCreateInfo>(info->pNext,
                                                   VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  bool isTimeline = type && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
  std::lock_guard lock(device.mutex);
  device.areTimelines[*semaphore] = isTimeline;
  if (isTimeline)
    device.checker.setTimeline(getNumber(*semaphore), type->initialValue);
  return result;
}

void hooks::DestroySemaphore(VkDevice handle, VkSemaphore semaphore,
                             const VkAllocationCallbacks *allocator) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    device.areTimelines.erase(semaphore);
    device.checker.freeSemaphore(getNumber(semaphore));
  }
  device.next.DestroySemaphore(handle, semaphore, allocator);
}

static void finishTimeline(Device &device, VkSemaphore semaphore, uint64_t value) {
  std::lock_guard lock(device.mutex);
  device.checker.finishTimeline(getNumber(semaphore), value);
}

VkResult hooks::WaitSemaphores(VkDevice handle, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
  Device &device = getDevice(handle);
  VkResult result = device.next.WaitSemaphores(handle, info, timeout);
  // With WAIT_ANY on several semaphores, it is unknown which one was reached.
  bool areAll = !(info->flags & VK_SEMAPHORE_WAIT_ANY_BIT) || info->semaphoreCount == 1;
  for (uint32_t i = 0; i < info->semaphoreCount; ++i)
    if (result == VK_SUCCESS && areAll)
      finishTimeline(device, info->pSemaphores[i], info->pValues[i]);
  return result;
}

VkResult hooks::GetSemaphoreCounterValue(VkDevice handle, VkSemaphore semaphore, uint64_t *value) {
  Device &device = getDevice(handle);
  VkResult result = device.next.GetSemaphoreCounterValue(handle, semaphore, value);
  if (result == VK_SUCCESS)
    finishTimeline(device, semaphore, *value);
  return result;
}

VkResult hooks::SignalSemaphore(VkDevice handle, const VkSemaphoreSignalInfo *info) {
  Device &device = getDevice(handle);
  {
    std::lock_guard lock(device.mutex);
    device.checker.setTimeline(getNumber(info->semaphore), info->value);
  }
  return device.next.SignalSemaphore(handle, info);
}

static Device &resetEvent(VkDevice handle, VkEvent event) {
  Device &device = getDevice(handle);
  std::lock_guard lock(device.mutex);
  device.checker.resetEvent(getNumber(event));
  return device;
}

void hooks::DestroyEvent(VkDevice handle, VkEvent event, const VkAllocationCallbacks *allocator) {
  resetEvent(handle, event).next.DestroyEvent(handle, event, allocator);
}

VkResult hooks::SetEvent(VkDevice handle, VkEvent event) {
  return resetEvent(handle, event).next.SetEvent(handle, event);
}

VkResult hooks::ResetEvent(VkDevice handle, VkEvent event) {
  return resetEvent(handle, event).next.ResetEvent(handle, event);
}

} // namespace weir::audit
