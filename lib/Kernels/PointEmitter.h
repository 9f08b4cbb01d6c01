//===- PointEmitter.h - Values of tensors at points -------------*- C++ -*-===//
//
// Computes the element of a tensor, or a vector of neighbouring elements, at indices that
// are affine expressions of the kernel's coordinates. All shapes of kernels share this.
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

/// Facts that a first, discarded emission records for the second one.
struct Survey {
  struct Buffer {
    bool vectorAccess = false, scalarAccess = false, read = false;
  };
  /// Indexed by inputs, then results.
  llvm::SmallVector<Buffer> buffers;
  /// Maps each load, by buffer and address, to the passes over the row that make it.
  llvm::MapVector<std::pair<unsigned, mlir::AffineExpr>, llvm::SmallSetVector<unsigned, 4>> loads;
  /// A value of a function that costs more than a load.
  struct Computed {
    llvm::SmallSetVector<unsigned, 4> passes; ///< over the row, that compute it
    int64_t lanes = 1;                        ///< of the vector that it is, 1 if it is none
  };
  /// By tensor and indices.
  llvm::MapVector<std::pair<mlir::Value, mlir::AffineMap>, Computed> values;
};

/// Copies of elements in the invocation's own memory, one element or vector per trip over a row,
/// so that a later pass or row does not load or compute them again.
///
/// Before any code that gets an element, `add` makes room for its copy. Every trip starts with
/// `setTrip`. Code that gets an added element fills the copy at the current trip until `setFilled`
/// says that every trip has done so; then it reads the copy. Whoever starts another row marks
/// copies of that row's elements as not filled.
template <typename Key> class RowCache {
public:
  struct Copy {
    mlir::Value memory; ///< by trip
    /// By trip: memory of the workgroup that has a vector of the row in place of `memory`, or null.
    llvm::SmallVector<mlir::Value> shared;
    mlir::Value place; ///< of the invocation's vector in `shared`
    bool isFilled = false;
  };

  void add(Key key, mlir::Value memory) { copies[key].memory = memory; }
  void setShared(Key key, llvm::ArrayRef<mlir::Value> shared, mlir::Value place) {
    copies[key].shared.assign(shared.begin(), shared.end());
    copies[key].place = place;
  }
  void setFilled(Key key, bool isFilled) { copies.find(key)->second.isFilled = isFilled; }
  void setTrip(mlir::Value number) { trip = number; }
  mlir::Value getTrip() const { return trip; }
  /// Returns the copy of an added address, or null.
  const Copy *find(Key key) const {
    auto found = copies.find(key);
    return found == copies.end() ? nullptr : &found->second;
  }

private:
  llvm::DenseMap<Key, Copy> copies;
  mlir::Value trip;
};

class PointEmitter {
public:
  PointEmitter(schedule::KernelOp kernel, const KernelDomain &domain, const Profile &profile,
               Survey &survey, const Survey *known);

  const Profile &profile;
  const KernelDomain &domain;
  /// Whether instructions on matrices add the products: neighbours are pairs, of 16 bits, too.
  const bool hasMatrices;
  /// Elements of a vector: two in a contraction of subgroups or by instructions on matrices, which
  /// has other lanes for neighbours, else four; where vectors are free, as many as the shape of the
  /// kernel sets before any code.
  int64_t lanes;
  /// Sets the elements of a vector, where vectors are free.
  void setLanes(int64_t number) {
    if (profile.hasFreeVectors())
      lanes = number;
  }
  schedule::KernelOp kernel;
  mlir::MLIRContext *context;
  mlir::Location loc; ///< of the op that code is emitted for
  /// For each result the tensor that the kernel computes: `getInserted`.
  llvm::SmallVector<mlir::Value> computed;

  /// Gives new code the location of `op`, if there is one, as long as the result lives.
  [[nodiscard]] llvm::SaveAndRestore<mlir::Location> codeFor(mlir::Operation *op) {
    return {loc, op ? op->getLoc() : loc};
  }

  //===--- scopes ---------------------------------------------------------===//
  // Scopes nest. A value goes to the outermost one that knows its coordinates.

  /// Emits where `builder` stands until the scope is popped.
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
  /// The coordinate that numbers the elements of a vector. It never has a value.
  static constexpr unsigned laneOfVector = 0;
  // Coordinates behind those that shapes name.
  static constexpr unsigned firstColumnCoordinate = 24; ///< of a tile
  static constexpr unsigned groupCoordinate = 25;       ///< and those after it: of a stage's group
  static constexpr unsigned firstPlace = groupCoordinate + KernelDomain::maxGroupDims;
  mlir::AffineExpr vectorLane() const { return dim(laneOfVector); }

  /// Emits `trips` repetitions, in order. `body` runs inside a new scope. It gets the repetition's
  /// number and the carried values, and returns the new ones.
  using LoopBody = std::function<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> loop(int64_t trips, mlir::ValueRange carried, LoopBody body);

  //===--- long sums ------------------------------------------------------===//
  // A sum that takes n floats one after the other is off by up to n roundings of its own size, and
  // by about the root of n of them where they are random. So a long sum is made in blocks, each of
  // which is added up from zero: it is off by as much as one of as many terms as a block has and
  // there are blocks. See N. J. Higham, "Accuracy and Stability of Numerical Algorithms", chapter
  // 4 (blocked summation). Their sizes are in Tuning.h.

  /// Whether a sum of `terms` terms is made in blocks if one of up to `max` is not. Other
  /// combinations than sums of floats lose nothing, or as much in any order. An invocation makes
  /// `trips` trips for its sums: where a device ends long loops early, so many are unrolled that
  /// their code has no room for blocks, which repeat it.
  bool isLongSum(llvm::ArrayRef<mlir::Operation *> combiners, int64_t terms, int64_t max,
                 int64_t trips) const;

  /// The blocks of a loop that combines terms with all values that it carries.
  struct SumBlocks {
    int64_t trips = 0; ///< of the loop, that are a block; 0: there are no blocks
    /// Values that a block begins with, one for each that is carried.
    llvm::SmallVector<mlir::Value> neutral;
    /// Value i is combined by number i modulo their number.
    llvm::ArrayRef<mlir::Operation *> combiners;
    bool isNested = true; ///< whether blocks of blocks are added where there are many
  };

  /// Emits code behind a loop's last trip. It gets the carried values and returns new ones.
  using LoopEnd = std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange)>;

  /// Emits a loop as `loop` does, in blocks: what the trips of one make of the neutral values is
  /// combined with the carried ones. `end`, if there is one, takes the terms behind the last trip;
  /// they belong to the last block.
  llvm::SmallVector<mlir::Value> loopInBlocks(int64_t trips, mlir::ValueRange carried,
                                              const SumBlocks &blocks, LoopBody body,
                                              LoopEnd end = nullptr);

  /// Emits `body` in a new scope that runs where `condition` holds. Elsewhere the values are
  /// `otherwise`.
  llvm::SmallVector<mlir::Value> guard(mlir::Value condition, mlir::ValueRange otherwise,
                                       std::function<llvm::SmallVector<mlir::Value>()> body);
  /// Emits `first` where `condition` holds and `second` elsewhere, each in a new scope.
  void branch(mlir::Value condition, llvm::function_ref<void()> first,
              llvm::function_ref<void()> second);

  //===--- values ---------------------------------------------------------===//

  /// Returns the value of an expression without the vector lane.
  mlir::Value expand(mlir::AffineExpr expression);
  mlir::Value indexConstant(int64_t value);

  /// Returns the element of `tensor` at `indices`. If the indices depend on the vector lane,
  /// returns all elements as a vector, or one if they are equal.
  mlir::Value evaluate(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);

  /// Returns the values that a reduction's body combines at a point of its loops.
  llvm::SmallVector<mlir::Value> evaluateReduced(mlir::linalg::GenericOp op,
                                                 llvm::ArrayRef<Combiner> combiners,
                                                 llvm::ArrayRef<mlir::AffineExpr> loops);

  /// Returns a value of the body, which needs no accumulator, at a point of its loops.
  mlir::Value evaluateInBody(mlir::linalg::GenericOp op, mlir::Value value,
                             llvm::ArrayRef<mlir::AffineExpr> loops) {
    return inlineBody(op, loops, value).front();
  }

  /// Returns the values that the body yields at a point of its loops, from `accumulators`.
  llvm::SmallVector<mlir::Value> evaluateStep(mlir::linalg::GenericOp op,
                                              llvm::ArrayRef<mlir::AffineExpr> loops,
                                              llvm::ArrayRef<mlir::Value> accumulators);

  /// Whether `evaluate` would load only whole vectors and uniform elements.
  bool isVectorFriendly(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);

  /// Returns how many elements two places of a tensor of these sizes are apart, if it is the same
  /// wherever they are.
  std::optional<int64_t> getDistance(llvm::ArrayRef<int64_t> sizes,
                                     llvm::ArrayRef<mlir::AffineExpr> from,
                                     llvm::ArrayRef<mlir::AffineExpr> to) const;

  /// Returns the address of the first of `count` neighbours that the indices name by the vector
  /// lane, if `tensor` is an operand where they lie one behind the other, at a multiple of their
  /// number.
  std::optional<mlir::AffineExpr>
  getRun(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices, int64_t count) const;
  /// Loads neighbours that `getRun` finds, as one vector.
  mlir::Value loadRun(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices, int64_t count);
  /// Loads neighbours as `loadRun` does, from the one at `first` of a buffer on.
  mlir::Value loadFrom(unsigned buffer, mlir::AffineExpr first, int64_t count);
  /// Copies neighbours that `getRun` finds to an element of `memory` and those behind it,
  /// asynchronously. Returns the copy's token.
  mlir::Value copyRun(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices, int64_t count,
                      mlir::Value memory, mlir::Value at);
  /// Returns the address of the first of `count` neighbours that an address in elements names by
  /// the vector lane, if it is a multiple of their number.
  std::optional<mlir::AffineExpr> getRun(mlir::AffineExpr address, int64_t count) const;
  /// Copies neighbours as `copyRun` does, from the one at `first` of a buffer on.
  mlir::Value copyFrom(unsigned buffer, mlir::AffineExpr first, int64_t count, mlir::Value memory,
                       mlir::Value at);
  /// Begins to copy a box of an operand from the element `at` on to `slab`, from element `place`
  /// on. The mbarrier of that number counts its bytes.
  void copyTile(mlir::Value tensor, mlir::ValueRange at, llvm::ArrayRef<int64_t> box,
                mlir::Value slab, int64_t place, mlir::Value mbarriers, int64_t number);

  /// Computes the offsets of insertions in the first scope.
  void placeInsertions();

  /// Whether `store` to result number `result` would write one whole vector.
  bool isVectorStore(unsigned result, llvm::ArrayRef<mlir::AffineExpr> indices);

  /// Stores to result number `result` at `indices`.
  void store(unsigned result, mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> indices);
  /// Stores at `address` in the result's buffer, in elements.
  void storeAt(unsigned result, mlir::Value value, mlir::AffineExpr address);

  /// Loads what is in the buffer of result number `result` at `indices` now.
  mlir::Value loadStored(unsigned result, llvm::ArrayRef<mlir::AffineExpr> indices) {
    return loadUncached(kernel.getInputs().size() + result, getAddress(result, indices));
  }

  /// Loads the element at `address` into its copy in the cache, at the current trip.
  void fillCache(unsigned buffer, mlir::AffineExpr address);

  /// Brings what `load` gets at `address` to a level of the caches, 1 or 2.
  void prefetch(unsigned buffer, mlir::AffineExpr address, unsigned level);

  /// Returns `value` as a vector of equal elements, or `value` if it is a vector.
  mlir::Value broadcast(mlir::Value value);
  /// Makes both values vectors if one of them is.
  void match(mlir::Value &lhs, mlir::Value &rhs);
  bool isVector(mlir::Value value) const { return llvm::isa<mlir::VectorType>(value.getType()); }
  mlir::Value extract(mlir::Value vector, int64_t lane);
  /// Repeats `operation` on two other operands.
  mlir::Value combine(mlir::Operation *operation, mlir::Value lhs, mlir::Value rhs);

  /// Combines the elements of a vector, one half with the other, until there is one.
  mlir::Value combineLanes(mlir::Operation *operation, mlir::Value vector);

  /// Returns the indices of an op's operand or result at a point of its loops.
  llvm::SmallVector<mlir::AffineExpr> apply(mlir::AffineMap map,
                                            llvm::ArrayRef<mlir::AffineExpr> loops) const;
  /// Returns the loops of `op` at the domain's point.
  llvm::SmallVector<mlir::AffineExpr> getLoops(mlir::Operation *op,
                                               llvm::ArrayRef<mlir::AffineExpr> point) const;
  /// Returns the row-major digits of `number` in a space of `sizes`.
  llvm::SmallVector<mlir::AffineExpr> delinearize(mlir::AffineExpr number,
                                                  llvm::ArrayRef<int64_t> sizes) const;

  //===--- state ----------------------------------------------------------===//

  /// Emits into `function`, whose argument i is buffer `operands[i]`.
  void setFunction(mlir::gpu::GPUFuncOp function, llvm::ArrayRef<unsigned> operands);
  mlir::gpu::GPUFuncOp getFunction() const { return function; }
  /// Sets the invocations of a workgroup, where they are not the profile's.
  void setWorkgroup(int64_t size) {
    getFunction().setKnownBlockSizeAttr(
        mlir::DenseI32ArrayAttr::get(context, {int32_t(size), 1, 1}));
  }

  /// Lets an operand, or a result by its number behind the operands, be in this memory.
  void setMemory(unsigned buffer, mlir::Value memory) {
    buffers.resize(kernel.getInputs().size() + kernel.getNumResults());
    buffers[buffer] = memory;
  }
  /// Lets an input of the kernel's region, or a result of the kernel, be in memory that has the
  /// group's elements alone: without these dimensions.
  void setOfGroup(mlir::Value tensor, llvm::ArrayRef<int64_t> dims) {
    ofGroup[tensor] = llvm::to_vector(dims);
  }
  /// Lets a result that is in the group's memory be stored in all of its bytes, too.
  void setWhole(unsigned result, mlir::Value memory) { wholes[result] = memory; }
  /// Makes this the emitter of a stage: it computes all workgroups of one group, one after the
  /// other.
  void setStage() { stage = true; }
  bool isStage() const { return stage; }

  /// Forgets all reductions. The next ones are at a point that the current scope knows.
  void startPoint() {
    reduced.clear();
    reducedDepth = depth();
  }
  /// Lets code at the current point read `total` as a reduction's `result`.
  void setReduced(mlir::Value result, mlir::Value total) { reduced[result] = total; }

  /// Loaded elements, by buffer and address.
  RowCache<std::pair<unsigned, mlir::AffineExpr>> cache;
  /// Computed ones, by tensor and indices.
  RowCache<std::pair<mlir::Value, mlir::AffineMap>> computedCache;
  /// Sets the number of the pass over the row that loads are recorded for.
  void setPass(unsigned number) { pass = number; }
  unsigned getPass() const { return pass; }
  /// Returns the facts that the first emission recorded, or null in the first one.
  const Survey *getKnown() const { return known; }
  /// Returns the facts that this emission recorded so far.
  const Survey &getSurvey() const { return survey; }
  /// Lets the second emission have a buffer of elements, never of vectors.
  void keepElements(unsigned buffer) { survey.buffers[buffer].scalarAccess = true; }

  /// Reports an error at `op`. The emission goes on, and its code is discarded.
  mlir::InFlightDiagnostic fail(mlir::Operation *op) {
    isFailed = true;
    return op->emitError();
  }
  bool hasFailed() const { return isFailed; }

  mlir::Type getElementType(mlir::Value tensor) const;
  /// Returns the tensor that is in a buffer.
  mlir::Value getTensor(unsigned buffer) const;
  /// Returns the type of a buffer's memref.
  mlir::MemRefType getBufferType(unsigned buffer) const;

private:
  static constexpr unsigned maxCoordinates = 48;

  mlir::gpu::GPUFuncOp function;
  /// Arguments of the `gpu.func`, by index among inputs, then results.
  llvm::SmallVector<mlir::Value> buffers;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>> ofGroup; ///< `setOfGroup`
  llvm::DenseMap<unsigned, mlir::Value> wholes;                    ///< `setWhole`
  bool stage = false;
  /// Results of reductions at the current point, and the scope they belong to.
  llvm::DenseMap<mlir::Value, mlir::Value> reduced;
  unsigned reducedDepth = 0;
  unsigned pass = 0;
  bool isFailed = false;
  Survey &survey;
  const Survey *known;

  struct Coordinate {
    mlir::Value value;
    unsigned scope = 0;
  };
  struct Scope {
    explicit Scope(mlir::OpBuilder builder) : builder(builder) {}
    mlir::OpBuilder builder;
    bool guarded = false; ///< whether some invocations skip it
    /// Elements by tensor, indices and the lanes that these depend on, or 1.
    llvm::DenseMap<std::tuple<mlir::Value, mlir::AffineMap, int64_t>, mlir::Value> values;
    llvm::DenseMap<mlir::AffineExpr, mlir::Value> expressions;
  };
  std::deque<Scope> scopes; // references to builders survive a push
  unsigned current = 0;     ///< the scope that code goes to
  llvm::SmallVector<Coordinate> coordinates;
  llvm::DenseMap<mlir::Value, unsigned> places; ///< coordinates of insertions' offsets
  llvm::SmallPtrSet<mlir::Operation *, 16> afterReduction;
  /// Values computed from operands with one element per kernel or row whose bytes a result
  /// may take. An invocation that writes nothing must not read them, since no barrier orders
  /// it with the one that writes.
  llvm::DenseSet<mlir::Value> overwritten;

  /// Moves every scope in the op's block before or after the op.
  void placeScopes(mlir::Operation *op, bool after);
  unsigned getScope(mlir::AffineExpr expression) const;
  /// Returns the innermost scope that some invocations skip, or the first one.
  unsigned getGuardedScope() const;
  mlir::AffineExpr simplify(mlir::AffineExpr expression) const;
  mlir::AffineExpr atLane(mlir::AffineExpr expression, int64_t lane) const;
  /// Returns the sizes of a tensor as it lies in the kernel's memory.
  llvm::SmallVector<int64_t> getSizes(mlir::Value tensor) const;
  /// Whether something holds for all that `evaluate` gets elements of for an element of `tensor`,
  /// itself included, and the indices.
  bool allReads(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices,
                llvm::function_ref<bool(mlir::Value read, mlir::AffineMap at)> holds) const;
  /// Whether `evaluate` would read a copy that is filled.
  bool readsCopy(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices) const;
  mlir::AffineExpr linearize(llvm::ArrayRef<int64_t> sizes,
                             llvm::ArrayRef<mlir::AffineExpr> indices) const;
  /// Returns the indices in a tensor of shape `to` of the element that a reshape of it, of
  /// shape `from`, has at `indices`. Neither tensor is empty.
  llvm::SmallVector<mlir::AffineExpr> reshape(llvm::ArrayRef<mlir::AffineExpr> indices,
                                              llvm::ArrayRef<int64_t> from,
                                              llvm::ArrayRef<int64_t> to) const;
  /// Returns the address in a result's buffer of the element of `computed` at `indices`.
  mlir::AffineExpr getAddress(unsigned result, llvm::ArrayRef<mlir::AffineExpr> indices);
  /// Computes a scalar of the kernel's region outside of all bodies.
  mlir::Value computeScalar(mlir::Value scalar);
  /// Returns the address of a vector in the buffer's memref if the lanes of `address` are one: its
  /// number, or its first element where vectors are free.
  std::optional<mlir::AffineExpr> getVectorAddress(unsigned buffer, mlir::AffineExpr address) const;
  mlir::Value loadVector(unsigned buffer, mlir::Value place);
  void storeIn(mlir::Value memory, unsigned result, mlir::Value value, mlir::AffineExpr address);
  void storeVector(mlir::Value memory, unsigned result, mlir::Value vector, mlir::AffineExpr place);
  /// Whether vectors of `type` whose first element is at `first` are stored past the caches: the
  /// result is large, and the stores fill whole lines of the cache, one after the other.
  bool isStreamed(unsigned result, mlir::VectorType type, mlir::AffineExpr first) const;
  std::optional<unsigned> getBuffer(mlir::Value tensor) const;
  mlir::Value load(unsigned buffer, mlir::AffineExpr address);
  mlir::Value loadUncached(unsigned buffer, mlir::AffineExpr address);
  mlir::Value loadScalar(unsigned buffer, mlir::AffineExpr address);
  /// Loads the element at an address that was computed.
  mlir::Value loadElement(unsigned buffer, mlir::Value address);
  /// Returns the values of an expression in the lanes, as a vector of indices.
  mlir::Value expandLanes(mlir::AffineExpr expression);
  /// Converts an element or vector from the type that it is stored in.
  mlir::Value fromStorage(unsigned buffer, mlir::Value value);
  /// Reads the element that `op`, in a body, reads at a point of the loops. `computed` are
  /// its indices.
  mlir::Value gather(mlir::tensor::ExtractOp op, llvm::ArrayRef<mlir::Value> computed,
                     llvm::ArrayRef<mlir::AffineExpr> loops);
  /// Returns the element of a tensor at indices, or its copy in the cache, which it may fill.
  mlir::Value computeOnce(std::pair<mlir::Value, mlir::AffineMap> key);
  mlir::Value computeValue(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);
  llvm::SmallVector<mlir::Value> inlineBody(mlir::linalg::GenericOp op,
                                            llvm::ArrayRef<mlir::AffineExpr> loops,
                                            llvm::ArrayRef<mlir::Value> wanted,
                                            llvm::ArrayRef<mlir::Value> accumulators = {});
};

} // namespace weir

#endif // WEIR_LIB_KERNELS_POINTEMITTER_H
