//===- Effects.h - Effects of a compute pipeline on descriptors -*- C++ -*-===//
//
// Computed from the SPIR-V words and the specialization constants of an application's pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_AUDIT_EFFECTS_H
#define WEIR_AUDIT_EFFECTS_H

#include "weir/CodeProofs/Footprint.h"
#include "weir/SpirvReader/Pipeline.h"

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace weir::audit {

using spv::DescriptorSlot, spv::Specialization;

/// The size of a pipeline's subgroups.
struct Subgroups {
  int64_t size = 1;
  bool isFixed = true; ///< whether the driver must use this size
  bool areFull =
      true; ///< whether subgroups are full when the workgroup's size is a multiple of theirs
};

/// Bytes that one dispatch accesses through one descriptor, counted from its begin.
struct SlotEffects {
  spv::TouchedBytes read, written;
};

struct KernelEffects {
  /// Why the effects are unknown; empty if they are known. If `areSlotsKnown`, `slots` still
  /// has all descriptors.
  std::string problem;
  bool areSlotsKnown = false;
  std::map<DescriptorSlot, SlotEffects> slots; ///< all storage and uniform buffers
};

/// An entry point with its specialization constants.
class Kernel {
public:
  /// Reads the module. Errors: none; a module that cannot be read gives effects with a
  /// `problem`.
  Kernel(std::span<const uint32_t> words, std::string entry,
         const std::vector<Specialization> &constants, Subgroups subgroups);

  /// Returns the effects on a grid, computed once for each. `bytes` holds the sizes of descriptors
  /// that `getSized` names, as far as they are known; then code that asks for the length of an
  /// array is followed. The reference is valid as long as this object. Needs: no size of the grid
  /// is 0.
  const KernelEffects &getEffects(const std::array<int64_t, 3> &grid,
                                  const std::map<DescriptorSlot, int64_t> &bytes = {});
  /// Returns the effects when the grid, or the first workgroup, is unknown.
  const KernelEffects &getEffects() const { return unknown; }
  /// Returns the descriptors of whose size the code may ask.
  const std::vector<DescriptorSlot> &getSized() const { return sized; }
  /// Whether it may access memory without a descriptor, by address.
  bool usesAddresses() const { return byAddress; }

private:
  KernelEffects read(const std::array<int64_t, 3> &grid,
                     const std::map<DescriptorSlot, int64_t> &bytes) const;

  std::string entry;
  Subgroups subgroups;
  std::vector<uint32_t> words; ///< as the reader follows them; empty: they cannot be read
  KernelEffects unknown;
  std::vector<DescriptorSlot> slots;               ///< by binding of `words`, which have only set 0
  std::map<uint32_t, spv::DeclaredBuffer> buffers; ///< by binding of `words`
  std::vector<DescriptorSlot> sized;
  std::map<std::pair<std::array<int64_t, 3>, std::map<DescriptorSlot, int64_t>>, KernelEffects>
      known;
  bool byAddress = false;
};

} // namespace weir::audit

#endif // WEIR_AUDIT_EFFECTS_H
