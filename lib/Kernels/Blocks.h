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

/// Points of a domain in blocks whose walked number is at least `bound` after the row's, or before
/// it.
struct MaskedSide {
  bool isAfter;
  int64_t bound;
};
using MaskedSides = llvm::SmallVector<MaskedSide, 2>;
/// Returns where the mask of an attention hides what the kernel computes in blocks, if positions
/// make it: sums over these points are the same without them, but for NaN and infinity.
MaskedSides findMasked(const PointEmitter &emitter);
/// The rows and numbers of a block.
struct BlockPlace {
  mlir::AffineExpr firstRow;
  int64_t rows;
  mlir::AffineExpr firstNumber;
  int64_t numbers;
};
/// Emits `body` where some point of a block is not masked. Elsewhere the values are `otherwise`.
llvm::SmallVector<mlir::Value> whereNeeded(PointEmitter &emitter, const MaskedSides &masked,
                                           const BlockPlace &place, mlir::ValueRange otherwise,
                                           std::function<llvm::SmallVector<mlir::Value>()> body);

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

/// The tile of a kernel that computes in blocks, of which a workgroup shares all factors.
struct SlabBlockTile {
  int64_t rowThreads = 16, columnThreads = 8; ///< of the workgroup
  int64_t rows = 8, numbers = 8;              ///< of a block, for each invocation
  int64_t columns = 8;                        ///< of the result, for each invocation
  int64_t slab = 8;                           ///< products that are shared at once

  int64_t getThreads() const { return rowThreads * columnThreads; }
  int64_t getTileRows() const { return rowThreads * rows; }
  int64_t getNumbers() const { return columnThreads * numbers; }
};
/// Returns the tile of a kernel in blocks; nothing where there is too little to share, or the
/// profile has no slabs.
std::optional<SlabBlockTile> chooseSlabBlockTile(const KernelDomain &domain,
                                                 const Profile &profile);
/// Emit kernels in blocks whose factors workgroups share.
void emitSlabBlockContraction(PointEmitter &emitter, const SlabBlockTile &tile,
                              EmittedKernel &launch);
void emitSlabBlockRow(PointEmitter &emitter, const SlabBlockTile &tile, EmittedKernel &launch);

/// Returns one of some values. Registers have no index.
mlir::Value chooseValue(PointEmitter &emitter, llvm::ArrayRef<mlir::Value> values,
                        mlir::Value number);
/// Returns the reductions of a kernel that reduces rows whose elements are computed in blocks.
SoftmaxSums getSoftmaxSums(const PointEmitter &emitter);

/// Returns the sizes of a block's result dimensions that are not its rows.
llvm::SmallVector<int64_t> getBlockRestSizes(const PointEmitter &emitter);
/// Returns the point of a number of the walked dimension in a row, at coordinates `rest` of the
/// dimensions of `getBlockRestSizes`.
llvm::SmallVector<mlir::AffineExpr> getBlockPoint(const PointEmitter &emitter,
                                                  llvm::ArrayRef<mlir::AffineExpr> rest,
                                                  mlir::AffineExpr row, mlir::AffineExpr walked);
/// Emits a kernel that reduces rows whose elements are computed in blocks, for subgroups.
void emitBlockRow(PointEmitter &emitter, EmittedKernel &launch);
/// The same for a device of one invocation with free vectors.
void emitTileBlockRow(PointEmitter &emitter, EmittedKernel &launch);

} // namespace weir

#endif // WEIR_LIB_KERNELS_BLOCKS_H
