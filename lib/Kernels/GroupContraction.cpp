//===- GroupContraction.cpp - Sums of products by four subgroups ----------===//
//
// Where the profile is of sm_90a, groups of four subgroups own 64 rows of a tile each, and add
// slabs of 64 products by instructions that read both factors from workgroup memory (wgmma). These
// run behind the invocations: while a slab is added, the invocations come to the next one. So one
// group of products stays on its way, and a slab goes to the place of the last but one:
//
//   bring the first slabs, all but two of the stages
//   for each slab:   wait for it, fence, wait for the products of the last but one, barrier,
//                    bring the one that takes the place of the last but one, begin products
//
// The instructions read lines of 128 bytes, in which runs of 16 bytes are exchanged: run i of line
// n is in place i xor (n mod 8). A line has the 64 products of a row or column; or, where rows (or
// columns) are neighbours in the operand, 64 of them for one product, and the lines of the slab's
// products are followed by those of the next 64 rows.
//
//===----------------------------------------------------------------------===//

#include "MatrixContraction.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

static constexpr int64_t lineElements = 64, linesOfBlock = 8, runsOfLine = 8, blockBytes = 1024;
/// Products of one instruction, and subgroups that make it together.
static constexpr int64_t groupProducts = 16, groupSubgroups = 4;

/// Returns the exclusive or of two numbers below 8. Each bit is that of a sum.
static AffineExpr combineBits(AffineExpr a, AffineExpr b) {
  AffineExpr all = (a + b) % 2;
  for (int64_t bit : {2, 4})
    all = all + (a.floorDiv(bit) + b.floorDiv(bit)) % 2 * bit;
  return all;
}

/// Chooses what the invocation brings of a factor: a run of each of some lines, all at one place.
void MatrixContraction::chooseGroupShares(Side &side) {
  const bool ofProducts = side.hasProductsInLines;
  auto name = [&](unsigned ofRows, unsigned ofColumns, AffineExpr value) {
    return emitter.setCoordinate(side.isOfRows ? ofRows : ofColumns, emitter.expand(value));
  };
  AffineExpr firstLine = name(rowLineCoordinate, columnLineCoordinate, thread.floorDiv(runsOfLine));
  AffineExpr inLine = thread % runsOfLine;
  AffineExpr run =
      name(rowRunCoordinate, columnRunCoordinate, combineBits(inLine, firstLine % linesOfBlock));
  const int64_t linesAtOnce = threads / runsOfLine;
  assert(linesAtOnce % linesOfBlock == 0 && "runs of all shares are exchanged alike");
  side.shares.clear();
  for (int64_t first = 0; first < side.elements; first += linesAtOnce) {
    AffineExpr line = firstLine + first;
    Side::Share share;
    share.element = line;
    share.product = run;
    if (!ofProducts) {
      share.element = line.floorDiv(tile.slab) * (lineElements / runElements) + run;
      share.product = line % tile.slab;
    }
    const int64_t inElements = ofProducts ? 1 : runElements;
    share.ofAll = side.tileNumber * (side.elements / inElements) + share.element;
    if (side.all % side.elements != 0) // an element that is there, in place of one that is not
      share.ofAll = share.ofAll % (side.all / inElements);
    share.place = line * lineElements + inLine * runElements;
    side.shares.push_back(share);
  }
}

/// Begins to add a slab to the sums, for which at most `groupsLeft` groups of copies may be on
/// their way. The slab from product `next` on, if any, is brought to the place of the last but one.
void MatrixContraction::addGroupSlab(unsigned slab, int64_t groupsLeft, AffineExpr next,
                                     Value &sums) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  nvgpu::DeviceAsyncWaitOp::create(b, loc, group, b.getI32IntegerAttr(int32_t(groupsLeft)));
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(emitter.context, NVVM::SharedSpace::shared_cta));
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 1);
  barrier();
  if (next)
    copy(next, (slab + stages - 2) % stages);
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  const int64_t rowBlock = lineElements * lineElements; // of 64 rows and products
  auto getStrides = [&](const Side &side) {
    int64_t along = side.hasProductsInLines ? 16 : tile.slab * lineElements * 2;
    return std::pair(along, blockBytes);
  };
  auto [rowsAlong, rowsAcross] = getStrides(ofRows);
  auto [columnsAlong, columnsAcross] = getStrides(ofColumns);
  for (int64_t product = 0; product < tile.slab; product += groupProducts) {
    auto getPlace = [&](const Side &side) {
      return product * (side.hasProductsInLines ? 1 : lineElements);
    };
    AffineExpr row = subgroupRow.floorDiv(groupSubgroups) * rowBlock + getPlace(ofRows);
    sums = schedule::GroupProductOp::create(
        b, loc, sums.getType(), sums, ofRows.slabs[slab], emitter.expand(row),
        ofColumns.slabs[slab], emitter.indexConstant(getPlace(ofColumns)),
        ArrayRef<int64_t>{rowsAlong, rowsAcross, columnsAlong, columnsAcross},
        !ofRows.hasProductsInLines, !ofColumns.hasProductsInLines);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
}

/// Computes the subgroup's sums, as `sumProducts` does.
MatrixContraction::Sums MatrixContraction::sumGroupProducts() {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  auto type = VectorType::get({tile.columns / 2}, b.getF32Type());
  Value sums = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  const int64_t slabs = products / tile.slab, ahead = stages - 2;
  auto getFirst = [&](int64_t slab) { return emitter.constant(slab * tile.slab); };
  for (int64_t slab = 0; slab < ahead; ++slab)
    copy(getFirst(slab), slab);
  const int64_t rounds = (slabs - ahead) / stages;
  sums = emitter
             .loop(rounds, sums,
                   [&](Value trip, ValueRange running) -> SmallVector<Value> {
                     AffineExpr first =
                         emitter.setCoordinate(roundCoordinate, trip) * (stages * tile.slab);
                     Value added = running.front();
                     for (int64_t slab = 0; slab < stages; ++slab)
                       addGroupSlab(slab, ahead - 1, first + (slab + ahead) * tile.slab, added);
                     return {added};
                   })
             .front();
  for (int64_t slab = rounds * stages; slab < slabs; ++slab) {
    const bool isLast = slab + ahead >= slabs;
    addGroupSlab(slab % stages, std::min(ahead, slabs - slab) - 1,
                 isLast ? AffineExpr() : getFirst(slab + ahead), sums);
  }
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
  // Each eight columns: two of them, in two rows.
  Sums blocks;
  auto block = VectorType::get({2, 2}, b.getF32Type());
  for (int64_t first = 0; first < type.getNumElements(); first += 4) {
    Value whole = arith::ConstantOp::create(b, loc, b.getZeroAttr(block));
    for (int64_t i = 0; i < 4; ++i)
      whole = vector::InsertOp::create(b, loc, emitter.extract(sums, first + i), whole,
                                       ArrayRef<int64_t>{i / 2, i % 2});
    blocks.push_back(whole);
  }
  return blocks;
}
