//===- VulkanDevice.cpp - Choosing a device, memory, submission -----------===//

#include "VulkanDevice.h"

#include "DriverCall.h"
#include "VulkanMemory.h"
#include "VulkanProgram.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

namespace weir::runtime {

static constexpr int64_t stagingBytes = int64_t(16) << 20;

// Max number of queues: more than devices run in parallel.
static constexpr uint32_t maxDeviceQueues = 8;

//===----------------------------------------------------------------------===//
// Instance and choice of a device
//===----------------------------------------------------------------------===//

namespace {
struct Candidate {
  int rank = 0;        ///< rank of its type; the best is 0
  uint32_t number = 0; ///< index among the usable devices
  VkPhysicalDevice device = VK_NULL_HANDLE;
};

struct Instance {
  PFN_vkGetInstanceProcAddr get = nullptr;
  VkInstance handle = VK_NULL_HANDLE;
  InstanceFunctions vk;
  bool namesObjects = false;
};
} // namespace

static std::string printVersion(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
         std::to_string(VK_API_VERSION_MINOR(version));
}

/// Whether objects can have names, which validation layers and debuggers print.
static bool canNameObjects(PFN_vkGetInstanceProcAddr get) {
  auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
      get(nullptr, "vkEnumerateInstanceExtensionProperties"));
  uint32_t count = 0;
  if (!enumerate || enumerate(nullptr, &count, nullptr) != VK_SUCCESS)
    return false;
  std::vector<VkExtensionProperties> extensions(count);
  if (enumerate(nullptr, &count, extensions.data()) != VK_SUCCESS)
    return false;
  return std::any_of(extensions.begin(), extensions.end(), [](const auto &extension) {
    return std::string_view(extension.extensionName) == VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  });
}

static Instance createInstance() {
  DriverCall call({"loading the drivers of Vulkan"});
  Instance instance;
  instance.get = getLoader();
  auto enumerateVersion = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
      instance.get(nullptr, "vkEnumerateInstanceVersion"));
  auto create = reinterpret_cast<PFN_vkCreateInstance>(instance.get(nullptr, "vkCreateInstance"));
  uint32_t version = VK_API_VERSION_1_0;
  if (enumerateVersion)
    check(enumerateVersion(&version), "vkEnumerateInstanceVersion");
  if (!create || version < VK_API_VERSION_1_3)
    throw Error("no Vulkan device found: the Vulkan loader is version " + printVersion(version) +
                ", but Weir needs 1.3; update it");

  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "weir";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  const char *extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  instance.namesObjects = canNameObjects(instance.get);
  info.enabledExtensionCount = instance.namesObjects;
  info.ppEnabledExtensionNames = &extension;
  VkResult result = create(&info, nullptr, &instance.handle);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    throw Error("no Vulkan device found: the loader has no driver "
                "(VK_ERROR_INCOMPATIBLE_DRIVER); install one (Debian: "
                "mesa-vulkan-drivers has a CPU driver), and if VK_DRIVER_FILES "
                "or VK_ICD_FILENAMES is set, let it name a driver's file");
  check(result, "vkCreateInstance");
  instance.vk = loadInstanceFunctions(instance.get, instance.handle);
  return instance;
}

static std::optional<uint32_t> findComputeFamily(const InstanceFunctions &vk,
                                                 VkPhysicalDevice device,
                                                 std::vector<VkQueueFamilyProperties> &families) {
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  families.resize(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (uint32_t family = 0; family < count; ++family)
    if (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)
      return family;
  return std::nullopt;
}

static int rankType(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return 0;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return 1;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return 2;
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return 3;
  default:
    return 4;
  }
}

static std::vector<Candidate> listDevices(const Instance &instance) {
  DriverCall call({"listing the devices of Vulkan"});
  uint32_t count = 0;
  check(instance.vk.EnumeratePhysicalDevices(instance.handle, &count, nullptr),
        "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(count);
  check(instance.vk.EnumeratePhysicalDevices(instance.handle, &count, devices.data()),
        "vkEnumeratePhysicalDevices");

  std::vector<Candidate> found;
  std::string refused;
  for (VkPhysicalDevice device : devices) {
    VkPhysicalDeviceProperties2 props = {};
    props.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    instance.vk.GetPhysicalDeviceProperties2(device, &props);
    std::vector<VkQueueFamilyProperties> families;
    std::string why;
    if (props.properties.apiVersion < VK_API_VERSION_1_3)
      why = "has Vulkan " + printVersion(props.properties.apiVersion);
    else if (!findComputeFamily(instance.vk, device, families))
      why = "has no compute queue";
    if (why.empty())
      found.push_back({rankType(props.properties.deviceType), uint32_t(found.size()), device});
    else
      refused += (refused.empty() ? "" : ", ") + std::string("'") + props.properties.deviceName +
                 "' " + why;
  }
  if (found.empty())
    throw Error(refused.empty() ? "no Vulkan device found: the drivers that are installed list "
                                  "none; install a driver for this machine (Debian: "
                                  "mesa-vulkan-drivers has a CPU driver)"
                                : "no Vulkan device found: Weir needs Vulkan 1.3 and a compute "
                                  "queue, but " +
                                      refused + "; update the driver");
  std::sort(found.begin(), found.end(), [](const Candidate &a, const Candidate &b) {
    return std::tie(a.rank, a.number) < std::tie(b.rank, b.number);
  });
  return found;
}

size_t VulkanDevice::count() {
  Instance instance = createInstance();
  VulkanDevice owner; // owns the instance
  owner.instance = instance.handle;
  owner.instanceVk = instance.vk;
  return listDevices(instance).size();
}

std::shared_ptr<Device> VulkanDevice::open(size_t index) {
  Instance instance = createInstance();
  std::shared_ptr<VulkanDevice> device(new VulkanDevice);
  device->instance = instance.handle; // from here on the device destroys it
  device->instanceVk = instance.vk;
  std::vector<Candidate> found = listDevices(instance);
  if (index >= found.size())
    throw BadArgument("there is no Vulkan device " + std::to_string(index) + ": this machine has " +
                      std::to_string(found.size()) + ", counted from 0");
  device->physical = found[index].device;
  device->facts = runtime::getFacts(device->instanceVk, device->physical);
  device->createLogicalDevice();
  if (instance.namesObjects)
    device->setObjectName = reinterpret_cast<PFN_vkSetDebugUtilsObjectNameEXT>(
        device->instanceVk.GetDeviceProcAddr(device->handle, "vkSetDebugUtilsObjectNameEXT"));
  device->finishSetup();
  return device;
}

void VulkanDevice::createLogicalDevice() {
  DriverCall call({"opening '", facts.name, "'"});
  std::vector<VkQueueFamilyProperties> families;
  queueFamily = *findComputeFamily(instanceVk, physical, families);

  std::vector<float> priorities(std::min(families[queueFamily].queueCount, maxDeviceQueues), 1.0f);
  VkDeviceQueueCreateInfo queueInfo = {};
  queueInfo.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queueInfo.queueFamilyIndex = queueFamily;
  queueInfo.queueCount = uint32_t(priorities.size());
  queueInfo.pQueuePriorities = priorities.data();

  // Enable all features that kernels may need and the device has; an artifact's needs are
  // checked when it is loaded.
  FeatureChain features;
  features.first.features.shaderFloat64 = facts.float64;
  features.first.features.shaderInt64 = facts.int64;
  features.first.features.shaderInt16 = facts.int16;
  features.v11.storageBuffer16BitAccess = facts.storage16;
  features.v12.timelineSemaphore = VK_TRUE;
  features.v12.shaderInt8 = facts.int8;
  features.v12.shaderFloat16 = facts.float16;
  features.v12.vulkanMemoryModel = facts.vulkanMemoryModel;
  features.v12.storageBuffer8BitAccess = facts.storage8;
  features.v12.shaderSubgroupExtendedTypes = facts.subgroupExtendedTypes;
  features.v13.synchronization2 = VK_TRUE;
  features.v13.subgroupSizeControl = facts.subgroupSizeControl;
  features.v13.computeFullSubgroups = facts.fullSubgroups;

  CooperativeFeatures cooperative;
  cooperative.cooperativeMatrix = VK_TRUE;

  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  if (!facts.cooperative.empty()) {
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &cooperativeExtension;
    features.v13.pNext = &cooperative;
  }
  info.pNext = &features.first;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queueInfo;
  check(instanceVk.CreateDevice(physical, &info, nullptr, &handle), "vkCreateDevice");
  vk = loadDeviceFunctions(instanceVk.GetDeviceProcAddr, handle);
  queues.resize(priorities.size());
  for (uint32_t i = 0; i < queues.size(); ++i)
    vk.GetDeviceQueue(handle, queueFamily, i, &queues[i].handle);
  if (queues.size() > 1)
    createTimelines();
}

void VulkanDevice::name(VkPipeline pipeline, const std::string &text) {
  if (!setObjectName)
    return;
  VkDebugUtilsObjectNameInfoEXT info = {};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT;
  info.objectType = VK_OBJECT_TYPE_PIPELINE;
  info.objectHandle = reinterpret_cast<uint64_t>(pipeline);
  info.pObjectName = text.c_str();
  setObjectName(handle, &info); // failure does not matter: names are for reports
}

void VulkanDevice::createTimelines() {
  VkSemaphoreTypeCreateInfo type = {};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  for (Queue &queue : queues) {
    VkSemaphore semaphore = VK_NULL_HANDLE;
    check(vk.CreateSemaphore(handle, &info, nullptr, &semaphore), "vkCreateSemaphore");
    queue.timeline = Owned<VkSemaphore>(handle, semaphore, vk.DestroySemaphore);
  }
}

std::shared_ptr<Device> VulkanDevice::adopt(const weir_vulkan_handles &handles) {
  auto require = [](const void *handle, const char *name) {
    if (!handle)
      throw BadArgument(std::string("weir_device_adopt_vulkan: the handle '") + name + "' is null");
  };
  require(handles.get_instance_proc_addr, "get_instance_proc_addr");
  require(handles.instance, "instance");
  require(handles.physical_device, "physical_device");
  require(handles.device, "device");
  require(handles.queue, "queue");

  std::shared_ptr<VulkanDevice> device(new VulkanDevice);
  device->adopted = true;
  device->instance = static_cast<VkInstance>(handles.instance);
  device->physical = static_cast<VkPhysicalDevice>(handles.physical_device);
  device->handle = static_cast<VkDevice>(handles.device);
  device->queues.resize(1);
  device->queues[0].handle = static_cast<VkQueue>(handles.queue);
  device->queueFamily = handles.queue_family;
  device->instanceVk = loadInstanceFunctions(
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(handles.get_instance_proc_addr),
      device->instance);
  VkPhysicalDeviceProperties2 props = {};
  props.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  device->instanceVk.GetPhysicalDeviceProperties2(device->physical, &props);
  if (props.properties.apiVersion < VK_API_VERSION_1_3)
    throw BadArgument(std::string("the device '") + props.properties.deviceName + "' has Vulkan " +
                      printVersion(props.properties.apiVersion) + ", but Weir needs 1.3");
  device->facts = runtime::getFacts(device->instanceVk, device->physical);
  // Vulkan cannot tell whether this was enabled, and it is only a safeguard.
  device->facts.fullSubgroups = false;
  // Nor whether these were, without which no code that needs them runs.
  device->facts.cooperative.clear();
  device->vk = loadDeviceFunctions(device->instanceVk.GetDeviceProcAddr, device->handle);
  device->finishSetup();
  return device;
}

void VulkanDevice::finishSetup() {
  instanceVk.GetPhysicalDeviceMemoryProperties(physical, &memoryTypes);
  std::vector<VkQueueFamilyProperties> families;
  findComputeFamily(instanceVk, physical, families);
  if (queueFamily >= families.size() || !(families[queueFamily].queueFlags & VK_QUEUE_COMPUTE_BIT))
    throw BadArgument("queue family " + std::to_string(queueFamily) + " of the device '" +
                      facts.name + "' does not exist or cannot compute");
  if (facts.limits.timestampPeriod > 0)
    timestampBits = families[queueFamily].timestampValidBits;
}

VulkanDevice::~VulkanDevice() {
  waitNoThrow();
  staging = {};
  idleFences.clear();
  copyPool = Owned<VkCommandPool>();
  queues.clear();
  if (adopted)
    return;
  if (handle != VK_NULL_HANDLE && vk.DestroyDevice)
    vk.DestroyDevice(handle, nullptr);
  if (instance != VK_NULL_HANDLE)
    instanceVk.DestroyInstance(instance, nullptr);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Storage VulkanDevice::allocate(int64_t bytes, Placement placement) {
  bool shares = facts.type == VK_PHYSICAL_DEVICE_TYPE_CPU ||
                facts.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (placement == Placement::Shared && !shares)
    placement = Placement::Device;
  return allocateTyped(bytes, placement);
}

Storage VulkanDevice::allocateTyped(int64_t bytes, Placement placement) {
  bool isHost = placement != Placement::Device;
  Storage storage;
  storage.bytes = bytes;
  if (bytes == 0)
    return storage;
  if (bytes > facts.maxAllocation)
    throw BadArgument("a buffer of " + std::to_string(bytes) + " bytes exceeds the device '" +
                      facts.name + "', whose largest has " + std::to_string(facts.maxAllocation));

  auto owned = std::make_unique<VulkanMemory>();
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  // Whole words: kernels for a device without short types load and store these.
  constexpr int64_t wordBytes = 4;
  info.size = VkDeviceSize((bytes + wordBytes - 1) / wordBytes * wordBytes);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  check(vk.CreateBuffer(handle, &info, nullptr, &buffer), "vkCreateBuffer");
  owned->buffer = Owned<VkBuffer>(handle, buffer, vk.DestroyBuffer);

  VkMemoryRequirements needs = {};
  vk.GetBufferMemoryRequirements(handle, buffer, &needs);
  VkMemoryAllocateInfo allocation = {};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.allocationSize = needs.size;
  std::optional<uint32_t> type = chooseMemoryType(memoryTypes, needs.memoryTypeBits, placement);
  if (!type)
    throw Error("the device '" + facts.name + "' has no memory type for storage buffers" +
                (isHost ? " that the host can see" : ""));
  allocation.memoryTypeIndex = *type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  check(vk.AllocateMemory(handle, &allocation, nullptr, &memory),
        "vkAllocateMemory of " + std::to_string(bytes) + " bytes");
  owned->memory = Owned<VkDeviceMemory>(handle, memory, vk.FreeMemory);
  check(vk.BindBufferMemory(handle, buffer, memory, 0), "vkBindBufferMemory");
  if (isHost)
    check(vk.MapMemory(handle, memory, 0, VK_WHOLE_SIZE, 0, &owned->mapped), "vkMapMemory");
  storage.memory = std::move(owned);
  return storage;
}

void *VulkanDevice::getHostAddress(const Storage &storage) const {
  return storage.memory ? getMemory(storage).mapped : nullptr;
}

/// Returns staging memory that no copy uses any longer.
VulkanDevice::Staging &VulkanDevice::takeStaging() {
  Staging &taken = staging[nextStaging++ % staging.size()];
  if (taken.storage.bytes == 0)
    taken.storage = allocateTyped(stagingBytes, Placement::Shared);
  waitFor(taken.storage.lastUse);
  return taken;
}

void VulkanDevice::write(Storage &storage, int64_t offset, const void *data, int64_t bytes) {
  const VulkanMemory &memory = getMemory(storage);
  if (memory.mapped) {
    waitFor(storage.lastUse);
    std::memcpy(static_cast<char *>(memory.mapped) + offset, data, size_t(bytes));
    return;
  }
  // The queue orders copies after earlier runs, so there is nothing to wait for.
  const char *source = static_cast<const char *>(data);
  for (int64_t done = 0; done < bytes;) {
    int64_t part = std::min(bytes - done, stagingBytes);
    Staging &through = takeStaging();
    std::memcpy(getMemory(through.storage).mapped, source + done, size_t(part));
    copy(through, getMemory(through.storage).buffer.get(), 0, memory.buffer.get(), offset + done,
         part);
    storage.lastUse = submissions;
    done += part;
  }
}

void VulkanDevice::read(const Storage &storage, int64_t offset, void *data, int64_t bytes) {
  const VulkanMemory &memory = getMemory(storage);
  if (memory.mapped) {
    waitFor(storage.lastUse);
    std::memcpy(data, static_cast<const char *>(memory.mapped) + offset, size_t(bytes));
    return;
  }
  char *target = static_cast<char *>(data);
  for (int64_t done = 0; done < bytes;) {
    int64_t part = std::min(bytes - done, stagingBytes);
    Staging &through = takeStaging();
    copy(through, memory.buffer.get(), offset + done, getMemory(through.storage).buffer.get(), 0,
         part);
    waitFor(submissions);
    std::memcpy(target + done, getMemory(through.storage).mapped, size_t(part));
    done += part;
  }
}

/// Submits a copy to or from the memory of `through`.
void VulkanDevice::copy(Staging &through, VkBuffer from, int64_t fromOffset, VkBuffer to,
                        int64_t toOffset, int64_t bytes) {
  if (copyPool.get() == VK_NULL_HANDLE) {
    VkCommandPoolCreateInfo poolInfo = {};
    poolInfo.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    poolInfo.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    poolInfo.queueFamilyIndex = queueFamily;
    VkCommandPool pool = VK_NULL_HANDLE;
    check(vk.CreateCommandPool(handle, &poolInfo, nullptr, &pool), "vkCreateCommandPool");
    copyPool = Owned<VkCommandPool>(handle, pool, vk.DestroyCommandPool);
  }
  VkCommandBuffer &copyCommands = through.commands;
  if (copyCommands == VK_NULL_HANDLE) {
    VkCommandBufferAllocateInfo allocate = {};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = copyPool.get();
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    check(vk.AllocateCommandBuffers(handle, &allocate, &copyCommands), "vkAllocateCommandBuffers");
  }
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vk.BeginCommandBuffer(copyCommands, &begin), "vkBeginCommandBuffer");

  VkMemoryBarrier2 barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
  barrier.srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_COPY_BIT;
  barrier.srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
  barrier.dstStageMask = VK_PIPELINE_STAGE_2_COPY_BIT;
  barrier.dstAccessMask = VK_ACCESS_2_TRANSFER_READ_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
  VkDependencyInfo dependency = {};
  dependency.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
  dependency.memoryBarrierCount = 1;
  dependency.pMemoryBarriers = &barrier;
  vk.CmdPipelineBarrier2(copyCommands, &dependency);

  VkBufferCopy region = {};
  region.srcOffset = VkDeviceSize(fromOffset);
  region.dstOffset = VkDeviceSize(toOffset);
  region.size = VkDeviceSize(bytes);
  vk.CmdCopyBuffer(copyCommands, from, to, 1, &region);

  barrier.srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT;
  barrier.srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT;
  barrier.dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT;
  barrier.dstAccessMask = VK_ACCESS_2_HOST_READ_BIT;
  vk.CmdPipelineBarrier2(copyCommands, &dependency);
  check(vk.EndCommandBuffer(copyCommands), "vkEndCommandBuffer");
  submit({{Submission(), copyCommands}});
  through.storage.lastUse = submissions;
}

//===----------------------------------------------------------------------===//
// Submission
//===----------------------------------------------------------------------===//

void VulkanDevice::submit(const std::vector<RecordedSubmission> &run, size_t times) {
  // A host that runs far ahead gains nothing, and each run in flight costs a fence.
  constexpr size_t maxPending = 64;
  if (pending.size() >= maxPending)
    waitFor(pending.front().submission);
  std::vector<uint64_t> bases;
  for (const Queue &queue : queues)
    bases.push_back(queue.value);
  isSubmitting = true;
  for (const RecordedSubmission &recorded : run) {
    const Submission &submission = recorded.submission;
    Queue &queue = queues[size_t(submission.queue)];
    std::vector<VkSemaphore> semaphores;
    std::vector<uint64_t> values;
    for (const TimelinePoint &point : submission.waits) {
      semaphores.push_back(queues[size_t(point.queue)].timeline.get());
      values.push_back(bases[size_t(point.queue)] + point.value);
    }
    std::vector<VkPipelineStageFlags> stages(semaphores.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    uint64_t signal = bases[size_t(submission.queue)] + submission.signals;
    VkSemaphore timeline = queue.timeline.get();
    VkTimelineSemaphoreSubmitInfo points = {};
    points.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    points.waitSemaphoreValueCount = uint32_t(values.size());
    points.pWaitSemaphoreValues = values.data();
    points.signalSemaphoreValueCount = submission.signals != 0;
    points.pSignalSemaphoreValues = &signal;
    VkSubmitInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    if (!semaphores.empty() || submission.signals)
      info.pNext = &points;
    info.waitSemaphoreCount = uint32_t(semaphores.size());
    info.pWaitSemaphores = semaphores.data();
    info.pWaitDstStageMask = stages.data();
    const std::vector<VkCommandBuffer> commands(recorded.commands == VK_NULL_HANDLE ? 0 : times,
                                                recorded.commands);
    info.commandBufferCount = uint32_t(commands.size());
    info.pCommandBuffers = commands.data();
    info.signalSemaphoreCount = submission.signals != 0;
    info.pSignalSemaphores = &timeline;
    // The last one, on queue 0, waits for the other queues.
    Owned<VkFence> fence;
    if (&recorded == &run.back())
      fence = takeFence();
    DriverCall call({"starting a run on '", facts.name, "'"});
    check(vk.QueueSubmit(queue.handle, 1, &info, fence.get()), "vkQueueSubmit");
    if (fence.get() != VK_NULL_HANDLE)
      pending.push_back({++submissions, std::move(fence)});
    if (submission.signals)
      queue.value = signal;
  }
  isSubmitting = false;
}

Owned<VkFence> VulkanDevice::takeFence() {
  if (!idleFences.empty()) {
    Owned<VkFence> taken = std::move(idleFences.back());
    idleFences.pop_back();
    VkFence fence = taken.get();
    check(vk.ResetFences(handle, 1, &fence), "vkResetFences");
    return taken;
  }
  VkFenceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  check(vk.CreateFence(handle, &info, nullptr, &fence), "vkCreateFence");
  return Owned<VkFence>(handle, fence, vk.DestroyFence);
}

void VulkanDevice::waitFor(uint64_t submission) {
  if (submission <= ended)
    return;
  for (const Pending &run : pending) {
    if (run.submission < submission)
      continue;
    VkFence fence = run.fence.get();
    DriverCall call({"running kernels on '", facts.name, "'"});
    check(vk.WaitForFences(handle, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    forgetEnded(run.submission);
    return;
  }
}

/// Notes that `submission` and those before it have ended.
void VulkanDevice::forgetEnded(uint64_t submission) {
  ended = submission;
  while (!pending.empty() && pending.front().submission <= submission) {
    idleFences.push_back(std::move(pending.front().fence));
    pending.pop_front();
  }
}

void VulkanDevice::wait() { waitFor(submissions); }

void VulkanDevice::waitNoThrow() noexcept {
  // Wait also after an error, when fences are not signaled.
  if (!pending.empty() || isSubmitting) {
    DriverCall call({"running kernels on '", facts.name, "'"});
    for (const Queue &queue : queues)
      vk.QueueWaitIdle(queue.handle);
  }
  forgetEnded(submissions);
}

std::unique_ptr<Program> VulkanDevice::load(const Artifact &artifact) {
  return std::make_unique<VulkanProgram>(std::static_pointer_cast<VulkanDevice>(shared_from_this()),
                                         artifact);
}

} // namespace weir::runtime
