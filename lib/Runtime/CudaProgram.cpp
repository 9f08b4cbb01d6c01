//===- CudaProgram.cpp - Modules of an artifact ---------------------------===//

#include "CudaProgram.h"

#include "CudaRecording.h"
#include "DriverCall.h"
#include "Requirements.h"

namespace weir::runtime {

static const Profile &chooseTarget(const CudaDevice &device, const Artifact &artifact) {
  Profile limits = device.getProfile();
  auto check = [&](const Profile &profile, Missing &missing) {
    const int64_t capability = device.getComputeCapability();
    missing.require(profile.isSmExact ? profile.sm == capability : profile.sm <= capability,
                    (profile.isSmExact ? "exactly " : "") +
                        compare("compute capability", profile.sm, capability));
    missing.require(profile.subgroupSize == limits.subgroupSize,
                    compare("subgroup size", profile.subgroupSize, limits.subgroupSize));
    checkPlans(artifact, profile.target, limits, missing);
  };
  return chooseTarget(artifact, "cuda", device.getName(), check);
}

CudaProgram::CudaProgram(std::shared_ptr<CudaDevice> device, const Artifact &artifact)
    : CudaProgram(device, artifact, chooseTarget(*device, artifact)) {}

CudaProgram::CudaProgram(std::shared_ptr<CudaDevice> device, const Artifact &artifact,
                         const Profile &profile)
    : Program(device, artifact, profile), gpu(std::move(device)) {
  for (const auto &[name, entry] : entries)
    for (const Kernel &kernel : entry.plan.kernels)
      functions[&entry].push_back(getFunction(kernel, artifact));
}

CudaProgram::~CudaProgram() { gpu->waitNoThrow(); }

CudaFunction CudaProgram::getFunction(const Kernel &kernel, const Artifact &artifact) {
  const CudaFunctions &cuda = gpu->cuda;
  if (!kernel.tensorMaps.empty() && !cuda.encodeTiled)
    throw Error("kernel '" + kernel.name + "' has tensor maps, and libcuda.so.1 has no " +
                "cuTensorMapEncodeTiled; update NVIDIA's driver, or compile for cuda:sm_90");
  gpu->use();
  CudaOwned<CudaModule> &module = modules[kernel.code];
  if (!module.get()) {
    const Bytes &code = artifact.code.at(kernel.code);
    std::string text(code.begin(), code.end()); // adds the NUL that the driver needs
    std::string log(4096, '\0');
    int options[] = {cudaJitErrorLog, cudaJitErrorLogBytes};
    void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
    CudaModule loaded = nullptr;
    DriverCall call({"building ", kernel.code, " on '", gpu->getName(), "'"});
    if (CudaResult result = cuda.loadModule(&loaded, text.c_str(), 2, options, values)) {
      log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
      throw Error("the driver of '" + gpu->getName() + "' does not take " + kernel.code + ": " +
                  cuda.getResultName(result) + (log.empty() ? "" : ": " + log));
    }
    module = CudaOwned<CudaModule>(loaded, cuda.unloadModule);
  }
  CudaFunction function = nullptr;
  cuda.check(cuda.getFunction(&function, module.get(), kernel.name.c_str()),
             "cuModuleGetFunction of kernel '" + kernel.name + "'");
  if (kernel.workgroupMemory)
    cuda.check(cuda.setFunctionAttribute(function, cudaFunctionSharedOnRequest,
                                         int(kernel.workgroupMemory)),
               "cuFuncSetAttribute of kernel '" + kernel.name + "'");
  return function;
}

std::unique_ptr<Recording>
CudaProgram::makeRecording(const Entry &entry, const Plan &plan,
                           const std::vector<const Storage *> &allocations,
                           const std::vector<StorageCopy> &copies, RecordingKind kind) {
  return std::make_unique<CudaRecording>(*gpu, plan, functions[&entry], allocations, copies, kind);
}

} // namespace weir::runtime
