//===- Tile.cpp - The tile of sums that an invocation keeps ---------------===//

#include "Tile.h"
#include "TileBlock.h"
#include "Tuning.h"

using namespace mlir;
using namespace weir;

Tile::Tile(PointEmitter &emitter, linalg::GenericOp op)
    : emitter(emitter), profile(emitter.profile), op(op), sizes(emitter.domain.getSizes()),
      numResultDims(emitter.domain.getNumRows()), summedDims(emitter.domain.getSummedDims(op)),
      memory(profile.getDeclaredMemory() / emitter.domain.getContractions().size()) {
  chooseColumns();
  chooseRows();
  chooseDot();
  if (way == Way::Direct && isPageApart())
    way = Way::Packed;
}

std::vector<Tile> Tile::choose(PointEmitter &emitter) {
  std::vector<Tile> tiles;
  for (linalg::GenericOp op : emitter.domain.getContractions())
    tiles.push_back(Tile(emitter, op));
  // The rows and columns are chosen for the one with most products. Vectors of products fit any
  // tile, the others need one of vectors.
  Tile &first = *std::max_element(tiles.begin(), tiles.end(), [](const Tile &a, const Tile &b) {
    return std::pair(a.way != Way::Dot, getProduct(a.getSummed())) <
           std::pair(b.way != Way::Dot, getProduct(b.getSummed()));
  });
  first.chooseTile();
  for (Tile &tile : tiles)
    if (&tile != &first)
      tile.adopt(first);
  int64_t packedTiles = 1;
  for (Tile &tile : tiles) {
    tile.chooseSumBlocks();
    tile.choosePacking();
    packedTiles = std::max(packedTiles, tile.packedTiles);
  }
  for (const Tile &tile : tiles)
    if (tile.isChunked)
      packedTiles = std::min(packedTiles, tile.packedTiles);
  for (Tile &tile : tiles) {
    tile.packedTiles = packedTiles;
    tile.chooseUnrolling();
  }
  return tiles;
}

/// Takes the rows and columns of another contraction's tile. Whether vectors are of products stays,
/// so that the bits of a sum do not depend on what shares its kernel.
void Tile::adopt(const Tile &other) {
  rowDims = other.rowDims;
  columnDims = other.columnDims;
  batchDims = other.batchDims;
  otherRowDims = other.otherRowDims;
  rows = other.rows;
  columns = other.columns;
  rowTiles = other.rowTiles;
  columnTiles = other.columnTiles;
  rowUnit = other.rowUnit;
  columnUnit = other.columnUnit;
  OpOperand *left = op.getDpsInputOperand(0), *right = op.getDpsInputOperand(1);
  bool isLeft = variesWith(emitter.domain, left, columnDims.front());
  columnFactor = isLeft ? left : right;
  rowFactor = isLeft ? right : left;
  if (way == Way::Dot)
    return;
  lanes = other.lanes;
  way = isVector(columnFactor, columnDims, lanes) ? Way::Direct : Way::Packed;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

int64_t Tile::count(ArrayRef<int64_t> dims) const {
  return getProduct(llvm::map_to_vector(dims, [&](int64_t dim) { return sizes[dim]; }));
}

SmallVector<AffineExpr> Tile::getCoordinates() const {
  return llvm::map_to_vector(llvm::seq(sizes.size()),
                             [&](size_t dim) { return emitter.dim(productCoordinate + dim); });
}

void Tile::setDigits(SmallVectorImpl<AffineExpr> &point, ArrayRef<int64_t> dims,
                     AffineExpr number) const {
  SmallVector<int64_t> counts = llvm::map_to_vector(dims, [&](int64_t dim) { return sizes[dim]; });
  for (auto [dim, digit] : llvm::zip_equal(dims, emitter.delinearize(number, counts)))
    point[dim] = digit;
}

SmallVector<AffineExpr> Tile::getIndices(OpOperand *operand, ArrayRef<AffineExpr> point) const {
  return emitter.apply(getAccessMap(op, operand), emitter.getLoops(op, point));
}

bool Tile::isVector(OpOperand *factor, ArrayRef<int64_t> dims, int64_t vector) const {
  emitter.setLanes(vector);
  SmallVector<AffineExpr> point = getCoordinates();
  AffineExpr first = emitter.dim(productCoordinate + dims.back()) * getUnit(dims, vector);
  setDigits(point, dims, first + emitter.vectorLane());
  return vector > 1 && emitter.isVectorFriendly(factor->get(), getIndices(factor, point));
}

int64_t Tile::getUnit(ArrayRef<int64_t> dims, int64_t max) const {
  if (dims.size() == 1)
    return 1;
  int64_t unit = max;
  while (count(dims) % unit != 0)
    unit /= 2;
  return unit;
}

int64_t Tile::getRun(OpOperand *factor, ArrayRef<int64_t> dims, int64_t max) const {
  int64_t run = max;
  while (run > 1 && !isVector(factor, dims, run))
    run /= 2;
  return run;
}

SmallVector<Tile::Loop> Tile::getLoops(ArrayRef<int64_t> dims, int64_t elements,
                                       int64_t lanes) const {
  SmallVector<int64_t> outer(dims);
  SmallVector<Loop> loops; // the innermost first
  int64_t trips = elements / lanes;
  while (outer.size() > 1) {
    Loop loop;
    int64_t unit = loops.empty() ? lanes : 1;
    do
      loop.dims.insert(loop.dims.begin(), outer.pop_back_val());
    while (outer.size() > 1 && count(loop.dims) % unit != 0);
    loop.count = count(loop.dims) / unit;
    if (count(loop.dims) % unit != 0 || trips % loop.count != 0) {
      outer.append(loop.dims);
      break;
    }
    trips /= loop.count;
    loops.push_back(loop);
  }
  loops.push_back({outer, trips});
  std::reverse(loops.begin(), loops.end());
  return loops;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// Returns the longest vector of so many elements.
int64_t Tile::getMaxLanes(int64_t elements) const {
  int64_t width = profile.vectorWidth;
  if (getSumType().getIntOrFloatBitWidth() == 64)
    width = std::max<int64_t>(width / 2, 1);
  return std::min<int64_t>(width, llvm::bit_floor<uint64_t>(std::max<int64_t>(elements, 1)));
}

/// Returns the number of elements of the result that an element of a factor is used for.
int64_t Tile::getReuse(OpOperand *factor) const {
  int64_t reuse = 1;
  for (int64_t dim = 0; dim < numResultDims; ++dim)
    if (!variesWith(emitter.domain, factor, dim))
      reuse *= sizes[dim];
  return reuse;
}

/// Returns the time of a product, roughly, in operations of a vector: its part of an fma, of a copy
/// and of a store.
double Tile::getCost(const Candidate &candidate) const {
  int64_t products = std::max<int64_t>(getProduct(getSummed()), 1);
  double cost = 1.0 / candidate.lanes;
  if (candidate.way == Way::Packed) {
    int64_t run = getRun(candidate.factor, candidate.dims, candidate.lanes);
    if (!summedDims.empty() && sizes[summedDims.back()] % candidate.lanes == 0 &&
        isVector(candidate.factor, summedDims.back(), candidate.lanes))
      run = std::max(run, tuning::tiles::transposedRun);
    cost += tuning::tiles::copyOperations /
            (run *
             std::clamp<int64_t>(getReuse(candidate.factor), 1, 2 * tuning::tiles::minRowsOfCopy));
  }
  // Neighbouring columns are neighbours in the result as far as they are its last dimensions.
  int64_t neighbours = 1;
  SmallVector<int64_t> resultDims = getResultDims(emitter.domain, op);
  while (!resultDims.empty() && llvm::is_contained(candidate.dims, resultDims.back()))
    neighbours *= sizes[resultDims.pop_back_val()];
  int64_t stored = candidate.lanes;
  if (neighbours != count(candidate.dims))
    while (stored > 1 && neighbours % stored != 0)
      stored /= 2;
  return cost + tuning::tiles::storeOperations / (double(stored) * products);
}

/// Returns the best single dimension for the columns: the innermost one of the result along which a
/// factor lies in whole vectors; else the one whose copy serves most rows.
Tile::Candidate Tile::chooseDimension() {
  Candidate chosen;
  int64_t best = -1;
  SmallVector<int64_t> resultDims = getResultDims(emitter.domain, op);
  for (int64_t dim : llvm::reverse(resultDims)) {
    OpOperand *factors[] = {op.getDpsInputOperand(0), op.getDpsInputOperand(1)};
    bool isLeft = variesWith(emitter.domain, factors[0], dim);
    if (isLeft == variesWith(emitter.domain, factors[1], dim))
      continue;
    OpOperand *factor = factors[isLeft ? 0 : 1];
    if (isInBlocks(factor))
      continue;
    int64_t vector = getMaxLanes(sizes[dim]);
    bool isDirect = isVector(factor, dim, vector);
    int64_t score =
        vector * (isDirect ? tuning::tiles::rowsOfDirect
                           : std::min(getReuse(factor), 4 * tuning::tiles::minRowsOfCopy));
    if (score <= best)
      continue;
    best = score;
    chosen = {factor, {dim}, isDirect ? Way::Direct : Way::Packed, vector};
  }
  return chosen;
}

/// Chooses the dimensions of the columns: one, or the last ones of a factor where that is too short
/// for vectors or the result would be stored in pieces.
void Tile::chooseColumns() {
  Candidate chosen = chooseDimension();
  double cost = 0.8 * getCost(chosen); // the numbers are rough
  int64_t enough = 2 * getMaxLanes(profile.vectorWidth);
  SmallVector<int64_t> resultDims = getResultDims(emitter.domain, op);
  for (OpOperand *factor : op.getDpsInputOperands()) {
    OpOperand *other = op.getDpsInputOperand(factor == op.getDpsInputOperand(0) ? 1 : 0);
    Candidate candidate{factor, {}, Way::Packed, 1};
    if (isInBlocks(factor))
      continue;
    for (int64_t dim : llvm::reverse(resultDims)) {
      if (!variesWith(emitter.domain, factor, dim) || variesWith(emitter.domain, other, dim))
        continue;
      candidate.dims.insert(candidate.dims.begin(), dim);
      candidate.lanes = getMaxLanes(count(candidate.dims));
      bool isSingle = candidate.dims.size() == 1;
      if (candidate.lanes < chosen.lanes ||
          (isSingle && (chosen.way != Way::Direct || chosen.dims == candidate.dims)))
        continue;
      candidate.way = isVector(factor, candidate.dims, candidate.lanes) ? Way::Direct : Way::Packed;
      if (double other = getCost(candidate); other < cost) {
        chosen = candidate;
        cost = other;
      }
      if (count(candidate.dims) >= enough)
        break;
    }
  }
  columnDims = chosen.dims;
  columnFactor = chosen.factor;
  rowFactor = op.getDpsInputOperand(columnFactor == op.getDpsInputOperand(0) ? 1 : 0);
  lanes = chosen.lanes;
  way = chosen.way;
}

/// Chooses the dimension of the rows: the innermost one with enough of them, or else the longest.
void Tile::chooseRows() {
  int64_t rowDim = -1;
  for (int64_t dim = numResultDims; dim-- > 0;) {
    if (llvm::is_contained(columnDims, dim))
      continue;
    if (variesWith(emitter.domain, columnFactor, dim)) {
      batchDims.insert(batchDims.begin(), dim);
      continue;
    }
    otherRowDims.insert(otherRowDims.begin(), dim);
    if (variesWith(emitter.domain, rowFactor, dim) &&
        (rowDim < 0 || (sizes[rowDim] < profile.contractionRows && sizes[dim] > sizes[rowDim])))
      rowDim = dim;
  }
  const Blocks *blocks = emitter.domain.getBlocks();
  if (blocks)
    rowDim = blocks->rowDim;
  rowDims = {rowDim};
  llvm::erase(otherRowDims, rowDim);
  if (blocks)
    return;
  // Few elements of dimensions inside that one are rows of the same tile: they may be neighbours.
  SmallVector<int64_t> inside(llvm::make_filter_range(otherRowDims, [&](int64_t dim) {
    return dim > rowDim && variesWith(emitter.domain, rowFactor, dim);
  }));
  rowUnit = count(inside);
  if (rowUnit < 1 || 2 * rowUnit > profile.contractionRows)
    rowUnit = 1;
  if (rowUnit > 1) {
    rowDims.append(inside);
    llvm::erase_if(otherRowDims, [&](int64_t dim) { return llvm::is_contained(inside, dim); });
  }
}

/// Chooses vectors of products, which need no copy, for few rows or too many products.
void Tile::chooseDot() {
  int64_t products = getProduct(getSummed());
  if (way != Way::Packed || columnDims.size() > 1 || summedDims.empty() || products == 0 ||
      emitter.domain.getBlocks())
    return;
  int64_t innermost = summedDims.back(), vector = getMaxLanes(sizes[innermost]);
  bool isDot = vector > 1 && sizes[innermost] % vector == 0 &&
               isVector(columnFactor, innermost, vector) && isVector(rowFactor, innermost, vector);
  int64_t bytes = getSumType().getIntOrFloatBitWidth() / 8;
  bool fits = products * lanes * bytes <= profile.getDeclaredMemory();
  if (isDot && (count(rowDims) * count(otherRowDims) < tuning::tiles::minRowsOfCopy || !fits)) {
    way = Way::Dot;
    lanes = vector;
  }
}

/// Whether vectors of the column factor that are added one after the other lie whole pages apart,
/// as in a row-major factor of 1024 columns of f32, and many rows read each: caches keep only a few
/// lines of such places, so that reading them again costs more than copying them once.
bool Tile::isPageApart() const {
  if (emitter.domain.getBlocks() || columnDims.size() != 1 || summedDims.empty() ||
      sizes[summedDims.back()] < tuning::tiles::minPages ||
      getReuse(columnFactor) < tuning::tiles::minRowsOfCopy)
    return false;
  auto type = cast<RankedTensorType>(columnFactor->get().getType());
  SmallVector<AffineExpr> point = getCoordinates(), next = point;
  next[summedDims.back()] = next[summedDims.back()] + 1;
  std::optional<int64_t> distance = emitter.getDistance(
      type.getShape(), getIndices(columnFactor, point), getIndices(columnFactor, next));
  return distance.value_or(0) != 0 &&
         *distance * type.getElementTypeBitWidth() / 8 % tuning::tiles::page == 0;
}

void Tile::chooseTile() {
  int64_t units = count(rowDims) / rowUnit, allColumns = count(columnDims);
  rows = llvm::divideCeil(units, llvm::divideCeil(units, profile.contractionRows / rowUnit));
  rowTiles = llvm::divideCeil(units, rows);
  rows *= rowUnit;
  int64_t vectors = std::min(profile.contractionRows * profile.contractionColumns / rows,
                             tuning::tiles::maxWidening * profile.contractionColumns);
  int64_t unit = way == Way::Dot ? 1 : lanes;
  // A block is computed again for each tile of columns.
  if (emitter.domain.getBlocks())
    vectors = tuning::blocks::maxColumnsOfProcessor / unit;
  vectors = std::clamp<int64_t>(vectors, 1, allColumns / unit);
  int64_t bytes = getSumType().getIntOrFloatBitWidth() / 8;
  int64_t vectorBytes = getProduct(getSummed()) * lanes * bytes;
  if (way == Way::Packed && columnDims.size() == 1 && vectorBytes <= memory)
    vectors = std::min(vectors, memory / std::max<int64_t>(vectorBytes, 1));
  columns = vectors * unit;
  columnTiles = llvm::divideCeil(allColumns, columns);
  columnUnit = getUnit(columnDims, lanes);
}

/// Chooses how many products a copy has, and how many tiles of rows use it.
void Tile::choosePacking() {
  if (emitter.domain.getBlocks())
    return chooseBlocks();
  chunk = getSummed().empty() ? 1 : getSummed().front();
  if (way != Way::Packed)
    return;
  int64_t bytes = getSumType().getIntOrFloatBitWidth() / 8;
  int64_t tiles = count(otherRowDims) * rowTiles;
  int64_t enough = llvm::divideCeil(columnDims.size() > 1 ? 2 * tuning::tiles::minRowsOfCopy
                                                          : tuning::tiles::minRowsOfCopy,
                                    rows);
  packedTiles = count(batchDims) * columnTiles * tiles / tuning::workgroups::few;
  packedTiles = std::min(std::max(packedTiles, enough), tiles);
  int64_t products = getProduct(getSummed());
  if (products * columns * bytes <= memory)
    return;
  // A few products at once: the sums of all tiles that use them stay in memory in between.
  int64_t most = std::max<int64_t>(memory / 2 / (columns * bytes), 1);
  ArrayRef<int64_t> inside = getSummed();
  while (inside.size() > 1 && getProduct(inside.drop_front()) >= most)
    inside = inside.drop_front();
  chunkDepth = getSummed().size() - inside.size();
  chunk = std::clamp<int64_t>(most / getProduct(inside.drop_front()), 1, inside.front());
  if (blockDepth >= 0 && blockDepth <= chunkDepth) {
    // A chunk has whole blocks of a long sum, at least one.
    chunk = blockDepth < chunkDepth ? block : std::max(chunk - chunk % block, block);
    chunkDepth = blockDepth;
  } else {
    // Chunks of one size need one piece of code.
    int64_t even = chunk;
    while (inside.front() % even != 0)
      --even;
    if (even * 4 >= chunk)
      chunk = even;
  }
  isChunked = true;
  packedTiles = std::clamp<int64_t>(memory / 2 / (rows * columns * bytes), 1, packedTiles);
}

/// Chooses the tiles of rows that use what a block of their factor is computed from. The sums of
/// all of them stay in memory from block to block.
void Tile::chooseBlocks() {
  chunkDepth = getSummed().size() - 1;
  chunk = TileBlock(emitter, rows).getColumns();
  isChunked = true;
  int64_t bytes = getSumType().getIntOrFloatBitWidth() / 8;
  int64_t tiles = count(otherRowDims) * rowTiles;
  packedTiles = count(batchDims) * columnTiles * tiles / tuning::workgroups::few;
  packedTiles = std::min(
      std::max<int64_t>(packedTiles, llvm::divideCeil(tuning::tiles::minRowsOfCopy, rows)), tiles);
  packedTiles = std::clamp<int64_t>(memory / 2 / (rows * columns * bytes), 1, packedTiles);
}

int64_t Tile::getSummedColumns() const {
  if (way != Way::Dot && !emitter.domain.getBlocks())
    return columns;
  int64_t unit = way == Way::Dot ? 1 : lanes, units = columns / unit;
  int64_t most = profile.contractionRows * profile.contractionColumns / rows;
  int64_t count = std::clamp<int64_t>(
      std::min(most, tuning::tiles::maxWidening * profile.contractionColumns), 1, units);
  while (units % count != 0)
    --count;
  return count * unit;
}

int64_t Tile::getPackedProducts() const {
  return getSummed().empty() ? 1 : chunk * getProduct(getSummed().drop_front(chunkDepth + 1));
}

/// Chooses the blocks of a long sum. They depend on the sizes alone, so that bits do not depend on
/// the tile.
void Tile::chooseSumBlocks() {
  const int64_t sumsOfVector = way == Way::Dot ? lanes : 1; // that take a vector of products
  ArrayRef<int64_t> inside = getSummed();
  const int64_t terms = getProduct(inside) / sumsOfVector;
  if (emitter.domain.getBlocks() ||
      !emitter.isLongSum((*getCombiners(op)).front().combine, terms, tuning::sums::maxProducts,
                         /*trips=*/terms))
    return;
  const int64_t products = tuning::sums::blockTerms * sumsOfVector;
  do {
    inside = inside.drop_front();
    ++blockDepth;
  } while (getProduct(inside) > products);
  block = products / getProduct(inside);
  if (block > 4)
    block -= block % 4; // so many may stand one behind the other
}

/// Chooses how many products of each summed dimension stand one behind the other: all of short
/// inner dimensions, or some of the innermost one.
void Tile::chooseUnrolling() {
  ArrayRef<int64_t> summed = getSummed();
  unrolled.assign(summed.size(), 1);
  int64_t product = 1;
  for (int64_t depth = summed.size(); depth-- > 0;) {
    int64_t size = depth == chunkDepth ? chunk : summed[depth];
    if (way == Way::Dot && depth + 1 == int64_t(summed.size()))
      size /= lanes;
    if (size * product <= tuning::tiles::maxUnrolled &&
        size * product * rows * getVectors() <= tuning::tiles::maxUnrolledSums) {
      product *= unrolled[depth] = std::max<int64_t>(size, 1);
      continue;
    }
    if (product == 1)
      unrolled[depth] = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
    break;
  }
}
