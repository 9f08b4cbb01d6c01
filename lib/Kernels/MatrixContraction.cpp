//===- MatrixContraction.cpp - Sums of products by instructions on matrices ===//
//
// A workgroup of four or eight subgroups owns a tile of the result, each a part of it. The summed
// dimensions are walked in slabs, as in SlabContraction.cpp, but a slab keeps the factors'
// elements as they are, and there are two or more of them in workgroup memory, the stages: while
// one is added up, the next are on their way to the others. So there is one barrier a slab:
//
//   bring the first slabs, all but one of the stages
//   for each slab:   wait for it, barrier, bring the one that takes the place of the last,
//                    add products
//
// Runs of an operand's elements are copied asynchronously, a slab a group. What a prologue
// computes, what is rounded and what is not aligned is loaded before the products are added, and
// stored behind them; then two stages suffice.
//
// Subgroups take fragments of a slab by ldmatrix and add 16 products of 16 x 8 sums by one mma, or
// 8 of tf32. A side of a slab lies in workgroup memory as its factor lies in the operand: with
// neighbouring products, or neighbouring rows (or columns), side by side; ldmatrix transposes one
// of the two. Eight lines, which are read at once, are in different banks: by eight elements behind
// each line, or, where slabs are copied, by runs that are rotated in their lines, which takes no
// memory.
//
// Where the profile asks for tf32, factors in f32 are rounded to it on their way to workgroup
// memory.
//
// A slab that is not whole comes first, filled up with products of zeros. So products are added
// in order, as far as the instruction does so.
//
//===----------------------------------------------------------------------===//

#include "MatrixContraction.h"

#include "Slabs.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Returns the summed coordinates of a product, or of a vector of them.
SmallVector<AffineExpr> MatrixContraction::getProducts(AffineExpr number, int64_t vector) const {
  SmallVector<int64_t> counts(emitter.domain.getColumnSizes());
  counts.back() /= vector;
  SmallVector<AffineExpr> at = emitter.delinearize(number, counts);
  if (vector > 1)
    at.back() = at.back() * vector + emitter.vectorLane();
  return at;
}

SmallVector<AffineExpr> MatrixContraction::getIndices(const Side &side, AffineExpr element,
                                                      ArrayRef<AffineExpr> products) const {
  AffineExpr none = emitter.constant(0);
  SmallVector<AffineExpr> point = sides.getPoint(side.isOfRows ? element : none,
                                                 side.isOfRows ? none : element, rest, products);
  return emitter.apply(getAccessMap(op, side.factor), emitter.getLoops(op, point));
}

/// Whether neighbours lie in memory as a vector: a run of an operand's elements, or a pair that is
/// computed from such.
bool MatrixContraction::isWhole(const Side &side, AffineExpr element, ArrayRef<AffineExpr> products,
                                int64_t vector) const {
  SmallVector<AffineExpr> indices = getIndices(side, element, products);
  if (vector == runElements)
    return emitter.getRun(side.factor->get(), indices, vector).has_value();
  return emitter.isVectorFriendly(side.factor->get(), indices);
}

/// Chooses what lies side by side in the lines of a slab, and how many of it are brought at once.
void MatrixContraction::chooseLines(Side &side) {
  AffineExpr first = side.getFirst(), lane = emitter.vectorLane();
  AffineExpr any = emitter.dim(roundCoordinate);
  int64_t innermost = emitter.domain.getColumnSizes().back();
  for (int64_t vector : {runElements, emitter.lanes}) {
    side.vector = vector;
    side.hasProductsInLines = true;
    // f32 is rounded on its way, which boxes are by what copies them.
    side.isCopied = vector == runElements && (tile.isGroup || !type.isF32());
    if (innermost % vector == 0 && isWhole(side, first, getProducts(any, vector), vector))
      return;
    side.hasProductsInLines = false;
    if (side.end % vector == 0 && isWhole(side, first + lane, getProducts(any, 1), vector))
      return;
  }
  // Neighbours of the last index that is walked are neighbours in memory, if any are.
  side.vector = 1;
  AffineMap map = getAccessMap(op, side.factor);
  side.hasProductsInLines = false;
  for (auto [loop, dim] : llvm::enumerate(emitter.domain.getDims(op)))
    side.hasProductsInLines |= dim >= int64_t(emitter.domain.getNumRows()) &&
                               map.getResults().back().isFunctionOfDim(loop);
}

/// Returns the line of a slab that is number `turn` to be stored, in lines of `runs` runs: those
/// that eight invocations store at once are in different banks.
static AffineExpr getLine(AffineExpr turn, int64_t runs) {
  constexpr int64_t atOnce = 8;
  if (runs >= atOnce || atOnce % runs != 0)
    return turn;
  int64_t lines = atOnce / runs;
  return turn % lines * runs + turn.floorDiv(lines) % runs + turn.floorDiv(atOnce) * atOnce;
}

/// Returns the number of places by which the runs of a line are rotated, where a slab is copied:
/// eight neighbouring lines have a run of one number in different banks.
AffineExpr MatrixContraction::getRotation(const Side &side, AffineExpr line) const {
  return (line % matrixLines).floorDiv(std::max<int64_t>(1, matrixLines / countRuns(side)));
}

/// Chooses what the invocation brings of a factor.
void MatrixContraction::chooseShares(Side &side) {
  chooseLines(side);
  if (tile.isGroup)
    return chooseBox(side);
  bool ofProducts = side.hasProductsInLines;
  int64_t inElements = ofProducts ? 1 : side.vector, inProducts = ofProducts ? side.vector : 1;
  int64_t count = side.elements * tile.slab / side.vector / threads;
  int64_t inner = ofProducts ? tile.slab / inProducts : side.elements / inElements;
  assert(threads % inner == 0 && "an invocation's shares are at one place of their lines");
  auto name = [&](unsigned ofRows, unsigned ofColumns, AffineExpr value) {
    return emitter.setCoordinate(side.isOfRows ? ofRows : ofColumns, emitter.expand(value));
  };
  AffineExpr firstLine = thread.floorDiv(inner);
  if (ofProducts && !side.isCopied)
    firstLine = getLine(firstLine, inner);
  firstLine = name(rowLineCoordinate, columnLineCoordinate, firstLine);
  AffineExpr inLine = thread % inner, run = inLine;
  if (side.isCopied) { // the run that is in this place, the same for all shares
    assert(threads / inner % matrixLines == 0 && "lines of all shares are rotated alike");
    run = (inLine + getRotation(side, firstLine) * (inner - 1)) % inner;
  }
  run = name(rowRunCoordinate, columnRunCoordinate, run);
  side.shares.clear();
  for (int64_t i = 0; i < count; ++i) {
    AffineExpr line = firstLine + i * (threads / inner);
    Side::Share share;
    share.element = ofProducts ? line : run;
    share.product = ofProducts ? run : line;
    share.ofAll = side.tileNumber * (side.elements / inElements) + share.element;
    if (side.isPartial()) // an element that is there, in place of one that is not
      share.ofAll = share.ofAll % (side.end / inElements);
    share.place = side.isCopied
                      ? line * getStride(side) + inLine * runElements
                      : getPlace(side, share.element * inElements, share.product * inProducts);
    side.shares.push_back(share);
  }
}

/// Chooses the number of stages: where slabs are copied, as many as the profile has, workgroup
/// memory holds and slabs fill. Two workgroups share a unit's memory, unless they are so large that
/// registers are for one only.
void MatrixContraction::chooseStages() {
  if (!ofRows.isCopied && !ofColumns.isCopied)
    return;
  int64_t elements = 0;
  for (const Side *side : {&ofRows, &ofColumns})
    elements += countLines(*side) * getStride(*side);
  constexpr int64_t mbarrierBytes = 1024; // up to the next slab
  int64_t memory = emitter.profile.workgroupMemory;
  if (tile.isGroup)
    memory -= mbarrierBytes;
  else if (threads < tuning::units::largeWorkgroup)
    memory = std::max(memory / 2, emitter.profile.getDeclaredMemory());
  int64_t fitting = memory / (elements * type.getIntOrFloatBitWidth() / 8);
  const int64_t slabs = tile.isGroup ? llvm::divideCeil(products, tile.slab) : products / tile.slab;
  stages = std::max<int64_t>(2, std::min({emitter.profile.matrixStages, fitting, slabs}));
}

void MatrixContraction::allocate(Side &side) {
  // Where slabs are read by instructions, all are one memory, so that they share an address.
  const int64_t slabs = tile.isGroup ? 1 : stages;
  auto shared = MemRefType::get(
      {countLines(side) * getStride(side) * (stages / slabs)}, type, MemRefLayoutAttrInterface{},
      gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup));
  side.slabs.clear();
  for (int64_t slab = 0; slab < slabs; ++slab)
    side.slabs.push_back(emitter.getFunction().addWorkgroupAttribution(shared, emitter.loc));
}

/// Returns where a share of a slab of `count` products lies in the operand.
SmallVector<AffineExpr> MatrixContraction::getShareIndices(const Side &side,
                                                           const Side::Share &share,
                                                           AffineExpr firstProduct,
                                                           int64_t count) const {
  int64_t vector = side.hasProductsInLines ? side.vector : 1;
  AffineExpr product = share.product;
  if (count < tile.slab) // a product that is there, in place of one that is not
    product = product % (count / vector);
  SmallVector<AffineExpr> at = getProducts(firstProduct.floorDiv(vector) + product, vector);
  AffineExpr element = share.ofAll;
  if (!side.hasProductsInLines && side.vector > 1)
    element = element * side.vector + emitter.vectorLane();
  return getIndices(side, element, at);
}

/// Loads a share of a slab that has `count` products; others are zeros.
Value MatrixContraction::loadShare(const Side &side, const Side::Share &share,
                                   AffineExpr firstProduct, int64_t count) {
  OpBuilder &b = emitter.builder();
  int64_t vector = side.hasProductsInLines ? side.vector : 1;
  SmallVector<AffineExpr> indices = getShareIndices(side, share, firstProduct, count);
  Value value;
  if (side.vector == runElements) {
    value = emitter.loadRun(side.factor->get(), indices, runElements);
  } else {
    value = emitter.evaluate(side.factor->get(), indices);
    if (side.vector > 1)
      value = emitter.broadcast(value);
  }
  if (count == tile.slab)
    return value;
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(value.getType()));
  Value isThere =
      arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult,
                            emitter.expand(share.product), emitter.indexConstant(count / vector));
  return arith::SelectOp::create(b, emitter.loc, isThere, value, zero);
}

Value weir::roundToTf32(PointEmitter &emitter, Value value) {
  OpBuilder &b = emitter.builder();
  Type type = value.getType();
  if (type.isF32()) {
    Value word = NVVM::ConvertFloatToTF32Op::create(b, emitter.loc, b.getI32Type(), value,
                                                    NVVM::FPRoundingMode::RNA);
    return arith::BitcastOp::create(b, emitter.loc, type, word);
  }
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || !vector.getElementType().isF32())
    return value;
  SmallVector<Value> elements;
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    elements.push_back(roundToTf32(emitter, emitter.extract(value, i)));
  return vector::FromElementsOp::create(b, emitter.loc, vector, elements);
}

void MatrixContraction::storeShare(const Side &side, const Side::Share &share, Value value,
                                   unsigned slab) {
  value = roundToTf32(emitter, value);
  OpBuilder &b = emitter.builder();
  Value at = emitter.expand(share.place);
  if (side.vector == 1) {
    memref::StoreOp::create(b, emitter.loc, value, side.slabs[slab], at);
    return;
  }
  llvm::Align alignment(side.vector * type.getIntOrFloatBitWidth() / 8);
  vector::StoreOp::create(b, emitter.loc, value, side.slabs[slab], at, /*nontemporal=*/false,
                          alignment);
}

/// Loads the invocation's shares of a slab of `count` products, as far as they are whole runs:
/// others would take too many registers until they are stored. Shares of factors that are copied
/// are loaded only on demand.
SmallVector<Value> MatrixContraction::load(AffineExpr firstProduct, int64_t count,
                                           bool withCopied) {
  SmallVector<Value> loaded;
  for (const Side *side : {&ofRows, &ofColumns})
    for (const Side::Share &share : side->shares)
      if (side->vector == runElements && (!side->isCopied || withCopied))
        loaded.push_back(loadShare(*side, share, firstProduct, count));
  return loaded;
}

/// Stores what was loaded, and what was not loaded yet, in workgroup memory.
void MatrixContraction::store(ArrayRef<Value> loaded, AffineExpr firstProduct, int64_t count,
                              unsigned slab, bool withCopied) {
  for (const Side *side : {&ofRows, &ofColumns})
    for (const Side::Share &share : side->shares) {
      if (side->isCopied && !withCopied)
        continue;
      Value value;
      if (side->vector == runElements) {
        value = loaded.front();
        loaded = loaded.drop_front();
      } else {
        value = loadShare(*side, share, firstProduct, count);
      }
      storeShare(*side, share, value, slab);
    }
}

/// Begins to copy the invocation's shares of a slab, as far as factors are copied.
void MatrixContraction::copy(AffineExpr firstProduct, unsigned slab) {
  for (const Side *side : {&ofRows, &ofColumns})
    for (const Side::Share &share : side->shares)
      if (side->isCopied)
        emitter.copyRun(side->factor->get(), getShareIndices(*side, share, firstProduct, tile.slab),
                        runElements, side->slabs[slab], emitter.expand(share.place));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Returns the type of a fragment of as many registers, which have 32 bits each.
VectorType MatrixContraction::getFragmentType(int64_t registers) const {
  return VectorType::get({registers, runElements / productLanes}, type);
}

/// Takes a fragment as `takeFragment` does, register by register, of f32 with neighbouring elements
/// side by side: ldmatrix transposes no words.
Value MatrixContraction::takeWords(const Side &side, unsigned slab, AffineExpr element,
                                   int64_t product) {
  OpBuilder &b = emitter.builder();
  Value fragment = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(getFragmentType(4)));
  for (int64_t i = 0; i < 4; ++i) {
    int64_t second = i % 2, upper = i / 2;
    AffineExpr ofElements =
        element + lane.floorDiv(productLanes) + (side.isOfRows ? second : upper) * matrixLines;
    AffineExpr ofProducts =
        lane % productLanes + (product + (side.isOfRows ? upper : second) * productLanes);
    Value word = memref::LoadOp::create(b, emitter.loc, side.slabs[slab],
                                        emitter.expand(getPlace(side, ofElements, ofProducts)));
    fragment = vector::InsertOp::create(b, emitter.loc, word, fragment, ArrayRef<int64_t>{i, 0});
  }
  return fragment;
}

/// Takes a fragment of an instruction's products by 16 rows, or by two blocks of columns, from a
/// slab.
Value MatrixContraction::takeFragment(const Side &side, unsigned slab, AffineExpr element,
                                      int64_t product) {
  if (type.isF32() && !side.hasProductsInLines)
    return takeWords(side, slab, element, product);
  // Each lane names one line of the four matrices of eight lines that are taken at once. Of the
  // rows' factor the second matrix has other rows, of the columns' other products.
  AffineExpr inMatrix = lane % matrixLines, upper = lane.floorDiv(2 * matrixLines),
             second = lane.floorDiv(matrixLines) % 2;
  AffineExpr ofProducts = (side.isOfRows ? upper : second) * runElements + product;
  AffineExpr ofElements = element + (side.isOfRows ? second : upper) * matrixLines;
  AffineExpr &line = side.hasProductsInLines ? ofElements : ofProducts,
             &inLine = side.hasProductsInLines ? ofProducts : ofElements;
  line = line + inMatrix;
  AffineExpr place = getPlace(side, ofElements, ofProducts);
  if (side.isCopied)
    place = line * getStride(side) + (inLine.floorDiv(runElements) + getRotation(side, inMatrix)) %
                                         countRuns(side) * runElements;
  return nvgpu::LdMatrixOp::create(emitter.builder(), emitter.loc, getFragmentType(4),
                                   side.slabs[slab], emitter.expand(place),
                                   /*transpose=*/!side.hasProductsInLines, /*numTiles=*/4);
}

/// Adds the products of a slab in workgroup memory, of which `count` are no zeros.
MatrixContraction::Sums MatrixContraction::addProducts(unsigned slab, int64_t count,
                                                       ValueRange sums) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Sums next(sums);
  for (int64_t product = 0; product < count; product += mmaProducts) {
    SmallVector<Value> rows, columns;
    for (int64_t row = 0; row < tile.rows; row += mmaRows)
      rows.push_back(takeFragment(ofRows, slab, subgroupRow * tile.rows + row, product));
    for (int64_t column = 0; column < tile.columns; column += 2 * mmaColumns) {
      Value both = takeFragment(ofColumns, slab, subgroupColumn * tile.columns + column, product);
      for (int64_t block : {0, 1}) {
        Value one = arith::ConstantOp::create(b, loc, b.getZeroAttr(getFragmentType(2)));
        for (int64_t i : {0, 1})
          one = vector::InsertOp::create(
              b, loc, vector::ExtractOp::create(b, loc, both, 2 * block + i), one, i);
        columns.push_back(one);
      }
    }
    for (auto [i, row] : llvm::enumerate(rows))
      for (auto [j, column] : llvm::enumerate(columns)) {
        Value &sum = next[i * columns.size() + j];
        sum = nvgpu::MmaSyncOp::create(b, loc, row, column, sum,
                                       ArrayRef<int64_t>{mmaRows, mmaColumns, mmaProducts},
                                       /*tf32Enabled=*/type.isF32());
      }
  }
  return next;
}

/// Adds the first slab, which is not whole.
MatrixContraction::Sums MatrixContraction::addPartialSlab(int64_t count, ValueRange sums) {
  return emitter.loop(1, sums, [&](Value, ValueRange running) {
    AffineExpr first = emitter.constant(0);
    store(load(first, count, /*withCopied=*/true), first, count, 0, /*withCopied=*/true);
    barrier();
    Sums added = addProducts(0, count, running);
    barrier();
    return added;
  });
}

/// Computes the subgroup's sums.
MatrixContraction::Sums MatrixContraction::sumProducts() {
  OpBuilder &b = emitter.builder();
  auto block = VectorType::get({2, 2}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(block));
  Sums sums(countRowBlocks() * countColumnBlocks(), zero);
  int64_t slabs = products / tile.slab, early = products % tile.slab;
  if (early)
    sums = addPartialSlab(early, sums);
  StageWalk walk;
  walk.stages = stages;
  walk.first = early;
  walk.slabs = slabs;
  walk.slab = tile.slab;
  walk.roundCoordinate = roundCoordinate;
  walk.copies = ofRows.isCopied || ofColumns.isCopied;
  walk.copy = [&](AffineExpr first, unsigned stage) { copy(first, stage); };
  walk.load = [&](AffineExpr first) { return load(first, tile.slab, /*withCopied=*/false); };
  walk.store = [&](ArrayRef<Value> loaded, AffineExpr first, unsigned stage) {
    store(loaded, first, tile.slab, stage, /*withCopied=*/false);
  };
  walk.add = [&](unsigned stage, ValueRange running) {
    return addProducts(stage, tile.slab, running);
  };
  return walkStages(emitter, walk, sums);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns the pair of sums that the invocation has in a half of a block. Registers have no index,
/// so they are selected among those of all blocks of rows.
Value MatrixContraction::getSum(ArrayRef<Value> sums, Value rowBlock, int64_t columnBlock,
                                int64_t half) {
  OpBuilder &b = emitter.builder();
  Value pair;
  for (int64_t block = 0; block < countRowBlocks(); ++block) {
    Value own = vector::ExtractOp::create(b, emitter.loc,
                                          sums[block * countColumnBlocks() + columnBlock], half);
    if (!pair) {
      pair = own;
      continue;
    }
    Value isOwn = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::eq, rowBlock,
                                        emitter.indexConstant(block));
    pair = arith::SelectOp::create(b, emitter.loc, isOwn, own, pair);
  }
  return pair;
}

/// Stores what comes of the sums in a block of columns, in a loop over the blocks of rows, so that
/// there is one copy of the code for all of them. The column is a
/// pair, or `element` of one.
void MatrixContraction::storeBlocks(int64_t columnBlock, AffineExpr column, int64_t element,
                                    ArrayRef<Value> sums) {
  SmallVector<AffineExpr> noProducts(emitter.domain.getColumnSizes().size(), emitter.constant(0));
  emitter.loop(countRowBlocks(), {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr block = emitter.setCoordinate(rowBlockCoordinate, trip);
    for (int64_t half : {0, 1}) {
      AffineExpr row = ofRows.getFirst() + subgroupRow * tile.rows + block * mmaRows +
                       lane.floorDiv(mmaColumns / 2) + half * mmaRows / 2;
      auto storeRow = [&](AffineExpr inside) {
        emitter.startPoint();
        Value sum = getSum(sums, trip, columnBlock, half);
        if (element >= 0)
          sum = emitter.extract(sum, element);
        storeSums(emitter, sum, sides.getPoint(inside, column, rest, noProducts));
      };
      if (ofRows.isPartial())
        guardInside(emitter, insideBlockRowCoordinate, row, ofRows.end, storeRow);
      else
        storeRow(row);
    }
    return {};
  });
}

/// Takes the workgroup memory of other tiles of the kernel, of which a workgroup has one, and which
/// are no smaller.
void MatrixContraction::useMemoryOf(const MatrixContraction &other) {
  ofRows.slabs = other.ofRows.slabs;
  ofColumns.slabs = other.ofColumns.slabs;
  stages = other.stages;
  mbarriers = other.mbarriers;
  thread = other.thread;
}

void MatrixContraction::emitTile(Value number) {
  AffineExpr at = emitter.setCoordinate(unitCoordinate, number);
  // Neighbouring workgroups have the same columns.
  SmallVector<AffineExpr> digits = getDigits(
      emitter, at, {getProduct(sides.restSizes), ofColumns.countTiles(), ofRows.countTiles()});
  auto name = [&](unsigned coordinate, AffineExpr value) {
    return emitter.setCoordinate(coordinate, emitter.expand(value));
  };
  ofRows.tileNumber = name(tileRowCoordinate, digits[2]);
  ofColumns.tileNumber = name(tileColumnCoordinate, digits[1]);
  rest = emitter.delinearize(name(tileRestCoordinate, digits[0]), sides.restSizes);
  int64_t subgroupSize = emitter.profile.subgroupSize;
  lane = name(laneCoordinate, thread % subgroupSize);
  AffineExpr subgroup = thread.floorDiv(subgroupSize);
  subgroupRow = name(subgroupRowCoordinate, subgroup.floorDiv(tile.columnSubgroups));
  subgroupColumn = name(subgroupColumnCoordinate, subgroup % tile.columnSubgroups);
  for (Side *side : {&ofRows, &ofColumns})
    chooseShares(*side);
  if (ofRows.slabs.empty()) {
    chooseStages();
    for (Side *side : {&ofRows, &ofColumns})
      allocate(*side);
  }

  SmallVector<Value> sums = tile.isGroup ? sumGroupProducts() : sumProducts();
  bool arePairs = ofColumns.end % 2 == 0;
  for (int64_t block = 0; block < countColumnBlocks(); ++block) {
    // In pairs of columns.
    AffineExpr pair = ofColumns.getFirst().floorDiv(2) + subgroupColumn * (tile.columns / 2) +
                      block * mmaColumns / 2 + lane % (mmaColumns / 2);
    if (arePairs) {
      auto storePair = [&](AffineExpr inside) {
        storeBlocks(block, inside * 2 + emitter.vectorLane(), /*element=*/-1, sums);
      };
      if (ofColumns.isPartial())
        guardInside(emitter, insideColumnCoordinate, pair, ofColumns.end / 2, storePair);
      else
        storePair(pair);
      continue;
    }
    for (int64_t element : {0, 1})
      guardInside(emitter, insideColumnCoordinate, pair * 2 + element, ofColumns.end,
                  [&](AffineExpr inside) { storeBlocks(block, inside, element, sums); });
  }
}

void MatrixContraction::run(EmittedKernel &launch) {
  auto place = emitter.codeFor(op);
  emitter.setWorkgroup(threads);
  auto emit = [&](int64_t tiles, function_ref<void(Value)> emitOne) {
    emitWorkgroups(emitter, tiles, launch, [&](Value group) {
      thread = emitter.setCoordinate(
          teamLaneCoordinate,
          gpu::ThreadIdOp::create(emitter.builder(), emitter.loc, gpu::Dimension::x));
      emitOne(group);
    });
  };
  if (tile.narrowFrom == 0)
    return emit(countTiles(), [&](Value group) { emitTile(group); });
  ofColumns.end = tile.narrowFrom;
  const int64_t wide = countTiles();
  // Of columns of the narrow width, as if there had been nothing but them before: workgroups keep
  // their numbers.
  MatrixTile narrowTile = tile;
  narrowTile.columns = tile.narrowColumns;
  MatrixContraction narrow(emitter, narrowTile,
                           tile.narrowFrom - ofColumns.countTiles() * tile.narrowColumns);
  // LLVM would store what ends both alike behind them, at addresses that nobody follows. Here is
  // nothing to wait for, but it does not move what all lanes must come to together.
  auto endArm = [&] { NVVM::WgmmaWaitGroupSyncOp::create(emitter.builder(), emitter.loc, 0); };
  emit(narrow.countTiles(), [&](Value group) {
    Value isWide = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult,
                                         group, emitter.indexConstant(wide));
    emitter.branch(
        isWide,
        [&] {
          emitTile(group);
          endArm();
        },
        [&] {
          narrow.useMemoryOf(*this);
          narrow.emitTile(group);
          endArm();
        });
  });
}

void weir::emitMatrixContraction(PointEmitter &emitter, const MatrixTile &tile,
                                 EmittedKernel &launch) {
  MatrixContraction(emitter, tile).run(launch);
}
