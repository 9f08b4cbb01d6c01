//===- Domain.h - The iteration space that a kernel's ops share -*- C++ -*-===//

#ifndef WEIR_KERNELS_DOMAIN_H
#define WEIR_KERNELS_DOMAIN_H

#include "weir/Graph/Graph.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace weir {

/// The shapes of block code that a kernel can have.
enum class KernelShape {
  Map,         ///< every point for itself
  Row,         ///< reductions of rows, points that use their results, and columns in parts
  Column,      ///< reductions of columns in parts, and points
  Contraction, ///< one sum of products, with a prologue and an epilogue
  Sequence,    ///< one op whose points follow from each other
};

/// What an op asks of the kernel that computes it.
enum class OpShape {
  Free,        ///< constants and fills: repeated wherever they are used
  Pointwise,   ///< a value per point, from values at points
  Reduction,   ///< one combiner per result over one set of dimensions
  Column,      ///< a reduction in parts: `ColumnParts`
  Contraction, ///< a sum of products with a dimension of its own on either side
  Sequence,    ///< a reduction by any body, in the order of its loops
  Insertion,   ///< what was computed becomes a part of an operand: `getInserted`
  Other,       ///< no part of a kernel
};

OpShape getOpShape(mlir::Operation *op);

/// The map by which an op reads or writes an operand. A prefix of a dimension is
/// spelled `d0 mod size` in the IR, since linalg's verifier takes a plain `d0` for all
/// of the dimension; here it is `d0`.
mlir::AffineMap getAccessMap(mlir::linalg::GenericOp op, mlir::OpOperand *operand);

/// An insertion (`tensor.insert_slice`) ends a kernel: the kernel's result is the tensor
/// inserted into, an input or a `tensor.empty`, of which only the slice is written, or a
/// splat, all of which is. Returns the computed tensor that the slice is, before any
/// reshapes; of all other values, themselves.
mlir::Value getInserted(mlir::Value yielded);

/// Whether `op`, inside of a kernel, only says what an insertion inserts and where: a
/// reshape of the former, or arithmetic of the latter.
bool isPartOfInsertion(mlir::Operation *op);

/// How a column reduction is cut into parts: a part combines `chunk` consecutive
/// rows, in order, into one row of the result, whose first dimension counts parts.
///
/// In the IR it is a reduction whose output map says so: with
/// `affine_map<(b, t, c) -> ((b * 96 + t) floordiv 64, c)>`, part p holds rows 64 p
/// to 64 p + 63 of all b and t.
struct ColumnParts {
  llvm::SmallVector<unsigned> rowLoops; ///< loops of the rows, outermost first
  int64_t rows = 0;
  int64_t chunk = 0;
  int64_t getParts() const { return (rows + chunk - 1) / chunk; }
};

/// Returns the parts of an op of shape `Column`; nothing for other ops.
std::optional<ColumnParts> getColumnParts(mlir::linalg::GenericOp op);

/// The parts of `op`, a `Reduction`, were it cut into `mostParts` or fewer, each of
/// at least 8 rows; nothing when it is no reduction of columns. A matter of the op
/// and its shape alone, so that its bits don't depend on what shares its kernel.
std::optional<ColumnParts> chooseColumnParts(mlir::linalg::GenericOp op, int64_t mostParts);

/// The first index of a `Column` op's results, in terms of its loops.
mlir::AffineExpr getPartIndex(const ColumnParts &parts, mlir::linalg::GenericOp op);

/// Whether a `Reduction` leaves the dimension in which its input is contiguous:
/// neighbours in memory then belong to neighbouring results.
bool reducesAcross(mlir::linalg::GenericOp op);

/// The iteration space of a kernel: row dimensions, then column dimensions (the
/// ones its reductions reduce). Dimensions of size 1 are left out.
class KernelDomain {
public:
  /// The most ops of one kernel, for a driver's sake and for the time that it takes to
  /// form and to check one. What fuses for a reason stays far below: of 4,455 kernels of
  /// models, benchmarks and random graphs the largest held 25.
  static constexpr size_t maxOps = 64;

  /// Finds the domain that `ops` share, or nothing when no single kernel can
  /// compute them. `ops` are `linalg.generic` ops that are not free, in an order
  /// in which operands come first. What is read of an op inside the kernel is
  /// read at the reader's own point, so a kernel needs no exchange between
  /// points but its reductions. Where there is none, `why`, if given, becomes the reason,
  /// for people.
  static std::optional<KernelDomain> build(llvm::ArrayRef<mlir::Operation *> ops,
                                           llvm::StringRef *why = nullptr);

  KernelShape getShape() const { return shape; }
  llvm::ArrayRef<int64_t> getSizes() const { return sizes; }
  llvm::ArrayRef<int64_t> getRowSizes() const { return getSizes().take_front(numRows); }
  llvm::ArrayRef<int64_t> getColumnSizes() const { return getSizes().drop_front(numRows); }
  unsigned getNumRows() const { return numRows; }

  /// For each loop of `op` the dimension of the domain that it is, or -1 for
  /// loops of one trip. Not for a contraction's prologue.
  llvm::ArrayRef<int64_t> getDims(mlir::Operation *op) const { return dims.find(op)->second; }

  /// Whether `op` is computed only where the contraction reads it.
  bool isPrologue(mlir::Operation *op) const { return !dims.contains(op); }

  /// Whether the points of `op` differ by column.
  bool hasColumns(mlir::Operation *op) const;

  /// Whether the kernel's reductions reduce across memory: `reducesAcross`.
  bool isAcross() const { return across; }

  /// The ops that reduce the rows in parts, all cut alike.
  llvm::ArrayRef<mlir::linalg::GenericOp> getColumnOps() const { return columnOps; }
  int64_t getChunk() const { return chunk; }
  int64_t getParts() const;

  mlir::linalg::GenericOp getContraction() const { return contraction; }

private:
  KernelShape shape = KernelShape::Map;
  llvm::SmallVector<int64_t> sizes;
  unsigned numRows = 0;
  bool across = false;
  llvm::SmallVector<mlir::linalg::GenericOp> columnOps;
  int64_t chunk = 0;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int64_t>> dims;
  mlir::linalg::GenericOp contraction;

  bool assignDims(llvm::ArrayRef<mlir::Operation *> ops);
  bool acceptColumns(mlir::linalg::GenericOp op);
};

} // namespace weir

#endif // WEIR_KERNELS_DOMAIN_H
