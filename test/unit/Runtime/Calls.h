//===- Calls.h - The C ABI's calls on the artifacts of Samples.h -*- C++ -*-===//

#ifndef WEIR_TEST_UNIT_RUNTIME_CALLS_H
#define WEIR_TEST_UNIT_RUNTIME_CALLS_H

#include "test/unit/Runtime/Samples.h"
#include "tools/weir/Handles.h"
#include "weir/weir.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weir::test {
using tool::ArtifactHandle, tool::BufferHandle, tool::DeviceHandle, tool::ProgramHandle;

inline std::string getError() { return weir_last_error(); }

#define EXPECT_STATUS(expected, call, sentence)                                                    \
  EXPECT_EQ(expected, call) << getError();                                                         \
  EXPECT_NE(getError().find(sentence), std::string::npos) << getError()

inline ArtifactHandle openArtifact(const Artifact &artifact) {
  TemporaryFolder folder;
  writeArtifact(folder / "a.weir", artifact);
  weir_artifact *handle = nullptr;
  EXPECT_EQ(WEIR_OK, weir_artifact_open((folder / "a.weir").c_str(), &handle)) << getError();
  return ArtifactHandle(handle);
}

inline weir_status tryLoad(weir_device *device, const Artifact &artifact) {
  weir_program *program = nullptr;
  weir_status status = weir_program_load(device, openArtifact(artifact).get(), &program);
  weir_program_unload(program);
  return status;
}

/// Loads a program, which outlives its artifact.
inline ProgramHandle load(const DeviceHandle &device, const Artifact &artifact) {
  weir_program *handle = nullptr;
  EXPECT_EQ(WEIR_OK, weir_program_load(device.get(), openArtifact(artifact).get(), &handle))
      << getError();
  return ProgramHandle(handle);
}

inline BufferHandle makeBuffer(weir_device *device, int64_t bytes) {
  weir_buffer *buffer = nullptr;
  EXPECT_EQ(WEIR_OK, weir_buffer_create(device, bytes, &buffer)) << getError();
  return BufferHandle(buffer);
}

inline BufferHandle makeBuffer(weir_device *device, const std::vector<float> &values) {
  int64_t bytes = int64_t(values.size() * sizeof(float));
  BufferHandle buffer = makeBuffer(device, bytes);
  EXPECT_EQ(WEIR_OK, weir_buffer_write(buffer.get(), 0, values.data(), bytes)) << getError();
  return buffer;
}

inline std::vector<float> getValues(const BufferHandle &buffer, size_t count = elements) {
  std::vector<float> values(count);
  EXPECT_EQ(WEIR_OK,
            weir_buffer_read(buffer.get(), 0, values.data(), int64_t(count * sizeof(float))))
      << getError();
  return values;
}

inline std::vector<float> makeRamp(size_t count = elements, float first = 1) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

inline weir_status invoke(const ProgramHandle &program, const char *entry,
                          std::vector<weir_buffer *> arguments, std::vector<weir_buffer *> results,
                          double *nanoseconds = nullptr) {
  return weir_program_invoke(program.get(), entry, arguments.data(), arguments.size(),
                             results.data(), results.size(), nanoseconds);
}

inline weir_status submit(const ProgramHandle &program, const char *entry,
                          std::vector<weir_buffer *> arguments,
                          std::vector<weir_buffer *> results) {
  return weir_program_submit(program.get(), entry, arguments.data(), arguments.size(),
                             results.data(), results.size());
}

/// Returns 2x + i/2, the result of `chain`.
inline std::vector<float> chain(std::vector<float> x) {
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = 2 * x[i] + float(i) / 2;
  return x;
}

} // namespace weir::test

#endif // WEIR_TEST_UNIT_RUNTIME_CALLS_H
