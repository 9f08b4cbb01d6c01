//===- Layer.cpp - The layer's place in the loader's chain ----------------===//
//
// Implements version 2 of the loader and layer interface. The layer is in the instance chain
// only to hook device functions: most that compute and synchronize.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weir::audit {

namespace {

struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  PFN_vkDestroyInstance DestroyInstance = nullptr;

  template <typename Function> Function get(const char *name) const {
    return reinterpret_cast<Function>(GetInstanceProcAddr(handle, name));
  }
};

/// The layer's objects in this process. Devices that the application does not destroy are
/// reported when the process ends.
struct World {
  std::mutex mutex;
  std::unordered_map<void *, Instance> instances;
  std::unordered_map<void *, std::unique_ptr<Device>> devices;

  ~World() {
    for (auto &[key, device] : devices)
      device->report();
  }
};

} // namespace

static World &getWorld() {
  static World world;
  return world;
}

Device &findDevice(void *key) {
  World &world = getWorld();
  std::lock_guard lock(world.mutex);
  return *world.devices.at(key);
}

void Device::report() {
  std::lock_guard lock(mutex);
  Summary summary = checker.getSummary();
  const char *format = std::getenv("WEIR_AUDIT_FORMAT");
  bool isJson = format && std::strcmp(format, "json") == 0;
  std::string text = (isJson ? printJson : print)(summary, name, unseen);
  const char *path = std::getenv("WEIR_AUDIT_REPORT");
  FILE *file = path ? std::fopen(path, "a") : nullptr;
  if (path && !file)
    std::fprintf(stderr, "weir-audit: cannot write WEIR_AUDIT_REPORT '%s'\n", path);
  // Write with one call, since several processes may share the file.
  std::fwrite(text.data(), 1, text.size(), file ? file : stderr);
  if (file)
    std::fclose(file);
}

//===----------------------------------------------------------------------===//
// Instances
//===----------------------------------------------------------------------===//

/// Returns the layer's link in a creation chain; the caller advances it for the next layer.
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
                                          VkInstance *handle) {
  auto *link = findLink<VkLayerInstanceCreateInfo>(info->pNext,
                                                   VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link)
    return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  VkResult result = create(info, allocator, handle);
  if (result != VK_SUCCESS)
    return result;
  Instance instance{*handle, get, nullptr};
  instance.DestroyInstance = instance.get<PFN_vkDestroyInstance>("vkDestroyInstance");
  World &world = getWorld();
  std::lock_guard lock(world.mutex);
  world.instances[getKey(*handle)] = instance;
  return result;
}

static void VKAPI_CALL destroyInstance(VkInstance handle, const VkAllocationCallbacks *allocator) {
  if (!handle)
    return;
  World &world = getWorld();
  PFN_vkDestroyInstance destroy;
  {
    std::lock_guard lock(world.mutex);
    auto instance = world.instances.find(getKey(handle));
    destroy = instance->second.DestroyInstance;
    world.instances.erase(instance);
  }
  destroy(handle, allocator);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

static void describe(Device &device, const Instance &instance, VkPhysicalDevice physical) {
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  VkPhysicalDeviceSubgroupProperties subgroups = {};
  subgroups.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  subgroups.pNext = &sizes;
  VkPhysicalDeviceProperties2 props = {};
  props.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  props.pNext = &subgroups;
  if (auto get = instance.get<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2"))
    get(physical, &props);
  else
    instance.get<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties")(
        physical, &props.properties);
  device.name = props.properties.deviceName;
  device.subgroups.size = std::max<int64_t>(subgroups.subgroupSize, 1);
  device.subgroups.isFixed =
      subgroups.subgroupSize && sizes.minSubgroupSize == sizes.maxSubgroupSize;
  device.subgroups.areFull = false;
}

static VkResult VKAPI_CALL createDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                        const VkAllocationCallbacks *allocator, VkDevice *handle) {
  auto *link =
      findLink<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link)
    return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetInstanceProcAddr getInstance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  World &world = getWorld();
  Instance instance;
  {
    std::lock_guard lock(world.mutex);
    instance = world.instances.at(getKey(physical));
  }
  auto create =
      reinterpret_cast<PFN_vkCreateDevice>(getInstance(instance.handle, "vkCreateDevice"));
  VkResult result = create(physical, info, allocator, handle);
  if (result != VK_SUCCESS)
    return result;
  auto device = std::make_unique<Device>();
  device->handle = *handle;
  Next &next = device->next;
  next.GetDeviceProcAddr = get;
#define WEIR_AUDIT_LOAD(name) next.name = reinterpret_cast<PFN_vk##name>(get(*handle, "vk" #name));
  WEIR_AUDIT_HOOKS(WEIR_AUDIT_LOAD)
#undef WEIR_AUDIT_LOAD
#define WEIR_AUDIT_LOAD(name)                                                                      \
  if (!next.name)                                                                                  \
    next.name = reinterpret_cast<PFN_vk##name>(get(*handle, "vk" #name "KHR"));
  WEIR_AUDIT_PROMOTED_HOOKS(WEIR_AUDIT_LOAD)
#undef WEIR_AUDIT_LOAD
  describe(*device, instance, physical);
  std::lock_guard lock(world.mutex);
  world.devices[getKey(*handle)] = std::move(device);
  return result;
}

void hooks::DestroyDevice(VkDevice handle, const VkAllocationCallbacks *allocator) {
  if (!handle)
    return;
  World &world = getWorld();
  std::unique_ptr<Device> device;
  {
    std::lock_guard lock(world.mutex);
    auto found = world.devices.find(getKey(handle));
    device = std::move(found->second);
    world.devices.erase(found);
  }
  device->report();
  device->next.DestroyDevice(handle, allocator);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static PFN_vkVoidFunction findHook(const char *name) {
  static const std::unordered_map<std::string, PFN_vkVoidFunction> all = {
#define WEIR_AUDIT_ENTRY(name) {"vk" #name, reinterpret_cast<PFN_vkVoidFunction>(hooks::name)},
      WEIR_AUDIT_HOOKS(WEIR_AUDIT_ENTRY)
#undef WEIR_AUDIT_ENTRY
#define WEIR_AUDIT_ENTRY(name)                                                                     \
  {"vk" #name "KHR", reinterpret_cast<PFN_vkVoidFunction>(hooks::name)},
          WEIR_AUDIT_PROMOTED_HOOKS(WEIR_AUDIT_ENTRY)
#undef WEIR_AUDIT_ENTRY
  };
  auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

static PFN_vkVoidFunction VKAPI_CALL getDeviceProcAddr(VkDevice handle, const char *name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(getDeviceProcAddr);
  Device &device = getDevice(handle);
  // Do not offer functions that the device lacks.
  PFN_vkVoidFunction next = device.next.GetDeviceProcAddr(handle, name);
  if (!next)
    return nullptr;
  if (PFN_vkVoidFunction hook = findHook(name))
    return hook;
  if (PFN_vkVoidFunction hook = getUnseenHook(device, name))
    return hook;
  return next;
}

static PFN_vkVoidFunction VKAPI_CALL getInstanceProcAddr(VkInstance handle, const char *name) {
  auto is = [&](const char *other) { return std::strcmp(name, other) == 0; };
  if (is("vkGetInstanceProcAddr"))
    return reinterpret_cast<PFN_vkVoidFunction>(getInstanceProcAddr);
  if (is("vkCreateInstance"))
    return reinterpret_cast<PFN_vkVoidFunction>(createInstance);
  if (is("vkDestroyInstance"))
    return reinterpret_cast<PFN_vkVoidFunction>(destroyInstance);
  if (is("vkCreateDevice"))
    return reinterpret_cast<PFN_vkVoidFunction>(createDevice);
  if (is("vkGetDeviceProcAddr"))
    return reinterpret_cast<PFN_vkVoidFunction>(getDeviceProcAddr);
  if (!handle)
    return nullptr;
  World &world = getWorld();
  Instance instance;
  {
    std::lock_guard lock(world.mutex);
    instance = world.instances.at(getKey(handle));
  }
  PFN_vkVoidFunction next = instance.GetInstanceProcAddr(handle, name);
  PFN_vkVoidFunction hook = next ? findHook(name) : nullptr;
  return hook ? hook : next;
}

extern "C" __attribute__((visibility("default"))) VkResult VKAPI_CALL
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

} // namespace weir::audit
