//===- CpuDevice.cpp - The processor's profile, memory --------------------===//

#include "CpuDevice.h"

#include "CpuProgram.h"
#include "weir/Artifact/Processor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <sys/mman.h>

namespace weir::runtime {

/// Returns the instruction sets that this processor has, the best last. Errors: `Error` if no
/// profile is for any.
static std::vector<std::string> findIsas() {
  std::vector<std::string> isas = getProcessorIsas();
  if (isas.empty())
    throw Error("this processor has none of the instruction sets that Weir compiles for: "
                "x86-64-v2, x86-64-v3, x86-64-v4, aarch64");
  return isas;
}

bool CpuDevice::hasIsa(const std::string &isa) const {
  std::vector<std::string> isas = getProcessorIsas();
  auto best = std::find(isas.begin(), isas.end(), profile.isa);
  return std::find(isas.begin(), best, isa) != best || isa == profile.isa;
}

/// Returns what the system calls the processor.
static std::string findName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      if (size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "CPU";
}

size_t CpuDevice::count() {
  findIsas();
  return 1;
}

std::shared_ptr<Device> CpuDevice::open(size_t index) { return openWith(index, findIsas().back()); }

std::shared_ptr<Device> CpuDevice::openWith(size_t index, const std::string &isa) {
  std::vector<std::string> isas = findIsas();
  if (std::find(isas.begin(), isas.end(), isa) == isas.end()) {
    std::string known;
    for (const std::string &each : isas)
      known += (known.empty() ? "" : ", ") + each;
    throw BadArgument("there is no device 'cpu:" + isa + "': this processor has " + known);
  }
  if (index > 0)
    throw BadArgument("there is no CPU device " + std::to_string(index) +
                      ": this machine has 1, counted from 0");
  return std::shared_ptr<Device>(new CpuDevice(isa));
}

CpuDevice::CpuDevice(const std::string &isa)
    : name(findName()), profile(getBuiltinProfile(isa)), pool(readPoolOptions()) {
  profile.stageGroups = int64_t(pool.getThreadCount());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CpuMemory::~CpuMemory() {
  if (!isCallers)
    std::free(address);
}

Storage CpuDevice::allocate(int64_t bytes, Placement) { // there is one memory
  Storage storage;
  storage.bytes = bytes;
  if (bytes == 0)
    return storage;
  // Of a few large pages a core knows the places by heart.
  constexpr size_t largePage = size_t(2) << 20;
  bool isLarge = uint64_t(bytes) >= 2 * largePage;
  size_t alignment = isLarge ? largePage : size_t(profile.offsetAlignment);
  if (uint64_t(bytes) > SIZE_MAX - alignment)
    throw std::bad_alloc();
  size_t size = (size_t(bytes) + alignment - 1) / alignment * alignment;
  auto memory = std::make_unique<CpuMemory>();
  memory->address = static_cast<char *>(std::aligned_alloc(alignment, size));
  if (!memory->address)
    throw Error("there is no memory for a buffer of " + std::to_string(bytes) + " bytes");
  if (isLarge)
    madvise(memory->address, size, MADV_HUGEPAGE); // a wish: without such pages, small ones serve
  storage.memory = std::move(memory);
  return storage;
}

Storage CpuDevice::adopt(void *data, int64_t bytes) {
  auto memory = std::make_unique<CpuMemory>();
  memory->address = static_cast<char *>(data);
  memory->isCallers = true;
  Storage storage;
  storage.bytes = bytes;
  storage.memory = std::move(memory);
  return storage;
}

void CpuDevice::write(Storage &storage, int64_t offset, const void *data, int64_t bytes) {
  std::memcpy(getHostBytes(storage) + offset, data, size_t(bytes));
}

void CpuDevice::read(const Storage &storage, int64_t offset, void *data, int64_t bytes) {
  std::memcpy(data, getHostBytes(storage) + offset, size_t(bytes));
}

std::unique_ptr<Program> CpuDevice::load(const Artifact &artifact) {
  return std::make_unique<CpuProgram>(std::static_pointer_cast<CpuDevice>(shared_from_this()),
                                      artifact);
}

} // namespace weir::runtime
