//===- MatrixLines.h - Factors of blocks for matrices ----------*- C++ -*-===//

#ifndef WEIR_LIB_KERNELS_MATRIXLINES_H
#define WEIR_LIB_KERNELS_MATRIXLINES_H

#include "Blocks.h"

namespace weir {

/// Splits an f32, or a vector of them, into two of bf16, the second of what the first leaves.
std::pair<mlir::Value, mlir::Value> splitFloat(PointEmitter &emitter, mlir::Value value);

/// A factor's elements in workgroup memory, in lines: of a row, or of a number of the walked
/// dimension. Behind each line are 16 bytes, so that the eight lines that an instruction reads at
/// once are in different banks.
class MatrixLines {
public:
  /// Returns the indices of the factor in a line, at the coordinates of an element.
  using Indices = std::function<llvm::SmallVector<mlir::AffineExpr>(
      mlir::AffineExpr line, llvm::ArrayRef<mlir::AffineExpr> element)>;

  MatrixLines(PointEmitter &emitter, const MatrixBlockTile &tile, mlir::OpOperand *factor,
              llvm::ArrayRef<int64_t> sizes, Indices getIndices)
      : emitter(emitter), tile(tile), factor(factor), sizes(sizes), getIndices(getIndices) {}

  int64_t lines = 0;      ///< of the tile
  int64_t all = 0;        ///< of the factor
  mlir::AffineExpr first; ///< line of the tile among all
  bool wraps = false;     ///< whether lines of the tile are behind the end: others are brought
  int64_t width = 0;      ///< elements of a line
  int64_t allWidth = 0;   ///< of the factor
  mlir::AffineExpr firstElement; ///< of a line; null: 0
  bool isSplit = false;          ///< whether an element is two numbers of bf16
  mlir::Value memory;            ///< of the workgroup
  mlir::Value left;              ///< the same, of the second numbers

  int64_t getStride() const { return width + tile.getRunElements(); }
  mlir::AffineExpr getPlace(mlir::AffineExpr line, mlir::AffineExpr element) const {
    return line * getStride() + element;
  }
  void allocate();
  /// Chooses the invocation's shares. `any` is a coordinate of the walk.
  void chooseShares(mlir::AffineExpr thread, mlir::AffineExpr any);
  /// Begins to copy the lines, if they can be copied.
  void copy(llvm::SmallVectorImpl<mlir::Value> &copies) const;
  /// Loads and stores the lines, if they are not copied or some are not there: these become zeros.
  void store(int64_t count) const;
  /// Whether both bring the same lines.
  bool isSame(const MatrixLines &other, mlir::AffineExpr anyLine,
              mlir::AffineExpr anyElement) const;

private:
  PointEmitter &emitter;
  const MatrixBlockTile &tile;
  mlir::OpOperand *factor;
  llvm::SmallVector<int64_t> sizes;
  Indices getIndices;
  int64_t vector = 1; ///< neighbours in a line that are brought at once
  bool isCopied = false;
  struct Share {
    mlir::AffineExpr line, element; ///< in vectors
  };
  llvm::SmallVector<Share> shares;

  llvm::SmallVector<mlir::AffineExpr> getAt(mlir::AffineExpr line, mlir::AffineExpr element,
                                            int64_t vector) const;
  mlir::Value load(const Share &share) const;
};

} // namespace weir

#endif // WEIR_LIB_KERNELS_MATRIXLINES_H
