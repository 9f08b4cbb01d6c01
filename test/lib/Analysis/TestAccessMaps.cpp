//===- TestAccessMaps.cpp - Print what kernels' instructions touch --------===//
//
// Each access, then for each pair of which one writes whether two invocations
// of a workgroup, two workgroups, or one invocation later on, can meet there.
//
//===----------------------------------------------------------------------===//

#include "test/lib/Analysis/PrintSharing.h"
#include "test/lib/TestPasses.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/AccessMap.h"

using namespace mlir;
using namespace weir;
using weir::test::print;

namespace {
struct TestAccessMaps : PassWrapper<TestAccessMaps, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestAccessMaps)

  StringRef getArgument() const override { return "weir-test-access-maps"; }
  StringRef getDescription() const override {
    return "Prints which bytes the instructions of each kernel touch, and which pairs can meet.";
  }

  void runOnOperation() override {
    getOperation()->walk([](gpu::GPUFuncOp kernel) {
      if (kernel.isKernel() && !kernel.isExternal())
        printKernel(kernel);
    });
  }

  static void printKernel(gpu::GPUFuncOp kernel) {
    AccessMaps maps(kernel);
    InFlightDiagnostic remark = kernel.emitRemark() << kernel.getName();
    auto note = [&](Operation *op) -> Diagnostic & {
      return remark.attachNote(op->getLoc()) << kernel.getName() << ": ";
    };
    for (const MemoryAccess &access : maps.getAccesses()) {
      std::string text;
      llvm::raw_string_ostream os(text);
      maps.print(os, access);
      note(access.op) << text;
    }
    ArrayRef<MemoryAccess> accesses = maps.getAccesses();
    for (auto [i, first] : llvm::enumerate(accesses))
      for (auto [j, second] : llvm::enumerate(accesses)) {
        if (j < i || (!first.writes && !second.writes))
          continue;
        using Invocations = Instances::Invocations;
        auto ask = [&](Invocations invocations, Instances::Trip trip) {
          Instances instances;
          instances.invocations = invocations;
          instances.trips.assign(maps.countCommonLoops(first, second), trip);
          return print(maps.compare(first, second, instances));
        };
        Diagnostic &line = note(second.op);
        line << i << " and " << j << ": " << ask(Invocations::SameWorkgroup, Instances::Trip::Any)
             << " in a workgroup, " << ask(Invocations::DifferentWorkgroup, Instances::Trip::Any)
             << " across";
        if (maps.countCommonLoops(first, second))
          line << ", " << ask(Invocations::SameWorkgroup, Instances::Trip::Same) << " in one trip, "
               << ask(Invocations::SameWorkgroup, Instances::Trip::Next) << " from trip to trip";
      }
  }
};
} // namespace

void weir::test::registerTestAccessMapsPass() { PassRegistration<TestAccessMaps>(); }
