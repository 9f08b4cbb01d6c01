//===- VulkanRequirements.cpp - Refuses a device that lacks something -----===//

#include "VulkanRequirements.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace weir::runtime {

std::vector<uint32_t> getWords(const Bytes &code, const std::string &path) {
  constexpr uint32_t magic = 0x07230203;
  constexpr size_t headerWords = 5;
  std::vector<uint32_t> words(code.size() / sizeof(uint32_t));
  if (!words.empty())
    std::memcpy(words.data(), code.data(), words.size() * sizeof(uint32_t));
  if (code.size() % sizeof(uint32_t) != 0 || words.size() < headerWords || words[0] != magic)
    throw BadArgument("the artifact's code '" + path + "' is not SPIR-V; compile it again");
  return words;
}

/// Returns the operands of the OpCapability instructions, which come first in a module.
static std::set<uint32_t> getCapabilities(const Bytes &code, const std::string &path) {
  constexpr uint32_t opCapability = 17;
  std::set<uint32_t> capabilities;
  std::vector<uint32_t> words = getWords(code, path);
  for (size_t at = 5; at + 1 < words.size(); at += 2) {
    if (words[at] != (2u << 16 | opCapability))
      break;
    capabilities.insert(words[at + 1]);
  }
  return capabilities;
}

// Numbers from the SPIR-V specification, "Capability".
static constexpr uint32_t float64Capability = 10, cooperativeCapability = 6022;
static constexpr uint32_t firstSubgroupCapability = 61, lastSubgroupCapability = 66;

/// Whether capabilities have one by which code learns how large its subgroups are.
static bool haveSubgroups(const std::set<uint32_t> &capabilities) {
  auto found = capabilities.lower_bound(firstSubgroupCapability);
  return capabilities.contains(cooperativeCapability) ||
         (found != capabilities.end() && *found <= lastSubgroupCapability);
}

bool usesSubgroups(const Bytes &code, const std::string &path) {
  return haveSubgroups(getCapabilities(code, path));
}

namespace {
/// A capability of SPIR-V and whether the device has it.
struct Capability {
  uint32_t number;
  const char *name;
  bool available;
};
} // namespace

static void checkCode(const Artifact &artifact, const Plan &plan, const Profile &profile,
                      const DeviceFacts &facts, Missing &missing) {
  for (const Kernel &kernel : plan.kernels) {
    std::set<uint32_t> needed = getCapabilities(artifact.code.at(kernel.code), kernel.code);
    bool preserves = facts.preservesSpecialValues32 &&
                     (facts.preservesSpecialValues64 || !needed.contains(float64Capability));
    const Capability known[] = {
        {0, "Matrix", true},
        {1, "Shader", true},
        {9, "Float16", facts.float16},
        {float64Capability, "Float64", facts.float64},
        {11, "Int64", facts.int64},
        {22, "Int16", facts.int16},
        {39, "Int8", facts.int8},
        {61, "GroupNonUniform", true},
        {62, "GroupNonUniformVote", true},
        {63, "GroupNonUniformArithmetic", true},
        {64, "GroupNonUniformBallot", true},
        {65, "GroupNonUniformShuffle", true},
        {66, "GroupNonUniformShuffleRelative", true},
        {4433, "StorageBuffer16BitAccess", facts.storage16},
        {4448, "StorageBuffer8BitAccess", facts.storage8},
        {4466, "SignedZeroInfNanPreserve", preserves},
        {5345, "VulkanMemoryModel", facts.vulkanMemoryModel},
        {cooperativeCapability, "CooperativeMatrixKHR", true}, // by its shape, below
    };
    if (needed.contains(cooperativeCapability)) {
      const CooperativeShape &shape = profile.cooperative;
      missing.require(doesOffer(facts.cooperative, shape),
                      "cooperative matrices of " + std::to_string(shape.rows) + "x" +
                          std::to_string(shape.columns) + "x" + std::to_string(shape.products) +
                          " f16 f32 of subgroups for kernel '" + kernel.name +
                          "', where the device has " + printCooperative(facts.cooperative));
    }
    for (uint32_t number : needed) {
      bool met = false;
      std::string name = std::to_string(number);
      for (const Capability &capability : known)
        if (capability.number == number) {
          met = capability.available;
          name = capability.name;
        }
      missing.require(met, "the SPIR-V capability " + name + " for kernel '" + kernel.name + "'");
    }
  }
}

/// Checks that no view is empty, since Vulkan has no empty binding or barrier. `readArtifact`
/// has checked that views lie in their allocations.
static void checkViews(const Plan &plan) {
  auto check = [&](const PlanView &view) {
    if (view.bytes <= 0)
      throw BadArgument("the plan of entry '" + plan.entry +
                        "' has a view without bytes; compile the artifact "
                        "again");
  };
  for (const Command &command : plan.commands) {
    std::for_each(command.memory.begin(), command.memory.end(), check);
    std::for_each(command.operands.begin(), command.operands.end(), check);
  }
}

/// Checks that the device can have subgroups of the profile's size, if any of its code can tell.
static void checkSubgroups(const Artifact &artifact, const Profile &profile,
                           const DeviceFacts &facts, Missing &missing) {
  auto canTell = [&](const Plan &plan) {
    return plan.target == profile.target &&
           std::any_of(plan.kernels.begin(), plan.kernels.end(), [&](const Kernel &kernel) {
             return usesSubgroups(artifact.code.at(kernel.code), kernel.code);
           });
  };
  if (std::none_of(artifact.plans.begin(), artifact.plans.end(), canTell))
    return;
  int64_t subgroup = profile.subgroupSize;
  if (facts.minSubgroupSize == facts.maxSubgroupSize)
    missing.require(subgroup == facts.subgroupSize,
                    compare("subgroup size", subgroup, facts.subgroupSize));
  else
    missing.require(subgroup >= facts.minSubgroupSize && subgroup <= facts.maxSubgroupSize,
                    "subgroup size " + std::to_string(subgroup) + " where the device has " +
                        std::to_string(facts.minSubgroupSize) + " to " +
                        std::to_string(facts.maxSubgroupSize));
}

void checkRequirements(const Artifact &artifact, const Profile &profile, const DeviceFacts &facts,
                       Missing &missing) {
  Profile device = makeProfile(facts);
  missing.require(profile.api == device.api,
                  "the API " + profile.api + " where the device has " + device.api);
  checkSubgroups(artifact, profile, facts, missing);
  missing.require(
      profile.workgroupMemory <= device.workgroupMemory,
      compare("bytes of workgroup memory", profile.workgroupMemory, device.workgroupMemory));
  // A loop that ends early gives no error, so check it.
  missing.require(profile.maxLoopTrips <= device.maxLoopTrips,
                  compare("loop trips", profile.maxLoopTrips, device.maxLoopTrips));
  for (const Plan &plan : artifact.plans) {
    if (plan.target != profile.target)
      continue;
    checkViews(plan);
    checkCode(artifact, plan, profile, facts, missing);
  }
  checkPlans(artifact, profile.target, device, missing);
}

} // namespace weir::runtime
