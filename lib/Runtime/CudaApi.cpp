//===- CudaApi.cpp - Opens the driver, fills the table --------------------===//

#include "CudaApi.h"

#include "DriverCall.h"
#include "weir/Artifact/Error.h"

#include <dlfcn.h>

namespace weir::runtime {

std::string CudaFunctions::getResultName(CudaResult result) const {
  const char *name = nullptr;
  if (getErrorName(result, &name) != 0 || !name)
    return "CUresult " + std::to_string(result);
  return name;
}

void CudaFunctions::check(CudaResult result, const std::string &call) const {
  if (result != 0)
    throw Error(call + " failed: " + getResultName(result));
}

CudaFunctions openCuda() {
  // Never closed: the driver's threads keep using it.
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error("no CUDA device found: the driver's libcuda.so.1 cannot be opened; install "
                "NVIDIA's driver, or run on another device");
  CudaFunctions cuda;
#define WEIR_LOAD(name, symbol, parameters)                                                        \
  cuda.name = reinterpret_cast<decltype(cuda.name)>(dlsym(library, symbol));                       \
  if (!cuda.name)                                                                                  \
    throw Error("no CUDA device found: libcuda.so.1 has no " symbol                                \
                ", so it is older than CUDA 12; update NVIDIA's driver");
  WEIR_CUDA_FUNCTIONS(WEIR_LOAD)
#undef WEIR_LOAD
  cuda.encodeTiled = reinterpret_cast<CudaEncodeTiled>(dlsym(library, "cuTensorMapEncodeTiled"));
  DriverCall call({"loading the driver of CUDA"});
  if (CudaResult result = cuda.init(0))
    throw Error("no CUDA device found: cuInit failed: " + cuda.getResultName(result));
  return cuda;
}

} // namespace weir::runtime
