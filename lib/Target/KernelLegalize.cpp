//===- KernelLegalize.cpp - What both targets rewrite ---------------------===//

#include "KernelLegalize.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace weir;

/// Removes fast-math flags, since Weir's floats are exact, and wrap flags, which would only become
/// decorations. A maximum or minimum that may return either of two zeros stays one: to tell zeros
/// apart doubles its instructions.
static void dropFlags(Operation *op) {
  MLIRContext *context = op->getContext();
  if (auto floats = dyn_cast<arith::ArithFastMathInterface>(op)) {
    auto flags = arith::FastMathFlags::none;
    if (auto extremum = isa<arith::MaximumFOp, arith::MinimumFOp>(op)
                            ? floats.getFastMathFlagsAttr()
                            : arith::FastMathFlagsAttr())
      flags = extremum.getValue() & arith::FastMathFlags::nsz;
    op->setAttr(floats.getFastMathAttrName(), arith::FastMathFlagsAttr::get(context, flags));
  }
  if (auto wraps = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    op->setAttr(wraps.getIntegerOverflowAttrName(),
                arith::IntegerOverflowFlagsAttr::get(context, arith::IntegerOverflowFlags::none));
}

/// Expands divisions that round up or down, which upstream does not do on the way to SPIR-V.
static void expandDivisions(gpu::GPUFuncOp kernel) {
  auto found = kernel.walk([](Operation *op) {
    bool is = isa<arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
    return is ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found.wasInterrupted())
    return;
  RewritePatternSet patterns(kernel.getContext());
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  (void)applyPatternsGreedily(kernel, std::move(patterns)); // what stays is refused later
}

void weir::legalizeForAll(gpu::GPUFuncOp kernel) {
  kernel.walk([](Operation *op) { dropFlags(op); });
  expandDivisions(kernel);
  for (NamedAttribute attribute : llvm::to_vector(kernel->getDiscardableAttrs()))
    if (attribute.getName() != gpu::GPUDialect::getKernelFuncAttrName() &&
        attribute.getName().getValue().contains('.')) // sym_name is one of them
      kernel->removeDiscardableAttr(attribute.getName());
  kernel.removeArgAttrsAttr();
}
