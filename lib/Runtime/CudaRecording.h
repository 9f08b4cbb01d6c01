//===- CudaRecording.h - A plan as a CUDA graph -----------------*- C++ -*-===//
//
// One node per dispatch, and edges where the plan orders, no others: dispatches
// that no barrier separates may overlap, as they may on Vulkan, which a stream
// would not let them. A barrier is an empty node behind all of its queue so far;
// a signal is one, too, and a wait makes what follows on its queue come after it.
// An edge makes all memory visible. Queues of the plan are not streams: the graph
// is launched on the device's one stream, behind copies of donated arguments, so
// runs follow one another.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_RUNTIME_CUDARECORDING_H
#define WEIR_RUNTIME_CUDARECORDING_H

#include "CudaDevice.h"

namespace weir::runtime {

class CudaRecording : public Recording {
public:
  /// As Program::makeRecording; `functions` are as Plan::kernels.
  CudaRecording(const CudaDevice &device, const Plan &plan,
                const std::vector<CudaFunction> &functions,
                const std::vector<const Storage *> &allocations,
                const std::vector<StorageCopy> &copies, RecordingKind kind);

  void submit() override;
  double readNanoseconds() const override;
  std::vector<weir_dispatch_time> readDispatchTimes() const override;

private:
  CudaOwned<CudaEvent> makeEvent() const;
  double getNanosecondsTo(const CudaOwned<CudaEvent> &event) const;

  const CudaDevice &device;
  std::vector<StorageCopy> copies;
  CudaOwned<CudaGraphExec> exec;
  CudaOwned<CudaEvent> begin, end;
  std::vector<CudaOwned<CudaEvent>> times; ///< when profiled, begin and end of each dispatch
};

} // namespace weir::runtime

#endif // WEIR_RUNTIME_CUDARECORDING_H
