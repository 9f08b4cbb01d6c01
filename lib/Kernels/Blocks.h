//===- Blocks.h - Sums of inner contractions, a block at a time -*- C++ -*-===//

#ifndef WEIR_LIB_KERNELS_BLOCKS_H
#define WEIR_LIB_KERNELS_BLOCKS_H

#include "Shapes.h"

#include <memory>
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
MaskedSides findMasked(const KernelDomain &domain);
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

/// Coordinates that kernels in blocks of workgroups name alike.
enum WorkgroupBlockCoordinates : unsigned {
  blockCoordinate = productCoordinate, ///< of the walk
  invocationRowCoordinate,             ///< of the rows of an invocation that are stored
  insideRowCoordinate,
  workgroupBlockCoordinates, ///< and those after it: of one kind
};

/// Walks the blocks of a workgroup's rows. Of the sums of the inner contractions each invocation
/// has those at some rows of the tile and some numbers of the block, in units of neighbours.
class WorkgroupBlocks {
public:
  /// Returns the point of the domain at a row and a number of the walked dimension.
  using Point = std::function<llvm::SmallVector<mlir::AffineExpr>(mlir::AffineExpr row,
                                                                  mlir::AffineExpr number)>;
  /// The numbers of a block, of which `count` are there.
  struct Block {
    mlir::AffineExpr first;
    int64_t count;
  };

  WorkgroupBlocks(PointEmitter &emitter, Point getPoint, int64_t tileRows, int64_t tileNumbers);
  virtual ~WorkgroupBlocks() = default;

  /// Names the invocation's place, once the rows' tile is known.
  virtual void begin(mlir::AffineExpr thread, mlir::AffineExpr rowTile) = 0;
  /// Calls `body` for each block in order. A block that is not whole comes first. Blocks that a
  /// mask hides are left out.
  llvm::SmallVector<mlir::Value>
  walk(mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(const Block &, mlir::ValueRange running)>
           body);
  /// Adds up the inner products of a block.
  virtual void sum(const Block &block) = 0;
  /// Lets code that is emitted next read what is computed from the sums of a unit of numbers of one
  /// of the invocation's rows; of each unit in the order of rows. Returns the point, of a row and
  /// numbers that are there: numbers of more than one by the vector lane.
  llvm::SmallVector<mlir::AffineExpr> at(const Block &block, int64_t row, int64_t unit);

  /// Returns the number of units of the invocation that have numbers of the block.
  virtual int64_t countUnits(const Block &block) const = 0;
  /// Returns the place in the tile of one of the invocation's rows.
  virtual mlir::AffineExpr getRow(mlir::AffineExpr row) const = 0;
  /// Returns the place in the block of the first number of a unit.
  virtual mlir::AffineExpr getNumber(int64_t unit) const = 0;

  int64_t rows = 1;                    ///< of the tile, that an invocation has sums of
  int64_t unitNumbers = 1;             ///< neighbouring numbers of a unit
  int64_t sharers = 1;                 ///< neighbouring invocations that have the same rows
  mlir::AffineExpr sharer;             ///< the invocation's number among these
  const int64_t tileRows, tileNumbers; ///< of the workgroup

protected:
  PointEmitter &emitter;
  const Blocks &blocks;
  Point getPoint;
  const int64_t allRows, allNumbers;
  MaskedSides masked;
  mlir::AffineExpr firstRow;

  /// Returns the sums of an inner contraction at a row and a unit.
  virtual mlir::Value getSum(size_t inner, int64_t row, int64_t unit) = 0;
  /// Run before the blocks of a walk.
  virtual void start() {}
  /// Run where a block is computed, before and behind it.
  virtual void enter(Block &) {}
  virtual void leave() {}
};

/// The maximum and the sum of exponentials of each of an invocation's rows in a walk over blocks.
/// Totals are the maximum and the sum of the first row, then those of the next one.
class BlockSoftmax {
public:
  BlockSoftmax(PointEmitter &emitter, WorkgroupBlocks &block)
      : emitter(emitter), block(block), reduced(*emitter.domain.getBlocks()->softmax) {}

  /// Returns the elements of one of the invocation's rows: -inf where a block has no number.
  llvm::SmallVector<mlir::Value> getElements(const WorkgroupBlocks::Block &at, int64_t row);

  // Rows alone: an invocation has the totals of its own numbers.

  llvm::SmallVector<mlir::Value> start() const { return start(block.rows); }
  /// Adds a block's elements to the totals of a row.
  void addRow(llvm::ArrayRef<mlir::Value> elements, mlir::Value &maximum, mlir::Value &sum);
  /// Combines the totals of the invocations that share rows.
  void combine(llvm::MutableArrayRef<mlir::Value> totals);

  // Beside a contraction: those that share rows have the maxima of all numbers. Where each can own
  // one of the rows, it keeps the maximum and the sum of that one alone: registers are few.

  llvm::SmallVector<mlir::Value> startShared() const { return start(isSpread() ? 1 : block.rows); }
  /// Exponentials of a row's elements in a block, in place of them.
  struct Row {
    llvm::SmallVector<mlir::Value> powers;
    mlir::Value scale; ///< of sums of the blocks before
  };
  /// Adds a block to the totals of a row.
  Row raiseRow(const WorkgroupBlocks::Block &at, int64_t row,
               llvm::MutableArrayRef<mlir::Value> totals);
  /// Returns the totals of all rows.
  llvm::SmallVector<mlir::Value> gather(llvm::ArrayRef<mlir::Value> totals);

  /// Lets code at the current point read the totals of a row.
  void setRow(llvm::ArrayRef<mlir::Value> totals, mlir::Value row);
  /// Stores what comes of the totals alone, at the points of the invocation's rows.
  void
  store(llvm::ArrayRef<mlir::Value> totals, mlir::AffineExpr rowTile,
        llvm::function_ref<llvm::SmallVector<mlir::AffineExpr>(mlir::AffineExpr row)> getPoint);

private:
  PointEmitter &emitter;
  WorkgroupBlocks &block;
  const SoftmaxSums &reduced;

  llvm::SmallVector<mlir::Value> start(int64_t rows) const;
  /// Two rows are as few registers as what it takes to hand them round.
  bool isSpread() const { return block.rows > 2 && block.rows <= block.sharers; }
  mlir::Value takeFrom(mlir::Value value, int64_t sharer);
};

/// Emits a kernel that reduces rows of tiles that workgroups of `threads` own.
void emitWorkgroupBlockRow(
    PointEmitter &emitter, int64_t threads, EmittedKernel &launch,
    llvm::function_ref<std::unique_ptr<WorkgroupBlocks>(WorkgroupBlocks::Point)> makeBlocks);
/// Emits `body` for workgroups of so many invocations, which get their number in it and its own.
void emitBlockTiles(PointEmitter &emitter, int64_t threads, int64_t tiles, EmittedKernel &launch,
                    llvm::function_ref<void(mlir::AffineExpr thread, mlir::Value tile)> body);

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

/// The tile of a kernel that computes in blocks whose products instructions on matrices add: each
/// subgroup has the 16 rows of one instruction.
struct MatrixBlockTile {
  static constexpr int64_t rows = 16; ///< of a subgroup

  mlir::Type type;       ///< of the factors
  int64_t subgroups = 4; ///< of the workgroup
  int64_t numbers = 64;  ///< of a block
  int64_t columns = 0;   ///< of the result; 0 where rows are reduced

  int64_t getThreads() const { return subgroups * 32; }
  int64_t getTileRows() const { return subgroups * rows; }
  /// Returns the elements of 16 bytes: of a line of a matrix that ldmatrix takes.
  int64_t getRunElements() const { return 128 / type.getIntOrFloatBitWidth(); }
  /// Returns the products of one instruction.
  int64_t getProducts() const { return 2 * getRunElements(); }
};
/// Returns the tile of a kernel in blocks of 16-bit factors, or of f32 that may be rounded; nothing
/// for others, or where the profile has no instructions on matrices.
std::optional<MatrixBlockTile> chooseMatrixBlockTile(const KernelDomain &domain,
                                                     const Profile &profile);
/// Emit kernels in blocks by instructions on matrices.
void emitMatrixBlockContraction(PointEmitter &emitter, const MatrixBlockTile &tile,
                                EmittedKernel &launch);
void emitMatrixBlockRow(PointEmitter &emitter, const MatrixBlockTile &tile, EmittedKernel &launch);

/// Returns one of some values. Registers have no index.
mlir::Value chooseValue(PointEmitter &emitter, llvm::ArrayRef<mlir::Value> values,
                        mlir::Value number);
/// Returns the element of a row at a point of the domain.
mlir::Value evaluateElement(PointEmitter &emitter, const SoftmaxSums &reduced,
                            llvm::ArrayRef<mlir::AffineExpr> point);
/// Returns the exponential of what a value, or a vector of them, is above a maximum.
mlir::Value exponentialAbove(PointEmitter &emitter, mlir::Value value, mlir::Value maximum);
/// Returns -inf: an element that changes neither a maximum nor a sum of exponentials.
mlir::Value makeNoElement(PointEmitter &emitter, const SoftmaxSums &reduced);
/// Returns the maximum and the sum of a row before its first element.
llvm::SmallVector<mlir::Value> startRow(PointEmitter &emitter, const SoftmaxSums &reduced);

// One walk that makes the sums of a contraction, and the maxima and sums of its rows.

/// Lets code at the current point read the maximum and the sum of a row.
void setSoftmax(PointEmitter &emitter, mlir::Value maximum, mlir::Value sum);
/// Whether the kernel has results of rows alone.
bool storesBlockRows(const PointEmitter &emitter);
/// Stores these results of the point's row.
void storeBlockRow(PointEmitter &emitter, mlir::Value maximum, mlir::Value sum,
                   llvm::ArrayRef<mlir::AffineExpr> point);
/// Emits `body` where each of some numbers is this one. Not more than one of them should be
/// compared with 0: LLVM compares the bits of both at once, which no proof of the code follows.
void guardAt(PointEmitter &emitter, llvm::ArrayRef<std::pair<mlir::AffineExpr, int64_t>> numbers,
             llvm::function_ref<void()> body);

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
