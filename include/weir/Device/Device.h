//===- Device.h - Figures of devices, each with its source ------*- C++ -*-===//

#ifndef WEIR_DEVICE_DEVICE_H
#define WEIR_DEVICE_DEVICE_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::model {

/// A number and where it is from. Without a number, the source says why none is known.
struct Figure {
  std::optional<double> number;
  const char *source = "not published";

  explicit operator bool() const { return number.has_value(); }
  double operator*() const { return *number; }
  double orZero() const { return number.value_or(0); }
};

/// A device as the model sees it. A *unit* is what holds workgroups: an SM, a compute unit, an Xe
/// core, a shader core.
struct Device {
  const char *name = "";   ///< "h100"
  const char *title = "";  ///< "NVIDIA H100 SXM 80 GB"
  const char *target = ""; ///< "cuda" or "vulkan"
  int sm = 0;              ///< cuda: the compute capability, 90
  bool isShared = false;   ///< whether L1 and workgroup memory are one

  Figure units, clock;                    ///< clock: Hz
  Figure minSubgroup, maxSubgroup;        ///< invocations
  Figure maxSubgroups, maxWorkgroups;     ///< resident in a unit
  Figure registers, registerStep;         ///< 32-bit, of a unit; those of a subgroup are a multiple
  Figure maxRegisters;                    ///< of an invocation
  Figure shared, sharedMax, sharedSystem; ///< bytes: of a unit, of a workgroup, taken by the system
  Figure sharedStep;                      ///< bytes that a workgroup's are a multiple of
  Figure l1, l2;                          ///< bytes: of a unit with its shared memory, of all
  Figure issue;                           ///< instructions of subgroups, a clock and unit
  Figure fma, integer, fma64, special;    ///< lanes, a clock and unit
  Figure shuffle;                         ///< lanes, a clock and unit
  Figure matrix;                          ///< flops of bf16 with f32 sums, a clock and unit
  Figure matrixTf32;                      ///< flops of tf32, a clock and unit
  Figure addresses;                       ///< lanes of loads and stores, a clock and unit
  Figure l1Bytes;                         ///< bytes a clock and unit, of L1 and of workgroup memory
  Figure l2Bytes;                         ///< bytes a clock, of all
  Figure dramBytes, dramShare;            ///< bytes a second; the share of them that a copy gets
  Figure l1Latency, sharedLatency, l2Latency, dramLatency;          ///< clocks
  Figure aluLatency, specialLatency, shuffleLatency, matrixLatency; ///< clocks
  Figure launch;      ///< seconds between two kernels of a recorded list
  Figure timedLaunch; ///< seconds that an empty kernel takes by the events around it
};

/// Returns all devices.
std::span<const Device> getDevices();

/// Returns the device of that name.
/// Errors: `Error` that lists the names.
const Device &getDevice(const std::string &name);

/// Returns the first GPU of a compute capability, or null.
const Device *findDevice(int64_t sm);

/// A figure, its name and its unit.
struct NamedFigure {
  const char *name, *unit;
  const Figure *figure;
};

/// Returns all figures of a device.
std::vector<NamedFigure> getFigures(const Device &device);

} // namespace weir::model

#endif // WEIR_DEVICE_DEVICE_H
