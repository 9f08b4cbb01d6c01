//===- Uniformity.h - What all invocations agree on --------------*- C++ -*-===//

#ifndef WEIR_ANALYSIS_UNIFORMITY_H
#define WEIR_ANALYSIS_UNIFORMITY_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace weir {

/// Which values and which control flow are the same for all invocations of a
/// workgroup, or of the whole grid, in a kernel and the functions it calls.
///
/// A value is uniform when all invocations that execute the same instance of
/// its operation (the same trips of the same loops) get the same value. A place
/// is uniform when all invocations execute it, equally often and together.
///
/// Assumes that the kernel is free of races within a workgroup: then all
/// invocations that load one address in one barrier interval see one value.
class Uniformity {
public:
  enum class Scope { Workgroup, Grid };
  /// Whether no other workgroup changes what this operation loads.
  using IsStable = llvm::function_ref<bool(mlir::Operation *)>;

  explicit Uniformity(
      mlir::FunctionOpInterface kernel, Scope scope = Scope::Workgroup,
      IsStable isStable = [](mlir::Operation *) { return false; });

  bool isUniform(mlir::Value value) const { return !varying.contains(value); }
  bool isUniform(mlir::Block *block) const { return !getDivergence(block); }
  bool isUniform(mlir::Operation *op) const { return isUniform(op->getBlock()); }

  /// The branch by which not all invocations come to `block`, the innermost
  /// one; null when all do. A function's caller counts where only some call.
  mlir::Operation *getDivergence(mlir::Block *block) const;
  /// Whether invocations leave `branch` by different ways, or go around a loop
  /// a different number of times.
  bool isDivergent(mlir::Operation *branch) const { return divergentBranches.contains(branch); }

private:
  friend class UniformityBuilder;
  llvm::DenseSet<mlir::Value> varying;
  llvm::DenseSet<mlir::Operation *> divergentBranches;
  /// Blocks that a branch, which is mapped to, keeps some invocations from.
  llvm::DenseMap<mlir::Block *, mlir::Operation *> divergence;
};

/// Whether whoever executes `op` with the same operands gets the same results:
/// false for what touches memory, and for what tells invocations apart, such as
/// the registers of ids of any target.
bool dependsOnOperandsOnly(mlir::Operation *op);

} // namespace weir

#endif // WEIR_ANALYSIS_UNIFORMITY_H
