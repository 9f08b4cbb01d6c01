//===- Blocks.h - Sums of inner contractions, a block at a time -*- C++ -*-===//

#ifndef WEIR_LIB_KERNELS_BLOCKS_H
#define WEIR_LIB_KERNELS_BLOCKS_H

#include "Shapes.h"

#include <vector>

namespace weir {

/// Returns the rows of a block in a subgroup's registers: as many as give equal tiles if there are
/// such, or else a few that are shared by two tiles.
int64_t chooseBlockRows(int64_t rows);

/// Returns the indices at which an inner contraction reads a factor, at a point of the domain and
/// at these numbers of what it sums.
llvm::SmallVector<mlir::AffineExpr>
getInnerIndices(PointEmitter &emitter, const Blocks::Inner &inner, mlir::OpOperand *factor,
                llvm::ArrayRef<mlir::AffineExpr> point, llvm::ArrayRef<mlir::AffineExpr> products);
/// Returns the sizes of the loops that an inner contraction sums, without those of one trip.
llvm::SmallVector<int64_t> getInnerSizes(mlir::linalg::GenericOp op);

/// Computes the sums of a kernel's inner contractions in a subgroup: at points of some rows, each
/// invocation at its own number of the walked dimension.
///
/// All invocations need the same row factors, so each loads those of other products, and a shuffle
/// hands them round. The products of a sum are added in order, each by one fma, as those of any
/// contraction.
class SubgroupBlock {
public:
  explicit SubgroupBlock(PointEmitter &emitter) : emitter(emitter) {}

  /// Calls `body` for each point, by its number, when the code that it emits can read what is
  /// computed from the sums there. The points differ by their rows alone.
  void atPoints(llvm::ArrayRef<llvm::SmallVector<mlir::AffineExpr>> points,
                llvm::function_ref<void(size_t)> body);

private:
  PointEmitter &emitter;

  llvm::SmallVector<mlir::Value> sum(const Blocks::Inner &inner,
                                     llvm::ArrayRef<llvm::SmallVector<mlir::AffineExpr>> points);
};

/// Returns the reductions of a kernel that reduces rows whose elements are computed in blocks.
SoftmaxSums getSoftmaxSums(PointEmitter &emitter);
/// Emits a kernel that reduces rows whose elements are computed in blocks, for subgroups.
void emitBlockRow(PointEmitter &emitter, EmittedKernel &launch);
/// The same for a device of one invocation with free vectors.
void emitTileBlockRow(PointEmitter &emitter, EmittedKernel &launch);

} // namespace weir

#endif // WEIR_LIB_KERNELS_BLOCKS_H
