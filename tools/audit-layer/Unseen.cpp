//===- Unseen.cpp - Commands that touch memory and are not looked at ------===//
//
// Each is counted, so that a report lists what it leaves out.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <cstring>

namespace weir::audit {

#define WEIR_AUDIT_UNSEEN(X)                                                                       \
  X(CmdDraw)                                                                                       \
  X(CmdDrawIndexed)                                                                                \
  X(CmdDrawIndirect)                                                                               \
  X(CmdDrawIndexedIndirect)                                                                        \
  X(CmdDrawIndirectCount)                                                                          \
  X(CmdDrawIndirectCountKHR)                                                                       \
  X(CmdDrawIndirectCountAMD)                                                                       \
  X(CmdDrawIndexedIndirectCount)                                                                   \
  X(CmdDrawIndexedIndirectCountKHR)                                                                \
  X(CmdDrawIndexedIndirectCountAMD)                                                                \
  X(CmdDrawIndirectByteCountEXT)                                                                   \
  X(CmdDrawMultiEXT)                                                                               \
  X(CmdDrawMultiIndexedEXT)                                                                        \
  X(CmdDrawMeshTasksNV)                                                                            \
  X(CmdDrawMeshTasksIndirectNV)                                                                    \
  X(CmdDrawMeshTasksIndirectCountNV)                                                               \
  X(CmdDrawMeshTasksEXT)                                                                           \
  X(CmdDrawMeshTasksIndirectEXT)                                                                   \
  X(CmdDrawMeshTasksIndirectCountEXT)                                                              \
  X(CmdDrawClusterHUAWEI)                                                                          \
  X(CmdDrawClusterIndirectHUAWEI)                                                                  \
  X(CmdBeginRenderPass)                                                                            \
  X(CmdBeginRenderPass2)                                                                           \
  X(CmdBeginRenderPass2KHR)                                                                        \
  X(CmdBeginRendering)                                                                             \
  X(CmdBeginRenderingKHR)                                                                          \
  X(CmdSubpassShadingHUAWEI)                                                                       \
  X(CmdBeginTransformFeedbackEXT)                                                                  \
  X(CmdEndTransformFeedbackEXT)                                                                    \
  X(CmdBeginConditionalRenderingEXT)                                                               \
  X(CmdCopyImage)                                                                                  \
  X(CmdCopyImage2)                                                                                 \
  X(CmdCopyImage2KHR)                                                                              \
  X(CmdBlitImage)                                                                                  \
  X(CmdBlitImage2)                                                                                 \
  X(CmdBlitImage2KHR)                                                                              \
  X(CmdCopyBufferToImage)                                                                          \
  X(CmdCopyBufferToImage2)                                                                         \
  X(CmdCopyBufferToImage2KHR)                                                                      \
  X(CmdCopyImageToBuffer)                                                                          \
  X(CmdCopyImageToBuffer2)                                                                         \
  X(CmdCopyImageToBuffer2KHR)                                                                      \
  X(CmdClearColorImage)                                                                            \
  X(CmdClearDepthStencilImage)                                                                     \
  X(CmdClearAttachments)                                                                           \
  X(CmdResolveImage)                                                                               \
  X(CmdResolveImage2)                                                                              \
  X(CmdResolveImage2KHR)                                                                           \
  X(CmdWriteBufferMarkerAMD)                                                                       \
  X(CmdWriteBufferMarker2AMD)                                                                      \
  X(CmdCuLaunchKernelNVX)                                                                          \
  X(CmdPreprocessGeneratedCommandsNV)                                                              \
  X(CmdExecuteGeneratedCommandsNV)                                                                 \
  X(CmdCopyMemoryIndirectNV)                                                                       \
  X(CmdCopyMemoryToImageIndirectNV)                                                                \
  X(CmdDecompressMemoryNV)                                                                         \
  X(CmdDecompressMemoryIndirectCountNV)                                                            \
  X(CmdBuildMicromapsEXT)                                                                          \
  X(CmdCopyMicromapEXT)                                                                            \
  X(CmdCopyMicromapToMemoryEXT)                                                                    \
  X(CmdCopyMemoryToMicromapEXT)                                                                    \
  X(CmdOpticalFlowExecuteNV)                                                                       \
  X(CmdDecodeVideoKHR)                                                                             \
  X(CmdBuildAccelerationStructureNV)                                                               \
  X(CmdCopyAccelerationStructureNV)                                                                \
  X(CmdTraceRaysNV)                                                                                \
  X(CmdBuildAccelerationStructuresKHR)                                                             \
  X(CmdBuildAccelerationStructuresIndirectKHR)                                                     \
  X(CmdCopyAccelerationStructureKHR)                                                               \
  X(CmdCopyAccelerationStructureToMemoryKHR)                                                       \
  X(CmdCopyMemoryToAccelerationStructureKHR)                                                       \
  X(CmdTraceRaysKHR)                                                                               \
  X(CmdTraceRaysIndirectKHR)                                                                       \
  X(CmdTraceRaysIndirect2KHR)

enum : size_t {
#define WEIR_AUDIT_NUMBER(name) Number##name,
  WEIR_AUDIT_UNSEEN(WEIR_AUDIT_NUMBER)
#undef WEIR_AUDIT_NUMBER
};

static constexpr const char *names[] = {
#define WEIR_AUDIT_NAME(name) "vk" #name,
    WEIR_AUDIT_UNSEEN(WEIR_AUDIT_NAME)
#undef WEIR_AUDIT_NAME
};

namespace {
template <size_t number, typename Function> struct Hook;
template <size_t number, typename... Arguments>
struct Hook<number, void(VKAPI_PTR *)(VkCommandBuffer, Arguments...)> {
  static void VKAPI_CALL call(VkCommandBuffer commands, Arguments... arguments) {
    using Function = void(VKAPI_PTR *)(VkCommandBuffer, Arguments...);
    Device &device = getDevice(commands);
    Function next;
    {
      std::lock_guard lock(device.mutex);
      device.addUnseen(commands, names[number]);
      next = reinterpret_cast<Function>(device.nextUnseen.at(number));
    }
    next(commands, arguments...);
  }
};
} // namespace

PFN_vkVoidFunction getUnseenHook(Device &device, const char *name) {
  static constexpr PFN_vkVoidFunction (*getHook[])() = {
#define WEIR_AUDIT_HOOK(name)                                                                      \
  +[] { return reinterpret_cast<PFN_vkVoidFunction>(Hook<Number##name, PFN_vk##name>::call); },
      WEIR_AUDIT_UNSEEN(WEIR_AUDIT_HOOK)
#undef WEIR_AUDIT_HOOK
  };
  for (size_t number = 0; number < std::size(names); ++number) {
    if (std::strcmp(names[number], name) != 0)
      continue;
    std::lock_guard lock(device.mutex);
    device.nextUnseen[number] = device.next.GetDeviceProcAddr(device.handle, name);
    return getHook[number]();
  }
  return nullptr;
}

} // namespace weir::audit
