//===- AccessMap.h - Which bytes each memory instruction touches -*- C++ -*-===//
//
// The fourth rung of the alias ladder. For every memory instruction of a kernel an affine map says
// which bytes of which memory it touches, as a function of the workgroup, the invocation and the
// trips of the loops around it. Whether two instructions can touch a common byte, executed by two
// invocations, is then a question about integer points (lib/Analysis/Meeting.h).
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ANALYSIS_ACCESSMAP_H
#define WEIR_ANALYSIS_ACCESSMAP_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "weir/Analysis/Aliasing.h"
#include "weir/Analysis/LaunchSizes.h"
#include "weir/Analysis/Uniformity.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <map>
#include <optional>
#include <vector>

namespace weir {

/// A variable of a kernel. Dimension `i` of every expression below is variable `i`.
struct MapVariable {
  enum class Kind {
    Workgroup,  ///< gpu.block_id of `axis`
    Invocation, ///< gpu.thread_id of `axis`
    Global,     ///< gpu.global_id of `axis`, where the workgroup's size is not known
    Subgroup,   ///< gpu.subgroup_id
    Lane,       ///< gpu.lane_id
    Trip,       ///< finished trips of `loop`, or of the loop that `header` heads
    Element,    ///< an index into what one instruction touches
    Opaque,     ///< `value`, which is not understood
  } kind = Kind::Opaque;
  Scope scope = Scope::Invocation; ///< of an opaque variable: who sees the same value
  bool varies = false; ///< of an opaque variable: whether it may change from trip to trip
  unsigned axis = 0;
  mlir::Operation *loop = nullptr;
  mlir::Block *header = nullptr;
  mlir::Value value;
  std::optional<int64_t> lower, upper; ///< min and max value, if known
  /// Expressions that are at least 0 wherever the variable occurs.
  llvm::SmallVector<mlir::AffineExpr, 0> nonNegative;
};

/// A memory instruction, or the part of it on one piece of memory.
struct MemoryAccess {
  /// The instruction. If it is in a function that the kernel calls, `calls` leads to it, the
  /// outermost call first.
  mlir::Operation *op = nullptr;
  llvm::SmallVector<mlir::Operation *, 0> calls;
  /// The argument, attribution, allocation or global (its `memref.get_global`) that the address was
  /// followed to; null if that isn't known. If an address may be in one of several, there is one
  /// access for each.
  mlir::Value root;
  bool reads = false, writes = false, atomic = false;
  /// Whether it is made at some time between the instruction, a copy that is asynchronous, and the
  /// end of its invocation's wait for that.
  bool late = false;
  /// Whether it is by a product of matrices or a copy of a box, which do not see what invocations
  /// wrote before a fence. A product ends with a group of products.
  bool product = false;

  /// The access touches `bytes` bytes from byte `begin` of the root's aligned base on; if `begin`
  /// is null, any bytes of the root.
  mlir::AffineExpr begin;
  int64_t bytes = 0;
  /// If strides are not known, the access touches the elements [indices, last + elements) of
  /// `view`. Two different tuples of indices are two different elements.
  mlir::Value view;
  llvm::SmallVector<mlir::AffineExpr, 0> indices;
  int64_t elements = 1;
  /// Conditions for the access to be executed: `nonNegative` are at least 0 and `zero` are 0.
  llvm::SmallVector<mlir::AffineExpr, 0> nonNegative, zero;
  /// Whether it is executed wherever the conditions hold, and touches all that it may touch.
  bool certain = true;

  /// Trip variables of the loops around `op`, including those around its calls, outermost first.
  llvm::SmallVector<unsigned, 4> loops;
};

/// The relation of two executions of two instructions, of which the first is earlier.
struct Instances {
  enum class Invocations {
    Same,              ///< one invocation executes both
    SameWorkgroup,     ///< two invocations of one workgroup
    DifferentWorkgroup ///< two invocations of two workgroups
  } invocations = Invocations::SameWorkgroup;

  /// The trip of a loop that the second is in, seen from the first's.
  enum class Trip { Same, Next, Later, Any };
  /// The relation for each loop around both, outermost first; for loops beyond the list it is
  /// `Any`. "Later" includes "Next".
  llvm::SmallVector<Trip, 4> trips;
};

/// The memory instructions of a kernel.
class AccessMaps {
public:
  /// Finds all memory instructions of the kernel and of the functions it calls.
  /// Errors: none. An instruction that isn't understood becomes an access of unknown root, bytes or
  ///         condition.
  explicit AccessMaps(mlir::FunctionOpInterface kernel, const LaunchSizes &sizes);
  explicit AccessMaps(mlir::FunctionOpInterface kernel)
      : AccessMaps(kernel, LaunchSizes::get(kernel)) {}

  /// Returns the accesses in the order of the text. An instruction that touches several pieces of
  /// memory, or is reached by several calls, has several in a row.
  llvm::ArrayRef<MemoryAccess> getAccesses() const { return accesses; }
  llvm::ArrayRef<MapVariable> getVariables() const { return variables; }

  /// Returns the number of loops around both.
  static unsigned countCommonLoops(const MemoryAccess &first, const MemoryAccess &second);

  /// Whether all invocations of a workgroup agree on a value.
  using IsUniform = llvm::function_ref<bool(mlir::Value)>;

  /// Returns whether the two touch a common byte in some such executions. Roots are compared by
  /// `compareRoots`; if they may share bytes without being the same, the answer is `Unknown`.
  ///
  /// `shift`: bytes that are added to the address of the second, for roots that the caller knows to
  ///          be views of one allocation. The roots are then assumed to be the same.
  /// `isUniform`: what the caller knows beyond the agreement of values that `MapVariable` states,
  ///          such as by `Uniformity`; asked only where it could matter.
  ///
  /// `Overlap` needs both to be certain and the sizes that matter known.
  Sharing compare(const MemoryAccess &first, const MemoryAccess &second, const Instances &instances,
                  std::optional<int64_t> shift = {}, IsUniform isUniform = {}) const;

  /// Whether no other invocation can reach the memory.
  bool isPrivate(mlir::Value root) const;

  /// Returns the trip variable of a loop op, or of the loop that a block heads, in the kernel's own
  /// body; std::nullopt when it is no loop.
  std::optional<unsigned> getTripVariable(mlir::Operation *loop) const;
  std::optional<unsigned> getTripVariable(mlir::Block *header) const;

  /// Returns `Overlap` if two roots of this kernel are the same memory, `Disjoint` if they share no
  /// bytes, `Unknown` if they may share some.
  Sharing compareRoots(mlir::Value first, mlir::Value second) const;

  /// Whether the writes of `root` are proved to write each of its first `bytes` bytes, for any
  /// data.
  bool coversAll(mlir::Value root, int64_t bytes) const;

  /// Prints, for people, "write argument 1 at workgroup.x * 512 + invocation.x * 4 for 4".
  void print(llvm::raw_ostream &os, const MemoryAccess &access) const;

private:
  friend class AccessMapBuilder;
  Sharing compareMemory(const MemoryAccess &first, const MemoryAccess &second,
                        Instances::Invocations invocations) const;
  Sharing findMeetings(const MemoryAccess &first, const MemoryAccess &second,
                       const Instances &instances, std::optional<int64_t> shift,
                       IsUniform isUniform) const;
  bool isSure(const MemoryAccess &first, const MemoryAccess &second,
              Instances::Invocations invocations) const;
  std::string getName(unsigned variable) const;
  void print(llvm::raw_ostream &os, mlir::AffineExpr expr) const;

  mutable mlir::FunctionOpInterface kernel; // whose methods are not const
  LaunchSizes sizes;
  std::vector<MapVariable> variables;
  std::vector<MemoryAccess> accesses;
  llvm::DenseMap<mlir::Operation *, unsigned> loopTrips;
  llvm::DenseMap<mlir::Block *, unsigned> headerTrips;
  /// Answers of `findMeetings`, by all that they depend on. The rows of a tile ask equal questions,
  /// and to find an answer here is cheaper than to write the question as a system.
  mutable std::map<std::vector<int64_t>, Sharing> meetings;
};

} // namespace weir

#endif // WEIR_ANALYSIS_ACCESSMAP_H
