//===- VulkanProfiles.cpp - Profiles of families of Vulkan GPUs -----------===//
//
// Limits that all devices of a family have, with the document that each is from; where drivers of
// one family differ, the smaller one. Habits follow those of CUDA, as far as a family's registers
// and subgroups allow; none were measured. docs/artifact.md has a table.
//
//===----------------------------------------------------------------------===//

#include "VulkanProfiles.h"

#include <limits>

using namespace weir;

namespace {
/// The limits that devices of a family have in common. Sizes are in bytes, unless it says
/// otherwise.
struct Family {
  const char *name;
  int64_t subgroupSize;     ///< invocations
  int64_t maxWorkgroupSize; ///< invocations
  int64_t workgroupMemory;
  int64_t storageBuffersPerStage; ///< buffers
  int64_t bytesPerBinding;
  int64_t offsetAlignment;
  bool float64, int64;
  int64_t workgroupSize; ///< invocations
  int64_t slabTile;
  int64_t units;      ///< of a common device
  bool isCooperative; ///< whether subgroups multiply matrices of 16 x 16 x 16
};
} // namespace

/// Every driver here has as many on each axis: it is Vulkan's own limit.
static constexpr int64_t maxGrid = 65535;
static constexpr int64_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
static constexpr int64_t fourGib = std::numeric_limits<uint32_t>::max();

// Mesa is its repository, https://gitlab.freedesktop.org/mesa/mesa, in 2026. Buffers: a driver that
// allows a million counts as 1024. Alignment: at least 16, that of the vectors which kernels load.
static constexpr Family families[] = {
    // RTX, Turing and later. Mesa, src/nouveau/vulkan/nvk_physical_device.c: subgroups of 32, 1024
    // invocations, 48 KiB as NVIDIA's driver, buffers of 2 GiB, f64 and 64-bit integers. 46 SMs are
    // those of an RTX 4070 (NVIDIA Ada whitepaper). NVK lists matrices of 16 x 16 x 16
    // (https://github.com/KhronosGroup/VK-GL-CTS/issues/546).
    {"nvidia", 32, 1024, 48 * kib, 1024, 2 * gib, 16, true, true, 256, 8, 46, true},
    // Mesa, src/amd/vulkan/radv_physical_device.c: subgroups of 32 where asked for, 1024
    // invocations, buffers of 4 GiB, f64 and 64-bit integers; 64 KiB there, 32 KiB with AMD's own
    // driver. 40 and 60 compute units are those of an RX 6700 XT and an RX 7800 XT (AMD's product
    // pages). RADV has matrices of 16 x 16 x 16
    // from GFX11 on, which RDNA 3 is.
    {"rdna2", 32, 1024, 32 * kib, 1024, fourGib, 16, true, true, 256, 8, 40, false},
    {"rdna3", 32, 1024, 32 * kib, 1024, fourGib, 16, true, true, 256, 8, 60, true},
    // Xe-LP to Xe2. Mesa, src/intel/vulkan/anv_physical_device.c: subgroups of 8 or 16 to 32, 1024
    // invocations, 64 KiB or more, buffers of 1 GiB or more; f64 is there on no Xe-HPG. 32 KiB with
    // Intel's driver for Windows. 32 Xe cores are those of an Arc A770 (Intel's product page).
    {"xe", 16, 1024, 32 * kib, 1024, gib, 16, false, true, 128, 8, 32, false},
    // Mesa, src/freedreno/vulkan/tu_device.cc and tu_common.h: subgroups of 64 and 128, 1024
    // invocations, 32 KiB, buffers of 128 MiB, 64-bit integers, no f64; buffers aligned to 64 with
    // Qualcomm's driver. It lacks 64-bit integers, which only graphs with such tensors need. The
    // first Adreno 7xx have 4 units (Chips and Cheese, Snapdragon 8+ Gen 1's iGPU).
    {"adreno7", 64, 1024, 32 * kib, 1024, 128 * mib, 64, false, true, 128, 4, 4, false},
    // Mali-G57 and later. Mesa, src/panfrost/vulkan/panvk_vX_physical_device.c: subgroups of 16,
    // 32 KiB, buffers of 4 GiB, aligned to 16, no f64; 64 buffers and 512 invocations with Arm's
    // driver for a G77. A Mali-G715 has 7 to 9 cores (Arm's announcement).
    {"valhall", 16, 512, 32 * kib, 64, fourGib, 16, false, true, 64, 4, 8, false},
    // M1 and later by MoltenVK, MoltenVK/MoltenVK/GPUObjects/MVKDevice.mm: subgroups of 32, 31
    // buffers aligned to 16, 64-bit integers, no f64. Apple's Metal feature set tables: 1024
    // invocations, 32 KiB. Buffers of 1 GiB at least. An M1 has 8 cores.
    {"apple", 32, 1024, 32 * kib, 31, gib, 16, false, true, 256, 8, 8, false},
};

static Profile makeProfile(const Family &family) {
  Profile profile;
  profile.name = family.name;
  profile.subgroupSize = family.subgroupSize;
  profile.maxWorkgroupSize = family.maxWorkgroupSize;
  profile.workgroupMemory = family.workgroupMemory;
  profile.maxGrid.fill(maxGrid);
  profile.storageBuffersPerStage = family.storageBuffersPerStage;
  profile.bytesPerBinding = family.bytesPerBinding;
  profile.offsetAlignment = family.offsetAlignment;
  profile.maxLoopTrips = noLoopLimit;
  profile.float64 = family.float64;
  profile.int64 = family.int64;
  profile.words64 = false;
  profile.rowMapping = RowMapping::Workgroup;
  profile.workgroupSize = family.workgroupSize;
  profile.privateRowBytes = 128;
  profile.elementsPerInvocation = 4;
  profile.contractionRows = 8;
  profile.contractionSlab = 8;
  profile.slabTile = family.slabTile;
  if (family.isCooperative)
    profile.cooperative = {16, 16, 16};
  profile.columnParts = 512;
  profile.units = family.units;
  profile.unrollPrivate = true;
  profile.attentionKeys = 512;
  return profile;
}

/// Returns the profile without the types that Vulkan leaves to devices. Its sizes are the required
/// limits of Roadmap 2022 (Vulkan's specification, appendix Roadmap Milestones): Vulkan's own allow
/// four buffers and subgroups of one invocation, too little for a kernel and a shuffle.
static Profile makeMinimum() {
  Profile profile =
      makeProfile({"minimum", 4, 256, 16 * kib, 30, 128 * mib, 256, false, false, 64, 4, 1, false});
  profile.storage8 = false;
  profile.storage16 = false;
  return profile;
}

std::vector<Profile> weir::makeVulkanProfiles() {
  std::vector<Profile> profiles;
  for (const Family &family : families)
    profiles.push_back(makeProfile(family));
  profiles.push_back(makeMinimum());
  return profiles;
}
