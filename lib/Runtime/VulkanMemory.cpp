//===- VulkanMemory.cpp - The choice of a memory type ---------------------===//

#include "VulkanMemory.h"

namespace weir::runtime {

namespace {
/// Properties that a memory type has, and others that it has not.
struct Wish {
  VkMemoryPropertyFlags has, lacks = 0;
};
} // namespace

/// Returns what types may be like, the best first.
static std::vector<Wish> getWishes(Placement placement) {
  constexpr VkMemoryPropertyFlags host =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  switch (placement) {
  case Placement::Device:
    return {{local}, {0}};
  case Placement::Shared:
    return {{host | cached | local}, {host | cached}, {host | local}, {host}};
  case Placement::Host:
    return {{host | cached, local}, {host, local}, {host | cached}, {host}};
  }
  return {};
}

std::optional<uint32_t> chooseMemoryType(const VkPhysicalDeviceMemoryProperties &types,
                                         uint32_t allowed, Placement placement) {
  for (Wish wish : getWishes(placement))
    for (uint32_t type = 0; type < types.memoryTypeCount; ++type)
      if (VkMemoryPropertyFlags flags = types.memoryTypes[type].propertyFlags;
          (allowed >> type & 1) && (flags & wish.has) == wish.has && (flags & wish.lacks) == 0)
        return type;
  return std::nullopt;
}

} // namespace weir::runtime
