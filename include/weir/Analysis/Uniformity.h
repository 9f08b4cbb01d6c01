//===- Uniformity.h - What all invocations agree on --------------*- C++ -*-===//
//
// All that is known about who gets the same value is in Uniformity.cpp. `getResultScope` is the one
// table of operations. Two questions follow values through a kernel by it:
//
//   getAgreement  backwards from one value, in one chain of calls, and within which scope all get
//                 it. Asked for each value that an address is made of.
//   Uniformity    forwards from all that varies, with integer ranges and divergent control flow, in
//                 one scope. It proves more and costs a fixed point over the kernel; asked where
//                 that decides, such as by barriers.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ANALYSIS_UNIFORMITY_H
#define WEIR_ANALYSIS_UNIFORMITY_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir {
class DominanceInfo;
} // namespace mlir

namespace weir {

struct BodyFrame;

/// The executions that agree on something: those of one invocation only, those of all invocations
/// of a workgroup, or all.
enum class Scope { Invocation, Workgroup, Grid };

/// Returns the largest scope in which all get the same results of `op` if they agree on its
/// operands: `Invocation` for loads and other effects on memory, for ids of invocations, and for
/// operations that are not known, since they may read a register of ids of some target.
Scope getResultScope(mlir::Operation *op);

/// The scope in which all get the same value.
struct Agreement {
  Scope scope = Scope::Grid;
  bool varies = false; ///< the value may also change from trip to trip of a loop
};

/// Returns who agrees on `value` as seen in `frame`, by all that it is computed from, also around
/// loops and in callers.
Agreement getAgreement(mlir::Value value, const BodyFrame &frame, mlir::DominanceInfo &dominance);

/// The values and the control flow that are the same for all invocations of a workgroup, or of the
/// whole grid, in a kernel and the functions it calls.
///
/// A value is uniform when all invocations that execute the same instance of its operation (the
/// same trips of the same loops) get the same value. A place is uniform when all invocations
/// execute it, equally often and together.
///
/// Assumes that the kernel is free of races within a workgroup: then all invocations that load one
/// address in one barrier interval see one value.
class Uniformity {
public:
  /// Whether no other workgroup changes what this operation loads.
  using IsStable = llvm::function_ref<bool(mlir::Operation *)>;

  /// Finds what is uniform in `scope`, which is `Workgroup` or `Grid`.
  explicit Uniformity(
      mlir::FunctionOpInterface kernel, Scope scope = Scope::Workgroup,
      IsStable isStable = [](mlir::Operation *) { return false; });

  bool isUniform(mlir::Value value) const { return !varying.contains(value); }
  bool isUniform(mlir::Block *block) const { return !getDivergence(block); }
  bool isUniform(mlir::Operation *op) const { return isUniform(op->getBlock()); }

  /// Returns the innermost branch that keeps some invocations from `block`, or null when all come
  /// to it. It may be in a function's caller, where only some invocations call.
  mlir::Operation *getDivergence(mlir::Block *block) const;
  /// Whether invocations leave `branch` by different ways, or go around a loop a different number
  /// of times.
  bool isDivergent(mlir::Operation *branch) const { return divergentBranches.contains(branch); }

private:
  friend class UniformityBuilder;
  llvm::DenseSet<mlir::Value> varying;
  llvm::DenseSet<mlir::Operation *> divergentBranches;
  /// Maps each block that not all invocations come to to the branch that keeps some from it.
  llvm::DenseMap<mlir::Block *, mlir::Operation *> divergence;
};

} // namespace weir

#endif // WEIR_ANALYSIS_UNIFORMITY_H
