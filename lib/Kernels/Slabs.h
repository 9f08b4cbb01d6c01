//===- Slabs.h - Factors that a workgroup shares in its memory --*- C++ -*-===//
//
// A workgroup owns a tile of sums, an invocation some rows and columns of it. What is summed is
// walked in slabs of a few products, which all invocations bring to workgroup memory, a share each.
// There a product's rows, or columns, are neighbours. The vectors of an invocation are as far apart
// as those of all invocations reach, so that a subgroup reads neighbouring ones.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_KERNELS_SLABS_H
#define WEIR_LIB_KERNELS_SLABS_H

#include "Shapes.h"

namespace weir {

/// Elements that an invocation brings at once, and neighbours that it owns.
static constexpr int64_t slabVector = 4;
/// Elements behind each product's in workgroup memory. They spread the products over its banks
/// and keep vectors aligned.
static constexpr int64_t slabPadding = slabVector;

/// Returns the elements of workgroup memory that a slab of a tile's side needs.
inline int64_t getSlabElements(int64_t elements, int64_t products) {
  return products * (elements + slabPadding);
}
/// Whether so many invocations can bring a slab, each as many vectors.
inline bool canShareSlab(int64_t elements, int64_t products, int64_t threads) {
  return elements * products / slabVector % threads == 0;
}
/// Adds memory of the workgroup to the kernel.
mlir::Value allocateShared(PointEmitter &emitter, mlir::Type type, int64_t elements);
/// Loads and stores as many neighbours in workgroup memory as a vector has, at a multiple of their
/// number.
llvm::SmallVector<mlir::Value> loadShared(PointEmitter &emitter, mlir::Value memory,
                                          mlir::AffineExpr place);
llvm::SmallVector<mlir::Value> loadShared(PointEmitter &emitter, mlir::Value memory,
                                          mlir::Value place);
void storeShared(PointEmitter &emitter, mlir::Value memory, mlir::AffineExpr place,
                 llvm::ArrayRef<mlir::Value> values);

/// A factor's part of a tile: its elements are rows or columns.
class SlabSide {
public:
  /// Returns the indices of the factor at an element and at the summed coordinates of a product.
  using Indices = std::function<llvm::SmallVector<mlir::AffineExpr>(
      mlir::AffineExpr element, llvm::ArrayRef<mlir::AffineExpr> products)>;

  SlabSide(PointEmitter &emitter, mlir::OpOperand *factor, llvm::ArrayRef<int64_t> productSizes,
           Indices indices)
      : emitter(emitter), factor(factor), productSizes(productSizes), getIndices(indices) {}

  int64_t elements = 0;    ///< of the tile
  int64_t all = 0;         ///< of the factor
  int64_t slab = 0;        ///< products
  int64_t threads = 0;     ///< invocations of the workgroup
  mlir::AffineExpr first;  ///< element of the tile among all
  int64_t present = 0;     ///< elements of the tile that are there; 0: as many as `all` leaves
  bool keepsType = false;  ///< whether elements are not widened to the type of the sums
  bool fillsSlabs = false; ///< whether a slab that is not whole is filled up with zeros
  bool isCopied = false;   ///< whether whole slabs are copied asynchronously
  /// Memory of the workgroup, of a slab each. They are used in turn.
  llvm::SmallVector<mlir::Value> stages;

  /// Returns the elements of workgroup memory from one product to the next.
  int64_t getStride() const { return elements + slabPadding; }
  /// Chooses the invocation's shares, in vectors if they lie in memory as such. They are copied
  /// asynchronously if that is allowed and they are elements of an operand as it is. `any` is a
  /// coordinate of a slab's number.
  void chooseShares(mlir::AffineExpr thread, mlir::AffineExpr any, bool allowCopies = false);
  /// Returns the values that `load` returns.
  int64_t countLoaded() const {
    return int64_t(shares.size()) * (along == Along::None ? 1 : slabVector);
  }
  /// Loads the invocation's shares of a slab of `count` products.
  llvm::SmallVector<mlir::Value> load(mlir::AffineExpr firstProduct, int64_t count) const;
  /// Stores what was loaded in workgroup memory.
  void store(llvm::ArrayRef<mlir::Value> loaded, unsigned stage = 0) const;
  /// Begins to copy the invocation's shares of a whole slab.
  void copy(mlir::AffineExpr firstProduct, unsigned stage) const;

private:
  PointEmitter &emitter;
  mlir::OpOperand *factor;
  llvm::SmallVector<int64_t> productSizes;
  Indices getIndices;
  /// The direction of a vector that is loaded at once.
  enum class Along { Products, Elements, None } along = Along::None;
  /// The number of a share's first element in the tile, and its first product in the slab. In
  /// vectors where it is loaded so.
  struct Share {
    mlir::AffineExpr element, product;
  };
  llvm::SmallVector<Share> shares; ///< a vector each, or an element each

  llvm::SmallVector<mlir::AffineExpr> getProducts(mlir::AffineExpr number, int64_t vector) const;
  mlir::AffineExpr getElement(const Share &share) const;
  mlir::AffineExpr getPlace(mlir::AffineExpr product, mlir::AffineExpr element) const {
    return product * getStride() + element;
  }
  llvm::SmallVector<mlir::AffineExpr>
  getShareIndices(const Share &share, mlir::AffineExpr firstProduct, int64_t count) const;
  mlir::Value clearBehind(mlir::Value value, mlir::AffineExpr product, int64_t count) const;
};

/// Returns the side of a contraction's tile, without its memory and the place of the tile. `rest`
/// must outlive it.
SlabSide makeSlabSide(PointEmitter &emitter, const ContractionSides &sides, bool isOfRows,
                      const llvm::SmallVector<mlir::AffineExpr> &rest);

/// A tile of a contraction's result.
struct SlabPlace {
  mlir::AffineExpr rowTile, columnTile;     ///< numbers among the tiles of rows and columns
  llvm::SmallVector<mlir::AffineExpr> rest; ///< coordinates of the other dimensions
};
/// Returns the number of tiles.
int64_t countSlabTiles(const ContractionSides &sides, const SlabSide &ofRows,
                       const SlabSide &ofColumns);
/// Names the place of a tile by its number. Neighbouring ones have the same columns.
void setSlabPlace(PointEmitter &emitter, SlabPlace &place, mlir::AffineExpr number,
                  const ContractionSides &sides, SlabSide &ofRows, SlabSide &ofColumns);

/// Emits code that adds `count` products that are in workgroup memory, from `first` on.
using AddSlab = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::AffineExpr first, int64_t count, mlir::ValueRange sums)>;
/// Adds `products` products, whose numbers begin at `begin`, slab by slab. A slab that is not whole
/// comes first. The columns' factor, and the rows' one unless it is null, are brought to workgroup
/// memory while the slab before is added up. No barrier stands behind the last slab.
llvm::SmallVector<mlir::Value> walkSlabs(PointEmitter &emitter, const SlabSide *ofRows,
                                         const SlabSide &ofColumns, mlir::AffineExpr begin,
                                         int64_t products, unsigned slabCoordinate,
                                         mlir::ValueRange start, AddSlab add);

/// A walk over whole slabs of which several are in workgroup memory, the stages: while one is added
/// up, the next ones are on their way to the others. So there is one barrier a slab.
struct StageWalk {
  int64_t stages = 2;
  int64_t first = 0; ///< product of the first slab
  int64_t slabs = 0; ///< at least one less than there are stages
  int64_t slab = 0;  ///< products
  unsigned roundCoordinate = 0;
  bool copies = false, copiesAll = false; ///< a part of each slab, or all of it
  /// Begins to copy what is copied of the slab that begins at a product.
  std::function<void(mlir::AffineExpr first, unsigned stage)> copy;
  /// Loads what is not copied of a slab, and stores it where the slab before has been added up.
  std::function<llvm::SmallVector<mlir::Value>(mlir::AffineExpr first)> load;
  std::function<void(llvm::ArrayRef<mlir::Value> loaded, mlir::AffineExpr first, unsigned stage)>
      store;
  std::function<llvm::SmallVector<mlir::Value>(unsigned stage, mlir::ValueRange sums)> add;
};
/// Emits the walk; returns the sums. No barrier stands behind the last slab.
llvm::SmallVector<mlir::Value> walkStages(PointEmitter &emitter, const StageWalk &walk,
                                          mlir::ValueRange start);

/// The sums of a tile, of which each invocation has `rows` times `columns`, row by row.
struct SlabSums {
  PointEmitter &emitter;
  int64_t rowThreads = 1, columnThreads = 1; ///< of the workgroup
  int64_t rows = 1, columns = 1;             ///< of an invocation
  int64_t unit = 1;                          ///< columns that are neighbours: one or a vector
  mlir::AffineExpr rowThread, columnThread;  ///< the invocation's numbers among these

  int64_t getTileRows() const { return rowThreads * rows; }
  int64_t getTileColumns() const { return columnThreads * columns; }
  /// Returns the number in the tile of one of the invocation's rows, or columns.
  mlir::AffineExpr getRow(mlir::AffineExpr row) const;
  mlir::AffineExpr getColumn(int64_t column) const;

  /// Adds `count` products of factors in workgroup memory, whose numbers begin at `first` of the
  /// rows' factor and at 0 of the columns'. Products are added in order, one by one, each by an
  /// fma. `coordinate` numbers them.
  llvm::SmallVector<mlir::Value> add(mlir::Value ofRows, mlir::AffineExpr first,
                                     mlir::Value ofColumns, int64_t count, unsigned coordinate,
                                     mlir::ValueRange sums) const;

  /// The coordinates that `store` names.
  struct Coordinates {
    unsigned row, insideRow, insideUnit;
  };
  /// Stores what comes of the sums of a contraction's tile. `atRow` is called where one of the
  /// invocation's rows is stored.
  void store(const ContractionSides &sides, mlir::AffineExpr rowTile, mlir::AffineExpr columnTile,
             llvm::ArrayRef<mlir::AffineExpr> rest, llvm::ArrayRef<mlir::Value> sums,
             Coordinates coordinates,
             llvm::function_ref<void(mlir::Value row)> atRow = nullptr) const;

  /// Adds `products` products by `walkSlabs`, or by `walkStages` if the sides have several stages.
  /// Without `ofRows` all of the rows' factor is in `rowMemory`.
  llvm::SmallVector<mlir::Value> addSlabs(const SlabSide *ofRows, mlir::Value rowMemory,
                                          const SlabSide &ofColumns, mlir::AffineExpr begin,
                                          int64_t products, unsigned slabCoordinate,
                                          unsigned productCoordinate, mlir::ValueRange sums) const;

private:
  llvm::SmallVector<mlir::Value> addStages(const SlabSide &ofRows, const SlabSide &ofColumns,
                                           mlir::AffineExpr begin, int64_t products,
                                           unsigned slabCoordinate, unsigned productCoordinate,
                                           mlir::ValueRange start) const;
  mlir::Value getSum(llvm::ArrayRef<mlir::Value> sums, mlir::Value row, int64_t number) const;
};

} // namespace weir

#endif // WEIR_LIB_KERNELS_SLABS_H
