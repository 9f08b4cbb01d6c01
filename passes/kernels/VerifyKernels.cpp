//===- VerifyKernels.cpp - The gate of the kernels level ------------------===//

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_VERIFYKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct VerifyKernels : weir::impl::VerifyKernelsPassBase<VerifyKernels> {
  using VerifyKernelsPassBase::VerifyKernelsPassBase;

  void runOnOperation() override {
    if (failed(getProfile(getOperation())))
      signalPassFailure();
    for (Operation &op : *getOperation().getBody()) {
      auto function = dyn_cast<func::FuncOp>(op);
      if (function)
        verifyFunction(function);
      else
        fail(&op) << "does not belong at the kernels level, whose module holds "
                     "functions";
    }
  }

private:
  InFlightDiagnostic fail(Operation *op) {
    signalPassFailure();
    return op->emitOpError();
  }

  void verifyTypes(func::FuncOp function, TypeRange types, StringRef what);
  void verifyFunction(func::FuncOp function);
};
} // namespace

void VerifyKernels::verifyTypes(func::FuncOp function, TypeRange types, StringRef what) {
  for (auto [index, type] : llvm::enumerate(types)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      fail(function) << what << " " << index << " is " << type
                     << ", not a ranked tensor of static shape";
  }
}

void VerifyKernels::verifyFunction(func::FuncOp function) {
  if (function.isExternal()) {
    fail(function) << "has no body";
    return;
  }
  if (!function.getBody().hasOneBlock()) {
    fail(function) << "has several blocks";
    return;
  }
  verifyTypes(function, function.getArgumentTypes(), "argument");
  verifyTypes(function, function.getResultTypes(), "result");
  for (Operation &op : function.getBody().front()) {
    if (!isa<schedule::KernelOp, arith::ConstantOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
             tensor::EmptyOp, tensor::CastOp, tensor::ConcatOp, func::ReturnOp>(op))
      fail(&op) << "stands outside of kernels, where the kernels level has "
                   "constants, reshapes and concatenations";
    op.walk([&](schedule::KernelOp nested) {
      auto around = nested->getParentOp();
      if (nested != &op && around != &op)
        fail(nested) << "is inside a stage of a kernel";
      else if (nested != &op && !nested.getGroupDims())
        fail(nested) << "is inside another kernel, and has no group_dims, as a stage does";
    });
  }
}
