//===- SplitBackward.cpp - One function becomes several entries -----------===//

#include "dialects/Autodiff/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "weir/Autodiff/Autodiff.h"
#include "weir/Autodiff/Sharding.h"

namespace weir {
#define GEN_PASS_DEF_SPLITBACKWARDPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct SplitBackward : weir::impl::SplitBackwardPassBase<SplitBackward> {
  using SplitBackwardPassBase::SplitBackwardPassBase;

  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(autodiff::splitAttrName) && failed(autodiff::splitBackward(function)))
        signalPassFailure();
    if (failed(cutCollectives(getOperation())))
      signalPassFailure();
  }
};
} // namespace
