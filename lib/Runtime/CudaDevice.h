//===- CudaDevice.h - A CUDA device, its memory, its stream -----*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_CUDADEVICE_H
#define WEIR_LIB_RUNTIME_CUDADEVICE_H

#include "CudaApi.h"
#include "Device.h"

namespace weir::runtime {

/// Memory of the device, or of the host, which then has `hostBytes`.
struct CudaMemory : Memory {
  CudaAddress address = 0; ///< for kernels
  CudaOwned<CudaAddress> deviceBytes;
  CudaOwned<void *> hostBytes;
};

/// Returns the address of a storage of a CudaDevice; 0 if it has no bytes.
inline CudaAddress getAddress(const Storage &storage) {
  return storage.memory ? static_cast<const CudaMemory &>(*storage.memory).address : 0;
}

/// A CUDA device. One stream in its primary context runs everything in order.
class CudaDevice : public Device {
public:
  /// Returns the number of devices of compute capability 8.0 and later. Errors: `Error` when
  /// there is none, saying why.
  static size_t count();
  /// Opens a device. Errors: `BadArgument` when `index` is out of range, else as `count`.
  static std::shared_ptr<Device> open(size_t index);

  ~CudaDevice() override;

  const std::string &getName() const override { return name; }
  bool isGpu() const override { return true; }
  Profile getProfile() const override;
  bool hasTimestamps() const override { return true; }
  Storage allocate(int64_t bytes, Placement placement) override;
  void write(Storage &storage, int64_t offset, const void *data, int64_t bytes) override;
  void read(const Storage &storage, int64_t offset, void *data, int64_t bytes) override;
  void *getHostAddress(const Storage &storage) const override {
    return storage.memory ? static_cast<const CudaMemory &>(*storage.memory).hostBytes.get()
                          : nullptr;
  }
  void wait() override;
  void waitFor(uint64_t) override { wait(); } // the stream has no finer wait
  void waitNoThrow() noexcept override;
  std::unique_ptr<Program> load(const Artifact &artifact) override;

  /// Returns 80 for compute capability 8.0.
  int64_t getComputeCapability() const;

  /// Makes the device's context current in this thread, as every call of the driver needs.
  void use() const;

  const CudaFunctions cuda;
  CudaStream getStream() const { return stream.get(); }

private:
  CudaDevice(const CudaFunctions &cuda, CudaDeviceNumber number);
  int64_t getAttribute(int attribute) const;

  CudaDeviceNumber number;
  std::string name;
  CudaContext context = nullptr;
  CudaOwned<CudaStream> stream;
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_CUDADEVICE_H
