//===- VulkanProgram.h - An artifact on a Vulkan device ---------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_VULKANPROGRAM_H
#define WEIR_LIB_RUNTIME_VULKANPROGRAM_H

#include "Program.h"
#include "VulkanRecording.h"

#include <tuple>

namespace weir::runtime {

class VulkanProgram : public Program {
public:
  VulkanProgram(std::shared_ptr<VulkanDevice> device, const Artifact &artifact);
  ~VulkanProgram() override;

private:
  VulkanProgram(std::shared_ptr<VulkanDevice> device, const Artifact &artifact,
                const Profile &profile);
  std::unique_ptr<Recording> makeRecording(const Entry &entry, const Plan &plan,
                                           const std::vector<const Storage *> &allocations,
                                           const std::vector<StorageCopy> &copies,
                                           RecordingKind kind) override;
  void buildKernels(const Entry &entry, const Artifact &artifact, const Profile &profile);
  VkPipelineLayout getLayout(size_t operands, VkDescriptorSetLayout &setLayout);
  VkPipeline buildPipeline(const Kernel &kernel, const Bytes &code, const Profile &profile,
                           VkPipelineLayout layout);

  struct Layout {
    Owned<VkDescriptorSetLayout> set;
    Owned<VkPipelineLayout> pipeline; // destroyed before its set layout
  };

  std::shared_ptr<VulkanDevice> gpu;
  std::map<size_t, Layout> layouts; ///< by operand count
  /// The pipelines by code path, entry point and operand count: entries share kernels.
  std::map<std::tuple<std::string, std::string, size_t>, Owned<VkPipeline>> pipelines;
  std::map<const Entry *, std::vector<KernelCode>> kernels; ///< in the order of Plan::kernels
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_VULKANPROGRAM_H
