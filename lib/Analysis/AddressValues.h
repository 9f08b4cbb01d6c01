//===- AddressValues.h - Integers of a kernel as affine maps -----*- C++ -*-===//
//
// Evaluates integers backwards, through arithmetic, loops and calls, to the ids, trips and values
// that they are made of. A value that isn't understood becomes a variable of its own, so what is
// computed from it keeps its form.
//
// Arithmetic on `index` is assumed not to wrap: an address beyond 2^63 is in no memory.
//
// Nothing here knows of memory. The code is in three files: AddressValues.cpp has variables, ids,
// sizes and conditions, AddressArithmetic.cpp single operations, AddressLoops.cpp what changes from
// trip to trip.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_ANALYSIS_ADDRESSVALUES_H
#define WEIR_LIB_ANALYSIS_ADDRESSVALUES_H

#include "BodyFrame.h"
#include "IntegerRanges.h"
#include "Interval.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <map>

namespace weir {

/// The conditions for something to be executed: all of `nonNegative` are at least 0, all of `zero`
/// are 0.
struct Conditions {
  llvm::SmallVector<mlir::AffineExpr, 0> nonNegative, zero;
  /// Whether these are all conditions. Else it may not be executed even where they hold.
  bool certain = true;
};

/// The values of one kernel. Dimension `i` of every expression is variable `i`. Variables are only
/// ever added, so an expression stays valid.
class AddressValues {
public:
  AddressValues(mlir::FunctionOpInterface kernel, const LaunchSizes &sizes,
                mlir::DominanceInfo &dominance)
      : kernel(kernel), sizes(sizes), dominance(dominance), context(kernel->getContext()) {}

  /// Returns `value`, an integer, as seen in `frame` or a frame around it. The first answer for a
  /// value in a frame stays its answer.
  mlir::AffineExpr evaluate(mlir::Value value, const BodyFrame &frame);
  mlir::AffineExpr evaluate(mlir::OpFoldResult value, const BodyFrame &frame);
  /// Returns a result of `map` with its operands' values.
  /// Errors: null where that is not affine in them.
  mlir::AffineExpr replaceDims(mlir::AffineMap map, mlir::ValueRange operands, unsigned result,
                               const BodyFrame &frame);
  /// Lets `argument` of a trip of a loop be `expr`.
  void set(mlir::Value argument, const BodyFrame &trip, mlir::AffineExpr expr) {
    exprs[{&trip, argument}] = expr;
  }

  mlir::AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, context); }
  mlir::AffineExpr dim(unsigned variable) { return getAffineDimExpr(variable, context); }
  unsigned addVariable(MapVariable variable);
  /// Adds a variable for `value`, of which no more is known than its range.
  mlir::AffineExpr addOpaque(mlir::Value value, const BodyFrame &frame, Interval range = {});
  /// Returns the variable of a loop's trips: one for the loop, whatever trip of a loop around it
  /// `frame` is.
  unsigned getTrip(mlir::Operation *loop, const BodyFrame &frame);
  /// Returns or sets the largest value of a variable.
  std::optional<int64_t> getUpper(unsigned variable) const { return variables[variable].upper; }
  void setUpper(unsigned variable, std::optional<int64_t> upper) {
    variables[variable].upper = upper;
  }
  Interval getRange(mlir::AffineExpr expr) const { return getInterval(expr, variables); }

  /// Adds to `at` that `condition` holds, or that it does not. Adds less, and says that it is not
  /// certain, where that is not affine.
  void addCondition(mlir::Value condition, bool holds, Conditions &at, const BodyFrame &frame);
  /// Returns whether `condition` holds, or nothing where that may differ between executions.
  std::optional<bool> decide(mlir::Value condition, const BodyFrame &frame);

  /// Returns all variables, and leaves none.
  std::vector<MapVariable> takeVariables() { return std::move(variables); }
  /// Returns the trip variables of the loops in `frame`.
  llvm::DenseMap<mlir::Operation *, unsigned> getTrips(const BodyFrame &frame) const;

private:
  using Kind = MapVariable::Kind;

  mlir::FunctionOpInterface kernel;
  const LaunchSizes &sizes;
  mlir::DominanceInfo &dominance;
  mlir::MLIRContext *context;
  std::vector<MapVariable> variables;
  std::map<std::pair<Kind, unsigned>, unsigned> ids;
  llvm::DenseMap<std::pair<const BodyFrame *, mlir::Value>, mlir::AffineExpr> exprs;
  llvm::DenseMap<std::pair<const BodyFrame *, mlir::Operation *>, unsigned> trips;
  std::optional<IntegerRanges> ranges; ///< of the kernel's integers; made when asked for

  bool isNonNegative(mlir::AffineExpr expr) const;
  MapVariable &getVariable(mlir::AffineExpr dim);
  mlir::AffineExpr addUnbounded(mlir::Value value, const BodyFrame &frame, Interval range = {});
  Interval inferRange(mlir::Value value);
  mlir::AffineExpr getId(Kind kind, unsigned axis, std::optional<int64_t> size);
  bool isNeverNegative(mlir::Value value, const BodyFrame &frame);
  void addComparison(mlir::arith::CmpIPredicate predicate, mlir::AffineExpr left,
                     mlir::AffineExpr right, Conditions &at);

  // Each returns null where it does not know the value.
  mlir::AffineExpr compute(mlir::Value value, const BodyFrame &frame);
  mlir::AffineExpr computeId(mlir::Operation *op);
  mlir::AffineExpr computeSize(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr computeShape(mlir::OpResult value, const BodyFrame &frame);
  mlir::AffineExpr computeAffine(mlir::OpResult value, const BodyFrame &frame);

  // AddressArithmetic.cpp
  bool fits(mlir::AffineExpr expr, mlir::Type type) const;
  mlir::AffineExpr fit(mlir::AffineExpr expr, mlir::Type type) const;
  std::optional<int64_t> getLiteral(mlir::Value value, const BodyFrame &frame);
  mlir::AffineExpr computeArith(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr computeSum(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr computeQuotient(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr computeAnd(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr computeOr(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr computeMinMax(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr computeAffineMin(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr computeSelect(mlir::Operation *op, const BodyFrame &frame);
  mlir::AffineExpr addBetween(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> below,
                              llvm::ArrayRef<mlir::AffineExpr> above, Interval range,
                              const BodyFrame &frame);
  mlir::AffineExpr matchGlobalId(mlir::Operation *sum);
  mlir::AffineExpr flipBits(mlir::AffineExpr expr, int64_t mask);
  mlir::AffineExpr getBit(mlir::Value condition, const BodyFrame &frame);

  // AddressLoops.cpp
  mlir::AffineExpr computeArgument(mlir::BlockArgument argument, const BodyFrame &frame);
  mlir::AffineExpr computeInLoop(mlir::BlockArgument argument, mlir::AffineExpr self,
                                 const BodyFrame &frame);
  mlir::AffineExpr computeInductionVariable(mlir::BlockArgument argument, mlir::AffineExpr self,
                                            mlir::AffineExpr trip, const BodyFrame &frame);
  mlir::AffineExpr carry(mlir::AffineExpr self, mlir::BlockArgument argument, mlir::Value init,
                         mlir::Value next, mlir::AffineExpr trip, const BodyFrame &frame);
  mlir::AffineExpr computeCarried(mlir::BlockArgument argument, mlir::AffineExpr init,
                                  mlir::Value next, mlir::AffineExpr trip);
};

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_ADDRESSVALUES_H
