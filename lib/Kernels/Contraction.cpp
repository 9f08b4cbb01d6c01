//===- Contraction.cpp - Kernels that sum products ------------------------===//
//
// A subgroup owns a tile of sums: some rows of the result, times some units of
// columns for each of its invocations. A unit is a column, or two neighbouring
// ones; neighbouring invocations own neighbouring units. The subgroup walks the
// summed dimensions once, in order, so that the bits don't depend on the tile; those
// of a long sum in blocks.
//
// All invocations need the same row factors, so each one loads those of other
// products, and a shuffle hands them round. A chunk has as many steps as there are
// lanes, a step one product or two neighbouring ones. The epilogue (bias, activation)
// is computed from the sums in registers, row by row.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

namespace {
enum ContractionCoordinates : unsigned {
  chunkCoordinate = productCoordinate,
  laneStepCoordinate, ///< the step whose row factors this invocation loads
  stepCoordinate,     ///< of the chunk
  firstRowCoordinate,
  resultRowCoordinate,
  unitsCoordinate, ///< and those after it: the units of columns
};

class ContractionEmitter {
public:
  ContractionEmitter(PointEmitter &emitter)
      : emitter(emitter), profile(emitter.profile), op(emitter.domain.getContractions().front()),
        sizes(emitter.domain.getSizes()), sides(emitter.domain, op, profile) {}
  void run(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const Profile &profile;
  linalg::GenericOp op;
  ArrayRef<int64_t> sizes;
  ContractionSides sides;

  int64_t tileRows = 1;
  int64_t sumRows = 1;     ///< one or two: of the sums that are one value
  int64_t units = 1;       ///< of columns, for each invocation
  int64_t unitColumns = 1; ///< one or two
  int64_t columnUnits = 0; ///< of the result
  int64_t rowTiles = 1, columnTiles = 1;
  int64_t stepProducts = 1;       ///< one or two
  SmallVector<int64_t> stepSizes; ///< of the summed dimensions, in steps
  int64_t steps = 1;

  // The place of the tile.
  SmallVector<AffineExpr> rest;
  AffineExpr rowTile, firstRow;
  SmallVector<AffineExpr> unitOf; ///< clamped: a unit beyond the last repeats it

  bool hasPartialRows() const { return sizes[sides.rowDim] % tileRows != 0; }
  bool hasPartialColumns() const { return columnUnits % (profile.subgroupSize * units) != 0; }

  void chooseTile();
  SmallVector<AffineExpr> getFactorIndices(OpOperand *operand, ArrayRef<AffineExpr> point);
  SmallVector<AffineExpr> getProducts(AffineExpr step, AffineExpr product);
  AffineExpr getFirstColumn(AffineExpr unit) { return unit * unitColumns; }
  AffineExpr getOwnUnit(AffineExpr columnTile, int64_t unit);
  Value clamp(AffineExpr value, int64_t last);

  SmallVector<SmallVector<Value>> loadRowFactors(AffineExpr step);
  SmallVector<SmallVector<Value>> raiseRows(AffineExpr step, int64_t chunkSteps,
                                            SmallVectorImpl<Value> &running);
  SmallVector<Value> loadColumnFactors(AffineExpr unit, AffineExpr step);
  Value join(ArrayRef<Value> parts);
  Value getSum(ArrayRef<Value> sums, int64_t unit, Value row);
  SmallVector<Value> sumChunk(Value chunk, int64_t chunkSteps, ValueRange sums);
  SmallVector<Value> sumProducts();
  void emitTile(Value tile);
  void storeUnit(int64_t unit, AffineExpr ownUnit, ArrayRef<Value> sums);
  void storeRow(AffineExpr row, Value number, AffineExpr ownUnit, Value total);
  void walkRows(function_ref<void(AffineExpr row, Value number)> body);

  // One walk that makes the maxima and sums of rows, too.
  bool isOneWalk() const {
    const Blocks *blocks = emitter.domain.getBlocks();
    return blocks && blocks->isOneWalk();
  }
  int64_t countSums() const { return tileRows / sumRows * units; }
  SmallVector<Value> maxima, rowSums; ///< when the walk is done
};
} // namespace

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

bool weir::variesWith(const KernelDomain &domain, OpOperand *operand, int64_t dim) {
  auto op = cast<linalg::GenericOp>(operand->getOwner());
  AffineMap map = op.getMatchingIndexingMap(operand);
  for (auto [loop, ofDomain] : llvm::enumerate(domain.getDims(op)))
    if (ofDomain == dim && map.isFunctionOfDim(loop))
      return true;
  return false;
}

SmallVector<int64_t> weir::getResultDims(const KernelDomain &domain, linalg::GenericOp op) {
  SmallVector<int64_t> dims;
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (AffineExpr result : written.getResults())
    if (auto loop = dyn_cast<AffineDimExpr>(result))
      if (int64_t dim = domain.getDims(op)[loop.getPosition()]; dim >= 0)
        dims.push_back(dim);
  return dims;
}

SmallVector<AffineExpr> weir::getDigits(PointEmitter &emitter, AffineExpr number,
                                        ArrayRef<int64_t> counts) {
  SmallVector<int64_t> kept;
  llvm::copy_if(counts, std::back_inserter(kept), [](int64_t count) { return count != 1; });
  SmallVector<AffineExpr> digits = emitter.delinearize(number, kept);
  for (auto [i, count] : llvm::enumerate(counts))
    if (count == 1)
      digits.insert(digits.begin() + i, emitter.constant(0));
  return digits;
}

void weir::guardInside(PointEmitter &emitter, unsigned coordinate, AffineExpr value, int64_t size,
                       function_ref<void(AffineExpr)> body) {
  Value number = emitter.expand(value);
  Value inside = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult,
                                       number, emitter.indexConstant(size));
  emitter.guard(inside, {}, [&]() -> SmallVector<Value> {
    body(emitter.setCoordinate(coordinate, number));
    return {};
  });
}

Value weir::evaluateFactor(PointEmitter &emitter, OpOperand *factor, ArrayRef<AffineExpr> indices) {
  Value value = emitter.evaluate(factor->get(), indices);
  Type sum = emitter.getElementType(factor->getOwner()->getResult(0));
  if (getElementTypeOrSelf(value.getType()) == sum)
    return value;
  Type wide = sum;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    wide = vector.clone(sum);
  return arith::ExtFOp::create(emitter.builder(), emitter.loc, wide, value);
}

/// Returns the numbers of the results that have an element for each row of blocks alone, or of the
/// others.
static SmallVector<unsigned> getResults(const PointEmitter &emitter, bool ofBlockRows) {
  SmallVector<unsigned> results;
  for (auto [result, value] : llvm::enumerate(emitter.computed))
    if (emitter.domain.isOfBlockRows(value.getDefiningOp()) == ofBlockRows)
      results.push_back(result);
  return results;
}

void weir::storeSums(PointEmitter &emitter, ArrayRef<Value> sums, ArrayRef<AffineExpr> point) {
  for (auto [contraction, sum] : llvm::zip_equal(emitter.domain.getContractions(), sums)) {
    linalg::GenericOp op = contraction;
    Value total = sum;
    OpOperand &init = op.getDpsInitsMutable()[0];
    auto splat = dyn_cast_or_null<FloatAttr>(getSplat(init.get()));
    if (!splat || !splat.getValue().isZero()) {
      SmallVector<AffineExpr> indices =
          emitter.apply(getAccessMap(op, &init), emitter.getLoops(op, point));
      total = emitter.combine((*getCombiners(op)).front().combine,
                              emitter.evaluate(init.get(), indices), total);
    }
    emitter.setReduced(op->getResult(0), total);
  }
  emitResults(emitter, getResults(emitter, /*ofBlockRows=*/false), point);
}

void weir::setSoftmax(PointEmitter &emitter, Value maximum, Value sum) {
  const SoftmaxSums &reduced = *emitter.domain.getBlocks()->softmax;
  emitter.setReduced(reduced.maximum->getResult(0), maximum);
  emitter.setReduced(reduced.sum->getResult(0), sum);
}

void weir::storeBlockRow(PointEmitter &emitter, Value maximum, Value sum,
                         ArrayRef<AffineExpr> point) {
  emitter.startPoint();
  setSoftmax(emitter, maximum, sum);
  emitResults(emitter, getResults(emitter, /*ofBlockRows=*/true), point);
}

bool weir::storesBlockRows(const PointEmitter &emitter) {
  return !getResults(emitter, /*ofBlockRows=*/true).empty();
}

ContractionSides::ContractionSides(const KernelDomain &domain, linalg::GenericOp op,
                                   const Profile &profile) {
  OpOperand *lhs = op.getDpsInputOperand(0), *rhs = op.getDpsInputOperand(1);
  ArrayRef<int64_t> sizes = domain.getSizes();
  SmallVector<int64_t> order = getResultDims(domain, op);
  auto choose = [&](int64_t enough, function_ref<bool(int64_t)> isCandidate) {
    int64_t best = -1;
    for (int64_t dim : llvm::reverse(order))
      if (isCandidate(dim) && (best < 0 || (sizes[best] < enough && sizes[dim] > sizes[best])))
        best = dim;
    return best;
  };
  const Blocks *blocks = domain.getBlocks();
  columnDim = choose(profile.subgroupSize, [&](int64_t dim) {
    return variesWith(domain, lhs, dim) != variesWith(domain, rhs, dim) &&
           (!blocks || !variesWith(domain, blocks->factor, dim));
  });
  bool isLeft = variesWith(domain, lhs, columnDim);
  columnFactor = isLeft ? lhs : rhs;
  rowFactor = isLeft ? rhs : lhs;
  rowDim = blocks ? blocks->rowDim : choose(tuning::contractions::enoughRows, [&](int64_t dim) {
    return variesWith(domain, rowFactor, dim) && !variesWith(domain, columnFactor, dim);
  });
  for (int64_t dim = 0; dim < int64_t(domain.getNumRows()); ++dim)
    if (dim != columnDim && dim != rowDim)
      restSizes.push_back(sizes[dim]);
}

SmallVector<AffineExpr> ContractionSides::getPoint(AffineExpr row, AffineExpr column,
                                                   ArrayRef<AffineExpr> rest,
                                                   ArrayRef<AffineExpr> products) const {
  SmallVector<AffineExpr> point;
  unsigned nextRest = 0;
  for (int64_t dim = 0; dim < int64_t(restSizes.size()) + 2; ++dim)
    point.push_back(dim == columnDim ? column : dim == rowDim ? row : rest[nextRest++]);
  llvm::append_range(point, products);
  return point;
}

/// Chooses the size of the tile.
void ContractionEmitter::chooseTile() {
  // Tiles of about the same size; an even number of rows where two of them are
  // loaded at once.
  const bool isInBlocks = emitter.domain.getBlocks();
  int64_t rows = sizes[sides.rowDim];
  tileRows = llvm::divideCeil(rows, llvm::divideCeil(rows, profile.contractionRows));
  if (rows % 2 == 0)
    tileRows += tileRows % 2;
  if (isInBlocks)
    tileRows = chooseBlockRows(rows);
  sumRows = tileRows % 2 == 0 ? 2 : 1;
  rowTiles = llvm::divideCeil(rows, tileRows);

  bool pairs = profile.vectorWidth > 1;
  unitColumns = pairs && sizes[sides.columnDim] % 2 == 0 ? 2 : 1;
  columnUnits = sizes[sides.columnDim] / unitColumns;
  int64_t max = profile.contractionColumns * profile.contractionRows / (tileRows * unitColumns);
  // A block is computed again for each tile of columns.
  const int64_t maxUnits = tuning::contractions::maxColumns / unitColumns;
  max = isInBlocks ? maxUnits : std::clamp<int64_t>(max, 1, maxUnits);
  int64_t subgroups = profile.workgroupSize / profile.subgroupSize;
  auto narrow = [&](int64_t wanted) {
    columnTiles = llvm::divideCeil(columnUnits, profile.subgroupSize * wanted);
    units = llvm::divideCeil(columnUnits, profile.subgroupSize * columnTiles);
  };
  narrow(max);
  while (units > 1 && !isInBlocks &&
         getProduct(sides.restSizes) * rowTiles * columnTiles < tuning::workgroups::few * subgroups)
    narrow(units - 1);

  ArrayRef<int64_t> products = emitter.domain.getColumnSizes();
  stepProducts = pairs && !isInBlocks && !products.empty() && products.back() % 2 == 0 ? 2 : 1;
  stepSizes = SmallVector<int64_t>(products);
  if (!products.empty())
    stepSizes.back() /= stepProducts;
  steps = getProduct(stepSizes);
}

SmallVector<AffineExpr> ContractionEmitter::getFactorIndices(OpOperand *operand,
                                                             ArrayRef<AffineExpr> point) {
  return emitter.apply(getAccessMap(op, operand), emitter.getLoops(op, point));
}

/// Returns the summed coordinates of a step's products.
SmallVector<AffineExpr> ContractionEmitter::getProducts(AffineExpr step, AffineExpr product) {
  SmallVector<AffineExpr> at = emitter.delinearize(step, stepSizes);
  if (!at.empty())
    at.back() = at.back() * stepProducts + product;
  return at;
}

Value ContractionEmitter::clamp(AffineExpr value, int64_t last) {
  return arith::MinUIOp::create(emitter.builder(), emitter.loc, emitter.expand(value),
                                emitter.indexConstant(last));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Loads the row factor of each product of a step, for each row of the tile.
SmallVector<SmallVector<Value>> ContractionEmitter::loadRowFactors(AffineExpr step) {
  AffineExpr column = emitter.constant(0), lane = emitter.vectorLane();
  auto load = [&](AffineExpr row, AffineExpr product) {
    return evaluateFactor(
        emitter, sides.rowFactor,
        getFactorIndices(sides.rowFactor,
                         sides.getPoint(row, column, rest, getProducts(step, product))));
  };
  auto isWhole = [&](AffineExpr row, AffineExpr product) {
    return emitter.isVectorFriendly(
        sides.rowFactor->get(),
        getFactorIndices(sides.rowFactor,
                         sides.getPoint(row, column, rest, getProducts(step, product))));
  };
  SmallVector<SmallVector<Value>> factors(tileRows, SmallVector<Value>(stepProducts));
  if (emitter.domain.getBlocks()) {
    std::vector<SmallVector<AffineExpr>> points;
    for (int64_t row = 0; row < tileRows; ++row)
      points.push_back(
          sides.getPoint(firstRow + row, column, rest, getProducts(step, emitter.constant(0))));
    SubgroupBlock(emitter).atPoints(points, [&](size_t row) {
      factors[row].front() = load(firstRow + row, emitter.constant(0));
    });
    return factors;
  }
  auto split = [&](Value pair, Value &first, Value &second) {
    pair = emitter.broadcast(pair);
    first = emitter.extract(pair, 0);
    second = emitter.extract(pair, 1);
  };
  if (stepProducts == 2 && isWhole(firstRow, lane)) {
    for (int64_t row = 0; row < tileRows; ++row)
      split(load(firstRow + row, lane), factors[row][0], factors[row][1]);
    return factors;
  }
  bool pairsRows =
      profile.vectorWidth > 1 && tileRows % 2 == 0 && isWhole(firstRow + lane, emitter.constant(0));
  for (int64_t product = 0; product < stepProducts; ++product)
    for (int64_t row = 0; row < tileRows; row += pairsRows ? 2 : 1) {
      AffineExpr number = emitter.constant(product);
      if (pairsRows)
        split(load(firstRow + row + lane, number), factors[row][product],
              factors[row + 1][product]);
      else
        factors[row][product] = load(firstRow + row, number);
    }
  return factors;
}

/// Loads the column factor of each product of a step: scalars, or vectors over the unit's
/// columns.
SmallVector<Value> ContractionEmitter::loadColumnFactors(AffineExpr unit, AffineExpr step) {
  AffineExpr row = emitter.constant(0), lane = emitter.vectorLane();
  AffineExpr first = getFirstColumn(unit);
  auto getIndices = [&](AffineExpr column, AffineExpr product) {
    return getFactorIndices(sides.columnFactor,
                            sides.getPoint(row, column, rest, getProducts(step, product)));
  };
  auto load = [&](AffineExpr column, AffineExpr product) {
    return evaluateFactor(emitter, sides.columnFactor, getIndices(column, product));
  };
  auto isWhole = [&](AffineExpr column, AffineExpr product) {
    return emitter.isVectorFriendly(sides.columnFactor->get(), getIndices(column, product));
  };
  bool acrossColumns = unitColumns == 2 && isWhole(first + lane, emitter.constant(0));
  SmallVector<Value> factors;
  if (stepProducts == 2 && !acrossColumns && isWhole(first, lane)) {
    // Stored with neighbouring products side by side: load those, transpose.
    SmallVector<Value> columns;
    for (int64_t column = 0; column < unitColumns; ++column)
      columns.push_back(emitter.broadcast(load(first + column, lane)));
    for (int64_t product = 0; product < stepProducts; ++product) {
      SmallVector<Value> elements = llvm::map_to_vector(
          columns, [&](Value column) { return emitter.extract(column, product); });
      factors.push_back(unitColumns == 1
                            ? elements.front()
                            : vector::FromElementsOp::create(emitter.builder(), emitter.loc,
                                                             columns.front().getType(), elements));
    }
    return factors;
  }
  for (int64_t product = 0; product < stepProducts; ++product) {
    AffineExpr number = emitter.constant(product);
    factors.push_back(unitColumns == 1 ? load(first, number)
                                       : emitter.broadcast(load(first + lane, number)));
  }
  return factors;
}

/// Adds the products of a chunk's first steps.
SmallVector<Value> ContractionEmitter::sumChunk(Value chunk, int64_t chunkSteps, ValueRange sums) {
  int64_t lanes = profile.subgroupSize;
  AffineExpr firstStep = emitter.setCoordinate(chunkCoordinate, chunk) * lanes;
  AffineExpr laneStep = firstStep + emitter.dim(teamLaneCoordinate);
  if (chunkSteps < lanes)
    laneStep = emitter.setCoordinate(laneStepCoordinate, clamp(laneStep, steps - 1));
  SmallVector<Value> carried(sums);
  SmallVector<SmallVector<Value>> rowFactors =
      isOneWalk() ? raiseRows(laneStep, chunkSteps, carried) : loadRowFactors(laneStep);

  ArrayRef<Value> totals = ArrayRef(carried).take_front(countSums());
  SmallVector<Value> added = emitter.loop(chunkSteps, totals, [&](Value trip, ValueRange running) {
    AffineExpr step = firstStep + emitter.setCoordinate(stepCoordinate, trip);
    SmallVector<SmallVector<Value>> columnFactors;
    for (AffineExpr unit : unitOf)
      columnFactors.push_back(loadColumnFactors(unit, step));
    OpBuilder &b = emitter.builder();
    Location loc = emitter.loc;
    Value from = arith::IndexCastOp::create(b, loc, b.getI32Type(), trip);
    Value width = arith::ConstantIntOp::create(b, loc, lanes, 32);
    SmallVector<Value> next(running);
    for (int64_t product = 0; product < stepProducts; ++product) {
      SmallVector<Value> columns;
      for (int64_t unit = 0; unit < units; ++unit)
        columns.push_back(join(SmallVector<Value>(sumRows, columnFactors[unit][product])));
      for (int64_t row = 0; row < tileRows; row += sumRows) {
        SmallVector<Value> elements;
        for (int64_t i = 0; i < sumRows; ++i) {
          Value factor = rowFactors[row + i][product];
          if (lanes > 1)
            factor = gpu::ShuffleOp::create(b, loc, factor, from, width, gpu::ShuffleMode::IDX)
                         .getShuffleResult();
          elements.append(unitColumns, factor);
        }
        Value factor = join(elements);
        for (int64_t unit = 0; unit < units; ++unit) {
          Value &sum = next[row / sumRows * units + unit];
          sum = math::FmaOp::create(b, loc, factor, columns[unit], sum);
        }
      }
    }
    return next;
  });
  llvm::append_range(added, ArrayRef(carried).drop_front(countSums()));
  return added;
}

/// Computes the row factors of a chunk, the exponentials of what elements are above the maximum of
/// their row so far. A larger one scales the sums of the row. Behind the sums of products are the
/// maximum and the invocation's sum of each row.
SmallVector<SmallVector<Value>> ContractionEmitter::raiseRows(AffineExpr step, int64_t chunkSteps,
                                                              SmallVectorImpl<Value> &running) {
  const SoftmaxSums &reduced = *emitter.domain.getBlocks()->softmax;
  Location loc = emitter.loc;
  Value lane = emitter.expand(emitter.dim(teamLaneCoordinate)), isInside;
  if (chunkSteps < profile.subgroupSize)
    isInside = arith::CmpIOp::create(emitter.builder(), loc, arith::CmpIPredicate::ult, lane,
                                     emitter.indexConstant(chunkSteps));
  std::vector<SmallVector<AffineExpr>> points;
  for (int64_t row = 0; row < tileRows; ++row)
    points.push_back(sides.getPoint(firstRow + row, emitter.constant(0), rest,
                                    getProducts(step, emitter.constant(0))));
  SmallVector<SmallVector<Value>> factors(tileRows);
  SmallVector<Value> scales;
  SubgroupBlock(emitter).atPoints(points, [&](size_t row) {
    Value &maximum = running[countSums() + 2 * row], &sum = running[countSums() + 2 * row + 1];
    Value element = evaluateElement(emitter, reduced, points[row]);
    OpBuilder &b = emitter.builder();
    if (isInside)
      element = arith::SelectOp::create(b, loc, isInside, element, makeNoElement(emitter, reduced));
    Value before = maximum;
    maximum = reduceSubgroup(emitter, reduced.larger,
                             emitter.combine(reduced.larger, before, element), lane);
    Value scale = exponentialAbove(emitter, before, maximum),
          power = exponentialAbove(emitter, element, maximum);
    sum = math::FmaOp::create(emitter.builder(), loc, sum, scale, power);
    scales.push_back(scale);
    factors[row] = {power};
  });
  for (int64_t row = 0; row < tileRows; row += sumRows) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < sumRows; ++i)
      elements.append(unitColumns, scales[row + i]);
    Value scale = join(elements);
    for (int64_t unit = 0; unit < units; ++unit) {
      Value &sum = running[row / sumRows * units + unit];
      sum = arith::MulFOp::create(emitter.builder(), loc, sum, scale);
    }
  }
  return factors;
}

/// Returns the elements of `parts`, scalars or vectors, as one vector, or a single scalar
/// as it is.
Value ContractionEmitter::join(ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts.front();
  SmallVector<Value> elements;
  for (Value part : parts) {
    auto vector = dyn_cast<VectorType>(part.getType());
    if (!vector)
      elements.push_back(part);
    for (int64_t i = 0; vector && i < vector.getNumElements(); ++i)
      elements.push_back(emitter.extract(part, i));
  }
  auto type = VectorType::get({int64_t(elements.size())}, elements.front().getType());
  return vector::FromElementsOp::create(emitter.builder(), emitter.loc, type, elements);
}

/// Computes the tile's sums: for each row, or two rows, those of the invocation's units.
SmallVector<Value> ContractionEmitter::sumProducts() {
  OpBuilder &b = emitter.builder();
  Type type = emitter.getElementType(op->getResult(0));
  if (sumRows * unitColumns > 1)
    type = VectorType::get({sumRows * unitColumns}, type);
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(type));
  SmallVector<Value> sums(countSums(), zero);
  if (isOneWalk())
    for (int64_t row = 0; row < tileRows; ++row)
      llvm::append_range(sums, startRow(emitter, *emitter.domain.getBlocks()->softmax));
  int64_t lanes = profile.subgroupSize;
  MaskedSides masked;
  // Of a chunk of the walked dimension alone, all numbers follow from the first.
  if (emitter.domain.getBlocks() && stepSizes.size() == 1)
    masked = findMasked(emitter.domain);
  auto sum = [&](Value chunk, int64_t count, ValueRange running) {
    AffineExpr first;
    if (!masked.empty())
      first = emitter.setCoordinate(chunkCoordinate, chunk) * lanes;
    return whereNeeded(emitter, masked, {firstRow, tileRows, first, count}, running,
                       [&] { return sumChunk(chunk, count, running); });
  };
  Operation *add = (*getCombiners(op)).front().combine;
  PointEmitter::SumBlocks blocks{0, sums, add};
  // Where the profile has units, long sums are cut in parts, and registers are few.
  if (!emitter.domain.getBlocks() && profile.units == 0 &&
      emitter.isLongSum(add, steps * stepProducts, tuning::sums::maxProducts, steps))
    blocks.trips = std::max<int64_t>(tuning::sums::blockTerms / (lanes * stepProducts), 1);
  PointEmitter::LoopEnd addRest;
  if (int64_t restSteps = steps % lanes)
    addRest = [&, restSteps](ValueRange before) {
      return emitter.loop(1, before, [&](Value, ValueRange running) {
        return sum(emitter.indexConstant(steps / lanes), restSteps, running);
      });
    };
  sums = emitter.loopInBlocks(
      steps / lanes, sums, blocks,
      [&](Value chunk, ValueRange running) { return sum(chunk, lanes, running); }, addRest);
  if (!isOneWalk())
    return sums;
  maxima.clear();
  rowSums.clear();
  Value lane = emitter.expand(emitter.dim(teamLaneCoordinate));
  for (int64_t row = 0; row < tileRows; ++row) {
    maxima.push_back(sums[countSums() + 2 * row]);
    rowSums.push_back(reduceSubgroup(emitter, emitter.domain.getBlocks()->softmax->add,
                                     sums[countSums() + 2 * row + 1], lane));
  }
  sums.truncate(countSums());
  return sums;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Computes and stores what comes of the sum at a row, of this number in the tile, and a unit of
/// columns.
void ContractionEmitter::storeRow(AffineExpr row, Value number, AffineExpr ownUnit, Value total) {
  emitter.startPoint();
  if (isOneWalk())
    setSoftmax(emitter, chooseValue(emitter, maxima, number),
               chooseValue(emitter, rowSums, number));
  AffineExpr column = getFirstColumn(ownUnit);
  if (unitColumns == 2)
    column = column + emitter.vectorLane();
  SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(), emitter.constant(0));
  SmallVector<AffineExpr> point = sides.getPoint(row, column, rest, noProducts);
  storeSums(emitter, total, point);
}

/// Returns the sum of a unit in a row of the tile. Registers have no index, so the sum is
/// selected among all.
Value ContractionEmitter::getSum(ArrayRef<Value> sums, int64_t unit, Value row) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  auto isEqual = [&](Value value, int64_t number) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, value,
                                 emitter.indexConstant(number));
  };
  Value size = emitter.indexConstant(sumRows);
  Value number = sumRows == 1 ? row : arith::DivUIOp::create(b, loc, row, size);
  Value sum = sums[unit];
  for (int64_t i = 1; i < tileRows / sumRows; ++i)
    sum = arith::SelectOp::create(b, loc, isEqual(number, i), sums[i * units + unit], sum);
  if (sumRows == 1)
    return sum;
  auto getRow = [&](int64_t i) {
    SmallVector<Value> elements;
    for (int64_t column = 0; column < unitColumns; ++column)
      elements.push_back(emitter.extract(sum, i * unitColumns + column));
    return join(elements);
  };
  Value isSecond = isEqual(arith::RemUIOp::create(b, loc, row, size), 1);
  return arith::SelectOp::create(b, loc, isSecond, getRow(1), getRow(0));
}

/// Emits `body` for the tile's rows that no tile before it stores, in a loop, so that there is one
/// copy of the code for all of them. It gets the row and its number in the tile.
void ContractionEmitter::walkRows(function_ref<void(AffineExpr row, Value number)> body) {
  emitter.loop(tileRows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr row = rowTile * tileRows + emitter.setCoordinate(resultRowCoordinate, trip);
    if (hasPartialRows())
      guardInside(emitter, resultRowCoordinate, row, sizes[sides.rowDim],
                  [&](AffineExpr inside) { body(inside, emitter.expand(inside - firstRow)); });
    else
      body(row, trip);
    return {};
  });
}

/// Stores the tile's rows of one unit.
void ContractionEmitter::storeUnit(int64_t unit, AffineExpr ownUnit, ArrayRef<Value> sums) {
  walkRows([&](AffineExpr row, Value number) {
    storeRow(row, number, ownUnit, getSum(sums, unit, number));
  });
}

void ContractionEmitter::emitTile(Value tile) {
  int64_t lanes = profile.subgroupSize;
  AffineExpr number = emitter.setCoordinate(unitCoordinate, tile);
  // Neighbouring tiles have the same columns, whose factors they share.
  SmallVector<AffineExpr> digits =
      getDigits(emitter, number, {getProduct(sides.restSizes), columnTiles, rowTiles});
  // Named once, so that the loops below see plain coordinates.
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  rowTile = name(tileRowCoordinate, digits[2]);
  AffineExpr columnTile = name(tileColumnCoordinate, digits[1]);
  AffineExpr matrix = name(tileRestCoordinate, digits[0]);
  rest = emitter.delinearize(matrix, sides.restSizes);

  // The last tile begins earlier, so that it has as many rows as the others; it
  // doesn't store those that the tile before it has, too.
  firstRow = rowTile * tileRows;
  if (hasPartialRows()) {
    int64_t step = sizes[sides.rowDim] % 2 == 0 && tileRows % 2 == 0 ? 2 : 1;
    Value first = clamp(rowTile * (tileRows / step), (sizes[sides.rowDim] - tileRows) / step);
    firstRow = emitter.setCoordinate(firstRowCoordinate, first) * step;
  }
  SmallVector<AffineExpr> ownUnits;
  unitOf.clear();
  for (int64_t unit = 0; unit < units; ++unit) {
    AffineExpr own = (columnTile * units + unit) * lanes + emitter.dim(teamLaneCoordinate);
    ownUnits.push_back(own);
    if (hasPartialColumns())
      own = emitter.setCoordinate(unitsCoordinate + unit, clamp(own, columnUnits - 1));
    unitOf.push_back(own);
  }

  SmallVector<Value> sums = sumProducts();
  for (int64_t unit = 0; unit < units; ++unit) {
    if (hasPartialColumns())
      guardInside(emitter, unitsCoordinate + unit, ownUnits[unit], columnUnits,
                  [&](AffineExpr inside) { storeUnit(unit, inside, sums); });
    else
      storeUnit(unit, ownUnits[unit], sums);
  }
  if (!isOneWalk() || !storesBlockRows(emitter))
    return;
  guardAt(emitter, {{emitter.dim(teamLaneCoordinate), 0}, {columnTile, columnTiles - 1}}, [&] {
    walkRows([&](AffineExpr row, Value number) {
      storeBlockRow(emitter, chooseValue(emitter, maxima, number),
                    chooseValue(emitter, rowSums, number),
                    sides.getPoint(row, emitter.constant(0), rest, emitter.constant(0)));
    });
  });
}

void ContractionEmitter::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(op);
  chooseTile();
  emitSubgroups(emitter, getProduct(sides.restSizes) * rowTiles * columnTiles, launch,
                [&](Value tile) { emitTile(tile); });
}

void weir::emitContraction(PointEmitter &emitter, EmittedKernel &launch) {
  if (std::optional<CooperativeTile> tile = chooseCooperativeTile(emitter.domain, emitter.profile))
    return emitCooperativeContraction(emitter, *tile, launch);
  if (std::optional<MatrixTile> tile = chooseMatrixTile(emitter.domain, emitter.profile))
    return emitMatrixContraction(emitter, *tile, launch);
  if (std::optional<SlabTile> tile = chooseSlabTile(emitter.domain, emitter.profile))
    return emitSlabContraction(emitter, *tile, launch);
  if (std::optional<MatrixBlockTile> tile = chooseMatrixBlockTile(emitter.domain, emitter.profile))
    return emitMatrixBlockContraction(emitter, *tile, launch);
  if (std::optional<SlabBlockTile> tile = chooseSlabBlockTile(emitter.domain, emitter.profile))
    return emitSlabBlockContraction(emitter, *tile, launch);
  ContractionEmitter(emitter).run(launch);
}
