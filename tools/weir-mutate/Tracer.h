//===- Tracer.h - Executes the integer part of a kernel ---------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_TRACER_H
#define WEIR_TOOLS_WEIR_MUTATE_TRACER_H

#include "Trace.h"
#include "weir/Artifact/Error.h"
#include "weir/SpirvReader/Integers.h"

#include <map>
#include <optional>
#include <set>

namespace weir::mutate {

/// Bytes of a line of a slab, and of the runs that are exchanged in it.
inline constexpr int64_t lineBytes = 128, runBytes = 16;

using spv::EntryPoint;
using spv::Id;
using spv::Instruction;
using spv::Module;
using spv::Variable;

/// Up to four integers of at most 64 bits, zero-extended. Unknown ones are floats or depend on
/// loaded values.
struct Value {
  std::array<uint64_t, 4> bits = {};
  uint8_t known = 0; ///< one bit per integer
  /// A selection that data decide: the number is the first of `bits`, or `other`. 0: there is none.
  uint32_t choice = 0;
  uint64_t other = 0;

  std::optional<uint64_t> get(size_t i) const {
    return !choice && known >> i & 1 ? std::optional(bits[i]) : std::nullopt;
  }
  /// Returns the number if the selection takes its first or its other value.
  Value choose(bool isOther) const;
  void set(size_t i, std::optional<uint64_t> number) {
    bits[i] = number.value_or(0);
    known = uint8_t((known & ~(1u << i)) | unsigned(number.has_value()) << i);
  }
};

inline Value Value::choose(bool isOther) const {
  Value value;
  value.bits = bits;
  value.known = known;
  if (choice && isOther)
    value.set(0, other);
  return value;
}

struct Pointer {
  enum class Kind { None, Input, Buffer, Workgroup, Own } kind = Kind::None;
  uint32_t object = 0; ///< Buffer, Workgroup: as in `Touch`; else an id
  int64_t offset = 0;
  bool isWhole = true; ///< Own: whether it points to the whole variable
};

struct ByteAccess {
  uint32_t object;
  int64_t begin, end;
  bool isWrite, isEarly;
  uint32_t phase, warp, warpPhase, invocation, number;
  bool isOfProduct = false; ///< whether a product of matrices by four warps reads it
  /// Writes: number of barriers passed when a fence made it visible to products; before one, the
  /// max.
  uint32_t shown = 0;
};

/// An instruction that the lanes of a warp run together.
struct Meeting {
  uint32_t word;
  uint32_t mask;     ///< the lanes that must come
  int64_t place = 0; ///< operands that all lanes must have alike
  bool operator==(const Meeting &) const = default;
};

class Tracer {
public:
  Tracer(const Module &module, const std::string &entryPoint, const std::array<int64_t, 3> &grid,
         uint32_t subgroupSize, uint32_t bindings, const std::string &where, bool countsChosen);
  Trace run();

private:
  void runInvocation(uint32_t workgroup, uint32_t invocation);
  void step(const Instruction &instruction);
  void compute(const Instruction &instruction);
  Value evaluate(const Instruction &instruction);
  std::optional<uint64_t> computeNamed(const Instruction &instruction, uint32_t width);
  void makePointer(const Instruction &instruction);
  void access(const Instruction &instruction);
  void access(const Instruction &instruction, const Pointer &pointer);
  void meet(const Instruction &instruction);
  bool meetInWarp(const Instruction &instruction);
  void compareMeetings();
  void readBuiltIn(const Variable &variable, Value &value) const;
  void note(const Instruction &instruction, const Pointer &pointer, int64_t bytes, bool isWrite);
  void beginCopy(const Instruction &instruction);
  bool orderCopies(const Instruction &instruction);
  void beginProduct(const Instruction &instruction);
  bool orderProducts(const Instruction &instruction);
  int64_t getNumber(const Instruction &instruction, size_t operand);
  Pointer getTarget(const Instruction &instruction, size_t operand, Pointer::Kind kind);
  void beginTile(const Instruction &instruction);
  std::pair<uint32_t, int64_t> useMBarrier(const Instruction &instruction, size_t operand);
  void orderTiles(const Instruction &instruction);
  void findSums();
  void checkSums(const Instruction &instruction);
  void noteAll(uint32_t workgroup);

  uint64_t getAddress(Id variable);
  void makeAddress(const Instruction &instruction);
  Pointer findVariable(uint64_t address) const;

  const Value &use(Id id);
  uint32_t getWidth(Id type) const;
  std::string describe(const Instruction &instruction) const;
  [[noreturn]] void refuse(const Instruction &instruction, const std::string &problem) const {
    throw Error(where + ": " + describe(instruction) + " " + problem);
  }
  void report(const std::string &problem) {
    if (result.problem.empty())
      result.problem = problem;
  }

  const Module &module;
  std::string where;
  const bool countsChosen;
  const EntryPoint *entry = nullptr;
  std::array<uint32_t, 3> grid;
  uint32_t subgroupSize, size = 1;

  // Values of the current invocation, by id.
  std::vector<Value> values;
  std::vector<Pointer> pointers;
  std::map<Id, Pointer> others; ///< where pointers go if a selection takes its other value
  uint32_t choices = 0;
  std::vector<bool> isConstant;
  std::map<Id, Value> own; ///< contents of its variables that are not arrays
  uint32_t workgroup = 0, invocation = 0, storagePhase = 0, memoryPhase = 0, number = 0;
  uint32_t warpPhase = 0;
  uint64_t instructions = 0;
  bool hasWarpBarriers = false;
  bool isText = false;
  std::vector<int64_t> sizes; ///< bytes of the variables of workgroup memory; 0: unknown
  std::vector<Id> numbered;   ///< variables with addresses below 2^32
  // Where the current workgroup met: words of barriers, and by lane of the current warp.
  std::vector<uint32_t> barriers, firstBarriers;
  std::vector<std::vector<Meeting>> meetings;

  std::vector<ByteAccess> accesses; ///< accesses of the current workgroup
  /// A copy of the current invocation that it has not waited for: what it touches, and the number
  /// of groups closed since it began.
  struct Flight {
    std::vector<ByteAccess> accesses;
    uint64_t groups = 0;
    std::vector<size_t> noted = {}; ///< its writes among the workgroup's accesses
    /// Of a copy of a box: the mbarrier that counts its bytes, by its object and place there.
    std::optional<std::pair<uint32_t, int64_t>> mbarrier = std::nullopt;
  };
  std::vector<Flight> flights;
  std::vector<Flight> products; ///< products of matrices that it has not waited for
  std::vector<Flight> tiles;    ///< boxes whose phase it has not waited for
  /// An mbarrier as the current invocation finds it.
  struct Phase {
    uint64_t waits = 0; ///< phases that it has waited for
    bool isOpen = false;
    int64_t left = 0; ///< bytes that it expects and has not begun to copy
  };
  std::map<std::pair<uint32_t, int64_t>, Phase> phases;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> owners; ///< who made the workgroup's mbarriers
  std::set<Id> sums;                                       ///< results of products and phis of them
  bool hasFence = false;       ///< whether a wgmma.fence is behind its last wait for products
  std::vector<size_t> unshown; ///< its writes among the accesses that products do not see
  struct Range {
    Touch touch;
    int64_t end;
  };
  std::vector<Range> ranges; ///< ranges so far; `touch.granule` is in bytes
  Trace result;
};

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_TRACER_H
