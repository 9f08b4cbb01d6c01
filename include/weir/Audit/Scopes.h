//===- Scopes.h - Stages and accesses as sets of bits -----------*- C++ -*-===//
//
// Numbers of the Vulkan specification (VkPipelineStageFlagBits2, VkAccessFlagBits2), copied to
// do without its headers. Flags that stand for several bits are expanded, so that two sets
// overlap exactly if they share a bit.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_AUDIT_SCOPES_H
#define WEIR_AUDIT_SCOPES_H

#include <cstdint>
#include <string>
#include <vector>

namespace weir::audit {

using Stages = uint64_t;
using Accesses = uint64_t;

// Stages and accesses of the commands that are tracked.
inline constexpr Stages stageIndirect = 0x2, stageCompute = 0x800, stageCopy = 0x100000000,
                        stageClear = 0x800000000;
inline constexpr Accesses accessIndirectRead = 0x1, accessUniformRead = 0x8,
                          accessTransferRead = 0x800, accessTransferWrite = 0x1000,
                          accessStorageRead = 0x200000000, accessStorageWrite = 0x400000000;

inline constexpr Stages allStages = ~Stages(0);
inline constexpr Accesses allAccesses = ~Accesses(0);

/// Returns all bits that a mask stands for, in the first or the second scope of a dependency.
Stages expandStages(Stages mask, bool isFirst);
Accesses expandAccesses(Accesses mask);

/// Returns the stages of `mask` that are not in `needed`, of those that Vulkan 1.0 can tell apart.
Stages findExcess(Stages mask, Stages needed);

/// Return Vulkan's names of the tracked stages or accesses in a mask: "COMPUTE_SHADER".
std::vector<std::string> nameStages(Stages mask);
std::vector<std::string> nameAccesses(Accesses mask);

} // namespace weir::audit

#endif // WEIR_AUDIT_SCOPES_H
