//===- Differentiable.td - What an op that has a gradient rule implements -----------===//

#ifndef WEIR_DIALECTS_AUTODIFF_DIFFERENTIABLE_TD
#define WEIR_DIALECTS_AUTODIFF_DIFFERENTIABLE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::weir::autodiff";
  let description = [{
    The op's gradient rule. One rule yields the gradients of all operands, for they
    often share what they read.
  }];
  let methods = [InterfaceMethod<[{
      Builds, at `builder`, what the op adds to the cotangents of its wanted operands:
      `cotangents` has one entry per result, null where nothing flows back from it,
      and not all are null; `sums` knows which operands are wanted and holds the sums.
      A derivative that is 0 everywhere adds nothing.

      Fails with a diagnostic when it has no rule for what is wanted.
    }], "::llvm::LogicalResult", "buildVjp",
    (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$cotangents,
         "::weir::autodiff::Cotangents &":$sums)>];
}

#endif // WEIR_DIALECTS_AUTODIFF_DIFFERENTIABLE_TD
