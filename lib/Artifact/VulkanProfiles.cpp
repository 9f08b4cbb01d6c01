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
  bool float64, int64, storage8, storage16;
  int64_t workgroupSize; ///< invocations
  int64_t slabTile;
  int64_t units;      ///< of a common device
  bool isCooperative; ///< whether subgroups multiply matrices of 16 x 16 x 16
  int64_t maxLoopTrips = noLoopLimit;
};
} // namespace

/// Every driver here has as many on each axis: it is Vulkan's own limit.
static constexpr int64_t maxGrid = 65535;
static constexpr int64_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
static constexpr int64_t fourGib = std::numeric_limits<uint32_t>::max();

// Mesa is its repository, https://gitlab.freedesktop.org/mesa/mesa, in 2026. Buffers: a driver that
// allows a million counts as 1024. Alignment: at least 16, that of the vectors which kernels load.
static constexpr Family families[] = {
    // RTX, Turing to Blackwell. Mesa, src/nouveau/vulkan/nvk_physical_device.c: subgroups of 32,
    // 1024
    // invocations, 48 KiB as NVIDIA's driver, buffers of 2 GiB, f64 and 64-bit integers. 46 SMs are
    // those of an RTX 4070 (NVIDIA Ada whitepaper). NVK lists matrices of 16 x 16 x 16
    // (https://github.com/KhronosGroup/VK-GL-CTS/issues/546).
    {"nvidia", 32, 1024, 48 * kib, 1024, 2 * gib, 16, true, true, true, true, 256, 8, 46, true},
    // Mesa, src/amd/vulkan/radv_physical_device.c: subgroups of 32 where asked for, 1024
    // invocations, buffers of 4 GiB, f64 and 64-bit integers; 64 KiB there, 32 KiB with AMD's own
    // driver. 40 and 60 compute units are those of an RX 6700 XT and an RX 7800 XT (AMD's product
    // pages). RADV has matrices of 16 x 16 x 16
    // from GFX11 on, which RDNA 3 is.
    {"rdna2", 32, 1024, 32 * kib, 1024, fourGib, 16, true, true, true, true, 256, 8, 40, false},
    {"rdna3", 32, 1024, 32 * kib, 1024, fourGib, 16, true, true, true, true, 256, 8, 60, true},
    // GCN. As RDNA there, but all subgroups have 64. 36 compute units are those of an RX 580 (AMD's
    // product page).
    {"gcn", 64, 1024, 32 * kib, 1024, fourGib, 16, true, true, true, true, 256, 8, 36, false},
    // Xe-LP to Xe2. Mesa, src/intel/vulkan/anv_physical_device.c: subgroups of 8 or 16 to 32, 1024
    // invocations, 64 KiB or more, buffers of 1 GiB or more; f64 is there on no Xe-HPG. 32 KiB with
    // Intel's driver for Windows. 32 Xe cores are those of an Arc A770 (Intel's product page).
    {"xe", 16, 1024, 32 * kib, 1024, gib, 16, false, true, true, true, 128, 8, 32, false},
    // Gen9 to Gen9.5. As Xe there, with f64 (Mesa, src/intel/dev/intel_device_info.c). Three
    // subslices are those of GT2 (Intel's Compute Architecture of Gen9).
    {"gen9", 16, 1024, 32 * kib, 1024, gib, 16, true, true, true, true, 128, 8, 3, false},
    // Mesa, as below, for the first of Adreno 6xx: 16-bit buffers, no 8-bit ones; two SP cores are
    // those of an Adreno 640 (src/freedreno/common/freedreno_devices.py).
    {"adreno6", 64, 1024, 32 * kib, 1024, 128 * mib, 64, false, false, false, true, 128, 4, 2,
     false},
    // Mesa, src/freedreno/vulkan/tu_device.cc and tu_common.h: subgroups of 64 and 128, 1024
    // invocations, 32 KiB, buffers of 128 MiB, no f64; with Qualcomm's driver buffers aligned to 64
    // and no 64-bit integers. The first Adreno 7xx have 4 units (Chips and Cheese, Snapdragon 8+
    // Gen 1's iGPU).
    {"adreno7", 64, 1024, 32 * kib, 1024, 128 * mib, 64, false, false, true, true, 128, 4, 4,
     false},
    // Mali-G57 and later. Mesa, src/panfrost/vulkan/panvk_vX_physical_device.c: subgroups of 16,
    // 32 KiB, buffers of 4 GiB, aligned to 16, no f64; 64 buffers and 512 invocations with Arm's
    // driver for a G77. A Mali-G715 has 7 to 9 cores (Arm's announcement).
    {"valhall", 16, 512, 32 * kib, 64, fourGib, 16, false, true, true, true, 64, 4, 8, false},
    // M1 and later by MoltenVK, MoltenVK/MoltenVK/GPUObjects/MVKDevice.mm: subgroups of 32, 31
    // buffers aligned to 16, 64-bit integers, no f64. Apple's Metal feature set tables: 1024
    // invocations, 32 KiB. Buffers of 1 GiB at least. An M1 has 8 cores.
    {"apple", 32, 1024, 32 * kib, 31, gib, 16, false, true, true, true, 256, 8, 8, false},
    // V3D 7.1, Raspberry Pi 5. Mesa, src/broadcom/vulkan/v3dv_device.c and v3dv_limits.h: subgroups
    // of 16, 256 invocations, 16 KiB, 8 buffers of 128 MiB or more, aligned to 32; integers of 32
    // bits alone, no f64.
    {"v3d", 16, 256, 16 * kib, 8, 128 * mib, 32, false, false, false, false, 64, 4, 1, false},
    // PowerVR of B-Series and later by Imagination's own driver, which alone has Vulkan 1.3.
    // Reports of vulkan.gpuinfo.org with 8 buffers have 16, and have WebGPU's other limits: 256
    // invocations, 16 KiB, buffers of 128 MiB, aligned to 256
    // (https://github.com/gpuweb/gpuweb/issues/3631). A Pixel 11 Pro has subgroups of 128
    // (https://github.com/ggml-org/llama.cpp/issues/28214), as a BXM-8-256
    // (https://github.com/azhirnov/cpu-gpu-arch); that all have is not public, so the code has no
    // operations of subgroups. Integers of 32 bits alone, for the same reason. A BXM-8-256 makes
    // 256 operations per clock, as one unit does.
    {"powervr", 1, 256, 16 * kib, 16, 128 * mib, 256, false, false, false, false, 128, 4, 1, false},
    // The required limits of Roadmap 2022 (Vulkan's specification, appendix Roadmap Milestones),
    // without the types that Vulkan leaves to devices.
    {"minimum", 4, 256, 16 * kib, 30, 128 * mib, 256, false, false, false, false, 64, 4, 1, false},
    // The required limits of Vulkan 1.3 itself (Vulkan's specification, Required Limits). PowerVR
    // by
    // Mesa has no more (src/imagination/vulkan/pvr_physical_device.c). A subgroup is one
    // invocation,
    // so its code has no operations of subgroups and runs with any size. Lavapipe ends longer
    // loops.
    {"vulkan13", 1, 128, 16 * kib, 4, 128 * mib, 256, false, false, false, false, 64, 4, 1, false,
     65535},
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
  profile.maxLoopTrips = family.maxLoopTrips;
  profile.float64 = family.float64;
  profile.int64 = family.int64;
  profile.storage8 = family.storage8;
  profile.storage16 = family.storage16;
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

std::vector<Profile> weir::makeVulkanProfiles() {
  std::vector<Profile> profiles;
  for (const Family &family : families)
    profiles.push_back(makeProfile(family));
  return profiles;
}
