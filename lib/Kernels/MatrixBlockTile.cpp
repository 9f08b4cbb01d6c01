//===- MatrixBlockTile.cpp - Tiles of blocks by instructions on matrices --===//

#include "Blocks.h"
#include "Tuning.h"

using namespace mlir;
using namespace weir;

/// Returns the type of all factors that are read, where instructions on matrices add their products
/// to sums in f32; else null.
static Type getFactorType(const Blocks &blocks, OpOperand *columnFactor, const Profile &profile) {
  SmallVector<OpOperand *> factors;
  SmallVector<Operation *> ops;
  for (const Blocks::Inner &inner : blocks.inner) {
    factors.append({inner.rowFactor, inner.walkedFactor});
    ops.push_back(inner.op);
  }
  if (columnFactor) {
    factors.push_back(columnFactor);
    ops.push_back(columnFactor->getOwner());
  }
  Type type = getElementTypeOrSelf(factors.front()->get().getType());
  bool isKnown =
      type.isF16() || type.isBF16() || (type.isF32() && profile.precision == Precision::Tf32);
  bool areSame = llvm::all_of(factors, [&](OpOperand *factor) {
    return getElementTypeOrSelf(factor->get().getType()) == type;
  });
  bool areSums = llvm::all_of(
      ops, [](Operation *op) { return getElementTypeOrSelf(op->getResult(0).getType()).isF32(); });
  return isKnown && areSame && areSums ? type : Type();
}

/// Chooses the numbers of a block, such that all invocations bring as many runs of each factor, and
/// their sums fit registers. Returns whether there are such.
static bool chooseNumbers(MatrixBlockTile &tile, const KernelDomain &domain,
                          const Profile &profile) {
  constexpr int64_t unit = 16;
  const Blocks &blocks = *domain.getBlocks();
  // Two inner sums take the registers of twice as many numbers. Kernels of rows get few registers,
  // and long lines take some, as do the places of a mask beside the maxima of rows.
  const int64_t width = getProduct(getInnerSizes(blocks.inner.front().op));
  const bool isLarge = blocks.inner.size() > 1 ||
                       (!tile.columns && width > tuning::blocks::manyMatrixElements) ||
                       (blocks.isOneWalk() && !findMasked(domain).empty());
  SmallVector<int64_t> counts = {tuning::blocks::matrixNumbers, tuning::blocks::fewMatrixNumbers};
  if (isLarge)
    std::swap(counts[0], counts[1]);
  return llvm::any_of(counts, [&](int64_t numbers) {
    tile.numbers = numbers;
    int64_t elements = 0; // of workgroup memory
    bool fits = 2 * domain.getSizes()[blocks.walkedDim] >= numbers;
    auto add = [&](int64_t width, int64_t rows) {
      elements += rows * (width + tile.getRunElements());
      fits &= width % unit == 0 && width <= tuning::blocks::maxMatrixElements &&
              numbers * width / tile.getRunElements() % tile.getThreads() == 0;
    };
    for (const Blocks::Inner &inner : blocks.inner)
      add(getProduct(getInnerSizes(inner.op)), numbers + tile.getTileRows());
    if (tile.columns)
      add(tile.columns, tile.type.isF16() ? 2 * numbers : numbers);             // f16 may be split
    const int64_t sums = tile.columns + int64_t(blocks.inner.size()) * numbers; // of a row
    return fits &&
           sums * MatrixBlockTile::rows / profile.subgroupSize <= tuning::blocks::maxMatrixSums &&
           elements * tile.type.getIntOrFloatBitWidth() / 8 <= profile.workgroupMemory;
  });
}

std::optional<MatrixBlockTile> weir::chooseMatrixBlockTile(const KernelDomain &domain,
                                                           const Profile &profile) {
  constexpr int64_t columnUnit = 16, subgroupSize = 32;
  const Blocks *blocks = domain.getBlocks();
  if (!blocks || profile.matrixTile == 0 || profile.vectorWidth == 1 ||
      profile.subgroupSize != subgroupSize)
    return std::nullopt;
  int64_t allRows = domain.getSizes()[blocks->rowDim], columnTiles = 1;
  int64_t others = getProduct(domain.getRowSizes()) / allRows; // tiles of as many rows
  MatrixBlockTile tile;
  OpOperand *columnFactor = nullptr;
  if (blocks->factor) {
    ContractionSides sides(domain, cast<linalg::GenericOp>(blocks->factor->getOwner()), profile);
    columnFactor = sides.columnFactor;
    int64_t columns = domain.getSizes()[sides.columnDim];
    while (columnTiles * tuning::blocks::maxMatrixColumns < columns ||
           columns % (columnTiles * columnUnit))
      if (++columnTiles * tuning::blocks::minMatrixColumns > columns)
        return std::nullopt;
    tile.columns = columns / columnTiles;
    others = others / columns * columnTiles;
  }
  tile.type = getFactorType(*blocks, columnFactor, profile);
  if (!tile.type)
    return std::nullopt;
  std::optional<MatrixBlockTile> best;
  for (int64_t subgroups : {8, 4}) {
    // The maxima of rows take what is left of the 128 registers that eight subgroups can have where
    // a unit has two workgroups of them, but where factors of 32 bits are not split.
    if (subgroups == 8 && blocks->isOneWalk() && !tile.type.isF32())
      continue;
    tile.subgroups = subgroups;
    // Half of a tile behind the end is too much.
    if (2 * allRows < tile.getTileRows() || tile.getThreads() > profile.maxWorkgroupSize ||
        !chooseNumbers(tile, domain, profile))
      continue;
    best = tile;
    if (others * llvm::divideCeil(allRows, tile.getTileRows()) >=
        tuning::blocks::manyMatrixWorkgroups)
      break;
  }
  return best;
}
