//===- NarrowArithmetic.cpp - Arithmetic of f64 in pairs of f32 -----------===//
//
// Front ends compute statistics in f64 whose operands and results are f32. Done to
// kernels, whose sums have their order already, it holds for gradients, too.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Pass/Pass.h"
#include "weir/Numerics/Narrow.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_NARROWARITHMETICPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct NarrowArithmetic : weir::impl::NarrowArithmeticPassBase<NarrowArithmetic> {
  using NarrowArithmeticPassBase::NarrowArithmeticPassBase;

  void runOnOperation() override;

private:
  LogicalResult narrowBuffers();
};
} // namespace

static bool isOfF64(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref && getElementTypeOrSelf(memref.getElementType()).isF64();
}

LogicalResult NarrowArithmetic::narrowBuffers() {
  for (auto global : getOperation().getOps<memref::GlobalOp>()) {
    auto values = dyn_cast_or_null<ElementsAttr>(global.getInitialValueAttr());
    if (!values || !isOfF64(global.getType()))
      continue;
    FailureOr<ElementsAttr> narrow = getNarrowValues(values);
    if (failed(narrow))
      return global.emitError() << "is a constant of f64, which the target lacks, out of the range "
                                   "of f32";
    global.setInitialValueAttr(*narrow);
  }
  AttrTypeReplacer replacer;
  replacer.addReplacement([](MemRefType type) { return Type(getNarrowType(type)); });
  replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false, /*replaceTypes=*/true);
  return success();
}

void NarrowArithmetic::runOnOperation() {
  FailureOr<Profile> profile = getProfile(getOperation());
  if (failed(profile))
    return signalPassFailure();
  if (profile->float64)
    return;
  // The gate refuses arguments and results of f64 by name.
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (llvm::any_of(function.getArgumentTypes(), isOfF64))
      return;
  if (failed(narrowBuffers()))
    return signalPassFailure();
  bool failedAny = false;
  getOperation().walk([&](gpu::GPUFuncOp kernel) { failedAny |= failed(narrowKernel(kernel)); });
  if (failedAny)
    signalPassFailure();
}
