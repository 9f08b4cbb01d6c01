//===- CudaProgram.h - An artifact on a CUDA device -------------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_CUDAPROGRAM_H
#define WEIR_LIB_RUNTIME_CUDAPROGRAM_H

#include "CudaDevice.h"
#include "Program.h"

namespace weir::runtime {

class CudaProgram : public Program {
public:
  CudaProgram(std::shared_ptr<CudaDevice> device, const Artifact &artifact);
  ~CudaProgram() override;

private:
  CudaProgram(std::shared_ptr<CudaDevice> device, const Artifact &artifact, const Profile &profile);
  std::unique_ptr<Recording> makeRecording(const Entry &entry, const Plan &plan,
                                           const std::vector<const Storage *> &allocations,
                                           const std::vector<StorageCopy> &copies,
                                           RecordingKind kind) override;
  CudaFunction getFunction(const Kernel &kernel, const Artifact &artifact);

  std::shared_ptr<CudaDevice> gpu;
  std::map<std::string, CudaOwned<CudaModule>> modules;         ///< by code path
  std::map<const Entry *, std::vector<CudaFunction>> functions; ///< in the order of Plan::kernels
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_CUDAPROGRAM_H
