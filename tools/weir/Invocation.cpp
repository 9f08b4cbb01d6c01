//===- Invocation.cpp - An entry with its inputs on a device --------------===//

#include "Invocation.h"

#include <algorithm>
#include <cctype>
#include <chrono>

using namespace weir;
using namespace weir::tool;

const EntrySpec &tool::findEntry(const Artifact &artifact, const std::string &name) {
  std::string known;
  for (const EntrySpec &entry : artifact.manifest.entries) {
    if (entry.name == name || (name.empty() && artifact.manifest.entries.size() == 1))
      return entry;
    known += (known.empty() ? "'" : ", '") + entry.name + "'";
  }
  if (name.empty())
    throw Error("the artifact has several entries; choose one with --entry: " + known);
  throw Error("the artifact has no entry '" + name + "'; it has " + known);
}

std::vector<int64_t> tool::getCarried(const EntrySpec &entry) {
  std::vector<int64_t> carried;
  for (const TensorSpec &result : entry.results) {
    auto argument =
        std::find_if(entry.arguments.begin(), entry.arguments.end(), [&](const TensorSpec &spec) {
          return spec.donate && spec.name == result.name && spec.dtype == result.dtype &&
                 spec.shape == result.shape;
        });
    carried.push_back(argument == entry.arguments.end() ? -1 : argument - entry.arguments.begin());
  }
  return carried;
}

bool tool::isDevice(const std::string &name) {
  std::string api = name.substr(0, name.find(':'));
  return api == "vulkan" || api == "cuda" || api == "cpu";
}

void tool::requireCode(const Artifact &artifact, const std::string &path,
                       const std::string &device) {
  std::string api = device.substr(0, device.find(':'));
  if (artifact.findProfiles(api).empty())
    throw Error(path + " holds no code for " + api + "; compile it with --target=" + api);
}

static std::string toLower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

/// Opens the device that a name stands for: the first of its API, or the one that a number or a
/// part of its own name says.
static DeviceHandle openNamed(const std::string &name) {
  size_t colon = name.find(':');
  std::string api = name.substr(0, colon);
  if (colon == std::string::npos || api == "cpu")
    return openDevice(name, 0);
  std::string wanted = name.substr(colon + 1);
  if (!wanted.empty() && wanted.size() < 6 &&
      wanted.find_first_not_of("0123456789") == std::string::npos)
    return openDevice(api, std::stoul(wanted));
  size_t count = 0;
  check(weir_device_count(api.c_str(), &count));
  DeviceHandle found;
  std::string known;
  for (size_t i = 0; i < count; ++i) {
    DeviceHandle device = openDevice(api, i);
    std::string own = weir_device_name(device.get());
    known += (i ? ", " : "") + std::to_string(i) + " (" + own + ")";
    if (wanted.empty() || toLower(own).find(toLower(wanted)) == std::string::npos)
      continue;
    if (found)
      throw Error("--device=" + name +
                  ": more than one device has such a name; name one by its "
                  "index, as `weir devices` lists them");
    found = std::move(device);
  }
  if (!found)
    throw Error("--device=" + name + ": no device has such a name; there are " + known);
  return found;
}

/// Whether this machine's first device of an API is a GPU.
static bool hasGpu(const char *api) {
  weir_device *opened = nullptr;
  if (weir_device_open(api, 0, &opened) != WEIR_OK)
    return false;
  return weir_device_is_gpu(DeviceHandle(opened).get());
}

std::string tool::chooseApi(const Artifact &artifact) {
  std::vector<std::string> apis;
  for (const char *api : {"cuda", "vulkan", "cpu"})
    if (!artifact.findProfiles(api).empty())
      apis.push_back(api);
  if (apis.size() == 1)
    return apis.front();
  for (const std::string &api : apis)
    if (api == "cpu" || hasGpu(api.c_str()))
      return api;
  return "vulkan";
}

Invocation::Invocation(const std::string &api, const std::string &path, const EntrySpec &entry,
                       const std::vector<Tensor> &inputs)
    : entry(entry), inputs(inputs), carried(getCarried(entry)) {
  weir_artifact *opened = nullptr;
  check(weir_artifact_open(path.c_str(), &opened));
  ArtifactHandle artifact(opened);
  device = openNamed(api);
  weir_program *loaded = nullptr;
  check(weir_program_load(device.get(), artifact.get(), &loaded));
  program.reset(loaded);

  std::vector<int64_t> donated;
  for (size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(makeBuffer(entry.arguments[i]));
    writeArgument(i);
    check(weir_program_donation(program.get(), entry.name.c_str(), i, &donated.emplace_back(-1)));
    if (entry.arguments[i].donate && donated[i] < 0 &&
        std::find(carried.begin(), carried.end(), int64_t(i)) == carried.end())
      consumed.push_back(i);
  }
  for (size_t i = 0; i < entry.results.size(); ++i) {
    bool inPlace = carried[i] >= 0 && donated[carried[i]] == int64_t(i);
    results.push_back(inPlace ? arguments[carried[i]] : makeBuffer(entry.results[i]));
  }
}

weir_buffer *Invocation::makeBuffer(const TensorSpec &spec) {
  weir_buffer *buffer = nullptr;
  int64_t bytes = getByteSize(spec);
  weir_memory memory = spec.isInHost ? WEIR_MEMORY_HOST : WEIR_MEMORY_DEVICE;
  if (bytes)
    check(weir_buffer_create_in(device.get(), memory, bytes, &buffer));
  owned.emplace_back(buffer);
  return buffer;
}

void Invocation::writeArgument(size_t argument) {
  const Bytes &data = inputs[argument].data;
  if (!data.empty())
    check(weir_buffer_write(arguments[argument], 0, data.data(), data.size()));
}

void Invocation::begin() {
  for (size_t argument : consumed)
    writeArgument(argument);
  if (hasRun)
    for (size_t i = 0; i < results.size(); ++i)
      if (carried[i] >= 0)
        std::swap(results[i], arguments[carried[i]]);
  hasRun = true;
}

double Invocation::run() {
  begin();
  double nanoseconds = 0;
  check(weir_program_invoke(program.get(), entry.name.c_str(), arguments.data(), arguments.size(),
                            results.data(), results.size(), &nanoseconds));
  return nanoseconds * 1e-9;
}

double Invocation::runQueued(int64_t count) {
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) {
    begin();
    check(weir_program_submit(program.get(), entry.name.c_str(), arguments.data(), arguments.size(),
                              results.data(), results.size()));
  }
  check(weir_device_wait(device.get()));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         double(count);
}

std::vector<weir_dispatch_time> Invocation::profile(size_t count) {
  begin();
  std::vector<weir_dispatch_time> times(count);
  check(weir_program_profile(program.get(), entry.name.c_str(), arguments.data(), arguments.size(),
                             results.data(), results.size(), times.data(), times.size()));
  return times;
}

void Invocation::observe(const std::function<void(size_t, size_t, const Bytes &)> &observer) {
  begin();
  auto tell = [](void *context, size_t dispatch, size_t operand, const void *data, int64_t bytes) {
    auto *first = static_cast<const unsigned char *>(data);
    (*static_cast<decltype(&observer)>(context))(dispatch, operand, Bytes(first, first + bytes));
  };
  check(weir_program_observe(program.get(), entry.name.c_str(), arguments.data(), arguments.size(),
                             results.data(), results.size(), tell,
                             const_cast<void *>(static_cast<const void *>(&observer))));
}

void Invocation::setArgument(size_t argument, Tensor value) {
  inputs[argument] = std::move(value);
  writeArgument(argument);
}

Tensor Invocation::read(size_t result) const {
  Tensor tensor{entry.results[result], Bytes(getByteSize(entry.results[result]))};
  if (!tensor.data.empty())
    check(weir_buffer_read(results[result], 0, tensor.data.data(), tensor.data.size()));
  return tensor;
}

std::vector<Tensor> Invocation::read() const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < results.size(); ++i)
    tensors.push_back(read(i));
  return tensors;
}
