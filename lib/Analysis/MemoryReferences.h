//===- MemoryReferences.h - Memrefs as places in memory ----------*- C++ -*-===//
//
// Follows memrefs backwards, through views, choices and calls, to the memory that they are in. It
// asks AddressValues for offsets and conditions and knows nothing of who accesses a memref.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_ANALYSIS_MEMORYREFERENCES_H
#define WEIR_LIB_ANALYSIS_MEMORYREFERENCES_H

#include "AddressValues.h"

namespace weir {

/// Returns the bytes of an element; 0 if its bits are not whole bytes.
int64_t getBytesOfElement(mlir::Type element);

/// A memref seen from one of the pieces of memory it may be in.
struct MemoryReference {
  mlir::Value root;                               ///< null: not known
  mlir::AffineExpr offset;                        ///< in bytes; null: not known
  llvm::SmallVector<mlir::AffineExpr, 4> strides; ///< in bytes
  Conditions conditions;                          ///< for it to be in this piece
};
using MemoryReferenceList = llvm::SmallVector<MemoryReference, 1>;

/// The memrefs of one kernel.
class MemoryReferences {
public:
  MemoryReferences(AddressValues &values, mlir::DominanceInfo &dominance)
      : values(values), dominance(dominance) {}

  /// Returns the pieces of memory that `memref`, as seen in `frame` or a frame around it, may be
  /// in. The first answer for a value in a frame stays its answer.
  MemoryReferenceList resolve(mlir::Value memref, const BodyFrame &frame);
  /// Lets `argument` of a trip of a loop be in these pieces.
  void set(mlir::Value argument, const BodyFrame &trip, MemoryReferenceList pieces) {
    known[{&trip, argument}] = std::move(pieces);
  }

private:
  AddressValues &values;
  mlir::DominanceInfo &dominance;
  llvm::DenseMap<std::pair<const BodyFrame *, mlir::Value>, MemoryReferenceList> known;
  llvm::DenseMap<mlir::StringAttr, mlir::Value> globals; ///< the first `memref.get_global` of each
  mlir::Value dynamicShared;

  bool isKnown(mlir::Value memref, const BodyFrame &frame) const;
  MemoryReferenceList compute(mlir::Value memref, const BodyFrame &frame);
  std::optional<MemoryReferenceList> resolveChoice(mlir::Value memref, const BodyFrame &frame);
  std::optional<MemoryReferenceList> resolveCycle(mlir::BlockArgument argument,
                                                  const BodyFrame &frame);
  void addWhere(mlir::Value memref, const Conditions &when, const BodyFrame &frame,
                MemoryReferenceList &found);
  bool isViewOf(mlir::Value view, const llvm::DenseSet<mlir::Value> &memrefs,
                const BodyFrame &frame);
  llvm::SmallVector<mlir::Value> getRoots(mlir::Value memref, const BodyFrame &frame);

  MemoryReferenceList resolveDirectly(mlir::Value memref, const BodyFrame &frame);
  MemoryReference makeRoot(mlir::Value memref, mlir::Value root, const BodyFrame &frame);
  llvm::SmallVector<mlir::AffineExpr, 4> getStrides(mlir::MemRefType type, mlir::Value memref,
                                                    const BodyFrame &frame);
  void applyView(mlir::Operation *view, MemoryReference &reference, const BodyFrame &frame);
  void shift(MemoryReference &reference, llvm::ArrayRef<mlir::OpFoldResult> offsets,
             const BodyFrame &frame);
};

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_MEMORYREFERENCES_H
