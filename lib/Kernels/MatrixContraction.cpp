//===- MatrixContraction.cpp - Sums of products by instructions on matrices ===//
//
// A workgroup of four subgroups owns a tile of the result, a subgroup a quarter of it. The summed
// dimensions are walked in slabs, as in SlabContraction.cpp, but a slab keeps the factors'
// elements as they are, and there are two of them in workgroup memory: while one is added up, the
// next is on its way to the other. So there is one barrier a slab:
//
//   store slab 0
//   for each slab:   barrier, load the next, add products, store the next
//
// Subgroups take fragments of a slab by ldmatrix and add 16 products of 16 x 8 sums by one mma, or
// 8 of tf32. A side of a slab lies in workgroup memory as its factor lies in the operand: with
// neighbouring products, or neighbouring rows (or columns), side by side; ldmatrix transposes one
// of the two. Eight elements behind each line of a slab spread eight lines, which are read at once,
// over all banks.
//
// Where the profile asks for tf32, factors in f32 are rounded to it on their way to workgroup
// memory.
//
// A slab that is not whole comes first, filled up with products of zeros. So products are added
// in order, as far as the instruction does so.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

/// Rows and columns of one instruction, lines of a matrix that ldmatrix takes, and the bytes of
/// such a line, which are also those of a run that an invocation brings at once.
static constexpr int64_t mmaRows = 16, mmaColumns = 8, matrixLines = 8, lineBytes = 16;
/// Lanes along the products of a fragment.
static constexpr int64_t productLanes = 4;

namespace {
enum MatrixCoordinates : unsigned {
  pairOfSlabsCoordinate = productCoordinate,
  laneCoordinate, ///< of the subgroup
  subgroupRowCoordinate,
  subgroupColumnCoordinate,
  rowBlockCoordinate,
  insideBlockRowCoordinate,
  insideColumnCoordinate,
  rowLineCoordinate, ///< of a slab: of the invocation's first share, and the place in the line
  rowRunCoordinate,
  columnLineCoordinate,
  columnRunCoordinate,
};
} // namespace

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// Returns the type of both factors where instructions on matrices add them to sums in f32: floats
/// of 16 bits, or f32 that may be rounded; else null.
static Type getFactorType(linalg::GenericOp op, const Profile &profile) {
  Type lhs = getElementTypeOrSelf(op.getDpsInputOperand(0)->get().getType()),
       rhs = getElementTypeOrSelf(op.getDpsInputOperand(1)->get().getType());
  bool isKnown =
      lhs.isF16() || lhs.isBF16() || (lhs.isF32() && profile.precision == Precision::Tf32);
  bool isSum = getElementTypeOrSelf(op->getResult(0).getType()).isF32();
  return isKnown && lhs == rhs && isSum ? lhs : Type();
}

std::optional<MatrixTile> weir::chooseMatrixTile(const KernelDomain &domain,
                                                 const Profile &profile) {
  // More workgroups than that keep a device busy; fewer than the least leave most of it idle.
  constexpr int64_t manyWorkgroups = 64, fewWorkgroups = 16;
  constexpr int64_t subgroupSize = 32;
  if (profile.matrixTile == 0 || profile.vectorWidth == 1 || profile.subgroupSize != subgroupSize ||
      domain.getShape() != KernelShape::Contraction || domain.getContractions().size() != 1 ||
      domain.getBlocks())
    return std::nullopt;
  linalg::GenericOp op = domain.getContractions().front();
  MatrixTile tile{ContractionSides(domain, op, profile)};
  Type type = getFactorType(op, profile);
  if (!type)
    return std::nullopt;
  tile.slab = type.isF32() ? profile.matrixSlab / 2 : profile.matrixSlab; // the same bytes
  int64_t runElements = lineBytes * 8 / type.getIntOrFloatBitWidth();
  if (getProduct(domain.getColumnSizes()) < 2 * tile.slab)
    return std::nullopt;
  int64_t batches = getProduct(tile.sides.restSizes);
  int64_t allRows = domain.getSizes()[tile.sides.rowDim],
          allColumns = domain.getSizes()[tile.sides.columnDim];
  std::optional<MatrixTile> best;
  // From the largest down, until there are many workgroups.
  for (auto [rows, columns] : {std::pair(2, 2), std::pair(1, 2), std::pair(1, 1)}) {
    tile.rows = profile.matrixTile / 2 * rows;
    tile.columns = profile.matrixTile / 2 * columns;
    int64_t height = tile.getTileRows(), width = tile.getTileColumns();
    int64_t shared = runElements * tile.getSubgroups() * profile.subgroupSize;
    if (height * tile.slab % shared != 0 || width * tile.slab % shared != 0)
      continue;
    int64_t tiles =
        batches * llvm::divideCeil(allRows, height) * llvm::divideCeil(allColumns, width);
    // Half of a tile behind the end is too much.
    if (tiles < fewWorkgroups || 2 * batches * allRows * allColumns < tiles * height * width)
      continue;
    best = tile;
    if (tiles >= manyWorkgroups)
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// The emitter
//===----------------------------------------------------------------------===//

namespace {
class MatrixContraction {
public:
  MatrixContraction(PointEmitter &emitter, const MatrixTile &tile)
      : emitter(emitter), tile(tile), sides(tile.sides),
        op(emitter.domain.getContractions().front()), sizes(emitter.domain.getSizes()),
        products(getProduct(emitter.domain.getColumnSizes())),
        type(getFactorType(op, emitter.profile)),
        runElements(lineBytes * 8 / type.getIntOrFloatBitWidth()), mmaProducts(2 * runElements),
        threads(tile.getSubgroups() * emitter.profile.subgroupSize) {
    ofRows.factor = sides.rowFactor;
    ofRows.isOfRows = true;
    ofRows.elements = tile.getTileRows();
    ofRows.all = sizes[sides.rowDim];
    ofColumns.factor = sides.columnFactor;
    ofColumns.elements = tile.getTileColumns();
    ofColumns.all = sizes[sides.columnDim];
  }
  void run(EmittedKernel &launch);

private:
  /// A factor's part of a tile.
  struct Side {
    OpOperand *factor = nullptr;
    bool isOfRows = false;
    int64_t elements = 0;           ///< rows or columns of the tile
    int64_t all = 0;                ///< rows or columns of the result
    AffineExpr tileNumber;          ///< of the tile among those along the side
    std::array<Value, 2> slabs;     ///< in workgroup memory, used in turn
    bool hasProductsInLines = true; ///< whether neighbours of a line are products, not elements
    int64_t vector = 1;             ///< neighbours that are brought at once
    /// Of each share: the number of its first element in the tile, the same among all, and its
    /// first product in the slab; in vectors along the lines.
    struct Share {
      AffineExpr element, ofAll, product;
    };
    SmallVector<Share> shares;
  };
  /// Sums of a subgroup, by blocks of 16 x 8.
  using Sums = SmallVector<Value>;

  PointEmitter &emitter;
  const MatrixTile &tile;
  const ContractionSides &sides;
  linalg::GenericOp op;
  ArrayRef<int64_t> sizes;
  int64_t products;
  Type type;
  int64_t runElements, mmaProducts; ///< of a line, and of one instruction
  int64_t threads;
  Side ofRows, ofColumns;
  SmallVector<AffineExpr> rest;
  AffineExpr thread, lane, subgroupRow, subgroupColumn;

  int64_t countRowBlocks() const { return tile.rows / mmaRows; }
  int64_t countColumnBlocks() const { return tile.columns / mmaColumns; }
  int64_t getStride(const Side &side) const {
    return side.hasProductsInLines ? tile.slab + runElements : side.elements + matrixLines;
  }
  AffineExpr getPlace(const Side &side, AffineExpr element, AffineExpr product) const {
    return side.hasProductsInLines ? element * getStride(side) + product
                                   : product * getStride(side) + element;
  }
  SmallVector<AffineExpr> getProducts(AffineExpr number, int64_t vector) const;
  SmallVector<AffineExpr> getIndices(const Side &side, AffineExpr element,
                                     ArrayRef<AffineExpr> products) const;
  bool isWhole(const Side &side, AffineExpr element, ArrayRef<AffineExpr> products,
               int64_t vector) const;
  void chooseLines(Side &side);
  void chooseShares(Side &side);
  void allocate(Side &side);
  Value loadShare(const Side &side, const Side::Share &share, AffineExpr firstProduct,
                  int64_t count);
  Value round(Value value);
  void storeShare(const Side &side, const Side::Share &share, Value value, unsigned slab);
  SmallVector<Value> load(AffineExpr firstProduct, int64_t count);
  void store(ArrayRef<Value> loaded, AffineExpr firstProduct, int64_t count, unsigned slab);
  VectorType getFragmentType(int64_t registers) const;
  Value takeWords(const Side &side, unsigned slab, AffineExpr element, int64_t product);
  Value takeFragment(const Side &side, unsigned slab, AffineExpr element, int64_t product);
  Sums addProducts(unsigned slab, int64_t count, ValueRange sums);
  Sums sumProducts();
  Value getSum(ArrayRef<Value> sums, Value block, int64_t columnBlock, int64_t half);
  void storeBlocks(int64_t columnBlock, AffineExpr column, int64_t element, ArrayRef<Value> sums);
  void emitTile(Value number);
  void barrier() { gpu::BarrierOp::create(emitter.builder(), emitter.loc); }
};
} // namespace

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Returns the summed coordinates of a product, or of a vector of them.
SmallVector<AffineExpr> MatrixContraction::getProducts(AffineExpr number, int64_t vector) const {
  SmallVector<int64_t> counts(emitter.domain.getColumnSizes());
  counts.back() /= vector;
  SmallVector<AffineExpr> at = emitter.delinearize(number, counts);
  if (vector > 1)
    at.back() = at.back() * vector + emitter.vectorLane();
  return at;
}

SmallVector<AffineExpr> MatrixContraction::getIndices(const Side &side, AffineExpr element,
                                                      ArrayRef<AffineExpr> products) const {
  AffineExpr none = emitter.constant(0);
  SmallVector<AffineExpr> point = sides.getPoint(side.isOfRows ? element : none,
                                                 side.isOfRows ? none : element, rest, products);
  return emitter.apply(getAccessMap(op, side.factor), emitter.getLoops(op, point));
}

/// Whether neighbours lie in memory as a vector: a run of an operand's elements, or a pair that is
/// computed from such.
bool MatrixContraction::isWhole(const Side &side, AffineExpr element, ArrayRef<AffineExpr> products,
                                int64_t vector) const {
  SmallVector<AffineExpr> indices = getIndices(side, element, products);
  if (vector == runElements)
    return emitter.getRun(side.factor->get(), indices, vector).has_value();
  return emitter.isVectorFriendly(side.factor->get(), indices);
}

/// Chooses what lies side by side in the lines of a slab, and how many of it are brought at once.
void MatrixContraction::chooseLines(Side &side) {
  AffineExpr first = side.tileNumber * side.elements, lane = emitter.vectorLane();
  AffineExpr any = emitter.dim(pairOfSlabsCoordinate);
  int64_t innermost = emitter.domain.getColumnSizes().back();
  for (int64_t vector : {runElements, emitter.lanes}) {
    side.vector = vector;
    side.hasProductsInLines = true;
    if (innermost % vector == 0 && isWhole(side, first, getProducts(any, vector), vector))
      return;
    side.hasProductsInLines = false;
    if (side.all % vector == 0 && isWhole(side, first + lane, getProducts(any, 1), vector))
      return;
  }
  // Neighbours of the last index that is walked are neighbours in memory, if any are.
  side.vector = 1;
  AffineMap map = getAccessMap(op, side.factor);
  side.hasProductsInLines = false;
  for (auto [loop, dim] : llvm::enumerate(emitter.domain.getDims(op)))
    side.hasProductsInLines |= dim >= int64_t(emitter.domain.getNumRows()) &&
                               map.getResults().back().isFunctionOfDim(loop);
}

/// Returns the line of a slab that is number `turn` to be stored, in lines of `runs` runs: those
/// that eight invocations store at once are in different banks.
static AffineExpr getLine(AffineExpr turn, int64_t runs) {
  constexpr int64_t atOnce = 8;
  if (runs >= atOnce || atOnce % runs != 0)
    return turn;
  int64_t lines = atOnce / runs;
  return turn % lines * runs + turn.floorDiv(lines) % runs + turn.floorDiv(atOnce) * atOnce;
}

/// Chooses what the invocation brings of a factor.
void MatrixContraction::chooseShares(Side &side) {
  chooseLines(side);
  bool ofProducts = side.hasProductsInLines;
  int64_t inElements = ofProducts ? 1 : side.vector, inProducts = ofProducts ? side.vector : 1;
  int64_t count = side.elements * tile.slab / side.vector / threads;
  int64_t inner = ofProducts ? tile.slab / inProducts : side.elements / inElements;
  assert(threads % inner == 0 && "an invocation's shares are at one place of their lines");
  auto name = [&](unsigned ofRows, unsigned ofColumns, AffineExpr value) {
    return emitter.setCoordinate(side.isOfRows ? ofRows : ofColumns, emitter.expand(value));
  };
  AffineExpr firstLine = thread.floorDiv(inner);
  if (ofProducts)
    firstLine = getLine(firstLine, inner);
  firstLine = name(rowLineCoordinate, columnLineCoordinate, firstLine);
  AffineExpr run = name(rowRunCoordinate, columnRunCoordinate, thread % inner);
  side.shares.clear();
  for (int64_t i = 0; i < count; ++i) {
    AffineExpr line = firstLine + i * (threads / inner);
    Side::Share share;
    share.element = ofProducts ? line : run;
    share.product = ofProducts ? run : line;
    share.ofAll = side.tileNumber * (side.elements / inElements) + share.element;
    if (side.all % side.elements != 0) // an element that is there, in place of one that is not
      share.ofAll = share.ofAll % (side.all / inElements);
    side.shares.push_back(share);
  }
}

void MatrixContraction::allocate(Side &side) {
  int64_t lines = side.hasProductsInLines ? side.elements : tile.slab;
  auto shared =
      MemRefType::get({lines * getStride(side)}, type, MemRefLayoutAttrInterface{},
                      gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup));
  for (Value &slab : side.slabs)
    slab = emitter.getFunction().addWorkgroupAttribution(shared, emitter.loc);
}

/// Loads a share of a slab that has `count` products; others are zeros.
Value MatrixContraction::loadShare(const Side &side, const Side::Share &share,
                                   AffineExpr firstProduct, int64_t count) {
  OpBuilder &b = emitter.builder();
  int64_t vector = side.hasProductsInLines ? side.vector : 1;
  bool isPartial = count < tile.slab;
  AffineExpr product = share.product;
  if (isPartial) // a product that is there, in place of one that is not
    product = product % (count / vector);
  SmallVector<AffineExpr> at = getProducts(firstProduct.floorDiv(vector) + product, vector);
  AffineExpr element = share.ofAll;
  if (!side.hasProductsInLines && side.vector > 1)
    element = element * side.vector + emitter.vectorLane();
  SmallVector<AffineExpr> indices = getIndices(side, element, at);
  Value value;
  if (side.vector == runElements) {
    value = emitter.loadRun(side.factor->get(), indices, runElements);
  } else {
    value = emitter.evaluate(side.factor->get(), indices);
    if (side.vector > 1)
      value = emitter.broadcast(value);
  }
  if (!isPartial)
    return value;
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(value.getType()));
  Value isThere =
      arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult,
                            emitter.expand(share.product), emitter.indexConstant(count / vector));
  return arith::SelectOp::create(b, emitter.loc, isThere, value, zero);
}

/// Rounds f32 to tf32; other values stay.
Value MatrixContraction::round(Value value) {
  OpBuilder &b = emitter.builder();
  if (!type.isF32())
    return value;
  if (!emitter.isVector(value)) {
    Value word = NVVM::ConvertFloatToTF32Op::create(b, emitter.loc, b.getI32Type(), value,
                                                    NVVM::FPRoundingMode::RNA);
    return arith::BitcastOp::create(b, emitter.loc, type, word);
  }
  auto vector = cast<VectorType>(value.getType());
  SmallVector<Value> elements;
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    elements.push_back(round(emitter.extract(value, i)));
  return vector::FromElementsOp::create(b, emitter.loc, vector, elements);
}

void MatrixContraction::storeShare(const Side &side, const Side::Share &share, Value value,
                                   unsigned slab) {
  value = round(value);
  OpBuilder &b = emitter.builder();
  bool ofProducts = side.hasProductsInLines;
  Value at = emitter.expand(getPlace(side, share.element * (ofProducts ? 1 : side.vector),
                                     share.product * (ofProducts ? side.vector : 1)));
  if (side.vector == 1) {
    memref::StoreOp::create(b, emitter.loc, value, side.slabs[slab], at);
    return;
  }
  llvm::Align alignment(side.vector * type.getIntOrFloatBitWidth() / 8);
  vector::StoreOp::create(b, emitter.loc, value, side.slabs[slab], at, /*nontemporal=*/false,
                          alignment);
}

/// Loads the invocation's shares of a slab of `count` products, as far as they are whole runs:
/// others would take too many registers until they are stored.
SmallVector<Value> MatrixContraction::load(AffineExpr firstProduct, int64_t count) {
  SmallVector<Value> loaded;
  for (const Side *side : {&ofRows, &ofColumns})
    for (const Side::Share &share : side->shares)
      if (side->vector == runElements)
        loaded.push_back(loadShare(*side, share, firstProduct, count));
  return loaded;
}

/// Stores what was loaded, and what was not loaded yet, in workgroup memory.
void MatrixContraction::store(ArrayRef<Value> loaded, AffineExpr firstProduct, int64_t count,
                              unsigned slab) {
  for (const Side *side : {&ofRows, &ofColumns})
    for (const Side::Share &share : side->shares) {
      Value value;
      if (side->vector == runElements) {
        value = loaded.front();
        loaded = loaded.drop_front();
      } else {
        value = loadShare(*side, share, firstProduct, count);
      }
      storeShare(*side, share, value, slab);
    }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Returns the type of a fragment of as many registers, which have 32 bits each.
VectorType MatrixContraction::getFragmentType(int64_t registers) const {
  return VectorType::get({registers, runElements / productLanes}, type);
}

/// Takes a fragment as `takeFragment` does, register by register, of f32 with neighbouring elements
/// side by side: ldmatrix transposes no words.
Value MatrixContraction::takeWords(const Side &side, unsigned slab, AffineExpr element,
                                   int64_t product) {
  OpBuilder &b = emitter.builder();
  Value fragment = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(getFragmentType(4)));
  for (int64_t i = 0; i < 4; ++i) {
    int64_t second = i % 2, upper = i / 2;
    AffineExpr ofElements =
        element + lane.floorDiv(productLanes) + (side.isOfRows ? second : upper) * matrixLines;
    AffineExpr ofProducts =
        lane % productLanes + (product + (side.isOfRows ? upper : second) * productLanes);
    Value word = memref::LoadOp::create(b, emitter.loc, side.slabs[slab],
                                        emitter.expand(getPlace(side, ofElements, ofProducts)));
    fragment = vector::InsertOp::create(b, emitter.loc, word, fragment, ArrayRef<int64_t>{i, 0});
  }
  return fragment;
}

/// Takes a fragment of an instruction's products by 16 rows, or by two blocks of columns, from a
/// slab.
Value MatrixContraction::takeFragment(const Side &side, unsigned slab, AffineExpr element,
                                      int64_t product) {
  if (type.isF32() && !side.hasProductsInLines)
    return takeWords(side, slab, element, product);
  // Each lane names one line of the four matrices of eight lines that are taken at once. Of the
  // rows' factor the second matrix has other rows, of the columns' other products.
  AffineExpr inMatrix = lane % matrixLines, upper = lane.floorDiv(2 * matrixLines),
             second = lane.floorDiv(matrixLines) % 2;
  AffineExpr ofProducts = (side.isOfRows ? upper : second) * runElements + product;
  AffineExpr ofElements = element + (side.isOfRows ? second : upper) * matrixLines;
  (side.hasProductsInLines ? ofElements : ofProducts) =
      (side.hasProductsInLines ? ofElements : ofProducts) + inMatrix;
  return nvgpu::LdMatrixOp::create(emitter.builder(), emitter.loc, getFragmentType(4),
                                   side.slabs[slab],
                                   emitter.expand(getPlace(side, ofElements, ofProducts)),
                                   /*transpose=*/!side.hasProductsInLines, /*numTiles=*/4);
}

/// Adds the products of a slab in workgroup memory, of which `count` are no zeros.
MatrixContraction::Sums MatrixContraction::addProducts(unsigned slab, int64_t count,
                                                       ValueRange sums) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Sums next(sums);
  for (int64_t product = 0; product < count; product += mmaProducts) {
    SmallVector<Value> rows, columns;
    for (int64_t row = 0; row < tile.rows; row += mmaRows)
      rows.push_back(takeFragment(ofRows, slab, subgroupRow * tile.rows + row, product));
    for (int64_t column = 0; column < tile.columns; column += 2 * mmaColumns) {
      Value both = takeFragment(ofColumns, slab, subgroupColumn * tile.columns + column, product);
      for (int64_t block : {0, 1}) {
        Value one = arith::ConstantOp::create(b, loc, b.getZeroAttr(getFragmentType(2)));
        for (int64_t i : {0, 1})
          one = vector::InsertOp::create(
              b, loc, vector::ExtractOp::create(b, loc, both, 2 * block + i), one, i);
        columns.push_back(one);
      }
    }
    for (auto [i, row] : llvm::enumerate(rows))
      for (auto [j, column] : llvm::enumerate(columns)) {
        Value &sum = next[i * columns.size() + j];
        sum = nvgpu::MmaSyncOp::create(b, loc, row, column, sum,
                                       ArrayRef<int64_t>{mmaRows, mmaColumns, mmaProducts},
                                       /*tf32Enabled=*/type.isF32());
      }
  }
  return next;
}

/// Computes the subgroup's sums.
MatrixContraction::Sums MatrixContraction::sumProducts() {
  OpBuilder &b = emitter.builder();
  auto block = VectorType::get({2, 2}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(block));
  Sums sums(countRowBlocks() * countColumnBlocks(), zero);
  int64_t slabs = products / tile.slab, early = products % tile.slab;
  if (early)
    sums = emitter.loop(1, sums, [&](Value, ValueRange running) {
      AffineExpr first = emitter.constant(0);
      store(load(first, early), first, early, 0);
      barrier();
      Sums added = addProducts(0, early, running);
      barrier();
      return added;
    });
  // Adds a slab while the next one is on its way to the other half of the memory.
  auto addBeside = [&](unsigned slab, AffineExpr next, ValueRange running) {
    barrier();
    SmallVector<Value> loaded = load(next, tile.slab);
    Sums added = addProducts(slab, tile.slab, running);
    store(loaded, next, tile.slab, 1 - slab);
    return added;
  };
  AffineExpr first = emitter.constant(early);
  store(load(first, tile.slab), first, tile.slab, 0);
  int64_t pairs = (slabs - 1) / 2;
  sums = emitter.loop(pairs, sums, [&](Value trip, ValueRange running) {
    AffineExpr next = emitter.setCoordinate(pairOfSlabsCoordinate, trip) * (2 * tile.slab) + early;
    return addBeside(1, next + 2 * tile.slab, addBeside(0, next + tile.slab, running));
  });
  if (slabs % 2 == 0)
    sums = addBeside(0, emitter.constant(early + (slabs - 1) * tile.slab), sums);
  barrier();
  return addProducts((slabs - 1) % 2, tile.slab, sums);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns the pair of sums that the invocation has in a half of a block. Registers have no index,
/// so they are selected among those of all blocks of rows.
Value MatrixContraction::getSum(ArrayRef<Value> sums, Value rowBlock, int64_t columnBlock,
                                int64_t half) {
  OpBuilder &b = emitter.builder();
  Value pair;
  for (int64_t block = 0; block < countRowBlocks(); ++block) {
    Value own = vector::ExtractOp::create(b, emitter.loc,
                                          sums[block * countColumnBlocks() + columnBlock], half);
    if (!pair) {
      pair = own;
      continue;
    }
    Value isOwn = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::eq, rowBlock,
                                        emitter.indexConstant(block));
    pair = arith::SelectOp::create(b, emitter.loc, isOwn, own, pair);
  }
  return pair;
}

/// Stores what comes of the sums in a block of columns, in a loop over the blocks of rows, so that
/// there is one copy of the code for all of them. The column is a
/// pair, or `element` of one.
void MatrixContraction::storeBlocks(int64_t columnBlock, AffineExpr column, int64_t element,
                                    ArrayRef<Value> sums) {
  SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(), emitter.constant(0));
  emitter.loop(countRowBlocks(), {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr block = emitter.setCoordinate(rowBlockCoordinate, trip);
    for (int64_t half : {0, 1}) {
      AffineExpr row = ofRows.tileNumber * ofRows.elements + subgroupRow * tile.rows +
                       block * mmaRows + lane.floorDiv(mmaColumns / 2) + half * mmaRows / 2;
      auto storeRow = [&](AffineExpr inside) {
        emitter.startPoint();
        Value sum = getSum(sums, trip, columnBlock, half);
        if (element >= 0)
          sum = emitter.extract(sum, element);
        storeSums(emitter, sum, sides.getPoint(inside, column, rest, noProducts));
      };
      if (ofRows.all % ofRows.elements)
        guardInside(emitter, insideBlockRowCoordinate, row, ofRows.all, storeRow);
      else
        storeRow(row);
    }
    return {};
  });
}

void MatrixContraction::emitTile(Value number) {
  AffineExpr at = emitter.setCoordinate(unitCoordinate, number);
  int64_t rowTiles = llvm::divideCeil(ofRows.all, ofRows.elements),
          columnTiles = llvm::divideCeil(ofColumns.all, ofColumns.elements);
  // Neighbouring workgroups have the same columns.
  SmallVector<AffineExpr> digits =
      getDigits(emitter, at, {getProduct(sides.restSizes), columnTiles, rowTiles});
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  ofRows.tileNumber = name(tileRowCoordinate, digits[2]);
  ofColumns.tileNumber = name(tileColumnCoordinate, digits[1]);
  rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), sides.restSizes);
  int64_t subgroupSize = emitter.profile.subgroupSize;
  lane = name(laneCoordinate, thread % subgroupSize);
  AffineExpr subgroup = thread.floorDiv(subgroupSize);
  subgroupRow = name(subgroupRowCoordinate, subgroup.floorDiv(tile.columnSubgroups));
  subgroupColumn = name(subgroupColumnCoordinate, subgroup % tile.columnSubgroups);
  for (Side *side : {&ofRows, &ofColumns}) {
    chooseShares(*side);
    allocate(*side);
  }

  SmallVector<Value> sums = sumProducts();
  bool arePairs = ofColumns.all % 2 == 0, isPartial = ofColumns.all % ofColumns.elements != 0;
  for (int64_t block = 0; block < countColumnBlocks(); ++block) {
    // In pairs of columns.
    AffineExpr pair = (ofColumns.tileNumber * ofColumns.elements).floorDiv(2) +
                      subgroupColumn * (tile.columns / 2) + block * mmaColumns / 2 +
                      lane % (mmaColumns / 2);
    if (arePairs) {
      auto storePair = [&](AffineExpr inside) {
        storeBlocks(block, inside * 2 + emitter.vectorLane(), /*element=*/-1, sums);
      };
      if (isPartial)
        guardInside(emitter, insideColumnCoordinate, pair, ofColumns.all / 2, storePair);
      else
        storePair(pair);
      continue;
    }
    for (int64_t element : {0, 1})
      guardInside(emitter, insideColumnCoordinate, pair * 2 + element, ofColumns.all,
                  [&](AffineExpr inside) { storeBlocks(block, inside, element, sums); });
  }
}

void MatrixContraction::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(op);
  emitter.getFunction().setKnownBlockSizeAttr(
      emitter.builder().getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  int64_t tiles = getProduct(sides.restSizes) * llvm::divideCeil(ofRows.all, ofRows.elements) *
                  llvm::divideCeil(ofColumns.all, ofColumns.elements);
  emitWorkgroups(emitter, tiles, launch, [&](Value group) {
    thread = emitter.setCoordinate(
        teamLaneCoordinate,
        gpu::ThreadIdOp::create(emitter.builder(), emitter.loc, gpu::Dimension::x));
    emitTile(group);
  });
}

void weir::emitMatrixContraction(PointEmitter &emitter, const MatrixTile &tile,
                                 EmittedKernel &launch) {
  MatrixContraction(emitter, tile).run(launch);
}
