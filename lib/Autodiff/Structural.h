//===- Structural.h - The rule of structured ops ----------------*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_STRUCTURAL_H
#define WEIR_LIB_AUTODIFF_STRUCTURAL_H

#include "Rules.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace weir::autodiff {

/// Max number of steps of a reduction that are unrolled for its gradient.
inline constexpr int64_t maxSteps = 128;

/// The kinds of results, by the way they combine the values at their loops.
enum class SeedKind {
  Point,    ///< one value for each element
  Sum,      ///< accumulator + f
  Extremum, ///< the largest or smallest of accumulator and f, ties shared
  First,    ///< the same, ties given to the first in the order of the loops
  Product,  ///< accumulator * f
};

/// A result that a cotangent flows back from.
struct Seed {
  SeedKind kind;
  /// The yielded value of a `Point` or `Sum`, else only f, in the op's body.
  mlir::Value yielded;
  mlir::Value cotangent;
  mlir::Value result; ///< of the op
  mlir::AffineMap map;
  /// `Extremum`: the number of values that are the result. `First`: the number of the
  /// first such point. `Product`: the number of factors that are 0.
  mlir::Value ties = nullptr;
  mlir::Value nonZero = nullptr; ///< `Product`: the product of the other factors
};

/// The index, in terms of the op's loops, at which it reads along one dimension.
struct DimRead {
  enum Kind {
    Unit,   ///< 0: the dimension has size 1
    Own,    ///< at a loop that walks all of the dimension
    Solved, ///< at factor * loop + rest
    Matched ///< anywhere
  } kind = Unit;
  unsigned loop = 0;
  int64_t factor = 1;
  mlir::AffineExpr at = nullptr; ///< `Solved`: the rest; `Matched`: the index, or null
  mlir::Value index = nullptr;   ///< `Matched`: the index in the op's body, if `at` is null
};

/// A value that the op reads, once or more by the same map.
struct GradientTarget {
  mlir::Value value;
  mlir::AffineMap map; ///< null with `reads`
  llvm::SmallVector<mlir::Value> inBody;
  llvm::SmallVector<DimRead> reads = {}; ///< of each dimension, if not all are plain loops
};

/// A tensor or scalar that a new op reads.
struct OpInput {
  mlir::Value value;
  mlir::AffineMap map;
};

/// Builds the gradient of one structured op.
class Structural {
public:
  Structural(mlir::linalg::LinalgOp op, mlir::OpBuilder &builder,
             llvm::ArrayRef<mlir::Value> cotangents, Cotangents &sums)
      : op(op), builder(builder), cotangents(cotangents), sums(sums), body(*op.getBlock()) {}

  llvm::LogicalResult run();

private:
  mlir::linalg::LinalgOp op;
  mlir::OpBuilder &builder;
  llvm::ArrayRef<mlir::Value> cotangents;
  Cotangents &sums;
  mlir::Block &body;

  llvm::SmallVector<Seed> seeds;
  llvm::SmallVector<GradientTarget> targets;
  bool isStepped = false; ///< whether some result has a rule for single steps only

  bool isReduced(mlir::AffineMap map, unsigned loop) {
    return !map.isFunctionOfDim(loop) && op.getStaticLoopRanges()[loop] != 1;
  }
  bool isReduced(mlir::AffineMap map) {
    return llvm::any_of(llvm::seq(op.getNumLoops()),
                        [&](unsigned loop) { return isReduced(map, loop); });
  }
  bool isProjection(mlir::AffineMap map, mlir::Type type);
  mlir::InFlightDiagnostic fail() { return op->emitOpError() << "has no gradient rule: "; }

  /// A block that becomes the body of a new op over the loops of `op`.
  struct Body {
    mlir::Block block;
    llvm::SmallVector<OpInput> inputs; ///< one per argument
    mlir::IRMapping fromOp;            ///< from the body of `op`
    llvm::SmallVector<mlir::Operation *> ops;

    mlir::OpBuilder getBuilder(mlir::MLIRContext *context) {
      mlir::OpBuilder inside(context); // a block outside of a region has no context
      inside.setInsertionPointToEnd(&block);
      return inside;
    }
  };
  void cloneBody(Body &to);
  mlir::Value addArgument(Body &to, mlir::Value value, mlir::AffineMap map);
  using Combine = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value accumulator,
                                                 mlir::Value value)>;
  mlir::Value finish(Body &from, mlir::Value yielded, mlir::AffineMap map,
                     llvm::ArrayRef<int64_t> ranges, mlir::Type type, mlir::Value sum,
                     Combine combine = nullptr);

  // Seeds.
  llvm::SmallVector<mlir::Value> findAccumulators(mlir::Value value);
  bool choosesOne();
  llvm::LogicalResult addSeed(unsigned result);
  mlir::Value getPointNumber(mlir::ImplicitLocOpBuilder &inside, const Seed &seed);
  void buildTies(Seed &seed);
  void buildFactors(Seed &seed);

  // Targets.
  llvm::LogicalResult addTargets();
  llvm::LogicalResult addCaptured(mlir::Value value);
  void addTarget(mlir::Value value, mlir::AffineMap map, mlir::Value inBody);
  void addSeedsTo(Body &backward, mlir::ImplicitLocOpBuilder &inside, Cotangents &inBody);
  llvm::LogicalResult buildTarget(const GradientTarget &target);

  // A walk of a target's elements: StructuralWalk.cpp.

  /// The loops of an op that walks the elements of a target: first those of the elements,
  /// then those of the op that are left.
  struct Walk {
    static constexpr unsigned gone = ~0u;
    llvm::SmallVector<unsigned> loopOf; ///< new loop of each loop of the op, or `gone`
    llvm::SmallVector<unsigned>
        loopOfDim;                     ///< new loop of each dimension without an own one, or `gone`
    llvm::SmallVector<bool> solved;    ///< for each loop of the op
    llvm::SmallVector<int64_t> ranges; ///< of the new loops
    llvm::SmallVector<mlir::AffineExpr> written; ///< indices of the element

    /// Returns the op's loops as expressions of the new ones, 0 for those that are gone.
    llvm::SmallVector<mlir::AffineExpr> getDims(mlir::Builder &builder) const;
  };
  llvm::SmallVector<DimRead> findReads(mlir::RankedTensorType type,
                                       llvm::ArrayRef<mlir::AffineExpr> indices,
                                       mlir::ValueRange computed);
  std::optional<DimRead> solve(mlir::AffineExpr index, llvm::ArrayRef<bool> taken);
  Walk layOut(const GradientTarget &target);
  class WalkCode;
  mlir::AffineMap walkElements(Body &body, mlir::Value &yielded, const GradientTarget &target,
                               llvm::SmallVectorImpl<int64_t> &ranges);

  // Padding: StructuralPad.cpp.
  std::optional<std::pair<mlir::Value, llvm::SmallVector<int64_t>>> stripPadding(mlir::Value value);
  std::optional<unsigned> findPadded(Body &body, mlir::Value yielded, llvm::ArrayRef<bool> solved);
  bool isWorthPadding(Body &body, mlir::Value yielded, unsigned padded,
                      const GradientTarget &target);
  bool pad(OpInput &input, const GradientTarget &target, const Walk &walk, bool mayGrow);

  // Single steps of a reduction: StructuralSteps.cpp.
  bool takesFewSteps();
  mlir::Value takeSlice(mlir::Value value, mlir::AffineMap &map, llvm::ArrayRef<int64_t> ranges);
  mlir::linalg::GenericOp createStep(int64_t step, mlir::ValueRange accumulators);
  llvm::LogicalResult buildSteps();
};

} // namespace weir::autodiff

#endif // WEIR_LIB_AUTODIFF_STRUCTURAL_H
