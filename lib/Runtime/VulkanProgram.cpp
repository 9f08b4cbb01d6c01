//===- VulkanProgram.cpp - Pipelines of an artifact -----------------------===//

#include "VulkanProgram.h"

#include "DriverCall.h"
#include "VulkanRequirements.h"

namespace weir::runtime {

static const Profile &chooseTarget(const VulkanDevice &device, const Artifact &artifact) {
  auto check = [&](const Profile &profile, Missing &missing) {
    checkRequirements(artifact, profile, device.getFacts(), missing);
  };
  return chooseTarget(artifact, "vulkan", device.getName(), check);
}

VulkanProgram::VulkanProgram(std::shared_ptr<VulkanDevice> device, const Artifact &artifact)
    : VulkanProgram(device, artifact, chooseTarget(*device, artifact)) {}

VulkanProgram::VulkanProgram(std::shared_ptr<VulkanDevice> device, const Artifact &artifact,
                             const Profile &profile)
    : Program(device, artifact, profile), gpu(std::move(device)) {
  for (const auto &[name, entry] : entries)
    buildKernels(entry, artifact, profile);
}

VulkanProgram::~VulkanProgram() { gpu->waitNoThrow(); }

std::unique_ptr<Recording>
VulkanProgram::makeRecording(const Entry &entry, const Plan &plan,
                             const std::vector<const Storage *> &allocations,
                             const std::vector<StorageCopy> &copies, RecordingKind kind) {
  return std::make_unique<VulkanRecording>(*gpu, plan, kernels[&entry], allocations, copies, kind);
}

void VulkanProgram::buildKernels(const Entry &entry, const Artifact &artifact,
                                 const Profile &profile) {
  for (const Kernel &kernel : entry.plan.kernels) {
    KernelCode code;
    code.layout = getLayout(kernel.operands.size(), code.setLayout);
    Owned<VkPipeline> &pipeline = pipelines[{kernel.code, kernel.name, kernel.operands.size()}];
    if (pipeline.get() == VK_NULL_HANDLE)
      pipeline = Owned<VkPipeline>(
          gpu->handle, buildPipeline(kernel, artifact.code.at(kernel.code), profile, code.layout),
          gpu->vk.DestroyPipeline);
    code.pipeline = pipeline.get();
    kernels[&entry].push_back(code);
  }
}

VkPipelineLayout VulkanProgram::getLayout(size_t operands, VkDescriptorSetLayout &setLayout) {
  const DeviceFunctions &vk = gpu->vk;
  Layout &layout = layouts[operands];
  if (layout.pipeline.get() == VK_NULL_HANDLE) {
    std::vector<VkDescriptorSetLayoutBinding> bindings(operands);
    for (size_t i = 0; i < operands; ++i) {
      bindings[i].binding = uint32_t(i);
      bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      bindings[i].descriptorCount = 1;
      bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo setInfo = {};
    setInfo.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    setInfo.bindingCount = uint32_t(operands);
    setInfo.pBindings = bindings.data();
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    check(vk.CreateDescriptorSetLayout(gpu->handle, &setInfo, nullptr, &set),
          "vkCreateDescriptorSetLayout");
    layout.set = Owned<VkDescriptorSetLayout>(gpu->handle, set, vk.DestroyDescriptorSetLayout);
    VkPipelineLayoutCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.setLayoutCount = 1;
    info.pSetLayouts = &set;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
    check(vk.CreatePipelineLayout(gpu->handle, &info, nullptr, &pipeline),
          "vkCreatePipelineLayout");
    layout.pipeline = Owned<VkPipelineLayout>(gpu->handle, pipeline, vk.DestroyPipelineLayout);
  }
  setLayout = layout.set.get();
  return layout.pipeline.get();
}

VkPipeline VulkanProgram::buildPipeline(const Kernel &kernel, const Bytes &code,
                                        const Profile &profile, VkPipelineLayout layout) {
  const DeviceFunctions &vk = gpu->vk;
  const DeviceFacts &facts = gpu->getFacts();
  std::vector<uint32_t> words = getWords(code, kernel.code);
  DriverCall call(
      {"building kernel '", kernel.name, "' of ", kernel.code, " on '", facts.name, "'"});
  VkShaderModuleCreateInfo moduleInfo = {};
  moduleInfo.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  moduleInfo.codeSize = words.size() * sizeof(uint32_t);
  moduleInfo.pCode = words.data();
  VkShaderModule handle = VK_NULL_HANDLE;
  check(vk.CreateShaderModule(gpu->handle, &moduleInfo, nullptr, &handle),
        "vkCreateShaderModule of '" + kernel.code + "'");
  Owned<VkShaderModule> module(gpu->handle, handle, vk.DestroyShaderModule);

  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required = {};
  required.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  required.requiredSubgroupSize = uint32_t(profile.subgroupSize);

  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = handle;
  info.stage.pName = kernel.name.c_str();
  bool canTellSize = usesSubgroups(code, kernel.code);
  if (canTellSize && profile.subgroupSize != int64_t(facts.subgroupSize))
    info.stage.pNext = &required;
  if (canTellSize && facts.fullSubgroups && kernel.workgroup[0] % profile.subgroupSize == 0)
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  info.layout = layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  check(vk.CreateComputePipelines(gpu->handle, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline),
        "vkCreateComputePipelines of kernel '" + kernel.name + "'");
  gpu->name(pipeline, kernel.name);
  return pipeline;
}

} // namespace weir::runtime
