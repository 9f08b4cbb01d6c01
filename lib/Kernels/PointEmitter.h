//===- PointEmitter.h - Values of tensors at points -------------*- C++ -*-===//
//
// What the shapes of kernels share: code that computes the element, or a vector of
// neighbouring elements, of a tensor at indices given as affine expressions of the
// kernel's coordinates.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_KERNELS_POINTEMITTER_H
#define WEIR_LIB_KERNELS_POINTEMITTER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "weir/Kernels/Domain.h"
#include "weir/Kernels/Emitter.h"

#include "llvm/Support/SaveAndRestore.h"

#include <deque>
#include <functional>

namespace weir {

/// What a first, discarded emission learns for the second.
struct Survey {
  struct Buffer {
    bool vectorAccess = false, scalarStore = false, read = false;
  };
  /// By index among inputs, then results.
  llvm::SmallVector<Buffer> buffers;
  /// For each load, by buffer and address: the passes over the row that make it.
  llvm::MapVector<std::pair<unsigned, mlir::AffineExpr>, llvm::SmallSetVector<unsigned, 4>> loads;
};

class PointEmitter {
public:
  PointEmitter(schedule::KernelOp kernel, const KernelDomain &domain, const Profile &profile,
               Survey &survey, const Survey *known);

  const Profile &profile;
  const KernelDomain &domain;
  /// Elements of a vector: two in a contraction, which has other lanes for
  /// neighbours, else four.
  const int64_t lanes;
  schedule::KernelOp kernel;
  mlir::gpu::GPUFuncOp function;
  mlir::MLIRContext *context;
  mlir::Location loc; ///< of the op that code is emitted for
  /// What the kernel computes for each result: `getInserted`.
  llvm::SmallVector<mlir::Value> computed;

  /// Code is for `op`, if there is one, as long as the result lives.
  [[nodiscard]] llvm::SaveAndRestore<mlir::Location> codeFor(mlir::Operation *op) {
    return {loc, op ? op->getLoc() : loc};
  }

  //===--- scopes ---------------------------------------------------------===//
  // Code nests; a value goes to the outermost scope that knows its coordinates.

  /// Emits into `builder`'s place until the scope is popped.
  void pushScope(mlir::OpBuilder builder);
  void popScope();
  mlir::OpBuilder &builder() { return scopes[current].builder; }
  unsigned depth() const { return scopes.size() - 1; }

  /// Declares a coordinate of the innermost scope and returns its expression.
  /// The same number may be declared again once its scope is gone.
  mlir::AffineExpr setCoordinate(unsigned number, mlir::Value value);
  mlir::AffineExpr dim(unsigned number) const { return mlir::getAffineDimExpr(number, context); }
  mlir::AffineExpr constant(int64_t value) const {
    return mlir::getAffineConstantExpr(value, context);
  }
  /// The coordinate that tells a vector's elements apart; never a value.
  static constexpr unsigned laneOfVector = 0;
  mlir::AffineExpr vectorLane() const { return dim(laneOfVector); }

  /// Emits `trips` repetitions, in order, never more in one loop than the
  /// profile allows. `body` gets the repetition's number and the carried
  /// values, runs inside a new scope, and returns the carried values.
  using LoopBody = std::function<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> loop(int64_t trips, mlir::ValueRange carried, LoopBody body);

  /// Emits `body` in a new scope where `condition` holds; elsewhere the values
  /// are `otherwise`.
  llvm::SmallVector<mlir::Value> guard(mlir::Value condition, mlir::ValueRange otherwise,
                                       std::function<llvm::SmallVector<mlir::Value>()> body);

  //===--- values ---------------------------------------------------------===//

  /// The value of an expression without the vector lane.
  mlir::Value expand(mlir::AffineExpr expression);
  mlir::Value indexConstant(int64_t value);

  /// The element of `tensor` at `indices`; all of them, as a vector, when the
  /// indices depend on the vector lane (or one, when the value doesn't).
  mlir::Value evaluate(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);

  /// The values that a reduction's body combines at a point of its loops.
  llvm::SmallVector<mlir::Value> evaluateReduced(mlir::linalg::GenericOp op,
                                                 llvm::ArrayRef<Combiner> combiners,
                                                 llvm::ArrayRef<mlir::AffineExpr> loops);

  /// What the body yields at a point of its loops, from `accumulators`.
  llvm::SmallVector<mlir::Value> evaluateStep(mlir::linalg::GenericOp op,
                                              llvm::ArrayRef<mlir::AffineExpr> loops,
                                              llvm::ArrayRef<mlir::Value> accumulators);

  /// Whether all that `evaluate` loads would be whole vectors or uniform.
  bool isVectorFriendly(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);

  /// Computes where insertions put what they insert, in the first scope.
  void placeInsertions();

  /// Whether `store` to result number `result` would be of one whole vector.
  bool isVectorStore(unsigned result, llvm::ArrayRef<mlir::AffineExpr> indices);

  /// Stores to result number `result` at `indices`.
  void store(unsigned result, mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> indices) {
    storeAt(result, value, getAddress(result, indices));
  }
  /// The same at a place in the result's buffer, in elements.
  void storeAt(unsigned result, mlir::Value value, mlir::AffineExpr address);

  /// Copies what is at `address` to the cache of it, at the current trip.
  void fillCache(unsigned buffer, mlir::AffineExpr address);

  /// `value` as a vector of equal elements, or as it is when it is one.
  mlir::Value broadcast(mlir::Value value);
  /// Makes both vectors where one is.
  void match(mlir::Value &lhs, mlir::Value &rhs);
  bool isVector(mlir::Value value) const { return llvm::isa<mlir::VectorType>(value.getType()); }
  mlir::Value extract(mlir::Value vector, int64_t lane);
  /// `operation` applied to two other operands.
  mlir::Value combine(mlir::Operation *operation, mlir::Value lhs, mlir::Value rhs);

  /// Indices of an op's operand or result at a point of its loops.
  llvm::SmallVector<mlir::AffineExpr> apply(mlir::AffineMap map,
                                            llvm::ArrayRef<mlir::AffineExpr> loops) const;
  /// The loops of `op` at the domain's point.
  llvm::SmallVector<mlir::AffineExpr> getLoops(mlir::Operation *op,
                                               llvm::ArrayRef<mlir::AffineExpr> point) const;
  /// Row-major digits of `number` in a space of `sizes`.
  llvm::SmallVector<mlir::AffineExpr> delinearize(mlir::AffineExpr number,
                                                  llvm::ArrayRef<int64_t> sizes) const;

  //===--- state ----------------------------------------------------------===//

  /// Arguments of the `gpu.func`, by index among inputs, then results.
  llvm::SmallVector<mlir::Value> buffers;
  /// Results of reductions at the current point, and the scope they belong to.
  llvm::DenseMap<mlir::Value, mlir::Value> reduced;
  unsigned reducedDepth = 0;
  /// Copies of what is loaded, one element or vector per trip, in the
  /// invocation's own memory; `trip` is the number of the current one.
  struct Cache {
    mlir::Value memory;
    bool filled = false;
  };
  llvm::DenseMap<std::pair<unsigned, mlir::AffineExpr>, Cache> caches;
  mlir::Value trip;
  unsigned pass = 0; ///< the pass over the row that is being emitted
  bool failed = false;

  Survey &survey;
  const Survey *known; ///< of the first emission, in the second

  mlir::Type getElementType(mlir::Value tensor) const;
  /// The type of a buffer's memref.
  mlir::MemRefType getBufferType(unsigned buffer) const;

private:
  struct Coordinate {
    mlir::Value value;
    unsigned scope = 0;
  };
  struct Scope {
    explicit Scope(mlir::OpBuilder builder) : builder(builder) {}
    mlir::OpBuilder builder;
    bool guarded = false; ///< not all invocations are here
    llvm::DenseMap<std::pair<mlir::Value, mlir::AffineMap>, mlir::Value> values;
    llvm::DenseMap<mlir::AffineExpr, mlir::Value> expressions;
  };
  std::deque<Scope> scopes; // references to builders survive a push
  unsigned current = 0;     ///< the scope that code goes to
  llvm::SmallVector<Coordinate> coordinates;
  llvm::DenseMap<mlir::Value, unsigned> places; ///< coordinates of insertions' offsets
  llvm::SmallPtrSet<mlir::Operation *, 16> afterReduction;
  /// What is made of operands of one element, of the kernel or of a row, that a result
  /// may be written over.
  /// An invocation that has nothing to write must not read them: nothing would
  /// order it with the one that writes.
  llvm::DenseSet<mlir::Value> overwritten;

  /// Places every scope of the op's block before or after it.
  void placeScopes(mlir::Operation *op, bool after);
  unsigned getScope(mlir::AffineExpr expression) const;
  unsigned getGuardedScope() const;
  mlir::AffineExpr simplify(mlir::AffineExpr expression) const;
  mlir::AffineExpr atLane(mlir::AffineExpr expression, int64_t lane) const;
  mlir::AffineExpr linearize(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices) const;
  /// Where in a tensor of shape `to` the element at `indices` of a reshape of it, of shape
  /// `from`, is; neither is empty.
  llvm::SmallVector<mlir::AffineExpr> reshape(llvm::ArrayRef<mlir::AffineExpr> indices,
                                              llvm::ArrayRef<int64_t> from,
                                              llvm::ArrayRef<int64_t> to) const;
  /// Where in a result's buffer the element of `computed` at `indices` goes.
  mlir::AffineExpr getAddress(unsigned result, llvm::ArrayRef<mlir::AffineExpr> indices);
  /// A scalar of the kernel's region, outside of all bodies.
  mlir::Value computeScalar(mlir::Value scalar);
  /// The vector's number when the lanes of `address` are one aligned vector.
  std::optional<mlir::AffineExpr> getVectorAddress(unsigned buffer, mlir::AffineExpr address) const;
  std::optional<unsigned> getBuffer(mlir::Value tensor) const;
  mlir::Value load(unsigned buffer, mlir::AffineExpr address);
  mlir::Value loadUncached(unsigned buffer, mlir::AffineExpr address);
  mlir::Value loadScalar(unsigned buffer, mlir::AffineExpr address);
  /// The element at an address that no coordinates name.
  mlir::Value loadElement(unsigned buffer, mlir::Value address);
  mlir::Value fromStorage(unsigned buffer, mlir::Value value);
  /// What `op`, in a body, reads at a point of the loops; `computed` are its indices.
  mlir::Value gather(mlir::tensor::ExtractOp op, llvm::ArrayRef<mlir::Value> computed,
                     llvm::ArrayRef<mlir::AffineExpr> loops);
  mlir::Value computeValue(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);
  llvm::SmallVector<mlir::Value> inlineBody(mlir::linalg::GenericOp op,
                                            llvm::ArrayRef<mlir::AffineExpr> loops,
                                            llvm::ArrayRef<mlir::Value> wanted,
                                            llvm::ArrayRef<mlir::Value> accumulators = {});
};

} // namespace weir

#endif // WEIR_LIB_KERNELS_POINTEMITTER_H
