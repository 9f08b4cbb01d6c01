//===- CudaDevice.cpp - Choosing a device, memory -------------------------===//

#include "CudaDevice.h"

#include "CudaProgram.h"
#include "DriverCall.h"

#include <algorithm>
#include <cstring>

namespace weir::runtime {

static constexpr int64_t oldestCapability = 80;

static int64_t getAttribute(const CudaFunctions &cuda, CudaDeviceNumber device, int attribute) {
  int value = 0;
  cuda.check(cuda.getAttribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

static int64_t getCapability(const CudaFunctions &cuda, CudaDeviceNumber device) {
  return getAttribute(cuda, device, cudaComputeMajor) * 10 +
         getAttribute(cuda, device, cudaComputeMinor);
}

static std::string getName(const CudaFunctions &cuda, CudaDeviceNumber device) {
  char name[256] = {};
  cuda.check(cuda.getName(name, sizeof(name) - 1, device), "cuDeviceGetName");
  return name;
}

static std::vector<CudaDeviceNumber> listDevices(const CudaFunctions &cuda) {
  int count = 0;
  cuda.check(cuda.getCount(&count), "cuDeviceGetCount");
  std::vector<CudaDeviceNumber> found;
  std::string refused;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CudaDeviceNumber device = 0;
    cuda.check(cuda.getDevice(&device, ordinal), "cuDeviceGet");
    int64_t capability = getCapability(cuda, device);
    if (capability >= oldestCapability)
      found.push_back(device);
    else
      refused += (refused.empty() ? "'" : ", '") + getName(cuda, device) + "' has " +
                 std::to_string(capability / 10) + "." + std::to_string(capability % 10);
  }
  if (found.empty())
    throw Error("no CUDA device found: " +
                (refused.empty() ? "the driver lists none"
                                 : "Weir needs compute capability 8.0, but " + refused));
  return found;
}

size_t CudaDevice::count() { return listDevices(openCuda()).size(); }

std::shared_ptr<Device> CudaDevice::open(size_t index) {
  CudaFunctions cuda = openCuda();
  std::vector<CudaDeviceNumber> found = listDevices(cuda);
  if (index >= found.size())
    throw BadArgument("there is no CUDA device " + std::to_string(index) + ": this machine has " +
                      std::to_string(found.size()) + ", counted from 0");
  return std::shared_ptr<Device>(new CudaDevice(cuda, found[index]));
}

CudaDevice::CudaDevice(const CudaFunctions &functions, CudaDeviceNumber number)
    : cuda(functions), number(number), name(runtime::getName(functions, number)) {
  cuda.check(cuda.retainContext(&context, number), "cuDevicePrimaryCtxRetain");
  try {
    use();
    CudaStream created = nullptr;
    cuda.check(cuda.createStream(&created, cudaStreamNonBlocking), "cuStreamCreate");
    stream = CudaOwned<CudaStream>(created, cuda.destroyStream);
  } catch (...) {
    cuda.releaseContext(number);
    throw;
  }
}

CudaDevice::~CudaDevice() {
  waitNoThrow();
  stream = CudaOwned<CudaStream>();
  cuda.releaseContext(number);
}

int64_t CudaDevice::getAttribute(int attribute) const {
  return runtime::getAttribute(cuda, number, attribute);
}

int64_t CudaDevice::getComputeCapability() const { return getCapability(cuda, number); }

void CudaDevice::use() const { cuda.check(cuda.setContext(context), "cuCtxSetCurrent"); }

Profile CudaDevice::getProfile() const {
  // Code compiled for an older GPU runs on a newer one, but that of sm_90a on those of 9.0 alone.
  constexpr int64_t hopper = 90;
  const int64_t capability = getComputeCapability();
  Profile profile = getBuiltinProfile(capability == hopper  ? "sm_90a"
                                      : capability > hopper ? "sm_90"
                                                            : "sm_80");
  profile.subgroupSize = getAttribute(cudaWarpSize);
  profile.maxWorkgroupSize = getAttribute(cudaMaxThreadsPerBlock);
  profile.workgroupMemory = std::min(profile.workgroupMemory, getAttribute(cudaMaxSharedOnRequest));
  for (int axis = 0; axis < 3; ++axis)
    profile.maxGrid[axis] = getAttribute(cudaMaxGridX + axis);
  return profile;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Storage CudaDevice::allocate(int64_t bytes, Placement placement) {
  Storage storage;
  storage.bytes = bytes;
  if (bytes == 0)
    return storage;
  use();
  auto memory = std::make_unique<CudaMemory>();
  std::string amount = " of " + std::to_string(bytes) + " bytes";
  if (placement == Placement::Host) {
    void *allocated = nullptr;
    cuda.check(cuda.allocateHost(&allocated, size_t(bytes), cudaHostOnDevice),
               "cuMemHostAlloc" + amount);
    memory->hostBytes = CudaOwned<void *>(allocated, cuda.freeHost);
    cuda.check(cuda.getHostAddress(&memory->address, allocated, 0), "cuMemHostGetDevicePointer");
  } else {
    cuda.check(cuda.allocate(&memory->address, size_t(bytes)), "cuMemAlloc" + amount);
    memory->deviceBytes = CudaOwned<CudaAddress>(memory->address, cuda.free);
  }
  storage.memory = std::move(memory);
  return storage;
}

void CudaDevice::write(Storage &storage, int64_t offset, const void *data, int64_t bytes) {
  wait();
  if (void *address = getHostAddress(storage)) {
    std::memcpy(static_cast<char *>(address) + offset, data, size_t(bytes));
    return;
  }
  cuda.check(cuda.copyFromHost(getAddress(storage) + CudaAddress(offset), data, size_t(bytes)),
             "cuMemcpyHtoD");
  // The call may return before the copy is complete, and our stream does not wait for others.
  cuda.check(cuda.synchronize(nullptr), "cuStreamSynchronize");
}

void CudaDevice::read(const Storage &storage, int64_t offset, void *data, int64_t bytes) {
  wait();
  if (const void *address = getHostAddress(storage)) {
    std::memcpy(data, static_cast<const char *>(address) + offset, size_t(bytes));
    return;
  }
  cuda.check(cuda.copyToHost(data, getAddress(storage) + CudaAddress(offset), size_t(bytes)),
             "cuMemcpyDtoH");
}

void CudaDevice::wait() {
  use();
  DriverCall call({"running kernels on '", name, "'"});
  cuda.check(cuda.synchronize(stream.get()), "cuStreamSynchronize");
}

void CudaDevice::waitNoThrow() noexcept {
  DriverCall call({"running kernels on '", name, "'"});
  if (cuda.setContext(context) == 0)
    cuda.synchronize(stream.get());
}

std::unique_ptr<Program> CudaDevice::load(const Artifact &artifact) {
  return std::make_unique<CudaProgram>(std::static_pointer_cast<CudaDevice>(shared_from_this()),
                                       artifact);
}

} // namespace weir::runtime
