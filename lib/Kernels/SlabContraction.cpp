//===- SlabContraction.cpp - Sums of products whose factors a workgroup shares ===//
//
// A workgroup owns a tile of the result, an invocation some rows and columns of it. The summed
// dimensions are walked in slabs of a few products. All invocations bring a slab of both factors
// to workgroup memory, a share each, and then each adds the slab's products to its sums. What the
// next slab needs is loaded before the products of this one are added, so that it is there when
// its turn comes:
//
//   load 0
//   for each slab:   store, barrier, load the next, add products, barrier
//
// Where the GPU copies asynchronously, elements of operands are copied to one of two or more slabs
// while another one is added up, as in MatrixContraction.cpp.
//
// A slab that is not whole comes first. So products are added in order, one by one, each by an
// fma, and the bits are those of any other tile.
//
//===----------------------------------------------------------------------===//

#include "Slabs.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

namespace {
enum SlabCoordinates : unsigned {
  slabCoordinate = productCoordinate,
  productInSlabCoordinate,
  rowThreadCoordinate,
  columnThreadCoordinate,
  resultRowCoordinate,
  insideRowCoordinate,
  insideUnitCoordinate,
};
} // namespace

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

std::optional<SlabTile> weir::chooseSlabTile(const KernelDomain &domain, const Profile &profile) {
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
  bool hasMany = false, hasWhole = false;
  double least = 0;
  // From the largest down, until there are many workgroups. Where the number of units is known, the
  // one with which the busiest unit is done first.
  for (auto [rows, columns, flops] : tuning::slabs::sizes) {
    tile.rows = profile.slabTile / 2 * rows;
    tile.columns = profile.slabTile / 2 * columns;
    if (tile.rows % slabVector || tile.columns % slabVector ||
        tile.rows * tile.columns > tuning::slabs::maxSums)
      continue;
    int64_t height = tile.getTileRows(), width = tile.getTileColumns();
    tile.slab = std::max(
        {profile.contractionSlab, slabVector * threads / height, slabVector * threads / width});
    int64_t bytes =
        (getSlabElements(height, tile.slab) + getSlabElements(width, tile.slab)) * elementBytes;
    if (!canShareSlab(height, tile.slab, threads) || !canShareSlab(width, tile.slab, threads) ||
        bytes > profile.getDeclaredMemory() || getProduct(domain.getColumnSizes()) < 2 * tile.slab)
      continue;
    int64_t tiles =
        batches * llvm::divideCeil(allRows, height) * llvm::divideCeil(allColumns, width);
    // Half of a tile behind the end is too much.
    if (tiles < tuning::workgroups::few ||
        2 * batches * allRows * allColumns < tiles * height * width)
      continue;
    // Elements behind the end of a part's tiles are not proved to stay inside: a smaller tile is
    // taken if it has nothing there.
    bool isWhole = !isPart || (allRows % height == 0 && allColumns % width == 0);
    if (profile.units > 0 && isWhole) {
      double clocks =
          double(llvm::divideCeil(tiles, profile.units)) * double(height * width) / flops;
      if (!hasWhole || clocks < least) {
        least = clocks;
        best = tile;
      }
      hasWhole = true;
      continue;
    }
    if (!hasWhole && (!hasMany || isWhole))
      best = tile;
    hasMany |= tiles >= tuning::workgroups::many;
    if (hasMany && isWhole)
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// The emitter
//===----------------------------------------------------------------------===//

namespace {
class SlabContraction {
public:
  SlabContraction(PointEmitter &emitter, const SlabTile &tile)
      : emitter(emitter), tile(tile), sides(tile.sides),
        op(emitter.domain.getContractions().front()), sizes(emitter.domain.getSizes()),
        products(getProduct(emitter.domain.getColumnSizes())),
        type(emitter.getElementType(op->getResult(0))),
        ofRows(makeSlabSide(emitter, sides, /*isOfRows=*/true, place.rest)),
        ofColumns(makeSlabSide(emitter, sides, /*isOfRows=*/false, place.rest)),
        sums{emitter,
             tile.rowThreads,
             tile.columnThreads,
             tile.rows,
             tile.columns,
             sizes[sides.columnDim] % slabVector ? 1 : slabVector,
             {},
             {}} {
    ofRows.elements = tile.getTileRows();
    ofColumns.elements = tile.getTileColumns();
    for (SlabSide *side : {&ofRows, &ofColumns}) {
      side->slab = tile.slab;
      side->threads = emitter.profile.workgroupSize;
    }
  }
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const SlabTile &tile;
  const ContractionSides &sides;
  linalg::GenericOp op;
  ArrayRef<int64_t> sizes;
  int64_t products;
  Type type; ///< of the sums
  SlabPlace place;
  SlabSide ofRows, ofColumns;
  SlabSums sums;
  AffineExpr thread;

  int64_t chooseStages() const;
  void emitTile(Value number);
};
} // namespace

/// Returns the number of slabs that are in workgroup memory at a time, where slabs are copied: a
/// copy has the time to add up all slabs but one. 1 where none are copied.
int64_t SlabContraction::chooseStages() const {
  const Profile &profile = emitter.profile;
  if (!profile.copiesAsynchronously())
    return 1;
  const int64_t sums = tile.rows * tile.columns;
  int64_t elements = 0;
  for (const SlabSide *side : {&ofRows, &ofColumns})
    elements += getSlabElements(side->elements, side->slab);
  int64_t memory = profile.workgroupMemory;
  if (sums < tuning::slabs::manySums)
    memory = std::max(memory / 2, profile.getDeclaredMemory());
  const int64_t fitting = memory / (elements * type.getIntOrFloatBitWidth() / 8);
  const int64_t wanted = 1 + llvm::divideCeil(tuning::units::latency * tuning::units::fmaLanes,
                                              sums * tile.slab * profile.workgroupSize);
  return std::max<int64_t>(1,
                           std::min({profile.matrixStages, fitting, wanted, products / tile.slab}));
}

void SlabContraction::emitTile(Value number) {
  setSlabPlace(emitter, place, emitter.setCoordinate(unitCoordinate, number), sides, ofRows,
               ofColumns);
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  sums.rowThread = name(rowThreadCoordinate, thread.floorDiv(tile.columnThreads));
  sums.columnThread = name(columnThreadCoordinate, thread % tile.columnThreads);
  const int64_t stages = chooseStages();
  for (SlabSide *side : {&ofRows, &ofColumns})
    side->chooseShares(thread, emitter.dim(slabCoordinate), /*allowCopies=*/stages > 1);
  for (SlabSide *side : {&ofRows, &ofColumns})
    for (int64_t stage = 0; stage < (ofRows.isCopied || ofColumns.isCopied ? stages : 1); ++stage)
      side->stages.push_back(
          allocateShared(emitter, type, getSlabElements(side->elements, side->slab)));
  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(type));
  SmallVector<Value> totals(tile.rows * tile.columns, zero);
  totals = sums.addSlabs(&ofRows, ofRows.stages.front(), ofColumns, emitter.constant(0), products,
                         slabCoordinate, productInSlabCoordinate, totals);
  sums.store(sides, place.rowTile, place.columnTile, place.rest, totals,
             {resultRowCoordinate, insideRowCoordinate, insideUnitCoordinate});
}

void SlabContraction::run(EmittedKernel &launch) {
  auto code = emitter.codeFor(op);
  emitWorkgroups(emitter, countSlabTiles(sides, ofRows, ofColumns), launch, [&](Value group) {
    thread = emitter.setCoordinate(
        teamLaneCoordinate,
        gpu::ThreadIdOp::create(emitter.builder(), emitter.loc, gpu::Dimension::x));
    emitTile(group);
  });
}

void weir::emitSlabContraction(PointEmitter &emitter, const SlabTile &tile, EmittedKernel &launch) {
  SlabContraction(emitter, tile).run(launch);
}
