//===- planted.cpp - A small Vulkan program with a planted hazard ---------===//
//
// planted KERNELS CASE: four dispatches over two buffers, with just the barriers that they
// need; CASE takes one away, weakens one or adds one. KERNELS is the folder of the SPIR-V.
//
//   command 0  fill A      1  barrier (RAW)      2  copy A to B      3  barrier (WAR)
//   command 4  fill A      5  barrier (WAW)      6  fill A
//
//===----------------------------------------------------------------------===//

#include <vulkan/vulkan.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

static constexpr VkDeviceSize bytes = 1024;
static constexpr uint32_t groups = bytes / 4 / 64;

static void check(VkResult result, const char *what) {
  if (result == VK_SUCCESS)
    return;
  std::fprintf(stderr, "planted: %s failed: VkResult %d\n", what, int(result));
  std::exit(3);
}

namespace {

struct Program {
  std::string folder, name; ///< of the kernels, of the case
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkCommandPool commandPool = VK_NULL_HANDLE;
  VkDescriptorPool descriptorPool = VK_NULL_HANDLE;
  VkDescriptorSetLayout setLayout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  std::vector<VkBuffer> buffers;
  std::vector<VkDeviceMemory> memory;
  std::vector<VkPipeline> pipelines;
  PFN_vkSetDebugUtilsObjectNameEXT setName = nullptr;

  bool is(const char *other) const { return name == other; }
  void open();
  VkDeviceMemory allocate(VkBuffer buffer);
  VkBuffer makeBuffer(VkDeviceMemory shared, const char *label);
  VkPipeline makePipeline(const char *kernel);
  VkDescriptorSet makeSet(VkBuffer buffer, VkDeviceSize size = bytes);
  void close();
};

} // namespace

void Program::open() {
  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_3;
  const char *debug = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  info.enabledExtensionCount = 1;
  info.ppEnabledExtensionNames = &debug;
  check(vkCreateInstance(&info, nullptr, &instance), "vkCreateInstance");
  uint32_t count = 1;
  if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0)
    check(VK_ERROR_INITIALIZATION_FAILED, "vkEnumeratePhysicalDevices");
  float priority = 1;
  VkDeviceQueueCreateInfo queueInfo = {};
  queueInfo.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queueInfo.queueCount = 1;
  queueInfo.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan13Features features = {};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  features.synchronization2 = VK_TRUE;
  VkDeviceCreateInfo deviceInfo = {};
  deviceInfo.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  deviceInfo.pNext = &features;
  deviceInfo.queueCreateInfoCount = 1;
  deviceInfo.pQueueCreateInfos = &queueInfo;
  check(vkCreateDevice(physical, &deviceInfo, nullptr, &device), "vkCreateDevice");
  vkGetDeviceQueue(device, 0, 0, &queue);
  setName = reinterpret_cast<PFN_vkSetDebugUtilsObjectNameEXT>(
      vkGetDeviceProcAddr(device, "vkSetDebugUtilsObjectNameEXT"));

  VkCommandPoolCreateInfo poolInfo = {};
  poolInfo.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  poolInfo.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  check(vkCreateCommandPool(device, &poolInfo, nullptr, &commandPool), "vkCreateCommandPool");
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, 32};
  VkDescriptorPoolCreateInfo descriptors = {};
  descriptors.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  descriptors.maxSets = 32;
  descriptors.poolSizeCount = 1;
  descriptors.pPoolSizes = &size;
  check(vkCreateDescriptorPool(device, &descriptors, nullptr, &descriptorPool),
        "vkCreateDescriptorPool");
  VkDescriptorSetLayoutBinding binding = {};
  binding.binding = 1;
  binding.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;
  binding.descriptorCount = 1;
  binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  VkDescriptorSetLayoutCreateInfo setInfo = {};
  setInfo.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  setInfo.bindingCount = 1;
  setInfo.pBindings = &binding;
  check(vkCreateDescriptorSetLayout(device, &setInfo, nullptr, &setLayout),
        "vkCreateDescriptorSetLayout");
  VkDescriptorSetLayout both[] = {setLayout, setLayout};
  VkPipelineLayoutCreateInfo layoutInfo = {};
  layoutInfo.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layoutInfo.setLayoutCount = 2;
  layoutInfo.pSetLayouts = both;
  check(vkCreatePipelineLayout(device, &layoutInfo, nullptr, &layout), "vkCreatePipelineLayout");
}

VkDeviceMemory Program::allocate(VkBuffer buffer) {
  VkMemoryRequirements needs = {};
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  VkMemoryAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = needs.size;
  while (!(needs.memoryTypeBits >> info.memoryTypeIndex & 1))
    ++info.memoryTypeIndex;
  VkDeviceMemory made = VK_NULL_HANDLE;
  check(vkAllocateMemory(device, &info, nullptr, &made), "vkAllocateMemory");
  memory.push_back(made);
  return made;
}

/// Makes a buffer, in memory of its own if there is none to share.
VkBuffer Program::makeBuffer(VkDeviceMemory shared, const char *label) {
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  check(vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
  check(vkBindBufferMemory(device, buffer, shared ? shared : allocate(buffer), 0),
        "vkBindBufferMemory");
  buffers.push_back(buffer);
  VkDebugUtilsObjectNameInfoEXT named = {};
  named.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT;
  named.objectType = VK_OBJECT_TYPE_BUFFER;
  named.objectHandle = reinterpret_cast<uint64_t>(buffer);
  named.pObjectName = label;
  check(setName(device, &named), "vkSetDebugUtilsObjectNameEXT");
  return buffer;
}

VkPipeline Program::makePipeline(const char *kernel) {
  std::ifstream file(folder + "/" + kernel + ".spv", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<uint32_t> words(text.size() / 4);
  std::memcpy(words.data(), text.data(), words.size() * 4);
  VkShaderModuleCreateInfo moduleInfo = {};
  moduleInfo.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  moduleInfo.codeSize = words.size() * 4;
  moduleInfo.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(device, &moduleInfo, nullptr, &module), "vkCreateShaderModule");
  float value = 2;
  VkSpecializationMapEntry entry = {7, 0, sizeof(value)};
  VkSpecializationInfo constants = {1, &entry, sizeof(value), &value};
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = kernel;
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline),
        "vkCreateComputePipelines");
  vkDestroyShaderModule(device, module, nullptr);
  pipelines.push_back(pipeline);
  return pipeline;
}

VkDescriptorSet Program::makeSet(VkBuffer buffer, VkDeviceSize size) {
  VkDescriptorSetAllocateInfo allocate = {};
  allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocate.descriptorPool = descriptorPool;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &setLayout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  check(vkAllocateDescriptorSets(device, &allocate, &set), "vkAllocateDescriptorSets");
  VkDescriptorBufferInfo range = {buffer, 0, size};
  VkWriteDescriptorSet write = {};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.dstBinding = 1;
  write.descriptorCount = 1;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;
  write.pBufferInfo = &range;
  vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
  return set;
}

void Program::close() {
  for (VkPipeline pipeline : pipelines)
    vkDestroyPipeline(device, pipeline, nullptr);
  vkDestroyPipelineLayout(device, layout, nullptr);
  vkDestroyDescriptorSetLayout(device, setLayout, nullptr);
  vkDestroyDescriptorPool(device, descriptorPool, nullptr);
  vkDestroyCommandPool(device, commandPool, nullptr);
  for (VkBuffer buffer : buffers)
    vkDestroyBuffer(device, buffer, nullptr);
  for (VkDeviceMemory each : memory)
    vkFreeMemory(device, each, nullptr);
  vkDestroyDevice(device, nullptr);
  vkDestroyInstance(instance, nullptr);
}

static constexpr VkAccessFlags reads = VK_ACCESS_SHADER_READ_BIT,
                               writes = VK_ACCESS_SHADER_WRITE_BIT;

int main(int count, char **arguments) {
  static const std::set<std::string> cases = {
      "none",     "raw",       "war",   "waw",       "needless", "stage",
      "range",    "access",    "alias", "apart",     "split",    "possible",
      "indirect", "secondary", "again", "waw-again", "wide"};
  if (count != 3 || !cases.contains(arguments[2])) {
    std::fprintf(stderr, "usage: planted KERNELS CASE, one of");
    for (const std::string &each : cases)
      std::fprintf(stderr, " %s", each.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  Program program;
  program.folder = arguments[1];
  program.name = arguments[2];
  program.open();
  VkBuffer a = program.makeBuffer(VK_NULL_HANDLE, "A");
  VkBuffer b = program.makeBuffer(VK_NULL_HANDLE, "B");
  VkBuffer c = program.makeBuffer(VK_NULL_HANDLE, "C");
  // The last dispatch reaches the same bytes by another buffer.
  VkBuffer other = program.is("alias") ? program.makeBuffer(program.memory[0], "A again") : a;
  VkPipeline fill = program.makePipeline("fill"), copy = program.makePipeline("copy"),
             gather = program.makePipeline("gather");

  VkCommandBufferAllocateInfo allocate = {};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = program.commandPool;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE, secondary = VK_NULL_HANDLE;
  check(vkAllocateCommandBuffers(program.device, &allocate, &commands), "vkAllocateCommandBuffers");
  allocate.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  check(vkAllocateCommandBuffers(program.device, &allocate, &secondary),
        "vkAllocateCommandBuffers");
  VkCommandBuffer recorded = program.is("secondary") ? secondary : commands;

  VkCommandBufferInheritanceInfo inheritance = {};
  inheritance.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO;
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.pInheritanceInfo = &inheritance;

  auto bind = [&](VkPipeline pipeline, VkBuffer in, VkBuffer out, uint32_t offset) {
    VkDescriptorSet sets[] = {program.makeSet(out, bytes - offset), program.makeSet(in)};
    uint32_t offsets[] = {offset, 0};
    vkCmdBindDescriptorSets(recorded, VK_PIPELINE_BIND_POINT_COMPUTE, program.layout, 0, 2, sets, 2,
                            offsets);
    vkCmdBindPipeline(recorded, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  };
  auto dispatch = [&](VkPipeline pipeline, VkBuffer in, VkBuffer out) {
    bind(pipeline, in, out, 0);
    vkCmdDispatch(recorded, groups, 1, 1);
  };
  auto order = [&](VkPipelineStageFlags from, VkAccessFlags fromAccess, VkAccessFlags toAccess) {
    VkMemoryBarrier memory = {};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = fromAccess;
    memory.dstAccessMask = toAccess;
    vkCmdPipelineBarrier(recorded, from, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0,
                         nullptr, 0, nullptr);
  };
  const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;

  auto record = [&] {
    check(vkBeginCommandBuffer(recorded, &begin), "vkBeginCommandBuffer");
    if (program.is("indirect")) {
      uint32_t grid[] = {groups, 1, 1};
      vkCmdUpdateBuffer(recorded, c, 0, sizeof(grid), grid);
      VkMemoryBarrier memory = {};
      memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
      memory.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
      memory.dstAccessMask = VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
      vkCmdPipelineBarrier(recorded, VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, 0, 1, &memory, 0, nullptr, 0,
                           nullptr);
    }
    dispatch(fill, a, a);
    if (program.is("stage")) // what it waits for has no dispatches
      order(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, reads);
    else if (program.is("wide"))
      order(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, writes, reads | writes);
    else if (!program.is("raw"))
      order(compute, writes, reads | writes);
    if (program.is("needless"))
      order(compute, writes, reads | writes);
    if (program.is("indirect")) {
      bind(copy, a, b, 0);
      vkCmdDispatchIndirect(recorded, c, 0);
    } else {
      dispatch(program.is("possible") ? gather : copy, a, b);
    }
    if (!program.is("war") && !program.is("possible") && !program.is("indirect"))
      order(compute, 0, 0);
    bind(fill, a, a, 0); // where it is split, only the first half
    vkCmdDispatch(recorded, program.is("split") ? groups / 2 : groups, 1, 1);

    // In the newer words.
    VkBufferMemoryBarrier2 buffer = {};
    buffer.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2;
    buffer.srcStageMask = buffer.dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    buffer.srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
    buffer.dstAccessMask = program.is("access") ? VK_ACCESS_2_SHADER_STORAGE_READ_BIT
                                                : VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
    buffer.srcQueueFamilyIndex = buffer.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    buffer.buffer = a;
    buffer.size = program.is("range") ? bytes / 4 : VK_WHOLE_SIZE;
    VkDependencyInfo dependency = {};
    dependency.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
    dependency.bufferMemoryBarrierCount = 1;
    dependency.pBufferMemoryBarriers = &buffer;
    if (program.is("split")) {
      // The second half of A: nothing to order.
      bind(fill, a, a, bytes / 2);
      vkCmdDispatch(recorded, groups / 2, 1, 1);
    }
    if (!program.is("waw") && !program.is("waw-again") && !program.is("alias") &&
        !program.is("apart"))
      vkCmdPipelineBarrier2(recorded, &dependency);
    dispatch(fill, other, program.is("apart") ? c : other);
    check(vkEndCommandBuffer(recorded), "vkEndCommandBuffer");
    if (recorded == secondary) {
      check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
      vkCmdExecuteCommands(commands, 1, &secondary);
      check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    }
  };
  record();

  // Twice, and the host waits between.
  for (int run = 0; run < 2; ++run) {
    if (run == 1 && (program.is("again") || program.is("waw-again")))
      record();
    VkSubmitInfo submit = {};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    VkFenceCreateInfo fenceInfo = {};
    fenceInfo.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    VkFence fence = VK_NULL_HANDLE;
    check(vkCreateFence(program.device, &fenceInfo, nullptr, &fence), "vkCreateFence");
    check(vkQueueSubmit(program.queue, 1, &submit, fence), "vkQueueSubmit");
    check(vkWaitForFences(program.device, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    vkDestroyFence(program.device, fence, nullptr);
  }
  program.close();
  return 0;
}
