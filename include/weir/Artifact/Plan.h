//===- Plan.h - What an artifact says: entries, plans, constants -*- C++ -*-===//
//
// Plain data, the same on both sides of the file. Bytes are bytes; ranges are
// half-open; indices count from 0 in the order of the vectors here.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ARTIFACT_PLAN_H
#define WEIR_ARTIFACT_PLAN_H

#include "weir/Artifact/Hazard.h"
#include "weir/Artifact/Profile.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir {

/// The version of the layout of `.weir` files that this code reads and writes.
inline constexpr int64_t schemaVersion = 6;

/// An element type as safetensors spells it: "F64", "F32", "I64", "I32", "BOOL"
/// (one byte an element)...
using DType = std::string;

/// Bytes of one element. Errors: `Error` when `dtype` is not known.
int64_t getDTypeBytes(const DType &dtype);

struct TensorSpec {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::string kind;    ///< arguments: "input", "target", "param", "state" or ""
  bool donate = false; ///< arguments: the caller may give the bytes away
};

/// Elements times element bytes. Errors: `Error` on overflow of int64.
int64_t getByteSize(const TensorSpec &spec);

struct EntrySpec {
  std::string name;
  std::vector<TensorSpec> arguments, results;
};

/// A constant tensor: bytes of the constant segment, and a tensor of
/// `weights.safetensors`.
struct ConstantSpec {
  TensorSpec tensor;
  int64_t offset = 0; ///< in the constant segment, a multiple of 256
};

struct Manifest {
  std::string producer; ///< "weir 0.1.0"
  std::vector<EntrySpec> entries;
  std::vector<Profile> targets; ///< what each plan folder requires
  std::vector<ConstantSpec> constants;
};

enum class Access { None, Read, Write, Update };
enum class AllocationKind { Argument, Result, Constants, Arena };

struct Allocation {
  AllocationKind kind = AllocationKind::Arena;
  int64_t index = 0; ///< of the argument or result; 0 for the others
  int64_t bytes = 0;
  /// Of an argument that is donated: the result that lives in its bytes and has
  /// no allocation of its own.
  int64_t result = -1;
};

/// What an allocation's bytes hold at a time: an argument, or the outcome of
/// one computation. Sharing and writing in place give bytes a new value.
struct PlanValue {
  std::string name; ///< for people
  int64_t bytes = 0;
};

/// Bytes of one allocation.
struct PlanView {
  int64_t allocation = 0; ///< index into Plan::allocations
  int64_t offset = 0;
  int64_t bytes = 0;
  bool operator==(const PlanView &) const = default;
};

/// The bytes of one operand, and what of which value they are to hold when they
/// are read, and hold once they are written.
struct PlanOperand : PlanView {
  int64_t value = -1; ///< index into Plan::values; -1 for a constant
  int64_t from = 0;   ///< the first byte, of the value's
  /// Of an operand that is inserted into: the value that the bytes hold before, and of
  /// which they keep what is not written; else -1.
  int64_t before = -1;
  bool operator==(const PlanOperand &) const = default;
};

/// The arena bytes of one value. Live in the closed interval of waves.
struct Slot {
  std::string value; ///< a name for people
  int64_t offset = 0, bytes = 0, alignment = 256;
  int64_t firstWave = 0, lastWave = 0;
};

/// Runs of bytes, apart and at equal distances.
struct ByteSlice {
  int64_t begin = 0, bytes = 0; ///< of the first run
  int64_t stride = 0, count = 0;
  int64_t at(int64_t run) const { return begin + run * stride; } ///< where it begins
  int64_t end() const { return at(count - 1) + bytes; }
  bool operator==(const ByteSlice &) const = default;
};

struct KernelOperand {
  Access access = Access::Update;
  bool coversAll = false; ///< every byte is written
  int64_t bytes = 0;      ///< what the kernel's binding declares
  int64_t alignment = 1;  ///< what its loads and stores need
  /// Of an operand that is written, and not all of it: these bytes are, and no others.
  std::optional<ByteSlice> slice = {};
};

struct Kernel {
  std::string name; ///< also the entry point in the code
  std::string code; ///< path in the artifact
  std::array<int64_t, 3> workgroup = {1, 1, 1};
  std::vector<KernelOperand> operands; ///< operand i is binding i of set 0
  /// Pairs of a read and a written operand: the compiler proved from the
  /// kernel's access maps that the second may be written over exactly the bytes
  /// of the first.
  std::vector<std::pair<int64_t, int64_t>> inPlace = {};
};

/// Queues of a plan are numbered below this. The dialect has the same bound.
inline constexpr int64_t maxQueues = 64;

/// One entry of the command list.
struct Command {
  enum class Kind { Dispatch, Barrier, Signal, Wait } kind = Kind::Dispatch;
  int64_t queue = 0;
  // Dispatch.
  int64_t kernel = 0; ///< index into Plan::kernels
  std::array<int64_t, 3> grid = {1, 1, 1};
  int64_t wave = 0;
  std::vector<PlanOperand> operands;
  std::string location; ///< where the computation came from, for people
  // Barrier. The first hazard is the one that forced it.
  std::vector<Hazard> hazards;
  // Barrier or signal.
  std::vector<PlanView> memory; ///< whose writes become visible
  // Signal, and wait for it.
  int64_t signal = 0; ///< the number of the point; no other signal has it
};

/// How one entry runs on one target.
struct Plan {
  std::string entry, target;
  std::vector<Allocation> allocations;
  std::vector<PlanValue> values;
  std::vector<int64_t> argumentValues; ///< by argument; -1 when it has no bytes
  std::vector<int64_t> resultValues;   ///< by result; -1 when it has no bytes
  std::vector<Slot> slots;
  std::vector<Kernel> kernels;
  std::vector<Command> commands;
  int64_t arenaBytes = 0;
  int64_t pinnedBytes = 0; ///< the arena if every value had bytes of its own
};

/// Text forms; `where` names the text in errors. Reading is for hostile input:
/// every key is checked, a key that is missing, unknown, of the wrong type or
/// out of the range of its kind is an `Error`. What reads back equals what was
/// written. Writing is deterministic.
std::string printManifest(const Manifest &manifest);
Manifest parseManifest(const std::string &json, const std::string &where);
std::string printPlan(const Plan &plan);
Plan parsePlan(const std::string &json, const std::string &where);

} // namespace weir

#endif // WEIR_ARTIFACT_PLAN_H
