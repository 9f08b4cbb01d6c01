//===- Effects.h - What a compute pipeline does to descriptors --*- C++ -*-===//
//
// Read from the SPIR-V words that an application made its pipeline of, with the
// constants that it specialized them with.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_AUDIT_EFFECTS_H
#define WEIR_AUDIT_EFFECTS_H

#include "weir/CodeProofs/Footprint.h"

#include <array>
#include <compare>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace weir::audit {

/// A number of a descriptor as shaders have it.
struct Slot {
  uint32_t set = 0, binding = 0;
  auto operator<=>(const Slot &) const = default;
};

/// A value for a specialization constant.
struct Specialization {
  uint32_t id = 0;   ///< its SpecId
  uint64_t bits = 0; ///< the low ones, as many as the constant has; a Bool is 0 or not
};

/// How many invocations of a subgroup there are.
struct Subgroups {
  int64_t size = 1;
  bool isFixed = true; ///< the driver may not choose another size
  bool areFull = true; ///< in workgroups of whole subgroups each has all its invocations
};

/// Bytes that one dispatch touches through one descriptor, from its begin.
struct SlotEffects {
  spv::Touched read, written;
};

struct KernelEffects {
  /// Not empty: why nothing is known of them. `slots` names all that there are if
  /// `areSlotsKnown`.
  std::string problem;
  bool areSlotsKnown = false;
  std::map<Slot, SlotEffects> slots; ///< of all storage and uniform buffers
};

/// An entry point with its constants.
class Kernel {
public:
  /// Errors: none; what cannot be read is the `problem` of all effects.
  Kernel(std::span<const uint32_t> words, std::string entry,
         const std::vector<Specialization> &constants, Subgroups subgroups);

  /// Read once for each grid. The reference holds while this does.
  /// Needs: no size of the grid is 0.
  const KernelEffects &getEffects(const std::array<int64_t, 3> &grid);
  /// Of a grid, or of a first workgroup, that is not known.
  const KernelEffects &getEffects() const { return unknown; }
  /// It may reach memory that is in no descriptor.
  bool usesAddresses() const { return byAddress; }

private:
  KernelEffects read(const std::array<int64_t, 3> &grid) const;

  std::string entry;
  Subgroups subgroups;
  std::optional<spv::Module> module;
  KernelEffects unknown;
  std::vector<Slot> slots; ///< by binding of the module, which knows only set 0
  std::vector<bool> areArrays;
  std::map<std::array<int64_t, 3>, KernelEffects> known;
  bool byAddress = false;
};

} // namespace weir::audit

#endif // WEIR_AUDIT_EFFECTS_H
