//===- CooperativeContraction.cpp - Products of matrices that subgroups share ===//
//
// A workgroup of four subgroups owns a tile of the result, a subgroup a quarter of it, in blocks of
// the shape that the profile names. Slabs of the factors are brought to workgroup memory (Slabs.h)
// as 16-bit elements. Subgroups load cooperative matrices from there and multiply them; a slab that
// is not whole is filled up with zeros.
//
// Vulkan does not say which invocation has which element of a cooperative matrix. So each block of
// sums goes to workgroup memory, a part for each subgroup, and its invocations take the elements
// from there, compute the kernel's results of them and store these:
//
//   for each block:   store it, barrier, take elements, store results, barrier
//
//===----------------------------------------------------------------------===//

#include "Slabs.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// Returns the bytes of workgroup memory that a tile takes.
static int64_t getSharedBytes(const CooperativeTile &tile) {
  constexpr int64_t factorBytes = 2, sumBytes = 4;
  int64_t elements = tile.getTileRows() + tile.getTileColumns() + 2 * slabPadding;
  int64_t block = tile.shape.rows * tile.shape.columns;
  return tile.slab * elements * factorBytes + tile.getSubgroups() * block * sumBytes;
}

std::optional<CooperativeTile> weir::chooseCooperativeTile(const KernelDomain &domain,
                                                           const Profile &profile) {
  const CooperativeShape &shape = profile.cooperative;
  if (shape.rows == 0 || profile.vectorWidth == 1 ||
      domain.getShape() != KernelShape::Contraction || domain.getContractions().size() != 1 ||
      domain.getBlocks())
    return std::nullopt;
  linalg::GenericOp op = domain.getContractions().front();
  auto isF16 = [&](OpOperand *factor) {
    return getElementTypeOrSelf(factor->get().getType()).isF16();
  };
  if (!isF16(op.getDpsInputOperand(0)) || !isF16(op.getDpsInputOperand(1)) ||
      !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return std::nullopt;
  CooperativeTile tile{ContractionSides(domain, op, profile), shape};
  tile.slab = std::max(tuning::matrices::cooperativeProducts, shape.products);
  int64_t threads = tile.getSubgroups() * profile.subgroupSize;
  if (getProduct(domain.getColumnSizes()) < 2 * tile.slab || threads > profile.maxWorkgroupSize ||
      shape.rows * shape.columns % profile.subgroupSize)
    return std::nullopt;
  int64_t batches = getProduct(tile.sides.restSizes);
  int64_t allRows = domain.getSizes()[tile.sides.rowDim],
          allColumns = domain.getSizes()[tile.sides.columnDim];
  std::optional<CooperativeTile> best;
  // From the largest down, until there are many workgroups.
  for (auto [rows, columns] : {std::pair(4, 4), std::pair(2, 4), std::pair(2, 2)}) {
    tile.rowBlocks = rows;
    tile.columnBlocks = columns;
    int64_t height = tile.getTileRows(), width = tile.getTileColumns();
    int64_t shared = slabVector * threads;
    if (height * tile.slab % shared || width * tile.slab % shared ||
        getSharedBytes(tile) > profile.workgroupMemory)
      continue;
    int64_t tiles =
        batches * llvm::divideCeil(allRows, height) * llvm::divideCeil(allColumns, width);
    // Half of a tile behind the end is too much.
    if (tiles < tuning::workgroups::few ||
        2 * batches * allRows * allColumns < tiles * height * width)
      continue;
    best = tile;
    if (tiles >= tuning::workgroups::many)
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// The emitter
//===----------------------------------------------------------------------===//

namespace {
class CooperativeContraction {
public:
  CooperativeContraction(PointEmitter &emitter, const CooperativeTile &tile)
      : emitter(emitter), tile(tile), sides(tile.sides), shape(tile.shape),
        ofRows(makeSlabSide(emitter, sides, /*isOfRows=*/true, place.rest)),
        ofColumns(makeSlabSide(emitter, sides, /*isOfRows=*/false, place.rest)),
        elementType(Float16Type::get(emitter.context)), sumType(Float32Type::get(emitter.context)) {
    ofRows.elements = tile.getTileRows();
    ofColumns.elements = tile.getTileColumns();
    for (SlabSide *side : {&ofRows, &ofColumns}) {
      side->slab = tile.slab;
      side->threads = getThreads();
      side->keepsType = side->fillsSlabs = true;
    }
  }
  void run(EmittedKernel &launch);

private:
  enum Coordinates : unsigned {
    slabCoordinate = productCoordinate,
    subgroupRowCoordinate,
    subgroupColumnCoordinate,
    resultRowCoordinate,
    insideRowCoordinate,
    insideUnitCoordinate,
    subgroupInGroupCoordinate,
    laneInGroupCoordinate,
  };

  PointEmitter &emitter;
  const CooperativeTile &tile;
  const ContractionSides &sides;
  const CooperativeShape &shape;
  SlabPlace place;
  SlabSide ofRows, ofColumns;
  Type elementType, sumType;
  Value blocks; ///< of sums, one for each subgroup, in workgroup memory
  AffineExpr subgroup, lane, subgroupRow, subgroupColumn;

  int64_t getThreads() const { return tile.getSubgroups() * emitter.profile.subgroupSize; }
  int64_t getBlockElements() const { return shape.rows * shape.columns; }
  /// Neighbouring columns that an invocation takes of a block at once.
  int64_t getUnitColumns() const {
    return ofColumns.all % slabVector == 0 &&
                   getBlockElements() / slabVector % emitter.profile.subgroupSize == 0
               ? slabVector
               : 1;
  }
  void barrier() { gpu::BarrierOp::create(emitter.builder(), emitter.loc); }
  AffineExpr name(unsigned coordinate, Value value) {
    return emitter.setCoordinate(coordinate, value);
  }
  SmallVector<Value> makeZeros();
  SmallVector<Value> addProducts(int64_t count, ValueRange sums);
  Value loadMatrix(bool isOfRows, int64_t product, AffineExpr element);
  Value takeUnit(AffineExpr unit);
  void storeBlock(Value sum, int64_t rowBlock, int64_t columnBlock);
  void emitTile(Value number);
};
} // namespace

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

SmallVector<Value> CooperativeContraction::makeZeros() {
  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(sumType));
  auto type = gpu::MMAMatrixType::get({shape.rows, shape.columns}, sumType, "COp");
  Value matrix = gpu::SubgroupMmaConstantMatrixOp::create(b, emitter.loc, type, zero);
  return SmallVector<Value>(tile.rowBlocks * tile.columnBlocks, matrix);
}

/// Loads a matrix from a slab, whose elements of one product are neighbours: a row of the columns'
/// factor, a column of the rows'.
Value CooperativeContraction::loadMatrix(bool isOfRows, int64_t product, AffineExpr element) {
  OpBuilder &b = emitter.builder();
  const SlabSide &side = isOfRows ? ofRows : ofColumns;
  SmallVector<int64_t> sizes = {shape.products, shape.columns};
  if (isOfRows)
    sizes = {shape.rows, shape.products};
  auto type = gpu::MMAMatrixType::get(sizes, elementType, isOfRows ? "AOp" : "BOp");
  Value at = emitter.expand(element + product * side.getStride());
  return gpu::SubgroupMmaLoadMatrixOp::create(b, emitter.loc, type, side.stages.front(), at,
                                              b.getIndexAttr(side.getStride()),
                                              isOfRows ? b.getUnitAttr() : UnitAttr());
}

SmallVector<Value> CooperativeContraction::addProducts(int64_t count, ValueRange sums) {
  OpBuilder &b = emitter.builder();
  SmallVector<Value> next(sums);
  for (int64_t product = 0; product < count; product += shape.products) {
    SmallVector<Value> rows, columns;
    for (int64_t block = 0; block < tile.rowBlocks; ++block)
      rows.push_back(loadMatrix(/*isOfRows=*/true, product,
                                (subgroupRow * tile.rowBlocks + block) * shape.rows));
    for (int64_t block = 0; block < tile.columnBlocks; ++block)
      columns.push_back(loadMatrix(/*isOfRows=*/false, product,
                                   (subgroupColumn * tile.columnBlocks + block) * shape.columns));
    for (auto [i, row] : llvm::enumerate(rows))
      for (auto [j, column] : llvm::enumerate(columns)) {
        Value &sum = next[i * columns.size() + j];
        sum = gpu::SubgroupMmaComputeOp::create(b, emitter.loc, sum.getType(), row, column, sum,
                                                /*a_transpose=*/UnitAttr(),
                                                /*b_transpose=*/UnitAttr());
      }
  }
  return next;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Takes a unit of columns of the subgroup's block from workgroup memory.
Value CooperativeContraction::takeUnit(AffineExpr unit) {
  OpBuilder &b = emitter.builder();
  int64_t unitColumns = getUnitColumns();
  SmallVector<Value> elements;
  for (int64_t i = 0; i < unitColumns; ++i) {
    Value at = emitter.expand(subgroup * getBlockElements() + unit * unitColumns + i);
    elements.push_back(memref::LoadOp::create(b, emitter.loc, blocks, at));
  }
  if (unitColumns == 1)
    return elements.front();
  return vector::FromElementsOp::create(b, emitter.loc, VectorType::get({unitColumns}, sumType),
                                        elements);
}

/// Stores what comes of a block of sums.
void CooperativeContraction::storeBlock(Value sum, int64_t rowBlock, int64_t columnBlock) {
  OpBuilder &b = emitter.builder();
  const int64_t lanes = emitter.profile.subgroupSize, unitColumns = getUnitColumns();
  const int64_t unitsInRow = shape.columns / unitColumns;
  gpu::SubgroupMmaStoreMatrixOp::create(b, emitter.loc, sum, blocks,
                                        emitter.expand(subgroup * getBlockElements()),
                                        b.getIndexAttr(shape.columns), UnitAttr());
  barrier();
  SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(), emitter.constant(0));
  emitter.loop(
      getBlockElements() / unitColumns / lanes, {},
      [&](Value trip, ValueRange) -> SmallVector<Value> {
        AffineExpr unit = emitter.setCoordinate(resultRowCoordinate, trip) * lanes + lane;
        AffineExpr row = ofRows.first + (subgroupRow * tile.rowBlocks + rowBlock) * shape.rows +
                         unit.floorDiv(unitsInRow);
        AffineExpr unitOfAll = place.columnTile * (ofColumns.elements / unitColumns) +
                               (subgroupColumn * tile.columnBlocks + columnBlock) * unitsInRow +
                               unit % unitsInRow;
        auto storeUnit = [&](AffineExpr insideRow, AffineExpr insideUnit) {
          emitter.startPoint();
          AffineExpr column = insideUnit * unitColumns;
          if (unitColumns > 1)
            column = column + emitter.vectorLane();
          storeSums(emitter, takeUnit(unit),
                    sides.getPoint(insideRow, column, place.rest, noProducts));
        };
        auto storeRow = [&](AffineExpr insideRow) {
          if (ofColumns.all % ofColumns.elements)
            guardInside(emitter, insideUnitCoordinate, unitOfAll, ofColumns.all / unitColumns,
                        [&](AffineExpr insideUnit) { storeUnit(insideRow, insideUnit); });
          else
            storeUnit(insideRow, unitOfAll);
        };
        if (ofRows.all % ofRows.elements)
          guardInside(emitter, insideRowCoordinate, row, ofRows.all, storeRow);
        else
          storeRow(row);
        return {};
      });
}

void CooperativeContraction::emitTile(Value number) {
  OpBuilder &b = emitter.builder();
  // Invocations are numbered by subgroup and lane: Vulkan relates these to no other number.
  subgroup = name(subgroupInGroupCoordinate, gpu::SubgroupIdOp::create(b, emitter.loc, nullptr));
  lane = name(laneInGroupCoordinate, gpu::LaneIdOp::create(b, emitter.loc, nullptr));
  setSlabPlace(emitter, place, name(unitCoordinate, number), sides, ofRows, ofColumns);
  for (SlabSide *side : {&ofRows, &ofColumns})
    side->chooseShares(subgroup * emitter.profile.subgroupSize + lane, emitter.dim(slabCoordinate));
  subgroupRow =
      name(subgroupRowCoordinate, emitter.expand(subgroup.floorDiv(tile.columnSubgroups)));
  subgroupColumn = name(subgroupColumnCoordinate, emitter.expand(subgroup % tile.columnSubgroups));
  SmallVector<Value> sums = walkSlabs(
      emitter, &ofRows, ofColumns, emitter.constant(0), getProduct(emitter.domain.getColumnSizes()),
      slabCoordinate, makeZeros(),
      [&](AffineExpr, int64_t count, ValueRange running) { return addProducts(count, running); });
  for (int64_t row = 0; row < tile.rowBlocks; ++row)
    for (int64_t column = 0; column < tile.columnBlocks; ++column) {
      if (row + column > 0)
        barrier();
      storeBlock(sums[row * tile.columnBlocks + column], row, column);
    }
}

void CooperativeContraction::run(EmittedKernel &launch) {
  auto code = emitter.codeFor(emitter.domain.getContractions().front());
  emitter.setWorkgroup(getThreads());
  for (SlabSide *side : {&ofRows, &ofColumns})
    side->stages = {
        allocateShared(emitter, elementType, getSlabElements(side->elements, side->slab))};
  blocks = allocateShared(emitter, sumType, tile.getSubgroups() * getBlockElements());
  emitWorkgroups(emitter, countSlabTiles(sides, ofRows, ofColumns), launch,
                 [&](Value group) { emitTile(group); });
}

void weir::emitCooperativeContraction(PointEmitter &emitter, const CooperativeTile &tile,
                                      EmittedKernel &launch) {
  CooperativeContraction(emitter, tile).run(launch);
}
