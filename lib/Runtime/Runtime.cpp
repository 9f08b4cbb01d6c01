//===- Runtime.cpp - The C ABI --------------------------------------------===//
//
// Checks handles, holds the device's lock, and turns exceptions into a status
// and a sentence. Handles share the device, so they may be closed in any order.
//
//===----------------------------------------------------------------------===//

#include "weir/weir.h"

#include "CpuDevice.h"
#include "CudaDevice.h"
#include "DriverCall.h"
#include "Program.h"
#include "VulkanDevice.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

using namespace weir;
using namespace weir::runtime;

struct weir_artifact {
  Artifact artifact;
};

struct weir_device {
  std::shared_ptr<Device> device;
};

struct weir_buffer {
  std::shared_ptr<Device> device;
  Storage storage;
};

struct weir_program {
  std::unique_ptr<Program> program;
};

static thread_local std::string lastError;

static weir_status fail(weir_status status, const char *sentence) noexcept {
  try {
    lastError = sentence;
  } catch (const std::bad_alloc &) {
    lastError.clear();
  }
  return status;
}

template <typename Body> static weir_status guard(Body body) noexcept {
  try {
    lastError.clear();
    body();
    return WEIR_OK;
  } catch (const BadArgument &error) {
    return fail(WEIR_BAD_ARGUMENT, error.what());
  } catch (const std::bad_alloc &) {
    return fail(WEIR_FAILED, "the host is out of memory");
  } catch (const std::exception &error) {
    return fail(WEIR_FAILED, error.what());
  } catch (...) {
    return fail(WEIR_FAILED, "an unknown error");
  }
}

static void require(const void *pointer, const char *function, const char *name) {
  if (!pointer)
    throw BadArgument(std::string(function) + ": '" + name + "' is null");
}

const char *weir_last_error(void) { return lastError.c_str(); }

const char *weir_version(void) { return WEIR_VERSION; }

const char *weir_driver_call(void) { return findDriverCall(); }

//===----------------------------------------------------------------------===//
// Artifacts
//===----------------------------------------------------------------------===//

weir_status weir_artifact_open(const char *path, weir_artifact **artifact) {
  return guard([&] {
    require(path, "weir_artifact_open", "path");
    require(artifact, "weir_artifact_open", "artifact");
    try {
      *artifact = new weir_artifact{readArtifact(path)};
    } catch (const Error &error) {
      throw BadArgument(error.what()); // a bad file
    }
  });
}

void weir_artifact_close(weir_artifact *artifact) { delete artifact; }

size_t weir_artifact_entry_count(const weir_artifact *artifact) {
  return artifact ? artifact->artifact.manifest.entries.size() : 0;
}

/// Returns the entry, or null if there is none.
static const EntrySpec *getEntry(const weir_artifact *artifact, size_t entry) {
  if (entry >= weir_artifact_entry_count(artifact))
    return nullptr;
  return &artifact->artifact.manifest.entries[entry];
}

const char *weir_artifact_entry_name(const weir_artifact *artifact, size_t entry) {
  const EntrySpec *spec = getEntry(artifact, entry);
  return spec ? spec->name.c_str() : nullptr;
}

weir_status weir_artifact_find_entry(const weir_artifact *artifact, const char *name,
                                     size_t *entry) {
  return guard([&] {
    require(artifact, "weir_artifact_find_entry", "artifact");
    require(name, "weir_artifact_find_entry", "name");
    require(entry, "weir_artifact_find_entry", "entry");
    std::string known;
    for (size_t i = 0; i < weir_artifact_entry_count(artifact); ++i) {
      if (getEntry(artifact, i)->name == name) {
        *entry = i;
        return;
      }
      known += (known.empty() ? "'" : ", '") + getEntry(artifact, i)->name + "'";
    }
    throw BadArgument("the artifact has no entry '" + std::string(name) + "'; it has " +
                      (known.empty() ? "none" : known));
  });
}

size_t weir_artifact_argument_count(const weir_artifact *artifact, size_t entry) {
  const EntrySpec *spec = getEntry(artifact, entry);
  return spec ? spec->arguments.size() : 0;
}

size_t weir_artifact_result_count(const weir_artifact *artifact, size_t entry) {
  const EntrySpec *spec = getEntry(artifact, entry);
  return spec ? spec->results.size() : 0;
}

static weir_status getTensorInfo(const weir_artifact *artifact, size_t entry, size_t index,
                                 weir_tensor_info *info,
                                 std::vector<TensorSpec> EntrySpec::*tensors, const char *function,
                                 const char *what) {
  return guard([&] {
    require(artifact, function, "artifact");
    require(info, function, "info");
    const EntrySpec *spec = getEntry(artifact, entry);
    if (!spec)
      throw BadArgument("the artifact has no entry " + std::to_string(entry) + ": it has " +
                        std::to_string(weir_artifact_entry_count(artifact)) + ", counted from 0");
    if (index >= (spec->*tensors).size())
      throw BadArgument("entry '" + spec->name + "' has no " + what + " " + std::to_string(index) +
                        ": it has " + std::to_string((spec->*tensors).size()) + ", counted from 0");
    const TensorSpec &tensor = (spec->*tensors)[index];
    info->name = tensor.name.c_str();
    info->dtype = tensor.dtype.c_str();
    info->shape = tensor.shape.data();
    info->rank = tensor.shape.size();
    info->bytes = getByteSize(tensor);
    info->donated = tensor.donate;
    info->memory = tensor.isInHost ? WEIR_MEMORY_HOST : WEIR_MEMORY_DEVICE;
  });
}

weir_status weir_artifact_argument(const weir_artifact *artifact, size_t entry, size_t index,
                                   weir_tensor_info *info) {
  return getTensorInfo(artifact, entry, index, info, &EntrySpec::arguments, __func__, "argument");
}

weir_status weir_artifact_result(const weir_artifact *artifact, size_t entry, size_t index,
                                 weir_tensor_info *info) {
  return getTensorInfo(artifact, entry, index, info, &EntrySpec::results, __func__, "result");
}

weir_status weir_artifact_donation(const weir_artifact *artifact, size_t entry, size_t argument,
                                   int64_t *result) {
  weir_tensor_info info;
  if (weir_status status = weir_artifact_argument(artifact, entry, argument, &info))
    return status;
  return guard([&] {
    require(result, "weir_artifact_donation", "result");
    const std::string &name = getEntry(artifact, entry)->name;
    const std::vector<Profile> &targets = artifact->artifact.manifest.targets;
    std::vector<const Profile *> preferred = artifact->artifact.findProfiles("vulkan");
    if (preferred.empty() && targets.empty())
      throw BadArgument("entry '" + name + "' has no plan");
    const Plan *plan = artifact->artifact.findPlan(
        name, preferred.empty() ? targets.front().target : preferred.front()->target);
    *result = -1;
    for (const Allocation &allocation : plan->allocations)
      if (allocation.kind == AllocationKind::Argument && allocation.index == int64_t(argument))
        *result = allocation.result;
  });
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

namespace {
/// An API's devices.
struct Api {
  const char *name;
  size_t (*count)();
  std::shared_ptr<Device> (*open)(size_t index);
};
} // namespace

/// The prefix of an instruction set in the name of a processor that has nothing better.
static constexpr std::string_view processorWith = "cpu:";

/// Returns an API by its name; Vulkan, the default, by none.
static const Api &findApi(const char *name) {
  static constexpr Api apis[] = {{"vulkan", VulkanDevice::count, VulkanDevice::open},
                                 {"cuda", CudaDevice::count, CudaDevice::open},
                                 {"cpu", CpuDevice::count, CpuDevice::open}};
  std::string_view wanted = name ? name : "vulkan";
  if (wanted.starts_with(processorWith))
    wanted = "cpu";
  for (const Api &api : apis)
    if (wanted == api.name)
      return api;
  throw BadArgument("there is no API '" + std::string(name) +
                    "'; the runtime has vulkan, cuda and cpu");
}

weir_status weir_device_count(const char *api, size_t *count) {
  return guard([&] {
    require(count, "weir_device_count", "count");
    *count = findApi(api).count();
  });
}

weir_status weir_device_open(const char *api, size_t index, weir_device **device) {
  return guard([&] {
    require(device, "weir_device_open", "device");
    bool isLimited = api && std::string_view(api).starts_with(processorWith);
    *device = new weir_device{isLimited ? CpuDevice::openWith(index, api + processorWith.size())
                                        : findApi(api).open(index)};
  });
}

weir_status weir_device_adopt_vulkan(const weir_vulkan_handles *handles, weir_device **device) {
  return guard([&] {
    require(handles, "weir_device_adopt_vulkan", "handles");
    require(device, "weir_device_adopt_vulkan", "device");
    *device = new weir_device{VulkanDevice::adopt(*handles)};
  });
}

void weir_device_close(weir_device *device) {
  if (device) {
    std::lock_guard lock(device->device->mutex);
    device->device->waitNoThrow();
  }
  delete device;
}

const char *weir_device_name(const weir_device *device) {
  return device ? device->device->getName().c_str() : nullptr;
}

int weir_device_is_gpu(const weir_device *device) { return device && device->device->isGpu(); }

weir_status weir_device_profile(const weir_device *device, char **profile_json) {
  return guard([&] {
    require(device, "weir_device_profile", "device");
    require(profile_json, "weir_device_profile", "profile_json");
    std::string text = printProfile(device->device->getProfile());
    char *copy = static_cast<char *>(std::malloc(text.size() + 1));
    if (!copy)
      throw std::bad_alloc();
    std::memcpy(copy, text.c_str(), text.size() + 1);
    *profile_json = copy;
  });
}

void weir_string_free(char *string) { std::free(string); }

weir_status weir_device_wait(weir_device *device) {
  return guard([&] {
    require(device, "weir_device_wait", "device");
    std::lock_guard lock(device->device->mutex);
    device->device->wait();
  });
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

static void requireBytes(const char *function, int64_t bytes) {
  if (bytes < 0)
    throw BadArgument(std::string(function) + ": " + std::to_string(bytes) +
                      " bytes are fewer than none");
}

static weir_status createBuffer(const char *function, weir_device *device, Placement placement,
                                int64_t bytes, weir_buffer **buffer) {
  return guard([&] {
    require(device, function, "device");
    require(buffer, function, "buffer");
    requireBytes(function, bytes);
    std::lock_guard lock(device->device->mutex);
    Storage storage = device->device->allocate(bytes, placement);
    *buffer = new weir_buffer{device->device, std::move(storage)};
  });
}

weir_status weir_buffer_create(weir_device *device, int64_t bytes, weir_buffer **buffer) {
  return createBuffer(__func__, device, Placement::Shared, bytes, buffer);
}

weir_status weir_buffer_create_in(weir_device *device, weir_memory memory, int64_t bytes,
                                  weir_buffer **buffer) {
  if (memory == WEIR_MEMORY_DEVICE || memory == WEIR_MEMORY_HOST)
    return createBuffer(__func__, device,
                        memory == WEIR_MEMORY_HOST ? Placement::Host : Placement::Shared, bytes,
                        buffer);
  return guard([&] {
    throw BadArgument("weir_buffer_create_in: there is no memory " + std::to_string(int(memory)));
  });
}

weir_status weir_buffer_adopt(weir_device *device, void *data, int64_t bytes,
                              weir_buffer **buffer) {
  return guard([&] {
    require(device, "weir_buffer_adopt", "device");
    require(data, "weir_buffer_adopt", "data");
    require(buffer, "weir_buffer_adopt", "buffer");
    requireBytes("weir_buffer_adopt", bytes);
    std::lock_guard lock(device->device->mutex);
    Storage storage = device->device->adopt(data, bytes);
    *buffer = new weir_buffer{device->device, std::move(storage)};
  });
}

void weir_buffer_destroy(weir_buffer *buffer) {
  if (!buffer)
    return;
  std::shared_ptr<Device> device = buffer->device; // outlives the lock
  std::lock_guard lock(device->mutex);
  device->waitNoThrow();
  for (StorageUser *user : device->users)
    user->forget(buffer->storage);
  delete buffer;
}

static void checkRange(const weir_buffer *buffer, int64_t offset, const void *data, int64_t bytes,
                       const char *function) {
  require(buffer, function, "buffer");
  int64_t size = buffer->storage.bytes;
  if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset)
    throw BadArgument(std::string(function) + ": " + std::to_string(bytes) + " bytes at offset " +
                      std::to_string(offset) + " leave a buffer of " + std::to_string(size));
  if (bytes > 0)
    require(data, function, "data");
}

weir_status weir_buffer_write(weir_buffer *buffer, int64_t offset, const void *data,
                              int64_t bytes) {
  return guard([&] {
    checkRange(buffer, offset, data, bytes, "weir_buffer_write");
    if (bytes == 0)
      return;
    std::lock_guard lock(buffer->device->mutex);
    buffer->device->write(buffer->storage, offset, data, bytes);
  });
}

weir_status weir_buffer_read(weir_buffer *buffer, int64_t offset, void *data, int64_t bytes) {
  return guard([&] {
    checkRange(buffer, offset, data, bytes, "weir_buffer_read");
    if (bytes == 0)
      return;
    std::lock_guard lock(buffer->device->mutex);
    buffer->device->read(buffer->storage, offset, data, bytes);
  });
}

weir_status weir_buffer_map(weir_buffer *buffer, void **data) {
  return guard([&] {
    require(buffer, "weir_buffer_map", "buffer");
    require(data, "weir_buffer_map", "data");
    std::lock_guard lock(buffer->device->mutex);
    *data = buffer->device->getHostAddress(buffer->storage);
  });
}

weir_status weir_buffer_wait(weir_buffer *buffer) {
  return guard([&] {
    require(buffer, "weir_buffer_wait", "buffer");
    std::lock_guard lock(buffer->device->mutex);
    buffer->device->waitFor(buffer->storage.lastUse);
  });
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

weir_status weir_program_load(weir_device *device, const weir_artifact *artifact,
                              weir_program **program) {
  return guard([&] {
    require(device, "weir_program_load", "device");
    require(artifact, "weir_program_load", "artifact");
    require(program, "weir_program_load", "program");
    std::lock_guard lock(device->device->mutex);
    *program = new weir_program{device->device->load(artifact->artifact)};
  });
}

void weir_program_unload(weir_program *program) {
  if (!program)
    return;
  std::shared_ptr<Device> device = program->program->device; // outlives the lock
  std::lock_guard lock(device->mutex);
  delete program;
}

const char *weir_program_target(const weir_program *program) {
  return program ? program->program->target.c_str() : nullptr;
}

weir_status weir_program_donation(const weir_program *program, const char *entry, size_t argument,
                                  int64_t *result) {
  return guard([&] {
    require(program, "weir_program_donation", "program");
    require(entry, "weir_program_donation", "entry");
    require(result, "weir_program_donation", "result");
    *result = program->program->getResultIn(entry, argument);
  });
}

static std::vector<const Storage *> getStorages(const Device &device, const char *entry,
                                                const char *what, weir_buffer *const *buffers,
                                                size_t count) {
  std::vector<const Storage *> storages;
  for (size_t i = 0; i < count; ++i) {
    if (buffers[i] && buffers[i]->device.get() != &device)
      throw BadArgument("entry '" + std::string(entry) + "': the buffer of " + what + " " +
                        std::to_string(i) + " belongs to another device than the program");
    storages.push_back(buffers[i] ? &buffers[i]->storage : nullptr);
  }
  return storages;
}

namespace {
/// The arguments common to all functions that run an entry.
struct Run {
  weir_program *program;
  const char *entry;
  weir_buffer *const *arguments;
  size_t argumentCount;
  weir_buffer *const *results;
  size_t resultCount;
};
} // namespace

/// Checks the handles and calls `use(program, arguments, results)` with the device locked.
template <typename Use> static void withStorages(const Run &run, const char *function, Use use) {
  require(run.program, function, "program");
  require(run.entry, function, "entry");
  if (run.argumentCount > 0)
    require(run.arguments, function, "arguments");
  if (run.resultCount > 0)
    require(run.results, function, "results");
  Program &program = *run.program->program;
  std::lock_guard lock(program.device->mutex);
  use(program,
      getStorages(*program.device, run.entry, "argument", run.arguments, run.argumentCount),
      getStorages(*program.device, run.entry, "result", run.results, run.resultCount));
}

using Storages = std::vector<const Storage *>;

weir_status weir_program_invoke(weir_program *program, const char *entry,
                                weir_buffer *const *arguments, size_t argument_count,
                                weir_buffer *const *results, size_t result_count,
                                double *device_nanoseconds) {
  return guard([&] {
    withStorages(
        {program, entry, arguments, argument_count, results, result_count}, "weir_program_invoke",
        [&](Program &loaded, const Storages &from, const Storages &to) {
          auto start = std::chrono::steady_clock::now();
          const Recording *recording =
              loaded.submit(entry, from, to, device_nanoseconds != nullptr);
          loaded.device->wait();
          std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
          if (!device_nanoseconds)
            return;
          *device_nanoseconds = recording ? recording->readNanoseconds() : 0;
          if (*device_nanoseconds < 0) // the queue has no timestamps
            *device_nanoseconds = took.count();
        });
  });
}

weir_status weir_program_submit(weir_program *program, const char *entry,
                                weir_buffer *const *arguments, size_t argument_count,
                                weir_buffer *const *results, size_t result_count) {
  return guard([&] {
    withStorages({program, entry, arguments, argument_count, results, result_count},
                 "weir_program_submit",
                 [&](Program &loaded, const Storages &from, const Storages &to) {
                   loaded.submit(entry, from, to);
                 });
  });
}

weir_status weir_program_watch(weir_program *program, const char *entry,
                               weir_buffer *const *arguments, size_t argument_count,
                               weir_buffer *const *results, size_t result_count,
                               const int64_t *waves, size_t wave_count, weir_watcher watcher,
                               void *context) {
  return guard([&] {
    if (wave_count > 0)
      require(waves, "weir_program_watch", "waves");
    require(reinterpret_cast<const void *>(watcher), "weir_program_watch", "watcher");
    withStorages({program, entry, arguments, argument_count, results, result_count},
                 "weir_program_watch",
                 [&](Program &loaded, const Storages &from, const Storages &to) {
                   loaded.watch(entry, from, to, {waves, waves + wave_count},
                                [&](int64_t wave) { watcher(context, wave); });
                 });
  });
}

weir_status weir_program_profile(weir_program *program, const char *entry,
                                 weir_buffer *const *arguments, size_t argument_count,
                                 weir_buffer *const *results, size_t result_count,
                                 weir_dispatch_time *times, size_t time_count) {
  return guard([&] {
    if (time_count > 0)
      require(times, "weir_program_profile", "times");
    withStorages({program, entry, arguments, argument_count, results, result_count},
                 "weir_program_profile",
                 [&](Program &loaded, const Storages &from, const Storages &to) {
                   size_t count = loaded.countDispatches(entry);
                   if (time_count != count)
                     throw BadArgument("entry '" + std::string(entry) + "' has " +
                                       std::to_string(count) + " dispatches, but there is room " +
                                       "for the times of " + std::to_string(time_count));
                   std::vector<weir_dispatch_time> taken = loaded.profile(entry, from, to);
                   std::copy(taken.begin(), taken.end(), times);
                 });
  });
}

weir_status weir_program_observe(weir_program *program, const char *entry,
                                 weir_buffer *const *arguments, size_t argument_count,
                                 weir_buffer *const *results, size_t result_count,
                                 weir_observer observer, void *context) {
  return guard([&] {
    require(reinterpret_cast<const void *>(observer), "weir_program_observe", "observer");
    withStorages(
        {program, entry, arguments, argument_count, results, result_count}, "weir_program_observe",
        [&](Program &loaded, const Storages &from, const Storages &to) {
          loaded.observe(entry, from, to, [&](size_t dispatch, size_t operand, const Bytes &data) {
            observer(context, dispatch, operand, data.data(), int64_t(data.size()));
          });
        });
  });
}
