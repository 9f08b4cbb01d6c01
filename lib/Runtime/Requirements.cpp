//===- Requirements.cpp - Refuses a device that lacks something -----------===//

#include "Requirements.h"

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
    throw BadArgument("the artifact's code '" + path + "' is no SPIR-V; compile it again");
  return words;
}

/// The operands of the OpCapability instructions, which come first in a module.
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

namespace {
/// A capability of SPIR-V and whether a device has it.
struct Capability {
  uint32_t number;
  const char *name;
  bool available;
};

/// Collects what is missing, each thing once, in the order of discovery.
class Missing {
public:
  void require(bool met, const std::string &what) {
    if (!met && seen.insert(what).second)
      text += (text.empty() ? "" : "; ") + what;
  }
  const std::string &getText() const { return text; }

private:
  std::set<std::string> seen;
  std::string text;
};
} // namespace

static void checkCode(const Artifact &artifact, const Plan &plan, const DeviceFacts &facts,
                      Missing &missing) {
  // Numbers from the SPIR-V specification, "Capability".
  const Capability known[] = {
      {0, "Matrix", true},
      {1, "Shader", true},
      {10, "Float64", facts.float64},
      {11, "Int64", facts.int64},
      {39, "Int8", facts.int8},
      {61, "GroupNonUniform", true},
      {62, "GroupNonUniformVote", true},
      {63, "GroupNonUniformArithmetic", true},
      {64, "GroupNonUniformBallot", true},
      {65, "GroupNonUniformShuffle", true},
      {66, "GroupNonUniformShuffleRelative", true},
      {4448, "StorageBuffer8BitAccess", facts.storage8},
  };
  for (const Kernel &kernel : plan.kernels)
    for (uint32_t number : getCapabilities(artifact.code.at(kernel.code), kernel.code)) {
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

static std::string compare(const std::string &what, int64_t needed, int64_t available) {
  return what + " " + std::to_string(needed) + " where the device has " + std::to_string(available);
}

static void checkPlan(const Plan &plan, const Profile &device, Missing &missing) {
  for (const Kernel &kernel : plan.kernels) {
    std::string of = " of kernel '" + kernel.name + "'";
    int64_t invocations = 1;
    for (int64_t size : kernel.workgroup)
      invocations *= std::min<int64_t>(size, 1 << 20); // cannot overflow
    missing.require(invocations <= device.maxWorkgroupSize,
                    compare("workgroup size" + of, invocations, device.maxWorkgroupSize));
    int64_t operands = int64_t(kernel.operands.size());
    missing.require(operands <= device.storageBuffersPerStage,
                    compare("storage buffers" + of, operands, device.storageBuffersPerStage));
  }
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    std::string of = " of kernel '" + plan.kernels[size_t(command.kernel)].name + "'";
    for (int axis = 0; axis < 3; ++axis)
      missing.require(command.grid[axis] <= device.maxGrid[axis],
                      compare("grid size" + of, command.grid[axis], device.maxGrid[axis]));
    for (const PlanView &view : command.operands) {
      missing.require(view.bytes <= device.bytesPerBinding,
                      compare("bytes per binding" + of, view.bytes, device.bytesPerBinding));
      missing.require(view.offset % device.offsetAlignment == 0,
                      "byte offset " + std::to_string(view.offset) + of +
                          " where the device needs multiples of " +
                          std::to_string(device.offsetAlignment));
    }
  }
}

/// Vulkan has no empty binding or barrier. `readArtifact` has checked that
/// views lie in their allocations.
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

const Profile &chooseTarget(const Artifact &artifact, const DeviceFacts &facts) {
  std::string known;
  for (const Profile &profile : artifact.manifest.targets) {
    if (profile.target == "vulkan")
      return profile;
    known += (known.empty() ? "" : ", ") + profile.target;
  }
  throw BadArgument("the artifact cannot run on '" + facts.name +
                    "': it has no code for vulkan, but for " +
                    (known.empty() ? "no target" : known) + "; compile it with --target=vulkan");
}

void checkRequirements(const Artifact &artifact, const Profile &profile, const DeviceFacts &facts) {
  Profile device = makeProfile(facts);
  Missing missing;
  missing.require(profile.api == device.api,
                  "the API " + profile.api + " where the device has " + device.api);
  int64_t subgroup = profile.subgroupSize;
  if (facts.minSubgroupSize == facts.maxSubgroupSize)
    missing.require(subgroup == facts.subgroupSize,
                    compare("subgroup size", subgroup, facts.subgroupSize));
  else
    missing.require(subgroup >= facts.minSubgroupSize && subgroup <= facts.maxSubgroupSize,
                    "subgroup size " + std::to_string(subgroup) + " where the device has " +
                        std::to_string(facts.minSubgroupSize) + " to " +
                        std::to_string(facts.maxSubgroupSize));
  missing.require(
      profile.workgroupMemory <= device.workgroupMemory,
      compare("bytes of workgroup memory", profile.workgroupMemory, device.workgroupMemory));
  // A loop that ends early is silent, so this one is not left to chance.
  missing.require(profile.maxLoopTrips <= device.maxLoopTrips,
                  compare("loop trips", profile.maxLoopTrips, device.maxLoopTrips));
  for (const Plan &plan : artifact.plans) {
    if (plan.target != profile.target)
      continue;
    checkViews(plan);
    checkCode(artifact, plan, facts, missing);
    checkPlan(plan, device, missing);
  }
  if (!missing.getText().empty())
    throw BadArgument("the artifact cannot run on '" + facts.name + "': it needs " +
                      missing.getText() +
                      "; compile it for the profile that `weir devices "
                      "--emit-profile` writes here");
}

} // namespace weir::runtime
