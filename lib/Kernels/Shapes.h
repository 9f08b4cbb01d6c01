//===- Shapes.h - One emitter per shape of kernel ---------------*- C++ -*-===//

#ifndef WEIR_LIB_KERNELS_SHAPES_H
#define WEIR_LIB_KERNELS_SHAPES_H

#include "PointEmitter.h"

namespace weir {

/// Coordinates that all shapes name alike.
enum Coordinates : unsigned {
  unitCoordinate = 1, ///< of a map kernel; the row of a row kernel
  tripCoordinate,     ///< of the loop over a row
  teamLaneCoordinate, ///< of the invocation among those that share a row
  tileColumnCoordinate,
  tileRowCoordinate,
  tileRestCoordinate,
  packedCoordinate,  ///< of a block of columns that is copied
  partCoordinate,    ///< of a column that is reduced in parts
  productCoordinate, ///< and those after it
};
static_assert(productCoordinate + KernelDomain::maxContractionDims <=
              PointEmitter::firstColumnCoordinate);

/// Returns the number of the workgroup on a grid of up to three axes.
mlir::Value getWorkgroup(PointEmitter &emitter, const std::array<int64_t, 3> &grid);

/// Emits `body` for `groups` workgroups and says how to launch them: one number
/// per workgroup, spread over the axes of the grid.
void emitWorkgroups(PointEmitter &emitter, int64_t groups, EmittedKernel &launch,
                    llvm::function_ref<void(mlir::Value group)> body);

/// Returns the invocations of a workgroup, so many that all units of a device are busy: the
/// profile's, or a multiple of `least` that divides it.
int64_t chooseWorkgroup(int64_t invocations, int64_t least, const Profile &profile);

/// Emits `body` for each of `units`, an invocation each.
void emitUnits(PointEmitter &emitter, int64_t units, EmittedKernel &launch,
               llvm::function_ref<void(mlir::Value unit)> body);

/// Emits `body` for each of `tiles`, a subgroup each, whose invocations have their number in it as
/// `teamLaneCoordinate`.
void emitSubgroups(PointEmitter &emitter, int64_t tiles, EmittedKernel &launch,
                   llvm::function_ref<void(mlir::Value tile)> body);

/// Returns the indices at which an op of the kernel puts `value` at the domain's point.
llvm::SmallVector<mlir::AffineExpr> getResultIndices(PointEmitter &emitter, mlir::Value value,
                                                     llvm::ArrayRef<mlir::AffineExpr> point);

/// Evaluates the results of these numbers at the domain's point, then stores them:
/// nothing is read at the point after the first store, so a result may take the
/// bytes of an operand.
void emitResults(PointEmitter &emitter, llvm::ArrayRef<unsigned> results,
                 llvm::ArrayRef<mlir::AffineExpr> point);

/// Returns the indices of a part of a column: `part` is a result of a `Column` op,
/// `partCoordinate` is the number of the part, and the point has the column.
llvm::SmallVector<mlir::AffineExpr> getPartIndices(PointEmitter &emitter, mlir::Value part,
                                                   llvm::ArrayRef<mlir::AffineExpr> point);

/// Returns the row-major digits of a unit: of `lanes` neighbours of the last dimension, numbered by
/// the vector lane if they are more than one.
llvm::SmallVector<mlir::AffineExpr> getPoint(PointEmitter &emitter, mlir::AffineExpr unit,
                                             llvm::ArrayRef<int64_t> sizes, int64_t lanes);
/// Elements behind the last whole vector of a dimension, computed at once.
struct Rest {
  int64_t begin = 0; ///< the first one
  int64_t lanes = 1;
};
/// Returns the elements of a dimension behind its vectors of `lanes`, in vectors of falling powers
/// of two. Each element is in one vector, so that a result may take the bytes of an operand.
llvm::SmallVector<Rest> getRests(int64_t size, int64_t lanes);

/// Whether an invocation can keep elements of this type in its own memory.
bool isKeepable(mlir::Type element);
/// Allocates memory of the invocation: `count` elements, or vectors of `lanes` of them.
mlir::Value allocatePrivate(PointEmitter &emitter, mlir::Type element, int64_t lanes,
                            int64_t count);

/// Emits `body` for the elements of a rest, which get the index that it is given. What they read is
/// read where this is emitted, not before: others may write it.
void emitRest(PointEmitter &emitter, const Rest &rest,
              llvm::function_ref<void(mlir::AffineExpr index)> body);

/// Returns the elements of a vector in a dimension whose rest is computed as well: the profile's
/// width, or fewer if there are not as many. Needs free vectors.
int64_t getLanesBeforeRest(const Profile &profile, int64_t size);

/// Returns how many neighbours of the last dimension are computed at once, 1 if none: a matter of
/// the sizes and the profile alone. A vector may be of several of the profile's width: up to `max`.
int64_t getLanes(const Profile &profile, llvm::ArrayRef<int64_t> sizes, int64_t max = 1);

/// Returns the elements of a vector of a map, row or column kernel where vectors are not free:
/// four, or eight where a load or store of 128 bits has as many of each tensor of the kernel's
/// size, and there are enough for all invocations that share a row.
int64_t getVectorElements(const KernelDomain &domain, const Profile &profile);
/// Returns `getLanes` of the columns of a domain, with these vectors.
int64_t getColumnLanes(const KernelDomain &domain, const Profile &profile);

/// Returns how many of the profile's vectors one may be of that is carried through a loop: a few
/// where the kernel's body leaves registers for them.
int64_t getMaxVectors(const KernelDomain &domain);

int64_t getProduct(llvm::ArrayRef<int64_t> sizes);

/// The distribution of the rows of a row kernel among invocations. A unit is an element, or
/// some neighbours.
struct RowLayout {
  RowLayout(const KernelDomain &domain, const Profile &profile);

  int64_t columnLanes = 1;          ///< columns of a unit of a row
  llvm::SmallVector<Rest> rests;    ///< columns behind the last unit
  int64_t rowLanes = 1;             ///< neighbouring rows that a team owns
  llvm::SmallVector<Rest> rowRests; ///< of the last dimension of rows, behind its units
  int64_t rows = 0;                 ///< in units of `rowLanes`
  int64_t outerRows = 1;            ///< the product of all dimensions of rows but the last
  int64_t units = 0;                ///< of a row
  int64_t teamSize = 1;             ///< invocations that share a row
  int64_t teams = 1;                ///< of a workgroup
  int64_t workgroup = 1;            ///< invocations of it
  int64_t rowsPerTeam = 1;          ///< the part of a column, where columns are reduced, too
  int64_t fullTrips = 0;            ///< over the row, of all of the team
  int64_t restUnits = 0;            ///< for the first invocations of the team
  int64_t sums = 1;        ///< that an invocation keeps of one reduction, for trips in turn
  int64_t tripsAtOnce = 1; ///< of a loop over the row, whose loads are all on their way at a time
  bool isInterleaved = false; ///< whether neighbours in a workgroup are of different teams

  int64_t getTrips() const { return fullTrips + (restUnits ? 1 : 0); }
};

/// The invocations that share a row.
class RowTeam {
public:
  RowTeam(PointEmitter &emitter, const RowLayout &layout) : emitter(emitter), layout(layout) {}

  /// Numbers the invocations: sets the coordinate of each in its team, and returns the number of
  /// its team in the workgroup.
  mlir::Value number();
  /// Returns the number of the invocation in its team.
  mlir::Value getLane() const { return lane; }
  /// Combines the partial results of a row's invocations, a value for each combiner of the pass;
  /// all get the results. Each row of the team has `barriers` barriers, one for each such pass or
  /// more.
  void reduce(llvm::ArrayRef<mlir::Operation *> combiners,
              llvm::MutableArrayRef<mlir::Value> partials, int64_t barriers);

private:
  PointEmitter &emitter;
  const RowLayout &layout;
  mlir::Value lane, subgroup, subgroupLane;
  /// Memory of the workgroup by pass and number of the reduced value.
  llvm::DenseMap<std::pair<unsigned, size_t>, mlir::Value> teamMemory;

  mlir::Value reduceVector(mlir::Operation *combiner, mlir::Value vector);
  void reduceInterleaved(llvm::ArrayRef<mlir::Operation *> combiners,
                         llvm::MutableArrayRef<mlir::Value> partials, int64_t barriers);
  mlir::Value getTeamMemory(size_t number, int64_t count, mlir::Type type);
  void shareByTeam(int64_t barriers, llvm::function_ref<void()> store);
};

/// Loads of rows that are copied to workgroup memory asynchronously, each row while the one before
/// is computed. There are none where that is not possible, or does not help.
class RowCopies {
public:
  struct Load {
    unsigned buffer = 0;
    mlir::AffineExpr address, first; ///< of a vector, and of its first element
    mlir::Type element;
    unsigned lastPass = 0; ///< that reads it
    /// By trip over a row: whether the vector is in the invocation's registers, which it is loaded
    /// into from memory, since workgroup memory has no room.
    llvm::SmallVector<bool> inRegisters;
    llvm::SmallVector<mlir::Value> memory; ///< of the workgroup, by trip over a row
  };

  /// Chooses the loads, of those that an emission recorded.
  RowCopies(PointEmitter &emitter, const Survey &survey, const RowLayout &layout);

  llvm::ArrayRef<Load> getLoads() const { return loads; }
  /// Whether registers do not hold a row. Then each pass reads it in workgroup memory, and the last
  /// one begins to copy the next row over it.
  bool staysShared() const { return isShared; }
  /// Whether a pass is the last one that reads some of the row.
  bool isLast(unsigned pass) const;
  /// Returns the number of rows that a workgroup owns if there are loads.
  int64_t getRowsPerTeam() const { return rowsPerTeam; }
  /// Makes room in workgroup memory.
  void allocate();
  /// Begins to copy what the invocation reads at the current trip of a row, or of that what no pass
  /// behind `pass` reads.
  void copy(unsigned rowCoordinate, std::optional<unsigned> pass = std::nullopt);
  /// Lets `wait` be for all copies that were begun.
  void closeGroup();
  /// Waits for all copies.
  void wait();
  /// Loads what the invocation has copied at the current trip into the emitter's cache.
  void fetch();

private:
  PointEmitter &emitter;
  const RowLayout &layout;
  llvm::SmallVector<Load> loads;
  int64_t rowsPerTeam = 0;
  bool isShared = false;
  mlir::Value group;

  int64_t getUnits(int64_t trip) const {
    return trip < layout.fullTrips ? layout.teamSize : layout.restUnits;
  }
  /// Returns the bytes of workgroup memory for a load at a trip of all invocations.
  int64_t getBytes(int64_t trip) const;
  bool shareRows(llvm::SmallVector<Load> &found, int64_t bytes) const;
  llvm::SmallVector<Load> findLoads(const Survey &survey) const;
  bool isBoundByFunctions(llvm::ArrayRef<Load> found) const;
  /// Returns the memory of the current trip, and the invocation's place in it.
  mlir::Value getMemory(const Load &load) const;
  mlir::Value getPlace() const;
};

/// Combines the values of a subgroup's invocations, always in the same order; all get the result.
/// `lane` is the number of the invocation in the subgroup. With `lanes`, each so many neighbours
/// combine theirs.
mlir::Value reduceSubgroup(PointEmitter &emitter, mlir::Operation *combiner, mlir::Value partial,
                           mlir::Value lane, int64_t lanes = 0);
/// Combines several values so, at a time, a combiner for each.
void reduceSubgroup(PointEmitter &emitter, llvm::ArrayRef<mlir::Operation *> combiners,
                    llvm::MutableArrayRef<mlir::Value> partials, mlir::Value lane,
                    int64_t lanes = 0);

void emitMap(PointEmitter &emitter, EmittedKernel &launch);
/// Emits a map kernel that transposes an operand by way of workgroup memory, if the kernel is one
/// and the profile shares such memory; returns whether it did.
bool emitTransposedMap(PointEmitter &emitter, EmittedKernel &launch);
void emitRow(PointEmitter &emitter, EmittedKernel &launch);
/// Emits a row kernel that sums the rows which a condition selects, if the kernel is one and
/// vectors are free, or the profile has units; returns whether it did.
bool emitSelectedRows(PointEmitter &emitter, EmittedKernel &launch);
/// Checks that `op`, marked `schedule::scatterAttrName`, is the kernel's result and one that
/// `emitScatter` computes in the bytes of an operand.
mlir::LogicalResult checkScatter(schedule::KernelOp kernel, mlir::linalg::GenericOp op,
                                 const Profile &profile);
/// Emits a row kernel that takes each update of a scatter to the row that it names, if the kernel
/// is one; returns whether it did.
bool emitScatter(PointEmitter &emitter, EmittedKernel &launch);
void emitColumn(PointEmitter &emitter, EmittedKernel &launch);
void emitContraction(PointEmitter &emitter, EmittedKernel &launch);
/// Returns the row-major digits of `number`, 0 for those of which there is one: a count of one is
/// no digit, and fewer digits give simpler access maps.
llvm::SmallVector<mlir::AffineExpr> getDigits(PointEmitter &emitter, mlir::AffineExpr number,
                                              llvm::ArrayRef<int64_t> counts);
/// Whether an operand of a contraction varies with a dimension of the domain.
bool variesWith(const KernelDomain &domain, mlir::OpOperand *operand, int64_t dim);
/// Returns the domain's dimensions in a contraction's result, outermost first.
llvm::SmallVector<int64_t> getResultDims(const KernelDomain &domain, mlir::linalg::GenericOp op);
/// The dimensions of a contraction's domain that a tile's rows and columns walk, and the factors
/// that vary with them.
struct ContractionSides {
  int64_t columnDim = -1, rowDim = -1;
  mlir::OpOperand *rowFactor = nullptr, *columnFactor = nullptr;
  llvm::SmallVector<int64_t> restSizes; ///< the result's other dimensions

  /// Chooses the sides. Columns walk the result's last dimension that only one factor has and that
  /// is enough for a subgroup, or else the longest one. Rows walk such a dimension of the other
  /// factor, where a few elements are enough.
  ContractionSides(const KernelDomain &domain, mlir::linalg::GenericOp op, const Profile &profile);

  /// Returns the point of the domain at a row, a column, indices in the rest and products.
  llvm::SmallVector<mlir::AffineExpr> getPoint(mlir::AffineExpr row, mlir::AffineExpr column,
                                               llvm::ArrayRef<mlir::AffineExpr> rest,
                                               llvm::ArrayRef<mlir::AffineExpr> products) const;
};

/// The tile of a contraction whose workgroup shares slabs of both factors: an invocation owns
/// `rows` times `columns` sums.
struct SlabTile {
  ContractionSides sides;
  int64_t rowThreads = 1, columnThreads = 1; ///< of the workgroup
  int64_t rows = 1, columns = 1;             ///< of an invocation
  int64_t slab = 1;                          ///< products that are shared at once

  int64_t getTileRows() const { return rowThreads * rows; }
  int64_t getTileColumns() const { return columnThreads * columns; }
};
/// Returns the tile of a kernel's only contraction; nothing where its sums are too few to share
/// factors, or the profile has no slabs.
std::optional<SlabTile> chooseSlabTile(const KernelDomain &domain, const Profile &profile);
/// Emits a contraction whose factors workgroups share.
void emitSlabContraction(PointEmitter &emitter, const SlabTile &tile, EmittedKernel &launch);

/// The tile of a contraction whose products instructions on matrices add: a subgroup owns `rows`
/// times `columns` sums.
struct MatrixTile {
  ContractionSides sides;
  int64_t rowSubgroups = 2, columnSubgroups = 2; ///< of the workgroup
  int64_t rows = 1, columns = 1;                 ///< of a subgroup
  int64_t slab = 1;                              ///< products that are shared at once
  mlir::Type type = {};                          ///< of both factors
  /// Whether four subgroups together add products, whose factors instructions read from workgroup
  /// memory: each subgroup has 16 rows of sums.
  bool isGroup = false;
  /// Where tiles of one width would leave most units idle in the last fill: the first column, a
  /// multiple of a tile's columns, from which on tiles have `narrowColumns`. 0: there is none.
  int64_t narrowFrom = 0, narrowColumns = 0;

  /// Returns the number of elements that an invocation brings at once, as many as lie in a line of
  /// a matrix that ldmatrix takes.
  int64_t getRunElements() const { return 128 / type.getIntOrFloatBitWidth(); }
  int64_t getSubgroups() const { return rowSubgroups * columnSubgroups; }
  int64_t getTileRows() const { return rowSubgroups * rows; }
  int64_t getTileColumns() const { return columnSubgroups * columns; }
};
/// Returns the tile of a kernel's only contraction, of 16-bit factors and sums in f32; nothing for
/// others, where its sums are too few, or where the profile has no instructions on matrices.
std::optional<MatrixTile> chooseMatrixTile(const KernelDomain &domain, const Profile &profile);
/// Emits a contraction by instructions on matrices.
void emitMatrixContraction(PointEmitter &emitter, const MatrixTile &tile, EmittedKernel &launch);

/// The tile of a contraction whose products cooperative matrices of subgroups add: a subgroup owns
/// `rowBlocks` times `columnBlocks` blocks of sums, each of the profile's shape.
struct CooperativeTile {
  ContractionSides sides;
  CooperativeShape shape;
  int64_t rowSubgroups = 2, columnSubgroups = 2; ///< of the workgroup
  int64_t rowBlocks = 1, columnBlocks = 1;       ///< of a subgroup
  int64_t slab = 1;                              ///< products that are shared at once

  int64_t getSubgroups() const { return rowSubgroups * columnSubgroups; }
  int64_t getTileRows() const { return rowSubgroups * rowBlocks * shape.rows; }
  int64_t getTileColumns() const { return columnSubgroups * columnBlocks * shape.columns; }
};
/// Returns the tile of a kernel's only contraction, of factors in f16 and sums in f32; nothing for
/// others, where its sums are too few, or where the profile has no cooperative matrices.
std::optional<CooperativeTile> chooseCooperativeTile(const KernelDomain &domain,
                                                     const Profile &profile);
/// Emits a contraction by cooperative matrices.
void emitCooperativeContraction(PointEmitter &emitter, const CooperativeTile &tile,
                                EmittedKernel &launch);
/// Emits `body` where `value` is below `size`, with a coordinate that is known only there, so that
/// nothing that depends on it is read elsewhere.
void guardInside(PointEmitter &emitter, unsigned coordinate, mlir::AffineExpr value, int64_t size,
                 llvm::function_ref<void(mlir::AffineExpr)> body);
/// Returns a factor of a contraction at these indices of its tensor, in the type of the sums.
mlir::Value evaluateFactor(PointEmitter &emitter, mlir::OpOperand *factor,
                           llvm::ArrayRef<mlir::AffineExpr> indices);
/// Computes and stores the kernel's results at a point from the contractions' sums there, but for
/// those that `storeBlockRow` stores.
void storeSums(PointEmitter &emitter, llvm::ArrayRef<mlir::Value> sums,
               llvm::ArrayRef<mlir::AffineExpr> point);
/// Emits a contraction for a device of one invocation with free vectors.
void emitTileContraction(PointEmitter &emitter, EmittedKernel &launch);
void emitSequence(PointEmitter &emitter, EmittedKernel &launch);

/// Creates the function of a kernel, without code.
mlir::gpu::GPUFuncOp createKernelFunction(mlir::OpBuilder &builder, schedule::KernelOp kernel,
                                          llvm::StringRef name, llvm::ArrayRef<mlir::Type> types,
                                          const Profile &profile);
/// Emits the code of the kernel's shape.
void emitShape(PointEmitter &emitter, EmittedKernel &launch);
/// Emits a kernel of stages as `emitKernel` does the others.
mlir::FailureOr<EmittedKernel> emitStages(schedule::KernelOp kernel, mlir::OpBuilder &builder,
                                          llvm::StringRef name, const Profile &profile);

/// Emits the elements around slices that are inserted into splats. The number of
/// invocations must be known.
void emitSurroundings(PointEmitter &emitter, const EmittedKernel &launch);

} // namespace weir

#endif // WEIR_LIB_KERNELS_SHAPES_H
