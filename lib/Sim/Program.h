//===- Program.h - A kernel's words, decoded --------------------*- C++ -*-===//
//
// SSA values become registers of a subgroup: each scalar of a value has one word per lane, 64
// bits for 64-bit types, 32 for all others. An instruction becomes one step per scalar;
// instructions that only rearrange scalars need none.
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

/// A load or store, or an atomic operation on an integer in memory.
struct AccessSite {
  Space space = Space::Storage;
  bool isRead = false, isWrite = false;
  spv::Op atomic = spv::Op::Nop; ///< OpNop: not atomic
  bool isOfDevice = false;       ///< whether it is atomic among all workgroups
  /// Atomic: the value that it stores, adds..., and the one that OpAtomicCompareExchange
  /// compares with. As wide as the result.
  Register operand = 0, comparator = 0;
  bool isAtomic() const { return atomic != spv::Op::Nop; }
  bool isReadOnly = false;   ///< whether nothing may write the bytes while the kernel runs
  bool isAddressed = false;  ///< whether the offset is an address less where the object begins
  bool isLate = false;       ///< whether it is a copy that has not landed
  uint32_t lanes = ~0u;      ///< PTX: the lanes of a warp that make it
  uint32_t alternatives = 1; ///< sites from this one on, of which the address chooses one
  uint32_t binding = 0;      ///< Storage
  int64_t offset = 0;        ///< constant part, in the binding or, for other spaces, in the space
  int64_t objectBegin = 0;   ///< first byte of the variable in its space; not for Storage
  int64_t objectEnd = 0;
  Register dynamic = noRegister; ///< 64-bit register added to the offset
  int64_t bytes = 0;
  int64_t granule = 1; ///< power of two that divides its offset and its size
  uint16_t site = 0;   ///< its number in the program, from 1
  struct Scalar {
    int64_t offset = 0; ///< from the begin of the access
    uint32_t bytes = 0;
    Register value = 0;
  };
  std::vector<Scalar> scalars;
  spv::SourceLine source;
};

struct Edge {
  uint32_t block = 0;                  ///< in structured order
  uint32_t firstStep = 0, endStep = 0; ///< copies for its phis
};

struct CodeBlock {
  enum class End { Branch, Conditional, Switch, Return, Unreachable } end = End::Return;
  uint32_t firstStep = 0, endStep = 0;
  Register selector = 0;          ///< Conditional, Switch
  bool isWide = false;            ///< Switch: by 64 bits
  bool beginsLoop = false;        ///< a later block, or itself, jumps to it
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

/// An instruction of PTX that lanes of a warp execute together: each waits for those it names.
struct Meeting {
  enum class Kind {
    Warp, ///< bar.warp.sync
    Shuffle,
    VoteAll,
    VoteAny,
    VoteUniform,
    VoteBallot,
    MatchAny,
    MatchAll,
    Reduce,
    Elect
  } kind = Kind::Warp;
  /// Shuffle: how the source is found. Reduce: the operation.
  enum class How {
    Up,
    Down,
    Xor,
    Index,
    Add,
    Min,
    Max,
    MinSigned,
    MaxSigned,
    And,
    Or,
    ExclusiveOr
  };
  How how = How::Index;
  bool isPredicate = false;      ///< whether the result is the predicate behind |
  Register members = noRegister; ///< lanes by bits; none: all
  Register value = 0, lane = 0, clamp = 0, to = 0;
  std::string name; ///< "shfl.sync.bfly.b32"
  spv::SourceLine source;
};

/// An instruction on matrices whose elements are in registers of all lanes of a warp.
struct Matrix {
  enum class Type { Half, BHalf, Tf32 } type = Type::Half;
  bool isProduct = false;    ///< otherwise a load
  uint32_t depth = 0;        ///< Product: elements of a sum
  bool isTransposed = false; ///< Load
  uint32_t number = 0;       ///< Load: of the matrix that the result is of
  std::vector<Register> operands, results;
  std::string name;
  spv::SourceLine source;
};

/// An instruction on matrices whose elements the invocations of a subgroup have. All of them must
/// execute it.
struct CooperativeStep {
  bool isProduct = false;
  Register uniform = noRegister; ///< 64 bits that must be the same for all lanes
  uint32_t rows = 0, columns = 0, depth = 0;
  std::vector<Register> a, b, c, results;
  spv::SourceLine source;
};

/// Copies that have not landed, and what a lane says of them.
struct LateCopy {
  enum class Kind { Copy, Commit, Wait } kind = Kind::Copy;
  uint16_t from = 0, to = 0; ///< sites
  Register bytes = 0;        ///< number of bytes to read; the others become 0
  int64_t pending = 0;       ///< Wait: max number of groups left; -1: none, committed or not
};

/// A product of matrices in workgroup memory by four warps, what orders such, and uses of its sums.
struct GroupProduct {
  enum class Kind { Product, Begin, Commit, Wait, Fence, Use } kind = Kind::Product;
  /// A factor: blocks of eight lines of 128 bytes, which lie so many bytes apart.
  struct Side {
    uint16_t site = 0;
    int64_t leading = 0, stride = 0;
    bool isTransposed = false; ///< whether rows or columns, not terms, are neighbours in a line
  };
  Side sides[2];
  enum class Type { F16, BF16, Tf32 } type = Type::F16; ///< of the factors
  uint32_t columns = 0;
  /// Returns the bytes of an element of a factor, and the terms of a product.
  int64_t getElementBytes() const { return type == Type::Tf32 ? 4 : 2; }
  uint32_t getDepth() const { return uint32_t(32 / getElementBytes()); }
  Register scale = 0; ///< whether it is added to what the sums hold
  std::vector<Register> sums, results;
  int64_t pending = 0; ///< Wait: max number of groups left
  std::string name;
  spv::SourceLine source;
};

/// A copy of a box of a tensor that has not landed, and the mbarriers that count the bytes of such.
struct TileStep {
  enum class Kind { Init, Expect, Copy, Wait } kind = Kind::Copy;
  uint16_t mbarrier = 0, from = 0, to = 0; ///< sites; `from` and `to` of a copy
  int64_t number = 0; ///< Expect: bytes; Copy: bytes of an element; Wait: the phase's parity
  std::vector<int64_t> shape, box;   ///< Copy: elements, the innermost dimension first
  std::vector<Register> coordinates; ///< Copy: of the box
  std::string name;
  spv::SourceLine source;
};

/// Lanes that a subgroup's reduction combines for each lane.
enum class Reduction : uint32_t { All = 0, UpToOwn = 1, BeforeOwn = 2 };

struct Program {
  std::string name;       ///< of the kernel
  spv::SourceLine source; ///< of the first instruction; in Weir's code, that of the kernel
  std::array<uint32_t, 3> localSize = {1, 1, 1};
  std::vector<Step> steps;
  std::vector<CodeBlock>
      blocks; ///< in structured order: a merge block follows everything that it merges
  std::vector<AccessSite> accesses; ///< by site, from 1; [0] is unused
  std::vector<Barrier> barriers;
  std::vector<Shuffle> shuffles;
  std::vector<Meeting> meetings;
  std::vector<Matrix> matrices;
  std::vector<CooperativeStep> cooperatives;
  std::vector<LateCopy> copies;
  std::vector<GroupProduct> products;
  std::vector<TileStep> tiles;
  bool isWarp = false;      ///< whether its lanes need not run in lockstep
  bool syncsWarps = false;  ///< whether it has barriers of a warp
  bool hasReadOnly = false; ///< whether a load goes by a path that sees no writes
  std::vector<Preset> constants;
  std::vector<BuiltInRegister> builtIns;
  uint32_t registerBytes = 0; ///< bytes of the registers of all lanes
  uint32_t subgroupSize = 0;
  uint32_t width = 0; ///< lanes of a register, a multiple of 8
  int64_t workgroupBytes = 0, privateBytes = 0;
  int64_t workgroupGranule = 16;
};

/// Choices that Vulkan leaves to the device.
struct DecodeOptions {
  uint32_t subgroupSize = 8;
  bool fusesFma = false; ///< whether the Fma of GLSL.std.450 is rounded once
  bool isPtx = false;    ///< whether the module was made of PTX
};

/// Decodes an entry point. Errors: `Error` naming an unsupported or invalid instruction.
Program decode(const spv::Module &module, const std::string &entryPoint,
               const DecodeOptions &options, const std::string &where);

} // namespace weir::sim

#endif // WEIR_LIB_SIM_PROGRAM_H
