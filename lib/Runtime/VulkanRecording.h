//===- VulkanRecording.h - A plan as command buffers ------------*- C++ -*-===//
//
// Command buffers of a plan, which can be submitted repeatedly, also while an earlier
// submission runs.
//
// Order: a recording starts with a barrier after everything earlier on the queue, since two
// invocations share the arena and perhaps arguments and results, and ends with a barrier that
// makes its writes visible to the host. Between them are exactly the plan's barriers: for
// execution of the whole queue, and memory of the plan's views. With several queues, the others
// begin after the first barrier, and the last barrier comes after all (see Submissions.h);
// semaphores make all memory visible. A device with fewer queues than the plan runs all on one,
// in recorded order, where a wait is a barrier for all memory. Copies of donated arguments come
// before the plan's commands, followed by their own barrier.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_VULKANRECORDING_H
#define WEIR_LIB_RUNTIME_VULKANRECORDING_H

#include "VulkanDevice.h"

#include "weir/Artifact/Plan.h"

#include <vector>

namespace weir::runtime {

/// The objects that a dispatch of a kernel needs. Owned by the program.
struct KernelCode {
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout setLayout = VK_NULL_HANDLE;
};

class VulkanRecording : public Recording {
public:
  /// Records the commands, as Program::makeRecording; `kernels` are in the order of
  /// Plan::kernels.
  VulkanRecording(VulkanDevice &device, const Plan &plan, const std::vector<KernelCode> &kernels,
                  const std::vector<const Storage *> &allocations,
                  const std::vector<StorageCopy> &copies, RecordingKind kind);

  void submit(bool /*isTimed*/) override { device.submit(run); }
  void submitTimes(int64_t times) override;
  double readNanoseconds() const override;
  std::vector<weir_dispatch_time> readDispatchTimes() const override;

private:
  void allocateSets(const Plan &plan, const std::vector<KernelCode> &kernels);
  void record(const Plan &plan, const std::vector<KernelCode> &kernels,
              const std::vector<const Storage *> &allocations,
              const std::vector<StorageCopy> &copies);
  void recordSubmission(const Plan &plan, const std::vector<KernelCode> &kernels,
                        const std::vector<const Storage *> &allocations,
                        const RecordedSubmission &submission) const;
  void recordBegin(VkCommandBuffer commands, const std::vector<StorageCopy> &copies) const;
  void recordCopies(VkCommandBuffer commands, const std::vector<StorageCopy> &copies) const;
  void recordEnd(VkCommandBuffer commands) const;
  void bindOperands(VkDescriptorSet set, const Command &dispatch,
                    const std::vector<const Storage *> &allocations) const;
  void recordBarrier(VkCommandBuffer commands, const Command &barrier,
                     const std::vector<const Storage *> &allocations) const;
  void writeTimestamp(VkCommandBuffer commands, uint32_t query) const;
  std::vector<double> readTimestamps() const;

  VulkanDevice &device;
  RecordingKind kind;
  uint32_t queries = 2; ///< the first command, the last, then begin and end of each dispatch
  Owned<VkDescriptorPool> setPool;
  std::vector<VkDescriptorSet> sets; ///< by command; null: no operands
  Owned<VkQueryPool> timestamps;
  Owned<VkCommandPool> commandPool;
  std::vector<RecordedSubmission> run;
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_VULKANRECORDING_H
