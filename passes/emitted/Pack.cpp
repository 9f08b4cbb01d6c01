//===- Pack.cpp - Write plans and manifest into the module ----------------===//

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/emitted/Programs.h"
#include "weir/Target/Bundle.h"

namespace weir {
#define GEN_PASS_DEF_PACKPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;

namespace {
struct Pack : weir::impl::PackPassBase<Pack> {
  using PackPassBase::PackPassBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    FailureOr<weir::Manifest> manifest = weir::getManifest(getOperation());
    if (failed(manifest))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(weir::schedule::entryAttrName) ||
          function->hasAttr(weir::schedule::segmentAttrName))
        continue;
      FailureOr<weir::Plan> plan = weir::getPlan(function, *manifest);
      if (failed(plan))
        signalPassFailure();
      else
        function->setAttr(weir::schedule::planAttrName,
                          builder.getStringAttr(weir::printPlan(*plan)));
    }
    SmallVector<NamedAttribute> programs;
    for (NamedAttribute program : weir::getPrograms(getOperation())) {
      FailureOr<weir::Plan> plan = weir::getProgramPlan(getOperation(), program, *manifest);
      if (failed(plan))
        return signalPassFailure();
      NamedAttrList fields(cast<DictionaryAttr>(program.getValue()));
      fields.set(weir::schedule::planAttrName, builder.getStringAttr(weir::printPlan(*plan)));
      programs.emplace_back(program.getName(), fields.getDictionary(&getContext()));
    }
    if (!programs.empty())
      getOperation()->setAttr(weir::schedule::programsAttrName,
                              builder.getDictionaryAttr(programs));
    getOperation()->setAttr(weir::schedule::manifestAttrName,
                            builder.getStringAttr(weir::printManifest(*manifest)));
  }
};
} // namespace
