//===- Elements.h - Elements of tensors as expressions ----------*- C++ -*-===//
//
// What one element of a tensor is, is an expression: linalg bodies, maps and
// reshapes only say which elements it is made of. It is unfolded on demand, and
// patterns are about it, not about the ops that a front end prints.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_ELEMENTS_H
#define WEIR_PASSES_ELEMENTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace weir::elements {

struct Scope;
struct Coords;

/// A scalar: an element of a tensor (`coords` are set), or a value of a linalg
/// body at the point of `scope`, or a value outside of any body (neither is).
struct Term {
  mlir::Value value;
  std::shared_ptr<const Scope> scope;
  std::shared_ptr<const Coords> coords;

  bool isElement() const { return coords != nullptr; }
};

/// `(variable / below) % size`, of a variable of `below * size * above` values.
struct Digit {
  int64_t variable, below, size, above;

  bool operator==(const Digit &) const = default;
};

/// Digits, the most significant first, as one number; what follows on in a variable is one
/// digit.
struct Digits : llvm::SmallVector<Digit, 2> {
  using SmallVector::SmallVector;

  void add(Digit digit);
  /// Takes the most significant digits, of `size` values; nothing where none end there.
  std::optional<Digits> takeFront(int64_t size);
};

/// A place along a dimension: a free or bound variable, digits of such, or the value of a
/// term. Dimensions of size 1 have only one place, variable 0.
struct Coord {
  int64_t variable = 0; ///< -1: it is no one variable
  Term computed;
  Digits digits; ///< unless it is computed

  Coord() = default;
  Coord(Digits digits);
  Coord(Term computed) : variable(-1), computed(computed) {}

  bool isVariable(int64_t other) const { return !computed.value && variable == other; }
};

struct Coords : llvm::SmallVector<Coord> {
  using SmallVector::SmallVector;
};

/// The point of a body's iteration space.
struct Scope {
  mlir::linalg::GenericOp op;
  Coords loops;
};

/// A reduction of `body` over `variables`, of as many trips as `trips` says.
struct Reduction {
  mlir::Operation *combine = nullptr;
  Term body, start;
  llvm::SmallVector<int64_t> variables;
};

/// Unfolds terms, and remembers the ops it looked into.
class Unfolder {
public:
  /// Variables are numbers from 1; a size is known for each.
  int64_t makeVariable(int64_t size) {
    sizes.push_back(size);
    return size == 1 ? 0 : int64_t(sizes.size());
  }
  int64_t getSize(int64_t variable) const { return variable == 0 ? 1 : sizes[variable - 1]; }
  Coord makeCoord(int64_t size);

  /// An element of `tensor` at new variables.
  Term makeElement(mlir::Value tensor);
  Term element(mlir::Value tensor, Coords coords);

  /// Steps from an element through reshapes, and from a body's argument or a
  /// copy to where it comes from, as long as no scalar op stands between.
  /// `stop`, if given, is not stepped through.
  Term resolve(Term term, mlir::Value stop = {});

  /// One such step.
  std::optional<Term> step(const Term &term);

  /// The scalar op that computes the term, or null.
  mlir::Operation *getOp(Term &term);
  Term getOperand(const Term &term, unsigned index) {
    return {term.value.getDefiningOp()->getOperand(index), term.scope, nullptr};
  }

  /// The reduction that computes an element, if one does.
  std::optional<Reduction> getReduction(Term term);

  llvm::ArrayRef<mlir::Operation *> getVisited() const { return visited.getArrayRef(); }

private:
  llvm::SmallVector<int64_t> sizes;
  llvm::SetVector<mlir::Operation *> visited;

  std::optional<Term> stepIntoBody(const Term &term, mlir::linalg::GenericOp op);
  std::optional<Term> stepThroughReshape(const Term &term);
  std::optional<Coords> getLoops(mlir::linalg::GenericOp op, mlir::AffineMap map,
                                 llvm::ArrayRef<Coord> coords);
};

/// Matches expressions; after a failure, what it collected means nothing.
class Matcher {
public:
  /// `type` is the float type of the result: conversions to narrower ones are
  /// part of what is computed, others only say how precisely.
  explicit Matcher(mlir::Type type) : type(type) {}

  Unfolder unfolder;

  template <typename Op> std::optional<Term> unary(Term term) {
    if (!llvm::isa_and_present<Op>(unfolder.getOp(term)))
      return std::nullopt;
    return unfolder.getOperand(term, 0);
  }
  template <typename Op> std::optional<std::pair<Term, Term>> binary(Term term) {
    if (!llvm::isa_and_present<Op>(unfolder.getOp(term)))
      return std::nullopt;
    return std::pair(unfolder.getOperand(term, 0), unfolder.getOperand(term, 1));
  }

  /// A float constant, in f64, seen through conversions between float types.
  std::optional<double> floatConstant(Term term);
  std::optional<int64_t> integerConstant(Term term);
  bool isFloat(Term term, double expected) { return floatConstant(term) == expected; }
  bool isInteger(Term term, int64_t expected) { return integerConstant(term) == expected; }

  /// Drops conversions between float types that are wide enough, and choices that are known.
  Term skipConversions(Term term, mlir::Value stop = {});

  /// The place where `term`, or what it widens, is read from `tensor`; null if
  /// it is not.
  const Coords *getPlace(Term &term, mlir::Value tensor);

  /// The tensor of `wanted` type that `term` is read from at a place that
  /// `accepts`; of several copies the first made.
  mlir::Value findTensor(Term term, mlir::RankedTensorType wanted,
                         llvm::function_ref<bool(llvm::ArrayRef<Coord>)> accepts);

  /// The body and the variables of a sum that starts at 0.
  std::optional<Reduction> sum(Term term);
  /// The same of a maximum that starts at -inf and propagates NaN.
  std::optional<Reduction> maximum(Term term);

  /// Whether a sum or an exponential of x would stay beside what replaces `root`,
  /// because others use it: the op would only compute it again.
  /// `others` are replaced, too.
  bool isShared(mlir::Value x, mlir::Value root, llvm::ArrayRef<mlir::Value> others = {});

  /// The two factors of a square, or its base twice: who asks compares them.
  std::optional<std::pair<Term, Term>> square(Term term);

protected:
  mlir::Type type;

  /// Whether what is of this type keeps all digits that the result has.
  bool isWide(mlir::Type other) const;

private:
  /// Drops conversions alone.
  Term skipCasts(Term term, mlir::Value stop = {});
  /// A constant, or the sum or difference of two: JAX computes the number of a variance's
  /// elements, less its degrees of freedom.
  std::optional<double> getNumber(Term term);
  /// Which operand of a selection by such numbers is chosen.
  std::optional<unsigned> getChoice(Term term);
};

/// The number that the places in all dimensions are; nothing where one is computed.
std::optional<Digits> flatten(llvm::ArrayRef<Coord> coords);

/// Whether `coords` are these variables, one by one.
bool isAt(llvm::ArrayRef<Coord> coords, llvm::ArrayRef<int64_t> variables);

} // namespace weir::elements

#endif // WEIR_PASSES_ELEMENTS_H
