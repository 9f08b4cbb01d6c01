//===- TileBlockRow.cpp - Rows of block sums in one invocation ------------===//
//
// BlockRow.cpp for devices of one invocation with vectors that are loaded from anywhere. A
// workgroup owns some tiles of rows, so that what it copies of a block's columns serves many rows.
// The maximum and the sum of each row wait in memory for the next block.
//
//===----------------------------------------------------------------------===//

#include "TileBlock.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// Maxima and sums of exponentials
//===----------------------------------------------------------------------===//

void TileSoftmax::allocate(int64_t number) {
  rows = number;
  maxima = allocatePrivate(emitter, element, 1, rows);
  sums = allocatePrivate(emitter, element, 1, rows);
}

void TileSoftmax::clear() {
  emitter.loop(rows, {}, [&](Value number, ValueRange) -> SmallVector<Value> {
    SmallVector<Value> start = startRow(emitter, reduced);
    OpBuilder &b = emitter.builder();
    memref::StoreOp::create(b, emitter.loc, start[0], maxima, number);
    memref::StoreOp::create(b, emitter.loc, start[1], sums, number);
    return {};
  });
}

std::pair<Value, Value> TileSoftmax::load(AffineExpr row) {
  Value number = emitter.expand(row);
  OpBuilder &b = emitter.builder();
  Value maximum = memref::LoadOp::create(b, emitter.loc, maxima, number);
  return {maximum, memref::LoadOp::create(b, emitter.loc, sums, number)};
}

/// Replaces those elements of a row's first vector that the block before this one had.
Value TileSoftmax::keepAsked(Value vector, TypedAttr otherwise) {
  int64_t lanes = block.getLanes();
  OpBuilder &b = emitter.builder();
  SmallVector<bool> asked;
  for (int64_t lane = 0; lane < lanes; ++lane)
    asked.push_back(lane >= block.getSkipped());
  auto mask = DenseElementsAttr::get(VectorType::get({lanes}, b.getI1Type()), asked);
  Value others = createConstant(DenseElementsAttr::get(getVectorType(), Attribute(otherwise)));
  return arith::SelectOp::create(b, emitter.loc, createConstant(mask), vector, others);
}

/// Emits `body` for each vector of a row of the block, with a vector that it carries. The first one
/// may have elements that the block before this one had.
Value TileSoftmax::walkVectors(TypedAttr start,
                               function_ref<Value(AffineExpr, Value, bool isFirst)> body) {
  int64_t begin = block.getSkipped() > 0 ? 1 : 0;
  SmallVector<Value> carried = {
      createConstant(DenseElementsAttr::get(getVectorType(), Attribute(start)))};
  if (begin == 1)
    carried = emitter.loop(1, carried, [&](Value, ValueRange running) {
      return SmallVector<Value>{body(emitter.constant(0), running.front(), true)};
    });
  return emitter
      .loop(block.getVectors() - begin, carried,
            [&](Value trip, ValueRange running) {
              AffineExpr vector = emitter.setCoordinate(tileColumnCoordinate, trip) + begin;
              return SmallVector<Value>{body(vector, running.front(), false)};
            })
      .front();
}

Value TileSoftmax::addRow(ArrayRef<AffineExpr> at, AffineExpr firstRow, AffineExpr row,
                          AffineExpr number, Value powers, AffineExpr place, bool keepsPowers) {
  Location loc = emitter.loc;
  TypedAttr zero = emitter.builder().getZeroAttr(element);
  auto getPlace = [&](AffineExpr vector) {
    return emitter.expand(place + vector * block.getLanes());
  };
  Value largest = walkVectors(reduced.start, [&](AffineExpr vector, Value running, bool isFirst) {
    Value value;
    block.atVector(at, firstRow, row, vector, [&](ArrayRef<AffineExpr> point) {
      value = emitter.broadcast(evaluateElement(emitter, reduced, point));
    });
    if (isFirst)
      value = keepAsked(value, reduced.start);
    vector::StoreOp::create(emitter.builder(), loc, value, powers, getPlace(vector));
    return emitter.combine(reduced.larger, running, value);
  });
  auto [before, sum] = load(number);
  Value maximum = emitter.combine(reduced.larger, before, combineVector(reduced.larger, largest));
  Value added = walkVectors(zero, [&](AffineExpr vector, Value running, bool isFirst) {
    Value value =
        vector::LoadOp::create(emitter.builder(), loc, getVectorType(), powers, getPlace(vector));
    Value power = exponentialAbove(emitter, value, maximum);
    if (keepsPowers)
      vector::StoreOp::create(emitter.builder(), loc, power, powers, getPlace(vector));
    if (isFirst)
      power = keepAsked(power, zero);
    return emitter.combine(reduced.add, running, power);
  });
  Value scale = exponentialAbove(emitter, before, maximum);
  OpBuilder &b = emitter.builder();
  sum = arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, sum, scale),
                              combineVector(reduced.add, added));
  memref::StoreOp::create(b, loc, maximum, maxima, emitter.expand(number));
  memref::StoreOp::create(b, loc, sum, sums, emitter.expand(number));
  return scale;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
class TileBlockRow {
public:
  TileBlockRow(PointEmitter &emitter)
      : emitter(emitter), blocks(*emitter.domain.getBlocks()), sizes(emitter.domain.getSizes()),
        masked(findMasked(emitter.domain)), rows(chooseRows()), block(emitter, rows),
        softmax(emitter, block) {
    rowTiles = llvm::divideCeil(sizes[blocks.rowDim], rows);
    for (int64_t dim = 0; dim < int64_t(emitter.domain.getNumRows()); ++dim)
      if (dim != blocks.rowDim)
        restDims.push_back(dim);
    for (int64_t dim : restDims)
      restSizes.push_back(sizes[dim]);
    int64_t enough = llvm::divideCeil(tuning::tiles::minRowsOfCopy, rows);
    sharedTiles = std::min(
        std::max(getProduct(restSizes) * rowTiles / tuning::workgroups::few, enough), rowTiles);
  }
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const Blocks &blocks;
  ArrayRef<int64_t> sizes;
  MaskedSides masked;
  int64_t rows;
  TileBlock block;
  TileSoftmax softmax;
  SmallVector<int64_t> restDims, restSizes;
  int64_t rowTiles = 1;
  int64_t sharedTiles = 1; ///< of a workgroup
  Value elements;          ///< memory, of a row of the block

  SmallVector<AffineExpr> at; ///< by dimension of the domain
  AffineExpr rowTile, firstRow, turn;

  int64_t chooseRows() const {
    int64_t all = sizes[blocks.rowDim];
    return llvm::divideCeil(all, llvm::divideCeil(all, emitter.profile.contractionRows));
  }
  void walkBlock(AffineExpr share, AffineExpr first, int64_t count);
  void walkTiles(AffineExpr share, function_ref<void()> body);
  void store(AffineExpr share);
};
} // namespace

/// Emits `body` for each tile of the workgroup.
void TileBlockRow::walkTiles(AffineExpr share, function_ref<void()> body) {
  emitter.loop(sharedTiles, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    turn = emitter.setCoordinate(partCoordinate, trip);
    Value number = emitter.expand(share * sharedTiles + turn);
    auto emitTile = [&]() -> SmallVector<Value> {
      rowTile = emitter.setCoordinate(tileRestCoordinate, number);
      firstRow = rowTile * rows;
      if (sizes[blocks.rowDim] % rows) {
        // The last tile begins earlier, so that it has as many rows as the others.
        Value first =
            arith::MinUIOp::create(emitter.builder(), emitter.loc, emitter.expand(firstRow),
                                   emitter.indexConstant(sizes[blocks.rowDim] - rows));
        firstRow = emitter.setCoordinate(productCoordinate + blocks.rowDim, first);
      }
      body();
      return {};
    };
    if (rowTiles % sharedTiles == 0)
      return emitTile();
    Value inside = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult,
                                         number, emitter.indexConstant(rowTiles));
    return emitter.guard(inside, {}, emitTile);
  });
}

void TileBlockRow::walkBlock(AffineExpr share, AffineExpr first, int64_t count) {
  block.pack(at, first, count);
  walkTiles(share, [&] {
    whereNeeded(emitter, masked, {firstRow, rows, first, count}, {}, [&] {
      block.sum(at, firstRow);
      return emitter.loop(rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
        AffineExpr row = emitter.setCoordinate(tileRowCoordinate, trip);
        softmax.addRow(at, firstRow, row, turn * rows + row, elements, emitter.constant(0),
                       /*keepsPowers=*/false);
        return {};
      });
    });
  });
}

/// Stores what comes of the rows that no tile before theirs stores.
void TileBlockRow::store(AffineExpr share) {
  emitter.setLanes(1);
  walkTiles(share, [&] {
    emitter.loop(rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
      AffineExpr row = rowTile * rows + emitter.setCoordinate(tileRowCoordinate, trip);
      auto storeRow = [&](AffineExpr inside) {
        auto [maximum, sum] = softmax.load(turn * rows + (inside - firstRow));
        SmallVector<AffineExpr> point(at);
        point[blocks.rowDim] = inside;
        point[blocks.walkedDim] = emitter.constant(0);
        storeBlockRow(emitter, maximum, sum, point);
      };
      if (sizes[blocks.rowDim] % rows)
        guardInside(emitter, packedCoordinate, row, sizes[blocks.rowDim], storeRow);
      else
        storeRow(row);
      return {};
    });
  });
}

void TileBlockRow::run(EmittedKernel &launch) {
  auto located = emitter.codeFor(blocks.softmax->maximum);
  int64_t shares = llvm::divideCeil(rowTiles, sharedTiles);
  emitWorkgroups(emitter, getProduct(restSizes) * shares, launch, [&](Value group) {
    block.allocate();
    softmax.allocate(sharedTiles * rows);
    elements = allocatePrivate(emitter, blocks.softmax->start.getType(), 1, block.getColumns());
    AffineExpr number = emitter.setCoordinate(unitCoordinate, group);
    SmallVector<AffineExpr> digits = getDigits(emitter, number, {getProduct(restSizes), shares});
    at.assign(sizes.size(), emitter.constant(0));
    for (auto [dim, digit] : llvm::zip_equal(restDims, emitter.delinearize(digits[0], restSizes)))
      at[dim] = emitter.setCoordinate(productCoordinate + dim, emitter.expand(digit));
    AffineExpr share = emitter.setCoordinate(teamLaneCoordinate, emitter.expand(digits[1]));
    softmax.clear();
    int64_t columns = block.getColumns(), walked = sizes[blocks.walkedDim];
    emitter.loop(walked / columns, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
      AffineExpr first = emitter.setCoordinate(tripCoordinate, trip) * columns;
      walkBlock(share, first, columns);
      return {};
    });
    if (int64_t rest = walked % columns)
      walkBlock(share, emitter.constant(walked - rest), rest);
    store(share);
  });
}

void weir::emitTileBlockRow(PointEmitter &emitter, EmittedKernel &launch) {
  TileBlockRow(emitter).run(launch);
}
