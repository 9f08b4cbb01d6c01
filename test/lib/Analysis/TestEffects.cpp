//===- TestEffects.cpp - Print the effects of every kernel ----------------===//

#include "test/lib/TestPasses.h"

#include "mlir/Pass/Pass.h"
#include "weir/Analysis/Effects.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestEffects : PassWrapper<TestEffects, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestEffects)

  StringRef getArgument() const override { return "weir-test-effects"; }
  StringRef getDescription() const override { return "Prints the effects of every kernel."; }

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      const KernelEffects &known = effects.get(kernel);
      InFlightDiagnostic remark = kernel.emitRemark() << kernel.getName() << ":";
      for (const OperandEffect &effect : known.operands)
        remark << " " << schedule::stringifyAccess(effect.access)
               << (effect.coversAll       ? "(all)"
                   : effect.slice.empty() ? ""
                                          : "(slice)");
      if (known.reachesOther)
        remark << " and other memory by " << known.reachesOther->getName();
    });
  }
};
} // namespace

void weir::test::registerTestEffectsPass() { PassRegistration<TestEffects>(); }
