//===- Simulation.cpp - Counterexamples by the simulator ------------------===//
//
// The simulator runs plans of artifacts. A shader becomes the only dispatch of one, with a donated
// argument for each buffer.
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"

#include <cstring>

using namespace weir;
using namespace weir::shaders;

/// Max number of invocations of a dispatch, and of bytes of its buffers, that are run.
static constexpr int64_t maxInvocations = 1 << 20, maxBytes = int64_t(1) << 28;

namespace {
/// Contents of all buffers, as words of 32 bits.
struct Contents {
  const char *name;
  uint32_t (*getWord)(uint32_t index);
};
} // namespace

static constexpr Contents contents[] = {
    {"buffers of zeros", [](uint32_t) { return 0u; }},
    {"buffers whose words are all 1", [](uint32_t) { return 1u; }},
    {"buffers whose words count from 0", [](uint32_t index) { return index; }},
    {"buffers of small random words", [](uint32_t index) {
       uint32_t mixed = (index + 1) * 0x9e3779b9u;
       mixed = (mixed ^ mixed >> 15) * 0x85ebca6bu;
       return (mixed ^ mixed >> 13) % 16;
     }}};

static Bytes fill(int64_t bytes, const Contents &with) {
  Bytes data(static_cast<size_t>(bytes));
  for (size_t at = 0; at < data.size(); at += 4) {
    const uint32_t word = with.getWord(uint32_t(at / 4));
    std::memcpy(&data[at], &word, std::min<size_t>(4, data.size() - at));
  }
  return data;
}

/// Returns an artifact with one plan of one dispatch.
static Artifact makeArtifact(const Simulation &simulation) {
  Artifact artifact;
  const Profile profile; // of lavapipe; nothing here depends on it
  const std::string code = "the shader";
  Kernel kernel;
  kernel.name = simulation.entry->name;
  kernel.code = code;
  std::copy(simulation.entry->localSize.begin(), simulation.entry->localSize.end(),
            kernel.workgroup.begin());
  Command dispatch;
  dispatch.grid = simulation.workgroups;
  EntrySpec entry;
  entry.name = simulation.entry->name;
  Plan plan;
  plan.entry = entry.name;
  plan.target = profile.target;
  for (size_t i = 0; i < simulation.bytes.size(); ++i) {
    const int64_t bytes = simulation.bytes[i], number = int64_t(i);
    entry.arguments.push_back({simulation.names[i], "I8", {bytes}, "", true});
    plan.allocations.push_back({AllocationKind::Argument, number, bytes});
    plan.values.push_back({simulation.names[i], bytes});
    plan.argumentValues.push_back(number);
    kernel.operands.push_back({Access::Update, false, bytes});
    PlanOperand operand;
    operand.allocation = number;
    operand.bytes = bytes;
    operand.value = number;
    dispatch.operands.push_back(operand);
  }
  plan.kernels.push_back(std::move(kernel));
  plan.commands.push_back(std::move(dispatch));
  const auto *first = reinterpret_cast<const unsigned char *>(simulation.words.data());
  artifact.code[code] = Bytes(first, first + simulation.words.size() * sizeof(uint32_t));
  artifact.manifest.targets.push_back(profile);
  artifact.manifest.entries.push_back(std::move(entry));
  artifact.plans.push_back(std::move(plan));
  return artifact;
}

std::string
shaders::simulateAll(const Simulation &simulation,
                     const std::function<bool(const SimFinding &, const std::string &)> &visit) {
  int64_t invocations = 1, bytes = 0;
  for (size_t axis = 0; axis < 3; ++axis)
    for (int64_t size : {simulation.workgroups[axis], int64_t(simulation.entry->localSize[axis])})
      if (__builtin_mul_overflow(invocations, size, &invocations))
        invocations = maxInvocations + 1;
  for (int64_t size : simulation.bytes)
    bytes = std::min(maxBytes + 1, bytes + size);
  if (invocations > maxInvocations)
    return "it has more than " + std::to_string(maxInvocations) +
           " invocations, too many for the simulator";
  if (bytes > maxBytes)
    return "its buffers have more than " + std::to_string(maxBytes) +
           " bytes, too many for the simulator";
  const Artifact artifact = makeArtifact(simulation);
  const EntrySpec &entry = artifact.manifest.entries.front();
  try {
    for (const Contents &each : contents) {
      std::vector<Tensor> arguments;
      for (size_t i = 0; i < simulation.bytes.size(); ++i)
        arguments.push_back({entry.arguments[i], fill(simulation.bytes[i], each)});
      for (const SimFinding &finding : simulate(artifact, entry, arguments, {}).findings)
        if (!visit(finding, each.name))
          return "";
    }
  } catch (const Error &error) {
    return std::string("the simulator cannot run it: ") + error.what();
  }
  return "";
}
