//===- Emitter.h - Block code of a kernel -----------------------*- C++ -*-===//

#ifndef WEIR_KERNELS_EMITTER_H
#define WEIR_KERNELS_EMITTER_H

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "weir/Artifact/Profile.h"
#include "weir/Kernels/Domain.h"

#include <array>

namespace weir {

/// A kernel's launch: how many workgroups, on which operands.
struct EmittedKernel {
  std::array<int64_t, 3> grid = {1, 1, 1};
  /// For each argument of the `gpu.func`, the input (counted from 0) or result
  /// (counted after all inputs) of the `schedule.kernel` that it takes. Inputs
  /// that the code never reads and results of no bytes are not among them.
  llvm::SmallVector<unsigned> operands;
  /// False when there is nothing to compute: every result is empty.
  bool launches = true;
};

/// Emits the `gpu.func` named `name` that computes `kernel`, at the builder's
/// place in a `gpu.module`.
///
/// Arguments are 1-D memrefs of scalars or 4-vectors that span exactly the
/// operand's bytes; `i1` is stored as `i8`. The order of a reduction depends on
/// its op, its sizes and the profile alone: each invocation of a row adds its
/// elements in order, four running sums at a time where the row's last dimension
/// is a multiple of four; they are added as (0+1)+(2+3); then across the subgroup
/// as a butterfly, then across subgroups in order. A reduction across memory, and
/// each part of a column, adds its elements in order. A contraction adds its
/// products in order, each by one fma. What no combiner reduces is computed in the
/// order of its loops.
///
/// Errors: failure, with a diagnostic at the op, when the region is no kernel,
///         an operand is larger than the profile's bytes per binding, or there
///         are more operands than storage buffers per stage.
mlir::FailureOr<EmittedKernel> emitKernel(schedule::KernelOp kernel, mlir::OpBuilder &builder,
                                          llvm::StringRef name, const Profile &profile);

/// The insertion that a kernel yields as `value`, a result of it; null for other values.
mlir::tensor::InsertSliceOp getInsertion(mlir::Value value);

/// The input of a kernel whose bytes `value`, a result of it, has because the kernel only
/// inserts into it; null where the result has bytes of its own, and of all other values.
mlir::Value getInsertedInto(mlir::Value value);

/// The tensor whose bytes `value` has: what it is a reshape of, or inserted into, by any
/// number of kernels.
mlir::Value getOwner(mlir::Value value);

/// The bytes of an insertion's result that the slice is: runs at equal distances, as
/// `schedule.effect` has them; nothing where its place is computed, where they are no such
/// runs, or all of it.
llvm::SmallVector<int64_t> getSlice(mlir::tensor::InsertSliceOp op);

/// Whether kernels may make each operand of a concatenation in its place, one after the
/// other in memory, where the profile can bind them: then the op, between kernels,
/// moves no bytes.
bool liesInPlace(mlir::tensor::ConcatOp op, const Profile &profile);

/// The concatenation between kernels of which `value`, or a reshape of it, is a part;
/// null for values that are none.
mlir::tensor::ConcatOp getWhole(mlir::Value value);

/// The bytes that an invocation keeps for the columns that the ops of `domain`
/// reduce in parts beside their rows; nothing when they are of types that it
/// cannot keep.
std::optional<int64_t> getKeptColumnBytes(const KernelDomain &domain, const Profile &profile);

/// The type in which an element is stored: `i8` for `i1`, else itself.
mlir::Type getStorageType(mlir::Type element);

} // namespace weir

#endif // WEIR_KERNELS_EMITTER_H
