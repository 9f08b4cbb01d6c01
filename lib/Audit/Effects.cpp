//===- Effects.cpp - Effects of a compute pipeline on descriptors ---------===//

#include "weir/Audit/Effects.h"

#include "weir/Artifact/Error.h"

#include <algorithm>

using namespace weir::audit;
using weir::Error;
namespace spv = weir::spv;

/// Max number of grids, with lengths of buffers, per pipeline whose effects are kept.
static constexpr size_t maxGrids = 1024;

// Capabilities, from the SPIR-V specification, section 3.31.
static constexpr uint32_t capabilityAddresses = 4, capabilityGroupNonUniform = 61,
                          capabilityBallotKhr = 4423, capabilityVoteKhr = 4431,
                          capabilityBufferAddresses = 5347;

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

static spv::Module readModule(std::span<const uint32_t> words) {
  return {std::span(reinterpret_cast<const unsigned char *>(words.data()),
                    words.size() * sizeof(uint32_t)),
          "its code"};
}

Kernel::Kernel(std::span<const uint32_t> given, std::string entryName,
               const std::vector<Specialization> &constants, Subgroups subgroups)
    : entry(std::move(entryName)), subgroups(subgroups) {
  spv::PipelineModule pipeline = spv::specialize(given, constants);
  auto has = [&](uint32_t capability) { return pipeline.capabilities.contains(capability); };
  byAddress = has(capabilityAddresses) || has(capabilityBufferAddresses);
  slots = std::move(pipeline.slots);
  buffers = std::move(pipeline.buffers);
  unknown.problem = "its number of workgroups, or its first workgroup, is not known";
  // Declarations hold whether the code can be followed or not.
  unknown.areSlotsKnown = pipeline.isWhole;
  for (const auto &[binding, buffer] : buffers) {
    SlotEffects &slot = unknown.slots[slots[binding]];
    if (!buffer.mayRead)
      slot.read.possible.emplace();
    if (!buffer.mayWrite)
      slot.written.possible.emplace();
    if (pipeline.asksForLengths)
      sized.push_back(slots[binding]);
  }
  try {
    const std::vector<uint32_t> whole = spv::inlineCalls(pipeline.words, "its code");
    const spv::Module module = readModule(whole);
    bool usesSubgroups =
        has(capabilityGroupNonUniform) || has(capabilityBallotKhr) || has(capabilityVoteKhr);
    if (!module.findEntryPoint(entry))
      unknown.problem = "its code has no entry point of its name";
    else if (usesSubgroups && !subgroups.isFixed)
      unknown.problem = "the driver chooses the size of its subgroups";
    else
      words = spv::promoteVariables(module, whole);
  } catch (const Error &error) {
    unknown.problem = error.what();
  }
}

const KernelEffects &Kernel::getEffects(const std::array<int64_t, 3> &grid,
                                        const std::map<DescriptorSlot, int64_t> &bytes) {
  const std::pair key(grid, bytes);
  if (words.empty() || (known.size() >= maxGrids && !known.contains(key)))
    return unknown;
  auto [place, isNew] = known.try_emplace(key);
  if (isNew)
    place->second = read(grid, bytes);
  return place->second;
}

KernelEffects Kernel::read(const std::array<int64_t, 3> &grid,
                           const std::map<DescriptorSlot, int64_t> &bytes) const {
  std::map<uint32_t, int64_t> byBinding;
  for (const auto &[slot, size] : bytes)
    if (auto place = std::lower_bound(slots.begin(), slots.end(), slot);
        place != slots.end() && *place == slot)
      byBinding[uint32_t(place - slots.begin())] = size;
  const spv::Module module = readModule(spv::setLengths(words, byBinding));
  spv::AddressMap map =
      spv::readAddressMap(module, *module.findEntryPoint(entry), {grid, subgroups.size});
  KernelEffects effects = unknown;
  effects.problem = map.problem;
  if (!map.problem.empty())
    return effects;
  // In a subgroup that is not full, lanes without an invocation access nothing.
  if (map.hasLaneIds && !subgroups.areFull)
    for (spv::MemoryAccess &access : map.accesses)
      access.isCertain = false;
  for (uint32_t binding = 0; binding < slots.size(); ++binding) {
    auto place = effects.slots.find(slots[binding]);
    if (place == effects.slots.end())
      continue;
    SlotEffects &slot = place->second;
    slot.read = spv::getTouched(map, binding, /*reads=*/true);
    slot.written = spv::getTouched(map, binding, /*reads=*/false);
    // In an array of descriptors, the address selects the descriptor, so offsets are unknown.
    if (auto buffer = buffers.find(binding); buffer != buffers.end() && buffer->second.isArray)
      for (spv::TouchedBytes *side : {&slot.read, &slot.written})
        if (!side->possible || !side->possible->empty())
          *side = {};
  }
  return effects;
}
