//===- Device.h - What programs and the C ABI ask of a device ---*- C++ -*-===//
//
// Host access to a storage waits for the runs that use it; what is submitted orders
// itself after what came before.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_RUNTIME_DEVICE_H
#define WEIR_RUNTIME_DEVICE_H

#include "weir/Artifact/Artifact.h"
#include "weir/weir.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace weir::runtime {

/// A mistake of the caller's: WEIR_BAD_ARGUMENT at the ABI, where every other
/// `Error` is WEIR_FAILED.
class BadArgument : public Error {
public:
  using Error::Error;
};

/// A device's own objects behind some bytes.
class Memory {
public:
  virtual ~Memory() = default;
};

/// Bytes of a device. No objects when there are none.
struct Storage {
  int64_t bytes = 0;
  std::unique_ptr<Memory> memory;
  mutable uint64_t lastUse = 0; ///< number of the last submission that uses it
};

/// Two storages of the same bytes; the second receives those of the first.
struct StorageCopy {
  const Storage *from, *to;
};

/// How a plan is recorded.
enum class RecordingKind {
  Replay,  ///< as the plan has it
  Profiled ///< on one queue, dispatches one after the other, each with its time
};

/// Told when a buffer goes away, so that recordings that name it do too.
class StorageUser {
public:
  virtual ~StorageUser() = default;
  virtual void forget(const Storage &storage) = 0;
};

/// One entry's commands on one set of buffers, ready to run again and again, also
/// while an earlier run of them is under way.
class Recording {
public:
  virtual ~Recording() = default;

  /// Submits one run without waiting. Errors: `Error`.
  virtual void submit() = 0;

  /// Time between the first and the last command of the latest submission,
  /// which must have ended; negative when the device cannot tell.
  virtual double readNanoseconds() const = 0;

  /// Of the latest submission of a profiled recording, which must have ended: when
  /// each dispatch ran, in nanoseconds since the first command.
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
  /// The target profile that fits the device: its limits, and habits by its type.
  virtual Profile getProfile() const = 0;
  virtual bool hasTimestamps() const = 0;

  /// Memory that kernels and copies use. `hostAccess` asks for memory that the
  /// host can see where that costs the device nothing.
  virtual Storage allocate(int64_t bytes, bool hostAccess) = 0;

  /// Waits for the submissions that use the storage, then copies. The range lies in it.
  virtual void write(Storage &storage, int64_t offset, const void *data, int64_t bytes) = 0;
  virtual void read(const Storage &storage, int64_t offset, void *data, int64_t bytes) = 0;

  /// Returns where the host sees the storage's bytes, or null where it does not.
  virtual void *getHostAddress(const Storage &storage) const = 0;

  /// Waits for everything submitted. Errors: `Error`.
  virtual void wait() = 0;
  /// Waits for a submission and those before it. Errors: `Error`.
  virtual void waitFor(uint64_t submission) = 0;
  /// As `wait`, for destructors: a lost device is idle, too.
  virtual void waitNoThrow() noexcept = 0;

  /// Builds all kernels and uploads the constants.
  /// Errors: `BadArgument` when the artifact has no code for the device or needs
  ///         what it lacks (all of it is listed), `Error` when the driver fails.
  virtual std::unique_ptr<Program> load(const Artifact &artifact) = 0;

  /// Held by every call of the ABI that touches this device: handles of one
  /// device may be used from different threads.
  std::mutex mutex;
  std::vector<StorageUser *> users;
  uint64_t submissions = 0; ///< number of the last one; counted from 1
};

} // namespace weir::runtime

#endif // WEIR_RUNTIME_DEVICE_H
