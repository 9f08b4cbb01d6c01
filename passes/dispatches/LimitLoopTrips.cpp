//===- LimitLoopTrips.cpp - Unroll loops that a device would end early ----===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/LoopTrips.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_LIMITLOOPTRIPSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

/// Max operations of a kernel once its loops are unrolled; drivers take seconds for more.
static constexpr int64_t maxOperations = 1 << 14;

namespace {
struct LimitLoopTrips : weir::impl::LimitLoopTripsPassBase<LimitLoopTrips> {
  using LimitLoopTripsPassBase::LimitLoopTripsPassBase;

  void runOnOperation() override;
};
} // namespace

static int64_t countOperations(Operation *op) {
  int64_t count = 0;
  op->walk([&](Operation *) { ++count; });
  return count;
}

/// Returns the loop without loops in it that makes the most trips, and a known number.
static scf::ForOp findLongest(const LoopTrips &trips) {
  scf::ForOp longest;
  int64_t share = 0;
  for (LoopLikeOpInterface loop : trips.getLoops()) {
    auto counted = dyn_cast<scf::ForOp>(*loop);
    if (!counted || !counted.getStaticTripCount() || *trips.getTrips(loop) < 2)
      continue;
    bool isInnermost = !counted.getBody()
                            ->walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); })
                            .wasInterrupted();
    if (std::optional<int64_t> own = trips.getShare(loop); isInnermost && own && *own > share) {
      longest = counted;
      share = *own;
    }
  }
  return longest;
}

/// Unrolls loops of the kernel until its invocations make at most `limit` trips. Their order, and
/// so the bits of sums, stays as it is. Fails if the code would become too long.
static LogicalResult limitTrips(gpu::GPUFuncOp kernel, int64_t limit) {
  while (true) {
    LoopTrips trips(kernel);
    std::optional<int64_t> total = trips.getTotal();
    if (total && *total <= limit)
      return success();
    scf::ForOp loop = total ? findLongest(trips) : nullptr;
    if (!loop)
      return failure();
    const int64_t copies =
        maxOperations > countOperations(kernel)
            ? 1 + (maxOperations - countOperations(kernel)) / countOperations(loop)
            : 1;
    // Its own part of what is too much: other loops come next, if that is not enough.
    const auto wanted = int64_t(llvm::divideCeil(uint64_t(*total), uint64_t(limit)));
    const int64_t factor = std::min({wanted, copies, *trips.getTrips(loop)});
    if (factor < 2 || failed(loopUnrollByFactor(loop, uint64_t(factor))))
      return failure();
  }
}

void LimitLoopTrips::runOnOperation() {
  FailureOr<Profile> profile = getProfile(getOperation());
  if (failed(profile))
    return signalPassFailure();
  if (profile->maxLoopTrips == noLoopLimit)
    return;
  getOperation().walk([&](gpu::GPUFuncOp kernel) {
    std::optional<int64_t> total = LoopTrips(kernel).getTotal();
    if (!total || *total <= profile->maxLoopTrips)
      return;
    // A kernel that stays too long is refused by the gate, and readable there as it was written.
    OwningOpRef<gpu::GPUFuncOp> shorter(kernel.clone());
    if (succeeded(limitTrips(*shorter, profile->maxLoopTrips)))
      kernel.getBody().takeBody(shorter->getBody());
  });
}
