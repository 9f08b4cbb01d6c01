//===- MatrixContraction.h - Sums of products by instructions on matrices ----===//

#ifndef WEIR_LIB_KERNELS_MATRIXCONTRACTION_H
#define WEIR_LIB_KERNELS_MATRIXCONTRACTION_H

#include "Shapes.h"

namespace weir {

/// Rounds f32, or a vector of it, to tf32; other values stay.
mlir::Value roundToTf32(PointEmitter &emitter, mlir::Value value);

/// Emits a contraction whose products instructions on matrices add.
class MatrixContraction {
public:
  /// Has tiles of the result's columns from `firstColumn` on.
  MatrixContraction(PointEmitter &emitter, const MatrixTile &tile, int64_t firstColumn = 0)
      : emitter(emitter), tile(tile), sides(tile.sides),
        op(emitter.domain.getContractions().front()), sizes(emitter.domain.getSizes()),
        products(getProduct(emitter.domain.getColumnSizes())), type(tile.type),
        runElements(tile.getRunElements()), mmaProducts(2 * runElements),
        threads(tile.getSubgroups() * emitter.profile.subgroupSize) {
    ofRows.factor = sides.rowFactor;
    ofRows.isOfRows = true;
    ofRows.elements = tile.getTileRows();
    ofRows.end = sizes[sides.rowDim];
    ofColumns.factor = sides.columnFactor;
    ofColumns.elements = tile.getTileColumns();
    ofColumns.begin = firstColumn;
    ofColumns.end = sizes[sides.columnDim];
  }
  void run(EmittedKernel &launch);

private:
  /// Rows and columns of one instruction, and lines of a matrix that ldmatrix takes.
  static constexpr int64_t mmaRows = 16, mmaColumns = 8, matrixLines = 8;
  /// Lanes along the products of a fragment.
  static constexpr int64_t productLanes = 4;

  enum Coordinates : unsigned {
    roundCoordinate = productCoordinate,
    laneCoordinate, ///< of the subgroup
    subgroupRowCoordinate,
    subgroupColumnCoordinate,
    rowBlockCoordinate,
    insideBlockRowCoordinate,
    insideColumnCoordinate,
    rowLineCoordinate, ///< of a slab: of the invocation's first share, and the place in the line
    rowRunCoordinate,
    columnLineCoordinate,
    columnRunCoordinate,
  };

  /// A factor's part of a tile.
  struct Side {
    mlir::OpOperand *factor = nullptr;
    bool isOfRows = false;
    int64_t elements = 0;                 ///< rows or columns of the tile
    int64_t begin = 0, end = 0;           ///< of the rows or columns of the result that tiles have
    mlir::AffineExpr tileNumber;          ///< of the tile among those along the side
    bool isCopied = false;                ///< whether its runs are copied asynchronously
    llvm::SmallVector<mlir::Value> slabs; ///< in workgroup memory, used in turn
    bool hasProductsInLines = true; ///< whether neighbours of a line are products, not elements
    int64_t vector = 1;             ///< neighbours that are brought at once
    /// Of each share: the number of its first element in the tile, the same among all, and its
    /// first product in the slab; in vectors along the lines.
    struct Share {
      mlir::AffineExpr element, ofAll, product;
      mlir::AffineExpr place; ///< in the slab
    };
    llvm::SmallVector<Share> shares;
    llvm::SmallVector<int64_t> box; ///< of the operand, where boxes are copied

    int64_t countTiles() const { return llvm::divideCeil(end - begin, elements); }
    bool isPartial() const { return (end - begin) % elements != 0; }
    mlir::AffineExpr getFirst() const { return tileNumber * elements + begin; }
  };
  /// Sums of a subgroup, by blocks of 16 x 8.
  using Sums = llvm::SmallVector<mlir::Value>;

  PointEmitter &emitter;
  const MatrixTile &tile;
  const ContractionSides &sides;
  mlir::linalg::GenericOp op;
  llvm::ArrayRef<int64_t> sizes;
  int64_t products;
  mlir::Type type;
  int64_t runElements, mmaProducts; ///< of a line, and of one instruction
  int64_t threads;
  Side ofRows, ofColumns;
  llvm::SmallVector<mlir::AffineExpr> rest;
  mlir::AffineExpr thread, lane, subgroupRow, subgroupColumn;
  int64_t stages = 2;    ///< slabs of a factor in workgroup memory
  mlir::Value mbarriers; ///< of the stages, where boxes are copied

  int64_t countRowBlocks() const { return tile.rows / mmaRows; }
  int64_t countColumnBlocks() const { return tile.columns / mmaColumns; }
  int64_t countRuns(const Side &side) const { ///< of a line
    return (side.hasProductsInLines ? tile.slab : side.elements) / runElements;
  }
  int64_t countLines(const Side &side) const {
    return side.hasProductsInLines ? side.elements : tile.slab;
  }
  int64_t getStride(const Side &side) const {
    if (side.isCopied)
      return countRuns(side) * runElements;
    return side.hasProductsInLines ? tile.slab + runElements : side.elements + matrixLines;
  }
  mlir::AffineExpr getPlace(const Side &side, mlir::AffineExpr element,
                            mlir::AffineExpr product) const {
    return side.hasProductsInLines ? element * getStride(side) + product
                                   : product * getStride(side) + element;
  }
  llvm::SmallVector<mlir::AffineExpr> getProducts(mlir::AffineExpr number, int64_t vector) const;
  llvm::SmallVector<mlir::AffineExpr> getIndices(const Side &side, mlir::AffineExpr element,
                                                 llvm::ArrayRef<mlir::AffineExpr> products) const;
  bool isWhole(const Side &side, mlir::AffineExpr element,
               llvm::ArrayRef<mlir::AffineExpr> products, int64_t vector) const;
  void chooseLines(Side &side);
  void chooseShares(Side &side);
  void chooseStages();
  void allocate(Side &side);
  llvm::SmallVector<mlir::AffineExpr> getShareIndices(const Side &side, const Side::Share &share,
                                                      mlir::AffineExpr firstProduct,
                                                      int64_t count) const;
  mlir::AffineExpr getRotation(const Side &side, mlir::AffineExpr line) const;
  mlir::Value loadShare(const Side &side, const Side::Share &share, mlir::AffineExpr firstProduct,
                        int64_t count);
  void storeShare(const Side &side, const Side::Share &share, mlir::Value value, unsigned slab);
  llvm::SmallVector<mlir::Value> load(mlir::AffineExpr firstProduct, int64_t count,
                                      bool withCopied);
  void store(llvm::ArrayRef<mlir::Value> loaded, mlir::AffineExpr firstProduct, int64_t count,
             unsigned slab, bool withCopied);
  void copy(mlir::AffineExpr firstProduct, unsigned slab);
  Sums addPartialSlab(int64_t count, mlir::ValueRange sums);
  mlir::VectorType getFragmentType(int64_t registers) const;
  mlir::Value takeWords(const Side &side, unsigned slab, mlir::AffineExpr element, int64_t product);
  mlir::Value takeFragment(const Side &side, unsigned slab, mlir::AffineExpr element,
                           int64_t product);
  Sums addProducts(unsigned slab, int64_t count, mlir::ValueRange sums);
  Sums sumProducts();
  mlir::Value getSum(llvm::ArrayRef<mlir::Value> sums, mlir::Value block, int64_t columnBlock,
                     int64_t half);
  void storeBlocks(int64_t columnBlock, mlir::AffineExpr column, int64_t element,
                   llvm::ArrayRef<mlir::Value> sums);
  int64_t countTiles() const {
    return getProduct(sides.restSizes) * ofRows.countTiles() * ofColumns.countTiles();
  }
  void useMemoryOf(const MatrixContraction &other);
  void emitTile(mlir::Value number);
  // Of products by four subgroups, in GroupContraction.cpp.
  /// Returns the first element of a stage in the memory of all.
  int64_t getSlab(const Side &side, int64_t stage) const {
    return stage * side.elements * tile.slab;
  }
  void chooseBox(Side &side);
  void bring(mlir::AffineExpr first, unsigned stage);
  void makeBarriers();
  void addGroupSlab(int64_t slab, mlir::AffineExpr next, mlir::Value &sums);
  Sums sumGroupProducts();
  void barrier() { mlir::gpu::BarrierOp::create(emitter.builder(), emitter.loc); }
};

} // namespace weir

#endif // WEIR_LIB_KERNELS_MATRIXCONTRACTION_H
