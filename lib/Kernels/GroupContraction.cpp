//===- GroupContraction.cpp - Sums of products by four subgroups ----------===//
//
// Where the profile is of sm_90a, groups of four subgroups own 64 rows of a tile each, and add
// slabs of 64 products by instructions that read both factors from workgroup memory (wgmma). These
// run behind the invocations: while a slab is added, the invocations come to the next one. So one
// group of products stays on its way, and a slab goes to the place of the last but one.
//
// One invocation brings slabs, each by a few instructions that copy a box of an operand (TMA). Each
// place has an mbarrier, which counts the bytes: its phases end when a slab is there. All wait for
// it, and then for each other: so all have waited for the products of the last but one, too.
//
//   begin to bring the first slabs, all but two of the stages
//   for each slab:   wait for its phase and for the products of the last but one, barrier,
//                    begin to bring the one that takes the place of the last but one,
//                    begin products
//
// A phase's parity is known where it is waited for: a round has every stage twice.
//
// The instructions read lines of 128 bytes, in which runs of 16 bytes are exchanged: run i of line
// n is in place i xor (n mod 8). A line has the 64 products of a row or column; or, where rows (or
// columns) are neighbours in the operand, 64 of them for one product, and the lines of the slab's
// products are followed by those of the next 64 rows. Of f32, which is rounded to tf32 where it is
// copied, a line has 32 products, and never rows or columns.
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

/// Elements of a line with rows or columns.
static constexpr int64_t lineElements = 64, blockBytes = 1024;
/// Rows of one instruction, and subgroups that make it together.
static constexpr int64_t groupRows = 64, groupSubgroups = 4;

/// Chooses the box of an operand that is copied at once: of lines of the slab.
void MatrixContraction::chooseBox(Side &side) {
  AffineMap map = getAccessMap(op, side.factor);
  const int64_t dim = side.isOfRows ? sides.rowDim : sides.columnDim,
                innermost =
                    emitter.domain.getNumRows() + emitter.domain.getColumnSizes().size() - 1;
  side.box.clear();
  for (AffineExpr result : map.getResults()) {
    const int64_t own = emitter.domain.getDims(op)[cast<AffineDimExpr>(result).getPosition()];
    const int64_t elements = side.hasProductsInLines ? side.elements : lineElements;
    side.box.push_back(own == dim ? elements : own == innermost ? tile.slab : 1);
  }
}

/// Begins to bring the slab from product `first` on to a stage: the first invocation does.
void MatrixContraction::bring(AffineExpr first, unsigned stage) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  struct Box {
    const Side *side;
    SmallVector<Value> at;
    int64_t place;
  };
  SmallVector<Box> boxes;
  int64_t bytes = 0;
  for (const Side *side : {&ofRows, &ofColumns}) {
    const int64_t elements = side->hasProductsInLines ? side->elements : lineElements;
    for (int64_t element = 0; element < side->elements; element += elements) {
      Box &box = boxes.emplace_back(Box{side, {}, element * tile.slab});
      for (AffineExpr index :
           getIndices(*side, side->getFirst() + element, getProducts(first, /*vector=*/1)))
        box.at.push_back(emitter.expand(index));
      bytes += elements * tile.slab * type.getIntOrFloatBitWidth() / 8;
    }
  }
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, emitter.expand(thread),
                                        emitter.indexConstant(0));
  emitter.guard(isFirst, {}, [&]() -> SmallVector<Value> {
    schedule::MBarrierExpectOp::create(emitter.builder(), loc, mbarriers, stage, bytes);
    for (const Box &box : boxes)
      emitter.copyTile(box.side->factor->get(), box.at, box.side->box, box.side->slabs[0],
                       getSlab(*box.side, stage) + box.place, mbarriers, stage);
    return {};
  });
}

/// Makes the mbarriers, one for each stage.
void MatrixContraction::makeBarriers() {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  auto type =
      MemRefType::get({stages}, b.getI64Type(), MemRefLayoutAttrInterface{},
                      gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup));
  if (!mbarriers)
    mbarriers = emitter.getFunction().addWorkgroupAttribution(type, loc);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, emitter.expand(thread),
                                        emitter.indexConstant(0));
  emitter.guard(isFirst, {}, [&]() -> SmallVector<Value> {
    for (int64_t stage = 0; stage < stages; ++stage)
      schedule::MBarrierInitOp::create(emitter.builder(), loc, mbarriers, stage);
    return {};
  });
  NVVM::FenceProxyOp::create(
      emitter.builder(), loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(emitter.context, NVVM::SharedSpace::shared_cta));
  barrier();
}

/// Begins to add slab number `slab` of a round to the sums. The slab from product `next` on, if
/// any, is brought to the place of the last but one.
void MatrixContraction::addGroupSlab(int64_t slab, AffineExpr next, Value &sums) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  const unsigned stage = unsigned(slab % stages);
  schedule::MBarrierWaitOp::create(b, loc, mbarriers, stage, slab / stages % 2 != 0);
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 1);
  barrier();
  if (next)
    bring(next, unsigned((slab + stages - 2) % stages));
  NVVM::WgmmaFenceAlignedOp::create(emitter.builder(), loc);
  const int64_t rowBlock = groupRows * tile.slab;
  auto getStrides = [&](const Side &side) {
    int64_t along = side.hasProductsInLines ? 16 : tile.slab * lineElements * 2;
    return std::pair(along, blockBytes);
  };
  auto [rowsAlong, rowsAcross] = getStrides(ofRows);
  auto [columnsAlong, columnsAcross] = getStrides(ofColumns);
  for (int64_t product = 0; product < tile.slab; product += mmaProducts) {
    auto getPlace = [&](const Side &side) {
      return product * (side.hasProductsInLines ? 1 : lineElements);
    };
    AffineExpr row = subgroupRow.floorDiv(groupSubgroups) * rowBlock;
    sums = schedule::GroupProductOp::create(
        emitter.builder(), loc, sums.getType(), sums, ofRows.slabs[0], emitter.expand(row),
        ofColumns.slabs[0], emitter.indexConstant(0),
        ArrayRef<int64_t>{rowsAlong, rowsAcross, columnsAlong, columnsAcross},
        !ofRows.hasProductsInLines, !ofColumns.hasProductsInLines,
        getSlab(ofRows, stage) + getPlace(ofRows), getSlab(ofColumns, stage) + getPlace(ofColumns));
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(emitter.builder(), loc);
}

/// Computes the subgroup's sums, as `sumProducts` does.
MatrixContraction::Sums MatrixContraction::sumGroupProducts() {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  auto type = VectorType::get({tile.columns / 2}, b.getF32Type());
  Value sums = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  const int64_t slabs = llvm::divideCeil(products, tile.slab), ahead = stages - 2;
  auto getFirst = [&](int64_t slab) { return emitter.constant(slab * tile.slab); };
  makeBarriers();
  for (int64_t slab = 0; slab < ahead; ++slab)
    bring(getFirst(slab), unsigned(slab));
  const int64_t round = 2 * stages, rounds = (slabs - ahead) / round;
  sums = emitter
             .loop(rounds, sums,
                   [&](Value trip, ValueRange running) -> SmallVector<Value> {
                     AffineExpr first =
                         emitter.setCoordinate(roundCoordinate, trip) * (round * tile.slab);
                     Value added = running.front();
                     for (int64_t slab = 0; slab < round; ++slab)
                       addGroupSlab(slab, first + (slab + ahead) * tile.slab, added);
                     return {added};
                   })
             .front();
  for (int64_t slab = rounds * round; slab < slabs; ++slab)
    addGroupSlab(slab, slab + ahead >= slabs ? AffineExpr() : getFirst(slab + ahead), sums);
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
