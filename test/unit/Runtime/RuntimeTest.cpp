//===- RuntimeTest.cpp - The C ABI on whatever Vulkan device there is -----===//

#include "test/unit/Runtime/Calls.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <limits>
#include <link.h>
#include <map>
#include <tuple>

using namespace weir;
using namespace weir::test;

#if __has_feature(address_sanitizer)
// Drivers and layers leak; what is allocated on behalf of the runtime is not theirs.
extern "C" const char *__lsan_default_suppressions() {
  return "leak:libvulkan_\nleak:libLLVM\nleak:libVkLayer_\n";
}

// The leak checker knows a driver's frames only while the driver is loaded.
static int keepDriver(dl_phdr_info *info, size_t, void *) {
  if (std::string(info->dlpi_name).find("/libvulkan_") != std::string::npos)
    dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  return 0;
}

namespace {
class KeepDrivers : public testing::Environment {
  void SetUp() override {
    weir_device *device = nullptr;
    if (weir_device_open("vulkan", 0, &device) == WEIR_OK)
      dl_iterate_phdr(keepDriver, nullptr);
    weir_device_close(device);
  }
};
} // namespace

static testing::Environment *keepDrivers = testing::AddGlobalTestEnvironment(new KeepDrivers);
#endif

//===----------------------------------------------------------------------===//
// Fixtures
//===----------------------------------------------------------------------===//

namespace {
class Runtime : public testing::Test {
protected:
  void SetUp() override {
    size_t count = 0;
    if (weir_device_count("vulkan", &count) != WEIR_OK)
      GTEST_SKIP() << getError();
    weir_device *handle = nullptr;
    ASSERT_EQ(WEIR_OK, weir_device_open("vulkan", 0, &handle)) << getError();
    device.reset(handle);
  }

  ProgramHandle load(const Artifact &artifact) { return test::load(device, artifact); }

  DeviceHandle device;
};
} // namespace

//===----------------------------------------------------------------------===//
// Artifacts and arguments that need no device
//===----------------------------------------------------------------------===//

TEST(RuntimeArtifact, DescribesEntries) {
  ArtifactHandle artifact = openArtifact(makeArtifact());
  ASSERT_EQ(4u, weir_artifact_entry_count(artifact.get()));
  EXPECT_STREQ("chain", weir_artifact_entry_name(artifact.get(), 0));
  EXPECT_EQ(nullptr, weir_artifact_entry_name(artifact.get(), 4));
  size_t entry = 9;
  ASSERT_EQ(WEIR_OK, weir_artifact_find_entry(artifact.get(), "nothing", &entry));
  EXPECT_EQ(3u, entry);
  EXPECT_EQ(1u, weir_artifact_argument_count(artifact.get(), entry));
  EXPECT_EQ(2u, weir_artifact_argument_count(artifact.get(), 2));
  EXPECT_EQ(0u, weir_artifact_result_count(artifact.get(), 1));
  EXPECT_EQ(0u, weir_artifact_result_count(artifact.get(), 7));
  weir_tensor_info info;
  ASSERT_EQ(WEIR_OK, weir_artifact_argument(artifact.get(), entry, 0, &info));
  EXPECT_STREQ("e", info.name);
  EXPECT_STREQ("F32", info.dtype);
  ASSERT_EQ(2u, info.rank);
  EXPECT_EQ(4, info.shape[0]);
  EXPECT_EQ(0, info.bytes);
  ASSERT_EQ(WEIR_OK, weir_artifact_result(artifact.get(), 0, 0, &info));
  EXPECT_EQ(tensorBytes, info.bytes);
}

TEST(RuntimeArtifact, TellsWhatIsDonated) {
  ArtifactHandle artifact = openArtifact(makeDonatingArtifact());
  int64_t result = 9;
  ASSERT_EQ(WEIR_OK, weir_artifact_donation(artifact.get(), 0, 0, &result)) << getError();
  EXPECT_EQ(0, result);
  ASSERT_EQ(WEIR_OK, weir_artifact_donation(artifact.get(), 0, 1, &result)) << getError();
  EXPECT_EQ(-1, result);
  weir_tensor_info info;
  ASSERT_EQ(WEIR_OK, weir_artifact_argument(artifact.get(), 0, 0, &info));
  EXPECT_EQ(1, info.donated);
  ASSERT_EQ(WEIR_OK, weir_artifact_argument(artifact.get(), 0, 1, &info));
  EXPECT_EQ(0, info.donated);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_artifact_donation(artifact.get(), 0, 2, &result),
                "entry 'step' has no argument 2: it has 2");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_artifact_donation(artifact.get(), 0, 0, nullptr),
                "'result' is null");
  Artifact other = makeDonatingArtifact();
  other.manifest.targets[0].target = "metal";
  std::map<std::string, Bytes> code;
  for (const auto &[path, bytes] : other.code)
    code["code/metal" + path.substr(path.rfind('/'))] = bytes;
  other.code = code;
  for (Plan &plan : other.plans) {
    plan.target = "metal";
    for (Kernel &kernel : plan.kernels)
      kernel.code.replace(5, 6, "metal");
  }
  result = 9;
  ASSERT_EQ(WEIR_OK, weir_artifact_donation(openArtifact(other).get(), 0, 0, &result))
      << getError();
  EXPECT_EQ(0, result);
}

TEST(RuntimeArtifact, RefusesBadQuestions) {
  ArtifactHandle artifact = openArtifact(makeArtifact());
  size_t entry = 0;
  weir_tensor_info info;
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_artifact_find_entry(artifact.get(), "chian", &entry),
                "no entry 'chian'; it has 'chain', 'increment'");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_artifact_argument(artifact.get(), 0, 1, &info),
                "entry 'chain' has no argument 1: it has 1");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_artifact_result(artifact.get(), 4, 0, &info),
                "no entry 4: it has 4");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_artifact_result(nullptr, 0, 0, &info),
                "'artifact' is null");
  weir_artifact *none = nullptr;
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_artifact_open("/nowhere/a.weir", &none), "/nowhere/a.weir");
  EXPECT_EQ(nullptr, none);
  weir_artifact_close(nullptr);
}

TEST(RuntimeArtifact, RefusesUnknownApi) {
  size_t count = 0;
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_device_count("metal", &count), "no API 'metal'");
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

TEST_F(Runtime, ProfileIsTheDevices) {
  char *text = nullptr;
  ASSERT_EQ(WEIR_OK, weir_device_profile(device.get(), &text)) << getError();
  Profile profile = parseProfile(text, "the device's profile");
  weir_string_free(text);
  EXPECT_EQ("vulkan", profile.target);
  if (std::string(weir_device_name(device.get())).starts_with("llvmpipe")) {
    EXPECT_EQ(getBuiltinProfile("lavapipe"), profile);
  }
}

TEST_F(Runtime, RefusesADeviceThatIsNotThere) {
  weir_device *none = nullptr;
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_device_open("vulkan", 99, &none),
                "no Vulkan device 99: this machine has");
}

static void openWithoutDrivers() {
  setenv("VK_DRIVER_FILES", "/nowhere.json", 1);
  setenv("VK_ICD_FILENAMES", "/nowhere.json", 1);
  weir_device *device = nullptr;
  weir_status status = weir_device_open("vulkan", 0, &device);
  std::fprintf(stderr, "%d: %s\n", int(status), weir_last_error());
  std::_Exit(0);
}

TEST(RuntimeDeathTest, SaysWhenThereIsNoDriver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(openWithoutDrivers(), testing::ExitedWithCode(0),
              "1: no Vulkan device found: .*VK_ICD_FILENAMES");
}

/// Runs examples/host_c; returns its status and all it printed.
static std::pair<int, std::string> runHost(const std::string &environment,
                                           const std::string &arguments) {
  // A sanitizer would see the driver's leaks there.
  std::string command =
      "ASAN_OPTIONS=detect_leaks=0 " + environment + " " WEIR_HOST_C " " + arguments + " 2>&1";
  FILE *pipe = popen(command.c_str(), "r");
  if (!pipe)
    return {-1, "popen failed"};
  std::string text(4096, '\0');
  text.resize(fread(text.data(), 1, text.size(), pipe));
  int status = pclose(pipe);
  return {WEXITSTATUS(status), text};
}

TEST(RuntimeLoader, SaysWhenThereIsNone) {
  TemporaryFolder folder;
  std::ofstream(folder / "libvulkan.so.1") << "no library\n";
  writeArtifact(folder / "a.weir", makeArtifact());
  auto [status, text] = runHost("LD_LIBRARY_PATH=" + (folder / ""), (folder / "a.weir") + " chain");
  EXPECT_EQ(WEIR_FAILED, status);
  EXPECT_NE(text.find("no Vulkan device found: the Vulkan loader libvulkan.so.1 cannot be opened"),
            std::string::npos)
      << text;
}

TEST_F(Runtime, HostInC) {
  TemporaryFolder folder;
  writeArtifact(folder / "a.weir", makeArtifact());
  auto [status, text] = runHost("", (folder / "a.weir") + " chain");
  EXPECT_EQ(0, status);
  for (const char *part : {"argument x: F32 [64], 256 bytes\n", "result y: F32 [64], 256 bytes\n",
                           "result y: 0 0.625 1.25 1.875 2.5 3.125 3.75 4.375\n", "checksum y: "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  std::tie(status, text) = runHost("", (folder / "a.weir") + " chian");
  EXPECT_EQ(WEIR_BAD_ARGUMENT, status);
  EXPECT_NE(text.find("no entry 'chian'"), std::string::npos) << text;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

TEST_F(Runtime, BuffersKeepBytes) {
  std::vector<float> values = makeRamp();
  values[3] = std::numeric_limits<float>::quiet_NaN();
  BufferHandle buffer = makeBuffer(device.get(), values);
  std::vector<float> got = getValues(buffer);
  EXPECT_EQ(0, std::memcmp(values.data(), got.data(), tensorBytes));
  float part = 0;
  ASSERT_EQ(WEIR_OK, weir_buffer_read(buffer.get(), 20, &part, 4));
  EXPECT_EQ(6, part);
}

TEST_F(Runtime, BuffersRefuseWhatLeavesThem) {
  BufferHandle buffer = makeBuffer(device.get(), 8);
  float value = 0;
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_buffer_write(buffer.get(), 6, &value, 4),
                "4 bytes at offset 6 leave a buffer of 8");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT,
                weir_buffer_read(buffer.get(), std::numeric_limits<int64_t>::max(), &value, 4),
                "leave a buffer of 8");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_buffer_read(buffer.get(), -4, &value, 4),
                "leave a buffer of 8");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_buffer_read(nullptr, 0, &value, 4), "'buffer' is null");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_buffer_read(buffer.get(), 0, nullptr, 4), "'data' is null");
  weir_buffer *none = nullptr;
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_buffer_create(device.get(), -1, &none), "-1 bytes");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT,
                weir_buffer_create(device.get(), std::numeric_limits<int64_t>::max(), &none),
                "exceeds the device");
  weir_buffer_destroy(nullptr);
}

TEST_F(Runtime, BuffersMayLieInHostMemory) {
  weir_buffer *made = nullptr;
  ASSERT_EQ(WEIR_OK, weir_buffer_create_in(device.get(), WEIR_MEMORY_HOST, tensorBytes, &made))
      << getError();
  BufferHandle buffer(made);
  std::vector<float> values = makeRamp();
  ASSERT_EQ(WEIR_OK, weir_buffer_write(buffer.get(), 0, values.data(), tensorBytes));
  EXPECT_EQ(values, getValues(buffer));
  void *address = nullptr;
  ASSERT_EQ(WEIR_OK, weir_buffer_map(buffer.get(), &address)) << getError();
  ASSERT_NE(nullptr, address) << "the host cannot see its own memory";
  EXPECT_EQ(values[5], static_cast<float *>(address)[5]);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT,
                weir_buffer_create_in(device.get(), weir_memory(7), tensorBytes, &made),
                "weir_buffer_create_in: there is no memory 7");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, weir_buffer_create_in(device.get(), WEIR_MEMORY_HOST, -1, &made),
                "-1 bytes");
}

/// State in host memory is updated in place, copied to another buffer, and taken from a buffer of
/// the device as well.
TEST_F(Runtime, StateMayLieInHostMemory) {
  Artifact artifact = makeDonatingArtifact();
  TensorSpec &state = artifact.manifest.entries[0].arguments[0];
  state.kind = "state";
  state.isInHost = true;
  ArtifactHandle opened = openArtifact(artifact);
  weir_tensor_info info;
  ASSERT_EQ(WEIR_OK, weir_artifact_argument(opened.get(), 0, 0, &info));
  EXPECT_EQ(WEIR_MEMORY_HOST, info.memory);
  ASSERT_EQ(WEIR_OK, weir_artifact_argument(opened.get(), 0, 1, &info));
  EXPECT_EQ(WEIR_MEMORY_DEVICE, info.memory);

  ProgramHandle program = load(artifact);
  auto makeHostBuffer = [&](const std::vector<float> &values) {
    weir_buffer *made = nullptr;
    EXPECT_EQ(WEIR_OK, weir_buffer_create_in(device.get(), WEIR_MEMORY_HOST, tensorBytes, &made));
    EXPECT_EQ(WEIR_OK, weir_buffer_write(made, 0, values.data(), tensorBytes));
    return BufferHandle(made);
  };
  BufferHandle w = makeBuffer(device.get(), makeRamp(elements, 2));
  BufferHandle onDevice = makeBuffer(device.get(), makeRamp());
  ASSERT_EQ(WEIR_OK, invoke(program, "step", {onDevice.get(), w.get()}, {onDevice.get()}))
      << getError();
  std::vector<float> expected = getValues(onDevice);
  BufferHandle x = makeHostBuffer(makeRamp()), y = makeHostBuffer(makeRamp(elements, 9));
  ASSERT_EQ(WEIR_OK, invoke(program, "step", {x.get(), w.get()}, {y.get()})) << getError();
  EXPECT_EQ(expected, getValues(y));
  EXPECT_EQ(makeRamp(), getValues(x));
  ASSERT_EQ(WEIR_OK, invoke(program, "step", {x.get(), w.get()}, {x.get()})) << getError();
  EXPECT_EQ(expected, getValues(x));
}

TEST_F(Runtime, BuffersMayBeEmpty) {
  BufferHandle buffer = makeBuffer(device.get(), 0);
  EXPECT_EQ(WEIR_OK, weir_buffer_write(buffer.get(), 0, nullptr, 0));
  EXPECT_EQ(WEIR_OK, weir_buffer_read(buffer.get(), 0, nullptr, 0));
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

TEST_F(Runtime, RunsAndReplays) {
  ProgramHandle program = load(makeArtifact());
  std::vector<float> values = makeRamp();
  BufferHandle x = makeBuffer(device.get(), values);
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  double nanoseconds = -1;
  ASSERT_EQ(WEIR_OK, invoke(program, "chain", {x.get()}, {y.get()}, &nanoseconds)) << getError();
  EXPECT_EQ(chain(values), getValues(y));
  EXPECT_GT(nanoseconds, 0);
  // The same recording, other bytes.
  values = makeRamp(elements, -7);
  ASSERT_EQ(WEIR_OK, weir_buffer_write(x.get(), 0, values.data(), tensorBytes));
  ASSERT_EQ(WEIR_OK, invoke(program, "chain", {x.get()}, {y.get()}));
  EXPECT_EQ(chain(values), getValues(y));
}

TEST_F(Runtime, TimesEachDispatch) {
  ProgramHandle program = load(makeArtifact());
  std::vector<float> values = makeRamp();
  BufferHandle x = makeBuffer(device.get(), values);
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  weir_buffer *argument = x.get(), *result = y.get();
  auto profile = [&](const char *entry, std::vector<weir_dispatch_time> &times) {
    return weir_program_profile(program.get(), entry, &argument, 1, &result, 1, times.data(),
                                times.size());
  };
  std::vector<weir_dispatch_time> times(2, {-1, -1, 0});
  ASSERT_EQ(WEIR_OK, profile("chain", times)) << getError();
  EXPECT_EQ(chain(values), getValues(y));
  EXPECT_GE(times[0].begin, 0);
  EXPECT_GT(times[0].end, times[0].begin);
  EXPECT_GE(times[1].begin, times[0].end);
  EXPECT_GT(times[1].end, times[1].begin);

  times.resize(1);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, profile("chain", times),
                "entry 'chain' has 2 dispatches, but there is room for the times of 1");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, profile("chian", times), "the program has no entry 'chian'");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT,
                weir_program_profile(program.get(), "chain", &argument, 1, &result, 1, nullptr, 2),
                "weir_program_profile: 'times' is null");
}

TEST_F(Runtime, TellsWhatEachDispatchWrote) {
  ProgramHandle program = load(makeArtifact());
  std::vector<float> values = makeRamp();
  BufferHandle x = makeBuffer(device.get(), values);
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  weir_buffer *argument = x.get(), *result = y.get();
  std::vector<std::pair<size_t, std::vector<float>>> told;
  auto observe = [](void *context, size_t dispatch, size_t, const void *data, int64_t bytes) {
    auto *first = static_cast<const float *>(data);
    static_cast<decltype(told) *>(context)->emplace_back(
        dispatch, std::vector<float>(first, first + bytes / sizeof(float)));
  };
  ASSERT_EQ(WEIR_OK,
            weir_program_observe(program.get(), "chain", &argument, 1, &result, 1, observe, &told))
      << getError();
  ASSERT_EQ(2u, told.size());
  EXPECT_EQ(0u, told[0].first);
  EXPECT_EQ(1u, told[1].first);
  EXPECT_EQ(chain(values), told[1].second);
  EXPECT_NE(told[0].second, told[1].second);
  EXPECT_EQ(chain(values), getValues(y));
  EXPECT_STATUS(
      WEIR_BAD_ARGUMENT,
      weir_program_observe(program.get(), "chain", &argument, 1, &result, 1, nullptr, nullptr),
      "weir_program_observe: 'observer' is null");
}

TEST_F(Runtime, TellsWhichWavesHaveEnded) {
  ProgramHandle program = load(makeArtifact());
  std::vector<float> values = makeRamp();
  BufferHandle x = makeBuffer(device.get(), values);
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  weir_buffer *argument = x.get(), *result = y.get();
  std::vector<int64_t> told;
  auto watcher = [](void *context, int64_t wave) {
    static_cast<decltype(told) *>(context)->push_back(wave);
  };
  auto watch = [&](std::vector<int64_t> waves) {
    told.clear();
    return weir_program_watch(program.get(), "chain", &argument, 1, &result, 1, waves.data(),
                              waves.size(), watcher, &told);
  };
  // Twice: the pieces are recorded once.
  for (int i = 0; i < 2; ++i) {
    std::fill(values.begin(), values.end(), float(i));
    ASSERT_EQ(WEIR_OK, weir_buffer_write(x.get(), 0, values.data(), tensorBytes)) << getError();
    ASSERT_EQ(WEIR_OK, watch({0, 1})) << getError();
    EXPECT_EQ((std::vector<int64_t>{0, 1}), told);
    EXPECT_EQ(chain(values), getValues(y));
  }
  // Waves of no dispatch have ended when those before them have.
  for (std::vector<int64_t> waves : {std::vector<int64_t>{}, {0}, {1}, {5}, {0, 1, 2, 7}}) {
    ASSERT_EQ(WEIR_OK, watch(waves)) << getError();
    EXPECT_EQ(waves, told);
    EXPECT_EQ(chain(values), getValues(y));
  }
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, watch({1, 0}),
                "wave 0 comes behind wave 1; list waves once, in rising order");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT,
                weir_program_watch(program.get(), "chain", &argument, 1, &result, 1, nullptr, 0,
                                   nullptr, nullptr),
                "weir_program_watch: 'watcher' is null");
}

TEST_F(Runtime, OrdersSubmissions) {
  ProgramHandle program = load(makeArtifact());
  BufferHandle s = makeBuffer(device.get(), makeRamp(elements, 0));
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  // In place, then read by another entry, then in place again: RAW, WAR, WAW
  // between recordings; `chain` twice shares the arena.
  ASSERT_EQ(WEIR_OK, submit(program, "increment", {s.get()}, {}));
  ASSERT_EQ(WEIR_OK, submit(program, "increment", {s.get()}, {}));
  ASSERT_EQ(WEIR_OK, submit(program, "chain", {s.get()}, {y.get()}));
  ASSERT_EQ(WEIR_OK, submit(program, "increment", {s.get()}, {}));
  ASSERT_EQ(WEIR_OK, submit(program, "chain", {s.get()}, {y.get()}));
  ASSERT_EQ(WEIR_OK, weir_device_wait(device.get())) << getError();
  EXPECT_EQ(makeRamp(elements, 3), getValues(s));
  EXPECT_EQ(chain(makeRamp(elements, 3)), getValues(y));
  // Reads and writes of the host wait by themselves.
  ASSERT_EQ(WEIR_OK, submit(program, "increment", {s.get()}, {}));
  EXPECT_EQ(makeRamp(elements, 4), getValues(s));
  ASSERT_EQ(WEIR_OK, submit(program, "chain", {s.get()}, {y.get()}));
  std::vector<float> zeros(elements);
  ASSERT_EQ(WEIR_OK, weir_buffer_write(s.get(), 0, zeros.data(), tensorBytes));
  EXPECT_EQ(chain(makeRamp(elements, 4)), getValues(y));
}

TEST_F(Runtime, WritesTheNextInputDuringARun) {
  // Two sets of buffers in turn: each write is of what no run uses, each read of a run that
  // others follow.
  ProgramHandle program = load(makeArtifact());
  BufferHandle inputs[2], outputs[2];
  for (int i = 0; i < 2; ++i) {
    inputs[i] = makeBuffer(device.get(), tensorBytes);
    outputs[i] = makeBuffer(device.get(), tensorBytes);
  }
  for (int step = 0; step < 200; ++step) {
    BufferHandle &input = inputs[step % 2], &output = outputs[step % 2];
    if (step >= 2)
      ASSERT_EQ(chain(makeRamp(elements, step - 2)), getValues(output));
    std::vector<float> values = makeRamp(elements, step);
    ASSERT_EQ(WEIR_OK, weir_buffer_write(input.get(), 0, values.data(), tensorBytes));
    ASSERT_EQ(WEIR_OK, submit(program, "chain", {input.get()}, {output.get()}));
  }
  ASSERT_EQ(WEIR_OK, weir_buffer_wait(outputs[1].get()));
  EXPECT_EQ(chain(makeRamp(elements, 199)), getValues(outputs[1]));
}

TEST_F(Runtime, ShowsTheHostItsBytes) {
  ProgramHandle program = load(makeArtifact());
  BufferHandle x = makeBuffer(device.get(), tensorBytes);
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  void *from = nullptr, *to = nullptr;
  ASSERT_EQ(WEIR_OK, weir_buffer_map(x.get(), &from));
  ASSERT_EQ(WEIR_OK, weir_buffer_map(y.get(), &to));
  if (!from || !to)
    GTEST_SKIP() << "the device has memory of its own";
  for (int step = 0; step < 3; ++step) {
    std::vector<float> values = makeRamp(elements, step);
    ASSERT_EQ(WEIR_OK, weir_buffer_wait(x.get()));
    std::memcpy(from, values.data(), tensorBytes);
    ASSERT_EQ(WEIR_OK, submit(program, "chain", {x.get()}, {y.get()}));
    ASSERT_EQ(WEIR_OK, weir_buffer_wait(y.get()));
    std::vector<float> got(elements);
    std::memcpy(got.data(), to, tensorBytes);
    EXPECT_EQ(chain(values), got);
  }
}

TEST_F(Runtime, BoundsTheRunsUnderWay) {
  ProgramHandle program = load(makeArtifact());
  BufferHandle s = makeBuffer(device.get(), makeRamp(elements, 0));
  for (int step = 0; step < 500; ++step)
    ASSERT_EQ(WEIR_OK, submit(program, "increment", {s.get()}, {}));
  EXPECT_EQ(makeRamp(elements, 500), getValues(s));
}

TEST_F(Runtime, ReusesBytesAfterTheirReaders) {
  ProgramHandle program = load(makeReuseArtifact());
  std::vector<float> values = makeRamp();
  BufferHandle x = makeBuffer(device.get(), values);
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  BufferHandle z = makeBuffer(device.get(), tensorBytes);
  ASSERT_EQ(WEIR_OK, invoke(program, "reuse", {x.get()}, {y.get(), z.get()})) << getError();
  std::vector<float> y3 = values, z5 = values;
  for (size_t i = 0; i < values.size(); ++i) {
    y3[i] = 3 * values[i];
    z5[i] = 5 * values[i];
  }
  EXPECT_EQ(y3, getValues(y));
  EXPECT_EQ(z5, getValues(z));
}

TEST_F(Runtime, MakesAllViewsOfABarrierVisible) {
  // The bytes of `t` in 2 views, and in more than get a range each.
  for (int64_t pieces : {2, 16}) {
    Artifact artifact = makeArtifact();
    std::vector<PlanView> &memory = artifact.plans[0].commands[1].memory;
    PlanView whole = memory[0];
    memory.clear();
    for (int64_t i = 0; i < pieces; ++i)
      memory.push_back(
          {whole.allocation, whole.offset + i * (whole.bytes / pieces), whole.bytes / pieces});
    ProgramHandle program = load(artifact);
    BufferHandle x = makeBuffer(device.get(), makeRamp());
    BufferHandle y = makeBuffer(device.get(), tensorBytes);
    ASSERT_EQ(WEIR_OK, invoke(program, "chain", {x.get()}, {y.get()})) << getError();
    EXPECT_EQ(chain(makeRamp()), getValues(y));
  }
}

TEST_F(Runtime, RunsEntriesWithoutBytes) {
  ProgramHandle program = load(makeArtifact());
  double nanoseconds = -1;
  EXPECT_EQ(WEIR_OK, invoke(program, "nothing", {nullptr}, {nullptr}, &nanoseconds)) << getError();
  EXPECT_EQ(0, nanoseconds);
  BufferHandle empty = makeBuffer(device.get(), 0);
  EXPECT_EQ(WEIR_OK, invoke(program, "nothing", {empty.get()}, {empty.get()})) << getError();
  BufferHandle full = makeBuffer(device.get(), 4);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "nothing", {full.get()}, {nullptr}),
                "argument 'e' has 0 bytes, but its buffer has 4");
}

TEST_F(Runtime, RefusesWrongBuffers) {
  ProgramHandle program = load(makeArtifact());
  BufferHandle x = makeBuffer(device.get(), makeRamp());
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  BufferHandle small = makeBuffer(device.get(), 4);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "chian", {x.get()}, {y.get()}),
                "no entry 'chian'; it has 'chain'");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "chain", {}, {y.get()}),
                "entry 'chain' has 1 arguments, but 0 were given");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "chain", {x.get()}, {y.get(), y.get()}),
                "entry 'chain' has 1 results, but 2 were given");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "chain", {small.get()}, {y.get()}),
                "entry 'chain': argument 'x' has 256 bytes, but its buffer "
                "has 4");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "chain", {x.get()}, {nullptr}),
                "entry 'chain': result 'y' has 256 bytes, but its buffer is "
                "null");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT,
                weir_program_invoke(nullptr, "chain", nullptr, 0, nullptr, 0, nullptr),
                "'program' is null");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT,
                weir_program_invoke(program.get(), "chain", nullptr, 1, nullptr, 0, nullptr),
                "'arguments' is null");
}

TEST_F(Runtime, RefusesBuffersThatOverlap) {
  ProgramHandle program = load(makeArtifact());
  BufferHandle x = makeBuffer(device.get(), makeRamp());
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "chain", {x.get()}, {x.get()}),
                "entry 'chain': argument 'x' and result 'y' are the same "
                "buffer");
  // Two arguments that nothing writes may share.
  ASSERT_EQ(WEIR_OK, invoke(program, "sum", {x.get(), x.get()}, {y.get()})) << getError();
  std::vector<float> twice = makeRamp();
  for (float &value : twice)
    value *= 2;
  EXPECT_EQ(twice, getValues(y));
  // Where the plan writes one of them they may not.
  Artifact writing = makeArtifact();
  writing.plans[2].kernels[0].operands[1].access = Access::Update;
  ProgramHandle writer = load(writing);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(writer, "sum", {x.get(), x.get()}, {y.get()}),
                "entry 'sum': argument 'a' and argument 'b' are the same "
                "buffer");
}

TEST_F(Runtime, UpdatesADonatedArgumentInPlace) {
  ProgramHandle program = load(makeDonatingArtifact());
  BufferHandle s = makeBuffer(device.get(), makeRamp());
  BufferHandle g = makeBuffer(device.get(), std::vector<float>(elements, 2));
  // Twice without waiting: each reads what the one before wrote.
  ASSERT_EQ(WEIR_OK, submit(program, "step", {s.get(), g.get()}, {s.get()})) << getError();
  ASSERT_EQ(WEIR_OK, submit(program, "step", {s.get(), g.get()}, {s.get()})) << getError();
  EXPECT_EQ(makeRamp(elements, 7), getValues(s));
  double nanoseconds = -1;
  ASSERT_EQ(WEIR_OK, invoke(program, "keep", {s.get()}, {s.get()}, &nanoseconds)) << getError();
  EXPECT_EQ(0, nanoseconds) << "nothing to do";
  EXPECT_EQ(makeRamp(elements, 7), getValues(s));
}

TEST_F(Runtime, CopiesADonatedArgumentThatStays) {
  ProgramHandle program = load(makeDonatingArtifact());
  BufferHandle s = makeBuffer(device.get(), makeRamp());
  BufferHandle g = makeBuffer(device.get(), std::vector<float>(elements, 2));
  BufferHandle t = makeBuffer(device.get(), tensorBytes);
  // The second copy comes after the first run's reads and writes of t.
  ASSERT_EQ(WEIR_OK, submit(program, "step", {s.get(), g.get()}, {t.get()})) << getError();
  ASSERT_EQ(WEIR_OK, submit(program, "step", {s.get(), g.get()}, {t.get()})) << getError();
  EXPECT_EQ(makeRamp(elements, 4), getValues(t));
  EXPECT_EQ(makeRamp(), getValues(s));
  // A copy reads what a run wrote, and a run writes what a copy read.
  ASSERT_EQ(WEIR_OK, submit(program, "step", {t.get(), g.get()}, {s.get()})) << getError();
  ASSERT_EQ(WEIR_OK, submit(program, "step", {t.get(), g.get()}, {t.get()})) << getError();
  ASSERT_EQ(WEIR_OK, submit(program, "keep", {t.get()}, {g.get()})) << getError();
  EXPECT_EQ(makeRamp(elements, 7), getValues(s));
  EXPECT_EQ(makeRamp(elements, 7), getValues(t));
  EXPECT_EQ(makeRamp(elements, 7), getValues(g));
}

TEST_F(Runtime, RefusesOtherSharingOfDonatedArguments) {
  ProgramHandle program = load(makeDonatingArtifact());
  BufferHandle s = makeBuffer(device.get(), makeRamp());
  BufferHandle t = makeBuffer(device.get(), tensorBytes);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "step", {s.get(), s.get()}, {s.get()}),
                "entry 'step': argument 's' and argument 'g' are the same buffer, but a run writes "
                "it");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "step", {s.get(), t.get()}, {t.get()}),
                "entry 'step': argument 'g' and result 't' are the same buffer");
  // Only its copy is written: the argument may be another one, too.
  ASSERT_EQ(WEIR_OK, invoke(program, "step", {s.get(), s.get()}, {t.get()})) << getError();
  std::vector<float> expected = makeRamp();
  for (float &value : expected)
    value = 2 * value + 1;
  EXPECT_EQ(expected, getValues(t));
}

TEST_F(Runtime, RefusesBuffersOfAnotherDevice) {
  weir_device *handle = nullptr;
  ASSERT_EQ(WEIR_OK, weir_device_open("vulkan", 0, &handle)) << getError();
  DeviceHandle other(handle);
  ProgramHandle program = load(makeArtifact());
  BufferHandle x = makeBuffer(other.get(), makeRamp());
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, invoke(program, "chain", {x.get()}, {y.get()}),
                "entry 'chain': the buffer of argument 0 belongs to another "
                "device");
}

TEST_F(Runtime, KeepsABoundedNumberOfRecordings) {
  ProgramHandle program = load(makeArtifact());
  BufferHandle x = makeBuffer(device.get(), makeRamp());
  std::vector<BufferHandle> results;
  for (int i = 0; i < 80; ++i)
    results.push_back(makeBuffer(device.get(), tensorBytes));
  // Twice round, without waiting: each is evicted before it comes again.
  for (int round = 0; round < 2; ++round)
    for (const BufferHandle &y : results)
      ASSERT_EQ(WEIR_OK, submit(program, "chain", {x.get()}, {y.get()})) << getError();
  for (const BufferHandle &y : results)
    EXPECT_EQ(chain(makeRamp()), getValues(y));
}

TEST_F(Runtime, HandlesMayBeClosedInAnyOrder) {
  ProgramHandle program = load(makeArtifact());
  BufferHandle x = makeBuffer(device.get(), makeRamp());
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  ASSERT_EQ(WEIR_OK, submit(program, "chain", {x.get()}, {y.get()}));
  device.reset();
  EXPECT_EQ(chain(makeRamp()), getValues(y));
  program.reset();
  EXPECT_EQ(chain(makeRamp()), getValues(y));
}

//===----------------------------------------------------------------------===//
// Requirements
//===----------------------------------------------------------------------===//

TEST_F(Runtime, RefusesArtifactsThatNeedMore) {
  Artifact artifact = makeArtifact();
  declareSubgroups(artifact);
  Profile &profile = artifact.manifest.targets[0];
  profile.subgroupSize = 1024;
  profile.workgroupSize = profile.maxWorkgroupSize = 1024;
  profile.workgroupMemory = int64_t(1) << 31;
  artifact.plans[0].commands[0].grid = {1, 1, (int64_t(1) << 32) - 1};
  artifact.plans[2].kernels[0].workgroup = {1 << 20, 1 << 20, 1 << 20};
  weir_status status = tryLoad(device.get(), artifact);
  EXPECT_EQ(WEIR_BAD_ARGUMENT, status);
  std::string error = getError();
  // Everything at once, in one sentence.
  for (const char *part : {"the artifact cannot run on '", "subgroup size 1024 where",
                           "bytes of workgroup memory 2147483648 where",
                           "grid size of kernel 'twice' 4294967295 where",
                           "workgroup size of kernel 'add'", "weir devices --emit-profile"})
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
}

TEST_F(Runtime, RefusesLoopsThatWouldEndEarly) {
  if (!std::string(weir_device_name(device.get())).starts_with("llvmpipe"))
    GTEST_SKIP() << "only lavapipe bounds its loops";
  Artifact artifact = makeArtifact();
  artifact.manifest.targets[0].maxLoopTrips = 65536;
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, tryLoad(device.get(), artifact),
                "loop trips 65536 where the device has 65535");
}

TEST_F(Runtime, RefusesCapabilitiesThatItDoesNotEnable) {
  Artifact artifact = makeArtifact();
  artifact.code["code/vulkan/twice.spv"] =
      makeKernel("twice", 2, "%result = OpFMul %f32 %two %v0\n", "OpCapability Geometry\n");
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, tryLoad(device.get(), artifact),
                "the SPIR-V capability 2 for kernel 'twice'");
}

TEST_F(Runtime, RefusesCodeThatIsNone) {
  Artifact artifact = makeArtifact();
  artifact.code["code/vulkan/twice.spv"] = {'w', 'e', 'i', 'r'};
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, tryLoad(device.get(), artifact),
                "'code/vulkan/twice.spv' is not SPIR-V");
}

TEST_F(Runtime, RefusesOtherTargets) {
  Artifact artifact = makeArtifact();
  artifact.manifest.targets[0].target = "cuda";
  artifact.manifest.targets[0].sm = 80;
  for (Plan &plan : artifact.plans) {
    plan.target = "cuda";
    for (Kernel &kernel : plan.kernels)
      kernel.code.replace(0, std::strlen("code/vulkan"), "code/cuda");
  }
  std::map<std::string, Bytes> code;
  for (auto &[path, bytes] : artifact.code)
    code["code/cuda" + path.substr(std::strlen("code/vulkan"))] = bytes;
  artifact.code = code;
  EXPECT_STATUS(WEIR_BAD_ARGUMENT, tryLoad(device.get(), artifact),
                "it has no code for vulkan, but for cuda");
}

//===----------------------------------------------------------------------===//
// Wrong on purpose: run under the validation layer, which must report them, so
// that its silence about the others means something (see CMakeLists.txt)
//===----------------------------------------------------------------------===//

TEST_F(Runtime, DISABLED_LacksReadAfterWrite) {
  ProgramHandle program = load(makeArtifact(/*withBarrier=*/false));
  BufferHandle x = makeBuffer(device.get(), makeRamp());
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  EXPECT_EQ(WEIR_OK, invoke(program, "chain", {x.get()}, {y.get()}));
}

TEST_F(Runtime, DISABLED_LacksWriteAfterRead) {
  ProgramHandle program = load(makeReuseArtifact(/*withWar=*/false));
  BufferHandle x = makeBuffer(device.get(), makeRamp());
  BufferHandle y = makeBuffer(device.get(), tensorBytes);
  BufferHandle z = makeBuffer(device.get(), tensorBytes);
  EXPECT_EQ(WEIR_OK, invoke(program, "reuse", {x.get()}, {y.get(), z.get()}));
}
