//===- Program.h - A kernel's words, decoded --------------------*- C++ -*-===//
//
// SSA values become registers of a subgroup: each scalar of a value has one word
// for each lane, 64 bits for 64-bit types, 32 for all others. An instruction
// becomes one step for each scalar; what only rearranges scalars becomes none.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SIM_PROGRAM_H
#define WEIR_LIB_SIM_PROGRAM_H

#include "weir/SpirvReader/Module.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::sim {

class Subgroup;
struct Step;

using StepFunction = void (*)(Subgroup &, const Step &);

/// Byte offset of a register in a subgroup's register file.
using Register = uint32_t;
inline constexpr Register noRegister = ~Register(0);

struct Step {
  StepFunction run = nullptr;
  Register to = 0, a = 0, b = 0, c = 0;
  int64_t number = 0; ///< an immediate, or an index into a table of the program
};

enum class Space { Storage, Workgroup, Private };

/// A load or store of memory, or an atomic operation on an integer there.
struct MemoryAccess {
  Space space = Space::Storage;
  bool isRead = false, isWrite = false;
  spv::Op atomic = spv::Op::Nop; ///< OpNop: it is none
  bool isOfDevice = false;       ///< atomic with those of other workgroups, too
  /// Of an atomic operation, as wide as what it makes: what it stores, adds..., and what
  /// OpAtomicCompareExchange compares with.
  Register operand = 0, comparator = 0;
  bool isAtomic() const { return atomic != spv::Op::Nop; }
  uint32_t binding = 0;    ///< Storage
  int64_t offset = 0;      ///< constant part; of the space for the other two
  int64_t objectBegin = 0; ///< the variable's own bytes in the space; not for Storage
  int64_t objectEnd = 0;
  Register dynamic = noRegister; ///< 64-bit register that is added to the offset
  int64_t bytes = 0;
  int64_t granule = 1; ///< power of two that divides where it begins and its size
  uint16_t site = 0;   ///< its number among the program's, from 1
  struct Scalar {
    int64_t offset = 0; ///< from where the access begins
    uint32_t bytes = 0;
    Register value = 0;
  };
  std::vector<Scalar> scalars;
  spv::SourceLine source;
};

struct Edge {
  uint32_t block = 0;                  ///< by structured order
  uint32_t firstStep = 0, endStep = 0; ///< copies for its phis
};

struct CodeBlock {
  enum class End { Branch, Conditional, Switch, Return, Unreachable } end = End::Return;
  uint32_t firstStep = 0, endStep = 0;
  Register selector = 0;          ///< Conditional, Switch
  bool isWide = false;            ///< Switch: by 64 bits
  std::vector<Edge> edges;        ///< Conditional: true, false; Switch: default first
  std::vector<uint64_t> literals; ///< Switch: of edges 1 and on
};

struct Preset {
  Register to = 0;
  bool isWide = false;
  uint64_t bits = 0;
};

struct BuiltInRegister {
  spv::BuiltIn builtIn = {};
  uint32_t component = 0;
  Register to = 0;
};

struct Barrier {
  bool ordersStorage = false, ordersWorkgroup = false;
  spv::SourceLine source;
};

struct Shuffle {
  spv::Op op = {};
  spv::SourceLine source;
};

/// What a reduction of a subgroup gives each of its lanes.
enum class Reduction : uint32_t { All = 0, UpToOwn = 1, BeforeOwn = 2 };

struct Program {
  std::string name;       ///< of the kernel
  spv::SourceLine source; ///< of the first instruction: in Weir's code, the kernel's
  std::array<uint32_t, 3> localSize = {1, 1, 1};
  std::vector<Step> steps;
  std::vector<CodeBlock> blocks;      ///< in structured order: a merge comes after what it merges
  std::vector<MemoryAccess> accesses; ///< by site, from 1; [0] is unused
  std::vector<Barrier> barriers;
  std::vector<Shuffle> shuffles;
  std::vector<Preset> constants;
  std::vector<BuiltInRegister> builtIns;
  uint32_t registerBytes = 0; ///< of all lanes
  uint32_t subgroupSize = 0;
  uint32_t width = 0; ///< lanes that registers have, a multiple of 8
  int64_t workgroupBytes = 0, privateBytes = 0;
  int64_t workgroupGranule = 16;
};

/// What a device may choose.
struct DecodeOptions {
  uint32_t subgroupSize = 8;
  bool fusesFma = false; ///< rounds the Fma of GLSL.std.450 once
};

/// Decodes an entry point.
/// Errors: `Error` that names what the simulator does not know, or what of the
///         words makes no sense.
Program decode(const spv::Module &module, const std::string &entryPoint,
               const DecodeOptions &options, const std::string &where);

} // namespace weir::sim

#endif // WEIR_LIB_SIM_PROGRAM_H
