//===- Map.cpp - Kernels that compute every point for itself --------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weir;

/// Units per invocation: as many as the profile likes, but not so many that
/// fewer than 64 workgroups are left, and a number that leaves no rest if one is
/// near.
static int64_t getUnitsPerInvocation(const Profile &profile, int64_t units) {
  int64_t max =
      std::clamp<int64_t>(units / (profile.workgroupSize * 64), 1, profile.elementsPerInvocation);
  for (int64_t count = max; 2 * count > max; --count)
    if (units % (profile.workgroupSize * count) == 0)
      return count;
  return max;
}

/// Returns the row-major digits of a unit of four neighbours in a space of any last
/// dimension.
static SmallVector<AffineExpr> getFlatPoint(PointEmitter &emitter, AffineExpr unit,
                                            ArrayRef<int64_t> sizes) {
  return emitter.delinearize(unit * 4 + emitter.vectorLane(), sizes);
}

/// Whether four neighbours, over the ends of the last dimension, are read and
/// written as whole vectors: all tensors are walked as they lie in memory.
static bool isFlat(PointEmitter &emitter, ArrayRef<int64_t> sizes) {
  if (emitter.profile.vectorWidth != 4 || getProduct(sizes) % 4 != 0)
    return false;
  SmallVector<AffineExpr> point = getFlatPoint(emitter, emitter.dim(unitCoordinate), sizes);
  for (auto [result, value] : llvm::enumerate(emitter.computed)) {
    SmallVector<AffineExpr> indices = getResultIndices(emitter, value, point);
    if (!emitter.isVectorFriendly(value, indices) || !emitter.isVectorStore(result, indices))
      return false;
  }
  return true;
}

void weir::emitMap(PointEmitter &emitter, EmittedKernel &launch) {
  const Profile &profile = emitter.profile;
  ArrayRef<int64_t> sizes = emitter.domain.getSizes();
  bool vector = isVectorDomain(profile, sizes);
  bool flat = !vector && isFlat(emitter, sizes);
  int64_t units = getProduct(sizes) / (vector || flat ? 4 : 1);
  int64_t perInvocation = getUnitsPerInvocation(profile, units);
  int64_t perGroup = profile.workgroupSize * perInvocation;
  auto results = llvm::to_vector(llvm::seq<unsigned>(emitter.kernel.getNumResults()));
  bool exact = units % perGroup == 0;

  emitWorkgroups(emitter, llvm::divideCeil(units, perGroup), launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Value thread = gpu::ThreadIdOp::create(b, emitter.loc, gpu::Dimension::x);
    Value begin = arith::AddIOp::create(
        b, emitter.loc,
        arith::MulIOp::create(b, emitter.loc, group, emitter.indexConstant(perGroup)), thread);
    emitter.loop(perInvocation, {}, [&](Value trip, ValueRange) -> SmallVector<Value> {
      OpBuilder &b = emitter.builder();
      Value step =
          arith::MulIOp::create(b, emitter.loc, trip, emitter.indexConstant(profile.workgroupSize));
      Value unit = arith::AddIOp::create(b, emitter.loc, begin, step);
      auto compute = [&]() -> SmallVector<Value> {
        AffineExpr number = emitter.setCoordinate(unitCoordinate, unit);
        SmallVector<AffineExpr> point =
            flat ? getFlatPoint(emitter, number, sizes) : getPoint(emitter, number, sizes, vector);
        emitResults(emitter, results, point);
        return {};
      };
      if (exact)
        return compute();
      Value inside = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult, unit,
                                           emitter.indexConstant(units));
      return emitter.guard(inside, {}, compute);
    });
  });
}
