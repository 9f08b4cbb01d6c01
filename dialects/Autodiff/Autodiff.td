//===- Autodiff.td - The autodiff dialect ------------------------------------------===//

#ifndef WEIR_DIALECTS_AUTODIFF_TD
#define WEIR_DIALECTS_AUTODIFF_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Autodiff_Dialect : Dialect {
  let name = "autodiff";
  let cppNamespace = "::weir::autodiff";
  let summary = "Derivatives of functions, before they are expanded.";
  let description = [{
    Ops on ranked tensors that name a function at the `graph` level. They are gone
    at the `gradient` level: weir-differentiate replaces them by forward and backward,
    weir-split-backward removes `autodiff.total`.

    A function F.split that has the attribute `autodiff.split = [a, r]` holds the
    forward and the whole backward of F: its first `a` arguments are those of F, the
    others cotangents, its first `r` results those of F, the others gradients.

    - (C1) the attribute is two numbers, up to those of arguments and results.
    - (C2) the other results have the types of the float tensors among the first `a`
      arguments that have no `weir.frozen`; they are their gradients.
  }];
  let hasOperationAttrVerify = 1;
}

def Autodiff_ValueKind : I32EnumAttr<"ValueKind", "what a value depends on", [
  I32EnumAttrCase<"activation", 0>, I32EnumAttrCase<"weight", 1>]> {
  let cppNamespace = "::weir::autodiff";
}

class Autodiff_Op<string mnemonic, list<Trait> traits = []>
    : Op<Autodiff_Dialect, mnemonic, traits>;

def Autodiff_VjpOp
    : Autodiff_Op<"vjp", [AttrSizedOperandSegments,
                          DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A function's results, and the gradients of some of its arguments.";
  let description = [{
    Calls `callee` with `arguments`. Its results come first, then for each argument
    numbered in `wanted`, in that order, the sum over the results numbered in
    `seeded` of cotangent times derivative. The other results count as if their
    cotangents were 0. An argument that no seeded result depends on has gradient 0.
    With `totals` the backward marks every total by an `autodiff.total`.

    - (C1) `callee` is a function of one block in the same module.
    - (C2) `arguments` have the types of its arguments.
    - (C3) `seeded` rises, each number that of a float tensor among the results of
      `callee`, whose types `cotangents` have.
    - (C4) `wanted` rises, each number that of a float tensor among the arguments.
    - (C5) the results have the types of those of `callee`, then of the arguments
      that are wanted.

    ```mlir
    func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
      %empty = tensor.empty() : tensor<4xf32>
      %y = linalg.mul ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>)
           -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    func.func @example(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %y, %dx = autodiff.vjp @square(%x) seeded [0] (%dy) wanted [0]
          : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %y, %dx : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyRankedTensor>:$arguments,
                       Variadic<AnyRankedTensor>:$cotangents, DenseI64ArrayAttr:$seeded,
                       DenseI64ArrayAttr:$wanted, UnitAttr:$totals);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `(` $arguments `)` `seeded` $seeded `(` $cotangents `)` `wanted` $wanted attr-dict `:`
    functional-type(operands, results)
  }];
}

def Autodiff_TotalOp : Autodiff_Op<"total", [Pure, AllTypesMatch<["cotangent", "total"]>]> {
  let summary = "Marks the complete cotangent of a value.";
  let description = [{
    Returns `cotangent`, and marks it as the total cotangent of one result of one op:
    nothing is added to it any more, and the cotangents of that op's operands are computed
    from it. `kind` is `weight` if the result depends on weights alone, else `activation`.
    A weight is an argument of kind `param`.

    - (C1) `cotangent` is a ranked tensor of floats.

    ```mlir
    func.func @example(%dh: tensor<4xf32>) -> tensor<4xf32> {
      %total = autodiff.total activation %dh : tensor<4xf32>
      return %total : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Autodiff_ValueKind:$kind, RankedTensorOf<[AnyFloat]>:$cotangent);
  let results = (outs RankedTensorOf<[AnyFloat]>:$total);
  let assemblyFormat = "$kind $cotangent attr-dict `:` type($total)";
}

def Autodiff_StopGradientOp
    : Autodiff_Op<"stop_gradient", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "A value that counts as a constant where gradients are taken.";
  let description = [{
    Returns `input`. No cotangent flows through it: front ends write it for
    PyTorch's `detach` and `no_grad`, JAX's `stop_gradient`. Gone at the `gradient`
    level.

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
      %constant = autodiff.stop_gradient %x : tensor<4xf32>
      return %constant : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

#endif // WEIR_DIALECTS_AUTODIFF_TD
