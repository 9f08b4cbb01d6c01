//===- Handles.h - The C ABI's handles, closed by themselves ----*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_HANDLES_H
#define WEIR_TOOLS_WEIR_HANDLES_H

#include "weir/Artifact/Error.h"
#include "weir/weir.h"

#include <memory>
#include <string>

namespace weir::tool {

template <auto close> struct Closer {
  template <typename Handle> void operator()(Handle *handle) const { close(handle); }
};
using ArtifactHandle = std::unique_ptr<weir_artifact, Closer<weir_artifact_close>>;
using DeviceHandle = std::unique_ptr<weir_device, Closer<weir_device_close>>;
using ProgramHandle = std::unique_ptr<weir_program, Closer<weir_program_unload>>;
using BufferHandle = std::unique_ptr<weir_buffer, Closer<weir_buffer_destroy>>;

/// Checks a status. Errors: `Error` with the library's sentence unless `status` is success.
inline void check(weir_status status) {
  if (status != WEIR_OK)
    throw Error(weir_last_error());
}

inline DeviceHandle openDevice(const std::string &api, size_t index) {
  weir_device *device = nullptr;
  check(weir_device_open(api.c_str(), index, &device));
  return DeviceHandle(device);
}

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_HANDLES_H
