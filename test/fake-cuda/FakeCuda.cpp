//===- FakeCuda.cpp - A CUDA driver that records its calls ----------------===//

#include "test/fake-cuda/FakeCuda.h"

#include "lib/Runtime/CudaApi.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

using namespace weir::runtime;

namespace weir::runtime {
struct CudaContextObject {};
struct CudaStreamObject {};
struct CudaEventObject {};
struct CudaModuleObject {
  std::string text;
};
struct CudaFunctionObject {
  std::string name;
  size_t parameters = 0, maps = 0;
  int shared = 49152; ///< bytes that a launch may ask for
};
struct CudaGraphNodeObject {
  int number = 0;
};
struct CudaGraphObject {
  std::vector<std::unique_ptr<CudaGraphNodeObject>> nodes;
};
struct CudaGraphExecObject {
  size_t nodes = 0;
};
} // namespace weir::runtime

namespace {
struct State {
  std::ostringstream log;
  std::string failing;
  int failure = 0;
  int calls = 0, failingCall = 0;
  int live = 0;
  std::vector<std::pair<CudaAddress, size_t>> allocations;
  std::set<CudaAddress> freed;
  std::vector<std::unique_ptr<CudaFunctionObject>> functions;
  CudaContextObject context;
};
} // namespace

static State &state() {
  static State instance;
  return instance;
}

std::string weir::test::takeCudaLog() {
  std::string text = state().log.str();
  state().log.str("");
  return text;
}

void weir::test::failCuda(const std::string &symbol, int result) {
  state().failing = symbol;
  state().failure = result;
}

void weir::test::failCudaCall(int call, int result) {
  state().calls = 0;
  state().failingCall = call;
  state().failure = result;
}

bool weir::test::cudaCallCame() { return state().calls >= state().failingCall; }

int weir::test::countLiveCuda() { return state().live; }

static int readNumber(const char *name, int otherwise) {
  const char *text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

static std::string print(CudaAddress address) {
  const auto &allocations = state().allocations;
  for (size_t i = allocations.size(); i-- > 0;) {
    auto [begin, bytes] = allocations[i];
    if (address < begin || address >= begin + bytes || state().freed.count(begin))
      continue;
    std::string offset = address == begin ? "" : "+" + std::to_string(address - begin);
    return "A" + std::to_string(i) + offset;
  }
  return "nowhere";
}

static std::string print(const CudaGraphNode *nodes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? " " : "") + std::to_string(nodes[i]->number);
  return "[" + text + "]";
}

static CudaGraphNode addNode(CudaGraph graph) {
  auto node = std::make_unique<CudaGraphNodeObject>();
  node->number = int(graph->nodes.size());
  return graph->nodes.emplace_back(std::move(node)).get();
}

#define FAKE(name, ...)                                                                            \
  extern "C" CudaResult name(__VA_ARGS__);                                                         \
  extern "C" CudaResult name(__VA_ARGS__)
/// Whether a call is to fail: those of a symbol, or that of a number.
static bool doesFail(const char *symbol) {
  return state().failing == symbol || ++state().calls == state().failingCall;
}

#define BEGIN(name)                                                                                \
  if (doesFail(name))                                                                              \
  return state().failure

template <typename Object> static CudaResult destroy(Object *object) {
  delete object;
  --state().live;
  return 0;
}
template <typename Object> static CudaResult create(Object **object) {
  *object = new Object();
  ++state().live;
  return 0;
}

FAKE(cuInit, unsigned) {
  BEGIN("cuInit");
  return 0;
}
FAKE(cuGetErrorName, CudaResult result, const char **name) {
  *name = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                          : nullptr;
  return *name ? 0 : 1;
}
FAKE(cuDeviceGetCount, int *count) {
  BEGIN("cuDeviceGetCount");
  *count = readNumber("FAKE_CUDA_DEVICES", 1);
  return 0;
}
FAKE(cuDeviceGet, CudaDeviceNumber *device, int ordinal) {
  BEGIN("cuDeviceGet");
  *device = ordinal;
  return 0;
}
FAKE(cuDeviceGetName, char *name, int bytes, CudaDeviceNumber) {
  BEGIN("cuDeviceGetName");
  std::strncpy(name, "Fake GPU", size_t(bytes));
  return 0;
}
FAKE(cuDeviceGetAttribute, int *value, int attribute, CudaDeviceNumber) {
  BEGIN("cuDeviceGetAttribute");
  static const std::map<int, int> values = {
      {cudaMaxThreadsPerBlock, 1024},
      {cudaMaxGridX, 2147483647},
      {cudaMaxGridX + 1, 65535},
      {cudaMaxGridX + 2, 65535},
      {cudaWarpSize, 32},
      {cudaMaxSharedOnRequest, readNumber("FAKE_CUDA_SHARED", 232448)}};
  int capability = readNumber("FAKE_CUDA_CAPABILITY", 90);
  if (attribute == cudaComputeMajor)
    *value = capability / 10;
  else if (attribute == cudaComputeMinor)
    *value = capability % 10;
  else
    *value = values.at(attribute);
  return 0;
}
FAKE(cuDevicePrimaryCtxRetain, CudaContext *context, CudaDeviceNumber) {
  BEGIN("cuDevicePrimaryCtxRetain");
  ++state().live;
  state().allocations.clear();
  *context = &state().context;
  return 0;
}
FAKE(cuDevicePrimaryCtxRelease_v2, CudaDeviceNumber) {
  --state().live;
  return 0;
}
FAKE(cuCtxSetCurrent, CudaContext context) {
  BEGIN("cuCtxSetCurrent");
  return context == &state().context ? 0 : 1;
}

FAKE(cuMemAlloc_v2, CudaAddress *address, size_t bytes) {
  BEGIN("cuMemAlloc_v2");
  *address = reinterpret_cast<CudaAddress>(std::calloc(bytes, 1));
  state().freed.erase(*address);
  state().allocations.emplace_back(*address, bytes);
  ++state().live;
  return 0;
}
FAKE(cuMemFree_v2, CudaAddress address) {
  state().log << "free " << print(address) << "\n";
  state().freed.insert(address);
  std::free(reinterpret_cast<void *>(address));
  --state().live;
  return 0;
}
FAKE(cuMemHostAlloc, void **bytes, size_t count, unsigned flags) {
  BEGIN("cuMemHostAlloc");
  *bytes = std::calloc(count, 1);
  auto address = reinterpret_cast<CudaAddress>(*bytes);
  state().freed.erase(address);
  state().allocations.emplace_back(address, count);
  state().log << "host " << count << " at " << print(address)
              << (flags & cudaHostOnDevice ? "" : ", not for kernels") << "\n";
  ++state().live;
  return 0;
}
FAKE(cuMemHostGetDevicePointer_v2, CudaAddress *address, void *bytes, unsigned) {
  BEGIN("cuMemHostGetDevicePointer_v2");
  *address = reinterpret_cast<CudaAddress>(bytes);
  return 0;
}
FAKE(cuMemFreeHost, void *bytes) {
  auto address = reinterpret_cast<CudaAddress>(bytes);
  state().log << "free host " << print(address) << "\n";
  state().freed.insert(address);
  std::free(bytes);
  --state().live;
  return 0;
}
FAKE(cuMemcpyHtoD_v2, CudaAddress to, const void *from, size_t bytes) {
  BEGIN("cuMemcpyHtoD_v2");
  state().log << "write " << bytes << " to " << print(to) << "\n";
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
FAKE(cuMemcpyDtoH_v2, void *to, CudaAddress from, size_t bytes) {
  BEGIN("cuMemcpyDtoH_v2");
  state().log << "read " << bytes << " of " << print(from) << "\n";
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return 0;
}
FAKE(cuMemcpyDtoDAsync_v2, CudaAddress to, CudaAddress from, size_t bytes, CudaStream) {
  BEGIN("cuMemcpyDtoDAsync_v2");
  state().log << "copy " << bytes << " of " << print(from) << " to " << print(to) << "\n";
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return 0;
}

FAKE(cuModuleLoadDataEx, CudaModule *module, const void *image, unsigned count, int *options,
     void **values) {
  if (doesFail("cuModuleLoadDataEx")) {
    if (count == 2 && options[0] == cudaJitErrorLog)
      std::strcpy(static_cast<char *>(values[0]), "ptxas fatal: not today");
    return state().failure;
  }
  create(module);
  (*module)->text = static_cast<const char *>(image);
  return 0;
}
FAKE(cuModuleUnload, CudaModule module) { return destroy(module); }
/// Counts the parameters as the text states them.
FAKE(cuFuncSetAttribute, CudaFunction function, int attribute, int value) {
  BEGIN("cuFuncSetAttribute");
  if (attribute != cudaFunctionSharedOnRequest || value > 232448)
    return 1;
  function->shared = value;
  return 0;
}
FAKE(cuModuleGetFunction, CudaFunction *function, CudaModule module, const char *name) {
  BEGIN("cuModuleGetFunction");
  size_t at = module->text.find(".entry " + std::string(name) + "(");
  if (at == std::string::npos)
    return 500;
  auto found = std::make_unique<CudaFunctionObject>();
  found->name = name;
  size_t end = module->text.find(')', at);
  while ((at = module->text.find(".param .u64", at + 1)) < end)
    ++found->parameters;
  for (at = module->text.find(".entry " + std::string(name) + "(");
       (at = module->text.find("[128]", at + 1)) < end;)
    ++found->maps;
  *function = state().functions.emplace_back(std::move(found)).get();
  return 0;
}

FAKE(cuStreamCreate, CudaStream *stream, unsigned) {
  BEGIN("cuStreamCreate");
  return create(stream);
}
FAKE(cuStreamDestroy_v2, CudaStream stream) { return destroy(stream); }
FAKE(cuStreamSynchronize, CudaStream) {
  BEGIN("cuStreamSynchronize");
  state().log << "wait\n";
  return 0;
}
FAKE(cuEventCreate, CudaEvent *event, unsigned) {
  BEGIN("cuEventCreate");
  return create(event);
}
FAKE(cuEventDestroy_v2, CudaEvent event) { return destroy(event); }
FAKE(cuEventRecord, CudaEvent, CudaStream) {
  BEGIN("cuEventRecord");
  state().log << "time\n";
  return 0;
}
FAKE(cuEventElapsedTime, float *milliseconds, CudaEvent, CudaEvent) {
  BEGIN("cuEventElapsedTime");
  *milliseconds = 1.5f;
  return 0;
}

FAKE(cuGraphCreate, CudaGraph *graph, unsigned) {
  BEGIN("cuGraphCreate");
  state().log << "graph\n";
  return create(graph);
}
FAKE(cuGraphDestroy, CudaGraph graph) { return destroy(graph); }
FAKE(cuGraphAddKernelNode, CudaGraphNode *node, CudaGraph graph, const CudaGraphNode *after,
     size_t count, const CudaKernelNode *kernel) {
  BEGIN("cuGraphAddKernelNode");
  *node = addNode(graph);
  state().log << "  " << (*node)->number << ": " << kernel->function->name << " " << kernel->gridX
              << "x" << kernel->gridY << "x" << kernel->gridZ << " of " << kernel->blockX << "x"
              << kernel->blockY << "x" << kernel->blockZ << " (";
  if (kernel->sharedBytes)
    state().log << "shared " << kernel->sharedBytes << " of " << kernel->function->shared << "; ";
  for (size_t i = 0; i < kernel->function->parameters; ++i)
    state().log << (i ? ", " : "")
                << print(*static_cast<const CudaAddress *>(kernel->parameters[i]));
  for (size_t i = 0; i < kernel->function->maps; ++i)
    state().log << "; map "
                << static_cast<const CudaTensorMap *>(
                       kernel->parameters[kernel->function->parameters + i])
                       ->bytes;
  state().log << ") after " << print(after, count) << "\n";
  return 0;
}
FAKE(cuTensorMapEncodeTiled, CudaTensorMap *map, int type, unsigned rank, CudaAddress address,
     const uint64_t *shape, const uint64_t *strides, const uint32_t *box, const uint32_t *, int,
     int swizzle, int, int) {
  BEGIN("cuTensorMapEncodeTiled");
  std::string text =
      print(address) + " type " + std::to_string(type) + " swizzle " + std::to_string(swizzle);
  for (unsigned i = 0; i < rank; ++i)
    text += " " + std::to_string(shape[i]) + (i ? "@" + std::to_string(strides[i - 1]) : "") + "/" +
            std::to_string(box[i]);
  std::strncpy(reinterpret_cast<char *>(map->bytes), text.c_str(), sizeof(map->bytes) - 1);
  return address % 16 ? 1 : 0;
}
FAKE(cuGraphAddEmptyNode, CudaGraphNode *node, CudaGraph graph, const CudaGraphNode *after,
     size_t count) {
  BEGIN("cuGraphAddEmptyNode");
  *node = addNode(graph);
  state().log << "  " << (*node)->number << ": join after " << print(after, count) << "\n";
  return 0;
}
FAKE(cuGraphAddEventRecordNode, CudaGraphNode *node, CudaGraph graph, const CudaGraphNode *after,
     size_t count, CudaEvent) {
  BEGIN("cuGraphAddEventRecordNode");
  *node = addNode(graph);
  state().log << "  " << (*node)->number << ": time after " << print(after, count) << "\n";
  return 0;
}
FAKE(cuGraphInstantiateWithFlags, CudaGraphExec *exec, CudaGraph graph, unsigned long long) {
  BEGIN("cuGraphInstantiateWithFlags");
  create(exec);
  (*exec)->nodes = graph->nodes.size();
  return 0;
}
FAKE(cuGraphExecDestroy, CudaGraphExec exec) { return destroy(exec); }
FAKE(cuGraphLaunch, CudaGraphExec exec, CudaStream) {
  BEGIN("cuGraphLaunch");
  state().log << "launch " << exec->nodes << " nodes\n";
  return 0;
}
