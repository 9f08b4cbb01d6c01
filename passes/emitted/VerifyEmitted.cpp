//===- VerifyEmitted.cpp - The gate of the emitted level ------------------===//

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "weir/Artifact/Plan.h"
#include "weir/Target/Bundle.h"
#include "weir/Target/Errors.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYEMITTEDPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct VerifyEmitted : weir::impl::VerifyEmittedPassBase<VerifyEmitted> {
  using VerifyEmittedPassBase::VerifyEmittedPassBase;

  void runOnOperation() override;

private:
  InFlightDiagnostic fail(Operation *op) {
    signalPassFailure();
    return op->emitOpError();
  }
  void verifyPlan(Operation *owner, StringRef entry, StringAttr text);
};
} // namespace

/// Checks the plan of an entry, which a function has, or the module for an entry of segments.
void VerifyEmitted::verifyPlan(Operation *owner, StringRef entry, StringAttr text) {
  if (!text) {
    fail(owner) << "has no plan; run weir-pack first";
    return;
  }
  FailureOr<Plan> plan =
      catchErrors([&] { return fail(owner) << "has no valid plan: "; },
                  [&] { return parsePlan(text.str(), schedule::planAttrName.str()); });
  if (succeeded(plan) && plan->entry != entry)
    fail(owner) << "has the plan of entry '" << plan->entry << "'";
}

void VerifyEmitted::runOnOperation() {
  ModuleOp module = getOperation();
  auto manifest = module->getAttrOfType<StringAttr>(schedule::manifestAttrName);
  if (!manifest) {
    fail(module) << "has no manifest; run weir-pack first";
  } else {
    (void)catchErrors(
        [&] { return fail(module) << "has no valid manifest: "; },
        [&] { return parseManifest(manifest.str(), schedule::manifestAttrName.str()); });
  }
  for (auto kernels : module.getOps<gpu::GPUModuleOp>())
    fail(kernels) << "was not emitted";
  for (auto binary : module.getOps<gpu::BinaryOp>())
    if (binary.getObjects().size() != 1)
      fail(binary) << "has " << binary.getObjects().size()
                   << " objects; a module is for one target";
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(schedule::entryAttrName) && !function->hasAttr(schedule::segmentAttrName))
      verifyPlan(function, function.getName(),
                 function->getAttrOfType<StringAttr>(schedule::planAttrName));
  for (NamedAttribute program : getPrograms(module))
    verifyPlan(module, program.getName(),
               cast<DictionaryAttr>(program.getValue()).getAs<StringAttr>(schedule::planAttrName));
  SymbolTable symbols(module);
  module.walk([&](schedule::DispatchOp dispatch) {
    StringAttr name = dispatch.getKernel().getRootReference();
    if (!symbols.lookup<gpu::BinaryOp>(name))
      fail(dispatch) << "launches " << dispatch.getKernel() << ", which was not emitted";
  });
}
