//===- Slabs.cpp - Factors in workgroup memory, a slab at a time ----------===//

#include "Slabs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weir;

SlabWalk::SlabWalk(PointEmitter &emitter, const ContractionSides &sides, const SlabLayout &layout,
                   Type elementType)
    : emitter(emitter), sides(sides), op(emitter.domain.getContractions().front()),
      sizes(emitter.domain.getSizes()), products(getProduct(emitter.domain.getColumnSizes())),
      layout(layout), elementType(elementType) {
  ofRows.factor = sides.rowFactor;
  ofRows.isOfRows = true;
  ofRows.elements = layout.rows;
  ofRows.all = sizes[sides.rowDim];
  ofColumns.factor = sides.columnFactor;
  ofColumns.elements = layout.columns;
  ofColumns.all = sizes[sides.columnDim];
}

AffineExpr SlabWalk::name(unsigned coordinate, AffineExpr value) {
  return emitter.setCoordinate(coordinate, emitter.expand(value));
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Returns the summed coordinates of a product, or of a vector of them.
SmallVector<AffineExpr> SlabWalk::getProducts(AffineExpr number, int64_t vector) const {
  SmallVector<int64_t> counts(emitter.domain.getColumnSizes());
  if (vector == 1)
    return emitter.delinearize(number, counts);
  counts.back() /= vector;
  SmallVector<AffineExpr> at = emitter.delinearize(number, counts);
  at.back() = at.back() * vector + emitter.vectorLane();
  return at;
}

SmallVector<AffineExpr> SlabWalk::getIndices(const Side &side, AffineExpr element,
                                             ArrayRef<AffineExpr> products) const {
  AffineExpr none = emitter.constant(0);
  SmallVector<AffineExpr> point = sides.getPoint(side.isOfRows ? element : none,
                                                 side.isOfRows ? none : element, rest, products);
  return emitter.apply(getAccessMap(op, side.factor), emitter.getLoops(op, point));
}

void SlabWalk::allocate(Side &side) {
  auto shared =
      MemRefType::get({layout.slab * side.getStride()}, elementType, MemRefLayoutAttrInterface{},
                      gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup));
  side.memory = emitter.getFunction().addWorkgroupAttribution(shared, emitter.loc);
}

/// Chooses what the invocation brings of a factor, in vectors if they lie in memory as such.
void SlabWalk::chooseShares(Side &side) {
  using Along = Side::Along;
  AffineExpr first = side.tileNumber * side.elements, lane = emitter.vectorLane();
  auto isWhole = [&](AffineExpr element, ArrayRef<AffineExpr> products) {
    return emitter.isVectorFriendly(side.factor->get(), getIndices(side, element, products));
  };
  AffineExpr any = emitter.dim(slabCoordinate);
  ArrayRef<int64_t> counts = emitter.domain.getColumnSizes();
  if (counts.back() % slabVector == 0 && isWhole(first, getProducts(any, slabVector)))
    side.along = Along::Products;
  else if (side.all % slabVector == 0 && isWhole(first + lane, getProducts(any, 1)))
    side.along = Along::Elements;
  else
    side.along = Along::None;
  // The last index of a tensor is that of neighbours.
  auto loops = emitter.domain.getDims(op);
  AffineMap map = getAccessMap(op, side.factor);
  side.walksProducts = false;
  for (auto [loop, dim] : llvm::enumerate(loops))
    side.walksProducts |= dim >= int64_t(emitter.domain.getNumRows()) && map.getNumResults() > 0 &&
                          map.getResults().back().isFunctionOfDim(loop);

  int64_t vector = side.along == Along::None ? 1 : slabVector;
  int64_t inElements = side.along == Along::Elements ? vector : 1;
  int64_t inProducts = side.along == Along::Products ? vector : 1;
  int64_t count = side.elements * layout.slab / vector / layout.threads;
  bool isPartial = side.all % side.elements != 0;
  side.shares.clear();
  for (int64_t i = 0; i < count; ++i) {
    AffineExpr number = thread + i * layout.threads;
    bool productsFirst =
        side.along == Along::Products || (side.along == Along::None && side.walksProducts);
    int64_t inner = productsFirst ? layout.slab / inProducts : side.elements / inElements;
    Side::Share share;
    share.element = productsFirst ? number.floorDiv(inner) : number % inner;
    share.product = productsFirst ? number % inner : number.floorDiv(inner);
    share.ofAll = side.tileNumber * (side.elements / inElements) + share.element;
    if (isPartial) // an element that is there, in place of one that is not
      share.ofAll = share.ofAll % (side.all / inElements);
    side.shares.push_back(share);
  }
}

/// Returns `value` where `product` is below `count`, else zero.
Value SlabWalk::clearBehind(Value value, AffineExpr product, int64_t count) {
  OpBuilder &b = emitter.builder();
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(value.getType()));
  Value isThere = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult,
                                        emitter.expand(product), emitter.indexConstant(count));
  return arith::SelectOp::create(b, emitter.loc, isThere, value, zero);
}

/// Loads the invocation's shares of a slab of `count` products.
SmallVector<Value> SlabWalk::load(const Side &side, AffineExpr firstProduct, int64_t count) {
  using Along = Side::Along;
  AffineExpr lane = emitter.vectorLane();
  SmallVector<Value> loaded;
  for (const Side::Share &share : side.shares) {
    int64_t vector = side.along == Along::Products ? slabVector : 1;
    AffineExpr product = share.product;
    if (count < layout.slab)
      product = product % (count / vector); // a product that is there, in place of one that is not
    SmallVector<AffineExpr> at = getProducts(firstProduct.floorDiv(vector) + product, vector);
    AffineExpr element =
        side.along == Along::Elements ? share.ofAll * slabVector + lane : share.ofAll;
    Value value = evaluateElement(side.factor, getIndices(side, element, at));
    if (count < layout.slab && fillsSlabs())
      value = clearBehind(value, share.product, count / vector);
    if (side.along == Along::None) {
      loaded.push_back(value);
      continue;
    }
    value = emitter.broadcast(value);
    for (int64_t i = 0; i < slabVector; ++i)
      loaded.push_back(emitter.extract(value, i));
  }
  return loaded;
}

/// Stores what was loaded in workgroup memory.
void SlabWalk::store(const Side &side, ArrayRef<Value> loaded) {
  using Along = Side::Along;
  OpBuilder &b = emitter.builder();
  auto put = [&](Value value, AffineExpr product, AffineExpr element) {
    memref::StoreOp::create(b, emitter.loc, value, side.memory,
                            emitter.expand(product * side.getStride() + element));
  };
  for (auto [i, share] : llvm::enumerate(side.shares)) {
    if (side.along == Along::None) {
      put(loaded[i], share.product, share.element);
      continue;
    }
    for (int64_t lane = 0; lane < slabVector; ++lane) {
      Value value = loaded[i * slabVector + lane];
      if (side.along == Along::Products)
        put(value, share.product * slabVector + lane, share.element);
      else
        put(value, share.product, share.element * slabVector + lane);
    }
  }
}

/// Walks all slabs; returns the sums.
SmallVector<Value> SlabWalk::sumProducts() {
  SmallVector<Value> sums = makeZeros();
  int64_t slabs = products / layout.slab, early = products % layout.slab;
  auto loadBoth = [&](AffineExpr firstProduct, int64_t count) {
    SmallVector<Value> loaded = load(ofRows, firstProduct, count);
    llvm::append_range(loaded, load(ofColumns, firstProduct, count));
    return loaded;
  };
  auto storeBoth = [&](ArrayRef<Value> loaded) {
    int64_t numRows = ofRows.shares.size() * (ofRows.along == Side::Along::None ? 1 : slabVector);
    store(ofRows, loaded.take_front(numRows));
    store(ofColumns, loaded.drop_front(numRows));
    barrier();
  };
  if (early)
    sums = emitter.loop(1, sums, [&](Value, ValueRange running) {
      storeBoth(loadBoth(emitter.constant(0), early));
      SmallVector<Value> added = addProducts(early, running);
      barrier();
      return added;
    });
  SmallVector<Value> carried(sums);
  llvm::append_range(carried, loadBoth(emitter.constant(early), layout.slab));
  int64_t numSums = sums.size();
  carried = emitter.loop(slabs - 1, carried, [&](Value trip, ValueRange running) {
    SmallVector<Value> loaded(running.drop_front(numSums));
    storeBoth(loaded);
    AffineExpr next = emitter.setCoordinate(slabCoordinate, trip) * layout.slab;
    SmallVector<Value> ahead = loadBoth(next + (early + layout.slab), layout.slab);
    SmallVector<Value> added = addProducts(layout.slab, running.take_front(numSums));
    barrier();
    llvm::append_range(added, ahead);
    return added;
  });
  storeBoth(ArrayRef(carried).drop_front(numSums));
  return addProducts(layout.slab, ArrayRef(carried).take_front(numSums));
}

AffineExpr SlabWalk::makeThread() {
  return emitter.setCoordinate(
      teamLaneCoordinate,
      gpu::ThreadIdOp::create(emitter.builder(), emitter.loc, gpu::Dimension::x));
}

void SlabWalk::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(op);
  int64_t rowTiles = llvm::divideCeil(ofRows.all, ofRows.elements),
          columnTiles = llvm::divideCeil(ofColumns.all, ofColumns.elements);
  allocate(ofRows);
  allocate(ofColumns);
  emitWorkgroups(emitter, getProduct(sides.restSizes) * rowTiles * columnTiles, launch,
                 [&](Value group) {
                   thread = makeThread();
                   AffineExpr at = emitter.setCoordinate(unitCoordinate, group);
                   // Neighbouring workgroups have the same columns.
                   SmallVector<AffineExpr> digits =
                       getDigits(emitter, at, {getProduct(sides.restSizes), columnTiles, rowTiles});
                   ofRows.tileNumber = name(tileRowCoordinate, digits[2]);
                   ofColumns.tileNumber = name(tileColumnCoordinate, digits[1]);
                   rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), sides.restSizes);
                   chooseShares(ofRows);
                   chooseShares(ofColumns);
                   emitTile();
                 });
}
