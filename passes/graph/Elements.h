//===- Elements.h - Elements of tensors as expressions ----------*- C++ -*-===//
//
// Represents one element of a tensor as an expression, unfolded on demand through linalg
// bodies, maps and reshapes. Patterns match the expression, not the ops that a front end
// prints.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_GRAPH_ELEMENTS_H
#define WEIR_PASSES_GRAPH_ELEMENTS_H

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

/// A number of several digits, the most significant first. Neighbouring digits of one
/// variable are joined.
struct Digits : llvm::SmallVector<Digit, 2> {
  using SmallVector::SmallVector;

  void add(Digit digit);
  /// Takes the most significant digits that have `size` values together. Returns nothing if
  /// no digit ends there.
  std::optional<Digits> takeFront(int64_t size);
};

/// A place along a dimension: a free or bound variable, digits of such, or the value of a
/// term. Dimensions of size 1 have only one place, variable 0.
struct Coord {
  int64_t variable = 0; ///< -1: not a single variable
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

/// A reduction of `body` over `variables`.
struct Reduction {
  mlir::Operation *combine = nullptr;
  Term body, start;
  llvm::SmallVector<int64_t> variables;
};

/// Unfolds terms, and remembers the ops it looked into.
class Unfolder {
public:
  /// Makes a variable of `size` values. Variables are numbers from 1; one of size 1 is 0.
  int64_t makeVariable(int64_t size) {
    sizes.push_back(size);
    return size == 1 ? 0 : int64_t(sizes.size());
  }
  int64_t getSize(int64_t variable) const { return variable == 0 ? 1 : sizes[variable - 1]; }
  Coord makeCoord(int64_t size);

  /// Returns an element of `tensor` at new variables.
  Term makeElement(mlir::Value tensor);
  Term element(mlir::Value tensor, Coords coords);

  /// Steps from an element through reshapes and transposes, and from a body's argument or a copy to
  /// its source, as long as no scalar op stands between. Does not step through `stop`.
  Term resolve(Term term, mlir::Value stop = {});

  /// Takes one such step.
  std::optional<Term> step(const Term &term);

  /// Returns the scalar op that computes the term, or null.
  mlir::Operation *getOp(Term &term);
  Term getOperand(const Term &term, unsigned index) {
    return {term.value.getDefiningOp()->getOperand(index), term.scope, nullptr};
  }

  /// Returns the reduction that computes an element, if one does.
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

/// Matches expressions. After a failure, its members have no meaning.
class Matcher {
public:
  /// Creates a matcher of results of the float type `type`. A conversion to a narrower type
  /// is part of the computation; others only set the precision.
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

  /// Returns a float constant, in f64, seen through conversions between float types.
  std::optional<double> floatConstant(Term term);
  std::optional<int64_t> integerConstant(Term term);
  bool isFloat(Term term, double expected) { return floatConstant(term) == expected; }
  bool isInteger(Term term, int64_t expected) { return integerConstant(term) == expected; }

  /// Drops conversions between float types that are wide enough, and choices that are known.
  Term skipConversions(Term term, mlir::Value stop = {});

  /// Returns the place where `term`, or the narrower float that it widens, is read from
  /// `tensor`, or null.
  const Coords *getPlace(Term &term, mlir::Value tensor);

  /// Returns the tensor of type `wanted` that `term` is read from at a place that `accepts`
  /// takes: of several copies the first one, or null.
  mlir::Value findTensor(Term term, mlir::RankedTensorType wanted,
                         llvm::function_ref<bool(llvm::ArrayRef<Coord>)> accepts);

  /// Returns the body and the variables of a sum that starts at 0.
  std::optional<Reduction> sum(Term term);
  /// Returns those of a maximum that starts at -inf and propagates NaN.
  std::optional<Reduction> maximum(Term term);

  /// Whether a sum or an exponential of x has uses besides `root` and `others`, which are
  /// replaced. The new op would only compute it again.
  bool isShared(mlir::Value x, mlir::Value root, llvm::ArrayRef<mlir::Value> others = {});

  /// Returns the two factors of a product, or the base of a square twice. The caller
  /// compares them.
  std::optional<std::pair<Term, Term>> square(Term term);

protected:
  mlir::Type type;

  /// Whether this type keeps all digits of the result's type.
  bool isWide(mlir::Type other) const;

private:
  /// Drops conversions, but no choices.
  Term skipCasts(Term term, mlir::Value stop = {});
  /// Returns a constant, or the sum or difference of two: JAX computes a variance's number
  /// of elements less its degrees of freedom.
  std::optional<double> getNumber(Term term);
  /// Returns the index of the chosen operand of a selection by such numbers.
  std::optional<unsigned> getChoice(Term term);
};

/// Returns the places in all dimensions as one number, or nothing if one is computed.
std::optional<Digits> flatten(llvm::ArrayRef<Coord> coords);

/// Whether `coords` are these variables, one by one.
bool isAt(llvm::ArrayRef<Coord> coords, llvm::ArrayRef<int64_t> variables);

} // namespace weir::elements

#endif // WEIR_PASSES_GRAPH_ELEMENTS_H
