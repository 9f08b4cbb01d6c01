//===- CpuDevice.h - This machine's processor as a device -------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_CPUDEVICE_H
#define WEIR_LIB_RUNTIME_CPUDEVICE_H

#include "Device.h"
#include "ThreadPool.h"

namespace weir::runtime {

/// Bytes of the host, aligned as the profile says unless they are the caller's.
struct CpuMemory : Memory {
  ~CpuMemory() override;
  char *address = nullptr;
  bool isCallers = false;
};

/// Returns the first byte of a storage of a CpuDevice; null when it has none.
inline char *getHostBytes(const Storage &storage) {
  return storage.memory ? static_cast<const CpuMemory &>(*storage.memory).address : nullptr;
}

/// The processor that the runtime runs on. A run is done when `submit` returns, by the thread that
/// calls and those of a pool.
class CpuDevice : public Device {
public:
  /// Returns 1. Errors: `Error` on a processor that no profile is for.
  static size_t count();
  /// Errors: `BadArgument` when `index` is not 0, `Error` as `count`, and where threads cannot
  /// start.
  static std::shared_ptr<Device> open(size_t index);
  /// Opens the processor as if `isa` were its best instruction set. Errors: as `open`, and
  /// `BadArgument` when it lacks `isa`.
  static std::shared_ptr<Device> openWith(size_t index, const std::string &isa);

  const std::string &getName() const override { return name; }
  bool isGpu() const override { return false; }
  Profile getProfile() const override { return profile; }
  bool hasTimestamps() const override { return true; }
  Storage allocate(int64_t bytes, Placement placement) override;
  Storage adopt(void *data, int64_t bytes) override;
  void write(Storage &storage, int64_t offset, const void *data, int64_t bytes) override;
  void read(const Storage &storage, int64_t offset, void *data, int64_t bytes) override;
  void *getHostAddress(const Storage &storage) const override { return getHostBytes(storage); }
  void wait() override {}
  void waitFor(uint64_t) override {}
  void waitNoThrow() noexcept override {}
  std::unique_ptr<Program> load(const Artifact &artifact) override;

  ThreadPool &getPool() { return pool; }

  /// Whether this device runs code for `isa`, such as "x86-64-v3".
  bool hasIsa(const std::string &isa) const;

private:
  explicit CpuDevice(const std::string &isa);

  std::string name;
  Profile profile;
  ThreadPool pool;
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_CPUDEVICE_H
