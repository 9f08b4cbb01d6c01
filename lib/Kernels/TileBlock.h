//===- TileBlock.h - A block of inner sums in one invocation ----*- C++ -*-===//

#ifndef WEIR_LIB_KERNELS_TILEBLOCK_H
#define WEIR_LIB_KERNELS_TILEBLOCK_H

#include "Blocks.h"

namespace weir {

/// The sums of a kernel's inner contractions at some rows and consecutive numbers of the walked
/// dimension, for devices of one invocation with vectors that are loaded from anywhere. They are in
/// the invocation's memory.
///
/// The last block of a walk has whole vectors, too: it begins earlier, at numbers that the block
/// before it has as well.
class TileBlock {
public:
  TileBlock(PointEmitter &emitter, int64_t rows);

  /// Returns the numbers of the walked dimension of a block, a multiple of a vector's.
  int64_t getColumns() const { return columns; }
  int64_t getLanes() const { return lanes; }

  /// Allocates the memory of a block.
  void allocate();

  /// Copies what `count` numbers from `first` on need, for all rows, with neighbours side by side.
  /// `at` is the point of the domain, but for the rows and the walked dimension.
  void pack(llvm::ArrayRef<mlir::AffineExpr> at, mlir::AffineExpr first, int64_t count);
  /// Computes the sums of these numbers for the rows from `firstRow` on.
  void sum(llvm::ArrayRef<mlir::AffineExpr> at, mlir::AffineExpr firstRow);

  /// Returns the place in a row of the block of a number of the walked dimension.
  mlir::AffineExpr getPlace(mlir::AffineExpr number) const { return number - begin; }
  /// Returns the number of columns before those that were asked for: fewer than a vector.
  int64_t getSkipped() const { return skipped; }
  /// Returns the vectors of a row.
  int64_t getVectors() const { return packed / lanes; }

  /// Emits `body` where it can read what is computed from the sums of one vector of columns of one
  /// row. It gets the point, with the vector lane in the walked dimension.
  void atVector(llvm::ArrayRef<mlir::AffineExpr> at, mlir::AffineExpr firstRow,
                mlir::AffineExpr row, mlir::AffineExpr vector,
                llvm::function_ref<void(llvm::ArrayRef<mlir::AffineExpr> point)> body);

private:
  struct Memory {
    mlir::Value pack, sums;
  };
  PointEmitter &emitter;
  const Blocks &blocks;
  const int64_t rows;
  int64_t lanes = 1;
  int64_t columns = 1;
  int64_t walked = 1; ///< size of the dimension
  llvm::SmallVector<Memory> memories;

  // The block that was packed.
  mlir::AffineExpr begin;
  int64_t packed = 0, skipped = 0;

  mlir::VectorType getVectorType(const Blocks::Inner &inner) const;
  void packFactor(const Blocks::Inner &inner, mlir::Value memory,
                  llvm::ArrayRef<mlir::AffineExpr> at);
  void sumFactor(const Blocks::Inner &inner, const Memory &memory,
                 llvm::ArrayRef<mlir::AffineExpr> at, mlir::AffineExpr firstRow);
};

/// The maxima and the sums of exponentials of rows, which wait in the invocation's memory for the
/// next block.
class TileSoftmax {
public:
  TileSoftmax(PointEmitter &emitter, TileBlock &block)
      : emitter(emitter), block(block), reduced(*emitter.domain.getBlocks()->softmax),
        element(reduced.start.getType()) {}

  /// Allocates memory for that many rows.
  void allocate(int64_t rows);
  /// Sets all rows to those that have no element.
  void clear();
  /// Adds the block's elements of a row of the tile to the row of this number. `powers` is memory
  /// for them, from `place` on; with `keepsPowers` their exponentials are there afterwards. Returns
  /// what scales sums of the blocks before.
  mlir::Value addRow(llvm::ArrayRef<mlir::AffineExpr> at, mlir::AffineExpr firstRow,
                     mlir::AffineExpr row, mlir::AffineExpr number, mlir::Value powers,
                     mlir::AffineExpr place, bool keepsPowers);
  /// Returns the maximum and the sum of a row.
  std::pair<mlir::Value, mlir::Value> load(mlir::AffineExpr number);

private:
  PointEmitter &emitter;
  TileBlock &block;
  const SoftmaxSums &reduced;
  const mlir::Type element;
  int64_t rows = 0;
  mlir::Value maxima, sums; ///< memory

  mlir::VectorType getVectorType() const {
    return mlir::VectorType::get({block.getLanes()}, element);
  }
  mlir::Value createConstant(mlir::TypedAttr value) {
    return mlir::arith::ConstantOp::create(emitter.builder(), emitter.loc, value);
  }
  mlir::Value combineVector(mlir::Operation *combiner, mlir::Value vector) {
    return block.getLanes() > 1 ? emitter.combineLanes(combiner, vector)
                                : emitter.extract(vector, 0);
  }
  mlir::Value keepAsked(mlir::Value vector, mlir::TypedAttr otherwise);
  mlir::Value
  walkVectors(mlir::TypedAttr start,
              llvm::function_ref<mlir::Value(mlir::AffineExpr, mlir::Value, bool isFirst)> body);
};

/// Transposes as many vectors as they have lanes.
llvm::SmallVector<mlir::Value> transposeVectors(PointEmitter &emitter,
                                                llvm::SmallVector<mlir::Value> vectors);

} // namespace weir

#endif // WEIR_LIB_KERNELS_TILEBLOCK_H
