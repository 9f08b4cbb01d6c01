//===- KnownFunctions.h - Functions recognised by value ---------*- C++ -*-===//

#ifndef WEIR_PASSES_KNOWNFUNCTIONS_H
#define WEIR_PASSES_KNOWNFUNCTIONS_H

#include "passes/graph/Elements.h"

namespace weir::elements {

/// GELU, SiLU, an error function or asinh of a tensor x, of f32 or f64, however its elements
/// are computed from those of x: front ends write such functions as polynomials or by other
/// functions, with kinks where they have none, and associate products in any order. It is
/// known by its values at some 400 points from -2^100 to 2^100, to within what rounding to
/// the type leaves.
class KnownFunction : public Matcher {
public:
  explicit KnownFunction(mlir::Value root);

  bool match();
  mlir::Value build(mlir::OpBuilder &builder);

  /// The ops of `block` that may be roots: those close behind what no polynomial is made of.
  static llvm::DenseSet<mlir::Operation *> findRoots(mlir::Block &block);

private:
  mlir::TypedValue<mlir::RankedTensorType> root;
  mlir::Value x;
  unsigned function = 0; ///< which of those that are known

  /// What computes a number: an op of others, a constant, or an element of a tensor, which
  /// is the number that it is computed from, if that is known.
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
  /// What elements and scalars that were met became. The terms keep their scopes.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<Term, unsigned>, 1>> elements;
  llvm::DenseMap<std::pair<mlir::Value, const Scope *>, std::pair<Term, unsigned>> scalars;

  std::optional<unsigned> add(Term term);
  std::optional<unsigned> addElement(Term term);
  std::optional<unsigned> addScalar(Term term);
  /// The nodes that the last is computed from, of those up to `from`; nothing where it is
  /// computed from anything else, too.
  std::optional<llvm::SmallVector<unsigned>> getPath(unsigned from) const;
  /// The value of an op on numbers, booleans 0 and 1, if it is one that such functions are
  /// made of: it rounds to no less than the root's type.
  std::optional<double> compute(mlir::Operation *op, llvm::ArrayRef<double> in) const;
  /// The root's element where that of `from` is `value`.
  double evaluate(llvm::ArrayRef<unsigned> path, unsigned from, double value) const;
  bool matchFunction(unsigned from);
};

} // namespace weir::elements

#endif // WEIR_PASSES_KNOWNFUNCTIONS_H
