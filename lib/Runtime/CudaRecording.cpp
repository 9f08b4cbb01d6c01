//===- CudaRecording.cpp - Builds a graph from a plan ---------------------===//

#include "CudaRecording.h"

#include "weir/Artifact/Error.h"

#include <map>

namespace weir::runtime {

namespace {
class GraphBuilder {
public:
  GraphBuilder(const CudaFunctions &cuda, CudaGraph graph, const Plan &plan,
               const std::vector<CudaFunction> &functions,
               const std::vector<const Storage *> &allocations)
      : cuda(cuda), graph(graph), plan(plan), functions(functions), allocations(allocations) {}

  void build();
  /// Builds a graph that runs dispatches one after the other, each between two of `times`.
  void buildProfiled(const std::vector<CudaOwned<CudaEvent>> &times);

private:
  /// The nodes of a queue so far.
  struct Queue {
    std::vector<CudaGraphNode> before; ///< nodes that the next dispatch depends on
    std::vector<CudaGraphNode> open;   ///< dispatches that no node depends on yet
    size_t covered = 0;                ///< first nodes of `before` that one of `open` depends on
  };

  CudaGraphNode join(Queue &queue);
  CudaGraphNode addDispatch(const Command &command, const std::vector<CudaGraphNode> &after);

  const CudaFunctions &cuda;
  CudaGraph graph;
  const Plan &plan;
  const std::vector<CudaFunction> &functions;
  const std::vector<const Storage *> &allocations;
  std::map<int64_t, Queue> queues;
  std::map<int64_t, CudaGraphNode> signals;
};
} // namespace

/// Returns a node on which later ones depend to come after all of the queue: the only one, or a new
/// empty one. Edges that others imply are left out, which the driver would keep: with them a chain
/// of 1,300 small dispatches took an H200 55 us each, where one alone takes 4.4.
CudaGraphNode GraphBuilder::join(Queue &queue) {
  std::vector<CudaGraphNode> after = queue.open;
  after.insert(after.end(), queue.before.begin() + ptrdiff_t(queue.covered), queue.before.end());
  if (after.size() == 1)
    return after.front();
  CudaGraphNode node = nullptr;
  cuda.check(cuda.addEmpty(&node, graph, after.data(), after.size()), "cuGraphAddEmptyNode");
  return node;
}

/// Returns the tensor map of an operand at an address. Errors: `Error` if the driver refuses it.
static CudaTensorMap encode(const CudaFunctions &cuda, const Kernel &kernel, const TensorMap &map,
                            CudaAddress address) {
  const size_t rank = map.shape.size();
  std::vector<uint64_t> shape, strides;
  std::vector<uint32_t> box, ones(rank, 1);
  std::string sizes;
  for (size_t i = rank; i-- > 0;) {
    shape.push_back(uint64_t(map.shape[i]));
    box.push_back(uint32_t(map.box[i]));
    if (i + 1 < rank)
      strides.push_back(uint64_t(map.getStride(i)));
    sizes = std::to_string(map.shape[i]) + (sizes.empty() ? "" : " x ") + sizes;
  }
  const int type = map.dtype == "F32"    ? cudaTensorTf32
                   : map.dtype == "BF16" ? cudaTensorBFloat16
                                         : cudaTensorFloat16;
  CudaTensorMap encoded = {};
  if (CudaResult result = cuda.encodeTiled(
          &encoded, type, unsigned(rank), address, shape.data(), strides.data(), box.data(),
          ones.data(), /*interleave=*/0, cudaTensorSwizzle128, cudaTensorPromoteTo256,
          /*outOfBoundsFill=*/0))
    throw Error("the driver refuses the tensor map of operand " + std::to_string(map.operand) +
                " of kernel '" + kernel.name + "', " + sizes + " elements at address " +
                std::to_string(address) + ": cuTensorMapEncodeTiled: " +
                cuda.getResultName(result) + "; compile for cuda:sm_90, which needs none");
  return encoded;
}

CudaGraphNode GraphBuilder::addDispatch(const Command &command,
                                        const std::vector<CudaGraphNode> &after) {
  const Kernel &kernel = plan.kernels[size_t(command.kernel)];
  std::vector<CudaAddress> addresses;
  for (const PlanView &view : command.operands)
    addresses.push_back(getAddress(*allocations[size_t(view.allocation)]) +
                        CudaAddress(view.offset));
  std::vector<void *> parameters;
  for (CudaAddress &address : addresses)
    parameters.push_back(&address);
  std::vector<CudaTensorMap> maps;
  for (const TensorMap &map : kernel.tensorMaps)
    maps.push_back(encode(cuda, kernel, map, addresses[size_t(map.operand)]));
  for (CudaTensorMap &map : maps)
    parameters.push_back(&map);
  CudaKernelNode launch = {};
  launch.function = functions[size_t(command.kernel)];
  launch.gridX = unsigned(command.grid[0]);
  launch.gridY = unsigned(command.grid[1]);
  launch.gridZ = unsigned(command.grid[2]);
  launch.blockX = unsigned(kernel.workgroup[0]);
  launch.blockY = unsigned(kernel.workgroup[1]);
  launch.blockZ = unsigned(kernel.workgroup[2]);
  launch.sharedBytes = unsigned(kernel.workgroupMemory);
  launch.parameters = parameters.data();
  CudaGraphNode node = nullptr;
  cuda.check(cuda.addKernel(&node, graph, after.data(), after.size(), &launch),
             "cuGraphAddKernelNode of kernel '" + kernel.name + "'");
  return node;
}

void GraphBuilder::build() {
  for (const Command &command : plan.commands) {
    Queue &queue = queues[command.queue];
    switch (command.kind) {
    case Command::Kind::Dispatch:
      queue.open.push_back(addDispatch(command, queue.before));
      queue.covered = queue.before.size();
      break;
    case Command::Kind::Barrier: {
      CudaGraphNode node = join(queue);
      queue = {{node}, {}};
      break;
    }
    case Command::Kind::Signal:
      signals[command.signal] = join(queue);
      break;
    case Command::Kind::Wait:
      // Dispatches before the wait are not ordered with those after it.
      queue.before.push_back(signals.at(command.signal));
      break;
    }
  }
}

void GraphBuilder::buildProfiled(const std::vector<CudaOwned<CudaEvent>> &times) {
  std::vector<CudaGraphNode> last;
  auto time = times.begin();
  auto addTime = [&] {
    CudaGraphNode node = nullptr;
    cuda.check(cuda.addEventRecord(&node, graph, last.data(), last.size(), (time++)->get()),
               "cuGraphAddEventRecordNode");
    last = {node};
  };
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    addTime();
    last = {addDispatch(command, last)};
    addTime();
  }
}

CudaOwned<CudaEvent> CudaRecording::makeEvent() const {
  CudaEvent event = nullptr;
  device.cuda.check(device.cuda.createEvent(&event, 0), "cuEventCreate");
  return {event, device.cuda.destroyEvent};
}

CudaRecording::CudaRecording(const CudaDevice &device, const Plan &plan,
                             const std::vector<CudaFunction> &functions,
                             const std::vector<const Storage *> &allocations,
                             const std::vector<StorageCopy> &copies, RecordingKind kind)
    : device(device), copies(copies) {
  const CudaFunctions &cuda = device.cuda;
  device.use();
  begin = makeEvent();
  end = makeEvent();
  CudaGraph created = nullptr;
  cuda.check(cuda.createGraph(&created, 0), "cuGraphCreate");
  CudaOwned<CudaGraph> graph(created, cuda.destroyGraph);
  GraphBuilder builder(cuda, graph.get(), plan, functions, allocations);
  if (kind == RecordingKind::Profiled) {
    for (const Command &command : plan.commands)
      for (int i = 0; command.kind == Command::Kind::Dispatch && i < 2; ++i)
        times.push_back(makeEvent());
    builder.buildProfiled(times);
  } else {
    builder.build();
  }
  CudaGraphExec instance = nullptr;
  cuda.check(cuda.instantiate(&instance, graph.get(), 0), "cuGraphInstantiateWithFlags");
  exec = CudaOwned<CudaGraphExec>(instance, cuda.destroyExec);
}

void CudaRecording::submit(bool isTimed) {
  const CudaFunctions &cuda = device.cuda;
  CudaStream stream = device.getStream();
  device.use();
  // An event between two runs in a queue takes about as long as a small kernel.
  if (isTimed)
    cuda.check(cuda.recordEvent(begin.get(), stream), "cuEventRecord");
  for (const StorageCopy &copy : copies)
    cuda.check(cuda.copyAsync(getAddress(*copy.to), getAddress(*copy.from),
                              size_t(copy.from->bytes), stream),
               "cuMemcpyDtoDAsync");
  cuda.check(cuda.launch(exec.get(), stream), "cuGraphLaunch");
  if (isTimed)
    cuda.check(cuda.recordEvent(end.get(), stream), "cuEventRecord");
}

double CudaRecording::getNanosecondsTo(const CudaOwned<CudaEvent> &event) const {
  float milliseconds = 0;
  device.use();
  device.cuda.check(device.cuda.getElapsed(&milliseconds, begin.get(), event.get()),
                    "cuEventElapsedTime");
  return double(milliseconds) * 1e6;
}

double CudaRecording::readNanoseconds() const { return getNanosecondsTo(end); }

std::vector<weir_dispatch_time> CudaRecording::readDispatchTimes() const {
  std::vector<weir_dispatch_time> result;
  for (size_t i = 0; i + 1 < times.size(); i += 2)
    result.push_back({getNanosecondsTo(times[i]), getNanosecondsTo(times[i + 1]), 1});
  return result;
}

} // namespace weir::runtime
