//===- Effects.cpp - Effects of a compute pipeline on descriptors ---------===//

#include "weir/Audit/Effects.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <set>

using namespace weir::audit;
using weir::Error;
using weir::spv::BuiltIn, weir::spv::Decoration, weir::spv::Id, weir::spv::Op;

/// Max number of grids per pipeline whose effects are kept.
static constexpr size_t maxGrids = 1024;

// Capabilities, from the SPIR-V specification, section 3.31.
static constexpr uint32_t capabilityAddresses = 4, capabilityGroupNonUniform = 61,
                          capabilityBallotKhr = 4423, capabilityVoteKhr = 4431,
                          capabilityBufferAddresses = 5347;

//===----------------------------------------------------------------------===//
// A pipeline's module
//===----------------------------------------------------------------------===//

namespace {

/// Rewrites a module into a form that the reader follows: specialization constants become
/// constants, a workgroup size set by a constant becomes an execution mode, and descriptors of
/// all sets become bindings of set 0, numbered by (set, binding).
class Rewriter {
public:
  Rewriter(std::span<const uint32_t> source, const std::vector<Specialization> &specialization)
      : words(source.begin(), source.end()) {
    for (const Specialization &constant : specialization)
      given[constant.id] = constant.bits;
  }

  void run() {
    forEach([&](Op op, std::span<uint32_t> all) { collect(op, all); });
    for (auto &[id, place] : places)
      slots.push_back(place);
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    forEach([&](Op op, std::span<uint32_t> all) { rewrite(op, all); });
    // The size comes after the modes, which come after the entry points.
    if (hasSize)
      forEach([&](Op op, std::span<uint32_t> all) {
        if (op == Op::ExecutionMode && all.size() == 6 && all[2] == localSize)
          std::copy(size.begin(), size.end(), all.begin() + 3);
      });
  }

  std::vector<uint32_t> words;
  std::vector<DescriptorSlot> slots;
  std::vector<uint32_t> capabilities;
  /// Decorated struct members.
  std::map<std::pair<Id, Decoration>, std::set<uint32_t>> members;

private:
  static constexpr uint32_t localSize = 17; ///< the execution mode

  /// Visits all instructions; stops at one without an end, which the reader then refuses.
  template <typename Visit> void forEach(Visit visit) {
    for (size_t at = 5; at < words.size();) {
      size_t count = words[at] >> 16;
      if (count == 0 || count > words.size() - at)
        return;
      visit(Op(words[at] & 0xffff), std::span(words).subspan(at, count));
      at += count;
    }
  }

  void collect(Op op, std::span<uint32_t> all) {
    if (op == Op::Capability && all.size() == 2)
      capabilities.push_back(all[1]);
    if (op == Op::MemberDecorate && all.size() == 4)
      members[{all[1], Decoration(all[3])}].insert(all[2]);
    if (op != Op::Decorate || all.size() != 4)
      return;
    switch (Decoration(all[2])) {
    case Decoration::SpecId:
      specIds[all[1]] = all[3];
      break;
    case Decoration::DescriptorSet:
      places[all[1]].set = all[3];
      break;
    case Decoration::Binding:
      places[all[1]].binding = all[3];
      break;
    case Decoration::BuiltIn:
      if (BuiltIn(all[3]) == BuiltIn::WorkgroupSize)
        sizeId = all[1];
      break;
    default:
      break;
    }
  }

  void rewrite(Op op, std::span<uint32_t> all) {
    auto become = [&](Op other) { all[0] = uint32_t(all.size()) << 16 | uint32_t(other); };
    auto getGiven = [&]() -> const uint64_t * {
      auto id = specIds.find(all[2]);
      auto value = id == specIds.end() ? given.end() : given.find(id->second);
      return value == given.end() ? nullptr : &value->second;
    };
    switch (op) {
    case Op::Decorate:
      if (all.size() != 4)
        break;
      if (Decoration(all[2]) == Decoration::DescriptorSet)
        all[3] = 0;
      else if (Decoration(all[2]) == Decoration::Binding)
        all[3] =
            uint32_t(std::lower_bound(slots.begin(), slots.end(), places[all[1]]) - slots.begin());
      else if (Decoration(all[2]) == Decoration::BuiltIn && all[1] == sizeId)
        std::fill(all.begin(), all.end(), 1u << 16); // OpNop, one a word
      break;
    case Op::SpecConstantTrue:
    case Op::SpecConstantFalse:
      if (all.size() != 3)
        break;
      become(op == Op::SpecConstantTrue ? Op::ConstantTrue : Op::ConstantFalse);
      if (const uint64_t *value = getGiven())
        become(*value ? Op::ConstantTrue : Op::ConstantFalse);
      break;
    case Op::Constant:
    case Op::SpecConstant:
      if (all.size() < 4)
        break;
      if (op == Op::SpecConstant) {
        become(Op::Constant);
        if (const uint64_t *value = getGiven())
          for (size_t i = 3; i < all.size() && i < 5; ++i)
            all[i] = uint32_t(*value >> (32 * (i - 3)));
      }
      numbers[all[2]] = all[3];
      break;
    case Op::ConstantComposite:
    case Op::SpecConstantComposite:
      become(Op::ConstantComposite);
      if (all.size() == 6 && all[2] == sizeId)
        for (size_t axis = 0; axis < 3; ++axis) {
          size[axis] = numbers[all[3 + axis]];
          hasSize = true;
        }
      break;
    default:
      break;
    }
  }

  std::map<uint32_t, uint64_t> given; ///< by SpecId
  std::map<Id, uint32_t> specIds;
  std::map<Id, DescriptorSlot> places;
  std::map<Id, uint32_t> numbers;
  Id sizeId = 0;
  bool hasSize = false;
  std::array<uint32_t, 3> size = {};
};

} // namespace

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

Kernel::Kernel(std::span<const uint32_t> words, std::string entryName,
               const std::vector<Specialization> &constants, Subgroups subgroups)
    : entry(std::move(entryName)), subgroups(subgroups) {
  Rewriter rewriter(words, constants);
  rewriter.run();
  auto has = [&](uint32_t capability) {
    return std::find(rewriter.capabilities.begin(), rewriter.capabilities.end(), capability) !=
           rewriter.capabilities.end();
  };
  byAddress = has(capabilityAddresses) || has(capabilityBufferAddresses);
  slots = std::move(rewriter.slots);
  areArrays.resize(slots.size());
  unknown.problem = "its number of workgroups, or its first workgroup, is not known";
  try {
    module.emplace(std::span(reinterpret_cast<const unsigned char *>(rewriter.words.data()),
                             rewriter.words.size() * sizeof(uint32_t)),
                   "its code");
    for (const spv::Variable &variable : module->getVariables()) {
      if (!variable.binding || *variable.binding >= slots.size() ||
          (variable.storage != spv::StorageClass::StorageBuffer &&
           variable.storage != spv::StorageClass::Uniform))
        continue;
      Id id = module->getType(variable.type).element;
      if (spv::Type::Kind kind = module->getType(id).kind;
          kind == spv::Type::Kind::Array || kind == spv::Type::Kind::RuntimeArray) {
        areArrays[*variable.binding] = true;
        id = module->getType(id).element;
      }
      auto lacks = [&](Decoration decoration) {
        return module->isDecorated(variable.id, decoration) ||
               (!module->getType(id).members.empty() &&
                rewriter.members[{id, decoration}].size() == module->getType(id).members.size());
      };
      SlotEffects &slot = unknown.slots[slots[*variable.binding]];
      if (lacks(Decoration::NonReadable))
        slot.read.possible.emplace();
      if (lacks(Decoration::NonWritable))
        slot.written.possible.emplace();
    }
    unknown.areSlotsKnown = true;
    bool usesSubgroups =
        has(capabilityGroupNonUniform) || has(capabilityBallotKhr) || has(capabilityVoteKhr);
    if (!module->findEntryPoint(entry))
      unknown.problem = "its code has no entry point of its name";
    else if (usesSubgroups && !subgroups.isFixed)
      unknown.problem = "the driver chooses the size of its subgroups";
    else
      return;
  } catch (const Error &error) {
    unknown.problem = error.what();
  }
  module.reset();
}

const KernelEffects &Kernel::getEffects(const std::array<int64_t, 3> &grid) {
  if (!module || (known.size() >= maxGrids && !known.contains(grid)))
    return unknown;
  auto [place, isNew] = known.try_emplace(grid);
  if (isNew)
    place->second = read(grid);
  return place->second;
}

KernelEffects Kernel::read(const std::array<int64_t, 3> &grid) const {
  spv::AddressMap map =
      spv::readAddressMap(*module, *module->findEntryPoint(entry), {grid, subgroups.size});
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
    if (areArrays[binding])
      for (spv::TouchedBytes *side : {&slot.read, &slot.written})
        if (!side->possible || !side->possible->empty())
          *side = {};
  }
  return effects;
}
