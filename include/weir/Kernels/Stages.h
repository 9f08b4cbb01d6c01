//===- Stages.h - Kernels that compute group by group -----------*- C++ -*-===//
//
// Kernels that all work on batches, such as the heads of an attention, need nothing of each other's
// other batches. One kernel can have them as its stages: its region holds them, and a workgroup
// computes them one after the other for a group, a number in each of the dimensions that the
// batches are numbered by. What one stage hands to another stays in the workgroup's memory.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_KERNELS_STAGES_H
#define WEIR_KERNELS_STAGES_H

#include "dialects/Schedule/Schedule.h"
#include "weir/Kernels/Domain.h"

namespace weir {

/// A kernel as a stage of another.
struct Stage {
  mutable schedule::KernelOp kernel; ///< a handle: an op's methods are not const
  KernelDomain domain;               ///< of all groups
  /// Dimensions of the domain's rows that number the groups, the outermost first.
  llvm::SmallVector<int64_t> groupDims;

  llvm::SmallVector<int64_t> getGroupSizes() const;
  int64_t getGroups() const; ///< the number of groups
};
using Stages = std::vector<Stage>;

/// A dimension of a tensor, as it lies in memory: its size, and the elements from one index to the
/// next. A reshape keeps it, or has no such dimension.
struct Digit {
  int64_t size = 1, stride = 1;
  bool operator==(const Digit &) const = default;
};

/// Whether the kernel's region holds kernels.
bool hasStages(schedule::KernelOp kernel);

/// Returns the domain of a kernel that may be a stage, or nothing: then `why`, if given, becomes
/// the reason.
std::optional<KernelDomain> getStageDomain(schedule::KernelOp kernel,
                                           llvm::StringRef *why = nullptr);

/// Returns the dimensions of rows with which both factors of each contraction vary, the outermost
/// first: the batches of a contraction kernel.
llvm::SmallVector<int64_t> getBatchDims(const KernelDomain &domain);

/// Returns the dimensions of `tensor`, an argument of the stage's region or a value that it yields,
/// that have the group's number wherever the stage reads or writes it; nothing if it uses elements
/// of other groups.
std::optional<llvm::SmallVector<int64_t>> getGroupedDims(const Stage &stage, mlir::Value tensor);

/// Returns the dimensions of a domain that walk `digits` of `tensor` wherever the kernel reads or
/// writes it: the group's dimensions, if the kernel is to be a stage. Returns nothing if there are
/// none.
std::optional<llvm::SmallVector<int64_t>> findGroupDims(schedule::KernelOp kernel,
                                                        const KernelDomain &domain,
                                                        mlir::Value tensor,
                                                        llvm::ArrayRef<Digit> digits);

/// Returns the stage that makes `value`, or a reshape of it, or null.
const Stage *findMaker(llvm::ArrayRef<Stage> stages, mlir::Value value);

/// Returns what a kernel's region yields as the kernel's result `made`.
mlir::Value getYielded(mlir::Value made);

/// Returns an argument of a stage's region by which it reads what another stage makes for other
/// groups, or null.
mlir::BlockArgument findForeignRead(llvm::ArrayRef<Stage> stages);

/// Returns these dimensions of a tensor as digits.
llvm::SmallVector<Digit> getDigits(mlir::Value tensor, llvm::ArrayRef<int64_t> dims);

/// Returns the stages of a kernel, in order.
/// Errors: failure, with a diagnostic, if something in the region is neither a kernel nor a
///         reshape, a kernel cannot be a stage or does not say its `group_dims`, or a stage reads
///         what another one makes for another group.
mlir::FailureOr<Stages> getStages(schedule::KernelOp kernel);

} // namespace weir

#endif // WEIR_KERNELS_STAGES_H
