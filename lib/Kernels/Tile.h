//===- Tile.h - The tile of sums that an invocation keeps -------*- C++ -*-===//

#ifndef WEIR_LIB_KERNELS_TILE_H
#define WEIR_LIB_KERNELS_TILE_H

#include "Shapes.h"

#include <vector>

namespace weir {

/// The tile of a contraction for a device of one invocation with free vectors, and how a product
/// gets to its sum. It is a matter of shapes, types and the profile alone. The contractions of a
/// kernel have the same tile, and each its way.
struct Tile {
  /// The way in which the column factor is read:
  /// - Direct: neighbouring columns are neighbours in memory.
  /// - Packed: from a copy that serves many tiles of rows.
  /// - Dot: in vectors of products.
  enum class Way { Direct, Packed, Dot };

  /// Chooses a tile for each contraction of the kernel, in program order.
  static std::vector<Tile> choose(PointEmitter &emitter);

  PointEmitter &emitter;
  const Profile &profile;
  mlir::linalg::GenericOp op;
  llvm::ArrayRef<int64_t> sizes; ///< of the domain
  int64_t numResultDims;
  llvm::SmallVector<int64_t> summedDims; ///< of this contraction, one behind the other
  int64_t memory;                        ///< in bytes, for a copy

  Way way = Way::Direct;
  mlir::OpOperand *rowFactor = nullptr, *columnFactor = nullptr;
  /// Dimensions that one number walks, row-major: neighbours of a tile may be in different rows of
  /// an image, or images.
  llvm::SmallVector<int64_t> rowDims, columnDims;
  llvm::SmallVector<int64_t> batchDims;    ///< other result dimensions of the column factor
  llvm::SmallVector<int64_t> otherRowDims; ///< and those that it does not vary with
  int64_t lanes = 1;                       ///< of a vector, of columns or products
  int64_t rows = 1, columns = 1;           ///< of the tile
  int64_t rowTiles = 1, columnTiles = 1;
  /// Known factors of the number of the tile's first row and column.
  int64_t rowUnit = 1, columnUnit = 1;
  int64_t packedTiles = 1;             ///< that use one copy of the columns
  llvm::SmallVector<int64_t> unrolled; ///< products behind each other, by summed dimension
  /// A copy has `chunk` elements of this summed dimension, and all of those inside it.
  int64_t chunkDepth = 0, chunk = 1;
  bool isChunked = false; ///< whether there is more than one copy for a sum
  /// The sums of so many elements of this summed dimension, and of all inside it, are a block of
  /// a long sum; -1 and 0 if sums are short.
  int64_t blockDepth = -1, block = 0;

  /// Returns the number of columns that are summed at once: of all, or as many as registers have
  /// room for where a vector is of products, or a block serves all columns.
  int64_t getSummedColumns() const;
  /// Returns the number of vectors of a row of sums that are summed at once.
  int64_t getVectors() const { return getSummedColumns() / (way == Way::Dot ? 1 : lanes); }
  llvm::ArrayRef<int64_t> getSummed() const {
    return summedDims.empty() ? llvm::ArrayRef<int64_t>()
                              : sizes.slice(summedDims.front(), summedDims.size());
  }
  bool hasPartialRows() const { return count(rowDims) % rows != 0; }
  bool hasPartialColumns() const { return count(columnDims) % columns != 0; }
  mlir::Type getSumType() const { return emitter.getElementType(op->getResult(0)); }
  /// Returns the max number of products of a copy.
  int64_t getPackedProducts() const;

  /// Returns the number of elements in dimensions of the domain.
  int64_t count(llvm::ArrayRef<int64_t> dims) const;
  /// Returns the dimensions of the domain as coordinates.
  llvm::SmallVector<mlir::AffineExpr> getCoordinates() const;
  /// Sets dimensions of a point to the place that `number` stands for.
  void setDigits(llvm::SmallVectorImpl<mlir::AffineExpr> &point, llvm::ArrayRef<int64_t> dims,
                 mlir::AffineExpr number) const;
  /// Returns an operand's indices at a point of the domain.
  llvm::SmallVector<mlir::AffineExpr> getIndices(mlir::OpOperand *operand,
                                                 llvm::ArrayRef<mlir::AffineExpr> point) const;
  /// Returns a power of two, up to `max`, that divides the number of the first column of each tile:
  /// a place in several dimensions is simpler then.
  int64_t getUnit(llvm::ArrayRef<int64_t> dims, int64_t max) const;
  /// Whether `factor` is loaded in vectors along dimensions.
  bool isVector(mlir::OpOperand *factor, llvm::ArrayRef<int64_t> dims, int64_t vector) const;
  /// Returns the longest vector along dimensions, up to `max`, that lies in memory as one.
  int64_t getRun(mlir::OpOperand *factor, llvm::ArrayRef<int64_t> dims, int64_t max) const;

  /// A loop over the places of some dimensions.
  struct Loop {
    llvm::SmallVector<int64_t> dims;
    int64_t count = 1;
  };
  /// Returns loops over the rows or columns of a tile, `lanes` at once, the outermost first: one
  /// for each dimension of which a tile has all elements, so that a place costs no division.
  llvm::SmallVector<Loop> getLoops(llvm::ArrayRef<int64_t> dims, int64_t elements,
                                   int64_t lanes) const;

private:
  Tile(PointEmitter &emitter, mlir::linalg::GenericOp op);
  struct Candidate {
    mlir::OpOperand *factor = nullptr;
    llvm::SmallVector<int64_t> dims;
    Way way = Way::Direct;
    int64_t lanes = 1;
  };
  int64_t getMaxLanes(int64_t elements) const;
  int64_t getReuse(mlir::OpOperand *factor) const;
  double getCost(const Candidate &candidate) const;
  Candidate chooseDimension();
  void chooseColumns();
  void chooseRows();
  bool isPageApart() const;
  void chooseDot();
  void chooseTile();
  void adopt(const Tile &other);
  void choosePacking();
  void chooseBlocks();
  void chooseSumBlocks();
  /// Whether a factor is computed in blocks, which is done by rows.
  bool isInBlocks(mlir::OpOperand *factor) const {
    const Blocks *blocks = emitter.domain.getBlocks();
    return blocks && blocks->factor == factor;
  }
  void chooseUnrolling();
};

} // namespace weir

#endif // WEIR_LIB_KERNELS_TILE_H
