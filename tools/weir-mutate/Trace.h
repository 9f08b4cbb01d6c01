//===- Trace.h - Which bytes each invocation touches ------------*- C++ -*-===//
//
// Executes the integer part of a kernel, invocation by invocation, and records its loads and
// stores. Values that depend on floats or loads are unknown; an unknown address or branch is
// refused. Code is SPIR-V, or PTX as lib/PtxReader translates it: then addresses are numbers, and
// each variable has an address far from those of the others.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_TRACE_H
#define WEIR_TOOLS_WEIR_MUTATE_TRACE_H

#include "weir/SpirvReader/Module.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::mutate {

/// The accesses of one workgroup to one granule between two of its barriers.
struct Touch {
  uint32_t object =
      0; ///< a binding; numbers from `Trace::bindings` on are variables of workgroup memory
  int64_t granule = 0; ///< bytes [granule, granule + 1) * Trace::granule of the object
  uint32_t workgroup = 0;
  uint32_t phase = 0; ///< number of barriers passed that order this kind of memory
  /// In code with barriers of warps: the warp, and the number of those that it has passed.
  uint32_t warp = 0, warpPhase = 0;
  bool reads = false, writes = false;
  bool readsEarly = false; ///< whether a read may find what was there before the kernel began
  bool isMany = false;     ///< whether more than one invocation accesses it
  uint32_t invocation = 0, other = 0; ///< one of them, and another one if there are many
  bool readsByProduct = false; ///< whether a product of matrices by four warps is among the reads
  /// Number of barriers passed when a fence had made all writes visible to such products; before
  /// one, the max.
  uint32_t shown = 0;
  /// Single invocation: index of its last read and first write among its accesses.
  uint32_t lastRead = 0, firstWrite = 0;
};

struct Trace {
  int64_t granule = 16;            ///< bytes; divides the begin and end of all accesses
  uint32_t bindings = 0;           ///< objects below this number are bindings
  uint64_t accesses = 0;           ///< number of loads and stores of buffers and workgroup memory
  std::vector<Touch> touches;      ///< sorted by object, granule, workgroup, phase
  bool hasChosen = false;          ///< whether data decide of two addresses which one an access has
  std::vector<int64_t> alignments; ///< bytes that each binding must begin at a multiple of
  /// An error wherever the operands lie, or "": an access to no variable or at no multiple of its
  /// size, a barrier or shuffle that not all reach who must.
  std::string problem;
};

/// Runs an entry point on a grid. Where data decide of two addresses which one a load has, both are
/// recorded, or with `!countsChosen` none. Errors: `Error` that begins with `where`, when the
/// kernel has an instruction that is not supported, an unknown address or branch, or too many
/// accesses.
Trace trace(const spv::Module &module, const std::string &entryPoint,
            const std::array<int64_t, 3> &grid, uint32_t subgroupSize, uint32_t bindings,
            const std::string &where, bool countsChosen);

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_TRACE_H
