//===- WorkgroupRaces.h - Races inside a kernel and their cure ---*- C++ -*-===//
//
// Two invocations of a workgroup race when both touch a byte between the same
// two barriers, one of them writes, and not both do so atomically. A barrier
// orders all memory of the workgroup; subgroups give no order. Invocations of
// different workgroups race whatever the barriers.
//
// An asynchronous copy touches bytes at any time until its invocation has
// waited for its group. So a barrier orders it with what follows only behind
// such a wait, and without one it races even with its own invocation.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ANALYSIS_WORKGROUPRACES_H
#define WEIR_ANALYSIS_WORKGROUPRACES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "weir/Analysis/AccessMap.h"
#include "weir/Analysis/Uniformity.h"
#include "weir/Artifact/Hazard.h"

#include <functional>
#include <memory>
#include <vector>

namespace weir {

struct KernelGraph;

/// The bytes that two arguments of a kernel share, in all its dispatches.
struct ArgumentSharing {
  bool unknown = true;
  /// If known, each distance at which the second begins behind the first; empty if they share
  /// nothing.
  llvm::SmallVector<int64_t, 1> shifts;
};
using GetArgumentSharing =
    std::function<std::optional<ArgumentSharing>(unsigned first, unsigned second)>;

/// A hazard between two accesses, by number. The first is earlier, or earlier in the text if
/// neither comes first.
struct AccessHazard {
  HazardKind kind = HazardKind::RAW;
  unsigned first = 0, second = 0;
  bool proved = false; ///< whether it is proved that they meet; else they may
  bool late = false;   ///< whether the first is a copy's, which may not have landed yet

  bool operator==(const AccessHazard &) const = default;
};

/// The hazards of a kernel that barriers must separate.
class WorkgroupRaces {
public:
  /// Collects the accesses of a kernel. `getSharing` returns how two arguments share bytes, or
  /// std::nullopt if it knows no more than `AccessMaps::compareRoots`; it may be null. `mayEdit`
  /// returns whether a barrier may be put into a function that the kernel calls.
  WorkgroupRaces(mlir::FunctionOpInterface kernel, const LaunchSizes &sizes,
                 GetArgumentSharing getSharing,
                 std::function<bool(mlir::FunctionOpInterface)> mayEdit);
  ~WorkgroupRaces();

  const AccessMaps &getMaps() const { return maps; }
  const Uniformity &getUniformity() const;
  /// Returns every barrier of the kernel and of the functions it calls, in order of the text.
  llvm::ArrayRef<mlir::gpu::BarrierOp> getBarriers() const;
  /// Whether barriers or control flow matter: there is a barrier or a branch, or invocations of a
  /// workgroup may meet. If not, all answers below are empty and cost nothing.
  bool matters() const;
  /// Returns a branch of control flow that isn't understood, a loop with several entries; null if
  /// there is none. If there is one, nothing else may be asked.
  mlir::Operation *getIrreducible() const;

  struct PlannedBarrier {
    mlir::Operation *before = nullptr;
    /// Whether all copies of the invocation must have landed before the barrier.
    bool waits = false;
    /// The hazards if only this barrier is missing; never empty.
    std::vector<AccessHazard> hazards;
  };
  struct Plan {
    std::vector<PlannedBarrier> barriers; ///< in order of the text
    /// The hazards that no barrier separates: instructions that race with themselves, and pairs
    /// with no point between them that all invocations come to.
    std::vector<AccessHazard> unordered;
    /// Whether no cheaper set of barriers would do. A barrier inside a loop costs eight times one
    /// outside.
    bool cheapest = true;
  };
  /// Returns the barriers that the kernel lacks.
  Plan plan();

  /// Returns barriers of the kernel that can all be removed: the others still separate all that
  /// they separate. In order of the text.
  std::vector<mlir::gpu::BarrierOp> findRedundant();

  /// Returns pairs of accesses by which different workgroups may touch the same bytes: each pair of
  /// roots once, and all pairs that are proved.
  std::vector<AccessHazard> findGridRaces();

private:
  mlir::FunctionOpInterface kernel;
  LaunchSizes sizes;
  AccessMaps maps;
  GetArgumentSharing getSharing;
  std::function<bool(mlir::FunctionOpInterface)> mayEdit;
  std::unique_ptr<Uniformity> gridUniformity;
  // These are made when first asked for.
  mutable std::unique_ptr<Uniformity> uniformity;
  mutable std::unique_ptr<KernelGraph> graph;
  mutable std::optional<bool> mayMeet; ///< whether two invocations of a workgroup may, somewhere
  llvm::DenseMap<std::tuple<unsigned, unsigned, unsigned>, Sharing> known;

  KernelGraph &getGraph() const;
  void makeUniformity() const;
  bool mayInvocationsMeet() const;
  Sharing compare(unsigned first, unsigned second, const Instances &instances) const;
  bool isHarmless(unsigned first, unsigned second, const Uniformity &within,
                  std::optional<unsigned> depth) const;
  Sharing meet(unsigned first, unsigned second, unsigned relation);
  Sharing computeMeeting(unsigned first, unsigned second, unsigned relation);
  AccessHazard makeHazard(unsigned first, unsigned second, Sharing sharing) const;
  bool isBeyondCure(unsigned first, unsigned second, unsigned relation);

  /// A way from one access to another that passes no barrier.
  struct Way {
    AccessHazard hazard;
    llvm::SmallVector<unsigned> cures; ///< numbers of what could separate the two, ascending
  };
  /// A node, and whether the copy where the way begins may still be in flight there.
  struct Passage {
    unsigned node;
    bool isFlying;
  };
  using Cures = llvm::SmallVector<unsigned, 2>;
  std::vector<Way> findWays(llvm::function_ref<bool(Passage)> stops,
                            llvm::function_ref<Cures(Passage)> getCures, bool all);
  Sharing meetOnWay(unsigned first, unsigned second, unsigned relation);
  std::vector<AccessHazard> findSelfRaces();
};

} // namespace weir

#endif // WEIR_ANALYSIS_WORKGROUPRACES_H
