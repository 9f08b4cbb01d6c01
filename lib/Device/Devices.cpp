//===- Devices.cpp - Figures of devices -----------------------------------===//
//
// Numbers with the document that each is from; docs/model.md has the documents in full. What no
// public document states has no number.
//
//===----------------------------------------------------------------------===//

#include "weir/Device/Device.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <array>

using namespace weir;
using namespace weir::model;

// Documents.
static constexpr const char *guide = "CUDA C++ Programming Guide, Compute Capabilities",
                            *a100Paper = "NVIDIA A100 whitepaper",
                            *h100Paper = "NVIDIA H100 whitepaper",
                            *h200Sheet = "NVIDIA H200 datasheet",
                            *adaPaper = "NVIDIA Ada whitepaper", *l4Sheet = "NVIDIA L4 datasheet",
                            *ga102Paper = "NVIDIA GA102 whitepaper",
                            *a6000Sheet = "NVIDIA RTX A6000 datasheet",
                            *dissecting = "arXiv 2402.13499, table of latencies",
                            *tensorPaper = "arXiv 2206.02874, m16n8k16",
                            *survey = "PMC10448217, table 3",
                            *copy100 = "a copy of 1 GiB on an H100 SXM: 3024 of 3352 GB/s",
                            *likeH100 = "assumed to be that of an H100",
                            *rdnaGuide = "AMD RDNA 3 ISA guide",
                            *rdnaSheet = "AMD RX 7900 XTX product page",
                            *rdnaChips = "Chips and Cheese, Microbenchmarking RDNA 3",
                            *xeSheet = "Intel Arc A770 product page",
                            *xeGuide = "Intel oneAPI GPU Optimization Guide, Xe-HPG",
                            *adrenoChips = "Chips and Cheese, Snapdragon 8+ Gen 1's iGPU",
                            *snapdragon = "Snapdragon 8+ Gen 1 product brief",
                            *valhall = "Arm, The Valhall Shader Core",
                            *maliG715 = "Arm Mali-G715 announcement",
                            *appleBench = "philipturner/metal-benchmarks",
                            *appleSheet = "Apple M1 Max announcement",
                            *metal = "Metal feature set tables", *info = "vulkan.gpuinfo.org",
                            *measured = "measured: the shortest kernels on an H200, 3.0 us",
                            *assumed = "assumed";

static constexpr double kib = 1024, mib = 1024 * 1024, giga = 1e9;

/// Returns what devices of one compute capability share.
static constexpr Device makeCuda(const char *name, const char *title, int sm) {
  Device device;
  device.name = name;
  device.title = title;
  device.target = "cuda";
  device.sm = sm;
  device.isShared = true;
  const bool isLarge = sm == 80 || sm == 90;
  device.minSubgroup = device.maxSubgroup = {32, guide};
  device.maxSubgroups = {isLarge ? 64 : 48, guide};
  device.maxWorkgroups = {isLarge ? 32 : sm == 89 ? 24 : 16, guide};
  device.registers = {65536, guide};
  device.registerStep = {256, guide};
  device.maxRegisters = {255, guide};
  device.shared = {(sm == 80 ? 164 : sm == 90 ? 228 : 100) * kib, guide};
  device.sharedMax = {(sm == 80 ? 163 : sm == 90 ? 227 : 99) * kib, guide};
  device.sharedSystem = {kib, guide};
  device.sharedStep = {128, guide};
  device.l1 = {(sm == 80 ? 192 : sm == 90 ? 256 : 128) * kib, guide};
  device.issue = {4, guide};
  device.fma = {sm == 80 ? 64 : 128, guide};
  device.integer = {64, guide};
  device.fma64 = {sm == 80 ? 32 : sm == 90 ? 64 : 2, guide};
  device.special = {16, guide};
  device.shuffle = {32, guide};
  device.addresses = {isLarge ? 32 : 16, isLarge ? a100Paper : ga102Paper};
  device.l1Bytes = {128, guide};
  device.aluLatency = {4, survey};
  device.specialLatency = {18, assumed};
  device.shuffleLatency = {23, assumed};
  device.matrixLatency = {25, tensorPaper};
  if (sm == 80) {
    device.l1Latency = {38, dissecting};
    device.sharedLatency = {29, dissecting};
    device.l2Latency = {262, dissecting};
    device.dramLatency = {466, dissecting};
  } else if (sm == 90) {
    device.l1Latency = {41, dissecting};
    device.sharedLatency = {29, dissecting};
    device.l2Latency = {263, dissecting};
    device.dramLatency = {479, dissecting};
  } else {
    device.l1Latency = {43, dissecting};
    device.sharedLatency = {30, dissecting};
    device.l2Latency = {273, dissecting};
    device.dramLatency = {542, dissecting};
  }
  device.dramShare = {0.90, sm == 90 ? copy100 : likeH100};
  device.launch = {1e-6, assumed};
  return device;
}

static constexpr Device makeA100(const char *name, const char *title, double bandwidth) {
  Device device = makeCuda(name, title, 80);
  device.units = {108, a100Paper};
  device.clock = {1.41 * giga, a100Paper};
  device.l2 = {40 * mib, a100Paper};
  device.l2Bytes = {5120, a100Paper};
  device.dramBytes = {bandwidth * giga, a100Paper};
  device.matrix = {2048, a100Paper};
  device.matrixTf32 = {1024, a100Paper};
  return device;
}

static constexpr Device makeHopper(const char *name, const char *title, double bandwidth,
                                   const char *source) {
  Device device = makeCuda(name, title, 90);
  device.units = {132, h100Paper};
  // The clock at which the whitepaper states the flops of matrix instructions.
  device.clock = {1.83 * giga, h100Paper};
  device.l2 = {50 * mib, h100Paper};
  device.l2Bytes = {5120, survey};
  device.dramBytes = {bandwidth * giga, source};
  device.matrix = {4096, h100Paper};
  device.matrixTf32 = {2048, h100Paper};
  device.timedLaunch = {2.8e-6, measured};
  return device;
}

static constexpr Device makeL4() {
  Device device = makeCuda("l4", "NVIDIA L4", 89);
  device.units = {58, l4Sheet};
  device.clock = {2.04 * giga, l4Sheet};
  device.l2 = {48 * mib, l4Sheet};
  device.dramBytes = {300 * giga, l4Sheet};
  device.matrix = {1024, l4Sheet};
  device.matrixTf32 = {512, l4Sheet};
  return device;
}

static constexpr Device make4090() {
  Device device = makeCuda("rtx4090", "NVIDIA GeForce RTX 4090", 89);
  device.units = {128, adaPaper};
  device.clock = {2.52 * giga, adaPaper};
  device.l2 = {72 * mib, adaPaper};
  device.dramBytes = {1008 * giga, adaPaper};
  device.matrix = {512, adaPaper};
  device.matrixTf32 = {256, adaPaper};
  return device;
}

static constexpr Device makeA6000() {
  Device device = makeCuda("a6000", "NVIDIA RTX A6000", 86);
  device.units = {84, a6000Sheet};
  device.clock = {1.80 * giga, a6000Sheet};
  device.l2 = {6 * mib, ga102Paper};
  device.dramBytes = {768 * giga, a6000Sheet};
  device.matrix = {1024, ga102Paper};
  device.matrixTf32 = {512, ga102Paper};
  return device;
}

static constexpr Device makeRdna3() {
  Device device;
  device.name = "rx7900xtx";
  device.title = "AMD Radeon RX 7900 XTX (RDNA 3)";
  device.target = "vulkan";
  device.units = {96, rdnaSheet};
  device.clock = {2.5 * giga, rdnaSheet};
  device.minSubgroup = {32, rdnaGuide};
  device.maxSubgroup = {64, rdnaGuide};
  device.maxSubgroups = {32, rdnaGuide}; // 16 on each of two SIMDs
  device.registers = {98304, rdnaGuide}; // 1536 of 32 lanes on each of two SIMDs
  device.maxRegisters = {256, rdnaGuide};
  device.shared = {64 * kib, rdnaGuide};
  device.sharedMax = {64 * kib, rdnaGuide};
  device.l1 = {32 * kib, rdnaChips};
  device.l2 = {6 * mib, rdnaChips};
  device.issue = {2, rdnaGuide};
  device.fma = {64, rdnaGuide}; // 128 where two instructions pair
  device.integer = {64, rdnaGuide};
  device.special = {16, rdnaGuide};
  device.l1Bytes = {128, rdnaGuide};
  device.dramBytes = {960 * giga, rdnaSheet};
  device.matrix = {512, rdnaSheet};
  return device;
}

static constexpr Device makeXe() {
  Device device;
  device.name = "a770";
  device.title = "Intel Arc A770 16 GB (Xe-HPG)";
  device.target = "vulkan";
  device.isShared = true;
  device.units = {32, xeSheet};
  device.clock = {2.1 * giga, xeSheet};
  device.minSubgroup = {8, xeGuide};
  device.maxSubgroup = {32, xeGuide};
  device.maxSubgroups = {128, xeGuide}; // 8 threads on each of 16 engines
  device.shared = {128 * kib, xeGuide};
  device.sharedMax = {64 * kib, xeGuide};
  device.l1 = {192 * kib, xeGuide};
  device.l2 = {16 * mib, xeGuide};
  device.issue = {16, xeGuide};
  device.fma = {128, xeGuide};
  device.integer = {128, xeGuide};
  device.special = {32, xeGuide};
  device.dramBytes = {560 * giga, xeSheet};
  device.matrix = {2048, xeGuide};
  return device;
}

static constexpr Device makeAdreno() {
  Device device;
  device.name = "adreno730";
  device.title = "Qualcomm Adreno 730 (Snapdragon 8+ Gen 1)";
  device.target = "vulkan";
  device.clock = {0.9 * giga, adrenoChips};
  device.minSubgroup = {64, adrenoChips};
  device.maxSubgroup = {128, adrenoChips};
  device.sharedMax = {32 * kib, info};
  device.dramBytes = {51.2 * giga, snapdragon};
  return device;
}

static constexpr Device makeMali() {
  Device device;
  device.name = "mali-g715";
  device.title = "Arm Mali-G715";
  device.target = "vulkan";
  device.minSubgroup = device.maxSubgroup = {16, valhall};
  device.sharedMax = {32 * kib, info};
  device.l1 = {16 * kib, valhall};
  device.fma = {128, maliG715};
  device.l1Bytes = {64, valhall};
  return device;
}

static constexpr Device makeApple() {
  Device device;
  device.name = "m1max";
  device.title = "Apple M1 Max, 32 cores";
  device.target = "vulkan";
  device.units = {32, appleSheet};
  device.clock = {1.296 * giga, appleBench};
  device.minSubgroup = device.maxSubgroup = {32, metal};
  device.registers = {53248, appleBench}; // 208 KiB
  device.shared = {60 * kib, appleBench};
  device.sharedMax = {32 * kib, metal};
  device.l1 = {8 * kib, appleBench};
  device.l2 = {0.5 * mib, appleBench};
  device.issue = {4, appleBench};
  device.fma = {128, appleBench};
  device.integer = {128, appleBench};
  device.special = {32, appleBench};
  device.dramBytes = {400 * giga, appleSheet};
  return device;
}

static constexpr std::array devices = {
    makeA100("a100", "NVIDIA A100 SXM 80 GB", 2039),
    makeA100("a100-40", "NVIDIA A100 SXM 40 GB", 1555),
    makeHopper("h100", "NVIDIA H100 SXM 80 GB", 3352, h100Paper),
    makeHopper("h200", "NVIDIA H200 SXM 141 GB", 4800, h200Sheet),
    makeL4(),
    make4090(),
    makeA6000(),
    makeRdna3(),
    makeXe(),
    makeAdreno(),
    makeMali(),
    makeApple()};

std::span<const Device> model::getDevices() { return devices; }

const Device &model::getDevice(const std::string &name) {
  std::string names;
  for (const Device &device : devices) {
    if (device.name == name)
      return device;
    names += (names.empty() ? "" : ", ") + std::string(device.name);
  }
  throw Error("no model of a device is called \"" + name + "\"; there are " + names);
}

const Device *model::findDevice(int64_t sm) {
  auto found = std::find_if(devices.begin(), devices.end(),
                            [&](const Device &device) { return sm != 0 && device.sm == sm; });
  return found == devices.end() ? nullptr : &*found;
}

std::vector<NamedFigure> model::getFigures(const Device &device) {
  return {{"units", "", &device.units},
          {"clock", "Hz", &device.clock},
          {"min_subgroup", "invocations", &device.minSubgroup},
          {"max_subgroup", "invocations", &device.maxSubgroup},
          {"max_subgroups", "a unit", &device.maxSubgroups},
          {"max_workgroups", "a unit", &device.maxWorkgroups},
          {"registers", "a unit", &device.registers},
          {"register_step", "a subgroup", &device.registerStep},
          {"max_registers", "an invocation", &device.maxRegisters},
          {"shared", "bytes a unit", &device.shared},
          {"shared_max", "bytes a workgroup", &device.sharedMax},
          {"shared_system", "bytes a workgroup", &device.sharedSystem},
          {"shared_step", "bytes", &device.sharedStep},
          {"l1", "bytes a unit", &device.l1},
          {"l2", "bytes", &device.l2},
          {"issue", "instructions a clock and unit", &device.issue},
          {"fma", "lanes a clock and unit", &device.fma},
          {"integer", "lanes a clock and unit", &device.integer},
          {"fma64", "lanes a clock and unit", &device.fma64},
          {"special", "lanes a clock and unit", &device.special},
          {"shuffle", "lanes a clock and unit", &device.shuffle},
          {"matrix", "flops of bf16 a clock and unit", &device.matrix},
          {"matrix_tf32", "flops of tf32 a clock and unit", &device.matrixTf32},
          {"addresses", "lanes a clock and unit", &device.addresses},
          {"l1_bytes", "bytes a clock and unit", &device.l1Bytes},
          {"l2_bytes", "bytes a clock", &device.l2Bytes},
          {"dram_bytes", "bytes a second", &device.dramBytes},
          {"dram_share", "of them for a copy", &device.dramShare},
          {"l1_latency", "clocks", &device.l1Latency},
          {"shared_latency", "clocks", &device.sharedLatency},
          {"l2_latency", "clocks", &device.l2Latency},
          {"dram_latency", "clocks", &device.dramLatency},
          {"alu_latency", "clocks", &device.aluLatency},
          {"special_latency", "clocks", &device.specialLatency},
          {"shuffle_latency", "clocks", &device.shuffleLatency},
          {"matrix_latency", "clocks", &device.matrixLatency},
          {"launch", "seconds", &device.launch},
          {"timed_launch", "seconds", &device.timedLaunch}};
}
