//===- TestWorkgroupRaces.cpp - Print the races of every kernel -----------===//

#include "test/lib/TestPasses.h"

#include "mlir/Pass/Pass.h"
#include "weir/Analysis/WorkgroupRaces.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestWorkgroupRaces : PassWrapper<TestWorkgroupRaces, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestWorkgroupRaces)

  StringRef getArgument() const override { return "weir-test-workgroup-races"; }
  StringRef getDescription() const override { return "Prints the races of every kernel."; }

  void runOnOperation() override {
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      if (!kernel.isKernel())
        return;
      WorkgroupRaces races(kernel, LaunchSizes::get(kernel), nullptr,
                           [&](FunctionOpInterface function) { return function == kernel; });
      auto print = [&](StringRef what, const AccessHazard &hazard) {
        static const char *const kinds[] = {"RAW", "WAR", "WAW"};
        ArrayRef<MemoryAccess> accesses = races.getMaps().getAccesses();
        InFlightDiagnostic remark = accesses[hazard.second].op->emitRemark()
                                    << what << " " << kinds[size_t(hazard.kind)]
                                    << (hazard.proved ? " proved" : " unknown");
        remark.attachNote(accesses[hazard.first].op->getLoc()) << "the other access";
      };
      WorkgroupRaces::Plan plan = races.plan();
      for (const WorkgroupRaces::PlannedBarrier &barrier : plan.barriers)
        for (const AccessHazard &hazard : barrier.hazards)
          print("barrier", hazard);
      for (const AccessHazard &hazard : plan.unordered)
        print("unordered", hazard);
      for (const AccessHazard &hazard : races.findGridRaces())
        print("grid", hazard);
      kernel.emitRemark() << plan.barriers.size() << " barriers, "
                          << (plan.cheapest ? "proved cheapest" : "perhaps too many") << ", "
                          << races.findRedundant().size() << " redundant";
    });
  }
};
} // namespace

void weir::test::registerTestWorkgroupRacesPass() { PassRegistration<TestWorkgroupRaces>(); }
