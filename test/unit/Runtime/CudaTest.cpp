//===- CudaTest.cpp - The C ABI's calls of a CUDA driver ------------------===//
//
// The driver is a fake that is linked in under libcuda's name: it records calls
// and copies memory. What kernels compute is for a machine with a GPU to show.
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/FakeCuda.h"
#include "test/unit/Artifact/Sample.h"
#include "tools/weir/Handles.h"
#include "weir/weir.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

using namespace weir;
using namespace weir::test;
using tool::ArtifactHandle, tool::BufferHandle, tool::DeviceHandle, tool::ProgramHandle;

namespace {
/// Checks that every test restores the driver's state.
class Cuda : public testing::Test {
protected:
  void SetUp() override {
    takeCudaLog();
    weir_device *handle = nullptr;
    ASSERT_EQ(WEIR_OK, weir_device_open("cuda", 0, &handle)) << weir_last_error();
    device.reset(handle);
  }
  void TearDown() override {
    failCuda("", 0);
    device.reset();
    EXPECT_EQ(countLiveCuda(), 0);
  }

  weir_status tryLoad(const Artifact &artifact, ProgramHandle &program) {
    TemporaryFolder folder;
    writeArtifact(folder / "a.weir", artifact);
    weir_artifact *opened = nullptr;
    EXPECT_EQ(WEIR_OK, weir_artifact_open((folder / "a.weir").c_str(), &opened));
    ArtifactHandle owner(opened);
    weir_program *loaded = nullptr;
    weir_status status = weir_program_load(device.get(), opened, &loaded);
    program.reset(loaded);
    return status;
  }
  ProgramHandle load(const Artifact &artifact) {
    ProgramHandle program;
    EXPECT_EQ(WEIR_OK, tryLoad(artifact, program)) << weir_last_error();
    return program;
  }
  BufferHandle makeBuffer(int64_t bytes = 256) {
    weir_buffer *buffer = nullptr;
    EXPECT_EQ(WEIR_OK, weir_buffer_create(device.get(), bytes, &buffer)) << weir_last_error();
    return BufferHandle(buffer);
  }
  weir_status invoke(const ProgramHandle &program, std::vector<weir_buffer *> arguments,
                     std::vector<weir_buffer *> results, double *time = nullptr) {
    takeCudaLog();
    return weir_program_invoke(program.get(), "main", arguments.data(), arguments.size(),
                               results.data(), results.size(), time);
  }

  DeviceHandle device;
};
} // namespace

/// Returns the artifact converted to CUDA.
static Artifact toCuda(Artifact artifact) {
  artifact.manifest.targets = {getBuiltinProfile("sm_80")};
  artifact.code.clear();
  artifact.notes.clear(); // they are of the plan for Vulkan
  Plan &plan = artifact.plans[0];
  plan.target = "cuda";
  for (Kernel &kernel : plan.kernels) {
    kernel.code = "code/cuda/" + kernel.name + ".ptx";
    std::string text = ".visible .entry " + kernel.name + "(";
    for (size_t i = 0; i < kernel.operands.size(); ++i)
      text += "\n\t.param .u64 p" + std::to_string(i);
    text += "\n)\n";
    artifact.code[kernel.code] = Bytes(text.begin(), text.end());
  }
  return artifact;
}

/// Returns what the driver records of launches of so many nodes each, and a wait for them. A blank
/// is for the reader.
static std::string launchAll(const std::string &nodes) {
  std::string log;
  for (char count : nodes)
    if (count != ' ')
      log += std::string("launch ") + count + " nodes\n";
  return log + "wait\n";
}

TEST_F(Cuda, TellsWhatItIs) {
  size_t count = 0;
  EXPECT_EQ(WEIR_OK, weir_device_count("cuda", &count));
  EXPECT_EQ(count, 1u);
  EXPECT_STREQ(weir_device_name(device.get()), "Fake GPU");
  for (auto [capability, profile] :
       {std::pair("90", "sm_90a"), {"100", "sm_90"}, {"89", "sm_80"}}) {
    setenv("FAKE_CUDA_CAPABILITY", capability, 1);
    char *text = nullptr;
    ASSERT_EQ(WEIR_OK, weir_device_profile(device.get(), &text));
    EXPECT_EQ(parseProfile(text, "p").name, profile);
    weir_string_free(text);
  }
  unsetenv("FAKE_CUDA_CAPABILITY");
  char *text = nullptr;
  ASSERT_EQ(WEIR_OK, weir_device_profile(device.get(), &text));
  EXPECT_EQ(parseProfile(text, "p"), getBuiltinProfile("sm_90a"));
  weir_string_free(text);
}

TEST_F(Cuda, CopiesBytes) {
  BufferHandle buffer = makeBuffer(8);
  int32_t in[2] = {5, 7}, out = 0;
  ASSERT_EQ(WEIR_OK, weir_buffer_write(buffer.get(), 0, in, 8));
  ASSERT_EQ(WEIR_OK, weir_buffer_read(buffer.get(), 4, &out, 4));
  EXPECT_EQ(out, 7);
}

/// Two dispatches with nothing between them have no edge; a barrier is the one dispatch before it,
/// or a node behind all of them. What other edges imply has none. Only a run whose time is asked
/// for is between events.
TEST_F(Cuda, OrdersWhatThePlanOrders) {
  ProgramHandle program = load(toCuda(makeSample()));
  EXPECT_EQ(takeCudaLog(), "wait\nwrite 268 to A0\nwait\n");
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  double nanoseconds = 0;
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()}, &nanoseconds))
      << weir_last_error();
  EXPECT_EQ(takeCudaLog(), R"(graph
  0: scale 1x1x1 of 8x1x1 (A1, A0, A4) after []
  1: scale 1x1x1 of 8x1x1 (A2, A0+256, A4+256) after []
  2: join after [0 1]
  3: add 1x1x1 of 8x1x1 (A4, A4+256, A4+512) after [2]
  4: scale 1x1x1 of 8x1x1 (A1, A0, A4) after [3]
  5: add 1x1x1 of 8x1x1 (A4+512, A4, A3) after [4]
time
launch 6 nodes
time
wait
)");
  EXPECT_EQ(nanoseconds, 1.5e6);

  // Again: the graph is there. Other buffers: another graph.
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()}));
  EXPECT_EQ(takeCudaLog(), "launch 6 nodes\nwait\n");
  ASSERT_EQ(WEIR_OK, invoke(program, {w.get(), x.get()}, {y.get()}));
  EXPECT_EQ(takeCudaLog().substr(0, 6), "graph\n");
}

namespace {
/// A plan in which queue 1 makes t1 beside queue 0, which makes t0, and queue 0 waits for it.
struct TwoQueues {
  Artifact artifact = toCuda(makeSample());
  Plan &plan = artifact.plans[0];
  PlanOperand x = plan.commands[0].operands[0], c0 = plan.commands[0].operands[1],
              y{{2, 0, 256}, 2}, t0{{4, 0, 256}, 3}, t1{{4, 256, 256}, 4};
  Command onOther = dispatch(0, 0, {x, c0, t1}), signal, wait;

  TwoQueues() {
    onOther.queue = signal.queue = 1;
    signal.kind = Command::Kind::Signal;
    signal.memory = {t1};
    wait.kind = Command::Kind::Wait;
    plan.commands = {dispatch(0, 0, {x, c0, t0}), onOther, signal, wait};
  }
};
} // namespace

/// Signals and waits order across queues, and only what they cover.
TEST_F(Cuda, OrdersQueues) {
  TwoQueues queues;
  Command later = dispatch(0, 1, {queues.x, queues.c0, queues.t1});
  later.queue = 1;
  queues.plan.commands.push_back(later);
  queues.plan.commands.push_back(dispatch(1, 1, {queues.t0, queues.t1, queues.y}));
  ProgramHandle program = load(queues.artifact);
  BufferHandle a = makeBuffer(), b = makeBuffer(), r = makeBuffer();
  ASSERT_EQ(WEIR_OK, invoke(program, {a.get(), b.get()}, {r.get()})) << weir_last_error();
  EXPECT_EQ(takeCudaLog(), R"(graph
  0: scale 1x1x1 of 8x1x1 (A1, A0, A4) after []
  1: scale 1x1x1 of 8x1x1 (A1, A0, A4+256) after []
  2: scale 1x1x1 of 8x1x1 (A1, A0, A4+256) after []
  3: add 1x1x1 of 8x1x1 (A4, A4+256, A3) after [1]
launch 4 nodes
wait
)");
}

/// A barrier behind a wait orders what comes after it behind both: the dispatch before the wait,
/// and the other queue.
TEST_F(Cuda, OrdersBehindAWaitThatNoDispatchFollows) {
  TwoQueues queues;
  queues.plan.commands.push_back(barrier({{HazardKind::RAW, 0, 2, 2, 0}}, {queues.t0}));
  queues.plan.commands.push_back(dispatch(1, 1, {queues.t0, queues.t1, queues.y}));
  ProgramHandle program = load(queues.artifact);
  BufferHandle a = makeBuffer(), b = makeBuffer(), r = makeBuffer();
  ASSERT_EQ(WEIR_OK, invoke(program, {a.get(), b.get()}, {r.get()})) << weir_last_error();
  EXPECT_EQ(takeCudaLog(), R"(graph
  0: scale 1x1x1 of 8x1x1 (A1, A0, A4) after []
  1: scale 1x1x1 of 8x1x1 (A1, A0, A4+256) after []
  2: join after [0 1]
  3: add 1x1x1 of 8x1x1 (A4, A4+256, A3) after [2]
launch 4 nodes
wait
)");
}

/// One buffer for a donated argument and its result: nothing is copied. Two: a
/// copy before the graph, so that the argument stays.
TEST_F(Cuda, DonatesOrCopies) {
  ProgramHandle program = load(toCuda(makeDonatingSample()));
  int64_t result = -1;
  ASSERT_EQ(WEIR_OK, weir_program_donation(program.get(), "main", 0, &result));
  EXPECT_EQ(result, 0);
  ASSERT_EQ(WEIR_OK, weir_program_donation(program.get(), "main", 1, &result));
  EXPECT_EQ(result, -1);
  EXPECT_EQ(WEIR_BAD_ARGUMENT, weir_program_donation(program.get(), "main", 2, &result));
  EXPECT_STREQ(weir_last_error(), "entry 'main' has no argument 2: it has 2, counted from 0");

  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {x.get()})) << weir_last_error();
  EXPECT_EQ(takeCudaLog().find("\ncopy"), std::string::npos);
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()})) << weir_last_error();
  std::string log = takeCudaLog();
  EXPECT_NE(log.find("\ncopy 256 of A1 to A3\nlaunch"), std::string::npos) << log;
  EXPECT_EQ(log.find("A1,"), std::string::npos) << "a kernel got the argument: " << log;
}

/// The commands between the edges of a loop are one graph, which is launched in each trip.
TEST_F(Cuda, RunsTheTripsOfALoop) {
  ProgramHandle program = load(toCuda(makeLoopSample()));
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()})) << weir_last_error();
  const std::string graphs = R"(graph
  0: scale 1x1x1 of 8x1x1 (A1, A0, A4) after []
graph
  0: add 1x1x1 of 8x1x1 (A4, A2, A4+256) after []
  1: scale 1x1x1 of 8x1x1 (A4+256, A0, A4) after [0]
graph
  0: add 1x1x1 of 8x1x1 (A4, A2, A3) after []
)",
                    launches = launchAll("1 222 1");
  EXPECT_EQ(takeCudaLog(), graphs + launches);
  // Again: the graphs are there.
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()})) << weir_last_error();
  EXPECT_EQ(takeCudaLog(), launches);
}

/// A loop in a loop: the inner one's graph is launched in all trips of both.
TEST_F(Cuda, RunsLoopsInLoops) {
  Artifact artifact = toCuda(makeLoopSample());
  Plan &plan = artifact.plans[0];
  plan.commands[4].grid[0] = 5; // in the outer loop alone
  plan.loops[0].trips = 2;
  plan.loops.push_back({2, 4, 3});
  ProgramHandle program = load(artifact);
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()})) << weir_last_error();
  EXPECT_EQ(takeCudaLog(), R"(graph
  0: scale 1x1x1 of 8x1x1 (A1, A0, A4) after []
graph
  0: add 1x1x1 of 8x1x1 (A4, A2, A4+256) after []
graph
  0: scale 5x1x1 of 8x1x1 (A4+256, A0, A4) after []
graph
  0: add 1x1x1 of 8x1x1 (A4, A2, A3) after []
)" + launchAll("1 111 1 111 1 1"));
}

/// Each trip is timed, one dispatch after the other, and its times are added.
TEST_F(Cuda, TimesTheTripsOfALoop) {
  ProgramHandle program = load(toCuda(makeLoopSample()));
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  weir_buffer *arguments[] = {x.get(), w.get()}, *results[] = {y.get()};
  for (int round = 0; round < 2; ++round) {
    weir_dispatch_time times[4] = {};
    takeCudaLog();
    ASSERT_EQ(WEIR_OK,
              weir_program_profile(program.get(), "main", arguments, 2, results, 1, times, 4))
        << weir_last_error();
    const int64_t runs[] = {1, 3, 3, 1};
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(times[i].runs, runs[i]) << i;
    std::string log = takeCudaLog();
    size_t launches = 0;
    for (size_t at = log.find("launch"); at != std::string::npos; at = log.find("launch", at + 1))
      ++launches;
    EXPECT_EQ(launches, 5u) << log;
  }
}

/// The flag is read before each trip. The kernels run nothing here, so it stays as it is.
TEST_F(Cuda, AsksBeforeEachTrip) {
  ProgramHandle program = load(toCuda(makeFlagSample()));
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  char flag = 0;
  ASSERT_EQ(WEIR_OK, weir_buffer_write(x.get(), 0, &flag, 1));
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {x.get()})) << weir_last_error();
  EXPECT_EQ(takeCudaLog(), R"(graph
  0: add 1x1x1 of 8x1x1 (A1, A2, A4) after []
  1: scale 1x1x1 of 8x1x1 (A4, A0, A1) after [0]
wait
read 1 of A1
wait
)");
  flag = 1;
  ASSERT_EQ(WEIR_OK, weir_buffer_write(x.get(), 0, &flag, 1));
  EXPECT_EQ(WEIR_FAILED, invoke(program, {x.get(), w.get()}, {x.get()}));
  EXPECT_STREQ(weir_last_error(), "a loop did not end within its 3 trips");
  EXPECT_EQ(takeCudaLog(), R"(wait
read 1 of A1
launch 2 nodes
wait
read 1 of A1
launch 2 nodes
wait
read 1 of A1
launch 2 nodes
wait
read 1 of A1
)");
}

/// A plan may begin with a loop. An argument that it would overwrite is copied once, before the
/// flag is read, and in no trip.
TEST_F(Cuda, CopiesBeforeALoop) {
  ProgramHandle program = load(toCuda(makeFlagSample()));
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  char flag = 1;
  ASSERT_EQ(WEIR_OK, weir_buffer_write(x.get(), 0, &flag, 1));
  EXPECT_EQ(WEIR_FAILED, invoke(program, {x.get(), w.get()}, {y.get()}));
  std::string log = takeCudaLog();
  size_t copy = log.find("copy 256 of A1 to A3\n");
  ASSERT_NE(copy, std::string::npos) << log;
  EXPECT_LT(copy, log.find("read 1 of A3")) << log;
  EXPECT_EQ(log.find("copy", copy + 1), std::string::npos) << log;
  EXPECT_EQ(log.find("A1,"), std::string::npos) << "a kernel got the argument: " << log;
}

/// Kernels get the address of memory of the host; the host reads and writes it by itself.
TEST_F(Cuda, KeepsStateInHostMemory) {
  Artifact artifact = toCuda(makeDonatingSample());
  artifact.manifest.entries[0].arguments[0].kind = "state";
  artifact.manifest.entries[0].arguments[0].isInHost = true;
  ProgramHandle program = load(artifact);
  BufferHandle w = makeBuffer(), onDevice = makeBuffer();
  takeCudaLog();
  weir_buffer *made = nullptr;
  ASSERT_EQ(WEIR_OK, weir_buffer_create_in(device.get(), WEIR_MEMORY_HOST, 256, &made))
      << weir_last_error();
  BufferHandle x(made);
  float values[64] = {1, 2}, got[64] = {};
  ASSERT_EQ(WEIR_OK, weir_buffer_write(x.get(), 0, values, 256));
  ASSERT_EQ(WEIR_OK, weir_buffer_read(x.get(), 0, got, 256));
  EXPECT_EQ(takeCudaLog(), "host 256 at A3\nwait\nwait\n");
  EXPECT_EQ(got[1], 2);
  void *address = nullptr;
  ASSERT_EQ(WEIR_OK, weir_buffer_map(x.get(), &address));
  EXPECT_EQ(static_cast<float *>(address)[1], 2);

  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {x.get()})) << weir_last_error();
  std::string log = takeCudaLog();
  EXPECT_NE(log.find("(A3, "), std::string::npos) << log;
  EXPECT_EQ(log.find("\ncopy"), std::string::npos) << log;
  // A buffer in the device's memory is taken as well.
  ASSERT_EQ(WEIR_OK, invoke(program, {onDevice.get(), w.get()}, {onDevice.get()}))
      << weir_last_error();
  takeCudaLog();
  x.reset();
  EXPECT_EQ(takeCudaLog(), "wait\nfree host A3\n");

  failCuda("cuMemHostGetDevicePointer_v2", 2);
  int live = countLiveCuda();
  EXPECT_EQ(WEIR_FAILED, weir_buffer_create_in(device.get(), WEIR_MEMORY_HOST, 256, &made));
  EXPECT_STREQ(weir_last_error(), "cuMemHostGetDevicePointer failed: CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(countLiveCuda(), live);
  failCuda("cuMemHostAlloc", 2);
  EXPECT_EQ(WEIR_FAILED, weir_buffer_create_in(device.get(), WEIR_MEMORY_HOST, 256, &made));
  EXPECT_STREQ(weir_last_error(), "cuMemHostAlloc of 256 bytes failed: CUDA_ERROR_OUT_OF_MEMORY");
}

/// One after the other, each between two events, whatever the plan would allow.
TEST_F(Cuda, TimesEachDispatch) {
  Artifact artifact = toCuda(makeSample());
  artifact.plans[0].commands.resize(2);
  ProgramHandle program = load(artifact);
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  weir_buffer *arguments[] = {x.get(), w.get()}, *results[] = {y.get()};
  weir_dispatch_time times[2] = {};
  takeCudaLog();
  ASSERT_EQ(WEIR_OK,
            weir_program_profile(program.get(), "main", arguments, 2, results, 1, times, 2))
      << weir_last_error();
  EXPECT_EQ(takeCudaLog(), R"(graph
  0: time after []
  1: scale 1x1x1 of 8x1x1 (A1, A0, A4) after [0]
  2: time after [1]
  3: time after [2]
  4: scale 1x1x1 of 8x1x1 (A2, A0+256, A4+256) after [3]
  5: time after [4]
time
launch 6 nodes
time
wait
)");
  EXPECT_EQ(times[1].end, 1.5e6);
}

TEST_F(Cuda, ForgetsGraphsOfBuffersThatAreGone) {
  ProgramHandle program = load(toCuda(makeSample()));
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()}));
  int live = countLiveCuda();
  takeCudaLog();
  y.reset();
  EXPECT_EQ(takeCudaLog(), "wait\nfree A3\n");
  EXPECT_EQ(countLiveCuda(), live - 4); // the buffer, the graph, two events
}

TEST_F(Cuda, RefusesWhatTheDeviceLacks) {
  Artifact artifact = toCuda(makeSample());
  artifact.manifest.targets[0].sm = 100;
  artifact.plans[0].kernels[0].workgroup = {2048, 1, 1};
  ProgramHandle program;
  EXPECT_EQ(WEIR_BAD_ARGUMENT, tryLoad(artifact, program));
  EXPECT_STREQ(weir_last_error(),
               "the artifact cannot run on 'Fake GPU': it needs compute capability 100 where the "
               "device has 90; workgroup size of kernel 'scale' 2048 where the device has 1024; "
               "compile it for the profile that `weir devices --emit-profile` writes here");
  EXPECT_EQ(WEIR_BAD_ARGUMENT, tryLoad(makeSample(), program));
  EXPECT_STREQ(weir_last_error(), "the artifact cannot run on 'Fake GPU': it has no code for cuda, "
                                  "but for vulkan; compile it with --target=cuda");
}

/// The launch states workgroup memory that the code does not declare.
TEST_F(Cuda, GivesLaunchesWorkgroupMemory) {
  Artifact artifact = toCuda(makeSample());
  artifact.plans[0].kernels[0].workgroupMemory = 65536;
  ProgramHandle program = load(artifact);
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  takeCudaLog();
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()})) << weir_last_error();
  const std::string log = takeCudaLog();
  EXPECT_NE(log.find("0: scale 1x1x1 of 8x1x1 (shared 65536 of 65536; A"), log.npos) << log;
  EXPECT_NE(log.find("3: add 1x1x1 of 8x1x1 (A"), log.npos) << log;

  artifact.plans[0].kernels[0].workgroupMemory = 232449;
  EXPECT_EQ(WEIR_BAD_ARGUMENT, tryLoad(artifact, program));
  EXPECT_STREQ(
      weir_last_error(),
      "the artifact cannot run on 'Fake GPU': it needs bytes of workgroup memory of kernel "
      "'scale' 232449 where the device has 232448; compile it for the profile that `weir "
      "devices --emit-profile` writes here");
  artifact.plans[0].kernels[0].workgroupMemory = 65536;
  failCuda("cuFuncSetAttribute", 1);
  EXPECT_EQ(WEIR_FAILED, tryLoad(artifact, program));
  EXPECT_STREQ(weir_last_error(), "cuFuncSetAttribute of kernel 'scale' failed: CUresult 1");
  failCuda("", 0);
}

/// Tensor maps are made of operands' addresses, and follow these.
TEST_F(Cuda, MakesTensorMaps) {
  Artifact artifact = toCuda(makeSample());
  artifact.manifest.targets = {getBuiltinProfile("sm_90")};
  Kernel &kernel = artifact.plans[0].kernels[0];
  kernel.operands[0].alignment = 16;
  kernel.tensorMaps = {{0, "BF16", {2, 4, 16}, {1, 3, 64}}};
  std::string text = ".visible .entry scale(\n.param .u64 p0,\n.param .u64 p1,\n.param .u64 p2,\n"
                     ".param .align 64 .b8 p3[128]\n)\n";
  artifact.code[kernel.code] = Bytes(text.begin(), text.end());
  ProgramHandle program = load(artifact);
  BufferHandle x = makeBuffer(), w = makeBuffer(), y = makeBuffer();
  takeCudaLog();
  ASSERT_EQ(WEIR_OK, invoke(program, {x.get(), w.get()}, {y.get()})) << weir_last_error();
  const std::string log = takeCudaLog();
  // The innermost size first, with the bytes from one to the next, and that of the box.
  EXPECT_NE(log.find("(A1, A0, A4; map A1 type 9 swizzle 3 16/64 4@32/3 2@128/1) after"), log.npos)
      << log;
  EXPECT_NE(log.find("(A2, A0+256, A4+256; map A2 type 9"), log.npos) << log;

  // The device rounds f32 to tf32.
  artifact.plans[0].kernels[0].tensorMaps = {{0, "F32", {2, 4, 8}, {1, 3, 32}}};
  ProgramHandle wide = load(artifact);
  takeCudaLog();
  ASSERT_EQ(WEIR_OK, invoke(wide, {x.get(), w.get()}, {y.get()})) << weir_last_error();
  EXPECT_NE(takeCudaLog().find("map A1 type 11 swizzle 3 8/32 4@32/3 2@128/1"), std::string::npos);

  failCuda("cuTensorMapEncodeTiled", 1);
  ProgramHandle again = load(artifact);
  EXPECT_EQ(WEIR_FAILED, invoke(again, {x.get(), w.get()}, {y.get()}));
  EXPECT_NE(std::string(weir_last_error())
                .find("the driver refuses the tensor map of operand 0 of kernel 'scale', 2 x 4 x 8 "
                      "elements at address "),
            std::string::npos)
      << weir_last_error();
  failCuda("", 0);
}

TEST_F(Cuda, RunsTheBestProfileThatItCan) {
  auto makeFor = [](int64_t sm) {
    Artifact artifact = toCuda(makeSample());
    artifact.manifest.targets[0].sm = sm;
    nameTarget(artifact, "cuda.sm_" + std::to_string(sm));
    return artifact;
  };
  Artifact artifact = makeFor(80);
  addTargets(artifact, makeFor(90));
  addTargets(artifact, makeFor(100));
  EXPECT_STREQ(weir_program_target(load(artifact).get()), "cuda.sm_90");
  Artifact exact = makeFor(90);
  exact.manifest.targets[0].isSmExact = true;
  nameTarget(exact, "cuda.sm_90a");
  addTargets(artifact, std::move(exact));
  EXPECT_STREQ(weir_program_target(load(artifact).get()), "cuda.sm_90a");
  EXPECT_STREQ(weir_program_target(load(toCuda(makeSample())).get()), "cuda");
  EXPECT_EQ(weir_program_target(nullptr), nullptr);
}

TEST_F(Cuda, TellsWhatTheDriverRefuses) {
  ProgramHandle program;
  failCuda("cuModuleLoadDataEx", 218);
  EXPECT_EQ(WEIR_FAILED, tryLoad(toCuda(makeSample()), program));
  EXPECT_STREQ(weir_last_error(), "the driver of 'Fake GPU' does not take code/cuda/scale.ptx: "
                                  "CUresult 218: ptxas fatal: not today");
  failCuda("cuMemAlloc_v2", 2);
  weir_buffer *buffer = nullptr;
  EXPECT_EQ(WEIR_FAILED, weir_buffer_create(device.get(), 64, &buffer));
  EXPECT_STREQ(weir_last_error(), "cuMemAlloc of 64 bytes failed: CUDA_ERROR_OUT_OF_MEMORY");
  failCuda("cuStreamSynchronize", 700);
  EXPECT_EQ(WEIR_FAILED, weir_device_wait(device.get()));
  EXPECT_STREQ(weir_last_error(), "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS");
}

/// Each call that may fail does, one after the other, until the whole run passes.
TEST(CudaFaults, LeaveNothingBehind) {
  constexpr int outOfMemory = 2;
  int failures = 0, live = countLiveCuda();
  for (bool passed = false; !passed;) {
    failCudaCall(failures + 1, outOfMemory);
    passed = [] {
      weir_device *opened = nullptr;
      if (weir_device_open("cuda", 0, &opened) != WEIR_OK)
        return false;
      DeviceHandle device(opened);
      TemporaryFolder folder;
      writeArtifact(folder / "a.weir", toCuda(makeSample()));
      weir_artifact *artifact = nullptr;
      EXPECT_EQ(WEIR_OK, weir_artifact_open((folder / "a.weir").c_str(), &artifact));
      ArtifactHandle file(artifact);
      weir_program *loaded = nullptr;
      if (weir_program_load(device.get(), artifact, &loaded) != WEIR_OK)
        return false;
      ProgramHandle program(loaded);
      std::vector<BufferHandle> owners;
      std::vector<weir_buffer *> buffers;
      for (int i = 0; i < 3; ++i) {
        weir_buffer *buffer = nullptr;
        if (weir_buffer_create(device.get(), 256, &buffer) != WEIR_OK)
          return false;
        owners.emplace_back(buffer);
        buffers.push_back(buffer);
      }
      char bytes[256] = {};
      double time = 0;
      return weir_buffer_write(buffers[0], 0, bytes, 256) == WEIR_OK &&
             weir_program_invoke(program.get(), "main", buffers.data(), 2, &buffers[2], 1, &time) ==
                 WEIR_OK &&
             weir_buffer_read(buffers[2], 0, bytes, 256) == WEIR_OK;
    }();
    EXPECT_EQ(countLiveCuda(), live) << "call " << failures + 1;
    if (!passed) {
      EXPECT_NE(std::string(weir_last_error()).find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos)
          << weir_last_error();
      ++failures;
      ASSERT_TRUE(cudaCallCame());
    }
  }
  failCudaCall(0, 0);
  EXPECT_GE(failures, 30);
}

TEST_F(Cuda, GivesTheContextBackWhenOpeningFails) {
  int live = countLiveCuda();
  failCuda("cuStreamCreate", 2);
  weir_device *other = nullptr;
  EXPECT_EQ(WEIR_FAILED, weir_device_open("cuda", 0, &other));
  EXPECT_EQ(countLiveCuda(), live);
}

TEST(CudaMachine, RefusesDevicesThatAreNoneOfOurs) {
  weir_device *device = nullptr;
  EXPECT_EQ(WEIR_BAD_ARGUMENT, weir_device_open("cuda", 3, &device));
  EXPECT_STREQ(weir_last_error(), "there is no CUDA device 3: this machine has 1, counted from 0");
  setenv("FAKE_CUDA_CAPABILITY", "75", 1);
  EXPECT_EQ(WEIR_FAILED, weir_device_open("cuda", 0, &device));
  EXPECT_STREQ(weir_last_error(), "no CUDA device found: Weir needs compute capability 8.0, but "
                                  "'Fake GPU' has 7.5");
  unsetenv("FAKE_CUDA_CAPABILITY");
  setenv("FAKE_CUDA_DEVICES", "0", 1);
  size_t count = 0;
  EXPECT_EQ(WEIR_FAILED, weir_device_count("cuda", &count));
  EXPECT_STREQ(weir_last_error(), "no CUDA device found: the driver lists none");
  unsetenv("FAKE_CUDA_DEVICES");
}
