//===- KnownFunctions.h - Functions recognised by value ---------*- C++ -*-===//

#ifndef WEIR_PASSES_GRAPH_KNOWNFUNCTIONS_H
#define WEIR_PASSES_GRAPH_KNOWNFUNCTIONS_H

#include "passes/graph/Elements.h"

namespace weir::elements {

/// A matcher of GELU, SiLU, an error function or asinh of a tensor x of f32 or f64, in any
/// spelling: front ends use polynomials or other functions, with kinks that the function
/// does not have, and associate products in any order. Compares values at some 400 points
/// from -2^100 to 2^100, to within the rounding error of the type.
class KnownFunction : public Matcher {
public:
  explicit KnownFunction(mlir::Value root);

  bool match();
  mlir::Value build(mlir::OpBuilder &builder);

  /// Returns the ops of `block` that may be roots: those close behind an op that no
  /// polynomial has.
  static llvm::DenseSet<mlir::Operation *> findRoots(mlir::Block &block);

private:
  mlir::TypedValue<mlir::RankedTensorType> root;
  mlir::Value x;
  unsigned function = 0; ///< which of those that are known

  /// A step of a computation: an op on other nodes, a constant, or an element of a tensor,
  /// with the node that computes it if that is known.
  struct Node {
    mlir::Operation *op = nullptr;
    mlir::Value tensor; ///< of the root's type, read at the root's place
    double constant = 0;
    llvm::SmallVector<unsigned, 3> operands;
    bool isConstant = false;
  };
  llvm::SmallVector<Node, 0> nodes; // operands first
  llvm::SmallVector<int64_t> point;
  unsigned visits = 0, seeds = 0;
  /// Nodes of elements and scalars that were met. The terms keep their scopes.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<Term, unsigned>, 1>> elements;
  llvm::DenseMap<std::pair<mlir::Value, const Scope *>, std::pair<Term, unsigned>> scalars;

  std::optional<unsigned> add(Term term);
  std::optional<unsigned> addElement(Term term);
  std::optional<unsigned> addScalar(Term term);
  /// Returns the nodes, from `from` on, that the last one is computed from, or nothing if
  /// it also depends on others.
  std::optional<llvm::SmallVector<unsigned>> getPath(unsigned from) const;
  /// Returns the value of an op on numbers, booleans being 0 and 1. Returns nothing for ops
  /// that no such function has, or that round to less than the root's type.
  std::optional<double> compute(mlir::Operation *op, llvm::ArrayRef<double> in) const;
  /// Returns the root's element for the value `value` of `from`.
  double evaluate(llvm::ArrayRef<unsigned> path, unsigned from, double value) const;
  bool matchFunction(unsigned from);
};

} // namespace weir::elements

#endif // WEIR_PASSES_GRAPH_KNOWNFUNCTIONS_H
