//===- Attention.h - Attention and its gradients, by elements ---*- C++ -*-===//
//
// Variables name the places of all tensors of an attention: one for each dimension of its scores,
// one for the elements of a key, one for those of a value. Each factor, mask and result is an
// element at these, so that layouts, reshapes and repeated heads need no rule of their own.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_GRAPH_ATTENTION_H
#define WEIR_PASSES_GRAPH_ATTENTION_H

#include "passes/graph/RaiseNorms.h"
#include "passes/graph/Triangles.h"
#include "llvm/ADT/SmallBitVector.h"

namespace weir::elements {

/// A sum of products of two tensors, or of the elements of one.
struct Contraction {
  mlir::linalg::LinalgOp op;

  mlir::Value getFactor(unsigned factor) { return op.getDpsInputOperand(factor)->get(); }
  mlir::AffineMap getMap(unsigned factor) {
    return op.getMatchingIndexingMap(op.getDpsInputOperand(factor));
  }
  mlir::AffineMap getResultMap() { return op.getMatchingIndexingMap(op.getDpsInitOperand(0)); }
};

/// Returns the op as a contraction that starts at 0, if it is one.
std::optional<Contraction> getContraction(mlir::Operation *op);

/// Returns the op as a sum of one tensor's elements that starts at 0, if it is one.
std::optional<Contraction> getSum(mlir::Operation *op);

/// A tensor and the places of its elements.
struct Operand {
  mlir::Value tensor;
  Coords coords;

  bool operator==(const Operand &other) const;
};

/// Additions to the scores, as steps from the inside: a summand, or a number in place of them
/// where a condition is `where`.
struct BiasStep {
  unsigned node;
  std::optional<double> number;
  bool where = true;
};

/// A computation of one element of a bias: an op on other nodes, a constant, the place along a
/// dimension, or an element of a tensor.
struct BiasNode {
  mlir::Operation *op = nullptr;
  mlir::TypedAttr constant;
  int64_t place = -1;
  mlir::Value tensor;
  llvm::SmallVector<int64_t> dims;  ///< of the tensor: that of the scores, -1 for one of size 1
  std::optional<Triangle> triangle; ///< in place of the tensor, of queries and keys
  llvm::SmallVector<unsigned, 3> operands;
};

/// A tensor of scores, and the dimension of its keys.
struct ScoresTensor {
  mlir::Value tensor;
  int64_t axis;

  bool operator==(const ScoresTensor &) const = default;
};

/// Factors of a summand: powers of exp(score - max) and of the sum of these over the keys, of the
/// product of the result's gradient and a value, of the sum of its products with the
/// exponentials, and of the cap's tanh.
struct Summand {
  double factor = 1;
  int exponentials = 0, sums = 0, changes = 0, totals = 0, tanhs = 0;

  bool hasPowersOf(const Summand &other) const {
    return exponentials == other.exponentials && sums == other.sums && changes == other.changes &&
           totals == other.totals && tanhs == other.tanhs;
  }
};
using Polynomial = llvm::SmallVector<Summand, 4>;

/// A contraction of probabilities, or of the gradient of products, with another tensor; or a sum of
/// the gradient of scores, over dimensions in which a bias is repeated.
struct AttentionRoot {
  Contraction contraction;
  unsigned factor = 0;     ///< that is made of the scores
  Coords coords;           ///< of the result
  bool isGradient = false; ///< of products, or of the bias
  bool isOfBias = false;
  bool overKeys = false;               ///< sums over keys
  mlir::Operation *rounding = nullptr; ///< of the result
  bool isRounded = false;              ///< by all that reads the result, later on
};

/// Matches all that is made of a tensor of scores: the result, and gradients.
class AttentionMatcher : public Matcher {
public:
  AttentionMatcher(mlir::Type type, ScoresTensor scores) : Matcher(type), scores(scores) {}

  /// Matches the roots that are contractions, and those of `sums` that are gradients of a bias.
  bool match(llvm::ArrayRef<AttentionRoot> candidates, llvm::ArrayRef<AttentionRoot> sums);
  void raise(ErasedOps &erased);

  /// Returns the scores, as an element, of which `term` has an exponential or softmax.
  static std::optional<std::pair<ScoresTensor, Coords>> findScores(Matcher &matcher, Term term,
                                                                   unsigned depth = 0);

private:
  ScoresTensor scores;
  llvm::SmallVector<int64_t> dimVariables; ///< of the dimensions of the scores' tensor
  llvm::SmallVector<int64_t> variables;    ///< the same as batches, row, key
  Coord width, valueWidth;                 ///< of a key, of a value
  bool hasValueWidth = false;
  Operand products;                   ///< of queries and keys
  mlir::Operation *changes = nullptr; ///< the products of the result's gradient and values
  llvm::SmallVector<mlir::Operation *> softmaxes;
  std::optional<Operand> q, k, v, dresult;
  double scale = 1;
  std::optional<double> cap;
  llvm::SmallVector<BiasStep> steps;
  llvm::SmallVector<BiasNode> nodes;
  llvm::SmallVector<BiasStep> zeros; ///< conditions under which a gradient is 0
  llvm::SmallVector<AttentionRoot> roots;

  /// Returns a float constant, rounded as it is where the text computes with narrower types.
  std::optional<double> floatConstant(Term term);
  bool isFloat(Term term, double expected) { return floatConstant(term) == expected; }

  // Roots and gradients
  bool matchRoot(AttentionRoot &root);
  bool matchBias(AttentionRoot &root);
  std::optional<Polynomial> expandFactor(AttentionRoot &root, llvm::ArrayRef<Coord> loops);
  bool matchKind(AttentionRoot &root, const Polynomial &polynomial);
  std::optional<Coords> bindLoops(Contraction contraction, unsigned factor);
  /// Takes a factor at these places, which must be the same as before if it is known.
  bool takeFactor(std::optional<Operand> &known, mlir::Value tensor, Coords coords, bool isOfKeys,
                  const Coord &element);
  bool takeValueWidth(int64_t size);
  bool matchChanges(const Term &term, int64_t key);
  std::optional<Polynomial> expand(Term term, int64_t key);
  std::optional<Polynomial> expandElement(const Term &term, int64_t key);
  std::optional<Polynomial> expandSum(const Term &term, int64_t key);
  std::optional<Polynomial> expandChoice(Term term, int64_t key);
  bool isExponent(Term term, int64_t key);
  bool isCapped(Term term, int64_t key);
  bool isAtScore(Term term, int64_t key);
  bool matchGuard(Term condition);
  bool matchZeros();
  bool isSameNode(unsigned a, unsigned b) const;
  bool matchRounding(AttentionRoot &root);
  bool matchTypes();
  bool gains();
  bool isShared();

  // Scores
  bool orderVariables(llvm::ArrayRef<Coord> queryLoops);
  Term skipRounding(Term term);
  bool matchScores(Term term);
  bool matchCapped(Term term);
  bool matchScaled(Term term, double factor);
  bool matchProducts(Term term);
  std::optional<int64_t> getDim(const Coord &coord) const;
  void foldTriangle(BiasNode &node);
  std::optional<unsigned> addNode(Term term);
  std::optional<BiasNode> makeNode(Term term);

  int64_t getKey() const { return variables.back(); }
  int64_t getRow() const { return variables[variables.size() - 2]; }

  // The ops
  llvm::SmallVector<int64_t> getSizes(llvm::ArrayRef<int64_t> wanted) const;
  llvm::SmallVector<int64_t> getVariables(bool ofKeys, const Coord &element) const;
  mlir::Value arrange(mlir::OpBuilder &builder, const Operand &operand, bool ofKeys,
                      const Coord &element);
  void replace(mlir::OpBuilder &builder, AttentionRoot &root, mlir::Value made);
  mlir::Operation *findFirst(bool isGradient);
  bool isInOrder();
  bool coversScores() const;
  llvm::SmallBitVector getBiasDims() const;
  mlir::Value buildBias(mlir::OpBuilder &builder, mlir::RankedTensorType type);
  mlir::Value emit(mlir::OpBuilder &b, mlir::Location loc, unsigned node,
                   llvm::ArrayRef<int64_t> loops, mlir::ValueRange leaves,
                   llvm::ArrayRef<unsigned> leafNodes);
  mlir::Value emitSteps(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                        llvm::ArrayRef<int64_t> loops, mlir::ValueRange leaves,
                        llvm::ArrayRef<unsigned> leafNodes);
};

/// Returns the deepest element that `term` is read from through copies and reshapes, and with
/// `casts` through conversions between float types.
std::optional<Operand> findSource(Unfolder &unfolder, Term term, bool casts = false);

} // namespace weir::elements

#endif // WEIR_PASSES_GRAPH_ATTENTION_H
