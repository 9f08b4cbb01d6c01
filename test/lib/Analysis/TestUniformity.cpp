//===- TestUniformity.cpp - Print what invocations agree on ---------------===//
//
// Looks at operations with `test.name`: at their results, and at where they are.
//
//===----------------------------------------------------------------------===//

#include "test/lib/TestPasses.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/Uniformity.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestUniformity : PassWrapper<TestUniformity, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestUniformity)

  StringRef getArgument() const override { return "weir-test-uniformity"; }
  StringRef getDescription() const override { return "Prints what invocations agree on."; }

  void runOnOperation() override {
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      if (!kernel.isKernel())
        return;
      Uniformity workgroup(kernel), grid(kernel, Scope::Grid);
      getOperation().walk([&](Operation *op) {
        auto name = op->getAttrOfType<StringAttr>("test.name");
        auto function = op->getParentOfType<gpu::GPUFuncOp>();
        if (!name || (function && function != kernel))
          return;
        InFlightDiagnostic remark = op->emitRemark() << name.getValue() << ":";
        for (Value value : op->getResults())
          remark << (grid.isUniform(value)        ? " grid"
                     : workgroup.isUniform(value) ? " workgroup"
                                                  : " varies");
        if (!workgroup.isUniform(op))
          remark << " at divergent control";
      });
    });
  }
};
} // namespace

void weir::test::registerTestUniformityPass() { PassRegistration<TestUniformity>(); }
