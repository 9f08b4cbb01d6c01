//===- TileSum.h - Sums of one contraction's products -----------*- C++ -*-===//

#ifndef WEIR_LIB_KERNELS_TILESUM_H
#define WEIR_LIB_KERNELS_TILESUM_H

#include "Tile.h"

namespace weir {

/// The place of a tile.
struct TilePlace {
  /// By dimension of the domain: the batch, other rows, and the product.
  llvm::SmallVector<mlir::AffineExpr> at;
  mlir::AffineExpr rowTile, columnTile, firstRow, firstColumn;
  mlir::AffineExpr firstSum; ///< of the tile, in the memory of sums
};

/// Sets the place in dimensions that are walked one element at a time.
void setPlace(const Tile &tile, TilePlace &place, llvm::ArrayRef<int64_t> dims,
              mlir::AffineExpr number);

/// Adds the products of one contraction to the sums of a tile, which stay in the invocation's
/// memory until they are stored.
class TileSum {
public:
  TileSum(const Tile &tile, TilePlace &place);

  /// Allocates memory for the sums of `tiles` tiles and for a copy of the columns.
  void allocate(int64_t tiles);
  /// Sets the sums of that many tiles to zero.
  void clear(int64_t tiles);
  /// Copies the tile's columns, if they are packed, for all products of the chunk.
  void pack();
  /// Computes the sums of the tile at the place, or adds those of the chunk.
  void sumTile();
  /// Emits `body` for each part of the copy, in the order of the sum.
  void walkChunks(llvm::function_ref<void()> body);
  /// Returns the first element of the part, in the dimension that is cut, and their number.
  mlir::AffineExpr getFirstOfChunk() const { return firstOfChunk; }
  int64_t getInChunk() const { return inChunk; }
  /// Lets the row factor come from elsewhere: its value for a row of the tile, at the place.
  using RowFactor = std::function<mlir::Value(int64_t row)>;
  void setRowFactor(RowFactor load) { loadRowFactor = std::move(load); }
  /// Multiplies the sums of a row of the tile.
  void scaleRow(mlir::AffineExpr row, mlir::Value scale);
  /// Loads sums of the tile: `lanes` neighbours from a number on.
  mlir::Value load(mlir::AffineExpr number, int64_t lanes);

private:
  using Way = Tile::Way;
  using Body = std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange)>;

  const Tile &tile;
  PointEmitter &emitter;
  TilePlace &place;
  llvm::SmallVector<mlir::AffineExpr> &at;
  mlir::Value sumMemory, packMemory;
  mlir::AffineExpr firstOfChunk; ///< element of the dimension that is cut
  int64_t inChunk;               ///< elements of that dimension
  bool unrolls = true;           ///< whether products stand one behind the other
  mlir::AffineExpr firstInTile;  ///< of the columns that are summed at once

  /// Returns the number of elements of a summed dimension that are walked at once.
  int64_t getSize(int64_t depth) const {
    return depth == tile.chunkDepth ? inChunk : tile.getSummed()[depth];
  }
  mlir::VectorType getVectorType(int64_t elements) const {
    return mlir::VectorType::get({elements}, tile.getSumType());
  }
  RowFactor loadRowFactor; ///< null: from memory
  mlir::Value loadFactor(mlir::OpOperand *factor, llvm::ArrayRef<int64_t> dims,
                         mlir::AffineExpr number);
  mlir::AffineExpr getProductNumber();
  llvm::SmallVector<mlir::Value> walkProducts(int64_t depth, int64_t step, mlir::ValueRange carried,
                                              const Body &body);
  void packRuns();
  llvm::SmallVector<mlir::Value> addProducts(mlir::ValueRange sums);
  void sumColumns();
};

} // namespace weir

#endif // WEIR_LIB_KERNELS_TILESUM_H
