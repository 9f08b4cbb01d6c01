//===- DecomposeNorms.cpp - Norm ops become linalg ------------------------===//

#include "dialects/Norm/Decompose.h"
#include "dialects/Norm/Norm.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_DECOMPOSENORMSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;

namespace {
struct DecomposeNorms : weir::impl::DecomposeNormsPassBase<DecomposeNorms> {
  using DecomposeNormsPassBase::DecomposeNormsPassBase;

  void runOnOperation() override {
    weir::norm::DecomposeOptions options;
    // The reference has no profile.
    auto module = getOperation()->getParentOfType<ModuleOp>();
    if (module && module->hasAttr(weir::schedule::profileAttrName)) {
      FailureOr<weir::Profile> profile = weir::getProfile(module);
      if (failed(profile))
        return signalPassFailure();
      options.keysInBlocks = profile->attentionKeys;
      options.sortsBits = true;
    }
    weir::norm::decomposeAll(getOperation(), options);
  }
};
} // namespace
