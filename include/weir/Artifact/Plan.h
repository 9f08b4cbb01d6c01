//===- Plan.h - Entries, plans and constants of an artifact -----*- C++ -*-===//
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
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir {

/// The version of the `.weir` format that this code reads and writes.
inline constexpr int64_t schemaVersion = 7;

/// An element type as safetensors spells it: "F64", "F32", "I64", "I32", "BOOL"
/// (one byte an element)...
using DType = std::string;

/// Returns the bytes of one element. Errors: `Error` when `dtype` is unknown.
int64_t getDTypeBytes(const DType &dtype);

struct TensorSpec {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::string kind;    ///< arguments: "input", "target", "param", "state" or ""
  bool donate = false; ///< arguments: the caller may give the bytes away
  /// State: what it holds before the first step, the value of the argument `startsAs`, or, where
  /// that is empty, the number `startsAt` in each element.
  std::string startsAs = {};
  double startsAt = 0;
  /// State, and the result of its name: whether its buffer should lie in the host's memory, which
  /// the device reads and writes over the bus.
  bool isInHost = false;
};

/// Returns the number of elements times the bytes of one. Errors: `Error` on int64 overflow.
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
  std::vector<Profile> targets; ///< one per plan folder: what it requires
  std::vector<ConstantSpec> constants;
};

enum class Access { None, Read, Write, Update };
enum class AllocationKind { Argument, Result, Constants, Arena };

struct Allocation {
  AllocationKind kind = AllocationKind::Arena;
  int64_t index = 0; ///< of the argument or result; 0 for the others
  int64_t bytes = 0;
  /// For a donated argument: index of the result that reuses its bytes and has no allocation of
  /// its own; else -1.
  int64_t result = -1;
};

/// Returns the name of an allocation for people: "argument \"x\"", "result \"y\"", "the constants"
/// or "the arena". Needs: its index is in the range of the entry's arguments or results.
std::string describeAllocation(const Allocation &allocation, const EntrySpec &entry);

/// Contents of bytes at some time: an argument, or the result of one computation. When slots
/// share bytes, or a kernel writes in place, the bytes get a new value.
struct PlanValue {
  std::string name; ///< for people
  int64_t bytes = 0;
};

/// A range of bytes in one allocation.
struct PlanView {
  int64_t allocation = 0; ///< index into Plan::allocations
  int64_t offset = 0;
  int64_t bytes = 0;
  bool operator==(const PlanView &) const = default;
};

/// The bytes of one operand and their contents: `bytes` bytes of `value` starting at its byte
/// `from`. A read expects these contents, a write produces them.
struct PlanOperand : PlanView {
  int64_t value = -1; ///< index into Plan::values, or -1 for a constant
  int64_t from = 0;   ///< byte of the value at the view's first byte
  /// For an operand that is inserted into: the value that the bytes hold before; bytes that are
  /// not written keep it. Else -1.
  int64_t before = -1;
  bool operator==(const PlanOperand &) const = default;
};

/// Arena bytes of one value, live in waves [firstWave, lastWave], both inclusive.
struct Slot {
  std::string value; ///< a name for people
  int64_t offset = 0, bytes = 0, alignment = 256;
  int64_t firstWave = 0, lastWave = 0;
};

/// Disjoint runs of `bytes` bytes at equal distances of `stride` bytes.
struct ByteSlice {
  int64_t begin = 0, bytes = 0; ///< of the first run
  int64_t stride = 0, count = 0;
  int64_t at(int64_t run) const { return begin + run * stride; } ///< begin of a run
  int64_t end() const { return at(count - 1) + bytes; }
  bool operator==(const ByteSlice &) const = default;
};

/// Returns "[begin, bytes, stride, count] = [0, 8, 16, 4]".
std::string printSlice(const ByteSlice &slice);

struct KernelOperand {
  Access access = Access::Update;
  bool coversAll = false; ///< every byte is written
  int64_t bytes = 0;      ///< as declared by the kernel's binding
  int64_t alignment = 1;  ///< as its loads and stores need
  /// For an operand that is written in part: exactly the bytes that are written.
  std::optional<ByteSlice> slice = {};
};

/// All that a device needs to copy boxes of an operand to workgroup memory (TMA): a parameter of
/// the kernel, which whoever launches it makes from the operand's address. The operand is a tensor,
/// row by row from its first byte. What is outside of it is copied as zeros; lines of 128 bytes
/// have their runs of 16 bytes exchanged.
struct TensorMap {
  int64_t operand = 0;
  DType dtype;                ///< "BF16" or "F16"
  std::vector<int64_t> shape; ///< elements, the innermost last; two to five sizes
  std::vector<int64_t> box;   ///< elements that are copied at once; the last are 128 bytes
  auto operator<=>(const TensorMap &) const = default;

  /// Returns the bytes between neighbours along a dimension.
  int64_t getStride(size_t dim) const;
  int64_t getBoxBytes() const;
};

struct Kernel {
  std::string name; ///< also the entry point in the code
  std::string code; ///< path in the artifact
  std::array<int64_t, 3> workgroup = {1, 1, 1};
  std::vector<KernelOperand> operands; ///< operand i is binding i of set 0
  /// Pairs (read operand, written operand): the compiler proved from the kernel's access maps
  /// that the second may be written over exactly the bytes of the first.
  std::vector<std::pair<int64_t, int64_t>> inPlace = {};
  /// Bytes of workgroup memory that a launch adds to what the code declares with a size.
  int64_t workgroupMemory = 0;
  std::vector<TensorMap> tensorMaps = {}; ///< parameters behind the operands, in this order
};

/// Upper bound of queue numbers in a plan. The dialect has the same bound.
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
  std::string location; ///< source of the computation, for people
  // Barrier. The first hazard is the one that forced it.
  std::vector<Hazard> hazards;
  // Barrier or signal.
  std::vector<PlanView> memory; ///< writes to these bytes become visible
  // Signal, and wait for it.
  int64_t signal = 0; ///< unique number of the signal
};

/// A named range of a result's bytes, which others may read before the run ends: from when all
/// dispatches up to `wave` have ended, nothing writes them.
struct ResultPart {
  std::string name;
  int64_t result = 0; ///< index into the entry's results
  int64_t from = 0, bytes = 0;
  int64_t wave = 0; ///< the last of a dispatch that writes one of the bytes
};

/// Bytes that a loop hands from one trip to the next, and the values that they hold.
struct CarriedValue {
  PlanView view;
  int64_t init = 0;   ///< before the first trip
  int64_t inside = 0; ///< when a trip begins
  int64_t next = 0;   ///< when a trip ends
  int64_t after = 0;  ///< behind the loop
};

/// Commands [first, end) of a plan, which run several times.
struct Loop {
  int64_t first = 0, end = 0;
  int64_t trips = 1; ///< with a flag: the max number
  /// A byte of a carried value. It is read before each trip; 0 ends the loop.
  std::optional<PlanView> flag = {};
  std::vector<CarriedValue> carried = {};
};

/// The commands and memory of one entry on one target.
struct Plan {
  std::string entry, target;
  std::vector<Allocation> allocations;
  std::vector<PlanValue> values;
  std::vector<int64_t> argumentValues; ///< by argument; -1 when it has no bytes
  std::vector<int64_t> resultValues;   ///< by result; -1 when it has no bytes
  std::vector<Slot> slots;
  std::vector<Kernel> kernels;
  std::vector<Command> commands;
  std::vector<ResultPart> parts; ///< apart from one another
  std::vector<Loop> loops;       ///< in the order of their first commands, outer ones first
  int64_t arenaBytes = 0;
  int64_t pinnedBytes = 0; ///< size of the arena if no two values shared bytes
};

/// Returns the JSON form, the same for equal objects.
std::string printManifest(const Manifest &manifest);
std::string printPlan(const Plan &plan);

/// Parses the JSON form: a printed text gives an equal object. `where` names the text in errors.
/// Accepts hostile input: a key that is missing, unknown, of the wrong type or out of range is an
/// `Error`.
Manifest parseManifest(const std::string &json, const std::string &where);
Plan parsePlan(const std::string &json, const std::string &where);

} // namespace weir

#endif // WEIR_ARTIFACT_PLAN_H
