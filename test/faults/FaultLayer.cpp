//===- FaultLayer.cpp - A Vulkan layer whose calls fail -------------------===//

#include "test/faults/FaultLayer.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan_core.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {
/// The calls that are to fail, and counts. One device at a time is used.
struct World {
  std::atomic<int> calls{0}, live{0};
  std::atomic<int> failingCall{0}, result{0};
  std::atomic<bool> isLost{false}, isDiscrete{false};
  std::string onlyName;

  World();
  ~World();
};
} // namespace

static int readNumber(const char *name) {
  const char *text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}

World::World() {
  failingCall = readNumber("WEIR_FAULT_CALL");
  result = readNumber("WEIR_FAULT_RESULT");
  isDiscrete = std::getenv("WEIR_FAULT_DISCRETE") != nullptr;
  if (const char *name = std::getenv("WEIR_FAULT_NAME"))
    onlyName = name;
}

World::~World() {
  const char *path = std::getenv("WEIR_FAULT_REPORT");
  if (FILE *file = path ? std::fopen(path, "w") : nullptr) {
    std::fprintf(file, "%d calls, %d live\n", calls.load(), live.load());
    std::fclose(file);
  }
}

static World &world() {
  static World instance;
  return instance;
}

void weir_faults_set(int call, int result) {
  world().calls = 0;
  world().failingCall = call;
  world().result = result;
  world().isLost = false;
}
bool weir_faults_came() { return world().failingCall > 0 && world().calls >= world().failingCall; }
int weir_faults_live() { return world().live; }
void weir_faults_be_discrete(bool isDiscrete) { world().isDiscrete = isDiscrete; }

//===----------------------------------------------------------------------===//
// Calls that fail
//===----------------------------------------------------------------------===//

/// Whether Vulkan lets the function return VK_ERROR_DEVICE_LOST.
static bool mayLoseDevice(const char *name) {
  for (const char *other : {"vkQueueSubmit", "vkQueueWaitIdle", "vkWaitForFences",
                            "vkGetQueryPoolResults", "vkCreateDevice"})
    if (std::strcmp(name, other) == 0)
      return true;
  return false;
}

/// Returns what a call returns in place of calling the driver, VK_SUCCESS if it may call it.
static VkResult begin(const char *name) {
  World &faults = world();
  int result = faults.result;
  if (!faults.onlyName.empty() && faults.onlyName != name)
    return VK_SUCCESS;
  if (result == VK_ERROR_DEVICE_LOST && !mayLoseDevice(name))
    return VK_SUCCESS;
  if (faults.isLost)
    return VK_ERROR_DEVICE_LOST;
  if (++faults.calls != faults.failingCall)
    return VK_SUCCESS;
  if (result > 0)
    std::raise(result);
  faults.isLost = result == VK_ERROR_DEVICE_LOST;
  return VkResult(result);
}

/// Every function of a device that may fail, and the objects that one call makes.
#define FAULTS_FALLIBLE(X)                                                                         \
  X(AllocateCommandBuffers, 0)                                                                     \
  X(AllocateDescriptorSets, 0)                                                                     \
  X(AllocateMemory, 1)                                                                             \
  X(BeginCommandBuffer, 0)                                                                         \
  X(BindBufferMemory, 0)                                                                           \
  X(CreateBuffer, 1)                                                                               \
  X(CreateCommandPool, 1)                                                                          \
  X(CreateComputePipelines, 1)                                                                     \
  X(CreateDescriptorPool, 1)                                                                       \
  X(CreateDescriptorSetLayout, 1)                                                                  \
  X(CreateFence, 1)                                                                                \
  X(CreatePipelineLayout, 1)                                                                       \
  X(CreateQueryPool, 1)                                                                            \
  X(CreateSemaphore, 1)                                                                            \
  X(CreateShaderModule, 1)                                                                         \
  X(EndCommandBuffer, 0)                                                                           \
  X(GetQueryPoolResults, 0)                                                                        \
  X(MapMemory, 0)                                                                                  \
  X(QueueSubmit, 0)                                                                                \
  X(QueueWaitIdle, 0)                                                                              \
  X(ResetFences, 0)                                                                                \
  X(WaitForFences, 0)

#define FAULTS_DESTROYING(X)                                                                       \
  X(DestroyBuffer)                                                                                 \
  X(DestroyCommandPool)                                                                            \
  X(DestroyDescriptorPool)                                                                         \
  X(DestroyDescriptorSetLayout)                                                                    \
  X(DestroyFence)                                                                                  \
  X(DestroyPipeline)                                                                               \
  X(DestroyPipelineLayout)                                                                         \
  X(DestroyQueryPool)                                                                              \
  X(DestroySemaphore)                                                                              \
  X(DestroyShaderModule)                                                                           \
  X(FreeMemory)

namespace {
enum class Call {
#define FAULTS_NAME(name, ...) name,
  FAULTS_FALLIBLE(FAULTS_NAME) FAULTS_DESTROYING(FAULTS_NAME)
};

/// A call, by its number in the enumeration, since functions of one type need hooks of their own.
template <Call call, typename Function> struct Hook;

template <Call call, typename... Arguments> struct Hook<call, VkResult(VKAPI_PTR *)(Arguments...)> {
  static inline VkResult(VKAPI_PTR *next)(Arguments...) = nullptr;
  static inline const char *name = nullptr;
  static inline int objects = 0;

  static VkResult VKAPI_CALL run(Arguments... arguments) {
    VkResult result = begin(name);
    // A lost device executes nothing any more; this one does, until it is waited for.
    if (result == VK_ERROR_DEVICE_LOST &&
        (call == Call::QueueWaitIdle || call == Call::WaitForFences))
      next(arguments...);
    if (result == VK_SUCCESS)
      result = next(arguments...);
    if (result == VK_SUCCESS)
      world().live += objects;
    return result;
  }
};

template <Call call, typename Handle>
struct Hook<call, void(VKAPI_PTR *)(VkDevice, Handle, const VkAllocationCallbacks *)> {
  static inline void(VKAPI_PTR *next)(VkDevice, Handle, const VkAllocationCallbacks *) = nullptr;

  static void VKAPI_CALL run(VkDevice device, Handle handle,
                             const VkAllocationCallbacks *allocator) {
    if (handle != VK_NULL_HANDLE)
      --world().live;
    next(device, handle, allocator);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Instances and devices
//===----------------------------------------------------------------------===//

static PFN_vkGetInstanceProcAddr nextInstanceProcAddr;
static PFN_vkGetDeviceProcAddr nextDeviceProcAddr;
static VkInstance theInstance;

/// Functions of the instance. They are asked for while it is made: later the loader would return
/// those of the whole chain, this layer's included.
static PFN_vkDestroyInstance nextDestroyInstance;
static PFN_vkEnumeratePhysicalDevices nextListDevices;
static PFN_vkGetPhysicalDeviceProperties2 nextGetProperties;

template <typename Function> static void loadNext(Function &function, const char *name) {
  function = reinterpret_cast<Function>(nextInstanceProcAddr(theInstance, name));
}

/// Returns the layer's link in a creation chain.
template <typename Info> static Info *findLink(const void *chain, VkStructureType type) {
  for (auto *info = static_cast<const VkBaseInStructure *>(chain); info; info = info->pNext) {
    auto *link = reinterpret_cast<const Info *>(info);
    if (info->sType == type && link->function == VK_LAYER_LINK_INFO)
      return const_cast<Info *>(link);
  }
  return nullptr;
}

static VkResult VKAPI_CALL createInstance(const VkInstanceCreateInfo *info,
                                          const VkAllocationCallbacks *allocator,
                                          VkInstance *instance) {
  auto *link = findLink<VkLayerInstanceCreateInfo>(info->pNext,
                                                   VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link)
    return VK_ERROR_INITIALIZATION_FAILED;
  nextInstanceProcAddr = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  if (VkResult result = begin("vkCreateInstance"))
    return result;
  auto create =
      reinterpret_cast<PFN_vkCreateInstance>(nextInstanceProcAddr(nullptr, "vkCreateInstance"));
  VkResult result = create(info, allocator, instance);
  if (result == VK_SUCCESS) {
    theInstance = *instance;
    loadNext(nextDestroyInstance, "vkDestroyInstance");
    loadNext(nextListDevices, "vkEnumeratePhysicalDevices");
    loadNext(nextGetProperties, "vkGetPhysicalDeviceProperties2");
    ++world().live;
  }
  return result;
}

static void VKAPI_CALL destroyInstance(VkInstance instance,
                                       const VkAllocationCallbacks *allocator) {
  if (!instance)
    return;
  --world().live;
  nextDestroyInstance(instance, allocator);
}

static VkResult VKAPI_CALL listDevices(VkInstance instance, uint32_t *count,
                                       VkPhysicalDevice *devices) {
  if (VkResult result = begin("vkEnumeratePhysicalDevices"))
    return result;
  return nextListDevices(instance, count, devices);
}

static void VKAPI_CALL getProperties(VkPhysicalDevice device,
                                     VkPhysicalDeviceProperties2 *properties) {
  nextGetProperties(device, properties);
  if (world().isDiscrete)
    properties->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static VkResult VKAPI_CALL createDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                        const VkAllocationCallbacks *allocator, VkDevice *device) {
  auto *link =
      findLink<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link)
    return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  nextDeviceProcAddr = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  if (VkResult result = begin("vkCreateDevice"))
    return result;
  auto create = reinterpret_cast<PFN_vkCreateDevice>(get(theInstance, "vkCreateDevice"));
  VkResult result = create(physical, info, allocator, device);
  if (result != VK_SUCCESS)
    return result;
  ++world().live;
#define FAULTS_LOAD(function, ...)                                                                 \
  Hook<Call::function, PFN_vk##function>::next =                                                   \
      reinterpret_cast<PFN_vk##function>(nextDeviceProcAddr(*device, "vk" #function));
  FAULTS_FALLIBLE(FAULTS_LOAD)
  FAULTS_DESTROYING(FAULTS_LOAD)
#undef FAULTS_LOAD
#define FAULTS_COUNT(function, count)                                                              \
  Hook<Call::function, PFN_vk##function>::name = "vk" #function;                                   \
  Hook<Call::function, PFN_vk##function>::objects = count;
  FAULTS_FALLIBLE(FAULTS_COUNT)
#undef FAULTS_COUNT
  return result;
}

static void VKAPI_CALL destroyDevice(VkDevice device, const VkAllocationCallbacks *allocator) {
  if (!device)
    return;
  --world().live;
  reinterpret_cast<PFN_vkDestroyDevice>(nextDeviceProcAddr(device, "vkDestroyDevice"))(device,
                                                                                       allocator);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static PFN_vkVoidFunction VKAPI_CALL getDeviceProcAddr(VkDevice device, const char *name);
static PFN_vkVoidFunction VKAPI_CALL getInstanceProcAddr(VkInstance instance, const char *name);

static PFN_vkVoidFunction findHook(const char *name) {
  struct Entry {
    const char *name;
    PFN_vkVoidFunction function;
  };
#define FAULTS_ENTRY(function, ...)                                                                \
  {"vk" #function,                                                                                 \
   reinterpret_cast<PFN_vkVoidFunction>(&Hook<Call::function, PFN_vk##function>::run)},
  static const Entry entries[] = {
      FAULTS_FALLIBLE(FAULTS_ENTRY) FAULTS_DESTROYING(FAULTS_ENTRY)
      // Of the instance, and of devices as such.
      {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(createInstance)},
      {"vkDestroyInstance", reinterpret_cast<PFN_vkVoidFunction>(destroyInstance)},
      {"vkEnumeratePhysicalDevices", reinterpret_cast<PFN_vkVoidFunction>(listDevices)},
      {"vkGetPhysicalDeviceProperties2", reinterpret_cast<PFN_vkVoidFunction>(getProperties)},
      {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(createDevice)},
      {"vkDestroyDevice", reinterpret_cast<PFN_vkVoidFunction>(destroyDevice)},
      {"vkGetInstanceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(getInstanceProcAddr)},
      {"vkGetDeviceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(getDeviceProcAddr)}};
#undef FAULTS_ENTRY
  for (const Entry &entry : entries)
    if (std::strcmp(entry.name, name) == 0)
      return entry.function;
  return nullptr;
}

static PFN_vkVoidFunction VKAPI_CALL getDeviceProcAddr(VkDevice device, const char *name) {
  PFN_vkVoidFunction hook = findHook(name);
  return hook ? hook : nextDeviceProcAddr(device, name);
}

static PFN_vkVoidFunction VKAPI_CALL getInstanceProcAddr(VkInstance instance, const char *name) {
  PFN_vkVoidFunction hook = findHook(name);
  if (hook || !instance)
    return hook;
  return nextInstanceProcAddr(instance, name);
}

extern "C" VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface) {
  if (interface->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
      interface->loaderLayerInterfaceVersion < 2)
    return VK_ERROR_INITIALIZATION_FAILED;
  interface->loaderLayerInterfaceVersion = 2;
  interface->pfnGetInstanceProcAddr = getInstanceProcAddr;
  interface->pfnGetDeviceProcAddr = getDeviceProcAddr;
  interface->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
