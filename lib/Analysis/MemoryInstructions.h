//===- MemoryInstructions.h - Instructions as memory accesses ----*- C++ -*-===//
//
// Turns one instruction into the accesses that it makes. Where an instruction stands, the caller
// says.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_ANALYSIS_MEMORYINSTRUCTIONS_H
#define WEIR_LIB_ANALYSIS_MEMORYINSTRUCTIONS_H

#include "MemoryReferences.h"

namespace weir {

/// The conditions to come to a place of the text, and the trip variables of the loops around it,
/// outermost first.
struct Surroundings : Conditions {
  llvm::SmallVector<unsigned, 4> loops;
};

struct AccessEffect {
  bool reads = false, writes = false, atomic = false;
  bool certain = true;  ///< whether it happens wherever the instruction is executed
  bool late = false;    ///< as MemoryAccess::late
  bool product = false; ///< as MemoryAccess::product
};

/// The memory instructions of one kernel.
class MemoryInstructions {
public:
  MemoryInstructions(mlir::FunctionOpInterface kernel, AddressValues &values,
                     MemoryReferences &references)
      : kernel(kernel), values(values), references(references) {}

  /// Adds the accesses of `op`. Operations that are not known are taken at what they say of their
  /// effects, or else to access all memory that they might reach.
  void visit(mlir::Operation *op, const BodyFrame &frame, const Surroundings &at);
  /// Returns all accesses so far, and leaves none.
  std::vector<MemoryAccess> takeAccesses() { return std::move(accesses); }

private:
  using Effect = AccessEffect;
  static constexpr Effect read = {true, false}, write = {false, true}, update = {true, true},
                          atomic = {true, true, true};
  /// An instruction, and where it stands.
  struct Site {
    mlir::Operation *op;
    const BodyFrame &frame;
    const Surroundings &at;
  };

  mlir::FunctionOpInterface kernel;
  AddressValues &values;
  MemoryReferences &references;
  std::vector<MemoryAccess> accesses;
  std::optional<bool> escape; ///< the answer of addressesEscape, once asked

  /// Whether the instruction was known, and its accesses were added.
  bool visitElements(const Site &site);
  void visitMBarrier(const Site &site, mlir::Value mbarriers, int64_t number, Effect effect);
  void visitFactor(const Site &site, mlir::Value memref, mlir::Value index, unsigned side,
                   bool isTransposed);
  bool visitAffine(const Site &site);
  bool visitTransfer(const Site &site);
  void visitByEffects(const Site &site);
  bool addressesEscape();

  llvm::SmallVector<mlir::AffineExpr> evaluateAll(mlir::ValueRange indices, const BodyFrame &frame);
  void addAccess(const Site &site, mlir::Value memref, llvm::ArrayRef<mlir::AffineExpr> indices,
                 mlir::Type moved, Effect effect);
  void addElements(const Site &site, mlir::Value memref, llvm::ArrayRef<mlir::AffineExpr> indices,
                   int64_t elements, int64_t elementBytes, Effect effect);
  bool visitCooperative(const Site &site);
  void addWhole(const Site &site, mlir::Value memref, Effect effect);
  void addAnywhere(const Site &site, mlir::Value root, Effect effect);
  void add(MemoryAccess access, const Site &site, Effect effect, const Conditions &conditions);
};

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_MEMORYINSTRUCTIONS_H
