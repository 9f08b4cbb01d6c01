//===- Trace.h - Which bytes each invocation touches ------------*- C++ -*-===//
//
// Runs the integers of a kernel, invocation by invocation, and notes its loads and
// stores. Floats have no part in it: what depends on them is unknown, and an address
// or a branch that is unknown is refused.
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

/// What one workgroup does to one granule between two barriers of it.
struct Touch {
  uint32_t object = 0; ///< a binding, or behind those a variable of workgroup memory
  int64_t granule = 0; ///< bytes [granule, granule + 1) * Trace::granule of the object
  uint32_t workgroup = 0;
  uint32_t phase = 0; ///< barriers passed that order this kind of memory
  bool reads = false, writes = false;
  bool isMany = false;                ///< more than one invocation does
  uint32_t invocation = 0, other = 0; ///< one of them, and another one if there are many
  /// When the only invocation reads last and writes first, counted in its accesses.
  uint32_t lastRead = 0, firstWrite = 0;
};

struct Trace {
  int64_t granule = 16;       ///< bytes; all accesses begin and end at multiples of it
  uint32_t bindings = 0;      ///< objects below this number are bindings
  uint64_t accesses = 0;      ///< loads and stores of buffers and workgroup memory
  std::vector<Touch> touches; ///< by object, granule, workgroup, phase
};

/// Errors: `Error` that begins with `where`, when the kernel holds what cannot be
///         followed this way, or touches memory more often than can be noted.
Trace trace(const spv::Module &module, const std::string &entryPoint,
            const std::array<int64_t, 3> &grid, uint32_t subgroupSize, uint32_t bindings,
            const std::string &where);

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_TRACE_H
