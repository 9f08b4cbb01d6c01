//===- Device.h - A device, its memory and its runs -------------*- C++ -*-===//
//
// Host access to a storage waits for the runs that use it. A submission is ordered after all
// earlier ones.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_DEVICE_H
#define WEIR_LIB_RUNTIME_DEVICE_H

#include "weir/Artifact/Artifact.h"
#include "weir/weir.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace weir::runtime {

/// An error of the caller: WEIR_BAD_ARGUMENT in the ABI. Every other `Error` is WEIR_FAILED.
class BadArgument : public Error {
public:
  using Error::Error;
};

/// The device's objects behind a storage.
class Memory {
public:
  virtual ~Memory() = default;
};

/// Bytes of a device. `memory` is null if there are no bytes.
struct Storage {
  int64_t bytes = 0;
  std::unique_ptr<Memory> memory;
  mutable uint64_t lastUse = 0; ///< index of the last submission that uses it
};

/// The memory that holds the bytes of a storage. Kernels read and write all of them.
enum class Placement {
  Device, ///< where kernels are fastest
  Shared, ///< there, and in memory that the host sees if that costs the device nothing
  Host    ///< in the host's memory
};

/// A copy between two storages of the same size.
struct StorageCopy {
  const Storage *from, *to;
};

/// A way to record a plan.
enum class RecordingKind {
  Replay,  ///< as planned
  Profiled ///< on one queue, one dispatch after the other, each timed
};

/// An object that is told when a buffer is destroyed, to drop recordings that use it.
class StorageUser {
public:
  virtual ~StorageUser() = default;
  virtual void forget(const Storage &storage) = 0;
};

/// One entry's commands on one set of buffers. It may be submitted repeatedly, also while an
/// earlier run is in flight.
class Recording {
public:
  virtual ~Recording() = default;

  /// Submits one run without waiting; with `isTimed`, its time can be read. Errors: `Error`.
  virtual void submit(bool isTimed = false) = 0;

  /// Submits `times` runs, one ordered after the other. Errors: `Error`.
  virtual void submitTimes(int64_t times) {
    for (int64_t run = 0; run < times; ++run)
      submit();
  }

  /// Returns the time between the first and the last command of the latest submission; negative
  /// if the device has no timestamps. Needs: the submission was timed and has ended.
  virtual double readNanoseconds() const = 0;

  /// Returns the begin and end of each dispatch of the latest submission of a profiled
  /// recording, in nanoseconds since the first command. Needs: it was timed and has ended.
  virtual std::vector<weir_dispatch_time> readDispatchTimes() const = 0;
};

class Program;

class Device : public std::enable_shared_from_this<Device> {
public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  virtual const std::string &getName() const = 0;
  /// Whether kernels run elsewhere than on the processor.
  virtual bool isGpu() const = 0;
  /// Returns the target profile that fits the device: its limits, and habits by its type.
  virtual Profile getProfile() const = 0;
  virtual bool hasTimestamps() const = 0;

  /// Allocates memory for kernels and copies.
  virtual Storage allocate(int64_t bytes, Placement placement) = 0;

  /// Makes a storage of bytes of the caller, which outlive it. Errors: `BadArgument` where the
  /// device has memory of its own.
  virtual Storage adopt(void *, int64_t) {
    throw BadArgument("the device '" + getName() +
                      "' has memory of its own; create a buffer and write to it");
  }

  /// Waits for the submissions that use the storage, then copies. The range lies in it.
  virtual void write(Storage &storage, int64_t offset, const void *data, int64_t bytes) = 0;
  virtual void read(const Storage &storage, int64_t offset, void *data, int64_t bytes) = 0;

  /// Returns the host address of the storage's bytes, or null if the host cannot see them.
  virtual void *getHostAddress(const Storage &storage) const = 0;

  /// Waits for everything submitted. Errors: `Error`.
  virtual void wait() = 0;
  /// Waits for a submission and those before it. Errors: `Error`.
  virtual void waitFor(uint64_t submission) = 0;
  /// Does as `wait`, for destructors: a lost device counts as idle.
  virtual void waitNoThrow() noexcept = 0;

  /// Builds all kernels and uploads the constants. Errors: `BadArgument` when the artifact has
  /// no code for the device, or needs features that it lacks (all are listed); `Error` when the
  /// driver fails.
  virtual std::unique_ptr<Program> load(const Artifact &artifact) = 0;

  /// Locked by every call of the ABI that uses this device: its handles may be used from
  /// different threads.
  std::mutex mutex;
  std::vector<StorageUser *> users;
  uint64_t submissions = 0; ///< index of the last one, counted from 1
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_DEVICE_H
