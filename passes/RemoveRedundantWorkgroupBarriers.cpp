//===- RemoveRedundantWorkgroupBarriers.cpp - Drop needless barriers ------===//

#include "passes/Passes.h"
#include "passes/WorkgroupBarriers.h"

#include "mlir/IR/Remarks.h"

namespace weir {
#define GEN_PASS_DEF_REMOVEREDUNDANTWORKGROUPBARRIERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct RemoveRedundantWorkgroupBarriers
    : weir::impl::RemoveRedundantWorkgroupBarriersPassBase<RemoveRedundantWorkgroupBarriers> {
  using RemoveRedundantWorkgroupBarriersPassBase::RemoveRedundantWorkgroupBarriersPassBase;

  void runOnOperation() override {
    auto remove = [](gpu::GPUFuncOp kernel, WorkgroupRaces &races) -> LogicalResult {
      for (gpu::BarrierOp barrier : races.findRedundant()) {
        remark::passed(barrier.getLoc(), remark::RemarkOpts::name("removed")
                                             .category("remove-redundant-workgroup-barriers")
                                             .function(kernel.getName()))
            << remark::reason("every two accesses that it separates are disjoint or separated "
                              "by other barriers");
        barrier.erase();
      }
      return success();
    };
    if (failed(visitKernels(getOperation(), remove)))
      signalPassFailure();
  }
};
} // namespace
