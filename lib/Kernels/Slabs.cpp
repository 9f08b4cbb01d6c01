//===- Slabs.cpp - Factors that a workgroup shares in its memory ----------===//

#include "Slabs.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

Value weir::allocateShared(PointEmitter &emitter, Type type, int64_t elements) {
  auto shared =
      MemRefType::get({elements}, type, MemRefLayoutAttrInterface{},
                      gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup));
  return emitter.getFunction().addWorkgroupAttribution(shared, emitter.loc);
}

/// Returns the number of elements that are accessed at once: as many as an access of 16 bytes has.
/// SPIR-V has vectors only of memory that is made of them.
static int64_t countAtOnce(const PointEmitter &emitter, Value memory) {
  constexpr int64_t largestAccess = 128; // bits
  const int64_t width = cast<MemRefType>(memory.getType()).getElementTypeBitWidth();
  return emitter.profile.sm == 0 ? 1 : std::min(slabVector, largestAccess / width);
}

static llvm::Align getSharedAlignment(VectorType type) {
  return llvm::Align(type.getNumElements() * type.getElementTypeBitWidth() / 8);
}

SmallVector<Value> weir::loadShared(PointEmitter &emitter, Value memory, AffineExpr place) {
  return loadShared(emitter, memory, emitter.expand(place));
}

SmallVector<Value> weir::loadShared(PointEmitter &emitter, Value memory, Value place) {
  OpBuilder &b = emitter.builder();
  const int64_t atOnce = countAtOnce(emitter, memory);
  SmallVector<Value> values;
  for (int64_t first = 0; first < slabVector; first += atOnce) {
    Value at = place;
    if (first > 0)
      at = arith::AddIOp::create(b, emitter.loc, place, emitter.indexConstant(first));
    if (atOnce == 1) {
      values.push_back(memref::LoadOp::create(b, emitter.loc, memory, at));
      continue;
    }
    auto type = VectorType::get({atOnce}, cast<MemRefType>(memory.getType()).getElementType());
    Value vector = vector::LoadOp::create(b, emitter.loc, type, memory, at, /*nontemporal=*/false,
                                          getSharedAlignment(type));
    for (int64_t i = 0; i < atOnce; ++i)
      values.push_back(emitter.extract(vector, i));
  }
  return values;
}

void weir::storeShared(PointEmitter &emitter, Value memory, AffineExpr place,
                       ArrayRef<Value> values) {
  OpBuilder &b = emitter.builder();
  const int64_t atOnce = countAtOnce(emitter, memory);
  for (int64_t first = 0; first < slabVector; first += atOnce) {
    Value at = emitter.expand(place + first);
    if (atOnce == 1) {
      memref::StoreOp::create(b, emitter.loc, values[first], memory, at);
      continue;
    }
    auto type = VectorType::get({atOnce}, values.front().getType());
    Value vector =
        vector::FromElementsOp::create(b, emitter.loc, type, values.slice(first, atOnce));
    vector::StoreOp::create(b, emitter.loc, vector, memory, at, /*nontemporal=*/false,
                            getSharedAlignment(type));
  }
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Returns the summed coordinates of a product, or of a vector of them.
SmallVector<AffineExpr> SlabSide::getProducts(AffineExpr number, int64_t vector) const {
  if (vector == 1)
    return emitter.delinearize(number, productSizes);
  SmallVector<int64_t> counts(productSizes);
  counts.back() /= vector;
  SmallVector<AffineExpr> at = emitter.delinearize(number, counts);
  at.back() = at.back() * vector + emitter.vectorLane();
  return at;
}

void SlabSide::chooseShares(AffineExpr thread, AffineExpr any, bool allowCopies) {
  constexpr int64_t copiedProducts = tuning::slabs::copiedProducts;
  constexpr int64_t leastCopy = 4, largestCopy = 16; // bytes, of `cp.async`
  AffineExpr lane = emitter.vectorLane();
  auto isWhole = [&](AffineExpr element, ArrayRef<AffineExpr> products) {
    return emitter.isVectorFriendly(factor->get(), getIndices(element, products));
  };
  auto isRun = [&](AffineExpr element, int64_t count) {
    return emitter.getRun(factor->get(), getIndices(element, getProducts(any, 1)), count)
        .has_value();
  };
  Type type = emitter.getElementType(factor->get());
  const int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  isCopied = allowCopies && bytes >= leastCopy && isRun(first, 1) &&
             type == emitter.getElementType(factor->getOwner()->getResult(0));
  if (isCopied)
    along = all % slabVector == 0 && bytes * slabVector <= largestCopy &&
                    isRun(first + lane, slabVector)
                ? Along::Elements
                : Along::None;
  else if (!productSizes.empty() && productSizes.back() % slabVector == 0 &&
           isWhole(first, getProducts(any, slabVector)))
    along = Along::Products;
  else if (all % slabVector == 0 && isWhole(first + lane, getProducts(any, 1)))
    along = Along::Elements;
  else
    along = Along::None;
  // The last index of a tensor is that of neighbours.
  SmallVector<AffineExpr> indices = getIndices(emitter.constant(0), getProducts(any, 1));
  unsigned slabNumber = cast<AffineDimExpr>(any).getPosition();
  bool walksProducts = !indices.empty() && indices.back().isFunctionOfDim(slabNumber);

  int64_t vector = along == Along::None ? 1 : slabVector;
  int64_t inElements = along == Along::Elements ? vector : 1;
  int64_t inProducts = along == Along::Products ? vector : 1;
  bool productsFirst = along == Along::Products || (along == Along::None && walksProducts);
  int64_t inner = productsFirst ? slab / inProducts : elements / inElements;
  shares.clear();
  for (int64_t i = 0; i < elements * slab / vector / threads; ++i) {
    AffineExpr number = thread + i * threads;
    AffineExpr outer = number.floorDiv(inner), innermost = number % inner;
    if (isCopied && productsFirst && slab % copiedProducts == 0) {
      AffineExpr sector = number.floorDiv(copiedProducts);
      outer = sector % elements;
      innermost = number % copiedProducts + sector.floorDiv(elements) * copiedProducts;
    }
    shares.push_back({productsFirst ? outer : innermost, productsFirst ? innermost : outer});
  }
}

/// Returns the number of a share's element among all: one that is there, in place of one that is
/// not.
AffineExpr SlabSide::getElement(const Share &share) const {
  int64_t vector = along == Along::Elements ? slabVector : 1;
  if (present && present < elements)
    return first.floorDiv(vector) + share.element % (present / vector);
  AffineExpr element = first.floorDiv(vector) + share.element;
  return !present && all % elements != 0 ? element % (all / vector) : element;
}

/// Returns `value` where `product` is below `count`, else zero.
Value SlabSide::clearBehind(Value value, AffineExpr product, int64_t count) const {
  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(value.getType()));
  Value isThere = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult,
                                        emitter.expand(product), emitter.indexConstant(count));
  return arith::SelectOp::create(b, emitter.loc, isThere, value, zero);
}

/// Returns where a share of a slab of `count` products lies in the factor.
SmallVector<AffineExpr> SlabSide::getShareIndices(const Share &share, AffineExpr firstProduct,
                                                  int64_t count) const {
  int64_t vector = along == Along::Products ? slabVector : 1;
  AffineExpr product = share.product;
  if (count < slab)
    product = product % (count / vector); // a product that is there, in place of one that is not
  SmallVector<AffineExpr> at = getProducts(firstProduct.floorDiv(vector) + product, vector);
  AffineExpr element = getElement(share);
  if (along == Along::Elements)
    element = element * slabVector + emitter.vectorLane();
  return getIndices(element, at);
}

SmallVector<Value> SlabSide::load(AffineExpr firstProduct, int64_t count) const {
  int64_t vector = along == Along::Products ? slabVector : 1;
  SmallVector<Value> loaded;
  for (const Share &share : shares) {
    SmallVector<AffineExpr> indices = getShareIndices(share, firstProduct, count);
    Value value = keepsType ? emitter.evaluate(factor->get(), indices)
                            : evaluateFactor(emitter, factor, indices);
    if (count < slab && fillsSlabs)
      value = clearBehind(value, share.product, count / vector);
    if (along == Along::None) {
      loaded.push_back(value);
      continue;
    }
    value = emitter.broadcast(value);
    for (int64_t i = 0; i < slabVector; ++i)
      loaded.push_back(emitter.extract(value, i));
  }
  return loaded;
}

void SlabSide::store(ArrayRef<Value> loaded, unsigned stage) const {
  OpBuilder &b = emitter.builder();
  auto put = [&](Value value, AffineExpr product, AffineExpr element) {
    memref::StoreOp::create(b, emitter.loc, value, stages[stage],
                            emitter.expand(getPlace(product, element)));
  };
  for (auto [i, share] : llvm::enumerate(shares)) {
    if (along == Along::None) {
      put(loaded[i], share.product, share.element);
      continue;
    }
    for (int64_t lane = 0; lane < slabVector; ++lane) {
      Value value = loaded[i * slabVector + lane];
      if (along == Along::Products)
        put(value, share.product * slabVector + lane, share.element);
      else
        put(value, share.product, share.element * slabVector + lane);
    }
  }
}

void SlabSide::copy(AffineExpr firstProduct, unsigned stage) const {
  const int64_t vector = along == Along::Elements ? slabVector : 1;
  for (const Share &share : shares)
    emitter.copyRun(factor->get(), getShareIndices(share, firstProduct, slab), vector,
                    stages[stage], emitter.expand(getPlace(share.product, share.element * vector)));
}

SlabSide weir::makeSlabSide(PointEmitter &emitter, const ContractionSides &sides, bool isOfRows,
                            const SmallVector<AffineExpr> &rest) {
  OpOperand *factor = isOfRows ? sides.rowFactor : sides.columnFactor;
  linalg::GenericOp op = emitter.domain.getContractions().front();
  auto getIndices = [&emitter, &sides, &rest, isOfRows, factor, op](AffineExpr element,
                                                                    ArrayRef<AffineExpr> products) {
    AffineExpr none = emitter.constant(0);
    SmallVector<AffineExpr> point =
        sides.getPoint(isOfRows ? element : none, isOfRows ? none : element, rest, products);
    return emitter.apply(getAccessMap(op, factor), emitter.getLoops(op, point));
  };
  SlabSide side(emitter, factor, emitter.domain.getColumnSizes(), getIndices);
  side.all = emitter.domain.getSizes()[isOfRows ? sides.rowDim : sides.columnDim];
  return side;
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

static int64_t countTiles(const SlabSide &side) {
  return llvm::divideCeil(side.all, side.elements);
}

int64_t weir::countSlabTiles(const ContractionSides &sides, const SlabSide &ofRows,
                             const SlabSide &ofColumns) {
  return getProduct(sides.restSizes) * countTiles(ofRows) * countTiles(ofColumns);
}

void weir::setSlabPlace(PointEmitter &emitter, SlabPlace &place, AffineExpr number,
                        const ContractionSides &sides, SlabSide &ofRows, SlabSide &ofColumns) {
  SmallVector<AffineExpr> digits = getDigits(
      emitter, number, {getProduct(sides.restSizes), countTiles(ofColumns), countTiles(ofRows)});
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  place.rowTile = name(tileRowCoordinate, digits[2]);
  place.columnTile = name(tileColumnCoordinate, digits[1]);
  ofRows.first = place.rowTile * ofRows.elements;
  ofColumns.first = place.columnTile * ofColumns.elements;
  place.rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), sides.restSizes);
}

SmallVector<Value> weir::walkSlabs(PointEmitter &emitter, const SlabSide *ofRows,
                                   const SlabSide &ofColumns, AffineExpr begin, int64_t products,
                                   unsigned slabCoordinate, ValueRange start, AddSlab add) {
  int64_t slab = ofColumns.slab, slabs = products / slab, early = products % slab;
  auto barrier = [&] { gpu::BarrierOp::create(emitter.builder(), emitter.loc); };
  auto load = [&](AffineExpr first, int64_t count) {
    SmallVector<Value> loaded;
    if (ofRows)
      loaded = ofRows->load(begin + first, count);
    llvm::append_range(loaded, ofColumns.load(begin + first, count));
    return loaded;
  };
  auto store = [&](ArrayRef<Value> loaded) {
    int64_t rowValues = ofRows ? ofRows->countLoaded() : 0;
    if (ofRows)
      ofRows->store(loaded.take_front(rowValues));
    ofColumns.store(loaded.drop_front(rowValues));
    barrier();
  };
  SmallVector<Value> sums(start);
  if (early)
    sums = emitter.loop(1, sums, [&](Value, ValueRange running) {
      store(load(emitter.constant(0), early));
      SmallVector<Value> added = add(emitter.constant(0), early, running);
      if (slabs > 0)
        barrier();
      return added;
    });
  if (slabs == 0)
    return sums;
  SmallVector<Value> carried(sums);
  llvm::append_range(carried, load(emitter.constant(early), slab));
  int64_t numSums = sums.size();
  carried = emitter.loop(slabs - 1, carried, [&](Value trip, ValueRange running) {
    SmallVector<Value> loaded(running.drop_front(numSums));
    store(loaded);
    AffineExpr first = emitter.setCoordinate(slabCoordinate, trip) * slab + early;
    SmallVector<Value> ahead = load(first + slab, slab);
    SmallVector<Value> added = add(first, slab, running.take_front(numSums));
    barrier();
    llvm::append_range(added, ahead);
    return added;
  });
  store(ArrayRef(carried).drop_front(numSums));
  return add(emitter.constant(early + (slabs - 1) * slab), slab,
             ArrayRef(carried).take_front(numSums));
}

SmallVector<Value> weir::walkStages(PointEmitter &emitter, const StageWalk &walk,
                                    ValueRange start) {
  const int64_t ahead = walk.stages - 1; // slabs on their way
  auto getFirst = [&](int64_t slab) { return emitter.constant(walk.first + slab * walk.slab); };
  Value group; // of copies, the first
  auto closeGroup = [&] {
    if (!walk.copies)
      return;
    // It takes in all copies that are in none yet, those of a branch as well.
    Value closed = nvgpu::DeviceAsyncCreateGroupOp::create(
        emitter.builder(), emitter.loc, nvgpu::DeviceAsyncTokenType::get(emitter.context),
        ValueRange());
    group = group ? group : closed;
  };
  for (int64_t slab = 0; slab < ahead; ++slab) {
    walk.copy(getFirst(slab), slab);
    closeGroup();
    walk.store(walk.load(getFirst(slab)), getFirst(slab), slab);
  }
  // Waits for a slab, where at most `groupsLeft` groups of copies may be on their way.
  auto await = [&](int64_t groupsLeft) {
    OpBuilder &b = emitter.builder();
    if (group)
      nvgpu::DeviceAsyncWaitOp::create(b, emitter.loc, group,
                                       b.getI32IntegerAttr(int32_t(groupsLeft)));
    gpu::BarrierOp::create(b, emitter.loc);
  };
  // In each round every stage is added up once. Of three rounds or more the last leaves out the
  // copies of slabs that are not there: its groups are empty. It is not part of the loop where
  // something is loaded; nor of fewer rounds: LLVM makes a condition of the number of two trips,
  // which a verifier does not follow.
  const bool isLastInLoop = walk.copiesAll && walk.slabs / walk.stages >= tuning::loops::minTrips;
  const int64_t rounds = (walk.slabs - (isLastInLoop ? 0 : ahead)) / walk.stages;
  const bool isGuarded = rounds * walk.stages + ahead > walk.slabs;
  SmallVector<Value> sums = emitter.loop(rounds, start, [&](Value trip, ValueRange running) {
    AffineExpr round = emitter.setCoordinate(walk.roundCoordinate, trip) * walk.stages;
    SmallVector<Value> added(running);
    for (int64_t slab = 0; slab < walk.stages; ++slab) {
      const unsigned free = (slab + ahead) % walk.stages;
      AffineExpr number = round + (slab + ahead);
      AffineExpr next = number * walk.slab + walk.first;
      await(ahead - 1);
      auto copy = [&]() -> SmallVector<Value> {
        walk.copy(next, free);
        return {};
      };
      if (isGuarded) {
        Value isThere =
            arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult,
                                  emitter.expand(number), emitter.indexConstant(walk.slabs));
        emitter.guard(isThere, {}, copy);
      } else {
        copy();
      }
      closeGroup();
      SmallVector<Value> loaded = walk.load(next);
      added = walk.add(slab, added);
      walk.store(loaded, next, free);
    }
    return added;
  });
  int64_t closed = rounds * walk.stages + ahead; // groups
  for (int64_t slab = rounds * walk.stages; slab < walk.slabs; ++slab) {
    await(closed - slab - 1);
    const unsigned free = (slab + ahead) % walk.stages;
    const bool isNext = !isGuarded && slab + ahead < walk.slabs;
    SmallVector<Value> loaded;
    if (isNext) {
      walk.copy(getFirst(slab + ahead), free);
      closeGroup();
      ++closed;
      loaded = walk.load(getFirst(slab + ahead));
    }
    sums = walk.add(slab % walk.stages, sums);
    if (isNext)
      walk.store(loaded, getFirst(slab + ahead), free);
  }
  return sums;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

AffineExpr SlabSums::getRow(AffineExpr row) const {
  if (rows == slabVector)
    return rowThread * slabVector + row;
  return (row.floorDiv(slabVector) * rowThreads + rowThread) * slabVector + row % slabVector;
}

AffineExpr SlabSums::getColumn(int64_t column) const {
  return (columnThread + column / unit * columnThreads) * unit + column % unit;
}

SmallVector<Value> SlabSums::add(Value ofRows, AffineExpr first, Value ofColumns, int64_t count,
                                 unsigned coordinate, ValueRange sums) const {
  // Elements lie at distances from those of the first product and row (or column) that are the same
  // in all trips, and cost no instruction.
  auto getPlace = [&](int64_t elements, AffineExpr product, AffineExpr element) {
    return emitter.expand(product * (elements + slabPadding) + element);
  };
  auto getBehind = [&](Value place, int64_t elements, int64_t product, int64_t element) {
    const int64_t distance = product * (elements + slabPadding) + element;
    return arith::AddIOp::create(emitter.builder(), emitter.loc, place,
                                 emitter.indexConstant(distance))
        .getResult();
  };
  constexpr int64_t unrolled = tuning::slabs::unrolledProducts;
  int64_t together = count % unrolled == 0 ? unrolled : 1;
  return emitter.loop(count / together, sums, [&](Value trip, ValueRange running) {
    AffineExpr begin = emitter.setCoordinate(coordinate, trip) * together;
    OpBuilder &b = emitter.builder();
    SmallVector<Value> next(running);
    Value ofFirstRow = getPlace(getTileRows(), begin + first, getRow(emitter.constant(0))),
          ofFirstColumn = getPlace(getTileColumns(), begin, getColumn(0));
    for (int64_t i = 0; i < together; ++i) {
      SmallVector<Value> ofRow, ofColumn;
      for (int64_t row = 0; row < rows; row += slabVector)
        llvm::append_range(
            ofRow,
            loadShared(emitter, ofRows, getBehind(ofFirstRow, getTileRows(), i, row * rowThreads)));
      for (int64_t column = 0; column < columns; column += unit) {
        Value place = getBehind(ofFirstColumn, getTileColumns(), i, column * columnThreads);
        if (unit == slabVector)
          llvm::append_range(ofColumn, loadShared(emitter, ofColumns, place));
        else
          ofColumn.push_back(memref::LoadOp::create(b, emitter.loc, ofColumns, place));
      }
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          Value &sum = next[row * columns + column];
          sum = math::FmaOp::create(b, emitter.loc, ofRow[row], ofColumn[column], sum);
        }
    }
    return next;
  });
}

SmallVector<Value> SlabSums::addSlabs(const SlabSide *ofRows, Value rowMemory,
                                      const SlabSide &ofColumns, AffineExpr begin, int64_t products,
                                      unsigned slabCoordinate, unsigned productCoordinate,
                                      ValueRange start) const {
  if (ofRows && ofColumns.stages.size() > 1)
    return addStages(*ofRows, ofColumns, begin, products, slabCoordinate, productCoordinate, start);
  return walkSlabs(emitter, ofRows, ofColumns, begin, products, slabCoordinate, start,
                   [&](AffineExpr first, int64_t count, ValueRange running) {
                     return add(rowMemory, ofRows ? emitter.constant(0) : first,
                                ofColumns.stages.front(), count, productCoordinate, running);
                   });
}

/// Adds products by `walkStages`, behind those of a slab that is not whole.
SmallVector<Value> SlabSums::addStages(const SlabSide &ofRows, const SlabSide &ofColumns,
                                       AffineExpr begin, int64_t products, unsigned slabCoordinate,
                                       unsigned productCoordinate, ValueRange start) const {
  auto addProducts = [&](unsigned stage, int64_t count, ValueRange running) {
    return add(ofRows.stages[stage], emitter.constant(0), ofColumns.stages[stage], count,
               productCoordinate, running);
  };
  SmallVector<Value> sums(start);
  const int64_t early = products % ofColumns.slab;
  if (early) {
    sums = walkSlabs(emitter, &ofRows, ofColumns, begin, early, slabCoordinate, sums,
                     [&](AffineExpr, int64_t count, ValueRange running) {
                       return addProducts(0, count, running);
                     });
    gpu::BarrierOp::create(emitter.builder(), emitter.loc);
  }
  StageWalk walk;
  walk.stages = int64_t(ofColumns.stages.size());
  walk.first = early;
  walk.slabs = products / ofColumns.slab;
  walk.slab = ofColumns.slab;
  walk.roundCoordinate = slabCoordinate;
  walk.copies = ofRows.isCopied || ofColumns.isCopied;
  walk.copiesAll = ofRows.isCopied && ofColumns.isCopied;
  walk.copy = [&](AffineExpr first, unsigned stage) {
    for (const SlabSide *side : {&ofRows, &ofColumns})
      if (side->isCopied)
        side->copy(begin + first, stage);
  };
  walk.load = [&](AffineExpr first) {
    SmallVector<Value> loaded;
    for (const SlabSide *side : {&ofRows, &ofColumns})
      if (!side->isCopied)
        llvm::append_range(loaded, side->load(begin + first, side->slab));
    return loaded;
  };
  walk.store = [&](ArrayRef<Value> loaded, AffineExpr, unsigned stage) {
    for (const SlabSide *side : {&ofRows, &ofColumns})
      if (!side->isCopied) {
        side->store(loaded.take_front(side->countLoaded()), stage);
        loaded = loaded.drop_front(side->countLoaded());
      }
  };
  walk.add = [&](unsigned stage, ValueRange running) {
    return addProducts(stage, ofColumns.slab, running);
  };
  return walkStages(emitter, walk, sums);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns the sums of a unit of columns in a row of the invocation. Registers have no index, so
/// they are selected among all.
Value SlabSums::getSum(ArrayRef<Value> sums, Value row, int64_t number) const {
  OpBuilder &b = emitter.builder();
  SmallVector<Value> elements;
  for (int64_t i = 0; i < unit; ++i) {
    int64_t column = number * unit + i;
    Value sum = sums[column];
    for (int64_t other = 1; other < rows; ++other) {
      Value isOther = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::eq, row,
                                            emitter.indexConstant(other));
      sum = arith::SelectOp::create(b, emitter.loc, isOther, sums[other * columns + column], sum);
    }
    elements.push_back(sum);
  }
  if (unit == 1)
    return elements.front();
  return vector::FromElementsOp::create(
      b, emitter.loc, VectorType::get({unit}, elements.front().getType()), elements);
}

/// A loop over the rows of each unit, so that there is one copy of the code for all of them.
void SlabSums::store(const ContractionSides &sides, AffineExpr rowTile, AffineExpr columnTile,
                     ArrayRef<AffineExpr> rest, ArrayRef<Value> sums, Coordinates coordinates,
                     function_ref<void(Value)> atRow) const {
  ArrayRef<int64_t> sizes = emitter.domain.getSizes();
  SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(), emitter.constant(0));
  auto storeUnit = [&](int64_t number, AffineExpr unitOfResult) {
    emitter.loop(rows, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
      AffineExpr row =
          rowTile * getTileRows() + getRow(emitter.setCoordinate(coordinates.row, trip));
      auto storeRow = [&](AffineExpr inside) {
        emitter.startPoint();
        if (atRow)
          atRow(trip);
        AffineExpr column = unitOfResult * unit;
        if (unit > 1)
          column = column + emitter.vectorLane();
        storeSums(emitter, getSum(sums, trip, number),
                  sides.getPoint(inside, column, rest, noProducts));
      };
      if (sizes[sides.rowDim] % getTileRows())
        guardInside(emitter, coordinates.insideRow, row, sizes[sides.rowDim], storeRow);
      else
        storeRow(row);
      return {};
    });
  };
  int64_t units = columns / unit;
  for (int64_t number = 0; number < units; ++number) {
    AffineExpr own = (columnTile * units + number) * columnThreads + columnThread;
    if (sizes[sides.columnDim] % getTileColumns())
      guardInside(emitter, coordinates.insideUnit, own, sizes[sides.columnDim] / unit,
                  [&](AffineExpr inside) { storeUnit(number, inside); });
    else
      storeUnit(number, own);
  }
}
