//===- TestInPlace.cpp - Print which operands kernels may write over ------===//

#include "test/lib/TestPasses.h"

#include "mlir/Pass/Pass.h"
#include "weir/Analysis/InPlaceProofs.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestInPlace : PassWrapper<TestInPlace, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestInPlace)

  StringRef getArgument() const override { return "weir-test-in-place"; }
  StringRef getDescription() const override {
    return "Prints which of its arguments each kernel may write over which.";
  }

  void runOnOperation() override {
    InPlaceProofs proofs(getOperation());
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      if (!kernel.isKernel())
        return;
      InFlightDiagnostic remark = kernel.emitRemark() << kernel.getName() << ":";
      for (auto [source, target] : proofs.getPairs(kernel))
        remark << " " << target << " over " << source;
    });
  }
};
} // namespace

void weir::test::registerTestInPlacePass() { PassRegistration<TestInPlace>(); }
