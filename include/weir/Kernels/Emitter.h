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

/// A kernel's launch: its workgroups and operands.
struct EmittedKernel {
  std::array<int64_t, 3> grid = {1, 1, 1};
  /// Maps each argument of the `gpu.func` to an input (counted from 0) or result (counted
  /// after all inputs) of the `schedule.kernel`. Inputs that the code never reads and
  /// results of no bytes are left out.
  llvm::SmallVector<unsigned> operands;
  /// Whether there is something to compute: some result is not empty.
  bool launches = true;
};

/// Emits the `gpu.func` named `name` that computes `kernel`, where the builder stands in a
/// `gpu.module`.
///
/// Arguments are 1-D memrefs of scalars or 4-vectors that span exactly the
/// operand's bytes; `i1` is stored as `i8`. The order of a reduction depends on
/// its op, its sizes and the profile alone: each invocation of a row adds its
/// elements in order, four running sums at a time where the row's last dimension
/// is a multiple of four; they are added as (0+1)+(2+3); then across the subgroup
/// as a butterfly, then across subgroups in order. A reduction across memory, and
/// each part of a column, adds its elements in order; where several invocations share
/// one, each adds every n-th element, and theirs are added in order. A contraction adds its
/// products, or those of a part, in order, each by one fma. A reduction without a combiner runs in
/// the order of its loops. A scatter (`schedule::scatterAttrName`) combines an element of its init
/// with the first update, then that with the next.
///
/// Errors: failure, with a diagnostic at the op, if the region is not a kernel,
///         an operand is larger than the profile's bytes per binding, or there
///         are more operands than storage buffers per stage.
mlir::FailureOr<EmittedKernel> emitKernel(schedule::KernelOp kernel, mlir::OpBuilder &builder,
                                          llvm::StringRef name, const Profile &profile);

/// Returns the insertion that a kernel yields as its result `value`, or null for other
/// values.
mlir::tensor::InsertSliceOp getInsertion(mlir::Value value);

/// Returns the scatter that a kernel yields as its result `value`, or null for other values.
mlir::linalg::GenericOp getYieldedScatter(mlir::Value value);

/// Returns the input of a kernel whose bytes its result `value` takes, because the kernel
/// only inserts into it, or takes updates to some of its elements. Returns null for other values.
mlir::Value getInsertedInto(mlir::Value value);

/// Returns the tensor whose bytes `value` has: it is a reshape of that tensor, or was
/// inserted into it, by any number of kernels.
mlir::Value getOwner(mlir::Value value);

/// Returns the bytes of an insertion's result that the slice covers, as runs at equal
/// distances like in `schedule.effect`. Returns nothing if an offset is computed, the bytes
/// are no such runs, or the slice is all of the result.
llvm::SmallVector<int64_t> getSlice(mlir::tensor::InsertSliceOp op);

/// Whether kernels may make each operand of a concatenation in its place, one after the
/// other in memory, where the profile can bind them: then the op, between kernels,
/// moves no bytes.
bool liesInPlace(mlir::tensor::ConcatOp op, const Profile &profile);

/// Returns the concatenation between kernels that has `value`, or a reshape of it, as a
/// part. Returns null for other values.
mlir::tensor::ConcatOp getWhole(mlir::Value value);

/// Returns the number of bytes that an invocation keeps for columns that the ops of
/// `domain` reduce in parts beside their rows, or nothing if it cannot keep their types, or has no
/// room beside a long row.
std::optional<int64_t> getKeptColumnBytes(const KernelDomain &domain, const Profile &profile);

/// Returns the type in which an element is stored: `i8` for `i1`, else `element`.
mlir::Type getStorageType(mlir::Type element);

} // namespace weir

#endif // WEIR_KERNELS_EMITTER_H
