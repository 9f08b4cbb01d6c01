//===- Code.h - A kernel's code as steps of a subgroup ----------*- C++ -*-===//
//
// Each instruction is a step: what it costs, what it waits for, and whether an address or a branch
// depends on it. Only those are computed; of the others only the cost matters.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_MODEL_CODE_H
#define WEIR_LIB_MODEL_CODE_H

#include "weir/SpirvReader/Module.h"

#include <array>
#include <map>
#include <set>

namespace weir::model {

using spv::Id;
using spv::Instruction;
using spv::Module;
using spv::Op;

/// The parts of a unit that execute instructions.
enum class Pipe : uint8_t { None, Fma, Integer, Fma64, Special, Shuffle, Matrix };
inline constexpr size_t numPipes = 7;

/// Work of one subgroup, or of many.
struct Work {
  double issue = 0;                        ///< instructions
  std::array<double, numPipes> pipes = {}; ///< instructions of all lanes, by pipe
  double flops = 0;                        ///< of a lane, outside the matrix pipe
  double matrixFlops = 0, tf32Flops = 0;   ///< of a subgroup

  void add(const Work &other, double times) {
    issue += times * other.issue;
    for (size_t i = 0; i < numPipes; ++i)
      pipes[i] += times * other.pipes[i];
    flops += times * other.flops;
    matrixFlops += times * other.matrixFlops;
    tf32Flops += times * other.tf32Flops;
  }
};

/// A load, store, atomic update or copy; a copy has two, from and to.
struct Site {
  const Instruction *instruction = nullptr;
  bool reads = false, writes = false;
  bool passesL1 = false; ///< whether it goes to L2 directly
  int64_t bytes = 0;     ///< of an invocation
  /// Whether what it reads goes to workgroup memory by itself, where the copy's other site counts.
  bool isCopied = false;
  /// Of a matrix that a subgroup loads or stores together: lines of so many bytes, and the bytes
  /// from one to the next. No lines: it is an access of invocations.
  int64_t lines = 0, lineBytes = 0, lineStride = 0;
};

struct Step {
  enum class Kind : uint8_t {
    Plain,
    Load,
    Store,
    Copy,
    Barrier,
    CommitCopies,
    WaitCopies,
    Product,
    CommitProducts,
    WaitProducts,
    Tile,
    WaitTile,
    Variable
  };
  const Instruction *instruction = nullptr;
  Kind kind = Kind::Plain;
  Pipe waits = Pipe::None;      ///< the pipe whose latency its result has
  double issue = 0;             ///< instructions
  bool isFollowed = false;      ///< whether an address or branch depends on it
  uint32_t width = 0;           ///< bits of an integer result, 1 for Bool; 0: a float
  uint32_t slot = 0, parts = 0; ///< where its value is kept, if it is followed
  uint32_t site = 0;            ///< number of its first site
  /// Loads of workgroup memory side by side: how many words the first one takes with it, as ptxas
  /// joins them; 0 for those that are taken.
  uint32_t words = 1;
  int64_t groups = 0; ///< WaitCopies, WaitProducts: the number of groups that may be on their way
  int64_t groupColumns = 0; ///< Product: of four subgroups
  std::vector<Id> uses;     ///< values that it reads
  bool isBinary = false;    ///< whether it is arithmetic on two followed integers
  uint32_t inWidth = 0;     ///< bits of the first one
};

struct CodeBlock {
  const spv::Block *block = nullptr;
  std::vector<Step> steps; ///< without phis and terminator
  Work work;
  uint32_t rank = 0; ///< lanes meet again where the one with the lowest rank runs first
  std::array<bool, 2> leavesLoop = {}, isMerge = {}; ///< by successor of a branch
};

class Code {
public:
  /// Errors: `Error` on what is not modelled: calls of functions, switches, too many blocks.
  Code(const Module &module, const spv::EntryPoint &entry, const std::string &where);

  const Module &module;
  const spv::EntryPoint &entry;
  const spv::Function &function;
  std::string where;
  std::vector<CodeBlock> blocks; ///< as in the function
  std::vector<Site> sites;
  int64_t sharedBytes = 0;  ///< of all variables of workgroup memory
  bool hasBarriers = false; ///< of a workgroup
  bool copiesAsync = false; ///< whether it copies on to workgroup memory, and computes meanwhile

  /// Where the value of an id is kept: its first slot; `none` if it is not followed.
  static constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> slotOf;
  std::vector<uint32_t> partsOf;
  uint32_t numSlots = 0;
  std::map<Id, uint64_t> addressOf; ///< of variables
  std::set<Id> loopConditions;      ///< that decide whether a loop is left

  // Variables lie at these addresses, so that an address says what it is in.
  static constexpr uint64_t sharedBase = uint64_t(1) << 20, inputBase = uint64_t(1) << 37,
                            ownBase = uint64_t(1) << 38, globalBase = uint64_t(1) << 39,
                            bindingBase = uint64_t(1) << 40;

  uint32_t getWidth(Id type) const;
  uint32_t getParts(Id type) const;

private:
  void placeVariables();
  void follow();
  Step makeStep(const Instruction &instruction);
  void order();
  void joinLoads(CodeBlock &block);
};

/// Returns the ids of values among an instruction's operands.
std::vector<Id> getUses(const Instruction &instruction);

/// Returns what an instruction costs a subgroup, its lanes computing `parts` numbers each.
Work getWork(const Module &module, const Instruction &instruction, uint32_t parts, Pipe &waits);

} // namespace weir::model

#endif // WEIR_LIB_MODEL_CODE_H
