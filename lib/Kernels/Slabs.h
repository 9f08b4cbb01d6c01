//===- Slabs.h - Factors in workgroup memory, a slab at a time --*- C++ -*-===//
//
// A workgroup owns a tile of a contraction's result. The summed dimensions are walked in slabs of a
// few products. All invocations bring a slab of both factors to workgroup memory, a share each, and
// then the slab's products are added. What the next slab needs is loaded before the products of
// this one are added, so that it is there when its turn comes:
//
//   load 0
//   for each slab:   store, barrier, load the next, add products, barrier
//
// A slab that is not whole comes first, so that products are added in order. In workgroup memory a
// product's rows, or columns, are neighbours.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_KERNELS_SLABS_H
#define WEIR_LIB_KERNELS_SLABS_H

#include "Shapes.h"

namespace weir {

/// Elements that an invocation brings at once.
inline constexpr int64_t slabVector = 4;
/// Elements behind each product's in workgroup memory. They spread the products over its banks
/// and keep vectors aligned.
inline constexpr int64_t slabPadding = slabVector;

enum SlabCoordinates : unsigned {
  slabCoordinate = productCoordinate,
  productInSlabCoordinate,
  rowThreadCoordinate,
  columnThreadCoordinate,
  resultRowCoordinate,
  insideRowCoordinate,
  insideUnitCoordinate,
};

struct SlabLayout {
  int64_t slab = 1;              ///< products that are shared at once
  int64_t threads = 1;           ///< invocations of the workgroup
  int64_t rows = 1, columns = 1; ///< of the workgroup's tile
};

/// Emits the walk over slabs; what adds up their products is said by whoever derives from it.
class SlabWalk {
public:
  /// `elementType` is that of the factors in workgroup memory.
  SlabWalk(PointEmitter &emitter, const ContractionSides &sides, const SlabLayout &layout,
           mlir::Type elementType);
  virtual ~SlabWalk() = default;
  void run(EmittedKernel &launch);

protected:
  using Value = mlir::Value;
  using AffineExpr = mlir::AffineExpr;

  /// A factor's part of a tile.
  struct Side {
    mlir::OpOperand *factor = nullptr;
    bool isOfRows = false;
    int64_t elements = 0;  ///< rows or columns of the tile
    int64_t all = 0;       ///< rows or columns of the result
    AffineExpr tileNumber; ///< of the tile among those along the side
    Value memory;          ///< of the workgroup
    /// The direction of a vector that is loaded at once.
    enum class Along { Products, Elements, None } along = Along::None;
    bool walksProducts = false; ///< whether neighbours in memory are products, not elements
    /// Of each share: the number of its first element in the tile, the same among all, and its
    /// first product in the slab. In vectors where it is loaded so.
    struct Share {
      AffineExpr element, ofAll, product;
    };
    llvm::SmallVector<Share> shares; ///< a vector each, or an element each
    int64_t getStride() const { return elements + slabPadding; }
  };

  /// Returns a factor's element, or vector of them, as it is put into workgroup memory.
  virtual Value evaluateElement(mlir::OpOperand *factor, llvm::ArrayRef<AffineExpr> indices) = 0;
  /// Returns what sums are before the first product.
  virtual llvm::SmallVector<Value> makeZeros() = 0;
  /// Adds the products of the slab that is in workgroup memory, `count` of them.
  virtual llvm::SmallVector<Value> addProducts(int64_t count, mlir::ValueRange sums) = 0;
  /// Whether a slab that is not whole is filled up with zeros.
  virtual bool fillsSlabs() const { return false; }
  /// Returns the number of the invocation in the workgroup.
  virtual AffineExpr makeThread();
  /// Emits the code for one tile, by `sumProducts`.
  virtual void emitTile() = 0;

  llvm::SmallVector<Value> sumProducts();
  void barrier() { mlir::gpu::BarrierOp::create(emitter.builder(), emitter.loc); }
  AffineExpr name(unsigned coordinate, AffineExpr value);

  PointEmitter &emitter;
  const ContractionSides &sides;
  mlir::linalg::GenericOp op;
  llvm::ArrayRef<int64_t> sizes;
  int64_t products;
  SlabLayout layout;
  mlir::Type elementType;
  Side ofRows, ofColumns;
  llvm::SmallVector<AffineExpr> rest;
  AffineExpr thread;

private:
  llvm::SmallVector<AffineExpr> getProducts(AffineExpr number, int64_t vector) const;
  llvm::SmallVector<AffineExpr> getIndices(const Side &side, AffineExpr element,
                                           llvm::ArrayRef<AffineExpr> products) const;
  void allocate(Side &side);
  void chooseShares(Side &side);
  Value clearBehind(Value value, AffineExpr product, int64_t count);
  llvm::SmallVector<Value> load(const Side &side, AffineExpr firstProduct, int64_t count);
  void store(const Side &side, llvm::ArrayRef<Value> loaded);
};

} // namespace weir

#endif // WEIR_LIB_KERNELS_SLABS_H
