//===- TileBlock.cpp - A block of inner sums in one invocation ------------===//

#include "TileBlock.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

TileBlock::TileBlock(PointEmitter &emitter, int64_t rows)
    : emitter(emitter), blocks(*emitter.domain.getBlocks()), rows(rows),
      walked(emitter.domain.getSizes()[blocks.walkedDim]) {
  int64_t width = emitter.profile.vectorWidth;
  for (const Blocks::Inner &inner : blocks.inner)
    if (emitter.getElementType(linalg::GenericOp(inner.op).getResult(0)).getIntOrFloatBitWidth() ==
        64)
      width = std::max<int64_t>(emitter.profile.vectorWidth / 2, 1);
  lanes = std::min<int64_t>(width, llvm::bit_floor<uint64_t>(walked));
  columns = std::min(tuning::blocks::maxNumbersOfProcessor, walked / lanes * lanes);
}

VectorType TileBlock::getVectorType(const Blocks::Inner &inner) const {
  return VectorType::get({lanes}, emitter.getElementType(linalg::GenericOp(inner.op).getResult(0)));
}

void TileBlock::allocate() {
  memories.clear();
  for (const Blocks::Inner &inner : blocks.inner) {
    Type element = getVectorType(inner).getElementType();
    int64_t products = getProduct(getInnerSizes(inner.op));
    memories.push_back({allocatePrivate(emitter, element, 1, products * columns),
                        allocatePrivate(emitter, element, 1, rows * columns)});
  }
}

void TileBlock::pack(ArrayRef<AffineExpr> at, AffineExpr first, int64_t count) {
  packed = llvm::alignTo(count, lanes);
  skipped = packed - count;
  begin = first - skipped;
  emitter.setLanes(lanes);
  for (auto [inner, memory] : llvm::zip_equal(blocks.inner, memories))
    packFactor(inner, memory.pack, at);
}

void TileBlock::packFactor(const Blocks::Inner &inner, Value memory, ArrayRef<AffineExpr> at) {
  auto located = emitter.codeFor(inner.op);
  SmallVector<int64_t> sizes = getInnerSizes(inner.op);
  AffineExpr lane = emitter.vectorLane();
  auto evaluate = [&](AffineExpr column, ArrayRef<AffineExpr> products) {
    SmallVector<AffineExpr> point(at);
    point[blocks.walkedDim] = begin + column;
    return evaluateFactor(emitter, inner.walkedFactor,
                          getInnerIndices(emitter, inner, inner.walkedFactor, point, products));
  };
  auto store = [&](Value vector, AffineExpr product, AffineExpr column) {
    vector::StoreOp::create(emitter.builder(), emitter.loc, emitter.broadcast(vector), memory,
                            emitter.expand(product * columns + column));
  };
  // Neighbouring products lie side by side: vectors of them are transposed.
  auto isWhole = [&] {
    if (lanes == 1 || sizes.empty() || sizes.back() % lanes != 0)
      return false;
    SmallVector<AffineExpr> point(at), products(sizes.size(), emitter.constant(0));
    point[blocks.walkedDim] = begin;
    products.back() = emitter.dim(packedCoordinate) * lanes + lane;
    return emitter.isVectorFriendly(
        inner.walkedFactor->get(),
        getInnerIndices(emitter, inner, inner.walkedFactor, point, products));
  };
  const bool transposes = isWhole();
  int64_t step = transposes ? lanes : 1;
  if (transposes)
    sizes.back() /= lanes;
  emitter.loop(packed / lanes, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    AffineExpr column = emitter.setCoordinate(tileColumnCoordinate, trip) * lanes;
    return emitter.loop(getProduct(sizes), {}, [&](Value number, ValueRange) -> SmallVector<Value> {
      AffineExpr product = emitter.setCoordinate(packedCoordinate, number);
      SmallVector<AffineExpr> products = emitter.delinearize(product, sizes);
      if (!transposes) {
        store(evaluate(column + lane, products), product, column);
        return {};
      }
      products.back() = products.back() * lanes + lane;
      SmallVector<Value> vectors;
      for (int64_t i = 0; i < lanes; ++i)
        vectors.push_back(evaluate(column + i, products));
      for (auto [i, vector] : llvm::enumerate(transposeVectors(emitter, std::move(vectors))))
        store(vector, product * step + i, column);
      return {};
    });
  });
}

void TileBlock::sum(ArrayRef<AffineExpr> at, AffineExpr firstRow) {
  emitter.setLanes(lanes);
  for (auto [inner, memory] : llvm::zip_equal(blocks.inner, memories))
    sumFactor(inner, memory, at, firstRow);
}

/// Computes the sums of one inner contraction: of as many vectors at once as registers have room
/// for.
void TileBlock::sumFactor(const Blocks::Inner &inner, const Memory &memory, ArrayRef<AffineExpr> at,
                          AffineExpr firstRow) {
  auto located = emitter.codeFor(inner.op);
  const Profile &profile = emitter.profile;
  SmallVector<int64_t> sizes = getInnerSizes(inner.op);
  VectorType type = getVectorType(inner);
  int64_t most = std::max<int64_t>(profile.contractionRows * profile.contractionColumns / rows, 1);
  auto sumVectors = [&](AffineExpr firstVector, int64_t vectors) {
    OpBuilder &b = emitter.builder();
    SmallVector<Value> sums(rows * vectors,
                            arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(type)));
    sums = emitter.loop(getProduct(sizes), sums, [&](Value number, ValueRange running) {
      AffineExpr product = emitter.setCoordinate(packedCoordinate, number);
      SmallVector<AffineExpr> products = emitter.delinearize(product, sizes);
      SmallVector<Value> next(running), factors;
      for (int64_t i = 0; i < vectors; ++i)
        factors.push_back(
            vector::LoadOp::create(emitter.builder(), emitter.loc, type, memory.pack,
                                   emitter.expand(product * columns + (firstVector + i) * lanes)));
      for (int64_t row = 0; row < rows; ++row) {
        SmallVector<AffineExpr> point(at);
        point[blocks.rowDim] = firstRow + row;
        Value factor = emitter.broadcast(
            evaluateFactor(emitter, inner.rowFactor,
                           getInnerIndices(emitter, inner, inner.rowFactor, point, products)));
        for (int64_t i = 0; i < vectors; ++i) {
          Value &total = next[row * vectors + i];
          total = math::FmaOp::create(emitter.builder(), emitter.loc, factor, factors[i], total);
        }
      }
      return next;
    });
    for (auto [i, total] : llvm::enumerate(sums)) {
      AffineExpr place = firstVector + int64_t(i) % vectors;
      vector::StoreOp::create(emitter.builder(), emitter.loc, total, memory.sums,
                              emitter.expand(place * lanes + int64_t(i) / vectors * columns));
    }
  };
  int64_t vectors = getVectors();
  emitter.loop(vectors / most, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
    sumVectors(emitter.setCoordinate(tileColumnCoordinate, trip) * most, most);
    return {};
  });
  if (int64_t rest = vectors % most)
    emitter.loop(1, {}, [&](Value, ValueRange) -> SmallVector<Value> {
      sumVectors(emitter.constant(vectors - rest), rest);
      return {};
    });
}

void TileBlock::atVector(ArrayRef<AffineExpr> at, AffineExpr firstRow, AffineExpr row,
                         AffineExpr vector, function_ref<void(ArrayRef<AffineExpr> point)> body) {
  emitter.setLanes(lanes);
  SmallVector<AffineExpr> point(at);
  point[blocks.rowDim] = firstRow + row;
  point[blocks.walkedDim] = begin + vector * lanes;
  if (lanes > 1)
    point[blocks.walkedDim] = point[blocks.walkedDim] + emitter.vectorLane();
  emitter.startPoint();
  for (auto [inner, memory] : llvm::zip_equal(blocks.inner, memories)) {
    Value address = emitter.expand(row * columns + vector * lanes);
    OpBuilder &b = emitter.builder();
    Value total =
        vector::LoadOp::create(b, emitter.loc, getVectorType(inner), memory.sums, address);
    if (lanes == 1)
      total = emitter.extract(total, 0);
    emitter.setReduced(linalg::GenericOp(inner.op).getResult(0), total);
  }
  body(point);
}
