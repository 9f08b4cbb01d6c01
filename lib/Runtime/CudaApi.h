//===- CudaApi.h - The CUDA driver API, opened at run time ------*- C++ -*-===//
//
// The part of the driver API that Weir calls, declared by hand: building needs no CUDA, running
// needs only libcuda.so.1.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_CUDAAPI_H
#define WEIR_LIB_RUNTIME_CUDAAPI_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace weir::runtime {

using CudaResult = int; ///< 0 is success
using CudaDeviceNumber = int;
using CudaAddress = uint64_t;
using CudaContext = struct CudaContextObject *;
using CudaModule = struct CudaModuleObject *;
using CudaFunction = struct CudaFunctionObject *;
using CudaStream = struct CudaStreamObject *;
using CudaEvent = struct CudaEventObject *;
using CudaGraph = struct CudaGraphObject *;
using CudaGraphNode = struct CudaGraphNodeObject *;
using CudaGraphExec = struct CudaGraphExecObject *;

/// The launch of a kernel node. `parameters[i]` points to parameter i, which is copied when the
/// node is created.
struct CudaKernelNode {
  CudaFunction function;
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  void **parameters;
  void **extra;
};

// Numbers of the driver API.
inline constexpr int cudaMaxThreadsPerBlock = 1;
inline constexpr int cudaMaxGridX = 5; ///< y and z follow
inline constexpr int cudaWarpSize = 10;
inline constexpr int cudaComputeMajor = 75;
inline constexpr int cudaComputeMinor = 76;
inline constexpr int cudaMaxSharedOnRequest = 97;     ///< of a block, CU_..._PER_BLOCK_OPTIN
inline constexpr int cudaFunctionSharedOnRequest = 8; ///< CU_FUNC_..._DYNAMIC_SHARED_SIZE_BYTES
inline constexpr int cudaJitErrorLog = 5;
inline constexpr int cudaJitErrorLogBytes = 6;
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaHostOnDevice = 2; ///< CU_MEMHOSTALLOC_DEVICEMAP

/// All that a device needs to copy boxes of a tensor (CUtensorMap), which the driver alone can
/// read.
struct alignas(64) CudaTensorMap {
  unsigned char bytes[128];
};
inline constexpr int cudaTensorFloat16 = 6, cudaTensorBFloat16 = 9,
                     cudaTensorTf32 = 11;      ///< CU_TENSOR_MAP_DATA_TYPE_...; the last rounds f32
inline constexpr int cudaTensorSwizzle128 = 3; ///< CU_TENSOR_MAP_SWIZZLE_128B
inline constexpr int cudaTensorPromoteTo256 = 3; ///< CU_TENSOR_MAP_L2_PROMOTION_L2_256B

/// Makes a tensor map. Sizes, strides in bytes of all dimensions but the innermost, and the box
/// count from the innermost dimension on.
using CudaEncodeTiled = CudaResult (*)(CudaTensorMap *map, int type, unsigned rank,
                                       CudaAddress address, const uint64_t *shape,
                                       const uint64_t *strides, const uint32_t *box,
                                       const uint32_t *elementStrides, int interleave, int swizzle,
                                       int promotion, int outOfBoundsFill);

/// The driver's functions: Weir's name, the symbol, the parameters.
#define WEIR_CUDA_FUNCTIONS(F)                                                                     \
  F(init, "cuInit", (unsigned flags))                                                              \
  F(getErrorName, "cuGetErrorName", (CudaResult result, const char **name))                        \
  F(getCount, "cuDeviceGetCount", (int *count))                                                    \
  F(getDevice, "cuDeviceGet", (CudaDeviceNumber * device, int ordinal))                            \
  F(getName, "cuDeviceGetName", (char *name, int bytes, CudaDeviceNumber device))                  \
  F(getAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CudaDeviceNumber device))    \
  F(retainContext, "cuDevicePrimaryCtxRetain", (CudaContext * context, CudaDeviceNumber device))   \
  F(releaseContext, "cuDevicePrimaryCtxRelease_v2", (CudaDeviceNumber device))                     \
  F(setContext, "cuCtxSetCurrent", (CudaContext context))                                          \
  F(allocate, "cuMemAlloc_v2", (CudaAddress * address, size_t bytes))                              \
  F(free, "cuMemFree_v2", (CudaAddress address))                                                   \
  F(allocateHost, "cuMemHostAlloc", (void **bytes, size_t count, unsigned flags))                  \
  F(freeHost, "cuMemFreeHost", (void *bytes))                                                      \
  F(getHostAddress, "cuMemHostGetDevicePointer_v2",                                                \
    (CudaAddress * address, void *bytes, unsigned flags))                                          \
  F(copyFromHost, "cuMemcpyHtoD_v2", (CudaAddress to, const void *from, size_t bytes))             \
  F(copyToHost, "cuMemcpyDtoH_v2", (void *to, CudaAddress from, size_t bytes))                     \
  F(copyAsync, "cuMemcpyDtoDAsync_v2",                                                             \
    (CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream))                           \
  F(loadModule, "cuModuleLoadDataEx",                                                              \
    (CudaModule * module, const void *image, unsigned count, int *options, void **values))         \
  F(unloadModule, "cuModuleUnload", (CudaModule module))                                           \
  F(getFunction, "cuModuleGetFunction",                                                            \
    (CudaFunction * function, CudaModule module, const char *name))                                \
  F(setFunctionAttribute, "cuFuncSetAttribute", (CudaFunction function, int attribute, int value)) \
  F(createStream, "cuStreamCreate", (CudaStream * stream, unsigned flags))                         \
  F(destroyStream, "cuStreamDestroy_v2", (CudaStream stream))                                      \
  F(synchronize, "cuStreamSynchronize", (CudaStream stream))                                       \
  F(createEvent, "cuEventCreate", (CudaEvent * event, unsigned flags))                             \
  F(destroyEvent, "cuEventDestroy_v2", (CudaEvent event))                                          \
  F(recordEvent, "cuEventRecord", (CudaEvent event, CudaStream stream))                            \
  F(getElapsed, "cuEventElapsedTime", (float *milliseconds, CudaEvent from, CudaEvent to))         \
  F(createGraph, "cuGraphCreate", (CudaGraph * graph, unsigned flags))                             \
  F(destroyGraph, "cuGraphDestroy", (CudaGraph graph))                                             \
  F(addKernel, "cuGraphAddKernelNode",                                                             \
    (CudaGraphNode * node, CudaGraph graph, const CudaGraphNode *after, size_t count,              \
     const CudaKernelNode *kernel))                                                                \
  F(addEmpty, "cuGraphAddEmptyNode",                                                               \
    (CudaGraphNode * node, CudaGraph graph, const CudaGraphNode *after, size_t count))             \
  F(addEventRecord, "cuGraphAddEventRecordNode",                                                   \
    (CudaGraphNode * node, CudaGraph graph, const CudaGraphNode *after, size_t count,              \
     CudaEvent event))                                                                             \
  F(instantiate, "cuGraphInstantiateWithFlags",                                                    \
    (CudaGraphExec * exec, CudaGraph graph, unsigned long long flags))                             \
  F(destroyExec, "cuGraphExecDestroy", (CudaGraphExec exec))                                       \
  F(launch, "cuGraphLaunch", (CudaGraphExec exec, CudaStream stream))

struct CudaFunctions {
#define WEIR_MEMBER(name, symbol, parameters) CudaResult(*name) parameters = nullptr;
  WEIR_CUDA_FUNCTIONS(WEIR_MEMBER)
#undef WEIR_MEMBER
  /// cuTensorMapEncodeTiled; null: the driver has none.
  CudaEncodeTiled encodeTiled = nullptr;

  /// Checks a result. Errors: `Error` "CALL failed: NAME" unless `result` is success.
  void check(CudaResult result, const std::string &call) const;
  std::string getResultName(CudaResult result) const;
};

/// Opens the driver and initializes it. Errors: `Error` naming what is missing.
CudaFunctions openCuda();

/// An object of the driver, destroyed by `destroy`.
template <typename Handle> class CudaOwned {
public:
  CudaOwned() = default;
  CudaOwned(Handle handle, CudaResult (*destroy)(Handle)) : handle(handle), destroy(destroy) {}
  CudaOwned(CudaOwned &&other) noexcept : handle(other.handle), destroy(other.destroy) {
    other.handle = Handle();
  }
  CudaOwned &operator=(CudaOwned &&other) noexcept {
    std::swap(handle, other.handle);
    std::swap(destroy, other.destroy);
    return *this;
  }
  ~CudaOwned() {
    if (handle)
      destroy(handle);
  }
  Handle get() const { return handle; }

private:
  Handle handle = Handle();
  CudaResult (*destroy)(Handle) = nullptr;
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_CUDAAPI_H
