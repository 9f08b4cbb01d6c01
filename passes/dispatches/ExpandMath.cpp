//===- ExpandMath.cpp - Replace math functions by Weir's own --------------===//
//
// A walk rather than the greedy driver: that one would fold constant operands
// with the host's math library.
//
//===----------------------------------------------------------------------===//

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "weir/Numerics/Math.h"

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
    bool fuses = roundsFmaOnce();
    if (fuses) {
      // Before the functions in them are expanded.
      mlir::RewritePatternSet gelus(&getContext());
      weir::populateGeluPatterns(gelus);
      mlir::walkAndApplyPatterns(getOperation(), std::move(gelus));
      // The ops that they replace would be expanded, too.
      getOperation()->walk<mlir::WalkOrder::PostOrder, mlir::ReverseIterator>(
          [](mlir::Operation *op) {
            if (mlir::isa<mlir::math::MathDialect, mlir::arith::ArithDialect>(op->getDialect()) &&
                mlir::isOpTriviallyDead(op))
              op->erase();
          });
    }
    mlir::RewritePatternSet patterns(&getContext());
    weir::populateMathExpansionPatterns(patterns, fuses);
    mlir::walkAndApplyPatterns(getOperation(), std::move(patterns));
  }

private:
  /// Whether the module's target is one whose fma rounds once: CUDA's. Vulkan leaves that open, and
  /// code for processors rounds the product by itself.
  bool roundsFmaOnce() {
    auto profile =
        getOperation()->getAttrOfType<mlir::DictionaryAttr>(weir::schedule::profileAttrName);
    auto target = profile ? profile.getAs<mlir::StringAttr>("target") : mlir::StringAttr();
    return target && target.getValue() == "cuda";
  }
};
} // namespace
