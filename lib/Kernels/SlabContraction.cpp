//===- SlabContraction.cpp - Sums of products whose factors a workgroup shares ===//
//
// A workgroup owns a tile of the result, an invocation some rows and columns of it. Slabs of the
// factors are brought to workgroup memory (Slabs.h), and each invocation adds their products to its
// sums one by one, each by an fma: the bits are those of any other tile.
//
// The vectors of an invocation are as far apart as those of all invocations reach, so that a
// subgroup reads neighbouring ones.
//
//===----------------------------------------------------------------------===//

#include "Slabs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

/// Products whose code stands one behind the other: a loop around each costs instructions.
static constexpr int64_t unrolledProducts = 8;
/// Sums that an invocation has registers for.
static constexpr int64_t maxSums = 256;
//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// Returns the vectors of a slab that each invocation brings; nothing if they don't divide it.
static std::optional<int64_t> countShares(int64_t elements, int64_t slab, int64_t threads) {
  int64_t vectors = elements * slab / slabVector;
  return vectors % threads == 0 ? std::optional(vectors / threads) : std::nullopt;
}

std::optional<SlabTile> weir::chooseSlabTile(const KernelDomain &domain, const Profile &profile) {
  // More workgroups than that keep a device busy; fewer than the least leave most of it idle.
  constexpr int64_t manyWorkgroups = 64, fewWorkgroups = 16;
  if (profile.contractionSlab == 0 || profile.hasFreeVectors() || profile.vectorWidth == 1 ||
      domain.getContractions().size() != 1 || domain.getBlocks())
    return std::nullopt;
  linalg::GenericOp op = domain.getContractions().front();
  ArrayRef<int64_t> sizes = domain.getSizes();
  SlabTile tile{ContractionSides(domain, op, profile)};
  int64_t threads = profile.workgroupSize;
  for (tile.columnThreads = 1; tile.columnThreads * tile.columnThreads < threads;)
    tile.columnThreads *= 2;
  tile.rowThreads = threads / tile.columnThreads;
  if (tile.rowThreads * tile.columnThreads != threads)
    return std::nullopt;
  int64_t elementBytes =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementTypeBitWidth() / 8;
  int64_t batches = getProduct(tile.sides.restSizes);
  int64_t allRows = sizes[tile.sides.rowDim], allColumns = sizes[tile.sides.columnDim];
  std::optional<SlabTile> best;
  const bool isPart = getColumnParts(op).has_value();
  bool hasMany = false;
  // From the largest down, until there are many workgroups.
  for (auto [rows, columns] :
       {std::pair(2, 4), std::pair(2, 2), std::pair(1, 2), std::pair(1, 1)}) {
    tile.rows = profile.slabTile / 2 * rows;
    tile.columns = profile.slabTile / 2 * columns;
    if (tile.rows % slabVector || tile.columns % slabVector || tile.rows * tile.columns > maxSums)
      continue;
    int64_t height = tile.getTileRows(), width = tile.getTileColumns();
    tile.slab = std::max(
        {profile.contractionSlab, slabVector * threads / height, slabVector * threads / width});
    std::optional<int64_t> rowShares = countShares(height, tile.slab, threads),
                           columnShares = countShares(width, tile.slab, threads);
    int64_t bytes = tile.slab * (height + width + 2 * slabPadding) * elementBytes;
    if (!rowShares || !columnShares || bytes > profile.workgroupMemory ||
        getProduct(domain.getColumnSizes()) < 2 * tile.slab)
      continue;
    int64_t tiles =
        batches * llvm::divideCeil(allRows, height) * llvm::divideCeil(allColumns, width);
    // Half of a tile behind the end is too much.
    if (tiles < fewWorkgroups || 2 * batches * allRows * allColumns < tiles * height * width)
      continue;
    // Elements behind the end of a part's tiles are not proved to stay inside: a smaller tile is
    // taken if it has nothing there.
    bool isWhole = !isPart || (allRows % height == 0 && allColumns % width == 0);
    if (!hasMany || isWhole)
      best = tile;
    hasMany |= tiles >= manyWorkgroups;
    if (hasMany && isWhole)
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// The emitter
//===----------------------------------------------------------------------===//

namespace {
class SlabContraction : public SlabWalk {
public:
  SlabContraction(PointEmitter &emitter, const SlabTile &tile)
      : SlabWalk(
            emitter, tile.sides,
            {tile.slab, emitter.profile.workgroupSize, tile.getTileRows(), tile.getTileColumns()},
            emitter.getElementType(emitter.domain.getContractions().front()->getResult(0))),
        tile(tile) {}

private:
  const SlabTile &tile;
  AffineExpr rowThread, columnThread;

  int64_t getUnitColumns() const {
    return sizes[sides.columnDim] % slabVector == 0 ? slabVector : 1;
  }
  AffineExpr getRowInTile(AffineExpr row) const;
  AffineExpr getColumnInTile(int64_t column) const;
  Value evaluateElement(OpOperand *factor, ArrayRef<AffineExpr> indices) override {
    return evaluateFactor(emitter, factor, indices);
  }
  SmallVector<Value> makeZeros() override;
  SmallVector<Value> addProducts(int64_t count, ValueRange sums) override;
  Value getSum(ArrayRef<Value> sums, Value row, int64_t unit);
  void storeUnit(int64_t unit, AffineExpr unitOfResult, ArrayRef<Value> sums);
  void emitTile() override;
};
} // namespace

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

AffineExpr SlabContraction::getRowInTile(AffineExpr row) const {
  if (tile.rows == slabVector)
    return rowThread * slabVector + row;
  return (row.floorDiv(slabVector) * tile.rowThreads + rowThread) * slabVector + row % slabVector;
}

AffineExpr SlabContraction::getColumnInTile(int64_t column) const {
  int64_t unit = getUnitColumns();
  return (columnThread + column / unit * tile.columnThreads) * unit + column % unit;
}

SmallVector<Value> SlabContraction::makeZeros() {
  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(elementType));
  return SmallVector<Value>(tile.rows * tile.columns, zero);
}

/// Adds the products of the slab that is in workgroup memory.
SmallVector<Value> SlabContraction::addProducts(int64_t count, ValueRange sums) {
  OpBuilder *b = nullptr;
  auto read = [&](const Side &side, AffineExpr product, AffineExpr element) -> Value {
    Value address = emitter.expand(product * side.getStride() + element);
    return memref::LoadOp::create(*b, emitter.loc, side.memory, address);
  };
  int64_t together = count % unrolledProducts == 0 ? unrolledProducts : 1;
  return emitter.loop(count / together, sums, [&](Value trip, ValueRange running) {
    b = &emitter.builder();
    AffineExpr first = emitter.setCoordinate(productInSlabCoordinate, trip) * together;
    SmallVector<Value> next(running);
    for (int64_t i = 0; i < together; ++i) {
      SmallVector<Value> rows, columns;
      for (int64_t row = 0; row < tile.rows; ++row)
        rows.push_back(read(ofRows, first + i, getRowInTile(emitter.constant(row))));
      for (int64_t column = 0; column < tile.columns; ++column)
        columns.push_back(read(ofColumns, first + i, getColumnInTile(column)));
      for (int64_t row = 0; row < tile.rows; ++row)
        for (int64_t column = 0; column < tile.columns; ++column) {
          Value &sum = next[row * tile.columns + column];
          sum = math::FmaOp::create(*b, emitter.loc, rows[row], columns[column], sum);
        }
    }
    return next;
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns the sums of a unit of columns in a row of the invocation. Registers have no index, so
/// they are selected among all.
Value SlabContraction::getSum(ArrayRef<Value> sums, Value row, int64_t unit) {
  OpBuilder &b = emitter.builder();
  int64_t unitColumns = getUnitColumns();
  SmallVector<Value> elements;
  for (int64_t i = 0; i < unitColumns; ++i) {
    int64_t column = unit * unitColumns + i;
    Value sum = sums[column];
    for (int64_t other = 1; other < tile.rows; ++other) {
      Value isOther = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::eq, row,
                                            emitter.indexConstant(other));
      sum = arith::SelectOp::create(b, emitter.loc, isOther, sums[other * tile.columns + column],
                                    sum);
    }
    elements.push_back(sum);
  }
  if (unitColumns == 1)
    return elements.front();
  return vector::FromElementsOp::create(b, emitter.loc, VectorType::get({unitColumns}, elementType),
                                        elements);
}

/// Stores what comes of the sums in a unit of columns, in a loop over the rows, so that there is
/// one copy of the code for all of them.
void SlabContraction::storeUnit(int64_t unit, AffineExpr unitOfResult, ArrayRef<Value> sums) {
  int64_t unitColumns = getUnitColumns();
  SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(), emitter.constant(0));
  emitter.loop(tile.rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = ofRows.tileNumber * ofRows.elements +
                     getRowInTile(emitter.setCoordinate(resultRowCoordinate, trip));
    auto storeRow = [&](AffineExpr inside) {
      emitter.startPoint();
      AffineExpr column = unitOfResult * unitColumns;
      if (unitColumns > 1)
        column = column + emitter.vectorLane();
      storeSums(emitter, getSum(sums, trip, unit),
                sides.getPoint(inside, column, rest, noProducts));
    };
    if (ofRows.all % ofRows.elements)
      guardInside(emitter, insideRowCoordinate, row, ofRows.all, storeRow);
    else
      storeRow(row);
    return {};
  });
}

void SlabContraction::emitTile() {
  rowThread = name(rowThreadCoordinate, thread.floorDiv(tile.columnThreads));
  columnThread = name(columnThreadCoordinate, thread % tile.columnThreads);
  SmallVector<Value> sums = sumProducts();
  int64_t unitColumns = getUnitColumns(), units = tile.columns / unitColumns;
  for (int64_t unit = 0; unit < units; ++unit) {
    AffineExpr own = (ofColumns.tileNumber * units + unit) * tile.columnThreads + columnThread;
    if (ofColumns.all % ofColumns.elements)
      guardInside(emitter, insideUnitCoordinate, own, ofColumns.all / unitColumns,
                  [&](AffineExpr inside) { storeUnit(unit, inside, sums); });
    else
      storeUnit(unit, own, sums);
  }
}

void weir::emitSlabContraction(PointEmitter &emitter, const SlabTile &tile, EmittedKernel &launch) {
  SlabContraction(emitter, tile).run(launch);
}
