//===- Invocation.h - An entry with its inputs on a device ------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_INVOCATION_H
#define WEIR_TOOLS_WEIR_INVOCATION_H

#include "Handles.h"
#include "weir/Artifact/Artifact.h"

#include <functional>
#include <vector>

namespace weir::tool {

/// Finds the entry called `name`, or the only entry if `name` is "". Errors: `Error` that lists
/// the entries.
const EntrySpec &findEntry(const Artifact &artifact, const std::string &name);

/// Returns for each result the index of the donated argument of the same name, shape and dtype,
/// whose next value it is (parameters and optimizer state), or -1.
std::vector<int64_t> getCarried(const EntrySpec &entry);

/// Whether `name` names devices of the runtime: an API, one of its devices by index or by a part of
/// its name, "vulkan:1" or "vulkan:llvmpipe", or a processor with an instruction set,
/// "cpu:x86-64-v3".
bool isDevice(const std::string &name);

/// Checks that an artifact has code for a device. Errors: `Error` with advice.
void requireCode(const Artifact &artifact, const std::string &path, const std::string &device);

/// Returns the API that runs an artifact's code best here: that of a GPU, or else "cpu", or else
/// "vulkan", whose driver may run on the processor.
std::string chooseApi(const Artifact &artifact);

/// An entry with its buffers on a device, which can run repeatedly. A result
/// that is the next value of an argument (`getCarried`) becomes the argument of the next run.
/// Errors of all calls: `Error` of the runtime.
class Invocation {
public:
  Invocation(const std::string &api, const std::string &path, const EntrySpec &entry,
             const std::vector<Tensor> &inputs);

  /// Runs once; returns the seconds between the device's first and last command.
  double run();

  /// Submits `count` runs one behind the other and waits for the last; returns the seconds of one.
  double runQueued(int64_t count);

  /// Runs once, one dispatch after the other; returns the begin and end of each of `count`.
  std::vector<weir_dispatch_time> profile(size_t count);

  /// Runs once, one dispatch after the other; after each, passes each operand that it may have
  /// written to `observer`: the dispatch, the operand and its bytes.
  void observe(const std::function<void(size_t, size_t, const Bytes &)> &observer);

  /// Changes an argument of later runs. Needs: no result is its next value.
  void setArgument(size_t argument, Tensor value);

  /// Returns the results of the latest run.
  std::vector<Tensor> read() const;
  Tensor read(size_t result) const;

  /// Returns the artifact's target that runs, "cpu" or "cpu.x86-64-v4".
  std::string getTarget() const { return weir_program_target(program.get()); }

  std::string getDeviceName() const { return weir_device_name(device.get()); }

private:
  weir_buffer *makeBuffer(const TensorSpec &spec);
  void writeArgument(size_t argument);
  void begin();

  EntrySpec entry;
  std::vector<Tensor> inputs;
  DeviceHandle device;
  ProgramHandle program;
  std::vector<BufferHandle> owned;
  std::vector<weir_buffer *> arguments, results;
  std::vector<int64_t> carried;
  std::vector<size_t> consumed; ///< arguments donated without a result: undefined after a run
  bool hasRun = false;
};

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_INVOCATION_H
