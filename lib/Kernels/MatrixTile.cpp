//===- MatrixTile.cpp - Tiles of sums by instructions on matrices ----------===//

#include "Shapes.h"
#include "Tuning.h"
#include "weir/Device/Device.h"

#include <cmath>

using namespace mlir;
using namespace weir;

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

/// Whether neighbours in a factor's memory are products: of the last summed dimension.
static bool hasProductsInLines(const KernelDomain &domain, linalg::GenericOp op,
                               OpOperand *factor) {
  AffineExpr innermost = getAccessMap(op, factor).getResults().back();
  return domain.getDims(op)[cast<AffineDimExpr>(innermost).getPosition()] ==
         int64_t(domain.getNumRows() + domain.getColumnSizes().size()) - 1;
}

/// Whether a factor's runs can be copied: they are those of an operand, along the last summed
/// dimension or along `dim`.
static bool canCopy(const KernelDomain &domain, linalg::GenericOp op, OpOperand *factor,
                    int64_t dim, int64_t runElements) {
  AffineMap map = getAccessMap(op, factor);
  auto type = cast<RankedTensorType>(factor->get().getType());
  if (!isa<BlockArgument>(factor->get()) || type.getRank() == 0 || !map.isProjectedPermutation() ||
      type.getShape().back() % runElements != 0)
    return false;
  int64_t innermost =
      domain.getDims(op)[cast<AffineDimExpr>(map.getResults().back()).getPosition()];
  return innermost == dim || hasProductsInLines(domain, op, factor);
}

/// Whether a tensor map finds a factor's slabs, whose runs can be copied: boxes of the rows or
/// columns along `dim` by the innermost products.
static bool canCopyTiles(const KernelDomain &domain, linalg::GenericOp op, OpOperand *factor,
                         int64_t dim) {
  constexpr int64_t minRank = 2, maxRank = 5, maxSize = int64_t(1) << 31;
  auto type = cast<RankedTensorType>(factor->get().getType());
  if (type.getRank() < minRank || type.getRank() > maxRank || type.getNumElements() >= maxSize)
    return false;
  const int64_t innermost = domain.getNumRows() + domain.getColumnSizes().size() - 1;
  int64_t found = 0;
  for (AffineExpr result : getAccessMap(op, factor).getResults()) {
    const int64_t own = domain.getDims(op)[cast<AffineDimExpr>(result).getPosition()];
    found += own == dim || own == innermost;
  }
  return found == 2;
}

/// Returns the tile of groups of four subgroups: the one that takes the least time of the matrix
/// units, of L2 or of workgroup memory. Nothing where factors are not copied as they are, or slabs
/// are few; nor where factors of f32 would have to be transposed, which these instructions do not.
static std::optional<MatrixTile> chooseGroupTile(const KernelDomain &domain, const Profile &profile,
                                                 linalg::GenericOp op, MatrixTile tile) {
  constexpr int64_t lineBytes = 128, groupRows = 64, groupSubgroups = 4;
  constexpr int64_t barrierBytes = 1024; // of mbarriers, up to the next slab
  constexpr int64_t minStages = tuning::matrices::minStages;
  const model::Device *device = model::findDevice(profile.sm);
  const int64_t elementBytes = tile.type.getIntOrFloatBitWidth() / 8;
  tile.isGroup = true;
  tile.slab = lineBytes / elementBytes;
  const int64_t products = getProduct(domain.getColumnSizes());
  const int64_t innermost = domain.getColumnSizes().back();
  const int64_t runElements = tile.getRunElements();
  // Elements behind the end of a tensor are copied as zeros, but only behind its last product.
  if (!profile.isSmExact || !device || profile.units == 0 || profile.matrixStages < minStages ||
      (domain.getColumnSizes().size() > 1 && innermost % tile.slab != 0) ||
      llvm::divideCeil(products, tile.slab) < minStages || innermost % runElements != 0)
    return std::nullopt;
  for (auto [factor, dim] : {std::pair(tile.sides.rowFactor, tile.sides.rowDim),
                             {tile.sides.columnFactor, tile.sides.columnDim}})
    if (!canCopy(domain, op, factor, dim, runElements) || !canCopyTiles(domain, op, factor, dim) ||
        (tile.type.isF32() && !hasProductsInLines(domain, op, factor)))
      return std::nullopt;
  const int64_t batches = getProduct(tile.sides.restSizes);
  const int64_t allRows = domain.getSizes()[tile.sides.rowDim],
                allColumns = domain.getSizes()[tile.sides.columnDim];
  // Per clock: a unit's flops, the device's bytes of L2, and a unit's bytes of workgroup memory.
  const double unitFlops = *(tile.type.isF32() ? device->matrixTf32 : device->matrix),
               l2Bytes = *device->l2Bytes, sharedBytes = *device->l1Bytes;
  // Columns that are neighbours in the operand are copied in lines.
  constexpr int64_t instructionColumns = 8, lineColumns = 64;
  const int64_t columnUnit =
      hasProductsInLines(domain, op, tile.sides.columnFactor) ? instructionColumns : lineColumns;
  std::optional<MatrixTile> best;
  double least = 0;
  for (auto [groups, columns] :
       {std::pair<int64_t, int64_t>(3, 256), {2, 256}, {2, 128}, {1, 128}, {1, 64}}) {
    const int64_t height = groups * groupRows;
    const int64_t bytes = (height + columns) * lineBytes;
    if (minStages * bytes + barrierBytes > profile.workgroupMemory ||
        groups * groupSubgroups * profile.subgroupSize > profile.maxWorkgroupSize)
      continue;
    const int64_t rowTiles = batches * llvm::divideCeil(allRows, height),
                  columnTiles = llvm::divideCeil(allColumns, columns);
    if (2 * batches * allRows * allColumns < rowTiles * columnTiles * height * columns)
      continue;
    // Clocks per product of tiles of so many columns, of which the busiest unit has `rounds`.
    struct Clocks {
      double matrix = 0, l2 = 0, shared = 0;
      double get() const { return std::max({matrix, l2, shared}); }
    };
    auto add = [&](Clocks clocks, int64_t rounds, int64_t tiles, int64_t width) {
      const double brought = double(elementBytes * (height + width)),
                   read = double(elementBytes * groups * (groupRows + width));
      clocks.matrix += double(rounds) * 2 * double(height * width) / unitFlops;
      clocks.l2 += double(tiles) * brought / l2Bytes;
      clocks.shared += double(rounds) * (brought + read) / sharedBytes;
      return clocks;
    };
    auto keep = [&](double time, int64_t narrowFrom, int64_t narrowColumns) {
      if (best && time >= least)
        return;
      least = time;
      tile.rowSubgroups = groups * groupSubgroups;
      tile.columnSubgroups = 1;
      tile.rows = groupRows / groupSubgroups;
      tile.columns = columns;
      tile.narrowFrom = narrowFrom;
      tile.narrowColumns = narrowColumns;
      best = tile;
    };
    const int64_t tiles = rowTiles * columnTiles;
    keep(add({}, llvm::divideCeil(tiles, profile.units), tiles, columns).get(), 0, 0);
    // All fills but the last one as they are, and the other columns in as many tiles as there are
    // units. Of several products, those of one are neighbours, which have few columns each.
    const int64_t fills = tiles / profile.units, wide = fills * profile.units / rowTiles,
                  narrow = profile.units / rowTiles;
    if (batches > 1 || wide == 0 || wide >= columnTiles || narrow == 0)
      continue;
    const int64_t rest = allColumns - wide * columns,
                  width = llvm::alignTo(llvm::divideCeil(rest, narrow), columnUnit);
    if (width < columns)
      keep(add(add({}, fills, rowTiles * wide, columns), 1,
               rowTiles * llvm::divideCeil(rest, width), width)
               .get(),
           wide * columns, width);
  }
  return best;
}

SmallVector<OpOperand *> weir::findFactorsToTranspose(linalg::GenericOp op,
                                                      const Profile &profile) {
  constexpr int64_t runElements = 4; // as chooseGroupTile
  const model::Device *device = model::findDevice(profile.sm);
  SmallVector<unsigned> summed;
  op.getReductionDims(summed);
  if (profile.precision != Precision::Tf32 || profile.matrixTile == 0 || !profile.isSmExact ||
      !device || op.getNumDpsInputs() != 2 || summed.size() != 1 ||
      !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return {};
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  const int64_t products = sizes[summed.front()];
  double flops = 2, bytes = 0, transposes = 0;
  for (int64_t size : sizes)
    flops *= double(size);
  SmallVector<OpOperand *> found;
  for (OpOperand *factor : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(factor);
    auto type = dyn_cast<RankedTensorType>(factor->get().getType());
    const AffineMap other =
        op.getMatchingIndexingMap(op.getDpsInputOperand(factor->getOperandNumber() == 0 ? 1 : 0));
    if (!type || !type.getElementType().isF32() || type.getRank() < 2 ||
        !map.isProjectedPermutation() || !map.isFunctionOfDim(summed.front()) ||
        getSplat(factor->get()))
      return {};
    bool isLong = false; // along a dimension of its own
    for (unsigned dim = 0; dim < sizes.size(); ++dim)
      isLong |= map.isFunctionOfDim(dim) && !other.isFunctionOfDim(dim) &&
                sizes[dim] >= tuning::matrices::minTransposedElements;
    if (!isLong)
      return {};
    if (map.getResults().back().isFunctionOfDim(summed.front()))
      continue;
    found.push_back(factor);
    bytes += 2.0 * double(type.getNumElements()) * sizeof(float);
    ++transposes;
  }
  if (products < tuning::matrices::minTransposedProducts || products % runElements != 0)
    return {};
  const double peak = *device->matrixTf32 * *device->clock * double(profile.units);
  const double saved =
      flops / peak * (1 / tuning::matrices::otherShare - 1 / tuning::matrices::groupShare);
  const double spent = bytes / (*device->dramBytes * tuning::matrices::transposeShare) +
                       transposes * device->launch.orZero();
  return saved > spent ? found : SmallVector<OpOperand *>();
}

std::optional<MatrixTile> weir::chooseMatrixTile(const KernelDomain &domain,
                                                 const Profile &profile) {
  constexpr int64_t subgroupSize = 32;
  if (profile.matrixTile == 0 || profile.vectorWidth == 1 || profile.subgroupSize != subgroupSize ||
      domain.getShape() != KernelShape::Contraction || domain.getContractions().size() != 1 ||
      domain.getBlocks())
    return std::nullopt;
  linalg::GenericOp op = domain.getContractions().front();
  MatrixTile tile{ContractionSides(domain, op, profile)};
  Type type = tile.type = getFactorType(op, profile);
  if (!type)
    return std::nullopt;
  if (std::optional<MatrixTile> group = chooseGroupTile(domain, profile, op, tile))
    return group;
  const int64_t products = getProduct(domain.getColumnSizes());
  tile.slab = profile.matrixSlab;
  // Of f32 a slab of half as many products has the same bytes.
  if (type.isF32() && products < 2 * tile.slab)
    tile.slab /= 2;
  int64_t runElements = tile.getRunElements();
  if (products < 2 * tile.slab)
    return std::nullopt;
  int64_t batches = getProduct(tile.sides.restSizes);
  int64_t allRows = domain.getSizes()[tile.sides.rowDim],
          allColumns = domain.getSizes()[tile.sides.columnDim];
  // Eight subgroups load half as much again for twice the sums. Two slabs of theirs fit only if
  // both are copied, without padding. Verifiers do not follow parts of so wide a tile.
  constexpr int64_t wide = 4;
  const int64_t wideBytes = 2 * (2 + wide) * profile.matrixTile * tile.slab * 2;
  const bool canBeWide =
      !type.isF32() && wideBytes <= profile.workgroupMemory &&
      2 * wide * subgroupSize <= profile.maxWorkgroupSize &&
      canCopy(domain, op, tile.sides.rowFactor, tile.sides.rowDim, runElements) &&
      canCopy(domain, op, tile.sides.columnFactor, tile.sides.columnDim, runElements);
  std::optional<MatrixTile> best;
  // From the largest down, until there are many workgroups.
  for (auto [rows, columns, columnSubgroups] :
       {std::tuple(2, 2, wide), {2, 2, 2}, {1, 2, 2}, {1, 1, 2}}) {
    tile.columnSubgroups = columnSubgroups;
    tile.rows = profile.matrixTile / 2 * rows;
    tile.columns = profile.matrixTile / 2 * columns;
    int64_t height = tile.getTileRows(), width = tile.getTileColumns();
    int64_t shared = runElements * tile.getSubgroups() * profile.subgroupSize;
    if (height * tile.slab % shared != 0 || width * tile.slab % shared != 0)
      continue;
    int64_t tiles =
        batches * llvm::divideCeil(allRows, height) * llvm::divideCeil(allColumns, width);
    if (columnSubgroups == wide &&
        (!canBeWide || tiles < std::max(profile.units, tuning::workgroups::many) ||
         allRows % height != 0 || allColumns % width != 0))
      continue;
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
