//===- copy_sweep.cpp - An entry's speed as a share of the best copy ------===//
//
// Runs a fixed set of copy kernels on 4096 x 1024 f32 and, in turn with them, an
// artifact's entry, and prints the least time of each. What a memory-bound
// kernel can reach is what the best copy reaches in the same run on the same
// machine; nothing else compares.
//
// The copies are entries of an artifact made here, so they go the same way as
// the entry: same submission, same clock.
//
//===----------------------------------------------------------------------===//

#include "tools/Assemble.h"
#include "tools/weir/Handles.h"
#include "weir/weir.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <unistd.h>

using namespace weir;
using tool::ArtifactHandle, tool::BufferHandle, tool::check, tool::DeviceHandle,
    tool::ProgramHandle;

static constexpr int64_t sideBytes = int64_t(4096) * 1024 * 4;

//===----------------------------------------------------------------------===//
// The copies
//===----------------------------------------------------------------------===//

namespace {
struct Copy {
  int width = 1;     ///< 32-bit elements of a load: 1 or 4
  int workgroup = 8; ///< invocations
  int each = 1;      ///< loads of an invocation

  std::string getName() const {
    return std::string(width == 4 ? "vec4" : "scalar") + "_wg" + std::to_string(workgroup) + "_x" +
           std::to_string(each);
  }
  int64_t getWorkgroups() const { return sideBytes / (int64_t(4) * width * workgroup * each); }
  /// Along x; what exceeds an axis goes along y. Both are powers of two.
  int64_t getColumns() const { return std::min<int64_t>(getWorkgroups(), 32768); }
};
} // namespace

static std::vector<Copy> makeCopies() {
  std::vector<Copy> copies;
  for (int width : {4, 1})
    for (int workgroup : {8, 64, 256})
      for (int each : {1, 4, 16, 64})
        copies.push_back({width, workgroup, each});
  return copies;
}

/// Invocation `lane` of workgroup `g` copies elements (g * each + j) * workgroup
/// + lane, so that neighbours touch neighbours.
static Bytes makeCode(const Copy &copy) {
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string constants, body;
  for (int j = 0; j < copy.each; ++j) {
    std::string n = number(j);
    constants += "%step" + n + " = OpConstant %u32 " + number(int64_t(j) * copy.workgroup) + "\n";
    body += "%at" + n + " = OpIAdd %u32 %first %step" + n + "\n%from" + n +
            " = OpAccessChain %element_ptr %in %zero %at" + n + "\n%to" + n +
            " = OpAccessChain %element_ptr %out %zero %at" + n + "\n%value" + n +
            " = OpLoad %element %from" + n + "\nOpStore %to" + n + " %value" + n + "\n";
  }
  const std::string scalar = copy.width == 4 ? "f32" : "element";
  const std::string vector = "%element = OpTypeVector %f32 4\n";
  return assemble("OpCapability Shader\n"
                  "OpMemoryModel Logical GLSL450\n"
                  "OpEntryPoint GLCompute %main \"" +
                  copy.getName() +
                  "\" %group_id %lane_id %in %out\n"
                  "OpExecutionMode %main LocalSize " +
                  number(copy.workgroup) +
                  " 1 1\n"
                  "OpDecorate %group_id BuiltIn WorkgroupId\n"
                  "OpDecorate %lane_id BuiltIn LocalInvocationId\n"
                  "OpDecorate %array ArrayStride " +
                  number(4 * copy.width) +
                  "\n"
                  "OpDecorate %block Block\n"
                  "OpMemberDecorate %block 0 Offset 0\n"
                  "OpDecorate %in DescriptorSet 0\n"
                  "OpDecorate %in Binding 0\n"
                  "OpDecorate %out DescriptorSet 0\n"
                  "OpDecorate %out Binding 1\n"
                  "%void = OpTypeVoid\n"
                  "%void_fn = OpTypeFunction %void\n"
                  "%u32 = OpTypeInt 32 0\n"
                  "%" +
                  scalar +
                  " = OpTypeFloat 32\n"
                  "%v3u32 = OpTypeVector %u32 3\n" +
                  (copy.width == 4 ? vector : "") +
                  "%id_ptr = OpTypePointer Input %v3u32\n"
                  "%group_id = OpVariable %id_ptr Input\n"
                  "%lane_id = OpVariable %id_ptr Input\n"
                  "%zero = OpConstant %u32 0\n"
                  "%columns = OpConstant %u32 " +
                  number(copy.getColumns()) +
                  "\n"
                  "%tile = OpConstant %u32 " +
                  number(int64_t(copy.workgroup) * copy.each) +
                  "\n"
                  "%length = OpConstant %u32 " +
                  number(sideBytes / (4 * copy.width)) + "\n" + constants +
                  "%array = OpTypeArray %element %length\n"
                  "%block = OpTypeStruct %array\n"
                  "%block_ptr = OpTypePointer StorageBuffer %block\n"
                  "%element_ptr = OpTypePointer StorageBuffer %element\n"
                  "%in = OpVariable %block_ptr StorageBuffer\n"
                  "%out = OpVariable %block_ptr StorageBuffer\n"
                  "%main = OpFunction %void None %void_fn\n"
                  "%entry = OpLabel\n"
                  "%group = OpLoad %v3u32 %group_id\n"
                  "%group_x = OpCompositeExtract %u32 %group 0\n"
                  "%group_y = OpCompositeExtract %u32 %group 1\n"
                  "%lane = OpLoad %v3u32 %lane_id\n"
                  "%lane_x = OpCompositeExtract %u32 %lane 0\n"
                  "%row = OpIMul %u32 %group_y %columns\n"
                  "%linear = OpIAdd %u32 %row %group_x\n"
                  "%base = OpIMul %u32 %linear %tile\n"
                  "%first = OpIAdd %u32 %base %lane_x\n" +
                  body +
                  "OpReturn\n"
                  "OpFunctionEnd\n");
}

/// One entry a copy. The target asks for nothing but what the device has.
static Artifact makeCopyArtifact(const std::vector<Copy> &copies, const Profile &profile) {
  Artifact artifact;
  artifact.manifest.producer = "copy_sweep";
  artifact.manifest.targets = {profile};
  TensorSpec x{"x", "F32", {4096, 1024}, "", false};
  TensorSpec y{"y", "F32", {4096, 1024}, "", false};
  for (const Copy &copy : copies) {
    std::string name = copy.getName();
    std::string path = "code/vulkan/" + name + ".spv";
    artifact.code[path] = makeCode(copy);
    artifact.manifest.entries.push_back({name, {x}, {y}});
    Plan plan;
    plan.entry = name;
    plan.target = profile.target;
    plan.allocations = {{AllocationKind::Argument, 0, sideBytes},
                        {AllocationKind::Result, 0, sideBytes}};
    plan.values = {{"x", sideBytes}, {"y", sideBytes}};
    plan.argumentValues = {0};
    plan.resultValues = {1};
    int64_t alignment = 4 * copy.width;
    plan.kernels = {{name,
                     path,
                     {copy.workgroup, 1, 1},
                     {{Access::Read, false, sideBytes, alignment},
                      {Access::Write, true, sideBytes, alignment}}}};
    Command dispatch;
    dispatch.grid = {copy.getColumns(), copy.getWorkgroups() / copy.getColumns(), 1};
    dispatch.operands = {{{0, 0, sideBytes}, 0}, {{1, 0, sideBytes}, 1}};
    plan.commands = {dispatch};
    artifact.plans.push_back(plan);
  }
  return artifact;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {
/// An entry with buffers of its own, and its least time so far.
struct Contender {
  weir_program *program = nullptr;
  std::string entry;
  std::vector<BufferHandle> owned;
  std::vector<weir_buffer *> arguments, results;
  double nanoseconds = std::numeric_limits<double>::infinity();

  void run(bool count) {
    double time = 0;
    check(weir_program_invoke(program, entry.c_str(), arguments.data(), arguments.size(),
                              results.data(), results.size(), &time));
    if (count)
      nanoseconds = std::min(nanoseconds, time);
  }
};
} // namespace

static ArtifactHandle openArtifact(const std::string &path) {
  weir_artifact *handle = nullptr;
  check(weir_artifact_open(path.c_str(), &handle));
  return ArtifactHandle(handle);
}

static ProgramHandle load(const DeviceHandle &device, const ArtifactHandle &artifact) {
  weir_program *handle = nullptr;
  check(weir_program_load(device.get(), artifact.get(), &handle));
  return ProgramHandle(handle);
}

/// (i mod 16) / 16 in floats, else zeros: ordinary numbers, valid indices.
static void fill(weir_buffer *buffer, const weir_tensor_info &info) {
  Bytes data(size_t(info.bytes), 0);
  if (std::string(info.dtype) == "F32")
    for (size_t i = 0; i < data.size() / 4; ++i)
      reinterpret_cast<float *>(data.data())[i] = float(i % 16) / 16;
  if (std::string(info.dtype) == "F64")
    for (size_t i = 0; i < data.size() / 8; ++i)
      reinterpret_cast<double *>(data.data())[i] = double(i % 16) / 16;
  check(weir_buffer_write(buffer, 0, data.data(), info.bytes));
}

static Contender makeContender(const DeviceHandle &device, const ArtifactHandle &artifact,
                               const ProgramHandle &program, const std::string &entry) {
  Contender contender;
  contender.program = program.get();
  contender.entry = entry;
  size_t index = 0;
  check(weir_artifact_find_entry(artifact.get(), entry.c_str(), &index));
  auto add = [&](const weir_tensor_info &info, std::vector<weir_buffer *> &list) {
    weir_buffer *buffer = nullptr;
    check(weir_buffer_create(device.get(), info.bytes, &buffer));
    contender.owned.emplace_back(buffer);
    fill(buffer, info);
    list.push_back(buffer);
  };
  weir_tensor_info info;
  for (size_t i = 0; i < weir_artifact_argument_count(artifact.get(), index); ++i) {
    check(weir_artifact_argument(artifact.get(), index, i, &info));
    add(info, contender.arguments);
  }
  for (size_t i = 0; i < weir_artifact_result_count(artifact.get(), index); ++i) {
    check(weir_artifact_result(artifact.get(), index, i, &info));
    add(info, contender.results);
  }
  return contender;
}

/// A copy that does not copy would be fast. Errors: `Error` naming it.
static void checkCopy(Contender &copy) {
  Bytes expected(static_cast<size_t>(sideBytes)), got(expected.size(), 0);
  check(weir_buffer_write(copy.results[0], 0, got.data(), sideBytes));
  copy.run(/*count=*/false);
  check(weir_buffer_read(copy.arguments[0], 0, expected.data(), sideBytes));
  check(weir_buffer_read(copy.results[0], 0, got.data(), sideBytes));
  if (got != expected)
    throw Error("the copy " + copy.entry + " gave other bytes than its argument");
}

static void print(const std::string &name, double nanoseconds, int64_t bytes) {
  std::printf("%-24s %10.3f ms %8.2f GB/s\n", name.c_str(), nanoseconds / 1e6,
              2 * double(bytes) / nanoseconds);
}

static void sweep(const std::string &path, const std::string &entry, int64_t bytes, int runs,
                  size_t deviceIndex) {
  weir_device *deviceHandle = nullptr;
  check(weir_device_open("vulkan", deviceIndex, &deviceHandle));
  DeviceHandle device(deviceHandle);
  char *profileText = nullptr;
  check(weir_device_profile(device.get(), &profileText));
  Profile profile = parseProfile(profileText, "the device's profile");
  weir_string_free(profileText);

  std::vector<Copy> copies = makeCopies();
  std::filesystem::path copyPath =
      std::filesystem::temp_directory_path() / ("copy_sweep." + std::to_string(getpid()) + ".weir");
  writeArtifact(copyPath, makeCopyArtifact(copies, profile));
  ArtifactHandle copyArtifact = openArtifact(copyPath);
  std::filesystem::remove(copyPath);
  ProgramHandle copyProgram = load(device, copyArtifact);

  // The copies share one pair of buffers; a run is ordered after the last.
  std::vector<Contender> contenders;
  Contender first = makeContender(device, copyArtifact, copyProgram, copies[0].getName());
  for (const Copy &copy : copies) {
    Contender &contender = contenders.emplace_back();
    contender.program = copyProgram.get();
    contender.entry = copy.getName();
    contender.arguments = first.arguments;
    contender.results = first.results;
  }
  ArtifactHandle artifact;
  ProgramHandle program;
  if (!path.empty()) {
    artifact = openArtifact(path);
    program = load(device, artifact);
    contenders.push_back(makeContender(device, artifact, program, entry));
  }

  for (size_t i = 0; i < copies.size(); ++i)
    checkCopy(contenders[i]);
  for (int run = 0; run <= runs; ++run) // the first warms up
    for (Contender &contender : contenders)
      contender.run(run > 0);

  std::printf("device %s, least of %d runs, GB/s of one read and one write\n",
              weir_device_name(device.get()), runs);
  size_t best = 0;
  for (size_t i = 0; i < copies.size(); ++i) {
    print(contenders[i].entry, contenders[i].nanoseconds, sideBytes);
    if (contenders[i].nanoseconds < contenders[best].nanoseconds)
      best = i;
  }
  print("best copy: " + contenders[best].entry, contenders[best].nanoseconds, sideBytes);
  if (path.empty())
    return;
  double nanoseconds = contenders.back().nanoseconds;
  print("entry: " + entry, nanoseconds, bytes);
  std::printf("share of the best copy: %.1f%%\n",
              100 * (double(bytes) / nanoseconds) /
                  (double(sideBytes) / contenders[best].nanoseconds));
}

int main(int argc, char **argv) {
  CLI::App app("Measures copies and an artifact's entry in one run");
  std::string path, entry;
  int64_t bytes = sideBytes;
  int runs = 20;
  size_t device = 0;
  auto *pathOption = app.add_option("artifact", path, "a .weir file");
  auto *entryOption = app.add_option("entry", entry, "its entry to measure");
  pathOption->needs(entryOption);
  app.add_option("--bytes-per-side", bytes,
                 "bytes that the entry must read, and must write, at least")
      ->check(CLI::PositiveNumber);
  app.add_option("--runs", runs, "measured runs of each")->check(CLI::PositiveNumber);
  app.add_option("--device", device, "index of the device");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    sweep(path, entry, bytes, runs, device);
  } catch (const Error &error) {
    std::fprintf(stderr, "copy_sweep: %s\n", error.what());
    return 1;
  }
  return 0;
}
