//===- FaultTest.cpp - The C ABI on a driver whose calls fail -------------===//
//
// Each call that may fail does, one after the other, until the whole run passes. Whoever asked is
// told, the same call works when it is made again, and nothing stays behind in the driver.
//
//===----------------------------------------------------------------------===//

#include "test/faults/FaultLayer.h"
#include "test/unit/Runtime/Calls.h"

#include <dlfcn.h>

#include <cstdlib>

using namespace weir;
using namespace weir::test;

// Values of VkResult.
static constexpr int outOfHostMemory = -1, outOfDeviceMemory = -2, deviceLost = -4;

namespace {
/// The functions of the layer in this process.
struct Layer {
  decltype(&weir_faults_set) set;
  decltype(&weir_faults_came) came;
  decltype(&weir_faults_live) live;
  decltype(&weir_faults_be_discrete) beDiscrete;
};

class Faults : public testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_faults", 1);
    setenv("VK_ADD_LAYER_PATH", WEIR_FAULT_LAYER_FOLDER, 1);
    setenv("VK_LAYER_PATH", WEIR_FAULT_LAYER_FOLDER, 1); // of loaders before 1.3.
    void *library = dlopen(WEIR_FAULT_LAYER, RTLD_NOW);
    ASSERT_NE(nullptr, library) << dlerror();
    layer.set = reinterpret_cast<decltype(layer.set)>(dlsym(library, "weir_faults_set"));
    layer.came = reinterpret_cast<decltype(layer.came)>(dlsym(library, "weir_faults_came"));
    layer.live = reinterpret_cast<decltype(layer.live)>(dlsym(library, "weir_faults_live"));
    layer.beDiscrete =
        reinterpret_cast<decltype(layer.beDiscrete)>(dlsym(library, "weir_faults_be_discrete"));
  }
  void SetUp() override {
    layer.set(0, 0);
    size_t count = 0;
    if (weir_device_count("vulkan", &count) != WEIR_OK)
      GTEST_SKIP() << getError();
  }
  void TearDown() override { layer.beDiscrete(false); }

  /// Lets call number 1, 2, ... fail until none of `run` does. `run` gets `attempt`, to which it
  /// gives each of its calls.
  template <typename Run> void failEachCall(int result, const std::string &name, Run run);

  static Layer layer;
};
} // namespace

Layer Faults::layer;

template <typename Run> void Faults::failEachCall(int result, const std::string &name, Run run) {
  constexpr int tooMany = 1000;
  int failures = 0;
  for (int call = 1;; ++call) {
    ASSERT_LT(call, tooMany) << "the run never passes";
    layer.set(call, result);
    int failed = 0;
    // A lost device stays lost; after another failure the same call works.
    auto attempt = [&](auto &&step) {
      weir_status status = step();
      if (status == WEIR_OK)
        return true;
      ++failed;
      EXPECT_EQ(WEIR_FAILED, status) << getError();
      EXPECT_NE(getError().find(" failed: " + name), std::string::npos) << getError();
      if (result == deviceLost)
        return false;
      EXPECT_EQ(WEIR_OK, step()) << "again, after call " << call << ": " << getError();
      return true;
    };
    run(attempt);
    bool came = layer.came();
    EXPECT_EQ(0, layer.live()) << "objects live after call " << call << " failed";
    if (!came) {
      EXPECT_EQ(0, failed);
      break;
    }
    EXPECT_LE(failed, 1) << "call " << call;
    failures += failed;
  }
  // Some are of destructors, which ignore them.
  EXPECT_GE(failures, result == deviceLost ? 3 : 30);
}

/// Opens a device, loads `chain` and runs it twice with bytes to and from the device. Ends early if
/// an attempt does. Whoever destroys the handles waits.
template <typename Attempt> static void runChain(Attempt attempt) {
  weir_device *opened = nullptr;
  if (!attempt([&] { return weir_device_open("vulkan", 0, &opened); }))
    return;
  DeviceHandle device(opened);
  ArtifactHandle artifact = openArtifact(makeArtifact());
  weir_program *loaded = nullptr;
  if (!attempt([&] { return weir_program_load(device.get(), artifact.get(), &loaded); }))
    return;
  ProgramHandle program(loaded);
  weir_buffer *x = nullptr, *y = nullptr;
  attempt([&] { return weir_buffer_create(device.get(), tensorBytes, &x); });
  attempt([&] { return weir_buffer_create_in(device.get(), WEIR_MEMORY_HOST, tensorBytes, &y); });
  BufferHandle first(x), second(y);
  std::vector<float> ramp = makeRamp();
  if (!attempt([&] { return weir_buffer_write(x, 0, ramp.data(), tensorBytes); }))
    return;
  for (int times = 0; times < 2; ++times) {
    double nanoseconds = 0;
    if (!attempt([&] { return invoke(program, "chain", {x}, {y}, &nanoseconds); }))
      return;
  }
  std::vector<float> values(elements);
  if (attempt([&] { return weir_buffer_read(y, 0, values.data(), tensorBytes); }))
    EXPECT_EQ(chain(ramp), values);
}

#define RUN_CHAIN [](auto attempt) { runChain(attempt); }

TEST_F(Faults, OutOfDeviceMemory) {
  failEachCall(outOfDeviceMemory, "VK_ERROR_OUT_OF_DEVICE_MEMORY", RUN_CHAIN);
}

TEST_F(Faults, OutOfHostMemoryWhereBytesAreCopied) {
  layer.beDiscrete(true);
  failEachCall(outOfHostMemory, "VK_ERROR_OUT_OF_HOST_MEMORY", RUN_CHAIN);
}

TEST_F(Faults, DeviceLost) { failEachCall(deviceLost, "VK_ERROR_DEVICE_LOST", RUN_CHAIN); }

TEST_F(Faults, DeviceLostWhereBytesAreCopied) {
  layer.beDiscrete(true);
  failEachCall(deviceLost, "VK_ERROR_DEVICE_LOST", RUN_CHAIN);
}

/// The device is lost, not the process: another one works.
TEST_F(Faults, OpensADeviceAfterALostOne) {
  layer.set(2, deviceLost);
  runChain([](auto &&step) { return step() == WEIR_OK; });
  ASSERT_TRUE(layer.came());
  layer.set(0, 0);
  runChain([](auto &&step) {
    EXPECT_EQ(WEIR_OK, step()) << getError();
    return true;
  });
  EXPECT_EQ(0, layer.live());
}
