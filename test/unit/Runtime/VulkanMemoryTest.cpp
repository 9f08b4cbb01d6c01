//===- VulkanMemoryTest.cpp - The choice of a memory type -----------------===//

#include "lib/Runtime/VulkanMemory.h"

#include <gtest/gtest.h>

using namespace weir::runtime;

static constexpr VkMemoryPropertyFlags visible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
static constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
static constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

/// Returns the number of the chosen type of a device with these, or -1.
static int64_t choose(const std::vector<VkMemoryPropertyFlags> &flags, Placement placement,
                      uint32_t allowed = ~0u) {
  VkPhysicalDeviceMemoryProperties types = {};
  types.memoryTypeCount = uint32_t(flags.size());
  for (size_t i = 0; i < flags.size(); ++i)
    types.memoryTypes[i].propertyFlags = flags[i];
  std::optional<uint32_t> type = chooseMemoryType(types, allowed, placement);
  return type ? int64_t(*type) : -1;
}

TEST(VulkanMemory, DiscreteGpuHasMemoryOfTheHost) {
  // With a window into the device's memory, as resizable BAR gives.
  std::vector<VkMemoryPropertyFlags> types = {0, local, visible, visible | cached, local | visible};
  EXPECT_EQ(choose(types, Placement::Device), 1);
  EXPECT_EQ(choose(types, Placement::Shared), 3);
  EXPECT_EQ(choose(types, Placement::Host), 3);
  EXPECT_EQ(choose(types, Placement::Host, ~(1u << 3)), 2); // what a buffer does not allow
  EXPECT_EQ(choose({local, local | visible | cached, visible}, Placement::Host), 2);
}

TEST(VulkanMemory, SharedMemoryIsTheHostsToo) {
  EXPECT_EQ(choose({local | visible | cached}, Placement::Host), 0); // as lavapipe
  EXPECT_EQ(choose({local, local | visible, local | visible | cached}, Placement::Host), 2);
  EXPECT_EQ(choose({local, local | visible, local | visible | cached}, Placement::Shared), 2);
}

TEST(VulkanMemory, TellsWhereThereIsNone) {
  EXPECT_EQ(choose({local}, Placement::Host), -1);
  EXPECT_EQ(choose({local, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT}, Placement::Host), -1);
  EXPECT_EQ(choose({local, visible}, Placement::Host, 1), -1);
  EXPECT_EQ(choose({0}, Placement::Device), 0);
}
