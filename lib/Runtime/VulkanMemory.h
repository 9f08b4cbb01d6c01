//===- VulkanMemory.h - The choice of a memory type -------------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_VULKANMEMORY_H
#define WEIR_LIB_RUNTIME_VULKANMEMORY_H

#include "Device.h"
#include "VulkanApi.h"

#include <optional>

namespace weir::runtime {

/// Returns the best memory type for a placement, among those that `allowed` has a bit for, or
/// nothing. `Placement::Host` gets memory that is not the device's own, where there is any:
/// processors and integrated GPUs may call all memory their own.
std::optional<uint32_t> chooseMemoryType(const VkPhysicalDeviceMemoryProperties &types,
                                         uint32_t allowed, Placement placement);

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_VULKANMEMORY_H
