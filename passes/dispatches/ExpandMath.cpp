//===- ExpandMath.cpp - Replace math functions by Weir's own --------------===//
//
// A walk rather than the greedy driver: that one would fold constant operands
// with the host's math library.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "weir/Kernels/Math.h"

namespace weir {
#define GEN_PASS_DEF_EXPANDMATHPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct ExpandMath : weir::impl::ExpandMathPassBase<ExpandMath> {
  using ExpandMathPassBase::ExpandMathPassBase;

  void getDependentDialects(mlir::DialectRegistry &registry) const override {
    ExpandMathPassBase::getDependentDialects(registry);
    registry.insert<mlir::scf::SCFDialect>();
  }

  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    weir::populateMathExpansionPatterns(patterns);
    mlir::walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
