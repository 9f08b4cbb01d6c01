//===- TransposedMap.cpp - Maps that transpose an operand -----------------===//
//
// Neighbours in the result are not neighbours in the operand. A workgroup brings a tile of both
// dimensions to workgroup memory, along the lines of the operand, and writes it along the lines of
// the result: each access of a subgroup is one piece of memory. A line of the tile has one element
// more, which nothing uses: so invocations that read a column of it are in different banks.
//
//===----------------------------------------------------------------------===//

#include "Slabs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weir;

/// Elements of a tile's line, each of an invocation of a subgroup.
static constexpr int64_t tileSize = 32;
/// Of the domain: both dimensions of a tile, and one more. Of more, the proofs of the code don't
/// follow all addresses.
static constexpr size_t maxDims = 3;

namespace {
enum TransposedCoordinates : unsigned { lineCoordinate = productCoordinate, laneCoordinate };

/// An op that does nothing but transpose.
struct Transposition {
  OpOperand *operand = nullptr;
  int64_t across = 0; ///< the dimension of the domain in which the operand's neighbours lie
};
} // namespace

static std::optional<Transposition> findTransposition(PointEmitter &emitter) {
  const Profile &profile = emitter.profile;
  const KernelDomain &domain = emitter.domain;
  ArrayRef<int64_t> sizes = domain.getSizes();
  if (profile.contractionSlab == 0 || profile.hasFreeVectors() || profile.vectorWidth == 1 ||
      profile.subgroupSize != tileSize || profile.workgroupSize % tileSize != 0 ||
      profile.workgroupSize > tileSize * tileSize || emitter.isStage() || sizes.size() < 2 ||
      sizes.size() > maxDims || emitter.computed.size() != 1)
    return std::nullopt;
  Value computed = emitter.computed.front();
  auto op = computed.getDefiningOp<linalg::GenericOp>();
  Operation *yield = emitter.kernel.getBody().front().getTerminator();
  constexpr int64_t bits = 32;
  Type element = emitter.getElementType(computed);
  if (!op || yield->getOperand(0) != computed || !element.isIntOrFloat() ||
      element.getIntOrFloatBitWidth() != bits || op.getNumDpsInputs() != 1 ||
      op.getNumResults() != 1)
    return std::nullopt;
  OpOperand *operand = op.getDpsInputOperand(0);
  AffineMap read = getAccessMap(op, operand);
  if (op.getBody()->getTerminator()->getOperand(0) != op.getBody()->getArgument(0) ||
      !isa<BlockArgument>(operand->get()) || !read.isPermutation() ||
      read.getNumResults() != sizes.size() ||
      !op.getIndexingMapMatchingResult(cast<OpResult>(computed)).isIdentity())
    return std::nullopt;
  const int64_t last = int64_t(sizes.size()) - 1;
  const int64_t across =
      domain.getDims(op)[cast<AffineDimExpr>(read.getResults().back()).getPosition()];
  if (across < 0 || across == last || domain.getDims(op).back() != last ||
      sizes[across] % tileSize != 0 || sizes[last] % tileSize != 0)
    return std::nullopt;
  return Transposition{operand, across};
}

bool weir::emitTransposedMap(PointEmitter &emitter, EmittedKernel &launch) {
  std::optional<Transposition> found = findTransposition(emitter);
  if (!found)
    return false;
  ArrayRef<int64_t> sizes = emitter.domain.getSizes();
  Value computed = emitter.computed.front();
  auto op = computed.getDefiningOp<linalg::GenericOp>();
  const int64_t last = int64_t(sizes.size()) - 1;
  SmallVector<int64_t> restSizes;
  for (int64_t dim = 0; dim < last; ++dim)
    if (dim != found->across)
      restSizes.push_back(sizes[dim]);
  const int64_t rests = getProduct(restSizes), tilesAcross = sizes[found->across] / tileSize,
                tilesAlong = sizes[last] / tileSize;
  const int64_t lines = emitter.profile.workgroupSize / tileSize, stride = tileSize + 1;
  Value memory = allocateShared(emitter, emitter.getElementType(computed), tileSize * stride);
  emitWorkgroups(emitter, rests * tilesAcross * tilesAlong, launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Location loc = emitter.loc;
    AffineExpr thread = emitter.setCoordinate(teamLaneCoordinate,
                                              gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x));
    auto name = [&](unsigned coordinate, AffineExpr value) {
      return emitter.setCoordinate(coordinate, emitter.expand(value));
    };
    AffineExpr number = emitter.setCoordinate(unitCoordinate, group);
    SmallVector<AffineExpr> digits = getDigits(emitter, number, {rests, tilesAcross, tilesAlong});
    SmallVector<AffineExpr> rest =
        emitter.delinearize(name(tileRestCoordinate, digits[0]), restSizes);
    AffineExpr tileAcross = name(tileRowCoordinate, digits[1]),
               tileAlong = name(tileColumnCoordinate, digits[2]);
    AffineExpr line = name(lineCoordinate, thread.floorDiv(tileSize)),
               lane = name(laneCoordinate, thread % tileSize);
    auto getPoint = [&](AffineExpr across, AffineExpr along) {
      SmallVector<AffineExpr> point(rest);
      point.insert(point.begin() + found->across, tileAcross * tileSize + across);
      point.push_back(tileAlong * tileSize + along);
      return point;
    };
    SmallVector<Value> loaded;
    for (int64_t first = 0; first < tileSize; first += lines)
      loaded.push_back(
          emitter.evaluate(found->operand->get(),
                           emitter.apply(getAccessMap(op, found->operand),
                                         emitter.getLoops(op, getPoint(lane, line + first)))));
    for (auto [turn, value] : llvm::enumerate(loaded))
      memref::StoreOp::create(b, loc, value, memory,
                              emitter.expand((line + int64_t(turn) * lines) * stride + lane));
    gpu::BarrierOp::create(b, loc);
    for (int64_t first = 0; first < tileSize; first += lines) {
      emitter.startPoint();
      Value value =
          memref::LoadOp::create(b, loc, memory, emitter.expand(lane * stride + line + first));
      emitter.store(0, value, getResultIndices(emitter, computed, getPoint(line + first, lane)));
    }
  });
  return true;
}
