//===- WorkgroupRaces.h - Races inside a kernel and their cure ---*- C++ -*-===//
//
// Two invocations of a workgroup race when both touch a byte between the same
// two barriers, one of them writes, and not both do so atomically. A barrier
// orders all memory of the workgroup; subgroups give no order. Invocations of
// different workgroups race whatever the barriers.
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

/// How two arguments of a kernel share bytes, in all its dispatches.
struct ArgumentSharing {
  bool unknown = true;
  /// If known: each distance at which the second begins behind the first; none
  /// where they share nothing.
  llvm::SmallVector<int64_t, 1> shifts;
};
using GetArgumentSharing =
    std::function<std::optional<ArgumentSharing>(unsigned first, unsigned second)>;

/// Two accesses, by number, of which the first is earlier (in the text, where
/// neither is).
struct AccessHazard {
  HazardKind kind = HazardKind::RAW;
  unsigned first = 0, second = 0;
  bool proved = false; ///< they surely meet; else it can't be told

  bool operator==(const AccessHazard &) const = default;
};

/// The hazards of a kernel that barriers must separate.
class WorkgroupRaces {
public:
  /// `getSharing` knows of arguments what `AccessMaps::compareRoots` doesn't;
  /// std::nullopt: nothing. `mayEdit` tells the functions that a barrier may be
  /// put in, of those that the kernel calls.
  WorkgroupRaces(mlir::FunctionOpInterface kernel, const LaunchSizes &sizes,
                 GetArgumentSharing getSharing,
                 std::function<bool(mlir::FunctionOpInterface)> mayEdit);
  ~WorkgroupRaces();

  const AccessMaps &getMaps() const { return maps; }
  const Uniformity &getUniformity() const;
  /// Every barrier of the kernel and of what it calls, in order of the text.
  llvm::ArrayRef<mlir::gpu::BarrierOp> getBarriers() const;
  /// Whether barriers or control flow matter: there is a barrier or a branch, or invocations of a
  /// workgroup may meet. Where they don't, all that follows is empty, and costs nothing.
  bool matters() const;
  /// A branch of control flow that isn't understood, a loop with several
  /// entries; null when there is none. Nothing else is answered where there is.
  mlir::Operation *getIrreducible() const;

  struct PlannedBarrier {
    mlir::Operation *before = nullptr;
    /// What meets if only this barrier is missing; never empty.
    std::vector<AccessHazard> hazards;
  };
  struct Plan {
    std::vector<PlannedBarrier> barriers; ///< in order of the text
    /// What no barrier separates: instructions that race with themselves, and
    /// pairs with no place between them that all invocations come to.
    std::vector<AccessHazard> unordered;
    /// No cheaper set of barriers would do, counting those inside a loop eight
    /// times those outside.
    bool cheapest = true;
  };
  /// The barriers that are missing beside those in the kernel.
  Plan plan();

  /// Barriers of the kernel without which all that they separate together is
  /// still separated, in order of the text.
  std::vector<mlir::gpu::BarrierOp> findRedundant();

  /// Pairs of which different workgroups may touch the same bytes; each pair of
  /// roots once, unless proved.
  std::vector<AccessHazard> findGridRaces();

private:
  mlir::FunctionOpInterface kernel;
  LaunchSizes sizes;
  AccessMaps maps;
  GetArgumentSharing getSharing;
  std::function<bool(mlir::FunctionOpInterface)> mayEdit;
  std::unique_ptr<Uniformity> gridUniformity;
  // Made when asked for.
  mutable std::unique_ptr<Uniformity> uniformity;
  mutable std::unique_ptr<KernelGraph> graph;
  mutable std::optional<bool> mayMeet; ///< two invocations of a workgroup, somewhere
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
    llvm::SmallVector<unsigned> places; ///< that it passes, ascending
  };
  std::vector<Way> findWays(llvm::function_ref<bool(unsigned node)> stops,
                            llvm::function_ref<int(unsigned node)> getPlace, bool all);
  std::vector<AccessHazard> findSelfRaces();
};

} // namespace weir

#endif // WEIR_ANALYSIS_WORKGROUPRACES_H
