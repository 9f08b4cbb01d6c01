//===- TestLoopTrips.cpp - Print how many trips loops make ----------------===//

#include "test/lib/TestPasses.h"

#include "mlir/Pass/Pass.h"
#include "weir/Analysis/LoopTrips.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestLoopTrips : PassWrapper<TestLoopTrips, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestLoopTrips)

  StringRef getArgument() const override { return "weir-test-loop-trips"; }
  StringRef getDescription() const override { return "Prints how many trips loops make."; }

  void runOnOperation() override {
    auto print = [](InFlightDiagnostic &&remark, std::optional<int64_t> number) {
      if (number)
        remark << *number;
      else
        remark << "unknown";
    };
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      LoopTrips trips(kernel);
      print(kernel.emitRemark() << "all loops: ", trips.getTotal());
      for (LoopLikeOpInterface loop : trips.getLoops()) {
        print(loop.emitRemark() << "trips: ", trips.getTrips(loop));
        print(loop.emitRemark() << "share: ", trips.getShare(loop));
      }
    });
  }
};
} // namespace

void weir::test::registerTestLoopTripsPass() { PassRegistration<TestLoopTrips>(); }
