//===- Domain.h - The iteration space that a kernel's ops share -*- C++ -*-===//

#ifndef WEIR_KERNELS_DOMAIN_H
#define WEIR_KERNELS_DOMAIN_H

#include "weir/Artifact/Profile.h"
#include "weir/Graph/Graph.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace weir {

/// The shapes of block code that a kernel can have.
enum class KernelShape {
  Map,         ///< every point for itself
  Row,         ///< reductions of rows, points that use their results, and columns in parts
  Column,      ///< reductions of columns in parts, and points
  Contraction, ///< sums of products, with a prologue and an epilogue
  Sequence,    ///< one op whose points follow from each other
};

/// The requirements of an op on the kernel that computes it.
enum class OpShape {
  Free,        ///< constants and fills: repeated wherever they are used
  Pointwise,   ///< a value per point, from values at points
  Reduction,   ///< one combiner per result over one set of dimensions
  Column,      ///< a reduction in parts: `ColumnParts`
  Contraction, ///< a sum of products with a dimension of its own on either side, maybe in parts
  Sequence,    ///< a reduction by any body, or a scan, in the order of its loops
  Insertion,   ///< what was computed becomes a part of an operand: `getInserted`
  Other,       ///< no part of a kernel
};

OpShape getOpShape(mlir::Operation *op);

/// Whether an op of shape `Sequence` stores this result at each of its steps, as a scan does. In
/// the IR its map has the reduced loops, too, from their first trip or from their last one:
/// `affine_map<(r, t) -> (r, 99 - t)>`. The other results are what is left after the last step.
bool isStepResult(mlir::linalg::GenericOp op, unsigned result);

/// Returns the map by which an op reads or writes an operand. A prefix of a dimension is
/// `d0 mod size` in the IR, since linalg's verifier takes a plain `d0` for all of the
/// dimension; this returns `d0` for it.
mlir::AffineMap getAccessMap(mlir::linalg::GenericOp op, mlir::OpOperand *operand);

/// Returns the computed tensor that an insertion (`tensor.insert_slice`) inserts, before any
/// reshapes, or `yielded` if it is no insertion. An insertion ends a kernel. The kernel
/// writes only the slice of its result if the destination is an input or a `tensor.empty`,
/// and all of the result if the destination is a splat.
mlir::Value getInserted(mlir::Value yielded);

/// Whether `op`, inside of a kernel, only reshapes the source of an insertion or computes its
/// offsets.
bool isPartOfInsertion(mlir::Operation *op);

/// The cut of a column reduction into parts: a part combines `chunk` consecutive rows, in
/// order, into one row of the result, whose first dimension counts parts.
///
/// In the IR it is a reduction with such an output map. With
/// `affine_map<(b, t, c) -> ((b * 96 + t) floordiv 64, c)>`, part p holds rows 64 p
/// to 64 p + 63 of all b and t.
struct ColumnParts {
  llvm::SmallVector<unsigned> rowLoops; ///< loops of the rows, outermost first
  int64_t rows = 0;
  int64_t chunk = 0;
  int64_t getParts() const { return (rows + chunk - 1) / chunk; }
};

/// Returns the parts of an op of shape `Contraction` whose sums are cut, in the same form: a part
/// sums `chunk` consecutive products. Returns nothing for other ops.
std::optional<ColumnParts> getContractionParts(mlir::linalg::GenericOp op);

/// Returns how `op`, a `Contraction`, would be cut so that all units of a device are busy, or
/// nothing if they are anyway, or no such parts are equal and long enough. Depends on the op, its
/// shape and the profile alone.
std::optional<ColumnParts> chooseContractionParts(mlir::linalg::GenericOp op,
                                                  const Profile &profile);

/// Returns the factors of `op`, a `Contraction`, that are to be transposed before: instructions of
/// four subgroups (sm_90a) read factors in tf32 only where the terms of a sum are neighbours in
/// memory. None where the transposes would take longer than what they save.
llvm::SmallVector<mlir::OpOperand *> findFactorsToTranspose(mlir::linalg::GenericOp op,
                                                            const Profile &profile);

/// Whether an element of the op costs more to compute than to load: its body has divisions or
/// functions of `math`.
bool hasFunctions(mlir::Operation *op);

/// Returns the parts of an op of shape `Column`; nothing for other ops.
std::optional<ColumnParts> getColumnParts(mlir::linalg::GenericOp op);

/// Returns how `op`, a `Reduction`, would be cut into at most `columnParts` parts of at least 8
/// rows each, fewer rows where a device's units would be idle or wait for memory, more where rows
/// are so long that no kernel can keep their columns, or where rows are copied ahead (CUDA): then
/// about as many equal parts as the device has units; or nothing if it reduces no columns. Parts of
/// sums of floats have at most 4,096 rows, and are more for that if need be. Depends on the op, its
/// shape and the profile alone, so that its bits do not depend on what shares its kernel.
std::optional<ColumnParts> chooseColumnParts(mlir::linalg::GenericOp op, const Profile &profile);

/// Returns the first index of a `Column` op's results, in terms of its loops.
mlir::AffineExpr getPartIndex(const ColumnParts &parts, mlir::linalg::GenericOp op);

/// Whether a `Reduction` keeps the dimension in which its input is contiguous: neighbours in
/// memory then belong to neighbouring results.
bool reducesAcross(mlir::linalg::GenericOp op);

/// Returns the choice between a value and the neutral element that the terms of a `Reduction` are,
/// if its condition is the same for all neighbours in the result, as in the gradient of a gather of
/// rows; else null.
mlir::arith::SelectOp getSelection(mlir::linalg::GenericOp op);

/// A reduction over updates that chooses those which name the row of the result
/// (`schedule::scatterAttrName`). Its kernel takes each update once, to the row that it names, and
/// changes no other bytes of the operand that the result starts from.
struct Scatter {
  mlir::BlockArgument name; ///< an integer, the same for all rows
  unsigned rowLoop = 0;     ///< whose index is compared with the name
  mlir::Value update;
};
/// Returns the parts of a scatter, or nothing for other ops.
std::optional<Scatter> getScatter(mlir::linalg::GenericOp op);

/// A row's maximum, and the sum of the exponentials of what its elements are above it: the two
/// reductions that one walk over blocks of the row can make.
struct SoftmaxSums {
  mlir::linalg::GenericOp maximum, sum;
  mlir::Operation *larger = nullptr, *add = nullptr; ///< the combiners
  mlir::OpOperand *element = nullptr;                ///< of the row, as `maximum` reads it
  mlir::FloatAttr start;                             ///< the initial maximum
};
/// The contractions of a kernel that are computed in blocks (`schedule::inBlocksAttrName`): their
/// sums are no tensor. What reads them, a factor of the kernel's contraction or the terms of its
/// reductions, is computed for some rows and some numbers of the last column dimension at a time,
/// from the sums at these points.
struct Blocks {
  struct Inner {
    mlir::linalg::GenericOp op;
    /// The dimension of the domain for each loop, or -1 for loops of one trip and for those that it
    /// sums.
    llvm::SmallVector<int64_t> dims;
    mlir::OpOperand *rowFactor = nullptr;    ///< varies with `rowDim`, not with `walkedDim`
    mlir::OpOperand *walkedFactor = nullptr; ///< the other way round
  };
  llvm::SmallVector<Inner> inner;    ///< in program order
  int64_t rowDim = -1;               ///< of the rows of a block
  int64_t walkedDim = -1;            ///< the other dimension of a block, which the kernel sums
  mlir::OpOperand *factor = nullptr; ///< of the contraction; null where rows are reduced alone
  /// The rows' reductions, if there are some. Beside a contraction its factor is the exponentials
  /// that they sum: a walk keeps the maximum so far, and a larger one scales all sums.
  std::optional<SoftmaxSums> softmax;
  /// The dimension of the contraction's result that such rows lack, or -1.
  int64_t columnDim = -1;

  /// Whether one walk makes the rows' maxima and sums, and those of the contraction.
  bool isOneWalk() const { return factor && softmax; }
};

/// Returns the reductions as such a pair, or nothing if they are no other than that.
std::optional<SoftmaxSums> matchSoftmaxSums(llvm::ArrayRef<mlir::linalg::GenericOp> reductions);

/// The iteration space of a kernel: row dimensions, then column dimensions (the
/// ones its reductions reduce). Dimensions of size 1 are left out. Each contraction of a kernel has
/// column dimensions of its own, one after another.
class KernelDomain {
public:
  /// Max number of ops in one kernel. Bounds the time to form and check a kernel and the
  /// code that a driver gets. Of 4,455 kernels of models, benchmarks and random graphs the
  /// largest has 25.
  static constexpr size_t maxOps = 64;
  /// Max number of dimensions of contractions.
  static constexpr size_t maxContractionDims = 15;
  /// Max number of dimensions that number the groups of a stage.
  static constexpr size_t maxGroupDims = 4;

  /// The dimension of a loop before ops are tied.
  static constexpr int64_t unknownDim = -2;

  /// Returns the domain that `ops` share, or nothing if no single kernel can compute them:
  /// then `why`, if given, becomes the reason, for people. `ops` are `linalg.generic` ops
  /// that are not free, in an order in which operands come first. Each op reads results of
  /// the others at its own point, so only reductions exchange values between points.
  static std::optional<KernelDomain> build(llvm::ArrayRef<mlir::Operation *> ops,
                                           llvm::StringRef *why = nullptr);

  KernelShape getShape() const { return shape; }
  llvm::ArrayRef<int64_t> getSizes() const { return sizes; }
  llvm::ArrayRef<int64_t> getRowSizes() const { return getSizes().take_front(numRows); }
  llvm::ArrayRef<int64_t> getColumnSizes() const { return getSizes().drop_front(numRows); }
  unsigned getNumRows() const { return numRows; }

  /// Returns the dimension of the domain for each loop of `op`, or -1 for loops of one trip, or
  /// -2 - i for one that walks the groups' dimension number i. `op` must not be in a contraction's
  /// prologue.
  llvm::ArrayRef<int64_t> getDims(mlir::Operation *op) const { return dims.find(op)->second; }

  /// Makes dimensions of rows the numbers of a group: the domain that is left is that of one group.
  void fixGroup(llvm::ArrayRef<int64_t> groupDims);

  /// Whether `op` is computed only where the contraction reads it.
  bool isPrologue(mlir::Operation *op) const { return !dims.contains(op); }

  /// Whether the points of `op` differ by column.
  bool hasColumns(mlir::Operation *op) const;

  /// Whether `op` has a point for each row that blocks reduce, and none for the columns of a
  /// contraction that is summed in the same walk.
  bool isOfBlockRows(mlir::Operation *op) const {
    return blocks && blocks->softmax &&
           (!blocks->factor || !llvm::is_contained(getDims(op), blocks->columnDim));
  }

  /// Whether the kernel's reductions reduce across memory: `reducesAcross`, or `getSelection` finds
  /// one.
  bool isAcross() const { return across; }

  /// Whether the kernel's reductions read what they reduce in windows, or at computed places:
  /// neighbouring rows are about as near in memory as neighbouring terms.
  bool readsWindows() const;

  /// Whether one of the ops, but for a contraction's prologue, has functions.
  bool hasFunctions() const;

  /// Whether all tensors that are read or written at every point have elements of 16 bits.
  bool movesHalves() const;

  /// Returns the ops that reduce the rows in parts, all cut alike.
  llvm::ArrayRef<mlir::linalg::GenericOp> getColumnOps() const { return columnOps; }
  int64_t getChunk() const { return chunk; }
  int64_t getParts() const;

  /// Returns the contractions, in program order. All sum over products at the points of the rows.
  llvm::ArrayRef<mlir::linalg::GenericOp> getContractions() const { return contractions; }
  /// Returns what is computed in blocks, or null.
  const Blocks *getBlocks() const { return blocks ? &*blocks : nullptr; }
  /// Returns the dimensions that a contraction sums, outermost first.
  llvm::SmallVector<int64_t> getSummedDims(mlir::linalg::GenericOp contraction) const;

  /// The loops of a contraction that the number of a part determines.
  struct PartLoops {
    int64_t dim = -1; ///< of the domain, that numbers the parts; -1 if sums are not cut
    /// A loop begins, in a part, at a digit of the part's number times `step`.
    struct Loop {
      unsigned loop;
      int64_t digits, step;
    };
    llvm::SmallVector<Loop> loops; ///< outermost first
  };
  /// Returns the loops of the kernel's contraction that a part's number determines.
  const PartLoops &getPartLoops() const { return partLoops; }

private:
  KernelShape shape = KernelShape::Map;
  llvm::SmallVector<int64_t> sizes;
  unsigned numRows = 0;
  bool across = false;
  llvm::SmallVector<mlir::linalg::GenericOp> columnOps;
  int64_t chunk = 0;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int64_t>> dims;
  llvm::SmallVector<mlir::linalg::GenericOp> contractions;
  std::optional<Blocks> blocks;
  PartLoops partLoops;

  mlir::linalg::GenericOp anchor; ///< its loops are the domain's first dimensions

  // Functions that return a text return why no kernel computes the ops, or nothing.

  llvm::StringRef assign(llvm::ArrayRef<mlir::Operation *> ops);
  /// Sets the shape and the anchor.
  llvm::StringRef chooseShape(llvm::ArrayRef<mlir::Operation *> ops);
  llvm::SmallVector<int64_t> layOut();
  llvm::SmallVector<int64_t> layOutParts(const ColumnParts &parts);
  llvm::SmallVector<int64_t> layOutSums(mlir::linalg::GenericOp op);
  bool haveSameFactors() const;
  /// Finds the ops that only contractions read.
  llvm::StringRef findPrologue(llvm::ArrayRef<mlir::Operation *> ops,
                               llvm::SmallPtrSetImpl<mlir::Operation *> &prologue);
  bool coversPoints(mlir::linalg::GenericOp op) const;
  void layOutReductions(llvm::ArrayRef<mlir::Operation *> ops);
  bool hasRowsOfReductions(llvm::ArrayRef<mlir::Operation *> ops);
  bool readsExponentials() const;
  /// Returns the dimensions of the domain for an op's loops, as expressions: 0 for loops of one
  /// trip.
  llvm::SmallVector<mlir::AffineExpr> getLoopDims(mlir::linalg::GenericOp op) const;
  llvm::StringRef layOutBlocks(llvm::ArrayRef<mlir::Operation *> ops);
  bool chooseBlockDims();
  bool assignDims(llvm::ArrayRef<mlir::Operation *> ops);
  bool acceptColumns(mlir::linalg::GenericOp op);
};

} // namespace weir

#endif // WEIR_KERNELS_DOMAIN_H
