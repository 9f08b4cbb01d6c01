//===- AddressMap.h - Addresses of loads and stores -------------*- C++ -*-===//
//
// Reads the addresses of all loads and stores of an entry point as affine sums of workgroup and
// invocation ids and loop counters, in one walk over its structured control flow. A number that
// the walk cannot follow becomes an atom of which only the range is known, or is left unknown.
// The cost is bounded by the module's size.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_CODEPROOFS_ADDRESSMAP_H
#define WEIR_CODEPROOFS_ADDRESSMAP_H

#include "weir/CodeProofs/Affine.h"
#include "weir/SpirvReader/Module.h"

namespace weir::spv {

enum class Answer { No, Yes, Unknown };

/// Bound of the absolute value of addresses: beyond all memory, and far from overflow.
inline constexpr int64_t maxAddress = int64_t(1) << 60;

/// The grid that runs an entry point. Workgroups are split into subgroups of `subgroupSize`.
struct Launch {
  std::array<int64_t, 3> grid = {1, 1, 1}; ///< workgroups, each at least 1
  int64_t subgroupSize = 1;                ///< invocations
};

struct Loop {
  /// Max number of trips by the loop's own test; -1 if unknown. The counter in an `Atom` of a
  /// counted loop is in [0, maxTrips).
  int64_t maxTrips = -1;
  int64_t minTrips = 0; ///< of an invocation that reaches the loop, by its own test alone
  /// Whether the loop may end early, or its number of trips may vary by invocation beyond what
  /// the guards of its contents state.
  bool isIrregular = false;
  std::vector<uint32_t> around = {}; ///< loops around it, outermost first
  /// Whether an invocation certainly comes to it in each trip of the loop around it, or at all.
  bool isInEachTrip = false;
  size_t guards = 0; ///< number of guards of what its trips certainly run
};

/// Trips of the loops of an invocation together, each end of a loop counted as one more.
struct TripCount {
  int64_t max = 0; ///< -1 if unknown; INT64_MAX if larger
  int64_t min = 0; ///< some invocation certainly makes them; INT64_MAX if larger
};

/// An instruction that reads or writes memory that other invocations see.
struct MemoryAccess {
  enum class Root { Binding, Shared, Unknown } root = Root::Unknown;
  uint32_t binding = 0; ///< Binding: its number in set 0; Shared: id of the variable
  bool reads = false, writes = false;
  bool isAtomic = false;   ///< atomic for all invocations that see the memory
  bool isReadOnly = false; ///< may read what was there before the kernel began
  /// Whether the invocations of a subgroup make it together: a part of a matrix's elements, of
  /// which nobody knows which invocation has which.
  bool isCooperative = false;
  /// Whether barriers show it to nobody else: in the Vulkan memory model, without a mark.
  bool isPrivate = false;
  /// Whether it is of a copy that lands at some time before its invocation has waited for it.
  bool isLate = false;
  /// Whether it is by a product of matrices or a copy of a box, which use another proxy than
  /// invocations, and until they have been waited for.
  bool isAsync = false;
  std::optional<Affine> address; ///< bytes from the root's begin
  int64_t bytes = 0;             ///< from the address on; 0 if unknown
  int64_t alignment = 1;         ///< bytes, as the accessed type needs
  /// All guards are >= 0 whenever it runs.
  std::vector<Affine> guards;
  /// Whether it runs for all ids and counters for which the guards hold.
  bool isCertain = false;
  /// Whether it would be certain but for numbers that the kernel loads: for some of their values it
  /// runs.
  bool isDecidedByData = false;
  std::vector<uint32_t> loops; ///< loops around it, outermost first
  /// Whether it is in the header of the innermost loop, which runs once more than the body.
  bool isInHeader = false;
  /// Program order: in one trip of the loops around two instructions, the smaller one runs
  /// first.
  uint32_t position = 0;
  uint32_t word = 0; ///< word of the instruction in the module
  SourceLine source;
};

/// A barrier for all invocations of a workgroup.
struct BarrierSite {
  std::vector<Affine> guards;
  bool isCertain = false; ///< as MemoryAccess::isCertain
  std::vector<uint32_t> loops;
  uint32_t position = 0;
  /// Whether accesses to bindings, or to workgroup memory, before the barrier are visible after
  /// it.
  bool ordersBindings = false, ordersShared = false;
  /// Whether it is certain, and no guard differs between invocations of a workgroup.
  bool isUniform = false;
  /// Words of the copies that an invocation may come here with before it has waited for them, and
  /// of those among them that no way here waits for.
  std::vector<uint32_t> inFlight, neverLanded;
  /// Words of the writes that an invocation may come here with before a fence has ordered them for
  /// products of matrices, and of those among them for which no way here has one.
  std::vector<uint32_t> unfenced, neverFenced;
  uint32_t word = 0;
  SourceLine source;
};

/// An instruction that the lanes of a subgroup run together which its mask names: a shuffle or a
/// barrier of PTX.
struct LaneSite {
  std::vector<Affine> guards;
  bool isCertain = false; ///< as MemoryAccess::isCertain
  std::vector<uint32_t> loops;
  std::optional<uint32_t> mask; ///< by bits; none: it is not followed
  uint32_t word = 0;
  SourceLine source;
};

/// An instruction that uses registers of products of matrices which may still be on their way, adds
/// to registers that may still change, or uses an mbarrier other than phase by phase.
struct RegisterHazard {
  uint32_t word = 0;
  SourceLine source;
  bool isCertain = false; ///< on all ways
  const char *what = "";
};

struct AddressMap {
  Atoms atoms;
  std::vector<Loop> loops;
  std::vector<MemoryAccess> accesses; ///< in order of position, without those that never run
  std::vector<BarrierSite> barriers;
  std::vector<LaneSite> laneSites;
  bool hasProducts = false; ///< of matrices in workgroup memory
  bool hasTiles = false;    ///< copies of boxes to it
  std::vector<RegisterHazard> registerHazards;
  Launch launch;
  std::array<int64_t, 3> localSize = {1, 1, 1}; ///< invocations of a workgroup
  /// Atoms that identify a workgroup; an invocation in it by local ids; and an invocation in it
  /// by subgroup and lane. If the code uses both of the latter, their relation is unknown.
  std::vector<uint32_t> groupIds, localIds, laneIds;
  bool hasLocalIds = false, hasLaneIds = false;
  /// Whether barriers order executions of one subgroup.
  bool hasSubgroupOrder = false;
  /// Whether the code orders executions in other ways that are not followed.
  bool hasOtherOrder = false;
  /// Why nothing is known, so that any operand may be read and written; else empty.
  std::string problem;
};

/// Returns the accesses and barriers of `entry` on `launch`. Errors: none; if the code cannot
/// be followed, `problem` says why; an address that cannot be followed is left unknown.
AddressMap readAddressMap(const Module &module, const EntryPoint &entry, const Launch &launch);

/// Returns the trips that an invocation of the kernel makes.
TripCount getTrips(const AddressMap &map);

} // namespace weir::spv

#endif // WEIR_CODEPROOFS_ADDRESSMAP_H
