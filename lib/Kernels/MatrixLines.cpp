//===- MatrixLines.cpp - Factors of blocks for instructions on matrices ---===//

#include "MatrixLines.h"

#include "MatrixContraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

std::pair<Value, Value> weir::splitFloat(PointEmitter &emitter, Value value) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Type wide = value.getType(), narrow = b.getBF16Type();
  if (auto type = dyn_cast<VectorType>(wide))
    narrow = type.clone(narrow);
  Value first = arith::TruncFOp::create(b, loc, narrow, value);
  Value left = arith::SubFOp::create(b, loc, value, arith::ExtFOp::create(b, loc, wide, first));
  return {first, arith::TruncFOp::create(b, loc, narrow, left)};
}

void MatrixLines::allocate() {
  Type element = isSplit ? emitter.builder().getBF16Type() : tile.type;
  auto shared =
      MemRefType::get({lines * getStride()}, element, MemRefLayoutAttrInterface{},
                      gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup));
  memory = emitter.getFunction().addWorkgroupAttribution(shared, emitter.loc);
  if (isSplit)
    left = emitter.getFunction().addWorkgroupAttribution(shared, emitter.loc);
}

/// Returns the indices at a line of the tile and an element of it, or a vector of them.
SmallVector<AffineExpr> MatrixLines::getAt(AffineExpr line, AffineExpr element,
                                           int64_t vector) const {
  if (firstElement)
    element = firstElement.floorDiv(vector) + element;
  SmallVector<int64_t> counts(sizes);
  counts.back() /= vector;
  SmallVector<AffineExpr> at = emitter.delinearize(element, counts);
  if (vector > 1)
    at.back() = at.back() * vector + emitter.vectorLane();
  AffineExpr ofAll = first + line;
  return getIndices(wraps ? ofAll % all : ofAll, at);
}

void MatrixLines::chooseShares(AffineExpr thread, AffineExpr any) {
  const int64_t threads = tile.getThreads(), run = tile.getRunElements();
  isCopied = false;
  for (int64_t neighbours : {run, emitter.lanes, int64_t(1)}) {
    vector = neighbours;
    if (vector == 1)
      break;
    if (sizes.back() % vector || allWidth % vector)
      continue;
    SmallVector<AffineExpr> indices = getAt(any, any, vector);
    if (vector == run ? emitter.getRun(factor->get(), indices, run).has_value()
                      : emitter.isVectorFriendly(factor->get(), indices))
      break;
  }
  // f32 is rounded on its way.
  isCopied = vector == run && !tile.type.isF32() && !isSplit;
  shares.clear();
  const int64_t inLine = width / vector;
  for (int64_t i = 0; i < lines * inLine / threads; ++i) {
    AffineExpr number = thread + i * threads;
    shares.push_back({number.floorDiv(inLine), number % inLine});
    if (threads % inLine == 0) // all are at one place of their lines
      shares.back() = {thread.floorDiv(inLine) + i * (threads / inLine), thread % inLine};
  }
}

Value MatrixLines::load(const Share &share) const {
  SmallVector<AffineExpr> indices = getAt(share.line, share.element, vector);
  if (vector == tile.getRunElements())
    return emitter.loadRun(factor->get(), indices, vector);
  Value value = emitter.evaluate(factor->get(), indices);
  return vector > 1 ? emitter.broadcast(value) : value;
}

void MatrixLines::copy(SmallVectorImpl<Value> &copies) const {
  if (!isCopied)
    return;
  for (const Share &share : shares)
    copies.push_back(emitter.copyRun(factor->get(), getAt(share.line, share.element, vector),
                                     vector, memory,
                                     emitter.expand(getPlace(share.line, share.element * vector))));
}

void MatrixLines::store(int64_t count) const {
  if (isCopied && count == lines)
    return;
  OpBuilder &b = emitter.builder();
  for (const Share &share : shares) {
    Value value = roundToTf32(emitter, load(share));
    if (count < lines) {
      Value zero = arith::ConstantOp::create(b, emitter.loc, b.getZeroAttr(value.getType()));
      Value isThere =
          arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult,
                                emitter.expand(share.line), emitter.indexConstant(count));
      value = arith::SelectOp::create(b, emitter.loc, isThere, value, zero);
    }
    Value at = emitter.expand(getPlace(share.line, share.element * vector));
    auto put = [&](Value value, Value memory) {
      if (vector == 1)
        memref::StoreOp::create(b, emitter.loc, value, memory, at);
      else
        vector::StoreOp::create(b, emitter.loc, value, memory, at, /*nontemporal=*/false,
                                llvm::Align(vector * tile.type.getIntOrFloatBitWidth() / 8));
    };
    if (!isSplit) {
      put(value, memory);
      continue;
    }
    Type wide = b.getF32Type();
    if (auto type = dyn_cast<VectorType>(value.getType()))
      wide = type.clone(wide);
    auto [first, second] = splitFloat(emitter, arith::ExtFOp::create(b, emitter.loc, wide, value));
    put(first, memory);
    put(second, left);
  }
}

bool MatrixLines::isSame(const MatrixLines &other, AffineExpr anyLine,
                         AffineExpr anyElement) const {
  return !isSplit && factor->get() == other.factor->get() && lines == other.lines &&
         width == allWidth && width == other.width && other.width == other.allWidth &&
         getIndices(anyLine, emitter.delinearize(anyElement, sizes)) ==
             other.getIndices(anyLine, emitter.delinearize(anyElement, other.sizes));
}
