//===- AddressMap.h - Where instructions reach into memory ------*- C++ -*-===//
//
// A walk over an entry point's structured control flow, once, that follows integers as
// sums of workgroup and invocation ids and loop counters. What it cannot follow
// becomes a number of which only the range is known, or nothing is said at all; its
// work is bounded by the module's size.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_CODEPROOFS_ADDRESSMAP_H
#define WEIR_CODEPROOFS_ADDRESSMAP_H

#include "weir/CodeProofs/Affine.h"
#include "weir/SpirvReader/Module.h"

namespace weir::spv {

enum class Answer { No, Yes, Unknown };

/// Addresses of either sign that are followed: beyond all memory, and far from overflow.
inline constexpr int64_t maxAddress = int64_t(1) << 60;

/// How many invocations run an entry point. Workgroups are made of full subgroups.
struct Launch {
  std::array<int64_t, 3> grid = {1, 1, 1}; ///< workgroups, each at least 1
  int64_t subgroupSize = 1;                ///< invocations
};

struct Loop {
  /// Trips at most, by its own test; -1 when not known. A counted loop's number in an
  /// `Atom` goes from 0, and is below this.
  int64_t most = -1;
  /// It may leave early, or its trips differ between invocations other than a
  /// constraint of what is inside says.
  bool isIrregular = false;
};

/// An instruction that reads or writes memory which other invocations see.
struct MemoryAccess {
  enum class Root { Binding, Shared, Unknown } root = Root::Unknown;
  uint32_t binding = 0; ///< of set 0; the variable of workgroup memory
  bool reads = false, writes = false;
  bool isAtomic = false;         ///< among all who see the memory
  std::optional<Affine> address; ///< bytes from the root's begin
  int64_t bytes = 0;             ///< from the address on; 0 when not known
  int64_t alignment = 1;         ///< bytes, that the accessed type needs
  /// All are at least 0 whenever it runs.
  std::vector<Affine> guards;
  /// It runs whenever the guards hold, for all ids and counters below their counts.
  bool isCertain = false;
  std::vector<uint32_t> loops; ///< around it, outermost first
  /// In the first block of the innermost loop, which runs once more than there are trips.
  bool isInHeader = false;
  /// In one trip of the loops around both of two places, the smaller comes first.
  uint32_t position = 0;
  uint32_t word = 0; ///< of the instruction in the module
  SourceLine source;
};

/// A barrier for all invocations of a workgroup.
struct BarrierPlace {
  std::vector<Affine> guards;
  bool isCertain = false; ///< as of an access
  std::vector<uint32_t> loops;
  uint32_t position = 0;
  /// What was done before to which memory is seen behind it.
  bool ordersBindings = false, ordersShared = false;
  /// Certain, and no guard tells invocations of a workgroup apart.
  bool isUniform = false;
  uint32_t word = 0;
  SourceLine source;
};

struct AddressMap {
  Atoms atoms;
  std::vector<Loop> loops;
  std::vector<MemoryAccess> accesses; ///< by position; those that never run are left out
  std::vector<BarrierPlace> barriers;
  Launch launch;
  std::array<int64_t, 3> localSize = {1, 1, 1}; ///< invocations of a workgroup
  /// Atoms that tell workgroups apart, and the invocations of one: by ids in it, or by
  /// subgroup and lane. Where the code uses both, who is who is not known.
  std::vector<uint32_t> groupIds, localIds, laneIds;
  bool hasLocalIds = false, hasLaneIds = false;
  /// Not empty: why nothing is known, and any operand may be read and written.
  std::string problem;
};

/// Errors: none; what cannot be followed is in the map's `problem`, or is left open in
/// the access.
AddressMap readAddressMap(const Module &module, const EntryPoint &entry, const Launch &launch);

} // namespace weir::spv

#endif // WEIR_CODEPROOFS_ADDRESSMAP_H
