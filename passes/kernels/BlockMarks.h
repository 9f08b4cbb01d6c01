//===- BlockMarks.h - Marks that survive rewriting --------------*- C++ -*-===//

#ifndef WEIR_PASSES_KERNELS_BLOCKMARKS_H
#define WEIR_PASSES_KERNELS_BLOCKMARKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace weir {

/// Keeps `schedule::inBlocksAttrName` on contractions that upstream's patterns replace. Patterns
/// drop discardable attributes but keep locations, so that each marked op has one of its own for as
/// long as this lives.
class BlockMarks {
public:
  explicit BlockMarks(mlir::func::FuncOp function);
  ~BlockMarks();
  BlockMarks(const BlockMarks &) = delete;
  BlockMarks &operator=(const BlockMarks &) = delete;

  /// Marks what has replaced marked ops.
  void restore();

private:
  struct Mark {
    mlir::Attribute number;
    mlir::Location location; ///< as it was
  };
  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Attribute, Mark> marks; ///< by location

  const Mark *find(mlir::Operation *op) const;
};

} // namespace weir

#endif // WEIR_PASSES_KERNELS_BLOCKMARKS_H
