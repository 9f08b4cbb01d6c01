//===- RemoveRedundantWorkgroupBarriers.cpp - Drop needless barriers ------===//

#include "passes/ordered/WorkgroupBarriers.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"

namespace weir {
#define GEN_PASS_DEF_REMOVEREDUNDANTWORKGROUPBARRIERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

/// Whether a kernel, or what it calls, has a barrier. Without one there is nothing to ask.
static bool hasBarrier(gpu::GPUFuncOp kernel, const DenseSet<Operation *> &callees) {
  auto contains = [](Operation *function) {
    return function->walk([](gpu::BarrierOp) { return WalkResult::interrupt(); }).wasInterrupted();
  };
  return contains(kernel) || llvm::any_of(callees, contains);
}

namespace {
struct RemoveRedundantWorkgroupBarriers
    : weir::impl::RemoveRedundantWorkgroupBarriersPassBase<RemoveRedundantWorkgroupBarriers> {
  using RemoveRedundantWorkgroupBarriersPassBase::RemoveRedundantWorkgroupBarriersPassBase;

  void runOnOperation() override {
    bool isChanged = false;
    auto remove = [&](gpu::GPUFuncOp kernel, WorkgroupRaces &races) -> LogicalResult {
      for (gpu::BarrierOp barrier : races.findRedundant()) {
        remark::passed(barrier.getLoc(), remark::RemarkOpts::name("removed")
                                             .category("remove-redundant-workgroup-barriers")
                                             .function(kernel.getName()))
            << remark::reason("every two accesses that it separates are disjoint or separated "
                              "by other barriers");
        barrier.erase();
        isChanged = true;
      }
      return success();
    };
    if (failed(visitKernels(getOperation(), hasBarrier, remove)))
      signalPassFailure();
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};
} // namespace
