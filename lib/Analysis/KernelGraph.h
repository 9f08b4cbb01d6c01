//===- KernelGraph.h - The ways of an invocation past its accesses -*- C++ -*-//

#ifndef WEIR_LIB_ANALYSIS_KERNELGRAPH_H
#define WEIR_LIB_ANALYSIS_KERNELGRAPH_H

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "weir/Analysis/AccessMap.h"
#include "weir/Analysis/Uniformity.h"

#include <vector>

namespace weir {

/// Control flow of a kernel and of the functions it calls, as far as it matters for memory. Where
/// invocations take different ways, there is an edge from the end of one way to the begin of the
/// next: all of them are taken at once, in any order, so the order of the text is as good as any.
struct KernelGraph {
  /// A loop around a node; equal numbers are the same loop.
  struct Loop {
    unsigned number = 0;
    mlir::Operation *op = nullptr; ///< null for a loop of blocks
  };
  struct Edge {
    unsigned to = 0;
    /// The loop that the edge goes around once more: its index in `loops` of the nodes in it, and
    /// its number. No loop if `depth` is -1.
    int depth = -1;
    unsigned loop = 0;
  };
  struct Node {
    /// Numbers of AccessMaps::getAccesses(), all of one instruction.
    llvm::SmallVector<unsigned, 1> accesses;
    int point = -1;   ///< a barrier could stand here
    int barrier = -1; ///< a barrier stands here
    /// The invocation's copies so far that are in no group become one.
    bool closesGroup = false;
    /// The invocation waits here until at most so many of its groups of copies are on their way.
    std::optional<int64_t> groupsLeft;
    /// The same of products of matrices.
    bool closesProducts = false;
    std::optional<int64_t> productsLeft;
    bool fences = false;            ///< products see what the invocation wrote before
    schedule::MBarrierWaitOp waits; ///< for copies of boxes that its mbarrier counts
    llvm::SmallVector<Loop, 2> loops;
    llvm::SmallVector<Edge, 2> successors;
  };
  /// A point where a barrier may be put: just before an operation that all invocations come to
  /// together.
  struct BarrierPoint {
    mlir::Operation *before = nullptr;
    unsigned depth = 0; ///< of loops around it
  };

  std::vector<Node> nodes; ///< the first is the entry
  std::vector<BarrierPoint> points;
  std::vector<mlir::gpu::BarrierOp> barriers;
  /// A branch that is part of a loop with several entries, which isn't understood; null if there is
  /// none.
  mlir::Operation *irreducible = nullptr;

  /// Makes the graph, with nodes only for accesses with `matters` set. `mayEdit` returns whether a
  /// function may be given barriers.
  KernelGraph(mlir::FunctionOpInterface kernel, const AccessMaps &maps,
              const Uniformity &uniformity, const std::vector<bool> &matters,
              llvm::function_ref<bool(mlir::FunctionOpInterface)> mayEdit);

  /// Returns the loops around an access that matters, outermost first.
  llvm::ArrayRef<Loop> getLoops(unsigned access) const {
    auto it = nodeOf.find(access);
    return it == nodeOf.end() ? llvm::ArrayRef<Loop>() : nodes[it->second].loops;
  }
  llvm::DenseMap<unsigned, unsigned> nodeOf;
};

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_KERNELGRAPH_H
