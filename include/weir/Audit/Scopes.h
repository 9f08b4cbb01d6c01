//===- Scopes.h - Stages and accesses as sets of bits -----------*- C++ -*-===//
//
// Numbers of the Vulkan specification (VkPipelineStageFlagBits2, VkAccessFlagBits2), taken
// over without its headers. What stands for several bits is spelled out, so that two
// sets meet just where they share a bit.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_AUDIT_SCOPES_H
#define WEIR_AUDIT_SCOPES_H

#include <cstdint>

namespace weir::audit {

using Stages = uint64_t;
using Accesses = uint64_t;

// Where the commands that are looked at touch memory.
inline constexpr Stages stageIndirect = 0x2, stageCompute = 0x800, stageCopy = 0x100000000,
                        stageClear = 0x800000000;
inline constexpr Accesses accessIndirectRead = 0x1, accessUniformRead = 0x8,
                          accessTransferRead = 0x800, accessTransferWrite = 0x1000,
                          accessStorageRead = 0x200000000, accessStorageWrite = 0x400000000;

inline constexpr Stages allStages = ~Stages(0);
inline constexpr Accesses allAccesses = ~Accesses(0);

/// The bits that a mask stands for, in the first scope of a dependency or in its second.
Stages expandStages(Stages mask, bool isFirst);
Accesses expandAccesses(Accesses mask);

} // namespace weir::audit

#endif // WEIR_AUDIT_SCOPES_H
