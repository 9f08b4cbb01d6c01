//===- CudaRecording.h - A plan as a CUDA graph -----------------*- C++ -*-===//
//
// A graph has one node per dispatch, and edges only where the plan orders: dispatches without a
// barrier between them may overlap, as on Vulkan; a stream would order them all. A barrier is
// the one dispatch before it, or an empty node that depends on all of them; so is a signal, and
// nodes after a wait depend on its signal. An edge makes all memory visible. Queues of the plan are
// not streams: the graph is launched on the device's one stream, after copies of donated arguments,
// so runs follow one another.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_CUDARECORDING_H
#define WEIR_LIB_RUNTIME_CUDARECORDING_H

#include "CudaDevice.h"

namespace weir::runtime {

class CudaRecording : public Recording {
public:
  /// Builds the graph, as Program::makeRecording; `functions` are in the order of
  /// Plan::kernels.
  CudaRecording(const CudaDevice &device, const Plan &plan,
                const std::vector<CudaFunction> &functions,
                const std::vector<const Storage *> &allocations,
                const std::vector<StorageCopy> &copies, RecordingKind kind);

  void submit(bool isTimed) override;
  double readNanoseconds() const override;
  std::vector<weir_dispatch_time> readDispatchTimes() const override;

private:
  CudaOwned<CudaEvent> makeEvent() const;
  double getNanosecondsTo(const CudaOwned<CudaEvent> &event) const;

  const CudaDevice &device;
  std::vector<StorageCopy> copies;
  CudaOwned<CudaGraphExec> exec;
  CudaOwned<CudaEvent> begin, end;
  std::vector<CudaOwned<CudaEvent>> times; ///< if profiled, begin and end of each dispatch
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_CUDARECORDING_H
